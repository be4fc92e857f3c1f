"""Large files as tables of some rows after the other."""

from __future__ import annotations

from codecs import getincrementaldecoder
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from caltest.errors import InvalidPredictionsError
from caltest.read.formats import DECIMAL, ENDINGS, imported, of_arrow
from caltest.read.source import MISSING, Column, listing

if TYPE_CHECKING:
    from pyarrow import ChunkedArray, RecordBatch, Schema, Table
    from pyarrow.csv import CSVStreamingReader


#: Rows of a batch, at most; cells in it, where these are not too few rows; bytes of one of text.
ROWS, CELLS, FEW, BYTES = 2**16, 2**21, 2**14, 2**24


#: Decimals of numbers of 32 and 16 bits that are read as they were written.
DECIMALS = {"float32": 1e6, "float16": 1e3}


def kind_of(part: Path) -> str | None:
    """Return the format of a file, None where it is not known or packed."""
    suffixes = [s.lower() for s in part.suffixes]
    packed = suffixes[-1:] == [".gz"]
    ending = suffixes[-2] if packed and len(suffixes) > 1 else suffixes[-1] if suffixes else ""
    kind = next((name for name, endings in ENDINGS.items() if ending in endings), None)
    return None if packed and kind != "csv" else kind


def rows_of(parts: list[Path]) -> int | None:
    """Return the number of rows, where all files say it."""
    if any(kind_of(part) != "parquet" for part in parts):
        return None
    parquet = imported("pyarrow.parquet", "parquet", "Parquet files")
    try:
        return sum(parquet.read_metadata(part).num_rows for part in parts)
    except Exception:  # a damaged part is named when its turn comes
        return None


def batches_of(part: Path, kind: str, columns: list[str] | None) -> Iterator[Table]:
    """Return tables of some columns, or of all."""
    if part.stat().st_size == 0:
        raise InvalidPredictionsError("the file is empty, without even a header")
    try:
        if kind == "csv":
            return _of_text(part, columns)
        dataset = imported("pyarrow.dataset", "parquet", "large files")
        form = "ipc"
        if kind == "parquet":  # without reading ahead whole files
            lean = dataset.ParquetFragmentScanOptions(pre_buffer=False, use_buffered_stream=True)
            form = dataset.ParquetFileFormat(default_fragment_scan_options=lean)
        opened = dataset.dataset(part, format=form)
        _refuse_missing(columns, opened.schema.names)
        rows = _rows(opened.schema, columns)
        ahead = {"batch_readahead": 2, "fragment_readahead": 1, "batch_size": rows}
        return _readable(opened.to_batches(columns=columns, **ahead), rows)
    except (InvalidPredictionsError, ImportError):
        raise
    except Exception:  # whatever a damaged file makes of its reader
        raise InvalidPredictionsError("this is not a readable file") from None


def _rows(schema: Schema, columns: list[str] | None) -> int:
    """Return how many rows go into a batch: fewer of many columns, or of lists."""
    kinds = [schema.field(name).type for name in columns or schema.names]
    width = sum(1000 if kind.num_fields else 1 for kind in kinds)
    return min(ROWS, max(FEW, CELLS // max(width, 1)))


def _refuse_missing(columns: list[str] | None, names: list[str]) -> None:
    if missing := set(columns or ()) - set(names):
        raise InvalidPredictionsError(
            f"there is no column {min(missing)!r} among {listing(names)}, and the first part has it"
        )


def _of_text(part: Path, columns: list[str] | None) -> Iterator[Table]:
    csv = imported("pyarrow.csv", "parquet", "large text files")
    from pyarrow import float64, input_stream, types

    with input_stream(part) as file:
        head = file.read(2**16)
    try:
        encoding = "utf-8"
        getincrementaldecoder(encoding)().decode(head)  # which may end within a letter
    except UnicodeDecodeError:
        encoding = "cp1252"  # of Windows
    header, _, rows = head.decode(encoding, "replace").partition("\n")
    delimiter = max(",;\t|", key=header.count)
    comma = delimiter != "," and any(
        map(DECIMAL.fullmatch, rows.partition("\n")[0].split(delimiter))
    )
    nulls = [form for word in MISSING for form in (word, word.upper(), word.title(), "NaN")]

    def opened(**conversion: object) -> CSVStreamingReader:
        return csv.open_csv(
            part,
            csv.ReadOptions(block_size=BYTES, encoding=encoding),
            csv.ParseOptions(delimiter=delimiter),
            csv.ConvertOptions(
                null_values=nulls,
                strings_can_be_null=True,
                decimal_point="," if comma else ".",
                **conversion,
            ),
        )

    schema = opened().schema  # whole numbers at the beginning may be followed by others
    _refuse_missing(columns, schema.names)
    numbers = [f.name for f in schema if types.is_integer(f.type) or types.is_null(f.type)]
    read = opened(include_columns=columns, column_types=dict.fromkeys(numbers, float64()))
    return _readable(read, _rows(schema, columns))


def _readable(batches: Iterable[RecordBatch], enough: int) -> Iterator[Table]:
    """Yield tables of enough rows, also of small batches."""
    pyarrow = imported("pyarrow", "parquet", "large files")
    iterator, waiting, rows = iter(batches), [], 0
    while True:
        try:
            batch = next(iterator, None)
            if batch is not None:
                batch.validate(full=True)  # damaged offsets would end the process
        except Exception as error:
            reason = str(error).splitlines()[0][:200]
            reason += "; save text in UTF-8" * ("UTF8" in reason)
            raise InvalidPredictionsError(f"this is not a readable file: {reason}") from None
        waiting += [] if batch is None else [batch]
        rows += 0 if batch is None else batch.num_rows
        if rows >= enough or (batch is None and rows):
            yield pyarrow.Table.from_batches(waiting)
            waiting, rows = [], 0
        if batch is None:
            return


def column(name: str, values: ChunkedArray) -> Column:
    """Return a column; numbers of few bits as the decimals that they stand for."""
    column = of_arrow(name, values)
    tens = DECIMALS.get(str(column.dtype))
    if tens is None:
        return column
    exact = column.astype(np.float64)
    decimal = np.rint(exact * tens) / tens
    return np.where(decimal.astype(column.dtype) == column, decimal, exact)
