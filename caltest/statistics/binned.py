"""Binned errors: ECE, MCE and RMSCE, for any lens, binning and distance."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass, field
from functools import cached_property
from typing import ClassVar, Literal

import numpy as np

from caltest._base.compiled import kernel
from caltest.binning import Binning, QuantileBins, UniformBins, as_binning
from caltest.distances import NAMED, Distance, rowwise
from caltest.predictions import FloatArray, IntArray, Predictions
from caltest.simulate import Bootstrap, ConsistencyResampling, RedrawLabels, Scheme, Shortcut
from caltest.statistics.cells import CellLaw, Cells, Estimand
from caltest.statistics.prepared import Prepared, Statistic, event

#: Numbers in an array of cells times classes that is made at once.
AT_ONCE = 2**22


@dataclass(frozen=True, eq=False)
class BinnedError(Prepared):
    """A binned error whose predictions are fixed: the distances of the cells, combined."""

    sums: FloatArray = field(repr=False)
    distance: str | Distance
    combine: Literal["sum", "max"]
    root: bool = False
    cells: Cells = field(kw_only=True, repr=False)

    @classmethod
    def of(
        cls,
        data: Predictions,
        cells: Cells,
        distance: str | Distance = "tv",
        combine: Literal["sum", "max"] = "sum",
        root: bool = False,
    ) -> BinnedError:
        """Sum the predictions of the cells, O(n K)."""
        estimand = _estimand(distance, combine, root, data.n_classes == 2)
        degree = (2 if distance == "sqeuclidean" and not root else 1) if _named(distance) else None
        return cls(
            data, cells.sum(_weighted(data)), distance, combine, root,
            cells=cells, estimand=estimand, degree=degree,
        )  # fmt: skip

    def __call__(self, labels: IntArray) -> float:
        n_classes, starts = self.data.n_classes, self.cells.starts
        at_once = max(1, AT_ONCE // n_classes)
        ordered, counts = labels[self.cells.order], self.cells.counts
        cell = np.repeat(np.arange(len(self.cells)), counts)
        gaps, weights = np.empty(len(self.cells)), self.data.weights
        weights = None if weights is None else weights[self.cells.order]
        for a in range(0, gaps.size, at_once):
            b = min(a + at_once, gaps.size)
            rows = slice(starts[a], starts[b])
            flat = (cell[rows] - a) * n_classes + ordered[rows]
            weight = None if weights is None else weights[rows]
            observed = np.bincount(flat, weight, (b - a) * n_classes).reshape(b - a, n_classes)
            size = self.cells.mass[a:b, None]
            gaps[a:b] = rowwise(self.distance)(observed / size, self.sums[a:b] / size)
        return float(self._combined(gaps[None, :])[0])

    def batch(self, labels: IntArray) -> FloatArray:
        """Return the values for label vectors of shape (B, n), by a compiled pass over the rows."""
        if not isinstance(self.distance, str):
            return super().batch(labels)
        gaps = np.empty((len(labels), len(self.cells)))
        code = list(NAMED).index(self.distance)
        fixed = (self.cells.of_row, self.cells.starts, self.sums, self._untouched)
        if self.sums.size <= self.data.n:
            _gaps_of_tables(labels, *fixed[:3], code, gaps)
        else:
            _gaps_of_cells(labels, self.cells.order, *fixed[1:], code, gaps)
        return self._combined(gaps)

    def of_residuals(self, residuals: FloatArray, multipliers: FloatArray) -> FloatArray:
        """Return the values for moved residuals: the distances of the cells' sums from 0."""
        if self.degree is None:
            return super().of_residuals(residuals, multipliers)
        size = self.cells.mass[:, None]
        sums = np.stack(
            [self.cells.sum(multipliers * column, axis=1) for column in residuals.T], axis=-1
        )
        return self._combined(rowwise(self.distance)(sums / size, np.zeros_like(sums)))

    def cell_law(self) -> CellLaw | None:
        """Return the law of the events in a cell, pushed through its distance."""
        weights = self.data.weights
        if self.data.n_classes != 2 or not (weights is None or (weights == np.rint(weights)).all()):
            return None
        steps = {"tv": 1.0, "l1": 2.0, "l2": 2.0**0.5, "max": 1.0}
        step = steps.get(self.distance) if isinstance(self.distance, str) else None
        unit = None if step is None else step / float(self.cells.mass.sum())
        return CellLaw(self.cells, self._term, self.combine, unit, self.root)

    def _term(self, cell: int, count: IntArray) -> FloatArray:
        size = float(self.cells.mass[cell])
        share, mean = count / size, self.sums[cell] / size
        gaps = rowwise(self.distance)(
            np.column_stack([share, 1.0 - share]), np.broadcast_to(mean, (count.size, 2))
        )
        if self.combine == "max":
            return gaps
        return gaps * (size / float(self.cells.mass.sum()) * (0.5 if self.root else 1.0))

    def fast(self, scheme: Scheme) -> Shortcut | None:
        """Return fused kernels for redrawn labels and resampled rows, for named distances."""
        if not isinstance(self.distance, str):
            return None
        fused: Shortcut | None = None
        partition = (self.cells.order, self.cells.starts)
        if isinstance(scheme, RedrawLabels):
            from caltest.simulate.labels import CellRedraws

            fused = CellRedraws.of(self.data.probs, *partition, self.distance, self.combine)
        elif isinstance(scheme, ConsistencyResampling):
            fused = self._resampled(self.data.probs)
        elif isinstance(scheme, Bootstrap) and scheme.clustered(self.data).clusters is None:
            outcomes = self.data.labels[:, None] == np.arange(self.data.n_classes)
            fused = self._resampled(outcomes.astype(np.float64))
        return Rooted(fused) if self.root and fused is not None else fused

    def _resampled(self, outcomes: FloatArray) -> Shortcut | None:
        assert isinstance(self.distance, str)
        from caltest.simulate.rows import resampled_cells

        partition = (self.cells.bins, self.cells.order, self.cells.starts)
        return resampled_cells(self.data.probs, outcomes, *partition, self.distance, self.combine)

    def _combined(self, gaps: FloatArray) -> FloatArray:
        """Combine distances of shape (B, L)."""
        if self.combine == "max":
            return np.asarray(gaps.max(axis=1))
        mass = self.cells.mass
        values: FloatArray = (gaps * mass).sum(axis=1) / mass.sum()
        return np.sqrt(0.5 * values) if self.root else values

    @cached_property
    def _untouched(self) -> FloatArray:
        """Σ_k |0 − s_k| of a cell: its l1 distance before labels correct it one by one."""
        return self.sums.sum(axis=1)


