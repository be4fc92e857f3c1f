"""Tallies of one question and of several, and their making from rows in batches.

:class:`Tally` holds one binary question, :class:`Tallies` several lenses and a sample of rows;
:class:`TallyReading` reads columns of tables and files in batches.
"""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Self, TypeAlias, Unpack

import numpy as np

from caltest._base import BoolArray, FloatArray, IntArray
from caltest._base.saving import parse_json, sealed, unsealed
from caltest._base.written import name_of, several
from caltest.data import Facts, Predictions
from caltest.data.doubts import answered, doubts_of_sums
from caltest.data.lenses import (
    Canonical,
    Lens,
    LensLike,
    OneVsRest,
    Partition,
    TopK,
    as_lens,
    default_lens,
)
from caltest.data.numbers import as_they_are
from caltest.data.questions import Column, Question, Rows
from caltest.data.spare_columns import train_rows
from caltest.errors import InvalidPredictionsError, StatisticError
from caltest.read.arguments import questioned_arrays, read_arguments
from caltest.read.contract import Chosen, Wanted
from caltest.read.expressions import listing
from caltest.read.files import chosen_of, opened_part, read_table, table_in_memory
from caltest.read.formats import Table, flat, imported
from caltest.read.logs import refuse_repeated_samples
from caltest.read.questioning import labels_of_answers, one_part_columns, words_in
from caltest.read.tables import batches_of
from caltest.read.values import EvaluatedCells
from caltest.tallies.grid import (
    CELL_SUMS,
    GRID_CELLS,
    MOST_WEIGHTS,
    ROWS_A_TALLY,
    ROWS_COMPARED,
    TALLY_LENSES,
    TOTALS,
    UNBOUNDED,
    AnyTally,
    Counted,
    Grid,
    RowSample,
    carried,
    fields_of,
    mean_position,
    part_of,
    shared_rows,
    tally_json,
    turned_over,
)

if TYPE_CHECKING:
    from dask.dataframe import DataFrame
    from pandas import DataFrame as PandasFrame


