"""The problem of rows with follow-up: outcomes come with weights, which are fitted to them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NoReturn

import numpy as np

from caltest._base.arrays import AnyArray
from caltest.errors import StatisticError
from caltest.followup import EVENT, Censoring
from caltest.predictions import FloatArray, IntArray, Predictions
from caltest.problem.base import ABSENT, Evaluated, LinearTerm, ResidualSums, Squares, gathered
from caltest.problem.cells import Cells
from caltest.problem.rows import RowProblem
from caltest.simulate import Batches, FollowupDrawer, RedrawFollowup, Scheme, Shortcut

#: Replicates from which variances under calibration are taken, and their seed.
PILOT, PILOT_SEED = 999, (0x1B873593, 0xCC9E2D51)
#: Outcomes that are drawn together.
AT_ONCE = 2**20


@dataclass(frozen=True, eq=False)
class Drawn:
    """Outcomes as signed weights ``signed[b, i]``: W with the event, −W without, 0 if unknown."""

    signed: FloatArray


@dataclass(frozen=True, eq=False)
class FollowupProblem(RowProblem):
    """Risks with follow-up as a lens shows them: outcomes are :class:`Drawn`.

    Cells hold all rows, known or not, so that divisors are numbers of rows. Variances under
    calibration are those of 999 draws of the null, and not of formulas.
    """

    only_null = RedrawFollowup()

    @cached_property
    def censoring(self) -> Censoring:
        """How rows were censored."""
        return self.predictions.censoring

    @cached_property
    def drawer(self) -> FollowupDrawer:
        """What draws the null."""
        return RedrawFollowup().drawer(self.predictions)

    @property
    def events(self) -> FloatArray:  # type: ignore[override]
        """W Y of every row, whose sum estimates the number of events."""
        return self.censoring.weights * (self.labels == 0)

    @cached_property
    def observed(self) -> Drawn:  # type: ignore[override]
        weights = self.censoring.weights
        return Drawn(np.where(self.labels == 0, weights, -weights)[None, :])

    def known_rows(self, signed: FloatArray) -> Predictions:
        """Return the rows that signed weights (n,) know, with these for weights."""
        some = np.flatnonzero(signed)
        labels = (signed[some] < 0.0).astype(np.int64)
        return Predictions(self.probs[some], labels, weights=np.abs(signed[some]), induced=True)

    def outcomes(self, labels: AnyArray) -> NoReturn:
        raise StatisticError("follow-up has no labels of all rows: its outcomes come with weights")

    def frequencies(self, cells: Cells) -> FloatArray:
        return (self.gaps(cells, self.observed) + cells.mean(self.probs[:, 0]))[0]

    def gaps(self, cells: Cells, outcomes: Drawn) -> FloatArray:
        """Return Σ W Y / Σ W less the mean prediction of every cell; NaN where no row is known."""
        parts = np.maximum(outcomes.signed, 0.0), np.abs(outcomes.signed)
        events, mass = (cells.sum(part, axis=1) for part in parts)
        with np.errstate(invalid="ignore"):
            return np.asarray(events / mass - cells.mean(self.probs[:, 0]))

    def variance_of(self, cells: Cells, equal: bool = False) -> FloatArray:
        return np.asarray(np.square(self._pilot(lambda r: cells.sum(r, axis=1))).mean(axis=0))

    def _pilot(self, function: Callable[[FloatArray], FloatArray]) -> FloatArray:
        """Return a function of the residuals (B, n) of 999 draws."""
        of_residuals = lambda signed: function(self._residuals(signed))  # noqa: E731
        draws = Batches(self.drawer, self.n, of_residuals, AT_ONCE)
        return draws.replicates(PILOT_SEED, 0, PILOT)

    def _residuals(self, signed: FloatArray) -> FloatArray:
        """Return W (Y − p)."""
        return signed * np.where(signed > 0.0, self.probs[:, 1], self.probs[:, 0])

    def linear(self, name: str, score: Callable[[FloatArray], FloatArray]) -> LinearTerm:
        """Return a score with its variance, and covariance with the event, of the draws."""
        plain = super().linear(name, score)
        table = self.tables(plain.table[None])
        columns = lambda r: np.column_stack([r.sum(axis=1), _scored(r, table)])  # noqa: E731
        total, scored = self._pilot(columns).T
        return replace(
            plain,
            observed=float(_scored(self._residuals(self.observed.signed), table)[0, 0]),
            variance=float(np.square(scored).mean()),
            covariance=float((total * scored).mean()),
        )

    def sums(
        self, outcomes: Drawn, cells: Cells | None, squares: Squares = None,
        tables: FloatArray | None = None, norm: int | None = None,
    ) -> ResidualSums:  # fmt: skip
        r = self._residuals(outcomes.signed)
        linear = ABSENT if tables is None else _scored(r, tables)
        if cells is None:
            return ResidualSums(ABSENT, linear=linear)
        added = ABSENT if squares is None else gathered(cells.sum(r**2, axis=1), squares)
        return ResidualSums(cells.sum(r, axis=1)[:, :, None], added, linear)

    def residuals(self, outcomes: Drawn) -> tuple[FloatArray, FloatArray]:
        r = self._residuals(outcomes.signed)
        return r[:, :, None], np.square(r)

    def law(self, units: IntArray) -> NoReturn:
        raise StatisticError("events have no law of their own where follow-up is short: redraw it")

    def redraws(self, scheme: Scheme, statistic: Evaluated, factor: float = 1.0) -> Shortcut:
        values = lambda signed: statistic.values(Drawn(signed))  # noqa: E731
        return Batches(self.drawer, self.n, values, AT_ONCE)


def _scored(residuals: FloatArray, tables: FloatArray) -> FloatArray:
    """Return the sums of scores, (B, T), for w (g(y) − E g) in tables (T, n, 2)."""
    with np.errstate(invalid="ignore"):  # a label of probability 0 may have an infinite score
        steps = tables[:, :, 0] - tables[:, :, 1]
        parts = [np.where(residuals == 0.0, 0.0, residuals * step).sum(axis=1) for step in steps]
    return np.stack(parts, axis=1)


def row_problem(data: Predictions) -> RowProblem:
    """Return the problem of rows; StatisticError for another event than the one followed."""
    if data.followup is None:
        return RowProblem(data)
    if not np.array_equal(data.labels == 0, data.followup.status == EVENT):
        raise StatisticError("follow-up knows of its event only: look through OneVsRest(1)")
    return FollowupProblem(data)
