"""Sums over pairs of rows along a line, of redrawn labels: drawing and adding in one pass."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from caltest._base.compiled import counter_kernel, inlined
from caltest.predictions import FloatArray, IntArray
from caltest.simulate.labels import label_tables
from caltest.simulate.streams import FIRST_FACTOR, GAMMA, SECOND_FACTOR, Seed, keys


@dataclass(frozen=True, eq=False)
class LineRedraws:
    """A function of Σ_{i≠j} k_ij r_i·r_j and Σ r_i·r_i, for two classes and exponential kernels.

    ``decay`` are the kernel values of neighbours in the order of the rows. Labels are those of
    :class:`~caltest.simulate.labels.LabelDrawer`; some 1.2 ns per row and replicate.
    """

    order: IntArray = field(repr=False)
    p: FloatArray = field(repr=False)
    decay: FloatArray = field(repr=False)
    thresholds: IntArray = field(repr=False)
    value: Callable[[FloatArray, FloatArray], FloatArray] = field(repr=False)

    @classmethod
    def of(
        cls,
        probs: FloatArray,
        order: IntArray,
        decay: FloatArray,
        value: Callable[[FloatArray, FloatArray], FloatArray],
    ) -> LineRedraws:
        """Prepare the rows of ``probs``, shape (n, 2), in their order along the line."""
        thresholds = np.ascontiguousarray(label_tables(probs, order, False)[0][:, 0])
        return cls(order, probs[order, 0], decay, thresholds, value)

    def replicates(self, seed: Seed, first: int, count: int) -> FloatArray:
        """Return replicates ``first``, …, ``first + count − 1``."""
        totals, squares = np.zeros(count), np.zeros(count)
        rows = (self.order, self.p, self.decay, self.thresholds)
        _line_sums(*rows, *keys(seed, first, count)[:2], totals, squares)
        return self.value(4.0 * totals, 2.0 * squares)


@inlined
def _mixed(z, twist):  # type: ignore[no-untyped-def]
    # As in labels: a kernel calls no helper of another file.
    z = (z ^ (z >> np.uint64(30))) * FIRST_FACTOR ^ twist
    z = (z ^ (z >> np.uint64(27))) * SECOND_FACTOR
    return np.int64((z ^ (z >> np.uint64(31))) >> np.uint64(11))


@counter_kernel
def _line_sums(  # type: ignore[no-untyped-def]
    order, p, decay, thresholds, key, twist, totals_out, squares_out
):
    # O(n) per lane: Σ_{i<j} k_ij r_i r_j and Σ r_i².
    lanes = key.size
    carry = np.zeros(lanes)
    draw = np.empty(lanes, dtype=np.int64)
    for i in range(p.size):
        for q in range(lanes):
            draw[q] = _mixed(key[q] + GAMMA * np.uint64(order[i]), twist[q])
        threshold, miss, fade = thresholds[i], -p[i], decay[i]
        hit = 1.0 + miss
        for q in range(lanes):
            r = hit if draw[q] < threshold else miss
            before = carry[q] * fade
            totals_out[q] += r * before
            squares_out[q] += r * r
            carry[q] = before + r
