"""``caltest grades``: is the probability of every grade right? From counts alone."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

import caltest as ct
from caltest.cli.common import Outcome, check_out, finish
from caltest.cli.options import EXIT_CODES, OUT, SHARE, choice, option


@click.command(epilog=EXIT_CODES)
@click.argument("file", type=click.Path(path_type=Path))
@option("--n", default="n", metavar="COLUMN", help="Rows of each grade.")
@option("--events", default="events", metavar="COLUMN", help="Events among them.")
@option("--probability", default="probability", metavar="COLUMN", help="Such as the PD.")
@option("--names", metavar="COLUMN", help="What grades are called.")
@choice("--alternative", ("greater", "less", "two-sided"), "How the risk would differ.")
@choice("--method", ("exact", "jeffreys"), "Which p-values are adjusted and judged.")
@option("--alpha", type=SHARE, default=0.05, help="Chance of any wrong finding.")
@OUT
@option("--fail-on-miscalibration", "gate", is_flag=True, help="Exit with 1 on a rejected grade.")
def grades(file: Path, **options: Any) -> Outcome:
    """Test the probability of every grade: FILE has a row for each, with its counts.

    By default one-sided: is the risk underestimated? With --fail-on-miscalibration a rejected
    grade, or portfolio, fails.
    """
    check_out(options)
    columns = ("n", "events", "probability", "names")
    asked = (*columns, "alternative", "method", "alpha")
    result = ct.grade_tests(file, **{name: options[name] for name in asked})
    return finish(result, bool(result.rejected), options)
