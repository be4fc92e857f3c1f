"""Reading predictions from files: CSV, Parquet, npz, npy and JSON lines. Nothing is unpickled."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from caltest.errors import InvalidPredictionsError
from caltest.io.formats import READERS, Source
from caltest.predictions import BoolArray, Predictions

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
    weights: str | None = None,
    clusters: str | None = None,
    by: str | None = None,
    ids: str | None = None,
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
    weights, clusters, by, ids : str, optional
        Names of the columns with these facts of the rows; see :meth:`Predictions.of`.
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

    Notes
    -----
    Time is that of one pass over the file, a little more for text. Columns that are not asked for
    are not looked at.
    """
    asked = {"weights": weights, "clusters": clusters, "by": by, "ids": ids}
    facts = {fact: name for fact, name in asked.items() if name is not None}
    return read_waiting(path, probs, label, facts, classes, from_logits, waiting=False)[0]


def read_waiting(
    path: str | PathLike[str],
    probs: str | Sequence[str] | None,
    label: str | PathLike[str] | None,
    facts: dict[str, str],
    classes: Sequence[Any] | None,
    from_logits: bool,
    waiting: bool = True,
) -> tuple[Predictions, BoolArray]:
    """Read a file that is still being written, and which rows wait for their label.

    The labels of such rows mean nothing. A last line without its end is such a row, too.
    """
    path = _checked(path)
    try:
        source = READERS[path.suffix.lower()](path, label)
        label = _choose_label(source.names, None if label is None else str(label))
        _refuse_unknown(facts.values(), source.names)
        others = [name for name in source.names if name not in (label, *facts.values())]
        chosen = (
            _choose(source, others, label, from_logits) if probs is None else _named(others, probs)
        )
        wanted = [label, *facts.values(), *chosen.probs]
        columns = dict(zip(wanted, source.read(wanted), strict=True))
        outcomes = columns[label]
        waits = _missing(outcomes) & waiting
        if waiting and path.suffix.lower() not in (".parquet", ".npz", ".npy"):
            waits[-1] |= path.read_bytes()[-1:] != b"\n"
        if waits.all():
            outcomes = np.zeros(len(outcomes))
        elif waits.any():
            outcomes = np.where(waits, outcomes[~waits][0], outcomes)
        truth = _as_label_values(outcomes)
        values = _stacked([columns[name] for name in chosen.probs], chosen.probs)
        data = Predictions.of(
            values,
            truth,
            None if waits.all() else classes or _class_values(chosen, values, truth),
            from_logits=from_logits,
            **{fact: _as_marks(columns[name], name) for fact, name in facts.items()},
        )
    except UnicodeDecodeError:
        raise InvalidPredictionsError(f"{path.name}: this is not a text file in UTF-8") from None
    except InvalidPredictionsError as error:
        raise InvalidPredictionsError(f"{path.name}: {error}") from None
    understood = [
        f"read {data.n} rows, {data.n_classes} classes from "
        f"{'column' if len(chosen.probs) == 1 else 'columns'} {_listing(chosen.probs)}",
        *(f"{fact} from {name}" for fact, name in {"labels": label, **facts}.items()),
    ]
    return replace(data, notes=(", ".join(understood), *data.notes)), waits


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


# --- choosing columns --------------------------------------------------------------------------


@dataclass(frozen=True)
class _Choice:
    """The probability columns, and what their names say of the classes."""

    probs: list[str]
    suffixes: list[str] | None = None


