"""File formats: one function a format, from a path to columns that can be asked for by name.

Whatever a file holds besides the columns asked for is neither converted nor checked.
"""

from __future__ import annotations

import csv
import json
import zipfile
import zlib
from array import array
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain, islice
from pathlib import Path
from typing import Any

import numpy as np
from numpy.lib.npyio import NpzFile
from numpy.typing import NDArray

from caltest.errors import InvalidPredictionsError

Column = NDArray[Any]


@dataclass(frozen=True)
class Source:
    """A file whose columns can be asked for by name.

    Attributes
    ----------
    names : list of str
        The columns, in the order of the file.
    read : callable
        Names to columns: text stays text, a column of lists becomes two-dimensional.
    """

    names: list[str]
    read: Callable[[Sequence[str]], list[Column]]

    def __post_init__(self) -> None:
        if len(set(self.names)) < len(self.names):
            repeated = next(name for name in self.names if self.names.count(name) > 1)
            raise InvalidPredictionsError(f"the file names the column {repeated!r} twice")


# --- text with delimiters ------------------------------------------------------------------------


def _read_delimited(path: Path, label: Any) -> Source:
    rows = _rows(path)
    names = [name.strip() for name in next(rows, [])]
    if next(rows, None) is None:
        raise InvalidPredictionsError("there is a header but no rows")
    if all(_is_number(name) for name in names):
        raise InvalidPredictionsError(
            f"the file begins with numbers ({names[0]}, …): add a header line that names "
            "the columns, such as p_0,p_1,label"
        )
    return Source(names, partial(_delimited_columns, path, {n: j for j, n in enumerate(names)}))


def _rows(path: Path) -> Iterator[list[str]]:
    """Yield the header and the rows that are not blank, all of one length."""
    csv.field_size_limit(2**31 - 1)  # texts of any length stand beside predictions
    with path.open(encoding="utf-8-sig", newline="") as file:
        head = next((line for line in file if line.strip()), "")
        file.seek(0)
        reader = csv.reader(file, delimiter=max(",;\t", key=head.count))
        width = 0
        try:
            for row in reader:
                width = width or len(row)
                if row and len(row) == width:
                    yield row
                elif any(cell.strip() for cell in row):
                    raise InvalidPredictionsError(
                        f"line {reader.line_num} has {len(row)} cells, the header {width}"
                    )
        except csv.Error as error:
            raise InvalidPredictionsError(f"line {reader.line_num}: {error}") from None


def _delimited_columns(path: Path, place: dict[str, int], names: Sequence[str]) -> list[Column]:
    """Read columns in one pass: numbers where the first cell is one and all others are, too."""
    wanted = [place[name] for name in names]
    first = next(islice(_rows(path), 1, None))
    text = [j for j in wanted if not _is_number(first[j])]
    try:
        columns = _cells(path, [j for j in wanted if j not in text], text)
    except ValueError:  # also of a row that is too short, which is met again
        columns = _cells(path, [], wanted)
    return [columns[j] for j in wanted]


def _cells(path: Path, numeric: list[int], text: list[int]) -> dict[int, Column]:
    numbers, words = array("d"), []
    for row in islice(_rows(path), 1, None):
        numbers.fromlist([float(row[j]) for j in numeric])
        words.append([row[j].strip() for j in text])
    columns = [*np.reshape(numbers, (len(words), len(numeric))).T, *np.array(words, dtype=str).T]
    return dict(zip([*numeric, *text], columns, strict=True))


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


# --- objects -------------------------------------------------------------------------------------


def _read_jsonl(path: Path, label: Any) -> Source:
    records: list[dict[str, Any]] = []
    with path.open(encoding="utf-8-sig") as file:
        for number, line in enumerate(file, start=1):
            if not line.strip():
                continue
            try:
                record = json.loads(line)
            except json.JSONDecodeError as error:
                raise InvalidPredictionsError(f"line {number} is not JSON: {error.msg}") from None
            if not isinstance(record, dict):
                raise InvalidPredictionsError(
                    f'line {number} is not an object such as {{"probs": [0.2, 0.8], "label": 1}}'
                )
            records.append(record)

    def read(names: Sequence[str]) -> list[Column]:
        return [_of_objects(name, [record.get(name) for record in records]) for name in names]

    return Source(list(dict.fromkeys(chain.from_iterable(records))), read)


