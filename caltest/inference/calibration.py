"""The verb that tests one aspect of calibration."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import replace
from typing import Unpack

import numpy as np

from caltest._base.arrays import RNG
from caltest._base.checks import one_of
from caltest._base.defaults import N_RESAMPLES
from caltest._base.progress import progress
from caltest._base.written import name_of
from caltest.errors import DegenerateDataWarning, StatisticError
from caltest.inference.admission import ROWS
from caltest.inference.analysis import Analysis
from caltest.inference.pvalues import Null, null_distribution, result_of
from caltest.inference.subgroups import alike, each_subgroup, of_worst, on_shared_labels
from caltest.lenses import LensLike
from caltest.nulls import ExactNull
from caltest.predictions import Facts, Predictions
from caltest.results import CalibrationTestResult
from caltest.results.base import go_on
from caltest.simulate import (
    OneRowPerCluster,
    PopulationWeights,
    RedrawLabels,
    Run,
    SharedRedraws,
    WildSigns,
    Workers,
    check_run,
)
from caltest.statistics import ECE, EValue, StatisticLike


def calibration_test(
    probs: object,
    labels: object = None,
    statistic: StatisticLike = ECE(),
    *,
    lens: LensLike | None = None,
    null: Null = "auto",
    n_resamples: int = N_RESAMPLES,
    early_stop: bool = False,
    rng: RNG = None,
    workers: Workers = 1,
    **facts: Unpack[Facts],
) -> CalibrationTestResult:
    """Test whether predictions are calibrated, through a lens and by a statistic.

    The hypothesis is that given the predictions seen through the lens, labels are drawn from them.
    The p-value is the probability that a model for which this is true shows at least the observed
    statistic on the same predictions.

    Parameters
    ----------
    probs, labels
        As in :meth:`Predictions.of`; labels are left out for :class:`Predictions`, for a
        :class:`Tally`, which answers for statistics that are made of its sums, and for
        :class:`Tallies`, which ask a sample of the rows for all others.
    statistic : callable, default ECE(UniformBins(15), distance="tv")
        A statistic of caltest or any function ``(probs, labels) -> float`` of the induced problem;
        large values speak against calibration. Several at once: :func:`joint_test`.
    lens : callable, optional
        Which aspect is asked about: a lens of caltest or any function from predictions to
        predictions. By default the event of two classes, ``OneVsRest(1)``, and the top class of
        more, ``TopK(1)``.
    null : {"auto", "exact", "asymptotic", …}, RedrawLabels or another Scheme, default "auto"
        ``"exact"``: without simulation, for binned statistics of two classes, or at most 2²⁰ label
        vectors. ``RedrawLabels()`` simulates labels and is valid always. ``"auto"`` is exact up to
        128 occupied cells or ``n_resamples`` label vectors, and else redraws labels.
        ``"asymptotic"``: the classical limit law of statistics that have one, as valid as the limit
        is near. ``"betting"``, which ``"auto"`` is for :class:`EValue`: p is 1 over the e-value.
    n_resamples : int, default 9999
        Replicates of a simulated null; the most there can be with ``early_stop``.
    early_stop : bool, default False
        End a simulation once 20 replicates reach the estimate, with the valid p = 20 / (number
        drawn) (Besag & Clifford 1991): calibrated models then cost some dozens of replicates.
    rng : None, int, Generator or SeedSequence
        As :func:`numpy.random.default_rng`.
    workers : int or callable, default 1
        Threads, or a function like :func:`map`.
    **facts
        The keywords of :meth:`Predictions.of`. With ``clusters`` labels are redrawn with the
        dependence of :class:`SharedRedraws`. With ``by`` every subgroup is tested, too, and whether
        all are calibrated alike: walks of residuals less the means of strata of 20 neighbours,
        within which residuals are permuted (Tygert 2021).

    Raises
    ------
    StatisticError
        When the statistic is not a finite number, or lens, bins and null do not fit the data.

    Warns
    -----
    SparseBinsWarning
        With ``ConsistencyResampling()`` and fewer than 20 rows per occupied cell.
    LimitLawWarning
        With ``"asymptotic"`` where it rejects calibrated models more than 1.5 times too often.
    DegenerateDataWarning
        When a calibrated model could show one value of the statistic only.

    Notes
    -----
    Where observations are independent and labels were not used to make the predictions, observed
    and redrawn labels are exchangeable: P(p ≤ α) ≤ α at every n, K and partition. O(B n). Above
    50 000 rows of a two-class question sums over micro-cells (:class:`Tally`) are looked at where
    these have the estimate of the rows to rounding, and a note says so.

    References
    ----------
    Vaicenavicius et al., "Evaluating model calibration in classification", AISTATS 2019, §4.3.
    Tygert, "A graphical method of cumulative differences between two subpopulations", Journal of
    Big Data 8, 2021.

    Examples
    --------
    >>> import caltest as ct
    >>> rained, forecast = [1] * 18 + [0] * 12, [0.8] * 30
    >>> result = ct.calibration_test(forecast, rained)
    >>> round(result.estimate, 6), round(result.pvalue, 9)
    (0.2, 0.010731062)
    """
    if isinstance(statistic, Sequence) and not isinstance(statistic, str):
        raise StatisticError(
            "calibration_test takes one statistic; several, as (statistic, lens) pairs, are tested "
            "together by joint_test"
        )
    one_of("early_stop", early_stop, (True, False))
    check_run(**(run := Run(n_resamples=n_resamples, rng=rng, workers=workers)))
    if null == "betting" and not isinstance(statistic, EValue):
        raise StatisticError(
            f"null='betting' is the law of EValue(): give statistic=EValue() with it, or another "
            f"null for {name_of(statistic)}"
        )
    takes = {*ROWS, "by", "tally", "followup", "several labels a row"}
    summable = [statistic] if null in ("auto", "exact", RedrawLabels()) else []
    analysis = Analysis.of(
        "calibration_test", probs, labels, facts,
        lens=lens, rng=rng, takes=takes, summable=summable, statistic=statistic,
    )  # fmt: skip
    if analysis.from_sums:
        return _tested(analysis, statistic, null, run, early_stop)
    data, through, induced = analysis.rows, analysis.lens, analysis.induced
    refuse_bets(data, statistic)
    if data.by is not None:

        def ask(part: Predictions) -> CalibrationTestResult:
            return calibration_test(
                part, None, statistic, lens=through, null=null, early_stop=early_stop, **run
            )

        if data.multilabel:  # nothing is asked of all pairs: labels of a row depend anyhow
            return of_worst(each_subgroup(data, ask), analysis)
        whole = ask(replace(data, by=None))
        go_on(whole.ended)
        parts = on_shared_labels(each_subgroup(data, ask), data, induced, statistic, run)
        return replace(whole, subgroups=alike(parts, induced, run))
    apart = (data.horizon, data.crossed, data.followup)  # other nulls then say why not
    if isinstance(null, OneRowPerCluster) and all(fact is None for fact in apart):
        return _by_one_row_per_cluster(analysis, statistic, null, run)
    if isinstance(null, PopulationWeights):
        null.refuse(induced)
        # Labels are redrawn as if predictions were right, signs keep the observed scatter: the
        # larger p-value counts, as neither alone holds for every way in which weights arise.
        both = [
            calibration_test(data, None, statistic, lens=through, null=scheme, **run)
            for scheme in (RedrawLabels(), WildSigns())
        ]
        note = f"p is {both[0].shown_p} for redrawn labels, {both[1].shown_p} for random signs"
        larger = max(both, key=lambda test: test.pvalue)
        return replace(larger, null=repr(null), notes=(*larger.notes, note))
    return _tested(analysis, statistic, null, run, early_stop)


def refuse_bets(data: Predictions, statistic: StatisticLike) -> None:
    """Refuse e-values of rows whose models know the labels of others."""
    if data.folds is not None and isinstance(statistic, EValue):
        raise StatisticError(
            "EValue() and null='betting' take no folds: a product over rows whose models know each "
            "other's labels is no e-value. Take another statistic, such as CoxScore()"
        )


def _tested(
    analysis: Analysis, statistic: StatisticLike, null: Null, run: Run, early: bool,
) -> CalibrationTestResult:  # fmt: skip
    prepared, estimate = analysis.evaluate(statistic)
    problem = analysis.units
    alone = problem.n_clusters is None or analysis.data.horizon is not None
    if null == "auto" and prepared.usual_null and alone:
        null = prepared.usual_null
    law = null_distribution(statistic, prepared, estimate, null, run, early)
    # "auto" ends here, too, where cells or a short list of label vectors have a law.
    if isinstance(law, ExactNull):
        null = "exact"
    elif null == "auto":
        null = RedrawLabels() if problem.n_clusters is None else SharedRedraws()
        null = problem.only_null or null
    if isinstance(null, SharedRedraws) and not analysis.from_sums:
        null = replace(null, horizon=analysis.induced.horizon)
    name = null if isinstance(null, str) else repr(null)
    result = result_of(analysis, prepared, statistic, name, estimate, law)
    if result.degenerate:
        warnings.warn(
            "the null distribution is a single value: with these predictions a calibrated model "
            "can show nothing else, so the test says nothing",
            DegenerateDataWarning,
            stacklevel=3,
        )
    return result


def _by_one_row_per_cluster(
    analysis: Analysis, statistic: StatisticLike, null: OneRowPerCluster, run: Run
) -> CalibrationTestResult:
    """Test draws of one row per cluster."""
    data, generator = analysis.rows, np.random.default_rng(analysis.rng)
    plain, tests = replace(data, clusters=None), list[CalibrationTestResult]()
    each: Run = {**run, "rng": generator}
    with progress(null.draws, "draws") as advance:
        for _ in range(null.draws):
            part = plain.take(null.rows(data, generator))
            tests.append(calibration_test(part, None, statistic, lens=analysis.lens, **each))
            go_on(tests[-1].ended)
            advance(1)
    # P(the k-th smallest of M p-values ≤ α k / M) ≤ α whatever their dependence (Rüger)
    quarter = -(-len(tests) // 4)
    quartile = sorted(test.pvalue for test in tests)[quarter - 1]
    pvalue = min(1.0, len(tests) / quarter * quartile)
    # Of one draw alone they would hang on chance; the p-value above is valid for any dependence
    numbers = [(test.estimate, test.null_mean, test.null_std) for test in tests]
    estimate, null_mean, null_std = np.mean(numbers, axis=0).tolist()
    note = (
        f"numbers are means over {null.draws} draws of one row from each of {tests[0].n} clusters; "
        "p is four times the lower quartile of theirs"
    )
    return replace(
        tests[0],
        null=repr(null),
        estimate=estimate,
        null_mean=null_mean,
        null_std=null_std,
        pvalue=pvalue,
        pvalue_bracket=(pvalue, pvalue),
        pvalue_error=0.0,
        impossible=analysis.induced.impossible.size,
        n_resamples=null.draws,
        **analysis.facts | {"notes": (*data.notes, note)},
        null_distribution=None,
    )
