"""Reliability on the triangle, and in the tetrahedron."""

from __future__ import annotations

from itertools import combinations
from typing import TYPE_CHECKING

import numpy as np

from caltest.plots.canvas import INK, RED, SMALL, Picture, Style, room
from caltest.plots.chart import Chart
from caltest.plots.words import headline, lines, sign, wide
from caltest.predictions import BoolArray, FloatArray
from caltest.results import ReliabilitySimplex

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.collections import PolyCollection
    from matplotlib.colorbar import Colorbar
    from matplotlib.text import Text

#: Where the corners of the triangle lie, and those of a tetrahedron seen from above one edge.
TRIANGLE: FloatArray = np.array([[0.0, 0.0], [1.0, 0.0], [0.5, 0.75**0.5]])
TETRAHEDRON: FloatArray = np.array([[0.0, 0.1], [0.65, 0.0], [1.0, 0.22], [0.45, 0.85]])
#: Densities of a smaller ratio would be written over each other.
APART = 1.5
#: Cells may not be thinner than this share of the triangle when their density is shown.
THIN = 1e-3


def simplex(
    cells: ReliabilitySimplex, ax: Axes | None = None, *, min_count: int = 5, recipe: bool = True
) -> Picture:
    """Draw predictions and outcomes of three classes on the triangle, or of four in a tetrahedron.

    A dot is the average prediction in a cell, with an area by its rows, and an arrow leads from
    there to the frequencies of the outcomes. Cells that deviate more than chance allows are
    outlined and have filled dots and heavy red arrows; those of fewer than ``min_count`` rows have
    no arrow, for it would show chance only (Vaicenavicius et al. 2019, Fig. 1). Cells of the
    triangle are coloured by the density of predictions, on a logarithmic scale; white is empty. The
    tetrahedron is a view from outside: what points towards the eye looks short. The artists are
    "arrows", "dots", "corners", "key" and, for three classes, "cells", "marked" and "colorbar".
    """
    corners = TRIANGLE if len(cells.names) == 3 else TETRAHEDRON
    chart = Chart.of(ax, 3.5)
    ax = chart.ax
    ax.set_axis_off()
    ax.set_aspect("equal", adjustable="datalim")
    if len(cells.names) == 3:
        _density(chart, cells)
    for i, j in combinations(range(len(corners)), 2):
        chart.line("", *corners[[i, j]].T, zorder=1)
    ax.update_datalim([(-0.06, -0.08), (1.06, corners[:, 1].max() + 0.07)])
    ax.margins(0.0)
    _arrows(chart, cells, corners, min_count)
    chart.artists["corners"] = _corners(ax, cells.names, corners)
    return chart.finish(cells.recipe, recipe, headline=headline(cells.test), shift=0.0)


def _density(chart: Chart, cells: ReliabilitySimplex) -> None:
    """Draw the cells of the triangle by the density of the predictions in them; 1 is uniform."""
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
    """Draw the scale of the density in the empty corner at the upper right."""
    place = ax.inset_axes((0.87, 0.45, 0.035, 0.3), transform=ax.transData)
    bar = ax.figure.colorbar(shades, cax=place)
    low, high = (float(f"{d:.2g}") for d in (density.min(), density.max()))
    ends = [high] if high < APART * low else [low, high]
    bar.set_ticks(ends, labels=[f"{end:g}" for end in ends], minor=False)
    bar.minorticks_off()
    bar.ax.tick_params(labelsize=SMALL, length=1.5, width=0.5, pad=1.5)
    bar.outline.set_linewidth(0.4)
    place.set_title("density", fontsize=SMALL, pad=3)
    return bar


def clipped(low: FloatArray, high: FloatArray) -> FloatArray:
    """Return the corners of the part of the triangle with low ≤ p ≤ high, in order."""
    corners = np.eye(3)
    for k in range(3):
        for way, bound in ((1.0, low[k]), (-1.0, -high[k])):
            corners = _half(corners, way * corners[:, k] - bound)
            if not len(corners):
                break
    return corners


def _half(corners: FloatArray, height: FloatArray) -> FloatArray:
    """Cut a polygon along a line; ``height`` is the corners' distance from it (Sutherland 1974)."""
    polygon = []
    following = np.roll(corners, -1, 0), height, np.roll(height, -1)
    for a, b, u, v in zip(corners, *following, strict=True):
        if u >= 0.0:
            polygon.append(a)
        if (u > 0.0 > v) or (u < 0.0 < v):
            polygon.append(a + (b - a) * (u / (u - v)))
    return np.array(polygon).reshape(-1, 3)


def _arrows(chart: Chart, cells: ReliabilitySimplex, corners: FloatArray, min_count: int) -> None:
    """Draw arrows and the dots where they begin, the significant ones last."""
    significant = cells.significant
    few = (cells.count < min_count) & ~significant
    fine = 0.65 if few.size > 36 else 1.0
    kinds: dict[str, tuple[BoolArray, str, str, Style]] = {
        "few": (few, "#808080", "#808080", {}),
        "chance": (~few & ~significant, "#444444", "white", {"width": 0.005 * fine, "zorder": 3}),
        "significant": (significant, RED, RED, {"width": 0.009, "edgecolor": "white", "zorder": 5}),
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
        entries["predicted → observed, beyond chance"] = sign("o", RED, line="-")
    entries["predicted → observed, within chance"] = sign(filled=False, line="-")
    entries["larger: more rows"] = sign(color="#808080")
    if few.any():
        entries[f"fewer than {min_count} rows"] = sign(".", "#808080")


def _corners(ax: Axes, names: tuple[str, ...], corners: FloatArray) -> list[Text]:
    """Write the names below and above the corners; long ones begin or end there."""
    style, texts = Style(fontsize=SMALL, parse_math=False), []
    for name, (x, y) in zip(names, corners, strict=True):
        middle = wide(name) < 50.0 or 0.1 < x < 0.9
        ha = "center" if middle else "left" if x < 0.5 else "right"
        va, away = ("bottom", 0.04) if y > 0.25 else ("top", -0.03)
        words = lines(name, 0.45 * room(ax))
        texts.append(ax.text(x, y + away, words, ha=ha, va=va, **style))
    return texts
