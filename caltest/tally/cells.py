"""The two-class problem of a tally, and bins that are made of its micro-cells."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Self

import numpy as np

from caltest._base.facts import in_whole_numbers
from caltest._base.written import name_of
from caltest.binning import EdgeBins, QuantileBins, UniformBins
from caltest.errors import StatisticError
from caltest.predictions import FloatArray, IntArray, Predictions
from caltest.tally.grid import GRID, Grid, mean_position, total
from caltest.tally.laws import Atoms
from caltest.tally.rows import UNIT
from caltest.tally.tally import Tally


@dataclass(frozen=True, eq=False)
class MicroCells:
    """What a tally shows, with numbers in place of rows: C micro-cells of known moments.

    It stands where statistics have their predictions: ``probs`` (C, 2) are the mean predictions of
    the event and its complement, ``labels`` (C,) the numbers of events, ``weights`` (C,) the weight
    of all rows of a cell.
    """

    tally: Tally = field(repr=False)
    key: IntArray = field(repr=False)
    stratum: IntArray = field(repr=False)
    sums: IntArray = field(repr=False)
    probs: FloatArray = field(repr=False)
    labels: IntArray = field(repr=False)
    #: Rows of a cell; weight of each of them, in whole numbers where ratios allow.
    count: FloatArray = field(repr=False)
    weight: FloatArray = field(repr=False)
    #: Centres, 1 − centres and half widths.
    centre: FloatArray = field(repr=False)
    rest: FloatArray = field(repr=False)
    half: FloatArray = field(repr=False)
    #: Where a cell lies, in widths of the grid: edges are whole.
    place: FloatArray = field(repr=False)

    n_classes = 2
    n_clusters = None
    clusters = None

    @classmethod
    def of(cls, tally: Tally) -> Self:
        """Read the sums of a tally; O(C)."""
        if tally.n == 0:
            raise StatisticError("the tally is empty: add rows first")
        order = np.lexsort((tally.stratum, tally.key))
        key, stratum, sums = tally.key[order], tally.stratum[order], tally.sums[order]
        centre, rest, half, place = Grid(tally.grid).of(key)
        moved = half * mean_position(sums)
        strata = in_whole_numbers(tally.strata)
        return cls(
            tally, key, stratum, sums, np.column_stack([centre + moved, rest - moved]), sums[:, 5],
            sums[:, 0].astype(np.float64), strata[stratum], centre, rest, half, place,
        )  # fmt: skip

    @property
    def n(self) -> int:
        """Number of rows."""
        return self.tally.n

    @property
    def weights(self) -> FloatArray:
        """The weight of all rows of each cell."""
        return self.count * self.weight

    @cached_property
    def atoms(self) -> Atoms:
        """Predictions that stand for the rows."""
        return Atoms.of(self.sums, self.centre, self.rest, self.half)

    @property
    def impossible(self) -> IntArray:
        """As many zeros as outcomes had probability 0."""
        sure = np.where(self.rest == 0.0, self.count - self.labels, 0.0)
        sure = np.where(self.centre == 0.0, self.labels, sure)
        return np.broadcast_to(np.int64(0), (int(sure.sum()),))

    def moment(self, *coefficients: Any) -> FloatArray:
        """Return Σ_i Σ_k c_k (p_i − centre)^k of every cell, for coefficients (C,)."""
        moments = [self.sums[:, 0], self.count * mean_position(self.sums)]
        moments += [self.sums[:, k] / UNIT for k in range(2, 5)]
        powers = (self.half**k * moments[k] for k in range(5))
        return np.asarray(sum(c * m for c, m in zip(coefficients, powers, strict=False)))

    @cached_property
    def variance(self) -> FloatArray:
        """Σ p (1 − p) of every cell."""
        return self.moment(self.centre * self.rest, self._slope, -1.0)

    @property
    def _slope(self) -> FloatArray:
        return self.rest - self.centre

    @cached_property
    def squared_variance(self) -> FloatArray:
        """Σ p² (1 − p)² of every cell."""
        a, b = self.centre * self.rest, self._slope
        return self.moment(a * a, 2.0 * a * b, b * b - 2.0 * a, -2.0 * b, 1.0)

    @cached_property
    def brier_variance(self) -> FloatArray:
        """Σ p (1 − p) (1 − 2p)² of every cell."""
        a, b = self.centre * self.rest, self._slope
        return self.moment(a * b * b, b**3 - 4.0 * a * b, 4.0 * a - 5.0 * b * b, 8.0 * b, -4.0)

    @cached_property
    def squares(self) -> FloatArray:
        """Σ p² of every cell."""
        return self.moment(self.centre**2, 2.0 * self.centre, 1.0)

    @cached_property
    def residuals(self) -> FloatArray:
        """Σ (y − p) of every cell."""
        return self.labels - self.count * self.probs[:, 0]

    @cached_property
    def event_sums(self) -> FloatArray:
        """Σ y p of every cell."""
        return self.labels * self.centre + self.half * self.sums[:, 6] / UNIT

    def listed(self, *, tied: bool = False) -> tuple[Predictions, FloatArray, IntArray]:
        """Return a row for the events of each micro-cell, and one for what was none.

        Each has their mean prediction; with ``tied`` both have that of the cell. Besides, how many
        rows it stands for, and its micro-cell.
        """
        events = np.concatenate([self.labels, self.count - self.labels])
        (kept,) = np.nonzero(events)
        position = self.sums[:, 6] / UNIT
        position = np.concatenate([position, self.count * mean_position(self.sums) - position])
        cell, label = kept % self.key.size, kept // self.key.size
        moved = self.half[cell] * np.clip(position[kept] / events[kept], -1.0, 1.0)
        probs = np.column_stack([self.centre[cell] + moved, self.rest[cell] - moved])
        probs = self.probs[cell] if tied else probs
        weights = None if self.tally.weights is None else self.weight[cell]
        return Predictions(probs, label, weights=weights), events[kept], cell

    @property
    def said(self) -> str:
        """What the rows were summed over."""
        return f"micro-cells (Tally, grid {self.tally.grid})"

    @property
    def surprising(self) -> float:
        """How many outcomes that are not the likeliest a calibrated model expects."""
        rare, w = self.count * self.probs.min(axis=1), self.weight
        return float((w @ rare) ** 2 / max(w**2 @ rare, 1e-300))

    def pooled(self) -> Predictions:
        """Return the tied rows of ``listed``, weighted by all that they stand for."""
        rows, times, cell = self.listed(tied=True)
        return replace(rows, weights=times * self.weight[cell])

    def quantiles(self, shares: Any) -> FloatArray:
        """Return the nearest quantiles of the predictions, to the width of a cell."""
        ranks = np.rint(np.asarray(shares) * (self.n - 1))
        place = np.searchsorted(np.cumsum(self.count), ranks, side="right")
        return np.asarray(self.probs[place, 0])

    def means(self) -> tuple[float, float]:
        """Return the mean prediction of the event, and how often it occurred."""
        total = float(self.weights.sum())
        return float(self.weights @ self.probs[:, 0]) / total, float(
            self.weight @ self.labels
        ) / total

    def folding(self, top: MicroCells) -> Callable[[FloatArray], FloatArray]:
        """Return the function from numbers of events (B, C) to those of the top class of two."""
        last = Grid(self.tally.grid).last
        below, strata = 2 * self.key <= last, self.tally.strata.size
        code = np.where(below, last - self.key, self.key) * strata + self.stratum
        target = np.searchsorted(top.key * strata + top.stratum, code)
        order = np.argsort(target, kind="stable")
        starts = np.searchsorted(target[order], np.arange(top.key.size))

        def folded(events: FloatArray) -> FloatArray:
            turned = np.where(below, self.count - events, events)
            return np.add.reduceat(turned[:, order], starts, axis=1)

        return folded

    def total(self, name: str, power: int = 1) -> float:
        """Return a total over all rows, weighted by a power of their weights."""
        weight = in_whole_numbers(self.tally.strata)
        return float(weight**power @ total(self.tally.totals, name))


def made_of_cells(bins: Any, grid: int = GRID) -> bool:
    """Whether bins have edges that are whole multiples of 1 / grid."""
    if not isinstance(bins, (UniformBins, EdgeBins)):
        return False
    edges = np.asarray(bins.edges) * grid
    return bool(np.abs(edges - np.rint(edges)).max(initial=0.0) < 1e-6)


def bin_numbers(bins: Any, micro: MicroCells) -> IntArray:
    """Return the number of the bin of every micro-cell."""
    grid = micro.tally.grid
    if isinstance(bins, QuantileBins):
        return _by_mass(bins, micro)
    if made_of_cells(bins, grid):
        side: Any = "left" if bins.closed == "right" else "right"
        return np.searchsorted(np.rint(np.asarray(bins.edges) * grid), micro.place, side=side)
    raise StatisticError(
        f"{name_of(bins)} is not made of the cells of a tally of grid={grid}: take UniformBins or "
        "EdgeBins whose edges are whole multiples of 1/grid, or QuantileBins, or tally on another "
        "grid"
    )


def _by_mass(bins: QuantileBins, micro: MicroCells) -> IntArray:
    """Cut as ``QuantileBins`` cuts rows, with those of one micro-cell for ties."""
    _, cell = np.unique(micro.key, return_inverse=True)
    j, n, ends = np.arange(1, bins.n_bins), micro.n, np.cumsum(np.bincount(cell, micro.count))
    if bins.closed == "right":
        cuts = np.searchsorted(ends, -(-j * n // bins.n_bins), side="left")
        return np.searchsorted(np.unique(cuts), cell, side="left")
    cuts = np.searchsorted(ends, j * n // bins.n_bins, side="right")
    return np.searchsorted(np.unique(cuts[cuts > 0]), cell, side="right")
