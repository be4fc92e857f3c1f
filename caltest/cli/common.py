"""What the commands share besides options: reading the input, handing over the answer."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from contextlib import suppress
from dataclasses import fields, replace
from functools import partial
from inspect import signature
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import click
import numpy as np

import caltest as ct
from caltest.cli.remedies import SMALL, Legible, Refusal, corrected
from caltest.io.pooling import lent_labels, parts_of
from caltest.tables.source import Request

if TYPE_CHECKING:
    from caltest.results import Result

#: What a command returns: what to print, and the exit code.
Outcome: TypeAlias = "tuple[Result | str, int]"
#: Bytes of a file from which on it is read in batches.
LARGE = 2**29
#: The share of rows that may lack a prediction or an outcome where nobody has said so.
FEW = 0.01
#: Values of a column that are as many subgroups.
LEVELS = 20
#: The options that name columns of facts.
FACTS = ("clusters", "weights", "by", "ids", "folds", "time", "event", "strata")
#: What options of ``ROWS`` are called that ``read_predictions`` takes as they are.
_READ = {field.name for field in fields(Request)} - {"probs", "label", "classes"}


def end_trial() -> None:
    """End a command that only tries to read."""
    if click.get_current_context().obj is Legible:
        raise Legible


def settings(verb: Callable[..., Any], options: dict[str, Any]) -> dict[str, Any]:
    """Return the options that a verb takes under the same names, but those of the input.

    All is read where a verb is asked: a command that only tries to read ends here.
    """
    end_trial()
    names = signature(verb).parameters.keys() & options.keys() - {"probs", "against"}
    return {name: options[name] for name in names}


def read(options: dict[str, Any], paired: bool = False) -> ct.Predictions | ct.Tally:
    """Read what the options name, or the embedded example; many files and large ones by batches.

    A few incomplete rows are left out with a note, unless rows are ``paired`` with others.
    """
    check_out(options)
    files = options["file"] if isinstance(options["file"], tuple) else (options["file"],)
    if files in ((), (None,)):
        for name in filter(options.get, ("probs", "label", *FACTS)):
            raise Refusal(f"--{name} names a column: give the FILE that has it", ("FILE",))
        example = "the embedded example, a small neural network on noisy handwritten digits"
        click.echo(f"No file given: this is {example}.\n", err=True)
        return ct.examples.digits("overfit")
    parts = parts_of(files)
    size = sum(part.stat().st_size for part in parts if part.is_file())
    if not options.get("resume") and size <= LARGE:
        choices = options if paired else leniency(options)
        return read_file(parts if len(parts) > 1 else parts[0], choices)
    facts = ("clusters", "folds", "time", "horizon", "by", "ids", "event", "features")
    rows = (*facts, "per_character", "format", "sheet", "rounded")
    for name in (name for name in rows if options.get(name)):
        option = f"--{name.replace('_', '-')}"
        raise Refusal(
            f"{option} needs rows in memory: files of up to {LARGE >> 20} MB together, without "
            "--resume",
            ("!--resume" if size <= LARGE else f"!{option}",),
        )
    return read_file(parts, {**options, **dict.fromkeys(rows)}, partial(_scanned, options))


def _scanned(
    options: dict[str, Any], files: Any, *columns: Any, **arguments: Any
) -> ct.Tally | ct.Tallies:
    if options.get("statistic") is not None:
        from caltest.problem import problem_of_tally
        from caltest.statistics.base import prepare

        # What no tally can say is refused before hours of reading.
        few = ct.Tally.of([0.25, 0.5, 0.75, 0.5], [0, 1, 1, 0])
        prepare(options["statistic"], problem_of_tally(few))
    arguments["resume"] = options.get("resume")
    arguments["lens"] = options.get("lens") or (None if options.get("whole") else "usual")
    return ct.scan(files, *columns, **arguments)


def check_out(options: dict[str, Any]) -> None:
    """Refuse a folder that does not exist before any work is done."""
    for name in ("out", "resume"):
        if options.get(name) is not None and not options[name].parent.is_dir():
            raise FileNotFoundError(f"--{name}: there is no folder {options[name].parent}")


def leniency(options: dict[str, Any]) -> dict[str, Any]:
    """Return options of rows of which some may be left out, as no others are paired with them."""
    few = {} if options["drop_missing"] else {"drop_missing": FEW}
    return options | few | ({"rounded": "auto"} if options.get("rounded") is None else {})


def read_file(path: Any, options: dict[str, Any], reader: Callable[..., Any] | None = None) -> Any:
    """Read a file as the options say."""
    arguments = {name: value for name, value in options.items() if name in _READ}
    absent = (type(None), bool, tuple)  # 0 is a number, though equal to False
    arguments = {k: v for k, v in arguments.items() if v or not isinstance(v, absent)}
    if options["classes"] is not None:
        arguments["classes"] = classes_of(options["classes"])
    return (reader or ct.read_predictions)(path, options["probs"], options["label"], **arguments)


def read_models(
    files: dict[str, Any], options: dict[str, Any], reader: Callable[..., Any] = read_file
) -> dict[str, Any]:
    """Read the files of several models, each as probabilities or as logits, whichever it holds.

    What could be either is refused where others can only be logits. Labels that a file lacks are
    those of the same ids in another.
    """
    lent = lent_labels(files.values()) if options["ids"] and options["label"] is None else {}
    data: dict[str, Any] = {}
    logits: dict[str, ct.InvalidPredictionsError] = {}
    for name, path in files.items():
        try:
            data[name] = reader(path, options | lent.get(path, {}))
        except ct.InvalidPredictionsError as error:
            if error.remedies != (("--from-logits",),) or options["from_logits"]:
                raise
            logits[name] = error
    if logits and not data:
        raise next(iter(logits.values()))
    for name in logits:
        more = lent.get(files[name], {}) | {"from_logits": True}
        data[name] = reader(files[name], options | more)
    of_logits = {name for name, rows in data.items() if options["from_logits"] and _is_wide(rows)}
    for name in data.keys() - of_logits if of_logits else ():
        raise Refusal(
            f"{files[name]} holds no value outside [0, 1], unlike {' and '.join(of_logits)}: leave "
            "--from-logits out, each file is read as what it holds",
            ("!--from-logits",),
        )
    return {name: data[name] for name in files}


def _is_wide(rows: ct.Predictions | ct.Tally) -> bool:
    """Say whether probabilities are of logits outside [0, 1], or of more than two classes."""
    if not isinstance(rows, ct.Predictions) or rows.n_classes > 2:
        return True
    from scipy.special import logit

    z = logit(rows.probs[:, 1])
    return bool(((z < 0.0) | (z > 1.0)).any())


def classes_of(text: str) -> list[int] | list[str]:
    """Return label values as they are listed: whole numbers, of which "…" leaves some out."""
    names = [name.strip() for name in text.replace("...", "…").split(",")]
    if len(names) == 3 and names[1] == "…" and names[0].isdecimal() and names[2].isdecimal():
        return list(range(int(names[0]), int(names[2]) + 1))
    return list(map(int, names)) if all(name.isdecimal() for name in names) else names


def searchable_columns(file: Path | None, options: dict[str, Any]) -> dict[str, int] | None:
    """Return the columns that caltest segments searches, and how many values each of them has.

    Those of few values are first. None where that is not known: of what is no file, or would take
    long to read once more.
    """
    if file is None or not file.is_file() or file.stat().st_size > SMALL >> 2:
        return None
    with warnings.catch_warnings(action="ignore"), suppress(ct.InvalidPredictionsError):
        from caltest.segments.search import searchable as searched

        rows = read_file(file, leniency(options | {"features": "*"}))
        columns = rows.features.named
        try:
            names = searched(replace(rows, folds=None, whole=None, followup=None))
        except ct.StatisticError:  # such as few rows
            names = tuple(columns)
        counts = {name: np.unique(columns[name].values).size for name in names}
        varying = {name: count for name, count in counts.items() if count > 1}
        return dict(sorted(varying.items(), key=lambda item: item[1] > LEVELS))
    return {}


def with_searchable(data: Any, options: dict[str, Any]) -> Any:
    """Return rows of one file that know which columns caltest segments would search."""
    files = options["file"]
    if len(files) != 1 or not isinstance(data, ct.Predictions) or not data.unused:
        return data
    columns = searchable_columns(files[0], options)
    return data if columns is None else replace(data, unused=(*columns,))


def this_command(*remedy: str) -> str:
    """Return the command that runs with a remedy, "" where no words of one are known."""
    context = click.get_current_context()
    if not context.obj or not context.parent or not isinstance(context.parent.command, click.Group):
        return ""
    return corrected(context.obj, remedy, context.parent.command)


def finish(result: Result, failed: bool, options: dict[str, Any]) -> Outcome:
    """Write the report that was asked for and choose the exit code; ``main`` prints and exits."""
    end_trial()
    if options["out"] is not None:
        write = {".json": result.to_json, ".md": result.to_markdown, ".tex": result.to_latex}
        text = write.get(options["out"].suffix.lower(), result.__str__)()
        options["out"].write_text(text.rstrip("\n") + "\n", encoding="utf-8")
    code = 130 if result.ended == "interrupted" else int(failed and options["gate"])
    return (result.to_json() if options["as_json"] else result), code
