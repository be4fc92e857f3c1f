"""The median heuristic: a bandwidth from the distances between predictions."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import numpy as np

from caltest._base.compiled import kernel
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
