"""Results of tests and comparisons.

:class:`CalibrationTestResult` is the result of one test, with its null distribution;
:class:`ComparisonResult` compares two models, :class:`ComparisonTable` several.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from math import sqrt
from statistics import NormalDist
from typing import ClassVar, Protocol

from caltest._base.arrays import RNG, FloatArray
from caltest._base.written import several
from caltest.results import rendering, sketches
from caltest.results.base import (
    ClusterSummary,
    Record,
    Result,
    Subgroups,
    short,
    with_meaning,
)
from caltest.results.rendering import (
    Card,
    Columns,
    aligned,
    attributes,
    format_p,
    format_range,
    format_value,
    in_sd,
    listed,
    p_is,
    spread_of,
    with_sd,
)
from caltest.results.verdicts import ComparisonVerdict

#: So few draws may all be alike by chance.
FEW_DRAWS = 20


#: Pairs with a better model that a notebook names.
MOST_FOUND = 3


#: The columns of a test, of one or of several.
SHOWN_OF_TEST = ("statistic", "lens", "shown_estimate", "shown_floor", "shown_p")


@dataclass(frozen=True, eq=False)
class CalibrationTestResult(Result):
    """Result of :func:`caltest.calibration_test`.

    Attributes
    ----------
    statistic, lens, null : str
        Statistic, lens and null distribution, written as in Python; ``null`` is "exact" where
        nothing was simulated.
    estimate : float
        Observed value of the statistic, in its unit.
    pvalue : float
        P(T ≥ ``estimate``) under calibration, in (0, 1]: the upper end of ``pvalue_bracket`` when
        exact, (1 + b) / (1 + B) when simulated.
    pvalue_bracket : tuple of float
        Bounds of the exact p-value; a 99 % confidence interval (Clopper–Pearson) when simulated.
    pvalue_error : float
        Monte Carlo standard error of ``pvalue``; 0 for an exact null distribution.
    null_mean : float
        Mean of the statistic under calibration: the noise floor.
    null_std : float
        Standard deviation of the statistic under calibration, ≥ 0.
    two_sided : bool
        Whether small values of the statistic also contradict calibration.
    centre : float
        Value from which a two-sided estimate is measured.
    impossible : int
        Observed labels whose predicted probability was exactly 0. One refutes calibration.
    clusters : ClusterSummary or None
        Clusters and their dependence.
    subgroups : Subgroups or None
        With ``by``: the test in each subgroup.
    of_items : bool
        Whether the null hypothesis is that the probabilities of every single item are right.
    null_distribution : ExactNull, SimulatedNull, AsymptoticNull or None
        The null distribution. It is not part of JSON, nor of comparisons with ``==``.
    n, n_classes, n_resamples, seed, ended, notes, version
        As for every :class:`Result`.
    """

    statistic: str
    lens: str
    null: str
    estimate: float
    pvalue: float
    pvalue_bracket: tuple[float, float]
    pvalue_error: float
    null_mean: float
    null_std: float
    two_sided: bool
    centre: float
    impossible: int
    clusters: ClusterSummary | None = None
    subgroups: Subgroups | None = None
    of_items: bool = False
    null_distribution: NullDistribution | None = field(
        default=None, repr=False, compare=False, metadata={"transient": True}
    )
    title: ClassVar[str] = "Test of calibration"
    number: ClassVar[str] = "estimate"
    plotter: ClassVar[str] = "lines.null"
    of_subgroups: ClassVar[tuple[str, ...]] = ("shown_estimate", "shown_floor", "shown_p")

    def _procedure(self) -> list[str]:
        approximate = ", approximate" * (self.folds is not None)
        return [self.statistic, self.lens, f"{self.null} null{approximate}"]

    def _tables(self) -> list[Columns]:
        return [attributes([self], {name: name for name in SHOWN_OF_TEST})]

    def _card(self) -> Card:
        betting = self.null == "betting"
        floor = "e-value" if betting else f"noise floor {self.shown_floor}"
        numbers = (
            (short(self.statistic), self.shown_estimate, floor),
            ("p-value", self.shown_p, f"{self.null} null"),
            ("observations", str(self.n), f"{self.lens}{self._design}"),
        )
        drawing = "" if betting else sketches.forest([self.row_of_forest()], short(self.statistic))
        return replace(super()._card(), numbers=numbers, drawing=drawing)

    def row_of_forest(self, label: str = "", *, marked: bool = False) -> sketches.IntervalRow:
        """Return this result as the row of a forest plot: estimate and noise floor ± 2 sd.

        ``label`` names the row, by default by the lens, and ``marked`` fills its point. The lower
        end of the floor of an error is at least 0. The IntervalRow has these as fields.
        """
        low, high = self.null_mean - 2.0 * self.null_std, self.null_mean + 2.0 * self.null_std
        floor = (low if self.two_sided else max(low, 0.0), high)
        label = label or f"{self.lens}, grey: noise floor"
        return sketches.IntervalRow(label, self.estimate, floor=floor, marked=marked)

    def certain_error(self, alpha: float) -> tuple[float, float]:
        """Return (bound, estimate): a lower bound of the error, at least 0, by which errors rank.

        By the triangle inequality the estimate is at most the true error plus the error of pure
        noise, whose 1 − ``alpha`` quantile (normal approximation) is subtracted.
        """
        size = abs(self.estimate - self.centre) if self.two_sided else self.estimate
        floor = 0.0 if self.two_sided else self.null_mean
        noise = floor - NormalDist().inv_cdf(alpha) * self.null_std
        return max(0.0, size - noise), size  # 0 also where the spread of bets is not known

    @property
    def excess(self) -> float:
        """Estimate − noise floor; not an estimate of the true error."""
        return self.estimate - self.null_mean

    @property
    def degenerate(self) -> bool:
        """True if the null distribution is a single value, so that no outcome can be evidence.

        False for a Monte Carlo null of few draws, which may agree by chance.
        """
        alike = self.null_std <= 1e-12 * abs(self.null_mean)  # but for rounding
        return alike and self.pvalue == 1.0 and not 0 < self.n_resamples < FEW_DRAWS

    @property
    def shown_p(self) -> str:
        """p-value as printed, with "<" or "≤" at the resolution of the null distribution."""
        if self.n_resamples == 0 and self.pvalue_bracket[0] == 0.0:
            return "< " + format_p(self.pvalue).removeprefix("< ")
        return format_p(self.pvalue, floor=self.at_floor)

    @property
    def at_floor(self) -> bool:
        """True if no replicate reached the estimate, so that p is 1 / (1 + replicates)."""
        return self.n_resamples > 0 and self.pvalue * (1 + self.n_resamples) < 1.0 + 1e-9

    @property
    def shown_estimate(self) -> str:
        """Estimate as printed."""
        return format_value(self.estimate, self.null_std)

    @property
    def shown_floor(self) -> str:
        """Noise floor as printed: mean ± standard deviation of the statistic under calibration."""
        if self.null == "betting":
            return "at most 1 on average"
        return with_sd(self.null_mean, self.null_std)

    def _facts(self) -> list[str]:
        betting = self.null == "betting"
        floor = "" if betting else "  (mean ± standard deviation, sd, under calibration)"
        deviations = f", {in_sd(self.excess, self.null_std)}" if self.null_std > 0 else ""
        if self.n_resamples:
            resamples = several(self.n_resamples, "resample")
            precision = f"{resamples}, Monte Carlo error {self.pvalue_error:.1g}"
        elif self.null == "exact":
            law = "exact" if self.folds is None else "approximate: exact for independent rows"
            low, high = (f"{end:.4g}" for end in self.pvalue_bracket)
            precision = law
            if low != high:
                precision = (
                    f"{law} up to rounding: at most {high}"
                    if low == "0"
                    else f"{law}: {low} to {high}"
                )
        elif betting:
            precision = "1 / e-value, valid at every n"
        else:
            precision = f"{self.null}: not exact"
        facts = {
            "statistic": with_meaning(self.statistic, self.n_classes, self.lens),
            "lens": with_meaning(self.lens, self.n_classes),
            "event": self.event_name,
            "estimate": self.shown_estimate,
            "noise floor": self.shown_floor + floor,
            "excess": "" if betting else f"{format_value(self.excess, self.null_std)}{deviations}",
            "p-value": f"{self.shown_p}  ({precision})",
            "data": f"n = {self.n}, K = {self.n_classes}{self._design}",
            "clusters": "" if self.clusters is None else str(self.clusters),
            "horizon": "" if self.series is None else str(self.series),
            "folds": "" if self.folds is None else str(self.folds),
        }
        return [*listed({name: text for name, text in facts.items() if text}), ""]

    def _in_words(self) -> list[str]:
        if self.degenerate:
            finding = "The null distribution is a single value: these predictions cannot be tested."
        elif self.null == "betting":
            finding = (
                f"The e-value is {self.estimate:.4g}: bets against calibration multiplied 1 by it."
            )
        else:
            chance = f"about {max(1, round(1000 * self.pvalue))} in 1000"
            chance = chance if self.pvalue >= 0.0005 else "fewer than 1 in 1000"
            model = "model whose probabilities are right for every item"
            model = model if self.of_items else "calibrated model"
            finding = (
                f"A {model} would show an error at least this large in {chance} such data sets."
            )
        sentences = [finding]
        if self.impossible:
            sentences.append(
                f"{several(self.impossible, 'observed outcome')} had predicted probability exactly "
                "0: that alone refutes calibration, unless the file was rounded."
            )
        if self.ended == "early":
            early = "Stopped early (Besag & Clifford 1991): the p-value is valid as it is."
            sentences.append(early)
        return sentences


@dataclass(frozen=True, eq=False)
class JointTestResult(Result):
    """Result of :func:`caltest.joint_test`.

    Attributes
    ----------
    tests : tuple of CalibrationTestResult
        One test a pair of statistic and lens, with unadjusted p-values.
    adjusted : tuple of float
        Step-down adjusted p-values in the order of ``tests``.
    pvalue : float
        Smallest adjusted p-value: it tests all hypotheses together.
    adjust : {"max-T", "Holm"}
        How p-values were adjusted.
    subgroups : Subgroups or None
        With ``by``: the same tests in each subgroup.
    n, n_classes, n_resamples, seed, ended, notes, version
        As for every :class:`Result`.
    """

    tests: tuple[CalibrationTestResult, ...]
    adjusted: tuple[float, ...]
    pvalue: float
    adjust: str = "max-T"
    subgroups: Subgroups | None = None
    title: ClassVar[str] = "Joint test of calibration"
    plotter: ClassVar[str] = "forests.adjusted"
    of_subgroups: ClassVar[tuple[str, ...]] = ("pvalue",)

    def certain_error(self, alpha: float) -> tuple[float, float]:
        """Return (bound, estimate) of the largest error measured by the first statistic.

        The bound is a lower bound at level 1 − ``alpha`` over all lenses together.
        """
        alike = [test for test in self.tests if test.statistic == self.tests[0].statistic]
        return max(test.certain_error(alpha / len(alike)) for test in alike)

    def _procedure(self) -> list[str]:
        pairs = ", ".join(f"({test.statistic}, {test.lens})" for test in self.tests)
        return [f"[{pairs}]", self.adjust, f"{self.tests[0].null} null"]

    def _tables(self) -> list[Columns]:
        names = {name: name for name in SHOWN_OF_TEST}
        return [{**attributes(self.tests, names), "adjusted p": self.adjusted}]

    def _card(self) -> Card:
        rejected = min(self.tests, key=lambda test: test.pvalue)
        p = ("p-value", format_p(self.pvalue), f"all together, {self.adjust}")
        most = (
            "strongest",
            short(rejected.statistic),
            f"{rejected.lens}, {p_is(rejected.shown_p)}",
        )
        tested = ("tests", str(len(self.tests)), f"{self.tests[0].null} null, n = {self.n}")
        return replace(super()._card(), numbers=(p, most, tested))

    def _frame_columns(self) -> dict[str, rendering.TypedColumn]:
        tests = rendering.columns_of_records(self.tests, CalibrationTestResult)
        return tests | rendering.columns_of_arrays({"adjusted": self.adjusted})

    def _in_words(self) -> list[str]:
        source = {"max-T": "max-T, Westfall & Young 1993", "Holm": "Holm 1979"}[self.adjust]
        return [f"All together: {p_is(self.pvalue)} ({source})"]


# ------------------------------------------------------------------------------
# The answers of a comparison, of two models or of several.


def _as_forecasts(n_classes: int, level: float) -> str:
    """Return the heading of the lines that compare mean proper scores.

    ``n_classes`` decides whether it names the whole vector; ``level`` is the intervals' level.
    """
    of = " of all classes" * (n_classes > 2)
    intervals = f"{100.0 * level:.4g} % intervals; p adjusted for all scores"
    return (
        f"  Mean scores{of} (proper scores; lower is better; not a calibration test; {intervals}):"
    )


@dataclass(frozen=True, eq=False)
class ScoreDifference(Record):
    """Difference of two models in a proper score of whole predictions; lower scores are better.

    Attributes
    ----------
    score : {"Brier", "log"}
        Brier score Σ_k (p_k − 1{y = k})², (p − y)² for two classes; or log score −log p_y, in nats.
    mean_a, mean_b : float or None
        Mean score of each model; None where a log score is infinite.
    difference : float or None
        ``mean_a`` − ``mean_b``.
    low, high : float or None
        Confidence interval of the difference by a t-test, paired if rows are.
    pvalue : float or None
        Two-sided p-value of equal means by the same test.
    adjusted : float or None
        The same, Holm-adjusted over all scores of the comparison (in a table, of all its pairs); it
        decides which model makes the better forecasts.
    """

    score: str
    mean_a: float | None
    mean_b: float | None
    difference: float | None
    low: float | None
    high: float | None
    pvalue: float | None
    adjusted: float | None = None

    def better(self, names: tuple[str, str], level: float) -> str:
        """Return "A is better", or "cannot tell", as the finding on this score.

        ``names`` are the models' names in messages, a then b. A model is better if the p-value,
        adjusted where there is one, is at most 1 − ``level``, the confidence level. If a log score
        is infinite, the phrase says so instead.
        """
        pvalue = self.pvalue if self.adjusted is None else self.adjusted
        if self.difference is None or pvalue is None:
            return "infinite: an outcome had predicted probability 0"
        better = names[0] if self.difference < 0.0 else names[1]
        return f"{better} is better" if pvalue <= 1.0 - level else "cannot tell"

    def in_words(self, names: tuple[str, str], level: float) -> str:
        """Return a line with both mean scores, the difference a − b, its interval and the finding.

        ``names`` are the models' names, a then b, and ``level`` is the confidence level, as in
        :meth:`better`.
        """
        a, b, better = self.mean_a, self.mean_b, self.better(names, level)
        if a is None or b is None or self.low is None or self.high is None:
            return f"{self.score:<15}{better}."
        first, second, difference = (
            format_value(value, spread_of(self.low, self.high)) for value in (a, b, a - b)
        )
        adjusted = self.pvalue if self.adjusted is None else self.adjusted
        interval = format_range(self.low, self.high)
        means = f"{self.score:<15}{first} and {second}, difference {difference}"
        how = "p" if self.adjusted is None else "adjusted p"
        return f"{means} ({interval}), {p_is(adjusted or 0.0, how)}: {better}"


@dataclass(frozen=True, eq=False)
class ComparisonResult(Result):
    """Result of :func:`caltest.compare` for two models.

    Attributes
    ----------
    statistic : str
        The statistic that was asked for, written as in Python.
    tested : str
        The statistic that was tested. It differs from ``statistic`` if no valid test of that is
        known.
    lens : str
        The lens, written as in Python.
    method : {"z", "swap"}
        How the p-value was computed.
    hypothesis : str
        The null hypothesis, in words.
    names : tuple of str
        The two models.
    estimate_a, estimate_b : float
        The tested statistic of each model.
    difference : float
        ``estimate_a`` − ``estimate_b``: negative if the first model is better calibrated.
    pvalue : float
        Two-sided p-value, in (0, 1].
    pvalue_error : float
        Monte Carlo standard error of ``pvalue``.
    low, high : float or None
        Confidence interval of the difference; None with ``method="swap"``.
    level : float
        Confidence level, in (0, 1).
    margin : float
        Differences of root mean squared errors up to it count as ties.
    verdict : ComparisonVerdict
        The verdict as a code; ``finding`` says it with names.
    test_a, test_b : CalibrationTestResult
        Each model's own test, with its noise floor.
    interval_a, interval_b : tuple of float or None
        Confidence interval of ``statistic`` for each model, as :func:`confidence_interval` computes
        it.
    scores : tuple of ScoreDifference
        Differences in proper scores: which model makes the better forecasts. Some tallies have
        none.
    paired : bool
        Whether rows of both models are the same observations.
    subgroups : Subgroups or None
        The comparison in every subgroup.
    n, n_classes, n_resamples, seed, ended, notes, version
        As for every :class:`Result`; ``n_resamples`` counts
        replicates for ``pvalue``, 0 for ``method="z"``; ``n`` counts rows of the first model.
    """

    statistic: str
    tested: str
    lens: str
    method: str
    hypothesis: str
    names: tuple[str, str]
    estimate_a: float
    estimate_b: float
    difference: float
    pvalue: float
    pvalue_error: float
    low: float | None
    high: float | None
    level: float
    margin: float
    verdict: ComparisonVerdict
    test_a: CalibrationTestResult
    test_b: CalibrationTestResult
    interval_a: tuple[float, float] | None
    interval_b: tuple[float, float] | None
    scores: tuple[ScoreDifference, ...]
    paired: bool
    subgroups: Subgroups | None = None
    of_all: ClassVar[str] = "equal error in every subgroup"
    number: ClassVar[str] = "difference"
    plotter: ClassVar[str] = "forests.differences"
    of_subgroups: ClassVar[tuple[str, ...]] = ("difference", "low", "high", "pvalue")

    def certain_error(self, alpha: float) -> tuple[float, float]:
        """Return (distance of the interval of the difference from 0, |difference|).

        Comparisons of subgroups are ranked by it. The distance is 0 if the interval contains 0, or
        there is none. ``alpha`` is not used, as the interval has its own level.
        """
        ends = (0.0,) if self.low is None or self.high is None else (self.low, -self.high, 0.0)
        return max(ends), abs(self.difference)

    @property
    def finding(self) -> str:
        """Verdict of this comparison in words, with the name of the better model, if any."""
        return self.verdict.about(self.names)

    @property
    def spread(self) -> float:
        """A quarter of the length of the interval of the difference, about one standard error.

        It is NaN without an interval.
        """
        return spread_of(self.low, self.high)

    @property
    def pvalue_a(self) -> float:
        """p-value of the first model's own test."""
        return self.test_a.pvalue

    @property
    def pvalue_b(self) -> float:
        """p-value of the second model's own test."""
        return self.test_b.pvalue

    def _procedure(self) -> list[str]:
        return [f"difference of {self.tested}", self.lens, self.method]

    def _tables(self) -> list[Columns]:
        names = (
            *("tested", "lens", "estimate_a", "estimate_b"),
            *("difference", "low", "high", "pvalue", "finding"),
        )
        return [attributes([self], dict(zip(names, names, strict=True)))]

    def _card(self) -> Card:
        finding, *more = self._in_words()
        tests, intervals = (self.test_a, self.test_b), (self.interval_a, self.interval_b)
        models = [*zip(self.names, tests, intervals, strict=True)]
        numbers = [
            (
                name,
                test.shown_estimate,
                f"noise floor {test.shown_floor}, {p_is(test.shown_p, 'own p')}",
            )
            for name, test, _ in models
        ]
        ends = "" if self.low is None or self.high is None else format_range(self.low, self.high)
        interval = f"{self._percent} interval {ends}, " * bool(ends)
        between = f"{interval}{p_is(self.pvalue)}, margin {self.margin:g}"
        numbers += [("difference", format_value(self.difference, self.spread), between)]
        scores = [score.in_words(self.names, self.level) for score in self.scores]
        of_scores = ["As forecasts (lower is better):"] * bool(scores)
        rows = [
            test.row_of_forest(name)
            if ends is None
            else sketches.IntervalRow(name, test.estimate, *ends)
            for name, test, ends in models
        ]
        return Card(
            str(self.verdict) if self.verdict.better is None else "difference found",
            tone="ask" if self.verdict is ComparisonVerdict.CANNOT_TELL else "plain",
            headline=finding,
            numbers=tuple(numbers),
            remarks=(*more, *of_scores, *scores),
            drawing=sketches.forest(rows, short(self.test_a.statistic)),
        )

    def _frame_columns(self) -> dict[str, rendering.TypedColumn]:
        return _named_pairs([self])

    def _rows(self) -> str:
        return f"n={self.n} paired" if self.paired else f"n={self.n} and {self.test_b.n}"

    def _facts(self) -> list[str]:
        (a, b), tests = self.names, (self.test_a, self.test_b)
        rows: dict[str, tuple[str, ...]] = {"": self.names}
        if self.method != "swap":
            estimates = self.estimate_a, self.estimate_b
            rows["squared calibration error"] = tuple(_with_root(x, self.spread) for x in estimates)
        if self.tested != self.statistic or self.method == "swap":
            rows["estimate"] = tuple(test.shown_estimate for test in tests)
        if self.interval_a is not None and self.interval_b is not None:
            intervals = self.interval_a, self.interval_b
            rows[f"{self._percent} interval"] = tuple(format_range(*ends) for ends in intervals)
        rows["noise floor"] = tuple(test.shown_floor for test in tests)
        rows["p of calibration"] = tuple(test.shown_p for test in tests)
        width, between = max(26, *(len(left) for left, _ in rows.values())) + 2, ""
        name_width = max(15, *(len(name) + 2 for name in rows))
        columns = [
            f"  {name:<{name_width}}{left:<{width}}{right}".rstrip()
            for name, (left, right) in rows.items()
        ]
        if self.low is not None and self.high is not None:
            ends = format_range(self.low, self.high)
            between = f"  ({a} − {b}; {self._percent} interval {ends})"
        resamples = f", {self.n_resamples} resamples" if self.n_resamples else ""
        test = "z-test" if self.method == "z" else self.method
        how = f"{test}, {'paired' if self.paired else 'independent'} rows{resamples}"
        difference = f"  {'difference':<{name_width}}"
        difference += f"{format_value(self.difference, self.spread)}{between}"
        pvalue = f"  {'p-value':<{name_width}}{format_p(self.pvalue)}  ({how})"
        return [*_head(f"{a} and {b}", self), *columns, "", difference, pvalue, ""]

    def _appendix(self) -> list[str]:
        scores = [f"  {score.in_words(self.names, self.level)}" for score in self.scores]
        return [
            *(["", _as_forecasts(self.n_classes, self.level), *scores] if scores else []),
            *super()._appendix(),
        ]

    def _in_words(self) -> list[str]:
        """Return the verdict in sentences.

        If only one model's own test rejects, a sentence warns that this alone shows no difference.
        """
        # the name of a model stays as it is
        finding = self.finding if self.verdict.better is not None else self.finding.capitalize()
        sentences = [finding + self._because()]
        alpha = 1.0 - self.level
        if (self.pvalue_a <= alpha) != (self.pvalue_b <= alpha) and self.pvalue > alpha:
            one = "Calibration is rejected for only one of the two models"
            sentences.append(f"{one}; this alone does not show a difference.")
        return sentences

    def _because(self) -> str:
        alpha, root = 1.0 - self.level, "the root mean squared errors"
        if self.verdict is ComparisonVerdict.NOT_EXCHANGEABLE:
            return ": the models differ in calibration, or in what they predict, or both."
        if self.low is None or self.high is None:
            return f": p is above {alpha:.3g}."
        if self.verdict is ComparisonVerdict.TIED:
            but = ", although they are not equal" if self.pvalue <= alpha else ""
            return f": {root} differ by less than {self.margin:g}{but}."
        if self.verdict is ComparisonVerdict.CANNOT_TELL:
            widest = sqrt(max(abs(self.low), abs(self.high)))
            return f": {root} may be equal, or differ by up to {widest:.3f}."
        return f": equal errors are rejected at {alpha:.3g}."


