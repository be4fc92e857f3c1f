"""Rows of an open table as cells of the chosen expressions: all at once, or batch by batch."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from caltest.data.questions import Column
from caltest.errors import InvalidPredictionsError
from caltest.read.contract import Chosen, Wanted
from caltest.read.expressions import quoted
from caltest.read.formats import Table, retyped, unreadable
from caltest.read.values import Cells

if TYPE_CHECKING:
    import polars as pl

#: Names of columns of places and of files, which no file has.
ROW, FILE = "::row", "::file"


#: Rows of a batch, at most; cells in it, where these are not too few rows.
ROWS, CELLS, FEW = 2**16, 2**21, 2**14


def outputs(table: Table, chosen: Chosen, wanted: Wanted) -> pl.LazyFrame:
    """Return the chosen expressions as columns ``option:k``, of the rows that ``where`` keeps."""
    import polars as pl

    frame = table.frame
    exprs = [
        term.expr.alias(f"{option}:{k}")
        for option, listed in chosen.terms.items()
        for k, term in enumerate(listed)
        if option != "where"
    ]
    if wanted.where is not None:
        frame = frame.with_row_index(ROW).filter(condition(chosen))
        exprs.append(pl.col(ROW))
    if FILE in frame.collect_schema():
        exprs.append(pl.col(FILE))
    return frame.select(exprs)


def condition(chosen: Chosen) -> pl.Expr:
    """Return the expression of ``where``, of booleans or 0 and 1."""
    import polars as pl

    return chosen.terms["where"][0].expr.cast(pl.Boolean)


def cells_of(table: Table, chosen: Chosen, wanted: Wanted, *, frame_rows: bool = False) -> Cells:
    """Return all rows; where text has misled about types, it is read once more.

    Rows are counted from 1, of tables in memory (``frame_rows``) from 0.
    """
    try:
        frame = outputs(table, chosen, wanted).collect()
    except unreadable() as error:
        if table.text is None:
            raise _as_sentence(error, chosen) from None
        table = retyped(table, sorted(chosen.used))
        try:
            frame = outputs(table, chosen, wanted).collect()
        except unreadable() as again:
            raise _as_sentence(again, chosen, table) from None
    if not frame.height:
        where = f" where {chosen.sql('where')}" if wanted.where is not None else ""
        raise InvalidPredictionsError(f"there are no rows{where}")
    return cells(frame, chosen, wanted, first=0 if frame_rows else 1)


def cells(
    frame: pl.DataFrame, chosen: Chosen, wanted: Wanted, first: int = 1, part: bool = False
) -> Cells:
    """Return cells of a frame with the columns of :func:`outputs`."""
    if ROW in frame.columns:
        rows = frame[ROW].to_numpy().astype(np.int64)
        frame = frame.drop(ROW)
    else:
        rows = np.arange(frame.height, dtype=np.int64)
    if FILE in frame.columns:
        frame = frame.drop(FILE)
    return Cells(chosen, wanted, frame, rows, first, part=part)


def _as_sentence(
    error: BaseException, chosen: Chosen, table: Table | None = None
) -> InvalidPredictionsError:
    """Return what polars refuses as one sentence with the expressions that are not plain names."""
    computed = [t for listed in chosen.terms.values() for t in listed if t.column is None]
    reason = str(error).partition("\n")[0][:200]
    if "expected" in reason and "rows" in reason:
        reason = f"a quotation mark opens and is not closed ({reason})"
    if not computed:
        return InvalidPredictionsError(f"this is not a readable file: {reason}")
    kinds = {} if table is None else table.schema
    text = [n for t in computed for n in t.roots if str(kinds.get(n)) == "String"]
    of = f"; {text[0]} holds text" if text else ""
    return InvalidPredictionsError(
        f"{' or '.join(t.sql for t in computed)} cannot be computed: {reason}{of}"
    )


def batches_of(table: Table, chosen: Chosen, wanted: Wanted, before: int = 0) -> Iterator[Cells]:
    """Yield cells of some rows after the other; memory does not grow with the file.

    Rows are counted from ``before``, those that were read before.
    """
    query = outputs(table, chosen, wanted)
    width = len(query.collect_schema())
    size = min(ROWS, max(FEW, CELLS // max(width, 1)))
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
            raise _as_sentence(error, chosen) from None
        again = retyped(table, sorted(chosen.used))
        yield from batches_of(replace(again, text=None), chosen, wanted, before)


def column_of_cells(cells: pl.Series) -> Column | None:
    """Return a column that nobody named as guards take it; None for lists, dates and the like."""
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
    """Return columns that nobody named as guards take them."""
    found = (column_of_cells(frame[name]) for name in names)
    return tuple(column for column in found if column is not None)


def rows_of(parts: Sequence[Path]) -> int | None:
    """Return the number of rows of Parquet files, None for others."""
    import polars as pl

    if any(part.suffix.lower() != ".parquet" for part in parts):
        return None
    try:
        return sum(pl.scan_parquet(p).select(pl.len()).collect().item() for p in parts)
    except (pl.exceptions.PolarsError, OSError):  # a damaged part is named when its turn comes
        return None
