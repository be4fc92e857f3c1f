"""What all pictures share: paper, ink, and the recipe line at the foot."""

from __future__ import annotations

import re
import sys
import textwrap
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from caltest.errors import StatisticError
from caltest.results import CalibrationTestResult, short

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

#: The width of a column of a two-column paper, in inches.
COLUMN = 3.25
#: Colours that keep their order of darkness in grey.
INK, RED, BLUE, PALE, GREY = "#111111", "#c8281e", "#2b6cab", "#a9cce8", "#9a9a9a"
#: Sizes of axis labels and of all other words, in points: what small print must at least have.
LABEL, SMALL = 8.0, 7.0
#: Longer texts are cut on the paper, not in the recipe that the file carries.
MOST = 5
#: Lines that are not solid.
DASHED = (0, (4, 2))
#: Where each format keeps the recipe.
RECIPE_IN = {".pdf": "Subject", ".svg": "Description", ".png": "Description"}


@dataclass(frozen=True)
class Picture:
    """What was drawn.

    Attributes
    ----------
    ax : matplotlib Axes
        The axes; with several panels, an empty one that holds their place.
    artists : mapping of str to artist
        What is on it, by name.
    panels : tuple of Picture
        The panels of a picture that has several.
    recipe : str
        How it was made, whether or not it is written at the foot.
    """

    ax: Axes
    artists: Mapping[str, Any] = field(default_factory=dict, repr=False)
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
        self._write(path, kind)

    def to_svg(self) -> str:
        """Return the picture as SVG, in which text stays text."""
        file = BytesIO()
        self._write(file, ".svg")
        return file.getvalue().decode()

    def _write(self, file: Any, kind: str) -> None:
        from matplotlib import rc_context

        undated = {".pdf": "CreationDate", ".svg": "Date"}
        metadata: dict[str, Any] = {RECIPE_IN[kind]: self.recipe}
        metadata |= {undated[kind]: None} if kind in undated else {}
        settings: Any = {"pdf.fonttype": 42, "svg.fonttype": "none", "svg.hashsalt": "caltest"}
        with rc_context(settings):  # restored on leaving
            self.figure.savefig(file, format=kind[1:], dpi=300, metadata=metadata)

    def _repr_png_(self) -> bytes | None:
        """Show the picture in a notebook, unless pyplot manages the figure and will do so."""
        if hasattr(self.figure, "number"):
            return None
        file = BytesIO()
        self.figure.savefig(file, format="png", dpi=150)
        return file.getvalue()


def root(ax: Any) -> Any:
    """Return the figure of some axes, also where they lie on a part of it."""
    return ax.figure.figure


def paper(ax: Any, width: float, height: float, **options: Any) -> Any:
    """Return the axes to draw on: those given, or those of a new figure of this size in inches.

    A new figure belongs to pyplot where pyplot is in use, so that ``plt.show()`` shows it; else it
    stands by itself and no backend is chosen.
    """
    if ax is None:
        from matplotlib.figure import Figure

        pyplot: Any = sys.modules.get("matplotlib.pyplot")
        make = Figure if pyplot is None else pyplot.figure
        return make(figsize=(width, height), layout="constrained").add_subplot(**options)
    if not hasattr(ax, "get_subplotspec"):
        raise StatisticError(f"ax must be matplotlib axes, not {type(ax).__name__}")
    return ax


