"""Two models side by side: what is asked, what each brings, and the answer."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from caltest._version import __version__
from caltest.errors import DegenerateDataWarning, StatisticError
from caltest.inference.calibration import calibration_test
from caltest.inference.exchange import differences
from caltest.inference.intervals import confidence_interval
from caltest.inference.parts import evaluated
from caltest.inference.score_difference import score_differences
from caltest.inference.squared_error import SquaredError, unseen_variance, variance_of_difference
from caltest.lenses import Lens, apply
from caltest.nulls import reaching
from caltest.predictions import Predictions
from caltest.results import CalibrationTestResult, ComparisonResult
from caltest.statistics import ECE, MCE, RMSCE, DebiasedL1, DebiasedL2, Statistic
from caltest.written import name_of

Method = Literal["auto", "z", "jackknife", "bootstrap", "swap"]

#: What each method tests, in words.
HYPOTHESES = {
    "z": "equal error: the two models have the same squared calibration error",
    "jackknife": "equal error: the two models have the same squared calibration error",
    "bootstrap": "equal error: the two models have the same squared calibration error",
    "swap": "exchangeable models: they predict alike and err alike, much more than equal error",
}
#: Share of rows alone in their cell above which that is said.
MANY_ALONE = 0.1


@dataclass(frozen=True)
class Question:
    """What is asked of a pair."""

    statistic: Statistic
    tested: Statistic
    lens: Lens
    method: Any
    paired: bool
    level: float
    margin: float


@dataclass(frozen=True, eq=False)
class Model:
    """One model, and all that is computed once for all its comparisons."""

    name: str
    data: Predictions
    induced: Predictions
    estimate: float
    error: SquaredError | None
    test: CalibrationTestResult
    interval: tuple[float, float] | None

    @classmethod
    def of(
        cls,
        name: str,
        data: Predictions,
        question: Question,
        options: dict[str, Any],
    ) -> Model:
        """Look through the lens and run the model's own test."""
        tested, lens = question.tested, question.lens
        induced = apply(lens, data)
        with warnings.catch_warnings():  # the report shows a floor without spread
            warnings.simplefilter("ignore", DegenerateDataWarning)
            test = calibration_test(data, None, question.statistic, lens=lens, **options)
        interval = _own_interval(data, question, options)
        if question.method in ("bootstrap", "swap"):
            return cls(name, data, induced, evaluated(tested, induced)[1], None, test, interval)
        assert isinstance(tested, DebiasedL2)
        error = SquaredError.of(tested, induced)
        if error.alone == error.n:
            raise StatisticError(
                f"no two rows of {name} share a cell of {name_of(tested.bins)}, so that noise and "
                "error cannot be told apart: take fewer bins"
            )
        return cls(name, data, induced, error.estimate, error, test, interval)


def _own_interval(
    data: Predictions, question: Question, options: dict[str, Any]
) -> tuple[float, float] | None:
    """Return an interval of the model's own error, where one is known that covers."""
    try:
        found = confidence_interval(
            data, None, question.statistic, lens=question.lens, level=question.level, **options
        )
    except StatisticError:
        return None
    return None if found.low is None or found.high is None else (found.low, found.high)


def squared_version(statistic: Statistic, method: str) -> Statistic:
    """Return the statistic whose difference is tested."""
    if method == "swap":
        return statistic
    if isinstance(statistic, (ECE, MCE, RMSCE, DebiasedL1, DebiasedL2)):
        return DebiasedL2(statistic.bins)
    raise StatisticError(
        f"no valid test of equal {name_of(statistic)} is known: compare DebiasedL2(bins), or test "
        "with method='swap' whether the models are exchangeable"
    )


@dataclass(frozen=True)
class _Evidence:
    """What speaks for a difference."""

    pvalue: float
    low: float | None
    high: float | None
    n_resamples: int = 0
    error: float = 0.0
    ended: str = "complete"
    notes: tuple[str, ...] = ()


