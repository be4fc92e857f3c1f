"""Binned errors without the upward bias of noise."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass, field
from functools import cached_property
from typing import Any, ClassVar, Literal

import numpy as np

from caltest._base.checks import one_of
from caltest._base.compiled import kernel
from caltest.binning import Binning, UniformBins, as_binning
from caltest.errors import StatisticError
from caltest.predictions import FloatArray, IntArray, Predictions
from caltest.statistics.cells import Cells, Estimand
from caltest.statistics.prepared import Prepared, Statistic, event


@dataclass(frozen=True, eq=False)
class ResidualCells(Prepared):
    """The debiased error of fixed predictions, Σ_b w_b (|S_b|² − Q_b).

    S_b and Q_b are the sums of the residuals r_i = onehot(y_i) − p_i in cell b and of their
    squares: of one component for two classes, of all for more.
    """

    weights: FloatArray = field(repr=False)
    cells: Cells = field(kw_only=True, repr=False)

    def __call__(self, labels: IntArray) -> float:
        n_cells, n_classes = len(self.cells), self.data.n_classes
        flat = self.cells.of_row * n_classes + labels
        seen = np.bincount(flat, minlength=n_cells * n_classes).reshape(n_cells, n_classes)
        gaps = seen[:, : self._columns] - self._sums
        own = self._own[np.arange(labels.size), labels].sum()
        return float(self.weights @ np.square(gaps).sum(axis=1) - own)

    def batch(self, labels: IntArray) -> FloatArray:
        """Return the values for label vectors of shape (B, n), by a compiled pass over the rows."""
        values = np.empty(len(labels))
        _excess(labels, self.cells.of_row, self._sums, self.weights, self._own, values)
        return values

    def of_residuals(self, residuals: FloatArray, multipliers: FloatArray) -> FloatArray:
        """Return the values for moved residuals."""
        kept = residuals[:, : self._columns]
        own = np.square(multipliers) * (self._shares * np.square(kept).sum(axis=1))
        values = -own.sum(axis=1)
        for column in kept.T:
            sums = self.cells.sum(multipliers * column, axis=1)
            values += (np.square(sums) * self.weights).sum(axis=1)
        return np.asarray(values)

    @property
    def _columns(self) -> int:
        return 1 if self.data.n_classes == 2 else self.data.n_classes

    @cached_property
    def _sums(self) -> FloatArray:
        return np.asarray(self.cells.sum(self.data.probs[:, : self._columns]))

    @cached_property
    def _shares(self) -> FloatArray:
        """The weight of the cell of every row."""
        return self.weights[self.cells.of_row]

    @cached_property
    def _own(self) -> FloatArray:
        """What every row adds to Σ_b w_b Q_b under every label, shape (n, K)."""
        base, told, factor = squared_residuals(self.data.probs)
        return self._shares[:, None] * (base[:, None] + factor * told)


@dataclass(frozen=True, eq=False)
class ClusterPairs(Prepared):
    """The same without pairs of one cluster: Σ_b w_b (|S_b|² − Σ_g |S_gb|²).

    S_gb is the sum of the rows of cluster g in cell b, one of the ``parts``.
    """

    weights: FloatArray = field(repr=False)
    parts: Cells = field(repr=False)
    cells: Cells = field(kw_only=True, repr=False)

    @classmethod
    def of(cls, data: Predictions, cells: Cells, **facts: Any) -> ClusterPairs:
        """Divide the cells by cluster; those of one cluster count nothing. O(n log n)."""
        assert data.clusters is not None
        _, cluster = np.unique(data.clusters, return_inverse=True)
        code = cells.of_row * (cluster.max() + 1) + cluster
        parts = Cells.of(lambda _: code, data.probs, data.weights)
        first = cells.of_row[parts.order[parts.starts[:-1]]]
        within = np.bincount(first, np.square(parts.mass, dtype=np.float64))
        pairs = np.where(np.bincount(first) > 1, cells.mass**2 - within, np.inf)
        return cls(data, cells.mass / pairs / cells.mass.sum(), parts, cells=cells, **facts)

    def batch(self, labels: IntArray) -> FloatArray:
        """Return the values for label vectors of shape (B, n), by a compiled pass over the rows."""
        values, order = np.empty(len(labels)), self.parts.order
        fixed = (self.data.probs[order, : self._columns], self.cells.of_row[order])
        _apart(labels, order, self.parts.starts, *fixed, self.weights, values)
        return values

    def of_residuals(self, residuals: FloatArray, multipliers: FloatArray) -> FloatArray:
        """Return the values for moved residuals."""
        share = self.weights[self.cells.of_row[self.parts.order[self.parts.starts[:-1]]]]
        values = np.zeros(len(multipliers))
        for column in residuals[:, : self._columns].T:
            moved = multipliers * column
            values += np.square(self.cells.sum(moved, axis=1)) @ self.weights
            values -= np.square(self.parts.sum(moved, axis=1)) @ share
        return values

    @property
    def _columns(self) -> int:
        return 1 if self.data.n_classes == 2 else self.data.n_classes


def pair_weights(cells: Cells, with_own: bool = False) -> FloatArray:
    """Return what Σ r_i · r_j over pairs of rows of each cell counts: 1 / (n (n_b − 1)).

    With weights :func:`of_pairs`; ``with_own`` adds pairs of a row and itself to the divisor.
    """
    if cells.weights is None:
        n, divisor = int(cells.starts[-1]), cells.counts - (not with_own)
        return np.where(cells.counts > 1, 1.0 / (n * np.maximum(divisor, 1)), 0.0)
    return of_pairs(cells, 0.0 if with_own else cells.sum(cells.weights**2))


def of_pairs(cells: Cells, own: FloatArray | float) -> FloatArray:
    """Return (W_b / W) / (W_b² − Σ w²), but 0 of one row, also beside rows that are rounding."""
    pairs = np.where(cells.counts > 1, cells.mass**2 - own, 0.0)
    pairs[pairs <= 1e-13 * cells.mass**2] = np.inf
    return np.asarray(cells.mass / pairs / cells.mass.sum())


def squared_residuals(probs: FloatArray) -> tuple[FloatArray, FloatArray, float]:
    """Return arrays b (n,), t (n, K) and a number f: |r_i|² = b[i] + f t[i, y_i].

    Of two classes only the first component counts, and small probabilities keep their digits.
    """
    if probs.shape[1] == 2:
        p = probs[:, 0]
        return np.zeros(p.size), np.column_stack([np.square(1.0 - p), np.square(p)]), 1.0
    return 1.0 + np.square(probs).sum(axis=1), probs, -2.0


@kernel
def _excess(  # type: ignore[no-untyped-def]
    labels, cell, sums, weights, own, values_out
):
    # O(n + L K) per label vector.
    n_cells, columns = sums.shape
    seen = np.empty((n_cells, own.shape[1]))
    for r in range(labels.shape[0]):
        row = labels[r]
        seen[:] = 0.0
        value = 0.0
        for i in range(row.size):
            y = row[i]
            seen[cell[i], y] += 1.0
            value -= own[i, y]
        for b in range(n_cells):
            if weights[b] > 0.0:
                square = 0.0
                for k in range(columns):
                    square += (seen[b, k] - sums[b, k]) ** 2
                value += weights[b] * square
        values_out[r] = value


@kernel
def _apart(labels, order, starts, probs, cell, weights, values_out):  # type: ignore[no-untyped-def]
    # O(n K) per label vector; probs and cell are in the order of the parts.
    columns = probs.shape[1]
    whole, part = np.empty((weights.size, columns)), np.empty(columns)
    for r in range(labels.shape[0]):
        whole[:] = 0.0
        value = 0.0
        for s in range(starts.size - 1):
            part[:] = 0.0
            for t in range(starts[s], starts[s + 1]):
                y = labels[r, order[t]]
                for k in range(columns):
                    part[k] += (y == k) - probs[t, k]
            b = cell[starts[s]]
            for k in range(columns):
                value -= weights[b] * part[k] ** 2
                whole[b, k] += part[k]
        for b in range(weights.size):
            for k in range(columns):
                value += weights[b] * whole[b, k] ** 2
        values_out[r] = value


@dataclass(frozen=True, repr=False)
class DebiasedL2(Statistic):
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
    "less than noise": keep them. With clusters only pairs of two clusters count, in each cell
    (W_b / W) (|S_b|² − Σ_g |S_gb|²) / (W_b² − Σ_g W_gb²), so that dependence within clusters does
    not look like an error; ``"tcal"`` and ``"kumar"`` do not see clusters. There is no exact null,
    because Q depends on which rows have which label; labels are redrawn.

    Examples
    --------
    >>> probs = np.array([0.75, 0.75, 0.25, 0.25])
    >>> DebiasedL2(2)(probs, np.array([1, 1, 0, 0]))
    0.0625
    """

    bins: Binning | int = UniformBins(15)
    _: KW_ONLY
    estimator: Literal["pairs", "tcal", "kumar"] = "pairs"
    takes_weights: ClassVar[bool] = True

    def __post_init__(self) -> None:
        object.__setattr__(self, "bins", as_binning(self.bins))
        one_of("estimator", self.estimator, ("pairs", "tcal", "kumar"))

    def given(self, data: Predictions) -> ResidualCells | ClusterPairs | KumarL2:
        """Fix the predictions: partition them once."""
        if self.estimator == "kumar":
            if data.weights is not None:
                raise StatisticError(f"{self!r} does not take weights: use estimator='pairs'")
            p = event(data, self)
            cells = Cells.of(self.bins, data.probs)
            return KumarL2(data, cells.sum(p) / cells.counts, cells=cells, estimand=SQUARED)
        cells = Cells.of(self.bins, data.probs, data.weights)
        weights = pair_weights(cells, with_own=self.estimator == "tcal")
        error = SQUARED if data.n_classes == 2 else Estimand("squared", 1.0, 2.0)
        facts: Any = {"estimand": error, "degree": 2, "null_mean": 0.0}
        if self.estimator == "pairs" and data.n_clusters is not None:
            return ClusterPairs.of(data, cells, **facts)
        return ResidualCells(data, weights, cells=cells, **facts)


