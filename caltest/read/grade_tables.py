"""Tables of other rows than predictions with outcomes: counts of grades, and revised forecasts.

:func:`read_grades` returns the counts of :func:`caltest.grade_tests`; :func:`read_columns` the
columns of a tally that a database has computed; :func:`read_forecasts` the forecasts of
:class:`caltest.Revisions`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING, Literal, NamedTuple

import numpy as np

from caltest._base.arrays import AnyArray, FloatArray, IntArray
from caltest._base.written import several
from caltest.data.facts import refuse_leads
from caltest.data.numbers import as_numbers, at, first, meant
from caltest.data.spare_columns import in_percent
from caltest.errors import DoubtfulInputError, InvalidPredictionsError, Reading
from caltest.read.contract import LABELS, PROBABILITIES, Chosen, Wanted
from caltest.read.expressions import (
    Term,
    described,
    key,
    literal,
    quoted,
    says_percent,
    terms_of,
    words_of,
)
from caltest.read.files import is_in_memory, naming, refuse_unclear_numbers, table_of
from caltest.read.guesses import GRADE_NAMES, LISTED_READINGS, REQUIRED, likely_grades
from caltest.read.tables import cells_of
from caltest.read.values import EvaluatedCells

if TYPE_CHECKING:
    import polars as pl

    from caltest.read.formats import Table

#: A table of more rows, one of whose columns holds outcomes, is none of grades.
MOST_GRADES = 200


#: Larger counts are a slip, or no longer whole numbers.
MOST_COUNTED = 2**53


#: A whole number in groups of three digits.
GROUPED = re.compile(r"[1-9]\d{0,2}(?:[\s'’]\d{3})+")


class Grades(NamedTuple):
    """Counts of G grades, groups of rows with a predicted probability, from a table.

    ``n`` and ``events`` (G,) are numbers of rows and of events among them, ``probability`` (G,) the
    predicted probability of the event. ``names`` are the names of the grades, ``notes`` sentences
    that say how the table was read.
    """

    n: IntArray
    events: IntArray
    probability: FloatArray
    names: tuple[str, ...]
    notes: tuple[str, ...]


@dataclass(frozen=True)
class CountTable:
    """Open table of counts; rows are numbered from 1 in a file, from 0 in memory.

    ``table`` is the open table, a lazy polars frame with its origin; ``in_memory`` says that it is
    not a file.
    """

    table: Table
    in_memory: bool

    @property
    def names(self) -> list[str]:
        """Names of the columns of this table, in order."""
        return list(self.table.schema)

    def cells(self, found: Mapping[str, Term], where: str | None = None) -> EvaluatedCells:
        """Return the evaluated cells of columns and expressions of this table.

        They hold a frame with columns such as ``n:0``. ``found`` maps roles such as "n" to
        expressions, and ``where`` is a condition in SQL that selects rows; None keeps all.
        Thousands separators are removed. InvalidPredictionsError for expressions that cannot be
        computed, and without rows.
        """
        listed = {what: [term] for what, term in found.items()}
        if where is not None:
            listed["where"] = terms_of(where, self.table.schema)
        chosen, wanted = Chosen(listed), Wanted(where=where)
        cells = cells_of(self.table, chosen, wanted, frame_rows=self.in_memory)
        return EvaluatedCells(chosen, wanted, _without_groups(cells.frame), cells.rows, cells.first)


@contextmanager
def count_table(
    table: object, sheet: str | None = None, decimal: Literal[".", ","] | None = None
) -> Iterator[CountTable]:
    """Context manager that opens a table in memory, or a file, as a :class:`CountTable`.

    ``table`` is a path or a table; ``sheet`` is the sheet of an Excel file, None for the only one,
    and ``decimal`` the decimal mark of a text file, None if its first rows tell. It yields the open
    table (rows as a lazy polars frame). FileNotFoundError and InvalidPredictionsError for a file
    that cannot be read; InvalidPredictionsError for a sheet of a table in memory, and for other
    objects.
    """
    in_memory = is_in_memory(table)
    if in_memory and sheet is not None:
        raise InvalidPredictionsError("sheet= is for Excel files, and this is a table in memory")
    with ExitStack() as stack:
        try:
            opened, _ = stack.enter_context(table_of(table, Wanted(sheet=sheet, decimal=decimal)))
        except TypeError:
            raise InvalidPredictionsError(
                f"a {type(table).__name__} is no table with named columns: pass a data frame, a "
                "dictionary of columns or the path of a file"
            ) from None
        stack.enter_context(naming(opened.name))
        yield CountTable(opened, in_memory)


def _without_groups(frame: pl.DataFrame) -> pl.DataFrame:
    """Return a frame in which counts written as text have no thousands separators.

    ``frame`` has columns of any type. A column of text becomes integers if all its numbers of more
    than three digits have separators (blanks or apostrophes); others are unchanged.
    """
    import polars as pl

    plain = []
    for name in frame.columns:
        cells = frame[name]
        if cells.dtype == pl.String:
            words = cells.str.strip_chars()
            long = [w for w in words.drop_nulls().to_list() if not re.fullmatch(r"\d{1,3}", w)]
            if long and all(map(GROUPED.fullmatch, long)):
                cells = words.str.replace_all(r"\D", "").cast(pl.Int64)
        plain.append(cells)
    return pl.DataFrame(plain)


# ------------------------------------------------------------------------------
# Columns of known names, as queries have them.


def read_columns(counts: CountTable, names: Sequence[str]) -> dict[str, AnyArray]:
    """Return columns (n,) by their ``names``; whole numbers of any width are int64.

    ``counts`` is the open table (rows as a lazy polars frame). InvalidPredictionsError for a name
    that the table does not have, and for a table without rows.
    """
    import polars as pl

    absent = [name for name in names if name not in counts.names]
    if absent:
        raise InvalidPredictionsError(
            f"there is no column {' and none '.join(map(repr, absent))} among "
            f"{', '.join(counts.names)}"
        )
    frame = counts.table.frame.select(names).collect()
    if not frame.height:
        raise InvalidPredictionsError("the table has no rows")
    columns = {}
    for name in names:
        cells = frame[name]
        if cells.dtype.is_decimal() or cells.dtype in (pl.Int128, pl.UInt128):
            exact = cells.cast(pl.Int64, strict=False)
            fits = exact.null_count() == cells.null_count() and bool((exact == cells).all())
            cells = exact if fits else cells.cast(pl.Float64)
        columns[name] = np.asarray(cells.to_numpy())
    return columns


def whole_numbers(column: AnyArray, name: str, least: int = -(2**63)) -> IntArray:
    """Return a column (n,) as int64 integers that are at least ``least``.

    InvalidPredictionsError names the row and value of any other number; ``name`` is the column in
    it.
    """
    if column.dtype.kind == "O" and all(type(value) is int for value in column):
        column = np.array(column.tolist())
    if column.dtype.kind in "iu":
        exact, wrong = column.astype(np.int64), (column < least) | (column >= 2**63)
    else:
        numbers = as_numbers(column, name)
        wrong = (numbers % 1 != 0) | (np.abs(numbers) > MOST_COUNTED) | (numbers < least)
        exact = np.where(wrong, 0, numbers).astype(np.int64)
    if wrong.any():
        row = first(wrong)
        kind = "whole numbers" + (f" ≥ {least}" if least >= 0 else "")
        raise InvalidPredictionsError(f"{at(name, row)} is {column[row]}; these are {kind}")
    return exact


# ------------------------------------------------------------------------------
# Grades.


def read_grades(
    counts: CountTable, request: Mapping[str, str | None], where: str | None = None,
    as_is: bool = False,
) -> Grades:  # fmt: skip
    """Return checked grades: their names, counts of rows and events, and probabilities.

    Grades are groups of rows with a predicted probability, one row each in ``counts``, the open
    table (rows as a lazy polars frame). ``request`` maps roles (n, events, probability, names) to
    the user's expressions, None where there is none; then the column is found by its name, such as
    "pd" (``GRADE_NAMES``). A row that is the sum of all others in both counts, without a
    probability, is left out with a note; one with a probability raises DoubtfulInputError.
    InvalidPredictionsError for columns that cannot be found, and for cells that are no counts or
    probabilities. ``where`` is a condition in SQL that selects rows; ``as_is`` takes a doubtful
    table as it is.
    """
    found = _chosen(counts, request)
    if not as_is:
        refuse_unclear_numbers(counts.table, {what: [term] for what, term in found.items()})
    cells = counts.cells(found, where)
    names = _names(cells)
    for row, name in enumerate(names):
        if name in names[:row]:
            raise InvalidPredictionsError(
                f"{found['names'].name}: {name} is in {cells.nth(names.index(name))} and in "
                f"{cells.nth(row)}; every grade has one row: add up its counts, or keep the rows "
                "of one year",
                _parts(counts, found, names, where) or [Reading({"where": "EXPR"})],
            )
    n, events = (_counts(cells, what) for what in ("n", "events"))
    sums_up = _sums_of_others(cells, names, n, events, as_is)
    _check_counts(cells, n, events)
    p = _probabilities(cells, sums_up)
    expected, seen = float((n * p)[~sums_up].sum()), int(events[~sums_up].sum())
    if not as_is and cells.is_plain("probability:0") and in_percent(expected, seen):
        name = found["probability"].name
        raise DoubtfulInputError(
            f"{name} predicts {expected:.4g} events and {seen} were observed: numbers in percent "
            "may be below 1 in every row",
            [
                Reading(
                    {"probability": f"{cells.sql('probability:0')} / 100"}, f"{name} is in percent"
                )
            ],
        )
    notes = [
        f"{cells.nth(int(row))}, {names[row]}, is the sum of the others and no grade"
        for row in np.flatnonzero(sums_up)
    ]
    plain = all(term.name == what for what, term in found.items())
    if not plain or notes or where is not None:
        parts = [f"{what} from {term.name}" for what, term in found.items()]
        kept = "" if where is None else f", those where {where}"
        read = several(int((~sums_up).sum()), "grade")
        notes.insert(0, f"read {read}{kept}: {', '.join(parts)}")
    listed = tuple(name for name, other in zip(names, sums_up, strict=True) if not other)
    return Grades(n[~sums_up], events[~sums_up], p[~sums_up], listed, (*notes, *counts.table.notes))


def _chosen(counts: CountTable, request: Mapping[str, str | None]) -> dict[str, Term]:
    """Return the expressions of a table of grades by role: the user's, or columns found by name.

    Names are those in ``GRADE_NAMES``, such as "pd". Roles are n, events, probability and names;
    each expression is a :class:`Term`, with its SQL and its polars form. ``counts`` is the open
    table (rows as a lazy polars frame). ``request`` maps roles to the user's expressions, None
    where there is none. InvalidPredictionsError if one is not found, or one column has two roles.
    """
    schema = counts.table.schema
    found: dict[str, Term] = {}
    for what, wanted in request.items():
        if wanted is None:
            continue
        listed = terms_of(wanted, schema)
        if len(listed) != 1:
            raise InvalidPredictionsError(f"{what} is one column or expression: {wanted}")
        found[what] = listed[0]
    used = {root for term in found.values() for root in term.roots}
    missing = []
    for what, known in GRADE_NAMES.items():
        if what in found:
            continue
        called = [name for name in schema if key(name) in known]
        fit = [name for name in called if name not in used] or called
        if len(fit) > 1:
            raise InvalidPredictionsError(
                f"{what} could be {' or '.join(fit)}",
                [Reading({what: quoted(name)}, f"{name} is meant") for name in fit],
            )
        if fit:
            found[what] = terms_of([fit[0]], schema)[0]
        elif what in REQUIRED:
            missing.append(what)
    if missing:
        raise _lacking(counts, found, missing)
    columns = [term.column for term in found.values() if term.column is not None]
    if len({*columns}) < len(columns):
        twice = ", ".join(f"{what} {term.name}" for what, term in found.items())
        raise InvalidPredictionsError(f"one column has two roles: {twice}")
    if "names" not in found:  # what grades are called decides nothing
        used = {root for term in found.values() for root in term.roots}
        sql = _called(counts, [name for name in schema if name not in used])
        found |= {"names": terms_of([sql], schema)[0]} if sql else {}
    return {what: found[what] for what in GRADE_NAMES if what in found}


def _called(counts: CountTable, free: Sequence[str]) -> str:
    """Return the SQL expression of a column, or of two together, that names the grades, or "".

    ``counts`` is the open table (rows as a lazy polars frame) of grades. Candidates are its columns
    ``free``, which no role uses. The first column of text that differs in all rows is taken, or of
    whole numbers that increase, or two columns that differ together, else the first column of text.
    """
    kinds = counts.table.schema
    text = [name for name in free if str(kinds[name]) == "String"]
    whole = [name for name in free if kinds[name].is_integer()]
    frame = counts.table.frame.select([*text, *whole]).collect()
    different = [n for n in text if frame[n].n_unique() == frame.height]
    ascending = [n for n in whole if frame.height > 1 and (frame[n].diff().drop_nulls() > 0).all()]
    if listed := different or ascending:
        return quoted(listed[0])
    for pair in combinations([n for n in frame.columns if n in text or n in whole], 2):
        if frame.select(pair).n_unique() == frame.height:
            one, two = (f"CAST({quoted(name)} AS VARCHAR)" for name in pair)
            return f"CONCAT({one}, ' ', {two})"
    return quoted(text[0]) if text else ""


def _parts(
    counts: CountTable, found: Mapping[str, Term], names: Sequence[str], where: str | None
) -> list[Reading]:
    """Return readings that keep the rows of one value of a column, such as ``cohort = 2021``.

    Each sets ``where``. ``counts`` is the open table (rows as a lazy polars frame) of grades, and
    ``names`` are the grades of its rows. No grade has two rows with the same value of that column,
    which no role in ``found`` (expressions by role, such as "n") uses, and which has two to six
    values. [] if no column or several ones are like that, or if rows are selected by ``where``
    already.
    """
    frame = counts.table.frame.collect()
    if where is not None or frame.height != len(names):
        return []
    used = {root for term in found.values() for root in term.roots}
    parts = []
    for column in (frame[name] for name in frame.columns if name not in used):
        values = column.drop_nulls().unique().sort()
        plain = column.dtype.is_integer() or str(column.dtype) == "String"
        if not plain or column.null_count() or not 2 <= len(values) <= LISTED_READINGS:
            continue
        if len({*zip(names, column.to_list(), strict=True)}) == len(names):
            parts.append((column, values))
    if len(parts) != 1:
        return []
    column, values = parts[0]
    return [
        Reading({"where": f"{quoted(column.name)} = {literal(value, column)}"},
                f"the rows of {column.name} {value} are meant")
        for value in values
    ]  # fmt: skip


def _names(cells: EvaluatedCells) -> list[str]:
    """Return the names of the grades, G texts, by default their numbers from 1.

    ``cells`` are the evaluated cells (in a frame with columns such as ``n:0``) of the table.
    InvalidPredictionsError for a name that is missing.
    """
    if "names:0" not in cells.frame.columns:
        return [str(k) for k in range(1, cells.frame.height + 1)]
    column = cells.frame["names:0"]
    words = words_of(column)
    listed = (column if words is None else words).to_list()
    if None in listed:
        raise InvalidPredictionsError(
            f"{cells.name('names:0')} has no value in {cells.nth(listed.index(None))}"
        )
    return [str(name) for name in listed]


def _counts(cells: EvaluatedCells, what: str) -> IntArray:
    """Return the counts of one role, ``what``, such as "n" or "events", integers (G,).

    ``cells`` are the evaluated cells (in a frame with columns such as ``n:0``) of a table of G
    grades. InvalidPredictionsError for gaps, fractions and negative numbers.
    """
    column = f"{what}:0"
    _refuse_gaps(cells, column, cells.frame[column].is_null().to_numpy())
    numbers = cells.numbers(column)
    if numbers.dtype.kind == "f":
        _refuse_gaps(cells, column, np.isnan(numbers))
    wrong = (numbers < 0) | (numbers % 1 != 0) | (numbers > MOST_COUNTED)
    for row in np.flatnonzero(wrong)[:1]:
        raise InvalidPredictionsError(
            f"{cells.name(column)} is {numbers[row]:.16g} in {cells.nth(int(row))}; these are "
            "whole numbers ≥ 0"
        )
    return numbers.astype(np.int64)


def _refuse_gaps(cells: EvaluatedCells, column: str, gaps: AnyArray) -> None:
    """Raise InvalidPredictionsError for a missing cell of a column; ``gaps`` (G,) marks them.

    ``column`` is "n:0" or the like, and ``cells`` are the evaluated cells (in a frame with columns
    such as ``n:0``) of a table of G grades.
    """
    for row in np.flatnonzero(gaps)[:1]:
        raise InvalidPredictionsError(
            f"{cells.name(column)} has no value in {cells.nth(int(row))}: complete the row, or "
            "keep the others",
            [Reading({"where": f"{cells.sql(column)} IS NOT NULL"})],
        )


def _sums_of_others(
    cells: EvaluatedCells, names: Sequence[str], n: IntArray, events: IntArray, as_is: bool
) -> AnyArray:
    """Return whether each grade is a total, booleans (G,).

    A total is the sum of all others in both counts, ``n`` and ``events`` (G,), and has no
    probability; ``cells`` are the evaluated cells (in a frame with columns such as ``n:0``) of the
    table. DoubtfulInputError for a total with a probability, unless ``as_is``; ``names`` are the
    names of the grades for the message.
    """
    sums = (2 * n == n.sum()) & (2 * events == events.sum()) & (len(n) > 2) & bool(events.any())
    lacking = cells.frame["probability:0"].is_null().to_numpy()
    if cells.frame["probability:0"].dtype.is_float():
        lacking = lacking | cells.frame["probability:0"].is_nan().fill_null(False).to_numpy()
    for row in np.flatnonzero(sums & ~lacking)[: not as_is]:
        readings = []
        if "names:0" in cells.frame.columns:
            literal = names[row].replace("'", "''")
            literal = f"'{literal}'" if str(cells.frame["names:0"].dtype) == "String" else literal
            readings = [Reading({"where": f"{cells.sql('names:0')} <> {literal}"})]
        raise DoubtfulInputError(
            f"{cells.nth(int(row))}, {names[row]}, has as many rows and events as all others "
            "together, like a row of totals",
            readings,
        )
    return np.asarray(sums & lacking)


def _check_counts(cells: EvaluatedCells, n: IntArray, events: IntArray) -> None:
    """Raise InvalidPredictionsError for more events than rows, and for a table without rows.

    ``n`` and ``events`` (G,) are the counts of G grades, and ``cells`` the evaluated cells (in a
    frame with columns such as ``n:0``) of the table, for the message.
    """
    for row in np.flatnonzero(events > n)[:1]:
        raise InvalidPredictionsError(
            f"{cells.name('events:0')} is {events[row]} in {cells.nth(int(row))}, more than the "
            f"{n[row]} rows of its grade"
        )
    if not n.any():
        raise InvalidPredictionsError(
            f"{cells.name('n:0')} is 0 in every row: there is nothing to test"
        )


def _probabilities(cells: EvaluatedCells, sums_up: AnyArray) -> FloatArray:
    """Return the probability of each grade (G,), 0 for rows that are totals.

    ``cells`` are the evaluated cells (in a frame with columns such as ``n:0``) of a table of G
    grades, and ``sums_up`` (G,) marks the totals, which have none. InvalidPredictionsError for a
    missing cell or a number outside [0, 1], with the expression that converts percentages;
    DoubtfulInputError if the column's name says percent, but no number is above 1.
    """
    import polars as pl

    column = "probability:0"
    gaps = cells.frame[column].is_null().to_numpy()
    if cells.frame[column].dtype.is_float():
        gaps = gaps | cells.frame[column].is_nan().fill_null(False).to_numpy()
    _refuse_gaps(cells, column, gaps & ~sums_up)
    text = cells.frame[column].dtype == pl.String
    signed = text and bool(cells.frame[column].str.contains("%", literal=True).any())
    p = cells.numbers(column)
    kind = str(p.dtype)
    p = np.where(sums_up, 0.0, p.astype(np.float64))
    sql, name = cells.sql(column), cells.name(column)
    in_percent = Reading({"probability": f"{sql} / 100"}, "these are percents")
    for row in np.flatnonzero((p < 0.0) | (p > 1.0))[:1]:
        units = cells.is_plain(column) and bool(1.0 < p.max() <= 100.0 and p.min() >= 0.0)
        raise InvalidPredictionsError(
            f"{name} is {p[row]:.9g} in {cells.nth(int(row))}: a probability lies in [0, 1]",
            [Reading(in_percent.options, "" if p.max() > 10.0 else in_percent.when)] * units,
        )
    if not signed and cells.is_plain(column) and says_percent(name) and p.any():
        raise DoubtfulInputError(
            f"{name} could be percents, as its name says, or fractions, as none is above 1",
            [in_percent, Reading({"probability": f"{sql} * 1"}, "these are fractions")],
        )
    return meant(p, kind)[0]


# ------------------------------------------------------------------------------
# What is suggested where names say nothing.


def _lacking(
    counts: CountTable, found: Mapping[str, Term], missing: Sequence[str]
) -> InvalidPredictionsError:
    """Return the error for a table of counts whose columns cannot be recognised, to be raised.

    ``counts`` is the open table (rows as a lazy polars frame), ``found`` has the expressions of the
    roles that are known, by role, and ``missing`` lists the other roles, such as "events". The
    error has readings (options to set) that are likely, or the command for a table with one row for
    each outcome.
    """
    frame = counts.table.frame.head(10_000).collect()
    if "events" in missing:
        outcomes = [n for n in frame.columns if key(n) in LABELS and _are_outcomes(frame[n])]
        if outcomes or frame.height > MOST_GRADES:
            shown = outcomes or [n for n in frame.columns if _are_outcomes(frame[n])]
            if shown:
                left_out = dict.fromkeys(GRADE_NAMES)
                return InvalidPredictionsError(
                    f"each row is one outcome ({' or '.join(shown)}), not a grade: use audit",
                    [Reading(left_out, verb="audit")],
                )
    return InvalidPredictionsError(
        f"caltest does not recognise a column name as {' or '.join(missing)}; the columns are "
        f"{described(frame)}",
        likely_grades(_without_groups(frame), found, missing),
    )


def _are_outcomes(cells: pl.Series) -> bool:
    return bool(cells.dtype.is_numeric() and len(cells) and ((cells == 0) | (cells == 1)).all())


# ------------------------------------------------------------------------------
# Tables of forecasts that are revised: one row a forecast, with its question and time.


@dataclass(frozen=True)
class ForecastRows:
    """Columns of shape (n,) of a table of forecasts, and a note that says how it was read.

    ``ids`` are the questions, ``times`` when they were forecast, ``probs`` the probabilities of the
    event; ``outcomes`` and ``groups`` are None where no column was named for them.
    """

    ids: AnyArray
    times: AnyArray
    probs: AnyArray
    outcomes: AnyArray | None
    groups: AnyArray | None
    note: str


def read_forecasts(
    source: object,
    *,
    ids: str,
    time: str,
    probs: str | None = None,
    label: str | None = None,
    groups: str | None = None,
    where: str | None = None,
    sheet: str | None = None,
    decimal: Literal[".", ","] | None = None,
    as_is: bool = False,
) -> ForecastRows:
    """Read forecasts of questions over time from a file or a table.

    ``source`` is a path or a table; ``sheet`` is the sheet of an Excel file, and ``decimal`` the
    decimal mark of a text file, None if its first rows tell. ``ids`` is the question of a row,
    ``time`` when it was forecast, ``label`` the outcome and ``groups`` the group of the question;
    each is a column or an expression in SQL, and so are ``probs``, the probability of the event,
    and the condition ``where``. Without ``probs`` the one column is read whose name is a usual one
    for probabilities, such as "p". The result, :class:`ForecastRows`, has these columns as arrays
    (n,), None where none was named, and a note. InvalidPredictionsError where none or several fit,
    and where a question or time is missing. DoubtfulInputError for numbers called lead times, and
    for numbers whose mark may be of decimals or of thousands, unless ``as_is``.
    """
    import polars as pl

    with count_table(source, sheet, decimal) as table:
        wanted = {
            "ids": ids,
            "time": time,
            "probs": probs or _probability(table, (ids, time, label, groups)),
        }
        wanted |= {"label": label} if label else {}
        wanted |= {"groups": groups} if groups else {}
        found: dict[str, Term] = {}
        for what, expression in wanted.items():
            listed = terms_of(expression, table.table.schema)
            if len(listed) != 1:
                raise InvalidPredictionsError(f"{what} is one column or expression: {expression}")
            found[what] = listed[0]
        if not as_is:
            refuse_unclear_numbers(table.table, {what: [term] for what, term in found.items()})
        frame = table.cells(found, where).frame
        columns = {what: frame[f"{what}:0"] for what in found}
        for what in ("ids", "time", "groups"):
            column = columns.get(what)
            if column is not None and column.null_count():
                row = int(column.is_null().arg_max() or 0)
                raise InvalidPredictionsError(
                    f"{what}: row {row + 1} of those that are read is empty, and each needs one",
                    [Reading({"where": f"{quoted(found[what].name)} IS NOT NULL"})]
                    if found[what].column
                    else [],
                )
        arrays = {what: column.to_numpy() for what, column in columns.items()}
        when = found["time"]
        if when.column and columns["time"].dtype.is_numeric() and not as_is and len(frame):
            times = columns["time"].cast(pl.Float64).to_numpy()
            refuse_leads(when.name, times, f"-{quoted(when.name)}")
    parts = [f"{what} from {term.name}" for what, term in found.items()]
    kept = "" if where is None else f", those where {where}"
    return ForecastRows(
        arrays["ids"],
        arrays["time"],
        arrays["probs"],
        arrays.get("label"),
        arrays.get("groups"),
        f"read {len(frame)} forecasts{kept}: {', '.join(parts)}",
    )


def _probability(table: CountTable, taken: Sequence[str | None]) -> str:
    """Return the one column that is known as a probability by its name, such as "p", as SQL.

    ``table`` is the open table (rows as a lazy polars frame). InvalidPredictionsError if there is
    none, or more than one.
    """
    fit = [name for name in table.names if key(name) in PROBABILITIES]
    if len(fit) == 1:
        return quoted(fit[0])
    if fit:
        raise InvalidPredictionsError(
            f"the forecast could be {' or '.join(fit)}",
            [Reading({"probs": quoted(name)}, f"{name} is meant") for name in fit],
        )
    head = table.table.frame.head(10_000).collect()
    likely = []
    free = [n for n in table.names if n not in taken and quoted(n) not in taken]
    for name in (n for n in free if head[n].dtype.is_numeric()):
        cells = head[name].drop_nulls()
        low, high = (float(cells.min() or 0.0), float(cells.max() or 0.0)) if len(cells) else (0, 0)  # type: ignore[arg-type]
        if low >= 0.0 and cells.n_unique() > 2 and high <= 100.0:
            percent = high > 1.0
            likely.append(
                Reading(
                    {"probs": f"{quoted(name)} / 100" if percent else quoted(name)},
                    f"{name} is the forecast" + " in percent" * percent,
                )
            )
    raise InvalidPredictionsError(
        f"no column is called as a probability, among {', '.join(table.names)}: name it",
        likely or [Reading({"probs": "COLUMN"})],
    )
