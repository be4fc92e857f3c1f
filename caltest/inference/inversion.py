"""Bounds for a binned calibration error: the errors that a test of the data would not reject.

Cell b holds n_b rows, whose residuals r_i = onehot(y_i) − p_i add up to S_b = n_b Δ_b + noise. Δ_b
is what the model gets wrong in the cell. Two sizes of error are bounded, both averages over the
cells with the shares π_b of the rows:

    θ₁ = Σ_b π_b Σ_k |Δ_bk|,  observed T₁ = (1/n) Σ_b Σ_k |S_bk|,
    θ₂ = Σ_b π_b |Δ_b|²,      observed T₂ = (1/n) Σ_b |S_b|² / n_b.

A bound is the last value of θ for which the observed T would not be surprising. That needs the law
of T for each θ, hence a direction for Δ and a variance for the noise. Each is chosen so that the
bound errs on the safe side:

* θ₁ from below: T₁ ≤ θ₁ + (1/n) Σ |noise|, whatever the direction (triangle inequality).
* θ₁ from above: for given θ₁, T₁ is smallest when Δ_b is proportional to the noise of its cell,
  since E|μ + σZ| has slope 2Φ(μ/σ) − 1 in μ, and equal slopes minimise the sum.
* θ₂: T₂ is nearly a non-central χ² that depends on Δ through θ₂ only, so the observed direction
  will do from below: Δ_b = k S_b / n_b, θ₂ = k² T₂. From above a standard deviation towards equal
  probabilities is added, where labels vary most: a count that meets its prediction leaves no
  direction, and by chance only.

The variance of S_b is V0_b if the model is calibrated, and V_b by the scatter of the residuals.
Since r² = p (1 − p) + (1 − 2p) r for a label, the scatter is, with p̄_b the mean prediction,

    Σ (r_i − S_b/n_b)² = V0_b + S_b (1 − 2 p̄_b − S_b/n_b) + H_b,  H_b = −2 Σ (p_i − p̄_b) r_i.

The second part belongs to Δ_b. H_b does not: it comes from errors of opposite sign that cancel in
the cell, and the cell's error has all this noise even where it is 0.

* Noise adds to T, so a bound from below takes the larger of V and the variance that Δ_b implies,
  but no more beyond V0 than θ allows, since true errors of μ on average change the mean of r² by at
  most μ: it bounds the true error. It allows H_b in any case, and so bounds the error of the cells,
  too. At θ = 0 only V0 is left: 0 lies within the bound exactly if the test of calibration does not
  reject. If it does and H_b is large, any θ above 0 may be within it. What is added to V0 is drawn
  as Poisson counts: labels that were not expected are few and skewed.
* θ₁ from above: only V, which the scatter shows, may raise T. Its spread gets the largest of V0, V
  and the variance of the hypothesis: a cell in which nothing has gone wrong shows no scatter.
* θ₂ from above: T₂ less its noise, Σ V_b / n_b, has no bias. Both are functions of the counts of
  the cells, drawn as whole numbers. In a cell of one row, which shows no scatter, the hypothesis
  takes off noise and the data do not.
* An observed T below a quarter of the draws for θ = 0 counts as large as that: else no θ might be
  plausible when the counts meet their predictions.

The shares π_b are estimated, too, and T varies with them, by Var_π(…)/n: in proportion to θ up to
the observed T, and not beyond, where the observed gaps are mostly noise. For θ₂ from above the
rows of a cell are counts, which are skewed where few rows are far off; and beyond gaps that are as
large as they can be in all cells, a larger θ₂ means other shares.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from caltest._base.arrays import reaching
from caltest.inference.cell_noise import CellNoise
from caltest.predictions import FloatArray

#: Sums that come so close to the observed ones meet them: counts are whole.
NEARLY_EQUAL = 1.0 - 1e-6
#: Share of the draws for θ = 0 below which an observed error is luck.
CHANCE_SHARE = 0.25


@dataclass(frozen=True)
class UpperInversion:
    """How plausible errors are from above: the chance that one shows no more than was observed.

    Errors are numbered by k ≥ 0: ``theta(k)`` is the error, ``chance(k)`` falls; searches begin at
    ``start``.
    """

    chance: Callable[[float], float]
    theta: Callable[[float], float]
    start: float

    def high(self, alpha: float) -> float:
        """Return the largest error for which the observed one is surprisingly small, ``alpha``."""
        return self.theta(_boundary(lambda k: self.chance(k) >= alpha, self.start))

    def pvalue(self, margin: float) -> float:
        """Return the p-value of errors of this size or more."""
        return self.chance(_boundary(lambda k: self.theta(k) <= margin, self.start))


def absolute_error(cells: CellNoise) -> float:
    """Return T₁."""
    return float(np.abs(cells.sums).sum()) / cells.n


def absolute_null(cells: CellNoise) -> FloatArray:
    """Return draws of T₁ of a calibrated model."""
    return np.abs(cells.noise(0.0, 0.0)).sum(axis=(1, 2)) / cells.n


def absolute_corrected(cells: CellNoise) -> float:
    """Return T₁ − (E T₁* − T₁), S_b* normal around S_b: the mean of a folded normal is known."""
    from scipy.special import erf

    gap, sigma = np.abs(cells.sums), np.sqrt(cells.variance)
    # Leone, Nelson & Nottingham (1961): E|μ + σZ|; from 40 σ on the normal is not folded
    ratio = np.minimum(gap / np.maximum(sigma, 1e-300), 40.0)
    folded = sigma * np.sqrt(2 / np.pi) * np.exp(-0.5 * ratio**2) + gap * erf(ratio / np.sqrt(2))
    return float((2.0 * gap - folded).sum()) / cells.n


def absolute_low(cells: CellNoise, alpha: float) -> float:
    """Return the smallest θ₁ > 0 for which T₁ is surprisingly large with a chance > ``alpha``."""
    observed = absolute_error(cells)
    error = cells.share_error(np.abs(cells.gaps).sum(axis=1))

    def plausible(theta: float) -> bool:
        noise = np.abs(cells.noise(theta / observed, cells.n * theta))
        values = theta + noise.sum(axis=(1, 2)) / cells.n + theta / observed * error * cells.shares
        return theta >= observed or reached(values, observed) > alpha

    return _boundary(lambda theta: not plausible(theta), observed)


def absolute_above(cells: CellNoise) -> UpperInversion:
    """Return how plausible each θ₁ is from above."""
    error = cells.share_error(np.abs(cells.gaps).sum(axis=1))
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

    observed = max(absolute_error(cells), float(np.quantile(values(0.0, 0.0), CHANCE_SHARE)))

    def chance(theta: float) -> float:
        # Beyond the observed T₁ gaps are mostly noise, and so is what shares say of them
        share = min(1.0, theta / max(observed, 1e-300))
        return reached(-values(theta, share), -observed)

    return UpperInversion(chance, lambda theta: theta, max(2.0 * observed, total))


def squared_error(cells: CellNoise) -> float:
    """Return T₂."""
    return float((cells.sums**2 / cells.size[:, None]).sum()) / cells.n


def squared_null(cells: CellNoise) -> FloatArray:
    """Return draws of T₂ of a calibrated model."""
    return (cells.noise(0.0, 0.0) ** 2 / cells.size[:, None]).sum(axis=(1, 2)) / cells.n


def squared_corrected(cells: CellNoise) -> float:
    """Return T₂ − (1/n) Σ V_b / n_b, the statistic over pairs; a lone row keeps its square."""
    return float(((cells.sums**2 - cells.variance) / cells.size[:, None]).sum()) / cells.n


def squared_low(cells: CellNoise, alpha: float) -> float:
    """Return the smallest θ₂ > 0 for which T₂ is surprisingly large with a chance > ``alpha``."""
    observed = squared_error(cells)
    error = cells.share_error((cells.gaps**2).sum(axis=1))
    root = np.sqrt(cells.size[:, None])
    most = root * np.sqrt(cells.n * observed)  # Σ|error| of a cell, if all of θ₂ = T₂ were in it

    def plausible(k: float) -> bool:
        values = (cells.counted(k, k * most) / root) ** 2
        values = values.sum(axis=(1, 2)) / cells.n + k * k * error * cells.shares
        return k >= 1.0 or reached(values, NEARLY_EQUAL * observed) > alpha

    return _boundary(lambda k: not plausible(k), 1.0) ** 2 * observed


def squared_above(cells: CellNoise) -> UpperInversion:
    """Return how plausible each θ₂ is from above, of T₂ less its noise."""
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

    def beyond(k: float) -> float:
        return furthest * max(0.0, k * least - 1.0)

    def values(k: float) -> FloatArray:
        sums, variance = cells.draws(shift(k))
        squares = ((sums**2 - variance) / size[..., None]).sum(axis=(0, 1)) / cells.n
        noise = cells.share_noise(((shift(min(k, 1.0)) / size) ** 2).sum(axis=1))
        return squares + beyond(k) + noise

    observed = max(squared_corrected(cells), float(np.quantile(values(0.0), CHANCE_SHARE)))

    return UpperInversion(
        chance=lambda k: reached(-values(k), -observed),
        theta=lambda k: float((shift(k) ** 2 / size).sum()) / cells.n + beyond(k),
        start=1.0,
    )


@dataclass(frozen=True)
class Size:
    """A size of error: its observed value, the law of that, its debiased value, its bounds."""

    observed: Callable[[CellNoise], float]
    calibrated: Callable[[CellNoise], FloatArray]
    corrected: Callable[[CellNoise], float]
    low: Callable[[CellNoise, float], float]
    above: Callable[[CellNoise], UpperInversion]


SIZES = {
    "absolute": Size(
        absolute_error, absolute_null, absolute_corrected, absolute_low, absolute_above
    ),
    "squared": Size(squared_error, squared_null, squared_corrected, squared_low, squared_above),
}


def reached(values: FloatArray, observed: float) -> float:
    """Return P(value ≥ observed), counting the data as one more draw."""
    return float(1 + reaching(observed, values).sum()) / (1 + values.size)


def _boundary(holds: Callable[[float], bool], start: float) -> float:
    """Return where ``holds`` ends, to four digits and never 0: by doubling, then by bisection."""
    low, high = 0.0, start
    while holds(high) and high < 1e9 * start:
        low, high = high, 2.0 * high
    while high - low > 1e-4 * high and high > 1e-9 * start:
        middle = 0.5 * (low + high)
        low, high = (middle, high) if holds(middle) else (low, middle)
    return max(low, 1e-9 * start)
