"""Marks of cells: their size, their bars, and what becomes of those beyond the frame."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from caltest.plots.canvas import GREY, INK, RED, SMALL, Style, room
from caltest.plots.scales import Frame
from caltest.plots.words import sign
from caltest.predictions import BoolArray, FloatArray, IntArray
from caltest.results.numbers import in_percent

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.collections import LineCollection

    from caltest.plots.words import Handle, Line

#: How the values of cells beyond the frame are written: along their bars, over what is there.
WRITTEN: Style = {
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


def cells(ax: Axes, frame: Frame, x: FloatArray, y: FloatArray, low: FloatArray, high: FloatArray,
          count: IntArray, filled: BoolArray, *, color: str = INK, marker: str = "o",
          bar: Style, neighbours: IntArray | None = None, line: Line = "-",
          shift: float = 0.0) -> dict[str, Any]:  # fmt: skip
    """Draw cells as marks with an area by their rows, some filled, each with its bar.

    Those beyond the frame are triangles at its edge. Lines connect cells whose numbers are
    ``neighbours``, where these are given. Returns the artists by name.
    """
    from matplotlib.collections import LineCollection

    artists: dict[str, Any] = {"bars": bars(ax, x + shift, low, high, frame.y, **bar)}
    if neighbours is not None:
        pairs = np.flatnonzero(np.abs(np.diff(neighbours)) == 1)
        segments = [[(x[j], y[j]), (x[j + 1], y[j + 1])] for j in pairs]
        lines = LineCollection(segments, colors=color, linestyles=line, linewidths=0.8, zorder=2)
        artists["lines"] = ax.add_collection(lines)
    style = Style(linewidths=0.9, edgecolors=color)
    area = np.maximum(0.3, count / count.max()) * (36.0 if x.size <= 30 else 24.0)
    within, faces = np.where(frame.beyond(y), np.nan, y), np.where(filled, color, "white")
    style |= {"marker": marker, "facecolors": faces, "zorder": 4, "clip_on": False}
    artists["marks"] = ax.scatter(x, within, s=area, plotnonfinite=True, **style)
    style |= {"s": 22.0, "zorder": 5, "clip_on": True}
    artists["edge"], places = [], np.empty(0)
    least = 12.0 / room(ax) * float(np.ptp(ax.get_xlim()))
    for side, head, va in ((1.0, "^", "top"), (-1.0, "v", "bottom")):
        out = np.flatnonzero(frame.beyond(y) & (side * (y - frame.middle) > 0.0))
        at = frame.middle + 0.95 * side * (frame.y[1] - frame.middle)
        style |= {"marker": head, "facecolors": faces[out]}
        artists["edge"].append(ax.scatter(x[out], np.full(out.size, at), **style))
        for j in out[np.argsort(-np.abs(y[out]), kind="stable")]:  # values, where they fit
            if (np.abs(x[j] - places) >= least).all():
                places = np.append(places, x[j])
                value = f"{y[j]:+.2f}".replace("-", "−").replace("inf", "∞")
                ax.annotate(value, (x[j], at), xytext=(0, -5 * side), va=va, **WRITTEN, color=color)
    return artists


def bars(ax: Axes, x: FloatArray, low: FloatArray, high: FloatArray, frame: tuple[float, float],
         **style: Any) -> LineCollection:  # fmt: skip
    """Draw vertical bars with caps; those that leave the frame have an arrow head there."""
    from matplotlib.collections import LineCollection

    finite = ~np.isnan(low)
    far = frame[1] - frame[0]
    x, low = x[finite], np.maximum(low[finite], frame[0] - far)
    high = np.minimum(high[finite], frame[1] + far)
    style = Style(color=RED, lw=1.1, zorder=3) | style
    spans = [[(a, b), (a, c)] for a, b, c in zip(x, low, high, strict=True)]
    ax.add_collection(stems := LineCollection(spans, **style))
    cap = {"s": 25.0 if x.size <= 20 else 6.0, "color": style["color"], "zorder": 3}
    for ends, out, edge, head in (
        (low, low < frame[0], frame[0] + 0.012 * far, "v"),
        (high, high > frame[1], frame[1] - 0.012 * far, "^"),
    ):
        ax.scatter(x[~out], ends[~out], marker="_", linewidth=1.0, **cap)
        ax.scatter(x[out], np.full(int(out.sum()), edge), marker=head, **cap | {"s": 9.0})
    return stems


def entries(count: IntArray, out: BoolArray) -> dict[str, Handle]:
    """Return what the key says of the area of marks, and of those beyond the frame."""
    words: dict[str, Handle] = {"larger: more rows": sign(color=GREY)}
    if out.any():
        share = in_percent(count[out].sum() / count.sum())
        words[f"off the scale: {share} of rows"] = sign("^", filled=False)
    return words
