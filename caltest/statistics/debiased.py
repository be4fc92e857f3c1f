"""Binned errors without the upward bias of noise."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Literal, Self

import numpy as np

from caltest._numba import kernel
from caltest.binning import Binning, UniformBins
from caltest.checks import one_of
from caltest.predictions import BoolArray, FloatArray, IntArray
from caltest.statistics.binned import as_binning, cell_of_rows, grouped
from caltest.statistics.lanes.events import EventRedraws
from caltest.statistics.problem import OfLabels, event


@dataclass(frozen=True, eq=False)
class ResidualCells:
    """Residuals r_i = onehot(y_i) − p_i summed in cells, for fixed predictions.

    Calling it gives the debiased error; :meth:`sums` and :meth:`squares` are what it is made of.
    """

    order: IntArray
    starts: IntArray
    probs: FloatArray
    weights: FloatArray

    @property
    def counts(self) -> IntArray:
        """Number of rows in each cell, n_b."""
        return np.diff(self.starts)

    @cached_property
    def cell(self) -> IntArray:
        """The cell of every row."""
        return cell_of_rows(self.order, self.starts)

    def residuals(self, labels: IntArray) -> FloatArray:
        """Return r_i, shape (n, d): one component of two classes, all of more."""
        outcomes = labels[:, None] == np.arange(self.probs.shape[1])
        return outcomes - self.probs

    def sums(self, labels: IntArray) -> FloatArray:
        """Return S_b = Σ_{i in b} r_i, shape (L, d)."""
        return np.add.reduceat(self.residuals(labels)[self.order], self.starts[:-1], axis=0)

    def __call__(self, labels: IntArray) -> float:
        totals = np.empty(self.counts.size)
        _excess_squares(labels, self.order, self.starts, self.probs, self._norms, totals)
        return float(self.weights @ totals)

    def redraws(self, probs: FloatArray) -> EventRedraws | None:
        """Return the compiled null under redrawn labels, for two classes."""
        return EventRedraws.of(self.order, probs, self.values) if probs.shape[1] == 2 else None

    def values(self, events: BoolArray) -> FloatArray:
        """Return the errors for events of shape (B, n) in the order of the rows."""
        totals = np.empty(len(events))
        _event_excess(events, self.starts, self.probs[self.order, 0], self.weights, totals)
        return totals

    @cached_property
    def _norms(self) -> FloatArray:
        return np.asarray((self.probs * self.probs).sum(axis=1))


@kernel
def _excess_squares(labels, order, starts, probs, norms, totals_out):  # type: ignore[no-untyped-def]
    # |S_b|² − Q_b, with Q_b = Σ |r_i|². O(n d).
    d = probs.shape[1]
    gap = np.empty(d)
    for b in range(totals_out.size):
        gap[:] = 0.0
        squares = 0.0
        for j in range(starts[b], starts[b + 1]):
            i = order[j]
            y = labels[i]
            for k in range(d):
                gap[k] -= probs[i, k]
            squares += norms[i]
            if y < d:
                gap[y] += 1.0
                squares += 1.0 - 2.0 * probs[i, y]
        total = -squares
        for k in range(d):
            total += gap[k] * gap[k]
        totals_out[b] = total


@kernel
def _event_excess(events, starts, p, weights, errors_out):  # type: ignore[no-untyped-def]
    # The same for two classes and many sets of labels.
    for r in range(events.shape[0]):
        row = events[r]
        error = 0.0
        for b in range(weights.size):
            gap = squares = 0.0
            for i in range(starts[b], starts[b + 1]):
                y = 1.0 if row[i] else 0.0
                gap += y - p[i]
                squares += (y - p[i]) * (y - p[i])
            error += weights[b] * (gap * gap - squares)
        errors_out[r] = error


@dataclass(frozen=True, repr=False)
class DebiasedL2(OfLabels):
    """Squared l2 calibration error without the bias of noise: signed, 0 on average if calibrated.

    T = (1/n) Σ_b (|S_b|² − Q_b) / (n_b − 1), with r_i = onehot(y_i) − p_i, S_b = Σ_{i in b} r_i and
    Q_b = Σ_{i in b} |r_i|²: the U-statistic over pairs of rows in the same cell, which estimates
    Σ_b π_b |Δ_b|², Δ_b the mean residual of the cell, without bias for given counts. Cells with one
    row count nothing. Of two classes only the first component enters, so that the value is
    comparable with the squared errors of Kumar et al. (2019, §5) and Lee et al. (2022), and half of
    what ``ECE(bins, "sqeuclidean")`` estimates; of more classes all components enter.

    Parameters
    ----------
    bins : binning, int or callable, default UniformBins(15)
        As for :class:`ECE`.
    estimator : {"pairs", "tcal", "kumar"}, default "pairs"
        ``"tcal"`` divides by n_b instead of n_b − 1, as Lee et al. (2022) do. ``"kumar"`` is
        Σ_b (n_b/n) (D_b² − ȳ_b (1 − ȳ_b) / (n_b − 1)), D_b = S_b / n_b, of Kumar et al. (2019),
        for two classes: it treats the predictions of a cell as equal, and takes off a little too
        much.

    Notes
    -----
    O(n K) for a value and for each further set of labels. Negative values are information, and mean
    "less than noise": keep them. There is no exact null, because Q depends on which rows have which
    label; labels are redrawn.

    Examples
    --------
    >>> probs = np.array([0.75, 0.75, 0.25, 0.25])
    >>> DebiasedL2(2)(probs, np.array([1, 1, 0, 0]))
    0.0625
    """

    bins: Binning | int = UniformBins(15)
    estimator: Literal["pairs", "tcal", "kumar"] = "pairs"

    def __post_init__(self) -> None:
        object.__setattr__(self, "bins", as_binning(self.bins))
        one_of("estimator", self.estimator, ("pairs", "tcal", "kumar"))

    def given(self, probs: FloatArray) -> ResidualCells | KumarL2:
        """Fix the predictions: partition them once."""
        order, starts = grouped(self.bins, probs)
        if self.estimator == "kumar":
            return KumarL2.of(order, starts, event(probs, repr(self)))
        counts = np.diff(starts)
        divisor = counts - 1 if self.estimator == "pairs" else counts
        weights = np.where(counts > 1, 1.0 / np.maximum(divisor, 1), 0.0) / len(probs)
        columns = np.ascontiguousarray(probs[:, :1] if probs.shape[1] == 2 else probs)
        return ResidualCells(order, starts, columns, weights)


@dataclass(frozen=True, repr=False)
class DebiasedL1(OfLabels):
    """Calibration error less the bias that a normal approximation of its noise gives it.

    T = Σ_b (n_b / n) (2 |D_b| − E|D_b + σ_b Z|), D_b = ȳ_b − p̄_b, σ_b² = ȳ_b (1 − ȳ_b) / n_b, Z
    standard normal: the debiased estimate of Kumar et al. (2019, §5) with p = 1, whose average over
    simulated normals is here the mean of a folded normal, in closed form. For two classes.

    Parameters
    ----------
    bins : binning, int or callable, default UniformBins(15)
        As for :class:`ECE`.

    Raises
    ------
    StatisticError
        When there are more than two classes.

    Notes
    -----
    O(n). It removes most of the bias where cells are well filled, not all: an error of 0 is still
    estimated a little above 0.

    Examples
    --------
    >>> probs = np.array([0.75, 0.75, 0.25, 0.25])
    >>> DebiasedL1(2)(probs, np.array([1, 1, 0, 0]))
    0.25
    """

    bins: Binning | int = UniformBins(15)

    def __post_init__(self) -> None:
        object.__setattr__(self, "bins", as_binning(self.bins))

    def given(self, probs: FloatArray) -> KumarL1:
        """Fix the predictions: partition them once."""
        order, starts = grouped(self.bins, probs)
        return KumarL1.of(order, starts, event(probs, repr(self)))


@dataclass(frozen=True, eq=False)
class _RateCells:
    """Cells of a two-class problem whose error is a function of their event rates."""

    order: IntArray
    starts: IntArray
    predicted: FloatArray

    @classmethod
    def of(cls, order: IntArray, starts: IntArray, p: FloatArray) -> Self:
        sums = np.add.reduceat(p[order], starts[:-1])
        return cls(order, starts, sums / np.diff(starts))

    def rates(self, labels: IntArray) -> tuple[FloatArray, FloatArray, IntArray]:
        """Return ȳ_b, |D_b| and n_b."""
        counts = np.diff(self.starts)
        events = np.add.reduceat((labels == 0)[self.order], self.starts[:-1], dtype=np.int64)
        rate = events / counts
        return rate, np.abs(rate - self.predicted), counts


class KumarL1(_RateCells):
    """The debiased l1 error of Kumar et al. for fixed predictions."""

    def __call__(self, labels: IntArray) -> float:
        from scipy.special import erf

        rate, gap, counts = self.rates(labels)
        sigma = np.sqrt(rate * (1.0 - rate) / counts)
        ratio = np.minimum(gap / np.maximum(sigma, 1e-300), 40.0)
        noisy = sigma * np.sqrt(2 / np.pi) * np.exp(-0.5 * ratio**2) + gap * erf(ratio / np.sqrt(2))
        return float(counts @ (2.0 * gap - noisy)) / self.order.size


class KumarL2(_RateCells):
    """The debiased squared error of Kumar et al. for fixed predictions."""

    def __call__(self, labels: IntArray) -> float:
        rate, gap, counts = self.rates(labels)
        excess = gap**2 - rate * (1.0 - rate) / np.maximum(counts - 1, 1)
        return float(counts[counts > 1] @ excess[counts > 1]) / self.order.size
