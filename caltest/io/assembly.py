"""From a file to predictions: its columns, what they mean, and a note of what was understood."""

from __future__ import annotations

import zipfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from os import PathLike
from pathlib import Path

import numpy as np

from caltest._base.arrays import IntArray
from caltest._base.checks import one_of
from caltest._base.containers import as_column
from caltest.errors import InvalidPredictionsError
from caltest.io.formats import READERS
from caltest.io.logs import log_format, read_log
from caltest.io.opening import opened
from caltest.predictions import Predictions
from caltest.predictions.reading import of_table
from caltest.tables import cells
from caltest.tables.amounts import with_event
from caltest.tables.chosen import Chosen
from caltest.tables.columns import choose_labels
from caltest.tables.meaning import understood
from caltest.tables.names import IDS, LABELS, words
from caltest.tables.source import Column, Request, Source

#: What ``format`` may be.
FORMATS = (*READERS, "lm-eval", "inspect", "helm")


@contextmanager
def source_of(path: str | PathLike[str], request: Request) -> Iterator[Source]:
    """Open a file, and a second one with the labels; errors name the file."""
    label = request.label
    one_of("format", request.format, (None, *FORMATS))
    file = opened(path, request.format)._replace(sheet=request.sheet)
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
            if request.sheet and file.format != "excel":
                raise InvalidPredictionsError("--sheet is for Excel files", [("!--sheet",)])
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
                raise InvalidPredictionsError(source.bare, [("--label", "FILE_OF_LABELS")])
            yield with_event(source, label)
    except UnicodeError:
        raise InvalidPredictionsError(
            f"{file.name}: this is not a text file in UTF-8: save it so, such as with iconv "
            "-f latin1 -t utf-8"
        ) from None
    except InvalidPredictionsError as error:
        raise error.of_file(file.name) from None


def _with_labels(source: Source, path: Path) -> Source:
    """Return a source that has the labels of a second file as one more column."""
    file = opened(path, None)
    with file.file:
        other = READERS.get(file.format, READERS["json"])(file)
        name = other.names[0] if len(other.names) == 1 else choose_labels(other, None).probs[0]
        labels = as_column(other.read([name])[0], name)
        common = [n for n in other.names if n != name and n in source.names]
        common = [n for n in common if source.read([n])[0].ndim == other.read([n])[0].ndim == 1]
        common.sort(key=lambda n: not IDS & {*words(n)})
        keys = other.read(common[:1]) if common else []
    if keys:
        labels = labels[_places(source.read(common[:1])[0], keys[0], common[0], path.name)]

    def read(names: Sequence[str]) -> list[Column]:
        probs = source.read([n for n in names if n != str(path)])
        columns, truth, n = iter(probs), labels, len(probs[0]) if probs else len(labels)
        named_so = name.lower() in (*LABELS[0], *LABELS[1])
        if other.names == [name] and not (other.bare or named_so) and len(truth) == n - 1:
            truth = np.array([name, *truth.tolist()], dtype=object)  # it was no header
        longer = source.bare and n == len(truth) + 1
        if longer and np.array_equal(probs[0][0], range(probs[0].shape[1])):
            columns = iter([probs[0][1:]])  # it was one: a data frame numbers its columns
        return [truth if name == str(path) else next(columns) for name in names]

    notes = [f"labels of {path.name} matched by {common[0]}"] if keys else []
    return replace(
        source, names=[*source.names, str(path)], read=read, notes=(*source.notes, *notes)
    )


def _places(rows: Column, listed: Column, column: str, file: str) -> IntArray:
    """Return where the rows of a table are in a file, by a column that both have."""
    names, others = (cells.marks(keys).astype(str).tolist() for keys in (rows, listed))
    if names == others:
        return np.arange(len(names))
    place = {name: row for row, name in enumerate(others)}
    if len(place) < len(others) or len(set(names)) < len(names):
        raise InvalidPredictionsError(
            f"{column} names rows more than once, and not in the order of {file}: rows cannot be "
            "matched by it; leave it out of that file if rows are in the same order"
        )
    for name in names:
        if name not in place:
            raise InvalidPredictionsError(f"{file} has no label for {column} {name}")
    return np.array([place[name] for name in names])


def read_chosen(
    source: Source, request: Request, chosen: Chosen, before: int = 0
) -> tuple[Predictions, IntArray]:
    """Return the predictions in the chosen columns, and which rows of the file they are.

    Rows are counted from ``before``, those that were read before.
    """
    table = understood(source, request, chosen, before)
    if request.multilabel:
        if table.facts:
            raise InvalidPredictionsError("several labels a row take no facts of the rows yet")
        with table.naming:
            data = Predictions.of_labels(table.probs, table.labels, table.classes)
        places = table.rows[data.places]
        return replace(data, notes=(*table.notes, *data.notes), places=places), table.rows
    return of_table(Predictions, table, request), table.rows
