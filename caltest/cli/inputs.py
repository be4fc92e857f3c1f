"""From the options of a command to rows: files read at once or in batches, models matched.

:func:`read` is the entry for one model, :func:`read_models` for several; :func:`finish` writes
outputs and returns the exit code. Refusals carry readings, which become ``run:`` lines.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from inspect import signature
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import click

import caltest as ct
from caltest._base.saving import write_file
from caltest._base.written import DependenceDoubt
from caltest.cli.layout import VERBOSE, in_brief
from caltest.cli.remedies import Refusal, command
from caltest.data.utilities import Threshold, Utility
from caltest.errors import InvalidPredictionsError, Reading
from caltest.results.decisions import FORMULAS

if TYPE_CHECKING:
    from caltest.results import Result


#: What a command returns: what to print, and the exit code.
Outcome: TypeAlias = "tuple[Result | str, int]"

#: Bytes of files from which on they are read in batches: one file, and several.
BYTES_OF_BATCHES, BYTES_OF_PARTS = 2**29, 2**24

#: The share of rows that may lack a prediction or an outcome where nobody has said so.
MISSING_SHARE = 0.01

#: Options that name columns, of which there are none without a file.
COLUMN_OPTIONS = (
    *("probs", "label", "clusters", "weights", "by", "ids", "folds", "time", "event", "competing"),
    *("strata", "where", "items", "votes"),
)

#: Options that need all rows at once.
NEEDING_ALL_ROWS = (
    *("clusters", "folds", "time", "horizon", "by", "ids", "event", "competing", "features"),
    *("per_character", "format", "sheet", "rounded", "items", "votes", "unit", "recorded"),
)

#: Options that are written to, and those that may be a file that is read.
WRITTEN_TO, READ_FROM = (
    ("out", "resume", "state", "picture"),
    ("against", "recalibrated", "like", "costs"),
)

#: Verdicts that say neither yes nor no, which end a command that gates with 3.
UNSURE = (ct.AuditVerdict.TOO_LITTLE_DATA, ct.AuditVerdict.CANNOT_TELL)


def settings(verb: Callable[..., Any], options: dict[str, Any]) -> dict[str, Any]:
    """Return the options that a function of caltest takes, as a dict of its keyword arguments.

    ``verb`` is the function, such as :func:`caltest.audit`, and ``options`` are the values of the
    command's options by Python name. Options of the input are left out, because they have been read
    already.
    """
    names = signature(verb).parameters.keys() & options.keys() - {"probs", "against", "competing"}
    return {name: options[name] for name in names}


def read(
    options: dict[str, Any], paired: bool = False, sums: bool = False
) -> ct.Predictions | ct.Tally:
    """Read the predictions that a command's options name, or the embedded example.

    ``options`` are the values of the command's options by Python name, such as "file" and "label".
    The result is a tally (sums over fine bins) if files are read by batches, else predictions: with
    ``resume``, above ``BYTES_OF_BATCHES``, and, where ``sums`` are as good as rows to the command
    and to the options, for several files above ``BYTES_OF_PARTS``. A few incomplete rows are left
    out with a note, unless rows are ``paired`` with rows of another file. Refusal, an error of the
    command line, for options that do not fit together; otherwise it raises the errors of
    :func:`read_predictions`.
    """
    check_out(options)
    files = options["file"] if isinstance(options["file"], tuple) else (options["file"],)
    if files in ((), (None,)):
        for name in filter(options.get, COLUMN_OPTIONS):
            raise Refusal(f"--{name} is about columns: give the FILE", Reading({"": "FILE"}))
        example = "the embedded example, a small neural network on noisy handwritten digits"
        click.echo(f"No file given: this is {example}.\n", err=True)
        return ct.examples.digits("overfit")
    from caltest.read.files import parts_of

    parts = parts_of(files)
    size = sum(part.stat().st_size for part in parts if part.is_file())
    sums = sums and len(parts) > 1 and _takes_sums(options)
    if not options.get("resume") and size <= (BYTES_OF_PARTS if sums else BYTES_OF_BATCHES):
        choices = options if paired else leniency(options)
        return read_file(parts if len(parts) > 1 else parts[0], choices)
    for name in (name for name in NEEDING_ALL_ROWS if options.get(name)):
        option = f"--{name.replace('_', '-')}"
        raise Refusal(
            f"{option} needs rows in memory: files of up to {BYTES_OF_BATCHES >> 20} MB together, "
            "without --resume",
            Reading({"resume" if size <= BYTES_OF_BATCHES else name: None}),
        )
    return read_file(
        parts, {**options, **dict.fromkeys(NEEDING_ALL_ROWS)}, partial(_scanned, options)
    )


def _scanned(
    options: dict[str, Any], files: Any, *columns: Any, **arguments: Any
) -> ct.Tally | ct.Tallies:
    """Return the tally of files that are read by batches, or tallies for several lenses.

    ``files`` are the paths, ``columns`` and ``arguments`` further arguments of
    :func:`caltest.scan`. ``options`` are the values of the command's options by Python name, of
    which ``lens``, ``whole``, ``resume``, ``verify`` and ``statistic`` count. StatisticError,
    before anything is read, for a statistic that needs rows.
    """
    _prepare_on_tally(options.get("statistic"))  # refuse before hours of reading
    arguments |= {"resume": options.get("resume"), "verify": bool(options.get("verify"))}
    arguments["lens"] = options.get("lens") or (None if options.get("whole") else "usual")
    return ct.scan(files, *columns, **arguments)


def _takes_sums(options: dict[str, Any]) -> bool:
    """Return whether a tally can answer a command with these options, values by Python name.

    It cannot where an option needs rows, a null distribution or method of an interval is named, or
    the statistic has no form for sums.
    """
    if any(options.get(name) for name in (*NEEDING_ALL_ROWS, "costs")):
        return False
    if {options.get("null"), options.get("method")} - {None, "auto"}:
        return False
    try:
        _prepare_on_tally(options.get("statistic"))
    except ct.StatisticError:
        return False
    return True


def _prepare_on_tally(statistic: Any) -> None:
    """Raise StatisticError if a statistic needs rows.

    ``statistic`` is the value of --statistic: a statistic, a name in ``FORMULAS``, or None.
    """
    from caltest.statistics.prepared import prepare
    from caltest.tallies import problem_of_tally

    if statistic is not None and statistic not in FORMULAS:
        few = ct.Tally.of([0.25, 0.5, 0.75, 0.5], [0, 1, 1, 0])
        prepare(statistic, problem_of_tally(few))


def utility_of(options: dict[str, Any], data: ct.Predictions | ct.Tally) -> Utility | None:
    """Return the utility defined by --costs or --threshold; None without either.

    ``options`` are the values of the command's options by Python name: ``costs`` is a file or None,
    ``threshold`` a number or None. ``data`` are the rows whose classes the table of costs names.
    Refusal, an error of the command line, for both at once, and for costs beside a tally.
    """
    path, threshold = options["costs"], options["threshold"]
    if path and threshold:
        raise Refusal(
            "--costs and --threshold are two utilities: name one",
            Reading({"threshold": None}), Reading({"costs": None}),
        )  # fmt: skip
    if path and not isinstance(data, ct.Predictions):
        raise Refusal("--costs need rows in memory, and these files are read in batches")
    if path and isinstance(data, ct.Predictions):
        return _costs(path, data)
    return Threshold(threshold) if threshold else None


def _costs(path: Path, data: ct.Predictions) -> ct.Costs:
    """Read a table of costs: a row for each action, its name first, and a column for each class.

    ``path`` is a CSV file, and ``data`` are the predictions whose classes the columns name.
    Refusal, an error of the command line, if these do not fit, for a file that cannot be read, and
    for costs that are no numbers.
    """
    import polars as pl

    try:
        frame = pl.read_csv(path)
    except (pl.exceptions.PolarsError, OSError) as error:
        raise Refusal(f"--costs {path}: {str(error).partition(chr(10))[0]}") from None
    names = [str(name) for name in data.classes or range(data.n_classes)]
    head, columns = frame.columns[0], frame.columns[1:]
    if sorted(columns) != sorted(names):
        raise Refusal(
            f"--costs {path} has columns {', '.join(columns) or 'none'} after {head}, and the "
            f"classes are {', '.join(names)}: name a column for each"
        )
    try:
        matrix = frame.select(pl.col(names).cast(pl.Float64)).to_numpy()
    except pl.exceptions.PolarsError:
        raise Refusal(f"--costs {path} holds a cost that is not a number") from None
    return ct.Costs(matrix, tuple(str(name) for name in frame[head]))


def check_out(options: dict[str, Any]) -> None:
    """Raise Refusal for outputs that would overwrite an input, before any work is done.

    Refusal is an error of the command line. ``options`` are the values of the command's options by
    Python name, of which ``out``, ``state`` and other files count. FileNotFoundError for an output
    in a folder that does not exist; Refusal also for two outputs to one file, and for options that
    contradict each other.
    """
    if options.get("quiet") and options.get("verbose"):
        raise Refusal(
            "--quiet and --verbose ask for opposite things",
            Reading({"verbose": None}),
            Reading({"quiet": None}),
        )
    if options.get("verify") and not options.get("resume"):
        raise Refusal(
            "--verify compares files with the state that --resume names", Reading({"verify": None})
        )
    files = options.get("file") or options.get("files") or ()
    read_from = [*files] if isinstance(files, tuple) else [files]
    read_from += [options[name] for name in READ_FROM if options.get(name)]
    inputs = [part for each in read_from for part in _existing(each)]
    if options.get("label") and Path(options["label"]).is_file():
        inputs.append(Path(options["label"]))
    for name in WRITTEN_TO:
        target = options.get(name)
        if target is None:
            continue
        option = {"picture": "plot"}.get(name, name)
        for other in WRITTEN_TO[WRITTEN_TO.index(name) + 1 :]:
            if options.get(other) is not None and target.resolve() == options[other].resolve():
                words = f"--{option} and --{({'picture': 'plot'}).get(other, other)} are one file"
                raise Refusal(f"{words}, {target}: name two")
        if not target.parent.is_dir():
            raise FileNotFoundError(f"--{option}: there is no folder {target.parent}")
        for path in inputs:
            if target.resolve() == path.resolve() or (target.exists() and target.samefile(path)):
                raise Refusal(f"--{option} {target} is the input {path}, which it would destroy")


def _existing(path: Any) -> list[Path]:
    """Return the existing files that a path, or a pattern such as "*.csv", names.

    It is [] if there is none.
    """
    path = Path(path)
    if path.exists() or not set(path.name) & set("*?["):
        return [path] * path.is_file()
    return [part for part in path.parent.glob(path.name) if part.is_file()]


def leniency(options: dict[str, Any]) -> dict[str, Any]:
    """Return the options of a command with rules to leave out a few incomplete rows.

    ``options`` are their values by name. The rules set ``drop_missing`` to the largest share of
    such rows, 1 %, and ``rounded`` to "auto", unless the user did. They are for commands that do
    not match rows with rows of another file.
    """
    few = {} if options["drop_missing"] else {"drop_missing": MISSING_SHARE}
    return options | few | ({"rounded": "auto"} if options.get("rounded") is None else {})


def read_file(path: Any, options: dict[str, Any], reader: Callable[..., Any] | None = None) -> Any:
    """Read a file by ``reader`` with those options of the command that it takes.

    ``path`` is a path or several, ``options`` are the values of the command's options by Python
    name, and ``reader`` is a function with the arguments of :func:`read_predictions`, which is the
    default. Its result is returned, and its errors pass.
    """
    known = signature(ct.read_predictions).parameters.keys() - {"source", "probs", "label"}
    arguments = {name: value for name, value in options.items() if name in known}
    absent = (type(None), bool, tuple)  # 0 is a number, though equal to False
    arguments = {k: v for k, v in arguments.items() if v or not isinstance(v, absent)}
    if reader is None:  # rows that are paired with others stay, as do rows that are to be kept
        arguments.setdefault("rounded", False)
    return (reader or ct.read_predictions)(path, options["probs"], options["label"], **arguments)


# ------------------------------------------------------------------------------
# Files of several models, which may name columns of their own: ``--probs-of FILE=EXPR``.


#: Options that may differ between files, with the options that name them for one file.
OF_ONE_FILE_ALONE = {"probs": "probs_of", "label": "label_of", "ids": "ids_of"}

ModelReader: TypeAlias = "Callable[[Any, dict[str, Any]], Any]"


def read_models(
    files: dict[str, Any],
    options: dict[str, Any],
    reader: ModelReader = read_file,
    missing: Mapping[str, str] | None = None,
) -> dict[str, Any]:
    """Read the files of several models, each as probabilities or as logits, whichever it holds.

    ``files`` maps names of models to paths, and the result maps them to what was read: predictions,
    or what ``reader(path, options)`` returns. ``options`` are the values of the command's options
    by Python name. A file without labels takes the labels of the same ids in another. With ids and
    ``drop_missing`` only common rows are kept. Refusal, an error of the command line, for a file
    that could hold either where another can only hold logits.

    InvalidPredictionsError for a file that cannot be read; its readings hold for all files
    together, and have places for options that the command lacks besides. ``missing`` maps these
    options to clauses that say what they are; None for none.
    """
    from caltest.read.model_rows import common_rows

    _refuse_other_files(files, options)
    try:
        data = _each_read(files, options, reader)
    except InvalidPredictionsError as error:
        raise _in_one_question(error, files, options, reader, missing or {}) from None
    return common_rows(data) if options["ids"] and options["drop_missing"] else data


def ids_of_files(files: Sequence[Path], options: dict[str, Any]) -> dict[str, Any]:
    """Return the options ``ids`` and ``ids_of`` that name the rows of all ``files``, as they are.

    Without ``ids`` these are a column that all files have, or columns of other names that hold the
    same words, each once; ``ids`` is None if there are none. ``options`` are the values of the
    command's options by Python name.
    """
    from caltest.read.expressions import quoted
    from caltest.read.files import renamed_ids, shared_ids

    own = tuple(options.get("ids_of") or ())
    if options["ids"] or own:
        return {
            "ids": options["ids"] or _named_for(own[0], own[0].partition("=")[0]),
            "ids_of": own,
        }
    if (shared := shared_ids(files)) is not None:
        return {"ids": shared, "ids_of": own}
    names = renamed_ids(files)
    if not names:
        return {"ids": None, "ids_of": own}
    columns = [quoted(name) for name in names]
    others = zip(files[1:], columns[1:], strict=True)
    return {"ids": columns[0], "ids_of": tuple(f"{path}={column}" for path, column in others)}


def _refuse_other_files(files: Mapping[str, Any], options: Mapping[str, Any]) -> None:
    """Raise Refusal for a column that is named for a file which is not among ``files``."""
    for own in OF_ONE_FILE_ALONE.values():
        for word in options.get(own) or ():
            if not any(_named_for(word, path) for path in files.values()):
                listed = ", ".join(map(_path, files.values()))
                option = f"--{own.replace('_', '-')}"
                raise Refusal(f"{option} {word} begins with none of the files {listed} and =")


def _path(path: Any) -> str:
    """Return the path of a file, or of the first of several, as the user wrote it."""
    return str(path[0] if isinstance(path, tuple) else path)


def _named_for(word: str, path: Any) -> str:
    """Return the expression in a word such as "old.csv=score" if it is of the file, or ""."""
    head = f"{_path(path)}="
    return word[len(head) :] if word.startswith(head) else ""


def own_options(path: Any, options: dict[str, Any]) -> dict[str, Any]:
    """Return the options of the command for one file, whose columns may have names of their own."""
    named = {
        name: expression
        for name, own in OF_ONE_FILE_ALONE.items()
        for word in options.get(own) or ()
        if (expression := _named_for(word, path))
    }
    return options | named


def _each_read(
    files: Mapping[str, Any], options: dict[str, Any], reader: ModelReader
) -> dict[str, Any]:
    """Return {name: predictions} of the files, as :func:`read_models` reads them.

    Parameters are as there. InvalidPredictionsError for the first file that cannot be read, with
    readings for this file alone.
    """
    from caltest.read.files import lent_labels

    own = {name: own_options(path, options) for name, path in files.items()}
    lent: dict[Any, dict[str, Any]] = {}
    if options["ids"]:
        labels = {path: own[name]["label"] for name, path in files.items()}
        lent = lent_labels(files.values(), labels)
    data: dict[str, Any] = {}
    logits: dict[str, InvalidPredictionsError] = {}
    for name, path in files.items():
        try:
            data[name] = reader(path, own[name] | lent.get(path, {}))
        except InvalidPredictionsError as error:
            only = [dict(reading.options) for reading in error.readings]
            if only != [{"from_logits": True}] or options["from_logits"]:
                raise
            logits[name] = error
    if logits and not data:
        raise next(iter(logits.values()))
    for name in logits:
        more = lent.get(files[name], {}) | {"from_logits": True}
        data[name] = reader(files[name], own[name] | more)
    of_logits = {name for name, rows in data.items() if options["from_logits"] and _is_wide(rows)}
    for name in data.keys() - of_logits if of_logits else ():
        raise Refusal(
            f"{files[name]} holds no value outside [0, 1], unlike {' and '.join(of_logits)}: leave "
            "--from-logits out, each file is read as what it holds",
            Reading({"from_logits": None}),
        )
    return {name: data[name] for name in files}


def _is_wide(rows: ct.Predictions | ct.Tally) -> bool:
    """Return whether rows that were read as logits can be logits only: some lie outside [0, 1].

    ``rows`` are predictions, whose probabilities are converted back. True also for more than two
    classes and for tallies.
    """
    if not isinstance(rows, ct.Predictions) or rows.n_classes > 2:
        return True
    from scipy.special import logit

    z = logit(rows.probs[:, 1])
    return bool(((z < 0.0) | (z > 1.0)).any())


def reader_of_ids(options: dict[str, Any]) -> Callable[[object, str | None], ct.Predictions]:
    """Return a function (path, ids) that reads the predictions of a file with ids.

    ``ids`` is the column that names the rows, None for none. The function raises no questions about
    doubtful input, and warns of nothing. ``options`` are the values of the command's options by
    Python name, which it reads the file with.
    """

    def rows(path: object, ids: str | None) -> ct.Predictions:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            asked = leniency(own_options(path, options)) | {"ids": ids, "as_is": True}
            found: ct.Predictions = read_file(path, asked)
        return found

    return rows


# ------------------------------------------------------------------------------
# One question for all files, and for the options that the command lacks.


def _in_one_question(
    error: InvalidPredictionsError,
    files: Mapping[str, Any],
    options: dict[str, Any],
    reader: ModelReader,
    missing: Mapping[str, str],
) -> InvalidPredictionsError:
    """Return the error of one file with readings under which all files can be read.

    The options that the command lacks are added as places to fill in. Parameters are as in
    :func:`read_models`.
    """
    paths = [path for path in files.values() if not isinstance(path, tuple) or len(path) == 1]
    single = [Path(_path(path)) for path in paths if Path(_path(path)).is_file()]
    readings = list(error.readings)
    if len(single) == len(files) > 1:
        path = _failing(files, options, reader)
        found = readings or _by_names(path, options, reader)
        readings = [_for_all(reading, path, files, options, reader) for reading in found]
        readings = [_with_ids(reading, single, options) for reading in readings]
    text = str(error)
    if missing and (readings or not error.readings):
        readings = [
            reading if reading.verb
            else replace(reading, options={**dict.fromkeys(missing, "NUMBER"), **reading.options})
            for reading in readings
        ]  # fmt: skip
        text += "; " + " and ".join(missing.values())
    return type(error)(text, readings)


def _failing(files: Mapping[str, Any], options: dict[str, Any], reader: ModelReader) -> Any:
    """Return the path of the first file that cannot be read; parameters are as in read_models."""
    for name, path in files.items():
        if _error_of({name: path}, options | {"ids": None}, reader) is not None:
            return path
    return [*files.values()][-1]


def _error_of(
    files: Mapping[str, Any], options: dict[str, Any], reader: ModelReader
) -> InvalidPredictionsError | None:
    """Return the error with which the files cannot be read, or None; as in :func:`read_models`."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            _each_read(files, options, reader)
        except InvalidPredictionsError as error:
            return error
    return None


