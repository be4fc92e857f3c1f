"""The grammar of pictures: paper, marks, scales, words, axes, and a recipe.

:func:`paper` gives the axes of a picture, :class:`Picture` is returned by every plot and saves
files that carry the recipe. :class:`Chart` collects marks by name with their words for the key;
:class:`Frame` and :class:`Scale` place probabilities, differences and log-odds. All plots are
written with these.
"""

from __future__ import annotations

import re
import sys
import textwrap
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from io import BytesIO
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, TypeVar

import numpy as np
from numpy.typing import ArrayLike

from caltest._base import BoolArray, FloatArray, IntArray
from caltest._base.arrays import AnyArray, one_of
from caltest._base.saving import write_file
from caltest.errors import StatisticError
from caltest.results import CalibrationTestResult, short
from caltest.results.figures import LOGIT_EDGES, SHARE_EDGES, SPREAD_EDGES
from caltest.results.rendering import in_percent, p_is
from caltest.results.sketches import axes_of

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.backend_bases import RendererBase
    from matplotlib.collections import LineCollection, PathCollection, PolyCollection
    from matplotlib.container import BarContainer, Container
    from matplotlib.figure import Figure
    from matplotlib.gridspec import SubplotSpec
    from matplotlib.legend import Legend
    from matplotlib.lines import Line2D
    from matplotlib.text import Annotation, Text
    from matplotlib.transforms import BboxBase


# ------------------------------------------------------------------------------
# The paper: sizes, colours, files, and the places of panels.


#: The width of a column of a two-column paper, in inches.
COLUMN = 3.25


#: Colours that keep their order of darkness in grey.
INK, RED, BLUE, PALE, GREY = "#111111", "#c8281e", "#2b6cab", "#a9cce8", "#9a9a9a"


#: Sizes of axis labels and of all other words, in points: what small print must at least have.
LABEL, SMALL_PRINT = 8.0, 7.0


#: Settings of an artist, by their names in matplotlib.
Style = dict[str, Any]


#: Lines that are not solid.
DASHED = (0, (4, 2))


#: Where each format keeps the recipe.
RECIPE_IN = {".pdf": "Subject", ".svg": "Description", ".png": "Description"}


@dataclass(frozen=True)
class Picture:
    """A drawn picture: its axes, its marks by name, and how it was made.

    Attributes
    ----------
    ax, panels : matplotlib Axes and tuple of Picture
        The axes; with several panels, an empty one that holds their place, and the panels.
    artists, recipe : mapping of str to artist, and str
        Marks of matplotlib by name, and a line that says how the picture was made.
    """

    ax: Axes
    artists: Mapping[str, object] = field(default_factory=dict, repr=False)
    panels: tuple[Picture, ...] = ()
    recipe: str = ""

    @property
    def figure(self) -> Figure:
        """The matplotlib figure of this picture, for everything that matplotlib can do with it."""
        return root(self.ax)

    def save(self, path: str | Path) -> None:
        """Write a file (.pdf, .svg or .png with 300 dpi) that says how the picture was made.

        The recipe is in its metadata, which hold no date. Text stays text in PDF and SVG, and two
        runs write the same bytes. StatisticError for another ending of ``path``.
        """
        kind = Path(path).suffix.lower()
        if kind not in RECIPE_IN:
            raise StatisticError(f"a picture is saved as .pdf, .svg or .png, not as {path}")
        file = BytesIO()
        self._write(file, kind)
        write_file(path, file.getvalue())

    def to_svg(self) -> str:
        """Return the picture as SVG, in which text stays text."""
        file = BytesIO()
        self._write(file, ".svg")
        return file.getvalue().decode()

    def _write(self, file: IO[bytes], kind: str) -> None:
        from matplotlib import rc_context

        undated = {".pdf": "CreationDate", ".svg": "Date"}
        metadata: dict[str, str | None] = {RECIPE_IN[kind]: self.recipe}
        metadata |= {undated[kind]: None} if kind in undated else {}
        # restored on leaving
        with rc_context({"pdf.fonttype": 42, "svg.fonttype": "none", "svg.hashsalt": "caltest"}):
            self.figure.savefig(file, format=kind[1:], dpi=300, metadata=metadata)

    def _repr_png_(self) -> bytes | None:
        """Return the picture for a notebook as PNG, or None.

        It is None if pyplot manages the figure and will show it.
        """
        if self.figure.canvas.manager is not None:
            return None
        file = BytesIO()
        self.figure.savefig(file, format="png", dpi=150)
        return file.getvalue()


def root(ax: Axes) -> Figure:
    """Return the figure of some axes, also for axes on a part of a figure."""
    return ax.figure.figure


