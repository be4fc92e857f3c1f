"""Several outcomes of one item: votes of annotators, or answers of repeated runs.

:class:`Votes` counts the outcomes of every item; :func:`rows_of_votes` turns counts into one row a
vote for :meth:`Predictions.of_votes`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from caltest._base.arrays import AnyArray, FloatArray, IntArray
from caltest._base.naming import nth
from caltest.data.numbers import as_array
from caltest.errors import InvalidPredictionsError, Reading

if TYPE_CHECKING:
    from caltest.data.predictions import Predictions

#: How far shares times votes may be from a whole number, as printed shares leave it.
SHARE_ROUNDING = 0.02


@dataclass(frozen=True, eq=False)
class Votes:
    """Items with their predictions and counts of outcomes.

    ``probs`` and ``counts`` have shape (I, K), ``of_row`` (n,) is the item of every row;
    ``weights`` and ``clusters`` (I,) belong to items, None where there are none.
    """

    probs: FloatArray
    counts: IntArray
    of_row: IntArray
    weights: FloatArray | None
    clusters: IntArray | None

    @classmethod
    def of(cls, data: Predictions) -> Votes:
        """Count the votes of every item, numbered by first appearance; O(n + I K)."""
        assert data.items is not None
        of_row, first = numbered(data.items)
        k = data.n_classes
        counts = np.bincount(of_row * k + data.labels, minlength=first.size * k)
        weights = None if data.weights is None else data.weights[first]
        grouped = data.clusters is not None and data.items_in_clusters
        clusters = data.clusters[first] if grouped and data.clusters is not None else None
        return cls(data.probs[first], counts.reshape(-1, k), of_row, weights, clusters)

    @property
    def size(self) -> IntArray:
        """Number of votes of every item, (I,)."""
        return self.counts.sum(axis=1)


def numbered(names: AnyArray) -> tuple[IntArray, IntArray]:
    """Return (item, first): item numbers by first appearance, and the first row of each.

    ``item`` has shape (n,) and ``first`` (I,).
    """
    _, first, inverse = np.unique(names, return_index=True, return_inverse=True)
    order = np.argsort(first)
    number = np.empty(first.size, dtype=np.int64)
    number[order] = np.arange(first.size)
    return number[inverse.ravel()], first[order]


def items_alike(probs: FloatArray, weights: FloatArray | None, items: IntArray) -> bool:
    """Say whether rows of every item have the same predictions and weights, to 1e-9."""
    return all(wrong.size == 0 for _, wrong in _unequal(probs, weights, items))


def _unequal(
    probs: FloatArray, weights: FloatArray | None, items: IntArray
) -> Iterator[tuple[str, IntArray]]:
    """Yield the name of each column and the rows that differ from the first of their item."""
    of_row, first = numbered(items)
    for what, column in (("predictions", probs), ("weights", weights)):
        if column is not None:
            same = np.isclose(column, column[first[of_row]], rtol=0.0, atol=1e-9)
            yield what, np.flatnonzero(~same.reshape(len(of_row), -1).all(axis=1))


def refuse_unequal(probs: FloatArray, weights: FloatArray | None, items: IntArray) -> None:
    """Raise InvalidPredictionsError if rows of one item differ in prediction or weight."""
    for what, wrong in _unequal(probs, weights, items):
        if wrong.size:
            of_row, first = numbered(items)
            row = int(wrong[0])
            raise InvalidPredictionsError(
                f"{nth(int(first[of_row[row]]))} and {nth(row)} are outcomes of one item but have "
                f"different {what}: items= (--items) is for several outcomes of one prediction. "
                "For predictions that differ use clusters= (--clusters)"
            )


#: What to do with shares of votes.
SHARES = "; for shares of votes give the number of votes as well, n_votes="


def rows_of_votes(
    counts: object,
    n_votes: object,
    n: int,
    shares: str = SHARES,
    readings: Sequence[Reading] = (),
) -> tuple[IntArray, IntArray]:
    """Return the item and the label of every vote, (Σ m,) each.

    ``counts`` are whole numbers, or shares where the number of votes of each item is given;
    ``shares`` is the end of the message about shares without one, and ``readings`` are what can be
    done.
    """
    table = np.asarray(as_array(counts, "counts"))
    if table.ndim != 2 or len(table) != n or table.shape[1] < 2:
        raise InvalidPredictionsError(
            f"counts must have a row for each of the {n} items and a column for each class (two "
            f"columns where probs has one: label 0 and label 1); its shape is {table.shape}"
        )
    table = table.astype(np.float64)
    if n_votes is not None:
        size = np.broadcast_to(np.asarray(n_votes, dtype=np.float64), (n,))
        table = table * size[:, None]
    whole = np.rint(table)
    off = np.abs(table - whole) > (0.0 if n_votes is None else SHARE_ROUNDING)
    wrong = np.flatnonzero((off | (whole < 0.0) | ~np.isfinite(table)).any(axis=1))
    if wrong.size:
        row = int(wrong[0])
        remedy = shares if n_votes is None else ", so these shares cannot come from that many votes"
        raise InvalidPredictionsError(
            f"counts of {nth(row)} are {table[row].round(4).tolist()}, which are no whole numbers "
            f"≥ 0{remedy}",
            readings if n_votes is None and table.max() <= 1.0 else (),
        )
    whole = whole.astype(np.int64)
    if not whole.any():
        raise InvalidPredictionsError("counts holds no vote")
    item, label = np.nonzero(whole)
    times = whole[item, label]
    return np.repeat(item, times), np.repeat(label, times)
