"""The audit: every usual lens in one call.

:func:`audit` is the entry; questions and tests are in :mod:`caltest.reports.findings`.
:func:`report_of` sums their rows up to a verdict and sentences; :class:`ErrorBounds` bounds the
error, and says whether it is within a tolerance.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from math import exp, inf
from typing import Literal, Unpack

import numpy as np

from caltest._base.arrays import N_TOGETHER, RNG, BoolArray, fraction, one_of, progress
from caltest._base.written import DependenceDoubt, Doubt, FollowupDoubt, explained, several
from caltest.data import Facts
from caltest.data.facts import RIGHT
from caltest.data.lenses import OneVsRest, TopK
from caltest.data.utilities import UtilityLike
from caltest.errors import (
    DegenerateDataWarning,
    FewClustersWarning,
    StatisticError,
    UnsupportedFactError,
    spelt,
)
from caltest.inference import (
    calibration_test,
    confidence_interval,
    cox_recalibration,
    individual_error,
    joint_test,
    promise,
    segment_search,
)
from caltest.inference._input import Analysis, take_rows, take_tally
from caltest.inference.dependence import warn_of_few
from caltest.inference.joint import class_errors
from caltest.inference.null import holm
from caltest.nulls import Run, Workers, check_run
from caltest.reports.findings import (
    AuditQuestion,
    Judged,
    StatisticAndLens,
    TestAnswer,
    defined,
    direction_of,
    means_of,
    null_of,
    of_other_label,
    questions,
    row_of,
    sums_of,
    whole_rows,
    worst_test,
)
from caltest.results import (
    AuditReport,
    AuditRow,
    AuditVerdict,
    CalibrationTestResult,
    CoxRecalibration,
    Finding,
    IndividualErrorResult,
    PromiseResult,
    Segment,
    Subgroups,
    WorstClassResult,
    format_range,
    format_value,
)
from caltest.results.base import WORST_ALPHA, ClusterSummary, go_on
from caltest.results.rendering import percent
from caltest.statistics import MeanDifference, UtilityCalibration
from caltest.tallies import AnyTally, RowsOrTally


@explained
def audit(
    probs: object,
    labels: object = None,
    *,
    alpha: float = 0.05,
    tolerance: float | None = None,
    costs: UtilityLike | None = None,
    adjust: Literal["holm", "max-T"] = "holm",
    n_resamples: int = N_TOGETHER,
    rng: RNG = None,
    workers: Workers = None,
    **facts: Unpack[Facts],
) -> AuditReport:
    """Ask everything at once: is this classifier calibrated, through every usual lens?

    The rows: the confidence of the top class (``TopK(1)``), as a binned error and without bins
    (:class:`CoxScore`, :class:`Kuiper` and :class:`MultiScale` together: slopes, shifts, waves and
    bumps); of more than three classes the largest few (``TopK(k)``); every class against the rest,
    summarised by the worst (the class whose error is certainly the largest), above 1000 classes the
    ones with the largest total probability; for ``ordered`` classes their cumulative probabilities
    (:class:`Cumulative`); the whole vector (``Canonical()``), as a binned error and by its log
    score (:class:`ScoreGap`), for ordered classes the ranked probability score; of up to 1000
    classes the levels of all and one slope (:class:`MulticlassCox`), with the classes that are
    wrong, in which direction, and the recalibration that is enough (:func:`worst_class`). For items
    with several outcomes (``items``) whether each is right (:class:`IndividualError`). For two
    classes: the probability of label 1, with and without bins, and the top prediction. With ``by``
    every subgroup, summarised by the worst. Errors are total-variation ECEs, over 15 equal-width
    bins for two-class lenses and over a :class:`VarianceTree` with cells of at least max(20, n/50)
    rows for vectors. Statistics without a meaning for the predictions (all of them 0 or 1, say) are
    left out.

    Parameters
    ----------
    probs, labels
        As in :func:`calibration_test`. A :class:`Tally` of ``OneVsRest(1)`` of two classes or of
        ``TopK(1)`` answers the questions that its sums allow, and so do :class:`Tallies`; a note
        lists the others.
    alpha : float, default 0.05
        Chance of calling a calibrated model miscalibrated, over all rows together (Holm).
    tolerance : float, optional
        The largest acceptable error. The verdict then says whether the error of the first row
        matters, by bounds that are each wrong with a chance of at most ``alpha``, and whether the
        error of another row does (at ``alpha`` over all such errors). A row that finds nothing says
        "too little data" where an error of this size (without one 0.1, or the mean prediction of a
        rarer event) would not be detected, or leave no trace in more than 20 % of data sets.
    costs : Utility or callable, optional
        :class:`Costs` of actions, ``Costs.threshold(t)`` or another utility. A further row asks
        whether acting on the probabilities gains what they promise (:class:`UtilityCalibration`),
        and a sentence says both (:func:`promise`). Rows only, with one outcome each.
    adjust : {"holm", "max-T"}, default "holm"
        By every row's own p-value, or by the joint law of all statistics on the same label vectors
        (Westfall & Young 1993). The second has more power for many classes; its p-values are
        never below 1 / (1 + ``n_resamples``).
    n_resamples : int, default 1999
        Replicates for the rows that have no exact null; for all rows with ``"max-T"``.
    rng, workers, **facts
        As in :func:`calibration_test`.

    Returns
    -------
    AuditReport
        The verdict with sentences that explain it, and a row for each question with its test,
        p-value, adjusted p-value and finding.

    Raises
    ------
    InvalidPredictionsError
        For rows that are no forecasts with outcomes.
    StatisticError
        For fewer resamples than ``alpha`` needs, and for "max-T" with clusters, folds, subgroups,
        features or several tallies.

    Notes
    -----
    Above 130 000 rows without weights or clusters, questions without bins are answered from their
    :class:`Tally`, and a note says so: cost then no longer grows with n beyond one pass. The score
    of the whole vector has its limit law where that is as good as 1999 draws: where Σ of fourth
    moments is below 1/400 of the squared variance.

    Examples
    --------
    >>> import caltest as ct
    >>> report = ct.audit(ct.examples.digits("overfit"), rng=0)
    >>> report.verdict, report.direction
    ('miscalibrated', 'overconfident')
    """
    draws = Run(n_resamples=n_resamples, rng=rng, workers=workers)
    return audited(probs, labels, facts, alpha, tolerance, adjust, alpha, draws, costs)


def audited(
    probs: object,
    labels: object,
    facts: Facts,
    alpha: float,
    tolerance: float | None,
    adjust: str,
    bound_alpha: float,
    draws: Run,
    costs: UtilityLike | None = None,
) -> AuditReport:
    """Run the audit, and bound its headline error by an interval of level 1 − 2 ``bound_alpha``.

    ``probs``, ``labels``, ``facts`` (the design arguments), ``alpha``, ``tolerance`` and ``adjust``
    are as in :func:`audit`, and ``draws`` holds n_resamples, rng and workers. The headline error
    belongs to the first question. :func:`audit` and :func:`caltest.report` both call this; they
    differ in the level of the interval only. A ``tolerance`` None asks for no verdict on size;
    ``costs`` is the utility of decisions, or None.
    """
    data = _admitted(probs, labels, facts, tolerance)
    fraction("alpha", alpha)
    if tolerance is not None:
        fraction("tolerance", tolerance)
    one_of("adjust", adjust, ("holm", "max-T"))
    check_run(**draws)
    facts_apart = (data.n_clusters, data.by, data.folds, data.features)
    apart = not data.drawn_together or any(fact is not None for fact in facts_apart)
    if adjust == "max-T" and apart:
        raise StatisticError(
            "with clusters, folds, subgroups, features or several tallies no label vector is drawn "
            "for all questions together: use adjust='holm'"
        )
    (agenda, lacking), n_resamples = questions(data, costs), draws["n_resamples"]
    if lacking:
        left_out = f"not asked, as these tallies lack it: {', '.join(lacking)}"
        data = replace(data, notes=(*data.notes, left_out))
    if len(agenda) > alpha * (1 + n_resamples):
        raise StatisticError(
            f"n_resamples={n_resamples} cannot reject anything at alpha={alpha:g}: take at least "
            f"{int(np.ceil(len(agenda) / alpha))}"
        )
    bounds = None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DegenerateDataWarning)
        warnings.simplefilter("ignore", FewClustersWarning)
        if adjust == "holm":
            data, agenda, answers = _answers(data, agenda, draws, alpha)
            adjusted = holm([pvalue for _, pvalue, _ in answers])
        else:
            agenda = [kept for question in agenda if (kept := defined(question, data))]
            answers, adjusted = _together(data, agenda, draws, alpha)
        bounded = tolerance is not None or data.followup is None
        if not bounded:
            tolerated = spelt("with tolerance= (--tolerance)")
            unasked = f"with follow-up, the error has an interval only on request, {tolerated}"
            data = replace(data, notes=(*data.notes, unasked))
        if not data.has_rows or (bounded and not data.multilabel):
            try:
                bounds = ErrorBounds.of(whole_rows(data), agenda[0].pairs[0], bound_alpha, draws)
            except StatisticError as error:  # blocks of a short series are too few for an interval
                if tolerance is not None or data.horizon is None:
                    raise
                data = replace(data, notes=(*data.notes, f"the error has no interval: {error}"))
    clusters = [t.clusters for tests, *_ in answers for t in tests if t.clusters is not None]
    if clusters:
        warn_of_few(clusters, 4)
    noticed = tolerance or noticeable_error(data)
    judged = Judged.of([pvalue for _, pvalue, _ in answers], adjusted, alpha)
    rows = tuple(
        row_of(data, question, answer, each, noticed)
        for question, answer, each in zip(agenda, answers, judged, strict=True)
    )
    elsewhere: dict[str, ErrorBounds] = {}
    if tolerance is not None:
        elsewhere = _elsewhere(data, agenda, answers, rows, (tolerance, alpha), draws)
    return report_of(data, rows, alpha, tolerance, bounds, elsewhere)


def _admitted(probs: object, labels: object, facts: Facts, tolerance: float | None) -> RowsOrTally:
    """Validate the arguments of an audit; return its rows as Predictions, or a Tally or Tallies.

    ``probs`` and ``labels`` are as in :func:`audit`, ``facts`` the design arguments by name. A
    tally holds sums of rows. A ``tolerance`` raises StatisticError where the error has no interval:
    several labels a row.
    """
    if isinstance(probs, AnyTally):
        tally = take_tally("audit", probs, labels, facts, whole=True)
        return tally.through(None) if tally.n_classes == 2 else tally
    data = take_rows("audit", probs, labels, facts)
    if tolerance is not None and data.multilabel:
        raise StatisticError(
            "tolerance= needs an interval of the error, which there is none of with several labels "
            "a row: leave it out"
        )
    return data


def _together(
    data: RowsOrTally, agenda: list[AuditQuestion], draws: Run, alpha: float
) -> tuple[list[TestAnswer], list[float]]:
    """Test the statistics of all questions on shared label redraws, for ``adjust="max-T"``.

    ``data`` are the rows or the tally; ``agenda`` lists the questions, each with the (statistic,
    lens) pairs that answer it; ``draws`` holds n_resamples, rng and workers, and ``alpha`` is the
    level of results that follow a question. Return (answers, adjusted): for each question (its
    tests, their Bonferroni p-value, further result or None), and its p-value adjusted by the joint
    distribution of all statistics.
    """
    joint = joint_test(
        data, pairs=[pair for question in agenda for pair in question.pairs], **draws
    )
    go_on(joint.ended)
    answers, adjusted, end = list[TestAnswer](), list[float](), 0
    for question in agenda:
        part = slice(end, end + len(question.pairs))
        tests = list(joint.tests[part])
        pvalue = min(1.0, len(tests) * min(t.pvalue for t in tests))
        adjusted.append(min(joint.adjusted[part]))
        answers.append((tests, pvalue, _beyond(data, question, pvalue, draws, alpha)))
        end = part.stop
    return answers, adjusted


def _elsewhere(
    data: RowsOrTally,
    agenda: list[AuditQuestion],
    answers: list[TestAnswer],
    rows: tuple[AuditRow, ...],
    limits: tuple[float, float],
    draws: Run,
) -> dict[str, ErrorBounds]:
    """Bound the worst error of every later question that is rejected and exceeds the tolerance.

    Return an ErrorBounds (an estimate with its lower and upper bound) by the name of lens and class
    or subgroup. ``limits`` are (tolerance, alpha). Alpha is shared equally by all errors that could
    have been the worst, because the worst one was chosen after looking at the data. The lower bound
    also rests on the mean difference. ``answers`` are the tests of the questions in ``agenda``,
    ``rows`` the rows of the audit, one for each question; ``data`` are the rows or the tally, and
    ``draws`` holds n_resamples, rng and workers.
    """
    tolerance, alpha = limits
    kinds = ("error", "classes", "ordered", "groups")
    errors = [j for j, row in enumerate(rows) if j and row.aspect in kinds]
    share = alpha / max(sum(len(answers[j][0]) for j in errors), 1)
    draws = draws | {"n_resamples": max(draws["n_resamples"], int(20.0 / share))}
    bounds = {}
    for j in errors:
        if not rows[j].verdict.rejects or rows[j].test.excess <= tolerance:
            continue
        (tests, _, parts), part, worst = answers[j], whole_rows(data), 0
        if isinstance(parts, Subgroups):
            assert data.rows is not None  # a tally has no subgroups
            whole, places = replace(data.rows, by=None, features=None), data.rows.subgroups()
            part = whole.take(list(places.values())[parts.worst])
        else:
            worst = worst_test(agenda[j], tests)
        name = f"{rows[j].lens} {rows[j].worst}".strip()
        bounds[name] = ErrorBounds.of_part(part, agenda[j].pairs[worst], share, draws)
    return bounds


def _answers(
    data: RowsOrTally, agenda: list[AuditQuestion], draws: Run, alpha: float
) -> tuple[RowsOrTally, list[AuditQuestion], list[TestAnswer]]:
    """Answer all questions of the audit one after another.

    Return (data, questions, answers), with an answer (tests, p-value, further result or None) for
    each question. A question on subgroups or segments that cannot be tested is dropped, and its
    reason becomes a note of ``data``, the rows or the tally; statistics that are not defined for
    these predictions are dropped without one. ``agenda`` lists the questions, each with the
    (statistic, lens) pairs that answer it; ``draws`` holds n_resamples, rng and workers, ``alpha``
    is the level.
    """
    answered, answers = list[AuditQuestion](), list[TestAnswer]()
    for question in agenda:
        asked = question
        try:
            answer = _ask_one(data, question, draws, alpha)
        except StatisticError as error:
            if question.kind in ("groups", "segments"):
                data = replace(data, notes=(*data.notes, str(error)))
                continue
            kept = defined(question, data)
            if kept == question:
                raise
            if kept is None:
                continue
            asked, answer = kept, _ask_one(data, kept, draws, alpha)
        answered.append(asked)
        answers.append(answer)
    return data, answered, answers


def _ask_one(data: RowsOrTally, question: AuditQuestion, draws: Run, alpha: float) -> TestAnswer:
    statistic, lens = question.pairs[0]
    if question.kind in ("shape", "ordered"):
        sums = whole_rows(data)
        if question.kind == "shape":  # the labels of very many rows would take minutes to redraw
            sums = sums_of(sums, lens)
        joint = joint_test(sums, pairs=question.pairs, **draws)
        go_on(joint.ended)
        return list(joint.tests), joint.pvalue, None
    if question.kind == "groups":
        grouped = replace(data, features=None)
        groups = calibration_test(grouped, None, statistic, lens=lens, **draws).subgroups
        assert groups is not None
        return groups.tested, groups.pvalue, groups
    if question.kind == "segments":
        search = segment_search(replace(data, by=None), lens=lens, alpha=alpha, **draws)
        go_on(search.ended)
        return [], search.pvalue, search
    tests, worst, null = list[CalibrationTestResult](), 0, null_of(data, question)
    whole = whole_rows(data)
    with progress(len(question.pairs), "classes") as advance:
        for j, (statistic, lens) in enumerate(question.pairs):
            test = calibration_test(whole, None, statistic, lens=lens, null=null, **draws)
            go_on(test.ended)
            tests.append(test)
            if j > 0:  # only the worst keeps its null distribution, which can be large
                share = WORST_ALPHA / len(question.pairs)
                beyond = tests[j].certain_error(share) > tests[worst].certain_error(share)
                worst, other = (j, worst) if beyond else (worst, j)
                tests[other] = replace(tests[other], null_distribution=None)
            advance(1)
    pvalue = min(1.0, len(tests) * min(t.pvalue for t in tests))  # of Bonferroni
    return tests, pvalue, _beyond(whole, question, pvalue, draws, alpha)


def _beyond(
    data: RowsOrTally, question: AuditQuestion, pvalue: float, draws: Run, alpha: float
) -> WorstClassResult | IndividualErrorResult | PromiseResult | None:
    """Return the result that follows a question's tests, or None.

    A rejected test of all classes is followed by the classes that are miscalibrated; items with
    several outcomes by the error of single items; costs by the promised and the realised utility.
    ``question`` has its kind and its (statistic, lens) pairs, ``pvalue`` is its p-value, ``alpha``
    the level; ``data`` are the rows or the tally, and ``draws`` holds n_resamples, rng and workers.
    """
    statistic = question.pairs[0][0]
    if question.kind == "costs" and isinstance(statistic, UtilityCalibration):
        return _promised(data, statistic.utility, 1.0 - alpha, draws)
    if question.kind == "items" and data.rows is not None:
        items = individual_error(data.rows, level=1.0 - alpha, **draws)
        go_on(items.ended)
        return items
    if question.kind != "levels" or pvalue > alpha or data.rows is None:
        return None
    classes = class_errors(data.rows, alpha, draws)
    go_on(classes.ended)
    return classes


def _promised(
    data: RowsOrTally, utility: UtilityLike, level: float, draws: Run
) -> PromiseResult | None:
    """Return the promised and the realised utility of acting on the probabilities.

    ``data`` are the rows, and ``utility`` is the gain in each row for each class that may occur.
    ``level`` is the level of the interval; ``draws`` holds n_resamples, rng and workers. None for
    rows with a design for which no interval is known, such as folds or follow-up.
    """
    with suppress(UnsupportedFactError):
        return promise(
            data.rows, None, utility, level=level, n_resamples=draws["n_resamples"],
            rng=draws["rng"],
        )  # fmt: skip
    return None


# ------------------------------------------------------------------------------
# The verdict of an audit on all its rows together, and its summary in words.


#: Directions of the top class in words.
MISPLACED = {
    "overconfident": "overconfident",
    "underconfident": "underconfident",
    "mixed": "overconfident in some ranges and underconfident in others",
}


#: Smallest error that has to be detectable where no tolerance is given.
NOTICED = 0.1


#: Verdicts that rest on independent rows and known outcomes: rejections, bounds of the error.
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

    ``data`` are the predictions or their tally. ``rows`` are the rows of the audit, one for each
    question, the headline first, tested at level ``alpha``. ``tolerance`` is the largest acceptable
    error, None without one. ``bounds`` is the interval of the headline error, None where none is
    known; ``elsewhere`` holds the intervals of other errors above the tolerance, by lens and class.
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
        summary.append(
            f"With {bounds.confidence} confidence, the true calibration error ({rows[0].lens}) is "
            f"{bounds}{beside}"
        )
    if verdict is not AuditVerdict.TOO_LITTLE_DATA:
        summary += [
            f"Too little data for {row.lens}: an error of up to {_passing(row)} would be missed."
            for row in rows
            if row.verdict is Finding.TOO_LITTLE_DATA
        ]
    if impossible.size:
        summary.append(_refuted(data))
    doubts = [note for note in data.notes if isinstance(note, Doubt)]
    sizes = _of_sizes(rows)
    doubts += sizes[:1]
    undermined = any(isinstance(note, (DependenceDoubt, FollowupDoubt)) for note in doubts)
    if undermined and verdict in DOUBTFUL and not impossible.size:
        verdict = AuditVerdict.IN_DOUBT
    summary[:0] = [f"This is in doubt: {note}." for note in doubts]
    return AuditReport(
        verdict=verdict,
        summary=tuple(summary),
        direction=direction,
        rows=rows,
        n=data.n,
        n_classes=data.n_classes,
        event_name=data.event_name,
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
        notes=tuple(_notes(data, rows, [*doubts, *sizes])),
        unsearched=_unsearched(data),
        # A column that may be a feature is searched now: that is how such a doubt is settled.
        doubted=not all(isinstance(d, DependenceDoubt) and d.perhaps for d in doubts),
        copies=data.copies,
        followup=top.test.followup,
    )


def _of_sizes(rows: Sequence[AuditRow]) -> list[Doubt]:
    """Return doubts about an audit where sizes of clusters seem to depend on outcomes.

    ``rows`` are the rows of the audit, one for each question. A doubt is a sentence on residuals
    that change with the size of the cluster. There is one for each row where they do, rejected rows
    first; [] if none of these rows is rejected.
    """
    summaries = [(row.verdict.rejects, row.test.clusters) for row in rows if row.test.clusters]
    found = [(rejects, each.size_note) for rejects, each in summaries if each.size_note]
    found.sort(key=lambda each: not each[0])
    return [DependenceDoubt(note) for _, note in found] if found and found[0][0] else []


def _of_single_items(rows: Sequence[AuditRow]) -> list[str]:
    """Return a sentence for each row that finds wrong probabilities of single items.

    It says that the scatter is no miscalibration on average, unless a row rejects that as well.
    ``rows`` are the rows of the audit.
    """
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
    """Return Cox's line of class 1 if the interval of its slope excludes 1, else None.

    It is the logistic fit of the outcome on the log-odds of the prediction, with intercept and
    slope. ``data`` are the rows or the tally, ``alpha`` is the error probability of the interval.
    None also where the line has no finite fit.
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

    ``line`` is the fit of the outcome on the log-odds, with intercept and slope; ``data`` are the
    rows or the tally. It names the prediction at which the line crosses the diagonal if at least 5
    % of the rows lie on each side of it.
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
    """Return a sentence on outcomes of ``data`` that had probability exactly 0.

    It names the first such row, says that one refutes calibration, and how to handle rounding.
    There has to be one.
    """
    impossible = data.impossible
    first, row = "", int(impossible[0])
    if data.has_rows and data.rows is not None:
        row = row if data.rows.places is None else int(data.rows.places[row])
        first = f" (the first in row {row + 1}, counted from 1)"
    wrong = ", where 0 or 1 was predicted" if data.n_classes == 2 else ""
    what = f"{several(impossible.size, 'outcome')} occurred that had probability exactly 0{wrong}"
    end, others, rounded = "0", "", ""
    if wrong and data.rows is not None:
        p = data.rows.probs[:, 1]
        if first:
            what, end = _sides(p[impossible] == 1.0, data.event_name or data.class_name(1))
        unsure = replace(data.rows, by=None, features=None).take((p > 0.0) & (p < 1.0))
        rounded = spelt(" or leave these rows out with rounded=True (--rounded)")
        if unsure.n:
            others = f" Elsewhere the model {direction_of(*means_of(unsure, 1), inf)}."
    return (
        f"{what}{first}: that alone refutes calibration, unless the probabilities were rounded to "
        f"{end}: then give them unrounded{rounded}.{others}"
    )