def compared(question: Question, a: Model, b: Model, options: dict[str, Any]) -> ComparisonResult:
    """Test the difference of two models."""
    if question.paired and a.induced.n != b.induced.n:
        raise StatisticError(
            f"the lens {name_of(question.lens)} keeps {a.induced.n} rows of {a.name} and "
            f"{b.induced.n} of {b.name}: a paired comparison needs a lens that treats every row by "
            "itself"
        )
    found = _by_variance if question.method in ("z", "jackknife") else _by_resampling
    difference, evidence = a.estimate - b.estimate, found(question, a, b, options)
    names, rng = (a.name, b.name), options["rng"]
    ended = (a.test.ended, b.test.ended, evidence.ended)
    return ComparisonResult(
        statistic=name_of(question.statistic),
        tested=name_of(question.tested),
        lens=name_of(question.lens),
        method=question.method,
        hypothesis=HYPOTHESES[question.method],
        names=names,
        estimate_a=a.estimate,
        estimate_b=b.estimate,
        difference=difference,
        pvalue=evidence.pvalue,
        pvalue_error=evidence.error,
        low=evidence.low,
        high=evidence.high,
        level=question.level,
        margin=question.margin,
        verdict=verdict(question, names, difference, evidence.pvalue, evidence.low, evidence.high),
        test_a=a.test,
        test_b=b.test,
        interval_a=a.interval,
        interval_b=b.interval,
        scores=score_differences(a.data, b.data, question.paired, question.level),
        paired=question.paired,
        n_resamples=evidence.n_resamples,
        seed=int(rng) if isinstance(rng, (int, np.integer)) else None,
        ended="interrupted" if "interrupted" in ended else "complete",
        notes=(*(f"{m.name}: {note}" for m in (a, b) for note in m.data.notes), *evidence.notes),
        version=__version__,
    )


def _by_variance(question: Question, a: Model, b: Model, options: dict[str, Any]) -> _Evidence:
    from scipy.special import erfc, ndtri

    assert a.error is not None
    assert b.error is not None
    kind: Any = "corrected" if question.method == "z" else "jackknife"
    variance = variance_of_difference(a.error, b.error, question.paired, kind)
    variance += unseen_variance(a.error, b.error, question.paired)
    difference, pvalue = a.estimate - b.estimate, 1.0
    if abs(difference) > 1e-14:  # more than the rounding of a model compared with itself
        with np.errstate(divide="ignore"):
            pvalue = float(erfc(abs(difference) / np.sqrt(2.0 * variance)))
    reach = float(ndtri(0.5 + question.level / 2.0) * np.sqrt(variance))
    notes = tuple(
        f"{error.alone} of {error.n} rows of {name} are alone in their cell and count nothing: "
        "take fewer bins"
        for name, error in ((a.name, a.error), (b.name, b.error))
        if error.alone > MANY_ALONE * error.n
    )
    smallest = float(np.finfo(float).tiny)
    return _Evidence(max(pvalue, smallest), difference - reach, difference + reach, notes=notes)


def _by_resampling(question: Question, a: Model, b: Model, options: dict[str, Any]) -> _Evidence:
    values, ended = differences(
        question.method, question.tested, a.induced, b.induced, question.paired, **options
    )
    difference, drawn = a.estimate - b.estimate, values.size
    low: float | None = None
    high: float | None = None
    if question.method == "bootstrap":  # centred: its mean is the biased, not the debiased error
        values = values - values.mean()
        tail = (1.0 - question.level) / 2.0
        low, high = (float(difference - q) for q in np.quantile(values, [1.0 - tail, tail]))
    pvalue = (1 + int(reaching(difference, values, two_sided=True).sum())) / (1 + drawn)
    error = float(np.sqrt(pvalue * (1.0 - pvalue) / drawn))
    return _Evidence(pvalue, low, high, drawn, error, ended)


def verdict(
    question: Question,
    names: tuple[str, str],
    difference: float,
    pvalue: float,
    low: float | None,
    high: float | None,
) -> str:
    """Put the answer in a few words.

    "Tied" asks for the whole interval within the margin, which is stronger than not being able to
    tell; it may come with a small p-value.
    """
    differs = pvalue <= 1.0 - question.level
    if low is None or high is None:
        return "not exchangeable" if differs else "cannot tell"
    if max(-low, high) <= question.margin**2:
        return "tied"
    better = names[0] if difference < 0.0 else names[1]
    return f"{better} is better calibrated" if differs else "cannot tell"
