"""Base class of monitors: immutable updates, a thinned history, and JSON that contains no row.

:class:`Watch` has ``update``, the history of at most 512 points, the alarm and JSON;
:class:`Monitor` and :class:`ComparisonMonitor` add the evidence, the latter for two forecasters.
"""

from __future__ import annotations

import ast
import zlib
from abc import abstractmethod
from dataclasses import dataclass, field, fields
from functools import cache
from math import exp, log
from typing import Any, ClassVar, Literal, Self, Unpack

import numpy as np

from caltest._base import arrays as checks
from caltest._base.arrays import AnyArray, FloatArray, IntArray, Values
from caltest._base.saving import parse_json
from caltest._base.written import first_of, name_of
from caltest.data import RowFacts
from caltest.data.doubts import of_bets
from caltest.data.facts import are_dates, as_dates, as_times
from caltest.data.lenses import Canonical, LensLike, OneVsRest, Partition, TopK, as_lens
from caltest.errors import InvalidPredictionsError, StatisticError, spelt
from caltest.inference._input import AGREEING, neighbours, paired_rows, take_rows
from caltest.nulls.bets import REFUTED
from caltest.results import Result, format_value
from caltest.results.rendering import (
    Card,
    Columns,
    Tone,
    TypedColumn,
    attributes,
    columns_of_arrays,
)
from caltest.results.sketches import line
from caltest.tallies import RowsOrTally

#: Times of rows, if there are any.
Times = FloatArray | None


#: Points that a history keeps at most; every second goes when there are more.
MOST_POINTS = 512


MONITOR_LENSES = {lens.__name__: lens for lens in (TopK, Partition, OneVsRest, Canonical)}


