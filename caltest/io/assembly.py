"""From a file to predictions: its columns, what they mean, and a note of what was understood."""

from __future__ import annotations

import warnings
import zipfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from os import PathLike
from pathlib import Path

import numpy as np

from caltest._base.arrays import IntArray
from caltest._base.checks import one_of
from caltest._base.doubts import MISSES
from caltest._base.facts import RIGHT
from caltest._base.reading import in_a_file
from caltest._base.written import several
from caltest.errors import DoubtfulInputWarning, InvalidPredictionsError
from caltest.io import cells
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
from caltest.io.formats import READERS
from caltest.io.logs import log_format, read_log
from caltest.io.opening import opened
from caltest.io.source import Column, Request, Source
from caltest.predictions import Predictions

#: So many rows of all columns fit into the cache.
_BLOCK = 8192
#: What ``format`` may be.
FORMATS = (*READERS, "lm-eval", "inspect", "helm")


@contextmanager
def source_of(path: str | PathLike[str], request: Request) -> Iterator[Source]:
    """Open a file, and a second one with the labels; errors name the file."""
    label = request.label
    one_of("format", request.format, (None, *FORMATS))
    file = opened(path, request.format)
    try:
        with file.file:
            log: str | None = file.format
            source = Source([], lambda _: [])
            if log != "inspect" or not zipfile.is_zipfile(file.file):
                file.file.seek(0)
                source = READERS.get(file.format, READERS["json"])(file)
            if log in READERS:  # JSON may still be a log, if nobody has said that it is JSON
                guessed = request.format is None and source.content is not None
                log = log_format(source.content) if guessed else ""
            misfit = "per_character is for samples of lm-evaluation-harness"
            if log and request.from_logits:
                misfit = "this log is not of logits: leave from_logits out"
            if (log and request.from_logits) or (request.per_character and log != "lm-eval"):
                raise InvalidPredictionsError(misfit)
            if log:
                source = read_log(file, log, source.content, request.per_character)
            one = isinstance(label, (str, PathLike)) and str(label) not in source.names
            if one and Path(str(label)).is_file():
                source = _with_labels(source, Path(str(label)))
            elif source.bare:
                if one:
                    raise FileNotFoundError(f"there is no file {label}")
                raise InvalidPredictionsError(source.bare)
            yield source
    except UnicodeError:
        raise InvalidPredictionsError(f"{file.name}: this is not a text file in UTF-8") from None
    except InvalidPredictionsError as error:
        raise InvalidPredictionsError(f"{file.name}: {error}") from None


def _with_labels(source: Source, path: Path) -> Source:
    """Return a source that has the labels of a second file as one more column."""
    file = opened(path, None)
    with file.file:
        other = READERS.get(file.format, READERS["json"])(file)
        name = other.names[0] if len(other.names) == 1 else choose_labels(other, None).probs[0]
        (labels,) = other.read([name])
    labels = labels[:, 0] if labels.ndim == 2 and labels.shape[1] == 1 else labels

    def read(wanted: Sequence[str]) -> list[Column]:
        probs = source.read([n for n in wanted if n != str(path)])
        columns, truth, n = iter(probs), labels, len(probs[0])
        named_so = name.lower() in (*LABELS[0], *LABELS[1])
        if other.names == [name] and not (other.bare or named_so) and len(truth) == n - 1:
            truth = np.array([name, *truth.tolist()], dtype=object)  # it was no header
        longer = source.bare and n == len(truth) + 1
        if longer and np.array_equal(probs[0][0], range(probs[0].shape[1])):
            columns = iter([probs[0][1:]])  # it was one: a data frame numbers its columns
        return [truth if name == str(path) else next(columns) for name in wanted]

    return Source([*source.names, str(path)], read)


@dataclass(frozen=True)
class Chosen:
    """Which columns of a file are probabilities, outcomes, facts, and perhaps predicted classes."""

    choice: Choice
    outcomes: list[str]
    facts: dict[str, str]
    predicted: str | None

    @property
    def wanted(self) -> list[str]:
        """The names of all of them."""
        predicted = [] if self.predicted is None else [self.predicted]
        names = [*self.outcomes, *self.facts.values(), *self.choice.probs, *predicted]
        return list(dict.fromkeys(names))


def chosen_of(source: Source, request: Request) -> Chosen:
    """Find out which columns are what."""
    label, probs, facts = request.label, request.probs, request.facts
    if source.log:
        label, probs = label or "label", probs or "probs"
        facts = {"ids": "id"} | facts
    labels = choose_labels(source, str(label) if isinstance(label, PathLike) else label)
    refuse_unknown(facts.values(), source.names)
    others = [name for name in source.names if name not in (*labels.probs, *facts.values())]
    if probs is not None:
        choice = named(others, probs)
    else:
        choice = choose_probs(source, others, labels, request.from_logits)
    refuse_lone(choice)
    outcomes, predicted = paired(labels, choice), request.predicted_label
    if predicted is not None:
        refuse_unknown([predicted], source.names)
    elif request.classes is None and request.pos_label is None and len(choice.probs) == 1:
        # one confidence may be about the one column of predicted classes
        guesses = [n for n in others if n.lower() in PREDICTED and n not in choice.probs]
        sure = len(guesses) == 1 and "correct" not in labels.probs[0].lower()
        predicted = guesses[0] if sure else None
    return Chosen(choice, outcomes, facts, predicted)


