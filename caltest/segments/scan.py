"""What labels show in all segments at once: gains, and the largest of redraws."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from caltest._base.arrays import BoolArray, FloatArray, IntArray
from caltest._base.compiled import kernel
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
#: Sums that are held at a time; variances below which, beside that of all rows, there is none.
AT_ONCE, NO_VARIANCE = 2**20, 1e-14


def log_moment(p: FloatArray, shift: FloatArray | float) -> FloatArray:
    """Return ln(1 − p + p eᵗ), the logarithm of E e^{t y}."""
    return np.log1p(p * np.expm1(shift))


def tilted(p: FloatArray, shift: FloatArray | float) -> FloatArray:
    """Return σ(logit p + t); 0 and 1 stay what they are."""
    e = np.exp(shift)
    return p * e / (1.0 - p + p * e)


@dataclass(frozen=True, eq=False)
class Scan:
    """All segments of a lattice with what predictions say of them, whatever the labels.

    Attributes
    ----------
    p, w : ndarray of shape (n,)
        The probability of the event, and the weight of every row.
    weight, expected, variance : ndarray of shape (S,)
        Σ w, Σ w p and Σ w p (1 − p).
    dispersion : ndarray of shape (S,)
        φ, by which gains are divided: Σ w² v / Σ w v, v = p (1 − p), 1 without weights; of clusters
        at least the mean square of Σ w (y − p) over pilot draws of labels, over Σ w v.
    moments : ndarray of shape (S, 42)
        Σ w ln(1 − p + p eᵗ), of every shift t.
    """

    lattice: Lattice
    p: FloatArray
    w: FloatArray
    weight: FloatArray
    expected: FloatArray
    variance: FloatArray
    dispersion: FloatArray
    moments: FloatArray

    @classmethod
    def of(
        cls, lattice: Lattice, p: FloatArray, w: FloatArray, pilots: Iterable[FloatArray] = ()
    ) -> Scan:
        """Add up everything, O(42 n d²) for d columns; ``pilots`` are mean squares of segments."""
        v = w * p * (1.0 - p)
        weight, expected, variance, squared = lattice.sums(np.stack([w, w * p, v, w * v]))
        for spread in pilots:
            squared = np.maximum(squared, spread)
        some = variance > NO_VARIANCE * variance[0]
        dispersion = np.divide(squared, variance, out=np.ones_like(variance), where=some)
        moments = np.empty((lattice.size, SHIFTS.size))
        with progress(SHIFTS.size, "shifts") as advance:
            for k, shift in enumerate(SHIFTS):
                moments[:, k] = lattice.sums((w * log_moment(p, shift))[None])[0]
                advance(1)
        return cls(lattice, p, w, weight, expected, variance, dispersion, moments)

    def evidence(self, y: FloatArray | BoolArray) -> FloatArray:
        """Return max_t [t O − K(t)] / φ ≥ 0 less the price of every segment, of events y (n,)."""
        (events,), gains = self.lattice.sums((self.w * y)[None]), np.zeros(self.lattice.size)
        for k, shift in enumerate(SHIFTS):
            np.maximum(gains, shift * events - self.moments[:, k], out=gains)
        return gains / self.dispersion - self.lattice.price

    def largest(self, labels: IntArray, inflation: float = 1.0) -> FloatArray:
        """Return the largest gain less price of label vectors (B, n), of which 0 is the event.

        Gains are multiplied by ``inflation`` before the price. O(n + min(events, others) d²/8 + S)
        a vector.
        """
        rare = int(self.expected[0] > 0.5 * self.weight[0])
        floor, out = max(NO_VARIANCE * self.variance[0], 1e-300), np.empty(len(labels))
        step = max(1, AT_ONCE // self.lattice.size)
        for rows in (slice(start, start + step) for start in range(0, len(labels), step)):
            events = self.lattice.sums((labels[rows] == rare) * self.w)
            _largest(
                self.weight - events if rare else events, self.expected,
                np.maximum(self.variance, floor), self.moments, SHIFTS,
                inflation / self.dispersion, self.lattice.price, out[rows],
            )  # fmt: skip
        return out


@kernel
def _largest(events, expected, variance, moments, shifts, scale, price, out):  # type: ignore[no-untyped-def]
    # A segment whose gain could not be the largest so far is passed over. Of others shifts are
    # tried outwards from 0, on the side on which gains are positive, until they fall: gains are
    # concave.
    half = shifts.size // 2
    for r in range(len(events)):
        best = -np.inf
        for s in range(price.size):
            excess = events[r, s] - expected[s]
            normal = 0.5 * excess * excess / variance[s] * scale[s]
            if OF_NORMAL * normal - price[s] <= best:
                continue
            step, gain = (1, 0.0) if excess > 0.0 else (-1, 0.0)
            place = half if step > 0 else half - 1
            while 0 <= place < shifts.size:
                other = shifts[place] * events[r, s] - moments[s, place]
                if other <= gain:
                    break
                gain = other
                place += step
            best = max(best, gain * scale[s] - price[s])
        out[r] = best
