"""Two models side by side: what is asked, what each brings, and the answer."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np

from caltest._base.ties import reaching
from caltest._base.written import name_of
from caltest.errors import DegenerateDataWarning, StatisticError
from caltest.inference.calibration import calibration_test
from caltest.inference.entry import design, evaluated, seed_of
from caltest.inference.exchange import differences
from caltest.inference.intervals import confidence_interval
from caltest.inference.reach import Difference, Side
from caltest.inference.squared_error import SquaredError
from caltest.lenses import Lens
from caltest.predictions import FloatArray, Predictions
from caltest.results import CalibrationTestResult, ComparisonResult, ComparisonVerdict, ending
from caltest.results.comparison import ScoreDifference
from caltest.simulate.dependent import by_appearance
from caltest.statistics import BrierScore, Cells, DebiasedL2, LogScore, Prepared, StatisticLike
from caltest.statistics.binned import BinnedError
from caltest.tally import MicroCells, Tally

Method = Literal["auto", "z", "jackknife", "bootstrap", "swap"]

#: What each method tests, in words.
EQUAL = "equal error: the two models have the same squared calibration error"
HYPOTHESES = {
    **dict.fromkeys(("z", "jackknife", "bootstrap"), EQUAL),
    "swap": "exchangeable models: they predict alike and err alike, much more than equal error",
}
SCORES = {"Brier": BrierScore(), "log": LogScore()}
#: Share of rows alone in their cell above which that is said.
MANY_ALONE = 0.1


@dataclass(frozen=True)
class Settings:
    """What is asked of a pair of models."""

    statistic: StatisticLike
    lens: Lens
    method: Any
    paired: bool
    level: float
    margin: float


@dataclass(frozen=True, eq=False)
class Model:
    """One model, and all that is computed once for all its comparisons."""

    name: str
    data: Any
    induced: Predictions
    rows: Predictions
    tested: StatisticLike
    estimate: float
    error: SquaredError | None
    test: CalibrationTestResult
    interval: tuple[float, float] | None

    @classmethod
    def of(cls, name: str, data: Any, settings: Settings, options: dict[str, Any]) -> Model:
        """Look through the lens and run the model's own test."""
        statistic, lens = settings.statistic, settings.lens
        seen: Any = MicroCells.of(data) if isinstance(data, Tally) else lens(data)
        prepared, estimate = evaluated(statistic, seen)
        with warnings.catch_warnings():  # the report shows a floor without spread
            warnings.simplefilter("ignore", DegenerateDataWarning)
            test = calibration_test(data, None, statistic, lens=lens, **options)
        error, tested, rows, times = None, statistic, prepared.data, None
        if settings.method != "swap":
            tested = _squared_version(statistic, prepared)
            estimate = evaluated(tested, prepared.data)[1]
        if settings.method in ("z", "jackknife"):
            assert prepared.cells is not None
            cells = prepared.cells
            if isinstance(seen, MicroCells):
                rows, times, place = seen.listed()
                numbers = cells.of_row[place]
                cells = Cells.of(lambda _: numbers, rows.probs)
            error = SquaredError.of(cells, rows, times)
            estimate = error.estimate
            if error.alone == error.n:
                raise StatisticError(
                    f"no two rows of {name} share a cell of {name_of(prepared.cells.bins)}, so "
                    "that noise and error cannot be told apart: take fewer bins"
                )
        interval = _own_interval(data, settings, options)
        return cls(name, data, prepared.data, rows, tested, estimate, error, test, interval)


def _own_interval(
    data: Predictions | Tally, settings: Settings, options: dict[str, Any]
) -> tuple[float, float] | None:
    """Return an interval of the model's own error, where one is known that covers."""
    try:
        found = confidence_interval(
            data, None, settings.statistic, lens=settings.lens, level=settings.level, **options
        )
    except StatisticError:
        return None
    return None if found.low is None or found.high is None else (found.low, found.high)


