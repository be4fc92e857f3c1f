"""Answers that only a report gives: what the rows are, measures with intervals, and every class."""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Collection
from dataclasses import dataclass
from functools import cached_property
from importlib.resources import files
from typing import Any, ClassVar

import numpy as np
from scipy.special import ndtri, stdtrit

from caltest._base.arrays import FloatArray, IntArray
from caltest._base.poisson_binomial import clopper_pearson
from caltest._base.written import first_of, several
from caltest.errors import StatisticError
from caltest.inference import brier_decomposition, cox_recalibration
from caltest.inference.sites import log_ratio
from caltest.reliability.view import View
from caltest.reports.smooth import MOST_SMOOTHED
from caltest.results import CoxRecalibration, Result
from caltest.results.numbers import percent
from caltest.results.tables import Columns
from caltest.statistics import (
    E50,
    E90,
    ECI,
    ICI,
    BrierScore,
    LogScore,
    OERatio,
    ScaledBrierScore,
    Statistic,
)
from caltest.statistics.base import prepare
from caltest.statistics.ici import SmoothGaps
from caltest.statistics.prepared import Prepared

#: What parts, profiles and measures are called and mean.
WORDING: dict[str, Any] = tomllib.loads(
    (files("caltest.reports") / "wording.toml").read_text(encoding="utf-8")
)
#: What measures with intervals are of a calibrated model.
CALIBRATED_AT = {"O:E": 1.0, "intercept given slope 1": 0.0, "slope": 1.0}
#: A value and its interval, NaN where none is known.
Triple = tuple[float, float, float]
#: Classes that are listed: those furthest from how often they occur.
MOST_LISTED = 10


@dataclass(frozen=True)
class DataSummary(Result):
    """Of which rows a report is."""

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
    procedure: ClassVar[str] = "rows of the report · {0.lens}"

    @classmethod
    def of(cls, view: View, subgroups: int) -> DataSummary:
        """Count."""
        data, (rows, times) = view.data, view.units.expand()[:2]
        p, (prediction, outcome) = rows.probs[:, 0], view.units.means()
        return cls(
            event="the predicted class is right" if view.lens.subject == "top" else view.event,
            events=int(times @ (rows.labels == 0)),
            mean_outcome=outcome,
            mean_prediction=prediction,
            smallest=float(p.min()),
            largest=float(p.max()),
            distinct=len(view.units.probs) if view.from_sums else np.unique(p).size,
            classes=data.classes or tuple(map(str, range(data.n_classes))),
            subgroups=subgroups,
            impossible=(view.units if view.from_sums else data).impossible.size,
            tallied=view.from_sums,
            **view.facts,
        )

    def _tables(self) -> list[Columns]:
        names = first_of(self.classes, 20)
        weighted = f"yes, effective n = {self.effective_n or 0.0:.1f}"
        kinds = "micro-cells" if self.tallied else "distinct"
        repeated = "not known from sums" if self.tallied else "no more than by chance"
        rows = {
            "rows": self.n,
            "classes": f"{self.n_classes} ({names})",
            "event looked at": self.event,
            "events": f"{self.events} ({percent(self.mean_outcome, self.mean_prediction)})",
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


@dataclass(frozen=True, eq=False)
class Measures(Result):
    """Numbers of one model with their intervals, and what each means."""

    measure: tuple[str, ...]
    value: FloatArray
    low: FloatArray
    high: FloatArray
    meaning: tuple[str, ...]
    omitted: tuple[str, ...]
    level: float
    lens: str
    columns: ClassVar[tuple[str, ...]] = ("measure", "value", "low", "high", "meaning")
    procedure: ClassVar[str] = "measures of calibration · {0.lens} · {0._percent} intervals"

    @classmethod
    def of(cls, view: View, level: float, names: Collection[str] = ()) -> Measures:
        """Compute all that these rows allow, or some; the others are named with the reason."""
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
            meaning=tuple(WORDING["measures"][name] for name in rows),
            omitted=tuple(omitted),
            level=level,
            **view.facts,
        )

    @property
    def excluding(self) -> list[str]:
        """The measures whose intervals leave out what a calibrated model has, with both."""
        wrong = []
        for name, calibrated in CALIBRATED_AT.items():
            _, low, high = self.find(name) or (0.0, calibrated, calibrated)
            if low > calibrated or high < calibrated:
                wrong.append(f"{name} ({low:.3g} to {high:.3g}) leaves out {calibrated:g}")
        return wrong

    def _in_words(self) -> list[str]:
        return [WORDING["measures_without"]] if "ICI (lowess)" in self.measure else []

    def find(self, name: str) -> Triple | None:
        """Return value, low and high of a measure, if it is there."""
        if name not in self.measure:
            return None
        j = self.measure.index(name)
        return float(self.value[j]), float(self.low[j]), float(self.high[j])


