"""Reading predictions from files of many formats and logs of evaluations. Nothing is unpickled."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import replace
from functools import reduce
from os import PathLike
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np

from caltest._base.arrays import BoolArray, IntArray
from caltest._base.written import several
from caltest.errors import DoubtfulInputWarning, InvalidPredictionsError
from caltest.io.assembly import FORMATS as FORMATS
from caltest.io.assembly import read_chosen, source_of
from caltest.io.opening import ENDINGS
from caltest.io.pooling import parts_of, pooled, refuse_pooling, refuse_same_labels
from caltest.predictions import Predictions
from caltest.tables import cells
from caltest.tables.chosen import chosen_of
from caltest.tables.columns import choose_labels, named
from caltest.tables.meaning import times_among
from caltest.tables.names import DATES, key
from caltest.tables.source import Column, Request, Source

#: Of one column its name, or that of a file; of several their names, or a pattern.
Columns = str | PathLike[str] | Sequence[str]


def read_predictions(
    path: str | PathLike[str] | Sequence[str | PathLike[str]],
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
    rounded: bool | Literal["auto"] = False,
) -> Predictions:
    """Read probabilities and labels from a file; the first of their ``notes`` says what it has.

    One pass over the file, text by pyarrow where installed; other columns are not looked at.

    Parameters
    ----------
    path : path, pattern such as ``"part-*.csv"``, or sequence of them
        Files of one model are read one after the other, with the columns of the first.
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
    rounded : bool or "auto", default False
        Leave out rows of two classes whose probability is 0 or 1, as these may be rounded: an
        outcome of probability 0 is else one that cannot be. ``"auto"``: if there is such an
        outcome, all values are multiples of 0.01 or more, and half of that step explains it.

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