@dataclass(frozen=True, repr=False)
class DebiasedL1(Statistic):
    """Calibration error less the bias that a normal approximation of its noise gives it.

    T = Σ_b (n_b / n) (2 |D_b| − E|D_b + σ_b Z|), D_b = ȳ_b − p̄_b, σ_b² = ȳ_b (1 − ȳ_b) / n_b, Z
    standard normal: the debiased estimate of Kumar et al. (2019, §5) with p = 1, whose average over
    simulated normals is here the mean of a folded normal, in closed form. For two classes. With
    weights, means and shares of the cells are weighted and n_b in σ_b² is (Σ w)² / Σ w².

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
    takes_weights: ClassVar[bool] = True

    def __post_init__(self) -> None:
        object.__setattr__(self, "bins", as_binning(self.bins))

    def given(self, data: Predictions) -> KumarL1:
        """Fix the predictions: partition them once."""
        p, w = event(data, self), data.weights
        cells = Cells.of(self.bins, data.probs, w)
        units = cells.counts if w is None else cells.mass**2 / cells.sum(w**2)
        return KumarL1(data, cells.mean(p), units, cells=cells, estimand=ABSOLUTE)


SQUARED, ABSOLUTE = Estimand("squared"), Estimand("absolute")


@dataclass(frozen=True, eq=False)
class KumarL1(Prepared):
    """The debiased l1 error of Kumar et al. for fixed predictions."""

    predicted: FloatArray = field(repr=False)
    #: Effective number of rows of each cell.
    units: FloatArray | IntArray = field(repr=False)
    cells: Cells = field(kw_only=True, repr=False)

    def batch(self, labels: IntArray) -> FloatArray:
        """Return the values for label vectors of shape (B, n)."""
        events, w = labels == 0, self.data.weights
        return self.of_events(self.cells.sum(events if w is None else events * w, axis=1))

    def of_events(self, events: FloatArray | IntArray) -> FloatArray:
        """Return the values for weights of the events (B, L) in the cells."""
        from scipy.special import erf

        mass = self.cells.mass
        rate = events / mass
        gap = np.abs(rate - self.predicted)
        sigma = np.sqrt(np.maximum(rate * (1.0 - rate), 0.0) / self.units)
        ratio = np.minimum(gap / np.maximum(sigma, 1e-300), 40.0)
        noisy = sigma * np.sqrt(2 / np.pi) * np.exp(-0.5 * ratio**2) + gap * erf(ratio / np.sqrt(2))
        return np.asarray(((2.0 * gap - noisy) * mass).sum(axis=1) / mass.sum())


@dataclass(frozen=True, eq=False)
class KumarL2(Prepared):
    """The debiased squared error of Kumar et al. for fixed predictions."""

    predicted: FloatArray = field(repr=False)
    cells: Cells = field(kw_only=True, repr=False)

    def batch(self, labels: IntArray) -> FloatArray:
        """Return the values for label vectors of shape (B, n)."""
        return self.of_events(self.cells.sum(labels == 0, axis=1))

    def of_events(self, events: FloatArray | IntArray) -> FloatArray:
        """Return the values for numbers of events (B, L) in the cells."""
        counts = self.cells.counts
        rate = events / counts
        excess = (rate - self.predicted) ** 2 - rate * (1.0 - rate) / np.maximum(counts - 1, 1)
        return np.asarray((excess * np.where(counts > 1, counts, 0)).sum(axis=1) / self.data.n)
