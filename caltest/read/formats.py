"""From bytes to columns: files are opened, and read one function a format."""

from __future__ import annotations

import csv
import gzip
import json
import re
import sys
import warnings
import zipfile
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from importlib import import_module
from io import BytesIO, TextIOWrapper
from itertools import chain, islice, takewhile
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, NamedTuple, cast

import numpy as np
from numpy.lib.npyio import NpzFile

from caltest._base.arrays import progress
from caltest._base.containers import as_column
from caltest._base.written import several
from caltest.errors import InvalidPredictionsError
from caltest.read.source import MISSING, Column, Source, is_number

if TYPE_CHECKING:
    from pyarrow import ChunkedArray


# ------------------------------------------------------------------------------
# Text with delimiters, by compiled code where it is well formed, else row by row.


#: A number with a decimal comma.
DECIMAL = re.compile(r"\s*-?\d+,\d+\s*%?\s*")


#: Numbers below 1000, and those with groups of three digits, as beside decimal commas.
_WHOLE = re.compile(r"-?\d{1,3}(,\d+)?")


_GROUPED = re.compile(r"-?[1-9]\d{0,2}([.\s]\d{3})+(,\d+)?")


class _Text(NamedTuple):
    """Delimited text, the first row that counts, and the lines before it."""

    data: bytes
    delimiter: str
    first: list[str]
    skipped: int

    @property
    def comma(self) -> bool:
        """Whether numbers have decimal commas, beside which cells are not told apart by commas."""
        return self.delimiter in ";\t|" and any(DECIMAL.fullmatch(cell) for cell in self.first)


def read_delimited(opened: Opened) -> Source:
    """Find delimiter, header and first row; columns are read when they are asked for."""
    data = opened.file.read().removeprefix(b"\xef\xbb\xbf")
    if data.startswith((b"\xff\xfe", b"\xfe\xff")):  # as Excel's "Unicode text"
        data = data.decode("utf-16").encode()
    notes: tuple[str, ...] = ()
    if not data.isascii():
        data, notes = _as_utf8(data)
    if b"\0" in data:
        line = data.count(b"\n", 0, data.index(b"\0")) + 1
        reason = f"line {line} holds a NUL byte: this is not a text file in UTF-8"
        raise InvalidPredictionsError(reason)
    head = data[: 1 << 20].lstrip().partition(b"\n")[0]
    delimiter = max(",;\t|", key=lambda mark: head.count(mark.encode()))
    delimiter = delimiter if delimiter.encode() in head else " "
    (line, header), (_, first) = islice(chain(_rows(data, delimiter), [(0, [])] * 2), 2)
    names = [name.strip() for name in header]
    "".join(names).encode()  # fails where the bytes were not UTF-8
    if names and all(is_number(name) for name in names):
        text, all_columns = _Text(data, delimiter, header, 0), range(len(names))
        return Source(
            ["probs"],
            lambda _: [np.column_stack(_columns(text, all_columns))],
            bare="the file begins with numbers: add a header line that names the columns, such as "
            "p_0,p_1,label, or name the file of the labels with label=",
        )
    if not first:
        raise InvalidPredictionsError("there is a header but no rows")
    text, place = _Text(data, delimiter, first, line), {name: j for j, name in enumerate(names)}
    return Source(names, lambda places: _columns(text, [place[n] for n in places]), notes=notes)


def _as_utf8(data: bytes) -> tuple[bytes, tuple[str, ...]]:
    """Return text in UTF-8, from cp1252 with a note where no letter is in UTF-8."""
    try:
        data.decode()
    except UnicodeDecodeError:
        with suppress(UnicodeDecodeError):  # a file of both encodings stays as it is
            if data.decode(errors="ignore").isascii():
                note = "text read as cp1252, of Windows, as it is not UTF-8; where letters are "
                return data.decode("cp1252").encode(), (f"{note}wrong, save the file in UTF-8",)
    return data, ()


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
                    f"line {reader.line_num} has {several(len(row), 'cell')}, the header {width}"
                )
    except csv.Error as error:
        raise InvalidPredictionsError(f"line {reader.line_num}: {error}") from None


