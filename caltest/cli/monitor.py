"""``caltest monitor``: calibrated so far? For cron and CI, with a state file."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import click
import numpy as np

import caltest as ct
from caltest._base.arrays import BoolArray, FloatArray, IntArray
from caltest._base.copies import row_numbers
from caltest._base.facts import are_dates, as_dates, as_times
from caltest._base.state import fingerprint, locked, write
from caltest.cli import options as o
from caltest.cli.common import FACTS, Outcome, end_trial, read_file
from caltest.cli.remedies import Refusal
from caltest.io import read_waiting
from caltest.tally.stored import FORM

EXIT_CODES = """
Exit codes: 0 done; 1 the alarm has rung, with --fail-on-alarm; 2 bad input; 130 interrupted. The
state changes as a whole or not at all, whenever the run ends.
"""
#: From this many rows on, equal beginnings are those of one file.
TELLING = 20


@dataclass(frozen=True)
class Part:
    """A file, its rows in the order in which they count, and how many have been counted."""

    path: Path
    probs: FloatArray
    labels: IntArray
    waits: BoolArray
    times: FloatArray
    numbers: IntArray
    classes: tuple[str, ...] | None
    dated: bool
    counted: int = 0

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


@click.command(epilog=EXIT_CODES)
@click.argument("files", nargs=-1, required=True, type=click.Path(path_type=Path))
@o.option("--state", required=True, type=o.TARGET, help="Keeps what is known.")
@o.ROWS
@o.LENS
@o.option("--alpha", type=o.SHARE, show_default="0.05", help="Chance of ever a false alarm.")
@o.option("--change", is_flag=True, default=None, help="Ask whether it has become miscalibrated.")
@o.option("--run-length", type=click.IntRange(32), help="Rows to a false alarm, with --change.")
@o.option("--json", "as_json", is_flag=True, help="Print JSON instead of the report.")
@o.option("--plot", "picture", type=click.Path(path_type=Path), help="Also draw: .pdf, .svg, .png.")
@o.option("--fail-on-alarm", "gate", is_flag=True, help="Exit with 1 once the alarm has rung.")
def monitor(
    files: tuple[Path, ...], state: Path, as_json: bool, picture: Path, gate: bool, **options: Any
) -> Outcome:
    """Bet against calibration as rows come in, and keep the state.

    Rows of FILES that were counted by an earlier run are not counted again, also under a new file
    name; they must not change. From the first row without its label on, rows wait for the next run;
    with --time, all rows of its time and later ones do. Or FILES are tallies, as Tally.to_json
    writes them: each is one batch, in the order given.
    """
    settings = ("lens", "alpha", "change", "run_length", "horizon")
    given = {name: options[name] for name in settings if options[name] is not None}
    if options["drop_missing"]:
        words = "monitor does not take --drop-missing: rows wait for their label"
        raise Refusal(words, ("!--drop-missing",))
    for name in filter(options.get, set(FACTS) - {"time"}):
        words = f"monitor does not take --{name}: every row is a bet of its own"
        raise Refusal(words, (f"!--{name}",))
    if not state.parent.is_dir():
        raise FileNotFoundError(f"--state: there is no folder {state.parent}")
    with locked(state):
        watch, records = ct.Monitor(**given), {}
        if state.exists():
            try:
                stored = json.loads(state.read_text(encoding="utf-8"))
                watch, records = ct.Monitor.from_dict(stored["monitor"]), stored["files"]
            except (json.JSONDecodeError, UnicodeDecodeError, KeyError, TypeError) as error:
                new = str(state.with_name(f"{state.stem}-state.json"))
                words = f"{state} is no state of caltest monitor"
                raise Refusal(words, ("--state", new)) from error
            for name, value in given.items():
                if vars(watch)[name] != value:
                    raise Refusal(
                        f"{state} was begun with {name}={vars(watch)[name]!r}, not {value!r}: "
                        "a new question needs a new state",
                        ("--state", str(state.with_stem(f"{state.stem}-new"))),
                    )
        if watch.change and options["alpha"] is not None:
            words = "--alpha is not for --change, which has --run-length"
            raise Refusal(words, ("!--alpha",))
        if not watch.change and options["run_length"] is not None:
            words = "--run-length is for --change; without it, give --alpha"
            raise Refusal(words, ("--change",), ("!--run-length",))
        paths = list(dict.fromkeys(map(Path.resolve, files)))
        tallies = {path: tally for path in paths if (tally := tally_in(path)) is not None}
        if not tallies:
            parts = [read(path, records, options) for path in paths]
            end_trial()
            watch, records, held = counted(watch, records, parts, options["time"] is not None)
        elif len(tallies) < len(paths):
            raise click.UsageError("give tallies and files of rows in runs of their own")
        else:
            for name in (name for name in options if options[name] and name not in settings):
                option = f"--{name.replace('_', '-')}"
                raise Refusal(f"{option} is for files of rows, not tallies", (f"!{option}",))
            watch, records, held = added(watch, records, tallies)
        write(state, json.dumps({"monitor": watch.as_dict(), "files": records}))
    counts = (f"{name}: {n} new rows, {late} wait for a label" for name, (n, late) in held.items())
    watch = replace(watch, notes=(*counts, *watch.notes))
    if picture is not None:
        watch.plot().save(picture)
    code = int(gate and watch.alarm is not None)
    return (as_json_text(watch, held) if as_json else watch), code


def read(path: Path, records: dict[str, Any], options: dict[str, Any]) -> Part:
    """Read a file, and find out how much of it has been counted."""
    names = {"ids": options["time"], "time": None}
    names |= {"horizon": None} if options["time"] else {}  # in the order of the file it is read so
    data, waits = read_file(path, options | names, read_waiting)
    times = np.zeros(data.n) if data.ids is None else as_times(data.ids, data.n)
    order = np.argsort(times, kind="stable")
    sorted_rows = data.probs[order], data.labels[order], waits[order], times[order]
    dated = data.ids is not None and are_dates(data.ids)
    part = Part(path, *sorted_rows, order + 1, data.classes, dated)
    same, bag = records.get(str(path)), part.bag(data.n)
    for old in records.values() if bag else ():  # the same rows in another order
        if old.get("bag") == bag:
            return replace(part, counted=data.n)
    if same is not None and (same["rows"] > data.n or part.mark(same["rows"]) != same["sha256"]):
        raise ct.InvalidPredictionsError(
            f"{path.name}: its first {same['rows']} rows{' by time' * bool(options['time'])} are "
            "not those that were counted before. Counted rows cannot change: give new data a new "
            "name, or begin a new state"
        )
    for old in () if same else records.values():  # under another name
        if TELLING <= old["rows"] <= data.n and part.mark(old["rows"]) == old["sha256"]:
            same = old if same is None or old["rows"] > same["rows"] else same
    return part if same is None else replace(part, counted=same["rows"])


def tally_in(path: Path) -> ct.Tally | None:
    """Return the tally that a file holds, if it is one."""
    content = path.read_bytes() if path.is_file() else b""
    if content.startswith(f'{{"{FORM}":'.encode()):
        return ct.Tally.from_json(content.decode())
    return None


def added(
    watch: ct.Monitor, records: dict[str, Any], tallies: dict[Path, ct.Tally]
) -> tuple[ct.Monitor, dict[str, Any], dict[str, tuple[int, int]]]:
    """Count tallies that are new, each as a batch, and say of each how many rows were."""
    held = {}
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
        records, held[path.name] = {**records, str(path): entry}, (tally.n * is_new, 0)
    return watch, records, held


def counted(
    watch: ct.Monitor, records: dict[str, Any], parts: list[Part], timed: bool
) -> tuple[ct.Monitor, dict[str, Any], dict[str, tuple[int, int]]]:
    """Count what is new, and say of each file how many rows were, and how many have to wait."""
    sizes = {part.path.name: part.probs.shape[1] for part in parts}
    if len(set(sizes.values())) > 1:
        raise ct.InvalidPredictionsError(f"the files have different numbers of classes: {sizes}")
    named = {part.classes: part.path.name for part in parts}
    if len(named) > 1:
        raise ct.InvalidPredictionsError(
            f"{' and '.join(named.values())} name their classes differently: bring them into one "
            "order by --classes",
            [("--classes", ",".join(part.classes)) for part in parts[:1] if part.classes],
        )
    for part in parts:
        if any(part.begins(other) for other in parts if other is not part):
            raise ct.InvalidPredictionsError(f"{part.path} is a copy of another of these files")
        if (part.times[part.counted :] < (-np.inf if watch.time is None else watch.time)).any():
            raise ct.InvalidPredictionsError(
                f"{part.path}: row {part.numbers[part.counted]}, counted from 1, is of an earlier "
                "time than the last row that was counted; it came too late to be bet on"
            )

    def new(column: str) -> Any:
        return np.concatenate([vars(part)[column][part.counted :] for part in parts])

    times = new("times")
    order = np.argsort(times, kind="stable")
    waits, times = new("waits")[order], times[order]
    stop = int(np.argmax(waits)) if waits.any() else order.size
    if timed and stop < order.size:
        stop = int(np.searchsorted(times, times[stop]))
    order, held, first = order[:stop], {}, 0
    if stop:
        data = ct.Predictions(new("probs")[order], new("labels")[order], parts[0].classes)
        when = as_dates(times[:stop]) if parts[0].dated else times[:stop]
        watch = watch.update(data, time=when if timed else None)
    for part in parts:
        size = part.labels.size - part.counted
        n = int(((order >= first) & (order < first + size)).sum())
        first, rows = first + size, part.counted + n
        renamed = {"rows": part.counted, "sha256": part.mark(part.counted)}
        if part.counted >= TELLING:
            records = {k: old for k, old in records.items() if not renamed.items() <= old.items()}
        length = part.path.stat().st_size
        marks = {"sha256": part.mark(rows), "bag": part.bag(rows)}
        records[str(part.path)] = {"rows": rows, **marks, "size": length}
        held[part.path.name] = (n, size - n)
    return watch, records, held


def as_json_text(watch: ct.Monitor, held: dict[str, tuple[int, int]]) -> str:
    """Return the answer as JSON, without what only the state needs."""
    content = {k: v for k, v in watch.as_dict().items() if k not in ("state", "past", "clock")}
    derived = {"evidence": watch.evidence, "log_evidence": watch.log_evidence, "gain": watch.gain}
    content |= {k: v if math.isfinite(v) else None for k, v in derived.items()}
    content |= {"pvalue": watch.pvalue, "leader": watch.leader}
    content["files"] = {name: {"new": n, "waiting": late} for name, (n, late) in held.items()}
    return json.dumps(content, indent=2, ensure_ascii=False)
