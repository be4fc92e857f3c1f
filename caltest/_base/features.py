"""Features of rows: numbers, dates and levels, some of them missing; and conditions on them.

:func:`as_features` reads columns for the search of segments; :func:`holds` evaluates a condition
such as "age > 71", and :func:`condition_in_words` writes it.
"""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Literal

import numpy as np

from caltest._base.arrays import (
    BoolArray,
    FloatArray,
    IntArray,
    as_column,
    as_ndarray,
    column_of,
    names_of,
    opened,
)
from caltest._base.written import several
from caltest.errors import InvalidPredictionsError, StatisticError, nth, spelt

#: Text with more levels than these, and than half of the rows, names the rows.
MOST_LEVELS = 20


FeatureKind = Literal["number", "date", "level", "other", "missing"]


#: Column, kind, low < x ≤ high, and the level, or of "other" those that are not meant.
Condition = tuple[
    str, FeatureKind, float | str | None, float | str | None, str | tuple[str, ...] | None
]


#: What columns of ids are called, and rows of an id below which all its rows are no segment.
ID_NAMES, FEWEST_OF_AN_ID = re.compile(r"(?i:(?:^|[_\s.-])id)$|[a-z]I[dD]$"), 30


#: Microseconds of a day.
DAY = 86_400_000_000


#: What a cell must not be, and what is a number.
NESTED = (list, dict, tuple, set, np.ndarray, complex)


NUMBER_TYPES = (int, float, np.integer, np.floating, Decimal)


@dataclass(frozen=True, eq=False)
class Feature:
    """One column of features, shape (n,): numbers, dates, or levels of text.

    ``name`` is the column's name. ``values`` (n,) are float64; dates are microseconds since 1970
    (``dates`` is True), and text is stored as indices into ``levels``, which is None for numbers.
    NaN marks a missing value.
    """

    name: str
    values: FloatArray
    levels: tuple[str, ...] | None = None
    dates: bool = False

    @property
    def missing(self) -> BoolArray:
        """True for rows without a value, booleans of shape (n,)."""
        return np.isnan(self.values)


@dataclass(frozen=True, eq=False)
class Features:
    """Several columns of features of the same rows; indexing it selects rows.

    ``columns`` are the features, in order. ``unnamed`` is True if the user named no columns: then
    all columns of the table are here, and the search for segments leaves out columns that give the
    outcome away.
    """

    columns: tuple[Feature, ...]
    unnamed: bool = False

    def __getitem__(self, rows: IntArray | BoolArray) -> Features:
        """Return the features of the selected rows, as :class:`Features` with the same columns.

        ``rows`` are indices, or booleans of shape (n,).
        """
        columns = tuple(replace(c, values=c.values[rows]) for c in self.columns)
        return replace(self, columns=columns)

    @property
    def by_name(self) -> dict[str, Feature]:
        """Return the features in a dictionary by column name.

        Each is a :class:`Feature` with values of shape (n,).
        """
        return {column.name: column for column in self.columns}


def identifies(column: Feature) -> bool:
    """Return whether a column looks like an identifier, or, for dates, holds times of day.

    ``column`` is a feature with its values (n,). Identifiers are texts or whole numbers that name
    rows, or small groups of rows, such as names, ids and row numbers.
    """
    values, n = column.values, column.values.size
    if column.dates:
        return bool((values[~column.missing] % DAY != 0.0).any())
    if column.levels is not None:
        return len(column.levels) > max(MOST_LEVELS, 0.5 * n)
    whole = bool((values[~column.missing] % 1.0 == 0.0).all())
    if (
        ID_NAMES.search(column.name)
        and whole
        and np.unique(values).size > max(MOST_LEVELS, n / FEWEST_OF_AN_ID)
    ):
        return True
    rising = n > MOST_LEVELS and bool((np.diff(values) > 0.0).all())
    return rising and whole


