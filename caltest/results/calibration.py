"""The answers of a calibration test, of one question or of several."""

from __future__ import annotations

from typing import TYPE_CHECKING

from caltest._base.written import several
from caltest.results.base import SMALLEST_SHOWN, Result, format_p, format_value
from caltest.results.clusters import ClusterSummary
from caltest.results.fields import described, entry
from caltest.results.subgroups import Subgroups
from caltest.results.tables import Columns, listed

if TYPE_CHECKING:
    from caltest.nulls import NullDistribution

#: So few draws may all be alike by chance.
FEW_DRAWS = 20


@described(
    title="Test of calibration",
    number="estimate",
    columns="statistic lens estimate shown_floor shown_p",
    of_subgroups="estimate shown_floor shown_p",
    plotter="laws.null",
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

    @property
    def rank(self) -> tuple[float, float]:
        """A key that sorts the strongest evidence first."""
        return self.pvalue, -self.excess

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
    def shown_floor(self) -> str:
        """The noise floor as it is printed."""
        if self.null == "betting":
            return "at most 1 on average"
        return f"{format_value(self.null_mean)} ± {format_value(self.null_std)}"

    def _made(self) -> list[str]:
        return [self.statistic, self.lens, f"{self.null} null"]

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
            "observed": format_value(self.estimate),
            "if calibrated": self.shown_floor + floor,
            "excess": "" if betting else f"{format_value(self.excess)}{deviations}",
            "p-value": f"{self.shown_p}  ({precision})",
            "data": f"n = {self.n}, K = {self.n_classes}{self._design}",
            "clusters": "" if self.clusters is None else str(self.clusters),
        }
        return [*listed({name: text for name, text in facts.items() if text}), ""]

    def _in_words(self) -> list[str]:
        chance = f"about {max(1, round(1000 * self.pvalue))} in 1000"
        if self.pvalue < 0.0005:
            chance = "fewer than 1 in 1000"
        said = [f"A calibrated model would show an error this large in {chance} such data sets."]
        if self.null == "betting":
            said = [f"Bets against calibration have made {self.estimate:.4g} of 1: an e-value."]
        if self.degenerate:
            said = ["The null distribution is a single value: these predictions cannot be tested."]
        if self.impossible:
            said.append(
                f"{several(self.impossible, 'observed outcome')} had predicted probability exactly "
                "0: that alone refutes calibration, unless the file was rounded."
            )
        if self.ended == "early":
            said.append("Stopped early (Besag & Clifford 1991): the p-value is valid as it is.")
        return said


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

    @property
    def rank(self) -> tuple[float, float]:
        """A key that sorts the strongest evidence first."""
        return self.pvalue, 0.0

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
