"""File formats: one function a format, from bytes to columns that can be asked for by name.

Whatever a file holds besides the columns asked for is neither converted nor checked.
"""

from __future__ import annotations

import csv
import json
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from io import BytesIO, TextIOWrapper
from itertools import chain, islice
from typing import Any

import numpy as np
from numpy.lib.npyio import NpzFile
from numpy.typing import NDArray

from caltest._base.progress import progress
from caltest.errors import InvalidPredictionsError
from caltest.io.opening import Opened, imported

Column = NDArray[Any]
#: Cells that say that nothing is known, in lower case.
MISSING = ("", "na", "n/a", "nan", "null", "none")


@dataclass(frozen=True)
class Source:
    """A file whose columns can be asked for by name.

    Attributes
    ----------
    names : list of str
        The columns, in the order of the file.
    read : callable
        Names to columns: text stays text, a column of lists becomes two-dimensional.
    bare : str
        What to say of one array without names, whose labels must be in a file of their own.
    content : object
        What JSON holds, before it is made into columns.
    known : dict
        What the format says of the columns: ``probs``, ``label``, ``ids``.
    notes : tuple of str
        How the columns were made.
    """

    names: list[str]
    read: Callable[[Sequence[str]], list[Column]]
    bare: str = ""
    content: Any = None
    known: dict[str, Any] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if len(set(self.names)) < len(self.names):
            for repeated in (name for name in self.names if name and self.names.count(name) > 1):
                raise InvalidPredictionsError(f"the file names the column {repeated!r} twice")


# --- text with delimiters ------------------------------------------------------------------------


@dataclass(frozen=True)
class _Text:
    """Delimited text, the first row that counts, and the lines before it."""

    data: bytes
    delimiter: str
    first: list[str]
    skipped: int


def _read_delimited(opened: Opened) -> Source:
    data = opened.file.read().removeprefix(b"\xef\xbb\xbf")
    if b"\0" in data:
        line = data.count(b"\n", 0, data.index(b"\0")) + 1
        raise InvalidPredictionsError(
            f"line {line} holds a NUL byte: this is not a text file in UTF-8"
        )
    head = data[: 1 << 20].lstrip().partition(b"\n")[0]
    delimiter = max(",;\t", key=lambda mark: head.count(mark.encode()))
    delimiter = delimiter if delimiter.encode() in head else " "
    (line, header), (_, first) = islice(chain(_rows(data, delimiter), [(0, [])] * 2), 2)
    names = [name.strip() for name in header]
    "".join(names).encode()  # fails where the bytes were not UTF-8
    if names and all(is_number(name) for name in names):
        text, all_columns = _Text(data, delimiter, header, 0), range(len(names))
        bare = (
            "the file begins with numbers: add a header line that names the columns, such as "
            "p_0,p_1,label, or name the file of the labels with label= (--label)"
        )
        table = lambda _: [np.column_stack(_columns(text, all_columns))]  # noqa: E731
        return Source(["probs"], table, bare=bare)
    if not first:
        raise InvalidPredictionsError("there is a header but no rows")
    text, place = _Text(data, delimiter, first, line), {name: j for j, name in enumerate(names)}
    return Source(names, lambda wanted: _columns(text, [place[name] for name in wanted]))


def _rows(data: bytes, delimiter: str) -> Iterator[tuple[int, list[str]]]:
    """Yield header and rows that are not blank, all of one length, with the lines they end on."""
    csv.field_size_limit(2**31 - 1)  # texts of any length stand beside predictions
    # columns that nobody asks for may be in any encoding
    file = TextIOWrapper(BytesIO(data), "utf-8", errors="surrogateescape", newline="")
    strict = data.count(b'"') % 2 == 1  # a quote that stays open would swallow rows
    reader = csv.reader(file, delimiter=delimiter, strict=strict)
    width = 0
    try:
        for row in reader:
            width = width or len(row)
            if row and len(row) == width:
                yield reader.line_num, row
            elif any(cell.strip() for cell in row):
                raise InvalidPredictionsError(
                    f"line {reader.line_num} has {len(row)} cells, the header {width}"
                )
    except csv.Error as error:
        raise InvalidPredictionsError(f"line {reader.line_num}: {error}") from None


def _columns(text: _Text, wanted: Sequence[int]) -> list[Column]:
    """Read columns in one pass, by compiled code where that finds nothing wrong."""
    try:
        return _fast(text, wanted)
    except (ValueError, ImportError):
        cells: list[list[str]] = [[] for _ in wanted]
    with progress(text.data.count(b"\n"), "row") as done:
        for line, row in _rows(text.data, text.delimiter):
            done(1)
            if line > text.skipped:
                for column, j in zip(cells, wanted, strict=True):
                    column.append(row[j].strip())
    "".join(chain.from_iterable(cells)).encode()  # fails where the bytes were not UTF-8
    return [_typed(column) for column in cells]


def _typed(cells: list[str]) -> Column:
    try:
        return np.array([np.nan if c.lower() in MISSING else float(c) for c in cells])
    except ValueError:
        return np.array(cells, dtype=object)


