"""How rows of files and of Dask partitions become tallies: batch by batch, all understood alike."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np

from caltest._base.facts import RIGHT
from caltest._base.resolution import as_they_are
from caltest.errors import InvalidPredictionsError, StatisticError
from caltest.io import read_predictions
from caltest.io.assembly import read_chosen
from caltest.io.opening import imported
from caltest.lens_choice import default_lens
from caltest.lenses import Lens, LensLike
from caltest.predictions import Predictions
from caltest.tables.chosen import Chosen, chosen_of
from caltest.tables.source import Request, Source
from caltest.tally.batches import ROWS, batches_of, column, kind_of
from caltest.tally.grid import GRID
from caltest.tally.sample import TELLING, UNBOUNDED, part_of
from caltest.tally.tallies import Tallies, leaves_more_than_two, usual_lenses
from caltest.tally.tally import Tally

if TYPE_CHECKING:
    from dask.dataframe import DataFrame
    from pandas import DataFrame as PandasFrame
    from pyarrow import Table

#: What rows have been counted, if any.
Counts: TypeAlias = Tally | Tallies | None
#: Formats that are read in batches; all others are read whole.
STREAMED = ("parquet", "arrow", "csv")
#: What is looked at, as a state says it.
LOOKS = {None: "all that an audit asks", "usual": "'usual', that of a test"}
#: Rows that say what columns mean.
FIRST = 2**15


@dataclass
class Reading:
    """Which columns are read, through which lens, and what the first rows say of their meaning."""

    probs: str | Sequence[str] | None = None
    label: str | Sequence[str] | None = None
    #: One, several, "usual" for that of tests, or None for all that an audit asks.
    lens: Lens | Sequence[Lens] | Literal["usual"] | None = None
    grid: int | None = None
    weights: str | None = None
    predicted: str | None = None
    drop: bool = False
    options: dict[str, Any] = field(default_factory=dict)
    #: What the first rows have said: columns and lenses.
    chosen: Chosen | None = None
    looks: tuple[LensLike, ...] = ()
    #: Ranks above which no row can still enter the sample.
    bound: np.uint64 = UNBOUNDED

    @property
    def request(self) -> Request:
        """The same as it is asked of one file."""
        return Request(
            self.probs, self.label, predicted_label=self.predicted, weights=self.weights,
            drop_missing=self.drop, **self.options,
        )  # fmt: skip

    @property
    def question(self) -> dict[str, str]:
        """What decides what is counted, in words."""
        options = {
            "probs": self.probs, "label": self.label, "predicted_label": self.predicted,
            "weights": self.weights, "grid": self.grid, "drop_missing": self.drop, **self.options,
        }  # fmt: skip
        lens = LOOKS.get(self.lens) if isinstance(self.lens, (str, type(None))) else None
        return {"lens": lens or repr(self.lens), **{n: repr(v) for n, v in options.items()}}

    def choose(self, parts: Sequence[Path]) -> None:
        """Find out what columns mean, from the first part that is read in batches and has rows."""
        for part in (part for part in parts if kind_of(part) in STREAMED):
            with named(part):
                heads = batches_of(part, str(kind_of(part)), None)
                if head := first_rows(heads):
                    return self.choose_in(head)
        if not any(kind_of(part) in STREAMED for part in parts):
            with named(parts[0]):
                self._look(self._whole(parts[0]))

    def choose_in(self, head: Table) -> None:
        """Find out what columns mean, from the first rows, and warn of doubts."""
        source = _source(head)
        chosen = chosen_of(source, self.request)
        alike = replace(chosen, facts={})  # the first rows may have no weight
        data, _ = read_chosen(source, self.request, alike)
        if chosen.predicted is not None and self.predicted is None:
            if data.classes == RIGHT:
                self.predicted = chosen.predicted
            else:
                chosen = replace(chosen, predicted=None)
        self.chosen = chosen
        self._look(data)

    def _look(self, data: Predictions) -> None:
        """Find out through which lenses."""
        if isinstance(self.lens, str) and self.lens != "usual":
            raise StatisticError(f"lens is {self.lens!r}: give a lens such as TopK(1), or 'usual'")
        if not (self.lens is None or isinstance(self.lens, Sequence) or callable(self.lens)):
            raise StatisticError(f"lens is {self.lens!r}: give a lens such as TopK(1), or several")
        if self.lens is None:
            looks: Sequence[LensLike] = usual_lenses(data)
        elif isinstance(self.lens, str) or callable(self.lens):
            looks = [default_lens(data) if isinstance(self.lens, str) else self.lens]
        else:
            looks = self.lens
        self.looks = tuple(looks)

    def _whole(self, part: Path) -> Predictions:
        return read_predictions(part, **vars(self.request))

    def steps(self, part: Path) -> Iterator[tuple[Counts, int]]:
        """Yield tallies of batches of the rows of a file, and the number of these rows."""
        kind, before = kind_of(part), 0
        if kind not in STREAMED:
            data = self._whole(part)
            yield self.tallied(data), data.n
            return
        assert kind is not None
        key = None
        for batch in batches_of(part, kind, self.chosen.wanted if self.chosen else None):
            key = self.part_key(batch) if key is None else key
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # the first rows have said it
                tally = self.batch(batch, before, key)
            before += batch.num_rows
            yield tally, batch.num_rows

    def part_key(self, table: Table) -> np.uint64:
        """Return what tells a part from others, from its first rows."""
        assert self.chosen is not None
        request = replace(self.request, drop_missing=True)
        alike = replace(self.chosen, facts={})  # the first rows may have no weight
        try:
            with warnings.catch_warnings(), as_they_are():
                warnings.simplefilter("ignore")
                data, _ = read_chosen(_source(table[:TELLING]), request, alike)
        except InvalidPredictionsError:
            return np.uint64(0)  # what is wrong there is said when these rows are tallied
        return part_of(data.labels)

    def batch(self, table: Table, before: int = 0, part: np.uint64 | None = None) -> Counts:
        """Tally rows of a table, of which so many were before; None where no row has weight."""
        if self.weights is not None and not np.any(column(self.weights, table[self.weights])):
            return None
        assert self.chosen is not None
        with as_they_are():
            data, _ = read_chosen(_source(table), self.request, self.chosen, before)
        # Classes are named without a look at which labels occur in these rows
        event = self.options.get("pos_label")
        classes = data.classes if event is None else (f"not {event}", str(event))
        return self.tallied(replace(data, classes=classes, notes=()), before, part)

    def tallied(
        self, data: Predictions, before: int = 0, part: np.uint64 | None = None
    ) -> Tally | Tallies:
        """Tally rows as it is asked."""
        looks: Any = self.looks
        one = len(looks) == 1 and (self.lens is None or self.lens == "usual" or callable(self.lens))
        if one and not leaves_more_than_two(looks[0], data):
            return Tally.of(data, lens=looks[0], grid=GRID if self.grid is None else self.grid)
        return Tallies.of_part(data, looks, self.grid, before, part, self.bound)


def first_rows(heads: Iterable[Table]) -> Table | None:
    """Return the first rows of tables, however these are cut, or None."""
    tables, n = [], 0
    for head in heads:
        tables += [head] * (head.num_rows > 0)
        n += head.num_rows
        if n >= FIRST:
            break
    pyarrow = imported("pyarrow", "parquet", "large files")
    return pyarrow.concat_tables(tables, promote_options="permissive")[:FIRST] if tables else None


def joined(a: Counts, b: Counts) -> Counts:
    """Add tallies of one kind, or nothing."""
    if a is None or b is None:
        return a or b
    both: Any = a, b  # of one reading: tallies of several lenses, or of one
    return both[0] + both[1]


@contextmanager
def named(part: Path | str, account: Callable[[], str] = str) -> Iterator[None]:
    """Have errors name the part of the data that they are about, and what was counted before."""
    try:
        yield
    except (InvalidPredictionsError, StatisticError) as error:
        name = part.name if isinstance(part, Path) else part
        message = str(error) if str(error).startswith(name) else f"{name}: {error}"
        raise type(error)(". ".join(filter(None, (message, account()))), error.remedies) from None


def _source(table: Table) -> Source:
    names = table.column_names
    return Source(names, lambda some: [column(name, table[name]) for name in some], part=True)


def of_frame(frame: DataFrame, reading: Reading) -> Tally | Tallies:
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


def _table(frame: PandasFrame) -> Table:
    pyarrow = imported("pyarrow", "dask", "Dask data frames")
    try:
        return pyarrow.Table.from_pandas(frame, preserve_index=False)
    except pyarrow.ArrowInvalid as error:
        raise InvalidPredictionsError(f"a column holds values of several kinds: {error}") from None


def _of_partition(frame: PandasFrame, name: str, reading: Reading) -> Counts:
    with named(name):
        table, counted = _table(frame), None
        key = reading.part_key(table)
        for first in range(0, table.num_rows, ROWS):
            counted = joined(counted, reading.batch(table.slice(first, ROWS), first, key))
        return counted
