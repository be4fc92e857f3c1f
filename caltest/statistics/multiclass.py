"""Class-wise errors, every class binned by itself: ClasswiseECE, SCE, ACE, TACE; and RMSCE."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from caltest._numba import kernel
from caltest.binning import Binning, QuantileBins, UniformBins
from caltest.checks import one_of, whole
from caltest.errors import StatisticError
from caltest.predictions import FloatArray, IntArray
from caltest.statistics.binned import ECE, Cells, as_binning, cell_of_rows, grouped
from caltest.statistics.lanes import ClasswiseRedraws
from caltest.statistics.problem import OfLabels, event

Aggregate = Literal["mean", "max"]
Variant = Literal["paper", "nixon"]
#: Cells of the kept rows of one class, and the weight of each cell, from its probabilities.
ClassBins = Callable[[FloatArray], tuple[IntArray, FloatArray]]


@dataclass(frozen=True, eq=False)
class ClassCells:
    """Σ over the cells of a class of w |events − predicted|, for all classes, predictions fixed.

    The cells of all classes are numbered through; ``cell[i, k]`` is that of row i for class k,
    or −1 where a threshold left the row out. A label adds one event to one cell, so that a set of
    labels costs O(n + cells) whatever K is.
    """

    cell: NDArray[np.int32] = field(repr=False)
    starts: IntArray = field(repr=False)
    sums: FloatArray = field(repr=False)
    weights: FloatArray = field(repr=False)
    aggregate: Aggregate

    def __call__(self, labels: IntArray) -> float:
        by_class = self.by_class(labels)
        return float(by_class.max() if self.aggregate == "max" else by_class.mean())

    def by_class(self, labels: IntArray) -> FloatArray:
        """Return the error of every class, shape (K,)."""
        events = np.zeros(self.sums.size, dtype=np.int64)
        _count(self.cell, labels, events)
        gaps = np.append(np.abs(events - self.sums) * self.weights, 0.0)
        errors = np.add.reduceat(gaps, self.starts[:-1])
        return np.where(np.diff(self.starts) > 0, errors, 0.0)

    def redraws(self, probs: FloatArray, by_class: bool = False) -> ClasswiseRedraws:
        """Return the compiled null under redrawn labels; with ``by_class``, K values each."""
        return ClasswiseRedraws.of(self, probs, by_class)


@kernel
def _count(cell, labels, events_out):  # type: ignore[no-untyped-def]
    # O(n): a row adds an event to the one cell of its label's class.
    for i in range(labels.size):
        hit = cell[i, labels[i]]
        if hit >= 0:
            events_out[hit] += 1


def _class_cells(
    probs: FloatArray, bins: ClassBins, threshold: float, aggregate: Aggregate
) -> ClassCells:
    n, n_classes = probs.shape
    cell = np.full((n, n_classes), -1, dtype=np.int32)
    sums: list[FloatArray] = []
    weights: list[FloatArray] = []
    starts = [0]
    for k in range(n_classes):
        kept = np.flatnonzero(probs[:, k] > threshold) if threshold else np.arange(n)
        p = probs[kept, k]
        cells, weight = bins(p) if kept.size else (kept, np.empty(0))
        cell[kept, k] = starts[-1] + cells
        sums.append(np.bincount(cells, p, minlength=weight.size).astype(np.float64, copy=False))
        weights.append(weight)
        starts.append(starts[-1] + weight.size)
    joined, shares = np.concatenate(sums), np.concatenate(weights)
    return ClassCells(cell, np.array(starts), joined, shares, aggregate)


def _check_threshold(threshold: float) -> None:
    if not 0.0 <= threshold < 1.0:
        raise StatisticError(f"threshold must lie in [0, 1), not {threshold!r}")


def _by_count(cells: Any) -> tuple[IntArray, FloatArray]:
    """Number the occupied cells; a cell of c of the n rows weighs c/n, so its sum weighs 1/n."""
    occupied, cells = np.unique(cells, return_inverse=True)
    return cells.ravel(), np.full(occupied.size, 1.0 / cells.size)


@dataclass(frozen=True, repr=False)
class ClasswiseECE(OfLabels):
    """Class-wise calibration error: the ECE of every class against the rest, averaged.

    (1/K) Σ_k Σ_b (n_bk / n_k) |freq(b, k) − mean p(b, k)|, where the n_k rows with p_ik above the
    threshold are binned for each class by itself; ``aggregate="max"`` takes the largest class in
    place of the mean. A class with no row above the threshold contributes 0.

    Parameters
    ----------
    bins : binning or int, default UniformBins(15)
        Applied to the two columns (p_k, 1 − p_k) of each class, as after ``OneVsRest(k)``.
    aggregate : {"mean", "max"}, default "mean"
        How the classes are combined.
    threshold : float, default 0
        Only predictions above it count; 0 keeps all of them, zeros included.

    Notes
    -----
    O(n K log n) once, then O(n + cells) for each further set of labels; 4 n K bytes. On the scale
    of one class: times K / 2 it is comparable with total variation. Under redrawn labels the null
    is the calibration of the whole vector.

    Examples
    --------
    >>> probs = np.array([[0.5, 0.3, 0.2], [0.5, 0.3, 0.2]])
    >>> round(ClasswiseECE(10)(probs, np.array([0, 0])), 6)
    0.333333
    """

    bins: Binning | int = UniformBins(15)
    aggregate: Aggregate = "mean"
    threshold: float = 0.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "bins", as_binning(self.bins))
        one_of("aggregate", self.aggregate, ("mean", "max"))
        _check_threshold(self.threshold)

    def given(self, probs: FloatArray) -> ClassCells:
        """Fix the predictions: bin every class once."""
        return _class_cells(probs, self._cells, self.threshold, self.aggregate)

    def _cells(self, p: FloatArray) -> tuple[IntArray, FloatArray]:
        order, starts = grouped(self.bins, np.column_stack([p, 1.0 - p]))
        return cell_of_rows(order, starts), np.full(starts.size - 1, 1.0 / p.size)


class _Nixon(OfLabels):
    """What SCE, ACE and TACE share: m cells for each class, as published or as in the code."""

    m: int
    variant: Variant

    def __post_init__(self) -> None:
        whole("m", self.m)
        one_of("variant", self.variant, ("paper", "nixon"))

    def given(self, probs: FloatArray) -> ClassCells:
        """Fix the predictions: bin every class once."""
        return _class_cells(probs, self._cells, 0.0, "mean")

    @abstractmethod
    def _cells(self, p: FloatArray) -> tuple[IntArray, FloatArray]: ...


@dataclass(frozen=True, repr=False)
class SCE(_Nixon):
    """Static calibration error of Nixon et al. (2019, §4.1).

    SCE = (1/K) Σ_k Σ_b (n_bk / N) |acc(b, k) − conf(b, k)| over m bins of equal width for each
    class, acc(b, k) the frequency of label k: the same as ``ClasswiseECE(UniformBins(m))``.

    Parameters
    ----------
    m : int, default 15
        Number of bins.
    variant : {"paper", "nixon"}, default "paper"
        ``"nixon"`` is the authors' code: bins [a, b) with edges of ``linspace(0, 1, m + 1)``, and
        p = 1 in a bin of its own.

    Notes
    -----
    As :class:`ClasswiseECE`. The authors' documentation describes SCE with all classes in one
    histogram, their function computes the formula above.

    Examples
    --------
    >>> round(SCE(5)(np.array([0.22, 0.64, 0.92, 0.42]), np.array([0, 1, 0, 0])), 6)
    0.48
    """

    m: int = 15
    variant: Variant = "paper"

    def _cells(self, p: FloatArray) -> tuple[IntArray, FloatArray]:
        if self.variant == "nixon":
            return _by_count(np.digitize(p, np.linspace(0.0, 1.0, self.m + 1)[1:]))
        return _by_count(UniformBins(self.m)(p))


@dataclass(frozen=True, repr=False)
class TACE(_Nixon):
    """Thresholded adaptive calibration error of Nixon et al. (2019, §4.3).

    TACE = (1/(K R)) Σ_k Σ_r |acc(r, k) − conf(r, k)|: for each class the n_k predictions above the
    threshold are sorted and cut into R = m ranges of ⌊n_k / R⌋, the last with what is left over;
    fewer than R predictions are a range each. Equal predictions are never separated: ranges that
    end at the same value are one range, which weighs as many times 1/R as it replaces. A class with
    no prediction above the threshold contributes 0.

    Parameters
    ----------
    m : int, default 15
        Number of ranges R.
    threshold : float, default 0.01
        Only predictions above it count.
    variant : {"paper", "nixon"}, default "paper"
        ``"nixon"`` is the authors' code: ranges [a, b) that start at ranks round(j n_k / m), each
        weighted by its share of the n_k predictions.

    Notes
    -----
    O(n K log n) once, then O(n + m K) for each further set of labels. Not for very small m K:
    classes with few predictions above the threshold have a high noise floor.

    Examples
    --------
    >>> probs = np.array([[0.9, 0.1], [0.7, 0.3], [0.995, 0.005], [0.6, 0.4]])
    >>> round(TACE(2)(probs, np.array([0, 1, 0, 1])), 6)
    0.363125
    """

    m: int = 15
    threshold: float = 0.01
    variant: Variant = "paper"

    def __post_init__(self) -> None:
        super().__post_init__()
        _check_threshold(self.threshold)

    def given(self, probs: FloatArray) -> ClassCells:
        """Fix the predictions: cut every class into ranges once."""
        return _class_cells(probs, self._cells, self.threshold, "mean")

    def _cells(self, p: FloatArray) -> tuple[IntArray, FloatArray]:
        ordered = np.sort(p)
        if self.variant == "nixon":
            ranks = np.round(np.linspace(0, p.size, self.m, endpoint=False)).astype(np.int64)
            return _by_count(np.digitize(p, ordered[np.minimum(ranks, p.size - 1)][1:]))
        size = max(1, p.size // self.m)
        n_ranges = min(self.m, p.size)
        ends = ordered[np.append(size * np.arange(1, n_ranges) - 1, p.size - 1)]
        ends, replaced = np.unique(ends, return_counts=True)
        cells = np.searchsorted(ends, p, side="left")
        return cells, replaced / (n_ranges * np.bincount(cells, minlength=ends.size))


@dataclass(frozen=True, repr=False)
class ACE(_Nixon):
    """Adaptive calibration error of Nixon et al. (2019, §4.2), :class:`TACE` without a threshold.

    ACE = (1/(K R)) Σ_k Σ_r |acc(r, k) − conf(r, k)| over R = m ranges of ⌊N / R⌋ predictions for
    each class. Three other things are called ACE: the ECE of the top class with equal-mass bins
    (``ECE(QuantileBins(m))`` after ``TopK(1)``), the *average* calibration error of netcal, where
    occupied bins of equal width count the same, and the ranges of this one weighted by their
    counts, as in the authors' code (``variant="nixon"``).

    Parameters
    ----------
    m : int, default 15
        Number of ranges R.
    variant : {"paper", "nixon"}, default "paper"
        See :class:`TACE`.

    Examples
    --------
    >>> probs = np.array([[0.9, 0.1], [0.7, 0.3], [0.8, 0.2], [0.6, 0.4]])
    >>> round(ACE(2)(probs, np.array([0, 1, 0, 1])), 6)
    0.4
    """

    m: int = 15
    variant: Variant = "paper"

    def _cells(self, p: FloatArray) -> tuple[IntArray, FloatArray]:
        return TACE(self.m, 0.0, self.variant)._cells(p)


@dataclass(frozen=True, repr=False)
class RMSCE(OfLabels):
    """Root mean squared calibration error of a two-class problem.

    RMSCE = √ Σ_b (n_b / n) (r̂_b − p̂_b)², the binned l2 error (Hendrycks et al. 2019, with
    equal-mass bins of the top class).

    Parameters
    ----------
    bins : binning or int, default QuantileBins(15)
        The partition; a number m means ``QuantileBins(m)``.

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
    >>> round(RMSCE(1)(np.array([0.75, 0.25]), np.array([1, 1])), 6)
    0.5
    """

    bins: Binning | int = QuantileBins(15)

    def __post_init__(self) -> None:
        object.__setattr__(self, "bins", as_binning(self.bins, QuantileBins))

    def given(self, probs: FloatArray) -> RootOfCells:
        """Fix the predictions: partition them once."""
        event(probs, repr(self))
        return RootOfCells(ECE(self.bins, "sqeuclidean").given(probs))


@dataclass(frozen=True, eq=False)
class RootOfCells:
    """√(T / 2) of a binned squared error T of two columns, which counts every gap twice."""

    cells: Cells

    def evaluate(self, labels: IntArray) -> float:
        """Return the error for these labels, without a compiler."""
        return float(np.sqrt(0.5 * self.cells.evaluate(labels)))

    def __call__(self, labels: IntArray) -> float:
        return float(np.sqrt(0.5 * self.cells(labels)))

    def redraws(self, probs: FloatArray) -> RootOfRedraws | None:
        """Return the compiled null under redrawn labels."""
        inner = self.cells.redraws(probs)
        return None if inner is None else RootOfRedraws(inner)


@dataclass(frozen=True, eq=False)
class RootOfRedraws:
    """The replicates of :class:`RootOfCells`."""

    inner: Any

    def replicates(self, seed: tuple[int, int], first: int, count: int) -> FloatArray:
        """Return replicates ``first``, …, ``first + count − 1``."""
        values: FloatArray = np.sqrt(0.5 * self.inner.replicates(seed, first, count))
        return values
