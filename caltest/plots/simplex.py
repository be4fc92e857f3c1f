"""Reliability on the triangle."""

from __future__ import annotations

from typing import Any

import numpy as np

from caltest.errors import StatisticError
from caltest.plots import canvas
from caltest.plots.canvas import GREY, INK, RED, Picture
from caltest.predictions import FloatArray
from caltest.results import ReliabilitySimplex

#: Where the corners of the triangle lie.
TRIANGLE: FloatArray = np.array([[0.0, 0.0], [1.0, 0.0], [0.5, 0.75**0.5]])


def triangle(
    simplex: ReliabilitySimplex, ax: Any = None, *, min_count: int = 5, recipe: bool = True
) -> Picture:
    """Draw predictions and outcomes of three classes on the triangle.

    Cells are coloured by the share of predictions in them, on a logarithmic scale; white is empty.
    An arrow leads from the average prediction in a cell to the frequencies of the outcomes. Cells
    that deviate more than chance allows are outlined and have heavy red arrows; arrows of cells
    with few rows are thin and grey (Vaicenavicius et al. 2019, Fig. 1).

    Parameters
    ----------
    simplex : ReliabilitySimplex
        What :func:`caltest.reliability_simplex` returned, for three classes.
    ax, recipe
        As for every picture.
    min_count : int, default 5
        Cells with fewer rows have muted arrows.

    Returns
    -------
    Picture
        With the artists "cells", "marked", "arrows", "colorbar", "corners".
    """
    if len(simplex.names) != 3:
        raise StatisticError(
            f"a triangle has three corners, not {len(simplex.names)}: {', '.join(simplex.names)}"
        )
    from matplotlib.collections import PolyCollection
    from matplotlib.colors import LogNorm

    ax = canvas.paper(ax, canvas.COLUMN, 3.15)
    ax.set_axis_off()
    ax.set_aspect("equal")
    boxes = zip(simplex.bin_low, simplex.bin_high, strict=True)
    polygons = [_clipped(low, high) @ TRIANGLE for low, high in boxes]
    loud = [polygons[j] for j in np.flatnonzero(simplex.significant)]
    cells = PolyCollection(
        polygons,
        array=simplex.count / simplex.n,
        norm=LogNorm(0.9 / simplex.n, simplex.count.max() / simplex.n),
        cmap=_shades(),
        edgecolors="white",
        linewidths=0.4,
    )
    ax.add_collection(cells)
    marked = PolyCollection(loud, facecolors="none", edgecolors=INK, linewidths=1.1, zorder=2.5)
    ax.add_collection(marked)
    ax.plot(*TRIANGLE[[0, 1, 2, 0]].T, color=INK, linewidth=0.8, solid_joinstyle="round")
    ax.set(xlim=(-0.06, 1.06), ylim=(-0.08, 0.75**0.5 + 0.07))
    artists: dict[str, Any] = {
        "cells": cells,
        "marked": marked,
        "arrows": _arrows(ax, simplex, min_count),
        "corners": _corners(ax, simplex.names),
        "colorbar": _colorbar(ax, cells, simplex),
        "headline": canvas.headline(ax, simplex.test),
    }
    return canvas.finished(ax, artists, simplex.recipe, recipe)


def _colorbar(ax: Any, cells: Any, simplex: ReliabilitySimplex) -> Any:
    """Draw the scale of the shares in the empty corner at the upper right."""
    place = ax.inset_axes((0.86, 0.5, 0.035, 0.4))
    bar = ax.figure.colorbar(cells, cax=place)
    least, most = 1.0 / simplex.n, simplex.count.max() / simplex.n
    ticks = np.array([10.0**-k for k in range(9, -1, -1) if least <= 10.0**-k <= most])
    if len(ticks) < 2:
        ticks = np.array([least, most])
    bar.set_ticks(ticks, labels=[f"{t:.2g}" for t in ticks], minor=False)
    bar.minorticks_off()
    bar.ax.tick_params(labelsize=canvas.TICK - 1.0, length=1.5, width=0.5, pad=1.5)
    bar.outline.set_linewidth(0.4)
    place.set_title("share", fontsize=canvas.TICK - 1.0, pad=3)
    return bar


def _shades() -> Any:
    """The lighter half of the blues, so that arrows stand out, in grey as well."""
    from matplotlib import colormaps
    from matplotlib.colors import ListedColormap

    return ListedColormap(colormaps["Blues"](np.linspace(0.05, 0.5, 256)))


def _clipped(low: FloatArray, high: FloatArray) -> FloatArray:
    """Return the corners of the part of the triangle with low ≤ p ≤ high, in order."""
    corners = np.eye(3)
    for k in range(3):
        for sign, bound in ((1.0, low[k]), (-1.0, -high[k])):
            corners = _half(corners, sign * corners[:, k] - bound)
            if not len(corners):
                break
    return corners


def _half(corners: FloatArray, height: FloatArray) -> FloatArray:
    """Cut a polygon along a line; ``height`` is the corners' distance from it (Sutherland 1974)."""
    kept = []
    following = np.roll(corners, -1, 0), height, np.roll(height, -1)
    for a, b, u, v in zip(corners, *following, strict=True):
        if u >= 0.0:
            kept.append(a)
        if (u > 0.0 > v) or (u < 0.0 < v):
            kept.append(a + (b - a) * (u / (u - v)))
    return np.array(kept).reshape(-1, 3)


def _arrows(ax: Any, simplex: ReliabilitySimplex, min_count: int) -> dict[str, Any]:
    """Draw the kinds of arrows, from the faintest to the loudest."""
    few, loud = simplex.count < min_count, simplex.significant
    many = few.size > 36
    fine, ink = (0.65, "#444444") if many else (1.0, INK)
    kinds = {
        "few": (few & ~loud, {"color": GREY, "width": 0.002 * fine, "zorder": 3}),
        "chance": (~few & ~loud, {"color": ink, "width": 0.004 * fine, "zorder": 4}),
        "significant": (loud, {"color": RED, "width": 0.008, "zorder": 5, "edgecolor": "white"}),
    }
    units = {"angles": "xy", "scale_units": "xy", "scale": 1.0, "units": "width"}
    heads = {"headwidth": 3.6, "headlength": 4.5, "headaxislength": 4.0}
    drawn = {}
    for name, (rows, style) in kinds.items():
        ends = (simplex.predicted[rows] @ TRIANGLE).T, (simplex.deviation[rows] @ TRIANGLE).T
        style = {"edgecolor": "none", "linewidth": 0.5, **units, **heads, **style}
        drawn[name] = ax.quiver(*ends[0], *ends[1], minshaft=1.0, minlength=0.5, **style)
    return drawn


def _corners(ax: Any, names: tuple[str, ...]) -> list[Any]:
    places = [(-0.01, -0.025, "center", "top"), (1.01, -0.025, "center", "top")]
    places.append((0.5, 0.75**0.5 + 0.015, "center", "bottom"))
    return [
        ax.text(x, y, name, ha=ha, va=va, fontsize=canvas.LABEL - 0.5)
        for name, (x, y, ha, va) in zip(names, places, strict=True)
    ]
