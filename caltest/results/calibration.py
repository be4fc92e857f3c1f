"""The answers of a calibration test, of one question or of several."""

from __future__ import annotations

from statistics import NormalDist
from typing import TYPE_CHECKING

from caltest._base.written import several
from caltest.results.base import Result
from caltest.results.designs import ClusterSummary
from caltest.results.fields import described, entry
from caltest.results.numbers import SMALLEST_SHOWN, format_p, format_value, in_sd, with_sd
from caltest.results.subgroups import Subgroups
from caltest.results.tables import Columns, attributes, listed

if TYPE_CHECKING:
    from caltest.nulls import NullDistribution

#: So few draws may all be alike by chance.
FEW_DRAWS = 20


@described(
    title="Test of calibration",
    number="estimate",
    columns="statistic lens shown_estimate shown_floor shown_p",
    of_subgroups="shown_estimate shown_floor shown_p",
    plotter="numbers.null",
)
class CalibrationTestResult(Result):
    """The answer of :func:`caltest.calibration_test`."""

    statistic: str = entry("Recipes, as in Python; where nothing was simulated null is exact.")
    lens: str
    null: str
    estimate: float = entry("The statistic of the observed data.")
    pvalue: float = entry(
        "Chance that a calibrated model shows at least ``estimate``, never 0: the upper end of "
        "``pvalue_bracket`` when exact, (1 + b) / (1 + B) when simulated."
    )
    pvalue_bracket: tuple[float, float] = entry(
        "Bounds of the exact p-value; with 99 % confidence (Clopper–Pearson) if simulated."
    )
    pvalue_error: float = entry("Monte Carlo standard error of ``pvalue``; 0 for the exact null.")
    null_mean: float = entry("The noise floor: mean and sd of the statistic if calibrated.")
    null_std: float
    two_sided: bool = entry("Whether small values speak against calibration, too.")
    centre: float = entry("From where a two-sided estimate is measured.")
    impossible: int = entry("Observed labels of probability exactly 0; one refutes calibration.")
    clusters: ClusterSummary | None = entry("Clusters, and their dependence.", default=None)
    subgroups: Subgroups | None = entry("With ``by``: the test in each.", default=None)
    null_distribution: NullDistribution | None = entry(
        "Not part of the dictionary form.",
        "ExactNull, SimulatedNull or AsymptoticNull, optional", default=None, transient=True,
    )  # fmt: skip

    def _procedure(self) -> list[str]:
        approximate = ", approximate" * (self.folds is not None)
        return [self.statistic, self.lens, f"{self.null} null{approximate}"]

    def certain_error(self, alpha: float) -> tuple[float, float]:
        """Return a lower limit of the error, at least 0, and the estimate, by which errors rank.

        An error shows no more than itself and its noise (triangle inequality), here a normal one.
        """
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
        floor = "" if betting else "  (noise floor: mean ± standard deviation, sd)"
        deviations = f", {in_sd(self.excess, self.null_std)}" if self.null_std > 0 else ""
        if self.n_resamples:
            resamples = several(self.n_resamples, "resample")
            precision = f"{resamples}, Monte Carlo error {self.pvalue_error:.1g}"
        elif self.null == "exact":
            law = "exact" if self.folds is None else "approximate: exact for independent rows"
            precision = f"{law}, in [{self.pvalue_bracket[0]:.4g}, {self.pvalue_bracket[1]:.4g}]"
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
        if self.degenerate:
            finding = "The null distribution is a single value: these predictions cannot be tested."
        elif self.null == "betting":
            finding = f"Bets against calibration have made {self.estimate:.4g} of 1: an e-value."
        else:
            chance = f"about {max(1, round(1000 * self.pvalue))} in 1000"
            chance = chance if self.pvalue >= 0.0005 else "fewer than 1 in 1000"
            finding = (
                f"A calibrated model would show an error this large in {chance} such data sets."
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


@described(title="Joint test of calibration", of_subgroups="pvalue", plotter="tables.adjusted")
class JointTestResult(Result):
    """The answer of :func:`caltest.joint_test`."""

    tests: tuple[CalibrationTestResult, ...] = entry("One a pair, with unadjusted p-values.")
    adjusted: tuple[float, ...] = entry("Step-down adjusted p-values, in the same order.")
    pvalue: float = entry("The smallest of them: a test of all hypotheses together.")
    adjust: str = entry("How they were adjusted.", '{"max-T", "Holm"}', default="max-T")
    subgroups: Subgroups | None = entry("With ``by``: the same tests in each.", default=None)

    def certain_error(self, alpha: float) -> tuple[float, float]:
        """Return limit and estimate of the largest error that the first statistic shows."""
        alike = [test for test in self.tests if test.statistic == self.tests[0].statistic]
        return max(test.certain_error(alpha / len(alike)) for test in alike)

    def _procedure(self) -> list[str]:
        pairs = ", ".join(f"({test.statistic}, {test.lens})" for test in self.tests)
        return [f"[{pairs}]", self.adjust, f"{self.tests[0].null} null"]

    def _tables(self) -> list[Columns]:
        names = {name: name for name in CalibrationTestResult.columns}
        return [{**attributes(self.tests, names), "adjusted": self.adjusted}]

    def _in_words(self) -> list[str]:
        source = {"max-T": "max-T, Westfall & Young 1993", "Holm": "Holm 1979"}[self.adjust]
        return [f"All together: p {format_p(self.pvalue)} ({source})"]