def _head(models: str, result: ComparisonResult, every: str = "") -> list[str]:
    """Return the first lines of a comparison, strings: models, statistic, lens and hypothesis.

    ``result`` has these; ``models`` is the first line, and ``every`` ends the hypothesis. If
    another statistic is tested, a line says which and why.
    """
    noise = "  (noise is subtracted, so values below 0 occur)"
    noise *= result.tested.startswith("Debiased")
    other = result.tested != result.statistic
    facts = {
        "statistic": result.statistic + noise * (not other),
        "lens": with_meaning(result.lens, result.n_classes),
        "hypothesis": f"{result.hypothesis}{every}",
    }
    if other:
        unknown = f"no valid test of equal {short(result.statistic)} is known, because its"
        facts["tested"] = (
            f"{result.tested}{noise}: {unknown}\n{'':17}noise floor differs between models"
        )
    lines = "\n".join(f"  {name:<15}{text}" for name, text in facts.items())
    return [f"Comparison of calibration: {models}", *lines.split("\n"), ""]


def _with_root(square: float, spread: float) -> str:
    """Return a square and its root as text, such as "0.0016 (root 0.04)".

    ``spread`` is the standard error of the square; the root's is spread / (2 root).
    """
    root = sqrt(max(square, 0.0))
    words = "below 0 by chance"
    if root > 0.0:
        words = f"root {format_value(root, spread / (2.0 * root))}"
    return f"{format_value(square, spread)}  ({words})"


