"""``caltest compare`` and ``gate``: which model is better calibrated, and may it be released?"""

from __future__ import annotations

import shlex
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import click
import numpy as np

import caltest as ct
from caltest.cli import options as o
from caltest.cli.common import Outcome, check_out, finish, read, read_file, read_models, settings
from caltest.cli.remedies import Refusal
from caltest.errors import InPlace
from caltest.inference.pair import HYPOTHESES
from caltest.io import read_forecasters
from caltest.io.pooling import shared_ids

FIRST_BETTER, SECOND_BETTER = ct.ComparisonVerdict.FIRST_BETTER, ct.ComparisonVerdict.SECOND_BETTER
METHODS = ("auto", *HYPOTHESES)


@click.command(
    epilog="Exit codes: 0 done; 1 the last model is worse calibrated than the first, with "
    "--fail-if-worse; 2 bad input; 130 interrupted."
)
@click.argument("files", nargs=-1, required=True, type=click.Path(path_type=Path))
@o.ROWS
@o.option("--unpaired", is_flag=True, help="The two files hold different observations.")
@o.LENS
@o.statistic(default="DebiasedL2(15)")
@o.choice("--method", METHODS, "How the difference is tested; swap has another hypothesis.")
@o.LEVEL
@o.option("--margin", type=click.FloatRange(0, 1), default=0.02, help="Errors so close are tied.")
@o.N_RESAMPLES
@o.OUTPUT
@o.option("--fail-if-worse", "gate", is_flag=True, help="Exit with 1 if the last model is worse.")
def compare(files: tuple[Path, ...], unpaired: bool, **options: Any) -> Outcome:
    """Compare the calibration of several models.

    Each of FILES, two or more, holds the probabilities of one model and the labels. Rows are
    matched by --ids, or a column such as id that names them in all files, else by their order.
    Models in columns of one FILE are named by --probs A,B,…; with --drop-missing they are compared
    on the rows that all of them have.
    """
    check_out(options)
    if len(files) == 1 and options["probs"] is not None:
        data = read_file(files[0], options, read_forecasters)
        names = list(data)
    elif len(files) < 2:
        other = "or the models in columns of one: --probs A,B,…"
        raise Refusal(f"compare needs two files or more, {other}", _other(files[0], options))
    else:
        names = names_of(files)
        if unpaired and options["ids"]:
            raise Refusal("--unpaired rows have no ids to match", ("!--ids",), ("!--unpaired",))
        options["ids"] = options["ids"] or (None if unpaired else shared_ids(files))
        try:
            data = read_models(dict(zip(names, files, strict=True)), options)
        except ct.InvalidPredictionsError as error:
            raise _in_one_file(files, options) or error from None
    arguments = settings(ct.compare_models, options)
    first, last = names[0], names[-1]
    if len(names) == 2:
        arguments |= {"paired": not unpaired, "names": (first, last)}
        pair = ct.compare(data[first], data[last], **arguments)
        if pair.lens == "TopK(1)" and data[last].n_classes > 2 and len(files) == 2:
            calls = " and ".join(shlex.join(["caltest", "audit", str(file)]) for file in files)
            note = "compared was the confidence of the predicted class (TopK(1)); every class"
            pair = replace(pair, notes=(*pair.notes, f"{note}: {calls}"))
        return finish(pair, pair.verdict is FIRST_BETTER, options)
    if unpaired:
        raise Refusal("--unpaired compares two files", ("!--unpaired",))
    table = ct.compare_models(data, **arguments)
    verdicts = dict(zip((pair.names for pair in table.pairs), table.verdicts, strict=True))
    worse = verdicts.get((first, last)) is FIRST_BETTER
    return finish(table, worse or verdicts.get((last, first)) is SECOND_BETTER, options)


def _in_one_file(files: tuple[Path, ...], options: dict[str, Any]) -> Refusal | None:
    """Return the refusal of a column for each file, with the file that has all of them."""
    columns = (options["probs"] or "").split(",")
    if len(columns) != len(files):
        return None
    for file, others in ((file, [other for other in files if other != file]) for file in files):
        with suppress(ct.InvalidPredictionsError):
            read_file(file, options, read_forecasters)
            return Refusal(
                f"--probs names columns that every file has, not one for each; {file} has models "
                f"in {' and '.join(columns)}, which are compared if it is the only file",
                *[InPlace(str(others[0]), "")] * (len(others) == 1),
            )
    return None