@dataclass(frozen=True, kw_only=True, eq=False)
class Watch(Result):
    """Base class of monitors; an update returns a new monitor and leaves the old one unchanged.

    ``n`` rows in ``steps`` times were seen. ``lens``, ``alpha`` and ``horizon`` are the options;
    ``n_classes`` and ``classes`` (their names, or None) describe the data before the lens.
    ``alarm`` is the row of the alarm, from 1, and ``alarm_time`` its time, None without. ``time``
    is the last time, None without times; with ``dates`` times are seconds since 1970. ``state``,
    ``past`` and ``clock`` are the wealth of the experts, the history and its times, packed as
    bytes; a point of the history is kept for every multiple of ``every`` rows. ``neighbours`` is z
    of the association of neighbouring residuals in the last batch.
    """

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
        """Number of entries of a history point, of which the first is the number of rows."""

    @property
    @abstractmethod
    def alarm_at(self) -> float:
        """Natural logarithm of the e-value at which this monitor raises the alarm."""

    @property
    @abstractmethod
    def history(self) -> FloatArray:
        """History of the evidence, shape (m, width): number of rows, and the values after them.

        A subclass says which values.
        """

    @property
    def times(self) -> AnyArray | None:
        """Times of the m points of ``history``, (m,); None without times.

        Dates are ``datetime64``.
        """
        clock = np.frombuffer(self.clock)
        if self.time is None or len(clock) != len(self._points()):
            return None
        times = np.append(clock, [self.time] * (len(self.history) - len(clock)))
        return as_dates(times) if self.dates else times

    def _evidence_card(self, numbers: tuple[tuple[str, str, str], ...], headline: str) -> Card:
        """Return the card that a notebook shows of a monitor, with the curve of its evidence.

        ``numbers`` are (name, value, note) of the key numbers, as text; ``headline`` is the
        sentence below the verdict.
        """
        history, drawing = self.history, ""
        if len(history) > 1:
            axes = ("Rows", "log evidence; dashed: alarm")
            evidence = history[:, 1 : 2 if self.width == 2 else 3].max(axis=1)
            drawing = line(history[:, 0], evidence, axes, level=self.alarm_at)
        rang = self.alarm is not None
        tone: Tone = "bad" if rang else "plain"
        return Card("alarm" if rang else "no alarm", tone, headline, numbers, (), drawing)

    def _history_columns(self, *names: str) -> dict[str, TypedColumn]:
        """Return the columns of the history as a dict by name, and "time" if there are times.

        A column is (type, list of values). ``names`` are the names of the columns of ``history``,
        of which "n" is the number of rows.
        """
        history, times = self.history, self.times
        columns = columns_of_arrays(dict(zip(names, history.T, strict=True)))
        columns["n"] = int, history[:, 0].astype(np.int64).tolist()
        if times is not None:
            dates = times.astype("datetime64[us]") if self.dates else times
            columns |= columns_of_arrays({"time": dates})
        return columns

    @property
    def alarm_words(self) -> str:
        """Row and time of the alarm in words, such as "at row 120, 2024-05-01", or "none"."""
        return "none" if self.alarm is None else self.row_words(self.alarm, self.alarm_time)

    def row_words(self, row: int, time: float | None) -> str:
        """Return a row number in words, "at row 120", with its time unless that is None.

        Times are dates in seconds since 1970 if this monitor's times are.
        """
        return f"at row {row}" + (f", {format_time(time, self.dates)}" if time is not None else "")

    def _moved(self, **changes: object) -> Self:
        """Return a copy of this monitor with other values of the fields named in ``changes``.

        Nothing is validated, which is faster.
        """
        new: Self = object.__new__(type(self))
        new.__dict__.update(self.__dict__, **changes)
        return new

    def _same_classes(self, data: RowsOrTally, time: object) -> dict[str, object]:
        """Return the fields n_classes, classes and dates for further rows, as a dict by name.

        ``data`` are the rows, or a tally of them; ``time`` are their times, or None.
        InvalidPredictionsError for another number or other names of classes than before.
        """
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
        """Return the parts of the line that says how a monitor was run: name, lens, rules, horizon.

        ``name`` is the kind of monitor, ``rules`` are short texts such as "alpha=0.05". Parts
        without a value are left out.
        """
        lens = [] if self.lens is None else [repr(self.lens)]
        ahead = [f"horizon {self.horizon}"] if self.horizon > 1 else []
        return [name, *lens, *rules, *ahead]

    def _traced(self, path: FloatArray, evidence: FloatArray, times: Times) -> dict[str, object]:
        """Return the fields that change with m new points of the history, as a dict by name.

        They are n, time, alarm, its time, and the thinned history. ``path`` (m, width) are new
        points of the history, ``evidence`` (m,) the log e-value at each, and ``times`` (m,) their
        times, or None.
        """
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
        """Return the remarks that are printed below a monitor, a list of sentences.

        A doubt comes first if neighbouring rows agree, so that outcomes may have been known late.
        """
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
        """Return the monitor as a dict of numbers, strings and lists, by name of the field.

        It contains no row; the lens is given as text, None where there is none yet.
        """
        return super().as_dict() | {"lens": None if self.lens is None else name_of(self.lens)}

    @classmethod
    def from_dict(cls, content: dict[str, Any], lens: LensLike | None = None) -> Self:
        """Rebuild a monitor from the dictionary of :meth:`as_dict`.

        ``lens`` has to be given for a monitor whose lens is a function of your own, and None for
        others.

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
        """Return the names of the fields in the dictionary form of a monitor of this class."""
        return [f.name for f in fields(cls) if "transient" not in f.metadata]

    @classmethod
    def _refuse_types(cls, content: dict[str, Any], what: str) -> None:
        """Raise InvalidPredictionsError for fields of another type, negative counts, and NaN.

        ``content`` is the dictionary form of a monitor; ``what`` begins the message, such as "this
        is no Monitor of caltest".
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
        """Raise InvalidPredictionsError for fields of this monitor that contradict each other.

        These are row counts, and packed arrays whose numbers of bytes do not fit. ``what`` begins
        the message, such as "this is no Monitor of caltest".
        """
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
        """Rebuild a monitor from the JSON text that :meth:`to_json` returns.

        ``lens`` and errors are as in :meth:`from_dict`.
        """
        return cls.from_dict(parse_json(text, f"this is no {cls.__name__} of caltest: it"), lens)