def _interval(difference: ComparisonResult | ScoreDifference) -> tuple[float, float] | None:
    if difference.low is None or difference.high is None:
        return None
    return difference.low, difference.high


@dataclass(frozen=True, eq=False)
class ComparisonTable(Result):
    """Result of :func:`caltest.compare_models`: all pairs of several models.

    Attributes
    ----------
    names : tuple of str
        The models, in increasing order of their squared error.
    pairs : tuple of ComparisonResult
        All pairs, with unadjusted p-values of the errors.
    adjusted : tuple of float
        Holm-adjusted p-values of the pairs.
    verdicts : tuple of ComparisonVerdict
        Verdicts by the adjusted p-values; ``findings`` says them with names.
    indistinguishable : tuple of tuple of str
        The largest sets of models within which no two differ significantly.
    level : float
        Confidence level of intervals; 1 − ``level`` bounds the probability of any false difference.
    n, n_classes, n_resamples, seed, ended, notes, version
        As for every :class:`Result`.
    """

    names: tuple[str, ...]
    pairs: tuple[ComparisonResult, ...]
    adjusted: tuple[float, ...]
    verdicts: tuple[ComparisonVerdict, ...]
    indistinguishable: tuple[tuple[str, ...], ...]
    level: float
    plotter: ClassVar[str] = "forests.differences"

    @property
    def findings(self) -> tuple[str, ...]:
        """Verdicts in words, one for each of ``pairs``, with the names of the better models."""
        return tuple(v.about(p.names) for v, p in zip(self.verdicts, self.pairs, strict=True))

    def pair(self, a: str, b: str) -> ComparisonResult:
        """Return the comparison of two models, in either order; KeyError if there is none."""
        for result in self.pairs:
            if {a, b} == set(result.names):
                return result
        raise KeyError(f"there is no pair of {a!r} and {b!r} among {', '.join(self.names)}")

    def _procedure(self) -> list[str]:
        first = self.pairs[0]
        return [f"differences of {first.tested}", first.lens, first.method, "Holm"]

    def _rows(self) -> str:
        return f"n={self.n} paired"

    def _facts(self) -> list[str]:
        models, pairs, *scores = map(aligned, self._tables())
        title = f"{len(self.names)} models, {several(len(self.pairs), 'pair')}"
        lines = [*_head(title, self.pairs[0], ", for each pair"), *models, "", *pairs, ""]
        return [
            *lines,
            *([_as_forecasts(self.n_classes, self.level), *scores[0], ""] if scores else []),
        ]

    def _in_words(self) -> list[str]:
        alpha = f"{1.0 - self.level:.3g}"
        return [f"Models that share a letter cannot be told apart at {alpha} (Holm, all pairs)."]

    def _tables(self) -> list[Columns]:
        first, squared = self.pairs[0], self.pairs[0].method != "swap"
        results_of = {pair.names[0]: (pair.estimate_a, pair.test_a) for pair in self.pairs}
        results_of |= {pair.names[1]: (pair.estimate_b, pair.test_b) for pair in self.pairs}
        estimates, tests = zip(*(results_of[name] for name in self.names), strict=True)
        models: dict[str, Iterable[object]] = {"model": self.names}
        if squared:
            models["squared calibration error"] = [_with_root(x, first.spread) for x in estimates]
        if not squared or first.tested != first.statistic:
            models[short(first.statistic)] = [test.shown_estimate for test in tests]
        models["p of calibration"] = [test.shown_p for test in tests]
        groups = list(enumerate(self.indistinguishable))
        letters = [chr(ord("a") + j) if j < 26 else f"({j + 1})" for j, _ in groups]
        models["letters"] = ["".join(letters[j] for j, g in groups if n in g) for n in self.names]
        pairs: Columns = {
            "pair": [" − ".join(pair.names) for pair in self.pairs],
            "difference": [format_value(pair.difference, pair.spread) for pair in self.pairs],
            "interval": [_interval(pair) for pair in self.pairs],
            "p": [format_p(pair.pvalue) for pair in self.pairs],
            "adjusted p": map(format_p, self.adjusted),
            "verdict": self.findings,
        }
        scores = [(pair, score) for pair in self.pairs for score in pair.scores]
        if not scores:
            return [models, pairs]
        forecasts: Columns = {
            "pair, score": [f"{' − '.join(pair.names)}, {s.score}" for pair, s in scores],
            "difference": [s.difference for _, s in scores],
            "interval": [_interval(s) for _, s in scores],
            "adjusted p": [
                format_p(s.adjusted) if s.adjusted is not None else "–" for _, s in scores
            ],
            "better forecasts": [s.better(pair.names, self.level) for pair, s in scores],
        }
        return [models, pairs, forecasts]

    def _card(self) -> Card:
        tests = {pair.names[0]: pair.test_a for pair in self.pairs}
        tests |= {pair.names[1]: pair.test_b for pair in self.pairs}
        numbers = tuple(
            (name, tests[name].shown_estimate, f"noise floor {tests[name].shown_floor}")
            for name in self.names
        )
        rows = [tests[name].row_of_forest(name) for name in self.names]
        found = [
            f"{better} is better calibrated than {other} ({p_is(p, 'adjusted p')})."
            for better, other, p in self._told_apart()
        ]
        headline = found[0] if found else "No two models can be told apart."
        return Card(
            f"{len(self.names)} models compared",
            headline=headline,
            numbers=numbers,
            remarks=(*found[1:MOST_FOUND], *self._in_words()),
            drawing=sketches.forest(rows, short(tests[self.names[0]].statistic)),
        )

    def _told_apart(self) -> list[tuple[str, str, float]]:
        """Return (better model, other model, adjusted p) of the pairs that differ, sorted by p."""
        pairs = zip(self.pairs, self.verdicts, self.adjusted, strict=True)
        named = [(pair.names, verdict.better, p) for pair, verdict, p in pairs]
        found = [(names[j], names[1 - j], p) for names, j, p in named if j is not None]
        return sorted(found, key=lambda row: row[2])

    def _frame_columns(self) -> dict[str, rendering.TypedColumn]:
        columns = _named_pairs(self.pairs)
        verdicts = {"adjusted": self.adjusted, "verdict": self.verdicts, "finding": self.findings}
        return columns | rendering.columns_of_arrays(verdicts)


