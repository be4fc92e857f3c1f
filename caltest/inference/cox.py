"""The verb that estimates Cox's recalibration: intercept and slope, and likelihood-ratio tests."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, Unpack

import numpy as np
import scipy

from caltest._base.checks import fraction, one_of
from caltest._base.written import name_of
from caltest.errors import StatisticError
from caltest.inference.entry import admitted
from caltest.lens_choice import as_lens
from caltest.lenses import LensLike
from caltest.predictions import Facts, FloatArray
from caltest.results import CoxRecalibration
from caltest.statistics.cox import fit_logistic, log_likelihood, log_odds


def cox_recalibration(
    probs: Any,
    labels: Any = None,
    *,
    lens: LensLike | None = None,
    level: float = 0.95,
    method: Literal["wald", "profile"] = "wald",
    **facts: Unpack[Facts],
) -> CoxRecalibration:
    """Estimate Cox's intercept and slope, with intervals and likelihood-ratio tests.

    The model is logit P(y = 1) = a + b logit p. A slope below 1 says that predictions are too
    extreme, a positive intercept given slope 1 that events are more frequent than predicted.

    Parameters
    ----------
    probs, labels, **facts
        As in :meth:`Predictions.of`.
    lens : lens or callable, optional
        A lens with two classes, the first of which is the event; by default ``OneVsRest(1)`` for
        two classes and ``TopK(1)`` for more.
    level : float, default 0.95
        Level of the intervals.
    method : {"wald", "profile"}, default "wald"
        Estimate ± quantile × standard error, or what the likelihood-ratio test does not reject,
        which is better for few events.

    Returns
    -------
    CoxRecalibration

    Raises
    ------
    StatisticError
        For more than two classes, and without finite estimates: outcomes or predictions all equal,
        or events separated by the prediction. ``CoxScore`` and ``CoxLR`` test such data, too.

    Notes
    -----
    O(n) per Newton step. p-values are asymptotic, see ``CoxLR``; probabilities ≥ 1e-12.

    References
    ----------
    Cox (1958), "Two further applications of a model for binary regression", Biometrika 45. Miller,
    Hui & Tierney (1991), "Validation techniques for logistic regression models", Statistics in
    Medicine 10.

    Examples
    --------
    >>> answer = cox_recalibration([0.9, 0.8, 0.7, 0.4, 0.3, 0.2], [1, 1, 0, 1, 0, 0])
    >>> round(answer.slope, 4), round(answer.offset_intercept, 4)
    (1.1866, -0.28)
    """
    fraction("level", level)
    one_of("method", method, ("wald", "profile"))
    data = admitted("cox_recalibration", probs, labels, facts)
    lens = as_lens(lens, data)
    seen = lens(data)
    z, y = log_odds(seen, cox_recalibration)[1], (seen.labels == 0).astype(np.float64)
    _refuse_separated(z, y)

    one, none = np.ones((y.size, 1)), np.zeros(y.size)
    both, only = np.column_stack([one, z]), z[:, None]
    calibrated = log_likelihood(z, y)
    offset_best, (offset,) = fit_logistic(one, z, y)
    best, (intercept, slope) = fit_logistic(both, none, y)
    offset_se = float(np.sqrt(_covariance(one, z + offset)[0, 0]))
    covariance = _covariance(both, intercept + slope * z)
    intercept_se, slope_se = map(float, np.sqrt(np.diag(covariance)))
    found: dict[str, Any] = {"covariance": float(covariance[0, 1])}
    fits: dict[str, Any] = {
        "intercept": (intercept, intercept_se, best, lambda a: fit_logistic(only, none + a, y)[0]),
        "slope": (slope, slope_se, best, lambda b: fit_logistic(one, b * z, y)[0]),
        "offset_intercept": (offset, offset_se, offset_best, lambda a: log_likelihood(z + a, y)),
    }
    reach = float(scipy.special.ndtri(0.5 + level / 2.0))
    for name, (estimate, se, top, profile) in fits.items():
        interval = estimate - reach * se, estimate + reach * se
        if method == "profile":
            interval = _not_rejected(estimate, se, profile, top - 0.5 * reach**2)
        found[name], found[f"{name}_se"] = float(estimate), se
        found[f"{name}_interval"] = tuple(map(float, interval))
    for name, df, more, less in [
        ("lr", 2, best, calibrated),
        ("lr_intercept", 1, offset_best, calibrated),
        ("lr_slope", 1, best, offset_best),
    ]:
        found[name] = max(0.0, 2.0 * (more - less))
        found[f"{name}_pvalue"] = float(scipy.special.chdtrc(df, found[name]))
    return CoxRecalibration(
        **found,
        events=int(y.sum()),
        level=level,
        method=method,
        lens=name_of(lens),
        n=seen.n,
        n_classes=data.n_classes,
        notes=data.notes,
        copies=data.copies,
    )


def _refuse_separated(z: FloatArray, y: FloatArray) -> None:
    tests = "CoxScore() and CoxLR() test such data all the same"
    if y.min() == y.max():
        raise StatisticError(f"all outcomes are {int(y[0])}: the intercept is infinite. {tests}")
    if np.ptp(z) <= 1e-12:
        raise StatisticError(f"all predictions are equal: there is no slope to estimate. {tests}")
    without, having = z[y == 0], z[y == 1]
    if without.max() <= having.min() or having.max() <= without.min():
        raise StatisticError(
            f"events and non-events are separated by the prediction: the slope is infinite. {tests}"
        )


def _covariance(design: FloatArray, logits: FloatArray) -> FloatArray:
    v = scipy.special.expit(logits) * scipy.special.expit(-logits)
    return np.asarray(np.linalg.inv((design * v[:, None]).T @ design), dtype=np.float64)


def _not_rejected(
    estimate: float, se: float, profile: Callable[[float], float], bound: float
) -> tuple[float, float]:
    """Return where a profile likelihood falls below a bound, on both sides of its maximum."""
    from scipy.optimize import brentq

    def distance(side: float) -> float:
        reach = se
        while profile(estimate + side * reach) > bound:
            reach *= 2.0
        return brentq(lambda d: profile(estimate + side * d) - bound, 0.0, reach, xtol=1e-10)

    return estimate - distance(-1.0), estimate + distance(1.0)
