"""Base class of monitors: immutable updates, a thinned history, and JSON that contains no row.

:class:`Watch` has ``update``, the history of at most 512 points, the alarm and JSON;
:class:`Monitor` and :class:`ComparisonMonitor` add the evidence.
"""

from __future__ import annotations

import ast
import zlib
from abc import abstractmethod
from dataclasses import dataclass, field, fields
from math import exp
from typing import Any, ClassVar, Self

import numpy as np

from caltest._base import arrays as checks
from caltest._base.arrays import AnyArray, FloatArray, IntArray
from caltest._base.saving import parse_json
from caltest._base.written import first_of, name_of
from caltest.data.facts import are_dates, as_dates, as_times
from caltest.data.lenses import Canonical, LensLike, OneVsRest, Partition, TopK
from caltest.errors import InvalidPredictionsError, StatisticError, spelt
from caltest.inference._input import AGREEING
from caltest.nulls.bets import REFUTED
from caltest.results import Result
from caltest.results.rendering import Card, Tone, TypedColumn, columns_of_arrays
from caltest.results.sketches import line
from caltest.tallies import RowsOrTally

#: Times of rows, if there are any.
Times = FloatArray | None


#: Points that a history keeps at most; every second goes when there are more.
MOST_POINTS = 512


MONITOR_LENSES = {lens.__name__: lens for lens in (TopK, Partition, OneVsRest, Canonical)}


