"""Single numbers: an interval, the parts of a score, and the curve of Cox's recalibration."""

from __future__ import annotations

from typing import Any

import numpy as np

from caltest.plots import canvas
from caltest.plots.canvas import BLUE, DASHED, GREY, INK, PALE, Picture
from caltest.results import (
    BrierDecomposition,
    ConfidenceIntervalResult,
    CORPDecomposition,
    CoxRecalibration,
    format_value,
    short,
)

#: The parts of a score with the sign with which they count, in the order of the steps.
SIGNS: dict[type, dict[str, int]] = {
    CORPDecomposition: {"uncertainty": 1, "discrimination": -1, "miscalibration": 1},
    BrierDecomposition: {
        **{"uncertainty": 1, "resolution": -1, "reliability": 1},
        **{"within_variance": 1, "within_covariance": -1},
    },
}


def interval(result: ConfidenceIntervalResult, ax: Any = None, *, recipe: bool = True) -> Picture:
    """Draw an estimate, its interval (an arrow where it is open) and the noise floor."""
    ax = canvas.paper(ax, canvas.COLUMN, 1.5)
    low = None if result.side == "upper" else result.low
    high = None if result.side == "lower" else result.high
    known = [v for v in (low, high) if v is not None]
    values = np.array([0.0, result.estimate, result.null_mean, *known])
    margin = 0.06 * max(float(np.ptp(values)), 1e-9)
    left, right = values.min() - margin, values.max() + margin
    span = ax.hlines(0.0, left if low is None else low, right if high is None else high, color=BLUE)
    for bound, edge, head in ((low, left, "<"), (high, right, ">")):
        at, marker = (edge, head) if bound is None else (bound, "|")
        ax.plot(at, 0.0, marker, color=BLUE, markersize=7.0, clip_on=False)
    estimate = ax.scatter([result.estimate], [0.0], s=28, color=INK, zorder=3)
    floor = ax.axvline(result.null_mean, color=GREY, linestyle=DASHED, linewidth=1.0)
    ax.set(xlim=(left, right), ylim=(-1.0, 1.0))
    ax.set_yticks([])
    canvas.tidy(ax, short(result.statistic))
    ax.spines["left"].set_visible(False)
    ax.locator_params(axis="x", nbins=6)
    side = "interval" if result.side == "two-sided" else f"{result.side} bound"
    entries = {
        "estimate": canvas.sign(),
        f"{100 * result.level:.4g} % {side}": canvas.sign("_", BLUE, line="-"),
        "mean if calibrated": floor,
    }
    artists = {"estimate": estimate, "interval": span, "floor": floor}
    artists["key"] = canvas.key(ax, entries, 0.0)
    return canvas.finished(ax, artists, result.recipe, recipe)


def decomposition(
    parts: CORPDecomposition | BrierDecomposition, ax: Any = None, *, recipe: bool = True
) -> Picture:
    """Draw the parts of a mean score as steps from 0 to it."""
    signs = SIGNS[type(parts)]
    steps = [sign * getattr(parts, name) for name, sign in signs.items()]
    heights = np.array([*steps, parts.mean_score])
    begin = np.append(np.cumsum(heights[:-1]) - heights[:-1], 0.0)
    ax = canvas.paper(ax, canvas.COLUMN, 1.3 + 0.2 * heights.size)
    y = np.arange(heights.size)[::-1]
    colors = [INK if j == heights.size - 1 else PALE for j in range(heights.size)]
    bars = ax.barh(y, heights, 0.6, left=begin, color=colors, edgecolor=INK, linewidth=0.6)
    taken = [bar for bar, height in zip(bars, heights, strict=True) if height < 0.0]
    for bar in taken:
        bar.set_hatch("////")
    ax.axvline(0.0, color=INK, linewidth=0.6)
    reached = np.cumsum(heights[:-1])
    ax.vlines(reached, y[1:] - 0.3, y[:-1] + 0.3, color=GREY, linewidth=0.6, zorder=0)
    words = [
        f"{'+' if v >= 0.0 else '−'} {n.replace('_', ' ')}"
        for n, v in zip(signs, steps, strict=True)
    ]
    ax.set_yticks(y, [*words, "= mean score"])
    ax.tick_params(axis="y", length=0)
    ax.locator_params(axis="x", nbins=5)
    ends = np.append(begin, begin + heights)
    ax.set_xlim(1.06 * ends.min(), 1.06 * ends.max())
    canvas.tidy(ax, "score")
    labels = canvas.beside(ax, y, [format_value(abs(h)) for h in heights])
    entries = {"added": bars[int(np.argmax(heights[:-1] >= 0.0))]}
    entries |= {"taken off": taken[0]} if taken else {}
    artists = {"bars": bars, "labels": labels, "key": canvas.key(ax, entries)}
    return canvas.finished(ax, artists, parts.recipe, recipe)


def cox(result: CoxRecalibration, ax: Any = None, *, recipe: bool = True) -> Picture:
    """Draw the frequency that Cox's recalibration gives to every prediction, with its band."""
    ax = canvas.paper(ax, canvas.COLUMN, 3.2)
    p = np.linspace(0.0, 1.0, 401)[1:-1]
    fitted, low, high = result.curve(p)
    band = ax.fill_between(p, low, high, color=PALE, linewidth=0, zorder=1)
    (diagonal,) = ax.plot(
        [0, 1], [0, 1], marker="", linestyle=DASHED, color=GREY, linewidth=0.8, zorder=2
    )
    (curve,) = ax.plot(p, fitted, linestyle="-", marker="", color=INK, linewidth=1.3, zorder=3)
    ax.set(xlim=(0.0, 1.0), ylim=(0.0, 1.0))
    canvas.tidy(ax, "prediction", "frequency")
    words = f"fitted: intercept {result.intercept:.2f}, slope {result.slope:.2f}"
    words = words.replace("-", "−")
    entries = {words: curve, f"{100 * result.level:g} % band at each prediction": band}
    artists = {"curve": curve, "band": band, "diagonal": diagonal}
    artists["key"] = canvas.key(ax, entries | {"outcome = prediction": diagonal})
    return canvas.finished(ax, artists, result.recipe, recipe)
