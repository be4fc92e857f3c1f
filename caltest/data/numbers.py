"""Numbers in all accepted forms: validation, undoing of rounding, and doubts.

:func:`as_probabilities` is the entry; :func:`meant` finds decimals behind 16- and 32-bit values.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from caltest._base.arrays import AnyArray, BoolArray, FloatArray, IntArray, as_ndarray, largest
from caltest._base.written import first_of, several
from caltest.errors import NAMES_IN_MESSAGES, InvalidPredictionsError, Reading, in_column, nth

#: Rows whose sum is further from 1 than the first are refused; closer than the second they are left
#: as they are, so that decimals stay decimals.
SUM_TOLERANCE, SUM_EXACT = 1e-3, 1e-12


#: How far scales of whole numbers reach that are no percents.
LARGEST_SCALE = 10.0


#: How far sums may be from 1 by an error of rounding; further away they may be several labels.
FAR_FROM_ONE = 0.05
#: What rounding to 32 bits makes of sums of 1, of which nothing is said.
OF_SINGLES = 1e-6


def listed_rows(marks: BoolArray) -> str:
    """Return the names of the marked rows as text, such as "rows 3, 7, 12", the first six of many.

    ``marks`` (n,) are booleans.
    """
    places = np.flatnonzero(marks)
    names = [nth(place).removeprefix("row ") for place in places[:6].tolist()]
    return f"row{'s' * (places.size > 1)} {first_of(names)}"


def as_array(values: object, name: str) -> AnyArray:
    """Return probabilities or labels as an array of shape (n,) or (n, K).

    ``values`` is array_like: an array, a list, a tensor, or a column of a data frame. A column (n,
    1) becomes (n,). InvalidPredictionsError for other shapes and for no rows; ``name`` is the
    argument in messages.
    """
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
    """Return whether an array holds text."""
    return array.dtype.kind in "US" or (
        array.dtype.kind == "O" and any(isinstance(v, str) for v in array.ravel()[:100])
    )


def refuse_swapped(probs: AnyArray, labels: AnyArray) -> None:
    """Raise InvalidPredictionsError for labels passed before probabilities, as in scikit-learn.

    ``probs`` and ``labels`` are the arrays in the places of these. They look swapped if ``labels``
    holds fractions between 0 and 1 and ``probs`` text or whole numbers.
    """
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
    """Return the index of the first True of a mask in row order, one number for each axis.

    At least one has to be True.
    """
    return tuple(int(i) for i in np.unravel_index(int(np.argmax(bad)), bad.shape))


def at(name: str, position: tuple[int, ...]) -> str:
    """Return the name of a cell for messages, such as "probs: row 3, column 1".

    ``name`` is the argument and ``position`` the index.
    """
    row, *column = position
    names = NAMES_IN_MESSAGES.get()
    if column and name == "probs" and names is not None and len(names.columns) > 1:
        return f"{name}: {nth(row)}, column {names.columns[column[0]]}"
    where = in_column() * (name == "labels")
    return f"{name}{where}: {nth(row)}" + "".join(f", column {j}" for j in column)


def as_numbers(array: AnyArray, name: str) -> FloatArray:
    """Return ``array`` as finite float64 numbers of the same shape.

    InvalidPredictionsError names the first cell of the argument ``name`` that is no finite number.
    """
    if array.dtype.kind in "USO":
        for position, value in np.ndenumerate(array):
            try:
                float(value)
            except OverflowError:
                raise InvalidPredictionsError(
                    f"{at(name, position)} is a whole number beyond 1.8e308, the largest of 64 bits"
                ) from None
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
        infinite = np.isinf(numbers)
        if infinite.any() and not np.isnan(numbers).any():  # leaving out missing values is no help
            raise InvalidPredictionsError(
                f"{at(name, position)} is {numbers[position]} "
                f"({several(infinite.sum(), 'such value')} in all): repair or leave out these rows"
            )
        raise InvalidPredictionsError(
            f"{at(name, position)} is {numbers[position]} "
            f"({several((~finite).sum(), 'such value')} in all); repair these rows, or "
            "leave out those without a value with drop_missing=True (--drop-missing)",
            [Reading({"drop_missing": True})],
        )
    return numbers


def as_probabilities(
    array: AnyArray, from_logits: bool, dtype: str, renormalise: bool = False
) -> tuple[FloatArray, tuple[str, ...]]:
    """Return probabilities (n, K), and notes on how they were read.

    ``array`` is (n, K), or (n,) for the probability p of label 1, which becomes (1 − p, p).
    ``from_logits`` applies the softmax. ``dtype`` is the name of the number type in its own
    library, such as "torch.float16", which decides how far values may be rounded.
    InvalidPredictionsError for numbers outside [0, 1], or rows that do not sum to 1, unless
    ``renormalise``.
    """
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
            raise InvalidPredictionsError(words, [Reading({"from_logits": None})])
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
        far = deviation.max() > FAR_FROM_ONE
        when = "the classes exclude each other, and a row is wrong by a factor only" if far else ""
        raise InvalidPredictionsError(
            f"probs: {nth(row)} sums to {sums[row]:.6g} ({count} of {len(sums)} rows are further "
            f"than {tolerance:g} from 1{rounded}); each row must be a distribution over all "
            "classes. If it is one but for its sum, pass renormalise=True (--renormalise)",
            [Reading({"renormalise": True}, when)],
        )
    inexact = deviation > SUM_EXACT
    if inexact.any():
        probs = probs / np.where(inexact, sums, 1.0)[:, None]  # never the caller's array
        count, most = int(inexact.sum()), deviation.max()
        if most > OF_SINGLES:
            words = f"renormalised: sums differed from 1 by up to {most:.1g}{rounded}"
            notes.append(f"{several(count, 'row')} {words}")
    return np.minimum(probs, 1.0) if probs.max() > 1.0 else probs, tuple(notes)


def sum_tolerance(probs: FloatArray) -> tuple[float, str]:
    """Return (tolerance, rounding): how far from 1 sums of rows may be, and the rounding found.

    ``probs`` is (n, K). Numbers with d decimals are wrong by up to 10^-d / 2 each, bfloat16 by a
    512th of themselves. The tolerance is at most 0.05. The rounding is the end of a message, such
    as "; values have 2 decimals"; "" if none was found.
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
    """Return whether values look like scores: whole numbers ≥ 0 with a largest of 3 to 10."""
    within = values.size > 0 and values.min() >= 0.0 and 2.0 < values.max() <= LARGEST_SCALE
    return bool(within and (values % 1 == 0.0).all())


