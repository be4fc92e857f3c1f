"""Questions of an audit, their tests and findings.

:func:`questions` lists the questions, and :func:`row_of` judges one of them by its adjusted
p-value; :mod:`caltest.reports.audit` sums all up to a verdict.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, fields, replace
from math import inf
from typing import Literal
from weakref import WeakKeyDictionary

import numpy as np

from caltest.data import Predictions
from caltest.data.binning import UniformBins, VarianceTree
from caltest.data.facts import RIGHT
from caltest.data.lenses import Canonical, Cumulative, Lens, OneVsRest, Subject, TopK
from caltest.data.utilities import UtilityLike
from caltest.errors import StatisticError
from caltest.inference._input import ROWS_FOR_SUMS, Analysis, rows_where_needed
from caltest.inference.null import holm
from caltest.nulls.laws import SimulatedNull
from caltest.results import (
    AuditRow,
    CalibrationTestResult,
    Finding,
    IndividualErrorResult,
    PromiseResult,
    Result,
    SegmentSearch,
    Subgroups,
    WorstClassResult,
    format_p,
)
from caltest.results.base import WORST_PRINTED, worst_of
from caltest.results.rendering import in_sd, p_is, percent
from caltest.statistics import (
    ECE,
    CoxScore,
    IndividualError,
    Kuiper,
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

#: Questions of several rows, each understood without the row above it. The second belongs to
#: statistics without bins.
CONFIDENCE_RIGHT = "confidence = accuracy?"
OFF_ANYWHERE = "too high or low anywhere?"


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

    ``lens`` is the name printed in the table, and ``words`` the question as printed. ``kind``
    selects the test and the wording: "error" (a binned error), "classes" or "ordered" (binned
    errors of all classes or of cumulative probabilities), "shape" (without bins), "score",
    "levels", "items", "costs", "groups" or "segments".
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
        ``kind`` selects the test and the wording, such as "error"; ``statistics`` are tested
        together through ``lens``.
        """
        pairs = tuple((statistic, lens) for statistic in statistics)
        return cls(f"{lens!r}{suffix}", words, kind, pairs)

    @property
    def subject(self) -> Subject:
        """Kind of probabilities that this question is about.

        It is "event" (one probability of two), "top" (the confidence), "ranks" (the largest few),
        "classes" (each class in turn) or "vector" (all together).
        """
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

    It is the null distribution for the test of ``question``, a kind of test with its statistic and
    lens, on ``data``, the rows or a tally. Many rows are more than 50 000. For the log score the
    limit is normal, judged by its fourth moments; for the joint Cox test it is χ², judged by the
    smallest Σ p (1 − p) of a class.
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
    """Return a tally of the rows if there are more than 133 333, unweighted and independent.

    Otherwise the data are returned unchanged. A tally holds sums over fine bins of the predictions
    behind the ``lens``. It is kept for as long as the predictions live, because several questions
    use it.
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
    """Return (questions, left out): the questions of an audit, and the names of those left out.

    An AuditQuestion has its words, its kind and the (statistic, lens) pairs that answer it. The
    headline question comes first. The number depends on the classes, on subgroups, features, items
    and ``costs``, a utility or None; a question is left out if ``data`` are a tally that cannot
    answer it. Whether every statistic is defined is left to :func:`defined`, which takes as long as
    preparing it for a test.
    """
    agenda = _agenda(data)
    headline = agenda[0]
    if not data.multilabel:  # there every label is a subgroup already
        if data.by is not None:
            name, words = f"{headline.lens} by subgroup", "is each subgroup right?"
            agenda.append(replace(headline, lens=name, words=words, kind="groups"))
        if data.features is not None:
            name, words = f"{headline.lens} segments", "is each segment right?"
            agenda.append(replace(headline, lens=name, words=words, kind="segments"))
    if isinstance(data, Predictions) and data.items is not None and data.folds is None:
        # One test of the average cannot tell whether every item is right
        words, statistic = "is each item right?", IndividualError()
        agenda.append(AuditQuestion.of(Canonical(), "items", words, statistic, suffix=" items"))
    if costs is not None:
        agenda.append(_in_users_units(data, costs))
    asked = [question for question in agenda if _answerable(data, question)]
    return asked, [each.lens for each in agenda if each not in asked]


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
    """Return the questions of an audit about all rows together, the headline first.

    Each has its words, its kind and the (statistic, lens) pairs that answer it. ``data`` are the
    rows or a tally, whose classes decide which there are.
    """
    n_rows = data.n if data.rows is None else data.rows.n  # that whole vectors are asked of
    binary, vector = ECE(UniformBins(15)), ECE(VarianceTree(max(20, n_rows // 50)))
    # A slope, a shift, and waves or bumps of any width: what bins of one width may miss
    binless = CoxScore(), Kuiper(), MultiScale()
    of = AuditQuestion.of
    top = of(TopK(1), "error", CONFIDENCE_RIGHT, binary)
    top_binless = of(TopK(1), "shape", OFF_ANYWHERE, *binless, suffix=" no bins")
    if data.drawn_together and data.lenses == (TopK(1),):
        return [top, top_binless]  # also of two classes
    event = OneVsRest(1)
    if data.multilabel:
        error = of(event, "groups", "is every label right?", binary)
        score = of(event, "groups", OFF_ANYWHERE, CoxScore())
        return [replace(error, lens="ECE by label"), replace(score, lens="CoxScore by label")]
    if data.n_classes == 2:
        asserted = data.classes == RIGHT  # the confidence itself, which may be below ½
        name = data.class_name(1)
        words = "is the probability right?" if name == "1" else f"is P({name}) right?"
        words = CONFIDENCE_RIGHT if asserted else words
        tops = [] if asserted or data.followup is not None else [top]
        shape = of(event, "shape", OFF_ANYWHERE, *binless, suffix=" no bins")
        return [of(event, "error", words, binary), shape, *tops]
    name, words, chosen = f"OneVsRest(0…{data.n_classes - 1})", "is each class right?", None
    if data.n_classes > MOST_CLASSES and isinstance(data, Predictions):
        # Looking at predictions only keeps every test valid.
        chosen = np.sort(np.argsort(-data.probs.sum(axis=0), kind="stable")[:MOST_CLASSES])
        words = f"are the {MOST_CLASSES} likeliest classes right?"
    numbers = range(data.n_classes) if chosen is None else chosen.tolist()
    called = [(c, data.class_name(c)) for c in numbers]
    events = [OneVsRest(c if name == str(c) else name) for c, name in called]
    every = AuditQuestion(name, words, "classes", tuple((binary, event) for event in events))
    whole = of(Canonical(), "error", "all classes right together?", vector)
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
    ranks = [of(TopK(k), "error", f"are the {k} likeliest right?", vector)] if k > 1 else []
    return [top, top_binless, *ranks, every, *cuts, whole, sure, *every_class]


def _in_users_units(data: RowsOrTally, costs: UtilityLike) -> AuditQuestion:
    """Return the question whether acting on the probabilities gains the utility they promise.

    It has its words and the (statistic, lens) pair that answers it. ``costs`` is the utility of the
    actions. StatisticError for data that do not keep utilities, such as tallies.
    """
    rows = data.rows
    if rows is None or not data.has_rows or rows.followup is not None or rows.multilabel:
        raise StatisticError(
            "costs= needs rows with one outcome each: a tally does not keep utilities, and neither "
            "follow-up nor several labels a row have them"
        )
    words, statistic = "is promised utility gained?", UtilityCalibration(costs)
    return AuditQuestion.of(Canonical(), "costs", words, statistic, suffix=" costs")


def defined(question: AuditQuestion, data: RowsOrTally) -> AuditQuestion | None:
    """Return the question without statistics that these predictions leave undefined.

    ``question`` has the (statistic, lens) pairs that answer it; ``data`` are the rows or the tally.
    An undefined statistic is, for example, the slope if all predictions are 0 or 1. None if no
    statistic is left.
    """
    if question.kind not in ("shape", "score", "levels", "items", "costs"):
        return question  # an error always has a meaning
    sums = sums_of(data, question.pairs[0][1]) if question.kind == "shape" else data
    pairs = list[StatisticAndLens]()
    for statistic, lens in question.pairs:
        with suppress(StatisticError):
            source = rows_where_needed(sums, [(statistic, lens)])
            prepare(statistic, Analysis.through(lens, source).problem)
            pairs.append((statistic, lens))
    return replace(question, pairs=tuple(pairs)) if pairs else None


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


#: Scores in words, by their name in a statistic.
SCORES = {"log": "log score", "brier": "Brier score", "rps": "ranked probability score"}


#: What tests without bins look for.
LOOKS_FOR = {
    "CoxScore": " (shift or slope of the log-odds)",
    "Kuiper": " (error summed over a range of predictions)",
    "MultiScale": " (errors in ranges of any width)",
}


#: Standard errors from which on lower predictions of events than of others are no chance.
WRONG_ORDER = 5.0


@dataclass(frozen=True)
class Judged:
    """Result of a multiplicity adjustment for one question of an audit.

    ``adjusted`` is its adjusted p-value, ``alpha`` the level, ``questions`` the number of
    questions, and ``steps`` the factor of Holm's method for this one. A part, such as a subgroup,
    whose p-value within the question is p, has the adjusted p-value max(adjusted, steps p). The
    row, the table of its parts and the sentence about them therefore agree.
    """

    adjusted: float
    steps: int
    alpha: float
    questions: int

    @classmethod
    def of(cls, pvalues: Sequence[float], adjusted: Sequence[float], alpha: float) -> list[Judged]:
        """Build one Judged for each question.

        ``pvalues`` are the raw p-values of the questions, ``adjusted`` the adjusted ones, and
        ``alpha`` is the level. A Judged has the adjusted p-value, the factor of Holm's method for
        the parts of the question, the level, and the number of questions.
        """
        count = len(pvalues)
        ranks = np.argsort(np.argsort(pvalues, kind="stable"))
        steps = (count - ranks).tolist()
        return [cls(q, m, alpha, count) for q, m in zip(adjusted, steps, strict=True)]

    @property
    def rejected(self) -> bool:
        """True if this question is rejected: its adjusted p-value is at most the level."""
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

    ``data`` are the rows or the tally; ``question`` has its words, kind and (statistic, lens)
    pairs; ``answer`` is (tests, p-value, further result or None); ``judged`` has its adjusted
    p-value, the level, and the factor for its parts; ``noticed`` is the smallest error that should
    not be missed, in probability units. The AuditRow has the test that is shown, the p-values and
    the finding.
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
            detail = f"By class ({question.lens}, p adjusted for all classes): {parts.finding}"
    elif isinstance(parts, IndividualErrorResult):
        worst_part, detail = "", f"Item by item: {parts.finding}"
    elif isinstance(parts, PromiseResult):
        words = " ".join(parts._in_words()[:2])  # the rest is on clusters
        worst_part, detail = "", f"In your units, {words[0].lower()}{words[1:]}"
    elif parts is not None:
        worst_part = parts.names[parts.worst]
        groups = _judged(data, question.pairs[0][1], parts, judged, noticed)
        detail = _of_subgroups(groups, judged)
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

    It is the test with the largest lower bound of its error. Statistics without bins (``question``
    of the kind "shape") have no common unit: there it is the one with the smallest p-value, and
    among equal p-values the largest z-score. ``tests`` are the results, one for each (statistic,
    lens) pair of the question.
    """
    if question.kind == "shape":
        z = [test.excess / (test.null_std or inf) for test in tests]
        return min(range(len(tests)), key=lambda j: (tests[j].pvalue, -z[j]))
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
    """Return a search through segments as a test: |observed − predicted| of its worst segment.

    ``search`` has the segments. The p-value of the test belongs to the search of all segments, and
    the null distribution has mean 0 and the standard deviation of the difference.
    """
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

    ``search`` has the segments; where none was found they say how large a difference would have
    been detected. ``judged`` has the adjusted p-value of the question, the level, and the factor
    for parts.
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

    ``data`` are the rows with their subgroups, seen through ``lens``. p-values of ``parts``, the
    results of the subgroups, become p-values adjusted for all questions of the audit: ``judged``
    has the adjusted p-value of their question and its factor. ``noticed`` is the smallest error
    that should not be missed, in probability units.
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


