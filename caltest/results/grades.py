"""The answer of tests of grades: is the probability of every grade right?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from caltest._base.written import several
from caltest.results.base import Record, Result
from caltest.results.tables import Columns
from caltest.results.verdicts import GradeVerdict

#: The heads of the table, and the fields below them.
HEADS = {
    **{"grade": "name", "n": "n", "events": "events", "rate": "rate", "p": "probability"},
    **{"exact pvalue": "exact_pvalue", "Jeffreys pvalue": "jeffreys_pvalue"},
    **{"adjusted": "adjusted", "interval": "interval", "finding": "verdict"},
}


@dataclass(frozen=True)
class GradeTest(Record):
    """One grade, or all of them together.

    Attributes
    ----------
    name : str
        What it is called.
    n, events : int
        Rows, and how many of these had the event.
    rate, probability : float
        The observed frequency, and the (mean) prediction.
    exact_pvalue, jeffreys_pvalue : float
        By the binomial law, of the portfolio the Poisson-binomial one; by Jeffreys' prior.
    adjusted : float
        The one of the method that was asked for, after Holm.
    interval : tuple of float
        Of the frequency, by the same method.
    verdict : GradeVerdict
        What ``adjusted`` says at the level of the test.
    """

    name: str
    n: int
    events: int
    rate: float
    probability: float
    exact_pvalue: float
    jeffreys_pvalue: float
    adjusted: float
    interval: tuple[float, float]
    verdict: GradeVerdict


@dataclass(frozen=True)
class GradeTests(Result):
    """The answer of :func:`caltest.grade_tests`.

    Attributes
    ----------
    grades : tuple of GradeTest
        A row for each grade.
    portfolio : GradeTest
        All rows together.
    alternative : str
        ``"greater"``: the risk is greater than predicted; ``"less"`` or ``"two-sided"``.
    method : str
        ``"exact"`` or ``"jeffreys"``, which ``adjusted``, intervals and verdicts are made by.
    level : float
        Of the intervals.
    alpha : float
        Chance of any wrong finding, over the grades and the portfolio.
    n, n_classes, n_resamples, seed, ended, notes, version
        As for every :class:`Result`.
    """

    grades: tuple[GradeTest, ...]
    portfolio: GradeTest
    alternative: str
    method: str
    level: float
    alpha: float
    title: ClassVar[str] = "Tests of grades"

    @property
    def rejected(self) -> tuple[GradeTest, ...]:
        """The grades, and perhaps the portfolio, whose probability is rejected."""
        rows = self.grades if len(self.grades) == 1 else (*self.grades, self.portfolio)
        return tuple(row for row in rows if row.verdict is not GradeVerdict.NO_EVIDENCE)

    def _made(self) -> list[str]:
        how = {"exact": "exact binomial", "jeffreys": "Jeffreys"}[self.method]
        said = f"{how} tests of {several(len(self.grades), 'grade')}, {self.alternative}"
        return [said, f"Holm, alpha={self.alpha:g}", f"{100 * self.level:g} % intervals"]

    def _tables(self) -> list[Columns]:
        rows = (*self.grades, self.portfolio)
        return [{head: [getattr(row, name) for row in rows] for head, name in HEADS.items()}]

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