def _sides(certain: BoolArray, event: str) -> tuple[str, str]:
    """Return (sentence, end): which of 100 % and 0 % were predicted and contradicted.

    ``certain`` (m,) says which contradicted rows predicted 100 %, ``event`` is the event's name.
    The end, "0", "1" or "0 or 1", is what the probabilities may have been rounded to.
    """
    high, low = int(certain.sum()), int(certain.size - certain.sum())
    said = [f"100 % was predicted in {several(high, 'row')} without the event"] * (high > 0)
    said += [f"0 % was predicted in {several(low, 'row')} with the event"] * (low > 0)
    ends = ["0"] * (low > 0) + ["1"] * (high > 0)
    return f"P({event}): {' and '.join(said)}", " or ".join(ends)


def _wrong(
    data: RowsOrTally,
    rows: tuple[AuditRow, ...],
    top: AuditRow,
    alpha: float,
    means: tuple[float, float],
    event_means: tuple[float, float],
) -> tuple[str, list[str]]:
    """Return (direction, sentences) of a miscalibrated model.

    ``data`` are the rows or the tally. ``rows`` are the rows of the audit, the headline first, and
    ``top`` is the first one about the top class; ``means`` are its mean confidence and accuracy,
    and ``event_means`` mean prediction and event rate of label 1, NaN for more than two classes.
    ``alpha`` is the level. The direction is "too high", "too low", "overconfident",
    "underconfident" or "mixed", "" if none is clear.
    """
    (confidence, accuracy), (mean, rate), direction = means, event_means, ""
    called = f"P({data.event_name}):" * bool(data.event_name)
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
            sentences.append(f"{called or 'The model'} {direction_of(mean, rate)}.")
        elif event is not None:
            both = f"predicts {percent(mean, rate)} on average, observed {percent(rate, mean)}"
            some = "too high in some ranges and too low in others"
            sentences.append(f"{called or 'Predictions are'} {some} ({both}).")
    if direction in MISPLACED:
        sentences.append(
            f"The model is {MISPLACED[direction]}: it claims {percent(confidence, accuracy)} on "
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
            f"The error ({main.lens}) is {main.test.shown_estimate}; a calibrated model would show "
            f"{main.test.shown_floor} (noise floor)."
        )
    score = next((row for row in rows if row.verdict.rejects and row.aspect == "score"), None)
    if not direction and score is not None:
        direction = "overconfident" if score.test.excess > 0 else "underconfident"
    return direction, sentences


