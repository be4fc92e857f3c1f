"""The smooth calibration error as relplot rounds it."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cache
from typing import ClassVar

import numpy as np

from caltest._base.arrays import ComplexArray
from caltest.predictions import FloatArray, IntArray
from caltest.statistics.smooth import SmoothECE, SmoothResiduals

#: Widths are multiples of 2^−10: ten halvings of [0, 1].
HALVINGS = 10
#: Widths below this are not tried.
SMALLEST = 1e-3
#: Added by the published code to the density at every point.
FLOOR = 1e-4
#: Points of the grid of all but the smallest widths.
COARSEST = 1001


@dataclass(frozen=True, eq=False)
class RelplotResiduals(SmoothResiduals):
    """The smooth ECE of relplot whose predictions are fixed: a function of the residuals."""

    #: What the smoothed residuals of a width are divided by: the same for all labels.
    _masses: dict[float, float] = field(default_factory=dict, init=False, repr=False)

    def solve(self, residuals: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return errors and widths for residuals (B, n), weighted if rows are, by bisection."""
        if self.data.weights is not None:
            residuals = residuals / self.data.weights.mean()
        low, width = np.zeros(len(residuals)), np.ones(len(residuals))
        error = np.full(len(residuals), -1.0)
        coarse = _transformed(self.p, residuals, COARSEST)
        for _ in range(HALVINGS):
            middle = 0.5 * (low + width)
            value = np.full(len(residuals), np.inf)
            # Sets of outcomes whose bisections are at one width share its grid.
            for w in np.unique(middle[middle >= SMALLEST]):
                rows, size = middle == w, _grid_size(w)
                common = size == COARSEST
                transforms = coarse[rows] if common else _transformed(self.p, residuals[rows], size)
                value[rows] = self.errors(w, transforms)
            wider = middle < value
            low, width = np.where(wider, middle, low), np.where(wider, width, middle)
            error = np.where(wider, error, value)
        left = error < 0.0  # the error exceeds every width that was tried
        if left.any():
            error[left] = self.errors(1.0, coarse[left])
        return error, width

    def errors(self, width: float, transforms: ComplexArray) -> FloatArray:
        """Return Σ_t |Σ_i K(t, p_i) r_i| / Σ_t Σ_i K(t, p_i) on a grid of points t."""
        t = np.linspace(0.0, 1.0, max(round(10 / width), 200))
        if width not in self._masses:
            w = self.data.weights
            mass = np.ones(self.p.size) if w is None else w / w.mean()
            ones = _transformed(self.p, mass[None, :], _grid_size(width))
            self._masses[width] = float((_smoothed(ones, width, t) + FLOOR).sum())
        values: FloatArray = np.abs(_smoothed(transforms, width, t)).sum(axis=1)
        return values / self._masses[width]


@dataclass(frozen=True, repr=False)
class RelplotSmoothECE(SmoothECE):
    """The smooth ECE of relplot 1.0.3: see ``ct.presets.relplot`` for how it is rounded.

    O(n + h m log m) for a value, with h ≤ 10 widths on grids of m = 1001 to 5121 points.
    """

    prepared: ClassVar[type[SmoothResiduals]] = RelplotResiduals


def _grid_size(width: float) -> int:
    return max(2 * (COARSEST - 1), round(20 / width)) // 2 + 1


def _neighbours(x: FloatArray, size: int) -> tuple[IntArray, FloatArray]:
    """Return the grid point to the left of x, and how far x lies towards the next."""
    place = x * (size - 1)
    left = np.minimum(place.astype(np.int64), size - 2)
    return left, place - left


def _transformed(p: FloatArray, values: FloatArray, size: int) -> ComplexArray:
    """Split values of shape (B, n) between the neighbours of p; reflect, transform each row."""
    left, share = _neighbours(p, size)
    grids = np.empty((len(values), 2 * (size - 1)))
    for grid, row in zip(grids, values, strict=True):
        moved = share * row
        grid[:size] = np.bincount(left, row - moved, size) + np.bincount(left + 1, moved, size)
    grids[:, size:] = grids[:, size - 2 : 0 : -1]
    return np.fft.rfft(grids)


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


def _smoothed(transforms: ComplexArray, width: float, t: FloatArray) -> FloatArray:
    """Return the smoothed values at the points t, shape (B, len(t))."""
    values = np.fft.irfft(transforms * _kernel(width))
    left, share = _neighbours(t, _grid_size(width))
    # Taken row by row: sums of what values[:, left] gives would depend on the other rows.
    below = np.take(values, left, axis=1)
    return below + share * (np.take(values, left + 1, axis=1) - below)
