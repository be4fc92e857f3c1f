"""Distances between predictions and a smooth calibration curve: ICI, E50, E90, Emax."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from caltest._numba import kernel
from caltest.errors import StatisticError
from caltest.predictions import FloatArray, IntArray
from caltest.statistics.problem import as_problem, event


@kernel
def _anchor_windows(x, anchors, nearest, first_out, last_out, lines_out):  # type: ignore[no-untyped-def]
    # O(n) per anchor. lines_out: half-width, Σw, weighted mean, and 1 / Σw(x − mean)², or 0 where
    # the window is too narrow for a slope.
    n = x.size
    narrow = (0.001 * (x[n - 1] - x[0])) ** 2
    left = 0
    for a in range(anchors.size):
        at = anchors[a]
        while left + nearest < n and at - x[left] > x[left + nearest] - at:
            left += 1
        half = max(at - x[left], x[left + nearest - 1] - at)
        first, last = left, left + nearest
        while first > 0 and at - x[first - 1] <= half:
            first -= 1
        while last < n and x[last] - at <= half:
            last += 1
        total, mean, square = 0.0, 0.0, 0.0
        for passed in range(2):
            for i in range(first, last):
                d = abs(x[i] - at)
                if d > 0.999 * half:
                    w = 1.0 if half == 0.0 else 0.0
                elif d <= 0.001 * half:
                    w = 1.0
                else:
                    u = d / half
                    u = 1.0 - u * u * u
                    w = u * u * u
                if passed == 0:
                    total += w
                    mean += w * x[i]
                else:
                    square += w * (x[i] - mean) ** 2
            if passed == 0:
                mean /= total
        first_out[a], last_out[a] = first, last
        lines_out[a, 0], lines_out[a, 1], lines_out[a, 2] = half, total, mean
        lines_out[a, 3] = 1.0 / square if square / total > narrow else 0.0


@kernel
def _local_lines(x, labels, order, anchors, first, last, lines, fitted_out):  # type: ignore[no-untyped-def]
    # O(n span) per anchor: the line's value at the anchor is a weighted count of the events.
    for a in range(anchors.size):
        at, half, total, mean, slope = anchors[a], lines[a, 0], lines[a, 1], lines[a, 2], lines[a, 3]
        value = 0.0
        for i in range(first[a], last[a]):
            if labels[order[i]] == 0:
                d = abs(x[i] - at)
                if d > 0.999 * half:
                    w = 1.0 if half == 0.0 else 0.0
                elif d <= 0.001 * half:
                    w = 1.0
                else:
                    u = d / half
                    u = 1.0 - u * u * u
                    w = u * u * u
                value += w * (1.0 / total + slope * (at - mean) * (x[i] - mean))
        fitted_out[a] = value


@dataclass(frozen=True, eq=False)
class LowessGaps:
    """A summary of |p − smooth(p)| with the predictions fixed."""

    order: IntArray = field(repr=False)
    ordered: FloatArray = field(repr=False)
    anchors: FloatArray = field(repr=False)
    windows: tuple[IntArray, IntArray, FloatArray] = field(repr=False)
    quantile: float | None

    def curve(self, labels: IntArray) -> FloatArray:
        """Return the smoothed frequency of the event at each prediction, in increasing order."""
        fitted = np.empty(self.anchors.size)
        _local_lines(self.ordered, labels, self.order, self.anchors, *self.windows, fitted)
        return np.interp(self.ordered, self.anchors, fitted)

    def __call__(self, labels: IntArray) -> float:
        gaps = np.abs(self.curve(labels) - self.ordered)
        return float(gaps.mean() if self.quantile is None else np.quantile(gaps, self.quantile))


@dataclass(frozen=True)
class _SmoothGaps:
    """What ICI, E50, E90 and Emax share: the smoother."""

    span: float = 2 / 3
    delta: float | None = None
    quantile: ClassVar[float | None] = None

    def __post_init__(self) -> None:
        if not 0.0 < self.span <= 1.0:
            raise StatisticError(f"span must lie in (0, 1], not {self.span!r}")
        if self.delta is not None and not 0.0 <= self.delta:
            raise StatisticError(f"delta must be at least 0, not {self.delta!r}")

    def __call__(self, probs: FloatArray, labels: IntArray) -> float:
        rows, codes = as_problem(probs, labels)
        return self.given(rows)(codes)

    def given(self, probs: FloatArray) -> LowessGaps:
        """Fix the predictions: sort them and find the windows of the smoother."""
        p = event(probs, repr(self))
        order = np.argsort(p, kind="stable")
        x = p[order]
        delta = 0.01 * (x[-1] - x[0]) if self.delta is None else self.delta
        anchors = _anchors(np.unique(x), delta)
        nearest = min(p.size, max(2, int(self.span * p.size + 1e-7)))
        first, last = np.empty((2, anchors.size), dtype=np.int64)
        lines = np.empty((anchors.size, 4))
        _anchor_windows(x, anchors, nearest, first, last, lines)
        return LowessGaps(order, x, anchors, (first, last, lines), self.quantile)

    def __repr__(self) -> str:
        shown = [] if self.span == 2 / 3 else [f"span={self.span!r}"]
        shown += [] if self.delta is None else [f"delta={self.delta!r}"]
        return f"{type(self).__name__}({', '.join(shown)})"


def _anchors(distinct: FloatArray, delta: float) -> FloatArray:
    """Return where lines are fitted: the furthest value within ``delta`` of the last, or the next."""
    chosen = [0]
    while chosen[-1] < distinct.size - 1:
        reach = int(np.searchsorted(distinct, distinct[chosen[-1]] + delta, side="right")) - 1
        chosen.append(max(chosen[-1] + 1, reach))
    return distinct[chosen]


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
        smoother of ``val.prob`` in the package rms; ``span=0.5, delta=0.001`` is calzone's.
        Austin & Steyerberg use R's ``loess`` instead, local parabolas with span 0.75.

    Raises
    ------
    StatisticError
        For more than two classes, or a span outside (0, 1].

    Notes
    -----
    O(n log n) once, then O(A · span · n) for a set of labels with A anchors, at most about 200
    by default. Biased upward, like all distances to a fitted curve: see the null mean.

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
