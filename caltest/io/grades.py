"""Tables of counts, one row a grade or bin, from libraries and files, by the names of columns."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from os import PathLike
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from caltest._base.arrays import FloatArray, IntArray
from caltest._base.containers import as_ndarray, names_of, opened
from caltest._base.naming import in_a_file, nth
from caltest._base.reading import as_numbers, at, first
from caltest._base.resolution import meant
from caltest._base.written import several
from caltest.errors import InvalidPredictionsError
from caltest.io.assembly import source_of
from caltest.tables import cells
from caltest.tables.columns import listing
from caltest.tables.source import Request, Source

#: Columns that name a grade, where none is said to.
NAMES = ("grade", "rating", "bin", "name")
#: Larger counts are a slip, or no longer whole numbers.
MOST = 2**53


class Grades(NamedTuple):
    """Rows, events among them, the one probability of all, and what each grade is called."""

    n: IntArray
    events: IntArray
    probability: FloatArray
    names: tuple[str, ...]


@contextmanager
def table_of(table: Any) -> Iterator[Source]:
    """Open a table at hand, or a file that has one, whose rows are counted from 1."""
    if isinstance(table, (str, PathLike)):
        with source_of(table, Request()) as source, in_a_file(range(1, MOST), []):
            yield source
        return
    frame = opened(table, "the table")
    names = names_of(frame)
    if names is None:
        raise InvalidPredictionsError(
            f"a {type(table).__name__} is no table with named columns: pass a data frame, a "
            "dictionary of columns or the path of a file"
        )
    columns = {str(name): name for name in names}
    yield Source(list(columns), lambda wanted: [as_ndarray(frame[columns[n]], n) for n in wanted])


def read_columns(source: Source, wanted: dict[str, str]) -> dict[str, NDArray[Any]]:
    """Return columns by what they are; they have one length."""
    absent = {what: name for what, name in wanted.items() if name not in source.names}
    if absent:
        raise InvalidPredictionsError(
            f"there is no column {' and none '.join(map(repr, absent.values()))} among "
            f"{listing(source.names)}: name it with "
            + ", ".join(f"{what}= (--{what})" for what in absent)
        )
    columns = dict(zip(wanted, source.read(list(wanted.values())), strict=True))
    sizes = {wanted[what]: np.shape(column) for what, column in columns.items()}
    if len(set(sizes.values())) > 1 or any(len(size) != 1 for size in sizes.values()):
        listed = ", ".join(f"{name} {size}" for name, size in sizes.items())
        raise InvalidPredictionsError(
            f"columns must be of one length, but have the shapes: {listed}"
        )
    if 0 in next(iter(sizes.values())):
        raise InvalidPredictionsError("the table has no rows")
    return columns


def read_grades(
    source: Source, n: str, events: str, probability: str, names: str | None = None
) -> Grades:
    """Read and check a table of grades."""
    called = names or next((s for s in source.names if s.lower() in NAMES), None)
    wanted = {"n": n, "events": events, "probability": probability}
    columns = read_columns(source, wanted | ({} if called is None else {"names": called}))
    counts = _checked(columns, wanted)
    marks = np.arange(1, len(counts[0]) + 1) if called is None else cells.marks(columns["names"])
    listed = marks.astype(str)
    for row, name in enumerate(listed):
        if name in listed[:row]:
            before = int(np.argmax(listed == name))
            raise InvalidPredictionsError(
                f"{called}: {name} is in {nth(before)} and in {nth(row)}; every grade has one row: "
                "add up its counts, or keep those of one year"
            )
    return Grades(*counts, tuple(listed.tolist()))


def whole_numbers(column: NDArray[Any], name: str, least: int = -(2**63)) -> IntArray:
    """Return whole numbers, and refuse what is none."""
    if column.dtype.kind == "O" and all(type(value) is int for value in column):
        column = np.array(column.tolist())
    if column.dtype.kind in "iu":
        exact, wrong = column.astype(np.int64), (column < least) | (column >= 2**63)
    else:
        numbers = as_numbers(cells.numbers(column, name), name)
        wrong = (numbers % 1 != 0) | (np.abs(numbers) > MOST) | (numbers < least)
        exact = np.where(wrong, 0, numbers).astype(np.int64)
    if wrong.any():
        row = first(wrong)
        kind = "whole numbers" + (f" ≥ {least}" if least >= 0 else "")
        raise InvalidPredictionsError(f"{at(name, row)} is {column[row]}; these are {kind}")
    return exact


def _checked(
    columns: dict[str, NDArray[Any]], names: dict[str, str]
) -> tuple[IntArray, IntArray, FloatArray]:
    n, events = (whole_numbers(columns[what], names[what], 0) for what in ("n", "events"))
    for what, counts, most in (("n", n, np.full_like(n, MOST)), ("events", events, n)):
        if (counts > most).any():
            row = first(counts > most)
            of = ", the rows of its grade" * (what == "events")
            raise InvalidPredictionsError(
                f"{at(names[what], row)} is {counts[row]}, more than {most[row]}{of}"
            )
    if not n.any():
        raise InvalidPredictionsError(f"{names['n']} is 0 in every row: there is nothing to test")
    name = names["probability"]
    p = as_numbers(cells.numbers(columns["probability"], name), name)
    outside = (p < 0.0) | (p > 1.0)
    if outside.any():
        row = first(outside)
        advice = "; if these are percentages, divide by 100" if 1.0 < p.max() <= 100.0 else ""
        raise InvalidPredictionsError(
            f"{at(name, row)} is {p[row]:.9g}, outside [0, 1] "
            f"({several(int(outside.sum()), 'such value')} in all){advice}"
        )
    return n, events, meant(p, str(columns["probability"].dtype))[0]
