"""The problem of predictions: every unit is a row, its outcome a label or follow-up.

:class:`RowProblem` is for labels, :class:`FollowupProblem` for follow-up; start with
:func:`row_problem`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import TYPE_CHECKING, NoReturn, cast

import numpy as np
from numpy.typing import NDArray

from caltest._base import FloatArray, IntArray
from caltest._base.arrays import AnyArray, largest
from caltest.data import Predictions
from caltest.data.binning import Binning
from caltest.data.followup import EVENT, Censoring
from caltest.data.lenses import OneVsRest
from caltest.errors import StatisticError
from caltest.nulls import (
    Batches,
    FollowLanes,
    LabelScheme,
    RedrawFollowup,
    RedrawLabels,
    Scheme,
    SharedRedraws,
    Shortcut,
    WildSigns,
)
from caltest.nulls.clusters import COUNTS_AT_ONCE, VoteDraws
from caltest.nulls.draws import label_tables
from caltest.nulls.lanes import (
    GAMMA,
    Lanes,
    Memo,
    Seed,
    counter_kernel,
    dense_kernel,
    kernel,
    mixed,
    stream_keys,
)
from caltest.nulls.laws import poisson_binomial
from caltest.statistics.problem import (
    ABSENT,
    Cells,
    Evaluated,
    LinearTerm,
    Outcomes,
    Problem,
    ResidualSums,
    Squares,
    gathered,
)

if TYPE_CHECKING:
    from caltest.statistics.prepared import BlockReader, Prepared, SumStatistic


#: Replicates that share a pass over the rows at most, and numbers that a block of them may take.
LANES_A_PASS, NUMBERS_A_PASS = 128, 2**18


@dataclass(frozen=True, eq=False)
class Flips:
    """Outcomes as sign changes: ``multipliers[b, i]`` times the observed residual of row i.

    The multipliers have shape (B, n), for B sets of outcomes of n rows; random signs of clusters
    are an example.
    """

    multipliers: FloatArray


@dataclass(frozen=True, eq=False)
class VoteCounts:
    """Outcomes as numbers of votes: ``counts`` (B, I, K) for B sets, I items and K classes.

    ``first`` (I,) is the index of a row of each item.
    """

    counts: IntArray
    first: IntArray


@dataclass(frozen=True, eq=False)
class RowProblem(Problem):
    """Problem of n predictions seen through a lens, one unit for each row.

    ``data`` are the predictions, with ``probs`` (n, K), ``labels`` (n,), and ``weight`` (n,) or
    None; for two classes column 0 is the event. B sets of outcomes are label vectors (B, n),
    :class:`Flips`, which multiply the observed residuals, or :class:`VoteCounts`.
    """

    data: Predictions = field(repr=False)
    #: Predictions (n, K), labels (n,), and the weight of every row, (n,), or None.
    probs: FloatArray = field(init=False, repr=False)
    labels: IntArray = field(init=False, repr=False)
    weight: FloatArray | None = field(init=False, repr=False)
    n: int = field(init=False, repr=False)
    exact = True
    count = None

    def __post_init__(self) -> None:
        data = self.data
        rows = {"probs": data.probs, "labels": data.labels, "weight": data.weights, "n": data.n}
        vars(self).update(rows)  # a frozen instance is filled in once

    @staticmethod
    def of(data: Predictions) -> RowProblem:
        """Return the problem of predictions, with the event in column 0 for two classes.

        The event is label 1 of ``data`` as a user gives them, and label 0 of induced data, which
        come from a lens and list the event first. More classes stay as they are.
        """
        plain = data.n_classes == 2 and not data.induced
        return row_problem(OneVsRest(1)(data) if plain else data)

    @property
    def n_clusters(self) -> int | None:  # type: ignore[override]
        """Number of clusters; None where rows are independent."""
        return self.data.n_clusters

    @property
    def impossible(self) -> IntArray:
        return self.data.impossible

    @property
    def events(self) -> IntArray:
        return (self.labels == 0).astype(np.int64)

    @property
    def designed(self) -> bool:  # type: ignore[override]
        return self.weight is not None or self.n_clusters is not None

    def expand(self) -> tuple[Predictions, FloatArray, IntArray]:
        return self.data, np.ones(self.n), np.arange(self.n)

    @property
    def observed(self) -> IntArray:
        return self.labels[None, :]

    def outcomes(self, labels: IntArray) -> IntArray:
        return labels

    def numbers(self, bins: Binning) -> IntArray:
        return np.asarray(bins(self.probs))

    @property
    def levels(self) -> IntArray:
        return np.unique(self.probs[:, 0], return_inverse=True)[1].ravel()

    @cached_property
    def variance(self) -> FloatArray:
        v = self.probs[:, 0] * self.probs[:, 1]
        return v if self.weight is None else self.weight**2 * v

    @property
    def squared_variance(self) -> FloatArray:
        return np.square(self.variance)

    def linear(self, name: str, score: Callable[[FloatArray], FloatArray]) -> LinearTerm:
        p, table = self.probs, score(self.probs)
        w = np.ones(self.n) if self.weight is None else self.weight
        # A class of probability 0 may have an infinite score, which the expected score leaves out.
        possible = np.where(p > 0.0, table, 0.0)
        mean = (p * possible).sum(axis=1)
        scores = table[np.arange(self.n), self.labels]
        away = possible - mean[:, None]
        return LinearTerm(
            table,
            observed=float(w @ (scores - mean)),
            promised=float(w @ mean),
            variance=float((w**2 * (p * away**2).sum(axis=1)).sum()),
            covariance=float((w**2 * p[:, 0]) @ away[:, 0]),
        )

    def tables(self, scores: FloatArray) -> FloatArray:
        """Return score tables (T, n, K) centred and weighted, w (g(y) − E g), same shape.

        ``scores`` are T scores g of each of K labels for n rows, w the weights of the rows. Labels
        of probability 0 do not enter the expectation.
        """
        possible = np.where(self.probs > 0.0, scores, 0.0)
        table = scores - np.einsum("ik,tik->ti", self.probs, possible)[:, :, None]
        return table if self.weight is None else self.weight[:, None] * table

    @cached_property
    def squares(self) -> FloatArray:
        """Squared weighted residual w² |r|² of every row under every label, (n, K).

        r is the indicator of the label less the predicted probabilities, w the weight of the row.
        For two classes |r|² is the square of the event's residual alone. Small probabilities keep
        their digits.
        """
        p = self.probs
        if self.n_classes == 2:
            of_label = np.column_stack([np.square(1.0 - p[:, 0]), np.square(p[:, 0])])
        else:
            of_label = (1.0 + np.square(p).sum(axis=1))[:, None] - 2.0 * p
        return of_label if self.weight is None else self.weight[:, None] ** 2 * of_label

    def sums(
        self, outcomes: Outcomes, cells: Cells | None, squares: Squares = None,
        tables: FloatArray | None = None, norm: int | None = None,
    ) -> ResidualSums:  # fmt: skip
        if isinstance(outcomes, Flips):
            return self._of_flips(outcomes.multipliers, cells, squares, tables)
        if isinstance(outcomes, VoteCounts):
            return self._of_votes(outcomes, cells, squares, tables)
        if norm is not None and self.d > 1 and cells and tables is None and len(outcomes) > 1:
            return self._norms(outcomes, cells, norm, squares)
        linear = ABSENT
        if tables is not None:
            linear = np.empty((len(tables), len(outcomes)))
            for table, sums in zip(tables, linear, strict=True):
                look_up(outcomes, table, sums)
            linear = linear.T
        if cells is None:
            return ResidualSums(ABSENT, linear=linear)
        k, size, added = self.n_classes, len(cells), ABSENT
        of_first = cells.of_unit * k
        events = np.array([np.bincount(of_first + y, self.weight, size * k) for y in outcomes])
        events = events.reshape(-1, size, k)[:, :, : self.d] - cells.expected
        if squares is not None:
            first = np.arange(0, self.n * k, k)
            of_rows = (np.take(self.squares, first + y) for y in outcomes)
            added = np.array([np.bincount(cells.of_unit, each, size) for each in of_rows])
            added = gathered(added.astype(np.float64), squares)
        return ResidualSums(events, added, linear)

    def _of_flips(
        self, m: FloatArray, cells: Cells | None, squares: Squares, tables: FloatArray | None
    ) -> ResidualSums:
        residuals = self.data.residuals[:, : self.d]
        sums = added = linear = ABSENT
        if cells is not None:
            sums = np.stack([cells.sum(m * column, axis=1) for column in residuals.T], axis=-1)
            if squares is not None:
                squared = np.square(m) * np.square(residuals).sum(axis=1)
                added = gathered(cells.sum(squared, axis=1), squares)
        if tables is not None:  # w (g(y) − E g) of the observed label, flipped with its residual
            linear = m @ tables[:, np.arange(self.n), self.labels].T
        return ResidualSums(sums, added, linear)

    def _of_votes(
        self, outcomes: VoteCounts, cells: Cells | None, squares: Squares, tables: FloatArray | None
    ) -> ResidualSums:
        counts, first = outcomes.counts, outcomes.first
        sums = added = linear = ABSENT
        events: FloatArray | IntArray
        if cells is not None:
            cell = cells.of_unit[first]
            order = np.argsort(cell, kind="stable")
            starts = np.flatnonzero(np.diff(cell[order], prepend=-1))
            mass = 1 if self.weight is None else self.weight[first][order, None]
            events = mass * counts[:, order, : self.d]
            sums = np.asarray(np.add.reduceat(events, starts, axis=1) - cells.expected)
            if squares is not None:
                of_items = np.einsum("bik,ik->bi", counts[:, order], self.squares[first][order])
                added = gathered(np.add.reduceat(of_items, starts, axis=1), squares)
        if tables is not None:
            # A label of probability 0 may have an infinite score, and is never drawn
            scores = np.where(np.isfinite(tables[:, first]), tables[:, first], 0.0)
            linear = np.stack([np.einsum("bik,ik->b", counts, table) for table in scores], axis=1)
        return ResidualSums(sums, added, linear)

    def _norms(self, outcomes: IntArray, cells: Cells, norm: int, squares: Squares) -> ResidualSums:
        """Return norms over classes of the residual sums in L cells, without keeping those sums.

        ``outcomes`` (B, n) are label vectors, ``cells`` the partition of the rows. ``norm`` is 0
        for l1, 1 for squared l2, 2 for the largest absolute value. ``squares`` says which sums of
        squared residuals are needed: "cells" (B, L), "whole" (B, 1) or None. The field ``cells`` of
        the result is (B, L, 1).
        """
        values = np.empty((len(outcomes), len(cells), 1))
        weights = np.empty(0) if self.weight is None else self.weight
        if norm == 0 and squares is None and cells.expected.size > self.n:
            untouched = cells.expected.sum(axis=1)
            fixed = (cells.order, cells.starts, cells.expected, untouched, weights)
            count_l1(outcomes, *fixed, values)
            return ResidualSums(values)
        added = np.empty((len(outcomes), len(cells) if squares else 0))
        table = self.squares if squares else np.empty((0, 2))
        tables = (cells.of_unit, cells.expected, weights, table)
        count_norms(outcomes, *tables, norm, values, added)
        return ResidualSums(values, gathered(added, squares))

    def residuals(self, outcomes: Outcomes) -> tuple[FloatArray, FloatArray]:
        if isinstance(outcomes, Flips):
            residuals = outcomes.multipliers[:, :, None] * self.data.residuals[:, : self.d]
        else:
            residuals = (outcomes[:, :, None] == np.arange(self.d)) - self.probs[:, : self.d]
            residuals = residuals if self.weight is None else self.weight[:, None] * residuals
        return residuals, np.einsum("...d,...d->...", residuals, residuals)

    def law(self, units: IntArray) -> tuple[int, FloatArray, float]:
        """Return the exact distribution of the weighted number of events among the rows ``units``.

        ``units`` are row indices; weights are whole numbers. The form is (lowest count,
        probabilities of it and of the counts that follow in steps of 1, bound on their error).
        """
        p = self.probs[units]
        if self.weight is not None:
            return 0, *_weighted_law(p, self.weight[units].astype(np.int64))
        if p[:, 0].sum() <= p[:, 1].sum():
            return poisson_binomial(p[:, 0])
        lowest, pmf, lost = poisson_binomial(p[:, 1])  # the rarer label has all its digits
        return len(p) - (lowest + pmf.size - 1), pmf[::-1], lost

    def redraws(self, scheme: Scheme, statistic: Evaluated, factor: float = 1.0) -> Shortcut:
        """Return a resampler of ``statistic`` on outcomes drawn by a scheme.

        ``scheme`` says how outcomes are drawn, such as ``RedrawLabels()``; StatisticError for one
        that draws no labels. ``statistic`` is a prepared statistic, or several side by side.
        ``replicates(seed, first, count)`` of the resampler returns values (count,), or (count, S)
        for S statistics. It adds up sums while labels are drawn, where the statistic allows it.
        Residuals are multiplied by √factor.
        """
        if isinstance(scheme, WildSigns):
            signs = scheme.drawer(self.data)
            return Batches(signs, self.n, lambda m: statistic.values(Flips(m), factor))
        if not isinstance(scheme, LabelScheme):
            raise StatisticError(f"{scheme!r} draws no labels: it is for rows with follow-up")
        if isinstance(scheme, SharedRedraws) and factor == 1.0:
            by_item = VoteRedraws.of(self, scheme, statistic)
            if by_item is not None:
                return by_item
        counted, joint = statistic.counted, statistic.counted != (statistic,)
        if counted and self.n_classes > 2 and isinstance(scheme, RedrawLabels) and factor == 1.0:
            sides = [CountedRedraws.of(self, each) for each in counted]
            return Beside(sides) if joint else sides[0]
        draw = scheme.drawer(self.data)
        if counted and isinstance(draw, Lanes):
            return Redraws.of(draw, counted, factor, joint)
        values = partial(statistic.values, factor=factor)
        return Batches.of(scheme, self.data, values, draw)

    @property
    def surprises(self) -> float:
        rare, w = 1.0 - largest(self.probs), self.weight
        if w is None:
            return float(rare.sum())
        return float((w * rare).sum() ** 2 / max((w**2 * rare).sum(), 1e-300))


def _weighted_law(probs: FloatArray, multiples: IntArray) -> tuple[FloatArray, float]:
    """Return (law, bound): probabilities that Σ k_i y_i is 0, 1, …, and their rounding error.

    The law is (Σ k_i + 1,). y_i are independent events, one for each of n rows. ``probs`` (n, 2)
    are probabilities of event and non-event, ``multiples`` (n,) the whole numbers k_i. O(Σ k) for
    each row.
    """
    law = np.zeros(int(multiples.sum()) + 1)
    law[0], reach = 1.0, 0
    for (p, rest), k in zip(probs, multiples, strict=True):
        reach += k
        with_event = law[: reach - k + 1] * p
        law[:reach] *= rest
        law[reach] = 0.0
        law[k : reach + 1] += with_event
    return law, 4e-16 * len(probs)


@dataclass(frozen=True, eq=False)
class Redraws:
    """Resampler of several statistics: outcomes are drawn once and read by every statistic.

    Statistics whose cells are runs of the sorted predictions read the same block of outcomes; for
    others the same outcomes are drawn again, in the order of their cells. ``groups`` is a list of
    (generator of outcomes, its readers); each reader comes with its column in the result, and
    computes a statistic from blocks (n, B) of B drawn sets. Values are (B, S) for S statistics if
    ``joint``, else (B,), for one. Squared residuals are multiplied by ``factor``, for clusters.
    """

    groups: list[tuple[Lanes, list[tuple[int, BlockReader]]]]
    factor: float
    joint: bool

    @classmethod
    def of(
        cls, draw: Lanes, statistics: Sequence[Prepared], factor: float, joint: bool,
        residuals: bool = False,
    ) -> Redraws:  # fmt: skip
        """Return the resampler of several prepared statistics of the same rows.

        ``draw`` generates outcomes under the null, many replicates side by side; rows are laid out
        in the order in which the statistics read them. ``factor`` multiplies squared residuals, for
        clusters. With ``joint`` replicates have a column for each statistic; without it there is
        one statistic. With ``residuals`` ``draw`` makes weighted residuals W (Y − p), as for
        censored outcomes, in place of events.
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

        They are the values of one statistic, or of S, on drawn outcomes. A replicate depends on the
        seed and its number only, so that batches may be of any size. ``seed`` is the pair of
        integers that keys the random stream.
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
class VoteRedraws:
    """Resampler of a statistic of sums on drawn counts of votes, at a cost of O(I K) a replicate.

    ``draws`` draws the votes of the I items for K classes, and ``first`` (I,) is the first row of
    each item. ``statistic`` is the prepared statistic that is evaluated.
    """

    draws: VoteDraws
    first: IntArray
    statistic: Evaluated

    @classmethod
    def of(
        cls, problem: RowProblem, scheme: SharedRedraws, statistic: Evaluated
    ) -> VoteRedraws | None:
        """Return the resampler of a statistic on drawn votes, or None where it does not apply.

        It applies to a statistic of sums if the clusters of the rows are items with several votes,
        and no cell of the statistic divides an item. ``problem`` has the rows, ``scheme`` the
        dependence of the votes of an item, and ``statistic`` is a prepared statistic, or several.
        """
        if not getattr(statistic, "takes_counts", False):
            return None
        draws = scheme.vote_draws(problem.data)
        if draws is None:
            return None
        first = np.empty(draws.size.size, dtype=np.int64)
        first[draws.of_row[::-1]] = np.arange(problem.n)[::-1]
        cells = cast("SumStatistic", statistic).sum_cells
        divided = cells is not None and (cells.of_unit != cells.of_unit[first][draws.of_row]).any()
        return None if divided else cls(draws, first, statistic)

    def replicates(self, seed: Seed, first: int, count: int) -> FloatArray:
        """Return replicates ``first``, …, ``first + count − 1`` of the statistic, (count,).

        Each is its value on votes drawn under the null. Replicates are computed in blocks, whose
        size does not change them. ``seed`` is the pair of integers that keys the random stream.
        """
        at_once = max(2, COUNTS_AT_ONCE // self.draws.probs.size)
        values = []
        for start in range(0, count, at_once):
            # At least two, as NumPy adds up a single set in another order than several
            size = min(at_once, count - start)
            counts = self.draws.counts(seed, first + start, max(2, size))
            values.append(self.statistic.values(VoteCounts(counts, self.first))[:size])
        return np.concatenate(values)


# ------------------------------------------------------------------------------
# Redrawn labels of several classes, counted in the cells of a statistic as they are drawn.


UIntArray = NDArray[np.uint64]


@dataclass(frozen=True, eq=False)
class CountedRedraws:
    """Resampler of a sum statistic of K > 2 classes on redrawn labels, in one pass.

    Labels are drawn as by :class:`~caltest.nulls.draws.LabelDrawer`: statistics with the same seed
    see the same labels. For up to 40 classes: O(n K) once, and O(n K + L K) a replicate with L
    cells, some 0.1 ns per row and class. ``problem`` has the n rows, ``statistic`` is evaluated on
    sums in its ``cells``. ``thresholds`` are cumulative probabilities of the classes in units of
    2⁻⁵³, with rows in the order of ``cells``.
    """

    problem: RowProblem
    statistic: SumStatistic
    cells: Cells
    thresholds: IntArray = field(repr=False)

    @classmethod
    def of(cls, problem: RowProblem, statistic: SumStatistic) -> CountedRedraws:
        """Return the resampler of a statistic on redrawn labels of several classes; O(n K).

        ``problem`` has the n rows with K classes, ``statistic`` the cells in which labels are
        counted; without cells all rows are one.
        """
        cells = statistic.sum_cells or Cells.whole(problem)
        order = np.ascontiguousarray(cells.order, dtype=np.int64)
        thresholds, _ = label_tables(problem.probs, order, guided=False)
        return cls(problem, statistic, cells, thresholds)

    def replicates(self, seed: Seed, first: int, count: int) -> FloatArray:
        """Return replicates ``first``, …, ``first + count − 1`` of the statistic, (count,).

        Each is its value on labels drawn from the predictions. Replicates are computed in blocks,
        whose size does not change them. ``seed`` is the pair of integers that keys the random
        stream.
        """
        lanes, values = self._lanes(), [np.empty(0)]
        # One more than needed: NumPy adds up a single column in another order, so none is alone.
        words = stream_keys(seed, first, count + 1)
        for start in range(0, count, lanes):
            size = min(lanes, count - start)
            key, twist = np.ascontiguousarray(words[:2, start : start + max(2, size)])
            values.append(self.statistic.of_sums(self._sums(key, twist))[:size])
        return np.concatenate(values)

    def _lanes(self) -> int:
        """Number of replicates drawn together in a pass, so that sums stay in a near cache."""
        numbers = len(self.cells) * (self.problem.d if self.statistic.norm is None else 1) + 1
        # A power of 2, so that the blocks of a chunk are of one size
        return max(16, min(LANES_A_PASS, 1 << (NUMBERS_A_PASS // numbers).bit_length() >> 1))

    def _sums(self, key: UIntArray, twist: UIntArray) -> ResidualSums:
        norm, d = self.statistic.norm, self.problem.d
        sums = np.empty((len(self.cells), d if norm is None else 1, key.size))
        fixed = (self.cells.order, self.cells.starts, self.cells.expected)
        draw, gap = np.empty(key.size, np.int64), np.empty(key.size)
        counts = np.zeros((self.problem.n_classes + 1, key.size), np.int32)
        code = -1 if norm is None else norm
        redraw_few(self.thresholds, *fixed, code, key, twist, draw, counts, gap, sums)
        return ResidualSums(np.moveaxis(sums, 2, 0))


@dataclass(frozen=True, eq=False)
class Beside:
    """Resampler of S statistics on the same redrawn labels; replicates have shape (B, S).

    ``parts`` are the resamplers of the S statistics, one each.
    """

    parts: list[CountedRedraws]

    def replicates(self, seed: Seed, first: int, count: int) -> FloatArray:
        """Return replicates ``first``, …, ``first + count − 1`` of the S statistics, (count, S).

        ``seed`` is the pair of integers that keys the random stream.
        """
        return np.column_stack([part.replicates(seed, first, count) for part in self.parts])


# ------------------------------------------------------------------------------
# Compiled loops over rows: labels redrawn or given, and counted in cells.
#
# These loops compute sums, statistics apply formulas: what a loop returns is residual
# sums, of which a statistic makes its value.


@counter_kernel
def redraw_few(  # type: ignore[no-untyped-def]
    thresholds, order, starts, expected, norm, key, twist, draw, below, gap,
    sums_out,
):  # fmt: skip
    # Up to 40 classes, O(n K) per lane in vector instructions: residual sums (L, K, B), or with a
    # norm (0 l1, 1 squared l2, 2 largest) it holds each cell's norm, (L, 1, B). below[k], of K + 1
    # rows of zeros, counts the draws below threshold k − 1: the labels under k.
    n_classes, lanes = expected.shape[1], key.size
    for b in range(starts.size - 1):
        # Element by element: assigning to slices would compile for a second.
        for q in range(lanes):
            gap[q] = 0.0
            below[n_classes, q] = starts[b + 1] - starts[b]
        for k in range(1, n_classes):
            for q in range(lanes):
                below[k, q] = 0
        for i in range(starts[b], starts[b + 1]):
            step = GAMMA * np.uint64(order[i])
            for q in range(lanes):
                draw[q] = mixed(key[q] + step, twist[q])
            for k in range(n_classes - 1):
                threshold = thresholds[i, k]
                for q in range(lanes):
                    below[k + 1, q] += draw[q] < threshold
        # A loop for each norm: a question within one would keep it from being vectors.
        if norm < 0:
            for k in range(n_classes):
                for q in range(lanes):
                    sums_out[b, k, q] = below[k + 1, q] - below[k, q] - expected[b, k]
        elif norm == 0:
            for k in range(n_classes):
                less = expected[b, k]
                for q in range(lanes):
                    gap[q] += abs(below[k + 1, q] - below[k, q] - less)
        elif norm == 1:
            for k in range(n_classes):
                less = expected[b, k]
                for q in range(lanes):
                    gap[q] += (below[k + 1, q] - below[k, q] - less) ** 2
        else:
            for k in range(n_classes):
                less = expected[b, k]
                for q in range(lanes):
                    gap[q] = max(gap[q], abs(below[k + 1, q] - below[k, q] - less))
        if norm >= 0:
            for q in range(lanes):
                sums_out[b, 0, q] = gap[q]


@kernel
def count_norms(  # type: ignore[no-untyped-def]
    labels, cell, expected, weights, table, norm, norms_out, added_out
):
    # Norms (B, L, 1) of the sums over classes (0 l1, 1 squared l2, 2 largest), and sums of a table
    # (B, L): O(n + L K) per set of labels, in a table of counts that stays in the near cache.
    weighted, tabled = weights.size > 0, table.shape[0] > 0
    counts = np.empty(expected.shape)
    for r in range(labels.shape[0]):
        row, added = labels[r], added_out[r]
        counts[:] = 0.0
        added[:] = 0.0
        if tabled:  # in one pass: rows are read once
            for i in range(row.size):
                b, y = cell[i], row[i]
                counts[b, y] += weights[i] if weighted else 1.0
                added[b] += table[i, y]
        else:
            for i in range(row.size):
                counts[cell[i], row[i]] += weights[i] if weighted else 1.0
        for b in range(expected.shape[0]):
            gap = 0.0
            for k in range(expected.shape[1]):
                d = counts[b, k] - expected[b, k]
                if norm == 1:
                    gap += d * d
                elif norm == 0:
                    gap += abs(d)
                else:
                    gap = max(gap, abs(d))
            norms_out[r, b, 0] = gap


@kernel
def count_l1(  # type: ignore[no-untyped-def]
    labels, order, starts, expected, untouched, weights, norms_out
):
    # l1 norms (B, L, 1) where cells times classes are more than rows, O(n) per set of labels: a
    # cell's sum over all classes is corrected for those that occur in it.
    counts, weighted = np.zeros(expected.shape[1]), weights.size > 0
    for r in range(labels.shape[0]):
        row = labels[r]
        for b in range(starts.size - 1):
            first, last = starts[b], starts[b + 1]
            for i in range(first, last):
                counts[row[order[i]]] += weights[order[i]] if weighted else 1.0
            gap = untouched[b]
            for i in range(first, last):
                k = row[order[i]]
                if counts[k] > 0.0:
                    gap += abs(counts[k] - expected[b, k]) - expected[b, k]
                counts[k] = 0.0
            norms_out[r, b, 0] = gap


@dense_kernel
def look_up(labels, table, sums_out):  # type: ignore[no-untyped-def]
    # Σ_i table[i, y_i] of each set of labels.
    for r in range(labels.shape[0]):
        total = 0.0
        for i in range(labels.shape[1]):
            total += table[i, labels[r, i]]
        sums_out[r] = total


# ------------------------------------------------------------------------------
# The problem of rows with follow-up: outcomes come with weights, which are fitted to them.


#: Replicates from which variances under calibration are taken, and their seed.
PILOT, PILOT_SEED = 999, (0x1B873593, 0xCC9E2D51)


#: Outcomes that are drawn together.
OUTCOMES_A_BATCH = 2**20


_PILOTS: Memo[FloatArray] = Memo()


@dataclass(frozen=True, eq=False)
class Drawn:
    """Outcomes of n censored rows as signed weights (B, n): W with the event, −W without it.

    W is the inverse probability of being observed; the entry of ``signed`` is 0 if the outcome is
    unknown. B is the number of sets of outcomes.
    """

    signed: FloatArray


@dataclass(frozen=True, eq=False)
class FollowupProblem(RowProblem):
    """Predicted risks with follow-up, seen through a lens; outcomes are :class:`Drawn`.

    ``data`` are the predictions. Outcomes are drawn with event times and censoring by
    ``RedrawFollowup()``, the only null. Cells hold all rows, known or not, so that divisors are
    numbers of rows. Variances under calibration are estimated from 999 draws of the null, not from
    formulas.
    """

    only_null = RedrawFollowup()

    @cached_property
    def censoring_law(self) -> Censoring:
        """Censoring model of the rows: ``weights`` (n,), inverse probabilities of being observed.

        It has the ``followup`` (times and status of the rows) and the risk ``groups`` as well,
        within which censoring was estimated. A row with unknown outcome has weight 0.
        """
        return self.data.censoring

    @cached_property
    def drawer(self) -> FollowLanes:
        """Generator of outcomes of the rows under the null, with censoring.

        It draws blocks (n, B): +W with the event, −W without it, 0 if unknown, with W the inverse
        probability of being observed.
        """
        return RedrawFollowup().drawer(self.data)

    @property
    def events(self) -> FloatArray:  # type: ignore[override]
        """Weighted outcome W Y of every row, (n,); the sum estimates the number of events.

        W is the inverse probability of not being censored, Y the event, 0 or 1.
        """
        return self.censoring_law.weights * (self.labels == 0)

    @cached_property
    def observed(self) -> Drawn:  # type: ignore[override]
        weights = self.censoring_law.weights
        return Drawn(np.where(self.labels == 0, weights, -weights)[None, :])

    def known_rows(self, signed: FloatArray) -> Predictions:
        """Return the rows with known outcomes as Predictions, weighted by W.

        ``signed`` (n,) is +W for an event, −W for a non-event and 0 for an unknown outcome, with W
        the inverse probability of being observed. Label 0 is the event.
        """
        some = np.flatnonzero(signed)
        labels = (signed[some] < 0.0).astype(np.int64)
        return Predictions(self.probs[some], labels, weights=np.abs(signed[some]), induced=True)

    def outcomes(self, labels: AnyArray) -> NoReturn:
        raise StatisticError("follow-up has no labels of all rows: its outcomes come with weights")

    def frequencies(self, cells: Cells) -> FloatArray:
        return (self.gaps(cells, self.observed) + cells.mean(self.probs[:, 0]))[0]

    def gaps(self, cells: Cells, outcomes: Drawn) -> FloatArray:
        """Return Σ W Y / Σ W less the mean prediction in each of the L ``cells``, (B, L).

        It is NaN for a cell without a known outcome. W is the inverse probability of a known
        outcome and Y the event, in B sets of ``outcomes``, a :class:`Drawn` with +W, −W or 0 for
        each row. ``cells`` is the partition of the rows.
        """
        parts = np.maximum(outcomes.signed, 0.0), np.abs(outcomes.signed)
        events, mass = (cells.sum(part, axis=1) for part in parts)
        with np.errstate(invalid="ignore"):
            return np.asarray(events / mass - cells.mean(self.probs[:, 0]))

    @cached_property
    def residual_lanes(self) -> FollowLanes:
        """Generator of residuals W (Y − p) under the null, many replicates side by side.

        It draws blocks (n, B). W is the inverse probability of a known outcome, Y the outcome, p
        the prediction.
        """
        return self.drawer.with_residuals(self.probs)

    def variance_of(self, cells: Cells, equal: bool = False) -> FloatArray:
        if len(cells) == 1:
            return np.array([np.square(self._pilot(self._log_odds)[:, 0]).mean()])

        def squares(block: FloatArray) -> FloatArray:
            return np.square(cells.sum(block)).T

        return np.asarray(self._drawn(squares).mean(axis=0))

    def _drawn(self, read: Callable[[FloatArray], FloatArray]) -> FloatArray:
        """Return ``read(residuals)`` for 999 draws under the null, joined along the first axis.

        ``read`` takes weighted residuals (n, B) of B draws and returns an array with B entries
        along its first axis; the result has 999.
        """
        return self.residual_lanes.laid(np.arange(self.n)).gathered(read, PILOT_SEED, 0, PILOT)

    def _pilot(self, step: FloatArray) -> FloatArray:
        """Return Σ r and Σ r · step for 999 draws under the null, shape (999, 2).

        r are the weighted residuals W (Y − p) of the n rows. ``step`` (n,) is the difference of a
        score, event − non-event. Results are cached by content.
        """
        followup = self.censoring_law.followup
        content = (followup.elapsed, followup.status, self.censoring_law.groups)

        def sums(block: FloatArray) -> FloatArray:
            return np.column_stack([block.sum(axis=0), step @ block])

        return _PILOTS.of(lambda: self._drawn(sums), *content, self.probs, step)

    @cached_property
    def _log_odds(self) -> FloatArray:
        p = np.clip(self.probs, 1e-12, 1.0)
        return np.asarray(np.log(p[:, 0]) - np.log(p[:, 1]))

    def _residuals(self, signed: FloatArray) -> FloatArray:
        """Return the weighted residuals W (Y − p) of rows, same shape as ``signed``.

        ``signed`` (B, n) is W for a row with the event, −W for a known row without, 0 for an
        unknown one; p is the predicted risk.
        """
        return signed * np.where(signed > 0.0, self.probs[:, 1], self.probs[:, 0])

    def linear(self, name: str, score: Callable[[FloatArray], FloatArray]) -> LinearTerm:
        """Return Σ w (g(y) − E g) of a score g, with moments under calibration from 999 draws.

        ``score`` maps probabilities (n, 2) to the score of event and non-event, same shape;
        ``name``, what the score is called, plays no part here. The draws of the null give
        ``variance`` and ``covariance`` of the result, the latter with the event; ``table`` (n, 2)
        has the scores.
        """
        plain = super().linear(name, score)
        table = self.tables(plain.table[None])
        step = np.where(self.probs > 0.0, table[0], 0.0) @ [1.0, -1.0]
        # Scores that are log-odds less a number share the draws of these.
        shift = float(np.median(self._log_odds - step))
        if np.abs(self._log_odds - shift - step).max() < 1e-9:
            total, scored = self._pilot(self._log_odds).T
            scored = scored - shift * total
        else:
            total, scored = self._pilot(step).T
        return replace(
            plain,
            observed=float(_scored(self._residuals(self.observed.signed), table)[0, 0]),
            variance=float(np.square(scored).mean()),
            covariance=float((total * scored).mean()),
        )

    def sums(
        self, outcomes: Drawn, cells: Cells | None, squares: Squares = None,
        tables: FloatArray | None = None, norm: int | None = None,
    ) -> ResidualSums:  # fmt: skip
        r = self._residuals(outcomes.signed)
        linear = ABSENT if tables is None else _scored(r, tables)
        if cells is None:
            return ResidualSums(ABSENT, linear=linear)
        added = ABSENT if squares is None else gathered(cells.sum(r**2, axis=1), squares)
        return ResidualSums(cells.sum(r, axis=1)[:, :, None], added, linear)

    def residuals(self, outcomes: Drawn) -> tuple[FloatArray, FloatArray]:
        r = self._residuals(outcomes.signed)
        return r[:, :, None], np.square(r)

    def law(self, units: IntArray) -> NoReturn:
        raise StatisticError("events have no law of their own where follow-up is short: redraw it")

    def redraws(self, scheme: Scheme, statistic: Evaluated, factor: float = 1.0) -> Shortcut:
        if counted := statistic.counted:
            joint = counted != (statistic,)
            return Redraws.of(self.residual_lanes, counted, factor, joint, residuals=True)
        values = lambda signed: statistic.values(Drawn(signed))  # noqa: E731
        return Batches(self.drawer, self.n, values, OUTCOMES_A_BATCH)


def _scored(residuals: FloatArray, tables: FloatArray) -> FloatArray:
    """Return Σ r (g(event) − g(non-event)) for B draws and T scores, (B, T).

    ``residuals`` (B, n) are the residuals r, 0 for unknown outcomes, which add nothing; ``tables``
    (T, n, 2) are the scores g of event and non-event.
    """
    with np.errstate(invalid="ignore"):  # a label of probability 0 may have an infinite score
        steps = tables[:, :, 0] - tables[:, :, 1]
        parts = [np.where(residuals == 0.0, 0.0, residuals * step).sum(axis=1) for step in steps]
    return np.stack(parts, axis=1)


def row_problem(data: Predictions) -> RowProblem:
    """Return the problem of predictions behind a lens, one unit for each row.

    A problem has fixed predictions, and outcomes to be drawn; for two classes column 0 is the
    event. It is a :class:`FollowupProblem` for predictions with follow-up, where StatisticError is
    raised if the lens shows another event than the one that was followed.
    """
    if data.followup is None:
        return RowProblem(data)
    if not np.array_equal(data.labels == 0, data.followup.status == EVENT):
        raise StatisticError("follow-up knows of its event only: look through OneVsRest(1)")
    return FollowupProblem(data)