def _columns(text: _Text, places: Sequence[int]) -> list[Column]:
    """Read columns in one pass, by compiled code where that finds nothing wrong."""
    try:
        return _fast(text, places)
    except (ValueError, ImportError):
        cells: list[list[str]] = [[] for _ in places]
    with progress(text.data.count(b"\n"), "row") as done:
        for line, row in _rows(text.data, text.delimiter):
            done(1)
            if line > text.skipped:
                for column, j in zip(cells, places, strict=True):
                    column.append(row[j].strip())
    "".join(chain.from_iterable(cells)).encode()  # fails where the bytes were not UTF-8
    return [typed(column, text.comma) for column in cells]


def typed(cells: list[str], comma: bool) -> Column:
    """Return numbers where all cells are, with decimal commas and groups of digits, else text."""
    numerals = [c for c in cells if c.lower() not in MISSING]
    groups = [c for c in numerals if not _WHOLE.fullmatch(c)] if comma else []
    if groups and all(map(_GROUPED.fullmatch, groups)):
        cells = [re.sub(r"[.\s]", "", c) for c in cells]
    numbers = [c.replace(",", ".") for c in cells] if comma else cells
    try:
        return np.array([np.nan if c.lower() in MISSING else float(c) for c in numbers])
    except ValueError:
        return np.array(cells, dtype=object)


def _fast(text: _Text, places: Sequence[int]) -> list[Column]:
    """Read numbers where the first cell is one, and text, or raise what the reader raises."""
    body = 0
    for _ in range(text.skipped):
        body = text.data.find(b"\n", body) + 1
    quotes = text.data.count(b'"', body)
    if quotes % 2:
        raise ValueError("a quote stays open")
    first = [c.replace(",", ".") for c in text.first] if text.comma else text.first
    numeric = [is_number(cell) or cell.strip().lower() in MISSING for cell in first]
    words = [j for j in places if not numeric[j]]
    if text.comma and any(_GROUPED.fullmatch(text.first[j].strip()) for j in words):
        raise ValueError("digits are in groups")
    try:
        pyarrow = imported("pyarrow.csv", "parquet", "text")
    except ImportError:
        if words or text.comma:
            raise
        table = np.loadtxt(BytesIO(text.data), comments=None, ndmin=2, delimiter=text.delimiter,
                           skiprows=text.skipped, quotechar='"')  # fmt: skip
        return list(table[:, places].T)
    from pyarrow import compute, float64, string
    from tqdm.utils import CallbackIOWrapper

    names = [str(j) for j in range(len(text.first))]
    with progress(len(text.data), "B") as done:
        table = pyarrow.read_csv(
            CallbackIOWrapper(done, BytesIO(text.data)),
            pyarrow.ReadOptions(column_names=names, skip_rows=text.skipped),
            pyarrow.ParseOptions(delimiter=text.delimiter, newlines_in_values=quotes > 0),
            pyarrow.ConvertOptions(
                include_columns=[names[j] for j in places],
                column_types={names[j]: string() if j in words else float64() for j in places},
                decimal_point="," if text.comma else ".",
                null_values=[form for w in MISSING for form in (w, w.upper(), w.title(), "NaN")],
            ),
        )
    columns = zip(places, table.columns, strict=True)
    trim = compute.utf8_trim_whitespace
    return [(trim(column) if j in words else column).to_numpy() for j, column in columns]


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


# ------------------------------------------------------------------------------
# Opening files, plain or compressed, and the standard input, as bytes of a known format.


#: The formats, and the endings of their files.
ENDINGS = {
    "csv": (".csv", ".tsv", ".txt"),
    "json": (".json", ".jsonl", ".ndjson"),
    "parquet": (".parquet",),
    "arrow": (".arrow", ".feather"),
    "excel": (".xlsx",),
    "npz": (".npz",),
    "npy": (".npy",),
    "inspect": (".eval",),
}


