"""One statistic over all scales: the debiased error in ever finer cells, each standardised."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from caltest._base.checks import is_whole
from caltest.binning import UniformBins, VarianceTree
from caltest.errors import StatisticError
from caltest.predictions import FloatArray, IntArray
from caltest.problem import Cells, Problem, ResidualSums
from caltest.problem.base import Squares
from caltest.statistics.base import Statistic
from caltest.statistics.debiased import pair_weights
from caltest.statistics.prepared import SumStatistic


@dataclass(frozen=True, eq=False)
class Scales(SumStatistic):
    """The largest standardised excess over nested partitions; ``cells`` are the finest.

    The cells of a scale are runs of the finest: ``edges`` says for each scale where they start and
    the last ends, ``pairs`` what a pair of rows counts in each; ``deviations`` are the standard
    deviations of the debiased errors under calibration.
    """

    m: IntArray
    edges: tuple[IntArray, ...] = field(repr=False)
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
        assert sums.cells is not None
        assert sums.squares is not None
        # Cells come first, so that sets of outcomes lie side by side in memory.
        gaps, squares = np.moveaxis(sums.cells, 0, 2), sums.squares.T
        values = np.empty((self.m.size, len(sums.cells)))
        before = self.edges[0]
        for value, edges, weights in zip(values, self.edges, self.pairs, strict=True):
            if edges.size < before.size:
                first = np.searchsorted(before, edges[:-1])
                gaps, squares = (np.add.reduceat(x, first) for x in (gaps, squares))
                before = edges
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

    The scales are those of the adaptive T-Cal of Lee et al. (JMLR 24, 2023), who test each alone
    at level α divided by their number. Two classes are cut into m bins of equal width, more into
    the cells of a :class:`VarianceTree` by medians that keep at least n / m rows. Scales on which
    T_m cannot vary are left out.

    Parameters
    ----------
    scales : sequence of int, optional
        Powers of two, increasing; by default 2, 4, …, 2^⌊log₂ n⌋.

    Raises
    ------
    StatisticError
        When T_m cannot vary on any scale, as with one row or predictions of 0 and 1 only.

    Notes
    -----
    O((n + L) d) for a set of labels, L the cells of all scales and d = 1 for two classes, else K;
    O(n K² log n) once for K > 2. The value is a number of standard deviations of the noise, not a
    calibration error.

    Examples
    --------
    >>> probs = np.array([0.1, 0.1, 0.4, 0.4, 0.6, 0.6, 0.9, 0.9])
    >>> round(MultiScale([2, 4])(probs, np.array([0, 0, 1, 1, 0, 0, 1, 1])), 6)
    2.041428
    """

    scales: tuple[int, ...] | None = None
    essential: ClassVar[int] = 0

    def __init__(self, scales: Sequence[int] | None = None) -> None:
        object.__setattr__(self, "scales", None if scales is None else _powers(scales))

    def prepare(self, problem: Problem) -> Scales:
        n, two = problem.n, problem.n_classes == 2
        scales = self.scales or tuple(2**b for b in range(1, max(2, n.bit_length())))
        if self.scales is None and problem.grid is not None:
            scales = tuple(m for m in scales if problem.grid % m == 0)
        parts: list[tuple[int, Cells, FloatArray, float]] = []
        for m in scales[::-1]:
            cells = Cells.of(UniformBins(m) if two else VarianceTree(max(1, -(-n // m))), problem)
            pairs = pair_weights(cells)
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
        return Scales(
            problem, np.array(widths), tuple(cells.starts for cells in partitions), weights,
            np.array(deviations),
            cells=partitions[0],
            remark=f"MultiScale has the scales {widths[-1]} to {widths[0]}" if cut else "",
        )  # fmt: skip


def _powers(scales: Sequence[int]) -> tuple[int, ...]:
    chosen = tuple(scales) if isinstance(scales, Iterable) else (scales,)
    for m in chosen:
        if not is_whole(m) or m < 1 or m & (m - 1):
            raise StatisticError(
                f"scales must be powers of two, so that they are nested, not {m!r}"
            )
    if not chosen or list(chosen) != sorted(set(chosen)):
        raise StatisticError(f"scales must be increasing and at least one, not {list(scales)!r}")
    return tuple(int(m) for m in chosen)


def _cross_covariances(cells: Cells) -> FloatArray:
    """Return Σ_{i≠j in b} w_i² w_j² tr(C_i C_j) of every cell b; of two classes, of one component.

    C_i is the covariance of label i.
    """
    problem = cells.problem
    if problem.n_classes == 2:
        total, diagonal = cells.sum(problem.variance) ** 2, cells.sum(problem.squared_variance)
        return _without_rounding(total, diagonal)
    probs, w = problem.probs, problem.weight
    squared = np.ones(problem.n) if w is None else w**2
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
    return _without_rounding(total, diagonal)


def _without_rounding(total: FloatArray, diagonal: FloatArray) -> FloatArray:
    """Return their difference, but 0 where one row of a cell can vary and rounding is left."""
    return np.where(total - diagonal > 1e-13 * total, total - diagonal, 0.0)
