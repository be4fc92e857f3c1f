"""What all tallies share: sums of rows that are not kept, which add up."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import Field
from typing import TYPE_CHECKING, Any, ClassVar, NoReturn, Self, TypeAlias

from caltest._base.written import name_of
from caltest.errors import InvalidPredictionsError, StatisticError
from caltest.lenses import Lens, LensLike, OneVsRest, Partition
from caltest.predictions import FloatArray, IntArray, NamedClasses, Predictions


class _Missing:
    """An attribute of rows, which sums do not have."""

    def __get__(self, tally: AnyTally | None, kind: type) -> Any:
        return self if tally is None else tally.__array__()


class AnyTally(NamedClasses, ABC):
    """Sums of rows that are not kept; verbs look at them ``through`` a lens.

    Each kind is a dataclass, and answers what verbs ask of :class:`Predictions` by the same names.
    """

    if TYPE_CHECKING:  # a field of some kinds, a property of others
        __dataclass_fields__: ClassVar[dict[str, Field[Any]]]

        @property
        def lens(self) -> Lens: ...

        @property
        def notes(self) -> tuple[str, ...]: ...

    probs = labels = _Missing()
    has_rows = False
    drawn_together: ClassVar[bool] = True
    #: A sample of the rows, for what sums leave open.
    rows: Predictions | None = None
    #: What sums do not know of.
    clusters = n_clusters = crossed = folds = horizon = by = features = followup = None
    ordered = multilabel = induced = False
    copies = 0

    def __array__(self, *_: object, **__: object) -> NoReturn:
        raise InvalidPredictionsError(
            f"a {type(self).__name__} has no rows, and rows are needed here: pass their "
            "predictions. Verbs that answer from sums take it alone, in place of probs and labels"
        )

    @property
    @abstractmethod
    def n(self) -> int:
        """Number of rows, of weight above 0."""

    @property
    @abstractmethod
    def weights(self) -> FloatArray | None:
        """The different weights of the rows; None where all rows count alike."""

    @property
    @abstractmethod
    def effective_n(self) -> float:
        """(Σ w)² / Σ w²: as many rows of equal weight would tell as much."""

    @property
    @abstractmethod
    def impossible(self) -> IntArray:
        """As many zeros as labels had probability 0, or the sampled rows where that was so."""

    @property
    def lenses(self) -> tuple[Lens, ...]:
        """What was looked at."""
        return (self.lens,)

    @abstractmethod
    def through(self, lens: LensLike | None) -> AnyTally:
        """Return what a lens shows; StatisticError where no sums were kept for it."""

    def source(self, lens: LensLike | None) -> AnyTally:
        """Return the tally of one lens from which another is seen."""
        return self

    def paired(self, other: AnyTally) -> tuple[Predictions, Predictions]:
        """Return the sampled rows that two models share; StatisticError without any."""
        raise StatisticError(
            "two tallies do not say which rows go together: paired=False compares those of other "
            "observations; of the same observations compare two Tallies, which keep rows of both"
        )

    @property
    @abstractmethod
    def question(self) -> dict[str, object]:
        """What tallies that are added or compared must have alike, by its name."""

    def refuse_other(self, other: AnyTally, what: str) -> None:
        """Raise StatisticError for a tally of another lens, grid or other classes."""
        for name, value in self.question.items():
            if value != other.question.get(name):
                raise StatisticError(
                    f"tallies of different {name} {what}: {name_of(value)} and "
                    f"{name_of(other.question.get(name))}"
                )

    @abstractmethod
    def __add__(self, other: Self) -> Self: ...

    def __radd__(self, other: object) -> Self:
        return self if other == 0 else NotImplemented  # which sum() begins with

    def named(self, lens: Lens) -> tuple[object, ...]:
        """Return what a lens is, with classes by number."""
        if isinstance(lens, OneVsRest):
            return "class", self.class_index(lens.c)
        if isinstance(lens, Partition):
            return tuple(frozenset(map(self.class_index, group)) for group in lens.groups)
        return ("lens", lens)


#: What verbs are asked about: rows, or sums over rows.
Source: TypeAlias = Predictions | AnyTally
