"""Classical tests: in the large, O:E, Cox, Hosmer–Lemeshow, Spiegelhalter's z; K classes.

:class:`CoxScore` and :class:`CoxLR` test intercept and slope together,
:class:`CalibrationInTheLarge` and :class:`OERatio` the level, :class:`HosmerLemeshow` gaps in bins;
:class:`MeanDifference` is observed − predicted. :class:`MulticlassCox` and :class:`WorstClass` are
for the whole probability vector.
"""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass, field
from functools import partial
from typing import ClassVar, Literal

import numpy as np
import scipy

from caltest._base import FloatArray, IntArray
from caltest._base.arrays import one_of, whole
from caltest.data import Predictions
from caltest.data.binning import Binning, QuantileBins, as_binning
from caltest.errors import StatisticError
from caltest.nulls.laws import chi_squared, normal
from caltest.statistics.prepared import (
    CellStatistic,
    LabelStatistic,
    Prepared,
    Statistic,
    SumStatistic,
    rows_of,
)
from caltest.statistics.problem import ABSENT, Cells, Estimand, Outcomes, Problem, ResidualSums
from caltest.statistics.rows import Flips
from caltest.statistics.scores import ScoreGap

#: Variance per row below which a statistic cannot vary: only rounding is left of it.
NO_VARIANCE = 1e-24


#: Variance of the number of events in a group that the χ² law of Hosmer and Lemeshow takes.
LEAST_VARIANCE = 0.15


def refuse_certain(statistic: object, varies: bool) -> None:
    """Raise StatisticError unless ``varies``: if all predictions are 0 or 1 nothing can be tested.

    Under such predictions a calibrated model has only one possible outcome. ``statistic`` is the
    statistic that the message names.
    """
    if not varies:
        raise StatisticError(
            f"{statistic!r} is undefined: every prediction is 0 or 1, so a calibrated model has "
            "one outcome only"
        )


@dataclass(frozen=True, eq=False)
class ScaledGaps(CellStatistic):
    """Sum of scaled gaps over the L cells of a binary problem, with fixed predictions.

    The value is centre + Σ_g (O_g − E_g)^power / scale_g, with O_g the number of events in cell g
    and E_g its expectation. ``scale`` is (L,); a cell of infinite scale adds nothing. ``power`` is
    1 or 2.
    """

    scale: FloatArray = field(repr=False)
    power: int

    def terms(self, sums: FloatArray, at: slice = slice(None)) -> FloatArray:
        """Return the term of each cell ``at``, (B, L), with an equal share of the centre.

        ``sums`` (B, L, 1) are residual sums, observed − expected events, of B sets of outcomes in
        the L cells that the slice ``at`` selects. A term is this sum to the power of the statistic,
        divided by the scale of the cell.
        """
        return self.centre / len(self.cells) + sums[:, :, 0] ** self.power / self.scale[at]


@dataclass(frozen=True, repr=False)
class CalibrationInTheLarge(Statistic):
    """Calibration-in-the-large: are there as many events as predicted, all in all?

    z = Σ_i (y_i − p_i) / √Σ_i p_i (1 − p_i), signed: positive when events were under-predicted.
    Two-sided; ``null="asymptotic"`` is N(0, 1), the default null of ``calibration_test`` computes
    the exact law. It has no power against errors that leave the total right (Cox, Biometrika 45,
    1958). For two classes, and predictions of which some are neither 0 nor 1; StatisticError else.
    O(n).

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
    """Return the statistic (O − E) / √Var O, or the ratio O / E, with fixed predictions.

    O and E are observed and expected events in all rows of the two-class ``problem``. ``centre`` is
    the value if O = E: 0 selects the standardised difference, 1 the ratio. StatisticError names
    ``statistic`` where no outcome can vary, or for more than two classes.
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
    Here n_g is the number of rows in the bin and p̄_g their mean prediction. Bins that can show one
    outcome only (V_g = 0) are left out. StatisticError for more than two
    classes, a number for ``bins``, or when no bin can show more than one outcome. O(n log n), then
    O(n) for each further set of labels. The χ² law is liberal where bins expect few events.

    Parameters
    ----------
    bins : binning, default QuantileBins(10)
        The partition; the default has groups of equal size with ties kept together.
    variance : {"binomial", "exact"}, default "binomial"
        Variance of a bin: as for equal predictions, which is too large, or exact.
    df : int, optional
        Degrees of freedom of the χ² law under ``null="asymptotic"``; by default the number of bins
        that are not left out, which is right for data other than the training data. The textbook's
        g − 2, for g bins, holds for the data on which a logistic model was fitted.

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
    """Return Spiegelhalter's z: is the Brier score as large as the predictions say it should be?

    z = Σ_i (y_i − p_i)(1 − 2 p_i) / √Σ_i (1 − 2 p_i)² p_i (1 − p_i), positive when the score is
    worse than promised: overconfidence. Another name of ``ScoreGap("brier")``, the statistic, which
    is called with probabilities and labels.
    """
    return ScoreGap("brier")


