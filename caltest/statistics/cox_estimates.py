"""Cox's recalibration: intercept and slope with intervals and likelihood-ratio tests."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import scipy

from caltest.errors import StatisticError
from caltest.lenses import Lens, OneVsRest, apply
from caltest.predictions import FloatArray, Predictions
from caltest.results import Result, format_p
from caltest.statistics.cox import fit_logistic, log_likelihood, log_odds


@dataclass(frozen=True)
class CoxRecalibration(Result):
    """The answer of :func:`cox_recalibration`.

    Attributes
    ----------
    intercept, slope : float
        Estimates of a and b in logit P(y = 1) = a + b logit p; calibration means 0 and 1.
    intercept_se, slope_se : float
        Their standard errors, from the observed information.
    intercept_interval, slope_interval : tuple of float
        Their confidence intervals.
    offset_intercept : float
        The estimate of a when b = 1: calibration-in-the-large on the logit scale.
    offset_intercept_se : float
        Its standard error.
    offset_intercept_interval : tuple of float
        Its confidence interval.
    lr, lr_pvalue : float
        Likelihood ratio of (a, b) = (0, 1) against both free, χ² with 2 degrees of freedom.
    lr_intercept, lr_intercept_pvalue : float
        Of a = 0 given b = 1, one degree of freedom.
    lr_slope, lr_slope_pvalue : float
        Of b = 1 with a free, one degree of freedom; the two add up to ``lr``.
    n, events : int
        Observations, and how many of them had the event.
    level : float
        The level of the intervals.
    intervals : {"wald", "profile"}
        How they were made.
    """

    intercept: float
    intercept_se: float
    intercept_interval: tuple[float, float]
    slope: float
    slope_se: float
    slope_interval: tuple[float, float]
    offset_intercept: float
    offset_intercept_se: float
    offset_intercept_interval: tuple[float, float]
    lr: float
    lr_pvalue: float
    lr_intercept: float
    lr_intercept_pvalue: float
    lr_slope: float
    lr_slope_pvalue: float
    n: int
    events: int
    level: float
    intervals: str

    def __str__(self) -> str:
        def line(name: str, value: float, se: float, interval: tuple[float, float]) -> str:
            low, high = interval
            return f"  {name:<22} {value:8.4f}  (se {se:.4f})  [{low:.4f}, {high:.4f}]"

        def ratio(name: str, value: float, df: int, p: float) -> str:
            return f"  {name:<22} {value:8.4f}  ({df} df)  p = {format_p(p)}"

        kind = "Wald" if self.intervals == "wald" else "profile"
        slope = (self.slope, self.slope_se, self.slope_interval)
        offset = (self.offset_intercept, self.offset_intercept_se, self.offset_intercept_interval)
        return "\n".join(
            [
                f"Cox recalibration, {100 * self.level:g} % {kind} intervals",
                line("intercept", self.intercept, self.intercept_se, self.intercept_interval),
                line("slope", *slope),
                line("intercept | slope = 1", *offset),
                "Likelihood ratios",
                ratio("intercept 0, slope 1", self.lr, 2, self.lr_pvalue),
                ratio("intercept 0 | slope 1", self.lr_intercept, 1, self.lr_intercept_pvalue),
                ratio("slope 1", self.lr_slope, 1, self.lr_slope_pvalue),
                f"  n = {self.n}, {self.events} events",
            ]
        )


def cox_recalibration(
    probs: Any,
    labels: Any = None,
    *,
    lens: Lens | None = None,
    level: float = 0.95,
    intervals: Literal["wald", "profile"] = "wald",
) -> CoxRecalibration:
    """Estimate Cox's intercept and slope, with intervals and likelihood-ratio tests.

    The model is logit P(y = 1) = a + b logit p. A slope below 1 says that predictions are too
    extreme, a positive intercept given slope 1 that events are more frequent than predicted.

    Parameters
    ----------
    probs, labels
        As in :meth:`Predictions.of`.
    lens : callable, optional
        A lens with two classes, the first of which is the event; by default label 1 of a binary
        problem.
    level : float, default 0.95
        Level of the intervals.
    intervals : {"wald", "profile"}, default "wald"
        Estimate ± quantile × standard error, as most software reports, or the values that the
        likelihood-ratio test does not reject, which are better for few events.

    Returns
    -------
    CoxRecalibration

    Raises
    ------
    StatisticError
        When there are no finite estimates: all outcomes equal, all predictions equal, or events
        and non-events separated by the prediction. ``CoxScore`` and ``CoxLR`` test such data all
        the same.

    Notes
    -----
    O(n) per Newton step. The p-values are asymptotic; see ``CoxLR`` for their size.
    Probabilities are cut off at 1e-12.

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
    if not 0.0 < level < 1.0:
        raise StatisticError(f"level must lie between 0 and 1, not {level!r}")
    if intervals not in ("wald", "profile"):
        raise StatisticError(f"intervals must be 'wald' or 'profile', not {intervals!r}")
    data = Predictions.of(probs, labels)
    if lens is None and data.n_classes > 2:
        raise StatisticError(
            f"cox_recalibration is for two classes, but there are {data.n_classes}: name a lens "
            "such as lens=TopK(1) or lens=OneVsRest(c)"
        )
    seen = apply(lens or OneVsRest(1), data)
    _, z = log_odds(seen.probs, "cox_recalibration")
    y = (seen.labels == 0).astype(np.float64)
    _refuse_separated(z, y)

    one, both, none = np.ones((y.size, 1)), np.column_stack([np.ones(y.size), z]), np.zeros(y.size)
    calibrated = log_likelihood(z, y)
    offset_best, offset = fit_logistic(one, z, y)
    best, free = fit_logistic(both, none, y)
    offset_se = _standard_errors(one, z + offset[0])[0]
    intercept_se, slope_se = _standard_errors(both, both @ free)

    def interval(estimate: float, se: float, profile: Callable[[float], float], top: float) -> Any:
        if intervals == "wald":
            reach = float(scipy.special.ndtri(0.5 + level / 2.0)) * se
            return estimate - reach, estimate + reach
        return _not_rejected(
            estimate, se, profile, top - 0.5 * float(scipy.special.ndtri(0.5 + level / 2.0)) ** 2
        )

    ratios = [
        2.0 * (best - calibrated),
        2.0 * (offset_best - calibrated),
        2.0 * (best - offset_best),
    ]
    lr, lr_intercept, lr_slope = (max(0.0, r) for r in ratios)
    return CoxRecalibration(
        intercept=float(free[0]),
        intercept_se=intercept_se,
        intercept_interval=interval(
            float(free[0]), intercept_se, lambda a: fit_logistic(z[:, None], none + a, y)[0], best
        ),
        slope=float(free[1]),
        slope_se=slope_se,
        slope_interval=interval(
            float(free[1]), slope_se, lambda b: fit_logistic(one, b * z, y)[0], best
        ),
        offset_intercept=float(offset[0]),
        offset_intercept_se=offset_se,
        offset_intercept_interval=interval(
            float(offset[0]), offset_se, lambda a: log_likelihood(z + a, y), offset_best
        ),
        lr=lr,
        lr_pvalue=float(scipy.special.chdtrc(2, lr)),
        lr_intercept=lr_intercept,
        lr_intercept_pvalue=float(scipy.special.chdtrc(1, lr_intercept)),
        lr_slope=lr_slope,
        lr_slope_pvalue=float(scipy.special.chdtrc(1, lr_slope)),
        n=y.size,
        events=int(y.sum()),
        level=level,
        intervals=intervals,
    )  # fmt: skip


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


def _standard_errors(design: FloatArray, logits: FloatArray) -> list[float]:
    v = scipy.special.expit(logits) * scipy.special.expit(-logits)
    covariance = np.linalg.inv((design * v[:, None]).T @ design)
    return [float(s) for s in np.sqrt(np.diag(covariance))]


def _not_rejected(
    estimate: float, se: float, profile: Callable[[float], float], bound: float
) -> tuple[float, float]:
    """Return where a profile likelihood falls below a bound, on both sides of its maximum."""
    from scipy.optimize import brentq

    ends = []
    for side in (-1.0, 1.0):
        reach = se
        while profile(estimate + side * reach) > bound:
            reach *= 2.0
        ends.append(
            brentq(lambda d, s=side: profile(estimate + s * d) - bound, 0.0, reach, xtol=1e-10)
        )
    return estimate - ends[0], estimate + ends[1]
