"""Small pictures of results as inline SVG for notebooks: no matplotlib, no scripts, no ids.

Colours come from the surrounding element (``rendering.STYLE``). Every mark has a ``<title>``:
hover text in a browser, a name for a screen reader. Shapes differ where colours do: points that are
outside or significant are filled.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from html import escape
from math import isfinite

import numpy as np

from caltest._base.arrays import FloatArray
from caltest.results.rendering import format_value

#: The width of a picture, and the height of one with two axes, in units of the view box.
PICTURE_WIDTH, PICTURE_HEIGHT = 240, 190


#: The sides of the plot area: left, right, top, bottom.
PLOT_LEFT, PLOT_RIGHT, PLOT_TOP, PLOT_BOTTOM = 38.0, 230.0, 20.0, 158.0


#: Letters that a label of a row can have.
LONGEST_LABEL = 34


#: Rows of a forest, and points of a line: of more only so many are drawn.
ROWS_DRAWN, MOST_VERTICES = 8, 120


#: Characters of the name of an event that axes can have.
LONGEST_EVENT = 24


@dataclass(frozen=True)
class IntervalRow:
    """One row of a forest plot: an estimate with its interval, noise floor and limit.

    Attributes
    ----------
    label : str
        What the row is about.
    value : float
        The estimate.
    low, high : float, optional
        Its interval; None where there is none.
    floor : tuple of float, optional
        Where a calibrated model would lie: the noise floor, from and to.
    limit : float, optional
        A tolerance, or a prediction, marked by an upright line.
    marked : bool
        Whether the finding is significant: then it is filled.
    """

    label: str
    value: float
    low: float | None = None
    high: float | None = None
    floor: tuple[float, float] | None = None
    limit: float | None = None
    marked: bool = False

    @property
    def words(self) -> str:
        """Text of the row for hover and screen readers."""
        parts = [f"{self.label}: {format_value(self.value)}"]
        if self.low is not None and self.high is not None:
            parts.append(f"interval {format_value(self.low)} to {format_value(self.high)}")
        if self.floor is not None:
            parts.append(f"noise floor {' to '.join(map(format_value, self.floor))}")
        if self.limit is not None:
            parts.append(f"limit {format_value(self.limit)}")
        return ", ".join(parts)

    @property
    def ends(self) -> list[float]:
        """All finite numbers of the row that must fit on the axis."""
        numbers = [self.value, self.low, self.high, self.limit, *(self.floor or ())]
        return [x for x in numbers if x is not None and isfinite(x)]


def forest(rows: Sequence[IntervalRow], axis: str, reference: float | None = 0.0) -> str:
    """Return a forest plot as SVG: interval, noise floor and point of each row; "" without rows.

    Each of ``rows`` has a label, a value, its interval and noise floor; the first eight with a
    finite value are drawn. ``axis`` is the title, and ``reference`` the place of a vertical line,
    None for none.
    """
    rows = [row for row in rows if isfinite(row.value)][:ROWS_DRAWN]
    if not rows:
        return ""
    ends = [end for row in rows for end in row.ends]
    ends += [] if reference is None else [reference]
    at = _scale(min(ends), max(ends), 10.0, PICTURE_WIDTH - 10.0)
    bottom = 22 + 32 * len(rows)
    picture = [_label(0, 11, axis, "a")]
    for number, row in enumerate(rows):
        if reference is not None:  # beside the marks only: labels stay free
            picture.append(f'<path class="d" d="M{at(reference)} {35 + 32 * number}v18"/>')
        picture.append(_interval(row, at, 22 + 32 * number))
    for tick in dict.fromkeys([min(ends), *([] if reference is None else [reference]), max(ends)]):
        anchor = "start" if at(tick) < 30 else "end" if at(tick) > PICTURE_WIDTH - 30 else "middle"
        picture.append(_label(at(tick), bottom + 13, f"{tick:.3g}", "k", anchor))
    return _svg(picture, bottom + 18, f"{axis}: {'; '.join(row.words for row in rows)}")


def _interval(row: IntervalRow, at: Callable[[float], float], top: float) -> str:
    """Return the marks of one row of a forest plot as a string of SVG, with its label above them.

    ``row`` has a label, a value, its interval, noise floor and limit. ``at`` maps values to
    horizontal coordinates, and ``top`` is the upper edge of the row.
    """
    middle, marks = top + 22, []
    if row.floor is not None:
        low, high = map(at, row.floor)
        width = max(high - low, 2.0)
        marks.append(
            f'<rect class="b" x="{low}" y="{middle - 5}" width="{width:.1f}" height="10"/>'
        )
    if row.low is not None and row.high is not None:
        kind = "e s" if row.marked else "e"
        low, high = at(row.low), at(row.high)
        line = f"M{low} {middle}H{high}M{low} {middle - 4}v8M{high} {middle - 4}v8"
        marks.append(f'<path class="{kind}" d="{line}"/>')
    if row.limit is not None:
        marks.append(f'<path class="r" d="M{at(row.limit)} {middle - 8}v16"/>')
    marks.append(_dot(at(row.value), middle, row.marked))
    label = row.label if len(row.label) <= LONGEST_LABEL else row.label[: LONGEST_LABEL - 1] + "…"
    return _mark(row.words, [_label(4, top + 12, label, "k"), *marks])


def diagram(
    predicted: FloatArray,
    observed: FloatArray,
    bars: tuple[FloatArray, FloatArray],
    filled: Sequence[bool],
    counts: Sequence[float],
    axes: tuple[str, str] = ("Predicted probability", "Observed event rate"),
) -> str:
    """Return a reliability diagram as SVG: the diagonal, and a bar and a point for every bin.

    ``predicted``, ``observed`` and both ends of ``bars`` have shape (L,); ``filled`` marks bins
    that are outside their bar, and ``counts`` (L,) are numbers of observations for the hover text.
    ``axes`` are the titles of both axes.
    """
    low, high = (np.clip(end, 0.0, 1.0) for end in bars)
    x, y, picture = _square([predicted, observed, low, high], axes)
    for j, (p, o, a, b) in enumerate(zip(predicted, observed, low, high, strict=True)):
        words = f"bin {j + 1}: {counts[j]:g} observations, predicted {p:.3g}, observed {o:.3g}"
        marks = []
        if isfinite(a) and isfinite(b):
            words += f", bar {a:.3g} to {b:.3g}"
            height = max(y(a) - y(b), 2.0)
            rect = f'x="{x(p) - 3.0:.1f}" y="{y(b)}" width="6" height="{height:.1f}"'
            marks.append(f'<rect class="b" {rect}/>')
        picture.append(_mark(words, [*marks, _dot(x(p), y(o), bool(filled[j]))]))
    outside = sum(map(bool, filled))
    return _svg(
        picture, PICTURE_HEIGHT, f"Reliability diagram: {outside} of {len(counts)} bins are filled"
    )


def line(
    x: FloatArray,
    y: FloatArray,
    axes: tuple[str, str],
    *,
    band: tuple[FloatArray, FloatArray] | None = None,
    level: float | None = None,
    square: bool = False,
) -> str:
    """Return a line with a band as SVG, with the diagonal or a horizontal line.

    ``x`` and ``y`` have shape (m,), of which at most 120 evenly spread points are drawn. ``band``
    are the lower and upper limits of y, (m,) each, None without. ``axes`` are the titles of x and
    y. ``square`` draws probabilities over one range, with the diagonal; ``level`` is the height of
    the horizontal line, None without.
    """
    places = np.unique(np.linspace(0, len(x) - 1, MOST_VERTICES).astype(int))
    x, y = x[places], y[places]
    low, high = (end[places] for end in band) if band else (y, y)
    known = np.isfinite(low) & np.isfinite(high)
    if square:
        across, up, picture = _square([x, y, low[known], high[known]], axes)
    else:
        heights = np.concatenate([y, low[known], high[known], [] if level is None else [level]])
        across = _scale(float(x.min()), float(x.max()), PLOT_LEFT, PLOT_RIGHT)
        up = _scale(float(heights.min()), float(heights.max()), PLOT_BOTTOM, PLOT_TOP)
        picture = _frame(across, up, axes, (x.min(), x.max()), (heights.min(), heights.max()))
    if known.sum() > 1:
        there = [f"{across(a)} {up(b)}" for a, b in zip(x[known], high[known], strict=True)]
        back = [f"{across(a)} {up(b)}" for a, b in zip(x[known], low[known], strict=True)]
        picture.append(f'<path class="w" d="M{"L".join([*there, *back[::-1]])}Z"/>')
    if level is not None:
        picture.append(f'<path class="d" d="M{PLOT_LEFT} {up(level)}H{PLOT_RIGHT}"/>')
    points = "L".join(f"{across(a)} {up(b)}" for a, b in zip(x, y, strict=True))
    words = f"{axes[1]} from {y.min():.3g} to {y.max():.3g}"
    picture.append(_mark(words, [f'<path class="c" d="M{points}"/>']))
    return _svg(picture, PICTURE_HEIGHT, f"{axes[1]} by {axes[0]}")


def axes_of(subject: str, event: str = "") -> tuple[str, str]:
    """Return (title of predictions, title of observed frequencies), as axes print them.

    ``subject`` is the kind of lens: "top" gives confidence and accuracy, all others probability and
    event rate. ``event`` is the user's name of the event, which titles contain if it has at most 24
    letters; "" without.
    """
    if subject == "top":
        return "Confidence", "Accuracy"
    if event and len(event) <= LONGEST_EVENT:
        return f"Predicted P({event})", f"Observed frequency of {event}"
    return "Predicted probability", "Observed event rate"


def histogram_bars(heights: Sequence[float], ends: tuple[float, float], words: str) -> str:
    """Return a histogram as SVG, one column for each of the ``heights``, titled ``words``.

    ``ends`` are the numbers printed at the left and right end of the axis.
    """
    tallest = max(*heights, 1e-300)
    width = (PICTURE_WIDTH - 8) / len(heights)
    bars = "".join(
        f"M{4 + width * j:.1f} 60v{-44 * height / tallest:.1f}h{width - 1:.1f}V60z"
        for j, height in enumerate(heights)
        if height > 0
    )
    axis = [
        _label(4, 74, f"{ends[0]:g}", "k"),
        _label(PICTURE_WIDTH - 4, 74, f"{ends[1]:g}", "k", "end"),
    ]
    marks = [f'<path class="b" d="{bars}"/>', f'<path class="x" d="M4 60H{PICTURE_WIDTH - 4}"/>']
    return _svg([_label(0, 11, words, "a"), _mark(words, marks), *axis], 78, words)


# ------------------------------------------------------------------------------
# Parts: scales, axes, marks, and the picture around them.


def _scale(low: float, high: float, start: float, end: float) -> Callable[[float], float]:
    """Return the map from data to picture coordinates, rounded to a tenth of a unit.

    It maps ``low`` to ``start`` and ``high`` to ``end``.
    """
    length = high - low or 1.0
    return lambda value: round(float(start + (value - low) / length * (end - start)), 1)


def _square(
    values: Iterable[FloatArray], axes: tuple[str, str]
) -> tuple[Callable[[float], float], Callable[[float], float], list[str]]:
    """Return (x, y, elements) of a square diagram with the diagonal.

    ``x`` and ``y`` map probabilities to picture coordinates, over one range that holds all
    ``values``; the elements, strings of SVG, draw the axes, with the titles ``axes``, and the
    diagonal.
    """
    known = np.concatenate([v[np.isfinite(v)] for v in values])
    low, high = np.floor(10.0 * known.min()) / 10.0, np.ceil(10.0 * known.max()) / 10.0
    low, high = max(0.0, float(low)), min(1.0, float(high))
    if high <= low:
        low, high = 0.0, 1.0
    x, y = _scale(low, high, PLOT_LEFT, PLOT_RIGHT), _scale(low, high, PLOT_BOTTOM, PLOT_TOP)
    picture = _frame(x, y, axes, (low, high), (low, high))
    return x, y, [*picture, f'<path class="d" d="M{x(low)} {y(low)}L{x(high)} {y(high)}"/>']


def _frame(
    x: Callable[[float], float],
    y: Callable[[float], float],
    axes: tuple[str, str],
    x_ends: tuple[float, float],
    y_ends: tuple[float, float],
) -> list[str]:
    """Return the axes as SVG elements, a list of strings: names, lines, and a number at each end.

    ``x`` and ``y`` map data to picture coordinates, ``axes`` are the names of both; ``x_ends`` and
    ``y_ends`` are the numbers shown.
    """
    picture = [
        _label(0, 11, axes[1], "a"),
        _label(PLOT_RIGHT, PICTURE_HEIGHT - 4, axes[0], "a", "end"),
    ]
    for value in y_ends:
        picture.append(f'<path class="g" d="M{PLOT_LEFT} {y(value)}H{PLOT_RIGHT}"/>')
        picture.append(_label(PLOT_LEFT - 4, y(value) + 4, f"{value:.2g}", "k", "end"))
    for value, anchor in zip(x_ends, ("start", "end"), strict=True):
        picture.append(_label(x(value), PLOT_BOTTOM + 14, _number(value), "k", anchor))
    return picture


def _number(value: float) -> str:
    """Return a number of three digits, or a whole number as it is."""
    return f"{value:.0f}" if value == round(value) else f"{value:.3g}"


def _dot(x: float, y: float, filled: bool) -> str:
    return (
        f'<circle class="{"o" if filled else "i"}" cx="{x}" cy="{y}" r="{4.5 if filled else 4}"/>'
    )


def _mark(words: str, marks: Iterable[str]) -> str:
    return f'<g role="img"><title>{escape(words)}</title>{"".join(marks)}</g>'


def _label(x: float, y: float, words: str, kind: str, anchor: str = "start") -> str:
    place = f'x="{x}" y="{y}" text-anchor="{anchor}"'
    return f'<text class="{kind}" {place}>{escape(words.replace("-", "−"))}</text>'


def _svg(picture: Iterable[str], height: float, words: str) -> str:
    size = f'viewBox="0 0 {PICTURE_WIDTH} {height}" width="{PICTURE_WIDTH}"'
    label = f'role="group" aria-label="{escape(words, quote=True)}"'
    return f"<svg {size} {label}>{''.join(picture)}</svg>"
