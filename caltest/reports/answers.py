"""Answers that only a report gives: what the rows are, measures with intervals, and every class."""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Collection
from dataclasses import dataclass
from importlib.resources import files
from typing import Any, ClassVar

import numpy as np
from scipy.special import ndtri
from scipy.stats import t as student

from caltest._base.arrays import FloatArray, IntArray
from caltest._base.poisson_binomial import clopper_pearson
from caltest._base.written import several
from caltest.errors import StatisticError
from caltest.inference import brier_decomposition, cox_recalibration
from caltest.inference.sites import log_ratio
from caltest.predictions import Predictions
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
from caltest.tally import Tally

#: What parts, profiles and measures are called and mean.
WORDING: dict[str, Any] = tomllib.loads(
    (files("caltest.reports") / "wording.toml").read_text(encoding="utf-8")
)
#: A value and its interval, NaN where none is known.
Triple = tuple[float, float, float]
#: The event of the top class.
RIGHT_TOP = "the predicted class is right"
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
    made: ClassVar[str] = "rows of the report · {0.lens}"

    @classmethod
    def of(cls, view: View, subgroups: int) -> DataSummary:
        """Count."""
        data, (rows_of_event, times) = view.data, _event(view)
        p, y = rows_of_event.probs[:, 0], rows_of_event.labels == 0
        prediction, outcome = view.units.means()
        return cls(
            event=RIGHT_TOP if view.lens.subject == "top" else view.event,
            events=int(times @ y),
            mean_outcome=outcome,
            mean_prediction=prediction,
            smallest=float(p.min()),
            largest=float(p.max()),
            distinct=len(data.key) if view.from_sums else np.unique(p).size,
            classes=data.classes or tuple(map(str, range(data.n_classes))),
            subgroups=subgroups,
            impossible=(view.problem if view.from_sums else data).impossible.size,
            tallied=view.from_sums,
            **view.facts,
        )

    def _tables(self) -> list[Columns]:
        names = ", ".join(self.classes[:20]) + ", …" * (len(self.classes) > 20)
        weights = "none"
        if self.effective_n is not None:
            weights = f"yes, effective n = {self.effective_n:.1f}"
        kinds = "micro-cells" if self.tallied else "distinct"
        repeated = "not known from sums" if self.tallied else "no more than by chance"
        followed = {} if self.followup is None else {"follow-up": str(self.followup)}
        rows = {
            "rows": f"{self.n}",
            "classes": f"{self.n_classes} ({names})",
            "event looked at": self.event,
            "events": f"{self.events} ({percent(self.mean_outcome, self.mean_prediction)})",
            "mean prediction": percent(self.mean_prediction, self.mean_outcome),
            "predictions": f"{self.smallest:.4g} to {self.largest:.4g}, {self.distinct} {kinds}",
            "weights": weights,
            "clusters": str(self.n_clusters or "none"),
            **({} if self.series is None else {"horizon": str(self.series)}),
            **({} if self.folds is None else {"folds": str(self.folds)}),
            "subgroups": str(self.subgroups or "none"),
            "outcomes of probability 0": str(self.impossible),
            "repeated rows": str(self.copies or repeated),
            **followed,
        }
        return [{"": list(rows), "value": list(rows.values())}]


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
    made: ClassVar[str] = "measures of calibration · {0.lens} · {0._percent} intervals"

    @classmethod
    def of(cls, view: View, level: float, names: Collection[str] = ()) -> Measures:
        """Compute all that these rows allow, or some; the others are named with the reason."""
        rows: dict[str, Triple] = {}
        omitted: list[str] = []
        for name, compute in _measures(view, level).items():
            if names and name not in names:
                continue
            try:
                rows[name] = compute()
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

    def _in_words(self) -> list[str]:
        return [WORDING["measures_without"]] if "ICI (lowess)" in self.measure else []

    def find(self, name: str) -> Triple | None:
        """Return value, low and high of a measure, if it is there."""
        if name not in self.measure:
            return None
        j = self.measure.index(name)
        return float(self.value[j]), float(self.low[j]), float(self.high[j])