#: Probabilities are cut off here before their logit is taken, and nowhere else.
PROBABILITY_CLIP = 1e-12


def log_odds(data: Predictions) -> FloatArray:
    """Return the log-odds log(p / (1 − p)) of the event in column 0 of ``data.probs``, (n,).

    ``data`` has two classes. They are computed from both columns, so that digits are lost neither
    near 0 nor near 1; probabilities are cut off at 1e-12.
    """
    return logit_table(data.probs)[:, 0]


def logit_table(probs: FloatArray) -> FloatArray:
    """Return the score logit(p) y for the outcomes y = 1 and y = 0, shape (U, 2).

    ``probs`` (U, 2) are the probabilities p and 1 − p, cut off at 1e-12. Column 1 of the result is
    0.
    """
    cut = np.clip(probs, PROBABILITY_CLIP, 1.0 - PROBABILITY_CLIP)
    z = np.log(cut[:, 0]) - np.log(cut[:, 1])
    return np.column_stack([z, np.zeros(z.size)])


@dataclass(frozen=True, eq=False)
class Scores(SumStatistic):
    """Statistic of :class:`CoxScore` with fixed predictions, the sum of two squared scores.

    It is (Σ r)² / I₀ + (Σ r (z − z̄))² / I₁, with r the residuals, z the log-odds and z̄ the field
    ``mean``, their mean weighted by p (1 − p). ``information`` (2,) holds I₀ and I₁, the variances
    of both sums under calibration; I₁ is infinite if all predictions are equal.
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
    with 2 degrees of freedom (1 when all predictions are equal). It has power against shifts and
    slopes, and none against waves (Cox, Biometrika 45, 1958). For two classes, and predictions of
    which some are neither 0 nor 1; StatisticError else. O(n). Logits are taken of probabilities cut
    off at 1e-12.

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
    """Cox's likelihood-ratio statistic with fixed predictions, of ``df`` 1 or 2 coefficients.

    ``logits`` (n,) are the log-odds of the predictions. An intercept is fitted with ``df`` = 1, and
    a slope of the log-odds as well with 2.
    """

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
    """Maximise the logistic likelihood; return (maximal log-likelihood, coefficients (d,)).

    Row i has log-odds ``offset[i]`` + ``design[i]`` · coefficients; ``design`` is (n, d), and
    ``offset``, the outcomes ``events`` (0 or 1) and ``weights`` are (n,); without weights all are
    1. Steps of Newton's method are halved until they gain. Separated data have no maximum but a
    supremum: every step then multiplies the distance from it by 1/e, and the loop ends when that is
    negligible.
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


# ------------------------------------------------------------------------------
# Cox's score test of the whole probability vector, and the class that is most wrong.
#
# Both statistics are functions of two sums per class, of weighted residuals r = w (1{y = j} − p_j)
# and of r log p_j. They are the scores at (a, b) = (0, 1) of the model
# P(y = j) ∝ exp(a_j) p_j^b_j, which shifts and stretches the log-probabilities of every class.


#: Which parameters of the model may differ from (0, 1): the levels of all classes; these and one
#: exponent in common; the level and the exponent of every class.
CoxPart = Literal["level", "temperature", "vector"]


#: What is said of a class: (is it a slope, is the component positive).
COMPONENT_DIRECTIONS = {
    (False, True): "too low",
    (False, False): "too high",
    (True, True): "too timid",
    (True, False): "too extreme",
}


#: Σ p (1 − p) of a class below which the χ² law rejects calibrated models too often.
LEAST_EXPECTED = 5.0


#: Eigenvalues of the correlation matrix of the scores, as a share of the largest, that are 0.
RANK = 1e-10