def _of_subgroups(parts: Subgroups, judged: Judged) -> str:
    """Return sentences on subgroups: the rejected ones with errors and p-values, and the worst.

    The test that all have the same miscalibration follows where it was made. ``parts`` has the
    tests of all subgroups, ``judged`` the level.
    """
    wrong = {}
    for j, (name, test, p) in enumerate(zip(parts.names, parts.tests, parts.adjusted, strict=True)):
        means, finding = (parts.predicted[j], parts.observed[j]), parts.findings[j]
        if finding is not None and finding.rejects and p is not None:
            called = " ".join([name, *_sides(*means, test.estimate)])
            wrong[name] = (
                f"{called}: error {test.shown_estimate}, noise floor {test.shown_floor}, "
                f"{p_is(format_p(p, floor=test.at_floor))}"
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
        f"{p_is(p)} ({direction_of(*means, inf)})"
    )
    sentences = [
        f"Subgroups: {on_their_own(len(wrong), len(parts.tested))}{listed}; "
        f"the worst is {worst}{error * (worst not in wrong)}."
    ]
    if parts.alike_pvalue is not None:
        differ = "It is not shown that subgroups differ in miscalibration"
        if parts.alike_pvalue <= judged.alpha:
            differ = "Subgroups differ in miscalibration"
        sentences.append(f"{differ} ({p_is(parts.alike_pvalue)}).")
    return " ".join([*sentences, *(f"{note[0].upper()}{note[1:]}." for note in parts.remarks)])


