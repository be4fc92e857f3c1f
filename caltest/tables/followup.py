"""Follow-up in columns of a table: in which unit its times are, and what ended it."""

from __future__ import annotations

import re
import warnings
from itertools import permutations
from typing import Any

import numpy as np

from caltest._base.arrays import IntArray
from caltest._base.event_words import NO_END, end_of
from caltest._base.labels import as_event
from caltest._base.naming import nth
from caltest.errors import DoubtfulInputWarning, InvalidPredictionsError
from caltest.followup import Followup, swapped
from caltest.tables import cells
from caltest.tables.chosen import MOST, Chosen
from caltest.tables.names import words
from caltest.tables.source import Column, Request

#: How many days units have, by the words for them; the short ones end a longer name.
UNITS = {
    **dict.fromkeys(("years", "year", "yrs", "yr", "jahre", "y"), 365.25),
    **dict.fromkeys(("months", "month", "mos", "mo", "monate", "m"), 365.25 / 12.0),
    **dict.fromkeys(("weeks", "week", "wks", "wk", "wochen", "w"), 7.0),
    **dict.fromkeys(("days", "day", "tage", "d"), 1.0),  # codespell:ignore tage
    **dict.fromkeys(("hours", "hour", "hrs", "hr", "h"), 1.0 / 24.0),
}
NAMES = {UNITS[name]: name for name in ("years", "months", "weeks", "days", "hours")}
#: How rows end, by the numbers of events, and how words for these are listed.
ROLES = ("censored", "the event", "competing")
_IN_ORDER = "first the censored, then the event, then what competes, '|' between words alike"
#: Names of a column that may mark events, or rows without.
CENSORED = re.compile(r"(?i)(?:^|_|is)cens")
#: A length with its unit, also within the name of a column of risks.
_LENGTH = re.compile(r"(\d+(?:\.\d+)?)(?:[ _-](?=[a-z]{2}))?([a-z]+)")
#: Numbers that are usual of one unit, and hardly of a shorter one in which times are.
USUAL = {"years": (1, 2, 3, 4, 5, 8, 10, 15, 20), "months": (3, 6, 9, 12, 18, 24, 36, 48)}
#: A horizon below such a share of the longest time, or beyond so many of it, may have another unit.
SHORT, FAR = 0.1, 3.0
#: Days that nobody is followed for, and what months and years of whole days differ by.
LIFE, ROUNDED = 80.0 * 365.25, 0.04
Length = tuple[float, str]


def followup_of(
    truth: Column, facts: dict[str, Any], request: Request, chosen: Chosen
) -> tuple[Followup, str]:
    """Return what was seen of rows that were followed, whose facts it takes, and a remark."""
    times, strata = cells.numbers(facts.pop("time"), "time"), facts.pop("strata", None)
    event, remark = _events(truth, request)
    if event.dtype.kind in "iuf" and swapped(times, event):
        columns = request.event, chosen.facts["time"]
        raise InvalidPredictionsError(
            f"event= (--event): {columns[0]} reaches to {event.max():g}, as no kinds of events do, "
            f"and {columns[1]}, for time= (--time), has two values: name each in the other's place",
            [("--event", columns[1], "--time", str(columns[0]))],
        )
    longest = float(np.nanmax(times, initial=0.0))
    horizon = _horizon(request.horizon, chosen.facts["time"], longest, chosen.choice.probs[0])
    if isinstance(request.horizon, str):
        remark += f", the horizon {request.horizon} is {horizon:g} in {chosen.facts['time']}"
    return Followup(times, event, horizon=horizon, strata=strata), remark


