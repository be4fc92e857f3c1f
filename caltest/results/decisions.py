"""Results for decisions: equivalence tests, gates, plans, tests of grades, utilities.

:class:`GateResult` has a list of :class:`GateCheck`, :class:`Plan` a sample size with its Monte
Carlo interval, :class:`GradeTests` a row per grade. :class:`PromiseResult` and
:class:`DecisionCurve` are in the user's units.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from caltest._base.arrays import FloatArray
from caltest._base.written import first_of, several
from caltest.errors import spelt
from caltest.results import rendering, sketches
from caltest.results.base import (
    ClusterSummary,
    Record,
    Result,
    is_mean_error,
    lens_in_words,
    mean_error_in_words,
    short,
)
from caltest.results.rendering import (
    Card,
    Columns,
    Tone,
    attributes,
    format_p,
    format_range,
    format_value,
    p_is,
    spread_of,
)
from caltest.results.sketches import line
from caltest.results.verdicts import GateVerdict, GradeVerdict

#: How the statistic of a gate's margin begins.
ROOT_ERROR = "root mean squared error"


#: What a plan knows the length of intervals of by a formula.
FORMULAS = ("O:E", "intercept", "slope")


@dataclass(frozen=True, eq=False)
class EquivalenceTestResult(Result):
    """Result of :func:`caltest.equivalence_test`.

    Attributes
    ----------
    statistic, lens : str
        Statistic and lens, written as in Python.
    estimate : float
        Observed value of the statistic.
    tolerance : float
        Tolerance that was asked for, in the unit of the statistic.
    pvalue : float
        Probability of an estimate this small if the true error is ``tolerance``.
    smallest_tolerance : float
        Upper confidence bound of the error: the smallest tolerance that the test accepts.
    alpha : float
        Level of the test, in (0, 1).
    n, n_classes, n_resamples, seed, ended, notes, version
        As for every :class:`Result`; ``n_resamples`` counts
        draws of cell sums, 0 for exact tests.
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
    plotter: ClassVar[str] = "lines.limits"

    @property
    def equivalent(self) -> bool:
        """True if the error is shown to be below the tolerance.

        That is, ``smallest_tolerance`` ≤ ``tolerance``.
        """
        return self.smallest_tolerance <= self.tolerance

    def _procedure(self) -> list[str]:
        hypothesis = f"error ≥ {self.tolerance:g} tested by inversion"
        return [self.statistic, self.lens, hypothesis]

    def _card(self) -> Card:
        bound = format_value(self.smallest_tolerance, self.smallest_tolerance)
        numbers = (
            ("upper bound", bound, f"wrong in at most {100.0 * self.alpha:g} % of data sets"),
            ("tolerance", f"{self.tolerance:g}", p_is(self.pvalue)),
            (short(self.statistic), format_value(self.estimate), f"{self.lens}, n = {self.n}"),
        )
        row = sketches.IntervalRow(
            "up to the upper bound; line: tolerance",
            self.estimate,
            self.estimate,
            max(self.estimate, self.smallest_tolerance),
            limit=self.tolerance,
        )
        finding, *remarks = self._in_words()
        return Card(
            "within the tolerance" if self.equivalent else "cannot tell",
            tone="good" if self.equivalent else "ask",
            headline=finding,
            numbers=numbers,
            remarks=tuple(remarks),
            drawing=sketches.forest([row], short(self.statistic)),
        )

    def _tables(self) -> list[Columns]:
        names = ("statistic", "lens", "estimate", "tolerance", "pvalue", "smallest_tolerance")
        return [attributes([self], dict(zip(names, names, strict=True)))]

    def _in_words(self) -> list[str]:
        bound = format_value(self.smallest_tolerance, self.smallest_tolerance)
        small = "smaller than" if self.equivalent else "not shown to be smaller than"
        return [
            f"The error is {small} the tolerance {self.tolerance:g} ({p_is(self.pvalue)}).",
            f"It is at most {bound}, which is wrong in at most {100.0 * self.alpha:g} % of data "
            "sets: the smallest tolerance that would be accepted.",
        ]


