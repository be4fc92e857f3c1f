"""``caltest plan``: how many rows are needed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

import caltest as ct
from caltest.cli import options as o
from caltest.cli.common import Outcome, check_out, finish, read_file
from caltest.cli.recipes import Recipe
from caltest.planning.plan import FORMULAS

#: What a plan is like, if it is not a file.
MODEL = "LogisticNormal"


@click.command(epilog="Exit codes: 0 done; 2 bad input, or too many rows; 130 interrupted.")
@o.option("--like", required=True, metavar="FILE", help=f"Rows like these, or {MODEL}(rate, c).")
@o.ROWS
@o.LENS
@o.option("--statistic", type=Recipe("statistic", FORMULAS), default="ECE(UniformBins(15))",
        help="What will be computed; O:E, intercept and slope by formula.")  # fmt: skip
@o.option("--alternative", type=Recipe("alternative"), help="What is true, such as Slope(0.8).")
@o.second_model("A better model of the same rows.")
@o.option("--monitor", is_flag=True, help="The rows until the alarm of a monitor.")
@o.option("--width", type=click.FloatRange(0, min_open=True), help="The length of an interval.")
@o.TOLERANCE
@o.option("--power", type=o.SHARE, default=0.8, help="Share of data sets that shall find it.")
@o.alpha("Level of the test.")
@o.option("--n-datasets", type=click.IntRange(100), default=400, help="Data sets to simulate.")
@o.SEED
@o.OUT
def plan(like: str, against: Path | None, monitor: bool, **options: Any) -> Outcome:
    """Say how many rows are needed, and how many more than there are.

    For a test; with --width an interval; with --tolerance to show that an error is small; with
    --against to show that the other model is better; with --monitor until an alarm. What is wrong
    is the --alternative, or else what the labels of the file ask for.
    """
    check_out(options)
    if like.startswith(MODEL):
        rows = Recipe("like").convert(like, None, None)
    else:
        rows = read_file(Path(like), options)
    names = ("lens", "alternative", "width", "tolerance", "power", "alpha", "n_datasets", "rng")
    asked = {name: options[name] for name in names}
    asked["against"] = None if against is None else read_file(against, options)
    statistic = ct.Monitor(alpha=options["alpha"]) if monitor else options["statistic"]
    return finish(ct.plan(rows, statistic=statistic, **asked), False, options | {"gate": False})
