"""Tallies of what is counted already: micro-cell sums of a warehouse, and grades or bins."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Self

import numpy as np

from caltest._base.arrays import AnyArray
from caltest._base.labels import class_names
from caltest._base.naming import nth
from caltest._base.reading import as_numbers
from caltest._base.written import several
from caltest.errors import InvalidPredictionsError, StatisticError
from caltest.io.grades import Grades, read_columns, read_grades, table_of, whole_numbers
from caltest.lenses import OneVsRest
from caltest.predictions import IntArray
from caltest.tables.columns import refuse_unknown
from caltest.tally.grid import GRID, MOST_ROWS, MOST_WEIGHTS, SUMS, TOTALS, Grid, carried
from caltest.tally.rows import AT_ONCE, UNIT
from caltest.tally.sql import COLUMNS, REFUSED

#: What the two classes are called, if anything.
Names = tuple[str, ...] | None


class Counted:
    """The way from tables of counts to a tally."""

    @classmethod
    def from_table(
        cls, table: object, *, n: str | None = None, events: str | None = None,
        probability: str | None = None, percent: bool | None = None,
        classes: Sequence[object] | None = None, grid: int | None = None,
    ) -> Self:  # fmt: skip
        """Tally what is counted already: the result of :func:`tally_sql`, or grades or bins.

        Parameters
        ----------
        table : data frame, mapping of columns, duckdb relation or path
            The result of a query of :func:`tally_sql`, also those of several days below each other;
            or a row for each grade, which stands for its ``n`` rows of one prediction.
        n, events, probability, percent
            The columns of grades, as in :func:`grade_tests`.
        classes : sequence of two, optional
            What is called not to have occurred, and to have occurred.
        grid : int, optional
            Cells of equal width; 4800 for grades, for a query its own.

        Returns
        -------
        Tally
            Of the event, ``OneVsRest(1)``; of grades it equals that of their rows.

        Raises
        ------
        InvalidPredictionsError
            For columns that are not there, the first row whose numbers are not counts or no
            probability, and rows that the query could not tally.

        Notes
        -----
        Linear in the rows of the table; of grades with up to n rows of a kind, log₂ n passes.

        Examples
        --------
        >>> import caltest as ct
        >>> grades = {"n": [200, 50], "events": [1, 2], "probability": [0.01, 0.05]}
        >>> ct.Tally.from_table(grades)
        Tally(n=250, OneVsRest(1), 2 cells of 4800)
        """
        names = class_names(classes, 2)
        with table_of(table) as source:
            if "key" in source.names and "t4" in source.names:
                refuse_unknown(COLUMNS, source.names)
                columns = read_columns(source, {name: name for name in COLUMNS})
                return _of_cells(cls, columns, names, grid)
            grade_columns = {"n": n, "events": events, "probability": probability}
            grades = read_grades(source, grade_columns, percent)
        return _of_grades(cls, grades, names, GRID if grid is None else grid)


def _of_grades(kind: Any, grades: Grades, names: Names, grid: int) -> Any:
    """Add up rows of each grade by the binary digits of their number, from the highest one down."""
    _refuse_more(grades.n)
    times = np.concatenate([grades.events, grades.n - grades.events])
    p, event = np.tile(grades.probability, 2), np.arange(times.size) < grades.n.size

    def once(rows: IntArray) -> Any:
        probs = np.ascontiguousarray(np.column_stack([p, 1.0 - p])[rows])
        key, sums, totals = Grid(grid).sums(probs, event[rows])
        head = (OneVsRest(1), grid, 2, names, np.ones(1))
        return kind(*head, key, np.zeros_like(key), sums, totals[None])

    digits = int(times.max()).bit_length()
    total = once(np.flatnonzero(times >> (digits - 1) & 1))
    for digit in range(digits - 2, -1, -1):
        total = total + total + once(np.flatnonzero(times >> digit & 1))
    return total


def _refuse_more(n: IntArray) -> None:
    if sum(n.tolist()) > MOST_ROWS:
        raise StatisticError(f"a tally holds at most {MOST_ROWS} rows")


def _of_cells(kind: Any, columns: Mapping[str, AnyArray], names: Names, grid: int | None) -> Any:
    """Tally the result of a query, or of several below each other."""
    whole = {name: whole_numbers(columns[name], name) for name in COLUMNS if name != "weight"}
    key, n = whole["key"], whole["n"]
    refusals = [f"{several(int(n[key == code].sum()), 'row')} {why}"
            for code, why in REFUSED.items() if (key == code).any()]  # fmt: skip
    if refusals:
        raise InvalidPredictionsError(
            f"the query found {', '.join(refusals)}: repair them, or query a view without them"
        )
    _refuse_more(n)
    sizes = np.unique(whole["grid"])
    if sizes.size > 1 or grid not in (None, sizes[0]):
        remedy = "one at a time" if grid is None else f"not of {grid}"
        raise StatisticError(f"this table is of grid {', '.join(map(str, sizes))}, {remedy}")
    sums = np.column_stack([whole[name] for name in SUMS])
    events, t1 = whole["events"], whole["t1"]
    wrong = (n < 1) | (events < 0) | (events > n) | (np.abs(t1) > n * UNIT)
    if wrong.any():
        row = int(np.argmax(wrong))
        raise InvalidPredictionsError(f"{nth(row)} has sums that {n[row]} rows cannot have")
    strata, stratum = np.unique(as_numbers(columns["weight"], "weight"), return_inverse=True)
    if strata[0] <= 0.0 or strata.size > MOST_WEIGHTS:
        raise StatisticError(
            f"there are {several(strata.size, 'weight')} from {strata[0]:g} on, and a tally keeps "
            f"up to {MOST_WEIGHTS} apart, all above 0: round them in a view"
        )
    last = Grid(int(sizes[0])).last
    if ((key < 0) | (key > last)).any():
        raise InvalidPredictionsError(f"key: there are others than 0 to {last} of grid {sizes[0]}")
    both, where = np.unique(stratum * (last + 1) + key, return_inverse=True)
    merged = np.zeros((both.size, len(SUMS)), dtype=np.int64)
    np.add.at(merged, where, sums)
    parts = np.stack([[whole[t], whole[f"{t}_rest"]] for t in TOTALS]).transpose(2, 0, 1)
    totals = np.zeros((strata.size, len(TOTALS), 2), dtype=np.int64)
    for start in range(0, n.size, AT_ONCE):
        part = slice(start, start + AT_ONCE)
        np.add.at(totals, stratum[part], parts[part])
        totals = carried(totals)
    of_cell, key = np.divmod(both, last + 1)
    return kind(OneVsRest(1), int(sizes[0]), 2, names, strata, key, of_cell, merged, totals)