#: What a gate says of a failure that is in doubt.
DOUBTED_FAILURE = (
    "A lower bound is above its limit, but the data contradict what the bound assumes: this is "
    "neither a pass nor a failure."
)


@dataclass(frozen=True, eq=False)
class GateCheck(Record):
    """One check of a gate: an error, or its increase over another model's, against a limit.

    Attributes
    ----------
    question : str
        The check in words.
    statistic : str
        The statistic, written as in Python.
    estimate : float
        Observed value of the statistic, or difference of the roots of two.
    corrected : float
        Estimate with its noise subtracted.
    low, high : float
        Confidence bounds of the error.
    limit : float
        The tolerance or the margin, in the unit of ``estimate``.
    verdict : GateVerdict
        Passed if ``high`` ≤ ``limit``, failed if ``low`` > ``limit``, or in doubt if the data
        contradict what this bound assumes; else cannot tell.
    rows : int or None
        Rows for which the bounds would be at most ``limit`` apart; None if they already are.
    """

    question: str
    statistic: str
    estimate: float
    corrected: float
    low: float
    high: float
    limit: float
    verdict: GateVerdict
    rows: int | None


@dataclass(frozen=True, eq=False)
class GateResult(Result):
    """Result of :func:`caltest.gate`; ``print`` shows it as a report.

    Attributes
    ----------
    verdict : GateVerdict
        Passed if all checks passed, failed if one failed, else in doubt if one is, else cannot
        tell.
    checks : tuple of GateCheck
        The checks, each with its limit.
    names : tuple of str
        The model, and the model that it is compared with, if any.
    lens : str
        The lens, written as in Python.
    alpha : float
        Upper bound of the probability of a wrong verdict over all checks, in (0, 1).
    doubts : tuple of str
        Why the verdict is in doubt; () if it is not.
    n, n_classes, n_resamples, seed, ended, notes, version
        As for every :class:`Result`.
    """

    verdict: GateVerdict
    checks: tuple[GateCheck, ...]
    names: tuple[str, ...]
    lens: str
    alpha: float
    doubts: tuple[str, ...] = ()
    title: ClassVar[str] = "Calibration gate"
    plotter: ClassVar[str] = "lines.limits"

    def _procedure(self) -> list[str]:
        limits = ", ".join(f"{c.question} ≤ {c.limit:g}" for c in self.checks)
        return [f"gate: {limits}", self.lens, f"alpha={self.alpha:g}"]

    def _tables(self) -> list[Columns]:
        names = {
            "check": "question",
            "statistic": "statistic",
            "estimate": "estimate",
            "debiased": "corrected",
            **{"low": "low", "high": "high", "limit": "limit", "finding": "verdict"},
        }
        return [attributes(self.checks, names)]

    def _checks_with(self, verdict: GateVerdict, sign: str) -> str:
        """Return the checks of one verdict with a bound and the limit, such as "a (0.1 > 0.02)".

        ``sign`` is ">" for the lower bound and "to" for both bounds.
        """
        named = []
        for check in (c for c in self.checks if c.verdict is verdict):
            low, high = (format_value(e, spread_of(check.low, check.high))
                         for e in (check.low, check.high))  # fmt: skip
            bounds = f"{low} > {check.limit:g}"
            bounds = bounds if sign == ">" else f"{low} to {high}, limit {check.limit:g}"
            named.append(f"{check.question} ({bounds})")
        return " and ".join(named)

    def _card(self) -> Card:
        numbers = tuple(
            (
                check.question,
                format_value(check.estimate, spread_of(check.low, check.high)),
                f"{format_range(check.low, check.high)}, limit {check.limit:g}",
            )
            for check in self.checks
        )
        rows = [
            sketches.IntervalRow(
                check.question,
                check.estimate,
                check.low,
                check.high,
                limit=check.limit,
                marked=check.verdict in (GateVerdict.FAILED, GateVerdict.IN_DOUBT),
            )
            for check in self.checks
        ]
        tones: dict[GateVerdict, Tone] = {GateVerdict.PASSED: "good", GateVerdict.FAILED: "bad"}
        headline = {
            GateVerdict.PASSED: "Every upper bound is within its limit.",
            GateVerdict.FAILED: "Lower bound above the limit: "
            f"{self._checks_with(GateVerdict.FAILED, '>')}.",
            GateVerdict.IN_DOUBT: DOUBTED_FAILURE,
            GateVerdict.CANNOT_TELL: "The limit lies between the bounds: "
            f"{self._checks_with(GateVerdict.CANNOT_TELL, 'to')}.",
        }[self.verdict]
        return Card(
            f"Gate {self.verdict}",
            tone=tones.get(self.verdict, "ask"),
            headline=headline,
            numbers=numbers,
            remarks=tuple(words for words in self._in_words()[1:] if words != headline),
            drawing=sketches.forest(rows, "Error and its limit"),
        )

    def _frame_columns(self) -> dict[str, rendering.TypedColumn]:
        return rendering.columns_of_records(self.checks, GateCheck)

    def _in_words(self) -> list[str]:
        words = [f"Verdict: {self.verdict.upper()}"]
        words += [DOUBTED_FAILURE] * (self.verdict is GateVerdict.IN_DOUBT)
        words += [f"This is in doubt: {doubt}." for doubt in self.doubts]
        for check in (c for c in self.checks if c.verdict is GateVerdict.CANNOT_TELL):
            needed = "the truth is close to the limit, more rows may not tell."
            if check.rows is not None:
                needed = (
                    f"about {several(check.rows, 'row')} (there are {self.n}) should decide, "
                    f"unless the true value is within {0.5 * check.limit:g} of the limit."
                )
            words.append(f"{check.question}: {needed}")
        words.append(
            "Low and high are confidence bounds of the true error: a check passes if high ≤ limit, "
            f"and fails if low > limit. A verdict is wrong in at most {100 * self.alpha:g} % of "
            "data sets."
        )
        kinds = {
            mean_error_in_words(self.lens, self.n_classes): any(
                is_mean_error(check.statistic) for check in self.checks
            ),
            "RMS error: root of the mean squared observed − predicted of the bins, noise "
            "subtracted.": any(check.statistic.startswith(ROOT_ERROR) for check in self.checks),
        }
        words += [
            " ".join(
                [
                    *(words for words, so in kinds.items() if so),
                    "Debiased: the estimate minus its bias from noise. The bounds are judged, not "
                    "the estimates.",
                    *lens_in_words(self.lens, self.n_classes),
                ]
            )
        ]
        return words


