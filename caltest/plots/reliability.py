"""Reliability diagrams of one probability: deviations, or the classical diagonal."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Literal

import numpy as np

from caltest._base.checks import one_of
from caltest.plots import canvas, marks, scales
from caltest.plots.canvas import BLUE, DASHED, INK, PALE, RED, Picture
from caltest.plots.chart import Chart
from caltest.plots.scales import Scale
from caltest.plots.words import foot, heading, headline, key, p_equals, sign
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
    chart = Chart.of(ax, 3.7 if classical else 2.8)
    draw(chart, curve, frame)
    chart.entries = _entries(parts, [chart.artists], frame)
    if classical:
        _marginal(chart, curve, frame)
    chart.axes(xlabel, ylabel)
    return chart.finish(curve.recipe, recipe, headline=headline(curve.tests[0]))


def _entries(
    parts: Sequence[ReliabilityCurve], panels: Sequence[dict[str, Any]], frame: Frame
) -> dict[str, Any]:
    """Return what the key says: every sign that some panel has, and what it means."""
    first, has = parts[0], {name for artists in panels for name in artists}
    outside = np.concatenate([part.outside for part in parts])
    bars = first.band != "none"
    entries: dict[str, Any] = {}
    if not outside.all():
        entries["inside its bar" if bars else "one bin"] = sign(filled=False)
    if outside.any():
        entries["outside its bar"] = sign()
    if bars:
        meaning = "if calibrated" if first.is_consistency else "for the truth"
        together = ", all bars" if first.simultaneous else ""
        color = RED if first.is_consistency else INK
        entries[f"{100 * first.level:g} % {meaning}{together}"] = sign("|", color)
    if "columns" in has:
        entries["observed"] = panels[0]["columns"]
        entries["gap to prediction"] = panels[0]["gaps"]
    if "diagonal" in has:
        entries["outcome = prediction"] = panels[0]["diagonal"]
    if "histogram" in has:
        entries[f"share of rows, ≤ {100 * frame.tallest:.3g} %"] = panels[0]["histogram"]
    if "truth" in has:
        entries["truth"] = panels[0]["truth"]
    count = np.concatenate([part.count for part in parts])
    return entries | marks.entries(count, np.concatenate([artists["out"] for artists in panels]))


def _panels(
    parts: Sequence[ReliabilityCurve],
    ax: Any,
    draw: Callable[[Chart, ReliabilityCurve, Frame], None],
    labels: tuple[str, str],
    frame: Frame,
    text: str,
    recipe: bool,
) -> Picture:
    """Draw a panel for every component, with one key and one pair of labels for all."""
    across = 2 if len(parts) <= 4 else 3
    rows = -(-len(parts) // across)
    ax = canvas.paper(ax, canvas.COLUMN, 0.8 + 1.2 * rows)
    *places, strip = canvas.divided(ax, rows, across, len(parts), 0.4)
    labelled, panels = across * (rows // 2), []  # the axes say once what they show
    for j, (part, place) in enumerate(zip(parts, places, strict=True)):
        chart = Chart(place)
        draw(chart, part, frame)
        corner = j == across * (rows - 1)
        chart.axes(labels[0] * corner, labels[1] * (j == labelled), size=canvas.SMALL)
        if not frame.scale.log_odds:
            place.set_xticks([0.0, 0.5, 1.0], ["0", "0.5", "1"])
        place.tick_params(labelbottom=j + across >= len(parts), labelleft=j % across == 0)
        name = f"{part.names[0]}\n{p_equals(part.tests[0].shown_p)}"
        chart.mark("name", heading(place, name, start="axes fraction"))
        panels.append(Picture(place, chart.artists))
    entries = _entries(parts, [dict(panel.artists) for panel in panels], frame)
    legend = key(strip, entries, loc="upper left")
    artists = {"key": legend, "foot": foot(strip, text, recipe, legend, places[labelled])}
    return Picture(ax, artists, tuple(panels), text)


def _deviations(chart: Chart, curve: ReliabilityCurve, frame: Frame) -> None:
    """Draw marks, bars and histogram."""
    scale, top, ax = frame.scale, frame.top, chart.ax
    x, y = scale(curve.predicted), scale.gap(curve.observed, curve.predicted)
    low, high = (scale.gap(side, curve.predicted) for side in (curve.low, curve.high))
    ax.set(xlim=(frame.left, frame.right), ylim=(-top, top))
    chart.rule("zero", y=0.0, width=0.7, z=1)
    chart.mark("histogram", _shares(scales.behind(ax, frame.tallest), curve, frame))
    inside = np.clip(x, frame.left, frame.right)
    chart.mark("bars", marks.bars(ax, inside, low, high, (-top, top), **_ink(curve)))
    if frame.truth is not None:
        scales.true_curve(chart, frame.truth, frame.left, frame.right, scale, deviation=True)
    chart.mark("marks", marks.points(ax, inside, y, curve.count, curve.outside, top))
    chart.mark("edge", marks.beyond(ax, inside, y, curve.outside, top))
    chart.mark("out", np.abs(y) > top)
    scales.set_ticks(ax.xaxis, scale, frame.left, frame.right)


def _ink(curve: ReliabilityCurve) -> dict[str, Any]:
    """Return how bars look: consistency bars red, confidence bars in ink and thinner."""
    return {} if curve.is_consistency else {"color": INK, "linewidth": 0.8}


def _classical(chart: Chart, curve: ReliabilityCurve, frame: Frame) -> None:
    """Draw columns, gaps and the diagonal."""
    scale, ends, ax = frame.scale, (frame.left, frame.right), chart.ax
    x, y = np.clip(scale(curve.predicted), *ends), scale(curve.observed)
    ax.set(xlim=ends, ylim=ends)
    if not scale.log_odds:  # a column has no foot on an axis of log-odds
        place = curve.bin_low, curve.bin_high - curve.bin_low
        style: Any = {"align": "edge", "linewidth": 0.5, "edgecolor": BLUE, "color": PALE}
        chart.mark("columns", ax.bar(place[0], y, place[1], **style))
        style |= {"color": "none", "edgecolor": "#d9756d", "hatch": "////", "bottom": y}
        chart.mark("gaps", ax.bar(place[0], curve.predicted - y, place[1], **style))
    chart.diagonal(ends)
    sides = scale(curve.low), scale(curve.high)
    chart.mark("bars", marks.bars(ax, x, *sides, ends, **_ink(curve)))
    if frame.truth is not None:
        scales.true_curve(chart, frame.truth, *ends, scale, deviation=False)
    finite = np.where(np.isinf(y), np.nan, y)
    chart.mark("marks", marks.points(ax, x, finite, curve.count, curve.outside))
    middle, half = 0.5 * (frame.left + frame.right), 0.5 * (frame.right - frame.left)
    chart.mark("edge", marks.beyond(ax, x, y - middle, curve.outside, half, middle))
    chart.mark("out", np.isinf(y))
    scales.set_ticks(ax.xaxis, scale, *ends)
    scales.set_ticks(ax.yaxis, scale, *ends)


def _marginal(chart: Chart, curve: ReliabilityCurve, frame: Frame) -> None:
    """Draw the histogram above, with the mean prediction and the mean outcome."""
    upper, mean = chart.above(0.24), partial(np.average, weights=curve.count)
    upper.mark("histogram", _shares(upper.ax, curve, frame))
    upper.axes("", "share")
    upper.ax.tick_params(labelbottom=False)
    predicted, observed = (float(frame.scale(mean(v))) for v in (curve.predicted, curve.observed))
    chart.artists["means"] = [
        upper.rule("", "mean prediction", x=predicted, color=INK, dash=DASHED, width=1.0),
        upper.rule("", "mean outcome", x=observed, color=RED, width=1.0),
    ]


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
