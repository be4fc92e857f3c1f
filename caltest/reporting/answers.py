"""Answers that only a report gives: what the rows are, measures with intervals, and every class."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from scipy.special import ndtri

from caltest._base.arrays import FloatArray, IntArray
from caltest._base.written import name_of, several
from caltest.errors import StatisticError
from caltest.inference import cox_recalibration
from caltest.inference.entry import design
from caltest.lenses import Lens
from caltest.predictions import Predictions
from caltest.results import CoxRecalibration, Result
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

#: A value and its interval, NaN where none is known.
Triple = tuple[float, float, float]
#: A smooth curve takes half a kB a row: more rows than this go without.
MOST_SMOOTHED = 200_000
#: The event of the top class.
RIGHT_TOP = "the predicted class is right"
#: Classes that are listed: those furthest from how often they occur.
MOST_LISTED = 10


def told(data: Predictions, lens: Lens) -> dict[str, Any]:
    """Return what every answer says of its data."""
    own = {"lens": name_of(lens), "n": data.n, "n_classes": data.n_classes}
    return own | {"notes": data.notes, "copies": data.copies} | design(data)


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

    @classmethod
    def of(cls, data: Predictions, lens: Lens, induced: Predictions) -> DataSummary:
        """Count."""
        p, y = induced.probs[:, 0], induced.labels == 0
        mean = [float(np.average(v, weights=induced.weights)) for v in (y, p)]
        return cls(
            event=RIGHT_TOP if lens.subject == "top" else lens.components(data)[0],
            events=int(y.sum()),
            mean_outcome=mean[0],
            mean_prediction=mean[1],
            smallest=float(p.min()),
            largest=float(p.max()),
            distinct=np.unique(p).size,
            classes=data.classes or tuple(map(str, range(data.n_classes))),
            subgroups=len(data.subgroups()),
            impossible=data.impossible.size,
            **told(data, lens),
        )

    def _made(self) -> list[str]:
        return ["rows of the report", self.lens]

    def _tables(self) -> list[Columns]:
        names = ", ".join(self.classes[:20]) + ", …" * (len(self.classes) > 20)
        weights = "none given"
        if self.effective_n is not None:
            weights = f"yes, effective n = {self.effective_n:.1f}"
        rows = {
            "rows": f"{self.n}",
            "classes": f"{self.n_classes} ({names})",
            "event looked at": self.event,
            "events": f"{self.events} ({self.mean_outcome:.1%})",
            "mean prediction": f"{self.mean_prediction:.1%}",
            "predictions": f"{self.smallest:.4g} to {self.largest:.4g}, {self.distinct} distinct",
            "weights": weights,
            "clusters": str(self.n_clusters or "none given"),
            "subgroups": str(self.subgroups or "none given"),
            "outcomes of probability 0": str(self.impossible),
            "repeated rows": str(self.copies or "no more than by chance"),
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

    @classmethod
    def of(cls, data: Predictions, lens: Lens, induced: Predictions, level: float) -> Measures:
        """Compute all that these rows allow; the others are named with the reason."""
        rows: list[tuple[str, str]] = []
        numbers: list[Triple] = []
        omitted: list[str] = []
        for name, meaning, compute in _measures(data, lens, induced, level):
            try:
                numbers.append(compute())
                rows.append((name, meaning))
            except StatisticError as error:
                omitted.append(f"{name}: {error}")
        table = np.array(numbers, dtype=np.float64).reshape(-1, 3)
        found = np.where(np.isfinite(table), table, np.nan)
        return cls(
            measure=tuple(name for name, _ in rows),
            **dict(zip(("value", "low", "high"), found.T, strict=True)),
            meaning=tuple(meaning for _, meaning in rows),
            omitted=tuple(omitted),
            level=level,
            **told(data, lens),
        )

    def _made(self) -> list[str]:
        return ["measures of calibration", self.lens, f"{100 * self.level:g} % intervals"]

    def find(self, name: str) -> Triple | None:
        """Return value, low and high of a measure, if it is there."""
        if name not in self.measure:
            return None
        j = self.measure.index(name)
        return float(self.value[j]), float(self.low[j]), float(self.high[j])


def recalibrated_line(
    data: Predictions, lens: Lens, induced: Predictions, level: float
) -> CoxRecalibration:
    """Return Cox's line, which needs log-odds of what happened."""
    if induced.impossible.size:
        said = several(induced.impossible.size, "outcome")
        raise StatisticError(f"{said} had probability 0, whose log-odds are infinite")
    return cox_recalibration(data, lens=lens, level=level)