def _squared_version(statistic: StatisticLike, prepared: Prepared) -> StatisticLike:
    """Return the statistic whose difference is tested."""
    known = prepared.estimand is not None or isinstance(prepared, BinnedError)
    if prepared.cells is not None and prepared.cells.bins is not None and known:
        return DebiasedL2(prepared.cells.bins)
    raise StatisticError(
        f"no valid test of equal {name_of(statistic)} is known: compare DebiasedL2(bins), or test "
        "with method='swap' whether the models are exchangeable"
    )


class _Evidence(NamedTuple):
    """What speaks for a difference."""

    pvalue: float
    low: float | None
    high: float | None
    n_resamples: int = 0
    error: float = 0.0
    ended: str = "complete"
    notes: tuple[str, ...] = ()


def compared(settings: Settings, a: Model, b: Model, options: dict[str, Any]) -> ComparisonResult:
    """Test the difference of two models."""
    if settings.paired and a.induced.n != b.induced.n:
        raise StatisticError(
            f"the lens {name_of(settings.lens)} keeps {a.induced.n} rows of {a.name} and "
            f"{b.induced.n} of {b.name}: a paired comparison needs a lens that treats every row by "
            "itself"
        )
    found = _by_variance if settings.method in ("z", "jackknife") else _by_resampling
    difference, evidence = a.estimate - b.estimate, found(settings, a, b, options)
    return ComparisonResult(
        statistic=name_of(settings.statistic),
        tested=name_of(a.tested),
        lens=name_of(settings.lens),
        method=settings.method,
        hypothesis=HYPOTHESES[settings.method],
        names=(a.name, b.name),
        estimate_a=a.estimate,
        estimate_b=b.estimate,
        difference=difference,
        pvalue=evidence.pvalue,
        pvalue_error=evidence.error,
        low=evidence.low,
        high=evidence.high,
        level=settings.level,
        margin=settings.margin,
        verdict=verdict(settings, difference, evidence.pvalue, evidence.low, evidence.high),
        test_a=a.test,
        test_b=b.test,
        interval_a=a.interval,
        interval_b=b.interval,
        scores=_score_differences(a.data, b.data, settings.paired, settings.level),
        paired=settings.paired,
        n=a.induced.n,
        n_classes=a.data.n_classes,
        n_resamples=evidence.n_resamples,
        seed=seed_of(options["rng"]),
        ended=ending(a.test.ended, b.test.ended, evidence.ended),
        notes=(
            *(f"{m.name}: {note}" for m in (a, b) for note in m.test.notes),
            *evidence.notes,
        ),
        **design(a.data if isinstance(a.data, Tally) else a.induced),
        copies=max(a.data.copies, b.data.copies),
    )


def _by_variance(settings: Settings, a: Model, b: Model, options: dict[str, Any]) -> _Evidence:
    assert a.error is not None
    assert b.error is not None
    sides = Side(a.error, a.rows), Side(b.error, b.rows)
    found = Difference(*sides, settings.paired, cautious=settings.method == "jackknife")
    pvalue, (low, high) = found.pvalue(), found.limits(settings.level)
    alone = "alone in their cell" if sides[0].error.parts.rows else "without other clusters there"
    notes = [
        f"{m.error.alone} of {m.error.n} rows of {m.name} are {alone} and count "
        "nothing: take fewer bins"
        for m in (a, b)
        if m.error is not None and m.error.alone > MANY_ALONE * m.error.n
    ]
    better, side = (a, sides[0]) if found.value < 0.0 else (b, sides[1])
    if found.pvalue(lone=False) <= 1.0 - settings.level < pvalue:
        notes.append(
            f"{side.lone.size} {'rows' if side.error.parts.rows else 'clusters'} of {better.name} "
            "are alone in their cell and could carry the difference: take fewer bins"
        )
    return _Evidence(pvalue, low, high, notes=tuple(notes))


