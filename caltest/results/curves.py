"""Answers that are curves: of two models, of numbers of bins, and without bins."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from caltest._base.arrays import FloatArray, IntArray
from caltest.results.base import Result, short
from caltest.results.calibration import CalibrationTestResult
from caltest.results.tables import Columns


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
    names : tuple of str
        The two models.
    name, subject : str
        Of which event the probability is compared; ``subject`` is ``"top"`` for the top class.
    lens, bins, level, simultaneous
        The recipe.
    n, n_classes, n_resamples, seed, ended, notes, version
        As for every :class:`Result`.
    """

    predicted: FloatArray
    difference: FloatArray
    low: FloatArray
    high: FloatArray
    count_a: IntArray
    count_b: IntArray
    cell: IntArray
    names: tuple[str, str]
    name: str
    subject: str
    lens: str
    bins: str
    level: float
    simultaneous: bool
    columns: ClassVar[tuple[str, ...]] = (
        *("predicted", "count_a", "count_b", "difference", "low", "high"),
    )
    title: ClassVar[str] = "Difference of two reliability curves"

    def _made(self) -> list[str]:
        how = "simultaneous " if self.simultaneous else ""
        band = f"{100 * self.level:g} % {how}confidence band of the difference"
        return [self.bins, self.lens, band]

    def _in_words(self) -> list[str]:
        return [f"Deviation of {self.names[0]} minus that of {self.names[1]}."]


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
    lens, distance, level
        The recipe.
    n, n_classes, n_resamples, seed, ended, notes, version
        As for every :class:`Result`.
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
    columns: ClassVar[tuple[str, ...]] = (
        *("bins", "size", "estimate", "null_mean", "low", "high", "pvalue"),
    )
    title: ClassVar[str] = "Sensitivity to the bins"

    def _made(self) -> list[str]:
        kinds = " / ".join(dict.fromkeys(map(short, self.bins)))
        band = f"{100 * self.level:g} % noise band"
        return [f"ECE({kinds}, distance={self.distance})", self.lens, band]


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
    name, subject : str
        The event; ``subject`` is ``"top"`` for the top class.
    fit : {"isotonic", "smooth"}
        How the curve was fitted.
    lens, level, simultaneous
        The recipe.
    test : CalibrationTestResult
        The test of the error that belongs to the curve.
    n, n_classes, n_resamples, seed, ended, notes, version
        As for every :class:`Result`; ``n_resamples`` replicates for the band, 0 without one.
    """

    predicted: FloatArray
    fitted: FloatArray
    low: FloatArray
    high: FloatArray
    spread: IntArray
    name: str
    subject: str
    fit: str
    lens: str
    level: float
    simultaneous: bool
    test: CalibrationTestResult
    title: ClassVar[str] = "Reliability curve without bins"

    @property
    def deviation(self) -> FloatArray:
        """Outcome minus prediction: above 0 the model underestimates."""
        return self.fitted - self.predicted

    def _tables(self) -> list[Columns]:
        shown = np.unique(np.linspace(0, self.predicted.size - 1, 15).astype(int))
        names = ("predicted", "fitted", "low", "high")
        return [{name: getattr(self, name)[shown] for name in names}]

    def _made(self) -> list[str]:
        how = "simultaneous " if self.simultaneous else ""
        band = f"{100 * self.level:g} % {how}consistency band" if self.n_resamples else "no band"
        return [f"{self.fit} curve", self.lens, band]
