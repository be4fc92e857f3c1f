"""Reliability diagrams of one probability: deviations, or the classical diagonal."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np

from caltest._base.checks import one_of
from caltest.plots import canvas, marks, scales
from caltest.plots.canvas import BLUE, DASHED, GREY, INK, PALE, RED, Picture
from caltest.plots.scales import Scale
from caltest.predictions import FloatArray
from caltest.results import ReliabilityCurve


@dataclass(frozen=True)
class Frame:
    """What all panels share: the ends of both axes, the tallest column, scale and known truth."""

    left: float
    right: float
    top: float
    tallest: float
    scale: Scale
    truth: Callable[[FloatArray], FloatArray] | None


def reliability(
    curve: ReliabilityCurve,
    ax: Any = None,
    *,
    style: Literal["deviation", "classical"] = "deviation",
    axis: Literal["probability", "log-odds"] = "probability",
    truth: Callable[[FloatArray], FloatArray] | None = None,
    most: int = 12,
    top: float | None = None,
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
        ``"deviation"``: outcome minus prediction against the prediction, as marks with an area by
        the number of rows (filled outside their bars), with a histogram of the predictions
        (Vaicenavicius et al. 2019, Fig. 4). The axis shows the bins of 99 % of the rows; those
        beyond are triangles at its edge, with their values. ``"classical"``: frequencies as
        columns, the gap to the prediction hatched, the diagonal, and the histogram above (Guo et
        al. 2017).
    axis : {"probability", "log-odds"}, default "probability"
        Log-odds separate rare events; frequencies of exactly 0 or 1 are then at the edge.
    truth : callable, optional
        The true probability given the prediction, where it is known: drawn as a line.
    most : int, default 12
        With more components than this only those with the smallest p-values are drawn.
    top : float, optional
        How far a deviation axis goes to either side, for pictures that share their scale.

    Returns
    -------
    Picture
        With the artists "marks", "bars", "histogram", "edge", "key" and, where drawn, "columns",
        "gaps", "truth".
    """
    styles = {"deviation": _deviations, "classical": _classical}
    one_of("style", style, styles)
    one_of("axis", axis, ("probability", "log-odds"))
    draw, classical = styles[style], style == "classical"
    scale, top_class = Scale(axis == "log-odds"), curve.subject == "top"
    several = len(curve.names) > 1
    xlabel, ylabel = "confidence" if top_class else "average prediction", "outcome − prediction"
    if classical:
        ylabel = "accuracy" if top_class else "frequency"
    elif scale.log_odds:
        ylabel = "deviation (log-odds)"
    shown = np.arange(len(curve.names))
    if shown.size > most:
        shown = np.sort(np.argsort([t.pvalue for t in curve.tests], kind="stable")[:most])
    parts = [curve.of(int(j)) for j in shown]
    frame = _frame(parts, scale, truth, whole=classical or several or not top_class)
    frame = frame if top is None else replace(frame, top=top)
    if several:
        cut = f"the {most} of {len(curve.names)} with the smallest p · "
        text = (cut if shown.size < len(curve.names) else "") + curve.recipe
        return _panels(parts, ax, draw, (xlabel, ylabel), frame, text, recipe)
    ax = canvas.paper(ax, canvas.COLUMN, 3.7 if classical else 2.8)
    artists = draw(ax, curve, frame)
    entries = _entries(parts, [artists], frame)
    if classical:
        artists |= _marginal(ax, curve, frame)
        entries |= dict(zip(("mean prediction", "mean outcome"), artists["means"], strict=True))
    canvas.tidy(ax, xlabel, ylabel)
    over = artists.get("top", ax)
    artists["key"] = canvas.key(over, entries)
    artists["headline"] = canvas.headline(over, curve.tests[0], artists["key"])
    return canvas.finished(ax, artists, curve.recipe, recipe)


