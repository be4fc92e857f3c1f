"""Arrays: their types, checks of parameters, progress, and reading those of other libraries.

:func:`reaching` decides what counts as at least as extreme, ties up to rounding included;
:func:`number`, :func:`whole` and :func:`one_of` refuse parameters out of range by name;
:func:`progress` shows a bar after two seconds; :func:`as_ndarray` reads tables and tensors.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import reduce
from shutil import get_terminal_size
from threading import Lock
from typing import Any, Literal, Protocol, TypeGuard

import numpy as np
from numpy.typing import ArrayLike, NDArray

from caltest.errors import InvalidPredictionsError, StatisticError

FloatArray = NDArray[np.float64]


IntArray = NDArray[np.int64]


BoolArray = NDArray[np.bool_]


ComplexArray = NDArray[np.complex128]


AnyArray = NDArray[Any]


#: One value a row as users hold it: a list, an array, or a column of a frame of any library.
Values = ArrayLike | object


#: What verbs are asked of: probabilities as in ``Values``, checked predictions, or a tally.
ProbsOrData = Values


#: What makes a generator: nothing, a seed, or one of NumPy's.
RNG = int | np.integer | np.random.Generator | np.random.SeedSequence | None


#: Up to so many columns, comparing columns takes a third to a thirtieth of ``max(axis=1)``.
FEW_COLUMNS = 16


def largest(rows: FloatArray) -> FloatArray:
    """Return the largest value of each row, shape (n,), of an array (n, K)."""
    few = rows.shape[1] <= FEW_COLUMNS
    return np.array(reduce(np.maximum, rows.T) if few else rows.max(axis=1))


def by_value(p: FloatArray) -> tuple[IntArray, IntArray]:
    """Return (order, ends): the increasing order of p, and the end of each run of ties.

    p has shape (n,). ``order`` (n,) are row indices, and ``ends`` (m,), for m distinct values, the
    place in the order after the last row of each.
    """
    order = np.argsort(p, kind="stable")
    return order, np.append(np.flatnonzero(np.diff(p[order])) + 1, p.size)


def by_code(values: IntArray) -> IntArray:
    """Return the order of rows by codes from 0 on, equal ones as they came, (n,).

    Codes below 2¹⁶ are sorted by their bytes, which takes a tenth of the time.
    """
    small = values.size and values.max() < 2**16
    return np.argsort(values.astype(np.uint16) if small else values, kind="stable")


def codes(values: ArrayLike) -> IntArray:
    """Return the rank of every value among the sorted distinct values, from 0, shape (n,)."""
    return np.unique(values, return_inverse=True)[1].ravel()  # NumPy 2.0 keeps the shape


def quarters(values: FloatArray | IntArray) -> IntArray:
    """Return the quarter of each value by rank, integers 0 (smallest) to 3 of shape (n,).

    Equal values share one quarter.
    """
    # The rank of a value is the number of smaller ones; partitions are ten times as fast as sorts.
    last = (np.arange(1, 4) * values.size + 3) // 4 - 1
    return np.searchsorted(np.partition(values, last)[last], values)


def below(t: float, values: FloatArray) -> float:
    """Return the smallest number that counts as at least ``t`` in a comparison with ``values``.

    It is t less the rounding error of the values (B,), so that ties count. Frequencies are of order
    1: their differences carry an error of 1e-16 however small they are.
    """
    scale = max(abs(float(values.min())), abs(float(values.max())))
    return t - (1e-10 * abs(t) + 1e-12 * scale + 1e-15)


def reaching(
    t: float, values: FloatArray, two_sided: bool = False, centre: float = 0.0
) -> BoolArray:
    """Return which replicates are at least as extreme as ``t``, booleans (B,), ties included.

    ``values`` (B,) are the replicates of a test statistic and ``t`` its observed value; large
    values are extreme. With ``two_sided`` distances from ``centre`` are compared. Values within
    rounding of t count as ties.
    """
    if two_sided:
        t, values = abs(t - centre), np.abs(values - centre)
    return values >= below(t, values)


# ------------------------------------------------------------------------------
# Refusals of parameters, in one wording.


def one_of(name: str, value: object, choices: Collection[object]) -> None:
    """Raise StatisticError if a parameter's value is not among its choices.

    ``name`` is the parameter; the message lists the choices.
    """
    if value not in choices:
        words = [repr(word) for word in choices]
        choice = " or ".join(words) if len(words) == 2 else f"one of {', '.join(words)}"
        raise StatisticError(f"{name} must be {choice}, not {value!r}")


def number(name: str, value: object, low: float, high: float, ends: str = "()") -> None:
    """Raise StatisticError unless a value is a number between ``low`` and ``high``.

    ``ends`` is "()", "(]", "[)" or "[]": square brackets include an end. Integers count as numbers,
    booleans do not. ``name`` is the parameter in the message, which gives the range.
    """
    inside = False
    if isinstance(value, (float, np.floating)) or is_whole(value):
        at_end = (value, ends[0]) == (low, "[") or (value, ends[1]) == (high, "]")
        inside = at_end or bool(low < value < high)
    if not inside:
        place = f"lie in {ends[0]}{low:g}, {high:g}{ends[1]}"
        place = place if high < np.inf else f"be a number > {low:g}"
        raise StatisticError(f"{name} must {place}, not {in_few_digits(value)}")


def fraction(name: str, value: object) -> None:
    """Raise StatisticError unless a value is a number strictly between 0 and 1.

    ``name`` is the parameter in the message.
    """
    number(name, value, 0.0, 1.0)


#: More replicates, or bins, than this are a slip.
MOST_REPLICATES, MOST_BINS = 10**7, 10**6


def is_whole(value: object) -> TypeGuard[int]:
    """Return whether a value is an integer; booleans are not."""
    return isinstance(value, (int, np.integer)) and not isinstance(value, bool)


def whole(name: str, value: object, least: int = 1, most: int | None = None) -> None:
    """Raise StatisticError unless a value is an integer from ``least`` to ``most``.

    Without ``most`` there is no upper limit. Booleans are refused. ``name`` is the parameter in the
    message, which gives the range.
    """
    if not is_whole(value) or value < least:
        shown = in_few_digits(value)
        raise StatisticError(f"{name} must be a whole number ≥ {least}, not {shown}")
    if most is not None and value > most:
        raise StatisticError(f"{name} must be at most {most}, not {in_few_digits(value)}")


def in_few_digits(value: object) -> str:
    """Return the repr of a value; an integer of more than 64 bits by its number of bits."""
    if is_whole(value) and int(value).bit_length() > 64:
        return f"a whole number of {int(value).bit_length()} bits"
    return repr(value)


# ------------------------------------------------------------------------------
# The defaults that verbs share, one a kind.


#: Replicates behind one p-value or interval.
N_RESAMPLES = 9999


#: Replicates that serve many numbers at once: audits and pictures.
N_TOGETHER = 1999


#: Level of intervals.
INTERVAL_LEVEL = 0.95


#: Level of the bars and bands of pictures.
BAND_LEVEL = 0.9


# ------------------------------------------------------------------------------
# Progress bars for work that takes longer than two seconds.


#: How a simulation ends: with all replicates, by sequential stopping or by Ctrl-C.
Ended = Literal["complete", "early", "interrupted"]


#: Held by the one bar that may be shown.
_SHOWING = Lock()


@contextmanager
def progress(total: int | None, unit: str) -> Iterator[Callable[[int], None]]:
    """Context manager that yields a function to report steps done, for a progress bar.

    The bar shows on a terminal after two seconds, one at a time. ``total`` is the number of steps,
    None if unknown, and ``unit`` their name in the plural. The function takes the number of steps
    done since its last call.
    """
    if total == 1 or not sys.stderr.isatty() or not _SHOWING.acquire(blocking=False):
        yield lambda steps: None
        return
    from tqdm import tqdm

    try:
        width = get_terminal_size().columns  # also where a terminal has none
        with tqdm(total=total, unit=f" {unit}", delay=2.0, leave=False, ncols=width) as bar:
            yield lambda steps: (bar.update(steps), None)[1]
    finally:
        _SHOWING.release()


# ------------------------------------------------------------------------------
# Tables and tensors of other libraries as arrays, without importing any of these libraries.
#
# :func:`as_ndarray` is the entry: it takes arrays, tensors, columns and anything with
# ``__dlpack__``, and refuses masked values. :func:`is_table` and :func:`names_of` recognise frames
# by the attributes of their type.


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
    """Return whether the type of a value has an attribute called ``what``.

    The type is asked and not the value, because columns of a pandas frame are attributes of the
    frame.
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
    """Return the column called ``name`` of a table, in the type of the table's library.

    The name comes from :func:`names_of`.
    """
    assert can(table, "__getitem__")
    return table[name]


def dtype_of(values: object) -> str:
    """Return the name of the number type in its own library, such as "torch.bfloat16".

    It is "" for values without a number type.
    """
    return str(values.dtype) if can(values, "dtype") else ""


def opened(values: object, name: str) -> object:
    """Return a table whose columns can be indexed by name; other values are returned unchanged.

    Lazy frames of polars, relations of duckdb and Hugging Face datasets are collected.
    InvalidPredictionsError for Dask frames; ``name`` is the argument in messages.
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
    """Return values as a NumPy array, of any shape and type.

    InvalidPredictionsError for masked entries and values that are no array; ``name`` is the
    argument in messages.
    """
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
    """Return a column as an array (n,), with None in masked cells; ``name`` is for messages.

    A one-column table is its column; other arrays keep their shape. InvalidPredictionsError for
    values that are no array.
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
