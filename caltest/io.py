"""Reading predictions from files: CSV, Parquet, npz, npy and JSON lines. Nothing is unpickled."""

from __future__ import annotations

import csv
import json
import zipfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from os import PathLike
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from caltest.errors import InvalidPredictionsError
from caltest.predictions import Predictions

#: Names under which labels are found, compared in lower case.
LABEL_NAMES = ("label", "labels", "y", "y_true", "target", "targets", "outcome", "outcomes")
#: Names of one column or array that holds all probabilities.
WHOLE_NAMES = ("p", "prob", "probs", "proba", "probability", "probabilities", "y_prob")
#: Patterns of the columns of a family, one column a class.
FAMILIES = ("p_*", "prob_*", "probs_*", "proba_*")
_MISSING = {"", "na", "n/a", "nan", "null", "none"}


class _Source(Protocol):
    """A file whose columns can be asked for by name."""

    @property
    def names(self) -> list[str]:
        """The columns, in the order of the file."""

    def column(self, name: str) -> NDArray[Any]:
        """Return one column; text stays text, a column of lists becomes two-dimensional."""


def read_predictions(
    path: str | PathLike[str],
    probs: str | Sequence[str] | None = None,
    label: str | PathLike[str] | None = None,
    *,
    classes: Sequence[Any] | None = None,
    from_logits: bool = False,
) -> Predictions:
    """Read probabilities and labels from a file, and say what was understood.

    Parameters
    ----------
    path : path
        ``.csv`` (also ``.tsv`` and ``.txt``; comma, semicolon or tab), ``.parquet``, ``.npz``,
        ``.npy``, or ``.jsonl`` (also ``.ndjson``; one object a line).
    probs : str or sequence of str, optional
        Names of the probability columns in the order of the classes, or a pattern such as
        ``"p_*"``. One column of numbers is the probability of label 1. Without it, columns are
        found by their names: ``p_*``, ``prob_*``, ``probs_*``, ``proba_*``; the names that occur
        as labels; or a single ``p``, ``prob``, ``probs``, ``proba``, ``probabilities``, which may
        also hold whole rows.
    label : str or path, optional
        Name of the label column; for ``.npy`` the path of a second file. Without it, ``label``,
        ``y``, ``y_true``, ``target``, ``outcome`` (or their plurals) is looked for.
    classes : sequence, optional
        The label values in the order of the probability columns; taken from the column names
        when these carry them.
    from_logits : bool, default False
        The columns hold logits.

    Returns
    -------
    Predictions
        The first of its ``notes`` says what was understood.

    Raises
    ------
    FileNotFoundError
        When there is no such file.
    InvalidPredictionsError
        When the file cannot be read, a column is missing or more than one choice is possible, a
        cell is empty, or the values are not predictions.
    ImportError
        For Parquet without pyarrow, which the extra ``caltest[parquet]`` installs.
    """
    path = Path(path)
    if path.is_dir():
        raise InvalidPredictionsError(f"{path} is a folder, not a file of predictions")
    if not path.exists():
        raise FileNotFoundError(f"there is no file {path}")
    if path.stat().st_size == 0:
        raise InvalidPredictionsError(f"{path} is empty")
    suffix = path.suffix.lower()
    if suffix not in _READERS:
        raise InvalidPredictionsError(
            f"{path.name}: files of type {suffix or '(no ending)'} cannot be read; known are "
            f"{', '.join(_READERS)}"
        )
    source = _READERS[suffix](path, label)
    try:
        chosen = _choose(source, probs, None if label is None else str(label), from_logits)
        values = _stacked([source.column(name) for name in chosen.probs], chosen.probs)
        truth = _as_label_values(source.column(chosen.label))
        data = Predictions.of(
            values, truth, _class_values(chosen, values, truth, classes), from_logits=from_logits
        )
    except InvalidPredictionsError as error:
        raise InvalidPredictionsError(f"{path.name}: {error}") from None
    columns = _listing(chosen.probs)
    word = "column" if len(chosen.probs) == 1 else "columns"
    understood = (
        f"read {data.n} rows, {data.n_classes} classes from {word} {columns}, "
        f"labels from {chosen.label}"
    )
    return replace(data, notes=(understood, *data.notes))


# --- choosing columns --------------------------------------------------------------------------


@dataclass(frozen=True)
class _Choice:
    label: str
    probs: list[str]
    suffixes: list[str] | None = None


