"""Answers that only a report gives: the data, measures with intervals, classes, a smooth curve.

:class:`Measures` has the measures of the field (O:E, slope, ICI, Brier score …) with intervals;
:class:`DataSummary`, :class:`ClassTable`, :class:`FollowedSites` and :func:`lowess` stand beside
them.
"""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Collection
from dataclasses import dataclass, replace
from functools import cached_property
from importlib.resources import files
from math import nan
from typing import Any

import numpy as np
from scipy.sparse import csr_array
from scipy.special import chdtrc, ndtri, stdtrit

from caltest._base.arrays import FloatArray, IntArray
from caltest._base.written import first_of, several
from caltest.data import Predictions
from caltest.data.lenses import LensLike
from caltest.errors import StatisticError
from caltest.inference import brier_decomposition, cox_recalibration
from caltest.inference.cox import log_ratio
from caltest.inference.reliability import View, spread
from caltest.nulls.laws import clopper_pearson
from caltest.results import CoxRecalibration, ReliabilityFit, Result, format_range, format_value
from caltest.results import rendering as frames
from caltest.results.rendering import Columns, p_is, percent, spread_of
from caltest.statistics import (
    E50,
    E90,
    ECI,
    ICI,
    BrierScore,
    LogScore,
    OERatio,
    RowProblem,
    ScaledBrierScore,
    Statistic,
)
from caltest.statistics.prepared import Prepared, prepare
from caltest.statistics.smooth import SmoothGaps

#: What parts, profiles and measures are called and mean.
WORDING: dict[str, Any] = tomllib.loads(
    (files("caltest.reports") / "wording.toml").read_text(encoding="utf-8")
)


#: Scores that are of the confidence where a lens looks at the predicted class.
OF_TOP = ("Brier score", "scaled Brier score", "log score")


#: What measures with intervals are of a calibrated model.
CALIBRATED_AT = {"O:E": 1.0, "calibration-in-the-large": 0.0, "slope": 1.0}


#: A value and its interval, NaN where none is known.
Triple = tuple[float, float, float]


#: Classes that are listed: those furthest from how often they occur.
CLASSES_LISTED = 10


@dataclass(frozen=True, eq=False)
class DataSummary(Result):
    """Summary of the data of a report: rows, classes, design.

    ``event`` is the name of the event, ``events`` counts it, and ``mean_outcome`` is its rate.
    ``mean_prediction``, ``smallest``, ``largest`` and ``distinct`` describe its predictions: mean,
    range, and number of distinct values. ``classes`` are names, ``subgroups`` is a number, 0
    without any; ``impossible`` counts outcomes of predicted probability 0. ``tallied`` says that
    only sums of the rows were kept.
    """

    event: str
    events: int
    mean_outcome: float
    mean_prediction: float
    smallest: float
    largest: float
    distinct: int
    classes: tuple[str, ...]
    subgroups: int
    impossible: int
    lens: str
    tallied: bool = False

    @classmethod
    def of(cls, view: View, subgroups: int) -> DataSummary:
        """Return the summary of a view: numbers of observations and events, predictions, classes.

        ``view`` holds the data behind the lens. ``subgroups`` is the number of subgroups, 0 without
        ``by``.
        """
        data, (rows, times) = view.data, view.problem.expand()[:2]
        p, (prediction, outcome) = rows.probs[:, 0], view.problem.means()
        return cls(
            event=_event_of(view),
            events=int(times @ (rows.labels == 0)),
            mean_outcome=outcome,
            mean_prediction=prediction,
            smallest=float(p.min()),
            largest=float(p.max()),
            distinct=len(view.problem.probs) if view.from_sums else np.unique(p).size,
            classes=data.classes or tuple(map(str, range(data.n_classes))),
            subgroups=subgroups,
            impossible=(view.problem if view.from_sums else data).impossible.size,
            tallied=view.from_sums,
            **view.facts,
        )

    def _procedure(self) -> list[str]:
        return ["rows of the report", self.lens]

    @property
    def _events(self) -> dict[str, str]:
        """Count of events with its share, or beside the estimated risk if rows were censored.

        It is a dict of texts by heading: "events", or "events observed" and "estimated risk".
        """
        share = percent(self.mean_outcome, self.mean_prediction)
        if self.followup is None:
            return {"events": f"{self.events} ({share})"}
        return {"events observed": str(self.events), "estimated risk": share}

    def _tables(self) -> list[Columns]:
        names = first_of(self.classes, 20)
        weighted = f"yes, effective n = {self.effective_n or 0.0:.1f}"
        kinds = "micro-cells" if self.tallied else "distinct"
        repeated = "not known from sums" if self.tallied else "no more than by chance"
        rows = {
            "rows": self.n,
            "classes": f"{self.n_classes} ({names})",
            "event looked at": self.event,
            **self._events,
            "mean prediction": percent(self.mean_prediction, self.mean_outcome),
            "predictions": f"{self.smallest:.4g} to {self.largest:.4g}, {self.distinct} {kinds}",
            "weights": "none" if self.effective_n is None else weighted,
            "clusters": self.n_clusters or "none",
            "horizon": self.series,
            "folds": self.folds,
            "subgroups": self.subgroups or "none",
            "outcomes of probability 0": self.impossible,
            "repeated rows": self.copies or repeated,
            "follow-up": self.followup,
        }
        rows = {name: value for name, value in rows.items() if value is not None}
        return [{"": list(rows), "value": list(map(str, rows.values()))}]


