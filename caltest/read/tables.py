"""Rows of an open table as cells of the chosen expressions: all at once, or batch by batch.

:func:`cells` evaluates the chosen expressions for a whole table, :func:`batches_of` batch by batch;
:func:`n_rows_of` makes predictions of them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import permutations
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from caltest._base.written import several
from caltest.data.questions import Column
from caltest.errors import InvalidPredictionsError, Reading
from caltest.read.contract import Chosen, Wanted
from caltest.read.expressions import (
    Term,
    bound,
    halved_limits,
    kind_of,
    quoted,
    with_column,
    written_number,
)
from caltest.read.formats import Table, retyped, unreadable
from caltest.read.values import LISTED_VALUES, EvaluatedCells

if TYPE_CHECKING:
    import polars as pl

#: Names of columns of places and of files, which no file has.
ROW_COLUMN, FILE_COLUMN = "::row", "::file"


#: Rows of a batch, at most; cells in it, where these are not too few rows.
ROWS_A_BATCH, CELLS_A_BATCH, FEWEST_A_BATCH = 2**17, 2**21, 2**14


#: Rows of a file with an index, beyond which Polars does not read ahead: it keeps up to a gigabyte.
ROWS_A_PIECE = 2**22


def outputs(table: Table, chosen: Chosen, wanted: Wanted, first: int = 1) -> pl.LazyFrame:
    """Return a lazy polars frame of the chosen expressions, in columns called ``option:k``.

    ``table`` is the open table, and ``chosen`` has the expressions by role, such as "label";
    ``label:0`` is the first expression of the label. ``wanted`` has the options of
    :func:`read_predictions`; the frame has the rows that its ``where`` keeps, with their places in
    a column ``::row`` if there is a ``where``. Rows are counted from ``first`` in messages.
    InvalidPredictionsError for text where numbers are needed.
    """
    import polars as pl

    chosen = over(table, chosen)
    refuse_words(table, chosen, first)
    frame = table.frame
    exprs = [
        term.expr.alias(f"{option}:{k}")
        for option, listed in chosen.terms.items()
        for k, term in enumerate(listed)
        if option != "where"
    ]
    if wanted.where is not None:
        frame = frame.with_row_index(ROW_COLUMN).filter(condition(chosen))
        exprs.append(pl.col(ROW_COLUMN))
    if FILE_COLUMN in frame.collect_schema():
        exprs.append(pl.col(FILE_COLUMN))
    return frame.select(exprs)


def over(table: Table, chosen: Chosen) -> Chosen:
    """Return the chosen expressions parsed anew for the columns of a table, by role.

    ``table`` is the open table (rows as a lazy polars frame), in which a column may have another
    type than where ``chosen``, the expressions by role, were parsed. Plain columns stay as they
    are.
    """
    if all(t.column is not None for listed in chosen.terms.values() for t in listed):
        return chosen
    schema = table.schema
    return replace(chosen, terms={name: bound(t, schema) for name, t in chosen.terms.items()})


def refuse_words(table: Table, chosen: Chosen, first: int = 1) -> None:
    """Raise InvalidPredictionsError for text in a column that an expression takes for numbers.

    The message names the first such row of ``table``, an open table (rows as a lazy polars frame);
    rows are counted from ``first``. ``chosen`` has the expressions by role, such as "label".
    """
    for option in ("where", *(o for o in chosen.terms if o != "where")):
        for k, term in enumerate(chosen.terms.get(option, ())):
            for name in term.written:
                _refuse_words_of(table, chosen, (option, k), name, first)


def _refuse_words_of(
    table: Table, chosen: Chosen, place: tuple[str, int], name: str, first: int
) -> None:
    """Raise InvalidPredictionsError for text in the column ``name`` that is no number.

    ``chosen`` has the expressions by role, such as "label", and ``place`` is (role, index) of the
    expression that takes the column for numbers. ``table`` is the open table (rows as a lazy polars
    frame), whose rows are counted from ``first`` in the message. The error has ways to read such
    cells: as missing, or as 0 for an outcome.
    """
    import polars as pl

    option, sql = place[0], chosen.terms[place[0]][place[1]].sql
    words = pl.col(name).str.strip_chars()
    lost = words.is_not_null() & written_number(words).is_null()
    query = table.frame.with_row_index(ROW_COLUMN)
    if option != "where" and "where" in chosen.terms:
        query = query.filter(condition(chosen))
    percent = words.str.ends_with("%")
    seen = query.select(percent.any().alias("some"), percent.all().alias("all")).collect().row(0)
    cells = query.filter(lost).select(words.alias("word"), ROW_COLUMN).collect()
    if not cells.height:
        if seen[0] and not seen[1]:
            raise InvalidPredictionsError(
                f"some numbers in {name} have percent signs and others do not: use one notation"
            )
        return
    counts = cells["word"].value_counts(sort=True)
    listed = [f"{word!r} ({several(n, 'row')})" for word, n in counts.head(LISTED_VALUES).rows()]
    more = ", …" if counts.height > LISTED_VALUES else ""
    column = quoted(name)
    number = f"TRY_CAST({column} AS DOUBLE)"
    if seen[0]:
        number = f"TRY_CAST(REPLACE({column}, '%', '') AS DOUBLE) / 100"
    these = f"{counts['word'][0]!r}" if counts.height == 1 else "such a cell"
    changed = with_column(sql, name, number)
    every = [term.sql for term in chosen.terms[option]]
    every[place[1]] = changed
    unknown: dict[str, object] = {option: ", ".join(every)}
    if option != "where":
        unknown["drop_missing"] = True
    readings = [Reading(unknown, f"{these} is a missing value")]
    if option in ("label", "event", "competing"):
        zero = with_column(sql, name, f"coalesce({number}, 0)")
        readings.append(Reading({option: zero}, f"{these} counts as 0"))
    if (halved := halved_limits(column, counts["word"].to_list())) is not None and not seen[0]:
        every[place[1]] = with_column(sql, name, halved[0])
        readings.append(Reading({option: ", ".join(every)}, halved[1]))
    raise InvalidPredictionsError(
        f"{name} is {', '.join(listed)}{more}, first in row {cells[ROW_COLUMN][0] + first}, which "
        f"are not numbers, and {sql} needs numbers",
        readings,
    )


def condition(chosen: Chosen) -> pl.Expr:
    """Return the user's ``where`` as a polars expression of booleans.

    ``chosen`` has the expressions by role, such as "label", of which "where" must be one.
    """
    import polars as pl

    return chosen.terms["where"][0].expr.cast(pl.Boolean)


def cells_of(
    table: Table, chosen: Chosen, wanted: Wanted, *, frame_rows: bool = False
) -> EvaluatedCells:
    """Return the evaluated cells of all rows of a table that the user's ``where`` keeps.

    ``table`` is the open table (rows as a lazy polars frame), ``chosen`` has the expressions by
    role, such as "label", ``wanted`` the options of :func:`read_predictions`. The result holds a
    frame with columns such as ``probs:0`` and the rows' places. If text columns turn out to have
    other types than their first rows suggest, the file is read again. In messages rows are counted
    from 1, or from 0 for tables in memory (``frame_rows``). InvalidPredictionsError for a file that
    cannot be read, an expression that cannot be computed, and a table without rows.
    """
    first = 0 if frame_rows else 1
    try:
        frame = outputs(table, chosen, wanted, first).collect()
    except unreadable() as error:
        if table.text is None:
            raise _as_sentence(error, chosen, table) from None
        try:
            table = retyped(table, sorted(chosen.used))
            frame = outputs(table, chosen, wanted, first).collect()
        except unreadable() as again:
            raise _as_sentence(again, chosen, table) from None
    if not frame.height:
        where = f" where {chosen.sql('where')}" if wanted.where is not None else ""
        raise InvalidPredictionsError(f"there are no rows{where}")
    return cells(frame, chosen, wanted, first)


def cells(
    frame: pl.DataFrame, chosen: Chosen, wanted: Wanted, first: int = 1, part: bool = False
) -> EvaluatedCells:
    """Return a collected frame of evaluated expressions as :class:`EvaluatedCells`.

    ``frame`` has the columns of :func:`outputs`, such as ``probs:0``. The result holds it with the
    rows' places in the table and checks its values. ``chosen`` has the expressions by role, such as
    "label", ``wanted`` the options of :func:`read_predictions`. ``first`` is the number of the
    table's first row in messages; ``part`` says that other rows of the table are read separately.
    """
    if ROW_COLUMN in frame.columns:
        rows = frame[ROW_COLUMN].to_numpy().astype(np.int64)
        frame = frame.drop(ROW_COLUMN)
    else:
        rows = np.arange(frame.height, dtype=np.int64)
    if FILE_COLUMN in frame.columns:
        frame = frame.drop(FILE_COLUMN)
    return EvaluatedCells(chosen, wanted, frame, rows, first, part=part)


def _as_sentence(error: BaseException, chosen: Chosen, table: Table) -> InvalidPredictionsError:
    """Return a polars error as an InvalidPredictionsError of one sentence, to be raised.

    ``chosen`` has the expressions by role, such as "label". The sentence names those that cannot be
    computed for ``table``, the open table (rows as a lazy polars frame), as one of them is the
    likely cause; if all are plain columns, it says that the file cannot be read.
    """
    computed = [t for listed in chosen.terms.values() for t in listed if t.column is None]
    reason = str(error).partition("\n")[0][:200]
    if "expected" in reason and "rows" in reason:
        reason = f"a quotation mark opens and is not closed ({reason})"
    if not computed:
        return InvalidPredictionsError(f"this is not a readable file: {reason}")
    kinds = table.schema
    failed = [t for t in computed if not _is_computed(t, table)]
    for option, listed in chosen.terms.items():
        for term in (t for t in listed if t in failed):
            if (refused := _of_cast_dates(term, option, table)) is not None:
                return refused
    computed = failed or computed
    what = " or ".join(t.sql for t in computed)
    lost = re.search(r"failed in column '(.*?)' for .*?values: \[(.*?)[\],]", str(error))
    if lost and len(failed) == 1:
        return InvalidPredictionsError(
            f"{what} cannot be computed: {lost[1]} is {lost[2]}, which cannot be converted so"
        )
    text = [n for t in computed for n in t.roots if str(kinds.get(n)) == "String"]
    if text:
        return InvalidPredictionsError(
            f"{what} cannot be computed: {text[0]} holds text where numbers are expected"
        )
    held = ", ".join(f"{n} holds {kind_of(kinds[n])}" for t in computed for n in t.roots)
    return InvalidPredictionsError(f"{what} cannot be computed: {held}")


def _is_computed(term: Term, table: Table) -> bool:
    """Return whether an expression can be computed for all rows of a table by itself.

    ``term`` is the expression, as SQL and as polars has it; ``table`` is the open table (rows as a
    lazy polars frame), which is read for it.
    """
    try:
        table.frame.select(term.expr).collect()
    except unreadable():
        return False
    return True


#: Conversion of a column to a date, which polars does for text by a format only.
CAST_DATE = re.compile(
    r"(?:TRY_)?CAST\(\s*(\w+|\"[^\"]+\")\s+AS\s+(?:DATE|TIMESTAMP|DATETIME)\s*\)|(\w+|\"[^\"]+\")::date\b",
    re.IGNORECASE,
)


def _of_cast_dates(term: Term, option: str, table: Table) -> InvalidPredictionsError | None:
    """Return the error for text that an expression converts to dates without a format.

    ``term`` is the expression of ``option``, such as "time", and ``table`` the open table (rows as
    a lazy polars frame). The error, to be raised, suggests the expression with formats, where the
    cells show a single one. None if the expression has no such conversion.
    """
    import polars as pl

    formats, sql = dict[str, str](), term.sql
    for found in CAST_DATE.finditer(term.sql):
        name = (found[1] or found[2]).strip('"')
        if name not in term.roots or table.schema[name] != pl.String:
            continue
        cells = table.frame.select(name).collect().to_series()
        formats[name] = f"{name} is {next(iter(cells.drop_nulls()), '')!r}"
        if is_date(cells) and len(listed := _formats_of(cells)) == 1:
            sql = sql.replace(found[0], f"DATE({quoted(name)}, '{listed[0]}')")
    if not formats:
        return None
    readings = [Reading({option: sql})] if sql != term.sql else []
    return InvalidPredictionsError(
        f"{term.sql} cannot be computed: {' and '.join(formats.values())}, text that is a date by "
        "a format only, such as DATE(day, '%d.%m.%Y')",
        readings,
    )


def batches_of(
    table: Table, chosen: Chosen, wanted: Wanted, before: int = 0
) -> Iterator[EvaluatedCells]:
    """Yield evaluated cells batch by batch, with memory that does not grow with the file.

    ``table`` is the open table (rows as a lazy polars frame), ``chosen`` has the expressions by
    role, such as "label", ``wanted`` the options of :func:`read_predictions`. Each batch holds a
    frame with columns such as ``probs:0``, for at most 2¹⁷ rows. Rows are counted from ``before``,
    the number of rows read earlier. InvalidPredictionsError for a file that cannot be read.
    """
    if table.seekable:
        import polars as pl

        n = table.frame.select(pl.len()).collect().item()
        for start in range(0, n, ROWS_A_PIECE):
            piece = replace(table, frame=table.frame.slice(start, ROWS_A_PIECE), seekable=False)
            yield from batches_of(piece, chosen, wanted, before + start)
        return
    query = outputs(table, chosen, wanted)
    width = len(query.collect_schema())
    size = min(ROWS_A_BATCH, max(FEWEST_A_BATCH, CELLS_A_BATCH // max(width, 1)))
    first = before + 1
    try:
        for frame in query.collect_batches(chunk_size=size, maintain_order=True):
            if not frame.height:
                continue
            yield cells(frame, chosen, wanted, first, part=True)
            if wanted.where is None:
                first += frame.height
    except unreadable() as error:
        if table.text is None or first != before + 1:
            raise _as_sentence(error, chosen, table) from None
        try:
            again = retyped(table, sorted(chosen.used))
        except unreadable() as damage:
            raise _as_sentence(damage, chosen, table) from None
        yield from batches_of(replace(again, text=None), chosen, wanted, before)


def column_of_cells(cells: pl.Series) -> Column | None:
    """Return a column of a table as a :class:`Column`: name, values (n,) and SQL.

    Checks for misreadings take this form. Values are numbers, booleans, or, for text, dates and
    times, codes with the words they stand for. None for lists, structs and columns of other types.
    """
    import polars as pl

    name, kind = cells.name, cells.dtype
    sql = quoted(name)
    if kind == pl.Boolean and not cells.null_count():
        return Column(name, cells.to_numpy(), None, sql)
    if kind == pl.Boolean or kind.is_numeric():
        if kind.is_decimal() or cells.null_count() or kind in (pl.Int128, pl.UInt128):
            cells = cells.cast(pl.Float64)
        return Column(name, cells.to_numpy(), None, sql)
    if kind in (pl.String, pl.Categorical, pl.Enum):
        words = cells.cast(pl.String).str.strip_chars()
        levels = words.drop_nulls().unique(maintain_order=True)
        place = pl.DataFrame({"word": levels, "code": np.arange(levels.len(), dtype=np.int64)})
        coded = words.to_frame("word").join(place, on="word", how="left", maintain_order="left")
        codes = coded["code"].fill_null(-1).to_numpy()
        return Column(name, codes, tuple(levels.to_list()), sql)
    if kind.is_temporal():
        return column_of_cells(cells.cast(pl.String))
    return None


def columns_of(frame: pl.DataFrame, names: Sequence[str]) -> tuple[Column, ...]:
    """Return columns of a frame in the form that checks for misreadings take.

    Each :class:`Column` has its name and values (n,), codes with their words for text. ``names``
    are those of the columns; columns of lists and structs are left out.
    """
    found = (column_of_cells(frame[name]) for name in names)
    return tuple(column for column in found if column is not None)


#: How dates are written in text, as a pattern of the first cell and as a format.
DATE_FORMATS = (
    (r"\d{4}-\d{1,2}-\d{1,2}", "%Y-%m-%d"),
    (r"\d{4}/\d{1,2}/\d{1,2}", "%Y/%m/%d"),
    (r"\d{1,2}\.\d{1,2}\.\d{4}", "%d.%m.%Y"),
    (r"\d{1,2}-\d{1,2}-\d{4}", "%d-%m-%Y"),
    (r"\d{1,2}/\d{1,2}/\d{4}", "%d/%m/%Y"),
    (r"\d{1,2}/\d{1,2}/\d{4}", "%m/%d/%Y"),
)
#: Columns of dates that are looked at, at most, and share of rows in which the start comes first.
MOST_DATES, START_FIRST = 6, 0.99


def spans_of(frame: pl.DataFrame, names: Sequence[str]) -> tuple[Column, ...]:
    """Return the days between each two columns of dates of which one comes first.

    ``names`` are the columns of ``frame`` to look at, of type date or of text in one notation; at
    most six dates are. The start is at most the end in 99 % of the rows that have both. Each
    :class:`Column` has a name, the days (n,), NaN where a date is missing, and an SQL expression of
    them.
    """
    listed = ((name, _dates(frame[name])) for name in names)
    dates = {name: found for name, found in listed if found is not None}
    spans = []
    for start, end in permutations([*dates][:MOST_DATES], 2):
        days = dates[end][0] - dates[start][0]
        known = days.drop_nulls()
        if known.len() and (known >= 0).mean() >= START_FIRST and (known > 0).any():  # type: ignore[operator]
            sql = f"{dates[end][1]} - {dates[start][1]}"
            values = days.cast(float).fill_null(np.nan).to_numpy()
            spans.append(Column(f"the time from {start} to {end}", values, None, sql))
    return tuple(spans)


def is_date(cells: pl.Series) -> bool:
    """Return whether a column holds dates: by its type, or, for text, by its first cell.

    ``cells`` is a polars column.
    """
    if str(cells.dtype) == "Date" or str(cells.dtype).startswith("Datetime"):
        return True
    if str(cells.dtype) != "String":
        return False
    first = next(iter(cells.drop_nulls().head(1)), "")
    return any(re.fullmatch(pattern, first.strip()) for pattern, _ in DATE_FORMATS)


def _dates(cells: pl.Series) -> tuple[pl.Series, str] | None:
    """Return (days, SQL) of a column of dates; None for other columns.

    ``cells`` is a polars column. The days (n,) are whole numbers since 1970, missing where the date
    is, and the text is their SQL expression. Text in which days and months cannot be told apart is
    no date.
    """
    import polars as pl

    if not is_date(cells):
        return None
    sql = quoted(cells.name)
    if cells.dtype != pl.String:
        plain = sql if cells.dtype == pl.Date else f"CAST({sql} AS DATE)"
        return cells.cast(pl.Date).cast(pl.Int32), f"CAST({plain} AS INT)"
    listed = _formats_of(cells)
    if len(listed) != 1:
        return None
    days = cells.str.to_date(listed[0], strict=False).cast(pl.Int32)
    return days, f"CAST(DATE({sql}, '{listed[0]}') AS INT)"


def _formats_of(cells: pl.Series) -> list[str]:
    """Return the formats, such as "%d.%m.%Y", in which all words of a text column are dates."""
    formats = dict.fromkeys(written for _, written in DATE_FORMATS)
    return [
        written
        for written in formats
        if cells.str.to_date(written, strict=False).null_count() == cells.null_count()
    ]


def n_rows_of(parts: Sequence[Path]) -> int | None:
    """Return the total number of rows of Parquet files, from their metadata.

    ``parts`` are the files. None if one of them has another format or is damaged.
    """
    import polars as pl

    if any(part.suffix.lower() != ".parquet" for part in parts):
        return None
    try:
        return sum(pl.scan_parquet(p).select(pl.len()).collect().item() for p in parts)
    except (pl.exceptions.PolarsError, OSError):  # a damaged part is named when its turn comes
        return None