def _entries(
    parts: Sequence[ReliabilityCurve], drawn: Sequence[dict[str, Any]], frame: Frame
) -> dict[str, Any]:
    """Return what the key says: every sign that some panel has, and what it means."""
    first, has = parts[0], {name for artists in drawn for name in artists}
    outside = np.concatenate([part.outside for part in parts])
    bars = first.band != "none"
    entries: dict[str, Any] = {}
    if not outside.all():
        entries["inside its bar" if bars else "one bin"] = canvas.sign(filled=False)
    if outside.any():
        entries["outside its bar"] = canvas.sign()
    if bars:
        held = "if calibrated" if first.is_consistency else "for the truth"
        together = ", all bars" if first.simultaneous else ""
        color = RED if first.is_consistency else INK
        entries[f"{100 * first.level:g} % {held}{together}"] = canvas.sign("|", color)
    if "columns" in has:
        entries["observed"] = drawn[0]["columns"]
        entries["gap to prediction"] = drawn[0]["gaps"]
    if "diagonal" in has:
        entries["outcome = prediction"] = drawn[0]["diagonal"]
    if "histogram" in has:
        entries[f"share of rows, ≤ {100 * frame.tallest:.3g} %"] = drawn[0]["histogram"]
    if "truth" in has:
        entries["truth"] = drawn[0]["truth"]
    count = np.concatenate([part.count for part in parts])
    return entries | marks.entries(count, np.concatenate([artists["out"] for artists in drawn]))