#: What the rows are needed for.
PLAN_GOALS = {
    "test": "to reject calibration at {alpha:g} in {power:.4g} % of data sets",
    "interval": "for {level:.4g} % intervals of length {width:g}, on average",
    "equivalence": "to show at {alpha:g} an error below {tolerance:g}, in {power:.4g} % of data "
    "sets",
    "comparison": "to show at {alpha:g} which model is better, in {power:.4g} % of data sets",
    "monitoring": "until the alarm is raised in {power:.4g} % of data sets",
}


@dataclass(frozen=True, eq=False)
class Plan(Result):
    """Result of :func:`caltest.plan`.

    Attributes
    ----------
    statistic, lens : str
        Statistic and lens, written as in Python.
    purpose : {"test", "interval", "equivalence", "comparison", "monitoring"}
        What the rows are needed for.
    method : {"formula", "simulation"}
        How ``n`` was computed.
    low, high : int
        95 % interval of ``n`` (Monte Carlo error).
    power : float or None
        Target power, in (0, 1).
    alpha : float
        Level, in (0, 1).
    width : float or None
        Target width of the interval, in the unit of the statistic.
    tolerance : float or None
        Tolerance of an equivalence test.
    like : str
        The distribution of the predictions.
    alternative, assumed : str
        What is true of the rows, written as in Python, and in words.
    points : tuple of (float, float)
        Sample sizes that were tried, each with its power or mean width.
    intervals : tuple of (float, float)
        95 % Monte Carlo interval of the power or mean width at each of ``points``: Clopper–Pearson,
        or Student's. Empty for a formula, and for a monitor, whose points are single alarms.
    present : int or None
        Number of rows that were given.
    n, n_classes, n_resamples, seed, ended, notes, version
        As for every :class:`Result`; ``n_resamples`` counts
        simulated data sets, 0 for a formula; ``n`` is the number of rows that are needed.
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
    tolerance: float | None
    like: str
    alternative: str
    assumed: str
    points: tuple[tuple[float, float], ...]
    intervals: tuple[tuple[float, float], ...]
    present: int | None
    title: ClassVar[str] = "Plan"
    number: ClassVar[str] = "n"
    plotter: ClassVar[str] = "lines.planned"

    @property
    def more(self) -> int | None:
        """Number of rows needed beyond the given ones; None if no rows were given."""
        return None if self.present is None else max(self.n - self.present, 0)

    def _procedure(self) -> list[str]:
        how = f"{self.method}, alpha={self.alpha:g}"
        return [f"plan of {self.purpose}", self.statistic, self.lens, f"like {self.like}", how]

    def _tables(self) -> list[Columns]:
        names = ("purpose", "statistic", "lens", "n")
        table = attributes([self], dict(zip(names, names, strict=True)))
        simulated = {} if self.method == "formula" else {"95 % interval of n": [self._size_range]}
        return [table | simulated]

    @property
    def _size_range(self) -> str:
        return f"{self.low} to {self.high}"

    def _rows(self) -> str:
        return f"n needed={self.n}"

    def _card(self) -> Card:
        how = "by a formula" if self.method == "formula" else f"{self.low} to {self.high}"
        numbers = [("observations", str(self.n), how), ("alpha", f"{self.alpha:g}", self.purpose)]
        if self.power is not None:
            numbers += [("power", f"{self.power:g}", self.statistic)]
        if self.width is not None:
            numbers += [("width", f"{self.width:g}", self.statistic)]
        return replace(super()._card(), numbers=tuple(numbers))

    def _in_words(self) -> list[str]:
        goal = PLAN_GOALS[self.purpose].format(
            alpha=self.alpha, power=100.0 * (self.power or 0.0), level=100.0 * (1.0 - self.alpha),
            width=self.width, tolerance=self.tolerance,
        )  # fmt: skip
        about = "" if self.method == "formula" else f" ({self._size_range}, Monte Carlo)"
        words = [f"{self.n} rows{about} are needed {goal}. Assumed truth: {self.assumed}."]
        if self.present is not None:
            words.append(f"There are {self.present} rows: {self.more or 'no'} more are needed.")
        words += lens_in_words(self.lens, self.n_classes)
        return words


@dataclass(frozen=True, eq=False)
class GradeTest(Record):
    """Test of one grade, or of all grades together.

    Attributes
    ----------
    name : str
        Name of the grade.
    n, events : int
        Number of rows, and of rows with the event.
    rate, probability : float
        Observed event rate and (mean) predicted probability, in [0, 1].
    exact_pvalue : float
        p-value by the (Poisson-)binomial distribution.
    jeffreys_pvalue : float
        p-value by the posterior distribution under Jeffreys' prior.
    adjusted : float
        Holm-adjusted p-value of the method that was asked for.
    interval : tuple of float
        Confidence interval of the event rate by the same method.
    verdict : GradeVerdict
        Verdict by ``adjusted`` at the level of the test.
    unseen : bool
        Whether the prediction lies outside ``interval`` on the side that a one-sided test does not
        look at: above it for the alternative "greater", below it for "less".
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
    unseen: bool = False


