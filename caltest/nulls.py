"""Null distributions: what the statistic does when the model is calibrated."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, Literal, Protocol

import numpy as np

from caltest._base.arrays import FloatArray, below, reaching
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

    def rvs(self, size: int, rng: Any = None) -> FloatArray:
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

    def rvs(self, size: int, rng: Any = None) -> FloatArray:
        return np.random.default_rng(rng).choice(self.values, size)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        if copy is None:  # which NumPy before 2 does not know
            return np.asarray(self.values, dtype=dtype)
        return np.array(self.values, dtype=dtype, copy=copy)

    def __len__(self) -> int:
        return self.values.size


@dataclass(frozen=True, eq=False)
class ExactNull(NullDistribution):
    """A null distribution that was computed, not simulated.

    Attributes
    ----------
    support, tail : ndarray of shape (m,)
        Increasing values of the statistic, and P(T ≥ support[j]), for T rounded to the support.
    slack, error : float
        How far rounding can have moved a value of T (0 when the support is exact), and a bound on
        the error of every probability in ``tail``.
    lower : ndarray of shape (m,), optional
        P(T ≤ support[j]), which ``tail`` gives to no more than 16 decimals.
    edge, slack_beyond : float
        Where the support becomes coarser, and its slack from there on.
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

    def rvs(self, size: int, rng: Any = None) -> FloatArray:
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

    def rvs(self, size: int, rng: Any = None) -> FloatArray:
        return np.asarray(self.law.rvs(size=size, random_state=np.random.default_rng(rng)))
