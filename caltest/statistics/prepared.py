"""Statistics, and what they become when the predictions are fixed: a function of the outcomes.

A :class:`Statistic` is a value. Its ``prepare(problem)`` fixes the predictions and returns a
:class:`Prepared`; :func:`prepare` does so for plain functions as well. A subclass of one of four
kinds implements one method, and the rest follows:

* :class:`CellStatistic`, ``terms``: a sum, or the largest, of a term of every cell. Rows, weights,
  clusters, tallies, random signs, and the exact law of two classes.
* :class:`SumStatistic`, ``of_sums``: a function of residual sums. All of these but the exact law.
* :class:`ResidualStatistic`, ``of_residuals``: a function of the residuals of all units. The same,
  more slowly.
* :class:`LabelStatistic`, ``batch``: any function of label vectors. Rows only.

:class:`Reader` reads a statistic from lanes of many replicates.
"""

from __future__ import annotations

import inspect
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, ClassVar, Literal, Protocol, Self, Unpack

import numpy as np

from caltest._base import FloatArray, IntArray
from caltest._base.arrays import AnyArray
from caltest._base.written import Written, name_of
from caltest.data import Facts, Predictions
from caltest.errors import Reading, StatisticError, UnsupportedFactError
from caltest.nulls import CHUNK, REPLICATES_A_STREAM, RowScheme, Scheme, Shortcut
from caltest.nulls.draws import LADDER_CLASSES
from caltest.nulls.lanes import lane_kernel
from caltest.read.arguments import read_arguments
from caltest.results.hypotheses import NullDistribution
from caltest.statistics.problem import ABSENT, Cells, Estimand, Problem, ResidualSums, Squares
from caltest.statistics.rows import Drawn, FollowupProblem, RowProblem, row_problem

#: What verbs accept: a statistic, or a function of an induced problem.
StatisticLike = Callable[..., float]


class Statistic(ABC, Written):
    """Base class of calibration statistics, such as :class:`ECE`.

    Call an instance with probabilities and labels to get its value, a float; large values are
    evidence against calibration. A subclass implements :meth:`prepare`, which fixes the
    predictions and returns a :class:`Prepared`, a function of the outcomes.
    """

    #: Whether it looks at rows with follow-up by the labels and weights of those that are known.
    of_known_rows: ClassVar[bool] = False
    #: Whether it is about all classes: two classes that a lens made of more are refused.
    of_whole_vector: ClassVar[bool] = False
    #: Whether it is of items with several outcomes, independent of each other given the prediction.
    of_items: ClassVar[bool] = False

    def __call__(self, probs: object, labels: object = None, **facts: Unpack[Facts]) -> float:
        """Return the value of the statistic, a float.

        ``probs``, ``labels`` and ``facts`` (``weights``, ``clusters`` and the other keywords) are
        the arguments of :meth:`Predictions.of`, with its errors. For two classes label 1 is the
        event, or class 0 of ``Predictions(…, induced=True)``.
        """
        # Weights of 2 and 4 give the number that 1 and 2 give, to the last bit.
        facts.setdefault("rounded", False)  # the value of all rows
        data = read_arguments(probs, labels, **facts).in_ratios()
        return prepare(self, RowProblem.of(data)).observed

    @abstractmethod
    def prepare(self, problem: Problem) -> Prepared:
        """Return the statistic with fixed predictions, a function of the outcomes.

        ``problem`` holds the predictions and observed outcomes of the data, rows or a tally. The
        values of the :class:`Prepared` are computed for B sets of outcomes at once. StatisticError
        if the statistic cannot take such data.
        """


# ------------------------------------------------------------------------------
# Statistics with fixed predictions.


#: The names of limit laws.
LimitName = Literal["asymptotic", "betting"]


#: A limit law, made for the labels it is asked about.
Law = Callable[[IntArray], NullDistribution]