#: Tables of more grades than MOST_GRADES_PRINTED print the GRADES_PRINTED with the smallest
#: p-values.
MOST_GRADES_PRINTED, GRADES_PRINTED = 40, 20


@dataclass(frozen=True, eq=False)
class GradeTests(Result):
    """Result of :func:`caltest.grade_tests`.

    Attributes
    ----------
    grades : tuple of GradeTest
        One test a grade.
    portfolio : GradeTest
        Test of all rows together.
    alternative : {"greater", "less", "two-sided"}
        Direction in which the true risk may differ from the predicted one.
    method : {"exact", "jeffreys"}
        The p-values that are adjusted and judged.
    alpha : float
        Upper bound of the probability of any wrong finding; intervals have level 1 − ``alpha``.
    n, n_classes, n_resamples, seed, ended, notes, version
        As for every :class:`Result`.
    """

    grades: tuple[GradeTest, ...]
    portfolio: GradeTest
    alternative: str
    method: str
    alpha: float
    title: ClassVar[str] = "Tests of grades"
    plotter: ClassVar[str] = "forests.grades"

    @property
    def rejected(self) -> tuple[GradeTest, ...]:
        """Grades, and the portfolio if there are several, whose probability is rejected."""
        rows = self.grades if len(self.grades) == 1 else (*self.grades, self.portfolio)
        return tuple(row for row in rows if row.verdict is not GradeVerdict.NO_EVIDENCE)

    @property
    def printed(self) -> tuple[GradeTest, ...]:
        """Grades of the printed table: all, or of more than 40 the 20 of smallest p-value."""
        if len(self.grades) <= MOST_GRADES_PRINTED:
            return self.grades
        pvalue = f"{self.method}_pvalue"
        strongest = sorted(self.grades, key=lambda row: (row.adjusted, getattr(row, pvalue)))
        return tuple(strongest[:GRADES_PRINTED])

    def _procedure(self) -> list[str]:
        how = {"exact": "exact binomial", "jeffreys": "Jeffreys"}[self.method]
        words = f"{how} tests of {several(len(self.grades), 'grade')}, {self.alternative}"
        return [words, f"Holm, alpha={self.alpha:g}", f"{100 * (1 - self.alpha):g} % intervals"]

    def _tables(self) -> list[Columns]:
        names = {
            **{"grade": "name", "n": "n", "events": "events", "rate": "rate"},
            "predicted": "probability",
            "exact_pvalue": "exact_pvalue",
            "Jeffreys_pvalue": "jeffreys_pvalue",
            **{"Holm_adjusted": "adjusted", "interval": "interval", "finding": "verdict"},
        }
        return [attributes((*self.printed, self.portfolio), names)]

    def _card(self) -> Card:
        verdict, *remarks = self._in_words()
        worst = min(self.grades, key=lambda row: row.adjusted)
        numbers = tuple(
            (
                row.name,
                f"{row.events} of {row.n}",
                f"predicted {row.n * row.probability:.4g}, {p_is(row.adjusted, 'adjusted p')}",
            )
            for row in ((worst,) if worst is self.portfolio else (worst, self.portfolio))
        )
        rows = [
            sketches.IntervalRow(
                row.name,
                row.rate,
                *row.interval,
                limit=row.probability,
                marked=row.verdict is not GradeVerdict.NO_EVIDENCE,
            )
            for row in self.printed
        ]
        return Card(
            "miscalibrated" if self.rejected else "no evidence",
            tone="bad" if self.rejected else "plain",
            headline=verdict.removeprefix("Verdict: "),
            numbers=numbers,
            remarks=tuple(remarks),
            drawing=sketches.forest(rows, "Event rate; line: predicted", reference=None),
        )

    def _frame_columns(self) -> dict[str, rendering.TypedColumn]:
        return rendering.columns_of_records(self.grades, GradeTest)

    def _in_words(self) -> list[str]:
        names: dict[str, list[str]] = {}
        for row in self.rejected:
            if row is not self.portfolio:
                names.setdefault(row.verdict, []).append(row.name)
        wrong = "; ".join(f"{v} in {first_of(each, GRADES_PRINTED)}" for v, each in names.items())
        several_grades = len(self.grades) > 1
        whole = f"Portfolio: {self.portfolio.verdict}. " if several_grades else ""
        none = f"no evidence in any of {len(self.grades)}" if several_grades else "no evidence"
        independent = "Events are taken to be independent. Where one cause brings many at once, "
        independent += "these p-values are too small."
        all_tests = "Findings are adjusted for multiplicity. Each interval is for one grade. "
        return [
            f"Verdict: {whole}Grades: {wrong or none}.{self._other_side()}",
            *self._one_side(),
            all_tests * several_grades + independent,
            *self._left_out(),
        ]

    def _one_side(self) -> list[str]:
        sides = {"greater": "higher", "less": "lower"}
        if self.alternative not in sides:
            return []
        return [
            f"The test asks whether risks are {sides[self.alternative]} than predicted; "
            'the alternative "two-sided" tests both directions.'
        ]

    def _other_side(self) -> str:
        """Return a sentence, after a blank, on predictions that a one-sided test cannot reject.

        They lie beyond their interval on the side that the alternative leaves out: above it for
        "greater", below it for "less". It is "" if there are none, or no more than by chance.
        """
        several_grades = len(self.grades) > 1
        unseen = [row.name for row in self.grades if row.unseen]
        # Some intervals of many grades miss by chance: up to three standard deviations above that
        chance = 0.5 * self.alpha * len(self.grades)
        if len(self.grades) > MOST_GRADES_PRINTED and len(unseen) <= chance + 3.0 * chance**0.5:
            unseen = []
        if not self.portfolio.unseen and not unseen:
            return ""
        side = "above" if self.alternative == "greater" else "below"
        where = []
        if self.portfolio.unseen or not several_grades:
            row = self.portfolio
            low, high, p = (f"{100.0 * each:.4g}" for each in (*row.interval, row.probability))
            whole = " of the portfolio" * several_grades
            where += [f"the prediction{whole} ({p} %) is {side} the interval ({low} to {high} %)"]
        if unseen and several_grades:
            which = ", ".join(unseen) if len(unseen) <= GRADES_PRINTED else ""
            which = f" ({which})" * bool(which)
            count = f"{len(unseen)} of {len(self.grades)} grades{which}"
            where += [f"predictions are {side} the interval in {count}"]
        said = "; ".join(where)
        more = spelt("alternative='two-sided' (--alternative two-sided)")
        return f" But {said}: this one-sided test does not look there; {more} does."

    def _left_out(self) -> list[str]:
        """Return a sentence on grades that the table leaves out, or []."""
        left = len(self.grades) - len(self.printed)
        if not left:
            return []
        return [
            f"The table shows the {len(self.printed)} grades with the smallest p-values; the "
            f"result's JSON and data frame have the other {left}."
        ]


