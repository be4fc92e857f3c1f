"""``caltest compare``: which of several models is better calibrated."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import click
import numpy as np

import caltest as ct
from caltest._base import defaults
from caltest.cli.common import Outcome, check_out, finish, read_file, settings
from caltest.cli.options import BY, COLUMNS, FACTS, LENS, N_RESAMPLES, OUTPUT, SHARE, choice, option
from caltest.cli.recipes import Recipe
from caltest.inference.pair import HYPOTHESES
from caltest.io import read_forecasters

FIRST_BETTER, SECOND_BETTER = ct.ComparisonVerdict.FIRST_BETTER, ct.ComparisonVerdict.SECOND_BETTER
METHODS = ("auto", *HYPOTHESES)
EXIT_CODES = """
Exit codes: 0 done; 1 the last model is worse calibrated than the first, with --fail-if-worse;
2 bad input; 130 interrupted.
"""


@click.command(epilog=EXIT_CODES)
@click.argument("files", nargs=-1, required=True, type=click.Path(path_type=Path))
@COLUMNS
@FACTS
@BY
@option("--id", "ids", metavar="COLUMN", help="Match rows by this column.")
@option("--unpaired", is_flag=True, help="The two files hold different observations.")
@LENS
@option("--statistic", type=Recipe("statistic"), default="DebiasedL2(15)", help="What is compared.")
@choice("--method", METHODS, "How the difference is tested; swap has another hypothesis.")
@option("--level", type=SHARE, default=defaults.LEVEL, help="Level of the intervals.")
@option("--margin", type=click.FloatRange(0, 1), default=0.02, help="Errors so close are tied.")
@N_RESAMPLES
@OUTPUT
@option("--fail-if-worse", "gate", is_flag=True, help="Exit with 1 if the last model is worse.")
def compare(files: tuple[Path, ...], unpaired: bool, **options: Any) -> Outcome:
    """Compare the calibration of several models.

    Each of FILES, two or more, holds the probabilities of one model and the labels. Rows are
    matched by their order, or by --id. Models in columns of one FILE are named by --probs A,B,…;
    with --drop-missing they are compared on the rows that all of them have.
    """
    check_out(options)
    if len(files) == 1 and options["probs"] is not None:
        data = read_file(files[0], options, read_forecasters)
        names = list(data)
    elif len(files) < 2:
        raise click.UsageError(
            "compare needs two files or more, or the models in columns of one: --probs A,B,…"
        )
    else:
        names = names_of(files)
        data = {name: read_file(path, options) for name, path in zip(names, files, strict=True)}
    if len(files) > 1 and all(d.ids is not None for d in data.values()):
        if unpaired:
            raise click.UsageError("--unpaired rows have no ids to match")
        data = matched(data)
    elif not unpaired and len({d.n for d in data.values()}) > 1:
        sizes = ", ".join(f"{name} {d.n}" for name, d in data.items())
        raise ct.InvalidPredictionsError(
            f"the files have different numbers of rows ({sizes}): match them with --id COLUMN, or "
            "say --unpaired"
        )
    asked = settings(options, "statistic", "lens", "method", "level", "margin", "n_resamples")
    first, last = names[0], names[-1]
    if len(names) == 2:
        asked |= {"paired": not unpaired, "names": (first, last)}
        pair = ct.compare(data[first], data[last], **asked)
        return finish(pair, pair.verdict is FIRST_BETTER, options)
    if unpaired:
        raise click.UsageError("--unpaired compares two files")
    table = ct.compare_models(data, **asked)
    found = dict(zip((pair.names for pair in table.pairs), table.verdicts, strict=True))
    worse = found.get((first, last)) is FIRST_BETTER or found.get((last, first)) is SECOND_BETTER
    return finish(table, worse, options)


def names_of(files: tuple[Path, ...]) -> list[str]:
    """Return what to call the models of some files."""
    stems = [path.stem for path in files]
    names = stems if len(set(stems)) == len(stems) else [str(path) for path in files]
    if len(set(names)) < len(names):
        raise click.UsageError("one file was given twice")
    return names


def matched(data: dict[str, ct.Predictions]) -> dict[str, ct.Predictions]:
    """Bring all files into the order of the first."""
    ids = {name: np.asarray(d.ids).astype(str).tolist() for name, d in data.items()}
    (first, wanted), *others = ids.items()
    for name, own in ids.items():
        _refuse(name, "more than once", [i for i, count in Counter(own).items() if count > 1])
    matched, known = {first: data[first]}, set(wanted)
    for name, own in others:
        place = {i: row for row, i in enumerate(own)}
        _refuse(name, f"that are not in {first}", [i for i in own if i not in known])
        _refuse(first, f"that are not in {name}", [i for i in wanted if i not in place])
        rows = np.array([place[i] for i in wanted])
        matched[name] = data[name].take(rows)
        (unlike,) = np.nonzero(matched[name].labels != data[first].labels)
        _refuse(name, f"with another label than in {first}", [wanted[i] for i in unlike])
    return matched


def _refuse(name: str, what: str, ids: list[str]) -> None:
    if ids:
        shown = ", ".join(ids[:5]) + (", …" if len(ids) > 5 else "")
        raise ct.InvalidPredictionsError(f"{name} has ids {what} ({len(ids)} in all): {shown}")
