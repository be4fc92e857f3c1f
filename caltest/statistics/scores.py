"""Proper scores, and other functions of single labels: errors of items with votes, wealth of bets.

:class:`BrierScore`, :class:`LogScore` and :class:`SphericalScore` are two-sided tests around their
expectation under calibration; :class:`ScoreGap` is the same in standard deviations.
:class:`IndividualError` is of items with several votes, :class:`EValue` is the wealth of bets.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from typing import ClassVar, Literal

import numpy as np

from caltest._base import FloatArray, IntArray
from caltest._base.arrays import one_of
from caltest.data import Predictions
from caltest.data.labels import Votes
from caltest.errors import StatisticError
from caltest.nulls import RedrawLabels, Scheme, Shortcut
from caltest.nulls import bets as mixture
from caltest.nulls.bets import STATIC
from caltest.nulls.lanes import Seed
from caltest.nulls.laws import AsymptoticNull, markov, normal
from caltest.read.arguments import read_arguments
from caltest.statistics.prepared import LabelStatistic, Statistic, SumStatistic, rows_of
from caltest.statistics.problem import LinearTerm, Problem, ResidualSums
from caltest.statistics.rows import RowProblem

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
    """Sum of a proper score with fixed predictions: null_mean + Σ w (s − E s) / divisor.

    s is the score of a row, w its weight, and E s the expectation for labels drawn from the
    predictions. With the total weight as ``divisor`` and the expected mean score as ``null_mean``
    it is the mean score; with the standard deviation of the sum and 0, a z value.
    """

    divisor: float
    null_mean: float = field(kw_only=True)

    @classmethod
    def of(cls, problem: Problem, term: LinearTerm, divisor: float, mean: float) -> ScoreSum:
        """Return mean + Σ w (s − E s) / divisor as a function of labels; s scores, w weights.

        ``problem`` has the rows or a tally. ``term``, a :class:`LinearTerm`, has the scores under
        every label, with variance and covariance of their sum under calibration. With the total
        weight as ``divisor`` and the expected mean score as ``mean`` it is the mean score. The
        normal law has the exact variance of the sum.
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
        """Fourth moments of scores over their squared variance, Σ_i E a_i⁴ / (Σ_i E a_i²)².

        a_i is the weighted score of a row less its expectation. This is an upper bound of the
        excess kurtosis of the sum under calibration, and by Cauchy's inequality of the squared
        skewness. It is small where the normal law is accurate; O(n K) for n rows and K classes.
        """
        assert self.tables is not None
        probs = self.problem.probs
        away = np.square(np.where(probs > 0.0, self.tables[0], 0.0))
        return float((probs * away**2).sum() / (probs * away).sum() ** 2)


def _deviation(term: LinearTerm) -> float:
    return float(np.sqrt(max(term.variance, 0.0)))  # which is 0 up to rounding where none varies


@dataclass(frozen=True, repr=False)
class _MeanScore(Statistic):
    """Base class of the mean scores (Brier, log, spherical).

    A subclass sets ``name``, "brier", "log" or "spherical", which selects the score that is
    averaged over rows.
    """

    name: ClassVar[str]

    def per_row(self, probs: object, labels: object = None) -> FloatArray:
        """Return the score of every row, shape (n,); smaller is better.

        ``probs`` and ``labels`` are as in :meth:`Predictions.of`, which raises the errors.
        """
        data = read_arguments(probs, labels, rounded=False).labelled("per_row")
        return self.of_rows(RowProblem.of(data).data)

    def of_rows(self, rows: Predictions) -> FloatArray:
        """Return the score of every row, (n,), from its probabilities and label; smaller is better.

        ``rows`` are already seen through the lens: for two classes column 0 is the event.
        """
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
    probability 0 occurs; nothing is clipped, and ``calibration_test`` and the other functions of
    the package refuse such data then.

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
    ``mean_score`` computes the mean Brier score of given labels; ``shares`` (n,) are the weights of
    the rows, summing to 1.
    """

    mean_score: ScoreSum = field(repr=False)
    shares: FloatArray = field(repr=False)

    def batch(self, labels: IntArray) -> FloatArray:
        classes = range(self.problem.n_classes)
        squares = sum(((labels == k) * self.shares).sum(axis=1) ** 2 for k in classes)
        uncertainty = _uncertainty(squares, self.shares, len(classes))
        return np.asarray(1.0 - self.mean_score.batch(labels) / uncertainty)


def _uncertainty(squares: float | FloatArray, shares: FloatArray, k: int) -> FloatArray:
    """Return the Brier score of predicting the observed shares ȳ, 1 − Σ_k ȳ_k².

    ``squares`` are Σ_k ȳ_k² and ``shares`` (n,) the weights of the rows, of sum 1; for ``k`` = 2
    classes the score is halved. The result has the shape of ``squares``. It is at least the score
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


