"""Sums over pairs of rows for any number of classes: tile by tile, or through random features."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from caltest._numba import kernel
from caltest.predictions import FloatArray, IntArray
from caltest.statistics.kernels import Kernel
from caltest.statistics.pairs import Labels, Sums, redrawn_labels, residuals_of, squared_norms

#: Rows in a tile of the matrix of kernel values.
TILE = 256
#: Kernel values that are kept; a larger matrix is made anew, tile by tile, each time.
KEPT = 2**24
#: Entries of a class in a tile above which whole rows of kernel values are added.
MANY = 32


@dataclass(frozen=True, eq=False)
class Tiles:
    """Any kernel and number of classes: the matrix of kernel values, one tile at a time.

    Labels are compared with a reference: of a row with a class of probability above ½ that class,
    of others none. Against it a set of labels is a short list of entries ±1, (row, class), so
    Σ h_ij is a constant, plus a number for each entry, plus k(p_i, p_j) for pairs of entries of the
    same class: some n² / (2K) kernel values a replicate for flat predictions, and far fewer for
    confident ones, instead of the n² K products of the matrix form. Memory is bounded: up to 2²⁴
    kernel values are kept (n ≈ 5 700), of larger matrices a tile at a time.
    """

    probs: FloatArray
    kernel: Kernel = field(repr=False)
    size: int

    def sums(self, labels: Labels) -> Sums:
        """Return the sums for every row of labels."""
        top, constant, linear = self._prepared
        labels = np.ascontiguousarray(labels, dtype=np.int32)
        totals = np.full(len(labels), constant)
        n, n_classes = self.probs.shape
        codes = np.empty((len(labels), 2 * n), dtype=np.int32)
        starts = np.empty((len(labels), self._cuts.size, n_classes + 1), dtype=np.int32)
        _entries(labels, top, self._cuts, linear, codes, starts, totals)
        for t, u, values in self._tiles():
            _pair_sums(values, codes, starts, t, u, 1.0 if t == u else 2.0, totals)
        return totals, squared_norms(self.probs, labels) @ self._diagonal

    def redrawn(self, seed: tuple[int, int], first: int, count: int) -> Sums:
        """Return the sums for redrawn labels."""
        return self.sums(redrawn_labels(self.probs, seed, first, count))

    def rows(self, labels: IntArray) -> Sums:
        """Return the sums of every row, O(n² K)."""
        residuals = residuals_of(self.probs, labels)
        totals = np.einsum("ik,ik->i", residuals, self._times(residuals))
        return totals, squared_norms(self.probs, labels[None])[0] * self._diagonal

    def weighted(self, labels: IntArray, weights: FloatArray) -> FloatArray:
        """Return the weighted sums, O(n² (K + b)) as matrix products."""
        residuals = residuals_of(self.probs, labels)
        totals = np.zeros(weights.shape[1])
        for t, u, values in self._tiles():
            rows, others = self._slice(t), self._slice(u)
            h = values * (residuals[rows] @ residuals[others].T)
            part = np.einsum("ib,ib->b", weights[rows], h @ weights[others])
            totals += part if t == u else 2.0 * part
        return totals

    @cached_property
    def _cuts(self) -> IntArray:
        """Where tiles start, and where the last ends: small blocks share one, none is split."""
        together = max(1, TILE // 4 // self.size) * self.size
        step = TILE if self.size >= TILE else together
        stride, n = max(step, self.size), len(self.probs)
        starts = [np.arange(a, min(a + stride, n), step) for a in range(0, n, stride)]
        return np.append(np.concatenate(starts), n)

    def _slice(self, t: int) -> slice:
        return slice(self._cuts[t], self._cuts[t + 1])

    def _tiles(self) -> Iterator[tuple[int, int, FloatArray]]:
        small = len(self.probs) * max(self.size, TILE // 4) // 2 <= KEPT
        return iter(self._kept) if small else self._made()

    @cached_property
    def _kept(self) -> list[tuple[int, int, FloatArray]]:
        return list(self._made())

    def _made(self) -> Iterator[tuple[int, int, FloatArray]]:
        """Yield kernel values of tiles t ≤ u; 0 on the diagonal and between blocks."""
        first = self._cuts[:-1] // self.size
        for t, block in enumerate(first):
            rows = self._slice(t)
            for u in range(t, int(np.searchsorted(first, block, side="right"))):
                others = self._slice(u)
                values = self.kernel(self.probs[rows], self.probs[others])
                if t == u:
                    inside = np.arange(rows.start, rows.stop) // self.size
                    pairs = inside[:, None] == inside
                    np.fill_diagonal(pairs, False)
                    values = np.where(pairs, values, 0.0)
                yield t, u, np.ascontiguousarray(values, dtype=np.float64)

    @cached_property
    def _diagonal(self) -> FloatArray:
        parts = [self.probs[self._slice(t)] for t in range(self._cuts.size - 1)]
        return np.concatenate([np.diag(self.kernel(part, part)) for part in parts])

    @cached_property
    def _prepared(self) -> tuple[IntArray, float, FloatArray]:
        """The reference class of each row or −1, the constant, and what an entry (i, y) adds."""
        top, residuals = _reference(self.probs)
        told = top >= 0
        pulled = self._times(residuals)
        linear = 2.0 * pulled
        linear[told] -= linear[told, top[told]][:, None]
        return top, float(np.sum(residuals * pulled)), linear

    def _times(self, columns: FloatArray) -> FloatArray:
        """Return the matrix of kernel values, 0 on the diagonal, times columns (n, K)."""
        product = np.zeros_like(columns)
        for t, u, values in self._tiles():
            rows, others = self._slice(t), self._slice(u)
            product[rows] += values @ columns[others]
            if t != u:
                product[others] += values.T @ columns[rows]
        return product


@dataclass(frozen=True, eq=False)
class Features:
    """A kernel of D random features, k(p, q) = φ(p)·φ(q) with |φ| = 1: O(n D) for every sum.

    Σ_{i≠j} h_ij = ‖Σ_i φ(p_i) r_iᵀ‖² − Σ_i |r_i|², with φ(p) = (cos ωᵀp, sin ωᵀp) / √(D/2).
    """

    probs: FloatArray
    frequencies: FloatArray

    def sums(self, labels: Labels) -> Sums:
        """Return the sums for every row of labels; O(n K + D · entries)."""
        labels = np.ascontiguousarray(labels, dtype=np.int32)
        at_once = max(1, 2**22 // self._start[1].size)
        parts = [self._norms(labels[a : a + at_once]) for a in range(0, len(labels), at_once)]
        squares = squared_norms(self.probs, labels).sum(axis=1)
        return np.concatenate(parts) - squares, squares

    def redrawn(self, seed: tuple[int, int], first: int, count: int) -> Sums:
        """Return the sums for redrawn labels."""
        return self.sums(redrawn_labels(self.probs, seed, first, count))

    def rows(self, labels: IntArray) -> Sums:
        """Return the sums of every row, O(n D K)."""
        residuals = residuals_of(self.probs, labels)
        squares = squared_norms(self.probs, labels[None])[0]
        whole = self._total(residuals)
        pulled = [np.sum(residuals[rows] * (phi @ whole), axis=1) for rows, phi in self._parts()]
        return np.concatenate(pulled) - squares, squares

    def weighted(self, labels: IntArray, weights: FloatArray) -> FloatArray:
        """Return the weighted sums, O(n D K) each."""
        residuals = residuals_of(self.probs, labels)
        squares = squared_norms(self.probs, labels[None])[0]
        whole = np.zeros((2 * self.frequencies.shape[1], weights.shape[1] * residuals.shape[1]))
        for rows, phi in self._parts():
            scaled = weights[rows, :, None] * residuals[rows, None, :]
            whole += phi.T @ scaled.reshape(len(phi), -1)
        norms = np.square(whole).sum(axis=0).reshape(weights.shape[1], -1).sum(axis=1)
        return norms - squares @ np.square(weights)

    def _norms(self, labels: Labels) -> FloatArray:
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
        small = 2 * len(self.probs) * self.frequencies.shape[1] <= KEPT
        return iter(self._kept) if small else self._made()

    @cached_property
    def _kept(self) -> list[tuple[slice, FloatArray]]:
        return list(self._made())

    def _made(self) -> Iterator[tuple[slice, FloatArray]]:
        for a in range(0, len(self.probs), TILE):
            rows = slice(a, min(a + TILE, len(self.probs)))
            phase = self.probs[rows] @ self.frequencies
            yield rows, np.hstack([np.cos(phase), np.sin(phase)]) / np.sqrt(phase.shape[1])

    @cached_property
    def _start(self) -> tuple[IntArray, FloatArray]:
        """The reference class of each row or −1, and Σ φ rᵀ of the reference, (K, D)."""
        top, residuals = _reference(self.probs)
        return top, np.ascontiguousarray(self._total(residuals).T)


def _reference(probs: FloatArray) -> tuple[IntArray, FloatArray]:
    """Return each row's class of probability above ½, or −1, and the residuals of these labels."""
    top = np.where(probs.max(axis=1) > 0.5, probs.argmax(axis=1), -1)
    residuals = -probs
    residuals[top >= 0, top[top >= 0]] += 1.0
    return top, residuals


