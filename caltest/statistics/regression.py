"""Classical tests for two classes: in the large, O:E, Cox, Hosmer–Lemeshow, Spiegelhalter's z.

:class:`CoxScore` and :class:`CoxLR` test intercept and slope together,
:class:`CalibrationInTheLarge` and :class:`OERatio` the level, :class:`HosmerLemeshow` gaps in bins;
:class:`MeanDifference` is observed − predicted.
"""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass, field
from functools import partial
from typing import Literal

import numpy as np
import scipy

from caltest._base import FloatArray, IntArray
from caltest._base.arrays import one_of, whole
from caltest.data import Predictions
from caltest.data.binning import Binning, QuantileBins, as_binning
from caltest.errors import StatisticError
from caltest.nulls.laws import chi_squared, normal
from caltest.statistics.prepared import CellStatistic, LabelStatistic, SumStatistic
from caltest.statistics.problem import Cells, Estimand, Problem, ResidualSums
from caltest.statistics.scores import ScoreGap
from caltest.statistics.statistic import Statistic, rows_of

#: Variance per row below which a statistic cannot vary: only rounding is left of it.
NO_VARIANCE = 1e-24


#: Variance of the number of events in a group that the χ² law of Hosmer and Lemeshow takes.
LEAST_VARIANCE = 0.15


def refuse_certain(statistic: object, varies: bool) -> None:
    """Raise StatisticError unless ``varies``: if all predictions are 0 or 1 nothing can be tested.

    Under such predictions a calibrated model has only one possible outcome.
    """
    if not varies:
        raise StatisticError(
            f"{statistic!r} is undefined: every prediction is 0 or 1, so a calibrated model has "
            "one outcome only"
        )


@dataclass(frozen=True, eq=False)
class ScaledGaps(CellStatistic):
    """Sum of scaled gaps over the cells of a binary problem, with fixed predictions.

    The value is centre + Σ_g (O_g − E_g)^power / scale_g, with O_g the number of events in cell g
    and E_g its expectation; a cell of infinite scale adds nothing.
    """

    scale: FloatArray = field(repr=False)
    power: int

    def terms(self, sums: FloatArray, at: slice = slice(None)) -> FloatArray:
        """Return the term of each cell ``at``, (B, L), with an equal share of the centre.

        ``sums`` (B, L, 1) are residual sums O_g − E_g of B sets of outcomes.
        """
        return self.centre / len(self.cells) + sums[:, :, 0] ** self.power / self.scale[at]


@dataclass(frozen=True, repr=False)
class CalibrationInTheLarge(Statistic):
    """Calibration-in-the-large: are there as many events as predicted, all in all?

    z = Σ_i (y_i − p_i) / √Σ_i p_i (1 − p_i), signed: positive when events were under-predicted.
    Two-sided; ``null="asymptotic"`` is N(0, 1), the default null of ``calibration_test`` computes
    the exact law. Blind to everything that leaves the total right (Cox, Biometrika 45, 1958). For
    two classes, and predictions of which some are neither 0 nor 1; StatisticError else. O(n).

    Examples
    --------
    >>> CalibrationInTheLarge()(np.array([0.5, 0.5, 0.5, 0.5]), np.array([1, 1, 1, 1]))
    2.0
    """

    def prepare(self, problem: Problem) -> ScaledGaps:
        return _all_in_all(self, problem, 0.0)


@dataclass(frozen=True, repr=False)
class OERatio(Statistic):
    """The O:E ratio: events observed over events expected, all in all.

    O / E = Σ_i y_i / Σ_i p_i, in [0, n / E]: 1.2 says that there were 20 % more events than
    predicted (Riley et al., Statistics in Medicine 40, 2021). Two-sided around 1, and the same test
    as :class:`CalibrationInTheLarge`, for the same data: the default null of ``calibration_test``
    is the Poisson-binomial law of O, ``null="asymptotic"`` is N(1, Σ p (1 − p) / E²). O(n).

    Examples
    --------
    >>> OERatio()([0.2, 0.4, 0.6, 0.8], [0, 1, 1, 1])
    1.5
    """

    def prepare(self, problem: Problem) -> ScaledGaps:
        return _all_in_all(self, problem, 1.0)


