"""Result of :func:`caltest.worst_class`: wrong classes, directions, and a sufficient repair."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from caltest.results import frames, sketches
from caltest.results.base import WORST_PRINTED, Record, Result
from caltest.results.hypotheses import CalibrationTestResult
from caltest.results.notebook import Card
from caltest.results.rendering import Columns, attributes, format_p, percent

#: The columns of the table, by the attribute of a component.
COLUMNS_OF_CLASSES = {
    "class": "name", "parameter": "parameter", "direction": "direction", "z": "z",
    "adjusted": "adjusted", "predicted": "predicted", "observed": "observed",
}  # fmt: skip


#: What a recalibration does, by the name of its free parameters.
REPAIRS = {
    "temperature": "one temperature (TemperatureScaling)",
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

    def _frame_columns(self) -> dict[str, frames.TypedColumn]:
        return frames.of_records(self.components, ClassComponent)

    def _card(self) -> Card:
        numbers = [
            (
                f"{part.name}, {part.parameter}",
                f"{part.z:+.1f} sd",
                f"{part.direction}, adjusted p {format_p(part.adjusted)}",
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
            drawing=sketches.forest(rows, "z; grey: passes as noise"),
        )

    @property
    def named(self) -> tuple[ClassComponent, ...]:
        """Components whose adjusted p-value is at most ``alpha``."""
        return tuple(part for part in self.components if part.adjusted <= self.alpha)

    @property
    def pvalue(self) -> float:
        """p-value of all classes together."""
        return self.test.pvalue

    def _procedure(self) -> list[str]:
        return [f"max-T over {self.test.statistic}", self.test.lens, f"{self.test.null} null"]

    @property
    def finding(self) -> str:
        """Sentences on which classes are wrong, in which direction, and which repair is enough."""
        if not self.named:
            worst = self.components[0]
            return (
                f"No class is shown to be wrong. The largest z is that of class {worst.name}, "
                f"{worst.direction} (adjusted p = {format_p(worst.adjusted)})."
            )
        listed = [f"{part.in_words}, p = {format_p(part.adjusted)}" for part in self.named]
        more = f"; and {len(listed) - WORST_PRINTED} more" * (len(listed) > WORST_PRINTED)
        text = f"{'; '.join(listed[:WORST_PRINTED])}{more}."
        return f"{text} {self.repair_in_words}".rstrip()

    def _in_words(self) -> list[str]:
        return [
            f"Named are classes with adjusted p ≤ {self.alpha:g}: a class that is right is named "
            f"with a chance of at most {100 * self.alpha:g} %.",
            self.finding,
        ]

    @property
    def repair_in_words(self) -> str:
        """Sentence on which recalibration is enough; "" if that was not tested."""
        if not self.repair:
            return ""
        left = dict(self.repair_pvalues).get(self.repair)
        after = "" if left is None else f": what is left has p = {format_p(left)}"
        return f"The smallest recalibration that is enough: {REPAIRS[self.repair]}{after}."