def _refuse_out_of_range(probs: FloatArray) -> None:
    slack = SUM_TOLERANCE if probs.ndim == 2 else 1e-6  # a rounded 1.0000001 is repaired later
    outside = (probs < 0.0) | (probs > 1.0 + slack)
    if not outside.any():
        return
    position = first(outside)
    logits = "softmax" if probs.ndim == 2 else "logistic function"
    logits = f"apply the {logits}, or pass from_logits=True (--from-logits)"
    remedies = [Reading({"from_logits": True})]
    if (probs <= 0.0).all():
        remedies = remedies if probs.ndim == 2 else []  # whose softmax is their exponential
        advice = f"These may be log-probabilities: apply exp. If they are logits: {logits}"
    elif on_a_scale(probs):
        advice, remedies = "Whole numbers up to 10 are scores or grades, no probabilities", []
    elif probs.min() >= 0.0 and 2.0 < probs.max() <= 100.0:
        advice = f"If they are percents, pass probs / 100; if they are logits, {logits}"
        percents = Reading({"probs": "probs / 100"}, "they are percents")
        remedies = [percents, Reading({"from_logits": True}, "they are logits")]
    elif (probs < 0.0).any() and (probs > 1.0).any():
        advice = f"These look like logits: {logits}"
    else:
        advice, remedies = f"Repair these values; if all are logits, {logits}", []
    raise InvalidPredictionsError(
        f"{at('probs', position)} is {probs[position]:.9g}, outside [0, 1] "
        f"({several(outside.sum(), 'such value')} in all). {advice}",
        remedies,
    )


