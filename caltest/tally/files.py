"""Files of any size, tallied in one pass: batch by batch, part by part."""

from __future__ import annotations

import glob
import json
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from os import PathLike, fspath
from pathlib import Path
from typing import Any

import numpy as np

from caltest._base.facts import RIGHT
from caltest._base.progress import progress
from caltest._base.state import locked, write
from caltest._base.written import several
from caltest.errors import InvalidPredictionsError, StatisticError
from caltest.io import read_predictions
from caltest.io.assembly import Chosen, chosen_of, read_chosen
from caltest.io.source import Source
from caltest.lenses import Lens
from caltest.predictions import Predictions
from caltest.tally.batches import batches_of, column, kind_of, rows_of
from caltest.tally.grid import GRID
from caltest.tally.tally import Tally

#: Formats that are read in batches; all others are read whole.
STREAMED = ("parquet", "arrow", "csv")


def scan(
    paths: str | PathLike[str] | Sequence[str | PathLike[str]],
    probs: str | Sequence[str] | None = None,
    label: str | Sequence[str] | None = None,
    *,
    lens: Lens | None = None,
    grid: int = GRID,
    resume: str | PathLike[str] | None = None,
    predicted_label: str | None = None,
    weights: str | None = None,
    classes: Sequence[Any] | None = None,
    pos_label: Any = None,
    from_logits: bool = False,
    drop_missing: bool = False,
) -> Tally:
    r"""Tally files that need not fit into memory.

    Parquet, Arrow and text files are read in batches and forgotten, all others one by one as
    :func:`read_predictions` does. Numbers do not depend on batches, nor on the order of the files.

    Parameters
    ----------
    paths : path, pattern such as ``"part-*.parquet"``, or sequence of them
        The parts. Patterns take files in the order of their names.
    probs, label, predicted_label, weights, classes, pos_label, from_logits, drop_missing
        As in :func:`read_predictions`; what the first part does not say is looked for there once.
    lens, grid
        As in :meth:`Tally.of`.
    resume : path, optional
        A file that keeps what has been counted after every part. If it is there, its parts are not
        read again.

    Returns
    -------
    Tally
        Its notes say what was read.

    Raises
    ------
    FileNotFoundError
        When there is no such file.
    InvalidPredictionsError
        When a part cannot be read; the message names it and says what was counted before.
    KeyboardInterrupt
        On Ctrl-C, saying what was read. A part counts as a whole or not at all.
    StatisticError
        When ``resume`` is of another question, or one of its parts has changed.

    Notes
    -----
    One pass; see the page "Any number of rows" for seconds and memory. Numbers of 32 bits within
    half a step of a decimal of 6 digits are read as that decimal, those of 16 bits of 3 digits, row
    by row; :func:`read_predictions` decides that for a whole column.

    Examples
    --------
    >>> import caltest as ct, pathlib, tempfile
    >>> folder = pathlib.Path(tempfile.mkdtemp())
    >>> for day in ("monday", "tuesday"):
    ...     _ = (folder / f"{day}.csv").write_text("p,y\n0.8,1\n0.3,0\n")
    >>> ct.scan(folder / "*.csv").n
    4
    """
    options: Any = {"classes": classes, "pos_label": pos_label, "from_logits": from_logits}
    asked = (probs, label, predicted_label, weights, drop_missing, options)
    reading = _Reading(_parts(paths), lens, grid, *asked)
    if resume is None:
        return reading.run(None, {})
    with locked(Path(resume)):
        counted, done = reading.state(Path(resume))
        return reading.run(counted, done, Path(resume))


def _parts(paths: Any) -> list[Path]:
    if isinstance(paths, (str, PathLike)):
        paths = [paths]
    found: list[Path] = []
    for path in paths:
        matches = sorted(glob.glob(fspath(path))) if not Path(path).exists() else [fspath(path)]
        if not matches:
            raise FileNotFoundError(f"there is no file {path}")
        found += map(Path, matches)
    if len(set(found)) < len(found):
        twice = next(path for path in found if found.count(path) > 1)
        raise StatisticError(f"{twice} is named twice: each part counts once")
    return found