@dataclass(frozen=True, repr=False)
class MeanDifference(Statistic):
    """Mean of observed − predicted, signed: by how much events are more frequent than predicted.

    d = Σ_i w_i (y_i − p_i) / Σ_i w_i, in [−1, 1]: 0.05 says that the event rate is 5 percentage
    points above the mean prediction. Through ``TopK(1)`` it is accuracy less mean confidence, below
    0 for overconfident models. :func:`confidence_interval` bounds it at rare events, with clusters
    and weights. As a test it is two-sided around 0, and the same as
    :class:`CalibrationInTheLarge`. No power against errors that leave the mean right. O(n).

    Raises
    ------
    StatisticError
        For more than two classes after the lens, or where every prediction is 0 or 1.

    Examples
    --------
    >>> MeanDifference()(np.array([0.25, 0.5, 0.25, 0.5]), np.array([1, 1, 0, 1]))
    0.375
    """

    def prepare(self, problem: Problem) -> ScaledGaps:
        problem.event(self)
        cells = Cells.whole(problem)
        variance = float(problem.variance_of(cells)[0])
        refuse_certain(self, variance > NO_VARIANCE * problem.n)
        weight = float(cells.mass.sum())
        return ScaledGaps(
            problem, np.array([weight]), 1,
            cells=cells, two_sided=True, null_mean=0.0, min_surprises=4.0,
            estimand=Estimand("signed"),
            laws={"asymptotic": partial(normal, 0.0, float(np.sqrt(variance)) / weight)},
        )  # fmt: skip


def _all_in_all(statistic: Statistic, problem: Problem, centre: float) -> ScaledGaps:
    """Return the gap O − E of all rows, in standard deviations, or in expected events (O / E).

    ``centre`` is the value if O = E: 1 for the ratio and 0 for the standardised gap.
    """
    problem.event(statistic)
    cells = Cells.whole(problem)
    variance = float(problem.variance_of(cells)[0])
    refuse_certain(statistic, variance > NO_VARIANCE * problem.n)
    deviation = float(np.sqrt(variance))
    # O / E has the centre 1, and a gap in standard deviations 0.
    unit = float(cells.expected[0, 0]) if centre else deviation
    return ScaledGaps(
        problem, np.array([unit]), 1,
        cells=cells, two_sided=True, centre=centre, null_mean=centre, min_surprises=4.0,
        laws={"asymptotic": partial(normal, centre, deviation / unit)},
    )  # fmt: skip


@dataclass(frozen=True, repr=False)
class HosmerLemeshow(Statistic):
    """The Hosmer–Lemeshow statistic, a sum of squared standardised gaps over bins.

    C = Σ_g (O_g − E_g)² / V_g with O_g events observed and E_g = Σ p_i predicted in bin g, and
    V_g = n_g p̄_g (1 − p̄_g) as published (Communications in Statistics A 9, 1980), or
    V_g = Σ p_i (1 − p_i) with ``variance="exact"`` (Stallard, Statistics in Medicine 28, 2009).
    Bins that can show one outcome only (V_g = 0) are left out. StatisticError for more than two
    classes, a number for ``bins``, or when no bin can show more than one outcome. O(n log n), then
    O(n) for each further set of labels. The χ² law is liberal where bins expect few events.

    Parameters
    ----------
    bins : binning, default QuantileBins(10)
        The partition, by name; the default has groups of equal size with ties kept together.
    variance : {"binomial", "exact"}, default "binomial"
        Variance of a bin: as for equal predictions, which is too large, or exact.
    df : int, optional
        Degrees of freedom of the χ² law under ``null="asymptotic"``; by default the number of bins
        that are not left out, which is right for data other than the training data. The textbook's
        g − 2 holds for the data on which a logistic model was fitted.

    Examples
    --------
    >>> probs = np.array([0.2, 0.2, 0.2, 0.2, 0.5, 0.5, 0.5, 0.5])
    >>> HosmerLemeshow(QuantileBins(2))(probs, np.array([0, 0, 0, 1, 1, 1, 1, 1]))
    4.0625
    """

    bins: Binning = QuantileBins(10)
    _: KW_ONLY
    variance: Literal["binomial", "exact"] = "binomial"
    df: int | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "bins", as_binning(self.bins, number=False))
        one_of("variance", self.variance, ("binomial", "exact"))
        if self.df is not None:
            whole("df", self.df)

    def prepare(self, problem: Problem) -> ScaledGaps:
        problem.event(self)
        cells = Cells.of(self.bins, problem)
        true = problem.variance_of(cells)
        variance = problem.variance_of(cells, equal=self.variance == "binomial")
        varies = variance > NO_VARIANCE * cells.counts
        refuse_certain(self, bool(varies.any()))
        scale = np.where(varies, variance, np.inf)
        least, caveat = float(true[varies].min()), None
        if self.df is not None and self.df < varies.sum():
            caveat = f"df={self.df} is for the rows of the fit, others have {varies.sum()}"
        elif least < LEAST_VARIANCE:
            caveat = (
                f"the number of events in a group has a variance of only {least:.2g}, it takes "
                f"{LEAST_VARIANCE:g}"
            )
        # A squared gap has the true variance as its mean, whatever it is divided by.
        return ScaledGaps(
            problem, scale, 2,
            cells=cells, null_mean=float((true / scale).sum()), min_surprises=4.0,
            laws={"asymptotic": partial(chi_squared, self.df or int(varies.sum()))},
            law_caveat=caveat,
        )  # fmt: skip


