"""What every reader of files returns: columns that can be asked for by name."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from numpy.typing import NDArray

from caltest.errors import InvalidPredictionsError

Column = NDArray[Any]
#: Cells that say that nothing is known, in lower case.
MISSING = ("", "na", "n/a", "nan", "null", "none")


@dataclass(frozen=True)
class Source:
    """A file whose columns can be asked for by name.

    ``read`` turns names into columns: text stays text, a column of lists becomes two-dimensional.
    ``bare`` is what to say of one array without names, whose labels must be in a file of their own;
    ``content`` what JSON holds, before it is made into columns; ``known`` what the format says of
    the columns (``probs``, ``label``, ``ids``); ``notes`` say how they were made.
    """

    names: list[str]
    read: Callable[[Sequence[str]], list[Column]]
    bare: str = ""
    content: Any = None
    known: dict[str, Any] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if len(set(self.names)) < len(self.names):
            for repeated in (name for name in self.names if name and self.names.count(name) > 1):
                raise InvalidPredictionsError(f"the file names the column {repeated!r} twice")


def is_number(cell: Any) -> bool:
    """Return whether a cell is a number, also one that is written."""
    try:
        float(cell)
    except (TypeError, ValueError, OverflowError):
        return False
    return True