def _events(truth: Column, request: Request) -> tuple[Column | IntArray, str]:
    """Return the numbers of events, and what was taken for what where these are words."""
    values, rows, places = np.unique(truth, return_index=True, return_inverse=True)
    occur, pos_label = [str(cells.plain(v)) for v in values.tolist()], request.pos_label
    if request.classes is not None and pos_label is not None:
        raise InvalidPredictionsError(
            "of events say classes= (--classes) or pos_label= (--pos-label), not both",
            [("!--pos-label",), ("!--classes",)],
        )
    if request.classes is not None:
        groups = [str(name).split("|") for name in request.classes]
        codes = {word.strip(): code for code, group in enumerate(groups) for word in group}
        for row in sorted(rows[i] for i, word in enumerate(occur) if word not in codes)[:1]:
            raise InvalidPredictionsError(
                f"event: {nth(int(row))} is {str(cells.plain(truth[row]))!r}, which is none of "
                f"classes={[*request.classes]} (--classes): {_IN_ORDER}"
            )
    elif pos_label is not None and len(occur) < 3:
        _, (other, name) = as_event(truth, pos_label)
        codes = {other: 0, name: 1}
    elif pos_label is None and len(occur) == 2 and CENSORED.search(request.event or ""):
        raise InvalidPredictionsError(
            f"the name of {request.event} does not say whether {occur[1]} is an event or censored: "
            "pos_label= (--pos-label) names the event",
            [("--pos-label", word) for word in occur],
        )
    elif pos_label is not None or occur == ["1", "2"]:
        raise _undecided(occur, None if pos_label is None else str(pos_label))
    elif truth.dtype.kind != "U":
        return truth, f"events from {request.event}"
    elif (end := end_of(values)) is not None:
        codes = dict(zip(occur, end[1].astype(int).tolist(), strict=True))
    else:
        raise _undecided(occur, None)
    roles = [f"{word!r} {ROLES[min(codes[word], 2)]}" for word in occur]
    numbers = np.array([codes[word] for word in occur])[places.reshape(truth.shape)]
    return numbers, f"events from {request.event} ({', '.join(roles)})"


def _undecided(occur: list[str], event: str | None) -> InvalidPredictionsError:
    """Return the refusal of words of which it has to be said what they mean."""
    free = [word for word in occur if NO_END.match(word.lower()) or word == "0"]
    ends = [word for word in occur if word not in free]
    join = "|".join
    orders: list[tuple[str, ...]] = []
    ways: list[tuple[str, ...]] = [("--pos-label", word) for word in ends or occur]
    if event is not None and event in occur:
        others = [word for word in occur if word != event]
        bases = [[w for w in others if w in free]] if {*free} & {*others} else [[w] for w in others]
        rests = [join(w for w in others if w not in base) for base in bases]
        orders = [(join(b), event, rest) for b, rest in zip(bases, rests, strict=True) if rest]
        orders.append((join(others), event))
    elif occur == ["1", "2"]:
        ways = [("--pos-label", "2"), ("--classes", "0,1,2")]
    elif len(occur) > 2:
        orders = [(join(free), end, join(w for w in ends if w != end)) for end in ends]
        orders = [*orders, (join(free), join(ends))] if free else [*permutations(occur, 3)]
    if orders:
        ways = [("!--pos-label", "--classes", ",".join(order)) for order in orders if all(order)]
    if any({",", "|"} & {*word} for word in occur) or (not free and len(occur) > 3):
        ways = []
    shown = f"events are {', '.join(map(repr, occur[:6]))}"
    if occur == ["1", "2"]:
        shown = "no event is 0, censored: in files of R 1 may be so, and 2 the event"
    return InvalidPredictionsError(
        f"{shown}: say what they are with classes=[…] (--classes), {_IN_ORDER}; of two words "
        "pos_label= (--pos-label) names the event",
        ways[:MOST],
    )


def _length(text: str) -> Length | None:
    """Return the one length with its unit that a text names, such as (5, "years")."""
    lengths = {(float(n), NAMES[UNITS[u]]) for n, u in _LENGTH.findall(text.lower()) if u in UNITS}
    return lengths.pop() if len(lengths) == 1 else None


def _unit(name: str) -> str | None:
    """Return the unit that the name of a column of times says."""
    parts = words(name)
    short = parts[-1:] if len(parts) > 1 else []
    units = [part for part in parts if part in UNITS and (len(part) > 1 or part in short)]
    units += re.findall(r"^(?:year|month|week|day)s|(?:year|month|week|day)s$", name.lower())
    return NAMES[UNITS[units[-1]]] if units else None