def Spiegelhalter() -> ScoreGap:  # noqa: N802
    """Spiegelhalter's z: is the Brier score what the predictions say it should be?

    z = Σ_i (y_i − p_i)(1 − 2 p_i) / √Σ_i (1 − 2 p_i)² p_i (1 − p_i), positive when the score is
    worse than promised: overconfidence. Another name of ``ScoreGap("brier")``.
    """
    return ScoreGap("brier")


#: Probabilities are cut off here before their logit is taken, and nowhere else.
PROBABILITY_CLIP = 1e-12


def log_odds(data: Predictions) -> FloatArray:
    """Return the log-odds of the event, (n,).

    They are computed from both columns, so that digits are lost neither near 0 nor near 1.
    """
    return logit_table(data.probs)[:, 0]


def logit_table(probs: FloatArray) -> FloatArray:
    """Return the score logit(p) y for the outcomes y = 1 and y = 0, shape (U, 2)."""
    cut = np.clip(probs, PROBABILITY_CLIP, 1.0 - PROBABILITY_CLIP)
    z = np.log(cut[:, 0]) - np.log(cut[:, 1])
    return np.column_stack([z, np.zeros(z.size)])


@dataclass(frozen=True, eq=False)
class Scores(SumStatistic):
    """Cox's score statistic with fixed predictions: two weighted sums of residuals, squared.

    It is (Σ r)² / I₀ + (Σ r (z − z̄))² / I₁; I₁ is infinite if all predictions are equal.
    """

    mean: float
    information: FloatArray = field(repr=False)

    def of_sums(self, sums: ResidualSums) -> FloatArray:
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
        # The spread of equal predictions is rounding, and one degree of freedom is left.
        df = 2 if spread > 1e-12 * plain.variance + NO_VARIANCE else 1
        return Scores(
            problem, left, np.array([total, spread if df == 2 else np.inf]),
            cells=cells, scores=z.table[None],
            observed_scores=np.array([z.observed]), null_mean=float(df), min_surprises=4.0,
            laws={"asymptotic": partial(chi_squared, df)},
        )  # fmt: skip


@dataclass(frozen=True, eq=False)
class LikelihoodRatio(LabelStatistic):
    """Cox's likelihood-ratio statistic with fixed predictions, of ``df`` 1 or 2 coefficients."""

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
    """Return the logistic log-likelihood Σ_i w_i (y_i η_i − log(1 + exp η_i)).

    ``logits`` η, ``events`` y and ``weights`` w have shape (n,); without weights all w are 1.
    """
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
        # The information is singular where predictions are equal or data are separated.
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
