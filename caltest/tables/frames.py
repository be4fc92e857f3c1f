"""Tables in memory, read as files are: columns by their names, and arrays that lie beside them."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any

from caltest._base.containers import as_column, as_ndarray, can, column_of, names_of, opened
from caltest._base.features import as_features
from caltest._base.labels import column_classes
from caltest.errors import InvalidPredictionsError
from caltest.tables import cells
from caltest.tables.amounts import with_event
from caltest.tables.chosen import chosen_of
from caltest.tables.columns import no_column
from caltest.tables.meaning import Understood, understood
from caltest.tables.source import Column, Request, Source


def arranged(probs: Any, facts: Mapping[str, Any], request: Request) -> Any | Understood:
    """Return probabilities at hand, or what was understood where they had to be read.

    That is so of a table whose labels or facts are named, or to be found, among its columns; and of
    arrays whose incomplete rows are to be left out. Queries are run, once.
    """
    rows = {what: values for what, values in facts.items() if values is not None}
    _refuse_misaligned(probs, rows)
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


def _refuse_misaligned(probs: Any, others: Mapping[str, Any]) -> None:
    index = _index(probs)
    for name, values in others.items():
        if can(probs, "fetchnumpy") and can(values, "fetchnumpy"):
            raise InvalidPredictionsError(
                f"probs and {name} are two relations, whose rows have no common order: pass one "
                f"relation with all columns, and {name} as the name of its column"
            )
        other = _index(values)
        if index is None or other is None or len(index) != len(other) or index.equals(other):
            continue
        pairs = enumerate(zip(index, other, strict=True))
        for row, (a, b) in ((row, pair) for row, pair in pairs if pair[0] != pair[1]):
            raise InvalidPredictionsError(
                f"probs and {name} have different indexes, first in row {row} ({a!r} and {b!r}): "
                f"align them first, for instance with {name}.loc[probs.index], or pass "
                f"{name}.to_numpy() if the rows are in the same order as they are"
            )


def _index(values: Any) -> Any:
    """Return the index of a pandas object; lists have an ``index``, too, but a method."""
    index = values.index if can(values, "index") else None
    return index if can(index, "equals") else None
