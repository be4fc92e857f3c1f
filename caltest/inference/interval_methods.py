"""The methods behind an interval: test inversion, exact cells, the bootstrap."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from caltest._base.poisson_binomial import clopper_pearson
from caltest.binning import UniformBins
from caltest.errors import StatisticError
from caltest.exact import cell_null
from caltest.inference.analysis import Analysis
from caltest.inference.cell_noise import CellNoise, cell_noise
from caltest.inference.inversion import SIZES, UpperInversion, reached
from caltest.inference.pvalues import null_distribution, replicates_of
from caltest.predictions import FloatArray, IntArray, Predictions
from caltest.problem import Cells, Estimand
from caltest.simulate import Bootstrap, Run
from caltest.statistics.base import StatisticLike, prepare
from caltest.statistics.binned import BinnedError
from caltest.statistics.prepared import Prepared

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
FEW = (
    "cells hold {:.1f} rows on average: so few show little of the error, and the upper "
    "bound is high for that reason; fewer cells give a shorter interval"
)


@dataclass(frozen=True)
class IntervalProblem:
    """Of what an interval is wanted, a statistic of an induced problem, and how sure to be."""

    statistic: StatisticLike
    analysis: Analysis
    prepared: Prepared
    estimate: float
    level: float
    side: str
    run: Run

    @property
    def alpha(self) -> float:
        """The error probability of one bound."""
        alpha = (1.0 - self.level) / (2.0 if self.side == "two-sided" else 1.0)
        return round(alpha, 12)  # 1 − 0.95 is not 0.05, and p-values of draws are such fractions

    @property
    def induced(self) -> Predictions:
        """The data, seen through the lens."""
        return self.prepared.data

    @property
    def designed(self) -> bool:
        """Whether rows have clusters or weights."""
        return self.prepared.problem.designed

    @property
    def cells(self) -> Cells:
        """The partition of a binned statistic."""
        assert self.prepared.cells is not None
        return self.prepared.cells

    @property
    def estimand(self) -> Estimand:
        """Which error the statistic estimates."""
        assert self.prepared.estimand is not None
        return self.prepared.estimand


@dataclass(frozen=True)
class Bounds:
    """Bounds before they are cut to the range of the error; by default of the plain statistic."""

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
    """Invert tests of the size of the error; see :mod:`caltest.inference.inversion`."""
    estimand, size, cells = request.estimand, SIZES[request.estimand.size], request.cells
    noise = noise_of(request)
    null = size.calibrated(noise)
    floor, pvalue = estimand.factor * float(null.mean()), reached(null, size.observed(noise))
    alike = noise.parts is None and noise.squared_mass is None
    # Few cells: the exact law decides about 0, as the test does; for many, draws are quicker.
    if alike and request.induced.n_classes == 2 and len(cells) <= EXACT_CELLS:
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
    cancels = 0.0 < low < 1e-6 * size.observed(noise)  # what the bisection leaves of 0
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
    """Sum the residuals of the cells, and draw their noise."""
    rng = np.random.default_rng(request.run["rng"])
    return cell_noise(request.induced, request.cells, _n_draws(request), rng)


def _n_draws(request: IntervalProblem) -> int:
    """Return how many draws to make: fewer for many cells, but enough for the level."""
    n_resamples = request.run["n_resamples"]
    if request.alpha * (n_resamples + 1) < 1.0:
        raise StatisticError(
            f"level={request.level:g} needs at least {int(np.ceil(1.0 / request.alpha)) - 1} "
            f"draws, but n_resamples is {n_resamples}"
        )
    numbers = len(request.cells) * request.prepared.problem.d
    # Redrawn labels cost n a draw, which bounds their number as cells do
    if request.designed:
        numbers = max(numbers, request.induced.n // 64)
    elif not request.cells.lawful:
        numbers = max(numbers, request.cells.order.size // 64)
    # Quantiles of rare tails rest on 20 draws beyond them at least
    least = max(MIN_DRAWS, int(MIN_BEYOND / request.alpha))
    return min(n_resamples, max(least, MAX_DRAWN // numbers))


def by_cells(request: IntervalProblem) -> Bounds:
    """Bound the largest gap by Clopper–Pearson intervals of the cells' frequencies."""
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
    """Return how many rows the cells hold, their mean prediction, and how many events."""
    cells, size = request.cells, request.cells.counts
    return size, cells.expected[:, 0] / size, cells.sum(cells.problem.events)


def _redrawn(request: IntervalProblem) -> FloatArray:
    """Return the largest gap of rows drawn with replacement from those of a tally."""
    rows, times, place = request.cells.problem.expand()
    group = 2 * request.cells.of_unit[place] + rows.labels
    rng = np.random.default_rng(request.run["rng"])
    gaps = _largest_gaps(rows.residuals[:, 0], group, times, _n_draws(request), rng)
    return np.array([_gap(request, float(gap)) for gap in gaps])


def _largest_gaps(
    residuals: FloatArray, group: IntArray, times: FloatArray, draws: int, rng: np.random.Generator
) -> FloatArray:
    """Return the largest mean residual of a cell, without sign, of samples with replacement.

    Rows come ``times``, group 2b + y is outcome y in cell b; its rows are drawn as two atoms of the
    same mean and variance.
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
    """Return how plausible each largest gap is from above: all cells have to refute it."""
    from scipy.special import bdtr, bdtrc

    n, predicted, events = _in_cells(request)

    def chance(gap: float) -> float:
        rise, fall = predicted + gap, predicted - gap
        # Of either sign: so few events where the rate is p + gap, so many where it is p − gap
        fewer = np.where(rise < 1.0, bdtr(events, n, np.minimum(rise, 1.0)), 0.0)
        more = np.where(events > 0, bdtrc(events - 1, n, np.maximum(fall, 0.0)), 1.0)
        return float(np.maximum(fewer, np.where(fall > 0.0, more, 0.0)).max())

    return UpperInversion(
        chance, lambda gap: request.estimand.unscaled(_gap(request, gap)), request.estimate
    )


def _gap(request: IntervalProblem, gap: float) -> float:
    """Return the distance that belongs to a gap of the first of two probabilities."""
    return request.estimand.scaled(gap**2 if request.estimand.squared else gap)


def by_bootstrap(request: IntervalProblem) -> Bounds:
    """Take quantiles of the statistic over resampled rows, or clusters."""
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
    """Return the mean of the statistic when the model is calibrated: exact where that is cheap."""
    if request.prepared.null_mean is not None:
        return request.prepared.null_mean
    prepared, estimate = request.prepared, request.estimate
    if request.induced.n_clusters is not None:  # marginal law
        prepared = prepare(request.statistic, replace(request.induced, clusters=None))
    return null_distribution(request.statistic, prepared, estimate, "auto", request.run).mean()


def about_cells(cells: CellNoise) -> tuple[str, ...]:
    """Return what is said of cells of few rows."""
    mean = float((cells.size / cells.grain.mean(axis=1)).mean())
    return (FEW.format(mean),) if mean < FEW_ROWS else ()
