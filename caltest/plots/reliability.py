"""Reliability diagrams of one probability: deviations, or the classical diagonal."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, Literal

import numpy as np

from caltest._base.checks import one_of
from caltest.plots import canvas, scales
from caltest.plots.canvas import BLUE, GREY, INK, PALE, RED, Picture
from caltest.plots.scales import Scale
from caltest.predictions import FloatArray
from caltest.results import ReliabilityCurve

#: Bins with fewer rows do not widen the vertical axis: their bars may run out of the frame.
FEW = 5


def reliability(
    curve: ReliabilityCurve,
    ax: Any = None,
    *,
    style: Literal["deviation", "classical"] = "deviation",
    axis: Literal["probability", "log-odds"] = "probability",
    truth: Callable[[FloatArray], FloatArray] | None = None,
    most: int = 12,
    recipe: bool = True,
) -> Picture:
    """Draw a reliability diagram.

    Parameters
    ----------
    curve : ReliabilityCurve
        What :func:`caltest.reliability_curve` returned; one panel is drawn for each component.
    ax, recipe
        As for every picture.
    style : {"deviation", "classical"}, default "deviation"
        ``"deviation"``: outcome minus prediction against the prediction, as crosses (heavy outside
        their bars), with a histogram of the predictions (Vaicenavicius et al. 2019, Fig. 4).
        ``"classical"``: frequencies as columns, the gap to the prediction hatched, the diagonal,
        and the histogram above (Guo et al. 2017).
    axis : {"probability", "log-odds"}, default "probability"
        Log-odds separate rare events; frequencies of exactly 0 or 1 are then triangles at the edge
        of the frame.
    truth : callable, optional
        The true probability given the prediction, where it is known: drawn as a line.
    most : int, default 12
        With more components than this only those with the smallest p-values are drawn.

    Returns
    -------
    Picture
        With the artists "crosses", "bars", "histogram" and, where drawn, "columns", "gaps",
        "edge", "truth".
    """
    styles = {"deviation": _deviations, "classical": _classical}
    one_of("style", style, styles)
    one_of("axis", axis, ("probability", "log-odds"))
    draw = styles[style]
    scale = Scale(axis == "log-odds")
    top_class = curve.subject == "top"
    xlabel, ylabel = "confidence" if top_class else "average prediction", "outcome − prediction"
    if style == "classical":
        ylabel = "accuracy" if top_class else "frequency"
    elif scale.log_odds:
        ylabel = "deviation (log-odds)"
    if len(curve.names) > 1:
        drawn = partial(draw, scale=scale, truth=truth)
        return _panels(curve, ax, drawn, (xlabel, ylabel), scale, most, recipe)
    ax = canvas.paper(ax, canvas.COLUMN, 2.35 if style == "deviation" else 3.3)
    frame = _frame([curve], scale, whole=style == "classical" or not top_class)
    artists = draw(ax, curve, frame, scale, truth)
    if style == "classical":
        artists |= _marginal(ax, curve, scale)
    else:
        scales.label_shares(artists["histogram"])
    canvas.tidy(ax, xlabel, ylabel)
    artists["headline"] = canvas.headline(artists.get("top", ax), curve.tests[0])
    return canvas.finished(ax, artists, curve.recipe, recipe)


def _panels(
    curve: ReliabilityCurve,
    ax: Any,
    draw: Callable[..., dict[str, Any]],
    labels: tuple[str, str],
    scale: Scale,
    most: int,
    recipe: bool,
) -> Picture:
    shown = np.arange(len(curve.names))
    if shown.size > most:
        shown = np.sort(np.argsort([t.pvalue for t in curve.tests], kind="stable")[:most])
    across = 2 if shown.size <= 4 else 4
    rows = -(-shown.size // across)
    ax = canvas.paper(ax, canvas.COLUMN if across == 2 else canvas.PAGE, 0.5 + 1.25 * rows)
    places = canvas.divided(ax, rows, across, shown.size, 0.14 if recipe else 0.0)
    frame = _frame([curve.of(int(j)) for j in shown], scale, whole=True)
    panels = []
    for place, (j, panel) in enumerate(zip(shown, places, strict=False)):
        part = curve.of(int(j))
        artists = draw(panel, part, frame)
        first, last = place % across == 0, place + across >= shown.size
        canvas.tidy(panel, labels[0] if last else "", labels[1] if first else "", canvas.TICK)
        if not scale.log_odds:
            panel.set_xticks([0.0, 0.5, 1.0], ["0", "0.5", "1"])
        panel.tick_params(labelbottom=last, labelleft=first)
        artists["name"] = canvas.corner(panel, part.names[0])
        artists["headline"] = canvas.corner(panel, f"p {canvas.relation(part.tests[0])}", "right")
        panels.append(Picture(panel, artists))
    cut = f"the {most} of {len(curve.names)} with the smallest p · "
    text = (cut if shown.size < len(curve.names) else "") + curve.recipe
    foot = canvas.foot(places[-1], text, recipe, within=True)
    return Picture(ax, {"foot": foot}, tuple(panels), text)


def _deviations(
    ax: Any, curve: ReliabilityCurve, frame: tuple[float, float, float], scale: Scale, truth: Any
) -> dict[str, Any]:
    """Draw crosses, bars and histogram."""
    left, right, top = frame
    x, y = scale(curve.predicted), scale.gap(curve.observed, curve.predicted)
    low, high = (scale.gap(side, curve.predicted) for side in (curve.low, curve.high))
    artists: dict[str, Any] = {"zero": ax.axhline(0.0, color=GREY, linewidth=0.7, zorder=1)}
    twin = ax.twinx()
    artists["histogram"] = _shares(twin, curve, scale)
    scales.lower_third(ax, twin, artists["histogram"])
    inside = np.clip(x, left, right)
    artists["bars"] = bars(ax, inside, low, high, curve.is_consistency, 2.0 * top)
    if truth is not None:
        artists["truth"] = scales.true_curve(ax, truth, left, right, scale, deviation=True)
    artists["crosses"] = crosses(ax, inside, np.where(np.isinf(y), np.nan, y), curve.outside)
    artists["edge"] = _edge(ax, inside, y, top)
    ax.set(xlim=(left, right), ylim=(-top, top))
    scales.set_ticks(ax.xaxis, scale, left, right)
    return artists


def _classical(
    ax: Any, curve: ReliabilityCurve, frame: tuple[float, float, float], scale: Scale, truth: Any
) -> dict[str, Any]:
    """Draw columns, gaps and the diagonal."""
    left, right, _ = frame
    x, y = np.clip(scale(curve.predicted), left, right), scale(curve.observed)
    artists: dict[str, Any] = {}
    if not scale.log_odds:  # a column has no foot on an axis of log-odds
        width = curve.bin_high - curve.bin_low
        artists["columns"] = ax.bar(
            curve.bin_low, y, width, align="edge", color=PALE, edgecolor=BLUE, linewidth=0.5
        )
        artists["gaps"] = ax.bar(
            curve.bin_low,
            curve.predicted - curve.observed,
            width,
            bottom=curve.observed,
            align="edge",
            facecolor="none",
            edgecolor="#d9756d",
            hatch="////",
            linewidth=0.4,
        )
    (artists["diagonal"],) = ax.plot(
        [left, right], [left, right], linestyle=(0, (4, 2)), color=GREY, linewidth=0.8
    )
    low, high = (np.clip(scale(side), left - 9.0, right + 9.0) for side in (curve.low, curve.high))
    artists["bars"] = bars(ax, x, low, high, curve.is_consistency, np.inf)
    if truth is not None:
        artists["truth"] = scales.true_curve(ax, truth, left, right, scale, deviation=False)
    artists["crosses"] = crosses(ax, x, np.where(np.isinf(y), np.nan, y), curve.outside)
    middle, half = 0.5 * (left + right), 0.5 * (right - left)
    artists["edge"] = _edge(ax, x, y - middle, half, middle)
    ax.set(xlim=(left, right), ylim=(left, right))
    scales.set_ticks(ax.xaxis, scale, left, right)
    scales.set_ticks(ax.yaxis, scale, left, right)
    return artists


def _marginal(ax: Any, curve: ReliabilityCurve, scale: Scale) -> dict[str, Any]:
    """Draw the histogram above, with the mean prediction and the mean outcome."""
    top = canvas.above(ax, 0.24)
    drawn = _shares(top, curve, scale)
    canvas.tidy(top, "", "share")
    top.tick_params(labelbottom=False)
    means = []
    centre = float(np.average(curve.predicted, weights=curve.count))
    for values, style, color in ((curve.predicted, "--", INK), (curve.observed, "-", RED)):
        mean = scale(np.average(values, weights=curve.count))
        means.append(top.axvline(float(mean), linestyle=style, color=color, linewidth=1.0))
    side = "upper left" if centre > 0.5 else "upper right"
    canvas.legend(top, means, ["mean prediction", "mean outcome"], canvas.TICK - 1.0, loc=side)
    return {"histogram": drawn, "means": means, "top": top}


def bars(
    ax: Any,
    x: FloatArray,
    low: FloatArray,
    high: FloatArray,
    consistency: bool,
    far: float,
) -> Any:
    """Draw vertical bars with caps; consistency bars in red, confidence bars in ink."""
    from matplotlib.collections import LineCollection

    drawn = ~np.isnan(low)
    x, low, high = x[drawn], np.maximum(low[drawn], -far), np.minimum(high[drawn], far)
    color = RED if consistency else INK
    stems = LineCollection(
        [[(a, b), (a, c)] for a, b, c in zip(x, low, high, strict=True)],
        colors=color,
        linewidths=1.1 if consistency else 0.8,
        zorder=3,
    )
    ax.add_collection(stems)
    size = 5.0 if x.size <= 20 else 2.5
    for ends in (low, high):
        ax.plot(x, ends, "_", color=color, markersize=size, markeredgewidth=1.0, zorder=3)
    return stems


def crosses(ax: Any, x: FloatArray, y: FloatArray, heavy: Any) -> Any:
    """Draw crosses, heavy ones where chance does not explain the deviation."""
    size = 18.0 if x.size <= 30 else 9.0
    drawn = ax.scatter(x, y, s=size, marker="x", color=INK, zorder=4, clip_on=False)
    drawn.set_linewidths(np.where(heavy, 1.4, 0.8))
    return drawn


def _edge(ax: Any, x: FloatArray, y: FloatArray, top: float, middle: float = 0.0) -> Any:
    """Mark infinite log-odds by triangles at the frame."""
    artists = []
    for sign, marker in ((1.0, "^"), (-1.0, "v")):
        beyond = np.isinf(y) & (np.sign(y) == sign)
        places = np.full(int(beyond.sum()), middle + 0.96 * sign * top)
        artists.append(ax.scatter(x[beyond], places, s=12, marker=marker, color=INK, zorder=5))
    return artists


def _reach(curve: ReliabilityCurve, scale: Scale) -> float:
    """Return how far crosses go from 0, and the bars of bins that are not nearly empty."""
    many = curve.count >= FEW
    sides = curve.observed, curve.low[many], curve.high[many]
    own = curve.predicted, curve.predicted[many], curve.predicted[many]
    distances = np.abs(np.concatenate(list(map(scale.gap, sides, own))))
    return float(np.max(distances[np.isfinite(distances)], initial=0.01))


def _frame(
    curves: list[ReliabilityCurve], scale: Scale, *, whole: bool
) -> tuple[float, float, float]:
    """Return the ends of the horizontal axis, and how far a deviation axis goes, for all curves."""
    top = 1.12 * max(_reach(curve, scale) for curve in curves)
    if not scale.log_odds:
        if whole:
            return 0.0, 1.0, top
        least, most = min(c.bin_low.min() for c in curves), max(c.bin_high.max() for c in curves)
        return *scales.tenths(least, most), top
    values = np.concatenate([scale(v) for c in curves for v in (c.predicted, c.observed)])
    values = values[np.isfinite(values)] if np.isfinite(values).any() else np.zeros(1)
    return float(values.min() - 0.6), float(values.max() + 0.6), top


def _shares(ax: Any, curve: ReliabilityCurve, scale: Scale) -> Any:
    """Draw the shares of the bins where these are equally wide, else those of equal steps."""
    width = curve.bin_high - curve.bin_low
    if not scale.log_odds and width[0] > 0.0 and np.ptp(width) < 1e-9:
        return scales.columns(ax, curve.bin_low, width, curve.count / curve.n)
    return scales.histogram(ax, curve.spread[0], curve.n, scale)
