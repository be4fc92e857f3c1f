"""Scales of probability, and what diagrams over them share."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from caltest.plots.canvas import PALE
from caltest.plots.chart import Chart
from caltest.predictions import FloatArray, IntArray
from caltest.results.reliability import LOGIT_EDGES, SHARE_EDGES, SPREAD_EDGES

#: The colour of what is known to be true.
TRUE = "#2f8f4e"


@dataclass(frozen=True)
class Scale:
    """Where a probability lies on an axis: at itself, or at its log-odds."""

    log_odds: bool = False

    def __call__(self, p: Any) -> FloatArray:
        p = np.asarray(p, dtype=np.float64)
        if not self.log_odds:
            return p
        with np.errstate(divide="ignore"):
            return np.log(p) - np.log1p(-p)

    def gap(self, value: FloatArray, predicted: FloatArray) -> FloatArray:
        """Return how far a frequency lies from its prediction."""
        with np.errstate(invalid="ignore"):
            distance: FloatArray = self(value) - self(predicted)
        return distance

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


def histogram(spread: IntArray, n: int, scale: Scale) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return left ends, widths and shares of the predictions in equal steps of the scale."""
    edges = LOGIT_EDGES if scale.log_odds else SHARE_EDGES
    share = np.add.reduceat(spread, np.searchsorted(SPREAD_EDGES, edges[:-1])) / n
    ends = np.clip(scale(edges), -14.5, 14.5)
    return ends[:-1], np.diff(ends), share


def columns(ax: Any, left: FloatArray, width: FloatArray, share: FloatArray) -> Any:
    """Draw pale columns."""
    return ax.bar(
        left, share, width, align="edge", color=PALE, edgecolor="white", linewidth=0.4, zorder=0
    )


def behind(ax: Any, tallest: float) -> Any:
    """Return second axes for a histogram, in the lower quarter and behind everything else."""
    twin = ax.twinx()
    twin.set_ylim(0.0, 4.2 * tallest)
    for spine in twin.spines.values():
        spine.set_visible(False)
    twin.set_yticks([])
    ax.set_zorder(twin.get_zorder() + 1)
    ax.patch.set_visible(False)
    return twin


def true_curve(
    chart: Chart, truth: Any, left: float, right: float, scale: Scale, deviation: bool
) -> None:
    """Draw the true probability given the prediction, or its deviation."""
    if not scale.log_odds:
        left, right = max(left, 0.0), min(right, 1.0)
    at = np.linspace(left, right, 401)[1:-1]
    p = 1.0 / (1.0 + np.exp(-at)) if scale.log_odds else at
    y = scale.gap(truth(p), p) if deviation else scale(truth(p))
    chart.line("truth", at, y, "truth", color=TRUE, dash=(0, (5, 1, 1, 1)), width=1.5)


def tenths(least: float, most: float) -> tuple[float, float]:
    """Return the ends of an axis that holds the occupied tenths of [0, 1], and a little more."""
    left, right = np.floor(10.0 * least + 1e-9) / 10.0, np.ceil(10.0 * most - 1e-9) / 10.0
    margin = 0.02 * max(right - left, 0.1)
    return left - margin, right + margin


def set_ticks(axis: Any, scale: Scale, left: float, right: float) -> None:
    """Label an axis of log-odds by probabilities."""
    if scale.log_odds:
        positions, labels = scale.ticks(left, right)
        axis.set_ticks(positions, labels)


def decades(least: float) -> FloatArray:
    """Return at most four powers of ten from 1 down to about a p-value."""
    exponent = int(np.floor(-np.log10(least)))
    return np.power(10.0, -np.arange(0, exponent + 1, max(1, -(-exponent // 3))))
