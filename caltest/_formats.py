"""File formats: every file becomes columns that can be asked for by name."""

from __future__ import annotations

import csv
import json
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from caltest.errors import InvalidPredictionsError


class Source(Protocol):
    """A file whose columns can be asked for by name."""

    @property
    def names(self) -> list[str]:
        """The columns, in the order of the file."""

    def column(self, name: str) -> NDArray[Any]:
        """Return one column; text stays text, a column of lists becomes two-dimensional."""


@dataclass
class _Columns:
    """Columns held in memory."""

    columns: dict[str, NDArray[Any]]

    @property
    def names(self) -> list[str]:
        return list(self.columns)

    def column(self, name: str) -> NDArray[Any]:
        return self.columns[name]


@dataclass
class _Delimited:
    """A text file with a header line, read column by column."""

    path: Path
    names: list[str]
    delimiter: str

    def column(self, name: str) -> NDArray[Any]:
        index = self.names.index(name)
        try:
            return self._load(index, np.float64)
        except ValueError:
            return self._slowly(index)

    def _load(self, index: int, dtype: Any) -> NDArray[Any]:
        with self.path.open(encoding="utf-8-sig", newline="") as file:
            next(csv.reader(file, delimiter=self.delimiter))
            return np.loadtxt(
                file,
                dtype=dtype,
                delimiter=self.delimiter,
                usecols=index,
                comments=None,
                quotechar='"',
                ndmin=1,
            )

    def _slowly(self, index: int) -> NDArray[Any]:
        cells = []
        with self.path.open(encoding="utf-8-sig", newline="") as file:
            reader = csv.reader(file, delimiter=self.delimiter)
            next(reader)
            for row in reader:
                if not row:
                    continue
                if len(row) != len(self.names):
                    raise InvalidPredictionsError(
                        f"line {reader.line_num} has {len(row)} cells, the header {len(self.names)}"
                    )
                cells.append(row[index].strip())
        return np.array(cells, dtype=str)


def _read_delimited(path: Path, label: Any) -> Source:
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            head = file.readline()
            rest = file.readline()
    except UnicodeDecodeError:
        raise InvalidPredictionsError("this is not a text file in UTF-8") from None
    delimiter = max(",;\t", key=head.count)
    names = [name.strip() for name in next(csv.reader([head], delimiter=delimiter), [])]
    if not rest.strip():
        raise InvalidPredictionsError("there is a header but no rows")
    if names and all(_is_number(name) for name in names):
        raise InvalidPredictionsError(
            f"the file begins with numbers ({names[0]}, …): add a header line that names "
            "the columns, such as p_0,p_1,label"
        )
    _refuse_ragged(path, delimiter, len(names))
    repeated = {name for name in names if names.count(name) > 1}
    if repeated:
        raise InvalidPredictionsError(f"the header names the column {repeated.pop()!r} twice")
    return _Delimited(path, names, delimiter)


def _refuse_ragged(path: Path, delimiter: str, width: int) -> None:
    with path.open(encoding="utf-8-sig", newline="") as file:
        for number, line in enumerate(file, start=1):
            if line.count(delimiter) + 1 == width or not line.strip():
                continue
            if '"' in line:  # cells may hold delimiters or line ends: let the column reader judge
                return
            raise InvalidPredictionsError(
                f"line {number} has {line.count(delimiter) + 1} cells, the header {width}"
            )


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _read_jsonl(path: Path, label: Any) -> Source:
    columns: dict[str, list[Any]] = {}
    rows = 0
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
                    f'{path.name}, line {number} is not an object such as {{"probs": [0.2, 0.8], '
                    '"label": 1}'
                )
            for name in record.keys() - columns.keys():
                columns[name] = [None] * rows
            for name, cells in columns.items():
                cells.append(record.get(name))
            rows += 1
    return _Columns({name: _as_column(name, cells) for name, cells in columns.items()})


def _as_column(name: str, cells: list[Any]) -> NDArray[Any]:
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
        table = pyarrow.parquet.read_table(path)
    except (pyarrow.ArrowException, OSError):
        raise InvalidPredictionsError("this is not a readable Parquet file") from None
    columns = {}
    for name, column in zip(table.column_names, table.columns, strict=True):
        kind = column.type
        plain = pyarrow.types.is_floating(kind) or pyarrow.types.is_integer(kind)
        if plain and column.null_count == 0:
            columns[name] = column.to_numpy()
        else:
            columns[name] = _as_column(name, column.to_pylist())
    return _Columns(columns)


def _read_npz(path: Path, label: Any) -> Source:
    try:
        with np.load(path, allow_pickle=False) as stored:
            return _Columns({name: stored[name] for name in stored})
    except (ValueError, OSError, EOFError, KeyError, zipfile.BadZipFile) as error:
        raise InvalidPredictionsError(_unreadable(path, error)) from None


def _read_npy(path: Path, label: Any) -> Source:
    if label is None:
        raise InvalidPredictionsError(
            "the file holds one array: name the file of the labels with label= (--label)"
        )
    if not Path(label).exists():
        raise FileNotFoundError(f"there is no file {label}")
    arrays = {}
    for name, file in (("probs", path), (str(label), Path(label))):
        try:
            arrays[name] = np.load(file, allow_pickle=False)
        except (ValueError, OSError, EOFError) as error:
            raise InvalidPredictionsError(_unreadable(file, error)) from None
        if not isinstance(arrays[name], np.ndarray):
            raise InvalidPredictionsError(f"{file.name} does not hold one array")
    return _Columns(arrays)


def _unreadable(path: Path, error: Exception) -> str:
    with path.open("rb") as file:
        pickled = file.read(1) == b"\x80"
    if pickled or "Object arrays" in str(error):
        return f"{path.name} holds Python objects, which are not read for safety: save plain arrays"
    return f"{path.name} is not a readable NumPy file"


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
