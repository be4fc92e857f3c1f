"""Follow-up: outcomes by a horizon for rows followed for a time, some of them censored.

:class:`Followup` stands in the place of labels; :class:`Censoring` has the weights.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import pairwise
from typing import Literal, Self

import numpy as np

from caltest._base.arrays import AnyArray, BoolArray, FloatArray, IntArray, codes, number, one_of
from caltest._base.written import FollowupDoubt, Written, several
from caltest.data import facts
from caltest.data.numbers import as_array, as_numbers, is_text
from caltest.errors import (
    InvalidPredictionsError,
    ShortFollowupWarning,
    StatisticError,
    UnsupportedFactError,
    nth,
)
from caltest.results.base import FollowupSummary

#: Strata by rank of the prediction: at most so many, and of at least so many rows.
MOST_STRATA, ROWS_A_STRATUM = 10, 50


#: Groups by rank of the prediction and of the horizon where rows have horizons of their own, at
#: most, and rows a stratum.
MOST_PARTS, ROWS_A_PART = 3, 20


#: What is warned of: fewer effective rows, a larger share of lost mass, or smaller named strata.
LEAST_EFFECTIVE, MOST_LOST, LEAST_STRATUM = 75.0, 0.01, 20


#: More kinds of events than there are, where times have two values: one is in the other's place.
MOST_EVENTS = 20


#: Standard errors by which events fall short of those predicted before the horizon's unit is
#: doubted.
SHORT_OF_EVENTS = 4.0


#: How times were recorded: to the last digit, or in units that were completed or begun.
Recorded = Literal["exact", "floor", "ceil"]


#: Units up to the horizon from which on coarse times do no harm, and the share of censoring times
#: that are times of events, from which on both were rounded.
MANY_UNITS, SHARED_TIMES = 30, 0.5


#: What a row shows by the horizon.
UNKNOWN, FREE, EVENT, COMPETING = -1, 0, 1, 2


#: Why rows that entered late are refused, and the two ways that hold.
LATE_ENTRY = (
    "Followup does not take entry=: a row that entered after time 0 (left truncation) is seen only "
    "if it had no event before. Either pass the risk of the event by the horizon given none at "
    "entry, with Followup(time - entry, event, horizon - entry); or choose a landmark time s, keep "
    "the rows under observation and free of the event at s, and pass their risk of the event "
    "between s and the horizon, with Followup(time - s, event, horizon - s)"
)


def swapped(time: AnyArray, event: AnyArray) -> bool:
    """Return whether times and event codes seem to have been passed in each other's place.

    They do if the codes ``event`` (n,) exceed 20, more kinds of events than there are, and ``time``
    (n,) has two different values.
    """
    return bool(event.max(initial=0) > MOST_EVENTS and np.unique(time).size == 2)


@dataclass(frozen=True, eq=False, repr=False)
class Followup(Written):
    """Follow-up in the place of labels: whether the event occurred by a horizon, where known.

    A row was followed for ``time`` = min(T, C), with T the time of its event and C of censoring. It
    shows the *event* where time ≤ horizon and ``event`` is true, a *competing* event where
    ``competing`` is, none where time ≥ horizon (*free*), and is *unknown* where it was censored
    before. A known row has the weight W = 1 / Ĝ(min(time, horizon)−), Ĝ Kaplan–Meier's curve of
    censoring in its stratum, events before censorings at ties; an unknown one has 0. Residuals are
    W (Y − p), so that the mean of W Y in a stratum is 1 − Kaplan–Meier, or Aalen–Johansen with
    competing events.

    Parameters
    ----------
    time : array_like of shape (n,)
        How long each row was followed, ≥ 0, in the unit of ``horizon``.
    event : array_like of shape (n,)
        Whether the event was seen at ``time``: booleans, or 1 and 0. Codes are compared first:
        ``event=status == 1, competing=status == 2``.
    horizon : float, or array_like of shape (n,)
        By when the predicted event occurs, > 0: a number for all rows or one a row, such as the
        deadline of each question. With one a row, time / horizon within 1 is analysed, and rows
        whose horizon is beyond the longest ``time`` are left out when predictions meet follow-up;
        a note counts them.
    unit, recorded : float and {"exact", "floor", "ceil"}, default 1.0 and "exact"
        How times were recorded: ``"floor"`` in completed units (a time t lies in [t, t + unit)),
        ``"ceil"`` in units begun (in (t − unit, t]). Events are then placed in the middle of their
        unit, and censorings alternately at a quarter and three quarters, in the order of their
        predictions, as in actuarial life tables. Times and horizon must be multiples of ``unit``:
        the horizon is the end of a unit. Visits, at which events and censorings really happen, are
        exact.
    competing : array_like of shape (n,), optional
        Whether another event was seen at ``time`` that makes the predicted one impossible. Rows
        with neither are censored at ``time``.
    strata : array_like of shape (n,), optional
        Groups within which censoring is independent of the event. By default min(10, n // 50)
        groups by rank of the prediction, which is enough where the model orders all that T depends
        on; with one horizon a row thirds of the horizon crossed with thirds of the prediction
        (halves below 180 rows, one stratum below 80). Where a covariate that censoring depends on
        moves T beyond the prediction, name it here, crossed with thirds of the prediction.

    Raises
    ------
    InvalidPredictionsError
        For times that are negative or not finite, events that are neither booleans nor 0 and 1,
        rows with both events, and lengths that differ.
    StatisticError
        For a horizon that is not a number > 0, or that lies inside a unit.
    UnsupportedFactError
        For an argument ``entry``: the message says how rows that entered late are tested.

    Warns
    -----
    ShortFollowupWarning
        When predictions meet it: with (Σ W)² / Σ W² below 75, more than 1 % of the rows' mass lost
        as nobody of a stratum was followed to the horizon (sizes of up to 0.13 were measured at
        0.05), or fewer than 20 rows in a stratum of ``strata``.

    Notes
    -----
    O(n log n). Scores are divided by their standard deviation in 999 redraws of a fixed seed:
    another order of rows changes such values by Monte Carlo error. Robins & Finkelstein, Biometrics
    56, 2000; Gerds & Schumacher, Biometrical Journal 48, 2006.

    Where the age of every row is known, as of questions with deadlines, the rows whose deadline has
    passed, whatever came of them, need no follow-up: their labels are known, and tests of them are
    exact. Rows that happen to be resolved are no such subset, because events are resolved first.

    Examples
    --------
    >>> followup = Followup([2.0, 6.0, 3.0, 6.0], [1, 0, 0, 0], horizon=5)
    >>> followup
    Followup(n=4, horizon=5)
    >>> followup.status, followup.censoring(np.array([0.5, 0.1, 0.2, 0.3])).weights
    (array([ 1,  0, -1,  0]), array([1. , 1.5, 0. , 1.5]))
    >>> Followup([2.0, 6.0, 3.0], [True, False, False], horizon=[5, 6, 2])
    Followup(n=3, horizon=2 to 6)
    """

    time: FloatArray
    event: BoolArray
    horizon: float | FloatArray
    unit: float = field(default=1.0, kw_only=True)
    recorded: Recorded = field(default="exact", kw_only=True)
    competing: BoolArray | None = field(default=None, kw_only=True)
    strata: IntArray | None = field(default=None, kw_only=True)
    #: Rows that were left out, as their horizon is beyond the longest time.
    left_out: int = field(default=0, init=False)

    def __new__(cls, *values: object, **options: object) -> Self:
        if "entry" in options:
            raise UnsupportedFactError(LATE_ENTRY, fact="left truncation")
        return super().__new__(cls, *values, **options)

    def __post_init__(self) -> None:
        time = as_numbers(as_array(self.time, "time"), "time")
        if time.ndim != 1:
            raise InvalidPredictionsError(
                f"time must hold one number for each row; its shape is {time.shape}"
            )
        for row in np.flatnonzero(time < 0.0)[:1]:
            raise InvalidPredictionsError(f"time: {nth(row)} is {time[row]:g}; times are ≥ 0")
        given: dict[str, object] = {"time": time, "event": _flags("event", self.event, time)}
        if self.competing is not None:
            given["competing"] = _flags("competing", self.competing, time)
            for row in np.flatnonzero(given["event"] & given["competing"])[:1]:  # type: ignore[operator]
                raise InvalidPredictionsError(
                    f"{nth(row)} has the event and a competing event: a row ends with one of them"
                )
        given["horizon"] = _horizon(self.horizon, time)
        one_of("recorded", self.recorded, ("exact", "floor", "ceil"))
        number("unit", self.unit, 0.0, np.inf, "()")
        if self.recorded != "exact":
            self._refuse_parts_of_units(time, given["horizon"])
        if self.strata is not None:
            given["strata"] = codes(facts.as_names(self.strata, time.size, "strata"))
        for name, values in given.items():
            object.__setattr__(self, name, values)

    def _refuse_parts_of_units(self, time: FloatArray, horizon: object) -> None:
        """Raise for times and horizons that are no multiples of ``unit``, the step of times.

        InvalidPredictionsError names the first such row of ``time`` (n,), or for units begun the
        first time below one unit. StatisticError names the ``horizon``, a number or one for each
        row.
        """
        unit, horizons = self.unit, np.atleast_1d(np.asarray(horizon, dtype=np.float64))
        for row in np.flatnonzero(_inside(time, unit))[:1]:
            raise InvalidPredictionsError(
                f"time: {nth(row)} is {time[row]:g}, no multiple of unit={unit:g}, in which times "
                f"were recorded ({self.recorded!r}): leave recorded out for exact times"
            )
        for row in np.flatnonzero(time < unit)[:1] if self.recorded == "ceil" else ():
            raise InvalidPredictionsError(
                f"time: {nth(row)} is {time[row]:g}, but times in units begun ('ceil') are at "
                f"least {unit:g}"
            )
        for place in np.flatnonzero(_inside(horizons, unit))[:1]:
            raise StatisticError(
                f"the horizon {horizons[place]:g} lies inside a unit of {unit:g}, and times that "
                f"were recorded in such units ({self.recorded!r}) do not say on which side of it "
                "they are: take a multiple"
            )

    @property
    def n(self) -> int:
        return self.time.size

    @property
    def within_units(self) -> FloatArray:
        """Times (n,), moved to the middle of their unit if they are recorded in whole units."""
        shift = {"exact": 0.0, "floor": 0.5, "ceil": -0.5}[self.recorded]
        return self.time + shift * self.unit if shift else self.time

    def placed(self, p: FloatArray) -> Followup:
        """Return follow-up with exact times in place of times recorded in whole units.

        Events and competing events get the middle of their unit. Censorings get a time a quarter
        unit earlier or later, alternating in the order of the predictions p (n,), so that half of
        the censored leave before the events of the unit.
        """
        if self.recorded == "exact":
            return self
        time = self.within_units.copy()
        lost = np.flatnonzero(~self.ended)
        order = lost[np.lexsort((lost, p[lost], time[lost]))]
        place = np.arange(order.size)
        new = np.append(True, np.diff(time[order]) > 0.0)[: order.size]
        place -= np.maximum.accumulate(np.where(new, place, 0))
        time[order] += np.where(place % 2 == 0, -0.25, 0.25) * self.unit
        exact = replace(self, time=time, recorded="exact", unit=1.0)
        object.__setattr__(exact, "left_out", self.left_out)
        return exact

    @property
    def coarse(self) -> int:
        """Number of time units up to the horizon, if times seem rounded to coarse units; else 0.

        Times seem rounded if all of them up to the horizon are multiples of horizon / J with J <
        30, each is shared by two rows on average, and half of the earlier censorings are at times
        of events. Years rounded down were found in all simulated data sets of 100 rows; days,
        weeks, months and exact times in none of 2600.
        """
        horizon = self.limit
        before = self.time <= horizon
        lost = ~self.ended & (self.time < horizon)
        if self.by_row or self.recorded != "exact" or not (before & self.ended).any():
            return 0
        share = np.round(self.time / horizon, 9)
        values = np.unique(share[before])
        if not lost.any() or before.sum() < 2 * values.size:
            return 0
        among = np.isin(share[lost], share[before & self.ended])
        units = (j for j in range(1, MANY_UNITS) if not _inside(values, 1.0 / j).any())
        return next(units, 0) if among.mean() >= SHARED_TIMES else 0

    @property
    def by_row(self) -> bool:
        """True if each row has a horizon of its own."""
        return isinstance(self.horizon, np.ndarray)

    @property
    def elapsed(self) -> FloatArray:
        """Follow-up times (n,), as fractions of the horizon if rows have horizons of their own."""
        time = self.within_units
        return time / self.horizon if self.by_row else time

    @property
    def limit(self) -> float:
        """Horizon in the unit of :attr:`elapsed`: the number that was given, or 1.

        It is 1 where rows have horizons of their own, because times are then fractions of these.
        """
        return 1.0 if isinstance(self.horizon, np.ndarray) else self.horizon

    @cached_property
    def status(self) -> IntArray:
        """Status (n,) at the horizon: 1 event, 2 competing event, 0 free of both, −1 unknown."""
        within, free = self.elapsed <= self.limit, self.elapsed >= self.limit
        status = np.where(free, FREE, UNKNOWN)
        status[within & self.event] = EVENT
        if self.competing is not None:
            status[within & self.competing] = COMPETING
        return status

    @property
    def labels(self) -> IntArray:
        """Labels (n,): 1 where the event is known to have occurred by the horizon, else 0."""
        return (self.status == EVENT).astype(np.int64)

    @property
    def ended(self) -> BoolArray:
        """True where follow-up ended with the event or a competing one, (n,)."""
        return self.event if self.competing is None else self.event | self.competing

    @property
    def notes(self) -> tuple[str, ...]:
        """Notes, one sentence each, on rows left out and on times recorded in whole units."""
        last, h = float(self.time.max()), float(np.max(self.horizon))
        notes = []
        if self.left_out:
            notes.append(
                f"left out {several(self.left_out, 'row')} with a horizon beyond the longest "
                f"follow-up ({last:g})"
            )
        if units := self.coarse:
            notes.append(
                f"all times up to {h:g} are multiples of {h / units:g}, of events and censorings: "
                f"if these are completed units, say unit={h / units:g}, recorded='floor' ('ceil' "
                "for units begun; --unit, --recorded), without which tests reject too often; "
                "visits need nothing"
            )
        return tuple(notes)

    def unit_notes(self, p: FloatArray) -> tuple[str, ...]:
        """Return a note if the horizon seems to be in another unit than the times; () otherwise.

        It does if it lies beyond all times or below a tenth of them, as years taken for months do.
        With fewer events by the horizon than predictions p (n,) expect, by four standard errors,
        the note is a FollowupDoubt: a rejection is in doubt. Rows that were censored before it
        count by their prediction, which is more than they have left.
        """
        last, h = float(self.time.max()), float(np.max(self.horizon))
        if last / 10.0 <= h <= last:
            return ()
        by_then, expected = int(self.labels.sum()), float(p.sum())
        note = (
            f"times reach to {last:g}: a horizon of {h:g} is in the same unit; {by_then} of "
            f"{np.count_nonzero(self.ended)} events are by then, and predictions expect "
            f"{expected:.0f} of {self.n} rows to have one"
        )
        most = by_then + float(p[self.status == UNKNOWN].sum())
        short = expected - most > SHORT_OF_EVENTS * float(np.sqrt(p @ (1.0 - p)))
        return (FollowupDoubt(note),) if short else (note,)

    @property
    def beyond(self) -> BoolArray:
        """True for rows whose own horizon exceeds the longest follow-up time, (n,).

        Nobody was followed for so long, so their outcome cannot be estimated.
        """
        if not self.by_row:
            return np.zeros(self.n, dtype=np.bool_)
        return np.asarray(self.horizon > self.time.max(initial=0.0))

    def within(self) -> Followup:
        """Return the follow-up without the rows :attr:`beyond`, whose horizon nobody reached.

        ``left_out`` of the result counts these. StatisticError if no row would stay.
        """
        beyond = self.beyond
        if beyond.all():
            raise StatisticError(
                f"nobody was followed to a horizon: the last time is {self.time.max():g}, the "
                f"shortest horizon {np.min(self.horizon):g}; both are in one unit"
            )
        kept = self.take(~beyond)
        object.__setattr__(kept, "left_out", self.left_out + int(beyond.sum()))
        return kept

    def take(self, rows: IntArray | BoolArray) -> Followup:
        """Return the follow-up of the selected rows; ``rows`` are indices or booleans."""
        parts = {name: vars(self)[name] for name in ("horizon", "competing", "strata")}
        parts = {k: v[rows] if isinstance(v, np.ndarray) else v for k, v in parts.items()}
        taken = replace(self, time=self.time[rows], event=self.event[rows], **parts)
        object.__setattr__(taken, "left_out", self.left_out)
        return taken

    def groups(self, p: FloatArray) -> IntArray:
        """Return the stratum of every row, (n,): the given one, or a group of similar predictions.

        Predictions p (n,) are grouped by rank, equal ones together. Where rows have horizons of
        their own, these groups are crossed with groups of the horizon, because how early an event
        comes may depend on both. Strata are never merged: merging would bias the weights. Strata
        are numbered from 0.
        """
        if self.strata is not None:
            return codes(self.strata)
        if self.by_row:
            parts = (k for k in range(MOST_PARTS, 0, -1) if p.size >= ROWS_A_PART * k * k)
            size = next(parts, 1)
            return codes(size * _by_rank(np.asarray(self.horizon), size) + _by_rank(p, size))
        return codes(_by_rank(p, max(1, min(MOST_STRATA, p.size // ROWS_A_STRATUM))))

    def censoring(self, p: FloatArray) -> Censoring:
        """Return the censoring distribution in every stratum, and the weights that follow from it.

        The weights (n,) are 1/Ĝ for known outcomes and 0 for unknown ones, with Ĝ the Kaplan–Meier
        curve of censoring. ``p`` (n,) are the predictions, from which strata are made if none are
        given. StatisticError if nobody was followed to the horizon, and rows were censored before.
        """
        if self.recorded != "exact":
            return self.placed(p).censoring(p)
        if (self.status == UNKNOWN).any() and self.elapsed.max() < self.limit:
            if self.by_row:
                raise StatisticError("no row was followed to its horizon: take earlier horizons")
            raise StatisticError(
                f"nobody was followed to {self.limit:g}: the last time is {self.time.max():g}; "
                "take an earlier horizon, in the unit of the times"
            )
        return Censoring(self, self.groups(p))

    def summary(self, p: FloatArray) -> FollowupSummary:
        """Return a FollowupSummary for reports; ``p`` (n,) are predictions.

        It has the horizon, the numbers of events, competing events, free and unknown rows, the
        number of strata, and the largest weight and effective number of rows under censoring.
        """
        censoring = self.censoring(p)
        weights, groups = censoring.weights, censoring.groups
        unknown, free, events, competing = np.bincount(self.status + 1, minlength=4).tolist()
        effective = float(weights.sum() ** 2 / np.square(weights).sum())
        return FollowupSummary(
            float(np.max(self.horizon)), events, competing, free, unknown,
            strata=int(groups.max()) + 1, by_prediction=self.strata is None,
            heaviest=float(weights.max()), effective_n=effective, share=effective / self.n,
            lost=1.0 - float(weights.sum()) / self.n, smallest=int(np.bincount(groups).min()),
            shortest=float(np.min(self.horizon)) if self.by_row else None, left_out=self.left_out,
        )  # fmt: skip

    def warn(self, p: FloatArray) -> None:
        """Warn (ShortFollowupWarning) where follow-up is too short for tests to hold their level.

        ``p`` (n,) are the predicted risks. The warning says why: a small effective number of rows,
        tails without follow-up, or small strata.
        """
        short = self.summary(p)
        wrong = "tests may reject calibrated models too often, in up to 13 % at 5 %"
        doubts = {
            f"the effective n is only {short.effective_n:.0f}, it takes {LEAST_EFFECTIVE:g}; "
            + wrong: short.effective_n < LEAST_EFFECTIVE,
            f"{short.lost:.1%} of the rows are in tails that nobody was followed through; "
            + wrong: short.lost > MOST_LOST,
            f"a stratum has {short.smallest} rows, fewer than {LEAST_STRATUM}: censoring is hardly "
            "known there; join strata": not short.by_prediction and short.smallest < LEAST_STRATUM,
        }  # fmt: skip
        for doubt in (words for words, holds in doubts.items() if holds):
            warnings.warn(f"follow-up: {doubt}", ShortFollowupWarning, stacklevel=4)

    def __repr__(self) -> str:
        strata = "" if self.strata is None else f", {np.unique(self.strata).size} strata"
        last = f"{np.max(self.horizon):g}"
        horizon = f"{np.min(self.horizon):g} to {last}" if self.by_row else last
        return f"Followup(n={self.n}, horizon={horizon}{strata})"


def _inside(values: FloatArray, unit: float) -> BoolArray:
    """Return which numbers are not multiples of a unit, booleans (n,).

    ``values`` (n,) are ≥ 0; a multiple may be off by 1e-6 of the unit, or by 1e-6 of itself.
    """
    parts = values / unit
    return np.asarray(np.abs(parts - np.rint(parts)) > 1e-6 * np.maximum(1.0, parts))


def _flags(name: str, values: object, time: FloatArray) -> BoolArray:
    """Return booleans (n,) from booleans or 0 and 1, which say where an event was seen.

    ``values`` holds one for each row. InvalidPredictionsError for another shape; for codes and
    words it suggests an expression that makes booleans of them. ``name`` is the argument ("event"
    or "competing"), ``time`` (n,) are the times.
    """
    cells = as_array(values, name)
    if cells.shape != time.shape:
        raise InvalidPredictionsError(
            f"{name} must hold one value for each of the {time.size} times; its shape is "
            f"{cells.shape}"
        )
    if is_text(cells):
        wrong, said = np.arange(min(1, cells.size)), f"{cells[:1].tolist()[0]!r}"
        write = f"{name}=status == {said}, status the array of words"
    else:
        cells = as_numbers(cells, name)
        if name == "event" and swapped(time, cells):
            raise InvalidPredictionsError(
                f"events reach to {cells.max():g}, and times have two values: pass the times "
                "first, then whether the event was seen, Followup(time, event, horizon)"
            )
        wrong = np.flatnonzero((cells != 0) & (cells != 1))[:1]
        said = "".join(f"{v:g}" for v in cells[wrong].tolist())
        write = "event=status == 1, competing=status == 2, status the array of codes"
    for row in wrong:
        raise InvalidPredictionsError(
            f"{name}: {nth(int(row))} is {said}; it must be boolean or 0 and 1. Write {write}"
        )
    return cells.astype(np.bool_)


def _horizon(horizon: object, time: FloatArray) -> float | FloatArray:
    """Return the horizon, one number or one for each row (n,).

    ``time`` (n,) are the times. StatisticError unless it is positive, InvalidPredictionsError for
    another shape.
    """
    if np.ndim(horizon) == 0:  # type: ignore[arg-type]
        number("horizon", horizon, 0.0, np.inf)
        return float(horizon)  # type: ignore[arg-type]
    each = as_numbers(as_array(horizon, "horizon"), "horizon").astype(np.float64)
    if each.shape != time.shape:
        raise InvalidPredictionsError(
            f"horizon must be a number, or hold one for each of the {time.size} times; its shape "
            f"is {each.shape}"
        )
    for row in np.flatnonzero(each <= 0.0)[:1]:
        raise StatisticError(f"horizon: {nth(int(row))} is {each[row]:g}; horizons are > 0")
    return each


def _by_rank(values: FloatArray, size: int) -> IntArray:
    """Return the group (0 to size − 1) of each value by rank, (n,); equal values share a group."""
    _, level, counts = np.unique(values, return_inverse=True, return_counts=True)
    return size * (np.cumsum(counts) - counts)[level.ravel()] // values.size


class Censoring:
    """Kaplan–Meier curve of the censoring time in every stratum, and the weights it gives to rows.

    It is made from ``followup``, the times and events of n rows, and ``groups`` (n,), their strata,
    numbered from 0. Let v_1 < … < v_m be the censoring times of a stratum before the horizon. They
    divide time into m + 1 slots. The slot of a row with known outcome is the number of v before
    min(time, horizon); that of a row with unknown outcome is the number of its own censoring time.
    The last slot is beyond the horizon.

    ``slot`` (n,) is the slot of every row, numbered over all J strata to S slots, and ``weights``
    (n,) are 1{known} / Ĝ(min(time, horizon)−) with Ĝ the Kaplan–Meier curve. ``starts`` (J + 1,) is
    where the slots of each stratum begin. ``cut`` (S,) is the censoring time v of each slot,
    infinite for the last of a stratum; ``left`` (S,) is Ĝ before it, the product of 1 − c(v) / Y(v)
    over earlier times v; ``share`` (S,) is c / Y there, for c rows that are censored at v, and Y
    rows at risk.
    """

    def __init__(self, followup: Followup, groups: IntArray) -> None:
        self.followup, self.groups, self.is_known = followup, groups, followup.status != UNKNOWN
        ends, rank = np.unique(np.minimum(followup.elapsed, followup.limit), return_inverse=True)
        strata, width = np.arange(groups.max() + 1), ends.size + 1
        key = groups * width + rank.ravel()
        places = np.unique(np.append(key[~self.is_known], strata * width + ends.size))
        self.slot = np.searchsorted(places, key)
        self.starts = np.searchsorted(places, np.append(strata, strata.size) * width)
        self.cut = np.append(ends, np.inf)[places % width]
        censored = np.bincount(self.slot[~self.is_known], minlength=places.size)
        self._at_risk = self._sums_after(np.bincount(self.slot, minlength=places.size)) + censored
        self._at_risk = np.maximum(self._at_risk, 1.0)
        self.share = censored / self._at_risk
        self.left = self.by_stratum(lambda x: np.append(1.0, np.cumprod(1.0 - x[:-1])), self.share)
        self.weights = self.is_known / np.where(self.is_known, self.left[self.slot], 1.0)

    def by_stratum(self, function: Callable[[AnyArray], AnyArray], values: AnyArray) -> FloatArray:
        """Return ``function(values)`` of each stratum, concatenated, shape (S,).

        ``values`` (S,) belong to the S slots, between times of censoring, of all strata;
        ``function`` maps those of one stratum to an array of their shape.
        """
        return np.concatenate([function(values[a:b]) for a, b in pairwise(self.starts)])

    def _sums_after(self, sums: AnyArray) -> FloatArray:
        """Return, for every slot, the sum over later slots of its stratum, (S,).

        ``sums`` (S,) are the terms. S is the number of slots (times of censoring) of all strata.
        """
        return self.by_stratum(lambda x: np.append(np.cumsum(x[:0:-1])[::-1], 0.0), sums)

    def influence(self, values: FloatArray) -> FloatArray:
        """Return the influence of every row on Σ a r, for its terms a r, shape (n,); O(n).

        ``values`` (n,) are the terms, weights a times residuals r. IF_j = a_j r_j + Σ_v h(v) [1{j
        censored at v} − 1{j at risk at v} c(v) / Y(v)], with c(v) rows censored at time v, Y(v)
        rows at risk, and h(v) the sum of the terms later than v over Y(v), all in the stratum of
        row j. Σ IF² is the variance of the sum, fitted weights included.
        """
        h = self._sums_after(np.bincount(self.slot, values, self.left.size)) / self._at_risk
        spent = h * self.share
        before = self.by_stratum(lambda x: np.append(0.0, np.cumsum(x[:-1])), spent)
        return values - before[self.slot] + np.where(self.is_known, 0.0, (h - spent)[self.slot])
