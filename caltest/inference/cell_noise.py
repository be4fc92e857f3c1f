"""What an interval knows of the data: residuals summed in cells, their noise, and draws of it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np

from caltest._base.poisson_binomial import poisson_binomial
from caltest.predictions import FloatArray, IntArray, Predictions
from caltest.statistics.cells import Cells
from caltest.tally import MicroCells

Shape = tuple[int, ...]
Rng = np.random.Generator
#: Rows of a cell from which its class counts are taken to be normal.
FEW = 10


@dataclass(frozen=True, eq=False)
class CellNoise:
    """What an interval needs to know of the data: residuals summed in L cells, and their noise.

    ``size`` (L,) are the rows n_b, ``predicted`` (L, d) the mean predictions, ``sums`` (L, d) the
    S_b, ``null_variance`` and ``variance`` (L, d) V0 and V, ``hidden`` (L, d) the part of V that
    belongs to errors that cancel. Draws of the noise have variance 1: ``calibrated`` (B, L, d)
    follows the law of counts of a calibrated model, ``normal`` (B, L, d) its limit; ``shares`` (B,)
    are normal. ``scatter`` (B, L), for clusters, is V in each draw as a multiple of its mean.
    """

    size: FloatArray
    predicted: FloatArray
    sums: FloatArray
    null_variance: FloatArray
    variance: FloatArray
    hidden: FloatArray
    calibrated: FloatArray
    normal: FloatArray
    shares: FloatArray
    scatter: FloatArray | None = None

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

    @cached_property
    def towards_middle(self) -> FloatArray:
        """Shifts of the sums as large as their noise, towards equal probabilities."""
        if self.sums.shape[1] == 1:
            return np.where(self.predicted > 0.5, -self.unit, self.unit)
        largest = self.predicted.argmax(axis=1)[:, None] == np.arange(self.sums.shape[1])
        shift = np.where(largest, -self.unit, self.unit)
        shift -= shift.mean(axis=1, keepdims=True)  # of several classes, shifts add up to 0
        return shift * np.sqrt((self.unit**2).sum(axis=1) / (shift**2).sum(axis=1))[:, None]

    def noise(self, k: float, most: float | FloatArray) -> FloatArray:
        """Return draws of the noise for Δ_b = k S_b / n_b and sums off by ``most`` at most."""
        step = k * self.gaps
        moved = self.size[:, None] * step * (1.0 - 2.0 * self.predicted - step)
        if k > 0.0:
            most = np.maximum(most, self.hidden)
        added = np.clip(np.maximum(self.variance - self.null_variance, moved), 0.0, most)
        calibrated = np.sqrt(self.null_variance) * self.calibrated
        z = np.roll(self.normal, 1, axis=0)
        if self.scatter is not None:
            return calibrated + np.sqrt(added) * z
        q = np.clip(self.predicted + step, 0.0, 1.0)
        rarer = np.minimum(q, 1.0 - q)
        sign = np.where(q > 0.5, -1.0, 1.0)  # counts of the rarer outcome are Poisson
        scale = np.where(self.size[:, None] * rarer < FEW, 1.0, np.sqrt(1.0 - rarer))
        return calibrated + sign * scale * _events(added / (1.0 - rarer), sign * z)

    def implied_variance(self, shift: FloatArray) -> FloatArray:
        """Variance that is safe when the means of the cells are off by ``shift``, towards 1/2."""
        slope = np.abs(1.0 - 2.0 * self.predicted)
        shift = np.minimum(shift, 0.5 * slope)
        moved = self.null_variance + self.size[:, None] * shift * (slope - shift)
        return np.maximum(self.larger_variance, moved)

    @cached_property
    def across(self) -> FloatArray:
        """The normal draws, with the draws last: (L, d, B)."""
        return np.ascontiguousarray(np.moveaxis(self.normal, 0, -1))

    def drawn(self, shift: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return draws of S and of V when the sums are off by ``shift``, both (L, d, B).

        Counts are rounded Cornish–Fisher quantiles of a binomial law of corrected variance.
        """
        size, p, z = self.size[:, None, None], self.predicted[..., None], self.across
        if self.scatter is not None:
            implied = self.implied_variance(np.abs(shift) / self.size[:, None])[..., None]
            return shift[..., None] + np.sqrt(implied) * z, implied * self.scatter.T[:, None]
        q = p + shift[..., None] / size
        less = (self.null_variance + self.hidden)[..., None] - size * p * (1.0 - p)
        sd = np.sqrt(np.maximum(size * q * (1.0 - q) + less, 0.0))
        skew = np.where(q == 0.5, 1e-9, 1.0 - 2.0 * q)
        turn = -3.0 * sd / skew  # where the quantile would fall again
        z = np.clip(z, np.where(skew > 0.0, turn, -np.inf), np.where(skew > 0.0, np.inf, turn))
        counts = np.clip(np.rint(size * q - skew / 6.0 + z * (sd + skew / 6.0 * z)), 0.0, size)
        scatter = np.maximum(counts * (1.0 - counts / size) + less, 0.0)
        variance = np.where(size > 1.0, scatter * (size / np.maximum(size - 1.0, 1.0)), sd**2)
        sums = self.sums[..., None]
        return counts - np.rint(sums + size * p) + sums, variance

    def share_error(self, size: FloatArray) -> float:
        """Standard error that the shares of the cells give to the mean of ``size`` (L,)."""
        mean = self.size @ size / self.n
        return float(np.sqrt(self.size @ (size - mean) ** 2) / self.n)


