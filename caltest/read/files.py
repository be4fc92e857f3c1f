"""Reading predictions from files of many formats and logs. Nothing is unpickled."""

from __future__ import annotations

import glob
import re
import warnings
import zipfile
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import replace
from functools import reduce
from itertools import combinations
from os import PathLike, fspath
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np

from caltest._base.arrays import BoolArray, FloatArray, IntArray, one_of
from caltest._base.containers import as_column, is_table
from caltest._base.containers import opened as at_hand
from caltest._base.written import several
from caltest.data import Predictions
from caltest.data.labels import Request, marks
from caltest.errors import DoubtfulInputWarning, InvalidPredictionsError, StatisticError
from caltest.read import source as cells
from caltest.read.arguments import of_table, source_in_memory
from caltest.read.arguments import shared_ids as shared_ids_arguments
from caltest.read.columns import choose_labels, named, refuse_unknown, with_event
from caltest.read.formats import ENDINGS, READERS, opened
from caltest.read.logs import log_format, read_log
from caltest.read.meaning import Chosen, chosen_of, times_among, understood
from caltest.read.source import DATES, IDS, LABELS, MODELS, Column, Source, key, words
from caltest.read.state import content_mark

#: Of one column its name, or that of a file; of several their names, or a pattern.
Columns = str | PathLike[str] | Sequence[str]


