"""Lenses: which aspect of calibration is asked about.

A lens turns predictions into the predictions of an induced problem (Vaicenavicius et al. 2019,
§3.1, Example 2). Any function ``Predictions -> Predictions`` is a lens; the four here cover the
usual questions. Statistics, nulls and pictures see only the induced problem.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import chain

import numpy as np

from caltest.errors import StatisticError
from caltest.predictions import FloatArray, IntArray, Predictions

Lens = Callable[[Predictions], Predictions]


@dataclass(frozen=True)
class TopK:
    """The k largest predictions: can the ranking's probabilities be believed?

    Induced classes 0 … k−1 are the ranks, class k is "none of them" (Vaicenavicius et al. 2019,
    Example 2 iii). ``TopK(1)`` asks whether the confidence of the predicted class is right, which
    is what Guo et al. (2017) call calibration. Equal predictions are ranked by class index, the
    lower index first. O(n K) for k = 1, O(n K log K) beyond.

    Parameters
    ----------
    k : int, default 1
        How many ranks to keep, 1 ≤ k < K.

    Raises
    ------
    StatisticError
        When k is not below the number of classes.

    Examples
    --------
    >>> data = Predictions.of([[0.1, 0.3, 0.6]], [1])
    >>> TopK(2)(data).probs
    array([[0.6, 0.3, 0.1]])
    >>> TopK(2)(data).labels
    array([1])
    """

    k: int = 1

    def __post_init__(self) -> None:
        if self.k < 1:
            raise StatisticError(f"TopK needs k ≥ 1, not {self.k}")

    def __call__(self, data: Predictions) -> Predictions:
        if self.k >= data.n_classes:
            raise StatisticError(
                f"TopK({self.k}) needs more than {self.k} classes, but there are "
                f"{data.n_classes}: k must be at most {data.n_classes - 1}"
            )
        ranked = _largest(data.probs, self.k)
        rows = np.arange(data.n)
        kept = data.probs[rows[:, None], ranked]
        remaining = data.probs.copy()
        remaining[rows[:, None], ranked] = 0.0
        hit = ranked == data.labels[:, None]
        labels = np.where(hit.any(axis=1), hit.argmax(axis=1), self.k)
        probs = np.column_stack([kept, remaining.sum(axis=1)])
        return Predictions(probs, labels.astype(np.int64))

    def __repr__(self) -> str:
        return f"TopK({self.k})"


def _largest(probs: FloatArray, k: int) -> IntArray:
    if k == 1:
        return probs.argmax(axis=1)[:, None].astype(np.int64)
    return np.argsort(-probs, axis=1, kind="stable")[:, :k].astype(np.int64)


@dataclass(frozen=True)
class Partition:
    """A fixed grouping of the classes: is the probability of each group right?

    Induced class j is group j, its probability the sum over the group (Vaicenavicius et al. 2019,
    Example 2 ii). O(n K).

    Parameters
    ----------
    groups : sequence of sequences of int
        Class indices; every class belongs to exactly one group, and there are at least two.

    Raises
    ------
    StatisticError
        When a class is missing, repeated or does not exist.

    Examples
    --------
    >>> data = Predictions.of([[0.1, 0.3, 0.6]], [1])
    >>> Partition([[0, 1], [2]])(data).probs.round(3)
    array([[0.4, 0.6]])
    """

    groups: tuple[tuple[int, ...], ...]

    def __init__(self, groups: Sequence[Sequence[int]]) -> None:
        object.__setattr__(self, "groups", tuple(tuple(int(c) for c in g) for g in groups))
        members = list(chain.from_iterable(self.groups))
        if len(self.groups) < 2 or not all(self.groups):
            raise StatisticError("Partition needs at least two groups, none of them empty")
        for c in members:
            if members.count(c) > 1:
                raise StatisticError(f"Partition lists class {c} more than once")

    def __call__(self, data: Predictions) -> Predictions:
        covered = set(chain.from_iterable(self.groups))
        classes = set(range(data.n_classes))
        if covered != classes:
            missing, unknown = sorted(classes - covered), sorted(covered - classes)
            what = f"leaves out class {missing[0]}" if missing else f"names class {unknown[0]}"
            raise StatisticError(
                f"{self!r} {what}; the groups must cover the classes 0 to "
                f"{data.n_classes - 1} once each"
            )
        group_of = np.empty(data.n_classes, dtype=np.int64)
        for j, group in enumerate(self.groups):
            group_of[list(group)] = j
        probs = np.column_stack([data.probs[:, list(g)].sum(axis=1) for g in self.groups])
        return Predictions(probs, group_of[data.labels])

    def __repr__(self) -> str:
        return f"Partition({[list(g) for g in self.groups]})"


@dataclass(frozen=True)
class OneVsRest:
    """One class against all others: is the probability of this class right?

    Induced class 0 is the class, 1 is the rest. For binary data ``OneVsRest(1)`` looks at the
    probability of label 1. O(n), and O(K) more for each row that is mostly sure of the class.

    Parameters
    ----------
    c : int
        The class, 0 ≤ c < K.

    Raises
    ------
    StatisticError
        When there is no such class.

    Examples
    --------
    >>> OneVsRest(2)(Predictions.of([[0.1, 0.3, 0.6]], [1])).labels
    array([1])
    """

    c: int

    def __call__(self, data: Predictions) -> Predictions:
        if not 0 <= self.c < data.n_classes:
            raise StatisticError(
                f"OneVsRest({self.c}): there is no class {self.c}, classes run from 0 to "
                f"{data.n_classes - 1}"
            )
        chosen = data.probs[:, self.c]
        rest = 1.0 - chosen
        likely = np.flatnonzero(chosen > 0.5)  # where 1 − p would lose digits, add up the others
        others = data.probs[likely]
        others[:, self.c] = 0.0
        rest[likely] = others.sum(axis=1)
        probs = np.column_stack([chosen, rest])
        return Predictions(probs, (data.labels != self.c).astype(np.int64))

    def __repr__(self) -> str:
        return f"OneVsRest({self.c})"


@dataclass(frozen=True)
class Canonical:
    """The whole probability vector: the strictest question, and the induced problem is the problem.

    Canonical calibration implies calibration under every other lens; the reverse fails
    (Vaicenavicius et al. 2019, Example 1).
    """

    def __call__(self, data: Predictions) -> Predictions:
        return data

    def __repr__(self) -> str:
        return "Canonical()"


def apply(lens: Lens, data: Predictions) -> Predictions:
    """Look through a lens, checking that what a user's function returns is predictions."""
    induced = lens(data)
    if not isinstance(induced, Predictions):
        raise StatisticError(
            f"the lens {lens!r} returned {type(induced).__name__}; a lens takes Predictions and "
            "returns Predictions, for instance with Predictions.of(probs, labels)"
        )
    return induced
