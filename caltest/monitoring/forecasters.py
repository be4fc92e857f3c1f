"""Sequential comparison of two forecasters: :class:`ComparisonMonitor`.

It has one e-value for each direction and a confidence sequence for the mean difference of the
scores; :func:`log_mixture` and :func:`radius` are the boundaries of that sequence.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from math import log
from typing import ClassVar, Literal, Self, Unpack

import numpy as np

from caltest._base import arrays as checks
from caltest._base.arrays import FloatArray, IntArray, Values
from caltest._base.written import name_of
from caltest.data import RowFacts
from caltest.data.lenses import Canonical, OneVsRest, Partition, as_lens
from caltest.errors import InvalidPredictionsError, StatisticError
from caltest.inference._input import neighbours, paired_rows, take_rows
from caltest.monitoring.watch import Times, Watch, format_evalue, odds, steps_of
from caltest.results import format_value
from caltest.results.rendering import Card, Columns, TypedColumn, attributes

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
        """Length of a history point: rows, two log e-values, the sum, and squares by process."""
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
        new = self._moved(lens=lens, notes=(*a.notes, *matched.values()), neighbours=neighbours(a))
        new = new._moved(**self._same_classes(a, time))
        return new._after(rows, steps, times)

    def _scored(self, p: FloatArray, q: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return (on, off, ν) of forecasts p and q of the event, (n,) each.

        ``on`` and ``off`` are the score differences a − b with and without the event, and ν the
        probability at which both expect the same score.
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
        """Return the monitor after rows (n, 3): both log gains and the difference of the scores."""
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
        """Sums of each of h processes, (horizon, 5).

        They are both log e-values, the score differences, their squares, and the number of rows.
        """
        return np.frombuffer(self.state or bytes(40 * self.horizon)).reshape(self.horizon, 5)

    @property
    def alarm_at(self) -> float:
        """Log evidence at which the alarm is raised."""
        return log(2.0 / self.alpha)

    @property
    def evidence(self) -> tuple[float, float]:
        """E-values that a is better, and that b is better."""
        return odds(self.logs[0]), odds(self.logs[1])

    @property
    def logs(self) -> tuple[float, float]:
        """Logarithms of both e-values, for a and for b being better; 0 before the first row."""
        first, second = self._processes[:, :2].max(axis=0) - (log(self.horizon) if self.n else 0.0)
        return float(first), float(second)

    @property
    def total(self) -> float:
        """Sum over the rows of score a − score b; negative if a is better."""
        return float(self._processes[:, 2].sum())

    @property
    def difference(self) -> float:
        """Mean of score a minus score b so far."""
        return self.total / max(self.n, 1)

    @property
    def low(self) -> float:
        """Lower limit for the mean difference, at all times with probability 1 − ``alpha``."""
        return self._limits(self.n, self.total, self._processes[:, 3])[0]

    @property
    def high(self) -> float:
        """Upper limit for the mean difference, at all times with probability 1 − ``alpha``."""
        return self._limits(self.n, self.total, self._processes[:, 3])[1]

    def _limits(self, n: float, total: float, squares: FloatArray) -> tuple[float, float]:
        if not n:
            return -np.inf, np.inf
        most, alpha = float(self.bound or 0.0), self.alpha / (2.0 * self.horizon)
        reach = most * sum(radius(max(v / most**2, 1.0), alpha) for v in squares.tolist())
        return (total - reach) / n, (total + reach) / n

    @property
    def history(self) -> FloatArray:
        """Rows, both log evidences, low and high, shape (m, 5); at most 512 points."""
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
    """Return the sums of a process before and after each of its rows, shape (m + 1, 5).

    ``process`` (5,) are the sums so far, ``rows`` (m, 3) both log gains and the score difference.
    """
    after = np.cumsum(np.vstack([process[[0, 1, 2, 4]], np.insert(rows, 3, 1.0, axis=1)]), axis=0)
    before = after[:-1, 2] / np.maximum(after[:-1, 3], 1.0)
    squares = np.cumsum([process[3], *(rows[:, 2] - before) ** 2])
    return np.insert(after, 3, squares, axis=1)


def log_mixture(s: float, v: float, rho: float, c: float) -> float:
    """Return the log of the gamma-exponential mixture of Howard et al. (2021), Proposition 9.

    ``s`` is the sum of the process and ``v`` its intrinsic time; ``rho`` > 0 decides where the
    boundary is narrow, ``c`` is the scale of the sub-exponential bound.
    """
    from scipy.special import gammainc, gammaln

    a, b, x = rho / c**2, (v + rho) / c**2, (c * s + v + rho) / c**2
    start = a * np.log(a) - gammaln(a) - np.log(gammainc(a, a))
    return float(start + gammaln(b) + np.log(gammainc(b, x)) - b * np.log(x) + (c * s + v) / c**2)


@cache
def radius(v: float, alpha: float, v_opt: float = V_OPT, c: float = 2.0) -> float:
    """Return the boundary that a process exceeds, at any time, with probability at most ``alpha``.

    ``v`` is its intrinsic time, ``v_opt`` the time at which the boundary is about narrowest, ``c``
    the scale of the sub-exponential bound. Solved to 1e-10 by root finding.
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
