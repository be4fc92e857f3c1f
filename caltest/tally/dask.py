"""Tallies by Dask: of the partitions of a data frame, and of files that its workers read."""

from __future__ import annotations

import signal
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import reduce
from pathlib import Path
from typing import Any

from caltest._base.progress import progress
from caltest.errors import InvalidPredictionsError, StatisticError
from caltest.io.opening import imported
from caltest.tally.base import AnyTally
from caltest.tally.batches import ROWS
from caltest.tally.reading import FIRST, Reading, first_rows, joined, named

#: Parts whose tallies are added up by a worker before they travel, and seconds until some do.
TOGETHER, TAKEN_AFTER = 32, 10.0


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


def by_workers(
    parts: list[Path],
    reading: Reading,
    scheduler: Any,
    took: Callable[[list[Path], AnyTally | None], None],
    told: Callable[[], str],
) -> None:
    """Have workers tally files, and hand over what they have counted, some files at a time."""
    distributed = imported("distributed", "dask", "a scheduler of Dask")
    with _client(distributed, scheduler) as client, progress(len(parts), "parts") as advance:
        asked = {client.submit(_of_file, p.absolute(), reading, pure=False): p for p in parts}
        ready: list[Any] = []
        taken = time.monotonic()

        def take() -> None:
            if ready:
                total = client.submit(_added, ready, pure=False, priority=1).result()
                counted, ready[:] = list(ready), []  # Ctrl-C must not count them twice
                took([asked[future] for future in counted], total)
                for future in counted:
                    del asked[future]  # which frees the memory of its worker

        try:
            for future in distributed.as_completed(list(asked), loop=client.loop):
                if future.status == "error":
                    _fail(asked[future], future.exception(), take, told)
                ready.append(future)
                advance(1)
                if len(ready) == TOGETHER or time.monotonic() - taken > TAKEN_AFTER:
                    take()
                    taken = time.monotonic()
        except KeyboardInterrupt:
            client.cancel([future for future in asked if not future.done()])
            take()
            raise
        take()


def _fail(part: Path, error: Any, take: Callable[[], None], told: Callable[[], str]) -> None:
    """Say which part it was, after counting those that are ready."""
    take()
    if not isinstance(error, (InvalidPredictionsError, StatisticError)):
        error = InvalidPredictionsError(f"the worker failed: {type(error).__name__}: {error}")
    with named(part, told):
        raise error


@contextmanager
def _client(distributed: Any, scheduler: Any) -> Iterator[Any]:
    if not isinstance(scheduler, str):
        yield scheduler
        return
    where: dict[str, Any] = {"address": scheduler}
    if scheduler in ("processes", "threads"):
        where = {"dashboard_address": ":0", "silence_logs": 50}
        where |= {"threads_per_worker": 1} if scheduler == "processes" else {"n_workers": 1}
    elif "://" not in scheduler:
        raise StatisticError(
            f"scheduler is {scheduler!r}: give an address such as tcp://host:8786, or processes or "
            "threads for workers on this machine"
        )
    with _deaf_children():
        client = distributed.Client(**where, set_as_default=False)
    with client:
        yield client


@contextmanager
def _deaf_children() -> Iterator[None]:
    """Have processes that are started here ignore Ctrl-C, which is for their parent."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def _of_file(part: Path, reading: Reading) -> AnyTally | None:
    if not part.exists():
        raise InvalidPredictionsError("a worker sees no such file: all read it at the same path")
    return reduce(joined, (tally for tally, _ in reading.steps(part)), None)


def _added(tallies: list[AnyTally | None]) -> AnyTally | None:
    return reduce(joined, tallies)
