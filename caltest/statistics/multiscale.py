"""One statistic over all scales: the debiased error in ever finer cells, each standardised."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from caltest._numba import kernel
from caltest.binning import UniformBins, VarianceTree
from caltest.errors import StatisticError
from caltest.predictions import FloatArray, IntArray
from caltest.statistics.binned import cell_of_rows, grouped
from caltest.statistics.problem import OfLabels


@dataclass(frozen=True, eq=False)
class Scales:
    """Nested partitions of fixed predictions, from fine to coarse.

    The cells of a scale are runs of cells of the scale before: ``merges`` says where they start and
    ``weights`` are 1 / (n (n_b − 1)), both for one scale after the other, with ``sizes`` cells;
    ``deviations`` are the standard deviations of the debiased errors under calibration.
    """

    m: IntArray
    cell: IntArray = field(repr=False)
    probs: FloatArray = field(repr=False)
    norms: FloatArray = field(repr=False)
    sizes: IntArray = field(repr=False)
    merges: IntArray = field(repr=False)
    weights: FloatArray = field(repr=False)
    deviations: FloatArray = field(repr=False)

    def __call__(self, labels: IntArray) -> float:
        return float(self.standardised(labels).max())

    def standardised(self, labels: IntArray) -> FloatArray:
        """Return T_m / sd(T_m) for every scale m, from fine to coarse."""
        sums = np.zeros((self.sizes[0], self.probs.shape[1]))
        squares = np.zeros(self.sizes[0])
        _residuals(labels, self.cell, self.probs, self.norms, sums, squares)
        values = np.empty(self.deviations.size)
        _scale_errors(sums, squares, self.merges, self.weights, self.sizes, values)
        return values / self.deviations


@kernel
def _residuals(labels, cell, probs, norms, sums_out, squares_out):  # type: ignore[no-untyped-def]
    # O(n d): S_b = Σ r_i and Q_b = Σ |r_i|² of every cell, r_i = onehot(y_i) − p_i.
    d = probs.shape[1]
    for i in range(labels.size):
        b, y = cell[i], labels[i]
        for k in range(d):
            sums_out[b, k] -= probs[i, k]
        squares_out[b] += norms[i]
        if y < d:
            sums_out[b, y] += 1.0
            squares_out[b] += 1.0 - 2.0 * probs[i, y]


@kernel
def _scale_errors(sums, squares, merges, weights, sizes, errors_out):  # type: ignore[no-untyped-def]
    # O(L d). The sums of a scale are written over those of the scale before.
    offset, before = 0, sizes[0]
    for s in range(sizes.size):
        total = 0.0
        for b in range(sizes[s]):
            first = merges[offset + b]
            last = merges[offset + b + 1] if b + 1 < sizes[s] else before
            square = 0.0
            for k in range(sums.shape[1]):
                gap = 0.0
                for child in range(first, last):
                    gap += sums[child, k]
                sums[b, k] = gap
                square += gap * gap
            own = 0.0
            for child in range(first, last):
                own += squares[child]
            squares[b] = own
            total += weights[offset + b] * (square - own)
        errors_out[s] = total
        offset += sizes[s]
        before = sizes[s]


@dataclass(frozen=True, repr=False)
class MultiScale(OfLabels):
    """Adaptive test of calibration: the largest standardised debiased error over scales.

    T = max_m T_m / sd(T_m), T_m = (1/n) Σ_b (|S_b|² − Q_b) / (n_b − 1) in m cells, with the sums
    S_b of the residuals and Q_b of their squares: :class:`DebiasedL2` at m = 2, 4, 8, … at once, so
    that no number of bins is chosen. Under calibration every T_m has mean 0 and, given the
    predictions, exactly the variance (2/n²) Σ_b Σ_{i≠j in b} tr(C_i C_j) / (n_b − 1)², C_i the
    covariance of label i; for two classes tr(C_i C_j) = v_i v_j, v = p (1 − p). No draws are needed
    to standardise, and the draws of the test serve all scales (max-T).

    The scales are those of the adaptive T-Cal of Lee et al. (2022), as far as the data reach; they
    test each scale by itself at level α divided by their number. Two classes are cut into m bins of
    equal width; more classes into the cells of a :class:`VarianceTree` by medians that keep at
    least n / m rows. Scales on which T_m cannot vary are left out.

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
    calibration error. Power at n = 500 and 5 % (300 data sets; in brackets with every scale at α
    divided by their number): slope 0.7 0.62 (0.46), shift 0.25 0.44 (0.25), three waves 0.53
    (0.40), a bump 0.74 (0.56), twenty waves 0.80 (0.79), where ``ECE(15)`` has 0.09.

    References
    ----------
    Lee, Huang, Hassani & Dobriban (2023), "T-Cal: an optimal test for the calibration of predictive
    models", JMLR 24.

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

    def given(self, probs: FloatArray) -> Scales:
        """Fix the predictions: partition them at every scale and standardise."""
        n, n_classes = probs.shape
        scales = self.scales or tuple(2**b for b in range(1, max(2, n.bit_length())))
        columns = np.ascontiguousarray(probs[:, :1] if n_classes == 2 else probs)
        fine_cell, fine_starts = np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64)
        kept: list[int] = []
        merges, weights, deviations = [], [], []
        for m in scales[::-1]:
            bins = UniformBins(m) if n_classes == 2 else VarianceTree(max(1, -(-n // m)))
            order, starts = grouped(bins, probs)
            counts = np.diff(starts)
            weight = np.where(counts > 1, 1.0 / (n * np.maximum(counts - 1, 1)), 0.0)
            variance = 2.0 * float(weight**2 @ _cross_covariances(probs[order], starts))
            if variance == 0.0:
                continue
            if not kept:
                fine_cell = cell_of_rows(order, starts)
                merges.append(np.arange(counts.size))
            else:
                merges.append(np.searchsorted(fine_starts, starts[:-1]))
            fine_starts = starts[:-1]
            kept.append(m)
            weights.append(weight)
            deviations.append(np.sqrt(variance))
        if not kept:
            raise StatisticError(
                f"{self!r} is undefined: with {n} rows and these predictions no scale has a cell "
                "of two rows whose labels can vary"
            )
        norms, sizes = np.einsum("ik,ik->i", columns, columns), [w.size for w in weights]
        return Scales(
            np.array(kept), fine_cell, columns, norms, np.array(sizes), np.concatenate(merges),
            np.concatenate(weights), np.array(deviations),
        )  # fmt: skip


def _powers(scales: Sequence[int]) -> tuple[int, ...]:
    chosen = tuple(scales)
    for m in chosen:
        if not isinstance(m, (int, np.integer)) or m < 1 or m & (m - 1):
            raise StatisticError(
                f"scales must be powers of two, so that they are nested, not {m!r}"
            )
    if not chosen or list(chosen) != sorted(set(chosen)):
        raise StatisticError(f"scales must be increasing and at least one, not {list(scales)!r}")
    return tuple(int(m) for m in chosen)


def _cross_covariances(probs: FloatArray, starts: IntArray) -> FloatArray:
    """Return Σ_{i≠j in b} tr(C_i C_j) of every cell b; of two classes, of one component."""
    if probs.shape[1] == 2:
        v = probs[:, 0] * probs[:, 1]
        total, own = (np.add.reduceat(x, starts[:-1]) for x in (v, v * v))
        return _without_rounding(total**2, own)
    # C_i = diag(p) − p p', so ‖C_i‖² = Σp² − 2 Σp³ + (Σp²)².
    squares = np.einsum("ik,ik->i", probs, probs)
    own = np.add.reduceat(
        squares - 2.0 * np.einsum("ik,ik,ik->i", probs, probs, probs) + squares**2, starts[:-1]
    )
    total = own.copy()
    for b in np.flatnonzero(np.diff(starts) > 1):
        rows = probs[starts[b] : starts[b + 1]]
        covariance = np.diag(rows.sum(axis=0)) - rows.T @ rows
        total[b] = (covariance**2).sum()
    return _without_rounding(total, own)


def _without_rounding(total: FloatArray, own: FloatArray) -> FloatArray:
    # A cell in which one row only can vary leaves the rounding of the difference.
    return np.where(total - own > 1e-13 * total, total - own, 0.0)
