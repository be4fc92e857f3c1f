"""Maximum mean calibration error of confidences."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import ClassVar

import numpy as np

from caltest._base.checks import number, one_of
from caltest.predictions import FloatArray, IntArray, Predictions
from caltest.simulate import RedrawLabels, Scheme, Shortcut
from caltest.statistics.kernel.line import Line
from caltest.statistics.kernel.pairs import residuals_of
from caltest.statistics.prepared import Prepared, Statistic, event


@dataclass(frozen=True, repr=False)
class MMCE(Statistic):
    """Maximum mean calibration error of a two-class problem (Kumar et al. 2018).

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

    Raises
    ------
    StatisticError
        When there are more than two classes.

    Notes
    -----
    In [0, 1]. O(n log n) once, O(n) for further labels. MMCE² without balance is half of
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

    _: KW_ONLY
    bandwidth: float = 0.4
    balanced: bool = False
    essential: ClassVar[int] = 0
    takes_weights: ClassVar[bool] = True

    def __post_init__(self) -> None:
        number("bandwidth", self.bandwidth, 0.0, np.inf)
        one_of("balanced", self.balanced, (True, False))

    def given(self, data: Predictions) -> FixedMMCE:
        """Fix the predictions: sort them once."""
        event(data, self)
        line = Line.of(data.probs, 1.0 / self.bandwidth, data.n)
        return FixedMMCE(data, line, self.balanced, degree=None if self.balanced else 1)


@dataclass(frozen=True, eq=False)
class FixedMMCE(Prepared):
    """The MMCE of fixed predictions: a function of the labels."""

    line: Line
    balanced: bool

    def batch(self, labels: IntArray) -> FloatArray:
        """Return the values for label vectors of shape (B, n)."""
        if not self.balanced:
            return self._value(*self.line.sums(labels))
        return np.array([self._balanced(row) for row in labels])

    def of_residuals(self, residuals: FloatArray, multipliers: FloatArray) -> FloatArray:
        """Return the values for moved residuals."""
        if self.balanced:
            return super().of_residuals(residuals, multipliers)
        return self._value(*self.line.weighted(residuals, multipliers.T))

    def fast(self, scheme: Scheme) -> Shortcut | None:
        """Return one pass along the line for redrawn labels and equal weights."""
        if self.balanced or not isinstance(scheme, RedrawLabels):
            return None
        return self.line.redraws(self.data.probs, self._value)

    def _value(self, totals: FloatArray, squares: FloatArray) -> FloatArray:
        w = self.data.weights
        return self._root(totals, squares) / (self.data.n if w is None else w.sum())

    def _balanced(self, labels: IntArray) -> float:
        w = np.ones(labels.size) if self.data.weights is None else self.data.weights
        weights = w / np.bincount(labels, w)[labels]
        residuals = residuals_of(self.data.probs, labels)
        return float(self._root(*self.line.weighted(residuals, weights[:, None]))[0])

    @staticmethod
    def _root(totals: FloatArray, squares: FloatArray) -> FloatArray:
        # The two classes of a row have opposite residuals: sums over both are twice those of one.
        return np.sqrt(np.maximum(0.5 * (totals + squares), 0.0))
