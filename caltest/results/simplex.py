"""The answer of a reliability diagram on the simplex."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from caltest._arrays import BoolArray, FloatArray, IntArray
from caltest.results.base import Result, format_p
from caltest.results.calibration import CalibrationTestResult

if TYPE_CHECKING:
    from caltest.plots import Picture


@dataclass(frozen=True, eq=False)
class ReliabilitySimplex(Result):
    """The answer of :func:`caltest.reliability_simplex`: a table with one row an occupied cell.

    Attributes
    ----------
    lower, upper : ndarray of shape (L, K)
        The cell is the part of the simplex with lower ≤ p ≤ upper: its slices for ``SimplexGrid``,
        else as far as its predictions reach.
    count : ndarray of shape (L,), int
        Rows in the cell; empty cells are left out.
    predicted, observed : ndarray of shape (L, K)
        Mean prediction, and frequencies of the classes: tail and head of the arrow.
    pvalue : ndarray of shape (L,)
        Exact, for each cell by itself.
    adjusted : ndarray of shape (L,)
        Adjusted for the number of cells (Holm).
    names : tuple of str
        The corners.
    lens, bins : str
        The recipe.
    level : float
        See ``significant``.
    n, n_classes : int
        Number of observations, and of classes before the lens.
    test : CalibrationTestResult
        The test of the ECE over the cells.
    notes, version
        What was done to the input, and the version of caltest.
    """

    lower: FloatArray
    upper: FloatArray
    count: IntArray
    predicted: FloatArray
    observed: FloatArray
    pvalue: FloatArray
    adjusted: FloatArray
    names: tuple[str, ...]
    lens: str
    bins: str
    level: float
    n: int
    n_classes: int
    test: CalibrationTestResult
    notes: tuple[str, ...]
    version: str

    def __post_init__(self) -> None:
        object.__setattr__(self, "count", np.asarray(self.count, dtype=np.int64))
        for name in ("lower", "upper", "predicted", "observed", "pvalue", "adjusted"):
            object.__setattr__(self, name, np.asarray(getattr(self, name), dtype=np.float64))

    @property
    def deviation(self) -> FloatArray:
        """Outcome minus prediction, shape (L, K); every row sums to 0."""
        return self.observed - self.predicted

    @property
    def significant(self) -> BoolArray:
        """Which cells deviate more than chance allows: adjusted p-value at most 1 − level."""
        return self.adjusted <= 1.0 - self.level + 1e-12

    @property
    def recipe(self) -> str:
        """One line that says how the numbers were made, fit for a paper."""
        marked = f"cells marked at family level {1.0 - self.level:.3g}"
        parts = [self.bins, self.lens, marked, f"n={self.n}", f"K={self.n_classes}"]
        return " · ".join([*parts, f"caltest {self.version}"])

    def __str__(self) -> str:
        lines = ["Reliability on the simplex", f"  classes: {', '.join(self.names)}"]
        for count, predicted, observed, pvalue, adjusted in zip(
            self.count, self.predicted, self.observed, self.pvalue, self.adjusted, strict=True
        ):
            vectors = "  ".join(" ".join(f"{x:.3f}" for x in v) for v in (predicted, observed))
            lines.append(f"  {count:7d}  {vectors}  p {format_p(pvalue)} ({format_p(adjusted)})")
        return "\n".join([*lines, "", f"  {self.recipe}"])

    def plot(self, ax: Any = None, **options: Any) -> Picture:
        """Draw it by :func:`caltest.plots.triangle` or :func:`caltest.plots.tetrahedron`."""
        from caltest import plots

        draw = plots.triangle if len(self.names) == 3 else plots.tetrahedron
        return draw(self, ax, **options)