class _Event:
    """The event in rows that stand for ``times`` rows each, and what can be computed of it."""

    def __init__(self, view: View, level: float) -> None:
        self.view, self.level = view, level
        self.rows, self.times = view.units.expand()[:2]
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
            low, high = self.line.offset_intercept_interval
            _, half = log_ratio(self.rows, self.line.offset_intercept, (high - low) / 2.0)
            return ratio, ratio * np.exp(-half), ratio * np.exp(half)
        # Events of unequal chances vary less than the binomial law, whose exact limits these are.
        low, high = clopper_pearson(float(self.times @ self.y), n, self.level)
        expected = float(self.times @ self.p)
        return ratio, n * float(low) / expected, n * float(high) / expected

    @cached_property
    def gaps(self) -> Prepared:
        """The distances from the smooth curve, which is fitted once for all that sum them up."""
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
        """Return a mean score; the interval is by the influence of every row, added up in clusters.

        The variance is G / (G − 1) Σ_g (Σ_{i in g} of the influences)², the law t with G − 1
        degrees of freedom, of rows without clusters normal.
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
    "intercept given slope 1": lambda e: (
        e.line.offset_intercept,
        *e.line.offset_intercept_interval,
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
    """Return Cox's line, which needs finite log-odds of what happened."""
    if view.units.impossible.size:
        words = several(view.units.impossible.size, "outcome")
        raise StatisticError(f"{words} had probability 0, whose log-odds are infinite")
    return cox_recalibration(view.data, lens=view.lens, level=level)


@dataclass(frozen=True, eq=False)
class ClassTable(Result):
    """Every class by itself: how often it is predicted, and how often it occurs."""

    name: tuple[str, ...]
    count: IntArray
    predicted: FloatArray
    observed: FloatArray
    deviation: FloatArray
    in_sd: FloatArray
    lens: str
    columns: ClassVar = ("name", "count", "predicted", "observed", "deviation", "in_sd")
    procedure: ClassVar[str] = "means of every class"

    @classmethod
    def of(cls, view: View) -> ClassTable:
        """List the classes that are furthest from what was predicted."""
        if (data := view.data.rows) is None:
            raise StatisticError("needs the rows of all classes: a tally is of one event")
        w = np.ones(data.n) if data.weights is None else data.weights
        events = data.labels[:, None] == np.arange(data.n_classes)
        predicted, observed = w @ data.probs / w.sum(), w @ events / w.sum()
        sd = np.sqrt(w**2 @ (data.probs * (1.0 - data.probs))) / w.sum()
        gap = observed - predicted
        in_sd = np.divide(gap, sd, out=np.zeros_like(gap), where=sd > 0.0)
        worst = np.argsort(-np.abs(in_sd), kind="stable")[:MOST_LISTED]
        names = tuple(data.class_name(int(c)) for c in worst)
        columns = (events.sum(axis=0), predicted, observed, gap, in_sd)
        return cls(names, *(column[worst] for column in columns), **view.facts)

    def _in_words(self) -> list[str]:
        left = self.n_classes - len(self.name)
        words = "Deviations of independent rows, in standard deviations of what chance does."
        return [words, *([f"{several(left, 'class')} nearer to 0 left out."] if left else [])]
