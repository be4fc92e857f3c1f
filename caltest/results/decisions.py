"""Answers to decide by: of equivalence tests, gates, plans, and tests of grades."""

from __future__ import annotations

from caltest._base.written import several
from caltest.results.base import Record, Result, described, entry
from caltest.results.rendering import format_p, format_value
from caltest.results.verdicts import GateVerdict, GradeVerdict

#: What a plan knows the length of intervals of by a formula.
FORMULAS = ("O:E", "intercept", "slope")


@described(
    title="Test of equivalence",
    number="pvalue",
    procedure="{0.statistic} · {0.lens} · error ≥ {0.tolerance:g} tested by inversion",
    columns="statistic lens estimate tolerance pvalue smallest_tolerance",
    plotter="lines.limits",
    draws="draws of cell sums, 0 for exact tests",
)
class EquivalenceTestResult(Result):
    """The answer of :func:`caltest.equivalence_test`."""

    statistic: str = entry("The recipe, as it would be written in Python.")
    lens: str
    estimate: float = entry("The statistic of the observed data.")
    tolerance: float = entry("As asked for.")
    pvalue: float = entry("The chance of so small an error if the true one is ``tolerance``.")
    smallest_tolerance: float = entry("The smallest one accepted: the upper bound of the error.")
    alpha: float = entry("As asked for.")

    @property
    def equivalent(self) -> bool:
        """Whether the error is shown to be smaller: ``smallest_tolerance`` ≤ ``tolerance``."""
        return self.smallest_tolerance <= self.tolerance

    def _in_words(self) -> list[str]:
        p = format_p(self.pvalue)
        bound = format_value(self.smallest_tolerance, self.smallest_tolerance)
        small = "smaller than" if self.equivalent else "not shown to be smaller than"
        return [
            f"The error is {small} the tolerance {self.tolerance:g} (p = {p}).",
            f"It is at most {bound}, which is wrong in at most {100.0 * self.alpha:g} % of data "
            "sets: the smallest tolerance that would be accepted.",
        ]


@described()
class GateCheck(Record):
    """One check of a gate: an error, or how much larger it is than another, and its limit."""

    question: str = entry("What is checked, in words and as a recipe.")
    statistic: str
    estimate: float = entry("The statistic, or the difference of the roots of two.")
    corrected: float = entry("The estimate less its noise, and bounds of the error.")
    low: float
    high: float
    limit: float = entry("The tolerance or the margin.")
    verdict: GateVerdict = entry("Passed when high ≤ limit, failed when low > limit.")
    rows: int | None = entry("Rows that would bring the bounds as close to each other as the limit "
                             "is to 0, unless they are.")  # fmt: skip


@described(
    title="Calibration gate",
    records="checks",
    columns="check=question statistic observed=estimate without_noise=corrected low high limit "
    "finding=verdict",
    plotter="lines.limits",
)
class GateResult(Result):
    """The answer of :func:`caltest.gate`; ``print`` shows it as a report."""

    verdict: GateVerdict = entry("Passed when all checks have passed, failed when one has failed.")
    checks: tuple[GateCheck, ...] = entry("What was checked.")
    names: tuple[str, ...] = entry("The model, and the one it is compared with, if any.")
    lens: str = entry("The lens, as it would be written in Python.")
    alpha: float = entry("Chance of a wrong finding, at most, over all checks.")

    def _procedure(self) -> list[str]:
        limits = ", ".join(f"{c.question} ≤ {c.limit:g}" for c in self.checks)
        return [f"gate: {limits}", self.lens, f"alpha={self.alpha:g}"]

    def _in_words(self) -> list[str]:
        words = [f"Verdict: {self.verdict.upper()}"]
        for check in (c for c in self.checks if c.verdict is GateVerdict.CANNOT_TELL):
            needed = "the truth is close to the limit, more rows may not tell."
            if check.rows is not None:
                needed = f"about {several(check.rows, 'row')} would bring the bounds within "
                needed += f"{check.limit:g} of each other, there are {self.n}; fewer tell if the "
                needed += "truth is further from the limit than half of it, more if it is nearer."
            words.append(f"{check.question}: {needed}")
        return words


#: What the rows are needed for.
WORDS = {
    "test": "to reject calibration at {alpha:g} in {power:.4g} % of data sets",
    "interval": "for {level:.4g} % intervals of length {width:g}, on average",
    "equivalence": "to show at {alpha:g} an error below {tolerance:g}, in {power:.4g} % of data "
    "sets",
    "comparison": "to show at {alpha:g} which model is better, in {power:.4g} % of data sets",
    "monitoring": "until the alarm has rung in {power:.4g} % of data sets",
}


