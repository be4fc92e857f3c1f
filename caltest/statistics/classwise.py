"""Binned errors of every class against the rest, prepared together."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from caltest.binning import Binning
from caltest.errors import StatisticError
from caltest.predictions import FloatArray, IntArray
from caltest.statistics.binned import as_binning
from caltest.statistics.lanes.classwise import TWO_CLASS, ClasswiseRedraws, Summary


@dataclass(frozen=True, eq=False)
class ClasswiseCells:
    """The K errors of the classes, each seen as by ``OneVsRest(c)``, for fixed predictions.

    Error c is Σ_b (n_cb / n) · d(r_cb, g_cb) over the cells b of the probabilities of class c, or
    the largest d with ``combine="max"``. Called on labels it returns all K, in one pass: a label
    changes one cell of one class only.

    Attributes
    ----------
    cells : ndarray of shape (n, K)
        The cell of each row, for each class.
    sums : ndarray of shape (K, L)
        Sums of the probabilities of class c in its cells; a class with fewer cells has empty ones.
    sizes : ndarray of shape (K, L)
        Number of rows in them.

    Notes
    -----
    O(n K) time and 2 n K bytes once; O(n + K L) for each set of labels.

    Examples
    --------
    >>> probs = np.array([[0.75, 0.25, 0.0], [0.25, 0.25, 0.5], [0.25, 0.25, 0.5]])
    >>> every = ClasswiseCells.of(probs, 2)
    >>> every(np.array([0, 2, 1])).round(3)
    array([0.25 , 0.083, 0.   ])
    """

    cells: NDArray[np.uint16] = field(repr=False)
    sums: FloatArray = field(repr=False)
    sizes: IntArray = field(repr=False)
    distance: str
    combine: Literal["sum", "max"]

    @classmethod
    def of(
        cls,
        probs: FloatArray,
        bins: Binning | int = 15,
        distance: str = "tv",
        combine: Literal["sum", "max"] = "sum",
    ) -> ClasswiseCells:
        """Partition the predictions of every class.

        Parameters
        ----------
        probs : ndarray of shape (n, K)
            The predictions.
        bins : binning or int, default 15
            Called on the two-class predictions (n, 2) of one class after the other.
        distance : {"tv", "l1", "l2", "sqeuclidean", "max"}, default "tv"
            The distance, by name.
        combine : {"sum", "max"}, default "sum"
            Whether the gaps of a class are averaged (ECE) or the largest counts (MCE).

        Raises
        ------
        StatisticError
            For a distance that has no name, or more than 2¹⁶ cells in a class.
        """
        if not isinstance(distance, str) or distance not in TWO_CLASS:
            raise StatisticError(f"classwise errors need one of {[*TWO_CLASS]}, not {distance!r}")
        n, n_classes = probs.shape
        partition = as_binning(bins)
        cells = np.empty((n, n_classes), dtype=np.uint16)
        for c in range(n_classes):
            column = probs[:, c]
            cells[:, c] = _numbered(partition(np.column_stack([column, 1.0 - column])))
        width = int(cells.max()) + 1
        sums, sizes = np.empty((n_classes, width)), np.empty((n_classes, width), dtype=np.int64)
        for c in range(n_classes):
            sums[c] = np.bincount(cells[:, c], probs[:, c], minlength=width)
            sizes[c] = np.bincount(cells[:, c], minlength=width)
        return cls(cells, sums, sizes, distance, combine)

    def __call__(self, labels: IntArray) -> FloatArray:
        n = len(self.cells)
        slots = labels * self.sums.shape[1] + self.cells[np.arange(n), labels]
        counts = np.bincount(slots, minlength=self.sums.size).reshape(self.sums.shape)
        gaps, sizes = np.abs(counts - self.sums), np.maximum(self.sizes, 1)
        gaps *= gaps / sizes if self.distance == "sqeuclidean" else 1.0
        gaps *= TWO_CLASS[self.distance]
        errors: FloatArray = (
            (gaps / sizes).max(axis=1) if self.combine == "max" else gaps.sum(axis=1) / n
        )
        return errors

    def redraws(self, probs: FloatArray, summary: Summary | None = None) -> ClasswiseRedraws:
        """Return their compiled null under redrawn labels: (B, K) values.

        With a ``summary``, ``"mean"`` or ``"max"`` over classes, it has B values.
        """
        return ClasswiseRedraws.of(self, probs, summary)


def _numbered(cells: Any) -> IntArray:
    """Number the occupied cells."""
    cells = np.asarray(cells)
    if cells.min() < 0 or cells.max() >= 1 << 16:
        cells = np.unique(cells, return_inverse=True)[1].ravel()
        if cells.max() >= 1 << 16:
            raise StatisticError("classwise errors are for at most 65536 cells in a class")
    number: IntArray = np.cumsum(np.bincount(cells) > 0) - 1
    return number[cells]