def _passing(row: AuditRow) -> str:
    """Return, as printed, the largest error of a row that noise could explain.

    It is the critical value of the row's test. It is text, in the unit of the row.
    """
    return format_value(row.critical, row.test.null_std)


def _notes(data: RowsOrTally, rows: tuple[AuditRow, ...], doubts: Sequence[Doubt]) -> list[str]:
    """Return the notes below an audit, each with the lenses that it is about unless with all.

    ``data`` are the rows or the tally, with their notes, and ``rows`` the rows of the audit, one
    for each question; ``doubts`` are left out, as its summary speaks of them.
    """
    lenses = [row.lens if row.aspect in ("classes", "ordered") else row.test.lens for row in rows]
    lenses_of: dict[str, dict[str, None]] = {}
    said = {
        *data.notes,
        *doubts,
        *(row.test.clusters.notes[0] for row in rows if row.test.clusters),
    }
    for lens, row in zip(lenses, rows, strict=True):
        for note in row.test.notes:
            if note not in row.detail and note not in said:
                lenses_of.setdefault(note, {})[lens] = None
    everywhere = len(set(lenses))
    notes = [note for note in data.notes if not isinstance(note, Doubt)]
    notes += _dependence_notes(dict(zip(lenses, (row.test.clusters for row in rows), strict=True)))
    for note, at in lenses_of.items():
        notes.append(note if len(at) == everywhere else f"{', '.join(at)}: {note}")
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


