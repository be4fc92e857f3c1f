"""Binned errors of resampled rows, by compiled loops over lanes of replicates.

:class:`RowResamples` is the shortcut that the engine runs; :class:`RowCounts` draws how often each
(row, label) pair occurs.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial

import numpy as np
from numpy.typing import NDArray

from caltest._base import FloatArray, IntArray
from caltest.data.binning import FIXED, Binning, QuantileBins, VarianceTree
from caltest.data.distances import DISTANCES_BY_NAME
from caltest.nulls.lanes import (
    FIRST_FACTOR,
    GAMMA,
    SECOND_FACTOR,
    Seed,
    counter_kernel,
    inlined,
    kernel,
    stream_keys,
)

#: Lanes that are worked on together; fewer where counts would take too much memory.
COUNT_LANES = 256


#: Counts of all rows that are held at once, counts of a stretch of rows, and sums in tables.
COUNTS_HELD, STRETCH, TABLES = 1 << 26, 1 << 19, 1 << 17


@dataclass(frozen=True, eq=False)
class SumError:
    """Description of an error that is a function of sums over fixed cells of resampled rows.

    ``probs`` (n, K) are the predictions, and ``cell[i, k]`` is the cell of row i and label k, one
    of ``n_sums``, S. ``value`` computes errors (B,) of B replicates from sums (S, B) of counts and
    of predictions; the latter are summed for the first ``n_predicted`` columns of ``cell`` only.
    """

    probs: FloatArray = field(repr=False)
    cell: NDArray[np.int32] = field(repr=False)
    n_sums: int
    n_predicted: int
    value: Callable[[NDArray[np.int32], FloatArray], FloatArray] = field(repr=False)


@dataclass(frozen=True, eq=False)
class RowResamples:
    """Resampler of a binned error: n pairs of a row and a label are drawn with replacement.

    ``counts`` draws how often each pair occurs, and ``error`` computes the error from these
    numbers. O(n K) once and for a replicate, O(n K log(n / min_size)) in a tree. ``error`` is a
    :class:`SumError`, a function of sums over cells, or a function from counts (n, K, B) of B
    replicates to errors (B,). With ``root`` an error T becomes √(T / 2).
    """

    counts: RowCounts = field(repr=False)
    error: SumError | Callable[[DrawnCounts], FloatArray] = field(repr=False)
    #: Whether √(T / 2) is wanted, of a squared error of two columns, which counts gaps twice.
    root: bool = False

    def replicates(self, seed: Seed, first: int, count: int) -> FloatArray:
        """Return the errors of replicates ``first``, …, ``first + count − 1``, shape (count,).

        ``seed`` is the pair of integers that keys the random stream.
        """
        lanes, size, most = COUNT_LANES, self.counts.upto.size, COUNTS_HELD
        if isinstance(self.error, SumError):
            size, most = self.error.n_sums, TABLES
        while lanes > 8 and lanes * size > most:
            lanes //= 2
        values = [np.empty(0)]
        start = first - first % lanes
        for block in range(start, first + count, lanes):
            key = stream_keys(seed, block // REPLICATES_A_TILE, 1)[:, 0]
            values.append(self._block(key, block % REPLICATES_A_TILE, lanes))
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
    """Return the resampler of a binned error; None if its cells cannot be found for a resample.

    ``probs`` (n, K) are predictions and ``outcomes`` (n, K) the probabilities of the labels of
    every row. ``bins`` made the cells, None without; cell b consists of the rows
    ``order[starts[b]:starts[b + 1]]``. ``distance`` is the name of the distance of means in a cell,
    such as "tv", ``combine`` is "sum" or "max" over cells. With ``root`` an error T becomes √(T /
    2), the root of a squared error of two columns, which counts each gap twice.
    """
    code, largest = list(DISTANCES_BY_NAME).index(distance), combine == "max"
    if isinstance(bins, QuantileBins):
        order = np.argsort(probs[:, 0] if bins.closed == "right" else -probs[:, 0])
    # Rows in the order of their cells: those which stay together lie together.
    rows = np.ascontiguousarray(probs[order], dtype=np.float64)
    counts = RowCounts.of(outcomes[order])
    if isinstance(bins, QuantileBins):
        return RowResamples(counts, partial(_of_quantiles, rows, bins.n_bins, code, largest), root)
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
    """Return the resampler of class-wise errors in fixed cells.

    ``probs`` (n, K) are predictions and ``outcomes`` (n, K) the probabilities of the labels of
    every row. ``cell[i, k]`` is the cell of row i for class k; the cells of class k begin at
    ``starts[k]``, and ``starts[K]`` is their number. ``aggregate`` combines errors (B, K) by class
    to one error for each of B replicates, (B,).
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
    rows: FloatArray, starts: IntArray, code: int, largest: bool, counts: DrawnCounts
) -> FloatArray:
    errors = np.zeros(counts.shape[2])
    joint_errors(counts, rows, starts, code, largest, errors)
    return errors


