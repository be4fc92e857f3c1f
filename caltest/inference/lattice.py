"""The lattice of segments: cells of columns, conditions, and scan statistics over all segments.

:class:`Lattice` lays out the segments, :class:`Scan` has their sums, :class:`Redraws` and
:class:`Law` the null distribution of the largest evidence.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import combinations
from math import prod
from typing import NamedTuple, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from caltest._base.arrays import RNG, AnyArray, BoolArray, FloatArray, IntArray, progress
from caltest._base.features import MOST_LEVELS, Condition, Feature, condition_in_words
from caltest.data import Predictions
from caltest.data.facts import FEWEST_DEPENDENT
from caltest.errors import StatisticError
from caltest.inference.dependence import Coupled, agreeing_schemes
from caltest.inference.null import enumerated_null, n_label_vectors
from caltest.nulls import Batches, LabelScheme, RedrawLabels, Run, simulate_by
from caltest.nulls.draws import Shortcut
from caltest.nulls.lanes import Seed, SharedLanes, inlined, kernel, lane_kernel
from caltest.nulls.laws import ExactNull
from caltest.results import ClusterSummary, ending

#: Parts into which numbers are cut, alone and in pairs.
ALONE, PAIRED = 8, 4


#: The part of every row along a column, how many parts there are, and ranges of them.
Axis = tuple[IntArray, int, IntArray]


#: Joint cells of columns that are counted together: √n / 1.5, and few enough for a byte; fewer with
#: lanes of counts, whose table of two groups stays in the second cache.
JOINT, MOST_JOINT, MOST_IN_LANES = 1.5, 255, 32


class Cut(NamedTuple):
    """Grouping of the cells of a feature into the parts that conditions select.

    ``of`` is the part of each cell. Parts below ``ordered`` are ranges of numbers, separated by the
    increasing ``points``; the others are single levels, or missing values.
    """

    of: IntArray
    ordered: int
    points: FloatArray

    @property
    def size(self) -> int:
        """Number of parts into which the feature is cut."""
        return int(self.of.max()) + 1

    def ranges(self) -> IntArray:
        """Return the m ranges of parts that make conditions, pairs [a, b) of part numbers.

        The shape is (m, 2).

        They are runs of ordered parts, and single others (levels, missing values), but never all
        parts.
        """
        a, b = np.triu_indices(self.ordered + 1, 1)
        others = np.arange(self.ordered, self.size)
        ranges = np.stack([np.append(a, others), np.append(b, others + 1)], 1)
        return ranges[ranges[:, 1] - ranges[:, 0] < self.size]


@dataclass(frozen=True, eq=False)
class CutFeature:
    """Feature of the rows cut into cells, which are grouped into parts that conditions select.

    ``feature`` is a column of numbers, dates or text. ``code`` (n,) is the cell of every row, and
    ``levels`` are the names of the cells of a feature of text. ``alone`` groups cells for single
    conditions and ``paired``, more coarsely, for pairs of columns.
    """

    feature: Feature
    code: NDArray[np.uint8]
    alone: Cut
    paired: Cut
    levels: tuple[str, ...] = ()

    @classmethod
    def of(cls, feature: Feature, min_rows: int) -> CutFeature:
        """Cut a feature into at most eight cells, and into four for pairs of features.

        Numbers are cut at the quantiles v_k = s[⌈k m / Q⌉ − 1], k < Q, of the m sorted values s, or
        between all distinct values if there are few; Q is the number of cells. Levels of at least
        ``min_rows`` rows are cells of their own, ordered by frequency, as many as are allowed. All
        other levels are one cell, and so are missing values, the last. ``feature`` is a column of
        numbers or of text. The result has the cell of every row, and the groupings of cells for one
        condition and for two.
        """
        absent, values = feature.missing, feature.values[~feature.missing]
        if feature.levels is None:
            fine, coarse = (_cut_points(np.sort(values), parts) for parts in (ALONE, PAIRED))
            ends = np.append(fine, np.inf) if values.size else fine
            code = np.where(absent, ends.size, np.searchsorted(fine, feature.values))
            cuts = []
            for points in (fine, coarse):  # the points of pairs are a subset
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
        """Return the condition that selects parts [a, b) of this feature, such as "age > 71".

        It is a tuple (column, kind, low, high, level). ``kind`` is "number" or "date", with limits
        low < x ≤ high (None if open), "level" with its name, "missing", or "other" with a tuple of
        all named levels. ``cut`` is one of the groupings ``alone`` and ``paired``.
        """
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

    def phrase(self, cut: Cut, a: int, b: int) -> str:
        """Return the condition that selects parts [a, b) of this feature as text, "age > 71".

        A range that holds a single number is written "= number". ``cut`` is one of the groupings
        ``alone`` and ``paired``.
        """
        condition, part = self.condition(cut, a, b), cut.of[self.code]
        values = np.unique(self.feature.values[(a <= part) & (part < b)])
        if condition[1] == "number" and values.size == 1:
            number = np.format_float_positional(values[0], trim="-")
            condition = self.feature.name, "level", None, None, number
        return condition_in_words(condition)

    def _threshold(self, at: float) -> float | str:
        """Return the shortest decimal (or date) between a cut point and the next larger value.

        ``at`` is the cut point, a value of this feature; dates are returned as text. The result is
        at least ``at`` and less than the next value.
        """
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
    """Return cut points (m,) that divide sorted values into ``parts`` parts of equal numbers.

    They increase. They are observed ``values`` below the largest, each the end of a part; at most
    ``parts`` distinct values are cut between all of them.
    """
    distinct = np.unique(values)
    if distinct.size <= parts:
        return distinct[:-1]
    points = np.unique(values[-(-np.arange(1, parts) * values.size // parts) - 1])
    return points[points < distinct[-1]]


@dataclass(frozen=True, eq=False)
class Lattice:
    """All rows, all conditions, and all pairs of conditions on two columns, as S segments.

    A segment has ``min_rows`` to n − ``min_rows`` rows, besides segment 0, which is all rows.

    Attributes
    ----------
    columns : tuple of CutFeature
        The features, each cut into cells and parts.
    members : list of tuple
        Indices of the columns of every segment, () for segment 0.
    price : ndarray of shape (S,)
        Penalty in nats: ln(columns × cells of its own), ln(pairs × cells × cells), 0 for all rows;
        columns and pairs count that have a segment.
    corners : ndarray of shape (S, 4)
        Ranges [a, b) and [c, d) of parts of both columns; a missing column is replaced by one with
        a single part.
    counted, in_lanes : tuple of ndarray
        Grouped rows for sums and for counts of many replicates, as :func:`_grouped` returns them.
    """

    columns: tuple[CutFeature, ...]
    members: list[tuple[int, ...]]
    price: FloatArray
    corners: IntArray
    counted: tuple[AnyArray, ...]
    in_lanes: tuple[AnyArray, ...]

    @classmethod
    def of(cls, columns: Sequence[CutFeature], n: int, min_rows: int, depth: int) -> Lattice:
        """Lay out all segments, count their rows, and keep segments of ``min_rows`` rows; O(n d²).

        ``columns`` are d features, each cut into cells of ``n`` rows; ``depth`` is 1 for single
        conditions and 2 for pairs as well. As many rows as in a segment, ``min_rows``, have to be
        outside.
        """
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
        counts = [(member, len(corners)) for member, _, corners in laid]
        most = min(np.sqrt(n) / JOINT, MOST_JOINT)
        alike = np.bincount([len(member) for member, *_ in laid], minlength=3)
        return cls(
            tuple(columns),
            [(), *(member for member, _, corners in laid for _ in corners)],
            np.array(
                [0.0, *(np.log(alike[len(m)] * k) for m, k, corners in laid for _ in corners)]
            ),
            np.vstack([np.zeros((1, 4), dtype=np.int64), *(corners for *_, corners in laid)]),
            _grouped(columns, counts, most),
            _grouped(columns, counts, min(most, MOST_IN_LANES)),
        )

    @property
    def size(self) -> int:
        """Number of segments of this lattice, all rows included."""
        return self.price.size

    def _parts(self, segment: int) -> list[tuple[CutFeature, Cut, int, int]]:
        """Return (column, cut, a, b) for each column of a segment: it selects parts a ≤ part < b.

        ``segment`` is its index. A column is a feature cut into cells, and the cut the grouping of
        its cells into parts. [] for segment 0, all rows.
        """
        members, ends = self.members[segment], self.corners[segment].tolist()
        columns = [self.columns[j] for j in members]
        cuts = [c.paired if len(members) > 1 else c.alone for c in columns]
        return list(zip(columns, cuts, ends[::2], ends[1::2], strict=False))

    def rows(self, segment: int) -> BoolArray:
        """Return which rows are in the ``segment`` with this index, booleans (n,)."""
        within = np.ones(self.columns[0].code.size, dtype=bool)
        for column, cut, a, b in self._parts(segment):
            within &= ((cut.of >= a) & (cut.of < b))[column.code]
        return within

    def conditions(self, segment: int) -> tuple[Condition, ...]:
        """Return the conditions that define the ``segment`` with this index.

        It is () for all rows (index 0). A condition is (column, kind, low, high, level), see
        :meth:`CutFeature.condition`.
        """
        return tuple(column.condition(cut, a, b) for column, cut, a, b in self._parts(segment))

    def name(self, segment: int) -> str:
        """Return the conditions of the ``segment`` with this index as text: "age > 71 and sex = f".

        It is "all rows" for index 0.
        """
        words = [column.phrase(cut, a, b) for column, cut, a, b in self._parts(segment)]
        return " and ".join(words) or "all rows"

    def sums(self, values: FloatArray) -> FloatArray:
        """Return the sums of m vectors of row ``values`` (m, n) over all S segments.

        The shape is (m, S).
        """
        out = np.empty((len(values), self.size))
        _corner_sums(np.ascontiguousarray(values), self.corners, *self.counted, out)
        return out

    def counts(self, block: AnyArray) -> FloatArray:
        """Return the numbers of events in all S segments for B label vectors, floats (B, S).

        ``block`` (n, B) has 1 for an event and 0 for none, a column for each label vector.
        """
        out = np.empty((self.size, block.shape[1]), dtype=np.int32)
        _corner_counts(block, self.corners, *self.in_lanes, out)
        return np.ascontiguousarray(out.T, dtype=np.float64)


def _grouped(
    columns: Sequence[CutFeature], laid: Sequence[tuple[tuple[int, ...], int]], most: float
) -> tuple[AnyArray, ...]:
    """Return the tables from which the sums over the parts of all pairs of columns are computed.

    ``columns`` are d features, each cut into cells. They are combined into g groups of at most
    ``most`` joint cells, but for a column that has more alone, and rows are counted for two groups
    at a time: g²/2 counts for each row in place of d²/2. ``laid`` has, for every column or pair
    with segments, the indices of its columns and the number of its segments.

    The five arrays are: joint cells (g, n); their number for every group (g,); for every column or
    pair of ``laid``, sorted by group, (m, 6): its two groups, a map for each and the range of its
    segments; maps from joint cells to parts (2d + 1, cells), of single columns, of pairs, and of
    none; and the numbers of parts (2d + 1,).
    """
    d = len(columns)
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
def _corner_sums(values, corners, codes, sizes, blocks, maps, parts, out):  # type: ignore[no-untyped-def]
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
                _parts_by_cells(table, maps[one], parts[one], sizes[g], sizes[h], lines)
            size = parts[one], parts[other]
            _rectangles(
                lines, maps[other], size, sizes[h], corners[start:end], upto, out[r, start:end]
            )


@lane_kernel
def _corner_counts(block, corners, codes, sizes, blocks, maps, parts, out):  # type: ignore[no-untyped-def]
    # O(n g²/2 + S) for all lanes of vector instructions, as _corner_sums in integers.
    n, lanes = block.shape
    most, broad = sizes.max(), parts.max()
    table = np.empty((most, most, lanes), np.int32)
    lines = np.empty((broad, most, lanes), np.int32)
    upto = np.zeros((broad + 1, broad + 1, lanes), np.int32)
    out[0] = 0
    for i in range(n):
        row = block[i]
        for q in range(lanes):
            out[0, q] += row[q]
    of, line = (-1, -1), -1
    for g, h, one, other, start, end in blocks:
        if (g, h) != of:
            of, line = (g, h), -1
            table[: sizes[g], : sizes[h]] = 0
            for i in range(n):
                row, cell = block[i], table[codes[g, i], codes[h, i]]
                for q in range(lanes):
                    cell[q] += row[q]
        if one != line:
            line = one
            _parts_by_cells(table, maps[one], parts[one], sizes[g], sizes[h], lines)
        size = parts[one], parts[other]
        _rectangles(lines, maps[other], size, sizes[h], corners[start:end], upto, out[start:end])


@inlined
def _parts_by_cells(table, part_of, n_parts, height, width, lines):  # type: ignore[no-untyped-def]
    # Sums of a table over the parts of its first group of columns, of numbers or of lanes.
    lines[:n_parts, :width] = 0
    for x in range(height):
        for y in range(width):
            lines[part_of[x], y] += table[x, y]


@inlined
def _rectangles(lines, part_of, size, width, corners, upto, out):  # type: ignore[no-untyped-def]
    # Sums up to every corner of the parts of both groups, whose differences are the segments.
    a, b = size
    upto[1 : a + 1, 1 : b + 1] = 0
    for y in range(width):
        for x in range(a):
            upto[x + 1, part_of[y] + 1] += lines[x, y]
    for x in range(a):
        for y in range(b):
            upto[x + 1, y + 1] += upto[x, y + 1] + upto[x + 1, y] - upto[x, y]
    for s in range(len(corners)):
        x, z, y, u = corners[s]
        out[s] = upto[z, u] - upto[x, u] - upto[z, y] + upto[x, y]


# ------------------------------------------------------------------------------
# One more column, that a learner makes of all others on half of the rows.


#: Predictions nearer to 0 and 1 than this have the log-odds of this.
NEAREST = 1e-9


@runtime_checkable
class Learner(Protocol):
    """Protocol of a regressor that learns residuals: ``fit`` and ``predict`` as in scikit-learn."""

    def fit(self, X: FloatArray, y: FloatArray) -> object:
        """Learn residuals ``y`` (n,), outcome less prediction, from the columns ``X`` (n, d)."""

    def predict(self, X: FloatArray) -> FloatArray:
        """Return predicted residuals, floats (n,), for columns ``X`` (n, d).

        A residual is outcome less prediction.
        """


def taught(
    learner: Learner, data: Predictions, columns: list[Feature], rng: RNG
) -> tuple[Predictions, list[Feature], str]:
    """Train a learner on half of the rows; return (other half, columns, note).

    The ``learner`` predicts residuals y − p from the ``columns``, the features of ``data``, and its
    prediction is added as one more feature to the columns of the other half. Halves consist of
    whole clusters, chosen by ``rng``. Levels are coded as numbers, missing cells become the median
    of their column. The note is a sentence on the split.

    Raises
    ------
    StatisticError
        When the learner has no ``fit`` and ``predict``, or predicts no finite number a row.
    """
    if isinstance(learner, type) or not isinstance(learner, Learner):
        raise StatisticError(f"learner must have fit(X, r) and predict(X), not {learner!r}")
    name = type(learner).__name__
    cluster = np.arange(data.n) if data.clusters is None else data.clusters
    names = np.unique(cluster)
    teaching = np.isin(cluster, np.random.default_rng(rng).permutation(names)[: names.size // 2])
    p = np.clip(data.probs[:, 0], NEAREST, 1.0 - NEAREST)
    table = np.column_stack([*(c.values for c in columns), np.log(p / (1.0 - p))])
    table = table[:, ~np.isnan(table[teaching]).all(axis=0)]
    table = np.where(np.isnan(table), np.nanmedian(table[teaching], axis=0), table)
    residuals = (data.labels == 0) - data.probs[:, 0]
    try:
        learner.fit(table[teaching], residuals[teaching])
        predicted = np.asarray(learner.predict(table[~teaching]), dtype=np.float64)
    except Exception as error:
        raise StatisticError(f"learner: {name} failed: {error}") from error
    if predicted.shape != (int((~teaching).sum()),) or not np.isfinite(predicted).all():
        raise StatisticError(
            f"learner: {name} must predict one finite number for each of "
            f"{(~teaching).sum()} rows, not an array of shape {predicted.shape}"
        )
    note = (
        f"{name} was taught by {teaching.sum()} of {data.n} rows, the others are "
        "searched: p depends on this split"
    )
    halves = [replace(c, values=c.values[~teaching]) for c in columns]
    return data.take(~teaching), [*halves, Feature("learner", predicted)], note


# ------------------------------------------------------------------------------
# What labels show in all segments at once: gains, and the largest of redraws.


#: Shifts of the log-odds that are tried, a factor of √2 apart: where the gain is best for shifts of
#: 1/300 to 5 it costs at most 3 %.
LATTICE_SIZES = 2.0 ** (np.arange(-16, 5) / 2)


LATTICE_SHIFTS = np.concatenate([-LATTICE_SIZES[::-1], LATTICE_SIZES])


#: A gain on these shifts is at most so many times z² / 2: reached by many events of next to no
#: chance and half as many next to certain, none of which occurs (with rows' gains of at most 4).
OF_NORMAL = 8.0 / 3.0


#: Evidence that differs by less, in nats, is equal.
TIES = 1e-9


#: Sums that are held at a time; variances below which, beside that of all rows, there is none.
LATTICE_SUMS, RELATIVE_VARIANCE = 2**20, 1e-14


def log_moment(p: FloatArray, shift: FloatArray | float) -> FloatArray:
    """Return ln(1 − p + p eᵗ), the log moment generating function of a label, in the shape of p.

    ``p`` are probabilities of label 1, and ``shift`` is t, a shift of their log-odds.
    """
    return np.log1p(p * np.expm1(shift))


def tilted(p: FloatArray, shift: FloatArray | float) -> FloatArray:
    """Return the probabilities ``p`` with log-odds shifted by t, σ(logit p + t), in the shape of p.

    ``shift`` is t, and σ the logistic function. 0 and 1 stay as they are.
    """
    e = np.exp(shift)
    return p * e / (1.0 - p + p * e)


@dataclass(frozen=True, eq=False)
class Scan:
    """All S segments of a lattice with the expectations of their sums under calibration.

    Attributes
    ----------
    lattice : Lattice
        The segments: rows that satisfy one condition on a feature, or two.
    p, w : ndarray of shape (n,)
        The probability of the event, and the weight of every row.
    weight, expected, variance : ndarray of shape (S,)
        Σ w, Σ w p and Σ w p (1 − p).
    dispersion : ndarray of shape (S,)
        φ, by which gains are divided: Σ w² v / Σ w v, v = p (1 − p), 1 without weights; with
        clusters at least the mean square of Σ w (y − p) over pilot draws of labels, over Σ w v.
    moments : ndarray of shape (S, 42)
        Σ w ln(1 − p + p eᵗ), for each of 42 shifts t of the log-odds.
    """

    lattice: Lattice
    p: FloatArray
    w: FloatArray
    weight: FloatArray
    expected: FloatArray
    variance: FloatArray
    dispersion: FloatArray
    moments: FloatArray

    @classmethod
    def of(
        cls, lattice: Lattice, p: FloatArray, w: FloatArray, pilots: Iterable[FloatArray] = ()
    ) -> Scan:
        """Compute the sums of all S segments of a lattice; O(42 n d²) for d columns.

        ``lattice`` lays out the segments; ``p`` and ``w`` (n,) are event probabilities and weights
        of the rows. ``pilots`` yields arrays (S,), mean squares of Σ w (y − p) over draws of labels
        for clustered data, from which the dispersion is estimated; segments without variance have
        dispersion 1.
        """
        v = w * p * (1.0 - p)
        weight, expected, variance, squared = lattice.sums(np.stack([w, w * p, v, w * v]))
        for spread in pilots:
            squared = np.maximum(squared, spread)
        some = variance > RELATIVE_VARIANCE * variance[0]
        dispersion = np.divide(squared, variance, out=np.ones_like(variance), where=some)
        moments = np.empty((lattice.size, LATTICE_SHIFTS.size))
        with progress(LATTICE_SHIFTS.size, "shifts") as advance:
            for k, shift in enumerate(LATTICE_SHIFTS):
                moments[:, k] = lattice.sums((w * log_moment(p, shift))[None])[0]
                advance(1)
        return cls(lattice, p, w, weight, expected, variance, dispersion, moments)

    def evidence(self, y: FloatArray | BoolArray) -> FloatArray:
        """Return the evidence of miscalibration in all S segments, (S,), for events ``y`` (n,).

        It is the largest log-likelihood gain max_t [t O − K(t)] from shifting the log-odds by t,
        divided by the dispersion φ, minus the segment's penalty for the search, in nats. O is Σ w y
        and K(t) is Σ w ln(1 − p + p eᵗ) over the segment.
        """
        (events,), gains = self.lattice.sums((self.w * y)[None]), np.zeros(self.lattice.size)
        for k, shift in enumerate(LATTICE_SHIFTS):
            np.maximum(gains, shift * events - self.moments[:, k], out=gains)
        return gains / self.dispersion - self.lattice.price

    def highest(self, labels: IntArray, inflation: float = 1.0) -> FloatArray:
        """Return the largest evidence over all segments for each of B label vectors (B, n).

        The shape is (B,).

        ``labels`` (B, n) hold 0 for the event. Evidence is a log-likelihood gain in nats less the
        segment's penalty; gains are multiplied by ``inflation``, for clusters, before the penalty
        is subtracted. O(n + min(events, others) d²/8 + S) a vector.
        """
        rare = int(self.expected[0] > 0.5 * self.weight[0])
        out = np.empty(len(labels))
        step = max(1, LATTICE_SUMS // self.lattice.size)
        for rows in (slice(start, start + step) for start in range(0, len(labels), step)):
            events = self.lattice.sums((labels[rows] == rare) * self.w)
            out[rows] = self.largest_of(self.weight - events if rare else events, inflation)
        return out

    def largest_of(self, events: FloatArray, inflation: float = 1.0) -> FloatArray:
        """Return the largest evidence (B,) for weighted numbers of events (B, S) of all segments.

        ``events`` are these numbers, for B label vectors and S segments. Evidence is a
        log-likelihood gain in nats less the segment's penalty; ``inflation`` multiplies gains, as
        in :meth:`highest`.
        """
        floor, out = max(RELATIVE_VARIANCE * self.variance[0], 1e-300), np.empty(len(events))
        _largest(
            events, self.expected, np.maximum(self.variance, floor), self.moments, LATTICE_SHIFTS,
            inflation / self.dispersion, self.lattice.price, out,
        )  # fmt: skip
        return out


@kernel
def _largest(events, expected, variance, moments, shifts, scale, price, out):  # type: ignore[no-untyped-def]
    # A segment whose gain could not be the largest so far is passed over. For others shifts are
    # tried outwards from 0, on the side on which gains are positive, until they fall: gains are
    # concave.
    half = shifts.size // 2
    for r in range(len(events)):
        best = -np.inf
        for s in range(price.size):
            excess = events[r, s] - expected[s]
            normal = 0.5 * excess * excess / variance[s] * scale[s]
            if OF_NORMAL * normal - price[s] <= best:
                continue
            step, gain = (1, 0.0) if excess > 0.0 else (-1, 0.0)
            place = half if step > 0 else half - 1
            while 0 <= place < shifts.size:
                other = shifts[place] * events[r, s] - moments[s, place]
                if other <= gain:
                    break
                gain = other
                place += step
            best = max(best, gain * scale[s] - price[s])
        out[r] = best


# ------------------------------------------------------------------------------
# How labels are redrawn, and the law of the largest evidence of a calibrated model.


#: Label vectors from which the variance of sums of clusters is taken, and their seed.
PILOTS, LATTICE_SEED = 64, (0x5EED, 0x5E6)


@dataclass(frozen=True, eq=False)
class LabelSchemes:
    """Redraw schemes of the labels for a search; the largest p-value over the schemes counts.

    ``data`` are the predictions whose labels are redrawn. ``schemes`` are pairs of a scheme and the
    factor by which its draws lack variance; ``summary`` describes the clusters, None for
    independent rows.
    """

    data: Predictions
    schemes: tuple[Coupled, ...]
    summary: ClusterSummary | None = None

    @classmethod
    def of(cls, data: Predictions) -> LabelSchemes:
        """Return how labels of these rows are redrawn: independently, or dependent within clusters.

        The result has the redraw schemes, and a summary of the clusters. StatisticError for fewer
        clusters than it takes to estimate the dependence.
        """
        if data.n_clusters is None:
            return cls(data, (Coupled(RedrawLabels()),))
        if data.n_clusters < FEWEST_DEPENDENT:
            raise StatisticError(
                f"too few clusters ({data.n_clusters}) to tell how much their rows depend on each "
                f"other: a search takes at least {FEWEST_DEPENDENT}"
            )
        schemes, summary = agreeing_schemes("auto", data, stack=5)
        return cls(data, schemes, summary if isinstance(summary, ClusterSummary) else None)

    def scan(self, lattice: Lattice) -> Scan:
        """Return all segments of a lattice with the expectations of their sums under calibration.

        ``lattice`` lays out the segments. With clusters, redrawn labels estimate how much more the
        sums of segments vary.
        """
        data, p = self.data, np.ascontiguousarray(self.data.probs[:, 0])
        w = np.ones(data.n) if data.weights is None else data.weights

        def pilots() -> Iterator[FloatArray]:
            for each in self.schemes if data.n_clusters else ():
                assert isinstance(each.scheme, LabelScheme)
                drawer, spread = each.scheme.drawer(data), np.zeros(lattice.size)
                for first in range(PILOTS):
                    residuals = w * ((drawer(LATTICE_SEED, first, 1)[0] == 0) - p)
                    spread += lattice.sums(residuals[None])[0] ** 2
                yield spread / PILOTS

        return Scan.of(lattice, p, w, pilots())

    def evidence_law(self, scan: Scan, observed: float, run: Run, early_stop: bool) -> EvidenceLaw:
        """Return the null distribution of the largest evidence over the segments of ``scan``.

        Evidence is a penalised log-likelihood gain. The law is exact if there are at most
        n_resamples label vectors, else simulated. With ``early_stop`` the simulation ends once
        ``observed``, the largest evidence in the data, is clearly not significant. ``run`` holds
        n_resamples, rng and workers.
        """
        if self.data.n_clusters is None and n_label_vectors(self.data.probs) <= run["n_resamples"]:
            law = enumerated_null(lambda y: float(scan.highest(y[None])[0]), self.data.probs)
            return EvidenceLaw((law,), "exact", 0, "complete")
        laws, ends = [], []
        stop = (lambda values: values >= observed - TIES) if early_stop else None
        for scheme, inflation in self.schemes:
            assert isinstance(scheme, LabelScheme)
            drawer = scheme.drawer(self.data)
            draws: Shortcut
            if self.data.weights is None and isinstance(drawer, SharedLanes):
                draws = EvidenceOfLanes(drawer, scan, inflation)
            else:
                largest = partial(scan.highest, inflation=inflation)
                draws = Batches.of(scheme, self.data, largest, drawer)
            values, end = simulate_by(draws, **run, stop_when=stop)
            # p = 20 / drawn (Besag & Clifford 1991) equals the p of 19 in one draw less.
            laws.append(values[:-1] if end == "early" else values)
            ends.append(end)
        ended = "early" if ends == ["early"] * len(ends) else ending(*ends)
        name = "SharedRedraws()" if self.data.n_clusters else "RedrawLabels()"
        return EvidenceLaw(tuple(laws), name, min(map(len, laws)), ended)


@dataclass(frozen=True, eq=False)
class EvidenceOfLanes:
    """Resampler of the largest evidence over all segments, for rows without weights.

    Evidence is a segment's log-likelihood gain in nats, less a penalty for the search. ``lanes``
    draws labels of many replicates side by side, and ``scan`` computes the evidence of all segments
    from them, multiplying gains by ``inflation``. Values are as from :meth:`Scan.highest`, bit for
    bit.
    """

    lanes: SharedLanes
    scan: Scan
    inflation: float

    def replicates(self, seed: Seed, first: int, count: int) -> FloatArray:
        """Return the largest evidence of replicates ``first``, …, ``first + count − 1``.

        The shape is (count,).

        Evidence is a segment's log-likelihood gain in nats, less a penalty. ``seed`` is the pair of
        integers that keys the random stream.
        """

        def highest(block: AnyArray) -> FloatArray:
            return self.scan.largest_of(self.scan.lattice.counts(block), self.inflation)

        at_once = max(1, LATTICE_SUMS // self.scan.lattice.size)
        return self.lanes.gathered(highest, seed, first, count, at_once)


@dataclass(frozen=True, eq=False)
class EvidenceLaw:
    """Null distribution of the largest evidence over all segments.

    Evidence is a segment's log-likelihood gain in nats, less a penalty for the search. ``laws`` has
    one law for each redraw scheme, exact or as an array of draws (B,). ``name`` is the null
    distribution as results name it, and ``n_draws`` the smallest number of draws, 0 if exact;
    ``ended`` is "complete", "early" or "interrupted".
    """

    laws: tuple[ExactNull | FloatArray, ...]
    name: str
    n_draws: int
    ended: str

    def pvalue(self, evidence: float) -> float:
        """Return the p-value of a segment's ``evidence``.

        Evidence is a log-likelihood gain in nats, less a penalty for the search. The p-value is the
        probability that the largest evidence of a calibrated model reaches it.

        For B redraws of which b reach it, the p-value is (1 + b) / (1 + B); the largest over the
        redraw schemes counts.
        """
        return max(
            law.sf(evidence - TIES)
            if isinstance(law, ExactNull)
            else (1 + int((law >= evidence - TIES).sum())) / (1 + law.size)
            for law in self.laws
        )

    def bar(self, alpha: float) -> float:
        """Return the critical value: evidence above it has a p-value of at most ``alpha``.

        Evidence is a log-likelihood gain in nats, less a penalty for the search. The value is
        infinite if there are too few draws for ``alpha``.
        """
        bars = []
        for law in self.laws:
            if isinstance(law, ExactNull):
                bars.append(law.ppf(1.0 - alpha))
            else:
                place = int(alpha * (law.size + 1) + 1e-9)
                bars.append(float(np.sort(law)[-place]) if place else np.inf)
        return max(bars) + TIES
