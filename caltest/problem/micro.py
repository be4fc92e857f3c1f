"""What micro-cells of tallies have alike, whichever sums are kept of their rows."""

from __future__ import annotations

from abc import abstractmethod
from functools import cached_property
from typing import TYPE_CHECKING, ClassVar, Literal, Self

import numpy as np

from caltest._base.written import name_of
from caltest.binning import Binning, EdgeBins, QuantileBins, UniformBins
from caltest.errors import StatisticError
from caltest.predictions import FloatArray, IntArray
from caltest.problem.base import LinearTerm, Problem
from caltest.tally.base import AnyTally


class MicroCells(Problem):
    """Units are micro-cells of a grid, of whose rows sums are known."""

    exact = False
    count: FloatArray
    #: Where a micro-cell lies, in widths of the grid: edges are whole.
    place: FloatArray
    #: Which bins its cells make up: closed on either side, or on one.
    closed: ClassVar[tuple[str, ...]] = ("left", "right")

    @cached_property
    def mass(self) -> FloatArray:
        return self.count if self.weight is None else self.count * self.weight

    @property
    @abstractmethod
    def excess(self) -> FloatArray:
        """Σ (y − p) of the rows of every micro-cell."""

    @property
    @abstractmethod
    def squares(self) -> FloatArray:
        """Σ p² of the rows of every micro-cell."""

    @property
    @abstractmethod
    def event_sums(self) -> FloatArray:
        """Σ y p of the rows of every micro-cell."""

    if TYPE_CHECKING:  # a field of each kind

        @property
        def tally(self) -> AnyTally: ...

    @property
    def impossible(self) -> IntArray:
        return self.tally.impossible

    @property
    def data(self) -> Self:
        return self

    @property
    def events(self) -> IntArray:
        return self.labels

    def numbers(self, bins: Binning) -> IntArray:
        if isinstance(bins, QuantileBins):  # as it cuts rows, with those of one micro-cell for ties
            cell = self.levels
            ends = np.cumsum(np.bincount(cell, self.count))
            j, n = np.arange(1, bins.n_bins), round(float(ends[-1]))
            if bins.closed == "right":
                cuts = np.searchsorted(ends, -(-j * n // bins.n_bins), side="left")
                return np.searchsorted(np.unique(cuts), cell, side="left")
            cuts = np.searchsorted(ends, j * n // bins.n_bins, side="right")
            return np.searchsorted(np.unique(cuts[cuts > 0]), cell, side="right")
        if isinstance(bins, (UniformBins, EdgeBins)) and bins.closed in self.closed:
            edges = np.asarray(bins.edges) * self.grid
            if np.abs(edges - np.rint(edges)).max(initial=0.0) < 1e-6:
                side: Literal["left", "right"] = "left" if bins.closed == "right" else "right"
                return np.searchsorted(np.rint(edges), self.place, side=side)
        raise StatisticError(
            f"{name_of(bins)} is not made of the cells of a tally, 1/{self.grid} wide: take "
            f"UniformBins or EdgeBins whose edges are whole multiples of 1/{self.grid}, or "
            "QuantileBins, or tally on another grid (of clusters, with another n_cells)"
        )

    def bins_remark(self, bins: Binning) -> str:
        equal = isinstance(bins, QuantileBins)
        return "bins are of equal mass up to the rows of a micro-cell" if equal else ""

    def tables(self, scores: FloatArray) -> FloatArray:
        """Return the slopes of scores (T, U, 2) in the residuals, (T, U)."""
        return np.asarray(scores[:, :, 0] - scores[:, :, 1])

    def of_means(self, name: str, table: FloatArray) -> LinearTerm:
        """Return a score of mean predictions by its table (U, 2)."""
        w = 1.0 if self.weight is None else self.weight
        slope, mean = table[:, 0] - table[:, 1], (self.probs * table).sum(axis=1)
        return LinearTerm(
            table,
            observed=float((w * self.excess) @ slope),
            promised=float(self.mass @ mean),
            variance=float(self.variance @ slope**2),
            covariance=float(self.variance @ slope),
            remark=f"{name} scores are those of mean predictions of micro-cells",
        )