# ------------------------------------------------------------------------------
# Results in the user's units: promised against realised utility, and decision curves.


@dataclass(frozen=True, eq=False)
class PromiseResult(Result):
    """Result of :func:`caltest.promise`.

    Attributes
    ----------
    utility, lens : str
        The utility and the lens, as they would be written in Python.
    promised, realised : float
        Mean utility per observation that the probabilities promise, and that was gained.
    difference : float
        ``realised`` − ``promised``.
    z : float
        The difference in standard deviations under calibration.
    pvalue : float
        Two-sided p-value of calibration.
    exact : bool
        Whether the p-value is computed from the exact law; else it is simulated.
    low, high, level : float
        Confidence interval of the expected realised utility, and its level.
    actions, shares : tuple of str, tuple of float
        Names of the actions and the shares of observations in which each is taken; empty for a
        utility without actions.
    clusters : ClusterSummary or None
        Clusters, and the dependence within them (λ) that the null distribution allows for.
    unit : str
        What the utility is, in words; "" where its author does not say.
    n, n_classes, n_resamples, seed, ended, notes, version
        As for every :class:`Result`.
    """

    utility: str
    lens: str
    promised: float
    realised: float
    difference: float
    z: float
    pvalue: float
    exact: bool
    low: float
    high: float
    level: float
    actions: tuple[str, ...] = ()
    shares: tuple[float, ...] = ()
    clusters: ClusterSummary | None = None
    unit: str = ""
    title: ClassVar[str] = "Promised and realised utility per observation"
    number: ClassVar[str] = "difference"
    plotter: ClassVar[str] = "forests.promise"

    def _procedure(self) -> list[str]:
        return [f"promise({self.utility})", "exact null" if self.exact else "redrawn labels"]

    def _tables(self) -> list[Columns]:
        names = ("promised", "realised", "difference", "z", "pvalue")
        table = attributes([self], dict(zip(names, names, strict=True)))
        tables: list[Columns] = [table | {"z": [f"{self.z:.2f}"]}]
        if self.actions:
            shares = [f"{100 * share:.1f} %" for share in self.shares]
            tables.append({"action": list(self.actions), "share of rows": shares})
        return tables

    def _card(self) -> Card:
        z = f"{self.z:+.1f} sd" if self.z else ""
        numbers = (
            ("promised", f"{self.promised:.4g}", "per observation"),
            ("realised", f"{self.realised:.4g}", f"{self.low:.4g} to {self.high:.4g}"),
            ("p", format_p(self.pvalue), z),
        )
        finding, *remarks = self._in_words()
        if self.pvalue > 1.0 - self.level:
            return Card("no evidence", "plain", finding, numbers, tuple(remarks))
        return Card("miscalibrated", "bad", finding, numbers, tuple(remarks))

    def _in_words(self) -> list[str]:
        spread = abs(self.difference / self.z) if self.z else abs(self.difference)
        promised, realised = (format_value(v, spread) for v in (self.promised, self.realised))
        low, high = (format_value(v, self.high - self.low) for v in (self.low, self.high))
        p = f"test of calibration: {p_is(self.pvalue)}"
        finding = (
            f"The realised mean utility, {realised} per observation, is compatible with the "
            f"promised {promised} ({p})."
        )
        if self.pvalue <= 1.0 - self.level:
            side = "more" if self.difference > 0.0 else "less"
            finding = (
                f"The realised mean utility is {realised} per observation, {side} than the "
                f"promised {promised} ({p}): the probabilities are miscalibrated."
            )
        return [
            finding,
            f"The {self._percent} interval of the true mean utility is {low} to {high}.",
            *([f"Utility: {self.unit}."] if self.unit else []),
            *([] if self.clusters is None else [f"Clusters: {self.clusters}."]),
        ]