@dataclass
class _Reading:
    """What is read, how, and what has been found out about it."""

    parts: list[Path]
    lens: Lens | None
    grid: int
    probs: Any
    label: Any
    predicted: str | None
    weights: str | None
    drop: bool
    options: dict[str, Any]
    chosen: Chosen | None = None

    def run(
        self, counted: Tally | None, done: dict[str, list[int]], state: Path | None = None
    ) -> Tally:
        """Tally the parts that are not done."""
        left = [part for part in self.parts if str(part) not in done]
        with progress(rows_of(left), "rows") as advance:
            for part in left:
                try:
                    tally = self._part(part, advance)
                    counted = tally if counted is None else counted + tally
                except KeyboardInterrupt:
                    raise KeyboardInterrupt(self._told(counted, done, state)) from None
                except (InvalidPredictionsError, StatisticError) as error:
                    told = self._told(counted, done, state)
                    raise type(error)(f"{_named(part, error)}. {told}") from None
                done = done | {str(part): [part.stat().st_size, tally.n]}
                counted = replace(counted, notes=(self._read(counted.n, len(done)),))
                if state is not None:
                    content = {"caltest scan": 1, "done": done, "tally": counted.to_json()}
                    write(state, json.dumps(content))
        assert counted is not None
        return counted

    def state(self, path: Path) -> tuple[Tally | None, dict[str, list[int]]]:
        """Return what an earlier run has counted."""
        if not path.exists():
            return None, {}
        try:
            content = json.loads(path.read_text(encoding="utf-8"))
            done, counted = dict(content["done"]), Tally.from_json(content["tally"])
        except (ValueError, KeyError, TypeError):
            raise InvalidPredictionsError(f"{path} is not the state of a scan") from None
        for name, (size, _) in done.items():
            if Path(name) not in self.parts:
                raise StatisticError(
                    f"{path} has counted {name}, which is not among the parts: name all of them, "
                    "or start without the state"
                )
            if Path(name).stat().st_size != size:
                raise StatisticError(
                    f"{name} has changed since it was counted in {path}: start without the state"
                )
        if self.grid != counted.grid or self.lens not in (None, counted.lens):
            raise StatisticError(f"{path} has tallied {counted.lens!r} on grid {counted.grid}")
        return counted, done

    def _read(self, n: int, files: int) -> str:
        used = f": {', '.join(self.chosen.wanted)}" if self.chosen else ""
        return f"read {several(n, 'row')} of {several(files, 'file')}{used}"

    def _told(self, counted: Tally | None, done: dict[str, list[int]], state: Path | None) -> str:
        rows = several(0 if counted is None else counted.n, "row")
        read = f"Counted before: {rows} of {len(done)} of {several(len(self.parts), 'part')}"
        kept = "with resume= (--resume) a file keeps them" if state is None else f"kept in {state}"
        return f"{read}; {kept}"

    def _part(self, part: Path, advance: Callable[[int], None]) -> Tally:
        """Tally one file."""
        kind = kind_of(part)
        if kind not in STREAMED:
            self.chosen = None
            asked: Any = {"predicted_label": self.predicted, "weights": self.weights}
            data = read_predictions(
                part, self.probs, self.label, **asked, drop_missing=self.drop, **self.options
            )
            advance(data.n)
            return Tally.of(data, lens=self.lens, grid=self.grid)
        counted: Tally | None = None
        before = 0
        chosen = self._chosen(part, kind)
        for batch in batches_of(part, kind, chosen.wanted):
            if self.weights is None or np.any(column(self.weights, batch[self.weights])):
                own = self._batch(chosen, batch, before)  # rows of weight 0 do not count
                counted = own if counted is None else counted + own
            before += batch.num_rows
            advance(batch.num_rows)
        if counted is None:
            raise InvalidPredictionsError("there are no rows")
        return counted

    def _chosen(self, part: Path, kind: str) -> Chosen:
        """Find out what columns mean, from the first rows of the first part, and warn of doubts."""
        if self.chosen is not None:
            return self.chosen
        head = next(batches_of(part, kind, None), None)
        if head is None:
            raise InvalidPredictionsError("there are no rows")
        source: Source = _source(head)
        asked: Any = {"predicted": self.predicted, "options": self.options}
        chosen = chosen_of(source, self.probs, self.label, {"weights": self.weights}, **asked)
        alike = replace(chosen, marked={})  # the first rows may have no weight
        data, _ = read_chosen(source, alike, drop=self.drop, **asked)
        if chosen.guess and self.predicted is None:
            if data.classes == RIGHT:
                self.predicted = chosen.guess[0]
            else:
                chosen = replace(chosen, guess=[])
        self.chosen = chosen
        return chosen

    def _batch(self, chosen: Chosen, batch: Any, before: int) -> Tally:
        asked: Any = {"predicted": self.predicted, "drop": self.drop, "options": self.options}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the first rows have said it
            data, _ = read_chosen(_source(batch), chosen, **asked, before=before)
        return Tally.of(named_alike(data, self.options), lens=self.lens, grid=self.grid)


def _source(table: Any) -> Source:
    names = table.column_names
    return Source(names, lambda wanted: [column(name, table[name]) for name in wanted])


def named_alike(data: Predictions, options: dict[str, Any]) -> Predictions:
    """Return a batch whose classes are named without a look at which labels occur in it."""
    event = options.get("pos_label")
    named = data.classes if event is None else (f"not {event}", str(event))
    return replace(data, classes=named, notes=())


def _named(part: Path, error: Exception) -> str:
    said = str(error)
    return said if said.startswith(part.name) else f"{part.name}: {said}"
