"""Predictions of several models for the same rows, brought into one order."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from caltest._base.arrays import AnyArray
from caltest._base.containers import as_ndarray, column_of, names_of
from caltest.errors import InvalidPredictionsError
from caltest.predictions.data import Predictions
from caltest.predictions.reading import Facts
from caltest.tables import cells
from caltest.tables.names import IDS, LABELS, words
from caltest.tables.source import Source


def shared_ids(tables: Sequence[Source]) -> str | None:
    """Return the column by which rows of all tables are named, once each, as its name says."""
    for name in (n for n in tables[0].names if IDS & {*words(n)}):
        if all(name in table.names for table in tables):
            columns = [cells.marks(table.read([name])[0]).astype(str) for table in tables]
            if all(
                column.ndim == 1 and np.unique(column).size == len(column) for column in columns
            ):
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


def has_labels(model: object) -> bool:
    """Say whether a model is a table in memory with a column that is called labels."""
    names = {str(name).lower() for name in names_of(model) or ()}
    return any(names & {*tier} for tier in LABELS)


def source_in_memory(table: object) -> Source:
    """Return a table in memory, whose columns are read by their names as texts."""
    columns = {str(name): name for name in names_of(table) or ()}

    def read(names: Sequence[str]) -> list[AnyArray]:
        return [as_ndarray(column_of(table, columns[name]), name) for name in names]

    return Source([*columns], read)


def match_rows(data: dict[str, Predictions]) -> dict[str, Predictions]:
    """Bring predictions of the same rows into the order of the first, if all have ids."""
    if any(d.ids is None for d in data.values()):
        return data
    ids = {name: np.asarray(d.ids).astype(str).tolist() for name, d in data.items()}
    (first, reference), *others = ids.items()
    for name, listed in ids.items():
        _refuse(name, "more than once", [i for i, count in Counter(listed).items() if count > 1])
    matched, allowed, notes = {first: data[first]}, set(reference), list(data[first].notes)
    for name, listed in others:
        place = {i: row for row, i in enumerate(listed)}
        _refuse(name, f"that are not in {first}", [i for i in listed if i not in allowed])
        _refuse(first, f"that are not in {name}", [i for i in reference if i not in place])
        rows = np.array([place[i] for i in reference])
        moved = listed != reference
        notes += [f"rows of {name} brought into the order of {first} by their ids"] * moved
        matched[name] = data[name].take(rows) if moved else data[name]
        (unlike,) = np.nonzero(matched[name].labels != data[first].labels)
        _refuse(name, f"with another label than in {first}", [reference[i] for i in unlike])
    return {**matched, first: replace(data[first], notes=tuple(notes))}


def _refuse(name: str, what: str, ids: list[str]) -> None:
    if ids:
        listed = ", ".join(ids[:5]) + (", …" if len(ids) > 5 else "")
        message = f"{name} has ids {what} ({len(ids)} in all): {listed}"
        raise InvalidPredictionsError(f"{message}; rows are matched by ids that both have")
