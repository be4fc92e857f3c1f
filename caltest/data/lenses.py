"""Lenses: which probabilities are assessed, and the default lens.

A lens maps predictions to the induced problem that a statistic sees: :class:`TopK`,
:class:`OneVsRest`, :class:`Partition`, :class:`Cumulative`, :class:`Canonical`. :class:`Aligned`
shifts the levels of cross-validation folds; :func:`memorises` detects models that learned groups.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import chain
from typing import ClassVar, Literal

import numpy as np

from caltest._base import FloatArray, IntArray
from caltest._base.arrays import codes, is_whole, largest, whole
from caltest._base.written import Written, name_of
from caltest.data.predictions import NamedClasses, Predictions
from caltest.errors import StatisticError
from caltest.results import FoldSummary

#: Turns labels, of shape (…, n), into the labels of the induced problem.
Relabelling = Callable[[IntArray], IntArray]


#: What a lens looks at: one event, the top class, the largest probabilities, all classes one by
#: one, or the whole vector.
Subject = Literal["event", "top", "ranks", "classes", "vector"]


class Lens(ABC, Written):
    """Base class of lenses: which probabilities of a prediction are assessed.

    Called on predictions, a lens returns the induced problem: predictions and outcomes of the
    quantity it looks at, such as confidence and correctness of the top class.
    """

    @abstractmethod
    def __call__(self, data: Predictions) -> Predictions:
        """Return the induced problem as Predictions, made with ``dataclasses.replace``.

        It has the predictions (n, J) of the J induced classes and the labels 0 … J − 1 among them.
        ``data`` are the predictions of all classes.
        """

    @property
    def subject(self) -> Subject:
        """Kind of question: "event", "top", "ranks", "classes" or "vector".

        "event" is one probability of two, "top" the confidence, "ranks" the k largest predictions,
        "classes" groups of classes and "vector" all probabilities.
        """
        return "vector"

    def components(self, data: NamedClasses) -> tuple[str, ...]:
        """Return the names of the induced classes; for two classes the name of the event alone.

        Induced classes are those among which the lens looks, such as "top class", or "class 3" and
        others. ``data`` are predictions, before the lens is applied, or a tally that keeps names of
        classes.
        """
        assert isinstance(data, Predictions)  # of a tally, whose lenses name classes themselves
        return _names(self(data))

    def relabelling(self, data: Predictions) -> Relabelling:
        """Return the function from labels to labels behind the lens, with predictions fixed.

        It maps labels (n,) of ``data`` to induced labels (n,). By default the lens is applied once
        for each class, which is right for a lens that looks at every row separately. StatisticError
        for a lens that selects or moves rows.
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
    """Return the induced labels (n,) of ``labels`` (n,): entry (i, y_i) of ``table`` (n, K)."""
    return table[np.arange(table.shape[0]), labels]


#: What verbs accept: a lens, a function, or None for the usual one.
LensLike = Lens | Callable[[Predictions], Predictions]


