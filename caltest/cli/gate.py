"""``caltest gate``: may this model be released? For CI."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

import caltest as ct
from caltest.cli import options as o
from caltest.cli.common import Outcome, check_out, finish, read, read_file, settings
from caltest.cli.compare import names_of
from caltest.io.matching import match_rows

EXIT_CODES = """
Exit codes: 0 passed; 1 failed; 2 bad input; 3 cannot tell, with the number of rows that could; 130
interrupted.
"""


@click.command(epilog=EXIT_CODES)
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
    model --against; it fails if a lower bound is beyond that. --out summary.md writes Markdown.
    """
    check_out(options)
    data: dict[str, Any]
    files = (file[0],) if against is None else (file[0], against)
    names = names_of(files)
    if against is None or unpaired:
        if options["ids"]:
            raise click.UsageError("--ids match the rows of two files: there is nothing to match")
        parts = (file, (against,))[: len(files)]
        data = {
            name: read({**options, "file": part}) for name, part in zip(names, parts, strict=True)
        }
    elif len(file) > 1:
        raise click.UsageError("--against is compared row by row with one FILE, or say --unpaired")
    else:
        data = {name: read_file(path, options) for name, path in zip(names, files, strict=True)}
        data = match_rows(data) if options["ids"] else data
    sides = dict(zip(("probs", "against"), data.values(), strict=False))
    limits = ("tolerance", "margin", "alpha", "statistic", "lens", "n_resamples")
    asked = {"paired": not unpaired, **settings(options, *limits)}
    result = ct.gate(**sides, names=(names[0], names[-1]), **asked)
    printed, code = finish(result, False, options | {"gate": False})
    return printed, code or result.verdict.exit_code
