"""The first screen of a report as records, and its elements as HTML.

:class:`FirstScreen` holds facts only; its methods write HTML without scripts, with a title for
every mark.
"""

from __future__ import annotations

from dataclasses import dataclass
from html import escape
from math import isfinite

import numpy as np

from caltest.reports.views import MINUS, points
from caltest.results import Record


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
        Outside 0 or above the tolerance; within the tolerance; or neither.
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
        """Smallest difference within the interval, without sign."""
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
        At most four.
    matters : str
        Whether the error matters.
    parts : tuple of PartLine
        Subgroups, or classes, sorted by evidence.
    whom : str
        Which classes are wrong, where averages do not say it.
    next : str
        What to do.
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
# Its elements as HTML.


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

    ``width`` is in units of the view box.
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

    A band marks −tolerance to tolerance.
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
    """Return the label of a tick in percentage points, with its sign."""
    sign = "" if abs(t) < 1e-9 else MINUS if t < 0.0 else "+"
    return f"{sign}{abs(100.0 * t):.3g}"
