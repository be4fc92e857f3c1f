"""Binned errors: ECE, MCE and RMSCE, for any lens, binning and distance."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from functools import cached_property
from typing import ClassVar, Literal

import numpy as np

from caltest.binning import Binning, QuantileBins, UniformBins, as_binning
from caltest.distances import Distance, rowwise
from caltest.predictions import FloatArray
from caltest.problem import Cells, Estimand, Problem
from caltest.simulate import RowScheme, Shortcut
from caltest.statistics.base import Statistic
from caltest.statistics.prepared import CellStatistic


@dataclass(frozen=True, eq=False)
class BinnedError(CellStatistic):
    """Distances of the cells' sums from 0, weighted by the cells, or the largest of them."""

    distance: str | Distance

    @classmethod
    def of(
        cls, cells: Cells, distance: str | Distance = "tv", combine: Literal["sum", "max"] = "sum",
        root: bool = False,
    ) -> BinnedError:  # fmt: skip
        """Take the error of a partition."""
        two = cells.problem.n_classes == 2
        # What one more event adds to a term that is linear in it: the grid of the exact law.
        steps = {"tv": 1.0, "l1": 2.0, "l2": 2.0**0.5, "max": 1.0}
        step = steps.get(distance) if isinstance(distance, str) else None
        return cls(
            cells.problem, distance,
            cells=cells, combine=combine, root=root,
            unit=None if step is None else step / float(cells.mass.sum()),
            estimand=_estimand(distance, combine, root, two),
        )  # fmt: skip

    @property
    def norm(self) -> int | None:
        many = self.problem.n_classes > 2 and isinstance(self.distance, str)
        return DISTANCE_NORMS[str(self.distance)] if many else None

    def terms(self, sums: FloatArray, at: slice = slice(None)) -> FloatArray:
        """Return mass · d(observed, predicted) / total mass of the cells; for MCE d alone."""
        mass, largest = self.cells.mass[at], self.combine == "max"
        if not isinstance(self.distance, str):
            gaps = self._by_function(sums, at)
            return gaps if largest else gaps * (mass / self._divisor)
        gaps = _gaps(self.distance, sums[:, :, 0], mass, self.problem.n_classes == 2)
        return gaps / mass if largest else gaps / self._divisor

    @cached_property
    def _divisor(self) -> float:
        """The total mass; a root is of the squared error of one component of two."""
        return float(self.cells.mass.sum()) * (2.0 if self.root else 1.0)

    def _by_function(self, sums: FloatArray, at: slice) -> FloatArray:
        """Return the distances of observed and predicted means, for residual sums (B, L, d)."""
        mass, expected = self.cells.mass[at, None], self.cells.expected[at]
        events = sums + expected
        # Counts are whole: a rate of 0 has to be 0, since a distance may take its root.
        near = np.rint(events)
        events = np.where(np.abs(events - near) < 1e-12 * mass, near, events)
        observed, mean = events / mass, np.broadcast_to(expected / mass, events.shape)
        if self.problem.n_classes == 2:
            observed, mean = (np.concatenate([x, 1.0 - x], axis=-1) for x in (observed, mean))
        k = mean.shape[-1]
        distances = rowwise(self.distance)(observed.reshape(-1, k), mean.reshape(-1, k))
        return distances.reshape(sums.shape[:2])

    def row_resamples(self, scheme: RowScheme) -> Shortcut | None:
        """Return compiled resampling of rows, for named distances without weights or clusters."""
        problem, cells = self.problem, self.cells
        named = isinstance(self.distance, str) and problem.exact and problem.weight is None
        outcomes = scheme.label_chances(problem.data) if named else None
        if outcomes is None:
            return None
        from caltest.simulate.rows import resampled_cells

        rows = problem.probs, outcomes, cells.bins, cells.order, cells.starts
        return resampled_cells(*rows, str(self.distance), self.combine, self.root)


#: Of several classes these norms of the residual sums say the distance of a cell.
DISTANCE_NORMS = {"tv": 0, "l1": 0, "l2": 1, "sqeuclidean": 1, "max": 2}