def _number_wrong(tests: Tests, judged: Judged) -> int:
    """Return how many tests of a question reject by themselves, adjusted for all questions.

    ``judged`` holds the adjusted p-value of the question, the factor for its parts, and the level.
    """
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
            means = means_of(data, lens.c)
            both = "too low in some ranges and too high in others: "
            both *= not _sides(*means, test.estimate)
            side = f" ({both}{direction_of(*means, test.estimate)})"
        return (
            f"{what}: {on_their_own(wrong, len(tests))}; the worst is "
            f"{which}, error {test.shown_estimate}, noise floor {test.shown_floor}{side}."
        )
    if question.kind == "shape":
        names = [type(statistic).__name__ for statistic, _ in question.pairs]
        parts = [
            f"{name}{LOOKS_FOR.get(name, '')} {t.shown_estimate} "
            f"(noise floor {t.shown_floor}, {p_is(t.shown_p)})"
            for t, name in zip(tests, names, strict=True)
        ]
        shared = set(tests[0].notes).intersection(*(t.notes for t in tests))
        notes = dict.fromkeys(n for t in tests for n in t.notes if n not in shared)
        said = [f"Without bins: {'; '.join(parts)}.", *(f"Note: {n}." for n in notes)]
        return " ".join(said)
    if question.kind == "score" and judged.rejected:
        sure, than = ("over", "worse") if test.excess > 0 else ("under", "better")
        score = SCORES.get(getattr(question.pairs[0][0], "score", ""), "score")
        return (
            f"Over all class probabilities the model is {sure}confident: its mean {score} is "
            f"{in_sd(abs(test.excess), test.null_std).replace('+', '')} {than} than expected if it "
            "were calibrated."
        )
    if isinstance(data, Predictions) and data.n_classes == 2 and isinstance(lens, TopK):
        p, name = data.probs[:, 1], data.class_name(1)
        called = "prediction" if name == "1" else f"P({name})"
        if p.max() <= 0.5 or p.min() >= 0.5:
            side = "exceeds" if p.max() <= 0.5 else "is below"
            return f"{lens!r} asks the same as {OneVsRest(1)!r} here: no {called} {side} 0.5."
    if question.kind == "error" and _is_low(test, judged):
        return (
            f"{question.lens}: the error {test.shown_estimate} is further below the noise "
            f"floor ({test.shown_floor}) than chance explains (P ≤ "
            f"{judged.alpha / judged.questions:.2g} for so small an error), as if the model, or a "
            "recalibration, was fitted on these rows. The p-values are for errors that are too "
            "large."
        )
    return ""


