"""The answer of a reliability diagram on the simplex."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from caltest._base.arrays import BoolArray, FloatArray, IntArray
from caltest.results.base import Result
from caltest.results.calibration import CalibrationTestResult
from caltest.results.tables import Columns


@dataclass(frozen=True, eq=False)
class ReliabilitySimplex(Result):
    """The answer of :func:`caltest.reliability_simplex`: a table with one row an occupied cell.

    Attributes
    ----------
    bin_low, bin_high : ndarray of shape (L, K)
        The cell is the part of the simplex with bin_low ≤ p ≤ bin_high: its slices for
        ``SimplexGrid``, else as far as its predictions reach.
    count : ndarray of shape (L,), int
        Rows in the cell; empty cells are left out.
    predicted, observed : ndarray of shape (L, K)
        Mean prediction, and frequencies of the classes, both weighted: tail and head of the arrow.
    pvalue : ndarray of shape (L,)
        For each cell by itself: exact, or drawn where ``n_resamples`` is not 0.
    adjusted : ndarray of shape (L,)
        Adjusted for the number of cells: Holm's of exact ones, max-T of drawn ones.
    names : tuple of str
        The corners.
    lens, bins : str
        The recipe.
    level : float
        See ``significant``.
    test : CalibrationTestResult
        The test of the ECE over the cells.
    n, n_classes, n_resamples, seed, ended, notes, version
        As for every :class:`Result`.
    """

    bin_low: FloatArray
    bin_high: FloatArray
    count: IntArray
    predicted: FloatArray
    observed: FloatArray
    pvalue: FloatArray
    adjusted: FloatArray
    names: tuple[str, ...]
    lens: str
    bins: str
    level: float
    test: CalibrationTestResult
    title: ClassVar[str] = "Reliability on the simplex"

    @property
    def deviation(self) -> FloatArray:
        """Outcome minus prediction, shape (L, K); every row sums to 0."""
        return self.observed - self.predicted

    @property
    def significant(self) -> BoolArray:
        """Which cells deviate more than chance allows: adjusted p-value at most 1 − level."""
        return self.adjusted <= 1.0 - self.level + 1e-12

    def _made(self) -> list[str]:
        marked = f"cells marked at family level {1.0 - self.level:.3g}"
        return [self.bins, self.lens, marked]

    def _tables(self) -> list[Columns]:
        corners = f"({', '.join(self.names)})"
        means = {f"predicted {corners}": self.predicted, f"observed {corners}": self.observed}
        return [{"count": self.count, **means, "pvalue": self.pvalue, "adjusted": self.adjusted}]
