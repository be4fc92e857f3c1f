"""Results that are estimates: intervals, Cox recalibration, sites, and parts of mean scores.

:class:`ConfidenceIntervalResult` has estimate, noise floor and interval; the others hold fitted
parameters with standard errors. :class:`IsotonicFit` can be called on new probabilities.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from math import exp
from statistics import NormalDist
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from caltest._base.arrays import FloatArray, IntArray
from caltest.results import rendering
from caltest.results.base import Record, Result, Subgroups, short, with_meaning
from caltest.results.rendering import (
    Card,
    Columns,
    format_p,
    format_range,
    format_value,
    listed,
    p_is,
    spread_of,
)
from caltest.results.sketches import IntervalRow, axes_of, forest, line

#: What a method is called, and how the bias is known.
METHODS_OF_INTERVALS = {
    "inversion": ("errors that are not rejected: test inversion", "from the scatter in the bins"),
    "cells": ("exact intervals of the bins", "by resampling rows"),
    "bootstrap": ("percentile bootstrap", "by resampling rows"),
    "shift": ("shifts of the log-odds", ""),
    "influence": ("normal law of the gaps", "from the influence of the rows"),
}


#: What an interval of a binned error is for.
OF_CELLS = """\
The interval is for the true error of these bins, without sampling noise. Errors
of opposite sign within a bin cancel, so the error without bins can be larger, but
not smaller: the lower limit also bounds that error, the upper limit does not."""


@dataclass(frozen=True, eq=False)
class ConfidenceIntervalResult(Result):
    """Result of :func:`caltest.confidence_interval`.

    Attributes
    ----------
    statistic, lens : str
        Statistic and lens, written as in Python.
    method : {"inversion", "cells", "bootstrap", "shift", "influence"}
        How the interval was computed.
    estimate : float
        Observed value of the statistic.
    low, high : float or None
        Confidence interval. The open side of a bound is the end of the range of the statistic.
    level : float
        Confidence level, in (0, 1).
    side : {"two-sided", "lower", "upper"}
        Bounds that were asked for.
    null_mean : float
        Mean of the statistic under calibration: the noise floor.
    bias : float
        Expected contribution of noise at the error that is there.
    corrected : float
        Debiased estimate, ``estimate`` − ``bias``; for squared errors negative if below the noise.
    contains_zero : bool
        Whether the data are compatible with calibration at this level.
    pvalue : float or None
        p-value of calibration by inversion, which decides ``contains_zero``.
    n_cells : int or None
        Number of occupied cells of a binned error.
    subgroups : Subgroups or None
        Intervals of subgroups, with simultaneous coverage.
    n, n_classes, n_resamples, seed, ended, notes, version
        As for every :class:`Result`; ``n_resamples`` counts
        draws for the bounds, 0 where nothing was drawn.
    """

    statistic: str
    lens: str
    method: str
    estimate: float
    low: float | None
    high: float | None
    level: float
    side: str
    null_mean: float
    bias: float
    corrected: float
    contains_zero: bool
    pvalue: float | None
    n_cells: int | None
    subgroups: Subgroups | None = None
    title: ClassVar[str] = "Confidence interval"
    number: ClassVar[str] = "estimate"
    plotter: ClassVar[str] = "lines.interval"
    of_subgroups: ClassVar[tuple[str, ...]] = ("estimate", "low", "high", "pvalue")

    def certain_error(self, alpha: float) -> tuple[float, float]:
        """Return (bound, estimate) of the error without sign, by which results are ranked.

        The bound is the distance of 0 from the interval, or 0 if the interval contains 0. ``alpha``
        is not used, as the interval has its own level.
        """
        low, high = (0.0 if end is None else end for end in (self.low, self.high))
        return max(low, -high, 0.0), abs(self.estimate)

    def _procedure(self) -> list[str]:
        side = "" if self.side == "two-sided" else f" {self.side} bound"
        return [self.statistic, self.lens, f"{self.level:.4g}{side} by {self.method}"]

    def _card(self) -> Card:
        ends = "–" if self.low is None else f"{self._shown(self.low)} to {self._shown(self.high)}"
        zero = p_is(self.pvalue, "p of calibration") if self.pvalue is not None else ""
        numbers = (
            (short(self.statistic), self._shown(self.estimate), f"n = {self.n}, {self.lens}"),
            (f"{self._percent} interval", ends, zero or METHODS_OF_INTERVALS[self.method][0]),
            ("noise floor", self._shown(self.null_mean), f"debiased {self._shown(self.corrected)}"),
        )
        row = IntervalRow(
            f"{self._percent} interval", self.estimate, self.low, self.high, limit=self.null_mean
        )
        drawing = forest([row], f"{short(self.statistic)}; line: noise floor")
        agree = "are compatible with" if self.contains_zero else "contradict"
        headline = f"The data {agree} calibration (level {self._percent})."
        return Card(self.title, "plain", headline, numbers, (), drawing)

    def _facts(self) -> list[str]:
        kind = "interval" if self.side == "two-sided" else "bound"
        cells = "" if self.n_cells is None else f", {self.n_cells} non-empty bins"
        low, high = self._shown(self.low), self._shown(self.high)
        ends = {"lower": f"at least {low}", "upper": f"at most {high}"}
        bounds = ends.get(self.side, f"{low} to {high}")
        method, known_by = METHODS_OF_INTERVALS[self.method]
        noise = f"minus its bias, {self._shown(self.bias)} {known_by}"
        if self.bias < 0.5 * self.null_mean:
            noise += f"; {self._shown(self.null_mean)} would be the bias of a calibrated model"
        facts = {
            "statistic": with_meaning(self.statistic, self.n_classes, self.lens),
            "lens": with_meaning(self.lens, self.n_classes),
            "event": self.event_name,
            "estimate": self._shown(self.estimate),
            f"{100.0 * self.level:.4g} % {kind}": f"{bounds}  ({method})",
            "contains 0": self._zero(),
            "noise floor": f"{self._shown(self.null_mean)}  (mean under calibration)",
            "debiased": f"{self._shown(self.corrected)}  (the estimate {noise})",
            "data": f"n = {self.n}, K = {self.n_classes}{cells}{self._design}",
        }
        if self.method == "shift":  # a signed difference has no noise floor
            del facts["noise floor"], facts["debiased"]
        return [*listed({name: text for name, text in facts.items() if text}), ""]

    def _in_words(self) -> list[str]:
        above = self.high is not None and self.estimate > self.high
        noise = ["The estimate lies above the interval because most of it is noise."] * above
        return [*noise, *([] if self.n_cells is None else [OF_CELLS])]

    def _shown(self, value: float | None) -> str:
        """Return a number as text, with decimals by the length of this interval; "–" for None."""
        return "–" if value is None else format_value(value, spread_of(self.low, self.high))

    def _zero(self) -> str:
        answer = "yes" if self.contains_zero else "no"
        if self.side == "upper":
            return f"{answer}, as every upper bound of an error does" if self.low == 0.0 else answer
        if self.pvalue is None:
            return answer
        return f"{answer}  (test of calibration: {p_is(self.pvalue)})"


@dataclass(frozen=True, eq=False)
class CoxRecalibration(Result):
    """Result of :func:`caltest.cox_recalibration`: logit P(y = 1) = a + b logit p.

    Attributes
    ----------
    intercept : float
        Calibration intercept a, in log-odds; calibration means a = 0 and b = 1.
    intercept_se : float
        Standard error by the observed information; by the jackknife with clusters or weights.
    intercept_interval : tuple of float
        Confidence interval of the intercept.
    slope, slope_se : float
        Calibration slope b and its standard error.
    slope_interval : tuple of float
        Confidence interval of the slope.
    covariance : float
        Covariance of intercept and slope.
    in_the_large : float
        Calibration-in-the-large: a with b = 1, in log-odds.
    in_the_large_se : float
        Standard error of calibration-in-the-large.
    in_the_large_interval : tuple of float
        Confidence interval of calibration-in-the-large.
    lr, lr_pvalue : float
        Likelihood ratio of a = 0 and b = 1, χ² with 2 degrees of freedom, and its p-value.
    lr_intercept, lr_intercept_pvalue : float
        Likelihood ratio and p-value of a = 0 given b = 1, one degree of freedom.
    lr_slope, lr_slope_pvalue : float
        Likelihood ratio and p-value of b = 1 with a free; the two add up to ``lr``. With clusters
        or weights all three are Wald statistics of the jackknife variance, with follow-up of
        influence functions.
    events : int
        Number of observations with the event.
    level : float
        Confidence level of the intervals, in (0, 1).
    method : {"wald", "profile"}
        How intervals were computed.
    lens : str
        The lens, written as in Python.
    oe, oe_se : float or None
        With follow-up: O:E, and the standard error of its logarithm.
    oe_interval : tuple of float or None
        With follow-up: the confidence interval of O:E.
    link : {"logit", "cloglog"}
        Link function of the model.
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
    in_the_large: float
    in_the_large_se: float
    in_the_large_interval: tuple[float, float]
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
    oe: float | None = None
    oe_se: float | None = None
    oe_interval: tuple[float, float] | None = None
    link: str = "logit"
    title: ClassVar[str] = "Cox recalibration"
    number: ClassVar[str] = "slope"
    plotter: ClassVar[str] = "lines.cox"

    def curve(self, p: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return (fitted, low, high): event frequencies at predictions ``p`` in (0, 1).

        All have the shape of ``p``; ``low`` and ``high`` are the pointwise Wald interval of a + b
        logit p at ``level``, as frequencies. With ``link`` "cloglog", log(−log(1 − p)) stands in
        place of the logit.
        """
        from scipy.special import expit, logit, ndtri

        logistic = self.link == "logit"
        z = logit(p) if logistic else np.log(-np.log1p(-p))
        variance = self.intercept_se**2 + 2.0 * z * self.covariance + (z * self.slope_se) ** 2
        half = float(ndtri(0.5 + 0.5 * self.level)) * np.sqrt(np.maximum(variance, 0.0))
        lines = self.intercept + self.slope * z + np.array([np.zeros_like(half), -half, half])
        fitted, low, high = expit(lines) if logistic else -np.expm1(-np.exp(lines))
        return fitted, low, high

    def _procedure(self) -> list[str]:
        kind = {"wald": "Wald", "profile": "profile likelihood"}[self.method]
        link = [] if self.link == "logit" else [f"link {self.link}"]
        return ["Cox recalibration", *link, self.lens, f"{self._percent} {kind} intervals"]

    def _tables(self) -> list[Columns]:
        designed = self.effective_n is not None or self.n_clusters is not None
        ratio = "Wald test, by the jackknife, of" if designed else "likelihood-ratio test of"
        if (self.folds is not None and not designed) or self.oe is not None:
            ratio = "Wald test of"
        rows = {
            "intercept": "intercept",
            "slope": "slope",
            "calibration-in-the-large": "in_the_large",
        }
        rows |= {} if self.oe is None else {"O:E (se of its log)": "oe"}
        values, ratios = vars(self), ("lr", "lr_intercept", "lr_slope")
        estimates: Columns = {
            "": list(rows),
            "estimate": [values[name] for name in rows.values()],
            "se": [values[f"{name}_se"] for name in rows.values()],
            "interval": [values[f"{name}_interval"] for name in rows.values()],
        }
        tests: Columns = {
            ratio: ["intercept 0, slope 1", "calibration-in-the-large 0", "slope 1"],
            "value": [f"{values[name]:.1f}" for name in ratios],  # sd 2 and √2
            "df": [2, 1, 1],
            "pvalue": [values[f"{name}_pvalue"] for name in ratios],
        }
        return [estimates, tests]

    def _card(self) -> Card:
        names = {"slope": ("slope", 1), "calibration-in-the-large": ("in_the_large", 0)}
        values = vars(self)
        numbers = [
            (
                words,
                format_value(values[name], values[f"{name}_se"]),
                f"{format_range(*values[f'{name}_interval'])}; {calibrated} if calibrated",
            )
            for words, (name, calibrated) in names.items()
        ]
        both = ("p-value", format_p(self.lr_pvalue), "slope 1 and intercept 0")
        if self.oe is not None and self.oe_interval is not None:
            both = (
                "O:E",
                format_value(self.oe, self.oe_se or 0.0),
                format_range(*self.oe_interval),
            )
        x = np.linspace(0.01, 0.99, 99)
        fitted, low, high = self.curve(x)
        axes = (axes_of("event", self.event_name)[0], "Fitted event rate")
        drawing = line(x, fitted, axes, band=(low, high), square=True)
        return replace(super()._card(), numbers=(*numbers, both), drawing=drawing)

    def _frame_columns(self) -> dict[str, rendering.TypedColumn]:
        pvalues = {"intercept": None, "slope": self.lr_slope_pvalue}
        pvalues |= {"in_the_large": self.lr_intercept_pvalue}
        pvalues |= {} if self.oe is None else {"oe": None}
        values = vars(self)
        return rendering.columns_of_arrays(
            {
                "term": [*pvalues],
                "estimate": [values[name] for name in pvalues],
                "se": [values[f"{name}_se"] for name in pvalues],
                "low": [values[f"{name}_interval"][0] for name in pvalues],
                "high": [values[f"{name}_interval"][1] for name in pvalues],
                "pvalue": [*pvalues.values()],
            }
        )

    def _in_words(self) -> list[str]:
        return [f"{self.events} events in {self.n} observations."]


@dataclass(frozen=True, eq=False)
class PooledEffect(Record):
    """One measure of calibration at all sites, with its mean and spread over sites.

    Attributes
    ----------
    values, errors : tuple of float
        Estimate of every site, and its standard error.
    mean, mean_se : float
        Random-effects mean over sites, and its standard error (Hartung & Knapp).
    interval : tuple of float
        Confidence interval of the mean.
    prediction : tuple of float
        Prediction interval for the true value of a further site.
    tau : float
        Standard deviation of the true values over sites, ≥ 0, by REML.
    i_squared : float
        Share of the variance between sites that is not noise, in [0, 1] (Higgins & Thompson).
    pvalue : float
        p-value of calibration on average over sites.
    q, q_pvalue : float
        Cochran's Q, and its p-value of homogeneity over sites.
    """

    values: tuple[float, ...]
    errors: tuple[float, ...]
    mean: float
    mean_se: float
    interval: tuple[float, float]
    prediction: tuple[float, float]
    tau: float
    i_squared: float
    pvalue: float
    q: float
    q_pvalue: float


@dataclass(frozen=True, eq=False)
class CentreCurve(Record):
    """Mean calibration curve over sites, and the curves of sites, at G predictions.

    Attributes
    ----------
    at : ndarray of shape (G,)
        Predictions in increasing order, in (0, 1).
    mean : ndarray of shape (G,)
        Mean event rate over sites: mean log-odds as a probability.
    interval : ndarray of shape (G, 2)
        Confidence interval of the mean.
    prediction : ndarray of shape (G, 2)
        Prediction interval for a further site.
    tau : ndarray of shape (G,)
        Standard deviation of the true log-odds over sites.
    counts : ndarray of shape (G,), int
        Number of sites with predictions there, at least 3.
    sites : tuple of str
        Sites that have a curve.
    curves : ndarray of shape (sites, G)
        Curve of each site; NaN outside its predictions.
    """

    at: FloatArray
    mean: FloatArray
    interval: FloatArray
    prediction: FloatArray
    tau: FloatArray
    counts: IntArray
    sites: tuple[str, ...]
    curves: FloatArray

    def _frame_columns(self) -> dict[str, rendering.TypedColumn]:
        limits = {
            f"{name}_{end}": vars(self)[name][:, j]
            for name in ("interval", "prediction")
            for j, end in enumerate(("low", "high"))
        }
        at = {"at": self.at, "mean": self.mean}
        return rendering.columns_of_arrays({**at, **limits, "tau": self.tau, "counts": self.counts})


@dataclass(frozen=True, eq=False)
class MetaAnalysis(Result):
    """Result of :func:`caltest.meta_analysis`; ``notes`` name the sites that are left out.

    Attributes
    ----------
    sites : tuple of str
        The sites, sorted by name.
    counts, events : tuple of int
        Number of rows of each site, and of rows with the event.
    log_oe : PooledEffect
        Log of observed / expected events; 0 if calibrated.
    intercept : PooledEffect
        Calibration-in-the-large, in log-odds; 0 if calibrated.
    slope : PooledEffect
        Calibration slope; 1 if calibrated.
    level : float
        Confidence level of the intervals, in (0, 1).
    lens : str
        The lens, written as in Python.
    curve : CentreCurve or None
        With ``curve=True``: the mean curve over sites.
    n, n_classes, n_resamples, seed, ended, notes, version
        As for every :class:`Result`.
    """

    sites: tuple[str, ...]
    counts: tuple[int, ...]
    events: tuple[int, ...]
    log_oe: PooledEffect
    intercept: PooledEffect
    slope: PooledEffect
    level: float
    lens: str
    curve: CentreCurve | None = None
    title: ClassVar[str] = "Calibration over sites"
    plotter: ClassVar[str] = "forests.sites"

    def _procedure(self) -> list[str]:
        how = f"{len(self.sites)} sites, REML, {self._percent} Hartung–Knapp intervals"
        return ["meta-analysis", self.lens, how]

    def _tables(self) -> list[Columns]:
        effects = {"O:E": self.log_oe, "in the large": self.intercept, "slope": self.slope}
        rows: dict[str, Iterable[object]] = {"site": self.sites, "n": self.counts}
        rows["events"] = self.events
        for name, effect in effects.items():
            values, errors = np.array(effect.values), np.array(effect.errors)
            if name == "O:E":  # standard error of a ratio: of its logarithm, times the ratio
                values = np.exp(values)
                errors = errors * values
            rows[name] = [format_value(v, e) for v, e in zip(values, errors, strict=True)]
        means: dict[str, list[object]] = {"mean over sites": list(effects)}
        for part in ("mean", "interval", "prediction"):
            row = "prediction interval" if part == "prediction" else part
            means[row] = [_ratio(name, vars(e)[part]) for name, e in effects.items()]
        for part, head in {"tau": "τ", "i_squared": "I²", "pvalue": "pvalue"}.items():
            means[head] = [vars(effect)[part] for effect in effects.values()]
        return [
            rows,
            {**means, "p of Q": [format_p(effect.q_pvalue) for effect in effects.values()]},
        ]

    def _card(self) -> Card:
        effects = {"O:E": self.log_oe, "calibration-in-the-large": self.intercept}
        effects["slope"] = self.slope
        numbers = tuple(
            (
                name,
                format_value(*_with_error(name, e)),
                f"{format_range(*_pair(name, e.interval))}, {p_is(e.pvalue)}",
            )
            for name, e in effects.items()
        )
        z = NormalDist().inv_cdf(0.5 + 0.5 * self.level)
        sites = zip(self.sites, self.log_oe.values, self.log_oe.errors, strict=True)
        rows = [
            IntervalRow(
                site,
                exp(value),
                exp(value - z * error),
                exp(value + z * error),
                marked=abs(value) > z * error,
            )
            for site, value, error in sites
        ]
        drawing = forest(rows, "Observed / expected", reference=1.0)
        headline = f"{len(self.sites)} sites, {self._percent} intervals of the mean over sites"
        remarks = tuple(self._in_words())
        return Card(self.title, "plain", headline, numbers, remarks, drawing)

    def _frame_columns(self) -> dict[str, rendering.TypedColumn]:
        rows: dict[str, Sequence[Any]] = {"site": self.sites, "n": self.counts}
        rows["events"] = self.events
        for name in ("log_oe", "intercept", "slope"):
            effect: PooledEffect = vars(self)[name]
            rows |= {name: effect.values, f"{name}_se": effect.errors}
        return rendering.columns_of_arrays(rows)

    def _in_words(self) -> list[str]:
        return [
            "p tests calibration on average over sites, p of Q that all sites have one value "
            "(Cochran 1954). τ of O:E is on the scale of logarithms."
        ]


def _with_error(name: str, effect: PooledEffect) -> tuple[float, float]:
    """Return a pooled mean with its standard error; for O:E on the scale of the ratio.

    The pair is (mean, standard error); ``name`` is the measure, "O:E" or another, and ``effect``
    has logarithms for O:E.
    """
    if name != "O:E":
        return effect.mean, effect.mean_se
    return exp(effect.mean), exp(effect.mean) * effect.mean_se


def _pair(name: str, ends: tuple[float, float]) -> tuple[float, float]:
    """Return the limits ``ends`` of an interval; for O:E as ratios instead of logarithms.

    The pair is (low, high); ``name`` is the measure.
    """
    low, high = ends
    return (exp(low), exp(high)) if name == "O:E" else (low, high)


def _ratio(name: str, values: float | tuple[float, ...]) -> float | tuple[float, ...]:
    """Return logarithms of O:E as ratios, and values of other measures unchanged.

    ``name`` is the measure, "O:E" or another; the result has the form of ``values``.
    """
    if name != "O:E":
        return values
    return tuple(np.exp(values).tolist()) if isinstance(values, tuple) else float(np.exp(values))


@dataclass(frozen=True, eq=False)
class CORPDecomposition(Result):
    """CORP decomposition of a mean score.

    ``mean_score = miscalibration − discrimination + uncertainty``, exactly.

    Attributes
    ----------
    mean_score : float
        S(p, y), the mean score of the predictions; smaller is better.
    miscalibration : float
        S(p, y) − S(p̂, y) ≥ 0, with p̂ the isotonic fit: the gain by recalibration.
    discrimination : float
        S(ȳ, y) − S(p̂, y) ≥ 0, with ȳ the event rate: the gain by ranking.
    uncertainty : float
        S(ȳ, y), the score of the best constant prediction.
    score : {"brier", "log"}
        The score.
    lens : str
        The lens, written as in Python.
    fit : IsotonicFit or None
        p̂. It is not part of JSON, nor of comparisons with ``==``.
    n, n_classes, n_resamples, seed, ended, notes, version
        As for every :class:`Result`.
    """

    mean_score: float
    miscalibration: float
    discrimination: float
    uncertainty: float
    score: str
    lens: str
    fit: IsotonicFit | None = field(
        default=None, repr=False, compare=False, metadata={"transient": True}
    )
    title: ClassVar[str] = "mean score = miscalibration − discrimination + uncertainty"
    number: ClassVar[str] = "mean_score"
    plotter: ClassVar[str] = "lines.decomposition"

    def _procedure(self) -> list[str]:
        return [f"CORP({self.score!r}) decomposition", self.lens]

    def _card(self) -> Card:
        parts = ("mean_score", "miscalibration", "discrimination", "uncertainty")
        return _parts_card(self, parts)


@dataclass(frozen=True, eq=False)
class BrierDecomposition(Result):
    """Decomposition of a Brier score over the cells of a partition.

    ``mean_score = reliability − resolution + uncertainty + within_variance − within_covariance``,
    exactly. ḡ_b and r̄_b are the mean prediction and the label frequencies of the n_b rows in cell
    b, r̄ the label frequencies of all n rows, and e_i the outcome as a vector.

    Attributes
    ----------
    mean_score : float
        The Brier score.
    reliability : float
        Σ_b (n_b / n) ‖ḡ_b − r̄_b‖² ≥ 0: miscalibration between cells.
    resolution : float
        Σ_b (n_b / n) ‖r̄_b − r̄‖² ≥ 0: spread of the cells' frequencies.
    uncertainty : float
        1 − ‖r̄‖², the score of the constant prediction r̄.
    within_variance : float
        (1/n) Σ_i ‖p_i − ḡ_b‖² ≥ 0: spread of predictions within cells.
    within_covariance : float
        (2/n) Σ_i (p_i − ḡ_b)·(e_i − r̄_b): the part of that spread that agrees with outcomes.
    bins, lens : str
        Partition and lens, written as in Python.
    n, n_classes, n_resamples, seed, ended, notes, version
        As for every :class:`Result`.

    Notes
    -----
    For two classes everything is halved, as in :class:`caltest.BrierScore`. The last two parts are
    0 when every cell holds a single prediction: the decomposition of Murphy (1973). With them the
    sum is exact for any cells (Stephenson, Coelho & Jolliffe 2008).
    """

    mean_score: float
    reliability: float
    resolution: float
    uncertainty: float
    within_variance: float
    within_covariance: float
    bins: str
    lens: str
    title: ClassVar[str] = (
        "Brier score = reliability − resolution + uncertainty + within variance − within covariance"
    )
    number: ClassVar[str] = "mean_score"
    plotter: ClassVar[str] = "lines.decomposition"

    def _procedure(self) -> list[str]:
        return [f"Brier decomposition over {self.bins}", self.lens]

    def _card(self) -> Card:
        return _parts_card(self, ("mean_score", "reliability", "resolution", "uncertainty"))


def _parts_card(result: CORPDecomposition | BrierDecomposition, parts: tuple[str, ...]) -> Card:
    """Return the notebook card of a score decomposition: the score, its parts and a picture.

    ``result`` is the decomposition, and ``parts`` are the attributes that are shown, the score
    first.
    """
    values = {name: float(vars(result)[name]) for name in parts}
    shown = {name.replace("_", " "): value for name, value in values.items()}
    notes = ("lower is better", "lower is better", "higher is better")
    numbers = tuple(
        (name, format_value(value), note)
        for (name, value), note in zip(shown.items(), notes, strict=False)
    )
    rows = [IntervalRow(name, value, 0.0, value) for name, value in shown.items()]
    return Card("Decomposition", "plain", result.title, numbers, (), forest(rows, "Score"))


@dataclass(frozen=True, eq=False)
class IsotonicFit:
    """PAV-recalibrated probabilities of a two-class problem: the CORP reliability curve.

    ``predicted`` are the G distinct probabilities of the event, increasing, ``observed`` the
    recalibrated values, not decreasing (equal values form the CORP bins), and ``count`` the number,
    or weight, of rows; all of shape (G,).
    """

    predicted: FloatArray = field(repr=False)
    observed: FloatArray = field(repr=False)
    count: IntArray | FloatArray = field(repr=False)

    def __call__(self, p: ArrayLike) -> FloatArray:
        """Return recalibrated probabilities for ``p``, same shape.

        They are linear between the distinct predictions of the fit, and constant beyond them.
        """
        return np.interp(np.asarray(p, dtype=np.float64), self.predicted, self.observed)
