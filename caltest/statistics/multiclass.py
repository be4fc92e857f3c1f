"""Class-wise errors, every class binned by itself: ClasswiseECE, SCE, ACE, TACE."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass, field
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from caltest._base.checks import MOST_BINS, number, one_of, whole
from caltest._base.compiled import kernel
from caltest.binning import FIXED, Binning, UniformBins, as_binning
from caltest.predictions import FloatArray, IntArray, Predictions
from caltest.problem import Cells, Flips, Problem, RowProblem
from caltest.simulate import RowScheme, Shortcut
from caltest.statistics.base import Statistic, rows_of
from caltest.statistics.prepared import Prepared

Aggregate = Literal["mean", "max"]
#: The cells of the kept rows of one class, and what each cell counts, from their probabilities and
#: weights.
ClassBins = Callable[[FloatArray, FloatArray], tuple[IntArray, FloatArray]]


@dataclass(frozen=True, eq=False)
class ClassCells(Prepared):
    """Σ over the cells of a class of w |events − predicted|, for all classes, predictions fixed.

    The cells of all classes are numbered through, those of class k from ``starts[k]``;
    ``cell[i, k]`` is that of row i for class k, and one more than all of them where a threshold
    left the row out. A label adds one event to one cell, so that a set of labels costs
    O(n + cells) whatever K is.
    """

    cell: NDArray[np.unsignedinteger] = field(repr=False)
    starts: IntArray = field(repr=False)
    expected: FloatArray = field(repr=False)
    shares: FloatArray = field(repr=False)
    aggregate: Aggregate
    #: Whether cells are the same in any sample of these rows, which count alike.
    fixed: bool = field(default=False, kw_only=True)

    @classmethod
    def of(
        cls, problem: Problem, bins: ClassBins, threshold: float, aggregate: Aggregate,
        fixed: bool = False,
    ) -> ClassCells:  # fmt: skip
        """Bin the probabilities above the threshold, class by class; 0 keeps all of them."""
        data = problem.data
        cell = np.full((data.n_classes, data.n), -1, dtype=np.int32)
        of_row = np.ones(data.n) if data.weights is None else data.weights
        sums: list[FloatArray] = []
        weights: list[FloatArray] = []
        starts = [0]
        for k, p in enumerate(data.probs.T):
            rows = np.flatnonzero(p > threshold) if threshold else slice(None)
            p, w = np.ascontiguousarray(p[rows]), of_row[rows]
            cells, weight = bins(p, w) if p.size else (np.empty(0, np.int64), np.empty(0))
            cell[k, rows] = starts[-1] + cells
            sums.append(np.bincount(cells, w * p, minlength=weight.size).astype(np.float64))
            weights.append(weight)
            starts.append(starts[-1] + weight.size)
        cell[cell < 0] = starts[-1]
        # Of the smallest type and row by row: a label looks up one entry of its row.
        small = np.ascontiguousarray(cell.astype(np.min_scalar_type(starts[-1])).T)
        parts = (np.array(starts), np.concatenate(sums), np.concatenate(weights))
        return cls(problem, small, *parts, aggregate, fixed=fixed)

    @property
    def rows_per_cell(self) -> float:
        return float(np.count_nonzero(self.cell < self.shares.size) / max(1, self.shares.size))

    def values(self, outcomes: object, factor: float = 1.0) -> FloatArray:
        return self._combined(self.by_class(factor**0.5 * self._sums(outcomes)))

    def by_class(self, sums: FloatArray) -> FloatArray:
        """Return the error of every class, (B, K), for residual sums of all cells (B, L)."""
        # One term more, as the last class may have no cells and start beyond the others.
        gaps = np.concatenate([np.abs(sums) * self.shares, np.zeros((len(sums), 1))], axis=1)
        errors = np.add.reduceat(gaps, self.starts[:-1], axis=1)
        # Of a class without cells reduceat gives the first term of the next.
        return np.asarray(np.where(np.diff(self.starts) > 0, errors, 0.0))

    def _sums(self, outcomes: object) -> FloatArray:
        """Return the residual sums (B, L) of all cells; O(n + L) for each set of labels."""
        size, w = self.shares.size, self.problem.weight
        if isinstance(outcomes, Flips):
            residuals, flat = self.data.residuals, self.cell.ravel()
            moved = ((m[:, None] * residuals).ravel() for m in outcomes.multipliers)
            return np.array([np.bincount(flat, r, size + 1)[:-1] for r in moved], dtype=np.float64)
        assert isinstance(outcomes, np.ndarray)
        if len(outcomes) == 1:  # without compiled code, which takes half a second to load
            hit = self.cell[np.arange(self.problem.n), outcomes[0]]
            return np.bincount(hit, w, size + 1)[None, :-1] - self.expected
        events = np.empty((len(outcomes), size + 1))
        _count_entries(outcomes, self.cell, np.empty(0) if w is None else w, events)
        return np.asarray(events[:, :-1] - self.expected)

    def row_resamples(self, scheme: RowScheme) -> Shortcut | None:
        """Return compiled resampling of rows that count alike, where these keep their cells."""
        outcomes = scheme.label_chances(self.data) if self.fixed else None
        if outcomes is None:
            return None
        from caltest.simulate.rows import resampled_classes

        rows = self.data.probs, outcomes, self.cell, self.starts
        return resampled_classes(*rows, self._combined)

    def _combined(self, errors: FloatArray) -> FloatArray:
        """Combine the errors of the classes, shape (B, K)."""
        return np.asarray(errors.max(axis=1) if self.aggregate == "max" else errors.mean(axis=1))


@kernel
def _count_entries(labels, cell, weights, events_out):  # type: ignore[no-untyped-def]
    # O(n + L) per label vector: a row adds an event to the one cell of its label's class.
    for r in range(labels.shape[0]):
        row, events = labels[r], events_out[r]
        events[:] = 0.0
        if weights.size > 0:
            for i in range(row.size):
                events[cell[i, row[i]]] += weights[i]
        else:
            for i in range(row.size):
                events[cell[i, row[i]]] += 1.0


@dataclass(frozen=True, repr=False)
class ClasswiseECE(Statistic):
    """Class-wise calibration error: the ECE of every class against the rest, averaged.

    (1/K) Σ_k Σ_b (n_bk / n_k) |freq(b, k) − mean p(b, k)|, where the n_k rows with p_ik above the
    ``threshold`` (0 keeps all of them, zeros included) are binned for each class by itself, by the
    two columns (p_k, 1 − p_k), as after ``OneVsRest(k)``; ``aggregate="max"`` takes the largest
    class in place of the "mean". A class with no row above the threshold contributes 0. Times K / 2
    it is comparable with total variation. With weights n_bk and n_k are sums of weights.
    O(n K log n) once, then O(n + cells) for each further set of labels.

    Examples
    --------
    >>> probs = np.array([[0.5, 0.3, 0.2], [0.5, 0.3, 0.2]])
    >>> round(ClasswiseECE(10)(probs, np.array([0, 0])), 6)
    0.333333
    """

    bins: Binning | int = UniformBins(15)
    _: KW_ONLY
    aggregate: Aggregate = "mean"
    threshold: float = 0.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "bins", as_binning(self.bins))
        one_of("aggregate", self.aggregate, ("mean", "max"))
        number("threshold", self.threshold, 0.0, 1.0, "[)")

    def prepare(self, problem: Problem) -> ClassCells:
        data = rows_of(problem, self, weights=True)
        fixed = isinstance(self.bins, FIXED) and self.threshold == 0.0 and data.weights is None
        return ClassCells.of(problem, self._cells, self.threshold, self.aggregate, fixed)

    def _cells(self, p: FloatArray, w: FloatArray) -> tuple[IntArray, FloatArray]:
        columns = np.column_stack([p, 1.0 - p])
        one_class = Predictions(columns, np.zeros(p.size, dtype=np.int64), induced=True)
        cells = Cells.of(self.bins, RowProblem(one_class))
        return cells.of_unit, np.full(len(cells), 1.0 / w.sum())


def SCE(bins: int = 15) -> ClasswiseECE:  # noqa: N802 (named as published)
    """Return the static calibration error of Nixon et al. (2019, §4.1).

    SCE = (1/K) Σ_k Σ_b (n_bk / N) |acc(b, k) − conf(b, k)| over bins of equal width for each class,
    acc(b, k) the frequency of label k: ``ClasswiseECE(UniformBins(bins))``.
    """
    return ClasswiseECE(UniformBins(bins))


@dataclass(frozen=True, repr=False)
class ACE(Statistic):
    """Adaptive calibration error of Nixon et al. (2019, §4.2).

    ACE = (1/(K R)) Σ_k Σ_r |acc(r, k) − conf(r, k)|: for each class the n_k predictions above the
    ``threshold`` (0 keeps all of them, zeros included) are sorted and cut into R = ``bins`` ranges
    of ⌊n_k / R⌋, the last with what is left over; fewer than R predictions are a range each. Equal
    predictions are never separated: ranges that end at the same value are one range, which weighs
    as many times 1/R as it replaces. A class with no prediction above the threshold contributes 0.
    Ranges do not see weights, means in them are weighted. O(n K log n) once, then O(n + R K) for
    each further set of labels.

    Also called ACE are ``ECE(QuantileBins(m))`` after ``TopK(1)``, an average of netcal in which
    occupied bins of equal width count the same, and ranges weighted by their counts, as in the
    authors' code (``presets.nixon2019(variant="nixon")``).

    Examples
    --------
    >>> probs = np.array([[0.9, 0.1], [0.7, 0.3], [0.8, 0.2], [0.6, 0.4]])
    >>> round(ACE(2)(probs, np.array([0, 1, 0, 1])), 6)
    0.4
    """

    bins: int = 15
    _: KW_ONLY
    threshold: float = 0.0

    def __post_init__(self) -> None:
        whole("bins", self.bins, most=MOST_BINS)
        number("threshold", self.threshold, 0.0, 1.0, "[)")

    def prepare(self, problem: Problem) -> ClassCells:
        rows_of(problem, self, weights=True)
        return ClassCells.of(problem, self._cells, self.threshold, "mean")

    def _cells(self, p: FloatArray, w: FloatArray) -> tuple[IntArray, FloatArray]:
        ordered = np.sort(p)
        size, n_ranges = max(1, p.size // self.bins), min(self.bins, p.size)
        ends = ordered[np.append(size * np.arange(1, n_ranges) - 1, p.size - 1)]
        ends, replaced = np.unique(ends, return_counts=True)
        cells = np.searchsorted(ends, p, side="left")
        return cells, replaced / (n_ranges * np.bincount(cells, w, minlength=ends.size))


def TACE(bins: int = 15, *, threshold: float = 0.01) -> ACE:  # noqa: N802 (named as published)
    """Return the thresholded adaptive calibration error of Nixon et al. (2019, §4.3).

    :class:`ACE` of the predictions above ``threshold``, a number in [0, 1).
    """
    return ACE(bins, threshold=threshold)
