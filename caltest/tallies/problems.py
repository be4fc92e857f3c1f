"""Problems of tallies, plain and clustered, and the exact laws of their cells.

A problem answers what statistics ask of rows: residual sums by cell, scores, laws.
:class:`TallyProblem` reads a plain tally, :class:`ClusteredProblem` a tally of clusters.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, ClassVar, Literal, Self

import numpy as np
from numpy.fft import irfft
from numpy.typing import NDArray

from caltest._base import FloatArray, IntArray
from caltest._base.arrays import AnyArray
from caltest._base.written import name_of
from caltest.data import Predictions
from caltest.data.binning import EDGE_TOLERANCE, Binning, EdgeBins, QuantileBins, UniformBins
from caltest.data.facts import in_whole_numbers
from caltest.errors import StatisticError
from caltest.nulls import Batches, RedrawLabels, Scheme, Shortcut, WildSigns
from caltest.nulls.lanes import GAMMA, UNIFORM_STEP, Seed, lane_kernel, mixed, stream_keys
from caltest.nulls.laws import LAW_ROUNDING, NEGLIGIBLE, fast_length, poisson_binomial
from caltest.statistics.problem import (
    ABSENT,
    Cells,
    Evaluated,
    LinearTerm,
    Problem,
    ResidualSums,
    Squares,
    gathered,
)
from caltest.statistics.rows import Flips
from caltest.tallies.clustered import FEWEST_CLUSTERS, ClusteredTally
from caltest.tallies.grid import FINE, POSITIONS, AnyTally, Grid, mean_position, total_of
from caltest.tallies.tally import Tally

# ------------------------------------------------------------------------------
# What micro-cells of tallies have alike, whichever sums are kept of their rows.


class MicroCells(Problem):
    """Base class of problems made from tallies: the units are the U fine cells of the tally.

    ``count`` (U,) are the numbers of rows of the cells, and ``place`` (U,) is where each lies, in
    widths of the grid; edges are whole numbers. ``closed`` names the sides, "left" and "right", on
    which bins may be closed to consist of whole cells. Only sums are known of the rows in a cell,
    such as their number, events and powers of predictions.
    """

    exact = False
    count: FloatArray
    #: Where a micro-cell lies, in widths of the grid: edges are whole.
    place: FloatArray
    #: Which bins its cells make up: closed on either side, or on one.
    closed: ClassVar[tuple[str, ...]] = ("left", "right")

    @cached_property
    def mass(self) -> FloatArray:
        return self.count if self.weight is None else self.count * self.weight

    @property
    @abstractmethod
    def excess(self) -> FloatArray:
        """Σ (y − p), observed − predicted, over the rows of each of U fine cells, (U,)."""

    @property
    @abstractmethod
    def squares(self) -> FloatArray:
        """Σ p² over the rows of each of U fine cells, (U,); p is the probability of the event."""

    @property
    @abstractmethod
    def event_sums(self) -> FloatArray:
        """Σ y p over the rows of each of the U fine cells, shape (U,).

        y is 1 for the event, and p its probability.
        """

    if TYPE_CHECKING:  # a field of each kind

        @property
        def tally(self) -> AnyTally: ...

    @property
    def impossible(self) -> IntArray:
        return self.tally.impossible

    @property
    def data(self) -> Self:
        return self

    @property
    def merged(self) -> int:
        """Number of classes of the model, of which the lens of the tally made a binary event."""
        return self.tally.n_classes

    @property
    def events(self) -> IntArray:
        return self.labels

    def numbers(self, bins: Binning) -> IntArray:
        if isinstance(bins, QuantileBins):  # cut as rows are, rows of one micro-cell tied
            cell = self.levels
            ends = np.cumsum(np.bincount(cell, self.count))
            j, n = np.arange(1, bins.n_bins), round(float(ends[-1]))
            if bins.closed == "right":
                cuts = np.searchsorted(ends, -(-j * n // bins.n_bins), side="left")
                return np.searchsorted(np.unique(cuts), cell, side="left")
            cuts = np.searchsorted(ends, j * n // bins.n_bins, side="right")
            return np.searchsorted(np.unique(cuts[cuts > 0]), cell, side="right")
        if isinstance(bins, (UniformBins, EdgeBins)) and bins.closed in self.closed:
            edges = np.asarray(bins.edges) * self.grid
            if np.abs(edges - np.rint(edges)).max(initial=0.0) < 1e-6:
                side: Literal["left", "right"] = "left" if bins.closed == "right" else "right"
                return np.searchsorted(np.rint(edges), self.place, side=side)
        raise StatisticError(
            f"{name_of(bins)} is not made of the cells of a tally, 1/{self.grid} wide: take "
            f"UniformBins or EdgeBins whose edges are whole multiples of 1/{self.grid}, or "
            "QuantileBins, or tally on another grid (of clusters, with another n_cells)"
        )

    def bins_remark(self, bins: Binning) -> str:
        equal = isinstance(bins, QuantileBins)
        return "bins are of equal mass up to the rows of a micro-cell" if equal else ""

    def tables(self, scores: FloatArray) -> FloatArray:
        """Return the change of T scores from no event to event in each fine cell, (T, U).

        ``scores`` (T, U, 2) are the scores of event and non-event in U cells. It is the form that
        :meth:`sums` takes.
        """
        return np.asarray(scores[:, :, 0] - scores[:, :, 1])

    def of_means(self, name: str, table: FloatArray) -> LinearTerm:
        """Return the sum Σ w (g(y) − E g) of a score g, taken at the mean predictions of the cells.

        ``table`` (U, 2) is the score of event and non-event in each of U cells, ``name`` what
        remarks call it. The :class:`LinearTerm` has the observed sum, and its moments under
        calibration.
        """
        w = 1.0 if self.weight is None else self.weight
        slope, mean = table[:, 0] - table[:, 1], (self.probs * table).sum(axis=1)
        return LinearTerm(
            table,
            observed=float((w * self.excess) @ slope),
            promised=float(self.mass @ mean),
            variance=float(self.variance @ slope**2),
            covariance=float(self.variance @ slope),
            remark=f"{name} scores are taken at the mean predictions of micro-cells",
        )


#: Numbers of events that are drawn together.
EVENTS_A_BATCH = 2**22


@dataclass(frozen=True, eq=False)
class Counts:
    """Outcomes of a tally: numbers of events in its U cells, ``events`` (B, U), for B sets.

    ``products`` (B, U) are the sums of predictions of the events in each cell; None where they are
    not known, as for drawn events.
    """

    events: FloatArray
    products: FloatArray | None = None


@dataclass(frozen=True, eq=False)
class TallyProblem(MicroCells):
    """Problem of a tally: its cells are the units, with numbers of events as outcomes.

    Arrays have an entry for each of the U cells: ``labels`` are the observed numbers of events,
    ``count`` the numbers of rows, ``probs`` the mean predictions, ``key`` and ``stratum`` the
    numbers of the micro-cell and of its group of equally weighted rows, ``moments`` (U, 8) the sums
    of powers, ``row_weight`` the weight of each row of a cell, in whole numbers where ratios allow.
    ``centre``, ``rest`` = 1 − centre and ``half`` width describe the cells, and ``place`` is where
    they lie in widths of the grid. Observed sums know the rows by their moments; drawn events have
    the mean prediction of their cell.
    """

    tally: Tally = field(repr=False)
    key: IntArray = field(repr=False)
    stratum: IntArray = field(repr=False)
    moments: IntArray = field(repr=False)
    probs: FloatArray = field(repr=False)
    labels: IntArray = field(repr=False)
    count: FloatArray = field(repr=False)
    #: The weight of each row of a micro-cell, in whole numbers where ratios allow.
    row_weight: FloatArray = field(repr=False)
    #: Centres, 1 − centres and half widths.
    centre: FloatArray = field(repr=False)
    rest: FloatArray = field(repr=False)
    half: FloatArray = field(repr=False)
    place: FloatArray = field(repr=False)

    n_clusters = None

    @classmethod
    def of(cls, source: AnyTally) -> Self:
        """Return the problem of a tally, or of its member for the usual lens; O(U) for U cells.

        ``source`` is the tally. A problem has its cells as units, with fixed predictions and
        numbers of events to be drawn. StatisticError for an empty tally.
        """
        tally = source.through(None)
        assert isinstance(tally, Tally)
        if tally.n == 0:
            raise StatisticError("the tally is empty: add rows first")
        order = np.lexsort((tally.stratum, tally.key))
        key, stratum, sums = tally.key[order], tally.stratum[order], tally.sums[order]
        centre, rest, half, place = Grid(tally.grid).of(key)
        offset = half * mean_position(sums)
        probs = np.column_stack([centre + offset, rest - offset])
        weights = in_whole_numbers(tally.strata)[stratum]
        return cls(
            tally, key, stratum, sums, probs, sums[:, 5], sums[:, 0].astype(np.float64), weights,
            centre, rest, half, place,
        )  # fmt: skip

    @property
    def grid(self) -> int:  # type: ignore[override]
        return self.tally.grid

    @property
    def n(self) -> int:  # type: ignore[override]
        return self.tally.n

    @property
    def weight(self) -> FloatArray | None:  # type: ignore[override]
        return None if self.tally.weights is None else self.row_weight

    @property
    def observed(self) -> Counts:
        return Counts(self.labels[None, :].astype(np.float64), self.event_sums[None, :])

    def outcomes(self, labels: AnyArray) -> Counts:
        return Counts(np.asarray(labels, dtype=np.float64))

    @property
    def levels(self) -> IntArray:
        """Rank of each cell's prediction, integers (U,); equal if only weights differ.

        U is the number of fine cells of the tally, counted for each weight of rows.
        """
        return np.unique(self.key, return_inverse=True)[1].ravel()

    def moment(self, *coefficients: FloatArray | float) -> FloatArray:
        """Return Σ_i Σ_k c_k (p_i − centre)^k over the rows i of each of U cells, shape (U,).

        ``coefficients`` are the c_k, k = 0, 1, … up to 4, numbers or arrays (U,); p_i is the
        prediction of row i and centre the middle of its fine cell.
        """
        sums = [self.count, self.count * mean_position(self.moments)]
        sums += [self.moments[:, k] / POSITIONS for k in range(2, 5)]
        powers = (self.half**k * sums[k] for k in range(5))
        return np.asarray(sum(c * m for c, m in zip(coefficients, powers, strict=False)))

    # With a = centre (1 − centre), b = 1 − 2 centre and d = p − centre: p (1 − p) = a + b d − d².
    @property
    def _curve(self) -> tuple[FloatArray, FloatArray]:
        return self.centre * self.rest, self.rest - self.centre

    @cached_property
    def variance(self) -> FloatArray:
        return self.row_weight**2 * self.moment(*self._curve, -1.0)

    @cached_property
    def squared_variance(self) -> FloatArray:
        a, b = self._curve
        return self.row_weight**4 * self.moment(a * a, 2.0 * a * b, b * b - 2.0 * a, -2.0 * b, 1.0)

    @cached_property
    def squares(self) -> FloatArray:
        return self.moment(self.centre**2, 2.0 * self.centre, 1.0)

    @cached_property
    def excess(self) -> FloatArray:
        return self.labels - self.count * self.probs[:, 0]

    @cached_property
    def event_sums(self) -> FloatArray:
        return self.labels * self.centre + self.half * self.moments[:, 6] / POSITIONS

    def total(self, name: str, power: int = 1) -> float:
        """Return the total ``name`` over all rows, weighted by the row weights to the given power.

        ``name`` is one of ``TOTALS``, such as "entropy", the expected log score, or "rz", Σ (y − p)
        z with log-odds z.
        """
        return float(
            in_whole_numbers(self.tally.strata) ** power @ total_of(self.tally.totals, name)
        )

    @cached_property
    def atoms(self) -> Atoms:
        """Gauss quadrature nodes that stand for the rows of each fine cell of the tally.

        One or two predictions stand for the rows of a cell, with counts that match their moments.
        """
        return Atoms.of(self.moments, self.centre, self.rest, self.half)

    @property
    def quadrature(self) -> tuple[FloatArray, FloatArray]:
        some = self.atoms.times > 0.0
        probs = np.column_stack([self.atoms.p[some], self.atoms.rest[some]])
        return probs, self.atoms.times[some]

    def linear(self, name: str, score: Callable[[FloatArray], FloatArray]) -> LinearTerm:
        """Return the sum Σ w (g(y) − E g) of a score g, with its moments under calibration.

        ``name`` is "brier", "log" or "logit", whose sums a tally keeps, or another name: the score
        is then taken at the mean prediction of each cell, as ``remark`` of the result says.
        ``score`` maps probabilities (U, 2) of U cells to the score of event and non-event, same
        shape. The :class:`LinearTerm` has the observed sum, its mean and variance, and the table of
        scores (U, 2).
        """
        w, p, a_total = self.row_weight, self.probs, self.total
        cut = np.clip(p, 1e-300, None) if name == "log" else p
        table = np.where(cut > 0.0, score(cut), 0.0)
        if name == "brier":  # Σ r (1 − 2p) = Σ y − 2 Σ y p − Σ p + 2 Σ p²
            a, b = self._curve  # p (1 − p) (1 − 2p)² in powers of p − centre
            each = a * b * b, b**3 - 4.0 * a * b, 4.0 * a - 5.0 * b * b, 8.0 * b, -4.0
            gap = self.excess + 2.0 * (self.squares - self.event_sums)
            promised = float((self.variance / w).sum())
            return LinearTerm(table, float(w @ gap), promised, float(w**2 @ self.moment(*each)))
        if name == "log":
            lost = np.inf if self.impossible.size else -a_total("rz")
            return LinearTerm(table, lost, a_total("entropy"), a_total("vzz", 2))
        if name == "logit":
            level = a_total("cut_vz_low", 2) + a_total("cut_vz_high", 2)
            return LinearTerm(table, a_total("cut_rz"), 0.0, a_total("cut_vzz", 2), level)
        return self.of_means(name, table)

    def residuals(self, outcomes: Counts) -> tuple[FloatArray, FloatArray]:
        w, events, p = self.row_weight, outcomes.events, self.probs[:, 0]
        products = events * p if outcomes.products is None else outcomes.products
        residuals = w * (events - self.count * p)
        return residuals[:, :, None], w**2 * (events - 2.0 * products + self.squares)

    def sums(
        self, outcomes: Counts, cells: Cells | None, squares: Squares = None,
        tables: FloatArray | None = None, norm: int | None = None,
    ) -> ResidualSums:  # fmt: skip
        sums = added = linear = ABSENT
        weighted = outcomes.events * self.row_weight
        if cells is not None:
            sums = (cells.sum(weighted, axis=1) - cells.expected[:, 0])[:, :, None]
            if squares is not None:
                added = self._squares(outcomes, cells, squares)
        if tables is not None:
            linear = (weighted - self.mass * self.probs[:, 0]) @ tables.T
        return ResidualSums(sums, added, linear)

    def _squares(self, outcomes: Counts, cells: Cells, squares: Squares) -> FloatArray:
        """Return sums of squared residuals, by cell (B, L) or over all (B, 1).

        ``squares`` says which: "cells" or "whole"; ``outcomes`` are B sets of event counts in the
        fine cells of the tally, and ``cells`` is the partition of these into L bins.
        """
        if outcomes.products is not None:
            return gathered(cells.sum(self.residuals(outcomes)[1], axis=1), squares)
        squared = self.row_weight**2
        slope, rest = squared * (1.0 - 2.0 * self.probs[:, 0]), squared * self.squares
        if squares == "whole":
            return np.asarray((outcomes.events @ slope + rest.sum())[:, None])
        return np.asarray(cells.sum(outcomes.events * slope, axis=1) + cells.sum(rest))

    def law(self, units: IntArray) -> tuple[int, FloatArray, float]:
        """Return the law under calibration of the weighted number of events in the cells ``units``.

        ``units`` are indices of fine cells of the tally. The triple is (first value, probabilities
        of it and of the values that follow in steps of 1, bound on the error of every tail).
        """
        low, pmf, lost = 0, np.ones(1), 0.0
        weights = self.row_weight[units]
        for weight in np.unique(weights):
            start, law, error = self.atoms.of_cells(units[weights == weight]).law()
            step = int(weight)
            stretched = np.zeros((law.size - 1) * step + 1)
            stretched[::step] = law
            pmf = stretched if pmf.size == 1 else np.convolve(pmf, stretched)
            low, lost = low + start * step, lost + error
        return low, pmf, lost

    def redraws(self, scheme: Scheme, statistic: Evaluated, factor: float = 1.0) -> Shortcut:
        if not isinstance(scheme, RedrawLabels):
            raise StatisticError(f"{scheme!r} draws rows, which a tally does not have")
        return CountDraws(self, lambda counts: statistic.values(counts, factor))

    @property
    def products(self) -> tuple[float, float]:
        w = self.row_weight
        return float(w @ self.squares), float(w @ self.event_sums)

    @property
    def bounds(self) -> tuple[FloatArray, FloatArray]:
        p, several = self.probs[:, 0], (self.count > 1) & (self.half > EDGE_TOLERANCE)
        low = np.where(several, np.maximum(self.centre - self.half, 0.0), p)
        return low, np.where(several, np.minimum(self.centre + self.half, 1.0), p)

    @property
    def surprises(self) -> float:
        rare, w = self.count * self.probs.min(axis=1), self.row_weight
        return float((w @ rare) ** 2 / max(w**2 @ rare, 1e-300))

    @property
    def remarks(self) -> tuple[str, ...]:  # type: ignore[override]
        return (f"from sums over micro-cells of like predictions (Tally, grid {self.grid})",)

    def expand(self, *, tied: bool = False) -> tuple[Predictions, FloatArray, IntArray]:
        """Return (rows, times, cell): m weighted rows, as Predictions, that stand for the tally.

        Each cell has a row for its events and one for its non-events. Their prediction is the mean
        of the events or of the non-events; with ``tied`` the mean of the cell. ``times`` (m,) is
        the number of observations each row stands for, and ``cell`` (m,) the index of its fine
        cell.
        """
        events = np.concatenate([self.labels, self.count - self.labels])
        (some,) = np.nonzero(events)
        position = self.moments[:, 6] / POSITIONS
        position = np.concatenate([position, self.count * mean_position(self.moments) - position])
        cell, label = some % self.key.size, some // self.key.size
        offset = self.half[cell] * np.clip(position[some] / events[some], -1.0, 1.0)
        probs = np.column_stack([self.centre[cell] + offset, self.rest[cell] - offset])
        probs = self.probs[cell] if tied else probs
        weights = None if self.weight is None else self.weight[cell]
        return Predictions(probs, label, weights=weights), events[some], cell

    def tied_rows(self) -> Predictions:
        rows, times, cell = self.expand(tied=True)
        return replace(rows, weights=times * self.row_weight[cell])

    def outcomes_through(self, shown: Problem) -> Callable[[Counts], Counts]:
        if not isinstance(shown, TallyProblem) or shown.tally is self.tally:
            return super().outcomes_through(shown)
        last = Grid(self.grid).last
        below, strata = 2 * self.key <= last, self.tally.strata.size
        code = np.where(below, last - self.key, self.key) * strata + self.stratum
        target = np.searchsorted(shown.key * strata + shown.stratum, code)
        order = np.argsort(target, kind="stable")
        starts = np.searchsorted(target[order], np.arange(shown.key.size))

        def outcomes_of_top(counts: Counts) -> Counts:
            turned = np.where(below, self.count - counts.events, counts.events)
            return Counts(np.add.reduceat(turned[:, order], starts, axis=1))

        return outcomes_of_top


@dataclass(frozen=True, eq=False)
class CountDraws:
    """Resampler of event counts under calibration: binomial, with the mean prediction of each cell.

    ``problem`` has the fine cells of a tally. The spread of predictions within a cell lowers the
    true variance by a share of at most 10⁻⁵ on the usual grid. ``value`` computes the statistic
    (B,) from B sets of counts.
    """

    problem: MicroCells
    value: Callable[[Counts], FloatArray]

    def replicates(self, seed: tuple[int, int], first: int, count: int) -> FloatArray:
        """Return the statistic in replicates ``first``, …, ``first + count − 1``, (count,).

        Each is its value on binomial numbers of events in the cells. ``seed`` is the pair of
        integers that keys the random stream.
        """
        p, rest = np.clip(self.problem.probs, 0.0, 1.0).T
        rows = self.problem.count.astype(np.int64)
        at_once = max(1, EVENTS_A_BATCH // rows.size)
        values = []
        for start in range(first, first + count, at_once):
            some = min(at_once, first + count - start)
            values.append(self.value(Counts(binomials(rows, p, rest, seed, start, some))))
        return np.concatenate(values)


# ------------------------------------------------------------------------------
# The problem of a tally of clusters: a unit is a cluster's rows in a micro-cell.


@dataclass(frozen=True, eq=False)
class ClusteredProblem(MicroCells):
    """Problem of a tally of clusters; outcomes are random signs of whole clusters, (B, G).

    G is the number of clusters, B of sets of outcomes. The units are the U lines of the tally, a
    cluster in a fine cell: ``probs`` (U, 2) are their mean predictions, ``count`` (U,) their
    numbers of rows, ``labels`` (U,) of events, and ``place`` (U,) is where the cell lies, in widths
    of the grid.
    """

    tally: ClusteredTally = field(repr=False)
    n_clusters: int
    probs: FloatArray = field(repr=False)
    labels: IntArray = field(repr=False)
    count: FloatArray = field(repr=False)
    place: FloatArray = field(repr=False)
    _sums: dict[Cells, FloatArray] = field(default_factory=dict, repr=False)

    designed = True
    only_null = WildSigns()
    weight = None
    closed = ("right",)

    @classmethod
    def of(cls, tally: ClusteredTally) -> ClusteredProblem:
        """Return the problem of a tally of clusters; StatisticError for fewer than 100 clusters.

        Its units are lines of the tally, the rows of a cluster in a fine cell.
        """
        if tally.n_clusters < FEWEST_CLUSTERS:
            raise StatisticError(
                f"{tally.n_clusters} clusters are too few: random signs of whole clusters hold "
                f"their level from {FEWEST_CLUSTERS} on. Pass the rows with clusters= if they fit"
            )
        tally.warn(stack=6)
        n, p, _, y, _ = tally.sums.T
        probs, labels = np.clip([p / n, 1.0 - p / n], 0.0, 1.0).T, np.rint(y).astype(np.int64)
        place = tally.cell.astype(np.float64) + 0.5
        return cls(tally, tally.n_clusters, probs, labels, n, place)

    @property
    def grid(self) -> int:  # type: ignore[override]
        return self.tally.n_cells

    @property
    def n(self) -> int:  # type: ignore[override]
        return self.tally.n

    @cached_property
    def excess(self) -> FloatArray:
        return self.tally.sums[:, 3] - self.tally.sums[:, 1]

    @property
    def squares(self) -> FloatArray:
        return self.tally.sums[:, 2]

    @property
    def event_sums(self) -> FloatArray:
        return self.tally.sums[:, 4]

    @property
    def observed(self) -> Flips:
        return Flips(np.ones((1, self.n_clusters)))

    def outcomes(self, labels: AnyArray) -> Flips:
        return self.observed  # the only labels whose residuals are known

    @property
    def clusters(self) -> IntArray:
        """Not available: reading it raises StatisticError.

        A statistic that asks for clusters of rows would pair rows of different ones.
        """
        raise StatisticError(
            "pairs of clusters are not kept in a tally of clusters: take ECE or CoxScore, or pass "
            "the rows"
        )

    @property
    def levels(self) -> IntArray:
        return self.tally.cell

    @property
    def variance(self) -> FloatArray:
        return self.tally.sums[:, 1] - self.squares

    @property
    def squared_variance(self) -> FloatArray:
        return np.square(self.variance) / self.count

    def linear(self, name: str, score: Callable[[FloatArray], FloatArray]) -> LinearTerm:
        return self.of_means(name, score(np.clip(self.probs, 1e-12, 1.0)))

    def of_clusters(self, cells: Cells) -> FloatArray:
        """Return residual sums, Σ (y − p), of each of G clusters in each of L cells, (G, L).

        ``cells`` is the partition of the lines of the tally into L bins.
        """
        if cells not in self._sums:
            size = len(cells)
            where = self.tally.cluster * size + cells.of_unit
            sums = np.bincount(where, self.excess, self.n_clusters * size)
            self._sums[cells] = np.asarray(sums.reshape(-1, size), dtype=np.float64)
        return self._sums[cells]

    def sums(
        self, outcomes: Flips, cells: Cells | None, squares: Squares = None,
        tables: FloatArray | None = None, norm: int | None = None,
    ) -> ResidualSums:  # fmt: skip
        sums = added = linear = ABSENT
        if cells is not None:
            sums = (outcomes.multipliers @ self.of_clusters(cells))[:, :, None]
            if squares is not None:
                each = cells.sum(self.residuals(self.observed)[1][0])
                added = gathered(np.tile(each, (len(outcomes.multipliers), 1)), squares)
        if tables is not None:
            scores = [np.bincount(self.tally.cluster, self.excess * table) for table in tables]
            linear = outcomes.multipliers @ np.array(scores).T
        return ResidualSums(sums, added, linear)

    def residuals(self, outcomes: Flips) -> tuple[FloatArray, FloatArray]:
        residuals = outcomes.multipliers[:, self.tally.cluster] * self.excess
        squares = self.tally.sums[:, 3] - 2.0 * self.event_sums + self.squares
        return residuals[:, :, None], np.broadcast_to(squares, residuals.shape)

    def law(self, units: IntArray) -> tuple[int, FloatArray, float]:
        raise StatisticError("rows of a cluster depend on each other: there is no exact law")

    def redraws(self, scheme: Scheme, statistic: Evaluated, factor: float = 1.0) -> Shortcut:
        each = np.arange(self.n_clusters)
        clusters = Predictions(np.full((each.size, 2), 0.5), each * 0)
        # Rare events that did not occur leave too little scatter: a calibrated model promises more.
        _, p, p2, y, yp = self.tally.sums.sum(axis=0)
        factor = max(1.0, float((p - p2) / max(y - 2.0 * yp + p2, 1e-300)))
        values = lambda signs: statistic.values(Flips(signs.astype(np.float64)), factor)  # noqa: E731
        return Batches(WildSigns().drawer(clusters), each.size, values)

    @property
    def surprises(self) -> float:
        return float(self.count @ self.probs.min(axis=1))

    @property
    def remarks(self) -> tuple[str, ...]:  # type: ignore[override]
        return (f"from sums of {self.n_clusters} clusters, whose signs are drawn",)

    def expand(self) -> tuple[Predictions, FloatArray, IntArray]:
        raise StatisticError("a tally of clusters has no rows")


def problem_of_tally(tally: AnyTally) -> MicroCells:
    """Return the problem of a tally (sums of rows over fine cells), plain or clustered.

    A problem has the fine cells of the tally as units, with fixed predictions, and outcomes to be
    drawn. StatisticError for an empty tally, and for fewer than 100 clusters.
    """
    if isinstance(tally, ClusteredTally):
        return ClusteredProblem.of(tally)
    return TallyProblem.of(tally)


# ------------------------------------------------------------------------------
# The law of the number of events in cells that are known by their moments.


#: Variance of positions, in half widths squared, below which a cell counts as one prediction.
NARROW = 1e-7


#: Rows that are listed one by one where their predictions are known.
ROWS_LISTED = 4096


#: Frequencies times predictions in an array that is made at once.
LAWS_AT_ONCE = 2**19


@dataclass(frozen=True, eq=False)
class Atoms:
    """Predictions that stand for the rows of C cells of a tally: one or two in each, with counts.

    Two atoms match the moments 0 to 3 of the rows; one or two rows are their own atoms. ``p``,
    ``rest`` = 1 − p and ``times`` (the counts) have shape (2, C); where one atom is enough, the
    second has count 0. ``fourth`` and ``second`` (C,) bound the error: Σ |p − centre|⁴ / 4 of rows
    and atoms together, and Σ (p − atom)² / 2 with the rounding of squares. ``half`` (C,) is half
    the width of cells with several atoms, 0 for others; ``rounding`` (C,) is the total rounding of
    predictions.
    """

    p: FloatArray
    rest: FloatArray
    times: FloatArray
    fourth: FloatArray
    second: FloatArray
    half: FloatArray
    rounding: FloatArray

    @classmethod
    def of(cls, sums: IntArray, centre: FloatArray, rest: FloatArray, half: FloatArray) -> Self:
        """Return one or two Gauss quadrature nodes, with counts, for each of C cells of a tally.

        ``sums`` (C, 8) are the integer sums of the cells, from which moments follow. ``centre``,
        ``rest`` = 1 − centre and ``half`` width of the cells have shape (C,). Two nodes match the
        moments up to the third of the predictions in a cell.
        """
        n = sums[:, 0].astype(np.float64)
        mean = mean_position(sums)
        square, cube, fourth = (sums[:, k] / (n * POSITIONS) for k in range(2, 5))
        variance = np.maximum(square - mean**2, 0.0)
        two = (variance > NARROW) & (n > 1)
        sd = np.sqrt(np.where(two, variance, 1.0))
        third = np.where(two & (n > 2), cube - 3.0 * mean * square + 2.0 * mean**3, 0.0)
        skew = 0.5 * third / sd**3
        root = np.hypot(1.0, skew)
        lower, upper = (np.where(two, mean + sd * (skew + s * root), mean) for s in (-1.0, 1.0))
        share = np.where(two, 0.5 * (1.0 + skew / root), 1.0)  # of the lower atom
        t = np.clip([lower, upper], -1.0, 1.0)
        times = np.array([n * share, n * (1.0 - share)])
        several = two & (n > 2)
        left = (n * fourth + (times * t**4).sum(axis=0)) * half**4 / 4.0
        spread = 0.5 * np.where(two, 0.0, np.minimum(variance, NARROW)) + 2.0 / POSITIONS
        return cls(
            centre + half * t,
            rest - half * t,
            times,
            np.where(several, left, 0.0),
            np.where(n > 1, n * spread * half**2, 0.0),
            np.where(several, half, 0.0),
            n * half / (2.0 * FINE),
        )

    def of_cells(self, cells: IntArray) -> Atoms:
        """Return the atoms (predictions that stand for rows, with counts) of some cells.

        ``cells`` are indices of cells, integers (m,).
        """
        return Atoms(*(column[..., cells] for column in vars(self).values()))

    def law(self) -> tuple[int, FloatArray, float]:
        """Return the law of the number of events among the rows that these atoms stand for.

        The form is (lowest number, probabilities of it and of the numbers that follow, bound on the
        error of every tail).
        """
        if (self.times * self.p).sum() <= (self.times * self.rest).sum():
            return self._of(self.p.ravel())
        lowest, pmf, lost = self._of(self.rest.ravel())  # the rarer label has all its digits
        return round(float(self.times.sum())) - (lowest + pmf.size - 1), pmf[::-1], lost

    def _of(self, p: FloatArray) -> tuple[int, FloatArray, float]:
        times = self.times.ravel()
        free = (p > 0.0) & (times > 0.0)
        p, times = p[free], times[free]
        n, mean, variance = round(float(times.sum())), times @ p, times @ (p * (1.0 - p))
        rounding = float(self.rounding.sum())
        if n <= ROWS_LISTED and not self.half.any():
            rows = np.repeat(p, np.rint(times).astype(np.int64))
            first, pmf, lost = poisson_binomial(rows)
            lost += (
                LAW_ROUNDING[0] + 2.0 * float(pmf.max()) * rounding + 8.0 * float(self.second.sum())
            )
            return first, pmf, lost
        exponent = np.log(2.0 / NEGLIGIBLE)
        reach = exponent / 3.0 + np.sqrt(exponent**2 / 9.0 + 2.0 * exponent * variance)
        low, high = max(0, int(mean - reach)), min(n, int(mean + reach) + 1)
        width = fast_length(high - low + 1)
        omega = 2.0 * np.pi * np.arange(width // 2 + 1) / width
        omega = omega[variance * (1.0 - np.cos(omega)) < 45.0]
        shift = round(float(mean))
        logs = _logarithm(p, times, omega) - 1j * (mean - shift) * omega
        spectrum = np.zeros(width // 2 + 1, dtype=np.complex128)
        spectrum[: omega.size] = np.exp(logs)
        pmf = np.roll(irfft(spectrum, width), (shift - low) % width)[: high - low + 1]
        pmf = np.clip(pmf, 0.0, None)
        window = np.flatnonzero(pmf > NEGLIGIBLE)
        pmf = pmf[window[0] : window[-1] + 1]
        lost = 2.0 * NEGLIGIBLE + LAW_ROUNDING[0] + LAW_ROUNDING[1] * float(np.sqrt(n))
        lost += self._left(omega, np.abs(spectrum[: omega.size]), p)
        return low + int(window[0]), pmf, lost + 2.0 * float(pmf.max()) * rounding

    def _left(self, omega: FloatArray, modulus: FloatArray, p: FloatArray) -> float:
        """Return a bound on the change of any tail probability if atoms replace the rows.

        The characteristic function φ of the number of events, at frequencies ``omega`` (W,), has
        the ``modulus`` |φ| (W,); ``p`` are the atoms, predictions that stand for the rows of cells.
        With z = e^{iω} and u = (z − 1) / (1 − c + c z), c the centre of a cell, its log φ has an
        error of at most |u|⁴ fourth (1 − half |u|)⁻⁴ + |u|² second (1 − half |u|)⁻², with the
        fields ``fourth``, ``second`` and ``half``. Tails change by at most the root of Σ_ω |φ|²
        (exp ε − 1)², ε the total error. Where half |u| > ½, φ itself is below (5 half)³.
        """
        sine = np.sin(0.5 * omega) ** 2
        least = 1.0 - 4.0 * float((p * (1.0 - p)).max()) * sine  # of |1 − c + c z|², in any cell
        widest = float(self.half.max())
        near = (4.0 * widest) ** 2
        square = 4.0 * sine / np.maximum(least, max(near, 1e-12))
        error = 16.0 * square**2 * self.fourth.sum() + 4.0 * square * self.second.sum()
        change = modulus * np.expm1(np.minimum(error, 50.0))
        change += 2.0 * (least < near) * (5.0 * widest) ** 3
        return float(np.sqrt(2.0 * (change**2).sum()))


def _logarithm(p: FloatArray, times: FloatArray, omega: FloatArray) -> NDArray[np.complex128]:
    """Return Σ times · log(e^{ipω} (1 − p + p e^{−iω})) at frequencies ω, without cancellation.

    ``p`` and ``times`` (m,) are probabilities and how often each counts, ``omega`` (W,) the
    frequencies; the result has shape (W,).
    """
    total = np.zeros(omega.size, dtype=np.complex128)
    at_once = max(1, LAWS_AT_ONCE // max(1, omega.size))
    for first in range(0, p.size, at_once):
        x, weight = p[first : first + at_once, None], times[first : first + at_once]
        with np.errstate(divide="ignore"):  # of ½ at ω = π the modulus is 0
            modulus = 0.5 * np.log1p(-4.0 * x * (1.0 - x) * np.sin(0.5 * omega) ** 2)
        real = (1.0 - x) * np.cos(x * omega) + x * np.cos((1.0 - x) * omega)
        imaginary = (1.0 - x) * np.sin(x * omega) - x * np.sin((1.0 - x) * omega)
        total += weight @ modulus + 1j * (weight @ np.arctan2(imaginary, real))
    return total


# ------------------------------------------------------------------------------
# Draws of numbers of events in many cells, of which each has a law of its own.


#: A law ends where it is below so much of its largest probability.
ENDS = 1e-19


def binomials(
    rows: IntArray, p: FloatArray, rest: FloatArray, seed: Seed, first: int, count: int
) -> FloatArray:
    """Draw numbers of events of C cells, shape (count, C), keyed by seed, replicate and cell.

    ``rows`` (C,) are numbers of trials, ``p`` and ``rest`` = 1 − p (C,) their probabilities;
    ``first`` is the number of the first replicate and ``seed`` the pair of integers that keys the
    random stream. Binomial, exact by inversion.
    """
    draws, chance = np.empty((count, rows.size)), np.minimum(p, rest)
    spread = float((rows * chance * (1.0 - chance)).max())
    reach = int(32.0 + np.sqrt(1024.0 + 92.0 * spread))  # of e⁻⁴⁴ by Bernstein's inequality
    room = np.empty(2 * reach + 1), np.empty(4 * reach + 2, dtype=np.int64), np.empty(count)
    _draw(rows, chance, p > rest, *stream_keys(seed, first, count)[:2], *room, draws)
    return draws


@lane_kernel
def _draw(rows, chance, turned, key, twist, law, guide, u, draws_out):  # type: ignore[no-untyped-def]
    # O(C (B + W)) for laws of W values, by inversion from the guide of Chen & Asau (1974).
    reach = law.size // 2
    for c in range(rows.size):
        n, odds = rows[c], chance[c] / (1.0 - chance[c])
        mode = int((n + 1) * chance[c])
        low = high = reach
        law[reach] = 1.0
        while law[high] > ENDS and high < 2 * reach and mode + high - reach < n:
            k = mode + high - reach
            law[high + 1] = law[high] * (odds * (n - k) / (k + 1))
            high += 1
        while law[low] > ENDS and low > 0 and mode + low - reach > 0:
            k = mode + low - reach
            law[low - 1] = law[low] * (k / (odds * (n - k + 1)))
            low -= 1
        for j in range(low + 1, high + 1):
            law[j] += law[j - 1]
        parts, total, j = 1, law[high], low
        while parts <= high - low:
            parts *= 2
        law[high] = np.inf
        for i in range(parts):
            while law[j] * parts <= i * total:
                j += 1
            guide[i] = j
        step = GAMMA * np.uint64(c)
        for q in range(key.size):
            u[q] = mixed(key[q] + step, twist[q]) * UNIFORM_STEP
        for q in range(key.size):
            j = guide[int(u[q] * parts)]
            while law[j] <= u[q] * total:
                j += 1
            k = mode + j - reach
            draws_out[q, c] = n - k if turned[c] else k