def _event_of(view: View) -> str:
    """Return what the event of a view is called, such as "died", "label = 1" or "class cat".

    ``view`` holds the data behind the lens. A column whose name says nothing stands with its value.
    """
    if view.lens.subject == "top":
        return "the predicted class is right"
    outcome = view.data.outcome
    return f"{outcome} = 1" if outcome and view.event == "class 1" else view.event


@dataclass(frozen=True, eq=False)
class Measures(Result):
    """Numbers of one model with their intervals and explanations.

    ``measure`` are the names of M measures, such as "slope". ``value``, ``low`` and ``high`` have
    shape (M,); limits are NaN where they are not known. ``meaning`` are the explanations.
    ``omitted`` names measures that could not be computed, each with its reason, and ``level`` is
    the confidence level.
    """

    measure: tuple[str, ...]
    value: FloatArray
    low: FloatArray
    high: FloatArray
    meaning: tuple[str, ...]
    omitted: tuple[str, ...]
    level: float
    lens: str

    @classmethod
    def of(cls, view: View, level: float, names: Collection[str] = ()) -> Measures:
        """Compute the measures that these observations allow, or only those in ``names``.

        ``view`` holds the data behind the lens, ``level`` is the level of intervals. Names are such
        as "O:E", "slope" or "Brier score"; () stands for all. Measures that cannot be computed are
        listed in ``omitted``, each with its reason.
        """
        rows, omitted, event = dict[str, Triple](), list[str](), _Event(view, level)
        for name in names or (MEASURES if view.followup is None else FOLLOWED):
            try:
                rows[name] = MEASURES[name](event)
            except StatisticError as error:
                omitted.append(f"{name}: {error}")
        table = np.array(list(rows.values()), dtype=np.float64).reshape(-1, 3)
        finite = np.where(np.isfinite(table), table, np.nan)
        return cls(
            measure=tuple(rows),
            **dict(zip(("value", "low", "high"), finite.T, strict=True)),
            meaning=tuple(_meaning(name, view) for name in rows),
            omitted=tuple(omitted),
            level=level,
            **view.facts,
        )

    @property
    def excluding(self) -> list[str]:
        """Phrases for the measures whose interval excludes the value of a calibrated model.

        Each names the measure, its interval and that value; [] if there are none. Measures are O:E,
        calibration-in-the-large and slope.
        """
        wrong = []
        for name, calibrated in CALIBRATED_AT.items():
            _, low, high = self.find(name) or (0.0, calibrated, calibrated)
            if low > calibrated or high < calibrated:
                wrong.append(f"{name} ({low:.3g} to {high:.3g}) excludes {calibrated:g}")
        return wrong

    def _procedure(self) -> list[str]:
        return ["measures of calibration", self.lens, f"{self._percent} intervals"]

    def _tables(self) -> list[Columns]:
        names = ("measure", "value", "low", "high", "meaning")
        of_top = ", top label" * self.lens.startswith("TopK")
        called = [f"{m}{of_top * (m in OF_TOP)}" for m in self.measure]
        return [{name: vars(self)[name] for name in names} | {"measure": called}]

    def _frame_columns(self) -> dict[str, frames.TypedColumn]:
        return frames.columns_of_arrays(self._tables()[0])

    def _in_words(self) -> list[str]:
        return [WORDING["measures_without"]] if "ICI (lowess)" in self.measure else []

    def find(self, name: str) -> Triple | None:
        """Return (value, low, high) of the measure called ``name``; None if it was not computed."""
        if name not in self.measure:
            return None
        j = self.measure.index(name)
        return float(self.value[j]), float(self.low[j]), float(self.high[j])