def divided(ax: Any, rows: int, columns: int, count: int, strip: float = 0.0) -> list[Any]:
    """Divide the place of some axes among ``count`` panels that share their axes.

    With ``strip``, the last item is an empty strip below them, that many panels high.
    """
    figure, spec = ax.figure, ax.get_subplotspec()
    heights = [1.0] * rows + [strip] * (strip > 0.0)
    if spec is None:
        box = ax.get_position()
        edges = {"left": box.x0, "right": box.x1, "bottom": box.y0, "top": box.y1}
        grid = figure.add_gridspec(len(heights), columns, height_ratios=heights, **edges)
    else:
        grid = spec.subgridspec(len(heights), columns, height_ratios=heights)
    ax.set_axis_off()
    panels: list[Any] = []
    for j in range(count):
        place, first = grid[j // columns, j % columns], panels[0] if panels else None
        panels.append(figure.add_subplot(place, sharex=first, sharey=first))
    if strip > 0.0:
        panels.append(figure.add_subplot(grid[rows, :]))
        panels[-1].set_axis_off()
    return panels


def above(ax: Any, share: float) -> Any:
    """Return new axes in the upper part of the place of some axes, which keep the lower part."""
    spec = ax.get_subplotspec()
    if spec is None:
        box = ax.get_position()
        height = share * box.height
        ax.set_position([box.x0, box.y0, box.width, box.height - 1.1 * height])
        return ax.figure.add_axes((box.x0, box.y1 - height, box.width, height), sharex=ax)
    parts = spec.subgridspec(2, 1, height_ratios=(share, 1.0 - share), hspace=0.05)
    ax.set_subplotspec(parts[1])
    return ax.figure.add_subplot(parts[0], sharex=ax)


def tidy(ax: Any, xlabel: str = "", ylabel: str = "", size: float = LABEL) -> None:
    """Give axes small type and no needless lines."""
    ax.tick_params(labelsize=SMALL, length=2.5, width=0.6, pad=2)
    ax.set_xlabel(xlabel, fontsize=size, labelpad=2)
    ax.set_ylabel(ylabel, fontsize=size, labelpad=2)
    for side in ("top", "right"):
        ax.spines[side].set_visible(False)
    for spine in ax.spines.values():
        spine.set_linewidth(0.6)


def sign(marker: str = "o", color: str = INK, *, filled: bool = True, line: Any = "none") -> Any:
    """Return what stands for marks of one kind in a key."""
    from matplotlib.lines import Line2D

    style: Any = {
        "markersize": 7.0 if marker == "|" else 4.0,
        "markeredgewidth": 0.9,
        "linewidth": 0.9,
    }
    face = color if filled else "white"
    return Line2D([], [], color=color, marker=marker, markerfacecolor=face, linestyle=line, **style)


def key(ax: Any, entries: Mapping[str, Any], shift: float = 28.0, **options: Any) -> Any:
    """Say what the signs mean above the axes, beginning ``shift`` points to their left."""
    from matplotlib.transforms import ScaledTranslation

    widths, columns = [wide(word) + 26.0 for word in entries], len(entries)
    while columns > 1 and sum(map(max, np.array_split(widths, columns))) > room(ax):
        columns -= 1
    start = ScaledTranslation(-shift / 72.0, 0.04, root(ax).dpi_scale_trans)
    place = {"loc": "lower left", "bbox_to_anchor": (0.0, 1.0)} | options
    style = {"handlelength": 1.6, "labelspacing": 0.25, "borderaxespad": 0.2, "borderpad": 0.1}
    style |= {"columnspacing": 1.0, "handletextpad": 0.5, "fontsize": SMALL, "frameon": False}
    style |= {"ncols": columns, "bbox_transform": ax.transAxes + start}
    drawn = ax.legend(list(entries.values()), list(entries), **place, **style)
    for text in drawn.get_texts():
        text.set_parse_math(False)
    return drawn


def finished(
    ax: Any, artists: dict[str, Any], text: str, recipe: bool, panels: tuple[Picture, ...] = ()
) -> Picture:
    """Write the recipe at the foot, and return the picture."""
    return Picture(ax, {**artists, "foot": foot(ax, text, recipe)}, panels, text)


def headline(ax: Any, test: CalibrationTestResult, over: Any = None) -> Any:
    """Write estimate, noise floor and p-value over the upper left corner, or over a key."""
    name, digits = short(test.statistic), 4  # or two digits of the standard deviation
    if 0.0 < test.null_std < 1.0:
        digits = int(1 - np.floor(np.log10(test.null_std)))
    form = f".{digits}f" if digits <= 5 else ".2g"
    value, mean, std = (f"{x:{form}}" for x in (test.estimate, test.null_mean, test.null_std))
    said = f"{name} {value} · if calibrated {mean} ± {std} · p {relation(test)}"
    return heading(ax, said, over)


def relation(test: CalibrationTestResult) -> str:
    """Return a p-value with its sign of equality, as "= 0.03" or "< 1e-12"."""
    return related(test.shown_p)


def related(shown: str) -> str:
    """Return a printed p-value with its sign of equality."""
    return shown if shown.startswith("<") else f"= {shown}"


def beside(ax: Any, heights: Iterable[float], words: Iterable[str]) -> list[Any]:
    """Write words to the right of the axes, at heights of the data."""
    place = {"transform": ax.get_yaxis_transform(), "fontsize": SMALL, "va": "center"}
    return [ax.text(1.02, y, said, **place) for y, said in zip(heights, words, strict=True)]


def heading(ax: Any, text: str, over: Any = None, start: Any = None) -> Any:
    """Write over the axes, or over what is already there, in as many lines as it takes."""
    return _written(ax, text, 1.0, over or "axes fraction", start, va="bottom", color=INK)


def foot(ax: Any, recipe: str, shown: bool, under: Any = None, start: Any = None) -> Any:
    """Write the recipe below axes, or below what is there, in as many lines as it takes."""
    if not shown:
        return None
    below = under or (ax.xaxis.label if ax.axison else "axes fraction")
    return _written(ax, recipe, 0.0, below, start, va="top", color="#555555")


def _written(ax: Any, text: str, y: float, beyond: Any, start: Any, **style: Any) -> Any:
    """Write lines that begin where the labels of the axes do, or those of others."""

    def labels(renderer: Any) -> Any:
        first = start or ax
        box = first.yaxis.get_tightbbox(renderer) if first.axison else None
        return box or first.get_window_extent(renderer)

    said = "\n".join(lines(part, room(ax)) for part in text.split("\n"))
    place = {"xycoords": (start if isinstance(start, str) else labels, beyond), "ha": "left"}
    place |= {"xytext": (0, 3 if y else -3), "textcoords": "offset points"}
    style |= {"fontsize": SMALL, "linespacing": 1.15, "parse_math": False}
    return ax.annotate(said, (0.0, y), **place, **style)


def room(ax: Any) -> float:
    """Return about how wide the place of some axes is with their labels, in points."""
    figure, spec = ax.figure, ax.get_subplotspec()
    whole = 72.0 * figure.bbox.width / root(ax).dpi - 9.0
    if spec is None:
        return float(whole * ax.get_position().width)
    frame = figure.subplotpars
    share = spec.get_position(figure).width / (frame.right - frame.left)
    return float(whole * min(share, 1.0))


def wide(text: str) -> float:
    """Return the width of a line of small print, in points, and a little more."""
    from matplotlib.font_manager import FontProperties
    from matplotlib.textpath import text_to_path

    font = FontProperties(size=SMALL)
    return 1.03 * float(text_to_path.get_text_width_height_descent(text, font, ismath=False)[0])


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
