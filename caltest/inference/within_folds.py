"""Tests within folds, for cross-validated predictions whose models memorise groups of rows.

Where each model has learnt the rate of every site, a site is predicted lower exactly where it has
more events, in one fold after the other. One level a fold cannot undo that, and cells that hold
rows of several folds sort these by their own labels. Cells of rows of one fold do not.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np

from caltest._base import FloatArray, IntArray
from caltest._base.written import name_of
from caltest.data.binning import Binning
from caltest.data.lenses import Aligned
from caltest.errors import Reading, StatisticError
from caltest.inference._input import Analysis, evaluated
from caltest.inference.null import Null, replicates_of, result_of
from caltest.nulls import RedrawLabels, Run
from caltest.results import CalibrationTestResult
from caltest.statistics import CoxLR, CoxScore, Statistic
from caltest.statistics.prepared import LabelStatistic, Prepared, SumStatistic
from caltest.statistics.problem import Problem
from caltest.statistics.rows import RowProblem
from caltest.statistics.statistic import StatisticLike, prepare

#: Statistics that follow a χ² law: those of folds are added up, and not averaged.
SUMMED_OVER_FOLDS = (CoxScore, CoxLR)


def memorised(analysis: Analysis) -> bool:
    """Return whether the fold models have memorised groups of rows, such as the rates of sites.

    If so, the statistic has to be computed fold by fold.
    """
    lens = analysis.lens
    return isinstance(lens, Aligned) and lens.summary.memorised


def tested_within_folds(
    analysis: Analysis, statistic: StatisticLike, null: Null, run: Run
) -> CalibrationTestResult:
    """Test a statistic computed within folds and summed over them, with its excess shrunk.

    The value T is replaced by m + (T − m) / √(K / (K − 1)), with m the mean of the draws and K the
    number of folds. Models of other folds know these labels, so that residuals scatter more than
    redrawn ones. Measured in ``docs/folds.md``.
    """
    lens = analysis.lens
    assert isinstance(lens, Aligned)
    if null not in ("auto", RedrawLabels()):
        raise StatisticError(
            f"null={null!r} does not hold for folds whose models memorise groups of rows: leave "
            "null out",
            [Reading({"null": None})],
        )
    apart = lens.apart(analysis.rows)
    folds = apart.folds
    assert folds is not None
    rows = replace(apart, folds=None, whole=None, induced=True)
    problem = FoldProblem(rows, folds)
    prepared, value = evaluated(WithinFolds(statistic), problem)
    law = replicates_of(statistic, prepared, RedrawLabels(), run)
    summary = replace(lens.summary, within=True)
    mean, root = float(law.mean()), (1.0 / summary.share) ** 0.5
    look = replace(analysis, lens=replace(lens, summary=summary), problem=problem)
    shrunk = mean + (value - mean) / root
    return result_of(look, prepared, statistic, repr(RedrawLabels()), shrunk, law)


@dataclass(frozen=True, eq=False)
class FoldProblem(RowProblem):
    """Problem of cross-validated rows: bins have common edges, and every fold has its own cells."""

    folds: IntArray = field(repr=False)

    def numbers(self, bins: Binning) -> IntArray:
        numbers = np.unique(super().numbers(bins), return_inverse=True)[1].ravel()
        return np.asarray(self.folds * (int(numbers.max()) + 1) + numbers)


@dataclass(frozen=True, eq=False)
class FoldPart(RowProblem):
    """Problem of the rows of one fold, binned by the edges of all rows."""

    whole: RowProblem = field(repr=False)
    rows: IntArray = field(repr=False)

    def numbers(self, bins: Binning) -> IntArray:
        return np.asarray(self.whole.numbers(bins))[self.rows]


@dataclass(frozen=True, repr=False)
class WithinFolds(Statistic):
    """Statistic computed in each fold and averaged over folds by their weight."""

    statistic: StatisticLike

    def prepare(self, problem: Problem) -> Prepared:
        assert isinstance(problem, FoldProblem)
        if isinstance(self.statistic, Statistic):
            plain = self.statistic.prepare(problem)
            binned = plain.cells is not None and plain.cells.bins is not None
            if isinstance(plain, SumStatistic) and binned and plain.scores is None:
                return plain  # sums over cells, which hold rows of one fold
        return self._by_fold(problem)

    def _by_fold(self, problem: FoldProblem) -> PreparedFolds:
        """Return the statistic prepared for each fold.

        Folds in which it cannot vary are left out.
        """
        data = problem.data
        mass = np.ones(data.n) if data.weights is None else data.weights
        parts, places, shares, refused = list[Prepared](), [], [], None
        for k in np.unique(problem.folds):
            rows = np.flatnonzero(problem.folds == k)
            part = FoldPart(data.take(rows), RowProblem(data), rows)
            try:
                parts.append(prepare(self.statistic, part))
            except StatisticError as error:
                refused = error
                continue
            places.append(rows)
            shares.append(mass[rows].sum() / mass.sum())
        if refused is not None and not parts:
            raise refused
        weights = (
            np.ones(len(parts))
            if isinstance(self.statistic, SUMMED_OVER_FOLDS)
            else np.array(shares)
        )
        centre = float(weights @ [part.centre for part in parts])
        return PreparedFolds(
            problem, tuple(parts), tuple(places), weights,
            two_sided=parts[0].two_sided, centre=centre,
        )  # fmt: skip

    def __repr__(self) -> str:
        return name_of(self.statistic)


@dataclass(frozen=True, eq=False)
class PreparedFolds(LabelStatistic):
    """Weighted sum Σ_k c_k T_k over folds with fixed predictions; T_k sees the labels of fold k."""

    parts: tuple[Prepared, ...]
    rows: tuple[IntArray, ...]
    weights: FloatArray

    def batch(self, labels: IntArray) -> FloatArray:
        total = np.zeros(len(labels))
        for part, rows, weight in zip(self.parts, self.rows, self.weights, strict=True):
            total += weight * part.batch(np.ascontiguousarray(labels[:, rows]))
        return total
