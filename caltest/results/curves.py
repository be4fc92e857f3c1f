"""Answers that are curves: of two models, of numbers of bins, and without bins."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from caltest._arrays import FloatArray, IntArray
from caltest.results.base import Result, format_p, format_value
from caltest.results.calibration import CalibrationTestResult

if TYPE_CHECKING:
    from caltest.plots import Picture


@dataclass(frozen=True, eq=False)
class ReliabilityDifference(Result):
    """The answer of :func:`caltest.reliability_difference`: one row a bin that both models use.

    Attributes
    ----------
    predicted : ndarray of shape (L,)
        Mean prediction of both models in the bin; increasing.
    difference : ndarray of shape (L,)
        Deviation (outcome − prediction) of model a minus that of model b.
    low, high : ndarray of shape (L,)
        The confidence band of the difference.
    count_a, count_b : ndarray of shape (L,), int
        Rows of the two models in the bin.
    cell : ndarray of shape (L,), int
        Numbers of the bins, for which neighbours follow each other.
    name : str
        Of which event the probability is compared.
    lens, bins, level, simultaneous, n, n_classes, version
        The recipe.
    """

    predicted: FloatArray
    difference: FloatArray
    low: FloatArray
    high: FloatArray
    count_a: IntArray
    count_b: IntArray
    cell: IntArray
    name: str
    lens: str
    bins: str
    level: float
    simultaneous: bool
    n: int
    n_classes: int
    version: str

    def __post_init__(self) -> None:
        for name in ("predicted", "difference", "low", "high"):
            object.__setattr__(self, name, np.asarray(getattr(self, name), dtype=np.float64))
        for name in ("count_a", "count_b", "cell"):
            object.__setattr__(self, name, np.asarray(getattr(self, name), dtype=np.int64))

    @property
    def recipe(self) -> str:
        """One line that says how the numbers were made, fit for a paper."""
        how = "simultaneous " if self.simultaneous else ""
        band = f"{100 * self.level:g} % {how}confidence band of the difference"
        parts = [self.bins, self.lens, band, f"n={self.n}", f"K={self.n_classes}"]
        return " · ".join([*parts, f"caltest {self.version}"])

    def __str__(self) -> str:
        lines = [
            "Difference of two reliability curves (a − b)",
            "  predicted  count a  count b  difference       band",
        ]
        for p, a, b, d, low, high in zip(
            self.predicted,
            self.count_a,
            self.count_b,
            self.difference,
            self.low,
            self.high,
            strict=True,
        ):
            away = "" if low <= 0.0 <= high else "  differs"
            lines.append(f"     {p:.4f}  {a:7d}  {b:7d}     {d:+.4f}  {low:+.4f} {high:+.4f}{away}")
        return "\n".join([*lines, "", f"  {self.recipe}"])

    def plot(self, ax: Any = None, **options: Any) -> Picture:
        """Draw it; the options are those of :func:`caltest.plots.difference`."""
        from caltest import plots

        return plots.difference(self, ax, **options)


@dataclass(frozen=True, eq=False)
class BinSensitivity(Result):
    """The answer of :func:`caltest.bin_sensitivity`: one row a binning.

    Attributes
    ----------
    bins : tuple of str
        The binnings.
    size : ndarray of shape (M,), int
        Their numbers of bins: as asked for, or of occupied cells.
    estimate, null_mean, low, high, pvalue : ndarray of shape (M,)
        The ECE, its noise floor, the central part of its null distribution, and its p-value.
    lens, distance, level, n, n_classes, version
        The recipe.
    """

    bins: tuple[str, ...]
    size: IntArray
    estimate: FloatArray
    null_mean: FloatArray
    low: FloatArray
    high: FloatArray
    pvalue: FloatArray
    lens: str
    distance: str
    level: float
    n: int
    n_classes: int
    version: str

    def __post_init__(self) -> None:
        for name in ("estimate", "null_mean", "low", "high", "pvalue"):
            object.__setattr__(self, name, np.asarray(getattr(self, name), dtype=np.float64))
        object.__setattr__(self, "size", np.asarray(self.size, dtype=np.int64))

    @property
    def recipe(self) -> str:
        """One line that says how the numbers were made, fit for a paper."""
        kinds = dict.fromkeys(name.partition("(")[0] for name in self.bins)
        binning = f"ECE({' / '.join(kinds)}, distance={self.distance})"
        band = f"{100 * self.level:g} % noise band"
        parts = [binning, self.lens, band, f"n={self.n}", f"K={self.n_classes}"]
        return " · ".join([*parts, f"caltest {self.version}"])

    def __str__(self) -> str:
        width = max(len(name) for name in self.bins)
        lines = [f"Sensitivity to the bins\n  {'bins'.ljust(width)}  estimate  if calibrated  p"]
        for name, value, mean, p in zip(
            self.bins, self.estimate, self.null_mean, self.pvalue, strict=True
        ):
            shown = f"{format_value(value)}    {format_value(mean)}         {format_p(p)}"
            lines.append(f"  {name.ljust(width)}  {shown}")
        return "\n".join([*lines, "", f"  {self.recipe}"])

    def plot(self, ax: Any = None, **options: Any) -> Picture:
        """Draw it; the options are those of :func:`caltest.plots.sensitivity`."""
        from caltest import plots

        return plots.sensitivity(self, ax, **options)


@dataclass(frozen=True, eq=False)
class ReliabilityFit(Result):
    """The answer of :func:`caltest.reliability_fit`: a curve without bins.

    Attributes
    ----------
    predicted, fitted : ndarray of shape (m,)
        Predictions, increasing, and the estimated frequency of the outcome there.
    low, high : ndarray of shape (m,)
        The consistency band, where the curve of a calibrated model lies; NaN without one.
    spread : ndarray of shape (len(SPREAD_EDGES) − 1,), int
        Histogram of the predictions.
    name : str
        The event.
    fit : {"isotonic", "smooth"}
        How the curve was fitted.
    lens, level, simultaneous, n, n_classes, n_resamples
        The recipe.
    test : CalibrationTestResult
        The test of the error that belongs to the curve.
    notes, version
        What was done to the input, and the version of caltest.
    """

    predicted: FloatArray
    fitted: FloatArray
    low: FloatArray
    high: FloatArray
    spread: IntArray
    name: str
    fit: str
    lens: str
    level: float
    simultaneous: bool
    n: int
    n_classes: int
    n_resamples: int
    test: CalibrationTestResult
    notes: tuple[str, ...]
    version: str

    def __post_init__(self) -> None:
        for name in ("predicted", "fitted", "low", "high"):
            object.__setattr__(self, name, np.asarray(getattr(self, name), dtype=np.float64))
        object.__setattr__(self, "spread", np.asarray(self.spread, dtype=np.int64))

    @property
    def deviation(self) -> FloatArray:
        """Outcome minus prediction: above 0 the model underestimates."""
        return self.fitted - self.predicted

    @property
    def recipe(self) -> str:
        """One line that says how the numbers were made, fit for a paper."""
        how = "simultaneous " if self.simultaneous else ""
        band = [f"{100 * self.level:g} % {how}consistency band", f"B={self.n_resamples}"]
        parts = [f"{self.fit} curve", self.lens, *(band if self.n_resamples else ["no band"])]
        return " · ".join([*parts, f"n={self.n}", f"K={self.n_classes}", f"caltest {self.version}"])

    def __str__(self) -> str:
        shown = np.unique(np.linspace(0, self.predicted.size - 1, 15).astype(int))
        columns = zip(self.predicted, self.fitted, self.low, self.high, strict=True)
        rows = [f"     {p:.4f}    {y:.4f}  {low:.4f} {high:.4f}" for p, y, low, high in columns]
        head = [f"Reliability curve, {self.fit} fit", "  predicted    fitted       band"]
        return "\n".join([*head, *(rows[j] for j in shown), "", f"  {self.recipe}"])

    def plot(self, ax: Any = None, **options: Any) -> Picture:
        """Draw it; the options are those of :func:`caltest.plots.fitted`."""
        from caltest import plots

        return plots.fitted(self, ax, **options)
