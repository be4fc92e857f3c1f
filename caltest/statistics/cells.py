"""What a binned statistic is made of: cells, the law of their counts, the error it estimates."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise
from typing import Any, Literal

import numpy as np

from caltest._base.poisson_binomial import poisson_binomial
from caltest._base.written import name_of
from caltest.binning import Binning
from caltest.errors import StatisticError
from caltest.predictions import FloatArray, IntArray


@dataclass(frozen=True, eq=False)
class Cells:
    """A partition of the rows: those of cell b are ``order[starts[b]:starts[b + 1]]``.

    Attributes
    ----------
    order : ndarray of shape (n,)
        The rows in the order of their cells, within a cell in their own.
    starts : ndarray of shape (L + 1,)
        Where each of the L occupied cells starts, and where the last ends.
    bins : binning
        What made them.
    weights : ndarray of shape (n,), optional
        Those of the rows, where they do not count alike.
    """

    order: IntArray = field(repr=False)
    starts: IntArray = field(repr=False)
    bins: Binning | None = None
    weights: FloatArray | None = field(default=None, repr=False)

    @classmethod
    def of(cls, bins: Any, probs: FloatArray, weights: FloatArray | None = None) -> Cells:
        """Partition rows of probabilities; O(n) after the binning, which does not see weights.

        Raises
        ------
        StatisticError
            When the binning does not return one integer for every row.
        """
        cells = np.asarray(bins(probs))
        if cells.shape != (len(probs),) or cells.dtype.kind not in "iu":
            raise StatisticError(
                f"the binning {name_of(bins)} must return one integer per row, an array of shape "
                f"({len(probs)},); it returned {cells.dtype} of shape {cells.shape}"
            )
        if cells.min() >= 0 and cells.max() < 2**16:
            cells = cells.astype(np.uint16)  # sorted by radix: O(n)
        order = np.argsort(cells, kind="stable")
        ordered = cells[order]
        starts = np.flatnonzero(np.append(True, ordered[1:] != ordered[:-1]))
        return cls(order, np.append(starts, len(probs)), bins, weights)

    def __len__(self) -> int:
        return self.starts.size - 1

    @property
    def counts(self) -> IntArray:
        """Number of rows in each cell, shape (L,)."""
        return np.diff(self.starts)

    @cached_property
    def mass(self) -> FloatArray | IntArray:
        """The total weight of each cell, its number of rows without weights, shape (L,)."""
        return self.counts if self.weights is None else np.asarray(self.sum(self.weights))

    @cached_property
    def of_row(self) -> IntArray:
        """The cell of every row, shape (n,)."""
        cells = np.empty(self.order.size, dtype=np.int64)
        cells[self.order] = np.repeat(np.arange(len(self)), np.diff(self.starts))
        return cells

    @cached_property
    def _in_order(self) -> bool:
        return bool((np.diff(self.order) == 1).all())

    def mean(self, values: Any, axis: int = 0) -> Any:
        """Return the weighted means of the cells: n along ``axis``, the last, becomes L."""
        weighted = values if self.weights is None else values * self.weights
        return self.sum(weighted, axis) / self.mass

    def sum(self, values: Any, axis: int = 0) -> Any:
        """Return the sums of the cells: n along ``axis`` becomes L."""
        ordered = values if self._in_order else np.take(values, self.order, axis=axis)
        if ordered.dtype == np.bool_:
            ordered = ordered.astype(np.int64)
        return np.add.reduceat(ordered, self.starts[:-1], axis=axis)

    def laws(self, probs: FloatArray) -> Iterator[tuple[int, FloatArray, float]]:
        """Yield, for every cell, the law of its number of label-0 rows, as ``poisson_binomial``.

        Weights are whole numbers: then the law of their sum, with every row of its label.
        """
        ordered = probs[self.order]
        multiples = None if self.weights is None else self.weights[self.order].astype(np.int64)
        for first, last in pairwise(self.starts):
            rows = ordered[first:last]
            if multiples is not None:
                yield 0, *_weighted_law(rows, multiples[first:last])
            elif rows[:, 0].sum() <= rows[:, 1].sum():
                yield poisson_binomial(rows[:, 0])
            else:  # count the rarer label, whose probabilities have all their digits
                lowest, pmf, lost = poisson_binomial(rows[:, 1])
                yield len(rows) - (lowest + pmf.size - 1), pmf[::-1], lost


def _weighted_law(probs: FloatArray, multiples: IntArray) -> tuple[FloatArray, float]:
    """Return the law of Σ k_i y_i, row by row in O(Σ k), and a bound on its rounding."""
    law = np.zeros(int(multiples.sum()) + 1)
    law[0], reached = 1.0, 0
    for (p, rest), k in zip(probs, multiples, strict=True):
        reached += k
        moved = law[: reached - k + 1] * p
        law[:reached] *= rest
        law[reached] = 0.0
        law[k : reached + 1] += moved
    return law, 4e-16 * len(probs)


@dataclass(frozen=True)
class Estimand:
    """Which error of new data a statistic estimates: ``factor`` times a size over its cells.

    Attributes
    ----------
    size : {"absolute", "squared", "largest"}
        Σ_b π_b Σ_k |Δ_bk|, Σ_b π_b |Δ_b|² or max_b |Δ_b|, with π_b the share of cell b and Δ_b its
        mean residual; of two classes only the first component counts.
    factor : float
        What the size is multiplied by.
    largest : float
        The end of the range of the error; it begins at 0.
    root, squared : bool
        Whether the statistic is the root of the size, or the largest gap squared.
    """

    size: Literal["absolute", "squared", "largest"]
    factor: float = 1.0
    largest: float = 1.0
    root: bool = False
    squared: bool = False

    def scaled(self, value: float) -> float:
        """Return a value of the size on the scale of the statistic."""
        return float(np.sqrt(max(value, 0.0))) if self.root else self.factor * value

    def unscaled(self, value: float) -> float:
        """Return the size that a value of the statistic, at least 0, stands for."""
        return value**2 if self.root else value / self.factor


@dataclass(frozen=True, eq=False)
class CellLaw:
    """How a statistic of two classes is made of the numbers of events in its cells.

    Its exact null follows: cells are independent, their counts Poisson-binomial.

    Attributes
    ----------
    cells : Cells
        The partition.
    term : callable
        ``(cell, counts) -> values``: what a cell contributes when that many of its rows have
        label 0.
    combine : {"sum", "max"}
        Of the terms.
    unit : float, optional
        The step of a term from one count to the next, where all cells share it.
    root : bool
        Whether the statistic is √(combined terms).
    """

    cells: Cells
    term: Callable[[int, IntArray], FloatArray]
    combine: Literal["sum", "max"] = "sum"
    unit: float | None = None
    root: bool = False