def _horizon(horizon: Any, time: str, longest: float, risk: str) -> float:
    """Return the horizon in the unit of the times; refused where it seems to be in another."""
    unit, named = _unit(time), _length(risk)
    if isinstance(horizon, str):
        length = _length(horizon.replace(" ", ""))
        if length is None or not re.fullmatch(r"\s*\d+(\.\d+)?\s*[A-Za-z]+\s*", horizon):
            raise InvalidPredictionsError(
                f"horizon is a number, or one with its unit such as 5years, not {horizon!r}"
            )
        if named is not None and _ratio(length, named) > 1.0 + ROUNDED:
            warnings.warn(
                f"the horizon is {_said(*length)}, but {risk} says {_said(*named)}",
                DoubtfulInputWarning,
                stacklevel=5,
            )
        if unit is not None:
            return length[0] * UNITS[length[1]] / UNITS[unit]
        raise InvalidPredictionsError(
            f"the name of {time} does not say its unit: write the horizon as a number in that, "
            f"{_listed(length, None)}",
            [("--horizon", f"{value:g}") for value in _possible(length, longest)],
        )
    if not isinstance(horizon, (int, float)) or not horizon > 0.0:
        return horizon  # follow-up refuses it
    meant = _meant(float(horizon), unit, longest, named)
    where = f"horizon={horizon:g} is in the unit of {time}, which reaches to {longest:g}"
    words = " or ".join(_listed(length, unit) for length in meant)
    if meant and unit is None and named is None:
        warnings.warn(
            f"{where} and so is hardly in years: if {words} are meant, say the horizon in its unit",
            DoubtfulInputWarning,
            stacklevel=5,
        )
    elif meant:
        ways = [f"{v:g}" for length in meant for v in _possible(length, longest, unit)]
        words = f"{risk} says {words}" if named else f"it may have been meant as {words}"
        if unit is not None:
            ways.append(_said(horizon, unit, ""))
            words += f"; if not, say horizon={ways[-1]!r} (--horizon {ways[-1]})"
        raise InvalidPredictionsError(f"{where}: {words}", [("--horizon", way) for way in ways])
    return horizon


def _meant(horizon: float, unit: str | None, longest: float, named: Length | None) -> list[Length]:
    """Return the lengths that a horizon without a unit more likely was to be, [] where it fits."""
    if named is not None and unit is not None:
        ratio = horizon * UNITS[unit] / (named[0] * UNITS[named[1]])
        return [] if abs(ratio - 1.0) <= ROUNDED else [named]
    if named is not None:
        return [named] * (horizon == named[0] and longest * UNITS[named[1]] > LIFE)
    usual = [(horizon, u) for u, numbers in USUAL.items() if horizon in numbers]
    usual = [] if unit == "hours" else usual
    if unit is None:
        return usual[:1] * bool(horizon < SHORT * longest and longest * UNITS["years"] > LIFE)
    if horizon >= FAR * longest:
        others = [(horizon, u) for u in ("months", "days") if UNITS[u] < UNITS[unit]]
        halves = [2.0 * horizon * UNITS[u] / UNITS[unit] for _, u in others]
        pairs = zip(others, halves, strict=True)
        return [o for o, h in pairs if 0.9 < h <= 2.0 * longest and abs(h - round(h)) < 0.1]
    scales = [(length, UNITS[length[1]] / UNITS[unit]) for length in usual]
    short = horizon < SHORT * longest
    return [o for o, scale in scales if short and scale > 5.0 and horizon * scale <= 1.02 * longest]


def _ratio(one: Length, other: Length) -> float:
    """Return how many times the longer of two lengths is the shorter."""
    ratio = one[0] * UNITS[one[1]] / (other[0] * UNITS[other[1]])
    return max(ratio, 1.0 / ratio) if ratio > 0.0 else 1.0


def _readings(length: Length) -> dict[str, float]:
    """Return a length in all units, as a whole number where it is about one."""
    number, unit = length
    values = {u: number * UNITS[unit] / UNITS[u] for u in NAMES.values()}
    whole = {u: abs(v - round(v)) <= 0.005 * v for u, v in values.items()}
    return {u: float(round(v) if whole[u] else f"{v:.4g}") for u, v in values.items()}


def _possible(length: Length, longest: float, unit: str | None = None) -> list[float]:
    """Return a length in the unit of the times, or in those that they may have."""
    readings = _readings(length)
    if unit is not None:
        return [readings[unit]]
    return [v for u, v in readings.items() if v <= longest and longest * UNITS[u] <= LIFE]


def _listed(length: Length, unit: str | None) -> str:
    """Return a length in words, and what it is in one other unit or in all."""
    units = [unit] if unit else ["years", "months", "weeks", "days"]
    units = [u for u in units if u != length[1]]
    others = ", ".join(_said(_readings(length)[u], u) for u in units)
    return _said(*length) + f" ({others})" * bool(others)


def _said(number: float, unit: str, blank: str = " ") -> str:
    return f"{number:g}{blank}{unit.removesuffix('s' * (number == 1.0))}"