@kernel
def _entries(  # type: ignore[no-untyped-def]
    labels, top, cuts, linear, codes_out, starts_out, totals_out
):
    # O(n + K tiles) per replicate: entries grouped by tile and class, a row of the tile times 2,
    # plus 1 if it is negative.
    n_classes = linear.shape[1]
    filled = np.empty(n_classes, dtype=np.int64)
    for q in range(labels.shape[0]):
        place = 0
        for t in range(cuts.size - 1):
            filled[:] = 0
            for i in range(cuts[t], cuts[t + 1]):
                y = labels[q, i]
                if y != top[i]:
                    totals_out[q] += linear[i, y]
                    filled[y] += 1
                    if top[i] >= 0:
                        filled[top[i]] += 1
            for k in range(n_classes):
                starts_out[q, t, k] = place
                place += filled[k]
                filled[k] = starts_out[q, t, k]
            starts_out[q, t, n_classes] = place
            for i in range(cuts[t], cuts[t + 1]):
                y = labels[q, i]
                if y != top[i]:
                    codes_out[q, filled[y]] = 2 * (i - cuts[t])
                    filled[y] += 1
                    if top[i] >= 0:
                        codes_out[q, filled[top[i]]] = 2 * (i - cuts[t]) + 1
                        filled[top[i]] += 1


