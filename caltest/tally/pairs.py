"""The tally of two models on the same rows: sums over pairs of micro-cells, for comparisons."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from os import PathLike
from typing import Any, Self, Unpack

import numpy as np

from caltest._base.facts import refuse_unlike
from caltest._base.written import name_of
from caltest.binning import EDGE_TOLERANCE
from caltest.errors import InvalidPredictionsError, StatisticError
from caltest.lenses import Lens, LensLike
from caltest.predictions import Facts, FloatArray, IntArray, Predictions
from caltest.tally import stored
from caltest.tally.base import NoRows
from caltest.tally.cells import MicroCells
from caltest.tally.grid import Grid
from caltest.tally.rows import FINE, OCTAVES, UNIT
from caltest.tally.tally import Tally

#: Cells of equal width, unless others are asked for.
PAIR_GRID = 480
#: What the stored form says it is.
FORM = "caltest pair tally"
#: What a pair of micro-cells is known by: the number of its weight, the cell of each model, and
#: 2 a + b for the labels that the lens gives them, of which 0 is the event.
CELLS = ("stratum", "key_a", "key_b", "labels")
#: What is summed: rows, the positions t of both, u², and what rounding has left of it.
SUMS = ("n", "t_a", "t_b", "u2", "u2_rest")
#: Variance of u that is rounding.
NOTHING = 1e-14


@dataclass(frozen=True, eq=False)
class PairTally(NoRows):
    """What a paired comparison of two models needs to know of any number of rows.

    Beside a :class:`Tally` of each model, every pair of micro-cells, one of each model, and of what
    occurred keeps n, Σt_a, Σt_b and Σu², with t the positions in the cells and u the part of the
    difference of the residuals that lies within them: of p_a − p_b, or of p_a + p_b where the lens
    gives the models different labels, by the sum of the half widths. As in a tally all sums are of
    whole numbers. Pair tallies add up by ``+``.

    Make one with :meth:`of`; :func:`caltest.compare` and :func:`caltest.gate` take it in place of
    the predictions of two models. Of large files tally batch by batch:
    ``sum(ct.PairTally.of(part["a"], part["b"], part["y"]) for part in parts)``.

    Attributes
    ----------
    a, b : Tally
        The tally of each model, on the same grid.
    key : ndarray of shape (C, 4), int64
        The number of its weight, the two micro-cells and what occurred, of every pair with rows.
    sums : ndarray of shape (C, 5), int64
        The sums above; Σu² in multiples of 2⁻³⁰ and, what is left of it, of 2⁻⁵².

    Notes
    -----
    O(n log n), some 0.3 µs a row; 9 numbers for each pair of cells that occurs. In a comparison the
    rows of a pair of cells are replaced by two atoms, with the mean predictions of both models and
    the variance of u; what is lost is below 10⁻⁶ of the variance of the difference.

    Examples
    --------
    >>> import caltest as ct
    >>> old = ct.examples.GaussianMixture(0.0, -4.0).sample(3000, rng=1)
    >>> new = ct.examples.GaussianMixture(0.0, -2.0).sample(3000, rng=1)  # the same observations
    >>> days = [slice(1000 * day, 1000 * day + 1000) for day in range(3)]
    >>> pairs = sum(ct.PairTally.of(new.take(day), old.take(day)) for day in days)
    >>> pairs.n, pairs == ct.PairTally.of(new, old)
    (3000, True)
    >>> ct.compare(pairs, names=("new", "old")).finding
    'new is better calibrated'
    """

    a: Tally
    b: Tally
    key: IntArray = field(repr=False)
    sums: IntArray = field(repr=False)

    @classmethod
    def of(
        cls,
        probs_a: Any,
        probs_b: Any,
        labels: Any = None,
        *,
        lens: Lens | None = None,
        grid: int = PAIR_GRID,
        **facts: Unpack[Facts],
    ) -> Self:
        """Tally the rows of two models.

        Parameters
        ----------
        probs_a, probs_b : array_like of shape (n,) or (n, K), or Predictions
            What the two models predict for the same observations, in the same order.
        labels, **facts
            As in :meth:`Tally.of`; ``labels`` may be left out when a model knows them.
        lens : OneVsRest, TopK(1), Partition of two groups or Canonical, optional
            As in :meth:`Tally.of`. Of ``TopK(1)`` each model has its own event.
        grid : int, default 480
            Cells of equal width, 2 to 10⁶; they make up 10, 12, 15, 16, 20, 24, 30, 32, 40, 48,
            60 and 80 bins.

        Raises
        ------
        InvalidPredictionsError
            When the rows do not match.
        StatisticError
            As :meth:`Tally.of`.
        """
        known = next((p.labels for p in (probs_a, probs_b) if isinstance(p, Predictions)), None)
        found = known if labels is None else labels
        a, b = (
            Predictions.of(p, labels if isinstance(p, Predictions) else found, **facts)
            for p in (probs_a, probs_b)
        )
        refuse_unlike(("the first model", "the second"), a, b)
        own = Tally.of(a, lens=lens, grid=grid)
        other = Tally.of(b, lens=own.lens, grid=grid)
        sides = [own.lens(d) for d in (a, b)]
        stratum = np.zeros(a.n, dtype=np.int64)
        if a.weights is not None:
            kept = a.weights > 0.0
            sides = [side.take(kept) for side in sides]
            stratum = np.searchsorted(own.strata, a.weights[kept])
        (key_a, t_a), (key_b, t_b) = (_located(grid, side.probs) for side in sides)
        outcome = 2 * sides[0].labels + sides[1].labels
        cells = np.column_stack([stratum, key_a, key_b, outcome])
        u = _apart(grid, cells, t_a / UNIT, t_b / UNIT)[0] ** 2
        whole = np.rint(u * UNIT)
        rest = np.rint((u - whole / UNIT) * FINE)
        once = np.ones_like(t_a)
        sums = np.column_stack([once, t_a, t_b, whole, rest]).astype(np.int64)
        return cls(own, other, *_added(grid, cells, sums))

    @property
    def n(self) -> int:
        """Number of rows, of weight above 0."""
        return self.a.n

    @property
    def lens(self) -> Lens:
        """What was looked at."""
        return self.a.lens

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, PairTally):
            return NotImplemented
        alike = self.a == other.a and self.b == other.b and np.array_equal(self.key, other.key)
        return alike and np.array_equal(self.sums, other.sums)

    __hash__ = None  # type: ignore[assignment]

    def __add__(self, other: PairTally) -> Self:
        """Return the pair tally of the rows of both.

        Raises
        ------
        StatisticError
            When lenses, grids or classes differ.
        """
        if not isinstance(other, PairTally):
            return NotImplemented
        a, b = self.a + other.a, self.b + other.b
        cells = np.concatenate([self.key, other.key])
        places = [np.searchsorted(a.strata, p.strata)[c[:, 0]]
                  for p, c in ((self.a, self.key), (other.a, other.key))]  # fmt: skip
        cells[:, 0] = np.concatenate(places)
        both = cells, np.concatenate([self.sums, other.sums])
        return type(self)(a, b, *_added(a.grid, *both))

    def __radd__(self, other: object) -> Self:
        return self if other == 0 else NotImplemented  # which sum() begins with

    def through(self, lens: LensLike | None) -> Self:
        """Return the pair tally itself; StatisticError for another lens than its own."""
        if lens is None or lens == self.lens:
            return self
        raise StatisticError(
            f"this is a pair tally of {self.lens!r}, which cannot be looked at through "
            f"{name_of(lens)}: tally the rows with that lens, too"
        )

    def listed(self, micro: MicroCells, second: bool) -> tuple[Predictions, FloatArray, IntArray]:
        """Return rows of one model that stand for its rows, in the order of those of the other.

        Besides, how many rows each stands for, and its number among the micro-cells of that model.
        """
        grid, stratum, n = self.a.grid, self.key[:, 0], self.sums[:, 0].astype(np.float64)
        means = [self.sums[:, k] / (UNIT * n) for k in (1, 2)]
        mean, sign = _apart(grid, self.key, *means)
        variance = (self.sums[:, 3] / UNIT + self.sums[:, 4] / FINE) / n - mean**2
        spread = np.sqrt(np.where(variance > NOTHING, variance, 0.0))
        (split,) = np.nonzero(spread)
        row = np.append(np.arange(n.size), split)
        times = n[row] * np.where(spread[row] > 0.0, 0.5, 1.0)
        spread[split] *= -1.0  # the first atom; the second is at the other end
        moved = np.append(spread, -spread[split])
        key = self.key[row, 2 if second else 1]
        t = means[second][row] + (sign[row] * moved if second else moved)
        centre, rest, half, _ = Grid(grid).of(key)
        probs = np.column_stack([  # within the cell up to rounding of moments
            np.clip(near + side * half * t, 0.25 * near, 1.0)
            for near, side in ((centre, 1.0), (rest, -1.0))
        ])  # fmt: skip
        labels = (self.key[row, 3] >> (0 if second else 1)) & 1
        strata = self.a.strata.size
        known = micro.key * strata + micro.stratum
        place: IntArray = np.asarray(np.searchsorted(known, key * strata + stratum[row]))
        weights = None if self.a.weights is None else micro.weight[place]
        return Predictions(probs, labels, weights=weights), times, place

    def to_json(self) -> str:
        """Return the pair tally as JSON, of whole numbers only."""
        cells = {name: column.tolist() for name, column in self._columns().items()}
        return json.dumps(self._described() | {"cells": cells})

    @classmethod
    def from_json(cls, text: str) -> Self:
        """Rebuild from :meth:`to_json`; InvalidPredictionsError for anything else."""
        try:
            content = json.loads(text)
            return cls._of(content, content["cells"])
        except (ValueError, TypeError, KeyError) as error:
            raise InvalidPredictionsError(f"this is not a pair tally: {error}") from None

    def to_parquet(self, path: str | PathLike[str]) -> None:
        """Write a Parquet file with a row for each pair of micro-cells; needs pyarrow."""
        stored.write_parquet(path, self._columns(), FORM, self._described())

    @classmethod
    def from_parquet(cls, path: str | PathLike[str]) -> Self:
        """Rebuild from :meth:`to_parquet`; InvalidPredictionsError for any other file."""
        return cls._of(*stored.read_parquet(path, FORM))

    def _described(self) -> dict[str, Any]:
        sides = {"a": json.loads(self.a.to_json()), "b": json.loads(self.b.to_json())}
        return {FORM: stored.VERSION, **sides}

    def _columns(self) -> dict[str, IntArray]:
        columns = (*self.key.T, *self.sums.T)
        return dict(zip((*CELLS, *SUMS), columns, strict=True))

    @classmethod
    def _of(cls, content: Any, columns: Any) -> Self:
        """Return the pair tally that was stored, and check that it is one."""
        if content.get(FORM) != stored.VERSION:
            raise InvalidPredictionsError(f"this is not a pair tally of form {stored.VERSION}")
        a, b = (Tally.from_json(json.dumps(content[side])) for side in "ab")
        a.refuse_other(b, "are no pair")
        cells, sums = (
            np.column_stack([np.asarray(columns[name], dtype=np.int64) for name in names])
            for names in (CELLS, SUMS)
        )
        width = Grid(a.grid).last + 1
        for own, key in ((a, cells[:, 1]), (b, cells[:, 2])):
            codes, place = np.unique(cells[:, 0] * width + key, return_inverse=True)
            rows = np.bincount(place.ravel(), sums[:, 0])
            if not (
                np.array_equal(codes, own.stratum * width + own.key)
                and np.array_equal(rows, own.sums[:, 0])
            ):
                raise InvalidPredictionsError("this pair tally is damaged: its parts do not fit")
        return cls(a, b, *_added(a.grid, cells, sums))

    def __repr__(self) -> str:
        return f"PairTally(n={self.n}, {self.lens!r}, {len(self.key)} pairs of cells)"


def _located(size: int, probs: FloatArray) -> tuple[IntArray, FloatArray]:
    """Return the micro-cell of every row (n, 2), and its position in multiples of 2⁻³⁰."""
    upper = probs[:, 0] > 0.5
    x = np.where(upper, probs[:, 1], probs[:, 0])
    y = x * size
    j = np.rint(y)
    off = x - j / size
    edge = (j > 0) & (np.abs(off) <= EDGE_TOLERANCE)
    width, exponent = np.frexp(y)  # y = width · 2^exponent, width in [½, 1)
    octave = np.maximum(OCTAVES + exponent, 1)
    lowest = 2.0 * np.ldexp(y, OCTAVES - 1) - 1.0
    choices = [
        (x == 0.0, 0, 0.0),
        (edge, OCTAVES + 2 * j - 1, off * (1.0 / EDGE_TOLERANCE)),
        ((y < 1.0) & (octave > 1), octave, 4.0 * width - 3.0),
        (y < 1.0, octave, lowest),
    ]
    where, keys, positions = zip(*choices, strict=True)
    inner = np.floor(y)
    key = np.select(where, keys, OCTAVES + 2 * inner).astype(np.int64)
    t = np.rint(np.select(where, positions, 2.0 * (y - inner) - 1.0) * UNIT)
    return np.where(upper, Grid(size).last - key, key), np.where(upper, -t, t)


def _apart(
    size: int, cells: IntArray, t_a: FloatArray, t_b: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Return u at positions in pairs of cells, and the sign of the second model in it."""
    halves = Grid(size).of(cells[:, 1])[2], Grid(size).of(cells[:, 2])[2]
    whole = halves[0] + halves[1]
    sign = np.where((cells[:, 3] == 0) | (cells[:, 3] == 3), -1.0, 1.0)
    return (halves[0] * t_a + sign * halves[1] * t_b) / np.where(whole > 0.0, whole, 1.0), sign


def _added(size: int, cells: IntArray, sums: IntArray) -> tuple[IntArray, IntArray]:
    """Return the different pairs of cells, in order, and the sums of the rows of each."""
    width = Grid(size).last + 1
    codes = ((cells[:, 0] * width + cells[:, 1]) * width + cells[:, 2]) * 4 + cells[:, 3]
    order = np.argsort(codes, kind="stable")
    starts = np.flatnonzero(np.diff(codes[order], prepend=-1))
    return cells[order[starts]], np.add.reduceat(sums[order], starts)
