"""Bounds for a binned calibration error: the errors that a test of the data would not reject.

Cell b holds n_b rows, whose residuals r_i = onehot(y_i) − p_i add up to S_b = n_b Δ_b + noise. Δ_b
is what the model gets wrong in the cell; the variance of the noise is V0_b if the model is
calibrated, and is estimated by V_b from the scatter of the residuals. Two sizes of error are
bounded, both averages over the cells with the shares π_b of the rows:

    θ₁ = Σ_b π_b Σ_k |Δ_bk|,  observed T₁ = (1/n) Σ_b Σ_k |S_bk|,
    θ₂ = Σ_b π_b |Δ_b|²,      observed T₂ = (1/n) Σ_b |S_b|² / n_b.

A bound is the last value of θ for which the observed T would not be surprising. That needs the law
of T for each θ, hence a direction for Δ and a variance for the noise. Each is chosen so that the
bound errs on the safe side:

* θ₁ from below: T₁ ≤ θ₁ + (1/n) Σ |noise|, whatever the direction (triangle inequality).
* θ₁ from above: for given θ₁, T₁ is smallest when Δ_b is proportional to the noise of its cell,
  since E|μ + σZ| has slope 2Φ(μ/σ) − 1 in μ, and equal slopes minimise the sum.
* θ₂, both sides: T₂ is nearly a non-central χ² that depends on Δ through θ₂ only, so the observed
  direction will do: Δ_b = k S_b / n_b, θ₂ = k² T₂.
* Noise adds to T, so a bound from below takes the larger of V and the variance that Δ_b implies,
  but none that θ does not allow: moving the mean of a cell by μ changes its variance by at most
  |μ|. At θ = 0 that leaves V0: 0 lies within the bound exactly if the test does not reject.
* For a bound from above, noise that is not there would hide error: only V, which the scatter shows,
  may raise T. Its spread gets the largest of V0, V and the variance that the hypothesis implies,
  because a cell in which nothing has gone wrong yet shows no scatter.

The shares π_b are estimated, too, and T varies with them, by Var_π(…)/n: in proportion to θ up to
the observed T, and not beyond, where the observed gaps are mostly noise.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np

from caltest.counts import poisson_binomial
from caltest.nulls import reaching
from caltest.predictions import FloatArray, IntArray, Predictions

#: Rows of a cell from which its class counts are taken to be normal.
FEW = 10


@dataclass(frozen=True, eq=False)
class CellSums:
    """What an interval needs to know of the data: residuals summed in L cells, and their noise.

    ``size`` (L,) are the rows n_b, ``predicted`` (L, d) the mean predictions, ``sums`` (L, d) the
    S_b, ``null_variance`` and ``variance`` (L, d) V0 and V. Draws of the noise have variance 1:
    ``calibrated`` (B, L, d) follows the law of counts of a calibrated model, ``normal`` (B, L, d)
    its limit, and ``scatter`` (B, L) is V in each draw, as a multiple of its mean; ``shares`` (B,)
    are normal.
    """

    size: FloatArray
    predicted: FloatArray
    sums: FloatArray
    null_variance: FloatArray
    variance: FloatArray
    calibrated: FloatArray
    normal: FloatArray
    scatter: FloatArray
    shares: FloatArray

    @cached_property
    def n(self) -> float:
        """Number of rows."""
        return float(self.size.sum())

    @cached_property
    def gaps(self) -> FloatArray:
        """S_b / n_b, shape (L, d)."""
        return self.sums / self.size[:, None]

    @cached_property
    def larger_variance(self) -> FloatArray:
        """The larger of V0 and V."""
        return np.maximum(self.null_variance, self.variance)

    @cached_property
    def unit(self) -> FloatArray:
        """Standard deviation of the noise; a trace of it where all predictions are 0 or 1."""
        return np.sqrt(np.maximum(self.larger_variance, 1e-12 * self.size[:, None]))

    def noise(self, k: float, most: float | FloatArray) -> FloatArray:
        """Return draws of the noise for Δ_b = k S_b / n_b and sums off by ``most`` at most."""
        step = k * self.gaps
        moved = self.size[:, None] * step * (1.0 - 2.0 * self.predicted - step)
        added = np.clip(np.maximum(self.variance - self.null_variance, moved), 0.0, most)
        # Normal: the counts of a calibrated model may be all but certain, and do not stretch.
        calibrated = np.sqrt(self.null_variance) * self.calibrated
        return calibrated + np.sqrt(added) * np.roll(self.normal, 1, axis=0)

    def implied_variance(self, shift: FloatArray) -> FloatArray:
        """Variance that is safe when the means of the cells are off by ``shift``, towards 1/2."""
        slope = np.abs(1.0 - 2.0 * self.predicted)
        shift = np.minimum(shift, 0.5 * slope)
        moved = self.null_variance + self.size[:, None] * shift * (slope - shift)
        return np.maximum(self.larger_variance, moved)

    def share_error(self, size: FloatArray) -> float:
        """Standard error that the shares of the cells give to the mean of ``size`` (L,)."""
        mean = self.size @ size / self.n
        return float(np.sqrt(self.size @ (size - mean) ** 2) / self.n)


# --- |Δ|, the error of ECE ---------------------------------------------------------------------


def absolute_error(cells: CellSums) -> float:
    """Return T₁."""
    return float(np.abs(cells.sums).sum()) / cells.n


def absolute_null(cells: CellSums) -> FloatArray:
    """Return draws of T₁ of a calibrated model."""
    return np.abs(cells.noise(0.0, 0.0)).sum(axis=(1, 2)) / cells.n


def absolute_corrected(cells: CellSums) -> float:
    """Return T₁ less its bootstrap bias, in the normal limit of the cell sums.

    T₁ − (E T₁* − T₁) with S_b* normal around S_b: the mean of a folded normal is in closed form.
    """
    from scipy.special import erf

    gap, sigma = np.abs(cells.sums), np.sqrt(cells.variance)
    ratio = np.minimum(gap / np.maximum(sigma, 1e-300), 40.0)
    folded = sigma * np.sqrt(2 / np.pi) * np.exp(-0.5 * ratio**2) + gap * erf(ratio / np.sqrt(2))
    return float((2.0 * gap - folded).sum()) / cells.n


def absolute_low(cells: CellSums, alpha: float) -> float:
    """Return the smallest θ₁ for which T₁ is surprisingly large with a chance above ``alpha``."""
    observed = absolute_error(cells)
    error = cells.share_error(np.abs(cells.gaps).sum(axis=1))

    def plausible(theta: float) -> bool:
        noise = np.abs(cells.noise(theta / observed, cells.n * theta))
        values = theta + noise.sum(axis=(1, 2)) / cells.n + theta / observed * error * cells.shares
        return theta >= observed or reached(values, observed) > alpha

    return 0.0 if plausible(0.0) else _boundary(lambda x: not plausible(x), observed)


def absolute_high(cells: CellSums, alpha: float) -> float:
    """Return the largest θ₁ for which T₁ is surprisingly small with a chance of ``alpha``."""
    observed = absolute_error(cells)
    error = cells.share_error(np.abs(cells.gaps).sum(axis=1))
    towards = np.where(cells.sums < 0.0, -cells.unit, cells.unit)
    total = float(cells.unit.sum()) / cells.n
    others = np.roll(cells.normal, 1, axis=0)  # of other draws, so independent of its own
    # Counts are whole: one that meets its prediction does so by chance, a normal sum never would.
    met = observed * cells.n < 0.5

    def plausible(theta: float) -> bool:
        shift = theta / total * towards
        implied = cells.implied_variance(np.abs(shift) / cells.size[:, None])
        drawn = shift + np.sqrt(cells.variance) * cells.normal
        shown = np.abs(cells.sums + np.rint(drawn - cells.sums) if met else drawn)
        rest = np.copysign(np.sqrt(np.maximum(implied - cells.variance, 0.0)), towards) * others
        values = (shown + rest).sum(axis=(1, 2)) / cells.n
        values += min(1.0, theta / max(observed, 1e-300)) * error * cells.shares
        return reached(-values, -observed) >= alpha

    return _boundary(plausible, max(2.0 * observed, total))


# --- Δ², the squared error ---------------------------------------------------------------------


def squared_error(cells: CellSums) -> float:
    """Return T₂."""
    return float((cells.sums**2 / cells.size[:, None]).sum()) / cells.n


def squared_null(cells: CellSums) -> FloatArray:
    """Return draws of T₂ of a calibrated model."""
    return (cells.noise(0.0, 0.0) ** 2 / cells.size[:, None]).sum(axis=(1, 2)) / cells.n


def squared_corrected(cells: CellSums) -> float:
    """Return T₂ less what noise adds to it, (1/n) Σ V_b / n_b: the statistic over pairs of rows.

    Negative values mean "less than noise". A cell without a second row keeps its square.
    """
    return float(((cells.sums**2 - cells.variance) / cells.size[:, None]).sum()) / cells.n


def squared_low(cells: CellSums, alpha: float) -> float:
    """Return the smallest θ₂ for which T₂ is surprisingly large with a chance above ``alpha``."""
    observed = squared_error(cells)
    error = cells.share_error((cells.gaps**2).sum(axis=1))
    root = np.sqrt(cells.size[:, None])
    most = root * np.sqrt(cells.n * observed)  # |n_b Δ_b|, if all of θ₂ = T₂ were in one cell

    def plausible(k: float) -> bool:
        values = ((k * cells.sums + cells.noise(k, k * most)) / root) ** 2
        values = values.sum(axis=(1, 2)) / cells.n + k * k * error * cells.shares
        return k >= 1.0 or reached(values, observed) > alpha

    return 0.0 if plausible(0.0) else _boundary(lambda k: not plausible(k), 1.0) ** 2 * observed


def squared_high(cells: CellSums, alpha: float) -> float:
    """Return the largest θ₂ for which T₂ less its noise is surprisingly small with ``alpha``."""
    observed = squared_corrected(cells)
    towards = cells.sums if np.any(cells.sums) else cells.unit
    root = np.sqrt(cells.size[:, None])
    scale = float(((towards / root) ** 2).sum()) / cells.n
    error = cells.share_error(((towards / cells.size[:, None]) ** 2).sum(axis=1))

    def plausible(k: float) -> bool:
        implied = cells.implied_variance(k * np.abs(towards) / cells.size[:, None])
        values = ((k * towards + np.sqrt(implied) * cells.normal) / root) ** 2
        noise = cells.scatter @ (implied.sum(axis=1) / cells.size)
        values = (values.sum(axis=(1, 2)) - noise) / cells.n
        values += min(1.0, k * k) * error * cells.shares
        return reached(-values, -observed) >= alpha

    return _boundary(plausible, 1.0) ** 2 * scale


# --- what both need ----------------------------------------------------------------------------


@dataclass(frozen=True)
class Size:
    """A size of error: its observed value, the law of that, its debiased value, its bounds."""

    observed: Callable[[CellSums], float]
    calibrated: Callable[[CellSums], FloatArray]
    corrected: Callable[[CellSums], float]
    low: Callable[[CellSums, float], float]
    high: Callable[[CellSums, float], float]


ABSOLUTE = Size(absolute_error, absolute_null, absolute_corrected, absolute_low, absolute_high)
SQUARED = Size(squared_error, squared_null, squared_corrected, squared_low, squared_high)


def reached(values: FloatArray, observed: float) -> float:
    """Return P(value ≥ observed), counting the data as one more draw."""
    return float(1 + reaching(observed, values).sum()) / (1 + values.size)


def _boundary(holds: Callable[[float], bool], start: float) -> float:
    """Return where ``holds`` ends, to four digits: by doubling, then by bisection."""
    low, high = 0.0, start
    while holds(high) and high < 1e9 * start:
        low, high = high, 2.0 * high
    while high - low > 1e-4 * high and high > 1e-9 * start:
        middle = 0.5 * (low + high)
        low, high = (middle, high) if holds(middle) else (low, middle)
    return low


def cell_sums(
    induced: Predictions,
    order: IntArray,
    starts: IntArray,
    groups: IntArray | None,
    n_draws: int,
    rng: np.random.Generator,
) -> CellSums:
    """Sum residuals in cells and draw their noise.

    Of two classes only the first component is kept. With ``groups``, the cluster of every row,
    clusters are what varies: V_b = G/(G−1) Σ_g (S_gb − n_gb D_b)², and draws are of whole clusters.

    Notes
    -----
    O(n d) for the sums, O(B L d) for the draws; of several classes O(n d²) and O(B L d²), with
    clusters O(B G d).
    """
    probs = induced.probs[order, :1] if induced.n_classes == 2 else induced.probs[order]
    residuals = (induced.labels[order][:, None] == np.arange(probs.shape[1])) - probs
    first, size = starts[:-1], np.diff(starts)[:, None].astype(np.float64)
    predicted = np.add.reduceat(probs, first) / size
    sums = np.add.reduceat(residuals, first)
    null_variance = np.add.reduceat(probs * (1.0 - probs), first)
    shape = (n_draws, *sums.shape)
    if groups is None:
        squares = np.maximum(np.add.reduceat(residuals**2, first) - sums**2 / size, 0.0)
        variance = squares * np.where(size > 1, size / np.maximum(size - 1, 1), 0.0)
        normal = _normal(probs, starts, shape, rng)
        calibrated = (
            _counts(probs[:, 0], starts, null_variance, shape, rng)
            if probs.shape[1] == 1
            else _class_counts(probs, starts, shape, rng)
        )
        units = size[:, 0]
        scatter = rng.chisquare(np.maximum(units - 1.0, 1.0), shape[:2])
        scatter = np.where(units > 1, scatter / np.maximum(units - 1.0, 1.0), 1.0)
    else:
        cell = np.repeat(np.arange(len(sums)), np.diff(starts))
        variance, normal, scatter = _of_clusters(residuals, cell, groups[order], sums, shape, rng)
        null_variance = np.maximum(null_variance, variance)  # labels of a cluster go together
        calibrated = normal
    return CellSums(
        size[:, 0],
        predicted,
        sums,
        null_variance,
        variance,
        calibrated,
        normal,
        scatter,
        rng.standard_normal(n_draws),
    )


def _counts(
    p: FloatArray,
    starts: IntArray,
    variance: FloatArray,
    shape: tuple[int, ...],
    rng: np.random.Generator,
) -> FloatArray:
    """Draw the counts of the cells from their exact laws, standardised."""
    draws = rng.standard_normal(shape)  # kept for cells whose predictions are all 0 or 1
    for b, (first, last) in enumerate(pairwise(starts)):
        rows = p[first:last]
        if variance[b, 0] > 0.0:
            lowest, pmf, _ = poisson_binomial(rows)
            counts = np.searchsorted(np.cumsum(pmf), rng.random(shape[0]), side="right")
            counts = lowest + np.minimum(counts, pmf.size - 1)
            draws[:, b, 0] = (counts - rows.sum()) / np.sqrt(variance[b, 0])
    return draws


def _class_counts(
    probs: FloatArray, starts: IntArray, shape: tuple[int, ...], rng: np.random.Generator
) -> FloatArray:
    """Draw class counts, standardised: normals, but multinomial counts in cells of few rows."""
    draws = _normal(probs, starts, shape, rng)
    for b, (first, last) in enumerate(pairwise(starts)):
        if last - first < FEW:
            mean, n = probs[first:last].mean(axis=0), int(last - first)
            counts = rng.multinomial(n, mean / mean.sum(), shape[0])
            draws[:, b] = (counts - n * mean) / np.sqrt(np.maximum(n * mean * (1 - mean), 1e-300))
    return draws


def _normal(
    probs: FloatArray, starts: IntArray, shape: tuple[int, ...], rng: np.random.Generator
) -> FloatArray:
    """Draw normals with the correlations of the class counts, Σ diag(p_i) − p_i p_iᵀ."""
    draws = rng.standard_normal(shape)
    if shape[2] > 1:
        for b, (first, last) in enumerate(pairwise(starts)):
            rows = probs[first:last]
            values, vectors = np.linalg.eigh(np.diag(rows.sum(axis=0)) - rows.T @ rows)
            root = vectors * np.sqrt(np.maximum(values, 0.0))
            scale = np.sqrt((root**2).sum(axis=1))
            draws[:, b] = draws[:, b] @ root.T / np.maximum(scale, 1e-150)
    return draws


def _of_clusters(
    residuals: FloatArray,
    cell: IntArray,
    groups: IntArray,
    sums: FloatArray,
    shape: tuple[int, ...],
    rng: np.random.Generator,
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return the variance of the cell sums between clusters, draws of them, and their scatter.

    A draw multiplies the centred sums of each cluster by a normal number of its own (the wild
    bootstrap of clusters), so that cells that share clusters vary together.
    """
    import scipy.sparse

    n_cells, d = sums.shape
    n_groups = int(groups.max()) + 1
    pairs, place = np.unique(groups * n_cells + cell, return_inverse=True)
    rows, columns = np.divmod(pairs, n_cells)
    count = np.bincount(place).astype(np.float64)
    size, units = np.bincount(cell), np.bincount(columns, minlength=n_cells)
    factor = np.where(units > 1, units / np.maximum(units - 1.0, 1.0), 0.0)
    weights = rng.standard_normal((shape[0], n_groups))
    variance, normal = np.empty_like(sums), np.empty(shape)
    estimated = np.zeros(shape[:2])
    for k in range(d):
        total = np.bincount(place, residuals[:, k])
        centred = total - count * (sums[:, k] / size)[columns]
        table: Any = scipy.sparse.csr_matrix((centred, (rows, columns)), (n_groups, n_cells))
        squares = np.asarray(table.multiply(table).sum(axis=0)).ravel()
        variance[:, k] = factor * squares
        drawn = weights @ table
        lone = squares <= 1e-12 * (1.0 + sums[:, k] ** 2)
        normal[:, :, k] = drawn / np.sqrt(np.where(lone, 1.0, squares))
        normal[:, lone, k] = rng.standard_normal((shape[0], int(lone.sum())))
        estimated += (weights**2) @ table.multiply(table).tocsr()
    total_squares = variance.sum(axis=1) / np.maximum(factor, 1.0)
    scatter = np.where(total_squares > 0.0, estimated / np.maximum(total_squares, 1e-300), 1.0)
    return variance, normal, scatter
