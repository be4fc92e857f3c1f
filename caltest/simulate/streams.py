"""Random words that depend on a seed and a number only, so that runs can be cut anywhere.

A replicate's key is two words of Philox (Salmon et al. 2011). Its words are counted by SplitMix64
(Steele et al. 2014) with the second word mixed in half-way, so that streams whose counters meet
still differ: two of B streams of n words share a part with a chance of less than B² n / 2¹²⁷.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

GAMMA = np.uint64(0x9E3779B97F4A7C15)
FIRST_FACTOR = np.uint64(0xBF58476D1CE4E5B9)
SECOND_FACTOR = np.uint64(0x94D049BB133111EB)

#: Uniforms are multiples of 2⁻⁵³, as NumPy's: u < c means 2⁵³ u < ⌈2⁵³ c⌉ in whole numbers.
WHOLE = 1 << 53

#: Two numbers below 2⁶⁴.
Seed = tuple[int, int]


def keys(seed: Seed, first: int, count: int) -> NDArray[np.uint64]:
    """Return the four key words of streams ``first``, …, ``first + count − 1``, one row a word."""
    philox = np.random.Philox(key=np.array(seed, dtype=np.uint64), counter=first)
    return np.ascontiguousarray(philox.random_raw(4 * count).reshape(count, 4).T)
