"""Sums over pairs of rows through random features, for many rows and any number of classes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from caltest._base.compiled import kernel
from caltest.predictions import FloatArray, IntArray
from caltest.statistics.kernel.pairs import KEPT, TILE, Sums, reference, squared_norms


@dataclass(frozen=True, eq=False)
class Features:
    """A kernel of D random features, k(p, q) = φ(p)·φ(q) with |φ| = 1: O(n D) for every sum.

    Σ_{i≠j} h_ij = ‖Σ_i φ(p_i) r_iᵀ‖² − Σ_i |r_i|², with φ(p) = (cos ωᵀp, sin ωᵀp) / √(D/2).
    """

    probs: FloatArray
    frequencies: FloatArray

    @property
    def kept(self) -> bool:
        """Whether the features stay in memory."""
        return 2 * len(self.probs) * self.frequencies.shape[1] <= KEPT

    def sums(self, labels: IntArray) -> Sums:
        """Return the sums for every row of labels; O(n K + D · entries)."""
        at_once = max(1, 2**22 // self._start[1].size)
        parts = [self._norms(labels[a : a + at_once]) for a in range(0, len(labels), at_once)]
        squares = squared_norms(self.probs, labels).sum(axis=1)
        return np.concatenate(parts) - squares, squares

    def rows(self, residuals: FloatArray) -> Sums:
        """Return the sums of every row, O(n D K)."""
        squares = np.square(residuals).sum(axis=1)
        whole = self._total(residuals)
        pulled = [np.sum(residuals[rows] * (phi @ whole), axis=1) for rows, phi in self._parts()]
        return np.concatenate(pulled) - squares, squares

    def weighted(self, residuals: FloatArray, weights: FloatArray) -> Sums:
        """Return the weighted sums, O(n D K) each."""
        whole = np.zeros((2 * self.frequencies.shape[1], weights.shape[1] * residuals.shape[1]))
        for rows, phi in self._parts():
            scaled = weights[rows, :, None] * residuals[rows, None, :]
            whole += phi.T @ scaled.reshape(len(phi), -1)
        norms = np.square(whole).sum(axis=0).reshape(weights.shape[1], -1).sum(axis=1)
        squares = np.square(residuals).sum(axis=1) @ np.square(weights)
        return norms - squares, squares

    def _norms(self, labels: IntArray) -> FloatArray:
        top, start = self._start
        whole = np.repeat(start[None], len(labels), axis=0)
        for rows, phi in self._parts():
            _add_features(phi, labels[:, rows], top[rows], whole)
        return np.einsum("bkd,bkd->b", whole, whole)

    def _total(self, columns: FloatArray) -> FloatArray:
        """Return Σ_i φ_i c_iᵀ, shape (D, number of columns)."""
        total = np.zeros((2 * self.frequencies.shape[1], columns.shape[1]))
        for rows, phi in self._parts():
            total += phi.T @ columns[rows]
        return total

    def _parts(self) -> Iterator[tuple[slice, FloatArray]]:
        return iter(self._values) if self.kept else self._made()

    @cached_property
    def _values(self) -> list[tuple[slice, FloatArray]]:
        return list(self._made())

    def _made(self) -> Iterator[tuple[slice, FloatArray]]:
        for a in range(0, len(self.probs), TILE):
            rows = slice(a, min(a + TILE, len(self.probs)))
            phase = self.probs[rows] @ self.frequencies
            yield rows, np.hstack([np.cos(phase), np.sin(phase)]) / np.sqrt(phase.shape[1])

    @cached_property
    def _start(self) -> tuple[IntArray, FloatArray]:
        """The reference class of each row or −1, and Σ φ rᵀ of the reference, (K, D)."""
        top, residuals = reference(self.probs)
        return top, np.ascontiguousarray(self._total(residuals).T)


@kernel
def _add_features(phi, labels, top, whole_out):  # type: ignore[no-untyped-def]
    # O(D) per entry.
    for q in range(labels.shape[0]):
        for i in range(labels.shape[1]):
            if labels[q, i] == top[i]:
                continue
            row, target = phi[i], whole_out[q, labels[q, i]]
            for d in range(row.size):
                target[d] += row[d]
            if top[i] >= 0:
                target = whole_out[q, top[i]]
                for d in range(row.size):
                    target[d] -= row[d]
