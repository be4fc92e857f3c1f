"""Micro-cells: a fine partition of [0, 1] whose every part remembers sums, not rows."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from caltest._base.checks import whole
from caltest.binning import EDGE_TOLERANCE
from caltest.predictions import BoolArray, FloatArray, IntArray
from caltest.tally.rows import FINE, HIGH, LOW, OCTAVES, UNIT, add_up

#: Cells between 0 and 1, unless others are asked for: 10, 12, 15, 16, 20, 25, 30, 32, 50, 60, 64,
#: 75 and 100 bins of equal width are made of them.
GRID = 4800
#: Rows of one tally, so that no sum overflows.
MOST_ROWS = 2**33 - 1
#: Different weights that are kept apart.
MOST_WEIGHTS = 1024
#: The columns of sums: rows, Σt, Σt², Σt³, Σt⁴ with t in [−1, 1] the position; events, Σ y t; what
#: rounding has left of Σt.
SUMS = ("n", "t1", "t2", "t3", "t4", "events", "events_t", "t1_rest")
#: The totals over rows: with r = y − p, v = p (1 − p) and z = logit p, where p is cut off at 1e-12
#: for the first four, Σ r z, Σ v z of z < 0 and of z > 0, Σ v z², Σ r z, Σ v z², the log score and
#: its promise.
TOTALS = ("cut_rz", "cut_vz_low", "cut_vz_high", "cut_vzz", "rz", "vzz", "log_score", "entropy")


@dataclass(frozen=True)
class Grid:
    """The numbers of micro-cells and where they lie.

    ``size`` = G cells of equal width; each inner edge j / G is a cell of its own, of values within
    1e-12 of it, so that bins closed on either side are made of cells. The first and the last cell
    are cut at h/2, h/4, …, h/2⁴⁷; exact 0 and 1 are cells of their own. Number j and number
    ``last`` − j mirror each other.
    """

    size: int = GRID

    def __post_init__(self) -> None:
        whole("grid", self.size, least=2, most=10**6)

    @property
    def last(self) -> int:
        """The number of the cell of exact 1; that of exact 0 is 0."""
        return 2 * OCTAVES + 2 * self.size - 2

    @cached_property
    def places(self) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Centre, half the width, and the position in units of 1/G, of the cells up to the middle.

        An edge has a whole position, all other cells one between whole numbers.
        """
        h, inner = 1.0 / self.size, np.arange(1, self.size)
        upper = h * 2.0 ** -np.arange(OCTAVES - 1.0, -1.0, -1.0)
        centre, half = 0.75 * upper, 0.25 * upper
        centre[0] = half[0] = 0.5 * upper[0]
        between = np.column_stack([inner * h, (inner + 0.5) * h]).ravel()
        between[::2] = inner / self.size
        widths = np.tile([EDGE_TOLERANCE, 0.5 * h], inner.size)
        position = np.column_stack([inner, inner + 0.5]).ravel()
        size = self.last // 2 + 1
        return (
            np.concatenate([[0.0], centre, between])[:size],
            np.concatenate([[0.0], half, widths])[:size],
            np.concatenate([[0.0], np.full(OCTAVES, 0.5), position])[:size],
        )

    def of(self, key: IntArray) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
        """Return the centres of cells, 1 − centre, half their widths, and their positions."""
        centre, half, position = self.places
        low = np.minimum(key, self.last - key)
        upper, near = key > low, centre[low]
        far = 1.0 - near
        place = np.where(upper, self.size - position[low], position[low])
        return np.where(upper, far, near), np.where(upper, near, far), half[low], place

    def sums(self, probs: FloatArray, events: BoolArray) -> tuple[IntArray, IntArray, IntArray]:
        """Return the occupied cells of rows (n, 2), their sums (C, 8), totals (8, 2); O(n)."""
        by_outcome, totals = add_up(probs[:, 0], probs[:, 1], events, self.size)
        room = by_outcome.sum(axis=1)
        (key,) = np.nonzero(room[:, 0])
        sums = np.column_stack([room[key, :5], by_outcome[key, 1, :2], room[key, 5]])
        low, high, entropy, cut_vzz, cut_rz, vzz, rz = totals
        ordered = [cut_rz, low, high, cut_vzz, rz, vzz, entropy - rz, entropy]
        return key, sums, carried(np.array(ordered))


def mean_position(sums: IntArray) -> FloatArray:
    """Return the mean position of the rows of every cell."""
    return np.asarray((sums[:, 1] / UNIT + sums[:, 7] / FINE) / sums[:, 0])


def total(totals: IntArray, name: str) -> FloatArray:
    """Return a total of every stratum as a number."""
    high, low = totals[:, TOTALS.index(name)].T
    return high / HIGH + low / (HIGH * 2.0**LOW)


def carried(totals: IntArray) -> IntArray:
    """Return totals of which the second part lies in [0, 2⁴³)."""
    high = totals[..., 0] + (totals[..., 1] >> LOW)
    return np.stack([high, totals[..., 1] & ((1 << LOW) - 1)], axis=-1)


def turned_over(sums: IntArray) -> IntArray:
    """Return the sums of the same rows for the other event: t changes its sign, y is 1 − y."""
    n, t1, t2, t3, t4, events, events_t, rest = sums.T
    return np.column_stack([n, -t1, t2, -t3, t4, n - events, events_t - t1, -rest])
