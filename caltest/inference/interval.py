"""Confidence intervals of calibration errors, and tests of equivalence.

:func:`confidence_interval` and :func:`equivalence_test` are the entries. Bounds come from inverted
tests (:mod:`caltest.inference.inversion`), Clopper–Pearson intervals of cells, shifts of the
log-odds (:func:`signed_bounds`) or the bootstrap.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Literal, Unpack

import numpy as np
from scipy.special import betainc, gammainc, gammaincc, ndtri, stdtrit

from caltest._base import FloatArray, IntArray
from caltest._base.arrays import INTERVAL_LEVEL, N_RESAMPLES, RNG, fraction, number, one_of
from caltest._base.written import explained, name_of
from caltest.data import Facts, Predictions
from caltest.data.binning import UniformBins
from caltest.data.lenses import LensLike
from caltest.errors import StatisticError, UnsupportedFactError
from caltest.inference._input import Analysis, evaluated, take_rows_or_tally
from caltest.inference.calibration import each_subgroup
from caltest.inference.dependence import refuse_few_blocks
from caltest.inference.inversion import (
    CELL_SIZES,
    CellNoise,
    UpperInversion,
    cell_noise,
    followed_bounds,
    followed_difference,
    reached,
)
from caltest.inference.lattice import tilted
from caltest.inference.null import cell_null, null_distribution, replicates_of
from caltest.nulls import Bootstrap, Run, Workers, check_run
from caltest.nulls.laws import clopper_pearson
from caltest.results import ConfidenceIntervalResult, EquivalenceTestResult
from caltest.results.base import go_on
from caltest.statistics import ECE, RMSCE, Cells, DebiasedL1, DebiasedL2, Estimand, MeanDifference
from caltest.statistics.binned import BinnedError
from caltest.statistics.prepared import Prepared, StatisticLike, prepare
from caltest.statistics.rows import FollowupProblem, RowProblem, row_problem
from caltest.tallies import RowsOrTally

IntervalMethod = Literal["auto", "inversion", "bootstrap"]


Side = Literal["two-sided", "lower", "upper"]


SIDES = ("two-sided", "lower", "upper")


INTERVAL_METHODS = ("auto", "inversion", "bootstrap")


@explained
def confidence_interval(
    probs: object,
    labels: object = None,
    statistic: StatisticLike = ECE(),
    *,
    lens: LensLike | None = None,
    level: float = INTERVAL_LEVEL,
    method: IntervalMethod = "auto",
    side: Side = "two-sided",
    n_resamples: int = N_RESAMPLES,
    rng: RNG = None,
    workers: Workers = None,
    **facts: Unpack[Facts],
) -> ConfidenceIntervalResult:
    """Compute a confidence interval for a calibration error, valid also under perfect calibration.

    The interval is for the binned error Σ_b π_b d(r_b, g_b) of new data in the cells of the
    statistic, 0 for a calibrated model. Errors of opposite sign cancel in a cell: the lower limit
    bounds the true error as well (Vaicenavicius et al. 2019, Theorem 2), the upper limit only the
    error of the cells. For ``MCE`` it is the largest error of the cells that hold rows.

    Parameters
    ----------
    probs, labels, statistic, lens, rng, workers
        As in :func:`calibration_test`.
    level : float, default 0.95
        Probability with which such an interval contains the error.
    method : str, default "auto"
        ``"auto"`` inverts tests, for ``ECE``, ``DebiasedL1``, ``DebiasedL2`` and, for two classes,
        ``RMSCE`` and ``MCE``; the signed interval of ``MeanDifference`` consists of the shifts of
        the log-odds that are not rejected. ``"bootstrap"`` takes quantiles of resampled rows, for
        averages such as a proper score; it has to be named. With follow-up, intervals of ``ECE``,
        ``DebiasedL1`` and ``MeanDifference`` rest on the normal law of the gaps of the cells.
    side : {"two-sided", "lower", "upper"}, default "two-sided"
        Which bounds; one alone has the whole error probability.
    n_resamples : int, default 9999
        Draws of cell sums (fewer for very many cells) or bootstrap samples.
    **facts
        As in :func:`calibration_test`. With ``clusters`` and ``weights``, π_b are shares of the
        weight, and labels are redrawn as in a test. With ``by`` every subgroup has an interval as
        well; all cover simultaneously (Bonferroni).

    Raises
    ------
    StatisticError
        When the method does not fit the statistic, or ``level`` or ``side`` the data.

    Notes
    -----
    95 % intervals of ``"inversion"`` covered in 0.93 to 1 of data sets (the page on coverage),
    ``"bootstrap"`` intervals of the ECE in 0 to 1. The interval of ``"inversion"`` contains 0
    exactly if the test of calibration has a p-value above (1 − level)/2 (the exact one for two
    classes and at most 24 cells, without clusters and weights), or the errors of a refuted model
    cancel in its cells, which is noted. O(n K) and some milliseconds for inversion, O(B n) for the
    bootstrap.

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
    data = take_rows_or_tally("confidence_interval", probs, labels, facts, lens)
    fraction("level", level)
    one_of("method", method, INTERVAL_METHODS)
    one_of("side", side, SIDES)
    run = Run(n_resamples=n_resamples, rng=rng, workers=workers)
    if not (isinstance(data, Predictions) and data.by is not None):
        return interval_of(float(level), data, statistic, lens, run, side, method)

    def interval_at(level: float, part: Predictions) -> ConfidenceIntervalResult:
        return interval_of(level, part, statistic, lens, run, side, method)

    return _in_subgroups(data, interval_at, float(level))


