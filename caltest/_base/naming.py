"""What rows and columns are called in messages: by their place, or as the file they are from."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from caltest._base.arrays import IntArray


class Names(NamedTuple):
    """What rows are called, by their places, the columns of predictions, files by rows, labels."""

    rows: IntArray | range
    columns: list[str]
    parts: tuple[tuple[str, int], ...]
    label: str


#: What rows and columns of probabilities are called in messages, where not by their place.
NAMES: ContextVar[Names | None] = ContextVar("NAMES", default=None)


@contextmanager
def in_a_file(
    rows: IntArray | range,
    columns: list[str],
    parts: tuple[tuple[str, int], ...] = (),
    label: str = "",
) -> Iterator[None]:
    """Let messages speak of rows and columns as a file does, or several one after the other."""
    token = NAMES.set(Names(rows, columns, parts, label))
    try:
        yield
    finally:
        NAMES.reset(token)


def in_column() -> str:
    """Return in which column labels are, as a message says it, "" of arrays."""
    called = NAMES.get()
    return f" in column {called.label}" if called and called.label else ""


def nth(place: int) -> str:
    """Return what a row is called in messages."""
    called = NAMES.get()
    if called is None:
        return f"row {place}"
    row = int(called.rows[place])
    for name, length in called.parts:
        if row <= length:
            return f"row {row} of {name}"
        row -= length
    return f"row {row}"
