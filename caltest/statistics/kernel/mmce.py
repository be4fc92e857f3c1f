"""Maximum mean calibration error of confidences."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import ClassVar

import numpy as np

from caltest._base.checks import number, one_of
from caltest.predictions import FloatArray, IntArray
from caltest.problem import Problem
from caltest.statistics.base import LabelStatistic, Prepared, ResidualStatistic, Statistic, rows_of
from caltest.statistics.kernel.line import Line
from caltest.statistics.kernel.pairs import residuals_of


@dataclass(frozen=True, repr=False)
class MMCE(Statistic):
    """Maximum mean calibration error of a two-class problem (Kumar, Sarawagi & Jain, ICML 2018).

    MMCE² = Σ_{i,j} w_i w_j (c_i − p_i) (c_j − p_j) exp(−|p_i − p_j| / ν), where c_i says whether
    class 0 occurred (after ``TopK(1)``: the top class was right) and p_i is its probability. The
    value is the root. Weights of the data take the place of ones: w_i is w_i / Σ w.

    Parameters
    ----------
    bandwidth : float, default 0.4
        The ν of the paper.
    balanced : bool, default False
        The weighted version of the paper: w_i = 1/m for the m rows with c_i = 1 and 1/(n − m) for
        the others, in place of w_i = 1/n; of weighted rows m and n − m are sums of weights.

    Notes
    -----
    In [0, 1]. O(n log n) once, O(n) for further labels. MMCE² without balance is half of
    ``SKCE(TVKernel(0.4), estimator="biased")``. The value is biased upward, as an ECE is, and the
    null of the test accounts for it. The balanced value of a calibrated
    model tends to 0 only if both outcomes are equally frequent, and tests with it are weak.

    Examples
    --------
    >>> round(MMCE()(np.array([[0.9, 0.1], [0.5, 0.5]]), np.array([0, 1])), 6)
    0.236227
    """

    _: KW_ONLY
    bandwidth: float = 0.4
    balanced: bool = False
    essential: ClassVar[int] = 0

    def __post_init__(self) -> None:
        number("bandwidth", self.bandwidth, 0.0, np.inf)
        one_of("balanced", self.balanced, (True, False))

    def prepare(self, problem: Problem) -> Prepared:
        problem.event(self)
        data = rows_of(problem, self, weights=True)
        line = Line.of(data.probs, 1.0 / self.bandwidth, data.n)
        return (BalancedMMCE if self.balanced else FixedMMCE)(problem, line)


def _root(totals: FloatArray, squares: FloatArray) -> FloatArray:
    """Return √ of sums over both classes, halved: these have opposite residuals."""
    return np.sqrt(np.maximum(0.5 * (totals + squares), 0.0))


@dataclass(frozen=True, eq=False)
class FixedMMCE(ResidualStatistic):
    """The MMCE of fixed predictions."""

    line: Line

    def of_residuals(self, residuals: FloatArray, squares: FloatArray) -> FloatArray:
        mass = self.problem.n if self.problem.weight is None else self.problem.weight.sum()
        return np.asarray(_root(*self.line.of_residuals(residuals[:, :, 0])) / mass)


@dataclass(frozen=True, eq=False)
class BalancedMMCE(LabelStatistic):
    """The MMCE of fixed predictions in which both outcomes weigh the same."""

    line: Line

    def of_labels(self, labels: IntArray) -> float:
        w = np.ones(labels.size) if self.problem.weight is None else self.problem.weight
        weights = w / np.bincount(labels, w)[labels]
        residuals = residuals_of(self.problem.probs, labels)
        return float(_root(*self.line.weighted(residuals, weights[:, None]))[0])
