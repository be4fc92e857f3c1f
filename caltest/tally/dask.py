"""Tallies of the partitions of a Dask data frame, made where these are."""

from __future__ import annotations

import warnings
from typing import Any

from caltest.errors import InvalidPredictionsError
from caltest.io.opening import imported
from caltest.tally.base import AnyTally
from caltest.tally.batches import ROWS
from caltest.tally.reading import FIRST, Reading, first_rows, joined, named


def of_frame(frame: Any, reading: Reading) -> Any:
    """Tally a frame where its partitions are; what columns mean is read off its first rows."""
    dask = imported("dask", "dask", "Dask data frames")
    frame = frame.rename(columns={name: str(name) for name in frame.columns})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of fewer rows than the head may have
        parts = (frame.partitions[j] for j in range(frame.npartitions))
        head = first_rows(_table(part.head(FIRST)) for part in parts)
    if head is None:
        raise InvalidPredictionsError("the data frame has no rows")
    with named("first rows"):
        reading.choose_in(head)
    assert reading.chosen is not None
    tally, add = (dask.delayed(f, pure=False) for f in (_of_partition, joined))
    delayed = enumerate(frame[reading.chosen.wanted].to_delayed())
    waiting = [tally(part, f"partition {j}", reading) for j, part in delayed]
    while len(waiting) > 1:
        pairs = zip(waiting[::2], waiting[1::2], strict=False)
        waiting = [add(a, b) for a, b in pairs] + waiting[len(waiting) // 2 * 2 :]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the first rows have said it
        (counted,) = dask.compute(waiting[0])
    if counted is None:
        raise InvalidPredictionsError("weights are all 0: no row would count")
    return counted


def _table(frame: Any) -> Any:
    pyarrow = imported("pyarrow", "dask", "Dask data frames")
    try:
        return pyarrow.Table.from_pandas(frame, preserve_index=False)
    except pyarrow.ArrowInvalid as error:
        raise InvalidPredictionsError(f"a column holds values of several kinds: {error}") from None


def _of_partition(frame: Any, name: str, reading: Reading) -> AnyTally | None:
    with named(name):
        table, counted = _table(frame), None
        key = reading.part_key(table)
        for first in range(0, table.num_rows, ROWS):
            counted = joined(counted, reading.batch(table.slice(first, ROWS), first, key))
        return counted
