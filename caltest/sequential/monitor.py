"""Is a classifier calibrated, asked again with every row?"""

from __future__ import annotations

from dataclasses import dataclass
from math import exp, log
from typing import ClassVar, Self, Unpack

import numpy as np

from caltest._base import checks
from caltest._base.arrays import FloatArray, IntArray, Values
from caltest.bets import kernels, mixture
from caltest.bets.kernels import CHANGE, EVERY, MONITOR, REFUTED
from caltest.bets.mixture import Leader, leader
from caltest.errors import StatisticError
from caltest.inference.admission import admitted, admitted_tally, tallies_of
from caltest.inference.series import neighbours
from caltest.lens_choice import as_lens
from caltest.lenses import LensLike, OneVsRest
from caltest.predictions import RowFacts
from caltest.problem import RowProblem, TallyProblem
from caltest.sequential.onset import of_change
from caltest.sequential.rows import bet_dealt, one_row, refuse_large, refuse_times, sums_after
from caltest.sequential.sums import bet_sums
from caltest.sequential.watch import Times, Watch, format_evalue, format_time, odds, steps_of
from caltest.sequential.words import means_of, report
from caltest.tally import AnyTally, Source


@dataclass(frozen=True, kw_only=True, repr=False)
class Monitor(Watch):
    """Evidence against calibration that may be looked at, and acted on, after every row.

    A mixture of fixed experts bets on every outcome at the odds of the predictions, M_t =
    Π_s Σ_j π_j(s) q_j(y_s) / p_s(y_s): shifts, slopes, label noise, and local shifts, each from
    the start or from later on. No bet wins in the long run against a calibrated model: whatever the
    rows depend on in the past, P(sup_t M_t ≥ 1/α) ≤ α (Ville 1939). Nothing is fitted, and any
    splitting of the rows gives the same evidence.

    A :class:`Tally`, of a day perhaps, is a batch whose order does not matter: experts tilt all
    predictions of a micro-cell alike, and what sums leave open never adds to the evidence. Tallies
    and rows may follow each other. A monitor is a value: :meth:`update` returns a new one. Its
    ``alarm`` is the row, from 1, at which it first rang, ``impossible`` counts outcomes of
    probability 0, ``time`` and ``alarm_time`` are those of the last row and of the alarm (dates are
    seconds since 1970), ``times`` those of ``history``. ``sums`` are rows, Σ p and Σ y of the event
    (of the likeliest class, where the lens keeps more than two), ``alarm_sums`` those at the alarm.
    ``onset`` and ``onset_time`` estimate where a change began, once it rings; None after tallies.

    Parameters
    ----------
    lens : callable, optional
        Which aspect is asked about; by default ``OneVsRest(1)`` for two classes, else ``TopK(1)``.
    alpha : float, default 0.05
        The chance that a calibrated model ever rings the alarm.
    change : bool, default False
        Ask whether the model *has become* miscalibrated, not whether it ever was. Evidence is then
        the sum of M over all starts at every 32nd row (the e-detector of Shin, Ramdas & Rinaldo
        2022), which rings at ``run_length`` / 32; ``alpha`` plays no part, nor is there a p-value.
    run_length : int, default 100_000
        Rows to a false alarm with ``change=True``, on average, at least.
    horizon : int, default 1
        How many rows, or with ``time`` how many times, ahead the forecasts are made: outcomes are
        not known before the next forecasts, and a plain product is wrong. Rows are dealt to
        that many processes, whose largest, divided by their number, is the evidence.
    rounded : bool, default False
        Whether a probability of 0 may be rounded: no bet is made on a row that has one.
    independent : bool, default False
        Rows of one ``time`` are independent given the past, each a bet of its own. Otherwise they
        are one bet (``shared_times``): an expert's factor is the mean of his factors of the rows,
        of mean 1 however they depend (Vovk & Wang, Annals of Statistics 49, 2021).

    Notes
    -----
    StatisticError for parameters out of range, or a lens that does not fit the data;
    InvalidPredictionsError when rows go back in time, or weigh more than 1. 0.6 µs a row of two
    classes, about 0.2 K µs of K, and 10 µs for an update with one row (30 with ``change``). JSON of
    20 KB, and 0.6 KB more a class; of 14 KB more for each further unit of ``horizon``. Shafer, JRSS
    A 184, 2021; Ramdas et al., Statistical Science 38, 2023; Willems, Shtarkov & Tjalkens (the tree
    of local shifts), IEEE Trans. Inf. Theory 41, 1995.

    Examples
    --------
    >>> monitor = Monitor(alpha=0.01).update([0.9, 0.8, 0.95], [0, 1, 0])
    >>> monitor = monitor.update(0.3, 1)
    >>> monitor.n, round(monitor.evidence, 6), monitor.alarm
    (4, 1.526965, None)
    """

    change: bool = False
    run_length: int = 100_000
    rounded: bool = False
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
    columns: ClassVar[tuple[str, ...]] = ("n", "evidence", "pvalue", "alarm", "gain", "leader")

    def __post_init__(self) -> None:
        super().__post_init__()
        checks.whole("run_length", self.run_length, EVERY)

    @property
    def width(self) -> int:
        """Rows and ``log_evidence``."""
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
        if tallies := tallies_of(probs):
            tally = admitted_tally("Monitor", tallies[0], labels, facts, self.lens)
            return self._after_tally(tally, time)
        # Checks of one row cost more than its bet; a stream of plain rows goes without them.
        if time is None and not facts and self._is_plain:
            row = one_row(probs, labels)
            if row is not None:
                return self._after_one(row)
        if isinstance(probs, float):
            probs, labels = [probs], [labels]
        data = admitted("Monitor", probs, labels, facts, takes=("weights", "order"), stakes=True)
        lens = as_lens(self.lens, data)
        induced = RowProblem.of(lens(data)).predictions
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
        return after._moved(neighbours=doubt, notes=data.notes)

    def _begun(self, data: Source, lens: LensLike, n_induced: int, time: object) -> Self:
        """Return the monitor with a state, of the classes of the data."""
        new = self._moved(**self._same_classes(data, time))
        if self.n:
            return new
        state = np.tile(mixture.start(n_induced), self.horizon).tobytes()
        return new._moved(lens=lens, state=state, n_induced=n_induced)

    def _after_tally(self, tally: AnyTally, time: object) -> Self:
        """Return the monitor after the rows of a tally, which are one step."""
        if self.rounded:
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
        return moved._moved(notes=tally.notes, walks=b"")

    def _after(self, rows: FloatArray, steps: IntArray, times: Times) -> Self:
        """Return the monitor after rows of probabilities, label and weight."""
        state = np.frombuffer(self.state).copy()
        labels, places = rows[:, -2].astype(np.int64), np.arange(len(rows))
        impossible = int((rows[places, labels] == 0.0).sum())
        addends, sums = sums_after(self.sums, rows[:, :-2], labels)
        alone = times is None or self.independent
        first = places if alone else np.flatnonzero(np.diff(steps, prepend=-1))
        ends = np.append(first[1:], len(rows)) - 1
        if self.rounded:
            certain = (rows[:, :-2] == 0.0).any(axis=1)
            rows[certain, :-2], rows[certain, -1] = 1.0 / self.n_induced, 0.0
        states = state.reshape(self.horizon, -1)
        path = bet_dealt(rows, ends - first + 1, steps[ends] % self.horizon, self.mode, states)
        path -= 0.0 if self.change else log(self.horizon)
        path = np.column_stack([self.n + 1.0 + ends, path])
        when = None if times is None else times[ends]
        moved = self._moved_on(path, state, impossible, sums[ends], int(steps[-1]) + 1, when)
        began = of_change(self, moved, addends[:, 1:], rows[:, -1], times)
        return moved._moved(**began, shared_times=self.shared_times or first.size < len(rows))

    def _after_one(self, row: FloatArray) -> Self:
        """Return the monitor after one plain row, which costs less."""
        state, path = np.frombuffer(self.state).copy(), np.array([[self.n + 1.0, 0.0]])
        kernels.bet_two(row, self.mode, state, path[0, 1:])
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
        """Move on, by the number of rows, the evidence and the sums after each of them."""
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
        """Whether a row may be two numbers."""
        plain = self.n > 0 and self.n_classes == 2 and self.horizon == 1 and self.time is None
        return plain and not self.rounded and isinstance(self.lens, OneVsRest) and self.lens.c == 1

    @property
    def mode(self) -> int:
        """What the wealth is made of."""
        return CHANGE if self.change else MONITOR

    @property
    def alarm_at(self) -> float:
        """The ``log_evidence`` at which the alarm rings."""
        if not self.change:
            return -log(self.alpha)
        # Overlapping processes have no common filtration: P(alarm by t) ≤ t / (2 run_length).
        return log(self.run_length / EVERY * (1 if self.horizon == 1 else 2))

    @property
    def log_evidence(self) -> float:
        """The logarithm of the evidence; 0 before the first row."""
        if self.n == 0:
            return 0.0
        now = self._of_all(np.frombuffer(self.state).reshape(self.horizon, -1))
        return np.inf if now >= REFUTED else now

    def _of_all(self, states: FloatArray) -> float:
        """Return the log evidence of all processes."""
        now = float(mixture.scalar(states, kernels.NOW).max())
        return now - (0.0 if self.change else log(self.horizon))

    @property
    def evidence(self) -> float:
        """M_t, what a gambler has made of 1; infinite once an outcome of probability 0 occurred."""
        return odds(self.log_evidence)

    @property
    def pvalue(self) -> float | None:
        """1 / max M_s, valid at any time; None with ``change=True``."""
        return None if self.change else exp(-max(self.highest, 0.0))

    @property
    def history(self) -> FloatArray:
        """Rows and ``log_evidence`` after them, (m, 2): at most 512 points, and the last."""
        points = self._points()
        if self.n % self.every and not (len(points) and points[-1, 0] == self.n):
            points = np.vstack([points, [self.n, self.log_evidence]])
        return np.where(points >= REFUTED, np.inf, points)

    @property
    def gain(self) -> float:
        """``log_evidence`` a row, in nats: what recalibration has been worth."""
        return self.log_evidence / max(self.n, 1)

    @property
    def means(self) -> tuple[float, float]:
        """Mean prediction and frequency of the event, of the rows in ``sums``; NaN without any."""
        return means_of(self.sums)

    @property
    def means_since_alarm(self) -> tuple[float, float]:
        """The same of the rows after the alarm; NaN without any."""
        return means_of(self.sums, self.alarm_sums or self.sums)

    @property
    def leader(self) -> str:
        """What the best expert says, such as "overconfident, slope 0.78 about 50 %"."""
        return self._leader()[1] if self.n >= (EVERY if self.change else 1) else "no rows yet"

    def best_curve(self, p: FloatArray) -> FloatArray:
        """Return what that expert says of predictions p of the event, 0 < p < 1."""
        return self._leader()[2](p)

    def _leader(self) -> Leader:
        states = np.frombuffer(self.state).reshape(self.horizon, -1)
        best = states[int(mixture.scalar(states, kernels.NOW).argmax())]
        return leader(best, self.n_induced, self.mode)

    def _procedure(self) -> list[str]:
        rules = [f"run length {self.run_length}" if self.change else f"alpha={self.alpha:g}"]
        rules += ["rows of one time independent"] * self.independent
        return self._rules("Monitor(change=True)" if self.change else "Monitor()", *rules)

    def __repr__(self) -> str:
        return f"<{self.recipe}: e-value {format_evalue(self.log_evidence)}>"

    def __str__(self) -> str:
        return "\n".join([*report(self), *self._foot()])