def _is_low(test: CalibrationTestResult, judged: Judged) -> bool:
    """Return whether the error of a test is below its noise floor by more than chance.

    It is if P(T ≤ error) under calibration is at most alpha / questions (Bonferroni). ``test`` has
    the error and the law of T, ``judged`` the level and the number of questions.
    """
    law, most = test.null_distribution, judged.alpha / judged.questions
    if isinstance(law, SimulatedNull):
        return bool(1 + np.sum(law.values <= test.estimate) <= most * (law.values.size + 1))
    return law is not None and test.estimate < law.ppf(most)


def of_other_label(data: RowsOrTally) -> str:
    """Return a warning, a sentence, if the predictions seem to be of the other label; else "".

    The sign is that events have much lower predictions than non-events. ``data`` are the rows; ""
    for a tally and more than two classes.
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
    unnamed = data.classes is None and data.event_name
    other = f"not {data.event_name}" if unnamed else data.class_name(0)
    return (
        f"Where {data.class_phrase(1)} was observed, its predictions are lower "
        f"({percent(low.mean(), high.mean())} on average) than elsewhere "
        f"({percent(high.mean(), low.mean())}): are they the probability of {other}? Then give "
        "1 − p."
    )


def on_their_own(wrong: int, tested: int, noun: str = "") -> str:
    """Return a phrase such as "2 of 10 classes are miscalibrated by their adjusted p".

    ``wrong`` is 2, ``tested`` 10 and ``noun`` "classes" there; "" for no noun.
    """
    verb, whose = ("is", "its") if wrong == 1 else ("are", "their")
    of = f"{wrong} of {tested}{f' {noun}' * bool(noun)}"
    return f"{of} {verb} miscalibrated by {whose} adjusted p"


def direction_of(predicted: float, observed: float, error: float = 0.0) -> str:
    """Return the phrase "predicts 5.5 % on average, observed 3.1 %: too high".

    ``predicted`` and ``observed`` are means in [0, 1]. The side is added only if they differ by at
    least half of ``error``.
    """
    means = f"{percent(predicted, observed)} on average, observed {percent(observed, predicted)}"
    return ": ".join([f"predicts {means}", *_sides(predicted, observed, error)])


def _sides(predicted: float, observed: float, error: float) -> list[str]:
    """Return ["too high"] or ["too low"], on a mean prediction beside an observed rate, or [].

    ``predicted`` and ``observed`` are in [0, 1]; it is [] if they differ by less than half of
    ``error``.
    """
    side = "too high" if predicted > observed else "too low"
    return [side] * (abs(predicted - observed) >= 0.5 * error)


def means_of(data: RowsOrTally, c: int | str) -> tuple[float, float]:
    """Return (mean prediction, observed frequency) of a class, weighted where rows are weighted.

    ``data`` are the rows or a tally, ``c`` is the number or name of the class.
    """
    return Analysis.through(OneVsRest(c), data).problem.means()
