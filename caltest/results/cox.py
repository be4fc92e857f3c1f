"""The answer of Cox's recalibration."""

from __future__ import annotations

import numpy as np

from caltest._base.arrays import FloatArray
from caltest.results.base import Result
from caltest.results.fields import described, entry
from caltest.results.tables import Columns


@described(number="slope", title="Cox recalibration", plotter="curves.cox")
class CoxRecalibration(Result):
    """The answer of :func:`caltest.cox_recalibration`."""

    intercept: float = entry(
        "Estimates of a and b in logit P(y = 1) = a + b logit p; calibration means 0 and 1."
    )
    intercept_se: float = entry(
        "Their standard errors, from the observed information; of clusters and weighted rows by "
        "the jackknife."
    )
    intercept_interval: tuple[float, float] = entry("Their confidence intervals.")
    slope: float = entry(
        "Estimates of a and b in logit P(y = 1) = a + b logit p; calibration means 0 and 1."
    )
    slope_se: float = entry(
        "Their standard errors, from the observed information; of clusters and weighted rows by "
        "the jackknife."
    )
    slope_interval: tuple[float, float] = entry("Their confidence intervals.")
    covariance: float = entry("The covariance of the two estimates.")
    offset_intercept: float = entry(
        "The estimate of a when b = 1: calibration-in-the-large on the logit scale."
    )
    offset_intercept_se: float = entry("Its standard error.")
    offset_intercept_interval: tuple[float, float] = entry("Its confidence interval.")
    lr: float = entry(
        "Likelihood ratio of (a, b) = (0, 1) against both free, χ² with 2 degrees of freedom."
    )
    lr_pvalue: float
    lr_intercept: float = entry("Of a = 0 given b = 1, one degree of freedom.")
    lr_intercept_pvalue: float
    lr_slope: float = entry(
        "Of b = 1 with a free, one degree of freedom; the two add up to ``lr``. With clusters or "
        "weights these three are Wald statistics of the jackknife variance."
    )
    lr_slope_pvalue: float
    events: int = entry("How many observations had the event.")
    level: float = entry("The level of the intervals.")
    method: str = entry("How they were made.", '{"wald", "profile"}')
    lens: str = entry("Through which lens the event was seen.")

    def curve(self, p: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return the fitted frequencies at predictions between 0 and 1, and a band around them.

        At each p, the Wald interval of a + b logit p at ``level``, as frequencies.
        """
        from scipy.special import expit, logit, ndtri

        z = logit(p)
        variance = self.intercept_se**2 + 2.0 * z * self.covariance + (z * self.slope_se) ** 2
        half = float(ndtri(0.5 + 0.5 * self.level)) * np.sqrt(np.maximum(variance, 0.0))
        middle = self.intercept + self.slope * z
        return expit(middle), expit(middle - half), expit(middle + half)

    def _made(self) -> list[str]:
        kind = {"wald": "Wald", "profile": "profile likelihood"}[self.method]
        return ["Cox recalibration", self.lens, f"{100 * self.level:g} % {kind} intervals"]

    def _tables(self) -> list[Columns]:
        fits = ("intercept", "slope", "offset_intercept")
        designed = self.effective_n is not None or self.n_clusters is not None
        ratio = "Wald test, by the jackknife, of" if designed else "likelihood ratio of"
        ratios = ("lr", "lr_intercept", "lr_slope")
        return [
            {
                "": ["intercept", "slope", "intercept | slope 1"],
                "estimate": [getattr(self, name) for name in fits],
                "se": [getattr(self, f"{name}_se") for name in fits],
                "interval": [getattr(self, f"{name}_interval") for name in fits],
            },
            {
                ratio: ["intercept 0, slope 1", "intercept 0 | slope 1", "slope 1"],
                "value": [getattr(self, name) for name in ratios],
                "df": [2, 1, 1],
                "pvalue": [getattr(self, f"{name}_pvalue") for name in ratios],
            },
        ]

    def _in_words(self) -> list[str]:
        return [f"{self.events} events in {self.n} observations."]