@dataclass(frozen=True, repr=False)
class TopK(Lens):
    """The k largest predictions: can the ranking's probabilities be believed?

    Induced classes 0 … k−1 are the ranks, class k is "none of them" (Vaicenavicius et al. 2019,
    Example 2 iii). ``TopK(1)`` assesses the confidence of the predicted class, as Guo et al. (2017)
    define calibration. Equal predictions are ranked by class index, the
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
        """Return the classes of the k largest predictions of every row, largest first, (n, k).

        k is the number of this lens; of equal predictions the class with the smaller number comes
        first.
        """
        ranked = np.empty((data.n, self.k), dtype=np.int64)
        remaining = data.probs if self.k == 1 else data.probs.copy()
        for rank in range(self.k):
            ranked[:, rank] = remaining.argmax(axis=1)
            if rank + 1 < self.k:
                remaining[np.arange(data.n), ranked[:, rank]] = -1.0
        return ranked


def _rank_of(ranked: IntArray, labels: IntArray) -> IntArray:
    """Return the place, 0 to k, of the labels among the classes ``ranked`` (n, k); k for none.

    ``labels`` are (n,), or (B, n) for B replicates, and so is the result.
    """
    if ranked.shape[1] == 1:
        return (labels != ranked[:, 0]).astype(np.int64)
    hit = ranked == labels[..., None]
    return np.where(hit.any(axis=-1), hit.argmax(axis=-1), ranked.shape[1]).astype(np.int64)


def _is_not(c: int, labels: IntArray) -> IntArray:
    """Return 0 where a label is class ``c`` and 1 elsewhere, same shape as ``labels``."""
    return (labels != c).astype(np.int64)


def _two_class(data: Predictions, chosen: IntArray | int, labels: IntArray) -> Predictions:
    """Return the binary problem "the chosen class occurs (0) or not (1)".

    ``chosen`` is a class for each row (n,), or one for all; ``labels`` (n,) are the outcomes 0 and
    1. Induced class 0 is the chosen class; the design of ``data`` is kept.
    """
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
    """Return predictions with the probabilities and labels of the problem behind a lens.

    ``probs`` is (n, J), for J induced classes, and ``labels`` (n,) are among these. ``data`` are
    the predictions before the lens, whose design is kept.
    """
    fewer = probs.shape[1] < data.n_classes
    merged = max(data.merged, data.n_classes) if fewer else data.merged
    return replace(
        data, probs=probs, labels=labels, classes=None, outcome="", induced=True, merged=merged
    )


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
        """Return the members of each group as text; for two groups, of the first alone.

        ``data`` are predictions, or a tally that keeps names of classes.
        """
        names = [", ".join(map(data.class_name, group)) for group in self._numbered(data)]
        return tuple(names[: 1 if len(names) == 2 else None])

    def relabelling(self, data: Predictions) -> Relabelling:
        group_of = np.empty(data.n_classes, dtype=np.int64)
        for j, group in enumerate(self._numbered(data)):
            group_of[group] = j
        return partial(np.take, group_of)

    def _numbered(self, data: NamedClasses) -> list[list[int]]:
        """Return the groups of this lens as lists of class numbers, from numbers or names.

        ``data`` are predictions or a tally, which know the names. StatisticError if a class does
        not exist or is in no group.
        """
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
        return _two_class(data, c, (data.labels != c).astype(np.int64))

    def components(self, data: NamedClasses) -> tuple[str, ...]:
        return (data.class_phrase(data.class_index(self.c)),)

    def relabelling(self, data: Predictions) -> Relabelling:
        return partial(_is_not, data.class_index(self.c))


@dataclass(frozen=True, repr=False)
class Cumulative(Lens):
    """At most class k, of ordered classes: is the cumulative probability right?

    Induced class 0 is "at most class k", of probability Σ_{j ≤ k} p_j: the lens
    ``Partition([[0, …, k], [k + 1, …, K − 1]])``, with the intercept and slope of Edlinger,
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
        """Return the class names; for two classes the name of the event alone.

        ``data`` are predictions, or a tally that keeps names of classes.
        """
        return _names(data)

    def relabelling(self, data: Predictions) -> Relabelling:
        return np.asarray


def _names(induced: NamedClasses) -> tuple[str, ...]:
    """Return phrases for the induced classes, such as "class 3"; for two classes the first alone.

    ``induced`` are predictions behind a lens, or a tally of them.
    """
    n_components = 1 if induced.n_classes == 2 else induced.n_classes
    return tuple(induced.class_phrase(j) for j in range(n_components))


def _class(c: object) -> int | str:
    """Return a class ``c`` as a number or name; StatisticError if it is neither."""
    if isinstance(c, str):
        return c
    if not is_whole(c):
        raise StatisticError(f"a class is a whole number or a name, not {c!r}")
    return int(c)


# ------------------------------------------------------------------------------
# Which lens is used: the one named, a user's function, or the usual one.


