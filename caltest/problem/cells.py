"""Partitions of the units of a problem, and the laws of what occurs in them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Literal

import numpy as np

from caltest._base.arrays import AnyArray
from caltest._base.written import name_of
from caltest.binning import Binning, as_binning
from caltest.errors import StatisticError
from caltest.predictions import FloatArray, IntArray

if TYPE_CHECKING:
    from caltest.problem.base import Problem

#: Total weight of a cell up to which its exact law is computed.
MAX_MASS = 1e5


@dataclass(frozen=True, eq=False)
class Cells:
    """A partition of the units: those of cell b are ``order[starts[b]:starts[b + 1]]``.

    ``order`` (U,) are the units in the order of their cells, within a cell in their own; ``starts``
    (L + 1,) say where each of the L occupied cells starts, and where the last ends. ``bins`` made
    them; ``remark`` says how they are not the cells of the rows themselves, "" if they are.
    """

    problem: Problem = field(repr=False)
    order: IntArray = field(repr=False)
    starts: IntArray = field(repr=False)
    bins: Binning | None = None
    remark: str = ""

    @classmethod
    def of(cls, bins: Binning | int, problem: Problem) -> Cells:
        """Partition by a binning, which has to return one integer for every row; O(U) after it."""
        bins = as_binning(bins)
        numbers = np.asarray(problem.numbers(bins))
        if numbers.shape != (len(problem.probs),) or numbers.dtype.kind not in "iu":
            raise StatisticError(
                f"the binning {name_of(bins)} must return one integer per row, an array of shape "
                f"({len(problem.probs)},); it returned {numbers.dtype} of shape {numbers.shape}"
            )
        return cls.by_number(numbers, problem, bins, problem.bins_remark(bins))

    @classmethod
    def by_number(
        cls, numbers: IntArray, problem: Problem, bins: Binning | None = None, remark: str = ""
    ) -> Cells:
        """Put units of equal numbers together, by increasing number; O(U)."""
        if numbers.min() >= 0 and numbers.max() < 2**16:
            numbers = numbers.astype(np.uint16)  # sorted by radix: O(U)
        order = np.argsort(numbers, kind="stable")
        ordered = numbers[order]
        starts = np.flatnonzero(np.append(True, ordered[1:] != ordered[:-1]))
        return cls(problem, order, np.append(starts, numbers.size), bins, remark)

    @classmethod
    def levels(cls, problem: Problem) -> Cells:
        """Put units of equal predictions together, by increasing prediction; O(U log U)."""
        return cls.by_number(problem.levels, problem)

    @classmethod
    def whole(cls, problem: Problem) -> Cells:
        """Put all units in one cell."""
        size = len(problem.probs)
        return cls(problem, np.arange(size), np.array([0, size]))

    def __len__(self) -> int:
        return self.starts.size - 1

    @cached_property
    def counts(self) -> IntArray:
        """Number of rows in each cell, shape (L,)."""
        count = self.problem.count
        return np.diff(self.starts) if count is None else np.rint(self.sum(count)).astype(np.int64)

    @cached_property
    def mass(self) -> FloatArray:
        """Total weight of each cell, its number of rows without weights, shape (L,)."""
        mass = self.problem.mass
        return self.counts.astype(np.float64) if mass is None else np.asarray(self.sum(mass))

    @cached_property
    def square_mass(self) -> FloatArray:
        """Σ w² of each cell, shape (L,)."""
        problem = self.problem
        if problem.weight is None or problem.mass is None:
            return self.mass
        return np.asarray(self.sum(problem.mass * problem.weight))

    @cached_property
    def expected(self) -> FloatArray:
        """Predicted weight of each label, shape (L, d)."""
        problem = self.problem
        probs = problem.probs[:, : problem.d]
        mass = problem.mass
        return np.asarray(self.sum(probs if mass is None else mass[:, None] * probs))

    @cached_property
    def of_unit(self) -> IntArray:
        """The cell of every unit, shape (U,)."""
        cells = np.empty(self.order.size, dtype=np.int64)
        cells[self.order] = np.repeat(np.arange(len(self)), np.diff(self.starts))
        return cells

    @cached_property
    def _in_order(self) -> bool:
        return bool((np.diff(self.order) == 1).all())

    def sum(self, values: AnyArray, axis: int = 0) -> AnyArray:
        """Return the sums of the cells: U along ``axis`` becomes L."""
        ordered = values if self._in_order else np.take(values, self.order, axis=axis)
        if ordered.dtype == np.bool_:
            ordered = ordered.astype(np.int64)
        return np.add.reduceat(ordered, self.starts[:-1], axis=axis)

    def mean(self, values: AnyArray) -> AnyArray:
        """Return the weighted means of the cells: U along the last axis becomes L."""
        mass = self.problem.mass
        return self.sum(values if mass is None else values * mass, axis=-1) / self.mass

    @property
    def lawful(self) -> bool:
        """Whether the law of the weight of the events of each cell can be computed.

        Weights have to be whole numbers, and, where they differ, not too large.
        """
        weight = self.problem.weight
        if weight is None or bool((weight == 1.0).all()):
            return True
        return bool((weight == np.rint(weight)).all()) and float(self.mass.max()) <= MAX_MASS

    def laws(self) -> Iterator[tuple[int, FloatArray, float]]:
        """Yield, for every cell, the law of the weight of its events, as ``poisson_binomial``."""
        for b in range(len(self)):
            yield self.problem.law(self.order[self.starts[b] : self.starts[b + 1]])


@dataclass(frozen=True)
class Estimand:
    """Which error of new data a statistic estimates: ``factor`` times a size over its cells.

    The ``size`` is Σ_b π_b Σ_k |Δ_bk|, Σ_b π_b |Δ_b|² or max_b |Δ_b|, with π_b the share of cell b
    and Δ_b its mean residual, of two classes its first component. Errors lie in [0, ``largest``];
    ``root`` and ``squared`` say whether the statistic is the root of the size, or the largest gap
    squared.
    """

    size: Literal["absolute", "squared", "largest"]
    factor: float = 1.0
    largest: float = 1.0
    root: bool = False
    squared: bool = False

    def scaled(self, value: float) -> float:
        """Return a value of the size on the scale of the statistic."""
        return float(np.sqrt(max(value, 0.0))) if self.root else self.factor * value

    def unscaled(self, value: float) -> float:
        """Return the size that a value of the statistic, at least 0, stands for."""
        return value**2 if self.root else value / self.factor
