"""Elements of a report's page: records of the first screen, and pictures as inline SVG.

:class:`FirstScreen` holds facts only. :func:`small_scale` and :func:`part_forest` draw its
intervals, :func:`switch` the reliability diagram in three views. There are no scripts, and every
mark has a ``<title>``: hover text in a browser and a name for a screen reader.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from html import escape
from math import ceil, floor, isfinite, log

import numpy as np

from caltest._base.arrays import FloatArray
from caltest.results import Record, ReliabilityCurve
from caltest.results.figures import LOGIT_EDGES, SHARE_EDGES, SPREAD_EDGES


@dataclass(frozen=True, eq=False)
class KeyNumber(Record):
    """A number of the first screen.

    Attributes
    ----------
    label, value, interval, note : str
        As printed.
    at, low, high : float
        The number and its interval; NaN without one.
    reference : float
        Value of a calibrated model, or the noise floor.
    reference_words : str
        What the reference is called.
    marked : bool
        Whether the interval contradicts calibration.
    """

    label: str
    value: str
    interval: str
    note: str
    at: float
    low: float
    high: float
    reference: float
    reference_words: str
    marked: bool


@dataclass(frozen=True, eq=False)
class PartLine(Record):
    """Observed and predicted of a subgroup or a class.

    Attributes
    ----------
    name : str
        The subgroup, or the class.
    n : int
        Its number of observations.
    predicted, observed : float
        Mean prediction and event rate, in [0, 1].
    difference, low, high : float
        Observed − predicted with its simultaneous interval, in [−1, 1].
    adjusted : float
        p-value of a difference of 0, adjusted over all parts (Holm).
    tone : {"bad", "ok", "ask"}
        "bad" if the interval excludes 0, or with a tolerance if all of it exceeds the tolerance;
        "ok" if it lies within the tolerance; "ask" if neither.
    finding : str
        The same in words.
    """

    name: str
    n: int
    predicted: float
    observed: float
    difference: float
    low: float
    high: float
    adjusted: float
    tone: str
    finding: str

    @property
    def at_least(self) -> float:
        """Smallest |observed − predicted| within the interval; 0 if the interval contains 0."""
        return max(self.low, -self.high, 0.0)


@dataclass(frozen=True, eq=False)
class FirstScreen(Record):
    """The first screen of a report.

    Attributes
    ----------
    word, tone : str
        The verdict, and "bad", "ok" or "ask".
    headline : tuple of str
        Who and in which direction; predicted and observed.
    lede : str
        All observations, in a sentence.
    numbers : tuple of KeyNumber
        At most four key numbers, each with its label, interval and reference.
    matters : str
        Whether the error matters, in sentences.
    parts : tuple of PartLine
        Subgroups, or classes, sorted by evidence, each with observed and predicted.
    whom : str
        Which classes are wrong, where averages do not say it.
    next : str
        What to do, in a sentence.
    provenance : tuple of str
        Source, level, author, versions, seed.
    """

    word: str
    tone: str
    headline: tuple[str, ...]
    lede: str
    numbers: tuple[KeyNumber, ...]
    matters: str
    parts: tuple[PartLine, ...]
    whom: str
    next: str
    provenance: tuple[str, ...]


# ------------------------------------------------------------------------------
# Key numbers and subgroups of the first screen.


#: Shapes of the verdicts: a diamond, a disc with a tick, a square with a question mark.
CHIP_SHAPES = {
    "bad": '<svg viewBox="0 0 20 20" aria-hidden="true"><path d="M10 1l9 9-9 9-9-9z" '
    'fill="currentColor"/><path d="M10 5.5v5.5M10 13.2v1.6" stroke="var(--chip)" '
    'stroke-width="2"/></svg>',
    "ok": '<svg viewBox="0 0 20 20" aria-hidden="true"><circle cx="10" cy="10" r="9" '
    'fill="currentColor"/><path d="M5.5 10.3l3 3 6-6.4" stroke="var(--chip)" stroke-width="2.2" '
    'fill="none"/></svg>',
    "ask": '<svg viewBox="0 0 20 20" aria-hidden="true"><path d="M2 2h16v16h-16z" fill="none" '
    'stroke="currentColor" stroke-width="2"/><text x="10" y="14.5" text-anchor="middle" '
    'style="fill:currentColor;font:700 13px system-ui,sans-serif">?</text></svg>',
}


def small_scale(number: KeyNumber, width: float = 210.0) -> str:
    """Return the interval plot below a key number as SVG: interval, point and labelled reference.

    ``number`` has the value, its interval and the reference, the value of a calibrated model or the
    noise floor. ``width`` is in units of the view box. "" for a number without an interval.
    """
    if not (isfinite(number.low) and isfinite(number.high) and number.high > number.low):
        return ""
    ends = (number.low, number.high, number.at, number.reference)
    length = max(ends) - min(ends)
    start, stop = min(ends) - 0.2 * length, max(ends) + 0.2 * length

    def x_of(value: float) -> float:
        return round(6.0 + (value - start) / (stop - start) * (width - 12.0), 1)

    half = 3.1 * len(number.reference_words)
    middle = min(max(x_of(number.reference), half), width - half)
    title = f"{number.label} {number.value}, {number.interval}; {number.reference_words}"
    kinds = ("e sig", "o") if number.marked else ("e", "i")
    return (
        f'<svg class="sc" viewBox="0 0 {width:g} 31" role="img"><title>{escape(title)}</title>'
        f'<path class="x" d="M6 10H{width - 6:g}"/><path class="ref" d="M{x_of(number.reference)} '
        f'2V18"/><path class="{kinds[0]}" d="M{x_of(number.low)} 10H{x_of(number.high)}"/>'
        f'<circle class="{kinds[1]}" cx="{x_of(number.at)}" cy="10" r="4.5"/>'
        f'<text x="{middle:.1f}" y="29" text-anchor="middle">{escape(number.reference_words)}'
        "</text></svg>"
    )


def part_forest(parts: tuple[PartLine, ...], tolerance: float, width: float = 250.0) -> list[str]:
    """Return SVG elements: a common axis first, then the interval of each part on it.

    ``parts`` are subgroups or classes, each with observed − predicted and its interval. A band
    marks −``tolerance`` to ``tolerance`` (none if it is 0); ``width`` is in units of the view box.
    """
    reach = max((max(abs(p.low), abs(p.high)) for p in parts), default=0.1) or 0.1
    step = next(s for s in (0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0) if reach / s <= 3.0)
    reach = step * float(np.ceil(reach / step))

    def x_of(value: float) -> float:
        return round(18.0 + (value + reach) / (2.0 * reach) * (width - 36.0), 1)

    ticks = [k * step for k in range(-round(reach / step), round(reach / step) + 1)]
    words = "".join(
        f'<text x="{x_of(t)}" y="13" text-anchor="middle">{_point(t)}</text>' for t in ticks
    )
    out = [f'<svg class="f" viewBox="0 0 {width:g} 18" aria-hidden="true">{words}</svg>']
    for p in parts:
        title = (
            f"{p.name}: observed {MINUS} predicted {points(p.difference)}, simultaneous interval "
            f"{points(p.low)} to {points(p.high)}; {p.finding}"
        )
        off = p.at_least > 0.0
        band = (
            f'<rect class="tol" x="{x_of(max(-tolerance, -reach))}" y="0" height="30" '
            f'width="{x_of(min(tolerance, reach)) - x_of(max(-tolerance, -reach)):.1f}"/>'
        ) * (tolerance > 0.0)
        kind, dot = ("e sig", "o") if off else ("e", "i")
        caps = "".join(f'<path class="{kind}" d="M{x_of(v)} 10v10"/>' for v in (p.low, p.high))
        out.append(
            f'<svg class="f" viewBox="0 0 {width:g} 30" role="img"><title>{escape(title)}</title>'
            f'{band}<path class="d0" d="M{x_of(0.0)} 0V30"/><path class="{kind}" d="M{x_of(p.low)} '
            f'15H{x_of(p.high)}"/>{caps}'
            f'<circle class="{dot}" cx="{x_of(p.difference)}" cy="15" r="5"/></svg>'
        )
    return out


def _point(t: float) -> str:
    """Return the label of a tick in percentage points, with its sign.

    ``t`` is a share, such as 0.02.
    """
    sign = "" if abs(t) < 1e-9 else MINUS if t < 0.0 else "+"
    return f"{sign}{abs(100.0 * t):.3g}"


# ------------------------------------------------------------------------------
# Reliability diagram in three views: observed against predicted, observed − predicted, log-odds.
#
# Colours are variables of the page. Dots outside their bars are filled, so that grey print says the
# same.


#: Units of the view box, and what surrounds the plot: left, right, top, bottom; the histogram.
WIDTH, HEIGHT = 480, 404


LEFT_MARGIN, RIGHT_MARGIN, TOP, BOTTOM, STRIP = 66, 14, 24, 40, 26


#: Ticks of log-odds axes.
ODDS_TICKS = (
    *(0.0001, 0.001, 0.005, 0.02, 0.05, 0.1, 0.2, 0.35, 0.5, 0.65),
    *(0.8, 0.9, 0.95, 0.98, 0.995, 0.999, 0.9999),
)


#: Ends of log-odds axes, beyond which dots become arrows.
LEAST_ODDS = 1e-4


#: Names of the views, as tabs say them: on a wide page, and the rest on a narrow one.
VIEWS = ("probability", "difference", "logodds")


MINUS, NB = "\u2212", "\u00a0"


@dataclass(frozen=True)
class PictureWords:
    """Axis titles and nouns that a reliability diagram prints.

    Attributes
    ----------
    x, y : str
        Titles of the axes, such as "Predicted probability" and "Observed event rate".
    event : str
        Participle for an outcome of 1, such as "died" or "right".
    rows, bin : str
        The plural for observations, such as "patients", and the noun for a bin, such as "tenth".
    tolerance : float
        Half of the height of the band that is drawn around 0; 0 for none.
    odds : bool
        Whether the axis of predictions is on the log-odds scale also in the view of differences.
    """

    x: str
    y: str
    event: str
    rows: str
    bin: str = "bin"
    tolerance: float = 0.0
    odds: bool = False


def share(value: float) -> str:
    """Return a share in [0, 1] as a percentage, such as "12.5 %".

    It has one decimal, or two where ``value`` is within 0.01 of 0 or 1.
    """
    far = min(value, 1.0 - value)
    return f"{100.0 * value:.{1 if far >= 0.01 or far <= 0.0 else 2}f}{NB}%"


def points(value: float, digits: int = 1) -> str:
    """Return a difference of shares as signed percentage points, such as "+1.2 pp".

    ``value`` is in [−1, 1], and ``digits`` is the number of decimals.
    """
    text = f"{abs(100.0 * value):.{digits}f}"
    sign = "" if float(text) == 0.0 else MINUS if value < 0.0 else "+"
    return f"{sign}{text}{NB}pp"


class ViewScale:
    """Linear map from data values to coordinates of the SVG view box, with its ticks.

    Called with a value, which is cut off at both ends, it returns the coordinate. ``low`` and
    ``high`` are the ends in data, ``start`` and ``end`` their coordinates, and ``ticks`` the values
    of the ticks. With ``odds`` it is linear in the log-odds of the value.
    """

    def __init__(
        self, low: float, high: float, start: float, end: float, ticks: Sequence[float], odds: bool
    ) -> None:
        self.low, self.high, self.start, self.end = low, high, start, end
        self.ticks, self.odds = ticks, odds

    def __call__(self, value: float) -> float:
        value = min(max(value, self.low), self.high)
        low, at, high = (self._on(v) for v in (self.low, value, self.high))
        return round(self.start + (at - low) / (high - low) * (self.end - self.start), 1)

    def _on(self, value: float) -> float:
        return log(value / (1.0 - value)) if self.odds else value

    def holds(self, value: float) -> bool:
        """Return whether a value lies between the ends of this scale."""
        return self.low - 1e-12 <= value <= self.high + 1e-12


def diagram(
    curve: ReliabilityCurve,
    view: str,
    words: PictureWords,
    smooth: tuple[FloatArray, FloatArray] | None = None,
) -> str:
    """Return one view of a reliability curve of one component as an SVG element, a string.

    ``curve`` has the bins, with their predictions, observed rates and bars. ``view`` is
    "probability", "difference" or "logodds"; ``smooth`` holds the L predictions and rates of a
    smooth curve, arrays of shape (L,), None without. ``words`` are the titles of the axes and nouns
    such as "patients".
    """
    x, y = _axes(curve, view, words)
    bins = _bins(curve, view)
    gaps = curve.observed - curve.predicted
    name = {
        "probability": "Reliability diagram",
        "difference": f"Observed {MINUS} predicted, by prediction",
        "logodds": "Reliability diagram on the log-odds scale",
    }[view]
    bars = f"{curve.level * 100:g}{NB}% {curve.band} bars" if curve.band != "none" else "bars"
    about = (
        f"{len(bins)} {words.bin}s of {int(curve.count.sum())} {words.rows}; "
        f"{int(curve.outside.sum())} lie outside their {bars}. Observed {MINUS} predicted runs "
        f"from {points(float(gaps.min()))} to {points(float(gaps.max()))}."
    )
    parts = [
        f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="group" aria-label="{name}. {escape(about)}">',
        *_frame(x, y, view, words),
        *_reference(x, y, view, words),
        _histogram(curve, x, words),
    ]
    at = [x(b.predicted) for b in bins]
    for j, each in enumerate(bins):
        near = [abs(at[j] - other) for i, other in enumerate(at) if i != j]
        parts.append(_bin_mark(each, x, y, words, max(min([*near, 44.0]) / 2.0, 4.0)))
    if smooth is not None:
        parts.append(_smooth_line(smooth, curve, x, y, view))
    return "".join([*parts, *_direct_labels(curve, bins, x, y, view, words), "</svg>"])


@dataclass(frozen=True)
class Bin:
    """One bin as drawn: its point, its bar, and ``shift``, which the view subtracts from ordinates.

    It is bin ``number`` (from 1) ``of`` all, with ``n`` rows, mean prediction ``predicted`` and
    event rate ``observed``. ``low`` and ``high`` are the ends of the bar, where a calibrated
    model's event rate would lie; ``outside`` says that this one's does not. In the view of
    differences ``shift`` is the mean prediction, elsewhere 0.
    """

    number: int
    of: int
    n: int
    predicted: float
    observed: float
    low: float
    high: float
    outside: bool
    shift: float


def _bins(curve: ReliabilityCurve, view: str) -> list[Bin]:
    columns = (curve.count, curve.predicted, curve.observed, curve.low, curve.high, curve.outside)
    return [
        Bin(j + 1, len(curve.count), int(n), float(p), float(o), float(low), float(high), bool(out),
            float(p) if view == "difference" else 0.0)
        for j, (n, p, o, low, high, out) in enumerate(zip(*columns, strict=True))
    ]  # fmt: skip


def _axes(curve: ReliabilityCurve, view: str, words: PictureWords) -> tuple[ViewScale, ViewScale]:
    """Return the scales (x, y) of a view of the reliability diagram.

    A scale maps values to coordinates of the picture and has ticks. ``curve`` has the bins.
    ``view`` is "probability", "difference" or "logodds". Axes of rates end at round values, those
    in log-odds at the outermost bins. ``words`` has the tolerance, which the axis of differences
    shows, and whether predictions are in log-odds there.
    """
    ends = (LEFT_MARGIN, WIDTH - RIGHT_MARGIN), (HEIGHT - BOTTOM - STRIP, TOP)
    p, o = curve.predicted, curve.observed
    bars = [b[np.isfinite(b)] for b in (curve.low, curve.high)]
    values = np.concatenate([p, o, *bars])
    odds = view == "logodds" or (view == "difference" and words.odds)
    if odds:
        inner = np.concatenate([p, o[(o > 0.0) & (o < 1.0)]])
        low = max(0.5 * float(inner.min()), LEAST_ODDS)
        high = min(1.0 - 0.5 * (1.0 - float(inner.max())), 1.0 - LEAST_ODDS)
        low, high = min(low, 0.4), max(high, 2.5 * low)
        x = ViewScale(low, high, *ends[0], [t for t in ODDS_TICKS if low <= t <= high], True)
        if view == "logodds":
            return x, ViewScale(low, high, *ends[1], x.ticks, True)
    else:
        low, high, ticks = _round(float(values.min()), float(values.max()), 0.0, 1.0)
        x = ViewScale(low, high, *ends[0], ticks, False)
        if view == "probability":
            return x, ViewScale(low, high, *ends[1], ticks, False)
    gaps = np.concatenate([o - p, *(b - p[: b.size] for b in bars if b.size == p.size)])
    reach = max(float(np.abs(gaps).max()), 1.2 * words.tolerance, 0.002)
    _, top, ticks = _round(0.0, reach, 0.0, 1.0)
    both = [*(-t for t in ticks[:0:-1]), *ticks]
    return x, ViewScale(-top, top, *ends[1], both, False)


def _round(low: float, high: float, least: float, most: float) -> tuple[float, float, list[float]]:
    """Return (start, end, ticks): round values that enclose ``low`` and ``high``, and ticks.

    Ticks run from start to end in about six steps of 1, 2 or 5 times a power of ten. Ends stay
    between ``least`` and ``most``.
    """
    low, high = max(low, least), min(high, most)
    length = max(high - low, 1e-3)
    raw = length / 6.0
    power = 10.0 ** floor(np.log10(raw))
    step = next(m * power for m in (1.0, 2.0, 5.0, 10.0) if m * power >= raw)
    low = max(floor(low / step + 1e-9) * step, least)
    high = min(ceil(high / step - 1e-9) * step, most)
    count = round((high - low) / step)
    return low, high, [low + k * step for k in range(count + 1)]


def _tick(value: float, view: str, step: float) -> str:
    """Return the label of a tick at ``value``, a fraction: "20 %", or "+2" percentage points.

    Points, without a unit, are for ``view`` "difference", and percentages for all others. ``step``
    is the distance of ticks, a fraction too: it decides the number of decimals.
    """
    digits = max(0, -floor(np.log10(max(step, 1e-9))) - 2)
    if view == "difference":
        text = f"{abs(100.0 * value):.{digits}f}"
        return "0" if float(text) == 0.0 else f"{MINUS if value < 0.0 else '+'}{text}"
    return f"{100.0 * value:.{digits}f}{NB}%"


def _frame(x: ViewScale, y: ViewScale, view: str, words: PictureWords) -> list[str]:
    """Return SVG elements of the grid, the tick labels and the axis titles of a view, as strings.

    ``x`` and ``y`` are its scales, maps from values to coordinates with ticks; ``view`` is
    "probability", "difference" or "logodds". ``words`` has the axis titles.
    """
    base, out = HEIGHT - BOTTOM, []
    y_view = "difference" if view == "difference" else "share"
    for scale, axis in ((y, "y"), (x, "x")):
        step = abs(scale.ticks[1] - scale.ticks[0]) if len(scale.ticks) > 1 else 0.1
        last = -100.0
        for t in scale.ticks:
            at = scale(t)
            text = f"{100.0 * t:.4g}{NB}%" if scale.odds else _tick(t, y_view, step)
            if axis == "y":
                out.append(
                    f'<path class="g" d="M{LEFT_MARGIN} {at}H{WIDTH - RIGHT_MARGIN}"/>'
                    f'<text x="{LEFT_MARGIN - 6}" y="{at + 4}" text-anchor="end">{text}</text>'
                )
                continue
            if not scale.odds:
                text = _tick(t, "share", step)
            wide = 6.8 * len(text)
            if at - last < wide + 8.0:
                continue
            last = at
            middle = min(at, WIDTH - wide / 2.0 - 8.0)
            out.append(
                f'<path class="g" d="M{at} {base}V{base + 4}"/>'
                f'<text x="{middle:.1f}" y="{base + 17}" text-anchor="middle">{text}</text>'
            )
    unit = f"Observed {MINUS} predicted (pp)" if view == "difference" else words.y
    y_title = f"{unit}, log-odds scale" if y.odds else unit
    x_title = f"{words.x}, log-odds scale" if x.odds else words.x
    middle = (LEFT_MARGIN + WIDTH - RIGHT_MARGIN) / 2
    out.append(f'<text class="a" x="{middle}" y="{HEIGHT - 5}" text-anchor="middle">'
               f'{escape(x_title)}</text>')  # fmt: skip
    out.append(f'<text class="a" x="2" y="{TOP - 11}">{escape(y_title)}</text>')
    return out


def _reference(x: ViewScale, y: ViewScale, view: str, words: PictureWords) -> list[str]:
    """Return SVG elements, as strings: the line of perfect calibration and the tolerance band.

    ``x`` and ``y`` are the scales of the view, maps from values to coordinates. ``words`` has the
    tolerance. ``view`` is "probability", "difference" (the only one with a band) or "logodds".
    """
    if view != "difference":
        low, high = max(x.low, y.low), min(x.high, y.high)
        return [f'<path class="d" d="M{x(low)} {y(low)}L{x(high)} {y(high)}"/>']
    band = []
    if words.tolerance:
        top, bottom = y(words.tolerance), y(-words.tolerance)
        band = [f'<rect class="tol" x="{x.start}" y="{top}" width="{x.end - x.start}" '
                f'height="{bottom - top:.1f}"/>']  # fmt: skip
    return [*band, f'<path class="d" d="M{x.start} {y(0.0)}H{x.end}"/>']


def _histogram(curve: ReliabilityCurve, x: ViewScale, words: PictureWords) -> str:
    """Return the histogram of all predictions, drawn as a strip below the plot, as SVG.

    ``curve`` has the counts in fine bins, ``x`` is the horizontal scale, which maps predictions to
    coordinates, and ``words`` has the nouns of the hover text.
    """
    base, edges = HEIGHT - BOTTOM, LOGIT_EDGES if x.odds else SHARE_EDGES
    place = np.searchsorted(edges, SPREAD_EDGES[:-1] + 1e-12, side="right") - 1
    counts = np.bincount(place, curve.spread[0], len(edges) - 1)
    most, d = max(float(counts.max()), 1.0), ""
    for low, high, count in zip(edges[:-1], edges[1:], counts, strict=True):
        start, end = x(float(low)), x(float(high))
        if count and end - start > 0.5:
            rise = -(STRIP - 4) * count / most
            d += f"M{start + 0.3:.1f} {base}v{rise:.1f}H{end - 0.3:.1f}V{base}z"
    title = f"Distribution of the predictions of {int(counts.sum())} {words.rows}"
    return (
        f'<g role="img"><title>{escape(title)}</title><rect class="h" x="{x.start}" '
        f'y="{base - STRIP}" width="{x.end - x.start}" height="{STRIP}"/><path class="s" d="{d}"/>'
        f'<path class="x" d="M{x.start} {base}H{x.end}"/></g>'
    )


def _bin_mark(each: Bin, x: ViewScale, y: ViewScale, words: PictureWords, wide: float) -> str:
    """Return the bar and the dot of one bin as SVG, with hover text.

    ``each`` is the bin as drawn, with its prediction, observed rate and bar. ``x`` and ``y`` are
    the scales of the view, maps from values to coordinates; a dot beyond the scale becomes an
    arrow. ``words`` has the nouns of the text. ``wide`` is half of the width, in units of the view
    box, that reacts to the pointer.
    """
    value, cx, bar, tail = each.observed - each.shift, x(each.predicted), "", "."
    if np.isfinite(each.low) and np.isfinite(each.high):
        top, bottom = y(each.high - each.shift), y(each.low - each.shift)
        bar = (f'<rect class="b" x="{cx - 4:.1f}" y="{top}" width="8" '
               f'height="{max(bottom - top, 2.0):.1f}" rx="1.5"/>')  # fmt: skip
        ends = [share(min(max(v, 0.0), 1.0)) for v in (each.low, each.high)]
        tail = f". Bar {ends[0]} to {ends[1]}: {'outside' if each.outside else 'inside'}."
    small = max(each.predicted, each.observed) < 0.01
    title = (
        f"{words.bin.capitalize()} {each.number} of {each.of}: {each.n} {words.rows}. Predicted "
        f"{share(each.predicted)}, {words.event} {share(each.observed)} "
        f"({points(each.observed - each.predicted, 2 if small else 1)}){tail}"
    )
    kind = "o" if each.outside else "i"
    if y.holds(value):
        dot = f'<circle class="{kind}" cx="{cx}" cy="{y(value)}" r="{5 if each.outside else 4.4}"/>'
    else:
        up = value > y.high
        dot = (
            f'<path class="{kind}" d="M{cx} {y.end if up else y.start}l5 {9 if up else -9}h-10z"/>'
        )
    return (
        f'<g class="m" role="img"><title>{escape(title)}</title><rect class="h" '
        f'x="{cx - wide:.1f}" y="{y.end}" width="{2.0 * wide:.1f}" height="{y.start - y.end}"/>'
        f"{bar}{dot}</g>"
    )


def _smooth_line(
    smooth: tuple[FloatArray, FloatArray],
    curve: ReliabilityCurve,
    x: ViewScale,
    y: ViewScale,
    view: str,
) -> str:
    """Return the smooth curve as an SVG path, cut at the first and the last bin of ``curve``.

    ``smooth`` are its L predictions and rates, (L,) each; ``x`` and ``y`` are the scales of the
    view, maps from values to coordinates. ``view`` is "probability", "difference" or "logodds". ""
    if no point lies between these bins and within the scale.
    """
    low, high = float(curve.predicted.min()), float(curve.predicted.max())
    inside = [
        (float(p), float(q) - (float(p) if view == "difference" else 0.0))
        for p, q in zip(*smooth, strict=True) if low <= p <= high
    ]  # fmt: skip
    line = [(x(p), y(q)) for p, q in inside[:: max(len(inside) // 70, 1)] if y.holds(q)]
    path = "L".join(f"{a} {b}" for a, b in line)
    return f'<g role="img"><title>Smooth curve</title><path class="c" d="M{path}"/></g>' * bool(
        path
    )


def _text(at: tuple[float, float], words: str, anchor: str, kind: str) -> str:
    return (
        f'<text class="{kind}" x="{at[0]:.1f}" y="{at[1]:.1f}" text-anchor="{anchor}">'
        f"{escape(words)}</text>"
    )


def _direct_labels(
    curve: ReliabilityCurve,
    bins: list[Bin],
    x: ViewScale,
    y: ViewScale,
    view: str,
    words: PictureWords,
) -> list[str]:
    """Return SVG text inside the plot: labels of the diagonal, of the worst bin and of one bar.

    ``curve`` has the level of its bars, ``bins`` are the bins as drawn, each with its prediction,
    rate and bar. ``x`` and ``y`` are the scales of the view, maps from values to coordinates.
    ``view`` is "probability", "difference" or "logodds"; ``words`` has the nouns of the text.
    """
    out: list[str] = []
    boxes = [(x(b.predicted), y(b.observed - b.shift)) for b in bins]
    spans = [
        (x(b.predicted), *sorted((y(b.high - b.shift), y(b.low - b.shift))))
        for b in bins if np.isfinite(b.low)
    ]  # fmt: skip
    marks = [(cx, cy - 6.0, cy + 6.0) for cx, cy in boxes] + [(c, t, b) for c, t, b in spans]
    worst = max((b for b in bins if b.outside), key=lambda b: abs(b.observed - b.predicted),
                default=None)  # fmt: skip
    taken: list[tuple[float, float, float, float]] = []
    if worst is not None:
        lines = (f"predicted {share(worst.predicted)}", f"{words.event} {share(worst.observed)}")
        wide = 7.0 * max(map(len, lines))
        cx, cy = x(worst.predicted), y(worst.observed - worst.shift)
        lefts = (cx - 24.0 - wide, cx + 24.0, cx - 0.5 * wide)
        spots = [(a, cy + d) for d in (-48.0, 26.0, -80.0, 58.0, -14.0, 90.0, -112.0, 122.0)
                 for a in lefts if x.start < a and a + wide < x.end + 6.0
                 and y.end - 4.0 < cy + d and cy + d + 30.0 < y.start]  # fmt: skip
        if spots:
            a, b = min(spots, key=_cost_of(marks, wide, 30.0, taken))
            taken.append((a, b, wide, 30.0))
            over = a < cx < a + wide  # above or below the dot, not beside it
            end = (cx, b - 2.0 if b > cy else b + 30.0)
            end = end if over else (a + wide + 2.0 if a < cx else a - 2.0, b + 15.0)
            out.append(f'<path class="t" d="M{cx} {cy}L{end[0]:.1f} {end[1]:.1f}"/>')
            anchor, edge = ("end", a + wide) if a < cx else ("start", a)
            anchor, edge = ("middle", cx) if over else (anchor, edge)
            out += [_text((edge, b + 11.0 + 14.0 * k), line, anchor, "l lw")
                    for k, line in enumerate(lines)]  # fmt: skip
    crowded_line = view != "difference" and not _room_on_diagonal(x, y, marks)
    shaded = view == "difference" and words.tolerance > 0.0
    say = [f"shaded: tolerance ±{100.0 * words.tolerance:g}{NB}pp"] * shaded
    if spans:
        where = "all dots lie inside in" if curve.simultaneous else "each dot lies inside in"
        share_inside = f"{100.0 * curve.level:g}{NB}% of data sets"
        say += ["dashed: calibrated;"] * crowded_line
        say += ["bars: under calibration,", where, share_inside]
    if say:
        wide, high = 160.0 if shaded else 136.0, 3.0 + 13.0 * len(say)
        corners = [(a, b) for b in (y.end + 4.0, y.start - high - 4.0)
                   for a in (x.start + 6.0, x.end - wide - 2.0)]  # fmt: skip
        a, b = min(corners, key=_cost_of(marks, wide, high, taken))
        taken.append((a, b, wide, high))
        right = a > x.start + 6.0  # words that grow on a phone stay within the picture
        edge, anchor = (a + wide, "end") if right else (a, "start")
        out += [_text((edge, b + 11.0 + 13.0 * k), line, anchor, "k") for k, line in enumerate(say)]
    if view != "difference" and not crowded_line:
        out.append(_diagonal_label(x, y, marks, taken))
    return out


#: Where the words of the diagonal may stand: along it, their anchor, and above or below it.
DIAGONAL_PLACES = tuple(
    (along, anchor, drop)
    for along, anchor in ((0.985, "end"), (0.03, "start"), (0.85, "end"), (0.65, "end"))
    for drop in (-6.0, 14.0)
)


#: Units of marks that the words of the diagonal may hide.
MOST_HIDDEN = 12.0


def _diagonal_costs(
    x: ViewScale,
    y: ViewScale,
    marks: list[tuple[float, float, float]],
    taken: list[tuple[float, float, float, float]],
) -> list[float]:
    """Return how much the label of the diagonal would hide at each place it may take, as numbers.

    There is one for each of ``DIAGONAL_PLACES``. ``x`` and ``y`` are the scales of
    the view, maps from values to coordinates. ``marks`` are (x, top, bottom) of vertical bars, and
    ``taken`` (x, y, width, height) of other labels.
    """
    cost, costs = _cost_of(marks, 46.0, 40.0, taken), []
    for place, anchor, drop in DIAGONAL_PLACES:
        along = place - 0.13 * (anchor == "end")
        a = x.start + along * (x.end - x.start)
        b = y.start + along * (y.end - y.start) + drop
        costs.append(cost((a, b - 20.0)))
    return costs


def _room_on_diagonal(x: ViewScale, y: ViewScale, marks: list[tuple[float, float, float]]) -> bool:
    """Return whether the label of the diagonal fits somewhere without hiding much.

    ``marks`` are (x, top, bottom) of the vertical bars that it might hide. ``x`` and ``y`` are the
    scales of the view, maps from values to coordinates.
    """
    return min(_diagonal_costs(x, y, marks, [])) <= MOST_HIDDEN


def _diagonal_label(
    x: ViewScale,
    y: ViewScale,
    marks: list[tuple[float, float, float]],
    taken: list[tuple[float, float, float, float]],
) -> str:
    """Return the label of the diagonal as SVG, at the place where it hides least.

    ``x`` and ``y`` are the scales of the view, maps from values to coordinates. ``marks`` are (x,
    top, bottom) of vertical bars, and ``taken`` (x, y, width, height) of other labels.
    """
    costs = _diagonal_costs(x, y, marks, taken)
    along, anchor, drop = DIAGONAL_PLACES[costs.index(min(costs))]
    tilt = -np.degrees(np.arctan2(y.start - y.end, x.end - x.start))
    a = x.start + along * (x.end - x.start)
    b = y.start + along * (y.end - y.start)
    return (
        f'<text class="k" transform="translate({a:.1f} {b:.1f}) rotate({tilt:.1f})" '
        f'y="{drop:g}" text-anchor="{anchor}">calibrated</text>'
    )


def _cost_of(
    marks: list[tuple[float, float, float]],
    wide: float,
    high: float,
    taken: list[tuple[float, float, float, float]],
) -> Callable[[tuple[float, float]], float]:
    """Return a function of (x, y): the cost of placing a text box of size wide × high there.

    ``marks`` are (x, top, bottom) of vertical bars and ``taken`` (x, y, width, height) of other
    boxes. The cost is the length of bars that the box would hide, plus 1000 if it overlaps another
    box.
    """

    def cost(corner: tuple[float, float]) -> float:
        a, b = corner
        hidden = sum(
            max(0.0, min(bottom, b + high) - max(top, b) + 4.0)
            for at, top, bottom in marks if a - 7.0 < at < a + wide + 7.0
        )  # fmt: skip
        over = any(a < c + w and c < a + wide and b < d + h and d < b + high
                   for c, d, w, h in taken)  # fmt: skip
        return float(hidden + 1e3 * over)

    return cost


#: What the tabs of the views say.
TABS = (
    'Observed<span class="w"> vs predicted</span>',
    f'<span class="w">Observed {MINUS} predicted</span><span class="nar">Difference</span>',
    "Log-odds",
)


def switch(
    curve: ReliabilityCurve,
    words: PictureWords,
    smooth: tuple[FloatArray, FloatArray] | None,
) -> str:
    """Return HTML with the three views of a reliability diagram; radio buttons and CSS switch them.

    ``curve`` has the bins, ``words`` are axis titles and nouns. ``smooth`` are the L predictions
    and rates of a smooth curve, (L,) each, or None.
    """
    first = 2 if words.odds else 0
    tabs = "".join(
        f'<input type="radio" name="view" id="v{k}" class="v{k}"{" checked" * (k == first)}>'
        f'<label for="v{k}">{tab}</label>'
        for k, tab in enumerate(TABS)
    )
    panes = "".join(
        f'<div class="view p{k}">{diagram(curve, view, words, smooth)}</div>'
        for k, view in enumerate(VIEWS)
    )
    legend = "<legend>View of the reliability diagram</legend>"
    return f'<fieldset class="tabs">{legend}{tabs}{panes}</fieldset>'
