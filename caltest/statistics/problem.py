"""What statistics see: the rows of an induced problem, and the event of a two-class one."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from caltest.errors import StatisticError
from caltest.predictions import FloatArray, IntArray
from caltest.written import Written

#: ``(probs, labels) -> float``, of an induced problem.
Statistic = Callable[[FloatArray, IntArray], float]


def given(statistic: Statistic, probs: FloatArray) -> Callable[[IntArray], float]:
    """Fix the predictions of a statistic, by its own method where it has one."""
    own: Any = getattr(statistic, "given", None)
    if own is not None:
        fixed: Callable[[IntArray], float] = own(probs)
        return fixed
    return partial(statistic, probs)


def as_problem(probs: Any, labels: Any) -> tuple[FloatArray, IntArray]:
    """Return probs as rows and labels as integers.

    A 1-D array is the probability of label 1, seen as by ``OneVsRest(1)``: class 0 is label 1.

    Examples
    --------
    >>> as_problem([0.8, 0.3], [1, 0])
    (array([[0.8, 0.2],
           [0.3, 0.7]]), array([0, 1]))
    """
    rows, codes = np.asarray(probs, dtype=np.float64), np.asarray(labels, dtype=np.int64)
    return (np.column_stack([rows, 1.0 - rows]), 1 - codes) if rows.ndim == 1 else (rows, codes)


def event(probs: FloatArray, name: str) -> FloatArray:
    """Return the probability of class 0 of a two-class problem, shape (n,).

    After ``OneVsRest(c)`` that is class c, after ``TopK(1)`` that the top class is right.

    Raises
    ------
    StatisticError
        When there are more than two classes.
    """
    if probs.shape[1] != 2:
        raise StatisticError(
            f"{name} is for two classes, but there are {probs.shape[1]}: look through a two-class "
            "lens such as TopK(1) or OneVsRest(c)"
        )
    return np.ascontiguousarray(probs[:, 0])


def by_value(p: FloatArray) -> tuple[IntArray, IntArray]:
    """Return the rows by increasing p, and where each group of equal values ends."""
    order = np.argsort(p, kind="stable")
    return order, np.append(np.flatnonzero(np.diff(p[order])) + 1, p.size)


class OfLabels(ABC, Written):
    """A statistic that is evaluated by fixing the predictions first."""

    def __call__(self, probs: FloatArray, labels: IntArray) -> float:
        rows, codes = as_problem(probs, labels)
        fixed = self.given(rows)
        return float(getattr(fixed, "evaluate", fixed)(codes))

    @abstractmethod
    def given(self, probs: FloatArray) -> Any:
        """Fix the predictions: what is left is a function of the labels."""
