"""Cells of columns, conditions on them, and the lattice of segments; no label is looked at."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from caltest._base.arrays import BoolArray, FloatArray, IntArray
from caltest._base.conditions import Condition
from caltest._base.features import MOST_LEVELS, Feature
from caltest.errors import StatisticError

#: Parts into which numbers are cut, alone and in pairs.
ALONE, PAIRED = 8, 4
#: Cells of all columns together that fit into two bytes.
MOST_CELLS = 2**16


class Cut(NamedTuple):
    """The cells of every row, 0 … size − 1, the first ``ordered`` of which are in order."""

    code: NDArray[np.uint16]
    size: int
    ordered: int
    cuts: FloatArray

    def conditions(self) -> IntArray:
        """Return ranges [a, b) of cells: stretches of ordered ones and single others, not all."""
        a, b = np.triu_indices(self.ordered + 1, 1)
        others = np.arange(self.ordered, self.size)
        ranges = np.concatenate([np.stack([a, b], 1), np.stack([others, others + 1], 1)])
        return ranges[ranges[:, 1] - ranges[:, 0] < self.size]


@dataclass(frozen=True, eq=False)
class Column:
    """A feature with its cells, alone and in pairs; ``levels`` are those that have one."""

    feature: Feature
    alone: Cut
    paired: Cut
    levels: tuple[str, ...] = ()

    @classmethod
    def of(cls, feature: Feature, min_rows: int) -> Column:
        """Cut numbers at v_k = s[⌈k m / Q⌉ − 1] of m sorted ones; levels by frequency, then name.

        At most Q different numbers, and levels of ``min_rows`` rows, are cells of their own.
        """
        values, absent = feature.values, feature.missing
        if feature.levels is None:
            known = np.sort(values[~absent])
            alone, paired = (_cut(values, absent, known, parts) for parts in (ALONE, PAIRED))
            return cls(feature, alone, paired)
        count = np.bincount(values[~absent].astype(np.int64), minlength=len(feature.levels))
        order = sorted(np.flatnonzero(count >= min_rows), key=lambda j: (-count[j], j))
        chosen = order[:MOST_LEVELS]  # levels are sorted by name
        place = np.full(len(count), len(chosen))
        place[chosen] = np.arange(len(chosen))
        rest = bool(count.sum() > count[chosen].sum())
        code = place[np.where(absent, 0, values).astype(np.int64)]
        code[absent] = len(chosen) + rest
        cut = Cut(code.astype(np.uint16), len(chosen) + rest + bool(absent.any()), 0, np.empty(0))
        return cls(feature, cut, cut, tuple(feature.levels[j] for j in chosen))

    def condition(self, cut: Cut, a: int, b: int) -> Condition:
        """Return what rows of cells [a, b) have in common."""
        name, kind = self.feature.name, "date" if self.feature.dates else "number"
        if a < cut.ordered:
            ends = [
                self._threshold(cut.cuts[j]) if 0 <= j < cut.cuts.size else None
                for j in (a - 1, b - 1)
            ]
            return name, kind, *ends, None  # type: ignore[return-value]
        if a < len(self.levels):
            return name, "level", None, None, self.levels[a]
        other = self.feature.levels is not None and not self.feature.missing[cut.code == a].any()
        return (
            (name, "other", None, None, self.levels)
            if other
            else (name, "missing", None, None, None)
        )

    def _threshold(self, at: float) -> float | str:
        """Return the shortest decimal or date from a cut on and below the next larger value."""
        values = self.feature.values
        beyond = float(values[values > at].min())
        if self.feature.dates:
            for unit in ("D", "h", "m", "s", "us"):
                date = np.datetime64(int(beyond) - 1, "us").astype(f"datetime64[{unit}]")
                if date.astype("datetime64[us]").astype(np.int64) >= at:
                    return str(date)
        size = int(np.floor(np.log10(max(abs(at), abs(beyond)))))
        for digits in range(-size - 1, min(17 - size, 300)):
            short = float(np.ceil(at * 10.0**digits) / 10.0**digits) + 0.0
            if at <= short < beyond:
                return short
        return at


def _cut(values: FloatArray, absent: BoolArray, present: FloatArray, parts: int) -> Cut:
    """Cut at quantiles of the sorted known values."""
    distinct = np.unique(present)
    cuts = distinct[:-1]
    if distinct.size > parts:
        cuts = np.unique(present[-(-np.arange(1, parts) * present.size // parts) - 1])
        cuts = cuts[cuts < distinct[-1]]
    code = np.searchsorted(cuts, values, side="left")
    ordered = cuts.size + 1 if present.size else 0
    code[absent] = ordered
    return Cut(code.astype(np.uint16), ordered + bool(absent.any()), ordered, cuts)


@dataclass(frozen=True, eq=False)
class Lattice:
    """All rows; every condition; every two on two columns: of min_rows to n − min_rows rows.

    Segments of one column, or pair of columns, are a block: rectangles [a, b) × [c, d) of its table
    of cells. A block has its place in the tables of all cells.

    Attributes
    ----------
    alone, paired : ndarray of shape (n, d), uint16
        The cells of every row, numbered through all columns.
    blocks : ndarray of shape (blocks, 6)
        First cell and number of cells of the first and of the second column (0 and 0 if there is
        none), and the range of its segments.
    corners : ndarray of shape (S, 4)
        The cells of the segments within their blocks; segment 0, all rows, is in none.
    price : ndarray of shape (S,)
        In nats: ln(columns × cells of its own), ln(pairs × cells × cells), 0 of all rows.
    """

    columns: tuple[Column, ...]
    alone: NDArray[np.uint16]
    paired: NDArray[np.uint16]
    blocks: IntArray
    corners: IntArray
    price: FloatArray
    members: tuple[tuple[int, ...], ...]

    @classmethod
    def of(cls, columns: Sequence[Column], n: int, min_rows: int, depth: int) -> Lattice:
        """Lay out all segments, count their rows, and keep those of enough."""
        from caltest.segments.scan import sums

        cuts = _cuts(columns)
        first = [np.cumsum([0, *(cut.size for cut in of)]) for of in cuts]
        if max(int(f[-1]) for f in first) > MOST_CELLS:
            raise StatisticError("features have too many cells: search in groups of 5000 columns")
        alone, paired = (
            np.stack([cut.code + np.uint16(start) for cut, start in zip(of, f, strict=False)], 1)
            for of, f in zip(cuts, first, strict=True)
        )
        members: list[tuple[int, ...]] = [(j,) for j in range(len(columns))]
        if depth > 1:
            members += [(j, k) for j, k in combinations(range(len(columns)), 2)]
        conditions = [[cut.conditions() for cut in of] for of in cuts]
        blocks, corners, end = [], [np.zeros((1, 4), dtype=np.int64)], 1
        for member in members:
            of = len(member) - 1
            ranges = [conditions[of][j] for j in member]
            a, b = ranges if of else (*ranges, np.array([[0, 1]]))
            corners.append(np.hstack([np.repeat(a, len(b), 0), np.tile(b, (len(a), 1))]))
            places = [(int(first[of][j]), cuts[of][j].size) for j in member]
            begin, end = end, end + len(corners[-1])
            blocks.append((*places[0], *(places[1] if of else (0, 0)), begin, end))
        whole = cls(
            columns=tuple(columns),
            alone=alone,
            paired=paired if depth > 1 else np.empty((n, 0), dtype=np.uint16),
            blocks=np.array(blocks),
            corners=np.vstack(corners),
            price=np.zeros(end),
            members=tuple(members),
        )
        return whole._of_enough(sums(whole, np.ones((n, 1)))[:, 0], n, min_rows)

    def _of_enough(self, rows: FloatArray, n: int, min_rows: int) -> Lattice:
        """Keep segments of enough rows, and price them."""
        enough = (rows >= min_rows) & (rows <= n - min_rows)
        enough[0] = True
        before = np.concatenate([[0], np.cumsum(enough)])
        blocks = self.blocks.copy()
        blocks[:, 4:] = before[blocks[:, 4:]]
        used = blocks[:, 5] > blocks[:, 4]
        blocks = blocks[used]
        pairs = blocks[:, 3] > 0
        cells = blocks[:, 1] * np.maximum(blocks[:, 3], 1)
        log_cells = np.log(cells * np.where(pairs, pairs.sum(), (~pairs).sum()))
        price = np.concatenate([[0.0], np.repeat(log_cells, blocks[:, 5] - blocks[:, 4])])
        members = tuple(m for m, is_used in zip(self.members, used, strict=True) if is_used)
        return replace(
            self, blocks=blocks, corners=self.corners[enough], price=price, members=members
        )

    @property
    def size(self) -> int:
        """The number of segments."""
        return self.price.size

    @property
    def cells(self) -> tuple[int, int]:
        """The numbers of cells of all columns, alone and in pairs."""
        alone, paired = (sum(cut.size for cut in cuts) for cuts in _cuts(self.columns))
        return alone, paired if self.paired.shape[1] else 0

    @property
    def widest(self) -> int:
        """The largest number of cells of a column."""
        return max(max(c.alone.size, c.paired.size) for c in self.columns)

    def take(self, rows: IntArray | BoolArray) -> Lattice:
        """Return the same segments of some of the rows."""
        return replace(self, alone=self.alone[rows], paired=self.paired[rows])

    def _ranges(self, segment: int) -> list[tuple[int, int, int, int]]:
        """Return the columns of a segment: number, first cell of all, and the range within."""
        if segment == 0:
            return []
        place = int(np.searchsorted(self.blocks[:, 4], segment, side="right")) - 1
        starts, corners = self.blocks[place, [0, 2]], self.corners[segment].reshape(2, 2)
        parts = zip(self.members[place], starts, corners, strict=False)
        return [(j, int(start), int(a), int(b)) for j, start, (a, b) in parts]

    def rows(self, segment: int) -> BoolArray:
        """Return which rows are in a segment."""
        within, ranges = np.ones(len(self.alone), dtype=bool), self._ranges(segment)
        codes = self.alone if len(ranges) == 1 else self.paired
        for j, start, a, b in ranges:
            within &= (codes[:, j] >= start + a) & (codes[:, j] < start + b)
        return within

    def conditions(self, segment: int) -> tuple[Condition, ...]:
        """Return the conditions of a segment; none of all rows."""
        ranges = self._ranges(segment)
        cuts = _cuts(self.columns)[len(ranges) - 1]
        return tuple(self.columns[j].condition(cuts[j], a, b) for j, _, a, b in ranges)


def _cuts(columns: Sequence[Column]) -> tuple[list[Cut], list[Cut]]:
    """Return the cells of all columns, alone and in pairs."""
    return [c.alone for c in columns], [c.paired for c in columns]
