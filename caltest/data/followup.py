"""Outcomes by a horizon of rows that were followed for a time, some of them too short to know."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import pairwise

import numpy as np

from caltest._base.arrays import AnyArray, BoolArray, FloatArray, IntArray, codes, number
from caltest._base.naming import nth
from caltest._base.written import Written
from caltest.data import facts
from caltest.data.labels import end_of
from caltest.data.numbers import as_array, as_numbers, is_text
from caltest.errors import InvalidPredictionsError, ShortFollowupWarning, StatisticError
from caltest.results.base import FollowupSummary

#: Strata by rank of the prediction: at most so many, and of at least so many rows.
MOST_STRATA, ROWS_A_STRATUM = 10, 50


#: What is warned of: fewer effective rows, a larger share of lost mass, or smaller named strata.
LEAST_EFFECTIVE, MOST_LOST, LEAST_STRATUM = 75.0, 0.01, 20


#: More kinds of events than there are, where times have two values: one is in the other's place.
MOST_EVENTS = 20


#: What a row shows by the horizon.
UNKNOWN, FREE, EVENT, COMPETING = -1, 0, 1, 2


def swapped(time: AnyArray, event: AnyArray) -> bool:
    """Say whether times and events are in each other's place: no others have such values."""
    return bool(event.max(initial=0) > MOST_EVENTS and np.unique(time).size == 2)


