"""Reliability diagrams of one probability in bins: of one model, and of several."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Literal

import numpy as np

from caltest.errors import StatisticError
from caltest.plots import canvas, marks, scales
from caltest.plots.canvas import BLUE, DASHED, GREY, INK, PALE, RED, Picture, Style
from caltest.plots.chart import Chart
from caltest.plots.scales import Frame, Scale, Truth
from caltest.plots.words import foot, heading, headline, key, p_equals, sign
from caltest.results import ReliabilityCurve, ReliabilityDifference
from caltest.results.numbers import in_percent

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.container import BarContainer

    from caltest.plots.words import Handle, Line

#: Colour, marker and line of each model; the colours differ in darkness as well.
STYLES: tuple[tuple[str, str, Line], ...] = (
    (INK, "o", "-"),
    (RED, "s", (0, (5, 1.5))),
    ("#5fa2dd", "D", (0, (1, 1))),
    ("#7a5195", "p", (0, (4, 1, 1, 1))),
    ("#c9a227", "h", (0, (7, 3))),
)


def reliability(
    curve: ReliabilityCurve, ax: Axes | None = None, *,
    style: Literal["deviation", "classical"] = "deviation",
    axis: Literal["probability", "log-odds"] = "probability", truth: Truth | None = None,
    most: int = 12, top: float | None = None, recipe: bool = True,
) -> Picture:  # fmt: skip
    """Draw a reliability diagram, with one panel for each component of the curve.

    The artists are "marks", "bars", "histogram", "edge", "key" and, where drawn, "columns", "gaps",
    "truth".

    Parameters
    ----------
    style : {"deviation", "classical"}, default "deviation"
        ``"deviation"``: outcome minus prediction against the prediction, as marks with an area by
        the number of rows (filled outside their bars), with a histogram of the predictions
        (Vaicenavicius et al. 2019, Fig. 4). The axis shows the bins of 99 % of the rows; those
        beyond are triangles at its edge, with their values. ``"classical"``: frequencies as
        columns, the gap to the prediction hatched, the diagonal, the histogram above (Guo 2017).
    axis : {"probability", "log-odds"}, default "probability"
        Log-odds separate rare events; frequencies of exactly 0 or 1 are then at the edge.
    truth : callable, optional
        The true probability given the prediction, where it is known: drawn as a line.
    most : int, default 12
        With more components than this only those with the smallest p-values are drawn.
    top : float, optional
        How far a deviation axis goes to either side, for pictures that share their scale.
    """
    scale, deviation = scales.chosen(style, axis)
    components, several = np.arange(len(curve.names)), len(curve.names) > 1
    if components.size > most:
        components = np.sort(np.argsort([t.pvalue for t in curve.tests], kind="stable")[:most])
    parts = [curve.of(int(j)) for j in components]
    whole = not deviation or several or curve.subject != "top"
    frame = _frame(parts, scale, deviation, whole, top)
    tallest = max(c.count.max() / c.count.sum() for c in parts)
    draw = partial(_panel, frame=frame, tallest=float(tallest), truth=truth)
    heights = [frame.height(c.observed, c.predicted) for c in parts]
    count = np.concatenate([c.count for c in parts])
    common = marks.entries(count, frame.beyond(np.concatenate(heights)))
    if several:
        cut = f"the {most} of {len(curve.names)} with the smallest p · "
        text = (cut if components.size < len(curve.names) else "") + curve.recipe
        return _panels(parts, ax, draw, frame, common, text, recipe)
    chart = Chart.of(ax, 2.8 if deviation else 3.7)
    chart.entries = _signs(parts)
    draw(chart, curve)
    chart.entries |= common
    if not deviation:
        upper, mean = chart.above(0.24), partial(np.average, weights=curve.count)
        upper.mark("histogram", _shares(upper.ax, curve, frame))
        upper.axes("", "share")
        upper.ax.tick_params(labelbottom=False)
        predicted, observed = (float(scale(mean(v))) for v in (curve.predicted, curve.observed))
        chart.artists["means"] = [
            upper.rule("", "mean prediction", x=predicted, color=INK, ls=DASHED, lw=1.0),
            upper.rule("", "mean outcome", x=observed, color=RED, lw=1.0),
        ]
    chart.axes(*frame.labels(curve.subject))
    return chart.finish(curve.recipe, recipe, headline=headline(curve.tests[0]))


def _panels(parts: Sequence[ReliabilityCurve], ax: Axes | None, draw: Callable[..., None],
            frame: Frame, common: dict[str, Handle], text: str,
            recipe: bool) -> Picture:  # fmt: skip
    """Draw a panel for every component, with one key and one pair of labels for all."""
    across = 2 if len(parts) <= 4 else 3
    rows = -(-len(parts) // across)
    ax = canvas.paper(ax, canvas.COLUMN, 0.8 + 1.2 * rows)
    *places, strip = canvas.divided(ax, rows, across, len(parts), 0.4)
    labelled, panels, entries = across * (rows // 2), [], _signs(parts)
    for j, (part, place) in enumerate(zip(parts, places, strict=True)):
        chart, (xlabel, ylabel) = Chart(place), frame.labels(part.subject)
        draw(chart, part)
        entries |= chart.entries
        corner = j == across * (rows - 1)  # the axes say once what they show
        chart.axes(xlabel * corner, ylabel * (j == labelled), size=canvas.SMALL)
        if not frame.scale.log_odds:
            place.set_xticks([0.0, 0.5, 1.0], ["0", "0.5", "1"])
        place.tick_params(labelbottom=j + across >= len(parts), labelleft=j % across == 0)
        name = f"{part.names[0]}\n{p_equals(part.tests[0].shown_p)}"
        chart.mark("name", heading(place, name, start="axes fraction"))
        panels.append(Picture(place, chart.artists))
    legend = key(strip, entries | common, loc="upper left")
    artists = {"key": legend, "foot": foot(strip, text, recipe, legend, places[labelled])}
    return Picture(ax, artists, tuple(panels), text)


def _signs(parts: Sequence[ReliabilityCurve]) -> dict[str, Handle]:
    """Return what the key says of marks and bars, those of any panel."""
    first, outside = parts[0], np.concatenate([part.outside for part in parts])
    entries: dict[str, Handle] = {}
    bars = first.band != "none"
    if not outside.all():
        entries["inside its bar" if bars else "one bin"] = sign(filled=False)
    if outside.any():
        entries["outside its bar"] = sign()
    if bars:
        entries[_meaning(first, ", all bars")] = sign("|", RED if first.is_consistency else INK)
    return entries


def _panel(
    chart: Chart, curve: ReliabilityCurve, frame: Frame, tallest: float, truth: Truth | None
) -> None:
    """Draw the cells of one component with their bars, and columns or the histogram behind."""
    ink = Style(color=RED) if curve.is_consistency else Style(color=INK, lw=0.8)
    scale, ax = frame.scale, chart.ax
    if frame.deviation:
        chart.rule("zero", lw=0.7, zorder=1)
        shares = _shares(scales.behind(ax, tallest), curve, frame)
        chart.mark("histogram", shares, f"rows (tallest column {in_percent(tallest)})")
    elif not scale.log_odds:  # a column has no foot on an axis of log-odds
        left, width, y = curve.bin_low, curve.bin_high - curve.bin_low, curve.observed
        style = Style(align="edge", linewidth=0.5, edgecolor=BLUE, color=PALE)
        chart.mark("columns", ax.bar(left, y, width, **style), "observed")
        style |= {"color": "none", "edgecolor": "#d9756d", "hatch": "////", "bottom": y}
        gaps = ax.bar(left, curve.predicted - y, width, **style)
        chart.mark("gaps", gaps, "gap to prediction")
    if not frame.deviation:
        chart.diagonal(frame.x)
    frame.begin(chart, truth)
    x, values = np.clip(scale(curve.predicted), *frame.x), (curve.observed, curve.low, curve.high)
    y, low, high = (frame.height(v, curve.predicted) for v in values)
    chart.artists |= marks.cells(ax, frame, x, y, low, high, curve.count, curve.outside, bar=ink)


def _meaning(curve: ReliabilityCurve, together: str = "") -> str:
    meaning = "if calibrated" if curve.is_consistency else "for the truth"
    return f"{100 * curve.level:g} % {meaning}{together if curve.simultaneous else ''}"


def _frame(
    curves: Sequence[ReliabilityCurve], scale: Scale, deviation: bool, whole: bool,
    top: float | None = None,
) -> Frame:  # fmt: skip
    """Return the frame that curves share: that of all probabilities, or of those that occur."""
    ends = (0.0, 1.0)
    if scale.log_odds:
        values = np.concatenate([scale(v) for c in curves for v in (c.predicted, c.observed)])
        values = values[np.isfinite(values)] if np.isfinite(values).any() else np.zeros(1)
        ends = float(values.min() - 0.6), float(values.max() + 0.6)
    elif not whole:
        low, high = [c.bin_low.min() for c in curves], [c.bin_high.max() for c in curves]
        ends = scales.tenths(min(low), max(high))
    if not deviation:
        return Frame(ends, ends, scale, deviation)
    gap = Frame(ends, (-1.0, 1.0), scale).height
    if top is None:
        sides = [[gap(v, c.predicted) for v in (c.observed, c.low, c.high)] for c in curves]
        top = max(marks.reach(c.count, *side) for c, side in zip(curves, sides, strict=True))
    return Frame(ends, (-top, top), scale)


def _shares(ax: Axes, curve: ReliabilityCurve, frame: Frame) -> BarContainer:
    """Draw the shares of the bins under their marks."""
    far = 0.5 * (frame.x[1] - frame.x[0])
    ends = frame.scale([curve.bin_low, curve.bin_high])
    low, high = np.clip(ends, frame.x[0] - far, frame.x[1] + far)
    width = np.maximum(high - low, 0.01 * far)
    return scales.columns(ax, 0.5 * (low + high - width), width, curve.count / curve.count.sum())


def comparison(
    curves: Sequence[ReliabilityCurve], ax: Axes | None = None, *, names: Sequence[str],
    recipe: bool = True,
) -> Picture:  # fmt: skip
    """Draw the deviations of several models in one diagram, each with its own bars.

    Two to five curves of one component, made with the same lens and bins; the recipe is that of the
    first. Neighbouring bins are connected; a line never crosses an empty bin. Filled marks lie
    outside their bars; those beyond the frame are as in :func:`reliability`. The artists "marks",
    "lines", "bars" and "edge" are lists with one item a model.
    """
    if not 2 <= len(curves) <= len(STYLES) or any(len(c.names) > 1 for c in curves):
        raise StatisticError(
            f"a comparison draws 2 to {len(STYLES)} curves of one component each; pick components "
            "with curve.of(j)"
        )
    if len({(c.lens, c.bins) for c in curves}) > 1:
        raise StatisticError("the curves must have the same lens and the same bins")
    if len(names) != len(curves):
        raise StatisticError(f"{len(curves)} curves need as many names, not {len(names)}")
    chart, first = Chart.of(ax, 3.0), curves[0]
    frame = _frame(curves, Scale(), deviation=True, whole=first.subject != "top")
    _models(chart, frame, first.subject)
    spread = 0.009 * (np.arange(len(curves)) - 0.5 * (len(curves) - 1))
    pale = Style(lw=0.9, alpha=0.55, zorder=1.5)
    for name, curve, shift, style in zip(names, curves, spread, STYLES, strict=False):
        (color, marker, line), test = style, curve.tests[0]
        look = Style(color=color, marker=marker, line=line, neighbours=curve.cell)
        look |= {"bar": pale | {"color": color}, "shift": shift}
        low, high = curve.low - curve.predicted, curve.high - curve.predicted
        bins = curve.predicted, curve.deviation, low, high, curve.count, curve.outside
        for kind, artist in marks.cells(chart.ax, frame, *bins, **look).items():
            chart.artists.setdefault(kind, []).append(artist)
        words = f"{name}: ECE {test.shown_estimate}, {p_equals(test.shown_p)}"
        chart.entries[words] = sign(marker, color, line=line)
    if first.band != "none":
        chart.entries[_meaning(first)] = sign("|", GREY)
        chart.entries["inside its bar"] = sign(color=GREY, filled=False)
    far = frame.beyond(np.concatenate([c.deviation for c in curves]))
    chart.entries |= marks.entries(np.concatenate([c.count for c in curves]), far)
    return chart.finish(first.recipe, recipe)


def _models(chart: Chart, frame: Frame, subject: str, ylabel: str = "") -> None:
    """Draw the axes of a diagram of several models, and the line of no deviation."""
    frame.begin(chart, None)
    chart.rule("", lw=0.7, zorder=1)
    xlabel, usual = frame.labels(subject)
    chart.axes(xlabel, ylabel or usual)


def difference(
    curve: ReliabilityDifference, ax: Axes | None = None, *, recipe: bool = True
) -> Picture:
    """Draw the difference of the deviations of two models, with its band.

    Marks are filled where the band leaves out 0. The artists are "marks", "lines", "bars", "edge".
    """
    chart, count = Chart.of(ax, 2.6), curve.count_a + curve.count_b
    x, heights = curve.predicted, (curve.difference, curve.low, curve.high)
    top, away = marks.reach(count, *heights), (curve.low > 0.0) | (curve.high < 0.0)
    ends = scales.tenths(x.min(), x.max()) if curve.subject == "top" else (0.0, 1.0)
    frame = Frame(ends, (-top, top))
    _models(chart, frame, curve.subject, "difference of deviations")
    bins = x, *heights, count, away
    chart.artists |= marks.cells(chart.ax, frame, *bins, neighbours=curve.cell, bar={"color": BLUE})
    chart.entries |= {"differs from 0": sign(), "may be 0": sign(filled=False)}
    chart.entries[f"{100 * curve.level:g} % interval"] = sign("|", BLUE)
    chart.entries |= marks.entries(count, frame.beyond(curve.difference))
    return chart.finish(curve.recipe, recipe, headline=" − ".join(curve.names))
