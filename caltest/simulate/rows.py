"""Binned errors of resampled rows, in cells that are fixed or made anew from each sample.

Rows are not copied: :mod:`caltest.simulate.row_counts` says how often each (row, label) was drawn,
and the errors here are functions of these counts, for a block of replicates (lanes) at once.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from caltest._base.compiled import inlined, kernel
from caltest.binning import FIXED, Binning, QuantileBins, VarianceTree
from caltest.distances import NAMED
from caltest.predictions import FloatArray, IntArray
from caltest.simulate.row_counts import TILE, Counts, RowCounts, add_singles, count_singles
from caltest.simulate.streams import Seed, keys

#: Lanes that are worked on together; fewer where counts would take too much memory.
LANES = 256
#: Counts of all rows that are held at once, counts of a stretch of rows, and sums in tables.
ALL_ROWS, STRETCH, TABLES = 1 << 26, 1 << 19, 1 << 17


@dataclass(frozen=True, eq=False)
class SumError:
    """An error that sums over fixed cells determine: counts and predictions, in ``cell[i, k]``.

    ``value`` makes errors of the sums of counts, shape (S, lanes), and of predictions, which the
    first columns of ``cell`` only have to be given for.
    """

    probs: FloatArray = field(repr=False)
    cell: NDArray[np.int32] = field(repr=False)
    n_sums: int
    n_predicted: int
    value: Callable[[NDArray[np.int32], FloatArray], FloatArray] = field(repr=False)


@dataclass(frozen=True, eq=False)
class RowResamples:
    """An error of resampled rows: n pairs of a row and a label, drawn with replacement.

    Notes
    -----
    O(n K) once. For n = 10⁴ a replicate costs some 8 µs in fixed cells of two classes, 40 µs for
    ten classes, 20 µs in equal-mass bins, and O(n K log(n / min_size)) in a tree.
    """

    counts: RowCounts = field(repr=False)
    error: SumError | Callable[[Counts], FloatArray] = field(repr=False)

    def replicates(self, seed: Seed, first: int, count: int) -> FloatArray:
        """Return replicates ``first``, …, ``first + count − 1``.

        Each depends on the seed, two numbers below 2⁶⁴, and its own number only. They are made
        by up to 256, so that calls which begin at a multiple of that are fastest.
        """
        lanes, size, most = LANES, self.counts.upto.size, ALL_ROWS
        if isinstance(self.error, SumError):
            size, most = self.error.n_sums, TABLES
        while lanes > 8 and lanes * size > most:
            lanes //= 2
        values = [np.empty(0)]
        start = first - first % lanes
        for block in range(start, first + count, lanes):
            key = keys(seed, block // TILE, 1)[:, 0]
            values.append(self._block(key, block % TILE, lanes))
        return np.concatenate(values)[first - start :][:count]

    def _block(self, key: NDArray[np.uint64], lane: int, lanes: int) -> FloatArray:
        upto = self.counts.upto
        n, n_classes = upto.shape
        totals = np.zeros(lanes, dtype=np.int64)
        if not isinstance(self.error, SumError):
            counts = self.counts.room(n, lanes)
            self.counts.poisson(key, lane, 0, counts, totals)
            count_singles(key, lane, upto, totals, counts)
            return self.error(counts)
        # Counts of a stretch of rows stay in a near cache until they are added up.
        rows = self.error
        events = np.zeros((rows.n_sums, lanes), dtype=np.int32)
        predicted = np.zeros((rows.n_sums, lanes))
        stretch = max(1, STRETCH // (n_classes * lanes))
        counts = self.counts.room(stretch, lanes)
        for a in range(0, n, stretch) if self.counts.ladders.size > 0 else ():
            part = counts[: n - a]
            self.counts.poisson(key, lane, a, part, totals)
            here = slice(a, a + stretch)
            cells = rows.probs[here], rows.cell[here], rows.n_predicted
            _add_counts(part, self.counts.depths[here], *cells, events, predicted)
        tables = rows.probs, rows.cell, rows.n_predicted
        add_singles(key, lane, upto, totals, *tables, events, predicted)
        return rows.value(events, predicted)


def resampled_cells(
    probs: FloatArray,
    outcomes: FloatArray,
    bins: Binning | None,
    order: IntArray,
    starts: IntArray,
    distance: str,
    combine: str,
) -> RowResamples | None:
    """Prepare a binned error; None where nothing is known of how its cells follow the sample.

    ``outcomes`` are the probabilities q_ik of the labels of every row; of the rows as they are,
    ``order[starts[b]:starts[b + 1]]`` make up cell b.
    """
    code, largest = list(NAMED).index(distance), combine == "max"
    if isinstance(bins, QuantileBins):
        order = np.argsort(probs[:, 0] if bins.closed == "right" else -probs[:, 0])
    # Rows in the order of their cells: those which stay together lie together.
    rows = np.ascontiguousarray(probs[order], dtype=np.float64)
    counts = RowCounts.of(outcomes[order])
    if isinstance(bins, QuantileBins):
        return RowResamples(counts, partial(_quantiles, rows, bins.n_bins, code, largest))
    if isinstance(bins, VarianceTree):
        tree = bins.split == "mean", *bins.limits
        return RowResamples(counts, partial(_trees, rows, tree, code, largest))
    if not isinstance(bins, FIXED):
        return None
    if probs.shape[1] > 2:  # sums of every class of every cell may be too many to keep
        return RowResamples(counts, partial(_joint, rows, starts, code, largest))
    cell = np.repeat(np.arange(starts.size - 1, dtype=np.int32), np.diff(starts))
    cells = np.column_stack([2 * cell, 2 * cell + 1])
    value = partial(_two_classes, distance, largest)
    return RowResamples(counts, SumError(rows, cells, 2 * starts.size - 2, 1, value))


def resampled_classes(
    probs: FloatArray,
    outcomes: FloatArray,
    cell: NDArray[np.unsignedinteger[Any]],
    starts: IntArray,
    aggregate: Callable[[FloatArray], FloatArray],
) -> RowResamples:
    """Prepare class-wise errors in fixed cells: ``cell[i, k]`` of row i for class k.

    The cells of class k are those from ``starts[k]``; ``aggregate`` combines errors (B, K).
    """
    rows = np.ascontiguousarray(probs, dtype=np.float64)
    value = partial(_every_class, starts, len(probs), aggregate)
    sums = SumError(rows, cell.astype(np.int32), int(starts[-1]), probs.shape[1], value)
    return RowResamples(RowCounts.of(outcomes), sums)


def _two_classes(
    distance: str, largest: bool, events: NDArray[np.int32], predicted: FloatArray
) -> FloatArray:
    labels = events.reshape(-1, 2, events.shape[1])
    size = labels.sum(axis=1)
    gap = np.abs(labels[:, 0] - predicted[::2])
    with np.errstate(divide="ignore", invalid="ignore"):  # cells without rows count nothing
        if distance == "sqeuclidean":
            gap = np.where(size > 0, 2.0 * gap * gap / size, 0.0)
        else:
            gap *= {"l1": 2.0, "l2": 2.0**0.5}.get(distance, 1.0)
        if largest:
            return np.asarray(np.where(size > 0, gap / size, 0.0).max(axis=0))
    return np.asarray(gap.sum(axis=0) / size[:, 0].sum() if size.size else gap.sum(axis=0))


def _every_class(
    starts: IntArray,
    n: int,
    aggregate: Callable[[FloatArray], FloatArray],
    events: NDArray[np.int32],
    predicted: FloatArray,
) -> FloatArray:
    return aggregate(np.add.reduceat(np.abs(events - predicted), starts[:-1], axis=0).T / n)


def _joint(
    rows: FloatArray, starts: IntArray, code: int, largest: bool, counts: Counts
) -> FloatArray:
    errors = np.zeros(counts.shape[2])
    _joint_errors(counts, rows, starts, code, largest, errors)
    return errors


def _quantiles(
    rows: FloatArray, n_bins: int, code: int, largest: bool, counts: Counts
) -> FloatArray:
    errors = np.zeros(counts.shape[2])
    _quantile_errors(counts, np.ascontiguousarray(rows[:, 0]), n_bins, code, largest, errors)
    return errors


def _trees(
    rows: FloatArray, tree: tuple[bool, int, int], code: int, largest: bool, counts: Counts
) -> FloatArray:
    # A tree goes its own way in every lane: the counts of a lane are brought together.
    lanes = np.ascontiguousarray(counts.transpose(2, 0, 1))
    return np.array([_tree_error(rows, lane, *tree, code, largest) for lane in lanes])


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


@kernel
def _add_counts(  # type: ignore[no-untyped-def]
    counts, depths, probs, cell, n_predicted, events_out, predicted_out
):
    # O(rows K) per lane. Whole counts and sums of predictions stay apart: subtracted row by row,
    # equal sums would differ by their rounding. A stretch of rows cannot fill 16 bits.
    n, n_classes, lanes = counts.shape
    events = np.zeros(events_out.shape, dtype=np.uint16)
    size = np.empty(lanes, dtype=np.uint8)
    drawn = np.empty(lanes)
    for i in range(n):
        size[:] = 0
        for k in range(n_classes):
            if depths[i, k] > 0:
                row, total = counts[i, k], events[cell[i, k]]
                for q in range(lanes):
                    size[q] = np.uint8(size[q] + row[q])
                    total[q] = np.uint16(total[q] + row[q])
        if n_predicted == 1:
            p, total = probs[i, 0], predicted_out[cell[i, 0]]
            for q in range(lanes):
                total[q] += p * np.float64(np.int32(size[q]))
            continue
        for q in range(lanes):
            drawn[q] = np.float64(np.int32(size[q]))
        for k in range(n_predicted):
            p, total = probs[i, k], predicted_out[cell[i, k]]
            for q in range(lanes):
                total[q] += p * drawn[q]
    for b in range(len(events)):
        for q in range(lanes):
            events_out[b, q] += np.int32(events[b, q])


@kernel
def _joint_errors(  # type: ignore[no-untyped-def]
    counts, probs, starts, code, largest, errors_out
):
    # O(n K) per lane: rows of a cell lie together, and only its sums are kept.
    n, n_classes, lanes = counts.shape
    events, predicted = np.empty((n_classes, lanes), dtype=np.int32), np.empty((n_classes, lanes))
    gap, drawn, size = np.empty(lanes), np.empty(lanes), np.empty(lanes)
    row = np.empty(lanes, dtype=np.uint8)
    for b in range(starts.size - 1):
        size[:] = 0.0
        for i in range(starts[b], starts[b + 1]):
            row[:] = 0
            fresh = i == starts[b]  # many cells have a row or two: set what others add to
            for k in range(n_classes):
                count, total = counts[i, k], events[k]
                if fresh:
                    for q in range(lanes):
                        row[q] = np.uint8(row[q] + count[q])
                        total[q] = np.int32(count[q])
                else:
                    for q in range(lanes):
                        row[q] = np.uint8(row[q] + count[q])
                        total[q] += np.int32(count[q])
            for q in range(lanes):
                drawn[q] = np.float64(np.int32(row[q]))
                size[q] += drawn[q]
            for k in range(n_classes):
                p, mass = probs[i, k], predicted[k]
                if fresh:
                    for q in range(lanes):
                        mass[q] = p * drawn[q]
                else:
                    for q in range(lanes):
                        mass[q] += p * drawn[q]
        gap[:] = 0.0
        for k in range(n_classes):
            total, mass = events[k], predicted[k]
            if code <= 1:
                for q in range(lanes):
                    gap[q] += abs(np.float64(total[q]) - mass[q])
            else:
                for q in range(lanes):
                    gap[q] = _added(gap[q], np.float64(total[q]) - mass[q], code)
        for q in range(lanes):
            if size[q] > 0.0:
                d = _measured(gap[q], size[q], code)
                errors_out[q] = max(errors_out[q], d / size[q]) if largest else errors_out[q] + d
    if not largest:
        for q in range(lanes):
            errors_out[q] /= n


@kernel
def _quantile_errors(counts, p, m, code, largest, errors_out):  # type: ignore[no-untyped-def]
    # O(n) per lane: a cell ends with the value at which the j-th of m equal parts is full, at a
    # total of `full` rows.
    n, _, lanes = counts.shape
    gap = np.zeros(lanes)
    total, begun = np.zeros(lanes, dtype=np.int32), np.zeros(lanes, dtype=np.int32)
    part = np.ones(lanes, dtype=np.int64)
    full = np.full(lanes, -(-n // m) if m > 1 else n + 1, dtype=np.int32)
    for i in range(n):
        value, ends = p[i], 0
        for q in range(lanes):
            hits = np.int32(counts[i, 0, q])
            drawn = hits + np.int32(counts[i, 1, q])
            gap[q] += value * np.float64(drawn) - np.float64(hits)
            total[q] += drawn
            ends += np.int32(total[q] >= full[q])
        last = i == n - 1
        if not last and (ends == 0 or p[i + 1] == value):
            continue
        for q in range(lanes):
            size = total[q] - begun[q]
            if size > 0 and (last or total[q] >= full[q]):
                d = _measured(_added(_added(0.0, gap[q], code), gap[q], code), size, code)
                errors_out[q] = max(errors_out[q], d / size) if largest else errors_out[q] + d / n
                gap[q] = 0.0
                begun[q] = total[q]
                while part[q] < m and np.int64(total[q]) * m >= part[q] * n:
                    part[q] += 1
                full[q] = -(-part[q] * n // m) if part[q] < m else n + 1


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
    # Rows that were not drawn are left out from the start: some 37 of 100.
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
    sums, squares, events = np.empty(n_classes), np.empty(n_classes), np.empty(n_classes)
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
        events[:] = 0.0
        for a in range(first, last):
            for k in range(n_classes):
                events[k] += counts[rows[a], k]
        gap = 0.0
        for k in range(n_classes):
            gap = _added(gap, events[k] - sums[k], code)
        gap = _measured(gap, size, code)
        error = max(error, gap / size) if largest else error + gap / n
    return error
