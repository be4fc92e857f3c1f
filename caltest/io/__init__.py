"""Reading predictions from files of many formats and logs of evaluations. Nothing is unpickled."""

from __future__ import annotations

import zipfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import reduce
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from caltest._base.arrays import BoolArray, IntArray
from caltest._base.checks import one_of
from caltest._base.reading import rows_named
from caltest.errors import InvalidPredictionsError
from caltest.io import cells, logs
from caltest.io.columns import (
    LABELS,
    PREDICTED,
    Choice,
    choose_labels,
    choose_probs,
    listing,
    named,
    paired,
    refuse_lone,
    refuse_unknown,
)
from caltest.io.formats import READERS, Column, Source
from caltest.io.opening import Opened, opened
from caltest.predictions import Predictions

#: So many rows of all columns fit into the cache.
_BLOCK = 8192
#: Files whose last line may be unfinished.
TEXT = (".csv", ".tsv", ".txt", ".jsonl", ".ndjson")
#: What ``format`` may be.
FORMATS = (*READERS, "lm-eval", "inspect", "helm")


def read_predictions(
    path: str | PathLike[str],
    probs: str | Sequence[str] | None = None,
    label: str | PathLike[str] | Sequence[str] | None = None,
    *,
    predicted_label: str | None = None,
    weights: str | None = None,
    clusters: str | None = None,
    by: str | None = None,
    ids: str | None = None,
    classes: Sequence[Any] | None = None,
    pos_label: Any = None,
    from_logits: bool = False,
    per_character: bool = False,
    drop_missing: bool = False,
    format: str | None = None,
) -> Predictions:
    """Read probabilities and labels from a file, and say what was understood.

    Parameters
    ----------
    path : path
        Delimited text (``.csv``, ``.tsv``, ``.txt``), JSON (``.json``, ``.jsonl``, ``.ndjson``),
        ``.parquet``, ``.arrow``, ``.feather``, ``.xlsx``, ``.npz``, ``.npy``, each also in
        ``.gz``, ``.zst`` or ``.zip``; samples of lm-evaluation-harness, logs of Inspect
        (``.eval``, ``.json``), ``per_instance_stats.json`` of HELM; ``-`` is the standard input.
    probs : str or sequence of str, optional
        Names of the probability columns in the order of the classes, or a pattern such as
        ``"p_*"``. One column of numbers is the probability of label 1. Without it, columns are
        found by their names: ``p_cat`` or ``p1`` (also ``prob``, ``probs``, ``proba``); ``0``,
        ``1``, …; the names that occur as labels; or one column such as ``p``, ``y_prob``,
        ``confidence``, ``score``, which may also hold whole rows.
    label : str, path or sequence, optional
        The label column; columns that are 1 where a class occurred, by names or a pattern such as
        ``"*_outcome"``; or a second file with the labels. Without it, ``label``, ``y``,
        ``y_true``, ``target``, ``outcome`` (or their plurals) is looked for, then names such as
        ``true_label``, ``ground_truth``, ``correct``.
    predicted_label : str, optional
        The column of predicted classes, beside one column that says how probable it is that they
        are right. It is found by names such as ``pred_label``, and used where the probabilities
        cannot be those of label 1.
    weights, clusters, by, ids : str, optional
        Names of the columns with these facts of the rows; see :meth:`Predictions.of`. Logs have
        ``ids`` of their own, such as ``doc_hash``; those of lm-evaluation-harness have a column
        ``task``, those of Inspect ``sample``.
    classes : sequence, optional
        The label values in the order of the probability columns; taken from the column names
        when these carry them.
    pos_label : optional
        The label whose probability a single column is, where labels are not 0 and 1.
    from_logits : bool, default False
        The columns hold logits.
    per_character : bool, default False
        Divide the log-likelihoods of lm-evaluation-harness by the characters of the options before
        the softmax, as its ``acc_norm`` does.
    drop_missing : bool, default False
        Leave out rows with empty cells; the notes count them, by column.
    format : str, optional
        What the file is, if its name and content do not say so: ``csv``, ``json``, ``parquet``,
        ``arrow``, ``excel``, ``npz``, ``npy``, ``lm-eval``, ``inspect`` or ``helm``.

    Returns
    -------
    Predictions
        The first of its ``notes`` says what was understood.

    Raises
    ------
    FileNotFoundError
        When there is no such file.
    InvalidPredictionsError
        When the file cannot be read, a column is missing, more than one reading is possible, a
        cell is empty, or the values are not predictions. Rows are counted from 1.
    ImportError
        When a package is missing, which ``caltest[parquet]`` (also for Arrow and Zstandard) or
        ``caltest[excel]`` installs.

    Notes
    -----
    One pass over the file; text is read by pyarrow, if that is installed, else by NumPy and Python.
    Columns that are not asked for are not looked at.
    """
    facts = {"weights": weights, "clusters": clusters, "by": by, "ids": ids}
    options = {"classes": classes, "pos_label": pos_label, "from_logits": from_logits}
    asked: Any = {"predicted": predicted_label, "drop_missing": drop_missing, "options": options}
    with _source(path, label, format, per_character, from_logits) as source:
        return _predictions(source, probs, label, facts, **asked)[0]


