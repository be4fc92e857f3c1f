"""The answer of a reliability diagram on the simplex."""

from __future__ import annotations

from caltest._base.arrays import BoolArray, FloatArray, IntArray
from caltest.results.base import Result
from caltest.results.calibration import CalibrationTestResult
from caltest.results.fields import described, entry
from caltest.results.tables import Columns


@described(eq=False, shape="(L,)", title="Reliability on the simplex", plotter="simplex.simplex")
class ReliabilitySimplex(Result):
    """The answer of :func:`caltest.reliability_simplex`: a table with one row an occupied cell."""

    bin_low: FloatArray = entry(
        "The cell, bin_low ≤ p ≤ bin_high: slices of ``SimplexGrid``, else what predictions reach.",
        "ndarray of shape (L, K)",
    )
    bin_high: FloatArray
    count: IntArray = entry("Rows in the cell; empty cells are left out.")
    predicted: FloatArray = entry(
        "Mean prediction, and frequencies of the classes, weighted.", "ndarray of shape (L, K)"
    )
    observed: FloatArray
    pvalue: FloatArray = entry("Of each cell: exact, or drawn where ``n_resamples`` is not 0.")
    adjusted: FloatArray = entry("For the number of cells, by Holm if exact, by max-T if drawn.")
    names: tuple[str, ...] = entry("The corners.")
    lens: str = entry("The recipe.")
    bins: str
    level: float = entry("See ``significant``.")
    test: CalibrationTestResult = entry("The test of the ECE over the cells.")

    @property
    def deviation(self) -> FloatArray:
        """Outcome minus prediction, shape (L, K); every row sums to 0."""
        return self.observed - self.predicted

    @property
    def significant(self) -> BoolArray:
        """Which cells deviate more than chance allows: adjusted p-value at most 1 − level."""
        return self.adjusted <= 1.0 - self.level + 1e-12

    def _made(self) -> list[str]:
        return [self.bins, self.lens, f"cells marked at family level {1.0 - self.level:.3g}"]

    def _tables(self) -> list[Columns]:
        corners = f"({', '.join(self.names)})"
        means = {f"predicted {corners}": self.predicted, f"observed {corners}": self.observed}
        return [{"count": self.count, **means, "pvalue": self.pvalue, "adjusted": self.adjusted}]