@dataclass(frozen=True, repr=False)
class MulticlassCox(Statistic):
    """Rao's score test of a = 0, b = 1 in P(y = j) ∝ exp(a_j) p_j^b_j, for K classes.

    With the score u of the free parameters and its covariance V under calibration,

    S = u' V⁻ u,  u = (Σ_i w_i (1{y_i = j} − p_ij))_j and sums of w (1{y = j} − p_j) log p_j,

    where V⁻ is the Moore–Penrose inverse of the correlation matrix of the scores, rescaled. Nothing
    is fitted. ``null="asymptotic"`` is χ² with rank V degrees of freedom. It needs Σ p_j (1 − p_j)
    of at least 5 for every class that can occur, and warns otherwise: with rarer classes it
    rejected up to 0.17 of 1000 calibrated data sets at 0.05. Redrawn labels are valid always. For
    two classes the part "temperature" is :class:`CoxScore`. The model is the multinomial
    recalibration of Van Hoorde et al., Statistics in Medicine 33, 2014, with the exponents of
    vector scaling (Guo et al., ICML 2017).

    The usual lens is ``Canonical()``. StatisticError for two classes that a lens made of more, and
    where every prediction is 0 or 1. Probabilities are at least 1e-12 in logarithms. O(n K²) once,
    then O(n) for each set of labels.

    Parameters
    ----------
    part : {"temperature", "level", "vector"}, default "temperature"
        "level" frees a (K − 1 degrees of freedom): is every class as frequent as predicted?
        "temperature" frees one exponent in addition: are predictions too extreme, or not extreme
        enough? "vector" frees an exponent for every class (2K − 1 degrees of freedom; 3 for K = 2).

    Examples
    --------
    >>> probs = [[0.7, 0.2, 0.1], [0.6, 0.3, 0.1], [0.2, 0.2, 0.6]]
    >>> round(MulticlassCox()(probs, [1, 0, 0]), 6)
    3.274747
    """

    part: CoxPart = "temperature"
    of_whole_vector: ClassVar[bool] = True

    def __post_init__(self) -> None:
        one_of("part", self.part, ("level", "temperature", "vector"))

    def prepare(self, problem: Problem) -> Prepared:
        if problem.n_classes == 2 and self.part == "temperature":
            return CoxScore().prepare(problem)
        scores = _scores_of(problem, self.part)
        refuse_certain(self, bool((np.diag(scores.covariance) > NO_VARIANCE * problem.n).any()))
        if problem.n_classes == 2 and self.part == "level":
            return ScaledGaps(
                problem, scores.covariance[0], 2,
                cells=Cells.whole(problem), null_mean=1.0, min_surprises=4.0,
                laws={"asymptotic": partial(chi_squared, 1)},
            )  # fmt: skip
        root, df = whitening(scores.covariance)
        return QuadraticForm(
            problem, root, scores.logits,
            cells=Cells.whole(problem), scores=scores.tables, observed_scores=scores.observed,
            null_mean=float(df), min_surprises=4.0, law_caveat=_rare_class(problem),
            laws={"asymptotic": partial(chi_squared, df)}, remark=scores.remark,
        )  # fmt: skip


@dataclass(frozen=True, repr=False)
class WorstClass(Statistic):
    """The largest error of a class in standard deviations: of its level, or of its slope.

    With S_j = Σ_i w_i (1{y_i = j} − p_ij), T_j = Σ_i w_i (1{y_i = j} − p_ij) log p_ij and their
    covariance under calibration,

    max_j max(|a_j|, |b_j|),  a_j = S_j / sd S_j,  b_j = (T_j − β_j S_j) / sd(T_j − β_j S_j),

    with β_j = Cov(S_j, T_j) / Var S_j. a > 0: the probability of class j is too low; a < 0: too
    high; b > 0: too timid, closer to its mean than it should be; b < 0: too extreme. Classes are
    not made uncorrelated, since that would mix their names. Labels are redrawn; with the largest
    component as the statistic, the p-values of single components are adjusted for all of them
    (single-step max-T, Westfall & Young 1993). :func:`caltest.worst_class` gives these.

    The usual lens is ``Canonical()``. StatisticError for two classes that a lens made of more, and
    where every prediction is 0 or 1. Probabilities are at least 1e-12 in logarithms. O(n K²) once,
    then O(n) for each set of labels.

    Examples
    --------
    >>> probs = [[0.7, 0.2, 0.1], [0.6, 0.3, 0.1], [0.2, 0.2, 0.6]]
    >>> round(WorstClass()(probs, [1, 0, 0]), 6)
    2.143922
    """

    of_whole_vector: ClassVar[bool] = True

    def prepare(self, problem: Problem) -> LargestComponent:
        scores = _scores_of(problem, "vector")
        basis = standardised(scores.covariance, problem.d, NO_VARIANCE * problem.n)
        refuse_certain(self, bool(basis.any()))
        return LargestComponent(
            problem, basis, scores.logits,
            cells=Cells.whole(problem), scores=scores.tables, observed_scores=scores.observed,
            min_surprises=4.0, remark=scores.remark,
        )  # fmt: skip


