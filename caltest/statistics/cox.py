"""Cox's tests of a = 0 and b = 1 in logit P(y = 1) = a + b logit p."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial

import numpy as np
import scipy

from caltest.predictions import FloatArray, IntArray, Predictions
from caltest.problem import Cells, Problem, ResidualSums
from caltest.statistics.base import Statistic, rows_of
from caltest.statistics.laws import chi_squared
from caltest.statistics.prepared import LabelStatistic, SumStatistic
from caltest.statistics.regression import NO_VARIANCE, refuse_certain

#: Probabilities are cut off here before their logit is taken, and nowhere else.
CLIP = 1e-12


def log_odds(data: Predictions) -> FloatArray:
    """Return the logit of the event, from both columns so that neither end loses its digits."""
    return logit_table(data.probs)[:, 0]


def logit_table(probs: FloatArray) -> FloatArray:
    """Return the score logit(p) y of both outcomes, shape (U, 2)."""
    cut = np.clip(probs, CLIP, 1.0 - CLIP)
    z = np.log(cut[:, 0]) - np.log(cut[:, 1])
    return np.column_stack([z, np.zeros(z.size)])


@dataclass(frozen=True, eq=False)
class Scores(SumStatistic):
    """Cox's score test with the predictions fixed: two weighted sums of residuals, squared.

    (Σ r)² / I₀ + (Σ r (z − z̄))² / I₁, I₁ infinite when only the first can vary.
    """

    mean: float
    information: FloatArray = field(repr=False)

    def of_sums(self, sums: ResidualSums) -> FloatArray:
        assert sums.cells is not None
        assert sums.linear is not None
        level = sums.cells[:, 0, 0]
        slope = sums.linear[:, 0] - self.mean * level
        return np.asarray(level**2 / self.information[0] + slope**2 / self.information[1])


@dataclass(frozen=True, repr=False)
class CoxScore(Statistic):
    """Rao's score test of a = 0, b = 1 in logit P(y = 1) = a + b logit p.

    With z = logit p, r = y − p and v = p (1 − p):

    S = (Σ r)² / Σ v + (Σ r (z − z̄))² / Σ v (z − z̄)², z̄ = Σ v z / Σ v,

    which is u' I⁻¹ u for the score u = (Σ r, Σ r z). Nothing is fitted. ``null="asymptotic"`` is χ²
    with 2 degrees of freedom (1 when all predictions are equal). Sharp against shifts and slopes,
    blind to waves (Cox, Biometrika 45, 1958). For two classes, and predictions of which some are
    neither 0 nor 1; StatisticError else. O(n). Logits are taken of probabilities cut off at 1e-12.

    Examples
    --------
    >>> round(CoxScore()(np.array([0.9, 0.9, 0.2]), np.array([0, 1, 0])), 6)
    3.805556
    """

    def prepare(self, problem: Problem) -> Scores:
        problem.event(self)
        cells = Cells.whole(problem)
        total = float(problem.variance_of(cells)[0])
        refuse_certain(self, total > NO_VARIANCE * problem.n)
        plain = z = problem.linear("logit", logit_table)
        mean = left = z.covariance / total
        if problem.exact:  # centred before it is squared, which keeps digits
            z, left = problem.linear("centred logit", lambda p: logit_table(p) - [mean, 0.0]), 0.0
        spread = z.variance - z.covariance * left
        df = 2 if spread > 1e-12 * plain.variance + NO_VARIANCE else 1
        return Scores(
            problem, left, np.array([total, spread if df == 2 else np.inf]),
            cells=cells, scores=z.table[None],
            observed_scores=np.array([z.observed]), null_mean=float(df), min_surprises=4.0,
            laws={"asymptotic": partial(chi_squared, df)},
        )  # fmt: skip


@dataclass(frozen=True, eq=False)
class LikelihoodRatio(LabelStatistic):
    """Cox's likelihood ratio with the predictions fixed."""

    logits: FloatArray = field(repr=False)
    df: int

    def of_labels(self, labels: IntArray) -> float:
        events = (labels == 0).astype(np.float64)
        design = np.column_stack([np.ones(events.size), self.logits])[:, : self.df]
        best, _ = fit_logistic(design, self.logits, events)
        return max(0.0, 2.0 * (best - log_likelihood(self.logits, events)))


@dataclass(frozen=True, repr=False)
class CoxLR(Statistic):
    """The likelihood-ratio test of a = 0, b = 1 in logit P(y = 1) = a + b logit p.

    LR = 2 (sup_{a,b} ℓ(a, b) − ℓ(0, 1)); ``null="asymptotic"`` is χ² with 2 degrees of freedom (1
    when all predictions are equal). Where events and non-events are separated, the estimates are
    infinite but the supremum is finite, and taken. :func:`caltest.cox_recalibration` gives the
    estimates. O(n) per Newton step, about five for a set of labels. Probabilities are cut off at
    1e-12, in the likelihood too.

    Examples
    --------
    >>> round(CoxLR()(np.array([0.9, 0.9, 0.2, 0.3]), np.array([0, 1, 0, 1])), 6)
    2.151083
    """

    def prepare(self, problem: Problem) -> LikelihoodRatio:
        problem.event(self)
        data = rows_of(problem, self)
        refuse_certain(self, float(problem.variance.sum()) > NO_VARIANCE * data.n)
        z = log_odds(data)
        df = 2 if np.ptp(z) > 1e-12 else 1
        laws = {"asymptotic": partial(chi_squared, df)}
        return LikelihoodRatio(problem, z, df, min_surprises=8.0, laws=laws)


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
        gain, rounding = -np.inf, 1e-13 * max(1.0, abs(value))
        for _ in range(60):
            moved = logits + design @ step
            gain = log_likelihood(moved, events, weights) - value
            if gain >= -rounding:
                break
            step = step / 2.0
        if gain < -rounding:
            break
        beta, logits, value = beta + step, moved, value + gain
        if gain < rounding:
            break
    return value, beta
