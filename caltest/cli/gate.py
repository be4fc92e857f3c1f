"""``caltest gate``: may this model be released? For CI."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

import caltest as ct
from caltest._base import defaults
from caltest.cli.common import Outcome, check_out, finish, read, read_file, settings
from caltest.cli.compare import matched, names_of
from caltest.cli.options import ASKED, COLUMNS, OUTPUT, SHARE, option

EXIT_CODES = """
Exit codes: 0 passed; 1 failed; 2 bad input; 3 cannot tell, with the number of rows that could; 130
interrupted.
"""


@click.command(epilog=EXIT_CODES)
@click.argument("file", nargs=-1, required=True, type=click.Path(path_type=Path))
@COLUMNS
@option("--clusters", metavar="COLUMN", help="Rows alike here may depend on each other.")
@option("--against", type=click.Path(path_type=Path), help="The model in use, on the same rows.")
@option("--unpaired", is_flag=True, help="The model in use was seen on other rows.")
@option("--id", "ids", metavar="COLUMN", help="Match the rows of both files by this column.")
@option("--tolerance", type=SHARE, help="The largest error that can be lived with.")
@option("--margin", type=SHARE, help="By how much the root mean squared error may be larger.")
@option("--alpha", type=SHARE, default=0.05, help="Chance of a wrong finding.")
@ASKED
@option("--n-resamples", type=click.IntRange(1), default=defaults.N_TOGETHER, help="Draws.")
@OUTPUT
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
            raise click.UsageError("--id matches the rows of two files: there is nothing to match")
        parts = (file, (against,))[: len(files)]
        data = {
            name: read({**options, "file": part}) for name, part in zip(names, parts, strict=True)
        }
    elif len(file) > 1:
        raise click.UsageError("--against is compared row by row with one FILE, or say --unpaired")
    else:
        data = {name: read_file(path, options) for name, path in zip(names, files, strict=True)}
        data = matched(data) if options["ids"] else data
    sides = dict(zip(("probs", "against"), data.values(), strict=False))
    limits = ("tolerance", "margin", "alpha", "statistic", "lens", "n_resamples")
    asked = {"paired": not unpaired, **settings(options, *limits)}
    result = ct.gate(**sides, names=(names[0], names[-1]), **asked)
    printed, code = finish(result, False, options | {"gate": False})
    return printed, code or result.verdict.exit_code
