"""The audit: every usual lens in one call."""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import Any, Literal, Unpack

import numpy as np

from caltest._base.checks import fraction, one_of
from caltest._base.defaults import N_TOGETHER
from caltest._base.multiplicity import holm
from caltest._base.progress import progress
from caltest.errors import DegenerateDataWarning, FewClustersWarning, StatisticError
from caltest.inference import calibration_test, joint_test
from caltest.inference.admission import ROWS, admitted, admitted_tally
from caltest.inference.dependence import warn_of_few
from caltest.predictions import Facts, Predictions
from caltest.reports.findings import Answer, row_of, worst_test
from caltest.reports.questions import Pair, Question, left_out, null_of, questions, summed
from caltest.reports.size import Bounds
from caltest.reports.verdicts import NOTICED, report_of
from caltest.results import AuditReport, AuditRow, CalibrationTestResult, Subgroups
from caltest.results.base import go_on
from caltest.results.subgroups import WORST_ALPHA
from caltest.segments import segment_search
from caltest.simulate import Workers, check_run
from caltest.tally import AnyTally, Tallies

#: The facts of rows that an audit asks with.
TAKES = ROWS | {"by", "followup", "features", "several labels a row"}


def audit(
    probs: Any,
    labels: Any = None,
    *,
    alpha: float = 0.05,
    tolerance: float | None = None,
    adjust: Literal["holm", "max-T"] = "holm",
    n_resamples: int = N_TOGETHER,
    rng: Any = None,
    workers: Workers = 1,
    **facts: Unpack[Facts],
) -> AuditReport:
    """Ask everything at once: is this classifier calibrated, through every usual lens?

    The rows: the confidence of the top class (``TopK(1)``), as a binned error and without bins
    (:class:`CoxScore`, :class:`Kuiper` and :class:`MultiScale` together: slopes, shifts, waves and
    bumps); of more than three classes the largest few (``TopK(k)``); every class against the rest,
    summarised by the worst (the class whose error is certainly the largest), of more than 1000
    those of the largest total probability; of ``ordered`` classes their cumulative probabilities
    (:class:`Cumulative`); the whole vector (``Canonical()``), as a binned error and by its log
    score (:class:`ScoreGap`), that of ordered classes their ranked probability score. For two
    classes: the probability of label 1, with and without bins, and the top prediction. With ``by``
    every subgroup, summarised by the worst. Errors are total-variation ECEs, over 15 equal-width
    bins for two-class lenses and over a :class:`VarianceTree` with cells of at least max(20, n/50)
    rows for vectors. Statistics without a meaning for the predictions (all of them 0 or 1, say) are
    left out.

    Parameters
    ----------
    probs, labels
        As in :func:`calibration_test`; ``labels`` is left out for a :class:`Predictions`. A
        :class:`Tally` of ``OneVsRest(1)`` of two classes or of ``TopK(1)`` answers what its sums
        can, and so do :class:`Tallies`; a note says what they leave out.
    alpha : float, default 0.05
        Chance of calling a calibrated model miscalibrated, over all rows together (Holm).
    tolerance : float, optional
        The largest error that can be lived with. The verdict then says whether the error of the
        first row matters, by bounds that are each wrong with a chance of at most ``alpha``, and
        whether that of another row does (at ``alpha`` over all such errors). A row that finds
        nothing says "too little data" where an error of this size (0.1 without one) would pass as
        noise, or leave no trace in more than 20 % of data sets.
    adjust : {"holm", "max-T"}, default "holm"
        By every row's own p-value, exact where there is one and the worst class times their number,
        or by the joint law of all statistics on the same label vectors (Westfall & Young 1993):
        sharper for many classes, but no p-value is then below 1 / (1 + ``n_resamples``).
    n_resamples : int, default 1999
        Replicates for the rows that have no exact null; for all rows with ``"max-T"``.
    rng, workers, **facts
        As in :func:`calibration_test`.

    Returns
    -------
    AuditReport

    Notes
    -----
    Of more than 100 000 rows without weights or clusters, what is asked without bins is asked of
    their :class:`Tally`, and a note says so: cost then no longer grows with n beyond one pass. The
    score of the whole vector has its limit law where that is as good as 1999 draws: where Σ of
    fourth moments is below 1/400 of the squared variance.

    Examples
    --------
    >>> import caltest as ct
    >>> report = ct.audit(ct.examples.digits("overfit"), rng=0)
    >>> report.verdict, report.direction
    ('miscalibrated', 'overconfident')
    """
    run = {"n_resamples": n_resamples, "rng": rng, "workers": workers}
    return audited(probs, labels, facts, alpha, tolerance, adjust, alpha, run)


