"""The answer of tests of grades: is the probability of every grade right?"""

from __future__ import annotations

from caltest._base.written import several
from caltest.results.base import Record, Result
from caltest.results.fields import described, entry
from caltest.results.tables import Columns, of_records
from caltest.results.verdicts import GradeVerdict

#: The heads of the table, and the fields below them.
HEADS = {
    **{"grade": "name", "n": "n", "events": "events", "rate": "rate", "p": "probability"},
    **{"exact pvalue": "exact_pvalue", "Jeffreys pvalue": "jeffreys_pvalue"},
    **{"adjusted": "adjusted", "interval": "interval", "finding": "verdict"},
}


@described()
class GradeTest(Record):
    """One grade, or all of them together."""

    name: str = entry("What it is called.")
    n: int = entry("Rows, and how many of these had the event.")
    events: int
    rate: float = entry("The observed frequency, and the (mean) prediction.")
    probability: float
    exact_pvalue: float = entry(
        "By the binomial law, of the portfolio the Poisson-binomial one; by Jeffreys' prior."
    )
    jeffreys_pvalue: float
    adjusted: float = entry("The one of the method that was asked for, after Holm.")
    interval: tuple[float, float] = entry("Of the frequency, by the same method.")
    verdict: GradeVerdict = entry("What ``adjusted`` says at the level of the test.")


@described(title="Tests of grades", plotter="tables.grades")
class GradeTests(Result):
    """The answer of :func:`caltest.grade_tests`."""

    grades: tuple[GradeTest, ...] = entry("A row for each grade.")
    portfolio: GradeTest = entry("All rows together.")
    alternative: str = entry(
        '``"greater"``: the risk is greater than predicted; ``"less"`` or ``"two-sided"``.'
    )
    method: str = entry(
        '``"exact"`` or ``"jeffreys"``, which ``adjusted``, intervals and verdicts are made by.'
    )
    alpha: float = entry(
        "Chance of any wrong finding, over the grades and the portfolio; intervals are of level "
        "1 − ``alpha``."
    )

    @property
    def rejected(self) -> tuple[GradeTest, ...]:
        """The grades, and perhaps the portfolio, whose probability is rejected."""
        rows = self.grades if len(self.grades) == 1 else (*self.grades, self.portfolio)
        return tuple(row for row in rows if row.verdict is not GradeVerdict.NO_EVIDENCE)

    def _made(self) -> list[str]:
        how = {"exact": "exact binomial", "jeffreys": "Jeffreys"}[self.method]
        said = f"{how} tests of {several(len(self.grades), 'grade')}, {self.alternative}"
        return [said, f"Holm, alpha={self.alpha:g}", f"{100 * (1 - self.alpha):g} % intervals"]

    def _tables(self) -> list[Columns]:
        rows = (*self.grades, self.portfolio)
        return [of_records(rows, HEADS)]

    def _in_words(self) -> list[str]:
        found: dict[str, list[str]] = {}
        for row in self.rejected:
            found.setdefault(row.verdict, []).append(row.name)
        said = [f"{verdict} in {', '.join(names)}" for verdict, names in found.items()]
        return [
            f"Verdict: {'; '.join(said) or GradeVerdict.NO_EVIDENCE}",
            "Events are taken to be independent. Where they come together, as defaults in a "
            "recession do, these p-values are too small.",
        ]
