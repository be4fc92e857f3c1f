"""What labels show in all segments at once: tables of cells, gains, and the largest of redraws."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from caltest._base.arrays import FloatArray, IntArray
from caltest._base.compiled import dense_kernel, kernel
from caltest._base.progress import progress
from caltest.segments.lattice import Lattice

#: Shifts of the log-odds that are tried, a factor of √2 apart: where the gain is best for shifts of
#: 1/300 to 5 it costs at most 3 %.
SIZES = 2.0 ** (np.arange(-16, 5) / 2)
SHIFTS = np.concatenate([-SIZES[::-1], SIZES])
#: A gain on these shifts is at most so many times z² / 2: reached by many events of next to no
#: chance and half as many next to certain, none of which occurs (with rows' gains of at most 4).
OF_NORMAL = 8.0 / 3.0
#: Evidence that differs by less, in nats, is equal.
TIES = 1e-9
#: Rows whose logarithms are held at a time; sums below which a variance is none.
AT_ONCE, NO_VARIANCE = 8192, 1e-12


def log_moment(p: FloatArray, shift: FloatArray | float) -> FloatArray:
    """Return ln(1 − p + p eᵗ), the logarithm of E e^{t y}."""
    return np.log1p(p * np.expm1(shift))


def tilted(p: FloatArray, shift: FloatArray | float) -> FloatArray:
    """Return σ(logit p + t); 0 and 1 stay what they are."""
    e = np.exp(shift)
    return p * e / (1.0 - p + p * e)


def sums(lattice: Lattice, values: FloatArray) -> FloatArray:
    """Return the sums of columns of values (n, m) over the rows of all segments: (S, m).

    O(n m d²) for d columns, and O(S m).
    """
    tables = _tables(lattice, values.shape[1])
    _add(lattice.alone, lattice.paired, values, *tables)
    return _of_segments(lattice, tables, values.sum(axis=0))


def _tables(lattice: Lattice, m: int) -> tuple[FloatArray, FloatArray]:
    ends = lattice.cells
    return np.zeros((ends[0], m)), np.zeros((ends[1], ends[1], m))


def _of_segments(
    lattice: Lattice, tables: tuple[FloatArray, FloatArray], whole: FloatArray
) -> FloatArray:
    out = np.empty((len(lattice.corners), whole.size))
    out[0] = whole
    _gather(lattice.blocks, lattice.corners, *tables, out)
    return out


@dense_kernel
def _add(alone, paired, values, table, table_of_pairs):  # type: ignore[no-untyped-def]
    # O(n m d²). Cells of pairs stand in the upper triangle of a square table.
    m = values.shape[1]
    for i in range(len(alone)):
        for j in range(alone.shape[1]):
            for g in range(m):
                table[alone[i, j], g] += values[i, g]
        for j in range(paired.shape[1]):
            for k in range(j + 1, paired.shape[1]):
                for g in range(m):
                    table_of_pairs[paired[i, j], paired[i, k], g] += values[i, g]


@dense_kernel
def _gather(blocks, corners, table, table_of_pairs, out):  # type: ignore[no-untyped-def]
    # O(S m cells of a segment).
    m = out.shape[1]
    for block in blocks:
        for s in range(block[4], block[5]):
            out[s] = 0.0
            for a in range(block[0] + corners[s, 0], block[0] + corners[s, 1]):
                if block[3] == 0:
                    for g in range(m):
                        out[s, g] += table[a, g]
                    continue
                for b in range(block[2] + corners[s, 2], block[2] + corners[s, 3]):
                    for g in range(m):
                        out[s, g] += table_of_pairs[a, b, g]


@kernel
def _largest(  # type: ignore[no-untyped-def]
    labels, rare, alone, paired, blocks, corners, w, weight, expected, variance, moments, shifts,
    scale, price, widest, cells, out
):  # fmt: skip
    # O(min(events, others) d² + S) a label vector, by counting rows of the rarer label only and
    # sums of rectangles from the corner of each block; a segment whose gain could not be the
    # best so far is passed over.
    half = shifts.size // 2
    table, table_of_pairs = np.empty(cells[0]), np.empty((cells[1], cells[1]))
    upto = np.zeros((widest + 1, widest + 1))
    for r in range(labels.shape[0]):
        table[:] = 0.0
        table_of_pairs[:] = 0.0
        total = 0.0
        for i in range(w.size):
            if labels[r, i] != rare:
                continue
            v = w[i]
            total += v
            for j in range(alone.shape[1]):
                table[alone[i, j]] += v
            for j in range(paired.shape[1]):
                row = table_of_pairs[paired[i, j]]
                for k in range(j + 1, paired.shape[1]):
                    row[paired[i, k]] += v
        best = -np.inf
        for b in range(-1, len(blocks)):
            if b < 0:
                start, end = 0, 1
            else:
                start, end = blocks[b, 4], blocks[b, 5]
                for x in range(blocks[b, 1]):
                    line = 0.0
                    if blocks[b, 3] == 0:
                        upto[x + 1, 1] = upto[x, 1] + table[blocks[b, 0] + x]
                    for y in range(blocks[b, 3]):
                        line += table_of_pairs[blocks[b, 0] + x, blocks[b, 2] + y]
                        upto[x + 1, y + 1] = upto[x, y + 1] + line
            for s in range(start, end):
                if b < 0:
                    count = total
                else:
                    x, z, y, u = corners[s]
                    count = upto[z, u] - upto[x, u] - upto[z, y] + upto[x, y]
                events = count if rare == 0 else weight[s] - count
                moved = events - expected[s]
                normal = 0.5 * moved * moved / variance[s] * scale[s]
                if moved == 0.0 or OF_NORMAL * normal - price[s] <= best:
                    gain = 0.0
                else:
                    # Upwards from about the best shift, on the side on which gains are positive.
                    side = 1 if moved > 0.0 else -1
                    size = np.log2(max(abs(moved) / variance[s], 1e-9))
                    k = min(max(int(np.rint(2.0 * size)) + 16, 0), half - 1)
                    place = half + k if side > 0 else half - 1 - k
                    gain = shifts[place] * events - moments[s, place]
                    for step in (side, -side):
                        g = place + step
                        while 0 <= g < shifts.size and (g >= half) == (side > 0):
                            other = shifts[g] * events - moments[s, g]
                            if other <= gain:
                                break
                            gain = other
                            g += step
                    gain *= scale[s]
                best = max(best, max(gain, 0.0) - price[s])
        out[r] = best


@dataclass(frozen=True, eq=False)
class Scan:
    """All segments of a lattice with what predictions say of them, whatever the labels.

    Attributes
    ----------
    p, w : ndarray of shape (n,)
        The probability of the event, and the weight of every row.
    weight, expected, variance, squared : ndarray of shape (S,)
        Σ w, Σ w p, Σ w p (1 − p) and Σ w² p (1 − p).
    moments : ndarray of shape (S, 42)
        Σ w ln(1 − p + p eᵗ), of every shift t.
    dispersion : ndarray of shape (S,)
        φ, by which gains are divided: Σ w² v / Σ w v, v = p (1 − p), 1 without weights.
    """

    lattice: Lattice
    p: FloatArray
    w: FloatArray
    weight: FloatArray
    expected: FloatArray
    variance: FloatArray
    squared: FloatArray
    moments: FloatArray
    dispersion: FloatArray

    @classmethod
    def of(cls, lattice: Lattice, p: FloatArray, w: FloatArray) -> Scan:
        """Add up everything, O(n (42 + 42 d²)) for d columns."""
        tables, whole = _tables(lattice, SHIFTS.size), np.zeros(SHIFTS.size)
        with progress(p.size, "rows") as advance:
            for start in range(0, p.size, AT_ONCE):
                rows = slice(start, start + AT_ONCE)
                logs = w[rows, None] * log_moment(p[rows, None], SHIFTS)
                _add(lattice.alone[rows], lattice.paired[rows], logs, *tables)
                whole += logs.sum(axis=0)
                advance(len(logs))
        moments = _of_segments(lattice, tables, whole)
        v = w * p * (1.0 - p)
        weight, expected, variance, squared = sums(lattice, np.stack([w, w * p, v, w * v], 1)).T
        even = w.min() == w.max()
        ratio = np.full(weight.size, w[0]) if even else squared / np.maximum(variance, 1e-300)
        dispersion = np.where(variance > 0.0, ratio, 1.0)
        return cls(lattice, p, w, weight, expected, variance, squared, moments, dispersion)

    def gains(self, events: FloatArray) -> FloatArray:
        """Return max_t [t O − K(t)] / φ ≥ 0, of the weight O of events in every segment."""
        gains = np.empty(events.size)
        for start in range(0, events.size, AT_ONCE):
            s = slice(start, start + AT_ONCE)
            gains[s] = (events[s, None] * SHIFTS - self.moments[s]).max(axis=1)
        return np.maximum(gains, 0.0) / self.dispersion

    def largest(self, labels: IntArray, inflation: float = 1.0) -> FloatArray:
        """Return the largest gain less price of label vectors (B, n), of which 0 is the event.

        Gains are multiplied by ``inflation`` before the price.
        """
        lattice, out = self.lattice, np.empty(len(labels))
        rare = int(self.w @ self.p > 0.5 * self.w.sum())
        _largest(
            labels, rare, lattice.alone, lattice.paired, lattice.blocks, lattice.corners, self.w,
            self.weight, self.expected, np.maximum(self.variance, NO_VARIANCE), self.moments,
            SHIFTS, inflation / self.dispersion, lattice.price, lattice.widest, lattice.cells, out,
        )  # fmt: skip
        return out

    def take(self, rows: IntArray) -> Scan:
        """Return the same segments of some of the rows; what is known of segments stays."""
        return replace(self, lattice=self.lattice.take(rows), p=self.p[rows], w=self.w[rows])
