"""The monotone sweep: as many equal-mass bins as leave the calibration curve increasing."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass, field
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from caltest._base.arrays import by_value
from caltest._base.checks import one_of
from caltest._base.compiled import kernel
from caltest.predictions import FloatArray, IntArray
from caltest.problem import Problem
from caltest.statistics.base import Statistic, rows_of
from caltest.statistics.prepared import LabelStatistic

#: Part by which a weighted frequency may fall by rounding and still count as not falling.
ROUNDING = 1e-12


@dataclass(frozen=True, eq=False)
class SortedRows(LabelStatistic):
    """The monotone sweep with the predictions fixed and sorted.

    In ``order``, the rows that are tied with the i-th end at ``group_end[i]``; ``mass[i]`` is the
    weight of the first i rows and ``predicted[i]`` the sum of their predictions. ``weights`` are in
    the order of the rows; of rows that count alike they and ``mass`` are whole numbers.
    """

    order: IntArray = field(repr=False)
    group_end: IntArray = field(repr=False)
    weights: NDArray[Any] = field(repr=False)
    mass: NDArray[Any] = field(repr=False)
    predicted: FloatArray = field(repr=False)
    norm: Literal["l1", "l2"]

    def n_bins(self, labels: IntArray) -> int:
        """Return the number of bins that these labels lead to."""
        return int(self._swept(labels[None, :])[1, 0])

    def batch(self, labels: Any) -> FloatArray:
        return self._swept(labels)[0]

    def _swept(self, labels: IntArray) -> FloatArray:
        errors, n_bins = both = np.empty((2, len(labels)))
        fixed = (self.order, self.group_end, self.weights, self.mass, self.predicted)
        least = 1 if self.data.weights is None else 1.0 - ROUNDING
        _sweep(labels, *fixed, least, self.norm == "l2", errors, n_bins)
        return both


@kernel
def _sweep(  # type: ignore[no-untyped-def]
    labels, order, group_end, weights, mass, predicted, least, squared, errors_out, n_bins_out
):
    # O(n) for the running sums, O(b) to look at b bins. Bytes fit into the nearest cache.
    n = group_end.size
    happened, events = np.empty(n, weights.dtype), np.zeros(n + 1, mass.dtype)
    for r in range(errors_out.size):
        for i in range(n):
            happened[i] = weights[i] if labels[r, i] == 0 else 0
        hits = mass[0]
        for i in range(n):
            hits += happened[order[i]]
            events[i + 1] = hits
        # A curve that is monotone over the distinct values is so over any bins made of them.
        before, size_before, start, monotone = mass[0], mass[0], 0, True
        while start < n and monotone:
            end = group_end[start]
            inside, size = events[end] - events[start], mass[end] - mass[start]
            monotone = inside * size_before >= before * size * least
            before, size_before, start = inside, size, end
        n_bins = n if monotone else 1
        rising = not monotone
        while rising:
            before, size_before, start = mass[0], mass[0], 0
            for j in range(1, n_bins + 2):
                end = group_end[(j * n + n_bins) // (n_bins + 1) - 1]
                if end > start:
                    inside, size = events[end] - events[start], mass[end] - mass[start]
                    if inside * size_before < before * size * least:
                        rising = False
                        break
                    before, size_before, start = inside, size, end
            n_bins += rising
        total, start = 0.0, 0
        for j in range(1, n_bins + 1):
            end = group_end[(j * n + n_bins - 1) // n_bins - 1]
            if end > start:
                gap = abs(events[end] - events[start] - (predicted[end] - predicted[start]))
                total += gap * gap / (mass[end] - mass[start]) if squared else gap
                start = end
        errors_out[r] = np.sqrt(total / mass[n]) if squared else total / mass[n]
        n_bins_out[r] = n_bins


@dataclass(frozen=True, repr=False)
class Sweep(Statistic):
    """ECE with the monotone sweep, ECE_sweep with equal mass, for two classes.

    For b = 2, 3, … the sorted predictions are cut at ranks ⌈j n / b⌉ into b bins, ties kept
    together, until the frequencies of the event no longer increase from bin to bin; with the last b
    that was good (at most n), the value is (Σ_b (n_b / n) |r̂_b − p̂_b|^q)^{1/q}, q = 1 or 2 by the
    ``norm`` "l1" or "l2", the default of the authors' code (Roelofs et al., "Mitigating bias in
    calibration error estimation", AISTATS 2022, Algorithm 1). Software that takes the *largest* b
    that leaves the curve monotone returns other values. Bins are chosen anew for every set of
    labels; with weights, frequencies, means and shares are weighted, and ranks are not.
    O(n log n) once; then O(n + b²) for a set of labels that leads to b bins.

    Examples
    --------
    >>> forecast, rained = np.array([0.1, 0.2, 0.3, 0.7, 0.8, 0.9]), np.array([0, 1, 0, 1, 0, 1])
    >>> round(Sweep()(forecast, rained), 6)
    0.233333
    """

    _: KW_ONLY
    norm: Literal["l1", "l2"] = "l1"
    essential: ClassVar[int] = 0

    def __post_init__(self) -> None:
        one_of("norm", self.norm, ("l1", "l2"))

    def prepare(self, problem: Problem) -> SortedRows:
        data, p = rows_of(problem, self, weights=True), problem.event(self)
        order, ends = by_value(p)
        group_end = np.repeat(ends, np.diff(ends, prepend=0))
        w: Any = np.ones(p.size, np.uint8) if data.weights is None else data.weights
        mass = np.arange(p.size + 1) if data.weights is None else _from_0(w[order])
        return SortedRows(problem, order, group_end, w, mass, _from_0((w * p)[order]), self.norm)


def _from_0(values: FloatArray) -> FloatArray:
    """Return the sums of the first 0, 1, … values."""
    return np.append(0.0, np.cumsum(values))
