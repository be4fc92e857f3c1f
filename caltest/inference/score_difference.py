"""Which of two models is the better forecaster: paired differences of proper scores."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from caltest.predictions import FloatArray, Predictions
from caltest.results import ScoreDifference


def _brier(data: Predictions) -> FloatArray:
    p, observed = data.probs, data.probs[np.arange(data.n), data.labels]
    scale = 0.5 if data.n_classes == 2 else 1.0  # (p − y)² for two classes
    return np.asarray(scale * ((p * p).sum(axis=1) - 2.0 * observed + 1.0))


def _log(data: Predictions) -> FloatArray:
    with np.errstate(divide="ignore"):
        return -np.log(data.probs[np.arange(data.n), data.labels])


SCORES: dict[str, Callable[[Predictions], FloatArray]] = {"Brier": _brier, "log": _log}


def score_differences(
    a: Predictions, b: Predictions, paired: bool, level: float
) -> tuple[ScoreDifference, ...]:
    """Compare the mean scores of the whole predictions, by a t-test.

    Paired rows: Student's t of the differences, which is the test of Diebold & Mariano (1995) for
    independent observations. Otherwise Welch's. O(n K).
    """
    return tuple(
        _difference(name, score(a), score(b), paired, level) for name, score in SCORES.items()
    )


def _difference(
    name: str, a: FloatArray, b: FloatArray, paired: bool, level: float
) -> ScoreDifference:
    from scipy.special import stdtr, stdtrit

    mean_a, mean_b = (float(s.mean()) if np.isfinite(s).all() else None for s in (a, b))
    if mean_a is None or mean_b is None or min(a.size, b.size) < 2:
        return ScoreDifference(name, mean_a, mean_b, None, None, None, None)
    difference = mean_a - mean_b
    parts = [a - b] if paired else [a, b]
    variances = np.array([s.var(ddof=1) / s.size for s in parts])
    error = float(np.sqrt(variances.sum()))
    if error <= 1e-14 * (abs(mean_a) + abs(mean_b)):  # the same scores up to rounding
        pvalue = 1.0 if abs(difference) <= 1e-12 else float(np.finfo(float).tiny)
        return ScoreDifference(name, mean_a, mean_b, difference, difference, difference, pvalue)
    freedom = variances.sum() ** 2 / sum(
        v**2 / (s.size - 1) for v, s in zip(variances, parts, strict=True)
    )
    reach = float(stdtrit(freedom, 0.5 + level / 2.0)) * error
    pvalue = max(2.0 * float(stdtr(freedom, -abs(difference) / error)), np.finfo(float).tiny)
    return ScoreDifference(
        name, mean_a, mean_b, difference, difference - reach, difference + reach, float(pvalue)
    )
