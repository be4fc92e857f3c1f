"""Which classes, items or revisions are wrong: answers of tests of one aspect."""

from __future__ import annotations

from dataclasses import dataclass
from math import exp, log
from typing import ClassVar

from caltest._base.arrays import FloatArray
from caltest.results import rendering, sketches
from caltest.results.base import WORST_PRINTED, Record, Result
from caltest.results.hypotheses import CalibrationTestResult
from caltest.results.rendering import (
    Card,
    Columns,
    Tone,
    attributes,
    format_p,
    format_range,
    format_value,
    p_is,
    percent,
    spread_of,
)
from caltest.results.sketches import line

#: The columns of the table, by the attribute of a component.
COLUMNS_OF_CLASSES = {
    "class": "name", "parameter": "parameter", "direction": "direction", "z": "z",
    "adjusted p": "adjusted", "predicted": "predicted", "observed": "observed",
}  # fmt: skip


#: What a recalibration does, by the name of its free parameters.
REPAIRS = {
    "temperature": "one temperature (TemperatureScaling: it divides the logits)",
    "level": "a shift of the log-probability of every class",
    "level and temperature": "one temperature with a shift of every class",
    "vector": "a slope and a shift for every class (VectorScaling)",
}


@dataclass(frozen=True, eq=False)
class ClassComponent(Record):
    """The level of a class, or its slope given the level.

    Attributes
    ----------
    name : str
        Name of the class.
    parameter : {"level", "slope"}
        Kind of component.
    direction : {"too low", "too high", "too timid", "too extreme"}
        Direction on average (level), or around the average (slope): "too timid" means
        underconfident, "too extreme" overconfident.
    z : float
        Observed − predicted, in standard deviations under calibration.
    adjusted : float
        Its p-value, adjusted for all classes and both parameters (max-T).
    predicted, observed : float
        Mean prediction of the class, and how often it occurred.
    """

    name: str
    parameter: str
    direction: str
    z: float
    adjusted: float
    predicted: float
    observed: float

    @property
    def in_words(self) -> str:
        """Class and direction in words, with means for a level."""
        means = (
            f" (predicts {percent(self.predicted, self.observed)} on average, observed "
            f"{percent(self.observed, self.predicted)})"
        )
        return f"class {self.name} is {self.direction}{means * (self.parameter == 'level')}"


@dataclass(frozen=True, eq=False)
class WorstClassResult(Result):
    """Result of :func:`caltest.worst_class`.

    Attributes
    ----------
    lens : str
        The lens, as it would be written in Python.
    components : tuple of ClassComponent
        The largest ``z`` first.
    test : CalibrationTestResult
        The test of all of them together, ``WorstClass()``.
    alpha : float
        Chance of naming any class that is right.
    critical : float
        The ``z`` from which on a component is named.
    repair : {"", "temperature", "level", "level and temperature", "vector"}
        The recalibration with the fewest parameters after which no error of the model with a shift
        and a slope for every class is found; "" if that was not tested.
    repair_pvalues : tuple of (str, float)
        The p-value of the lack of fit after each smaller recalibration.
    n, n_classes, n_resamples, seed, ended, notes, version
        As for every :class:`Result`.
    """

    lens: str
    components: tuple[ClassComponent, ...]
    test: CalibrationTestResult
    alpha: float
    critical: float
    repair: str
    repair_pvalues: tuple[tuple[str, float], ...]
    title: ClassVar[str] = "Errors of classes"
    plotter: ClassVar[str] = "forests.classes"

    def _tables(self) -> list[Columns]:
        return [attributes(self.components, COLUMNS_OF_CLASSES)]

    def _frame_columns(self) -> dict[str, rendering.TypedColumn]:
        return rendering.columns_of_records(self.components, ClassComponent)

    def _card(self) -> Card:
        numbers = [
            (
                f"{part.name}, {part.parameter}",
                f"{part.z:+.1f} sd",
                f"{part.direction}, {p_is(part.adjusted, 'adjusted p')}",
            )
            for part in self.components
        ]
        floor = (-self.critical, self.critical)
        rows = [
            sketches.IntervalRow(
                f"{part.name}, {part.parameter}",
                part.z,
                floor=floor,
                marked=part.adjusted <= self.alpha,
            )
            for part in self.components
        ]
        return Card(
            "miscalibrated" if self.named else "no evidence",
            tone="bad" if self.named else "plain",
            headline=self.finding,
            numbers=tuple(numbers),
            drawing=sketches.forest(rows, "z; grey: within sampling noise"),
        )

    @property
    def named(self) -> tuple[ClassComponent, ...]:
        """Components whose adjusted p-value is at most ``alpha``."""
        return tuple(part for part in self.components if part.adjusted <= self.alpha)

    @property
    def pvalue(self) -> float:
        """p-value of the test of all classes together."""
        return self.test.pvalue

    def _procedure(self) -> list[str]:
        return [f"max-T over {self.test.statistic}", self.test.lens, f"{self.test.null} null"]

    @property
    def finding(self) -> str:
        """Sentences on the miscalibrated classes, their direction, and the recalibration needed."""
        if not self.named:
            worst = self.components[0]
            return (
                f"No class is shown to be wrong. Class {worst.name} has the largest z, "
                f"{worst.direction} ({p_is(worst.adjusted, 'adjusted p')})."
            )
        listed = [f"{part.in_words}, {p_is(part.adjusted)}" for part in self.named]
        more = f"; and {len(listed) - WORST_PRINTED} more" * (len(listed) > WORST_PRINTED)
        slopes = [part for part in self.named if part.parameter == "slope"]
        meant = " Too extreme: too near 0 and 1." * any(
            p.direction == "too extreme" for p in slopes
        )
        meant += " Too timid: too near the mean." * any(p.direction == "too timid" for p in slopes)
        text = f"{'; '.join(listed[:WORST_PRINTED])}{more}.{meant}"
        return f"{text} {self.repair_in_words}".rstrip()

    def _in_words(self) -> list[str]:
        return [
            f"Named are classes with adjusted p ≤ {self.alpha:g}: a class that is right is named "
            f"with a chance of at most {100 * self.alpha:g} %.",
            self.finding,
        ]

    @property
    def repair_in_words(self) -> str:
        """Sentence on the smallest recalibration that suffices; "" if none was tested."""
        if not self.repair:
            return ""
        left = dict(self.repair_pvalues).get(self.repair)
        after = "" if left is None else f" (test of the remaining error: {p_is(left)})"
        return (
            "The recalibration with the fewest parameters after which no error is found is "
            f"{REPAIRS[self.repair]}{after}."
        )


