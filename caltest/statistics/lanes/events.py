"""Redrawn labels of two-class statistics whose rows are sorted: many replicates at once."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from caltest._numba import kernel
from caltest.predictions import BoolArray, FloatArray, IntArray
from caltest.statistics.lanes.streams import FIRST_FACTOR, GAMMA, SECOND_FACTOR, WHOLE, keys

#: Bytes of drawn events that are evaluated together. No number depends on it.
AT_ONCE = 2**18


@dataclass(frozen=True, eq=False)
class EventRedraws:
    """The null of a two-class statistic: fixed predictions, events drawn from them.

    Row ``order[i]`` has label 0 when U(seed, replicate, order[i]) lies below its probability; the
    uniforms are those of :class:`~caltest.statistics.lanes.CellRedraws`, so that statistics with
    the same seed see the same labels. ``values`` turns events of shape (B, n), in that order, into
    the B values of the statistic.

    Notes
    -----
    Some 0.5 ns per row and replicate for the drawing.
    """

    order: IntArray = field(repr=False)
    thresholds: IntArray = field(repr=False)
    values: Callable[[BoolArray], FloatArray] = field(repr=False)

    @classmethod
    def of(cls, order: IntArray, probs: FloatArray, values: Any) -> EventRedraws:
        """Prepare the rows of ``probs``, of shape (n, 2), in the order given."""
        ordered = probs[order]
        thresholds = np.ceil(ordered[:, 0] * WHOLE).astype(np.int64)
        thresholds[ordered[:, 1] <= 0.0] = WHOLE
        return cls(order, thresholds, values)

    def replicates(self, seed: tuple[int, int], first: int, count: int) -> FloatArray:
        """Return replicates ``first``, …, ``first + count − 1``."""
        results = np.empty(count)
        at_once = max(1, AT_ONCE // self.order.size)
        for a in range(0, count, at_once):
            part = results[a : a + at_once]
            events = np.empty((part.size, self.order.size), dtype=np.bool_)
            key, twist = keys(seed, first + a, part.size)[:2]
            _draw(self.order, self.thresholds, key, twist, events)
            part[:] = self.values(events)
        return results


def in_order(labels: IntArray, order: IntArray) -> BoolArray:
    """Return the events of one set of labels in the order of the rows, shape (1, n)."""
    return (labels[order] == 0)[None, :]


@kernel
def _draw(order, thresholds, key, twist, events_out):  # type: ignore[no-untyped-def]
    # The random words of CellRedraws: same row, same replicate, same uniform.
    for q in range(key.size):
        for i in range(order.size):
            z = key[q] + GAMMA * np.uint64(order[i])
            z = (z ^ (z >> 30)) * FIRST_FACTOR ^ twist[q]
            z = (z ^ (z >> 27)) * SECOND_FACTOR
            events_out[q, i] = np.int64((z ^ (z >> 31)) >> 11) < thresholds[i]