@described(
    title="Plan",
    number="n",
    procedure="plan of {0.purpose} · {0.statistic} · {0.lens} · like {0.like} · {0.method}, "
    "alpha={0.alpha:g}",
    columns="purpose statistic lens alternative n low high",
    plotter="lines.planned",
    draws="data sets that were simulated, 0 for a formula; ``n`` rows are needed",
)
class Plan(Result):
    """The answer of :func:`caltest.plan`."""

    statistic: str = entry("The recipe, as it would be written in Python.")
    lens: str
    purpose: str = entry('"test", "interval", "equivalence", "comparison" or "monitoring".')
    method: str = entry("How ``n`` was found.", '{"formula", "simulation"}')
    low: int = entry("Between which ``n`` lies in 95 % of simulations (Monte Carlo error).")
    high: int
    power: float | None = entry("As asked for.")
    alpha: float
    width: float | None
    tolerance: float | None
    like: str = entry("What rows are like, and what is true of them.")
    alternative: str
    points: tuple[tuple[float, float], ...] = entry(
        "Rows that were tried, with the power or the mean length.", "tuple of (float, float)"
    )
    present: int | None = entry("Rows that were given.")

    @property
    def more(self) -> int | None:
        """How many rows are needed beside those that were given."""
        return None if self.present is None else max(self.n - self.present, 0)

    def _in_words(self) -> list[str]:
        goal = WORDS[self.purpose].format(
            alpha=self.alpha, power=100.0 * (self.power or 0.0), level=100.0 * (1.0 - self.alpha),
            width=self.width, tolerance=self.tolerance,
        )  # fmt: skip
        about = "" if self.method == "formula" else f" ({self.low} to {self.high}, Monte Carlo)"
        words = [f"{self.n} rows{about} are needed {goal}. What is true: {self.alternative}."]
        if self.present is not None:
            words.append(f"There are {self.present} rows: {self.more or 'no'} more are needed.")
        return words


@described()
class GradeTest(Record):
    """One grade, or all of them together."""

    name: str = entry("What it is called.")
    n: int = entry("Rows, and how many of these had the event.")
    events: int
    rate: float = entry("The observed frequency, and the (mean) prediction.")
    probability: float
    exact_pvalue: float = entry("By the (Poisson-)binomial law; by Jeffreys' prior.")
    jeffreys_pvalue: float
    adjusted: float = entry("The one of the method that was asked for, after Holm.")
    interval: tuple[float, float] = entry("Of the frequency, by the same method.")
    verdict: GradeVerdict = entry("What ``adjusted`` says at the level of the test.")


@described(
    title="Tests of grades",
    records="grades portfolio",
    columns="grade=name n events rate predicted=probability exact_pvalue "
    "Jeffreys_pvalue=jeffreys_pvalue adjusted interval finding=verdict",
    plotter="forests.grades",
)
class GradeTests(Result):
    """The answer of :func:`caltest.grade_tests`."""

    grades: tuple[GradeTest, ...] = entry("A row for each grade.")
    portfolio: GradeTest = entry("All rows together.")
    alternative: str = entry("How the risk would differ.", '{"greater", "less", "two-sided"}')
    method: str = entry("What is adjusted and judged.", '{"exact", "jeffreys"}')
    alpha: float = entry("Chance of any wrong finding; intervals are of level 1 − ``alpha``.")

    @property
    def rejected(self) -> tuple[GradeTest, ...]:
        """The grades, and perhaps the portfolio, whose probability is rejected."""
        rows = self.grades if len(self.grades) == 1 else (*self.grades, self.portfolio)
        return tuple(row for row in rows if row.verdict is not GradeVerdict.NO_EVIDENCE)

    def _procedure(self) -> list[str]:
        how = {"exact": "exact binomial", "jeffreys": "Jeffreys"}[self.method]
        words = f"{how} tests of {several(len(self.grades), 'grade')}, {self.alternative}"
        return [words, f"Holm, alpha={self.alpha:g}", f"{100 * (1 - self.alpha):g} % intervals"]

    def _in_words(self) -> list[str]:
        names: dict[str, list[str]] = {}
        for row in self.rejected:
            if row is not self.portfolio:
                names.setdefault(row.verdict, []).append(row.name)
        wrong = "; ".join(f"{verdict} in {', '.join(each)}" for verdict, each in names.items())
        several_grades = len(self.grades) > 1
        whole = f"Portfolio: {self.portfolio.verdict}. " if several_grades else ""
        none = f"no evidence in any of {len(self.grades)}" if several_grades else "no evidence"
        independent = "Events are taken to be independent. Where one cause brings many at once, "
        independent += "these p-values are too small."
        sides = {"greater": "higher", "less": "lower"}
        one_side = [
            f"Asked was whether risks are {sides[self.alternative]} than predicted; "
            'alternative "two-sided" asks both ways.'
        ] if self.alternative in sides else []  # fmt: skip
        all_tests = "Findings allow for all tests together, intervals are of one grade each. "
        return [f"Verdict: {whole}Grades: {wrong or none}.", *one_side, all_tests * several_grades
                + independent]  # fmt: skip
