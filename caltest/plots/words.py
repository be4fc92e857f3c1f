"""Words on the paper: keys, headlines, recipes, broken into lines that fit."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from caltest.plots.canvas import INK, SMALL, Style, room, root
from caltest.results import CalibrationTestResult, format_p, short

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.backend_bases import RendererBase
    from matplotlib.container import Container
    from matplotlib.legend import Legend
    from matplotlib.lines import Line2D
    from matplotlib.text import Annotation
    from matplotlib.transforms import BboxBase

    Handle = Artist | Container  # what stands in a key beside its words
    Line = str | tuple[float, tuple[float, ...]]  # a style of lines: its name, or its dashes

#: Longer texts are cut on the paper, not in the recipe that the file carries.
MOST = 5


def sign(
    marker: str = "o", color: str = INK, *, filled: bool = True, line: Line = "none"
) -> Line2D:
    """Return what stands for marks of one kind in a key."""
    from matplotlib.lines import Line2D

    size = 7.0 if marker == "|" else 4.0
    face = color if filled else "white"
    style = Style(
        linestyle=line, marker=marker, markersize=size, markeredgewidth=0.9, markerfacecolor=face
    )
    return Line2D([], [], color=color, linewidth=0.9, **style)


def key(ax: Axes, entries: Mapping[str, Handle], shift: float = 28.0, **options: str) -> Legend:
    """Say what the signs mean above the axes, beginning ``shift`` points to their left."""
    from matplotlib.transforms import ScaledTranslation

    widths, columns = [wide(word) + 26.0 for word in entries], len(entries)
    while columns > 1 and sum(map(max, np.array_split(widths, columns))) > room(ax):
        columns -= 1
    start = ScaledTranslation(-shift / 72.0, 0.04, root(ax).dpi_scale_trans)
    style = Style(loc="lower left", bbox_to_anchor=(0.0, 1.0), ncols=columns, fontsize=SMALL)
    style |= {"handlelength": 1.6, "labelspacing": 0.25, "borderaxespad": 0.2, "borderpad": 0.1}
    style |= {"columnspacing": 1.0, "handletextpad": 0.5, "frameon": False}
    style |= {"bbox_transform": ax.transAxes + start} | options
    legend = ax.legend(list(entries.values()), list(entries), **style)
    for text in legend.get_texts():
        text.set_parse_math(False)
    return legend


def headline(test: CalibrationTestResult) -> str:
    """Return estimate, noise floor and p-value of a test, as they stand over a picture."""
    value = f"{short(test.statistic)} {test.shown_estimate}"
    return f"{value} · if calibrated {test.shown_floor} · {p_equals(test.shown_p)}"


def p_equals(p: float | str | None) -> str:
    """Return a p-value, or how it is printed, as "p = 0.03" or "p < 1e-12"."""
    if p is None:
        return "not tested"
    text = p if isinstance(p, str) else format_p(p)
    return f"p {text}" if text.startswith("<") else f"p = {text}"


def heading(
    ax: Axes, text: str, over: Artist | None = None, start: Axes | str | None = None
) -> Annotation:
    """Write over the axes, or over what is already there, in as many lines as it takes."""
    return _text(ax, text, 1.0, over or "axes fraction", start, va="bottom", color=INK)


def foot(
    ax: Axes, recipe: str, with_recipe: bool, under: Artist | None = None, start: Axes | None = None
) -> Annotation | None:
    """Write the recipe below axes, or below what is there, in as many lines as it takes."""
    if not with_recipe:
        return None
    below = under or (ax.xaxis.label if ax.axison else "axes fraction")
    return _text(ax, recipe, 0.0, below, start, va="top", color="#555555")


def _text(ax: Axes, text: str, y: float, beyond: Artist | str, start: Axes | str | None,
             **style: str) -> Annotation:  # fmt: skip
    """Write lines that begin where the labels of the axes do, or those of others."""

    def labels(renderer: RendererBase) -> BboxBase:
        first = ax if start is None or isinstance(start, str) else start
        box = first.yaxis.get_tightbbox(renderer) if first.axison else None
        return box or first.get_window_extent(renderer)

    broken = "\n".join(lines(part, room(ax)) for part in text.split("\n"))
    place = Style(xycoords=(start if isinstance(start, str) else labels, beyond), ha="left")
    place |= {"xytext": (0, 3 if y else -3), "textcoords": "offset points"}
    look = Style(fontsize=SMALL, linespacing=1.15, parse_math=False) | style
    return ax.annotate(broken, (0.0, y), **place, **look)


def wide(text: str) -> float:
    """Return the width of a line of small print, in points, and a little more."""
    from matplotlib.font_manager import FontProperties
    from matplotlib.textpath import text_to_path

    font = FontProperties(size=SMALL)
    return 1.03 * float(text_to_path.get_text_width_height_descent(text, font, ismath=False)[0])


def in_two_lines(text: str, most: float) -> str:
    """Return a name in at most two lines of so many points; the middle of the second may go."""
    first, *others = lines(text, most).split("\n")
    second = " ".join(others)
    while wide(second) > most and len(second) > 5:
        cut = max(1, round(len(second) * (1.0 - most / wide(second)))) + 1
        start = (len(second) - cut) * 2 // 3
        second = f"{second[:start].rstrip(' …')}…{second[start + cut :].lstrip(' …')}"
    return f"{first}\n{second}" if second else first


def lines(text: str, room: float) -> str:
    """Break a text between words, but not next to signs that belong to them; cut long words."""
    broken = [""]
    for word in re.split(r"(?<![=<]) (?![·%=<])", text):
        longer = f"{broken[-1]} {word}".lstrip()
        if wide(longer) <= room:
            broken[-1] = longer
            continue
        fit = max(1, int(0.9 * len(word) * room / wide(word)))
        pieces = [word] if wide(word) <= room else textwrap.wrap(word, fit)
        broken[-1:] = [line for line in broken[-1:] if line] + pieces
    return "\n".join(broken if len(broken) <= MOST else [*broken[: MOST - 1], "…"])
