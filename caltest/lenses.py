"""Lenses: which aspect of calibration is asked about.

A lens turns predictions into the predictions of an induced problem (Vaicenavicius et al. 2019,
§3.1, Example 2). Any function ``Predictions -> Predictions`` is a lens; the four here cover the
usual questions. Statistics, nulls and pictures see only the induced problem.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain
from typing import ClassVar, Literal

import numpy as np

from caltest._base.checks import is_whole, whole
from caltest._base.written import Written, name_of
from caltest.errors import StatisticError
from caltest.predictions import FloatArray, IntArray, NamedClasses, Predictions

#: Turns labels, of shape (…, n), into the labels of the induced problem.
Relabelling = Callable[[IntArray], IntArray]
#: What a lens looks at: one event, the top class, the largest probabilities, all classes one by
#: one, or the whole vector.
Subject = Literal["event", "top", "ranks", "classes", "vector"]


class Lens(ABC, Written):
    """What all lenses share: called on predictions, they return those of the induced problem."""

    @abstractmethod
    def __call__(self, data: Predictions) -> Predictions:
        """Return the induced problem, made with ``dataclasses.replace``."""

    @property
    def subject(self) -> Subject:
        """What is looked at."""
        return "vector"

    def components(self, data: NamedClasses) -> tuple[str, ...]:
        """Return what the induced classes are called; of two, what the event is called."""
        assert isinstance(data, Predictions)  # of a tally, whose lenses name classes themselves
        return _names(self(data))

    def relabelling(self, data: Predictions) -> Relabelling:
        """Return the function from labels to induced labels, for predictions that stay as they are.

        Here by applying the lens once a class, which needs one that looks at every row by itself.
        """
        induced = self(data)
        backwards = self(data.take(np.arange(data.n)[::-1]))
        if induced.n != data.n or not np.array_equal(backwards.probs[::-1], induced.probs):
            raise StatisticError(
                f"the lens {name_of(self)} picks or moves rows; tests on the same draws need a "
                "lens that treats every row by itself"
            )
        every = [np.full(data.n, k, dtype=np.int64) for k in range(data.n_classes)]
        table = np.column_stack([self(replace(data, labels=k)).labels for k in every])
        return partial(_looked_up, table)


def _looked_up(table: IntArray, labels: IntArray) -> IntArray:
    return table[np.arange(table.shape[0]), labels]


#: What verbs accept: a lens, a function, or None for the usual one.
LensLike = Lens | Callable[[Predictions], Predictions]


@dataclass(frozen=True, repr=False)
class TopK(Lens):
    """The k largest predictions: can the ranking's probabilities be believed?

    Induced classes 0 … k−1 are the ranks, class k is "none of them" (Vaicenavicius et al. 2019,
    Example 2 iii). ``TopK(1)`` asks whether the confidence of the predicted class is right, which
    is what Guo et al. (2017) call calibration. Equal predictions are ranked by class index, the
    lower index first. O(n K k). StatisticError unless 1 ≤ ``k`` < K, the number of classes.

    Examples
    --------
    >>> data = Predictions.of([[0.1, 0.3, 0.6]], [1])
    >>> TopK(2)(data).probs
    array([[0.6, 0.3, 0.1]])
    """

    k: int = 1

    def __post_init__(self) -> None:
        whole("k", self.k)

    def __call__(self, data: Predictions) -> Predictions:
        if self.k >= data.n_classes:
            raise StatisticError(
                f"TopK({self.k}) needs more than {self.k} classes, but there are "
                f"{data.n_classes}: k must be at most {data.n_classes - 1}"
            )
        ranked = self._ranked(data)
        labels = _rank_of(ranked, data.labels)
        if self.k == 1:
            return _two_class(data, ranked[:, 0], labels)
        rows = np.arange(data.n)[:, None]
        others = data.probs.copy()
        others[rows, ranked] = 0.0
        probs = np.column_stack([data.probs[rows, ranked], others.sum(axis=1)])
        return _induced(data, np.minimum(probs, 1.0), labels)

    @property
    def subject(self) -> Subject:
        return "top" if self.k == 1 else "ranks"

    def components(self, data: NamedClasses) -> tuple[str, ...]:
        if self.k == 1:
            return ("top class",)
        ordinals = ["largest", "second", "third", *(f"{j}th" for j in range(4, self.k + 1))]
        return (*ordinals[: self.k], "all others")

    def relabelling(self, data: Predictions) -> Relabelling:
        return partial(_rank_of, self._ranked(data))

    def _ranked(self, data: Predictions) -> IntArray:
        """Classes of the k largest predictions of every row, shape (n, k)."""
        ranked = np.empty((data.n, self.k), dtype=np.int64)
        remaining = data.probs if self.k == 1 else data.probs.copy()
        for rank in range(self.k):
            ranked[:, rank] = remaining.argmax(axis=1)
            if rank + 1 < self.k:
                remaining[np.arange(data.n), ranked[:, rank]] = -1.0
        return ranked


def _rank_of(ranked: IntArray, labels: IntArray) -> IntArray:
    if ranked.shape[1] == 1:
        return (labels != ranked[:, 0]).astype(np.int64)
    hit = ranked == labels[..., None]
    return np.where(hit.any(axis=-1), hit.argmax(axis=-1), ranked.shape[1]).astype(np.int64)


def _is_not(c: int, labels: IntArray) -> IntArray:
    return (labels != c).astype(np.int64)


def _two_class(data: Predictions, chosen: IntArray | int, labels: IntArray) -> Predictions:
    """Make the problem "the chosen class (0) or another (1)" for a class per row."""
    probs = np.empty((data.n, 2))
    one = isinstance(chosen, int)
    probs[:, 0] = data.probs[:, chosen] if one else data.probs[np.arange(data.n), chosen]
    rest = np.subtract(1.0, probs[:, 0], out=probs[:, 1])
    sure = np.flatnonzero(rest < 1e-6)  # where 1 − p loses digits, add up the others
    others = data.probs[sure]
    others[np.arange(sure.size), np.broadcast_to(chosen, data.n)[sure]] = 0.0
    rest[sure] = others.sum(axis=1)
    return _induced(data, probs, labels)


def _induced(data: Predictions, probs: FloatArray, labels: IntArray) -> Predictions:
    return replace(data, probs=probs, labels=labels, classes=None, induced=True)


@dataclass(frozen=True, repr=False)
class Partition(Lens):
    """A fixed grouping of the classes: is the probability of each group right?

    Induced class j is group j, its probability the sum over the group (Vaicenavicius et al. 2019,
    Example 2 ii). O(n K). ``groups`` are class numbers, or names where the predictions have them;
    StatisticError when a class is missing, repeated or does not exist, or there is a single group.

    Examples
    --------
    >>> data = Predictions.of([[0.1, 0.3, 0.6]], [1])
    >>> Partition([[0, 1], [2]])(data).probs.round(3)
    array([[0.4, 0.6]])
    """

    groups: tuple[tuple[int | str, ...], ...]

    def __init__(self, groups: Sequence[Sequence[int | str]]) -> None:
        if not isinstance(groups, (list, tuple)) or not all(
            isinstance(g, (list, tuple)) for g in groups
        ):
            raise StatisticError("Partition needs lists of classes, such as [[0, 1], [2]]")
        object.__setattr__(self, "groups", tuple(tuple(_class(c) for c in g) for g in groups))
        members = list(chain.from_iterable(self.groups))
        if len(self.groups) < 2 or not all(self.groups):
            raise StatisticError("Partition needs at least two groups, none of them empty")
        for c in members:
            if members.count(c) > 1:
                raise StatisticError(f"Partition lists class {c} more than once")

    def __call__(self, data: Predictions) -> Predictions:
        groups = self._numbered(data)
        sums = [data.probs[:, group].sum(axis=1) for group in groups]
        labels = self.relabelling(data)(data.labels)
        return _induced(data, np.minimum(np.column_stack(sums), 1.0), labels)

    @property
    def subject(self) -> Subject:
        return "event" if len(self.groups) == 2 else "classes"

    def components(self, data: NamedClasses) -> tuple[str, ...]:
        """Return the members of the groups; of two groups, those of the first."""
        names = [", ".join(map(data.class_name, group)) for group in self._numbered(data)]
        return tuple(names[: 1 if len(names) == 2 else None])

    def relabelling(self, data: Predictions) -> Relabelling:
        group_of = np.empty(data.n_classes, dtype=np.int64)
        for j, group in enumerate(self._numbered(data)):
            group_of[group] = j
        return partial(np.take, group_of)

    def _numbered(self, data: NamedClasses) -> list[list[int]]:
        groups = [[data.class_index(c) for c in group] for group in self.groups]
        left_out = set(range(data.n_classes)) - set(chain.from_iterable(groups))
        if left_out:
            raise StatisticError(
                f"{self!r} leaves out class {min(left_out)}; the groups must cover the classes 0 "
                f"to {data.n_classes - 1} once each"
            )
        return groups


@dataclass(frozen=True, repr=False)
class OneVsRest(Lens):
    """One class against all others: is the probability of this class right?

    Induced class 0 is the class, 1 is the rest. For binary data ``OneVsRest(1)`` looks at the
    probability of label 1. O(n), and O(K) more for each row that is mostly sure of the class.
    ``c`` is the class, 0 ≤ c < K, or its name; StatisticError when there is no such class.

    Examples
    --------
    >>> OneVsRest(2)(Predictions.of([[0.1, 0.3, 0.6]], [1])).labels
    array([1])
    """

    c: int | str
    subject: ClassVar[Subject] = "event"

    def __post_init__(self) -> None:
        _class(self.c)

    def __call__(self, data: Predictions) -> Predictions:
        c = data.class_index(self.c)
        return _two_class(data, c, _is_not(c, data.labels))

    def components(self, data: NamedClasses) -> tuple[str, ...]:
        return (f"class {data.class_name(data.class_index(self.c))}",)

    def relabelling(self, data: Predictions) -> Relabelling:
        return partial(_is_not, data.class_index(self.c))


@dataclass(frozen=True, repr=False)
class Cumulative(Lens):
    """At most class k, of ordered classes: is the cumulative probability right?

    Induced class 0 is "at most class k", of probability Σ_{j ≤ k} p_j: the lens
    ``Partition([[0, …, k], [k + 1, …, K − 1]])``, whose intercept and slope are those of Edlinger,
    van Smeden et al., Diagnostic and Prognostic Research 6, 2022. O(n K). StatisticError
    unless 0 ≤ ``k`` < K − 1, the number of the last class.

    Examples
    --------
    >>> Cumulative(1)(Predictions.of([[0.1, 0.3, 0.6]], [1])).probs.round(3)
    array([[0.4, 0.6]])
    """

    k: int
    subject: ClassVar[Subject] = "event"

    def __post_init__(self) -> None:
        whole("k", self.k, least=0)

    def __call__(self, data: Predictions) -> Predictions:
        return self._cut(data)(data)

    def components(self, data: NamedClasses) -> tuple[str, ...]:
        return (f"class ≤ {data.class_name(self.k)}",)

    def relabelling(self, data: Predictions) -> Relabelling:
        return self._cut(data).relabelling(data)

    def _cut(self, data: Predictions) -> Partition:
        if self.k >= data.n_classes - 1:
            raise StatisticError(
                f"{self!r} is all of {data.n_classes} classes: k must be at most "
                f"{data.n_classes - 2}"
            )
        classes = list(range(data.n_classes))
        return Partition([classes[: self.k + 1], classes[self.k + 1 :]])


@dataclass(frozen=True, repr=False)
class Canonical(Lens):
    """The whole probability vector: the strictest question, and the induced problem is the problem.

    Canonical calibration implies calibration under every other lens; the reverse fails
    (Vaicenavicius et al. 2019, Example 1).
    """

    def __call__(self, data: Predictions) -> Predictions:
        return replace(data, induced=True)

    def components(self, data: NamedClasses) -> tuple[str, ...]:
        """Return the names of the classes; of two, that of the event."""
        return _names(data)

    def relabelling(self, data: Predictions) -> Relabelling:
        return np.asarray


def _names(induced: NamedClasses) -> tuple[str, ...]:
    n_components = 1 if induced.n_classes == 2 else induced.n_classes
    return tuple(f"class {induced.class_name(j)}" for j in range(n_components))


def _class(c: object) -> int | str:
    if isinstance(c, str):
        return c
    if not is_whole(c):
        raise StatisticError(f"a class is a whole number or a name, not {c!r}")
    return int(c)