def read_predictions(
    path: str | PathLike[str] | Sequence[str | PathLike[str]] | object,
    probs: str | Sequence[str] | None = None,
    label: Columns | None = None,
    *,
    predicted_label: str | None = None,
    weights: str | None = None,
    clusters: str | None = None,
    by: str | None = None,
    ids: str | None = None,
    folds: str | None = None,
    features: str | Sequence[str] | None = None,
    classes: Sequence[object] | None = None,
    pos_label: object = None,
    from_logits: bool = False,
    renormalise: bool = False,
    percent: bool = False,
    per_character: bool = False,
    drop_missing: bool | float = False,
    drop_labels: Sequence[str] = (),
    one_model: bool = False,
    format: str | None = None,
    sheet: str | None = None,
    time: str | None = None,
    event: str | None = None,
    horizon: float | str | None = None,
    strata: str | None = None,
    ordered: bool = False,
    multilabel: bool = False,
    rounded: bool | Literal["auto"] = "auto",
) -> Predictions:
    """Read probabilities and labels from a file or a table in memory.

    The first of their ``notes`` says what was read. One pass over the file, text by pyarrow where
    installed; other columns are not looked at.

    Parameters
    ----------
    path : path, pattern such as ``"part-*.csv"``, or sequence of them, or table
        A table in memory: of pandas, polars, Arrow, duckdb or Hugging Face, or a dictionary of
        columns; its rows are counted from 0. Files of one model are read one after the other,
        with the columns of the first.
        ``.csv``, ``.tsv``, ``.txt``, ``.json``, ``.jsonl``, ``.ndjson``, ``.parquet``, ``.arrow``,
        ``.feather``, ``.xlsx``, ``.npz``, ``.npy``, each also in ``.gz``, ``.zst`` or ``.zip``;
        samples of lm-evaluation-harness, logs of Inspect (``.eval``, ``.json``),
        ``per_instance_stats.json`` of HELM; ``-`` is the standard input.
    probs : str or sequence of str, optional
        Names of the columns in the order of the classes, or a pattern such as ``"p_*"``; one of
        numbers is the probability of label 1. Without it, columns are found by their names:
        ``p_cat`` or ``p1`` (also ``prob``, ``probs``, ``proba``); ``0``, ``1``, …; the names that
        occur as labels; or one such as ``p``, ``y_prob``, ``confidence``, also of whole rows.
    label : str, path or sequence, optional
        The label column; columns that are 1 where a class occurred, such as ``"*_outcome"``; or a
        second file, whose rows are matched by a column of both. Without it, ``label``, ``y``,
        ``y_true``, ``target``, ``outcome`` (or plurals) is looked for, then names such as
        ``true_label``, ``ground_truth``, ``correct``, else the only column that holds 0 and 1,
        ``yes`` and ``no`` or the like.
    predicted_label : str, optional
        The predicted classes, beside one column that says how probable it is that they are right.
        Found by names such as ``pred_label``, where probabilities cannot be those of label 1.
    weights, clusters, by, ids, folds : str, optional
        Columns with these facts of the rows; see :meth:`Predictions.of`. Logs have ``ids`` of their
        own and a column ``task`` (lm-evaluation-harness) or ``sample`` (Inspect).
    features : str or sequence of str, optional
        Names and patterns of columns with features, for :func:`segment_search`; ``"*"`` are all
        that are nothing else and do not name, number or time the rows. Cells may be missing.
    classes, pos_label, from_logits, renormalise, drop_missing, drop_labels, ordered
        As in :meth:`Predictions.of`; column names may carry the classes, and ``drop_missing`` may
        be the largest share of rows to leave out for want of a prediction or an outcome.
    per_character, percent, one_model : bool, default False
        Divide the log-likelihoods of lm-evaluation-harness by the characters of the options, as its
        ``acc_norm`` does; divide probabilities by 100, with or without a sign; and take rows for
        those of one model, whatever a column such as ``model`` or names of files say.
    format : str, optional
        What the file is, if its name and content do not say so: ``csv``, ``json``, ``parquet``,
        ``arrow``, ``excel``, ``npz``, ``npy``, ``lm-eval``, ``inspect`` or ``helm``.
    sheet : str, optional
        Of an Excel file with several sheets of numbers, the one to read.
    time, horizon : str and int, optional
        Of forecasts several steps ahead, as in :meth:`Predictions.of`.
    event, strata : str, optional
        With ``time``, in place of ``label``, the columns of :class:`Followup`, of an event that
        occurs by ``horizon``, which is then a time, also with its unit where the name of ``time``
        says one: ``"5years"``. Of words ``classes`` are those for 0, 1, 2: ``["alive|lost",
        "died of it", "other death"]``, or ``pos_label`` names the event of two.
    multilabel : bool, default False
        Whether rows have several labels, as in :meth:`Predictions.of_labels`: of columns ``p_a``,
        ``p_b`` and ``y_a``, ``y_b``, unless ``probs`` and ``label`` are other patterns.
    rounded : bool or "auto", default "auto"
        As in :meth:`Predictions.of`.

    Raises
    ------
    FileNotFoundError
        When there is no such file.
    InvalidPredictionsError
        When the file cannot be read, a column or cell is missing, more than one reading is
        possible, or the values are not predictions. Rows are counted from 1.
    ImportError
        Without what ``caltest[parquet]`` (also for Arrow and Zstandard) or ``caltest[excel]`` adds.
    """
    if multilabel:
        probs, label = probs or "p_*", label or "y_*"
    request = Request(
        *(probs, label, predicted_label, weights, clusters, by, ids, folds, classes, pos_label),
        *(from_logits, renormalise, percent, per_character, drop_missing, one_model, format),
        *(time, event, horizon, strata, features, ordered, multilabel),
        drop_labels=drop_labels,
        sheet=sheet,
        rounded=rounded,
    )
    if is_table(path):
        source = with_event(source_in_memory(at_hand(path, "table")), label)
        return read_chosen(source, request, chosen_of(source, request))[0]
    parts = parts_of(path)
    if len(parts) == 1:
        with source_of(parts[0], request) as source:
            return read_chosen(source, request, chosen_of(source, request))[0]
    refuse_pooling(parts, one_model)
    source, chosen = pooled(parts, request)
    data, rows = read_chosen(source, request, chosen)
    if not one_model and rows.size == sum(size for _, size in source.parts):
        refuse_same_labels(data.probs, data.labels, source)
    return data