def audited(
    probs: Any,
    labels: Any,
    facts: Facts,
    alpha: float,
    tolerance: float | None,
    adjust: str,
    bound_alpha: float,
    run: dict[str, Any],
) -> AuditReport:
    """Audit, with bounds of the error that are each wrong with a chance of ``bound_alpha``."""
    data = _admitted(probs, labels, facts, alpha, tolerance, adjust, run)
    tally = isinstance(probs, AnyTally)
    if left := left_out(data):
        data = replace(data, notes=(*data.notes, f"not asked, as these tallies lack it: {left}"))
    agenda, n_resamples = questions(data), run["n_resamples"]
    if len(agenda) > alpha * (1 + n_resamples):
        raise StatisticError(
            f"n_resamples={n_resamples} cannot reject anything at alpha={alpha:g}: take at least "
            f"{int(np.ceil(len(agenda) / alpha))}"
        )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DegenerateDataWarning)
        warnings.simplefilter("ignore", FewClustersWarning)
        if adjust == "holm":
            data, agenda, answers = _answers(data, agenda, run)
            adjusted = holm([pvalue for _, pvalue, _ in answers])
        else:
            answers, adjusted = _together(data, agenda, run)
        bounds = None
        if tally or (data.followup is None and not data.multilabel):
            try:
                bounds = Bounds.of(_whole(data), agenda[0].pairs[0], bound_alpha, run)
            except StatisticError as error:  # blocks of a short series are too few for an interval
                if tolerance is not None or tally or data.horizon is None:
                    raise
                data = replace(data, notes=(*data.notes, f"the error has no interval: {error}"))
    clusters = [t.clusters for tests, *_ in answers for t in tests if t.clusters is not None]
    if clusters:
        warn_of_few(clusters, 4)
    rows = tuple(
        row_of(data, question, answer, q, alpha, tolerance or NOTICED)
        for question, answer, q in zip(agenda, answers, adjusted, strict=True)
    )
    elsewhere: dict[str, Bounds] = {}
    if tolerance is not None:
        elsewhere = _elsewhere(data, agenda, answers, rows, (tolerance, alpha), run)
    return report_of(data, rows, alpha, tolerance, bounds, elsewhere)


def _admitted(
    probs: Any,
    labels: Any,
    facts: Facts,
    alpha: float,
    tolerance: float | None,
    adjust: str,
    run: dict[str, Any],
) -> Any:
    """Check all arguments, and return the rows, or what there is of them."""
    tally = isinstance(probs, AnyTally)
    data: Any = (
        admitted_tally("audit", probs, labels, facts, whole=True)
        if tally
        else admitted("audit", probs, labels, facts, takes=TAKES)
    )
    fraction("alpha", alpha)
    if tolerance is not None:
        fraction("tolerance", tolerance)
        if not tally and (data.followup is not None or data.multilabel):
            what = "several labels a row" if data.multilabel else "follow-up"
            raise StatisticError(
                f"tolerance= needs an interval of the error, which there is none of with {what}: "
                "leave it out"
            )
    one_of("adjust", adjust, ("holm", "max-T"))
    check_run(**run)
    if isinstance(data, Tallies) and data.n_classes == 2:
        data = data.through(None)
    apart = data.n_clusters is not None or data.by is not None or isinstance(data, Tallies)
    if isinstance(data, Predictions):
        apart = apart or data.folds is not None or data.features is not None
    if adjust == "max-T" and apart:
        raise StatisticError(
            "with clusters, folds, subgroups, features or several tallies no label vector is drawn "
            "for all questions together: use adjust='holm'"
        )
    return data