#: The name of a measure, what it means, and what computes value, low and high.
Measure = tuple[str, str, Callable[[], Triple]]


def _measures(
    data: Predictions, lens: Lens, induced: Predictions, level: float
) -> Iterator[Measure]:
    reach = float(ndtri(0.5 + level / 2.0))
    free = induced.weights is None and induced.n_clusters is None

    def oe() -> Triple:
        ratio, events = OERatio()(induced), int((induced.labels == 0).sum())
        if not free or not events > 0:
            return ratio, np.nan, np.nan
        far = np.exp(reach * np.sqrt((1.0 - events / induced.n) / events))
        return ratio, ratio / far, ratio * far

    def cox(name: str) -> Callable[[], Triple]:
        def compute() -> Triple:
            fit = recalibrated_line(data, lens, induced, level)
            low, high = fit.slope_interval if name == "slope" else fit.offset_intercept_interval
            return (fit.slope if name == "slope" else fit.offset_intercept), low, high

        return compute

    def plain(statistic: Statistic) -> Callable[[], Triple]:
        return lambda: (float(statistic(induced)), np.nan, np.nan)

    def smooth(statistic: Statistic) -> Callable[[], Triple]:
        def compute() -> Triple:
            if induced.n > MOST_SMOOTHED:
                raise StatisticError(f"left out above {MOST_SMOOTHED} rows: it takes too much room")
            return float(statistic(induced)), np.nan, np.nan

        return compute

    def mean(statistic: Statistic, rows: FloatArray) -> Callable[[], Triple]:
        def compute() -> Triple:
            value = float(statistic(induced))
            if not np.isfinite(value):
                raise StatisticError("infinite, as outcomes of probability 0 occurred")
            half = reach * float(rows.std(ddof=1)) / np.sqrt(rows.size) if free else np.nan
            return value, value - half, value + half

        return compute

    p, y = induced.probs[:, 0], induced.labels == 0
    with np.errstate(divide="ignore", invalid="ignore"):
        logs = -np.log(np.where(y, p, induced.probs[:, 1]))
    brier = (p - y) ** 2
    yield "O:E", "events that happened for each one expected; 1 is right", oe
    said = "shift of the log-odds that is needed; above 0 events are more frequent than predicted"
    yield "intercept given slope 1", said, cox("intercept")
    said = "spread of the log-odds; below 1 predictions are too extreme, above 1 too cautious"
    yield "slope", said, cox("slope")
    yield "ICI", "mean distance of predictions from a smooth curve", smooth(ICI(curve="loess"))
    yield "E50", "median of the same distances", smooth(E50(curve="loess"))
    yield "E90", "90 % of the same distances are smaller", smooth(E90(curve="loess"))
    yield "ECI", "their mean square, 1 for a flat curve", smooth(ECI(curve="loess"))
    yield "Brier score", "mean squared error of the probabilities", mean(BrierScore(), brier)
    said = "1 is perfect, 0 is as good as always saying the mean"
    yield "scaled Brier score", said, plain(ScaledBrierScore())
    yield "log score", "mean surprise at what happened, in nats", mean(LogScore(), logs)
    centred = p - np.average(p, weights=induced.weights)
    sharp = float(np.sqrt(np.average(centred**2, weights=induced.weights)))
    yield "sharpness", "standard deviation of the predictions", lambda: (sharp, np.nan, np.nan)


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
    columns: ClassVar[tuple[str, ...]] = (
        *("name", "count", "predicted", "observed", "deviation", "in_sd"),
    )

    @classmethod
    def of(cls, data: Predictions, lens: Lens) -> ClassTable:
        """List the classes that are furthest from what was predicted."""
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
            **told(data, lens),
        )

    def _made(self) -> list[str]:
        return ["means of every class"]

    def _in_words(self) -> list[str]:
        left = self.n_classes - len(self.name)
        said = "Deviations of independent rows, in standard deviations of what chance does."
        return [said, *([f"{several(left, 'class')} nearer to 0 left out."] if left else [])]