def _events(mean: FloatArray, z: FloatArray) -> FloatArray:
    """Turn normals into Poisson counts less their mean, for any mean and nearly exactly."""
    from scipy.special import ndtri

    counts = np.rint(np.maximum(mean - 1.0 / 6.0 + z * (np.sqrt(mean) + z / 6.0), 1.0))
    return np.where(z > ndtri(np.exp(-mean)), counts, 0.0) - mean


def cell_noise(
    induced: Predictions | MicroCells, cells: Cells, n_draws: int, rng: Rng
) -> CellNoise:
    """Sum residuals in cells and draw their noise.

    Of two classes only the first component is kept. Of data in clusters, clusters are what varies:
    V_b = G/(G−1) Σ_g (S_gb − n_gb D_b)², and draws are of whole clusters. O(n d + B L d); of
    several classes O(n d² + B L d²), with clusters O(B G d).
    """
    if isinstance(induced, MicroCells):
        return _tally_noise(induced, cells, n_draws, rng)
    order, starts = cells.order, cells.starts
    probs = induced.probs[order, :1] if induced.n_classes == 2 else induced.probs[order]
    residuals = (induced.labels[order][:, None] == np.arange(probs.shape[1])) - probs
    first, size = starts[:-1], np.diff(starts)[:, None].astype(np.float64)
    predicted = np.add.reduceat(probs, first) / size
    sums = np.add.reduceat(residuals, first)
    null_variance = np.add.reduceat(probs * (1.0 - probs), first)
    apart = probs - np.repeat(predicted, np.diff(starts), axis=0)
    hidden = np.maximum(-2.0 * np.add.reduceat(apart * residuals, first), 0.0)
    shape = (n_draws, *sums.shape)
    scatter = None
    if induced.clusters is None:
        squares = np.maximum(np.add.reduceat(residuals**2, first) - sums**2 / size, 0.0)
        variance = squares * np.where(size > 1, size / np.maximum(size - 1, 1), 0.0)
        normal = _normal(probs, starts, shape, rng)
        if probs.shape[1] == 1:
            laws = (poisson_binomial(probs[a:b, 0]) for a, b in pairwise(starts))
            calibrated = _counts(laws, size * predicted, null_variance, shape, rng)
        else:
            calibrated = _class_counts(probs, starts, shape, rng)
    else:
        cell = np.repeat(np.arange(len(sums)), np.diff(starts))
        own = induced.clusters[order]
        variance, normal, scatter = _of_clusters(residuals, cell, own, sums, shape, rng)
        null_variance = np.maximum(null_variance, variance)  # labels of a cluster go together
        calibrated = normal
    seen = (size[:, 0], predicted, sums, null_variance, variance, hidden)
    return CellNoise(*seen, calibrated, normal, rng.standard_normal(n_draws), scatter)


