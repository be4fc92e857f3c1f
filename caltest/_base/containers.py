"""Where tables and tensors of other libraries become arrays; none of them is imported for it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from caltest.errors import InvalidPredictionsError

#: What belongs to the rows of a table of probabilities, and may be a column of it.
OF_ROWS = ("labels", "weights", "clusters", "by", "ids")


def arranged(probs: Any, given: Mapping[str, Any]) -> tuple[Any, dict[str, Any]]:
    """Return probabilities, and labels and facts of their rows, each from where it is.

    Where ``probs`` is a table, labels and facts may be names of its columns; what is left of it are
    the probabilities. Queries are run, once.
    """
    found = dict(given)
    rows = {what: values for what, values in given.items() if what in OF_ROWS}
    _refuse_misaligned(probs, rows)
    table = opened(probs, "probs")
    names = names_of(table)
    named = {what: name for what, name in rows.items() if isinstance(name, str)}
    if names is None or not named:
        return table, found
    for what, name in named.items():
        if name not in names:
            known = ", ".join(map(str, names))
            raise InvalidPredictionsError(f"{what}: there is no column {name!r} among {known}")
        found[what] = table[name]
    return {name: table[name] for name in names if name not in named.values()}, found


def names_of(table: Any) -> list[Any] | None:
    """Return the names of the columns of a table, or None for what is no table."""
    if isinstance(table, Mapping):
        return list(table)
    if _can(table, "column_names"):  # Arrow's
        return list(table.column_names)
    return list(table.columns) if _can(table, "columns") else None


def of_dask(values: Any) -> bool:
    """Say whether rows are those of Dask, which is not imported for it."""
    return type(values).__module__.partition(".")[0] in ("dask", "dask_expr")


def _can(values: Any, what: str) -> bool:
    """Say whether values have an attribute by their type: columns of pandas are attributes, too."""
    return hasattr(type(values), what)


def opened(values: Any, name: str) -> Any:
    """Return a table that is at hand, whose columns are indexed by their names."""
    lazy = "compute" if of_dask(values) else "collect" if _can(values, "collect") else ""
    if lazy:
        raise InvalidPredictionsError(
            f"{name} is a {type(values).__name__}, whose rows are not there yet: pass what "
            f"{lazy}() returns" + ", or tally it by ct.Tally.from_dask" * of_dask(values)
        )
    if _can(values, "fetchnumpy"):  # a duckdb relation
        return values.fetchnumpy()
    if _can(values, "with_format"):  # a Hugging Face dataset, perhaps some of its rows
        return values.with_format("arrow")[:]
    return values


def as_ndarray(values: Any, name: str) -> NDArray[Any]:
    """Return an array of what can be read as one, in which nothing is masked."""
    values = opened(values, name)
    if np.ma.is_masked(values):
        raise InvalidPredictionsError(
            f"{name} is a masked array with {int(np.ma.getmaskarray(values).sum())} masked values; "
            "remove these rows first, nothing is dropped for you"
        )
    try:
        return _read(values, name)
    except (TypeError, ValueError, RuntimeError) as error:
        if isinstance(error, InvalidPredictionsError):
            raise
        try:
            return np.from_dlpack(values)
        except (TypeError, AttributeError, ValueError, RuntimeError, BufferError):
            raise InvalidPredictionsError(
                f"{name} cannot be read as one array ({error}); pass an array in which all rows "
                "have the same length"
            ) from None


def _read(values: Any, name: str) -> NDArray[Any]:
    if not _can(values, "__array__"):
        names = names_of(values)
        if names is not None:
            columns = [as_ndarray(values[c], f"column {c!r} of {name}") for c in names]
            return np.column_stack(columns) if columns else np.empty((0, 0))
        if isinstance(values, (list, tuple)) and any(_can(v, "detach") for v in values):
            values = [as_ndarray(v, name) for v in values]
    if _can(values, "detach"):  # a torch tensor, of any device, perhaps part of a gradient
        values = values.detach()
        values = values.cpu() if _can(values, "cpu") else values
    kind = str(getattr(values, "dtype", ""))
    if "bfloat16" in kind or "float8" in kind:  # types that NumPy does not have
        values = values.float() if _can(values, "float") else values.astype(np.float32)
    array = np.asarray(values)
    first = array.flat[0] if array.dtype == object and array.size else None
    if isinstance(first, (list, tuple, np.ndarray)):  # a column of rows
        array = np.array([np.asarray(row) for row in array.ravel()])
    return array


def _refuse_misaligned(probs: Any, others: Mapping[str, Any]) -> None:
    index = _index(probs)
    for name, values in others.items():
        if _can(probs, "fetchnumpy") and _can(values, "fetchnumpy"):
            raise InvalidPredictionsError(
                f"probs and {name} are two relations, whose rows have no common order: pass one "
                f"relation with all columns, and {name} as the name of its column"
            )
        other = _index(values)
        if index is None or other is None or len(index) != len(other) or index.equals(other):
            continue
        pairs = enumerate(zip(index, other, strict=True))
        for row, (a, b) in ((row, pair) for row, pair in pairs if pair[0] != pair[1]):
            raise InvalidPredictionsError(
                f"probs and {name} have different indexes, first in row {row} ({a!r} and {b!r}): "
                f"align them first, for instance with {name}.loc[probs.index], or pass "
                f"{name}.to_numpy() if the rows are in the same order as they are"
            )


def _index(values: Any) -> Any:
    """Return the index of a pandas object; lists have an ``index``, too, but a method."""
    index = getattr(values, "index", None)
    return index if hasattr(index, "equals") else None
