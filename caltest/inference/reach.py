r"""How far the limits of a difference of two debiased squared errors lie from it.

D = T_A − T_B has a variance that its own scatter shows, and more that it may hide. All parts are
sums over rows or cells, so that nothing is resampled; z is the normal quantile of the limit.

* *Base*, what the rows show: V_J − Q̂, the jackknife less the quadratic part that it counts twice,
  but at least that part, from residuals as they are (Q) and centred in their cells (Q̂).
* *Labels not shown.* A cell whose residuals scatter less than its predictions promise,
  φ_b = max(0, 1 − Σ\|r_i − r̄_b\|² / Σ v_i) > 0 with v_i = 1 − \|p_i\|², has rare labels that did
  not occur. Row i adds the share 4 / (4 + m_b) φ_b of the variance that D would have if its label
  were drawn from p_i, by the model that makes more of it.
* *Labels anywhere.* z²/2 labels more than were seen, wherever they would fall (Agresti & Coull
  1998): z²/2 times the mean squared change of a label, where that is more.
* *The least favourable cell.* The error of the model that looks better may all lie in one cell, in
  which |S_b| is small by luck: T is then near the bottom of its law, where it also varies least. A
  unit of cell b adds Σ_u |S_ub|² / (W_b W) to T whatever its sign, on average; the variance gains
  2 z² times the square of that in the cell where it is largest.
* *Rows alone in their cell* count nothing in T. Those of the model that looks better may carry an
  error of Σ \|r_i\|² / n; U(z) is its upper limit, of a weighted count (Fay & Feuer 1997).

Where rows come in clusters, those are the units of all this but for "labels anywhere", and labels
not shown go together in a cluster. z is then a quantile of Student's law, also for weighted rows.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from caltest.inference.squared_error import SquaredError, added, base_variance, summed
from caltest.predictions import FloatArray, Predictions

#: Rows of a cell that count as much as what was promised of it.
PRIOR = 4.0
#: Times z² at which the least favourable cell enters; validation/pairs has the designs it is for.
MORE = 2.0
#: Where the search for a p-value ends: 2Φ(−z) is the smallest number there.
LARGEST_Z = 38.0


@dataclass(frozen=True, eq=False)
class Side:
    """What one model brings: its debiased squared error, and the predictions it is made of."""

    error: SquaredError
    data: Predictions

    def _of_rows(self, values: FloatArray) -> FloatArray:
        """Return the weighted sums of row values (n,) in the cells."""
        w = self.data.weights
        weighted = self.error.copies * (values if w is None else w * values)
        return summed(weighted, self.error.cell, self.error.mass.size)

    @cached_property
    def not_shown(self) -> FloatArray:
        """The share of the variance of each label that is added, shape (n,)."""
        data, error, parts = self.data, self.error, self.error.parts
        squares = (data.probs**2).sum(axis=1)
        observed = data.probs[np.arange(data.n), data.labels]
        promised = self._of_rows(1.0 - squares)
        sums = added(parts.times[:, None] * parts.sums, parts.cell, error.mass.size)
        # Of two classes the second component is not stored, and is like the first.
        components = 2.0 if data.n_classes == 2 else 1.0
        scatter = self._of_rows(1.0 + squares - 2.0 * observed)
        scatter -= components * (sums**2).sum(axis=1) / error.mass
        ratio = np.divide(scatter, promised, out=np.ones_like(scatter), where=promised > 0.0)
        units = error.mass**2 / error.in_cells(parts.mass**2)  # effective number in each cell
        return (PRIOR / (PRIOR + units) * np.maximum(0.0, 1.0 - ratio))[error.cell]

    @cached_property
    def worst_cell(self) -> float:
        """The square of what one unit of the least favourable cell adds to T."""
        squares = self.error.in_cells((self.error.parts.sums**2).sum(axis=1)) / self.error.mass
        return float(squares.max() / self.error.mass.sum()) ** 2

    @cached_property
    def lone(self) -> FloatArray:
        """What each unit that is alone in its cell may carry."""
        parts = self.error.parts
        alone = self.error.weights[parts.cell] == 0.0
        squares = (parts.sums[alone] ** 2).sum(axis=1)
        return squares / (parts.mass[alone] * self.error.mass.sum())

    def lone_limit(self, z: float) -> float:
        """Return the upper limit U(z) of what the lone rows carry; 0 without any."""
        from scipy.special import gammaincinv, ndtr

        if not self.lone.size or self.lone.max() == 0.0:
            return 0.0
        largest = self.lone.max()
        # Fay & Feuer: the weighted count as a gamma law, with one more event of the largest weight
        mean, variance = self.lone.sum() + largest, (self.lone**2).sum() + largest**2
        return float(variance / mean * gammaincinv(mean**2 / variance, ndtr(z)))

    def label_variances(self, changes: FloatArray) -> FloatArray:
        """Return the variances of changes (n, K) when labels are drawn from the predictions."""
        mean = (self.data.probs * changes).sum(axis=1)
        return np.asarray((self.data.probs * changes**2).sum(axis=1) - mean**2)


@dataclass(frozen=True, eq=False)
class Difference:
    """The difference T_A − T_B of two models, with its limits and its p-value."""

    a: Side
    b: Side
    paired: bool

    @property
    def value(self) -> float:
        """D."""
        return self.a.error.estimate - self.b.error.estimate

    @cached_property
    def base(self) -> float:
        """The variance that the rows show."""
        return base_variance(self.a.error, self.b.error, self.paired)

    @cached_property
    def not_shown(self) -> float:
        """The variance of labels that their cells have not shown."""
        a, b = self.a, self.b
        va, vb = a.label_variances(a.error.changes), b.label_variances(b.error.changes)
        if not self.paired:
            both = zip((a, b), (va, vb), strict=True)
            return sum(side.error.together(side.not_shown * v) for side, v in both)
        # A label that both models have moves both: changes are subtracted before they are squared
        together = a.error.changes - b.error.changes
        ab = b.label_variances(a.error.changes)
        ba = a.label_variances(b.error.changes)
        by_a = np.where(self._same, a.label_variances(together), va + ba)
        by_b = np.where(self._same, b.label_variances(together), vb + ab)
        return a.error.together(np.maximum(a.not_shown * by_a, b.not_shown * by_b))

    @cached_property
    def anywhere(self) -> float:
        """The mean squared change of D by other labels of one unit."""
        a, b = self.a.error, self.b.error
        if not self.paired:
            return sum(_of_one_unit(error, error.changes**2) for error in (a, b))
        apart = a.changes**2 + b.changes**2
        return _of_one_unit(a, np.where(self._same[:, None], (a.changes - b.changes) ** 2, apart))

    @property
    def _same(self) -> FloatArray:
        # A lens may give each model labels of its own.
        return np.asarray(self.a.data.labels == self.b.data.labels)

    @property
    def freedom(self) -> float:
        """Degrees of freedom of what the units show."""
        return min(self.a.error.freedom, self.b.error.freedom)

    def reach(self, z: float, side: Side, lone: bool = True) -> float:
        """Return how far the limit lies from D on the side where ``side`` looks better."""
        # Rounding of the cells must not make a model differ from itself
        if self.paired and np.array_equal(self.a.data.probs, self.b.data.probs):
            return 0.0  # one model, compared with itself
        variance = self.base + max(self.not_shown, 0.5 * z * z * self.anywhere)
        variance += MORE * z * z * side.worst_cell
        if not lone:
            return float(z * np.sqrt(variance))
        carried = float(side.lone.sum())
        return carried + float(np.hypot(z * np.sqrt(variance), side.lone_limit(z) - carried))

    def limits(self, level: float) -> tuple[float, float]:
        """Return the interval of the difference."""
        from scipy.special import stdtrit

        z = float(stdtrit(self.freedom, 0.5 + level / 2.0))
        return self.value - self.reach(z, self.b), self.value + self.reach(z, self.a)

    def pvalue(self, lone: bool = True) -> float:
        """Return 2Φ(−z) at the z whose limit just meets 0; ``lone`` counts rows alone in a cell.

        Φ is Student's law where units are clusters, or rows do not weigh alike.
        """
        from scipy.optimize import brentq
        from scipy.special import stdtr

        # The limit on the side of 0 is that of the model that looks better
        better, distance = self.a if self.value < 0.0 else self.b, abs(self.value)
        if distance <= 1e-14 or self.reach(0.0, better, lone) >= distance:
            return 1.0  # no more than the rounding of a model compared with itself
        smallest = float(np.finfo(float).tiny)
        if self.reach(LARGEST_Z, better, lone) <= distance:
            return smallest
        z = brentq(lambda z: self.reach(z, better, lone) - distance, 0.0, LARGEST_Z, xtol=1e-12)
        return max(2.0 * float(stdtr(self.freedom, -z)), smallest)


def _of_one_unit(error: SquaredError, squares: FloatArray) -> float:
    """Return the mean over units of the squared changes (n, K) by other labels of their rows."""
    whole = float(error.copies @ squares.sum(axis=1))
    return whole / ((squares.shape[1] - 1) * float(error.times.sum()))