def _panels(
    parts: Sequence[ReliabilityCurve],
    ax: Any,
    draw: Callable[..., dict[str, Any]],
    labels: tuple[str, str],
    frame: Frame,
    text: str,
    recipe: bool,
) -> Picture:
    across = 2 if len(parts) <= 4 else 3
    rows = -(-len(parts) // across)
    ax = canvas.paper(ax, canvas.COLUMN, 0.8 + 1.2 * rows)
    *places, strip = canvas.divided(ax, rows, across, len(parts), 0.4)
    labelled, panels = across * (rows // 2), []  # the axes say once what they show
    for place, (part, panel) in enumerate(zip(parts, places, strict=True)):
        artists = draw(panel, part, frame)
        corner = place == across * (rows - 1)
        canvas.tidy(panel, labels[0] * corner, labels[1] * (place == labelled), canvas.SMALL)
        if not frame.scale.log_odds:
            panel.set_xticks([0.0, 0.5, 1.0], ["0", "0.5", "1"])
        panel.tick_params(labelbottom=place + across >= len(parts), labelleft=place % across == 0)
        said = f"{part.names[0]}\np {canvas.relation(part.tests[0])}"
        artists["name"] = canvas.heading(panel, said, start="axes fraction")
        panels.append(Picture(panel, artists))
    said = canvas.key(
        strip, _entries(parts, [dict(p.artists) for p in panels], frame), loc="upper left"
    )
    foot = canvas.foot(strip, text, recipe, said, places[labelled])
    return Picture(ax, {"key": said, "foot": foot}, tuple(panels), text)


def _deviations(ax: Any, curve: ReliabilityCurve, frame: Frame) -> dict[str, Any]:
    """Draw marks, bars and histogram."""
    scale, top = frame.scale, frame.top
    x, y = scale(curve.predicted), scale.gap(curve.observed, curve.predicted)
    low, high = (scale.gap(side, curve.predicted) for side in (curve.low, curve.high))
    ax.set(xlim=(frame.left, frame.right), ylim=(-top, top))
    artists: dict[str, Any] = {"zero": ax.axhline(0.0, color=GREY, linewidth=0.7, zorder=1)}
    twin = ax.twinx()
    artists["histogram"] = _shares(twin, curve, frame)
    scales.behind(ax, twin, frame.tallest)
    inside = np.clip(x, frame.left, frame.right)
    artists["bars"] = marks.bars(ax, inside, low, high, (-top, top), **_ink(curve))
    if frame.truth is not None:
        ends = frame.left, frame.right
        artists["truth"] = scales.true_curve(ax, frame.truth, *ends, scale, deviation=True)
    artists["marks"] = marks.points(ax, inside, y, curve.count, curve.outside, top)
    artists["edge"] = marks.beyond(ax, inside, y, curve.outside, top)
    artists["out"] = np.abs(y) > top
    scales.set_ticks(ax.xaxis, scale, frame.left, frame.right)
    return artists


def _ink(curve: ReliabilityCurve) -> dict[str, Any]:
    """Return how bars look: consistency bars red, confidence bars in ink and thinner."""
    return {} if curve.is_consistency else {"color": INK, "linewidth": 0.8}


def _classical(ax: Any, curve: ReliabilityCurve, frame: Frame) -> dict[str, Any]:
    """Draw columns, gaps and the diagonal."""
    scale, ends = frame.scale, (frame.left, frame.right)
    x, y = np.clip(scale(curve.predicted), *ends), scale(curve.observed)
    ax.set(xlim=ends, ylim=ends)
    artists: dict[str, Any] = {}
    if not scale.log_odds:  # a column has no foot on an axis of log-odds
        width = curve.bin_high - curve.bin_low
        style = {"align": "edge", "linewidth": 0.5}
        artists["columns"] = ax.bar(curve.bin_low, y, width, color=PALE, edgecolor=BLUE, **style)
        gap = {"facecolor": "none", "edgecolor": "#d9756d", "hatch": "////", **style}
        artists["gaps"] = ax.bar(
            curve.bin_low, curve.predicted - curve.observed, width, bottom=curve.observed, **gap
        )
    (artists["diagonal"],) = ax.plot(
        ends, ends, marker="", linestyle=DASHED, color=GREY, linewidth=0.8
    )
    sides = scale(curve.low), scale(curve.high)
    artists["bars"] = marks.bars(ax, x, *sides, ends, **_ink(curve))
    if frame.truth is not None:
        artists["truth"] = scales.true_curve(ax, frame.truth, *ends, scale, deviation=False)
    artists["marks"] = marks.points(
        ax, x, np.where(np.isinf(y), np.nan, y), curve.count, curve.outside
    )
    middle, half = 0.5 * (frame.left + frame.right), 0.5 * (frame.right - frame.left)
    artists["edge"] = marks.beyond(ax, x, y - middle, curve.outside, half, middle)
    artists["out"] = np.isinf(y)
    scales.set_ticks(ax.xaxis, scale, *ends)
    scales.set_ticks(ax.yaxis, scale, *ends)
    return artists


def _marginal(ax: Any, curve: ReliabilityCurve, frame: Frame) -> dict[str, Any]:
    """Draw the histogram above, with the mean prediction and the mean outcome."""
    top = canvas.above(ax, 0.24)
    drawn = _shares(top, curve, frame)
    canvas.tidy(top, "", "share")
    top.tick_params(labelbottom=False)
    means = []
    for values, style, color in ((curve.predicted, DASHED, INK), (curve.observed, "-", RED)):
        mean = float(frame.scale(np.average(values, weights=curve.count)))
        means.append(top.axvline(mean, linestyle=style, color=color, linewidth=1.0))
    return {"histogram": drawn, "means": means, "top": top}


def _frame(curves: Sequence[ReliabilityCurve], scale: Scale, truth: Any, *, whole: bool) -> Frame:
    """Return what the panels share."""
    top = max(
        marks.reach(c.count, *(scale.gap(v, c.predicted) for v in (c.observed, c.low, c.high)))
        for c in curves
    )
    tallest = max(float(c.count.max() / c.count.sum()) for c in curves)
    left, right = 0.0, 1.0
    if scale.log_odds:
        values = np.concatenate([scale(v) for c in curves for v in (c.predicted, c.observed)])
        values = values[np.isfinite(values)] if np.isfinite(values).any() else np.zeros(1)
        left, right = float(values.min() - 0.6), float(values.max() + 0.6)
    elif not whole:
        least, most = min(c.bin_low.min() for c in curves), max(c.bin_high.max() for c in curves)
        left, right = scales.tenths(least, most)
    return Frame(left, right, top, tallest, scale, truth)


def _shares(ax: Any, curve: ReliabilityCurve, frame: Frame) -> Any:
    """Draw the shares of the bins under their marks."""
    far = 0.5 * (frame.right - frame.left)
    low, high = (
        np.clip(frame.scale(side), frame.left - far, frame.right + far)
        for side in (curve.bin_low, curve.bin_high)
    )
    width = np.maximum(high - low, 0.01 * far)
    return scales.columns(ax, 0.5 * (low + high - width), width, curve.count / curve.count.sum())
