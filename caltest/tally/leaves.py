"""The problem of a vector tally, and draws of the labels in its leaves."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Self

import numpy as np

from caltest._base.written import name_of
from caltest.binning import VarianceTree
from caltest.errors import StatisticError
from caltest.predictions import FloatArray, IntArray
from caltest.statistics.cells import Cells
from caltest.tally.counts import Value
from caltest.tally.rows import HIGH, LOW, UNIT
from caltest.tally.vectors import TOTALS, VectorTally

#: Numbers in an array of drawn counts.
AT_ONCE = 2**21


@dataclass(frozen=True, eq=False)
class Leaves:
    """What a vector tally shows, with numbers in place of rows: C leaves of K classes.

    It stands where statistics have their predictions: ``probs`` (C, K) are the mean predictions,
    ``labels`` (C, K) the numbers of labels, ``squares`` (C, K) the sums of squared predictions.
    """

    tally: VectorTally = field(repr=False)
    count: FloatArray = field(repr=False)
    expected: FloatArray = field(repr=False)
    squares: FloatArray = field(repr=False)
    labels: IntArray = field(repr=False)

    n_clusters = clusters = weights = None

    @classmethod
    def of(cls, tally: VectorTally) -> Self:
        """Read the sums of a tally; O(C K)."""
        if tally.n == 0:
            raise StatisticError("the tally is empty: add rows first")
        count = tally.count.astype(np.float64)
        expected, squares = (tally.sums[..., j] / UNIT for j in range(2))
        expected *= (count / expected.sum(axis=1))[:, None]
        return cls(tally, count, expected, squares, tally.sums[..., 2])

    @property
    def n(self) -> int:
        """Number of rows."""
        return self.tally.n

    @property
    def n_classes(self) -> int:
        """Number of classes that the lens leaves."""
        return self.labels.shape[1]

    @cached_property
    def probs(self) -> FloatArray:
        """The mean predictions."""
        return self.expected / self.count[:, None]

    @property
    def impossible(self) -> IntArray:
        """As many zeros as outcomes had probability 0."""
        return np.broadcast_to(np.int64(0), (self.tally.refuted,))

    @property
    def said(self) -> str:
        """What the rows were summed over."""
        return f"{len(self.count)} leaves of a tree fitted to the first sample (VectorTally)"

    @property
    def surprising(self) -> float:
        """How many outcomes that are not the likeliest a calibrated model expects, about."""
        return float((self.count - self.expected.max(axis=1)).sum())

    def total(self, name: str) -> float:
        """Return a total over all rows."""
        high, low = self.tally.totals[TOTALS.index(name)]
        return float(high / HIGH + low / (HIGH * 2.0**LOW))

    @cached_property
    def types(self) -> tuple[FloatArray, IntArray, FloatArray]:
        """Rows that stand for those of a leaf: λ (C, K), how many are of each type, and the rest.

        A row of type k has the prediction λ_k e_k + (1 − λ_k) rest, all others the rest. Means are
        those of the rows, and so is Σ_k Σ_i p_ik (1 − p_ik), where such rows can have it.
        """
        typed = np.rint(self.expected)
        typed[typed.sum(axis=1) > self.count] = 0.0
        most = np.minimum(self.expected / np.maximum(typed, 1.0), 1.0)
        wanted = self.squares.sum(axis=1)
        low, high = np.zeros(len(typed)), np.ones(len(typed))
        for _ in range(40):
            middle = 0.5 * (low + high)
            above = self._spread(typed, np.minimum(middle[:, None], most)) > wanted
            low, high = np.where(above, low, middle), np.where(above, middle, high)
        low[self._spread(typed, np.zeros(typed.shape)) > wanted * (1 - 1e-6)] = 0.0
        share = np.minimum(low[:, None], most)
        return share, typed.astype(np.int64), self._rest(typed, share)

    def _rest(self, typed: FloatArray, share: FloatArray) -> FloatArray:
        left = np.maximum(self.expected - share * typed, 0.0)
        total = left.sum(axis=1, keepdims=True)
        return np.where(total > 1e-9, left / np.maximum(total, 1e-9), self.probs)

    def _spread(self, typed: FloatArray, share: FloatArray) -> FloatArray:
        """Return Σ |p|² over the rows that stand for those of each leaf."""
        rest, free = self._rest(typed, share), 1.0 - share
        norms = np.square(rest).sum(axis=1)
        own = typed * (share**2 + 2.0 * share * free * rest + free**2 * norms[:, None])
        return np.asarray(own.sum(axis=1) + (self.count - typed.sum(axis=1)) * norms)

    def variance(self, slopes: FloatArray) -> float:
        """Return the variance of Σ slopes · numbers of labels, as they are drawn."""
        share, typed, rest = self.types
        mean, square = (rest * slopes).sum(axis=1), (rest * slopes**2).sum(axis=1)
        own = share * slopes + (1.0 - share) * mean[:, None]
        squares = share * slopes**2 + (1.0 - share) * square[:, None]
        plain = (self.count - typed.sum(axis=1)) @ (square - mean**2)
        return float((typed * (squares - own**2)).sum() + plain)

    def drawn(self, value: Value) -> Labels:
        """Return draws of a value of the numbers of labels."""
        return Labels(self, value)

    def coarse(self, bins: Any) -> Cells:
        """Return cells that are made of leaves."""
        tree = self.tally.cells
        if isinstance(bins, VarianceTree):
            rows = np.zeros(tree.n_leaves, dtype=np.int64)
            rows[self.tally.key] = self.tally.count
            first = np.searchsorted(self.tally.key, tree.coarse(rows, bins.limits))
            starts = np.append(np.unique(first[first < len(self.count)]), len(self.count))
        elif bins == tree:
            starts = np.arange(len(self.count) + 1)
        else:
            raise StatisticError(
                f"{name_of(bins)} is not made of the leaves of a tally of whole vectors: take "
                "VarianceTree(rows), or the cells of the tally"
            )
        return LeafCells(np.arange(len(self.count)), starts, bins, leaves=self)


@dataclass(frozen=True, eq=False)
class LeafCells(Cells):
    """A partition of leaves."""

    leaves: Leaves = field(kw_only=True, repr=False)

    @property
    def counts(self) -> IntArray:
        """Number of rows in each cell, shape (L,)."""
        return np.asarray(self.sum(self.leaves.tally.count))


@dataclass(frozen=True, eq=False)
class Labels:
    """Draws of the numbers of labels in the leaves under a calibrated model.

    Those of rows that have the mean of the leaf and, over all classes, its variance.
    """

    leaves: Leaves
    value: Value

    def replicates(self, seed: tuple[int, int], first: int, count: int) -> FloatArray:
        """Return replicates ``first``, …, ``first + count − 1``."""
        share, typed, rest = self.leaves.types
        order = np.argsort(-rest, axis=1, kind="stable")  # draws end once all rows have a label
        sorted_rest = np.take_along_axis(rest, order, axis=1)
        back = np.argsort(order, axis=1, kind="stable")
        rows = self.leaves.tally.count
        mixed = np.nonzero((typed > 0) & (share > 0.0))
        kept, chance = typed[mixed], share[mixed]
        at_once = max(1, AT_ONCE // rest.size)
        values = []
        for start in range(first, first + count, at_once):
            draws = np.zeros((min(at_once, first + count - start), *rest.shape))
            for own, j in zip(draws, range(start, first + count), strict=False):
                philox = np.random.Philox(key=np.array(seed, np.uint64), counter=[0, 0, j, 0])
                generator = np.random.Generator(philox)
                own[mixed] = of_type = generator.binomial(kept, chance)
                left = rows - np.bincount(mixed[0], of_type, len(rows)).astype(np.int64)
                free = generator.multinomial(left, sorted_rest)
                own += np.take_along_axis(free, back, axis=1)
            values.append(self.value(draws))
        return np.concatenate(values)