# ------------------------------------------------------------------------------
# Result of :func:`caltest.individual_error`: error item by item, and its two parts.


@dataclass(frozen=True, eq=False)
class IndividualErrorResult(Result):
    """The answer of :func:`caltest.individual_error`.

    Errors are mean squared distances between predicted and true probabilities, summed over classes.

    Attributes
    ----------
    lens : str
        The lens, as it would be written in Python.
    estimate, low, high : float
        The mean over items with two votes or more, unbiased, and its interval, at least 0.
    calibration, calibration_low, calibration_high : float
        The part that remains on average over items with similar predictions: what recalibration
        could remove.
    grouping, grouping_low, grouping_high : float
        The rest, the grouping loss: items with equal predictions and different probabilities.
    level : float
        Of the intervals.
    test : CalibrationTestResult
        The test that all items are right, with votes as weights.
    items, single : int
        Number of items with two votes or more, and with one.
    n_bins : int
        Bins of every class's own probability, for the calibration part.
    n, n_classes, n_resamples, seed, ended, notes, version
        As for every :class:`Result`; ``n`` is the number of votes.
    """

    lens: str
    estimate: float
    low: float
    high: float
    calibration: float
    calibration_low: float
    calibration_high: float
    grouping: float
    grouping_low: float
    grouping_high: float
    level: float
    test: CalibrationTestResult
    items: int
    single: int
    n_bins: int
    title: ClassVar[str] = "Error item by item"
    number: ClassVar[str] = "estimate"
    plotter: ClassVar[str] = "forests.individual"

    def _card(self) -> Card:
        parts, wrong = self.parts, self.pvalue <= 1.0 - self.level
        rows = [
            sketches.IntervalRow(name, middle, low, high, marked=low > 0.0)
            for name, (middle, low, high) in parts.items()
        ]
        return Card(
            "wrong for single items" if wrong else "no evidence",
            tone="bad" if wrong else "plain",
            headline=self.finding,
            numbers=tuple(
                (name, format_value(middle, spread_of(low, high)), format_range(low, high))
                for name, (middle, low, high) in parts.items()
            ),
            drawing=sketches.forest(rows, f"squared error, {self._percent} interval"),
        )

    @property
    def pvalue(self) -> float:
        """p-value of the test that the probabilities of all items are right."""
        return self.test.pvalue

    @property
    def parts(self) -> dict[str, tuple[float, float, float]]:
        """Total error, calibration part and grouping loss, each (estimate, low, high)."""
        return {
            "item by item": (self.estimate, self.low, self.high),
            "calibration part": (self.calibration, self.calibration_low, self.calibration_high),
            "grouping loss": (self.grouping, self.grouping_low, self.grouping_high),
        }

    def _procedure(self) -> list[str]:
        return [self.test.statistic, self.lens, f"{self.test.null} null", f"{self._percent} t"]

    def _tables(self) -> list[Columns]:
        parts = self.parts.values()
        columns: Columns = {
            "squared error": [*self.parts],
            "estimate": [format_value(mid, spread_of(low, high)) for mid, low, high in parts],
            f"{self._percent} interval": [format_range(low, high) for _, low, high in parts],
        }
        return [columns]

    @property
    def distance(self) -> str:
        """Root mean squared error of an item, √(error / K), with its interval, as text.

        It is how far true probabilities (shares of votes) of an item are from the predicted ones; K
        is the number of classes.
        """
        middle, low, high = (
            (max(e, 0.0) / self.n_classes) ** 0.5 for e in (self.estimate, self.low, self.high)
        )
        ends = format_range(low, high)
        return f"{format_value(middle, spread_of(low, high))} ({self._percent} interval {ends})"

    @property
    def finding(self) -> str:
        """Sentence on whether probabilities of single items are right, and on the larger part."""
        ends = format_range(self.low, self.high)
        sizes = f"squared error {format_value(self.estimate)} ({self._percent} interval {ends})"
        if self.pvalue > 1.0 - self.level:
            return (
                f"No error item by item is shown ({p_is(self.test.shown_p)}; {sizes}). Errors of "
                f"up to {format_value(self.high)} are compatible with these votes."
            )
        share = self.grouping / self.estimate if self.estimate > 0.0 else 0.0
        mostly = "calibration part" if share < 0.5 else "grouping loss"
        cure = {
            "calibration part": "recalibration can remove most of it",
            "grouping loss": "recalibration cannot remove it: a model needs to tell these items "
            "apart",
        }[mostly]
        return (
            f"Probabilities are not right item by item ({p_is(self.test.shown_p)}): {sizes}. Most "
            f"of it is {mostly} ({format_value(self.parts[mostly][0])}), so that {cure}."
        )

    def _in_words(self) -> list[str]:
        return [
            self.finding,
            f"{self.items} items with two votes or more, {self.single} with one. Assumed: votes of "
            "an item are independent draws, and no rater judges several items.",
        ]


