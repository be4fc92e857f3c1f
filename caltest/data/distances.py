"""Distances between rows of the probability simplex.

All take arrays whose last axis holds the classes and reduce this axis; :func:`rowwise` accepts a
name or a function of two vectors.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from caltest._base.arrays import FloatArray
from caltest.errors import StatisticError

#: A distance takes two probability vectors of the same length and returns a number.
Distance = Callable[[FloatArray, FloatArray], float]


def total_variation(r: FloatArray, g: FloatArray) -> FloatArray:
    """Return ½ ``Σ |r − g|`` along the last axis, in [0, 1].

    ``r`` and ``g`` are distributions, shape (…, K); the result has shape (…).
    """
    return 0.5 * np.abs(r - g).sum(axis=-1)


def manhattan(r: FloatArray, g: FloatArray) -> FloatArray:
    """Return ``Σ |r − g|`` along the last axis, in [0, 2]: twice the total variation distance.

    ``r`` and ``g`` are distributions, shape (…, K); the result has shape (…).
    """
    return np.abs(r - g).sum(axis=-1)


def euclidean(r: FloatArray, g: FloatArray) -> FloatArray:
    """Return ``√Σ (r − g)²`` along the last axis, in [0, √2].

    ``r`` and ``g`` are distributions, shape (…, K); the result has shape (…).
    """
    return np.sqrt(squared_euclidean(r, g))


def squared_euclidean(r: FloatArray, g: FloatArray) -> FloatArray:
    """Return ``Σ (r − g)²`` along the last axis, in [0, 2].

    ``r`` and ``g`` are distributions, shape (…, K); the result has shape (…).
    """
    return np.square(r - g).sum(axis=-1)


def chebyshev(r: FloatArray, g: FloatArray) -> FloatArray:
    """Return ``max |r − g|`` along the last axis, in [0, 1].

    ``r`` and ``g`` are distributions, shape (…, K); the result has shape (…).
    """
    return np.abs(r - g).max(axis=-1)


#: The distances that can be asked for by name, of all rows of two arrays at once.
DISTANCES_BY_NAME: dict[str, Callable[[FloatArray, FloatArray], FloatArray]] = {
    "tv": total_variation,
    "l1": manhattan,
    "l2": euclidean,
    "sqeuclidean": squared_euclidean,
    "max": chebyshev,
}


def rowwise(distance: str | Distance) -> Callable[[FloatArray, FloatArray], FloatArray]:
    """Return the function that measures all rows of two ``(L, K)`` arrays at once, shape (L,).

    ``distance`` is a name such as "tv" or "l2", or a function of two probability vectors, such as
    the functions of :mod:`scipy.spatial.distance`; StatisticError for anything else.
    """
    if isinstance(distance, str):
        if distance not in DISTANCES_BY_NAME:
            raise StatisticError(
                f"unknown distance {distance!r}; choose one of "
                f"{', '.join(map(repr, DISTANCES_BY_NAME))}, or pass a function of "
                "two probability vectors"
            )
        return DISTANCES_BY_NAME[distance]
    if not callable(distance):
        raise StatisticError(f"distance must be a name or a function, not {distance!r}")

    def measure(r: FloatArray, g: FloatArray) -> FloatArray:
        return np.array([distance(a, b) for a, b in zip(r, g, strict=True)], dtype=np.float64)

    return measure
