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
from caltest.battery.questions import Pair, Question, questions
from caltest.battery.report import rank, report_of, row_of
from caltest.errors import DegenerateDataWarning, FewClustersWarning, StatisticError
from caltest.inference import calibration_test, joint_test
from caltest.inference.dependence import warn_of_few
from caltest.inference.entry import admitted, admitted_tally
from caltest.predictions import Facts, Predictions
from caltest.results import AuditReport, CalibrationTestResult
from caltest.results.base import go_on
from caltest.simulate import Workers, check_run
from caltest.tally import Tally


def audit(
    probs: Any,
    labels: Any = None,
    *,
    alpha: float = 0.05,
    tolerance: float = 0.1,
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
    summarised by the worst; the whole vector (``Canonical()``), as a binned error and by its log
    score (:class:`ScoreGap`). For two classes: the probability of label 1, with and without bins,
    and the top prediction. With ``by`` every subgroup, summarised by the worst. Errors are
    total-variation ECEs, over 15 equal-width bins for two-class lenses and over a
    :class:`VarianceTree` with cells of at least max(20, n/50) rows for vectors. Statistics without
    a meaning for the predictions (all of them 0 or 1, say) are left out.

    Parameters
    ----------
    probs, labels
        As in :func:`calibration_test`; ``labels`` is left out for a :class:`Predictions`. A
        :class:`Tally` of ``OneVsRest(1)`` of two classes or of ``TopK(1)`` answers what its sums
        can.
    alpha : float, default 0.05
        Chance of calling a calibrated model miscalibrated, over all rows together (Holm).
    tolerance : float, default 0.1
        The size of error that has to be noticed. A row that finds nothing says "too little data"
        when the 1 − ``alpha`` point of its null distribution lies above it, or a shift by it would
        leave no trace in more than 20 % of data sets (fewer than 16 rows for 0.1).
    adjust : {"holm", "max-T"}, default "holm"
        Holm's method takes every row's own p-value, exact where there is one, and the worst class
        times their number. ``"max-T"`` adjusts by the joint law of all statistics on the same label
        vectors (Westfall & Young 1993): sharper when there are many classes, but no p-value is then
        below 1 / (1 + ``n_resamples``).
    n_resamples : int, default 1999
        Replicates for the rows that have no exact null; for all rows with ``"max-T"``.
    rng, workers, **facts
        As in :func:`calibration_test`.

    Returns
    -------
    AuditReport

    Examples
    --------
    >>> import caltest as ct
    >>> report = ct.audit(ct.examples.digits("overfit"), rng=0)
    >>> report.verdict, report.direction
    ('miscalibrated', 'overconfident')
    """
    tally = isinstance(probs, Tally)
    data: Any = (
        admitted_tally("audit", probs, labels, facts)
        if tally
        else admitted("audit", probs, labels, facts, takes={"clusters", "by", "weights"})
    )
    fraction("alpha", alpha)
    fraction("tolerance", tolerance)
    one_of("adjust", adjust, ("holm", "max-T"))
    check_run(n_resamples, rng, workers)
    if adjust == "max-T" and not tally and (data.n_clusters is not None or data.subgroups()):
        raise StatisticError(
            "with clusters or subgroups no label vector is drawn for all questions together: use "
            "adjust='holm'"
        )
    asked = questions(data)
    if len(asked) > alpha * (1 + n_resamples):
        raise StatisticError(
            f"n_resamples={n_resamples} cannot reject anything at alpha={alpha:g}: take at least "
            f"{int(np.ceil(len(asked) / alpha))}"
        )
    options = {"n_resamples": n_resamples, "rng": rng, "workers": workers}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DegenerateDataWarning)
        warnings.simplefilter("ignore", FewClustersWarning)
        if adjust == "holm":
            answers = [_answer(data, question, options) for question in asked]
            adjusted = holm([pvalue for _, pvalue in answers])
        else:
            answers, adjusted = _together(data, asked, options)
    found = [test.clusters for tests, _ in answers for test in tests if test.clusters is not None]
    if found:
        warn_of_few(found, 4)
    rows = tuple(
        row_of(data, question, tests, p, q, alpha, tolerance)
        for question, (tests, p), q in zip(asked, answers, adjusted, strict=True)
    )
    return report_of(data, rows, alpha, tolerance)


def _whole(data: Predictions | Tally) -> Any:
    return data if isinstance(data, Tally) else replace(data, by=None)


#: The tests of a question, and their p-value together.
Answer = tuple[list[CalibrationTestResult], float]


def _answer(data: Predictions | Tally, question: Question, options: dict[str, Any]) -> Answer:
    if question.kind == "shape":
        joint = joint_test(_whole(data), None, question.pairs, **options)
        go_on(joint.ended)
        return list(joint.tests), joint.pvalue
    if question.kind == "groups":
        ((statistic, lens),) = question.pairs
        found = calibration_test(data, None, statistic, lens=lens, **options).subgroups
        assert found is not None
        return list(found.tests), found.pvalue
    tests = _one_by_one(_whole(data), question.pairs, options)
    return tests, min(1.0, len(tests) * min(t.pvalue for t in tests))  # of Bonferroni


def _one_by_one(
    data: Predictions | Tally, pairs: tuple[Pair, ...], options: dict[str, Any]
) -> list[CalibrationTestResult]:
    """Test each pair by itself; only the worst keeps its null distribution, which can be large."""
    tests: list[CalibrationTestResult] = []
    worst = 0
    with progress(len(pairs), "classes") as advance:
        for j, (statistic, lens) in enumerate(pairs):
            test = calibration_test(data, None, statistic, lens=lens, **options)
            go_on(test.ended)
            tests.append(test)
            loser = worst if rank(test) < rank(tests[worst]) else j
            if j > 0:
                tests[loser] = replace(tests[loser], null_distribution=None)
                worst = j if loser == worst else worst
            advance(1)
    return tests


def _together(
    data: Predictions | Tally, asked: list[Question], options: dict[str, Any]
) -> tuple[list[Answer], list[float]]:
    """Test all pairs on the same draws; return the answers and the adjusted p-value of each."""
    pairs = [pair for question in asked for pair in question.pairs]
    joint = joint_test(data, None, pairs, **options)
    go_on(joint.ended)
    ends = np.cumsum([len(question.pairs) for question in asked])
    cuts = [slice(end - len(q.pairs), end) for end, q in zip(ends, asked, strict=True)]
    tests = [list(joint.tests[c]) for c in cuts]
    own = [min(1.0, len(group) * min(t.pvalue for t in group)) for group in tests]
    return list(zip(tests, own, strict=True)), [min(joint.adjusted[c]) for c in cuts]