# ------------------------------------------------------------------------------
# Individual error: squared error of the probabilities of items with several outcomes each.
#
# :class:`IndividualError` is the statistic, an unbiased estimate of Σ_k (p_k − q_k)² per item;
# :class:`ItemRedraws` simulates its null by multinomial draws.


#: Items with at least two votes from which on the closed form is the usual null.
MANY_ITEMS = 5000


@dataclass(frozen=True, repr=False)
class IndividualError(Statistic):
    """The mean squared distance of predictions from the true probabilities, item by item.

    With counts C_i of m_i ≥ 2 outcomes of item i,

    U_i = Σ_k C_ik (C_ik − 1) / (m_i (m_i − 1)) − 2 Σ_k C_ik p_ik / m_i + Σ_k p_ik²

    has the mean |q_i − p_i|², where q_i are the true probabilities of this item. The statistic is
    the mean of U_i with weights m_i − 1, which may be negative. It is 0 on average exactly if every
    item has its own probabilities right. A model that is calibrated, but gives the same probability
    to items that differ, is detected; no test on one outcome an item can do that. The squared
    distance is summed over all K classes: for two classes it is twice (q − p)².

    Outcomes are drawn anew from the prediction of their item, as for every statistic.
    ``null="asymptotic"`` is the shifted gamma distribution (Pearson III) with the exact variance
    and third moment of the statistic; it is the usual null from 5000 items on. Outcomes of an item
    must be independent draws, and raters must not be shared by items: with five raters who judge
    all of 100 items, 0.13 (correlation 0.2) to 0.20 (0.5) of 1000 right models were rejected.

    StatisticError without ``items`` (see :meth:`Predictions.of_votes`), if no item has two
    outcomes, and if every prediction is 0 or 1. O(n + I K) for each set of outcomes, with I items;
    O(I K) for the closed form.

    Parameters
    ----------
    weights : {"votes", "items"}, default "votes"
        Weights m_i − 1, which are nearly the most powerful, or 1. With equal weights the mean is an
        unbiased estimate of the error of the items: :func:`caltest.individual_error` gives it with
        an interval. Where items have 2 to 20 votes, equal weights can halve the power.

    Examples
    --------
    >>> import caltest as ct
    >>> votes = ct.Predictions.of_votes([[0.5, 0.5], [0.5, 0.5]], [[4, 0], [1, 3]])
    >>> round(ct.IndividualError()(votes), 6)
    0.25
    """

    weights: Literal["votes", "items"] = "votes"
    of_whole_vector: ClassVar[bool] = True
    of_items: ClassVar[bool] = True

    def __post_init__(self) -> None:
        one_of("weights", self.weights, ("votes", "items"))

    def prepare(self, problem: Problem) -> ItemErrors:
        data = rows_of(problem, self, weights=True)
        if data.items is None:
            raise StatisticError(
                f"{self!r} needs several outcomes of an item: Predictions.of_votes(probs, counts), "
                "or items= (--items) beside rows"
            )
        votes = Votes.of(data)
        size = votes.size
        if not (size >= 2).any():
            raise StatisticError(
                f"{self!r} needs items with two outcomes or more, and every item has one: ask "
                "calibration_test without it whether probabilities are right on average"
            )
        weight = np.where(size >= 2, size - 1.0 if self.weights == "votes" else 1.0, 0.0)
        weight = weight if votes.weights is None else weight * votes.weights
        weight = weight / weight.sum()
        variance, third = null_moments(votes.probs, size, weight)
        if not variance > 1e-24:
            raise StatisticError(
                f"{self!r} is undefined: every prediction is 0 or 1, so a calibrated model has one "
                "outcome only"
            )
        single = int((size == 1).sum())
        left = f"{single} of {size.size} items have one outcome, and are left out here"
        return ItemErrors(
            problem, votes.probs, size, votes.of_row, weight,
            null_mean=0.0, laws={"asymptotic": partial(pearson, variance, third)},
            usual_null="asymptotic" if (size >= 2).sum() >= MANY_ITEMS else None,
            remark=left * (single > 0),
        )  # fmt: skip