def _measures(view: View, level: float) -> dict[str, Callable[[], Triple]]:
    """Return what computes each measure with its interval."""
    reach, induced, n = float(ndtri(0.5 + level / 2.0)), view.problem, view.problem.n
    rows_of_event, times = _event(view)
    p, y, w = rows_of_event.probs[:, 0], rows_of_event.labels == 0, rows_of_event.weights
    free = w is None and induced.n_clusters is None
    w = times if w is None else times * w

    def limits(influence: FloatArray) -> float:
        """Return half an interval of a mean, by its influence of every row, added up in clusters.

        The variance is G / (G − 1) Σ_g (Σ_{i in g} of the influences)², the law t with G − 1
        degrees of freedom, of rows without clusters normal.
        """
        if view.from_sums:
            return float("nan")
        if rows_of_event.clusters is None:
            return reach * float(np.sqrt((influence**2).sum()))
        sums = np.bincount(
            np.unique(rows_of_event.clusters, return_inverse=True)[1].ravel(), influence
        )
        variance = sums.size / (sums.size - 1.0) * (sums**2).sum()
        return float(student.ppf(0.5 + level / 2.0, sums.size - 1) * np.sqrt(variance))

    def oe() -> Triple:
        ratio, events = _value(OERatio(), view), float(times @ y)
        if not free:  # on the log scale, as the intercept moves what is expected
            fit = cox_line(view, level)
            low, high = fit.offset_intercept_interval
            _, half = log_ratio(rows_of_event, fit.offset_intercept, (high - low) / 2.0)
            return ratio, ratio * np.exp(-half), ratio * np.exp(half)
        # Events of unequal chances vary less than the binomial law, whose exact limits these are.
        low, high = clopper_pearson(events, n, level)
        expected = float(times @ p)
        return ratio, n * float(low) / expected, n * float(high) / expected

    def smooth(statistic: Statistic) -> Callable[[], Triple]:
        def compute() -> Triple:
            if view.from_sums:
                raise StatisticError("needs the rows, and a tally has none")
            if n > MOST_SMOOTHED:
                raise StatisticError(f"left out above {MOST_SMOOTHED} rows: it takes too much room")
            return _value(statistic, view), np.nan, np.nan

        return compute

    def mean(statistic: Statistic, rows: FloatArray) -> Callable[[], Triple]:
        def compute() -> Triple:
            value = _value(statistic, view)
            if not np.isfinite(value):
                raise StatisticError("infinite, as outcomes of probability 0 occurred")
            if not 0 < y.sum() < y.size:  # labels all alike show no scatter of theirs
                return value, np.nan, np.nan
            centred = rows - np.average(rows, weights=w)
            if free:
                half = reach * float(np.sqrt(times @ centred**2 / (n - 1) / n))
            else:
                half = limits(w * centred / w.sum())
            return value, value - half, value + half

        return compute

    def intercept() -> Triple:
        fit = cox_line(view, level)
        return fit.offset_intercept, *fit.offset_intercept_interval

    def slope() -> Triple:
        fit = cox_line(view, level)
        return fit.slope, *fit.slope_interval

    def sharpness() -> Triple:
        centred = p - np.average(p, weights=w)
        return float(np.sqrt(np.average(centred**2, weights=w))), np.nan, np.nan

    shared = {
        "intercept given slope 1": intercept,
        "slope": slope,
        "ICI (lowess)": smooth(ICI()),
        "E50 (lowess)": smooth(E50()),
        "E90 (lowess)": smooth(E90()),
        "ECI (lowess)": smooth(ECI()),
    }
    if view.followup is not None:

        def ratio() -> Triple:
            fit = cox_line(view, level)
            assert fit.oe is not None
            assert fit.oe_interval is not None
            return fit.oe, *fit.oe_interval

        return {"O:E": ratio, **shared}
    with np.errstate(divide="ignore"):
        surprise = -np.log(np.where(y, p, rows_of_event.probs[:, 1]))
    return {
        "O:E": oe,
        **shared,
        "Brier score": mean(BrierScore(), (p - y) ** 2),
        "scaled Brier score": lambda: (_value(ScaledBrierScore(), view), np.nan, np.nan),
        "log score": mean(LogScore(), surprise),
        "sharpness": sharpness,
    }


def _event(view: View) -> tuple[Predictions, FloatArray]:
    """Return rows that show the event, and how many each stands for: more than one in a tally."""
    return view.units.expand()[:2]


def _value(statistic: Statistic, view: View) -> float:
    """Return a measure, from sums where there are no rows."""
    if view.from_sums and isinstance(statistic, ScaledBrierScore):
        parts = brier_decomposition(view.data, bins=2)
        return 1.0 - parts.mean_score / parts.uncertainty
    return prepare(statistic, view.problem).observed


def cox_line(view: View, level: float) -> CoxRecalibration:
    """Return Cox's line, which needs finite log-odds of what happened."""
    if view.problem.impossible.size:
        words = several(view.problem.impossible.size, "outcome")
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
    made: ClassVar[str] = "means of every class"

    @classmethod
    def of(cls, view: View) -> ClassTable:
        """List the classes that are furthest from what was predicted."""
        data = view.data
        if isinstance(data, Tally):
            raise StatisticError("needs the rows of all classes: a tally is of one event")
        w = np.ones(data.n) if data.weights is None else data.weights
        events = data.labels[:, None] == np.arange(data.n_classes)
        predicted, observed = w @ data.probs / w.sum(), w @ events / w.sum()
        sd = np.sqrt(w**2 @ (data.probs * (1.0 - data.probs))) / w.sum()
        gap = observed - predicted
        in_sd = np.divide(gap, sd, out=np.zeros_like(gap), where=sd > 0.0)
        worst = np.argsort(-np.abs(in_sd), kind="stable")[:MOST_LISTED]
        return cls(
            tuple(data.class_name(int(c)) for c in worst),
            events.sum(axis=0)[worst],
            *(column[worst] for column in (predicted, observed, gap, in_sd)),
            **view.facts,
        )

    def _in_words(self) -> list[str]:
        left = self.n_classes - len(self.name)
        words = "Deviations of independent rows, in standard deviations of what chance does."
        return [words, *([f"{several(left, 'class')} nearer to 0 left out."] if left else [])]
