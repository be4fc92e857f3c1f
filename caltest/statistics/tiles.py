"""Kernels between predictions, and sums over pairs of rows, tile by tile.

:class:`LaplaceKernel`, :class:`GaussianKernel` and :class:`TVKernel` choose their bandwidth from
the predictions; :class:`Tiles` adds up h_ij = k(p_i, p_j) r_i·r_j without an n × n matrix.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from functools import cache, cached_property
from typing import ClassVar, Self

import numpy as np

from caltest._base import FloatArray, IntArray
from caltest._base.arrays import largest, number
from caltest._base.written import Written
from caltest.errors import StatisticError
from caltest.nulls.lanes import kernel

#: Sums over pairs of rows, and over rows with themselves.
Sums = tuple[FloatArray, FloatArray]


#: Rows of a tile of the matrix of kernel values.
ROWS_A_TILE = 256


#: Kernel values that stay in memory; of more rows they are made anew, tile by tile.
KERNEL_VALUES_KEPT = 2**24


#: Replicates side by side where labels are compared pair by pair, and classes up to which they are.
LANES_OF_PAIRS, FEW_CLASSES = 64, 127


#: So many pairs are compared in the time in which a kernel value is looked up and added.
PAIRS_COMPARED = 22.0


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
        """True if kernel values are kept in memory."""
        return len(self.probs) * max(self.size, ROWS_A_TILE // 4) // 2 <= KERNEL_VALUES_KEPT

    def sums(self, labels: IntArray) -> Sums:
        """Return Σ_{i≠j} h_ij and Σ_i h_ii for every row of labels (B, n), two arrays (B,)."""
        top, constant, linear = self._prepared
        totals = np.full(len(labels), constant)
        n, n_classes = self.probs.shape
        rows = np.arange(n)
        if self._dense:
            lanes = np.zeros((n, -(-len(labels) // LANES_OF_PAIRS) * LANES_OF_PAIRS), dtype=np.int8)
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
        """Return Σ_{j≠i} h_ij and h_ii of every row, (n,) each, for residuals (n, K); O(n² K)."""
        totals = np.einsum("ik,ik->i", residuals, self._times(residuals))
        return totals, np.square(residuals).sum(axis=1) * self._diagonal

    def weighted(self, residuals: FloatArray, weights: FloatArray) -> Sums:
        """Return Σ_{i≠j} w_i w_j h_ij and Σ_i w_i² h_ii for columns of weights, (B,) each.

        ``weights`` (n, B) are the w and ``residuals`` (n, K) the r of the h_ij. O(n² (K + B)), as
        matrix products.
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
        """Starts of the tiles and the end of the last; small blocks share a tile, none is split."""
        together = max(1, ROWS_A_TILE // 4 // self.size) * self.size
        step = ROWS_A_TILE if self.size >= ROWS_A_TILE else together
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
        """Yield (t, u, kernel values) for pairs of tiles t ≤ u, computed anew.

        Values are 0 on the diagonal and between different blocks.
        """
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
        """Return (reference, constant, addends) of the sum over pairs, from the predictions alone.

        ``reference`` (n,) is the class of probability above ½ of each row, or −1; ``constant`` is
        the sum if every label is its reference, and ``addends`` (n, K) its change if one row has
        another label.
        """
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
        """True if comparing all pairs of labels costs less than looking up the pairs that agree."""
        top, residuals = _reference(self.probs)
        clear = np.arange(self.probs.shape[1]) == top[:, None]
        entries = np.where(clear, residuals, self.probs).sum(axis=0)
        listed = float(entries @ entries) * self.size / len(self.probs)
        few = self.probs.shape[1] <= FEW_CLASSES
        return few and PAIRS_COMPARED * listed > len(self.probs) * max(self.size, ROWS_A_TILE // 4)

    def _times(self, columns: FloatArray) -> FloatArray:
        """Return the kernel matrix, with a diagonal of 0, times columns (n, K), same shape."""
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
    """Return (top, residuals) for predictions (n, K).

    ``top`` (n,) is the class with probability above ½, or −1 if no class has one. ``residuals``
    (n, K) are onehot(top) − p, and −p in rows where ``top`` is −1.
    """
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
    # Σ k over pairs of equal labels, eight pairs and LANES_OF_PAIRS replicates at a time.
    sums = np.empty(LANES_OF_PAIRS)
    eights = values.shape[1] // 8 * 8
    for start in range(0, totals_out.size, LANES_OF_PAIRS):
        lanes = slice(start, start + LANES_OF_PAIRS)
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
                for q in range(LANES_OF_PAIRS):
                    k = labels[q]
                    low = ((a if s[q] == k else 0.0) + (b if t[q] == k else 0.0)) + (
                        (c if u[q] == k else 0.0) + (d if v[q] == k else 0.0)
                    )
                    high = ((e if w[q] == k else 0.0) + (f if x[q] == k else 0.0)) + (
                        (g if y[q] == k else 0.0) + (h if z[q] == k else 0.0)
                    )
                    sums[q] += low + high
            for j in range(eights, values.shape[1]):
                for q in range(LANES_OF_PAIRS):
                    sums[q] += line[j] if others[j, start + q] == labels[q] else 0.0
        for q in range(LANES_OF_PAIRS):
            totals_out[start + q] += factor * sums[q]


# ------------------------------------------------------------------------------
# Kernels between predictions, and the median heuristic for their bandwidth.


#: Up to this many rows of three or more classes the median is over all pairs, above over a sample.
MEDIAN_ROWS = 10_000


def median(probs: FloatArray, distance: str, diagonal: bool) -> float:
    """Return the median distance between pairs of rows of ``probs`` (n, K), for K ≥ 3.

    ``distance`` is "tv" or "l2"; ``diagonal`` includes pairs of a row and itself. If the median is
    0, the mean distance is returned, or 1.
    """
    n = len(probs)
    if n > MEDIAN_ROWS:
        ordered = np.lexsort(probs.T[::-1])
        probs = probs[ordered[np.arange(MEDIAN_ROWS) * n // MEDIAN_ROWS]]
    columns = np.ascontiguousarray(probs.T)
    manhattan = distance == "tv"

    @cache
    def digits(prefix: int, shift: int) -> IntArray:
        counts = np.zeros(2**16, dtype=np.int64)
        _digits(columns, manhattan, prefix, shift, counts)
        return counts

    def kth(rank: int, copies: int, zeros: int) -> float:
        # Radix selection: distances are ≥ 0, so that their bits are ordered as they are.
        prefix = 0
        for shift in (48, 32, 16, 0):
            cumulative = np.cumsum(copies * digits(prefix, shift)) + (zeros if prefix == 0 else 0)
            digit = int(np.searchsorted(cumulative, rank, side="right"))
            rank -= int(cumulative[digit - 1]) if digit else 0
            prefix = prefix << 16 | digit
        return float(np.int64(prefix).view(np.float64))

    def mean() -> float:
        return _total_distance(columns, manhattan) / max(1, len(probs) * (len(probs) - 1) // 2)

    return _middle(kth, len(probs), diagonal) or mean()


def median_on_line(x: FloatArray, diagonal: bool) -> float:
    """Return the median |x_i − x_j| over pairs of increasing numbers x (n,).

    ``diagonal`` includes pairs of a number and itself. If it is 0, the mean is returned, or 1.
    """

    def kth(rank: int, copies: int, zeros: int) -> float:
        # The smallest t with more than ``rank`` distances ≤ t, by bisection over its bits.
        low, high = 0, int((x[-1] - x[0]).view(np.int64))
        while low < high:
            middle = (low + high) // 2
            t = np.int64(middle).view(np.float64)
            if zeros + copies * _pairs_within(x, t) > rank:
                high = middle
            else:
                low = middle + 1
        return float(np.int64(low).view(np.float64))

    def mean() -> float:
        n = x.size
        return float((2.0 * np.arange(n) - (n - 1)) @ x) / (n * (n - 1) // 2)

    return 0.0 if x[0] == x[-1] else _middle(kth, x.size, diagonal) or mean()


def _middle(kth: Callable[[int, int, int], float], n: int, diagonal: bool) -> float:
    """Return the median over pairs of n values, from ``kth(rank, copies, zeros)``.

    That function returns the distance of a rank among pairs, each counted ``copies`` times, with
    ``zeros`` extra distances of 0. With ``diagonal`` every pair counts twice, and each value once
    with itself.
    """
    copies, zeros = (2, n) if diagonal else (1, 0)
    total = zeros + copies * (n * (n - 1) // 2)
    if total == 0:
        return 0.0
    low = kth((total - 1) // 2, copies, zeros)
    return low if total % 2 else 0.5 * (low + kth(total // 2, copies, zeros))


@kernel
def _digits(columns, manhattan, prefix, shift, counts_out):  # type: ignore[no-untyped-def]
    # O(n² K): how often each value of 16 bits occurs among the distances that begin with prefix.
    # In pieces that stay in the nearest cache.
    n_classes, n = columns.shape
    line = np.empty(512)
    bits = line.view(np.int64)
    for start in range(0, n, line.size):
        for i in range(start + 1, n):
            size = min(line.size, i - start)
            line[:size] = 0.0
            for k in range(n_classes):
                x, others = columns[k, i], columns[k, start : start + size]
                if manhattan:
                    for j in range(size):
                        line[j] += abs(x - others[j])
                else:
                    for j in range(size):
                        line[j] += (x - others[j]) ** 2
            for j in range(size):
                line[j] = 0.5 * line[j] if manhattan else np.sqrt(line[j])
            for j in range(size):
                if bits[j] >> shift >> 16 == prefix:
                    counts_out[bits[j] >> shift & 65535] += 1


@kernel
def _total_distance(columns, manhattan):  # type: ignore[no-untyped-def]
    # O(n² K).
    n_classes, n = columns.shape
    total = 0.0
    for i in range(n):
        for j in range(i):
            d = 0.0
            for k in range(n_classes):
                x = columns[k, i] - columns[k, j]
                d += 0.5 * abs(x) if manhattan else x * x
            total += d if manhattan else np.sqrt(d)
    return total


@kernel
def _pairs_within(x, t):  # type: ignore[no-untyped-def]
    # O(n): how many pairs of increasing numbers are at most t apart.
    first, count = 0, 0
    for j in range(x.size):
        while x[j] - x[first] > t:
            first += 1
        count += j - first
    return count


#: A kernel takes rows of probabilities, (a, K) and (b, K), and returns the (a, b) values.
Kernel = Callable[[FloatArray, FloatArray], FloatArray]


@dataclass(frozen=True, repr=False)
class DistanceKernel(Written):
    """Base class of kernels that depend on the distance of two rows, with their bandwidth.

    ``bandwidth`` is a number, or "median" for the median distance between predictions.
    """

    bandwidth: float | str = "median"
    #: ``"tv"`` or ``"l2"``.
    distance: ClassVar[str] = "l2"
    #: Two rows of a two-class problem are this many times |p − q| apart, p and q of either class.
    two_class: ClassVar[float] = 2.0**0.5

    def __post_init__(self) -> None:
        width = self.bandwidth
        if not isinstance(width, str):
            number("bandwidth", width, 0.0, np.inf)
            object.__setattr__(self, "bandwidth", float(width))
        elif width not in ("median", "median-with-diagonal"):
            raise StatisticError(
                f"bandwidth must be a number > 0, 'median' or 'median-with-diagonal', not {width!r}"
            )

    def fitted(self, probs: FloatArray) -> Self:
        """Return this kernel with a numeric bandwidth.

        A bandwidth given as a word, such as "median", is computed from predictions (n, K).
        """
        if not isinstance(self.bandwidth, str):
            return self
        diagonal = self.bandwidth == "median-with-diagonal"
        if probs.shape[1] == 2:
            width = self.two_class * median_on_line(np.sort(probs[:, 0]), diagonal)
        else:
            width = median(probs, self.distance, diagonal)
        # For equal predictions every bandwidth gives the same values.
        return replace(self, bandwidth=width or 1.0)

    def __call__(self, rows: FloatArray, others: FloatArray) -> FloatArray:
        """Return kernel values (a, b) for rows (a, K) and others (b, K), O(a b K)."""
        values = self._distances(rows, others, squared=False)
        values *= -1.0 / float(self.bandwidth)
        return np.exp(values, out=values)

    def _distances(self, rows: FloatArray, others: FloatArray, *, squared: bool) -> FloatArray:
        if isinstance(self.bandwidth, str):
            raise StatisticError(f"{self!r} has no bandwidth yet: use {self!r}.fitted(probs)")
        out = np.empty((len(rows), len(others)))
        columns = np.ascontiguousarray(others.T)
        _distances(np.ascontiguousarray(rows), columns, self.distance == "tv", out)
        if self.distance == "l2" and not squared:
            np.sqrt(out, out=out)
        return out


@dataclass(frozen=True, repr=False)
class LaplaceKernel(DistanceKernel):
    """The kernel exp(−‖p − q‖₂ / ν) between rows of probabilities, in (0, 1].

    Parameters
    ----------
    bandwidth : float or {"median", "median-with-diagonal"}, default "median"
        The bandwidth ν > 0, StatisticError else, or a rule that makes it from the predictions
        alone, so that redrawn labels stay valid: the median of the distances ‖p − q‖₂ of all pairs
        i < j, or of all n² ordered pairs, the n zeros of rows with themselves included, as in the
        experiments of Widmann et al. (2019). Where it is 0 the mean distance of pairs i < j is
        taken, and 1 where that is 0 as well. For two classes ‖p − q‖₂ = √2 |p₁ − q₁|.

    Notes
    -----
    The median is exact and independent of the order of rows: O(n log n) for two classes; O(n² K)
    for more up to n = 10 000, above that over the pairs of 10 000 rows, taken at equal steps from
    the rows in lexicographic order.

    Examples
    --------
    >>> probs = np.array([[0.5, 0.5, 0.0], [0.5, 0.0, 0.5], [0.0, 0.5, 0.5]])
    >>> LaplaceKernel(0.5)(probs, probs).round(3).tolist()[0]
    [1.0, 0.243, 0.243]
    >>> LaplaceKernel("median").fitted(probs)
    LaplaceKernel(0.7071067811865476)
    """


@dataclass(frozen=True, repr=False)
class GaussianKernel(DistanceKernel):
    """The kernel exp(−‖p − q‖₂² / (2ν²)) between rows of probabilities.

    See :class:`LaplaceKernel` for the bandwidth ν and how the median of ‖p − q‖₂ gives it.
    """

    def __call__(self, rows: FloatArray, others: FloatArray) -> FloatArray:
        values = self._distances(rows, others, squared=True)
        values *= -0.5 / float(self.bandwidth) ** 2
        return np.exp(values, out=values)


@dataclass(frozen=True, repr=False)
class TVKernel(DistanceKernel):
    """The kernel exp(−TV(p, q) / ν) between rows, TV(p, q) = ½ Σ_k |p_k − q_k|.

    The kernel of the experiments of Widmann et al. (2019); for two classes TV(p, q) = |p₁ − q₁|.
    See :class:`LaplaceKernel` for the bandwidth ν.
    """

    distance: ClassVar[str] = "tv"
    two_class: ClassVar[float] = 1.0


@kernel
def _distances(rows, columns, manhattan, out):  # type: ignore[no-untyped-def]
    # O(a b K): total variation, or the square of the Euclidean distance.
    for i in range(rows.shape[0]):
        line = out[i]
        line[:] = 0.0
        for k in range(rows.shape[1]):
            x = rows[i, k]
            if manhattan:
                for j in range(line.size):
                    line[j] += abs(x - columns[k, j])
            else:
                for j in range(line.size):
                    line[j] += (x - columns[k, j]) ** 2
        if manhattan:
            for j in range(line.size):
                line[j] *= 0.5
