"""The answers of a reliability curve, and of a diagram on the simplex."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from caltest._base.arrays import BoolArray, FloatArray, IntArray
from caltest.results.base import Result
from caltest.results.calibration import CalibrationTestResult
from caltest.results.fields import described, entry
from caltest.results.tables import Columns

#: Bands that hold where the truth may be; all others hold what a calibrated model would show.
CONFIDENCE = ("clopper-pearson", "wilson")

#: Edges of histograms of the predictions: every 0.05, every half unit of log-odds, and all.
SHARE_EDGES: FloatArray = np.arange(21) / 20
LOGIT_EDGES: FloatArray = np.concatenate(
    [[0.0], 1.0 / (1.0 + np.exp(-np.linspace(-14.0, 14.0, 57))), [1.0]]
)
SPREAD_EDGES: FloatArray = np.unique(np.concatenate([SHARE_EDGES, LOGIT_EDGES]))

#: The columns of the table, with one entry a bin.
COLUMNS = (
    *("component", "cell", "bin_low", "bin_high", "count"),
    *("predicted", "observed", "low", "high"),
)


@described(
    eq=False,
    shape="(L,)",
    procedure="{0.bins} · {0.lens} · {0.shown_band}",
    title="Reliability curve",
    plotter="reliability.reliability",
    draws="replicates for the bars, 0 where they are computed",
)
class ReliabilityCurve(Result):
    """The answer of :func:`caltest.reliability_curve`: a table with one row an occupied bin."""

    component: IntArray = entry(
        "The induced class, 0 of two, else 0 … K'−1, and subgroups in turn."
    )
    cell: IntArray = entry("The number of the bin, as the binning numbers them.")
    bin_low: FloatArray = entry(
        "Edges of ``UniformBins`` and ``EdgeBins``, else extreme predictions."
    )
    bin_high: FloatArray
    count: IntArray = entry("Rows in the bin; empty bins are left out.")
    predicted: FloatArray = entry("Mean prediction, increasing, and frequency of the outcome.")
    observed: FloatArray
    low: FloatArray = entry("The bars, as frequencies; NaN when there are none.")
    high: FloatArray
    spread: IntArray = entry(
        "Histogram of every component.", "ndarray of shape (J, len(SPREAD_EDGES) − 1), int"
    )
    names: tuple[str, ...] = entry("What the components are.")
    subject: str = entry('What is looked at: "event", "top", "ranks", "classes" or "vector".')
    lens: str = entry('The recipe; ``band`` is ``"none"`` without bars.')
    bins: str
    band: str
    level: float = entry("Of the bars.")
    simultaneous: bool = entry("Whether ``level`` is for all bars together.")
    tests: tuple[CalibrationTestResult, ...] = entry("The test of every component's ECE.")

    @property
    def deviation(self) -> FloatArray:
        """Outcome minus prediction: above 0 the model underestimates."""
        return self.observed - self.predicted

    @property
    def outside(self) -> BoolArray:
        """Which consistency bars miss their outcome, or confidence bars their prediction."""
        value = self.observed if self.is_consistency else self.predicted
        return (value < self.low - 1e-12) | (value > self.high + 1e-12)

    @property
    def is_consistency(self) -> bool:
        """Whether the bars show what a calibrated model would, not where the truth may be."""
        return self.band not in CONFIDENCE

    def of(self, component: int) -> ReliabilityCurve:
        """Return the part of one component."""
        rows = self.component == component
        return replace(
            self,
            **{name: vars(self)[name][rows] for name in COLUMNS},
            spread=self.spread[[component]],
            names=(self.names[component],),
            tests=self.tests[component : component + 1],
        )

    @property
    def shown_band(self) -> str:
        """The bars in words, as a caption would name them."""
        kind = "consistency" if self.is_consistency else "confidence"
        words = f"{'simultaneous ' * self.simultaneous}{kind} bars ({self.band})"
        return "no bars" if self.band == "none" else f"{self._percent} {words}"

    def _tables(self) -> list[Columns]:
        of = {"of": [self.names[j] for j in self.component]} if len(self.names) > 1 else {}
        # Bars of clusters are normal, and may pass the ends of what a frequency can be.
        bars = {name: np.clip(vars(self)[name], 0.0, 1.0) for name in ("low", "high")}
        columns = {name: vars(self)[name] for name in COLUMNS[2:7]}
        return [{**of, **columns, "deviation": self.deviation, **bars, "outside": self.outside}]


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

    def _procedure(self) -> list[str]:
        return [self.bins, self.lens, f"cells marked at family level {1.0 - self.level:.3g}"]

    def _tables(self) -> list[Columns]:
        corners = f"({', '.join(self.names)})"
        means = {f"predicted {corners}": self.predicted, f"observed {corners}": self.observed}
        return [{"count": self.count, **means, "pvalue": self.pvalue, "adjusted": self.adjusted}]