def _other(path: Path, options: dict[str, Any]) -> tuple[str, ...]:
    """Return how to name the columns of one file that may be those of models, or another file."""
    try:
        read_file(path, options)
    except ct.InvalidPredictionsError as error:
        columns = [remedy[1] for remedy in error.remedies if remedy[0] == "--probs"]
        if len(columns) > 1:
            return "--probs", ",".join(columns)
    return ("OTHER_FILE",)


def names_of(files: tuple[Path, ...]) -> list[str]:
    """Return what to call the models of some files."""
    stems = [path.stem for path in files]
    names = stems if len(set(stems)) == len(stems) else [str(path) for path in files]
    if len(set(names)) < len(names):
        raise click.UsageError("one file was given twice: name those of two models")
    return names


@click.command(
    epilog="Exit codes: 0 passed; 1 failed; 2 bad input; 3 cannot tell: collect the number "
    "of rows that is printed, or allow more; 130 interrupted."
)
@click.argument("file", nargs=-1, required=True, type=click.Path(path_type=Path))
@o.ROWS
@o.second_model("The model in use, on the same rows.")
@o.option("--unpaired", is_flag=True, help="The model in use was seen on other rows.")
@o.TOLERANCE
@o.option("--margin", type=o.SHARE, help="By how much the root mean squared error may be larger.")
@o.alpha("Chance of a wrong finding.")
@o.ASKED
@o.N_TOGETHER
@o.OUTPUT
def gate(file: tuple[Path, ...], against: Path | None, unpaired: bool, **options: Any) -> Outcome:
    """Say whether the model behind FILE, or behind many, may be released.

    It passes if its error is at most --tolerance, and at most --margin larger than that of the
    model --against; it fails if a lower bound is beyond that. Of two models in columns of one FILE,
    --probs NEW,OLD names first the new one. --out summary.md writes Markdown.
    """
    check_out(options)
    data: dict[str, Any]
    files = (file[0],) if against is None else (file[0], against)
    names = names_of(files)
    if against is None and options["margin"] is not None and len(file) == 1 and not unpaired:
        data = _of_columns(file[0], options)
        names = list(data)
    elif against is None or unpaired:
        if options["ids"]:
            words = "--ids match the rows of two files: there is nothing to match"
            raise Refusal(words, ("!--ids",))
        parts = dict(zip(names, (file, (against,)), strict=False))
        data = read_models(
            parts, options, lambda part, choices: read({**choices, "file": part}, True)
        )
    elif len(file) > 1:
        words = "--against is compared row by row with one FILE, or say --unpaired"
        raise Refusal(words, ("--unpaired",))
    else:
        options["ids"] = options["ids"] or shared_ids(files)
        data = read_models(dict(zip(names, files, strict=True)), options)
    sides = dict(zip(("probs", "against"), data.values(), strict=False))
    arguments: dict[str, Any] = {"paired": not unpaired, "names": (names[0], names[-1])}
    result = ct.gate(**sides, **arguments, **settings(ct.gate, options))
    printed, code = finish(result, False, options | {"gate": False})
    return printed, code or result.verdict.exit_code


def _of_columns(file: Path, options: dict[str, Any]) -> dict[str, Any]:
    """Return the new model and the one in use, which are columns of one file."""
    names = (options["probs"] or _other(file, options)[-1]).split(",")
    if len(names) == 2 and options["probs"]:
        data: dict[str, Any] = read_file(file, options, read_forecasters)
        new, old = data.values()
        if not np.allclose(new.probs, old.probs[:, ::-1]):  # two classes of one model
            return data
        names = []
    ways = [("--probs", ",".join(two)) for two in (names, names[::-1]) if len(two) == 2]
    words = "--margin is to another model: name its file with --against, or of two columns of one "
    words += "file the new model and then the one in use, with --probs NEW,OLD"
    raise Refusal(words, *ways, *[("--against", "OTHER_FILE")] * (not ways))
