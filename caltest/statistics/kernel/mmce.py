"""Maximum mean calibration error of confidences."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import ClassVar

import numpy as np

from caltest._base.checks import number
from caltest.problem import Problem
from caltest.statistics.base import Statistic
from caltest.statistics.kernel.line import LineError


@dataclass(frozen=True, repr=False)
class MMCE(Statistic):
    """Maximum mean calibration error of a two-class problem (Kumar, Sarawagi & Jain, ICML 2018).

    MMCE² = Σ_{i,j} w_i w_j (c_i − p_i) (c_j − p_j) exp(−|p_i − p_j| / ν), where c_i says whether
    class 0 occurred (after ``TopK(1)``: the top class was right), p_i is its probability, and
    w_i = 1/n, or the weight of the row over the sum of weights. The value is the root.

    Parameters
    ----------
    bandwidth : float, default 0.4
        The ν of the paper.

    Notes
    -----
    In [0, 1]. O(n log n) once, O(n) for further labels. MMCE² is half of
    ``SKCE(TVKernel(0.4), estimator="biased")``. Biased upward, as an ECE is.

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
        return LineError.of(problem, self, 1.0 / self.bandwidth, True, root=True)
