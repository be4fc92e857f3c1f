"""Sums over pairs of rows, Σ k(p_i, p_j) r_i·r_j with r_i = onehot(y_i) − p_i.

What the three ways to these sums share: ``Line`` for two classes and exponential kernels, ``Tiles``
for any kernel, ``Features`` for many rows.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from caltest._numba import kernel
from caltest.predictions import FloatArray, IntArray
from caltest.statistics.lanes.streams import FIRST_FACTOR, GAMMA, SECOND_FACTOR, WHOLE, keys

Labels = NDArray[np.integer[Any]]
Sums = tuple[FloatArray, FloatArray]

#: Rows that are handled together: a tile of the matrix of kernel values, a part of the features.
TILE = 256
#: Numbers that are kept; what is larger is made anew, part by part, each time.
KEPT = 2**24


class Pairs(Protocol):
    """Sums of h_ij = k(p_i, p_j) r_i·r_j over pairs of rows in the same block."""

    def sums(self, labels: Labels) -> Sums:
        """Return Σ_{i≠j} h_ij and Σ_i h_ii for every row of labels (b, n): two arrays (b,)."""

    def redrawn(self, seed: tuple[int, int], first: int, count: int) -> Sums:
        """Return the same for labels drawn from the predictions, keyed by seed and replicate."""

    def rows(self, labels: IntArray) -> Sums:
        """Return Σ_{j≠i} h_ij and h_ii of every row i, two arrays (n,), for labels (n,)."""

    def weighted(self, labels: IntArray, weights: FloatArray) -> FloatArray:
        """Return Σ_{i≠j} w_i w_j h_ij for each column of weights (n, b), shape (b,)."""


@dataclass(frozen=True, eq=False)
class PairRedraws:
    """A function of the sums over pairs with labels redrawn, replicate by replicate."""

    pairs: Pairs
    value: Callable[[FloatArray, FloatArray], FloatArray] = field(repr=False)

    def replicates(self, seed: tuple[int, int], first: int, count: int) -> FloatArray:
        """Return replicates ``first``, …; each depends on the seed and its own number only."""
        return self.value(*self.pairs.redrawn(seed, first, count))


def residuals_of(probs: FloatArray, labels: IntArray) -> FloatArray:
    """Return onehot(y_i) − p_i, shape (n, K)."""
    residuals = -probs
    residuals[np.arange(len(probs)), labels] += 1.0
    return residuals


def squared_norms(probs: FloatArray, labels: Any) -> FloatArray:
    """Return |onehot(y_i) − p_i|² for every row of labels (b, n), shape (b, n)."""
    told = probs[np.arange(len(probs)), labels]
    return 1.0 - 2.0 * told + np.square(probs).sum(axis=1)


def redrawn_labels(probs: FloatArray, seed: tuple[int, int], first: int, count: int) -> Labels:
    """Return labels drawn from the predictions, (count, n); see :mod:`caltest.statistics.lanes`."""
    labels = np.empty((count, len(probs)), dtype=np.int32)
    _draw(np.ascontiguousarray(probs), *keys(seed, first, count)[:2], labels)
    return labels


def reference(probs: FloatArray) -> tuple[IntArray, FloatArray]:
    """Return each row's class of probability above ½, or −1, and the residuals of these labels."""
    top = np.where(probs.max(axis=1) > 0.5, probs.argmax(axis=1), -1)
    residuals = -probs
    residuals[top >= 0, top[top >= 0]] += 1.0
    return top, residuals


@kernel
def _draw(probs, key, twist, labels_out):  # type: ignore[no-untyped-def]
    # O(n K) per replicate at most: the first class whose cumulative probability exceeds the draw.
    n_classes = probs.shape[1]
    thresholds = np.empty(n_classes, dtype=np.int64)
    for i in range(probs.shape[0]):
        last = n_classes - 1
        while probs[i, last] <= 0.0:
            last -= 1
        cumulative = 0.0
        for k in range(last):
            cumulative += probs[i, k]
            thresholds[k] = np.int64(np.ceil(cumulative * WHOLE))
        thresholds[last] = WHOLE
        for q in range(key.size):
            z = key[q] + GAMMA * np.uint64(i)
            z = (z ^ (z >> 30)) * FIRST_FACTOR ^ twist[q]
            z = (z ^ (z >> 27)) * SECOND_FACTOR
            draw = np.int64((z ^ (z >> 31)) >> 11)
            k = 0
            while thresholds[k] <= draw:
                k += 1
            labels_out[q, i] = k
