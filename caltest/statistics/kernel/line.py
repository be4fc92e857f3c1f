"""Sums over all pairs of units along the line of their predictions, and the MMCE made of them."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass, field, replace
from typing import ClassVar

import numpy as np

from caltest._base.checks import number
from caltest._base.compiled import kernel
from caltest.predictions import FloatArray
from caltest.problem import Cells, Problem, ResidualSums
from caltest.problem.base import Squares
from caltest.statistics.base import Statistic, coarseness
from caltest.statistics.prepared import SumStatistic


@dataclass(frozen=True, eq=False)
class LineError(SumStatistic):
    """factor · (Σ_ij k_ij r_i r_j − Σ_i r_i²) / scale, or its root, of the event of two classes.

    k = exp(−rate |p − q|), so that with predictions in increasing order
    s_g = exp(−rate (p_g − p_{g−1})) (s_{g−1} + S_{g−1}) is the sum of k r over all rows before
    level g, S_g the residual sum of that level: O(L) for a set of residual sums. ``biased`` keeps
    the pairs of a row and itself.
    """

    decay: FloatArray = field(repr=False)
    scale: float
    biased: bool
    factor: float = 1.0
    root: bool = False
    squares: ClassVar[Squares] = "whole"

    @classmethod
    def of(cls, problem: Problem, statistic: object, rate: float, biased: bool) -> LineError:
        """Put units of equal predictions together; O(U log U). ``scale`` is Σ w_i w_j of pairs."""
        cells = Cells.levels(problem)
        # Nothing comes before the first level: exp(−∞) = 0.
        decay = np.exp(-rate * np.diff(cells.mean(problem.probs[:, 0]), prepend=-np.inf))
        scale = float(cells.mass.sum()) ** 2
        scale -= 0.0 if biased else float(cells.square_mass.sum())
        remark = coarseness(statistic, problem)
        return cls(problem, decay, scale, biased, cells=cells, remark=remark)

    def of_sums(self, sums: ResidualSums) -> FloatArray:
        total = self.all_pairs(sums)
        if not self.biased:
            total -= sums.squares[:, 0]
        values = self.factor * total / self.scale
        return np.sqrt(np.maximum(values, 0.0)) if self.root else values

    def all_pairs(self, sums: ResidualSums) -> FloatArray:
        """Return Σ_ij k_ij r_i r_j over all pairs, of a row and itself, too."""
        totals = np.zeros(len(sums.cells))
        _all_pairs(np.ascontiguousarray(sums.cells[:, :, 0].T), self.decay, totals)
        return totals


@kernel
def _all_pairs(steps, decay, totals_out):  # type: ignore[no-untyped-def]
    # O(L) per set of sums; steps (L, B), so that sets are the lanes of vectors.
    before = np.zeros(steps.shape[1])
    for g in range(steps.shape[0]):
        fade = decay[g]
        for q in range(before.size):
            s = steps[g, q]
            faded = before[q] * fade
            totals_out[q] += s * (2.0 * faded + s)
            before[q] = faded + s


@dataclass(frozen=True, repr=False)
class MMCE(Statistic):
    """Maximum mean calibration error of a two-class problem (Kumar, Sarawagi & Jain, ICML 2018).

    MMCE² = Σ_{i,j} w_i w_j (c_i − p_i) (c_j − p_j) exp(−|p_i − p_j| / ν), where c_i says whether
    class 0 occurred (after ``TopK(1)``: the top class was right), p_i is its probability, ν the
    ``bandwidth``, that of the paper by default, and w_i = 1/n, or the weight of the row over the
    sum of weights. The value is the root, in [0, 1]; MMCE² is half of
    ``SKCE(TVKernel(0.4), estimator="biased")``. Biased upward, as an ECE is. O(n log n) once, O(n)
    for further labels.

    Examples
    --------
    >>> round(MMCE()(np.array([[0.9, 0.1], [0.5, 0.5]]), np.array([0, 1])), 6)
    0.236227
    """

    _: KW_ONLY
    bandwidth: float = 0.4
    essential: ClassVar[int] = 0

    def __post_init__(self) -> None:
        number("bandwidth", self.bandwidth, 0.0, np.inf)

    def prepare(self, problem: Problem) -> LineError:
        problem.event(self)
        return replace(LineError.of(problem, self, 1.0 / self.bandwidth, biased=True), root=True)
