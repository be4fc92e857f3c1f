"""Binned errors without the upward bias of noise, at one scale and at all of them at once."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import KW_ONLY, dataclass, field
from itertools import pairwise
from typing import ClassVar, Literal

import numpy as np

from caltest._base.arrays import codes
from caltest._base.checks import is_whole, one_of
from caltest.binning import Binning, UniformBins, VarianceTree, as_binning
from caltest.errors import StatisticError
from caltest.predictions import FloatArray, IntArray
from caltest.problem import Cells, Estimand, Problem, ResidualSums
from caltest.problem.base import Squares
from caltest.statistics.base import Statistic
from caltest.statistics.prepared import CellStatistic, SumStatistic

SQUARED, ABSOLUTE = Estimand("squared"), Estimand("absolute")


@dataclass(frozen=True, eq=False)
class Excess(SumStatistic):
    """Σ_b w_b (|S_b|² − Q_b), S_b and Q_b the sums of the residuals of cell b and their squares."""

    pairs: FloatArray = field(repr=False)
    squares: ClassVar[Squares] = "cells"

    def of_sums(self, sums: ResidualSums) -> FloatArray:
        gaps = sums.cells[:, :, 0]
        gaps = np.square(gaps) if self.norm is None else gaps
        return np.asarray(((gaps - sums.squares) * self.pairs).sum(axis=1))

    @property
    def norm(self) -> int | None:
        return None if self.problem.d == 1 else 1


@dataclass(frozen=True, eq=False)
class ClusterPairs(SumStatistic):
    """The same without pairs of one cluster: Σ_b w_b (|S_b|² − Σ_g |S_gb|²).

    S_gb is the sum of the rows of cluster g in cell b, one of the ``parts``. Of two columns of
    clusters pairs count that share neither: Σ_b w_b (|S_b|² − Σ_g |S_gb|² − Σ_h |S_hb|² +
    Σ_gh |S_ghb|²). Each of ``sets`` has the cell of every part, and a factor for its squared sum.
    """

    parts: Cells = field(repr=False)
    sets: tuple[tuple[Cells, FloatArray], ...] = field(repr=False)

    @classmethod
    def of(cls, cells: Cells, columns: Sequence[IntArray], estimand: Estimand) -> ClusterPairs:
        """Divide the cells by cluster; those of one cluster count nothing. O(n log n)."""

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
    """Return what Σ r_i · r_j over pairs of rows of each cell counts: (W_b / W) / (W_b² − Σ w²).

    ``with_own`` adds pairs of a row and itself to the divisor. 0 of one row, also beside rows whose
    weights are rounding.
    """
    diagonal = 0.0 if with_own else cells.square_mass
    pairs = np.where(cells.counts > 1, cells.mass**2 - diagonal, 0.0)
    pairs[pairs <= 1e-13 * cells.mass**2] = np.inf
    return np.asarray(cells.mass / pairs / cells.mass.sum())


@dataclass(frozen=True, repr=False)
class DebiasedL2(Statistic):
    """Squared l2 calibration error without the bias of noise: signed, 0 on average if calibrated.

    T = (1/n) Σ_b (|S_b|² − Q_b) / (n_b − 1), with r_i = onehot(y_i) − p_i, S_b = Σ_{i in b} r_i and
    Q_b = Σ_{i in b} |r_i|²: the U-statistic over pairs of rows in the same cell, which estimates
    Σ_b π_b |Δ_b|², Δ_b the mean residual of the cell, without bias for given counts. Cells with one
    row count nothing. Of two classes only the first component enters, so that the value is
    comparable with the squared errors of Kumar et al. (2019, §5) and Lee et al. (2022), and half of
    what ``ECE(bins, "sqeuclidean")`` estimates; of more classes all components enter. O(n K) for
    each set of labels. With clusters only pairs of two clusters count, in each cell
    (W_b / W) (|S_b|² − Σ_g |S_gb|²) / (W_b² − Σ_g W_gb²), so that dependence within clusters does
    not look like an error, and of two columns those that share neither. ``bins`` are those of
    :class:`ECE`.

    Parameters
    ----------
    estimator : {"pairs", "tcal", "kumar"}, default "pairs"
        ``"tcal"`` divides by n_b instead of n_b − 1, as Lee et al. (2022) do. ``"kumar"`` is
        Σ_b (n_b/n) (D_b² − ȳ_b (1 − ȳ_b) / (n_b − 1)), D_b = S_b / n_b, of Kumar et al. (2019), for
        two classes: it treats the predictions of a cell as equal, and takes off a little too much.
        Both do not see clusters.

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
        return Excess(problem, weights, cells=cells, estimand=error, null_mean=0.0)