def _has(path: Any, expression: object) -> bool:
    """Return whether a file has the columns of an expression, or of several with commas."""
    from caltest.read.contract import Wanted
    from caltest.read.expressions import terms_of
    from caltest.read.files import table_of

    try:
        with table_of(Path(_path(path)), Wanted()) as (table, _):
            terms_of(str(expression), table.schema)
    except InvalidPredictionsError:
        return False
    return True


def _by_names(path: Any, options: dict[str, Any], reader: ModelReader) -> Sequence[Reading]:
    """Return the readings of a file that lacks the columns which the options name.

    It is read without these options: by the names that need none, or by likely columns.
    """
    from caltest.read.contract import Wanted
    from caltest.read.files import chosen_of, table_of

    own = own_options(path, options)
    lacking = [name for name in OF_ONE_FILE_ALONE if own[name] and not _has(path, own[name])]
    if not lacking:
        return []
    without = own | dict.fromkeys(lacking)
    if (other := _error_of({"": path}, without | {"ids": None}, reader)) is not None:
        return other.readings
    with suppress(InvalidPredictionsError), table_of(Path(_path(path)), Wanted()) as (table, _):
        chosen = chosen_of(table, Wanted(probs=without["probs"], label=without["label"]))
        return [Reading({name: chosen.sql(name) for name in lacking})]
    return []


