"""The answer of a reliability curve."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from caltest._base.arrays import BoolArray, FloatArray, IntArray
from caltest.results.base import Result
from caltest.results.calibration import CalibrationTestResult
from caltest.results.tables import Columns

#: Bands that hold where the truth may be; all others hold what a calibrated model would show.
CONFIDENCE = ("clopper-pearson", "wilson", "bootstrap")

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


@dataclass(frozen=True, eq=False)
class ReliabilityCurve(Result):
    """The answer of :func:`caltest.reliability_curve`: a table with one row an occupied bin.

    Attributes
    ----------
    component : ndarray of shape (L,), int
        The induced class whose probability is looked at: always 0 for a two-class problem, else
        0 … K'−1, one after the other; with subgroups those of one after those of the other.
    cell : ndarray of shape (L,), int
        The number of the bin, as the binning numbers them.
    bin_low, bin_high : ndarray of shape (L,)
        The ends of the bin: its edges for ``UniformBins`` and ``EdgeBins``, else its smallest and
        largest prediction.
    count : ndarray of shape (L,), int
        Rows in the bin; empty bins are left out.
    predicted, observed : ndarray of shape (L,)
        Mean prediction, and frequency of the outcome. Within a component, ``predicted`` increases.
    low, high : ndarray of shape (L,)
        The bars, as frequencies; NaN when there are none. Subtract ``predicted`` for bars of the
        deviation.
    spread : ndarray of shape (J, len(SPREAD_EDGES) − 1), int
        Histogram of the predictions of every component.
    names : tuple of str
        What the components are.
    subject : {"event", "top", "ranks", "classes", "vector"}
        What the lens looks at.
    lens, bins, band : str
        The recipe; ``band`` is ``"none"`` without bars.
    level : float
        Of the bars.
    simultaneous : bool
        Whether ``level`` is for all bars together.
    tests : tuple of CalibrationTestResult
        For every component the test of its ECE over the same bins.
    n, n_classes, n_resamples, seed, ended, notes, version
        As for every :class:`Result`; ``n_resamples`` replicates for the bars, 0 where they are
        computed.
    """

    component: IntArray
    cell: IntArray
    bin_low: FloatArray
    bin_high: FloatArray
    count: IntArray
    predicted: FloatArray
    observed: FloatArray
    low: FloatArray
    high: FloatArray
    spread: IntArray
    names: tuple[str, ...]
    subject: str
    lens: str
    bins: str
    band: str
    level: float
    simultaneous: bool
    tests: tuple[CalibrationTestResult, ...]
    title: ClassVar[str] = "Reliability curve"

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
            **{name: getattr(self, name)[rows] for name in COLUMNS},
            spread=self.spread[[component]],
            names=(self.names[component],),
            tests=self.tests[component : component + 1],
        )

    @property
    def shown_band(self) -> str:
        """The bars in words, as a caption would name them."""
        if self.band == "none":
            return "no bars"
        kind = "consistency" if self.is_consistency else "confidence"
        how = "simultaneous " if self.simultaneous else ""
        return f"{100 * self.level:g} % {how}{kind} bars ({self.band})"

    def _made(self) -> list[str]:
        return [self.bins, self.lens, self.shown_band]

    def _tables(self) -> list[Columns]:
        of = {"of": [self.names[j] for j in self.component]} if len(self.names) > 1 else {}
        shown = (*COLUMNS[2:7], "deviation", "low", "high", "outside")
        return [{**of, **{name: getattr(self, name) for name in shown}}]
