"""Sums over pairs of rows, tile by tile of the matrix of kernel values: for any kernel."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from caltest._base.arrays import largest
from caltest._base.compiled import kernel
from caltest.predictions import FloatArray, IntArray
from caltest.statistics.kernel.kernels import Kernel

#: Sums over pairs of rows, and over rows with themselves.
Sums = tuple[FloatArray, FloatArray]
#: Rows of a tile of the matrix of kernel values.
TILE = 256
#: Kernel values that stay in memory; of more rows they are made anew, tile by tile.
IN_MEMORY = 2**24
#: Replicates side by side where labels are compared pair by pair, and classes up to which they are.
LANES, FEW_CLASSES = 64, 127
#: So many pairs are compared in the time in which a kernel value is looked up and added.
COMPARED = 22.0


@dataclass(frozen=True, eq=False)
class Tiles:
    """Sums of h_ij = k(p_i, p_j) r_i·r_j over pairs in blocks of ``size`` rows, r = onehot(y) − p.

    Labels are compared with a reference: of a row with a class of probability above ½ that class,
    of others none. Against it a set of labels is a short list of entries ±1, (row, class), so
    Σ h_ij is a constant, plus a number for each entry, plus k(p_i, p_j) for pairs of entries of the
    same class: some n² / (2K) kernel values a replicate for flat predictions, and far fewer for
    confident ones, instead of the n² K products of the matrix form. Where the lists would be long,
    the reference is empty and labels are compared pair by pair, 64 replicates side by side: n² / 2
    additions in vector instructions, whatever K is. Memory is bounded: up to 2²⁴
    kernel values are kept (n ≈ 5 700), of larger matrices a tile at a time.
    """

    probs: FloatArray
    kernel: Kernel = field(repr=False)
    size: int

    @property
    def in_memory(self) -> bool:
        """Whether kernel values stay in memory."""
        return len(self.probs) * max(self.size, TILE // 4) // 2 <= IN_MEMORY

    def sums(self, labels: IntArray) -> Sums:
        """Return Σ_{i≠j} h_ij and Σ_i h_ii for every row of labels (B, n), two arrays (B,)."""
        top, constant, linear = self._prepared
        totals = np.full(len(labels), constant)
        n, n_classes = self.probs.shape
        rows = np.arange(n)
        if self._dense:
            lanes = np.zeros((n, -(-len(labels) // LANES) * LANES), dtype=np.int8)
            lanes[:, : len(labels)] = labels.T
            pairs = np.zeros(lanes.shape[1])
            for t, u, values in self._tiles():
                factor = 1.0 if t == u else 2.0
                _compared(values, lanes[self._slice(t)], lanes[self._slice(u)], factor, pairs)
            totals += pairs[: len(labels)] + [linear[rows, row].sum() for row in labels]
        else:
            codes = np.empty((len(labels), 2 * n), dtype=np.int32)
            starts = np.empty((len(labels), self._cuts.size, n_classes + 1), dtype=np.int32)
            _entries(labels, top, self._cuts, linear, codes, starts, totals)
            for t, u, values in self._tiles():
                _pair_sums(values, codes, starts, t, u, 1.0 if t == u else 2.0, totals)
        norms = np.square(self.probs).sum(axis=1)
        of_label = [self.probs[rows, row] @ self._diagonal for row in labels]
        return totals, (1.0 + norms) @ self._diagonal - 2.0 * np.array(of_label)

    def rows(self, residuals: FloatArray) -> Sums:
        """Return Σ_{j≠i} h_ij and h_ii of every row, (n,), for residuals (n, K); O(n² K)."""
        totals = np.einsum("ik,ik->i", residuals, self._times(residuals))
        return totals, np.square(residuals).sum(axis=1) * self._diagonal

    def weighted(self, residuals: FloatArray, weights: FloatArray) -> Sums:
        """Return Σ_{i≠j} w_i w_j h_ij and Σ_i w_i² h_ii for columns of weights (n, B).

        O(n² (K + B)), as matrix products.
        """
        totals = np.zeros(weights.shape[1])
        for t, u, values in self._tiles():
            rows, others = self._slice(t), self._slice(u)
            h = values * (residuals[rows] @ residuals[others].T)
            part = np.einsum("ib,ib->b", weights[rows], h @ weights[others])
            totals += part if t == u else 2.0 * part
        return totals, np.square(residuals).sum(axis=1) * self._diagonal @ np.square(weights)

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

    def _tiles(self) -> Iterable[tuple[int, int, FloatArray]]:
        return self._values if self.in_memory else self._fresh()

    @cached_property
    def _values(self) -> list[tuple[int, int, FloatArray]]:
        return list(self._fresh())

    def _fresh(self) -> Iterator[tuple[int, int, FloatArray]]:
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
        if self._dense:
            top, residuals = np.full_like(top, -1), -self.probs
        clear = top >= 0
        pulled = self._times(residuals)
        linear = 2.0 * pulled
        linear[clear] -= linear[clear, top[clear]][:, None]
        return top, float(np.sum(residuals * pulled)), linear

    @cached_property
    def _dense(self) -> bool:
        """Whether comparing all pairs of labels takes less than looking up those that agree."""
        top, residuals = _reference(self.probs)
        clear = np.arange(self.probs.shape[1]) == top[:, None]
        entries = np.where(clear, residuals, self.probs).sum(axis=0)
        listed = float(entries @ entries) * self.size / len(self.probs)
        few = self.probs.shape[1] <= FEW_CLASSES
        return few and COMPARED * listed > len(self.probs) * max(self.size, TILE // 4)

    def _times(self, columns: FloatArray) -> FloatArray:
        """Return the matrix of kernel values, 0 on the diagonal, times columns (n, K)."""
        product = np.zeros_like(columns)
        for t, u, values in self._tiles():
            rows, others = self._slice(t), self._slice(u)
            product[rows] += values @ columns[others]
            if t != u:
                product[others] += values.T @ columns[rows]
        return product


def residuals_of(probs: FloatArray, labels: IntArray) -> FloatArray:
    """Return onehot(y_i) − p_i, shape (n, K)."""
    residuals = -probs
    residuals[np.arange(len(probs)), labels] += 1.0
    return residuals


def _reference(probs: FloatArray) -> tuple[IntArray, FloatArray]:
    """Return each row's class of probability above ½, or −1, and the residuals of these labels."""
    top = np.where(largest(probs) > 0.5, probs.argmax(axis=1), -1)
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
    # Σ ± k over pairs of entries of a class, one in tile t and one in tile u.
    for q in range(totals_out.size):
        total = 0.0
        for k in range(starts.shape[2] - 1):
            first, last = starts[q, u, k], starts[q, u, k + 1]
            for a in range(starts[q, t, k], starts[q, t, k + 1]):
                row = values[codes[q, a] >> 1]
                sign = 1.0 - 2.0 * (codes[q, a] & 1)
                even, odd = 0.0, 0.0  # two sums, so that one need not wait for the other
                for b in range(first, last - 1, 2):
                    c, d = codes[q, b], codes[q, b + 1]
                    even += row[c >> 1] if c & 1 == 0 else -row[c >> 1]
                    odd += row[d >> 1] if d & 1 == 0 else -row[d >> 1]
                if (last - first) & 1:
                    c = codes[q, last - 1]
                    even += row[c >> 1] if c & 1 == 0 else -row[c >> 1]
                total += sign * (even + odd)
        totals_out[q] += factor * total


