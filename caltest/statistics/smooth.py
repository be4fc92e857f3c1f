"""Smooth calibration errors: kernel smoothing (smECE), and local regression (ICI, E50, Emax).

:class:`SmoothECE` is the smooth error of Błasiok & Nakkiran (2024); :class:`ICI` and relatives
measure the distance to a lowess or loess curve; :class:`KernelSmoother` draws curves.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass, field, replace
from functools import cache, cached_property
from typing import ClassVar, Literal

import numpy as np
from scipy.fft import dct
from scipy.sparse import csr_array

from caltest._base import FloatArray, IntArray
from caltest._base.arrays import AnyArray, ComplexArray, number, one_of
from caltest.errors import StatisticError
from caltest.nulls.lanes import dense_kernel, lane_kernel
from caltest.read.arguments import read_arguments
from caltest.statistics.prepared import LabelStatistic, ResidualStatistic, Statistic, rows_of
from caltest.statistics.problem import Cells, Problem
from caltest.statistics.rows import RowProblem

#: Steps of the grids of [0, 1].
SMOOTH_STEPS = 2**10, 2**12, 2**14, 2**16


#: Steps in the smallest width that a grid serves.
STEPS_PER_WIDTH = 10


#: Numbers on a grid that are looked at together.
GRID_A_BATCH = 2**18


#: How near the error has to come to the width, and how many widths are tried for it.
WIDTH_TOLERANCE, MOST_WIDTHS = 1e-12, 30


#: Rows per unit of probability that are added to the density of a curve.
DENSITY_FLOOR = 1e-4


@dataclass(frozen=True)
class SmoothCurve:
    """Kernel-smoothed reliability curve at equally spaced probabilities, from 0 to 1.

    ``predicted`` are these probabilities, ``observed`` is predicted + smoothed residual: where
    there are almost no predictions it tends to ``predicted``, and it may leave [0, 1] by a little.
    ``density`` is the density of the predictions, smoothed in the same way, of mean 1; all have
    shape (m,). ``width`` is the standard deviation of the kernel, and ``error`` the smooth
    calibration error, equal to the width unless the width is the smallest that is tried.
    """

    predicted: FloatArray = field(repr=False)
    observed: FloatArray = field(repr=False)
    density: FloatArray = field(repr=False)
    width: float
    error: float


def smooth_curve(probs: object, labels: object = None, *, points: int = 200) -> SmoothCurve:
    """Return the curve whose distance from the diagonal :class:`SmoothECE` measures.

    The :class:`SmoothCurve` has ``predicted``, ``observed`` and ``density`` at that many
    ``points``, equally spaced probabilities from 0 to 1, and the ``width`` of its kernel. ``probs``
    and ``labels`` are as in :meth:`Predictions.of`, of two classes; the event is label 1, or class
    0 of an induced problem. StatisticError for more classes.

    Examples
    --------
    >>> curve = smooth_curve([0.2, 0.4, 0.6, 0.8], [0, 1, 0, 1])
    >>> round(curve.width, 4), round(curve.error, 4)
    (0.1311, 0.1311)
    """
    problem = RowProblem.of(
        read_arguments(probs, labels, rounded=False).labelled("smooth_curve").in_ratios()
    )
    data = problem.data
    residuals = data.residuals[:, :1].T
    solution = SmoothECE().prepare(problem).solve(residuals)
    error, width = (float(value[0]) for value in solution)
    t = np.linspace(0.0, 1.0, points)
    smoother = KernelSmoother(problem.event(smooth_curve), data.weights, width, t)
    density = smoother.density
    return SmoothCurve(t, t + smoother(residuals)[0], density / density.mean(), width, error)


@dataclass(frozen=True, eq=False)
class SmoothResiduals(ResidualStatistic):
    """Smooth calibration error with fixed predictions: a function of the residuals.

    ``p`` (n,) are the predictions of the event. Inflating the residuals by √κ multiplies the value
    by √κ, as for a kernel of fixed width; the width itself follows the residuals.
    """

    p: FloatArray = field(repr=False)

    @cached_property
    def grids(self) -> tuple[_Grid, ...]:
        return tuple(_Grid(self.p, steps) for steps in SMOOTH_STEPS)

    @property
    def counted(self) -> tuple[SmoothResiduals, ...]:  # type: ignore[override]
        return (self,)

    @cached_property
    def sum_cells(self) -> Cells:
        """Partition of the rows by distinct predictions, in increasing order.

        Neighbours in this order lie near each other on the grids.
        """
        return Cells.levels(self.problem)

    def lane_reader(self, cells: Cells, order: IntArray, residuals: bool) -> SmoothReader:
        w = np.ones(self.p.size) if self.problem.weight is None else self.problem.weight
        return SmoothReader(replace(self, p=self.p[order]), w[order], residuals)

    def values(self, outcomes: object, factor: float = 1.0) -> FloatArray:
        return np.asarray(factor**0.5 * self.of_residuals(*self.problem.residuals(outcomes)))

    def of_residuals(self, residuals: FloatArray, squares: FloatArray) -> FloatArray:
        return self.solve(residuals[:, :, 0])[0]

    def solve(self, residuals: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return (errors, widths), (B,) each: smooth calibration errors, and their kernel widths.

        ``residuals`` (B, n) are B sets of w (y − p), w the weights of the rows. An error equals its
        width, unless it is below the smallest width that is tried.
        """
        return self.solve_on_grids(lambda grid, part: grid.binned(residuals[part]), len(residuals))

    def solve_on_grids(
        self, binned: Callable[[_Grid, IntArray], FloatArray], count: int
    ) -> tuple[FloatArray, FloatArray]:
        """Return (errors, widths), (B,) each, for B = ``count`` sets of residuals.

        ``binned`` is a function of a grid (equally spaced points of [0, 1], with so many ``steps``)
        and the indices of b sets: it returns their residuals on the points of the grid, (b, steps +
        1). Errors are smooth calibration errors, widths the widths of their kernels.
        """
        weights = self.data.weights
        mass = self.p.size if weights is None else weights.sum()
        error, width = np.ones(count), np.ones(count)
        left = np.arange(count)
        # An error below the smallest width of a grid goes on to the next, which is finer.
        for grid in self.grids:
            finer = []
            for part in np.array_split(left, -(-left.size * grid.steps // GRID_A_BATCH)):
                spectra = grid.spectra(binned(grid, part) / mass)
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


@dataclass(frozen=True, eq=False)
class SmoothReader:
    """Reader of smooth errors from blocks of events, or of residuals W (Y − p).

    The predictions ``p`` of the ``statistic`` and ``weights`` (n,) are in the order of the blocks.
    A block (n, B) holds B sets; with ``residuals`` of weighted residuals, W the weight of a known
    outcome Y, otherwise of events, 0 and 1.
    """

    statistic: SmoothResiduals = field(repr=False)
    weights: FloatArray = field(repr=False)
    residuals: bool
    at_once: ClassVar[int] = 64

    def values(self, block: AnyArray, factor: float = 1.0) -> FloatArray:
        """Return the smooth errors (B,) of a block (n, B), residuals multiplied by √factor.

        The block holds B sets of events as 0 and 1, or of weighted residuals, rows in order of the
        predictions.
        """

        @cache
        def on(grid: _Grid) -> FloatArray:
            return self._binned(block, grid)

        solution = self.statistic.solve_on_grids(lambda grid, part: on(grid)[part], block.shape[1])
        return np.asarray(factor**0.5 * solution[0])

    def _binned(self, block: AnyArray, grid: _Grid) -> FloatArray:
        """Return the residuals of a block (n, B) on the points of a grid, (B, steps + 1).

        ``block`` holds B sets of events as 0 and 1, or of residuals W (Y − p), rows in order of the
        predictions. ``grid`` has equally spaced points of [0, 1]; a row is shared among the four
        points around its prediction.
        """
        cell, shares = grid.places
        sums = np.zeros((grid.steps + 3, block.shape[1]))
        _spread_out(block, cell, shares if self.residuals else self.weights * shares, sums)
        sums = grid.reflected(sums)
        if not self.residuals:
            sums -= grid.binned((self.weights * self.statistic.p)[None, :]).T
        return np.ascontiguousarray(sums.T)


@lane_kernel
def _spread_out(block, cell, shares, sums_out):  # type: ignore[no-untyped-def]
    # O(n) per lane: a row is spread over the four points around its cell.
    for i in range(cell.size):
        row, c = block[i], cell[i]
        one, two, three, four = sums_out[c], sums_out[c + 1], sums_out[c + 2], sums_out[c + 3]
        s1, s2, s3, s4 = shares[0, i], shares[1, i], shares[2, i], shares[3, i]
        for q in range(row.size):
            x = row[q]
            one[q] += s1 * x
            two[q] += s2 * x
            three[q] += s3 * x
            four[q] += s4 * x


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
    """Kernel smoother: Σ w K(t, p) r / Σ w K(t, p) at points t, for weighted residuals w r.

    Call it with residuals (B, n). ``p`` and ``weights``, None if all are equal, have shape (n,).
    The kernel K is Gaussian with standard deviation ``width``, reflected at 0 and 1; ``at`` (m,)
    are the points t.
    """

    p: FloatArray = field(repr=False)
    weights: FloatArray | None = field(repr=False)
    width: float
    at: FloatArray = field(repr=False)

    @cached_property
    def density(self) -> FloatArray:
        """Kernel density Σ w K(t, p) of the predictions p at m points t, (m,); w has mean 1.

        It is a sum over n rows, not divided by n.
        """
        w = np.ones_like(self.p) if self.weights is None else self.weights
        return self._smoothed(w[None, :])[0]

    @cached_property
    def _grid(self) -> _Grid:
        grids = [_Grid(self.p, steps) for steps in SMOOTH_STEPS]
        return next((grid for grid in grids if grid.least <= self.width), grids[-1])

    @cached_property
    def _waves(self) -> FloatArray:
        """Smoothed cosines cos(πkt) exp(−(πk · width)² / 2), (F, m): F frequencies, m points.

        Frequencies k are 0, 1, …, and t are the points of this smoother. The cosine of frequency 0
        is halved, as in a cosine series.
        """
        k = self._grid.frequencies[:, None]
        waves = np.cos(np.pi * k * self.at) * np.exp(-0.5 * (np.pi * self.width * k) ** 2)
        return np.asarray(np.where(k == 0, 0.5, 1.0) * waves)

    def _smoothed(self, values: FloatArray) -> FloatArray:
        mean = 1.0 if self.weights is None else self.weights.mean()
        grid = self._grid
        return np.asarray(grid.spectra(grid.binned(values / mean)) @ self._waves)

    def __call__(self, residuals: FloatArray) -> FloatArray:
        """Return the smoothed residuals at the m points, (B, m), for weighted residuals (B, n).

        ``residuals`` are B sets of w (y − p); the result is their kernel-weighted mean, in units of
        probability.
        """
        return self._smoothed(residuals) / (self.density + DENSITY_FLOOR)


@dataclass(frozen=True, eq=False)
class _Grid:
    """Grid of equally spaced points of [0, 1] on which residuals are smoothed by cosine transforms.

    With c_k = 2 Σ_i r_i cos(πk p_i), the smoothed residuals Σ_i K_σ(t, p_i) r_i are c_0 / 2 + Σ_k
    c_k exp(−(πkσ)² / 2) cos(πkt), with σ the width of the Gaussian kernel K_σ. ``p`` (n,) are the
    predictions, and the grid has ``steps`` intervals.
    """

    p: FloatArray
    steps: int

    @property
    def least(self) -> float:
        """Smallest kernel width that this grid serves, 10 steps of it, in units of probability."""
        return STEPS_PER_WIDTH / self.steps

    @property
    def frequencies(self) -> FloatArray:
        """Frequencies k = 0, 1, … of cosines cos(πkt) that smoothing leaves, floats (F,).

        For larger k a kernel of the smallest width multiplies them by less than 1e-14.
        """
        return np.arange(self.steps // 4 + 1.0)

    @cached_property
    def places(self) -> tuple[IntArray, FloatArray]:
        """(cells, shares): interval of each row, (n,), and shares of four points, (4, n).

        The intervals are steps of this grid of [0, 1]. A row at a prediction is shared among the
        four points around its interval, by a cubic B-spline; a line between two points would cost
        six digits.
        """
        place = self.p * self.steps
        cell = np.minimum(place.astype(np.int64), self.steps - 1)
        u = place - cell
        shares = ((1 - u) ** 3, 3 * u**3 - 6 * u**2 + 4, 3 * u + 3 * u**2 - 3 * u**3 + 1, u**3)
        return cell, np.stack(shares) / 6

    @cached_property
    def shares(self) -> csr_array:
        """Sparse matrix (n, steps + 3): the share of each row that each point of the grid gets.

        The columns are the points of this grid of [0, 1] from −1 to steps + 1, one beyond each end.
        """
        cell, shares = self.places
        n, points = cell.size, cell + np.arange(4)[:, None]
        rows = np.broadcast_to(np.arange(n), points.shape)
        entries = (shares.ravel(), (rows.ravel(), points.ravel()))
        return csr_array(entries, shape=(n, self.steps + 3))

    def reflected(self, sums: FloatArray) -> FloatArray:
        """Add the sums beyond both ends of the grid to their mirror images within it.

        ``sums`` (steps + 3, …) are at the points from −1 to steps + 1 of this grid, and are
        changed; the result (steps + 1, …), a view of them, has the points from 0 to steps, whose
        ends are doubled.
        """
        sums[2] += sums[0]
        sums[-3] += sums[-1]
        # The ends of the rod are their own mirror images.
        sums[1] *= 2.0
        sums[-2] *= 2.0
        return sums[1:-1]

    def binned(self, values: FloatArray) -> FloatArray:
        """Return ``values`` (B, n) of rows, added up on the points of the grid, (B, steps + 1).

        A row is shared among the four points around its prediction, reflected at 0 and 1.
        """
        return np.ascontiguousarray(self.reflected((values @ self.shares).T).T)

    def spectra(self, binned: FloatArray) -> FloatArray:
        """Return the cosine coefficients c_k = 2 Σ_i r_i cos(πk p_i) of B sets of values, (B, F).

        ``binned`` (B, steps + 1) are values r of rows, added up on the points of this grid. F is
        the number of frequencies k that smoothing leaves.
        """
        k = self.frequencies
        spectra = dct(binned, type=1)[:, : k.size]
        # The B-spline's own transform, sinc⁴, is divided out.
        return np.asarray(spectra / np.sinc(0.5 * k / self.steps) ** 4)

    def errors(
        self, spectra: FloatArray, width: FloatArray, compiled: bool | None = None
    ) -> FloatArray:
        """Return ∫ |Σ_i K(t, p_i) r_i| dt (B,), by the trapezoidal rule corrected at kinks.

        ``spectra`` (B, F) are cosine coefficients of B sets of residuals r at F frequencies,
        ``width`` (B,) the widths of the kernel K. The rule is exact for the smoothed function;
        where it crosses zero between two points, at the share θ of a step h, the first term of
        Euler & Maclaurin is h S (θ² − θ + 1/6), with S the sum of the two absolute values.
        ``compiled`` None stands for True if there are several spectra; the two ways differ in the
        last bit.
        """
        damped = spectra * np.exp(-0.5 * (np.pi * width[:, None] * self.frequencies) ** 2)
        smoothed = 0.5 * dct(damped, type=1, n=self.steps + 1)
        if len(smoothed) > 1 if compiled is None else compiled:
            totals = np.empty(len(smoothed))
            _integrate(smoothed, totals)
            return totals / self.steps
        # One set of residuals needs no compiled code, which takes half a second to load.
        size, negative = np.abs(smoothed), smoothed < 0.0
        row, left = np.nonzero(negative[:, 1:] != negative[:, :-1])
        a, b = size[row, left], size[row, left + 1]
        kinks = (a + b) / 6 - a * b / np.maximum(a + b, np.finfo(float).tiny)
        total = size.sum(axis=1) - 0.5 * (size[:, 0] + size[:, -1])
        return np.asarray((total + np.bincount(row, kinks, len(size))) / self.steps)

    def solve(self, spectra: FloatArray, error: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return (errors, widths), (B,) each, where smooth error and kernel width agree.

        ``spectra`` (B, F) are cosine coefficients of B sets of residuals at F frequencies,
        ``error`` (B,) the errors at the smallest width of this grid, where the search starts. The
        next width is where the power law through the last two errors meets the width. As errors do
        not increase with the width, the solution lies between each width and its error.
        """
        width, slope = np.full(len(error), self.least), np.full(len(error), 0.5)
        error, low, high = error.copy(), width.copy(), np.minimum(error, 1.0)
        left = np.flatnonzero(np.abs(error - width) > WIDTH_TOLERANCE)
        # One way for all: a value does not depend on how many are left beside it.
        compiled = len(error) > 1
        for _ in range(MOST_WIDTHS):
            if not left.size:
                break
            x, y, b = np.log(width[left]), np.log(error[left]), slope[left]
            trial = np.exp((y + b * x) / (1 + b))
            least, most = low[left], high[left]
            between = (trial >= least) & (trial <= most)
            trial = np.where(between, trial, np.sqrt(least * most))
            value = np.maximum(self.errors(spectra[left], trial, compiled), np.finfo(float).tiny)
            step = np.log(trial) - x
            fall = np.divide(y - np.log(value), step, out=np.zeros_like(b), where=step != 0)
            slope[left], width[left], error[left] = np.clip(fall, 0.0, 10.0), trial, value
            low[left] = np.maximum(least, np.minimum(trial, value))
            high[left] = np.minimum(most, np.maximum(trial, value))
            left = left[np.abs(value - trial) > WIDTH_TOLERANCE]
        return error, width


@dense_kernel
def _integrate(smoothed, totals_out):  # type: ignore[no-untyped-def]
    # Σ |f| with half of the ends, corrected where f crosses zero, for each row of f.
    last = smoothed.shape[1] - 1
    for r in range(smoothed.shape[0]):
        f = smoothed[r]
        total, crossed = 0.0, 0.0
        for j in range(last + 1):
            total += abs(f[j])
        for j in range(last):
            if (f[j] < 0.0) != (f[j + 1] < 0.0):
                a, b = abs(f[j]), abs(f[j + 1])
                crossed += (a + b) / 6.0 - a * b / (a + b)
        totals_out[r] = total - 0.5 * (abs(f[0]) + abs(f[last])) + crossed


# ------------------------------------------------------------------------------
# The smooth calibration error as relplot rounds it.


#: Widths are multiples of 2^−10: ten halvings of [0, 1].
HALVINGS = 10


#: Widths below this are not tried.
SMALLEST = 1e-3


#: Added by the published code to the density at every point.
RELPLOT_FLOOR = 1e-4


#: Points of the grid of all but the smallest widths.
COARSEST = 1001


@dataclass(frozen=True, eq=False)
class RelplotResiduals(SmoothResiduals):
    """Smooth ECE as relplot 1.0.3 computes it, a function of the residuals (B, n) of the labels.

    ``p`` (n,) are the predictions of the event. Values (B,) are errors at the kernel width, a
    multiple of 2⁻¹⁰, at which error and width agree.
    """

    counted: ClassVar[tuple[SmoothResiduals, ...]] = ()
    #: What the smoothed residuals of a width are divided by: the same for all labels.
    _masses: dict[float, float] = field(default_factory=dict, init=False, repr=False)

    def solve(self, residuals: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return (errors, widths), (B,) each: smooth calibration errors, and their kernel widths.

        ``residuals`` (B, n) are B sets of w (y − p), w the weights of the rows. The width at which
        error and width agree is found by ten bisections of [0, 1], as relplot does; the error is
        the one at that width.
        """
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
        """Return the smooth error at one kernel width, (B,), for B vectors of residuals.

        It is Σ_t |Σ_i K(t, p_i) r_i| / Σ_t Σ_i K(t, p_i) over a grid of points t, with K the
        Gaussian kernel of standard deviation ``width``. ``transforms`` (B, F) are Fourier
        transforms of the residuals r binned on the grid of that width.
        """
        t = np.linspace(0.0, 1.0, max(round(10 / width), 200))
        if width not in self._masses:
            w = self.data.weights
            mass = np.ones(self.p.size) if w is None else w / w.mean()
            ones = _transformed(self.p, mass[None, :], _grid_size(width))
            self._masses[width] = float((_smoothed(ones, width, t) + RELPLOT_FLOOR).sum())
        values: FloatArray = np.abs(_smoothed(transforms, width, t)).sum(axis=1)
        return values / self._masses[width]


@dataclass(frozen=True, repr=False)
class RelplotSmoothECE(SmoothECE):
    """The smooth ECE of relplot 1.0.3, for two classes.

    ``ct.presets.relplot`` says how it is rounded.

    It is :class:`SmoothECE` with the width found by bisection and the integral as a sum. O(n + h m
    log m) for a value, with h ≤ 10 widths on grids of m = 1001 to 5121 points.
    """

    prepared: ClassVar[type[SmoothResiduals]] = RelplotResiduals


def _grid_size(width: float) -> int:
    return max(2 * (COARSEST - 1), round(20 / width)) // 2 + 1


def _neighbours(x: FloatArray, size: int) -> tuple[IntArray, FloatArray]:
    """Return (left, share): grid point left of each x, integers (n,), and how far x is beyond.

    ``share`` (n,) is in [0, 1], relative to the next point. ``x`` (n,) are in [0, 1], and the grid
    has ``size`` equally spaced points of [0, 1].
    """
    place = x * (size - 1)
    left = np.minimum(place.astype(np.int64), size - 2)
    return left, place - left


def _transformed(p: FloatArray, values: FloatArray, size: int) -> ComplexArray:
    """Return Fourier transforms (B, size) of ``values`` (B, n), binned linearly on a grid.

    ``p`` (n,) are the predictions of the rows. The grid has ``size`` equally spaced points of [0,
    1] and is reflected at its ends, so that the kernel is.
    """
    left, share = _neighbours(p, size)
    grids = np.empty((len(values), 2 * (size - 1)))
    for grid, row in zip(grids, values, strict=True):
        moved = share * row
        grid[:size] = np.bincount(left, row - moved, size) + np.bincount(left + 1, moved, size)
    grids[:, size:] = grids[:, size - 2 : 0 : -1]
    return np.fft.rfft(grids)


@cache
def _kernel(width: float) -> ComplexArray:
    """Return the Fourier transform of the Gaussian kernel of this width, cut at a distance of ½.

    ``width`` is its standard deviation. The transform is complex, (m,) for the m points of the grid
    for this width, and of a grid that is reflected at its end. An even number of points has no
    middle; the published code then takes the point after it.
    """
    size = _grid_size(width)
    t = np.linspace(0.0, 1.0, size)
    weights = np.exp(-((t - 0.5) ** 2) / (2 * width**2)) / (np.sqrt(2 * np.pi) * width)
    period = np.zeros(2 * (size - 1))
    period[(np.arange(size) - size // 2) % period.size] = weights
    return np.fft.rfft(period)


def _smoothed(transforms: ComplexArray, width: float, t: FloatArray) -> FloatArray:
    """Return the smoothed values at the points ``t`` (m,), shape (B, m), from Fourier transforms.

    ``transforms`` (B, size) are of B vectors of values on the reflected grid for this width;
    ``width`` is the kernel's standard deviation.
    """
    values = np.fft.irfft(transforms * _kernel(width))
    left, share = _neighbours(t, _grid_size(width))
    # Taken row by row: sums over values[:, left] would depend on the other rows.
    below = np.take(values, left, axis=1)
    return below + share * (np.take(values, left + 1, axis=1) - below)


# ------------------------------------------------------------------------------
# Distances between predictions and a smooth calibration curve: ICI, E50, E90, Emax, ECI.


#: Label vectors that are smoothed side by side. No number depends on it.
ICI_AT_ONCE = 64


#: Rows that are multiplied by the weights of windows together: 32 kB of floats.
ROWS_OF_WINDOWS = 64


#: What is made of the distances: their mean, mean square, that relative to a constant prediction,
#: or a quantile.
Summary = Literal["mean", "square", "relative"] | float


#: The smoothers, and their shares of rows in a window.
SPANS = {"lowess": 2 / 3, "loess": 0.75}


@dataclass(frozen=True, eq=False)
class SmoothGaps(LabelStatistic):
    """Summary of |p − smooth curve(p)| over the rows, with the predictions fixed.

    The curve is linear in the outcomes. The matrix ``smoother`` (A, n) turns outcomes, sorted by
    prediction, into values of the curve at the A ``anchors``. For a loess curve it has shape (2A,
    n) and gives the slopes after the values. Weights of the rows are part of it. ``order`` (n,)
    sorts the rows by prediction, ``ordered`` (n,) are the sorted predictions, and ``summary`` turns
    the distances into one number: "mean", "square" for the mean square, "relative" for the mean
    square over the error of a constant prediction, or a number q for the q-quantile.
    """

    order: IntArray = field(repr=False)
    ordered: FloatArray = field(repr=False)
    anchors: FloatArray = field(repr=False)
    smoother: csr_array = field(repr=False)
    summary: Summary

    @property
    def counted(self) -> tuple[SmoothGaps, ...]:  # type: ignore[override]
        return (self,)

    @cached_property
    def sum_cells(self) -> Cells:
        """Partition of the rows by distinct predictions, in increasing order."""
        return Cells.levels(self.problem)

    def lane_reader(self, cells: Cells, order: IntArray, residuals: bool) -> GapReader:
        return GapReader(self)

    def smoothed(self, labels: IntArray) -> FloatArray:
        """Return the smoothed event frequency at each prediction, in increasing order, (n,).

        ``labels`` (n,) are the labels of the rows in the order of the data; 0 is the event.
        """
        return self._curves(labels[None, :])[0]

    def batch(self, labels: IntArray) -> FloatArray:
        starts = range(0, len(labels), ICI_AT_ONCE)
        parts = [labels[start : start + ICI_AT_ONCE] for start in starts]
        return np.concatenate([self._summaries(self._curves(some), some) for some in parts])

    def _curves(self, labels: IntArray) -> FloatArray:
        """Return the smooth curve at every prediction, (B, n), for label vectors (B, n).

        Label 0 is the event. Columns of the result are in increasing order of the predictions.
        Between anchors, the points where it is fitted, the curve is linear, or cubic for loess.
        """
        events = (np.take(labels, self.order, axis=1) == 0).T.astype(np.float64)
        fitted = self.smoother @ events
        if len(fitted) == self.anchors.size:
            return np.array([np.interp(self.ordered, self.anchors, f) for f in fitted.T])
        from scipy.interpolate import CubicHermiteSpline

        values, slopes = np.split(fitted, 2)
        return np.asarray(CubicHermiteSpline(self.anchors, values, slopes)(self.ordered).T)

    def pieces(self, fitted: FloatArray) -> FloatArray:
        """Return the curve between A anchors as cubics of the distance to the left one, (A, 4, B).

        ``fitted`` are values of B curves at the anchors, (A, B), or values and then slopes, (2A,
        B). The constant coefficient comes first; a line has zeros in the last two. The last anchor
        has only the constant.
        """
        n_anchors = self.anchors.size
        values, coefficients = fitted[:n_anchors], np.zeros((n_anchors, 4, fitted.shape[1]))
        coefficients[:, 0] = values
        if n_anchors == 1:
            return coefficients
        width = np.diff(self.anchors)[:, None]
        rise = np.diff(values, axis=0) / width
        coefficients[:-1, 1] = rise
        if len(fitted) > n_anchors:
            left, right = fitted[n_anchors:-1], fitted[n_anchors + 1 :]
            bend = (left + right - 2.0 * rise) / width
            coefficients[:-1, 1] = left
            coefficients[:-1, 2] = (rise - left) / width - bend
            coefficients[:-1, 3] = bend / width
        return coefficients

    def _summaries(self, curves: FloatArray, labels: IntArray) -> FloatArray:
        gaps = np.abs(curves - self.ordered)
        w = None if self.data.weights is None else self.data.weights[self.order]
        if isinstance(self.summary, float):
            return _row_quantiles(gaps, self.summary, w)
        if self.summary == "mean":
            return np.asarray(np.average(gaps, axis=1, weights=w))
        squares = np.average(gaps**2, axis=1, weights=w)
        frequencies = np.average(labels == 0, axis=1, weights=self.data.weights)
        return np.asarray(self.relative(squares, frequencies))

    def relative(self, squares: FloatArray, frequencies: FloatArray) -> FloatArray:
        """Return mean squares (B,), divided by the error of a constant prediction for "relative".

        ``squares`` (B,) are mean squared distances of predictions and curve, ``frequencies`` (B,)
        shares of events. The divisor is the mean of (p − frequency)². For the summary "square"
        ``squares`` are returned as they are.
        """
        if self.summary == "square":
            return squares
        w = None if self.data.weights is None else self.data.weights[self.order]
        mean = np.average(self.ordered, weights=w)
        spread = np.average((self.ordered - mean) ** 2, weights=w)
        return np.asarray(squares / ((frequencies - mean) ** 2 + spread))


@dataclass(frozen=True, eq=False)
class GapReader:
    """Reader of summaries of |p − smooth(p)| from blocks of events in order of the predictions.

    ``statistic``, :class:`SmoothGaps`, has the smoother and the summary. A block (n, B) holds B
    sets of events, 0 and 1.
    """

    statistic: SmoothGaps = field(repr=False)
    at_once: ClassVar[int] = ICI_AT_ONCE

    @cached_property
    def _weights(self) -> FloatArray:
        """Weights of the rows in order of their predictions, (n,), of sum 1.

        Without weights each is 1 / n.
        """
        gaps = self.statistic
        w = np.ones(gaps.order.size) if gaps.data.weights is None else gaps.data.weights
        return w[gaps.order] / w.sum()

    def values(self, block: AnyArray, factor: float = 1.0) -> FloatArray:
        """Return the values (B,) of the statistic for a block (n, B) of B sets of events, 0 and 1.

        Rows are in order of the predictions. ``factor`` is not used, as the curve needs labels and
        not scaled residuals.
        """
        gaps, summary = self.statistic, self.statistic.summary
        smoother, lanes = gaps.smoother, block.shape[1]
        fitted = np.zeros((smoother.shape[0], lanes))
        first = smoother.indices[smoother.indptr[:-1]].astype(np.int64)
        _fit_lanes(block, smoother.data, first, smoother.indptr.astype(np.int64), fitted)
        segments = np.searchsorted(gaps.anchors, gaps.ordered, side="right") - 1
        fixed = (gaps.ordered, gaps.anchors, segments, gaps.pieces(fitted))
        if isinstance(summary, float):
            found = np.empty((gaps.order.size, lanes))
            _read_gaps(*fixed, self._weights, 0, found)
            w = None if gaps.data.weights is None else self._weights
            return _row_quantiles(np.ascontiguousarray(found.T), summary, w)
        sums = np.zeros((1, lanes))
        _read_gaps(*fixed, self._weights, 1 if summary == "mean" else 2, sums)
        if summary == "mean":
            return sums[0]
        # As one window of all rows: BLAS would add them in an order that depends on the lanes.
        frequencies, ends = np.zeros((1, lanes)), np.array([0, gaps.order.size])
        _fit_lanes(block, self._weights, ends[:1], ends, frequencies)
        return gaps.relative(sums[0], frequencies[0])


@lane_kernel
def _fit_lanes(block, weights, first, starts, fitted_out):  # type: ignore[no-untyped-def]
    # O(nonzeros) per lane. Window a has the rows from first[a] on, and the weights
    # starts[a] : starts[a + 1]. Some rows become floats at a time, in the nearest cache, and each
    # window takes eight of them together; two targets in a loop would keep it from being vectors.
    n, lanes = block.shape
    some = np.empty((ROWS_OF_WINDOWS, lanes))
    for begin in range(0, n, ROWS_OF_WINDOWS):
        end = min(n, begin + ROWS_OF_WINDOWS)
        for i in range(begin, end):
            row, copy = block[i], some[i - begin]
            for q in range(lanes):
                copy[q] = row[q]
        for a in range(first.size):
            shift, target = starts[a] - first[a], fitted_out[a]
            i, last = max(begin, first[a]), min(end, starts[a + 1] - shift)
            while i + 8 <= last:
                at, j = shift + i, i - begin
                w0, w1, w2, w3 = weights[at], weights[at + 1], weights[at + 2], weights[at + 3]
                w4, w5, w6, w7 = weights[at + 4], weights[at + 5], weights[at + 6], weights[at + 7]
                x0, x1, x2, x3 = some[j], some[j + 1], some[j + 2], some[j + 3]
                x4, x5, x6, x7 = some[j + 4], some[j + 5], some[j + 6], some[j + 7]
                for q in range(lanes):
                    left = (w0 * x0[q] + w1 * x1[q]) + (w2 * x2[q] + w3 * x3[q])
                    right = (w4 * x4[q] + w5 * x5[q]) + (w6 * x6[q] + w7 * x7[q])
                    target[q] += left + right
                i += 8
            while i < last:
                x0, w0 = some[i - begin], weights[shift + i]
                for q in range(lanes):
                    target[q] += w0 * x0[q]
                i += 1


@lane_kernel
def _read_gaps(  # type: ignore[no-untyped-def]
    x, anchors, segment, pieces, weights, power, out
):
    # O(n) per lane: all gaps (n, B), or their weighted sum, or the sum of their squares, (1, B).
    for i in range(x.size):
        piece, at, p, w = pieces[segment[i]], x[i] - anchors[segment[i]], x[i], weights[i]
        constant, slope, bend, cube = piece[0], piece[1], piece[2], piece[3]
        target = out[i if power == 0 else 0]
        if power == 0:
            for q in range(target.size):
                target[q] = abs(constant[q] + at * (slope[q] + at * (bend[q] + at * cube[q])) - p)
        elif power == 1:
            for q in range(target.size):
                gap = constant[q] + at * (slope[q] + at * (bend[q] + at * cube[q])) - p
                target[q] += w * abs(gap)
        else:
            for q in range(target.size):
                gap = constant[q] + at * (slope[q] + at * (bend[q] + at * cube[q])) - p
                target[q] += w * gap * gap


def _row_quantiles(rows: FloatArray, q: float, w: FloatArray | None) -> FloatArray:
    """Return the q-quantile of each row of the matrix ``rows`` (B, n), shape (B,), q in [0, 1].

    With weights ``w`` (n,) of the columns it is the weighted quantile of Akinshin (2023, type 7);
    None weighs them alike.
    """
    if w is None or q == 1.0:
        return np.asarray(np.quantile(rows, q, axis=1))
    n, order = w.sum() ** 2 / (w**2).sum(), np.argsort(rows, axis=1)
    shares = np.cumsum(w[order], axis=1) / w.sum()
    part = np.diff(np.clip(n * shares - q * (n - 1.0), 0.0, 1.0), axis=1, prepend=0.0)
    return np.asarray((np.take_along_axis(rows, order, axis=1) * part).sum(axis=1))


@dataclass(frozen=True, repr=False)
class _SmoothGaps(Statistic):
    """Base class of ICI, E50, E90, Emax and ECI, with the options of the smooth curve.

    ``curve`` is "lowess" or "loess", ``span`` the share of rows in a window, by default 2/3 and
    0.75. ``delta`` is the distance within which lowess values are interpolated, by default 1 % of
    the range of the predictions; with "loess" it raises StatisticError.
    """

    _: KW_ONLY
    curve: Literal["lowess", "loess"] = "lowess"
    span: float | None = None
    delta: float | None = None
    summary: ClassVar[Summary] = "mean"
    of_known_rows: ClassVar[bool] = True
    essential: ClassVar[int] = 0

    def __post_init__(self) -> None:
        one_of("curve", self.curve, SPANS)
        if self.span is not None:
            number("span", self.span, 0.0, 1.0, "(]")
        if self.delta is not None:
            number("delta", self.delta, 0.0, 1.0, "[]")
        if self.delta is not None and self.curve == "loess":
            raise StatisticError(f"delta belongs to curve='lowess': leave out delta={self.delta!r}")

    def prepare(self, problem: Problem) -> SmoothGaps:
        data, p = rows_of(problem, self, weights=True), problem.event(self)
        order = np.argsort(p, kind="stable")
        x, span = p[order], self.span or SPANS[self.curve]
        w = np.ones(p.size) if data.weights is None else data.weights[order]
        if self.curve == "loess":
            # As R's loess: cells of up to a fifth of a window stay whole; 1e-5 is for rounding.
            anchors = _vertices(x, int(0.2 * span * p.size))
            nearest = min(p.size, max(3, int(span * p.size + 1e-5)))
            pairs = [_parabola(x, w, float(at), nearest) for at in anchors]
            windows = [(first, both[j]) for j in (0, 1) for first, both in pairs]
        else:
            delta = 0.01 * (x[-1] - x[0]) if self.delta is None else self.delta
            anchors = _anchors(np.unique(x), delta)
            # As R's lowess.c rounds the span.
            nearest = min(p.size, max(2, int(span * p.size + 1e-7)))
            windows = [_local_line(x, w, float(at), nearest) for at in anchors]
        from scipy.sparse import csr_array

        starts = np.append(0, np.cumsum([weights.size for _, weights in windows]))
        columns = np.concatenate([np.arange(i, i + v.size, dtype=np.int32) for i, v in windows])
        rows = (np.concatenate([weights for _, weights in windows]), columns, starts)
        smoother = csr_array(rows, shape=(len(windows), p.size))
        return self.of(SmoothGaps(problem, order, x, anchors, smoother, self.summary))

    def of(self, gaps: SmoothGaps) -> SmoothGaps:
        """Return the fitted curve ``gaps`` with the summary of this statistic.

        ``gaps``, a :class:`SmoothGaps`, is the curve with the predictions fixed, and may have
        another summary, which turns the distances |p − curve(p)| into one number, such as their
        median. The fit is shared, so that ICI, E50, E90, Emax and ECI cost one fit.
        """
        return replace(gaps, summary=self.summary)


def _anchors(distinct: FloatArray, delta: float) -> FloatArray:
    """Return the points at which local lines are fitted, an increasing subset of ``distinct``.

    ``distinct`` (m,) are the distinct predictions, increasing. Each point is the furthest value
    within ``delta`` of the one before, or the next value. The ends are always among them, so that
    nothing is extrapolated.
    """
    chosen = [0]
    while chosen[-1] < distinct.size - 1:
        reach = int(np.searchsorted(distinct, distinct[chosen[-1]] + delta, side="right")) - 1
        chosen.append(max(chosen[-1] + 1, reach))
    return distinct[chosen]


def _vertices(x: FloatArray, most: int) -> FloatArray:
    """Return the points at which local parabolas are fitted, (A,), in increasing order.

    ``x`` (n,) are predictions in increasing order. Their range, widened by 0.5 % at both ends, is
    cut at medians until each cell has at most ``most`` rows; the points are the ends of cells. A
    cut moves to the nearest rank that separates no equal predictions.
    """
    # The box is widened a little, as in dloess: no prediction lies on its edge.
    margin = 0.005 * max(x[-1] - x[0], 1e-10 * x[-1] + 1e-30)
    low, high = x[0] - margin, x[-1] + margin
    knots, cells = {low, high}, [(0, x.size - 1, low, high)]
    while cells:
        first, last, left, right = cells.pop()
        if last - first + 1 <= most:
            continue
        middle = (first + last) // 2
        ranks = np.flatnonzero(x[first:last] < x[first + 1 : last + 1]) + first
        ranks = ranks[np.abs(ranks - middle) < last - middle]
        cut = ranks[np.lexsort((-ranks, np.abs(ranks - middle)))[0]] if ranks.size else middle
        if x[cut] not in (left, right):
            knots.add(x[cut])
            cells += [(first, cut, left, x[cut]), (cut + 1, last, x[cut], right)]
    return np.array(sorted(knots))


def _parabola(x: FloatArray, w: FloatArray, at: float, nearest: int) -> tuple[int, FloatArray]:
    """Return (first, weights): the local parabola at a point as a linear map of the outcomes.

    ``first`` is the index of the first row in its window, ``weights`` (2, m) give, times the
    outcomes of the m rows from there on, the value and the slope at the point. ``x`` (n,) are
    predictions, increasing, ``w`` (n,) weights of the rows, ``at`` the point, ``nearest`` the
    number of rows in the window.
    """
    first, weight = _window(x, w, at, nearest)
    gap = x[first : first + weight.size] - at
    root = np.sqrt(weight)[:, None]
    columns = root * np.column_stack([np.ones(gap.size), gap, gap**2])
    # dloess scales columns alike before it leaves out small singular values.
    size = np.sqrt((columns**2).sum(axis=0))
    size[size == 0.0] = 1.0
    solution = np.linalg.pinv(columns / size, rcond=100 * np.finfo(float).eps)
    return first, solution[:2] / size[:2, None] * root.T


def _local_line(x: FloatArray, w: FloatArray, at: float, nearest: int) -> tuple[int, FloatArray]:
    """Return (first, weights): the local line at a point as a linear map of the outcomes.

    ``first`` is the index of the first row in its window, ``weights`` (m,) times the outcomes of
    the m rows from there on are its value at the point. ``x`` (n,) are predictions, increasing,
    ``w`` (n,) weights of the rows, ``at`` the point, ``nearest`` the number of rows in the window.
    """
    first, weight = _window(x, w, at, nearest)
    near = x[first : first + weight.size]
    mean = float(weight @ near)
    gap = near - mean
    square = float(weight @ gap**2)
    # Else too narrow for a slope; equal predictions have the spread of their rounded mean.
    if np.sqrt(square) > max(0.001 * (x[-1] - x[0]), 1e-14 * x[-1]):
        weight *= 1.0 + gap * (at - mean) / square
    return first, weight


def _window(x: FloatArray, w: FloatArray, at: float, nearest: int) -> tuple[int, FloatArray]:
    """Return (first, weights): first row of a window, and the weights of its m rows, (m,).

    ``x`` (n,) are increasing predictions of rows with weights ``w`` (n,). A weight is w times a
    tricube function of the distance to the point ``at``, and all sum to 1; the window reaches to
    the ``nearest``-th nearest row. ``first`` is an index of ``x``.
    """
    # The nearest rows are neighbours, of which the furthest ends the window.
    middle = int(np.searchsorted(x, at))
    low, high = max(0, middle - nearest), min(middle, x.size - nearest) + 1
    half = float(np.maximum(at - x[low:high], x[low + nearest - 1 :][: high - low] - at).min())
    first, last = np.searchsorted(x, [at - half, at + half], side="left")
    last = max(last, np.searchsorted(x, at, side="right"))
    near = x[first:last]
    share = np.minimum(np.abs(near - at) / half, 1.0) if half else np.zeros(near.size)
    rest = 1.0 - share * share * share
    weight = rest * rest * rest
    if not weight.any():  # all of them at one distance
        rows = np.flatnonzero(np.abs(x - at) <= half)
        first, weight = rows[0], np.ones(rows.size)
    weight = weight * w[first : first + weight.size]
    return int(first), weight / weight.sum()


class ICI(_SmoothGaps):
    """Integrated calibration index, the mean distance of the predictions from a smooth curve.

    ICI = mean_i |p_i − ŝ(p_i)|, for two classes (Austin & Steyerberg, Statistics in Medicine 38,
    2019), ŝ the lowess curve of the outcomes over the predictions (Cleveland, JASA 74, 1979,
    without robustness iterations): at an anchor x a straight line is fitted with weights
    (1 − (|p_i − x| / h)³)³, h the distance to the ⌊span · n⌋-th nearest prediction; between anchors
    the curve is interpolated. All predictions nearer than h take part, so that ties do not depend
    on their order. The curve may leave [0, 1]. With weights fits count w_i times these weights, as
    R's loess does, and means w_i; quantiles are Akinshin's (2023, arXiv:2304.07265). Windows and
    anchors count rows. Biased upward, like all distances to a fitted curve. O(A n) once for A ≈ 100
    anchors, with some 0.5 kB a row in memory; then O(A · span · n) for a set of labels.

    Parameters
    ----------
    curve : {"lowess", "loess"}, default "lowess"
        ``"lowess"`` as above is ``lowess(p, y, iter=0)`` of R and the smoother of ``val.prob`` in
        rms, up to 1e-10 (R cuts weights off at 0.999 h); with ``span=0.5, delta=0.001`` calzone's.
        ``"loess"`` is ``loess(y ~ p)`` of R: local parabolas at some ten anchors, which cut the
        rows at medians, and cubics with their values and slopes between (Cleveland & Grosse,
        Statistics and Computing 1, 1991).
    span : float, optional
        Share of the predictions in a window; by default 2/3, and 0.75 for ``"loess"``.
    delta : float, optional
        Lowess anchors are the furthest predictions within ``delta`` of each other; by default 1 %
        of the range of the predictions.

    Examples
    --------
    >>> forecast, rained = np.repeat([0.2, 0.8], 5), np.array([0, 0, 0, 0, 1, 1, 1, 1, 1, 1])
    >>> round(ICI()(forecast, rained), 6)
    0.1
    """


class E50(_SmoothGaps):
    """Median distance of the predictions from a smooth curve, for two classes.

    The median over rows of |p_i − ŝ(p_i)|, ŝ the lowess or loess curve of the outcomes over the
    predictions, in [0, 1] or a little above. Parameters ``curve``, ``span`` and ``delta`` and the
    cost are as in :class:`ICI`, which takes the mean.
    """

    summary = 0.5


class E90(_SmoothGaps):
    """90 % quantile of the distances of the predictions from a smooth curve, for two classes.

    The quantile over rows of |p_i − ŝ(p_i)|, ŝ the lowess or loess curve of the outcomes over the
    predictions, in [0, 1] or a little above. Parameters ``curve``, ``span`` and ``delta`` and the
    cost are as in :class:`ICI`, which takes the mean.
    """

    summary = 0.9


class Emax(_SmoothGaps):
    """Largest distance of a prediction from a smooth curve, for two classes.

    The largest |p_i − ŝ(p_i)| over rows, ŝ the lowess or loess curve of the outcomes over the
    predictions, in [0, 1] or a little above. Parameters ``curve``, ``span`` and ``delta`` and the
    cost are as in :class:`ICI`, which takes the mean.
    """

    summary = 1.0


@dataclass(frozen=True, repr=False)
class ECI(_SmoothGaps):
    """Estimated calibration index, the mean squared distance of the predictions from a curve.

    ECI = Σ_i (p_i − ŝ(p_i))² / Σ_i (p_i − ȳ)², ŝ a smooth curve of the outcomes as for
    :class:`ICI`, whose parameters it has: 0 for predictions on the curve, 1 for a curve that is
    flat at the share ȳ of events (Van Calster et al. 2025, with ``curve="loess"``); StatisticError
    when all predictions are equal. ``relative=False`` leaves out the distance of a constant
    prediction: 100 times that is the ECI of the R package pmcalibration.

    Examples
    --------
    >>> forecast, rained = np.repeat([0.2, 0.8], 5), np.array([0, 0, 0, 0, 1, 1, 1, 1, 1, 1])
    >>> round(ECI()(forecast, rained), 6), round(ECI(relative=False)(forecast, rained), 6)
    (0.2, 0.02)
    """

    relative: bool = True

    def of(self, gaps: SmoothGaps) -> SmoothGaps:
        if self.relative and not np.ptp(gaps.ordered):
            raise StatisticError(
                f"{self!r} compares with a constant prediction, but all predictions are equal: "
                "use ECI(relative=False)"
            )
        return replace(gaps, summary="relative" if self.relative else "square")
