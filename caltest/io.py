"""Reading predictions from files: CSV, Parquet, npz, npy and JSON lines. Nothing is unpickled."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from caltest._formats import READERS, Source
from caltest.errors import InvalidPredictionsError
from caltest.predictions import Predictions

#: Names under which labels are found, compared in lower case.
LABEL_NAMES = ("label", "labels", "y", "y_true", "target", "targets", "outcome", "outcomes")
#: Names of one column or array that holds all probabilities.
WHOLE_NAMES = ("p", "prob", "probs", "proba", "probability", "probabilities", "y_prob")
#: Patterns of the columns of a family, one column a class.
FAMILIES = ("p_*", "prob_*", "probs_*", "proba_*")
_MISSING = {"", "na", "n/a", "nan", "null", "none"}


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
    path = _checked(path)
    try:
        source = READERS[path.suffix.lower()](path, label)
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


def _checked(path: str | PathLike[str]) -> Path:
    path = Path(path)
    if path.is_dir():
        raise InvalidPredictionsError(f"{path} is a folder, not a file of predictions")
    if not path.exists():
        raise FileNotFoundError(f"there is no file {path}")
    if path.stat().st_size == 0:
        raise InvalidPredictionsError(f"{path} is empty")
    suffix = path.suffix.lower()
    if suffix not in READERS:
        raise InvalidPredictionsError(
            f"{path.name}: files of type {suffix or '(no ending)'} cannot be read; known are "
            f"{', '.join(READERS)}"
        )
    return path


def read_column(path: str | PathLike[str], name: str) -> list[str]:
    """Return one column of a file as text, such as the ids of its rows.

    Raises
    ------
    InvalidPredictionsError
        When there is no such column, or a cell is empty.
    """
    path = _checked(path)
    try:
        source = READERS[path.suffix.lower()](path, None)
        if name not in source.names:
            raise InvalidPredictionsError(
                f"there is no column {name!r} among {_listing(source.names)}"
            )
        column = source.column(name)
        _refuse_missing(column, name)
    except InvalidPredictionsError as error:
        raise InvalidPredictionsError(f"{path.name}: {error}") from None
    whole = column.dtype.kind == "f" and bool((column == np.floor(column)).all())
    return [str(int(cell)) if whole else str(cell) for cell in column]


# --- choosing columns --------------------------------------------------------------------------


@dataclass(frozen=True)
class _Choice:
    label: str
    probs: list[str]
    suffixes: list[str] | None = None


def _choose(
    source: Source, probs: str | Sequence[str] | None, label: str | None, from_logits: bool
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
    if suffixes and len(suffixes) == 1 and suffixes[0].isdecimal() and int(suffixes[0]) != 1:
        raise InvalidPredictionsError(
            f"the only probability column {members[0]} is the probability of class {suffixes[0]}: "
            "add the columns of the other classes, or give the probability of label 1"
        )
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
                advice = ""
                if "%" in str(cell):
                    advice = "; write fractions: divide by 100 and drop the sign"
                elif "," in str(cell):
                    advice = "; write decimals with a point"
                raise InvalidPredictionsError(
                    f"column {name}, row {row}: {str(cell)!r} is not a number{advice}"
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
