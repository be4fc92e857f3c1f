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

Summary = Literal["mean", "max"]

#: A two-class distance is this multiple of the difference in one class.
TWO_CLASS = {"tv": 1.0, "l1": 2.0, "l2": 2.0**0.5, "max": 1.0, "sqeuclidean": 2.0}


class Classwise(Protocol):
    """The cell of every prediction among those of its class."""

    @property
    def cells(self) -> NDArray[np.uint16]:
        """The cell of each row, for each class."""

    @property
    def sums(self) -> FloatArray:
        """Sums of the probabilities by class and cell."""

    @property
    def sizes(self) -> IntArray:
        """Number of rows by class and cell."""

    @property
    def distance(self) -> Any:
        """The distance, by name."""

    @property
    def combine(self) -> str:
        """``"sum"`` or ``"max"`` of the gaps."""


@dataclass(frozen=True, eq=False)
class ClasswiseRedraws:
    """The null of the errors of all classes: predictions and cells fixed, labels redrawn.

    A label changes one cell of one class only, so that a replicate costs O(n) to draw and count,
    and O(K L) to read the errors from L cells a class. Labels are those of
    :class:`~caltest.statistics.lanes.CellRedraws` with the same seed.
    """

    thresholds: IntArray = field(repr=False)
    guide: NDArray[np.int32] = field(repr=False)
    cells: NDArray[np.uint16] = field(repr=False)
    sums: FloatArray = field(repr=False)
    sizes: IntArray = field(repr=False)
    distance: str
    combine: str
    summary: Summary | None

    @classmethod
    def of(
        cls, classwise: Classwise, probs: FloatArray, summary: Summary | None = None
    ) -> ClasswiseRedraws:
        """Prepare the tables of labels; O(n K) time, 12 K to 16 K bytes per row."""
        guided = probs.shape[1] > LADDER_CLASSES
        thresholds, guide = label_tables(probs, np.arange(len(probs)), guided)
        parts = classwise.cells, classwise.sums, classwise.sizes
        return cls(thresholds, guide, *parts, classwise.distance, classwise.combine, summary)

    def replicates(self, seed: tuple[int, int], first: int, count: int) -> FloatArray:
        """Return replicates ``first``, …, ``first + count − 1``: one row of K errors for each.

        With a ``summary``, one number. Each depends on the seed and its own number only.
        """
        n, n_classes = self.cells.shape
        ladder = self.guide.shape[1] == 0
        lanes = max(8, min(LANES if ladder else 2 * LANES, 2**22 // n))
        values = np.empty((count, n_classes) if self.summary is None else count)
        tables = (self.thresholds, self.guide, self.cells, self.sums, self.sizes)
        scale, squared = TWO_CLASS[self.distance], self.distance == "sqeuclidean"
        for a in range(0, count, lanes):
            size = min(lanes, count - a)
            errors = np.empty((size, n_classes))
            slots = np.empty((size, n), dtype=np.int32)
            key, twist, *_ = keys(seed, first + a, size)
            _class_errors(*tables, key, twist, scale, squared, self.combine == "max", slots, errors)
            values[a : a + size] = (
                errors if self.summary is None else getattr(errors, self.summary)(axis=1)
            )
        return values


@kernel
def _class_errors(  # type: ignore[no-untyped-def]
    thresholds, guide, cells, sums, sizes, key, twist, scale, squared, largest, slots, errors_out
):
    n_classes, n_cells = sums.shape
    n, lanes = cells.shape[0], key.size
    ladder = guide.shape[1] == 0
    part = WHOLE // max(1, guide.shape[1])
    shift = 0
    while part >> shift > 1:
        shift += 1
    draw = np.empty(lanes, dtype=np.int64)
    label = np.empty(lanes, dtype=np.int64)
    tally = np.empty((n_classes, n_cells), dtype=np.int32)
    flat = tally.ravel()
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
            slots[q, i] = label[q] * n_cells + cells[i, label[q]]
    for q in range(lanes):
        tally[:] = 0
        for i in range(n):
            flat[slots[q, i]] += 1
        for k in range(n_classes):
            error = 0.0
            for b in range(n_cells):
                if sizes[k, b] > 0:
                    d = abs(tally[k, b] - sums[k, b])
                    d *= scale * d / sizes[k, b] if squared else scale
                    error = max(error, d / sizes[k, b]) if largest else error + d / n
            errors_out[q, k] = error
