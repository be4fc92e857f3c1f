"""Array types, equality up to rounding, checks of parameters, and progress.

:func:`reaching` decides what counts as at least as extreme, ties up to rounding included;
:func:`number`, :func:`whole` and :func:`one_of` refuse parameters out of range by name;
:func:`progress` shows a bar after two seconds.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from functools import reduce
from shutil import get_terminal_size
from threading import Lock
from typing import Any, Literal, TypeGuard

import numpy as np
from numpy.typing import ArrayLike, NDArray

from caltest.errors import StatisticError

FloatArray = NDArray[np.float64]


IntArray = NDArray[np.int64]


BoolArray = NDArray[np.bool_]


ComplexArray = NDArray[np.complex128]


AnyArray = NDArray[Any]


#: One value a row as users hold it: a list, an array, or a column of a frame of any library.
Values = ArrayLike | object


#: What verbs are asked of: probabilities as in ``Values``, checked predictions, or a tally.
ProbsOrData = Values


#: What makes a generator: nothing, a seed, or one of NumPy's.
RNG = int | np.integer | np.random.Generator | np.random.SeedSequence | None


#: Up to so many columns, comparing columns takes a third to a thirtieth of ``max(axis=1)``.
FEW_COLUMNS = 16


def largest(rows: FloatArray) -> FloatArray:
    """Return the largest value of each row, shape (n,)."""
    few = rows.shape[1] <= FEW_COLUMNS
    return np.array(reduce(np.maximum, rows.T) if few else rows.max(axis=1))


def by_value(p: FloatArray) -> tuple[IntArray, IntArray]:
    """Return (order, ends): the increasing order of p, and the end of each run of ties.

    ``order`` has shape (n,) and ``ends`` (m,), for m distinct values.
    """
    order = np.argsort(p, kind="stable")
    return order, np.append(np.flatnonzero(np.diff(p[order])) + 1, p.size)


def codes(values: ArrayLike) -> IntArray:
    """Return the rank of every value among the sorted distinct values, integers from 0.

    The shape is (n,).
    """
    return np.unique(values, return_inverse=True)[1].ravel()  # NumPy 2.0 keeps the shape


def quarters(values: FloatArray | IntArray) -> IntArray:
    """Return the quarter (0 to 3) of each row by rank, shape (n,); equal values share one."""
    # The rank of a value is the number of smaller ones; partitions are ten times as fast as sorts.
    last = (np.arange(1, 4) * values.size + 3) // 4 - 1
    return np.searchsorted(np.partition(values, last)[last], values)


def below(t: float, values: FloatArray) -> float:
    """Return the smallest number that counts as at least ``t`` in a comparison with ``values``.

    It is t less the rounding error of the values, so that ties count. Frequencies are of order 1:
    their differences carry an error of 1e-16 however small they are.
    """
    scale = max(abs(float(values.min())), abs(float(values.max())))
    return t - (1e-10 * abs(t) + 1e-12 * scale + 1e-15)


def reaching(
    t: float, values: FloatArray, two_sided: bool = False, centre: float = 0.0
) -> BoolArray:
    """Return which replicates are at least as extreme as ``t``, booleans (B,), ties included.

    ``values`` (B,) are the replicates. With ``two_sided`` distances from ``centre`` are compared.
    Values within rounding of t count as ties.
    """
    if two_sided:
        t, values = abs(t - centre), np.abs(values - centre)
    return values >= below(t, values)


# ------------------------------------------------------------------------------
# Refusals of parameters, in one wording.


def one_of(name: str, value: object, choices: Collection[object]) -> None:
    """Raise StatisticError if a parameter's value is not among its choices.

    ``name`` is the parameter; the message lists the choices.
    """
    if value not in choices:
        words = [repr(word) for word in choices]
        choice = " or ".join(words) if len(words) == 2 else f"one of {', '.join(words)}"
        raise StatisticError(f"{name} must be {choice}, not {value!r}")


def number(name: str, value: object, low: float, high: float, ends: str = "()") -> None:
    """Raise StatisticError unless a value is a number between ``low`` and ``high``.

    ``ends`` is "()", "(]", "[)" or "[]": square brackets include an end. The message names the
    parameter and its range.
    """
    inside = False
    if isinstance(value, (float, np.floating)) or is_whole(value):
        at_end = (value, ends[0]) == (low, "[") or (value, ends[1]) == (high, "]")
        inside = at_end or bool(low < value < high)
    if not inside:
        place = f"lie in {ends[0]}{low:g}, {high:g}{ends[1]}"
        place = place if high < np.inf else f"be a number > {low:g}"
        raise StatisticError(f"{name} must {place}, not {in_few_digits(value)}")


def fraction(name: str, value: object) -> None:
    """Raise StatisticError if the parameter ``name`` is not strictly between 0 and 1."""
    number(name, value, 0.0, 1.0)


#: More replicates, or bins, than this are a slip.
MOST_REPLICATES, MOST_BINS = 10**7, 10**6


def is_whole(value: object) -> TypeGuard[int]:
    """Return whether a value is an integer; booleans are not."""
    return isinstance(value, (int, np.integer)) and not isinstance(value, bool)


def whole(name: str, value: object, least: int = 1, most: int | None = None) -> None:
    """Raise StatisticError unless a value is an integer from ``least`` to ``most``.

    Booleans are refused. The message names the parameter and its range.
    """
    if not is_whole(value) or value < least:
        shown = in_few_digits(value)
        raise StatisticError(f"{name} must be a whole number ≥ {least}, not {shown}")
    if most is not None and value > most:
        raise StatisticError(f"{name} must be at most {most}, not {in_few_digits(value)}")


def in_few_digits(value: object) -> str:
    """Return a value as text; an integer of more than 64 bits by its number of digits."""
    if is_whole(value) and int(value).bit_length() > 64:
        return f"a whole number of {int(value).bit_length()} bits"
    return repr(value)


# ------------------------------------------------------------------------------
# The defaults that verbs share, one a kind.


#: Replicates behind one p-value or interval.
N_RESAMPLES = 9999


#: Replicates that serve many numbers at once: audits and pictures.
N_TOGETHER = 1999


#: Level of intervals.
INTERVAL_LEVEL = 0.95


#: Level of the bars and bands of pictures.
BAND_LEVEL = 0.9


# ------------------------------------------------------------------------------
# Progress bars for work that takes longer than two seconds.


#: How a simulation ends: with all replicates, by sequential stopping or by Ctrl-C.
Ended = Literal["complete", "early", "interrupted"]


#: Held by the one bar that may be shown.
_SHOWING = Lock()


@contextmanager
def progress(total: int | None, unit: str) -> Iterator[Callable[[int], None]]:
    """Context manager that yields a function to report steps done, for a progress bar.

    The bar shows on a terminal after two seconds, one at a time. ``total`` is the number of steps,
    None if unknown, and ``unit`` their name in the plural.
    """
    if total == 1 or not sys.stderr.isatty() or not _SHOWING.acquire(blocking=False):
        yield lambda steps: None
        return
    from tqdm import tqdm

    try:
        width = get_terminal_size().columns  # also where a terminal has none
        with tqdm(total=total, unit=f" {unit}", delay=2.0, leave=False, ncols=width) as bar:
            yield lambda steps: (bar.update(steps), None)[1]
    finally:
        _SHOWING.release()
