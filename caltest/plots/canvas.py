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

#: The width of a column of a two-column paper, in inches, and that of a page.
COLUMN, PAGE = 3.25, 6.75
#: Colours that keep their order of darkness in grey.
INK, RED, BLUE, PALE, GREY = "#111111", "#c8281e", "#2b6cab", "#a9cce8", "#9a9a9a"
#: Sizes of axis labels, of tick labels, of the headline and of the recipe, in points.
LABEL, TICK, HEAD, FOOT = 8.0, 7.0, 6.5, 4.8
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
        from matplotlib import rc_context

        kind = Path(path).suffix.lower()
        if kind not in RECIPE_IN:
            raise StatisticError(f"a picture is saved as .pdf, .svg or .png, not as {path}")
        undated = {".pdf": "CreationDate", ".svg": "Date"}
        metadata: dict[str, Any] = {RECIPE_IN[kind]: self.recipe}
        metadata |= {undated[kind]: None} if kind in undated else {}
        settings: Any = {"pdf.fonttype": 42, "svg.fonttype": "none", "svg.hashsalt": "caltest"}
        with rc_context(settings):  # restored on leaving
            self.figure.savefig(path, dpi=300, metadata=metadata)

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
    ax.tick_params(labelsize=TICK, length=2.5, width=0.6, pad=2)
    ax.set_xlabel(xlabel, fontsize=size, labelpad=2)
    ax.set_ylabel(ylabel, fontsize=size, labelpad=2)
    for side in ("top", "right"):
        ax.spines[side].set_visible(False)
    for spine in ax.spines.values():
        spine.set_linewidth(0.6)


def legend(ax: Any, handles: Any, labels: Any, size: float = HEAD, **options: Any) -> Any:
    """Draw a legend without a frame."""
    style = {"frameon": False, "handlelength": 1.8, "labelspacing": 0.3, "borderaxespad": 0.2}
    return ax.legend(handles, labels, fontsize=size, **{**style, **options})


def finished(
    ax: Any, artists: dict[str, Any], text: str, recipe: bool, panels: tuple[Picture, ...] = ()
) -> Picture:
    """Write the recipe at the foot, and return the picture."""
    return Picture(ax, {**artists, "foot": foot(ax, text, recipe)}, panels, text)


def headline(ax: Any, test: CalibrationTestResult) -> Any:
    """Write estimate, noise floor and p-value over the upper left corner."""
    name, digits = short(test.statistic), 4  # or two digits of the standard deviation
    if 0.0 < test.null_std < 1.0:
        digits = int(1 - np.floor(np.log10(test.null_std)))
    form = f".{digits}f" if digits <= 5 else ".2g"
    value, mean, std = (f"{x:{form}}" for x in (test.estimate, test.null_mean, test.null_std))
    return corner(ax, f"{name} {value}   chance {mean} ± {std}   p {relation(test)}")


def relation(test: CalibrationTestResult) -> str:
    """Return a p-value with its sign of equality, as "= 0.03" or "< 1e-12"."""
    return _related(test.shown_p)


def _related(shown: str) -> str:
    return shown if shown.startswith("<") else f"= {shown}"


def beside(ax: Any, heights: Iterable[float], pvalues: Iterable[str]) -> list[Any]:
    """Write p-values to the right of the axes."""
    place = {"transform": ax.get_yaxis_transform(), "fontsize": HEAD, "va": "center"}
    return [
        ax.text(1.02, height, f"p {_related(p)}", **place)
        for height, p in zip(heights, pvalues, strict=True)
    ]


def corner(ax: Any, text: str, side: str = "left") -> Any:
    """Write over a corner of the axes."""
    return ax.annotate(
        text,
        (0.0 if side == "left" else 1.0, 1.0),
        xycoords="axes fraction",
        xytext=(0, 3),
        textcoords="offset points",
        ha=side,
        va="bottom",
        fontsize=HEAD,
        color=INK,
    )


def foot(ax: Any, recipe: str, shown: bool, *, within: bool = False) -> Any:
    """Write the recipe small below axes, or within a strip, in as many lines as they are wide."""
    if not shown:
        return None
    width = root(ax).get_figwidth()
    spec = ax.get_subplotspec()
    if spec is not None:
        width /= spec.get_topmost_subplotspec().get_gridspec().ncols
    # Lines end between words, but not within brackets or before a dot or a per cent sign.
    whole = re.sub(r" (?=[·%])", "\u00a0", recipe)
    whole = re.sub(r"\(.*?\)(?= |\u00a0|$)", lambda m: m[0].replace(" ", "\u00a0"), whole)
    lines = textwrap.wrap(whole, int(0.8 * width * 72.0 / (0.5 * FOOT)), break_on_hyphens=False)
    return ax.annotate(
        "\n".join(lines),
        (0.0, 1.0 if within else 0.0),
        xycoords=("axes fraction", ax.xaxis.label if ax.axison else "axes fraction"),
        xytext=(0, -2),
        textcoords="offset points",
        ha="left",
        va="top",
        fontsize=FOOT,
        color="#555555",
        linespacing=1.15,
    )