# ------------------------------------------------------------------------------
# The statistics with the predictions fixed.


@dataclass(frozen=True, eq=False)
class ClassScores(SumStatistic):
    """Base class of R standardised linear combinations of the residual sums of all K classes.

    Under calibration each has mean 0 and variance 1. ``basis`` (R, d + K) has a row for each
    combination, and a column for each of d levels (1 for two classes, else K), then for each slope.
    ``cells`` is one cell with all rows. ``logits`` (n, K) are w log p, with w the weight of a row,
    where slopes of more than two classes are wanted: they are counted by label, which is faster
    than a score table for every class; None otherwise.
    """

    cells: Cells = field(kw_only=True, repr=False)
    basis: FloatArray = field(repr=False)
    logits: FloatArray | None = field(repr=False)

    def combinations(self, sums: ResidualSums) -> FloatArray:
        """Return the standardised combinations (B, R) of the sums of B sets of outcomes.

        ``sums`` hold the levels, residual sums of the d classes over all rows, in ``cells`` (B, 1,
        d), and the sums for slopes, Σ w r log p, in ``linear`` (B, T), if there are any; r is the
        residual, w the weight of a row. They are multiplied by ``basis`` (R, d + T), so that its R
        rows are the columns here: each has mean 0 and variance 1 under calibration, or is 0 where
        it cannot vary.
        """
        levels = sums.cells[:, 0, :]
        linear = sums.linear if sums.linear.ndim == 2 else np.empty((len(levels), 0))
        return np.asarray(np.concatenate([levels, linear], axis=1) @ self.basis.T)

    @property
    def takes_counts(self) -> bool:
        return self.logits is None

    def values(self, outcomes: Outcomes, factor: float = 1.0) -> FloatArray:
        if self.logits is None:
            return super().values(outcomes, factor)
        levels = self.problem.sums(outcomes, self.cells).cells
        return self.of_sums(ResidualSums(levels, ABSENT, self._slopes(outcomes)).inflated(factor))

    def _slopes(self, outcomes: Outcomes) -> FloatArray:
        """Return Σ w r log p of each of K classes, (B, K), for B sets of outcomes.

        r is the residual, observed − predicted, w the weight of a row. ``outcomes`` are label
        vectors (B, n), or multiples of the observed residuals (:class:`Flips`).
        """
        assert self.logits is not None
        k = self.logits.shape[1]
        if isinstance(outcomes, Flips):
            hit = self.problem.labels[:, None] == np.arange(k)
            return np.asarray(outcomes.multipliers @ (self.logits * (hit - self.problem.probs)))
        first, flat = np.arange(0, self.logits.size, k), self.logits.ravel()
        counted = [np.bincount(y, np.take(flat, first + y), k) for y in outcomes]
        return np.array(counted) - (self.logits * self.problem.probs).sum(axis=0)

    @property
    def counted(self) -> tuple[Prepared, ...]:  # type: ignore[override]
        return super().counted if self.logits is None else ()


@dataclass(frozen=True, eq=False)
class QuadraticForm(ClassScores):
    """Score statistic of :class:`MulticlassCox` with fixed predictions.

    It is the squared length of the standardised scores of levels and slopes, sums that have mean 0,
    variance 1 and no correlation under calibration; its law tends to χ².
    """

    def of_sums(self, sums: ResidualSums) -> FloatArray:
        return np.asarray(np.square(self.combinations(sums)).sum(axis=1))