def _by_resampling(settings: Settings, a: Model, b: Model, options: dict[str, Any]) -> _Evidence:
    values, ended = differences(
        settings.method, a.tested, a.induced, b.induced, settings.paired, **options
    )
    difference, drawn = a.estimate - b.estimate, values.size
    low = high = None
    if settings.method == "bootstrap":  # centred: its mean is the biased, not the debiased error
        values = values - values.mean()
        tail = (1.0 - settings.level) / 2.0
        low, high = (float(difference - q) for q in np.quantile(values, [1.0 - tail, tail]))
    pvalue = (1 + int(reaching(difference, values, two_sided=True).sum())) / (1 + drawn)
    error = float(np.sqrt(pvalue * (1.0 - pvalue) / drawn))
    return _Evidence(pvalue, low, high, drawn, error, ended)


def verdict(
    settings: Settings, difference: float, pvalue: float, low: float | None, high: float | None
) -> ComparisonVerdict:
    """Judge a difference; "tied" is an interval within the margin, also with a small p-value."""
    differs = pvalue <= 1.0 - settings.level
    if low is None or high is None:
        return ComparisonVerdict.NOT_EXCHANGEABLE if differs else ComparisonVerdict.CANNOT_TELL
    if max(-low, high) <= settings.margin**2:
        return ComparisonVerdict.TIED
    if not differs:
        return ComparisonVerdict.CANNOT_TELL
    first = difference < 0.0
    return ComparisonVerdict.FIRST_BETTER if first else ComparisonVerdict.SECOND_BETTER


def _score_differences(
    a: Predictions, b: Predictions, paired: bool, level: float
) -> tuple[ScoreDifference, ...]:
    """Compare mean scores by Student's t of paired units (Diebold & Mariano 1995), else Welch's."""
    found: list[ScoreDifference] = []
    if isinstance(a, Tally):  # knows no squares of log scores
        return ()
    for name, score in SCORES.items():
        rows_a, rows_b = (score.per_row(d.probs, d.labels) for d in (a, b))
        found.append(_score_difference(name, rows_a, rows_b, paired, level, (a, b)))
    return tuple(found)


def _score_difference(
    name: str,
    a: FloatArray,
    b: FloatArray,
    paired: bool,
    level: float,
    data: tuple[Predictions | None, Predictions | None] = (None, None),
) -> ScoreDifference:
    from scipy.special import stdtr, stdtrit

    own = list(zip((a, b), data, strict=True))
    first, second = (_mean(*part)[0] if np.isfinite(part[0]).all() else None for part in own)
    if first is None or second is None or min(a.size, b.size) < 2:
        return ScoreDifference(name, first, second, None, None, None, None)
    parts = [_mean(*part) for part in ([(a - b, data[0])] if paired else own)]
    _, variances, freedoms = np.array(parts).T
    difference, error = first - second, float(np.sqrt(variances.sum()))
    if error <= 1e-14 * (abs(first) + abs(second)):  # the same scores up to rounding
        pvalue = 1.0 if abs(difference) <= 1e-12 else float(np.finfo(float).tiny)
        return ScoreDifference(name, first, second, difference, difference, difference, pvalue)
    freedom = variances.sum() ** 2 / (variances**2 / freedoms).sum()
    reach = float(stdtrit(freedom, 0.5 + level / 2.0)) * error
    pvalue = max(2.0 * float(stdtr(freedom, -abs(difference) / error)), np.finfo(float).tiny)
    ends = difference, difference - reach, difference + reach
    return ScoreDifference(name, first, second, *ends, float(pvalue))


def _mean(values: FloatArray, data: Predictions | None) -> tuple[float, float, float]:
    """Return a weighted mean, its variance by the units, and the degrees of freedom of that."""
    w = np.ones(values.size) if data is None or data.weights is None else data.weights
    clusters = None if data is None else data.clusters
    unit = np.arange(values.size) if clusters is None else by_appearance(clusters)
    mean, mass = float(w @ values / w.sum()), np.bincount(unit, w)
    moved = np.bincount(unit, w * (values - mean))
    variance = float(moved @ moved) / mass.sum() ** 2 * mass.size / max(mass.size - 1, 1)
    return mean, variance, float(max(mass.sum() ** 2 / (mass**2).sum() - 1.0, 1.0))