@dataclass(frozen=True, eq=False)
class Prepared(ABC):
    """A statistic with fixed predictions: a function of the outcomes.

    The fields:

    * ``problem``: the fixed predictions, of rows or of the cells of a tally;
    * ``cells``: the partition whose sums it uses; None without bins;
    * ``estimand``: the population error it estimates, which opens intervals and comparisons; None
      if there is none;
    * ``two_sided``: small values are evidence as well, by their distance from ``centre``;
    * ``null_mean``: the mean under calibration, where it is known in closed form, else None;
    * ``laws``: limit laws by the name that ``null=`` takes, functions of the labels that return a
      null distribution; ``min_surprises``, the number of surprising outcomes (Σ 1 − max p) that
      they need, ``law_caveat``, any other reason against them;
    * ``usual_null``: the law of ``null="auto"`` where it is neither exact nor redrawn labels;
    * ``remark``: how the value differs from the value of the rows, besides by cells; "" if it does
      not.

    A class says whether its residuals can be multiplied for clusters (``inflatable``), how many
    replicates it evaluates together (``replicates_at_once``), and whether redrawn labels can be
    read as they are drawn: ``counted`` then holds the statistic itself, and else is ().
    """

    problem: Problem = field(repr=False)
    cells: Cells | None = field(default=None, kw_only=True, repr=False)
    estimand: Estimand | None = field(default=None, kw_only=True)
    two_sided: bool = field(default=False, kw_only=True)
    centre: float = field(default=0.0, kw_only=True)
    null_mean: float | None = field(default=None, kw_only=True)
    min_surprises: float = field(default=0.0, kw_only=True)
    laws: Mapping[str, Law] = field(default_factory=dict, kw_only=True, repr=False)
    law_caveat: str | None = field(default=None, kw_only=True)
    usual_null: LimitName | None = field(default=None, kw_only=True)
    remark: str = field(default="", kw_only=True)
    #: Whether residuals can be inflated by κ, the dependence that clusters leave unseen.
    inflatable: ClassVar[bool] = True
    #: Replicates that are evaluated together, so that an early stop wastes few.
    replicates_at_once: ClassVar[int] = CHUNK
    #: Itself, where redrawn labels can be counted or read as they are drawn.
    counted: ClassVar[tuple[Prepared, ...]] = ()

    @abstractmethod
    def values(self, outcomes: object, factor: float = 1.0) -> FloatArray:
        """Return the values (B,) of the statistic for B sets of outcomes.

        ``outcomes`` are made by ``problem.outcomes`` from label vectors or event counts. Residuals
        are multiplied by √factor, which stands for the overdispersion of clustered rows.
        """

    @cached_property
    def observed(self) -> float:
        """Value of the statistic for the observed outcomes."""
        return float(self.values(self.problem.observed)[0])

    def __call__(self, labels: IntArray) -> float:
        """Return the value of the statistic for one set of outcomes, a float.

        ``labels`` is a label vector (n,), or for a tally the event counts (U,) of its U cells.
        """
        if labels is self.problem.labels:
            return self.observed
        return float(self.values(self.problem.outcomes(labels[None, :]))[0])

    def batch(self, labels: IntArray) -> FloatArray:
        """Return the values (B,) of the statistic for B sets of outcomes.

        ``labels`` are label vectors (B, n), or for a tally event counts (B, U) of its U cells.
        """
        return self.values(self.problem.outcomes(labels))

    @property
    def data(self) -> Any:
        """The data whose predictions are fixed: Predictions, or the fine cells of a tally."""
        return self.problem.data

    @property
    def remarks(self) -> tuple[str, ...]:
        """Sentences for the notes of results: the source of the numbers, and how they are coarser.

        () if there is nothing to say, as for most rows.
        """
        of_cells = "" if self.cells is None else self.cells.remark
        return (*self.problem.remarks, *filter(None, (of_cells, self.remark)))

    @property
    def sum_cells(self) -> Cells | None:
        """The partition in whose order drawn rows are read, to sum residuals by cell, or None.

        It is the field ``cells``, unless a subclass reads another one; None if it needs no order.
        """
        return self.cells

    def lane_reader(self, cells: Cells, order: IntArray, residuals: bool) -> BlockReader:
        """Return a reader that computes this statistic from blocks (n, B) of drawn outcomes.

        For two classes, and statistics that are ``counted``; NotImplementedError for others. The
        rows of a block lie in this ``order`` (n,), row indices by which each of the ``cells`` (the
        partition of rows) is a run. Blocks hold events as 0 and 1, or with ``residuals`` W (Y − p):
        W the weight of a known outcome Y, p the prediction.
        """
        raise NotImplementedError

    def cell_law(self) -> CellStatistic | None:
        """Return the cell statistic whose exact distribution equals this one's, or None.

        A cell statistic is a sum, or the largest, of a term of each cell. None is returned where no
        exact law is known, as for more than two classes.
        """
        return None

    def limit_caveat(self) -> str | None:
        """Return in words why the limit law fails for data like these, or None if it does not."""
        rare, needed = self.problem.surprises, self.min_surprises
        if self.law_caveat is None and rare < needed:
            return f"only {rare:.2g} surprising outcomes are expected, it takes {needed:g}"
        return self.law_caveat

    @property
    def rows_per_cell(self) -> float | None:
        """Mean number of rows in an occupied bin; None without bins."""
        if self.cells is None or self.cells.bins is None:
            return None
        return float(self.cells.counts.mean())

    def redraws(self, scheme: Scheme, factor: float = 1.0) -> Shortcut:
        """Return a resampler that evaluates this statistic on outcomes redrawn by a scheme.

        Its ``replicates(seed, first, count)`` returns values (count,), which depend on seed and
        number only. ``scheme`` says how labels are drawn, such as ``RedrawLabels()``; ``factor``
        multiplies squared residuals, which stands for the overdispersion of clustered rows.
        """
        return self.problem.redraws(scheme, self, factor)

    def row_resamples(self, scheme: RowScheme) -> Shortcut | None:
        """Return a fast resampler of this statistic on resampled rows, or None if there is none.

        ``scheme`` says how rows are drawn, such as with replacement. The resampler's
        ``replicates(seed, first, count)`` returns values (count,). After None the caller evaluates
        the statistic on each set of rows.
        """
        return None


