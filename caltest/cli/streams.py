"""``caltest monitor``: calibrated so far? For cron and CI, with a state file.

The state file holds the monitor and a record of every file that it has read, so that a file may
grow between runs; :mod:`caltest.monitoring.records` compares records with files.
"""

from __future__ import annotations

import json
import math
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import click
import numpy as np

import caltest as ct
from caltest._base.saving import locked, next_name, parse_json, sealed, unsealed, write_file
from caltest.cli import options as o
from caltest.cli.inputs import Outcome, check_out, read_file, this_command
from caltest.cli.options import Verb, option
from caltest.cli.remedies import Refusal
from caltest.data.facts import are_dates, as_times
from caltest.errors import Reading
from caltest.monitoring.records import (
    ROWS_OF_A_FILE,
    Count,
    CountedPart,
    FileRecord,
    FirstWaiting,
    added,
    counted,
    in_words,
    new_state,
    not_given,
    tally_in,
)
from caltest.read.files import parts_of, read_growing

MONITOR_EXIT_CODES = """
Exit codes: 0 done; 1 an alarm was raised, with --fail-on-alarm; 2 bad input; 130 interrupted. The
state changes as a whole or not at all, whenever the run ends.
"""


@click.command(cls=Verb, epilog=MONITOR_EXIT_CODES)
@click.argument("files", nargs=-1, required=True, type=click.Path(path_type=Path))
@option(
    "--state",
    required=True,
    type=o.TARGET,
    group="Input",
    help="File that keeps the state of this monitor; made if new.",
)
@o.ROW_OPTIONS
@o.TIMES
@o.LENS
@option("--alpha", type=o.SHARE, show_default="0.05", help="Probability of ever a false alarm.")
@option("--change", is_flag=True, default=None, help="Ask whether it has become miscalibrated.")
@option("--run-length", type=click.IntRange(32), help="Rows to a false alarm, with --change.")
@option("--rounded/--not-rounded", default=None, show_default="auto",
          help="Probabilities of 0 or 1 may be rounded: no bet on such rows.")  # fmt: skip
@option("--independent", is_flag=True, default=None,
          help="Rows of one --time are independent given the past.")  # fmt: skip
@o.JSON
@option("--plot", "picture", type=click.Path(path_type=Path), group="Output",
        help="Also draw: .pdf, .svg, .png.")  # fmt: skip
@o.flag("--fail-on-alarm", "gate", group="Output", help="Exit with 1 once an alarm was raised.")
def monitor(
    files: tuple[Path, ...], state: Path, as_json: bool, picture: Path, gate: bool, **options: Any
) -> Outcome:
    """Monitor calibration sequentially with e-values; the state is kept in a file.

    Rows of FILES that an earlier run has counted are not counted again, even under a new file name;
    they must not change. From the first row without a label on, rows wait for the next run; with
    --time, all rows of its time and of later times do. Rows of one time are one bet, because they
    may depend on each other. With --drop-missing, rows without a label are left out for good once a
    later row has one. This is valid if neither whether nor when a label becomes known depends on
    it. FILES may also be tallies, as Tally.to_json writes them: each is one batch, in the order
    given.

    \f

    Click calls this function: ``state`` is the file that keeps the monitor, ``as_json`` asks for
    JSON, ``picture`` is a file to draw to or None, ``gate`` is --fail-on-alarm, and ``options`` are
    the values of all other options by Python name. It returns (monitor or text to print, exit
    code).
    """  # noqa: D301
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
        paths = list(dict.fromkeys(map(Path.resolve, _named(files))))
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
        write_file(state, sealed({"monitor": watch.as_dict(), "files": records}))
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


def _named(files: tuple[Path, ...]) -> list[Path]:
    """Return the files that paths and patterns such as "*.csv" name, in order."""
    return [part for path in files for part in parts_of(path)]


def stored(state: Path, question: dict[str, Any]) -> tuple[ct.Monitor, dict[str, FileRecord]]:
    """Return (monitor, records) from the state file of ``caltest monitor``.

    ``records`` says what was counted of each file: a dict for each path, with the number of counted
    rows and their hash. ``question`` has the options that decide how rows are counted, such as
    "alpha", by Python name. Refusal, an error of the command line, if the file is no state, is
    damaged, or was begun with other options.
    """
    new = Reading({"state": str(next_name(state))})
    try:
        content = parse_json(state.read_bytes(), str(state))
    except ct.InvalidPredictionsError:
        content = None
    if not isinstance(content, dict) or not {"monitor", "files", "checksum"} <= content.keys():
        raise Refusal(f"{state} is no state of caltest monitor", new)
    try:
        content = unsealed(content, str(state))
        watch, records = ct.Monitor.from_dict(content["monitor"]), dict(content["files"])
    except ct.InvalidPredictionsError as error:
        raise Refusal(str(error), new) from error
    for name, value in question.items():
        if vars(watch)[name] != value:
            raise Refusal(
                f"{state} was begun with {name}={vars(watch)[name]!r}, not {value!r}: a new "
                "question needs a new state",
                new_state(state),
            )
    return watch, records


def read(path: Path, records: dict[str, FileRecord], options: dict[str, Any]) -> CountedPart:
    """Return the rows of one file of a monitor, with the number of them that were counted earlier.

    The result, a :class:`CountedPart`, has the rows in the order of their times, −1 in place of a
    label that is not known yet. ``records`` says what was counted of each file, by path, and
    ``options`` are the values of the command's options by Python name. InvalidPredictionsError if
    counted rows have changed.
    """
    names = {"ids": options["time"], "time": None, "rounded": None}  # rows that wait stay rows
    names |= {"horizon": None} if options["time"] else {}  # in the order of the file it is read so
    reader = partial(read_growing, begun=bool(records))
    data, rows, waits, unfinished, columns = read_file(path, options | names, reader)
    times = np.zeros(data.n) if data.ids is None else as_times(data.ids, data.n)
    order = np.argsort(times, kind="stable")
    labels = np.where(waits, -1, data.labels)[order]
    sorted_columns = data.probs[order], labels, unfinished[order], times[order], rows[order] + 1
    dated = data.ids is not None and are_dates(data.ids)
    column = options["time"]
    notes = tuple(note.replace(f"ids from {column}", f"times from {column}") for note in data.notes)
    part = CountedPart(path, columns, *sorted_columns, data.classes, dated, notes)
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
        if old["rows"] >= ROWS_OF_A_FILE and part.is_after(old):
            same = old if same is None or old["rows"] > same["rows"] else same
    return part if same is None else part.after(same)


def as_json_text(watch: ct.Monitor, counts: dict[str, Count], blocked: FirstWaiting | None) -> str:
    """Return the monitor ``watch`` and the row counts as JSON, without internal state.

    ``counts`` has the number of rows of each file that were counted or wait, by name, and
    ``blocked`` the first row that waits for its label; None if none does.
    """
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
