"""Files of any size tallied in one pass, batch by batch and part by part; :func:`scan`.

With ``resume=`` a state file keeps the tally of finished parts, and a later run reads new parts
only.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from os import PathLike
from pathlib import Path
from typing import Any, Literal

from caltest._base.arrays import progress
from caltest._base.saving import (
    FileStamp,
    content_mark,
    locked,
    next_name,
    parse_json,
    sealed,
    unsealed,
    write_file,
)
from caltest._base.written import several
from caltest.data.lenses import Lens
from caltest.errors import InvalidPredictionsError, Reading, StatisticError, spelt
from caltest.read.contract import Wanted
from caltest.read.files import parts_of, refuse_copies, shortened
from caltest.read.tables import n_rows_of
from caltest.tallies.tally import (
    LOOKS,
    MaybeTally,
    Tallies,
    Tally,
    TallyReading,
    joined,
    naming_errors,
)

#: Which commands look so.
COMMANDS_OF_LOOKS = {
    LOOKS[None]: "caltest audit or report",
    LOOKS["usual"]: "caltest test or interval without --lens",
}


#: The version of the stored form of a scan.
SCAN_VERSION = 6


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
    verify: bool = False,
    where: str | None = None,
    predicted_label: str | None = None,
    weights: str | None = None,
    classes: Sequence[object] | None = None,
    from_logits: bool = False,
    renormalise: bool = False,
    drop_missing: bool = False,
    format: str | None = None,
    as_is: bool = False,
) -> Tally | Tallies:
    r"""Tally files that need not fit into memory.

    Parquet, Arrow and text files are read in batches, every other format whole, one file at a time,
    as :func:`read_predictions` does. Numbers do not depend on batches, nor on the order of the
    files.

    Parameters
    ----------
    paths : path, pattern such as ``"part-*.parquet"``, or sequence of them
        The parts. Patterns take files in the order of their names.
    probs, label, where, predicted_label, weights, classes
        As in :func:`read_predictions`; the first part decides which columns are read.
    from_logits, renormalise, drop_missing, format, as_is
        As in :func:`read_predictions`. The questions of predictions and outcomes, and of rows that
        a model was fitted to, are asked of all rows; questions about other columns of the first 32
        768 rows of the first part, as a note says.
    lens : Lens, sequence of them or "usual", optional
        Which probabilities are assessed; by default all lenses of :func:`audit`, with ``"usual"``
        the lens of :func:`calibration_test`.
    grid : int, optional
        As in :meth:`Tallies.of`.
    resume : path, optional
        A file that keeps the tally of whole parts; parts that it has counted are not read again.
        A part counts as unchanged if its size, modification time (in ns), inode and device are, and
        otherwise if the BLAKE2 hash of its whole content is.
    verify : bool, default False
        Compare the content of every counted part, even if its metadata is unchanged.

    Returns
    -------
    Tally or Tallies
        Tallies for several lenses, or for more than two classes without a lens. Notes say how the
        files were read.

    Raises
    ------
    FileNotFoundError
        When there is no such file.
    InvalidPredictionsError
        When a part cannot be read; the message names it and the parts counted before. A
        KeyboardInterrupt on Ctrl-C says the same.
    StatisticError
        When ``resume`` belongs to another question, or one of its parts has changed, even while it
        was being read.

    Notes
    -----
    One pass, some 0.15 µs a row. Numbers of 32 bits within half a step of a decimal of 6 digits are
    read as that decimal, numbers of 16 bits within half a step of 3 digits, row by row.

    Examples
    --------
    >>> import caltest as ct, pathlib, tempfile
    >>> folder = pathlib.Path(tempfile.mkdtemp())
    >>> for day in ("monday", "tuesday"):
    ...     _ = (folder / f"{day}.csv").write_text("p,y\n0.8,1\n0.3,0\n")
    >>> ct.scan(folder / "*.csv").n
    4
    """
    wanted = Wanted(
        probs, label, predicted_label, weights=weights, where=where, classes=classes,
        from_logits=from_logits, renormalise=renormalise, drop_missing=drop_missing,
        format=format, as_is=as_is,
    )  # fmt: skip
    reading = TallyReading(wanted, lens, grid)
    if verify and resume is None:
        raise StatisticError("verify=True compares files with a state: name it with resume=")
    parts = parts_of(paths)
    refuse_copies(parts)
    state = None if resume is None else Path(resume)
    run = _Run(parts, reading, reading.question, state, verify)
    if run.state is None:
        return run.tally_parts()
    with locked(run.state):
        run.load_state()
        return run.tally_parts()


@dataclass
class _Run:
    """State of a scan: its files, the hashes of files already counted, and the tally so far.

    ``parts`` are the files, ``state`` is where the state is saved, ``verify`` says whether files
    that look unchanged are hashed all the same, and ``write_time`` is when it was saved last.
    """

    parts: list[Path]
    reading: TallyReading
    #: The question as it was put, before the first part has said more.
    question: dict[str, str]
    state: Path | None
    verify: bool
    #: Replaced as a whole, so that Ctrl-C never finds one without the other.
    counted: tuple[dict[str, Any], MaybeTally] = field(default_factory=lambda: ({}, None))
    #: Marks of the parts that had to be known before they are read.
    marks: dict[Path, str] = field(default_factory=dict)
    write_time: float = field(default_factory=time.monotonic)

    def tally_parts(self) -> Tally | Tallies:
        """Tally the parts that are not counted yet, and return the tally of all."""
        self.reading.choose(self.parts)
        left = [part for part in self.parts if self.marks.get(part) not in self.counted[0]]
        for part in (part for part in self.parts if part not in left):
            self.reading.seen(part)
        try:
            with progress(n_rows_of(left), "rows") as advance:
                for part in left:
                    self._count(part, advance)
        except KeyboardInterrupt:
            raise KeyboardInterrupt(self.account()) from None
        finally:
            self._write()
        names, tally = self.counted
        if tally is None:
            raise InvalidPredictionsError(f"{self.parts[0].name}: there are no rows, nor in others")
        chosen = self.reading.chosen
        assert chosen is not None
        doubts = self.reading.asked_of_all(tally)
        wanted = [t.name for o in ("probs", "label") for t in chosen.terms[o]]
        note = f"read {several(tally.n, 'row')} of {several(len(names), 'file')}"
        note += f", columns {shortened(wanted)}"
        return replace(tally, notes=(note, *doubts, *self.reading.notes))

    def _count(self, part: Path, advance: Callable[[int], None]) -> None:
        tally, before = None, part.stat()
        stamp = FileStamp.of(part)
        mark = str(part) if self.state is None else self.marks.get(part) or content_mark(part)
        with naming_errors(part, self.account):
            for batch, rows in self.reading.steps(part):
                tally = joined(tally, batch)
                if isinstance(tally, Tallies) and tally.sample is not None:
                    self.reading.bound = min(self.reading.bound, tally.sample.bound)
                advance(rows)
            after = part.stat()
            if (before.st_size, before.st_mtime_ns) != (after.st_size, after.st_mtime_ns):
                raise StatisticError("the file has changed while it was read: read it again")
            names, counts = self.counted
            record = {"name": str(part), **stamp.as_dict()}
            self.counted = {**names, mark: record}, joined(counts, tally)
        if time.monotonic() - self.write_time > WRITTEN_AFTER:
            self._write()

    def account(self) -> str:
        """Return a sentence on the rows and parts counted so far and where they are kept."""
        names, tally = self.counted
        n = several(0 if tally is None else tally.n, "row")
        kept = "with resume= (--resume) a file keeps it"
        place = f"kept in {self.state}" if self.state else spelt(kept)
        return f"Counted before: {n} of {len(names)} of {several(len(self.parts), 'part')}; {place}"

    def _write(self) -> None:
        if self.state is not None:
            names, tally = self.counted
            content = {"caltest scan": SCAN_VERSION, "question": self.question, "parts": names}
            content["tally"] = None if tally is None else tally.to_json()
            write_file(self.state, sealed(content))
        self.write_time = time.monotonic()

    def load_state(self) -> None:
        """Load the counts of an earlier run with the same question and parts."""
        assert self.state is not None
        if not self.state.exists():
            return
        names, question, tally = _stored(self.state)
        self._identify(names)
        remedy = "or start without the state"
        for mark, record in names.items():
            if mark in self.marks.values():
                continue
            name = record["name"]
            if Path(name) in self.parts:
                raise StatisticError(
                    f"{name} has changed since it was counted in {self.state}: restore it, "
                    f"{remedy}",
                    [Reading({"resume": None})],
                )
            raise StatisticError(
                f"{self.state} has counted {name}, which is not among the parts: name all of "
                f"them, {remedy}",
                [Reading({"resume": None})],
            )
        for name, now in self.question.items():
            if question.get(name) != now:
                before = question.get(name, "nothing")
                by = (
                    f"; {COMMANDS_OF_LOOKS[before]} wrote it and can go on"
                    if before in COMMANDS_OF_LOOKS
                    else ""
                )
                raise StatisticError(
                    f"{self.state} was written with {name}={before}, not {now}: give the same, or "
                    f"count anew into another file (resume=){by}",
                    [Reading({"resume": str(next_name(self.state))})],
                )
        self.counted = names, tally

    def _identify(self, names: dict[str, Any]) -> None:
        """Hash the files that may have been counted by an earlier run; others are hashed when read.

        ``names`` are the records of counted files by hash.
        """
        stamps = {mark: _stamp_in(record) for mark, record in names.items()}
        sizes = {stamp.size for stamp in stamps.values()}
        for part in self.parts:
            now = FileStamp.of(part)
            same = [] if self.verify else [m for m, old in stamps.items() if now.trusts(old)]
            if same:
                self.marks[part] = same[0]
            elif now.size in sizes:
                self.marks[part] = content_mark(part)


def _stored(state: Path) -> tuple[dict[str, Any], dict[str, str], MaybeTally]:
    """Return (records of parts, question, tally) from a state file.

    InvalidPredictionsError for a file that is no such state.
    """
    foreign = (
        f"{state} is not the state of a scan, as audit, report, test and interval write it with "
        "--resume"
    )
    other = [Reading({"resume": str(next_name(state))})]
    try:
        content = parse_json(state.read_bytes(), str(state))
    except InvalidPredictionsError:
        raise InvalidPredictionsError(foreign, other) from None
    if not isinstance(content, dict) or "caltest scan" not in content:
        raise InvalidPredictionsError(foreign, other)
    if content["caltest scan"] != SCAN_VERSION:
        raise InvalidPredictionsError(
            f"{state} has the form {content['caltest scan']} of a state, known is {SCAN_VERSION}: "
            "count anew into another file (resume=)",
            other,
        )
    content = unsealed(content, str(state))
    try:
        names, text, tally = dict(content["parts"]), content["tally"], None
        if text is not None:
            several_lenses = text.startswith('{"caltest tallies"')
            tally = (Tallies if several_lenses else Tally).from_json(text)
        for record in names.values():
            _stamp_in(record)
        return names, dict(content["question"]), tally
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise InvalidPredictionsError(f"{state} is damaged: {error}", other) from None


def _stamp_in(record: dict[str, Any]) -> FileStamp:
    return FileStamp(**{name: value for name, value in record.items() if name != "name"})
