"""Cells of columns, conditions on them, and the lattice of segments; no label is looked at."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from math import prod
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from caltest._base.arrays import AnyArray, BoolArray, FloatArray, IntArray
from caltest._base.compiled import kernel
from caltest._base.features import MOST_LEVELS, Condition, Feature, words_of

#: Parts into which numbers are cut, alone and in pairs.
ALONE, PAIRED = 8, 4
#: The part of every row along a column, how many parts there are, and ranges of them.
Axis = tuple[IntArray, int, IntArray]
#: Joint cells of columns that are counted together: √n / 1.5, and few enough for a byte.
JOINT, MOST_JOINT = 1.5, 255


class Cut(NamedTuple):
    """Parts of a column: that of each of its cells, and cut points between the ordered ones."""

    of: IntArray
    ordered: int
    points: FloatArray

    @property
    def size(self) -> int:
        """The number of parts."""
        return int(self.of.max()) + 1

    def ranges(self) -> IntArray:
        """Return ranges [a, b) of parts: stretches of ordered ones and single others, not all."""
        a, b = np.triu_indices(self.ordered + 1, 1)
        others = np.arange(self.ordered, self.size)
        ranges = np.stack([np.append(a, others), np.append(b, others + 1)], 1)
        return ranges[ranges[:, 1] - ranges[:, 0] < self.size]


@dataclass(frozen=True, eq=False)
class Column:
    """A feature with the cell of every row, which are parts of it alone, and fewer in pairs."""

    feature: Feature
    code: NDArray[np.uint8]
    alone: Cut
    paired: Cut
    levels: tuple[str, ...] = ()

    @classmethod
    def of(cls, feature: Feature, min_rows: int) -> Column:
        """Cut numbers at v_k = s[⌈k m / Q⌉ − 1] of m sorted ones; levels by frequency, then name.

        At most Q different numbers, and levels of ``min_rows`` rows, are cells of their own; other
        levels are one cell, and so are missing values, the last.
        """
        absent, values = feature.missing, feature.values[~feature.missing]
        if feature.levels is None:
            fine, coarse = (_cut_points(np.sort(values), parts) for parts in (ALONE, PAIRED))
            ends = np.append(fine, np.inf) if values.size else fine
            code = np.where(absent, ends.size, np.searchsorted(fine, feature.values))
            cuts = []
            for points in (fine, coarse):  # those of pairs are among those alone
                parts = np.searchsorted(points, ends)
                ordered = points.size + (values.size > 0)
                last = [ordered] * bool(absent.any())
                cuts.append(Cut(np.array([*parts, *last]), ordered, points))
            return cls(feature, code.astype(np.uint8), cuts[0], cuts[1])
        count = np.bincount(values.astype(np.int64), minlength=len(feature.levels))
        frequent = sorted(np.flatnonzero(count >= min_rows), key=lambda j: -count[j])
        chosen = frequent[:MOST_LEVELS]  # levels are sorted by name, and sorting is stable
        place = np.full(count.size, len(chosen))
        place[chosen] = np.arange(len(chosen))
        code = np.full(absent.size, len(chosen) + (count.sum() > count[chosen].sum()))
        code[~absent] = place[values.astype(np.int64)]
        cut = Cut(np.arange(code.max() + 1), 0, np.empty(0))
        levels = tuple(feature.levels[j] for j in chosen)
        return cls(feature, code.astype(np.uint8), cut, cut, levels)

    def condition(self, cut: Cut, a: int, b: int) -> Condition:
        """Return what rows of parts [a, b) have in common."""
        name, last = self.feature.name, cut.size - 1
        if a < cut.ordered:
            low = self._threshold(cut.points[a - 1]) if a else None
            high = self._threshold(cut.points[b - 1]) if b < cut.ordered else None
            return name, "date" if self.feature.dates else "number", low, high, None
        if a < len(self.levels):
            return name, "level", None, None, self.levels[a]
        if a == last and self.feature.missing.any():
            return name, "missing", None, None, None
        return name, "other", None, None, self.levels

    def words(self, cut: Cut, a: int, b: int) -> str:
        """Return this condition as people write it, of one number that it is that number."""
        condition, part = self.condition(cut, a, b), cut.of[self.code]
        values = np.unique(self.feature.values[(a <= part) & (part < b)])
        if condition[1] == "number" and values.size == 1:
            number = np.format_float_positional(values[0], trim="-")
            condition = self.feature.name, "level", None, None, number
        return words_of(condition)

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


def _cut_points(values: FloatArray, parts: int) -> FloatArray:
    """Return where sorted values are cut: at quantiles, but below the largest."""
    distinct = np.unique(values)
    if distinct.size <= parts:
        return distinct[:-1]
    points = np.unique(values[-(-np.arange(1, parts) * values.size // parts) - 1])
    return points[points < distinct[-1]]


@dataclass(frozen=True, eq=False)
class Lattice:
    """All rows; every condition; every two on two columns: of min_rows to n − min_rows rows.

    Attributes
    ----------
    columns : tuple of Column
    members : list of tuple
        The columns of every segment, none of segment 0, which is all rows.
    price : ndarray of shape (S,)
        In nats: ln(columns × cells of its own), ln(pairs × cells × cells), 0 of all rows; columns
        and pairs count that have a segment.
    corners : ndarray of shape (S, 4)
        Ranges of parts of both columns; of one column, and of none, those of a column of one part.
    counted : tuple of ndarray
        How rows are counted, as :func:`_grouped` says.
    """

    columns: tuple[Column, ...]
    members: list[tuple[int, ...]]
    price: FloatArray
    corners: IntArray
    counted: tuple[AnyArray, ...]

    @classmethod
    def of(cls, columns: Sequence[Column], n: int, min_rows: int, depth: int) -> Lattice:
        """Lay out all segments, count their rows, and keep those of enough; O(n d²)."""
        alone = [(c.code.astype(np.int64), c.alone.size, c.alone.ranges()) for c in columns]
        paired = [(c.paired.of[c.code], c.paired.size, c.paired.ranges()) for c in columns]
        none = np.zeros(n, dtype=np.int64), 1, np.array([[0, 1]])
        pairs = combinations(range(len(columns)), 2) if depth > 1 else ()
        blocks = list[tuple[tuple[int, ...], Axis, Axis]]()
        blocks += [((j,), each, none) for j, each in enumerate(alone)]
        blocks += [((j, k), paired[j], paired[k]) for j, k in pairs]
        laid: list[tuple[tuple[int, ...], int, IntArray]] = []
        for member, (one, a, of_one), (other, b, of_other) in blocks:
            rows = np.bincount(one * b + other, minlength=a * b).reshape(a, b)
            upto = np.pad(rows.cumsum(0).cumsum(1), ((1, 0), (1, 0)))
            x, z = np.repeat(of_one, len(of_other), 0).T
            y, u = np.tile(of_other, (len(of_one), 1)).T
            within = upto[z, u] - upto[x, u] - upto[z, y] + upto[x, y]
            enough = (within >= min_rows) & (within <= n - min_rows)
            if enough.any():
                laid.append((member, a * b, np.stack([x, z, y, u], 1)[enough]))
        alike = np.bincount([len(member) for member, *_ in laid], minlength=3)
        return cls(
            tuple(columns),
            [(), *(member for member, _, corners in laid for _ in corners)],
            np.array(
                [0.0, *(np.log(alike[len(m)] * k) for m, k, corners in laid for _ in corners)]
            ),
            np.vstack([np.zeros((1, 4), dtype=np.int64), *(corners for *_, corners in laid)]),
            _grouped(columns, [(member, len(corners)) for member, _, corners in laid]),
        )

    @property
    def size(self) -> int:
        """The number of segments."""
        return self.price.size

    def _parts(self, segment: int) -> list[tuple[Column, Cut, int, int]]:
        """Return the columns of a segment, how they are cut, and the ranges of parts."""
        members, ends = self.members[segment], self.corners[segment].tolist()
        columns = [self.columns[j] for j in members]
        cuts = [c.paired if len(members) > 1 else c.alone for c in columns]
        return list(zip(columns, cuts, ends[::2], ends[1::2], strict=False))

    def rows(self, segment: int) -> BoolArray:
        """Return which rows are in a segment."""
        within = np.ones(self.columns[0].code.size, dtype=bool)
        for column, cut, a, b in self._parts(segment):
            within &= ((cut.of >= a) & (cut.of < b))[column.code]
        return within

    def conditions(self, segment: int) -> tuple[Condition, ...]:
        """Return the conditions of a segment; none of all rows."""
        return tuple(column.condition(cut, a, b) for column, cut, a, b in self._parts(segment))

    def name(self, segment: int) -> str:
        """Return its conditions in words."""
        words = [column.words(cut, a, b) for column, cut, a, b in self._parts(segment)]
        return " and ".join(words) or "all rows"

    def sums(self, values: FloatArray) -> FloatArray:
        """Return the sums of vectors (m, n) of the rows over all segments: (m, S)."""
        out = np.empty((len(values), self.size))
        _sums(np.ascontiguousarray(values), self.corners, *self.counted, out)
        return out


def _grouped(
    columns: Sequence[Column], laid: Sequence[tuple[tuple[int, ...], int]]
) -> tuple[AnyArray, ...]:
    """Return joint cells of groups of columns, in which rows are counted, two groups at a time.

    Tables of two columns are sums of these, so that d columns in g groups take g²/2 counts a row in
    place of d²/2. The arrays are joint cells (g, n) and how many of every group; for every column
    or two, their groups, a map of each and the range of their segments; maps from joint cells to
    parts, of columns alone, in pairs, and of none; and how many parts.
    """
    d, n = len(columns), columns[0].code.size
    most = min(np.sqrt(n) / JOINT, MOST_JOINT)
    groups: list[list[int]] = []
    for j, column in enumerate(columns):
        joint = prod(columns[k].alone.size for k in groups[-1]) if groups else np.inf
        if joint * column.alone.size > most:
            groups.append([])
        groups[-1].append(j)
    shapes = [tuple(columns[j].alone.size for j in group) for group in groups]
    sizes, group_of = (
        np.array([*map(prod, shapes)]),
        np.repeat(range(len(groups)), [*map(len, groups)]),
    )
    codes = [
        np.ravel_multi_index([columns[j].code for j in g], s)
        for g, s in zip(groups, shapes, strict=True)
    ]
    maps = np.zeros((2 * d + 1, sizes.max()), dtype=np.int64)
    cells = [cell.ravel() for shape in shapes for cell in np.indices(shape)]
    for j, cell in enumerate(cells):
        maps[j, : cell.size], maps[d + j, : cell.size] = cell, columns[j].paired.of[cell]
    blocks, end = [], 1
    for member, count in laid:
        first, last = member[0], member[-1]
        of = (d + first, d + last) if len(member) > 1 else (first, 2 * d)
        blocks.append((group_of[first], group_of[last], *of, end, end + count))
        end += count
    order = np.array(sorted(blocks), dtype=np.int64).reshape(-1, 6)
    parts = np.array([*(c.alone.size for c in columns), *(c.paired.size for c in columns), 1])
    return np.array(codes, dtype=np.uint8), sizes, order, maps, parts


@kernel
def _sums(values, corners, codes, sizes, blocks, maps, parts, out):  # type: ignore[no-untyped-def]
    # O(rows with a value × g²/2 + S) a vector. A table of two groups is small enough for the
    # nearest cache; sums of rectangles are differences of sums from its corner.
    picked, weight = np.empty_like(codes), np.empty(codes.shape[1])
    table = np.empty((sizes.max(), sizes.max()))
    lines = np.empty((parts.max(), sizes.max()))
    upto = np.zeros((parts.max() + 1, parts.max() + 1))
    for r in range(len(values)):
        count, whole = 0, 0.0
        for i in range(codes.shape[1]):
            if values[r, i] != 0.0:
                for g in range(len(codes)):
                    picked[g, count] = codes[g, i]
                weight[count] = values[r, i]
                whole += values[r, i]
                count += 1
        out[r, 0] = whole
        of, line = (-1, -1), -1
        for g, h, one, other, start, end in blocks:
            if (g, h) != of:
                of, line = (g, h), -1
                table[: sizes[g], : sizes[h]] = 0.0
                for i in range(count):
                    table[picked[g, i], picked[h, i]] += weight[i]
            if one != line:
                line = one
                lines[: parts[one], : sizes[h]] = 0.0
                for x in range(sizes[g]):
                    for y in range(sizes[h]):
                        lines[maps[one, x], y] += table[x, y]
            a, b = parts[one], parts[other]
            upto[1 : a + 1, 1 : b + 1] = 0.0
            for y in range(sizes[h]):
                for x in range(a):
                    upto[x + 1, maps[other, y] + 1] += lines[x, y]
            for x in range(a):
                for y in range(b):
                    upto[x + 1, y + 1] += upto[x, y + 1] + upto[x + 1, y] - upto[x, y]
            for s in range(start, end):
                x, z, y, u = corners[s]
                out[r, s] = upto[z, u] - upto[x, u] - upto[z, y] + upto[x, y]