def as_features(values: object, n: int | None, *, leave_ids: bool = False) -> Features:
    """Return the columns of a frame, a mapping or an array as :class:`Features` of ``n`` rows.

    The result has, for each column, its name and values (n,). Columns of an array are called x0,
    x1, …. Numbers and dates stay numbers; booleans and text are levels. None, NaN, NA, NaT and
    masked cells are missing. With ``leave_ids`` columns that name or number the rows, or hold a
    time of day, are left out. InvalidPredictionsError for another number of rows, infinite, complex
    or nested values, no column, two of one name, or text that names the rows: more than 20 levels,
    and more than half as many as there are rows. With ``n`` None any number of rows is taken.
    """
    if isinstance(values, Features):
        table: dict[str, object] = {**values.by_name}
    else:
        values = opened(values, "features")
        names = names_of(values)
        if names is None:
            array = as_ndarray(values, "features")
            array = array[:, None] if array.ndim == 1 else array
            if array.ndim != 2:
                raise InvalidPredictionsError(
                    f"features must be a table or an array of shape (n, d), not {array.shape}"
                )
            table = {f"x{j}": column for j, column in enumerate(array.T)}
        else:
            table = {str(name): column_of(values, name) for name in names}
            if len(table) < len(names):
                twice = next(str(c) for c in names if [*map(str, names)].count(str(c)) > 1)
                raise InvalidPredictionsError(f"features names the column {twice!r} twice")
    if not table:
        raise InvalidPredictionsError("features holds no column: give at least one")
    columns = tuple(c if isinstance(c, Feature) else _feature(k, c) for k, c in table.items())
    n = columns[0].values.size if n is None else n
    columns = tuple(c for c in columns if not (leave_ids and identifies(c)))
    if not columns:
        raise InvalidPredictionsError(
            spelt(
                f"no column is left to search: {', '.join(table)} only names, numbers or times the "
                "rows. Name what is to be searched all the same, "
                f"features={','.join(table)!r} (--features {shlex.quote(','.join(table))})"
            )
        )
    for column in columns:
        if column.values.size != n:
            raise InvalidPredictionsError(
                f"features: {column.name!r} has {column.values.size} values, but there are "
                f"{several(n, 'row')}; they must be in the same order, one value each"
            )
        if column.levels is not None and identifies(column):
            raise InvalidPredictionsError(
                f"features: {column.name!r} has {len(column.levels)} different texts in "
                f"{several(n, 'row')}, so it is a name, an id or free text: leave it out, or group "
                "it"
            )
    return Features(columns, leave_ids or (isinstance(values, Features) and values.unnamed))


def _feature(name: str, values: object) -> Feature:
    array = as_column(values, f"features[{name!r}]")
    absent = np.zeros(len(array), dtype=bool)
    if array.dtype.kind == "O" and array.ndim == 1:
        cells = array.tolist()
        if set(map(type, cells)) in ({str}, {str, type(None)}):
            return _of_text(name, cells)
        absent = np.array([_is_missing(v) for v in array], dtype=bool)
    present = array[~absent]
    nested = [isinstance(v, NESTED) for v in present] if array.dtype.kind == "O" else []
    if array.dtype.kind in "cV" or array.ndim != 1 or any(nested):
        places = np.flatnonzero(~absent)[np.flatnonzero(nested)[:1]]
        where = "".join(f" in {nth(int(row))}" for row in places)
        kind = "complex" if array.dtype.kind == "c" else "nested"
        raise InvalidPredictionsError(
            f"features: {name!r} is {kind}{where}; a column has one number, text or date a row"
        )
    kinds = set(map(type, present.tolist())) if array.dtype.kind == "O" else {array.dtype.type}
    spread = np.full(absent.size, np.nan)
    if all(issubclass(k, NUMBER_TYPES) and k not in (bool, np.timedelta64) for k in kinds):
        spread[~absent] = present.astype(np.float64)
        for row in np.flatnonzero(np.isinf(spread))[:1]:
            raise InvalidPredictionsError(
                f"features: {name!r} is {spread[row]} in {nth(int(row))}; NaN is for what is "
                "missing"
            )
        return Feature(name, spread)
    if all(issubclass(k, (date, np.datetime64, np.timedelta64)) for k in kinds):
        if array.dtype.kind == "O":
            present = np.array([_without_zone(v) for v in present], dtype="datetime64[us]")
        unit = f"{present.dtype.kind}8[us]"
        numbers = np.where(np.isnat(present), np.nan, present.astype(unit).astype(np.float64))
        spread[~absent] = numbers
        return Feature(name, spread, dates=present.dtype.kind == "M")
    levels, codes = np.unique(present.astype(str), return_inverse=True)
    spread[~absent] = codes.ravel()
    return Feature(name, spread, tuple(levels.tolist()))