def _meaning(name: str, view: View) -> str:
    """Return the explanation printed beside the measure called ``name``.

    For more than two classes the scores are scores of the top class. ``view`` holds the data behind
    the lens.
    """
    words: dict[str, str] = WORDING["measures_of_top"] if view.lens.subject == "top" else {}
    return words.get(name, WORDING["measures"][name])


class _Event:
    """Binary outcomes of a view, and the measures of the field computed on them.

    ``view`` holds the data behind the lens, ``level`` is the level of intervals. ``p`` holds the
    predictions, ``y`` the outcomes and ``times`` the number of observations that each row stands
    for, arrays of shape (n,). ``free`` is true without weights and clusters.
    """

    def __init__(self, view: View, level: float) -> None:
        self.view, self.level = view, level
        self.rows, self.times = view.problem.expand()[:2]
        self.p, self.y = self.rows.probs[:, 0], self.rows.labels == 0
        w = self.rows.weights
        self.w = self.times if w is None else self.times * w
        self.free = w is None and view.problem.n_clusters is None

    def value(self, statistic: Statistic) -> float:
        return prepare(statistic, self.view.problem).observed

    @cached_property
    def line(self) -> CoxRecalibration:
        return cox_line(self.view, self.level)

    def ratio(self) -> Triple:
        if self.view.followup is not None:
            assert self.line.oe is not None
            assert self.line.oe_interval is not None
            return self.line.oe, *self.line.oe_interval
        ratio, n = self.value(OERatio()), self.view.problem.n
        if not self.free:  # on the log scale, as the intercept moves what is expected
            low, high = self.line.in_the_large_interval
            _, half = log_ratio(self.rows, self.line.in_the_large, (high - low) / 2.0)
            return ratio, ratio * np.exp(-half), ratio * np.exp(half)
        # Events of unequal chances vary less than the binomial law, whose exact limits these are.
        low, high = clopper_pearson(float(self.times @ self.y), n, self.level)
        expected = float(self.times @ self.p)
        return ratio, n * float(low) / expected, n * float(high) / expected

    @cached_property
    def gaps(self) -> Prepared:
        """Prepared ICI of these rows, with the distances of predictions from the smooth curve.

        The curve is fitted once for ICI, E50, E90 and ECI.
        """
        return prepare(ICI(), self.view.problem)

    def smooth(self, statistic: ICI | E50 | E90 | ECI) -> Triple:
        if self.view.from_sums:
            raise StatisticError("needs the rows, and a tally has none")
        if self.view.problem.n > MOST_SMOOTHED:
            raise StatisticError(f"left out above {MOST_SMOOTHED} rows: it takes too much room")
        gaps = self.gaps
        if isinstance(gaps, SmoothGaps):
            return statistic.of(gaps).observed, np.nan, np.nan
        return self.value(statistic), np.nan, np.nan

    def mean(self, statistic: Statistic, scores: FloatArray) -> Triple:
        """Return (mean, low, high) of a score, with limits from the influence function.

        ``scores`` (n,) are the scores of the rows, ``statistic`` computes their mean exactly. The
        variance is G / (G − 1) Σ_g (Σ_{i in g} of the influences)², summed within G clusters, with
        a t distribution of G − 1 degrees of freedom. Without clusters each row is its own and the
        limits are normal. Limits are NaN where they are not known. StatisticError for an infinite
        mean.
        """
        value, w, n = self.value(statistic), self.w, self.view.problem.n
        if not np.isfinite(value):
            raise StatisticError("infinite, as outcomes of probability 0 occurred")
        shares = w * (scores - np.average(scores, weights=w)) / w.sum()
        reach, clusters = float(ndtri(0.5 + self.level / 2.0)), self.rows.clusters
        if not 0 < self.y.sum() < self.y.size:  # labels all alike show no scatter of theirs
            half = np.nan
        elif self.free:
            centred = scores - np.average(scores, weights=w)
            half = reach * float(np.sqrt(self.times @ centred**2 / (n - 1) / n))
        elif self.view.from_sums:
            half = np.nan
        elif clusters is None:
            half = reach * float(np.sqrt((shares**2).sum()))
        else:
            sums = np.bincount(np.unique(clusters, return_inverse=True)[1].ravel(), shares)
            variance = sums.size / (sums.size - 1.0) * (sums**2).sum()
            half = float(stdtrit(sums.size - 1, 0.5 + self.level / 2.0) * np.sqrt(variance))
        return value, max(value - half, 0.0), value + half  # as no score is negative

    def scaled(self) -> Triple:
        if not self.view.from_sums:
            return self.value(ScaledBrierScore()), np.nan, np.nan
        parts = brier_decomposition(self.view.data, bins=2)
        return 1.0 - parts.mean_score / parts.uncertainty, np.nan, np.nan

    def surprise(self) -> Triple:
        with np.errstate(divide="ignore"):
            scores = -np.log(np.where(self.y, self.p, self.rows.probs[:, 1]))
        with np.errstate(invalid="ignore"):
            return self.mean(LogScore(), scores)

    def sharpness(self) -> Triple:
        centred = self.p - np.average(self.p, weights=self.w)
        return float(np.sqrt(np.average(centred**2, weights=self.w))), np.nan, np.nan


