"""Residuals permuted among rows of about equal predictions: what equal subgroups would show."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from caltest._base.compiled import counter_kernel
from caltest.predictions import BoolArray, FloatArray, IntArray
from caltest.simulate.streams import GAMMA, UNIT, Seed, keys, mixed

#: Rows of neighbouring predictions that are taken for equal.
STRATUM = 20


@dataclass(frozen=True, eq=False)
class Permutations:
    """How far the walks of subgroups go when the residuals of every stratum are permuted.

    Rows are sorted by prediction and cut into strata of 20, equal predictions in one. Walk j adds
    up, stratum by stratum, what the residuals of its members exceed the mean of the stratum by;
    what counts is its range. A stratum counts for it where members and others interleave, in that
    the ranges of their predictions meet: elsewhere they are not comparable.
    ``support`` (J,) are the rows of these strata.
    """

    excess: FloatArray = field(repr=False)
    starts: IntArray = field(repr=False)
    row: IntArray = field(repr=False)
    group: IntArray = field(repr=False)
    support: IntArray

    @property
    def n_groups(self) -> int:
        """Number of subgroups, J."""
        return self.support.size

    @classmethod
    def of(cls, p: FloatArray, residuals: FloatArray, members: BoolArray) -> Permutations:
        """Prepare predictions and residuals (n,), and who is in which subgroup (n, J)."""
        _, inverse, counts = np.unique(p, return_inverse=True, return_counts=True)
        # By the rank of the first of equal predictions, which then share a stratum.
        stratum = ((np.cumsum(counts) - counts) // STRATUM)[inverse]
        order = np.argsort(stratum, kind="stable")
        starts = np.flatnonzero(np.diff(stratum[order], prepend=-1, append=p.size))
        sizes = np.diff(starts)
        means = np.add.reduceat(residuals[order], starts[:-1]) / sizes
        excess, inside = residuals[order] - np.repeat(means, sizes), members[order]
        between = [_interleave(p[order], side, starts) for side in inside.T]
        comparable = np.repeat(np.reshape(between, (-1, sizes.size)), sizes, axis=1).T
        row, group = np.nonzero(inside & comparable)
        return cls(excess, starts, row, group, comparable.sum(axis=0))

    def observed(self) -> FloatArray:
        """Return the ranges of the walks as they are, shape (J,)."""
        return self._ranges(np.zeros((2, 1), dtype=np.uint64), shuffled=False)[0]

    def replicates(self, seed: Seed, first: int, count: int) -> FloatArray:
        """Return the ranges of permutations ``first``, …, ``first + count − 1``: (count, J)."""
        return self._ranges(keys(seed, first, count)[:2], shuffled=True)

    def _ranges(self, streams: NDArray[np.uint64], shuffled: bool) -> FloatArray:
        ranges = np.empty((streams.shape[1], self.n_groups))
        _walk(self.excess, self.starts, self.row, self.group, *streams, shuffled, ranges)
        return ranges


def _interleave(p: FloatArray, members: BoolArray, starts: IntArray) -> BoolArray:
    """Return in which strata the ranges of members and of others meet, shape (S,)."""
    low, high = (
        [extreme.reduceat(np.where(side, p, empty), starts[:-1]) for side in (members, ~members)]
        for extreme, empty in ((np.minimum, np.inf), (np.maximum, -np.inf))
    )
    return np.asarray((low[0] <= high[1]) & (low[1] <= high[0]))


@counter_kernel
def _walk(excess, starts, row, group, key, twist, shuffled, out):  # type: ignore[no-untyped-def]
    # O(n + memberships) for each permutation: Fisher and Yates in every stratum.
    n_groups = out.shape[1]
    moved = np.empty_like(excess)
    walk, low, high = np.empty(n_groups), np.empty(n_groups), np.empty(n_groups)
    for r in range(key.size):
        counter = key[r]
        moved[:] = excess
        walk[:], low[:], high[:] = 0.0, 0.0, 0.0
        t = 0
        for s in range(starts.size - 1):
            begin, end = starts[s], starts[s + 1]
            if shuffled:
                for i in range(end - 1, begin, -1):
                    j = begin + int(mixed(counter, twist[r]) * UNIT * (i - begin + 1))
                    moved[i], moved[j] = moved[j], moved[i]
                    counter += GAMMA
            while t < row.size and row[t] < end:
                walk[group[t]] += moved[row[t]]
                t += 1
            for g in range(n_groups):
                low[g], high[g] = min(low[g], walk[g]), max(high[g], walk[g])
        for g in range(n_groups):
            out[r, g] = high[g] - low[g]
