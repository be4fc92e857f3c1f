"""How arguments become predictions: arrays, and tables in memory."""

from __future__ import annotations

import re
import sys
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any, Unpack

import numpy as np

from caltest._base.arrays import AnyArray, one_of
from caltest._base.containers import (
    as_column,
    as_ndarray,
    can,
    column_of,
    is_table,
    names_of,
    opened,
)
from caltest._base.features import as_features
from caltest._base.naming import in_a_file
from caltest._base.written import Fields, unknown
from caltest.data import numbers as reading
from caltest.data.followup import Followup
from caltest.data.labels import (
    Facts,
    Request,
    column_classes,
    marks,
    refuse_reordered,
)
from caltest.data.predictions import Predictions, refuse_misaligned
from caltest.data.rounded import without_rounded
from caltest.errors import InvalidPredictionsError
from caltest.read import source as cells
from caltest.read.columns import choose_labels, no_column, with_event
from caltest.read.meaning import Understood, chosen_of, doubt_labels, understood
from caltest.read.source import IDS, LABELS, Column, Source, words


def read_arguments(probs: object, labels: object = None, **facts: Unpack[Facts]) -> Predictions:
    """Return checked :class:`Predictions` of arrays, or of a table in memory.

    ``facts`` are those of :meth:`Predictions.of`. Beside a table, labels and facts may be names of
    its columns or arrays. ``drop_missing`` and ``drop_labels`` leave out rows of tables and arrays.
    """
    if type(probs) is np.ndarray and not facts:
        return Predictions.of(probs, labels)
    options: Fields = {**facts}
    choices = {what: options.pop(what) for what in _CHOICES & options.keys()}
    if not is_table(probs) and not any(choices.values()):
        return Predictions.of(probs, labels, **options)
    if strange := options.keys() - Facts.__annotations__.keys():
        raise unknown("Predictions.of", min(strange), Facts.__annotations__)
    one_of("drop_missing", choices.get("drop_missing", False), (True, False))
    beside = {"labels": labels} | {what: options.pop(what, None) for what in _OF_ROWS}
    followup = labels if isinstance(labels, Followup) else None
    if followup is not None:
        beside["labels"] = followup.labels
    options.setdefault("rounded", "auto")
    request = Request(**options, **choices)
    table = arranged(probs, beside, request)
    if isinstance(table, Understood):
        data = of_table(table, request)
        return data if followup is None else Predictions.of(data, followup)
    if request.predicted_label is not None:
        raise InvalidPredictionsError("predicted_label names a column of a table with labels")
    return _beside_labels(table, labels, beside, options)


#: Which rows and columns of a table are meant.
_CHOICES = {"predicted_label", "drop_missing", "drop_labels"}


#: What is known of each row.
_OF_ROWS = ("weights", "clusters", "by", "ids", "folds", "features", "time", "items")


def _beside_labels(table: object, labels: object, beside: Fields, options: Fields) -> Predictions:
    """Return predictions for columns of probabilities, which may name classes, and an array."""
    notes: tuple[str, ...] = ()
    columns, options = names_of(table), {**options}
    facts = {what: beside[what] for what in _OF_ROWS}
    if columns is None:
        return Predictions.of(table, labels, **options, **facts)
    with in_a_file(range(sys.maxsize), list(map(str, columns))):
        if options.get("classes") is not None:
            refuse_reordered(columns, options["classes"])
        elif labels is not None and options.get("pos_label") is None:
            truth = reading.as_array(beside["labels"], "labels")
            if (classes := column_classes(table, truth)) is not None:
                options["classes"] = classes
                notes = (f"classes named by the columns: {', '.join(map(str, classes))}",)
        data = Predictions.of(as_ndarray(table, "probs"), labels, **options, **facts)
    return replace(data, notes=(*notes, *data.notes))


def of_table(table: Understood, request: Request) -> Predictions:
    """Return the predictions of a table whose columns are understood."""
    event = None if isinstance(table.labels, Followup) else request.pos_label
    with table.naming:
        data = Predictions.of(
            *(table.probs, table.labels, table.classes),
            from_logits=table.from_logits, pos_label=event, ordered=request.ordered,
            renormalise=request.renormalise, horizon=request.ahead, rounded=False, **table.facts,
        )  # fmt: skip
    doubt_labels(table.chosen, data.labels, data.probs)
    notes = (*table.notes, *data.notes)
    data = replace(data, notes=notes, unused=table.unused, places=table.rows)
    return without_rounded(data, request.rounded)


# ------------------------------------------------------------------------------
# Tables in memory, read as files are: columns by their names, and arrays that lie beside them.


