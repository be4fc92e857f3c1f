"""Smooth calibration error: residuals smoothed by a kernel whose width is the error itself."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import ClassVar

import numpy as np
from scipy.fft import dct
from scipy.sparse import csr_array

from caltest.predictions import FloatArray, Predictions
from caltest.problem import Problem, RowProblem
from caltest.statistics.base import Statistic, rows_of
from caltest.statistics.prepared import ResidualStatistic

#: Steps of the grids of [0, 1].
STEPS = 2**10, 2**12, 2**14, 2**16
#: Steps in the smallest width that a grid serves.
STEPS_PER_WIDTH = 10
#: Numbers on a grid that are looked at together.
AT_ONCE = 2**18
#: How near the error has to come to the width, and how many widths are tried for it.
TOLERANCE, MOST_WIDTHS = 1e-12, 30
#: Rows per unit of probability that are added to the density of a curve.
FLOOR = 1e-4


@dataclass(frozen=True)
class SmoothCurve:
    """A kernel-smoothed reliability curve at equally spaced probabilities, from 0 to 1.

    ``predicted`` are these, ``observed`` the smoothed frequency of the event there, predicted +
    smoothed residual: where there are next to no predictions it tends to ``predicted``, and it may
    leave [0, 1] by a little. ``density`` is that of the predictions, smoothed in the same way, of
    mean 1; all of shape (m,). ``width`` is the standard deviation of the kernel, and ``error`` the
    smooth calibration error: the width, unless that is the smallest that is tried.
    """

    predicted: FloatArray = field(repr=False)
    observed: FloatArray = field(repr=False)
    density: FloatArray = field(repr=False)
    width: float
    error: float


def smooth_curve(probs: object, labels: object = None, *, points: int = 200) -> SmoothCurve:
    """Return the curve whose distance from the diagonal :class:`SmoothECE` measures.

    It is evaluated at that many ``points``, equally spaced probabilities, for two classes.
    ``probs`` and ``labels`` are as in :meth:`Predictions.of`; the event is label 1, or class 0 of
    an induced problem.

    Examples
    --------
    >>> curve = smooth_curve([0.2, 0.4, 0.6, 0.8], [0, 1, 0, 1])
    >>> round(curve.width, 4), round(curve.error, 4)
    (0.1311, 0.1311)
    """
    problem = RowProblem.of(Predictions.of(probs, labels).labelled("smooth_curve").in_ratios())
    data = problem.predictions
    residuals = data.residuals[:, :1].T
    solution = SmoothECE().prepare(problem).solve(residuals)
    error, width = (float(value[0]) for value in solution)
    t = np.linspace(0.0, 1.0, points)
    smoother = KernelSmoother(problem.event(smooth_curve), data.weights, width, t)
    density = smoother.density
    return SmoothCurve(t, t + smoother(residuals)[0], density / density.mean(), width, error)


@dataclass(frozen=True, eq=False)
class SmoothResiduals(ResidualStatistic):
    """A smooth calibration error whose predictions are fixed: a function of the residuals.

    The value of inflated residuals is that of plain ones times √κ, as for a kernel of one width;
    the width itself follows the residuals.
    """

    p: FloatArray = field(repr=False)

    @cached_property
    def grids(self) -> tuple[_Grid, ...]:
        return tuple(_Grid(self.p, steps) for steps in STEPS)

    def values(self, outcomes: object, factor: float = 1.0) -> FloatArray:
        return np.asarray(factor**0.5 * self.of_residuals(*self.problem.residuals(outcomes)))

    def of_residuals(self, residuals: FloatArray, squares: FloatArray) -> FloatArray:
        return self.solve(residuals[:, :, 0])[0]

    def solve(self, residuals: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return errors and widths for residuals (B, n), weighted if rows are."""
        weights = self.data.weights
        mass = self.p.size if weights is None else weights.sum()
        error, width = np.ones(len(residuals)), np.ones(len(residuals))
        left = np.arange(len(residuals))
        # An error below the smallest width of a grid goes on to the next, which is finer.
        for grid in self.grids:
            finer = []
            for part in np.array_split(left, -(-left.size * grid.steps // AT_ONCE)):
                spectra = grid.spectra(residuals[part] / mass)
                width[part] = grid.least
                error[part] = grid.errors(spectra, width[part])
                wider = error[part] >= grid.least
                inside = part[wider]
                error[inside], width[inside] = grid.solve(spectra[wider], error[inside])
                finer.append(part[~wider])
            left = np.concatenate(finer)
            if not left.size:
                break
        return error, width


@dataclass(frozen=True, repr=False)
class SmoothECE(Statistic):
    """Smooth calibration error, for two classes: no bins, and no width to choose.

    Residuals p − y are smoothed over [0, 1] by a Gaussian kernel reflected at both ends, and

        smECE_σ = ∫ |Σ_i K_σ(t, p_i)(p_i − y_i)| dt / n,   0 ≤ t ≤ 1,
        K_σ(t, p) = Σ_m φ_σ(t − 2m − p) + φ_σ(t − 2m + p),   m = …, −1, 0, 1, …

    The value is the σ with smECE_σ = σ: the error at its own scale. There is one, as smECE_σ does
    not increase with σ. It bounds the distance to the nearest calibrated predictor from both sides,
    up to constants and a square (Błasiok & Nakkiran, ICLR 2024, arXiv:2309.12236). Rows of weight w
    count w times. ``ct.presets.relplot`` has the rounded number of the authors' package. The value
    is within 1e-7 of the formula. Widths below 10 / 2^16 = 0.00015 are not tried: instead of a
    smaller value comes smECE_σ at that σ, which is no larger. O(n + h m log m) for a value and for
    each further set of labels, with some h = 7 widths on grids of m = 1024 points, or up to 65536
    for widths below 0.01. In [0, 1].

    Examples
    --------
    >>> round(SmoothECE()([0.2, 0.4, 0.6, 0.8], [0, 1, 0, 1]), 4)
    0.1311
    """

    prepared: ClassVar[type[SmoothResiduals]] = SmoothResiduals

    def prepare(self, problem: Problem) -> SmoothResiduals:
        rows_of(problem, self, weights=True, labels=False)
        return self.prepared(problem, problem.event(self))


@dataclass(frozen=True, eq=False)
class KernelSmoother:
    """Σ w K(t, p) r / Σ w K(t, p) at some points t, for residuals w r and a kernel of one width."""

    p: FloatArray = field(repr=False)
    weights: FloatArray | None = field(repr=False)
    width: float
    at: FloatArray = field(repr=False)

    @cached_property
    def density(self) -> FloatArray:
        """Σ w K(t, p), for weights of mean 1."""
        w = np.ones_like(self.p) if self.weights is None else self.weights
        return self._smoothed(w[None, :])[0]

    @cached_property
    def _grid(self) -> _Grid:
        grids = [_Grid(self.p, steps) for steps in STEPS]
        return next((grid for grid in grids if grid.least <= self.width), grids[-1])

    @cached_property
    def _waves(self) -> FloatArray:
        """The smoothed cosines at the points t, shape (K, m)."""
        k = self._grid.frequencies[:, None]
        waves = np.cos(np.pi * k * self.at) * np.exp(-0.5 * (np.pi * self.width * k) ** 2)
        return np.asarray(np.where(k == 0, 0.5, 1.0) * waves)

    def _smoothed(self, values: FloatArray) -> FloatArray:
        mean = 1.0 if self.weights is None else self.weights.mean()
        return np.asarray(self._grid.spectra(values / mean) @ self._waves)

    def __call__(self, residuals: FloatArray) -> FloatArray:
        """Return the smoothed residuals (B, m) of weighted residuals (B, n)."""
        return self._smoothed(residuals) / (self.density + FLOOR)


@dataclass(frozen=True, eq=False)
class _Grid:
    """Equally spaced points of [0, 1], on which residuals are smoothed as heat spreads in a rod.

    With c_k = 2 Σ_i r_i cos(πk p_i), the smoothed residuals Σ_i K_σ(t, p_i) r_i are
    c_0 / 2 + Σ_k c_k exp(−(πkσ)² / 2) cos(πkt).
    """

    p: FloatArray
    steps: int

    @property
    def least(self) -> float:
        """The smallest width that it serves."""
        return STEPS_PER_WIDTH / self.steps

    @property
    def frequencies(self) -> FloatArray:
        """The k that are not smoothed away: exp(−(πk · least)² / 2) > 1e-14."""
        return np.arange(self.steps // 4 + 1.0)

    @cached_property
    def spread(self) -> csr_array:
        """Shares of the points in the rows, a cubic B-spline reflected at the ends: (n, steps + 1).

        Against its four neighbours, two would cost six digits.
        """
        n, place = self.p.size, self.p * self.steps
        cell = np.minimum(place.astype(np.int64), self.steps - 1)
        u = place - cell
        shares = ((1 - u) ** 3, 3 * u**3 - 6 * u**2 + 4, 3 * u + 3 * u**2 - 3 * u**3 + 1, u**3)
        point = np.abs(cell + np.arange(-1, 3)[:, None])
        point = self.steps - np.abs(self.steps - point)
        # The ends of the rod are their own mirror images.
        values = np.stack(shares) / 6 * np.where(point % self.steps == 0, 2.0, 1.0)
        rows = np.broadcast_to(np.arange(n), point.shape)
        shape = (n, self.steps + 1)
        return csr_array((values.ravel(), (rows.ravel(), point.ravel())), shape=shape)

    def spectra(self, values: FloatArray) -> FloatArray:
        """Return the c_k (B, K) of values (B, n)."""
        k = self.frequencies
        spectra = dct(np.ascontiguousarray(values @ self.spread), type=1)[:, : k.size]
        # The B-spline's own transform, sinc⁴, is divided out.
        return np.asarray(spectra / np.sinc(0.5 * k / self.steps) ** 4)

    def errors(self, spectra: FloatArray, width: FloatArray) -> FloatArray:
        """Return ∫ |Σ_i K(t, p_i) r_i| dt (B,), by the trapezoidal rule and what kinks add to it.

        The rule is exact for what is smoothed; where it crosses zero between two points, at the
        share θ of a step h, the first term of Euler & Maclaurin is h S (θ² − θ + 1/6), with S the
        sum of the two absolute values.
        """
        damped = spectra * np.exp(-0.5 * (np.pi * width[:, None] * self.frequencies) ** 2)
        smoothed = 0.5 * dct(damped, type=1, n=self.steps + 1)
        size, negative = np.abs(smoothed), np.signbit(smoothed)
        row, left = np.nonzero(negative[:, 1:] != negative[:, :-1])
        a, b = size[row, left], size[row, left + 1]
        kinks = (a + b) / 6 - a * b / np.maximum(a + b, np.finfo(float).tiny)
        total = size.sum(axis=1) - 0.5 * (size[:, 0] + size[:, -1])
        return np.asarray((total + np.bincount(row, kinks, len(size))) / self.steps)

    def solve(self, spectra: FloatArray, error: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return errors and widths that are equal, from the errors at the smallest width.

        The next width is where the power law through the last two errors meets the width. As
        errors do not increase with the width, what is sought lies between each width and its error.
        """
        width, slope = np.full(len(error), self.least), np.full(len(error), 0.5)
        error, low, high = error.copy(), width.copy(), np.minimum(error, 1.0)
        left = np.flatnonzero(np.abs(error - width) > TOLERANCE)
        for _ in range(MOST_WIDTHS):
            if not left.size:
                break
            x, y, b = np.log(width[left]), np.log(error[left]), slope[left]
            trial = np.exp((y + b * x) / (1 + b))
            least, most = low[left], high[left]
            between = (trial >= least) & (trial <= most)
            trial = np.where(between, trial, np.sqrt(least * most))
            value = np.maximum(self.errors(spectra[left], trial), np.finfo(float).tiny)
            step = np.log(trial) - x
            fall = np.divide(y - np.log(value), step, out=np.zeros_like(b), where=step != 0)
            slope[left], width[left], error[left] = np.clip(fall, 0.0, 10.0), trial, value
            low[left] = np.maximum(least, np.minimum(trial, value))
            high[left] = np.minimum(most, np.maximum(trial, value))
            left = left[np.abs(value - trial) > TOLERANCE]
        return error, width
