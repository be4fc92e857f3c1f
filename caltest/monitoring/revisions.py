"""Is a forecast that is updated over time a martingale? A test that needs no outcomes.

:class:`Revisions` holds the forecasts; :meth:`Revisions.test` bets against them with
:func:`_settled`, combines the bets over questions, and estimates how far revisions go.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import Any

import numpy as np

from caltest._base import arrays as checks
from caltest._base.arrays import FloatArray, IntArray
from caltest._base.written import several
from caltest.data.facts import are_dates, as_names, as_times, refuse_leads
from caltest.data.numbers import as_array, as_numbers
from caltest.errors import DoubtfulInputError, InvalidPredictionsError, Reading, spelt
from caltest.nulls.lanes import kernel
from caltest.results.aspects import REACTIONS, RevisionTest

#: Forecasts in denominators are at least this far from 0 and 1. A forecast that was rounded to 0 or
#: 1 and comes back would otherwise be infinite evidence (26 % false alarms in 400 sets of 200
#: questions with 100 Gaussian forecasts each; 2.4 % with it).
DENOMINATOR_FLOOR = 0.01

#: Fractions of its wealth that an expert stakes.
STAKES = (0.1, 0.35, 0.9)

#: Grids on which people write forecasts, coarsest first, and how many steps of it settle a bet.
GRIDS = (0.2, 0.1, 0.05, 0.025, 0.02, 0.01, 0.005, 0.0025, 0.002, 0.001, 5e-4, 2e-4, 1e-4)
STEPS_OF_A_MOVE = 3

#: Share of the forecasts inside (0, 1) that lie on the grid to which forecasts were rounded: a few
#: may have more digits, such as those near 0.
ON_GRID = 2.0 / 3.0

#: What rounding gains a bet, in steps of the grid, if the exact path is continuous. It has just
#: crossed into a cell, is half a step away from the rounded value, and leaves by ± 3 steps: the
#: expected move of the rounded value is 3 · (2/5 − 3/5) steps.
GAIN_OF_ROUNDING = 0.6

#: Grid from which on rounding spoils the movement and the interval of the effect: on a grid of
#: 0.025, the interval of 200 calibrated questions with 100 forecasts missed 1 in 36 % of 500 sets.
COARSE = 0.02

#: Log of the odds against a rise of p (1 − p) by chance, from which on it is asked about.
BACKWARDS = float(np.log(1e4))

#: Points that a result keeps of its history.
HISTORY_POINTS = 512

#: Fractions of the largest possible stake on excess movement.
MOVEMENT_STAKES = (0.1, 0.3, 0.6)


class Revisions:
    r"""Forecasts of questions that are revised over time: are the revisions unpredictable?

    A calibrated forecaster who uses what is known revises p_0, p_1, … of a question as a
    martingale: the expected next forecast is the present one. No outcome is needed to test that.
    An expert with stake s ∈ [−1, 1] and fraction f multiplies its wealth at the next forecast x by

    .. math:: 1 + f s (x - p) / p \;(s > 0), \qquad 1 + f |s| (p - x) / (1 - p) \;(s < 0),

    which has expectation 1 and is at least 1 − f. There are 18 experts of equal initial wealth: f
    is 0.1, 0.35 or 0.9, and s is ±1 (drift), ± the sign of the last change (momentum) or ±(1 − 2p)
    (movement, the statistic of Augenblick & Rabin). Their mean wealth is an e-value at every time:
    it reaches 1/alpha with probability at most alpha, whenever one looks. Copies of a forecast,
    days without one and irregular times change nothing. With ``outcomes`` the outcome of a question
    is its last forecast, 0 or 1.

    Parameters
    ----------
    ids : array_like of shape (n,)
        The question of each forecast.
    times : array_like of shape (n,)
        When it was made: numbers or dates. Two forecasts of a question at one time are refused.
    probs : array_like of shape (n,)
        Probabilities of the event in [0, 1]; NaN is a day without a forecast.
    outcomes : array_like of shape (n,) or mapping of ids, optional
        Outcomes 0 or 1, one value a question; NaN (or an absent id) while it is open. All are
        settled after the last time.
    groups : array_like of shape (n,), optional
        Questions of one group may depend on each other, such as those about one election; groups
        are independent. Factors are averaged over the open questions of a group at each time.
    dependent : bool, default False
        Whether all questions may depend on each other: one group. It costs nearly all power
        against slow revisions.
    least : float or "auto", default "auto"
        A bet is settled once the forecast has moved by this much; until then it is marked to
        market. "auto" is three steps of the grid on which two thirds of the forecasts lie, such as
        0.03 for percents, and 0 without a grid. Rounded forecasts are not martingales: without
        ``least`` and ``step``, forecasts in percent raised false alarms in 88 % of 100 calibrated
        data sets of 200 questions with 100 forecasts each.
    step : float or "auto", default "auto"
        What rounding may gain a bet: the factor of each bet is divided by 1 + |stake| step. "auto"
        is 0.6 steps of the grid, which is exact for a continuous path that is rounded to the
        nearest value, and 0 without a grid or where ``least`` is given. One whole step of the grid
        holds for all ways of rounding, and has less power. ``least=0`` says that forecasts were not
        rounded.
    as_is : bool, default False
        Take times as they are that seem to count down, by their name, such as ``lead_hours``, or as
        forecasts grow less certain.

    Raises
    ------
    InvalidPredictionsError
        For lengths that differ, probabilities outside [0, 1], two forecasts of a question at one
        time, outcomes other than 0, 1 or missing, and a question with two outcomes or in two
        groups.
    DoubtfulInputError
        For times that are a series of numbers with the name of lead times, which count down to the
        event, and for numbers along which forecasts grow less certain: pass their negative.

    Notes
    -----
    Slowness shows in many questions, jumpiness in one: a forecast that climbs from p to p′ without
    a step back has probability p/p′ under some martingale, so no valid e-value of one such question
    exceeds p′/p. On a grid of 0.02 or more, rounding alone moves forecasts too often: the e-value
    of the excess movement is then 1, and the effect has no interval. Cost O(n log n) time and 18 n
    numbers of memory.

    References
    ----------
    Augenblick & Rabin, Quarterly Journal of Economics 136, 2021 (movement and uncertainty
    reduction). Shafer, JRSS A 184, 2021 (testing by betting).

    Examples
    --------
    >>> day = [1, 2, 3, 4] * 2
    >>> question = ["rain"] * 4 + ["snow"] * 4
    >>> p = [0.5, 0.7, 0.4, 0.8, 0.2, 0.45, 0.1, 0.33]
    >>> revisions = Revisions(question, day, p, least=0)  # not rounded
    >>> test = revisions.test()
    >>> round(test.evidence, 4), test.direction
    (2.5725, 'too fast')
    """

    def __init__(
        self,
        ids: object,
        times: object,
        probs: object,
        outcomes: object = None,
        *,
        groups: object = None,
        dependent: bool = False,
        least: float | str = "auto",
        step: float | str = "auto",
        as_is: bool = False,
    ) -> None:
        p = as_array(probs, "probs")
        if p.ndim != 1 or not p.size:
            raise InvalidPredictionsError(
                f"probs has shape {p.shape}: revisions take one probability a row, (n,)"
            )
        n = p.size
        names, number = np.unique(as_names(ids, n, "ids"), return_inverse=True)
        clock = as_times(times, n)
        called = getattr(times, "name", None)  # of a series
        if isinstance(called, str) and not as_is and not are_dates(times):
            refuse_leads(called, clock, f'-"{called}"')
        given, p = _as_forecasts(p)
        order = np.lexsort((clock, number))
        order = order[given[order]]
        if not order.size:
            raise InvalidPredictionsError("probs holds no forecast: every value is missing")
        self.names = names
        self.dates = are_dates(times)
        self.question: IntArray = number[order]
        self.times: FloatArray = clock[order]
        self.probs: FloatArray = p[order]
        self.n_missing = int(n - order.size)
        self._refuse_doubles(order)
        self.outcomes = _outcome_of_each(outcomes, names, number)
        self.group = np.zeros(names.size, np.int64) if dependent else np.arange(names.size)
        if groups is not None:
            checks.one_of("dependent", dependent, (False,))
            marks = np.unique(as_names(groups, n, "groups"), return_inverse=True)[1]
            self.group = _one_a_question(marks, number, names, "groups")
        if not as_is and not self.dates:
            self._refuse_backwards(called if isinstance(called, str) else "times")
        #: Grid to which the forecasts were rounded, 0 without one or where ``least`` is given.
        self.grid = self._grid() if least == "auto" else 0.0
        automatic = {"least": STEPS_OF_A_MOVE * self.grid, "step": GAIN_OF_ROUNDING * self.grid}
        for name, value in (("least", least), ("step", step)):
            if value != "auto":
                checks.number(name, value, 0.0, 1.0, "[)")
                automatic[name] = float(value)
        self.least, self.step = automatic["least"], automatic["step"]

    def __repr__(self) -> str:
        return f"<Revisions: {self.probs.size} forecasts of {self.names.size} questions>"

    def _refuse_doubles(self, order: IntArray) -> None:
        same = (np.diff(self.question) == 0) & (np.diff(self.times) == 0.0)
        for k in np.flatnonzero(same)[:1]:
            rows = sorted((int(order[k]), int(order[k + 1])))
            raise InvalidPredictionsError(
                f"rows {rows[0]} and {rows[1]} forecast question {self.names[self.question[k]]} at "
                "one time: keep one of them"
            )

    def _refuse_backwards(self, name: str) -> None:
        """Raise DoubtfulInputError if forecasts grow less certain, so that times may count down.

        If revisions are unpredictable, p (1 − p) falls on average from the first forecast p of a
        question to the last. Means over groups of questions lie in an interval of length ¼, so that
        Hoeffding's inequality bounds the probability that their mean rises: it is asked below 1e-4.
        ``name`` names the times.
        """
        first = np.flatnonzero(np.diff(self.question, prepend=-1))
        last = np.append(first[1:], self.question.size) - 1
        spread = self.probs * (1.0 - self.probs)
        group, several_times = self.group[self.question[first]], last > first
        rise = np.bincount(group[several_times], (spread[last] - spread[first])[several_times])
        size = np.bincount(group[several_times])
        rises = rise[size > 0] / size[size > 0]
        if not rises.size or rises.mean() <= np.sqrt(BACKWARDS / (32.0 * rises.size)):
            return
        negative = f"-{name}" if name.isidentifier() else f'-"{name}"'
        raise DoubtfulInputError(
            f"forecasts are less certain at the end of {name} than at its start: p (1 - p) rises "
            f"by {rises.mean():.3g} on average, and falls if revisions are unpredictable. Pass "
            "times=-times (--time with a minus) if times count down to the event, or as_is=True "
            "(--as-is) if they count up",
            [
                Reading({"time": negative}, f"{name} counts down to the event"),
                Reading({"as_is": True}, f"{name} counts up"),
            ],
        )

    def _grid(self) -> float:
        """Return the coarsest grid, such as 0.01, on which most forecasts lie, or 0.0.

        Most are two thirds; forecasts of 0 and 1 do not count.
        """
        inside = self.probs[(self.probs > 0.0) & (self.probs < 1.0)]
        for grid in GRIDS if inside.size else ():
            if (np.abs(inside / grid - np.rint(inside / grid)) < 1e-6).mean() >= ON_GRID:
                return grid
        return 0.0

    def test(self, *, alpha: float = 0.05, level: float = 0.95) -> RevisionTest:
        """Test whether revisions are unpredictable, and estimate how far they go.

        Parameters
        ----------
        alpha : float, default 0.05
            Probability of ever raising a false alarm, in (0, 1).
        level : float, default 0.95
            Level of the interval of the effect.

        Returns
        -------
        RevisionTest
            E-value now and its largest value, alarm, direction, effect and movement.
        """
        checks.fraction("alpha", alpha)
        checks.fraction("level", level)
        clock, logs = self._wealth()
        evidence = np.logaddexp.reduce(logs, axis=1) - np.log(logs.shape[1])
        rang = np.flatnonzero(evidence >= -np.log(alpha))[:1]
        share = np.exp(logs[-1] - np.logaddexp.reduce(logs[-1])).reshape(6, -1).sum(axis=1)
        movement, resolved, movement_evidence = self._movement()
        effect = self._effect(level)
        history = np.column_stack([clock, evidence])
        every = -(-len(history) // HISTORY_POINTS)
        charge = (
            f"for rounding the e-value is divided by up to {1.0 + self.step:g} at each revision"
            if self.step
            else "smaller changes may be rounding"
        )
        same = int(np.count_nonzero(self._steps[1] == 0.0))
        unchanged = f"{several(same, 'forecast')} equal to the last one count as no revision; "
        least, step = spelt("least= (--least)"), spelt("step= (--step)")
        exact = spelt("least=0 (--least 0)")
        notes = [
            *[f"{self.n_missing} rows without a forecast count as no revision"]
            * (self.n_missing > 0),
            *[
                f"{unchanged * (same > 0)}changes of a forecast count as evidence once they add up "
                f"to {self.least:g} ({least})"
            ]
            * (self.least > 0.0),
            *[
                f"most forecasts are multiples of {self.grid:g}: {charge} ({step} changes by how "
                f"much; {exact} says that they were not rounded)"
            ]
            * (self.grid > 0.0),
            *[f"a grid of {self.grid:g} is too coarse for the movement and the effect's interval"]
            * (self.grid >= COARSE),
        ]
        return RevisionTest(
            n=self.probs.size,
            n_classes=2,
            n_questions=self.names.size,
            n_revisions=int(np.count_nonzero(self._steps[1])),
            n_times=len(clock),
            n_groups=int(self.group.max()) + 1,
            log_evidence=float(evidence[-1]),
            largest_log_evidence=float(max(0.0, evidence.max())),
            alpha=alpha,
            alarm_time=float(clock[rang[0]]) if rang.size else None,
            dates=self.dates,
            directions=tuple(REACTIONS),
            shares=tuple(float(s) for s in share[[2, 3, 0, 1, 4, 5]]),
            effect=effect[0],
            effect_low=effect[1],
            effect_high=effect[2],
            level=level,
            movement=movement,
            resolved=resolved,
            movement_log_evidence=movement_evidence,
            least=self.least,
            history=np.ascontiguousarray(history[::-1][::every][::-1]),
            notes=tuple(notes),
        )

    @property
    def evidence(self) -> float:
        """E-value against the hypothesis that revisions are unpredictable, after the last time."""
        return self.test().evidence

    def __str__(self) -> str:
        return str(self.test())

    @cached_property
    def _rows(self) -> tuple[IntArray, FloatArray, FloatArray]:
        """Forecasts as three arrays (question, time, forecast), (m,) each, by question and time.

        Questions are numbered from 0. A known outcome is added as the last forecast of its
        question, at a time after all others.
        """
        known = np.flatnonzero(~np.isnan(self.outcomes))
        end = self.times.max() + 1.0
        question = np.concatenate([self.question, known])
        times = np.concatenate([self.times, np.full(known.size, end)])
        order = np.lexsort((times, question))
        probs = np.concatenate([self.probs, self.outcomes[known]])
        return question[order], times[order], probs[order]

    @cached_property
    def _steps(self) -> tuple[IntArray, FloatArray, FloatArray]:
        """Revisions as three arrays (question, change, forecast before it), (m,) each.

        Questions are numbered from 0; a change is a forecast less the one before, in the order of
        time.
        """
        question, _, p = self._rows
        later = np.flatnonzero(np.diff(question) == 0)
        return question[later], np.diff(p)[later], p[later]

    def _wealth(self) -> tuple[FloatArray, FloatArray]:
        """Return (times, log wealth), shapes (m,) and (m, 18).

        ``times`` are the m distinct times in increasing order; log wealth (natural) is the wealth
        of each of the 18 betting experts after each, 0 at the start.
        """
        question, times, p = self._rows
        starts = np.flatnonzero(np.diff(question, prepend=-1))
        gain = np.zeros((p.size, 6 * len(STAKES)))
        _settled(p, starts, np.asarray(STAKES), self.least, self.step, DENOMINATOR_FLOOR, gain)
        clock, at = np.unique(times, return_inverse=True)
        logs = np.zeros((clock.size, gain.shape[1]))
        if int(self.group.max()) + 1 == self.names.size:  # each question is a group of its own
            np.add.at(logs, at, gain)
            return clock, np.cumsum(logs, axis=0)
        # A mean over the open questions, those that began before; it may not be one over those that
        # moved, which is not known before.
        group = self.group[question]
        later = np.setdiff1d(np.arange(p.size), starts)
        key = group[later] * clock.size + at[later]
        cells, inverse = np.unique(key, return_inverse=True)
        moved = np.zeros((cells.size, gain.shape[1]))
        np.add.at(moved, inverse, np.expm1(gain[later]))
        begun = np.sort(group[starts] * clock.size + at[starts])
        first = np.searchsorted(begun, cells // clock.size * clock.size)
        n_open = np.searchsorted(begun, cells) - first
        np.add.at(logs, cells % clock.size, np.log1p(moved / n_open[:, None]))
        return clock, np.cumsum(logs, axis=0)

    def _movement(self) -> tuple[float, float, float]:
        """Return (Σ d², resolved uncertainty, log e-value of the excess movement).

        d are the revisions of all questions. If forecasts are martingales, Σ d² has the expectation
        of the uncertainty that is resolved, Σ p (1 − p) at the first less the last forecast.
        """
        question, d, before = self._steps
        count = self.names.size
        p0 = self.probs[np.flatnonzero(np.diff(self.question, prepend=-1))]
        spread = p0 * (1.0 - p0)
        excess = np.bincount(question, (1.0 - 2.0 * before) * d, count)  # Σ d² − resolved
        movement = np.bincount(question, d * d, count)
        x = np.divide(excess, spread, out=np.zeros(count), where=spread > 0.0)
        sizes = np.bincount(self.group)
        means = np.bincount(self.group, x) / sizes
        logs = [np.log1p(k * means).sum() for k in MOVEMENT_STAKES]
        evidence = float(np.logaddexp.reduce(logs) - np.log(len(logs)))
        evidence = evidence if self.grid < COARSE else 0.0
        return float(movement.sum()), float((movement - excess).sum()), evidence

    def _effect(self, level: float) -> tuple[float, float, float]:
        """Return (effect, low, high): how far revisions go, compared with unpredictable ones.

        The effect is 1 − Σ d_t d_{t−1} / Σ d²_{t−1}, with d_t the changes of a question's forecast.
        It is 1 for a martingale and below 1 for momentum. The interval has the ``level``, by the
        jackknife over groups of questions. NaN where the effect, or its interval, cannot be
        estimated.
        """
        from scipy.stats import t as student

        question, d, _ = self._steps
        question, d = question[d != 0.0], d[d != 0.0]
        pair = np.flatnonzero(np.diff(question) == 0)
        unit = self.group[question[pair]]
        count = int(self.group.max()) + 1
        product = np.bincount(unit, d[pair] * d[pair + 1], count)
        square = np.bincount(unit, d[pair] ** 2, count)
        if square.sum() == 0.0:
            return np.nan, np.nan, np.nan
        effect = 1.0 - product.sum() / square.sum()
        used = square > 0.0
        product, square = product[used], square[used]
        units = product.size
        if units < 3 or self.grid >= COARSE:
            return float(effect), np.nan, np.nan
        left_out = 1.0 - (product.sum() - product) / (square.sum() - square)
        error = np.sqrt((units - 1) * left_out.var())
        reach = student.ppf(0.5 + 0.5 * level, units - 1) * error
        return float(effect), float(effect - reach), float(effect + reach)


@kernel
def _settled(
    p: FloatArray,
    starts: IntArray,
    stakes: FloatArray,
    least: float,
    step: float,
    floor: float,
    gain: FloatArray,
) -> None:
    """Compute the growth of the log wealth of 6 · S experts at every row, written into ``gain``.

    ``p`` (n,) are forecasts ordered by question, then time; ``starts`` (Q,) is the first row of
    each of Q questions, and ``stakes`` (S,) the shares of wealth that are bet. ``gain`` (n, 6 · S)
    holds zeros before. A bet is placed at the last settled forecast and valued at the market price
    until the forecast has moved by ``least``. Every bet is charged ``step`` times its stake for the
    rounding of forecasts, and probabilities in denominators are at least ``floor``. Experts come in
    the order drift up and down, momentum and reversal, towards and away from 1/2, each with every
    stake.
    """
    n, width = p.size, 6 * stakes.size
    value = np.zeros(width)  # log value of the open bets since they were placed
    for q in range(starts.size):
        end = starts[q + 1] if q + 1 < starts.size else n
        placed, direction = p[starts[q]], 0.0
        value[:] = 0.0
        for i in range(starts[q] + 1, end):
            d = p[i] - placed
            up, down = 1.0 / max(placed, floor), 1.0 / max(1.0 - placed, floor)
            k = 0
            for rule in range(6):
                signal = 1.0
                if rule // 2 == 1:
                    signal = direction
                elif rule // 2 == 2:
                    signal = 1.0 - 2.0 * placed
                if rule % 2 == 1:
                    signal = -signal
                stake = signal * up if signal > 0.0 else signal * down
                for f in stakes:
                    now = np.log((1.0 + f * stake * d) / (1.0 + f * abs(stake) * step))
                    gain[i, k] = now - value[k]
                    value[k] = now
                    k += 1
            if d != 0.0 and abs(d) >= least - 1e-12:
                placed, direction = p[i], np.sign(d)
                value[:] = 0.0


def _as_forecasts(values: Any) -> tuple[Any, FloatArray]:
    """Return (given, forecasts), (n,) each: booleans for rows with a forecast, and it, or 0.

    ``values`` (n,) is an array of numbers, with NaN or None for a missing forecast.
    InvalidPredictionsError for values outside [0, 1].
    """
    if values.dtype.kind == "O":
        values = np.array([np.nan if v is None else v for v in values])
    missing = np.isnan(values) if values.dtype.kind == "f" else np.zeros(values.size, dtype=bool)
    p = as_numbers(np.where(missing, 0.0, values) if missing.any() else values, "probs")
    for row in np.flatnonzero((p < 0.0) | (p > 1.0))[:1]:
        raise InvalidPredictionsError(
            f"probs: row {row} is {p[row]:g}, outside [0, 1]; divide percentages by 100"
        )
    return ~missing, p


def _outcome_of_each(outcomes: object, names: Any, number: IntArray) -> FloatArray:
    """Return the outcome (0.0 or 1.0) of each of Q questions, (Q,); NaN while it is open.

    ``outcomes`` are a value for each of n rows, a mapping by name of the question, or None.
    ``names`` (Q,) are the names of the questions and ``number`` (n,) is the index of each row's
    question. InvalidPredictionsError for other values, unknown questions, and a question with two
    outcomes.
    """
    if outcomes is None:
        return np.full(names.size, np.nan)
    if isinstance(outcomes, Mapping):
        known = {str(name): value for name, value in outcomes.items()}
        for name in known:
            if name not in set(map(str, names)):
                raise InvalidPredictionsError(f"outcomes: there is no question {name}")
        values = np.array([known.get(str(name), np.nan) for name in names], dtype=object)
        number = np.arange(names.size)
    else:
        values = as_array(outcomes, "outcomes").astype(object)
        if values.shape != number.shape:
            raise InvalidPredictionsError(
                f"outcomes has shape {values.shape}; it takes one value for each of the "
                f"{number.size} rows, or a mapping from ids to outcomes"
            )
    numbers = np.full(values.size, np.nan)
    for row, value in enumerate(values):
        try:
            numbers[row] = np.nan if value is None or value != value else float(value)
        except (TypeError, ValueError):
            raise InvalidPredictionsError(
                f"outcomes: row {row} is {value!r}, not 0 or 1 (or missing while it is open)"
            ) from None
    known_rows = ~np.isnan(numbers)
    for row in np.flatnonzero(known_rows & (numbers != 0.0) & (numbers != 1.0))[:1]:
        raise InvalidPredictionsError(f"outcomes: row {row} is {numbers[row]:g}, not 0 or 1")
    if not known_rows.any():
        return np.full(names.size, np.nan)
    result = np.full(names.size, np.nan)
    result[number[known_rows]] = numbers[known_rows]
    for row in np.flatnonzero(known_rows & (numbers != result[number]))[:1]:
        raise InvalidPredictionsError(
            f"outcomes: question {names[number[row]]} has outcome {numbers[row]:g} in row {row} "
            f"and {result[number[row]]:g} in another: a question has one"
        )
    return result


def _one_a_question(marks: IntArray, number: IntArray, names: Any, what: str) -> IntArray:
    """Return the group of each of Q questions, integers (Q,), numbered from 0.

    ``marks`` (n,) are the groups of n rows, ``number`` (n,) the indices of their questions,
    ``names`` (Q,) the names of the questions, and ``what`` the name of the argument in messages.
    InvalidPredictionsError if the rows of a question are in two groups.
    """
    result = np.zeros(names.size, dtype=np.int64)
    result[number] = marks
    for row in np.flatnonzero(marks != result[number])[:1]:
        raise InvalidPredictionsError(
            f"{what}: question {names[number[row]]} is in two groups (row {row}): name one"
        )
    return np.unique(result, return_inverse=True)[1]
