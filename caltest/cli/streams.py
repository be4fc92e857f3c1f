"""``caltest monitor``: calibrated so far? For cron and CI, with a state file."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import click
import numpy as np

import caltest as ct
from caltest._base.arrays import BoolArray, FloatArray, IntArray
from caltest._base.written import first_of, several
from caltest.cli import options as o
from caltest.cli.help import Verb, option
from caltest.cli.inputs import Outcome, check_out, read_file, this_command
from caltest.cli.remedies import Refusal
from caltest.data.facts import are_dates, as_dates, as_times
from caltest.data.numbers import row_numbers
from caltest.errors import Reading
from caltest.monitoring.watch import format_time
from caltest.read.files import read_growing
from caltest.read.state import fingerprint, locked, write
from caltest.tallies.tally import FORM

EXIT_CODES = """
Exit codes: 0 done; 1 the alarm has rung, with --fail-on-alarm; 2 bad input; 130 interrupted. The
state changes as a whole or not at all, whenever the run ends.
"""


@click.command(cls=Verb, epilog=EXIT_CODES)
@click.argument("files", nargs=-1, required=True, type=click.Path(path_type=Path))
@option("--state", required=True, type=o.TARGET, group="Input", help="File that keeps the state.")
@o.ROWS
@o.TIMES
@o.LENS
@option("--alpha", type=o.SHARE, show_default="0.05", help="Chance of ever a false alarm.")
@option("--change", is_flag=True, default=None, help="Ask whether it has become miscalibrated.")
@option("--run-length", type=click.IntRange(32), help="Rows to a false alarm, with --change.")
@option("--rounded", is_flag=True, default=None,
          help="Probabilities of 0 may be rounded: no bet on rows that have one.")  # fmt: skip
@option("--independent", is_flag=True, default=None,
          help="Rows of one --time are independent given the past.")  # fmt: skip
@o.JSON
@option("--plot", "picture", type=click.Path(path_type=Path), group="Output",
        help="Also draw: .pdf, .svg, .png.")  # fmt: skip
@o.flag("--fail-on-alarm", "gate", group="Output", help="Exit with 1 once an alarm was raised.")
def monitor(
    files: tuple[Path, ...], state: Path, as_json: bool, picture: Path, gate: bool, **options: Any
) -> Outcome:
    """Bet against calibration as rows come in, and keep the state.

    Rows of FILES that were counted by an earlier run are not counted again, also under a new file
    name; they must not change. From the first row without its label on, rows wait for the next run;
    with --time, all rows of its time and later ones do. Rows of one time are one bet, since they
    may depend on each other. With --drop-missing, rows without a label
    before one with it are left out for good, which is valid where neither whether nor when a label
    is known depends on it. Or FILES are tallies, as Tally.to_json writes them: each is one batch,
    in the order given.
    """
    settings = ("lens", "alpha", "change", "run_length", "horizon", "rounded", "independent")
    question = {name: options[name] for name in settings if options[name] is not None}
    if options["independent"] and options["time"] is None:
        raise Refusal(
            "--independent is about the rows of one --time", Reading({"independent": None})
        )
    check_out({"state": state, "picture": picture, "files": files})
    with locked(state):
        watch, records = stored(state, question) if state.exists() else (ct.Monitor(**question), {})
        if watch.change and options["alpha"] is not None:
            words = "--alpha is not for --change, which has --run-length"
            raise Refusal(words, Reading({"alpha": None}))
        if not watch.change and options["run_length"] is not None:
            words = "--run-length is for --change; without it, give --alpha"
            raise Refusal(words, Reading({"change": True}, "the model was calibrated at first"),
                          Reading({"run_length": None}, "it may never have been"))  # fmt: skip
        paths = list(dict.fromkeys(map(Path.resolve, files)))
        tallies = {path: tally for path in paths if (tally := tally_in(path)) is not None}
        if not tallies:
            parts = [read(path, records, options) for path in paths]
            notes = [note for part in parts for note in part.notes[len(parts) > 1 :]]
            before = watch
            watch, records, counts, blocked = counted(
                watch, records, parts, options | {"state": state}
            )
            unseen = not_given(records, parts, before, watch)
        elif len(tallies) < len(paths):
            raise click.UsageError("give tallies and files of rows in runs of their own")
        else:
            for name in (name for name in options if options[name] and name not in settings):
                flag = f"--{name.replace('_', '-')}"
                raise Refusal(f"{flag} is for files of rows, not tallies", Reading({name: None}))
            (watch, records, counts), blocked = added(watch, records, tallies), None
            notes, unseen = [], []
        write(state, json.dumps({"monitor": watch.as_dict(), "files": records}))
    moved = {name: n for name, n in counts.items() if any(n) or len(counts) == 1}
    notes += [*map(in_words, moved, moved.values()), *([str(blocked)] if blocked else []), *unseen]
    doubt = watch.neighbours if options["horizon"] is None else 0.0
    watch = replace(watch, neighbours=doubt, notes=tuple(dict.fromkeys((*notes, *watch.notes))))
    if picture is not None:
        watch.plot().save(picture)
    code = int(gate and watch.alarm is not None)
    if as_json:
        return as_json_text(watch, counts, blocked), code
    is_lost = blocked and blocked.later and not blocked.unfinished
    call = this_command(drop_missing=True) if is_lost else ""
    advice = "to go on without it, if neither whether nor when a label is known depends on it"
    return (f"{watch}\n{advice}, run: {call}" if call else watch), code


def stored(state: Path, question: dict[str, Any]) -> tuple[ct.Monitor, dict[str, Record]]:
    """Return the monitor of a state and the records of its files; it has one question for ever."""
    try:
        content = json.loads(state.read_text(encoding="utf-8"))
        watch, records = ct.Monitor.from_dict(content["monitor"]), content["files"]
    except (json.JSONDecodeError, UnicodeDecodeError, KeyError, TypeError) as error:
        new = str(state.with_name(f"{state.stem}-state.json"))
        raise Refusal(f"{state} is no state of caltest monitor", Reading({"state": new})) from error
    for name, value in question.items():
        if vars(watch)[name] != value:
            raise Refusal(
                f"{state} was begun with {name}={vars(watch)[name]!r}, not {value!r}: a new "
                "question needs a new state",
                new_state(state),
            )
    return watch, records


def read(path: Path, records: dict[str, Record], options: dict[str, Any]) -> Part:
    """Read a file, and find out how much of it has been counted."""
    names = {"ids": options["time"], "time": None, "rounded": None}  # rows that wait stay rows
    names |= {"horizon": None} if options["time"] else {}  # in the order of the file it is read so
    data, rows, waits, unfinished, columns = read_file(path, options | names, read_growing)
    times = np.zeros(data.n) if data.ids is None else as_times(data.ids, data.n)
    order = np.argsort(times, kind="stable")
    labels = np.where(waits, -1, data.labels)[order]
    sorted_columns = data.probs[order], labels, unfinished[order], times[order], rows[order] + 1
    dated = data.ids is not None and are_dates(data.ids)
    column = options["time"]
    notes = tuple(note.replace(f"ids from {column}", f"times from {column}") for note in data.notes)
    part = Part(path, columns, *sorted_columns, data.classes, dated, notes)
    same, bag = records.get(str(path)), part.bag(data.n)
    for old in records.values() if bag else ():  # the same rows in another order
        if old.get("bag") == bag:
            return replace(part, counted=data.n)
    if same is not None and not part.is_after(same):
        raise ct.InvalidPredictionsError(
            f"{path.name}: its first {same['rows']} rows{' by time' * bool(options['time'])} are "
            "not those that were counted before. Counted rows cannot change: give new data a new "
            "name, or begin a new state"
        )
    for old in () if same else records.values():  # under another name
        if old["rows"] >= TELLING and part.is_after(old):
            same = old if same is None or old["rows"] > same["rows"] else same
    return part if same is None else part.after(same)


def tally_in(path: Path) -> ct.Tally | None:
    """Return the tally that a file holds, if it is one."""
    content = path.read_bytes() if path.is_file() else b""
    if content.startswith(f'{{"{FORM}":'.encode()):
        return ct.Tally.from_json(content.decode())
    return None


def added(
    watch: ct.Monitor, records: dict[str, Record], tallies: dict[Path, ct.Tally]
) -> tuple[ct.Monitor, dict[str, Record], dict[str, Count]]:
    """Count tallies that are new, each as a batch, and say of each how many rows were."""
    counts = {}
    for path, tally in tallies.items():
        mark = fingerprint(tally.strata, tally.stratum, tally.key, tally.sums, tally.totals)
        same = records.get(str(path))
        if same is not None and same["sha256"] != mark:
            raise ct.InvalidPredictionsError(
                f"{path.name} is not what was counted before. What is counted cannot change: give "
                "a new tally a new name, or begin a new state"
            )
        again = tally.n >= TELLING and mark in (old["sha256"] for old in records.values())
        is_new = same is None and not again
        watch = watch.update(tally) if is_new else watch
        entry = {"rows": tally.n, "sha256": mark, "size": path.stat().st_size}
        records, counts[path.name] = {**records, str(path): entry}, Count(tally.n * is_new)
    return watch, records, counts


def counted(
    watch: ct.Monitor, records: dict[str, Record], parts: list[Part], options: dict[str, Any]
) -> tuple[ct.Monitor, dict[str, Record], dict[str, Count], FirstWaiting | None]:
    """Count what is new, say of each file how many rows were, and which row others wait for.

    With ``drop_missing`` labels are lost that are not there before one that is, in the order of the
    rows, or with times of an earlier time; the last rows still wait.
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
        data = ct.Predictions(new("probs")[order[bets]], labels[bets], parts[0].classes)
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
    """Say how many rows of a file were counted, wait, and were left out."""
    text = f"{name}: {count.new} new rows, {count.waiting} wait for a label"
    reasons = {"without one left out for good": count.lost}
    reasons["left out for good, as later ones were bet on"] = count.late
    for reason, rows in reasons.items():
        if rows:
            text += f", {len(rows)} {reason} (row{'s' * (len(rows) > 1)} {first_of(rows)})"
    return text


