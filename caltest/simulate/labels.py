"""Labels redrawn from the predictions, many replicates at once.

:class:`LabelDrawer` draws label vectors for any statistic. :class:`CellRedraws` fuses drawing and
counting for binned errors: replicates are the lanes of the inner loops, a row is visited once for a
whole block of lanes, counts are kept by class, and a finished cell is added to the statistic of
every lane before the next one starts. Both draw the same labels from the same seed.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from caltest._base.compiled import counter_kernel, inlined, kernel
from caltest.distances import NAMED
from caltest.predictions import FloatArray, IntArray
from caltest.simulate.streams import FIRST_FACTOR, GAMMA, SECOND_FACTOR, WHOLE, Seed, keys

#: Up to this many classes every threshold of a row is compared, above they are looked up.
LADDER_CLASSES = 40
#: Replicates that share a pass over the rows. No number depends on it.
LANES = 128


@inlined
def _mixed(z, twist):  # type: ignore[no-untyped-def]
    # 53 random bits from a counter: the same for the same replicate and row in every kernel.
    z = (z ^ (z >> np.uint64(30))) * FIRST_FACTOR ^ twist
    z = (z ^ (z >> np.uint64(27))) * SECOND_FACTOR
    return np.int64((z ^ (z >> np.uint64(31))) >> np.uint64(11))


@inlined
def _shift_of(width):  # type: ignore[no-untyped-def]
    # By how much a draw is shifted to tell in which of ``width`` equal parts it lies.
    part, shift = WHOLE // width, 0
    while part >> shift > 1:
        shift += 1
    return shift


@dataclass(frozen=True, eq=False)
class LabelDrawer:
    """Draws label vectors from the predictions: replicate r of a seed is always the same.

    Label k of row i is drawn when U(seed, r, i) lies in [c_{k−1}, c_k), c the cumulative
    probabilities of the row. Uniforms have 53 bits, and a class of probability 0 is never drawn.

    Notes
    -----
    O(n K) once. A label costs some 1 ns for two classes, 0.2 ns more for each further one, and
    some 5 ns above 40 classes by indexed search (Chen & Asau 1974).
    """

    thresholds: IntArray = field(repr=False)
    guide: NDArray[np.int32] = field(repr=False)

    @classmethod
    def of(cls, probs: FloatArray) -> LabelDrawer:
        """Prepare the rows of ``probs``, shape (n, K)."""
        guided = probs.shape[1] > LADDER_CLASSES
        thresholds, guide = label_tables(probs, np.arange(len(probs)), guided)
        if not guided:  # by fours, the last of them perhaps with thresholds that no draw passes
            rows = 1 if probs.shape[1] == 2 else -(-(probs.shape[1] - 1) // 4) * 4
            padded = np.full((rows, len(probs)), WHOLE)
            padded[: probs.shape[1] - 1] = thresholds[:, :-1].T
            thresholds = padded
        return cls(thresholds, guide)

    def __call__(self, seed: Seed, first: int, count: int, out: IntArray | None = None) -> IntArray:
        """Return the labels of replicates ``first``, …, ``first + count − 1``: (count, n).

        They are written into ``out`` where it is given, which saves the making of large arrays.
        """
        labels = np.empty((count, len(self.guide)), dtype=np.int64) if out is None else out[:count]
        if self.guide.shape[1] == 0:
            _climb(self.thresholds, *keys(seed, first, count)[:2], labels)
        else:
            _look_up(self.thresholds, self.guide, *keys(seed, first, count)[:2], labels)
        return labels


@counter_kernel
def _climb(thresholds, key, twist, labels_out):  # type: ignore[no-untyped-def]
    # O(n K) per replicate, in vector instructions: a label is the number of thresholds passed.
    # The thresholds of a stretch of rows stay in the nearest cache.
    n = labels_out.shape[1]
    draw = np.empty(512, dtype=np.int64)
    if thresholds.shape[0] == 1:
        for r in range(key.size):
            counter, twisted, labels = key[r], twist[r], labels_out[r]
            for i in range(n):
                labels[i] = _mixed(counter, twisted) >= thresholds[0, i]
                counter += GAMMA
        return
    for start in range(0, n, draw.size):
        size = min(draw.size, n - start)
        rows = slice(start, start + size)
        for r in range(key.size):
            counter, twisted = key[r] + GAMMA * np.uint64(start), twist[r]
            for i in range(size):
                draw[i] = _mixed(counter, twisted)
                counter += GAMMA
            label = labels_out[r, rows]
            label[:] = 0
            for k in range(0, thresholds.shape[0], 4):
                a, b = thresholds[k, rows], thresholds[k + 1, rows]
                c, d = thresholds[k + 2, rows], thresholds[k + 3, rows]
                for i in range(size):
                    z = draw[i]
                    passed = np.int64(z >= a[i]) + np.int64(z >= b[i])
                    label[i] += passed + np.int64(z >= c[i]) + np.int64(z >= d[i])


@counter_kernel
def _look_up(thresholds, guide, key, twist, labels_out):  # type: ignore[no-untyped-def]
    # O(n) per replicate; rows are outside, because a row's tables stay in the nearest cache.
    shift = _shift_of(guide.shape[1])
    draw = np.empty(key.size, dtype=np.int64)
    for i in range(labels_out.shape[1]):
        for r in range(key.size):
            draw[r] = _mixed(key[r] + GAMMA * np.uint64(i), twist[r])
        for r in range(key.size):
            k = np.int64(guide[i, draw[r] >> shift])
            # One step is mostly enough, and takes no branch that could be mispredicted.
            k += thresholds[i, k] <= draw[r]
            while thresholds[i, k] <= draw[r]:
                k += 1
            labels_out[r, i] = k


@dataclass(frozen=True, eq=False)
class CellRedraws:
    """A binned error of redrawn labels: fixed predictions and cells, drawing and counting in one.

    T = Σ_b (n_b / n) · d(counts_b / n_b, sums_b / n_b), or the largest d for ``combine="max"``,
    on the labels that :class:`LabelDrawer` draws from the same seed.

    Notes
    -----
    O(n K) once. A replicate costs O(n K + L K) up to 40 classes, in vector instructions (some
    0.1 ns per row and class), and O(n) for more: indexed search (Chen & Asau 1974) in tables of
    12 K to 16 K bytes per row. The labels of a replicate do not depend on the cells, so that
    statistics with the same seed see the same labels.
    """

    order: IntArray = field(repr=False)
    starts: IntArray = field(repr=False)
    sums: FloatArray = field(repr=False)
    thresholds: IntArray = field(repr=False)
    guide: NDArray[np.int32] = field(repr=False)
    untouched: FloatArray = field(repr=False)
    falling: IntArray = field(repr=False)
    distance: str
    combine: str

    @classmethod
    def of(
        cls, probs: FloatArray, order: IntArray, starts: IntArray, distance: str, combine: str
    ) -> CellRedraws:
        """Prepare cells: rows ``order[starts[b]:starts[b + 1]]`` of ``probs`` make up cell b."""
        order = np.ascontiguousarray(order, dtype=np.int64)
        thresholds, guide = label_tables(probs, order, probs.shape[1] > LADDER_CLASSES)
        sums = np.add.reduceat(probs[order], starts[:-1], axis=0)
        falling = np.argsort(-sums if distance == "max" and guide.size else sums[:, :0], axis=1)
        untouched = sums.sum(axis=1)
        return cls(order, starts, sums, thresholds, guide, untouched, falling, distance, combine)

    def replicates(self, seed: Seed, first: int, count: int) -> FloatArray:
        """Return replicates ``first``, …, ``first + count − 1``.

        Each depends on the seed, two numbers below 2⁶⁴, and its own number only, hence not on how
        a run is cut into calls or spread over threads.
        """
        code, largest = list(NAMED).index(self.distance), self.combine == "max"
        biggest = int(np.diff(self.starts).max())
        ladder = self.guide.shape[1] == 0
        lanes = LANES if ladder else max(8, min(2 * LANES, 2**22 // biggest))
        values = np.zeros(count)
        for a in range(0, count, lanes):
            part = values[a : a + lanes]
            cells = (self.order, self.starts, self.sums, *keys(seed, first + a, part.size)[:2])
            if ladder:
                _ladder_errors(self.thresholds, *cells, code, largest, part)
            else:
                labels = np.empty((part.size, biggest), dtype=np.int32)
                tables = (self.thresholds, self.guide, self.untouched, self.falling)
                _lookup_errors(*tables, *cells, code, largest, labels, part)
        return values


def label_tables(
    probs: FloatArray, order: IntArray, guided: bool = True
) -> tuple[IntArray, NDArray[np.int32]]:
    """Return the thresholds between labels for rows in this order, and where to look for them."""
    n, n_classes = probs.shape
    thresholds = np.empty((n, n_classes), dtype=np.int64)
    guide = np.empty((n, guided << (n_classes - 1).bit_length()), dtype=np.int32)
    _tables(np.ascontiguousarray(probs, dtype=np.float64), order, thresholds, guide)
    return thresholds, guide


@kernel
def _tables(probs, order, thresholds_out, guide_out):  # type: ignore[no-untyped-def]
    # O(n K). Label k is drawn when thresholds[k - 1] <= draw < thresholds[k]; guide[j] is the label
    # of the smallest draw in the j-th of equal parts.
    n_classes, width = thresholds_out.shape[1], guide_out.shape[1]
    for i in range(order.size):
        row = order[i]
        last = n_classes - 1
        while probs[row, last] <= 0.0:
            last -= 1
        cumulative = 0.0
        for k in range(n_classes):
            cumulative += probs[row, k]
            # Rounding may leave the sum below 1: the last possible label takes what is left.
            thresholds_out[i, k] = np.int64(np.ceil(cumulative * WHOLE)) if k < last else WHOLE
        k = 0
        for j in range(width):
            while thresholds_out[i, k] <= j * (WHOLE // width):
                k += 1
            guide_out[i, j] = k


@counter_kernel
def _ladder_errors(  # type: ignore[no-untyped-def]
    thresholds, order, starts, sums, key, twist, code, largest, errors_out
):
    # O((n + L) K) per lane. below[k] counts the draws below threshold k - 1: the labels under k.
    n_classes, lanes = sums.shape[1], errors_out.size
    below = np.zeros((n_classes + 1, lanes), dtype=np.int64)
    draw = np.empty(lanes, dtype=np.int64)
    gap = np.empty(lanes)
    for b in range(starts.size - 1):
        below[1:] = 0
        gap[:] = 0.0
        size = starts[b + 1] - starts[b]
        for i in range(starts[b], starts[b + 1]):
            for q in range(lanes):
                draw[q] = _mixed(key[q] + GAMMA * np.uint64(order[i]), twist[q])
            for k in range(n_classes - 1):
                threshold = thresholds[i, k]
                for q in range(lanes):
                    below[k + 1, q] += draw[q] < threshold
        below[n_classes] = size
        for k in range(n_classes):
            expected = sums[b, k]
            for q in range(lanes):
                d = abs(below[k + 1, q] - below[k, q] - expected)
                if code <= 1:
                    gap[q] += d
                elif code <= 3:
                    gap[q] += d * d
                else:
                    gap[q] = max(gap[q], d)
        scale = 0.5 if code == 0 else 1.0 / size if code == 3 else 1.0
        for q in range(lanes):
            g = scale * (np.sqrt(gap[q]) if code == 2 else gap[q])
            errors_out[q] = max(errors_out[q], g / size) if largest else errors_out[q] + g
    if not largest:
        for q in range(lanes):
            errors_out[q] /= order.size


@counter_kernel
def _lookup_errors(  # type: ignore[no-untyped-def]
    thresholds, guide, untouched, falling, order, starts, sums, key, twist, code, largest,
    labels, errors_out,
):  # fmt: skip
    # O(n) per lane for l1 distances: a cell's sum over all classes is corrected for those that
    # occur in it.
    n_classes, lanes = sums.shape[1], errors_out.size
    shift = _shift_of(guide.shape[1])
    draw = np.empty(lanes, dtype=np.int64)
    seen = np.zeros(n_classes, dtype=np.int64)
    for b in range(starts.size - 1):
        first, size = starts[b], starts[b + 1] - starts[b]
        for i in range(size):
            for q in range(lanes):
                draw[q] = _mixed(key[q] + GAMMA * np.uint64(order[first + i]), twist[q])
            for q in range(lanes):
                k = np.int64(guide[first + i, draw[q] >> shift])
                # One step is mostly enough, and takes no branch that could be mispredicted.
                k += thresholds[first + i, k] <= draw[q]
                while thresholds[first + i, k] <= draw[q]:
                    k += 1
                labels[q, i] = k
        for q in range(lanes):
            for i in range(size):
                seen[labels[q, i]] += 1
            gap = untouched[b] if code <= 1 else 0.0
            if code == 4:
                r = 0
                while r < n_classes and seen[falling[b, r]] > 0:
                    r += 1
                gap = sums[b, falling[b, r]] if r < n_classes else 0.0
            elif code >= 2:  # added up class by class: corrections would cancel, and roots show it
                for c in range(n_classes):
                    gap += (seen[c] - sums[b, c]) ** 2
            for i in range(size):
                k = labels[q, i]
                count, expected = seen[k], sums[b, k]
                if code <= 1:  # a class met before counts 0 and adds 0
                    gap += abs(count - expected) - expected
                elif code == 4 and count > 0:
                    gap = max(gap, abs(count - expected))
                seen[k] = 0
            if code == 0:
                gap *= 0.5
            elif code == 2:
                gap = np.sqrt(gap)
            elif code == 3:
                gap /= size
            errors_out[q] = max(errors_out[q], gap / size) if largest else errors_out[q] + gap
    if not largest:
        for q in range(lanes):
            errors_out[q] /= order.size
