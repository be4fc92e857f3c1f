"""The debiased squared error of a model, and the variance of the difference of two."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from caltest.predictions import FloatArray, IntArray, Predictions
from caltest.statistics.cells import Cells


@dataclass(frozen=True, eq=False)
class SquaredError:
    """T = (1/n) Σ_{i≠j} w_ij r_i · r_j, with all that its variance needs.

    The weight w_ij is w_b = 1 / (n_b − 1) for two rows of one cell b and 0 otherwise, so that T is
    the value of ``DebiasedL2``.

    ``cell`` (n,) is the cell of every row, ``weights`` (L,) the w_b, 0 for cells of one row;
    ``residuals`` (n, d) are r_i = onehot(y_i) − p_i, ``centred`` (n, d) the same less the mean of
    the cell; ``omitting`` (n,) is T when row i is left out and cells are kept, ``changes`` (n, K)
    by how much T changes when row i has label k instead of its own.
    """

    estimate: float
    cell: IntArray
    weights: FloatArray
    residuals: FloatArray
    centred: FloatArray
    omitting: FloatArray
    changes: FloatArray

    @classmethod
    def of(cls, cells: Cells, induced: Predictions) -> SquaredError:
        """Compute everything in O(n d)."""
        n, cell, counts = induced.n, cells.of_row, cells.counts
        r = induced.residuals[:, :1] if induced.n_classes == 2 else induced.residuals
        sums = cells.sum(r)
        squares = (r * r).sum(axis=1)
        totals = (sums * sums).sum(axis=1) - np.bincount(cell, squares)  # |S_b|² − Q_b
        weights = _reciprocal(counts - 1)
        # Without row i: |S − r|² − (Q − |r|²) = |S|² − Q − 2 S·r + 2 |r|².
        left = totals[cell] - 2.0 * (sums[cell] * r).sum(axis=1) + 2.0 * squares
        whole = float(weights @ totals)
        others = whole - (weights * totals)[cell] + _reciprocal(counts - 2)[cell] * left
        centred = r - sums[cell] / counts[cell, None]
        rest = 2.0 * weights[cell, None] * (sums[cell] - r) / n
        if induced.n_classes == 2:  # the second component is not counted
            rest = np.column_stack([rest, np.zeros(n)])
        changes = rest - rest[np.arange(n), induced.labels, None]
        return cls(whole / n, cell, weights, r, centred, others / max(n - 1, 1), changes)

    @property
    def n(self) -> int:
        """Number of rows."""
        return self.cell.size

    def in_cells(self, values: FloatArray) -> FloatArray:
        """Return the sums of row values (n,) in the cells, shape (L,)."""
        return np.asarray(np.bincount(self.cell, values, self.weights.size), dtype=np.float64)

    @property
    def alone(self) -> int:
        """Number of rows that have their cell for themselves."""
        return int((self.weights[self.cell] == 0.0).sum())


def _reciprocal(counts: IntArray) -> FloatArray:
    return np.where(counts > 0, 1.0 / np.maximum(counts, 1), 0.0)


def base_variance(a: SquaredError, b: SquaredError, paired: bool, cautious: bool = False) -> float:
    """Return the variance of T_a − T_b that the rows show, whether models are calibrated or not.

    With h_ij the kernel of T_a − T_b, the variance has a linear part V₁, which is 0 when both
    models are calibrated, and a quadratic part 2 Σ_{i≠j} h_ij² / n². The jackknife V_J counts the
    second twice, and its expectation is never too small (Efron & Stein 1981). With ĥ_ij from
    residuals centred in their cells, the variance used is

        V = max(V_J − Q̂, Q, Q̂) + 1e-14 Q₀,  Q = 2 Σ h_ij² / n², Q̂ = 2 Σ ĥ_ij² / n²,

    with Q₀ = Q without the products of the two models: a floor for their rounding. ``cautious``
    keeps V_J. Paired rows enter through the products of the two kernels; without pairs they are 0.
    O(n) for two classes; for K classes O(n K) and, in every cell of m rows, O(m K min(m, K)).
    """
    omitting = [a.omitting - b.omitting] if paired else [a.omitting, b.omitting]
    jackknife = sum((values.size - 1) * float(values.var()) for values in omitting)
    centred = _quadratic(a, b, a.centred, b.centred, paired)
    raw = _quadratic(a, b, a.residuals, b.residuals, paired)
    apart = _quadratic(a, b, a.residuals, b.residuals, False)
    return max(jackknife - (0.0 if cautious else centred), raw, centred, 0.0) + 1e-14 * apart


def _quadratic(
    a: SquaredError, b: SquaredError, x: FloatArray, z: FloatArray, paired: bool
) -> float:
    """Return 2 Σ_{i≠j} h_ij² / n² for the residuals x of a and z of b."""
    own_a = _pairs(x, x, a.cell, a.weights**2)
    own_b = _pairs(z, z, b.cell, b.weights**2)
    if not paired:
        return 2.0 * (own_a / a.n**2 + own_b / b.n**2)
    both, shared = np.unique(a.cell * b.weights.size + b.cell, return_inverse=True)
    weights = a.weights[both // b.weights.size] * b.weights[both % b.weights.size]
    return 2.0 * (own_a + own_b - 2.0 * _pairs(x, z, shared.ravel(), weights)) / a.n**2


def _pairs(x: FloatArray, z: FloatArray, group: IntArray, weights: FloatArray) -> float:
    """Return Σ_g w_g Σ_{i≠j in g} (x_i · x_j)(z_i · z_j); inner sums are |XᵀZ|² − Σ |x|² |z|²."""
    if x.shape[1] == 1:
        products = (x * z)[:, 0]
        sums = np.bincount(group, products, minlength=weights.size)
        return float(weights @ (sums**2 - np.bincount(group, products**2, weights.size)))
    order = np.argsort(group, kind="stable")
    starts = np.searchsorted(group[order], np.arange(weights.size + 1))
    total = 0.0
    for g in np.flatnonzero((np.diff(starts) > 1) & (weights > 0.0)):
        rows = order[starts[g] : starts[g + 1]]
        xs, zs = x[rows], z[rows]
        few = rows.size < x.shape[1]
        whole = ((xs @ xs.T) * (zs @ zs.T)).sum() if few else np.square(xs.T @ zs).sum()
        own = (np.square(xs).sum(axis=1) * np.square(zs).sum(axis=1)).sum()
        total += weights[g] * float(whole - own)
    return total
