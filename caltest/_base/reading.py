"""Numbers as people have them, checked and brought into one form; refusals name their rows."""

from __future__ import annotations

import numpy as np

from caltest._base.arrays import AnyArray, BoolArray, FloatArray
from caltest._base.containers import as_ndarray
from caltest._base.naming import NAMES, in_column, nth
from caltest._base.resolution import meant
from caltest._base.written import first_of, several
from caltest.errors import InvalidPredictionsError

#: Rows whose sum is further from 1 than the first are refused; closer than the second they are left
#: as they are, so that decimals stay decimals.
SUM_TOLERANCE, SUM_EXACT = 1e-3, 1e-12
#: How far scales of whole numbers reach that are no percents.
SCALE = 10.0
#: What rounding to 32 bits makes of sums of 1, of which nothing is said.
OF_SINGLES = 1e-6


def listed_rows(marks: BoolArray) -> str:
    """Return what some rows are called, of many the first."""
    places = np.flatnonzero(marks)
    names = [nth(place).removeprefix("row ") for place in places[:6].tolist()]
    return f"row{'s' * (places.size > 1)} {first_of(names)}"


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


def on_a_scale(values: AnyArray) -> bool:
    """Say whether numbers are whole, from 0 or 1 to no more than 10, such as scores."""
    within = values.size > 0 and values.min() >= 0.0 and 2.0 < values.max() <= SCALE
    return bool(within and (values % 1 == 0.0).all())


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
    elif on_a_scale(probs):
        advice, remedies = "Whole numbers up to 10 are scores or grades, no probabilities", []
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
