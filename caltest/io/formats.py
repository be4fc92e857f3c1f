"""File formats: one function a format, from bytes to columns that can be asked for by name.

Whatever a file holds besides the columns asked for is neither converted nor checked.
"""

from __future__ import annotations

import json
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import chain, takewhile
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.lib.npyio import NpzFile

from caltest._base.containers import as_column
from caltest._base.progress import progress
from caltest._base.written import several
from caltest.errors import InvalidPredictionsError
from caltest.io.opening import Opened, imported
from caltest.io.text import DECIMAL, read_delimited, typed
from caltest.tables.source import Column, Source, is_number

if TYPE_CHECKING:
    from pyarrow import ChunkedArray


def _read_json(opened: Opened) -> Source:
    text = opened.file.read().decode("utf-8-sig")
    try:
        content, entry = _parsed(text), "entry"
    except json.JSONDecodeError:
        content, entry = [], "line"
        with progress(len(text), "B") as done:
            for number, line in enumerate(text.split("\n"), start=1):
                content += [_parsed(line, number)] if line.strip() else []
                done(len(line) + 1)
    table = content if isinstance(content, dict) else {}
    columns = {name: cells for name, cells in table.items() if isinstance(cells, list)}
    notes: tuple[str, ...] = ()
    if len(columns) < 2:
        records = content if isinstance(content, list) else [content]
        for name, cells in columns.items():
            if cells and all(isinstance(cell, dict) for cell in cells):
                records, notes = cells, (f"rows are the objects under {name!r}",)
        for number, record in enumerate(records, start=1):
            if not isinstance(record, dict):
                raise InvalidPredictionsError(
                    f'{entry} {number} is not an object such as {{"probs": [0.2, 0.8], "label": 1}}'
                )
        names = dict.fromkeys(chain.from_iterable(records))
        columns = {name: [record.get(name) for record in records] for name in names}
    for name in [n for n, cells in columns.items() if cells and isinstance(cells[0], dict)]:
        keys = list(columns[name][0])
        if all(isinstance(cell, dict) and cell.keys() == set(keys) for cell in columns[name]):
            rows = columns.pop(name)  # {"A": 0.7, "B": 0.3} are columns of A and of B
            columns |= {f"{name}_{key}": [row[key] for row in rows] for key in keys}
    read = lambda names: [_of_objects(name, columns[name]) for name in names]  # noqa: E731
    return Source(list(columns), read, content=content, notes=notes)


def _parsed(text: str, line: int | None = None) -> Any:
    """Return what JSON says; more than one value raises ``JSONDecodeError``."""
    place = "" if line is None else f"line {line}: "
    try:
        return json.loads(text, object_pairs_hook=_object)
    except json.JSONDecodeError as error:
        if line is None and error.msg == "Extra data":
            raise
        reason = f"line {line or error.lineno} is not JSON: {error.msg}"
    except RecursionError:
        reason = f"{place}its brackets are nested too deeply"
    except ValueError as error:  # a key that is repeated, a number of thousands of digits
        reason = place + str(error).partition(";")[0]
    raise InvalidPredictionsError(reason)


def _object(pairs: list[tuple[str, object]]) -> dict[str, object]:
    record = dict(pairs)
    if len(record) < len(pairs):
        [(repeated, _)] = Counter(key for key, _ in pairs).most_common(1)
        raise InvalidPredictionsError(f"one object holds the key {repeated!r} twice")
    return record


def _of_objects(name: str, cells: Sequence[object]) -> Column:
    if any(isinstance(cell, dict) for cell in cells):
        raise InvalidPredictionsError(
            f"column {name} holds objects; write the probabilities as a list in the order of the "
            "classes, or as one column a class"
        )
    length = next((len(cell) for cell in cells if isinstance(cell, list)), None)
    if length is None:
        return np.fromiter(cells, dtype=object, count=len(cells))
    rows = [[np.nan] * length if cell is None else cell for cell in cells]
    for number, row in enumerate(rows, start=1):
        if not isinstance(row, list) or len(row) != length:
            raise InvalidPredictionsError(
                f"column {name}: row {number} does not hold {length} numbers like the first"
            )
    try:
        return np.array(rows, dtype=object).astype(np.float64)
    except (TypeError, ValueError, OverflowError):
        raise InvalidPredictionsError(
            f"column {name} holds a cell that is not a list of numbers"
        ) from None