#: What computes each measure with its interval.
MEASURES: dict[str, Callable[[_Event], Triple]] = {
    "O:E": _Event.ratio,
    "calibration-in-the-large": lambda e: (
        e.line.in_the_large,
        *e.line.in_the_large_interval,
    ),
    "slope": lambda e: (e.line.slope, *e.line.slope_interval),
    "ICI (lowess)": lambda e: e.smooth(ICI()),
    "E50 (lowess)": lambda e: e.smooth(E50()),
    "E90 (lowess)": lambda e: e.smooth(E90()),
    "ECI (lowess)": lambda e: e.smooth(ECI()),
    "Brier score": lambda e: e.mean(BrierScore(), (e.p - e.y) ** 2),
    "scaled Brier score": _Event.scaled,
    "log score": _Event.surprise,
    "sharpness": _Event.sharpness,
}


#: Those that allow for rows that were not followed to the horizon: no scores.
FOLLOWED = tuple(MEASURES)[:7]


def cox_line(view: View, level: float) -> CoxRecalibration:
    """Return Cox's calibration line of a view; it needs finite log-odds of the observed labels.

    It is the fit of the outcome on the log-odds of the prediction, with intervals of level
    ``level``. ``view`` holds the data behind the lens. StatisticError if outcomes of probability 0
    occurred.
    """
    if view.problem.impossible.size:
        words = several(view.problem.impossible.size, "outcome")
        raise StatisticError(f"{words} had probability 0, whose log-odds are infinite")
    return cox_recalibration(view.data, lens=view.lens, level=level)


