"""Result of :func:`caltest.individual_error`: error item by item, and its two parts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from caltest.results import sketches
from caltest.results.base import Result
from caltest.results.hypotheses import CalibrationTestResult
from caltest.results.notebook import Card
from caltest.results.rendering import Columns, format_range, format_value, spread_of


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
            "miscalibrated" if wrong else "no evidence",
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
        """(estimate, low, high) by the name of the part."""
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
    def finding(self) -> str:
        """A sentence on whether items are right one by one, and on the larger part."""
        ends = format_range(self.low, self.high)
        sizes = f"squared error {format_value(self.estimate)} ({self._percent} interval {ends})"
        if self.pvalue > 1.0 - self.level:
            return (
                f"No error item by item is shown (p {self.test.shown_p}; {sizes}). Errors of up to "
                f"{format_value(self.high)} are compatible with these votes."
            )
        share = self.grouping / self.estimate if self.estimate > 0.0 else 0.0
        mostly = "calibration part" if share < 0.5 else "grouping loss"
        cure = {
            "calibration part": "recalibration can remove most of it",
            "grouping loss": "recalibration cannot remove it: a model needs to tell these items "
            "apart",
        }[mostly]
        return (
            f"Probabilities are not right item by item (p {self.test.shown_p}): {sizes}. Most of "
            f"it is {mostly} ({format_value(self.parts[mostly][0])}), so that {cure}."
        )

    def _in_words(self) -> list[str]:
        return [
            self.finding,
            f"{self.items} items with two votes or more, {self.single} with one. Assumed: votes of "
            "an item are independent draws, and no rater judges several items.",
        ]
