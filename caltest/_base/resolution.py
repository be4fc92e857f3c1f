"""The numbers that were meant: decimals and fractions, before a type of few bits rounded them.

0.3 in 32 bits is 0.30000001192…: its complement is not the 0.7 of another row, ten of them do not
add up to 3, and ties of statistics fall apart. Where all numbers are the nearest of their type to a
short decimal, or to a fraction of one denominator, these are meant.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import NamedTuple

import numpy as np

from caltest._base.arrays import AnyArray, FloatArray

#: Numbers that are looked at before all others: they tell most data without decimals.
SAMPLE, FIRST = 64, 8
#: Different values, not all shares of 128, from which on a type of 16 bits is seen in a wider one.
ENOUGH = 12
#: Decimals of numbers in 64 bits from which rounding is removed, and how much of it.
PLACES, ROUNDING = 1e9, 2.3e-16
_POWERS = np.array([float(f"1e{j}") for j in range(23)])


class Type(NamedTuple):
    """How a type rounds, the decimal digits that it always keeps, and the fractions it tells."""

    rounded: Callable[[FloatArray], AnyArray]
    digits: int
    denominators: FloatArray


def _to_bfloat16(values: FloatArray) -> AnyArray:
    # The upper half of a float32, ties to even.
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
    """Take numbers as they are: what some rows look like must not depend on which are read."""
    token = _AS_THEY_ARE.set(True)
    try:
        yield
    finally:
        _AS_THEY_ARE.reset(token)


def meant(values: FloatArray, dtype: str) -> tuple[FloatArray, str | None]:
    """Return the numbers behind float64 values ≥ 0, and the type, if any, that had rounded them."""
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
        telling = np.unique(few).size >= ENOUGH and bool((few * 128.0 % 1.0).any())
        names = list(TYPES) if telling else ["float32"]
    for name in names:
        meanings = _behind(values, few, TYPES[name])
        if meanings is not None:
            return (values, None) if np.array_equal(meanings, values) else (meanings, name)
    return values, None


def _without_rounding(values: FloatArray) -> FloatArray | None:
    """Return the decimals next to values such as 1 − 0.7, or None where some are no decimals."""
    decimals = np.rint(values * PLACES) / PLACES
    far = np.abs(decimals - values) > np.minimum(ROUNDING, 1e-11 * values)
    return None if far.any() else decimals


def _behind(values: FloatArray, few: FloatArray, of_type: Type) -> FloatArray | None:
    rounded, digits, denominators = of_type
    if (rounded(few) != few).any():
        return None
    decimals = bool((rounded(_decimals(few, digits)) == few).all())
    if not decimals:
        m = denominators[:, None]
        for part in (few[:FIRST], few):
            m = m[(rounded(np.rint(part * m) / m) == part).all(axis=1)]
        if not m.size:
            return None
    numbers = _decimals(values, digits) if decimals else np.rint(values * m[0]) / m[0]
    return numbers if bool((rounded(numbers) == values).all()) else None


def _decimals(values: FloatArray, digits: int) -> FloatArray:
    """Round to so many significant digits, exactly: a quotient of whole numbers."""
    size = np.floor(np.log10(np.where(values > 0.0, values, 1.0))).astype(np.int64)
    scale = _POWERS[np.clip(digits - 1 - size, 0, 22)]
    return np.rint(values * scale) / scale