def _choose(
    source: _Source, probs: str | Sequence[str] | None, label: str | None, from_logits: bool
) -> _Choice:
    names = source.names
    label = _choose_label(names, label)
    others = [name for name in names if name != label]
    if probs is not None:
        return _named(others, probs, label)
    candidates: dict[str, _Choice] = {}
    for family in FAMILIES:
        members = [name for name in others if fnmatchcase(name.lower(), family)]
        if members:
            candidates[family] = _family(members, family, label)
    for name in others:
        if name.lower() in WHOLE_NAMES:
            candidates[name] = _Choice(label, [name])
        if name.lower() in ("logit", "logits") and from_logits:
            candidates[name] = _Choice(label, [name])
    labels = source.column(label)
    if not candidates and labels.ndim == 1 and labels.dtype.kind in "UO":
        values = {str(v) for v in np.unique(labels.astype(str))}
        if len(values) > 1 and values <= set(others):
            members = [name for name in others if name in values]
            candidates["class names"] = _Choice(label, members, members)
    if not candidates:
        hint = ""
        if any(name.lower() in ("logit", "logits") for name in others):
            hint = "; it holds logits: pass from_logits=True (--from-logits)"
        raise InvalidPredictionsError(
            f"no probabilities found among {_listing(others)}{hint or '; name them with probs= '}"
            f"{'' if hint else '(--probs)'}"
        )
    if len(candidates) > 1:
        choices = " or ".join(f"{k} ({_listing(c.probs)})" for k, c in candidates.items())
        raise InvalidPredictionsError(
            f"the probabilities could be {choices}; choose with probs= (--probs)"
        )
    (choice,) = candidates.values()
    return choice


def _choose_label(names: list[str], label: str | None) -> str:
    if label is not None:
        if label not in names:
            raise InvalidPredictionsError(f"there is no column {label!r} among {_listing(names)}")
        return label
    found = [name for name in names if name.lower() in LABEL_NAMES]
    if len(found) == 1:
        return found[0]
    if found:
        raise InvalidPredictionsError(
            f"the labels could be {' or '.join(found)}; choose with label= (--label)"
        )
    raise InvalidPredictionsError(
        f"no labels found among {_listing(names)}; name them with label= (--label)"
    )


def _named(others: list[str], probs: str | Sequence[str], label: str) -> _Choice:
    wanted = [part.strip() for part in probs.split(",")] if isinstance(probs, str) else list(probs)
    if len(wanted) == 1 and wanted[0] not in others:
        members = [name for name in others if fnmatchcase(name, wanted[0])]
        if not members:
            raise InvalidPredictionsError(
                f"no column matches {wanted[0]!r} among {_listing(others)}"
            )
        return _family(members, wanted[0], label)
    for name in wanted:
        if name not in others:
            raise InvalidPredictionsError(f"there is no column {name!r} among {_listing(others)}")
    return _Choice(label, wanted)


def _family(members: list[str], family: str, label: str) -> _Choice:
    """Order the columns of a pattern by what stands for the star, as numbers if it is numbers."""
    prefix = family.index("*") if family.endswith("*") and family.count("*") == 1 else None
    suffixes = [name[prefix:] for name in members] if prefix is not None else None
    if suffixes and all(s.isdecimal() for s in suffixes):
        order = sorted(range(len(members)), key=lambda i: int(suffixes[i]))
        return _Choice(label, [members[i] for i in order], [suffixes[i] for i in order])
    return _Choice(label, members, suffixes)


def _class_values(
    chosen: _Choice, values: NDArray[Any], truth: NDArray[Any], classes: Sequence[Any] | None
) -> Sequence[Any] | None:
    """Return the label values that the column names carry, if the labels are such values."""
    if classes is not None or chosen.suffixes is None or values.ndim == 1:
        return classes
    if truth.dtype.kind == "U":
        return chosen.suffixes
    if all(s.isdecimal() for s in chosen.suffixes):
        return [int(s) for s in chosen.suffixes]
    return None


def _listing(names: Sequence[str]) -> str:
    shown = list(names) if len(names) <= 6 else [*names[:3], "…", names[-1]]
    return ", ".join(shown)


# --- cells -------------------------------------------------------------------------------------


def _stacked(columns: list[NDArray[Any]], names: list[str]) -> NDArray[Any]:
    numbers = [_as_number_column(c, name) for c, name in zip(columns, names, strict=True)]
    return numbers[0] if len(numbers) == 1 else np.column_stack(numbers)


