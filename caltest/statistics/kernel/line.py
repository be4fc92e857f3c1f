"""Sums over pairs of rows along a line: two classes and exponential kernels."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from caltest._numba import kernel
from caltest.predictions import FloatArray, IntArray
from caltest.statistics.kernel.pairs import Labels, Sums
from caltest.statistics.lanes.streams import FIRST_FACTOR, GAMMA, SECOND_FACTOR, WHOLE, keys


@dataclass(frozen=True, eq=False)
class Line:
    """Two classes and k = exp(−rate |p − q|): O(n) for every sum, after sorting.

    With predictions in increasing order, s_j = exp(−rate (p_j − p_{j−1})) (s_{j−1} + r_{j−1}) is
    the sum of k r over all rows before j. Blocks are sorted one by one and ``decay`` is 0 where one
    starts. r_i·r_j is 2 r_i r_j in terms of the residual of class 0.
    """

    order: IntArray
    p: FloatArray
    decay: FloatArray
    thresholds: IntArray

    @classmethod
    def of(cls, probs: FloatArray, rate: float, size: int) -> Line:
        """Sort the predictions (n, 2) within blocks of ``size`` rows."""
        block = np.arange(len(probs)) // size
        order = np.lexsort((probs[:, 0], block))
        p = probs[order, 0]
        decay = np.zeros(p.size)
        decay[1:] = np.exp(-rate * np.diff(p)) * (np.diff(block[order]) == 0)
        whole = np.where(probs[order, 1] > 0.0, np.ceil(p * WHOLE), WHOLE).astype(np.int64)
        return cls(order, p, decay, whole)

    def sums(self, labels: Labels) -> Sums:
        """Return the sums for every row of labels, O(n) each."""
        residuals = (labels[:, self.order] == 0) - self.p
        reached = np.empty(self.p.size)
        totals = np.empty(len(labels))
        for b, r in enumerate(residuals):
            _neighbours(r, self.decay, reached)
            totals[b] = 2.0 * (r @ reached)
        return totals, 2.0 * np.square(residuals).sum(axis=1)

    def redrawn(self, seed: tuple[int, int], first: int, count: int) -> Sums:
        """Return the sums for redrawn labels, O(n) each, in lanes of replicates."""
        totals, squares = np.empty(count), np.empty(count)
        rows = (self.order, self.p, self.decay, self.thresholds)
        _line_redraws(*rows, *keys(seed, first, count)[:2], totals, squares)
        return 4.0 * totals, 2.0 * squares

    def rows(self, labels: IntArray) -> Sums:
        """Return the sums of every row, O(n)."""
        r = (labels[self.order] == 0) - self.p
        reached, totals, squares = np.empty((3, r.size))
        _neighbours(r, self.decay, reached)
        totals[self.order] = 2.0 * r * reached
        squares[self.order] = 2.0 * r * r
        return totals, squares

    def weighted(self, labels: IntArray, weights: FloatArray) -> FloatArray:
        """Return the weighted sums, O(n) each."""
        r = (labels[self.order] == 0) - self.p
        reached, totals = np.empty(r.size), np.empty(weights.shape[1])
        for b, w in enumerate(weights.T):
            _neighbours(v := r * w[self.order], self.decay, reached)
            totals[b] = 2.0 * (v @ reached)
        return totals


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
def _line_redraws(  # type: ignore[no-untyped-def]
    order, p, decay, thresholds, key, twist, totals_out, squares_out
):
    # O(n) per lane: Σ_{i<j} k_ij r_i r_j and Σ r_i².
    lanes = key.size
    carry = np.zeros(lanes)
    draw = np.empty(lanes, dtype=np.int64)
    totals_out[:] = 0.0
    squares_out[:] = 0.0
    for i in range(p.size):
        for q in range(lanes):
            z = key[q] + GAMMA * np.uint64(order[i])
            z = (z ^ (z >> 30)) * FIRST_FACTOR ^ twist[q]
            z = (z ^ (z >> 27)) * SECOND_FACTOR
            draw[q] = (z ^ (z >> 31)) >> 11
        threshold, miss, fade = thresholds[i], -p[i], decay[i]
        hit = 1.0 + miss
        for q in range(lanes):
            r = hit if draw[q] < threshold else miss
            before = carry[q] * fade
            totals_out[q] += r * before
            squares_out[q] += r * r
            carry[q] = before + r