@dataclass(frozen=True, eq=False)
class Rooted:
    """√(T / 2) of the replicates of a squared error of two columns, which counts gaps twice."""

    inner: Shortcut

    def replicates(self, seed: tuple[int, int], first: int, count: int) -> FloatArray:
        """Return replicates ``first``, …, ``first + count − 1``."""
        return np.asarray(np.sqrt(0.5 * self.inner.replicates(seed, first, count)))


def _weighted(data: Predictions) -> FloatArray:
    return data.probs if data.weights is None else data.probs * data.weights[:, None]


def _named(distance: str | Distance) -> bool:
    return isinstance(distance, str)


def _estimand(distance: str | Distance, combine: str, root: bool, two: bool) -> Estimand | None:
    """Return what the error estimates; of two classes a size counts the first component only."""
    if root:
        return Estimand("squared", root=True)
    if not isinstance(distance, str):
        return None
    factors = {"tv": 0.5, "l1": 1.0, "sqeuclidean": 1.0}
    if two:
        factors = {"tv": 1.0, "l1": 2.0, "l2": 2.0**0.5, "max": 1.0, "sqeuclidean": 2.0}
    if distance not in factors or (combine == "max" and not two):
        return None
    factor = factors[distance]
    squared = distance == "sqeuclidean"
    if combine == "max":
        return Estimand("largest", factor, factor, squared=squared)
    return Estimand("squared" if squared else "absolute", factor, factor if two else 2.0 * factor)


@kernel
def _gaps_of_tables(labels, cell, starts, sums, code, gaps_out):  # type: ignore[no-untyped-def]
    # O(n + L K) per label vector. Codes follow distances.NAMED: 0 tv, 1 l1, 2 l2, 3 sqeuclidean,
    # 4 max.
    n_cells, n_classes = sums.shape
    seen = np.empty((n_cells, n_classes), dtype=np.int64)
    for r in range(labels.shape[0]):
        row = labels[r]
        seen[:] = 0
        for i in range(row.size):
            seen[cell[i], row[i]] += 1
        for b in range(n_cells):
            size = starts[b + 1] - starts[b]
            gap = 0.0
            for k in range(n_classes):
                d = abs(seen[b, k] - sums[b, k]) / size
                if code == 4:
                    gap = max(gap, d)
                else:
                    gap += d if code <= 1 else d * d
            gaps_out[r, b] = 0.5 * gap if code == 0 else np.sqrt(gap) if code == 2 else gap


