"""A uniform sample of rows, kept beside sums to answer the questions that sums leave open.

Rows are sampled by a hash of their content, so that any order and splitting gives the same sample;
:func:`shared_rows` pairs the samples of two models.
"""

from __future__ import annotations

from base64 import b64decode, b64encode
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from caltest._base import FloatArray, IntArray
from caltest._base.arrays import AnyArray
from caltest.data import Predictions
from caltest.errors import InvalidPredictionsError, StatisticError
from caltest.nulls.lanes import FIRST_FACTOR, GAMMA, SECOND_FACTOR

#: Rows of a sample, and numbers in their predictions, at most.
ROWS_SAMPLED_AT_MOST, NUMBERS_SAMPLED = 50_000, 2**23


#: Rows of a part whose labels tell it from others.
ROWS_COMPARED = 1024


#: The largest rank: every row may be in the sample.
UNBOUNDED = np.uint64(2**64 - 1)


UIntArray = NDArray[np.uint64]


@dataclass(frozen=True, eq=False)
class RowSample:
    """Random sample of rows that does not depend on batches.

    Those of smallest rank, at most 50 000.

    For many classes at most 2²³ / K rows are kept. The rank of a row is a hash of its number in its
    file and of the first labels of the file, so that every row is equally likely to be chosen. It
    does not depend on predictions: the samples of two models on the same rows have the same rows.
    ``n`` is the number of rows of positive weight from which it was taken, ``rank`` (m,) are the
    ranks, increasing, and ``weights`` is None if all are equal. O(n) for the ranks, O(m log m) to
    add two samples.
    """

    n: int
    rank: UIntArray = field(repr=False)
    probs: FloatArray = field(repr=False)
    labels: IntArray = field(repr=False)
    weights: FloatArray | None = field(default=None, repr=False)

    @classmethod
    def of(
        cls,
        data: Predictions,
        first: int = 0,
        part: np.uint64 | None = None,
        bound: np.uint64 = UNBOUNDED,
    ) -> Self:
        """Return a sample of rows, of which the first has the number ``first`` in its file.

        ``part`` is the hash of the file. Rows with ranks above ``bound``, the bound of a sample to
        which this one will be added, are left out.
        """
        number = np.arange(first, first + data.n, dtype=np.uint64)
        rank = mixed(number * GAMMA + (part_of(data.labels) if part is None else part))
        below, n = rank <= bound, data.n
        if data.weights is not None:
            n = int((data.weights > 0.0).sum())
            below &= data.weights > 0.0
        (rows,) = np.nonzero(below)
        if rows.size > (most := most_rows(data.n_classes)):
            rows = rows[rank[rows] <= np.partition(rank[rows], most - 1)[most - 1]]
        weights = None if data.weights is None else data.weights[rows]
        return cls(n, rank[rows], data.probs[rows], data.labels[rows], weights)._smallest()

    @property
    def bound(self) -> np.uint64:
        """Largest rank that can still enter the sample."""
        full = self.rank.size == most_rows(self.probs.shape[1])
        return np.uint64(self.rank[-1]) if full else UNBOUNDED

    @property
    def remark(self) -> str:
        """Description of the sample for results, such as "a sample of 8192 of 100000 rows".

        Else "".
        """
        whole = self.rank.size == self.n
        return "" if whole else f"a sample of {self.rank.size} of {self.n} rows"

    def _smallest(self) -> Self:
        """Return the sample cut to the rows of smallest rank.

        Equal ranks are ordered by content, so that the order of batches does not matter.
        """
        content = self.labels.astype(np.uint64)
        for column in np.ascontiguousarray(self.probs.T).view(np.uint64):
            content = mixed(content * GAMMA + column)
        order = np.lexsort((content, self.rank))[: most_rows(self.probs.shape[1])]
        weights = None if self.weights is None else self.weights[order]
        columns = self.rank[order], self.probs[order], self.labels[order]
        return type(self)(self.n, *columns, weights)

    def __add__(self, other: RowSample) -> RowSample:
        """Return the sample of both sets of rows: the rows with the smallest ranks."""
        weights = None
        if not (self.weights is None and other.weights is None):
            each = (np.ones(s.rank.size) if s.weights is None else s.weights for s in (self, other))
            weights = np.concatenate([*each])
        columns = ([vars(s)[name] for s in (self, other)] for name in ("rank", "probs", "labels"))
        rank, probs, labels = map(np.concatenate, columns)
        return RowSample(self.n + other.n, rank, probs, labels, weights)._smallest()

    def described(self) -> dict[str, object]:
        """Return the sample as a dictionary that JSON can hold, exact to the bit."""
        columns = {"rank": self.rank, "probs": self.probs, "labels": self.labels}
        columns |= {} if self.weights is None else {"weights": self.weights}
        texts = {name: b64encode(c.tobytes()).decode() for name, c in columns.items()}
        return {"n": self.n, "n_classes": self.probs.shape[1], **texts}

    @classmethod
    def of_description(cls, content: dict[str, Any]) -> Self:
        """Rebuild a sample from :meth:`described`; InvalidPredictionsError for anything else."""

        def column(name: str, kind: str) -> AnyArray:
            return np.frombuffer(b64decode(content[name], validate=True), dtype=kind)

        k, n = content["n_classes"], content["n"]
        if type(k) is not int or type(n) is not int or k < 2:
            raise InvalidPredictionsError("the sample of rows in these tallies is damaged")
        rank, labels = column("rank", "<u8"), column("labels", "<i8")
        probs = column("probs", "<f8").reshape(-1, k)
        weights = column("weights", "<f8") if "weights" in content else None
        sizes = {rank.size, labels.size, len(probs), rank.size if weights is None else weights.size}
        fits = len(sizes) == 1 and rank.size <= min(n, most_rows(k))
        sound = fits and bool(
            (rank[1:] >= rank[:-1]).all()
            and ((probs >= 0.0) & (probs <= 1.0)).all()
            and ((labels >= 0) & (labels < k)).all()
            and (weights is None or (np.isfinite(weights) & (weights > 0.0)).all())
        )
        if not sound:
            raise InvalidPredictionsError("the sample of rows in these tallies is damaged")
        return cls(n, rank, probs, labels, weights)


