"""Many replicates at once of a binned error with redrawn labels: one fused, compiled pass.

Replicates are the lanes of the inner loops. A row is visited once for a whole block of lanes: one
random word for each gives its label, counts are kept by class, and a finished cell is added to the
statistic of every lane before the next one starts.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from caltest._numba import kernel
from caltest.binning import EdgeBins, UniformBins
from caltest.distances import NAMED
from caltest.predictions import FloatArray, IntArray
from caltest.statistics.lanes.streams import FIRST_FACTOR, GAMMA, SECOND_FACTOR, WHOLE, keys

#: Up to this many classes every threshold of a row is compared, above they are looked up.
LADDER_CLASSES = 40
#: Replicates that share a pass over the rows. No number depends on it.
LANES = 128


#: Binnings that give every row its cell whatever the others are.
FIXED = (UniformBins, EdgeBins)


class Grouped(Protocol):
    """Rows grouped into cells, and how the gaps of the cells are measured and combined."""

    @property
    def order(self) -> IntArray:
        """The rows in the order of their cells."""

    @property
    def starts(self) -> IntArray:
        """Where each cell starts in that order, and where the last ends."""

    @property
    def sums(self) -> FloatArray:
        """Sums of the probabilities by cell and class."""

    @property
    def distance(self) -> Any:
        """The distance, by name or as a function."""

    @property
    def combine(self) -> str:
        """``"sum"`` or ``"max"`` of the gaps."""

    @property
    def bins(self) -> Any:
        """The binning that made the cells."""


@dataclass(frozen=True, eq=False)
class CellRedraws:
    """The null of a binned error: fixed predictions and cells, labels drawn from the predictions.

    T = Σ_b (n_b / n) · d(counts_b / n_b, sums_b / n_b), or the largest d for ``combine="max"``,
    where row i adds to the counts of its cell the first class whose cumulative probability exceeds
    U(seed, replicate, i). The uniforms have 53 bits, so labels have the law of
    :class:`~caltest.resampling.LabelSampler`, and a class of probability 0 is never drawn.

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
    def of(cls, cells: Grouped, probs: FloatArray) -> CellRedraws:
        """Prepare the cells of a named distance; ``probs`` are the predictions they group."""
        if not isinstance(cells.distance, str):
            raise TypeError(f"compiled redraws need a named distance, not {cells.distance!r}")
        order = np.ascontiguousarray(cells.order, dtype=np.int64)
        thresholds, guide = label_tables(probs, order, probs.shape[1] > LADDER_CLASSES)
        starts = np.ascontiguousarray(cells.starts, dtype=np.int64)
        sums = np.ascontiguousarray(cells.sums, dtype=np.float64)
        untouched = sums.sum(axis=1)
        falling = np.argsort(
            -sums if cells.distance == "max" and guide.size else sums[:, :0], axis=1
        )
        return cls(
            order, starts, sums, thresholds, guide, untouched, falling,
            cells.distance, cells.combine,
        )  # fmt: skip

    def replicates(self, seed: tuple[int, int], first: int, count: int) -> FloatArray:
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


@kernel
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
                z = key[q] + GAMMA * np.uint64(order[i])
                z = (z ^ (z >> 30)) * FIRST_FACTOR ^ twist[q]
                z = (z ^ (z >> 27)) * SECOND_FACTOR
                draw[q] = (z ^ (z >> 31)) >> 11
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


@kernel
def _lookup_errors(  # type: ignore[no-untyped-def]
    thresholds, guide, untouched, falling, order, starts, sums, key, twist, code, largest,
    labels, errors_out,
):  # fmt: skip
    # O(n) per lane for l1 distances: a cell's sum over all classes is corrected for those that
    # occur in it.
    n_classes, lanes = sums.shape[1], errors_out.size
    part = WHOLE // guide.shape[1]
    shift = 0
    while part >> shift > 1:
        shift += 1
    draw = np.empty(lanes, dtype=np.int64)
    seen = np.zeros(n_classes, dtype=np.int64)
    for b in range(starts.size - 1):
        first, size = starts[b], starts[b + 1] - starts[b]
        for i in range(size):
            for q in range(lanes):
                z = key[q] + GAMMA * np.uint64(order[first + i])
                z = (z ^ (z >> 30)) * FIRST_FACTOR ^ twist[q]
                z = (z ^ (z >> 27)) * SECOND_FACTOR
                draw[q] = (z ^ (z >> 31)) >> 11
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