def _of_objects(name: str, cells: list[Any]) -> Column:
    if any(isinstance(cell, dict) for cell in cells):
        raise InvalidPredictionsError(
            f"column {name} holds objects; write the probabilities as a list in the order of the "
            "classes, or as one column a class"
        )
    if any(isinstance(cell, list) for cell in cells):
        lengths = [len(c) if isinstance(c, list) else -1 for c in cells]
        for row, length in enumerate(lengths):
            if length != lengths[0]:
                raise InvalidPredictionsError(
                    f"column {name}: row {row} does not hold {lengths[0]} numbers like row 0"
                )
        try:
            return np.array(cells, dtype=object).astype(np.float64)
        except (TypeError, ValueError):
            raise InvalidPredictionsError(
                f"column {name} holds a cell that is not a list of numbers"
            ) from None
    return np.array(cells, dtype=object)


def _read_parquet(path: Path, label: Any) -> Source:
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError:
        raise ImportError(
            "reading Parquet files needs pyarrow: pip install 'caltest[parquet]'"
        ) from None
    try:
        file = pyarrow.parquet.ParquetFile(path)
    except (pyarrow.ArrowException, OSError):
        raise InvalidPredictionsError("this is not a readable Parquet file") from None

    def read(names: Sequence[str]) -> list[Column]:
        table = file.read(columns=list(names))
        return [_of_arrow(name, table.column(name)) for name in names]

    return Source(file.schema_arrow.names, read)


def _of_arrow(name: str, column: Any) -> Column:
    from pyarrow.types import is_floating, is_integer

    if column.null_count == 0 and (is_floating(column.type) or is_integer(column.type)):
        return column.to_numpy()
    return _of_objects(name, column.to_pylist())


# --- arrays --------------------------------------------------------------------------------------


def _read_npz(path: Path, label: Any) -> Source:
    def read(names: Sequence[str]) -> list[Column]:
        return _loaded(path, NpzFile, lambda stored: [stored[name] for name in names])

    return Source(_loaded(path, NpzFile, list), read)


def _read_npy(path: Path, label: Any) -> Source:
    if label is None:
        raise InvalidPredictionsError(
            "the file holds one array: name the file of the labels with label= (--label)"
        )
    if not Path(label).exists():
        raise FileNotFoundError(f"there is no file {label}")
    files = {"probs": path, str(label): Path(label)}
    columns = {name: _loaded(file, np.ndarray, np.asarray) for name, file in files.items()}
    return Source(list(columns), lambda names: [columns[name] for name in names])


def _loaded(path: Path, kind: type, use: Callable[[Any], Any]) -> Any:
    """Return what ``use`` makes of a NumPy file that holds one array, or several by name."""
    with path.open("rb") as file:
        try:
            stored = np.load(file, allow_pickle=False)
            if isinstance(stored, kind):
                return use(stored)
            reason = f"does not hold {'one array' if kind is np.ndarray else 'named arrays'}"
        except (ValueError, OSError, EOFError, zipfile.BadZipFile, zlib.error) as error:
            file.seek(0)
            if file.read(1) == b"\x80" or "Object arrays" in str(error):
                reason = "holds Python objects, which are not read for safety: save plain arrays"
            else:
                reason = "is not a readable NumPy file"
    raise InvalidPredictionsError(f"{path.name} {reason}")


#: What reads a file, by its ending: path and ``label`` to a source.
READERS: dict[str, Callable[[Path, Any], Source]] = {
    ".csv": _read_delimited,
    ".tsv": _read_delimited,
    ".txt": _read_delimited,
    ".parquet": _read_parquet,
    ".npz": _read_npz,
    ".npy": _read_npy,
    ".jsonl": _read_jsonl,
    ".ndjson": _read_jsonl,
}