def _read_excel(opened: Opened) -> Source:
    openpyxl = imported("openpyxl", "excel", "Excel files")
    with readable("Excel"):
        book = openpyxl.load_workbook(opened.file, read_only=True, data_only=True)
        sheets = {sheet.title: sheet.iter_rows(values_only=True) for sheet in book.worksheets}
        cells = {t: [r for r in rows if r.count(None) < len(r)] for t, rows in sheets.items()}
    filled = [title for title, rows in cells.items() if rows]
    tables = [t for t in filled if any(len(r) - r.count(None) > 1 for r in cells[t])] or filled
    if len(tables) > 1:  # others are covers, or lists of words
        tables = [t for t in tables if _holds_numbers(cells[t][_titles(cells[t]) + 1 :])] or tables
    if opened.sheet:
        tables = [opened.sheet] if opened.sheet in filled else filled
    if len(tables) != 1 or opened.sheet not in (None, *tables):
        raise InvalidPredictionsError(
            f"there are {several(len(tables), 'sheet')} with tables ({', '.join(tables)}): say "
            "which holds the rows with sheet= (--sheet)",
            [("--sheet", title) for title in tables],
        )
    (sheet,) = tables
    above = _titles(cells[sheet])
    header, *rows = cells[sheet][above:]
    notes = [f"sheet {sheet} of {', '.join(filled)}"] if len(filled) > 1 else []
    notes += [f"{several(above, 'line')} above the header left out"] if above else []
    if not rows:
        raise InvalidPredictionsError("there is a header but no rows")
    names = ["" if name is None else str(name).strip() for name in header]
    columns = dict(zip(names, zip(*rows, strict=True), strict=True))
    first = [cell for cell in rows[0] if isinstance(cell, str)]
    comma = any(map(DECIMAL.fullmatch, first))

    def read(names: Sequence[str]) -> list[Column]:
        return [_of_cells(name, columns[name], comma) for name in names]

    return Source(names, read, notes=tuple(notes))


def _titles(rows: Sequence[Sequence[object]]) -> int:
    """Return how many rows of one cell are above the header."""
    alone = (len(row) > 1 and len(row) - row.count(None) == 1 for row in rows)
    return sum(takewhile(bool, alone))


def _holds_numbers(rows: Sequence[Sequence[object]]) -> bool:
    """Say whether some column holds two numbers or more and nothing else."""
    columns = ([cell for cell in column if cell is not None] for column in zip(*rows, strict=True))
    return any(
        len(column) > 1 and all(is_number(c) or DECIMAL.fullmatch(str(c)) for c in column)
        for column in columns
    )


def _of_cells(name: str, cells: Sequence[object], comma: bool) -> Column:
    """Return a column of a sheet, of text that holds numbers as such."""
    texts = ["" if cell is None else cell for cell in cells]
    if comma and all(isinstance(text, str) for text in texts):
        return typed([str(text).strip() for text in texts], comma)
    return _of_objects(name, cells)


@contextmanager
def readable(kind: str) -> Iterator[None]:
    """Turn whatever a damaged file makes of its reader into one sentence."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    except (InvalidPredictionsError, ImportError):
        raise
    except Exception as error:
        reason = f"this is not a readable {kind} file"
        if "Object arrays" in str(error):
            reason = "it holds Python objects, which are not read for safety: save plain arrays"
        raise InvalidPredictionsError(reason) from None


def _read_arrow(opened: Opened) -> Source:
    kind = opened.format.capitalize()
    pyarrow = imported("pyarrow.parquet", "parquet", f"{kind} files")
    with readable(kind):
        if opened.format == "parquet":
            file = pyarrow.ParquetFile(opened.file)
            names, select = file.schema_arrow.names, file.read
        else:
            ipc = imported("pyarrow.ipc", "parquet", "Arrow files")
            stored = ipc.open_file if opened.file.read(6) == b"ARROW1" else ipc.open_stream
            opened.file.seek(0)
            table = stored(opened.file).read_all()
            names, select = table.column_names, table.select

    def read(names: Sequence[str]) -> list[Column]:
        with readable(kind):
            chosen = select(list(names))
            chosen.validate(full=True)  # damaged offsets would end the process
            return [of_arrow(name, chosen.column(name)) for name in names]

    return Source(names, read)


def of_arrow(name: str, column: ChunkedArray) -> Column:
    """Return a column of Arrow as an array."""
    from pyarrow import compute, types

    kind = column.type
    if types.is_floating(kind) or types.is_integer(kind):
        return column.to_numpy()
    if types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind):
        lengths = compute.min_max(compute.list_value_length(column)).as_py()
        flat = compute.list_flatten(column)
        number = types.is_floating(flat.type) or types.is_integer(flat.type)
        if number and column.null_count == 0 and lengths["min"] == lengths["max"]:
            return flat.to_numpy().reshape(len(column), -1)
    return _of_objects(name, column.to_pylist())


def _read_numpy(opened: Opened) -> Source:
    bare = "the file holds one array: name the file of the labels with label="
    bare *= opened.format == "npy"
    with readable("NumPy"):
        if opened.file.read(1) == b"\x80":
            raise ValueError("Object arrays")
        opened.file.seek(0)
        stored = np.load(opened.file, allow_pickle=False)
        names = ["probs"] if bare else list(stored)

    def read(names: Sequence[str]) -> list[Column]:
        with readable("NumPy"):
            return [as_column(stored if bare else stored[name], name) for name in names]

    if isinstance(stored, NpzFile) == bool(bare):
        raise InvalidPredictionsError(f"it does not hold {'one array' if bare else 'named arrays'}")
    return Source(names, read, bare=bare, arrays=True)


#: What reads a format.
READERS: dict[str, Callable[[Opened], Source]] = {
    "csv": read_delimited,
    "json": _read_json,
    "parquet": _read_arrow,
    "arrow": _read_arrow,
    "excel": _read_excel,
    "npz": _read_numpy,
    "npy": _read_numpy,
}
