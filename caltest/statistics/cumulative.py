"""Cumulative errors: Kolmogorov–Smirnov and Kuiper statistics of summed differences."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal

import numpy as np

from caltest._numba import kernel
from caltest.errors import StatisticError
from caltest.predictions import BoolArray, FloatArray, IntArray
from caltest.statistics.lanes.events import EventRedraws, in_order
from caltest.statistics.laws import Law
from caltest.statistics.problem import OfLabels, by_value, event

Extent = Literal["maximum", "range"]
#: Mean and variance of max|W| and of max W − min W for Brownian motion W on [0, 1] (Feller 1951);
#: 0.915… is Catalan's constant.
MOMENTS: dict[str, tuple[float, float]] = {
    "maximum": (np.sqrt(np.pi / 2.0), 2.0 * 0.915965594177219015 - np.pi / 2.0),
    "range": (np.sqrt(8.0 / np.pi), 4.0 * np.log(2.0) - 8.0 / np.pi),
}
#: Where the series for small values hands over to the one for large values: both need few terms.
HANDOVER = {"maximum": 1.0, "range": 2.0}


@dataclass(frozen=True)
class BrownianNull:
    """The law of ``scale`` · max|W| or ``scale`` · (max W − min W), W Brownian motion on [0, 1].

    With φ_k = (k + ½)π, for small x

        P(max|W| < x) = 2 Σ_{k≥0} (−1)^k exp(−φ_k² / 2x²) / φ_k,
        P(max W − min W < x) = Σ_{k≥0} (8 / x² + 2 / φ_k²) exp(−2 φ_k² / x²),

    and for large x, from the reflection principle, with Q the normal tail,

        P(max|W| ≥ x) = 4 Σ_{k≥0} (−1)^k Q((2k + 1) x),
        P(max W − min W ≥ x) = 8 Σ_{k≥1} (−1)^{k−1} k Q(kx)     (Feller 1951).

    Tails are added up as tails and keep their digits down to 1e-300.

    Parameters
    ----------
    extent : {"maximum", "range"}
        Which of the two.
    scale : float, default 1.0
        Standard deviation of the motion at its end, at least 0.

    References
    ----------
    Feller, "The asymptotic distribution of the range of sums of independent random variables",
    Annals of Mathematical Statistics 22, 1951.

    Examples
    --------
    >>> round(BrownianNull("maximum").ppf(0.95), 6), round(BrownianNull("range").ppf(0.95), 6)
    (2.241403, 2.497672)
    """

    extent: Extent
    scale: float = 1.0

    def mean(self) -> float:
        """Return the mean, √(π/2) or √(8/π) times the scale."""
        return float(self.scale * MOMENTS[self.extent][0])

    def std(self) -> float:
        """Return the standard deviation."""
        return float(self.scale * np.sqrt(MOMENTS[self.extent][1]))

    def sf(self, t: float) -> float:
        """Return P(T ≥ t)."""
        if t <= 0.0 or self.scale == 0.0:
            return float(t <= 0.0)
        return float(_tail(self.extent, np.array([t / self.scale]))[0])

    def ppf(self, q: float) -> float:
        """Return the q-quantile."""
        return float(self.scale * _quantiles(self.extent, np.array([1.0 - q]))[0])

    def rvs(self, size: int, rng: Any = None) -> FloatArray:
        """Draw independent values by inversion."""
        return self.scale * _quantiles(self.extent, np.random.default_rng(rng).random(size))


def _tail(extent: Extent, x: FloatArray) -> FloatArray:
    from scipy.special import erfc

    small = x < HANDOVER[extent]
    near = np.where(small, np.maximum(x, 1e-3), 1.0)[:, None]  # nothing lies below 0.001
    far = np.where(small, 10.0, x)[:, None]
    k, angle = np.arange(8), (np.arange(8) + 0.5) * np.pi
    sign = (-1.0) ** k
    if extent == "maximum":
        below = 2.0 * (sign / angle * np.exp(-0.5 * (angle / near) ** 2)).sum(axis=1)
        above = 2.0 * (sign * erfc((2 * k + 1) * far / np.sqrt(2.0))).sum(axis=1)
    else:
        width = 8.0 / near**2 + 2.0 / angle**2
        below = (width * np.exp(-2.0 * (angle / near) ** 2)).sum(axis=1)
        above = 4.0 * (sign * (k + 1) * erfc((k + 1) * far / np.sqrt(2.0))).sum(axis=1)
    return np.where(small, 1.0 - below, above)


def _quantiles(extent: Extent, tails: FloatArray) -> FloatArray:
    """Return where the tail probabilities are reached, by bisection."""
    low, high = np.zeros(tails.size), np.full(tails.size, 64.0)
    for _ in range(64):
        middle = 0.5 * (low + high)
        above = _tail(extent, middle) > tails
        low, high = np.where(above, middle, low), np.where(above, high, middle)
    return high


@dataclass(frozen=True, eq=False)
class Walk:
    """A cumulative error whose predictions are fixed: what is left is a function of the labels.

    Attributes
    ----------
    order : ndarray of shape (n,)
        The rows by increasing probability of the event.
    ends : ndarray of shape (G,)
        Where, in that order, each group of equal probabilities ends.
    expected : ndarray of shape (G,)
        Expected number of events up to there.
    sigma : float
        Standard deviation of the walk at its end, √(Σ p (1 − p)) / n.
    unit : float
        What one event adds to the statistic.
    extent : {"maximum", "range"}
        What is measured of the walk.
    """

    order: IntArray = field(repr=False)
    ends: IntArray = field(repr=False)
    expected: FloatArray = field(repr=False)
    sigma: float
    unit: float
    extent: Extent

    def evaluate(self, labels: IntArray) -> float:
        """Return the error for these labels, without a compiler."""
        steps = np.cumsum(labels[self.order] == 0)[self.ends - 1] - self.expected
        high, low = max(0.0, steps.max()), min(0.0, steps.min())
        return float(self.unit * (max(high, -low) if self.extent == "maximum" else high - low))

    def __call__(self, labels: IntArray) -> float:
        return float(self.values(in_order(labels, self.order))[0])

    def values(self, events: BoolArray) -> FloatArray:
        """Return the errors for events of shape (B, n) in the order of the rows."""
        lowest, highest = np.empty(len(events)), np.empty(len(events))
        _walk(events, self.ends, self.expected, lowest, highest)
        if self.extent == "maximum":
            return self.unit * np.maximum(highest, -lowest)
        return self.unit * (highest - lowest)

    def redraws(self, probs: FloatArray) -> EventRedraws:
        """Return the compiled null under redrawn labels."""
        return EventRedraws.of(self.order, probs, self.values)

    @property
    def laws(self) -> Mapping[str, Law]:
        """The limit for many distinct predictions, by name."""
        return {"asymptotic": self._limit}

    def _limit(self, labels: IntArray) -> BrownianNull:
        return BrownianNull(self.extent, self.sigma * self.unit * self.order.size)


@kernel
def _walk(events, ends, expected, lowest_out, highest_out):  # type: ignore[no-untyped-def]
    for r in range(events.shape[0]):
        lowest, highest, hits, i = 0.0, 0.0, 0, 0
        for g in range(ends.size):
            while i < ends[g]:
                hits += events[r, i]
                i += 1
            step = hits - expected[g]
            lowest, highest = min(lowest, step), max(highest, step)
        lowest_out[r], highest_out[r] = lowest, highest


@dataclass(frozen=True, repr=False)
class _CumulativeError(OfLabels):
    """What both statistics share: a walk along the sorted predictions."""

    scaled: bool = False
    extent: ClassVar[Extent]
    essential: ClassVar[int] = 0

    def given(self, probs: FloatArray) -> Walk:
        """Fix the predictions: sort them once, and leave a function of the labels."""
        p = event(probs, repr(self))
        order, ends = by_value(p)
        sigma = float(np.sqrt((probs[:, 0] * probs[:, 1]).sum())) / p.size
        if self.scaled and sigma == 0.0:
            raise StatisticError(
                f"{self!r} divides by the standard deviation under calibration, which is 0 because "
                "every prediction is 0 or 1; leave scaled=False"
            )
        unit = 1.0 / (sigma * p.size if self.scaled else p.size)
        return Walk(order, ends, np.cumsum(p[order])[ends - 1], sigma, unit, self.extent)


class KolmogorovSmirnov(_CumulativeError):
    """Largest cumulative difference between outcomes and predictions (ECCE-MAD), for two classes.

    The value is max_k |C_k|, with rows sorted by the probability p of the event (class 0), C_0 = 0
    and C_k = (1/n) Σ_{i≤k} (y_i − p_i) (Arrieta-Ibarra et al. 2022). Rows with equal predictions
    enter together, so that the order of rows never matters. There are no bins to choose. Sees
    shifts and tilts well; errors that change sign along p many times cancel.

    Parameters
    ----------
    scaled : bool, default False
        Divide by σ = √(Σ p (1 − p)) / n, the standard deviation of C_n under calibration: the value
        is then of order 1 at every n.

    Raises
    ------
    StatisticError
        For more than two classes; when ``scaled`` and all predictions are 0 or 1.

    Notes
    -----
    O(n log n) once, O(n) for each further set of labels. The range is [0, 1]. ``laws`` offers
    ``"asymptotic"``, the law of σ max|W| (:class:`BrownianNull`): slightly conservative with few
    rows or ties, because a walk in steps visits less than Brownian motion.

    References
    ----------
    Arrieta-Ibarra, Gujral, Tannen, Tygert & Xu, "Metrics of calibration for probabilistic
    predictions", JMLR 23, 2022.

    Examples
    --------
    >>> round(KolmogorovSmirnov()([0.6, 0.8, 0.2, 0.4], [0, 1, 0, 0]), 12)
    0.3
    """

    extent: ClassVar[Extent] = "maximum"


class Kuiper(_CumulativeError):
    """Range of the cumulative differences (ECCE-R), for two classes.

    max_k C_k − min_k C_k over k = 0, …, n with C_0 = 0: the largest difference |Σ (y − p)| / n over
    all intervals of predictions. See :class:`KolmogorovSmirnov` for C and the parameters. It does
    not depend on from which end the predictions are summed.

    Examples
    --------
    >>> round(Kuiper()([0.6, 0.8, 0.2, 0.4], [0, 1, 0, 0]), 12)
    0.3
    """

    extent: ClassVar[Extent] = "range"