@dataclass(frozen=True, eq=False)
class LargestComponent(ClassScores):
    """Statistic of :class:`WorstClass` with fixed predictions: the largest |standardised score|.

    There are a level and a slope for each class, residual sums Σ w r and Σ w r log p in standard
    deviations under calibration, the slope given the level.
    """

    def of_sums(self, sums: ResidualSums) -> FloatArray:
        return np.asarray(np.abs(self.combinations(sums)).max(axis=1))

    @property
    def standard_scores(self) -> FloatArray:
        """Standardised scores of the observed outcomes, (d + K,): d levels, then K slopes.

        Each is a residual sum over all rows, Σ w r or Σ w r log p, in standard deviations under
        calibration, the slope given the level. For K = 2 classes d = 1, the event, else d = K.
        Positive levels say that the class occurs more often than predicted.
        """
        sums = self.problem.sums(self.problem.observed, self.cells, self.squares, None)
        linear = ABSENT if self.observed_scores is None else self.observed_scores[None, :]
        return self.combinations(ResidualSums(sums.cells, ABSENT, linear))[0]


# ------------------------------------------------------------------------------
# The scores of a problem, and their covariance if the model is calibrated.


@dataclass(frozen=True, eq=False)
class _Scores:
    """Scores of Cox's model of a problem: d levels, followed by T further sums.

    Levels are residual sums Σ w r of the classes (d = 1 for two classes, else K), further sums are
    Σ w r log p. ``covariance`` (d + T, d + T) is their covariance under calibration, ``tables`` (T,
    U, K) the score tables of further sums, for U units (rows, or cells of a tally) and K labels,
    and ``observed`` (T,) their value for the observed labels. ``logits`` (n, K) are w log p where
    every one of K > 2 classes has a slope, and then takes the place of tables. A field is None
    where it is not needed. ``remark`` says how a tally's sums are coarser, "" if they are not.
    """

    covariance: FloatArray
    tables: FloatArray | None = None
    observed: FloatArray | None = None
    logits: FloatArray | None = None
    remark: str = ""


def _scores_of(problem: Problem, part: CoxPart) -> _Scores:
    if problem.n_classes == 2:
        return _of_two(problem, part)
    p, z = problem.probs, np.log(np.maximum(problem.probs, PROBABILITY_CLIP))
    w = np.ones(len(p)) if problem.weight is None else problem.weight
    covariance = score_covariance(p, z, w**2, part)
    if part == "level":
        return _Scores(covariance)
    observed = observed_scores(p, z, problem.labels, w)
    if part == "temperature":
        return _Scores(covariance, z[None], observed[1].sum(keepdims=True))
    return _Scores(covariance, None, observed[1], w[:, None] * z)


def observed_scores(p: FloatArray, z: FloatArray, labels: IntArray, w: FloatArray) -> FloatArray:
    """Return Σ w (1{y = j} − p_j) and Σ w (1{y = j} − p_j) z_j of every class j, shape (2, K).

    ``p`` and ``z`` (log-probabilities) have shape (n, K), ``labels`` (integers) and the weights
    ``w`` (n,).
    """
    k = p.shape[1]
    taken = w * np.take_along_axis(z, labels[:, None], axis=1)[:, 0]
    levels = np.bincount(labels, w, k) - w @ p
    return np.stack([levels, np.bincount(labels, taken, k) - w @ (p * z)])


def score_covariance(p: FloatArray, z: FloatArray, w: FloatArray, part: CoxPart) -> FloatArray:
    """Return the covariance of the scores of a Cox model for labels drawn from ``p`` (n, K).

    Scores are the level Σ w (1{y = j} − p_j) of each class, then the slopes with a factor log p_j.
    ``z`` (n, K) are log-probabilities and ``w`` (n,) squared weights. The shape is (K, K) for
    ``part`` "level" (no slopes), (K + 1, K + 1) for "temperature" (one slope, summed over classes),
    and (2 K, 2 K) for "vector" (a slope for each class).
    """
    levels = _covariance(p, w)
    if part == "level":
        return levels
    if part == "temperature":
        away = z - (p * z).sum(axis=1)[:, None]
        across = w @ (p * away)
        variance = np.array([[w @ (p * away**2).sum(axis=1)]])
        return np.block([[levels, across[:, None]], [across[None, :], variance]])
    across = _covariance(p, w, right=z)
    return np.block([[levels, across], [across.T, _covariance(p, w, z, z)]])


def _covariance(
    p: FloatArray, w: FloatArray, left: FloatArray | None = None, right: FloatArray | None = None
) -> FloatArray:
    """Return Σ_i w_i Cov(f_j 1{y = j}, g_k 1{y = k}) over rows, (K, K).

    Labels are drawn from ``p`` (n, K), and ``w`` (n,) are the w_i. ``left`` f and ``right`` g are
    scores (n, K), 1 where None. p_j (1 − p_j) is computed as p_j times the sum of the other
    probabilities, so that confident predictions keep their digits.
    """
    f = p if left is None else left * p
    g = p if right is None else right * p
    apart = -(f * w[:, None]).T @ g
    if left is None and right is None:
        others = -apart
    else:
        both = f if right is None else f * right
        others = (both * w[:, None]).T @ p
    np.fill_diagonal(others, 0.0)
    np.fill_diagonal(apart, others.sum(axis=1))
    return np.asarray(apart)


