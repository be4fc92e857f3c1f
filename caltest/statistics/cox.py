"""Cox's tests of a = 0 and b = 1 in logit P(y = 1) = a + b logit p."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any, ClassVar

import numpy as np
import scipy

from caltest._base.compiled import dense_kernel
from caltest.predictions import FloatArray, IntArray, Predictions
from caltest.statistics.prepared import Law, Prepared, Statistic, chi_squared, event
from caltest.statistics.regression import NO_VARIANCE, refuse_certain

#: Probabilities are cut off here before their logit is taken, and nowhere else.
CLIP = 1e-12


def log_odds(data: Predictions, statistic: Any) -> tuple[FloatArray, FloatArray]:
    """Return p and its logit, from both columns so that neither end loses its digits."""
    p = event(data, statistic)
    cut = np.clip(data.probs, CLIP, 1.0 - CLIP)
    return p, np.log(cut[:, 0]) - np.log(cut[:, 1])


@dataclass(frozen=True, eq=False)
class Scores(Prepared):
    """Cox's score test with the predictions fixed: two weighted sums of residuals, squared.

    The weights are 1 and the ``centred`` logit; ``information`` has the variances of the sums,
    infinite for the second when only ``df`` = 1 can vary.
    """

    centred: FloatArray = field(repr=False)
    information: FloatArray = field(repr=False)
    df: int
    enough: float = field(default=4.0, kw_only=True)

    def batch(self, labels: IntArray) -> FloatArray:
        """Return the values for label vectors of shape (B, n), by compiled look-ups."""
        p, sums = self.data.probs[:, 0], np.empty((2, len(labels)))
        _events(labels, self.centred, *sums)
        return self._squared(sums[0] - p.sum(), sums[1] - p @ self.centred)

    def of_residuals(self, residuals: FloatArray, multipliers: FloatArray) -> FloatArray:
        """Return the values for moved residuals."""
        moved = multipliers * residuals[:, 0]
        return self._squared(moved.sum(axis=1), (moved * self.centred).sum(axis=1))

    def _squared(self, level: FloatArray, slope: FloatArray) -> FloatArray:
        return level**2 / self.information[0] + slope**2 / self.information[1]

    def laws(self) -> Mapping[str, Law]:
        """Return the limit law, by name."""
        return {"asymptotic": partial(chi_squared, self.df)}


@dense_kernel
def _events(labels, centred, events_out, sums_out):  # type: ignore[no-untyped-def]
    # How many events, and the sum of their centred logits.
    n = labels.shape[1]
    for r in range(labels.shape[0]):
        others, total = 0, 0.0
        for i in range(n):
            others += labels[r, i]
            total += centred[i] if labels[r, i] == 0 else 0.0
        events_out[r], sums_out[r] = n - others, total


@dataclass(frozen=True, repr=False)
class CoxScore(Statistic):
    """Rao's score test of a = 0, b = 1 in logit P(y = 1) = a + b logit p.

    With z = logit p, r = y − p and v = p (1 − p):

    S = (Σ r)² / Σ v + (Σ r (z − z̄))² / Σ v (z − z̄)², z̄ = Σ v z / Σ v,

    which is u' I⁻¹ u for the score u = (Σ r, Σ r z). Nothing is fitted. ``null="asymptotic"`` is χ²
    with 2 degrees of freedom (1 when all predictions are equal). The default among the regression
    tests: sharp against shifts and slopes, blind to waves.

    Raises
    ------
    StatisticError
        For more than two classes, or when every prediction is 0 or 1.

    Notes
    -----
    O(n). Size of the χ² law at 5 %: 0.041 to 0.066 at n = 50, 0.049 to 0.055 at n = 1000. Logits
    are taken of probabilities cut off at 1e-12; r and v use them as they are.

    References
    ----------
    Cox (1958), "Two further applications of a model for binary regression", Biometrika 45.

    Examples
    --------
    >>> round(CoxScore()(np.array([0.9, 0.9, 0.2]), np.array([0, 1, 0])), 6)
    3.805556
    """

    takes_weights: ClassVar[bool] = True

    def given(self, data: Predictions) -> Scores:
        """Fix the predictions: what remains are two weighted sums of residuals."""
        p, z = log_odds(data, self)
        v = p * data.probs[:, 1] * (1.0 if data.weights is None else data.weights**2)
        total = float(v.sum())
        refuse_certain(self, total > NO_VARIANCE * p.size)
        centred = z - float(v @ z) / total
        spread = float(v @ centred**2)
        df = 2 if spread > 1e-12 * float(v @ z**2) + NO_VARIANCE else 1
        information = np.array([total, spread if df == 2 else np.inf])
        return Scores(data, centred, information, df, degree=2, null_mean=float(df))


@dataclass(frozen=True, eq=False)
class LikelihoodRatio(Prepared):
    """Cox's likelihood ratio with the predictions fixed."""

    logits: FloatArray = field(repr=False)
    df: int
    enough: float = field(default=8.0, kw_only=True)

    def __call__(self, labels: IntArray) -> float:
        events = (labels == 0).astype(np.float64)
        design = np.column_stack([np.ones(events.size), self.logits])[:, : self.df]
        best, _ = fit_logistic(design, self.logits, events)
        return max(0.0, 2.0 * (best - log_likelihood(self.logits, events)))

    def laws(self) -> Mapping[str, Law]:
        """Return the limit law, by name."""
        return {"asymptotic": partial(chi_squared, self.df)}


