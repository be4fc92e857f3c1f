"""Debiased squared error of a model, and the variance of the difference of two.

:class:`SquaredError` holds the debiased error with its jackknife values, from the :class:`Parts` of
units (rows or clusters) in cells; :func:`base_variance` has the variance of a difference.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from caltest._base import BoolArray, FloatArray, IntArray
from caltest.data import Predictions
from caltest.data.facts import by_appearance
from caltest.statistics import Cells


@dataclass(frozen=True, eq=False)
class Parts:
    """Residual sums by unit and cell; a unit is a row, or a cluster of rows.

    A part is the rows of one unit in one cell. ``unit`` and ``cell`` (P,) number both; ``mass``
    (P,) is W_ub = Σ w_i, and ``sums`` (P, d) are S_ub = Σ w_i r_i with r_i = onehot(y_i) − p_i, one
    component for two classes. Parts of a unit are adjacent. ``of_row`` (n,) is the part of every
    row, and ``rows`` is true if each row is a unit. ``times`` (P,) is the number of such parts: 1,
    except for rows that stand for rows of a tally.
    """

    unit: IntArray
    cell: IntArray
    mass: FloatArray
    sums: FloatArray
    of_row: IntArray
    times: FloatArray
    rows: bool

    @classmethod
    def of(cls, induced: Predictions, cell: IntArray, times: FloatArray | None = None) -> Parts:
        """Sum the residuals of rows by unit and cell; O(n d), or O(n log n) with clusters.

        ``cell`` (n,) is the cell of every row; each row stands for ``times`` rows.
        """
        r = induced.residuals[:, :1] if induced.n_classes == 2 else induced.residuals
        w = np.ones(induced.n) if induced.weights is None else induced.weights
        every = np.arange(induced.n)
        if induced.n_clusters is None:
            times = np.ones(induced.n) if times is None else times
            return cls(every, cell, w, r, every, times, rows=True)
        unit = by_appearance(induced.clusters)
        n_cells = int(cell.max()) + 1
        codes, place = np.unique(unit * n_cells + cell, return_inverse=True)
        sums, mass = added(r, place.ravel(), codes.size), summed(w, place.ravel(), codes.size)
        once = np.ones(codes.size)
        return cls(*np.divmod(codes, n_cells), mass, sums, place.ravel(), once, rows=False)

    def crossed(self, other: Parts) -> tuple[IntArray, IntArray]:
        """Return index pairs (i, j), two arrays (m,).

        Parts of one unit in this and the other partition.
        """
        if self.rows:
            return self.of_row, self.of_row
        # Parts of a unit lie together: the parts of the other partition are a range for each
        counts = np.bincount(other.unit)
        repeat = counts[self.unit]
        left = np.repeat(np.arange(self.unit.size), repeat)
        first = (np.cumsum(counts) - counts)[self.unit] - (np.cumsum(repeat) - repeat)
        return left, np.arange(left.size) + first[left]


#: Share of a cell's weight that the others have beside a unit that dominates it.
DOMINATED = 1e-4


def added(values: FloatArray, group: IntArray, n_groups: int = 0) -> FloatArray:
    """Return the column sums of every group, shape (n_groups, d)."""
    return np.stack([np.bincount(group, column, n_groups) for column in values.T], axis=1)


def summed(values: FloatArray, group: IntArray, n_groups: int) -> FloatArray:
    """Return the sum of every group, shape (n_groups,)."""
    return np.asarray(np.bincount(group, values, n_groups), dtype=np.float64)


@dataclass(frozen=True, eq=False)
class SquaredError:
    """Debiased squared error T of a binned model, with its jackknife values.

    T = (1/W) Σ_b w_b (|S_b|² − Σ_u |S_ub|²) uses products of residual sums of two different units u
    in one cell b; a unit is a row or a cluster. w_b is W_b / (W_b² − Σ_u W_ub²), that is 1 / (n_b −
    1) for unweighted rows, and 0 for cells of one unit. For rows, T is the value of ``DebiasedL2``;
    for clusters it leaves out the pairs within a cluster.

    ``cell`` (n,) is the cell of every row, ``weights`` (L,) are the w_b, ``mass`` (L,) the W_b, and
    ``centred`` (P, d) the S_ub − W_ub S_b / W_b. ``omitting`` (U,) is T without unit u, with the
    same cells; ``changes`` (n, K) the change of T if row i has label k. ``copies`` (n,) and
    ``times`` (U,) say how many rows and units each row and unit stands for.
    """

    estimate: float
    cell: IntArray
    parts: Parts
    weights: FloatArray
    mass: FloatArray
    centred: FloatArray
    omitting: FloatArray
    changes: FloatArray
    copies: FloatArray
    times: FloatArray

    @classmethod
    def of(
        cls, cells: Cells, induced: Predictions, times: FloatArray | None = None
    ) -> SquaredError:
        """Compute the error in O(n d); each row stands for ``times`` rows, shape (n,)."""
        n, cell, size = induced.n, cells.of_unit, len(cells)
        parts = Parts.of(induced, cell, times)
        part_cell, mass, x, m = parts.cell, parts.mass, parts.sums, parts.times
        sums, units = added(m[:, None] * x, part_cell, size), np.bincount(part_cell, m, size)
        # |S|² − Σ |x|² are the products of two different units: their noise has mean 0
        squares = (x * x).sum(axis=1)
        totals = (sums * sums).sum(axis=1) - summed(m * squares, part_cell, size)
        total, squared = (summed(m * mass**e, part_cell, size) for e in (1, 2))
        apart = total**2 - squared
        heavy = (total[part_cell] - mass < DOMINATED * total[part_cell]) & (m == 1.0)
        if heavy.any():  # of which differences of sums would leave rounding only
            few = _without(heavy, parts, size)
            at = part_cell[heavy]
            totals[at] = few.totals[at] + 2.0 * (few.sums[at] * x[heavy]).sum(axis=1)
            apart[at] = few.apart[at] + 2.0 * few.total[at] * mass[heavy]
        weights = over(total, apart, (units > 1) & (apart > 0.0))
        # Without a unit: |S − x|² − (Q − |x|²) = |S|² − Q − 2 S·x + 2 |x|².
        left = totals[part_cell] - 2.0 * (sums[part_cell] * x).sum(axis=1) + 2.0 * squares
        rest = total[part_cell] - mass
        rest_apart = rest**2 - squared[part_cell] + mass**2
        if heavy.any():
            left[heavy], rest[heavy], rest_apart[heavy] = (
                few.totals[at], few.total[at], few.apart[at]
            )  # fmt: skip
        others = over(rest, rest_apart, (units[part_cell] > 2) & (rest_apart > 0.0))
        gone = np.bincount(parts.unit, others * left - (weights * totals)[part_cell])
        whole, everything = float(weights @ totals), float(m @ mass)
        remaining = everything - np.bincount(parts.unit, mass)
        omitting = (whole + gone) / np.where(remaining > 0.0, remaining, 1.0)
        # ∂T / ∂r_i = 2 w_b (S_b − x_i) / W: a product with itself is not in T
        change = 2.0 * weights[cell, None] * (sums[cell] - x[parts.of_row]) / everything
        change = change if induced.weights is None else change * induced.weights[:, None]
        if induced.n_classes == 2:  # the second component is not counted
            change = np.column_stack([change, np.zeros(n)])
        changes = change - change[np.arange(n), induced.labels, None]
        centred = x - sums[part_cell] * (mass / total[part_cell])[:, None]
        copies, alike = m[parts.of_row], m if parts.rows else np.ones(omitting.size)
        return cls(
            whole / everything, cell, parts, weights, total, centred, omitting, changes, copies,
            alike,
        )  # fmt: skip

    def in_cells(self, values: FloatArray) -> FloatArray:
        """Return the sums in the cells (L,) of values of the parts (P,)."""
        return summed(self.parts.times * values, self.parts.cell, self.weights.size)

    def together(self, variances: FloatArray) -> float:
        """Return the variance of a sum over rows if rows of one unit are perfectly correlated.

        ``variances`` (n,) are the variances of single rows.
        """
        if self.parts.rows:
            return float(self.copies @ variances)
        unit = self.parts.unit[self.parts.of_row]
        return float((np.bincount(unit, np.sqrt(variances)) ** 2).sum())

    @property
    def alone(self) -> int:
        """Number of rows in cells that hold a single unit, which the error does not use."""
        return int(self.copies[self.weights[self.cell] == 0.0].sum())

    @cached_property
    def freedom(self) -> float:
        """Degrees of freedom: the effective number of units less 1; infinite for equal weights."""
        mass = np.bincount(self.parts.unit, self.parts.mass)
        if self.parts.rows and mass.min() == mass.max():
            return np.inf
        whole, squared = float(self.times @ mass), float(self.times @ mass**2)
        return max(whole**2 / squared - 1.0, 1.0)


class Few(NamedTuple):
    """Sums over cells that leave some parts out.

    ``total`` (L,) is the weight, ``sums`` (L, d) the residual sums S, ``totals`` (L,) |S|² − Σ
    |S_u|² and ``apart`` (L,) W² − Σ W_u².
    """

    total: FloatArray
    sums: FloatArray
    totals: FloatArray
    apart: FloatArray


def _without(heavy: BoolArray, parts: Parts, size: int) -> Few:
    """Return the sums of the cells without the parts marked ``heavy`` (P,), which dominate them."""
    m = np.where(heavy, 0.0, parts.times)
    sums = added(m[:, None] * parts.sums, parts.cell, size)
    squares = summed(m * (parts.sums**2).sum(axis=1), parts.cell, size)
    total, squared = (summed(m * parts.mass**e, parts.cell, size) for e in (1, 2))
    return Few(total, sums, (sums * sums).sum(axis=1) - squares, total**2 - squared)


def over(a: FloatArray, b: FloatArray, where: BoolArray) -> FloatArray:
    """Return a / b elementwise, 0 where ``where`` is false."""
    return np.divide(a, b, out=np.zeros(a.shape), where=where)


def base_variance(a: SquaredError, b: SquaredError, paired: bool) -> float:
    """Return the variance of T_a − T_b that the units show, whether models are calibrated or not.

    With T_a − T_b = Σ_{u≠v} h_uv / W, the variance has a linear part V₁, which is 0 when both
    models are calibrated, and a quadratic part 2 Σ_{u≠v} h_uv² / W². The jackknife V_J counts the
    second twice, and its expectation is never too small (Efron & Stein 1981). With ĥ_uv from
    residuals centred in their cells, the variance used is

        V = max(V_J − Q̂, Q, Q̂) + 1e-14 Q₀,  Q = 2 Σ h_uv² / W², Q̂ = 2 Σ ĥ_uv² / W²,

    with Q₀ = Q without the products of the two models: a floor for their rounding. Paired units
    enter through the products of the two kernels; without pairs they are 0.
    O(n) for two classes; for K classes O(n K) and, in every cell of m rows, O(m K min(m, K)).
    Clusters meet in several pairs of cells, each of which costs as much.
    """
    sides = [(a.omitting - b.omitting, a)] if paired else [(e.omitting, e) for e in (a, b)]
    jackknife = 0.0
    for values, error in sides:
        times, n = error.times, float(error.times.sum())
        jackknife += (n - 1.0) / n * float(times @ (values - times @ values / n) ** 2)
    # Residuals as they are count true errors as noise; centred ones lack a little of it
    centred, _ = _quadratic(a, b, a.centred, b.centred, paired)
    raw, apart = _quadratic(a, b, a.parts.sums, b.parts.sums, paired)
    return max(jackknife - centred, raw, centred, 0.0) + 1e-14 * apart


def _quadratic(
    a: SquaredError, b: SquaredError, x: FloatArray, z: FloatArray, paired: bool
) -> tuple[float, float]:
    """Return (value, value for unpaired rows) of 2 Σ_{u≠v} h_uv² / W².

    h_uv is the product of two units u and v in T_a − T_b. ``x`` and ``z`` are the residual sums of
    the parts of models a and b; unpaired rows have no products between models.
    """
    scale_a, scale_b = float(a.mass.sum()), float(b.mass.sum())
    apart = 2.0 * (_products(a, a, x, x) / scale_a**2 + _products(b, b, z, z) / scale_b**2)
    both = _products(a, b, x, z) if paired else 0.0
    return apart - 4.0 * both / (scale_a * scale_b), apart


def _products(a: SquaredError, b: SquaredError, x: FloatArray, z: FloatArray) -> float:
    """Return Σ_{u≠v} g_uv h_uv over pairs of units u and v, for two models.

    g_uv is Σ_b w_b x_ub · x_vb, and h_uv likewise of z. The sum is computed as Σ w_b w_c (|X_bᵀ
    Z_c|² − …) over the pairs of a cell b of model a and a cell c of model b, where X_b and Z_c hold
    the sums of the units with parts in both, less the products of a unit with itself.
    """
    left, right = a.parts.crossed(b.parts)
    n_cells = b.weights.size
    if a is b and a.parts.rows:
        group, weights = a.cell, a.weights**2
    else:
        codes = a.parts.cell[left] * n_cells + b.parts.cell[right]
        pairs, group = np.unique(codes, return_inverse=True)
        group = group.ravel()
        weights = a.weights[pairs // n_cells] * b.weights[pairs % n_cells]
    # Products of a unit with itself are all in the sums over pairs, and are taken off here
    diagonal = a.times
    for error, values in ((a, x), (b, z)):
        squares = error.weights[error.parts.cell] * np.square(values).sum(axis=1)
        diagonal = diagonal * np.bincount(error.parts.unit, squares)
    if x.shape[1] == 1:
        both = a.parts.times[left] * (x[left] * z[right])[:, 0]
        products = np.bincount(group, both, weights.size)
        return float(weights @ products**2 - diagonal.sum())
    order = np.argsort(group, kind="stable")
    starts = np.searchsorted(group[order], np.arange(weights.size + 1))
    total = -float(diagonal.sum())
    for g in np.flatnonzero(weights > 0.0):
        rows = order[starts[g] : starts[g + 1]]
        xs, zs = x[left[rows]], z[right[rows]]
        # ‖XᵀZ‖² = Σ (XXᵀ)(ZZᵀ): the smaller of both tables is made
        few = rows.size < x.shape[1]
        whole = ((xs @ xs.T) * (zs @ zs.T)).sum() if few else np.square(xs.T @ zs).sum()
        total += weights[g] * float(whole)
    return total