def _named_pairs(pairs: Sequence[ComparisonResult]) -> dict[str, rendering.TypedColumn]:
    """Return the data-frame columns of several comparisons, names of the models first.

    ``pairs`` are the comparisons. A column is (type, values), by name, with a value for each pair.
    """
    names = {"name_a": [pair.names[0] for pair in pairs], "name_b": [p.names[1] for p in pairs]}
    findings = {"finding": [pair.finding for pair in pairs]}
    columns = rendering.columns_of_records(pairs, ComparisonResult)
    return {
        **rendering.columns_of_arrays(names),
        **columns,
        **rendering.columns_of_arrays(findings),
    }


class NullDistribution(Protocol):
    """Interface of null distributions, simulated or computed.

    T is a value of the statistic under calibration.
    """

    def mean(self) -> float:
        """Return the expected value, the noise floor of the statistic."""

    def std(self) -> float:
        """Return the standard deviation of the statistic under calibration."""

    def sf(self, t: float) -> float:
        """Return P(T ≥ t) for a value T of the statistic under calibration.

        Values within rounding of t count as ties.
        """

    def ppf(self, q: float) -> float:
        """Return the q quantile of the statistic T under calibration.

        It is the smallest x with P(T ≤ x) ≥ q.
        """

    def rvs(self, size: int, rng: RNG = None) -> FloatArray:
        """Return random values of the statistic under calibration, shape (size,).

        ``rng`` is a seed or a generator of NumPy; None draws differently each time.
        """