def _of_quantiles(
    rows: FloatArray, n_bins: int, code: int, largest: bool, counts: DrawnCounts
) -> FloatArray:
    errors = np.zeros(counts.shape[2])
    quantile_errors(counts, np.ascontiguousarray(rows[:, 0]), n_bins, code, largest, errors)
    return errors


def _trees(
    rows: FloatArray, tree: tuple[bool, int, int], code: int, largest: bool, counts: DrawnCounts
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


# ------------------------------------------------------------------------------
# How often every row is drawn with every label, when rows are resampled: many samples at once.
#
# A draw of n rows with replacement, each with a label, is one multinomial count for every (row,
# label). Independent Poisson counts are multinomial once their total is known: so they are drawn
# with a little too small a rate, row by row for all lanes in vector instructions, and ordinary
# single draws then make up the total to n.


#: Replicates that share their random words: four of 16 bits a word. Part of the results.
REPLICATES_A_TILE = 256


#: Levels of a count that 16 bits tell apart, at most.
COUNT_LEVELS = 7


#: A level of fewer than this many of the 2¹⁶ values is left to further bits, rarely drawn.
WORTH = 8


#: How many standard deviations the Poisson total is expected below n.
SHORT = 3.0


#: Up to this many classes a count is drawn for every one; above, single draws cost less.
POISSON_CLASSES = 40


#: Single draws that are made together.
DRAWS_A_BATCH = 256


#: How often each (row, label) is drawn in every lane: (rows, K, lanes).
DrawnCounts = NDArray[np.uint8]


u16 = np.uint16  # every sum is cut back to 16 bits, for loops over 32 lanes at once


@dataclass(frozen=True, eq=False)
class RowCounts:
    """Counts of pairs of a row and a label: n draws of pair (i, k) with probability q_ik / n.

    With q the predictions this is consistency resampling, with q the observed labels (one 1 in
    every row) the bootstrap. The law of the counts is exact: 16 bits decide a count unless they
    fall on one of the few values whose share is cut by a boundary; these are decided by 53 more.
    Single draws are within n² 2⁻⁶³ of their law. Pairs of probability 0 are never drawn. O(n K)
    once; a count costs some 0.2 ns. Above 40 classes all n draws are single ones, 5 ns each. Arrays
    are (n, K, …), an entry for each pair: ``upto`` are cumulative probabilities for single draws,
    ``rates`` the means of the counts, ``ladders`` the boundaries between counts in 16 bits, and
    ``depths`` how many boundaries are used.
    """

    upto: FloatArray = field(repr=False)
    rates: FloatArray = field(repr=False)
    ladders: NDArray[np.uint16] = field(repr=False)
    depths: NDArray[np.uint8] = field(repr=False)

    @classmethod
    def of(cls, outcomes: FloatArray) -> RowCounts:
        """Prepare rows whose labels have the probabilities ``outcomes``, shape (n, K).

        These are predictions for consistency resampling, and 0 or 1 for the bootstrap.
        """
        n, n_classes = outcomes.shape
        share = max(0.0, 1.0 - SHORT / np.sqrt(n)) if n_classes <= POISSON_CLASSES else 0.0
        rates = share * outcomes
        upto = np.empty((n, n_classes))
        levels = COUNT_LEVELS if share > 0.0 else 0
        ladders = np.empty((n, n_classes, levels), dtype=np.uint16)
        depths = np.empty((n, n_classes), dtype=np.uint8)
        _ladders(np.ascontiguousarray(outcomes, dtype=np.float64), rates, upto, ladders, depths)
        return cls(upto, rates, ladders, depths)

    def room(self, rows: int, lanes: int) -> DrawnCounts:
        """Return zeros (rows, K, lanes) to hold the counts of (row, label) pairs, uint8.

        ``rows`` is a number of rows, ``lanes`` a number of replicates, and K the number of labels.
        """
        return np.zeros((rows, self.upto.shape[1], lanes), dtype=np.uint8)

    def poisson(
        self, key: NDArray[np.uint64], lane: int, first: int, out: DrawnCounts, totals: IntArray
    ) -> None:
        """Draw Poisson counts of (row, label) pairs, from row ``first`` on, for many replicates.

        ``key`` (4,) are the words of the random stream, ``lane`` the number of the first replicate
        in it, ``out`` (rows, K, lanes) receives counts, a column for each replicate, and their sums
        over rows and labels are added to ``totals`` (lanes,).
        """
        rows = slice(first, first + len(out))
        ladders = self.rates[rows], self.ladders[rows], self.depths[rows]
        _add_poisson(key, lane, first, *ladders, out, totals)


@kernel
def _ladders(outcomes, rates, upto_out, ladders_out, depths_out):  # type: ignore[no-untyped-def]
    # A Poisson count is the number of thresholds below 16 random bits, unless they are above all.
    n_classes, levels = rates.shape[1], ladders_out.shape[2]
    ladders_out[:] = 65535
    for i in range(rates.shape[0]):
        last = n_classes - 1
        while outcomes[i, last] <= 0.0:
            last -= 1
        cumulative = 0.0
        for k in range(n_classes):
            cumulative += outcomes[i, k]
            # Rounding may leave the sum below 1: the last possible label takes what is left.
            upto_out[i, k] = cumulative if k < last else 1.0
            depth, values, share = 0, 0, 65536.0 * np.exp(-rates[i, k])
            while rates[i, k] > 0.0 and depth < levels and (depth == 0 or share >= WORTH):
                values += int(share)
                ladders_out[i, k, depth] = values - 1
                depth += 1
                share *= rates[i, k] / depth
            depths_out[i, k] = depth


@counter_kernel
def _add_poisson(  # type: ignore[no-untyped-def]
    key, lane, first, rates, ladders, depths, counts_out, totals_out
):
    # O(rows K) per lane. The bits depend on the row, the class and the lane alone, so that neither
    # stretches of rows nor blocks of lanes change a count.
    n_rows, n_classes, lanes = counts_out.shape
    words = np.empty(lanes // 4, dtype=np.uint64)
    draw = words.view(np.uint16)
    subtotal = np.zeros(lanes, dtype=np.uint16)
    for i in range(n_rows):
        for k in range(n_classes):
            depth = depths[i, k]
            if depth == 0:
                continue
            pair = (first + i) * n_classes + k
            for q in range(lanes // 4):
                z = key[0] + GAMMA * np.uint64(pair * (REPLICATES_A_TILE // 4) + lane // 4 + q)
                z = (z ^ (z >> 30)) * FIRST_FACTOR ^ key[1]
                z = (z ^ (z >> 27)) * SECOND_FACTOR
                words[q] = z ^ (z >> 31)
            steps, count = ladders[i, k], counts_out[i, k]
            last = steps[depth - 1]
            undecided = u16(0)
            # Most rates are small: as few comparisons as the ladder has levels, in three sizes.
            if depth <= 2:
                t0, t1 = steps[0], steps[1]
                for q in range(lanes):
                    x = draw[q]
                    count[q] = np.uint8(u16(x > t0) + u16(x > t1))
                    undecided = u16(undecided + u16(x > last))
            elif depth <= 4:
                t0, t1, t2, t3 = steps[0], steps[1], steps[2], steps[3]
                for q in range(lanes):
                    x = draw[q]
                    low = u16(u16(x > t0) + u16(x > t1))
                    count[q] = np.uint8(low + u16(u16(x > t2) + u16(x > t3)))
                    undecided = u16(undecided + u16(x > last))
            else:
                t0, t1, t2, t3 = steps[0], steps[1], steps[2], steps[3]
                t4, t5, t6 = steps[4], steps[5], steps[6]
                for q in range(lanes):
                    x = draw[q]
                    low = u16(u16(x > t0) + u16(x > t1))
                    low = u16(low + u16(u16(x > t2) + u16(x > t3)))
                    high = u16(u16(x > t4) + u16(x > t5))
                    count[q] = np.uint8(low + u16(high + u16(x > t6)))
                    undecided = u16(undecided + u16(x > last))
            if undecided > 0:  # about one count in 10⁴: 53 further bits divide what 16 cannot
                for q in range(lanes):
                    if draw[q] <= last:
                        continue
                    z = key[2] + GAMMA * np.uint64(pair * REPLICATES_A_TILE + lane + q)
                    z = (z ^ (z >> 30)) * FIRST_FACTOR ^ key[3]
                    z = (z ^ (z >> 27)) * SECOND_FACTOR
                    rest = np.float64((z ^ (z >> 31)) >> 11) * 2.0**-53 * (65535 - last)
                    level, share = 0, 65536.0 * np.exp(-rates[i, k])
                    whole = np.floor(share)
                    while rest >= share - whole and share > 1e-300:
                        rest -= share - whole
                        level += 1
                        share *= rates[i, k] / level
                        whole = np.floor(share) if level < depth else 0.0
                    count[q] = np.uint8(level)
            for q in range(lanes):
                subtotal[q] = u16(subtotal[q] + count[q])
        if (i & 4095) == 4095 or i == n_rows - 1:  # before 16 bits run over
            for q in range(lanes):
                totals_out[q] += np.int64(subtotal[q])
            subtotal[:] = 0


@inlined
def _pairs(key, number, upto, row_out, label_out, uniform):  # type: ignore[no-untyped-def]
    # Draws of a row and of its label, from one 64-bit word each.
    n, n_classes = upto.shape
    low_half = np.uint64(0xFFFFFFFF)
    for j in range(row_out.size):
        z = key[2] + GAMMA * (number + np.uint64(j))
        z = (z ^ (z >> 30)) * FIRST_FACTOR ^ key[3]
        z = (z ^ (z >> 27)) * SECOND_FACTOR
        z ^= z >> 31
        # word * n in two halves: the row before the point, its label's uniform behind it
        low = (z & low_half) * np.uint64(n)
        high = (z >> 32) * np.uint64(n) + (low >> 32)
        row_out[j] = high >> 32
        bits = ((high & low_half) << 21) | ((low & low_half) >> 11)
        uniform[j] = np.float64(bits) * 2.0**-53
    for j in range(row_out.size):
        i, u = row_out[j], uniform[j]
        label = np.int64(u >= upto[i, 0])
        for k in range(1, n_classes - 1):
            label += np.int64(u >= upto[i, k])
        label_out[j] = np.uint64(label)


@counter_kernel
def count_singles(key, lane, upto, totals, counts_out):  # type: ignore[no-untyped-def]
    """Top up the number of drawn rows in every replicate to n by single draws.

    ``key`` (4,) are the words of the random stream and ``lane`` the number of the first replicate
    in it. ``totals`` (lanes,) are the draws so far of each replicate, ``upto`` (n, K) the
    cumulative label probabilities, and ``counts_out`` (n, K, lanes) the counts of (row, label)
    pairs, changed in place. Replicates with more than n draws begin again.
    """
    # Draw j of a lane is always the same: the total of its Poisson counts says where to go on.
    n = len(upto)
    # unsigned: indices that cannot be negative
    row, label = np.empty(DRAWS_A_BATCH, dtype=np.uint64), np.empty(DRAWS_A_BATCH, dtype=np.uint64)
    uniform = np.empty(DRAWS_A_BATCH)
    for q in range(totals.size):
        if totals[q] > n:  # the condition on the total failed: begin again, single draws only
            counts_out[:, :, q] = 0
            totals[q] = 0
        for start in range(totals[q], n, DRAWS_A_BATCH):
            size = min(DRAWS_A_BATCH, n - start)
            number = np.uint64(lane + q + 1) << np.uint64(44) | np.uint64(start)
            _pairs(key, number, upto, row[:size], label[:size], uniform)
            for j in range(size):
                counts_out[row[j], label[j], q] += np.uint8(1)


@counter_kernel
def add_singles(  # type: ignore[no-untyped-def]
    key, lane, upto, totals, probs, cell, n_predicted, events_out, predicted_out
):
    """Top up the number of drawn rows in every replicate to n in the sums over fixed cells.

    ``key`` (4,) are the words of the random stream, ``lane`` the number of the first replicate in
    it, ``totals`` (lanes,) the draws so far of each replicate, and ``upto`` (n, K) the cumulative
    label probabilities. ``probs`` (n, K) are predictions and ``cell`` (n, K) the cell of each row
    and label; ``events_out`` and ``predicted_out`` (L, lanes) are sums of events and of the first
    ``n_predicted`` probabilities in L cells, a column for each replicate, changed in place. O(K) a
    draw.
    """
    # Sums of one lane are far apart in the tables: what is new is added up beside them first.
    n = len(upto)
    row, label = np.empty(DRAWS_A_BATCH, dtype=np.uint64), np.empty(DRAWS_A_BATCH, dtype=np.uint64)
    uniform = np.empty(DRAWS_A_BATCH)
    events = np.empty(len(events_out), dtype=np.int32)
    predicted = np.empty(len(events_out))
    for q in range(totals.size):
        if totals[q] > n:
            events_out[:, q] = 0
            predicted_out[:, q] = 0.0
            totals[q] = 0
        events[:] = 0
        predicted[:] = 0.0
        for start in range(totals[q], n, DRAWS_A_BATCH):
            size = min(DRAWS_A_BATCH, n - start)
            number = np.uint64(lane + q + 1) << np.uint64(44) | np.uint64(start)
            _pairs(key, number, upto, row[:size], label[:size], uniform)
            for j in range(size):
                i = row[j]
                events[cell[i, label[j]]] += 1
                for k in range(n_predicted):
                    predicted[cell[i, k]] += probs[i, k]
        for b in range(events.size):
            events_out[b, q] += events[b]
            predicted_out[b, q] += predicted[b]


# ------------------------------------------------------------------------------
# Errors of resampled rows in cells that are many, or made anew from each sample.
#
# The error in a tree takes the drawn pairs. All other errors are functions of how often each
# (row, label) pair was drawn, counts of shape (n, K, lanes). ``code`` is the number of a distance
# in ``distances.DISTANCES_BY_NAME``; ``largest`` takes the largest distance of a cell, not
# the average.


@inlined
def _added(gap, d, code):  # type: ignore[no-untyped-def]
    # One more component of a distance; codes follow distances.DISTANCES_BY_NAME.
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
def joint_errors(  # type: ignore[no-untyped-def]
    counts, probs, starts, code, largest, errors_out
):
    """Add the binned errors of probability vectors in fixed cells, O(n K) for each replicate.

    ``counts`` (n, K, lanes) of drawn rows by label, a column for each replicate, and ``probs`` (n,
    K) are in the order of their cells, of which there are L, cell b being the rows
    ``starts[b]:starts[b + 1]``. ``code`` is the place of the distance in ``DISTANCES_BY_NAME``;
    ``largest`` takes the largest cell in place of the sum. ``errors_out`` (lanes,) is changed in
    place.
    """
    # Rows of a cell lie together, and only its sums are kept.
    n, n_classes, lanes = counts.shape
    events, predicted = np.empty((n_classes, lanes), dtype=np.int32), np.empty((n_classes, lanes))
    gap, times, size = np.empty(lanes), np.empty(lanes), np.empty(lanes)
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
                times[q] = np.float64(np.int32(row[q]))
                size[q] += times[q]
            for k in range(n_classes):
                p, mass = probs[i, k], predicted[k]
                if fresh:
                    for q in range(lanes):
                        mass[q] = p * times[q]
                else:
                    for q in range(lanes):
                        mass[q] += p * times[q]
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
def quantile_errors(counts, p, m, code, largest, errors_out):  # type: ignore[no-untyped-def]
    """Add the errors in equal-mass cells of rows sorted by prediction, O(n) for each replicate.

    ``counts`` (n, 2, lanes) are numbers of drawn rows by label, a column for each replicate, ``p``
    (n,) is the sorted probability of label 0, and ``m`` the number of cells. ``code`` is the place
    of the distance in ``DISTANCES_BY_NAME``; ``largest`` takes the largest cell in place of the
    sum. ``errors_out`` (lanes,) is changed in place. Equal values share a cell.
    """
    # A cell ends with the value at which the j-th of m equal parts is full, at a
    # total of `full` rows.
    n, _, lanes = counts.shape
    gap = np.zeros(lanes)
    total, begun = np.zeros(lanes, dtype=np.int32), np.zeros(lanes, dtype=np.int32)
    part = np.ones(lanes, dtype=np.int64)
    full = np.full(lanes, -(-n // m) if m > 1 else n + 1, dtype=np.int32)
    for i in range(n):
        value, ends = p[i], np.int32(0)
        for q in range(lanes):
            hits = np.int32(counts[i, 0, q])
            rows = hits + np.int32(counts[i, 1, q])
            gap[q] += value * np.float64(rows) - np.float64(hits)
            total[q] += rows
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


@kernel
def tree_error(  # type: ignore[no-untyped-def]
    probs, pairs, by_mean, smallest_node, smallest_part, code, largest
):
    """Return the binned error, a float, in the tree of one sample, O(n K) for each of its levels.

    ``probs`` (n, K) are the predictions; ``pairs`` (n,) are the numbers i K + k of the pairs of a
    row i and a label k, as often as drawn, and are reordered. A node of at least ``smallest_node``
    rows is cut along the class whose probability varies most, at the mean if ``by_mean`` and else
    at the median, if both parts have ``smallest_part`` rows. ``code`` is the place of the distance
    in ``DISTANCES_BY_NAME``; ``largest`` takes the largest cell in place of the sum.
    """
    # A node is a stretch of `pairs`, its left part is moved to the front.
    n, n_classes = probs.shape
    n_axes = 1 if n_classes == 2 else n_classes
    sums, squares, events = np.empty(n_classes), np.empty(n_classes), np.empty(n_classes)
    waiting = [(0, n)]
    error = 0.0
    while len(waiting) > 0:
        first, last = waiting.pop()
        node, size = pairs[first:last], last - first
        sums[:], squares[:], events[:] = 0.0, 0.0, 0.0
        for pair in node:
            events[pair % n_classes] += 1.0
            for k in range(n_classes):
                v = probs[pair // n_classes, k]
                sums[k] += v
                squares[k] += v * v
        n_below = 0
        if size >= smallest_node:
            axis = np.argmax((squares / size - (sums / size) ** 2)[:n_axes])
            values = probs[:, axis][node // n_classes]
            below = values < (sums[axis] / size if by_mean else np.median(values))
            n_below = below.sum()
        if min(n_below, size - n_below) >= smallest_part:
            left, right = node[below], node[~below]
            node[:n_below], node[n_below:] = left, right
            waiting += [(first + n_below, last), (first, first + n_below)]
            continue
        gap = 0.0
        for k in range(n_classes):
            gap = _added(gap, events[k] - sums[k], code)
        gap = _measured(gap, size, code)
        error = max(error, gap / size) if largest else error + gap / n
    return error
