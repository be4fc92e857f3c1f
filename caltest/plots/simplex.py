"""Reliability on the triangle and on the tetrahedron."""

from __future__ import annotations

from typing import Any

import numpy as np

from caltest.errors import StatisticError
from caltest.plots.canvas import (
    COLUMN,
    GREY,
    INK,
    LABEL,
    RED,
    TICK,
    Picture,
    foot,
    headline,
    paper,
)
from caltest.predictions import FloatArray
from caltest.results import ReliabilitySimplex

#: Where the corners of the triangle lie, and those of the tetrahedron.
TRIANGLE: FloatArray = np.array([[0.0, 0.0], [1.0, 0.0], [0.5, 0.75**0.5]])
TETRAHEDRON: FloatArray = np.array(
    [[1.0, 0.0, 0.0], [-0.5, 0.75**0.5, 0.0], [-0.5, -(0.75**0.5), 0.0], [0.0, 0.0, 2.0**0.5]]
)


def triangle(
    simplex: ReliabilitySimplex,
    ax: Any = None,
    *,
    min_count: int = 5,
    recipe: bool = True,
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
    ax : matplotlib axes, optional
        Where to draw; by default a new figure, one column (3.25 in) wide.
    min_count : int, default 5
        Cells with fewer rows have muted arrows.
    recipe : bool, default True
        Whether to write the recipe at the foot.

    Returns
    -------
    Picture
        With the artists "cells", "marked", "arrows", "colorbar", "corners".
    """
    if len(simplex.names) != 3:
        raise StatisticError(
            f"a triangle has three corners, not {len(simplex.names)}: {simplex.names}"
        )
    from matplotlib.collections import PolyCollection

    ax = paper(ax, COLUMN, 3.15)
    ax.set_axis_off()
    ax.set_aspect("equal")
    boxes = zip(simplex.lower, simplex.upper, strict=True)
    polygons = [_clipped(lower, upper) @ TRIANGLE for lower, upper in boxes]
    loud = [polygon for polygon, s in zip(polygons, simplex.significant, strict=True) if s]
    cells = PolyCollection(
        polygons,
        array=simplex.count / simplex.n,
        norm=_norm(simplex),
        cmap=_shades(),
        edgecolors="white",
        linewidths=0.4,
    )
    ax.add_collection(cells)
    marked = PolyCollection(loud, facecolors="none", edgecolors=INK, linewidths=1.1, zorder=2.5)
    ax.add_collection(marked)
    ax.plot(*TRIANGLE[[0, 1, 2, 0]].T, color=INK, linewidth=0.8, solid_joinstyle="round")
    ax.set_xlim(-0.06, 1.06)
    ax.set_ylim(-0.08, 0.75**0.5 + 0.07)
    artists: dict[str, Any] = {
        "cells": cells,
        "marked": marked,
        "arrows": _arrows(ax, simplex, min_count),
        "corners": _corners(ax, simplex.names),
        "colorbar": _colorbar(ax, cells, simplex),
        "headline": headline(ax, simplex.test),
        "foot": foot(ax, simplex.recipe, recipe),
    }
    return Picture(ax, artists, recipe=simplex.recipe)


def _norm(simplex: ReliabilitySimplex) -> Any:
    from matplotlib.colors import LogNorm

    return LogNorm(0.9 / simplex.n, simplex.count.max() / simplex.n)


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
    bar.ax.tick_params(labelsize=TICK - 1.0, length=1.5, width=0.5, pad=1.5)
    bar.outline.set_linewidth(0.4)
    place.set_title("share", fontsize=TICK - 1.0, pad=3)
    return bar


def _shades() -> Any:
    """The lighter half of the blues, so that arrows stand out, in grey as well."""
    from matplotlib import colormaps
    from matplotlib.colors import ListedColormap

    return ListedColormap(colormaps["Blues"](np.linspace(0.05, 0.5, 256)))


def _clipped(lower: FloatArray, upper: FloatArray) -> FloatArray:
    """Return the corners of the part of the triangle with lower ≤ p ≤ upper, in order."""
    corners = np.eye(3)
    for k in range(3):
        for sign, bound in ((1.0, lower[k]), (-1.0, -upper[k])):
            corners = _half(corners, sign * corners[:, k] - bound)
            if not len(corners):
                break
    return corners


def _half(corners: FloatArray, height: FloatArray) -> FloatArray:
    """Cut a polygon along a line; ``height`` is the corners' distance from it (Sutherland 1974)."""
    kept = []
    for a, b, u, v in zip(
        corners, np.roll(corners, -1, 0), height, np.roll(height, -1), strict=True
    ):
        if u >= 0.0:
            kept.append(a)
        if (u > 0.0 > v) or (u < 0.0 < v):
            kept.append(a + (b - a) * (u / (u - v)))
    return np.array(kept).reshape(-1, 3)


def _groups(simplex: ReliabilitySimplex, min_count: int) -> list[tuple[str, Any, dict[str, Any]]]:
    """Return the kinds of arrows, from the faintest to the loudest."""
    few, loud = simplex.count < min_count, simplex.significant
    fine = 0.65 if few.size > 36 else 1.0
    return [
        ("few", few & ~loud, {"color": GREY, "width": 0.002 * fine, "zorder": 3}),
        (
            "chance",
            ~few & ~loud,
            {"color": INK if fine == 1.0 else "#444444", "width": 0.004 * fine, "zorder": 4},
        ),
        ("significant", loud, {"color": RED, "width": 0.008, "zorder": 5}),
    ]


def _arrows(ax: Any, simplex: ReliabilitySimplex, min_count: int) -> dict[str, Any]:
    drawn = {}
    for name, rows, style in _groups(simplex, min_count):
        tail = simplex.predicted[rows] @ TRIANGLE
        step = simplex.deviation[rows] @ TRIANGLE
        drawn[name] = ax.quiver(
            *tail.T,
            *step.T,
            angles="xy",
            scale_units="xy",
            scale=1.0,
            headwidth=3.6,
            headlength=4.5,
            headaxislength=4.0,
            minshaft=1.0,
            minlength=0.5,
            units="width",
            edgecolor="white" if name == "significant" else "none",
            linewidth=0.5,
            **style,
        )
    return drawn


def _corners(ax: Any, names: tuple[str, ...]) -> list[Any]:
    places = [(-0.01, -0.025, "center", "top"), (1.01, -0.025, "center", "top")]
    places.append((0.5, 0.75**0.5 + 0.015, "center", "bottom"))
    return [
        ax.text(x, y, name, ha=ha, va=va, fontsize=LABEL - 0.5)
        for name, (x, y, ha, va) in zip(names, places, strict=True)
    ]


def tetrahedron(
    simplex: ReliabilitySimplex,
    ax: Any = None,
    *,
    min_count: int = 5,
    elevation: float = 16.0,
    azimuth: float = 12.0,
    recipe: bool = True,
) -> Picture:
    """Draw predictions and outcomes of four classes in the tetrahedron.

    The same content as :func:`triangle`: points at the average predictions, larger and darker the
    more rows their cell has, ringed where chance does not explain the deviation, and arrows to the
    frequencies of the outcomes. In a window the view can be turned with the mouse.

    Parameters
    ----------
    simplex : ReliabilitySimplex
        What :func:`caltest.reliability_simplex` returned, for four classes.
    ax : matplotlib 3-D axes, optional
        Where to draw, axes with ``projection="3d"``.
    min_count : int, default 5
        Cells with fewer rows have muted arrows.
    elevation, azimuth : float
        The view of the still, in degrees.
    recipe : bool, default True
        Whether to write the recipe at the foot.

    Returns
    -------
    Picture
        With the artists "points", "arrows", "edges", "corners".
    """
    if len(simplex.names) != 4:
        raise StatisticError(
            f"a tetrahedron has four corners, not {len(simplex.names)}: {simplex.names}"
        )
    ax = paper(ax, COLUMN, 3.2, projection="3d")
    if getattr(ax, "name", "") != "3d":
        raise StatisticError('a tetrahedron needs 3-D axes: figure.add_subplot(projection="3d")')
    from itertools import combinations

    ax.set_axis_off()
    ax.set(xlim=(-0.8, 0.9), ylim=(-0.85, 0.85), zlim=(-0.25, 1.45))
    ax.set_box_aspect((1, 1, 1), zoom=1.35)
    ax.view_init(elev=elevation, azim=azimuth)
    edges = [
        ax.plot(*TETRAHEDRON[list(pair)].T, color=GREY, linewidth=0.7)[0]
        for pair in combinations(range(4), 2)
    ]
    share = simplex.count / simplex.n
    norm = _norm(simplex)
    tail = simplex.predicted @ TETRAHEDRON
    points = ax.scatter(
        *tail.T,
        s=4.0 + 26.0 * norm(share),
        c=share,
        norm=norm,
        cmap=_shades(),
        edgecolors=INK,
        linewidths=np.where(simplex.significant, 1.3, 0.3),
        depthshade=False,
    )
    arrows = {}
    for name, rows, style in _groups(simplex, min_count):
        step = simplex.deviation[rows] @ TETRAHEDRON
        arrows[name] = ax.quiver(
            *tail[rows].T,
            *step.T,
            color=style["color"],
            linewidth=180.0 * style["width"],
            arrow_length_ratio=0.0 if name == "few" else 0.22,
        )
    centre = TETRAHEDRON.mean(axis=0)
    sides = (("center", "top"), ("left", "center"), ("right", "center"), ("center", "bottom"))
    corners = [
        ax.text(*(centre + 1.04 * (place - centre)), name, fontsize=LABEL - 0.5, ha=ha, va=va)
        for name, place, (ha, va) in zip(simplex.names, TETRAHEDRON, sides, strict=True)
    ]
    artists = {
        "points": points,
        "arrows": arrows,
        "edges": edges,
        "corners": corners,
        "colorbar": _colorbar(ax, points, simplex),
        "headline": headline(ax, simplex.test),
        "foot": foot(ax, simplex.recipe, recipe),
    }
    return Picture(ax, artists, recipe=simplex.recipe)
