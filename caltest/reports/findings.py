"""Questions of an audit, their tests and findings, and the verdict.

:func:`questions` lists the questions, :func:`row_of` judges one of them by its adjusted p-value,
and :func:`report_of` sums all up to a verdict with sentences. Start reading there.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, fields, replace
from math import exp, inf
from typing import Literal
from weakref import WeakKeyDictionary

import numpy as np

from caltest._base.written import DependenceDoubt, Doubt, several
from caltest.data import Predictions
from caltest.data.binning import UniformBins, VarianceTree
from caltest.data.facts import RIGHT
from caltest.data.lenses import Canonical, Cumulative, Lens, OneVsRest, Subject, TopK
from caltest.data.utilities import UtilityLike
from caltest.errors import StatisticError, spelt
from caltest.inference import confidence_interval, cox_recalibration
from caltest.inference._input import ROWS_FOR_SUMS, Analysis, rows_where_needed
from caltest.inference.null import holm
from caltest.nulls import Run
from caltest.results import (
    AuditReport,
    AuditRow,
    AuditVerdict,
    CalibrationTestResult,
    CoxRecalibration,
    Finding,
    IndividualErrorResult,
    PromiseResult,
    Result,
    Segment,
    SegmentSearch,
    Subgroups,
    WorstClassResult,
    format_p,
    format_range,
    format_value,
)
from caltest.results.base import WORST_PRINTED, worst_of
from caltest.results.rendering import at_most, in_sd, percent
from caltest.statistics import (
    ECE,
    CoxScore,
    IndividualError,
    Kuiper,
    MeanDifference,
    MulticlassCox,
    MultiScale,
    ScoreGap,
    StatisticLike,
    UtilityCalibration,
    prepare,
)
from caltest.statistics.scores import ScoreSum
from caltest.tallies import RowsOrTally, Tally

StatisticAndLens = tuple[StatisticLike, Lens]


#: Sums of rows as a lens shows them, which questions and the slope have in common.
_SUMS: WeakKeyDictionary[Predictions, dict[Lens, Tally]] = WeakKeyDictionary()


#: Classes that are tested one by one, those of the largest total probability.
MOST_CLASSES = 1000


#: A binned error; the binned errors of all classes; those of cumulative probabilities; statistics
#: without bins, of one lens; how sure the whole vector is; levels and slopes of all classes; the
#: items with several outcomes one by one; the utility that is promised to a user; the binned errors
#: of all subgroups; segments of features.
QuestionKind = Literal[
    "error", "classes", "ordered", "shape", "score", "levels", "items", "costs", "groups",
    "segments",
]  # fmt: skip


@dataclass(frozen=True)
class AuditQuestion:
    """One row of an audit: a question, and the (statistic, lens) pairs that answer it together.

    ``kind`` selects the test and the wording; ``lens`` is the name printed in the table.
    """

    lens: str
    words: str
    kind: QuestionKind
    pairs: tuple[StatisticAndLens, ...]

    @classmethod
    def of(
        cls, lens: Lens, kind: QuestionKind, words: str, *statistics: StatisticLike,
        suffix: str = "",
    ) -> AuditQuestion:  # fmt: skip
        """Return a question that is answered by one lens.

        ``words`` are the question as printed, and ``suffix`` is appended to the name of the lens.
        """
        pairs = tuple((statistic, lens) for statistic in statistics)
        return cls(f"{lens!r}{suffix}", words, kind, pairs)

    @property
    def subject(self) -> Subject:
        """Which probabilities the lens assesses."""
        return "classes" if self.kind in ("classes", "ordered") else self.pairs[0][1].subject


#: Rows up to which the score of whole vectors is always redrawn.
NORMAL_ROWS = 50_000


#: What Σ of fourth moments over variance² may be for a score to count as normal: two-sided p-values
#: above 0.0005 are then wrong by less than 3 %, by Edgeworth's series.
NORMAL = 1.0 / 400.0


#: Σ p (1 − p) of every class from which on the χ² law of scores is as good as drawn labels.
COMMON = 400.0


def null_of(data: RowsOrTally, question: AuditQuestion) -> Literal["auto", "asymptotic"]:
    """Return "asymptotic" for scores of many rows whose limit law is accurate, else "auto".

    Many rows are more than 50 000. For the log score the limit is normal, judged by its fourth
    moments; for the joint Cox test it is χ², judged by the smallest Σ p (1 − p) of a class.
    """
    if question.kind not in ("score", "levels") or not data.has_rows or data.n <= NORMAL_ROWS:
        return "auto"
    ((statistic, lens),) = question.pairs
    if question.kind == "levels":
        alone = data.n_clusters is None and data.weights is None
        p = Analysis.through(lens, data).problem.probs
        return "asymptotic" if alone and (p * (1.0 - p)).sum(axis=0).min() >= COMMON else "auto"
    if data.n_clusters is not None:
        return "auto"
    prepared = prepare(statistic, Analysis.through(lens, data).problem)
    normal = isinstance(prepared, ScoreSum) and prepared.tails <= NORMAL
    return "asymptotic" if normal else "auto"


def whole_rows(data: RowsOrTally) -> RowsOrTally:
    """Return the data without subgroups and features, for questions about all rows.

    Data that have neither are returned as the same object, so that caches keyed by it are hit.
    """
    if data.by is None and data.features is None:
        return data
    return replace(data, by=None, features=None)


def sums_of(data: RowsOrTally, lens: Lens) -> RowsOrTally:
    """Return a Tally of independent, unweighted rows if there are very many.

    Else the data unchanged.

    The tally of a lens is kept for as long as the predictions live, because several questions use
    it.
    """
    rows = data.rows
    if rows is None or not data.has_rows or data.n <= ROWS_FOR_SUMS or data.weights is not None:
        return data
    if data.n_clusters or data.folds is not None or rows.followup is not None:
        return data
    sums = _SUMS.setdefault(rows, {})
    if lens not in sums:
        sums[lens] = Tally.of(replace(rows, by=None), lens=lens)
    return sums[lens]


def questions(
    data: RowsOrTally, costs: UtilityLike | None = None
) -> tuple[list[AuditQuestion], list[str]]:
    """Return the questions that an audit asks about these predictions, the headline question first.

    Their number depends on the classes, on subgroups, features, items and costs.
    """
    agenda = _agenda(data)
    headline = agenda[0]
    if not data.multilabel:  # there every label is a subgroup already
        if data.by is not None:
            name, words = f"{headline.lens} by group", "and in every subgroup?"
            agenda.append(replace(headline, lens=name, words=words, kind="groups"))
        if data.features is not None:
            name, words = f"{headline.lens} segments", "and in every segment?"
            agenda.append(replace(headline, lens=name, words=words, kind="segments"))
    if isinstance(data, Predictions) and data.items is not None and data.folds is None:
        # One test of the average cannot tell whether every item is right
        words, statistic = "right item by item?", IndividualError()
        agenda.append(AuditQuestion.of(Canonical(), "items", words, statistic, suffix=" items"))
    if costs is not None:
        agenda.append(_in_users_units(data, costs))
    asked = [question for question in agenda if _answerable(data, question)]
    return _defined(asked, data), [each.lens for each in agenda if each not in asked]


def _answerable(data: RowsOrTally, question: AuditQuestion) -> bool:
    if isinstance(data, Predictions) or data.n_classes == 2:
        return True
    if TopK(1) not in data.lenses:
        raise StatisticError(
            f"audit asks about the top class or the event of two, not {data.lenses[0]!r}: tally "
            "with TopK(1), or ask calibration_test"
        )
    if data.rows is not None:
        return True  # if not by sums, then by the sampled rows
    return {data.named(lens) for _, lens in question.pairs} <= set(map(data.named, data.lenses))


def _agenda(data: RowsOrTally) -> list[AuditQuestion]:
    """Return the questions of all rows together."""
    n_rows = data.n if data.rows is None else data.rows.n  # that whole vectors are asked of
    binary, vector = ECE(UniformBins(15)), ECE(VarianceTree(max(20, n_rows // 50)))
    # A slope, a shift, and waves or bumps of any width: what bins of one width may miss
    binless = CoxScore(), Kuiper(), MultiScale()
    of = AuditQuestion.of
    top = of(TopK(1), "error", "is its confidence right?", binary)
    top_binless = of(TopK(1), "shape", "and without bins?", *binless, suffix=" no bins")
    if data.drawn_together and data.lenses == (TopK(1),):
        return [top, top_binless]  # also of two classes
    event = OneVsRest(1)
    if data.multilabel:
        error = of(event, "groups", "is every label right?", binary)
        score = of(event, "groups", "and without bins?", CoxScore())
        return [replace(error, lens="ECE by label"), replace(score, lens="CoxScore by label")]
    if data.n_classes == 2:
        asserted = data.classes == RIGHT  # the confidence itself, which may be below ½
        words = "is its confidence right?" if asserted else f"is P({data.class_name(1)}) right?"
        tops = [] if asserted or data.followup is not None else [top]
        shape = of(event, "shape", "and without bins?", *binless, suffix=" no bins")
        return [of(event, "error", words, binary), shape, *tops]
    name, words, chosen = f"OneVsRest(0…{data.n_classes - 1})", "are all classes right?", None
    if data.n_classes > MOST_CLASSES and isinstance(data, Predictions):
        # Looking at predictions only keeps every test valid.
        chosen = np.sort(np.argsort(-data.probs.sum(axis=0), kind="stable")[:MOST_CLASSES])
        words = f"are the {MOST_CLASSES} likeliest classes right?"
    numbers = range(data.n_classes) if chosen is None else chosen.tolist()
    called = [(c, data.class_name(c)) for c in numbers]
    events = [OneVsRest(c if name == str(c) else name) for c, name in called]
    every = AuditQuestion(name, words, "classes", tuple((binary, event) for event in events))
    whole = of(Canonical(), "error", "is the whole vector right?", vector)
    # The log score sees most, but is infinite for a label of probability 0.
    score_gap, cuts = ScoreGap("brier" if data.impossible.size else "log"), []
    if data.ordered:
        last = data.n_classes - 2
        below = tuple((binary, Cumulative(c)) for c in range(last + 1))
        words, score_gap = "are cumulative probabilities right?", ScoreGap("rps")
        cuts = [AuditQuestion(f"Cumulative(0…{last})", words, "ordered", below)]
    sure = of(Canonical(), "score", "over- or underconfident?", score_gap, suffix=" score")
    levels = of(Canonical(), "levels", "which class is wrong?", MulticlassCox(), suffix=" Cox")
    every_class = [levels] * (data.n_classes <= MOST_CLASSES)
    k = min(3, data.n_classes - 2)
    ranks = [of(TopK(k), "error", f"are the {k} largest right?", vector)] if k > 1 else []
    return [top, top_binless, *ranks, every, *cuts, whole, sure, *every_class]


def _in_users_units(data: RowsOrTally, costs: UtilityLike) -> AuditQuestion:
    """Return the question whether acting on the probabilities gains the utility they promise.

    The list is empty without ``costs``.
    """
    rows = data.rows
    if rows is None or not data.has_rows or rows.followup is not None or rows.multilabel:
        raise StatisticError(
            "costs= needs rows with one outcome each: a tally does not keep utilities, and neither "
            "follow-up nor several labels a row have them"
        )
    words, statistic = "does it gain what it promises?", UtilityCalibration(costs)
    return AuditQuestion.of(Canonical(), "costs", words, statistic, suffix=" costs")


def _defined(agenda: list[AuditQuestion], data: RowsOrTally) -> list[AuditQuestion]:
    """Drop statistics that these predictions leave undefined.

    An example is the slope if all predictions are 0 or 1.
    """
    answerable = []
    for question in agenda:
        if question.kind not in ("shape", "score", "levels", "items", "costs"):
            answerable.append(question)  # an error always has a meaning
            continue
        sums, pairs = data, list[StatisticAndLens]()
        if question.kind == "shape":
            sums = sums_of(data, question.pairs[0][1])
        for statistic, lens in question.pairs:
            with suppress(StatisticError):
                source = rows_where_needed(sums, [(statistic, lens)])
                prepare(statistic, Analysis.through(lens, source).problem)
                pairs.append((statistic, lens))
        answerable += [replace(question, pairs=tuple(pairs))] if pairs else []
    return answerable


# ------------------------------------------------------------------------------
# From tests to findings: the rows of an audit, each judged by itself.


Tests = list[CalibrationTestResult]


#: The tests of a question, their p-value together, and what was found in subgroups, segments or
#: classes.
TestAnswer = tuple[
    Tests,
    float,
    Subgroups | SegmentSearch | WorstClassResult | IndividualErrorResult | PromiseResult | None,
]


#: Standard errors from which on lower predictions of events than of others are no chance.
WRONG_ORDER = 5.0


@dataclass(frozen=True)
class Judged:
    """Result of a multiplicity adjustment for one question of an audit.

    ``steps`` is the factor of Holm's method for the question. A part, such as a subgroup, whose
    p-value within the question is p, has the adjusted p-value max(adjusted, steps p). The row, the
    table of its parts and the sentence about them therefore agree.
    """

    adjusted: float
    steps: int
    alpha: float

    @classmethod
    def of(cls, pvalues: Sequence[float], adjusted: Sequence[float], alpha: float) -> list[Judged]:
        """Build one Judged for each question from its raw and its adjusted p-value."""
        ranks = np.argsort(np.argsort(pvalues, kind="stable"))
        steps = (len(pvalues) - ranks).tolist()
        return [cls(q, m, alpha) for q, m in zip(adjusted, steps, strict=True)]

    @property
    def rejected(self) -> bool:
        """True if the question is rejected."""
        return self.adjusted <= self.alpha

    def part(self, pvalue: float) -> float:
        """Return the p-value of a part of this question, adjusted for all questions.

        A part is a subgroup, class or segment; ``pvalue`` is adjusted within the question already.
        """
        return max(self.adjusted, min(1.0, self.steps * pvalue))


def row_of(
    data: RowsOrTally, question: AuditQuestion, answer: TestAnswer, judged: Judged, noticed: float
) -> AuditRow:
    """Return the row of an audit that reports one question.

    ``answer`` holds its tests, p-value and further result; ``judged`` its adjusted p-value;
    ``noticed`` is the smallest error that should not be missed, in probability units.
    """
    (tests, pvalue, parts), alpha = answer, judged.alpha
    if isinstance(parts, SegmentSearch):
        tests, critical = [_of_search(parts)], parts.passing
    worst = worst_test(question, tests)
    test = tests[worst]
    if not isinstance(parts, SegmentSearch):
        assert test.null_distribution is not None
        critical = test.null_distribution.ppf(1.0 - alpha)
    passing = critical if question.kind in ("error", "classes", "ordered", "groups") else 0.0
    impossible, groups = any(t.impossible for t in tests), None
    verdict = _finding(data.n, impossible, judged.rejected, passing, noticed)
    if question.kind == "items" and verdict is Finding.MISCALIBRATED:
        verdict = Finding.SINGLE_ITEMS
    if isinstance(parts, SegmentSearch):
        worst_part, detail = parts.worst.name, _of_segments(parts, judged)
    elif isinstance(parts, WorstClassResult):
        worst_part, detail = f"class {parts.components[0].name}", ""
        if judged.rejected:
            detail = f"By class: {parts.finding}"
    elif isinstance(parts, IndividualErrorResult):
        worst_part, detail = "", f"Item by item: {parts.finding}"
    elif isinstance(parts, PromiseResult):
        words = " ".join(parts._in_words())
        worst_part, detail = "", f"In the user's units {words[0].lower()}{words[1:]}"
    elif parts is not None:
        worst_part = parts.names[parts.worst]
        groups = _judged(data, question.pairs[0][1], parts, judged, noticed)
        detail = _of_subgroups(groups)
    else:
        worst_part = _worst(data, question, worst)
        detail = _detail(data, question, tests, worst, worst_part, judged)
    several_classes = question.kind in ("classes", "ordered")
    return AuditRow(
        n_tests=len(tests) if several_classes else 0,
        n_wrong=_number_wrong(tests, judged) if several_classes else 0,
        subject=question.subject,
        lens=question.lens,
        question=question.words,
        aspect=question.kind,
        test=test,
        pvalue=pvalue,
        adjusted=judged.adjusted,
        critical=critical,
        verdict=verdict,
        worst=worst_part,
        detail=detail,
        search=parts if isinstance(parts, SegmentSearch) else None,
        groups=groups,
        classes=parts if isinstance(parts, WorstClassResult) else None,
        individual=parts if isinstance(parts, IndividualErrorResult) else None,
        promise=parts if isinstance(parts, PromiseResult) else None,
    )


def _finding(n: int, impossible: bool, rejected: bool, passing: float, noticed: float) -> Finding:
    """Return the finding of one test.

    A rejected test, or an outcome of probability 0 (``impossible``), is miscalibration. Otherwise
    the finding is "too little data" if ``passing``, the largest error that noise explains, exceeds
    ``noticed``, or if n is so small that an error of ``noticed`` would change no label in more than
    20 % of data sets; "no evidence" if neither holds.
    """
    if impossible:
        return Finding.IMPOSSIBLE_OUTCOME
    if rejected:
        return Finding.MISCALIBRATED
    # So few rows that a shift by that would as likely as not leave no trace.
    few = n < np.log(0.2) / np.log1p(-noticed)
    return Finding.TOO_LITTLE_DATA if few or passing > noticed else Finding.NO_EVIDENCE


def worst_test(question: AuditQuestion, tests: Tests) -> int:
    """Return the index of the test that represents a question with several tests.

    It is the test with the largest lower bound of its error. Statistics without bins have no common
    unit: there it is the one with the largest z-score.
    """
    if question.kind == "shape":
        return max(range(len(tests)), key=lambda j: tests[j].excess / (tests[j].null_std or inf))
    return worst_of(tests)


def _worst(data: RowsOrTally, question: AuditQuestion, worst: int) -> str:
    statistic, lens = question.pairs[worst]
    if isinstance(lens, OneVsRest) and question.kind == "classes":
        return f"class {data.class_name(data.class_index(lens.c))}"
    if question.kind == "ordered":
        assert data.rows is not None  # a tally knows no order
        return lens.components(data.rows)[0]
    return "" if len(question.pairs) == 1 else type(statistic).__name__


def _of_search(search: SegmentSearch) -> CalibrationTestResult:
    """Return the difference of the worst segment as a test, with the p-value of the search."""
    shared = {field.name: vars(search)[field.name] for field in fields(Result)}
    names = ("lens", "null", "pvalue", "pvalue_error", "impossible", "clusters")
    return CalibrationTestResult(
        statistic=f"segments of {search.min_rows} rows",
        estimate=abs(search.worst.difference),
        pvalue_bracket=(search.pvalue, search.pvalue),
        null_mean=0.0,
        null_std=search.worst.chance,
        two_sided=False,
        centre=0.0,
        **{name: vars(search)[name] for name in names},
        **shared,
    )


def _of_segments(search: SegmentSearch, judged: Judged) -> str:
    """Return sentences that name the segments found, with the gain from recalibrating them.

    Where none was found they say how large a difference would have been detected.
    """
    searched = f"Segments: {len(search.segments)} of {search.n_segments} searched are listed"
    if not search.segments:
        return f"{searched}. {search.reach_in_words}".rstrip()
    named = "; ".join(
        f"{s.name} (predicts {percent(s.predicted, s.observed)} on average, observed "
        f"{percent(s.observed, s.predicted)})"
        for s in search.segments[:3]
    )
    more = "; …" * (len(search.segments) > 3)
    kept = sum(judged.part(segment.pvalue) <= judged.alpha for segment in search.segments)
    if kept < len(search.segments):
        more += f". With all questions of this audit adjusted for, {kept} of them are miscalibrated"
    return f"{searched}: {named}{more}. {search.gain_in_words}"


def _judged(
    data: RowsOrTally, lens: Lens, parts: Subgroups, judged: Judged, noticed: float
) -> Subgroups:
    """Return subgroups completed with mean predictions, event rates and a finding for each.

    The p-values become those that are adjusted for all questions of the audit.
    """
    adjusted = tuple(None if p is None else judged.part(p) for p in parts.adjusted)
    parts, alpha = replace(parts, adjusted=adjusted, pvalue=judged.adjusted), judged.alpha
    assert data.rows is not None  # a tally has no subgroups
    whole, findings = replace(data.rows, by=None, features=None), list[Finding | None]()
    means = [
        Analysis.through(lens, whole.take(r)).problem.means()
        for r in data.rows.subgroups().values()
    ]
    for test, p in zip(parts.tests, parts.adjusted, strict=True):
        law = None if test is None else test.null_distribution
        passing = inf if law is None else law.ppf(1.0 - alpha)
        findings.append(
            None if test is None or p is None
            else _finding(test.n, test.impossible > 0, p <= alpha, passing, noticed)
        )  # fmt: skip
    predicted, observed = zip(*means, strict=True)
    light = tuple(test and replace(test, null_distribution=None) for test in parts.tests)
    return replace(
        parts, tests=light, predicted=predicted, observed=observed, findings=tuple(findings)
    )


def _of_subgroups(parts: Subgroups) -> str:
    """Return sentences on subgroups: the rejected ones with errors and p-values, and the worst.

    The p-value of the test that all have the same miscalibration follows where it is known.
    """
    wrong = {}
    for j, (name, test, p) in enumerate(zip(parts.names, parts.tests, parts.adjusted, strict=True)):
        means, finding = (parts.predicted[j], parts.observed[j]), parts.findings[j]
        if finding is not None and finding.rejects and p is not None:
            called = " ".join([name, *_sides(*means, test.estimate)])
            wrong[name] = (
                f"{called}: error {test.shown_estimate}, noise floor {test.shown_floor}, "
                f"p {at_most(format_p(p), test.at_floor)}"
                f"{', an impossible outcome' * (test.impossible > 0)}, "
                f"{direction_of(*means, inf)}"
            )
    listed = "; ".join([*wrong.values()][:WORST_PRINTED])
    more = f"; and {len(wrong) - WORST_PRINTED} others" * (len(wrong) > WORST_PRINTED)
    listed = f" ({listed}{more})" if wrong else ""
    j, p = parts.worst, parts.adjusted[parts.worst]
    assert p is not None  # the worst of those that were tested
    worst, test, means = parts.names[j], parts.tests[j], (parts.predicted[j], parts.observed[j])
    error = (
        f": error {test.shown_estimate}, noise floor {test.shown_floor}, "
        f"p {format_p(p)} ({direction_of(*means, inf)})"
    )
    sentences = [
        f"Subgroups: {len(wrong)} of {len(parts.tested)} are miscalibrated on their own{listed}; "
        f"the worst is {worst}{error * (worst not in wrong)}."
    ]
    if parts.alike_pvalue is not None:
        sentences.append(
            f"Test that all have the same miscalibration: p = {format_p(parts.alike_pvalue)}."
        )
    return " ".join([*sentences, *(f"{note[0].upper()}{note[1:]}." for note in parts.remarks)])


def _number_wrong(tests: Tests, judged: Judged) -> int:
    """Return how many tests of a question reject by themselves, adjusted for all questions."""
    return sum(judged.part(p) <= judged.alpha for p in holm([t.pvalue for t in tests]))


def _detail(
    data: RowsOrTally,
    question: AuditQuestion,
    tests: Tests,
    worst: int,
    worst_part: str,
    judged: Judged,
) -> str:
    test = tests[worst]
    lens = question.pairs[worst][1]
    if question.kind in ("classes", "ordered"):
        wrong = _number_wrong(tests, judged)
        what, which, side = "Cumulative probabilities", f"that of {worst_part}", ""
        if isinstance(lens, OneVsRest):
            what, which = "Classes", worst_part
            side = f" ({direction_of(*means_of(data, lens.c), test.estimate)})"
        return (
            f"{what}: {wrong} of {len(tests)} are miscalibrated on their own; the worst is "
            f"{which}: error {test.shown_estimate}, noise floor {test.shown_floor}{side}."
        )
    if question.kind == "shape":
        parts = [
            f"{type(statistic).__name__} {t.shown_estimate} "
            f"(noise floor {t.shown_floor}, p {t.shown_p})"
            for t, (statistic, _) in zip(tests, question.pairs, strict=True)
        ]
        shared = set(tests[0].notes).intersection(*(t.notes for t in tests))
        notes = dict.fromkeys(n for t in tests for n in t.notes if n not in shared)
        return " ".join([f"Without bins: {'; '.join(parts)}.", *(f"Note: {n}." for n in notes)])
    if question.kind == "score" and judged.rejected:
        sure, than = ("over", "worse") if test.excess > 0 else ("under", "better")
        return (
            f"Over all class probabilities the model is {sure}confident: its score is "
            f"{in_sd(abs(test.excess), test.null_std).replace('+', '')} {than} than expected if it "
            "were calibrated."
        )
    if isinstance(data, Predictions) and data.n_classes == 2 and isinstance(lens, TopK):
        p, called = data.probs[:, 1], f"P({data.class_name(1)})"
        if p.max() <= 0.5 or p.min() >= 0.5:
            side = "exceeds" if p.max() <= 0.5 else "is below"
            return f"{lens!r} asks the same as {OneVsRest(1)!r} here: no {called} {side} 0.5."
    if question.kind == "error" and test.excess < -2.0 * test.null_std:
        return (
            f"{question.lens}: the error {test.shown_estimate} is below the noise "
            f"floor ({test.shown_floor}): outcomes are more regular than predicted, which this row "
            "cannot test."
        )
    return ""


def of_other_label(data: RowsOrTally) -> str:
    """Return a warning if the predictions seem to be of the other label; "" otherwise.

    The sign is that events have much lower predictions than non-events.
    """
    if not isinstance(data, Predictions) or data.n_classes > 2 or data.classes == RIGHT:
        return ""
    p, event = data.risks, data.labels == 1
    if data.followup is not None or data.multilabel or min(event.sum(), (~event).sum()) < 2:
        return ""
    low, high = p[event], p[~event]
    spread = np.hypot(*(each.std() / np.sqrt(each.size) for each in (low, high)))
    if low.mean() - high.mean() >= -WRONG_ORDER * spread:
        return ""
    other = data.class_name(0)
    return (
        f"Where class {data.class_name(1)} was observed, its predictions are lower "
        f"({percent(low.mean(), high.mean())} on average) than elsewhere "
        f"({percent(high.mean(), low.mean())}): are they the probability of {other}? Then give "
        "1 − p."
    )


def direction_of(predicted: float, observed: float, error: float = 0.0) -> str:
    """Return the phrase "predicts 5.5 % on average, observed 3.1 %: too high".

    The side is added only if the means differ by at least half of ``error``.
    """
    means = f"{percent(predicted, observed)} on average, observed {percent(observed, predicted)}"
    return ": ".join([f"predicts {means}", *_sides(predicted, observed, error)])


def _sides(predicted: float, observed: float, error: float) -> list[str]:
    """Return ["too high"] or ["too low"] if the means differ by at least half of ``error``.

    Else [].
    """
    side = "too high" if predicted > observed else "too low"
    return [side] * (abs(predicted - observed) >= 0.5 * error)


def means_of(data: RowsOrTally, c: int | str) -> tuple[float, float]:
    """Return (mean prediction, observed frequency) of a class, weighted where rows are weighted."""
    return Analysis.through(OneVsRest(c), data).problem.means()


# ------------------------------------------------------------------------------
# The verdict of an audit on all its rows together, and its summary in words.


#: Directions of the top class in words.
CONFIDENCE = {
    "overconfident": "overconfident",
    "underconfident": "underconfident",
    "mixed": "overconfident in some ranges and underconfident in others",
}


#: Smallest error that has to be detectable where no tolerance is given.
NOTICED = 0.1


#: Verdicts that rest on the independence of rows: rejections, and bounds of the error.
DOUBTFUL = (
    *(AuditVerdict.MISCALIBRATED, AuditVerdict.MATTERS),
    *(AuditVerdict.TOO_LITTLE_TO_MATTER, AuditVerdict.WITHIN_TOLERANCE),
)


def report_of(
    data: RowsOrTally,
    rows: tuple[AuditRow, ...],
    alpha: float,
    tolerance: float | None,
    bounds: ErrorBounds | None,
    elsewhere: dict[str, ErrorBounds],
) -> AuditReport:
    """Combine the rows of an audit into its report: verdict, direction and sentences.

    ``bounds`` is the interval of the headline error; ``elsewhere`` holds the intervals of other
    errors above the tolerance, by lens and class.
    """
    one_event = data.followup is not None or data.multilabel  # nothing is asked of the top class
    if data.classes == RIGHT or one_event:
        subject, (confidence, accuracy) = "event", means_of(data, 1)
    else:
        subject, (confidence, accuracy) = "top", Analysis.through(TopK(1), data).problem.means()
    named = rows[0].subject == "event" and data.classes != RIGHT
    event = means_of(data, 1) if named else (np.nan, np.nan)
    top = next(r for r in rows if r.subject == subject and r.aspect in ("error", "groups"))
    impossible, line = data.impossible, None
    if impossible.size or any(row.verdict.rejects for row in rows):
        verdict = AuditVerdict.MISCALIBRATED
        direction, summary = _wrong(data, rows, top, alpha, (confidence, accuracy), event)
        of_all = [r for r in rows if r.subject == "event" and r.aspect in ("error", "shape")]
        line = _cox_line(data, alpha) if any(row.verdict.rejects for row in of_all) else None
        summary[1:1] = [] if line is None else [_extreme(data, line)]
    else:
        direction, (verdict, passed) = "", _not_rejected(data, rows[0], tolerance)
        summary = [passed] if tolerance is None else []
    summary += _of_single_items(rows)
    summary[:0] = filter(None, [of_other_label(data)])
    if bounds is not None:
        beside = "."
        if tolerance is not None:
            verdict, beside = _beside(tolerance, data.n, rows, bounds, elsewhere)
        summary.append(f"The error of new data ({rows[0].lens}) lies {bounds}{beside}")
    if verdict is not AuditVerdict.TOO_LITTLE_DATA:
        summary += [
            f"Too little data for {row.lens}: an error of up to {_passing(row)} would be missed."
            for row in rows
            if row.verdict is Finding.TOO_LITTLE_DATA
        ]
    if impossible.size:
        summary.append(_refuted(data))
    doubts = [note for note in data.notes if isinstance(note, Doubt)]
    dependent = any(isinstance(note, DependenceDoubt) for note in doubts)
    if dependent and verdict in DOUBTFUL and not impossible.size:
        verdict = AuditVerdict.IN_DOUBT
    summary[:0] = [f"This is in doubt: {note}." for note in doubts]
    return AuditReport(
        verdict=verdict,
        summary=tuple(summary),
        direction=direction,
        rows=rows,
        n=data.n,
        n_classes=data.n_classes,
        accuracy=accuracy,
        folds=top.test.folds,
        series=top.test.series,
        confidence=confidence,
        observed=event[1],
        predicted=event[0],
        slope=np.nan if line is None else line.slope,
        slope_low=np.nan if line is None else line.slope_interval[0],
        slope_high=np.nan if line is None else line.slope_interval[1],
        low=np.nan if bounds is None else bounds.low,
        high=np.nan if bounds is None else bounds.high,
        alpha=alpha,
        tolerance=tolerance,
        impossible=impossible.size,
        notes=tuple(_notes(data, rows)),
        unsearched=_unsearched(data),
        doubted=bool(doubts),
        copies=data.copies,
        followup=top.test.followup,
    )


def _of_single_items(rows: Sequence[AuditRow]) -> list[str]:
    """Say that single items differ from their predictions, and what that is not."""
    found = [row.individual for row in rows if row.verdict is Finding.SINGLE_ITEMS]
    also = " also" * any(row.verdict.rejects for row in rows)
    no_bias = " This scatter is no bias: averages over many items can be right." * (not also)
    return [
        f"Single items{also} differ from their predictions by more than their number of votes "
        f"explains: their shares of votes by {each.distance}, as a root mean square.{no_bias} A "
        "statement on a single item must allow for it."
        for each in found
        if each is not None
    ]


def _cox_line(data: RowsOrTally, alpha: float) -> CoxRecalibration | None:
    """Return Cox's line of a binary outcome if the interval of its slope excludes 1.

    None otherwise.
    """
    p = Analysis.through(OneVsRest(1), data).problem.probs
    if data.multilabel or not p.min() > 0.0:  # log-odds of 0 and 1 would decide alone
        return None
    with suppress(StatisticError):
        rows = sums_of(whole_rows(data), OneVsRest(1))
        line = cox_recalibration(rows, lens=OneVsRest(1), level=1.0 - alpha)
        low, high = line.slope_interval
        return None if low <= 1.0 <= high else line
    return None


def _extreme(data: RowsOrTally, line: CoxRecalibration) -> str:
    """Return a sentence on the slope: too extreme, not extreme enough, or in the wrong order.

    It names the prediction at which the line crosses the diagonal if at least 5 % of the rows lie
    on each side of it.
    """
    p = Analysis.through(OneVsRest(1), data).problem.probs[:, 0]
    turn = 1.0 / (1.0 + exp(min(-line.intercept / (1.0 - line.slope), 700.0)))
    sides = ("high", "low") if line.slope < 1.0 else ("low", "high")
    words = "too extreme" if line.slope < 1.0 else "not extreme enough"
    words = "in the wrong order" if line.slope < 0.0 else words
    where = ", beside their level"
    if np.quantile(p, 0.05) < turn < np.quantile(p, 0.95):  # rows of both sides show it
        where = f": above {percent(turn, 0.0)} they are too {sides[0]}, below too {sides[1]}"
    ends = (line.slope, *line.slope_interval)
    slope, low, high = (format_value(each, line.slope_se) for each in ends)
    return (
        f"Predictions are {words}{where} (calibration slope {slope}, {100 * line.level:.4g} % "
        f"interval {low} to {high}; 1 if calibrated)."
    )


def _refuted(data: RowsOrTally) -> str:
    """Return a sentence on outcomes that had probability exactly 0.

    It names the first such row, says that one refutes calibration, and how to handle rounding.
    """
    impossible = data.impossible
    first, row = "", int(impossible[0])
    if data.has_rows and data.rows is not None:
        row = row if data.rows.places is None else int(data.rows.places[row])
        first = f" (the first in row {row + 1}, counted from 1)"
    wrong = ", where 0 or 1 was predicted" if data.n_classes == 2 else ""
    others = rounded = ""
    if wrong and data.rows is not None:
        p = data.rows.probs[:, 1]
        unsure = replace(data.rows, by=None, features=None).take((p > 0.0) & (p < 1.0))
        rounded = spelt(" or leave these rows out with rounded=True (--rounded)")
        if unsure.n:
            others = f" Elsewhere the model {direction_of(*means_of(unsure, 1), inf)}."
    return (
        f"{several(impossible.size, 'outcome')} occurred that had probability exactly 0{wrong}"
        f"{first}: that alone refutes calibration, unless the probabilities were rounded to 0: "
        f"then give them unrounded{rounded}.{others}"
    )


def _wrong(
    data: RowsOrTally,
    rows: tuple[AuditRow, ...],
    top: AuditRow,
    alpha: float,
    means: tuple[float, float],
    event_means: tuple[float, float],
) -> tuple[str, list[str]]:
    """Return (direction, sentences) of a miscalibrated model.

    ``top`` is the first row about the top class; ``means`` are its mean confidence and accuracy,
    and ``event_means`` mean prediction and event rate of label 1, NaN for more than two classes.
    """
    (confidence, accuracy), (mean, rate), direction = means, event_means, ""
    called = f"Class {data.class_name(1)}"
    sentences, gap = list[str](), confidence - accuracy
    significant = [row for row in rows if row.verdict.rejects and row.adjusted <= alpha]
    of_one = [row for row in significant if row.subject in ("event", "top")]
    errors = [row for row in of_one if row.aspect == "error"]
    shown = [row for row in of_one if row.aspect in ("error", "shape")]
    event = next((row for row in errors if row.subject == "event"), None)
    if shown and (mean != mean or top.subject == "top"):
        if abs(gap) >= 0.5 * top.test.estimate:
            direction = "overconfident" if gap > 0 else "underconfident"
        elif top in errors:
            direction = "mixed"
    if shown and mean == mean:
        if abs(mean - rate) >= 0.5 * (errors or rows)[0].test.estimate:
            # One direction only: of a rare event the top class says the contrary.
            direction = "too high" if mean > rate else "too low"
            sentences.append(f"{called}: {direction_of(mean, rate)}.")
        elif event is not None:
            both = f"predicts {percent(mean, rate)} on average, observed {percent(rate, mean)}"
            sentences.append(f"{called}: too high in some ranges and too low in others ({both}).")
    if direction in CONFIDENCE:
        sentences.append(
            f"The model is {CONFIDENCE[direction]}: it claims {percent(confidence, accuracy)} on "
            f"average and is right in {percent(accuracy, confidence)} of cases."
        )
    if significant and not errors and rows[0].aspect == "error":
        judged = rows[0].verdict is not Finding.TOO_LITTLE_DATA
        passed = "is within sampling noise" if judged else "cannot be judged"
        sentences.append(
            f"The binned error ({rows[0].lens}) {passed}, but miscalibration shows in: "
            f"{', '.join(row.lens for row in significant)}."
        )
    main = event or (top if top in errors else None)
    if main is not None:
        sentences.append(
            f"The error ({main.lens}) is {main.test.shown_estimate}; its noise floor, the mean "
            f"under calibration, is {main.test.shown_floor}."
        )
    score = next((row for row in rows if row.verdict.rejects and row.aspect == "score"), None)
    if not direction and score is not None:
        direction = "overconfident" if score.test.excess > 0 else "underconfident"
    return direction, sentences


def _passing(row: AuditRow) -> str:
    """Return, as printed, the largest error of a row that noise could explain."""
    return format_value(row.critical, row.test.null_std)


def _notes(data: RowsOrTally, rows: tuple[AuditRow, ...]) -> list[str]:
    lenses = [row.lens if row.aspect in ("classes", "ordered") else row.test.lens for row in rows]
    lenses_of: dict[str, dict[str, None]] = {}
    for lens, row in zip(lenses, rows, strict=True):
        for note in row.test.notes:
            if note not in row.detail and note not in data.notes:
                lenses_of.setdefault(note, {})[lens] = None
    everywhere = len(set(lenses))
    notes = [note for note in data.notes if not isinstance(note, Doubt)]
    for note, at in lenses_of.items():
        notes.append(note if len(at) == everywhere else f"{', '.join(at)}: {note}")
    if rows[0].test.clusters is not None:
        notes.append(f"{rows[0].lens}: rows come in clusters: {rows[0].test.clusters}")
    if data.weights is not None:
        alike = f"{data.effective_n:.1f} of equal weight (effective n)"
        notes.append(f"rows are weighted, and as informative as {alike}")
        share = float(data.weights.max() / data.weights.sum()) if data.rows is data else 0.0
        if share > 0.5:
            notes.append(
                f"caution: row {int(data.weights.argmax())} carries {share:.0%} of all weight, so "
                "that the answer is about this row: check its weight"
            )
    return notes


def _unsearched(data: RowsOrTally) -> tuple[str, ...]:
    """Return the names of unused columns that a segment search could take as features."""
    rows = data.rows
    if not data.has_rows or rows is None or rows.features is not None or rows.horizon is not None:
        return ()
    if rows.by is not None:  # a search of all rows together would answer another question
        return ()
    return () if rows.followup is not None or rows.multilabel else rows.unused


def _beside(
    tolerance: float,
    n: int,
    rows: tuple[AuditRow, ...],
    bounds: ErrorBounds,
    elsewhere: dict[str, ErrorBounds],
) -> tuple[AuditVerdict, str]:
    """Return (verdict, end of a sentence): whether the error exceeds the tolerance.

    The interval of the headline error decides, unless a segment, a class or a subgroup in
    ``elsewhere`` certainly or possibly exceeds the tolerance. ``n`` is used to say how many rows
    would decide.
    """
    rejected = any(row.verdict.rejects for row in rows)
    within, limit = bounds.within(tolerance), f"the tolerance {tolerance:g}"
    if within is False:
        return AuditVerdict.MATTERS, f", so it is larger than {limit}."
    segment = _largest_segment(rows)
    if segment is not None and segment.at_least > tolerance:
        return AuditVerdict.MATTERS, (
            f". In {segment.name}, observed and predicted differ by more than {limit}: by at least "
            f"{format_value(segment.at_least, segment.chance)} (intervals of all segments hold "
            "together)."
        )
    if elsewhere:
        name, worst = max(elsewhere.items(), key=lambda item: item[1].low)
        if worst.low > tolerance:
            verdict, beyond = AuditVerdict.MATTERS, "is larger than"
        else:
            verdict, beyond = AuditVerdict.CANNOT_TELL, "may be larger than"
        return verdict, f". That of {name} {beyond} {limit}: it lies {worst}."
    if segment is not None and abs(segment.difference) > tolerance:
        return AuditVerdict.CANNOT_TELL, (
            f". In {segment.name}, observed and predicted may differ by more than {limit}: by at "
            f"least {format_value(segment.at_least, segment.chance)}."
        )
    if within:
        verdicts = (AuditVerdict.WITHIN_TOLERANCE, AuditVerdict.TOO_LITTLE_TO_MATTER)
        real = ": real, but too little to matter" * rejected
        return verdicts[rejected], f", so it is within {limit}{real}."
    needed = bounds.rows_to_tell(n, tolerance)
    tells = f"; about {needed} rows like these would tell, unless it is close to that"
    tells *= needed is not None
    undecided = f", so whether it is larger than {limit} cannot be told{tells}."
    return AuditVerdict.CANNOT_TELL, undecided + " It is real, whatever its size." * rejected


def _largest_segment(rows: tuple[AuditRow, ...]) -> Segment | None:
    """Return the segment with the largest lower bound of |observed − predicted|.

    Only rejected searches count; None without one.
    """
    searches = [row.search for row in rows if row.search is not None and row.verdict.rejects]
    segments = [segment for search in searches for segment in search.segments]
    return max(segments, key=lambda s: (s.at_least, abs(s.difference)), default=None)


def noticeable_error(data: RowsOrTally) -> float:
    """Return the smallest error that an audit should not miss, in probability units.

    It is 0.1; for two classes it is the mean prediction, or its complement, if that is below 0.1.
    """
    if data.n_classes > 2 or data.multilabel:
        return NOTICED
    mean = means_of(data, 1)[0]
    return min(NOTICED, mean or NOTICED, 1.0 - mean or NOTICED)


def _not_rejected(
    data: RowsOrTally, row: AuditRow, tolerance: float | None
) -> tuple[AuditVerdict, str]:
    """Return (verdict, sentence) where no test rejects.

    The verdict is "calibrated" if an error of the size to be noticed would have been detected, and
    "too little data", with the number of rows that are needed, otherwise.
    """
    noticed = tolerance or noticeable_error(data)
    if row.verdict is not Finding.TOO_LITTLE_DATA:
        return AuditVerdict.CALIBRATED, (
            "No miscalibration detected. At this sample size, errors below "
            f"{_passing(row)} ({row.lens}) cannot be distinguished from noise."
        )
    needed = int(np.ceil(data.n * max(1.0, row.critical / noticed) ** 2 / 100.0)) * 100
    return AuditVerdict.TOO_LITTLE_DATA, (
        f"With {several(data.n, 'prediction')} even an error of {noticed:.2g} would not be "
        "detectable: these data can neither confirm nor refute calibration. At least "
        f"{needed} rows like these are needed."
    )


# ------------------------------------------------------------------------------
# How large an error may be, and what that means beside the largest acceptable one.


@dataclass(frozen=True)
class ErrorBounds:
    """Calibration error with its interval: each bound is wrong with probability at most ``alpha``.

    ``estimate`` is the plug-in error and ``corrected`` the debiased one, both in probability units.
    """

    estimate: float
    corrected: float
    low: float
    high: float
    alpha: float

    @classmethod
    def of(cls, data: RowsOrTally, pair: StatisticAndLens, alpha: float, draws: Run) -> ErrorBounds:
        """Compute the interval of level 1 − 2 alpha for the error of a (statistic, lens) pair."""
        statistic, lens = pair
        alpha = min(alpha, 0.25)
        interval = confidence_interval(data, None, statistic, lens=lens, level=1.0 - 2.0 * alpha,
                                    **draws)  # fmt: skip
        assert interval.low is not None
        assert interval.high is not None
        return cls(interval.estimate, interval.corrected, interval.low, interval.high, alpha)

    @classmethod
    def of_part(
        cls, data: RowsOrTally, pair: StatisticAndLens, alpha: float, draws: Run
    ) -> ErrorBounds:
        """Compute the interval for the error of a class or subgroup, also by its mean difference.

        The absolute value of mean observed − predicted is at most the error. Its lower bound and
        that of the error each have half of ``alpha``, and the larger one is taken.
        """
        whole, half = cls.of(data, pair, alpha, draws), min(alpha, 0.25) / 2.0
        try:
            signed = confidence_interval(
                data, None, MeanDifference(), lens=pair[1], level=1.0 - half, **draws
            )
        except StatisticError:  # vectors, and designs without an interval of the difference
            return whole
        assert signed.low is not None
        assert signed.high is not None
        own = cls.of(data, pair, half, draws).low
        return replace(whole, low=max(own, signed.low, -signed.high))

    def within(self, limit: float) -> bool | None:
        """Return whether the error is at most ``limit``; None where that cannot be told."""
        return False if self.low > limit else True if self.high <= limit else None

    def rows_to_tell(self, n: int, limit: float) -> int | None:
        """Return the number of rows at which the interval would be as long as ``limit``.

        These rows decide whether the error exceeds the limit, unless the truth is within about half
        of the limit from it. Lengths shrink like 1/√n, from the present n. None if the interval is
        already so short.
        """
        width = self.high - self.low
        return int(np.ceil(n * (width / limit) ** 2 / 100.0)) * 100 if width > limit > 0.0 else None

    def __str__(self) -> str:
        ends = format_range(self.low, self.high, " and ")
        return f"between {ends} ({100.0 - 200.0 * self.alpha:g} % interval)"