@dataclass(frozen=True, eq=False)
class ClassTable(Result):
    """Table of classes: mean prediction and observed frequency of each.

    All fields but ``lens`` have an entry for each class. ``count`` is how often the class occurred,
    ``deviation`` is observed − predicted, and ``in_sd`` the same in standard deviations under
    calibration.
    """

    name: tuple[str, ...]
    count: IntArray
    predicted: FloatArray
    observed: FloatArray
    deviation: FloatArray
    in_sd: FloatArray
    lens: str

    @classmethod
    def of(cls, view: View) -> ClassTable:
        """Return the table of classes, sorted by |observed − predicted| in standard deviations.

        The ten furthest are listed. ``view`` holds the data seen through the lens. StatisticError
        for a tally, which has no rows.
        """
        if (data := view.data.rows) is None:
            raise StatisticError("needs the rows of all classes: a tally is of one event")
        w = np.ones(data.n) if data.weights is None else data.weights
        events = data.labels[:, None] == np.arange(data.n_classes)
        predicted, observed = w @ data.probs / w.sum(), w @ events / w.sum()
        sd = np.sqrt(w**2 @ (data.probs * (1.0 - data.probs))) / w.sum()
        gap = observed - predicted
        in_sd = np.divide(gap, sd, out=np.zeros_like(gap), where=sd > 0.0)
        worst = np.argsort(-np.abs(in_sd), kind="stable")[:CLASSES_LISTED]
        names = tuple(data.class_name(int(c)) for c in worst)
        columns = (events.sum(axis=0), predicted, observed, gap, in_sd)
        return cls(names, *(column[worst] for column in columns), **view.facts)

    def _procedure(self) -> list[str]:
        return ["means of every class"]

    def _tables(self) -> list[Columns]:
        names = ("name", "count", "predicted", "observed", "deviation", "in_sd")
        return [{name: vars(self)[name] for name in names}]

    def _frame_columns(self) -> dict[str, frames.TypedColumn]:
        return frames.columns_of_arrays(self._tables()[0])

    def _in_words(self) -> list[str]:
        left = self.n_classes - len(self.name)
        words = (
            "Observed − predicted of independent rows, in standard deviations under calibration."
        )
        return [words, *([f"{several(left, 'class')} nearer to 0 left out."] if left else [])]


