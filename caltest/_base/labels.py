"""Labels as people write them, and the classes that they name, as numbers from 0."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import chain
from os.path import commonprefix

import numpy as np

from caltest._base.arrays import AnyArray, IntArray
from caltest._base.checks import is_whole
from caltest._base.containers import names_of
from caltest._base.event_words import EVENT_WORDS, PENDING, event_of, opposites
from caltest._base.naming import NAMES, in_column, nth
from caltest._base.reading import as_numbers, is_text
from caltest._base.written import first_of
from caltest.errors import InvalidPredictionsError


def marks(column: AnyArray) -> AnyArray:
    """Return what rows are called or labelled; numbers such as 7.0 are the number 7."""
    whole = column.dtype.kind == "f" and bool((column % 1 == 0).all())
    return column.astype(np.int64) if whole else column


def class_names(classes: Sequence[object] | None, n_classes: int) -> tuple[str, ...] | None:
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
    """Return the names of the columns, less a common beginning, if labels are such names."""
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
    """Return the names of columns without what all of them begin with."""
    whole = list(map(str, names))
    head = re.sub(r"[^_. -]*$", "", commonprefix(whole))  # noqa: RUF071 (names are no paths)
    return [name[len(head) :] for name in whole]


def matches(names: Sequence[object], words: Iterable[object]) -> dict[str, str]:
    """Return which name each word is, but for case and blanks where that tells; {} if one is none.

    Names themselves must differ in more.
    """
    columns, labels = list(map(str, names)), sorted({*map(str, words)})
    if {*labels} <= {*columns}:
        return {word: word for word in labels}
    of = {_plain(name): name for name in columns}
    known = len(of) == len(columns) and all(_plain(word) in of for word in labels)
    return {word: of[_plain(word)] for word in labels} if known else {}


def _plain(name: str) -> str:
    return re.sub(r"[\s_]+", "_", name.strip().casefold())


def refuse_reordered(names: Sequence[object], classes: Sequence[object]) -> None:
    """Refuse classes that are what columns are called, but in another order than these."""
    listed = list(map(str, classes))
    if list(names) == list(range(len(names))):  # columns that nobody has named
        return
    for way in (list(map(str, names)), bare_ends(names)):
        meant = matches(way, listed)
        if len(way) == len(listed) == len({*meant.values()}) and [*map(meant.get, listed)] != way:
            raise InvalidPredictionsError(
                f"classes= (--classes) lists {', '.join(listed)}, but the columns of probabilities "
                f"are called by these names in another order: {', '.join(map(str, way))}",
                [("--classes", ",".join(map(str, way)))],
            )


def as_labels(array: AnyArray, n_classes: int, classes: Sequence[object] | None) -> IntArray:
    if array.ndim == 2:
        return _from_one_hot(array, n_classes)
    counted = classes is not None and list(classes) == list(range(n_classes))
    if classes is not None and (is_text(array) or (all(map(is_whole, classes)) and not counted)):
        return _from_names(array, classes)
    if is_text(array):
        words, counts = np.unique(array.astype(str), return_counts=True)
        if n_classes == 2 and (event := event_of(array)):
            return event[1].astype(np.int64)
        if n_classes == 2 and words.size == 2:
            rarest = words[np.argsort(counts, kind="stable")].tolist()
            calls = " or ".join(f"pos_label={w!r} (--pos-label {w})" for w in rarest)
            raise InvalidPredictionsError(
                f"labels are text{in_column()}: of one column of probabilities say {calls}, whose "
                "probability it is; of two pass classes=[…] (--classes) in the order of the "
                f"columns, which scikit-learn sorts: classes={words.tolist()}",
                [("--pos-label", word) for word in rarest],
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
            remedies = [("--classes", f"1,…,{n_classes}")]
        elif n_classes == 2 and set(np.unique(numbers)) <= {-1.0, 1.0}:
            advice = ". They seem to be −1 and 1: pass labels > 0, or pos_label=1 (--pos-label 1)"
            remedies = [("--pos-label", "1")]
        raise InvalidPredictionsError(
            f"labels{in_column()}: {nth(row)} is {numbers[row]:.0f}, but with {n_classes} classes "
            f"labels run from 0 to {n_classes - 1}{advice}",
            remedies,
        )
    return numbers.astype(np.int64)


def _unnamed(array: AnyArray, words: list[str], n_classes: int) -> InvalidPredictionsError:
    """Return the refusal of words that neither classes nor an event are named for."""
    order, remedies = "", list[tuple[str, ...]]()
    table = NAMES.get()
    columns = table.columns if table else []
    if len(columns) > 1 and not all(name[-1:].isdecimal() for name in columns):
        order = f": {first_of(columns)}"  # whose order words cannot be sorted into
    elif len(words) == n_classes <= 20:
        order = f", which scikit-learn sorts: classes={words}"
        remedies = [("--classes", ",".join(words))]
    outcomes = [*chain(*EVENT_WORDS)] * bool(opposites(array, EVENT_WORDS))
    rest = [w for w in words if (w.lower() not in outcomes if outcomes else w.lower() in PENDING)]
    if n_classes == 2 and rest:
        order += f"; or leave out rows without an outcome with drop_labels={rest} (--drop-label)"
        remedies = [dropping(rest)]
    return InvalidPredictionsError(
        f"labels are text{in_column()} ({', '.join(map(repr, words[:5]))}, …): pass classes=[…] "
        f"(--classes), the label values in the order of the columns of probs{order}",
        remedies,
    )


def dropping(words: Iterable[str]) -> tuple[str, ...]:
    """Return the options that leave out rows with these labels."""
    return tuple(part for word in words for part in ("--drop-label", word))


def counting(low: int, high: int) -> str:
    """Return how to say that classes are the numbers from one to another."""
    return f"classes=range({low}, {high + 1}) (--classes {low},…,{high})"


def _from_names(array: AnyArray, classes: Sequence[object]) -> IntArray:
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
                remedies = [("--classes", f"{low},…,{high}")]
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
    numbers = as_numbers(array, "labels")
    wrong = ((numbers != 0) & (numbers != 1)).any(axis=1) | (numbers.sum(axis=1) != 1)
    for row in np.flatnonzero(wrong)[:1]:
        raise InvalidPredictionsError(
            f"labels: {nth(row)} is {numbers[row].tolist()}, which is not one-hot (a single 1, "
            "else 0); pass the class numbers as a 1-D array, and another model's probabilities "
            "as against="
        )
    if numbers.shape[1] != n_classes:
        raise InvalidPredictionsError(
            f"labels is one-hot with {numbers.shape[1]} columns but probs describes "
            f"{n_classes} classes"
        )
    return numbers.argmax(axis=1)


def as_event(labels: AnyArray, pos_label: object) -> tuple[IntArray, tuple[str, str]]:
    """Return 1 where a label is ``pos_label`` and 0 where it is the one other, and both names."""
    text, event = [str(v) for v in marks(labels).ravel().tolist()], str(pos_label)
    counts = Counter(text)
    names = sorted(counts)
    if event not in names and len(names) > 1:
        raise InvalidPredictionsError(
            f"pos_label is {event!r}, but the labels{in_column()} are "
            f"{', '.join(map(repr, names[:5]))}",
            [("--pos-label", name) for name in sorted(names[:2], key=lambda n: counts[n])],
        )
    others = [name for name in names if name != event]
    if len(others) > 1:
        pairs = [pair for pair in EVENT_WORDS if event.lower() in pair]
        opposite = [name for name in others if name.lower() in chain(*pairs)]
        drop = [name for name in others if name not in opposite] if opposite else []
        called = NAMES.get()
        column = called.label if called and called.label else "column"
        ways = [dropping(drop)] if drop else [("!--pos-label", "--label", f"{column}=={event}")]
        raise InvalidPredictionsError(
            f"pos_label={event!r} leaves {len(others)} other labels{in_column()} "
            f"({', '.join(others[:5])}); one column of probabilities is for two classes: leave out "
            "rows that have no outcome with drop_labels=[…] (--drop-label), or let all others be "
            f"no event with label='{column}=={event}'",
            ways,
        )
    codes = np.array([name == event for name in text], dtype=np.int64)
    return codes, (others[0] if others else f"not {event}", event)