# ------------------------------------------------------------------------------
# The numbers that were meant: decimals and fractions, before a type of few bits rounded them.
#
# 0.3 in 32 bits is 0.30000001192…: its complement is not the 0.7 of another row, ten of them do
# not add up to 3, and ties of statistics fall apart. Where all numbers are the nearest of their
# type to a short decimal, or to a fraction of one denominator, these are meant.


#: Numbers that are looked at before all others: they tell most data without decimals.
SAMPLE, NUMBERS_FIRST = 64, 8


#: Different values, not all shares of 128, from which on a type of 16 bits is seen in a wider one.
VALUES_OF_A_TYPE = 12


#: Decimals of numbers in 64 bits from which rounding is removed, and how much of it.
DECIMALS_KEPT, DECIMALS_ROUNDING = 1e9, 2.3e-16


_POWERS = np.array([float(f"1e{j}") for j in range(23)])


class Type(NamedTuple):
    """Number format: its rounding function, decimals kept, and the fractions it can tell apart.

    ``rounded`` rounds an array to the format, ``digits`` is the number of significant decimals that
    survive, and ``denominators`` are those of the fractions, such as thirds.
    """

    rounded: Callable[[FloatArray], AnyArray]
    digits: int
    denominators: FloatArray


def _to_bfloat16(values: FloatArray) -> AnyArray:
    # The upper half of a float32, ties to even.
    """Return values rounded to bfloat16, as float32, same shape."""
    bits = values.astype(np.float32).view(np.uint32)
    return ((bits + 0x7FFF + ((bits >> 16) & 1)) & np.uint32(0xFFFF0000)).view(np.float32)


#: By name. What is a fraction of 4096 is a number of 32 bits as it is.
TYPES = {
    "bfloat16": Type(_to_bfloat16, 2, np.arange(1.0, 11.0)),
    "float16": Type(lambda values: values.astype(np.float16), 3, np.arange(1.0, 101.0)),
    "float32": Type(
        lambda values: values.astype(np.float32), 6, np.append(4096.0, np.arange(1.0, 1001.0))
    ),
}


#: Whether numbers are taken as they are.
_AS_THEY_ARE = ContextVar("_AS_THEY_ARE", default=False)


@contextmanager
def as_they_are() -> Iterator[None]:
    """Context manager in which rounding of numbers is not undone.

    Batches of one data set are read in it, so that all of them are treated alike.
    """
    token = _AS_THEY_ARE.set(True)
    try:
        yield
    finally:
        _AS_THEY_ARE.reset(token)


def meant(values: FloatArray, dtype: str) -> tuple[FloatArray, str | None]:
    """Return (values, type): decimals behind values ≥ 0, and the number type that rounded them.

    ``dtype`` is the name of the number type in its own library. 0.1 stored in 16 bits becomes 0.1
    again. The type is "float32", "float16" or "bfloat16", and None if nothing was rounded.
    """
    if _AS_THEY_ARE.get():
        return values, None
    few, came = values.ravel()[:SAMPLE], dtype.rpartition(".")[2]  # torch says torch.float16
    if came in ("bfloat16", "float16"):
        names = [came]
    else:
        if (
            _without_rounding(few) is not None
            and (meanings := _without_rounding(values)) is not None
        ):
            return (values if np.array_equal(meanings, values) else meanings), None
        if (few.astype(np.float32) != few).any():  # numbers of fewer bits are such of 32
            return values, None
        telling = np.unique(few).size >= VALUES_OF_A_TYPE and bool((few * 128.0 % 1.0).any())
        names = list(TYPES) if telling else ["float32"]
    for name in names:
        meanings = _behind(values, few, TYPES[name])
        if meanings is not None:
            return (values, None) if np.array_equal(meanings, values) else (meanings, name)
    return values, None


def _without_rounding(values: FloatArray) -> FloatArray | None:
    """Return the decimals behind values such as 1 − 0.7, same shape.

    None if some value is no short decimal.
    """
    decimals = np.rint(values * DECIMALS_KEPT) / DECIMALS_KEPT
    far = np.abs(decimals - values) > np.minimum(DECIMALS_ROUNDING, 1e-11 * values)
    return None if far.any() else decimals