def _tally_noise(micro: MicroCells, cells: Cells, n_draws: int, rng: Rng) -> CellNoise:
    """Read the same off a tally."""

    def added(values: FloatArray) -> FloatArray:
        return np.asarray(cells.sum(values))[:, None]

    size, sums, null_variance = (added(v) for v in (micro.count, micro.residuals, micro.variance))
    predicted = added(micro.count * micro.probs[:, 0]) / size
    products = added(micro.event_sums - micro.squares)  # Σ r p
    hidden = np.maximum(-2.0 * (products - predicted * sums), 0.0)
    squares = added(micro.labels - 2.0 * micro.event_sums + micro.squares) - sums**2 / size
    variance = np.maximum(squares, 0.0) * np.where(size > 1, size / np.maximum(size - 1, 1), 0.0)
    shape = (n_draws, *sums.shape)
    normal = rng.standard_normal(shape)
    laws = cells.laws(micro.probs)
    calibrated = _counts(laws, size * predicted, null_variance, shape, rng)
    seen = (size[:, 0], predicted, sums, null_variance, variance, hidden)
    return CellNoise(*seen, calibrated, normal, rng.standard_normal(n_draws))


def _counts(
    laws: Iterable[Any], means: FloatArray, variances: FloatArray, shape: Shape, rng: Rng
) -> FloatArray:
    """Draw the counts of the cells from their exact laws, standardised."""
    draws = rng.standard_normal(shape)  # kept for cells whose predictions are all 0 or 1
    for b, (lowest, pmf, _) in enumerate(laws):
        if variances[b, 0] > 0.0:
            counts = np.searchsorted(np.cumsum(pmf), rng.random(shape[0]), side="right")
            counts = lowest + np.minimum(counts, pmf.size - 1)
            draws[:, b, 0] = (counts - means[b, 0]) / np.sqrt(variances[b, 0])
    return draws


def _class_counts(probs: FloatArray, starts: IntArray, shape: Shape, rng: Rng) -> FloatArray:
    """Draw class counts, standardised: normals, but multinomial counts in cells of few rows."""
    draws = _normal(probs, starts, shape, rng)
    for b, (first, last) in enumerate(pairwise(starts)):
        if last - first < FEW:
            mean, n = probs[first:last].mean(axis=0), int(last - first)
            counts = rng.multinomial(n, mean / mean.sum(), shape[0])
            draws[:, b] = (counts - n * mean) / np.sqrt(np.maximum(n * mean * (1 - mean), 1e-300))
    return draws


def _normal(probs: FloatArray, starts: IntArray, shape: Shape, rng: Rng) -> FloatArray:
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
    clusters: IntArray,
    sums: FloatArray,
    shape: Shape,
    rng: Rng,
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return the variance of the cell sums between clusters, draws of them, and their scatter.

    A draw multiplies the centred sums of a cluster by a normal number of its own: wild bootstrap.
    """
    import scipy.sparse

    n_cells, d = sums.shape
    n_clusters = int(clusters.max()) + 1
    pairs, place = np.unique(clusters * n_cells + cell, return_inverse=True)
    rows, columns = np.divmod(pairs, n_cells)
    count = np.bincount(place).astype(np.float64)
    size, units = np.bincount(cell), np.bincount(columns, minlength=n_cells)
    factor = np.where(units > 1, units / np.maximum(units - 1.0, 1.0), 0.0)
    weights = rng.standard_normal((shape[0], n_clusters))
    variance, normal = np.empty_like(sums), np.empty(shape)
    estimated = np.zeros(shape[:2])
    for k in range(d):
        total = np.bincount(place, residuals[:, k])
        centred = total - count * (sums[:, k] / size)[columns]
        table: Any = scipy.sparse.csr_matrix((centred, (rows, columns)), (n_clusters, n_cells))
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