def read_forecasters(
    path: str | PathLike[str],
    probs: str,
    label: Any = None,
    *,
    predicted_label: str | None = None,
    ids: str | None = None,
    per_character: bool = False,
    drop_missing: bool = False,
    format: str | None = None,
    **options: Any,
) -> dict[str, Predictions]:
    """Read several forecasters from one file, each a column or a pattern of columns.

    The arguments are those of :func:`read_predictions`. With ``drop_missing``, the rows are those
    on which all forecasters have something to say.
    """
    asked: Any = {"predicted": predicted_label, "drop_missing": drop_missing, "options": options}
    with _source(path, label, format, per_character) as source:
        parts = [part.strip() for part in probs.split(",")]
        names = parts if len(parts) > 1 else named(source.names, parts).probs
        read = {name: _predictions(source, name, label, {"ids": ids}, **asked) for name in names}
    common = reduce(np.intersect1d, [kept for _, kept in read.values()])
    if common.size == 0:
        raise InvalidPredictionsError("there is no row for which all forecasters have a forecast")
    note = f"paired on the {len(common)} rows that all forecasters have"
    return {
        name: replace(data, notes=(*data.notes, note)).take(np.isin(kept, common))
        for name, (data, kept) in read.items()
    }


def read_waiting(
    path: str | PathLike[str],
    probs: str | Sequence[str] | None = None,
    label: Any = None,
    *,
    ids: str | None = None,
    predicted_label: str | None = None,
    per_character: bool = False,
    format: str | None = None,
    **options: Any,
) -> tuple[Predictions, BoolArray]:
    """Read a file that is still being written, and which rows wait for their label.

    The arguments are those of :func:`read_predictions`. The labels of such rows mean nothing. A
    last line without its end is such a row, too.
    """
    with _source(path, label, format, per_character) as source:
        outcomes = choose_labels(source, label).probs
        absent = [cells.missing(np.atleast_1d(column)) for column in source.read(outcomes)]
        waits = np.any(absent, axis=0)
        if Path(path).suffix.lower() in TEXT:
            waits[-1] |= Path(path).read_bytes()[-1:] != b"\n"

        def read(wanted: Sequence[str]) -> list[Column]:
            columns = source.read(wanted)
            held = [name in outcomes for name in wanted]
            return [_held(c, waits) if h else c for h, c in zip(held, columns, strict=True)]

        facts = {name: options.pop(name, None) for name in ("clusters", "by")} | {"ids": ids}
        asked: Any = {"predicted": predicted_label, "drop_missing": False, "options": options}
        return _predictions(replace(source, read=read), probs, label, facts, **asked)[0], waits


def _held(column: Column, waits: BoolArray) -> Column:
    """Return labels with another one in the place of those that are not there yet."""
    if waits.all():
        return np.zeros(len(column), dtype=np.int64)
    return np.where(waits.reshape(-1, *[1] * (column.ndim - 1)), column[~waits][0], column)


# --- from a file to columns ----------------------------------------------------------------------


