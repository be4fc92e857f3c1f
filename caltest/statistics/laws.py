"""Limit laws of statistics: normal, χ², and the range of Brownian motion for walks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from caltest.nulls import AsymptoticNull
from caltest.predictions import FloatArray, IntArray

Extent = Literal["maximum", "range"]
#: Mean and variance of max|W| and of max W − min W for Brownian motion W on [0, 1] (Feller 1951);
#: 0.915… is Catalan's constant.
MOMENTS: dict[str, tuple[float, float]] = {
    "maximum": (np.sqrt(np.pi / 2.0), 2.0 * 0.915965594177219015 - np.pi / 2.0),
    "range": (np.sqrt(8.0 / np.pi), 4.0 * np.log(2.0) - 8.0 / np.pi),
}
#: Where the series for small values hands over to the one for large values: both need few terms.
HANDOVER = {"maximum": 1.0, "range": 2.0}


def normal(mean: float, deviation: float, labels: IntArray) -> AsymptoticNull:
    """Return the normal law, the same for all labels."""
    from scipy.stats import norm

    return AsymptoticNull(norm(mean, deviation))


def chi_squared(df: int, labels: IntArray) -> AsymptoticNull:
    """Return the χ² law with ``df`` degrees of freedom, the same for all labels."""
    from scipy.stats import chi2

    return AsymptoticNull(chi2(df))


@dataclass(frozen=True)
class BrownianNull:
    """The law of ``scale`` · max|W| or ``scale`` · (max W − min W), W Brownian motion on [0, 1].

    With φ_k = (k + ½)π, for small x P(max|W| < x) = 2 Σ_{k≥0} (−1)^k exp(−φ_k² / 2x²) / φ_k and
    P(max W − min W < x) = Σ_{k≥0} (8 / x² + 2 / φ_k²) exp(−2 φ_k² / x²); for large x, with Q the
    normal tail, P(max|W| ≥ x) = 4 Σ_{k≥0} (−1)^k Q((2k + 1) x) and
    P(max W − min W ≥ x) = 8 Σ_{k≥1} (−1)^{k−1} k Q(kx) (Feller, Annals of Mathematical Statistics
    22, 1951). Tails keep their digits down to 1e-300.

    Parameters
    ----------
    extent : {"maximum", "range"}
        Which of the two.
    scale : float, default 1.0
        Standard deviation of the motion at its end, at least 0.

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
