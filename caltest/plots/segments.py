"""The forest of a search through segments."""

from __future__ import annotations

from typing import Any

import numpy as np

from caltest.plots.canvas import DASHED, GREY, INK, RED, Picture
from caltest.plots.chart import Chart
from caltest.plots.words import sign
from caltest.results import SegmentSearch


def segments(result: SegmentSearch, ax: Any = None, *, recipe: bool = True) -> Picture:
    """Draw the difference of all rows and of every listed segment, with its interval.

    The end of the interval nearest to 0 is heavier where it leaves 0 out; adjusted p-values are at
    the right. Where none is listed, the five of most evidence are hollow. The artists are
    "differences", "intervals", "least", "labels" and "key".
    """
    rows = [result.whole, *(result.segments or result.strongest)]
    rows = rows[1:] if result.whole in rows[1:] else rows
    names = [f"{row.name} ({row.n})" for row in rows]
    chart = Chart.of(ax, 1.3 + sum(0.2 if len(name) < 20 else 0.32 for name in names))
    y = chart.rows(names)
    low, high, mean = np.array([(row.low, row.high, row.difference) for row in rows]).T
    words = f"{100 * (1 - result.alpha):g} % for all segments"
    chart.spans("intervals", y, low, high, words, color=INK, lw=1.0)
    sure = np.array([row.on_average for row in rows])
    nearest = np.where(np.abs(low) < np.abs(high), low, high)[sure]
    if sure.any():
        look: Any = {"s": 45, "linewidths": 2.4, "zorder": 2}
        chart.dots("least", nearest, y[sure], "at least", marker="|", color=RED, **look)
    listed = [row in result.segments for row in rows]
    chart.dots("differences", mean, y, s=18, filled=listed, linewidths=0.9)
    if any(listed):
        chart.entries["listed"] = sign()
    if not all(listed):
        chart.entries["not listed"] = sign(filled=False)
    chart.rule("", "calibrated", x=0.0, ls=DASHED, lw=0.9, zorder=0, color=GREY)
    chart.axes("observed − predicted")
    chart.pvalues(y, [row.pvalue for row in rows])
    return chart.finish(result.recipe, recipe)
