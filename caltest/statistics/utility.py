"""Utility calibration: does acting on the probabilities gain the utility they promise?

:class:`UtilityCalibration` is the statistic of Hegazy, Jordan & Dieuleveut (2025);
:class:`PromiseWalk` is its prepared form, a walk along promised utilities. :class:`PromisedSum` and
:class:`ThresholdSums` are the totals of :func:`caltest.promise` and of a decision curve.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from caltest._base import FloatArray, IntArray
from caltest.data.utilities import UtilityLike, UtilityTable
from caltest.statistics.prepared import Prepared, ResidualStatistic, SumStatistic
from caltest.statistics.problem import Cells, Problem, ResidualSums
from caltest.statistics.statistic import Statistic, rows_of

#: Relative difference of promised utilities that counts as equal.
EQUAL_PROMISES = 1e-12


@dataclass(frozen=True, eq=False)
class PromiseWalk(ResidualStatistic):
    """The range of cumulative differences of utilities, with the predictions fixed.

    ``gains`` (n, K) are utilities less what is promised, for every label. Rows are taken in
    ``order``, and ``ends`` (L,) is the last row of each group of equal promises.
    """

    gains: FloatArray = field(repr=False)
    order: IntArray = field(repr=False)
    ends: IntArray = field(repr=False)
    total: float

    def values(self, outcomes: object, factor: float = 1.0) -> FloatArray:
        if not isinstance(outcomes, np.ndarray):  # signs, and outcomes of follow-up
            return super().values(outcomes, factor)
        steps = self.gains[np.arange(len(self.gains)), outcomes]
        weight = self.problem.weight
        return factor**0.5 * self._range(steps if weight is None else weight * steps)

    def of_residuals(self, residuals: FloatArray, squares: FloatArray) -> FloatArray:
        d = residuals.shape[2]
        gains = self.gains[:, :d]
        if d < self.gains.shape[1]:  # the residual of the other of two classes is its negative
            gains = gains - self.gains[:, d:]
        return self._range(np.einsum("bud,ud->bu", residuals, gains))

    def _range(self, steps: FloatArray) -> FloatArray:
        walk = np.cumsum(steps[:, self.order], axis=1)[:, self.ends]
        highest, lowest = walk.max(axis=1, initial=0.0), walk.min(axis=1, initial=0.0)
        return np.asarray((highest - lowest) / self.total)


@dataclass(frozen=True, repr=False)
class UtilityCalibration(Statistic):
    """Utility calibration error: distance of the utility gained from the utility promised.

    A user with utility u gains u(p, k) in a row with probabilities p if class k occurs. The model
    promises v = Σ_k p_k u(p, k). The statistic is the largest difference over all intervals I of
    promised utilities,

    max_I |(1/n) Σ_i (u(p_i, y_i) − v_i) 1{v_i ∈ I}|,

    in units of the utility (Hegazy, Jordan & Dieuleveut 2025, arXiv:2510.25458). There are no bins;
    rows with equal promises enter together. With ``TopKAccuracy(1)`` it is :class:`Kuiper` of the
    top label. The null distribution is simulated by redrawn labels, valid for every utility and
    every number of classes. The usual lens is ``Canonical()``. Rows only: a tally does not keep
    utilities. O(n K + n log n) once, O(n) for each further set of labels.

    Parameters
    ----------
    utility : Utility or callable
        :class:`Costs`, ``Costs.threshold(t)``, :class:`TopKAccuracy`, :class:`ReciprocalRank`, or
        a function from probabilities (n, K) to utilities (n, K).

    Raises
    ------
    StatisticError
        For a utility that is no finite table of shape (n, K), and for tallies.

    Examples
    --------
    >>> from caltest import Costs
    >>> treat = UtilityCalibration(Costs([[0, 4], [1, 1]]))  # a missed event costs 4
    >>> round(treat([[0.9, 0.1], [0.5, 0.5], [0.8, 0.2]], [1, 0, 0]), 6)
    1.2
    """

    utility: UtilityLike
    of_whole_vector: ClassVar[bool] = True

    def prepare(self, problem: Problem) -> PromiseWalk:
        rows = rows_of(problem, self, weights=True, labels=False)
        flipped = rows.induced and problem.n_classes == 2  # of two induced classes 0 is the event
        probs = problem.probs[:, ::-1] if flipped else problem.probs
        table = UtilityTable.of(self.utility, probs)
        centred = table.gains - table.promised[:, None]
        centred = centred[:, ::-1] if flipped else centred
        order = np.argsort(table.promised, kind="stable")
        promised = table.promised[order]
        scale = max(1.0, float(np.abs(promised).max()))
        ends = np.flatnonzero(np.append(np.diff(promised) > EQUAL_PROMISES * scale, True))
        total = float(len(probs) if problem.weight is None else problem.weight.sum())
        return PromiseWalk(problem, np.ascontiguousarray(centred), order, ends, total)


# ------------------------------------------------------------------------------
# Totals, with the predictions fixed, for rows that are redrawn with their design.


@dataclass(frozen=True, eq=False)
class PromisedSum(SumStatistic):
    """Total Σ w (u − v) of the utility gained less the utility promised; two-sided around 0."""

    @classmethod
    def of(cls, problem: Problem, table: UtilityTable) -> PromisedSum:
        """Return the total for utilities of the rows of a problem, unweighted, (n, K)."""
        return cls(problem, two_sided=True, scores=table.gains[None])

    def of_sums(self, sums: ResidualSums) -> FloatArray:
        return np.ascontiguousarray(sums.linear[:, 0])


@dataclass(frozen=True, eq=False)
class ThresholdSums(SumStatistic):
    """Residual sums Σ w (y − p) of the rows with p ≥ t at each of T thresholds, two-sided.

    p is the probability of label 1. At threshold t the total utility gained less the utility
    promised is this sum times 1 / (1 − t). ``column`` (T,) is the first of the L occupied cells
    between thresholds whose rows are treated, L where none is.
    """

    cells: Cells = field(kw_only=True, repr=False)
    column: IntArray = field(kw_only=True, repr=False)

    @classmethod
    def of(cls, problem: Problem, thresholds: FloatArray) -> ThresholdSums:
        """Return the sums for ``thresholds`` (T,), ascending; O(n log T)."""
        number = np.searchsorted(thresholds, problem.probs[:, 1], side="right")
        cells = Cells.by_number(number, problem)
        column = np.searchsorted(np.unique(number), np.arange(1, thresholds.size + 1))
        return cls(problem, two_sided=True, cells=cells, column=column)

    def of_sums(self, sums: ResidualSums) -> FloatArray:
        # The residual is that of class 0, of which label 1 has the negative
        above = -np.cumsum(sums.cells[:, ::-1, 0], axis=1)[:, ::-1]
        return np.append(above, np.zeros((len(above), 1)), axis=1)[:, self.column]

    @property
    def counted(self) -> tuple[Prepared, ...]:  # type: ignore[override]
        return ()  # T values for a set of labels, which only the general resampler keeps
