"""Reliability diagrams: in bins, on the triangle, of one model and of several.

:func:`reliability` draws the curves of one model, :func:`comparison` of several, :func:`simplex`
three or four classes. Marks beyond the frame become arrows, and their share is stated.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from itertools import combinations
from typing import TYPE_CHECKING, Literal

import numpy as np

from caltest._base import BoolArray, FloatArray
from caltest.errors import StatisticError
from caltest.plots import chart as scales
from caltest.plots.chart import (
    BLUE,
    DASHED,
    GREY,
    INK,
    PALE,
    RED,
    SMALL_PRINT,
    Chart,
    Frame,
    Picture,
    Scale,
    Style,
    Truth,
    foot,
    heading,
    headline,
    key,
    lines,
    room,
    sign,
    wide,
)
from caltest.results import ReliabilityCurve, ReliabilityDifference, ReliabilitySimplex
from caltest.results.rendering import in_percent, p_is

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.collections import PolyCollection
    from matplotlib.colorbar import Colorbar
    from matplotlib.container import BarContainer
    from matplotlib.text import Text

    from caltest.plots.chart import Handle, Line


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

    The picture has the artists "marks", "bars", "histogram", "edge", "key" and, where drawn,
    "columns", "gaps", "truth"; with several components its ``panels`` have them.

    Parameters
    ----------
    curve : ReliabilityCurve
        The bins of all components (classes or subgroups).
    ax : matplotlib axes, optional
        Where to draw; by default a new figure.
    style : {"deviation", "classical"}, default "deviation"
        ``"deviation"``: observed − predicted against the prediction, as marks with an area by
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
    recipe : bool, default True
        Whether to print the method below the picture.
    """
    scale, deviation = scales.chosen(style, axis)
    components, several = np.arange(len(curve.names)), len(curve.names) > 1
    if components.size > most:
        components = np.sort(np.argsort([t.pvalue for t in curve.tests], kind="stable")[:most])
    parts = [curve.of(int(j)) for j in components]
    whole = not deviation or several or curve.subject != "top"
    frame = _shared_frame(parts, scale, deviation, whole, top)
    tallest = max(c.count.max() / c.count.sum() for c in parts)
    draw = partial(_panel, frame=frame, tallest=float(tallest), truth=truth)
    heights = [frame.height(c.observed, c.predicted) for c in parts]
    count = np.concatenate([c.count for c in parts])
    # The histogram says how many rows there are
    common = scales.entries(count, frame.beyond(np.concatenate(heights)), sized=False)
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
        upper.axes("", "Share")
        upper.ax.tick_params(labelbottom=False)
        predicted, observed = (float(scale(mean(v))) for v in (curve.predicted, curve.observed))
        chart.artists["means"] = [
            upper.rule("", "mean prediction", x=predicted, color=INK, ls=DASHED, lw=1.0),
            upper.rule("", "mean outcome", x=observed, color=RED, lw=1.0),
        ]
    chart.axes(*frame.labels(curve.subject, curve.event_name))
    return chart.finish(curve.recipe, recipe, headline=headline(curve.tests[0]))


