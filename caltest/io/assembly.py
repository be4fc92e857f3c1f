"""From a file to predictions: its columns, what they mean, and a note of what was understood."""

from __future__ import annotations

import warnings
import zipfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from caltest._base.arrays import IntArray
from caltest._base.checks import one_of
from caltest._base.doubts import MISSES
from caltest._base.facts import RIGHT
from caltest._base.reading import in_a_file
from caltest._base.written import several
from caltest.errors import DoubtfulInputWarning, InvalidPredictionsError
from caltest.io import cells
from caltest.io import columns as choosing
from caltest.io.columns import LABELS, PREDICTED, Choice, choose_labels, listing, refuse_unknown
from caltest.io.formats import READERS
from caltest.io.opening import Opened, opened
from caltest.io.source import Column, Source
from caltest.predictions import Predictions

#: So many rows of all columns fit into the cache.
_BLOCK = 8192
#: What ``format`` may be.
FORMATS = (*READERS, "lm-eval", "inspect", "helm")


@contextmanager
def source_of(
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
    if format is None and log is None and source.content is not None:
        from caltest.io.logs import log_format

        log = log_format(source.content)
    if per_character and log != "lm-eval":
        raise InvalidPredictionsError("per_character is for samples of lm-evaluation-harness")
    if log is None:
        return source
    from caltest.io.logs import read_log

    return read_log(file, log, source.content, per_character)


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
        longer = source.bare and n == len(truth) + 1
        if longer and np.array_equal(own[0][0], range(own[0].shape[1])):
            columns = iter([own[0][1:]])  # it was one: a data frame numbers its columns
        return [truth if name == str(path) else next(columns) for name in wanted]

    return Source([*source.names, str(path)], read)


@dataclass(frozen=True)
class Chosen:
    """Which columns of a file are what."""

    labels: Choice
    choice: Choice
    outcomes: list[str]
    marked: dict[str, str]
    guess: list[str]

    @property
    def wanted(self) -> list[str]:
        """The names of all of them."""
        marks = self.marked.values()
        return list(dict.fromkeys([*self.outcomes, *marks, *self.choice.probs, *self.guess]))


def chosen_of(
    source: Source,
    probs: str | Sequence[str] | None,
    label: Any,
    facts: dict[str, str | None],
    *,
    predicted: str | None,
    options: dict[str, Any],
) -> Chosen:
    """Find out which columns are what."""
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
        choice = choosing.named(others, probs)
    else:
        choice = choosing.choose_probs(source, others, labels, options.get("from_logits", False))
    choosing.refuse_lone(choice)
    outcomes = choosing.paired(labels, choice)
    guess = [predicted] if predicted else _guess(others, labels, choice, options)
    refuse_unknown(guess, source.names)
    return Chosen(labels, choice, outcomes, marked, guess)


def predictions_of(
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
    found = chosen_of(source, probs, label, facts, predicted=predicted, options=options)
    return read_chosen(source, found, predicted=predicted, drop=drop_missing, options=options)


def read_chosen(
    source: Source,
    chosen: Chosen,
    *,
    predicted: str | None,
    drop: bool,
    options: dict[str, Any],
    before: int = 0,
) -> tuple[Predictions, IntArray]:
    """Return the predictions in the chosen columns, of which ``before`` rows were read before."""
    known, wanted, choice = source.known, chosen.wanted, chosen.choice
    outcomes, marked, guess = chosen.outcomes, chosen.marked, chosen.guess
    columns = dict(zip(wanted, map(np.atleast_1d, source.read(wanted)), strict=True))
    rows, notes = _complete(columns, drop, before)
    if notes:
        columns = {name: column[rows] for name, column in columns.items()}
    with in_a_file(rows + before + 1, choice.probs):
        values, truth = _stacked(columns, choice.probs), _stacked(columns, outcomes, labels=True)
        remarks = [f"labels from {shortened(outcomes)}"]
        if guess:
            guessed = _stacked(columns, guess, labels=True)
            right = cells.right(truth, guessed, values, choice.probs[0], predicted is not None)
            if right is not None:
                truth, options = right, options | {"classes": RIGHT}
                remarks = [f"as the probability that {guess[0]} equals {outcomes[0]}"]
        if options.get("classes") is None and not known:
            options = options | {"classes": _class_values(choice, values, truth)}
            cells.refuse_indicator(values, truth, outcomes[0])
        truth = truth if options.get("pos_label") is None else cells.marks(truth)
        remarks += [f"{fact} from {name}" for fact, name in marked.items()]
        marks: Any = {fact: cells.marks(columns[name]) for fact, name in marked.items()}
        data = Predictions.of(values, truth, **options, **marks)
    _doubt_predicted(data, outcomes[0])
    unused = [name for name in source.names if name not in wanted]
    remarks += [f"not used: {shortened(unused)}"] if unused else []
    of = f"column{'s' * (len(choice.probs) > 1)} {shortened(choice.probs)}"
    understood = ", ".join(
        [f"read {several(data.n, 'row')}, {data.n_classes} classes from {of}", *remarks]
    )
    return replace(data, notes=(understood, *source.notes, *notes, *data.notes)), rows


def _doubt_predicted(data: Predictions, name: str) -> None:
    """Warn of labels that are called predicted, and are; if there are many, anyone is warned."""
    if name.lower() not in PREDICTED or (1.0 - data.probs.max(axis=1)).sum() >= MISSES:
        return
    if (data.labels == data.probs.argmax(axis=1)).all():
        warnings.warn(
            f"{name} is the class of the largest probability in every row: these may be predicted "
            "classes, not what was observed",
            DoubtfulInputWarning,
            stacklevel=4,
        )


def _guess(names: list[str], labels: Choice, choice: Choice, options: dict[str, Any]) -> list[str]:
    """Return the column of predicted classes, if one confidence may be about it."""
    explicit = any(options.get(name) is not None for name in ("classes", "pos_label"))
    if explicit or len(choice.probs) > 1 or "correct" in labels.probs[0].lower():
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


def _complete(columns: dict[str, Column], drop: bool, before: int) -> tuple[IntArray, list[str]]:
    """Return the rows without missing cells, and a note on the others."""
    lengths = {name: len(column) for name, column in columns.items()}
    if len(set(lengths.values())) > 1:
        remark = ", ".join(f"{name} {n}" for name, n in lengths.items())
        raise InvalidPredictionsError(f"the columns have different numbers of rows: {remark}")
    absent = {name: cells.missing(column) for name, column in columns.items()}
    absent = {name: rows for name, rows in absent.items() if rows.any()}
    n = next(iter(lengths.values()))
    complete = np.flatnonzero(~np.any([np.zeros(n, dtype=bool), *absent.values()], axis=0))
    if absent and (not drop or complete.size == 0):
        name, rows = next(iter(absent.items()))
        found = np.flatnonzero(rows) + before + 1
        shown = ", ".join(map(str, found[:5])) + (", …" if found.size > 5 else "")
        where = "row" if found.size == 1 else "rows"
        raise InvalidPredictionsError(
            f"column {name} has {several(found.size, 'missing cell')}, in {where} {shown} (counted "
            "from 1, without the header); complete these rows, or leave them out with "
            "drop_missing=True (--drop-missing)"
            if not drop
            else f"no row is complete; column {name} has {several(found.size, 'missing cell')}"
        )
    counts = ", ".join(f"{name} {rows.sum()}" for name, rows in absent.items())
    remark = f"dropped {n - complete.size} of {several(n, 'row')} with missing cells ({counts})"
    return complete, [remark] if absent else []


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


def shortened(names: Sequence[str]) -> str:
    """Return the names, of many the first and the last."""
    return listing(names if len(names) <= 6 else [*names[:3], "…", names[-1]])
