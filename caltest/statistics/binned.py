"""Binned errors (ECE, MCE, RMSCE), debiased errors, the multi-scale test, and class-wise errors.

:class:`ECE`, :class:`MCE` and :class:`RMSCE` are biased upward by noise, :class:`DebiasedL2` and
:class:`DebiasedL1` are not; :class:`MultiScale` chooses no number of bins; :class:`ClasswiseECE`,
:class:`ACE` and relatives average over classes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import KW_ONLY, dataclass, field
from functools import cached_property
from itertools import pairwise
from typing import ClassVar, Literal, cast

import numpy as np
from numpy.typing import NDArray

from caltest._base import FloatArray, IntArray
from caltest._base.arrays import MOST_BINS, AnyArray, codes, is_whole, number, one_of, whole
from caltest.data import Predictions
from caltest.data.binning import FIXED, Binning, QuantileBins, UniformBins, VarianceTree, as_binning
from caltest.data.distances import DISTANCES_BY_NAME, Distance, rowwise
from caltest.errors import StatisticError
from caltest.nulls import RowScheme, Shortcut
from caltest.nulls.lanes import kernel, lane_kernel
from caltest.statistics.prepared import (
    CellStatistic,
    Prepared,
    Reader,
    Statistic,
    SumStatistic,
    rows_of,
)
from caltest.statistics.problem import Cells, Estimand, Problem, ResidualSums, Squares
from caltest.statistics.rows import Flips, RowProblem


@dataclass(frozen=True, eq=False)
class BinnedError(CellStatistic):
    """Binned error with fixed predictions: a function of the residual sums of the cells.

    It is the average distance between observed and predicted, weighted by mass (numbers or total
    weights of rows), or the largest one. ``distance`` compares the two, by name or as a function;
    ``divisor`` is the total mass, by which the sum over cells is divided, doubled under a root of
    two classes.
    """

    distance: str | Distance
    #: Total mass of the cells; doubled under a root of two classes, which counts one component.
    divisor: float

    @classmethod
    def of(
        cls, cells: Cells, distance: str | Distance = "tv", combine: Literal["sum", "max"] = "sum",
        root: bool = False,
    ) -> BinnedError:  # fmt: skip
        """Return the binned error over a partition of the rows, a function of the outcomes.

        ``cells`` partition the rows. ``distance`` compares observed and predicted frequencies of a
        cell: "tv", "l1", "l2", "sqeuclidean", "max", or a function of two probability vectors.
        ``combine`` adds up the cells weighted by mass, or takes the largest; ``root`` takes the
        square root of the sum. They determine the grid of the exact law and the estimand.
        """
        two = cells.problem.n_classes == 2
        # What one more event adds to a term that is linear in it: the grid of the exact law.
        steps = {"tv": 1.0, "l1": 2.0, "l2": 2.0**0.5, "max": 1.0}
        step = steps.get(distance) if isinstance(distance, str) else None
        mass = float(cells.mass.sum())
        return cls(
            cells.problem, distance, mass * (2.0 if root else 1.0),
            cells=cells, combine=combine, root=root,
            norm=None if two or not isinstance(distance, str) else DISTANCE_NORMS[distance],
            unit=None if step is None else step / mass,
            estimand=_estimand(distance, combine, root, two),
        )  # fmt: skip

    def terms(self, sums: FloatArray, at: slice = slice(None)) -> FloatArray:
        """Return mass · d(observed, predicted) / total mass of the cells ``at``, shape (B, L).

        ``sums`` (B, L, d) are residual sums, observed − predicted, of B sets of outcomes in the L
        cells that the slice ``at`` selects; mass is the number of rows, or their weight. Where the
        largest cell counts, as in :class:`MCE`, the term is the distance d alone.
        """
        mass, largest = self.cells.mass[at], self.combine == "max"
        if not isinstance(self.distance, str):
            gaps = self._by_function(sums, at)
            return gaps if largest else gaps * (mass / self.divisor)
        gaps = _gaps(self.distance, sums[:, :, 0], mass, self.problem.n_classes == 2)
        return gaps / mass if largest else gaps / self.divisor

    def _by_function(self, sums: FloatArray, at: slice) -> FloatArray:
        """Return mass · distance of the cells for a distance given as a function, shape (B, L).

        ``sums`` (B, L, d) are residual sums of B sets of outcomes in the L cells that the slice
        ``at`` selects. The function is called with observed and predicted frequencies of each cell.
        """
        mass, expected = self.cells.mass[at, None], self.cells.expected[at]
        events = sums + expected
        # Counts are whole: a rate of 0 has to be 0, since a distance may take its root.
        near = np.rint(events)
        events = np.where(np.abs(events - near) < 1e-12 * mass, near, events)
        observed, mean = events / mass, np.broadcast_to(expected / mass, events.shape)
        if self.problem.n_classes == 2:
            observed, mean = (np.concatenate([x, 1.0 - x], axis=-1) for x in (observed, mean))
        k = mean.shape[-1]
        distances = rowwise(self.distance)(observed.reshape(-1, k), mean.reshape(-1, k))
        return distances.reshape(sums.shape[:2])

    def row_resamples(self, scheme: RowScheme) -> Shortcut | None:
        """Return a compiled resampler of this error on resampled rows; None where none exists.

        It needs a named distance, and rows without weights or clusters. ``scheme`` says how rows
        are drawn, such as with replacement. Its ``replicates(seed, first, count)`` returns values
        (count,).
        """
        problem, cells = self.problem, self.cells
        named = isinstance(self.distance, str) and problem.exact and problem.weight is None
        outcomes = scheme.label_chances(problem.data) if named else None
        if outcomes is None:
            return None
        from caltest.nulls.resampled_rows import resampled_cells

        rows = problem.probs, outcomes, cells.bins, cells.order, cells.starts
        return resampled_cells(*rows, str(self.distance), self.combine, self.root)


#: Of several classes these norms of the residual sums say the distance of a cell.
DISTANCE_NORMS = {"tv": 0, "l1": 0, "l2": 1, "sqeuclidean": 1, "max": 2}


def _gaps(distance: str, sums: FloatArray, mass: FloatArray, two: bool) -> FloatArray:
    """Return mass · distance between observed and predicted of the cells, (B, L).

    ``distance`` is "tv", "l1", "l2", "sqeuclidean" or "max", ``mass`` (L,) the weights of the L
    cells. ``sums`` (B, L) are residual sums of the event for two classes (``two``), and norms of
    the residual sums over classes otherwise (squared for "l2" and "sqeuclidean"), for B sets of
    outcomes.
    """
    if two:
        # The second component is minus the first: ‖r‖₁ = 2 |r|, ‖r‖₂ = √2 |r|.
        factor = {"l1": 2.0, "l2": 2.0**0.5}.get(distance, 1.0)
        return sums * sums * (2.0 / mass) if distance == "sqeuclidean" else factor * np.abs(sums)
    if distance == "l2":
        return np.sqrt(sums)
    return sums / mass if distance == "sqeuclidean" else 0.5 * sums if distance == "tv" else sums


def _estimand(distance: str | Distance, combine: str, root: bool, two: bool) -> Estimand | None:
    """Return the population error that a binned statistic estimates; None if it estimates none.

    ``distance`` is the name or function that compares observed and predicted in a cell; ``combine``
    is "sum" over cells or "max"; ``root`` says that the root of the sum is taken. For two classes
    (``two``) a squared error counts the first component only. An :class:`Estimand` is a size, such
    as "absolute", with a factor.
    """
    if root:
        return Estimand("squared", root=True)
    if not isinstance(distance, str):
        return None
    factors = {"tv": 0.5, "l1": 1.0, "sqeuclidean": 1.0}
    if two:
        factors = {"tv": 1.0, "l1": 2.0, "l2": 2.0**0.5, "max": 1.0, "sqeuclidean": 2.0}
    # Intervals add up components; the other distances of vectors are no sums of them.
    if distance not in factors or (combine == "max" and not two):
        return None
    factor = factors[distance]
    squared = distance == "sqeuclidean"
    if combine == "max":
        return Estimand("largest", factor, factor, squared=squared)
    return Estimand("squared" if squared else "absolute", factor, factor if two else 2.0 * factor)


@dataclass(frozen=True, repr=False)
class _BinnedError(Statistic):
    """Base class of ECE and MCE, with the options ``bins`` (partition) and ``distance``.

    ``bins`` is a binning, or a number m for ``UniformBins(m)``; ``distance`` is the name or
    function that compares frequencies with predictions in a cell. A subclass sets ``combine``:
    "sum" adds up cells, "max" takes the largest.
    """

    bins: Binning | int = UniformBins(15)
    _: KW_ONLY
    distance: str | Distance = "tv"
    combine: ClassVar[Literal["sum", "max"]]
    essential: ClassVar[int] = 2

    def __post_init__(self) -> None:
        object.__setattr__(self, "bins", as_binning(self.bins))
        if not (isinstance(self.distance, str) and self.distance in DISTANCES_BY_NAME):
            rowwise(self.distance)  # which refuses what is no distance

    def prepare(self, problem: Problem) -> BinnedError:
        return BinnedError.of(Cells.of(self.bins, problem), self.distance, self.combine)


class ECE(_BinnedError):
    """Expected calibration error, the average gap between outcomes and predictions in cells.

    ECE = Σ_b (n_b / n) · d(r̂_b, ĝ_b), where r̂_b are the frequencies of the labels and ĝ_b the
    mean prediction in cell b (Vaicenavicius et al. 2019, Eq. 6). Empty cells count nothing. With
    the total variation distance and ``TopK(1)`` this is the ECE of Guo et al. (2017). Noise biases
    it upward; cells make it estimate a lower bound of the true error (Theorem 2 there). O(n K) for
    a value, O(n) for each further set of labels on the same predictions. The range depends on the
    distance: [0, 1] for ``"tv"``.

    Parameters
    ----------
    bins : binning, int or callable, default UniformBins(15)
        The partition; a number m means ``UniformBins(m)``, a function takes the ``(n, K)``
        probabilities and returns an integer for every row.
    distance : str or callable, default "tv"
        ``"tv"``, ``"l1"``, ``"l2"``, ``"sqeuclidean"``, ``"max"``, or a function of two
        probability vectors.

    Examples
    --------
    >>> probs = np.array([[0.75, 0.25], [0.75, 0.25], [0.25, 0.75], [0.25, 0.75]])
    >>> ECE(UniformBins(2))(probs, np.array([0, 0, 0, 1]))
    0.25
    """

    combine = "sum"


class MCE(_BinnedError):
    """Maximum calibration error, the largest gap d(r̂_b, ĝ_b) over the occupied cells.

    r̂_b are the frequencies of the labels and ĝ_b the mean prediction in cell b. In [0, 1] for the
    distance "tv". As a test it has little power: one sparse cell decides.

    Parameters
    ----------
    bins : binning, int or callable, default UniformBins(15)
        The partition; a number m means ``UniformBins(m)``, a function takes the ``(n, K)``
        probabilities and returns an integer for every row.
    distance : str or callable, default "tv"
        ``"tv"``, ``"l1"``, ``"l2"``, ``"sqeuclidean"``, ``"max"``, or a function of two
        probability vectors.
    """

    combine = "max"


@dataclass(frozen=True, repr=False)
class RMSCE(Statistic):
    """Root mean squared calibration error of a two-class problem, in [0, 1].

    RMSCE = √ Σ_b (n_b / n) (r̂_b − p̂_b)², the binned l2 error (Hendrycks et al. 2019, with
    equal-mass bins of the top class): n_b of n rows lie in bin b, r̂_b is the frequency of the
    event there and p̂_b the mean prediction. ``bins`` is a binning such as the default
    ``QuantileBins(15)``; a bare number raises StatisticError. O(n log n), then O(n) for each
    further set of labels.

    Examples
    --------
    >>> round(RMSCE(QuantileBins(1))(np.array([0.75, 0.25]), np.array([1, 1])), 6)
    0.5
    """

    bins: Binning = QuantileBins(15)

    def __post_init__(self) -> None:
        object.__setattr__(self, "bins", as_binning(self.bins, number=False))

    def prepare(self, problem: Problem) -> BinnedError:
        problem.event(self)
        return BinnedError.of(Cells.of(self.bins, problem), "sqeuclidean", root=True)


# ------------------------------------------------------------------------------
# Binned errors without the upward bias of noise, at one scale and at all of them at once.


SQUARED, ABSOLUTE = Estimand("squared"), Estimand("absolute")


@dataclass(frozen=True, eq=False)
class Excess(SumStatistic):
    """Debiased squared error with fixed predictions: Σ_b w_b (|S_b|² − Q_b) over L cells b.

    S_b is the sum of the residuals, observed − predicted, in cell b and Q_b the sum of their
    squares; ``pairs`` (L,) holds the weights w_b of the pairs of rows in each cell.
    """

    pairs: FloatArray = field(repr=False)
    squares: ClassVar[Squares] = "cells"

    def of_sums(self, sums: ResidualSums) -> FloatArray:
        gaps = sums.cells[:, :, 0]
        gaps = np.square(gaps) if self.norm is None else gaps
        return np.asarray(((gaps - sums.squares) * self.pairs).sum(axis=1))


@dataclass(frozen=True, eq=False)
class ClusterPairs(SumStatistic):
    """Debiased squared error of clustered rows with fixed predictions.

    It leaves out pairs of one cluster: Σ_b w_b (|S_b|² − Σ_g |S_gb|²), with S_b the residual sum of
    cell b, S_gb that sum over the rows of cluster g, and w_b a weight. With two columns of clusters
    only pairs that share neither count: Σ_b w_b (|S_b|² − Σ_g |S_gb|² − Σ_h |S_hb|² + Σ_gh
    |S_ghb|²). ``parts`` is the partition of the rows by cell and cluster. Each of ``sets`` stands
    for one of the sums of squares: (a partition of the parts, the weight with sign of each of its
    cells).
    """

    parts: Cells = field(repr=False)
    sets: tuple[tuple[Cells, FloatArray], ...] = field(repr=False)

    @classmethod
    def of(cls, cells: Cells, columns: Sequence[IntArray], estimand: Estimand) -> ClusterPairs:
        """Return the debiased squared error for rows that are clustered by one or two columns.

        ``cells`` is the partition of the rows into bins. Each cell is divided by cluster; a cell
        with one cluster has no pairs and adds nothing. ``columns`` hold integers (n,) each, the
        number of the cluster of every row; ``estimand`` is the population error that the statistic
        estimates. O(n log n).
        """

        def parts_of(*columns: IntArray) -> tuple[Cells, IntArray]:
            code = cells.of_unit
            for column in columns:
                # Renumbered after each column: products of three numbers could pass 2⁶³.
                code = codes(code * (column.max() + 1) + column)
            parts = Cells.by_number(code, cells.problem)
            return parts, parts.order[parts.starts[:-1]]

        parts, unit = parts_of(*columns)
        signed = [(parts_of(), 1.0), *((parts_of(column), -1.0) for column in columns)]
        # Pairs that share both clusters were taken off twice.
        signed += [((parts, unit), 1.0)] * (len(columns) - 1)
        squares = [
            sign * np.bincount(cells.of_unit[rows], np.square(of.mass))
            for (of, rows), sign in signed
        ]
        pairs = np.sum(squares, axis=0)
        # A cell of one cluster has no pairs, only rounding: an infinite divisor leaves it out.
        pairs[pairs <= 1e-13 * np.square(cells.mass)] = np.inf
        weights = cells.mass / pairs / cells.mass.sum()
        sets = tuple(
            (Cells.by_number(of.of_unit[unit], cells.problem), sign * weights[cells.of_unit[rows]])
            for (of, rows), sign in signed
        )
        return cls(cells.problem, parts, sets, cells=cells, estimand=estimand, null_mean=0.0)

    @property
    def sum_cells(self) -> Cells:
        return self.parts

    def of_sums(self, sums: ResidualSums) -> FloatArray:
        total = np.zeros(len(sums.cells))
        for of, weights in self.sets:
            added = np.add.reduceat(sums.cells[:, of.order], of.starts[:-1], axis=1)
            total += np.square(added).sum(axis=2) @ weights
        return total


def pair_weights(cells: Cells, with_own: bool = False) -> FloatArray:
    """Return the weight of Σ r_i · r_j over pairs of rows of each cell, (W_b / W) / (W_b² − Σ w²).

    The shape is (L,) for the L ``cells``; W_b is the total weight of cell b, W the weight of all
    rows, and w the weight of a row. ``with_own`` adds pairs of a row and itself, so that the
    divisor is W_b². The weight is 0 for cells of one row, or of one row beside rows whose weights
    are only rounding.
    """
    diagonal = 0.0 if with_own else cells.square_mass
    pairs = np.where(cells.counts > 1, cells.mass**2 - diagonal, 0.0)
    pairs[pairs <= 1e-13 * cells.mass**2] = np.inf
    return np.asarray(cells.mass / pairs / cells.mass.sum())


@dataclass(frozen=True, repr=False)
class DebiasedL2(Statistic):
    """Debiased squared l2 calibration error: signed, 0 on average if calibrated.

    T = (1/n) Σ_b (|S_b|² − Q_b) / (n_b − 1), with r_i = onehot(y_i) − p_i, S_b = Σ_{i in b} r_i and
    Q_b = Σ_{i in b} |r_i|²: the U-statistic over pairs of rows in the same cell, which estimates
    Σ_b π_b |Δ_b|², π_b the share of rows in cell b and Δ_b their mean residual, without bias for
    given counts n_b. Cells with one row do not count. For two classes only the first component
    enters, so that the value is comparable with the squared errors of Kumar et al. (2019, §5) and
    Lee et al. (2022), and half of the estimand of ``ECE(bins, "sqeuclidean")``; for more classes
    all components enter. O(n K) for each set of labels. With clusters only pairs of two clusters
    count, in each cell (W_b / W) (|S_b|² − Σ_g |S_gb|²) / (W_b² − Σ_g W_gb²), with W the total
    weight, W_b in cell b, W_gb and S_gb of cluster g in cell b, so that dependence within clusters
    does not look like an error; with two columns of clusters, pairs that share neither.

    Parameters
    ----------
    bins : binning, int or callable, default UniformBins(15)
        The partition, as for :class:`ECE`; a number m means ``UniformBins(m)``.
    estimator : {"pairs", "tcal", "kumar"}, default "pairs"
        ``"tcal"`` divides by n_b instead of n_b − 1, as Lee et al. (2022) do. ``"kumar"`` is Σ_b
        (n_b/n) (D_b² − ȳ_b (1 − ȳ_b) / (n_b − 1)), D_b = S_b / n_b and ȳ_b the event rate, of Kumar
        et al. (2019), for two classes: it treats the predictions of a cell as equal, and takes off
        a little too much; with weights it raises StatisticError. Both do not see clusters.

    Examples
    --------
    >>> probs = np.array([0.75, 0.75, 0.25, 0.25])
    >>> DebiasedL2(2)(probs, np.array([1, 1, 0, 0]))
    0.0625
    """

    bins: Binning | int = UniformBins(15)
    _: KW_ONLY
    estimator: Literal["pairs", "tcal", "kumar"] = "pairs"

    def __post_init__(self) -> None:
        object.__setattr__(self, "bins", as_binning(self.bins))
        one_of("estimator", self.estimator, ("pairs", "tcal", "kumar"))

    def prepare(self, problem: Problem) -> SumStatistic:
        if self.estimator == "kumar":
            problem.event(self)
            if problem.weight is not None:
                raise StatisticError(f"{self!r} does not take weights: use estimator='pairs'")
            cells = Cells.of(self.bins, problem)
            return KumarL2(problem, cells=cells, estimand=SQUARED)
        cells = Cells.of(self.bins, problem)
        error = SQUARED if problem.n_classes == 2 else Estimand("squared", 1.0, 2.0)
        if self.estimator == "pairs" and problem.n_clusters is not None:
            both = problem.data.clusters, problem.data.crossed
            columns = [codes(column) for column in both if column is not None]
            return ClusterPairs.of(cells, columns, error)
        weights = pair_weights(cells, with_own=self.estimator == "tcal")
        norm = None if problem.n_classes == 2 else DISTANCE_NORMS["sqeuclidean"]
        return Excess(problem, weights, cells=cells, estimand=error, null_mean=0.0, norm=norm)


@dataclass(frozen=True, repr=False)
class DebiasedL1(Statistic):
    """Calibration error debiased by a normal approximation of its noise, for two classes.

    T = Σ_b (n_b / n) (2 |D_b| − E|D_b + σ_b Z|), D_b = ȳ_b − p̄_b, σ_b² = ȳ_b (1 − ȳ_b) / n_b, Z
    standard normal, with n_b rows, event rate ȳ_b and mean prediction p̄_b in bin b: the debiased
    estimate of Kumar et al. (2019, §5) of the l1 error, whose average over simulated normals is
    here the mean of a folded normal, in closed form. With weights, means and shares of the cells
    are weighted and n_b in σ_b² is (Σ w)² / Σ w². ``bins`` is a binning, a function, or a number m
    for ``UniformBins(m)``, by default 15. O(n). An error of 0 is still estimated a little above 0.

    Examples
    --------
    >>> probs = np.array([0.75, 0.75, 0.25, 0.25])
    >>> DebiasedL1(2)(probs, np.array([1, 1, 0, 0]))
    0.25
    """

    bins: Binning | int = UniformBins(15)

    def __post_init__(self) -> None:
        object.__setattr__(self, "bins", as_binning(self.bins))

    def prepare(self, problem: Problem) -> KumarL1:
        problem.event(self)
        return KumarL1(problem, cells=Cells.of(self.bins, problem), estimand=ABSOLUTE)


@dataclass(frozen=True, eq=False)
class KumarL1(CellStatistic):
    """Debiased l1 error of Kumar et al. (2019) with fixed predictions; see :class:`DebiasedL1`.

    Its value is Σ_b (n_b / n) (2 |D_b| − E|D_b + σ_b Z|) over cells b with n_b rows, mean residual
    D_b, noise σ_b and a standard normal Z.
    """

    def terms(self, sums: FloatArray, at: slice = slice(None)) -> FloatArray:
        """Return (n_b / n) (2 |D_b| − E|D_b + σ_b Z|) for the cells ``at``, shape (B, L).

        ``sums`` (B, L, 1) are residual sums of B sets of outcomes in the L cells that the slice
        ``at`` selects; D_b is the mean residual of cell b, n_b of all n rows lie in it, σ_b² = ȳ_b
        (1 − ȳ_b) / n_b with the event rate ȳ_b, and Z is standard normal. With weights n_b / n is a
        share of weight.
        """
        from scipy.special import erf

        mass, expected = self.cells.mass[at], self.cells.expected[at, 0]
        rate, gap = (sums[:, :, 0] + expected) / mass, np.abs(sums[:, :, 0] / mass)
        units = mass**2 / self.cells.square_mass[at]  # effective number of rows
        sigma = np.sqrt(np.maximum(rate * (1.0 - rate), 0.0) / units)
        # E|D + σZ| is the mean of a folded normal, which beyond 40 σ is |D| to the last digit.
        ratio = np.minimum(gap / np.maximum(sigma, 1e-300), 40.0)
        noisy = sigma * np.sqrt(2 / np.pi) * np.exp(-0.5 * ratio**2) + gap * erf(ratio / np.sqrt(2))
        return np.asarray((2.0 * gap - noisy) * (mass / self.cells.mass.sum()))


@dataclass(frozen=True, eq=False)
class KumarL2(CellStatistic):
    """Debiased squared error of Kumar et al. (2019) with fixed predictions, for two classes.

    Its value is Σ_b (n_b / n) (D_b² − ȳ_b (1 − ȳ_b) / (n_b − 1)) over cells b with n_b rows, mean
    residual D_b and event rate ȳ_b.
    """

    def terms(self, sums: FloatArray, at: slice = slice(None)) -> FloatArray:
        """Return (n_b / n) (D_b² − ȳ_b (1 − ȳ_b) / (n_b − 1)) for the cells ``at``, shape (B, L).

        ``sums`` (B, L, 1) are residual sums of B sets of outcomes in the L cells that the slice
        ``at`` selects, D_b the mean residual of cell b, ȳ_b its event rate, and n_b its number of
        rows. A cell of one row adds 0.
        """
        counts = self.cells.counts[at]
        rate, gap = (sums[:, :, 0] + self.cells.expected[at, 0]) / counts, sums[:, :, 0] / counts
        excess = gap**2 - rate * (1.0 - rate) / np.maximum(counts - 1, 1)
        return np.asarray(excess * (np.where(counts > 1, counts, 0) / self.problem.n))


@dataclass(frozen=True, eq=False)
class ScalesReader(Reader):
    """Reader that computes :class:`Scales` from blocks of redrawn outcomes in one pass.

    Scales are nested partitions of the rows. Cells of coarser scales are merged as soon as their
    last fine cell has been read. A block (n, B) holds B sets of outcomes, rows in order of the
    finest cells; ``values`` returns the statistic, (B,).
    """

    at_once = 64

    def values(self, block: AnyArray, factor: float = 1.0) -> FloatArray:
        scales = cast("Scales", self.statistic)
        values = np.zeros((scales.m.size, block.shape[1]))
        steps = np.empty(0) if self.residuals else self.steps[0]
        base = np.zeros_like(self.expected) if self.residuals else self.base[0]
        fixed = (self.weights, self.expected, base, steps, *scales.closing)
        merge(block, self.starts, *fixed, values)
        return np.asarray((factor * values.T / scales.deviations).max(axis=1))


@lane_kernel
def merge(  # type: ignore[no-untyped-def]
    block, starts, weights, expected, base, steps, closing, pairs, first_pair, values
):
    # O(n + L) per lane: sums and squares (M, B) of the open cell of every scale, of which the first
    # closing[b] close after cell b. Residuals come without steps, and are squared.
    lanes, n_scales = block.shape[1], first_pair.size - 1
    weighted, squared = weights.size > 0, steps.size == 0
    gaps, squares = np.zeros((n_scales, lanes)), np.zeros((n_scales, lanes))
    at = first_pair[:-1].copy()
    gap, square = np.empty(lanes), np.empty(lanes)
    for b in range(starts.size - 1):
        for q in range(lanes):
            gap[q], square[q] = -expected[b], base[b]
        for i in range(starts[b], starts[b + 1]):
            row = block[i]
            if squared:
                for q in range(lanes):
                    gap[q] += row[q]
                    square[q] += row[q] * row[q]
            else:
                w, step = weights[i] if weighted else 1.0, steps[i]
                for q in range(lanes):
                    gap[q] += w * row[q]
                    square[q] += step * row[q]
        for q in range(lanes):
            gaps[0, q], squares[0, q] = gap[q], square[q]
        for m in range(min(closing[b], n_scales)):
            pair = pairs[at[m]]
            at[m] += 1
            if pair != 0.0:
                for q in range(lanes):
                    values[m, q] += pair * (gaps[m, q] * gaps[m, q] - squares[m, q])
            if m + 1 < n_scales:
                for q in range(lanes):
                    gaps[m + 1, q] += gaps[m, q]
                    squares[m + 1, q] += squares[m, q]
            if m > 0:
                for q in range(lanes):
                    gaps[m, q], squares[m, q] = 0.0, 0.0


@dataclass(frozen=True, eq=False)
class Scales(SumStatistic):
    """Multi-scale statistic with fixed predictions: the largest standardised error over partitions.

    There are M nested partitions, called scales. ``cells`` are the finest one. Each coarser scale
    merges runs of cells of the one before: ``first`` holds, for each scale, the index of the first
    cell of each run, ``pairs`` the weight of a pair of rows in each of its cells; ``deviations``
    (M,) are the standard deviations of the debiased errors under calibration. ``m`` (M,) are the
    numbers of bins of the scales, from fine to coarse.
    """

    m: IntArray
    first: tuple[IntArray, ...] = field(repr=False)
    pairs: tuple[FloatArray, ...] = field(repr=False)
    deviations: FloatArray = field(repr=False)
    squares: ClassVar[Squares] = "cells"
    reader: ClassVar[type[Reader]] = ScalesReader

    @cached_property
    def closing(self) -> tuple[IntArray, FloatArray, IntArray]:
        """Arrays (closing, weights, starts) that tell the compiled reader when cells end.

        Scales are nested partitions of the rows, from fine to coarse. ``closing`` (L,) is the
        number of scales that end a cell after each of the L finest cells, ``weights`` the pair
        weights of all cells, scale after scale, and ``starts`` the index in it where each scale
        begins, and the end of the last.
        """
        closing, ends = np.zeros(self.first[0].size, dtype=np.int64), np.arange(self.first[0].size)
        for m, first in enumerate(self.first):
            if m:
                ends = ends[np.append(first[1:], ends.size) - 1]
            closing[ends] = m + 1
        starts = np.cumsum([0, *(first.size for first in self.first)])
        return closing, np.concatenate(self.pairs), starts

    @property
    def rows_per_cell(self) -> None:
        """None: no mean number of rows in a bin, by which tests warn of sparse bins.

        The finest cells may hold one row each, as coarser partitions count as well.
        """

    def of_sums(self, sums: ResidualSums) -> FloatArray:
        return np.asarray(self.standardised(sums).max(axis=1))

    def standardised(self, sums: ResidualSums) -> FloatArray:
        """Return T_m / sd(T_m) for each of M partitions, from fine to coarse, shape (B, M).

        T_m is the debiased squared error over a partition, sd its standard deviation under
        calibration. ``sums`` hold ``cells`` (B, L, d), residual sums of B sets of outcomes in the L
        finest cells, and ``squares`` (B, L), sums of squared residuals.
        """
        # Cells come first, so that sets of outcomes lie side by side in memory.
        n_sets, _, d = sums.cells.shape
        gaps, squares = np.moveaxis(sums.cells, 0, 2), sums.squares.T
        values = np.empty((self.m.size, n_sets))
        for value, first, weights in zip(values, self.first, self.pairs, strict=True):
            if first.size < len(gaps):
                gaps = np.add.reduceat(gaps.reshape(len(gaps), -1), first).reshape(-1, d, n_sets)
                squares = np.add.reduceat(squares, first)
            value[:] = np.einsum("l,lb->b", weights, np.square(gaps).sum(axis=1) - squares)
        return values.T / self.deviations


@dataclass(frozen=True, repr=False)
class MultiScale(Statistic):
    """Adaptive test of calibration: the largest standardised debiased error over scales.

    T = max_m T_m / sd(T_m), T_m = (1/n) Σ_b (|S_b|² − Q_b) / (n_b − 1) in m cells, with n_b rows in
    cell b and the sums S_b of their residuals and Q_b of the squares: :class:`DebiasedL2` at m = 2,
    4, 8, … at once, so that no number of bins is chosen. Under calibration every T_m has mean 0
    and, given the predictions, exactly the variance (2/n²) Σ_b Σ_{i≠j in b} tr(C_i C_j) / (n_b −
    1)², C_i the covariance of label i; for two classes tr(C_i C_j) = v_i v_j, v = p (1 − p).

    The scales follow the adaptive T-Cal of Lee et al. (JMLR 24, 2023), who test each alone at level
    α divided by their number. The argument ``scales`` is a sequence of powers of two, increasing,
    by default 2, 4, …, 2^⌊log₂ n⌋; StatisticError for others. Two classes are cut into m bins of
    equal width, more into the cells of a :class:`VarianceTree` by medians that keep at least n / m
    rows. Scales on which T_m cannot vary are left out, and StatisticError when there is no other,
    as with one row. O((n + L) d) for a set of labels, L the cells of all scales and d = 1 for two
    classes, else K; O(n K² log n) once for K > 2. The value is a number of standard deviations of
    the noise, not a calibration error.

    Examples
    --------
    >>> probs = np.array([0.1, 0.1, 0.4, 0.4, 0.6, 0.6, 0.9, 0.9])
    >>> round(MultiScale([2, 4])(probs, np.array([0, 0, 1, 1, 0, 0, 1, 1])), 6)
    2.041428
    """

    scales: tuple[int, ...] | None = None
    essential: ClassVar[int] = 0

    def __init__(self, scales: Sequence[int] | None = None) -> None:
        object.__setattr__(self, "scales", None)
        if scales is None:
            return
        powers = tuple(scales) if isinstance(scales, Iterable) else (scales,)
        for m in powers:
            if not is_whole(m) or m < 1 or m & (m - 1):
                raise StatisticError(f"scales must be powers of two, which are nested, not {m!r}")
        if not powers or list(powers) != sorted(set(powers)):
            raise StatisticError(f"scales must be increasing and at least one, not {list(powers)}")
        object.__setattr__(self, "scales", tuple(map(int, powers)))

    def prepare(self, problem: Problem) -> Scales:
        n, two = problem.n, problem.n_classes == 2
        finest = max(2, min(n, MOST_BINS).bit_length())
        scales = self.scales or tuple(2**b for b in range(1, finest))
        if self.scales is None and problem.grid is not None:
            # Only where micro-cells end can bins end.
            scales = tuple(m for m in scales if problem.grid % m == 0)
        parts: list[tuple[int, Cells, FloatArray, float]] = []
        for m in scales[::-1]:
            cells = Cells.of(UniformBins(m) if two else VarianceTree(max(1, -(-n // m))), problem)
            pairs = pair_weights(cells)
            # Products r_i · r_j of different pairs are uncorrelated under calibration.
            variance = 2.0 * float(pairs**2 @ _cross_covariances(cells))
            if variance > 0.0:
                parts.append((m, cells, pairs, float(np.sqrt(variance))))
        if not parts:
            raise StatisticError(
                f"{self!r} is undefined: with {n} rows and these predictions no scale has a cell "
                "of two rows whose labels can vary"
            )
        widths, partitions, weights, deviations = zip(*parts, strict=True)
        cut = self.scales is None and problem.grid is not None
        first = tuple(
            np.searchsorted(before.starts, cells.starts[:-1])
            for before, cells in pairwise((partitions[0], *partitions))
        )
        return Scales(
            problem, np.array(widths), first, weights,
            np.array(deviations),
            cells=partitions[0],
            remark=f"MultiScale has the scales {widths[-1]} to {widths[0]}" if cut else "",
        )  # fmt: skip


def _cross_covariances(cells: Cells) -> FloatArray:
    """Return Σ_{i≠j in b} w_i² w_j² tr(C_i C_j) of each of the L ``cells`` b, shape (L,).

    The sum is over pairs of rows of a cell; w_i is the weight of row i and C_i the covariance of
    its label under calibration, for two classes p (1 − p). It is the variance of the debiased
    error, up to a factor.
    """
    problem, w = cells.problem, cells.problem.weight
    if problem.n_classes == 2:
        total, diagonal = cells.sum(problem.variance) ** 2, cells.sum(problem.squared_variance)
    else:
        probs, squared = problem.probs, np.ones(problem.n) if w is None else w**2
        # C_i = diag(p) − p p', so ‖C_i‖² = Σp² − 2 Σp³ + (Σp²)².
        squares = np.einsum("ik,ik->i", probs, probs)
        traces = squares - 2.0 * np.einsum("ik,ik,ik->i", probs, probs, probs) + squares**2
        diagonal = cells.sum(squared**2 * traces)
        total, ordered, scale = diagonal.copy(), probs[cells.order], squared[cells.order, None]
        for b in np.flatnonzero(cells.counts > 1):
            part = slice(cells.starts[b], cells.starts[b + 1])
            rows, weighted = ordered[part], scale[part] * ordered[part]
            covariance = np.diag(weighted.sum(axis=0)) - weighted.T @ rows
            total[b] = (covariance**2).sum()
    # 0 where only one row of a cell can vary, of which rounding is left.
    return np.where(total - diagonal > 1e-13 * total, total - diagonal, 0.0)


# ------------------------------------------------------------------------------
# Class-wise errors, every class binned by itself: ClasswiseECE, SCE, ACE, TACE.


Aggregate = Literal["mean", "max"]


#: The cells of the kept rows of one class, and what each cell counts, from their probabilities and
#: weights.
ClassBins = Callable[[FloatArray, FloatArray], tuple[IntArray, FloatArray]]


@dataclass(frozen=True, eq=False)
class ClassCells(Prepared):
    """Class-wise binned error with fixed predictions.

    It sums w |events − predicted| over the L cells of all classes, which are numbered
    consecutively, class k from ``starts[k]``. ``cell`` (n, K) has the number of the cell of row i
    for class k, L where a threshold left the row out. A label adds one event to one cell, so that a
    set of labels costs O(n + L) whatever K is. ``expected`` (L,) are the sums of predictions, and
    ``shares`` (L,) the weights w; ``aggregate`` is "mean" or "max" over classes. ``fixed`` says
    that any sample of these rows has the same cells.
    """

    cell: NDArray[np.unsignedinteger] = field(repr=False)
    starts: IntArray = field(repr=False)
    expected: FloatArray = field(repr=False)
    shares: FloatArray = field(repr=False)
    aggregate: Aggregate
    #: Whether cells are the same in any sample of these rows, which count alike.
    fixed: bool = field(default=False, kw_only=True)

    @classmethod
    def of(
        cls, problem: Problem, bins: ClassBins, threshold: float, aggregate: Aggregate,
        fixed: bool = False,
    ) -> ClassCells:  # fmt: skip
        """Return the class-wise error of a problem with rows, a function of the outcomes.

        Probabilities above ``threshold`` are binned class by class; 0 keeps all. ``bins(p, w)``
        returns the cell of each prediction ``p`` (m,) of a class, integers (m,), and the weight of
        each cell in the class error; w (m,) are the weights of the rows. ``aggregate`` is "mean" or
        "max" over classes; ``fixed`` says that any sample of these rows has the same cells.
        """
        data = problem.data
        cell = np.full((data.n_classes, data.n), -1, dtype=np.int32)
        of_row = np.ones(data.n) if data.weights is None else data.weights
        sums: list[FloatArray] = []
        weights: list[FloatArray] = []
        starts = [0]
        for k, p in enumerate(data.probs.T):
            rows = np.flatnonzero(p > threshold) if threshold else slice(None)
            p, w = np.ascontiguousarray(p[rows]), of_row[rows]
            cells, weight = bins(p, w) if p.size else (np.empty(0, np.int64), np.empty(0))
            cell[k, rows] = starts[-1] + cells
            sums.append(np.bincount(cells, w * p, minlength=weight.size).astype(np.float64))
            weights.append(weight)
            starts.append(starts[-1] + weight.size)
        cell[cell < 0] = starts[-1]
        # The smallest type, row by row: a label looks up one entry of its row.
        small = np.ascontiguousarray(cell.astype(np.min_scalar_type(starts[-1])).T)
        parts = (np.array(starts), np.concatenate(sums), np.concatenate(weights))
        return cls(problem, small, *parts, aggregate, fixed=fixed)

    @property
    def rows_per_cell(self) -> float:
        return float(np.count_nonzero(self.cell < self.shares.size) / max(1, self.shares.size))

    def values(self, outcomes: object, factor: float = 1.0) -> FloatArray:
        return self._combined(self.by_class(factor**0.5 * self._sums(outcomes)))

    def by_class(self, sums: FloatArray) -> FloatArray:
        """Return the error of every class, (B, K); 0 for a class without cells.

        ``sums`` (B, L) are residual sums, events − predicted, of the L cells of all classes, class
        after class, for B sets of outcomes.
        """
        # One term more, as the last class may have no cells and start beyond the others.
        gaps = np.concatenate([np.abs(sums) * self.shares, np.zeros((len(sums), 1))], axis=1)
        errors = np.add.reduceat(gaps, self.starts[:-1], axis=1)
        # For a class without cells reduceat gives the first term of the next.
        return np.asarray(np.where(np.diff(self.starts) > 0, errors, 0.0))

    def _sums(self, outcomes: object) -> FloatArray:
        """Return residual sums, events − predicted, of the L cells of all classes, (B, L).

        ``outcomes`` are B label vectors (B, n), or multiples of the observed residuals
        (:class:`Flips`). O(n + L) for each set, whatever the number of classes.
        """
        size, w = self.shares.size, self.problem.weight
        if isinstance(outcomes, Flips):
            residuals, flat = self.data.residuals, self.cell.ravel()
            moved = ((m[:, None] * residuals).ravel() for m in outcomes.multipliers)
            return np.array([np.bincount(flat, r, size + 1)[:-1] for r in moved], dtype=np.float64)
        assert isinstance(outcomes, np.ndarray)
        if len(outcomes) == 1:  # without compiled code, which takes half a second to load
            hit = self.cell[np.arange(self.problem.n), outcomes[0]]
            return np.bincount(hit, w, size + 1)[None, :-1] - self.expected
        events = np.empty((len(outcomes), size + 1))
        _count_entries(outcomes, self.cell, np.empty(0) if w is None else w, events)
        return np.asarray(events[:, :-1] - self.expected)

    def row_resamples(self, scheme: RowScheme) -> Shortcut | None:
        """Return a compiled resampler of this error on resampled rows, or None.

        None is returned where resampled rows do not keep their cells. ``scheme`` says how rows are
        drawn, such as with replacement. The resampler's ``replicates(seed, first, count)`` returns
        values (count,).
        """
        outcomes = scheme.label_chances(self.data) if self.fixed else None
        if outcomes is None:
            return None
        from caltest.nulls.resampled_rows import resampled_classes

        rows = self.data.probs, outcomes, self.cell, self.starts
        return resampled_classes(*rows, self._combined)

    def _combined(self, errors: FloatArray) -> FloatArray:
        """Return the mean or the largest over classes of ``errors`` (B, K), shape (B,).

        B is the number of sets of outcomes, K the number of classes. The field ``aggregate``,
        "mean" or "max", says which.
        """
        return np.asarray(errors.max(axis=1) if self.aggregate == "max" else errors.mean(axis=1))


@kernel
def _count_entries(labels, cell, weights, events_out):  # type: ignore[no-untyped-def]
    # O(n + L) per label vector: a row adds an event to the one cell of its label's class.
    for r in range(labels.shape[0]):
        row, events = labels[r], events_out[r]
        events[:] = 0.0
        if weights.size > 0:
            for i in range(row.size):
                events[cell[i, row[i]]] += weights[i]
        else:
            for i in range(row.size):
                events[cell[i, row[i]]] += 1.0


@dataclass(frozen=True, repr=False)
class ClasswiseECE(Statistic):
    """Class-wise calibration error: the ECE of every class against the rest, averaged.

    (1/K) Σ_k Σ_b (n_bk / n_k) |freq(b, k) − mean p(b, k)|, where the n_k rows with p_ik above the
    ``threshold`` in [0, 1) (0 keeps all of them, zeros included) are cut into ``bins``, a binning
    or number of bins, for each class by itself, by the two columns (p_k, 1 − p_k), as after
    ``OneVsRest(k)``; ``aggregate="max"`` takes the largest class in place of the "mean". n_bk rows
    lie in bin b of class k, freq is the frequency of label k there. A class with no row above the
    threshold contributes 0. Times K / 2 it is comparable with total variation. With weights n_bk
    and n_k are sums of weights. StatisticError for tallies. O(n K log n) once, then O(n + cells)
    for each further set of labels.

    Examples
    --------
    >>> probs = np.array([[0.5, 0.3, 0.2], [0.5, 0.3, 0.2]])
    >>> round(ClasswiseECE(10)(probs, np.array([0, 0])), 6)
    0.333333
    """

    bins: Binning | int = UniformBins(15)
    _: KW_ONLY
    aggregate: Aggregate = "mean"
    threshold: float = 0.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "bins", as_binning(self.bins))
        one_of("aggregate", self.aggregate, ("mean", "max"))
        number("threshold", self.threshold, 0.0, 1.0, "[)")

    def prepare(self, problem: Problem) -> ClassCells:
        data = rows_of(problem, self, weights=True)
        fixed = isinstance(self.bins, FIXED) and self.threshold == 0.0 and data.weights is None
        return ClassCells.of(problem, self._cells, self.threshold, self.aggregate, fixed)

    def _cells(self, p: FloatArray, w: FloatArray) -> tuple[IntArray, FloatArray]:
        columns = np.column_stack([p, 1.0 - p])
        one_class = Predictions(columns, np.zeros(p.size, dtype=np.int64), induced=True)
        cells = Cells.of(self.bins, RowProblem(one_class))
        return cells.of_unit, np.full(len(cells), 1.0 / w.sum())


def SCE(bins: int = 15) -> ClasswiseECE:  # noqa: N802 (named as published)
    """Return the static calibration error of Nixon et al. (2019, §4.1), a statistic.

    SCE = (1/K) Σ_k Σ_b (n_bk / N) |acc(b, k) − conf(b, k)| over ``bins`` bins of equal width for
    each of K classes: n_bk of N rows lie in bin b, acc(b, k) is the frequency of label k and
    conf(b, k) the mean of its probability there. It is ``ClasswiseECE(UniformBins(bins))``; call it
    with probabilities and labels.
    """
    return ClasswiseECE(UniformBins(bins))


@dataclass(frozen=True, repr=False)
class ACE(Statistic):
    """Adaptive calibration error of Nixon et al. (2019, §4.2), in [0, 1].

    ACE = (1/(K R)) Σ_k Σ_r |acc(r, k) − conf(r, k)|, acc the frequency of label k and conf the mean
    of its probability in range r: for each of K classes the n_k predictions above the ``threshold``
    (0 keeps all of them, zeros included) are sorted and cut into R = ``bins`` ranges of ⌊n_k / R⌋,
    the last with the remainder; fewer than R predictions are a range each. Equal predictions are
    never separated: ranges that end at the same value are one range, which weighs as many times 1/R
    as it replaces. A class with no prediction above the threshold contributes 0. Ranges do not see
    weights, means in them are weighted. O(n K log n) once, then O(n + R K) for each further set of
    labels.

    Also called ACE are ``ECE(QuantileBins(m))`` after ``TopK(1)``, an average of netcal in which
    occupied bins of equal width count the same, and ranges weighted by their counts, as in the
    authors' code (``presets.nixon2019(variant="nixon")``).

    Examples
    --------
    >>> probs = np.array([[0.9, 0.1], [0.7, 0.3], [0.8, 0.2], [0.6, 0.4]])
    >>> round(ACE(2)(probs, np.array([0, 1, 0, 1])), 6)
    0.4
    """

    bins: int = 15
    _: KW_ONLY
    threshold: float = 0.0

    def __post_init__(self) -> None:
        whole("bins", self.bins, most=MOST_BINS)
        number("threshold", self.threshold, 0.0, 1.0, "[)")

    def prepare(self, problem: Problem) -> ClassCells:
        rows_of(problem, self, weights=True)
        return ClassCells.of(problem, self._cells, self.threshold, "mean")

    def _cells(self, p: FloatArray, w: FloatArray) -> tuple[IntArray, FloatArray]:
        ordered = np.sort(p)
        size, n_ranges = max(1, p.size // self.bins), min(self.bins, p.size)
        ends = ordered[np.append(size * np.arange(1, n_ranges) - 1, p.size - 1)]
        ends, replaced = np.unique(ends, return_counts=True)
        cells = np.searchsorted(ends, p, side="left")
        return cells, replaced / (n_ranges * np.bincount(cells, w, minlength=ends.size))


def TACE(bins: int = 15, *, threshold: float = 0.01) -> ACE:  # noqa: N802 (named as published)
    """Return the thresholded adaptive calibration error of Nixon et al. (2019, §4.3), a statistic.

    It is :class:`ACE`, with ``bins`` ranges, of the predictions above ``threshold``, a number in
    [0, 1); call it with probabilities and labels.
    """
    return ACE(bins, threshold=threshold)
