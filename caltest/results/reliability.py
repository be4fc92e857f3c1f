"""The answer of a reliability curve."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from caltest._arrays import BoolArray, FloatArray, IntArray
from caltest.results.base import Result
from caltest.results.calibration import CalibrationTestResult

if TYPE_CHECKING:
    from caltest.plots import Picture


#: Bands that hold where the truth may be; all others hold what a calibrated model would show.
CONFIDENCE = ("clopper-pearson", "wilson", "bootstrap")

#: Edges of histograms of the predictions: every 0.05, every half unit of log-odds, and all.
SHARE_EDGES: FloatArray = np.arange(21) / 20
LOGIT_EDGES: FloatArray = np.concatenate(
    [[0.0], 1.0 / (1.0 + np.exp(-np.linspace(-14.0, 14.0, 57))), [1.0]]
)
SPREAD_EDGES: FloatArray = np.unique(np.concatenate([SHARE_EDGES, LOGIT_EDGES]))


@dataclass(frozen=True, eq=False)
class ReliabilityCurve(Result):
    """The answer of :func:`caltest.reliability_curve`: a table with one row an occupied bin.

    Attributes
    ----------
    component : ndarray of shape (L,), int
        The induced class whose probability is looked at: always 0 for a two-class problem, else
        0 … K'−1, one after the other.
    cell : ndarray of shape (L,), int
        The number of the bin, as the binning numbers them.
    left, right : ndarray of shape (L,)
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
    lens, bins, band : str
        The recipe; ``band`` is ``"none"`` without bars.
    level : float
        Of the bars.
    simultaneous : bool
        Whether ``level`` is for all bars together.
    n, n_classes : int
        Number of observations, and of classes before the lens.
    n_resamples : int
        Replicates behind the bars; 0 where they are computed.
    tests : tuple of CalibrationTestResult
        For every component the test of its ECE over the same bins.
    notes, version
        What was done to the input, and the version of caltest.
    """

    component: IntArray
    cell: IntArray
    left: FloatArray
    right: FloatArray
    count: IntArray
    predicted: FloatArray
    observed: FloatArray
    low: FloatArray
    high: FloatArray
    spread: IntArray
    names: tuple[str, ...]
    lens: str
    bins: str
    band: str
    level: float
    simultaneous: bool
    n: int
    n_classes: int
    n_resamples: int
    tests: tuple[CalibrationTestResult, ...]
    notes: tuple[str, ...]
    version: str

    #: Fields that are arrays of integers, so that they return from JSON as such.
    integers: ClassVar[tuple[str, ...]] = ("component", "cell", "count", "spread")
    reals: ClassVar[tuple[str, ...]] = ("left", "right", "predicted", "observed", "low", "high")

    def __post_init__(self) -> None:
        for name in self.integers:
            object.__setattr__(self, name, np.asarray(getattr(self, name), dtype=np.int64))
        for name in self.reals:
            object.__setattr__(self, name, np.asarray(getattr(self, name), dtype=np.float64))

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
        columns = [*self.integers[:-1], *self.reals]
        return replace(
            self,
            **{name: getattr(self, name)[rows] for name in columns},
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

    @property
    def recipe(self) -> str:
        """One line that says how the numbers were made, fit for a paper."""
        simulation = [f"B={self.n_resamples}"] if self.n_resamples else []
        parts = [self.bins, self.lens, self.shown_band, *simulation, f"n={self.n}"]
        return " · ".join([*parts, f"K={self.n_classes}", f"caltest {self.version}"])

    def __str__(self) -> str:
        lines = ["Reliability curve"]
        for j, name in enumerate(self.names):
            part = self.of(j)
            if len(self.names) > 1:
                lines.append(f"  {name}")
            lines.append("            bin   count  predicted  observed  deviation       bar")
            for row in zip(
                part.left,
                part.right,
                part.count,
                part.predicted,
                part.observed,
                part.deviation,
                part.low,
                part.high,
                part.outside,
                strict=True,
            ):
                left, right, count, predicted, observed, deviation, low, high, outside = row
                lines.append(
                    f"  {left:.4f} {right:.4f} {count:7d}     {predicted:.4f}    {observed:.4f}    "
                    f"{deviation:+.4f}  {low:.4f} {high:.4f}{'  outside' if outside else ''}"
                )
        return "\n".join([*lines, "", f"  {self.recipe}"])

    def plot(self, ax: Any = None, **options: Any) -> Picture:
        """Draw the curve; the options are those of :func:`caltest.plots.reliability`."""
        from caltest import plots

        return plots.reliability(self, ax, **options)