@dataclass(frozen=True, eq=False)
class DecisionCurve(Result):
    """Result of :func:`caltest.decision_curve`: net benefit at each threshold.

    Attributes
    ----------
    lens : str
        The lens, as it would be written in Python.
    thresholds : ndarray of shape (T,)
        Probabilities from which on one acts, ascending.
    net_benefit, low, high : ndarray of shape (T,)
        Net benefit of acting on the model, per observation in true positives, and pointwise
        confidence limits.
    low_all, high_all : ndarray of shape (T,)
        Simultaneous limits: they contain the whole curve with probability ``level``.
    promised : ndarray of shape (T,)
        Net benefit that the probabilities promise.
    treat_all : ndarray of shape (T,)
        Net benefit of acting always; never acting has net benefit 0.
    pvalues : ndarray of shape (T,)
        Exact two-sided p-values of promised against realised net benefit, not adjusted.
    critical : float
        Standard errors to which the simultaneous limits reach.
    useful : ndarray
        Thresholds at which acting on the model is shown to gain more than acting never and more
        than acting always, by lower limits that hold together for both and all thresholds.
    against : str
        Name of the other model, "" without one.
    other : ndarray of shape (T,)
        Net benefit of the other model; empty without one.
    difference, difference_low, difference_high : ndarray of shape (T,)
        Net benefit of the model less the other's, with simultaneous limits; empty without.
    clusters : ClusterSummary or None
        Clusters, and the dependence within them (λ) that p-values allow for.
    level : float
        Level of all limits.
    n, n_classes, n_resamples, seed, ended, notes, version
        As for every :class:`Result`.
    """

    lens: str
    thresholds: FloatArray
    net_benefit: FloatArray
    low: FloatArray
    high: FloatArray
    low_all: FloatArray
    high_all: FloatArray
    promised: FloatArray
    treat_all: FloatArray
    pvalues: FloatArray
    critical: float
    useful: FloatArray
    level: float
    against: str
    other: FloatArray
    difference: FloatArray
    difference_low: FloatArray
    difference_high: FloatArray
    clusters: ClusterSummary | None = None
    title: ClassVar[str] = "Decision curve"
    plotter: ClassVar[str] = "lines.decision_curve"

    def _procedure(self) -> list[str]:
        many = f"{len(self.thresholds)} thresholds"
        return ["decision_curve", many, f"{self._percent} limits, {self.critical:.2f} se together"]

    def _tables(self) -> list[Columns]:
        step = max(1, len(self.thresholds) // 10)
        shown = slice(None, None, step)
        table: dict[str, list[str]] = {
            "threshold": [f"{t:.3g}" for t in self.thresholds[shown]],
            "net benefit": [f"{v:.4f}" for v in self.net_benefit[shown]],
            "pointwise": _spans(self.low[shown], self.high[shown]),
            "simultaneous": _spans(self.low_all[shown], self.high_all[shown]),
            "promised": [f"{v:.4f}" for v in self.promised[shown]],
            "act always": [f"{v:.4f}" for v in self.treat_all[shown]],
        }
        if self.against:
            table["difference"] = [f"{v:+.4f}" for v in self.difference[shown]]
            table["of it"] = _spans(self.difference_low[shown], self.difference_high[shown])
        return [table]

    def _card(self) -> Card:
        shown = "none shown"
        if self.useful.size:
            shown = f"{self.useful.min():.3g} to {self.useful.max():.3g}"
        best = int(np.argmax(self.net_benefit - np.maximum(self.treat_all, 0.0)))
        numbers = (
            ("useful thresholds", shown, f"{self._percent} confidence for all together"),
            ("best threshold", f"{self.thresholds[best]:.3g}", "largest gain over acting always"),
            ("net benefit there", f"{self.net_benefit[best]:.4f}", "true positives per row"),
        )
        axes = ("Threshold", "Net benefit")
        curve = line(self.thresholds, self.net_benefit, axes, band=(self.low_all, self.high_all))
        drawing = curve if len(self.thresholds) > 1 else ""
        return replace(super()._card(), numbers=numbers, drawing=drawing)

    def _in_words(self) -> list[str]:
        if self.useful.size:
            ends = f"{self.useful.min():.3g} to {self.useful.max():.3g}"
            said = [
                "Acting on the model gains more than acting always or never at thresholds from "
                f"{ends}, with {self._percent} confidence for all thresholds together."
            ]
        else:
            said = [
                "At no threshold is it shown that acting on the model gains more than acting "
                "always or never."
            ]
        if self.against:
            better = self.thresholds[self.difference_low > 0.0]
            worse = self.thresholds[self.difference_high < 0.0]
            for words, at in (("more", better), ("less", worse)):
                if at.size:
                    ends = f"{at.min():.3g} to {at.max():.3g}"
                    said += [f"It gains {words} than {self.against} at thresholds from {ends}."]
            if not better.size and not worse.size:
                said += [f"A difference from {self.against} is shown at no threshold."]
        return said


def _spans(low: FloatArray, high: FloatArray) -> list[str]:
    return [f"{a:.4f} to {b:.4f}" for a, b in zip(low, high, strict=True)]