def _elsewhere(
    data: Predictions | AnyTally,
    agenda: list[Question],
    answers: list[Answer],
    rows: tuple[AuditRow, ...],
    limits: tuple[float, float],
    options: dict[str, Any],
) -> dict[str, Bounds]:
    """Bound the worst error of every other row that is rejected and shows more than the tolerance.

    The bounds share alpha over all errors that could have been the worst.
    """
    tolerance, alpha = limits
    errors = [
        j
        for j, row in enumerate(rows)
        if j and row.aspect in ("error", "classes", "ordered", "groups")
    ]
    share = alpha / max(sum(len(answers[j][0]) for j in errors), 1)
    enough = options | {"n_resamples": max(options["n_resamples"], int(20.0 / share))}
    bounds = {}
    for j in errors:
        if rows[j].verdict.rejects and rows[j].test.excess > tolerance:
            tests, _, parts = answers[j]
            part, worst = _whole(data), 0
            if parts is None:
                worst = worst_test(agenda[j], tests)
            else:
                assert isinstance(data, Predictions)  # a tally has no subgroups
                assert isinstance(parts, Subgroups)
                part = part.take(list(data.subgroups().values())[parts.worst])
            name = f"{rows[j].lens} {rows[j].worst}".strip()
            bounds[name] = Bounds.of(part, agenda[j].pairs[worst], share, enough)
    return bounds


def _whole(data: Predictions | AnyTally) -> Any:
    if isinstance(data, Predictions) and (data.by is not None or data.features is not None):
        return replace(data, by=None, features=None)
    return data


def _answers(
    data: Any, agenda: list[Question], options: dict[str, Any]
) -> tuple[Any, list[Question], list[Answer]]:
    """Answer all questions; where no subgroup can be tested, a note says so."""
    answered, answers = [], []
    for question in agenda:
        try:
            answers.append(_answer(data, question, options))
            answered.append(question)
        except StatisticError as error:
            if question.kind not in ("groups", "segments"):
                raise
            data = replace(data, notes=(*data.notes, str(error)))
    return data, answered, answers


def _answer(data: Predictions | AnyTally, question: Question, options: dict[str, Any]) -> Answer:
    if question.kind in ("shape", "ordered"):
        joint = joint_test(summed(_whole(data), question), pairs=question.pairs, **options)
        go_on(joint.ended)
        return list(joint.tests), joint.pvalue, None
    if question.kind == "groups":
        assert isinstance(data, Predictions)
        ((statistic, lens),) = question.pairs
        grouped = replace(data, features=None)
        groups = calibration_test(grouped, None, statistic, lens=lens, **options).subgroups
        assert groups is not None
        return groups.tested, groups.pvalue, groups
    if question.kind == "segments":
        assert isinstance(data, Predictions)
        search = segment_search(replace(data, by=None), lens=question.pairs[0][1], **options)
        go_on(search.ended)
        return [], search.pvalue, search
    null = {"null": null_of(data, question)}
    tests = _one_by_one(_whole(data), question.pairs, options | null)
    return tests, min(1.0, len(tests) * min(t.pvalue for t in tests)), None  # of Bonferroni


def _one_by_one(
    data: Predictions | AnyTally, pairs: tuple[Pair, ...], options: dict[str, Any]
) -> list[CalibrationTestResult]:
    """Test each pair by itself; only the worst keeps its null distribution, which can be large."""
    tests: list[CalibrationTestResult] = []
    worst = 0
    with progress(len(pairs), "classes") as advance:
        for j, (statistic, lens) in enumerate(pairs):
            test = calibration_test(data, None, statistic, lens=lens, **options)
            go_on(test.ended)
            tests.append(test)
            if j > 0:
                errors = [tests[k].certain_error(WORST_ALPHA / len(pairs)) for k in (worst, j)]
                worst, loser = (j, worst) if errors[1] > errors[0] else (worst, j)
                tests[loser] = replace(tests[loser], null_distribution=None)
            advance(1)
    return tests


def _together(
    data: Predictions | AnyTally, agenda: list[Question], options: dict[str, Any]
) -> tuple[list[Answer], list[float]]:
    """Test all pairs on the same draws; return the answers and the adjusted p-value of each."""
    pairs = [pair for question in agenda for pair in question.pairs]
    joint = joint_test(data, pairs=pairs, **options)
    go_on(joint.ended)
    ends = np.cumsum([len(question.pairs) for question in agenda])
    cuts = [slice(end - len(q.pairs), end) for end, q in zip(ends, agenda, strict=True)]
    tests = [list(joint.tests[c]) for c in cuts]
    pvalues = [min(1.0, len(group) * min(t.pvalue for t in group)) for group in tests]
    answers: list[Answer] = [(group, p, None) for group, p in zip(tests, pvalues, strict=True)]
    return answers, [min(joint.adjusted[c]) for c in cuts]
