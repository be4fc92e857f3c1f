"""Two models side by side: what is asked, what each brings, and the answer."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, field, replace
from typing import Literal, NamedTuple

import numpy as np

from caltest._base.arrays import reaching
from caltest._base.facts import by_appearance
from caltest._base.written import Fields, name_of
from caltest.errors import DegenerateDataWarning, StatisticError
from caltest.inference.analysis import Analysis, evaluated
from caltest.inference.calibration import calibration_test
from caltest.inference.exchange import swapped_differences
from caltest.inference.intervals import confidence_interval
from caltest.inference.reach import Difference, Side
from caltest.inference.squared_error import SquaredError
from caltest.inference.two_ways import (
    CrossedError,
    by_student,
    columns_of,
    freedom_of,
    variance_of_difference,
)
from caltest.lenses import Lens
from caltest.predictions import FloatArray, IntArray, Predictions
from caltest.problem import Cells, RowProblem
from caltest.results import CalibrationTestResult, ComparisonResult, ComparisonVerdict, ending
from caltest.results.comparison import ScoreDifference
from caltest.simulate import Run
from caltest.statistics import BrierScore, DebiasedL2, LogScore, StatisticLike
from caltest.statistics.base import prepare
from caltest.statistics.binned import BinnedError
from caltest.tally import Source

Method = Literal["auto", "z", "swap"]

#: What each method tests, in words.
HYPOTHESES = {
    "z": "equal error: the two models have the same squared calibration error",
    "swap": "exchangeable models: they predict alike and err alike, much more than equal error",
}
SCORES = {"Brier": BrierScore(), "log": LogScore()}
#: Share of rows alone in their cell above which that is said.
MANY_ALONE = 0.1


@dataclass(frozen=True)
class Settings:
    """What is asked of a pair of models; ``run`` is what simulations take."""

    statistic: StatisticLike
    lens: Lens
    method: str
    paired: bool
    level: float
    margin: float
    run: Run = field(repr=False)


@dataclass(frozen=True, eq=False)
class Model:
    """One model, and all that is computed once for all its comparisons."""

    name: str
    data: Source
    induced: Predictions
    rows: Predictions
    tested: StatisticLike
    estimate: float
    error: SquaredError | None
    test: CalibrationTestResult
    interval: tuple[float, float] | None
    times: FloatArray | None
    crossed: CrossedError | None = None

    @classmethod
    def of(cls, name: str, data: Source, settings: Settings) -> Model:
        """Look through the lens and run the model's own test."""
        statistic, lens = settings.statistic, settings.lens
        prepared, estimate = Analysis.of_data("compare", data, lens).evaluate(statistic)
        with warnings.catch_warnings():  # the report shows a floor without spread
            warnings.simplefilter("ignore", DegenerateDataWarning)
            test = calibration_test(data, None, statistic, lens=lens, **settings.run)
        error, tested, rows, times = None, statistic, prepared.data, None
        crossed: CrossedError | None = None
        if settings.method == "z":
            cells = prepared.cells
            binned = prepared.estimand is not None or isinstance(prepared, BinnedError)
            if cells is None or cells.bins is None or not binned:
                raise StatisticError(
                    f"no valid test of equal {name_of(statistic)} is known: compare "
                    "DebiasedL2(bins), or test with method='swap' whether the models are "
                    "exchangeable"
                )
            tested = DebiasedL2(cells.bins)
            estimate = evaluated(tested, prepared.data)[1]
            # Micro-cells become rows that stand for several: the variance needs units, not sums.
            if not prepared.problem.exact:
                rows, times, place = prepared.problem.expand()
                cells = Cells.by_number(cells.of_unit[place], RowProblem(rows))
            if rows.crossed is not None:
                if not settings.paired:
                    raise StatisticError("two columns of clusters are compared on the same rows")
                crossed = CrossedError.of(cells, rows)
                estimate = crossed.estimate
            # The estimate is that of the statistic itself, which a tally knows more exactly.
            error = replace(SquaredError.of(cells, rows, times), estimate=estimate)
            if error.alone == error.n:
                raise StatisticError(
                    f"no two rows of {name} share a cell of {name_of(tested.bins)}, so "
                    "that noise and error cannot be told apart: take fewer bins"
                )
        interval = None
        try:  # of the model's own error, where one is known that covers
            bounds = confidence_interval(
                data, None, statistic, lens=lens, level=settings.level, **settings.run
            )
            if bounds.low is not None and bounds.high is not None:
                interval = bounds.low, bounds.high
        except StatisticError:
            pass
        answers = (tested, estimate, error, test, interval, times, crossed)
        return cls(name, data, prepared.data, rows, *answers)