@contextmanager
def _source(
    path: Any,
    label: Any,
    format: str | None,
    per_character: bool = False,
    from_logits: bool = False,
) -> Iterator[Source]:
    """Open a file, and a second one with the labels; errors name the file."""
    one_of("format", format, (None, *FORMATS))
    file = opened(path, format)
    try:
        with file.file:
            source = _read(file, format, per_character)
            if source.known and from_logits:
                raise InvalidPredictionsError("this log is not of logits: leave from_logits out")
            one = isinstance(label, (str, PathLike)) and str(label) not in source.names
            if one and Path(label).is_file():
                source = _with_labels(source, Path(label))
            elif source.bare:
                if one:
                    raise FileNotFoundError(f"there is no file {label}")
                raise InvalidPredictionsError(source.bare)
            yield source
    except UnicodeError:
        raise InvalidPredictionsError(f"{file.name}: this is not a text file in UTF-8") from None
    except InvalidPredictionsError as error:
        raise InvalidPredictionsError(f"{file.name}: {error}") from None


def _read(file: Opened, format: str | None, per_character: bool) -> Source:
    zipped = file.format == "inspect" and zipfile.is_zipfile(file.file)
    file.file.seek(0)
    source = Source([], lambda _: []) if zipped else READERS.get(file.format, READERS["json"])(file)
    log = file.format if file.format not in READERS else None
    if format is None and log is None:
        log = logs.log_format(source.content)
    if per_character and log != "lm-eval":
        raise InvalidPredictionsError("per_character is for samples of lm-evaluation-harness")
    return source if log is None else logs.read_log(file, log, source.content, per_character)


def _with_labels(source: Source, path: Path) -> Source:
    """Return a source that has the labels of a second file as one more column."""
    file = opened(path, None)
    with file.file:
        other = READERS.get(file.format, READERS["json"])(file)
        name = other.names[0] if len(other.names) == 1 else choose_labels(other, None).probs[0]
        (labels,) = other.read([name])
    labels = labels[:, 0] if labels.ndim == 2 and labels.shape[1] == 1 else labels

    def read(wanted: Sequence[str]) -> list[Column]:
        own = source.read([n for n in wanted if n != str(path)])
        columns, truth, n = iter(own), labels, len(own[0])
        named_so = name.lower() in (*LABELS[0], *LABELS[1])
        if other.names == [name] and not (other.bare or named_so) and len(truth) == n - 1:
            truth = np.array([name, *truth.tolist()], dtype=object)  # it was no header
        if (
            source.bare
            and n == len(truth) + 1
            and np.array_equal(own[0][0], range(own[0].shape[1]))
        ):
            columns = iter([own[0][1:]])  # it was one: a data frame numbers its columns
        return [truth if name == str(path) else next(columns) for name in wanted]

    return Source([*source.names, str(path)], read)


# --- from columns to predictions -----------------------------------------------------------------


def _predictions(
    source: Source,
    probs: str | Sequence[str] | None,
    label: Any,
    facts: dict[str, str | None],
    *,
    predicted: str | None,
    drop_missing: bool,
    options: dict[str, Any],
) -> tuple[Predictions, IntArray]:
    """Return predictions, and which rows of the file they are."""
    known = source.known
    label = known.get("label") if label is None else label
    probs = known.get("probs") if probs is None else probs
    labels = choose_labels(source, str(label) if isinstance(label, PathLike) else label)
    marked = {fact: name for fact, name in facts.items() if name is not None}
    if known:
        marked.setdefault("ids", known["ids"])
    refuse_unknown(marked.values(), source.names)
    others = [name for name in source.names if name not in (*labels.probs, *marked.values())]
    if probs is not None:
        choice = named(others, probs)
    else:
        choice = choose_probs(source, others, labels, options.get("from_logits", False))
    refuse_lone(choice)
    outcomes = paired(labels, choice)
    guess = [predicted] if predicted else _guess(others, labels, choice, options)
    refuse_unknown(guess, source.names)
    wanted = list(dict.fromkeys([*outcomes, *marked.values(), *choice.probs, *guess]))
    columns = dict(zip(wanted, map(np.atleast_1d, source.read(wanted)), strict=True))
    kept, notes = _complete(columns, drop_missing)
    if notes:
        columns = {name: column[kept] for name, column in columns.items()}
    with rows_named(kept + 1):
        values, truth = _stacked(columns, choice.probs), _stacked(columns, outcomes, labels=True)
        told = [f"labels from {_short(outcomes)}"]
        if guess:
            guessed = _stacked(columns, guess, labels=True)
            right = cells.right(truth, guessed, values, choice.probs[0], predicted is not None)
            if right is not None:
                truth, options = right, options | {"classes": ("wrong", "right")}
                told = [f"as the probability that {guess[0]} equals {outcomes[0]}"]
        if options.get("classes") is None and not known:
            options = options | {"classes": _class_values(choice, values, truth)}
            cells.refuse_indicator(values, truth, outcomes[0])
        truth = truth if options.get("pos_label") is None else cells.marks(truth)
        told += [f"{fact} from {name}" for fact, name in marked.items()]
        marks: Any = {fact: cells.marks(columns[name]) for fact, name in marked.items()}
        data = Predictions.of(values, truth, **options, **marks)
    of = f"column{'s' * (len(choice.probs) > 1)} {_short(choice.probs)}"
    unused = [name for name in source.names if name not in wanted]
    if unused:
        told.append(f"not used: {_short(unused)}")
    understood = ", ".join([f"read {data.n} rows, {data.n_classes} classes from {of}", *told])
    return replace(data, notes=(understood, *source.notes, *notes, *data.notes)), kept


