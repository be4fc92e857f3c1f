"""Questions that guards return, the rows and columns that they look at, and likelihoods of rows.

The guards themselves are in :mod:`caltest.data.doubts` (arrays),
:mod:`caltest.data.spare_columns` (further columns) and :mod:`caltest.read.questioning` (tables). A
:class:`Question` that asks stops a verb unless the user passes ``as_is``.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Self

import numpy as np

from caltest._base.arrays import AnyArray, BoolArray, FloatArray, IntArray, codes
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
        Other readings: options with the values that say so, each with the condition under which it
        is right.
    asks : bool
        Whether the user must answer before a verdict is given; if not, it is a doubt.
    explains : bool
        Whether the other reading could explain that the predictions look miscalibrated.
    """

    guard: str
    text: str
    readings: tuple[Reading, ...] = ()
    asks: bool = True
    explains: bool = True


@dataclass(frozen=True, eq=False)
class Column:
    """Column of a table that no option names, in the form that guards look at.

    ``values`` (n,) are numbers, booleans, or codes into ``words``, which is None for numbers. A
    code of −1, a NaN or an infinite value is a missing cell. ``name`` is the column's name, and
    ``sql`` its name as an SQL expression.
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
        """Return a column called ``name`` from an array of any type.

        Numbers and booleans are kept; text becomes codes, and None is a missing cell. ``values`` is
        (n,).
        """
        if values.dtype.kind in "biuf":
            return cls(name, values)
        places: dict[str, int] = {}
        cells = (None if v is None or v != v else str(v).strip() for v in values.tolist())
        coded = [-1 if c is None else places.setdefault(c, len(places)) for c in cells]
        return cls(name, np.array(coded, dtype=np.int64), tuple(places))

    @cached_property
    def coded(self) -> tuple[IntArray, tuple[str, ...]] | None:
        """Codes (n,) of text, whole numbers and booleans, and the words they stand for, in order.

        A code of −1 is a missing cell. None for fractions.
        """
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
        """Number of rows of each value of this column, (k,) for k values; None for fractions."""
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
        """Return the SQL condition that this column has a value, such as "split = 'test'".

        ``word`` is the value as text, one of those in :attr:`coded`.
        """
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
    spans : tuple of Column
        Days between two columns of dates that nobody named.
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
    spans: tuple[Column, ...] = ()

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
        """The user's expression for the label, or with follow-up for the event, as text.

        Where none was given it is "the labels" for arrays, else the name of the option.
        """
        name = "event" if self.followed else "label"
        return self.said.get(name, "the labels" if self.arrays else name)

    def words(self, option: str) -> str:
        """Return the expression that the user gave for an option, or else the name of the option.

        ``option`` is the name, such as "label".
        """
        return self.said.get(option, option)

    def where(self, condition: str) -> str:
        """Return an SQL condition, joined by AND with the user's own ``where`` if there is one."""
        before = self.said.get("where")
        return condition if before is None else f"({before}) AND {condition}"


def complement(text: str) -> str:
    """Return the text of 1 − expression, valid in SQL and Python, in its shortest form.

    "p" becomes "1 - p", and "1 - p" becomes "p".
    """
    if text.startswith("1 - ") and PLAIN_NAME.fullmatch(text[4:]):
        return text[4:]
    return f"1 - {text}" if PLAIN_NAME.fullmatch(text) else f"1 - ({text})"


def negated(text: str, arrays: bool) -> str:
    """Return the negation of an expression as text: 1 − x in Python (``arrays``), NOT in SQL.

    "y" becomes "1 - y" or "NOT y", and "NOT y" becomes "y".
    """
    if arrays:
        return complement(text)
    if text.startswith("NOT ") and PLAIN_NAME.fullmatch(text[4:]):
        return text[4:]
    return f"NOT {text}" if PLAIN_NAME.fullmatch(text) else f"NOT ({text})"


def key_of(name: str) -> str:
    """Return a name in lower case with ``_`` for punctuation: "Is Train?" becomes "is_train"."""
    return re.sub(r"[^0-9a-z]+", "_", name.lower()).strip("_")


# ------------------------------------------------------------------------------
# Likelihoods and orders by which guards compare readings of the same rows.
#
# If predictions p are calibrated as they were read, the likelihood ratio of another reading that
# is a function of p has expectation E[L'(y) / L(y)] ≤ 1, so that it exceeds 1000 in at most 1 of
# 1000 data sets (Markov's inequality), for every n and every distribution of p.


#: Logarithm of how many times likelier another reading must be before a guard asks.
LIKELIER = float(np.log(1000.0))
#: Probabilities are taken within [ROUNDED_OFF, 1 − ROUNDED_OFF] where a 0 or 1 may be rounded.
ROUNDED_OFF = 0.005


def rankdata(values: AnyArray) -> FloatArray:
    """Return ranks from 1 (n,), equal values sharing their mean, without importing SciPy."""
    _, place, counts = np.unique(values, return_inverse=True, return_counts=True)
    ranks: FloatArray = np.cumsum(counts) - 0.5 * (counts - 1.0)
    return ranks[place.ravel()]