def compared(settings: Settings, a: Model, b: Model) -> ComparisonResult:
    """Test the difference of two models."""
    if settings.paired and a.induced.n != b.induced.n:
        raise StatisticError(
            f"the lens {name_of(settings.lens)} keeps {a.induced.n} rows of {a.name} and "
            f"{b.induced.n} of {b.name}: a paired comparison needs a lens that treats every row by "
            "itself"
        )
    facts = Analysis("compare", a.data, settings.lens, a.induced, settings.run["rng"]).facts
    facts |= {"copies": max(a.data.copies, b.data.copies), "pvalue_error": 0.0, "n_resamples": 0}
    facts |= {"notes": (), "ended": "complete"}
    facts |= (_by_variance if settings.method == "z" else _by_swaps)(settings, a, b)
    notes = [f"{m.name}: {note}" for m in (a, b) for note in m.test.notes]
    facts["notes"] = (*notes, *facts["notes"])
    facts["ended"] = ending(a.test.ended, b.test.ended, facts["ended"])
    difference = a.estimate - b.estimate
    return ComparisonResult(
        statistic=name_of(settings.statistic),
        tested=name_of(a.tested),
        method=settings.method,
        hypothesis=HYPOTHESES[settings.method],
        names=(a.name, b.name),
        estimate_a=a.estimate,
        estimate_b=b.estimate,
        difference=difference,
        level=settings.level,
        margin=settings.margin,
        verdict=verdict(settings, difference, facts["pvalue"], facts["low"], facts["high"]),
        test_a=a.test,
        test_b=b.test,
        interval_a=a.interval,
        interval_b=b.interval,
        scores=_score_differences(a, b, settings.paired, settings.level),
        paired=settings.paired,
        **facts,
    )


def _by_variance(settings: Settings, a: Model, b: Model) -> Fields:
    """Return what speaks for a difference of squared errors."""
    assert a.error is not None
    assert b.error is not None
    if a.crossed is not None and b.crossed is not None:
        variance = variance_of_difference(a.crossed, b.crossed, a.rows)
        moments = a.estimate - b.estimate, variance, freedom_of(a.rows)
        low, high, pvalue = by_student(*moments, settings.level)
        return {"pvalue": pvalue, "low": low, "high": high}
    sides = Side(a.error, a.rows), Side(b.error, b.rows)
    difference = Difference(*sides, settings.paired)
    pvalue, (low, high) = difference.pvalue(), difference.limits(settings.level)
    alone = "alone in their cell" if sides[0].error.parts.rows else "without other clusters there"
    notes = [
        f"{m.error.alone} of {m.error.n} rows of {m.name} are {alone} and count "
        "nothing: take fewer bins"
        for m in (a, b)
        if m.error is not None and m.error.alone > MANY_ALONE * m.error.n
    ]
    better, side = (a, sides[0]) if difference.value < 0.0 else (b, sides[1])
    # Without rows alone in their cells it would differ: then these decide, and bins are too small
    if difference.pvalue(lone=False) <= 1.0 - settings.level < pvalue:
        notes.append(
            f"{side.lone.size} {'rows' if side.error.parts.rows else 'clusters'} of {better.name} "
            "are alone in their cell and could carry the difference: take fewer bins"
        )
    return {"pvalue": pvalue, "low": low, "high": high, "notes": notes}


def _by_swaps(settings: Settings, a: Model, b: Model) -> Fields:
    """Return what speaks against models that could change places in every row."""
    of_both = a.tested, a.induced, b.induced, settings.paired
    values, ended = swapped_differences(*of_both, **settings.run)
    difference, n_draws = a.estimate - b.estimate, values.size
    pvalue = (1 + int(reaching(difference, values, two_sided=True).sum())) / (1 + n_draws)
    error = float(np.sqrt(pvalue * (1.0 - pvalue) / n_draws))
    evidence = {"pvalue": pvalue, "low": None, "high": None, "pvalue_error": error}
    return evidence | {"n_resamples": n_draws, "ended": ended}


