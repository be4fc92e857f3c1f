"""Records of files in a monitor's state: which rows were counted, which wait for their outcome.

A record has the number of counted rows and their hash, so that a changed, renamed or repeated file
is recognised. :class:`CountedPart` compares a file with its record.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from caltest._base.arrays import BoolArray, FloatArray, IntArray
from caltest._base.saving import fingerprint, next_name
from caltest._base.written import first_of, several
from caltest.data import Predictions
from caltest.data.facts import as_dates
from caltest.data.numbers import row_numbers
from caltest.errors import InvalidPredictionsError, Reading
from caltest.monitoring.monitor import Monitor
from caltest.monitoring.watch import format_time
from caltest.tallies.grid import FORM
from caltest.tallies.tally import Tally

#: What the state has of a file: rows that were counted, their marks, and places of lost labels.
FileRecord: TypeAlias = "dict[str, Any]"


#: From this many rows on, equal beginnings are those of one file.
ROWS_OF_A_FILE = 20


class Count(NamedTuple):
    """Numbers of rows of a file: counted by this run, waiting for a label, and left out.

    ``new`` rows were counted and ``waiting`` rows wait. ``lost`` are the numbers (from 1) of the
    rows left out since they have no label, ``late`` of rows that waited until later ones were bet
    on without them.
    """

    new: int = 0
    waiting: int = 0
    lost: tuple[int, ...] = ()
    late: tuple[int, ...] = ()


class FirstWaiting(NamedTuple):
    """First row of a file that waits for its outcome; ``str`` gives a sentence on it.

    ``row`` is its name in messages, such as "row 12 of a.csv". ``unfinished`` says that its line is
    incomplete, ``later`` that later rows have labels.
    """

    row: str
    unfinished: bool
    later: bool

    def __str__(self) -> str:
        if self.unfinished:
            return f"{self.row} waits for the end of its line"
        if self.later:
            return (
                f"{self.row} has no label, and all later rows wait for it; if it will never have "
                "one, leave it out with --drop-missing"
            )
        words = "give the file again with its label, before later rows or with them"
        return f"the first that waits is {self.row}: {words}"


@dataclass(frozen=True)
class CountedPart:
    """File of a monitor: its m rows in the order in which they count, and how many are counted.

    ``probs`` has shape (m, K); ``labels``, ``times`` and ``numbers``, the rows' numbers in
    messages, have shape (m,). A label is −1 where there is none; ``unfinished`` (m,) marks a last
    line without its end. ``dated`` says whether times are dates, in seconds since 1970. ``columns``
    are the names of the columns read, ``classes`` the names of the classes or None, and ``notes``
    sentences on the reading. ``counted`` is the number of rows counted by earlier runs, ``lost``
    are indices of rows whose label is not waited for, and ``waited`` is the number of rows that
    waited at the end of the last run.
    """

    path: Path
    columns: tuple[str, ...]
    probs: FloatArray
    labels: IntArray
    unfinished: BoolArray
    times: FloatArray
    numbers: IntArray
    classes: tuple[str, ...] | None
    dated: bool
    notes: tuple[str, ...]
    counted: int = 0
    lost: tuple[int, ...] = ()
    waited: int = 0

    def after(self, record: FileRecord) -> CountedPart:
        """Return the file with its first rows marked as counted, as a record of earlier runs says.

        ``record`` is a dict with the number of counted rows (``rows``), the indices of rows given
        up (``lost``), and the number of rows that waited (``waiting``). Labels that were given up
        stay lost.
        """
        labels, lost = self.labels.copy(), record.get("lost", ())
        labels[[place for place in lost if place < labels.size]] = -1
        waited = record.get("waiting", 0)
        return replace(self, labels=labels, counted=record["rows"], lost=tuple(lost), waited=waited)

    def late(self, watch: Monitor) -> BoolArray:
        """Return which rows of this file, not yet counted, have a time already bet on.

        The booleans have shape (m − c,), for the m − c rows after the c counted ones. ``watch`` is
        the monitor, which knows the last time.
        """
        return is_over(self.times[self.counted :], watch)

    def is_after(self, record: FileRecord) -> bool:
        """Return whether this file begins with the rows of a record, and so continues it.

        ``record`` is a dict with the number of counted rows (``rows``) and their hash (``sha256``).
        """
        count, same = record["rows"], self.after(record)
        return count <= self.labels.size and same.mark(count) == record["sha256"]

    def row(self, place: int, timed: bool) -> str:
        """Return the name of a row in messages, such as "row 12 (2024-05-01) of a.csv".

        ``place`` is its index; the time is left out unless rows are ``timed``.
        """
        when = f" ({format_time(self.times[place], self.dated)})" if timed else ""
        return f"row {self.numbers[place]}{when} of {self.path.name}"

    def mark(self, count: int) -> str:
        """Return a hash (hexadecimal text) of the first ``count`` rows of this file, in order."""
        return fingerprint(self.probs[:count], self.labels[:count], self.times[:count])

    def bag(self, count: int) -> str:
        """Return a hash, as text, of the first ``count`` rows that ignores their order.

        It is "" if fewer than 20 of the rows are distinct.
        """
        columns = [self.probs.view(np.int64), self.labels, self.times.view(np.int64)]
        rows = row_numbers(np.column_stack(columns)[:count])
        return f"{count} {rows.sum():x}" if np.unique(rows).size >= ROWS_OF_A_FILE else ""

    def begins(self, other: CountedPart) -> bool:
        """Return whether the ``other`` file is a copy or continuation of this one.

        It is False for files of fewer than 20 rows.
        """
        n, m = self.labels.size, other.labels.size
        begins = ROWS_OF_A_FILE <= n <= m and other.mark(n) == self.mark(n)
        return begins or bool(n == m and self.bag(n) and self.bag(n) == other.bag(n))


def is_over(times: FloatArray, watch: Monitor) -> BoolArray:
    """Return which times were already bet on, booleans of the shape of ``times``.

    ``watch`` is the monitor, which knows the last time.
    """
    if watch.time is None:
        return np.zeros(times.shape, dtype=bool)
    return times < watch.time if watch.independent else times <= watch.time


def not_given(
    records: dict[str, FileRecord], parts: list[CountedPart], before: Monitor, watch: Monitor
) -> list[str]:
    """Return notes on waiting rows in files that are not given now, a list of sentences.

    They name rows that still wait, and rows that were passed over because later ones were bet on.
    ``records`` are kept from earlier runs, by path of the file: dicts with the numbers of rows
    counted and waiting. ``parts`` are the files given now, with their rows. ``before`` is the
    monitor before this run, ``watch`` after it.
    """
    notes, files = list[str](), {str(part.path) for part in parts}
    for path, record in records.items():
        if path in files or not record.get("waiting"):
            continue
        since = record["since"]
        over, was_over = (
            since is not None and bool(is_over(np.array(since), each)) for each in (watch, before)
        )
        when = "" if since is None else f" of {format_time(since, watch.dates)} and later"
        words = f"{several(record['waiting'], 'row')}{when} in {Path(path).name}"
        if not over:
            notes.append(f"{words} still wait for a label: give that file again")
        elif not was_over:
            notes.append(f"{words} waited for a label and are now left out: later rows are bet on")
    return notes


def new_state(state: Path) -> Reading:
    """Return a suggested value of the option ``state``: a new file beside the ``state`` in use.

    It is a :class:`Reading`, one way to read the input, which error messages offer as a command.
    """
    return Reading({"state": str(next_name(state))}, "the rows are of another model")


def refuse_misfits(
    watch: Monitor,
    records: dict[str, FileRecord],
    parts: list[CountedPart],
    options: dict[str, Any],
) -> None:
    """Raise InvalidPredictionsError for files that do not continue the counted ones.

    These are files of another model, files with other classes or columns, rows that come too late,
    and copies. ``watch`` is the monitor, ``parts`` are the files given now, with their rows, and
    ``records`` the records of files from earlier runs, by path. ``options`` are the options of the
    command by name, of which ``state``, ``time``, ``probs`` and ``label`` are read.
    """
    state = options["state"]
    if watch.time is not None and options["time"] is None:
        raise InvalidPredictionsError(
            f"{state} has counted rows up to {format_time(watch.time, watch.dates)}: name the time "
            "of these rows as well, with --time, or another state if they are of another model",
            [new_state(state)],
        )
    if watch.n and watch.time is None and options["time"] is not None:
        raise InvalidPredictionsError(
            f"{state} has counted rows without times: begin a new state with --time",
            [new_state(state)],
        )
    sizes = {part.path.name: part.probs.shape[1] for part in parts}
    if len(set(sizes.values())) > 1:
        raise InvalidPredictionsError(f"the files have different numbers of classes: {sizes}")
    named = {part.classes: part.path.name for part in parts}
    if len(named) > 1:
        raise InvalidPredictionsError(
            f"{' and '.join(named.values())} name their classes differently: list their columns "
            "in one order with --probs"
        )
    before = [old["columns"] for old in records.values() if "columns" in old]
    for part in parts if before and not (options["probs"] and options["label"]) else ():
        if [*part.columns] != before[-1]:
            raise InvalidPredictionsError(
                f"{state} has counted rows of columns {', '.join(before[-1])}, and "
                f"{part.path.name} has {', '.join(part.columns)}: rows of another model have a "
                "state of their own; of the same, name the columns with --probs and --label",
                [new_state(state)],
            )
    for part in parts:
        if any(part.begins(other) for other in parts if other is not part):
            raise InvalidPredictionsError(f"{part.path} is a copy of another of these files")
        if part.late(watch).sum() > part.waited:
            raise InvalidPredictionsError(
                f"{part.path}: row {part.numbers[part.counted]}, counted from 1, is of no later "
                "time than the last row that was counted; it came too late to be bet on. Rows of "
                "another model have a state of their own",
                [new_state(state)] * (part.counted == 0),
            )


def recorded(
    records: dict[str, FileRecord], part: CountedPart, rows: int, lost: IntArray, timed: bool
) -> dict[str, FileRecord]:
    """Return the ``records`` of files by path, updated by one file with ``rows`` counted rows.

    ``part`` is the file, with its rows. Its record is a dict: numbers of rows counted (``rows``)
    and waiting (``waiting``), time of the first of these (``since``) or None, indices of rows given
    up (``lost``), hashes, file size, and column names. A record of the same rows under an old name
    of the file is removed. ``lost`` are the indices of rows that were passed over now without their
    label. ``timed`` says whether rows have times.
    """
    labels = part.labels.copy()
    labels[lost] = -1  # as they are taken at the next run
    part = replace(part, labels=labels)
    renamed = {"rows": part.counted, "sha256": part.mark(part.counted)}
    if part.counted >= ROWS_OF_A_FILE:
        records = {k: old for k, old in records.items() if not renamed.items() <= old.items()}
    marks = {"sha256": part.mark(rows), "bag": part.bag(rows), "size": part.path.stat().st_size}
    entry: FileRecord = {"rows": rows, **marks, "lost": [*part.lost, *lost.tolist()]}
    entry["columns"] = [*part.columns]
    entry["waiting"] = part.labels.size - rows
    entry["since"] = float(part.times[rows]) if timed and entry["waiting"] else None
    return records | {str(part.path): entry}


def tally_in(path: Path) -> Tally | None:
    """Return the tally (sums over fine bins) that a JSON file holds; None for any other file."""
    content = path.read_bytes() if path.is_file() else b""
    if content.startswith(f'{{"{FORM}":'.encode()):
        return Tally.from_json(content.decode())
    return None


def added(
    watch: Monitor, records: dict[str, FileRecord], tallies: dict[Path, Tally]
) -> tuple[Monitor, dict[str, FileRecord], dict[str, Count]]:
    """Update the monitor by new tallies, each as one batch; return (monitor, records, counts).

    ``watch`` is the monitor. ``tallies`` (sums over fine bins in place of rows) are by path of the
    file, as are ``records``, the records of files from earlier runs, which say which are counted.
    ``counts`` has the number of rows counted from each file, by its name. InvalidPredictionsError
    for a file whose content has changed since it was counted.
    """
    counts = {}
    for path, tally in tallies.items():
        mark = fingerprint(tally.strata, tally.stratum, tally.key, tally.sums, tally.totals)
        same = records.get(str(path))
        if same is not None and same["sha256"] != mark:
            raise InvalidPredictionsError(
                f"{path.name} is not what was counted before. What is counted cannot change: give "
                "a new tally a new name, or begin a new state"
            )
        again = tally.n >= ROWS_OF_A_FILE and mark in (old["sha256"] for old in records.values())
        is_new = same is None and not again
        watch = watch.update(tally) if is_new else watch
        entry = {"rows": tally.n, "sha256": mark, "size": path.stat().st_size}
        records, counts[path.name] = {**records, str(path): entry}, Count(tally.n * is_new)
    return watch, records, counts


def counted(
    watch: Monitor,
    records: dict[str, FileRecord],
    parts: list[CountedPart],
    options: dict[str, Any],
) -> tuple[Monitor, dict[str, FileRecord], dict[str, Count], FirstWaiting | None]:
    """Update the monitor by new rows of files; return (monitor, records, counts, first waiting).

    ``watch`` is the monitor, ``records`` are the records of earlier runs by path, and ``parts`` the
    files with their rows. ``options`` are the options of the command by name: with ``drop_missing``
    a row without a label is left out for good if a later row (or time) has one. ``counts`` has the
    numbers of rows counted, waiting and left out by name of the file; the last is the first row
    that waits for its label, or None. InvalidPredictionsError for files that do not continue the
    counted ones.
    """
    timed, counts = options["time"] is not None, dict[str, Count]()
    refuse_misfits(watch, records, parts, options)

    def new(column: str) -> Any:
        return np.concatenate([vars(part)[column][part.counted :] for part in parts])

    times = new("times")
    order = np.argsort(times, kind="stable")
    times, labels, unfinished = times[order], new("labels")[order], new("unfinished")[order]
    sizes = [part.labels.size - part.counted for part in parts]
    of_part = np.repeat(np.arange(len(parts)), sizes)[order]
    place = np.concatenate([np.arange(part.counted, part.labels.size) for part in parts])[order]
    step = times if timed else np.arange(order.size, dtype=np.float64)
    last = step[labels >= 0].max(initial=-np.inf)
    late = np.concatenate([part.late(watch) for part in parts])[order]
    lost = (labels < 0) & (step < last) & ~unfinished & options["drop_missing"] | late
    waits, stop, blocked = (labels < 0) & ~lost, order.size, None
    if waits.any():
        row = int(np.argmax(waits))
        stop, part = int(np.searchsorted(step, step[row])), parts[of_part[row]]
        later = bool(last > step[row])
        blocked = FirstWaiting(part.row(place[row], timed), bool(unfinished[row]), later)
    bets = np.flatnonzero(~lost[:stop])
    if bets.size:
        data = Predictions(new("probs")[order[bets]], labels[bets], parts[0].classes)
        when = as_dates(times[bets]) if parts[0].dated else times[bets]
        watch = watch.update(data, time=when if timed else None)
    for j, part in enumerate(parts):
        here = of_part[:stop] == j
        n, gone = int(here.sum()), np.sort(place[:stop][here & lost[:stop]])
        records = recorded(records, part, part.counted + n, gone, timed)
        over = np.isin(gone, place[late & (of_part == j)])
        numbers = [tuple(np.sort(part.numbers[gone[one]]).tolist()) for one in (~over, over)]
        counts[part.path.name] = Count(n - gone.size, sizes[j] - n, *numbers)
    return watch, records, counts, blocked


def in_words(name: str, count: Count) -> str:
    """Return a sentence on the rows of a file that were counted, wait, or were left out.

    ``name`` is the file's name; ``count`` has the numbers of rows, and the row numbers left out.
    """
    text = f"{name}: {count.new} new rows, {count.waiting} wait for a label"
    reasons = {"without one left out for good": count.lost}
    reasons["left out for good, as later ones were bet on"] = count.late
    for reason, rows in reasons.items():
        if rows:
            text += f", {len(rows)} {reason} (row{'s' * (len(rows) > 1)} {first_of(rows)})"
    return text
