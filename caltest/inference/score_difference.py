"""Which of two models is the better forecaster: paired differences of proper scores."""

from __future__ import annotations

import numpy as np

from caltest.predictions import FloatArray, Predictions
from caltest.results import ScoreDifference
from caltest.statistics import BrierScore, LogScore

SCORES = {"Brier": BrierScore(), "log": LogScore()}


def score_differences(
    a: Predictions, b: Predictions, paired: bool, level: float
) -> tuple[ScoreDifference, ...]:
    """Compare mean scores by Student's t of paired rows (Diebold & Mariano 1995), else Welch's."""
    found = []
    for name, score in SCORES.items():
        rows_a, rows_b = (score.per_row(d.probs, d.labels) for d in (a, b))
        found.append(_difference(name, rows_a, rows_b, paired, level))
    return tuple(found)


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
    freedom = variances.sum() ** 2 / (variances**2 / [s.size - 1 for s in parts]).sum()
    reach = float(stdtrit(freedom, 0.5 + level / 2.0)) * error
    pvalue = max(2.0 * float(stdtr(freedom, -abs(difference) / error)), np.finfo(float).tiny)
    return ScoreDifference(
        name, mean_a, mean_b, difference, difference - reach, difference + reach, float(pvalue)
    )