def _of_two(problem: Problem, part: CoxPart) -> _Scores:
    """Return the scores for two classes: the level Σ w (y − p) of the event, and slopes with log p.

    They need only sums that tallies keep as well. ``problem`` has the rows or the tally. ``part``
    is "level" for no slopes, or "vector" for slopes of both classes. The :class:`_Scores` has their
    covariance under calibration, score tables and observed sums; for "level" only the variance (1,
    1).
    """
    level = float(problem.variance_of(Cells.whole(problem))[0])
    if part == "level":
        return _Scores(np.array([[level]]))
    cut = partial(np.maximum, PROBABILITY_CLIP)
    first, second = (
        problem.linear("log p", lambda p: np.column_stack([np.log(cut(p[:, 0])), 0.0 * p[:, 0]])),
        problem.linear("log p", lambda p: np.column_stack([0.0 * p[:, 1], np.log(cut(p[:, 1]))])),
    )
    slopes = [term.table[:, 0] - term.table[:, 1] for term in (first, second)]
    across = float(problem.variance @ (slopes[0] * slopes[1]))
    covariance = np.array(
        [
            [level, first.covariance, second.covariance],
            [first.covariance, first.variance, across],
            [second.covariance, across, second.variance],
        ]
    )
    tables, observed = np.stack([first.table, second.table]), [first.observed, second.observed]
    return _Scores(covariance, tables, np.array(observed), remark=first.remark)


def whitening(covariance: FloatArray) -> tuple[FloatArray, int]:
    """Return (R, rank) with R V Rᵀ = 1 on the range of the covariance V; R has shape (rank, T).

    ``covariance`` is V, (T, T). The rank is taken from the correlation matrix, so that scores of
    different scales count equally.
    """
    scale = np.sqrt(np.maximum(np.diag(covariance), 0.0))
    scale[scale == 0.0] = 1.0
    values, vectors = np.linalg.eigh(covariance / np.outer(scale, scale))
    kept = values > RANK * values.max()
    return (vectors[:, kept] / np.sqrt(values[kept])).T / scale, int(kept.sum())


def standardised(covariance: FloatArray, d: int, nothing: float) -> FloatArray:
    """Return the matrix that standardises d levels, and K slopes given the levels, (d + K, d + K).

    ``covariance``, same shape, is the covariance of levels and slopes, levels first; slope k is
    adjusted for the level of its own class. The matrix times the vector of levels and slopes has
    entries of variance 1. Its rows are 0 where a component cannot vary: variances up to ``nothing``
    count as 0.
    """
    basis = np.zeros_like(covariance)
    for row in range(len(covariance)):
        level = min(row, d - 1) if row < d else min(row - d, d - 1)
        variance = covariance[level, level]
        if variance <= nothing:
            continue
        if row < d:
            basis[row, row] = variance**-0.5
            continue
        along = covariance[row, level] / variance
        left = covariance[row, row] - along * covariance[row, level]
        if left > 1e-9 * covariance[row, row]:  # of equal predictions only rounding is left
            basis[row, row] = left**-0.5
            basis[row, level] = -along * left**-0.5
    return basis


def _rare_class(problem: Problem) -> str | None:
    """Return in words why the χ² law is inaccurate for a problem, or None if it is not.

    It is inaccurate where Σ p (1 − p) of a class is small; the reason names the class with the
    smallest sum.
    """
    p = problem.probs
    w = np.ones(len(p)) if problem.mass is None else problem.mass
    each = p * (1.0 - p)
    sums, squares = w @ each, (w * (1.0 if problem.weight is None else problem.weight)) @ each
    expected = np.divide(sums**2, squares, out=np.full(sums.size, np.inf), where=squares > 0.0)
    j = int(expected.argmin())
    if expected[j] >= LEAST_EXPECTED:
        return None
    names = getattr(problem.data, "class_name", str)
    return (
        f"class {names(j)} hardly occurs (Σ p (1 − p) = {expected[j]:.2g}, it takes "
        f"{LEAST_EXPECTED:g} for every class)"
    )
