"""What columns may be by their cells, where their names do not say it."""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np

from caltest._base.event_words import EVENT_WORDS, PENDING, opposites
from caltest._base.reading import sum_tolerance
from caltest.tables import cells
from caltest.tables.names import NO_PROBABILITIES, words
from caltest.tables.source import FIRST, Column, Source, is_number

#: Columns up to which all are looked at.
SUGGESTED = 40


def outcomes_among(source: Source, names: Sequence[str]) -> tuple[list[str], list[str]]:
    """Return the columns that may hold outcomes, and those that hold nothing else.

    These have 0 and 1 or words for them, or the names or ends of names of other columns; without
    such a column two other words. Others may be outcomes in few words, if there is none with two;
    columns of which more than half is missing, such as remarks, only where no other may. Words
    for an outcome that is not known do not count.
    """
    if not 0 < len(names) <= SUGGESTED:
        return [], []
    columns = source.readable(names)
    gaps = {n: cells.missing(c[:FIRST]).mean() for n, c in columns.items() if c.ndim == 1}
    columns = {n: c for n, c in columns.items() if gaps.get(n, 0.0) <= 0.5} or columns

    def values_of(column: Column) -> set[str]:
        different = np.array(list(set(column.tolist())), dtype=object)
        texts = map(str, different[~cells.missing(different)].tolist())
        return {text for text in texts if text.strip().lower() not in PENDING}

    few = [n for n, c in columns.items() if c.ndim == 1 and len(values_of(c[:FIRST])) <= 2]
    values = {name: values_of(columns[name]) for name in few}
    two = [name for name in few if len(values[name]) == 2]
    numbers = ({"0", "1"}, {"0.0", "1.0"})
    sure = [
        n for n in two if values[n] in numbers or opposites(np.array([*values[n]]), EVENT_WORDS)
    ]
    texts = {n: c[:FIRST] for n, c in columns.items() if c.dtype.kind in "UO"}
    sure += [n for n, c in texts.items() if n not in few and opposites(c)]
    sure = [name for name in sure if not gaps[name]] or sure
    of_columns = [n for n, c in columns.items() if n not in sure and _name_columns(c, n, names)]
    in_words = [n for n in two if not any(map(is_number, values[n]))]
    likely = list(dict.fromkeys([*two, *of_columns]))
    levels = {n: len(set(c.tolist())) for n, c in texts.items() if not cells.are_numbers(c)}
    few_words = [n for n, count in levels.items() if 1 < count <= min(20, len(columns[n]) / 4)]
    likely = likely or few_words
    tables = [c.shape for c in columns.values() if c.ndim == 2 and c.dtype.kind == "f"]
    likely = likely or [n for n, c in columns.items() if _number_classes(c, tables)]
    return likely, [*sure, *of_columns] or in_words


def _number_classes(column: Column, tables: Sequence[tuple[int, ...]]) -> bool:
    """Say whether cells are numbers of classes, each of which has a column in a table of rows."""
    whole = column.ndim == 1 and column.dtype.kind in "iu" and column.size > 0
    n_classes = max((k for n, k in tables if n == column.size), default=0)
    return whole and column.min() >= 0 and column.max() < n_classes


def _name_columns(column: Column, name: str, names: Sequence[str]) -> bool:
    """Say whether every value is the end of one name of another column."""
    if column.dtype.kind not in "UO" or not 1 < len(set(column[:FIRST].tolist())) < len(names):
        return False
    values = set(map(str, column.tolist()))
    others = [other for other in names if other != name]
    ends = [re.compile(rf"(^|\W|_){re.escape(value)}$") for value in values]
    return len(values) > 1 and all(sum(map(bool, map(end.search, others))) == 1 for end in ends)


def probabilities_among(source: Source, names: Sequence[str]) -> tuple[list[str], bool]:
    """Return the columns that may be probabilities, and whether they are those of all classes.

    By themselves they have more than two values, and no name that says otherwise.
    """
    if not 0 < len(names) <= SUGGESTED:
        return [], False
    columns = source.readable(names)
    signed = [name for name, c in columns.items() if cells.in_percent(c)]
    columns |= {name: cells.with_gaps(columns[name], name, percent=True) for name in signed}
    likely = [name for name, column in columns.items() if are_fractions(column)]
    if rows := [name for name in likely if columns[name].ndim == 2]:
        return rows, False
    if len(likely) > 1 and are_probabilities([columns[name] for name in likely], False):
        return likely, True
    likely = [n for n in likely if len(set(columns[n].tolist())) > 2]
    likely = [n for n in likely if not NO_PROBABILITIES & {*words(n)}]
    return likely or [n for n, c in columns.items() if c.ndim == 2 and c.dtype.kind == "f"], False


def _numbers(column: Column) -> Column | None:
    """Return numbers, NaN where a cell is none, if half of the first cells that are known are."""
    if column.dtype.kind == "f":
        return column
    if column.dtype.kind not in "UO" or column.ndim > 1:
        return None
    first = column[:FIRST]
    numeric = [*map(is_number, first[~cells.missing(first)])]
    if 2 * sum(numeric) <= len(numeric):
        return None
    numbers = (cell if is_number(cell) else np.nan for cell in column.tolist())
    return np.fromiter(numbers, dtype=np.float64, count=column.size)


def are_fractions(column: Column) -> bool:
    """Say whether cells are numbers of [0, 1], some of them neither 0 nor 1."""
    numbers = _numbers(column)
    if numbers is None or not are_probabilities([numbers], False):
        return False
    return bool((numbers[~np.isnan(numbers)] % 1 != 0).any())


def are_probabilities(columns: Sequence[Column], from_logits: bool) -> bool:
    """Say whether columns that nothing else says of are numbers of [0, 1], several with sum 1."""
    numbers = [column for column in map(_numbers, columns) if column is not None]
    if len(numbers) < len(columns):
        return False
    if from_logits:
        return True
    if any(bool(((column < 0.0) | (column > 1.0)).any()) for column in numbers):
        return False
    if numbers[0].ndim == 1 and len(numbers) == 1:
        return True
    rows = numbers[0] if numbers[0].ndim > 1 else np.column_stack(numbers)
    rows = rows[~np.isnan(rows).any(axis=1)]
    return not bool((np.abs(rows.sum(axis=1) - 1.0) > sum_tolerance(rows)[0]).any())