def steps_of(n: int, time: object, start: int, last: float | None) -> tuple[IntArray, Times]:
    """Return (steps, times) of ``n`` rows: step numbers, counted on from ``start``, and times.

    Both have shape (n,). ``time`` are the times as the user gave them, numbers or dates, or None.
    Rows of one time share a step; without times each row is a step, and times are None. ``last`` is
    the time of the last earlier row, None if earlier rows had no times. InvalidPredictionsError if
    times go back, or come with some rows only.
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
    """Return the points of a history that are the first to pass a multiple of ``every`` rows.

    ``points`` (m, width) begin with the number of rows. ``before`` is the last multiple that was
    passed earlier, divided by ``every``.
    """
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
    """Return the e-value exp(``log_evidence``); infinite from a logarithm of 700 on."""
    return exp(log_evidence) if log_evidence < 700.0 else np.inf


def format_evalue(log_evidence: float) -> str:
    """Return an e-value as text, from its natural logarithm: "12.3", "10^14.6" or "infinite".

    Below e^−600 it is "none yet".
    """
    if log_evidence >= REFUTED:
        return "infinite"
    if log_evidence < -600.0:
        return "none yet"
    power = log_evidence / np.log(10.0)
    return f"{np.exp(log_evidence):.4g}" if abs(power) < 5 else f"10^{power:.1f}"


# ------------------------------------------------------------------------------
# Sequential comparison of two forecasters: :class:`ComparisonMonitor`.
#
# It has one e-value for each direction and a confidence sequence for the mean difference of the
# scores; :func:`log_mixture` and :func:`radius` are the boundaries of that sequence.


#: Where the confidence sequence is narrowest: the sum of squares of the differences.
V_OPT = 10.0


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class ComparisonMonitor(Watch):
    """Sequential evidence that one forecaster is better than another, valid at every row.

    Let d(y) be the score of a minus the score of b, smaller scores being better, and ν the
    probability of the event at which both expect the same score. The evidence that a is better
    multiplies π/ν when the event happens and (1 − π)/(1 − ν) when it does not, π = (p_a + ν)/2
    (Henzi & Ziegel 2022); for the Brier score ν = (p_a + p_b)/2. It is evidence against "b was
    never the worse, given the past"; the other direction exchanges a and b. The mean difference of
    the scores is enclosed by the empirical Bernstein confidence sequence of Choe & Ramdas (2024),
    Theorem 2. A monitor is a value: :meth:`update` returns a new one; ``alarm`` is the first row,
    from 1, at which one of the two evidences had reached 2/alpha.

    Parameters
    ----------
    score : {"brier", "log"}, default "brier"
        (p − y)², or −log of the probability of the observed outcome.
    lens : callable, optional
        The event; by default ``OneVsRest(1)`` for two classes. A top class is not the same event
        for both.
    alpha : float, default 0.05
        Probability of ever raising an alarm, in either direction, while neither is better, and that
        ``low`` and ``high`` ever leave out the mean difference.
    bound : float, optional
        Largest score difference that can occur: 1 for Brier, log 1000 for log scores. Rows that
        could exceed it are refused.
    horizon : int, default 1
        As in :class:`Monitor`; ``low`` and ``high`` add up limits at ``alpha / horizon``.

    Raises
    ------
    StatisticError
        For parameters out of range, or a lens that does not show both the same event.
    InvalidPredictionsError
        When rows go back in time, or could exceed the bound.

    References
    ----------
    Henzi & Ziegel, Biometrika 109, 2022; Choe & Ramdas, Operations Research 72, 2024; Howard et
    al., Annals of Statistics 49, 2021, Proposition 9.

    Examples
    --------
    >>> monitor = ComparisonMonitor().update([0.9, 0.2, 0.7], [0.5, 0.5, 0.5], [1, 0, 1])
    >>> [round(e, 6) for e in monitor.evidence]
    [1.380952, 0.695055]
    """

    score: Literal["brier", "log"] = "brier"
    bound: float | None = None
    number: ClassVar[str] = "difference"

    def __post_init__(self) -> None:
        super().__post_init__()
        checks.one_of("score", self.score, ("brier", "log"))
        if self.bound is None:
            object.__setattr__(self, "bound", 1.0 if self.score == "brier" else log(1000.0))

    @property
    def width(self) -> int:
        """Number of entries of a point of this monitor's history, 4 + h for the horizon h.

        They are the number of rows, both log e-values, the sum of the score differences, and the
        sum of their squares in each of h processes.
        """
        return 4 + self.horizon

    def update(
        self,
        probs_a: Values,
        probs_b: Values,
        labels: Values = None,
        *,
        time: Values = None,
        **facts: Unpack[RowFacts],
    ) -> Self:
        """Return the monitor after more rows, in the order in which they were forecast.

        ``probs_a`` and ``probs_b``, (n,), (n, K) or Predictions, are forecasts of the same rows;
        labels and facts are as in :meth:`Predictions.of`, ``time`` as in :meth:`Monitor.update`.
        InvalidPredictionsError for rows that do not match, go back in time or could exceed the
        bound; StatisticError for a lens that does not show both the same event.
        """
        pair = {"probs_a": probs_a, "probs_b": probs_b}
        models, labels, matched = paired_rows(pair, labels, {})
        a, b = (
            take_rows("ComparisonMonitor", probs, labels, facts, in_order=True)
            for probs in models.values()
        )
        lens = as_lens(self.lens, a)
        if not isinstance(lens, (OneVsRest, Partition, Canonical)) or lens(a).n_classes != 2:
            raise StatisticError(
                f"{name_of(lens)} does not show both forecasters one event: use OneVsRest(c), or "
                "Partition([[…], […]])"
            )
        if a.n != b.n or not np.array_equal(a.labels, b.labels):
            raise InvalidPredictionsError("the forecasts are not of the same rows and outcomes")
        p, q, event = lens(a).probs[:, 0], lens(b).probs[:, 0], lens(a).labels == 0
        on, off, even = self._scored(p, q)
        with np.errstate(divide="ignore", invalid="ignore"):
            fair, *bets = (
                np.where(event, r, 1.0 - r) for r in (even, (p + even) / 2, (q + even) / 2)
            )
            gains = [np.where(p == q, 0.0, np.log(bet / fair)) for bet in bets]
        steps, times = steps_of(a.n, time, self.steps, self.time)
        rows = np.column_stack([*gains, np.where(event, on, off)])
        notes = tuple(map(of_bets, (*a.notes, *matched.values())))
        new = self._moved(lens=lens, notes=notes, neighbours=neighbours(a))
        new = new._moved(**self._same_classes(a, time))
        return new._after(rows, steps, times)

    def _scored(self, p: FloatArray, q: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return (on, off, ν) of forecasts ``p`` of a and ``q`` of b for the event, (n,) each.

        ``on`` and ``off`` are the score differences a − b with and without the event, and ν the
        probability at which both expect the same score. InvalidPredictionsError if a difference
        could exceed the bound.
        """
        with np.errstate(divide="ignore", invalid="ignore"):
            if self.score == "brier":
                on, off = (p - q) * (p + q - 2.0), (p - q) * (p + q)
            else:
                on, off = np.log(q / p), np.log((1.0 - q) / (1.0 - p))
            same = p == q
            on, off = np.where(same, 0.0, on), np.where(same, 0.0, off)
            beyond = ~(np.maximum(np.abs(on), np.abs(off)) <= self.bound)
            if beyond.any():
                row = int(np.argmax(beyond))
                raise InvalidPredictionsError(
                    f"row {row}: with forecasts {p[row]:g} and {q[row]:g} the difference of the "
                    f"scores could exceed the bound {self.bound:.4g}; keep probabilities away from "
                    "0 and 1, or set bound= before the first row"
                )
            return on, off, np.where(same, p, off / (off - on))

    def _after(self, rows: FloatArray, steps: IntArray, times: Times) -> Self:
        """Return the monitor after n rows with their log gains and score differences.

        ``rows`` (n, 3) are the log gains of both e-values, and score a − score b.

        ``steps`` (n,) is the step of each row, one step for all rows of one time; ``times`` (n,)
        are the times, or None.
        """
        state, n = self._processes.copy(), len(rows)
        path = np.full((n, self.width), -np.inf)
        path[:, 0] = self.n + 1.0 + np.arange(n)
        path[:, 3] = np.cumsum([self.total, *rows[:, 2]])[1:]
        # The best of h processes counts, with its evidence divided by h.
        for j, process in enumerate(state):
            dealt = np.flatnonzero(steps % self.horizon == j)
            after = _moved_on(process, rows[dealt])
            now = after[np.searchsorted(dealt, np.arange(n), side="right")]
            path[:, 1:3] = np.maximum(path[:, 1:3], now[:, :2] - log(self.horizon))
            path[:, 4 + j] = now[:, 3]
            state[j] = after[-1]
        moved = {"state": state.tobytes(), "steps": int(steps[-1]) + 1}
        return self._moved(**moved, **self._traced(path, path[:, 1:3].max(axis=1), times))

    @property
    def _processes(self) -> FloatArray:
        """Sums of each of h processes, one for each residue of the step modulo h, (h, 5).

        h is the horizon. Columns are both log e-values, the score differences a − b, their squared
        deviations, and the number of rows.
        """
        return np.frombuffer(self.state or bytes(40 * self.horizon)).reshape(self.horizon, 5)

    @property
    def alarm_at(self) -> float:
        """Natural logarithm of the e-value at which the alarm is raised, log(2 / alpha).

        It holds for the evidence in either direction.
        """
        return log(2.0 / self.alpha)

    @property
    def evidence(self) -> tuple[float, float]:
        """E-values (that a is better, that b is better); 1 at the start."""
        return odds(self.logs[0]), odds(self.logs[1])

    @property
    def logs(self) -> tuple[float, float]:
        """Natural logarithms of the e-values (that a is better, that b is better).

        They are 0 before the first row.
        """
        first, second = self._processes[:, :2].max(axis=0) - (log(self.horizon) if self.n else 0.0)
        return float(first), float(second)

    @property
    def total(self) -> float:
        """Sum over the rows of score a − score b; negative if a is better."""
        return float(self._processes[:, 2].sum())

    @property
    def difference(self) -> float:
        """Mean of score a minus score b so far; negative if a is better, 0 before the first row."""
        return self.total / max(self.n, 1)

    @property
    def low(self) -> float:
        """Lower limit for the mean of score a − score b so far.

        It holds, together with ``high``, at all times with probability 1 − ``alpha``.
        """
        return self._limits(self.n, self.total, self._processes[:, 3])[0]

    @property
    def high(self) -> float:
        """Upper limit for the mean of score a − score b so far.

        It holds, together with ``low``, at all times with probability 1 − ``alpha``.
        """
        return self._limits(self.n, self.total, self._processes[:, 3])[1]

    def _limits(self, n: float, total: float, squares: FloatArray) -> tuple[float, float]:
        if not n:
            return -np.inf, np.inf
        most, alpha = float(self.bound or 0.0), self.alpha / (2.0 * self.horizon)
        reach = most * sum(radius(max(v / most**2, 1.0), alpha) for v in squares.tolist())
        return (total - reach) / n, (total + reach) / n

    @property
    def history(self) -> FloatArray:
        """Points (number of rows, both log e-values, low, high), shape (m, 5).

        There are at most 512 points, and the last row. ``low`` and ``high`` are limits of the mean
        of score a − score b.
        """
        points = self._points()
        if self.n % self.every:
            squares = self._processes[:, 3]
            points = np.vstack([points, [self.n, *self.logs, self.total, *squares]])
        limits = [self._limits(point[0], point[3], point[4:]) for point in points]
        return np.column_stack([points[:, :3], np.reshape(limits, (-1, 2))])

    def _procedure(self) -> list[str]:
        return self._rules(f"ComparisonMonitor({self.score!r})", f"alpha={self.alpha:g}")

    def _tables(self) -> list[Columns]:
        names = ("n", "difference", "low", "high", "evidence", "alarm")
        return [attributes([self], dict(zip(names, names, strict=True)))]

    def _card(self) -> Card:
        a, b = map(format_evalue, self.logs)
        numbers = (
            ("e-value for a", a, f"for b {b}, alarm at {format_evalue(self.alarm_at)}"),
            (
                "score a − b",
                format_value(self.difference),
                f"{format_value(self.low)} to {format_value(self.high)} at all times",
            ),
            ("observations", str(self.n), f"alarm: {self.alarm_words}"),
        )
        return self._evidence_card(numbers, f"Two forecasters by the {self.score} score")

    def _frame_columns(self) -> dict[str, TypedColumn]:
        return self._history_columns("n", "log_evidence_a", "log_evidence_b", "low", "high")

    def __repr__(self) -> str:
        a, b = map(format_evalue, self.logs)
        return f"<{self.recipe}: e-values {a} for a, {b} for b>"

    def __str__(self) -> str:
        a, b = map(format_evalue, self.logs)
        lines = [
            f"Comparison of two forecasters by the {self.score} score",
            f"  rows         {self.n}",
            f"  a is better  e-value {a}",
            f"  b is better  e-value {b}",
            f"  alarm        {self.alarm_words}  (at an e-value of {format_evalue(self.alarm_at)})",
            f"  score a − b  {format_value(self.difference)}  "
            f"[{format_value(self.low)}, {format_value(self.high)}] at all times",
        ]
        return "\n".join([*lines, *self._foot()])


