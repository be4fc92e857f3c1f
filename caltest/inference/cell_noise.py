"""What an interval knows of the data: residuals summed in cells, their noise, and draws of it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np

from caltest._base.compiled import kernel
from caltest._base.poisson_binomial import poisson_binomial
from caltest.inference.dependence import clustered, inflation
from caltest.inference.squared_error import Parts, added, summed
from caltest.predictions import FloatArray, IntArray, Predictions
from caltest.problem import Cells, TallyProblem
from caltest.problem.tally import CountDraws
from caltest.simulate import RedrawLabels
from caltest.simulate.agreement import Agreement

Shape = tuple[int, ...]
Rng = np.random.Generator
#: Rows of a cell from which its class counts are taken to be normal.
FEW = 10
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
    not count alike; of a weighted tally only Σ w² is known, ``own`` (L,).
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
    own: FloatArray | None = None

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
        moved = self.grain * self.size[:, None] * step * (1.0 - 2.0 * self.predicted - step)
        most = most * self.grain
        if k > 0.0:
            most = np.maximum(most, self.hidden)
        more = np.clip(np.maximum(self.variance - self.null_variance, moved), 0.0, most)
        calibrated = np.sqrt(self.null_variance) * self.calibrated
        z = np.roll(self.normal, 1, axis=0)
        q = np.clip(self.predicted + step, 0.0, 1.0)
        rarer = np.minimum(q, 1.0 - q)
        sign = np.where(q > 0.5, -1.0, 1.0)  # counts of the rarer outcome are Poisson
        rows = self.size[:, None] / self.grain
        scale = self.grain * np.where(rows * rarer < FEW, 1.0, np.sqrt(1.0 - rarer))
        events = _events(more / self.grain**2 / (1.0 - rarer), sign * z)
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
        shift = np.minimum(shift, 0.5 * slope)
        moved = self.null_variance + self.grain * self.size[:, None] * shift * (slope - shift)
        return np.maximum(self.larger_variance, moved)

    @cached_property
    def across(self) -> FloatArray:
        """The normal draws, with the draws last: (L, d, B)."""
        return np.ascontiguousarray(np.moveaxis(self.normal, 0, -1))

    def drawn(self, shift: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return draws of S and of V when the sums are off by ``shift``, both (L, d, B).

        Counts are rounded Cornish–Fisher quantiles of a binomial law of corrected variance.
        """
        grain = np.broadcast_to(self.grain, self.predicted.shape)
        size, sums = self.size[:, None] / grain, self.sums / grain
        p, q = self.predicted, self.predicted + shift / grain / size
        less = (self.null_variance + self.hidden) / grain**2 - size * p * (1.0 - p)
        sd = np.sqrt(np.maximum(size * q * (1.0 - q) + less, 0.0))
        skew = np.where(q == 0.5, 1e-9, 1.0 - 2.0 * q)
        fixed = (size, q, less, sd, skew, sums - np.rint(sums + size * p), grain)
        counts, scatter = np.empty_like(self.across), np.empty_like(self.across)
        _quantiles(self.across, *fixed, counts, scatter)
        return counts, scatter

    def share_error(self, size: FloatArray) -> float:
        """Standard error that the shares of the cells give to the mean of ``size`` (L,)."""
        mean = self.size @ size / self.n
        if self.parts is not None:
            moved = self.parts.mass * (size - mean)[self.parts.cell]
            return float(np.sqrt((np.bincount(self.parts.unit, moved) ** 2).sum()) / self.n)
        own = self.size if self.own is None else self.own
        return float(np.sqrt(own @ (size - mean) ** 2) / self.n)


@kernel
def _quantiles(  # type: ignore[no-untyped-def]
    z, size, q, less, sd, skew, moved, grain, sums_out, variances_out
):
    # Counts less what is predicted, and their variance, for every draw.
    for b in range(z.shape[0]):
        for k in range(z.shape[1]):
            n, deviation, sixth = size[b, k], sd[b, k], skew[b, k] / 6.0
            middle, unit = n * q[b, k] - sixth, grain[b, k]
            turn = -3.0 * deviation / skew[b, k]  # where the quantile would fall again
            lowest, highest = (turn, np.inf) if sixth > 0.0 else (-np.inf, turn)
            several, bias = n > 1.0, n / max(n - 1.0, 1.0)
            for r in range(z.shape[2]):
                x = min(max(z[b, k, r], lowest), highest)
                count = np.rint(middle + x * (deviation + sixth * x))
                count = min(max(count, 0.0), n)
                scatter = max(count * (1.0 - count / n) + less[b, k], 0.0)
                sums_out[b, k, r] = unit * (count + moved[b, k])
                variances_out[b, k, r] = unit**2 * (
                    scatter * bias if several else deviation * deviation
                )