def read_forecasters(
    path: str | PathLike[str], probs: str, label: Columns | None = None, **options: Any
) -> dict[str, Predictions]:
    """Read several forecasters from one file, each a column or a pattern of columns.

    As :func:`read_predictions`; with ``drop_missing``, the rows are those that all of them have.
    """
    request = Request(probs, label, **options)
    with source_of(path, request) as source:
        parts = [part.strip() for part in probs.split(",")]
        names = parts if len(parts) > 1 else named(source.names, parts).probs
        requests = {name: replace(request, probs=name) for name in names}
        read = {n: read_chosen(source, r, chosen_of(source, r)) for n, r in requests.items()}
    common = reduce(np.intersect1d, [rows for _, rows in read.values()])
    if common.size == 0:
        raise InvalidPredictionsError("there is no row for which all forecasters have a forecast")
    note = f"paired on the {several(len(common), 'row')} that all forecasters have"
    return {
        name: replace(data, notes=(*data.notes, note)).take(np.isin(rows, common))
        for name, (data, rows) in read.items()
    }


class Growing(NamedTuple):
    """Rows of a file that is still being written, by their places in the file, from 0.

    ``waits`` marks rows that have no label yet: the one that they carry means nothing.
    ``unfinished`` marks that of a last line without its end, which waits, too. ``columns`` are
    those of the predictions and of the labels.
    """

    data: Predictions
    rows: IntArray
    waits: BoolArray
    unfinished: BoolArray
    columns: tuple[str, ...]


def read_growing(
    path: str | PathLike[str],
    probs: str | Sequence[str] | None = None,
    label: str | Sequence[str] | None = None,
    **options: Any,
) -> Growing:
    """Read a file that is still being written; as :func:`read_predictions`.

    With ``drop_missing`` rows without a prediction are left out; those without a label wait.
    ``ids`` are the times of the rows; without them these must be in the order of their dates.
    """
    request = Request(probs, label, **options)
    with source_of(path, request) as source:
        outcomes = choose_labels(source, label).probs
        columns = map(np.atleast_1d, source.read(outcomes))
        absent = [cells.missing(column) | cells.pending(column) for column in columns]
        unfinished = np.zeros_like(absent[0])
        if Path(path).suffix.lower() in (*ENDINGS["csv"], ".jsonl", ".ndjson"):
            unfinished[-1] = Path(path).read_bytes()[-1:] != b"\n"
        waits = np.any([*absent, unfinished], axis=0)

        def read(names: Sequence[str]) -> list[Column]:
            columns = source.read(names)
            for place, name in enumerate(names):
                column = columns[place]
                if name in outcomes and waits.all():
                    columns[place] = np.zeros(len(column), dtype=np.int64)
                elif name in outcomes:  # any label that occurs, where there is none yet
                    waiting = waits.reshape(-1, *[1] * (column.ndim - 1))
                    columns[place] = np.where(waiting, column[~waits][0], column)
            return columns

        complete = replace(source, read=read)
        with warnings.catch_warnings():
            if waits.any():  # labels that mean nothing are no reason for doubt
                warnings.simplefilter("ignore", DoubtfulInputWarning)
            chosen = chosen_of(complete, request)
            data, rows = read_chosen(complete, request, chosen)
        if request.ids is None and not source.log:
            data = replace(data, notes=(*data.notes, *_order_note(source, chosen.wanted)))
        names = (*chosen.choice.probs, *chosen.outcomes)
        return Growing(data, rows, waits[rows], unfinished[rows], names)


def _order_note(source: Source, others: Sequence[str]) -> list[str]:
    """Say that rows are taken in their order beside a column of their dates; refuse another."""
    dates = [name for name in source.names if key(name) in {*DATES, "time"} and name not in others]
    for name, times in times_among(source, dates):
        if (np.diff(times) < 0.0).any():
            row = int(np.argmax(np.diff(times) < 0.0)) + 2
            raise InvalidPredictionsError(
                f"rows are bet on in their order, and row {row}, counted from 1, is earlier than "
                f"row {row - 1} by column {name}: say --time {name}",
                [("--time", name)],
            )
        return [f"rows are taken in their order, and an alarm has no date without --time {name}"]
    return []


