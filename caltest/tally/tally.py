"""The tally of a two-class question: sums over micro-cells, which add up over any batches."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Self, Unpack

import numpy as np

from caltest._base.written import name_of
from caltest.errors import StatisticError
from caltest.lens_choice import as_lens
from caltest.lenses import Lens, LensLike, OneVsRest, TopK
from caltest.predictions import BoolArray, Facts, FloatArray, IntArray, Predictions
from caltest.tally import stored
from caltest.tally.base import AnyTally
from caltest.tally.grid import (
    GRID,
    MOST_ROWS,
    MOST_WEIGHTS,
    SUMS,
    TOTALS,
    Grid,
    carried,
    turned_over,
)
from caltest.tally.stored import LENSES
from caltest.tally.table import Counted

if TYPE_CHECKING:
    from dask.dataframe import DataFrame


@dataclass(frozen=True, eq=False)
class Tally(AnyTally, Counted):
    """What a two-class question needs to know of any number of rows: sums over micro-cells.

    [0, 1] is cut into ``grid`` cells of equal width, the first and the last of them into octaves,
    with cells of their own for 0, 1 and the inner edges. Each occupied cell keeps, with t the
    position of a prediction in it, from −1 to 1, and y whether the event occurred, n, Σt, …, Σt⁴,
    Σy and Σyt, and all rows together the sums that log scores and Cox's score test need. All sums
    are of whole numbers, so that batches, their order and the number of processes change no bit.
    Tallies add up by ``+``.

    Make one with :meth:`of`, from files with :func:`caltest.scan`, from counts with
    :meth:`from_table`. Verbs take it in place of predictions and look through its lens; a
    :class:`Monitor` takes it as a batch.

    Attributes
    ----------
    lens : Lens
        What was looked at.
    grid : int
        Cells of equal width; bins that are made of them are answered as if from the rows.
    n_classes : int
        Number of classes before the lens; ``classes`` are their names, if any.
    strata : ndarray of shape (W,)
        The different weights of the rows, increasing; 1 without weights.
    key : ndarray of shape (C,), int64
        The occupied micro-cells, numbered from 0 to 1, for each weight in turn.
    stratum : ndarray of shape (C,), int64
        The number of its weight.
    sums : ndarray of shape (C, 8), int64
        The sums above, those of t in multiples of 2⁻³⁰; the last has what is left of Σt, in
        multiples of 2⁻⁵².
    totals : ndarray of shape (W, 8, 2), int64
        The sums over all rows, in multiples of 2⁻²⁰ and of 2⁻⁶³.
    notes : tuple of str
        What was done to the rows on the way in; not part of the value.

    Notes
    -----
    O(n), some 20 ns a row; 8 numbers for each occupied cell. Fewer than 2³³ rows.

    Examples
    --------
    >>> import caltest as ct
    >>> monday, tuesday = ct.Tally.of([0.8, 0.3], [1, 0]), ct.Tally.of([0.6], [1])
    >>> week = monday + tuesday
    >>> week.n, week == ct.Tally.of([0.6, 0.3, 0.8], [1, 0, 1])
    (3, True)
    """

    lens: Lens
    grid: int
    n_classes: int
    classes: tuple[str, ...] | None
    strata: FloatArray = field(repr=False)
    key: IntArray = field(repr=False)
    stratum: IntArray = field(repr=False)
    sums: IntArray = field(repr=False)
    totals: IntArray = field(repr=False)
    notes: tuple[str, ...] = field(default=(), repr=False)

    @classmethod
    def of(
        cls,
        probs: object,
        labels: object = None,
        lens: Lens | None = None,
        grid: int = GRID,
        **facts: Unpack[Facts],
    ) -> Self:
        """Tally rows.

        Parameters
        ----------
        probs, labels, **facts
            As in :meth:`Predictions.of`; ``labels`` is left out for a :class:`Predictions`. Up to
            1024 different ``weights``; clusters and subgroups are refused.
        lens : OneVsRest, TopK(1), Partition of two groups or Canonical, optional
            Which event is looked at; by default as in :func:`calibration_test`.
        grid : int, default 4800
            Cells of equal width, 2 to 10⁶.

        Raises
        ------
        StatisticError
            For a lens of more than two classes or of your own, and facts of rows that sums lack.
        """
        data, through = rows_of(lens, probs, labels, facts)
        pairs, events = event_through(through, data)
        of_rows = data.weights
        weights = np.ones(1) if of_rows is None else np.unique(of_rows[of_rows > 0.0])
        if weights.size > MOST_WEIGHTS:
            raise StatisticError(
                f"there are {weights.size} different weights, and a tally keeps up to "
                f"{MOST_WEIGHTS} apart: round them, or pass the predictions themselves"
            )
        rows = [slice(None)] if of_rows is None else [of_rows == w for w in weights]
        parts = [Grid(grid).sums(pairs[some], events[some]) for some in rows]
        sizes = [len(key) for key, *_ in parts]
        key, sums = (np.concatenate([part[j] for part in parts]) for j in range(2))
        totals = np.stack([part[2] for part in parts])
        head = (through, grid, data.n_classes, data.classes, weights)
        return cls(*head, key, np.repeat(np.arange(len(parts)), sizes), sums, totals, data.notes)

    @classmethod
    def from_dask(
        cls,
        frame: DataFrame,
        probs: str | Sequence[str] | None = None,
        label: str | None = None,
        *,
        lens: Lens | None = None,
        grid: int | None = None,
        weights: str | None = None,
        **options: Any,
    ) -> Tally:
        """Tally a Dask data frame where its partitions are; needs ``caltest[dask]``.

        ``probs``, ``label``, ``weights`` and ``options`` are as in :func:`scan`.
        """
        from caltest.tally.reading import Reading, of_frame

        reading = Reading(probs, label, lens or "usual", grid, weights, options=options)
        counted = of_frame(frame, reading)
        assert isinstance(counted, Tally)
        return counted

    @cached_property
    def n(self) -> int:
        return int(self.sums[:, 0].sum())

    @property
    def weights(self) -> FloatArray | None:
        return self.strata if self.strata.size > 1 else None

    @property
    def effective_n(self) -> float:
        n, w = self.sums[:, 0], self.strata[self.stratum]
        return float((n @ w) ** 2 / (n @ w**2))

    @property
    def impossible(self) -> IntArray:
        n, events = self.sums[:, 0], self.sums[:, SUMS.index("events")]
        count = events[self.key == 0].sum() + (n - events)[self.key == Grid(self.grid).last].sum()
        return np.broadcast_to(np.int64(0), (int(count),))

    @property
    def question(self) -> dict[str, object]:
        names = (self.n_classes, self.classes)
        return {"lenses": self.lens, "grids": self.grid, "classes": names}

    @property
    def _arrays(self) -> tuple[FloatArray | IntArray, ...]:
        return self.strata, self.key, self.stratum, self.sums, self.totals

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Tally):
            return NotImplemented
        both = zip(self._arrays, other._arrays, strict=True)
        return self.question == other.question and all(np.array_equal(a, b) for a, b in both)

    __hash__ = None  # type: ignore[assignment]

    def __add__(self, other: Tally) -> Tally:
        """Return the tally of the rows of both; lenses, grids and classes must be the same."""
        if not isinstance(other, Tally):
            return NotImplemented
        self.refuse_other(other, "do not add up")
        if self.n + other.n > MOST_ROWS:
            raise StatisticError(f"a tally holds at most {MOST_ROWS} rows")
        strata = np.union1d(self.strata, other.strata)
        if strata.size > MOST_WEIGHTS:
            raise StatisticError(f"a tally keeps up to {MOST_WEIGHTS} different weights apart")
        totals = np.zeros((strata.size, len(TOTALS), 2), dtype=np.int64)
        cells, width = [], Grid(self.grid).last + 1
        for part in (self, other):
            place = np.searchsorted(strata, part.strata)
            totals[place] += part.totals
            cells.append(place[part.stratum] * width + part.key)
        both, where = np.unique(np.concatenate(cells), return_inverse=True)
        sums = np.zeros((both.size, len(SUMS)), dtype=np.int64)
        np.add.at(sums, where, np.concatenate([self.sums, other.sums]))
        stratum, key = np.divmod(both, width)
        notes = tuple(dict.fromkeys((*self.notes, *other.notes)))
        return replace(
            self, strata=strata, key=key, stratum=stratum, sums=sums, totals=carried(totals),
            notes=notes,
        )  # fmt: skip

    def through(self, lens: LensLike | None) -> Tally:
        """Return the tally as its lens or the top class of two sees it; StatisticError else."""
        if lens is None or (isinstance(lens, Lens) and self.named(lens) == self.named(self.lens)):
            return self
        if lens == TopK(1) and self.lens == OneVsRest(1) and self.n_classes == 2:
            return self.top()
        raise StatisticError(
            f"this is a tally of {self.lens!r}, which cannot be looked at through "
            f"{name_of(lens)}: tally the rows with that lens, too"
        )

    def top(self) -> Tally:
        """Return the tally of the top class of two, from that of the event ``OneVsRest(1)``.

        Where both have probability ½ (to 1e-12) the top class is class 0, as for ``TopK(1)``.
        """
        if self.lens != OneVsRest(1) or self.n_classes != 2:
            raise StatisticError(f"top() needs the event of two classes, not {self.lens!r}")
        last, low = Grid(self.grid).last, TOTALS.index("cut_vz_low")
        below = 2 * self.key <= last
        key = np.where(below, last - self.key, self.key)
        order = np.lexsort((key, self.stratum))
        totals = self.totals.copy()
        totals[:, low + 1] = carried(totals[:, low + 1] - totals[:, low])
        totals[:, low] = 0

        def half(turned: bool) -> Tally:
            cells = order[below[order] == turned]
            sums = turned_over(self.sums[cells]) if turned else self.sums[cells]
            return replace(
                self, lens=TopK(1), key=key[cells], stratum=self.stratum[cells], sums=sums,
                totals=np.zeros_like(totals) if turned else totals,
            )  # fmt: skip

        return half(True) + half(False)

    def to_json(self) -> str:
        """Return the tally as JSON, of whole numbers only."""
        return stored.to_json(self)

    @classmethod
    def from_json(cls, text: str) -> Self:
        """Rebuild from :meth:`to_json`; InvalidPredictionsError for anything else."""
        return cls(**stored.fields_of(text))

    def __repr__(self) -> str:
        weights = "" if self.weights is None else f", {len(self.weights)} weights"
        return f"Tally(n={self.n}, {self.lens!r}, {len(self.key)} cells of {self.grid}{weights})"


def rows_of(
    lens: LensLike | None, probs: object, labels: object, facts: Facts
) -> tuple[Predictions, Lens]:
    """Return rows that a tally may hold, and its lens."""
    data = Predictions.of(probs, labels, **facts).labelled("a tally")
    if data.provenance:
        from caltest.recalibration import refuse_fitted_rows

        refuse_fitted_rows(data)
    facts_of_rows: dict[str, object] = {"clusters": data.n_clusters, "by": data.by}
    facts_of_rows |= {"folds": data.folds, "horizon": data.horizon}
    facts_of_rows["features"] = facts.get("features")
    for name, fact in facts_of_rows.items():
        if fact is not None:
            raise StatisticError(
                f"a tally keeps no {name}: make one for each part of the rows, or pass the "
                "predictions themselves" + ", or make a ClusteredTally" * (name == "clusters")
            )
    through = as_lens(lens, data)
    if type(through) not in LENSES.values():
        raise StatisticError(
            f"a tally cannot name {name_of(through)}: apply it first and tally what it returns"
        )
    return data, through


def event_through(through: Lens, data: Predictions) -> tuple[FloatArray, BoolArray]:
    """Return what a lens shows of two classes: predictions (n, 2), and whether the first is it."""
    if isinstance(through, OneVsRest) and data.n_classes == 2:  # without copies
        c = data.class_index(through.c)
        return data.probs[:, ::-1] if c else data.probs, data.labels == c
    induced = through(data)
    if induced.n_classes != 2:
        raise StatisticError(
            f"a tally is of a two-class question, but {through!r} leaves {induced.n_classes} "
            "classes: take Tallies, or TopK(1), or OneVsRest(c), a tally for each class"
        )
    return induced.probs, induced.labels == 0
