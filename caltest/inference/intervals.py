"""The verb that says how large the error may be."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Literal, Unpack

import numpy as np

from caltest._base.arrays import RNG
from caltest._base.checks import fraction, one_of
from caltest._base.defaults import LEVEL, N_RESAMPLES
from caltest._base.written import name_of
from caltest.errors import StatisticError
from caltest.inference import interval_methods as methods
from caltest.inference.admission import ROWS, checked
from caltest.inference.analysis import Analysis
from caltest.inference.interval_methods import Bounds, IntervalProblem
from caltest.inference.series import refuse_few_blocks
from caltest.inference.subgroups import each_subgroup
from caltest.lenses import LensLike
from caltest.predictions import Facts, Predictions
from caltest.problem import Estimand
from caltest.results import ConfidenceIntervalResult
from caltest.results.base import go_on
from caltest.simulate import Run, Workers, check_run
from caltest.statistics import ECE, RMSCE, DebiasedL1, DebiasedL2, StatisticLike
from caltest.tally import Source

Method = Literal["auto", "inversion", "bootstrap"]
Side = Literal["two-sided", "lower", "upper"]
SIDES = ("two-sided", "lower", "upper")
METHODS = ("auto", "inversion", "bootstrap")


def confidence_interval(
    probs: object,
    labels: object = None,
    statistic: StatisticLike = ECE(),
    *,
    lens: LensLike | None = None,
    level: float = LEVEL,
    method: Method = "auto",
    side: Side = "two-sided",
    n_resamples: int = N_RESAMPLES,
    rng: RNG = None,
    workers: Workers = 1,
    **facts: Unpack[Facts],
) -> ConfidenceIntervalResult:
    """Return an interval for a calibration error, which covers when the model is calibrated, too.

    What is covered is the binned error Σ_b π_b d(r_b, g_b) of new data in the cells of the
    statistic, 0 of a calibrated model. Errors of opposite sign cancel in a cell: the low end bounds
    the true error as well (Vaicenavicius et al. 2019, Theorem 2), the high end that of the cells
    only. For ``MCE`` it is the largest error of the cells that hold rows.

    Parameters
    ----------
    probs, labels, statistic, lens, rng, workers
        As in :func:`calibration_test`.
    level : float, default 0.95
        Probability with which such an interval contains the error.
    method : str, default "auto"
        ``"auto"`` inverts tests, for ``ECE``, ``DebiasedL1``, ``DebiasedL2`` and, for two classes,
        ``RMSCE`` and ``MCE``. ``"bootstrap"`` takes quantiles of resampled rows, for
        averages such as a proper score; it has to be named.
    side : {"two-sided", "lower", "upper"}, default "two-sided"
        Which bounds; one alone has the whole error probability.
    n_resamples : int, default 9999
        Draws of cell sums (fewer for very many cells) or bootstrap samples.
    **facts
        As in :func:`calibration_test`. With ``clusters`` and ``weights``, π_b are shares of the
        weight, and labels are redrawn as in a test. With ``by`` every subgroup has an interval,
        too, all of which cover together (Bonferroni).

    Raises
    ------
    StatisticError
        When the method does not fit the statistic, or ``level`` or ``side`` the data.

    Notes
    -----
    95 % intervals of ``"inversion"`` covered in 0.93 to 1 of data sets (the page on coverage),
    those of ``"bootstrap"`` of the ECE in 0 to 1. 0 is in that of ``"inversion"`` exactly if the
    test of calibration has a p-value above (1 − level)/2 (the exact one for two classes and at most
    24 cells, without clusters and weights), or the errors of a refuted model cancel in its cells,
    which is noted. O(n K) and some milliseconds for inversion, O(B n) for the bootstrap.

    References
    ----------
    Efron, "Bootstrap methods: another look at the jackknife", Annals of Statistics 1979. Kumar et
    al., "Verified uncertainty calibration", NeurIPS 2019.

    Examples
    --------
    >>> import caltest as ct
    >>> data = ct.examples.digits("best")
    >>> interval = confidence_interval(data, rng=1)
    >>> round(interval.estimate, 3), interval.contains_zero
    (0.057, False)
    """
    data = checked("confidence_interval", probs, labels, facts, ROWS | {"by"}, lens)
    fraction("level", level)
    one_of("method", method, METHODS)
    one_of("side", side, SIDES)
    run = Run(n_resamples=n_resamples, rng=rng, workers=workers)
    if isinstance(data, Predictions) and data.by is not None:

        def ask(level: float, part: Predictions) -> ConfidenceIntervalResult:
            return confidence_interval(
                part, None, statistic, lens=lens, level=level, method=method, side=side, **run
            )

        return _in_subgroups(data, ask, float(level))
    question = (float(level), side, run, method)
    request = interval_problem("confidence_interval", data, statistic, lens, *question)
    prepared, estimate = request.prepared, request.estimate
    bounds = _fitting(request, method)(request)
    floor = methods.noise_floor(request) if bounds.null_mean is None else bounds.null_mean
    estimand, cells = prepared.estimand, prepared.cells
    # The side that was not asked about is open, and is cut to the range of the error below
    low = bounds.low if side != "upper" else -np.inf
    high = bounds.high if side != "lower" else np.inf
    return request.analysis.result(
        ConfidenceIntervalResult, statistic, prepared=prepared, method=bounds.method,
        estimate=estimate, low=_within(low, estimand), high=_within(high, estimand),
        level=float(level), side=side, null_mean=floor, bias=estimate - bounds.corrected,
        corrected=bounds.corrected, contains_zero=bounds.contains_zero, pvalue=bounds.pvalue,
        n_cells=None if cells is None or cells.bins is None else len(cells),
        n_resamples=bounds.n_draws, ended=bounds.ended, notes=bounds.notes,
    )  # fmt: skip


def _in_subgroups(
    data: Predictions, ask: Callable[[float, Predictions], ConfidenceIntervalResult], level: float
) -> ConfidenceIntervalResult:
    """Bound the error of all rows, and those of all subgroups together (Bonferroni)."""
    whole = ask(level, replace(data, by=None))
    go_on(whole.ended)
    if whole.pvalue is None:
        raise StatisticError(f"by needs method='inversion', not {whole.method!r}: leave out by")
    # Bonferroni needs no independence: subgroups may overlap and share clusters.
    share = 1.0 - (1.0 - level) / len(data.subgroups())
    parts = each_subgroup(data, partial(ask, share))
    note = f"intervals of {share:.4g} each, which cover together with {level:.4g}"
    return replace(whole, subgroups=replace(parts, notes=(*parts.notes, note)))


def interval_problem(
    verb: str, data: Source, statistic: StatisticLike, lens: LensLike | None, level: float,
    side: str, run: Run, method: str = "inversion",
) -> IntervalProblem:  # fmt: skip
    """Look at the data of which bounds of a statistic are asked for."""
    check_run(**run)
    # Only what inversion reads off sums of cells may come from micro-cells without a loss.
    inverted = isinstance(statistic, (ECE, RMSCE, DebiasedL1, DebiasedL2))
    summable = [statistic] if inverted and method in ("auto", "inversion") else []
    analysis = Analysis.of_data(verb, data, lens, run["rng"], summable)
    if not analysis.from_sums:
        refuse_few_blocks(verb, analysis.rows)
        if analysis.rows.horizon is not None:  # units are blocks
            analysis = replace(analysis, problem=replace(analysis.induced, horizon=None))
    prepared, estimate = analysis.evaluate(statistic)
    if data.clusters is not None and np.unique(data.clusters).size < 2:
        raise StatisticError("an interval from clusters needs at least two of them")
    return IntervalProblem(statistic, analysis, prepared, estimate, level, side, run)


def _fitting(request: IntervalProblem, method: str) -> Callable[[IntervalProblem], Bounds]:
    """Return what computes bounds by a method, or refuse one that does not fit the statistic."""
    estimand, problem = request.prepared.estimand, request.prepared.problem
    if method == "bootstrap" and problem.exact:
        return methods.by_bootstrap
    if method != "bootstrap" and estimand is not None and request.prepared.cells is not None:
        if estimand.size != "largest":
            return methods.by_inversion
        # Clopper & Pearson count independent rows that weigh alike
        if not (request.designed or problem.weight is not None):
            return methods.by_cells
    if not problem.exact:
        raise StatisticError(
            f"this interval of {name_of(request.statistic)} needs the rows: from a tally come "
            "those of ECE, RMSCE, DebiasedL1 and DebiasedL2, without weights of MCE, by "
            "method='inversion'"
        )
    raise StatisticError(
        f"no interval of {name_of(request.statistic)} for {request.induced.n_classes} classes"
        f"{' with clusters or weights' if request.designed else ''} is known to cover: take "
        "ECE(bins) or DebiasedL2(bins), or method='bootstrap' if the statistic is an average"
    )


def _within(bound: float, estimand: Estimand | None) -> float | None:
    """Cut a bound to the range of the error; None where it is open and the range not known."""
    if estimand is not None:
        return float(min(max(bound, 0.0), estimand.largest))
    return float(bound) if np.isfinite(bound) else None
