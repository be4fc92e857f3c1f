"""Which values count as equal: statistics of labels are discrete, rounding must not split ties."""

from __future__ import annotations

import numpy as np

from caltest._base.arrays import BoolArray, FloatArray


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
