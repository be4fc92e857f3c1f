"""``caltest grades``: is the probability of every grade right? From counts alone."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

import caltest as ct
from caltest.cli import options as o
from caltest.cli.common import Outcome, check_out, finish


@click.command(epilog=o.EXIT_CODES)
@click.argument("file", type=click.Path(path_type=Path))
@o.option("--n", default="n", metavar="COLUMN", help="Rows of each grade.")
@o.option("--events", default="events", metavar="COLUMN", help="Events among them.")
@o.option("--probability", default="probability", metavar="COLUMN", help="Such as the PD.")
@o.option("--names", metavar="COLUMN", help="What grades are called.")
@o.choice("--alternative", ("greater", "less", "two-sided"), "How the risk would differ.")
@o.choice("--method", ("exact", "jeffreys"), "Which p-values are adjusted and judged.")
@o.alpha("Chance of any wrong finding.")
@o.OUT
@o.FAIL
def grades(file: Path, **options: Any) -> Outcome:
    """Test the probability of every grade, from a table of counts.

    FILE has a row for each. By default one-sided: is the risk underestimated? With
    --fail-on-miscalibration a rejected grade, or portfolio, fails.
    """
    check_out(options)
    columns = ("n", "events", "probability", "names")
    asked = (*columns, "alternative", "method", "alpha")
    result = ct.grade_tests(file, **{name: options[name] for name in asked})
    return finish(result, bool(result.rejected), options)