# ------------------------------------------------------------------------------
# Readers of statistics from lanes: many replicates side by side, for two classes.
#
# A :class:`Reader` sums a statistic's cells from blocks of lanes in one pass. Other statistics
# bring a :class:`BlockReader` of their own.


#: Numbers that the sums of a block of replicates may take, so that they stay in a near cache, and
#: the fewest replicates of a block.
NUMBERS_A_BLOCK, FEWEST_LANES = 2**17, 16


class BlockReader(Protocol):
    """Protocol of readers that compute a statistic from blocks (n, B) of B drawn sets of outcomes.

    The n rows of a block lie in an order that is fixed when the reader is made. ``at_once`` is the
    B that suits it, ``values`` returns its values.
    """

    @property
    def at_once(self) -> int:
        """Number of replicates in a block for which the sums of the reader fit in a near cache."""

    def values(self, block: AnyArray, factor: float = 1.0) -> FloatArray:
        """Return the values (B,) of the statistic for a block (n, B) of B drawn sets of outcomes.

        A block holds events as 0 and 1, or weighted residuals, with rows in the order of the
        reader. Residuals are multiplied by √factor.
        """


@dataclass(frozen=True, eq=False)
class Reader:
    """Reader that computes a statistic's residual sums from blocks of redrawn outcomes.

    A block (n, B) holds B replicates with rows in a fixed order: events as 0 and 1 or, with
    ``residuals``, W (Y − p), W the weight of a known outcome Y. Cell b of L has the rows
    ``starts[b]:starts[b + 1]`` and ``expected[b]`` expected events. Sums of squares, and of the T
    scores that ``statistic`` asks for, start from ``base``, (T, L) or (T, 1), their value if no row
    has the event, and change by ``steps`` (T, n) if row i has it; for residuals, scores are
    ``steps`` times residuals. ``weights`` (n,) are the weights of the rows, empty if all are 1.
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
        """Return the reader of a sum statistic for rows in an order in which cells are runs.

        ``cells`` is the partition of the rows that ``statistic`` sums over, ``order`` (n,) the row
        indices in the order of the blocks. With ``residuals`` blocks hold W (Y − p) in place of
        events, for follow-up: W the weight of a known outcome Y. O(n T) for T scores that the
        statistic takes.
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
        """Number of replicates in a block, a power of 2, for which the sums fit in a near cache."""
        numbers = (self.starts.size - 1) * (1 + (self.statistic.squares == "cells"))
        return max(FEWEST_LANES, 1 << (NUMBERS_A_BLOCK // numbers).bit_length() >> 1)

    def values(self, block: AnyArray, factor: float = 1.0) -> FloatArray:
        """Return the values (B,) of the statistic for a block (n, B) of B drawn sets of outcomes.

        A block holds events as 0 and 1, or weighted residuals. Residuals are multiplied by √factor.
        """
        return self.statistic.of_sums(self.sums(block).inflated(factor))

    def sums(self, block: AnyArray) -> ResidualSums:
        """Return residual sums of L cells, sums of squares and of scores for a block (n, B).

        A block holds B drawn sets of events as 0 and 1, or of weighted residuals. The result has
        the fields ``cells`` (B, L, 1), ``squares`` (B, L) or (B, 1), and ``linear`` (B, T) for T
        scores; a field that the statistic does not need is empty.
        """
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


# ------------------------------------------------------------------------------
# The four kinds of prepared statistics.


#: Numbers in an array of sums, and cells, that are looked at together.
SUMS_AT_ONCE, CELLS_AT_ONCE = 2**17, 256


@dataclass(frozen=True, eq=False)
class SumStatistic(Prepared):
    """Statistic that depends on outcomes only by residual sums.

    The sums are of residuals in cells, of their squares, and of scores. A subclass defines
    ``of_sums``. It then works for rows, weights, clusters and tallies. Its fields say which sums it
    takes: ``scores`` (T, U, K), T tables of the score g_t of each of U units (rows, or cells of a
    tally) under each of K labels, whose sums are Σ w r · g_t, None for none; ``observed_scores``
    (T,), these sums for the observed rows where a problem knows them better than its table;
    ``norm``, the norm over classes that suffices (0 l1, 1 squared l2, 2 largest absolute value), or
    None; ``squares``, "cells" for sums of squares by cell, "whole" for one over all rows, None for
    neither.
    """

    #: Score tables g_t (T, U, K) whose sums Σ w r · g_t it takes.
    scores: FloatArray | None = field(default=None, kw_only=True, repr=False)
    #: The same sums of the observed rows, where a problem knows them better than its table.
    observed_scores: FloatArray | None = field(default=None, kw_only=True, repr=False)
    #: Index in ``NORMS`` of the norm of the sums of several classes that suffices, or None.
    norm: int | None = field(default=None, kw_only=True)
    squares: ClassVar[Squares] = None
    #: What reads redrawn outcomes of two classes.
    reader: ClassVar[type[Reader]] = Reader

    @abstractmethod
    def of_sums(self, sums: ResidualSums) -> FloatArray:
        """Return the values (B,) of the statistic from the residual sums of B sets of outcomes.

        ``sums`` has the fields ``cells`` (B, L, d), sums of observed − predicted in L cells, d = 1
        for two classes or norms over classes; ``squares``, sums of squared residuals, (B, L) or (B,
        1); and ``linear`` (B, T), sums of T scores. Those that the statistic does not ask for are
        empty.
        """

    @property
    def takes_counts(self) -> bool:
        """True if the numbers of votes for each class of every item determine the value.

        Resamplers may then draw these counts in place of single labels.
        """
        return type(self).values is SumStatistic.values

    @cached_property
    def tables(self) -> FloatArray | None:
        """Score tables centred and weighted, w (g(y) − E g), shape (T, U, K); None without scores.

        T is the number of scores, U of units (rows, or cells of a tally), K of labels.
        """
        return None if self.scores is None else self.problem.tables(self.scores)

    def values(self, outcomes: object, factor: float = 1.0) -> FloatArray:
        cells, problem = self.sum_cells, self.problem
        if isinstance(outcomes, np.ndarray) and cells is not None:
            # Part by part, so that sums are still in a near cache when the formula reads them.
            columns = problem.n_classes if self.norm is None else 1
            at_once = max(4, SUMS_AT_ONCE // (len(cells) * columns))
            if len(outcomes) > at_once:
                starts = range(0, len(outcomes), at_once)
                parts = [self.values(outcomes[a : a + at_once], factor) for a in starts]
                return np.concatenate(parts)
        norm = self.norm if factor == 1.0 else None  # what is inflated is not a norm yet
        sums = problem.sums(outcomes, cells, self.squares, self.tables, norm)
        return self.of_sums(sums.inflated(factor).normed(self.norm)) + self._within

    @cached_property
    def observed(self) -> float:
        """Value of the statistic for the observed outcomes, from the rows' own score sums."""
        problem, outcomes = self.problem, self.problem.observed
        linear = ABSENT if self.observed_scores is None else self.observed_scores[None, :]
        sums = problem.sums(outcomes, self.sum_cells, self.squares, None)
        sums = ResidualSums(sums.cells, sums.squares, linear).normed(self.norm)
        return float(self.of_sums(sums)[0])

    @cached_property
    def _within(self) -> float:
        """Contribution to the value of rows within the cells of a tally; 0 for data with rows.

        Replicates add it, so that a replicate equal to the observed data ties with the observed
        value.
        """
        if self.problem.exact:
            return 0.0
        drawn_alike = self.problem.outcomes(self.problem.labels[None, :])
        sums = self.problem.sums(drawn_alike, self.sum_cells, self.squares, self.tables)
        return self.observed - float(self.of_sums(sums.normed(self.norm))[0])

    @property
    def counted(self) -> tuple[Prepared, ...]:  # type: ignore[override]
        problem = self.problem
        # With more, labels are looked up, which takes as long as counting them: nothing is gained.
        few = problem.n_classes <= LADDER_CLASSES
        plain = problem.weight is None and self.squares is None and self.scores is None
        counted = problem.n_classes == 2 or (few and plain and self.sum_cells is not None)
        return (self,) if counted else ()

    def lane_reader(self, cells: Cells, order: IntArray, residuals: bool) -> BlockReader:
        return self.reader.of(self, cells, order, residuals)


@dataclass(frozen=True, eq=False)
class CellStatistic(SumStatistic):
    """Sum, or maximum, of one term for each cell of a partition.

    A subclass defines ``terms``. For two classes its exact distribution can be computed. ``cells``
    is the partition of the rows and ``combine`` is "sum" or "max". ``unit`` is the step of a term
    from one count of events to the next where all cells share it, else None; ``root`` takes the
    root of the combined terms.
    """

    cells: Cells = field(kw_only=True, repr=False)
    combine: Literal["sum", "max"] = field(default="sum", kw_only=True)
    unit: float | None = field(default=None, kw_only=True)
    root: bool = field(default=False, kw_only=True)

    @abstractmethod
    def terms(self, sums: FloatArray, at: slice = slice(None)) -> FloatArray:
        """Return the terms (B, L) of the cells ``at``, a slice of length L, for B sets of outcomes.

        ``sums`` (B, L, d) are the residual sums, observed − predicted, of these cells: d = 1 for
        two classes or norms over classes, else the number of classes.
        """

    def of_sums(self, sums: ResidualSums) -> FloatArray:
        n_cells, largest = sums.cells.shape[1], self.combine == "max"
        values = np.full(len(sums.cells), -np.inf if largest else 0.0)
        # Some cells at a time, so that what a formula makes stays in a near cache; always as many,
        # so that no number depends on how many sets of outcomes come together.
        for first in range(0, n_cells, CELLS_AT_ONCE):
            at = slice(first, first + CELLS_AT_ONCE)
            terms = self.terms(sums.cells[:, at], at)
            values = (
                np.maximum(values, terms.max(axis=1)) if largest else values + terms.sum(axis=1)
            )
        return np.asarray(np.sqrt(values) if self.root else values)

    def cell_law(self) -> CellStatistic | None:
        """Return this statistic itself if the exact law of its cells can be computed, else None.

        It can for two classes where the counts of events in cells are independent and
        Poisson-binomial.
        """
        return self if self.problem.n_classes == 2 and self.cells.lawful else None

    def term(self, cell: int, count: IntArray) -> FloatArray:
        """Return the term of one cell for each number of events in ``count``; for two classes.

        ``cell`` is the index of the cell, ``count`` (m,) holds numbers of events, weighted if rows
        are. The result (m,) is a float for each; the exact law is built from such terms.
        """
        # For two classes d = 1, and a residual sum is a number of events less the expected one.
        sums = count[:, None, None] - self.cells.expected[cell]
        return self.terms(sums, slice(cell, cell + 1))[:, 0]


@dataclass(frozen=True, eq=False)
class ResidualStatistic(Prepared):
    """Statistic that is a function of the residuals of all rows and of their squares.

    A subclass defines ``of_residuals``; prefer :class:`SumStatistic` where sums suffice, as it is
    faster.
    """

    @abstractmethod
    def of_residuals(self, residuals: FloatArray, squares: FloatArray) -> FloatArray:
        """Return the values (B,) of the statistic for B sets of outcomes of U rows, or tally cells.

        ``residuals`` (B, U, d) are Σ w r over the rows of each, and ``squares`` (B, U) are Σ w²
        |r|², with w the weight of a row and r its residual, observed − predicted: d = 1 for two
        classes, else the number of classes.
        """

    def values(self, outcomes: object, factor: float = 1.0) -> FloatArray:
        residuals, squares = self.problem.residuals(outcomes)
        if factor != 1.0:
            residuals, squares = factor**0.5 * residuals, factor * squares
        return self.of_residuals(residuals, squares)


@dataclass(frozen=True, eq=False)
class LabelStatistic(Prepared):
    """Statistic that needs the label vectors themselves; it works on rows, not on tallies.

    A subclass defines ``batch``, or ``of_labels`` for one label vector. Its residuals cannot be
    multiplied for clustered data.
    """

    inflatable: ClassVar[bool] = False

    def __init_subclass__(cls) -> None:
        base = LabelStatistic
        if cls.batch is base.batch and cls.of_labels is base.of_labels:
            raise TypeError(f"{cls.__name__} must define batch or of_labels")

    def of_labels(self, labels: IntArray) -> float:
        """Return the value of the statistic for one label vector (n,), integers."""
        return float(self.batch(labels[None, :])[0])

    def batch(self, labels: IntArray) -> FloatArray:
        """Return the values (B,) of the statistic for label vectors (B, n).

        Labels are integers, and are not to be kept or changed.
        """
        return np.array([self.of_labels(row) for row in labels], dtype=np.float64)

    def values(self, outcomes: object, factor: float = 1.0) -> FloatArray:
        if not isinstance(outcomes, np.ndarray):
            raise StatisticError(f"{type(self).__name__} sees outcomes otherwise than by residuals")
        if factor != 1.0:
            raise StatisticError(f"{type(self).__name__} sees labels, which cannot be inflated")
        if len(outcomes) == 1:
            # Where it has a plain form, one vector needs no compiled code, which loads slowly.
            return np.array([self.of_labels(outcomes[0])])
        return self.batch(outcomes)


# ------------------------------------------------------------------------------
# Preparation: the one place that tells statistics from functions.


def prepare(statistic: StatisticLike, source: Problem | Predictions) -> Prepared:
    """Fix the predictions of a statistic or function; return it as a function of the outcomes.

    ``statistic`` is a :class:`Statistic` or a function ``(probs, labels) -> float``, which may have
    a third parameter ``weights``; ``source`` is a problem or predictions. The :class:`Prepared` has
    the value of the observed outcomes as ``observed`` and can be called with other labels (n,).
    StatisticError if the statistic cannot take the data.
    """
    problem = row_problem(source) if isinstance(source, Predictions) else source
    if isinstance(statistic, Statistic):
        if statistic.of_whole_vector and problem.n_classes == 2:
            refuse_merged(statistic, getattr(problem.data, "merged", 0), problem.n_classes)
        if statistic.of_known_rows and isinstance(problem, FollowupProblem):
            return KnownRows(problem, statistic)
        return statistic.prepare(problem)
    if not callable(statistic) or isinstance(statistic, type):
        raise StatisticError(
            f"statistic must be a statistic such as ECE(15) or a function (probs, labels) -> "
            f"float, not {statistic!r}"
        )
    # A function sees rows: a tally is refused here, and not within it.
    rows_of(problem, statistic, weights=True)
    try:
        weighted = "weights" in inspect.signature(statistic).parameters
    except ValueError:  # some builtins have no signature
        weighted = False
    if problem.weight is not None and not weighted:
        raise StatisticError(
            f"{name_of(statistic)} does not take weights: give it a third parameter named weights"
        )
    return PreparedFunction(problem, statistic, weighted)


@dataclass(frozen=True, eq=False)
class PreparedFunction(LabelStatistic):
    """User-defined function ``(probs, labels) -> float`` with fixed predictions.

    ``function`` gets the ``probs`` (n, K) of the problem and ``labels`` (n,). With ``weighted`` it
    is called with a third argument, the weights (n,) of the rows.
    """

    function: StatisticLike
    weighted: bool
    replicates_at_once: ClassVar[int] = REPLICATES_A_STREAM

    def of_labels(self, labels: IntArray) -> float:
        weights = (self.problem.weight,) if self.weighted else ()
        return float(self.function(self.problem.probs, labels, *weights))


@dataclass(frozen=True, eq=False)
class KnownRows(Prepared):
    """Statistic of censored rows that is computed from the rows with known outcomes.

    ``problem`` holds all rows, ``statistic`` is the one that is prepared. Weights are inverse
    probabilities of not being censored. Each draw has other known rows, so the statistic is
    prepared anew for it.
    """

    problem: FollowupProblem
    statistic: Statistic
    inflatable: ClassVar[bool] = False
    replicates_at_once: ClassVar[int] = REPLICATES_A_STREAM

    def values(self, outcomes: object, factor: float = 1.0) -> FloatArray:
        assert isinstance(outcomes, Drawn)
        values = np.zeros(len(outcomes.signed))  # as of residuals: 0 where no row is known
        for b in np.flatnonzero(outcomes.signed.any(axis=1)):
            rows = RowProblem(self.problem.known_rows(outcomes.signed[b]))
            values[b] = self.statistic.prepare(rows).observed
        return values


def rows_of(
    problem: Problem, statistic: object, *, weights: bool = False, labels: bool = True
) -> Predictions:
    """Return the rows of a problem as Predictions, for a ``statistic`` that needs them.

    The ``statistic`` is named in errors. StatisticError for a tally. Rows with weights raise
    UnsupportedFactError unless ``weights`` says that the statistic takes them. With ``labels``, the
    statistic needs the labels of all rows: rows with follow-up, which leaves some labels unknown,
    then raise StatisticError.
    """
    if not problem.exact:
        raise StatisticError(
            f"{name_of(statistic)} needs the rows: pass their predictions. From a tally, which "
            "keeps sums over micro-cells, come statistics that are made of sums, such as ECE, "
            "DebiasedL2, CoxScore, Kuiper or ScoreGap"
        )
    if labels and problem.only_null is not None:
        raise StatisticError(
            f"{name_of(statistic)} looks at the labels of all rows, of which follow-up leaves some "
            "unknown: take a statistic of residuals, such as ECE or Kuiper, or ICI or CORP"
        )
    if problem.weight is not None and not weights:
        message = f"{name_of(statistic)} does not take weights yet"
        raise UnsupportedFactError(message, fact="weights")
    rows: Predictions = problem.data
    return rows


def refuse_merged(statistic: object, before: int, n_classes: int) -> None:
    """Raise StatisticError for a whole-vector statistic if a lens has merged classes into two.

    ``statistic`` is any statistic; others than whole-vector statistics pass. ``before`` is the
    number of classes before the lens, ``n_classes`` that behind it. Testing the two merged classes
    would be another test than the one asked for.
    """
    if n_classes == 2 < before and isinstance(statistic, Statistic) and statistic.of_whole_vector:
        raise StatisticError(
            f"{name_of(statistic)} tests the whole probability vector, but this lens leaves 2 of "
            f"{before} classes: use the lens Canonical(), or a statistic of two classes, such as "
            "CoxScore(), through this lens",
            [Reading({"lens": "Canonical()"})],
        )


def problem_of(source: Problem | Predictions) -> Problem:
    """Return the problem of predictions; a problem is returned as it is.

    A problem holds fixed predictions, and outcomes to be drawn. Predictions must already be seen
    through a lens: for two classes column 0 is the event.
    """
    return row_problem(source) if isinstance(source, Predictions) else source


def coarseness(statistic: object, problem: Problem) -> str:
    """Return the remark that ``statistic`` loses the order of rows within tally cells; "" for rows.

    ``problem`` is the data. A tally keeps no order of the rows within its fine cells. The remark is
    a sentence that names the statistic, for the notes of results.
    """
    return "" if problem.exact else f"{type(statistic).__name__} sees nothing within a micro-cell"