# ------------------------------------------------------------------------------
# From a file to predictions: its columns, what they mean, and a note of what was understood.


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
    names, others = (marks(keys).astype(str).tolist() for keys in (rows, listed))
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
    return of_table(table, request), table.rows


# ------------------------------------------------------------------------------
# Several files: of one model, read as one table; of several models, brought into one order.


#: What names of files call models; each is told from others by the word that it is in.
_FAMILIES = re.compile(
    "model|baseline|recalibrated|gpt|claude|llama|gemini|mistral|qwen|deepseek|bert|resnet|vgg|"
    "densenet|lenet|vit|xgb|lgbm|lightgbm|catboost|forest|logreg|logistic|svm|bayes"
)


#: Logarithm of the chance below which equal labels in one order are no chance.
_SURPRISE = float(np.log(1e-6))


def parts_of(paths: object) -> list[Path]:
    """Return the files that paths and patterns name, those of patterns in order."""
    if isinstance(paths, (str, PathLike)):
        paths = [paths]
    elif not (isinstance(paths, Sequence) and all(isinstance(p, (str, PathLike)) for p in paths)):
        raise TypeError(
            f"path is a {type(paths).__name__}, not the names of files: values in memory are for "
            "Predictions.of(probs, labels), tallies for Tallies.of or Tallies.from_dask"
        )
    if not paths:
        raise InvalidPredictionsError("paths is empty: name a file")
    parts: list[Path] = []
    for path in map(fspath, paths):
        pattern = bool(set("*?[") & set(path)) and not Path(path).exists()
        matches = sorted(glob.glob(path)) if pattern else [path]
        if not matches:
            raise FileNotFoundError(f"no file is like {path}")
        if path != "-" and not Path(matches[0]).exists():
            raise FileNotFoundError(f"there is no file {path}")
        parts += map(Path, matches)
    for i, part in enumerate(parts):
        if part in parts[:i]:
            raise StatisticError(f"{part} is named twice: each part counts once")
    return parts


def refuse_pooling(parts: Sequence[Path], one_model: bool = False) -> dict[str, Path]:
    """Refuse a file that is a copy of another, and files that names say are of several models.

    Returns the files by their content.
    """
    by_content: dict[str, Path] = {}
    for part in parts:
        other = by_content.setdefault(content_mark(part), part)
        if other is not part:
            raise StatisticError(f"{part} is a copy of {other}: each part counts once")
    names = {word for part in parts if (word := _model_in(part.stem))}
    if len(names) > 1 and not one_model:
        raise StatisticError(
            f"these files seem to be of several models ({', '.join(sorted(names))}), which are not "
            f"pooled unasked: {_of_two(parts)}",
            [("compare",), ("--one-model",)],
        )
    return by_content


def _of_two(parts: Sequence[Path | str]) -> str:
    """Say which commands take files of two models, and what to say of files of one."""
    new, old = parts if len(parts) == 2 else ("NEW", "OLD")
    return (
        f"caltest compare {new} {old} compares them, caltest gate {new} --against {old} --margin "
        "0.01 says whether the first may replace the second; if they are one model's, say "
        "one_model=True"
    )


def _model_in(stem: str) -> str:
    """Return what the name of a file calls the model, if anything."""
    words = re.split(r"[^a-z0-9.]+", stem.lower())
    for word, following in zip(words, [*words[1:], ""], strict=True):
        if word == "model":  # model_a, model_2
            return f"model {following}"
        if _FAMILIES.search(word):
            return word
    return ""