def interval_of(
    level: float, data: RowsOrTally, statistic: StatisticLike, lens: LensLike | None, run: Run,
    side: Side = "two-sided", method: IntervalMethod = "auto",
) -> ConfidenceIntervalResult:  # fmt: skip
    """Return the confidence interval for validated data without subgroups.

    ``data`` are rows, or a tally with sums over fine bins in their place; ``run`` holds
    n_resamples, rng and workers. Other parameters and errors as in :func:`confidence_interval`. The
    other side of a one-sided interval is the end of the range of the error, or None if that is
    unknown.
    """
    question = (level, side, run, method)
    request = interval_problem("confidence_interval", data, statistic, lens, *question)
    prepared, estimate = request.prepared, request.estimate
    bounds = _fitting(request, method)(request)
    floor = noise_floor(request) if bounds.null_mean is None else bounds.null_mean
    estimand, cells = prepared.estimand, prepared.cells
    # The side that was not asked about is open, and is cut to the range of the error below
    low = bounds.low if side != "upper" else -np.inf
    high = bounds.high if side != "lower" else np.inf
    return request.analysis.result(
        ConfidenceIntervalResult, statistic, prepared=prepared, method=bounds.method,
        estimate=estimate, low=_cut_to_range(low, estimand), high=_cut_to_range(high, estimand),
        level=level, side=side, null_mean=floor, bias=estimate - bounds.corrected,
        corrected=bounds.corrected, contains_zero=bounds.contains_zero, pvalue=bounds.pvalue,
        n_cells=None if cells is None or cells.bins is None else len(cells),
        n_resamples=bounds.n_draws, ended=bounds.ended, notes=bounds.notes,
    )  # fmt: skip


def _in_subgroups(
    data: Predictions, ask: Callable[[float, Predictions], ConfidenceIntervalResult], level: float
) -> ConfidenceIntervalResult:
    """Return the interval for all rows, with simultaneous intervals of subgroups (Bonferroni).

    ``ask(level, rows)`` computes an interval, and ``data`` are rows with subgroups. ``level`` is
    the level of the interval for all rows, and for all subgroups together. StatisticError for a
    method that gives no p-value.
    """
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
    verb: str, data: RowsOrTally, statistic: StatisticLike, lens: LensLike | None, level: float,
    side: str, run: Run, method: str = "inversion",
) -> IntervalProblem:  # fmt: skip
    """Validate the data and options of a bound; return them with the prepared statistic.

    ``data`` are validated rows, or a tally of sums over fine bins. ``verb`` is the name of the
    public function in messages, ``side`` is "two-sided", "lower" or "upper", and ``run`` holds
    n_resamples, rng and workers. Other parameters as in :func:`confidence_interval`. In time
    series, blocks of times are the independent units. StatisticError for options out of range,
    fewer clusters or blocks than are needed, and a statistic that fails.
    """
    check_run(**run)
    # Only what inversion reads off sums of cells may come from micro-cells without a loss.
    inverted = isinstance(statistic, (ECE, RMSCE, DebiasedL1, DebiasedL2, MeanDifference))
    summable = [statistic] if inverted and method in ("auto", "inversion") else []
    analysis = Analysis.through(lens, data, run["rng"], summable)
    if isinstance(analysis.problem, RowProblem) and data.horizon is not None:  # units are blocks
        refuse_few_blocks(verb, analysis.rows)
        blocks = row_problem(replace(analysis.induced, horizon=None))
        analysis = replace(analysis, problem=blocks)
    prepared, estimate = evaluated(statistic, analysis.problem, analysis.data.n_classes)
    if data.clusters is not None and np.unique(data.clusters).size < 2:
        raise StatisticError("an interval from clusters needs at least two of them")
    return IntervalProblem(statistic, analysis, prepared, estimate, level, side, run)


def _fitting(request: IntervalProblem, method: str) -> Callable[[IntervalProblem], Bounds]:
    """Return the function that computes bounds for these data by ``method``.

    ``request`` holds data, prepared statistic, level and options; the function takes it and returns
    :class:`Bounds`: both bounds, with the debiased estimate and p-value where known. StatisticError
    for a method that does not fit the statistic or the design of the data.
    """
    estimand, problem = request.prepared.estimand, request.prepared.problem
    if isinstance(problem, FollowupProblem):
        return _fitting_followup(request, method)
    if method == "bootstrap" and problem.exact:
        return by_bootstrap
    if method != "bootstrap" and estimand is not None and request.prepared.cells is not None:
        if estimand.size == "signed":
            return by_shift
        if estimand.size != "largest":
            return by_inversion
        # Clopper & Pearson count independent rows that weigh alike
        if not (problem.designed or problem.weight is not None):
            return by_cells
    if not problem.exact:
        raise StatisticError(
            f"this interval of {name_of(request.statistic)} needs the rows: a tally gives "
            "intervals of ECE, RMSCE, DebiasedL1 and DebiasedL2, and without weights of MCE, by "
            "method='inversion'"
        )
    raise StatisticError(
        f"no interval of {name_of(request.statistic)} for {problem.data.n_classes} classes"
        f"{' with clusters or weights' if problem.designed else ''} is known to cover: take "
        "ECE(bins) or DebiasedL2(bins), or method='bootstrap' if the statistic is an average"
    )


