"""The problem of a tally of clusters: a unit is a cluster's rows in a micro-cell."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from caltest._base.arrays import AnyArray
from caltest.errors import StatisticError
from caltest.predictions import FloatArray, IntArray, Predictions
from caltest.problem.base import ABSENT, Evaluated, LinearTerm, ResidualSums, Squares, gathered
from caltest.problem.cells import Cells
from caltest.problem.micro import MicroCells
from caltest.problem.rows import Flips
from caltest.problem.tally import TallyProblem
from caltest.simulate import Batches, Scheme, Shortcut, WildSigns
from caltest.tally.base import AnyTally
from caltest.tally.clustered import FEWEST, ClusteredTally


@dataclass(frozen=True, eq=False)
class ClusteredProblem(MicroCells):
    """Sums of every cluster; outcomes are :class:`Flips` of its residuals, (B, G)."""

    tally: ClusteredTally = field(repr=False)
    n_clusters: int
    probs: FloatArray = field(repr=False)
    labels: IntArray = field(repr=False)
    count: FloatArray = field(repr=False)
    place: FloatArray = field(repr=False)
    _sums: dict[Cells, FloatArray] = field(default_factory=dict, repr=False)

    designed = True
    only_null = WildSigns()
    weight = None
    closed = ("right",)

    @classmethod
    def of(cls, tally: ClusteredTally) -> ClusteredProblem:
        """Look at a tally; StatisticError for fewer than 100 clusters."""
        if tally.n_clusters < FEWEST:
            raise StatisticError(
                f"{tally.n_clusters} clusters are too few: random signs of whole clusters hold "
                f"their level from {FEWEST} on. Pass the rows with clusters= if they fit"
            )
        tally.warn(stack=6)
        n, p, _, y, _ = tally.sums.T
        probs, labels = np.clip([p / n, 1.0 - p / n], 0.0, 1.0).T, np.rint(y).astype(np.int64)
        place = tally.cell.astype(np.float64) + 0.5
        return cls(tally, tally.n_clusters, probs, labels, n, place)

    @property
    def grid(self) -> int:  # type: ignore[override]
        return self.tally.n_cells

    @property
    def n(self) -> int:
        return self.tally.n

    @cached_property
    def excess(self) -> FloatArray:
        return self.tally.sums[:, 3] - self.tally.sums[:, 1]

    @property
    def squares(self) -> FloatArray:
        return self.tally.sums[:, 2]

    @property
    def event_sums(self) -> FloatArray:
        return self.tally.sums[:, 4]

    @property
    def observed(self) -> Flips:
        return Flips(np.ones((1, self.n_clusters)))

    def outcomes(self, labels: AnyArray) -> Flips:
        return self.observed  # the only labels whose residuals are known

    @property
    def clusters(self) -> IntArray:
        """Refused: what is asked pairs rows of different clusters."""
        raise StatisticError(
            "pairs of clusters are not kept in a tally of clusters: take ECE or CoxScore, or pass "
            "the rows"
        )

    @property
    def levels(self) -> IntArray:
        return self.tally.cell

    @property
    def variance(self) -> FloatArray:
        return self.tally.sums[:, 1] - self.squares

    @property
    def squared_variance(self) -> FloatArray:
        return np.square(self.variance) / self.count

    def linear(self, name: str, score: Callable[[FloatArray], FloatArray]) -> LinearTerm:
        return self.of_means(name, score(np.clip(self.probs, 1e-12, 1.0)))

    def of_clusters(self, cells: Cells) -> FloatArray:
        """Return the summed residuals of every cluster in every cell, (G, L)."""
        if cells not in self._sums:
            size = len(cells)
            where = self.tally.cluster * size + cells.of_unit
            sums = np.bincount(where, self.excess, self.n_clusters * size)
            self._sums[cells] = np.asarray(sums.reshape(-1, size), dtype=np.float64)
        return self._sums[cells]

    def sums(
        self, outcomes: Flips, cells: Cells | None, squares: Squares = None,
        tables: FloatArray | None = None, norm: int | None = None,
    ) -> ResidualSums:  # fmt: skip
        sums = added = linear = ABSENT
        if cells is not None:
            sums = (outcomes.multipliers @ self.of_clusters(cells))[:, :, None]
            if squares is not None:
                each = cells.sum(self.residuals(self.observed)[1][0])
                added = gathered(np.tile(each, (len(outcomes.multipliers), 1)), squares)
        if tables is not None:
            scores = [np.bincount(self.tally.cluster, self.excess * table) for table in tables]
            linear = outcomes.multipliers @ np.array(scores).T
        return ResidualSums(sums, added, linear)

    def residuals(self, outcomes: Flips) -> tuple[FloatArray, FloatArray]:
        residuals = outcomes.multipliers[:, self.tally.cluster] * self.excess
        squares = self.tally.sums[:, 3] - 2.0 * self.event_sums + self.squares
        return residuals[:, :, None], np.broadcast_to(squares, residuals.shape)

    def law(self, units: IntArray) -> tuple[int, FloatArray, float]:
        raise StatisticError("rows of a cluster depend on each other: there is no exact law")

    def redraws(self, scheme: Scheme, statistic: Evaluated, factor: float = 1.0) -> Shortcut:
        each = np.arange(self.n_clusters)
        clusters = Predictions(np.full((each.size, 2), 0.5), each * 0)
        # Rare events that did not occur leave too little scatter: a calibrated model promises more.
        _, p, p2, y, yp = self.tally.sums.sum(axis=0)
        factor = max(1.0, float((p - p2) / max(y - 2.0 * yp + p2, 1e-300)))
        values = lambda signs: statistic.values(Flips(signs.astype(np.float64)), factor)  # noqa: E731
        return Batches(WildSigns().drawer(clusters), each.size, values)

    @property
    def surprises(self) -> float:
        return float(self.count @ self.probs.min(axis=1))

    @property
    def remarks(self) -> tuple[str, ...]:
        return (f"from sums of {self.n_clusters} clusters, whose signs are drawn",)

    def expand(self) -> tuple[Predictions, FloatArray, IntArray]:
        raise StatisticError("a tally of clusters has no rows")


def problem_of_tally(tally: AnyTally) -> MicroCells:
    """Return the problem of a tally, which its lens has chosen."""
    if isinstance(tally, ClusteredTally):
        return ClusteredProblem.of(tally)
    return TallyProblem.of(tally)