def _as_number_column(column: NDArray[Any], name: str) -> NDArray[Any]:
    if column.dtype.kind not in "UO":
        return column
    _refuse_missing(column, name)
    try:
        return column.astype(np.float64)
    except ValueError:
        for row, cell in enumerate(column):
            try:
                float(cell)
            except ValueError:
                raise InvalidPredictionsError(
                    f"column {name}, row {row}: {str(cell)!r} is not a number"
                ) from None
        raise


def _as_label_values(column: NDArray[Any]) -> NDArray[Any]:
    """Return labels as numbers where every cell is one, else as text."""
    if column.dtype.kind not in "UO":
        return column
    _refuse_missing(column, "of labels")
    text = column.astype(str)
    try:
        return text.astype(np.float64)
    except ValueError:
        lowered = np.char.lower(text)
        if set(np.unique(lowered)) <= {"true", "false"}:
            return lowered == "true"
        return text


def _refuse_missing(column: NDArray[Any], name: str) -> None:
    missing = [i for i, cell in enumerate(column) if cell is None or str(cell).lower() in _MISSING]
    if missing:
        rows = ", ".join(map(str, missing[:5])) + (", …" if len(missing) > 5 else "")
        raise InvalidPredictionsError(
            f"column {name} has {len(missing)} missing cells, in rows {rows} (counted from 0, "
            "without the header); remove or complete these rows, nothing is dropped for you"
        )


# --- formats -----------------------------------------------------------------------------------


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


def _read_delimited(path: Path, label: Any) -> _Source:
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            head = file.readline()
            rest = file.readline()
    except UnicodeDecodeError:
        raise InvalidPredictionsError(f"{path.name} is not a text file in UTF-8") from None
    delimiter = max(",;\t", key=head.count)
    names = [name.strip() for name in next(csv.reader([head], delimiter=delimiter), [])]
    if not rest.strip():
        raise InvalidPredictionsError(f"{path.name} has a header but no rows")
    if names and all(_is_number(name) for name in names):
        raise InvalidPredictionsError(
            f"{path.name} begins with numbers ({_listing(names)}): add a header line that names "
            "the columns, such as p_0,p_1,label"
        )
    repeated = {name for name in names if names.count(name) > 1}
    if repeated:
        raise InvalidPredictionsError(f"{path.name} names the column {repeated.pop()!r} twice")
    return _Delimited(path, names, delimiter)


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _read_jsonl(path: Path, label: Any) -> _Source:
    columns: dict[str, list[Any]] = {}
    rows = 0
    with path.open(encoding="utf-8-sig") as file:
        for number, line in enumerate(file, start=1):
            if not line.strip():
                continue
            try:
                record = json.loads(line)
            except json.JSONDecodeError as error:
                raise InvalidPredictionsError(
                    f"{path.name}, line {number} is not JSON: {error.msg}"
                ) from None
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
    if any(isinstance(cell, list) for cell in cells):
        lengths = [len(c) if isinstance(c, list) else -1 for c in cells]
        for row, length in enumerate(lengths):
            if length != lengths[0]:
                raise InvalidPredictionsError(
                    f"column {name}: row {row} does not hold {lengths[0]} numbers like row 0"
                )
        return np.array(cells, dtype=object).astype(np.float64)
    return np.array(cells, dtype=object)


def _read_parquet(path: Path, label: Any) -> _Source:
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
        raise InvalidPredictionsError(f"{path.name} is not a readable Parquet file") from None
    columns = {}
    for name, column in zip(table.column_names, table.columns, strict=True):
        kind = column.type
        plain = pyarrow.types.is_floating(kind) or pyarrow.types.is_integer(kind)
        if plain and column.null_count == 0:
            columns[name] = column.to_numpy()
        else:
            columns[name] = _as_column(name, column.to_pylist())
    return _Columns(columns)


def _read_npz(path: Path, label: Any) -> _Source:
    try:
        with np.load(path, allow_pickle=False) as stored:
            return _Columns({name: stored[name] for name in stored})
    except (ValueError, OSError, EOFError, KeyError, zipfile.BadZipFile) as error:
        raise InvalidPredictionsError(_unreadable(path, error)) from None


def _read_npy(path: Path, label: Any) -> _Source:
    if label is None:
        raise InvalidPredictionsError(
            f"{path.name} holds one array: name the file of the labels with label= (--label)"
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


_READERS: dict[str, Callable[[Path, Any], _Source]] = {
    ".csv": _read_delimited,
    ".tsv": _read_delimited,
    ".txt": _read_delimited,
    ".parquet": _read_parquet,
    ".npz": _read_npz,
    ".npy": _read_npy,
    ".jsonl": _read_jsonl,
    ".ndjson": _read_jsonl,
}