def _for_all(
    reading: Reading,
    path: Any,
    files: Mapping[str, Any],
    options: dict[str, Any],
    reader: ModelReader,
) -> Reading:
    """Return a reading of one file, ``path``, completed by what the other files need with it.

    Columns that other files lack, or that are named otherwise there, become options of this file
    alone. Of each other file, the one way to read it is added; several are asked about later.
    """
    if reading.verb or not reading.complete:
        return reading
    others = {name: other for name, other in files.items() if other != path}
    found: dict[str, Any] = {}
    for name, value in reading.options.items():
        alone = OF_ONE_FILE_ALONE.get(name)
        lent = name == "label" and options["ids"]  # a file without labels takes those of the other
        others_lack = value and not lent and not all(_has(p, value) for p in others.values())
        apart = alone and value and (options[name] or others_lack)
        found |= {alone: (f"{_path(path)}={value}",)} if apart and alone else {name: value}
    for name, other in others.items():
        given = options | {k: v for k, v in found.items() if k not in OF_ONE_FILE_ALONE.values()}
        for own in OF_ONE_FILE_ALONE.values():
            given[own] = (*(options.get(own) or ()), *found.get(own, ()))
        error = _error_of({"": path, name: other}, given, reader)
        if error is None:
            continue
        ways = error.readings or _by_names(other, given, reader)
        if len(ways) != 1 or not ways[0].complete or ways[0].verb:
            continue
        for option, value in ways[0].options.items():
            alone = OF_ONE_FILE_ALONE.get(option)
            if alone and value:
                found[alone] = (*found.get(alone, ()), f"{_path(other)}={value}")
            elif option not in found:
                found[option] = value
    return replace(reading, options=found)


