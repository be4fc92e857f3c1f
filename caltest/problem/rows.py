"""The problem of predictions: a unit is a row, and its outcome a label."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import TYPE_CHECKING, cast

import numpy as np

from caltest._base.arrays import largest
from caltest._base.poisson_binomial import poisson_binomial
from caltest.binning import Binning
from caltest.errors import StatisticError
from caltest.lenses import OneVsRest
from caltest.predictions import FloatArray, IntArray, Predictions
from caltest.problem.base import (
    ABSENT,
    Evaluated,
    LinearTerm,
    Outcomes,
    Problem,
    ResidualSums,
    Squares,
    gathered,
)
from caltest.problem.cells import Cells
from caltest.simulate import (
    Batches,
    LabelScheme,
    RedrawLabels,
    Scheme,
    Shortcut,
    WildSigns,
)

if TYPE_CHECKING:
    from caltest.statistics.prepared import SumStatistic

#: Replicates that share a pass over the rows at most, and numbers that a block of them may take.
LANES, ROOM = 128, 2**17


@dataclass(frozen=True, eq=False)
class Flips:
    """Outcomes as multiples ``multipliers[b, i]`` of the observed residuals of the rows."""

    multipliers: FloatArray


@dataclass(frozen=True, eq=False)
class RowProblem(Problem):
    """Predictions as a lens shows them: outcomes are label vectors (B, n), or :class:`Flips`."""

    predictions: Predictions = field(repr=False)
    exact = True
    count = None

    @staticmethod
    def of(data: Predictions) -> RowProblem:
        """Look at data as a statistic does: label 1 is the event, or what a lens has said."""
        from caltest.problem.followup import row_problem

        plain = data.n_classes == 2 and not data.induced
        return row_problem(OneVsRest(1)(data) if plain else data)

    @property
    def probs(self) -> FloatArray:  # type: ignore[override]
        """Predictions (n, K)."""
        return self.predictions.probs

    @property
    def weight(self) -> FloatArray | None:  # type: ignore[override]
        """The weight of every row."""
        return self.predictions.weights

    @property
    def n_clusters(self) -> int | None:  # type: ignore[override]
        """How many clusters rows come in; None where they are independent."""
        return self.predictions.n_clusters

    @property
    def n(self) -> int:
        return self.predictions.n

    @property
    def data(self) -> Predictions:
        return self.predictions

    @property
    def labels(self) -> IntArray:  # type: ignore[override]
        """The observed labels (n,)."""
        return self.predictions.labels

    @property
    def impossible(self) -> IntArray:
        return self.predictions.impossible

    @property
    def events(self) -> IntArray:
        return (self.labels == 0).astype(np.int64)

    @property
    def designed(self) -> bool:  # type: ignore[override]
        return self.weight is not None or self.n_clusters is not None

    def expand(self) -> tuple[Predictions, FloatArray, IntArray]:
        return self.predictions, np.ones(self.n), np.arange(self.n)

    @property
    def observed(self) -> IntArray:
        return self.labels[None, :]

    def outcomes(self, labels: IntArray) -> IntArray:
        return labels

    def numbers(self, bins: Binning) -> IntArray:
        return np.asarray(bins(self.probs))

    @property
    def levels(self) -> IntArray:
        return np.unique(self.probs[:, 0], return_inverse=True)[1].ravel()

    @cached_property
    def variance(self) -> FloatArray:
        v = self.probs[:, 0] * self.probs[:, 1]
        return v if self.weight is None else self.weight**2 * v

    @property
    def squared_variance(self) -> FloatArray:
        return np.square(self.variance)

    def linear(self, name: str, score: Callable[[FloatArray], FloatArray]) -> LinearTerm:
        p, table = self.probs, score(self.probs)
        w = np.ones(self.n) if self.weight is None else self.weight
        # A class of probability 0 may have an infinite score, which is none of what is promised.
        possible = np.where(p > 0.0, table, 0.0)
        mean = (p * possible).sum(axis=1)
        scores = table[np.arange(self.n), self.labels]
        away = possible - mean[:, None]
        return LinearTerm(
            table,
            observed=float(w @ (scores - mean)),
            promised=float(w @ mean),
            variance=float((w**2 * (p * away**2).sum(axis=1)).sum()),
            covariance=float((w**2 * p[:, 0]) @ away[:, 0]),
        )

    def tables(self, scores: FloatArray) -> FloatArray:
        """Return w (g(y) − E g) for scores (T, n, K)."""
        possible = np.where(self.probs > 0.0, scores, 0.0)
        table = scores - np.einsum("ik,tik->ti", self.probs, possible)[:, :, None]
        return table if self.weight is None else self.weight[:, None] * table

    @cached_property
    def squares(self) -> FloatArray:
        """w² |r|² of every row under every label, (n, K); of two classes that of the event.

        Written so that small probabilities keep their digits.
        """
        p = self.probs
        if self.n_classes == 2:
            of_label = np.column_stack([np.square(1.0 - p[:, 0]), np.square(p[:, 0])])
        else:
            of_label = (1.0 + np.square(p).sum(axis=1))[:, None] - 2.0 * p
        return of_label if self.weight is None else self.weight[:, None] ** 2 * of_label

    def sums(
        self, outcomes: Outcomes, cells: Cells | None, squares: Squares = None,
        tables: FloatArray | None = None, norm: int | None = None,
    ) -> ResidualSums:  # fmt: skip
        if isinstance(outcomes, Flips):
            return self._of_flips(outcomes.multipliers, cells, squares, tables)
        if norm is not None and self.d > 1 and cells and tables is None and len(outcomes) > 1:
            return self._norms(outcomes, cells, norm, squares)
        linear = ABSENT
        if tables is not None:
            from caltest.problem import counting

            linear = np.empty((len(tables), len(outcomes)))
            for table, sums in zip(tables, linear, strict=True):
                counting.look_up(outcomes, table, sums)
            linear = linear.T
        if cells is None:
            return ResidualSums(ABSENT, linear=linear)
        k, size, added = self.n_classes, len(cells), ABSENT
        of_first = cells.of_unit * k
        events = np.array([np.bincount(of_first + y, self.weight, size * k) for y in outcomes])
        events = events.reshape(-1, size, k)[:, :, : self.d] - cells.expected
        if squares is not None:
            first = np.arange(0, self.n * k, k)
            of_rows = (np.take(self.squares, first + y) for y in outcomes)
            added = np.array([np.bincount(cells.of_unit, each, size) for each in of_rows])
            added = gathered(added.astype(np.float64), squares)
        return ResidualSums(events, added, linear)

    def _of_flips(
        self, m: FloatArray, cells: Cells | None, squares: Squares, tables: FloatArray | None
    ) -> ResidualSums:
        residuals = self.predictions.residuals[:, : self.d]
        sums = added = linear = ABSENT
        if cells is not None:
            sums = np.stack([cells.sum(m * column, axis=1) for column in residuals.T], axis=-1)
            if squares is not None:
                squared = np.square(m) * np.square(residuals).sum(axis=1)
                added = gathered(cells.sum(squared, axis=1), squares)
        if tables is not None:  # w (g(y) − E g) of the observed label, flipped with its residual
            linear = m @ tables[:, np.arange(self.n), self.labels].T
        return ResidualSums(sums, added, linear)

    def _norms(self, outcomes: IntArray, cells: Cells, norm: int, squares: Squares) -> ResidualSums:
        """Return norms (B, L, 1) of the sums of several classes, without keeping those sums."""
        from caltest.problem import counting

        values = np.empty((len(outcomes), len(cells), 1))
        weights = np.empty(0) if self.weight is None else self.weight
        if norm == 0 and squares is None and cells.expected.size > self.n:
            untouched = cells.expected.sum(axis=1)
            fixed = (cells.order, cells.starts, cells.expected, untouched, weights)
            counting.count_l1(outcomes, *fixed, values)
            return ResidualSums(values)
        added = np.empty((len(outcomes), len(cells) if squares else 0))
        table = self.squares if squares else np.empty((0, 2))
        tables = (cells.of_unit, cells.expected, weights, table)
        counting.count_norms(outcomes, *tables, norm, values, added)
        return ResidualSums(values, gathered(added, squares))

    def residuals(self, outcomes: Outcomes) -> tuple[FloatArray, FloatArray]:
        if isinstance(outcomes, Flips):
            residuals = outcomes.multipliers[:, :, None] * self.predictions.residuals[:, : self.d]
        else:
            residuals = (outcomes[:, :, None] == np.arange(self.d)) - self.probs[:, : self.d]
            residuals = residuals if self.weight is None else self.weight[:, None] * residuals
        return residuals, np.einsum("...d,...d->...", residuals, residuals)

    def law(self, units: IntArray) -> tuple[int, FloatArray, float]:
        """Return the law of the weight of the events of some rows; weights are whole numbers."""
        p = self.probs[units]
        if self.weight is not None:
            return 0, *_weighted_law(p, self.weight[units].astype(np.int64))
        if p[:, 0].sum() <= p[:, 1].sum():
            return poisson_binomial(p[:, 0])
        lowest, pmf, lost = poisson_binomial(p[:, 1])  # the rarer label has all its digits
        return len(p) - (lowest + pmf.size - 1), pmf[::-1], lost

    def redraws(self, scheme: Scheme, statistic: Evaluated, factor: float = 1.0) -> Shortcut:
        """Return what makes replicates: drawing and counting in one where that is possible."""
        if isinstance(scheme, WildSigns):
            signs = scheme.drawer(self.predictions)
            return Batches(signs, self.n, lambda m: statistic.values(Flips(m), factor))
        if isinstance(scheme, RedrawLabels) and factor == 1.0 and statistic.counted_as_drawn:
            from caltest.problem.redraws import CountedRedraws

            return CountedRedraws.of(self, cast("SumStatistic", statistic))
        if not isinstance(scheme, LabelScheme):
            raise StatisticError(f"{scheme!r} draws no labels: it is for rows with follow-up")
        return Batches.of(scheme, self.predictions, partial(statistic.values, factor=factor))

    @property
    def surprises(self) -> float:
        rare, w = 1.0 - largest(self.probs), self.weight
        if w is None:
            return float(rare.sum())
        return float((w * rare).sum() ** 2 / max((w**2 * rare).sum(), 1e-300))


def _weighted_law(probs: FloatArray, multiples: IntArray) -> tuple[FloatArray, float]:
    """Return the law of Σ k_i y_i, row by row in O(Σ k), and a bound on its rounding."""
    law = np.zeros(int(multiples.sum()) + 1)
    law[0], reach = 1.0, 0
    for (p, rest), k in zip(probs, multiples, strict=True):
        reach += k
        with_event = law[: reach - k + 1] * p
        law[:reach] *= rest
        law[reach] = 0.0
        law[k : reach + 1] += with_event
    return law, 4e-16 * len(probs)
