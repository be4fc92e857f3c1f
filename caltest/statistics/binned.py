"""Binned errors: ECE and MCE, for any lens, binning and distance."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from caltest._numba import kernel
from caltest.binning import Binning, UniformBins
from caltest.distances import NAMED, Distance, rowwise
from caltest.errors import StatisticError
from caltest.predictions import FloatArray, IntArray
from caltest.statistics.lanes import CellRedraws, CellResamples, RowResamples
from caltest.statistics.problem import OfLabels
from caltest.written import name_of


@dataclass(frozen=True, eq=False)
class Cells:
    """A binned error whose predictions are fixed: what is left is a function of the labels.

    Calling it runs a compiled kernel for the named distances; :meth:`evaluate` is the same number
    in NumPy, which needs no compiler and any distance will do.
    """

    order: IntArray
    starts: IntArray
    sums: FloatArray
    distance: str | Distance
    combine: str
    bins: Any = None

    @property
    def counts(self) -> IntArray:
        """Number of rows in each cell."""
        return np.diff(self.starts)

    def evaluate(self, labels: IntArray) -> float:
        """Return the error for these labels."""
        n_cells, n_classes = self.sums.shape
        at_once = max(1, 2**22 // n_classes)  # cells handled together, to bound the memory
        ordered, counts = labels[self.order], self.counts
        cell = np.repeat(np.arange(n_cells), counts)
        gaps = np.empty(n_cells)
        for a in range(0, n_cells, at_once):
            b = min(a + at_once, n_cells)
            rows = slice(self.starts[a], self.starts[b])
            flat = (cell[rows] - a) * n_classes + ordered[rows]
            observed = np.bincount(flat, minlength=(b - a) * n_classes).reshape(b - a, n_classes)
            size = counts[a:b, None]
            gaps[a:b] = rowwise(self.distance)(observed / size, self.sums[a:b] / size)
        return self._combined(gaps)

    def __call__(self, labels: IntArray) -> float:
        if self._code < 0:
            return self.evaluate(labels)
        gaps = np.empty(self.counts.size)
        _cell_gaps(labels, self.order, self.starts, self.sums, self._untouched, self._code, gaps)
        return self._combined(gaps)

    @property
    def unit(self) -> float | None:
        """The step of a term of a two-class problem, 1/n for total variation."""
        steps = {"tv": 1.0, "l1": 2.0, "l2": 2.0**0.5, "max": 1.0}
        step = steps.get(self.distance) if isinstance(self.distance, str) else None
        return None if step is None else step / self.order.size

    def term(self, cell: int, count: IntArray) -> FloatArray:
        """Return what a cell of a two-class problem adds when ``count`` rows have label 0."""
        size = int(self.counts[cell])
        share = count / size
        mean = self.sums[cell] / size
        gaps = rowwise(self.distance)(
            np.column_stack([share, 1.0 - share]), np.broadcast_to(mean, (count.size, 2))
        )
        return gaps if self.combine == "max" else gaps * (size / self.order.size)

    def redraws(self, probs: FloatArray) -> CellRedraws | None:
        """Return the compiled null under redrawn labels, for a named distance."""
        return CellRedraws.of(self, probs) if isinstance(self.distance, str) else None

    def resamples(self, probs: FloatArray) -> CellResamples | RowResamples | None:
        """Return the compiled law under consistency resampling, for the binnings of caltest."""
        return self._resampled(probs, probs)

    def bootstraps(
        self, probs: FloatArray, labels: IntArray
    ) -> CellResamples | RowResamples | None:
        """Return the compiled law under the bootstrap of rows with their labels."""
        return self._resampled(probs, labels[:, None] == np.arange(probs.shape[1]))

    def _resampled(
        self, probs: FloatArray, outcomes: NDArray[Any]
    ) -> CellResamples | RowResamples | None:
        kinds: tuple[type[CellResamples], type[RowResamples]] = CellResamples, RowResamples
        fitting = (kind for kind in kinds if kind.fits(self))
        kind = next(fitting, None)
        return None if kind is None else kind.of(self, probs, outcomes.astype(np.float64))

    def _combined(self, gaps: FloatArray) -> float:
        if self.combine == "max":
            return float(gaps.max())
        return float(gaps @ self.counts) / self.order.size

    @cached_property
    def _code(self) -> int:
        return list(NAMED).index(self.distance) if isinstance(self.distance, str) else -1

    @cached_property
    def _untouched(self) -> FloatArray:
        """Σ_k |0 − s_k| of a cell: its l1 distance before labels correct it one by one."""
        return self.sums.sum(axis=1)


@kernel
def _cell_gaps(labels, order, starts, sums, untouched, code, gaps_out):  # type: ignore[no-untyped-def]
    # O(n) for l1 distances: a cell's sum over all classes is corrected for those that occur in it.
    # Codes follow distances.NAMED: 0 tv, 1 l1, 2 l2, 3 sqeuclidean, 4 max.
    n_classes = sums.shape[1]
    seen = np.zeros(n_classes)
    for b in range(gaps_out.size):
        first, last = starts[b], starts[b + 1]
        for i in range(first, last):
            seen[labels[order[i]]] += 1.0
        gap = untouched[b] if code <= 1 else 0.0
        if code >= 2:  # added up class by class: corrections would cancel, and roots show it
            for k in range(n_classes):
                d = abs(seen[k] - sums[b, k])
                gap = max(gap, d) if code == 4 else gap + d * d
        for i in range(first, last):
            k = labels[order[i]]
            if code <= 1 and seen[k] > 0.0:
                gap += abs(seen[k] - sums[b, k]) - sums[b, k]
            seen[k] = 0.0
        size = last - first
        if code == 0:
            gap *= 0.5
        elif code == 2:
            gap = np.sqrt(gap)
        elif code == 3:
            gap /= size
        gaps_out[b] = gap / size


@dataclass(frozen=True, repr=False)
class _BinnedError(OfLabels):
    """What ECE and MCE share: a partition and a distance."""

    bins: Binning | int = UniformBins(15)
    distance: str | Distance = "tv"
    combine: ClassVar[str]
    essential: ClassVar[int] = 2

    def __post_init__(self) -> None:
        object.__setattr__(self, "bins", as_binning(self.bins))
        rowwise(self.distance)

    def given(self, probs: FloatArray) -> Cells:
        """Fix the predictions: partition them once, and leave a function of the labels."""
        order, starts = grouped(self.bins, probs)
        sums = np.add.reduceat(probs[order], starts[:-1], axis=0)
        return Cells(order, starts, sums, self.distance, self.combine, self.bins)


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


def as_binning(bins: Any, of_number: Callable[[int], Binning] = UniformBins) -> Binning:
    """Return a binning, for a number of bins that many equal ones or what is made of it.

    Raises
    ------
    StatisticError
        When it is neither a number nor callable.
    """
    if isinstance(bins, (int, np.integer)):
        return of_number(int(bins))
    if not callable(bins):
        raise StatisticError(
            f"bins must be a number of bins, a binning such as UniformBins(15), or a function "
            f"of the probabilities, not {bins!r}"
        )
    chosen: Binning = bins
    return chosen


def grouped(bins: Any, probs: FloatArray) -> tuple[IntArray, IntArray]:
    """Return the rows in the order of their cells, and where each occupied cell starts."""
    cells = np.asarray(bins(probs))
    if cells.shape != (len(probs),) or cells.dtype.kind not in "iu":
        raise StatisticError(
            f"the binning {name_of(bins)} must return one integer per row, an array of shape "
            f"({len(probs)},); it returned {cells.dtype} of shape {cells.shape}"
        )
    if cells.min() >= 0 and cells.max() < 2**16:
        cells = cells.astype(np.uint16)  # sorted by radix: O(n)
    order = np.argsort(cells, kind="stable")
    ordered = cells[order]
    starts = np.flatnonzero(np.append(True, ordered[1:] != ordered[:-1]))
    return order, np.append(starts, len(probs))


def cell_of_rows(order: IntArray, starts: IntArray) -> IntArray:
    """Return the number of the cell of every row, from what :func:`grouped` returns."""
    cells = np.empty(order.size, dtype=np.int64)
    cells[order] = np.repeat(np.arange(starts.size - 1), np.diff(starts))
    return cells