def _panels(parts: Sequence[ReliabilityCurve], ax: Axes | None, draw: Callable[..., None],
            frame: Frame, common: dict[str, Handle], text: str,
            recipe: bool) -> Picture:  # fmt: skip
    """Draw one panel for each component by ``draw``, with a common key and common axis labels.

    ``parts`` are the curves of the components; ``draw(chart, curve)`` draws one of them on its
    axes. ``frame`` has the limits of all axes and their scale. ``common`` are entries of the key,
    symbols by words; ``text`` is the recipe, which is shown only if ``recipe``. Without ``ax`` it
    makes a new figure.
    """
    across = 2 if len(parts) <= 4 else 3
    rows = -(-len(parts) // across)
    ax = scales.paper(ax, scales.COLUMN, 0.8 + 1.2 * rows)
    *places, strip = scales.divided(ax, rows, across, len(parts), 0.4)
    labelled, panels, entries = across * (rows // 2), [], _signs(parts)
    for j, (part, place) in enumerate(zip(parts, places, strict=True)):
        chart, (xlabel, ylabel) = Chart(place), frame.labels(part.subject, part.event_name)
        draw(chart, part)
        entries |= chart.entries
        corner = j == across * (rows - 1)  # the axes say once what they show
        chart.axes(xlabel * corner, ylabel * (j == labelled), size=scales.SMALL_PRINT)
        if not frame.scale.log_odds:
            place.set_xticks([0.0, 0.5, 1.0], ["0", "0.5", "1"])
        place.tick_params(labelbottom=j + across >= len(parts), labelleft=j % across == 0)
        name = f"{part.names[0]}\n{p_is(part.tests[0].shown_p)}"
        chart.mark("name", heading(place, name, start="axes fraction"))
        panels.append(Picture(place, chart.artists))
    legend = key(strip, entries | common, loc="upper left")
    artists = {"key": legend, "foot": foot(strip, text, recipe, legend, places[labelled])}
    return Picture(ax, artists, tuple(panels), text)


def _signs(parts: Sequence[ReliabilityCurve]) -> dict[str, Handle]:
    """Return the key's symbols, by words, for points and bars that occur in any component.

    ``parts`` are the curves of the components.
    """
    first, outside = parts[0], np.concatenate([part.outside for part in parts])
    entries: dict[str, Handle] = {}
    bars = first.band != "none"
    if not bars:
        entries["one bin"] = sign(filled=False)
    if outside.any():
        entries["outside its bar"] = sign()
    if bars:
        entries[_meaning(first, ", all bars")] = sign("|", RED if first.is_consistency else INK)
    return entries


def _panel(
    chart: Chart, curve: ReliabilityCurve, frame: Frame, tallest: float, truth: Truth | None
) -> None:
    """Draw the cells of one component with their bars, in front of a histogram.

    ``chart`` is the panel under construction, ``curve`` has the bins. ``frame`` has the limits of
    the axes and their scale; ``tallest`` is the highest share of a histogram column, the same in
    all panels. ``truth`` maps predictions to true probabilities, drawn as a line, or is None.
    """
    ink = Style(color=RED) if curve.is_consistency else Style(color=INK, lw=0.8)
    scale, ax = frame.scale, chart.ax
    if frame.deviation:
        chart.rule("zero", lw=0.7, zorder=1)
        shares = _shares(scales.behind(ax, tallest), curve, frame)
        chart.mark("histogram", shares, f"rows (up to {in_percent(tallest)})")
    elif not scale.log_odds:  # a column has no foot on an axis of log-odds
        left, width, y = curve.bin_low, curve.bin_high - curve.bin_low, curve.observed
        style = Style(align="edge", linewidth=0.5, edgecolor=BLUE, color=PALE)
        chart.mark("columns", ax.bar(left, y, width, **style))
        style |= {"color": "none", "edgecolor": "#d9756d", "hatch": "////", "bottom": y}
        gaps = ax.bar(left, curve.predicted - y, width, **style)
        chart.mark("gaps", gaps, "gap to prediction")
    if not frame.deviation:
        chart.diagonal(frame.x)
    frame.begin(chart, truth)
    x, values = np.clip(scale(curve.predicted), *frame.x), (curve.observed, curve.low, curve.high)
    y, low, high = (frame.height(v, curve.predicted) for v in values)
    chart.artists |= scales.cells(ax, frame, x, y, low, high, curve.count, curve.outside, bar=ink)


def _meaning(curve: ReliabilityCurve, together: str = "") -> str:
    meaning = "under calibration" if curve.is_consistency else "for the truth"
    return f"{100 * curve.level:g} % {meaning}{together if curve.simultaneous else ''}"


def _shared_frame(
    curves: Sequence[ReliabilityCurve], scale: Scale, deviation: bool, whole: bool,
    top: float | None = None,
) -> Frame:  # fmt: skip
    """Return a frame for several curves: the limits of both axes, their scale, and their kind.

    It covers all probabilities if ``whole``, else the range that occurs, on the given ``scale`` of
    probabilities or log-odds. ``deviation`` shows observed − predicted; ``top`` fixes the half
    height of that axis, None to show the bins of 99 % of the rows.
    """
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
        top = max(scales.reach(c.count, *side) for c, side in zip(curves, sides, strict=True))
    return Frame(ends, (-top, top), scale)


def _shares(ax: Axes, curve: ReliabilityCurve, frame: Frame) -> BarContainer:
    """Draw the share of rows in each bin of ``curve`` as columns; return them.

    ``ax`` are the axes of the histogram, ``frame`` has the limits of the horizontal axis and its
    scale.
    """
    far = 0.5 * (frame.x[1] - frame.x[0])
    ends = frame.scale([curve.bin_low, curve.bin_high])
    low, high = np.clip(ends, frame.x[0] - far, frame.x[1] + far)
    width = np.maximum(high - low, 0.01 * far)
    return scales.columns(ax, 0.5 * (low + high - width), width, curve.count / curve.count.sum())


def comparison(
    curves: Sequence[ReliabilityCurve], ax: Axes | None = None, *, names: Sequence[str],
    recipe: bool = True,
) -> Picture:  # fmt: skip
    """Draw observed − predicted of several models in one diagram, each with its own bars.

    ``curves`` are two to five curves of one component, made with the same lens and bins, and
    ``names`` the models; StatisticError otherwise. Neighbouring bins are connected; a line never
    crosses an empty bin. Filled marks lie outside their bars; those beyond the frame are as in
    :func:`reliability`. The artists "marks", "lines", "bars" and "edge" are lists with one item a
    model. Without ``ax`` it makes a new figure; ``recipe`` prints the method of the first curve
    below it.
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
    frame = _shared_frame(curves, Scale(), deviation=True, whole=first.subject != "top")
    _axes_of_models(chart, frame, first)
    spread = 0.009 * (np.arange(len(curves)) - 0.5 * (len(curves) - 1))
    pale = Style(lw=0.9, alpha=0.55, zorder=1.5)
    for name, curve, shift, style in zip(names, curves, spread, STYLES, strict=False):
        (color, marker, line), test = style, curve.tests[0]
        look = Style(color=color, marker=marker, line=line, neighbours=curve.cell)
        look |= {"bar": pale | {"color": color}, "shift": shift}
        low, high = curve.low - curve.predicted, curve.high - curve.predicted
        bins = curve.predicted, curve.deviation, low, high, curve.count, curve.outside
        for kind, artist in scales.cells(chart.ax, frame, *bins, **look).items():
            chart.artists.setdefault(kind, []).append(artist)
        words = f"{name}: ECE {test.shown_estimate}, {p_is(test.shown_p)}"
        chart.entries[words] = sign(marker, color, line=line)
    if first.band != "none":
        chart.entries[_meaning(first)] = sign("|", GREY)
        chart.entries["inside its bar"] = sign(color=GREY, filled=False)
    far = frame.beyond(np.concatenate([c.deviation for c in curves]))
    chart.entries |= scales.entries(np.concatenate([c.count for c in curves]), far)
    return chart.finish(first.recipe, recipe)


def _axes_of_models(
    chart: Chart, frame: Frame, curve: ReliabilityCurve | ReliabilityDifference, ylabel: str = ""
) -> None:
    """Draw the axes of a diagram of several models, and the line of no difference.

    ``chart`` is the picture under construction, ``frame`` has limits and scale, and ``curve`` what
    the labels name: the lens and the event. ``ylabel`` replaces the usual label of the vertical
    axis.
    """
    frame.begin(chart, None)
    chart.rule("", lw=0.7, zorder=1)
    xlabel, usual = frame.labels(curve.subject, curve.event_name)
    chart.axes(xlabel, ylabel or usual)


def difference(
    curve: ReliabilityDifference, ax: Axes | None = None, *, recipe: bool = True
) -> Picture:
    """Draw the difference of observed − predicted of two models, first − second, with its band.

    ``curve`` has it in bins. Marks are filled where the band leaves out 0. The picture has the
    artists "marks", "lines", "bars" and "edge". Without ``ax`` it makes a new figure; ``recipe``
    prints the method below it.
    """
    chart, count = Chart.of(ax, 2.6), curve.count_a + curve.count_b
    x, heights = curve.predicted, (curve.difference, curve.low, curve.high)
    top, away = scales.reach(count, *heights), (curve.low > 0.0) | (curve.high < 0.0)
    ends = scales.tenths(x.min(), x.max()) if curve.subject == "top" else (0.0, 1.0)
    frame = Frame(ends, (-top, top))
    _axes_of_models(chart, frame, curve, "Difference")
    bins = x, *heights, count, away
    chart.artists |= scales.cells(
        chart.ax, frame, *bins, neighbours=curve.cell, bar={"color": BLUE}
    )
    chart.entries |= {"differs from 0": sign(), "may be 0": sign(filled=False)}
    chart.entries[f"{100 * curve.level:g} % interval"] = sign("|", BLUE)
    chart.entries |= scales.entries(count, frame.beyond(curve.difference))
    return chart.finish(curve.recipe, recipe, headline=" − ".join(curve.names))


# ------------------------------------------------------------------------------
# Reliability on the triangle, and in the tetrahedron.


#: Where the corners of the triangle lie, and those of a tetrahedron seen from above one edge.
TRIANGLE: FloatArray = np.array([[0.0, 0.0], [1.0, 0.0], [0.5, 0.75**0.5]])


TETRAHEDRON: FloatArray = np.array([[0.0, 0.1], [0.65, 0.0], [1.0, 0.22], [0.45, 0.85]])


#: Densities of a smaller ratio would be written over each other.
CONTOUR_RATIO = 1.5


#: Cells may not be thinner than this share of the triangle when their density is shown.
THIN = 1e-3


def simplex(
    cells: ReliabilitySimplex, ax: Axes | None = None, *, min_count: int = 5, recipe: bool = True
) -> Picture:
    """Draw predictions and outcomes of three classes on the triangle, or of four in a tetrahedron.

    ``cells`` has the cells of a partition. A dot is the average prediction in a cell, with an area
    by its rows, and an arrow leads from there to the frequencies of the outcomes. Cells that
    deviate more than chance allows are outlined and have filled black dots and heavy arrows with a
    white halo; the others are hollow and grey. Cells of fewer than ``min_count`` rows have no
    arrow, for it would show chance only (Vaicenavicius et al. 2019, Fig. 1). Cells of the triangle
    are coloured by the density of predictions, on a logarithmic scale; white is empty. The
    tetrahedron is a view from outside: what points towards the eye looks short. The picture has the
    artists "arrows", "dots", "corners", "key" and, for three classes, "cells", "marked" and
    "colorbar". Without ``ax`` it makes a new figure; ``recipe`` prints the method below it.
    """
    corners = TRIANGLE if len(cells.names) == 3 else TETRAHEDRON
    chart = Chart.of(ax, 3.5)
    ax = chart.ax
    ax.set_axis_off()
    ax.set_aspect("equal", adjustable="datalim")
    if len(cells.names) == 3:
        _density(chart, cells)
    for i, j in combinations(range(len(corners)), 2):
        chart.line("", *corners[[i, j]].T, zorder=1, **_edge(i, j, len(corners)))
    ax.update_datalim([(-0.06, -0.08), (1.06, corners[:, 1].max() + 0.07)])
    ax.margins(0.0)
    _arrows(chart, cells, corners, min_count)
    chart.artists["corners"] = _corners(ax, cells.names, corners)
    return chart.finish(cells.recipe, recipe, headline=headline(cells.test), shift=0.0)


def _edge(i: int, j: int, n_corners: int) -> Style:
    """Return the line style of the edge from corner i to corner j of the triangle or tetrahedron.

    In a tetrahedron near edges are heavy and the hidden one is dashed: corner 1 is nearest to the
    eye, and the edge from corner 0 to 2 lies behind the others. ``n_corners`` is 3 or 4.
    """
    if n_corners == 3:
        return {}
    if (i, j) == (0, 2):
        return Style(color="#b0b0b0", ls=DASHED, lw=0.7)
    return Style(color=INK, lw=1.2) if 1 in (i, j) else Style(color="#707070", lw=0.8)


def _density(chart: Chart, cells: ReliabilitySimplex) -> None:
    """Draw the cells of the triangle, coloured by the density of predictions; uniform is 1.

    ``chart`` is the picture under construction. ``cells`` has the ranges of the cells, their rows,
    and which are significant: these are outlined.
    """
    from matplotlib import colormaps
    from matplotlib.collections import PolyCollection
    from matplotlib.colors import ListedColormap, LogNorm

    boxes = zip(cells.bin_low, cells.bin_high, strict=True)
    polygons = [clipped(low, high) @ TRIANGLE for low, high in boxes]
    areas = np.array([_area(polygon) for polygon in polygons]) / _area(TRIANGLE)
    density = cells.count / cells.n / np.maximum(areas, THIN)
    norm = LogNorm(min(0.9 * density.min(), 0.1 * density.max()), 1.1 * density.max())
    # the lighter half of the blues, so that arrows stand out, in grey as well
    blues = ListedColormap(colormaps["Blues"](np.linspace(0.05, 0.5, 256)))
    shades = PolyCollection(polygons, array=density, norm=norm, cmap=blues, zorder=0,
                            edgecolors="#7f7f7f", linewidths=0.5)  # fmt: skip
    chart.mark("cells", chart.ax.add_collection(shades))
    significant = [polygons[j] for j in np.flatnonzero(cells.significant)]
    outlines = PolyCollection(significant, facecolors="none", edgecolors=INK, linewidths=1.1,
                              zorder=2.5)  # fmt: skip
    chart.mark("marked", chart.ax.add_collection(outlines))
    chart.artists["colorbar"] = _colorbar(chart.ax, shades, density)


def _area(polygon: FloatArray) -> float:
    x, y = polygon.T  # the shoelace formula
    return 0.5 * abs(float(x @ np.roll(y, -1) - y @ np.roll(x, -1)))


def _colorbar(ax: Axes, shades: PolyCollection, density: FloatArray) -> Colorbar:
    """Draw the colour scale of the density in the empty upper right corner; return it.

    ``shades`` are the coloured cells on ``ax``, ``density`` (L,) the values of the L cells.
    """
    place = ax.inset_axes((0.87, 0.45, 0.035, 0.3), transform=ax.transData)
    bar = ax.figure.colorbar(shades, cax=place)
    low, high = (float(f"{d:.2g}") for d in (density.min(), density.max()))
    ends = [high] if high < CONTOUR_RATIO * low else [low, high]
    bar.set_ticks(ends, labels=[f"{end:g}" for end in ends], minor=False)
    bar.minorticks_off()
    bar.ax.tick_params(labelsize=SMALL_PRINT, length=1.5, width=0.5, pad=1.5)
    bar.outline.set_linewidth(0.4)
    place.set_title("density", fontsize=SMALL_PRINT, pad=3)
    return bar


def clipped(low: FloatArray, high: FloatArray) -> FloatArray:
    """Return the m corners, in order, of the part of the triangle with low ≤ p ≤ high, (m, 3).

    ``low`` and ``high`` (3,) are limits of the probabilities p of three classes; (0, 3) if no p
    fits.
    """
    corners = np.eye(3)
    for k in range(3):
        for way, bound in ((1.0, low[k]), (-1.0, -high[k])):
            corners = _half(corners, way * corners[:, k] - bound)
            if not len(corners):
                break
    return corners


def _half(corners: FloatArray, height: FloatArray) -> FloatArray:
    """Return the part of a polygon on one side of a line (Sutherland 1974).

    ``corners`` (m, 3) are its corners in order, ``height`` (m,) their signed distances from the
    line; the side with distances ≥ 0 is kept.
    """
    polygon = []
    following = np.roll(corners, -1, 0), height, np.roll(height, -1)
    for a, b, u, v in zip(corners, *following, strict=True):
        if u >= 0.0:
            polygon.append(a)
        if (u > 0.0 > v) or (u < 0.0 < v):
            polygon.append(a + (b - a) * (u / (u - v)))
    return np.array(polygon).reshape(-1, 3)


def _arrows(chart: Chart, cells: ReliabilitySimplex, corners: FloatArray, min_count: int) -> None:
    """Draw arrows from predictions to outcomes with dots at their start, significant ones last.

    ``chart`` is the picture under construction. ``cells`` has predictions and frequencies, and
    which cells are significant. ``corners`` (K, 2) are the positions of the K classes in the
    picture; cells of fewer than ``min_count`` rows have no arrow unless they are significant.
    """
    significant = cells.significant
    few = (cells.count < min_count) & ~significant
    fine = 0.65 if few.size > 36 else 1.0
    kinds: dict[str, tuple[BoolArray, str, str, Style]] = {
        "few": (few, "#808080", "#808080", {}),
        "chance": (~few & ~significant, "#808080", "white", {"width": 0.005 * fine, "zorder": 3}),
        "significant": (significant, INK, INK, {"width": 0.009, "edgecolor": "white", "zorder": 5}),
    }
    size = 30.0 * fine**2 * np.maximum(0.15, cells.count / cells.count.max())
    units = {"angles": "xy", "scale_units": "xy", "scale": 1.0, "units": "width"}
    heads = {"headwidth": 3.6, "headlength": 4.5, "headaxislength": 4.0}
    artists, entries = chart.artists, chart.entries
    artists |= {"arrows": {}, "dots": {}}
    for name, (rows, color, face, style) in kinds.items():
        tails, ways = (cells.predicted[rows] @ corners).T, (cells.deviation[rows] @ corners).T
        dots = Style(s=size[rows] if style else 2.0, linewidths=0.6, zorder=4)
        artists["dots"][name] = chart.ax.scatter(*tails, facecolors=face, edgecolors=color, **dots)
        if style:
            look = Style(edgecolor="none", linewidth=0.5, minlength=0.5, minshaft=1.0)
            look |= {"color": color, **units, **heads, **style}
            artists["arrows"][name] = chart.ax.quiver(*tails, *ways, **look)
    if significant.any():
        entries["predicted → observed: beyond chance"] = sign("o", INK, line="-")
    entries["within chance"] = sign("o", GREY, filled=False, line="-")
    entries["area: rows"] = sign(color="#808080")
    if few.any():
        entries[f"< {min_count} rows"] = sign(".", "#808080")


def _corners(ax: Axes, names: tuple[str, ...], corners: FloatArray) -> list[Text]:
    """Write the names of the classes at the corners of the triangle; return the texts.

    ``corners`` (K, 2) are their positions on ``ax``.
    """
    style, texts = Style(fontsize=SMALL_PRINT, parse_math=False), []
    for name, (x, y) in zip(names, corners, strict=True):
        middle = wide(name) < 50.0 or 0.1 < x < 0.9
        ha = "center" if middle else "left" if x < 0.5 else "right"
        va, away = ("bottom", 0.04) if y > 0.25 else ("top", -0.03)
        words = lines(name, 0.45 * room(ax))
        texts.append(ax.text(x, y + away, words, ha=ha, va=va, **style))
    return texts
