"""Files of any size, tallied in one pass: batch by batch, part by part."""

from __future__ import annotations

import glob
import json
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from os import PathLike, fspath
from pathlib import Path
from typing import Any, Literal

from caltest._base.progress import progress
from caltest._base.state import locked, write
from caltest._base.written import several
from caltest.errors import InvalidPredictionsError, StatisticError
from caltest.io.assembly import shortened
from caltest.lenses import Lens
from caltest.tally.base import AnyTally
from caltest.tally.batches import rows_of
from caltest.tally.reading import Reading, joined, named
from caltest.tally.tallies import Tallies
from caltest.tally.tally import Tally

#: Seconds after which what has been counted is written again.
WRITTEN_AFTER = 10.0


def scan(
    paths: str | PathLike[str] | Sequence[str | PathLike[str]],
    probs: str | Sequence[str] | None = None,
    label: str | Sequence[str] | None = None,
    *,
    lens: Lens | Sequence[Lens] | Literal["usual"] | None = None,
    grid: int | None = None,
    resume: str | PathLike[str] | None = None,
    scheduler: Any = None,
    predicted_label: str | None = None,
    weights: str | None = None,
    classes: Sequence[Any] | None = None,
    pos_label: Any = None,
    from_logits: bool = False,
    drop_missing: bool = False,
) -> Any:
    r"""Tally files that need not fit into memory.

    Parquet, Arrow and text files are read in batches and forgotten, all others one by one as
    :func:`read_predictions` does. Numbers do not depend on batches, nor on the order of the files.

    Parameters
    ----------
    paths : path, pattern such as ``"part-*.parquet"``, or sequence of them
        The parts. Patterns take files in the order of their names.
    probs, label, predicted_label, weights, classes, pos_label, from_logits, drop_missing
        As in :func:`read_predictions`; what the first part does not say is looked for there once.
    lens : Lens, sequence of them or "usual", optional
        What is looked at; by default all that :func:`audit` asks, and with ``"usual"`` what
        :func:`calibration_test` does.
    grid : int, optional
        As in :meth:`Tallies.of`.
    resume : path, optional
        A file that keeps what has been counted, also of a part that is being read. If it is there,
        these rows are not counted again.
    scheduler : str or dask.distributed.Client, optional
        Has the parts tallied by workers of Dask (``caltest[dask]``), which see them under the same
        paths: an address such as ``"tcp://host:8786"``, or ``"processes"`` or ``"threads"`` of this
        machine. The bits are those of one process.

    Returns
    -------
    Tally or Tallies
        The latter of several lenses, or without one of more than two classes. Notes say what was
        read.

    Raises
    ------
    FileNotFoundError
        When there is no such file.
    InvalidPredictionsError
        When a part cannot be read; the message names it and says what was counted before.
    KeyboardInterrupt
        On Ctrl-C, saying what was counted.
    OSError
        When the scheduler cannot be reached, or its workers die of a part or do not see it.
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
    columns = probs, label, lens, grid, weights, predicted_label
    reading = Reading(*columns, drop=drop_missing, options=options)
    run = _Run(_parts(paths), reading, None if resume is None else Path(resume))
    if run.state is None:
        return run.all(scheduler)
    with locked(run.state):
        run.go_on()
        return run.all(scheduler)


def _parts(paths: Any) -> list[Path]:
    if isinstance(paths, (str, PathLike)):
        paths = [paths]
    elif not (isinstance(paths, Sequence) and all(isinstance(p, (str, PathLike)) for p in paths)):
        raise InvalidPredictionsError(
            f"paths is a {type(paths).__name__}, not the names of files: values in memory are for "
            "Tallies.of(probs, labels), a Dask data frame for Tallies.from_dask"
        )
    if not paths:
        raise InvalidPredictionsError("paths is empty: name a file")
    found: list[Path] = []
    for path in paths:
        matches = sorted(glob.glob(fspath(path))) if not Path(path).exists() else [fspath(path)]
        if not matches:
            none = "no file is like" if set("*?[") & set(fspath(path)) else "there is no file"
            raise FileNotFoundError(f"{none} {path}")
        found += map(Path, matches)
    if len(set(found)) < len(found):
        twice = next(path for path in found if found.count(path) > 1)
        raise StatisticError(f"{twice} is named twice: each part counts once")
    return found


@dataclass(frozen=True)
class _Counted:
    """How far a run has come: the sizes of whole parts, their tally, and what is open."""

    done: dict[str, int] = field(default_factory=dict)
    tally: Any = None
    #: The file that is open, its size, how many of its rows are counted, and their tally.
    open: tuple[str, int, int] = ("", 0, 0)
    opened: Any = None

    @property
    def both(self) -> Any:
        """The tally of all rows that are counted."""
        return joined(self.tally, self.opened)


@dataclass
class _Run:
    """What is read, and what has been counted: replaced as a whole, wherever Ctrl-C comes."""

    parts: list[Path]
    reading: Reading
    state: Path | None
    counted: _Counted = field(default_factory=_Counted)
    written: float = field(default_factory=time.monotonic)
    #: What is asked, before the first part has said more.
    asked: dict[str, str] = field(init=False)

    def __post_init__(self) -> None:
        self.asked = self.reading.asked

    def all(self, scheduler: Any) -> Any:
        """Tally the parts that are not done."""
        self.reading.choose(self.parts)
        left = [part for part in self.parts if str(part) not in self.counted.done]
        try:
            if scheduler is None:
                self._one_by_one(left)
            else:
                from caltest.tally.dask import by_workers

                by_workers(left, self.reading, scheduler, self.took, self.told)
        except KeyboardInterrupt:
            raise KeyboardInterrupt(self.told()) from None
        finally:
            self._write()
        found, read = self.counted.tally, len(self.counted.done)
        if found is None:
            raise InvalidPredictionsError(f"{self.parts[0].name}: there are no rows, nor in others")
        used = f", columns {shortened(self.reading.chosen.wanted)}" if self.reading.chosen else ""
        note = f"read {several(found.n, 'row')} of {several(read, 'file')}{used}"
        return replace(found, notes=(note,))

    def _one_by_one(self, left: list[Path]) -> None:
        with progress(rows_of(left), "rows") as advance:
            for part in left:
                name, size = str(part), part.stat().st_size
                again = self.counted.open[:2] == (name, size)
                rows, own = (self.counted.open[2], self.counted.opened) if again else (0, None)
                advance(rows)
                with named(part, self._failed):
                    for tally, more in self.reading.steps(part, rows):
                        rows, own = rows + more, joined(own, tally)
                        if isinstance(own, Tallies) and own.sample is not None:
                            self.reading.bound = min(self.reading.bound, own.sample.bound)
                        self.counted = replace(self.counted, open=(name, size, rows), opened=own)
                        advance(more)
                        self._write_now_and_then()
                    self.took([part], own)

    def _failed(self) -> str:
        """Forget the rows of an open part, which may be others when it is mended."""
        self.counted = replace(self.counted, open=("", 0, 0), opened=None)
        return self.told()

    def took(self, parts: Iterable[Path], tally: AnyTally | None) -> None:
        """Count whole parts."""
        done = self.counted.done | {str(part): part.stat().st_size for part in parts}
        self.counted = _Counted(done, joined(self.counted.tally, tally))
        self._write_now_and_then()

    def told(self) -> str:
        """Say what has been counted."""
        counted, (part, _, rows) = self.counted, self.counted.open
        n = several(0 if counted.both is None else counted.both.n, "row")
        read = f"Counted before: {n} of {len(counted.done)} of {several(len(self.parts), 'part')}"
        read += f" and of the first {rows} of {Path(part).name}" if rows else ""
        kept = "with resume= (--resume) a file keeps them"
        return f"{read}; {f'kept in {self.state}' if self.state else kept}"

    def _write_now_and_then(self) -> None:
        if time.monotonic() - self.written > WRITTEN_AFTER:
            self._write()

    def _write(self) -> None:
        if self.state is not None:
            kept = self.counted
            tallies = [None if t is None else t.to_json() for t in (kept.tally, kept.opened)]
            content = {"caltest scan": 3, "asked": self.asked, "tallies": tallies}
            content |= {"done": kept.done, "open": kept.open}
            write(self.state, json.dumps(content))
        self.written = time.monotonic()

    def go_on(self) -> None:
        """Take up what an earlier run has counted."""
        assert self.state is not None
        if not self.state.exists():
            return
        try:
            content = json.loads(self.state.read_text(encoding="utf-8"))
            done, (part, size, rows) = dict(content["done"]), content["open"]
            whole, own = map(_tally_of, content["tallies"])
            asked = dict(content["asked"])
        except (ValueError, KeyError, TypeError):
            raise InvalidPredictionsError(f"{self.state} is not the state of a scan") from None
        for name, counted in done.items():
            if Path(name) not in self.parts:
                raise StatisticError(
                    f"{self.state} has counted {name}, which is not among the parts: name all of "
                    "them, or start without the state"
                )
            if Path(name).stat().st_size != counted:
                raise StatisticError(
                    f"{name} has changed since it was counted in {self.state}: start without the "
                    "state"
                )
        for name, now in self.asked.items():
            if asked.get(name) != now:
                raise StatisticError(
                    f"{self.state} was written with {name}={asked.get(name)}, not {now}: give the "
                    "same, or start without the state"
                )
        self.counted = _Counted(done, whole, (part, size, rows), own)


def _tally_of(text: str | None) -> Any:
    if text is None:
        return None
    kind: Any = Tallies if text.startswith('{"caltest tallies"') else Tally
    return kind.from_json(text)
