"""Names of rows and columns in messages: by position for arrays, by file and line for files.

:func:`in_a_file` sets the names for a block of code, :func:`nth` and :func:`in_column` use them.
Without it messages say "row 3", counted from 0, as arrays are indexed.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from caltest._base.arrays import IntArray


class MessageNames(NamedTuple):
    """Names for messages: row numbers, probability columns, (file, rows) pairs, label column."""

    rows: IntArray | range
    columns: list[str]
    parts: tuple[tuple[str, int], ...]
    label: str


#: What rows and columns of probabilities are called in messages, where not by their place.
NAMES_IN_MESSAGES: ContextVar[MessageNames | None] = ContextVar("NAMES_IN_MESSAGES", default=None)


@contextmanager
def in_a_file(
    rows: IntArray | range,
    columns: list[str],
    parts: tuple[tuple[str, int], ...] = (),
    label: str = "",
) -> Iterator[None]:
    """Context manager in which messages name rows and columns as the file, or files, do.

    ``rows`` (n,) are line numbers, ``columns`` the names of the probability columns, ``parts``
    pairs (file, rows) of concatenated files, ``label`` the name of the label column.
    """
    token = NAMES_IN_MESSAGES.set(MessageNames(rows, columns, parts, label))
    try:
        yield
    finally:
        NAMES_IN_MESSAGES.reset(token)


def in_column() -> str:
    """Return " in column NAME" for messages on labels read from a file; "" for arrays."""
    called = NAMES_IN_MESSAGES.get()
    return f" in column {called.label}" if called and called.label else ""


def nth(place: int) -> str:
    """Return the name of the row at index ``place``, such as "row 17 of scores.csv".

    For arrays it is "row 17", counted from 0.
    """
    called = NAMES_IN_MESSAGES.get()
    if called is None:
        return f"row {place}"
    row = int(called.rows[place])
    for name, length in called.parts:
        if row <= length:
            return f"row {row} of {name}"
        row -= length
    return f"row {row}"
