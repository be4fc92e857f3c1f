"""Questions that guards return, and the rows and columns that they look at.

The guards themselves are in :mod:`caltest.data.doubts` (arrays),
:mod:`caltest.data.spare_columns` (further columns) and :mod:`caltest.read.questioning` (tables). A
:class:`Question` that asks stops a verb unless the user passes ``as_is``.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Self

import numpy as np

from caltest._base.arrays import AnyArray, FloatArray, IntArray
from caltest.errors import Reading

#: A name, or one in double quotes: it needs no brackets within an expression.
PLAIN_NAME = re.compile(r'(?:[A-Za-z_]\w*|"[^"]+")')


@dataclass(frozen=True)
class Question:
    """Evidence in the data against the way they were read, and the readings it supports.

    Attributes
    ----------
    guard : str
        Name of the guard.
    text : str
        The evidence, a clause without a full stop.
    readings : tuple of Reading
        Other readings, each with the condition under which it is right.
    asks : bool
        Whether the user must answer before a verdict is given; if not, it is a doubt.
    """

    guard: str
    text: str
    readings: tuple[Reading, ...] = ()
    asks: bool = True


@dataclass(frozen=True, eq=False)
class Column:
    """Column of a table that no option names, in the form that guards look at.

    ``values`` (n,) are numbers, booleans, or codes into ``words``. A code of −1, a NaN or an
    infinite value is a missing cell. ``sql`` is its name as an SQL expression.
    """

    name: str
    values: AnyArray
    words: tuple[str, ...] | None = None
    sql: str = ""

    def __post_init__(self) -> None:
        if not self.sql:
            plain = PLAIN_NAME.fullmatch(self.name)
            quoted = self.name.replace('"', '""')
            object.__setattr__(self, "sql", self.name if plain else f'"{quoted}"')

    @classmethod
    def of(cls, name: str, values: AnyArray) -> Self:
        """Return a column from an array of any type; text is coded, None is a missing cell."""
        if values.dtype.kind in "biuf":
            return cls(name, values)
        places: dict[str, int] = {}
        cells = (None if v is None or v != v else str(v).strip() for v in values.tolist())
        coded = [-1 if c is None else places.setdefault(c, len(places)) for c in cells]
        return cls(name, np.array(coded, dtype=np.int64), tuple(places))

    @cached_property
    def coded(self) -> tuple[IntArray, tuple[str, ...]] | None:
        """Codes (n,) of text, whole numbers and booleans, with the words; None for fractions."""
        if self.words is not None:
            return self.values, self.words
        values = self.values
        if values.dtype.kind == "f":
            known = np.isfinite(values)
            if (values[known] % 1.0 != 0.0).any():
                return None
            levels, places = np.unique(np.where(known, values, np.inf), return_inverse=True)
            places = np.where(known, places.ravel(), -1)
            return places, tuple(f"{v:.0f}" for v in levels.tolist() if np.isfinite(v))
        levels, places = np.unique(values, return_inverse=True)
        return places.ravel(), tuple(str(int(v)) for v in levels.tolist())

    @cached_property
    def counts(self) -> IntArray | None:
        """Rows of each value, (k,); None for fractions."""
        if self.coded is None:
            return None
        rows, words = self.coded
        return np.bincount(rows + 1, minlength=len(words) + 1)[1:]

    @property
    def n_values(self) -> int:
        """Number of distinct values; 0 for fractions."""
        return 0 if self.counts is None else int(np.count_nonzero(self.counts))

    @property
    def complete(self) -> bool:
        """True if no cell is missing."""
        if self.coded is not None:
            return bool(self.coded[0].min(initial=0) >= 0)
        return bool(np.isfinite(self.values).all())

    def equals(self, word: str) -> str:
        """Return the SQL condition that the column has this value, such as "split = 'test'"."""
        if self.words is not None:
            literal = word.replace("'", "''")
            return f"{self.sql} = '{literal}'"
        if self.values.dtype.kind == "b":
            return self.sql if word == "1" else f"NOT {self.sql}"
        return f"{self.sql} = {word}"


@dataclass(frozen=True, eq=False)
class Rows:
    """Rows as they were read, and the unnamed columns: the input of guards.

    Attributes
    ----------
    probs : ndarray of shape (n,) or (n, K)
        Probability of the event, or of every class.
    labels : ndarray of shape (n,)
        0 and 1, or the number of the class; for follow-up 1 where the event was seen by the
        horizon.
    weights : ndarray of shape (n,), optional
        Weights of rows, including censoring weights.
    clusters, by : ndarray of shape (n,), optional
        Clusters and subgroups that the user named.
    unused : tuple of Column
        Columns that nobody named.
    said : mapping of str to str
        Options by name, as they are written: ``{"probs": "risk", "label": "died"}``.
    named : frozenset of str
        Options that the user gave; others were found by the names of columns.
    classes : tuple of str
        Names of more than two classes, in order, as literals of SQL; empty if not known.
    answers : bool or None
        Whether labels say if an answer was right; None if they may.
    followed : bool
        Whether follow-up stands in the place of labels.
    arrays : bool
        Whether readings are written for arrays in Python, not in SQL over columns.
    first : bool
        Whether these are the first of more rows, which may be sorted by their predictions.
    """

    probs: FloatArray
    labels: IntArray
    weights: FloatArray | None = None
    clusters: AnyArray | None = None
    by: AnyArray | None = None
    unused: tuple[Column, ...] = ()
    said: Mapping[str, str] = field(default_factory=dict)
    named: frozenset[str] = frozenset()
    classes: tuple[str, ...] = ()
    answers: bool | None = False
    followed: bool = False
    arrays: bool = False
    first: bool = False

    @property
    def n(self) -> int:
        return len(self.labels)

    @property
    def risks(self) -> FloatArray | None:
        """Probability of the event of two classes, (n,); None for more classes."""
        if self.probs.ndim == 1:
            return self.probs
        return self.probs[:, 1] if self.probs.shape[1] == 2 else None

    @property
    def outcome(self) -> str:
        """The user's expression for the label or the event."""
        name = "event" if self.followed else "label"
        return self.said.get(name, "the labels" if self.arrays else name)

    def words(self, option: str) -> str:
        """Return the user's expression for an option, or the name of the option."""
        return self.said.get(option, option)

    def where(self, condition: str) -> str:
        """Return a condition joined by AND with the user's own ``where``, if there is one."""
        before = self.said.get("where")
        return condition if before is None else f"({before}) AND {condition}"


def complement(text: str) -> str:
    """Return the text of 1 − expression, valid in SQL and Python, in its shortest form."""
    if text.startswith("1 - ") and PLAIN_NAME.fullmatch(text[4:]):
        return text[4:]
    return f"1 - {text}" if PLAIN_NAME.fullmatch(text) else f"1 - ({text})"


def negated(text: str, arrays: bool) -> str:
    """Return the negation of an expression as text: 1 − x in Python, NOT in SQL."""
    if arrays:
        return complement(text)
    if text.startswith("NOT ") and PLAIN_NAME.fullmatch(text[4:]):
        return text[4:]
    return f"NOT {text}" if PLAIN_NAME.fullmatch(text) else f"NOT ({text})"


def key_of(name: str) -> str:
    """Return a name in lower case with ``_`` for punctuation: "Is Train?" becomes "is_train"."""
    return re.sub(r"[^0-9a-z]+", "_", name.lower()).strip("_")
