r"""Variances where rows depend on each other along two columns of clusters.

Of a sum over rows V = max(V_a + V_b − V_ab, V_a, V_b), with V_a and V_b the jackknife variances
over the clusters of each column and V_ab that over rows which share both (Cameron, Gelbach &
Miller, Journal of Business & Economic Statistics 29, 2011; MacKinnon, Nielsen & Webb,
arXiv:2406.08880), judged by Student's law with min_c (Σ n_g)² / Σ n_g² − 1 degrees of freedom.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from caltest._base.facts import by_appearance
from caltest.inference.squared_error import added, over
from caltest.predictions import FloatArray, IntArray, Predictions
from caltest.problem import Cells
from caltest.tally import Source


def columns_of(data: Source) -> tuple[IntArray, IntArray, IntArray]:
    """Return the clusters of both columns, and those of rows that share both."""
    first, second = by_appearance(data.clusters), by_appearance(data.crossed)
    codes = first * (int(second.max()) + 1) + second
    return first, second, by_appearance(codes)


def freedom_of(data: Source) -> float:
    """Return the effective number of clusters of the column that has fewer, less 1."""
    masses = [np.bincount(unit, data.weights) for unit in columns_of(data)[:2]]
    return float(max(min(m.sum() ** 2 / (m**2).sum() for m in masses) - 1.0, 1.0))


def joined(first: FloatArray, second: FloatArray, both: FloatArray) -> FloatArray:
    """Return V of variances, or of matrices whose diagonals are raised to the larger of the two."""
    combined = np.atleast_2d(first + second - both)
    least = np.maximum(np.diag(np.atleast_2d(first)), np.diag(np.atleast_2d(second)))
    # V_a + V_b − V_ab may be below its parts by chance; the larger of both is never too small
    raised = combined + np.diag(np.maximum(least - np.diag(combined), 0.0))
    if np.linalg.eigvalsh(raised).min() <= 0.0:  # two columns of next to nothing in common
        raised = np.atleast_2d(first + second)
    return raised.reshape(np.shape(first))


@dataclass(frozen=True, eq=False)
class CrossedError:
    """T = (1/W) Σ_b w_b Σ r_i · r_j over pairs of a cell that share neither cluster.

    ``estimate`` is T, ``omitting`` T without each cluster of a column, its cells kept, ``linear``
    (n,) the first-order term w (2 r̄_b · r − |r̄_b|²) of every row.
    """

    estimate: float
    omitting: tuple[FloatArray, FloatArray]
    linear: FloatArray

    @classmethod
    def of(cls, cells: Cells, induced: Predictions) -> CrossedError:
        """Compute all from sums over rows of one cell and one pair of clusters: O(n d log n)."""
        r = induced.residuals[:, :1] if induced.n_classes == 2 else induced.residuals
        w = np.ones(induced.n) if induced.weights is None else induced.weights
        cell, size, (a, b, both) = cells.of_unit, len(cells), columns_of(induced)
        _, first, place = np.unique(both * size + cell, return_index=True, return_inverse=True)
        place, at = place.ravel(), cell[first]
        x = np.column_stack([added(r, place), np.bincount(place, w)])
        columns = [np.unique(c[first] * size + at, return_inverse=True)[1].ravel() for c in (a, b)]
        parts = [added(x, column) for column in columns]
        whole = added(x, at, size)

        def products(values: FloatArray, others: FloatArray) -> FloatArray:
            """Return products of residual sums, and of masses."""
            both = values * others
            return np.column_stack([both[:, :-1].sum(axis=1), both[:, -1]])

        # Inclusion and exclusion: all pairs, less those of either cluster, plus those of both
        pairs = products(whole, whole) + added(products(x, x), at, size)
        starts = [np.unique(column, return_index=True)[1] for column in columns]
        for part, start in zip(parts, starts, strict=True):
            pairs -= added(products(part, part), at[start], size)
        mass = whole[:, -1]
        terms = mass * over(pairs[:, 0], pairs[:, 1], pairs[:, 1] > 1e-9)
        omitting = []
        for j, unit in enumerate((a, b)):
            part, start, other = parts[j], starts[j], parts[1 - j][columns[1 - j]]
            where = at[start]
            # The pairs that a cluster has with others of its cell, which share no cluster
            lost = products(whole[where] - part, part) - added(products(other - x, x), columns[j])
            rest = pairs[where] - 2.0 * lost
            left = mass[where] - part[:, -1]
            gained = left * over(rest[:, 0], rest[:, 1], rest[:, 1] > 1e-9) - terms[where]
            changed = np.bincount(unit[first][start], gained)
            remaining = mass.sum() - np.bincount(unit, w)
            omitting.append((terms.sum() + changed) / np.maximum(remaining, 1e-300))
        mean = whole[:, :-1] / np.maximum(mass, 1e-300)[:, None]
        linear = 2.0 * (mean[cell] * r).sum(axis=1) - w * (mean**2).sum(axis=1)[cell]
        return cls(float(terms.sum() / mass.sum()), (omitting[0], omitting[1]), linear)


def variance_of_difference(a: CrossedError, b: CrossedError, data: Predictions) -> float:
    """Return V of T_A − T_B; what rows that share both clusters add is of first order."""
    both = zip(a.omitting, b.omitting, strict=True)
    first, second = (_jackknife(x - y) for x, y in both)
    w = np.ones(data.n) if data.weights is None else data.weights
    linear = a.linear - b.linear
    linear = linear - w * linear.sum() / w.sum()
    together = (np.bincount(columns_of(data)[2], linear) ** 2).sum() / w.sum() ** 2
    return float(max(first + second - together, first, second))


def by_student(
    value: float, variance: float, freedom: float, level: float
) -> tuple[float, float, float]:
    """Return the interval of an estimate and its two-sided p-value, by Student's law."""
    from scipy.special import stdtr, stdtrit

    error = max(float(np.sqrt(variance)), 1e-300)
    reach = float(stdtrit(freedom, 0.5 + level / 2.0)) * error
    pvalue = max(2.0 * float(stdtr(freedom, -abs(value) / error)), float(np.finfo(float).tiny))
    return value - reach, value + reach, 1.0 if abs(value) <= 1e-14 else pvalue


def _jackknife(values: FloatArray) -> float:
    return float((values.size - 1) / values.size * ((values - values.mean()) ** 2).sum())