@dataclass(frozen=True, eq=False, repr=False)
class Followup(Written):
    """Follow-up in the place of labels: did the event occur by a horizon, as far as is known?

    A row was followed for ``time`` = min(T, C), T the time of its event and C that of censoring. It
    shows the *event* where time ≤ horizon and ``event`` is 1, a *competing* event where it is 2 or
    more, none where time ≥ horizon (*free*), and is *unknown* where it was censored before. A known
    row has the weight W = 1 / Ĝ(min(time, horizon)−), Ĝ Kaplan–Meier's curve of censoring in its
    stratum, events before censorings at ties; an unknown one has 0. Residuals are W (Y − p), so
    that the mean of W Y in a stratum is 1 − Kaplan–Meier, or Aalen–Johansen with competing events.

    Parameters
    ----------
    time : array_like of shape (n,)
        How long each row was followed, ≥ 0, in the unit of ``horizon``.
    event : array_like of shape (n,)
        How that ended: 0 or False censored, 1 or True the event, 2, 3, … competing events; also two
        words for no and yes, such as "alive" and "dead".
    horizon : float
        By when the predicted event occurs, > 0.
    strata : array_like of shape (n,), optional
        What censoring depends on. By default min(10, n // 50) groups by rank of the prediction,
        which is enough where the model orders all that T depends on. Where a covariate that
        censoring depends on moves T beyond the prediction, name it here, crossed with thirds of the
        prediction.

    Raises
    ------
    InvalidPredictionsError
        For times that are negative or not finite, other events, and lengths that differ.
    StatisticError
        For a horizon that is not a number > 0.

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

    Examples
    --------
    >>> followup = Followup([2.0, 6.0, 3.0, 6.0], [1, 0, 0, 0], horizon=5)
    >>> followup
    Followup(n=4, horizon=5)
    >>> followup.status, followup.censoring(np.array([0.5, 0.1, 0.2, 0.3])).weights
    (array([ 1,  0, -1,  0]), array([1. , 1.5, 0. , 1.5]))
    """

    time: FloatArray
    event: IntArray
    horizon: float = field(kw_only=True)
    strata: IntArray | None = field(default=None, kw_only=True)

    def __post_init__(self) -> None:
        number("horizon", self.horizon, 0.0, np.inf)
        time, event = (as_array(vars(self)[k], k) for k in ("time", "event"))
        if is_text(event) and (in_words := end_of(event)):
            event = in_words[1]
        time, event = as_numbers(time, "time"), as_numbers(event, "event")
        if time.ndim != 1:
            raise InvalidPredictionsError(
                f"time must hold one number for each row; its shape is {time.shape}"
            )
        if event.shape != time.shape:
            raise InvalidPredictionsError(
                f"event must hold one value for each of the {time.size} times; its shape is "
                f"{event.shape}"
            )
        if swapped(time, event):
            raise InvalidPredictionsError(
                f"events reach to {event.max():g}, and times have two values: pass the times "
                "first, then how they ended, Followup(time, event, horizon=…)"
            )
        for row in np.flatnonzero(time < 0.0)[:1]:
            raise InvalidPredictionsError(f"time: {nth(row)} is {time[row]:g}; times are ≥ 0")
        for row in np.flatnonzero((event < 0.0) | (event != np.floor(event)))[:1]:
            raise InvalidPredictionsError(
                f"event: {nth(row)} is {event[row]:g}; events are 0 (censored), 1 (the event), 2, "
                "3, … (competing events), or booleans: write them so"
            )
        object.__setattr__(self, "horizon", float(self.horizon))
        object.__setattr__(self, "time", time)
        object.__setattr__(self, "event", event.astype(np.int64))
        if self.strata is not None:
            names = facts.as_names(self.strata, time.size, "strata")
            object.__setattr__(self, "strata", codes(names))

    @property
    def n(self) -> int:
        """Number of rows."""
        return self.time.size

    @cached_property
    def status(self) -> IntArray:
        """1 the event by the horizon, 2 a competing one, 0 free of both then, −1 unknown."""
        ended = (self.time <= self.horizon) & (self.event > 0)
        rest = np.where(self.time >= self.horizon, FREE, UNKNOWN)
        return np.where(ended, np.minimum(self.event, COMPETING), rest)

    @property
    def labels(self) -> IntArray:
        """1 where the event is known to have occurred by the horizon, else 0."""
        return (self.status == EVENT).astype(np.int64)

    @property
    def notes(self) -> tuple[str, ...]:
        """What seems to be in another unit: a horizon beyond all times, or below a tenth of them.

        Years taken for months, or the reverse, are always one of these.
        """
        last, h = self.time.max(), self.horizon
        if last / 10.0 <= h <= last:
            return ()
        events = f"{self.labels.sum()} of {np.count_nonzero(self.event)} events are by then"
        return (f"times reach to {last:g}: a horizon of {h:g} is in the same unit; {events}",)

    def take(self, rows: IntArray | BoolArray) -> Followup:
        """Return some of the rows."""
        strata = None if self.strata is None else self.strata[rows]
        return replace(self, time=self.time[rows], event=self.event[rows], strata=strata)

    def groups(self, p: FloatArray) -> IntArray:
        """Return the stratum of every row: the one given, or by rank of its prediction (n,).

        Equal predictions share a stratum, and no strata are merged: the redraw has the heavy
        weights of a stratum, but not the bias that merging brings.
        """
        if self.strata is not None:
            return codes(self.strata)
        _, level, counts = np.unique(p, return_inverse=True, return_counts=True)
        size = max(1, min(MOST_STRATA, p.size // ROWS_A_STRATUM))
        return codes(size * (np.cumsum(counts) - counts)[level.ravel()] // p.size)

    def censoring(self, p: FloatArray) -> Censoring:
        """Return how rows with these predictions (n,) were censored, stratum by stratum.

        StatisticError when nobody was followed to the horizon, and rows were censored before.
        """
        if (self.status == UNKNOWN).any() and self.time.max() < self.horizon:
            raise StatisticError(
                f"nobody was followed to {self.horizon:g}: the last time is {self.time.max():g}; "
                "take an earlier horizon, in the unit of the times"
            )
        return Censoring(self, self.groups(p))

    def summary(self, p: FloatArray) -> FollowupSummary:
        """Return what reports say of the follow-up of these predictions (n,)."""
        censoring = self.censoring(p)
        weights, groups = censoring.weights, censoring.groups
        unknown, free, events, competing = np.bincount(self.status + 1, minlength=4).tolist()
        effective = float(weights.sum() ** 2 / np.square(weights).sum())
        return FollowupSummary(
            self.horizon, events, competing, free, unknown,
            strata=int(groups.max()) + 1, by_prediction=self.strata is None,
            heaviest=float(weights.max()), effective_n=effective, share=effective / self.n,
            lost=1.0 - float(weights.sum()) / self.n, smallest=int(np.bincount(groups).min()),
        )  # fmt: skip

    def warn(self, p: FloatArray) -> None:
        """Warn where follow-up is too short for tests of these predictions to hold their level."""
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
        return f"Followup(n={self.n}, horizon={self.horizon:g}{strata})"


class Censoring:
    """Kaplan–Meier's curve of censoring in every stratum, and what rows owe to its being fitted.

    The places of a stratum are its m censoring times v before the horizon: place k of a known row
    is the number of them before min(time, horizon), that of an unknown row its own. ``slots`` of
    all strata follow each other, m + 1 for each, of which the last is beyond the horizon.

    ``slot`` (n,) is the place of every row, ``weights`` (n,) are 1{known} / Ĝ(min(time, horizon)−);
    ``starts`` (J + 1,) is where the slots of each stratum begin, ``cut`` (S,) the censoring time v
    of each slot, infinite for the last of a stratum, ``left`` (S,) Ĝ before it, the product of
    1 − c(v) / Y(v) over earlier places v, and ``share`` (S,) c / Y there: those censored at v, of
    the rows of v or later without an event at v.
    """

    def __init__(self, followup: Followup, groups: IntArray) -> None:
        self.followup, self.groups, self.is_known = followup, groups, followup.status != UNKNOWN
        ends, rank = np.unique(np.minimum(followup.time, followup.horizon), return_inverse=True)
        strata, width = np.arange(groups.max() + 1), ends.size + 1
        key = groups * width + rank.ravel()
        places = np.unique(np.append(key[~self.is_known], strata * width + ends.size))
        self.slot = np.searchsorted(places, key)
        self.starts = np.searchsorted(places, np.append(strata, strata.size) * width)
        self.cut = np.append(ends, np.inf)[places % width]
        censored = np.bincount(self.slot[~self.is_known], minlength=places.size)
        self._at_risk = self._after(np.bincount(self.slot, minlength=places.size)) + censored
        self._at_risk = np.maximum(self._at_risk, 1.0)
        self.share = censored / self._at_risk
        self.left = self.by_stratum(lambda x: np.append(1.0, np.cumprod(1.0 - x[:-1])), self.share)
        self.weights = self.is_known / np.where(self.is_known, self.left[self.slot], 1.0)

    def by_stratum(self, function: Callable[[AnyArray], AnyArray], values: AnyArray) -> FloatArray:
        """Return a function of the values (S,), stratum by stratum."""
        return np.concatenate([function(values[a:b]) for a, b in pairwise(self.starts)])

    def _after(self, sums: AnyArray) -> FloatArray:
        """Return the sums over later slots of the same stratum, for (S,)."""
        return self.by_stratum(lambda x: np.append(np.cumsum(x[:0:-1])[::-1], 0.0), sums)

    def influence(self, values: FloatArray) -> FloatArray:
        """Return the influence of every row on Σ a r, for its terms a r, shape (n,); O(n).

        IF_j = a_j r_j + Σ_v h(v) [1{j censored at v} − 1{j at risk at v} c(v) / Y(v)], h(v) the sum
        of the terms later than v over Y(v). Σ IF² is the variance of the sum, fitted weights
        included.
        """
        h = self._after(np.bincount(self.slot, values, self.left.size)) / self._at_risk
        spent = h * self.share
        before = self.by_stratum(lambda x: np.append(0.0, np.cumsum(x[:-1])), spent)
        return values - before[self.slot] + np.where(self.is_known, 0.0, (h - spent)[self.slot])