def _fitting_followup(request: IntervalProblem, method: str) -> Callable[[IntervalProblem], Bounds]:
    """Return the function that computes bounds for data with follow-up (censored outcomes).

    ``request`` holds data, prepared statistic, level and options; the function takes it and returns
    :class:`Bounds`. UnsupportedFactError for a ``method`` or a statistic for which no bounds are
    known.
    """
    estimand, cells = request.prepared.estimand, request.prepared.cells
    if method != "bootstrap" and estimand is not None and cells is not None:
        if estimand.size in ("absolute", "signed") and cells.bins is not None:
            return by_influence
        if estimand.size == "signed":
            return by_influence
    raise UnsupportedFactError(
        f"no interval of {name_of(request.statistic)} with follow-up is known to cover: take "
        "ECE(QuantileBins(10)), DebiasedL1 or MeanDifference() with method='auto'",
        fact="follow-up",
    )


def _cut_to_range(bound: float, estimand: Estimand | None) -> float | None:
    """Return a bound cut to the range of the error, such as [0, 1].

    ``estimand`` is the population error that the statistic estimates, with its range; None if there
    is none. The range is then unknown, and an infinite bound becomes None.
    """
    if estimand is not None:
        smallest = -estimand.largest if estimand.size == "signed" else 0.0
        return float(min(max(bound, smallest), estimand.largest))
    return float(bound) if np.isfinite(bound) else None


# ------------------------------------------------------------------------------
# The methods behind an interval: test inversion, exact cells, the bootstrap.


#: Numbers in an array of draws, beyond which fewer are drawn, but never fewer than these.
MAX_DRAWN, MIN_DRAWS = 2**17, 999


#: Draws beyond a bound that it should rest on.
MIN_BEYOND = 20


#: Cells up to which the p-value that decides about 0 is exact; beyond, draws are quicker.
EXACT_CELLS = 24


#: Said when a model is miscalibrated, but its cells may show nothing of it.
CANCEL = (
    "the model is miscalibrated, but residuals scatter so much within cells that their error may "
    "be 0: errors of opposite sign cancel there, and finer cells would show them"
)


#: Said of the largest gap where cells of a grid are empty.
EMPTY = (
    "the largest error of the {full} of {all} cells that hold rows: new data may enter the others, "
    "where it may be larger"
)


#: Said of bootstrap intervals of an error.
TOO_HIGH = (
    "resampling adds noise to an error that noise has raised already, so this interval "
    "lies too high, and near calibration above the true error; method='auto' does not"
)


#: Rows per cell below which an interval is wide because little can be known, and what is said.
FEW_ROWS = 5.0


SPARSE_CELLS = (
    "cells hold {:.1f} rows on average: so few show little of the error, and the upper "
    "bound is high for that reason; fewer cells give a shorter interval"
)


@dataclass(frozen=True)
class IntervalProblem:
    """Everything an interval method needs: data, prepared statistic, level, side and run options.

    ``analysis`` holds the data before and behind the lens, ``prepared`` is the statistic with fixed
    predictions and ``estimate`` its observed value. ``side`` is "two-sided", "lower" or "upper",
    and ``run`` holds n_resamples, rng and workers.
    """

    statistic: StatisticLike
    analysis: Analysis
    prepared: Prepared
    estimate: float
    level: float
    side: str
    run: Run

    @property
    def alpha(self) -> float:
        """Error probability of one bound.

        It is half of 1 − level for a two-sided interval, else all of it.
        """
        alpha = (1.0 - self.level) / (2.0 if self.side == "two-sided" else 1.0)
        # 1 − 0.95 is not 0.05, and p-values of draws are such fractions
        return round(alpha, 12) or alpha

    @property
    def cells(self) -> Cells:
        """The partition of the rows into the cells of the statistic; AssertionError without one."""
        assert self.prepared.cells is not None
        return self.prepared.cells

    @property
    def estimand(self) -> Estimand:
        """The population error that the statistic estimates; AssertionError without one."""
        assert self.prepared.estimand is not None
        return self.prepared.estimand


@dataclass(frozen=True)
class Bounds:
    """Result of an interval method, before it is cut to the range of the error.

    ``method`` is its name. ``low`` and ``high`` are the bounds, and ``contains_zero`` says whether
    calibration is compatible with the data. ``corrected`` is the debiased estimate, ``null_mean``
    the noise floor and ``pvalue`` the p-value of error 0, None where the method does not know them.
    ``n_draws`` is the number of draws, ``ended`` "complete" or "interrupted", and ``notes`` are
    sentences for the result.
    """

    method: str
    low: float
    high: float
    corrected: float
    contains_zero: bool
    null_mean: float | None = None
    pvalue: float | None = None
    n_draws: int = 0
    ended: str = "complete"
    notes: tuple[str, ...] = ()