@kernel
def _gaps_of_cells(  # type: ignore[no-untyped-def]
    labels, order, starts, sums, untouched, code, gaps_out
):
    # O(n) per label vector for l1 distances, also with more cells times classes than rows: a
    # cell's sum over all classes is corrected for those that occur in it.
    n_classes = sums.shape[1]
    seen = np.zeros(n_classes)
    for r in range(labels.shape[0]):
        row = labels[r]
        for b in range(gaps_out.shape[1]):
            first, last = starts[b], starts[b + 1]
            for i in range(first, last):
                seen[row[order[i]]] += 1.0
            gap = untouched[b] if code <= 1 else 0.0
            if code >= 2:  # added up class by class: corrections would cancel, and roots show it
                for k in range(n_classes):
                    d = abs(seen[k] - sums[b, k])
                    gap = max(gap, d) if code == 4 else gap + d * d
            for i in range(first, last):
                k = row[order[i]]
                if code <= 1 and seen[k] > 0.0:
                    gap += abs(seen[k] - sums[b, k]) - sums[b, k]
                seen[k] = 0.0
            size = last - first
            gap = 0.5 * gap if code == 0 else np.sqrt(gap) if code == 2 else gap
            gaps_out[r, b] = gap / size / (size if code == 3 else 1)


@dataclass(frozen=True, repr=False)
class _BinnedError(Statistic):
    """What ECE and MCE share: a partition and a distance."""

    bins: Binning | int = UniformBins(15)
    _: KW_ONLY
    distance: str | Distance = "tv"
    combine: ClassVar[Literal["sum", "max"]]
    essential: ClassVar[int] = 2
    takes_weights: ClassVar[bool] = True

    def __post_init__(self) -> None:
        object.__setattr__(self, "bins", as_binning(self.bins))
        rowwise(self.distance)

    def given(self, data: Predictions) -> BinnedError:
        """Fix the predictions: partition them once, and leave a function of the labels."""
        cells = Cells.of(self.bins, data.probs, data.weights)
        return BinnedError.of(data, cells, self.distance, self.combine)


class ECE(_BinnedError):
    """Expected calibration error, the average gap between outcomes and predictions in cells.

    ECE = Σ_b (n_b / n) · d(r̂_b, ĝ_b), where r̂_b are the frequencies of the labels and ĝ_b the mean
    prediction in cell b (Vaicenavicius et al. 2019, Eq. 6). Empty cells count nothing. With the
    total variation distance and ``TopK(1)`` this is the ECE of Guo et al. (2017). It is biased
    upward when the model is calibrated (its null mean is the noise floor) and estimates a lower
    bound of the true error when it is not (Theorem 2 there).

    Parameters
    ----------
    bins : binning, int or callable, default UniformBins(15)
        The partition; a number m means ``UniformBins(m)``, a function takes the ``(n, K)``
        probabilities and returns an integer for every row.
    distance : str or callable, default "tv"
        ``"tv"``, ``"l1"``, ``"l2"``, ``"sqeuclidean"``, ``"max"``, or a function of two
        probability vectors.

    Notes
    -----
    O(n K) for a value, O(n) for each further set of labels on the same predictions. The range is
    that of the distance: [0, 1] for ``"tv"``.

    Examples
    --------
    >>> probs = np.array([[0.75, 0.25], [0.75, 0.25], [0.25, 0.75], [0.25, 0.75]])
    >>> ECE(UniformBins(2))(probs, np.array([0, 0, 0, 1]))
    0.25
    """

    combine = "sum"


class MCE(_BinnedError):
    """Maximum calibration error, the largest gap d(r̂_b, ĝ_b) over the occupied cells.

    See :class:`ECE` for the parameters. As a test it is weak: one sparse cell decides.

    Examples
    --------
    >>> MCE(UniformBins(2))(np.array([[0.75, 0.25], [0.75, 0.25]]), np.array([0, 0]))
    0.25
    """

    combine = "max"


@dataclass(frozen=True, repr=False)
class RMSCE(Statistic):
    """Root mean squared calibration error of a two-class problem.

    RMSCE = √ Σ_b (n_b / n) (r̂_b − p̂_b)², the binned l2 error (Hendrycks et al. 2019, with
    equal-mass bins of the top class).

    Parameters
    ----------
    bins : binning, default QuantileBins(15)
        The partition, by name.

    Raises
    ------
    StatisticError
        For more than two classes.

    Notes
    -----
    O(n log n), then O(n) for each further set of labels. The authors of the class-wise errors
    publish a function of this name that squares the weights and takes the root twice; it is not
    reproduced here.

    Examples
    --------
    >>> round(RMSCE(QuantileBins(1))(np.array([0.75, 0.25]), np.array([1, 1])), 6)
    0.5
    """

    bins: Binning = QuantileBins(15)
    takes_weights: ClassVar[bool] = True

    def __post_init__(self) -> None:
        object.__setattr__(self, "bins", as_binning(self.bins, number=False))

    def given(self, data: Predictions) -> BinnedError:
        """Fix the predictions: partition them once."""
        event(data, self)
        cells = Cells.of(self.bins, data.probs, data.weights)
        return BinnedError.of(data, cells, "sqeuclidean", root=True)
