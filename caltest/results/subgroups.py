"""What a test found in every subgroup."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from caltest.results.base import Record, format_p
from caltest.results.tables import Columns, aligned

if TYPE_CHECKING:
    from caltest.results.calibration import CalibrationTestResult

#: What is shown of each test.
SHOWN = ("n", "estimate", "shown_floor", "shown_p")


@dataclass(frozen=True)
class Subgroups(Record):
    """The same question, asked of every subgroup by itself.

    Attributes
    ----------
    names : tuple of str
        The subgroups, in the order of their names.
    tests : tuple of CalibrationTestResult
        The test of each.
    adjusted : tuple of float
        Their p-values, adjusted for the number of subgroups.
    pvalue : float
        The smallest of these: "is it calibrated in every subgroup?".
    adjust : {"Holm", "max-T"}
        By Holm's method where no row is in two subgroups, else by the joint law on the same
        redrawn labels (Westfall & Young 1993).
    """

    names: tuple[str, ...]
    tests: tuple[CalibrationTestResult, ...]
    adjusted: tuple[float, ...]
    pvalue: float
    adjust: str

    @property
    def worst(self) -> int:
        """The number of the subgroup with the strongest evidence."""
        order = [(p, t.pvalue, -t.excess) for p, t in zip(self.adjusted, self.tests, strict=True)]
        return min(range(len(order)), key=order.__getitem__)

    @property
    def table(self) -> Columns:
        """A row for every subgroup."""
        found = {name: [getattr(test, name) for test in self.tests] for name in SHOWN}
        return {"subgroup": self.names, **found, "adjusted": self.adjusted}

    def __str__(self) -> str:
        together = f"calibrated in every subgroup: p {format_p(self.pvalue)} ({self.adjust})"
        return "\n".join([*aligned(self.table), f"  {together}"])