@dataclass(frozen=True, eq=False)
class FollowedSites(Result):
    """Table of sites with follow-up: O:E, calibration-in-the-large and slope of each.

    All fields but ``lens`` and ``level`` have an entry for each site: its name, number of rows, and
    the three measures, each with an interval (low, high) of ``level`` that holds for one site.
    """

    site: tuple[str, ...]
    count: tuple[int, ...]
    oe: tuple[float, ...]
    oe_interval: tuple[tuple[float, float], ...]
    in_the_large: tuple[float, ...]
    in_the_large_interval: tuple[tuple[float, float], ...]
    slope: tuple[float, ...]
    slope_interval: tuple[tuple[float, float], ...]
    lens: str
    level: float

    @classmethod
    def of(cls, data: Predictions, lens: LensLike | None, level: float) -> FollowedSites:
        """Fit Cox's line at every site of rows with follow-up; ``by`` of ``data`` names the sites.

        ``lens`` is the lens of the event, None for the usual one, and ``level`` the level of
        intervals. Sites without a finite fit are left out and named in a note. StatisticError if
        none is left.
        """
        fits, notes = dict[str, CoxRecalibration](), list[str]()
        for name, rows in data.subgroups().items():
            part = replace(data, by=None, features=None).take(rows)
            try:
                fits[name] = cox_recalibration(part, lens=lens, level=level)
            except StatisticError as error:
                notes.append(f"site {name} is left out: {error}")
        if not fits:
            raise StatisticError(f"no site has a finite fit: {'; '.join(notes)}")
        lines = [*fits.values()]
        measures: dict[str, Any] = {
            name: tuple(vars(line)[name] for line in lines) for name in SITE_MEASURES
        }
        return cls(
            site=tuple(fits), count=tuple(line.n for line in lines), **measures,
            lens=lines[0].lens, level=level, n=data.n, n_classes=data.n_classes, notes=tuple(notes),
        )  # fmt: skip

    @property
    def homogeneity(self) -> tuple[float, float, float]:
        """P of one calibration-in-the-large, p of one slope, and the mean slope, over all sites.

        The p-values are of Cochran's Q, Σ w (x − x̄)², with w = 1/se² and x̄ the weighted mean; the
        standard errors are as in the intervals. NaN, all three, for a single site.
        """
        found, mean = list[float](), nan
        pairs = (self.in_the_large, self.in_the_large_interval), (self.slope, self.slope_interval)
        for values, intervals in pairs:
            at, length = np.array(values), np.ptp(np.array(intervals), axis=1)
            weights = (2.0 * ndtri(0.5 + self.level / 2.0) / length) ** 2
            mean = float(np.average(at, weights=weights))
            found.append(float(chdtrc(at.size - 1, (weights * (at - mean) ** 2).sum())))
        return (found[0], found[1], mean) if len(self.site) > 1 else (nan, nan, nan)

    def _procedure(self) -> list[str]:
        return ["Cox recalibration of every site", self.lens, f"{self._percent} intervals"]

    def _tables(self) -> list[Columns]:
        heads = ("O:E", "in the large", "slope")
        table: dict[str, list[str]] = {"site": [*self.site], "n": [*map(str, self.count)]}
        for head, name in zip(heads, SITE_MEASURES[::2], strict=True):
            values, ends = vars(self)[name], vars(self)[f"{name}_interval"]
            table[head] = [
                f"{format_value(v, spread_of(*e))} ({format_range(*e)})"
                for v, e in zip(values, ends, strict=True)
            ]
        return [table]

    def _in_words(self) -> list[str]:
        said = [f"Each interval holds for one site ({self._percent})."]
        levels, slopes, _ = self.homogeneity
        if levels == levels:
            said.append(
                "Test that all sites have one value (Cochran 1954): calibration-in-the-large "
                f"{p_is(levels)}, slope {p_is(slopes)}."
            )
        return said


#: Fields of Cox's line that a site with follow-up has.
SITE_MEASURES = (
    *("oe", "oe_interval", "in_the_large", "in_the_large_interval", "slope", "slope_interval"),
)


# ------------------------------------------------------------------------------
# The flexible curve of a clinical report: lowess, with a band at each prediction.


#: A smooth curve takes half a kB a row: more rows than this go without.
MOST_SMOOTHED = 200_000


#: With fewer independent rows or clusters than this there is no band.
FEWEST_FOR_A_BAND = 5


