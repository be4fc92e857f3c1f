"""How often every row is drawn with every label, when rows are resampled: many samples at once.

A draw of n rows with replacement, each with a label, is one multinomial count for every (row,
label). Independent Poisson counts are multinomial once their total is known: so they are drawn with
a little too small a rate, row by row for all lanes in vector instructions, and ordinary single
draws then make up the total to n.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from caltest._base.compiled import counter_kernel, inlined, kernel
from caltest.predictions import FloatArray, IntArray
from caltest.simulate.streams import FIRST_FACTOR, GAMMA, SECOND_FACTOR

#: Replicates that share their random words: four of 16 bits a word. Part of the results.
TILE = 256
#: Levels of a count that 16 bits tell apart, at most.
LEVELS = 7
#: A level of fewer than this many of the 2¹⁶ values is left to further bits, rarely drawn.
WORTH = 8
#: How many standard deviations the Poisson total is expected below n.
SHORT = 3.0
#: Up to this many classes a count is drawn for every one; above, single draws cost less.
POISSON_CLASSES = 40
#: Single draws that are made together.
BATCH = 256

#: How often each (row, label) is drawn in every lane: (rows, K, lanes).
Counts = NDArray[np.uint8]

u16 = np.uint16  # every sum is cut back to 16 bits, for loops over 32 lanes at once


@dataclass(frozen=True, eq=False)
class RowCounts:
    """Counts of pairs of a row and a label: n draws of pair (i, k) with probability q_ik / n.

    With q the predictions this is consistency resampling, with q the observed labels (one 1 in
    every row) the bootstrap. The law of the counts is exact: 16 bits decide a count unless they
    fall on one of the few values whose share is cut by a boundary; these are decided by 53 more.
    Single draws are within n² 2⁻⁶³ of their law. Pairs of probability 0 are never drawn.
    O(n K) once; a count costs some 0.2 ns. Above 40 classes all n draws are single ones, 5 ns each.
    """

    upto: FloatArray = field(repr=False)
    rates: FloatArray = field(repr=False)
    ladders: NDArray[np.uint16] = field(repr=False)
    depths: NDArray[np.uint8] = field(repr=False)

    @classmethod
    def of(cls, outcomes: FloatArray) -> RowCounts:
        """Prepare rows whose labels have the probabilities ``outcomes``, shape (n, K)."""
        n, n_classes = outcomes.shape
        share = max(0.0, 1.0 - SHORT / np.sqrt(n)) if n_classes <= POISSON_CLASSES else 0.0
        rates = share * outcomes
        upto = np.empty((n, n_classes))
        levels = LEVELS if share > 0.0 else 0
        ladders = np.empty((n, n_classes, levels), dtype=np.uint16)
        depths = np.empty((n, n_classes), dtype=np.uint8)
        _ladders(np.ascontiguousarray(outcomes, dtype=np.float64), rates, upto, ladders, depths)
        return cls(upto, rates, ladders, depths)

    def room(self, rows: int, lanes: int) -> Counts:
        """Return zeros for the counts of so many rows; pairs that cannot occur are left so."""
        return np.zeros((rows, self.upto.shape[1], lanes), dtype=np.uint8)

    def poisson(
        self, key: NDArray[np.uint64], lane: int, first: int, out: Counts, totals: IntArray
    ) -> None:
        """Draw Poisson counts of rows from ``first``, and add them to totals of lanes of a tile."""
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
                z = key[0] + GAMMA * np.uint64(pair * (TILE // 4) + lane // 4 + q)
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
                    z = key[2] + GAMMA * np.uint64(pair * TILE + lane + q)
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
    """Make up the total of every lane to n, by single draws."""
    # Draw j of a lane is always the same: the total of its Poisson counts says where to go on.
    n = len(upto)
    # unsigned: indices that cannot be negative
    row, label = np.empty(BATCH, dtype=np.uint64), np.empty(BATCH, dtype=np.uint64)
    uniform = np.empty(BATCH)
    for q in range(totals.size):
        if totals[q] > n:  # the condition on the total failed: begin again, single draws only
            counts_out[:, :, q] = 0
            totals[q] = 0
        for start in range(totals[q], n, BATCH):
            size = min(BATCH, n - start)
            number = np.uint64(lane + q + 1) << np.uint64(44) | np.uint64(start)
            _pairs(key, number, upto, row[:size], label[:size], uniform)
            for j in range(size):
                counts_out[row[j], label[j], q] += np.uint8(1)


@counter_kernel
def add_singles(  # type: ignore[no-untyped-def]
    key, lane, upto, totals, probs, cell, n_predicted, events_out, predicted_out
):
    """Make up the total of every lane to n in the sums over fixed cells, O(K) for each draw."""
    # Sums of one lane are far apart in the tables: what is new is added up beside them first.
    n = len(upto)
    row, label = np.empty(BATCH, dtype=np.uint64), np.empty(BATCH, dtype=np.uint64)
    uniform = np.empty(BATCH)
    events = np.empty(len(events_out), dtype=np.int32)
    predicted = np.empty(len(events_out))
    for q in range(totals.size):
        if totals[q] > n:
            events_out[:, q] = 0
            predicted_out[:, q] = 0.0
            totals[q] = 0
        events[:] = 0
        predicted[:] = 0.0
        for start in range(totals[q], n, BATCH):
            size = min(BATCH, n - start)
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
