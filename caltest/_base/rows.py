"""Probabilities, labels and the names of classes, from arrays that belong together."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from caltest._base.arrays import AnyArray, FloatArray, IntArray
from caltest._base.containers import as_ndarray, dtype_of, names_of
from caltest._base.event_words import event_of
from caltest._base.labels import (
    as_event,
    as_labels,
    class_names,
    column_classes,
    matches,
    refuse_reordered,
)
from caltest._base.naming import nth
from caltest._base.reading import as_array, as_probabilities, is_text, refuse_swapped
from caltest._base.written import first_of, several
from caltest.errors import InvalidPredictionsError

Names = tuple[str, ...] | None


class Rows(NamedTuple):
    """Distributions (n, K), the classes that were observed, what classes are called, and facts."""

    probs: FloatArray
    labels: IntArray
    classes: Names


def as_rows(
    probs: object, labels: object, classes: Sequence[object] | None, from_logits: bool,
    pos_label: object, renormalise: bool,
) -> tuple[Rows, tuple[str, ...]]:  # fmt: skip
    """Check probabilities and labels, and bring them into one form; notes say what was done."""
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
        if classes is None and (classes := column_classes(probs, marks)) is not None:
            notes += (f"classes named by the columns: {', '.join(map(str, classes))}",)
        elif classes is not None:
            refuse_reordered(names_of(probs) or (), classes)
        if classes is not None and is_text(marks):
            words = matches(classes, np.unique(marks.astype(str))).items()
            odd = [f"{word} is {name}" for word, name in words if word != name]
            notes += (f"labels differ from classes in case or blanks: {first_of(odd)}",) * bool(odd)
        names = class_names(classes, rows.shape[1])
        if classes is None and rows.shape[1] == 2 and is_text(marks) and (event := event_of(marks)):
            notes += (f"the event is {event[0]!r}; pos_label= (--pos-label) says another",)
        return Rows(rows, as_labels(marks, rows.shape[1], classes), names), notes
    if values.ndim == 2:
        raise InvalidPredictionsError(
            "pos_label is for a single column of probabilities; with a column for each class "
            "pass classes=[…], the label values in the order of the columns"
        )
    codes, named = as_event(marks, pos_label)
    return Rows(rows, codes, class_names(classes, 2) or named), notes


def relabelled(
    current: Names, n_classes: int, n: int, labels: object, classes: Sequence[object] | None
) -> tuple[Names, IntArray | None]:
    """Return names of classes, and labels if there are any, for predictions that are known."""
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
    """Pairs of a row and a label: probability, outcome, the label's name, the row, and notes."""

    probs: FloatArray
    labels: IntArray
    names: AnyArray
    rows: IntArray
    notes: tuple[str, ...]


def stacked(probs: object, labels: object, names: Sequence[object] | None) -> Stack:
    """Check arrays of shape (n, L) and put label below label; pairs without outcome are left out.

    InvalidPredictionsError for other shapes, a single label, names that are not L different ones,
    probabilities that are missing, and outcomes that are not 0, 1 or missing.
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