def pooled(parts: Sequence[Path], request: Request) -> tuple[Source, Chosen]:
    """Return several files as one table, and which of its columns are what, as the first says."""
    with source_of(parts[0], request) as first:
        chosen = chosen_of(first, request)
        names, log = first.names, first.log
    models = [name for name in names if key(name) in MODELS]
    heads, ids = list(dict.fromkeys([*chosen.wanted, *models])), _ids_among(names)
    tables: list[dict[str, Column]] = []
    notes: list[str] = []
    for part in parts:
        with source_of(part, request) as source:
            refuse_unknown(heads, source.names)
            ids = [name for name in ids if name in source.names]
            read = list(dict.fromkeys([*heads, *ids]))
            tables.append(dict(zip(read, map(np.atleast_1d, source.read(read)), strict=True)))
            notes += source.notes
            for name in heads:
                shape, first_shape = (table[name].shape[1:] for table in (tables[-1], tables[0]))
                if shape != first_shape:
                    raise InvalidPredictionsError(
                        f"column {name} holds rows of shape {shape}, and of shape {first_shape} "
                        f"in {parts[0].name}"
                    )
    every = dict.fromkeys([*heads, *ids])
    columns = {name: np.concatenate([table[name] for table in tables]) for name in every}
    lengths = [len(table[heads[0]]) for table in tables]
    sizes = tuple((part.name, n) for part, n in zip(parts, lengths, strict=True))
    source = Source(
        [name for name in names if name in columns or name not in _ids_among(names)],
        lambda heads: [columns[name] for name in heads],
        log=log,
        notes=tuple(dict.fromkeys(notes)),
        parts=sizes,
    )
    return source, chosen


def _ids_among(names: Sequence[str]) -> list[str]:
    """Return the first column whose name says that it names rows."""
    return [name for name in names if IDS & {*words(name)}][:1]


def refuse_same_labels(probs: FloatArray, labels: IntArray, source: Source) -> None:
    """Refuse files with the same labels in the same order: predictions of the same rows.

    The order is also that of the first column whose name says that it names rows.
    """
    sizes = source.parts
    ends = np.cumsum([size for _, size in sizes])
    rows = [np.arange(end - size, end) for end, (_, size) in zip(ends, sizes, strict=True)]
    pairs = [*zip(combinations(sizes, 2), combinations(rows, 2), strict=True)]
    for name in _ids_among(source.names):
        ids = marks(source.read([name])[0])
        rows = [part[np.argsort(ids[part], kind="stable")] for part in rows]
        ordered = zip(combinations(sizes, 2), combinations(rows, 2), strict=True)
        pairs += [(two, (a, b)) for two, (a, b) in ordered if np.array_equal(ids[a], ids[b])]
    for (a, b), (first, second) in pairs:
        if a[1] != b[1] or not np.array_equal(labels[first], labels[second]):
            continue
        shares = np.bincount(labels[first]) / a[1]
        if a[1] * np.log((shares**2).sum()) < _SURPRISE and (probs[first] != probs[second]).any():
            raise InvalidPredictionsError(
                f"{a[0]} and {b[0]} have the same labels in one order and other probabilities, "
                f"as two models of the same rows have: {_of_two([a[0], b[0]])}",
                [("compare",), ("--one-model",)],
            )


def shared_ids(paths: Sequence[Path]) -> str | None:
    """Return the column by which the rows of all files are named, as its name says."""
    with ExitStack() as stack:
        return shared_ids_arguments([stack.enter_context(source_of(p, Request())) for p in paths])


def lent_labels(paths: Iterable[Path]) -> dict[Path, dict[str, Path]]:
    """Return the label= of files without the column of labels that another has: that other."""
    columns: dict[Path, list[str]] = {}
    with ExitStack() as stack:
        sources = {path: stack.enter_context(source_of(path, Request())) for path in paths}
        for path, source in sources.items():
            with suppress(InvalidPredictionsError):
                columns[path] = choose_labels(source, None).probs
        return {
            path: {"label": other}
            for path in sources.keys() - columns.keys()
            for other, labels in columns.items()
            if not {*labels} & {*sources[path].names}
        }