def _choose(source: Source, names: list[str], label: str, from_logits: bool) -> _Choice:
    candidates: dict[str, _Choice] = {}
    for family in FAMILIES:
        members = [name for name in names if fnmatchcase(name.lower(), family)]
        if members:
            candidates[family] = _family(members, family)
    logits = [name for name in names if name.lower() in ("logit", "logits")]
    whole = [name for name in names if name.lower() in WHOLE_NAMES]
    candidates |= {name: _Choice([name]) for name in whole + (logits if from_logits else [])}
    if not candidates:
        labels = source.read([label])[0]
        values = set(map(str, labels.tolist())) if labels.dtype.kind in "UO" else set()
        if len(values) > 1 and values <= set(names):
            members = [name for name in names if name in values]
            return _Choice(members, members)
        hint = "name them with probs= (--probs)"
        if logits:
            hint = "it holds logits: pass from_logits=True (--from-logits)"
        raise InvalidPredictionsError(f"no probabilities found among {_listing(names)}; {hint}")
    if len(candidates) > 1:
        choices = " or ".join(f"{k} ({_listing(c.probs)})" for k, c in candidates.items())
        raise InvalidPredictionsError(
            f"the probabilities could be {choices}; choose with probs= (--probs)"
        )
    return next(iter(candidates.values()))


def _choose_label(names: list[str], label: str | None) -> str:
    if label is not None:
        _refuse_unknown([label], names)
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


def _refuse_unknown(wanted: Iterable[str], names: list[str]) -> None:
    for name in wanted:
        if name not in names:
            raise InvalidPredictionsError(f"there is no column {name!r} among {_listing(names)}")


def _named(names: list[str], probs: str | Sequence[str]) -> _Choice:
    wanted = [part.strip() for part in probs.split(",")] if isinstance(probs, str) else list(probs)
    if len(wanted) == 1 and wanted[0] not in names:
        members = [name for name in names if fnmatchcase(name, wanted[0])]
        if not members:
            raise InvalidPredictionsError(
                f"no column matches {wanted[0]!r} among {_listing(names)}"
            )
        return _family(members, wanted[0])
    _refuse_unknown(wanted, names)
    return _Choice(wanted)


def _family(members: list[str], family: str) -> _Choice:
    """Order the columns of a pattern by what stands for the star, as numbers if it is numbers."""
    if not family.endswith("*") or family.count("*") > 1:
        return _Choice(members)
    suffixes = [name[len(family) - 1 :] for name in members]
    if not all(s.isdecimal() for s in suffixes):
        return _Choice(members, suffixes)
    if len(suffixes) == 1 and int(suffixes[0]) != 1:
        raise InvalidPredictionsError(
            f"the only probability column {members[0]} is the probability of class {suffixes[0]}: "
            "add the columns of the other classes, or give the probability of label 1"
        )
    order = sorted(range(len(members)), key=lambda i: int(suffixes[i]))
    return _Choice([members[i] for i in order], [suffixes[i] for i in order])


def _class_values(
    chosen: _Choice, values: NDArray[Any], truth: NDArray[Any]
) -> Sequence[Any] | None:
    """Return the label values that the column names carry, if the labels are such values."""
    if chosen.suffixes is None or values.ndim == 1:
        return None
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


def _as_marks(column: NDArray[Any], name: str) -> NDArray[Any]:
    """Return the clusters, names or weights of the rows; numbers such as 7.0 are the number 7."""
    if column.dtype.kind in "UO":
        _refuse_missing(column, name)
        return column
    whole = column.dtype.kind == "f" and bool((column == np.floor(column)).all())
    return column.astype(np.int64) if whole else column


def _missing(column: NDArray[Any]) -> BoolArray:
    """Return which cells are empty."""
    if column.dtype.kind == "f":
        return np.isnan(column)
    gone = (cell is None or str(cell).lower() in _MISSING for cell in column)
    return np.fromiter(gone, dtype=np.bool_, count=len(column))


def _refuse_missing(column: NDArray[Any], name: str) -> None:
    missing = np.flatnonzero(_missing(column)).tolist()
    if missing:
        rows = ", ".join(map(str, missing[:5])) + (", …" if len(missing) > 5 else "")
        raise InvalidPredictionsError(
            f"column {name} has {len(missing)} missing cells, in rows {rows} (counted from 0, "
            "without the header); remove or complete these rows, nothing is dropped for you"
        )
