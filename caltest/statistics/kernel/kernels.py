"""Kernels between predictions, and the median heuristic for their bandwidth."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache
from typing import ClassVar, Self

import numpy as np

from caltest._base.checks import number
from caltest._base.compiled import kernel
from caltest._base.written import Written
from caltest.errors import StatisticError
from caltest.predictions import FloatArray, IntArray

#: Up to this many rows of three or more classes the median is over all pairs, above over a sample.
MEDIAN_ROWS = 10_000


def median(probs: FloatArray, distance: str, diagonal: bool) -> float:
    """Return the median distance of three classes or more, or what stands in for it."""
    n = len(probs)
    if n > MEDIAN_ROWS:
        ordered = np.lexsort(probs.T[::-1])
        probs = probs[ordered[np.arange(MEDIAN_ROWS) * n // MEDIAN_ROWS]]
    columns = np.ascontiguousarray(probs.T)
    manhattan = distance == "tv"

    @cache
    def digits(prefix: int, shift: int) -> IntArray:
        counts = np.zeros(2**16, dtype=np.int64)
        _digits(columns, manhattan, prefix, shift, counts)
        return counts

    def kth(rank: int, copies: int, zeros: int) -> float:
        # Radix selection: distances are ≥ 0, so that their bits are ordered as they are.
        prefix = 0
        for shift in (48, 32, 16, 0):
            cumulative = np.cumsum(copies * digits(prefix, shift)) + (zeros if prefix == 0 else 0)
            digit = int(np.searchsorted(cumulative, rank, side="right"))
            rank -= int(cumulative[digit - 1]) if digit else 0
            prefix = prefix << 16 | digit
        return float(np.int64(prefix).view(np.float64))

    def mean() -> float:
        return _total_distance(columns, manhattan) / max(1, len(probs) * (len(probs) - 1) // 2)

    return _middle(kth, len(probs), diagonal) or mean()


def median_on_line(x: FloatArray, diagonal: bool) -> float:
    """Return the median |x_i − x_j| of increasing numbers, or what stands in for it."""

    def kth(rank: int, copies: int, zeros: int) -> float:
        # The smallest t with more than ``rank`` distances ≤ t, by bisection over its bits.
        low, high = 0, int((x[-1] - x[0]).view(np.int64))
        while low < high:
            middle = (low + high) // 2
            t = np.int64(middle).view(np.float64)
            if zeros + copies * _pairs_within(x, t) > rank:
                high = middle
            else:
                low = middle + 1
        return float(np.int64(low).view(np.float64))

    def mean() -> float:
        n = x.size
        return float((2.0 * np.arange(n) - (n - 1)) @ x) / (n * (n - 1) // 2)

    return 0.0 if x[0] == x[-1] else _middle(kth, x.size, diagonal) or mean()


def _middle(kth: Callable[[int, int, int], float], n: int, diagonal: bool) -> float:
    """Return the median from what ranks the distances: each pair twice with the diagonal."""
    copies, zeros = (2, n) if diagonal else (1, 0)
    total = zeros + copies * (n * (n - 1) // 2)
    if total == 0:
        return 0.0
    low = kth((total - 1) // 2, copies, zeros)
    return low if total % 2 else 0.5 * (low + kth(total // 2, copies, zeros))


@kernel
def _digits(columns, manhattan, prefix, shift, counts_out):  # type: ignore[no-untyped-def]
    # O(n² K): how often each value of 16 bits occurs among the distances that begin with prefix.
    # In pieces that stay in the nearest cache.
    n_classes, n = columns.shape
    line = np.empty(512)
    bits = line.view(np.int64)
    for start in range(0, n, line.size):
        for i in range(start + 1, n):
            size = min(line.size, i - start)
            line[:size] = 0.0
            for k in range(n_classes):
                x, others = columns[k, i], columns[k, start : start + size]
                if manhattan:
                    for j in range(size):
                        line[j] += abs(x - others[j])
                else:
                    for j in range(size):
                        line[j] += (x - others[j]) ** 2
            for j in range(size):
                line[j] = 0.5 * line[j] if manhattan else np.sqrt(line[j])
            for j in range(size):
                if bits[j] >> shift >> 16 == prefix:
                    counts_out[bits[j] >> shift & 65535] += 1


@kernel
def _total_distance(columns, manhattan):  # type: ignore[no-untyped-def]
    # O(n² K).
    n_classes, n = columns.shape
    total = 0.0
    for i in range(n):
        for j in range(i):
            d = 0.0
            for k in range(n_classes):
                x = columns[k, i] - columns[k, j]
                d += 0.5 * abs(x) if manhattan else x * x
            total += d if manhattan else np.sqrt(d)
    return total


@kernel
def _pairs_within(x, t):  # type: ignore[no-untyped-def]
    # O(n): how many pairs of increasing numbers are at most t apart.
    first, count = 0, 0
    for j in range(x.size):
        while x[j] - x[first] > t:
            first += 1
        count += j - first
    return count


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
        # Of equal predictions every bandwidth gives the same values.
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
    """The kernel exp(−‖p − q‖₂ / ν) between rows of probabilities, in (0, 1].

    Parameters
    ----------
    bandwidth : float or {"median", "median-with-diagonal"}, default "median"
        The bandwidth ν > 0, StatisticError else, or a rule that makes it from the predictions
        alone, so that redrawn labels stay valid: the median of the distances ‖p − q‖₂ of all pairs
        i < j, or of all n² ordered pairs, the n zeros of rows with themselves included, as in the
        experiments of Widmann et al. (2019). Where it is 0 the mean distance of pairs i < j is
        taken, and 1 where that is 0 too. Of two classes ‖p − q‖₂ = √2 |p₁ − q₁|.

    Notes
    -----
    The median is exact and independent of the order of rows: O(n log n) for two classes; O(n² K)
    for more up to n = 10 000, above that over the pairs of 10 000 rows, taken at equal steps from
    the rows in lexicographic order.

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
