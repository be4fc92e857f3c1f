"""Sequential monitoring of one classifier: :class:`Monitor`.

The bets on rows are compiled in :mod:`caltest.nulls.bets`; :func:`bet_sums` bets on tallies. An
update with one plain row takes a shorter path.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import exp, log, nan, sqrt
from typing import Any, ClassVar, Literal, Self, Unpack

import numpy as np

from caltest._base import arrays as checks
from caltest._base.arrays import BoolArray, FloatArray, IntArray, Values
from caltest._base.written import several
from caltest.data import RowFacts
from caltest.data.doubts import of_bets
from caltest.data.lenses import LensLike, OneVsRest, as_lens
from caltest.errors import InvalidPredictionsError, Reading, StatisticError, spelt
from caltest.inference._input import neighbours, take_rows, take_tally
from caltest.monitoring.watch import (
    Times,
    Watch,
    format_evalue,
    format_time,
    odds,
    steps_of,
)
from caltest.nulls import bets as mixture
from caltest.nulls.bets import (
    CHANGE,
    EVERY,
    LEAVES,
    LOG_ODDS_CLIP,
    MONITOR,
    REFUTED,
    SCALARS,
    Leader,
    leader,
)
from caltest.results import format_p
from caltest.results.rendering import Card, Columns, TypedColumn, attributes, percent
from caltest.statistics import RowProblem
from caltest.tallies import AnyTally, RowsOrTally, TallyProblem
from caltest.tallies.grid import POSITIONS

#: How far 100 times a multiple of 0.01 may be from a whole number.
GRID_ROUNDING = 1e-7

#: Half a step of that grid, and how near to 0 or 1 a mean is of which it is a tenth or more.
HALF_STEP, RARE_MEAN = 0.005, 0.05


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Monitor(Watch):
    """Sequential evidence against calibration, valid at every row: an e-value and an alarm.

    A mixture of fixed experts bets on every outcome at the odds of the predictions, M_t =
    Π_s Σ_j π_j(s) q_j(y_s) / p_s(y_s): shifts, slopes, label noise, and local shifts, each from
    the start or from later on. No bet wins in the long run against a calibrated model: whatever the
    rows depend on in the past, P(sup_t M_t ≥ 1/α) ≤ α (Ville 1939). Nothing is fitted, and any
    splitting of the rows gives the same evidence.

    A :class:`Tally`, of a day perhaps, is a batch whose order does not matter: experts tilt all
    predictions of a micro-cell alike, and sums never add evidence that the rows would not give.
    Tallies and rows may follow each other. A monitor is a value: :meth:`update` returns a new one.

    Parameters
    ----------
    lens : callable, optional
        Which probabilities are assessed; by default ``OneVsRest(1)`` for two classes, else
        ``TopK(1)``.
    alpha : float, default 0.05
        Probability that a calibrated model ever raises the alarm.
    change : bool, default False
        Ask whether the model *has become* miscalibrated, not whether it ever was. Evidence is then
        the sum of M over all starts at every 32nd row (the e-detector of Shin, Ramdas & Rinaldo
        2022), with an alarm at ``run_length`` / 32; ``alpha`` plays no part, nor is there a
        p-value.
    run_length : int, default 100_000
        Average run length to a false alarm with ``change=True``, in rows, at least.
    horizon : int, default 1
        How many rows, or with ``time`` how many times, ahead the forecasts are made: outcomes are
        not known before the next forecasts, and a plain product is wrong. Rows are dealt to
        this many processes; the evidence is the largest of them, divided by their number.
    rounded : bool or "auto", default "auto"
        Whether a probability of 0 or 1 may be rounded: no bet is made on a row that has one, which
        is valid whatever was rounded. ``"auto"`` does so, for a lens of two classes, as long as all
        predictions so far are multiples of 0.01 and one was not 0 or 1; the rule knows no outcome.
    independent : bool, default False
        Rows of one ``time`` are independent given the past, each a bet of its own. Otherwise they
        are one bet (``shared_times``): an expert's factor is the mean of its factors for the rows,
        of mean 1 however they depend (Vovk & Wang, Annals of Statistics 49, 2021).

    Attributes
    ----------
    alarm, time, alarm_time
        Row (from 1) of the first alarm, time of the last row, and of the alarm; None if there is
        none. Dates are seconds since 1970. ``times`` are the times of ``history``.
    impossible : int
        Number of outcomes of probability 0.
    grid : {"unknown", "round", "fine"}
        Whether all predictions so far are multiples of 0.01; unknown until one is not 0 or 1.
    within_rounding : bool
        True if rounding to 0.01 may explain an alarm about rare events: ``grid`` is "round", the
        mean prediction at the alarm is within 0.05 of 0 or 1, and both the observed rate and the
        best expert there are within 0.005 of it. Evidence is about the probabilities as given.
    sums, alarm_sums : tuple of float
        Rows, Σ p and Σ y of the event (of the likeliest class, where the lens keeps more than two),
        now and at the alarm.
    onset, onset_time
        Estimated start of the change, after an alarm; None after tallies.

    Raises
    ------
    StatisticError
        For parameters out of range, or a lens that does not fit the data.
    InvalidPredictionsError
        When rows go back in time, or weigh more than 1.

    Notes
    -----
    0.6 µs a row for two classes, about 0.2 K µs for K, and 10 µs for an update with one row (30
    with ``change``). JSON of 20 KB, and 0.6 KB more a class; of 14 KB more for each further unit of
    ``horizon``. Shafer, JRSS A 184, 2021; Ramdas et al., Statistical Science 38, 2023; Willems,
    Shtarkov & Tjalkens (the tree of local shifts), IEEE Trans. Inf. Theory 41, 1995.

    Examples
    --------
    >>> monitor = Monitor(alpha=0.01).update([0.9, 0.8, 0.95], [0, 1, 0])
    >>> monitor = monitor.update(0.3, 1)
    >>> monitor.n, round(monitor.evidence, 6), monitor.alarm
    (4, 1.526965, None)
    """

    change: bool = False
    run_length: int = 100_000
    rounded: bool | Literal["auto"] = "auto"
    grid: Literal["unknown", "round", "fine"] = "unknown"
    independent: bool = False
    shared_times: bool = False
    n_induced: int = 2
    highest: float = 0.0
    impossible: int = 0
    sums: tuple[float, ...] = (0.0, 0.0, 0.0)
    alarm_sums: tuple[float, ...] | None = None
    walks: bytes = b""
    onset: int | None = None
    onset_time: float | None = None
    number: ClassVar[str] = "evidence"

    def __post_init__(self) -> None:
        super().__post_init__()
        checks.whole("run_length", self.run_length, EVERY)
        checks.one_of("rounded", self.rounded, (True, False, "auto"))

    @property
    def width(self) -> int:
        """Number of entries of a history point, 2: the number of rows, and ``log_evidence``."""
        return 2

    def update(
        self,
        probs: Values,
        labels: Values = None,
        *,
        time: Values = None,
        **facts: Unpack[RowFacts],
    ) -> Self:
        """Return the monitor after more rows, in the order in which they were forecast.

        Rows whose labels are late have to wait, and all later ones with them: outcomes must not be
        scored in an order that depends on them. Predictions, labels and facts are as in
        :meth:`Predictions.of`; a weight, at most 1, is the share of the wealth that is bet on a
        row. One row of two classes may be two numbers, or lists of one. A :class:`Tally` of rows
        without weights, of a lens of two classes, is one step. ``time`` is the time of every row
        (of a tally a single one), a number or a date, which must not go back. Rows of one time are
        forecast together and come in one update; they may depend on each other (``independent``).
        Those of a tally are taken as independent given the past.
        """
        if isinstance(probs, AnyTally):
            tally = take_tally("Monitor", probs, labels, facts, self.lens)
            return self._after_tally(tally, time)
        # Checks of one row cost more than its bet; a stream of plain rows goes without them.
        if time is None and not facts and self._is_plain:
            row = one_row(probs, labels)
            if row is not None:
                return self._after_one(row)
        if isinstance(probs, float):
            probs, labels = [probs], [labels]
        data = take_rows("Monitor", probs, labels, facts, in_order=True, stakes=True)
        lens = as_lens(self.lens, data)
        induced = RowProblem.of(lens(data)).data
        weights = np.ones(induced.n) if induced.weights is None else induced.weights
        refuse_large(weights)
        new = self._begun(data, lens, induced.n_classes, time)
        steps, times = steps_of(induced.n, time, self.steps, self.time)
        if times is not None and not self.independent:
            over = format_time(times[0], new.dates) if times[0] == self.time else None
            refuse_times(times, induced.n_classes, over)
        rows = np.empty((induced.n, induced.n_classes + 2))
        rows[:, :-2], rows[:, -2], rows[:, -1] = induced.probs, induced.labels, weights
        after = new._after(rows, steps, times)
        doubt = 0.0 if after.shared_times else neighbours(data)
        return after._moved(neighbours=doubt, notes=tuple(map(of_bets, data.notes)))

    def _begun(self, data: RowsOrTally, lens: LensLike, n_induced: int, time: object) -> Self:
        """Return the monitor with lens, classes and an initial state of the experts' wealth.

        ``data`` are the first rows, or a tally of them; ``lens`` is the lens it gets, ``n_induced``
        the number of classes behind it, and ``time`` the times of the rows, or None. A monitor that
        has seen rows keeps its state. InvalidPredictionsError for other classes than before.
        """
        new = self._moved(**self._same_classes(data, time))
        if self.n:
            return new
        state = np.tile(mixture.start(n_induced), self.horizon).tobytes()
        return new._moved(lens=lens, state=state, n_induced=n_induced)

    def _after_tally(self, tally: AnyTally, time: object) -> Self:
        """Return the monitor after the rows of a tally, taken as one step at one ``time``.

        A tally has sums over fine bins in place of rows. ``time`` is a number or date, None for no
        times. StatisticError for ``rounded=True``, and with ``change=True`` for more rows than
        ``run_length``.
        """
        if self.rounded is True:
            raise StatisticError("rounded=True needs the rows: a tally is bet on as a whole")
        if self.change and tally.n > self.run_length:
            raise StatisticError(
                f"{tally.n} rows at once are more than a false alarm in {self.run_length} allows: "
                "take a longer run_length, or tallies of fewer rows"
            )
        time = None if time is None else [time]
        new = self._begun(tally, tally.lens, 2, time)
        steps, times = steps_of(1, time, self.steps, self.time)
        states = np.frombuffer(new.state).reshape(self.horizon, -1).copy()
        bet_sums(tally, self.mode, states[steps[0] % self.horizon])
        path = np.array([[self.n + tally.n, new._of_all(states)]])
        sums = self.sums + tally.n * np.array([[1.0, *TallyProblem.of(tally).means()]])
        moved = new._moved_on(path, states, tally.impossible.size, sums, int(steps[-1]) + 1, times)
        return moved._moved(notes=tally.notes, walks=b"", grid="fine")

    def _after(self, rows: FloatArray, steps: IntArray, times: Times) -> Self:
        """Return the monitor after n more rows.

        ``rows`` (n, K + 2) hold the probabilities of K classes, the label, and the weight.
        ``steps`` (n,) is the step of each row, one step for all rows of one time; ``times`` (n,)
        are the times, or None.
        """
        state = np.frombuffer(self.state).copy()
        labels, places = rows[:, -2].astype(np.int64), np.arange(len(rows))
        impossible = int((rows[places, labels] == 0.0).sum())
        addends, sums = sums_after(self.sums, rows[:, :-2], labels)
        alone = times is None or self.independent
        first = places if alone else np.flatnonzero(np.diff(steps, prepend=-1))
        ends = np.append(first[1:], len(rows)) - 1
        certain, grid = self._certain(rows[:, :-2])
        if certain.any():
            rows[certain, :-2], rows[certain, -1] = 1.0 / self.n_induced, 0.0
        states = state.reshape(self.horizon, -1)
        path = bet_dealt(rows, ends - first + 1, steps[ends] % self.horizon, self.mode, states)
        path -= 0.0 if self.change else log(self.horizon)
        path = np.column_stack([self.n + 1.0 + ends, path])
        when = None if times is None else times[ends]
        moved = self._moved_on(path, state, impossible, sums[ends], int(steps[-1]) + 1, when)
        began = of_change(self, moved, addends[:, 1:], rows[:, -1], times)
        shared = self.shared_times or first.size < len(rows)
        return moved._moved(**began, shared_times=shared, grid=grid)

    def _certain(self, probs: FloatArray) -> tuple[BoolArray, str]:
        """Return (rows not bet on, grid) for predictions that may be rounded to 0 or 1.

        ``probs`` (n, K) are predictions. The first are booleans (n,), True for rows with a
        probability of 0 that may be rounded. The grid is "round" while all predictions are
        multiples of 0.01, "fine" from the first other one on, or "unknown". Each row is judged by
        the predictions up to it, so that splitting rows changes nothing.
        """
        certain = (probs == 0.0).any(axis=1)
        if probs.shape[1] > 2 or self.rounded != "auto":
            return certain & (self.rounded is True), self.grid
        off = np.abs(100.0 * probs[:, 0] - np.rint(100.0 * probs[:, 0])) > GRID_ROUNDING
        fine = np.logical_or.accumulate(off) | (self.grid == "fine")
        known = np.logical_or.accumulate(~certain) | (self.grid == "round")
        after = "fine" if fine[-1] else "round" if known[-1] else "unknown"
        return certain & known & ~fine, after

    def _after_one(self, row: FloatArray) -> Self:
        """Return the monitor after one row of two classes without time, by a faster path.

        ``row`` (1, 4) is (p, 1 − p, label, weight), p being the probability of label 1.
        """
        state, path = np.frombuffer(self.state).copy(), np.array([[self.n + 1.0, 0.0]])
        mixture.bet_two(row, self.mode, state, path[0, 1:])
        p, _, y, _ = row[0].tolist()
        sums = [(self.sums[0] + 1.0, self.sums[1] + p, self.sums[2] + y)]
        impossible = int((p if y else 1.0 - p) == 0.0)
        moved = self._moved_on(path, state, impossible, sums, self.steps + 1, None)
        return moved._moved(**of_change(self, moved, row[:, [0, 2]], row[:, 3], None))

    def _moved_on(
        self,
        path: FloatArray,
        state: FloatArray,
        impossible: int,
        sums: FloatArray | list[tuple[float, float, float]],
        steps: int,
        times: Times,
    ) -> Self:
        """Return the monitor with new state, evidence and sums, and an alarm if it is reached.

        ``path`` (m, 2) has the number of rows and the log evidence after each step, ``sums`` (m, 3)
        are (number of rows, Σ p, Σ y) after each, ``state`` is the wealth of all experts, ``steps``
        the number of steps so far, and ``times`` (m,) are their times, or None. ``impossible`` is
        the number of outcomes of probability 0 among the new rows.
        """
        moved = self._traced(path, path[:, 1], times)
        if "alarm" in moved:
            row = path[:, 0].tolist().index(moved["alarm"])
            moved["alarm_sums"] = tuple(map(float, sums[row]))
        return self._moved(
            **moved,
            sums=tuple(map(float, sums[-1])),
            state=state.tobytes(),
            highest=max(self.highest, float(path[:, 1].max())),
            impossible=self.impossible + impossible,
            steps=steps,
            notes=(),
        )

    @property
    def _is_plain(self) -> bool:
        """True if a next row may be given as two numbers.

        This needs earlier rows, two classes with label 1 as event, and no time, horizon or
        rounding.
        """
        plain = self.n > 0 and self.n_classes == 2 and self.horizon == 1 and self.time is None
        certain = self.rounded is False or (self.rounded == "auto" and self.grid == "fine")
        return plain and certain and isinstance(self.lens, OneVsRest) and self.lens.c == 1

    @property
    def mode(self) -> int:
        """Constant that says which experts bet: CHANGE (late ones) or MONITOR (early and late)."""
        return CHANGE if self.change else MONITOR

    @property
    def alarm_at(self) -> float:
        """Natural logarithm of the e-value at which the alarm is raised."""
        if not self.change:
            return -log(self.alpha)
        # Overlapping processes have no common filtration: P(alarm by t) ≤ t / (2 run_length).
        return log(self.run_length / EVERY * (1 if self.horizon == 1 else 2))

    @property
    def log_evidence(self) -> float:
        """Natural logarithm of the e-value; 0 before the first row.

        It is infinite once an outcome of probability 0 occurred.
        """
        if self.n == 0:
            return 0.0
        now = self._of_all(np.frombuffer(self.state).reshape(self.horizon, -1))
        return np.inf if now >= REFUTED else now

    def _of_all(self, states: FloatArray) -> float:
        """Return the log e-value of all h betting processes together, a float.

        ``states`` (h, size) is the wealth of the experts of each process. The result is the largest
        log wealth of a process, less log h unless the monitor is for changes.
        """
        now = float(mixture.scalar(states, mixture.NOW).max())
        return now - (0.0 if self.change else log(self.horizon))

    @property
    def evidence(self) -> float:
        """E-value against calibration: wealth of the bets, 1 at the start.

        It is infinite once an outcome of probability 0 occurred.
        """
        return odds(self.log_evidence)

    @property
    def pvalue(self) -> float | None:
        """1 / (largest e-value so far), valid at any time; None with ``change=True``."""
        return None if self.change else exp(-max(self.highest, 0.0))

    @property
    def history(self) -> FloatArray:
        """Points (number of rows, ``log_evidence`` after them) of this monitor, shape (m, 2).

        There are at most 512 points, and the last row.
        """
        points = self._points()
        if self.n % self.every and not (len(points) and points[-1, 0] == self.n):
            points = np.vstack([points, [self.n, self.log_evidence]])
        return np.where(points >= REFUTED, np.inf, points)

    @property
    def gain(self) -> float:
        """Mean of ``log_evidence`` per row, in nats: the log score gained by the bets."""
        return self.log_evidence / max(self.n, 1)

    @property
    def means(self) -> tuple[float, float]:
        """(mean prediction, observed event rate) of all rows so far; NaN without rows.

        For more than two classes the event is that the most likely class occurs.
        """
        return means_of(self.sums)

    @property
    def means_since_alarm(self) -> tuple[float, float]:
        """(mean prediction, observed event rate) of the rows after the alarm.

        Both are NaN without such rows, and without an alarm.
        """
        return means_of(self.sums, self.alarm_sums or self.sums)

    @property
    def within_rounding(self) -> bool:
        """True if rounding to 0.01 may explain an alarm about rare events; False without an alarm.

        All predictions are multiples of 0.01, the mean prediction at the alarm is within 0.05 of 0
        or 1, and both the observed rate and the best expert there are within 0.005 of it.
        """
        if self.grid != "round" or self.alarm_sums is None:
            return False
        p, rate = means_of(self.alarm_sums)
        if not 0.0 < min(p, 1.0 - p) <= RARE_MEAN:
            return False
        moved = abs(float(self.best_curve(np.array([p]))[0]) - p)  # 0 for an expert of other rows
        return abs(rate - p) <= HALF_STEP and 0.0 < moved <= HALF_STEP

    @property
    def leader(self) -> str:
        """Description of the betting expert with most wealth, such as "overconfident, slope 0.78".

        It is "no rows yet" before any expert has bet.
        """
        return self._leader()[1] if self.n >= (EVERY if self.change else 1) else "no rows yet"

    def best_curve(self, p: FloatArray) -> FloatArray:
        """Return the probabilities that the expert with most wealth states, (m,).

        ``p`` (m,) are predictions of the event, between 0 and 1, ends excluded.
        """
        return self._leader()[2](p)

    def _leader(self) -> Leader:
        states = np.frombuffer(self.state).reshape(self.horizon, -1)
        best = states[int(mixture.scalar(states, mixture.NOW).argmax())]
        return leader(best, self.n_induced, self.mode)

    def _procedure(self) -> list[str]:
        rules = [f"run length {self.run_length}" if self.change else f"alpha={self.alpha:g}"]
        rules += ["rows of one time independent"] * self.independent
        return self._rules("Monitor(change=True)" if self.change else "Monitor()", *rules)

    def _tables(self) -> list[Columns]:
        names = ("n", "evidence", "pvalue", "alarm", "gain", "leader")
        return [attributes([self], dict(zip(names, names, strict=True)))]

    def _card(self) -> Card:
        p, y = self.means
        numbers = (
            (
                "e-value",
                format_evalue(self.log_evidence),
                f"alarm at {format_evalue(self.alarm_at)}",
            ),
            ("observations", str(self.n), f"alarm: {self.alarm_words}"),
            ("events", percent(y, p), f"predicted {percent(p, y)}"),
        )
        return self._evidence_card(
            numbers if self.n else numbers[:2], f"Best expert: {self.leader}."
        )

    def _frame_columns(self) -> dict[str, TypedColumn]:
        return self._history_columns("n", "log_evidence")

    def __repr__(self) -> str:
        return f"<{self.recipe}: e-value {format_evalue(self.log_evidence)}>"

    def __str__(self) -> str:
        return "\n".join([*summary_lines(self), *self._foot()])


# ------------------------------------------------------------------------------
# Rows as a monitor takes them: a single row, refusals, bets on several rows.


def sums_after(
    sums: tuple[float, ...], probs: FloatArray, labels: IntArray
) -> tuple[FloatArray, FloatArray]:
    """Return (addends, running sums), (n, 3) each, of 1, p and y over n rows.

    ``probs`` (n, K) and ``labels`` (n,) are the rows. p is the probability of the event (column 0),
    y whether label 0 occurred; for more than two classes they are of the most likely class.
    ``sums`` are the three sums before the rows. Running sums are equal to the bit however rows are
    split into updates.
    """
    rows = np.arange(len(probs))
    top = probs.argmax(axis=1) if probs.shape[1] > 2 else np.zeros_like(labels)
    addends = np.column_stack([np.ones(len(rows)), probs[rows, top], labels == top])
    return addends, np.vstack([sums, addends]).cumsum(axis=0)[1:]


def bet_dealt(
    rows: FloatArray, sizes: IntArray, dealt: IntArray, mode: int, states: FloatArray
) -> FloatArray:
    """Bet on rows in T groups; return the largest log wealth of h processes after each group, (T,).

    ``rows`` (n, K + 2) hold probabilities, label and weight, and ``sizes`` (T,) the numbers of rows
    of the groups. ``states`` (h, size) is the wealth of the experts of each process, updated in
    place, and ``dealt`` (T,) the index of the process that bets on each group. ``mode`` selects the
    experts: STATIC (early ones), CHANGE (late ones) or MONITOR (both).
    """
    labels, bet_of = rows[:, -2].astype(np.int64), np.repeat(np.arange(sizes.size), sizes)
    highest, every = np.full(sizes.size, -np.inf), np.arange(sizes.size)
    for j, state in enumerate(states):
        now, mine, places = mixture.scalar(states, mixture.NOW)[j], dealt[bet_of] == j, dealt == j
        some = rows[mine, :-2], labels[mine], rows[mine, -1]
        if (sizes == 1).all():
            path = mixture.bet(*some, mode, state)
        else:
            path = mixture.bet_at_times(*some, sizes[places], mode, state)
        last = np.searchsorted(np.flatnonzero(places), every, side="right")
        highest = np.maximum(highest, np.append(now, path)[last])
    return highest


def refuse_large(weights: FloatArray) -> None:
    """Raise InvalidPredictionsError for weights above 1, which would stake more than the wealth."""
    if weights.max() > 1.0:
        row = int(np.argmax(weights > 1.0))
        raise InvalidPredictionsError(
            f"weights: row {row} is {weights[row]:g}; a monitor stakes at most its "
            "wealth: divide the weights by the largest there can be"
        )


def refuse_times(times: FloatArray, n_classes: int, over: str | None) -> None:
    """Raise an error for rows whose time leaves no valid bet on them.

    ``times`` (m,) are the times of the new rows. ``over`` is a time, in words, on which the bet has
    been made already, None if there is none: InvalidPredictionsError. ``n_classes`` is the number
    of classes behind the lens: rows that share a time need two, and StatisticError is raised for
    more.
    """
    if over is not None:
        raise InvalidPredictionsError(
            f"time: row 0 is of {over}, on which the bet is made, one for all rows of a time, as "
            "they may depend on each other: give them at once, or say independent=True "
            "(--independent) before the first row"
        )
    if n_classes > 2 and (times[1:] == times[:-1]).any():
        raise StatisticError(
            "rows of one time may depend on each other: they are one bet, which needs a lens of "
            "two classes, such as TopK(1): choose one, or say independent=True (--independent)",
            [Reading({"independent": True})],
        )


def one_row(probs: object, labels: object) -> FloatArray | None:
    """Return a single row (p, 1 − p, label, weight), shape (1, 4); None for any other input.

    ``probs`` is a float p in [0, 1] and ``labels`` 0 or 1, or both are lists or arrays of one such
    number. The weight is 1.
    """
    if isinstance(probs, (list, np.ndarray)) and isinstance(labels, (list, np.ndarray)):
        if len(probs) != 1 or len(labels) != 1:
            return None
        probs, labels = probs[0], labels[0]
    if not isinstance(probs, float) or not isinstance(labels, (int, np.integer, np.bool_)):
        return None
    if not (0.0 <= probs <= 1.0 and 0 <= labels <= 1):
        return None
    return np.array([[probs, 1.0 - probs, labels, 1.0]])


# ------------------------------------------------------------------------------
# What the sums of many rows do to the wealth of every expert.


#: What is lost beside the largest wealth, and where shares and pools are cut off, in logs.
WEALTH_LOST, POOL_CUT = 1e-280, 575.0


def bet_sums(tally: AnyTally, mode: int, state: FloatArray) -> None:
    """Bet on all rows of a tally at once; the ``state`` of two classes is updated in place.

    A tally has sums over C fine bins in place of rows; ``state`` is the wealth of the experts, see
    :func:`caltest.nulls.bets.start`. ``mode`` selects them: STATIC (early ones), CHANGE (late ones)
    or MONITOR (both). An expert says q where the prediction is p. In each bin it shifts the
    log-odds by θ = logit q − logit p, taken at the bin's centre, so that the rows gain the factor
    exp(θ Σ y − Σ log(1 − p + p e^θ)). Its mean is 1 under calibration for any θ that is a function
    of the bin. The second sum is taken over the Gauss quadrature nodes of the bin, which never
    makes it smaller, because the fourth derivative of the logarithm in p is negative (the
    quadrature error), and so is the second, where one node stands for several rows. StatisticError
    for a tally of weighted rows. O(C) for each of some 200 experts.
    """
    micro = TallyProblem.of(tally)
    if micro.tally.strata.tolist() != [1.0]:
        raise StatisticError("a monitor does not take tallies of weighted rows: pass the rows")
    s, flat = state[:SCALARS], state[SCALARS : mixture.LATE_AT]
    late = state[mixture.LATE_AT : mixture.TREE_AT]
    s[mixture.IMPOSSIBLE] += tally.impossible.size
    earned, local = _earned(micro)
    s[mixture.FLAT], s[mixture.FLAT_SCALE] = _multiplied(flat, earned, s[mixture.FLAT_SCALE])
    tree = state[mixture.TREE_AT : mixture.STOP_AT].reshape(2 * LEAVES, 11)
    from scipy.special import logsumexp

    with np.errstate(divide="ignore"):
        joint = np.log(tree) + local
    at_node = logsumexp(joint, axis=1)
    tree[:] = np.exp(joint - at_node[:, None])
    tree[tree < WEALTH_LOST] = 0.0
    stop, subtree = state[mixture.STOP_AT :], at_node.copy()
    for i in range(LEAVES - 1, 0, -1):
        below, stays = subtree[2 * i] + subtree[2 * i + 1], np.log(stop[i])
        subtree[i] = np.logaddexp(stays + at_node[i], below) - np.log1p(stop[i])
        stop[i] = np.exp(np.clip(stays + at_node[i] - below, -POOL_CUT, POOL_CUT))
    s[mixture.TREE] += subtree[1]
    if s[mixture.LATE] > 0.0:
        each = np.append(earned, local[2:LEAVES, 1:])
        s[mixture.LATE], s[mixture.LATE_SCALE] = _multiplied(late, each, s[mixture.LATE_SCALE])
        if s[mixture.LATE_SCALE] < -POOL_CUT:
            late[:], s[mixture.LATE], s[mixture.LATE_SCALE] = 0.0, 0.0, 0.0
        s[mixture.LOCAL] = late[mixture.N_FLAT :].sum()
    mixture.settled(s, mode, flat, late, mixture.LATE_PRIOR, float(tally.n))
    s[mixture.NOW] = mixture.wealth(s, mode, mixture.TREE_SHARE, 1.0)


def _multiplied(pool: FloatArray, earned: FloatArray, scale: float) -> tuple[float, float]:
    """Multiply experts' wealth in place by factors given as logarithms; return (sum, log scale).

    ``pool`` is the wealth of the experts, in units of exp(``scale``), and ``earned`` their log
    factors, same shape. The largest entry becomes 1: its logarithm is added to the scale, so that
    the pool does not overflow. The sum is that over the pool.
    """
    with np.errstate(divide="ignore"):
        logs = np.log(pool) + earned
    top = float(logs.max())
    pool[:] = np.exp(logs - top)
    pool[pool < WEALTH_LOST] = 0.0
    return float(pool.sum()), scale + top


def _earned(micro: TallyProblem) -> tuple[FloatArray, FloatArray]:
    """Return the log factors that a tally gives the experts, as arrays (F,) and (N, 11).

    The first is for F experts who recalibrate all predictions, the second for 11 shifts of the
    log-odds at each of N nodes of a tree over the range of predictions. ``micro`` holds the sums
    over the fine bins of the tally.
    """
    open_cells = np.flatnonzero((micro.centre > 0.0) & (micro.rest > 0.0))
    p, rest = micro.centre[open_cells], micro.rest[open_cells]
    count, events = micro.count[open_cells], micro.labels[open_cells]
    half, atoms = micro.half[open_cells], micro.atoms.of_cells(open_cells)
    wide = half >= np.minimum(p, rest)  # of positions beside 0 and 1 only the mean is sure
    low, high = np.where(wide, micro.probs[open_cells].T, 0.0)
    times = np.where(wide, [count, np.zeros_like(count)], atoms.times)
    low, high = np.where(wide, low, atoms.p), np.where(wide, high, atoms.rest)
    rounded = np.where(wide | (count == 1), 0.0, 4.0 / POSITIONS * count * half**2)
    logit = np.log(p) - np.log(rest)
    z = np.log(np.maximum(p, LOG_ODDS_CLIP)) - np.log(np.maximum(rest, LOG_ODDS_CLIP))

    def factor(stated: FloatArray) -> FloatArray:
        tilt = stated - logit
        up, size = tilt >= 0.0, np.abs(tilt)
        more = np.expm1(size)
        lost = (times * np.log1p(np.where(up, low, high) * more)).sum(axis=0)
        reach = more / (1.0 + np.where(up, p, rest) * more)
        return size * np.where(up, events, count - events) - lost - rounded * reach**2

    flat = [factor(b * z + a).sum() for b, a in mixture.LINES]
    for noise in mixture.NOISE:
        q, other = ((1.0 - noise) * x + 0.5 * noise for x in (p, rest))
        flat.append(factor(np.log(q) - np.log(other)).sum())
    leaf = np.minimum((LEAVES / (1.0 + np.exp(-z / 2.0))).astype(np.int64), LEAVES - 1)
    local = np.zeros((2 * LEAVES, 11))
    for k, shift in enumerate(mixture.EXPERT_SHIFTS[1:], start=1):
        local[LEAVES:, k] = np.bincount(leaf, factor(z + shift), minlength=LEAVES)
    for i in range(LEAVES - 1, 0, -1):
        local[i] = local[2 * i] + local[2 * i + 1]
    return np.array(flat), local


# ------------------------------------------------------------------------------
# When a change began: the likeliest row, from sums of log-likelihood ratios.


#: Slopes and shifts of the log-odds that a change may have, and their walks before the first row.
ONSET_SLOPES = np.array([1.0] * 6 + [0.5, 0.7, 1.4, 2.0])


ONSET_SHIFTS = np.array([-1.0, -0.5, -0.25, 0.25, 0.5, 1.0] + [0.0] * 4)


BEGIN = np.outer([0.0, 0.0, 1.0, np.nan], np.ones(ONSET_SLOPES.size))


#: Rows that are looked at together.
ROWS_A_LOOK = 2**16


def of_change(
    before: Monitor, after: Monitor, p_and_y: FloatArray, weights: FloatArray, times: Times
) -> dict[str, Any]:
    """Return new values, by name, of the monitor's fields on the most likely start of a change.

    ``after`` is ``before`` moved on by m rows: ``p_and_y`` (m, 2) holds probability and outcome of
    the event, ``weights`` (m,) the rows' weights, and ``times`` (m,) their times, None without.
    Until the alarm the only field is ``walks``: for each recalibration line the sum of
    log-likelihood ratios against the predictions, and its lowest point, in bytes. A change to a
    line began most likely after the lowest point of its walk, however rows are split into updates.
    At the alarm ``onset`` (row number, from 1) and ``onset_time`` are set, and ``walks`` emptied.
    The result is {} without ``change=True``, after the alarm, and for a monitor begun from tallies.
    """
    walks, end = before.walks, None if after.alarm is None else after.alarm - before.n
    if not before.change or before.alarm is not None or (before.n and not walks):  # after tallies
        return {}
    rows = np.column_stack([p_and_y, weights])[:end]
    total, low, start, began = np.frombuffer(walks).reshape(4, -1).copy() if walks else BEGIN.copy()
    for a in range(0, len(rows), ROWS_A_LOOK):
        p, y, weight = rows[a : a + ROWS_A_LOOK].T[:, :, None]
        side, z = (
            1.0 - 2.0 * y,
            np.log(np.maximum(p, LOG_ODDS_CLIP)) - np.log(np.maximum(1.0 - p, LOG_ODDS_CLIP)),
        )
        gain = np.logaddexp(0.0, side * z) - np.logaddexp(
            0.0, side * (ONSET_SLOPES * z + ONSET_SHIFTS)
        )
        path = np.vstack([total, weight * gain]).cumsum(axis=0)[1:]
        first, place, total = before.n + a + 1, path.argmin(axis=0), path[-1]
        began = np.where(start == first, np.nan if times is None else times[a], began)
        lower = path.min(axis=0) < low
        low, start = np.minimum(low, path.min(axis=0)), np.where(lower, first + place + 1, start)
        if times is not None:  # the time of a row still to come is corrected when it comes
            began = np.where(lower, times[np.minimum(a + place + 1, len(times) - 1)], began)
    if after.alarm is None:
        return {"walks": np.array([total, low, start, began]).tobytes()}
    best = int(np.argmax(total - low))
    when = None if times is None else float(began[best])
    return {"walks": b"", "onset": int(start[best]), "onset_time": when}


# ------------------------------------------------------------------------------
# What a monitor has seen, in words.


#: How rows of one time are bet on, and why.
ONE_BET = "one bet on each, as its rows may depend on each other"


#: What the best of such bets says: stakes on a mean may be larger than the error.
DIRECTION_HOLDS = "; its direction holds, not its size"


#: What rounding can do to rare events, where every prediction is a multiple of 0.01.
IN_ROUNDING = (
    "  Note: all predictions are multiples of 0.01, and the means at the alarm differ by no more\n"
    "  than rounding can move them (0.005): monitor unrounded predictions before you act on it."
)


#: What an alarm without ``change=True`` does not say.
ASK_SINCE_WHEN = (
    "  Note: the alarm concerns all rows so far; change=True (--change) estimates when it began."
)


def means_of(
    sums: tuple[float, ...], before: tuple[float, ...] = (0.0, 0.0, 0.0)
) -> tuple[float, float]:
    """Return (mean prediction, event rate) of the rows since an earlier time.

    ``sums`` are (number of rows, Σ p, Σ y) now, and ``before`` those at the earlier time.
    """
    n, predicted, observed = np.subtract(sums, before).tolist()
    return (predicted / n, observed / n) if n else (nan, nan)


def in_words(sums: tuple[float, ...], before: tuple[float, ...] = (0.0, 0.0, 0.0)) -> str:
    """Return "predicted x, observed y", the means of the rows since an earlier time.

    ``sums`` are (number of rows, Σ p, Σ y) now, and ``before`` those at the earlier time.
    """
    if sums[0] <= before[0]:
        return "no rows yet"
    mean, rate = means_of(sums, before)
    return f"predicted {percent(mean, rate)}, observed {percent(rate, mean)}"


def after_alarm(words: str, sums: tuple[float, ...], before: tuple[float, ...]) -> str:
    """Return the printed line on the rows after the alarm, with the direction if it is significant.

    Significant is two standard errors. ``words`` are the monitor's ``alarm_words``, such as "at row
    120". ``sums`` are (number of rows, Σ p, Σ y) now, and ``before`` those at the alarm: at least
    one row has come since.
    """
    mean, rate = means_of(sums, before)
    noise = sqrt(mean * (1.0 - mean) / (sums[0] - before[0]))
    side = f": too {'high' if mean > rate else 'low'}" * (abs(mean - rate) > 2.0 * noise)
    when = words.removeprefix("at ").rpartition(", ")[2]
    return f"  since       the alarm, {when}: {in_words(sums, before)}{side}"


def of_impossible(count: int, settled: bool) -> str:
    """Return the printed line on outcomes that had probability 0; ``count`` is their number.

    ``settled`` says that they are counted as evidence; otherwise they were not bet on, as their
    probability may have been rounded. The line says how to begin anew.
    """
    words = "which settles it, unless probabilities were rounded to 0: then give them unrounded, "
    words += "or begin anew with rounded=True (--rounded)"
    kept = "not bet on, as it may be rounded; if 0 was meant to be never, begin anew with "
    words = spelt(words if settled else f"{kept}rounded=False (--not-rounded)")
    return f"  {several(count, 'outcome')} had probability 0, {words}."


def summary_lines(monitor: Monitor) -> list[str]:
    """Return the lines of a monitor's printed summary, a list of plain text.

    They say rows, evidence, alarm, means and the best-supported alternative; the last lines of the
    print, notes and options, are left out.
    """
    question = "has it become miscalibrated?" if monitor.change else "is it miscalibrated?"
    value, rings = format_evalue(monitor.log_evidence), format_evalue(monitor.alarm_at)
    p, of_last = monitor.pvalue, f" (last {monitor.sums[0]:.0f} rows)"  # an older state had no sums
    lines = [
        f"Monitor of calibration: {question}",
        f"  rows        {monitor.n}"
        + f" at {monitor.steps} times, {ONE_BET}" * monitor.shared_times,
        f"  e-value     {value}  (evidence against calibration; 1 at the start)",
        f"  alarm       {monitor.alarm_words}  (at an e-value of {rings})",
    ]
    lines += [] if p is None else [f"  p-value     {format_p(p)}  (valid at any time)"]
    lines.append(
        f"  means       {in_words(monitor.sums)}" + of_last * (monitor.sums[0] < monitor.n)
    )
    if monitor.onset is not None:
        began = monitor.row_words(monitor.onset, monitor.onset_time)
        lines.append(f"  began       likely {began}  (estimate; the alarm is later)")
    if monitor.alarm_sums is not None and monitor.sums[0] > monitor.alarm_sums[0]:
        lines.append(after_alarm(monitor.alarm_words, monitor.sums, monitor.alarm_sums))
    side = DIRECTION_HOLDS * monitor.shared_times
    lines.append(f"  best-supported alternative: {monitor.leader}{side}")
    if abs(monitor.log_evidence) < 600 and not monitor.shared_times:
        lines.append(
            f"  recalibration would gain {monitor.gain:.2g} nats per observation (log score)"
        )
    if monitor.within_rounding:
        lines.append(IN_ROUNDING)
    if monitor.impossible:
        lines.append(of_impossible(monitor.impossible, monitor.log_evidence == np.inf))
    lines += [spelt(ASK_SINCE_WHEN)] * (monitor.alarm is not None and not monitor.change)
    return lines