def read_chosen(
    source: Source, request: Request, chosen: Chosen, before: int = 0
) -> tuple[Predictions, IntArray]:
    """Return the predictions in the chosen columns, and which rows of the file they are.

    Rows are counted from ``before``, those that were read before.
    """
    wanted, choice, outcomes = chosen.wanted, chosen.choice, chosen.outcomes
    columns = dict(zip(wanted, map(np.atleast_1d, source.read(wanted)), strict=True))
    rows, notes = _complete(columns, request.drop_missing, before)
    if notes:
        columns = {name: column[rows] for name, column in columns.items()}
    classes = request.classes
    with in_a_file(rows + before + 1, choice.probs):
        values = _stacked(columns, choice.probs)
        one = len(outcomes) == 1
        truth = cells.labels(columns[outcomes[0]]) if one else _stacked(columns, outcomes)
        remarks = [f"labels from {shortened(outcomes)}"]
        if chosen.predicted is not None:
            guesses, sure = cells.labels(columns[chosen.predicted]), request.predicted_label
            right = cells.right(truth, guesses, values, choice.probs[0], sure is not None)
            if right is not None:
                truth, classes = right, RIGHT
                remarks = [f"as the probability that {chosen.predicted} equals {outcomes[0]}"]
        if classes is None and not source.log:
            classes = _class_values(choice, values, truth)
            cells.refuse_indicator(values, truth, outcomes[0])
        remarks += [f"{fact} from {name}" for fact, name in chosen.facts.items()]
        data = Predictions.of(
            values,
            truth if request.pos_label is None else cells.marks(truth),
            classes,
            from_logits=request.from_logits,
            pos_label=request.pos_label,
            **{fact: cells.marks(columns[name]) for fact, name in chosen.facts.items()},
        )
    few_misses = (1.0 - data.probs.max(axis=1)).sum() < MISSES  # of many, Predictions.of warns
    predicted = outcomes[0].lower() in PREDICTED and few_misses
    if predicted and (data.labels == data.probs.argmax(axis=1)).all():
        warnings.warn(
            f"{outcomes[0]} is the class of the largest probability in every row: these may be "
            "predicted classes, not what was observed",
            DoubtfulInputWarning,
            stacklevel=3,
        )
    unused = [name for name in source.names if name not in wanted]
    remarks += [f"not used: {shortened(unused)}"] if unused else []
    of = f"column{'s' * (len(choice.probs) > 1)} {shortened(choice.probs)}"
    understood = ", ".join(
        [f"read {several(data.n, 'row')}, {data.n_classes} classes from {of}", *remarks]
    )
    return replace(data, notes=(understood, *source.notes, *notes, *data.notes)), rows


def _class_values(choice: Choice, values: Column, truth: Column) -> Sequence[object] | None:
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
    if not absent:
        return np.arange(n), []
    complete = np.flatnonzero(~np.any(list(absent.values()), axis=0))
    if not drop or complete.size == 0:
        name = next(iter(absent))
        rows = np.flatnonzero(absent[name]) + before + 1
        gaps = f"column {name} has {several(rows.size, 'missing cell')}"
        if drop:
            raise InvalidPredictionsError(f"no row is complete; {gaps}")
        shown = ", ".join(map(str, rows[:5])) + (", …" if rows.size > 5 else "")
        raise InvalidPredictionsError(
            f"{gaps}, in {'row' if rows.size == 1 else 'rows'} {shown} (counted from 1, without "
            "the header); complete these rows, or leave them out with drop_missing=True "
            "(--drop-missing)"
        )
    counts = ", ".join(f"{name} {rows.sum()}" for name, rows in absent.items())
    remark = f"dropped {n - complete.size} of {several(n, 'row')} with missing cells ({counts})"
    return complete, [remark]


def _stacked(columns: dict[str, Column], names: list[str]) -> Column:
    """Return probabilities as one array, a column as it is."""
    parts = [cells.numbers(columns[name], name) for name in names]
    if len(parts) == 1:
        return parts[0]
    table = np.empty((len(parts[0]), len(parts)))
    for i in range(0, len(table), _BLOCK):
        for j, column in enumerate(parts):
            table[i : i + _BLOCK, j] = column[i : i + _BLOCK]
    return table


def shortened(names: Sequence[str]) -> str:
    """Return the names, of many the first and the last."""
    return listing(names if len(names) <= 6 else [*names[:3], "…", names[-1]])