def _events(mean: FloatArray, z: FloatArray) -> FloatArray:
    """Turn normals into Poisson counts less their mean, for any mean and nearly exactly."""
    from scipy.special import ndtri

    counts = np.rint(np.maximum(mean - 1.0 / 6.0 + z * (np.sqrt(mean) + z / 6.0), 1.0))
    return np.where(z > ndtri(np.exp(-mean)), counts, 0.0) - mean


def cell_noise(
    induced: Predictions | TallyProblem, cells: Cells, n_draws: int, rng: Rng
) -> CellNoise:
    """Sum residuals in cells and draw their noise.

    Of two classes only the first component is kept. Where rows have clusters or weights, units are
    what varies: V_b = (W_b² Σ_u |S_ub|² − |S_b|² Σ_u W_ub²) / (W_b² − Σ_u W_ub²), component by
    component, and the law of a calibrated model is that of the labels that a test redraws.
    O(n d + B L d); of several classes O(n d² + B L d²), with clusters or weights O(B n).
    """
    if not isinstance(induced, Predictions):
        return _tally_noise(induced, cells, n_draws, rng)
    order, starts = cells.order, cells.starts
    probs = induced.probs[order, :1] if induced.n_classes == 2 else induced.probs[order]
    residuals = (induced.labels[order][:, None] == np.arange(probs.shape[1])) - probs
    first, size = starts[:-1], np.diff(starts)[:, None].astype(np.float64)
    w = np.ones((1, 1)) if induced.weights is None else induced.weights[order, None]
    mass = size if induced.weights is None else np.add.reduceat(w, first)
    predicted = np.add.reduceat(w * probs, first) / mass
    sums = np.add.reduceat(w * residuals, first)
    null_variance = np.add.reduceat(w * probs * (1.0 - probs), first)
    apart = probs - np.repeat(predicted, np.diff(starts), axis=0)
    hidden = np.maximum(-2.0 * np.add.reduceat(apart * w**2 * residuals, first), 0.0)
    shape = (n_draws, *sums.shape)
    normal = _normal(probs, starts, shape, rng)
    grain, parts = np.ones(sums.shape), None
    if induced.n_clusters is None and induced.weights is None:
        squares = np.maximum(np.add.reduceat(residuals**2, first) - sums**2 / size, 0.0)
        variance = squares * np.where(size > 1, size / np.maximum(size - 1, 1), 0.0)
        if probs.shape[1] == 1:
            laws = (poisson_binomial(probs[a:b, 0]) for a, b in pairwise(starts))
            calibrated = _counts(laws, size * predicted, null_variance, shape, rng)
        else:
            calibrated = _class_counts(probs, starts, shape, rng)
    else:
        parts = Parts.of(induced, cells.of_unit)
        own = summed(parts.mass**2, parts.cell, len(mass))[:, None]
        squares = mass**2 * added(parts.sums**2, parts.cell, len(mass)) - own * sums**2
        single = np.bincount(parts.cell)[:, None] < 2
        variance = np.where(
            single, 0.0, np.maximum(squares, 0.0) / np.where(single, 1.0, mass**2 - own)
        )
        if not parts.rows:
            normal = _by_clusters(parts, sums / mass, normal, rng)
        drawn = _redrawn(induced, cells, shape, rng)
        drawn_variance = (drawn**2).mean(axis=0)
        plain = null_variance > 0.0
        grain = np.where(plain, drawn_variance / np.where(plain, null_variance, 1.0), own / mass)
        calibrated = np.where(plain, drawn / np.sqrt(np.where(plain, drawn_variance, 1.0)), normal)
        null_variance = drawn_variance
    seen = (mass[:, 0], predicted, sums, null_variance, variance, hidden)
    shares = rng.standard_normal(n_draws)
    return CellNoise(*seen, calibrated, normal, shares, grain, parts)


def _redrawn(induced: Predictions, cells: Cells, shape: Shape, rng: Rng) -> FloatArray:
    """Draw the sums of a calibrated model, with the dependence that a test allows for.

    Of two ways to depend on each other, that under which the sums vary more.
    """
    schemes: Any = [RedrawLabels()]
    if induced.n_clusters is not None:
        schemes = [each.scheme for each in clustered("auto", induced, stack=7)[0]]
    seed = int(rng.integers(2**63)), int(rng.integers(2**63))
    each = (_redrawn_by(scheme, induced, cells, shape, seed) for scheme in schemes)
    return max(each, key=lambda drawn: float((drawn**2 / cells.mass[:, None]).mean(axis=0).sum()))