def _dependence_notes(clusters: dict[str, ClusterSummary | None]) -> list[str]:
    """Return one note with the dependence λ within clusters that each lens allows for, or [].

    ``clusters`` has the summaries by lens; the clusters themselves are described once.
    """
    found = {lens: each for lens, each in clusters.items() if each is not None}
    if not found:
        return []
    (first, summary), *others = found.items()
    if summary.beside is None and not summary.of_items:
        limits = "; ".join(f"{lens} {each.largest_dependence}" for lens, each in found.items())
        steps = ", at its upper 95 % limit in steps of 0.1 (below 0.1: 0 is used)"
        steps *= summary.estimated
        return [
            "noise floors and p-values allow for dependence within clusters "
            f"({summary.in_sizes}) by λ, the chance that the labels of two rows are one draw in "
            f"place of two{steps}: {limits}"
        ]
    more = [
        f"{lens}: {each.dependence_in_words}"
        for lens, each in others
        if each.dependence_in_words != summary.dependence_in_words
    ]
    said = "; ".join([f"{first}: {summary}", *more])
    return [f"noise floors and p-values allow for dependence within clusters. {said}"]


def _unsearched(data: RowsOrTally) -> tuple[str, ...]:
    """Return the names of unused columns that a segment search could take as features.

    It is () if there are none, with features or subgroups, and for a tally, which has no rows.
    ``data`` are the rows or the tally.
    """
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

    The interval of the headline error, ``bounds``, decides, unless a segment, a class or a subgroup
    certainly or possibly exceeds the tolerance. ``elsewhere`` has the intervals of classes and
    subgroups by name; ``rows`` (one for each question) have the segments. ``n`` is the number of
    observations, from which it is computed how many would decide.
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
        return verdict, (
            f". The error of {name} {beyond} {limit}: it is {worst} ({worst.confidence} interval)."
        )
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
    undecided = f". Inconclusive: it may be above or below {limit}."
    if needed is not None:
        undecided += (
            f" About {needed} observations should decide, unless the true error is close to "
            f"{tolerance:g}."
        )
    return AuditVerdict.CANNOT_TELL, undecided + " The error is not sampling noise." * rejected


