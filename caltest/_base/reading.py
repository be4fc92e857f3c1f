"""Arrays as people have them, checked and brought into one form; every refusal names its row."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from itertools import chain
from os.path import commonprefix

import numpy as np

from caltest._base.arrays import AnyArray, BoolArray, FloatArray, IntArray
from caltest._base.checks import is_whole
from caltest._base.containers import as_ndarray, names_of
from caltest._base.event_words import PENDING, RIGHT_WORDS, event_of, judges
from caltest._base.naming import NAMES, in_column, nth
from caltest._base.resolution import meant
from caltest._base.written import several
from caltest.errors import InvalidPredictionsError

#: Rows whose sum is further from 1 than the first are refused; closer than the second they are left
#: as they are, so that decimals stay decimals.
SUM_TOLERANCE, SUM_EXACT = 1e-3, 1e-12
#: What rounding to 32 bits makes of sums of 1, of which nothing is said.
OF_SINGLES = 1e-6


def listed_rows(marks: BoolArray) -> str:
    """Return what some rows are called, of many the first."""
    places = np.flatnonzero(marks)
    names = [nth(place).removeprefix("row ") for place in places[:5].tolist()]
    return f"row{'s' * (places.size > 1)} {', '.join(names)}{', …' * (places.size > 5)}"


def as_array(values: object, name: str) -> AnyArray:
    array = as_ndarray(values, name)
    if array.ndim == 2 and array.shape[1] == 1:
        if name == "probs" and bool((array == 1).all()):
            raise InvalidPredictionsError(
                "probs is a single column of ones, a classifier with one class: there is nothing "
                "to test. For a binary problem pass the probability of label 1"
            )
        array = array[:, 0]
    if array.ndim not in (1, 2):
        raise InvalidPredictionsError(
            f"{name} must have one or two dimensions, but its shape is {array.shape}"
        )
    if array.shape[0] == 0:
        raise InvalidPredictionsError(f"{name} is empty: there is nothing to test")
    return array


def is_text(array: AnyArray) -> bool:
    return array.dtype.kind in "US" or (
        array.dtype.kind == "O" and any(isinstance(v, str) for v in array.ravel()[:100])
    )


def refuse_swapped(probs: AnyArray, labels: AnyArray) -> None:
    finite = labels[np.isfinite(labels)] if labels.dtype.kind == "f" else np.zeros(0)
    if not ((finite > 0) & (finite < 1)).any() or ((finite < 0) | (finite > 1)).any():
        return  # labels are no fractions
    real = probs.dtype.kind == "f"
    whole = probs.dtype.kind in "biu" or (real and bool((probs == np.floor(probs)).all()))
    if is_text(probs) or (probs.ndim == 1 and whole):
        raise InvalidPredictionsError(
            "probs and labels look swapped: labels holds fractions between 0 and 1 and probs "
            "holds none. The order is (probs, labels), the reverse of scikit-learn's"
        )


def first(bad: BoolArray) -> tuple[int, ...]:
    return tuple(int(i) for i in np.unravel_index(int(np.argmax(bad)), bad.shape))


def at(name: str, position: tuple[int, ...]) -> str:
    row, *column = position
    names = NAMES.get()
    if column and name == "probs" and names is not None and len(names.columns) > 1:
        return f"{name}: {nth(row)}, column {names.columns[column[0]]}"
    where = in_column() * (name == "labels")
    return f"{name}{where}: {nth(row)}" + "".join(f", column {j}" for j in column)


def as_numbers(array: AnyArray, name: str) -> FloatArray:
    if array.dtype.kind in "USO":
        for position, value in np.ndenumerate(array):
            try:
                float(value)
            except (TypeError, ValueError):
                raise InvalidPredictionsError(
                    f"{at(name, position)} is {str(value)!r}, which is not a number"
                ) from None
    elif array.dtype.kind not in "biuf":
        raise InvalidPredictionsError(f"{name} must hold real numbers, not {array.dtype}")
    numbers = np.ascontiguousarray(array, dtype=np.float64)
    finite = np.isfinite(numbers)
    if not finite.all():
        position = first(~finite)
        raise InvalidPredictionsError(
            f"{at(name, position)} is {numbers[position]} "
            f"({several((~finite).sum(), 'such value')} in all); repair these rows, or "
            "leave out those without a value with drop_missing=True (--drop-missing)",
            [("--drop-missing",)],
        )
    return numbers


def as_probabilities(
    array: AnyArray, from_logits: bool, dtype: str, renormalise: bool = False
) -> tuple[FloatArray, tuple[str, ...]]:
    probs = as_numbers(array, "probs")
    notes: list[str] = []
    if not from_logits:
        _refuse_out_of_range(probs)
        probs, rounded = meant(probs, dtype)
        if rounded:
            notes.append(f"{rounded} probabilities read as the short decimals that they round")
    else:
        from scipy.special import expit, softmax

        if probs.ndim == 2 and probs.min() >= 0.0 and np.allclose(probs.sum(axis=1), 1.0, 1e-3):
            words = "no value is negative and each row adds up to 1: these are probabilities"
            words += ", leave out from_logits=True (--from-logits)"
            raise InvalidPredictionsError(words, [("!--from-logits",)])
        probs = expit(probs) if probs.ndim == 1 else softmax(probs, axis=1)
        notes.append("probabilities computed from logits")
    if probs.ndim == 1:
        if above := int((probs > 1.0).sum()):
            probs = np.minimum(probs, 1.0)
            notes.append(f"{several(above, 'value')} above 1 by rounding, taken as 1")
        return np.column_stack([1.0 - probs, probs]), tuple(notes)
    sums = probs.sum(axis=1)
    deviation, tolerance, rounded = np.abs(sums - 1.0), SUM_TOLERANCE, ""
    if deviation.max() > tolerance * (1.0 + 1e-9):
        tolerance, rounded = sum_tolerance(probs)
    refused = deviation > tolerance * (1.0 + 1e-9)
    if refused.any() and renormalise and sums.min() > 0.0:
        low, high = sums[refused].min(), sums[refused].max()
        notes.append(
            f"{several(int(refused.sum()), 'row')} renormalised as asked for (sums from {low:.4g} "
            f"to {high:.4g})"
        )
        probs, deviation = probs / sums[:, None], np.where(refused, 0.0, deviation)
    elif refused.any():
        row, count = int(np.argmax(refused)), int(refused.sum())
        raise InvalidPredictionsError(
            f"probs: {nth(row)} sums to {sums[row]:.6g} ({count} of {len(sums)} rows are further "
            f"than {tolerance:g} from 1{rounded}); each row must be a distribution over all "
            "classes. If it is one but for its sum, pass renormalise=True (--renormalise)",
            [("--renormalise",)],
        )
    inexact = deviation > SUM_EXACT
    if inexact.any():
        probs = probs / np.where(inexact, sums, 1.0)[:, None]  # never the caller's array
        count, most = int(inexact.sum()), deviation.max()
        if most > OF_SINGLES:
            words = f"renormalised (sums were within {most:.1g} of 1{rounded})"
            notes.append(f"{several(count, 'row')} {words}")
    return np.minimum(probs, 1.0) if probs.max() > 1.0 else probs, tuple(notes)


def sum_tolerance(probs: FloatArray) -> tuple[float, str]:
    """Return how far from 1 sums may be because of rounding, and to what the values are rounded.

    Numbers with d decimals are wrong by up to 10^-d / 2 each, bfloat16 by a 512th of themselves;
    a sum that is wrong by more than 0.05 is not put down to rounding.
    """
    for digits in (1, 2, 3):
        if np.array_equal(np.round(probs, digits), probs):
            most = min(probs.shape[1] * 0.5 * 10.0**-digits, 0.05)
            return max(most, SUM_TOLERANCE), f"; values have {digits} decimals"
    single = probs.astype(np.float32)
    if np.array_equal(single, probs) and not (single.view(np.uint32) & 0xFFFF).any():
        return 2.0**-8, "; values have the resolution of bfloat16"
    return SUM_TOLERANCE, ""


def _refuse_out_of_range(probs: FloatArray) -> None:
    slack = SUM_TOLERANCE if probs.ndim == 2 else 1e-6  # a rounded 1.0000001 is repaired later
    outside = (probs < 0.0) | (probs > 1.0 + slack)
    if not outside.any():
        return
    position = first(outside)
    logits = "softmax" if probs.ndim == 2 else "logistic function"
    logits = f"apply the {logits}, or pass from_logits=True (--from-logits)"
    remedies = [("--from-logits",)]
    if (probs <= 0.0).all():
        remedies = remedies if probs.ndim == 2 else []  # whose softmax is their exponential
        advice = f"These may be log-probabilities: apply exp. If they are logits: {logits}"
    elif probs.min() >= 0.0 and 2.0 < probs.max() <= 100.0:
        advice = f"If they are percents, divide by 100 (--percent); if they are logits, {logits}"
        remedies = [("--percent",)]
    elif (probs < 0.0).any() and (probs > 1.0).any():
        advice = f"These look like logits: {logits}"
    else:
        advice, remedies = f"Repair these values; if all are logits, {logits}", []
    raise InvalidPredictionsError(
        f"{at('probs', position)} is {probs[position]:.9g}, outside [0, 1] "
        f"({several(outside.sum(), 'such value')} in all). {advice}",
        remedies,
    )


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
        words, whole = set(labels.astype(str).tolist()), [str(name) for name in names]
        head = re.sub(r"[^_. -]*$", "", commonprefix(whole))  # noqa: RUF071 (names are no paths)
        ways: tuple[list[object], ...] = (names, [name[len(head) :] for name in whole])
        return next((way for way in ways if words <= set(map(str, way))), None)
    return names if set(np.unique(labels).tolist()) <= set(names) else None


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
        listed, order = ", ".join(repr(str(v)) for v in words[:5]), ""
        if words.size == n_classes <= 20:
            order = f", which scikit-learn sorts: classes={words.tolist()}"
        remedies: list[tuple[str, ...]] = [("--classes", ",".join(words.tolist()))] * bool(order)
        rest = [word for word in words.tolist() if word.lower() in PENDING]
        if judges(array):
            rest = [word for word in words.tolist() if word.lower() not in chain(*RIGHT_WORDS)]
        if n_classes == 2 and rest:
            remedies = [tuple(part for word in rest for part in ("--drop-label", word))]
            order += (
                f"; or leave out rows without an outcome with drop_labels={rest} (--drop-label)"
            )
        raise InvalidPredictionsError(
            f"labels are text{in_column()} ({listed}, …): pass classes=[…] (--classes), the label "
            f"values in the order of the columns of probs{order}",
            remedies,
        )
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


def counting(low: int, high: int) -> str:
    """Return how to say that classes are the numbers from one to another."""
    return f"classes=range({low}, {high + 1}) (--classes {low},…,{high})"


def _from_names(array: AnyArray, classes: Sequence[object]) -> IntArray:
    text = is_text(array)
    kind: type[str] | type[float] = str if text else float
    index = {kind(str(c)): i for i, c in enumerate(classes)}
    values, inverse = np.unique(array.astype(str) if text else array, return_inverse=True)
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
    marks = (
        labels.astype(np.int64) if labels.dtype.kind == "f" and not (labels % 1).any() else labels
    )
    text, event = [str(v) for v in marks.ravel().tolist()], str(pos_label)
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
        remedies = [
            tuple(word for name in others if name != rest for word in ("--drop-label", name))
            for rest in sorted(others, key=lambda n: -counts[n])[:3]
        ]
        raise InvalidPredictionsError(
            f"pos_label={event!r} leaves {len(others)} other labels{in_column()} "
            f"({', '.join(others[:5])}); one column of probabilities is for two classes: leave out "
            "rows that have no outcome with drop_labels=[…] (--drop-label)",
            remedies,
        )
    codes = np.array([name == event for name in text], dtype=np.int64)
    return codes, (others[0] if others else f"not {event}", event)
