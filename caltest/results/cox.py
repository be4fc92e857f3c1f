"""The answer of Cox's recalibration."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from caltest._base.arrays import FloatArray
from caltest.results.base import Result
from caltest.results.tables import Columns


@dataclass(frozen=True)
class CoxRecalibration(Result):
    """The answer of :func:`caltest.cox_recalibration`.

    Attributes
    ----------
    intercept, slope : float
        Estimates of a and b in logit P(y = 1) = a + b logit p; calibration means 0 and 1.
    intercept_se, slope_se : float
        Their standard errors, from the observed information; of clusters and weighted rows by the
        jackknife.
    covariance : float
        The covariance of the two estimates.
    intercept_interval, slope_interval : tuple of float
        Their confidence intervals.
    offset_intercept : float
        The estimate of a when b = 1: calibration-in-the-large on the logit scale.
    offset_intercept_se : float
        Its standard error.
    offset_intercept_interval : tuple of float
        Its confidence interval.
    lr, lr_pvalue : float
        Likelihood ratio of (a, b) = (0, 1) against both free, χ² with 2 degrees of freedom.
    lr_intercept, lr_intercept_pvalue : float
        Of a = 0 given b = 1, one degree of freedom.
    lr_slope, lr_slope_pvalue : float
        Of b = 1 with a free, one degree of freedom; the two add up to ``lr``.
        With clusters or weights these three are Wald statistics of the jackknife variance.
    events : int
        How many observations had the event.
    level : float
        The level of the intervals.
    method : {"wald", "profile"}
        How they were made.
    lens : str
        Through which lens the event was seen.
    n, n_classes, n_resamples, seed, ended, notes, version
        As for every :class:`Result`.
    """

    intercept: float
    intercept_se: float
    intercept_interval: tuple[float, float]
    slope: float
    slope_se: float
    slope_interval: tuple[float, float]
    covariance: float
    offset_intercept: float
    offset_intercept_se: float
    offset_intercept_interval: tuple[float, float]
    lr: float
    lr_pvalue: float
    lr_intercept: float
    lr_intercept_pvalue: float
    lr_slope: float
    lr_slope_pvalue: float
    events: int
    level: float
    method: str
    lens: str
    number: ClassVar[str] = "slope"
    title: ClassVar[str] = "Cox recalibration"

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
