"""Types of arrays, what NumPy does slowly, and which values count as equal."""

from functools import reduce
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
BoolArray = NDArray[np.bool_]
ComplexArray = NDArray[np.complex128]
AnyArray = NDArray[Any]

#: One value a row as users hold it: a list, an array, or a column of a frame of any library.
Values = ArrayLike | object
#: What verbs are asked of: probabilities as in ``Values``, checked predictions, or a tally.
Source = Values
#: What makes a generator: nothing, a seed, or one of NumPy's.
RNG = int | np.integer | np.random.Generator | np.random.SeedSequence | None

#: Up to so many columns, comparing columns takes a third to a thirtieth of ``max(axis=1)``.
FEW_COLUMNS = 16


def largest(rows: FloatArray) -> FloatArray:
    """Return the largest value of each row."""
    few = rows.shape[1] <= FEW_COLUMNS
    return np.array(reduce(np.maximum, rows.T) if few else rows.max(axis=1))


def by_value(p: FloatArray) -> tuple[IntArray, IntArray]:
    """Return the places of p in increasing order, and where each group of equal values ends."""
    order = np.argsort(p, kind="stable")
    return order, np.append(np.flatnonzero(np.diff(p[order])) + 1, p.size)


def codes(values: ArrayLike) -> IntArray:
    """Return the number of every value among the distinct ones, which increase: 0, 1, …; (n,)."""
    return np.unique(values, return_inverse=True)[1].ravel()  # NumPy 2.0 keeps the shape


def below(t: float, values: FloatArray) -> float:
    """Return the threshold from which on one of the values counts as a tie with t or as larger.

    Frequencies are of order 1: their differences carry rounding of 1e-16 however small they are.
    """
    scale = max(abs(float(values.min())), abs(float(values.max())))
    return t - (1e-10 * abs(t) + 1e-12 * scale + 1e-15)


def reaching(
    t: float, values: FloatArray, two_sided: bool = False, centre: float = 0.0
) -> BoolArray:
    """Return which values speak at least as loudly against calibration as t, ties included."""
    if two_sided:
        t, values = abs(t - centre), np.abs(values - centre)
    return values >= below(t, values)