def _with_ids(reading: Reading, paths: Sequence[Path], options: Mapping[str, Any]) -> Reading:
    """Return a reading with the one column that names rows of all files which differ in rows."""
    from caltest.read.expressions import quoted
    from caltest.read.model_rows import common_ids

    if options["ids"] or options.get("unpaired") or reading.verb or "ids" in reading.options:
        return reading
    columns = common_ids(paths)
    if len(columns) != 1:
        return reading
    name = next(iter(columns))
    when = " and ".join(filter(None, (reading.when, f"rows of one {name} are one observation")))
    return replace(reading, options={**reading.options, "ids": quoted(name), "drop_missing": True},
                   when=when)  # fmt: skip


# ------------------------------------------------------------------------------
# Results: further commands, files, and the exit code.


def this_command(**options: Any) -> str:
    """Return this command line with other options, as text to be pasted into a shell.

    Options are keywords by their Python names, True for a flag, and None leaves one out; ``verb``
    replaces the command. It is "" if the words of the command line are not known, or the command
    has no such option.
    """
    context = click.get_current_context()
    if not context.obj or not context.parent or not isinstance(context.parent.command, click.Group):
        return ""
    reading = Reading(options, verb=options.pop("verb", ""))
    return command(context.obj, reading, context.parent.command)


