"""Problems: units with fixed predictions, their residuals, and partitions of them into cells.

A unit is a row or a micro-cell of a tally. :class:`Problem` is the interface that statistics
use, :class:`Cells` a partition, :class:`ResidualSums` the sums that a statistic receives.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal, Protocol, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from caltest._base import FloatArray, IntArray
from caltest._base.arrays import AnyArray
from caltest._base.written import name_of
from caltest.data import Predictions
from caltest.data.binning import Binning, as_binning
from caltest.errors import StatisticError
from caltest.nulls import Scheme, Shortcut

#: Labels (B, n), ``Flips``, ``Counts`` or ``Drawn``: a problem makes its own, and knows no others.
Outcomes: TypeAlias = Any


class Evaluated(Protocol):
    """Protocol of the statistics that resamplers evaluate: a prepared one, or several side by side.

    ``values`` evaluates B sets of outcomes at once; ``counted`` says whether redrawn labels can be
    counted in cells as they are drawn, without being kept.
    """

    @property
    def counted(self) -> tuple[Any, ...]:
        """The sum statistics this consists of, if all can count redrawn labels as drawn; else ().

        A sum statistic is a :class:`~caltest.statistics.prepared.SumStatistic`, a function of
        residual sums in cells.
        """

    def values(self, outcomes: Outcomes, factor: float = 1.0) -> FloatArray:
        """Return the values for B sets of outcomes: (B,), or (B, S) for S statistics.

        ``outcomes`` are made by ``Problem.outcomes`` from label vectors or event counts. Residuals
        are multiplied by √factor, which stands for the overdispersion of clusters.
        """


#: Whether squares of residuals are wanted by cell, or all in one.
Squares = Literal["cells", "whole"] | None


#: Which norm of the sums of several classes is enough: their l1, squared l2, or largest.
NORMS = ("l1", "l2 squared", "largest")


#: Sums that a statistic does not ask for.
ABSENT: FloatArray = np.empty((0, 0, 0))


@dataclass(frozen=True, eq=False)
class ResidualSums:
    """Sums of residuals that a statistic receives, for B sets of outcomes.

    ``cells`` (B, L, d) are sums of the residuals in the cells, not necessarily in C order: d = 1,
    the event, for two classes, and K for more; or their norms, d = 1. ``squares``, (B, L) or (B,
    1), are sums of w² |r|², in the cells or over all; ``linear`` (B, T) are sums of w r · g_t for
    the score tables g_t of the statistic. A field that the statistic does not need is ``ABSENT``,
    an empty array.
    """

    cells: FloatArray
    squares: FloatArray = field(default_factory=ABSENT.copy)
    linear: FloatArray = field(default_factory=ABSENT.copy)

    def normed(self, norm: int | None) -> ResidualSums:
        """Return these sums with norms over classes, ``cells`` (B, L, 1), in place of (B, L, K).

        ``norm`` says which: 0 is the l1 norm, 1 the squared l2 norm, 2 the largest absolute value,
        as in ``NORMS``. For None, and where there is one component already, the sums are returned
        as they are. B is the number of sets of outcomes, L the number of cells, K the number of
        classes.
        """
        if norm is None or self.cells.shape[2] <= 1:
            return self
        gaps = np.square(self.cells) if norm == 1 else np.abs(self.cells)
        gaps = gaps.max(axis=2, keepdims=True) if norm == 2 else gaps.sum(axis=2, keepdims=True)
        return ResidualSums(gaps, self.squares, self.linear)

    def inflated(self, factor: float) -> ResidualSums:
        """Return these sums as if all residuals were √factor times as large.

        ``cells`` and ``linear`` are multiplied by √factor, ``squares`` by ``factor``. Call it
        before :meth:`normed`, as a squared norm would need another factor.
        """
        if factor == 1.0:
            return self
        root = factor**0.5
        return ResidualSums(root * self.cells, factor * self.squares, root * self.linear)


@dataclass(frozen=True, eq=False)
class LinearTerm:
    """Sum Σ w (g(y) − E g) of a score g of the outcomes, with its moments under calibration.

    ``table`` (U, K) is the score g of every unit (row, or cell of a tally) under each of K labels,
    for redraws. The numbers are sums over rows with weights w, moments being under the predicted
    probabilities: ``observed`` is Σ w (g(y) − E g), ``promised`` Σ w E g, ``variance`` Σ w² Var g,
    and ``covariance`` Σ w² Cov(y, g) with y the indicator of the event. ``remark`` says how the
    table is coarser than the rows, "" if it is not.
    """

    table: FloatArray
    observed: float
    promised: float
    variance: float
    covariance: float = 0.0
    remark: str = ""


class Problem(ABC):
    """Base class of problems: units with fixed predictions and random outcomes.

    A unit is a row, or a cell of a tally. ``probs`` (U, K) are the predictions, or the mean of a
    cell; ``labels`` (U,) the observed labels, or numbers of events; ``count`` (U,) the rows of a
    unit, None if each is one; ``weight`` (U,) the weight of each of its rows, None if all are
    equal. ``n`` is the number of rows, and ``data`` the origin: predictions, or the cells of a
    tally.

    ``n_clusters`` is None for independent rows, ``grid`` the number of cells of a tally's grid and
    None for rows. ``exact`` says that units are rows, ``designed`` that rows have clusters or
    weights. ``only_null`` is the one scheme by which outcomes can be drawn, None where labels can
    be. ``remarks`` are sentences for results on the source of the numbers.
    """

    data: Any
    n: int
    probs: FloatArray
    labels: IntArray
    count: FloatArray | None
    weight: FloatArray | None
    n_clusters: int | None
    #: Widths of its micro-cells in [0, 1]; None for rows.
    grid: int | None = None
    #: Whether its units are rows: drawn outcomes then know as much of them as the observed ones.
    exact: bool
    #: Whether its rows have clusters or weights.
    designed: bool = False
    #: The only null it has; None where labels are drawn, or have a law.
    only_null: Scheme | None = None
    #: Remarks for results on the source of the numbers.
    remarks: tuple[str, ...] = ()

    @property
    def n_classes(self) -> int:
        return int(self.probs.shape[1])

    @property
    def d(self) -> int:
        """Number of residual components in use: 1 (the event) for two classes, else all K."""
        return 1 if self.n_classes == 2 else self.n_classes

    @cached_property
    def mass(self) -> FloatArray | None:
        """Total weight of the rows of every unit, (U,); None where all of them have weight 1.

        A unit is one of U rows, or of U cells of a tally.
        """
        if self.count is None:
            return self.weight
        return self.count if self.weight is None else self.count * self.weight

    def event(self, statistic: object) -> FloatArray:
        """Return the probability of the event in each of U units, (U,), for two classes.

        A unit is a row, or a cell of a tally with its mean prediction. After ``OneVsRest(c)`` the
        event is class c, after ``TopK(1)`` that the top class is right. For more classes
        StatisticError is raised, which names ``statistic``, the statistic that needs the event.
        """
        if self.n_classes != 2:
            raise StatisticError(
                f"{name_of(statistic)} is for two classes, but there are {self.n_classes}: look "
                "through a two-class lens such as TopK(1) or OneVsRest(c)"
            )
        return np.ascontiguousarray(self.probs[:, 0])

    @property
    @abstractmethod
    def events(self) -> IntArray:
        """Number of rows with the event in every unit, integers (U,).

        A unit is one of U rows, or of U cells of a tally.
        """

    @property
    @abstractmethod
    def impossible(self) -> IntArray:
        """Indices of the rows whose observed label had probability 0, integers.

        A tally keeps only the number of such rows: there the array has that length and holds zeros.
        """

    @property
    @abstractmethod
    def observed(self) -> Outcomes:
        """The observed outcomes as one set (B = 1), in the form that :meth:`outcomes` returns.

        They are label vectors (1, n) for rows, event counts (1, U) for the U cells of a tally, and
        signed weights for follow-up.
        """

    @abstractmethod
    def outcomes(self, labels: AnyArray) -> Outcomes:
        """Return outcomes in the form that :meth:`sums` and ``Prepared.values`` take.

        ``labels`` are B label vectors (B, n), or event counts (B, U) of a tally's U cells.
        Follow-up has no labels of all rows, and raises StatisticError.
        """

    def outcomes_through(self, shown: Problem) -> Callable[[Outcomes], Outcomes]:
        """Return a function that turns outcomes of this problem into outcomes of ``shown``.

        ``shown`` is the problem of the same data through another lens (another choice of assessed
        probabilities), so that one redraw serves several lenses.
        """
        return lambda outcomes: outcomes

    @abstractmethod
    def numbers(self, bins: Binning) -> IntArray:
        """Return the bin number of every unit (row, or cell of a tally), integers (U,).

        ``bins`` is the binning, a function from probabilities (U, K) to integers.
        """

    def bins_remark(self, bins: Binning) -> str:
        """Return in words how cells made by ``bins`` differ from the cells that rows would have.

        ``bins`` is a binning, a function from probabilities to integers. It is "" if they do not
        differ, as for rows; in a tally bins consist of whole fine cells.
        """
        return ""

    @property
    @abstractmethod
    def levels(self) -> IntArray:
        """Rank of every unit's event probability, integers (U,) from 0, for two classes.

        A unit is a row, or a cell of a tally. Equal predictions have equal ranks.
        """

    @property
    @abstractmethod
    def variance(self) -> FloatArray:
        """Variance Σ w² p (1 − p) of the weighted event count under calibration, by unit, (U,).

        The sum is over the rows of a unit, one row or those in a cell of a tally.
        """

    def frequencies(self, cells: Cells) -> FloatArray:
        """Return the weighted observed frequency of the event in each of the L ``cells``, (L,).

        ``cells`` is the partition of the rows. Frequencies are in [0, 1].
        """
        weight = 1.0 if self.weight is None else self.weight
        return np.asarray(cells.sum(weight * self.events) / cells.mass)

    def gaps(self, cells: Cells, outcomes: Outcomes) -> FloatArray:
        """Return observed − predicted frequency of the event in each of the L ``cells``, (B, L).

        ``outcomes`` are B sets of outcomes, made by :meth:`outcomes`; ``cells`` is the partition of
        rows.
        """
        return np.asarray(self.sums(outcomes, cells).cells[:, :, 0] / cells.mass)

    def variance_of(self, cells: Cells, equal: bool = False) -> FloatArray:
        """Return the variance of Σ w (y − p) in each of L ``cells`` under calibration, (L,).

        ``cells`` is the partition of the rows, y the event, p its probability and w the weight of a
        row. With ``equal`` the variance is computed as if all rows had the mean prediction of their
        cell.
        """
        if not equal:
            return np.asarray(cells.sum(self.variance))
        expected = cells.expected[:, 0]
        missed = cells.sum(self.probs[:, 1] * (1.0 if self.mass is None else self.mass))
        return np.asarray(expected * missed * cells.square_mass / cells.mass**2)

    @property
    @abstractmethod
    def squared_variance(self) -> FloatArray:
        """Σ (w² p (1 − p))² of the event over the rows of every unit, (U,).

        A unit is a row, or a cell of a tally; p is the predicted probability, w the weight of a
        row.
        """

    @property
    def squares(self) -> FloatArray:
        """Squared weighted residual w² |r|² of every row under every label, (n, K); rows only.

        r is the residual, the indicator of the label less the predicted probabilities.
        NotImplementedError for a tally.
        """
        raise NotImplementedError

    @abstractmethod
    def linear(self, name: str, score: Callable[[FloatArray], FloatArray]) -> LinearTerm:
        """Return the sum Σ w (g(y) − E g) of the score g called ``name``, with its moments.

        ``score`` maps probabilities (U, K) of units to the score of each label, same shape.
        ``name`` is "brier", "log", "logit" or any other: tallies know the exact sums of these
        three, and evaluate other scores at the mean prediction of each cell, as ``remark`` of the
        result says. The :class:`LinearTerm` has the observed sum, its variance under calibration,
        and the table of scores (U, K).
        """

    @abstractmethod
    def tables(self, scores: FloatArray) -> FloatArray:
        """Return score tables g_t centred and weighted, w (g_t(y) − E g_t), for :meth:`sums`.

        ``scores`` (T, U, K) are T scores of each of K labels in U units (rows, or cells of a
        tally). The result has the same shape.
        """

    @abstractmethod
    def sums(
        self, outcomes: Outcomes, cells: Cells | None, squares: Squares = None,
        tables: FloatArray | None = None, norm: int | None = None,
    ) -> ResidualSums:  # fmt: skip
        """Return residual sums of B sets of outcomes in L cells, sums of squares, and of scores.

        ``outcomes`` are made by :meth:`outcomes`. ``cells`` is the partition of the rows; None adds
        up no cells. ``squares`` asks for sums of squared residuals: "cells" in each cell, "whole"
        over all rows, None for none. ``tables`` (T, U, K) are T score tables of U units, as
        :meth:`tables` returns them. With ``norm`` (0 l1, 1 squared l2, 2 largest absolute value)
        the sums of several classes may be norms over them already. The result has the fields
        ``cells`` (B, L, d), ``squares`` (B, L) or (B, 1), and ``linear`` (B, T), with d = 1 for two
        classes or norms, else K.
        """

    @abstractmethod
    def residuals(self, outcomes: Outcomes) -> tuple[FloatArray, FloatArray]:
        """Return (residuals, squares): Σ w r, (B, U, d), and Σ w² |r|², (B, U), of each of U units.

        Sums are over the rows of a unit, one row or those in a cell of a tally; w is the weight of
        a row and r its residual, observed − predicted: d = 1 component for two classes, else K.
        ``outcomes`` are B sets, made by :meth:`outcomes`.
        """

    @abstractmethod
    def law(self, units: IntArray) -> tuple[int, FloatArray, float]:
        """Return the distribution under calibration of the weighted number of events in some units.

        ``units`` are indices of units (rows, or cells of a tally). The result is (lowest count,
        probabilities of it and of the counts that follow in steps of 1, bound on their error).
        StatisticError for follow-up, whose events have no such law.
        """

    @abstractmethod
    def redraws(self, scheme: Scheme, statistic: Evaluated, factor: float = 1.0) -> Shortcut:
        """Return a resampler that draws outcomes by ``scheme`` and evaluates ``statistic`` on them.

        ``scheme`` says how outcomes are drawn under the null, such as ``RedrawLabels()``;
        ``statistic`` is a prepared statistic, or several side by side. ``replicates(seed, first,
        count)`` of the resampler returns values (count,), or (count, S) for S statistics. Residuals
        are multiplied by √factor.
        """

    @abstractmethod
    def expand(self) -> tuple[Predictions, FloatArray, IntArray]:
        """Return (rows, times, unit): m rows, as Predictions, that stand for all units.

        ``times`` (m,) is the number of observations each row stands for, ``unit`` (m,) the index of
        the unit (row, or cell of a tally) it belongs to.
        """

    def quantiles(self, shares: ArrayLike) -> FloatArray:
        """Return quantiles of the event probabilities at ``shares`` in [0, 1], same shape.

        They are predictions of units, so that for tallies they are exact up to the width of a cell.
        """
        p = self.probs[:, 0]
        order, ranks = np.argsort(p), np.rint(np.asarray(shares) * (self.n - 1))
        count = np.ones(p.size) if self.count is None else self.count[order]
        return p[order[np.searchsorted(np.cumsum(count), ranks, side="right")]]

    def means(self) -> tuple[float, float]:
        """Return (mean prediction, observed frequency) of the event, weighted over all rows."""
        w = np.ones(len(self.probs)) if self.weight is None else self.weight
        mass = w if self.count is None else w * self.count
        shares = float(mass @ self.probs[:, 0]), float(w @ self.events)
        return shares[0] / float(mass.sum()), shares[1] / float(mass.sum())

    @property
    def products(self) -> tuple[float, float]:
        """Sums (Σ w p², Σ w p y) over all rows and residual components, two floats.

        w is the weight of a row, p a predicted probability, y the indicator of its label; there is
        one component, the event, for two classes, else one for each class.
        """
        rows = self.tied_rows()
        p, w = rows.probs[:, : self.d], 1.0 if rows.weights is None else rows.weights[:, None]
        y = rows.labels[:, None] == np.arange(self.d)
        return float((w * p * p).sum()), float((w * p * y).sum())

    @property
    def bounds(self) -> tuple[FloatArray, FloatArray]:
        """(low, high): smallest and largest event probability in each unit, (U,) each.

        A unit is one of U rows, where both are its prediction, or of U cells of a tally.
        """
        return self.probs[:, 0], self.probs[:, 0]

    @property
    def quadrature(self) -> tuple[FloatArray, FloatArray]:
        """(predictions (A, 2), counts (A,)): A points whose moments equal the moments of the rows.

        Functions of the prediction are averaged over them. They are the rows themselves unless the
        problem is a tally. Columns are the event and its complement; ``counts`` are numbers of
        rows.
        """
        return self.probs, np.ones(len(self.probs)) if self.count is None else self.count

    def tied_rows(self) -> Predictions:
        """Return the rows as Predictions.

        For a tally they are weighted rows that stand for it, with equal predictions within a cell.
        """
        return self.expand()[0]

    @property
    @abstractmethod
    def surprises(self) -> float:
        """Expected number of outcomes that are not the most likely class, under calibration.

        It is Σ m over rows with m = 1 − max p; for rows with weights w, (Σ w m)² / Σ w² m.
        """


def gathered(squares: FloatArray, which: Squares) -> FloatArray:
    """Return sums of squares (B, L) of L cells in the form a statistic asks for by ``which``.

    "cells" keeps them by cell, (B, L), "whole" adds them up to (B, 1), None returns ``ABSENT``, an
    empty array. B is the number of sets of outcomes.
    """
    if which is None:
        return ABSENT
    return squares if which == "cells" else squares.sum(axis=1)[:, None]


# ------------------------------------------------------------------------------
# Partitions of the units of a problem, and the laws of the events in them.


#: Total weight of a cell up to which its exact law is computed.
MAX_MASS = 1e5


@dataclass(frozen=True, eq=False)
class Cells:
    """A partition of the units of a problem into L occupied cells.

    Cell b has the units ``order[starts[b]:starts[b + 1]]``. A unit is one of the U rows, or of the
    U fine cells of a tally. ``problem`` has their predictions and outcomes. ``order`` (U,) lists
    the units cell by cell, within a cell in their own order; ``starts`` (L + 1,) has the start of
    each cell, and the end of the last. ``bins`` is the binning that made them, None if none did;
    ``remark`` says how they differ from the cells of the rows, "" if they do not.
    """

    problem: Problem = field(repr=False)
    order: IntArray = field(repr=False)
    starts: IntArray = field(repr=False)
    bins: Binning | None = None
    remark: str = ""

    @classmethod
    def of(cls, bins: Binning | int, problem: Problem) -> Cells:
        """Partition the U units of a problem (rows, or cells of a tally) by a binning.

        ``bins`` maps probabilities to integers; a number m means ``UniformBins(m)``. Units with
        equal numbers share a cell. StatisticError if the binning does not return one integer for
        every row. O(U) after the binning.
        """
        bins = as_binning(bins)
        numbers = np.asarray(problem.numbers(bins))
        if numbers.shape != (len(problem.probs),) or numbers.dtype.kind not in "iu":
            raise StatisticError(
                f"the binning {name_of(bins)} must return one integer per row, an array of shape "
                f"({len(problem.probs)},); it returned {numbers.dtype} of shape {numbers.shape}"
            )
        return cls.by_number(numbers, problem, bins, problem.bins_remark(bins))

    @classmethod
    def by_number(
        cls, numbers: IntArray, problem: Problem, bins: Binning | None = None, remark: str = ""
    ) -> Cells:
        """Group the U units of a problem (rows, or cells of a tally) by equal numbers; O(U).

        ``numbers`` (U,) are integers, by which cells are ordered. ``bins`` is the binning that made
        them, if one did; ``remark`` says how the cells differ from the cells of the rows, "" if
        they do not.
        """
        if numbers.min() >= 0 and numbers.max() < 2**16:
            numbers = numbers.astype(np.uint16)  # sorted by radix: O(U)
        order = np.argsort(numbers, kind="stable")
        ordered = numbers[order]
        starts = np.flatnonzero(np.append(True, ordered[1:] != ordered[:-1]))
        return cls(problem, order, np.append(starts, numbers.size), bins, remark)

    @classmethod
    def levels(cls, problem: Problem) -> Cells:
        """Group the U units of a ``problem`` by equal event probability, in increasing order.

        Units are the rows of the data, or the fine cells of a tally. For two classes. O(U log U).
        """
        return cls.by_number(problem.levels, problem)

    @classmethod
    def whole(cls, problem: Problem) -> Cells:
        """Return the partition of a ``problem`` that has one cell with all units.

        Units are the rows of the data, or the fine cells of a tally.
        """
        size = len(problem.probs)
        return cls(problem, np.arange(size), np.array([0, size]))

    def __len__(self) -> int:
        return self.starts.size - 1

    @cached_property
    def counts(self) -> IntArray:
        """Number of rows in each of the L cells, integers (L,)."""
        count = self.problem.count
        return np.diff(self.starts) if count is None else np.rint(self.sum(count)).astype(np.int64)

    @cached_property
    def mass(self) -> FloatArray:
        """Total weight of the rows in each of the L cells, (L,); their number without weights."""
        mass = self.problem.mass
        return self.counts.astype(np.float64) if mass is None else np.asarray(self.sum(mass))

    @cached_property
    def square_mass(self) -> FloatArray:
        """Σ w² over the rows in each of the L cells, (L,), with w the weight of a row."""
        problem = self.problem
        if problem.weight is None or problem.mass is None:
            return self.mass
        return np.asarray(self.sum(problem.mass * problem.weight))

    @cached_property
    def expected(self) -> FloatArray:
        """Expected weight of each label in each of the L cells, Σ w p, (L, d).

        w is the weight of a row and p its probabilities. For two classes d = 1, the event, else d
        is the number of classes.
        """
        problem = self.problem
        probs = problem.probs[:, : problem.d]
        mass = problem.mass
        return np.asarray(self.sum(probs if mass is None else mass[:, None] * probs))

    @cached_property
    def of_unit(self) -> IntArray:
        """Index of the cell of every unit (row, or fine cell of a tally), integers (U,)."""
        cells = np.empty(self.order.size, dtype=np.int64)
        cells[self.order] = np.repeat(np.arange(len(self)), np.diff(self.starts))
        return cells

    @cached_property
    def _in_order(self) -> bool:
        return bool((np.diff(self.order) == 1).all())

    def sum(self, values: AnyArray, axis: int = 0) -> AnyArray:
        """Return sums of unit values over the L cells: the axis of length U becomes L.

        A unit is one of U rows, or of U fine cells of a tally. ``axis`` is the axis of units in
        ``values``. Booleans are counted.
        """
        ordered = values if self._in_order else np.take(values, self.order, axis=axis)
        if ordered.dtype == np.bool_:
            ordered = ordered.astype(np.int64)
        return np.add.reduceat(ordered, self.starts[:-1], axis=axis)

    def mean(self, values: AnyArray) -> AnyArray:
        """Return weighted means of unit values over the L cells, shape (…, L).

        ``values`` (…, U) has one for each of U rows, or of U fine cells of a tally, which have the
        total weight of their rows.
        """
        mass = self.problem.mass
        return self.sum(values if mass is None else values * mass, axis=-1) / self.mass

    @property
    def lawful(self) -> bool:
        """True if the exact law of each cell's weighted number of events can be computed.

        Weights have to be whole numbers, and, unless all are 1, add up to at most 100 000 in a
        cell.
        """
        weight = self.problem.weight
        if weight is None or bool((weight == 1.0).all()):
            return True
        return bool((weight == np.rint(weight)).all()) and float(self.mass.max()) <= MAX_MASS

    def laws(self) -> Iterator[tuple[int, FloatArray, float]]:
        """Yield the distribution of the weighted number of events of each cell under calibration.

        Each is (lowest weight, probabilities of it and of the weights that follow in steps of 1,
        bound on their error), as from ``poisson_binomial``.
        """
        for b in range(len(self)):
            yield self.problem.law(self.order[self.starts[b] : self.starts[b + 1]])


@dataclass(frozen=True)
class Estimand:
    """Population error that a statistic estimates: ``factor`` times a size over its cells.

    The ``size`` is Σ_b π_b Σ_k |Δ_bk|, Σ_b π_b |Δ_b|² or max_b |Δ_b|, with π_b the share of cell b
    and Δ_b its mean residual; for two classes Δ_b is the first component. Errors lie in [0,
    ``largest``]. A "signed" size is Σ_b π_b Δ_b itself, in [−``largest``, ``largest``]; ``root``
    and ``squared`` say whether the statistic is the root of the size, or the largest gap squared.
    """

    size: Literal["absolute", "squared", "largest", "signed"]
    factor: float = 1.0
    largest: float = 1.0
    root: bool = False
    squared: bool = False

    def scaled(self, value: float) -> float:
        """Return the value of the statistic for a ``value`` of the size of the error over cells.

        It is √max(value, 0) if the statistic is the root of the size, else ``factor`` times it. The
        inverse of :meth:`unscaled`.
        """
        return float(np.sqrt(max(value, 0.0))) if self.root else self.factor * value

    def unscaled(self, value: float) -> float:
        """Return the size of the error over cells for a ``value`` (≥ 0) of the statistic.

        It is value² if the statistic is the root of the size, else value / ``factor``. The inverse
        of :meth:`scaled`.
        """
        return value**2 if self.root else value / self.factor
