"""A note on labels that are the majority of votes, which stand beside them."""

from __future__ import annotations

import re
from itertools import permutations
from typing import TYPE_CHECKING

import numpy as np

from caltest._base.arrays import FloatArray, IntArray
from caltest.data import Predictions
from caltest.errors import spelt
from caltest.read.contract import Chosen
from caltest.read.formats import Table

if TYPE_CHECKING:
    import polars as pl

#: Rows that are looked at, and columns among which pairs of votes for two classes are sought.
LINES_SEEN, MOST = 10_000, 12


#: What such a pair is called: goals of two teams are no votes on who wins.
OF_VOTES = re.compile(r"vote|annot|rater|judge|agree|^n?_?(yes|no)$", re.IGNORECASE)


def majority_note(table: Table, chosen: Chosen, data: Predictions, rows: IntArray) -> str:
    """Return a note if unused columns hold votes whose majority the label is; "" if none do.

    For two classes these are two columns of counts; for more, a column for each class, with its
    name at the end, of counts or shares. ``rows`` (n,) are the places of the rows in the table.
    """
    if {"votes", "items", "event"} & chosen.terms.keys() or data.multilabel:
        return ""
    names = [
        name for name, kind in table.schema.items()
        if name not in chosen.used and kind.is_numeric()
    ]  # fmt: skip
    families = _families(names, data)
    columns = sorted({name for family in families for name in family})
    if not columns:
        return ""
    head = table.frame.select(columns).head(LINES_SEEN).collect()
    here = rows < head.height
    labels = data.labels[here]
    for family in families:
        votes = _numbers(head, family, rows[here])
        if votes is not None and _is_majority(votes, labels):
            listed = ", ".join(family)
            return spelt(
                f"{chosen.name('label')} is the majority of {listed}: another outcome than a vote, "
                "on which models that are right for every item can be rejected; votes= (--votes) "
                "takes the votes themselves"
            )
    return ""


def _families(names: list[str], data: Predictions) -> list[tuple[str, ...]]:
    """Return the families of columns that may hold votes, in the order of the classes.

    For two classes they are ordered pairs of columns.
    """
    classes = [str(c).lower() for c in data.classes or range(data.n_classes)]
    by_end: dict[str, dict[str, str]] = {}
    for name in names:
        for end in classes:
            if name.lower().endswith(end):
                by_end.setdefault(name[: len(name) - len(end)].lower(), {})[end] = name
    whole = (members for members in by_end.values() if len(members) == len(classes))
    found = [tuple(members[end] for end in classes) for members in whole]
    called = [name for name in names if OF_VOTES.search(name)]
    if data.n_classes == 2 and len(called) <= MOST:
        found += [pair for pair in permutations(called, 2) if pair not in found]
    return found


def _numbers(head: pl.DataFrame, family: tuple[str, ...], rows: IntArray) -> FloatArray | None:
    """Return the cells (n, K) of a family of columns.

    None if they are neither counts nor shares.
    """
    frame = head.select(family)
    if any(column.null_count() for column in frame.get_columns()):
        return None
    votes = np.asarray(frame.to_numpy(), dtype=np.float64)[rows]
    counts = bool((votes % 1.0 == 0.0).all())
    shares = len(family) > 2 and np.allclose(votes.sum(axis=1), 1.0, atol=1e-3)
    return votes if votes.size and votes.min() >= 0.0 and (counts or shares) else None


def _is_majority(votes: FloatArray, labels: IntArray) -> bool:
    """Return whether labels (n,) are the classes with most votes.

    Votes (n, K) have to be divided in some rows.
    """
    ordered = np.sort(votes, axis=1)
    clear = ordered[:, -1] > ordered[:, -2]
    mixed = (ordered[:, -2] > 0.0).mean() >= 0.05
    seen = np.unique(labels[clear]).size > 1
    return bool(mixed and seen and (votes.argmax(axis=1) == labels)[clear].all())