def _of_text(name: str, cells: list[str | None]) -> Feature:
    """Return a column of texts, some of them None (missing), as indices into sorted levels.

    ``name`` is the column's name, ``cells`` (n,) its texts. Each distinct text is sorted once.
    """
    levels = sorted({*cells} - {None})  # type: ignore[type-var]
    code_of = dict[str | None, float](zip(levels, range(len(levels)), strict=True)) | {None: np.nan}
    values = np.fromiter(map(code_of.__getitem__, cells), dtype=np.float64, count=len(cells))
    return Feature(name, values, tuple(map(str, levels)))


def _is_missing(value: object) -> bool:
    """Return whether a cell is None, NaN, or NA of pandas, with which no comparison is true."""
    return (
        value is None
        or type(value).__name__ in ("NAType", "NaTType")
        or (isinstance(value, (float, np.floating, Decimal)) and value != value)
    )


def _without_zone(moment: date | np.datetime64) -> date | np.datetime64:
    """Return a moment with a time zone in UTC and without zone, as NumPy dates have none.

    Dates without a zone are returned unchanged.
    """
    if isinstance(moment, datetime) and moment.tzinfo is not None:
        return moment.astimezone(UTC).replace(tzinfo=None)
    return moment


def condition_in_words(condition: Condition) -> str:
    """Return a condition as text, such as "age > 71", "site = A" or "site missing".

    A condition is (name, kind, low, high, level): the column; "number", "date", "level", "other" or
    "missing"; the ends of the interval low < x ≤ high, each None if it has none; and the level of a
    text column, for "other" the levels that are excluded.
    """
    name, kind, low, high, level = condition
    if kind in ("other", "missing"):
        return f"{name} {kind}"
    if kind == "level":
        return f"{name} = {level}"
    low, high = (_edge_text(v) if isinstance(v, float) else v for v in (low, high))
    if low is None or high is None:
        return f"{name} <= {high}" if low is None else f"{name} > {low}"
    return f"{low} < {name} <= {high}"


def _edge_text(edge: float) -> str:
    if 0.0 < abs(edge) < 1e-4:
        return np.format_float_scientific(edge, trim="-")
    return np.format_float_positional(edge, trim="-")


def holds(condition: Condition, feature: Feature) -> BoolArray:
    """Return, for every row of a column, whether the condition holds, booleans of shape (n,).

    ``feature`` is the column with its values (n,). A condition is (name, kind, low, high, level):
    the column; "number", "date", "level", "other" or "missing"; the ends of the interval low < x ≤
    high, each None if it has none; and the level of a text column, for "other" the levels that are
    excluded. Rows without a value fulfil only "missing". StatisticError if the condition is about
    numbers and the column is text, or the other way round.
    """
    _, kind, low, high, level = condition
    if kind == "missing":
        return feature.missing
    if (kind in ("level", "other")) != (feature.levels is not None):
        content = "numbers" if feature.levels is None else "text"
        raise StatisticError(
            f"features: {feature.name!r} holds {content}, the search saw other values"
        )
    if feature.levels is not None:
        names = np.array(("", *(feature.levels or ())))  # the first name is for missing cells
        texts = names[np.where(feature.missing, 0, feature.values + 1).astype(np.int64)]
        return np.isin(texts, np.asarray(level), invert=kind == "other") & ~feature.missing
    ends = [
        np.datetime64(v, "us").astype(np.int64) if isinstance(v, str) else v for v in (low, high)
    ]
    within = ~feature.missing
    if ends[0] is not None:
        within &= feature.values > ends[0]
    return within if ends[1] is None else within & (feature.values <= ends[1])
