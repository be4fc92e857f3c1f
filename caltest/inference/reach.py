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
* *The worst cell* of the model that looks better may have fewer bad rows than it could: ¾ z² times
  the square of what one more row of it would add.
* *Rows alone in their cell* count nothing in T. Those of the model that looks better may carry an
  error of Σ \|r_i\|² / n; U(z) is its upper limit, of a weighted count (Fay & Feuer 1997).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from caltest.inference.squared_error import SquaredError, base_variance
from caltest.predictions import FloatArray, Predictions

#: Rows of a cell that count as much as what was promised of it.
PRIOR = 4.0
#: Share of z² at which one more row of the worst cell enters.
MORE = 0.75
#: Where the search for a p-value ends: 2Φ(−z) is the smallest number there.
LARGEST_Z = 38.0


@dataclass(frozen=True, eq=False)
class Side:
    """What one model brings: its debiased squared error, and the predictions it is made of."""

    error: SquaredError
    data: Predictions

    @property
    def _components(self) -> float:
        # Of two classes the second component is not stored, and is like the first.
        return 2.0 if self.data.n_classes == 2 else 1.0

    @cached_property
    def _promised(self) -> FloatArray:
        return np.asarray(1.0 - (self.data.probs**2).sum(axis=1))

    @cached_property
    def _squares(self) -> FloatArray:
        return self._components * (self.error.residuals**2).sum(axis=1)

    @cached_property
    def _size(self) -> FloatArray:
        return self.error.in_cells(np.ones(self.error.n))

    @cached_property
    def not_shown(self) -> FloatArray:
        """The share of the variance of each label that is added, shape (n,)."""
        promised = self.error.in_cells(self._promised)
        scatter = self._components * self.error.in_cells((self.error.centred**2).sum(axis=1))
        shown = np.divide(scatter, promised, out=np.ones_like(scatter), where=promised > 0.0)
        return (PRIOR / (PRIOR + self._size) * np.maximum(0.0, 1.0 - shown))[self.error.cell]

    @cached_property
    def worst_cell(self) -> float:
        """The square of what one more row of the worst cell would add."""
        mean = self.error.in_cells(self.error.omitting) / self._size
        without = self.error.omitting.mean() - mean
        excess = self.error.in_cells(self._squares - self._promised)
        excess /= self._size * self._components * self.error.n
        return float(max(without.max(), excess.max(), 0.0)) ** 2

    @cached_property
    def lone(self) -> FloatArray:
        """What each row that is alone in its cell may carry."""
        alone = self.error.weights[self.error.cell] == 0.0
        return self._squares[alone] / (self._components * self.error.n)

    def lone_limit(self, z: float) -> float:
        """Return the upper limit U(z) of what the lone rows carry; 0 without any."""
        from scipy.special import gammaincinv, ndtr

        if not self.lone.size or self.lone.max() == 0.0:
            return 0.0
        largest = self.lone.max()
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
    cautious: bool = False

    @property
    def value(self) -> float:
        """D."""
        return self.a.error.estimate - self.b.error.estimate

    @cached_property
    def base(self) -> float:
        """The variance that the rows show."""
        return base_variance(self.a.error, self.b.error, self.paired, self.cautious)

    @cached_property
    def not_shown(self) -> float:
        """The variance of labels that their cells have not shown."""
        a, b = self.a, self.b
        va, vb = a.label_variances(a.error.changes), b.label_variances(b.error.changes)
        if not self.paired:
            return float(a.not_shown @ va + b.not_shown @ vb)
        together = a.error.changes - b.error.changes
        ab = b.label_variances(a.error.changes)
        ba = a.label_variances(b.error.changes)
        by_a = np.where(self._same, a.label_variances(together), va + ba)
        by_b = np.where(self._same, b.label_variances(together), vb + ab)
        return float(np.maximum(a.not_shown * by_a, b.not_shown * by_b).sum())

    @cached_property
    def anywhere(self) -> float:
        """The mean squared change of D by another label, summed over the rows and over n."""
        a, b = self.a.error.changes, self.b.error.changes
        if not self.paired:
            return sum(float((c**2).sum()) / (len(c) * (c.shape[1] - 1)) for c in (a, b))
        squares = np.where(self._same[:, None], (a - b) ** 2, a**2 + b**2)
        return float(squares.sum()) / (len(a) * (a.shape[1] - 1))

    @property
    def _same(self) -> FloatArray:
        # A lens may give each model labels of its own.
        return np.asarray(self.a.data.labels == self.b.data.labels)

    def reach(self, z: float, side: Side, lone: bool = True) -> float:
        """Return how far the limit lies from D on the side where ``side`` looks better."""
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
        from scipy.special import ndtri

        z = float(ndtri(0.5 + level / 2.0))
        return self.value - self.reach(z, self.b), self.value + self.reach(z, self.a)

    def pvalue(self, lone: bool = True) -> float:
        """Return 2Φ(−z) at the z whose limit just meets 0; ``lone`` counts rows alone in a cell."""
        from scipy.optimize import brentq
        from scipy.special import ndtr

        better, distance = self.a if self.value < 0.0 else self.b, abs(self.value)
        if distance <= 1e-14 or self.reach(0.0, better, lone) >= distance:
            return 1.0  # no more than the rounding of a model compared with itself
        smallest = float(np.finfo(float).tiny)
        if self.reach(LARGEST_Z, better, lone) <= distance:
            return smallest
        z = brentq(lambda z: self.reach(z, better, lone) - distance, 0.0, LARGEST_Z, xtol=1e-12)
        return max(2.0 * float(ndtr(-z)), smallest)
