"""Types of arrays, and what NumPy does slowly."""

from functools import reduce

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
BoolArray = NDArray[np.bool_]

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