@dataclass(frozen=True, repr=False)
class FunctionLens(Lens):
    """Lens made of a user's function, whose result is checked and gets the design of the rows.

    ``function`` maps predictions to the induced predictions; StatisticError if it returns anything
    else.
    """

    function: Callable[[Predictions], Predictions]

    def __call__(self, data: Predictions) -> Predictions:
        induced = self.function(data)
        if not isinstance(induced, Predictions):
            raise StatisticError(
                f"the lens {self!r} returned {type(induced).__name__}; a lens takes Predictions "
                "and returns Predictions, for instance with Predictions.of(probs, labels)"
            )
        if induced.n == data.n:
            columns = {name: vars(induced)[name] for name in ("probs", "labels", "classes")}
            fewer = induced.n_classes < data.n_classes
            merged = max(data.merged, data.n_classes) if fewer else data.merged
            return replace(data, **columns, induced=True, merged=merged)
        facts = (induced.weights, data.weights), (induced.clusters, data.clusters)
        if any(ours is None and theirs is not None for ours, theirs in facts):
            raise StatisticError(
                f"the lens {self!r} picks rows and loses their weights or clusters: pick them with "
                "data.take(rows)"
            )
        return replace(induced, induced=True)

    def __repr__(self) -> str:
        return name_of(self.function)


@dataclass(frozen=True, repr=False)
class Aligned(Lens):
    """Lens for cross-validated predictions: every fold is shifted to the mean prediction of all.

    ``lens`` is the plain lens. ``shifts`` (F, K) are added to the log-probabilities, for F folds
    and the K classes that the lens leaves; they are computed from all rows of all folds. Without
    them, a fold with more events would have lower predictions, because its rows were left out of
    the training data of its model. ``summary`` (a FoldSummary) has the sizes of the folds and by
    how much they differ, for results.
    """

    lens: Lens
    shifts: FloatArray = field(compare=False)
    summary: FoldSummary = field(compare=False)

    @classmethod
    def of(cls, lens: Lens, data: Predictions) -> Aligned:
        """Return the plain lens with the shifts computed from all rows of the folds of ``data``.

        ``lens`` is the plain lens. StatisticError for folds of few rows, such as leave-one-out, and
        for clusters that lie in several folds.
        """
        whole = data.whole or data
        assert whole.folds is not None
        counts = np.bincount(whole.folds)
        counts = counts[counts > 0]
        if whole.n / counts.size < max(10.0, np.sqrt(whole.n) / 2.0):
            raise StatisticError(
                f"folds hold {whole.n / counts.size:.1f} rows on average: leave-one-out "
                "predictions mirror the label that was left out, and no test holds its level on "
                "them. Predict again in 5 or 10 folds (caltest.sklearn.out_of_fold)"
            )
        for column in (whole.clusters, whole.crossed):
            if column is None:
                continue
            pairs = np.unique(np.column_stack([column, whole.folds]), axis=0)
            torn = pairs[1:][pairs[1:, 0] == pairs[:-1, 0], 0]
            if torn.size:
                raise StatisticError(
                    f"the cluster of row {int(np.argmax(column == torn[0]))} has rows in several "
                    "folds: its models know labels of the same cluster. Deal whole clusters to "
                    "folds (GroupKFold) and predict again"
                )
        induced = lens(whole)
        assert induced.folds is not None
        w = np.ones(induced.n) if induced.weights is None else induced.weights
        shifts = shifts_of(induced.probs, induced.folds, w)
        summary = _summary(induced.take(w > 0.0), w[w > 0.0])
        # Whole clusters lie in one fold, so that no model has seen another row of theirs
        if induced.n_clusters is None:
            found = _memorises(induced, shifts)
            summary = replace(summary, memorised=found and induced.followup is None)
        return cls(lens, shifts, summary)

    def apart(self, data: Predictions) -> Predictions:
        """Return the predictions behind the plain lens, with their folds, before any shift.

        ``data`` are the predictions of all classes.
        """
        return self.lens(data)

    def __call__(self, data: Predictions) -> Predictions:
        induced = self.lens(data)
        assert induced.folds is not None
        probs, inside = induced.probs, largest(induced.probs) < 1.0
        if self.shifts.any():
            probs = probs.copy()
            probs[inside] = moved(probs[inside], self.shifts[induced.folds[inside]])
        return replace(induced, probs=probs, folds=None, whole=None, induced=True)

    @property
    def subject(self) -> Subject:
        return self.lens.subject

    def components(self, data: NamedClasses) -> tuple[str, ...]:
        return self.lens.components(data)

    def relabelling(self, data: Predictions) -> Relabelling:
        return self.lens.relabelling(data)

    def __repr__(self) -> str:
        return repr(self.lens)


