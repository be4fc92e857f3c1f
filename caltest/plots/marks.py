"""Marks of cells: their size, their bars, and what becomes of those beyond the frame."""

from __future__ import annotations

from typing import Any

import numpy as np

from caltest.plots.canvas import GREY, INK, RED, SMALL, room
from caltest.plots.words import sign
from caltest.predictions import BoolArray, FloatArray, IntArray

#: How the values of cells beyond the frame are written: along their bars, over what is there.
WRITTEN: dict[str, Any] = {
    **{"textcoords": "offset points", "ha": "center", "rotation": 90, "fontsize": SMALL},
    **{"bbox": {"facecolor": "white", "edgecolor": "none", "alpha": 0.85, "pad": 0.6}, "zorder": 6},
}
#: The share of the rows whose cells an axis must show whole, with their bars.
SHOWN = 0.99


def reach(count: IntArray, *sides: FloatArray) -> float:
    """Return how far from 0 an axis goes: as far as the cells of nearly all rows do.

    A few rows far away do not flatten the others; where all cells need little more, all are shown.
    """
    far = np.max(np.abs(np.nan_to_num(np.array(sides), posinf=0.0, neginf=0.0)), axis=0)
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

    finite = ~np.isnan(low)
    far = frame[1] - frame[0]
    x, low = x[finite], np.maximum(low[finite], frame[0] - far)
    high = np.minimum(high[finite], frame[1] + far)
    style = {"color": RED, "linewidth": 1.1, "zorder": 3, **style}
    spans = [[(a, b), (a, c)] for a, b, c in zip(x, low, high, strict=True)]
    stems = ax.add_collection(LineCollection(spans, **style))
    cap = {"s": 25.0 if x.size <= 20 else 6.0, "color": style["color"], "zorder": 3}
    for ends, out, edge, head in (
        (low, low < frame[0], frame[0] + 0.012 * far, "v"),
        (high, high > frame[1], frame[1] - 0.012 * far, "^"),
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


def entries(count: IntArray, out: BoolArray) -> dict[str, Any]:
    """Return what the key says of the area of marks, and of those beyond the frame."""
    words = {"area: rows": sign(color=GREY)}
    if out.any():
        share = 100.0 * count[out].sum() / count.sum()
        words[f"beyond: {share:.2g} % of rows"] = sign("^", filled=False)
    return words


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
    artists, places = [], np.empty(0)
    least = 12.0 / room(ax) * float(np.ptp(ax.get_xlim()))
    for side, marker in ((1.0, "^"), (-1.0, "v")):
        out = np.flatnonzero(side * y > top)
        at, faces = middle + 0.95 * side * top, np.where(filled[out], color, "white")
        style = {"s": 22.0, "marker": marker, "edgecolors": color, "linewidths": 0.9, "zorder": 5}
        artists.append(ax.scatter(x[out], np.full(out.size, at), facecolors=faces, **style))
        for j in out[np.argsort(-np.abs(y[out]), kind="stable")]:  # the farthest first
            if (np.abs(x[j] - places) >= least).all():
                places = np.append(places, x[j])
                value = f"{y[j]:+.2f}".replace("-", "−").replace("inf", "∞")
                va = "top" if side > 0.0 else "bottom"
                ax.annotate(value, (x[j], at), xytext=(0, -5 * side), va=va, **WRITTEN, color=color)
    return artists
