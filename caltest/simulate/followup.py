"""Follow-up redrawn with the outcomes that were predicted, and its weights."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np

from caltest._base.compiled import counter_kernel, inlined
from caltest.errors import StatisticError
from caltest.followup import COMPETING, EVENT, Censoring
from caltest.predictions import FloatArray, IntArray, Predictions
from caltest.simulate.schemes import Scheme
from caltest.simulate.streams import GAMMA, WHOLE, Seed, keys, mixed

#: Events of a kind in a stratum from which on their times are drawn there, and not from all.
ENOUGH = 5


@dataclass(frozen=True, repr=False)
class RedrawFollowup(Scheme):
    """Keep the predictions, draw outcomes from them and follow-up from what was seen.

    The null of :class:`Followup`. Of the rows without the event a share Σ W 1{competing} / Σ W
    1{not the event} has a competing one. Times of events are drawn from those of their kind in the
    stratum, with probabilities ∝ W, or from those of all strata where there are fewer than 5, and
    times of censoring from Ĝ, whose mass beyond the horizon is free. What is drawn has weights and
    residuals of its own: Ĝ is fitted anew. Without unknown rows this is :class:`RedrawLabels`.

    Notes
    -----
    O(n log n) once; some 60 ns a row and draw. Weights that are kept, residuals that are multiplied
    by random signs, and merged strata were simulated, and reject calibrated models too often.
    """

    def drawer(self, data: Predictions) -> FollowupDrawer:
        """Prepare the laws of times in every stratum."""
        if data.followup is None:
            raise StatisticError(f"{self!r} is for rows with follow-up: pass Followup(…) as labels")
        return FollowupDrawer.of(data.risks, data.censoring)


@dataclass(frozen=True, eq=False)
class FollowupDrawer:
    """Draws signed weights of follow-up: replicate r of a seed is always the same.

    A signed weight is W of a row with the event, −W of a row known to be without, 0 of others.

    ``times`` holds, for the slots of all strata (see :class:`~caltest.followup.Censoring`), the
    distribution functions of the place of an event, of a competing event and of censoring, in 53
    bits; ``rows`` are ordered by stratum.
    """

    thresholds: IntArray = field(repr=False)
    rows: IntArray = field(repr=False)
    row_starts: IntArray = field(repr=False)
    slot_starts: IntArray = field(repr=False)
    competing: IntArray = field(repr=False)
    times: IntArray = field(repr=False)

    @classmethod
    def of(cls, p: FloatArray, censoring: Censoring) -> FollowupDrawer:
        """Prepare; O(n log n)."""
        status, w, groups = censoring.followup.status, censoring.weights, censoring.groups
        rows, slots = np.argsort(groups, kind="stable"), censoring.starts
        row_starts = np.append(0, np.cumsum(np.bincount(groups)))
        times = np.ones((3, slots[-1]))
        for s, (a, b) in enumerate(pairwise(slots)):
            stratum = rows[row_starts[s] : row_starts[s + 1]]
            for k, kind in enumerate((EVENT, COMPETING)):
                enough = (status[stratum] == kind).sum() >= ENOUGH
                times[k, a:b] = _law(censoring, kind, stratum if enough else rows, a, b)
        times[2] = censoring.by_stratum(lambda left: 1.0 - np.append(left[1:], 0.0), censoring.left)
        competing, rest = (
            np.bincount(groups, w * (status == COMPETING)),
            np.bincount(groups, w * (status != EVENT)),
        )
        # Thresholds of whole words, as u < c means 2⁵³ u < ⌈2⁵³ c⌉.
        numbers = [
            np.ceil(values * WHOLE).astype(np.int64)
            for values in (p, competing / np.maximum(rest, 1e-300), times)
        ]
        return cls(numbers[0], rows, row_starts, slots, numbers[1], numbers[2])

    def __call__(self, seed: Seed, first: int, count: int, out: object = None) -> FloatArray:
        """Return those of replicates ``first``, …, ``first + count − 1``: (count, n)."""
        signed = np.empty((count, self.thresholds.size))
        size = int(np.diff(self.slot_starts).max())
        room = np.empty(self.thresholds.size, dtype=np.int64), np.empty(size), np.empty(size)
        fixed = (self.thresholds, self.rows, self.row_starts, self.slot_starts, self.competing)
        _redraw(*fixed, self.times, *keys(seed, first, count)[:2], *room, signed)
        return signed


def _law(censoring: Censoring, kind: int, rows: IntArray, a: int, b: int) -> FloatArray:
    """Return the distribution function of the place of an event of some rows in slots a to b."""
    of_kind = rows[censoring.followup.status[rows] == kind]
    if not of_kind.size:
        return np.ones(b - a)
    order = of_kind[np.argsort(censoring.followup.time[of_kind])]
    mass = np.append(0.0, np.cumsum(censoring.weights[order]))
    until = np.searchsorted(censoring.followup.time[order], censoring.cut[a:b], side="right")
    return mass[until] / mass[-1]


@inlined
def _place(times, word, low, high):  # type: ignore[no-untyped-def]
    # The first place from low on whose distribution function is above a word, or high.
    while low < high:
        middle = (low + high) // 2
        if times[middle] <= word:
            low = middle + 1
        else:
            high = middle
    return low


@counter_kernel
def _redraw(  # type: ignore[no-untyped-def]
    thresholds, rows, row_starts, slot_starts, competing, times, key, twist,
    place, ended, censored, out,
):  # fmt: skip
    # O(n log m) for each replicate, m places in a stratum. The words of row i are those of the
    # counters i (the one of its redrawn label), n + i, 2 n + i and 3 n + i. place holds the place
    # of a known row, −1 − place of an unknown one.
    n = np.uint64(thresholds.size)
    for r in range(key.size):
        for s in range(row_starts.size - 1):
            first, last = slot_starts[s], slot_starts[s + 1] - 1
            size = last - first
            ended[: size + 1] = 0.0
            censored[: size + 1] = 0.0
            for j in range(row_starts[s], row_starts[s + 1]):
                i = rows[j]
                at, step = key[r] + GAMMA * np.uint64(i), GAMMA * n
                event = mixed(at, twist[r]) < thresholds[i]
                out[r, i] = 1.0 if event else -1.0
                if size == 0:
                    place[j] = 0
                    continue
                kind = 0 if event else -1
                at += step
                if not event and competing[s] > 0 and mixed(at, twist[r]) < competing[s]:
                    kind = 1
                happens = size
                at += step
                if kind >= 0:
                    happens = _place(times[kind], mixed(at, twist[r]), first, last) - first
                at += step
                lost = _place(times[2], mixed(at, twist[r]), first, last) - first
                if lost < happens:
                    place[j] = -1 - lost
                    censored[lost] += 1.0
                else:
                    place[j] = happens
                    ended[happens] += 1.0
            # Ĝ, written over the numbers that were censored.
            left, at_risk = 1.0, float(row_starts[s + 1] - row_starts[s])
            for k in range(size + 1):
                lost_here = censored[k]
                censored[k] = left
                at_risk -= ended[k]
                if lost_here > 0.0:
                    left *= 1.0 - lost_here / at_risk
                at_risk -= lost_here
            for j in range(row_starts[s], row_starts[s + 1]):
                i = rows[j]
                out[r, i] = 0.0 if place[j] < 0 else out[r, i] / censored[place[j]]
