"""The result of a test of revisions: is a forecast that is updated over time a martingale?"""

from __future__ import annotations

from dataclasses import dataclass
from math import exp, log
from typing import ClassVar

from caltest._base.arrays import FloatArray
from caltest.results.base import Result
from caltest.results.notebook import Card, Tone
from caltest.results.rendering import Columns, attributes, format_p
from caltest.results.sketches import line

#: The directions in which revisions can be predicted, each with its explanation.
REACTIONS = {
    "too slow": "revisions continue in the direction of the last one (underreaction)",
    "too fast": "revisions reverse the last one (overreaction)",
    "too low": "forecasts drift upwards (pessimistic)",
    "too high": "forecasts drift downwards (optimistic)",
    "too much movement": "forecasts return towards 1/2 (too extreme)",
    "too little movement": "forecasts go on from 1/2 towards 0 and 1 (too cautious)",
}


@dataclass(frozen=True, eq=False)
class RevisionTest(Result):
    """Result of :meth:`caltest.Revisions.test`.

    Attributes
    ----------
    n_questions, n_revisions, n_times, n_groups : int
        Numbers of questions, of changes of a forecast (outcomes included), of distinct times, and
        of groups that were taken to be independent.
    log_evidence, largest_log_evidence : float
        Natural logarithms of the e-value after the last time, and of the largest e-value at any
        time.
    alpha : float
        Level of the alarm: it is raised once the e-value has reached 1/alpha.
    alarm_time : float or None
        First time of the alarm, in seconds since 1970 for dates; None without an alarm.
    dates : bool
        Whether times are dates.
    directions, shares : tuple of str, tuple of float
        The six directions in which the bets speculate and their shares of the final e-value, in
        [0, 1]; they sum to 1.
    effect, effect_low, effect_high : float
        How far a revision goes towards where it should have gone, 1 if calibrated, less than 1 for
        underreaction, with a jackknife interval at ``level``; NaN where it cannot be estimated.
    level : float
        Level of that interval.
    movement, resolved : float
        Σ (p_t − p_{t−1})² over all revisions, and Σ [p_0 (1 − p_0) − p_T (1 − p_T)] over questions;
        their expectations are equal if the forecasts are martingales.
    movement_log_evidence : float
        Logarithm of the e-value of the excess movement, valid at the end of the record.
    least : float
        Smallest total move of a forecast at which a bet on it is settled.
    history : ndarray of shape (m, 2)
        Times and log e-values, at most 512 points.
    n, n_classes, n_resamples, seed, ended, notes, version
        As for every :class:`Result`; ``n`` counts forecasts.
    """

    n_questions: int
    n_revisions: int
    n_times: int
    n_groups: int
    log_evidence: float
    largest_log_evidence: float
    alpha: float
    alarm_time: float | None
    dates: bool
    directions: tuple[str, ...]
    shares: tuple[float, ...]
    effect: float
    effect_low: float
    effect_high: float
    level: float
    movement: float
    resolved: float
    movement_log_evidence: float
    least: float
    history: FloatArray
    title: ClassVar[str] = "Test of revisions"
    number: ClassVar[str] = "log_evidence"
    plotter: ClassVar[str] = "lines.revisions"

    @property
    def evidence(self) -> float:
        """E-value after the last time; infinite beyond the range of floats."""
        return exp(self.log_evidence) if self.log_evidence < 700.0 else float("inf")

    @property
    def pvalue(self) -> float:
        """p-value min(1, 1 / largest e-value), valid whenever the data are looked at."""
        return min(1.0, exp(-min(self.largest_log_evidence, 700.0)))

    @property
    def alarm(self) -> bool:
        """True if the e-value has reached 1/alpha at any time."""
        return self.largest_log_evidence >= -log(self.alpha)

    @property
    def direction(self) -> str:
        """Direction with the largest share of the e-value, a key of ``REACTIONS``."""
        return max(zip(self.shares, self.directions, strict=True))[1]

    def _procedure(self) -> list[str]:
        groups = f", {self.n_groups} groups" if self.n_groups != self.n_questions else ""
        return ["Revisions", f"least={self.least:g}", f"{self.n_questions} questions{groups}"]

    def _tables(self) -> list[Columns]:
        shown = {
            "questions": "n_questions",
            "revisions": "n_revisions",
            "e-value": "shown_evidence",
            "largest": "shown_largest",
            "p": "shown_p",
            "revision goes": "shown_effect",
        }
        return [attributes([self], shown)]

    def _card(self) -> Card:
        numbers = (
            ("largest e-value", self.shown_largest, f"alarm at {1.0 / self.alpha:g}"),
            ("revision goes", self.shown_effect, "of the way; 100 % if calibrated"),
            ("questions", str(self.n_questions), f"{self.n_revisions} revisions"),
        )
        times, evidence = self.history.reshape(-1, 2).T
        axes = ("Time", "log evidence; dashed: alarm")
        drawing = line(times, evidence, axes, level=-log(self.alpha)) if len(times) > 1 else ""
        finding, *remarks = self._in_words()
        tone: Tone = "bad" if self.alarm else "plain"
        verdict = "alarm" if self.alarm else "no alarm"
        return Card(verdict, tone, finding, numbers, tuple(remarks), drawing)

    @property
    def shown_evidence(self) -> str:
        """E-value as printed."""
        return _written(self.log_evidence)

    @property
    def shown_largest(self) -> str:
        """Largest e-value as printed."""
        return _written(self.largest_log_evidence)

    @property
    def shown_p(self) -> str:
        """p-value as printed."""
        return format_p(self.pvalue)

    @property
    def shown_effect(self) -> str:
        """Effect in percent with its interval, as printed."""
        if self.effect != self.effect:
            return "not estimable"
        if self.effect_low != self.effect_low:
            return f"{100 * self.effect:.0f} %"
        low, high = 100 * self.effect_low, 100 * self.effect_high
        return f"{100 * self.effect:.0f} % ({low:.0f} to {high:.0f} %)"

    def _in_words(self) -> list[str]:
        e, at = self.shown_largest, f"the alarm level 1/alpha = {1.0 / self.alpha:g}"
        if self.alarm:
            said = [
                f"Revisions are predictable: the e-value reached {e}, above {at}.",
                f"Most of the evidence says {self.direction}: {REACTIONS[self.direction]}.",
            ]
        else:
            said = [f"No evidence of predictable revisions: the e-value reached {e}, below {at}."]
        if self.effect == self.effect:
            words = f"each revision goes {self.shown_effect} of the way"
            said += [f"On average {words}; 100 % is calibrated."]
        if self.resolved > 0.0:
            ratio = self.movement / self.resolved
            said += [
                f"Forecasts moved {ratio:.2f} times as much as their uncertainty fell; 1 is "
                f"calibrated (e-value of excess movement {_written(self.movement_log_evidence)})."
            ]
        return said


def _written(log_evidence: float) -> str:
    power = log_evidence / log(10.0)
    return f"{exp(log_evidence):.3g}" if abs(power) < 5.0 else f"10^{power:.1f}"
