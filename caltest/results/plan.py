"""The answer of a plan: how many rows are needed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from caltest.results.base import Result

#: What the rows are needed for.
WORDS = {
    "test": "to reject calibration at {alpha:g} in {power:.0%} of data sets",
    "interval": "for {level:.4g} % intervals of length {width:g}, on average",
    "equivalence": "to show at {alpha:g} an error below {margin:g}, in {power:.0%} of data sets",
    "comparison": "to show at {alpha:g} which model is better, in {power:.0%} of data sets",
    "monitoring": "until the alarm has rung in {power:.0%} of data sets",
}


@dataclass(frozen=True)
class Plan(Result):
    """The answer of :func:`caltest.plan`.

    Attributes
    ----------
    statistic, lens : str
        The recipe, as it would be written in Python.
    purpose : {"test", "interval", "equivalence", "comparison", "monitoring"}
        What is planned.
    method : {"formula", "simulation"}
        How ``n`` was found.
    low, high : int
        Between which ``n`` lies, as far as Monte Carlo error is concerned, in 95 % of simulations.
    power, alpha, width, margin : float or None
        As asked for.
    like, alternative : str
        What rows are like, and what is true of them.
    points : tuple of (float, float)
        Rows that were tried, and how often they did, or the mean length of intervals.
    present : int or None
        Rows that were given.
    n : int
        The rows that are needed.
    n_resamples : int
        Data sets that were simulated, 0 for a formula.
    n_classes, seed, ended, notes, version
        As for every :class:`Result`.
    """

    statistic: str
    lens: str
    purpose: str
    method: str
    low: int
    high: int
    power: float | None
    alpha: float
    width: float | None
    margin: float | None
    like: str
    alternative: str
    points: tuple[tuple[float, float], ...]
    present: int | None
    title: ClassVar[str] = "Plan"
    number: ClassVar[str] = "n"
    columns: ClassVar[tuple[str, ...]] = (
        *("purpose", "statistic", "lens", "alternative", "n", "low", "high"),
    )

    @property
    def more(self) -> int | None:
        """How many rows are needed beside those that were given."""
        return None if self.present is None else max(self.n - self.present, 0)

    def _made(self) -> list[str]:
        how = f"{self.method}, alpha={self.alpha:g}"
        return [f"plan of {self.purpose}", self.statistic, self.lens, f"like {self.like}", how]

    def _in_words(self) -> list[str]:
        goal = WORDS[self.purpose].format(
            alpha=self.alpha, power=self.power or 0.0, level=100.0 * (1.0 - self.alpha),
            width=self.width, margin=self.margin,
        )  # fmt: skip
        about = "" if self.method == "formula" else f" ({self.low} to {self.high}, Monte Carlo)"
        said = [f"{self.n} rows{about} are needed {goal}. What is true: {self.alternative}."]
        if self.present is not None:
            said.append(f"There are {self.present} rows: {self.more or 'no'} more are needed.")
        return said
