"""The answers of a calibration test: of one question or of several, of clusters and subgroups."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from caltest._base.written import several
from caltest.results.base import Record, Result
from caltest.results.fields import described, entry
from caltest.results.numbers import SMALLEST_SHOWN, format_p, format_value, with_sd
from caltest.results.tables import Columns, aligned, listed

if TYPE_CHECKING:
    from caltest.nulls import NullDistribution

#: z beyond which sizes of clusters, or weights, and residuals are not associated by chance.
ASSOCIATED = 3.29


#: Chance that any of the lower limits by which the worst is found is too high.
WORST_ALPHA = 0.05


def worst_of(tests: Sequence[Any]) -> int:
    """Return the number of the test whose error is certainly the largest; None are passed over.

    That is the one with the highest lower limit of its error, at a level for all of them together
    (Bonferroni), and of equal limits the larger estimate. P-values do not say which error is worst:
    of many rows all are too small to differ by more than rounding.
    """
    tested = [j for j, test in enumerate(tests) if test is not None]
    share = WORST_ALPHA / len(tested)
    return max(tested, key=lambda j: tests[j].certain_error(share))


@described()
class ClusterSummary(Record):
    """The clusters behind a test, and the dependence that its null distribution allows for."""

    count: int = entry("The number of clusters, and their rows.")
    smallest: int
    largest: int
    effective: float = entry(
        "(Σ v_g)² / Σ v_g², v_g the variance of the sum of a cluster: as many equal clusters "
        "would weigh the same."
    )
    shared: float = entry(
        "Clusters in which a label other than the commonest is expected, if clusters shared labels."
    )
    dependence: float | None = entry(
        "λ, the degree to which rows of a cluster share their label in what is redrawn, and that "
        "to which they share whether the likeliest label is right; None where it was not tried, "
        "or would be the same."
    )
    correctness: float | None
    in_parts: float = entry("The largest λ of a part of the rows: where some agree more than all.")
    estimated: bool = entry(
        "Whether λ is the upper 95 % limit of what the labels show, or was given."
    )
    inflation: float = entry(
        "κ, above 1 where labels of a cluster agree more than any redraw allows: replicates of a "
        "statistic of degree d in the residuals are multiplied by κ^{d/2}."
    )
    size_effect: float = entry(
        "z of the association between the size of a cluster and its residuals; see the notes."
    )
    inflation_applied: bool = entry(
        "False where replicates could not be multiplied, because the statistic sees labels and "
        "the scheme was asked for by name: p-values are then too small where κ > 1.",
        default=True,
    )
    name: str = entry("What the clusters are called, of two columns.", default="")
    beside: ClusterSummary | None = entry("The clusters of the second column.", default=None)

    @property
    def along(self) -> tuple[ClusterSummary, ...]:
        """The columns along which rows may depend, or the first where neither shows that."""
        if self.beside is None:
            return (self,)
        return tuple(each for each in (self, self.beside) if each.in_parts > 0.0) or (self,)

    @property
    def notes(self) -> tuple[str, ...]:
        """What a reader must know about clusters that are not all alike."""
        notes = []
        overall = max(self.dependence or 0.0, self.correctness or 0.0)
        if self.in_parts > overall:
            notes.append(
                f"some rows depend on others of their cluster more than all do (λ up to "
                f"{self.in_parts:g}, {overall:g} overall): they are drawn with their own λ"
            )
        if abs(self.size_effect) > ASSOCIATED:
            notes.append(
                f"residuals change with the size of the cluster (z = {self.size_effect:+.1f}): the "
                "test is valid if sizes do not depend on outcomes; test with "
                "null=OneRowPerCluster() if they may"
            )
        if not self.inflation_applied:
            notes.append(
                f"κ = {self.inflation:.2f} could not be applied to a statistic that sees labels: "
                "the p-value is too small; test with null=OneRowPerCluster()"
            )
        return tuple(notes)

    def _of(self) -> str:
        rows = f"{self.smallest}" + (f"–{self.largest}" if self.largest > self.smallest else "")
        return f"{self.count} of {rows} rows, effective {self.effective:.1f}"

    def __str__(self) -> str:
        kinds = {"labels": self.dependence, "being right": self.correctness}
        shares = [f"{kind} {self._bound(x)}" for kind, x in kinds.items() if x is not None]
        limits = " (95 % limits)" if self.estimated else ""
        columns = self._of()
        if self.beside is not None:
            columns = f"{self.name}: {columns} · {self.beside.name}: {self.beside._of()}"
            both = zip(
                kinds.items(), (self.beside.dependence, self.beside.correctness), strict=True
            )
            most = "at most " * self.estimated
            shares = [
                f"{kind} {most}{x:.2g} and {other:.2g}"
                for (kind, x), other in both
                if x is not None and other is not None
            ]
        return (
            f"{columns} · dependence of "
            f"{', of '.join(shares)}{limits} · κ {self.inflation:.2f}"
            f"{'' if self.inflation_applied else ' (not applied)'}"
        )

    def _bound(self, degree: float) -> str:
        if not self.estimated:
            return f"{degree:g}"
        return f"at most {degree:g}" if degree > 0.0 else "below 0.1"


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
        """The number of the subgroup whose error is certainly the largest."""
        return worst_of(self.tests)

    def worst_first(self) -> Subgroups:
        """Return them in the order of how large their errors certainly are."""
        share = WORST_ALPHA / len(self.tested)
        errors = [(0.0, -1.0) if t is None else t.certain_error(share) for t in self.tests]
        return self._of(sorted(range(len(errors)), key=lambda j: errors[j], reverse=True))

    def first(self, most: int) -> Subgroups:
        """Return the first of them only."""
        return self._of(range(min(most, len(self.names))))

    def _of(self, order: Sequence[int]) -> Subgroups:
        return replace(
            self,
            names=tuple(self.names[j] for j in order),
            counts=tuple(self.counts[j] for j in order),
            tests=tuple(self.tests[j] for j in order),
            adjusted=tuple(self.adjusted[j] for j in order),
            alike=tuple(self.alike[j] for j in order) if self.alike else (),
        )

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
        columns = {name: [t and getattr(t, name) for t in self.tests] for name in shown}
        last = {"alike": self.alike} if self.alike else {}
        named = {"subgroup": self.names, "n": self.counts}
        return {**named, **columns, "adjusted": self.adjusted, **last}

    def in_words(self) -> list[str]:
        """Return the finding in sentences."""
        sentences = [f"{self.tested[0].of_all}: p {format_p(self.pvalue)} ({self.adjust})"]
        if self.alike_pvalue is not None:
            sentences.append(
                f"calibrated alike: p {format_p(self.alike_pvalue)} (residuals permuted)"
            )
        return sentences + [f"Note: {note}." for note in self.notes]

    def __str__(self) -> str:
        return "\n".join([*aligned(self.table), *(f"  {line}" for line in self.in_words())])


#: So few draws may all be alike by chance.
FEW_DRAWS = 20


@described(
    title="Test of calibration",
    number="estimate",
    columns="statistic lens shown_estimate shown_floor shown_p",
    of_subgroups="shown_estimate shown_floor shown_p",
    plotter="laws.null",
    made="{0.statistic} · {0.lens} · {0.null} null",
)
class CalibrationTestResult(Result):
    """The answer of :func:`caltest.calibration_test`."""

    statistic: str = entry(
        'The recipe, as it would be written in Python; ``null`` is ``"exact"`` when nothing was '
        "simulated."
    )
    lens: str
    null: str
    estimate: float = entry("The statistic of the observed data.")
    pvalue: float = entry(
        "Probability that a calibrated model shows at least ``estimate`` on these predictions: "
        "the upper end of ``pvalue_bracket`` when exact, (1 + b) / (1 + B) when simulated. Never "
        "0."
    )
    pvalue_bracket: tuple[float, float] = entry(
        "Where the exact p-value lies: bounds for the exact null, with 99 % confidence "
        "(Clopper–Pearson) for a simulated one."
    )
    pvalue_error: float = entry("Monte Carlo standard error of ``pvalue``; 0 for the exact null.")
    null_mean: float = entry(
        "The noise floor: mean and standard deviation of the statistic when the model is "
        "calibrated."
    )
    null_std: float
    two_sided: bool = entry("Whether small values speak against calibration as well as large ones.")
    centre: float = entry("From where a two-sided estimate is measured.")
    impossible: int = entry(
        "Observed labels whose predicted probability was exactly 0. One refutes calibration."
    )
    clusters: ClusterSummary | None = entry(
        "Where rows come in clusters: how many, and how much their labels depend on each other.",
        default=None,
    )
    subgroups: Subgroups | None = entry(
        "With ``by``: the same test in every subgroup, which changes nothing above.",
        default=None,
    )
    null_distribution: NullDistribution | None = entry(
        "With ``mean``, ``std``, ``sf``, ``ppf`` and ``rvs``; not part of the dictionary form.",
        "ExactNull, SimulatedNull or AsymptoticNull, optional",
        default=None,
        transient=True,
    )

    def certain_error(self, alpha: float) -> tuple[float, float]:
        """Return a lower limit of the error, at least 0, and the estimate.

        An error shows no more than itself and its noise (triangle inequality), which is taken to
        be normal here: the limit serves to rank errors, not to report them.
        """
        from statistics import NormalDist

        size = abs(self.estimate - self.centre) if self.two_sided else self.estimate
        floor = 0.0 if self.two_sided else self.null_mean
        noise = floor - NormalDist().inv_cdf(alpha) * self.null_std
        return max(0.0, size - noise), size  # 0 also where the spread of bets is not known

    @property
    def excess(self) -> float:
        """The estimate minus the noise floor; not an estimate of the true error."""
        return self.estimate - self.null_mean

    @property
    def degenerate(self) -> bool:
        """Whether a calibrated model can show nothing else; a few draws cannot say that."""
        alike = self.null_std <= 1e-12 * abs(self.null_mean)  # but for rounding
        return alike and self.pvalue == 1.0 and not 0 < self.n_resamples < FEW_DRAWS

    @property
    def shown_p(self) -> str:
        """The p-value as it is printed: a bound where the exact null resolves no further."""
        if self.n_resamples == 0 and self.pvalue_bracket[0] == 0.0:
            return f"< {max(self.pvalue, SMALLEST_SHOWN):.0e}"
        return format_p(self.pvalue)

    @property
    def shown_estimate(self) -> str:
        """The estimate as it is printed."""
        return format_value(self.estimate, self.null_std)

    @property
    def shown_floor(self) -> str:
        """The noise floor as it is printed."""
        if self.null == "betting":
            return "at most 1 on average"
        return with_sd(self.null_mean, self.null_std)

    def _facts(self) -> list[str]:
        betting = self.null == "betting"
        floor = "" if betting else "  (noise floor: mean ± sd)"
        deviations = f", {self.excess / self.null_std:+.1f} sd" if self.null_std > 0 else ""
        if self.n_resamples:
            drawn = several(self.n_resamples, "resample")
            precision = f"{drawn}, Monte Carlo error {self.pvalue_error:.1g}"
        elif self.null == "exact":
            precision = f"exact, in [{self.pvalue_bracket[0]:.4g}, {self.pvalue_bracket[1]:.4g}]"
        elif betting:
            precision = "1 / e-value, valid at every n"
        else:
            precision = f"{self.null}: not exact"
        facts = {
            "statistic": self.statistic,
            "lens": self.lens,
            "observed": self.shown_estimate,
            "if calibrated": self.shown_floor + floor,
            "excess": "" if betting else f"{format_value(self.excess, self.null_std)}{deviations}",
            "p-value": f"{self.shown_p}  ({precision})",
            "data": f"n = {self.n}, K = {self.n_classes}{self._design}",
            "clusters": "" if self.clusters is None else str(self.clusters),
            "horizon": "" if self.series is None else str(self.series),
            "folds": "" if self.folds is None else str(self.folds),
        }
        return [*listed({name: text for name, text in facts.items() if text}), ""]

    def _in_words(self) -> list[str]:
        chance = f"about {max(1, round(1000 * self.pvalue))} in 1000"
        if self.pvalue < 0.0005:
            chance = "fewer than 1 in 1000"
        sentences = [
            f"A calibrated model would show an error this large in {chance} such data sets."
        ]
        if self.null == "betting":
            sentences = [
                f"Bets against calibration have made {self.estimate:.4g} of 1: an e-value."
            ]
        if self.degenerate:
            sentences = [
                "The null distribution is a single value: these predictions cannot be tested."
            ]
        if self.impossible:
            sentences.append(
                f"{several(self.impossible, 'observed outcome')} had predicted probability exactly "
                "0: that alone refutes calibration, unless the file was rounded."
            )
        if self.ended == "early":
            sentences.append(
                "Stopped early (Besag & Clifford 1991): the p-value is valid as it is."
            )
        return sentences


@described(
    title="Joint test of calibration",
    of_subgroups="pvalue",
    plotter="tables.joint",
    draws="label vectors were drawn for all",
)
class JointTestResult(Result):
    """The answer of :func:`caltest.joint_test`."""

    tests: tuple[CalibrationTestResult, ...] = entry(
        "One for each (statistic, lens) pair, with its own, unadjusted p-value."
    )
    adjusted: tuple[float, ...] = entry("Step-down adjusted p-values, in the same order.")
    pvalue: float = entry("The smallest of them: a test of all hypotheses together.")
    adjust: str = entry("How they were adjusted.", '{"max-T", "Holm"}', default="max-T")
    subgroups: Subgroups | None = entry(
        "With ``by``: the same tests in every subgroup, which change nothing above.",
        default=None,
    )

    def certain_error(self, alpha: float) -> tuple[float, float]:
        """Return limit and estimate of the largest error that the first statistic shows."""
        alike = [test for test in self.tests if test.statistic == self.tests[0].statistic]
        return max(test.certain_error(alpha / len(alike)) for test in alike)

    def _made(self) -> list[str]:
        pairs = ", ".join(f"({test.statistic}, {test.lens})" for test in self.tests)
        return [f"[{pairs}]", self.adjust, f"{self.tests[0].null} null"]

    def _tables(self) -> list[Columns]:
        names = CalibrationTestResult.columns
        shown = {name: [getattr(test, name) for test in self.tests] for name in names}
        return [{**shown, "adjusted": self.adjusted}]

    def _in_words(self) -> list[str]:
        source = {"max-T": "max-T, Westfall & Young 1993", "Holm": "Holm 1979"}[self.adjust]
        return [f"All together: p {format_p(self.pvalue)} ({source})"]
