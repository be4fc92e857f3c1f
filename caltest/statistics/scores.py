"""Proper scores as estimates, and as tests of their distance from the expected score.

:class:`BrierScore`, :class:`LogScore` and :class:`SphericalScore` are two-sided tests around their
expectation under calibration; :class:`ScoreGap` is the same in standard deviations.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from typing import ClassVar

import numpy as np

from caltest._base import FloatArray, IntArray
from caltest._base.arrays import one_of
from caltest.data import Predictions
from caltest.errors import StatisticError
from caltest.nulls.laws import normal
from caltest.read.arguments import read_arguments
from caltest.statistics.prepared import LabelStatistic, SumStatistic
from caltest.statistics.problem import LinearTerm, Problem, ResidualSums
from caltest.statistics.rows import RowProblem
from caltest.statistics.statistic import Statistic, rows_of

#: Standard deviations per root of n that are rounding.
NOTHING = 1e-13


def _brier(probs: FloatArray) -> FloatArray:
    # |p − e_y|² = |p|² − 2 p_y + 1, of which two classes count one component of two.
    scale = 0.5 if probs.shape[1] == 2 else 1.0
    return scale * ((probs**2).sum(axis=1)[:, None] - 2.0 * probs + 1.0)


def _log(probs: FloatArray) -> FloatArray:
    with np.errstate(divide="ignore"):
        return -np.log(probs)


def _spherical(probs: FloatArray) -> FloatArray:
    return 1.0 - probs / np.sqrt((probs**2).sum(axis=1))[:, None]


def _rps(probs: FloatArray) -> FloatArray:
    # Σ_k (F_k − 1{y ≤ k})² over all k but the last = Σ F² − 2 Σ_{k ≥ y} F_k + K − 1 − y
    upto = np.cumsum(probs, axis=1)[:, :-1]
    later = np.cumsum(upto[:, ::-1], axis=1)[:, ::-1] - 0.5 * np.arange(upto.shape[1], 0, -1)
    return (upto**2).sum(axis=1)[:, None] - 2.0 * np.column_stack([later, np.zeros(len(later))])


#: The score of every row for every label it could have, shape (n, K); smaller is better.
SCORES_BY_NAME: dict[str, Callable[[FloatArray], FloatArray]] = {
    "brier": _brier,
    "log": _log,
    "spherical": _spherical,
    "rps": _rps,
}


@dataclass(frozen=True, eq=False)
class ScoreSum(SumStatistic):
    """Sum of a proper score with fixed predictions: null_mean + Σ w (s − expected) / divisor."""

    divisor: float
    null_mean: float = field(kw_only=True)

    @classmethod
    def of(cls, problem: Problem, term: LinearTerm, divisor: float, mean: float) -> ScoreSum:
        """Return the sum of a score; ``mean`` is its expected value under calibration.

        ``divisor`` is the total weight; the normal law has the exact variance of the sum.
        """
        law = partial(normal, mean, _deviation(term) / divisor)
        return cls(
            problem, divisor,
            scores=term.table[None], observed_scores=np.array([term.observed]), remark=term.remark,
            null_mean=mean, laws={"asymptotic": law}, min_surprises=8.0,
        )  # fmt: skip

    def of_sums(self, sums: ResidualSums) -> FloatArray:
        return np.asarray(self.null_mean + sums.linear[:, 0] / self.divisor)

    @property
    def tails(self) -> float:
        """Sum of fourth moments over the squared variance, an upper bound of the excess kurtosis.

        By Cauchy's inequality it bounds the squared skewness as well. It is small where the normal
        law is accurate; O(n K).
        """
        assert self.tables is not None
        probs = self.problem.probs
        away = np.square(np.where(probs > 0.0, self.tables[0], 0.0))
        return float((probs * away**2).sum() / (probs * away).sum() ** 2)


def _deviation(term: LinearTerm) -> float:
    return float(np.sqrt(max(term.variance, 0.0)))  # which is 0 up to rounding where none varies


@dataclass(frozen=True, repr=False)
class _MeanScore(Statistic):
    """Base class of the mean scores (Brier, log, spherical); ``name`` selects the score."""

    name: ClassVar[str]

    def per_row(self, probs: object, labels: object = None) -> FloatArray:
        """Return the score of every row, shape (n,); arguments as in :meth:`Predictions.of`."""
        data = read_arguments(probs, labels, rounded=False).labelled("per_row")
        return self.of_rows(RowProblem.of(data).data)

    def of_rows(self, rows: Predictions) -> FloatArray:
        """Return the score of every row, (n,); the rows are already seen through the lens."""
        return SCORES_BY_NAME[self.name](rows.probs)[np.arange(rows.n), rows.labels]

    def prepare(self, problem: Problem) -> ScoreSum:
        term = problem.linear(self.name, SCORES_BY_NAME[self.name])
        mass = float(problem.n if problem.mass is None else problem.mass.sum())
        return ScoreSum.of(problem, term, mass, term.promised / mass)


class BrierScore(_MeanScore):
    """Mean squared error of the probabilities, for any number of classes; smaller is better.

    (1/n) Σ_i Σ_k (p_ik − 1{y_i = k})², in [0, 2] for K > 2 classes (Brier, Monthly Weather Review
    78, 1950), and for two classes half of that, the familiar (1/n) Σ (p − y)², as in scikit-learn.
    A score measures calibration and skill together; as a test a large value speaks for
    overconfidence only, :class:`ScoreGap` looks at both sides. ``per_row`` gives the n scores that
    are averaged. O(n K) once, O(n) for each further set of labels.

    Examples
    --------
    >>> BrierScore()([0.75, 0.5], [1, 0]), BrierScore()([[0.5, 0.25, 0.25]], [0])
    (0.15625, 0.375)
    """

    name: ClassVar[str] = "brier"


class LogScore(_MeanScore):
    """Mean negative log-likelihood, for any number of classes; smaller is better.

    −(1/n) Σ_i log p_i,y_i, in nats, in [0, ∞] (Good 1952). It is infinite when a label of
    probability 0 occurs; nothing is clipped, and the verbs refuse it then.

    Examples
    --------
    >>> round(LogScore()([0.5, 0.25], [1, 0]), 6)
    0.490415
    """

    name: ClassVar[str] = "log"


class SphericalScore(_MeanScore):
    """Mean spherical score, for any number of classes; smaller is better.

    (1/n) Σ_i (1 − p_i,y_i / ‖p_i‖₂), in [0, 1]: the spherical score of Good (1971) taken from 1, so
    that 0 is best as for the other scores.
    """

    name: ClassVar[str] = "spherical"


@dataclass(frozen=True, eq=False)
class ScaledScore(LabelStatistic):
    """Scaled score with fixed predictions: 1 − mean score / score of the best constant prediction.

    The best constant prediction is the observed share of each class, so it follows the labels.
    """

    mean_score: ScoreSum = field(repr=False)
    shares: FloatArray = field(repr=False)

    def batch(self, labels: IntArray) -> FloatArray:
        classes = range(self.problem.n_classes)
        squares = sum(((labels == k) * self.shares).sum(axis=1) ** 2 for k in classes)
        uncertainty = _uncertainty(squares, self.shares, len(classes))
        return np.asarray(1.0 - self.mean_score.batch(labels) / uncertainty)


def _uncertainty(squares: float | FloatArray, shares: FloatArray, k: int) -> FloatArray:
    """Return the Brier score of predicting the observed shares, 1 − Σ_k ȳ_k².

    ``squares`` are Σ_k ȳ_k² and ``shares`` (n,) the weights of the rows, of sum 1; for two classes
    the score is halved. The result has the shape of ``squares``. It is at least the score
    of labels that are equal in all rows but the lightest, so that it is never 0.
    """
    lightest = shares[shares > 0.0].min()
    least = 2.0 * lightest * (1.0 - lightest)
    return np.asarray((0.5 if k == 2 else 1.0) * np.maximum(1.0 - squares, least))


@dataclass(frozen=True, repr=False)
class ScaledBrierScore(Statistic):
    """Scaled Brier score, the share of the uncertainty that is explained (Brier skill score, IPA).

    1 − B / B(ȳ), B the :class:`BrierScore` and B(ȳ) the score of always predicting the observed
    shares of the classes: 1 is perfect, 0 as good as knowing the shares only. Larger is better; as
    a test it is two-sided around its value under calibration, the ratio of the expected scores.
    Where all outcomes are equal, B(ȳ) is taken as if one were another; a single row is refused by a
    StatisticError. O(n K). Kattan & Gerds, Diagnostic and Prognostic Research 2, 2018.

    Examples
    --------
    >>> ScaledBrierScore()([0.75, 0.75, 0.25, 0.25], [1, 1, 0, 0])
    0.75
    """

    def prepare(self, problem: Problem) -> ScaledScore:
        data = rows_of(problem, self, weights=True)
        if data.n == 1:
            raise StatisticError(f"{self!r} compares with the shares of the classes: give two rows")
        mean_score, p = BrierScore().prepare(problem), data.probs
        w = np.ones(data.n) if data.weights is None else data.weights
        w = w / w.sum()
        # Σ_k E ȳ_k², whose variance is Σ_i w_i² p_ik (1 − p_ik).
        squares = ((w @ p) ** 2 + w**2 @ (p * (1.0 - p))).sum()
        centre = 1.0 - mean_score.null_mean / float(_uncertainty(squares, w, data.n_classes))
        return ScaledScore(problem, mean_score, w, two_sided=True, centre=centre)


@dataclass(frozen=True, repr=False)
class ScoreGap(Statistic):
    """Standardised gap between a proper score and its expectation under calibration.

    z = Σ_i (s(p_i, y_i) − e_i) / √(Σ_i v_i), where e_i and v_i are mean and variance of the score
    s(p_i, Y) if Y is drawn from p_i. Under calibration z has mean 0 and variance 1 at every n. z >
    0 means a worse score than expected, overconfident on balance; z < 0 a better one,
    underconfident. The test is two-sided. It has no power against errors that leave the mean score
    as expected.

    ``score`` is "brier", "log", "spherical", or for ordered classes "rps", the ranked probability
    score Σ_{k < K−1} (F_k − 1{y ≤ k})² with F the cumulative probabilities (Epstein, Journal of
    Applied Meteorology 8, 1969). With Brier scores and two classes z is the z of Spiegelhalter
    (Statistics in Medicine 5, 1986); for K classes e_i = 1 − ‖p_i‖² and v_i = 4 (Σ_k p_ik³ −
    ‖p_i‖⁴).

    StatisticError if the score of no row depends on its label, as when all predictions are uniform,
    or all are 0 and 1. With "log", z is infinite when a label of probability 0 occurs. O(n K) once,
    O(n) for each further set of labels.

    Examples
    --------
    >>> ScoreGap()([0.75, 0.75, 0.75], [1, 1, 1])
    -1.0
    """

    score: str = "brier"

    def __post_init__(self) -> None:
        one_of("score", self.score, SCORES_BY_NAME)

    def prepare(self, problem: Problem) -> ScoreSum:
        term = problem.linear(self.score, SCORES_BY_NAME[self.score])
        deviation = _deviation(term)
        if deviation <= NOTHING * np.sqrt(problem.n):
            raise StatisticError(
                f"{self!r} is not defined: every prediction is 0, ½ or 1 (for more classes, "
                "uniform over those it allows), so no label that can occur changes the "
                f"{self.score} score. Use CalibrationInTheLarge() or an ECE"
            )
        gap = ScoreSum.of(problem, term, deviation, 0.0)
        return replace(gap, two_sided=True, min_surprises=4.0)