def _moved_on(process: FloatArray, rows: FloatArray) -> FloatArray:
    """Return the sums of a process before its rows and after each of them, shape (m + 1, 5).

    ``process`` (5,) are the sums so far: both log e-values, score differences a − b, their squared
    deviations from the mean of earlier rows, and the number of rows. ``rows`` (m, 3) are the log
    gains of both e-values, and the score difference.
    """
    after = np.cumsum(np.vstack([process[[0, 1, 2, 4]], np.insert(rows, 3, 1.0, axis=1)]), axis=0)
    before = after[:-1, 2] / np.maximum(after[:-1, 3], 1.0)
    squares = np.cumsum([process[3], *(rows[:, 2] - before) ** 2])
    return np.insert(after, 3, squares, axis=1)


def log_mixture(s: float, v: float, rho: float, c: float) -> float:
    """Return the log of the gamma-exponential mixture of Howard et al. (2021), Proposition 9.

    It is a supermartingale's value for a process of sum ``s`` and intrinsic time ``v``, the sum of
    squares. ``rho`` > 0 decides at which v the boundary is narrow, ``c`` > 0 is the scale of the
    sub-exponential bound.
    """
    from scipy.special import gammainc, gammaln

    a, b, x = rho / c**2, (v + rho) / c**2, (c * s + v + rho) / c**2
    start = a * np.log(a) - gammaln(a) - np.log(gammainc(a, a))
    return float(start + gammaln(b) + np.log(gammainc(b, x)) - b * np.log(x) + (c * s + v) / c**2)


@cache
def radius(v: float, alpha: float, v_opt: float = V_OPT, c: float = 2.0) -> float:
    """Return the boundary that a process exceeds, at any time, with probability at most ``alpha``.

    ``v`` is the intrinsic time of the process (its sum of squares), at which the boundary is
    wanted, ``v_opt`` the time at which it is about narrowest, ``c`` the scale of the
    sub-exponential bound. Solved to 1e-10 by root finding; results are kept.
    """
    from scipy.optimize import brentq

    spread = 2.0 * log(1.0 / (2.0 * alpha))
    # The ρ whose boundary is about the narrowest at v_opt, in closed form.
    rho = v_opt / (spread + log(1.0 + spread))
    above = 10.0
    while log_mixture(above, v, rho, c) < -log(alpha):
        above *= 2.0
    root = brentq(lambda s: log_mixture(s, v, rho, c) + log(alpha), 0.0, above, xtol=1e-10)
    return float(root)