def by_inversion(request: IntervalProblem) -> Bounds:
    """Return the bounds of a binned error by inverting tests.

    The tests are in :mod:`caltest.inference.inversion`. ``request`` holds data, prepared statistic
    and level. Beside both bounds the result has the debiased estimate, the noise floor and the
    p-value of error 0.
    """
    estimand, size, cells = request.estimand, CELL_SIZES[request.estimand.size], request.cells
    noise = noise_of(request)
    observed, null = float(size.value(noise, noise.sums)), size.value(noise, noise.noise(0.0, 0.0))
    floor, pvalue = estimand.factor * float(null.mean()), reached(null, observed)
    alike = noise.parts is None and noise.squared_mass is None
    # Few cells: the exact law decides about 0, as the test does; for many, draws are quicker.
    if alike and request.prepared.problem.data.n_classes == 2 and len(cells) <= EXACT_CELLS:
        squared = estimand.size == "squared"
        plain = BinnedError.of(cells, "sqeuclidean" if squared else "tv")
        law, exact = plain.cell_law(), plain.observed
        assert law is not None
        computed = cell_null(law, exact)
        floor = estimand.factor * computed.mean() / (2.0 if squared else 1.0)
        pvalue = max(computed.sf(exact), np.finfo(float).tiny)
    plausible, corrected = pvalue > request.alpha, estimand.scaled(size.corrected(noise))
    if abs(corrected - request.estimate) < 1e-12:  # the statistic over pairs corrects itself
        corrected = request.estimate
    low = 0.0 if plausible else size.low(noise, request.alpha)
    # A refuted model whose errors may cancel within cells: any error above 0 is plausible.
    cancels = 0.0 < low < 1e-6 * observed  # what the bisection leaves of 0
    low = 0.0 if cancels else low
    is_plain = isinstance(request.prepared, BinnedError) and not request.prepared.root
    return Bounds(
        method="inversion",
        low=estimand.scaled(low),
        high=estimand.scaled(size.above(noise).high(request.alpha)),
        corrected=corrected,
        null_mean=floor if is_plain else None,
        contains_zero=plausible or cancels or request.side == "upper",
        pvalue=pvalue,
        n_draws=noise.shares.size,
        notes=(*about_cells(noise), *([CANCEL] if cancels else [])),
    )


def noise_of(request: IntervalProblem) -> CellNoise:
    """Return the residual sums of L cells, with random draws of their noise.

    ``request`` holds data, prepared statistic, level and run options. The result has sums (L, d),
    their variances, and B draws (B, L, d) of the noise, of variance 1; d is 1 for two classes, else
    their number. StatisticError if n_resamples is too small for the level.
    """
    rng = np.random.default_rng(request.run["rng"])
    return cell_noise(request.prepared.problem.data, request.cells, _n_draws(request), rng)