# ------------------------------------------------------------------------------
# The result of a test of revisions: is a forecast that is updated over time a martingale?


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
        """Direction in which most of the evidence says that revisions can be predicted.

        It has the largest of ``shares``: "too slow", "too fast", "too low", "too high", "too much
        movement" or "too little movement".
        """
        return max(zip(self.shares, self.directions, strict=True))[1]

    def _procedure(self) -> list[str]:
        groups = f", {self.n_groups} groups" if self.n_groups != self.n_questions else ""
        return ["Revisions", f"least={self.least:g}", f"{self.n_questions} questions{groups}"]

    def _tables(self) -> list[Columns]:
        shown = {
            "questions": "n_questions",
            "revisions": "n_revisions",
            "e-value now": "shown_evidence",
            "largest e-value": "shown_largest",
            "p (1 / largest)": "shown_p",
            "revision size": "shown_effect",
        }
        return [attributes([self], shown)]

    def _card(self) -> Card:
        numbers = (
            ("largest e-value", self.shown_largest, f"alarm at {1.0 / self.alpha:g}"),
            ("revision size", self.shown_effect, "100 % if calibrated"),
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
        """E-value after the last time as printed, such as "3.2" or "10^6.1"."""
        return _written(self.log_evidence)

    @property
    def shown_largest(self) -> str:
        """Largest e-value at any time as printed, such as "3.2" or "10^6.1"."""
        return _written(self.largest_log_evidence)

    @property
    def shown_p(self) -> str:
        """p-value as printed."""
        return format_p(self.pvalue)

    @property
    def shown_effect(self) -> str:
        """How far a revision goes, in percent of the change that was warranted, with its interval.

        It is 100 % if calibrated; "not estimable" where it cannot be computed.
        """
        if self.effect != self.effect:
            return "not estimable"
        if self.effect_low != self.effect_low:
            return f"{100 * self.effect:.0f} %"
        low, high = 100 * self.effect_low, 100 * self.effect_high
        return f"{100 * self.effect:.0f} % ({low:.0f} to {high:.0f} %)"

    def _in_words(self) -> list[str]:
        e, at = self.shown_largest, f"the alarm level {1.0 / self.alpha:g}"
        if self.alarm:
            said = [
                f"Revisions are predictable: the e-value reached {e}, above {at}.",
                f"Most of the evidence says {self.direction}: {REACTIONS[self.direction]}.",
            ]
        else:
            said = [
                f"No evidence of predictable revisions: the largest e-value is {e}, below {at}."
            ]
        said += [
            "The e-value starts at 1; if revisions are unpredictable, as those of a calibrated "
            f"forecaster, it ever reaches {1.0 / self.alpha:g} in at most {100 * self.alpha:g} % "
            "of records."
        ]
        if self.effect == self.effect:
            said += [
                f"Revision size ({100 * self.level:g} % interval in brackets): 100 % if "
                "calibrated. 80 % means that the next revision adds 20 % of the last one "
                "(underreaction), 120 % that it takes 20 % back (overreaction)."
            ]
        if self.resolved > 0.0:
            ratio = self.movement / self.resolved
            said += [
                f"Squared revisions add up to {ratio:.2f} times the fall of p (1 − p) "
                "from first to last forecasts; if calibrated, the expected ratio is 1 (e-value of "
                f"excess movement {_written(self.movement_log_evidence)})."
            ]
        return said


def _written(log_evidence: float) -> str:
    power = log_evidence / log(10.0)
    return f"{exp(log_evidence):.3g}" if abs(power) < 5.0 else f"10^{power:.1f}"
