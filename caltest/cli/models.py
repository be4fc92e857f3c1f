"""Files of several models: read with columns of their own, and asked about in one question.

:func:`read_models` is the entry. A file whose columns have other names than those of the other
files is refused with a command that names them for this file alone (``--probs-of FILE=EXPR``).
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import caltest as ct
from caltest.cli.inputs import leniency, read_file
from caltest.cli.remedies import Refusal
from caltest.errors import InvalidPredictionsError, Reading

#: Options that may differ between files, with the options that name them for one file.
OF_ONE_FILE_ALONE = {"probs": "probs_of", "label": "label_of"}

Reader = Callable[[Any, dict[str, Any]], Any]


def read_models(
    files: dict[str, Any],
    options: dict[str, Any],
    reader: Reader = read_file,
    missing: Mapping[str, str] | None = None,
) -> dict[str, Any]:
    """Read the files of several models, each as probabilities or as logits, whichever it holds.

    ``files`` maps names of models to paths, and the result has the rows of each by its name;
    ``options`` are the values of the command's options by name, and ``reader(path, options)`` reads
    one file. A file without labels takes the labels of the same ids in another. Refusal for a file
    that could hold either where another can only hold logits.

    The error of a file that cannot be read has readings for all files together, and the options
    that the command lacks besides: ``missing`` maps them to the words that say what they are.
    """
    from caltest.read.model_rows import common_rows

    _refuse_other_files(files, options)
    try:
        data = _each_read(files, options, reader)
    except InvalidPredictionsError as error:
        raise _in_one_question(error, files, options, reader, missing or {}) from None
    return common_rows(data) if options["ids"] and options["drop_missing"] else data


def _refuse_other_files(files: Mapping[str, Any], options: Mapping[str, Any]) -> None:
    """Raise Refusal for a column that is named for a file which is not among ``files``."""
    for own in OF_ONE_FILE_ALONE.values():
        for word in options.get(own) or ():
            if not any(_of(word, path) for path in files.values()):
                listed = ", ".join(map(_path, files.values()))
                option = f"--{own.replace('_', '-')}"
                raise Refusal(f"{option} {word} begins with none of the files {listed} and =")


def _path(path: Any) -> str:
    """Return the path of a file, or of the first of several, as the user wrote it."""
    return str(path[0] if isinstance(path, tuple) else path)


def _of(word: str, path: Any) -> str:
    """Return the expression in a word such as "old.csv=score" if it is of the file, or ""."""
    head = f"{_path(path)}="
    return word[len(head) :] if word.startswith(head) else ""


def own_options(path: Any, options: dict[str, Any]) -> dict[str, Any]:
    """Return the options of the command for one file, whose columns may have names of their own."""
    named = {
        name: expression
        for name, own in OF_ONE_FILE_ALONE.items()
        for word in options.get(own) or ()
        if (expression := _of(word, path))
    }
    return options | named


def _each_read(files: Mapping[str, Any], options: dict[str, Any], reader: Reader) -> dict[str, Any]:
    """Return the rows of each file by the name of its model; parameters are those of read_models.

    InvalidPredictionsError of the first file that cannot be read; its ``path`` is in the attribute
    ``source``.
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
    """Return whether the rows could be logits only: some lie outside [0, 1].

    Predictions of more than two classes count as such.
    """
    if not isinstance(rows, ct.Predictions) or rows.n_classes > 2:
        return True
    from scipy.special import logit

    z = logit(rows.probs[:, 1])
    return bool(((z < 0.0) | (z > 1.0)).any())


def reader_of_ids(options: dict[str, Any]) -> Callable[[object, str | None], ct.Predictions]:
    """Return a function (path, ids) that reads a file with the ids of a column, and asks nothing.

    It returns predictions, and warns of nothing. ``options`` are the values of the command's
    options by name; ``ids`` is the column, None for none.
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
    reader: Reader,
    missing: Mapping[str, str],
) -> InvalidPredictionsError:
    """Return the error of one file with readings under which all files can be read.

    The options that the command lacks are added as places to fill in. Parameters are those of
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


def _failing(files: Mapping[str, Any], options: dict[str, Any], reader: Reader) -> Any:
    """Return the path of the first file that cannot be read; parameters are as in read_models."""
    for name, path in files.items():
        if _error_of({name: path}, options | {"ids": None}, reader) is not None:
            return path
    return [*files.values()][-1]


def _error_of(
    files: Mapping[str, Any], options: dict[str, Any], reader: Reader
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


def _by_names(path: Any, options: dict[str, Any], reader: Reader) -> Sequence[Reading]:
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
    reading: Reading, path: Any, files: Mapping[str, Any], options: dict[str, Any], reader: Reader
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