@dataclass(frozen=True, kw_only=True, eq=False)
class Watch(Result):
    """Base class of monitors; an update returns a new monitor and leaves the old one unchanged."""

    n: int = 0
    n_classes: int = 0
    classes: tuple[str, ...] | None = None
    lens: LensLike | None = None
    alpha: float = 0.05
    alarm: int | None = None
    every: int = 1
    past: bytes = b""
    clock: bytes = b""
    horizon: int = 1
    steps: int = 0
    time: float | None = None
    alarm_time: float | None = None
    dates: bool = False
    state: bytes = b""
    #: z of neighbouring rows of the last batch, whose residuals agree more than by chance.
    neighbours: float = field(default=0.0, compare=False, metadata={"transient": True})
    plotter: ClassVar[str] = "lines.evidence"

    def __post_init__(self) -> None:
        super().__post_init__()
        checks.fraction("alpha", self.alpha)
        checks.whole("horizon", self.horizon)

    @property
    @abstractmethod
    def width(self) -> int:
        """Length of a point of the history; its first entry is the number of rows."""

    @property
    @abstractmethod
    def alarm_at(self) -> float:
        """Logarithm of the e-value at which the alarm is raised."""

    @property
    @abstractmethod
    def history(self) -> FloatArray:
        """History of the evidence, shape (m, width): number of rows, and the values after them."""

    @property
    def times(self) -> AnyArray | None:
        """Times of the points of ``history``, ``datetime64`` for dates; None without times."""
        clock = np.frombuffer(self.clock)
        if self.time is None or len(clock) != len(self._points()):
            return None
        times = np.append(clock, [self.time] * (len(self.history) - len(clock)))
        return as_dates(times) if self.dates else times

    def _evidence_card(self, numbers: tuple[tuple[str, str, str], ...], headline: str) -> Card:
        """Return the notebook card of a monitor: alarm or no alarm, numbers, evidence curve."""
        history, drawing = self.history, ""
        if len(history) > 1:
            axes = ("Rows", "log evidence; dashed: alarm")
            evidence = history[:, 1 : 2 if self.width == 2 else 3].max(axis=1)
            drawing = line(history[:, 0], evidence, axes, level=self.alarm_at)
        rang = self.alarm is not None
        tone: Tone = "bad" if rang else "plain"
        return Card("alarm" if rang else "no alarm", tone, headline, numbers, (), drawing)

    def _history_columns(self, *names: str) -> dict[str, TypedColumn]:
        """Return the columns of ``history`` by name, and the times if there are any."""
        history, times = self.history, self.times
        columns = columns_of_arrays(dict(zip(names, history.T, strict=True)))
        columns["n"] = int, history[:, 0].astype(np.int64).tolist()
        if times is not None:
            dates = times.astype("datetime64[us]") if self.dates else times
            columns |= columns_of_arrays({"time": dates})
        return columns

    @property
    def alarm_words(self) -> str:
        """Row and time of the alarm in words, or "none"."""
        return "none" if self.alarm is None else self.row_words(self.alarm, self.alarm_time)

    def row_words(self, row: int, time: float | None) -> str:
        """Return a row number, with its time if it has one, in words."""
        return f"at row {row}" + (f", {format_time(time, self.dates)}" if time is not None else "")

    def _moved(self, **changes: object) -> Self:
        """Return a copy with changed fields, without validation.

        Much faster than ``dataclasses.replace``.
        """
        new: Self = object.__new__(type(self))
        new.__dict__.update(self.__dict__, **changes)
        return new

    def _same_classes(self, data: RowsOrTally, time: object) -> dict[str, object]:
        """Check that the classes are as before; return the fields n_classes, classes and dates."""
        if self.n and data.n_classes != self.n_classes:
            raise InvalidPredictionsError(
                f"these rows have {data.n_classes} classes, those before {self.n_classes}"
            )
        if self.classes and data.classes and data.classes != self.classes:
            raise InvalidPredictionsError(
                f"these rows name their classes {', '.join(data.classes)}, those before "
                f"{', '.join(self.classes)}: list the columns in that order, with --probs"
            )
        dates = time is not None and are_dates(time)
        classes = self.classes or data.classes
        return {"n_classes": data.n_classes, "classes": classes, "dates": dates}

    def _rules(self, name: str, *rules: str) -> list[str]:
        """Return the parts of a recipe: name, lens, rules, horizon."""
        lens = [] if self.lens is None else [repr(self.lens)]
        ahead = [f"horizon {self.horizon}"] if self.horizon > 1 else []
        return [name, *lens, *rules, *ahead]

    def _traced(self, path: FloatArray, evidence: FloatArray, times: Times) -> dict[str, object]:
        """Return the fields that change with new rows: n, time, alarm, and the thinned history."""
        n, every, timed = int(path[-1, 0]), self.every, times is not None
        moved: dict[str, object] = {"n": n, "time": None if times is None else float(times[-1])}
        if self.alarm is None and evidence.max() >= self.alarm_at:
            row = int(np.argmax(evidence >= self.alarm_at))
            moved["alarm"] = int(path[row, 0])
            moved["alarm_time"] = None if times is None else float(times[row])
        if n // every == self.n // every:
            return moved
        if times is not None:
            path = np.column_stack([path, times])
        points = np.vstack([self._points(timed), _thinned(path, every, self.n // every)])
        # A history of any length: every second point goes, and new ones come half as often.
        while len(points) > MOST_POINTS:
            every *= 2
            points = _thinned(points, every)
        clock = points[:, self.width :].tobytes()
        past = np.ascontiguousarray(points[:, : self.width]).tobytes()
        return moved | {"every": every, "past": past, "clock": clock}

    def _remarks(self) -> list[str]:
        """Return the remarks to print; a doubt comes first if outcomes may have been known late."""
        if self.horizon > 1 or self.neighbours <= AGREEING:
            return super()._remarks()
        doubt = (
            f"Note: neighbouring rows agree more than chance (z = {self.neighbours:.1f}): where "
            "rows of one time depend on each other, name their times by time= (--time); where a "
            "forecast is made before the last outcome is known, say how many steps ahead by "
            "horizon= (--horizon)."
        )
        return [spelt(doubt), *super()._remarks()]

    def _points(self, timed: bool = False) -> FloatArray:
        points = np.frombuffer(self.past).reshape(-1, self.width)
        return np.column_stack([points, np.frombuffer(self.clock)]) if timed else points

    def as_dict(self) -> dict[str, Any]:
        """Return the monitor as numbers, strings, lists and dictionaries; it contains no row."""
        return super().as_dict() | {"lens": None if self.lens is None else name_of(self.lens)}

    @classmethod
    def from_dict(cls, content: dict[str, Any], lens: LensLike | None = None) -> Self:
        """Rebuild from :meth:`as_dict`; a lens that is a function of your own has to be given.

        Raises
        ------
        InvalidPredictionsError
            When a field is missing, unknown, of another type or impossible; it is named.
        StatisticError
            When the lens is not one of caltest, and none is given.
        """
        what = f"this is no {cls.__name__} of caltest"
        if not isinstance(content, dict):
            raise InvalidPredictionsError(f"{what}: it is a {type(content).__name__}")
        kept = {name for name in cls._kept_names() if name not in content}
        if kept:
            raise InvalidPredictionsError(f"{what}: it lacks {first_of(sorted(kept))}")
        try:
            name, _, values = (content["lens"] or "").partition("(")
            if lens is None and name in MONITOR_LENSES:
                lens = MONITOR_LENSES[name](*ast.literal_eval(f"[{values[:-1]}]"))
            elif name and name != name_of(lens).partition("(")[0]:
                raise StatisticError(
                    f"this monitor has the lens {content['lens']}: pass it as lens="
                )
            cls._refuse_types(content, what)
            watch = super().from_dict(content | {"lens": lens})
            watch._refuse_damage(what)
        except (InvalidPredictionsError, StatisticError):
            raise
        except (TypeError, ValueError, SyntaxError, AttributeError, zlib.error) as error:
            raise InvalidPredictionsError(f"{what}: {error}") from None
        return watch

    @classmethod
    def _kept_names(cls) -> list[str]:
        """Return the names of the fields in the dictionary form."""
        return [f.name for f in fields(cls) if "transient" not in f.metadata]

    @classmethod
    def _refuse_types(cls, content: dict[str, Any], what: str) -> None:
        """Raise InvalidPredictionsError for fields of another type, negative counts, and NaN.

        ``what`` begins the message.
        """
        for f in fields(cls):
            value, kind = content.get(f.name), str(f.type)
            if f.name not in content or (value is None and "None" in kind):
                continue
            kind = kind.removesuffix(" | None")
            is_number = type(value) in (int, float) and value == value
            sound = {
                "int": type(value) is int and 0 <= value < 2**63,
                "bool": type(value) is bool,
                "float": is_number,
                "bytes": isinstance(value, (str, bytes)),
            }.get(kind, True)
            if not sound:
                raise InvalidPredictionsError(f"{what}: its {f.name} is {value!r}")

    def _refuse_damage(self, what: str) -> None:
        """Raise InvalidPredictionsError for contradictory row counts, and a damaged history."""
        for name, wrong in {
            "alarm": self.alarm is not None and not 1 <= self.alarm <= self.n,
            "steps": self.steps > self.n,
            "every": self.every < 1,
            "past": len(self.past) % (8 * self.width) != 0,
            "clock": len(self.clock) % 8 != 0,
            "state": len(self.state) % 8 != 0,
        }.items():
            if wrong:
                value = vars(self)[name]
                given = f"{len(value)} bytes" if isinstance(value, bytes) else repr(value)
                raise InvalidPredictionsError(
                    f"{what}: its {name}, {given}, does not fit its {self.n} rows"
                )

    @classmethod
    def from_json(cls, text: str, lens: LensLike | None = None) -> Self:
        """Rebuild from :meth:`to_json`; see :meth:`from_dict`."""
        return cls.from_dict(parse_json(text, f"this is no {cls.__name__} of caltest: it"), lens)


def steps_of(n: int, time: object, start: int, last: float | None) -> tuple[IntArray, Times]:
    """Return (steps (n,), times): the step of each row, counted on from ``start``, and its time.

    Rows of one time share a step; times are None without ``time``. ``last`` is the time of the last
    earlier row, None if earlier rows had no times. InvalidPredictionsError if times go back, or
    come with some rows only.
    """
    if time is None:
        if last is not None:
            raise InvalidPredictionsError("earlier rows had times: pass time= with all rows")
        return start + np.arange(n), None
    times = as_times(time, n)
    if start and last is None:
        raise InvalidPredictionsError("earlier rows had no times: pass time= with all or none")
    before = np.append(np.nan if last is None else last, times[:-1])
    if (times < before).any():
        row = int(np.argmax(times < before))
        raise InvalidPredictionsError(
            f"time: row {row} is {times[row]:.10g}, before {before[row]:.10g}; a monitor goes "
            "forward: sort the rows by time, and do not add to times that are over"
        )
    return start - 1 + np.cumsum(times != before), times


def _thinned(points: FloatArray, every: int, before: float = 0.0) -> FloatArray:
    """Return every ``every``-th point of a history, (m, width); ``before`` is where it went on."""
    part = points[:, 0] // every
    return points[part > np.append(before, part[:-1])]


def format_time(time: float, dated: bool) -> str:
    """Return a time as text: a date if ``dated``, else "time" and the number.

    With ``dated``, ``time`` is in seconds since 1970; otherwise it has the user's own unit.
    """
    if not dated:
        return f"time {time:.10g}"
    when = str(as_dates(time).astype("datetime64[s]"))
    return when.removesuffix("T00:00:00").replace("T", " ")


def odds(log_evidence: float) -> float:
    """Return exp of a log evidence; infinite once an outcome of probability 0 occurred."""
    return exp(log_evidence) if log_evidence < 700.0 else np.inf


def format_evalue(log_evidence: float) -> str:
    """Return an e-value as text, from its logarithm."""
    if log_evidence >= REFUTED:
        return "infinite"
    if log_evidence < -600.0:
        return "none yet"
    power = log_evidence / np.log(10.0)
    return f"{np.exp(log_evidence):.4g}" if abs(power) < 5 else f"10^{power:.1f}"