def log_likelihood(p: FloatArray, y: AnyArray, weights: FloatArray | None = None) -> float:
    """Return the log-likelihood Σ w log P(y) of outcomes y given probabilities p, (n,) each.

    y is 0 or 1, p the probability of 1, and ``weights`` (n,) are the w, None for 1. Probabilities
    of 0 and 1 are moved inside by ``ROUNDED_OFF``, as they may be rounded.
    """
    p = np.clip(p, ROUNDED_OFF, 1.0 - ROUNDED_OFF)
    terms = np.log(np.where(y == 1, p, 1.0 - p))
    return float(terms.sum() if weights is None else terms @ weights)


def constant_gain(p: FloatArray, y: AnyArray, weights: FloatArray | None = None) -> float:
    """Return log (L(ȳ) / (√n L(p))), the gain in log-likelihood of one constant prediction over p.

    ``p``, ``y`` and ``weights`` have shape (n,); ȳ is the mean outcome, and √n the penalty for
    estimating it. A large gain says that p is worse than no prediction.
    """
    scale = 1.0 if weights is None else mean_weight(weights)
    mean = np.full(len(p), float(np.average(y, weights=weights)))
    gain = log_likelihood(mean, y, weights) - log_likelihood(p, y, weights)
    return gain / scale - 0.5 * float(np.log(len(p)))


def mean_weight(weights: FloatArray) -> float:
    """Return Σ w² / Σ w, the mean weight of weighted observations (Kish).

    Log-likelihoods with these weights are divided by it, so that they count independent
    observations.
    """
    return float(weights @ weights / weights.sum())


def order_of_events(
    p: FloatArray, y: AnyArray, weights: FloatArray | None = None
) -> tuple[float, float]:
    """Return (area, z): the area under the ROC curve of p, and its distance from 0.5 in sd.

    ``p`` are predictions, ``y`` outcomes (1 an event), ``weights`` the weights of the rows, None
    for 1, (n,) each. Both are larger where events have larger p; (0.5, 0) if all outcomes are
    alike. The standard deviation is under no association, corrected for ties as in the test of
    Wilcoxon, Mann and Whitney; with weights it comes from the weighted scores.
    """
    w = np.ones(len(p)) if weights is None else weights
    p, y, w = p[w > 0], y[w > 0] == 1, w[w > 0]
    if y.all() or not y.any():
        return 0.5, 0.0
    _, place = np.unique(p, return_inverse=True)
    place = place.ravel()
    free, events = np.bincount(place, np.where(y, 0.0, w)), np.bincount(place, np.where(y, w, 0.0))
    area = float(events @ (np.cumsum(free) - free / 2.0) / (free.sum() * events.sum()))
    if weights is None:
        n, k = float(len(p)), float(y.sum())
        ties = np.bincount(place).astype(np.float64)
        spread = (n + 1.0) - np.sum(ties**3 - ties) / (n * (n - 1.0))
        variance = float(spread / (12.0 * k * (n - k)))
    else:
        total = np.bincount(place, w)
        level = ((np.cumsum(total) - total / 2.0) / w.sum())[place]
        part = np.where(y, w / events.sum(), -w / free.sum())
        variance = float(np.sum((part * (level - np.average(level, weights=w))) ** 2))
    return area, (area - 0.5) / float(np.sqrt(variance)) if variance > 0.0 else 0.0


def hazard_order(p: FloatArray, time: FloatArray, event: BoolArray) -> float:
    """Return z of Cox's score test of the ranks of p: positive if rows of high p have events early.

    ``p``, ``time`` and ``event`` have shape (n,). Rows with equal times are at risk together. Cox,
    Journal of the Royal Statistical Society B 34, 1972.
    """
    last_first = np.argsort(-time, kind="stable")
    t, e, x = time[last_first], event[last_first], rankdata(p)[last_first] / len(p)
    end = np.searchsorted(-t, -t, side="right") - 1
    at_risk = np.arange(1, len(t) + 1)
    mean, square = (np.cumsum(x) / at_risk)[end], (np.cumsum(x * x) / at_risk)[end]
    variance = float(np.sum((square - mean**2)[e]))
    return float(np.sum((x - mean)[e])) / float(np.sqrt(variance)) if variance > 1e-9 else 0.0


def design_effect(part: FloatArray, groups: Iterable[IntArray]) -> float:
    """Return the largest design effect of dependent rows, at least 1.

    It is Σ_g (Σ_{i in g} x_i)² / Σ x_i² for clusters g. ``part`` (n,) are the x; ``groups`` yields
    codes (n,) of possible clusters, −1 for rows in none.
    """
    apart, largest = float(part @ part), 1.0
    for rows in groups if apart > 0.0 else ():
        sums, alone = np.bincount(rows + 1, part)[1:], part[rows < 0]
        largest = max(largest, float(sums @ sums + alone @ alone) / apart)
    return largest


def groups_of(rows: Rows) -> Iterable[IntArray]:
    """Yield the codes (n,) of clusters or, without these, of columns whose values repeat.

    ``rows`` has the clusters and the unused columns. A code of −1 is a row in no cluster.
    """
    if rows.clusters is not None:
        yield codes(rows.clusters)
        return
    for column in rows.unused:
        if column.coded is not None and 5 <= column.n_values < rows.n:
            yield column.coded[0]