def shared_rows(a: RowSample, b: RowSample) -> tuple[IntArray, IntArray]:
    """Return (i, j), (m,) each: the places of the rows that two samples have in common.

    StatisticError for samples of other observations.
    """
    alone = [np.unique(s.rank, return_counts=True) for s in (a, b)]
    once = [np.isin(s.rank, rank[n == 1]) for s, (rank, n) in zip((a, b), alone, strict=True)]
    places = [np.flatnonzero(which) for which in once]
    shared, i, j = np.intersect1d(a.rank[places[0]], b.rank[places[1]], return_indices=True)
    i, j = places[0][i], places[1][j]
    least = min(a.rank.size, b.rank.size)
    if a.n != b.n or 2 * shared.size < least or (a.labels[i] != b.labels[j]).any():
        raise StatisticError(
            "these tallies are not of the same observations, cut into the same parts: "
            "paired=False compares models on different observations"
        )
    return i, j


def most_rows(n_classes: int) -> int:
    """Return the largest number of rows that a sample keeps."""
    return min(ROWS_SAMPLED_AT_MOST, max(1, NUMBERS_SAMPLED // n_classes))


def part_of(labels: IntArray) -> np.uint64:
    """Return a hash of the first labels, which tells one part of the rows from another."""
    few = labels[:ROWS_COMPARED].astype(np.uint64)
    number = np.arange(1, few.size + 1, dtype=np.uint64)
    return np.uint64(np.bitwise_xor.reduce(mixed(number * GAMMA + few)))


def mixed(z: UIntArray) -> UIntArray:
    """Return 64 pseudo-random bits for each number (Steele, Lea & Flood 2014), same shape."""
    z = (z ^ (z >> np.uint64(30))) * FIRST_FACTOR
    z = (z ^ (z >> np.uint64(27))) * SECOND_FACTOR
    return z ^ (z >> np.uint64(31))