@dataclass(frozen=True, eq=False)
class ItemErrors(LabelStatistic):
    """Weighted mean of the unbiased squared errors of I items with votes, with fixed predictions.

    ``probs`` (I, K) are the predictions of the items, ``size`` (I,) their numbers of votes and
    ``weight`` (I,) the weights, which sum to 1; ``of_row`` (n,) is the index of the item of each
    row. An item's error is an unbiased estimate of Σ_k (p_k − q_k)², q its true probabilities.
    """

    probs: FloatArray = field(repr=False)
    size: IntArray = field(repr=False)
    of_row: IntArray = field(repr=False)
    weight: FloatArray = field(repr=False)

    def of_counts(self, counts: IntArray) -> float:
        """Return the weighted mean of the item errors for ``counts`` of votes (I, K), a float.

        There are I items and K classes.
        """
        return float(self.weight @ unbiased_errors(self.probs, counts))

    def of_labels(self, labels: IntArray) -> float:
        k = self.probs.shape[1]
        counts = np.bincount(self.of_row * k + labels, minlength=self.probs.size)
        return self.of_counts(counts.reshape(-1, k))

    def redraws(self, scheme: Scheme, factor: float = 1.0) -> Shortcut:
        if isinstance(scheme, RedrawLabels) and factor == 1.0:
            return ItemRedraws(self)
        return super().redraws(scheme, factor)


@dataclass(frozen=True, eq=False)
class ItemRedraws:
    """Resampler of an item statistic: the votes of each item are one multinomial draw.

    They are drawn from the item's prediction, at a cost that does not grow with the number of
    votes. ``statistic`` is evaluated on the counts of votes, (I, K) for I items and K classes.
    """

    statistic: ItemErrors

    def replicates(self, seed: Seed, first: int, count: int) -> FloatArray:
        """Return replicates ``first``, …, ``first + count − 1`` of the statistic, (count,).

        Each is its value on votes drawn from the predictions. A replicate depends on its number and
        on ``seed``, the pair of integers that keys the random stream.
        """
        some = self.statistic
        values = np.empty(count)
        for j in range(count):
            generator = np.random.default_rng([*seed, first + j])
            values[j] = some.of_counts(generator.multinomial(some.size, some.probs))
        return values


def unbiased_errors(probs: FloatArray, counts: IntArray) -> FloatArray:
    """Return the unbiased estimate of Σ_k (p_k − q_k)² of every item, (I,), from its votes.

    ``probs`` (I, K) are the predictions p of I items and ``counts`` (I, K) numbers of votes, drawn
    from their true probabilities q. Items with fewer than two votes have 0. Estimates may be
    negative.
    """
    m = counts.sum(axis=1).astype(np.float64)
    safe = np.maximum(m, 2.0)
    pairs = (counts * (counts - 1.0)).sum(axis=1) / (safe * (safe - 1.0))
    errors = pairs - 2.0 * (counts * probs).sum(axis=1) / safe + np.square(probs).sum(axis=1)
    return np.where(m >= 2.0, errors, 0.0)


def null_moments(probs: FloatArray, size: IntArray, weight: FloatArray) -> tuple[float, float]:
    """Return the variance and the third central moment of Σ w U if votes are drawn as predicted.

    ``probs`` (I, K) are predictions of I items, ``size`` (I,) their numbers of votes and ``weight``
    (I,) the w; U is the unbiased squared error of an item, whose mean is then 0. It is a mean of
    h(y, y') = 1{y = y'} − p_y − p_y' + |p|² over the pairs of votes of an item, with E h² = tr Σ²
    and, for three votes, E h h' h'' = tr Σ³, Σ the covariance of one outcome.
    """
    s2, s3, s4 = ((probs**power).sum(axis=1) for power in (2, 3, 4))
    square = s2 - 2.0 * s3 + s2**2
    cube = s3 - 3.0 * s4 + 3.0 * s3 * s2 - s2**3
    # E h³ = Σ_ab p_a p_b (c − p_a − p_b)³, c = |p|², plus the terms of the diagonal
    plain = s2**3 - 6.0 * s2**3 + 3.0 * s2 * (2.0 * s3 + 2.0 * s2**2) - 2.0 * s4 - 6.0 * s3 * s2
    away = s2[:, None] - 2.0 * probs
    third = plain + (probs**2 * ((1.0 + away) ** 3 - away**3)).sum(axis=1)
    m = np.maximum(size, 2).astype(np.float64)
    pairs, triples = m * (m - 1.0) / 2.0, m * (m - 1.0) * (m - 2.0) / 6.0
    variance = float(weight**2 @ (square / pairs))
    skew = weight**3 * (pairs * third + 6.0 * triples * cube) / pairs**3
    return variance, float(skew.sum())


