"""The answer of a test of equivalence."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from caltest.results.base import Result, format_p, format_value


@dataclass(frozen=True)
class EquivalenceTestResult(Result):
    """The answer of :func:`caltest.equivalence_test`.

    Attributes
    ----------
    statistic, lens : str
        The recipe, as it would be written in Python.
    estimate : float
        The statistic of the observed data.
    tolerance, alpha : float
        As asked for.
    pvalue : float
        The chance of an observed error as small as this one, if the true one is ``tolerance``.
    smallest_tolerance : float
        The smallest tolerance that the test accepts at ``alpha``: the upper bound of the error.
    n, n_classes, n_resamples, seed, ended, notes, version
        As for every :class:`Result`; ``n_resamples`` draws of cell sums, 0 for exact tests.
    """

    statistic: str
    lens: str
    estimate: float
    tolerance: float
    pvalue: float
    smallest_tolerance: float
    alpha: float
    title: ClassVar[str] = "Test of equivalence"
    number: ClassVar[str] = "pvalue"
    columns: ClassVar[tuple[str, ...]] = (
        *("statistic", "lens", "estimate", "tolerance", "pvalue", "smallest_tolerance"),
    )

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