@dataclass(frozen=True, eq=False)
class Tally(AnyTally, Counted):
    """Sums over micro-cells that answer a binary calibration question for any number of rows.

    [0, 1] is cut into ``grid`` cells of equal width, the first and the last of them into octaves,
    with cells of their own for 0, 1 and the inner edges. With t the position of a prediction in its
    cell, from −1 to 1, and y whether the event occurred, each occupied cell keeps n, Σt, …, Σt⁴,
    Σy and Σyt; all rows together keep the sums that log scores and Cox's score test need. All sums
    are of whole numbers, so that batches, their order and the number of processes change no bit.
    Tallies add up by ``+``.

    Make one with :meth:`of`, from files with :func:`caltest.scan`, from counts with
    :meth:`from_table`. Functions such as :func:`calibration_test` take it in place of predictions
    and look through its lens; a :class:`Monitor` takes it as a batch.

    Attributes
    ----------
    lens : Lens
        Which probabilities are assessed.
    grid : int
        Cells of equal width; bins that are unions of cells are answered exactly as from the rows.
    n_classes : int
        Number of classes before the lens; ``classes`` are their names, if any.
    strata : ndarray of shape (W,)
        The distinct weights of the rows, increasing; 1 without weights.
    key : ndarray of shape (C,), int64
        The occupied micro-cells, numbered from 0 to 1, for each weight in turn.
    stratum : ndarray of shape (C,), int64
        Index of the cell's weight in ``strata``.
    sums : ndarray of shape (C, 8), int64
        The sums above, powers of t in multiples of 2⁻³⁰; the last column is the remainder of Σt, in
        multiples of 2⁻⁵².
    totals : ndarray of shape (W, 8, 2), int64
        The sums over all rows, in multiples of 2⁻²⁰ and of 2⁻⁶³.
    notes : tuple of str
        How the rows were read and changed; not part of the value.
    outcome : str
        Name of the column of outcomes, "" where none is known; not part of the value.

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
    outcome: str = field(default="", repr=False)

    @classmethod
    def of(
        cls,
        probs: object,
        labels: object = None,
        lens: Lens | None = None,
        grid: int = GRID_CELLS,
        **facts: Unpack[Facts],
    ) -> Self:
        """Tally rows: add them up over fine bins of one event.

        Parameters
        ----------
        probs, labels, **facts
            As in :meth:`Predictions.of`; ``labels`` is left out for a :class:`Predictions`. Up to
            1024 different ``weights``; clusters and subgroups raise StatisticError.
        lens : OneVsRest, TopK(1), Partition of two groups or Canonical, optional
            Which event is looked at; by default as in :func:`calibration_test`.
        grid : int, default 4800
            Cells of equal width, 2 to 10⁶.

        Returns
        -------
        Tally
            The sums of the rows with weight above 0.

        Raises
        ------
        DoubtfulInputError
            For arrays whose values say that they are meant otherwise, without ``as_is=True``.
        StatisticError
            For a lens of more than two classes or of your own, and facts of rows that sums lack.
        """
        data, through = rows_to_tally(lens, probs, labels, facts)
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
        stratum = np.repeat(np.arange(len(parts)), sizes)
        tally = cls(*head, key, stratum, sums, totals, data.notes, data.outcome)
        if labels is None or questions_of_tally(tally, {}) == ():
            return tally
        return replace(tally, notes=questioned_arrays(data, probs, labels, facts).notes)

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

        ``probs``, ``label`` and ``weights`` are columns, ``options`` are the other keywords of
        :func:`scan` for reading, such as ``where`` and ``drop_missing``. ``lens`` is by default the
        lens of :func:`calibration_test`, ``grid`` the number of cells of equal width, by default
        4800. TypeError for another frame, InvalidPredictionsError for one without rows.
        """
        wanted = Wanted(probs, label, weights=weights, **options)
        counted = of_frame(frame, TallyReading(wanted, lens or "usual", grid))
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
        n, events = self.sums[:, 0], self.sums[:, CELL_SUMS.index("events")]
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
        """Return the tally of both sets of rows.

        StatisticError if lenses, grids or classes differ, and for 2³³ rows and more or more than
        1024 different weights.
        """
        if not isinstance(other, Tally):
            return NotImplemented
        self.refuse_other(other, "do not add up")
        if self.n + other.n > ROWS_A_TALLY:
            raise StatisticError(f"a tally holds at most {ROWS_A_TALLY} rows")
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
        sums = np.zeros((both.size, len(CELL_SUMS)), dtype=np.int64)
        np.add.at(sums, where, np.concatenate([self.sums, other.sums]))
        stratum, key = np.divmod(both, width)
        notes = tuple(dict.fromkeys((*self.notes, *other.notes)))
        return replace(
            self, strata=strata, key=key, stratum=stratum, sums=sums, totals=carried(totals),
            notes=notes, outcome=self.outcome if self.outcome == other.outcome else "",
        )  # fmt: skip

    def through(self, lens: LensLike | None) -> Tally:
        """Return this tally seen through a lens: its own, or the top class of two.

        A lens says which probabilities are assessed; None is the tally's own. ``TopK(1)`` can be
        derived from the event of two classes. StatisticError for any other lens.
        """
        if lens is None or (isinstance(lens, Lens) and self.named(lens) == self.named(self.lens)):
            return self
        if lens == TopK(1) and self.lens == OneVsRest(1) and self.n_classes == 2:
            return self.top()
        raise StatisticError(
            f"this is a tally of {self.lens!r}, which cannot be looked at through "
            f"{name_of(lens)}: tally the rows with that lens as well"
        )

    def top(self) -> Tally:
        """Return the tally of the top class of two classes, from the tally of ``OneVsRest(1)``.

        Where both have probability ½ (to 1e-12) the top class is class 0, as for ``TopK(1)``.
        StatisticError for a tally of another lens or of more classes.
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
        """Return the tally as JSON text, in whole numbers only, for :meth:`from_json`."""
        return tally_json({f.name: vars(self)[f.name] for f in fields(self)}, self.n)

    @classmethod
    def from_json(cls, text: str) -> Self:
        """Rebuild a tally from :meth:`to_json`; InvalidPredictionsError for anything else."""
        return cls(**fields_of(parse_json(text, "this is not a tally of caltest: it")))

    def __repr__(self) -> str:
        weights = "" if self.weights is None else f", {len(self.weights)} weights"
        return f"Tally(n={self.n}, {self.lens!r}, {len(self.key)} cells of {self.grid}{weights})"


def questions_of_tally(
    tally: Tally, said: Mapping[str, str], answers: bool | None = None
) -> tuple[Question, ...] | None:
    """Return the guards' questions that sums of the event of two classes raise, () for none.

    A :class:`Question` is evidence that the data were read wrongly, with other readings. None is
    returned for tallies of more classes, weights or other lenses, which cannot be judged. ``said``
    maps options such as "probs" to the user's expressions for them, used in proposals; ``answers``
    tells whether labels say if an answer was right, None if they may. O(C) for C cells.
    """
    if tally.n_classes > 2 or tally.weights is not None:
        return None
    if tally.lens not in (OneVsRest(1), Canonical()):
        return None
    centre, _, half, _ = Grid(tally.grid).of(tally.key)
    p, rows = centre + half * mean_position(tally.sums), tally.sums[:, 0].astype(np.float64)
    return doubts_of_sums(p, rows, tally.sums[:, CELL_SUMS.index("events")], said, answers)


def rows_to_tally(
    lens: LensLike | None, probs: object, labels: object, facts: Facts
) -> tuple[Predictions, Lens]:
    """Return (rows, lens): validated rows for a tally, and the lens, by default the usual one.

    ``probs``, ``labels`` and ``facts`` are the arguments of :meth:`Predictions.of`. ``lens`` says
    which probabilities are assessed; None is the usual lens of tests. StatisticError for designs
    that a tally does not keep, such as clusters, and for a lens that is not one of the package.
    """
    facts.setdefault("rounded", False)
    data = read_arguments(probs, labels, **facts).labelled("a tally")
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
    if type(through) not in TALLY_LENSES.values():
        raise StatisticError(
            f"a tally cannot name {name_of(through)}: apply it first and tally what it returns"
        )
    return data, through


def event_through(through: Lens, data: Predictions) -> tuple[FloatArray, BoolArray]:
    """Return (predictions (n, 2), events (n,)) of the binary question that a lens leaves.

    ``data`` are the rows and ``through`` is the lens, such as ``TopK(1)``; the first column is the
    probability of the event, and ``events`` are booleans. StatisticError for a lens that leaves
    more than two classes.
    """
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


# ------------------------------------------------------------------------------
# Tallies of the same rows, one a question.


#: Cells of the tally of each class, one of a few and one of many; 10, 12, 15, 16, 20, 24, 30 bins
#: of equal width are made of them.
CLASS_GRIDS = (480, 240)


#: From how many classes on there are many.
MANY_CLASSES = 100


#: The version of the stored form.
TALLIES_VERSION = 3


@dataclass(frozen=True, eq=False)
class Tallies(AnyTally):
    """Tallies of the same rows through several lenses, and a sample of the rows for all else.

    A lens says which probabilities are assessed. Functions such as :func:`calibration_test` take
    them in place of predictions and look at the :class:`Tally` that fits their lens; without a lens
    at the event of two classes, at the top class of more. Sums cannot answer for whole vectors,
    other lenses and most statistics: these are computed from a uniform sample of at most 50 000
    rows, and a note says of how many. They add up by ``+``, to the same bits in any order.

    ``members`` are the tallies, ``sample`` the sampled rows and ``notes`` what was done to
    the rows on the way in, both not part of the value.

    Examples
    --------
    >>> import caltest as ct
    >>> digits = ct.Tallies.of(ct.examples.digits("overfit"))
    >>> digits.n, len(digits.lenses)
    (900, 11)
    >>> ct.calibration_test(digits).lens, ct.calibration_test(digits, lens=ct.OneVsRest(3)).lens
    ('TopK(1)', 'OneVsRest(3)')
    >>> ct.calibration_test(digits, None, ct.SKCE(), lens=ct.Canonical(), rng=1).pvalue < 0.01
    True
    >>> (digits + ct.Tallies.of(ct.examples.digits("best"))).n
    1800
    """

    members: tuple[Tally, ...]
    sample: RowSample | None = field(default=None, repr=False)
    notes: tuple[str, ...] = field(default=(), repr=False)
    drawn_together = False

    def __post_init__(self) -> None:
        first, *_ = self.members
        names = [first.named(member.lens) for member in self.members]
        if len(set(names)) < len(names):
            raise StatisticError("Tallies has one tally for each lens, and a lens is named twice")
        if len({member.n for member in self.members}) > 1:
            raise StatisticError("Tallies are of the same rows, and these differ in their number")

    @classmethod
    def of(
        cls,
        probs: object,
        labels: object = None,
        lenses: Sequence[Lens] | None = None,
        *,
        grid: int | None = None,
        **facts: Unpack[Facts],
    ) -> Self:
        """Tally rows through several lenses, and sample them.

        Parameters
        ----------
        probs, labels, **facts
            As in :meth:`Tally.of`.
        lenses : sequence of Lens, optional
            The events for which sums over all rows are kept; by default the event for two classes,
            the top class and every class for more. Lenses that leave more than two classes are
            answered from the sample.
        grid : int, optional
            Cells of equal width, for all lenses; by default 4800, and 480 for each of more than two
            classes, 240 from 100 classes on.

        Returns
        -------
        Tallies
            A tally for each lens, and a sample of at most 50 000 rows.

        Raises
        ------
        StatisticError
            As :meth:`Tally.of`, and when a lens is named twice.
        """
        facts.setdefault("rounded", False)
        data = read_arguments(probs, labels, **facts).labelled("Tallies")
        data = questioned_arrays(data, probs, labels, facts)
        if not isinstance(lenses, (Sequence, type(None))):
            raise StatisticError(f"lenses is {lenses!r}: give a list of lenses, or a Tally.of it")
        return cls.of_part(data, lenses, grid)

    @classmethod
    def of_part(
        cls,
        data: Predictions,
        lenses: Sequence[Lens] | None,
        grid: int | None,
        first: int = 0,
        part: np.uint64 | None = None,
        bound: np.uint64 = UNBOUNDED,
    ) -> Self:
        """Tally ``data``, one batch of a file, whose first row has the number ``first``.

        ``lenses`` (None for the usual ones) and ``grid`` (cells of equal width, None for the usual
        number) are as in :meth:`of`. ``part`` is the hash of the file, None for a hash of the
        labels, and ``bound`` the largest rank with which a row can still enter the sample; see
        ``RowSample.of``.
        """
        chosen = usual_lenses(data) if lenses is None else list(lenses)
        if not chosen:
            raise StatisticError("the list of lenses is empty")
        for lens in chosen:
            rows_to_tally(lens, data, None, {})  # which refuses what no sums and no sample can hold
        # What leaves more classes is for the sample; beside it stands the top class at least.
        chosen = [lens for lens in chosen if not leaves_more_than_two(lens, data)] or [TopK(1)]
        coarse = CLASS_GRIDS[data.n_classes >= MANY_CLASSES] if data.n_classes > 2 else GRID_CELLS
        members = []
        for lens in chosen:
            usual = coarse if isinstance(lens, OneVsRest) else GRID_CELLS
            members.append(Tally.of(data, lens=lens, grid=usual if grid is None else grid))
        return cls(tuple(members), RowSample.of(data, first, part, bound), data.notes)

    @classmethod
    def from_dask(
        cls,
        frame: DataFrame,
        probs: str | Sequence[str] | None = None,
        label: str | None = None,
        *,
        lenses: Sequence[Lens] | None = None,
        grid: int | None = None,
        weights: str | None = None,
        **options: Any,
    ) -> Tallies:
        """Tally a Dask data frame where its partitions are; needs ``caltest[dask]``.

        ``lenses`` and ``grid`` are as in :meth:`of`; ``probs``, ``label`` and ``weights`` are
        columns, and ``options`` the other keywords of :func:`scan` for reading, such as ``where``
        and ``drop_missing``. TypeError for another frame, InvalidPredictionsError for one without
        rows.
        """
        wanted = Wanted(probs, label, weights=weights, **options)
        counted = of_frame(frame, TallyReading(wanted, lenses, grid))
        return counted if isinstance(counted, Tallies) else cls((counted,), None, counted.notes)

    @cached_property
    def rows(self) -> Predictions | None:  # type: ignore[override]
        """The sampled rows as Predictions, at most 50 000; None if no sample was kept.

        A note of theirs says how many rows they stand for, unless they are all.
        """
        s = self.sample
        if s is None:
            return None
        notes = (*self.notes, *filter(None, [s.remark]))
        return Predictions(s.probs, s.labels, self.classes, s.weights, notes=notes)

    def paired(self, other: AnyTally) -> tuple[Predictions, Predictions]:
        if not isinstance(other, Tallies):
            return super().paired(other)
        a, b = self.sample, other.sample
        if a is None or b is None or self.rows is None or other.rows is None:
            raise StatisticError("these tallies have no sample of rows: tally them anew")
        i, j = shared_rows(a, b)
        return self.rows.take(i), other.rows.take(j)

    @property
    def lenses(self) -> tuple[Lens, ...]:
        return tuple(member.lens for member in self.members)

    @property
    def lens(self) -> Lens:
        """Default lens: ``OneVsRest(1)`` for two classes, ``TopK(1)``, the top class, for more.

        A single member has its own.
        """
        usual: Lens = OneVsRest(1) if self.n_classes == 2 else TopK(1)
        return self.members[0].lens if len(self.members) == 1 else usual

    @property
    def n(self) -> int:
        return self.members[0].n

    @property
    def n_classes(self) -> int:
        return self.members[0].n_classes

    @property
    def outcome(self) -> str:  # type: ignore[override]
        return self.members[0].outcome

    @property
    def classes(self) -> tuple[str, ...] | None:
        """Names of the classes in the order of their numbers; None if they have none."""
        return self.members[0].classes

    @property
    def weights(self) -> FloatArray | None:
        return self.members[0].weights

    @property
    def effective_n(self) -> float:
        return self.members[0].effective_n

    @property
    def impossible(self) -> IntArray:
        if self.rows is not None and self.rows.impossible.size:
            return self.rows.impossible
        # A row may lie in several tallies: the tally of its class counts
        classes = [m for m in self.members if isinstance(m.lens, OneVsRest)]
        events = (m.sums[m.key == 0, CELL_SUMS.index("events")].sum() for m in classes)
        return np.broadcast_to(np.int64(0), (int(sum(events)),))

    @property
    def question(self) -> dict[str, object]:
        return {"lenses": self.lenses}

    def through(self, lens: LensLike | None) -> Tally:
        """Return the tally for a lens; StatisticError names the lenses there are if there is none.

        A lens says which probabilities are assessed; None is the default lens, the event of two
        classes or the top class of more.
        """
        return self.source(lens).through(self.lens if lens is None else lens)

    def source(self, lens: LensLike | None) -> Tally:
        """Return the member tally from which the sums for a lens are derived.

        None is the default lens; the top class of two is derived from the event. StatisticError if
        no sums were kept for the lens.
        """
        lens = self.lens if lens is None else lens
        if isinstance(lens, Lens):
            names = {self.named(each): j for j, each in enumerate(self.lenses)}
            place = names.get(self.named(lens))
            if place is None and self.n_classes == 2 and lens == TopK(1):
                place = names.get(self.named(OneVsRest(1)))
            if place is not None:
                return replace(self.members[place], notes=self.notes)
        there, more = [repr(each) for each in self.lenses], ""
        if len(there) > 6:
            there, more = there[:5], f" and {len(there) - 5} more"
        raise StatisticError(
            f"these tallies cannot be looked at through {name_of(lens)}, but through "
            f"{', '.join(there)}{more}: tally the rows with that lens as well"
        )

    def __eq__(self, other: object) -> bool:
        return self.members == other.members if isinstance(other, Tallies) else NotImplemented

    __hash__ = None  # type: ignore[assignment]

    def __add__(self, other: Tallies) -> Tallies:
        """Return the tallies of both sets of rows, lens by lens, with a sample of all rows.

        StatisticError if lenses, grids or classes differ. The sample is None if one of both has
        none.
        """
        if not isinstance(other, Tallies):
            return NotImplemented
        self.refuse_other(other, "do not add up")
        both = zip(self.members, other.members, strict=True)
        notes = tuple(dict.fromkeys((*self.notes, *other.notes)))
        a, b = self.sample, other.sample
        sample = None if a is None or b is None else a + b
        return Tallies(tuple(one + more for one, more in both), sample, notes)

    def to_json(self) -> str:
        """Return the tallies as JSON text, numbers exact to the bit, for :meth:`from_json`."""
        parts = ", ".join(member.to_json() for member in self.members)
        head = f'"caltest tallies": {TALLIES_VERSION}, "notes": {json.dumps(self.notes)}'
        sample = None if self.sample is None else self.sample.described()
        return f'{{{head}, "members": [{parts}], "sample": {sealed({"rows": sample})}}}'

    @classmethod
    def from_json(cls, text: str) -> Self:
        """Rebuild tallies from :meth:`to_json`; InvalidPredictionsError for anything else."""
        content = parse_json(text, "these are no tallies of caltest: it")
        try:
            if content["caltest tallies"] != TALLIES_VERSION:
                raise InvalidPredictionsError(
                    f"these tallies have the form {content['caltest tallies']}, known is "
                    f"{TALLIES_VERSION}"
                )
            members = tuple(Tally(**fields_of(part)) for part in content["members"])
            rows = unsealed(content["sample"], "these are no tallies of caltest: the sample")[
                "rows"
            ]
            sample = None if rows is None else RowSample.of_description(rows)
            tallies = cls(members, sample, tuple(content["notes"]))
        except InvalidPredictionsError:
            raise
        except (ValueError, TypeError, KeyError, IndexError, AttributeError) as error:
            raise InvalidPredictionsError(f"these are no tallies of caltest: {error}") from None
        if len({member.classes for member in members}) > 1 or (
            sample is not None
            and (sample.n, sample.probs.shape[1]) != (tallies.n, tallies.n_classes)
        ):
            raise InvalidPredictionsError(
                "these tallies are damaged: classes or the sample do not fit the sums"
            )
        return tallies

    def __repr__(self) -> str:
        return f"Tallies(n={self.n}, {several(len(self.members), 'lens')})"


def usual_lenses(data: Predictions) -> list[Lens]:
    """Return the lenses of an audit that leave a binary question of ``data``.

    They are ``OneVsRest(1)``, the event, for two classes, and ``TopK(1)``, the top class, then
    ``OneVsRest(k)`` for each class for more.
    """
    if data.n_classes == 2:
        return [OneVsRest(1)]
    return [TopK(1), *map(OneVsRest, range(data.n_classes))]


def leaves_more_than_two(lens: LensLike, data: Predictions) -> bool:
    """Return whether a lens leaves more than two classes of the predictions ``data``."""
    if isinstance(lens, Partition):
        return len(lens.groups) > 2
    return lens.k > 1 if isinstance(lens, TopK) else lens == Canonical() and data.n_classes > 2


# ------------------------------------------------------------------------------
# How rows of files and of Dask partitions become tallies: batch by batch, all understood alike.


#: What rows have been counted, if any.
MaybeTally: TypeAlias = Tally | Tallies | None


#: What is looked at, as a state says it.
LOOKS = {None: "all that an audit asks", "usual": "'usual', as a test"}


#: Rows that say what columns mean.
ROWS_FIRST_READ = 2**15


@dataclass
class TallyReading:
    """Reader of tables and files into tallies, batch by batch.

    ``wanted`` are the options of :func:`scan` that name columns; ``lens``, the assessed
    probabilities, and ``grid`` are as there. The first rows decide the rest: ``chosen``, the
    columns and how they are read (None before), ``looks``, the lenses that are tallied, and
    ``notes`` on both. Ranks above ``bound`` cannot enter the sample of rows. ``head`` is the number
    of first rows, and ``parts`` maps a column to the words, such as "train", by which it names a
    part of a data set.
    """

    wanted: Wanted = field(default_factory=Wanted)
    #: One, several, "usual" for that of tests, or None for all that an audit asks.
    lens: Lens | Sequence[Lens] | Literal["usual"] | None = None
    grid: int | None = None
    #: What the first rows have said: columns and lenses, and notes on them.
    chosen: Chosen | None = None
    notes: tuple[str, ...] = ()
    looks: tuple[LensLike, ...] = ()
    #: Ranks above which no row can still enter the sample.
    bound: np.uint64 = UNBOUNDED
    #: Number of the first rows, of which questions of columns that nobody named are asked, and
    #: the columns that have said one part of a data set there, with the words of all rows.
    head: int = 0
    parts: dict[str, set[str]] = field(default_factory=dict)

    @property
    def question(self) -> dict[str, str]:
        """Everything that decides what is counted, as text by name; a resumed scan compares it.

        Names are "lens", "grid", and the options of :func:`scan` for reading, such as "probs".
        """
        counted = (f.name for f in fields(Wanted) if f.name != "as_is")
        given = {name: repr(getattr(self.wanted, name)) for name in counted}
        lens = LOOKS.get(self.lens) if isinstance(self.lens, (str, type(None))) else None
        return {"lens": lens or repr(self.lens), "grid": repr(self.grid), **given}

    def choose(self, parts: Sequence[Path]) -> None:
        """Choose columns and lenses from the first of the files ``parts`` that has rows.

        They are kept in this reader, for all files. InvalidPredictionsError if no file has rows,
        DoubtfulInputError if it is in doubt which columns are meant.
        """
        for part in parts:
            with naming_errors(part), opened_part(part, self.wanted) as table:
                head = table.frame.head(ROWS_FIRST_READ).collect()
                if head.height:
                    # In text files the first rows decide the types of columns, for all parts
                    return self.choose_in(replace(table, frame=head.lazy(), text=None))
        raise InvalidPredictionsError(f"{parts[0].name}: there are no rows, nor in others")

    def choose_in(self, head: Table) -> None:
        """Choose columns and lenses from ``head``, a table of the first rows.

        The fields ``chosen``, ``looks``, ``notes``, ``head`` and ``parts`` of this reader are set.
        DoubtfulInputError if it is in doubt which columns are meant.
        """
        alike = replace(self.wanted, weights=None)  # the first rows may have no weight
        data, _ = read_table(replace(head, first=True), alike)
        self.chosen = chosen_of(head, self.wanted)
        self.notes = data.notes[1:]
        self.head = head.frame.select("*").collect().height
        self.parts = {name: set[str]() for name in one_part_columns(head, self.chosen)}
        self._look(data)

    def asked_of_all(self, counted: Tally | Tallies) -> tuple[str, ...]:
        """Run guards, checks for misread data, on the sums of all rows; return notes.

        Notes are sentences for results. ``counted`` are the sums, which know predictions and
        outcomes. DoubtfulInputError is raised if they raise a question, unless ``as_is`` answers
        it; then a note says so. A further note says which questions were asked of the first rows
        only.
        """
        assert self.chosen is not None
        said = {option: self.chosen.sql(option) for option in self.chosen.terms}
        asked = list[Question]()
        whole = counted.n <= self.head  # all but lone confidences were asked of all rows
        for name, words in () if whole else self.parts.items():
            column = Column(name, np.arange(len(words)), tuple(sorted(words)))
            empty = Rows(np.empty(0), np.empty(0, dtype=np.int64), unused=(column,), said=said)
            if (question := train_rows(empty)) is not None:
                asked.append(question)
        members = counted.members if isinstance(counted, Tallies) else (counted,)
        answers = labels_of_answers(self.chosen)
        by_sums = (questions_of_tally(member, said, answers) for member in members)
        asked += next((questions for questions in by_sums if questions is not None), ())
        if whole:
            asked = [question for question in asked if question.guard == "confidences"]
        notes = answered(asked, self.wanted.as_is)
        if whole:
            return notes
        return (*notes, f"questions of further columns were asked of the first {self.head} rows")

    def _look(self, data: Predictions) -> None:
        """Set ``looks``, the lenses to tally, from the user's ``lens`` and the first rows ``data``.

        None stands for all lenses of an audit, "usual" for the lens of tests. StatisticError for
        another word, and for objects that are no lens.
        """
        if isinstance(self.lens, str) and self.lens != "usual":
            raise StatisticError(f"lens is {self.lens!r}: give a lens such as TopK(1), or 'usual'")
        if not (self.lens is None or isinstance(self.lens, Sequence) or callable(self.lens)):
            raise StatisticError(f"lens is {self.lens!r}: give a lens such as TopK(1), or several")
        if self.lens is None:
            looks: Sequence[LensLike] = usual_lenses(data)
        elif isinstance(self.lens, str) or callable(self.lens):
            looks = [default_lens(data) if isinstance(self.lens, str) else self.lens]
        else:
            looks = self.lens
        self.looks = tuple(looks)

    def steps(self, part: Path) -> Iterator[tuple[MaybeTally, int]]:
        """Yield (tally, number of rows) for every batch of the file ``part``.

        The tally is None for a batch in which no row has weight.
        """
        with opened_part(part, self.wanted) as table:
            refuse_repeated_samples(table, self.wanted)
            self._words_of(table)
            yield from self.batches(table)

    def seen(self, part: Path) -> None:
        """Record which parts of a data set (train, test) an earlier counted file holds.

        The words of its columns are added to the field ``parts`` of this reader; ``part`` is the
        file.
        """
        if self.parts:
            with opened_part(part, self.wanted) as table:
                self._words_of(table)

    def _words_of(self, table: Table) -> None:
        assert self.chosen is not None
        for name in {*self.parts} & {*table.schema}:
            self.parts[name] |= words_in(table, self.chosen, self.wanted, name)

    def batches(self, table: Table) -> Iterator[tuple[MaybeTally, int]]:
        """Yield (tally, number of rows) for every batch of an open ``table``.

        The tally is None for a batch in which no row has weight. InvalidPredictionsError for a
        table that lacks a column which the first file has.
        """
        assert self.chosen is not None
        refuse_lacking(self.chosen, table)
        key, before = self.part_key(table), 0
        for cells in batches_of(table, self.chosen, self.wanted):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # the first rows have said it
                tally = self.batch(cells, before, key)
            before += cells.frame.height
            yield tally, cells.frame.height

    def part_key(self, table: Table) -> np.uint64:
        """Return a hash of the first 1024 labels of a file, which identifies it.

        0 if they cannot be read. ``table`` is the open file.
        """
        assert self.chosen is not None
        facts = ("weights", "clusters", "by", "ids", "folds", "features")
        listed = {n: t for n, t in self.chosen.terms.items() if n not in facts}
        chosen = replace(self.chosen, terms=listed)
        wanted = replace(self.wanted, drop_missing=True)
        try:
            with warnings.catch_warnings(), as_they_are():
                warnings.simplefilter("ignore")
                first = replace(table, frame=table.frame.head(ROWS_COMPARED), text=None)
                head = next(batches_of(first, chosen, wanted)).complete().cells
                return part_of(head.predictions().labels)
        except (InvalidPredictionsError, StopIteration):
            return np.uint64(0)  # what is wrong there is said when these rows are tallied

    def batch(
        self, cells: EvaluatedCells, before: int = 0, part: np.uint64 | None = None
    ) -> MaybeTally:
        """Tally one batch of a table; None if no row has weight.

        ``cells`` evaluates the chosen expressions on the rows of the batch. ``before`` is the
        number of rows of the file before the batch, ``part`` the hash of the file, None for a hash
        of the labels.
        """
        if cells.of("weights") and not np.any(cells.numbers("weights:0")):
            return None
        rows = cells.complete().cells
        if not rows.frame.height:
            return None
        with as_they_are():
            data = rows.predictions()
        return self.tallied(replace(data, notes=()), before, part)

    def tallied(
        self, data: Predictions, before: int = 0, part: np.uint64 | None = None
    ) -> Tally | Tallies:
        """Return the tally of the rows ``data`` for the chosen lenses.

        One lens gives a :class:`Tally`, several give :class:`Tallies` with a sample of rows.
        ``before`` is the number of rows of the file before these, ``part`` the hash of the file,
        None for a hash of the labels.
        """
        looks: Any = self.looks
        one = len(looks) == 1 and (self.lens is None or self.lens == "usual" or callable(self.lens))
        if one and not leaves_more_than_two(looks[0], data):
            return Tally.of(
                data, lens=looks[0], grid=GRID_CELLS if self.grid is None else self.grid
            )
        return Tallies.of_part(data, looks, self.grid, before, part, self.bound)


def joined(a: MaybeTally, b: MaybeTally) -> MaybeTally:
    """Return the sum of two tallies of the same kind, where None stands for no rows.

    The sum of two None is None.
    """
    if a is None or b is None:
        return a or b
    both: Any = a, b  # of one reading: tallies of several lenses, or of one
    return both[0] + both[1]


@contextmanager
def naming_errors(part: Path | str, account: Callable[[], str] = str) -> Iterator[None]:
    """Context manager that adds the name of a file and the rows counted so far to errors.

    ``part`` is the file, or a word for it; ``account()`` returns the text on the rows that were
    counted before, by default "". InvalidPredictionsError and StatisticError are raised anew with
    both.
    """
    try:
        yield
    except (InvalidPredictionsError, StatisticError) as error:
        name = part.name if isinstance(part, Path) else part
        message = str(error) if str(error).startswith(name) else f"{name}: {error}"
        raise type(error)(". ".join(filter(None, (message, account()))), error.readings) from None


def refuse_lacking(chosen: Chosen, table: Table) -> None:
    """Raise InvalidPredictionsError for a file that lacks a column which the first file has.

    ``chosen`` has the columns chosen in the first file and how they are read; ``table`` is the open
    file.
    """
    lacking = sorted(chosen.used - {*table.schema})
    if lacking:
        raise InvalidPredictionsError(
            f"there is no column {lacking[0]!r}, and the first part has it: {listing(table.schema)}"
        )


def refuse_in_memory(frame: object) -> None:
    """Raise TypeError for a frame that is not a Dask frame, and say how to tally it."""
    if not hasattr(frame, "npartitions"):
        raise TypeError(
            f"from_dask takes a Dask data frame, not a {type(frame).__module__.partition('.')[0]} "
            f"{type(frame).__name__}: rows in memory are for Tally.of(probs, labels), or wrap them "
            "by dask.dataframe.from_pandas(frame, npartitions=…)"
        )


def of_frame(frame: DataFrame, reading: TallyReading) -> Tally | Tallies:
    """Tally a Dask frame partition by partition.

    ``reading``, a reader of tables into tallies, has the options of :func:`scan`; the first rows
    decide, for all partitions, how columns are read. One lens gives a Tally, several give Tallies.
    InvalidPredictionsError for a frame without rows, or whose weights are all 0.
    """
    dask = imported("dask", "dask", "Dask data frames")
    refuse_in_memory(frame)
    frame = frame.rename(columns={name: str(name) for name in frame.columns})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of fewer rows than the head may have
        heads = (frame.partitions[j].head(ROWS_FIRST_READ) for j in range(frame.npartitions))
        head = next((rows for rows in heads if len(rows)), None)
    if head is None:
        raise InvalidPredictionsError("the data frame has no rows")
    with naming_errors("first rows"):
        reading.choose_in(_table_of_frame(head))
    assert reading.chosen is not None
    tally, add = (dask.delayed(f, pure=False) for f in (_of_partition, joined))
    delayed = enumerate(frame[sorted(reading.chosen.used)].to_delayed())
    waiting = [tally(part, f"partition {j}", reading) for j, part in delayed]
    while len(waiting) > 1:
        pairs = zip(waiting[::2], waiting[1::2], strict=False)
        waiting = [add(a, b) for a, b in pairs] + waiting[len(waiting) // 2 * 2 :]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the first rows have said it
        (counted,) = dask.compute(waiting[0])
    if counted is None:
        raise InvalidPredictionsError("weights are all 0: no row would count")
    return replace(counted, notes=(*reading.asked_of_all(counted), *counted.notes))


def _table_of_frame(frame: PandasFrame) -> Table:
    return flat(Table("", table_in_memory(frame).lazy()))


def _of_partition(frame: PandasFrame, name: str, reading: TallyReading) -> MaybeTally:
    with naming_errors(name):
        counted = None
        for tally, _ in reading.batches(_table_of_frame(frame)):
            counted = joined(counted, tally)
        return counted
