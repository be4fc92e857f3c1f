"""Binned errors of all classes at once, each against the rest, from one draw of label vectors."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from caltest._numba import kernel
from caltest.predictions import FloatArray, IntArray
from caltest.statistics.lanes.redraws import LADDER_CLASSES, LANES, label_tables
from caltest.statistics.lanes.streams import FIRST_FACTOR, GAMMA, SECOND_FACTOR, WHOLE, keys


class ByClass(Protocol):
    """The cell of every prediction among those of all classes, which are numbered through."""

    @property
    def cell(self) -> NDArray[np.int32]:
        """The cell of each row for each class, or −1."""

    @property
    def starts(self) -> IntArray:
        """Where the cells of each class start, and where the last ends."""

    @property
    def sums(self) -> FloatArray:
        """Sums of the probabilities by cell."""

    @property
    def weights(self) -> FloatArray:
        """What a difference of one event adds to the error of its class."""

    @property
    def aggregate(self) -> Literal["mean", "max"]:
        """How the errors of the classes become one."""


@dataclass(frozen=True, eq=False)
class ClasswiseRedraws:
    """The null of class-wise errors: predictions and cells fixed, whole label vectors redrawn.

    A label adds one event to one cell of one class, so that a replicate costs O(n) to draw and
    count, and O(cells) to read the errors. Labels are those of
    :class:`~caltest.statistics.lanes.CellRedraws` with the same seed.
    """

    cells: Any = field(repr=False)
    thresholds: IntArray = field(repr=False)
    guide: NDArray[np.int32] = field(repr=False)
    by_class: bool

    @classmethod
    def of(cls, cells: ByClass, probs: FloatArray, by_class: bool = False) -> ClasswiseRedraws:
        """Prepare the tables of labels; O(n K) time, 8 K to 16 K bytes per row."""
        guided = probs.shape[1] > LADDER_CLASSES
        return cls(cells, *label_tables(probs, np.arange(len(probs)), guided), by_class)

    def replicates(self, seed: tuple[int, int], first: int, count: int) -> FloatArray:
        """Return replicates ``first``, …, ``first + count − 1``: one number for each.

        With ``by_class``, one row of K errors. Each depends on the seed and its own number only.
        """
        cells: ByClass = self.cells
        n, n_classes = cells.cell.shape
        lanes = max(8, min(2 * LANES if self.guide.size else LANES, 2**22 // n))
        tables = (self.thresholds, self.guide, cells.cell, cells.starts, cells.sums, cells.weights)
        errors = np.empty((count, n_classes))
        for a in range(0, count, lanes):
            part = errors[a : a + lanes]
            slots = np.empty((len(part), n), dtype=np.int32)
            _class_errors(*tables, *keys(seed, first + a, len(part))[:2], slots, part)
        return errors if self.by_class else getattr(errors, cells.aggregate)(axis=1)


@kernel
def _class_errors(  # type: ignore[no-untyped-def]
    thresholds, guide, cell, starts, sums, weights, key, twist, slots, errors_out
):
    # O(n + cells) per lane above 40 classes, O(n K) in vector instructions below.
    n, n_classes = cell.shape
    lanes = key.size
    ladder = guide.shape[1] == 0
    part = WHOLE // max(1, guide.shape[1])
    shift = 0
    while part >> shift > 1:
        shift += 1
    draw = np.empty(lanes, dtype=np.int64)
    label = np.empty(lanes, dtype=np.int64)
    events = np.empty(sums.size + 1, dtype=np.int32)  # the last for rows without a cell
    for i in range(n):
        for q in range(lanes):
            z = key[q] + GAMMA * np.uint64(i)
            z = (z ^ (z >> 30)) * FIRST_FACTOR ^ twist[q]
            z = (z ^ (z >> 27)) * SECOND_FACTOR
            draw[q] = (z ^ (z >> 31)) >> 11
        if ladder:
            label[:] = 0
            for k in range(n_classes - 1):
                threshold = thresholds[i, k]
                for q in range(lanes):
                    label[q] += draw[q] >= threshold
        else:
            for q in range(lanes):
                k = int(guide[i, draw[q] >> shift])
                # One step is mostly enough, and takes no branch that could be mispredicted.
                k += thresholds[i, k] <= draw[q]
                while thresholds[i, k] <= draw[q]:
                    k += 1
                label[q] = k
        for q in range(lanes):
            hit = cell[i, label[q]]
            slots[q, i] = hit if hit >= 0 else sums.size
    for q in range(lanes):
        events[:] = 0
        for i in range(n):
            events[slots[q, i]] += 1
        for k in range(n_classes):
            error = 0.0
            for b in range(starts[k], starts[k + 1]):
                error += weights[b] * abs(events[b] - sums[b])
            errors_out[q, k] = error
