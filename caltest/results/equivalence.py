"""The answer of a test of equivalence."""

from __future__ import annotations

from caltest.results.base import Result, format_p, format_value
from caltest.results.fields import described, entry


@described(
    title="Test of equivalence",
    number="pvalue",
    columns="statistic lens estimate tolerance pvalue smallest_tolerance",
    plotter="numbers.limits",
    draws="draws of cell sums, 0 for exact tests",
)
class EquivalenceTestResult(Result):
    """The answer of :func:`caltest.equivalence_test`."""

    statistic: str = entry("The recipe, as it would be written in Python.")
    lens: str
    estimate: float = entry("The statistic of the observed data.")
    tolerance: float = entry("As asked for.")
    pvalue: float = entry(
        "The chance of an observed error as small as this one, if the true one is ``tolerance``."
    )
    smallest_tolerance: float = entry(
        "The smallest tolerance that the test accepts at ``alpha``: the upper bound of the error."
    )
    alpha: float = entry("As asked for.")

    @property
    def equivalent(self) -> bool:
        """Whether the error is shown to be smaller: ``smallest_tolerance`` ≤ ``tolerance``."""
        return self.smallest_tolerance <= self.tolerance

    def _made(self) -> list[str]:
        return [self.statistic, self.lens, f"error ≥ {self.tolerance:g} tested by inversion"]

    def _in_words(self) -> list[str]:
        shown, bound = format_p(self.pvalue), format_value(self.smallest_tolerance)
        small = "smaller than" if self.equivalent else "not shown to be smaller than"
        return [
            f"The error is {small} the tolerance {self.tolerance:g} (p = {shown}).",
            f"It is at most {bound}, which is wrong in at most {100.0 * self.alpha:g} % of data "
            "sets: the smallest tolerance that would be accepted.",
        ]
