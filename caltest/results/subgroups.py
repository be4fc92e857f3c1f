"""What a test found in every subgroup."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from caltest.results.base import Record, format_p
from caltest.results.fields import described, entry
from caltest.results.tables import Columns, aligned


@described(plotter="tables.forest")
class Subgroups(Record):
    """The same question, asked of every subgroup by itself, and whether they differ."""

    names: tuple[str, ...] = entry("The subgroups, in the order of their names.")
    counts: tuple[int, ...] = entry("Their numbers of rows.")
    tests: tuple[Any, ...] = entry(
        "The test of each, its interval or its comparison; None where it cannot be tested, which "
        "``notes`` explain.",
        "tuple of CalibrationTestResult or another Result, or None",
    )
    adjusted: tuple[float | None, ...] = entry(
        "Their p-values, adjusted for the number of subgroups.",
        "tuple of float or None",
    )
    pvalue: float = entry(
        'The smallest of these: "is it calibrated in every subgroup?", or "are errors equal '
        'there?".'
    )
    adjust: str = entry(
        "By Holm's method where no row is in two subgroups, else by the joint law on the same "
        "redrawn labels (Westfall & Young 1993).",
        '{"Holm", "max-T"}',
    )
    n: int = entry("Rows of all together, each counted once.")
    alike: tuple[float | None, ...] = entry(
        'For each the adjusted p-value of another hypothesis, "it is calibrated, or not, as the '
        'other rows are": see :func:`calibration_test`. Empty or None where this is not tested.',
        "tuple of float or None",
        default=(),
    )
    notes: tuple[str, ...] = entry("What could not be tested, and why.", default=())

    @property
    def tested(self) -> list[Any]:
        """The tests that there are."""
        return [test for test in self.tests if test is not None]

    @property
    def worst(self) -> int:
        """The number of the subgroup with the strongest evidence."""
        keys = {j: test.rank for j, test in enumerate(self.tests) if test is not None}
        return min(keys, key=lambda j: (self.adjusted[j], keys[j]))

    @property
    def alike_pvalue(self) -> float | None:
        """The smallest of ``alike``: "are all calibrated alike?"; None where not tested."""
        return min((p for p in self.alike if p is not None), default=None)

    @property
    def recipe(self) -> str:
        """One line that says how the numbers were made."""
        kind = f"{len(self.names)} subgroups, {self.adjust}"
        return f"{kind} · {replace(self.tested[0], n=self.n).recipe}"

    @property
    def table(self) -> Columns:
        """A row for every subgroup."""
        shown = self.tested[0].of_subgroups
        found = {name: [t and getattr(t, name) for t in self.tests] for name in shown}
        last = {"alike": self.alike} if self.alike else {}
        named = {"subgroup": self.names, "n": self.counts}
        return {**named, **found, "adjusted": self.adjusted, **last}

    def in_words(self) -> list[str]:
        """Return the finding in sentences."""
        said = [f"{self.tested[0].of_all}: p {format_p(self.pvalue)} ({self.adjust})"]
        if self.alike_pvalue is not None:
            said.append(f"calibrated alike: p {format_p(self.alike_pvalue)} (residuals permuted)")
        return said + [f"Note: {note}." for note in self.notes]

    def __str__(self) -> str:
        return "\n".join([*aligned(self.table), *(f"  {line}" for line in self.in_words())])