def as_json_text(watch: ct.Monitor, counts: dict[str, Count], blocked: FirstWaiting | None) -> str:
    """Return the answer as JSON, without what only the state needs."""
    content = {
        k: v for k, v in watch.as_dict().items() if k not in ("state", "past", "clock", "walks")
    }
    derived = {"evidence": watch.evidence, "log_evidence": watch.log_evidence, "gain": watch.gain}
    content |= {k: v if math.isfinite(v) else None for k, v in derived.items()}
    content |= {"pvalue": watch.pvalue, "leader": watch.leader}
    means = {"means": watch.means, "means_since_alarm": watch.means_since_alarm}
    content |= {name: pair if math.isfinite(sum(pair)) else None for name, pair in means.items()}
    content["files"] = {name: count._asdict() for name, count in counts.items()}
    content["first_waiting"] = blocked and blocked.row
    return json.dumps(content, indent=2, ensure_ascii=False)


# ------------------------------------------------------------------------------
# Files of rows that a monitor has counted in part, and what its state remembers of them.


#: What the state has of a file: rows that were counted, their marks, and places of lost labels.
Record: TypeAlias = "dict[str, Any]"


#: From this many rows on, equal beginnings are those of one file.
TELLING = 20


class Count(NamedTuple):
    """Rows of a file that a run has counted, those that wait, and those that it left out.

    Rows are ``late`` that waited until later ones were bet on without them.
    """

    new: int = 0
    waiting: int = 0
    lost: tuple[int, ...] = ()
    late: tuple[int, ...] = ()


