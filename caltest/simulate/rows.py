"""Binned errors of resampled rows whose cells follow the sample, or are many.

Rows are not copied: a replicate is the number of times each (row, label) was drawn, and the
partition of the sample is that of the original rows with these weights.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from caltest._base.compiled import counter_kernel, inlined, kernel
from caltest.binning import FIXED, Binning, QuantileBins, VarianceTree
from caltest.distances import NAMED
from caltest.predictions import FloatArray, IntArray
from caltest.simulate.streams import FIRST_FACTOR, GAMMA, SECOND_FACTOR, Seed, keys


@dataclass(frozen=True, eq=False)
class RowResamples:
    """A binned error of resampled rows, in cells that are fixed or made anew from each sample.

    Every replicate draws n pairs of a row and a label, with replacement: pair (i, k) with
    probability q_ik / n, as :class:`~caltest.simulate.poisson_rows.CellResamples` does; one 64-bit
    word makes a pair, so that the law of all draws is within n² 2⁻⁶³ of the ideal one.

    Notes
    -----
    O(n K) once. A replicate costs O(n K) in fixed cells, O(n) in equal-mass bins, some 5 ns per
    row, and O(n K log(n / min_size)) in a tree. Rows are kept in the order of the cells of the
    original sample, so that those which stay together lie together.
    """

    probs: FloatArray = field(repr=False)
    upto: FloatArray = field(repr=False)
    starts: IntArray = field(repr=False)
    bins: Binning
    distance: str
    combine: str

    @staticmethod
    def fits(bins: Any, size: int) -> bool:
        """Tell whether the cells of this binning can be made anew from counts."""
        return isinstance(bins, (QuantileBins, VarianceTree, *FIXED))

    @classmethod
    def of(
        cls,
        probs: FloatArray,
        outcomes: FloatArray,
        bins: Any,
        order: IntArray,
        starts: IntArray,
        distance: str,
        combine: str,
    ) -> RowResamples:
        """Prepare the rows; ``outcomes`` are the probabilities q_ik of the labels of every row."""
        if isinstance(bins, QuantileBins):
            order = np.argsort(probs[:, 0] if bins.closed == "right" else -probs[:, 0])
        rows = np.ascontiguousarray(probs[order], dtype=np.float64)
        return cls(rows, cumulative(outcomes[order]), starts, bins, distance, combine)

    def replicates(self, seed: Seed, first: int, count: int) -> FloatArray:
        """Return replicates ``first``, …, ``first + count − 1``.

        Each depends on the seed, two numbers below 2⁶⁴, and its own number only.
        """
        counts = np.empty(self.probs.shape, dtype=np.int32)
        measure = list(NAMED).index(self.distance), self.combine == "max"
        values = np.empty(count)
        for r, key in enumerate(keys(seed, first, count).T):
            _draw(key[0], key[1], self.upto, counts)
            if isinstance(self.bins, QuantileBins):
                values[r] = _quantile_error(self.probs, counts, self.bins.n_bins, *measure)
            elif isinstance(self.bins, VarianceTree):
                by_mean = self.bins.split == "mean"
                values[r] = _tree_error(self.probs, counts, by_mean, *self.bins.limits, *measure)
            else:
                values[r] = _fixed_error(self.probs, counts, self.starts, *measure)
        return values


@dataclass(frozen=True, eq=False)
class ClassResamples:
    """Class-wise errors of resampled rows, in fixed cells: ``cell[i, k]`` of row i for class k.

    Draws are those of :class:`RowResamples`; a replicate costs O(n K).
    """

    probs: FloatArray = field(repr=False)
    upto: FloatArray = field(repr=False)
    cell: NDArray[np.unsignedinteger[Any]] = field(repr=False)
    starts: IntArray = field(repr=False)
    combined: Callable[[FloatArray], FloatArray]

    def replicates(self, seed: Seed, first: int, count: int) -> FloatArray:
        """Return replicates ``first``, …, ``first + count − 1``."""
        counts = np.empty(self.probs.shape, dtype=np.int32)
        errors = np.empty((count, self.probs.shape[1]))
        for key, row in zip(keys(seed, first, count).T, errors, strict=True):
            _draw(key[0], key[1], self.upto, counts)
            _class_errors(self.probs, counts, self.cell, self.starts, row)
        return self.combined(errors)


def cumulative(outcomes: FloatArray) -> FloatArray:
    """Return the upper ends of the labels of every row, 1 from the last possible label on."""
    n_classes = outcomes.shape[1]
    upto = np.cumsum(outcomes, axis=1)
    last = n_classes - 1 - np.argmax(outcomes[:, ::-1] > 0.0, axis=1)
    upto[np.arange(n_classes) >= last[:, None]] = 1.0  # whatever rounding left below 1
    return upto


@inlined
def _added(gap, d, code):  # type: ignore[no-untyped-def]
    # One more component of a distance; codes follow distances.NAMED.
    if code <= 1:
        return gap + abs(d)
    return gap + d * d if code <= 3 else max(gap, abs(d))


@inlined
def _measured(gap, size, code):  # type: ignore[no-untyped-def]
    # The distance of the cell's means, times its size.
    if code == 0:
        return 0.5 * gap
    return np.sqrt(gap) if code == 2 else gap / size if code == 3 else gap


@counter_kernel
def _draw(key, twist, upto, counts_out):  # type: ignore[no-untyped-def]
    # O(n): how often each pair of a row and a label is drawn.
    n, n_classes = upto.shape
    low_half = np.uint64(0xFFFFFFFF)
    row = np.empty(512, dtype=np.uint64)
    uniform = np.empty(512)
    counts_out[:] = 0
    for start in range(0, n, 512):
        batch = min(512, n - start)
        for j in range(batch):
            z = key + GAMMA * np.uint64(start + j)
            z = (z ^ (z >> 30)) * FIRST_FACTOR ^ twist
            z = (z ^ (z >> 27)) * SECOND_FACTOR
            z ^= z >> 31
            # word * n in two halves: the row before the point, its label's uniform behind it
            low = (z & low_half) * np.uint64(n)
            high = (z >> 32) * np.uint64(n) + (low >> 32)
            row[j] = high >> 32
            bits = ((high & low_half) << 21) | ((low & low_half) >> 11)
            uniform[j] = np.float64(bits) * 2.0**-53
        for j in range(batch):
            label = np.uint64(uniform[j] >= upto[row[j], 0])
            for k in range(1, n_classes - 1):
                label += np.uint64(uniform[j] >= upto[row[j], k])
            counts_out[row[j], label] += 1


@kernel
def _fixed_error(probs, counts, starts, code, largest):  # type: ignore[no-untyped-def]
    # O(n K): rows of a cell lie together.
    n, n_classes = probs.shape
    gaps = np.empty(n_classes)
    error = 0.0
    for b in range(starts.size - 1):
        gaps[:] = 0.0
        size = 0
        for i in range(starts[b], starts[b + 1]):
            drawn = 0
            for k in range(n_classes):
                drawn += counts[i, k]
                gaps[k] -= counts[i, k]
            size += drawn
            if drawn > 0:
                for k in range(n_classes):
                    gaps[k] += drawn * probs[i, k]
        if size == 0:
            continue
        gap = 0.0
        for k in range(n_classes):
            gap = _added(gap, gaps[k], code)
        gap = _measured(gap, size, code)
        error = max(error, gap / size) if largest else error + gap / n
    return error


@kernel
def _class_errors(probs, counts, cell, starts, errors_out):  # type: ignore[no-untyped-def]
    # O(n K): each row moves the gap of one cell of every class.
    n, n_classes = probs.shape
    gaps = np.zeros(starts[n_classes])
    for i in range(n):
        drawn = 0
        for k in range(n_classes):
            drawn += counts[i, k]
        if drawn > 0:
            for k in range(n_classes):
                gaps[cell[i, k]] += drawn * probs[i, k] - counts[i, k]
    for k in range(n_classes):
        error = 0.0
        for b in range(starts[k], starts[k + 1]):
            error += abs(gaps[b])
        errors_out[k] = error / n


@kernel
def _quantile_error(probs, counts, m, code, largest):  # type: ignore[no-untyped-def]
    # O(n): a cell ends with the value at which the j-th of m equal parts is full.
    n = len(probs)
    error, gap = 0.0, 0.0
    size, total, j = 0, 0, 1
    for i in range(n):
        drawn = counts[i, 0] + counts[i, 1]
        gap += drawn * probs[i, 0] - counts[i, 0]
        size += drawn
        total += drawn
        last = i == n - 1
        full = j < m and total * m >= j * n
        if size > 0 and (last or (full and probs[i + 1, 0] != probs[i, 0])):
            d = _measured(_added(_added(0.0, gap, code), gap, code), size, code)
            error = max(error, d / size) if largest else error + d / n
            gap, size = 0.0, 0
            while j < m and total * m >= j * n:
                j += 1
    return error


@inlined
def _median(probs, rows, weight, value, spare, first, last, axis, size):  # type: ignore[no-untyped-def]
    # The values of ranks (size - 1) // 2 and size // 2, by weighted quickselect.
    rank, low, high = (size - 1) // 2, first, last
    centre = 0.0
    for a in range(first, last):
        spare[a] = rows[a]
        value[a] = probs[rows[a], axis]
    before = 0
    upper = np.inf
    while True:
        x, y, pivot = value[low], value[high - 1], value[(low + high) // 2]
        pivot = max(min(x, y), min(max(x, y), pivot))
        left, i, right = low, low, high
        lighter, equal = 0, 0
        while i < right:
            v, row = value[i], spare[i]
            if v < pivot:
                lighter += weight[row]
                value[i], spare[i] = value[left], spare[left]
                value[left], spare[left] = v, row
                left += 1
                i += 1
            elif v > pivot:
                right -= 1
                value[i], spare[i] = value[right], spare[right]
                value[right], spare[right] = v, row
            else:
                equal += weight[row]
                i += 1
        if rank < before + lighter:
            upper = pivot
            high = left
        elif rank < before + lighter + equal:
            centre = pivot
            if size % 2 == 0 and rank + 1 == before + lighter + equal:
                for a in range(right, high):
                    upper = min(upper, value[a])
                centre = (pivot + upper) / 2.0
            break
        else:
            before += lighter + equal
            low = right
    return centre


@kernel
def _tree_error(  # type: ignore[no-untyped-def]
    probs, counts, by_mean, smallest_node, smallest_part, code, largest
):
    # O(n K) for each level. A node is a stretch of `rows`, its left part is moved to the front.
    n, n_classes = probs.shape
    n_axes = 1 if n_classes == 2 else n_classes
    rows, spare = np.empty(n, dtype=np.int64), np.empty(n, dtype=np.int64)
    weight, value = np.empty(n, dtype=np.int64), np.empty(n)
    occupied = 0
    for i in range(n):
        weight[i] = 0
        for k in range(n_classes):
            weight[i] += counts[i, k]
        if weight[i] > 0:
            rows[occupied] = i
            occupied += 1
    sums, squares, seen = np.empty(n_classes), np.empty(n_classes), np.empty(n_classes)
    firsts, lasts = np.empty(occupied + 1, dtype=np.int64), np.empty(occupied + 1, dtype=np.int64)
    firsts[0], lasts[0] = 0, occupied
    waiting = 1
    error = 0.0
    while waiting > 0:
        waiting -= 1
        first, last = firsts[waiting], lasts[waiting]
        sums[:] = 0.0
        squares[:] = 0.0
        size = 0
        for a in range(first, last):
            w = weight[rows[a]]
            size += w
            for k in range(n_classes):
                v = probs[rows[a], k]
                sums[k] += w * v
                squares[k] += w * v * v
        middle, n_below = first, 0
        if size >= smallest_node:
            axis, widest = 0, -1.0
            for k in range(n_axes):
                variance = squares[k] / size - (sums[k] / size) ** 2
                if variance > widest:
                    axis, widest = k, variance
            centre = sums[axis] / size
            if not by_mean:
                centre = _median(probs, rows, weight, value, spare, first, last, axis, size)
            right = 0
            for a in range(first, last):
                row = rows[a]
                if probs[row, axis] < centre:
                    rows[middle] = row
                    middle += 1
                    n_below += weight[row]
                else:
                    spare[right] = row
                    right += 1
            for a in range(right):
                rows[middle + a] = spare[a]
        if min(n_below, size - n_below) >= smallest_part:
            firsts[waiting], lasts[waiting] = middle, last
            firsts[waiting + 1], lasts[waiting + 1] = first, middle
            waiting += 2
            continue
        seen[:] = 0.0
        for a in range(first, last):
            for k in range(n_classes):
                seen[k] += counts[rows[a], k]
        gap = 0.0
        for k in range(n_classes):
            gap = _added(gap, seen[k] - sums[k], code)
        gap = _measured(gap, size, code)
        error = max(error, gap / size) if largest else error + gap / n
    return error