def lowess(view: View, level: float) -> ReliabilityFit:
    """Fit the smooth curve of :class:`caltest.ICI`, with pointwise confidence limits.

    ``view`` holds the data behind the lens, ``level`` is the level of the limits. A value of the
    curve is Σ_i s_i y_i, for weights s of the smoother. Its variance is G / (G − 1) · Σ_g (Σ_{i in
    g} s_i r_i)², r_i the residuals from the curve and g the G clusters, or the rows where there are
    none (Liang & Zeger, Biometrika 73, 1986); the limits use Student's t with G − 1 degrees of
    freedom. With follow-up, y is p + W (Y − p), and the variance comes from the influence of every
    row on the weights W as well. StatisticError for a tally, above 200 000 rows, and below 5 rows
    or clusters.
    """
    if view.from_sums:
        raise StatisticError("a smooth curve needs the rows, and a tally has none")
    data = view.induced
    if data.n > MOST_SMOOTHED:
        raise StatisticError(f"left out above {MOST_SMOOTHED} rows: it takes too much room")
    units = data.n if data.n_clusters is None else data.n_clusters
    if units < FEWEST_FOR_A_BAND:
        raise StatisticError(
            f"a smooth curve with a band needs {FEWEST_FOR_A_BAND} rows or clusters"
        )
    gaps = ICI().prepare(RowProblem(replace(data, followup=None)))
    if data.followup is None:
        fitted = gaps.smoother @ _events(gaps)
        half = _error(gaps, np.interp(gaps.ordered, gaps.anchors, fitted))
    else:
        fitted, half = _followed_curve(gaps, data)
    half = half * stdtrit(units - 1, 0.5 + 0.5 * level)
    return ReliabilityFit(
        predicted=gaps.anchors,
        fitted=np.clip(fitted, 0.0, 1.0),
        low=np.clip(fitted - half, 0.0, 1.0),
        high=np.clip(fitted + half, 0.0, 1.0),
        spread=spread(view.problem),
        name=view.event,
        subject=view.lens.subject,
        fit="lowess",
        band="confidence",
        level=level,
        simultaneous=False,
        test=None,
        **view.facts,
    )


def _events(gaps: SmoothGaps) -> FloatArray:
    """Return the outcomes, shape (n,), sorted by increasing prediction.

    ``gaps`` is the fitted smooth curve with the rows.
    """
    return np.asarray(gaps.data.labels[gaps.order] == 0, dtype=np.float64)


def _followed_curve(gaps: SmoothGaps, data: Predictions) -> tuple[FloatArray, FloatArray]:
    """Return (curve, standard error) at the A anchors with follow-up, (A,) each.

    Anchors are the predictions at which the smooth curve is fitted. ``gaps`` has the smoother (A,
    n) and the rows in order; ``data`` are the rows with follow-up, whose outcomes are weighted by
    the inverse probability that they are known.
    """
    censoring, p = data.censoring, data.probs[:, 0]
    residuals = censoring.weights * ((data.labels == 0) - p)
    fitted = np.asarray(gaps.smoother @ (p + residuals)[gaps.order])
    # What is expected of a residual given its prediction
    expected = np.empty_like(p)
    expected[gaps.order] = np.interp(gaps.ordered, gaps.anchors, fitted) - gaps.ordered
    error, share = np.empty(len(fitted)), np.zeros_like(p)
    for k, row in enumerate(gaps.smoother.toarray()):
        share[gaps.order] = row
        influence = censoring.influence(share * residuals) - share * expected
        error[k] = np.sqrt(np.square(influence).sum())
    return fitted, error


def _error(gaps: SmoothGaps, curve: FloatArray) -> FloatArray:
    """Return the standard error of a smooth curve at its A anchors, shape (A,).

    Anchors are the predictions at which it is fitted. ``gaps`` has the smoother (A, n), the rows
    and their clusters. ``curve`` (n,) holds the values of the curve at the predictions in
    increasing order; residuals are taken from it.
    """
    residuals = _events(gaps) - curve
    clusters = gaps.data.clusters
    unit = (
        np.arange(curve.size) if clusters is None else np.unique(clusters, return_inverse=True)[1]
    )
    unit = unit.ravel()[gaps.order]
    n_units = int(unit.max()) + 1
    member = csr_array((residuals, (np.arange(unit.size), unit)), shape=(unit.size, n_units))
    sums = (gaps.smoother @ member).power(2).sum(axis=1)
    return np.asarray(np.sqrt(n_units / (n_units - 1.0) * sums))
