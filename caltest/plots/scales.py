"""Scales of probability, and the frames of the diagrams over them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from caltest._base.checks import one_of
from caltest.plots.canvas import PALE, Style
from caltest.plots.chart import Chart
from caltest.predictions import BoolArray, FloatArray, IntArray
from caltest.results.reliability import LOGIT_EDGES, SHARE_EDGES, SPREAD_EDGES

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.container import BarContainer

#: What draws the true probability given the prediction.
Truth = Callable[[FloatArray], FloatArray]


@dataclass(frozen=True)
class Scale:
    """Where a probability lies on an axis: at itself, or at its log-odds."""

    log_odds: bool = False

    def __call__(self, p: ArrayLike) -> FloatArray:
        p = np.asarray(p, dtype=np.float64)
        if not self.log_odds:
            return p
        with np.errstate(divide="ignore"):
            return np.log(p) - np.log1p(-p)

    def ticks(self, low: float, high: float) -> tuple[FloatArray, list[str]]:
        """Return round probabilities between two positions: powers of ten, and more if need be."""
        decades = [10.0**-k for k in range(9, 0, -1)]
        for steps in ((1,), (1, 3), (1, 2, 5)):
            small = [m * d for d in decades for m in steps if m * d < 0.5]
            p = np.array([*small, 0.5, *(1.0 - q for q in small[::-1])])
            p = p[(self(p) >= low) & (self(p) <= high)]
            if len(p) >= 3:
                break
        p = p[:: -(-len(p) // 7)] if len(p) else p
        return self(p), [f"{x:.9f}".rstrip("0") for x in p]


@dataclass(frozen=True)
class Frame:
    """The ends of both axes of a diagram, its scale, and whether heights are deviations."""

    x: tuple[float, float]
    y: tuple[float, float]
    scale: Scale = Scale()
    deviation: bool = True

    @property
    def middle(self) -> float:
        """The height half-way up."""
        return 0.5 * (self.y[0] + self.y[1])

    def height(self, value: FloatArray, predicted: FloatArray) -> FloatArray:
        """Return where a frequency lies, or how far from its prediction."""
        if not self.deviation:
            return self.scale(value)
        with np.errstate(invalid="ignore"):
            return np.asarray(self.scale(value) - self.scale(predicted))

    def beyond(self, y: FloatArray) -> BoolArray:
        """Say which heights are not on the paper."""
        return np.asarray(np.abs(y - self.middle) > 0.5 * (self.y[1] - self.y[0]))

    def begin(self, chart: Chart, truth: Truth | None) -> None:
        """Set the limits and the ticks of axes, and draw the true curve where it is known."""
        ax, scale = chart.ax, self.scale
        ax.set(xlim=self.x, ylim=self.y)
        if scale.log_odds:
            ax.xaxis.set_ticks(*scale.ticks(*self.x))
        if scale.log_odds and not self.deviation:
            ax.yaxis.set_ticks(*scale.ticks(*self.y))
        if truth is not None:
            left, right = self.x if scale.log_odds else np.clip(self.x, 0.0, 1.0)
            at = np.linspace(left, right, 401)[1:-1]
            p = 1.0 / (1.0 + np.exp(-at)) if scale.log_odds else at
            style = {"color": "#2f8f4e", "ls": (0, (5, 1, 1, 1)), "lw": 1.5}
            chart.line("truth", at, self.height(truth(p), p), "truth", **style)

    def labels(self, subject: str) -> tuple[str, str]:
        """Return what stands at the axes of a diagram of this subject."""
        xlabel = "confidence" if subject == "top" else "average prediction"
        if not self.deviation:
            return xlabel, "accuracy" if subject == "top" else "frequency"
        return xlabel, "deviation (log-odds)" if self.scale.log_odds else "outcome − prediction"


def chosen(style: str, axis: str) -> tuple[Scale, bool]:
    """Return the scale of an axis by its name, and whether heights are deviations."""
    one_of("style", style, ("deviation", "classical"))
    one_of("axis", axis, ("probability", "log-odds"))
    return Scale(axis == "log-odds"), style == "deviation"


def histogram(spread: IntArray, n: int, scale: Scale) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return left ends, widths and shares of the predictions in equal steps of the scale."""
    edges = LOGIT_EDGES if scale.log_odds else SHARE_EDGES
    share = np.add.reduceat(spread, np.searchsorted(SPREAD_EDGES, edges[:-1])) / n
    ends = np.clip(scale(edges), -14.5, 14.5)
    return ends[:-1], np.diff(ends), share


def columns(ax: Axes, left: FloatArray, width: FloatArray, share: FloatArray) -> BarContainer:
    """Draw pale columns."""
    style = Style(color=PALE, edgecolor="white", linewidth=0.4, zorder=0)
    return ax.bar(left, share, width, align="edge", **style)


def behind(ax: Axes, tallest: float) -> Axes:
    """Return second axes for a histogram, in the lower quarter and behind everything else."""
    twin = ax.twinx()
    twin.set_ylim(0.0, 4.2 * tallest)
    twin.spines[:].set_visible(False)
    twin.set_yticks([])
    ax.set_zorder(twin.get_zorder() + 1)
    ax.patch.set_visible(False)
    return twin


def tenths(least: float, most: float) -> tuple[float, float]:
    """Return the ends of an axis that holds the occupied tenths of [0, 1], and a little more."""
    left, right = np.floor(10.0 * least + 1e-9) / 10.0, np.ceil(10.0 * most - 1e-9) / 10.0
    margin = 0.02 * max(right - left, 0.1)
    return left - margin, right + margin


def decades(least: float) -> FloatArray:
    """Return at most four powers of ten from 1 down to about a p-value."""
    exponent = int(np.floor(-np.log10(least)))
    return np.power(10.0, -np.arange(0, exponent + 1, max(1, -(-exponent // 3))))
