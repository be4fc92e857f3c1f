"""The audit: every usual lens in one call.

:func:`audit` is the entry; questions and tests are in :mod:`caltest.reports.findings`,
verdict and sentences in :mod:`caltest.reports.conclusion`.
"""

from __future__ import annotations

import warnings
from contextlib import suppress
from dataclasses import replace
from typing import Literal, Unpack

import numpy as np

from caltest._base.arrays import N_TOGETHER, RNG, fraction, one_of, progress
from caltest.data import Facts
from caltest.data.utilities import UtilityLike
from caltest.errors import (
    DegenerateDataWarning,
    FewClustersWarning,
    StatisticError,
    UnsupportedFactError,
)
from caltest.inference import (
    calibration_test,
    individual_error,
    joint_test,
    promise,
    segment_search,
)
from caltest.inference._input import take_rows, take_tally
from caltest.inference.dependence import warn_of_few
from caltest.inference.null import holm
from caltest.inference.wrong_classes import class_errors
from caltest.nulls import Run, Workers, check_run
from caltest.reports.conclusion import ErrorBounds, noticeable_error, report_of
from caltest.reports.findings import (
    AuditQuestion,
    Judged,
    TestAnswer,
    null_of,
    questions,
    row_of,
    sums_of,
    whole_rows,
    worst_test,
)
from caltest.results import (
    AuditReport,
    AuditRow,
    CalibrationTestResult,
    IndividualErrorResult,
    PromiseResult,
    Subgroups,
    WorstClassResult,
)
from caltest.results.base import WORST_ALPHA, go_on
from caltest.statistics import UtilityCalibration
from caltest.tallies import AnyTally, RowsOrTally


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
        (Westfall & Young 1993): sharper for many classes, never below 1 / (1 + ``n_resamples``).
    n_resamples : int, default 1999
        Replicates for the rows that have no exact null; for all rows with ``"max-T"``.
    rng, workers, **facts
        As in :func:`calibration_test`.

    Returns
    -------
    AuditReport

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

    ``draws`` holds n_resamples, rng and workers. :func:`audit` and :func:`caltest.report` both call
    this; they differ in the level of the interval only.
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
            answers, adjusted = _together(data, agenda, draws, alpha)
        bounded = tolerance is not None or data.followup is None
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

    A tolerance is refused where the error has no interval: several labels a row.
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

    Return (answers, adjusted): for each question its tests with their Bonferroni p-value, and its
    p-value adjusted by the joint distribution of all statistics.
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

    ``limits`` are (tolerance, alpha). Return the bounds by the name of lens and class or subgroup.
    Alpha is shared equally by all errors that could have been the worst, because the worst one was
    chosen after looking at the data. The lower bound also rests on the mean difference.
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

    Return (data, questions, answers). A question on subgroups or segments that cannot be tested is
    dropped, and its reason becomes a note of ``data``.
    """
    answered, answers = [], []
    for question in agenda:
        try:
            answers.append(_ask_one(data, question, draws, alpha))
            answered.append(question)
        except StatisticError as error:
            if question.kind not in ("groups", "segments"):
                raise
            data = replace(data, notes=(*data.notes, str(error)))
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

    None for rows with a design for which no interval is known, such as folds or follow-up.
    """
    with suppress(UnsupportedFactError):
        return promise(
            data.rows, None, utility, level=level, n_resamples=draws["n_resamples"],
            rng=draws["rng"],
        )  # fmt: skip
    return None