def verdict(
    settings: Settings, difference: float, pvalue: float, low: float | None, high: float | None
) -> ComparisonVerdict:
    """Judge a difference; "tied" is an interval within the margin, also with a small p-value."""
    differs = pvalue <= 1.0 - settings.level
    if low is None or high is None:
        return ComparisonVerdict.NOT_EXCHANGEABLE if differs else ComparisonVerdict.CANNOT_TELL
    # |√s − √t| ≤ √|s − t|: a difference of squares within margin² bounds that of the roots.
    if max(-low, high) <= settings.margin**2:
        return ComparisonVerdict.TIED
    if not differs:
        return ComparisonVerdict.CANNOT_TELL
    first = difference < 0.0
    return ComparisonVerdict.FIRST_BETTER if first else ComparisonVerdict.SECOND_BETTER


def _score_differences(
    a: Model, b: Model, paired: bool, level: float
) -> tuple[ScoreDifference, ...]:
    """Compare mean scores; variances of tallies lack what lies within micro-cells."""
    tallies = a.times is not None
    if tallies and a.data.n_classes > 2:
        return ()
    differences: list[ScoreDifference] = []
    for name, score in SCORES.items():
        sides = []
        for model in (a, b):
            rows = model.data if isinstance(model.data, Predictions) else model.rows
            mean = prepare(score, model.induced).observed if tallies else None
            sides.append(_Scored.of(score.of_rows(rows), rows, model.times, mean))
        differences.append(_score_difference(name, sides[0], sides[1], paired, level))
    return tuple(differences)


class _Scored(NamedTuple):
    """The scores of a model, and the units that they are of."""

    values: FloatArray
    weights: FloatArray
    unit: IntArray
    times: FloatArray
    mean: float | None
    units: tuple[IntArray, ...] = ()

    @classmethod
    def of(
        cls, values: FloatArray, rows: Predictions, times: FloatArray | None, mean: float | None
    ) -> _Scored:
        """Take weights and clusters from the rows, each of which stands for ``times`` of them."""
        once = np.ones(values.size)
        w = once if rows.weights is None else rows.weights
        unit = np.arange(values.size) if rows.clusters is None else by_appearance(rows.clusters)
        units = () if rows.crossed is None else columns_of(rows)
        if mean is None and np.isfinite(values).all():
            mean = float(w @ values / w.sum())
        times = once[: unit.max() + 1] if times is None else times
        return cls(values, w, unit, times, mean, units)

    def variance(self, values: FloatArray) -> tuple[float, float]:
        """Return the variance of the mean of values by the units, and its degrees of freedom."""
        if self.units:
            each = [
                self._replace(unit=u, times=np.ones(u.max() + 1), units=()).variance(values)
                for u in self.units
            ]
            (first, one), (second, other), (both, _) = each
            return max(first + second - both, first, second), min(one, other)
        mass = np.bincount(self.unit, self.weights)
        units, whole = float(self.times.sum()), float(self.times @ mass)
        mean = float(self.times @ np.bincount(self.unit, self.weights * values)) / whole
        residuals = np.bincount(self.unit, self.weights * (values - mean))
        variance = float(self.times @ residuals**2) / whole**2 * units / max(units - 1.0, 1.0)
        return variance, max(whole**2 / float(self.times @ mass**2) - 1.0, 1.0)


def _score_difference(
    name: str, a: _Scored, b: _Scored, paired: bool, level: float
) -> ScoreDifference:
    """Compare means by Student's t of paired units (Diebold & Mariano 1995), else by Welch's."""
    first, second = (s.mean if s.mean is not None and s.mean < np.inf else None for s in (a, b))
    if first is None or second is None or min(a.times.sum(), b.times.sum()) < 2:
        return ScoreDifference(name, first, second, None, None, None, None)
    parts = [a.variance(a.values - b.values)] if paired else [s.variance(s.values) for s in (a, b)]
    variances, freedoms = np.array(parts).T
    difference, error = first - second, float(np.sqrt(variances.sum()))
    # A model compared with itself has no spread but rounding, and no t statistic.
    if error <= 1e-14 * (abs(first) + abs(second)):  # the same scores up to rounding
        pvalue = 1.0 if abs(difference) <= 1e-12 else float(np.finfo(float).tiny)
        return ScoreDifference(name, first, second, difference, difference, difference, pvalue)
    # Welch & Satterthwaite; of paired rows there is one variance, and this is its own freedom.
    freedom = variances.sum() ** 2 / (variances**2 / freedoms).sum()
    low, high, pvalue = by_student(difference, float(variances.sum()), freedom, level)
    return ScoreDifference(name, first, second, difference, low, high, pvalue)
