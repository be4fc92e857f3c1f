"""The paper: sizes, colours, files, and the places of panels.

:func:`paper` gives the axes of a picture, :class:`Picture` is returned by every plot and saves
files that carry the recipe.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from io import BytesIO
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from caltest._base.arrays import one_of
from caltest._base.saving import write_file
from caltest.errors import StatisticError

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.gridspec import SubplotSpec


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
    """A drawn picture: its axes, its marks by name, and its recipe.

    Attributes
    ----------
    ax, panels : matplotlib Axes and tuple of Picture
        The axes; with several panels, an empty one that holds their place, and the panels.
    artists, recipe : mapping of str to artist, and str
        Marks by name, and how the picture was made.
    """

    ax: Axes
    artists: Mapping[str, object] = field(default_factory=dict, repr=False)
    panels: tuple[Picture, ...] = ()
    recipe: str = ""

    @property
    def figure(self) -> Figure:
        """The figure, for everything that matplotlib can do with it."""
        return root(self.ax)

    def save(self, path: str | Path) -> None:
        """Write a file (.pdf, .svg or .png with 300 dpi) that carries the recipe and no date.

        Text stays text in PDF and SVG, and two runs write the same bytes.
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
        """Show the picture in a notebook, unless pyplot manages the figure and will do so."""
        if self.figure.canvas.manager is not None:
            return None
        file = BytesIO()
        self.figure.savefig(file, format="png", dpi=150)
        return file.getvalue()


def root(ax: Axes) -> Figure:
    """Return the figure of some axes, also for axes on a part of a figure."""
    return ax.figure.figure


def paper(ax: Axes | None, width: float, height: float) -> Axes:
    """Return the axes to draw on: the given ones, or axes of a new figure of this size in inches.

    A new figure belongs to pyplot where pyplot is in use, so that ``plt.show()`` shows it; else it
    stands by itself and no backend is chosen.
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
    """Return a picture with another size of figure and text, with or without its key.

    A figure that the user passed keeps its size; only its text changes.
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
    """Return the grid cell of some axes; axes outside a grid get a grid of their own."""
    if (spec := ax.get_subplotspec()) is not None:
        return spec
    box = ax.get_position()
    edges = {"left": box.x0, "right": box.x1, "bottom": box.y0, "top": box.y1}
    return ax.figure.add_gridspec(1, 1, **edges)[0]


def divided(ax: Axes, rows: int, columns: int, count: int, strip: float) -> list[Axes]:
    """Divide the area of some axes; return ``count`` panels, and an empty strip below them.

    Panels are in ``rows`` × ``columns`` and share their scales; ``strip`` is the relative height.
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
    """Return new axes in the upper ``share`` of an area; the given axes keep the lower part."""
    parts = _grid_place(ax).subgridspec(2, 1, height_ratios=(share, 1.0 - share), hspace=0.05)
    ax.set_subplotspec(parts[1])
    return ax.figure.add_subplot(parts[0], sharex=ax)


def room(ax: Axes) -> float:
    """Return the approximate width of some axes with their labels, in points."""
    figure, spec = ax.figure, ax.get_subplotspec()
    whole = 72.0 * figure.bbox.width / root(ax).dpi - 9.0
    if spec is None:
        return float(whole * ax.get_position().width)
    frame = figure.subplotpars
    share = spec.get_position(root(ax)).width / (frame.right - frame.left)
    return float(whole * min(share, 1.0))
