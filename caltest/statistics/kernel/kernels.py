"""Kernels between predictions."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import ClassVar, Self

import numpy as np

from caltest._base.checks import number
from caltest._base.compiled import kernel
from caltest._base.written import Written
from caltest.errors import StatisticError
from caltest.predictions import FloatArray
from caltest.statistics.kernel.bandwidth import median, median_on_line

#: A kernel takes rows of probabilities, (a, K) and (b, K), and returns the (a, b) values.
Kernel = Callable[[FloatArray, FloatArray], FloatArray]


@dataclass(frozen=True, repr=False)
class DistanceKernel(Written):
    """What the kernels share: a distance, its bandwidth, and how the bandwidth is chosen."""

    bandwidth: float | str = "median"
    #: ``"tv"`` or ``"l2"``.
    distance: ClassVar[str] = "l2"
    #: Two rows of a two-class problem are this many times |p − q| apart, p and q of either class.
    two_class: ClassVar[float] = 2.0**0.5

    def __post_init__(self) -> None:
        width = self.bandwidth
        if not isinstance(width, str):
            number("bandwidth", width, 0.0, np.inf)
            object.__setattr__(self, "bandwidth", float(width))
        elif width not in ("median", "median-with-diagonal"):
            raise StatisticError(
                f"bandwidth must be a number > 0, 'median' or 'median-with-diagonal', not {width!r}"
            )

    def fitted(self, probs: FloatArray) -> Self:
        """Return the same kernel with the bandwidth that these predictions, (n, K), give it."""
        if not isinstance(self.bandwidth, str):
            return self
        diagonal = self.bandwidth == "median-with-diagonal"
        if probs.shape[1] == 2:
            width = self.two_class * median_on_line(np.sort(probs[:, 0]), diagonal)
        else:
            width = median(probs, self.distance, diagonal)
        return replace(self, bandwidth=width or 1.0)

    def __call__(self, rows: FloatArray, others: FloatArray) -> FloatArray:
        """Return the values for rows (a, K) and others (b, K), O(a b K)."""
        values = self._distances(rows, others, squared=False)
        values *= -1.0 / float(self.bandwidth)
        return np.exp(values, out=values)

    def _distances(self, rows: FloatArray, others: FloatArray, *, squared: bool) -> FloatArray:
        if isinstance(self.bandwidth, str):
            raise StatisticError(f"{self!r} has no bandwidth yet: use {self!r}.fitted(probs)")
        out = np.empty((len(rows), len(others)))
        columns = np.ascontiguousarray(others.T)
        _distances(np.ascontiguousarray(rows), columns, self.distance == "tv", out)
        if self.distance == "l2" and not squared:
            np.sqrt(out, out=out)
        return out


@dataclass(frozen=True, repr=False)
class LaplaceKernel(DistanceKernel):
    """The kernel exp(−‖p − q‖₂ / ν) between rows of probabilities.

    Parameters
    ----------
    bandwidth : float or {"median", "median-with-diagonal"}, default "median"
        The bandwidth ν > 0, or a rule that makes it from the predictions alone, so that tests with
        redrawn labels stay valid. ``"median"`` is the median of the distances of all pairs i < j,
        with an even number of pairs the mean of the two in the middle; ``"median-with-diagonal"``
        is that of all n² ordered pairs, the n zeros of rows with themselves included, as in the
        experiments of Widmann et al. (2019). Where the median is 0 the mean of the distances of
        pairs i < j is taken, and 1 where that is 0 too. Distances are those of the kernel: ‖p − q‖₂
        here and for :class:`GaussianKernel`, total variation for :class:`TVKernel`.

    Raises
    ------
    StatisticError
        For a bandwidth that is neither a number above 0 nor one of the names.

    Notes
    -----
    In (0, 1], and 1 for equal rows. The median is exact and independent of the order of rows:
    O(n log n) for two classes; O(n² K) for more up to n = 10 000, above that it is over the pairs
    of 10 000 rows, taken at equal steps from the rows in lexicographic order. For two classes
    ‖p − q‖₂ = √2 |p₁ − q₁|.

    Examples
    --------
    >>> probs = np.array([[0.5, 0.5, 0.0], [0.5, 0.0, 0.5], [0.0, 0.5, 0.5]])
    >>> LaplaceKernel(0.5)(probs, probs).round(3).tolist()[0]
    [1.0, 0.243, 0.243]
    >>> LaplaceKernel("median").fitted(probs)
    LaplaceKernel(0.7071067811865476)
    """


@dataclass(frozen=True, repr=False)
class GaussianKernel(DistanceKernel):
    """The kernel exp(−‖p − q‖₂² / (2ν²)) between rows of probabilities.

    See :class:`LaplaceKernel` for the bandwidth ν and how the median of ‖p − q‖₂ gives it.

    Examples
    --------
    >>> round(float(GaussianKernel(1.0)(np.eye(2)[:1], np.eye(2)[1:])[0, 0]), 6)
    0.367879
    """

    def __call__(self, rows: FloatArray, others: FloatArray) -> FloatArray:
        values = self._distances(rows, others, squared=True)
        values *= -0.5 / float(self.bandwidth) ** 2
        return np.exp(values, out=values)


@dataclass(frozen=True, repr=False)
class TVKernel(DistanceKernel):
    """The kernel exp(−TV(p, q) / ν) between rows, TV(p, q) = ½ Σ_k |p_k − q_k|.

    The kernel of the experiments of Widmann et al. (2019); for two classes TV(p, q) = |p₁ − q₁|.
    See :class:`LaplaceKernel` for the bandwidth ν.

    Examples
    --------
    >>> round(float(TVKernel(1.0)(np.eye(3)[:1], np.eye(3)[1:2])[0, 0]), 6)
    0.367879
    """

    distance: ClassVar[str] = "tv"
    two_class: ClassVar[float] = 1.0


@kernel
def _distances(rows, columns, manhattan, out):  # type: ignore[no-untyped-def]
    # O(a b K): total variation, or the square of the Euclidean distance.
    for i in range(rows.shape[0]):
        line = out[i]
        line[:] = 0.0
        for k in range(rows.shape[1]):
            x = rows[i, k]
            if manhattan:
                for j in range(line.size):
                    line[j] += abs(x - columns[k, j])
            else:
                for j in range(line.size):
                    line[j] += (x - columns[k, j]) ** 2
        if manhattan:
            for j in range(line.size):
                line[j] *= 0.5
