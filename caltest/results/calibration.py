"""The answers of a calibration test, of one question or of several."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from caltest.results.base import SMALLEST_SHOWN, Result, format_p, format_value

if TYPE_CHECKING:
    from caltest.nulls import NullDistribution
    from caltest.plots import Picture


@dataclass(frozen=True)
class CalibrationTestResult(Result):
    """The answer of :func:`caltest.calibration_test`.

    Attributes
    ----------
    statistic, lens, null : str
        The recipe, as it would be written in Python; ``null`` is ``"exact"`` when nothing was
        simulated.
    estimate : float
        The statistic of the observed data.
    pvalue : float
        Probability that a calibrated model shows at least ``estimate`` on these predictions: the
        upper end of ``pvalue_bracket`` when exact, (1 + b) / (1 + B) when simulated. Never 0.
    pvalue_bracket : tuple of float
        Where the exact p-value lies: bounds for the exact null, with 99 % confidence
        (Clopper–Pearson) for a simulated one.
    pvalue_error : float
        Monte Carlo standard error of ``pvalue``; 0 for the exact null.
    null_mean, null_std : float
        The noise floor: mean and standard deviation of the statistic when the model is calibrated.
    n, n_classes : int
        Number of observations, and of classes before the lens.
    n_resamples : int
        Replicates drawn; 0 for the exact null.
    seed : int or None
        The seed, if the generator was given by one.
    impossible : int
        Observed labels whose predicted probability was exactly 0. One refutes calibration.
    ended : {"complete", "early", "interrupted"}
        Whether the simulation drew all its replicates, or was ended by sequential stopping or
        Ctrl-C.
    notes : tuple of str
        What was done to the input on the way in.
    version : str
        The version of caltest.
    null_distribution : ExactNull or SimulatedNull
        With ``mean``, ``std``, ``sf``, ``ppf`` and ``rvs``; not part of the dictionary form.
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
    n: int
    n_classes: int
    n_resamples: int
    seed: int | None
    impossible: int
    ended: str
    notes: tuple[str, ...]
    version: str
    null_distribution: NullDistribution | None = field(
        default=None, repr=False, compare=False, metadata={"transient": True}
    )

    @property
    def excess(self) -> float:
        """The estimate minus the noise floor; not an estimate of the true error."""
        return self.estimate - self.null_mean

    @property
    def shown_p(self) -> str:
        """The p-value as it is printed: a bound where the exact null resolves no further."""
        if self.n_resamples == 0 and self.pvalue_bracket[0] == 0.0:
            return f"< {max(self.pvalue, SMALLEST_SHOWN):.0e}"
        return format_p(self.pvalue)

    @property
    def recipe(self) -> str:
        """One line that says how the number was made, fit for a paper."""
        simulation = [f"B={self.n_resamples}"] if self.n_resamples else []
        if self.n_resamples and self.seed is not None:
            simulation.append(f"seed={self.seed}")
        parts = [self.statistic, self.lens, f"{self.null} null", *simulation]
        return " · ".join([*parts, f"n={self.n}", f"K={self.n_classes}", f"caltest {self.version}"])

    def __str__(self) -> str:
        deviations = f", {self.excess / self.null_std:+.1f} sd" if self.null_std > 0 else ""
        if self.n_resamples:
            precision = f"{self.n_resamples} resamples, Monte Carlo error {self.pvalue_error:.1g}"
        elif self.null == "exact":
            precision = f"exact, in [{self.pvalue_bracket[0]:.4g}, {self.pvalue_bracket[1]:.4g}]"
        else:
            precision = f"{self.null}: not exact"
        lines = [
            "Test of calibration",
            f"  statistic      {self.statistic}",
            f"  lens           {self.lens}",
            f"  observed       {format_value(self.estimate)}",
            f"  if calibrated  {format_value(self.null_mean)} ± {format_value(self.null_std)}"
            "  (noise floor: mean ± sd)",
            f"  excess         {format_value(self.excess)}{deviations}",
            f"  p-value        {self.shown_p}  ({precision})",
            f"  data           n = {self.n}, K = {self.n_classes}",
            "",
            f"  {self._in_words()}",
        ]
        if self.impossible:
            lines.append(
                f"  {self.impossible} observed outcomes had predicted probability exactly 0: "
                "that alone refutes calibration, unless the file was rounded."
            )
        if self.ended == "early":
            lines.append("  Stopped early (Besag & Clifford 1991): the p-value is valid as it is.")
        elif self.ended == "interrupted":
            lines.append("  Interrupted: the p-value rests on the resamples drawn until then.")
        lines += [f"  Note: {note}." for note in self.notes]
        return "\n".join([*lines, "", f"  {self.recipe}"])

    def plot(self, ax: Any = None, **options: Any) -> Picture:
        """Draw the null distribution by :func:`caltest.plots.null`."""
        from caltest import plots

        return plots.null(self, ax, **options)

    def _in_words(self) -> str:
        if self.null_std == 0.0:
            return "The null distribution is a single value: these predictions cannot be tested."
        if self.pvalue < 0.0005:
            chance = "fewer than 1 in 1000"
        else:
            chance = f"about {max(1, round(1000 * self.pvalue))} in 1000"
        return f"A calibrated model would show an error this large in {chance} such data sets."


@dataclass(frozen=True)
class JointTestResult(Result):
    """The answer of :func:`caltest.calibration_test` to a list of (statistic, lens) pairs.

    Attributes
    ----------
    tests : tuple of CalibrationTestResult
        One for each pair, with its own, unadjusted p-value.
    adjusted : tuple of float
        Step-down max-T adjusted p-values, in the same order.
    pvalue : float
        The smallest of them: a test of all hypotheses together.
    n_resamples : int
        Label vectors drawn.
    ended : {"complete", "interrupted"}
        Whether Ctrl-C ended the run early.
    version : str
        The version of caltest.
    """

    tests: tuple[CalibrationTestResult, ...]
    adjusted: tuple[float, ...]
    pvalue: float
    n_resamples: int
    ended: str
    version: str

    def plot(self, ax: Any = None, **options: Any) -> Picture:
        """Draw all estimates by :func:`caltest.plots.estimates`."""
        from caltest import plots

        return plots.estimates(self.tests, ax, pvalues=self.adjusted, **options)

    def __str__(self) -> str:
        lines = [f"Joint test of calibration, {self.n_resamples} redrawn label vectors"]
        width = max(len(f"{t.statistic} · {t.lens}") for t in self.tests)
        for test, adjusted in zip(self.tests, self.adjusted, strict=True):
            lines.append(
                f"  {test.statistic} · {test.lens}".ljust(width + 4)
                + f"{format_value(test.estimate)}  if calibrated {format_value(test.null_mean)} ± "
                f"{format_value(test.null_std)}  p {format_p(test.pvalue)}  "
                f"adjusted {format_p(adjusted)}"
            )
        lines.append(f"  all together: p {format_p(self.pvalue)} (max-T, Westfall & Young 1993)")
        if self.ended == "interrupted":
            lines.append("  Interrupted: the p-values rest on the vectors drawn until then.")
        return "\n".join(lines)
