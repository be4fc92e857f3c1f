"""Individual error: squared error of the probabilities of items with several outcomes each.

:class:`IndividualError` is the statistic, an unbiased estimate of Σ_k (p_k − q_k)² per item;
:class:`ItemRedraws` simulates its null by multinomial draws.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from typing import ClassVar, Literal

import numpy as np

from caltest._base import FloatArray, IntArray
from caltest._base.arrays import one_of
from caltest.data.labels import Votes
from caltest.errors import StatisticError
from caltest.nulls import RedrawLabels, Scheme, Shortcut
from caltest.nulls.lanes import Seed
from caltest.nulls.laws import AsymptoticNull
from caltest.statistics.prepared import LabelStatistic
from caltest.statistics.problem import Problem
from caltest.statistics.statistic import Statistic, rows_of

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
    """Weighted mean of the unbiased item errors U_i with fixed predictions.

    ``probs`` (I, K) are the predictions of I items, ``size`` (I,) their numbers of votes and
    ``weight`` (I,) sums to 1.
    """

    probs: FloatArray = field(repr=False)
    size: IntArray = field(repr=False)
    of_row: IntArray = field(repr=False)
    weight: FloatArray = field(repr=False)

    def of_counts(self, counts: IntArray) -> float:
        """Return the value for counts of votes (I, K): I items, K classes."""
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
    """Resampler for items: one multinomial draw of the votes of each item.

    Its cost does not grow with the number of votes.
    """

    statistic: ItemErrors

    def replicates(self, seed: Seed, first: int, count: int) -> FloatArray:
        """Return replicates ``first``, …, ``first + count − 1``, (count,).

        Blocks change no number.
        """
        some = self.statistic
        values = np.empty(count)
        for j in range(count):
            generator = np.random.default_rng([*seed, first + j])
            values[j] = some.of_counts(generator.multinomial(some.size, some.probs))
        return values


def unbiased_errors(probs: FloatArray, counts: IntArray) -> FloatArray:
    """Return the unbiased squared error U_i of every item, (I,), from its votes.

    ``probs`` (I, K) are predictions and ``counts`` (I, K) numbers of votes. Items with fewer than
    two votes have 0.
    """
    m = counts.sum(axis=1).astype(np.float64)
    safe = np.maximum(m, 2.0)
    pairs = (counts * (counts - 1.0)).sum(axis=1) / (safe * (safe - 1.0))
    errors = pairs - 2.0 * (counts * probs).sum(axis=1) / safe + np.square(probs).sum(axis=1)
    return np.where(m >= 2.0, errors, 0.0)


def null_moments(probs: FloatArray, size: IntArray, weight: FloatArray) -> tuple[float, float]:
    """Return the variance and the third moment of Σ w U if every vote is a draw of its prediction.

    U is a mean of h(y, y') = 1{y = y'} − p_y − p_y' + |p|² over the pairs of votes of an item, with
    E h² = tr Σ² and, for three votes, E h h' h'' = tr Σ³, Σ the covariance of one outcome.
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
    """Return the shifted gamma law of mean 0 with these moments, or a normal law for no skew."""
    from scipy.stats import norm, pearson3

    skew = third / variance**1.5
    law = norm if abs(skew) < 1e-6 else partial(pearson3, skew)
    return AsymptoticNull(law(loc=0.0, scale=variance**0.5))