def _memorises(induced: Predictions, shifts: FloatArray) -> bool:
    """Return whether the fold models memorise groups of rows, for any class of the problem.

    The sign is that similar predictions lie in one fold far more often than by chance
    (:func:`memorises`). ``induced`` are the predictions behind the lens, with their folds, and
    ``shifts`` (F, K) the shifts of log-probabilities of F folds and K classes that give all folds
    one mean.
    """
    assert induced.folds is not None
    fold, probs = induced.folds, induced.probs
    inside, aligned = largest(probs) < 1.0, probs.copy()
    aligned[inside] = moved(probs[inside], shifts[fold[inside]])
    classes = range(1 if induced.n_classes == 2 else induced.n_classes)
    return any(memorises(probs[:, c], aligned[:, c], fold) for c in classes)


def _summary(induced: Predictions, w: FloatArray) -> FoldSummary:
    """Return how much the event rates and mean predictions of the folds differ.

    ``induced`` are the predictions behind the lens, with their folds; ``w`` (n,) are weights > 0.
    For more than two classes it is about the most frequent one. The FoldSummary has the sizes of
    folds, the largest shift of a mean, and tests of equal means and event rates.
    """
    from scipy.special import chdtrc

    assert induced.folds is not None
    c = 0 if induced.n_classes == 2 else int((w @ induced.probs).argmax())
    p, fold = induced.probs[:, c], codes(induced.folds)
    mass, rows = np.bincount(fold, w), np.bincount(fold)
    n = mass**2 / np.bincount(fold, w**2)  # effective numbers
    v = p * (1.0 - p)
    means = np.bincount(fold, w * p) / mass
    d = means - w @ p / w.sum()
    scale = np.sqrt((w**2 * d[fold] ** 2) @ v)
    within = w @ (p - means[fold]) ** 2 / w.sum() * n.sum() / max(n.sum() - n.size, 1.0)
    noise = (w @ v / w.sum()) / np.maximum(n.sum() / n - 1.0, 1.0) ** 2
    differ = (n * d**2 / np.maximum(within + noise, 1e-300)).sum()
    return FoldSummary(
        count=n.size,
        smallest=int(rows.min()),
        largest=int(rows.max()),
        moved=float(np.abs(d).max()),
        contrast=float((w * d[fold]) @ ((induced.labels == c) - p) / max(scale, 1e-300)),
        random=float(chdtrc(n.size - 1, differ)),
    )


def default_lens(data: Predictions) -> Lens:
    """Return the default lens: the event for two classes, else the top class.

    For ``data`` that a lens has made it is all classes (Canonical).
    """
    if data.induced:  # what a lens has made is looked at as it is
        return Canonical()
    return OneVsRest(1) if data.n_classes == 2 else TopK(1)


def as_lens(lens: LensLike | None, data: Predictions) -> Lens:
    """Return a lens for the data; None gives the default lens.

    ``lens`` is a lens, or a function of predictions that returns predictions. With folds the result
    is :class:`Aligned`: every fold is shifted to the mean prediction of all. StatisticError for
    anything that is no lens.
    """
    if lens is None and data.folds is None:
        return default_lens(data)
    plain = _applicable_lens(lens.lens if isinstance(lens, Aligned) else lens, data)
    return plain if data.folds is None else Aligned.of(plain, data)


