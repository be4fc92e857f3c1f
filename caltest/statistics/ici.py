"""Distances between predictions and a smooth calibration curve: ICI, E50, E90, Emax."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass, field
from itertools import pairwise
from typing import ClassVar

import numpy as np

from caltest._base.checks import number
from caltest._base.compiled import kernel
from caltest.predictions import FloatArray, IntArray, Predictions
from caltest.statistics.prepared import Prepared, Statistic, event

#: Label vectors that are smoothed side by side. No number depends on it.
LANES = 8


@dataclass(frozen=True, eq=False)
class LowessGaps(Prepared):
    """A summary of |p − smooth(p)| with the predictions fixed.

    The curve is linear in the outcomes: at anchor j, the outcomes in increasing order from row
    ``first[j]`` on have the weights ``weights[starts[j]:starts[j + 1]]``.
    """

    order: IntArray = field(repr=False)
    ordered: FloatArray = field(repr=False)
    anchors: FloatArray = field(repr=False)
    first: IntArray = field(repr=False)
    starts: IntArray = field(repr=False)
    weights: FloatArray = field(repr=False)
    quantile: float | None

    def curve(self, labels: IntArray) -> FloatArray:
        """Return the smoothed frequency of the event at each prediction, in increasing order."""
        events = (labels[self.order] == 0).astype(np.float64)
        windows = zip(self.first, pairwise(self.starts), strict=True)
        fitted = [self.weights[a:b] @ events[i : i + b - a] for i, (a, b) in windows]
        return np.interp(self.ordered, self.anchors, fitted)

    def __call__(self, labels: IntArray) -> float:
        return float(self._summaries(self.curve(labels)[None, :])[0])

    def batch(self, labels: IntArray) -> FloatArray:
        """Return the summaries for label vectors of shape (B, n), eight at a time, compiled."""
        curves, happened = np.empty(labels.shape), np.zeros((self.data.n, LANES))
        fitted = np.empty((self.first.size, LANES))
        for start in range(0, len(labels), LANES):
            some = labels[start : start + LANES]
            happened[:, : len(some)] = (np.take(some, self.order, axis=1) == 0).T
            _fit_lines(happened, self.first, self.starts, self.weights, fitted)
            for curve, values in zip(curves[start:], fitted.T, strict=False):
                curve[:] = np.interp(self.ordered, self.anchors, values)
        return self._summaries(curves)

    def _summaries(self, curves: FloatArray) -> FloatArray:
        gaps = np.abs(curves - self.ordered)
        if self.quantile is None:
            return np.asarray(gaps.mean(axis=1))
        return np.asarray(np.quantile(gaps, self.quantile, axis=1))


@kernel
def _fit_lines(happened, first, starts, weights, fitted_out):  # type: ignore[no-untyped-def]
    # Σ w y at every anchor, for eight label vectors side by side: a weight is read once for all.
    for j in range(first.size):
        shift = first[j] - starts[j]
        s0 = s1 = s2 = s3 = s4 = s5 = s6 = s7 = 0.0
        for i in range(starts[j], starts[j + 1]):
            w, y = weights[i], happened[i + shift]
            s0, s1, s2, s3 = s0 + w * y[0], s1 + w * y[1], s2 + w * y[2], s3 + w * y[3]
            s4, s5, s6, s7 = s4 + w * y[4], s5 + w * y[5], s6 + w * y[6], s7 + w * y[7]
        fitted_out[j] = np.array([s0, s1, s2, s3, s4, s5, s6, s7])


@dataclass(frozen=True, repr=False)
class _SmoothGaps(Statistic):
    """What ICI, E50, E90 and Emax share: the smoother."""

    _: KW_ONLY
    span: float = 2 / 3
    delta: float | None = None
    quantile: ClassVar[float | None] = None
    essential: ClassVar[int] = 0

    def __post_init__(self) -> None:
        number("span", self.span, 0.0, 1.0, "(]")
        if self.delta is not None:
            number("delta", self.delta, 0.0, 1.0, "[]")

    def given(self, data: Predictions) -> LowessGaps:
        """Fix the predictions: sort them and find the windows of the smoother."""
        p = event(data, self)
        order = np.argsort(p, kind="stable")
        x = p[order]
        delta = 0.01 * (x[-1] - x[0]) if self.delta is None else self.delta
        anchors = _anchors(np.unique(x), delta)
        nearest = min(p.size, max(2, int(self.span * p.size + 1e-7)))
        firsts, weights = zip(*(_window(x, float(at), nearest) for at in anchors), strict=True)
        starts = np.append(0, np.cumsum([w.size for w in weights]))
        windows = (np.array(firsts), starts, np.concatenate(weights))
        return LowessGaps(data, order, x, anchors, *windows, self.quantile)


def _anchors(distinct: FloatArray, delta: float) -> FloatArray:
    """Return where lines are fitted: the furthest value within ``delta`` of the last, or the next.

    The ends are always among them, so that nothing is extrapolated.
    """
    chosen = [0]
    while chosen[-1] < distinct.size - 1:
        reach = int(np.searchsorted(distinct, distinct[chosen[-1]] + delta, side="right")) - 1
        chosen.append(max(chosen[-1] + 1, reach))
    return distinct[chosen]


def _window(x: FloatArray, at: float, nearest: int) -> tuple[int, FloatArray]:
    """Return the first row that a local line at one point uses, and the weights of the outcomes."""
    half = float(np.partition(np.abs(x - at), nearest - 1)[nearest - 1])
    first, last = np.searchsorted(x, [at - half, at + half], side="left")
    last = max(last, np.searchsorted(x, at, side="right"))
    near = x[first:last]
    distance = np.abs(near - at)
    weight = (1.0 - np.minimum(distance / half, 1.0) ** 3) ** 3 if half else np.ones(near.size)
    weight /= weight.sum()
    mean = float(weight @ near)
    gap = near - mean
    square = float(weight @ gap**2)
    # Else too narrow for a slope; equal predictions have the spread of their rounded mean.
    if np.sqrt(square) > max(0.001 * (x[-1] - x[0]), 1e-14 * x[-1]):
        weight *= 1.0 + gap * (at - mean) / square
    return int(first), weight


class ICI(_SmoothGaps):
    """Integrated calibration index, the mean distance of the predictions from a smooth curve.

    ICI = mean_i |p_i − ŝ(p_i)|, ŝ the lowess curve of the outcomes over the predictions (Cleveland
    1979, without robustness iterations): at an anchor x a straight line is fitted with weights
    (1 − (|p_i − x| / h)³)³, h the distance to the ⌊span · n⌋-th nearest prediction; between anchors
    the curve is interpolated. All predictions nearer than h take part, so that ties do not depend
    on their order. The curve may leave [0, 1]. :class:`E50`, :class:`E90` and :class:`Emax` are the
    median, the 90 % quantile and the maximum of the same distances.

    Parameters
    ----------
    span : float, default 2/3
        Share of the predictions in a window.
    delta : float, optional
        Anchors are the furthest predictions within ``delta`` of each other; by default 1 % of the
        range of the predictions. With both defaults this is ``lowess(p, y, iter=0)`` of R, the
        smoother of ``val.prob`` in the package rms, up to 1e-10 (R cuts weights off at 0.999 h);
        ``span=0.5, delta=0.001`` is calzone's.
        Austin & Steyerberg use R's ``loess`` instead, local parabolas with span 0.75.

    Raises
    ------
    StatisticError
        For more than two classes, or a span outside (0, 1].

    Notes
    -----
    O(A n) once, with A ≈ 100 anchors by default (at most twice as many), and A · span · n numbers
    in memory, some 0.5 kB a row; then O(A · span · n) for a set of labels. Biased upward, like all
    distances to a fitted curve: see the null mean.

    References
    ----------
    Austin & Steyerberg (2019), "The Integrated Calibration Index (ICI) and related metrics for
    quantifying the calibration of logistic regression models", Statistics in Medicine 38. Cleveland
    (1979), "Robust locally weighted regression and smoothing scatterplots", JASA 74.

    Examples
    --------
    >>> forecast, rained = np.repeat([0.2, 0.8], 5), np.array([0, 0, 0, 0, 1, 1, 1, 1, 1, 1])
    >>> round(ICI()(forecast, rained), 6)
    0.1
    """


class E50(_SmoothGaps):
    """Median distance of the predictions from a smooth curve; see :class:`ICI`."""

    quantile = 0.5


class E90(_SmoothGaps):
    """90 % quantile of the distances of the predictions from a smooth curve; see :class:`ICI`."""

    quantile = 0.9


class Emax(_SmoothGaps):
    """Largest distance of a prediction from a smooth curve; see :class:`ICI`."""

    quantile = 1.0
