"""What an item is given and what it returns: context, checks, tables, figures, results."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from caltest.plots.chart import COLUMN, INK, LABEL, RED, SMALL_PRINT

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Canvas

#: Standard errors that a simulated number may be away from the document's.
ERRORS = 4.0
#: Settings that make the figures drawn here look like those of :mod:`caltest.plots`.
STYLE: Any = {
    "axes.labelsize": LABEL,
    "axes.linewidth": 0.6,
    "axes.prop_cycle": (
        f"cycler(color={[INK, RED, '#5fa2dd', '#7a5195', '#c9a227']}, "
        "marker=['o', 's', 'D', 'p', 'h'], "
        "linestyle=['-', (0, (5, 1.5)), (0, (1, 1)), (0, (4, 1, 1, 1)), (0, (7, 3))])"
    ),
    "axes.spines.right": False,
    "axes.spines.top": False,
    "axes.titlesize": LABEL,
    "font.size": SMALL_PRINT,
    "legend.fontsize": SMALL_PRINT,
    "legend.frameon": False,
    "legend.handlelength": 2.6,
    "lines.markersize": 3.5,
    "lines.linewidth": 1.1,
    "xtick.labelsize": SMALL_PRINT,
    "ytick.labelsize": SMALL_PRINT,
}


@dataclass(frozen=True)
class Check:
    """One statement of a document, what was found here, and whether that agrees."""

    statement: str
    paper: str
    ours: str
    allowed: str
    passed: bool


@dataclass(frozen=True)
class Table:
    """Numbers that are shown, not checked."""

    caption: str
    columns: Sequence[str]
    rows: Sequence[Sequence[Any]]


@dataclass(frozen=True)
class Figure:
    """A picture that was saved, and what it shows."""

    path: Path
    caption: str


@dataclass
class Result:
    """What an item found: numbers by name, checks, figures and tables."""

    numbers: dict[str, float] = field(default_factory=dict)
    checks: list[Check] = field(default_factory=list)
    figures: list[Figure] = field(default_factory=list)
    tables: list[Table] = field(default_factory=list)

    def near(
        self, statement: str, ours: float, paper: float, tolerance: float, *, digits: int = 4
    ) -> None:
        """Check that a number is the document's up to a tolerance."""
        self.numbers[statement] = float(ours)
        self.checks.append(
            Check(
                statement,
                show(paper, digits),
                show(ours, digits),
                f"± {tolerance:.2g}",
                bool(abs(ours - paper) <= tolerance),
            )
        )

    def simulated(
        self,
        statement: str,
        ours: ArrayLike,
        paper: float,
        *,
        paper_error: float = 0.0,
        rounding: float = 0.0,
        digits: int = 4,
    ) -> None:
        """Check the mean of simulated values: four standard errors, and the paper's rounding."""
        values = np.asarray(ours, dtype=float)
        error = float(np.hypot(values.std(ddof=1) / np.sqrt(values.size), paper_error))
        self.near(statement, values.mean(), paper, ERRORS * error + rounding, digits=digits)

    def share(
        self,
        statement: str,
        hits: ArrayLike,
        paper: float,
        *,
        paper_trials: float = np.inf,
        rounding: float = 0.0,
    ) -> None:
        """Check a simulated frequency: four binomial standard errors of both simulations."""
        values = np.asarray(hits, dtype=bool)
        p = np.clip(paper, 0.5 / values.size, 1.0 - 0.5 / values.size)
        error = float(np.sqrt(p * (1.0 - p) * (1.0 / values.size + 1.0 / paper_trials)))
        self.near(statement, values.mean(), paper, ERRORS * error + rounding, digits=3)

    def inside(
        self,
        statement: str,
        ours: float,
        low: float,
        high: float,
        paper: str = "",
        *,
        digits: int = 4,
    ) -> None:
        """Check that a number lies between two bounds."""
        self.numbers[statement] = float(ours)
        allowed = f"{show(low, digits)} … {show(high, digits)}"
        self.checks.append(
            Check(
                statement, paper or allowed, show(ours, digits), allowed, bool(low <= ours <= high)
            )
        )

    def holds(self, statement: str, passed: bool, ours: str, paper: str = "") -> None:
        """Check a claim that is not a number."""
        self.checks.append(Check(statement, paper, ours, "holds", bool(passed)))

    def save(self, canvas: Canvas, name: str, caption: str, context: Context) -> None:
        """Write a figure next to the report."""
        folder = context.out / "figures"
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / f"{name}.png"
        canvas.savefig(path, dpi=200, metadata={"Software": None})
        self.figures.append(Figure(path, caption))


def show(value: float, digits: int = 4) -> str:
    """Return a number with some decimals, or in scientific notation where these show nothing."""
    if value == 0.0 or 0.95 * 10.0**-digits <= abs(value) < 1e5:
        return f"{value:.{digits}f}"
    return f"{value:.2e}"


@dataclass(frozen=True)
class Context:
    """How an item is to run.

    Attributes
    ----------
    quick : bool
        Fewer repetitions; tolerances follow.
    seed : int
        Root of all random numbers.
    out : Path
        Where figures are written.
    data : Path or None
        Folder of real predictions, where the user has them.
    draw : bool
        Whether to make figures.
    """

    quick: bool = False
    seed: int = 0
    out: Path = Path("replications")
    data: Path | None = None
    draw: bool = True

    def rng(self, *key: int) -> np.random.Generator:
        """Return a generator of its own for every key."""
        return np.random.default_rng([self.seed, *key])

    def times(self, full: int, quick: int) -> int:
        """Return how often to repeat."""
        return quick if self.quick else full

    def style(self) -> AbstractContextManager[None]:
        """Return a context in which figures get their looks; matplotlib is as before after it."""
        if not self.draw:
            return nullcontext()
        from matplotlib import rc_context

        return rc_context(STYLE)

    def stored(self, name: str) -> Any | None:
        """Return a file of the optional data, or None."""
        if self.data is None or not (self.data / name).is_file():
            return None
        return _loaded(self.data / name)


@cache
def _loaded(path: Path) -> Any:
    with np.load(path, allow_pickle=False) as content:
        return {name: content[name] for name in content.files}


def reach(*curves: Any) -> float:
    """Return how far a deviation axis goes that panels share."""
    tops = [curve.plot(recipe=False).ax.get_ylim()[1] for curve in curves]
    return float(max(tops))


def named(picture: Any, title: str) -> None:
    """Write a title over the headline of a picture."""
    headline = picture.artists["headline"]
    headline.set_text(f"{title}\n{headline.get_text()}")


def key(axis: Any, **options: Any) -> None:
    """Draw the legend of a panel above it, where it hides nothing."""
    place = {"loc": "lower left", "bbox_to_anchor": (-0.08, 1.0), "borderaxespad": 0.1}
    axis.legend(**place, labelspacing=0.25, columnspacing=1.0, **options)


def canvas(
    height: float, rows: int = 1, columns: int = 1, *, width: float = COLUMN, **options: Any
) -> Any:
    """Return a matplotlib figure and its axes, without pyplot and its global state.

    ``options`` are those of ``Figure.subplots``.
    """
    from matplotlib.figure import Figure as Canvas

    figure = Canvas(figsize=(width, height), layout="constrained")
    return figure, figure.subplots(rows, columns, **options)
