"""Results as data frames: typed columns of plain values for Polars, pandas and Arrow.

:func:`to_frame` chooses the library: Polars if it is imported or pandas is missing.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields
from datetime import datetime
from importlib.util import find_spec
from math import nan
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    import pandas
    import polars

#: A column: its type, and one value a row, which is None where there is none.
TypedColumn = tuple[type, Sequence[Any]]


#: The types that a column can have, by the annotation of a field without "| None".
COLUMN_TYPES: dict[str, type] = {"float": float, "int": int, "bool": bool, "str": str}
COLUMN_TYPES |= dict.fromkeys(
    ("AuditVerdict", "ComparisonVerdict", "Finding", "GateVerdict", "GradeVerdict"), str
)


#: The types of columns by the kind of an array's type.
ARRAY_TYPES: dict[str, type] = {"b": bool, "i": int, "u": int, "f": float, "M": datetime}


def to_frame(columns: Mapping[str, TypedColumn]) -> polars.DataFrame | pandas.DataFrame:
    """Return a data frame from typed columns: Polars if it is imported, or pandas is missing.

    Otherwise it is a pandas data frame.
    """
    if "polars" not in sys.modules and ("pandas" in sys.modules or find_spec("pandas")):
        return _in_pandas(columns)
    return in_polars(columns)


def in_polars(columns: Mapping[str, TypedColumn]) -> polars.DataFrame:
    """Return a Polars data frame; missing values are null."""
    import polars

    types: dict[type, Any] = {float: polars.Float64, int: polars.Int64, bool: polars.Boolean}
    types |= {str: polars.String, datetime: polars.Datetime("us")}
    return polars.DataFrame(
        [polars.Series(name, values, dtype=types[kind]) for name, (kind, values) in columns.items()]
    )


def _in_pandas(columns: Mapping[str, TypedColumn]) -> pandas.DataFrame:
    """Return a pandas data frame; integers and booleans with gaps have nullable types."""
    import pandas

    frame: dict[str, Any] = {}
    for name, (kind, values) in columns.items():
        types = {float: "float64", int: "int64", bool: "bool", str: "object"}
        types[datetime] = "datetime64[us]"
        if any(value is None for value in values):
            types |= {int: "Int64", bool: "boolean"}
        if kind is float:
            values = [nan if value is None else value for value in values]
        frame[name] = pandas.Series(values, dtype=types[kind])
    return pandas.DataFrame(frame)


def of_arrays(columns: Mapping[str, Iterable[object]]) -> dict[str, TypedColumn]:
    """Return typed columns from sequences; None marks a missing value."""
    return {name: _typed(values) for name, values in columns.items()}


def _typed(values: Iterable[object]) -> TypedColumn:
    """Return (type, values) of a column, typed by its first value; float if there is none."""
    listed: list[Any] = values.tolist() if isinstance(values, np.ndarray) else [*values]
    if isinstance(values, np.ndarray) and values.dtype.kind in ARRAY_TYPES:
        return ARRAY_TYPES[values.dtype.kind], listed
    first = next((value for value in listed if value is not None), nan)
    if isinstance(first, str):
        return str, [None if value is None else str(value) for value in listed]
    kind = next(kind for kind in (bool, int, float) if isinstance(first, kind))
    return kind, listed


def of_records(records: Iterable[Any], kind: type | None = None) -> dict[str, TypedColumn]:
    """Return a column for each field of records that is text, a number or a pair of limits.

    Pairs become two columns, whose names end in ``_low`` and ``_high``. Fields that all results
    share are left out. ``kind`` is the class of the records, needed where there are none.
    """
    rows = [*records]
    columns: dict[str, TypedColumn] = {}
    for field in fields(kind or type(rows[0])):
        annotation = str(field.type).removesuffix(" | None")
        if field.kw_only:
            continue
        values = [getattr(row, field.name) for row in rows]
        if annotation == "tuple[float, float]":
            for place, end in enumerate(("low", "high")):
                ends = [None if pair is None else pair[place] for pair in values]
                columns[f"{field.name}_{end}"] = float, ends
        elif (column_type := COLUMN_TYPES.get(annotation)) is not None:
            words = column_type is str
            plain = [str(v) if words and v is not None else v for v in values]
            columns[field.name] = column_type, plain
    return columns
