"""Labels in all accepted forms, the classes that they name, and validated rows.

:func:`as_rows` checks probabilities and labels together; :func:`as_labels` reads labels.
:class:`Votes` counts several outcomes of one item.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from os.path import commonprefix
from typing import TYPE_CHECKING, Literal, NamedTuple, TypedDict

import numpy as np

from caltest._base.arrays import (
    AnyArray,
    FloatArray,
    IntArray,
    as_ndarray,
    dtype_of,
    is_whole,
    names_of,
)
from caltest._base.written import first_of, several
from caltest.data.numbers import as_array, as_numbers, as_probabilities, is_text, refuse_swapped
from caltest.errors import NAMES_IN_MESSAGES, InvalidPredictionsError, Reading, in_column, nth

if TYPE_CHECKING:
    from caltest.data.predictions import Predictions


def marks(column: AnyArray) -> AnyArray:
    """Return labels or ids (n,); floats that are all whole numbers become int64.

    The label "1.0" of one file then equals "1" of another. Other columns are returned unchanged.
    """
    whole = column.dtype.kind == "f" and bool((column % 1 == 0).all())
    return column.astype(np.int64) if whole else column


def listed_classes(classes: Sequence[object] | None) -> Sequence[object] | None:
    """Return classes as they are, or as a list where one text names several, "a,b" or "0,…,9".

    Whole numbers in a text become integers, and "…" or "..." between two of them stands for the
    numbers in between. None stays None, and a text without commas stays as it is.
    """
    if not isinstance(classes, str) or "," not in classes:
        return classes
    names = [name.strip() for name in classes.replace("...", "…").split(",")]
    if len(names) == 3 and names[1] == "…" and names[0].isdecimal() and names[2].isdecimal():
        return list(range(int(names[0]), int(names[2]) + 1))
    return list(map(int, names)) if all(name.isdecimal() for name in names) else names


def class_names(classes: Sequence[object] | None, n_classes: int) -> tuple[str, ...] | None:
    """Return the names of ``n_classes`` classes as distinct texts, or None where none are given.

    InvalidPredictionsError for another number of names, for equal ones, and for a single one.
    """
    if classes is None:
        return None
    names = tuple(map(str, classes))
    if len(set(names)) != len(names):
        raise InvalidPredictionsError(f"classes holds a name twice: {', '.join(names)}")
    if len(names) == 1:
        raise InvalidPredictionsError(
            f"there is a single class, {names[0]!r}: a one-class problem has nothing to test"
        )
    if len(names) != n_classes:
        raise InvalidPredictionsError(
            f"classes has {len(names)} names but probs describes {n_classes} classes"
        )
    return names


def column_classes(table: object, labels: AnyArray) -> list[object] | None:
    """Return the classes that the columns of a table are named after; None if they are not.

    ``table`` is a data frame or mapping with a column of probabilities for each class. ``labels``
    (n,) have to be such names, with or without a common prefix of the columns. Names that are
    numbers are returned as integers.
    """
    names = names_of(table) or []
    if all(str(name).isdecimal() for name in names):
        names = [int(str(name)) for name in names]
    if len(names) < 2 or names == list(range(len(names))) or labels.ndim != 1:
        return None
    if is_text(labels):
        words = set(labels.astype(str).tolist())
        return next((way for way in (names, bare_ends(names)) if matches(way, words)), None)
    return names if set(np.unique(labels).tolist()) <= set(names) else None


def bare_ends(names: Sequence[object]) -> list[object]:
    """Return names without their common prefix, such as ["cat", "dog"] for p_cat and p_dog."""
    whole = list(map(str, names))
    head = re.sub(r"[^_. -]*$", "", commonprefix(whole))  # noqa: RUF071 (names are no paths)
    return [name[len(head) :] for name in whole]


def matches(names: Sequence[object], words: Iterable[object]) -> dict[str, str]:
    """Return, for each of the ``words``, the name it stands for; {} if a word is none of the names.

    Case and blanks are ignored where names stay distinct without them. For names "Yes" and "No" and
    the word "yes" it is {"yes": "Yes"}.
    """
    columns, labels = list(map(str, names)), sorted({*map(str, words)})
    if {*labels} <= {*columns}:
        return {word: word for word in labels}
    of = {_folded_name(name): name for name in columns}
    known = len(of) == len(columns) and all(_folded_name(word) in of for word in labels)
    return {word: of[_folded_name(word)] for word in labels} if known else {}


def _folded_name(name: str) -> str:
    return re.sub(r"[\s_]+", "_", name.strip().casefold())


def refuse_reordered(names: Sequence[object], classes: Sequence[object]) -> None:
    """Raise InvalidPredictionsError if ``classes`` are the column names in another order.

    ``names`` are the names of the columns of probabilities.
    """
    listed = list(map(str, classes))
    if list(names) == list(range(len(names))):  # columns that nobody has named
        return
    for way in (list(map(str, names)), bare_ends(names)):
        meant = matches(way, listed)
        if len(way) == len(listed) == len({*meant.values()}) and [*map(meant.get, listed)] != way:
            raise InvalidPredictionsError(
                f"classes= (--classes) lists {', '.join(listed)}, but the columns of probabilities "
                f"are called by these names in another order: {', '.join(map(str, way))}",
                [Reading({"classes": ",".join(map(str, way))})],
            )


def as_labels(array: AnyArray, n_classes: int, classes: Sequence[object] | None) -> IntArray:
    """Return labels 0 … K−1, shape (n,), from numbers, names or one-hot rows.

    ``array`` holds the labels, (n,) or (n, K), and ``n_classes`` is K. ``classes`` lists the labels
    in the order of the columns of probabilities; without it labels are 0 … K−1.
    InvalidPredictionsError names the first row and value that is no label.
    """
    if array.ndim == 2:
        return _from_one_hot(array, n_classes)
    counted = classes is not None and list(classes) == list(range(n_classes))
    if classes is not None and (is_text(array) or (all(map(is_whole, classes)) and not counted)):
        return _from_names(array, classes)
    if is_text(array):
        words, counts = np.unique(array.astype(str), return_counts=True)
        if n_classes == 2 and words.size <= 2:
            rarest = words[np.argsort(counts, kind="stable")].tolist()
            calls = " or ".join(f"labels == {w!r}" for w in rarest)
            raise InvalidPredictionsError(
                f"labels are text{in_column()}: of one column of probabilities pass {calls}, "
                "whichever is the event that is predicted; of two pass classes=[…] (--classes) in "
                f"the order of the columns, which scikit-learn sorts: classes={words.tolist()}",
                [Reading({"pos_label": word}, f"{word} is the event") for word in rarest],
            )
        raise _unnamed(array, words.tolist(), n_classes)
    numbers = as_numbers(array, "labels")
    for row in np.flatnonzero(numbers != np.rint(numbers))[:1]:
        raise InvalidPredictionsError(
            f"labels{in_column()}: {nth(row)} is {numbers[row]:.6g}; labels are whole numbers from "
            f"0 to {n_classes - 1}"
        )
    for row in np.flatnonzero((numbers < 0) | (numbers >= n_classes))[:1]:
        advice, remedies = "", []
        if numbers.min() >= 1 and numbers.max() == n_classes:
            advice = f". They seem to run from 1: pass {counting(1, n_classes)}"
            remedies = [Reading({"classes": f"1,…,{n_classes}"})]
        elif n_classes == 2 and set(np.unique(numbers)) <= {-1.0, 1.0}:
            advice = ". They seem to be −1 and 1: pass labels > 0, or pos_label=1"
            remedies = [Reading({"pos_label": "1"})]
        raise InvalidPredictionsError(
            f"labels{in_column()}: {nth(row)} is {numbers[row]:.0f}, but with {n_classes} classes "
            f"labels run from 0 to {n_classes - 1}{advice}",
            remedies,
        )
    return numbers.astype(np.int64)


def _unnamed(array: AnyArray, words: list[str], n_classes: int) -> InvalidPredictionsError:
    """Return the error for text labels with neither ``classes`` nor an event named.

    ``array`` (n,) are the labels, ``words`` the distinct ones, ``n_classes`` the number of columns.
    It is to be raised.
    """
    order, remedies = "", list[Reading]()
    table = NAMES_IN_MESSAGES.get()
    columns = table.columns if table else []
    if len(columns) > 1 and not all(name[-1:].isdecimal() for name in columns):
        order = f": {first_of(columns)}"  # whose order words cannot be sorted into
    elif len(words) == n_classes <= 20:
        order = f", which scikit-learn sorts: classes={words}"
        remedies = [Reading({"classes": ",".join(words)})]
    return InvalidPredictionsError(
        f"labels are text{in_column()} ({', '.join(map(repr, words[:5]))}, …): pass classes=[…] "
        f"(--classes), the label values in the order of the columns of probs{order}",
        remedies,
    )


def counting(low: int, high: int) -> str:
    """Return text for messages on how to pass labels from ``low`` to ``high``.

    It is "classes=range(low, high + 1)" with the option of the command line.
    """
    return f"classes=range({low}, {high + 1}) (--classes {low},…,{high})"


def _from_names(array: AnyArray, classes: Sequence[object]) -> IntArray:
    """Return the indices into ``classes``, (n,), of labels that are texts or numbers.

    ``array`` (n,) holds the labels. InvalidPredictionsError names the first row whose label is no
    class.
    """
    text = is_text(array)
    kind: type[str] | type[float] = str if text else float
    index = {kind(str(c)): i for i, c in enumerate(classes)}
    values, inverse = np.unique(array.astype(str) if text else array, return_inverse=True)
    if text:
        index |= {word: index[name] for word, name in matches(classes, values).items()}
    for place, value in enumerate(values):
        if kind(value) not in index:
            row = int(np.argmax(inverse.ravel() == place))
            name, advice, remedies = repr(str(value)) if text else f"{value:g}", "", []
            shifted = [] if text else [int(str(c)) - 1 for c in classes]
            if values.dtype.kind in "biuf" and set(values) <= set(shifted):
                low, high = min(shifted), max(shifted)
                advice = f". They seem to run from {low}: pass {counting(low, high)}"
                remedies = [Reading({"classes": f"{low},…,{high}"})]
            if text and len(values) == len(classes):
                advice = f". Are {', '.join(map(str, values))} other words for these? Then list "
                advice += "them in this order with classes=[…] (--classes)"
            raise InvalidPredictionsError(
                f"labels{in_column()}: {nth(row)} is {name}, which is not one of the classes "
                f"{', '.join(map(str, classes))}{advice}",
                remedies,
            )
    return np.array([index[kind(v)] for v in values], dtype=np.int64)[inverse.ravel()]


def _from_one_hot(array: AnyArray, n_classes: int) -> IntArray:
    """Return the index of the 1 in each row of a one-hot ``array`` (n, K), (n,).

    InvalidPredictionsError for rows that are not one-hot, and unless K is ``n_classes``.
    """
    numbers = as_numbers(array, "labels")
    wrong = ((numbers != 0) & (numbers != 1)).any(axis=1) | (numbers.sum(axis=1) != 1)
    for row in np.flatnonzero(wrong)[:1]:
        shares = "" if not np.allclose(numbers.sum(axis=1), 1.0, atol=1e-3) else (
            ". For shares of votes (soft labels) Predictions.of_votes(probs, shares, n_votes=) "
            "takes the votes: their majority is another outcome"
        )  # fmt: skip
        counts = "" if (numbers % 1.0).any() or (numbers < 0.0).any() else (
            ". For counts of votes there is Predictions.of_votes(probs, counts)"
        )  # fmt: skip
        raise InvalidPredictionsError(
            f"labels: {nth(row)} is {numbers[row].tolist()}, which is not one-hot (a single 1, "
            "else 0); pass the class numbers as a 1-D array, and another model's probabilities "
            f"as against={shares or counts}"
        )
    if numbers.shape[1] != n_classes:
        raise InvalidPredictionsError(
            f"labels is one-hot with {numbers.shape[1]} columns but probs describes "
            f"{n_classes} classes"
        )
    return numbers.argmax(axis=1)


def as_event(labels: AnyArray, pos_label: object) -> tuple[IntArray, tuple[str, str]]:
    """Return (labels, names): 1 where a label is ``pos_label``, else 0, (n,), and both names.

    The first name is the other label's. InvalidPredictionsError if no label is ``pos_label``, or if
    there are several others.
    """
    text, event = [str(v) for v in marks(labels).ravel().tolist()], str(pos_label)
    counts = Counter(text)
    names = sorted(counts)
    if event not in names and len(names) > 1:
        raise InvalidPredictionsError(
            f"pos_label is {event!r}, but the labels{in_column()} are "
            f"{', '.join(map(repr, names[:5]))}",
            [Reading({"pos_label": name}) for name in sorted(names[:2], key=lambda n: counts[n])],
        )
    others = [name for name in names if name != event]
    if len(others) > 1:
        raise InvalidPredictionsError(
            f"pos_label={event!r} leaves {len(others)} other labels{in_column()} "
            f"({', '.join(others[:5])}); one column of probabilities is for two classes: leave out "
            "rows that have no outcome, or pass labels that are true where the event occurred",
        )
    codes = np.array([name == event for name in text], dtype=np.int64)
    return codes, (others[0] if others else f"not {event}", event)


# ------------------------------------------------------------------------------
# Probabilities, labels and the names of classes, from arrays that belong together.


ClassNames = tuple[str, ...] | None


class LabelledRows(NamedTuple):
    """Validated input: distributions ``probs`` (n, K), ``labels`` (n,), and class names.

    Labels are 0 … K − 1, and ``classes`` their names; None where they have none.
    """

    probs: FloatArray
    labels: IntArray
    classes: ClassNames


def as_rows(
    probs: object, labels: object, classes: Sequence[object] | None, from_logits: bool,
    pos_label: object, renormalise: bool,
) -> tuple[LabelledRows, tuple[str, ...]]:  # fmt: skip
    """Validate probabilities and labels; return rows, and notes on how they were read.

    ``probs`` is (n,), the probability of the event, or (n, K), and ``labels`` (n,) or one-hot.
    ``classes`` names the columns in order; ``from_logits`` applies the softmax; ``pos_label`` is
    the event of a single column; ``renormalise`` divides rows by their sum. InvalidPredictionsError
    names the first invalid row and value.
    """
    values, marks = as_array(probs, "probs"), as_array(labels, "labels")
    if values.dtype.kind == "b":
        raise InvalidPredictionsError(
            "probs holds booleans, which are classes: pass probabilities, numbers in [0, 1]"
        )
    refuse_swapped(values, marks)
    if values.ndim == 2 and values.shape[0] != len(marks) == values.shape[1]:
        raise InvalidPredictionsError(
            f"probs has the shape {values.shape}, and there are {len(marks)} labels: rows are "
            "observations and columns classes, so pass its transpose, probs.T"
        )
    dtype = dtype_of(probs) or str(values.dtype)
    rows, notes = as_probabilities(values, from_logits, dtype, renormalise)
    if len(marks) != len(rows):
        raise InvalidPredictionsError(
            f"probs has {len(rows)} rows but labels has {len(marks)}; "
            "they must describe the same observations in the same order"
        )
    if pos_label is None:
        if classes is not None and is_text(marks):
            words = matches(classes, np.unique(marks.astype(str))).items()
            odd = [f"{word} is {name}" for word, name in words if word != name]
            notes += (f"labels differ from classes in case or blanks: {first_of(odd)}",) * bool(odd)
        names = class_names(classes, rows.shape[1])
        return LabelledRows(rows, as_labels(marks, rows.shape[1], classes), names), notes
    if values.ndim == 2:
        raise InvalidPredictionsError(
            "pos_label is for a single column of probabilities; with a column for each class "
            "pass classes=[…], the label values in the order of the columns"
        )
    codes, named = as_event(marks, pos_label)
    return LabelledRows(rows, codes, class_names(classes, 2) or named), notes


def relabelled(
    current: ClassNames, n_classes: int, n: int, labels: object, classes: Sequence[object] | None
) -> tuple[ClassNames, IntArray | None]:
    """Return class names, and labels (n,) or None, for predictions that are already valid.

    ``current`` are the names in use, None without names; ``n`` and ``n_classes`` are the size of
    the predictions. ``labels`` and ``classes`` are the new ones, either of which may be None: then
    labels are None, or the names stay. InvalidPredictionsError for labels of another length, and
    for values that are no class.
    """
    names = current if classes is None else class_names(classes, n_classes)
    if labels is None:
        return names, None
    marks = as_array(labels, "labels")
    if len(marks) != n:
        raise InvalidPredictionsError(
            f"these predictions have {n} rows but labels has {len(marks)}"
        )
    return names, as_labels(marks, n_classes, current if classes is None else classes)


class Stack(NamedTuple):
    """Several binary problems in one column: a row for each pair of an observation and a label.

    ``probs``, ``labels``, ``names`` (of the label) and ``rows`` (the observation) have shape (m,),
    for m pairs with an outcome; ``notes`` say how many were left out.
    """

    probs: FloatArray
    labels: IntArray
    names: AnyArray
    rows: IntArray
    notes: tuple[str, ...]


def stacked(probs: object, labels: object, names: Sequence[object] | None) -> Stack:
    """Validate several binary problems (n, L) and put label below label into one column.

    ``probs`` and ``labels`` are (n, L); ``names`` are the L labels, None to take the columns'
    names, or 0 … L − 1. The Stack has probability, outcome, name of the label and number of the row
    for each of the m pairs of a row and a label, shape (m,) each. Pairs without an outcome are left
    out with a note. InvalidPredictionsError for other shapes, a single label, names that are not L
    different ones, missing probabilities, and outcomes that are not 0, 1 or missing.
    """
    columns = names_of(probs) if names is None else list(names)
    p, y = (as_ndarray(v, what) for v, what in ((probs, "probs"), (labels, "labels")))
    if p.ndim != 2 or p.shape != y.shape or p.shape[1] < 2 or not p.shape[0]:
        raise InvalidPredictionsError(
            "several labels a row come as probabilities and outcomes of one shape (n, L) with L ≥ 2"
            f", but these have {p.shape} and {y.shape}"
        )
    called = list(map(str, range(p.shape[1]) if columns is None else columns))
    if len(set(called)) < len(called) or len(called) != p.shape[1] or "" in called:
        raise InvalidPredictionsError(
            f"names are one of each of {p.shape[1]} labels, all different, none empty, not {called}"
        )
    try:
        p, y = p.astype(np.float64), y.astype(np.float64)
    except (TypeError, ValueError) as error:
        raise InvalidPredictionsError(f"probs and labels hold numbers: {error}") from None
    observed = ~np.isnan(y)
    for i, j in np.argwhere(observed & (y != 0.0) & (y != 1.0))[:1]:
        raise InvalidPredictionsError(
            f"labels: {nth(int(i))} of {called[j]} is {y[i, j]:g}; outcomes are 0, 1 or missing"
        )
    for i, j in np.argwhere(observed & ~((p >= 0.0) & (p <= 1.0)))[:1]:
        raise InvalidPredictionsError(
            f"probs: {nth(int(i))} of {called[j]} is {p[i, j]:g}, which is no probability"
        )
    for j in np.flatnonzero(~observed.any(axis=0))[:1]:
        raise InvalidPredictionsError(f"labels of {called[j]} are all missing: leave it out")
    label, row = np.nonzero(observed.T)
    left = int((~observed).sum())
    notes = (f"left out {several(left, 'pair')} of a row and a label without outcome",) * (left > 0)
    outcomes = y.T[observed.T].astype(np.int64)
    return Stack(p.T[observed.T], outcomes, np.array(called)[label], row, notes)


class RowFacts(TypedDict, total=False):
    """Keyword arguments on rows, such as classes, weights and clusters, of most public functions.

    :meth:`Predictions.of` and :func:`read_predictions` explain them.
    """

    classes: Sequence[object] | None
    weights: object
    clusters: object
    items: object
    votes: str | Sequence[str] | None
    by: object
    ids: object
    folds: object
    from_logits: bool
    ordered: bool
    pos_label: object
    predicted_label: str | None
    renormalise: bool
    rounded: bool | Literal["auto"]
    drop_missing: bool
    where: str | None
    as_is: bool


class Facts(RowFacts, total=False):
    """Keyword arguments on rows and their design, including features, time and horizon.

    They are those of :class:`RowFacts` and these three, which monitors and searches take as
    parameters of their own.
    """

    features: object
    time: object
    horizon: int | None


# ------------------------------------------------------------------------------
# Several outcomes of one item: votes of annotators, or answers of repeated runs.


#: How far shares times votes may be from a whole number, as printed shares leave it.
SHARE_ROUNDING = 0.02


@dataclass(frozen=True, eq=False)
class Votes:
    """I items with their predictions and counts of outcomes, from n rows of one outcome each.

    ``probs`` and ``counts`` have shape (I, K), for K classes; ``of_row`` (n,) is the item of every
    row; ``weights`` and ``clusters`` (I,) belong to items, None where there are none.
    """

    probs: FloatArray
    counts: IntArray
    of_row: IntArray
    weights: FloatArray | None
    clusters: IntArray | None

    @classmethod
    def of(cls, data: Predictions) -> Votes:
        """Return the counts of votes of every item, numbered by first appearance; O(n + I K).

        ``data`` has one row for each vote, and the item of each row. The Votes has predictions,
        counts, weights and clusters of the items.
        """
        assert data.items is not None
        of_row, first = numbered(data.items)
        k = data.n_classes
        counts = np.bincount(of_row * k + data.labels, minlength=first.size * k)
        weights = None if data.weights is None else data.weights[first]
        grouped = data.clusters is not None and data.items_in_clusters
        clusters = data.clusters[first] if grouped and data.clusters is not None else None
        return cls(data.probs[first], counts.reshape(-1, k), of_row, weights, clusters)

    @property
    def size(self) -> IntArray:
        """Number of votes of every item, (I,) for I items."""
        return self.counts.sum(axis=1)


def numbered(names: AnyArray) -> tuple[IntArray, IntArray]:
    """Return (item, first): numbers by first appearance, (n,), and the first row of each, (I,).

    ``names`` (n,) are the names of the items.
    """
    _, first, inverse = np.unique(names, return_index=True, return_inverse=True)
    order = np.argsort(first)
    number = np.empty(first.size, dtype=np.int64)
    number[order] = np.arange(first.size)
    return number[inverse.ravel()], first[order]


def items_alike(probs: FloatArray, weights: FloatArray | None, items: IntArray) -> bool:
    """Return whether rows of every item have the same predictions and weights, to 1e-9.

    ``probs`` (n, K), ``weights`` (n,) or None, and ``items`` (n,), the item of each row.
    """
    return all(wrong.size == 0 for _, wrong in _unequal(probs, weights, items))


def _unequal(
    probs: FloatArray, weights: FloatArray | None, items: IntArray
) -> Iterator[tuple[str, IntArray]]:
    """Yield ("predictions" or "weights", rows): those that differ from the first of their item.

    ``rows`` are indices, none if all are alike. ``probs`` is (n, K), ``weights`` (n,) or None, and
    ``items`` (n,) is the item of each row.
    """
    of_row, first = numbered(items)
    for what, column in (("predictions", probs), ("weights", weights)):
        if column is not None:
            same = np.isclose(column, column[first[of_row]], rtol=0.0, atol=1e-9)
            yield what, np.flatnonzero(~same.reshape(len(of_row), -1).all(axis=1))


def refuse_unequal(probs: FloatArray, weights: FloatArray | None, items: IntArray) -> None:
    """Raise InvalidPredictionsError if rows of one item differ in prediction or weight.

    ``probs`` is (n, K), ``weights`` (n,) or None, and ``items`` (n,) is the item of each row.
    """
    for what, wrong in _unequal(probs, weights, items):
        if wrong.size:
            of_row, first = numbered(items)
            row = int(wrong[0])
            raise InvalidPredictionsError(
                f"{nth(int(first[of_row[row]]))} and {nth(row)} are outcomes of one item but have "
                f"different {what}: items= (--items) is for several outcomes of one prediction. "
                "For predictions that differ use clusters= (--clusters)"
            )


#: What to do with shares of votes.
SHARES = "; for shares of votes give the number of votes as well, n_votes="


def rows_of_votes(
    counts: object,
    n_votes: object,
    n: int,
    shares: str = SHARES,
    readings: Sequence[Reading] = (),
) -> tuple[IntArray, IntArray]:
    """Return the item and the label of every vote, both of shape (Σ m,).

    ``counts`` (n, K) are numbers of votes m of n items, or shares where ``n_votes`` gives the
    number of votes of each item. ``shares`` is the end of the message about shares without one, and
    ``readings`` are the ways out that it suggests. InvalidPredictionsError for counts that are no
    whole numbers, and without any vote.
    """
    table = np.asarray(as_array(counts, "counts"))
    if table.ndim != 2 or len(table) != n or table.shape[1] < 2:
        raise InvalidPredictionsError(
            f"counts must have a row for each of the {n} items and a column for each class (two "
            f"columns where probs has one: label 0 and label 1); its shape is {table.shape}"
        )
    table = table.astype(np.float64)
    if n_votes is not None:
        size = np.broadcast_to(np.asarray(n_votes, dtype=np.float64), (n,))
        table = table * size[:, None]
    whole = np.rint(table)
    off = np.abs(table - whole) > (0.0 if n_votes is None else SHARE_ROUNDING)
    wrong = np.flatnonzero((off | (whole < 0.0) | ~np.isfinite(table)).any(axis=1))
    if wrong.size:
        row = int(wrong[0])
        remedy = shares if n_votes is None else ", so these shares cannot come from that many votes"
        raise InvalidPredictionsError(
            f"counts of {nth(row)} are {table[row].round(4).tolist()}, which are no whole numbers "
            f"≥ 0{remedy}",
            readings if n_votes is None and table.max() <= 1.0 else (),
        )
    whole = whole.astype(np.int64)
    if not whole.any():
        raise InvalidPredictionsError("counts holds no vote")
    item, label = np.nonzero(whole)
    times = whole[item, label]
    return np.repeat(item, times), np.repeat(label, times)
