"""Readers of statistics from lanes: many replicates side by side, for two classes.

:class:`Redraws` is the shortcut that the engine runs; a :class:`Reader` sums a statistic's cells
from blocks of lanes in one pass. Other statistics bring a :class:`BlockReader` of their own.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol, Self

import numpy as np

from caltest._base import FloatArray, IntArray
from caltest._base.arrays import AnyArray
from caltest.nulls.compiled import lane_kernel
from caltest.nulls.lanes import Lanes, Seed
from caltest.statistics.problem import ABSENT, Cells, ResidualSums

if TYPE_CHECKING:
    from caltest.statistics.prepared import Prepared, SumStatistic

#: Numbers that the sums of a block of replicates may take, so that they stay in a near cache, and
#: the fewest replicates of a block.
NUMBERS_A_BLOCK, FEWEST_LANES = 2**17, 16


class BlockReader(Protocol):
    """Protocol: reads a statistic from blocks (n, B) of outcomes with rows in a fixed order."""

    @property
    def at_once(self) -> int:
        """Replicates in a block that it can read with its sums in a near cache."""

    def values(self, block: AnyArray, factor: float = 1.0) -> FloatArray:
        """Return the values (B,), residuals inflated by √factor."""


@dataclass(frozen=True, eq=False)
class Redraws:
    """Resampler of several statistics: outcomes are drawn once and read by every statistic.

    Statistics whose cells are runs of the sorted predictions read the same block of outcomes; for
    others the same outcomes are drawn again, in the order of their cells. ``groups`` holds lanes
    (generators of many replicates side by side) with the readers of their blocks, and the column of
    each reader. Values are (B, S) where ``joint``.
    """

    groups: list[tuple[Lanes, list[tuple[int, BlockReader]]]]
    factor: float
    joint: bool

    @classmethod
    def of(
        cls, draw: Lanes, statistics: Sequence[Prepared], factor: float, joint: bool,
        residuals: bool = False,
    ) -> Redraws:  # fmt: skip
        """Return the resampler of several statistics; rows are laid out in the order they are read.

        With ``residuals`` the lanes hold W (Y − p), as for censored outcomes, in place of events.
        """
        groups: list[tuple[Lanes, list[tuple[int, BlockReader]]]] = []
        shared: list[tuple[int, BlockReader]] = []
        probs = statistics[0].problem.probs[:, 0]
        by_prediction = np.argsort(probs, kind="stable") if len(statistics) > 1 else None
        for column, statistic in enumerate(statistics):
            cells = statistic.sum_cells or Cells.whole(statistic.problem)
            if by_prediction is not None and (np.diff(cells.of_unit[by_prediction]) >= 0).all():
                reader = statistic.lane_reader(cells, by_prediction, residuals)
                shared.append((column, reader))
            else:
                reader = statistic.lane_reader(cells, cells.order, residuals)
                groups.append((draw.laid(cells.order), [(column, reader)]))
        if by_prediction is not None and shared:
            groups.append((draw.laid(by_prediction), shared))
        return cls(groups, factor, joint)

    def replicates(self, seed: Seed, first: int, count: int) -> FloatArray:
        """Return replicates ``first``, …, ``first + count − 1``, shape (count,) or (count, S).

        A replicate depends on the seed and its number only, so that batches may be of any size.
        """
        values = np.empty((count, sum(len(readers) for _, readers in self.groups)))
        for draw, readers in self.groups:
            at_once = min(reader.at_once for _, reader in readers)
            for lane, block in draw.blocks(seed, first, count, at_once):
                known = lane < count
                for column, reader in readers:
                    values[lane[known], column] = reader.values(block, self.factor)[known]
        return values if self.joint else values[:, 0]


@dataclass(frozen=True, eq=False)
class Reader:
    """Reader that computes a statistic's residual sums from blocks of redrawn outcomes.

    A block (n, B) holds B replicates with rows in a fixed order: events as 0 and 1 or, with
    ``residuals``, W (Y − p). Cell b has the rows ``starts[b]:starts[b + 1]`` and ``expected[b]``
    expected events. Sums of squares and scores start from ``base``, (T, L) or (T, 1), their value
    if no row has the event, and change by ``steps`` (T, n) if row i has it; for residuals, scores
    are ``steps`` times residuals.
    """

    statistic: SumStatistic = field(repr=False)
    starts: IntArray = field(repr=False)
    expected: FloatArray = field(repr=False)
    weights: FloatArray = field(repr=False)
    steps: FloatArray = field(repr=False)
    base: FloatArray = field(repr=False)
    residuals: bool

    @classmethod
    def of(cls, statistic: SumStatistic, cells: Cells, order: IntArray, residuals: bool) -> Self:
        """Return the reader of a statistic for rows in the given order, in which cells are runs.

        O(n T).

        ``order`` (n,) is the order of rows in the blocks; with ``residuals`` blocks hold W (Y − p)
        in place of events.
        """
        problem, starts = statistic.problem, np.asarray(cells.starts, dtype=np.int64)
        weights, expected = np.empty(0), np.ascontiguousarray(cells.expected[:, 0])
        tables = statistic.tables if statistic.squares is None else problem.squares[None]
        if residuals:
            expected = np.zeros_like(expected)
            tables = statistic.tables if statistic.squares is None else None
        elif problem.weight is not None:
            weights = np.ascontiguousarray(problem.weight[order])
        if tables is None:
            return cls(
                statistic,
                starts,
                expected,
                weights,
                np.empty((0, problem.n)),
                np.empty((0, 1)),
                residuals,
            )
        # A label of probability 0 is never drawn, and may have an infinite score.
        hit, miss = np.moveaxis(np.where(problem.probs > 0.0, tables, 0.0)[:, order], 2, 0)
        by_cell = statistic.squares == "cells"
        base = np.add.reduceat(miss, starts[:-1] if by_cell else [0], axis=1)
        steps = np.ascontiguousarray(hit - miss)
        return cls(statistic, starts, expected, weights, steps, base * (not residuals), residuals)

    @property
    def at_once(self) -> int:
        """Replicates in a block, a power of 2, so that the blocks of a chunk have one size."""
        numbers = (self.starts.size - 1) * (1 + (self.statistic.squares == "cells"))
        return max(FEWEST_LANES, 1 << (NUMBERS_A_BLOCK // numbers).bit_length() >> 1)

    def values(self, block: AnyArray, factor: float = 1.0) -> FloatArray:
        """Return the values (B,) of a block with B sets of outcomes.

        Residuals are multiplied by √factor.
        """
        return self.statistic.of_sums(self.sums(block).inflated(factor))

    def sums(self, block: AnyArray) -> ResidualSums:
        """Return residual sums of the cells, sums of squares and of scores for a block (n, B)."""
        lanes, n_cells, squares = block.shape[1], self.starts.size - 1, self.statistic.squares
        # Counts of a cell, or what is added in their place
        counts = not (self.residuals or self.weights.size)
        mass: AnyArray = np.empty(lanes, dtype=np.int32 if counts else np.float64)
        sums = np.empty((n_cells, 1, lanes))
        squared = self.residuals and squares is not None
        n_places = n_cells if squares == "cells" else 1  # of squares and scores
        added = np.empty((1 if squared else len(self.steps), n_places, lanes))
        add_up(
            block, self.starts, self.expected, self.weights, self.steps, squared, mass, sums, added
        )
        if not squared:
            added += self.base[:, :, None]
        gaps = np.moveaxis(sums, 2, 0)
        if squares is not None:
            return ResidualSums(gaps, added[0].T)
        return ResidualSums(gaps, linear=added[:, 0].T if len(added) else ABSENT)


@lane_kernel
def add_up(  # type: ignore[no-untyped-def]
    block, starts, expected, weights, steps, squared, mass, sums_out, added_out
):
    # O(n T) per lane: a row is read once for all lanes, and lanes are vectors.
    lanes, weighted, by_cell = block.shape[1], weights.size > 0, added_out.shape[1] > 1
    added_out[:] = 0.0
    for b in range(starts.size - 1):
        place = b if by_cell else 0
        for q in range(lanes):
            mass[q] = 0
        for i in range(starts[b], starts[b + 1]):
            row = block[i]
            if weighted:
                w = weights[i]
                for q in range(lanes):
                    mass[q] += w * row[q]
            else:
                for q in range(lanes):
                    mass[q] += row[q]
            if squared:
                added = added_out[0, place]
                for q in range(lanes):
                    added[q] += row[q] * row[q]
            for t in range(steps.shape[0]):
                step, added = steps[t, i], added_out[t, place]
                for q in range(lanes):
                    added[q] += step * row[q]
        less = expected[b]
        for q in range(lanes):
            sums_out[b, 0, q] = mass[q] - less