def _behind(values: FloatArray, few: FloatArray, of_type: Type) -> FloatArray | None:
    """Return the decimals or fractions that a number format has rounded to ``values``, same shape.

    ``of_type`` is the format; ``few`` are the first of the values, which are tried first. None if
    the format does not explain them.
    """
    rounded, digits, denominators = of_type
    if (rounded(few) != few).any():
        return None
    decimals = bool((rounded(_decimals(few, digits)) == few).all())
    if not decimals:
        m = denominators[:, None]
        for part in (few[:NUMBERS_FIRST], few):
            m = m[(rounded(np.rint(part * m) / m) == part).all(axis=1)]
        if not m.size:
            return None
    numbers = _decimals(values, digits) if decimals else np.rint(values * m[0]) / m[0]
    return numbers if bool((rounded(numbers) == values).all()) else None


def _decimals(values: FloatArray, digits: int) -> FloatArray:
    """Return values rounded to ``digits`` significant digits, exactly, same shape."""
    size = np.floor(np.log10(np.where(values > 0.0, values, 1.0))).astype(np.int64)
    scale = _POWERS[np.clip(digits - 1 - size, 0, 22)]
    return np.rint(values * scale) / scale


# ------------------------------------------------------------------------------
# Rows that occur several times.
#
# Sorted by their predictions, neighbours have about the same chance of different outcomes, whether
# their probabilities are equal or only close. Equal ones that (nearly) never differ are copies, and
# so are rows that all occur equally often, with many digits.


#: Rows that are looked at first; of more, those whose confidence is drawn by lot.
ROWS_INSPECTED = 20_000


#: Neighbours among which the chance of different outcomes counts as constant.
TOGETHER = 32


#: Logarithm of the chance below which agreement is no chance.
COPIES_SURPRISE = float(np.log(1e-4))


#: So many different rows do not all occur equally often by chance; columns that tell rows apart.
EQUALLY_OFTEN, COLUMNS_COMPARED = 20, 16


def row_numbers(values: IntArray) -> NDArray[np.uint64]:
    """Return a 64-bit hash of every row of integers (n, K), shape (n,)."""
    odd = np.random.default_rng(0).integers(2**63, size=(values.shape[1],), dtype=np.uint64) * 2 + 1
    numbers = np.zeros(len(values), dtype=np.uint64)
    for k in range(values.shape[1]):
        mixed = values[:, k].view(np.uint64) * odd[k]
        numbers ^= mixed ^ (mixed >> np.uint64(29))
    return numbers