def _redrawn_by(
    scheme: Any, induced: Predictions, cells: Cells, shape: Shape, seed: tuple[int, int]
) -> FloatArray:
    """Draw the sums of a calibrated model by a scheme."""
    factor = 1.0
    if induced.n_clusters is not None:
        agreement = Agreement.of(induced, scheme.coupling)
        # κ of the test, but for residuals that are centred: here errors are no dependence
        agreed = float(agreement(induced.labels[None, :])[0, 0])
        factor = float(np.sqrt(inflation(*agreement.sums(), agreed)))
    draw, k = scheme.drawer(induced), induced.n_classes
    code, length = cells.of_unit * k, len(cells) * k
    expected = cells.sum(
        induced.probs if induced.weights is None else induced.weights[:, None] * induced.probs
    )
    drawn, at_once = np.empty(shape), max(1, AT_ONCE // induced.n)
    for start in range(0, shape[0], at_once):
        labels = draw(seed, start, min(at_once, shape[0] - start))
        for r, row in enumerate(labels, start):
            seen = np.bincount(code + row, induced.weights, length).reshape(-1, k)
            drawn[r] = factor * (seen - expected)[:, : shape[2]]
    return drawn


def _tally_noise(micro: TallyProblem, cells: Any, n_draws: int, rng: Rng) -> CellNoise:
    """Read the same off a tally."""

    def within(values: FloatArray) -> FloatArray:
        return np.asarray(cells.sum(values))[:, None]

    w, p = micro.row_weight, micro.probs[:, 0]
    mass, own, size = (within(v) for v in (micro.mass, w**2 * micro.count, micro.count))
    sums, predicted = within(w * micro.excess), within(micro.mass * p) / mass
    plain, null_variance = within(micro.variance / w), within(micro.variance)
    products = within(w**2 * (micro.event_sums - micro.squares))  # Σ w² r p
    hidden = np.maximum(-2.0 * (products - predicted * within(w**2 * micro.excess)), 0.0)
    squares = within(w**2 * (micro.labels - 2.0 * micro.event_sums + micro.squares))
    squares = np.maximum(mass**2 * squares - own * sums**2, 0.0)
    variance = np.where(size > 1, squares / np.where(size > 1, mass**2 - own, 1.0), 0.0)
    grain = np.where(plain > 0.0, null_variance / np.where(plain > 0.0, plain, 1.0), own / mass)
    shape = (n_draws, *sums.shape)
    normal = rng.standard_normal(shape)
    if cells.lawful:
        calibrated = _counts(cells.laws(), mass * predicted, null_variance, shape, rng)
    else:
        gaps = CountDraws(
            cells.problem, lambda y: cells.sum(w * (y.events - micro.count * p), axis=1)
        )
        seed = int(rng.integers(2**63)), int(rng.integers(2**63))
        drawn = gaps.replicates(seed, 0, n_draws)[:, :, None]
        spread = np.sqrt(np.where(null_variance > 0.0, null_variance, 1.0))
        calibrated = np.where(null_variance > 0.0, drawn / spread, normal)
    seen = (mass[:, 0], predicted, sums, null_variance, variance, hidden)
    shares = rng.standard_normal(n_draws)
    weighted = None if micro.tally.weights is None else own[:, 0]
    return CellNoise(*seen, calibrated, normal, shares, grain, own=weighted)


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


def _by_clusters(parts: Parts, gaps: FloatArray, normal: FloatArray, rng: Rng) -> FloatArray:
    """Return normals of variance 1 that cells share as they share clusters: wild bootstrap.

    A draw multiplies the centred sums of a cluster by a normal number of its own; cells in which
    that moves nothing keep theirs.
    """
    import scipy.sparse

    multipliers = rng.standard_normal((len(normal), int(parts.unit.max()) + 1))
    for k in range(normal.shape[2]):
        centred = parts.sums[:, k] - parts.mass * gaps[parts.cell, k]
        squares = np.bincount(parts.cell, centred**2)
        shared = squares > 1e-12 * (1.0 + np.bincount(parts.cell, parts.sums[:, k]) ** 2)
        table: Any = scipy.sparse.csr_matrix((centred, (parts.unit, parts.cell)))
        drawn = (multipliers @ table) / np.sqrt(np.where(shared, squares, 1.0))
        normal[:, shared, k] = drawn[:, shared]
    return normal