def _guess(names: list[str], labels: Choice, choice: Choice, options: dict[str, Any]) -> list[str]:
    """Return the column of predicted classes, if one confidence may be about it."""
    told = any(options.get(name) is not None for name in ("classes", "pos_label"))
    if told or len(choice.probs) > 1 or "correct" in labels.probs[0].lower():
        return []
    found = [n for n in names if n.lower() in PREDICTED and n not in choice.probs]
    return found if len(found) == 1 else []


def _class_values(choice: Choice, values: Column, truth: Column) -> Sequence[Any] | None:
    """Return the label values that the column names carry, if the labels are such values."""
    if choice.suffixes is None or values.ndim == 1:
        return None
    if truth.dtype.kind == "U":
        return choice.suffixes
    if all(s.isdecimal() for s in choice.suffixes):
        return [int(s) for s in choice.suffixes]
    return choice.suffixes if truth.ndim == 2 else None


def _complete(columns: dict[str, Column], drop: bool) -> tuple[IntArray, list[str]]:
    """Return the rows without missing cells, and a note on the others."""
    lengths = {name: len(column) for name, column in columns.items()}
    if len(set(lengths.values())) > 1:
        told = ", ".join(f"{name} {n}" for name, n in lengths.items())
        raise InvalidPredictionsError(f"the columns have different numbers of rows: {told}")
    absent = {name: cells.missing(column) for name, column in columns.items()}
    absent = {name: rows for name, rows in absent.items() if rows.any()}
    n = next(iter(lengths.values()))
    kept = np.flatnonzero(~np.any([np.zeros(n, dtype=bool), *absent.values()], axis=0))
    if absent and (not drop or kept.size == 0):
        name, rows = next(iter(absent.items()))
        found = np.flatnonzero(rows) + 1
        shown = ", ".join(map(str, found[:5])) + (", …" if found.size > 5 else "")
        raise InvalidPredictionsError(
            f"column {name} has {found.size} missing cells, in rows {shown} (counted from 1, "
            "without the header); complete these rows, or leave them out with drop_missing=True "
            "(--drop-missing)"
            if not drop
            else f"no row is complete; column {name} has {found.size} missing cells"
        )
    counts = ", ".join(f"{name} {rows.sum()}" for name, rows in absent.items())
    told = f"dropped {n - kept.size} of {n} rows with missing cells ({counts})"
    return kept, [told] if absent else []


def _stacked(columns: dict[str, Column], names: list[str], labels: bool = False) -> Column:
    if labels and len(names) == 1:
        return cells.labels(columns[names[0]])
    found = [cells.numbers(columns[name], name) for name in names]
    if len(found) == 1:
        return found[0]
    table = np.empty((len(found[0]), len(found)))
    for i in range(0, len(table), _BLOCK):
        for j, column in enumerate(found):
            table[i : i + _BLOCK, j] = column[i : i + _BLOCK]
    return table


def _short(names: Sequence[str]) -> str:
    return listing(names if len(names) <= 6 else [*names[:3], "…", names[-1]])