def clusters_call(notes: Iterable[str]) -> str:
    """Return this command line with the clusters that a doubt among ``notes`` names, or "".

    It is also "" for a command that takes no clusters.
    """
    named = [n.clusters for n in notes if isinstance(n, DependenceDoubt) and n.clusters]
    takes = any(each.name == "clusters" for each in click.get_current_context().command.params)
    return this_command(clusters=named[0]) if named and takes else ""


def finish(result: Result, failed: int, options: dict[str, Any]) -> Outcome:
    """Write the requested report file; return (result or text to print, exit code).

    With --fail-on-miscalibration the exit code is ``failed``, or 3 if the verdict is that one
    cannot tell; without it, 0. After an interruption it is 130. ``options`` are the values of the
    command's options by Python name, of which "out" is the file or None; with --quiet or --json the
    text to print stands in the place of the result.
    """
    if call := clusters_call((*result.notes, *getattr(result, "doubts", ()))):
        result = replace(result, clusters_call=call)
    if options["out"] is not None:
        write = {".json": result.to_json, ".md": result.to_markdown, ".tex": result.to_latex}
        text = write.get(options["out"].suffix.lower(), result.__str__)()
        write_file(options["out"], text.rstrip("\n") + "\n")
    code = int(failed) if options.get("gate") else 0
    if options.get("gate") and not failed and getattr(result, "verdict", None) in UNSURE:
        code = 3
    if result.ended == "interrupted":
        code = 130
    VERBOSE.set(bool(options.get("verbose")))
    if options.get("quiet") and not options["as_json"]:
        return in_brief(result), code
    return (result.to_json() if options["as_json"] else result), code
