"""Null distributions: what the statistic does when the model is calibrated."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, Literal, Protocol

import numpy as np
from numpy.typing import DTypeLike

from caltest._base.arrays import RNG, AnyArray, FloatArray, IntArray, below, reaching
from caltest.results import ClusterSummary, HorizonSummary


class NullDistribution(Protocol):
    """What every null distribution offers, simulated or computed."""

    def mean(self) -> float:
        """Return the expected value, the noise floor of the statistic."""

    def std(self) -> float:
        """Return the standard deviation."""

    def sf(self, t: float) -> float:
        """Return P(T ≥ t); values that differ from t by rounding count as ties."""

    def ppf(self, q: float) -> float:
        """Return the smallest value x with P(T ≤ x) ≥ q."""

    def rvs(self, size: int, rng: RNG = None) -> FloatArray:
        """Draw values at random."""


@dataclass(frozen=True, eq=False)
class SimulatedNull(NullDistribution):
    """A null distribution known through replicates; ``np.asarray`` gives them.

    ``values``, shape (B,), are in the order in which they were drawn; sequential stopping or Ctrl-C
    may have ``ended`` the run early; ``clusters`` are those whose dependence the replicates have.
    """

    values: FloatArray = field(repr=False)
    ended: Literal["complete", "early", "interrupted"] = "complete"
    clusters: ClusterSummary | HorizonSummary | None = None

    def mean(self) -> float:
        return float(self.values.mean())

    def std(self) -> float:
        return float(self.values.std())

    def sf(self, t: float) -> float:
        return float(reaching(t, self.values).mean())

    def ppf(self, q: float) -> float:
        return float(np.quantile(self.values, q, method="inverted_cdf"))

    def rvs(self, size: int, rng: RNG = None) -> FloatArray:
        return np.random.default_rng(rng).choice(self.values, size)

    def __array__(self, dtype: DTypeLike | None = None, copy: bool | None = None) -> AnyArray:
        if copy is None:  # which NumPy before 2 does not know
            return np.asarray(self.values, dtype=dtype)
        return np.array(self.values, dtype=dtype, copy=copy)

    def __len__(self) -> int:
        return self.values.size


@dataclass(frozen=True, eq=False)
class ExactNull(NullDistribution):
    """A null distribution that was computed, not simulated.

    ``support`` (m,) are increasing values of the statistic, ``tail`` P(T ≥ support[j]) for T
    rounded to the support, ``lower`` P(T ≤ support[j]), which the tail gives to no more than 16
    decimals. ``slack`` is how far rounding can have moved a value of T (0 when the support is
    exact; ``slack_beyond`` from ``edge`` on, where it becomes coarser), ``error`` a bound on the
    error of every probability in the tail.
    """

    support: FloatArray = field(repr=False)
    tail: FloatArray = field(repr=False)
    expectation: float
    deviation: float
    slack: float = 0.0
    error: float = 0.0
    lower: FloatArray | None = field(default=None, repr=False)
    edge: float = np.inf
    slack_beyond: float = 0.0

    def mean(self) -> float:
        return self.expectation

    def std(self) -> float:
        return self.deviation

    def bracket(
        self, t: float, two_sided: bool = False, centre: float = 0.0
    ) -> tuple[float, float]:
        """Return two numbers between which P(T ≥ t) lies; or, with c the centre, P(|T−c| ≥ |t−c|).

        Rounding to the grid is bounded exactly, floating-point error by a measured allowance.
        """
        if two_sided:
            moved = replace(self, support=self.support - centre)
            sides = [law.bracket(abs(t - centre)) for law in (moved, moved._mirrored())]
            return min(sum(low for low, _ in sides), 1.0), min(sum(high for _, high in sides), 1.0)
        # The scale of rounding is that of likely values: others may be larger by any factor.
        threshold = below(t, np.array([self.ppf(1e-4), self.ppf(1.0 - 1e-4)]))
        slack = self.slack if threshold <= self.edge else self.slack_beyond
        lower = self._tail_from(threshold + slack) - self.error
        upper = self._tail_from(threshold - slack) + self.error
        return min(max(lower, 0.0), 1.0), min(upper, 1.0)

    def sf(self, t: float) -> float:
        """Return P(T ≥ t), the upper end of its bracket."""
        return self.bracket(t)[1]

    def _mirrored(self) -> ExactNull:
        """Return the law of −T."""
        lower, error = self.lower, self.error
        if lower is None:
            lower = np.clip(1.0 - np.append(self.tail[1:], 0.0), 0.0, 1.0)
            error += 1e-15
        slack = max(self.slack, self.slack_beyond)
        return ExactNull(
            -self.support[::-1], lower[::-1], -self.expectation, self.deviation, slack, error
        )

    def _tail_from(self, t: float) -> float:
        # t itself carries rounding: a support point may be short of it by an ulp or two.
        j = int(np.searchsorted(self.support, t - 4e-16 * abs(t), side="left"))
        return float(self.tail[j]) if j < self.tail.size else 0.0

    def ppf(self, q: float) -> float:
        """Return the q-quantile, exact to within ``slack``."""
        exceed = np.append(self.tail[1:], 0.0)  # P(T > support[j])
        j = int(np.searchsorted(-exceed, -(1.0 - q) - 1e-15, side="left"))
        return float(self.support[min(j, self.support.size - 1)])

    def rvs(self, size: int, rng: RNG = None) -> FloatArray:
        u = np.random.default_rng(rng).random(size)
        return self.support[np.searchsorted(-self.tail, -u, side="right") - 1]


@dataclass(frozen=True, eq=False)
class RootNull(ExactNull):
    """The law of √T for a T ≥ 0 whose law was computed; ``support`` is that of the root."""

    square: ExactNull | None = field(default=None, repr=False)

    @classmethod
    def of(cls, square: ExactNull) -> RootNull:
        """Take the root; O(m)."""
        support = np.sqrt(np.maximum(square.support, 0.0))
        mass = square.tail - np.append(square.tail[1:], 0.0)
        mean = float(mass @ support)
        deviation = float(np.sqrt(mass @ (support - mean) ** 2))
        return cls(support, square.tail, mean, deviation, error=square.error, square=square)

    def bracket(
        self, t: float, two_sided: bool = False, centre: float = 0.0
    ) -> tuple[float, float]:
        """Return two numbers between which P(√T ≥ t) lies, which is P(T ≥ t²)."""
        assert self.square is not None
        return self.square.bracket(t * t) if t > 0.0 else (1.0, 1.0)


@dataclass(frozen=True, eq=False)
class AsymptoticNull(NullDistribution):
    """A null distribution in the limit of many observations.

    ``law`` is a frozen distribution of scipy.stats, such as ``scipy.stats.chi2(10)``.
    """

    law: Any

    def mean(self) -> float:
        return float(self.law.mean())

    def std(self) -> float:
        return float(self.law.std())

    def sf(self, t: float) -> float:
        return float(self.law.sf(t))

    def ppf(self, q: float) -> float:
        return float(self.law.ppf(q))

    def rvs(self, size: int, rng: RNG = None) -> FloatArray:
        return np.asarray(self.law.rvs(size=size, random_state=np.random.default_rng(rng)))


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
class BrownianNull(NullDistribution):
    """The law of ``scale`` · max|W| or ``scale`` · (max W − min W), W Brownian motion on [0, 1].

    ``extent`` is "maximum" or "range". With φ_k = (k + ½)π, for small x
    P(max|W| < x) = 2 Σ_{k≥0} (−1)^k exp(−φ_k² / 2x²) / φ_k and
    P(max W − min W < x) = Σ_{k≥0} (8 / x² + 2 / φ_k²) exp(−2 φ_k² / x²); for large x, with Q the
    normal tail, P(max|W| ≥ x) = 4 Σ_{k≥0} (−1)^k Q((2k + 1) x) and
    P(max W − min W ≥ x) = 8 Σ_{k≥1} (−1)^{k−1} k Q(kx) (Feller, Annals of Mathematical Statistics
    22, 1951). Tails keep their digits down to 1e-300.

    Examples
    --------
    >>> round(BrownianNull("maximum").ppf(0.95), 6), round(BrownianNull("range").ppf(0.95), 6)
    (2.241403, 2.497672)
    """

    extent: Extent
    scale: float = 1.0

    def mean(self) -> float:
        return float(self.scale * MOMENTS[self.extent][0])

    def std(self) -> float:
        return float(self.scale * np.sqrt(MOMENTS[self.extent][1]))

    def sf(self, t: float) -> float:
        if t <= 0.0 or self.scale == 0.0:
            return float(t <= 0.0)
        return float(_tail(self.extent, np.array([t / self.scale]))[0])

    def ppf(self, q: float) -> float:
        return float(self.scale * _quantiles(self.extent, np.array([1.0 - q]))[0])

    def rvs(self, size: int, rng: RNG = None) -> FloatArray:
        return self.scale * _quantiles(self.extent, np.random.default_rng(rng).random(size))


def _tail(extent: Extent, x: FloatArray) -> FloatArray:
    from scipy.special import erfc

    small = x < HANDOVER[extent]
    near = np.where(small, np.maximum(x, 1e-3), 1.0)[:, None]  # nothing lies below 0.001
    far = np.where(small, 10.0, x)[:, None]
    k, angle = np.arange(8), (np.arange(8) + 0.5) * np.pi
    sign = (-1.0) ** k
    if extent == "maximum":
        lower = 2.0 * (sign / angle * np.exp(-0.5 * (angle / near) ** 2)).sum(axis=1)
        upper = 2.0 * (sign * erfc((2 * k + 1) * far / np.sqrt(2.0))).sum(axis=1)
    else:
        width = 8.0 / near**2 + 2.0 / angle**2
        lower = (width * np.exp(-2.0 * (angle / near) ** 2)).sum(axis=1)
        upper = 4.0 * (sign * (k + 1) * erfc((k + 1) * far / np.sqrt(2.0))).sum(axis=1)
    return np.where(small, 1.0 - lower, upper)


def _quantiles(extent: Extent, tails: FloatArray) -> FloatArray:
    """Return where the tail probabilities are reached, by bisection."""
    low, high = np.zeros(tails.size), np.full(tails.size, 64.0)
    for _ in range(64):
        middle = 0.5 * (low + high)
        above = _tail(extent, middle) > tails
        low, high = np.where(above, middle, low), np.where(above, high, middle)
    return high


class MarkovNull(AsymptoticNull):
    """The heaviest tail that an e-value can have under calibration: P(E ≥ t) = 1/t."""

    def mean(self) -> float:
        return 1.0  # at most

    def std(self) -> float:
        return float("nan")  # not known


def markov(labels: IntArray) -> MarkovNull:
    """Return Markov's bound, the same for all labels."""
    from scipy.stats import pareto

    return MarkovNull(pareto(1.0))
