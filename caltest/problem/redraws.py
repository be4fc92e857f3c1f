"""Redrawn labels of rows, counted in the cells of a statistic as they are drawn."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from caltest.predictions import FloatArray, IntArray
from caltest.problem import counting
from caltest.problem.base import ABSENT, ResidualSums
from caltest.problem.cells import Cells
from caltest.problem.rows import LANES, ROOM, RowProblem
from caltest.simulate.labels import label_tables
from caltest.simulate.streams import Seed, keys

if TYPE_CHECKING:
    from caltest.statistics.prepared import SumStatistic

UIntArray = NDArray[np.uint64]


@dataclass(frozen=True, eq=False)
class CountedRedraws:
    """Replicates of a statistic of sums on the labels of ``RedrawLabels()``, in one pass.

    Labels are those of :class:`~caltest.simulate.labels.LabelDrawer`: statistics with the same seed
    see the same. For up to 40 classes: O(n K) once, and O(n K + L K) a replicate, some 0.1 ns per
    row and class.
    """

    problem: RowProblem
    statistic: SumStatistic
    cells: Cells
    thresholds: IntArray = field(repr=False)
    weights: FloatArray = field(repr=False)
    tables: FloatArray = field(repr=False)

    @classmethod
    def of(cls, problem: RowProblem, statistic: SumStatistic) -> CountedRedraws:
        """Sort thresholds of labels, weights and tables by cells; O(n K)."""
        cells = statistic.sum_cells or Cells.whole(problem)
        order = np.ascontiguousarray(cells.order, dtype=np.int64)
        thresholds, _ = label_tables(problem.probs, order, guided=False)
        weights = np.empty(0) if problem.weight is None else problem.weight[order]
        tables = np.empty((0, 0, 2))
        if statistic.squares is not None:
            tables = problem.squares[None, order]
        elif statistic.tables is not None:
            tables = statistic.tables[:, order]
        if problem.n_classes == 2:
            thresholds = np.ascontiguousarray(thresholds[:, 0])
        return cls(problem, statistic, cells, thresholds, weights, np.ascontiguousarray(tables))

    def replicates(self, seed: Seed, first: int, count: int) -> FloatArray:
        """Return replicates ``first``, …, ``first + count − 1``; blocks change no number."""
        lanes, values = self._lanes(), [np.empty(0)]
        # One more than needed: NumPy adds up a single column in another order, so none is alone.
        words = keys(seed, first, count + 1)
        for start in range(0, count, lanes):
            size = min(lanes, count - start)
            key, twist = np.ascontiguousarray(words[:2, start : start + max(2, size)])
            sums = self._of_two(key, twist) if self.problem.d == 1 else self._of_more(key, twist)
            values.append(self.statistic.of_sums(sums)[:size])
        return np.concatenate(values)

    def _lanes(self) -> int:
        """How many replicates share a pass: their sums stay in a near cache."""
        norm, d = self.statistic.norm, self.problem.d
        by_cell = len(self.tables) if self.statistic.squares == "cells" else 0
        numbers = len(self.cells) * ((d if norm is None else 1) + by_cell) + 1
        room = ROOM << (d > 1)  # of more classes the work is in the draws
        # A power of 2, so that the blocks of a chunk are of one size
        return max(16, min(LANES, 1 << (room // numbers).bit_length() >> 1))

    def _of_two(self, key: UIntArray, twist: UIntArray) -> ResidualSums:
        by_cell, n_cells = self.statistic.squares == "cells", len(self.cells)
        sums = np.empty((n_cells, 1, key.size))
        added = np.empty((len(self.tables), n_cells if by_cell else 1, key.size))
        fixed = (self.thresholds, self.cells.order, self.cells.starts, self.cells.expected)
        rest = (self.weights, self.tables, not by_cell)
        counting.redraw_two(*fixed, *rest, key, twist, sums, added)
        squares = added[0].T if self.statistic.squares is not None else ABSENT
        linear = added[:, 0].T if self.statistic.squares is None and len(added) else ABSENT
        return ResidualSums(np.moveaxis(sums, 2, 0), squares, linear)

    def _of_more(self, key: UIntArray, twist: UIntArray) -> ResidualSums:
        norm, d = self.statistic.norm, self.problem.d
        sums = np.empty((len(self.cells), d if norm is None else 1, key.size))
        fixed = (self.cells.order, self.cells.starts, self.cells.expected)
        draw, gap = np.empty(key.size, np.int64), np.empty(key.size)
        counts = np.zeros((self.problem.n_classes + 1, key.size), np.int32)
        code = -1 if norm is None else norm
        counting.redraw_few(self.thresholds, *fixed, code, key, twist, draw, counts, gap, sums)
        return ResidualSums(np.moveaxis(sums, 2, 0))
