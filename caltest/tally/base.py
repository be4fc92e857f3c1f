"""What all tallies share: sums of rows that are not kept, which add up."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, NoReturn, Self

from caltest.errors import InvalidPredictionsError
from caltest.lenses import Lens, LensLike
from caltest.predictions import FloatArray, Predictions


class _Missing:
    """An attribute of rows, which sums do not have."""

    def __get__(self, tally: AnyTally | None, kind: type) -> Any:
        return self if tally is None else tally.__array__()


class AnyTally(ABC):
    """Sums of rows that are not kept; verbs look at them ``through`` a lens."""

    lens: Any
    n_classes: int
    classes: tuple[str, ...] | None
    notes: tuple[str, ...]
    probs = labels = _Missing()
    #: What sums do not know of.
    clusters = n_clusters = crossed = folds = horizon = None
    copies = 0
    by = None

    def __array__(self, *_: Any, **__: Any) -> NoReturn:
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

    @abstractmethod
    def through(self, lens: LensLike | None) -> Any:
        """Return what a lens shows; StatisticError where no sums were kept for it."""

    def source(self, lens: LensLike | None) -> Any:
        """Return the tally of one lens from which another is seen."""
        return self

    @abstractmethod
    def __add__(self, other: Self) -> Self: ...

    def __radd__(self, other: object) -> Self:
        return self if other == 0 else NotImplemented  # which sum() begins with

    def class_index(self, c: int | str) -> int:
        """Return the number of a class given by its number or its name."""
        return Predictions.class_index(self._seen, c)

    def class_name(self, index: int) -> str:
        """Return the name of a class, or its number when there are no names."""
        return Predictions.class_name(self._seen, index)

    @property
    def _seen(self) -> Any:
        return self

    def named(self, lens: Lens) -> tuple[Any, ...]:
        """Return what a lens is, with classes by number."""
        from caltest.lenses import OneVsRest, Partition

        if isinstance(lens, OneVsRest):
            return "class", self.class_index(lens.c)
        if isinstance(lens, Partition):
            return tuple(frozenset(map(self.class_index, group)) for group in lens.groups)
        return ("lens", lens)