def _applicable_lens(lens: LensLike | None, data: Predictions) -> Lens:
    """Return a lens for the data; None gives the default lens, a function becomes a lens.

    ``lens`` is a lens or a function from predictions to predictions. StatisticError for anything
    else, for a function that looks at labels, and for another lens than the event beside follow-up.
    """
    if lens is None:
        return default_lens(data)
    if data.followup is not None and lens != default_lens(data):
        raise StatisticError(f"follow-up knows of its event only, so lens={lens!r} is left out")
    if isinstance(lens, Lens):
        return lens
    if not callable(lens) or isinstance(lens, type):
        raise StatisticError(f"lens must be a lens such as TopK(1) or a function, not {lens!r}")
    wrapped = FunctionLens(lens)
    swapped = replace(data, labels=(data.labels + 1) % data.n_classes)
    if not np.array_equal(wrapped(swapped).probs, wrapped(data).probs):
        raise StatisticError(
            f"the lens {wrapped!r} makes probabilities, or picks rows, by looking at the labels: "
            "no test would be valid after that"
        )
    return wrapped


# ------------------------------------------------------------------------------
# Levels of folds: predictions of several models are moved until all folds have one mean.


#: Newton steps at most, and decimals of log-odds that tell predictions apart: equal ones stay ties.
NEWTON_STEPS, DIGITS = 1000, 10


def shifts_of(probs: FloatArray, fold: IntArray, weights: FloatArray) -> FloatArray:
    """Return shifts (F, K) of log-odds that give each of F folds the mean prediction of all rows.

    a_k, row k of the result, solves Σ_{i∈k} w_i softmax(log p_i + a_k) / Σ_{i∈k} w_i = Σ w p / Σ w
    by Newton's method, with log-odds moved by at most 1 a step. Rows that are certain, and rows of
    weight 0, do not count. A fold whose mean is the common one within 1e-14, or in which no row can
    move, has a_k = 0. A class without probability in a fold is left out there. StatisticError if
    the folds cannot be aligned. O(n K²) a step, some six steps. ``probs`` is (n, K), ``fold`` (n,)
    the fold numbers of the rows and ``weights`` (n,) their weights w.
    """
    inside = (largest(probs) < 1.0) & (weights > 0.0)
    shifts = np.zeros((int(fold.max()) + 1, probs.shape[1]))
    if not inside.any():
        return shifts
    target = weights[inside] @ probs[inside] / weights[inside].sum()
    for k in np.unique(fold[inside]):
        rows = inside & (fold == k)
        p, w = probs[rows], weights[rows] / weights[rows].sum()
        possible = p.max(axis=0) > 0.0
        goal = np.where(possible, target, 0.0) / target[possible].sum()
        mean, last = w @ p, np.inf
        if np.abs(mean - goal).max() < 1e-14:
            continue
        for _ in range(NEWTON_STEPS):
            q = moved(p, shifts[k], digits=16)
            mean = w @ q
            curvature = np.diag(mean) - (w[:, None] * q).T @ q
            step = np.linalg.lstsq(curvature, goal - mean, rcond=1e-12)[0]
            size = float(np.abs(step).max())
            shifts[k] += step * min(1.0, 0.5 / max(size, 1e-300))
            if size < 1e-14 or last <= size < 1e-9:
                break
            last = size
        if np.abs(mean - goal).max() > 1e-6:
            raise StatisticError(
                "the folds cannot be aligned: classes that one model gives probability 0 are too "
                "likely for another; ask about the event or the top class, or predict again"
            )
    return shifts


def moved(probs: FloatArray, shifts: FloatArray, digits: int = DIGITS) -> FloatArray:
    """Return probabilities with log-probabilities shifted, p_ij exp(a_ij) normalised, (n, K).

    ``probs`` is (n, K), and ``shifts`` are the a, of shape (n, K) or (K,). For two classes log-odds
    are rounded to ``digits`` decimals.
    """
    with np.errstate(divide="ignore"):
        logs = np.log(probs)
    if probs.shape[1] == 2:
        from scipy.special import expit

        a = np.broadcast_to(shifts, probs.shape)
        z = np.round(logs[:, 0] - logs[:, 1] + (a[:, 0] - a[:, 1]), digits)
        return np.column_stack([expit(z), expit(-z)])
    logs = logs + shifts
    raised = np.exp(logs - largest(logs)[:, None])
    return np.asarray(raised / raised.sum(axis=1, keepdims=True))


