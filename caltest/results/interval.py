"""The answer of a confidence interval."""

from __future__ import annotations

from caltest.results.base import Result
from caltest.results.fields import described, entry
from caltest.results.numbers import format_p, format_value, spread_of
from caltest.results.subgroups import Subgroups
from caltest.results.tables import listed

#: What a method is called, and how the bias is known.
METHODS = {
    "inversion": ("inversion of tests", "what noise adds, by the scatter in the cells"),
    "cells": ("exact intervals of the cells", "what noise adds, by resampled rows"),
    "bootstrap": ("percentile bootstrap", "by resampled rows"),
}
#: What an interval of a binned error is for.
OF_CELLS = """\
The interval is for the error of these cells in new data. Errors of opposite
sign within a cell cancel, so the true error can be larger than that, but not
smaller (Vaicenavicius et al. 2019, Theorem 2): the low end bounds the true
error, the high end does not."""


@described(
    title="Confidence interval",
    of_subgroups="estimate low high pvalue",
    number="estimate",
    plotter="numbers.interval",
    draws="draws for the bounds, 0 where nothing was drawn",
)
class ConfidenceIntervalResult(Result):
    """The answer of :func:`caltest.confidence_interval`."""

    statistic: str = entry("The recipe, as it would be written in Python.")
    lens: str
    method: str
    estimate: float = entry("The statistic of the observed data.")
    low: float | None = entry("The interval; of one bound the open side is the end of the range.")
    high: float | None
    level: float = entry("Probability with which such an interval contains the value.")
    side: str = entry("Which bounds were asked for.", '{"two-sided", "lower", "upper"}')
    null_mean: float = entry("What a calibrated model would show on average: the noise floor.")
    bias: float = entry("What noise adds at the error that is there.")
    corrected: float = entry("``estimate - bias``; of squared errors negative if less than noise.")
    contains_zero: bool = entry("Whether the data are compatible with calibration, at this level.")
    pvalue: float | None = entry("Of calibration, by inversion: it decides ``contains_zero``.")
    n_cells: int | None = entry("Occupied cells of a binned error.")
    subgroups: Subgroups | None = entry("Those of subgroups, which cover together.", default=None)

    def certain_error(self, alpha: float) -> tuple[float, float]:
        """Return the lower limit, which has a level of its own, and the estimate."""
        return (0.0 if self.low is None else self.low), self.estimate

    def _made(self) -> list[str]:
        side = "" if self.side == "two-sided" else f" {self.side} bound"
        return [self.statistic, self.lens, f"{self.level:.4g}{side} by {self.method}"]

    def _facts(self) -> list[str]:
        kind = "interval" if self.side == "two-sided" else "bound"
        cells = "" if self.n_cells is None else f", {self.n_cells} cells"
        low, high = self._shown(self.low), self._shown(self.high)
        ends = {"lower": f"at least {low}", "upper": f"at most {high}"}
        bounds = ends.get(self.side, f"{low} to {high}")
        method, known_by = METHODS[self.method]
        noise = f"less {self._shown(self.bias)}, {known_by}"
        facts = {
            "statistic": self.statistic,
            "lens": self.lens,
            "estimate": self._shown(self.estimate),
            f"{100.0 * self.level:.4g} % {kind}": f"{bounds}  ({method})",
            "contains 0": self._zero(),
            "if calibrated": f"{self._shown(self.null_mean)}  (mean noise of a calibrated model)",
            "less noise": f"{self._shown(self.corrected)}  (the estimate {noise})",
            "data": f"n = {self.n}, K = {self.n_classes}{cells}{self._design}",
        }
        return [*listed(facts), ""]

    def _in_words(self) -> list[str]:
        above = self.high is not None and self.estimate > self.high
        noise = ["The estimate lies above the interval because most of it is noise."] * above
        return [*noise, *([] if self.n_cells is None else [OF_CELLS])]

    def _shown(self, value: float | None) -> str:
        """Return a number with the decimals that the length of the interval calls for."""
        return "–" if value is None else format_value(value, spread_of(self.low, self.high))

    def _zero(self) -> str:
        answer = "yes" if self.contains_zero else "no"
        if self.side == "upper":
            return f"{answer}, as every upper bound of an error does" if self.low == 0.0 else answer
        if self.pvalue is None:
            return answer
        return f"{answer}, p-value of calibration {format_p(self.pvalue)}"
