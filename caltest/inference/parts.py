"""What the verbs share: a statistic on the observed data, and the arithmetic of p-values."""

from __future__ import annotations

from typing import Any

import numpy as np

from caltest._version import __version__
from caltest.errors import StatisticError
from caltest.lenses import Lens
from caltest.nulls import ExactNull, NullDistribution, SimulatedNull, reaching
from caltest.predictions import Predictions
from caltest.recalibration import refuse_fitted_rows
from caltest.resampling import EXCEEDING
from caltest.results import CalibrationTestResult
from caltest.statistics import Statistic, given
from caltest.written import name_of


def unseen(probs: Any, labels: Any) -> Predictions:
    """Return predictions, unless they were recalibrated with the labels that are to test them."""
    if isinstance(probs, Predictions):
        refuse_fitted_rows(probs)
        if labels is not None:
            return Predictions.of(probs.probs, labels, probs.classes)
    return Predictions.of(probs, labels)


def two_sided(statistic: Statistic) -> bool:
    """Whether small values speak against calibration as well as large ones."""
    return bool(getattr(statistic, "two_sided", False))


def evaluated(statistic: Statistic, induced: Predictions) -> tuple[Any, float]:
    """Return the statistic with its predictions fixed, and its value on the observed labels."""
    try:
        fixed: Any = given(statistic, induced.probs)
        value = float(getattr(fixed, "evaluate", fixed)(induced.labels))
    except TypeError as error:
        raise StatisticError(
            f"the statistic {name_of(statistic)} failed on probs of shape {induced.probs.shape} "
            f"and labels of shape {induced.labels.shape}: {error}"
        ) from error
    if not np.isfinite(value):
        raise StatisticError(
            f"the statistic {name_of(statistic)} is {value} on the observed data; it must be a "
            "finite number"
        )
    return fixed, value


def result_of(
    data: Predictions,
    induced: Predictions,
    statistic: Statistic,
    lens: Lens,
    null: str,
    estimate: float,
    law: NullDistribution,
    rng: Any,
) -> CalibrationTestResult:
    """Put together the answer; here is the arithmetic of p-values."""
    drawn, error, ended = 0, 0.0, "complete"
    if isinstance(law, SimulatedNull):
        drawn, ended = len(law), law.ended
        reached = reaching(estimate, law.values, two_sided(statistic))
        exceeding = EXCEEDING if ended == "early" else int(reached.sum())
        pvalue = exceeding / drawn if ended == "early" else (1 + exceeding) / (1 + drawn)
        error = float(np.sqrt(pvalue * (1.0 - pvalue) / drawn))
        bracket = clopper_pearson(exceeding, drawn)
    elif isinstance(law, ExactNull):
        bracket = law.bracket(estimate, two_sided(statistic))
        pvalue = max(bracket[1], np.finfo(float).tiny)
    else:  # a limit law; only symmetric ones are used on both sides
        sides = 2.0 * law.sf(abs(estimate)) if two_sided(statistic) else law.sf(estimate)
        pvalue = max(min(1.0, sides), np.finfo(float).tiny)
        bracket = (float(pvalue), float(pvalue))
    return CalibrationTestResult(
        statistic=name_of(statistic),
        lens=name_of(lens),
        null=null,
        estimate=estimate,
        pvalue=float(pvalue),
        pvalue_bracket=bracket,
        pvalue_error=error,
        null_mean=law.mean(),
        null_std=law.std(),
        n=induced.n,
        n_classes=data.n_classes,
        n_resamples=drawn,
        seed=int(rng) if isinstance(rng, (int, np.integer)) else None,
        impossible=induced.impossible.size,
        ended=ended,
        notes=data.notes,
        version=__version__,
        null_distribution=law,
    )


def clopper_pearson(successes: int, trials: int, level: float = 0.99) -> tuple[float, float]:
    """Return the Clopper–Pearson interval of a probability."""
    from scipy.special import betaincinv

    tail = (1.0 - level) / 2.0
    low = betaincinv(successes, trials - successes + 1, tail) if successes else 0.0
    high = betaincinv(successes + 1, trials - successes, 1.0 - tail) if successes < trials else 1.0
    return float(low), float(high)