@dataclass(frozen=True, repr=False)
class CoxLR(Statistic):
    """The likelihood-ratio test of a = 0, b = 1 in logit P(y = 1) = a + b logit p.

    LR = 2 (sup_{a,b} ℓ(a, b) − ℓ(0, 1)); ``null="asymptotic"`` is χ² with 2 degrees of freedom (1
    when all predictions are equal). Where events and non-events are separated, the estimates are
    infinite but the supremum is finite, and taken. :class:`CoxScore` asks the same without fitting,
    :func:`caltest.cox_recalibration` gives the estimates.

    Raises
    ------
    StatisticError
        For more than two classes, or when every prediction is 0 or 1.

    Notes
    -----
    O(n) per Newton step, about five steps for a set of labels. The χ² law is liberal in small
    samples of very confident predictions: size 0.098 at n = 50 and 0.078 at n = 200 where 0.05 is
    meant. Probabilities are cut off at 1e-12, in the likelihood too.

    Examples
    --------
    >>> round(CoxLR()(np.array([0.9, 0.9, 0.2, 0.3]), np.array([0, 1, 0, 1])), 6)
    2.151083
    """

    def given(self, data: Predictions) -> LikelihoodRatio:
        """Fix the predictions: what remains is a fit to the labels."""
        p, z = log_odds(data, self)
        refuse_certain(self, float(p @ data.probs[:, 1]) > NO_VARIANCE * p.size)
        return LikelihoodRatio(data, z, df=2 if np.ptp(z) > 1e-12 else 1)


def log_likelihood(
    logits: FloatArray, events: FloatArray, weights: FloatArray | None = None
) -> float:
    """Return Σ_i w_i (y_i η_i − log(1 + exp η_i))."""
    if weights is not None:
        return float(weights @ (events * logits - np.logaddexp(0.0, logits)))
    return float(events @ logits - np.logaddexp(0.0, logits).sum())


def fit_logistic(
    design: FloatArray, offset: FloatArray, events: FloatArray, weights: FloatArray | None = None
) -> tuple[float, FloatArray]:
    """Maximise the logistic likelihood by Newton's method; return its maximum and coefficients.

    Steps are halved until they gain. Separated data have no maximum but a supremum: every step then
    multiplies what is missing by 1/e, and the loop ends when that is next to nothing.
    """
    beta = np.zeros(design.shape[1])
    logits, value = offset, log_likelihood(offset, events, weights)
    weighted = design if weights is None else design * weights[:, None]
    for _ in range(100):
        fitted = scipy.special.expit(logits)
        information = (weighted * (fitted * (1.0 - fitted))[:, None]).T @ design
        step = np.linalg.lstsq(information, weighted.T @ (events - fitted), rcond=None)[0]
        gain = -1.0
        for _ in range(60):
            moved = logits + design @ step
            gain = log_likelihood(moved, events, weights) - value
            if gain >= 0.0:
                break
            step = step / 2.0
        if gain < 0.0:
            break
        beta, logits, value = beta + step, moved, value + gain
        if gain < 1e-13 * max(1.0, abs(value)):
            break
    return value, beta
