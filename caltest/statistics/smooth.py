"""Smooth calibration error: residuals smoothed by a kernel whose width is the error itself."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from caltest._numba import kernel
from caltest.predictions import BoolArray, FloatArray, IntArray
from caltest.statistics.lanes.events import EventRedraws
from caltest.statistics.problem import OfLabels, as_problem, event

ComplexArray = NDArray[np.complex128]

#: Widths are multiples of 2^−10: ten halvings of [0, 1].
HALVINGS = 10
#: Widths below this are not tried.
SMALLEST = 1e-3
#: Added by the published code to the density at every point.
FLOOR = 1e-4


@dataclass(frozen=True)
class SmoothCurve:
    """A kernel-smoothed reliability curve.

    Attributes
    ----------
    predicted : ndarray of shape (m,)
        Equally spaced probabilities of the event, from 0 to 1.
    observed : ndarray of shape (m,)
        The smoothed frequency of the event there: predicted + smoothed residual. Where there are
        next to no predictions it tends to ``predicted``; it may leave [0, 1] by a little.
    density : ndarray of shape (m,)
        The density of the predictions, smoothed in the same way; its mean over the points is 1.
    width : float
        Standard deviation of the kernel.
    error : float
        The smooth calibration error.
    """

    predicted: FloatArray = field(repr=False)
    observed: FloatArray = field(repr=False)
    density: FloatArray = field(repr=False)
    width: float
    error: float


def smooth_curve(probs: Any, labels: Any, *, points: int = 200) -> SmoothCurve:
    """Return the curve whose distance from the diagonal the smooth calibration error measures.

    Parameters
    ----------
    probs : array_like of shape (n, 2) or (n,)
        Class 0 is the event; a 1-D array is the probability of label 1.
    labels : array_like of shape (n,)
        Observed labels.
    points : int, default 200
        Where to evaluate: that many equally spaced probabilities.

    Raises
    ------
    StatisticError
        For more than two classes.

    References
    ----------
    Błasiok & Nakkiran, "Smooth ECE: principled reliability diagrams via kernel smoothing", ICLR
    2024; as in the authors' package relplot.

    Examples
    --------
    >>> curve = smooth_curve([0.2, 0.4, 0.6, 0.8], [0, 1, 0, 1])
    >>> curve.width, round(curve.error, 4)
    (0.1318359375, 0.1299)
    """
    rows, codes = as_problem(probs, labels)
    fixed = SmoothECE().given(rows)
    error, width = fixed.solve(fixed.p - (codes == 0))
    t = np.linspace(0.0, 1.0, points)
    residual, density = (
        _smoothed(width, _on_grid(fixed.p, weights, _grid_size(width)), t)
        for weights in (fixed.p - (codes == 0), np.ones_like(fixed.p))
    )
    return SmoothCurve(t, t - residual / (density + FLOOR), density / density.mean(), width, error)


@dataclass(frozen=True, eq=False)
class Residuals:
    """A smooth calibration error whose predictions are fixed: a function of the labels.

    Attributes
    ----------
    p : ndarray of shape (n,)
        Probability of the event.
    """

    p: FloatArray = field(repr=False)
    #: What the smoothed residuals of a width are divided by: the same for all labels.
    _masses: dict[float, float] = field(default_factory=dict, init=False, repr=False)

    def __call__(self, labels: IntArray) -> float:
        return self.solve(self.p - (labels == 0))[0]

    def values(self, events: BoolArray) -> FloatArray:
        """Return the errors for events of shape (B, n)."""
        return np.array([self.solve(self.p - row)[0] for row in events])

    def redraws(self, probs: FloatArray) -> EventRedraws:
        """Return the null under redrawn labels."""
        return EventRedraws.of(np.arange(self.p.size), probs, self.values)

    def solve(self, residuals: FloatArray) -> tuple[float, float]:
        """Return the error and the width of the kernel, by bisection."""
        grids: dict[int, ComplexArray] = {}
        low, width, error = 0.0, 1.0, -1.0
        for _ in range(HALVINGS):
            middle = 0.5 * (low + width)
            value = self._error(middle, residuals, grids) if middle >= SMALLEST else np.inf
            if middle < value:
                low = middle
            else:
                width, error = middle, value
        return (self._error(1.0, residuals, grids) if error < 0.0 else error), width

    def _error(self, width: float, residuals: FloatArray, grids: dict[int, ComplexArray]) -> float:
        """Return Σ_t |Σ_i K(t, p_i) r_i| / Σ_t Σ_i K(t, p_i) on a grid of points t."""
        size = _grid_size(width)
        if size not in grids:
            grids[size] = np.fft.rfft(_mirrored(_on_grid(self.p, residuals, size)))
        if width not in self._masses:
            t = _points(width)
            density = _smoothed(width, _on_grid(self.p, np.ones_like(self.p), size), t)
            self._masses[width] = float((density + FLOOR).sum())
        smoothed = _interpolated(np.fft.irfft(grids[size] * _kernel(width)), size, _points(width))
        return float(np.abs(smoothed).sum()) / self._masses[width]


@dataclass(frozen=True, repr=False)
class SmoothECE(OfLabels):
    """Smooth calibration error, for two classes: no bins, and no width to choose.

    Residuals p − y are smoothed over [0, 1] with a Gaussian kernel reflected at the ends, and

        smECE_σ = ∫ |Σ_i K_σ(t, p_i)(p_i − y_i)| dt / n.

    The value is smECE_σ at the smallest width with smECE_σ ≤ σ: the error at its own scale. It
    bounds the distance to the nearest calibrated predictor from both sides, up to constants and a
    square (Błasiok & Nakkiran 2024). Everything that the definition leaves open follows the
    authors' package relplot 1.0.3: a multiple of 2^−10 as width, data split between the two
    neighbours in a grid of max(2000, 20 / σ) / 2 + 1 points, an integral over max(200, 10 / σ)
    points, 10^−4 added to the density.

    Raises
    ------
    StatisticError
        For more than two classes.

    Notes
    -----
    O(n + h m log m) for a value and for each further set of labels, with h ≤ 10 widths tried on
    grids of m = 1001 to 5121 points. The range is [0, 1]. The width is found anew for every redrawn
    set of labels. There is no classical law: labels are redrawn.

    References
    ----------
    Błasiok & Nakkiran, "Smooth ECE: principled reliability diagrams via kernel smoothing", ICLR
    2024, arXiv:2309.12236.

    Examples
    --------
    >>> round(SmoothECE()([0.2, 0.4, 0.6, 0.8], [0, 1, 0, 1]), 4)
    0.1299
    """

    def given(self, probs: FloatArray) -> Residuals:
        """Fix the predictions, and leave a function of the labels."""
        return Residuals(event(probs, "SmoothECE()"))


def _grid_size(width: float) -> int:
    return max(2000, round(20 / width)) // 2 + 1


@cache
def _points(width: float) -> FloatArray:
    return np.linspace(0.0, 1.0, max(round(10 / width), 200))


def _on_grid(p: FloatArray, weights: FloatArray, size: int) -> FloatArray:
    """Split every weight between the two neighbours of p in a grid of ``size`` points."""
    grid = np.zeros(size)
    _split(p, weights, grid)
    return grid


@kernel
def _split(p, weights, grid_out):  # type: ignore[no-untyped-def]
    steps = grid_out.size - 1
    for i in range(p.size):
        place = p[i] * steps
        cell = min(np.int64(place), steps - 1)
        share = place - cell
        grid_out[cell] += (1.0 - share) * weights[i]
        grid_out[cell + 1] += share * weights[i]


def _mirrored(values: FloatArray) -> FloatArray:
    """Return one period of the values reflected at both ends."""
    return np.concatenate([values, values[-2:0:-1]])


@cache
def _kernel(width: float) -> ComplexArray:
    """Return the Fourier transform of the kernel, cut at a distance of ½.

    An even number of points has no middle; the published code then takes the point after it.
    """
    size = _grid_size(width)
    t = np.linspace(0.0, 1.0, size)
    weights = np.exp(-((t - 0.5) ** 2) / (2 * width**2)) / (np.sqrt(2 * np.pi) * width)
    period = np.zeros(2 * (size - 1))
    period[(np.arange(size) - size // 2) % period.size] = weights
    return np.fft.rfft(period)


def _interpolated(values: FloatArray, size: int, t: FloatArray) -> FloatArray:
    return np.interp(t * (size - 1), np.arange(size), values[:size])


def _smoothed(width: float, grid: FloatArray, t: FloatArray) -> FloatArray:
    """Return the smoothed values at the points t."""
    transform = np.fft.rfft(_mirrored(grid)) * _kernel(width)
    return _interpolated(np.fft.irfft(transform), grid.size, t)
