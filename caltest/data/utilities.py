"""Utilities: what a user who acts on the probabilities gains for each class that may occur.

A utility is a function from probabilities (n, K) to a table u of shape (n, K): u[i, k] is gained in
row i if class k occurs. The action is chosen from the probabilities, so the table depends on them.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike

from caltest._base.arrays import FloatArray, IntArray, fraction, whole
from caltest._base.written import Written, name_of
from caltest.errors import StatisticError

#: What verbs accept: a utility, or a function from probabilities (n, K) to a table (n, K).
UtilityLike = Callable[[FloatArray], FloatArray]


class Utility(ABC, Written):
    """Base class of utilities: the gain in each row for each class that may occur.

    A utility is called on probabilities (n, K) and returns a table (n, K). Entry (i, k) of the
    table is the gain in row i if class k occurs.
    """

    @abstractmethod
    def __call__(self, probs: FloatArray) -> FloatArray:
        """Return utilities, shape (n, K), for probabilities (n, K)."""

    @property
    def ends(self) -> tuple[float, float]:
        """(Smallest, largest) possible utility, for any probabilities; 0 and 1 by default."""
        return 0.0, 1.0

    @property
    def in_words(self) -> str:
        """Unit of the utility in words; "" by default."""
        return ""


@dataclass(frozen=True, repr=False, eq=False)
class Costs(Utility):
    """Costs of actions: for each row the action of least expected cost is taken.

    With costs c[a, k] of action a if class k occurs, the action is argmin_a Σ_k p_k c[a, k], the
    first of equally good ones, and the utility is −c[action, k]. Doing nothing, abstaining or
    asking for a second opinion are actions like any other.

    Parameters
    ----------
    matrix : array_like of shape (A, K)
        Finite costs, one row an action, one column a class; negative costs are gains.
    actions : sequence of str, optional
        Names of the actions.

    Raises
    ------
    StatisticError
        For a matrix that is not two-dimensional or not finite, and names of another number.

    Examples
    --------
    >>> treat = Costs([[0, 4], [1, 1]], ["wait", "treat"])  # an event that is missed costs 4
    >>> treat(np.array([[0.9, 0.1], [0.5, 0.5]])).tolist()
    [[0.0, -4.0], [-1.0, -1.0]]
    """

    matrix: ArrayLike
    actions: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        try:
            matrix = np.array(self.matrix, dtype=np.float64)
        except (TypeError, ValueError) as error:
            raise StatisticError(f"costs must be numbers, one row an action: {error}") from None
        if matrix.ndim != 2 or matrix.shape[1] < 2:
            raise StatisticError(
                f"costs have shape {matrix.shape}; they take one row an action and one column a "
                "class, of which there are at least two"
            )
        for action, k in np.argwhere(~np.isfinite(matrix))[:1]:
            raise StatisticError(f"costs: action {action}, class {k} is {matrix[action, k]}")
        if self.actions and len(self.actions) != len(matrix):
            raise StatisticError(
                f"there are {len(self.actions)} names of {len(matrix)} actions: give one for each"
            )
        matrix.setflags(write=False)
        object.__setattr__(self, "matrix", matrix)
        object.__setattr__(self, "actions", tuple(self.actions))

    @staticmethod
    def threshold(t: float) -> Threshold:
        """Return the utility of acting where the probability of the event is at least ``t``.

        Its mean is the net benefit at the threshold t, in (0, 1).
        """
        return Threshold(t)

    def action(self, probs: FloatArray) -> IntArray:
        """Return the number of the action taken in each row, shape (n,), for probabilities (n, K).

        StatisticError for another number of classes than the costs have.
        """
        matrix = np.asarray(self.matrix)
        if probs.shape[1] != matrix.shape[1]:
            raise StatisticError(
                f"costs are given for {matrix.shape[1]} classes, but there are {probs.shape[1]}"
            )
        action: IntArray = (probs @ matrix.T).argmin(axis=1)
        return action

    def __call__(self, probs: FloatArray) -> FloatArray:
        return 0.0 - np.asarray(self.matrix)[self.action(probs)]

    @property
    def ends(self) -> tuple[float, float]:
        """(Smallest, largest) possible utility: minus the largest and minus the smallest cost."""
        matrix = np.asarray(self.matrix)
        return -float(matrix.max()), -float(matrix.min())

    @property
    def in_words(self) -> str:
        """Unit of the utility in words: minus the cost."""
        return "minus the cost of the action taken"

    def __repr__(self) -> str:
        return f"Costs({np.asarray(self.matrix).tolist()})"


@dataclass(frozen=True, repr=False)
class Threshold(Utility):
    """Net benefit of acting where the probability of the event (label 1) is at least t.

    Acting gains 1 for an event and loses t/(1 − t) for a non-event; its mean is the net benefit of
    Vickers & Elkin (Medical Decision Making 26, 2006). t is in (0, 1). Called on probabilities (n,
    2) it returns the gain in each row for each label, (n, 2).

    Examples
    --------
    >>> Threshold(0.2)(np.array([[0.9, 0.1], [0.5, 0.5]])).tolist()
    [[0.0, 0.0], [-0.25, 1.0]]
    """

    t: float

    @property
    def in_words(self) -> str:
        """Unit of the utility in words: the payoffs of the net benefit."""
        loss = self.t / (1.0 - self.t)
        return (
            f"net benefit, +1 for an event acted on and −{loss:.3g} (t / (1 − t)) for a non-event "
            "acted on"
        )

    def __post_init__(self) -> None:
        fraction("t", self.t)

    def action(self, probs: FloatArray) -> IntArray:
        """Return 1 where one acts and 0 elsewhere, shape (n,), for probabilities (n, 2).

        One acts where the second column is at least this threshold. StatisticError for more than
        two classes.
        """
        if probs.shape[1] != 2:
            raise StatisticError(
                f"a threshold is for two classes, not {probs.shape[1]}: pass Costs(matrix), or "
                "look through a two-class lens"
            )
        return np.asarray(probs[:, 1] >= self.t, dtype=np.int64)

    @property
    def ends(self) -> tuple[float, float]:
        """(Smallest, largest) utility of acting: −t/(1 − t) for a non-event, 1 for an event."""
        return -self.t / (1.0 - self.t), 1.0

    def __call__(self, probs: FloatArray) -> FloatArray:
        gains = np.array([-self.t / (1.0 - self.t), 1.0])
        return np.where(self.action(probs)[:, None] == 1, gains, 0.0)


@dataclass(frozen=True, repr=False)
class TopKAccuracy(Utility):
    """Utility of 1 if the class that occurs is among the k most probable ones, else 0.

    Called on probabilities (n, K) it returns a table (n, K) of 0 and 1: the gain in each row for
    each class that may occur. Among classes of equal probability the one with the smaller number
    comes first. k = 1 is the accuracy of the predicted class, and the promised utility is then the
    confidence.
    """

    k: int = 1

    def __post_init__(self) -> None:
        whole("k", self.k)

    def __call__(self, probs: FloatArray) -> FloatArray:
        return np.asarray(_ranks(probs) < self.k, dtype=np.float64)


@dataclass(frozen=True, repr=False)
class ReciprocalRank(Utility):
    """Utility of 1/r if the class that occurs is the r-th most probable one.

    Called on probabilities (n, K) it returns a table (n, K): the gain in each row for each class
    that may occur. Among classes of equal probability the one with the smaller number comes first.
    Its mean is the mean reciprocal rank.
    """

    def __call__(self, probs: FloatArray) -> FloatArray:
        return np.asarray(1.0 / (1.0 + _ranks(probs)))


def _ranks(probs: FloatArray) -> IntArray:
    """Return the rank of each class in its row, 0 the most probable, shape (n, K).

    ``probs`` is (n, K); of equal probabilities the one with the smaller number comes first.
    """
    order = np.argsort(-probs, axis=1, kind="stable")
    ranks = np.empty_like(order)
    np.put_along_axis(ranks, order, np.arange(probs.shape[1])[None, :], axis=1)
    return ranks


@dataclass(frozen=True)
class UtilityTable:
    """Utilities of n rows for each of K labels, and their expectations.

    ``gains`` is u of shape (n, K). With p the predicted probabilities, ``promised`` (n,) is Σ_k p_k
    u_k, the expected utility under calibration, and ``variance`` (n,) is Σ_k p_k (u_k − promised)².
    """

    gains: FloatArray = field(repr=False)
    promised: FloatArray = field(repr=False)
    variance: FloatArray = field(repr=False)

    @classmethod
    def of(cls, utility: UtilityLike, probs: FloatArray) -> UtilityTable:
        """Return the table of a utility for predicted probabilities (n, K): a value for each label.

        ``utility`` is a :class:`Utility` or a function from (n, K) to (n, K). StatisticError if the
        result is not a finite table of shape (n, K).
        """
        gains = np.asarray(utility(probs), dtype=np.float64)
        if gains.shape != probs.shape:
            raise StatisticError(
                f"{name_of(utility)} returned shape {gains.shape} for probabilities of shape "
                f"{probs.shape}: a utility is a table with one column a class"
            )
        for row, k in np.argwhere(~np.isfinite(gains))[:1]:
            raise StatisticError(f"{name_of(utility)}: row {row}, class {k} is {gains[row, k]}")
        promised = (probs * gains).sum(axis=1)
        variance = (probs * (gains - promised[:, None]) ** 2).sum(axis=1)
        return cls(gains, promised, variance)
