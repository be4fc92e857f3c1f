"""The grammar of pictures: a chart is a list of marks with names and words, axes, and a recipe."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from numpy.typing import ArrayLike

from caltest._base.arrays import AnyArray
from caltest.plots import canvas
from caltest.plots.canvas import BLUE, DASHED, GREY, INK, LABEL, PALE, SMALL, Picture, Style, room
from caltest.plots.words import foot, heading, in_two_lines, key, p_equals, sign, wide
from caltest.predictions import FloatArray

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.collections import LineCollection, PathCollection, PolyCollection
    from matplotlib.lines import Line2D

    from caltest.plots.words import Handle

Mark = TypeVar("Mark", bound="Handle")

#: The share of the width that names of lines may take, and the points of an axis with numbers.
NAMES, AXIS = 0.4, 28.0


@dataclass
class Chart:
    """A picture under way.

    Every mark takes a name (under which the picture keeps its artist; "" keeps it not), what it
    shows, ``words`` (what the key says of it, beside ``sign`` or the mark itself), and matplotlib's
    settings of such artists.
    """

    ax: Axes
    artists: dict[str, Any] = field(default_factory=dict)
    entries: dict[str, Handle] = field(default_factory=dict)
    summit: Axes | None = None  # the axes over which the key stands, if others
    names_width: float = 0.0  # of the names of lines, where the vertical axis has such, in points

    @classmethod
    def of(cls, ax: Axes | None, height: float) -> Chart:
        """Begin on the axes given, or on a new figure of one column."""
        return cls(canvas.paper(ax, canvas.COLUMN, height))

    def above(self, share: float) -> Chart:
        """Return a chart in the upper part of the place of this one; the key then stands there."""
        self.summit = canvas.above(self.ax, share)
        return Chart(self.summit, self.artists, self.entries)

    def mark(self, name: str, artist: Mark, words: str = "", sign: Handle | None = None) -> Mark:
        """Keep an artist by its name, and its words for the key."""
        if name:
            self.artists[name] = artist
        if words:
            self.entries[words] = artist if sign is None else sign
        return artist

    def line(self, name: str, x: ArrayLike, y: ArrayLike, words: str = "", **style: Any) -> Line2D:
        """Draw a line through points, with markers only where asked for."""
        (artist,) = self.ax.plot(x, y, **Style(color=INK, lw=0.8, ms=3.0, marker="") | style)
        return self.mark(name, artist, words)

    def rule(self, name: str, words: str = "", *, x: float | None = None, y: float = 0.0,
             **style: Any) -> Line2D:  # fmt: skip
        """Draw a line across the axes, at one x or at one y."""
        style = Style(color=GREY, lw=0.8) | style
        artist = self.ax.axhline(y, **style) if x is None else self.ax.axvline(x, **style)
        return self.mark(name, artist, words)

    def area(self, name: str, x: ArrayLike, low: FloatArray, high: FloatArray, words: str = "",
             **style: Any) -> PolyCollection:  # fmt: skip
        """Fill what lies between two curves."""
        artist = self.ax.fill_between(x, low, high, **Style(color=PALE, lw=0) | style)
        return self.mark(name, artist, words)

    def spans(self, name: str, y: ArrayLike, low: ArrayLike, high: ArrayLike, words: str = "", *,
              color: str = BLUE, lw: float = 1.3, head: str = "_") -> LineCollection:  # fmt: skip
        """Draw a horizontal line from ``low`` to ``high`` at every height."""
        artist = self.ax.hlines(y, low, high, color=color, lw=lw)
        return self.mark(name, artist, words, sign(head, color, line="-"))

    def dots(self, name: str, x: ArrayLike, y: ArrayLike, words: str = "", *, color: str = INK,
             marker: str = "o", filled: ArrayLike = True,
             **style: Any) -> PathCollection:  # fmt: skip
        """Draw marks with an area of ``s`` square points, filled or open."""
        style = Style(s=16, zorder=3, marker=marker) | style
        if marker in "|_":
            style |= {"color": color}
        else:
            style |= {"fc": np.where(np.atleast_1d(filled), color, "white"), "ec": color}
        return self.mark(name, self.ax.scatter(x, y, **style), words, sign(marker, color))

    def rows(self, names: Sequence[str], y: FloatArray | None = None) -> FloatArray:
        """Give every line of a table its height, from the top, and its name at the left."""
        at = np.arange(len(names))[::-1] if y is None else y
        texts = [in_two_lines(name, NAMES * room(self.ax)) for name in names]
        self.ax.set_yticks(at, texts, parse_math=False, linespacing=0.95)
        self.ax.set_ylim(-0.6, max(at) + 0.6)
        self.ax.margins(x=0.08)  # marks keep away from what is written beside them
        self.names_width = max(wide(line) for text in texts for line in text.split("\n")) + 6.0
        return np.asarray(at, dtype=np.float64)

    def pvalues(self, y: Iterable[float], values: Iterable[float | None]) -> None:
        """Write p-values to the right of the lines of a table."""
        self.beside(y, map(p_equals, values))

    def beside(self, y: Iterable[float], texts: Iterable[str]) -> None:
        """Write texts to the right of the axes, at heights of the data."""
        place = Style(transform=self.ax.get_yaxis_transform(), fontsize=SMALL, va="center")
        self.artists["labels"] = [
            self.ax.text(1.02, at, text, **place) for at, text in zip(y, texts, strict=True)
        ]

    def axes(self, xlabel: str = "", ylabel: str = "", *, size: float = LABEL,
             ticks: int | None = None, **limits: Any) -> None:  # fmt: skip
        """Set labels and limits, with small type, no needless lines, and about so many ticks."""
        ax = self.ax
        ax.set(**limits)
        ax.tick_params(labelsize=SMALL, length=2.5, width=0.6, pad=2)
        if self.names_width:
            ax.tick_params(axis="y", length=0)
        ax.set_xlabel(xlabel, fontsize=size, labelpad=2)
        ax.set_ylabel(ylabel, fontsize=size, labelpad=2)
        ax.spines[["top", "right"]].set_visible(False)
        ax.spines[:].set_linewidth(0.6)
        if ticks is not None:
            ax.locator_params(axis="x", nbins=ticks)

    def log(
        self, which: str, ticks: Sequence[float] | AnyArray, texts: Sequence[str] | None = None
    ) -> None:
        """Make an axis logarithmic, with ticks at these values only."""
        from matplotlib.ticker import NullLocator

        self.ax.set(**{f"{which}scale": "log"})
        axis = self.ax.xaxis if which == "x" else self.ax.yaxis
        axis.set_ticks(ticks, texts or [f"{tick:g}" for tick in ticks])
        axis.set_minor_locator(NullLocator())

    def by_date(self) -> None:
        """Write dates at the horizontal axis, each as short as the others allow."""
        dates = import_module("matplotlib.dates")  # whose types are not known
        locator = dates.AutoDateLocator(maxticks=6)
        self.ax.xaxis.set_major_locator(locator)
        self.ax.xaxis.set_major_formatter(dates.ConciseDateFormatter(locator))
        self.ax.xaxis.get_offset_text().set_fontsize(SMALL)

    def diagonal(self, ends: Sequence[float], heights: Sequence[float] | None = None) -> None:
        """Draw where outcomes would be as predicted."""
        self.line("diagonal", ends, heights or ends, "outcome = prediction", color=GREY, ls=DASHED)

    def finish(self, recipe: str, with_recipe: bool, *, headline: str = "",
               shift: float | None = None,
               panels: tuple[Picture, ...] = ()) -> Picture:  # fmt: skip
        """Write key, headline and, where it is to be shown, the recipe; return the picture."""
        over = self.ax if self.summit is None else self.summit
        shift = shift if shift is not None else self.names_width or AXIS
        self.artists["key"] = key(over, self.entries, shift)
        if headline:
            self.artists["headline"] = heading(over, headline, self.artists["key"])
        self.artists["foot"] = foot(self.ax, recipe, with_recipe)
        return Picture(self.ax, self.artists, panels, recipe)