@dataclass(frozen=True, repr=False)
class DebiasedL1(Statistic):
    """Calibration error less the bias that a normal approximation of its noise gives it.

    T = Σ_b (n_b / n) (2 |D_b| − E|D_b + σ_b Z|), D_b = ȳ_b − p̄_b, σ_b² = ȳ_b (1 − ȳ_b) / n_b, Z
    standard normal: the debiased estimate of Kumar et al. (2019, §5) with p = 1, whose average over
    simulated normals is here the mean of a folded normal, in closed form. For two classes. With
    weights, means and shares of the cells are weighted and n_b in σ_b² is (Σ w)² / Σ w².
    ``bins`` are those of :class:`ECE`. O(n). An error of 0 is still estimated a little above 0.

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
    """The debiased l1 error of Kumar et al. for fixed predictions."""

    def terms(self, sums: FloatArray, at: slice = slice(None)) -> FloatArray:
        """Return (n_b / n) (2 |D_b| − E|D_b + σ_b Z|) of residual sums of the cells."""
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
    """The debiased squared error of Kumar et al. for fixed predictions."""

    def terms(self, sums: FloatArray, at: slice = slice(None)) -> FloatArray:
        """Return (n_b / n) (D_b² − ȳ_b (1 − ȳ_b) / (n_b − 1)) of residual sums of the cells."""
        counts = self.cells.counts[at]
        rate, gap = (sums[:, :, 0] + self.cells.expected[at, 0]) / counts, sums[:, :, 0] / counts
        excess = gap**2 - rate * (1.0 - rate) / np.maximum(counts - 1, 1)
        return np.asarray(excess * (np.where(counts > 1, counts, 0) / self.problem.n))


@dataclass(frozen=True, eq=False)
class Scales(SumStatistic):
    """The largest standardised excess over nested partitions; ``cells`` are the finest.

    The cells of a scale are runs of those of the scale before: ``first`` says which cell there each
    starts with, ``pairs`` what a pair of rows counts in each; ``deviations`` are the standard
    deviations of the debiased errors under calibration.
    """

    m: IntArray
    first: tuple[IntArray, ...] = field(repr=False)
    pairs: tuple[FloatArray, ...] = field(repr=False)
    deviations: FloatArray = field(repr=False)
    squares: ClassVar[Squares] = "cells"

    @property
    def rows_per_cell(self) -> None:
        """Not asked for: the finest cells may hold a row each, for coarser ones count, too."""

    def of_sums(self, sums: ResidualSums) -> FloatArray:
        return np.asarray(self.standardised(sums).max(axis=1))

    def standardised(self, sums: ResidualSums) -> FloatArray:
        """Return T_m / sd(T_m) for every scale m, from fine to coarse, shape (B, M)."""
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

    T = max_m T_m / sd(T_m), T_m = (1/n) Σ_b (|S_b|² − Q_b) / (n_b − 1) in m cells, with the sums
    S_b of the residuals and Q_b of their squares: :class:`DebiasedL2` at m = 2, 4, 8, … at once, so
    that no number of bins is chosen. Under calibration every T_m has mean 0 and, given the
    predictions, exactly the variance (2/n²) Σ_b Σ_{i≠j in b} tr(C_i C_j) / (n_b − 1)², C_i the
    covariance of label i; for two classes tr(C_i C_j) = v_i v_j, v = p (1 − p).

    The scales are those of the adaptive T-Cal of Lee et al. (JMLR 24, 2023), who test each alone at
    level α divided by their number: powers of two, increasing, by default 2, 4, …, 2^⌊log₂ n⌋. Two
    classes are cut into m bins of equal width, more into the cells of a :class:`VarianceTree` by
    medians that keep at least n / m rows. Scales on which T_m cannot vary are left out, and
    StatisticError when there is no other, as with one row. O((n + L) d) for a set of labels, L the
    cells of all scales and d = 1 for two classes, else K; O(n K² log n) once for K > 2. The value
    is a number of standard deviations of the noise, not a calibration error.

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
        scales = self.scales or tuple(2**b for b in range(1, max(2, n.bit_length())))
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
    """Return Σ_{i≠j in b} w_i² w_j² tr(C_i C_j) of every cell b; of two classes, of one component.

    C_i is the covariance of label i.
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
