"""Null distributions: what the statistic does when the model is calibrated."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

import numpy as np

from caltest.predictions import FloatArray


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


def below(t: float, values: FloatArray) -> float:
    """Return the threshold from which on one of the values counts as a tie with t or as larger.

    Statistics of labels are often discrete, and rounding must not split their ties. Frequencies
    are of order 1, so their differences carry rounding of order 1e-16 however small they are.
    """
    scale = max(abs(float(values.min())), abs(float(values.max())))
    return t - (1e-10 * abs(t) + 1e-12 * scale + 1e-15)


@dataclass(frozen=True, eq=False)
class SimulatedNull:
    """A null distribution known through replicates; ``np.asarray`` gives them.

    Attributes
    ----------
    values : ndarray of shape (B,)
        The replicates, in the order in which they were drawn.
    ended : {"complete", "early", "interrupted"}
        Whether all replicates were drawn, or sequential stopping or Ctrl-C ended the run.
    """

    values: FloatArray = field(repr=False)
    ended: Literal["complete", "early", "interrupted"] = "complete"

    def mean(self) -> float:
        """Return the mean of the replicates."""
        return float(self.values.mean())

    def std(self) -> float:
        """Return the standard deviation of the replicates."""
        return float(self.values.std())

    def sf(self, t: float) -> float:
        """Return the share of replicates that are at least t, ties included."""
        return float((self.values >= below(t, self.values)).mean())

    def ppf(self, q: float) -> float:
        """Return the q-quantile of the replicates."""
        return float(np.quantile(self.values, q, method="inverted_cdf"))

    def rvs(self, size: int, rng: Any = None) -> FloatArray:
        """Draw from the replicates with replacement."""
        return np.random.default_rng(rng).choice(self.values, size)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        return np.array(self.values, dtype=dtype, copy=copy)

    def __len__(self) -> int:
        return self.values.size


@dataclass(frozen=True, eq=False)
class ExactNull:
    """A null distribution that was computed, not simulated.

    Attributes
    ----------
    support : ndarray of shape (m,)
        Increasing values of the statistic.
    tail : ndarray of shape (m,)
        P(T ≥ support[j]), for T rounded to the support.
    slack : float
        How far rounding can have moved a value of T; 0 when the support is exact.
    error : float
        A bound on the error of every probability in ``tail``.
    """

    support: FloatArray = field(repr=False)
    tail: FloatArray = field(repr=False)
    expectation: float
    deviation: float
    slack: float = 0.0
    error: float = 0.0

    def mean(self) -> float:
        """Return the expected value, from the exact law."""
        return self.expectation

    def std(self) -> float:
        """Return the standard deviation, from the exact law."""
        return self.deviation

    def bracket(self, t: float) -> tuple[float, float]:
        """Return two numbers between which P(T ≥ t) lies.

        Rounding to the grid is bounded exactly, floating-point error by a measured allowance.
        """
        threshold = below(t, self.support)
        lower = self._tail_from(threshold + self.slack) - self.error
        upper = self._tail_from(threshold - self.slack) + self.error
        return min(max(lower, 0.0), 1.0), min(upper, 1.0)

    def sf(self, t: float) -> float:
        """Return P(T ≥ t), the upper end of its bracket."""
        return self.bracket(t)[1]

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
        """Draw independent values by inversion."""
        u = np.random.default_rng(rng).random(size)
        return self.support[np.searchsorted(-self.tail, -u, side="right") - 1]