class FirstWaiting(NamedTuple):
    """The first row that waits, whether its line has no end, and whether later rows have labels."""

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
class Part:
    """A file, its rows in the order in which they count, and how many have been counted.

    A label is −1 where there is none; ``lost`` are places whose label is not waited for.
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

    def after(self, record: Record) -> Part:
        """Return the part of which a record has the first rows; labels that it lost stay so."""
        labels, lost = self.labels.copy(), record.get("lost", ())
        labels[[place for place in lost if place < labels.size]] = -1
        waited = record.get("waiting", 0)
        return replace(self, labels=labels, counted=record["rows"], lost=tuple(lost), waited=waited)

    def late(self, watch: ct.Monitor) -> BoolArray:
        """Which of the rows that are not counted are of a time on which the bet is made."""
        return is_over(self.times[self.counted :], watch)

    def is_after(self, record: Record) -> bool:
        """Whether its first rows are those of a record."""
        count, same = record["rows"], self.after(record)
        return count <= self.labels.size and same.mark(count) == record["sha256"]

    def row(self, place: int, timed: bool) -> str:
        """Return what a row is called: its number in the file, and its time."""
        when = f" ({format_time(self.times[place], self.dated)})" if timed else ""
        return f"row {self.numbers[place]}{when} of {self.path.name}"

    def mark(self, count: int) -> str:
        """Return a hash of the first rows."""
        return fingerprint(self.probs[:count], self.labels[:count], self.times[:count])

    def bag(self, count: int) -> str:
        """Return a number of the first rows in any order, "" if too few of them are different."""
        columns = [self.probs.view(np.int64), self.labels, self.times.view(np.int64)]
        rows = row_numbers(np.column_stack(columns)[:count])
        return f"{count} {rows.sum():x}" if np.unique(rows).size >= TELLING else ""

    def begins(self, other: Part) -> bool:
        """Whether this is another file, or the beginning of one, or holds its rows."""
        n, m = self.labels.size, other.labels.size
        begins = TELLING <= n <= m and other.mark(n) == self.mark(n)
        return begins or bool(n == m and self.bag(n) and self.bag(n) == other.bag(n))


def is_over(times: FloatArray, watch: ct.Monitor) -> BoolArray:
    """Say on which times the bet is made."""
    if watch.time is None:
        return np.zeros(times.shape, dtype=bool)
    return times < watch.time if watch.independent else times <= watch.time


def not_given(
    records: dict[str, Record], parts: list[Part], before: ct.Monitor, watch: ct.Monitor
) -> list[str]:
    """Say which rows wait in other files, and which later rows have been bet on without."""
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
    """Return the reading that keeps another state beside one."""
    name = str(state.with_stem(f"{state.stem}-new"))
    return Reading({"state": name}, "the rows are of another model")


def refuse_misfits(
    watch: ct.Monitor, records: dict[str, Record], parts: list[Part], options: dict[str, Any]
) -> None:
    """Refuse files that are not of one model, and rows that come too late or twice."""
    state = options["state"]
    if watch.time is not None and options["time"] is None:
        raise ct.InvalidPredictionsError(
            f"{state} has counted rows up to {format_time(watch.time, watch.dates)}: name the time "
            "of these rows, too, with --time, or another state if they are of another model",
            [new_state(state)],
        )
    if watch.n and watch.time is None and options["time"] is not None:
        raise ct.InvalidPredictionsError(
            f"{state} has counted rows without times: begin a new state with --time",
            [new_state(state)],
        )
    sizes = {part.path.name: part.probs.shape[1] for part in parts}
    if len(set(sizes.values())) > 1:
        raise ct.InvalidPredictionsError(f"the files have different numbers of classes: {sizes}")
    named = {part.classes: part.path.name for part in parts}
    if len(named) > 1:
        raise ct.InvalidPredictionsError(
            f"{' and '.join(named.values())} name their classes differently: list their columns "
            "in one order with --probs"
        )
    before = [old["columns"] for old in records.values() if "columns" in old]
    for part in parts if before and not (options["probs"] and options["label"]) else ():
        if [*part.columns] != before[-1]:
            raise ct.InvalidPredictionsError(
                f"{state} has counted rows of columns {', '.join(before[-1])}, and "
                f"{part.path.name} has {', '.join(part.columns)}: rows of another model have a "
                "state of their own; of the same, name the columns with --probs and --label",
                [new_state(state)],
            )
    for part in parts:
        if any(part.begins(other) for other in parts if other is not part):
            raise ct.InvalidPredictionsError(f"{part.path} is a copy of another of these files")
        if part.late(watch).sum() > part.waited:
            raise ct.InvalidPredictionsError(
                f"{part.path}: row {part.numbers[part.counted]}, counted from 1, is of no later "
                "time than the last row that was counted; it came too late to be bet on. Rows of "
                "another model have a state of their own",
                [new_state(state)] * (part.counted == 0),
            )


def recorded(
    records: dict[str, Record], part: Part, rows: int, lost: IntArray, timed: bool
) -> dict[str, Record]:
    """Return the records with the first rows of a file, in the place of those of an old name."""
    labels = part.labels.copy()
    labels[lost] = -1  # as they are taken at the next run
    part = replace(part, labels=labels)
    renamed = {"rows": part.counted, "sha256": part.mark(part.counted)}
    if part.counted >= TELLING:
        records = {k: old for k, old in records.items() if not renamed.items() <= old.items()}
    marks = {"sha256": part.mark(rows), "bag": part.bag(rows), "size": part.path.stat().st_size}
    entry: Record = {"rows": rows, **marks, "lost": [*part.lost, *lost.tolist()]}
    entry["columns"] = [*part.columns]
    entry["waiting"] = part.labels.size - rows
    entry["since"] = float(part.times[rows]) if timed and entry["waiting"] else None
    return records | {str(part.path): entry}
