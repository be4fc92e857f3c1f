"""The problem of a tally of two classes: a unit is a micro-cell, its outcome a number of events."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from caltest.binning import QuantileBins
from caltest.errors import StatisticError
from caltest.predictions import FloatArray, IntArray
from caltest.problem.base import LinearTerm, Problem, ResidualSums, Squares, gathered
from caltest.problem.cells import Cells
from caltest.simulate import RedrawLabels, Scheme, Shortcut
from caltest.tally.binomials import binomials
from caltest.tally.cells import MicroCells, bin_numbers

#: Numbers of events that are drawn together.
AT_ONCE = 2**22


@dataclass(frozen=True, eq=False)
class Counts:
    """Numbers of events of micro-cells (B, U), and the sums of their predictions where known."""

    events: FloatArray
    products: FloatArray | None = None


@dataclass(frozen=True, eq=False)
class TallyProblem(Problem):
    """Sums over micro-cells in place of rows.

    Observed sums know the rows by their moments; drawn events have the mean prediction of their
    micro-cell.
    """

    micro: MicroCells = field(repr=False)
    exact = False
    n_clusters = None

    @property
    def grid(self) -> int:  # type: ignore[override]
        """Widths of its micro-cells in [0, 1]."""
        return self.micro.tally.grid

    @property
    def n(self) -> int:
        """Number of rows."""
        return self.micro.n

    @property
    def probs(self) -> FloatArray:  # type: ignore[override]
        """Mean predictions (U, 2)."""
        return self.micro.probs

    @property
    def count(self) -> FloatArray:  # type: ignore[override]
        """Rows of each micro-cell."""
        return self.micro.count

    @cached_property
    def weight(self) -> FloatArray | None:  # type: ignore[override]
        """The weight of each row of a micro-cell."""
        return None if self.micro.tally.weights is None else self.micro.weight

    @property
    def data(self) -> MicroCells:
        """The micro-cells."""
        return self.micro

    @property
    def labels(self) -> IntArray:
        """The observed numbers of events."""
        return self.micro.labels

    @property
    def observed(self) -> Counts:
        """The observed numbers of events as one set, with the sums of their predictions."""
        return Counts(self.labels[None, :].astype(np.float64), self.micro.event_sums[None, :])

    def outcomes(self, labels: Any) -> Counts:
        """Return numbers of events whose predictions are not known."""
        return Counts(np.asarray(labels, dtype=np.float64))

    def numbers(self, bins: Any) -> IntArray:
        """Return the bin of every micro-cell; bins are made of these."""
        return bin_numbers(bins, self.micro)

    def bins_remark(self, bins: Any) -> str:
        """Return in which way the cells of these bins are not those of the rows."""
        equal = isinstance(bins, QuantileBins)
        return "bins are of equal mass up to the rows of a micro-cell" if equal else ""

    @property
    def levels(self) -> IntArray:
        """A number for every micro-cell: equal for those that differ by the weight of rows only."""
        return np.unique(self.micro.key, return_inverse=True)[1].ravel()

    @cached_property
    def variance(self) -> FloatArray:
        """Σ w² p (1 − p) of the rows of every micro-cell."""
        return self.micro.weight**2 * self.micro.variance

    @property
    def squared_variance(self) -> FloatArray:
        """Σ (w² p (1 − p))² of the rows of every micro-cell."""
        return self.micro.weight**4 * self.micro.squared_variance

    def linear(self, name: str, score: Callable[[FloatArray], FloatArray]) -> LinearTerm:
        """Return a score: exact for those whose moments a tally keeps, else of mean predictions."""
        micro, w, p = self.micro, self.micro.weight, self.probs
        cut = np.clip(p, 1e-300, None) if name == "log" else p
        table = np.where(cut > 0.0, score(cut), 0.0)
        if name == "brier":  # Σ r (1 − 2p) = Σ y − 2 Σ y p − Σ p + 2 Σ p²
            gap = micro.labels - 2.0 * micro.event_sums - micro.count * p[:, 0]
            gap = gap + 2.0 * micro.squares
            promised = float(w @ micro.variance)
            return LinearTerm(table, float(w @ gap), promised, float(w**2 @ micro.brier_variance))
        if name == "log":
            lost = np.inf if micro.impossible.size else -micro.total("rz")
            return LinearTerm(table, lost, micro.total("entropy"), micro.total("vzz", 2))
        if name == "logit":
            level = micro.total("cut_vz_low", 2) + micro.total("cut_vz_high", 2)
            total = micro.total("cut_rz"), 0.0, micro.total("cut_vzz", 2)
            return LinearTerm(table, *total, level)
        slope, mean = table[:, 0] - table[:, 1], (p * table).sum(axis=1)
        return LinearTerm(
            table,
            observed=float((w * micro.residuals) @ slope),
            promised=float(micro.weights @ mean),
            variance=float(self.variance @ slope**2),
            covariance=float(self.variance @ slope),
            remark=f"{name} scores are those of mean predictions of micro-cells",
        )

    def tables(self, scores: FloatArray) -> FloatArray:
        """Return the slopes of scores (T, U, 2) in the residuals, (T, U)."""
        return np.asarray(scores[:, :, 0] - scores[:, :, 1])

    def residuals(self, outcomes: Counts) -> tuple[FloatArray, FloatArray]:
        """Return Σ w r (B, U, 1) and Σ w² r² (B, U)."""
        w, events, p = self.micro.weight, outcomes.events, self.probs[:, 0]
        products = events * p if outcomes.products is None else outcomes.products
        moved = w * (events - self.micro.count * p)
        return moved[:, :, None], w**2 * (events - 2.0 * products + self.micro.squares)

    def sums(
        self,
        outcomes: Counts,
        cells: Cells | None,
        squares: Squares = None,
        tables: FloatArray | None = None,
    ) -> ResidualSums:
        """Return the sums of the residuals of numbers of events."""
        sums = added = linear = None
        weighted = outcomes.events * self.micro.weight
        if cells is not None:
            sums = (cells.sum(weighted, axis=1) - cells.expected[:, 0])[:, :, None]
            if squares is not None:
                added = gathered(cells.sum(self.residuals(outcomes)[1], axis=1), squares)
        if tables is not None:
            linear = (weighted - self.micro.weights * self.probs[:, 0]) @ tables.T
        return ResidualSums(sums, added, linear)

    def law(self, units: IntArray) -> tuple[int, FloatArray, float]:
        """Return the law of the weight of the events of some micro-cells, by their moments."""
        low, pmf, lost = 0, np.ones(1), 0.0
        weights = self.micro.weight[units]
        for weight in np.unique(weights):
            start, law, error = self.micro.atoms.take(units[weights == weight]).law()
            step = int(weight)
            stretched = np.zeros((law.size - 1) * step + 1)
            stretched[::step] = law
            pmf = stretched if pmf.size == 1 else np.convolve(pmf, stretched)
            low, lost = low + start * step, lost + error
        return low, pmf, lost

    def redraws(self, scheme: Scheme, statistic: Any, factor: float = 1.0) -> Shortcut:
        """Return what draws numbers of events in place of labels."""
        if not isinstance(scheme, RedrawLabels):
            raise StatisticError(f"{scheme!r} draws rows, which a tally does not have")
        return CountDraws(self, lambda counts: statistic.values(counts, factor))

    @property
    def surprises(self) -> float:
        """How many outcomes that are not the likeliest a calibrated model expects."""
        return self.micro.surprising

    @property
    def remarks(self) -> tuple[str, ...]:
        """What the rows were summed over."""
        return (f"from sums over {self.micro.said}",)


@dataclass(frozen=True, eq=False)
class CountDraws:
    """Numbers of events of a calibrated model: binomial with the mean prediction of a micro-cell.

    Its spread makes the true variance smaller by 10⁻⁵ of itself at most, on the usual grid.
    """

    problem: TallyProblem
    value: Callable[[Counts], FloatArray]

    def replicates(self, seed: tuple[int, int], first: int, count: int) -> FloatArray:
        """Return replicates ``first``, …, ``first + count − 1``."""
        p, rest = np.clip(self.problem.probs, 0.0, 1.0).T
        rows = self.problem.count.astype(np.int64)
        at_once = max(1, AT_ONCE // rows.size)
        values = []
        for start in range(first, first + count, at_once):
            some = min(at_once, first + count - start)
            values.append(self.value(Counts(binomials(rows, p, rest, seed, start, some))))
        return np.concatenate(values)