def _fast(text: _Text, wanted: Sequence[int]) -> list[Column]:
    """Read numbers where the first cell is one, and text, or raise what the reader raises."""
    body = 0
    for _ in range(text.skipped):
        body = text.data.find(b"\n", body) + 1
    quotes = text.data.count(b'"', body)
    if quotes % 2:
        raise ValueError("a quote stays open")
    known = [is_number(cell) or cell.strip().lower() in MISSING for cell in text.first]
    words = [j for j in wanted if not known[j]]
    try:
        pyarrow = imported("pyarrow.csv", "parquet", "text")
    except ImportError:
        if words:
            raise
        options: Any = {"delimiter": text.delimiter, "skiprows": text.skipped, "quotechar": '"'}
        return list(np.loadtxt(BytesIO(text.data), comments=None, ndmin=2, **options)[:, wanted].T)
    from pyarrow import compute, float64, string
    from tqdm.utils import CallbackIOWrapper

    names = [str(j) for j in range(len(text.first))]
    with progress(len(text.data), "B") as done:
        table = pyarrow.read_csv(
            CallbackIOWrapper(done, BytesIO(text.data)),
            pyarrow.ReadOptions(column_names=names, skip_rows=text.skipped),
            pyarrow.ParseOptions(delimiter=text.delimiter, newlines_in_values=quotes > 0),
            pyarrow.ConvertOptions(
                include_columns=[names[j] for j in wanted],
                column_types={names[j]: string() if j in words else float64() for j in wanted},
                null_values=[form for w in MISSING for form in (w, w.upper(), w.title(), "NaN")],
            ),
        )
    cells = [
        compute.utf8_trim_whitespace(column) if j in words else column
        for j, column in zip(wanted, table.columns, strict=True)
    ]
    return [column.to_numpy() for column in cells]


def is_number(cell: Any) -> bool:
    """Return whether a cell is a number, also one that is written."""
    try:
        float(cell)
    except (TypeError, ValueError, OverflowError):
        return False
    return True


# --- objects -------------------------------------------------------------------------------------


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
    columns: dict[str, list[Any]] = {}
    if isinstance(content, dict):
        columns = {name: cells for name, cells in content.items() if isinstance(cells, list)}
    if len(columns) < 2:
        records = content if isinstance(content, list) else [content]
        for number, record in enumerate(records, start=1):
            if not isinstance(record, dict):
                raise InvalidPredictionsError(
                    f'{entry} {number} is not an object such as {{"probs": [0.2, 0.8], "label": 1}}'
                )
        names = dict.fromkeys(chain.from_iterable(records))
        columns = {name: [record.get(name) for record in records] for name in names}
    return Source(
        list(columns), lambda names: [_of_objects(n, columns[n]) for n in names], content=content
    )


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


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    record = dict(pairs)
    if len(record) < len(pairs):
        keys = [key for key, _ in pairs]
        repeated = next(key for key in keys if keys.count(key) > 1)
        raise InvalidPredictionsError(f"one object holds the key {repeated!r} twice")
    return record


def _of_objects(name: str, cells: Sequence[Any]) -> Column:
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
        sheets = {
            sheet.title: [
                row for row in sheet.iter_rows(values_only=True) if row.count(None) < len(row)
            ]
            for sheet in book.worksheets
        }
    filled = [title for title, rows in sheets.items() if rows]
    if len(filled) != 1:
        raise InvalidPredictionsError(
            f"there are {len(filled)} sheets with cells ({', '.join(filled)}): save the one with "
            "the predictions as a file of its own"
        )
    header, *rows = sheets[filled[0]]
    if not rows:
        raise InvalidPredictionsError("there is a header but no rows")
    names = ["" if name is None else str(name).strip() for name in header]
    columns = dict(zip(names, zip(*rows, strict=True), strict=True))
    return Source(names, lambda wanted: [_of_objects(name, columns[name]) for name in wanted])


# --- tables and arrays ---------------------------------------------------------------------------


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

    def read(wanted: Sequence[str]) -> list[Column]:
        with readable(kind):
            found = select(list(wanted))
            return [_of_arrow(name, found.column(name)) for name in wanted]

    return Source(names, read)


def _of_arrow(name: str, column: Any) -> Column:
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
    bare = "the file holds one array: name the file of the labels with label= (--label)"
    bare *= opened.format == "npy"
    with readable("NumPy"):
        head = opened.file.read(1)
        opened.file.seek(0)
        if head == b"\x80":
            raise ValueError("Object arrays")
        stored = np.load(opened.file, allow_pickle=False)
        names = ["probs"] if bare else list(stored)

    def read(wanted: Sequence[str]) -> list[Column]:
        with readable("NumPy"):
            return [stored if bare else stored[name] for name in wanted]

    if isinstance(stored, NpzFile) == bool(bare):
        raise InvalidPredictionsError(f"it does not hold {'one array' if bare else 'named arrays'}")
    return Source(names, read, bare=bare)


#: What reads a format.
READERS: dict[str, Callable[[Opened], Source]] = {
    "csv": _read_delimited,
    "json": _read_json,
    "parquet": _read_arrow,
    "arrow": _read_arrow,
    "excel": _read_excel,
    "npz": _read_numpy,
    "npy": _read_numpy,
}
