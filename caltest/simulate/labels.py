"""Labels redrawn from the predictions, many replicates at once."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from caltest._base.compiled import counter_kernel, kernel
from caltest.predictions import FloatArray, IntArray
from caltest.simulate.streams import GAMMA, WHOLE, Seed, keys, mixed, shift_of

#: Up to this many classes every threshold of a row is compared, above they are looked up.
LADDER_CLASSES = 40


def _cumulative(probs: FloatArray) -> FloatArray:
    cumulative = np.cumsum(probs, axis=1)
    # Rounding may leave the last sum below 1: the last possible label takes what is left.
    last = probs.shape[1] - 1 - (probs[:, ::-1] > 0.0).argmax(axis=1)
    cumulative[np.arange(probs.shape[1]) >= last[:, None]] = 1.0
    return cumulative


@dataclass(frozen=True, eq=False)
class LabelSampler:
    """Turns uniforms into labels by inversion, exactly.

    Label k is drawn when u lies in [c_{k−1}, c_k), c the cumulative probabilities of the row, so
    a label of probability 0 never is.
    """

    cumulative: FloatArray

    @classmethod
    def of(cls, probs: FloatArray) -> LabelSampler:
        """Prepare the rows of ``probs``."""
        cumulative = _cumulative(probs)
        if probs.shape[1] == 2:
            cumulative = np.ascontiguousarray(cumulative[:, :1])
        return cls(cumulative)

    def __call__(self, uniforms: FloatArray, rows: IntArray | None = None) -> IntArray:
        """Return a label for every uniform; ``rows`` names its row, by default its own. O(n K)."""
        labels = np.zeros(uniforms.size, dtype=np.int64)
        for upto in self.cumulative.T:  # the number of cumulative probabilities passed
            labels += uniforms >= (upto if rows is None else upto[rows])
        return labels


@dataclass(frozen=True, eq=False)
class LabelDrawer:
    """Draws label vectors from the predictions: replicate r of a seed is always the same.

    Label k of row i is drawn when U(seed, r, i) lies in [c_{k−1}, c_k), c the cumulative
    probabilities of the row. Uniforms have 53 bits, and a class of probability 0 is never drawn.
    O(n K) once; a label costs some 1 ns for two classes, 0.2 ns more for each further one, and 5 ns
    above 40 classes by indexed search (Chen & Asau 1974).
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
        """Return the labels of ``count`` replicates, (count, n), written into ``out`` if given."""
        labels = np.empty((count, len(self.guide)), dtype=np.int64) if out is None else out[:count]
        counters = keys(seed, first, count)[:2]
        if self.guide.shape[1] > 0:
            _look_up(self.thresholds, self.guide, *counters, labels)
        elif len(self.thresholds) > 1:
            _climb(self.thresholds, *counters, np.empty(512, dtype=np.int64), labels)
        else:
            _toss(self.thresholds[0], *counters, labels)
        return labels


@counter_kernel
def _toss(thresholds, key, twist, labels_out):  # type: ignore[no-untyped-def]
    # Two classes, O(n) per replicate, in vector instructions.
    for r in range(key.size):
        counter, twisted = key[r], twist[r]
        for i in range(thresholds.size):
            labels_out[r, i] = mixed(counter, twisted) >= thresholds[i]
            counter += GAMMA


@counter_kernel
def _climb(thresholds, key, twist, draw, labels_out):  # type: ignore[no-untyped-def]
    # O(n K) per replicate, in vector instructions: a label is the number of thresholds passed.
    # The thresholds of a stretch of rows, as long as ``draw``, stay in the nearest cache.
    n = labels_out.shape[1]
    for start in range(0, n, draw.size):
        size = min(draw.size, n - start)
        rows = slice(start, start + size)
        for r in range(key.size):
            counter, twisted = key[r] + GAMMA * np.uint64(start), twist[r]
            for i in range(size):
                draw[i] = mixed(counter, twisted)
                counter += GAMMA
            label = labels_out[r, rows]
            for i in range(size):
                label[i] = 0
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
    shift = shift_of(guide.shape[1])
    draw = np.empty(key.size, dtype=np.int64)
    for i in range(labels_out.shape[1]):
        for r in range(key.size):
            draw[r] = mixed(key[r] + GAMMA * np.uint64(i), twist[r])
        for r in range(key.size):
            k = np.int64(guide[i, draw[r] >> shift])
            # One step is mostly enough, and takes no branch that could be mispredicted.
            k += thresholds[i, k] <= draw[r]
            while thresholds[i, k] <= draw[r]:
                k += 1
            labels_out[r, i] = k


def label_tables(
    probs: FloatArray, order: IntArray, guided: bool = True
) -> tuple[IntArray, NDArray[np.int32]]:
    """Return the thresholds between labels for rows in this order, and where to look for them."""
    n, n_classes = probs.shape
    # Label k is drawn when thresholds[k - 1] <= draw < thresholds[k].
    thresholds = np.ceil(_cumulative(probs[order]) * WHOLE).astype(np.int64)
    guide = np.empty((n, guided << (n_classes - 1).bit_length()), dtype=np.int32)
    if guided:
        _guide(thresholds, guide)
    return thresholds, guide


@kernel
def _guide(thresholds, guide_out):  # type: ignore[no-untyped-def]
    # O(n K): guide[j] is the label of the smallest draw in the j-th of equal parts.
    width = guide_out.shape[1]
    for i in range(thresholds.shape[0]):
        k = 0
        for j in range(width):
            while thresholds[i, k] <= j * (WHOLE // width):
                k += 1
            guide_out[i, j] = k
