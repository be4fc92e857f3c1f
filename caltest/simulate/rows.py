"""Binned errors of resampled rows, in cells that are fixed or made anew from each sample.

Rows are not copied: :mod:`caltest.simulate.row_counts` says how often each (row, label) was drawn,
and the errors here are functions of these counts, for a block of replicates (lanes) at once.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial

import numpy as np
from numpy.typing import NDArray

from caltest._base.compiled import kernel
from caltest.binning import FIXED, Binning, QuantileBins, VarianceTree
from caltest.distances import NAMED
from caltest.predictions import FloatArray, IntArray
from caltest.simulate.row_counts import TILE, Counts, RowCounts, add_singles, count_singles
from caltest.simulate.row_errors import joint_errors, quantile_errors, tree_error
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

    O(n K) once and for a replicate, O(n K log(n / min_size)) in a tree.
    """

    counts: RowCounts = field(repr=False)
    error: SumError | Callable[[Counts], FloatArray] = field(repr=False)
    #: Whether √(T / 2) is wanted, of a squared error of two columns, which counts gaps twice.
    root: bool = False

    def replicates(self, seed: Seed, first: int, count: int) -> FloatArray:
        """Return replicates ``first``, …, ``first + count − 1``, which are made by up to 256."""
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
        errors = np.concatenate(values)[first - start :][:count]
        return np.asarray(np.sqrt(0.5 * errors)) if self.root else errors

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
    probs: FloatArray, outcomes: FloatArray, bins: Binning | None, order: IntArray,
    starts: IntArray, distance: str, combine: str, root: bool,
) -> RowResamples | None:  # fmt: skip
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
        return RowResamples(counts, partial(_quantiles, rows, bins.n_bins, code, largest), root)
    if isinstance(bins, VarianceTree):
        tree = bins.split == "mean", *bins.limits
        return RowResamples(counts, partial(_trees, rows, tree, code, largest), root)
    if not isinstance(bins, FIXED):
        return None
    if probs.shape[1] > 2:  # sums of every class of every cell may be too many to keep
        return RowResamples(counts, partial(_joint, rows, starts, code, largest), root)
    cell = np.repeat(np.arange(starts.size - 1, dtype=np.int32), np.diff(starts))
    cells = np.column_stack([2 * cell, 2 * cell + 1])
    value = partial(_two_classes, distance, largest)
    return RowResamples(counts, SumError(rows, cells, 2 * starts.size - 2, 1, value), root)


def resampled_classes(
    probs: FloatArray, outcomes: FloatArray, cell: NDArray[np.unsignedinteger], starts: IntArray,
    aggregate: Callable[[FloatArray], FloatArray],
) -> RowResamples:  # fmt: skip
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
    starts: IntArray, n: int, aggregate: Callable[[FloatArray], FloatArray],
    events: NDArray[np.int32], predicted: FloatArray,
) -> FloatArray:  # fmt: skip
    return aggregate(np.add.reduceat(np.abs(events - predicted), starts[:-1], axis=0).T / n)


def _joint(
    rows: FloatArray, starts: IntArray, code: int, largest: bool, counts: Counts
) -> FloatArray:
    errors = np.zeros(counts.shape[2])
    joint_errors(counts, rows, starts, code, largest, errors)
    return errors


def _quantiles(
    rows: FloatArray, n_bins: int, code: int, largest: bool, counts: Counts
) -> FloatArray:
    errors = np.zeros(counts.shape[2])
    quantile_errors(counts, np.ascontiguousarray(rows[:, 0]), n_bins, code, largest, errors)
    return errors


def _trees(
    rows: FloatArray, tree: tuple[bool, int, int], code: int, largest: bool, counts: Counts
) -> FloatArray:
    # A tree goes its own way in every lane: the pairs of a lane are listed as often as drawn.
    every = np.arange(counts[..., 0].size)
    lanes = (np.repeat(every, lane) for lane in counts.reshape(every.size, -1).T)
    return np.array([tree_error(rows, pairs, *tree, code, largest) for pairs in lanes])


@kernel
def _add_counts(  # type: ignore[no-untyped-def]
    counts, depths, probs, cell, n_predicted, events_out, predicted_out
):
    # O(rows K) per lane. Whole counts and sums of predictions stay apart: subtracted row by row,
    # equal sums would differ by their rounding. A stretch of rows cannot fill 16 bits.
    n, n_classes, lanes = counts.shape
    events = np.zeros(events_out.shape, dtype=np.uint16)
    size = np.empty(lanes, dtype=np.uint8)
    times = np.empty(lanes)
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
            times[q] = np.float64(np.int32(size[q]))
        for k in range(n_predicted):
            p, total = probs[i, k], predicted_out[cell[i, k]]
            for q in range(lanes):
                total[q] += p * times[q]
    for b in range(len(events)):
        for q in range(lanes):
            events_out[b, q] += np.int32(events[b, q])
