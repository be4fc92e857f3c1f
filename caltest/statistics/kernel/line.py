"""Sums over pairs of rows along a line: two classes and exponential kernels."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from caltest._base.compiled import kernel
from caltest.predictions import FloatArray, IntArray
from caltest.statistics.kernel.pairs import Sums


@dataclass(frozen=True, eq=False)
class Line:
    """Two classes and k = exp(−rate |p − q|): O(n) for every sum, after sorting.

    With predictions in increasing order, s_j = exp(−rate (p_j − p_{j−1})) (s_{j−1} + r_{j−1}) is
    the sum of k r over all rows before j. Blocks are sorted one by one and ``decay`` is 0 where one
    starts. r_i·r_j is 2 r_i r_j in terms of the residual of class 0.
    """

    order: IntArray
    probs: FloatArray
    decay: FloatArray
    kept: ClassVar[bool] = True

    @classmethod
    def of(cls, probs: FloatArray, rate: float, size: int) -> Line:
        """Sort the predictions (n, 2) within blocks of ``size`` rows."""
        block = np.arange(len(probs)) // size
        order = np.lexsort((probs[:, 0], block))
        # From the end of a block to the start of the next, predictions may fall by any amount.
        within = np.diff(block[order]) == 0
        decay = np.exp(-rate * np.where(within, np.diff(probs[order, 0]), np.inf))
        return cls(order, probs, np.append(0.0, decay))

    def sums(self, labels: IntArray) -> Sums:
        """Return the sums for every row of labels, O(n) each."""
        return self.of_residuals((labels == 0) - self.probs[:, 0])

    def of_residuals(self, residuals: FloatArray) -> Sums:
        """Return the sums for every row of residuals of class 0, O(n) each."""
        totals, squares = np.empty(len(residuals)), np.empty(len(residuals))
        _line_sums(residuals, self.order, self.decay, totals, squares)
        return 4.0 * totals, 2.0 * squares

    def rows(self, residuals: FloatArray) -> Sums:
        """Return the sums of every row, O(n)."""
        r = residuals[self.order, 0]
        reached, totals, squares = np.empty((3, r.size))
        _neighbours(r, self.decay, reached)
        totals[self.order] = 2.0 * r * reached
        squares[self.order] = 2.0 * r * r
        return totals, squares

    def weighted(self, residuals: FloatArray, weights: FloatArray) -> Sums:
        """Return the weighted sums, O(n) each."""
        return self.of_residuals(weights.T * residuals[:, 0])


@kernel
def _neighbours(residuals, decay, reached_out):  # type: ignore[no-untyped-def]
    # O(n): Σ_{j≠i} k_ij r_j, from the left and from the right.
    n = residuals.size
    carry = 0.0
    for i in range(n):
        carry *= decay[i]
        reached_out[i] = carry
        carry += residuals[i]
    carry = 0.0
    for i in range(n - 1, -1, -1):
        reached_out[i] += carry
        carry = (carry + residuals[i]) * decay[i]


@kernel
def _line_sums(residuals, order, decay, totals_out, squares_out):  # type: ignore[no-untyped-def]
    # O(n) per set: Σ_{i<j} k_ij r_i r_j and Σ r_i². Two at a time: one need not wait for the other.
    for q in range(0, residuals.shape[0], 2):
        last = min(q + 1, residuals.shape[0] - 1)
        one, other = residuals[q], residuals[last]
        carry = total = square = 0.0
        carry_2 = total_2 = square_2 = 0.0
        for i in range(order.size):
            r, r_2 = one[order[i]], other[order[i]]
            fade = decay[i]
            carry *= fade
            carry_2 *= fade
            total += r * carry
            total_2 += r_2 * carry_2
            square += r * r
            square_2 += r_2 * r_2
            carry += r
            carry_2 += r_2
        totals_out[q], squares_out[q] = total, square
        totals_out[last], squares_out[last] = total_2, square_2
