"""The law of the number of events in cells that are known by their moments."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.fft import irfft
from numpy.typing import NDArray

from caltest._base.poisson_binomial import NEGLIGIBLE, ROUNDING, fast_length, poisson_binomial
from caltest.predictions import FloatArray, IntArray
from caltest.tally.grid import mean_position
from caltest.tally.rows import FINE, UNIT

#: Variance of positions, in half widths squared, below which a cell counts as one prediction.
NARROW = 1e-7
#: Rows that are listed one by one where their predictions are known.
LISTED = 4096
#: Frequencies times predictions in an array that is made at once.
AT_ONCE = 2**19


@dataclass(frozen=True, eq=False)
class Atoms:
    """Predictions that stand for the rows of C micro-cells: one or two a cell, with multiplicities.

    Two atoms have the moments 0 to 3 of the rows; one or two rows are their own atoms. ``p``,
    ``rest`` = 1 − p and ``times`` have the shape (2, C). ``fourth`` and ``second`` (C,) bound what
    atoms leave open: Σ |p − centre|⁴ / 4 of rows and atoms together, and Σ (p − atom)² / 2 with the
    rounding of squares. ``half`` (C,) is half the width of cells of several atoms, 0 of others;
    ``rounding`` (C,) is how far predictions may have been rounded, in all.
    """

    p: FloatArray
    rest: FloatArray
    times: FloatArray
    fourth: FloatArray
    second: FloatArray
    half: FloatArray
    rounding: FloatArray

    @classmethod
    def of(cls, sums: IntArray, centre: FloatArray, rest: FloatArray, half: FloatArray) -> Self:
        """Return the atoms of micro-cells, which are those of Gauss's quadrature."""
        n = sums[:, 0].astype(np.float64)
        mean = mean_position(sums)
        square, cube, fourth = (sums[:, k] / (n * UNIT) for k in range(2, 5))
        variance = np.maximum(square - mean**2, 0.0)
        two = (variance > NARROW) & (n > 1)
        sd = np.sqrt(np.where(two, variance, 1.0))
        third = np.where(two & (n > 2), cube - 3.0 * mean * square + 2.0 * mean**3, 0.0)
        skew = 0.5 * third / sd**3
        root = np.hypot(1.0, skew)
        lower, upper = (np.where(two, mean + sd * (skew + s * root), mean) for s in (-1.0, 1.0))
        share = np.where(two, 0.5 * (1.0 + skew / root), 1.0)  # of the lower atom
        t = np.clip([lower, upper], -1.0, 1.0)
        times = np.array([n * share, n * (1.0 - share)])
        several = two & (n > 2)
        left = (n * fourth + (times * t**4).sum(axis=0)) * half**4 / 4.0
        spread = 0.5 * np.where(two, 0.0, np.minimum(variance, NARROW)) + 2.0 / UNIT
        return cls(
            centre + half * t,
            rest - half * t,
            times,
            np.where(several, left, 0.0),
            np.where(n > 1, n * spread * half**2, 0.0),
            np.where(several, half, 0.0),
            n * half / (2.0 * FINE),
        )

    def take(self, cells: IntArray) -> Atoms:
        """Return the atoms of some of the micro-cells."""
        return Atoms(*(column[..., cells] for column in vars(self).values()))

    def law(self) -> tuple[int, FloatArray, float]:
        """Return the law of the number of events, as ``poisson_binomial`` does."""
        if (self.times * self.p).sum() <= (self.times * self.rest).sum():
            return self._of(self.p.ravel())
        lowest, pmf, lost = self._of(self.rest.ravel())  # the rarer label has all its digits
        return round(float(self.times.sum())) - (lowest + pmf.size - 1), pmf[::-1], lost

    def _of(self, p: FloatArray) -> tuple[int, FloatArray, float]:
        times = self.times.ravel()
        free = (p > 0.0) & (times > 0.0)
        p, times = p[free], times[free]
        n, mean, variance = round(float(times.sum())), times @ p, times @ (p * (1.0 - p))
        rounding = float(self.rounding.sum())
        if n <= LISTED and not self.half.any():
            rows = np.repeat(p, np.rint(times).astype(np.int64))
            first, pmf, lost = poisson_binomial(rows)
            lost += ROUNDING[0] + 2.0 * float(pmf.max()) * rounding + 8.0 * float(self.second.sum())
            return first, pmf, lost
        exponent = np.log(2.0 / NEGLIGIBLE)
        reach = exponent / 3.0 + np.sqrt(exponent**2 / 9.0 + 2.0 * exponent * variance)
        low, high = max(0, int(mean - reach)), min(n, int(mean + reach) + 1)
        width = fast_length(high - low + 1)
        omega = 2.0 * np.pi * np.arange(width // 2 + 1) / width
        omega = omega[variance * (1.0 - np.cos(omega)) < 45.0]
        shift = round(float(mean))
        logs = _logarithm(p, times, omega) - 1j * (mean - shift) * omega
        spectrum = np.zeros(width // 2 + 1, dtype=np.complex128)
        spectrum[: omega.size] = np.exp(logs)
        pmf = np.roll(irfft(spectrum, width), (shift - low) % width)[: high - low + 1]
        pmf = np.clip(pmf, 0.0, None)
        window = np.flatnonzero(pmf > NEGLIGIBLE)
        pmf = pmf[window[0] : window[-1] + 1]
        lost = 2.0 * NEGLIGIBLE + ROUNDING[0] + ROUNDING[1] * float(np.sqrt(n))
        lost += self._left(omega, np.abs(spectrum[: omega.size]), p)
        return low + int(window[0]), pmf, lost + 2.0 * float(pmf.max()) * rounding

    def _left(self, omega: FloatArray, modulus: FloatArray, p: FloatArray) -> float:
        """Bound what the rows may change in any tail probability, beyond their moments.

        With z = e^{iω} and u = (z − 1) / (1 − c + c z), log φ of a cell has an error of at most
        |u|⁴ fourth (1 − half |u|)⁻⁴ + |u|² second (1 − half |u|)⁻²; tails change by at most the
        root of Σ_ω |φ|² (exp ε − 1)². Where half |u| > ½, φ itself is below (5 half)³.
        """
        sine = np.sin(0.5 * omega) ** 2
        least = 1.0 - 4.0 * float((p * (1.0 - p)).max()) * sine  # of |1 − c + c z|², in any cell
        widest = float(self.half.max())
        near = (4.0 * widest) ** 2
        square = 4.0 * sine / np.maximum(least, max(near, 1e-12))
        error = 16.0 * square**2 * self.fourth.sum() + 4.0 * square * self.second.sum()
        change = modulus * np.expm1(np.minimum(error, 50.0))
        change += 2.0 * (least < near) * (5.0 * widest) ** 3
        return float(np.sqrt(2.0 * (change**2).sum()))


def _logarithm(p: FloatArray, times: FloatArray, omega: FloatArray) -> NDArray[np.complex128]:
    """Return Σ times · log(e^{ipω} (1 − p + p e^{−iω})), both parts without cancellation."""
    total = np.zeros(omega.size, dtype=np.complex128)
    at_once = max(1, AT_ONCE // max(1, omega.size))
    for first in range(0, p.size, at_once):
        x, weight = p[first : first + at_once, None], times[first : first + at_once]
        with np.errstate(divide="ignore"):  # of ½ at ω = π the modulus is 0
            modulus = 0.5 * np.log1p(-4.0 * x * (1.0 - x) * np.sin(0.5 * omega) ** 2)
        real = (1.0 - x) * np.cos(x * omega) + x * np.cos((1.0 - x) * omega)
        imaginary = (1.0 - x) * np.sin(x * omega) - x * np.sin((1.0 - x) * omega)
        total += weight @ modulus + 1j * (weight @ np.arctan2(imaginary, real))
    return total