def arranged(probs: Any, facts: Mapping[str, Any], request: Request) -> Any | Understood:
    """Return probabilities at hand, or what was understood where they had to be read.

    That is so of a table whose labels or facts are named, or to be found, among its columns; and of
    arrays whose incomplete rows are to be left out. Queries are run, once.
    """
    rows = {what: values for what, values in facts.items() if values is not None}
    _refuse_relations(probs, rows)
    table = opened(probs, "probs")
    keys = names_of(table)
    features = rows.pop("features", None)
    listed = [features] if isinstance(features, str) else features
    if isinstance(listed, (list, tuple)) and all(isinstance(name, str) for name in listed):
        request = replace(request, features=listed)
    named = {what: name for what, name in rows.items() if isinstance(name, str)}
    by = rows.get("by")
    names = by if isinstance(by, (list, tuple)) and all(isinstance(b, str) for b in by) else ()
    several = bool(names) and {*names} <= {*(keys or ())}
    if several:
        rows["by"] = {name: column_of(table, name) for name in names}
    if keys is not None and (named or several or request.features or "labels" not in rows):
        columns: dict[str, Any] = {str(key): column_of(table, key) for key in keys}
        _refuse_absent(named, columns)
    elif "labels" in rows and (request.drop_missing or request.drop_labels):  # of arrays
        truth, classes = as_column(rows["labels"], "labels"), request.classes
        if classes is None and truth.ndim == 1:
            classes = column_classes(table, cells.labels(truth[~cells.missing(truth)]))
        keys, columns = ["probs"], {"probs": table}
        request = replace(request, probs="probs", classes=classes)
    else:
        return table
    groups = rows.get("by")
    groups = groups if names_of(groups) is not None else None
    for what, values in rows.items():
        if what not in named and values is not groups:
            columns[f"{what}="], named[what] = values, f"{what}="

    def read(wanted: Sequence[str]) -> list[Column]:
        return [as_column(columns[name], name) for name in wanted]

    question = replace(request, label=named.pop("labels", None))
    question = replace(question, **dict[str, Any](named))
    beside = [name for name in columns if name not in map(str, keys)]
    source = with_event(Source([*map(str, keys), *beside], read, frame=True), question.label)
    arguments = understood(source, question, chosen_of(source, question))
    if keys == ["probs"] and table is columns["probs"]:  # arrays: there were no columns to find
        arguments = replace(arguments, notes=arguments.notes[1:])
    if features is not None and request.features is None:
        n = len(source.read(source.names[:1])[0])
        arguments.facts["features"] = as_features(features, n)[arguments.rows]
    if groups is not None:
        arguments.facts["by"] = {
            key: as_ndarray(groups[key], f"by[{key!r}]")[arguments.rows]
            for key in names_of(groups) or ()
        }
    return arguments


def _refuse_absent(named: Mapping[str, str], columns: Collection[str]) -> None:
    for what, name in named.items():
        several = what in ("labels", "clusters") and re.search(r"[*?[,<>=]", name)
        if name not in columns and not several:
            raise InvalidPredictionsError(f"{what}: {no_column(name, columns)}")


def _refuse_relations(probs: object, others: Mapping[str, object]) -> None:
    """Refuse two relations of duckdb, and columns of pandas whose indexes differ."""
    for name, values in others.items():
        if can(probs, "fetchnumpy") and can(values, "fetchnumpy"):
            raise InvalidPredictionsError(
                f"probs and {name} are two relations, whose rows have no common order: pass one "
                f"relation with all columns, and {name} as the name of its column"
            )
    refuse_misaligned(probs, others)


def shared_ids(tables: Sequence[Source]) -> str | None:
    """Return the column by which rows of all tables are named, as its name says.

    In one table at least it names each row once; rows of others that it names twice are refused.
    """
    for name in (n for n in tables[0].names if IDS & {*words(n)}):
        if all(name in table.names for table in tables):
            columns = [marks(table.read([name])[0]).astype(str) for table in tables]
            once = [c.ndim == 1 and np.unique(c).size == len(c) for c in columns]
            if any(once) and all(column.ndim == 1 for column in columns):
                return name
    return None


def with_ids(models: Sequence[object], labels: object, facts: Facts) -> Facts:
    """Return facts with the ids that tables share if nobody names any; ``labels`` are of all."""
    if "ids" in facts or not (labels is None or isinstance(labels, str)):
        return facts
    if any(names_of(model) is None for model in models):
        return facts
    tables = [source_in_memory(model) for model in models]
    name = shared_ids(tables)
    return facts if name is None else {**facts, "ids": name}


def has_labels(model: object, labels: object) -> bool:
    """Say whether a model is a table in memory with labels: called so, or found if none are given.

    ``labels`` are those that were given.
    """
    names = {str(name).lower() for name in names_of(model) or ()}
    if labels is None and names:
        with suppress(InvalidPredictionsError):
            return bool(choose_labels(source_in_memory(model), None).probs)
    return any(names & {*tier} for tier in LABELS)


def lent_labels(data: Predictions, model: object, ids: object) -> AnyArray:
    """Return labels for the rows of another model: of the same ids, if a column of both has them.

    Rows without such an id, or with one that occurs twice, are refused when they are matched.
    """
    if data.ids is None or not isinstance(ids, str) or names_of(model) is None:
        return data.labels
    place = {str(name): row for row, name in enumerate(data.ids)}
    (column,) = source_in_memory(model).read([ids])
    rows = [place.get(name, -1) for name in marks(column).astype(str).tolist()]
    return data.labels[rows]


def source_in_memory(table: object) -> Source:
    """Return a table in memory, whose columns are read by their names as texts."""
    columns = {str(name): name for name in names_of(table) or ()}

    def read(names: Sequence[str]) -> list[AnyArray]:
        return [as_ndarray(column_of(table, columns[name]), name) for name in names]

    return Source([*columns], read, frame=True)