@kernel
def _pair_sums(values, codes, starts, t, u, factor, totals_out):  # type: ignore[no-untyped-def]
    # Σ ± k over pairs of entries of a class, one in tile t and one in tile u: value by value, or
    # for many entries by whole rows, which are added in vectors.
    pulled = np.empty(values.shape[1])
    for q in range(totals_out.size):
        total = 0.0
        for k in range(starts.shape[2] - 1):
            first, last = starts[q, u, k], starts[q, u, k + 1]
            many = last - first > MANY
            if many:
                pulled[:] = 0.0
            for a in range(starts[q, t, k], starts[q, t, k + 1]):
                row = values[codes[q, a] >> 1]
                sign = 1.0 - 2.0 * (codes[q, a] & 1)
                if many:
                    for j in range(row.size):
                        pulled[j] += sign * row[j]
                    continue
                even, odd = 0.0, 0.0  # two sums, so that one need not wait for the other
                for b in range(first, last - 1, 2):
                    c, d = codes[q, b], codes[q, b + 1]
                    even += row[c >> 1] if c & 1 == 0 else -row[c >> 1]
                    odd += row[d >> 1] if d & 1 == 0 else -row[d >> 1]
                if (last - first) & 1:
                    c = codes[q, last - 1]
                    even += row[c >> 1] if c & 1 == 0 else -row[c >> 1]
                total += sign * (even + odd)
            if many:
                for b in range(first, last):
                    c = codes[q, b]
                    total += pulled[c >> 1] if c & 1 == 0 else -pulled[c >> 1]
        totals_out[q] += factor * total


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