def pearson(variance: float, third: float, labels: IntArray) -> AsymptoticNull:
    """Return the shifted gamma law of mean 0 with this variance and third moment.

    It is a normal law if the third moment is 0. ``labels`` are not used; a limit law is a function
    of them by protocol.
    """
    from scipy.stats import norm, pearson3

    skew = third / variance**1.5
    law = norm if abs(skew) < 1e-6 else partial(pearson3, skew)
    return AsymptoticNull(law(loc=0.0, scale=variance**0.5))


# ------------------------------------------------------------------------------
# E-values of all rows at once: the final wealth of bets against calibration.
#
# The bets are those of :class:`caltest.Monitor` without late starts, compiled in
# :mod:`caltest.nulls.bets`; an e-value E gives the p-value min(1, 1/E).


#: Larger logarithms of e-values are cut off, so that results are finite numbers.
LARGEST = 700.0


@dataclass(frozen=True, eq=False)
class _Mixture(LabelStatistic):
    """E-value with fixed predictions: the final wealth of the mixture of bets, starting from 1.

    It is a function of the labels (n,); with ``horizon`` h rows are dealt by time to h mixtures,
    and the largest wealth is divided by h.
    """

    def of_labels(self, labels: IntArray) -> float:
        h = self.data.horizon or 1
        place = np.zeros(labels.size) if self.data.times is None else self.data.times % h
        logs = []
        for j in np.unique(place):
            state, y = mixture.start(self.data.n_classes), labels[place == j]
            path = mixture.bet(self.data.probs[place == j], y, np.ones(y.size), STATIC, state)
            logs.append(path[-1])
        # The largest of h e-values, divided by h, is at most their mean, and so is one as well.
        return float(np.exp(min(max(logs) - np.log(h), LARGEST)))


@dataclass(frozen=True, repr=False)
class EValue(Statistic):
    """E-value for calibration: final wealth of bets against the null, starting from 1.

    Σ_j π_j Π_i q_j(y_i) / p_i(y_i) over fixed experts j with prior shares π_j, whose probabilities
    q_j are the predictions p changed by shifts, slopes, label noise, or local shifts: the mixture
    of :class:`Monitor` without late starts. With ``horizon`` h, an argument of the data, times are
    dealt to h such products, and E is the largest of them, divided by h. Its expectation under
    calibration is at most 1 at every n, so that P(E ≥ 1/α) ≤ α: the p-value is min(1, 1/E),
    ``null="betting"``, also for rows that depend on earlier ones; e-values of several data sets may
    be multiplied. It costs power. Any number of classes; rows are in the order of time.
    StatisticError for tallies, and for rows of equal time with ``horizon``. O(n K). Values are cut
    off at e⁷⁰⁰. Rows that are predicted with certainty are no bets. Shafer, JRSS A 184, 2021; Vovk
    & Wang, Annals of Statistics 49, 2021.

    Examples
    --------
    >>> round(EValue()([0.9, 0.8, 0.95, 0.3, 0.1, 0.6, 0.99], [0, 1, 0, 1, 0, 0, 1]), 4)
    2.0145
    """

    essential = 0

    def prepare(self, problem: Problem) -> LabelStatistic:
        rows = rows_of(problem, self)
        if rows.times is not None and np.unique(rows.times).size < rows.n:
            raise StatisticError(
                f"{self!r} with horizon= bets on one row of each time: rows of one time may depend "
                "on each other"
            )
        return _Mixture(problem, laws={"betting": markov}, usual_null="betting")
