"""Laws of counts: Poisson-binomial probabilities, and the interval of one probability."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
from numpy.fft import irfft, rfft
from numpy.typing import ArrayLike

from caltest._base.arrays import ComplexArray, FloatArray

#: Probability that may be left outside a window, per cell.
NEGLIGIBLE = 1e-17
#: Rounding allowed for in the law of a cell: a constant, and a factor of the root of its size
#: (measured: at most 1.1e-14 up to 10^4 rows and 1.6e-14 up to 10^6).
ROUNDING = (2e-14, 5e-17)
#: Rows multiplied out directly; Chebyshev interpolation takes over above.
DIRECT = 256
#: Bounds of the groups: rounding grows with the width of a group times its size.
GROUPS = (1 / 64, 1 / 4, 3 / 4, 63 / 64)
#: Chebyshev nodes for a group of rows with similar predictions.
NODES = 32
#: Factors of lengths that transform fast.
ODD = tuple(3**i * 5**j for i in range(20) for j in range(14))


def poisson_binomial(p: FloatArray) -> tuple[int, FloatArray, float]:
    """Return the law of the number of successes in independent trials of chances ``p`` (n,).

    The first count, the probabilities of it and the next ones (others are negligible), and a bound
    on the error of every tail probability: mass outside the window, wrapped mass, and rounding. Up
    to 64 trials by recursion, beyond through the characteristic function on the window of counts
    that Bernstein's inequality leaves: blocks of 16 trials are multiplied out, groups of more than
    256 with similar p enter through Chebyshev interpolation of log(1 − p + p e^{−iω}) in p.
    O(n + W log W), W the width of the window, about 18 standard deviations.
    """
    certain = int((p >= 1.0).sum())
    p = p[(p > 0.0) & (p < 1.0)]
    if p.size <= 64:
        return certain, _recursion(p[None, :])[0], 0.0
    mean, variance = float(p.sum()), float((p * (1.0 - p)).sum())
    exponent = np.log(2.0 / NEGLIGIBLE)
    half = exponent / 3.0 + np.sqrt(exponent**2 / 9.0 + 2.0 * exponent * variance)
    low, high = max(0, int(mean - half)), min(p.size, int(mean + half) + 1)
    width = fast_length(high - low + 1)
    spectrum, origin = _spectrum(p, width, variance)
    pmf = np.roll(irfft(spectrum, width), (origin - low) % width)[: high - low + 1].clip(0.0)
    likely = np.flatnonzero(pmf > NEGLIGIBLE)
    pmf = pmf[likely[0] : likely[-1] + 1]
    lost = 2.0 * NEGLIGIBLE + ROUNDING[0] + ROUNDING[1] * float(np.sqrt(p.size))
    return certain + low + int(likely[0]), pmf, lost


@cache
def fast_length(size: int) -> int:
    """Return the smallest length from ``size`` on whose prime factors are 2, 3 and 5."""
    odd = (factor for factor in ODD if factor < 2 * size)
    return min(factor << (-(-size // factor) - 1).bit_length() for factor in odd)


def _recursion(p: FloatArray) -> FloatArray:
    """Laws of many short cells at once: row i holds the law of the trials ``p[i]``."""
    pmf = np.zeros((p.shape[0], p.shape[1] + 1))
    pmf[:, 0] = 1.0
    for j in range(p.shape[1]):
        success = p[:, j, None]
        grown = pmf[:, : j + 1] * success
        pmf[:, : j + 1] *= 1.0 - success
        pmf[:, 1 : j + 2] += grown
    return pmf


def _spectrum(p: FloatArray, width: int, variance: float) -> tuple[ComplexArray, int]:
    """Σ_k P(k + origin) e^{−iωk} at the frequencies of a real FFT of length ``width``."""
    omega = 2.0 * np.pi * np.arange(width // 2 + 1) / width
    spectrum = np.zeros(omega.size, dtype=np.complex128)
    # Its modulus is at most exp(−V (1 − cos ω)): beyond that nothing is left to compute.
    alive = int((variance * (1.0 - np.cos(omega)) < 45.0).sum())
    spectrum[:alive] = 1.0
    origin = 0
    similar = np.searchsorted(GROUPS, p)
    for g in np.unique(similar):
        group = p[similar == g]
        if group.size > DIRECT:
            failures = group[0] > 0.75  # count these: their chance is exact
            factor, shift = _interpolated(1.0 - group if failures else group, omega[:alive])
            spectrum[:alive] *= np.conj(factor) if failures else factor
            origin += group.size - shift if failures else shift
        else:
            padded = np.zeros(-(-group.size // 16) * 16)
            padded[: group.size] = group
            blocks = _recursion(padded.reshape(-1, 16))
            wrapped = np.zeros((len(blocks), width))
            for start in range(0, blocks.shape[1], width):
                piece = blocks[:, start : start + width]
                wrapped[:, : piece.shape[1]] += piece
            spectrum[:alive] *= np.multiply.reduce(rfft(wrapped, axis=1)[:, :alive], axis=0)
    return spectrum, origin


def _interpolated(p: FloatArray, omega: FloatArray) -> tuple[ComplexArray, int]:
    """Product over rows of 1 − p + p e^{−iω} as Π_c (1 − x_c + x_c e^{−iω})^{w_c}, x_c the nodes.

    The weights w_c of this interpolation of the logarithm follow from the Chebyshev moments of p.
    The factor e^{−iω·shift}, which would cost digits, is left out and the shift returned.
    """
    low, high = float(p.min()), float(p.max())
    if high == low:
        nodes, weights = np.array([low]), np.array([float(p.size)])
    else:
        angles = np.pi * (np.arange(NODES) + 0.5) / NODES
        nodes = low + 0.5 * (high - low) * (1.0 + np.cos(angles))
        t = np.clip((2.0 * p - (low + high)) / (high - low), -1.0, 1.0)
        moments = np.empty(NODES)
        before, current = np.ones_like(t), t
        moments[0], moments[1] = 0.5 * p.size, t.sum()
        for k in range(2, NODES):
            before, current = current, 2.0 * t * current - before
            moments[k] = current.sum()
        weights = 2.0 / NODES * np.cos(np.outer(angles, np.arange(NODES))) @ moments
    # The logarithm of e^{ixω}(1 − x + x e^{−iω}), both parts written without cancellation.
    x = nodes[:, None]
    modulus = 0.5 * np.log1p(-4.0 * x * (1.0 - x) * np.sin(0.5 * omega) ** 2)
    real = (1.0 - x) * np.cos(x * omega) + x * np.cos((1.0 - x) * omega)
    imaginary = (1.0 - x) * np.sin(x * omega) - x * np.sin((1.0 - x) * omega)
    centred = weights @ (modulus + 1j * np.arctan2(imaginary, real))
    mean = float(p.sum())
    shift = round(mean)
    return np.exp(centred - 1j * (mean - shift) * omega), shift


def clopper_pearson(
    successes: ArrayLike, trials: ArrayLike, level: float = 0.99
) -> tuple[Any, Any]:
    """Return the Clopper–Pearson interval of a probability; numbers may be effective ones."""
    from scipy.special import betaincinv

    s, n = np.asarray(successes, dtype=np.float64), np.asarray(trials, dtype=np.float64)
    tail = (1.0 - level) / 2.0
    low = np.where(s > 0, betaincinv(np.where(s > 0, s, 1.0), n - s + 1.0, tail), 0.0)
    high = np.where(s < n, betaincinv(s + 1.0, np.where(s < n, n - s, 1.0), 1.0 - tail), 1.0)
    return (float(low), float(high)) if low.ndim == 0 else (low, high)
