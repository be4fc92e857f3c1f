"""Random words that depend on a seed and a number only, so that runs can be cut anywhere.

A replicate's key is two words of Philox (Salmon et al. 2011). Its words are counted by SplitMix64
(Steele et al. 2014) with the second word mixed in half-way, so that streams whose counters meet
still differ: two of B streams of n words share a part with a chance of less than B² n / 2¹²⁷.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from caltest._base.compiled import inlined

GAMMA = np.uint64(0x9E3779B97F4A7C15)
FIRST_FACTOR = np.uint64(0xBF58476D1CE4E5B9)
SECOND_FACTOR = np.uint64(0x94D049BB133111EB)

#: Uniforms are multiples of 2⁻⁵³, as NumPy's: u < c means 2⁵³ u < ⌈2⁵³ c⌉ in whole numbers.
WHOLE = 1 << 53

#: One of 2⁵³ equal parts of [0, 1).
UNIT = 2.0**-53
#: Two numbers below 2⁶⁴.
Seed = tuple[int, int]


@inlined
def mixed(z, twist):  # type: ignore[no-untyped-def]
    """Return 53 random bits of a counter: the same for one replicate and row in every kernel."""
    z = (z ^ (z >> np.uint64(30))) * FIRST_FACTOR ^ twist
    z = (z ^ (z >> np.uint64(27))) * SECOND_FACTOR
    return np.int64((z ^ (z >> np.uint64(31))) >> np.uint64(11))


@inlined
def shift_of(width):  # type: ignore[no-untyped-def]
    """Return by how much to shift a draw, to tell in which of ``width`` equal parts it lies."""
    part, shift = WHOLE // width, 0
    while part >> shift > 1:
        shift += 1
    return shift


def keys(seed: Seed, first: int, count: int) -> NDArray[np.uint64]:
    """Return the four key words of streams ``first``, …, ``first + count − 1``, one row a word."""
    philox = np.random.Philox(key=np.array(seed, dtype=np.uint64), counter=first)
    return np.ascontiguousarray(philox.random_raw(4 * count).reshape(count, 4).T)