#: How bytes begin that come without an ending.
_BEGINNINGS: dict[str, bytes | tuple[bytes, ...]] = {
    ".gz": b"\x1f\x8b",
    ".zst": b"\x28\xb5\x2f\xfd",
    ".zip": b"PK\x03\x04",
    ".parquet": b"PAR1",
    ".arrow": b"ARROW1",
    ".npy": b"\x93NUMPY",
    ".json": (b"{", b"["),
    ".csv": b"",
}


class Opened(NamedTuple):
    """The bytes of a file, unpacked, what they are called and are, and the sheet to read."""

    name: str
    format: str
    file: BinaryIO
    sheet: str | None = None


def opened(path: str | PathLike[str], format: str | None) -> Opened:
    """Open a file, or the standard input for ``-``; what it is follows from its ending."""
    if not isinstance(path, (str, PathLike)):
        raise TypeError(
            f"path is a {type(path).__name__}, not the name of a file: values in memory are for "
            "Predictions.of(probs, labels)"
        )
    path, file = Path(path), cast(BinaryIO, BytesIO())
    name, ending, filled = path.name, path.suffix.lower(), True
    if str(path) == "-":
        data = sys.stdin.buffer.read()
        name, file, ending, filled = "standard input", BytesIO(data), _beginning(data), bool(data)
    elif path.is_dir():
        raise InvalidPredictionsError(
            f"{path} is a folder, not a file of predictions: name its files, such as "
            f"'{path / '*.parquet'}'"
        )
    elif not path.exists():
        raise FileNotFoundError(f"there is no file {path}")
    elif filled := path.stat().st_size > 0:
        file = path.open("rb")
    if not filled:
        raise InvalidPredictionsError(f"{name} is empty")
    if ending in (".gz", ".zst", ".zip") and format not in ("npz", "excel", "inspect"):
        with file:
            inner, data = _unpacked(name, ending, file)
        file, ending = BytesIO(data), Path(inner).suffix.lower() or _beginning(data)
    kind = format or next((name for name, suffixes in ENDINGS.items() if ending in suffixes), None)
    if kind is None:
        file.close()
        endings = ", ".join(chain.from_iterable(ENDINGS.values()))
        raise InvalidPredictionsError(
            f"{name}: files of type {ending or '(no ending)'} cannot be read; known are {endings}, "
            "also in .gz, .zst and .zip; say which of them it is with format=",
            [("--format", "csv")],
        )
    return Opened(name, kind, file)


def _beginning(data: bytes) -> str:
    start = data[:64].removeprefix(b"\xef\xbb\xbf").lstrip()
    return next(ending for ending, mark in _BEGINNINGS.items() if start.startswith(mark))


def _unpacked(name: str, ending: str, file: BinaryIO) -> tuple[str, bytes]:
    """Return what is in a compressed file, and its name."""
    try:
        if ending != ".zip":
            unpack = gzip.decompress if ending == ".gz" else unzst
            return name.lower().removesuffix(ending), unpack(file.read())
        with zipfile.ZipFile(file) as packed:
            members = [m for m in packed.namelist() if not m.endswith("/") and "__MACOSX" not in m]
            if len(members) == 1:
                return members[0], packed.read(members[0])
    except ImportError:
        raise
    except Exception:  # whatever a damaged file makes of the decompressors
        raise InvalidPredictionsError(f"{name}: this is not a readable {ending} file") from None
    raise InvalidPredictionsError(
        f"{name} holds {len(members)} files ({', '.join(members)}): unpack it and name one of them"
    )


def unzst(data: bytes) -> bytes:
    """Decompress Zstandard."""
    pyarrow = imported("pyarrow", "parquet", "Zstandard files")
    return bytes(pyarrow.CompressedInputStream(pyarrow.BufferReader(data), "zstd").read())


def imported(module: str, extra: str, what: str) -> Any:  # of libraries without types
    """Import an optional library, or name the extra that installs it."""
    package = module.partition(".")[0]
    try:
        import_module(package)
        return import_module(module)
    except ImportError:
        needed = f"reading {what} needs {package}: pip install 'caltest[{extra}]'"
        raise ImportError(needed) from None
