"""Predictions of several models for the same rows, brought into one order."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace

import numpy as np

from caltest._base.arrays import AnyArray
from caltest._base.containers import as_ndarray, column_of, names_of
from caltest._base.written import first_of
from caltest.errors import InvalidPredictionsError
from caltest.predictions.data import Predictions
from caltest.predictions.reading import Facts
from caltest.tables import cells
from caltest.tables.columns import choose_labels
from caltest.tables.names import IDS, LABELS, words
from caltest.tables.source import Source


def shared_ids(tables: Sequence[Source]) -> str | None:
    """Return the column by which rows of all tables are named, as its name says.

    In one table at least it names each row once; rows of others that it names twice are refused.
    """
    for name in (n for n in tables[0].names if IDS & {*words(n)}):
        if all(name in table.names for table in tables):
            columns = [cells.marks(table.read([name])[0]).astype(str) for table in tables]
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
    rows = [place.get(name, -1) for name in cells.marks(column).astype(str).tolist()]
    return data.labels[rows]


def source_in_memory(table: object) -> Source:
    """Return a table in memory, whose columns are read by their names as texts."""
    columns = {str(name): name for name in names_of(table) or ()}

    def read(names: Sequence[str]) -> list[AnyArray]:
        return [as_ndarray(column_of(table, columns[name]), name) for name in names]

    return Source([*columns], read, frame=True)


def match_rows(data: dict[str, Predictions]) -> dict[str, Predictions]:
    """Bring predictions of the same rows into the order of the first, if all have ids."""
    if any(d.ids is None for d in data.values()):
        return data
    ids = {name: np.asarray(d.ids).astype(str).tolist() for name, d in data.items()}
    (first, reference), *others = ids.items()
    for name, listed in ids.items():
        twice = [i for i, count in Counter(listed).items() if count > 1]
        _refuse(f"{name} has ids more than once", twice, "keep one row of each")
    matched, allowed, notes = {first: data[first]}, set(reference), list(data[first].notes)
    for name, listed in others:
        place = {i: row for row, i in enumerate(listed)}
        for a, b, less in (
            (name, first, [i for i in listed if i not in allowed]),
            (first, name, [i for i in reference if i not in place]),
        ):
            advice = f"a paired comparison needs the same rows of both: leave these out of {a}"
            _refuse(f"{b} lacks ids of {a}", less, advice)
        rows = np.array([place[i] for i in reference])
        moved = listed != reference
        notes += [f"rows of {name} brought into the order of {first} by their ids"] * moved
        matched[name] = data[name].take(rows) if moved else data[name]
        (unlike,) = np.nonzero(matched[name].labels != data[first].labels)
        differ = [reference[i] for i in unlike]
        _refuse(f"{name} and {first} have different labels of ids", differ, "one of them is wrong")
    return {**matched, first: replace(data[first], notes=tuple(notes))}


def _refuse(what: str, ids: list[str], advice: str) -> None:
    if ids:
        raise InvalidPredictionsError(f"{what}: {first_of(ids)} ({len(ids)} in all); {advice}")