# ------------------------------------------------------------------------------
# Detection of cross-validation models that memorise groups of rows.


#: Distances of log-odds within which two predictions are close.
WIDTHS = (1e-9, 0.001, 0.003, 0.01, 0.03, 0.1)


#: z of close pairs within folds, and partners that a row has beyond chance, above which models
#: memorise groups: true models, rounded ones, logistic regressions, nearest neighbours, forests and
#: boosting on continuous features stay below in nearly all data sets.
LEAST_Z, LEAST_PARTNERS = 4.0, 0.6


#: Folds up to which the least partners hold; more folds have fewer rows of a group each, and the
#: limit falls with their number. 1000 rows of 50 sites in 50 folds have 0.4 partners a row, and the
#: aligned tests of 600 such data sets were rejected up to 0.08 more often than fresh rows.
MANY_FOLDS = 20


#: Probabilities are cut off here before their logit is taken.
MEMORISED_CLIP = 1e-15


def memorises(raw: FloatArray, aligned: FloatArray, fold: IntArray) -> bool:
    """Return whether similar predictions lie in one fold far more often than by chance.

    They do for learners that memorise groups of rows (target encoding, rates of sites, one-hot
    columns): all rows of a group have nearly the same prediction, and each model another one.
    ``raw`` and ``aligned`` (n,) are predictions before and after alignment, ``fold`` (n,) the
    folds. O(n log n).
    """
    excess = close_pairs(raw, aligned, fold)
    least = LEAST_PARTNERS * min(1.0, MANY_FOLDS / np.unique(fold).size)
    return bool(((excess[:, 0] > LEAST_Z) & (excess[:, 1] > least)).any())


def close_pairs(raw: FloatArray, aligned: FloatArray, fold: IntArray) -> FloatArray:
    """Return (z, partners) of close pairs within folds for each of six distances, shape (6, 2).

    Two rows are close if their log-odds differ by at most 1e-9, 0.001, 0.003, 0.01, 0.03 or 0.1. N
    pairs of rows are close, M of them lie in one fold, and folds dealt at random hold a share q = Σ
    n_k (n_k − 1) / (n (n − 1)) of all pairs, for n_k rows in fold k: z = (M − N q) / √(N q (1 −
    q)), and 2 (M − N q) / n partners a row. The smaller one of raw and aligned predictions counts:
    levels of folds, such as base rates, show before alignment only, and rounded predictions after
    it only. ``raw`` and ``aligned`` (n,) are predictions before and after alignment, ``fold`` (n,)
    the folds.
    """
    n, sizes = fold.size, np.bincount(fold).astype(np.float64)
    q = float((sizes * (sizes - 1.0)).sum()) / (n * (n - 1.0))
    found = np.empty((2, len(WIDTHS), 2))
    for of_width, p in zip(found, (raw, aligned), strict=True):
        z = np.sort(log_odds(p))
        inside = [np.sort(log_odds(p[fold == k])) for k in np.flatnonzero(sizes)]
        for row, width in zip(of_width, WIDTHS, strict=True):
            pairs, together = _pairs(z, width), sum(_pairs(each, width) for each in inside)
            excess = together - pairs * q
            row[:] = excess / np.sqrt(max(pairs * q * (1.0 - q), 1.0)), 2.0 * excess / n
    return found.min(axis=0)


def log_odds(p: FloatArray) -> FloatArray:
    """Return logits of probabilities, cut off at 1e-15, same shape."""
    cut = np.clip(p, MEMORISED_CLIP, 1.0 - MEMORISED_CLIP)
    return np.log(cut) - np.log1p(-cut)


def _pairs(ordered: FloatArray, width: float) -> float:
    """Return the number of pairs of ``ordered`` numbers (n,) that differ by at most ``width``."""
    beyond = np.searchsorted(ordered, ordered + width, side="right")
    return float((beyond - np.arange(ordered.size) - 1.0).sum())
