"""Distances between predictions and a smooth calibration curve: ICI, E50, E90, Emax, ECI."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass, field, replace
from typing import TYPE_CHECKING, ClassVar, Literal

import numpy as np

from caltest._base.checks import number, one_of
from caltest.errors import StatisticError
from caltest.predictions import FloatArray, IntArray
from caltest.problem import Problem
from caltest.statistics.base import Statistic, rows_of
from caltest.statistics.prepared import LabelStatistic

if TYPE_CHECKING:
    from scipy.sparse import csr_array

#: Label vectors that are smoothed side by side. No number depends on it.
AT_ONCE = 64
#: What is made of the distances: their mean, mean square, that relative to a constant prediction,
#: or a quantile.
Summary = Literal["mean", "square", "relative"] | float
#: The smoothers, and their shares of rows in a window.
SPANS = {"lowess": 2 / 3, "loess": 0.75}


@dataclass(frozen=True, eq=False)
class SmoothGaps(LabelStatistic):
    """A summary of |p − smooth(p)| with the predictions fixed.

    The curve is linear in the outcomes: ``smoother`` (A, n) makes of these, in increasing order of
    the predictions, the values at the anchors, and of a loess curve (2A, n) the slopes after them.
    Weights of the rows are part of it.
    """

    order: IntArray = field(repr=False)
    ordered: FloatArray = field(repr=False)
    anchors: FloatArray = field(repr=False)
    smoother: csr_array = field(repr=False)
    summary: Summary

    def curve(self, labels: IntArray) -> FloatArray:
        """Return the smoothed frequency of the event at each prediction, in increasing order."""
        return self._curves(labels[None, :])[0]

    def batch(self, labels: IntArray) -> FloatArray:
        starts = range(0, len(labels), AT_ONCE)
        parts = [labels[start : start + AT_ONCE] for start in starts]
        return np.concatenate([self._summaries(self._curves(some), some) for some in parts])

    def _curves(self, labels: IntArray) -> FloatArray:
        """Return curves at every prediction, (B, n): lines, or cubics with slopes."""
        events = (np.take(labels, self.order, axis=1) == 0).T.astype(np.float64)
        fitted = self.smoother @ events
        if len(fitted) == self.anchors.size:
            return np.array([np.interp(self.ordered, self.anchors, f) for f in fitted.T])
        from scipy.interpolate import CubicHermiteSpline

        values, slopes = np.split(fitted, 2)
        return np.asarray(CubicHermiteSpline(self.anchors, values, slopes)(self.ordered).T)

    def _summaries(self, curves: FloatArray, labels: IntArray) -> FloatArray:
        gaps = np.abs(curves - self.ordered)
        w = None if self.data.weights is None else self.data.weights[self.order]
        if isinstance(self.summary, float):
            return _quantiles(gaps, self.summary, w)
        if self.summary == "mean":
            return np.asarray(np.average(gaps, axis=1, weights=w))
        squares = np.average(gaps**2, axis=1, weights=w)
        if self.summary == "square":
            return np.asarray(squares)
        mean = np.average(self.ordered, weights=w)
        constant = np.average(labels == 0, axis=1, weights=self.data.weights) - mean
        spread = np.average((self.ordered - mean) ** 2, weights=w)
        return np.asarray(squares / (constant**2 + spread))


def _quantiles(rows: FloatArray, q: float, w: FloatArray | None) -> FloatArray:
    """Return the q-quantile of each row; with weights as Akinshin (2023, type 7) does."""
    if w is None or q == 1.0:
        return np.asarray(np.quantile(rows, q, axis=1))
    n, order = w.sum() ** 2 / (w**2).sum(), np.argsort(rows, axis=1)
    shares = np.cumsum(w[order], axis=1) / w.sum()
    part = np.diff(np.clip(n * shares - q * (n - 1.0), 0.0, 1.0), axis=1, prepend=0.0)
    return np.asarray((np.take_along_axis(rows, order, axis=1) * part).sum(axis=1))


@dataclass(frozen=True, repr=False)
class _SmoothGaps(Statistic):
    """What ICI, E50, E90, Emax and ECI share: the smoother."""

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
            windows = [_line(x, w, float(at), nearest) for at in anchors]
        from scipy.sparse import csr_array

        starts = np.append(0, np.cumsum([weights.size for _, weights in windows]))
        columns = np.concatenate([np.arange(i, i + v.size, dtype=np.int32) for i, v in windows])
        rows = (np.concatenate([weights for _, weights in windows]), columns, starts)
        smoother = csr_array(rows, shape=(len(windows), p.size))
        return self.of(SmoothGaps(problem, order, x, anchors, smoother, self.summary))

    def of(self, gaps: SmoothGaps) -> SmoothGaps:
        """Return this summary of a curve that is fitted."""
        return replace(gaps, summary=self.summary)


def _anchors(distinct: FloatArray, delta: float) -> FloatArray:
    """Return where lines are fitted: the furthest value within ``delta`` of the last, or the next.

    The ends are always among them, so that nothing is extrapolated.
    """
    chosen = [0]
    while chosen[-1] < distinct.size - 1:
        reach = int(np.searchsorted(distinct, distinct[chosen[-1]] + delta, side="right")) - 1
        chosen.append(max(chosen[-1] + 1, reach))
    return distinct[chosen]


def _vertices(x: FloatArray, most: int) -> FloatArray:
    """Return where parabolas are fitted: cuts at medians until a cell has ``most`` rows, and ends.

    The cut moves to the nearest rank that separates no equal predictions, if there is one.
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
    """Return the first row that a local parabola uses, and the weights of value and slope."""
    first, weight = _window(x, w, at, nearest)
    gap = x[first : first + weight.size] - at
    root = np.sqrt(weight)[:, None]
    columns = root * np.column_stack([np.ones(gap.size), gap, gap**2])
    # dloess scales columns alike before it leaves out small singular values.
    size = np.sqrt((columns**2).sum(axis=0))
    size[size == 0.0] = 1.0
    solution = np.linalg.pinv(columns / size, rcond=100 * np.finfo(float).eps)
    return first, solution[:2] / size[:2, None] * root.T


def _line(x: FloatArray, w: FloatArray, at: float, nearest: int) -> tuple[int, FloatArray]:
    """Return the first row that a local line at one point uses, and the weights of the outcomes."""
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
    """Return the first of the nearest rows, and their weights, w times what falls with distance."""
    half = float(np.partition(np.abs(x - at), nearest - 1)[nearest - 1])
    first, last = np.searchsorted(x, [at - half, at + half], side="left")
    last = max(last, np.searchsorted(x, at, side="right"))
    near = x[first:last]
    distance = np.abs(near - at)
    weight = (1.0 - np.minimum(distance / half, 1.0) ** 3) ** 3 if half else np.ones(near.size)
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
    """Median distance of the predictions from a smooth curve; see :class:`ICI`."""

    summary = 0.5


class E90(_SmoothGaps):
    """90 % quantile of the distances of the predictions from a smooth curve; see :class:`ICI`."""

    summary = 0.9


class Emax(_SmoothGaps):
    """Largest distance of a prediction from a smooth curve; see :class:`ICI`."""

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
