"""Tallies of the same rows, one a question."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Self, Unpack

from caltest._base.written import name_of, several
from caltest.errors import InvalidPredictionsError, StatisticError
from caltest.lenses import Canonical, Lens, LensLike, OneVsRest, Partition, TopK
from caltest.predictions import Facts, FloatArray, Predictions
from caltest.tally.base import AnyTally
from caltest.tally.grid import GRID
from caltest.tally.tally import Tally
from caltest.tally.tree import SimplexTree
from caltest.tally.vectors import VectorTally

#: Cells of the tally of each class, one of a few and one of many; 10, 12, 15, 16, 20, 24, 30 bins
#: of equal width are made of them.
CLASS_GRIDS = (480, 240)
#: From how many classes on there are many.
MANY_CLASSES = 100
#: The version of the stored form.
VERSION = 1


@dataclass(frozen=True, eq=False)
class Tallies(AnyTally):
    """Tallies of the same rows through several lenses: what all questions need to know of them.

    Whole vectors, the largest few and other questions of more than two classes have a
    :class:`VectorTally`, all others a :class:`Tally`. Verbs take them in place of predictions and
    look at the one that fits their lens; without a lens at the event of two classes, at the top
    class of more. They add up by ``+``, one by one, to the same bits in any order.

    Attributes
    ----------
    members : tuple of Tally and VectorTally
        One for each lens.
    notes : tuple of str
        What was done to the rows on the way in; not part of the value.

    Notes
    -----
    Cost and size are those of the members.

    Examples
    --------
    >>> import caltest as ct
    >>> digits = ct.Tallies.of(ct.examples.digits("overfit"))
    >>> digits.n, len(digits.lenses)
    (900, 13)
    >>> ct.calibration_test(digits).lens, ct.calibration_test(digits, lens=ct.OneVsRest(3)).lens
    ('TopK(1)', 'OneVsRest(3)')
    >>> more = ct.Tallies.of(ct.examples.digits("best"), cells=digits.cells)
    >>> (digits + more).n
    1800
    """

    members: tuple[Tally | VectorTally, ...]
    notes: tuple[str, ...] = field(default=(), repr=False)

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
        probs: Any,
        labels: Any = None,
        lenses: Sequence[Lens] | None = None,
        *,
        cells: Mapping[Lens, SimplexTree] | None = None,
        grid: int | None = None,
        **facts: Unpack[Facts],
    ) -> Self:
        """Tally rows through several lenses.

        Parameters
        ----------
        probs, labels, **facts
            As in :meth:`Tally.of`.
        lenses : sequence of Lens, optional
            By default all that :func:`audit` asks: of two classes the event, of more the top class,
            the largest few, every class and the whole vector.
        cells : mapping of Lens to SimplexTree, optional
            The cells of whole vectors, by default fitted to these rows. Tallies add up if they have
            the same: pass the ``cells`` of the first to all others.
        grid : int, optional
            Cells of equal width, for all lenses; by default 4800, for each of more than two classes
            480, or 240 where there are a hundred.

        Raises
        ------
        StatisticError
            As :meth:`Tally.of`, and when a lens is named twice.
        """
        data = Predictions.of(probs, labels, **facts)
        if not isinstance(lenses, (Sequence, type(None))):
            raise StatisticError(f"lenses is {lenses!r}: give a list of lenses, or a Tally.of it")
        if not isinstance(cells, (Mapping, type(None))):
            raise StatisticError("cells are those of other Tallies: pass cells=first.cells")
        asked = usual_lenses(data, data.weights is not None) if lenses is None else list(lenses)
        if not asked:
            raise StatisticError("the list of lenses is empty")
        coarse = CLASS_GRIDS[data.n_classes >= MANY_CLASSES] if data.n_classes > 2 else GRID
        members: list[Tally | VectorTally] = []
        for lens in asked:
            if leaves_more_than_two(lens, data):
                members.append(VectorTally.of(data, lens=lens, cells=(cells or {}).get(lens)))
            else:
                usual = coarse if isinstance(lens, OneVsRest) else GRID
                members.append(Tally.of(data, lens=lens, grid=usual if grid is None else grid))
        return cls(tuple(members), data.notes)

    @classmethod
    def from_dask(
        cls,
        frame: Any,
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
        from caltest.tally.dask import of_frame
        from caltest.tally.reading import Reading

        counted = of_frame(frame, Reading(probs, label, lenses, grid, weights, options=options))
        return counted if isinstance(counted, Tallies) else cls((counted,), counted.notes)

    @property
    def cells(self) -> dict[Lens, SimplexTree]:
        """The cells of whole vectors, by lens."""
        return {part.lens: part.cells for part in self.members if isinstance(part, VectorTally)}

    @property
    def lenses(self) -> tuple[Lens, ...]:
        """What was looked at."""
        return tuple(member.lens for member in self.members)

    @property
    def lens(self) -> Lens:
        """What is looked at without a lens: the event of two classes, the top class of more."""
        usual: Lens = OneVsRest(1) if self.n_classes == 2 else TopK(1)
        return self.members[0].lens if len(self.members) == 1 else usual

    @property
    def n(self) -> int:
        """Number of rows, of weight above 0."""
        return self.members[0].n

    @property
    def n_classes(self) -> int:  # type: ignore[override]
        """Number of classes before the lens."""
        return self.members[0].n_classes

    @property
    def classes(self) -> tuple[str, ...] | None:  # type: ignore[override]
        """Their names."""
        return self.members[0].classes

    @property
    def weights(self) -> FloatArray | None:
        """The different weights of the rows; None where all rows count alike."""
        return self.members[0].weights

    @property
    def effective_n(self) -> float:
        """(Σ w)² / Σ w²: as many rows of equal weight would tell as much."""
        return self.members[0].effective_n

    def through(self, lens: LensLike | None) -> Any:
        """Return the tally of a lens.

        Raises
        ------
        StatisticError
            When there is none; the message says which there are.
        """
        return self.source(lens).through(self.lens if lens is None else lens)

    def source(self, lens: LensLike | None) -> Any:
        """Return the tally from which a lens is seen; errors as of :meth:`through`."""
        wanted = self.lens if lens is None else lens
        if isinstance(wanted, Lens):
            names = {self.named(own): j for j, own in enumerate(self.lenses)}
            found = names.get(self.named(wanted))
            if found is None and self.n_classes == 2 and wanted == TopK(1):
                found = names.get(self.named(OneVsRest(1)))
            if found is not None:
                return replace(self.members[found], notes=self.notes)
        there, more = [repr(own) for own in self.lenses], ""
        if len(there) > 6:
            there, more = there[:5], f" and {len(there) - 5} more"
        raise StatisticError(
            f"these tallies cannot be looked at through {name_of(wanted)}, but through "
            f"{', '.join(there)}{more}: tally the rows with that lens, too"
        )

    def problem(self) -> Any:
        """Return what stands where statistics have their predictions, without a lens."""
        return self.through(None).problem()

    def __eq__(self, other: object) -> bool:
        return self.members == other.members if isinstance(other, Tallies) else NotImplemented

    __hash__ = None  # type: ignore[assignment]

    def __add__(self, other: Tallies) -> Tallies:
        """Return the tallies of the rows of both.

        Raises
        ------
        StatisticError
            When lenses, grids or classes differ.
        """
        if not isinstance(other, Tallies):
            return NotImplemented
        if self.lenses != other.lenses:
            raise StatisticError(
                "tallies of different lenses do not add up: "
                f"{name_of(self.lenses)} and {name_of(other.lenses)}"
            )
        both = zip(self.members, other.members, strict=True)
        notes = tuple(dict.fromkeys((*self.notes, *other.notes)))
        return Tallies(tuple(a + b for a, b in both), notes)

    def to_json(self) -> str:
        """Return the tallies as JSON, of whole numbers only."""
        parts = ", ".join(member.to_json() for member in self.members)
        head = f'"caltest tallies": {VERSION}, "notes": {json.dumps(self.notes)}'
        return f'{{{head}, "members": [{parts}]}}'

    @classmethod
    def from_json(cls, text: str) -> Self:
        """Rebuild from :meth:`to_json`; InvalidPredictionsError for anything else."""
        try:
            content = json.loads(text)
            if content["caltest tallies"] != VERSION:
                raise InvalidPredictionsError(
                    f"these tallies have the form {content['caltest tallies']}, known is {VERSION}"
                )
            members = []
            for part in content["members"]:
                kind: Any = Tally if "caltest tally" in part else VectorTally
                members.append(kind.from_json(json.dumps(part)))
            return cls(tuple(members), tuple(content["notes"]))
        except InvalidPredictionsError:
            raise
        except (ValueError, TypeError, KeyError, IndexError) as error:
            raise InvalidPredictionsError(f"these are no tallies of caltest: {error}") from None

    def __repr__(self) -> str:
        return f"Tallies(n={self.n}, {several(len(self.members), 'lens')})"


def usual_lenses(data: Predictions, weighted: bool) -> list[Lens]:
    """Return the lenses of an audit; those of whole vectors take no weights."""
    if data.n_classes == 2:
        return [OneVsRest(1)]
    k = min(3, data.n_classes - 2)
    ranks, whole = [TopK(k)] * (k > 1 and not weighted), [Canonical()] * (not weighted)
    return [TopK(1), *ranks, *map(OneVsRest, range(data.n_classes)), *whole]


def leaves_more_than_two(lens: LensLike, data: Predictions) -> bool:
    """Say whether a lens shows whole vectors."""
    if isinstance(lens, Partition):
        return len(lens.groups) > 2
    return lens.k > 1 if isinstance(lens, TopK) else lens == Canonical() and data.n_classes > 2