@kernel
def _compared(values, rows, others, factor, totals_out):  # type: ignore[no-untyped-def]
    # Σ k over pairs of equal labels, eight pairs and LANES replicates at a time, in registers.
    sums = np.empty(LANES)
    eights = values.shape[1] // 8 * 8
    for start in range(0, totals_out.size, LANES):
        lanes = slice(start, start + LANES)
        sums[:] = 0.0
        for i in range(values.shape[0]):
            labels, line = rows[i, lanes], values[i]
            for j in range(0, eights, 8):
                a, b, c, d = line[j], line[j + 1], line[j + 2], line[j + 3]
                e, f, g, h = line[j + 4], line[j + 5], line[j + 6], line[j + 7]
                s, t, u, v = (others[j, lanes], others[j + 1, lanes], others[j + 2, lanes],
                              others[j + 3, lanes])  # fmt: skip
                w, x, y, z = (others[j + 4, lanes], others[j + 5, lanes], others[j + 6, lanes],
                              others[j + 7, lanes])  # fmt: skip
                for q in range(LANES):
                    k = labels[q]
                    low = ((a if s[q] == k else 0.0) + (b if t[q] == k else 0.0)) + (
                        (c if u[q] == k else 0.0) + (d if v[q] == k else 0.0)
                    )
                    high = ((e if w[q] == k else 0.0) + (f if x[q] == k else 0.0)) + (
                        (g if y[q] == k else 0.0) + (h if z[q] == k else 0.0)
                    )
                    sums[q] += low + high
            for j in range(eights, values.shape[1]):
                for q in range(LANES):
                    sums[q] += line[j] if others[j, start + q] == labels[q] else 0.0
        for q in range(LANES):
            totals_out[start + q] += factor * sums[q]
