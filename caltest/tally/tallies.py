"""Tallies of the same rows, one a question."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Self, Unpack

import numpy as np

from caltest._base.written import name_of, several
from caltest.errors import InvalidPredictionsError, StatisticError
from caltest.lenses import Canonical, Lens, LensLike, OneVsRest, Partition, TopK
from caltest.predictions import Facts, FloatArray, IntArray, Predictions
from caltest.tally.base import AnyTally
from caltest.tally.grid import GRID, SUMS
from caltest.tally.sample import UNBOUNDED, RowSample, shared_rows
from caltest.tally.tally import Tally, rows_of

if TYPE_CHECKING:
    from dask.dataframe import DataFrame

#: Cells of the tally of each class, one of a few and one of many; 10, 12, 15, 16, 20, 24, 30 bins
#: of equal width are made of them.
CLASS_GRIDS = (480, 240)
#: From how many classes on there are many.
MANY_CLASSES = 100
#: The version of the stored form.
VERSION = 2


@dataclass(frozen=True, eq=False)
class Tallies(AnyTally):
    """Tallies of the same rows through several lenses, and a sample of the rows for all else.

    Verbs take them in place of predictions and look at the :class:`Tally` that fits their lens;
    without a lens at the event of two classes, at the top class of more. What sums cannot answer,
    such as whole vectors, other lenses and most statistics, is asked of a uniform sample of at most
    50 000 rows, and a note says of how many. They add up by ``+``, to the same bits in any order.

    ``members`` are the tallies, ``sample`` the rows of smallest rank and ``notes`` what was done to
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
        """Tally rows through several lenses.

        Parameters
        ----------
        probs, labels, **facts
            As in :meth:`Tally.of`.
        lenses : sequence of Lens, optional
            What has sums of all rows. By default of two classes the event, of more the top class
            and every class. Those that leave more than two classes are asked of the sample.
        grid : int, optional
            Cells of equal width, for all lenses; by default 4800, for each of more than two classes
            480, or 240 where there are a hundred.

        Raises
        ------
        StatisticError
            As :meth:`Tally.of`, and when a lens is named twice.
        """
        data = Predictions.of(probs, labels, **facts).labelled("Tallies")
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
        """Tally rows of a part that is read in batches, as :meth:`RowSample.of` knows them."""
        chosen = usual_lenses(data) if lenses is None else list(lenses)
        if not chosen:
            raise StatisticError("the list of lenses is empty")
        for lens in chosen:
            rows_of(lens, data, None, {})  # which refuses what no sums and no sample can hold
        # What leaves more classes is for the sample; beside it stands the top class at least.
        chosen = [lens for lens in chosen if not leaves_more_than_two(lens, data)] or [TopK(1)]
        coarse = CLASS_GRIDS[data.n_classes >= MANY_CLASSES] if data.n_classes > 2 else GRID
        members = []
        for lens in chosen:
            usual = coarse if isinstance(lens, OneVsRest) else GRID
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

        ``lenses`` are as in :meth:`of`, all else as in :func:`scan`.
        """
        from caltest.tally.reading import Reading, of_frame

        counted = of_frame(frame, Reading(probs, label, lenses, grid, weights, options=options))
        return counted if isinstance(counted, Tallies) else cls((counted,), None, counted.notes)

    @cached_property
    def rows(self) -> Predictions | None:  # type: ignore[override]
        """The sampled rows, as predictions whose notes say of how many they are."""
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
        """What is looked at without a lens: the event of two classes, the top class of more."""
        usual: Lens = OneVsRest(1) if self.n_classes == 2 else TopK(1)
        return self.members[0].lens if len(self.members) == 1 else usual

    @property
    def n(self) -> int:
        return self.members[0].n

    @property
    def n_classes(self) -> int:
        """Number of classes before the lens."""
        return self.members[0].n_classes

    @property
    def classes(self) -> tuple[str, ...] | None:
        """Their names."""
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
        # Of a row that lies in several tallies the one of its class counts
        classes = [m for m in self.members if isinstance(m.lens, OneVsRest)]
        events = (m.sums[m.key == 0, SUMS.index("events")].sum() for m in classes)
        return np.broadcast_to(np.int64(0), (int(sum(events)),))

    @property
    def question(self) -> dict[str, object]:
        return {"lenses": self.lenses}

    def through(self, lens: LensLike | None) -> Tally:
        """Return the tally of a lens; StatisticError, which names the lenses, if there is none."""
        return self.source(lens).through(self.lens if lens is None else lens)

    def source(self, lens: LensLike | None) -> Tally:
        """Return the tally from which a lens is seen; errors as of :meth:`through`."""
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
            f"{', '.join(there)}{more}: tally the rows with that lens, too"
        )

    def __eq__(self, other: object) -> bool:
        return self.members == other.members if isinstance(other, Tallies) else NotImplemented

    __hash__ = None  # type: ignore[assignment]

    def __add__(self, other: Tallies) -> Tallies:
        """Return the tallies of the rows of both; lenses, grids and classes must be the same."""
        if not isinstance(other, Tallies):
            return NotImplemented
        self.refuse_other(other, "do not add up")
        both = zip(self.members, other.members, strict=True)
        notes = tuple(dict.fromkeys((*self.notes, *other.notes)))
        a, b = self.sample, other.sample
        sample = None if a is None or b is None else a + b
        return Tallies(tuple(one + more for one, more in both), sample, notes)

    def to_json(self) -> str:
        """Return the tallies as JSON, numbers exactly as they are."""
        parts = ", ".join(member.to_json() for member in self.members)
        head = f'"caltest tallies": {VERSION}, "notes": {json.dumps(self.notes)}'
        rows = json.dumps(None if self.sample is None else self.sample.described())
        return f'{{{head}, "members": [{parts}], "sample": {rows}}}'

    @classmethod
    def from_json(cls, text: str) -> Self:
        """Rebuild from :meth:`to_json`; InvalidPredictionsError for anything else."""
        try:
            content = json.loads(text)
            if content["caltest tallies"] != VERSION:
                raise InvalidPredictionsError(
                    f"these tallies have the form {content['caltest tallies']}, known is {VERSION}"
                )
            members = tuple(Tally.from_json(json.dumps(part)) for part in content["members"])
            rows = content["sample"]
            sample = None if rows is None else RowSample.of_description(rows)
            return cls(members, sample, tuple(content["notes"]))
        except InvalidPredictionsError:
            raise
        except (ValueError, TypeError, KeyError, IndexError) as error:
            raise InvalidPredictionsError(f"these are no tallies of caltest: {error}") from None

    def __repr__(self) -> str:
        return f"Tallies(n={self.n}, {several(len(self.members), 'lens')})"


def usual_lenses(data: Predictions) -> list[Lens]:
    """Return the lenses of an audit that leave two classes."""
    if data.n_classes == 2:
        return [OneVsRest(1)]
    return [TopK(1), *map(OneVsRest, range(data.n_classes))]


def leaves_more_than_two(lens: LensLike, data: Predictions) -> bool:
    """Say whether a lens shows whole vectors."""
    if isinstance(lens, Partition):
        return len(lens.groups) > 2
    return lens.k > 1 if isinstance(lens, TopK) else lens == Canonical() and data.n_classes > 2
