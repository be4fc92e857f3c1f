"""What an interval knows of the data: residuals summed in cells, their noise, and draws of it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise

import numpy as np

from caltest._base.poisson_binomial import poisson_binomial
from caltest.inference.cell_draws import (
    FEW,
    Shape,
    class_counts,
    correlated_normals,
    count_quantiles,
    event_counts,
    poisson_noise,
    shared_by_clusters,
)
from caltest.inference.dependence import clustered
from caltest.inference.squared_error import Parts, added, summed
from caltest.predictions import BoolArray, FloatArray, Predictions
from caltest.problem import Cells, MicroCells
from caltest.problem.tally import CountDraws
from caltest.simulate import LabelScheme, RedrawLabels, Scheme, SharedRedraws

Rng = np.random.Generator
#: Labels that are drawn together.
AT_ONCE = 2**20


@dataclass(frozen=True, eq=False)
class CellNoise:
    """What an interval needs to know of the data: residuals summed in L cells, and their noise.

    ``size`` (L,) are the rows n_b, or their weight, ``predicted`` (L, d) the mean predictions,
    ``sums`` (L, d) the S_b, ``null_variance`` and ``variance`` (L, d) V0 and V, ``hidden`` (L, d)
    the part of V that belongs to errors that cancel. Draws of the noise have variance 1:
    ``calibrated`` (B, L, d) follows the law of counts of a calibrated model, ``normal`` (B, L, d)
    its limit; ``shares`` (B,) are normal. ``grain`` (L, d) is V0 / Σ w p (1 − p): a cell varies
    like n_b / grain rows that move its sum by as much each. ``parts`` are those of units that do
    not count alike; of a weighted tally only Σ w² is known, ``squared_mass`` (L,).
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
    grain: FloatArray
    parts: Parts | None = None
    squared_mass: FloatArray | None = None

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
        # Σ r² = V0 + S (1 − 2 p̄ − S / n) + H: the second term belongs to Δ (inversion, at the top)
        step = k * self.gaps
        implied = self.grain * self.size[:, None] * step * (1.0 - 2.0 * self.predicted - step)
        most = most * self.grain
        if k > 0.0:
            most = np.maximum(most, self.hidden)
        more = np.clip(np.maximum(self.variance - self.null_variance, implied), 0.0, most)
        calibrated = np.sqrt(self.null_variance) * self.calibrated
        # Normals of another draw, independent of the calibrated part of this one
        z = np.roll(self.normal, 1, axis=0)
        q = np.clip(self.predicted + step, 0.0, 1.0)
        rarer = np.minimum(q, 1.0 - q)
        sign = np.where(q > 0.5, -1.0, 1.0)  # counts of the rarer outcome are Poisson
        rows = self.size[:, None] / self.grain
        # Many events vary like a binomial count; of few the skewness matters, and Poisson is wider
        scale = self.grain * np.where(rows * rarer < FEW, 1.0, np.sqrt(1.0 - rarer))
        events = poisson_noise(more / self.grain**2 / (1.0 - rarer), sign * z)
        return calibrated + sign * scale * events

    def counted(self, k: float, most: float | FloatArray) -> FloatArray:
        """Return draws of S for Δ_b = k S_b / n_b, no smaller than the counts nearby.

        Where a calibrated model varies by less than a label, its part of the noise is a
        fraction of one, by which no draw would reach labels that are all alike but unexpected.
        """
        sums = k * self.sums + self.noise(k, most)
        sure = self.null_variance < self.grain**2
        whole = self.grain * np.rint((sums - self.sums) / self.grain) + self.sums
        return np.where(sure & (np.abs(whole) > np.abs(sums)), whole, sums)

    def implied_variance(self, shift: FloatArray) -> FloatArray:
        """Variance that is safe when the means of the cells are off by ``shift``, towards 1/2."""
        slope = np.abs(1.0 - 2.0 * self.predicted)
        # p (1 − p) is largest at ½: a shift beyond it would lower the variance again
        shift = np.minimum(shift, 0.5 * slope)
        implied = self.null_variance + self.grain * self.size[:, None] * shift * (slope - shift)
        return np.maximum(self.larger_variance, implied)

    def draws(self, shift: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return draws of S and of V when the sums are off by ``shift``, both (L, d, B).

        Counts are rounded Cornish–Fisher quantiles of a binomial law of corrected variance.
        """
        grain = np.broadcast_to(self.grain, self.predicted.shape)
        size, sums = self.size[:, None] / grain, self.sums / grain
        p, q = self.predicted, self.predicted + shift / grain / size
        less = (self.null_variance + self.hidden) / grain**2 - size * p * (1.0 - p)
        sd = np.sqrt(np.maximum(size * q * (1.0 - q) + less, 0.0))
        # The kernel divides by the skewness: where it is 0, quantiles turn nowhere near
        skew = np.where(q == 0.5, 1e-9, 1.0 - 2.0 * q)
        fixed = (size, q, less, sd, skew, sums - np.rint(sums + size * p), grain)
        normal = np.ascontiguousarray(np.moveaxis(self.normal, 0, -1))
        counts, scatter = np.empty_like(normal), np.empty_like(normal)
        count_quantiles(normal, *fixed, counts, scatter)
        return counts, scatter

    def share_error(self, size: FloatArray) -> float:
        """Standard error that the shares of the cells give to the mean of ``size`` (L,)."""
        mean = self.size @ size / self.n
        if self.parts is not None:
            deviations = self.parts.mass * (size - mean)[self.parts.cell]
            return float(np.sqrt((np.bincount(self.parts.unit, deviations) ** 2).sum()) / self.n)
        squared_mass = self.size if self.squared_mass is None else self.squared_mass
        return float(np.sqrt(squared_mass @ (size - mean) ** 2) / self.n)

    def share_noise(self, size: FloatArray) -> FloatArray:
        """Draw by how much estimated shares of the cells lower the mean of ``size`` (L,): (B,).

        Rows of a cell are counts: the upper limit of their mean is that of Fay & Feuer (1997), with
        one more row where it raises the mean most. Gamma quantiles by Wilson & Hilferty.
        """
        mean = self.size @ size / self.n
        one = max(0.0, float(((size - mean) * self.grain.max(axis=1)).max())) / self.n
        variance = self.share_error(size) ** 2 + one**2
        # Cells of one size: their shares change nothing
        if variance <= 1e-24 * mean**2:
            return np.zeros_like(self.shares)
        root = np.sqrt(variance) / (mean + one) / 3.0  # a third of the coefficient of variation
        gamma = (mean + one) * np.maximum(1.0 - root**2 + root * self.shares, 0.0) ** 3
        return np.asarray(mean - gamma)


def cell_noise(
    induced: Predictions | MicroCells, cells: Cells, n_draws: int, rng: Rng
) -> CellNoise:
    """Sum residuals in cells and draw their noise.

    Of two classes only the first component is kept. Where rows have clusters or weights, units are
    what varies: V_b = (W_b² Σ_u |S_ub|² − |S_b|² Σ_u W_ub²) / (W_b² − Σ_u W_ub²), component by
    component, and the law of a calibrated model is that of the labels that a test redraws.
    O(n d + B L d); of several classes O(n d² + B L d²), with clusters or weights O(B n).
    """
    if not isinstance(induced, Predictions):
        return _tally_noise(induced, cells, n_draws, rng)
    p = induced.probs[:, :1] if induced.n_classes == 2 else induced.probs
    residuals = (induced.labels[:, None] == np.arange(p.shape[1])) - p
    w = np.ones((1, 1)) if induced.weights is None else induced.weights[:, None]
    mass, probs, starts = cells.mass[:, None], p[cells.order], cells.starts
    predicted, sums = cells.sum(w * p) / mass, cells.sum(w * residuals)
    null_variance = cells.sum(w * p * (1.0 - p))
    # H_b of errors that cancel in the cell; where they lower the scatter nothing is taken off
    apart = p - predicted[cells.of_unit]
    hidden = np.maximum(-2.0 * cells.sum(apart * w**2 * residuals), 0.0)
    shape = (n_draws, *sums.shape)
    normal = correlated_normals(probs, starts, shape, rng)
    grain, parts = np.ones(sums.shape), None
    if induced.n_clusters is None and induced.weights is None:
        variance = _scatter(mass, mass, cells.sum(residuals**2), sums, mass > 1)
        if probs.shape[1] == 1:
            laws = (poisson_binomial(probs[a:b, 0]) for a, b in pairwise(starts))
            calibrated = event_counts(laws, mass * predicted, null_variance, shape, rng)
        else:
            calibrated = class_counts(probs, starts, shape, rng)
    else:
        parts = Parts.of(induced, cells.of_unit)
        if induced.crossed is not None:  # the column along which sums vary more
            other = Parts.of(replace(induced, clusters=induced.crossed), cells.of_unit)
            parts = max(parts, other, key=lambda p: float((p.sums**2).sum()))
        squared_mass = summed(parts.mass**2, parts.cell, len(mass))[:, None]
        squares = added(parts.sums**2, parts.cell, len(mass))
        variance = _scatter(mass, squared_mass, squares, sums, np.bincount(parts.cell)[:, None] > 1)
        if not parts.rows:
            normal = shared_by_clusters(parts, sums / mass, normal, rng)
        replicates = _redrawn(induced, cells, shape, rng)
        replicate_variance = (replicates**2).mean(axis=0)
        # By how much a unit moves a sum: clusters and weights by more than a label
        grain = _over(replicate_variance, null_variance, squared_mass / mass)
        calibrated = _over(replicates, np.sqrt(replicate_variance), normal)
        null_variance = replicate_variance
    measured = (mass[:, 0], predicted, sums, null_variance, variance, hidden)
    shares = rng.standard_normal(n_draws)
    return CellNoise(*measured, calibrated, normal, shares, grain, parts)


def _scatter(
    mass: FloatArray, squared_mass: FloatArray, squares: FloatArray, sums: FloatArray,
    several: BoolArray,
) -> FloatArray:  # fmt: skip
    """Return V of cells from W, Σ W_u², Σ |S_u|² and S; 0 in cells of one unit."""
    spread = np.maximum(mass**2 * squares - squared_mass * sums**2, 0.0)
    return np.divide(spread, mass**2 - squared_mass, out=np.zeros_like(spread), where=several)


def _over(a: FloatArray, b: FloatArray, other: FloatArray) -> FloatArray:
    """Return a / b, but ``other`` where b is 0."""
    return np.divide(a, b, out=np.array(np.broadcast_to(other, a.shape)), where=b > 0.0)


def _redrawn(induced: Predictions, cells: Cells, shape: Shape, rng: Rng) -> FloatArray:
    """Draw the sums of a calibrated model: of two ways to depend, by that which varies more."""
    schemes: list[Scheme] = [RedrawLabels()]
    if induced.n_clusters is not None:
        schemes = [each.scheme for each in clustered("auto", induced, stack=7)[0]]
    seed = int(rng.integers(2**63)), int(rng.integers(2**63))
    each = (_redrawn_by(scheme, induced, cells, shape, seed) for scheme in schemes)
    return max(
        each, key=lambda replicates: float((replicates**2 / cells.mass[:, None]).mean(axis=0).sum())
    )


def _redrawn_by(
    scheme: Scheme, induced: Predictions, cells: Cells, shape: Shape, seed: tuple[int, int]
) -> FloatArray:
    """Draw the sums of a calibrated model by a scheme."""
    factor = 1.0
    if isinstance(scheme, SharedRedraws):
        ((_, agreement),) = scheme.agreements(induced)
        # κ of the test, but for residuals that are centred: here errors are no dependence
        factor = float(np.sqrt(agreement.inflation(scheme.dependence, centred=True)))
    assert isinstance(scheme, LabelScheme)
    draw, k = scheme.drawer(induced), induced.n_classes
    code, length = cells.of_unit * k, len(cells) * k
    w = 1.0 if induced.weights is None else induced.weights[:, None]
    expected = cells.sum(w * induced.probs)
    replicates, at_once = np.empty(shape), max(1, AT_ONCE // induced.n)
    for start in range(0, shape[0], at_once):
        labels = draw(seed, start, min(at_once, shape[0] - start))
        for r, row in enumerate(labels, start):
            sums = np.bincount(code + row, induced.weights, length).reshape(-1, k)
            replicates[r] = factor * (sums - expected)[:, : shape[2]]
    return replicates


def _tally_noise(micro: MicroCells, cells: Cells, n_draws: int, rng: Rng) -> CellNoise:
    """Read the same off a tally."""

    def within(values: FloatArray) -> FloatArray:
        return np.asarray(cells.sum(values))[:, None]

    w, p = 1.0 if micro.weight is None else micro.weight, micro.probs[:, 0]
    mass, squared_mass, size = (within(v) for v in (micro.mass, w**2 * micro.count, micro.count))
    sums, predicted = within(w * micro.excess), within(micro.mass * p) / mass
    plain, null_variance = within(micro.variance / w), within(micro.variance)
    products = within(w**2 * (micro.event_sums - micro.squares))  # Σ w² r p
    hidden = np.maximum(-2.0 * (products - predicted * within(w**2 * micro.excess)), 0.0)
    # Σ (y − p)² = Σ y − 2 Σ y p + Σ p², as y² = y
    squares = within(w**2 * (micro.labels - 2.0 * micro.event_sums + micro.squares))
    variance = _scatter(mass, squared_mass, squares, sums, size > 1)
    grain = _over(null_variance, plain, squared_mass / mass)
    shape = (n_draws, *sums.shape)
    normal = rng.standard_normal(shape)
    if cells.lawful:
        calibrated = event_counts(cells.laws(), mass * predicted, null_variance, shape, rng)
    else:
        gaps = CountDraws(micro, lambda y: cells.sum(w * (y.events - micro.count * p), axis=1))
        seed = int(rng.integers(2**63)), int(rng.integers(2**63))
        replicates = gaps.replicates(seed, 0, n_draws)[:, :, None]
        calibrated = _over(replicates, np.sqrt(null_variance), normal)
    measured = (mass[:, 0], predicted, sums, null_variance, variance, hidden)
    shares = rng.standard_normal(n_draws)
    weighted = None if micro.weight is None else squared_mass[:, 0]
    return CellNoise(*measured, calibrated, normal, shares, grain, squared_mass=weighted)