def paper(ax: Axes | None, width: float, height: float) -> Axes:
    """Return the axes to draw on: the given ones, or axes of a new figure.

    ``width`` and ``height`` are its size in inches. A new figure belongs to pyplot where pyplot is
    in use, so that ``plt.show()`` shows it; else it stands by itself and no backend is chosen.
    StatisticError if ``ax`` is neither None nor matplotlib axes.
    """
    if ax is None:
        from matplotlib.figure import Figure

        pyplot = sys.modules.get("matplotlib.pyplot")
        make = Figure if pyplot is None else pyplot.figure
        return make(figsize=(width, height), layout="constrained").add_subplot()
    from matplotlib.axes import Axes

    if not isinstance(ax, Axes):
        raise StatisticError(f"ax must be matplotlib axes, not {type(ax).__name__}")
    return ax


#: By how much a figure and the words on it grow, beside a column of a paper.
GROWTH = {"paper": (1.0, 1.0), "screen": (2.0, 1.5), "talk": (2.6, 2.2)}


def restyled(picture: Picture, ax: Axes | None, size: str, legend: bool) -> Picture:
    """Return a picture with another size of figure and text.

    ``size`` is "paper", "screen" or "talk"; without ``legend`` its key is removed. A figure that
    the user passed keeps its size; only its text changes. ``ax`` are the axes that the user passed,
    or None.
    """
    from matplotlib.artist import Artist
    from matplotlib.text import Text

    one_of("size", size, GROWTH)
    figure, (wider, larger) = picture.figure, GROWTH[size]
    if not legend:
        for each in (picture, *picture.panels):
            if isinstance(key := each.artists.get("key"), Artist):
                key.set_visible(False)
                key.set_in_layout(False)
    if ax is None and wider != 1.0:
        width, height = figure.get_size_inches()
        figure.set_size_inches(wider * float(width), wider * float(height))
    if larger != 1.0:
        for text in figure.findobj(Text):
            text.set_fontsize(larger * float(text.get_fontsize()))
    return picture


def _grid_place(ax: Axes) -> SubplotSpec:
    """Return the grid cell of some axes; axes outside a grid get a grid of their own.

    It is matplotlib's SubplotSpec, which can be divided.
    """
    if (spec := ax.get_subplotspec()) is not None:
        return spec
    box = ax.get_position()
    edges = {"left": box.x0, "right": box.x1, "bottom": box.y0, "top": box.y1}
    return ax.figure.add_gridspec(1, 1, **edges)[0]


