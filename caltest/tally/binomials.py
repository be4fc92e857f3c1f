"""Draws of numbers of events in many cells, of which each has a law of its own."""

from __future__ import annotations

import numpy as np

from caltest._base.compiled import lane_kernel
from caltest.predictions import FloatArray, IntArray
from caltest.simulate.streams import GAMMA, UNIT, Seed, keys, mixed

#: A law ends where it is below so much of its largest probability.
ENDS = 1e-19


def binomials(
    rows: IntArray, p: FloatArray, rest: FloatArray, seed: Seed, first: int, count: int
) -> FloatArray:
    """Draw numbers of events of cells, (count, C), by seed, replicate (from ``first``) and cell."""
    draws, chance = np.empty((count, rows.size)), np.minimum(p, rest)
    spread = float((rows * chance * (1.0 - chance)).max())
    reach = int(32.0 + np.sqrt(1024.0 + 92.0 * spread))  # of e⁻⁴⁴ by Bernstein's inequality
    room = np.empty(2 * reach + 1), np.empty(4 * reach + 2, dtype=np.int64), np.empty(count)
    _draw(rows, chance, p > rest, *keys(seed, first, count)[:2], *room, draws)
    return draws


@lane_kernel
def _draw(rows, chance, turned, key, twist, law, guide, u, draws_out):  # type: ignore[no-untyped-def]
    # O(C (B + W)) for laws of W values, by inversion from the guide of Chen & Asau (1974).
    reach = law.size // 2
    for c in range(rows.size):
        n, odds = rows[c], chance[c] / (1.0 - chance[c])
        mode = int((n + 1) * chance[c])
        low = high = reach
        law[reach] = 1.0
        while law[high] > ENDS and high < 2 * reach and mode + high - reach < n:
            k = mode + high - reach
            law[high + 1] = law[high] * (odds * (n - k) / (k + 1))
            high += 1
        while law[low] > ENDS and low > 0 and mode + low - reach > 0:
            k = mode + low - reach
            law[low - 1] = law[low] * (k / (odds * (n - k + 1)))
            low -= 1
        for j in range(low + 1, high + 1):
            law[j] += law[j - 1]
        parts, total, j = 1, law[high], low
        while parts <= high - low:
            parts *= 2
        law[high] = np.inf
        for i in range(parts):
            while law[j] * parts <= i * total:
                j += 1
            guide[i] = j
        step = GAMMA * np.uint64(c)
        for q in range(key.size):
            u[q] = mixed(key[q] + step, twist[q]) * UNIT
        for q in range(key.size):
            j = guide[int(u[q] * parts)]
            while law[j] <= u[q] * total:
                j += 1
            k = mode + j - reach
            draws_out[q, c] = n - k if turned[c] else k
