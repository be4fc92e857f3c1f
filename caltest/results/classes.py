"""Which class is wrong, in which direction, and which recalibration would be enough."""

from __future__ import annotations

from caltest.results.base import Record, Result, described, entry
from caltest.results.hypotheses import CalibrationTestResult
from caltest.results.rendering import format_p, percent

#: What a recalibration does, by the name of its free parameters.
REPAIRS = {
    "temperature": "one temperature (TemperatureScaling)",
    "level": "a shift of the log-probability of every class",
    "level and temperature": "one temperature with a shift of every class",
    "vector": "a slope and a shift for every class (VectorScaling)",
}


@described()
class ClassComponent(Record):
    """The level of a class, or its slope given the level."""

    name: str = entry("What the class is called.")
    parameter: str = entry("What is wrong of it.", '{"level", "slope"}')
    direction: str = entry(
        "On average, or around it: too timid is underconfident, too extreme overconfident.",
        '{"too low", "too high", "too timid", "too extreme"}',
    )
    score: float = entry("Observed − predicted, in standard deviations under calibration.")
    adjusted: float = entry("Its p-value, adjusted for all classes and both parameters (max-T).")
    predicted: float = entry("Mean prediction of the class, and how often it occurred.")
    observed: float

    @property
    def in_words(self) -> str:
        """The class and the direction, with means for a level."""
        means = (
            f" (predicts {percent(self.predicted, self.observed)} on average, observed "
            f"{percent(self.observed, self.predicted)})"
        )
        return f"class {self.name} is {self.direction}{means * (self.parameter == 'level')}"


@described(
    title="Errors of classes",
    records="components",
    columns="class=name parameter direction score adjusted predicted observed",
    plotter="forests.classes",
)
class WorstClassResult(Result):
    """The answer of :func:`caltest.worst_class`."""

    lens: str = entry("The lens, as it would be written in Python.")
    components: tuple[ClassComponent, ...] = entry("The largest ``score`` first.")
    test: CalibrationTestResult = entry("The test of all of them together, ``WorstClass()``.")
    alpha: float = entry("Chance of naming any class that is right.")
    critical: float = entry("The ``score`` from which on a component is named.")
    repair: str = entry(
        "The recalibration with the fewest parameters after which no error of the model with a "
        'shift and a slope for every class is found; "" where that was not asked.',
        '{"", "temperature", "level", "level and temperature", "vector"}',
    )
    repair_pvalues: tuple[tuple[str, float], ...] = entry(
        "The p-value of what is left after each smaller recalibration.", "tuple of (str, float)"
    )

    @property
    def named(self) -> tuple[ClassComponent, ...]:
        """The components whose adjusted p-value is at most ``alpha``."""
        return tuple(part for part in self.components if part.adjusted <= self.alpha)

    @property
    def pvalue(self) -> float:
        """The p-value of all classes together."""
        return self.test.pvalue

    def _procedure(self) -> list[str]:
        return [f"max-T over {self.test.statistic}", self.test.lens, f"{self.test.null} null"]

    def _in_words(self) -> list[str]:
        if not self.named:
            worst = self.components[0]
            return [
                f"No class is shown to be wrong. The largest score is that of class {worst.name}, "
                f"{worst.direction} (adjusted p = {format_p(worst.adjusted)})."
            ]
        parts = (f"{part.in_words}, p = {format_p(part.adjusted)}" for part in self.named)
        sentences = [
            f"Named at {100 * self.alpha:g} % for all classes together: {'; '.join(parts)}."
        ]
        return [*sentences, self.repair_in_words] if self.repair else sentences

    @property
    def repair_in_words(self) -> str:
        """Which recalibration is enough, in a sentence; "" where that was not asked."""
        if not self.repair:
            return ""
        left = dict(self.repair_pvalues).get(self.repair)
        after = "" if left is None else f": what is left has p = {format_p(left)}"
        return f"Enough to repair it is {REPAIRS[self.repair]}{after}."
