"""Probabilities, labels and the names of classes, from arrays that belong together."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from caltest._base.arrays import FloatArray, IntArray
from caltest._base.containers import dtype_of
from caltest._base.reading import (
    as_array,
    as_event,
    as_labels,
    as_probabilities,
    class_names,
    column_classes,
    refuse_swapped,
)
from caltest.errors import InvalidPredictionsError

Names = tuple[str, ...] | None


class Rows(NamedTuple):
    """Distributions (n, K), the classes that were observed, what classes are called, and facts."""

    probs: FloatArray
    labels: IntArray
    classes: Names


def as_rows(
    probs: Any,
    labels: Any,
    classes: Sequence[Any] | None,
    from_logits: bool,
    pos_label: Any,
    renormalise: bool,
) -> tuple[Rows, tuple[str, ...]]:
    """Check probabilities and labels, and bring them into one form; notes say what was done."""
    values, marks = as_array(probs, "probs"), as_array(labels, "labels")
    if values.dtype.kind == "b":
        raise InvalidPredictionsError(
            "probs holds booleans, which are classes: pass probabilities, numbers in [0, 1]"
        )
    refuse_swapped(values, marks)
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
        names = class_names(classes, rows.shape[1])
        return Rows(rows, as_labels(marks, rows.shape[1], classes), names), notes
    if values.ndim == 2:
        raise InvalidPredictionsError(
            "pos_label is for a single column of probabilities; with a column for each class "
            "pass classes=[…], the label values in the order of the columns"
        )
    codes, named = as_event(marks, pos_label)
    return Rows(rows, codes, class_names(classes, 2) or named), notes


def relabelled(
    current: Names, n_classes: int, n: int, labels: Any, classes: Sequence[Any] | None
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