def _n_draws(request: IntervalProblem) -> int:
    """Return the number of draws: fewer for many cells or rows, but enough for the level.

    StatisticError if ``n_resamples`` is too small for the level. ``request`` holds data, prepared
    statistic, level and run options.
    """
    n_resamples = request.run["n_resamples"]
    if request.alpha * (n_resamples + 1) < 1.0:
        raise StatisticError(
            f"level={request.level:.15g} needs at least {int(np.ceil(1.0 / request.alpha)) - 1} "
            f"draws, but n_resamples is {n_resamples}"
        )
    numbers = len(request.cells) * request.prepared.problem.d
    # Redrawn labels cost n a draw, which bounds their number as cells do
    if request.prepared.problem.designed:
        numbers = max(numbers, request.prepared.problem.data.n // 64)
    elif not request.cells.lawful:
        numbers = max(numbers, request.cells.order.size // 64)
    # Quantiles of rare tails rest on 20 draws beyond them at least
    least = max(MIN_DRAWS, int(MIN_BEYOND / request.alpha))
    return min(n_resamples, max(least, MAX_DRAWN // numbers))


def by_influence(request: IntervalProblem) -> Bounds:
    """Return bounds with follow-up, from the normal law of observed − predicted in every bin.

    ``request`` holds data with censored outcomes, prepared statistic and level. Beside both bounds
    the result has the debiased estimate, the noise floor and the p-value of error 0. See
    :mod:`caltest.inference.inversion`.
    """
    problem, estimand, cells = request.prepared.problem, request.estimand, request.cells
    assert isinstance(problem, FollowupProblem)
    if estimand.size == "signed":
        found, draws = followed_difference(problem, request.alpha), 0
        inside = (found.low <= 0.0 or request.side == "upper") and (
            found.high >= 0.0 or request.side == "lower"
        )
    else:
        draws = _n_draws(request)
        place = np.empty(problem.n, dtype=np.int64)
        place[cells.order] = np.repeat(np.arange(len(cells)), np.diff(cells.starts))
        found = followed_bounds(problem, place, request.alpha, draws, request.run["rng"])
        inside = found.low <= 0.0 or request.side == "upper"
    return Bounds(
        method="influence",
        low=estimand.scaled(found.low),
        high=estimand.scaled(found.high),
        corrected=estimand.scaled(found.corrected),
        null_mean=estimand.scaled(found.floor),
        contains_zero=inside,
        pvalue=found.pvalue,
        n_draws=draws,
    )


def by_cells(request: IntervalProblem) -> Bounds:
    """Return bounds of the largest |observed − predicted| of a cell.

    They come from simultaneous Clopper–Pearson intervals of the event rates of all cells.
    ``request`` holds data, prepared statistic and level. The result has no p-value.
    """
    cells = request.cells
    size, predicted, events = _in_cells(request)

    def outside(alpha: float) -> tuple[FloatArray, FloatArray]:
        # Each end alone misses with alpha: the interval of both has the level 1 − 2 alpha
        low, high = clopper_pearson(events, size, 1.0 - 2.0 * alpha)
        return low - predicted, predicted - high

    # From below any cell may be the largest: all share α. From above the largest has to be covered.
    nearest = np.maximum(*outside(request.alpha / size.size)).max()
    above, below = outside(request.alpha)
    furthest = np.maximum(-above, -below).max()
    rows = cells.problem.exact
    values, ended = _bootstrap(request) if rows else (_redrawn(request), "complete")
    full, grid = len(cells), cells.bins.n_bins if isinstance(cells.bins, UniformBins) else 0
    return Bounds(
        method="cells",
        low=_gap(request, max(float(nearest), 0.0)),
        high=_gap(request, float(furthest)),
        corrected=2.0 * request.estimate - float(values.mean()),
        contains_zero=bool(nearest <= 0.0) or request.side == "upper",
        n_draws=values.size,
        ended=ended,
        notes=(EMPTY.format(full=full, all=grid),) if full < grid else (),
    )


def _in_cells(request: IntervalProblem) -> tuple[IntArray, FloatArray, IntArray]:
    """Return (number of rows, mean prediction, number of events) of the L cells, (L,) each.

    ``request`` holds data and prepared statistic, with its partition into cells; of two classes.
    """
    cells, size = request.cells, request.cells.counts
    return size, cells.expected[:, 0] / size, cells.sum(cells.problem.events)


def _redrawn(request: IntervalProblem) -> FloatArray:
    """Return the largest |observed − predicted| of a cell in B bootstrap samples, shape (B,).

    ``request`` has a tally (sums over fine bins), the cells and run options, from which B follows.
    Samples are of rows that represent the tally; values are on the scale of the statistic, such as
    squared.
    """
    rows, times, place = request.cells.problem.expand()
    group = 2 * request.cells.of_unit[place] + rows.labels
    rng = np.random.default_rng(request.run["rng"])
    gaps = _largest_gaps(rows.residuals[:, 0], group, times, _n_draws(request), rng)
    return np.array([_gap(request, float(gap)) for gap in gaps])


def _largest_gaps(
    residuals: FloatArray, group: IntArray, times: FloatArray, draws: int, rng: np.random.Generator
) -> FloatArray:
    """Return the largest |mean residual| of a cell in each bootstrap sample, (draws,).

    ``draws`` is the number of samples. ``residuals`` (n,) are of rows that stand for ``times`` (n,)
    rows each; ``group`` (n,) is 2b + y for outcome y in cell b, and the rows of a group are drawn
    as two values with the same mean and variance.
    """
    size = group.max() // 2 * 2 + 2
    n, sums, squares = (np.bincount(group, times * residuals**k, size) for k in range(3))
    mean = sums / np.maximum(n, 1.0)
    spread = np.sqrt(np.maximum(squares / np.maximum(n, 1.0) - mean**2, 0.0))
    # Two atoms have the mean and the variance of the rows of a group, which a mean needs.
    atoms = np.stack([mean - spread, mean + spread])
    counts = rng.multinomial(round(n.sum()), np.tile(n / (2.0 * n.sum()), 2), draws)
    counts = counts.reshape(draws, 2, -1, 2)
    sums_of_cells = (counts * atoms.reshape(2, -1, 2)).sum(axis=(1, 3))
    return np.asarray((np.abs(sums_of_cells) / np.maximum(counts.sum(axis=(1, 3)), 1)).max(axis=1))


def largest_above(request: IntervalProblem) -> UpperInversion:
    """Return the upper inversion for the largest |observed − predicted| of a cell.

    A gap is refuted only if the numbers of events in all cells refute it. ``request`` holds data
    and prepared statistic. The returned object gives the p-value of an error (``pvalue``) and the
    upper bound at an error probability (``high``).
    """
    from scipy.special import bdtr, bdtrc

    n, predicted, events = _in_cells(request)

    def chance(gap: float) -> float:
        rise, fall = predicted + gap, predicted - gap
        # For either sign: so few events where the rate is p + gap, so many where it is p − gap
        fewer = np.where(rise < 1.0, bdtr(events, n, np.minimum(rise, 1.0)), 0.0)
        more = np.where(events > 0, bdtrc(events - 1, n, np.maximum(fall, 0.0)), 1.0)
        return float(np.maximum(fewer, np.where(fall > 0.0, more, 0.0)).max())

    return UpperInversion(
        chance, lambda gap: request.estimand.unscaled(_gap(request, gap)), request.estimate
    )


def _gap(request: IntervalProblem, gap: float) -> float:
    """Return ``gap``, a difference of probabilities, on the scale of the statistic.

    The gap is |observed − predicted| of the event. ``request`` has the statistic, which says
    whether the scale is squared or a sum over two classes.
    """
    return request.estimand.scaled(gap**2 if request.estimand.squared else gap)


def by_shift(request: IntervalProblem) -> Bounds:
    """Return bounds of the mean observed − predicted, by shifting the log-odds of all predictions.

    Shifts that a test does not reject make the interval; see :mod:`caltest.inference.interval`.
    ``request`` holds data, prepared statistic and level. The result has the p-value of no
    difference and the noise floor 0; a signed difference needs no debiasing.
    """
    rows, times = request.prepared.problem.expand()[:2]
    found = signed_bounds(rows, times, request.alpha)
    outside = (found.low > 0.0 and request.side != "upper") or (
        found.high < 0.0 and request.side != "lower"
    )
    return Bounds(
        method="shift",
        low=found.low,
        high=found.high,
        corrected=request.estimate,
        null_mean=0.0,
        contains_zero=not outside,
        pvalue=found.pvalue,
    )


def by_bootstrap(request: IntervalProblem) -> Bounds:
    """Return bootstrap quantiles of the statistic, over resampled rows or clusters, as bounds.

    ``request`` holds data, prepared statistic, level and the number of bootstrap samples. The
    result has the debiased estimate, and neither p-value nor noise floor.
    """
    values, ended = _bootstrap(request)
    low, high = map(float, np.quantile(values, (request.alpha, 1.0 - request.alpha)))
    above, below = low <= 0.0 or request.side == "upper", high >= 0.0 or request.side == "lower"
    return Bounds(
        method="bootstrap",
        low=low,
        high=high,
        corrected=2.0 * request.estimate - float(values.mean()),
        contains_zero=above and below,
        n_draws=values.size,
        ended=ended,
        notes=() if request.prepared.estimand is None else (TOO_HIGH,),
    )


def _bootstrap(request: IntervalProblem) -> tuple[FloatArray, str]:
    law = replicates_of(request.statistic, request.prepared, Bootstrap(), request.run)
    return law.values, law.ended


def noise_floor(request: IntervalProblem) -> float:
    """Return the mean of the statistic under calibration, exact where that is cheap to compute.

    ``request`` holds data, prepared statistic and run options. Otherwise it is the mean of the null
    distribution that a test would use, such as redrawn labels; clusters are ignored.
    """
    if request.prepared.null_mean is not None:
        return request.prepared.null_mean
    prepared, estimate = request.prepared, request.estimate
    if request.prepared.problem.data.n_clusters is not None:  # marginal law
        prepared = prepare(request.statistic, replace(request.prepared.problem.data, clusters=None))
    plain = replace(prepared, usual_null=None) if prepared.usual_null else prepared
    return null_distribution(request.statistic, plain, estimate, "auto", request.run)[0].mean()


def about_cells(cells: CellNoise) -> tuple[str, ...]:
    """Return a tuple with the note that cells hold few rows; () if they hold 5 or more on average.

    ``cells`` has the residual sums of the cells and their numbers of rows.
    """
    mean = float((cells.size / cells.grain.mean(axis=1)).mean())
    return (SPARSE_CELLS.format(mean),) if mean < FEW_ROWS else ()


# ------------------------------------------------------------------------------
# The verb that says whether an error is small enough.


def equivalence_test(
    probs: object,
    labels: object = None,
    statistic: StatisticLike = ECE(),
    *,
    tolerance: float,
    lens: LensLike | None = None,
    alpha: float = 0.05,
    n_resamples: int = N_RESAMPLES,
    rng: RNG = None,
    workers: Workers = None,
    **facts: Unpack[Facts],
) -> EquivalenceTestResult:
    """Test whether a calibration error is within a tolerance.

    The hypothesis is H₀: error ≥ ``tolerance``, so that a small p-value is evidence *for*
    calibration to within it: the chance, at such an error, of an observed one as small as this.
    Inverted, the test gives the upper bound of :func:`confidence_interval` with ``side="upper"``
    and ``level`` 1 − ``alpha``: the smallest tolerance that it accepts.

    Parameters
    ----------
    probs, labels, lens, n_resamples, rng, workers, **facts
        As in :func:`confidence_interval`; ``by`` is refused.
    statistic : Statistic, default ECE(UniformBins(15))
        ``ECE``, ``DebiasedL1``, ``DebiasedL2`` and, for two classes, ``RMSCE`` and ``MCE``, each in
        its own unit: ``DebiasedL2`` is a squared error.
    tolerance : float
        The error that is small enough, greater than 0. Choose it before the data are seen.
    alpha : float, default 0.05
        Chance of accepting an error of the tolerance.

    Raises
    ------
    StatisticError
        When no upper bound of the statistic is known to hold, or an argument is out of range.

    Notes
    -----
    The error is defined by the cells of the statistic, in new data; errors of opposite sign cancel
    within a cell. O(n K) and some milliseconds.

    References
    ----------
    Wellek, *Testing Statistical Hypotheses of Equivalence and Noninferiority*, 2010. Dimitriadis et
    al., "Honest calibration assessment for binary outcome predictions", Biometrika 2023.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(1)
    >>> p = rng.random(5000)
    >>> test = equivalence_test(p, rng.random(5000) < p, tolerance=0.05, rng=1)
    >>> test.equivalent, round(test.smallest_tolerance, 3)
    (True, 0.021)
    """
    data = take_rows_or_tally("equivalence_test", probs, labels, facts, lens)
    fraction("alpha", alpha)
    number("tolerance", tolerance, 0.0, float("inf"))
    run = Run(n_resamples=n_resamples, rng=rng, workers=workers)
    request = interval_problem("equivalence_test", data, statistic, lens, 1.0 - alpha, "upper", run)
    estimand = request.prepared.estimand
    largest = estimand is not None and estimand.size == "largest"
    unknown = estimand is None or estimand.size == "signed" or request.prepared.cells is None
    weighted = request.prepared.problem.weight is not None
    if unknown or (largest and (request.prepared.problem.designed or weighted)):
        raise StatisticError(
            f"no upper bound of {name_of(statistic)} is known to hold for these data: take "
            "ECE(bins) or DebiasedL2(bins)"
        )
    if tolerance > request.estimand.largest:
        raise StatisticError(
            f"tolerance is {tolerance:g}, but no error is larger than "
            f"{request.estimand.largest:g}: one of 5 % is 0.05"
        )
    # The largest gap has exact limits, cell by cell; sums of errors are read off drawn noise
    noise = None if largest else noise_of(request)
    above = (
        largest_above(request) if noise is None else CELL_SIZES[request.estimand.size].above(noise)
    )
    return request.analysis.result(
        EquivalenceTestResult,
        statistic,
        prepared=request.prepared,
        estimate=request.estimate,
        tolerance=float(tolerance),
        pvalue=above.pvalue(request.estimand.unscaled(float(tolerance))),
        smallest_tolerance=min(
            request.estimand.scaled(above.high(request.alpha)), request.estimand.largest
        ),
        alpha=float(alpha),
        n_resamples=0 if noise is None else noise.shares.size,
        notes=() if noise is None else about_cells(noise),
    )


# ------------------------------------------------------------------------------
# Interval of the signed difference observed − predicted, by shifting predictions on the log-odds.
#
# Let S = Σ w y be the weight of the events, p(t) = σ(logit p + t) and E(t) = Σ w p(t). A shift t
# is rejected where S is surprisingly large or small under p(t); the shifts that are not rejected
# make the interval of (E(t) − Σ w p) / Σ w. S is taken for g times a binomial count that has the
# mean and the variance of S, so that both limits equal Clopper and Pearson's where predictions are
# equal, and close to those of the Poisson-binomial law of independent rows elsewhere: rare events
# included.
#
# Two factors widen the law. φ = max(1, V̂ / V(t̂)) compares the scatter of the residuals with the
# variance at the shift t̂ that meets S, V(t) = Σ w² p(t) (1 − p(t)). The scatter is computed over
# units u, which are rows or clusters: V̂ = Σ_u (S_u − W_u d)² with d the observed difference,
# times G / (G − 1) for G clusters. It allows for errors that no shift describes and for dependence
# within clusters. With clusters or weights φ is multiplied by (t / z)², Student's quantile over
# the normal one. An event then counts as g = φ Σ w² v / Σ w v, v = p(t̂) (1 − p(t̂)).


#: Probabilities are kept this far from 0 and 1, so that shifts reach every event rate.
EDGE = 1e-9


#: Shifts that are searched, in log-odds: they take ``EDGE`` beyond 1 − ``EDGE``.
SIGNED_REACH = 60.0


#: Share of a mean by which a variance falls short of it in a count that is binomial, not Poisson.
BINOMIAL = 1e-9


@dataclass(frozen=True)
class SignedBounds:
    """Mean observed − predicted with its interval, in [−1, 1], and the p-value of no difference.

    ``estimate`` is the mean, ``low`` and ``high`` are the bounds of its interval.
    """

    estimate: float
    low: float
    high: float
    pvalue: float


def signed_bounds(rows: Predictions, times: FloatArray, alpha: float) -> SignedBounds:
    """Return bounds of the mean of observed − predicted, with its p-value.

    They come from shifts of the log-odds. The mean is Σ w (q − p) / Σ w over rows with weights w
    and predictions p, with q the true probabilities of the event, which is class 0 of ``rows``. Row
    i stands for ``times[i]`` rows. Each bound is wrong with probability at most ``alpha``. If most
    rows are events, non-events are counted instead, which is more accurate. O(n) for each of about
    40 evaluations.
    """
    p, y = rows.probs[:, 0], (rows.labels == 0).astype(np.float64)
    w = np.ones(p.size) if rows.weights is None else rows.weights
    if 2.0 * float((times * w) @ y) > float((times * w).sum()):
        rest = _signed(rows, times, (1.0 - p, 1.0 - y, w), alpha)
        return SignedBounds(-rest.estimate, -rest.high, -rest.low, rest.pvalue)
    return _signed(rows, times, (p, y, w), alpha)


def _signed(
    rows: Predictions,
    times: FloatArray,
    columns: tuple[FloatArray, FloatArray, FloatArray],
    alpha: float,
) -> SignedBounds:
    """Return the mean of observed − predicted with its bounds and p-value.

    Bounds come from shifts of the log-odds. ``columns`` are (predictions, events, weights), (n,)
    each, with events 0 or 1; row i stands for ``times[i]`` rows. ``rows`` have clusters, if any.
    ``alpha`` is the error probability of each bound.
    """
    from scipy.optimize import brentq

    p, y, w = columns
    weight, expected, events = (float((times * w) @ v) for v in (np.ones(p.size), p, y))
    estimate = (events - expected) / weight
    q = np.clip(p, EDGE, 1.0 - EDGE)

    def mean(t: float) -> float:
        return float((times * w) @ tilted(q, t))

    def root(rises: Callable[[float], float]) -> float:
        """Return the log-odds shift t at which the increasing function ``rises`` is zero.

        Shifts are between −60 and 60. Without a zero it is −60 if the function is positive, else
        60.
        """
        if rises(-SIGNED_REACH) >= 0.0:
            return -SIGNED_REACH
        if rises(SIGNED_REACH) <= 0.0:
            return SIGNED_REACH
        return float(brentq(rises, -SIGNED_REACH, SIGNED_REACH, xtol=1e-9))

    at = tilted(q, root(lambda t: mean(t) - events))
    squares = times * w**2
    phi = _overdispersion(rows, times, y - p - estimate, float(squares @ (at * (1.0 - at))), alpha)
    v = at * (1.0 - at)
    unit = phi * float(squares @ v) / float((times * w) @ v)

    def tails(t: float) -> tuple[float, float]:
        """Return P(count ≥ observed), P(count ≤ observed) of events at a log-odds shift.

        ``t`` is the shift of the log-odds of all predictions.
        """
        shifted = tilted(q, t)
        variance = phi * float(squares @ (shifted * (1.0 - shifted)))
        return _tails(events / unit, mean(t) / unit, variance / unit**2)

    low = mean(root(lambda t: tails(t)[0] - alpha)) if events > 0.0 else 0.0
    high = mean(root(lambda t: alpha - tails(t)[1]))
    pvalue = min(1.0, 2.0 * min(tails(0.0)))
    low, high = ((end - expected) / weight for end in (low, high))
    return SignedBounds(estimate, low, high, pvalue)


def _overdispersion(
    rows: Predictions, times: FloatArray, residuals: FloatArray, variance: float, alpha: float
) -> float:
    """Return φ ≥ 1, the variance of the event count divided by its variance for independent rows.

    ``residuals`` (n,) are y − p(t̂) less their mean, with t̂ the fitted shift of the log-odds, and
    ``variance`` is Σ w² p (1 − p) there; ``rows`` have weights w and clusters, and row i stands for
    ``times[i]`` rows. φ includes the square of the ratio of Student's to the normal quantile at
    ``alpha``, the error probability of one bound.
    """
    w = np.ones(residuals.size) if rows.weights is None else rows.weights
    units = [rows.clusters] if rows.n_clusters is not None else [None]
    units += [] if rows.crossed is None else [rows.crossed]
    scatter, freedom = 0.0, np.inf
    sums: FloatArray
    mass: FloatArray
    for unit in units:
        sums, mass, count = w * residuals, w, times
        if unit is not None:
            place = np.unique(unit, return_inverse=True)[1].ravel()
            sums = np.bincount(place, w * residuals).astype(np.float64)
            mass = np.bincount(place, w).astype(np.float64)
            count = np.ones(sums.size)  # clusters have no copies
        few = 1.0 if unit is None else sums.size / max(sums.size - 1.0, 1.0)
        scatter = max(scatter, few * float(count @ sums**2))
        if unit is not None or rows.weights is not None:
            effective = float(count @ mass) ** 2 / float(count @ mass**2)
            freedom = min(freedom, max(effective - 1.0, 1.0))
    phi = max(1.0, scatter / variance) if variance > EDGE else 1.0
    if np.isinf(freedom):
        return phi
    return phi * float(stdtrit(freedom, 1.0 - alpha) / ndtri(1.0 - alpha)) ** 2


def _tails(count: float, mean: float, variance: float) -> tuple[float, float]:
    """Return (P(X ≥ count), P(X ≤ count)), X binomial with this ``mean`` and ``variance``.

    X is Poisson if the variance is as large as the mean. ``count`` need not be whole.
    """
    if mean - variance <= BINOMIAL * mean:
        above = float(gammainc(count, mean)) if count > 0.0 else 1.0
        return above, float(gammaincc(count + 1.0, mean))
    trials = max(mean**2 / (mean - variance), count)
    share = min(mean / trials, 1.0)
    above = float(betainc(count, trials - count + 1.0, share)) if count > 0.0 else 1.0
    most = count >= trials
    return above, 1.0 if most else 1.0 - float(betainc(count + 1.0, trials - count, share))
