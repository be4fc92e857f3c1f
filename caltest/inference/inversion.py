"""Bounds by inversion of tests: errors that are not rejected, and the noise of the cells.

T₁ estimates θ₁ = Σ_b |Δ_b|, T₂ estimates θ₂ = Σ_b Δ_b². :class:`CellNoise` holds the residual sums
of the cells with draws of their noise, :func:`cell_noise` makes it; :class:`UpperInversion` bounds
an error from above. :func:`followed_bounds` and :func:`followed_difference` are for follow-up.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise

import numpy as np
from scipy.special import ndtr, ndtri

from caltest._base import BoolArray
from caltest._base.arrays import RNG, FloatArray, IntArray, reaching
from caltest.data import Predictions
from caltest.inference.dependence import Parts, added, agreeing_schemes, summed
from caltest.nulls import LabelScheme, Lanes, RedrawLabels, Scheme, SharedRedraws
from caltest.nulls.lanes import kernel
from caltest.nulls.laws import poisson_binomial
from caltest.statistics import Cells
from caltest.statistics.binned import BinnedError
from caltest.statistics.prepared import Reader
from caltest.statistics.rows import FollowupProblem
from caltest.tallies import MicroCells
from caltest.tallies.problems import CountDraws

#: Sums that come so close to the observed ones meet them: counts are whole.
NEARLY_EQUAL = 1.0 - 1e-6


#: Share of the draws for θ = 0 below which an observed error is luck.
CHANCE_SHARE = 0.25


@dataclass(frozen=True)
class UpperInversion:
    """Test of the hypothesis that an error is at least some value, and the upper bound it gives.

    Errors are numbered by real k ≥ 0: ``theta(k)`` is the error, rising in k, and ``chance(k)`` its
    p-value, the probability that such an error shows no more than was observed, falling in k.
    Searches begin at ``start``.
    """

    chance: Callable[[float], float]
    theta: Callable[[float], float]
    start: float

    def high(self, alpha: float) -> float:
        """Return the largest error whose p-value is at least ``alpha``.

        It is the upper confidence bound with error probability ``alpha``.
        """
        return self.theta(_boundary(lambda k: self.chance(k) >= alpha, self.start))

    def pvalue(self, margin: float) -> float:
        """Return the p-value, a float, of the hypothesis that the error is at least ``margin``."""
        return self.chance(_boundary(lambda k: self.theta(k) <= margin, self.start))


def absolute_error(cells: CellNoise, sums: FloatArray) -> FloatArray:
    """Return the l1 error T₁ = Σ_b |S_b| / n of residual sums, observed or drawn, shape (…).

    (…) are the leading axes of ``sums``, such as draws. ``sums`` (…, L, d) hold S_b, the sum of
    residuals in cell b, for L cells and d classes; |·| is the l1 norm over the classes. ``cells``
    describes the cells, with the number n of rows.
    """
    return np.asarray(np.abs(sums).sum(axis=(-2, -1)) / cells.n)


def absolute_corrected(cells: CellNoise) -> float:
    """Return the l1 error T₁ = Σ_b |S_b| / n debiased by the bootstrap: T₁ − (E T₁* − T₁).

    S_b is the sum of residuals in cell b, and S_b* is normal around it, so that E T₁* is a sum of
    means of folded normals. ``cells`` has the sums S_b, their variances, and the number n of rows.
    """
    from scipy.special import erf

    gap, sigma = np.abs(cells.sums), np.sqrt(cells.variance)
    # Leone, Nelson & Nottingham (1961): E|μ + σZ|; from 40 σ on the normal is not folded
    with np.errstate(over="ignore"):  # of a large gap without noise
        ratio = np.minimum(gap / np.maximum(sigma, 1e-300), 40.0)
    folded = sigma * np.sqrt(2 / np.pi) * np.exp(-0.5 * ratio**2) + gap * erf(ratio / np.sqrt(2))
    return float((2.0 * gap - folded).sum()) / cells.n


def absolute_low(cells: CellNoise, alpha: float) -> float:
    """Return the lower bound of the true l1 error.

    It is the smallest error that the data do not refute. An error is refuted if draws of the error
    reach the observed value with probability ``alpha`` or less. ``cells`` has the observed residual
    sums, and draws of their noise.
    """
    observed = float(absolute_error(cells, cells.sums))
    error = cells.share_error(np.abs(cells.mean_residuals).sum(axis=1))

    def plausible(theta: float) -> bool:
        noise = np.abs(cells.noise(theta / observed, cells.n * theta))
        values = theta + noise.sum(axis=(1, 2)) / cells.n + theta / observed * error * cells.shares
        return theta >= observed or reached(values, observed) > alpha

    return _boundary(lambda theta: not plausible(theta), observed)


def absolute_above(cells: CellNoise) -> UpperInversion:
    """Return the upper inversion for the true l1 error, which gives p-values and the upper bound.

    Among all errors of one size it takes the one under which the estimate is smallest. ``cells``
    has the observed residual sums, and draws of their noise. Method ``pvalue`` gives the p-value of
    an error, ``high`` the upper bound at an error probability.
    """
    error = cells.share_error(np.abs(cells.mean_residuals).sum(axis=1))
    # Δ_b proportional to the noise of its cell makes T₁ smallest for a given θ₁
    towards = np.where(cells.sums < 0.0, -cells.unit, cells.unit)
    total = float(cells.unit.sum()) / cells.n
    others = np.roll(cells.normal, 1, axis=0)  # of other draws, so independent of its own

    def values(theta: float, share: float) -> FloatArray:
        shift = theta / total * towards
        implied = cells.implied_variance(np.abs(shift) / cells.size[:, None])
        scattered = np.abs(shift + np.sqrt(cells.variance) * cells.normal)
        # What the hypothesis varies by beyond the scatter widens T₁, but may not raise its mean
        rest = np.copysign(np.sqrt(np.maximum(implied - cells.variance, 0.0)), towards) * others
        return (scattered + rest).sum(axis=(1, 2)) / cells.n + share * error * cells.shares

    by_luck = float(np.quantile(values(0.0, 0.0), CHANCE_SHARE))
    observed = max(float(absolute_error(cells, cells.sums)), by_luck)

    def chance(theta: float) -> float:
        # Beyond the observed T₁ gaps are mostly noise, and so is their mean over estimated shares
        share = min(1.0, theta / max(observed, 1e-300))
        return reached(-values(theta, share), -observed)

    return UpperInversion(chance, lambda theta: theta, max(2.0 * observed, total))


def squared_error(cells: CellNoise, sums: FloatArray) -> FloatArray:
    """Return the squared error T₂ = Σ_b |S_b|² / (n n_b) of residual sums, observed or drawn.

    The shape is (…), the leading axes of ``sums``, such as draws. ``sums`` (…, L, d) hold S_b, the
    sum of residuals in cell b, for L cells and d classes. ``cells`` describes the cells, with the
    numbers n_b of rows, of sum n.
    """
    return np.asarray((sums**2 / cells.size[:, None]).sum(axis=(-2, -1)) / cells.n)


def squared_corrected(cells: CellNoise) -> float:
    """Return the squared error debiased: Σ_b (|S_b|² − V_b) / (n n_b).

    S_b is the residual sum of cell b with n_b of n rows, and V_b its estimated variance, summed
    over classes; ``cells`` has all of them. A cell of one row keeps its square.
    """
    return float(((cells.sums**2 - cells.variance) / cells.size[:, None]).sum()) / cells.n


def squared_low(cells: CellNoise, alpha: float) -> float:
    """Return the lower bound of the true squared error.

    It is the smallest error that the data do not refute. An error is refuted if draws of the error
    reach the observed value with probability ``alpha`` or less. ``cells`` has the observed residual
    sums, and draws of their noise.
    """
    observed = float(squared_error(cells, cells.sums))
    error = cells.share_error((cells.mean_residuals**2).sum(axis=1))
    root = np.sqrt(cells.size[:, None])
    most = root * np.sqrt(cells.n * observed)  # Σ|error| of a cell, if all of θ₂ = T₂ were in it

    def plausible(k: float) -> bool:
        values = (cells.counted(k, k * most) / root) ** 2
        values = values.sum(axis=(1, 2)) / cells.n + k * k * error * cells.shares
        return k >= 1.0 or reached(values, NEARLY_EQUAL * observed) > alpha

    return _boundary(lambda k: not plausible(k), 1.0) ** 2 * observed


def squared_above(cells: CellNoise) -> UpperInversion:
    """Return the upper inversion for the true squared error, from the debiased estimate.

    ``cells`` has the observed residual sums, and draws of their noise. Method ``pvalue`` gives the
    p-value of an error, ``high`` the upper bound at an error probability.
    """
    size, middle = cells.size[:, None], cells.towards_middle
    # The two directions must not work against each other
    along = (cells.sums * middle).sum(axis=1, keepdims=True)
    towards = np.where(along < 0.0, -cells.sums, cells.sums) + middle
    # A frequency stays within [0, 1]: from there on a larger θ₂ means other shares
    room = size * np.where(towards > 0.0, 1.0 - cells.predicted, cells.predicted)
    furthest = float((room**2 / size).sum()) / cells.n
    least = float((np.abs(towards) / np.maximum(room, 1e-300)).min())

    def shift(k: float) -> FloatArray:
        return np.clip(k * towards, -room, room)

    def unreached(k: float) -> float:
        return furthest * max(0.0, k * least - 1.0)

    def values(k: float) -> FloatArray:
        sums, variance = cells.draws(shift(k))
        squares = ((sums**2 - variance) / size[..., None]).sum(axis=(0, 1)) / cells.n
        noise = cells.share_noise(((shift(min(k, 1.0)) / size) ** 2).sum(axis=1))
        return squares + unreached(k) + noise

    observed = max(squared_corrected(cells), float(np.quantile(values(0.0), CHANCE_SHARE)))

    return UpperInversion(
        chance=lambda k: reached(-values(k), -observed),
        theta=lambda k: float((shift(k) ** 2 / size).sum()) / cells.n + unreached(k),
        start=1.0,
    )


@dataclass(frozen=True)
class Size:
    """Kind of binned error, l1 or squared, as four functions of the cells' residual sums and noise.

    ``value(cells, sums)`` computes the error of residual sums (…, L, d) of L cells and d classes,
    observed or drawn, shape (…). ``corrected(cells)`` computes the debiased error. ``low(cells,
    alpha)`` computes the lower bound with error probability alpha, and ``above(cells)`` prepares
    the upper bound.
    """

    value: Callable[[CellNoise, FloatArray], FloatArray]
    corrected: Callable[[CellNoise], float]
    low: Callable[[CellNoise, float], float]
    above: Callable[[CellNoise], UpperInversion]


CELL_SIZES = {
    "absolute": Size(absolute_error, absolute_corrected, absolute_low, absolute_above),
    "squared": Size(squared_error, squared_corrected, squared_low, squared_above),
}


def reached(values: FloatArray, observed: float) -> float:
    """Return the Monte Carlo p-value (1 + #{value ≥ observed}) / (1 + B).

    ``values`` (B,) are draws under the hypothesis, ``observed`` is the value in the data.
    """
    return float(1 + reaching(observed, values).sum()) / (1 + values.size)


def _boundary(holds: Callable[[float], bool], start: float) -> float:
    """Return the largest x > 0 for which ``holds(x)``, to four digits, by doubling and bisection.

    ``holds`` is true at 0 and false from some x on; the search begins at ``start``. The result is
    at least 1e-9 ``start``.
    """
    low, high = 0.0, start
    while holds(high) and high < 1e9 * start:
        low, high = high, 2.0 * high
    while high - low > 1e-4 * high and high > 1e-9 * start:
        middle = 0.5 * (low + high)
        low, high = (middle, high) if holds(middle) else (low, middle)
    return max(low, 1e-9 * start)


# ------------------------------------------------------------------------------
# What an interval knows of the data: residuals summed in cells, their noise, and draws of it.


Rng = np.random.Generator


#: Labels that are drawn together.
LABELS_A_BATCH = 2**20


@dataclass(frozen=True, eq=False)
class CellNoise:
    """Residuals summed in L cells, and their noise: the input of interval methods.

    d is 1 for two classes, else their number, and B the number of draws. ``size`` (L,) is the
    number n_b of rows, or their weight, ``predicted`` (L, d) the mean predictions, ``sums`` (L, d)
    the residual sums S_b, ``null_variance`` V0 and ``variance`` V (L, d) their variances under
    calibration and as estimated, and ``hidden`` (L, d) the part of V due to errors that cancel.
    Draws of the noise have variance 1: ``calibrated`` (B, L, d) follows the law of counts under
    calibration, ``normal`` (B, L, d) its limit; ``shares`` (B,) are normal. ``grain`` (L, d) is V0
    / Σ w p (1 − p): a cell varies like n_b / grain rows of equal influence. ``parts`` has the sums
    by cell and unit (row or cluster) for units of unequal influence, else None; for a weighted
    tally only Σ w² is known, ``squared_mass`` (L,).
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
        """Number of rows in these cells, or their weight."""
        return float(self.size.sum())

    @cached_property
    def mean_residuals(self) -> FloatArray:
        """Mean residual S_b / n_b of each of L cells and d classes, shape (L, d)."""
        return self.sums / self.size[:, None]

    @cached_property
    def larger_variance(self) -> FloatArray:
        """The larger of two variances of the residual sum of each of L cells and d classes, (L, d).

        One is the variance under calibration, the other the variance estimated from the rows.
        """
        return np.maximum(self.null_variance, self.variance)

    @cached_property
    def unit(self) -> FloatArray:
        """Standard deviation of the noise of the residual sums of these L cells, (L, d).

        It is above 0 even for certain predictions.
        """
        return np.sqrt(np.maximum(self.larger_variance, 1e-12 * self.size[:, None]))

    @cached_property
    def towards_middle(self) -> FloatArray:
        """Shifts of the residual sums of L cells and d classes towards equal probabilities, (L, d).

        They are as large as the standard deviation of the noise of the sums.
        """
        if self.sums.shape[1] == 1:
            return np.where(self.predicted > 0.5, -self.unit, self.unit)
        largest = self.predicted.argmax(axis=1)[:, None] == np.arange(self.sums.shape[1])
        shift = np.where(largest, -self.unit, self.unit)
        shift -= shift.mean(axis=1, keepdims=True)  # of several classes, shifts add up to 0
        return shift * np.sqrt((self.unit**2).sum(axis=1) / (shift**2).sum(axis=1))[:, None]

    def noise(self, k: float, most: float | FloatArray) -> FloatArray:
        """Return B draws of the noise of the residual sums of L cells and d classes, (B, L, d).

        The true errors of the cells are taken to be ``k`` times the observed ones. ``most``, a
        number or (L, d), is the largest absolute error that the sum of a single cell may have; it
        bounds the variance of the sum beyond its variance under calibration.
        """
        # Σ r² = V0 + S (1 − 2 p̄ − S / n) + H: the second term belongs to Δ (inversion, at the top)
        step = k * self.mean_residuals
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
        scale = self.grain * np.where(rows * rarer < NORMAL_COUNTS_FROM, 1.0, np.sqrt(1.0 - rarer))
        events = poisson_noise(more / self.grain**2 / (1.0 - rarer), sign * z)
        return calibrated + sign * scale * events

    def counted(self, k: float, most: float | FloatArray) -> FloatArray:
        """Return B draws of residual sums of L cells and d classes, (B, L, d), for given errors.

        True errors are taken to be ``k`` times the observed ones. Where a calibrated model varies
        by less than one label, draws are rounded to counts: continuous noise would be a fraction of
        a label and no draw would reach labels that are all equal but unexpected. ``most``, a number
        or (L, d), is the largest absolute error that the sum of a single cell may have.
        """
        sums = k * self.sums + self.noise(k, most)
        sure = self.null_variance < self.grain**2
        whole = self.grain * np.rint((sums - self.sums) / self.grain) + self.sums
        return np.where(sure & (np.abs(whole) > np.abs(sums)), whole, sums)

    def implied_variance(self, shift: FloatArray) -> FloatArray:
        """Return the largest variance of the residual sums under given true errors, (L, d).

        ``shift`` (L, d) ≥ 0 is the absolute true mean residual of each of L cells and d classes.
        Errors move probabilities towards ½, where outcomes vary most.
        """
        slope = np.abs(1.0 - 2.0 * self.predicted)
        # p (1 − p) is largest at ½: a shift beyond it would lower the variance again
        shift = np.minimum(shift, 0.5 * slope)
        implied = self.null_variance + self.grain * self.size[:, None] * shift * (slope - shift)
        return np.maximum(self.larger_variance, implied)

    def draws(self, shift: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return draws (S, V) of the residual sums and their variances under given true sums.

        ``shift``, the true sums, has shape (L, d) for L cells and d classes; S and V (L, d, B) are
        B draws of sums and of their estimated variances. Counts are rounded Cornish–Fisher
        quantiles of a binomial law of corrected variance.
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
        """Return the standard error of a mean over cells due to their estimated shares of the rows.

        ``size`` (L,) is the error of each of L cells b with n_b of n rows; the mean is Σ n_b size_b
        / n.
        """
        mean = self.size @ size / self.n
        if self.parts is not None:
            deviations = self.parts.mass * (size - mean)[self.parts.cell]
            return float(np.sqrt((np.bincount(self.parts.unit, deviations) ** 2).sum()) / self.n)
        squared_mass = self.size if self.squared_mass is None else self.squared_mass
        return float(np.sqrt(squared_mass @ (size - mean) ** 2) / self.n)

    def share_noise(self, size: FloatArray) -> FloatArray:
        """Return B draws of the deviation of a mean over cells due to their estimated shares, (B,).

        ``size`` (L,) is the error of each of L cells b with n_b of n rows; the mean is Σ n_b size_b
        / n. Numbers of rows in cells are counts: the upper limit of their mean follows Fay & Feuer
        (1997), with one more row where it raises the mean most. Gamma quantiles by Wilson &
        Hilferty.
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
    """Return the residual sums of L cells and draws of their noise.

    ``induced`` holds the predictions and outcomes behind the lens, by row or as sums over the fine
    bins of a tally. ``cells`` partition them; ``n_draws`` is the number B of draws, and ``rng``
    their generator. Two classes keep the residual of class 0 only (d = 1, else d = K, their
    number). With clusters or weights the variance of the sum S_b of cell b is estimated from its
    units u (clusters or rows), component by component: V_b = (W_b² Σ_u |S_ub|² − |S_b|² Σ_u W_ub²)
    / (W_b² − Σ_u W_ub²), with W_ub the weight and S_ub the residual sum of unit u in b. Calibrated
    draws then redraw labels as the test does. O(n d + B L d); for several classes O(n d² + B L d²),
    with clusters or weights O(B n).
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
        # few draws of rare labels may all be alike
        grain = np.where(grain > 0.0, grain, squared_mass / mass)
        calibrated = _over(replicates, np.sqrt(replicate_variance), normal)
        null_variance = replicate_variance
    measured = (mass[:, 0], predicted, sums, null_variance, variance, hidden)
    shares = rng.standard_normal(n_draws)
    return CellNoise(*measured, calibrated, normal, shares, grain, parts)


def _scatter(
    mass: FloatArray, squared_mass: FloatArray, squares: FloatArray, sums: FloatArray,
    several: BoolArray,
) -> FloatArray:  # fmt: skip
    """Return the estimated variance V of the residual sum of each of L cells and d classes, (L, d).

    A cell has the residual sum S and the weight W; its units u (rows or clusters) have S_u and W_u.
    The arguments are ``mass`` Σ W_u and ``squared_mass`` Σ W_u², (L, 1) each, ``squares`` Σ |S_u|²
    and ``sums`` S, (L, d) each. ``several`` (L, 1) marks cells of more than one unit; all other
    cells have V = 0.
    """
    spread = np.maximum(mass**2 * squares - squared_mass * sums**2, 0.0)
    apart = mass**2 - squared_mass  # 0 where one unit has all of the weight to 16 digits
    several = several & (apart > 0.0)
    return np.divide(spread, apart, out=np.zeros_like(spread), where=several)


def _over(a: FloatArray, b: FloatArray, other: FloatArray) -> FloatArray:
    """Return a / b elementwise, with ``other`` where b is not positive, in the shape of ``a``."""
    return np.divide(a, b, out=np.array(np.broadcast_to(other, a.shape)), where=b > 0.0)


def _redrawn(induced: Predictions, cells: Cells, shape: Shape, rng: Rng) -> FloatArray:
    """Return B null draws (B, L, d) of the residual sums of L cells and d classes.

    Labels are redrawn. ``induced`` are the predictions behind the lens, ``cells`` partition them,
    ``shape`` is (B, L, d), and ``rng`` is the generator. With clusters labels are drawn under each
    kind of dependence, a shared label and shared correctness, and the draws that vary more are
    returned.
    """
    schemes: list[Scheme] = [RedrawLabels()]
    if induced.n_clusters is not None:
        schemes = [each.scheme for each in agreeing_schemes("auto", induced, stack=7)[0]]
    seed = int(rng.integers(2**63)), int(rng.integers(2**63))
    each = (_redrawn_by(scheme, induced, cells, shape, seed) for scheme in schemes)
    return max(
        each, key=lambda replicates: float((replicates**2 / cells.mass[:, None]).mean(axis=0).sum())
    )


def _redrawn_by(
    scheme: Scheme, induced: Predictions, cells: Cells, shape: Shape, seed: tuple[int, int]
) -> FloatArray:
    """Return B null draws (B, L, d) of the residual sums of L cells and d classes by one scheme.

    ``scheme`` says how labels are drawn; with clusters residuals are multiplied by √κ, where κ is
    the factor that its draws lack in variance. ``induced`` are the predictions behind the lens,
    ``cells`` partition them, ``shape`` is (B, L, d), and ``seed`` holds the two words that key the
    random stream.
    """
    factor = 1.0
    if isinstance(scheme, SharedRedraws):
        ((_, agreement),) = scheme.agreements(induced)
        # κ of the test, but for residuals that are centred: here errors are no dependence
        factor = float(np.sqrt(agreement.inflation(scheme.dependence, centred=True)))
    assert isinstance(scheme, LabelScheme)
    draw, k = scheme.drawer(induced), induced.n_classes
    if isinstance(draw, Lanes):
        reader = Reader.of(BinnedError.of(cells), cells, cells.order, residuals=False)
        sums_of = lambda block: reader.sums(block).cells  # noqa: E731
        lanes = draw.laid(cells.order)
        return factor * lanes.gathered(sums_of, seed, 0, shape[0], reader.at_once)
    code, length = cells.of_unit * k, len(cells) * k
    w = 1.0 if induced.weights is None else induced.weights[:, None]
    expected = cells.sum(w * induced.probs)
    replicates, at_once = np.empty(shape), max(1, LABELS_A_BATCH // induced.n)
    for start in range(0, shape[0], at_once):
        labels = draw(seed, start, min(at_once, shape[0] - start))
        for r, row in enumerate(labels, start):
            sums = np.bincount(code + row, induced.weights, length).reshape(-1, k)
            replicates[r] = factor * (sums - expected)[:, : shape[2]]
    return replicates


def _tally_noise(micro: MicroCells, cells: Cells, n_draws: int, rng: Rng) -> CellNoise:
    """Return the residual sums of a tally's cells and draws of their noise, for two classes.

    ``micro`` holds the sums over the fine bins of the tally, each of which lies in one of the
    ``cells``; ``n_draws`` is the number of draws, and ``rng`` their generator.
    """

    def in_cells(values: FloatArray) -> FloatArray:
        return np.asarray(cells.sum(values))[:, None]

    w, p = 1.0 if micro.weight is None else micro.weight, micro.probs[:, 0]
    mass, squared_mass, size = (in_cells(v) for v in (micro.mass, w**2 * micro.count, micro.count))
    sums, predicted = in_cells(w * micro.excess), in_cells(micro.mass * p) / mass
    plain, null_variance = in_cells(micro.variance / w), in_cells(micro.variance)
    products = in_cells(w**2 * (micro.event_sums - micro.squares))  # Σ w² r p
    hidden = np.maximum(-2.0 * (products - predicted * in_cells(w**2 * micro.excess)), 0.0)
    # Σ (y − p)² = Σ y − 2 Σ y p + Σ p², as y² = y
    squares = in_cells(w**2 * (micro.labels - 2.0 * micro.event_sums + micro.squares))
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


# ------------------------------------------------------------------------------
# Draws of the noise of cells: counts of events and classes, and normals that cells share.


Shape = tuple[int, ...]


#: Of a count: the first value, the probabilities from there on, and their rounding.
CountLaw = tuple[int, FloatArray, float]


#: Rows of a cell from which its class counts are taken to be normal.
NORMAL_COUNTS_FROM = 10


@kernel
def count_quantiles(  # type: ignore[no-untyped-def]
    z, size, q, less, sd, skew, offset, grain, sums_out, variances_out
):
    """Compute observed − predicted counts and their variances for every draw, in place.

    ``z`` (L, d, B) are B normal draws for each of L cells and d classes, which the Cornish–Fisher
    expansion turns into counts of ``size`` rows with probability ``q``, standard deviation ``sd``
    and skewness ``skew``, all (L, d). ``offset`` is added to a count, ``less`` to its estimated
    variance, and the results are multiplied by ``grain`` and its square, all (L, d). ``sums_out``
    and ``variances_out`` have the shape of z.
    """
    for b in range(z.shape[0]):
        for k in range(z.shape[1]):
            # Cornish & Fisher: n q + σ x + (1 − 2q) (x² − 1) / 6, third cumulant over variance
            n, deviation, sixth = size[b, k], sd[b, k], skew[b, k] / 6.0
            middle, unit = n * q[b, k] - sixth, grain[b, k]
            turn = -3.0 * deviation / skew[b, k]  # where the quantile would fall again
            lowest, highest = (turn, np.inf) if sixth > 0.0 else (-np.inf, turn)
            # scatter about the mean of the cell: n / (n − 1), and none of one row
            several, bias = n > 1.0, n / max(n - 1.0, 1.0)
            for r in range(z.shape[2]):
                x = min(max(z[b, k, r], lowest), highest)
                count = np.rint(middle + x * (deviation + sixth * x))
                count = min(max(count, 0.0), n)
                scatter = max(count * (1.0 - count / n) + less[b, k], 0.0)
                sums_out[b, k, r] = unit * (count + offset[b, k])
                variances_out[b, k, r] = unit**2 * (
                    scatter * bias if several else deviation * deviation
                )


def poisson_noise(mean: FloatArray, z: FloatArray) -> FloatArray:
    """Return Poisson counts less their mean, for standard normal draws ``z``, same shape.

    ``mean`` is the mean of the counts. The transform matches mean, variance, skewness and the
    probability of 0.
    """
    from scipy.special import ndtri

    # The same for skewness 1 / √mean; P(0) = e^{−mean} is exact, and other counts are at least 1
    counts = np.rint(np.maximum(mean - 1.0 / 6.0 + z * (np.sqrt(mean) + z / 6.0), 1.0))
    return np.where(z > ndtri(np.exp(-mean)), counts, 0.0) - mean


def event_counts(
    laws: Iterable[CountLaw], means: FloatArray, variances: FloatArray, shape: Shape, rng: Rng
) -> FloatArray:
    """Return B draws of standardised event counts of L cells, (B, L, 1), from their exact laws.

    ``laws`` has one (first count, probabilities from there on, rounding error) per cell; ``means``
    and ``variances`` (L, 1) are the moments that counts are standardised by. Cells without variance
    get normal draws. ``shape`` is (B, L, 1), and ``rng`` the generator.
    """
    draws = rng.standard_normal(shape)  # kept for cells whose predictions are all 0 or 1
    for b, (lowest, pmf, _) in enumerate(laws):
        if variances[b, 0] > 0.0:
            counts = np.searchsorted(np.cumsum(pmf), rng.random(shape[0]), side="right")
            counts = lowest + np.minimum(counts, pmf.size - 1)
            draws[:, b, 0] = (counts - means[b, 0]) / np.sqrt(variances[b, 0])
    return draws


def class_counts(probs: FloatArray, starts: IntArray, shape: Shape, rng: Rng) -> FloatArray:
    """Return standardised class counts of L cells, (B, L, K).

    They are normal draws, but multinomial ones in cells of fewer than 10 rows.

    ``probs`` (n, K) are predictions in the order of cells, and ``starts`` (L + 1,) is where each
    cell begins, and the last one ends. ``shape`` is (B, L, K) for B draws.
    """
    draws = correlated_normals(probs, starts, shape, rng)
    for b, (first, last) in enumerate(pairwise(starts)):
        if last - first < NORMAL_COUNTS_FROM:
            mean, n = probs[first:last].mean(axis=0), int(last - first)
            counts = rng.multinomial(n, mean / mean.sum(), shape[0])
            draws[:, b] = (counts - n * mean) / np.sqrt(np.maximum(n * mean * (1 - mean), 1e-300))
    return draws


def correlated_normals(probs: FloatArray, starts: IntArray, shape: Shape, rng: Rng) -> FloatArray:
    """Return normal draws with the correlations of the class counts of cells.

    The result has the ``shape`` (B, L, d): B draws of L cells and d classes. For d = 1 draws are
    independent. Counts have the covariance Σ diag(p_i) − p_i p_iᵀ over the rows of a cell.
    ``probs`` (n, K) are predictions in the order of cells, and ``starts`` (L + 1,) is where each
    cell begins, and the last one ends. O(L K³).
    """
    draws = rng.standard_normal(shape)
    if shape[2] > 1:
        for b, (first, last) in enumerate(pairwise(starts)):
            rows = probs[first:last]
            values, vectors = np.linalg.eigh(np.diag(rows.sum(axis=0)) - rows.T @ rows)
            # Classes sum to n: one eigenvalue is 0, and rounding may put it below
            root = vectors * np.sqrt(np.maximum(values, 0.0))
            scale = np.sqrt((root**2).sum(axis=1))
            draws[:, b] = draws[:, b] @ root.T / np.maximum(scale, 1e-150)
    return draws


def shared_by_clusters(parts: Parts, gaps: FloatArray, normal: FloatArray, rng: Rng) -> FloatArray:
    """Return B draws of noise of L cells and d classes, (B, L, d), correlated by shared clusters.

    It is a wild bootstrap: a draw multiplies the centred residual sums of each cluster by a normal
    number. ``parts`` has the residual sums and weights by cluster and cell, ``gaps`` (L, d) are the
    mean residuals of the cells. ``normal`` (B, L, d) are independent draws, which are overwritten
    but for cells whose residuals scatter by rounding only.
    """
    import scipy.sparse

    multipliers = rng.standard_normal((len(normal), int(parts.unit.max()) + 1))
    for k in range(normal.shape[2]):
        centred = parts.sums[:, k] - parts.mass * gaps[parts.cell, k]
        # Relative to S²: residuals that cancel leave rounding, which must not be blown up
        squares = np.bincount(parts.cell, centred**2)
        shared = squares > 1e-12 * (1.0 + np.bincount(parts.cell, parts.sums[:, k]) ** 2)
        table = scipy.sparse.csr_matrix((centred, (parts.unit, parts.cell)))
        draws = (multipliers @ table) / np.sqrt(np.where(shared, squares, 1.0))
        normal[:, shared, k] = draws[:, shared]
    return normal


# ------------------------------------------------------------------------------
# Bounds of binned errors and of observed − predicted where follow-up ends before some outcomes.
#
# Let D_b = E[(Y − p) 1{bin b}] and θ = Σ_b |D_b|. With the censoring weights W of
# :class:`caltest.Followup`, D̂_b = Σ_{i in b} W_i (Y_i − p_i) / n is asymptotically normal around
# D_b; its covariance V comes from the influence of every row, fitted weights included.
#
# From above, θ = s·D for the unknown signs s of D, and s·D̂ + z √(s'Vs) misses s·D with
# probability α for this s; the largest value over all signs therefore misses θ at most as often.
# From below, Σ|D̂_b| exceeds θ by no more than Σ|N_b|, N normal with covariance V (triangle
# inequality), and the absolute mean |Σ D_b| is no larger than θ: both have half of α, and the
# larger bound is taken.


#: Bins whose signs are listed; others keep the observed sign.
MOST_LISTED = 12


@dataclass(frozen=True)
class FollowedBounds:
    """Bounds of the error of predicted risks with follow-up, or of observed − predicted.

    ``low`` and ``high`` are the bounds, ``corrected`` is the debiased estimate, ``floor`` the mean
    of the estimate under calibration, and ``pvalue`` tests calibration.
    """

    low: float
    high: float
    corrected: float
    floor: float
    pvalue: float


def followed_bounds(
    problem: FollowupProblem, number: IntArray, alpha: float, draws: int, rng: RNG
) -> FollowedBounds:
    """Bound the error Σ_b |D_b| of predicted risks with follow-up over the bins b.

    D_b is the share of the bin times observed − predicted in it. Each bound is wrong with a
    probability of about ``alpha`` at most. ``problem`` holds predictions and censored outcomes of n
    rows, ``number`` (n,) is the bin of every row, from 0 on, and ``draws`` the number of normal
    draws. The result has the bounds, the debiased estimate, the noise floor and a p-value. O(n L)
    for L bins, and 2^L up to 12 bins.
    """
    gaps, covariance = _bin_gaps(problem, number)
    observed = float(np.abs(gaps).sum())
    noise = np.abs(_normal(covariance, draws, rng)).sum(axis=1)
    signs = _sign_vectors(gaps, covariance)
    spread = np.sqrt(np.einsum("sb,bc,sc->s", signs, covariance, signs))
    high = float((signs @ gaps + ndtri(1.0 - alpha) * spread).max())
    mean, error = abs(float(gaps.sum())), float(np.sqrt(covariance.sum()))
    least = observed - float(np.quantile(noise, 1.0 - alpha / 2.0))
    by_mean = mean - float(ndtri(1.0 - alpha / 4.0)) * error  # either sign, half of alpha
    above = float((1 + (noise >= observed - 1e-12).sum()) / (1 + noise.size))
    of_mean = 2.0 * float(ndtr(-mean / error)) if error > 0.0 else 1.0
    return FollowedBounds(
        low=max(least, by_mean, 0.0),
        high=max(high, observed),
        corrected=_corrected(gaps, covariance),
        floor=float(noise.mean()),
        pvalue=min(1.0, 2.0 * above, 2.0 * of_mean),
    )


def followed_difference(problem: FollowupProblem, alpha: float) -> FollowedBounds:
    """Bound the mean of observed − predicted over all rows with follow-up by its normal law.

    ``problem`` holds predictions and censored outcomes. Each bound is wrong with a probability of
    about ``alpha``. The result has both bounds, the estimate, the noise floor 0 and a p-value.
    """
    gaps, covariance = _bin_gaps(problem, np.zeros(problem.n, dtype=np.int64))
    gap, error = float(gaps[0]), float(np.sqrt(covariance[0, 0]))
    half = float(ndtri(1.0 - alpha)) * error
    pvalue = 2.0 * float(ndtr(-abs(gap) / error)) if error > 0.0 else 1.0
    return FollowedBounds(gap - half, gap + half, gap, 0.0, pvalue)


def _bin_gaps(problem: FollowupProblem, number: IntArray) -> tuple[FloatArray, FloatArray]:
    """Return estimates D̂ (L,) of observed − predicted in L bins, and their covariance (L, L).

    D̂_b is Σ (W Y − W p) / n over the rows of bin b, with outcomes Y, predictions p, and W the
    inverse probability of a known outcome. ``problem`` holds these for n rows; ``number`` (n,) is
    the bin of every row, from 0 on.
    """
    n, size = problem.n, int(number.max()) + 1
    residuals = problem.events - problem.censoring_law.weights * problem.probs[:, 0]
    gaps = np.bincount(number, residuals, size) / n
    influence = np.empty((size, n))
    for b in range(size):
        influence[b] = problem.censoring_law.influence(np.where(number == b, residuals, 0.0))
    influence -= influence.mean(axis=1, keepdims=True)
    return gaps, influence @ influence.T / (n * max(n - 1.0, 1.0))


def _normal(covariance: FloatArray, draws: int, rng: RNG) -> FloatArray:
    """Return B draws, (B, L), of a normal vector of length L with mean 0.

    ``covariance`` (L, L) is its covariance, ``draws`` is B, and ``rng`` a seed or generator.
    """
    values, vectors = np.linalg.eigh(covariance)
    root = vectors * np.sqrt(np.maximum(values, 0.0))
    normal = np.random.default_rng(rng).standard_normal((draws, len(covariance)))
    return np.asarray(normal @ root.T)


def _sign_vectors(gaps: FloatArray, covariance: FloatArray) -> FloatArray:
    """Return the S vectors of signs ±1 of L bins, (S, L), over which a bound is maximised.

    ``gaps`` (L,) are observed − predicted by bin, with their ``covariance`` (L, L). All 2^L vectors
    are listed for few bins; otherwise the signs of the ``MOST_LISTED`` bins nearest to 0 vary, and
    the other bins keep their observed sign.
    """
    size = gaps.size
    ratio = np.abs(gaps) / np.maximum(np.sqrt(np.diag(covariance)), 1e-300)
    doubtful = np.argsort(ratio)[: min(size, MOST_LISTED)]
    listed = np.tile(np.where(gaps < 0.0, -1.0, 1.0), (2**doubtful.size, 1))
    codes = np.arange(2**doubtful.size)
    for k, b in enumerate(doubtful):
        listed[(codes >> k) & 1 == 1, b] *= -1.0
    return listed


def _corrected(gaps: FloatArray, covariance: FloatArray) -> float:
    """Return Σ_b |D̂_b| less its bias by noise, from the means of folded normals.

    ``gaps`` (L,) are the D̂_b, observed − predicted of each of L bins, with their ``covariance``
    (L, L).
    """
    from scipy.special import erf

    gap, sigma = np.abs(gaps), np.sqrt(np.diag(covariance))
    ratio = np.minimum(gap / np.maximum(sigma, 1e-300), 40.0)
    folded = sigma * np.sqrt(2 / np.pi) * np.exp(-0.5 * ratio**2) + gap * erf(ratio / np.sqrt(2))
    return float((2.0 * gap - folded).sum())
