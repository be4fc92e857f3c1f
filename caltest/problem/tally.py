"""The problem of a tally of two classes: a unit is a micro-cell, its outcome a number of events."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Self

import numpy as np

from caltest._base.arrays import AnyArray
from caltest._base.facts import in_whole_numbers
from caltest.binning import EDGE_TOLERANCE
from caltest.errors import StatisticError
from caltest.predictions import FloatArray, IntArray, Predictions
from caltest.problem.base import (
    ABSENT,
    Evaluated,
    LinearTerm,
    Problem,
    ResidualSums,
    Squares,
    gathered,
)
from caltest.problem.cells import Cells
from caltest.problem.micro import MicroCells
from caltest.simulate import RedrawLabels, Scheme, Shortcut
from caltest.tally.base import AnyTally
from caltest.tally.binomials import binomials
from caltest.tally.grid import Grid, mean_position, total
from caltest.tally.laws import Atoms
from caltest.tally.rows import UNIT
from caltest.tally.tally import Tally

#: Numbers of events that are drawn together.
AT_ONCE = 2**22


@dataclass(frozen=True, eq=False)
class Counts:
    """Numbers of events of micro-cells (B, U), and the sums of their predictions where known."""

    events: FloatArray
    products: FloatArray | None = None


@dataclass(frozen=True, eq=False)
class TallyProblem(MicroCells):
    """Sums over micro-cells in place of rows.

    ``labels`` (U,) are the observed numbers of events. Observed sums know the rows by their
    moments; drawn events have the mean prediction of their micro-cell.
    """

    tally: Tally = field(repr=False)
    key: IntArray = field(repr=False)
    stratum: IntArray = field(repr=False)
    moments: IntArray = field(repr=False)
    probs: FloatArray = field(repr=False)
    labels: IntArray = field(repr=False)
    count: FloatArray = field(repr=False)
    #: The weight of each row of a micro-cell, in whole numbers where ratios allow.
    row_weight: FloatArray = field(repr=False)
    #: Centres, 1 − centres and half widths.
    centre: FloatArray = field(repr=False)
    rest: FloatArray = field(repr=False)
    half: FloatArray = field(repr=False)
    place: FloatArray = field(repr=False)

    n_clusters = None

    @classmethod
    def of(cls, source: AnyTally) -> Self:
        """Read the sums of a tally, of several that of its usual lens; O(U)."""
        tally = source.through(None)
        assert isinstance(tally, Tally)
        if tally.n == 0:
            raise StatisticError("the tally is empty: add rows first")
        order = np.lexsort((tally.stratum, tally.key))
        key, stratum, sums = tally.key[order], tally.stratum[order], tally.sums[order]
        centre, rest, half, place = Grid(tally.grid).of(key)
        offset = half * mean_position(sums)
        probs = np.column_stack([centre + offset, rest - offset])
        weights = in_whole_numbers(tally.strata)[stratum]
        return cls(
            tally, key, stratum, sums, probs, sums[:, 5], sums[:, 0].astype(np.float64), weights,
            centre, rest, half, place,
        )  # fmt: skip

    @property
    def grid(self) -> int:  # type: ignore[override]
        return self.tally.grid

    @property
    def n(self) -> int:
        return self.tally.n

    @property
    def weight(self) -> FloatArray | None:  # type: ignore[override]
        return None if self.tally.weights is None else self.row_weight

    @property
    def observed(self) -> Counts:
        return Counts(self.labels[None, :].astype(np.float64), self.event_sums[None, :])

    def outcomes(self, labels: AnyArray) -> Counts:
        return Counts(np.asarray(labels, dtype=np.float64))

    @property
    def levels(self) -> IntArray:
        """A number for every micro-cell: equal for those that differ by the weight of rows only."""
        return np.unique(self.key, return_inverse=True)[1].ravel()

    def moment(self, *coefficients: FloatArray | float) -> FloatArray:
        """Return Σ_i Σ_k c_k (p_i − centre)^k of every micro-cell, for coefficients (U,)."""
        sums = [self.count, self.count * mean_position(self.moments)]
        sums += [self.moments[:, k] / UNIT for k in range(2, 5)]
        powers = (self.half**k * sums[k] for k in range(5))
        return np.asarray(sum(c * m for c, m in zip(coefficients, powers, strict=False)))

    # With a = centre (1 − centre), b = 1 − 2 centre and d = p − centre: p (1 − p) = a + b d − d².
    @property
    def _curve(self) -> tuple[FloatArray, FloatArray]:
        return self.centre * self.rest, self.rest - self.centre

    @cached_property
    def variance(self) -> FloatArray:
        return self.row_weight**2 * self.moment(*self._curve, -1.0)

    @cached_property
    def squared_variance(self) -> FloatArray:
        a, b = self._curve
        return self.row_weight**4 * self.moment(a * a, 2.0 * a * b, b * b - 2.0 * a, -2.0 * b, 1.0)

    @cached_property
    def squares(self) -> FloatArray:
        return self.moment(self.centre**2, 2.0 * self.centre, 1.0)

    @cached_property
    def excess(self) -> FloatArray:
        return self.labels - self.count * self.probs[:, 0]

    @cached_property
    def event_sums(self) -> FloatArray:
        return self.labels * self.centre + self.half * self.moments[:, 6] / UNIT

    def total(self, name: str, power: int = 1) -> float:
        """Return a total over all rows, weighted by a power of their weights."""
        return float(in_whole_numbers(self.tally.strata) ** power @ total(self.tally.totals, name))

    @cached_property
    def atoms(self) -> Atoms:
        """Predictions that stand for the rows."""
        return Atoms.of(self.moments, self.centre, self.rest, self.half)

    @property
    def quadrature(self) -> tuple[FloatArray, FloatArray]:
        some = self.atoms.times > 0.0
        probs = np.column_stack([self.atoms.p[some], self.atoms.rest[some]])
        return probs, self.atoms.times[some]

    def linear(self, name: str, score: Callable[[FloatArray], FloatArray]) -> LinearTerm:
        """Return a score: exact for those whose moments a tally keeps, else of mean predictions."""
        w, p, a_total = self.row_weight, self.probs, self.total
        cut = np.clip(p, 1e-300, None) if name == "log" else p
        table = np.where(cut > 0.0, score(cut), 0.0)
        if name == "brier":  # Σ r (1 − 2p) = Σ y − 2 Σ y p − Σ p + 2 Σ p²
            a, b = self._curve  # p (1 − p) (1 − 2p)² in powers of p − centre
            each = a * b * b, b**3 - 4.0 * a * b, 4.0 * a - 5.0 * b * b, 8.0 * b, -4.0
            gap = self.excess + 2.0 * (self.squares - self.event_sums)
            promised = float((self.variance / w).sum())
            return LinearTerm(table, float(w @ gap), promised, float(w**2 @ self.moment(*each)))
        if name == "log":
            lost = np.inf if self.impossible.size else -a_total("rz")
            return LinearTerm(table, lost, a_total("entropy"), a_total("vzz", 2))
        if name == "logit":
            level = a_total("cut_vz_low", 2) + a_total("cut_vz_high", 2)
            return LinearTerm(table, a_total("cut_rz"), 0.0, a_total("cut_vzz", 2), level)
        return self.of_means(name, table)

    def residuals(self, outcomes: Counts) -> tuple[FloatArray, FloatArray]:
        w, events, p = self.row_weight, outcomes.events, self.probs[:, 0]
        products = events * p if outcomes.products is None else outcomes.products
        residuals = w * (events - self.count * p)
        return residuals[:, :, None], w**2 * (events - 2.0 * products + self.squares)

    def sums(
        self, outcomes: Counts, cells: Cells | None, squares: Squares = None,
        tables: FloatArray | None = None, norm: int | None = None,
    ) -> ResidualSums:  # fmt: skip
        sums = added = linear = ABSENT
        weighted = outcomes.events * self.row_weight
        if cells is not None:
            sums = (cells.sum(weighted, axis=1) - cells.expected[:, 0])[:, :, None]
            if squares is not None:
                added = gathered(cells.sum(self.residuals(outcomes)[1], axis=1), squares)
        if tables is not None:
            linear = (weighted - self.mass * self.probs[:, 0]) @ tables.T
        return ResidualSums(sums, added, linear)

    def law(self, units: IntArray) -> tuple[int, FloatArray, float]:
        """Return the law of the weight of the events of some micro-cells, by their moments."""
        low, pmf, lost = 0, np.ones(1), 0.0
        weights = self.row_weight[units]
        for weight in np.unique(weights):
            start, law, error = self.atoms.take(units[weights == weight]).law()
            step = int(weight)
            stretched = np.zeros((law.size - 1) * step + 1)
            stretched[::step] = law
            pmf = stretched if pmf.size == 1 else np.convolve(pmf, stretched)
            low, lost = low + start * step, lost + error
        return low, pmf, lost

    def redraws(self, scheme: Scheme, statistic: Evaluated, factor: float = 1.0) -> Shortcut:
        if not isinstance(scheme, RedrawLabels):
            raise StatisticError(f"{scheme!r} draws rows, which a tally does not have")
        return CountDraws(self, lambda counts: statistic.values(counts, factor))

    @property
    def products(self) -> tuple[float, float]:
        w = self.row_weight
        return float(w @ self.squares), float(w @ self.event_sums)

    @property
    def bounds(self) -> tuple[FloatArray, FloatArray]:
        p, several = self.probs[:, 0], (self.count > 1) & (self.half > EDGE_TOLERANCE)
        low = np.where(several, np.maximum(self.centre - self.half, 0.0), p)
        return low, np.where(several, np.minimum(self.centre + self.half, 1.0), p)

    @property
    def surprises(self) -> float:
        rare, w = self.count * self.probs.min(axis=1), self.row_weight
        return float((w @ rare) ** 2 / max(w**2 @ rare, 1e-300))

    @property
    def remarks(self) -> tuple[str, ...]:
        return (f"from sums over micro-cells of like predictions (Tally, grid {self.grid})",)

    def expand(self, *, tied: bool = False) -> tuple[Predictions, FloatArray, IntArray]:
        """Return a row for the events of each micro-cell, and one for what was none.

        Each has their mean prediction; with ``tied`` both have that of the cell. Besides, how many
        rows it stands for, and its micro-cell.
        """
        events = np.concatenate([self.labels, self.count - self.labels])
        (some,) = np.nonzero(events)
        position = self.moments[:, 6] / UNIT
        position = np.concatenate([position, self.count * mean_position(self.moments) - position])
        cell, label = some % self.key.size, some // self.key.size
        offset = self.half[cell] * np.clip(position[some] / events[some], -1.0, 1.0)
        probs = np.column_stack([self.centre[cell] + offset, self.rest[cell] - offset])
        probs = self.probs[cell] if tied else probs
        weights = None if self.weight is None else self.weight[cell]
        return Predictions(probs, label, weights=weights), events[some], cell

    def tied_rows(self) -> Predictions:
        rows, times, cell = self.expand(tied=True)
        return replace(rows, weights=times * self.row_weight[cell])

    def outcomes_through(self, shown: Problem) -> Callable[[Counts], Counts]:
        if not isinstance(shown, TallyProblem) or shown.tally is self.tally:
            return super().outcomes_through(shown)
        last = Grid(self.grid).last
        below, strata = 2 * self.key <= last, self.tally.strata.size
        code = np.where(below, last - self.key, self.key) * strata + self.stratum
        target = np.searchsorted(shown.key * strata + shown.stratum, code)
        order = np.argsort(target, kind="stable")
        starts = np.searchsorted(target[order], np.arange(shown.key.size))

        def folded(counts: Counts) -> Counts:
            turned = np.where(below, self.count - counts.events, counts.events)
            return Counts(np.add.reduceat(turned[:, order], starts, axis=1))

        return folded


@dataclass(frozen=True, eq=False)
class CountDraws:
    """Numbers of events of a calibrated model: binomial with the mean prediction of a micro-cell.

    Its spread makes the true variance smaller by 10⁻⁵ of itself at most, on the usual grid.
    """

    problem: MicroCells
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
