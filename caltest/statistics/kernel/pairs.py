"""Sums over pairs of rows, Σ k(p_i, p_j) r_i·r_j with r_i = onehot(y_i) − p_i.

What the three ways to these sums share: ``Line`` for two classes and exponential kernels, ``Tiles``
for any kernel, ``Features`` for many rows.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np

from caltest._base.arrays import largest
from caltest.predictions import FloatArray, IntArray

Sums = tuple[FloatArray, FloatArray]

#: Rows that are handled together: a tile of the matrix of kernel values, a part of the features.
TILE = 256
#: Numbers that are kept; what is larger is made anew, part by part, each time.
KEPT = 2**24


class Pairs(Protocol):
    """Sums of h_ij = k(p_i, p_j) r_i·r_j over pairs of rows in the same block."""

    @property
    def kept(self) -> bool:
        """Whether kernel values stay in memory; otherwise each call makes them anew."""

    def sums(self, labels: IntArray) -> Sums:
        """Return Σ_{i≠j} h_ij and Σ_i h_ii for every row of labels (b, n): two arrays (b,)."""

    def rows(self, residuals: FloatArray) -> Sums:
        """Return Σ_{j≠i} h_ij and h_ii of every row i, two arrays (n,), for residuals (n, K)."""

    def weighted(self, residuals: FloatArray, weights: FloatArray) -> Sums:
        """Return Σ_{i≠j} w_i w_j h_ij and Σ_i w_i² h_ii for each column of weights (n, b)."""


def residuals_of(probs: FloatArray, labels: IntArray) -> FloatArray:
    """Return onehot(y_i) − p_i, shape (n, K)."""
    residuals = -probs
    residuals[np.arange(len(probs)), labels] += 1.0
    return residuals


def squared_norms(probs: FloatArray, labels: IntArray) -> FloatArray:
    """Return |onehot(y_i) − p_i|² for every row of labels (b, n), shape (b, n)."""
    told = probs[np.arange(len(probs)), labels]
    return 1.0 - 2.0 * told + np.square(probs).sum(axis=1)


def reference(probs: FloatArray) -> tuple[IntArray, FloatArray]:
    """Return each row's class of probability above ½, or −1, and the residuals of these labels."""
    top = np.where(largest(probs) > 0.5, probs.argmax(axis=1), -1)
    residuals = -probs
    residuals[top >= 0, top[top >= 0]] += 1.0
    return top, residuals