def divided(ax: Axes, rows: int, columns: int, count: int, strip: float) -> list[Axes]:
    """Divide the area of some axes; return ``count`` panels, and an empty strip below them.

    Panels are in ``rows`` × ``columns`` and share their scales; ``strip`` is the height of the
    strip relative to a panel. The result holds matplotlib axes: the panels row by row, then the
    strip.
    """
    grid = _grid_place(ax).subgridspec(rows + 1, columns, height_ratios=[1.0] * rows + [strip])
    panels: list[Axes] = []
    for j in range(count):
        place, first = grid[j // columns, j % columns], panels[0] if panels else None
        panels.append(ax.figure.add_subplot(place, sharex=first, sharey=first))
    panels.append(ax.figure.add_subplot(grid[rows, :]))
    for empty in (ax, panels[-1]):
        empty.set_axis_off()
    return panels


def above(ax: Axes, share: float) -> Axes:
    """Return new axes in the upper ``share`` (0 to 1) of an area; ``ax`` keeps the lower part.

    Both share their horizontal axis.
    """
    parts = _grid_place(ax).subgridspec(2, 1, height_ratios=(share, 1.0 - share), hspace=0.05)
    ax.set_subplotspec(parts[1])
    return ax.figure.add_subplot(parts[0], sharex=ax)


def room(ax: Axes) -> float:
    """Return the approximate width of the axes ``ax`` with their labels, in points."""
    figure, spec = ax.figure, ax.get_subplotspec()
    whole = 72.0 * figure.bbox.width / root(ax).dpi - 9.0
    if spec is None:
        return float(whole * ax.get_position().width)
    frame = figure.subplotpars
    share = spec.get_position(root(ax)).width / (frame.right - frame.left)
    return float(whole * min(share, 1.0))


Mark = TypeVar("Mark", bound="Handle")


#: The share of the width that names of lines may take, and the points of an axis with numbers.
NAMES, AXIS = 0.4, 28.0


@dataclass
class Chart:
    """Picture under construction: marks by name, and the entries of its key.

    Drawing methods take a ``name`` (under which the finished picture keeps the artist; "" for
    none), data, ``words`` (the text in the key, beside ``sign`` or the mark itself), and
    matplotlib's style options. ``artists`` and ``entries`` hold artists by name and the signs of
    the key by their words; ``summit`` is the axes above ``ax`` that carry the key, if any.
    """

    ax: Axes
    artists: dict[str, Any] = field(default_factory=dict)
    entries: dict[str, Handle] = field(default_factory=dict)
    summit: Axes | None = None  # the axes over which the key stands, if others
    names_width: float = 0.0  # of the names of lines, where the vertical axis has such, in points

    @classmethod
    def of(cls, ax: Axes | None, height: float) -> Chart:
        """Begin a chart on the axes ``ax``, or with None on a new figure of one column (3.25 in).

        ``height`` is the height of a new figure in inches.
        """
        return cls(paper(ax, COLUMN, height))

    def above(self, share: float) -> Chart:
        """Return a chart in the upper ``share`` (0 to 1) of this one's area.

        This one keeps the lower part. The key of both is drawn above the upper one.
        """
        self.summit = above(self.ax, share)
        return Chart(self.summit, self.artists, self.entries)

    def mark(self, name: str, artist: Mark, words: str = "", sign: Handle | None = None) -> Mark:
        """Register an artist by its ``name``, and its ``words`` for the key; return the artist.

        ``sign`` is an artist that replaces it in the key. "" registers no name, or no entry in the
        key.
        """
        if name:
            self.artists[name] = artist
        if words:
            self.entries[words] = artist if sign is None else sign
        return artist

    def line(self, name: str, x: ArrayLike, y: ArrayLike, words: str = "", **style: Any) -> Line2D:
        """Draw a line through points and return it; markers only if ``style`` asks for them.

        ``x`` and ``y`` (m,) are the points. The picture keeps the line under ``name``, and the key
        shows it beside ``words``; "" for neither. ``style`` are options of matplotlib's ``plot``.
        """
        (artist,) = self.ax.plot(x, y, **Style(color=INK, lw=0.8, ms=3.0, marker="") | style)
        return self.mark(name, artist, words)

    def rule(self, name: str, words: str = "", *, x: float | None = None, y: float = 0.0,
             **style: Any) -> Line2D:  # fmt: skip
        """Draw a line across the axes and return it.

        It is vertical at ``x`` if that is given, else horizontal at ``y``. The picture keeps it
        under ``name``, and the key shows it beside ``words``; "" for neither. ``style`` are
        matplotlib's options of a line.
        """
        style = Style(color=GREY, lw=0.8) | style
        artist = self.ax.axhline(y, **style) if x is None else self.ax.axvline(x, **style)
        return self.mark(name, artist, words)

    def area(self, name: str, x: ArrayLike, low: FloatArray, high: FloatArray, words: str = "",
             **style: Any) -> PolyCollection:  # fmt: skip
        """Fill the area between the curves ``low`` and ``high`` over x; return the artist.

        ``x``, ``low`` and ``high`` have shape (m,). The picture keeps the area under ``name``, and
        the key shows it beside ``words``; "" for neither. ``style`` are options of matplotlib's
        ``fill_between``.
        """
        artist = self.ax.fill_between(x, low, high, **Style(color=PALE, lw=0) | style)
        return self.mark(name, artist, words)

    def spans(self, name: str, y: ArrayLike, low: ArrayLike, high: ArrayLike, words: str = "", *,
              color: str = BLUE, lw: float = 1.3, head: str = "_") -> LineCollection:  # fmt: skip
        """Draw a horizontal line from ``low`` to ``high`` at every height y, arrays of one shape.

        ``color`` and ``lw``, the line width in points, are those of the lines, and ``head`` is the
        mark at both ends in the key. The picture keeps the lines, which are returned, under
        ``name``, and the key shows them beside ``words``; "" for neither.
        """
        artist = self.ax.hlines(y, low, high, color=color, lw=lw)
        return self.mark(name, artist, words, sign(head, color, line="-"))

    def dots(self, name: str, x: ArrayLike, y: ArrayLike, words: str = "", *, color: str = INK,
             marker: str = "o", filled: ArrayLike = True,
             **style: Any) -> PathCollection:  # fmt: skip
        """Draw marks at the points x and y, filled or open; return them as one artist.

        ``x`` and ``y`` have shape (m,); ``filled`` is one truth value or one for each mark;
        ``marker`` and ``color`` are names of matplotlib, and ``style`` may hold ``s``, the area in
        square points. The picture keeps the marks under ``name``, and the key shows them beside
        ``words``; "" for neither.
        """
        style = Style(s=16, zorder=3, marker=marker) | style
        if marker in "|_":
            style |= {"color": color}
        else:
            style |= {"fc": np.where(np.atleast_1d(filled), color, "white"), "ec": color}
        return self.mark(name, self.ax.scatter(x, y, **style), words, sign(marker, color))

    def rows(self, names: Sequence[str], y: FloatArray | None = None) -> FloatArray:
        """Prepare the vertical axis of a table: return the height of each of m rows, (m,).

        ``names`` are written at the left, the first on top. Heights are m − 1, …, 0 unless ``y``
        (m,) gives them.
        """
        at = np.arange(len(names))[::-1] if y is None else y
        texts = [in_two_lines(name, NAMES * room(self.ax)) for name in names]
        self.ax.set_yticks(at, texts, parse_math=False, linespacing=0.95)
        self.ax.set_ylim(-0.6, max(at) + 0.6)
        self.ax.margins(x=0.08)  # room between marks and text
        self.names_width = max(wide(line) for text in texts for line in text.split("\n")) + 6.0
        return np.asarray(at, dtype=np.float64)

    def pvalues(self, y: Iterable[float], values: Iterable[float | None]) -> None:
        """Write p-values to the right of the rows at heights y; "not tested" for None."""
        self.beside(y, ("not tested" if value is None else p_is(value) for value in values))

    def beside(self, y: Iterable[float], texts: Iterable[str]) -> None:
        """Write texts to the right of the axes at heights y."""
        place = Style(transform=self.ax.get_yaxis_transform(), fontsize=SMALL_PRINT, va="center")
        self.artists["labels"] = [
            self.ax.text(1.02, at, text, **place) for at, text in zip(y, texts, strict=True)
        ]

    def tag(self, text: str, x: float, y: float, **style: Any) -> Text:
        """Write small text at a point of the plot, with a white background; return it.

        ``x`` and ``y`` are the point in data, ``style`` matplotlib's options of a text.
        """
        look = Style(fontsize=SMALL_PRINT, parse_math=False, zorder=6, color=INK)
        look["bbox"] = {"facecolor": "white", "edgecolor": "none", "alpha": 0.85, "pad": 0.6}
        return self.ax.text(x, y, text, **look | style)

    def axes(self, xlabel: str = "", ylabel: str = "", *, size: float = LABEL,
             ticks: int | None = None, **limits: Any) -> None:  # fmt: skip
        """Set labels, limits and style of the axes of this chart.

        ``xlabel`` and ``ylabel`` are the labels, "" for none, ``size`` is their size in points.
        ``ticks`` is the approximate number of horizontal ticks, None to let matplotlib choose.
        ``limits`` are ``xlim`` and ``ylim``.
        """
        ax = self.ax
        ax.set(**limits)
        ax.tick_params(labelsize=SMALL_PRINT, length=2.5, width=0.6, pad=2)
        if self.names_width:
            ax.tick_params(axis="y", length=0)
        ax.set_xlabel(xlabel, fontsize=size, labelpad=2, parse_math=False)
        ax.set_ylabel(ylabel, fontsize=size, labelpad=2, parse_math=False)
        ax.spines[["top", "right"]].set_visible(False)
        ax.spines[:].set_linewidth(0.6)
        if ticks is not None:
            ax.locator_params(axis="x", nbins=ticks)

    def log(
        self, which: str, ticks: Sequence[float] | AnyArray, texts: Sequence[str] | None = None
    ) -> None:
        """Make axis "x" or "y" (``which``) logarithmic, with ticks at these values only.

        ``texts`` label the ticks, by default their values.
        """
        from matplotlib.ticker import NullLocator

        self.ax.set(**{f"{which}scale": "log"})
        axis = self.ax.xaxis if which == "x" else self.ax.yaxis
        axis.set_ticks(ticks, texts or [f"{tick:g}" for tick in ticks])
        axis.set_minor_locator(NullLocator())

    def by_date(self) -> None:
        """Format the horizontal axis as dates, each as short as possible."""
        dates = import_module("matplotlib.dates")  # whose types are not known
        locator = dates.AutoDateLocator(maxticks=6)
        self.ax.xaxis.set_major_locator(locator)
        self.ax.xaxis.set_major_formatter(dates.ConciseDateFormatter(locator))
        self.ax.xaxis.get_offset_text().set_fontsize(SMALL_PRINT)

    def diagonal(self, ends: Sequence[float], heights: Sequence[float] | None = None) -> None:
        """Draw the line of perfect calibration between two ``ends`` of the horizontal axis.

        ``heights`` are its heights there, by default the ends themselves.
        """
        self.line("diagonal", ends, heights or ends, "calibrated", color=GREY, ls=DASHED)

    def finish(self, recipe: str, with_recipe: bool, *, headline: str = "",
               shift: float | None = None,
               panels: tuple[Picture, ...] = ()) -> Picture:  # fmt: skip
        """Write key, headline and recipe; return the finished picture.

        ``headline`` is a text above the picture, "" for none; ``recipe`` says how it was made, and
        is printed below only if ``with_recipe``. ``shift`` moves the key to the left, in points,
        None to let it begin at the labels of the axis. ``panels`` are pictures on other axes that
        belong to this one.
        """
        over = self.ax if self.summit is None else self.summit
        shift = shift if shift is not None else self.names_width or AXIS
        self.artists["key"] = key(over, self.entries, shift)
        if headline:
            self.artists["headline"] = heading(over, headline, self.artists["key"])
        self.artists["foot"] = foot(self.ax, recipe, with_recipe)
        return Picture(self.ax, self.artists, panels, recipe)


# ------------------------------------------------------------------------------
# Marks of cells: their size, their bars, and marks beyond the frame.


#: How the values of cells beyond the frame are written: along their bars, over what is there.
OFF_SCALE_TEXT: Style = {
    **{"textcoords": "offset points", "ha": "center", "rotation": 90, "fontsize": SMALL_PRINT},
    **{"bbox": {"facecolor": "white", "edgecolor": "none", "alpha": 0.85, "pad": 0.6}, "zorder": 6},
}


#: The share of the rows whose cells an axis must show whole, with their bars.
SHARE_SHOWN = 0.99


def reach(count: IntArray, *sides: FloatArray) -> float:
    """Return the half height of an axis around 0 that shows the cells of nearly all rows.

    ``count`` (L,) are the rows of L cells, and each of ``sides`` is an array (L,) of heights to
    show. A few rows far away (1 %) do not flatten the others. If all cells need little more, all
    are shown.
    """
    far = np.max(np.abs(np.nan_to_num(np.array(sides), posinf=0.0, neginf=0.0)), axis=0)
    order = np.argsort(far)
    rows = np.cumsum(count[order])
    enough = far[order[np.searchsorted(rows, SHARE_SHOWN * rows[-1] - 1e-9)]]
    return max(0.01, 1.12 * float(far.max() if far.max() <= 1.5 * enough else enough))


def cells(ax: Axes, frame: Frame, x: FloatArray, y: FloatArray, low: FloatArray, high: FloatArray,
          count: IntArray, filled: BoolArray, *, color: str = INK, marker: str = "o",
          bar: Style, neighbours: IntArray | None = None, line: Line = "-",
          shift: float = 0.0) -> dict[str, Any]:  # fmt: skip
    """Draw cells as points with bars; return the artists by name.

    They are "bars", "marks", "edge" and, with ``neighbours``, "lines". ``x``, ``y``, ``low``,
    ``high`` and ``count`` have shape (L,), for L cells. The area of a point grows with its rows,
    and ``filled`` ones are solid; ``color`` and ``marker`` are matplotlib's. Cells beyond the frame
    are triangles at its edge. Lines of the style ``line`` connect cells whose ``neighbours``
    numbers are consecutive; None draws no lines. ``bar`` is the style of the bars, and ``shift``
    moves these sideways, in data. ``frame`` has the limits of both axes and the scale.
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
                ax.annotate(
                    value, (x[j], at), xytext=(0, -5 * side), va=va, **OFF_SCALE_TEXT, color=color
                )
    return artists


def bars(ax: Axes, x: FloatArray, low: FloatArray, high: FloatArray, frame: tuple[float, float],
         **style: Any) -> LineCollection:  # fmt: skip
    """Draw vertical bars with caps; a bar that leaves the frame ends in an arrow head.

    ``x``, ``low`` and ``high`` have shape (L,), NaN for no bar. ``frame`` is (lowest, highest)
    height that is shown. ``style`` are options of matplotlib's LineCollection, which is returned.
    """
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


def entries(count: IntArray, out: BoolArray, *, sized: bool = True) -> dict[str, Handle]:
    """Return key entries that explain the area of points, if ``sized``, and points off the frame.

    An entry is a symbol, by its words. ``count`` (L,) are rows of L cells, ``out`` (L,) marks those
    beyond the frame.
    """
    words: dict[str, Handle] = {"area: rows": sign(color=GREY)} if sized else {}
    if out.any():
        share = in_percent(count[out].sum() / count.sum())
        words[f"off the scale: {share} of rows"] = sign("^", filled=False)
    return words


# ------------------------------------------------------------------------------
# Scales of probability, and the frames of the diagrams over them.


#: What draws the true probability given the prediction.
Truth = Callable[[FloatArray], FloatArray]


@dataclass(frozen=True)
class Scale:
    """Scale of an axis: probabilities, or their log-odds if ``log_odds`` is true.

    Called on probabilities it returns their positions on the axis, same shape.
    """

    log_odds: bool = False

    def __call__(self, p: ArrayLike) -> FloatArray:
        p = np.asarray(p, dtype=np.float64)
        if not self.log_odds:
            return p
        with np.errstate(divide="ignore"):
            return np.log(p) - np.log1p(-p)

    def ticks(self, low: float, high: float) -> tuple[FloatArray, list[str]]:
        """Return (positions, labels) of round probabilities on this scale, at most seven.

        They lie between the positions ``low`` and ``high`` of the axis. Labels are text.
        """
        decades = [10.0**-k for k in range(9, 0, -1)]
        for steps in ((1,), (1, 3), (1, 2, 5)):
            small = [m * d for d in decades for m in steps if m * d < 0.5]
            p = np.array([*small, 0.5, *(1.0 - q for q in small[::-1])])
            p = p[(self(p) >= low) & (self(p) <= high)]
            if len(p) >= 3:
                break
        p = p[:: -(-len(p) // 7)] if len(p) else p
        return self(p), [f"{x:.9f}".rstrip("0") for x in p]


@dataclass(frozen=True)
class Frame:
    """Limits of both axes of a reliability diagram, its scale, and its kind.

    ``x`` and ``y`` are pairs of limits. With ``deviation`` heights are observed − predicted,
    otherwise observed frequencies.
    """

    x: tuple[float, float]
    y: tuple[float, float]
    scale: Scale = Scale()
    deviation: bool = True

    @property
    def middle(self) -> float:
        """Height in the middle of the vertical axis of this diagram."""
        return 0.5 * (self.y[0] + self.y[1])

    def height(self, value: FloatArray, predicted: FloatArray) -> FloatArray:
        """Return the heights of observed values on the scale of this diagram, same shape.

        With ``deviation`` they are values less predictions, otherwise the values; on a log-odds
        scale both are in log-odds. ``value`` and ``predicted`` have one shape.
        """
        if not self.deviation:
            return self.scale(value)
        with np.errstate(invalid="ignore"):
            return np.asarray(self.scale(value) - self.scale(predicted))

    def beyond(self, y: FloatArray) -> BoolArray:
        """Return which heights ``y`` lie outside this frame, booleans of the same shape."""
        return np.asarray(np.abs(y - self.middle) > 0.5 * (self.y[1] - self.y[0]))

    def begin(self, chart: Chart, truth: Truth | None) -> None:
        """Set limits and ticks of a chart by this frame, and draw the true curve where it is known.

        ``chart`` is the picture under construction. ``truth`` maps predictions to true
        probabilities, None if unknown.
        """
        ax, scale = chart.ax, self.scale
        ax.set(xlim=self.x, ylim=self.y)
        if scale.log_odds:
            ax.xaxis.set_ticks(*scale.ticks(*self.x))
        if scale.log_odds and not self.deviation:
            ax.yaxis.set_ticks(*scale.ticks(*self.y))
        if truth is not None:
            left, right = self.x if scale.log_odds else np.clip(self.x, 0.0, 1.0)
            at = np.linspace(left, right, 401)[1:-1]
            p = 1.0 / (1.0 + np.exp(-at)) if scale.log_odds else at
            style = {"color": "#2f8f4e", "ls": (0, (5, 1, 1, 1)), "lw": 1.5}
            chart.line("truth", at, self.height(truth(p), p), "truth", **style)

    def labels(self, subject: str, event: str = "") -> tuple[str, str]:
        """Return the labels (x, y) of the axes of this reliability diagram.

        ``subject`` is the kind of lens ("top" for confidences), ``event`` the user's name of the
        event, "" if it has none.
        """
        xlabel, ylabel = axes_of(subject, event)
        if not self.deviation:
            return xlabel, ylabel
        log_odds = " (log-odds)" * self.scale.log_odds
        return xlabel, f"Observed − predicted{log_odds}"


def chosen(style: str, axis: str) -> tuple[Scale, bool]:
    """Return (scale, deviation) for the options ``style`` and ``axis`` of a reliability diagram.

    The scale is in log-odds if ``axis`` is "log-odds", in probabilities if it is "probability".
    ``deviation`` is True if ``style`` is "deviation" (observed − predicted), False if it is
    "classical". StatisticError for other words.
    """
    one_of("style", style, ("deviation", "classical"))
    one_of("axis", axis, ("probability", "log-odds"))
    return Scale(axis == "log-odds"), style == "deviation"


def histogram(spread: IntArray, n: int, scale: Scale) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return (left, width, share) of a histogram of predictions, in equal steps of the scale.

    ``spread`` are counts in fine bins, whose edges are multiples of 0.05 and half units of
    log-odds, and ``n`` is their total; ``scale`` is in probabilities or in log-odds. The arrays
    have one entry for each column: its left end and width on the axis, and its share of the
    predictions.
    """
    edges = LOGIT_EDGES if scale.log_odds else SHARE_EDGES
    share = np.add.reduceat(spread, np.searchsorted(SPREAD_EDGES, edges[:-1])) / n
    ends = np.clip(scale(edges), -14.5, 14.5)
    return ends[:-1], np.diff(ends), share


def columns(ax: Axes, left: FloatArray, width: FloatArray, share: FloatArray) -> BarContainer:
    """Draw the columns of a histogram in a pale colour; return them.

    ``left``, ``width`` and ``share`` (its height) have one entry for each column.
    """
    style = Style(color=PALE, edgecolor="white", linewidth=0.4, zorder=0)
    return ax.bar(left, share, width, align="edge", **style)


def behind(ax: Axes, tallest: float) -> Axes:
    """Return second axes for a histogram in the lower quarter, behind everything else.

    ``tallest`` is the height of the highest column.
    """
    twin = ax.twinx()
    twin.set_ylim(0.0, 4.2 * tallest)
    twin.spines[:].set_visible(False)
    twin.set_yticks([])
    ax.set_zorder(twin.get_zorder() + 1)
    ax.patch.set_visible(False)
    return twin


def tenths(least: float, most: float) -> tuple[float, float]:
    """Return the ends of an axis that covers the occupied tenths of [0, 1], with a margin.

    ``least`` and ``most`` are the smallest and the largest value.
    """
    left, right = np.floor(10.0 * least + 1e-9) / 10.0, np.ceil(10.0 * most - 1e-9) / 10.0
    margin = 0.02 * max(right - left, 0.1)
    return left - margin, right + margin


def decades(least: float) -> FloatArray:
    """Return at most four powers of ten, from 1 down to about ``least``."""
    exponent = int(np.floor(-np.log10(least)))
    return np.power(10.0, -np.arange(0, exponent + 1, max(1, -(-exponent // 3))))


if TYPE_CHECKING:
    Handle = Artist | Container  # what stands in a key beside its words


if TYPE_CHECKING:
    Line = str | tuple[float, tuple[float, ...]]  # a style of lines: its name, or its dashes


#: Points in a key for a symbol with its gap, and between two columns.
SIGN_ROOM, BETWEEN_COLUMNS = 16.0, 7.0


#: Longer texts are cut on the paper, not in the recipe that the file carries.
LONGEST_TEXT = 5


def sign(
    marker: str = "o", color: str = INK, *, filled: bool = True, line: Line = "none"
) -> Line2D:
    """Return the key's symbol for a kind of point or line.

    ``marker`` and ``line`` are matplotlib's names of the mark and of the line style, and ``color``
    is the colour of both. With ``filled`` the mark is solid, else white inside.
    """
    from matplotlib.lines import Line2D

    size = 7.0 if marker == "|" else 4.0
    face = color if filled else "white"
    style = Style(
        linestyle=line, marker=marker, markersize=size, markeredgewidth=0.9, markerfacecolor=face
    )
    return Line2D([], [], color=color, linewidth=0.9, **style)


def key(ax: Axes, entries: Mapping[str, Handle], shift: float = 28.0, **options: str) -> Legend:
    """Draw the key above the axes, beginning ``shift`` points to their left; return it.

    ``entries`` maps texts to symbols. ``options`` go to matplotlib's legend.
    """
    from matplotlib.transforms import ScaledTranslation

    widths, columns = [wide(word) + SIGN_ROOM for word in entries], len(entries)
    while columns > 1 and _width_of_columns(widths, columns) > room(ax):
        columns -= 1
    start = ScaledTranslation(-shift / 72.0, 0.04, root(ax).dpi_scale_trans)
    columns = max(columns, 1)
    style = Style(loc="lower left", bbox_to_anchor=(0.0, 1.0), ncols=columns, fontsize=SMALL_PRINT)
    style |= {"handlelength": 1.6, "labelspacing": 0.25, "borderaxespad": 0.2, "borderpad": 0.1}
    style |= {"columnspacing": 1.0, "handletextpad": 0.5, "frameon": False}
    style |= {"bbox_transform": ax.transAxes + start} | options
    legend = ax.legend(list(entries.values()), list(entries), **style)
    for text in legend.get_texts():
        text.set_parse_math(False)
    return legend


def _width_of_columns(widths: Sequence[float], columns: int) -> float:
    """Return the width in points of a key whose entries fill ``columns`` one after another.

    ``widths`` are those of the entries, in points.
    """
    return sum(map(max, np.array_split(widths, columns))) + BETWEEN_COLUMNS * (columns - 1)


def headline(test: CalibrationTestResult) -> str:
    """Return estimate, noise floor and p-value of a test, as printed above a picture."""
    value = f"{short(test.statistic)} {test.shown_estimate}"
    return f"{value} · noise floor {test.shown_floor} · {p_is(test.shown_p)}"


def heading(
    ax: Axes, text: str, over: Artist | None = None, start: Axes | str | None = None
) -> Annotation:
    """Write a text above the axes, or above the artist ``over``, wrapped to their width; return it.

    Lines begin at the left end of the labels of ``start``, by default of ``ax``, or at the place
    that a coordinate system of matplotlib such as "axes fraction" says.
    """
    return _aligned_text(ax, text, 1.0, over or "axes fraction", start, va="bottom", color=INK)


def foot(
    ax: Axes, recipe: str, with_recipe: bool, under: Artist | None = None, start: Axes | None = None
) -> Annotation | None:
    """Write the recipe below the axes, or below the artist ``under``; return the text.

    ``recipe`` says how the picture was made. It is shown only if ``with_recipe``; otherwise None is
    returned. Lines begin at the left end of the labels of ``start``, by default of ``ax``.
    """
    if not with_recipe:
        return None
    below = under or (ax.xaxis.label if ax.axison else "axes fraction")
    return _aligned_text(ax, recipe, 0.0, below, start, va="top", color="#555555")


def _aligned_text(ax: Axes, text: str, y: float, beyond: Artist | str, start: Axes | str | None,
             **style: str) -> Annotation:  # fmt: skip
    """Write lines that begin at the left end of the axis labels of ``ax`` or ``start``.

    They are returned as one text. ``beyond`` is an artist, or a coordinate system such as "axes
    fraction". With ``y`` 1.0 the text stands 3 points above it, with 0.0 as far below. ``start``
    may be a coordinate system as well; ``style`` are matplotlib's options of the text.
    """

    def labels(renderer: RendererBase) -> BboxBase:
        first = ax if start is None or isinstance(start, str) else start
        box = first.yaxis.get_tightbbox(renderer) if first.axison else None
        return box or first.get_window_extent(renderer)

    broken = "\n".join(lines(part, room(ax)) for part in text.split("\n"))
    place = Style(xycoords=(start if isinstance(start, str) else labels, beyond), ha="left")
    place |= {"xytext": (0, 3 if y else -3), "textcoords": "offset points"}
    look = Style(fontsize=SMALL_PRINT, linespacing=1.15, parse_math=False) | style
    return ax.annotate(broken, (0.0, y), **place, **look)


def wide(text: str) -> float:
    """Return the width of a line of small print in points, with a small allowance."""
    from matplotlib.font_manager import FontProperties
    from matplotlib.textpath import text_to_path

    font = FontProperties(size=SMALL_PRINT)
    return 1.03 * float(text_to_path.get_text_width_height_descent(text, font, ismath=False)[0])


def in_two_lines(text: str, most: float) -> str:
    """Return a name in at most two lines of ``most`` points each, shortened in the middle."""
    first, *others = lines(text, most).split("\n")
    second = " ".join(others)
    while wide(second) > most and len(second) > 5:
        cut = max(1, round(len(second) * (1.0 - most / wide(second)))) + 1
        start = (len(second) - cut) * 2 // 3
        second = f"{second[:start].rstrip(' …')}…{second[start + cut :].lstrip(' …')}"
    return f"{first}\n{second}" if second else first


def lines(text: str, room: float) -> str:
    """Return a text broken into lines of at most ``room`` points, at most five.

    Lines break between words, but not beside operators that belong to them; long words are cut. Of
    more lines the first four stay, and "…" follows.
    """
    broken = [""]
    for word in re.split(r"(?<![=<≤]) (?![·%=<≤])", text):
        longer = f"{broken[-1]} {word}".lstrip()
        if wide(longer) <= room:
            broken[-1] = longer
            continue
        fit = max(1, int(0.9 * len(word) * room / wide(word)))
        pieces = [word] if wide(word) <= room else textwrap.wrap(word, fit)
        broken[-1:] = [line for line in broken[-1:] if line] + pieces
    return "\n".join(broken if len(broken) <= LONGEST_TEXT else [*broken[: LONGEST_TEXT - 1], "…"])