def n_copies(probs: FloatArray, labels: IntArray) -> int:
    """Return the number of rows that repeat another one in probabilities and label.

    ``probs`` is (n, K), ``labels`` (n,). It is 0 if chance explains the repeats, as it does for
    coarse predictions.
    """
    n, rows = len(probs), np.arange(len(probs))
    if n > ROWS_INSPECTED:  # copies are drawn together; what is certain never differs
        p = largest(probs)
        lots = (p.view(np.uint64) * np.uint64(0x9E3779B97F4A7C15)) >> np.uint64(32)
        rows = np.flatnonzero((lots % np.uint64(n // ROWS_INSPECTED + 1) == 0) & (p < 1.0))
    if rows.size < 2 or not _copied(probs[rows], labels[rows]):
        return 0
    return n - np.unique(row_numbers(np.column_stack([_row_keys(probs), labels]))).size


def _row_keys(probs: FloatArray) -> IntArray:
    """Return integers (n, m), equal in rows whose probabilities ``probs`` (n, K) seem equal.

    They are the bits of the probabilities in m − 1 columns, spread over all, and of the largest
    one.
    """
    step = max(1, probs.shape[1] // COLUMNS_COMPARED)
    few = probs[:, ::step] if step > 1 else probs
    return np.column_stack([few, largest(probs)]).view(np.int64)


def _copied(probs: FloatArray, labels: IntArray) -> bool:
    """Return whether rows repeat with one label more often than chance explains.

    ``probs`` is (n, K), ``labels`` (n,).
    """
    two = probs.shape[1] == 2
    p = np.ascontiguousarray(probs[:, 1]) if two else largest(probs)
    if (np.diff(np.sort(p)) > 0.0).all():
        return False
    numbers = p.view(np.int64) if two else row_numbers(_row_keys(probs)).view(np.int64)
    order = np.lexsort((numbers, p))
    outcome = labels if two else labels == probs.argmax(axis=1)
    equal = np.diff(numbers[order]) == 0
    if not equal.any():
        return False
    differ = np.diff(outcome[order].astype(np.int64)) != 0
    unlike = float((equal & differ).sum())
    if unlike == 0.0 and _equally_often(probs, equal):
        return True
    first = np.arange(0, equal.size, TOGETHER)
    rate = np.add.reduceat(differ, first, dtype=float) / np.diff(np.append(first, equal.size))
    expected = float(rate @ np.add.reduceat(equal, first, dtype=float))
    if unlike > 0.5 * expected:
        return False
    # Chernoff's bound for a Poisson variable
    return (
        unlike - expected - (unlike * np.log(unlike / expected) if unlike else 0.0)
        < COPIES_SURPRISE
    )


def _equally_often(probs: FloatArray, equal: NDArray[np.bool_]) -> bool:
    """Return whether all predictions occur a multiple of the same number of times.

    ``probs`` is (n, K). ``equal`` (n − 1,) says where rows in sorted order equal the next one.
    False for short decimals, and for few distinct rows.
    """
    starts = np.flatnonzero(np.append(True, ~equal))
    often = np.diff(np.append(starts, equal.size + 1))
    short = np.abs(probs - probs.round(6)).max() < 1e-9
    return starts.size >= EQUALLY_OFTEN and np.gcd.reduce(often) > 1 and not short


#: Labels that are all predicted are doubted when so many misses were to be expected; values that
#: look like something else, when there are more than so many rows.
MISSES = 7.0


def doubts(
    probs: FloatArray, labels: IntArray, values: object, from_logits: bool, folds: bool = False
) -> Iterator[str]:
    """Yield doubts about the values of probabilities and labels, one sentence each.

    ``probs`` (n, K) and ``labels`` (n,) are validated, ``values`` as they were passed, logits if
    ``from_logits``. With ``folds`` predictions may match the labels on average, because models know
    other rows' labels. Nothing is yielded for parts of data, because the whole decides.
    """
    if _AS_THEY_ARE.get():
        return
    top, n = largest(probs), len(probs)
    # The residuals of every class add up to 0, which labels drawn from the predictions rarely do
    sums = probs.sum(axis=0) - np.bincount(labels, minlength=probs.shape[1])
    if not folds and np.abs(sums).max() < 1e-6:
        thousandths = 1000.0 * probs
        surprising = (1.0 - np.square(probs).sum(axis=1)).sum() >= 2.0 * MISSES
        if surprising and np.abs(thousandths - np.rint(thousandths)).max() > 1e-9:
            yield (
                "predictions add up to exactly the number of events: were they fitted to these "
                "labels, or cross-validated? Test rows that were not used, or pass folds="
            )
    missed = float((1.0 - top).sum())
    if from_logits:
        logits = as_array(values, "probs").astype(np.float64)
        if logits.ndim == 1 and n > MISSES and logits.min() >= 0.0 and logits.max() <= 1.0:
            yield "from_logits was asked for, but the values look like probabilities already"
    elif top.min() == 1.0 and n > MISSES:
        yield "all probabilities are 0 or 1: these may be class labels, not probabilities"
    elif missed >= MISSES and all(
        np.array_equal(probs[:some].argmax(axis=1), labels[:some]) for some in (1000, None)
    ):
        if labels.min() == labels.max():
            return  # no event among rare ones
        yield (
            f"every label is the class of the largest probability, where {missed:.0f} misses of "
            f"{n} were to be expected: these may be predicted classes, not what was observed"
        )