def _largest_segment(rows: tuple[AuditRow, ...]) -> Segment | None:
    """Return the segment with the largest lower bound of |observed − predicted|.

    Only rejected searches count; None without one. ``rows`` are the rows of the audit.
    """
    searches = [row.search for row in rows if row.search is not None and row.verdict.rejects]
    segments = [segment for search in searches for segment in search.segments]
    return max(segments, key=lambda s: (s.at_least, abs(s.difference)), default=None)


def noticeable_error(data: RowsOrTally) -> float:
    """Return the smallest error that an audit should not miss, in probability units.

    It is 0.1; for ``data`` of two classes it is the mean prediction, or its complement, if that is
    below 0.1.
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
    "too little data", with the number of rows that are needed, otherwise. ``row`` is the first row
    of the audit, with its finding and the largest error that noise explains. The size to be noticed
    is the ``tolerance`` or, where that is None, depends on ``data`` (:func:`noticeable_error`).
    """
    noticed = tolerance or noticeable_error(data)
    if row.verdict is not Finding.TOO_LITTLE_DATA:
        return AuditVerdict.CALIBRATED, (
            "No miscalibration detected. At this sample size an observed error "
            f"({row.lens}) of up to {_passing(row)} is compatible with calibration."
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

    ``estimate`` is the plug-in error and ``corrected`` the debiased one; ``low`` and ``high`` are
    the bounds. All are in probability units.
    """

    estimate: float
    corrected: float
    low: float
    high: float
    alpha: float

    @classmethod
    def of(cls, data: RowsOrTally, pair: StatisticAndLens, alpha: float, draws: Run) -> ErrorBounds:
        """Compute the interval of level 1 − 2 alpha for the error of a (statistic, lens) pair.

        ``data`` are the rows or the tally; ``draws`` holds n_resamples, rng and workers. The result
        has the plug-in error, the debiased one and both bounds. An ``alpha`` above 0.25 counts as
        0.25.
        """
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

        ``data`` are the rows of the part, ``pair`` is (statistic, lens). The absolute value of mean
        observed − predicted is at most the error. Its lower bound and that of the error each have
        half of ``alpha``, and the larger one is taken. ``draws`` holds n_resamples, rng and
        workers. The result has the plug-in error, the debiased one and both bounds.
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
        """Return True if this error is at most ``limit``, False if it is above, by the bounds.

        None where that cannot be told, because the limit lies between them.
        """
        return False if self.low > limit else True if self.high <= limit else None

    def rows_to_tell(self, n: int, limit: float) -> int | None:
        """Return the number of rows at which the interval would be as long as ``limit``.

        These rows decide whether the error exceeds the limit, unless the truth is within about half
        of the limit from it. Lengths shrink like 1/√n, from the present n. None if the interval is
        already so short.
        """
        width = self.high - self.low
        return int(np.ceil(n * (width / limit) ** 2 / 100.0)) * 100 if width > limit > 0.0 else None

    @property
    def confidence(self) -> str:
        """Confidence level of the interval, as text."""
        return f"{100.0 - 200.0 * self.alpha:g} %"

    def __str__(self) -> str:
        return f"between {format_range(self.low, self.high, ' and ')}"
