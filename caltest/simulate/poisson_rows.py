"""Binned errors of resampled rows: counts instead of copies, 256 replicates side by side.

A draw of n rows with replacement, each with a label, is one multinomial count for every (row,
label). Independent Poisson counts are multinomial once their total is known: so they are drawn with
a little too small a rate, row by row for all lanes in vector instructions, and ordinary single
draws then make up the total to n.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from caltest._base.compiled import counter_kernel, kernel
from caltest.binning import FIXED
from caltest.distances import NAMED
from caltest.predictions import FloatArray, IntArray
from caltest.simulate.streams import FIRST_FACTOR, GAMMA, SECOND_FACTOR, Seed, keys

#: Replicates that share their random words: four of 16 bits a word. Part of the results.
TILE = 256
#: Levels of a count that 16 bits tell apart, at most.
LEVELS = 7
#: A level of fewer than this many of the 2¹⁶ values is left to further bits, rarely drawn.
WORTH = 8
#: How many standard deviations the Poisson total is expected below n.
SHORT = 3.0
#: Cells times classes that a tile keeps sums of.
MAX_SUMS = 1 << 13
#: Rows whose counts fit into 16 bits.
FLUSH = 1 << 12
#: Single draws that are made together.
BATCH = 256

u16 = np.uint16  # every sum is cut back to 16 bits, for loops over 32 lanes at once


@dataclass(frozen=True, eq=False)
class CellResamples:
    """A binned error of resampled rows, for cells that do not depend on the other rows.

    Every replicate draws n pairs of a row and a label, with replacement: pair (i, k) with
    probability q_ik / n. With q the predictions this is consistency resampling, with q the observed
    labels (one 1 in every row) the bootstrap. The law is exact: 16 bits decide a count unless they
    fall on one of the few values whose share is cut by a boundary; these are decided by 53 more.
    Pairs of probability 0 are never drawn.

    Notes
    -----
    O(n K) once. A replicate costs O(n K) in vector instructions, some 0.3 ns per row with a known
    label and 0.5 ns with two possible ones, at every n; √n single draws are added.
    """

    probs: FloatArray = field(repr=False)
    upto: FloatArray = field(repr=False)
    rates: FloatArray = field(repr=False)
    ladders: NDArray[np.uint16] = field(repr=False)
    depths: NDArray[np.uint8] = field(repr=False)
    starts: IntArray = field(repr=False)
    distance: str
    combine: str

    @staticmethod
    def fits(bins: Any, size: int) -> bool:
        """Tell whether cells are fixed, and few enough: ``size`` is their number times classes."""
        return isinstance(bins, FIXED) and size <= MAX_SUMS

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
    ) -> CellResamples:
        """Prepare the cells; ``outcomes`` are the probabilities q_ik of the labels of every row."""
        n, n_classes = probs.shape
        ordered = outcomes[order]
        rates = max(0.0, 1.0 - SHORT / np.sqrt(n)) * ordered
        upto = np.empty((n, n_classes))
        ladders = np.empty((n, n_classes, LEVELS), dtype=np.uint16)
        depths = np.empty((n, n_classes), dtype=np.uint8)
        _ladders(ordered, rates, upto, ladders, depths)
        grouped = np.ascontiguousarray(probs[order], dtype=np.float64)
        return cls(grouped, upto, rates, ladders, depths, starts, distance, combine)

    def replicates(self, seed: Seed, first: int, count: int) -> FloatArray:
        """Return replicates ``first``, …, ``first + count − 1``.

        Each depends on the seed, two numbers below 2⁶⁴, and its own number only. They are made
        by 256, so that calls which begin at a multiple of that are fastest.
        """
        n_cells, n_classes = self.starts.size - 1, self.probs.shape[1]
        cell = np.repeat(np.arange(n_cells, dtype=np.uint32), np.diff(self.starts))
        measure = list(NAMED).index(self.distance), self.combine == "max"
        tiles = range(first // TILE, -(-(first + count) // TILE))
        values = np.empty((len(tiles), TILE))
        for tile, errors in zip(tiles, values, strict=True):
            key = keys(seed, tile, 1)[:, 0]
            observed = np.zeros((n_cells, n_classes, TILE), dtype=np.int32)
            predicted = np.zeros((n_cells, n_classes - 1, TILE))
            ladders = self.rates, self.ladders, self.depths
            _add_poisson(key, self.probs, self.starts, *ladders, observed, predicted)
            _finish(key, self.probs, cell, self.upto, observed, predicted, *measure, errors)
        return values.ravel()[first % TILE :][:count]


@kernel
def _ladders(outcomes, rates, upto_out, ladders_out, depths_out):  # type: ignore[no-untyped-def]
    # A Poisson count is the number of thresholds below 16 random bits, unless they are above all.
    n_classes = rates.shape[1]
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
            while rates[i, k] > 0.0 and depth < LEVELS and (depth == 0 or share >= WORTH):
                values += int(share)
                ladders_out[i, k, depth] = values - 1
                depth += 1
                share *= rates[i, k] / depth
            depths_out[i, k] = depth


@counter_kernel
def _add_poisson(  # type: ignore[no-untyped-def]
    key, probs, starts, rates, ladders, depths, observed_out, predicted_out
):
    # O(n K) per lane. Sums of predictions are kept for all classes but the last.
    n_classes = probs.shape[1]
    words = np.empty(TILE // 4, dtype=np.uint64)
    draw = words.view(np.uint16)
    count = np.empty(TILE, dtype=np.uint16)
    row_count = np.empty(TILE, dtype=np.uint16)
    tally = np.empty((n_classes, TILE), dtype=np.uint16)
    for b in range(starts.size - 1):
        for start in range(starts[b], starts[b + 1], FLUSH):
            tally[:] = 0
            for i in range(start, min(start + FLUSH, starts[b + 1])):
                row_count[:] = 0
                for k in range(n_classes):
                    depth = depths[i, k]
                    if depth == 0:
                        continue
                    for q in range(TILE // 4):
                        z = key[0] + GAMMA * np.uint64((i * n_classes + k) * (TILE // 4) + q)
                        z = (z ^ (z >> 30)) * FIRST_FACTOR ^ key[1]
                        z = (z ^ (z >> 27)) * SECOND_FACTOR
                        words[q] = z ^ (z >> 31)
                    steps = ladders[i, k]
                    t0, t1, t2, t3 = steps[0], steps[1], steps[2], steps[3]
                    t4, t5, t6 = steps[4], steps[5], steps[6]
                    if depth <= 2:
                        for q in range(TILE):
                            x = draw[q]
                            count[q] = u16(u16(x > t0) + u16(x > t1))
                    elif depth <= 4:
                        for q in range(TILE):
                            x = draw[q]
                            low = u16(u16(x > t0) + u16(x > t1))
                            count[q] = u16(low + u16(u16(x > t2) + u16(x > t3)))
                    else:
                        for q in range(TILE):
                            x = draw[q]
                            low = u16(u16(x > t0) + u16(x > t1))
                            low = u16(low + u16(u16(x > t2) + u16(x > t3)))
                            high = u16(u16(x > t4) + u16(x > t5))
                            count[q] = u16(low + u16(high + u16(x > t6)))
                    last = steps[depth - 1]
                    undecided = u16(0)
                    for q in range(TILE):
                        undecided = u16(undecided + u16(draw[q] > last))
                    for block in range(0, TILE if undecided > 0 else 0, 32):
                        undecided = u16(0)
                        for q in range(block, block + 32):
                            undecided = u16(undecided + u16(draw[q] > last))
                        for q in range(block, block + 32 if undecided > 0 else block):
                            if draw[q] <= last:
                                continue
                            z = key[2] + GAMMA * np.uint64((i * n_classes + k) * TILE + q)
                            z = (z ^ (z >> 30)) * FIRST_FACTOR ^ key[3]
                            z = (z ^ (z >> 27)) * SECOND_FACTOR
                            rest = np.float64((z ^ (z >> 31)) >> 11) * 2.0**-53 * (65535 - last)
                            level, share = 0, 65536.0 * np.exp(-rates[i, k])
                            used = np.floor(share)
                            while rest >= share - used and share > 1e-300:
                                rest -= share - used
                                level += 1
                                share *= rates[i, k] / level
                                used = np.floor(share) if level < depth else 0.0
                            count[q] = np.uint16(level)
                    for q in range(TILE):
                        row_count[q] = u16(row_count[q] + count[q])
                        tally[k, q] = u16(tally[k, q] + count[q])
                for k in range(n_classes - 1):
                    p = probs[i, k]
                    for q in range(TILE):
                        predicted_out[b, k, q] += p * np.float64(np.int32(row_count[q]))
            for k in range(n_classes):
                for q in range(TILE):
                    observed_out[b, k, q] += np.int32(tally[k, q])


@counter_kernel
def _finish(  # type: ignore[no-untyped-def]
    key, probs, cell, upto, observed, predicted, code, largest, errors_out
):
    # Lane by lane: single draws up to n, then the error. Four tables take turns, because the next
    # draw often falls into the same cell and would wait for the sum of the last.
    n, n_classes = probs.shape
    n_cells, free = len(observed), n_classes - 1
    low_half = np.uint64(0xFFFFFFFF)
    row = np.empty(BATCH, dtype=np.uint64)  # unsigned: an index that cannot be negative
    uniform = np.empty(BATCH)
    seen = np.empty((4, n_cells, n_classes), dtype=np.int64)
    expected = np.empty((4, n_cells, free))
    for q in range(TILE):
        total = 0
        seen[:] = 0
        expected[:] = 0.0
        for b in range(n_cells):
            for k in range(n_classes):
                seen[0, b, k] = observed[b, k, q]
                total += seen[0, b, k]
            for k in range(free):
                expected[0, b, k] = predicted[b, k, q]
        if total > n:  # the condition on the total failed: begin again, with single draws only
            total = 0
            seen[:] = 0
            expected[:] = 0.0
        for start in range(total, n, BATCH):
            batch = min(BATCH, n - start)
            for j in range(batch):
                z = key[2] + GAMMA * (np.uint64(q + 1) << np.uint64(44) | np.uint64(start + j))
                z = (z ^ (z >> 30)) * FIRST_FACTOR ^ key[3]
                z = (z ^ (z >> 27)) * SECOND_FACTOR
                z ^= z >> 31
                # word * n in two halves: the row before the point, its label's uniform behind it
                low = (z & low_half) * np.uint64(n)
                high = (z >> 32) * np.uint64(n) + (low >> 32)
                row[j] = high >> 32
                bits = ((high & low_half) << 21) | ((low & low_half) >> 11)
                uniform[j] = np.float64(bits) * 2.0**-53
            for j in range(batch):
                i, b, turn = row[j], cell[row[j]], np.uint64(j & 3)
                label = np.uint64(uniform[j] >= upto[i, 0])
                if free == 1:
                    expected[turn, b, 0] += probs[i, 0]
                else:
                    for k in range(free):
                        label += np.uint64(k > 0 and uniform[j] >= upto[i, k])
                        expected[turn, b, k] += probs[i, k]
                seen[turn, b, label] += 1
        error = 0.0
        for b in range(n_cells):
            size, left, gap = 0, 0.0, 0.0
            for k in range(n_classes):
                drawn = seen[0, b, k] + seen[1, b, k] + seen[2, b, k] + seen[3, b, k]
                size += drawn
                d = -left
                if k < free:
                    mass = expected[0, b, k] + expected[1, b, k]
                    d = drawn - (mass + (expected[2, b, k] + expected[3, b, k]))
                    left += d
                d = abs(d)
                if code <= 1:
                    gap += d
                elif code <= 3:
                    gap += d * d
                else:
                    gap = max(gap, d)
            if size > 0:
                gap = np.sqrt(gap) if code == 2 else gap / size if code == 3 else gap
                gap *= 0.5 if code == 0 else 1.0
                error = max(error, gap / size) if largest else error + gap / n
        errors_out[q] = error
