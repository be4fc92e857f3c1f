"""Marks of cells: their size, their bars, and what becomes of those beyond the frame."""

from __future__ import annotations

from typing import Any

import numpy as np

from caltest.plots.canvas import INK, RED, SMALL, room
from caltest.predictions import BoolArray, FloatArray, IntArray

#: The share of the rows whose cells an axis must show whole, with their bars.
SHOWN = 0.99


def reach(count: IntArray, *sides: FloatArray) -> float:
    """Return how far from 0 an axis goes: as far as the cells of nearly all rows do.

    A few rows far away do not flatten the others; where all cells need little more, all are shown.
    """
    distances = np.abs(np.array(sides))
    far = np.max(np.where(np.isfinite(distances), distances, 0.0), axis=0)
    order = np.argsort(far)
    rows = np.cumsum(count[order])
    enough = far[order[np.searchsorted(rows, SHOWN * rows[-1] - 1e-9)]]
    return max(0.01, 1.12 * float(far.max() if far.max() <= 1.5 * enough else enough))


def points(
    ax: Any,
    x: FloatArray,
    y: FloatArray,
    count: IntArray,
    filled: BoolArray,
    top: float = np.inf,
    color: str = INK,
    marker: str = "o",
) -> Any:
    """Draw marks up to a height, as large as their share of the rows, some of them filled."""
    largest = 36.0 if x.size <= 30 else 24.0
    return ax.scatter(
        x,
        np.where(np.abs(y) <= top, y, np.nan),
        s=np.maximum(0.3, count / count.max()) * largest,
        marker=marker,
        facecolors=np.where(filled, color, "white"),
        edgecolors=color,
        linewidths=0.9,
        zorder=4,
        clip_on=False,
        plotnonfinite=True,
    )


def bars(
    ax: Any,
    x: FloatArray,
    low: FloatArray,
    high: FloatArray,
    frame: tuple[float, float],
    **style: Any,
) -> Any:
    """Draw vertical bars with caps; those that leave the frame have an arrow head there."""
    from matplotlib.collections import LineCollection

    drawn = ~np.isnan(low)
    far = frame[1] - frame[0]
    x, low = x[drawn], np.maximum(low[drawn], frame[0] - far)
    high = np.minimum(high[drawn], frame[1] + far)
    style = {"color": RED, "linewidth": 1.1, "zorder": 3, **style}
    stems = LineCollection(
        [[(a, b), (a, c)] for a, b, c in zip(x, low, high, strict=True)], **style
    )
    ax.add_collection(stems)
    cap = {"s": 25.0 if x.size <= 20 else 6.0, "color": style["color"], "zorder": 3}
    inset = 0.012 * far
    for ends, out, edge, head in (
        (low, low < frame[0], frame[0] + inset, "v"),
        (high, high > frame[1], frame[1] - inset, "^"),
    ):
        ax.scatter(x[~out], ends[~out], marker="_", linewidth=1.0, **cap)
        ax.scatter(x[out], np.full(int(out.sum()), edge), marker=head, **cap | {"s": 9.0})
    return stems


def connected(
    ax: Any, x: FloatArray, y: FloatArray, cell: IntArray, color: str, line: Any = "-"
) -> Any:
    """Draw lines between cells that are neighbours."""
    from matplotlib.collections import LineCollection

    pairs = np.flatnonzero(np.abs(np.diff(cell)) == 1)
    segments = [[(x[j], y[j]), (x[j + 1], y[j + 1])] for j in pairs]
    style = {"colors": color, "linestyles": line, "linewidths": 0.8, "zorder": 2}
    return ax.add_collection(LineCollection(segments, **style))


def beyond(
    ax: Any,
    x: FloatArray,
    y: FloatArray,
    filled: BoolArray,
    top: float,
    middle: float = 0.0,
    color: str = INK,
) -> list[Any]:
    """Draw cells beyond the frame as triangles at its edge, with their values where they fit."""
    artists, said = [], np.empty(0)
    least = 12.0 / room(ax) * float(np.ptp(ax.get_xlim()))
    for side, marker in ((1.0, "^"), (-1.0, "v")):
        out = np.flatnonzero(side * y > top)
        at, faces = middle + 0.95 * side * top, np.where(filled[out], color, "white")
        style = {"s": 22.0, "marker": marker, "edgecolors": color, "linewidths": 0.9, "zorder": 5}
        artists.append(ax.scatter(x[out], np.full(out.size, at), facecolors=faces, **style))
        for j in out[np.argsort(-np.abs(y[out]), kind="stable")]:  # the farthest first
            if (np.abs(x[j] - said) >= least).all():
                said = np.append(said, x[j])
                ax.annotate(
                    f"{y[j]:+.2f}".replace("-", "−").replace("inf", "∞"),
                    (x[j], at),
                    xytext=(0, -5 * side),
                    textcoords="offset points",
                    ha="center",
                    va="top" if side > 0.0 else "bottom",
                    rotation=90,
                    fontsize=SMALL,
                    color=color,
                    zorder=6,
                    bbox={"facecolor": "white", "edgecolor": "none", "alpha": 0.85, "pad": 0.6},
                )
    return artists
