"""Classes by number and by name."""

from __future__ import annotations

from typing import TYPE_CHECKING

from caltest.errors import StatisticError


class NamedClasses:
    """Classes 0 … K−1 that may have names: those of predictions and of tallies."""

    if TYPE_CHECKING:  # fields of some, properties of others

        @property
        def n_classes(self) -> int: ...

        @property
        def classes(self) -> tuple[str, ...] | None: ...

    def class_index(self, c: int | str) -> int:
        """Return the number of a class given by its number or its name."""
        names = self.classes or ()
        if c in names:
            return names.index(str(c))
        if isinstance(c, str):
            listed = ", ".join(names) or "no names are known"
            raise StatisticError(f"there is no class named {c!r} ({listed})")
        if not 0 <= c < self.n_classes:
            last = self.n_classes - 1
            raise StatisticError(f"there is no class {c}, classes run from 0 to {last}")
        return int(c)

    def class_name(self, index: int) -> str:
        """Return the name of a class, or its number when there are no names."""
        return self.classes[index] if self.classes else str(index)