def _gaps(distance: str, sums: FloatArray, mass: FloatArray, two: bool) -> FloatArray:
    """Return mass · distance of the cells, for sums of the event (B, L), or for norms."""
    if two:
        # The second component is minus the first: ‖r‖₁ = 2 |r|, ‖r‖₂ = √2 |r|.
        factor = {"l1": 2.0, "l2": 2.0**0.5}.get(distance, 1.0)
        return sums * sums * (2.0 / mass) if distance == "sqeuclidean" else factor * np.abs(sums)
    if distance == "l2":
        return np.sqrt(sums)
    return sums / mass if distance == "sqeuclidean" else 0.5 * sums if distance == "tv" else sums


def _estimand(distance: str | Distance, combine: str, root: bool, two: bool) -> Estimand | None:
    """Return what the error estimates; of two classes a size counts the first component only."""
    if root:
        return Estimand("squared", root=True)
    if not isinstance(distance, str):
        return None
    factors = {"tv": 0.5, "l1": 1.0, "sqeuclidean": 1.0}
    if two:
        factors = {"tv": 1.0, "l1": 2.0, "l2": 2.0**0.5, "max": 1.0, "sqeuclidean": 2.0}
    # Intervals add up components; the other distances of vectors are no sums of them.
    if distance not in factors or (combine == "max" and not two):
        return None
    factor = factors[distance]
    squared = distance == "sqeuclidean"
    if combine == "max":
        return Estimand("largest", factor, factor, squared=squared)
    return Estimand("squared" if squared else "absolute", factor, factor if two else 2.0 * factor)


@dataclass(frozen=True, repr=False)
class _BinnedError(Statistic):
    """What ECE and MCE share: a partition and a distance."""

    bins: Binning | int = UniformBins(15)
    _: KW_ONLY
    distance: str | Distance = "tv"
    combine: ClassVar[Literal["sum", "max"]]
    essential: ClassVar[int] = 2

    def __post_init__(self) -> None:
        object.__setattr__(self, "bins", as_binning(self.bins))
        rowwise(self.distance)

    def prepare(self, problem: Problem) -> BinnedError:
        return BinnedError.of(Cells.of(self.bins, problem), self.distance, self.combine)


class ECE(_BinnedError):
    """Expected calibration error, the average gap between outcomes and predictions in cells.

    ECE = Σ_b (n_b / n) · d(r̂_b, ĝ_b), where r̂_b are the frequencies of the labels and ĝ_b the
    mean prediction in cell b (Vaicenavicius et al. 2019, Eq. 6). Empty cells count nothing. With
    the total variation distance and ``TopK(1)`` this is the ECE of Guo et al. (2017). Noise biases
    it upward; cells make it estimate a lower bound of the true error (Theorem 2 there). O(n K) for
    a value, O(n) for each further set of labels on the same predictions. The range is that of the
    distance: [0, 1] for ``"tv"``.

    Parameters
    ----------
    bins : binning, int or callable, default UniformBins(15)
        The partition; a number m means ``UniformBins(m)``, a function takes the ``(n, K)``
        probabilities and returns an integer for every row.
    distance : str or callable, default "tv"
        ``"tv"``, ``"l1"``, ``"l2"``, ``"sqeuclidean"``, ``"max"``, or a function of two
        probability vectors.

    Examples
    --------
    >>> probs = np.array([[0.75, 0.25], [0.75, 0.25], [0.25, 0.75], [0.25, 0.75]])
    >>> ECE(UniformBins(2))(probs, np.array([0, 0, 0, 1]))
    0.25
    """

    combine = "sum"


class MCE(_BinnedError):
    """Maximum calibration error, the largest gap d(r̂_b, ĝ_b) over the occupied cells.

    Parameters are those of :class:`ECE`. As a test it is weak: one sparse cell decides.
    """

    combine = "max"


@dataclass(frozen=True, repr=False)
class RMSCE(Statistic):
    """Root mean squared calibration error of a two-class problem.

    RMSCE = √ Σ_b (n_b / n) (r̂_b − p̂_b)², the binned l2 error (Hendrycks et al. 2019, with
    equal-mass bins of the top class). ``bins`` is the partition, by name. O(n log n), then O(n) for
    each further set of labels.

    Examples
    --------
    >>> round(RMSCE(QuantileBins(1))(np.array([0.75, 0.25]), np.array([1, 1])), 6)
    0.5
    """

    bins: Binning = QuantileBins(15)

    def __post_init__(self) -> None:
        object.__setattr__(self, "bins", as_binning(self.bins, number=False))

    def prepare(self, problem: Problem) -> BinnedError:
        problem.event(self)
        return BinnedError.of(Cells.of(self.bins, problem), "sqeuclidean", root=True)
