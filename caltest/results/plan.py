"""The answer of a plan: how many rows are needed."""

from __future__ import annotations

from caltest.results.base import Result
from caltest.results.fields import described, entry

#: What the rows are needed for.
WORDS = {
    "test": "to reject calibration at {alpha:g} in {power:.0%} of data sets",
    "interval": "for {level:.4g} % intervals of length {width:g}, on average",
    "equivalence": "to show at {alpha:g} an error below {tolerance:g}, in {power:.0%} of data sets",
    "comparison": "to show at {alpha:g} which model is better, in {power:.0%} of data sets",
    "monitoring": "until the alarm has rung in {power:.0%} of data sets",
}


@described(
    title="Plan",
    number="n",
    columns="purpose statistic lens alternative n low high",
    plotter="curves.planned",
    draws="data sets that were simulated, 0 for a formula; ``n`` rows are needed",
)
class Plan(Result):
    """The answer of :func:`caltest.plan`."""

    statistic: str = entry("The recipe, as it would be written in Python.")
    lens: str
    purpose: str = entry(
        "What is planned.",
        '{"test", "interval", "equivalence", "comparison", "monitoring"}',
    )
    method: str = entry("How ``n`` was found.", '{"formula", "simulation"}')
    low: int = entry(
        "Between which ``n`` lies, as far as Monte Carlo error is concerned, in 95 % of "
        "simulations."
    )
    high: int
    power: float | None = entry("As asked for.")
    alpha: float
    width: float | None
    tolerance: float | None
    like: str = entry("What rows are like, and what is true of them.")
    alternative: str
    points: tuple[tuple[float, float], ...] = entry(
        "Rows that were tried, and how often they did, or the mean length of intervals.",
        "tuple of (float, float)",
    )
    present: int | None = entry("Rows that were given.")

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
            width=self.width, tolerance=self.tolerance,
        )  # fmt: skip
        about = "" if self.method == "formula" else f" ({self.low} to {self.high}, Monte Carlo)"
        said = [f"{self.n} rows{about} are needed {goal}. What is true: {self.alternative}."]
        if self.present is not None:
            said.append(f"There are {self.present} rows: {self.more or 'no'} more are needed.")
        return said
