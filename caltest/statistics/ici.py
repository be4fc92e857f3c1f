"""Distances between predictions and a smooth calibration curve: ICI, E50, E90, Emax."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from caltest.errors import StatisticError
from caltest.predictions import FloatArray, IntArray
from caltest.statistics.problem import OfLabels, event


@dataclass(frozen=True, eq=False)
class LowessGaps:
    """A summary of |p − smooth(p)| with the predictions fixed.

    The curve is linear in the outcomes: ``windows`` says, for every anchor, from which row on in
    increasing order which weights apply.
    """

    order: IntArray = field(repr=False)
    ordered: FloatArray = field(repr=False)
    anchors: FloatArray = field(repr=False)
    windows: tuple[tuple[int, FloatArray], ...] = field(repr=False)
    quantile: float | None

    def curve(self, labels: IntArray) -> FloatArray:
        """Return the smoothed frequency of the event at each prediction, in increasing order."""
        events = (labels[self.order] == 0).astype(np.float64)
        fitted = [w @ events[first : first + w.size] for first, w in self.windows]
        return np.interp(self.ordered, self.anchors, fitted)

    def __call__(self, labels: IntArray) -> float:
        gaps = np.abs(self.curve(labels) - self.ordered)
        return float(gaps.mean() if self.quantile is None else np.quantile(gaps, self.quantile))


@dataclass(frozen=True, repr=False)
class _SmoothGaps(OfLabels):
    """What ICI, E50, E90 and Emax share: the smoother."""

    span: float = 2 / 3
    delta: float | None = None
    quantile: ClassVar[float | None] = None
    essential: ClassVar[int] = 0

    def __post_init__(self) -> None:
        if not 0.0 < self.span <= 1.0:
            raise StatisticError(f"span must lie in (0, 1], not {self.span!r}")
        if self.delta is not None and self.delta < 0.0:
            raise StatisticError(f"delta must be at least 0, not {self.delta!r}")

    def given(self, probs: FloatArray) -> LowessGaps:
        """Fix the predictions: sort them and find the windows of the smoother."""
        p = event(probs, repr(self))
        order = np.argsort(p, kind="stable")
        x = p[order]
        delta = 0.01 * (x[-1] - x[0]) if self.delta is None else self.delta
        anchors = _anchors(np.unique(x), delta)
        nearest = min(p.size, max(2, int(self.span * p.size + 1e-7)))
        windows = tuple(_window(x, float(at), nearest) for at in anchors)
        return LowessGaps(order, x, anchors, windows, self.quantile)


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
