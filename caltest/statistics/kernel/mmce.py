"""Maximum mean calibration error of confidences."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from caltest.checks import one_of
from caltest.errors import StatisticError
from caltest.predictions import FloatArray, IntArray
from caltest.statistics.kernel.line import Line
from caltest.statistics.kernel.pairs import PairRedraws
from caltest.statistics.problem import OfLabels, event


@dataclass(frozen=True, repr=False)
class MMCE(OfLabels):
    """Maximum mean calibration error of a two-class problem (Kumar et al. 2018).

    MMCE² = Σ_{i,j} w_i w_j (c_i − p_i) (c_j − p_j) exp(−|p_i − p_j| / ν), where c_i says whether
    class 0 occurred (after ``TopK(1)``: the top class was right) and p_i is its probability. The
    value is the root.

    Parameters
    ----------
    bandwidth : float, default 0.4
        The ν of the paper.
    weights : {"equal", "balanced"}, default "equal"
        ``"equal"``: w_i = 1/n. ``"balanced"``: the weighted version of the paper, w_i = 1/m for the
        m rows with c_i = 1 and 1/(n − m) for the others.

    Raises
    ------
    StatisticError
        When there are more than two classes.

    Notes
    -----
    In [0, 1]. O(n log n) once, O(n) for further labels. MMCE² with equal weights is half of
    ``SKCE(TVKernel(0.4), estimator="biased")``. The value is biased upward, as an ECE is, and the
    null of the test accounts for it. The balanced value of a calibrated
    model tends to 0 only if both outcomes are equally frequent, and tests with it are weak.

    References
    ----------
    Kumar, Sarawagi & Jain, "Trainable calibration measures for neural networks from kernel mean
    embeddings", ICML 2018.

    Examples
    --------
    >>> round(MMCE()(np.array([[0.9, 0.1], [0.5, 0.5]]), np.array([0, 1])), 6)
    0.236227
    """

    bandwidth: float = 0.4
    weights: Literal["equal", "balanced"] = "equal"

    def __post_init__(self) -> None:
        if not (isinstance(self.bandwidth, (int, float)) and 0.0 < self.bandwidth < np.inf):
            raise StatisticError(f"bandwidth must be a number > 0, not {self.bandwidth!r}")
        one_of("weights", self.weights, ("equal", "balanced"))

    def given(self, probs: FloatArray) -> FixedMMCE:
        """Fix the predictions: sort them once."""
        n = event(probs, "MMCE").size
        return FixedMMCE(Line.of(probs, 1.0 / self.bandwidth, n), self.weights == "balanced")


@dataclass(frozen=True, eq=False)
class FixedMMCE:
    """The MMCE of fixed predictions: a function of the labels."""

    line: Line
    balanced: bool

    def __call__(self, labels: IntArray) -> float:
        weights = np.full(labels.size, 1.0 / labels.size)
        if self.balanced:
            hits = np.count_nonzero(labels == 0)
            weights = 1.0 / np.where(labels == 0, hits, labels.size - hits)
        totals = self.line.weighted(labels, weights[:, None])
        squares = np.square(weights) @ self.line.rows(labels)[1]
        return float(_root(totals + squares)[0])

    def redraws(self, probs: FloatArray) -> PairRedraws | None:
        """Return the null under redrawn labels, for equal weights."""
        return None if self.balanced else PairRedraws(self.line, self._value)

    def _value(self, totals: FloatArray, squares: FloatArray) -> FloatArray:
        return _root(totals + squares) / self.line.p.size


def _root(doubled: FloatArray) -> FloatArray:
    # The two classes of a row have opposite residuals, so sums over both are twice those of one.
    return np.sqrt(np.maximum(0.5 * doubled, 0.0))
