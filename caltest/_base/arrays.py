"""Types of arrays, and what NumPy does slowly."""

from functools import reduce
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
BoolArray = NDArray[np.bool_]
AnyArray = NDArray[Any]

#: One value a row as users hold it: a list, an array, or a column of a frame of any library.
Values = ArrayLike | Any
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
