"""Cross-fitted calibration errors: the gain of recalibration, and the loss it leaves.

:class:`VariationalError` is the gain of recalibration on held-out folds, a lower bound of the
calibration error on average; :class:`RefinementError` is the loss that remains.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import KW_ONLY, dataclass, field
from typing import ClassVar

import numpy as np

from caltest._base import FloatArray, IntArray
from caltest._base.arrays import one_of, whole
from caltest.data.facts import by_appearance
from caltest.errors import StatisticError
from caltest.recalibration import LOG_PROBABILITY_FLOOR, IsotonicRegression, Recalibration
from caltest.statistics.prepared import LabelStatistic, Statistic, rows_of
from caltest.statistics.problem import Problem
from caltest.statistics.scores import SCORES_BY_NAME

#: Recalibrated probabilities that differ by less have not moved.
UNMOVED = 1e-12


def _slope(norm: str, moves: FloatArray) -> FloatArray:
    """Return the gradient of a norm at every row of ``moves`` (n, K), same shape.

    ``norm`` is "l2", "max", "tv" or "l1"; moves of rounding size count as 0.
    """
    moves = np.where(np.abs(moves) < UNMOVED, 0.0, moves)
    if norm == "l2":
        size = np.sqrt((moves**2).sum(axis=1, keepdims=True))
        return np.asarray(moves / np.where(size == 0.0, 1.0, size))
    if norm == "max":
        largest = np.abs(moves).argmax(axis=1)[:, None]
        return np.asarray(np.sign(moves) * (np.arange(moves.shape[1]) == largest))
    return np.asarray(np.sign(moves) * (0.5 if norm == "tv" else 1.0))


@dataclass(frozen=True, eq=False)
class CrossFitted(LabelStatistic):
    """Mean over rows of a function of their cross-fitted recalibration, with fixed predictions.

    ``fold`` (n,) is the fold of every row; each is recalibrated by a map fitted on the other folds.
    """

    statistic: _CrossFitted
    fold: IntArray = field(repr=False)

    def of_labels(self, labels: IntArray) -> float:
        # Scores are those that the methods of recalibration are fitted to: log-probabilities.
        p, recalibration = self.data.probs, self.statistic.recalibration
        scores, repaired = np.log(np.maximum(p, LOG_PROBABILITY_FLOOR)), p.copy()
        for k in range(self.statistic.folds):
            inside = self.fold == k
            try:
                w = None if self.data.weights is None else self.data.weights[~inside]
                learned = recalibration._learn(scores[~inside], labels[~inside], w)
                repaired[inside] = learned(scores[inside])
            except StatisticError:  # there is no map: the predictions stay as they are
                continue
        gains = self.statistic._of_rows(p, np.maximum(repaired, LOG_PROBABILITY_FLOOR), labels)
        return float(np.average(gains, weights=self.data.weights))


@dataclass(frozen=True, repr=False)
class _CrossFitted(Statistic):
    """Base class of the cross-fitted statistics: loss, recalibration method and folds."""

    loss: str = "brier"
    _: KW_ONLY
    recalibration: Recalibration = IsotonicRegression()
    folds: int = 5
    losses: ClassVar[tuple[str, ...]] = tuple(SCORES_BY_NAME)
    essential: ClassVar[int] = 0

    def __post_init__(self) -> None:
        one_of("loss", self.loss, self.losses)
        whole("folds", self.folds, 2)
        if not isinstance(self.recalibration, Recalibration):
            raise StatisticError(
                "recalibration must be a method of caltest.recalibration such as "
                f"PlattScaling(), not {self.recalibration!r}"
            )

    def prepare(self, problem: Problem) -> CrossFitted:
        data = rows_of(problem, self, weights=True)
        alone = data.n_clusters is None
        unit = np.arange(data.n) if alone else by_appearance(data.clusters)
        count = int(unit.max()) + 1
        if count < 2 * self.folds:
            what = "rows" if alone else "clusters"
            raise StatisticError(
                f"{self!r} needs two {what} in each fold, {2 * self.folds} in all; "
                f"there are {count}"
            )
        # By a fixed seed, as redrawn labels have to meet the folds of the observed ones.
        return CrossFitted(
            problem, self, np.random.default_rng(0).permutation(count)[unit] % self.folds
        )

    @abstractmethod
    def _of_rows(self, p: FloatArray, q: FloatArray, labels: IntArray) -> FloatArray: ...


@dataclass(frozen=True, repr=False)
class VariationalError(_CrossFitted):
    """Cross-fitted variational calibration error: the gain of recalibration on held-out rows.

    With q_i the prediction p_i recalibrated by a map that is fitted on the other folds and e_i the
    outcome as a vector, the value is the mean of ∇‖q_i − p_i‖ · (e_i − p_i) for a norm, and of
    ℓ(p_i, e_i) − ℓ(q_i, e_i) for a proper loss. On average it is at most the calibration error
    E‖E[e | p] − p‖, or the divergence that belongs to ℓ, and the nearer to it the better the map:
    unlike a binned error it does not overestimate. It can be negative. StatisticError for another
    loss or method, or fewer than two rows in a fold. Berta et al., arXiv:2501.19195 (2025) and
    arXiv:2602.24230 (2026).

    Parameters
    ----------
    loss : {"tv", "l1", "l2", "max", "brier", "log", "spherical"}, default "tv"
        A norm of whole vectors, as for :class:`ECE` (for two classes ``"tv"`` is |q − p| of the
        event), or a proper loss.
    recalibration : Recalibration, default IsotonicRegression()
        A method of :mod:`caltest.recalibration`, fitted for every fold and set of labels (some
        milliseconds for 1000 rows of two classes); where it finds no map, the predictions of the
        fold stay as they are. With ``"log"`` a 0 counts as 2⁻⁵³.
    folds : int, default 5
        Rows, or clusters of them, are dealt to the folds by a fixed seed: the value depends a
        little on their order.

    Examples
    --------
    >>> forecast, rained = np.repeat([0.2, 0.8], 50), np.tile([0, 0, 0, 1, 1], 20)
    >>> round(VariationalError()(forecast, rained), 6)
    0.3
    """

    loss: str = "tv"
    losses: ClassVar[tuple[str, ...]] = ("tv", "l1", "l2", "max", *SCORES_BY_NAME)

    def _of_rows(self, p: FloatArray, q: FloatArray, labels: IntArray) -> FloatArray:
        rows = np.arange(labels.size)
        if self.loss in SCORES_BY_NAME:
            return (SCORES_BY_NAME[self.loss](p) - SCORES_BY_NAME[self.loss](q))[rows, labels]
        slope = _slope(self.loss, q - p)
        return np.asarray(slope[rows, labels] - (slope * p).sum(axis=1))


@dataclass(frozen=True, repr=False)
class RefinementError(_CrossFitted):
    """Cross-fitted refinement error: the mean loss that recalibration leaves.

    (1/n) Σ_i ℓ(q_i, y_i), with q_i as for :class:`VariationalError`, whose parameters it has but
    for the norms. It says how well predictions tell outcomes apart, whatever their calibration:
    smaller is better. Mean score = refinement error + variational error of the same loss.
    """

    def _of_rows(self, p: FloatArray, q: FloatArray, labels: IntArray) -> FloatArray:
        return SCORES_BY_NAME[self.loss](q)[np.arange(labels.size), labels]
