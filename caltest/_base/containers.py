"""Tables and tensors of other libraries as arrays, without importing any of these libraries.

:func:`as_ndarray` is the entry: it takes arrays, tensors, columns and anything with
``__dlpack__``, and refuses masked values. :func:`is_table` and :func:`names_of` recognise frames by
the attributes of their type.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import suppress
from typing import Any, Protocol, TypeGuard

import numpy as np

from caltest._base.arrays import AnyArray
from caltest.errors import InvalidPredictionsError


class Foreign(Protocol):
    """Protocol of tables and tensors of other libraries.

    No library has all of these attributes; :func:`can` says which one a value has.
    """

    dtype: object
    columns: Iterable[object]
    column_names: Iterable[object]
    index: object

    def __getitem__(self, key: object) -> object: ...
    def collect(self) -> object: ...
    def fetchnumpy(self) -> object: ...
    def with_format(self, form: str) -> Foreign: ...
    def detach(self) -> object: ...
    def cpu(self) -> object: ...
    def float(self) -> object: ...
    def astype(self, dtype: type[np.float32]) -> object: ...
    def equals(self, other: object) -> bool: ...
    def __dlpack__(self, *, stream: None = None) -> Any: ...


def can(values: object, what: str) -> TypeGuard[Foreign]:
    """Return whether the *type* of values has an attribute.

    Columns of pandas are attributes as well.
    """
    return hasattr(type(values), what)


def is_table(values: object) -> bool:
    """Return whether values are a table with named columns; lazy tables are not evaluated."""
    return isinstance(values, Mapping) or any(can(values, c) for c in ("column_names", "columns"))


def names_of(table: object) -> list[object] | None:
    """Return the column names of a table; None for anything else."""
    if isinstance(table, Mapping):
        return list(table)
    if can(table, "column_names"):  # Arrow's
        return list(table.column_names)
    return list(table.columns) if can(table, "columns") else None


def column_of(table: object, name: object) -> object:
    """Return the column called ``name`` of a table; the name comes from :func:`names_of`."""
    assert can(table, "__getitem__")
    return table[name]


def dtype_of(values: object) -> str:
    """Return the name of the number type in its own library, such as "torch.bfloat16".

    It is "" for values without a number type.
    """
    return str(values.dtype) if can(values, "dtype") else ""


def opened(values: object, name: str) -> object:
    """Return a table whose columns can be indexed by name.

    Lazy frames and relations are collected.
    """
    if type(values).__module__.partition(".")[0] in ("dask", "dask_expr"):
        raise InvalidPredictionsError(
            f"{name} is a {type(values).__name__}, whose rows are not there yet: pass what "
            "compute() returns, or tally it by ct.Tally.from_dask"
        )
    if can(values, "collect"):  # a query of polars
        values = values.collect()
    if can(values, "fetchnumpy"):  # a duckdb relation
        return values.fetchnumpy()
    if can(values, "with_format"):  # a Hugging Face dataset, perhaps some of its rows
        return values.with_format("arrow")[:]
    return values


def as_ndarray(values: object, name: str) -> AnyArray:
    """Return values as a NumPy array; refuse masked entries and values that are no array."""
    values = opened(values, name)
    if isinstance(values, np.ma.MaskedArray) and np.ma.is_masked(values):
        raise InvalidPredictionsError(
            f"{name} is a masked array with {int(np.ma.getmaskarray(values).sum())} masked values; "
            "remove these rows first, nothing is dropped for you"
        )
    try:
        return _read(values, name)
    except (TypeError, ValueError, RuntimeError) as error:
        if isinstance(error, InvalidPredictionsError):
            raise
        with suppress(TypeError, AttributeError, ValueError, RuntimeError, BufferError):
            if can(values, "__dlpack__"):
                return np.from_dlpack(values)
        raise InvalidPredictionsError(
            f"{name} cannot be read as one array ({error}); pass an array in which all rows "
            "have the same length"
        ) from None


def as_column(values: object, name: str) -> AnyArray:
    """Return a column as an array (n,), with None in masked cells.

    A one-column table is its column.
    """
    if isinstance(values, np.ma.MaskedArray) and np.ma.is_masked(values):
        cells: AnyArray = np.ma.getdata(values).astype(object)
        cells[np.ma.getmaskarray(values)] = None
        values = cells
    array = as_ndarray(values, name)
    return array[:, 0] if array.ndim == 2 and array.shape[1] == 1 else array


def _read(values: object, name: str) -> AnyArray:
    if not can(values, "__array__"):
        names = names_of(values)
        if names is not None:
            columns = [as_ndarray(column_of(values, c), f"column {c!r} of {name}") for c in names]
            return np.column_stack(columns) if columns else np.empty((0, 0))
        if isinstance(values, (list, tuple)) and any(can(v, "detach") for v in values):
            values = [as_ndarray(v, name) for v in values]
    if can(values, "detach"):  # a torch tensor, of any device, perhaps part of a gradient
        values = values.detach()
        values = values.cpu() if can(values, "cpu") else values
    kind = dtype_of(values)
    if "bfloat16" in kind or "float8" in kind:  # types that NumPy does not have
        if can(values, "float"):
            values = values.float()
        elif can(values, "astype"):
            values = values.astype(np.float32)
    array = np.asarray(values)
    first = array.flat[0] if array.dtype == object and array.size else None
    if isinstance(first, (list, tuple, np.ndarray)):  # a column of rows
        array = np.array([np.asarray(row) for row in array.ravel()])
    return array
