"""``caltest report``: one page for people who decide."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

import caltest as ct
from caltest.cli import options as o
from caltest.cli.common import Outcome, finish, read, read_file, settings
from caltest.cli.recipes import Recipe

PROFILES = ("ml", "clinical", "weather", "llm")


@click.command(epilog=o.EXIT_CODES)
@o.FILES
@o.option("-o", "--out", type=o.TARGET, required=True, help="The page: .html, .md, .tex or .json.")
@o.choice("--profile", PROFILES, "Which parts, in which order and words.")
@o.option("--name", metavar="TEXT", help="What the report is about; by default the file.")
@o.LENS
@o.option("--recalibrated", type=click.Path(path_type=Path), help="The same rows, recalibrated.")
@o.option("--also", type=Recipe("statistic"), multiple=True, help="One more test; may be repeated.")
@o.TOLERANCE
@o.alpha("Chance of a false alarm, over all questions.")
@o.N_TOGETHER
@o.SIMULATION
@o.option("--json", "as_json", is_flag=True, help="Print the report as JSON.")
@o.FAIL
def report(recalibrated: Path | None, name: str | None, **options: Any) -> Outcome:
    """Write one page that a reviewer, a regulator or a meeting can read.

    It says what was found, how large and how sure that is, for which rows, and what was not
    examined. Pages in HTML need nothing else: pictures and style are within. Several files, or a
    pattern such as 'part-*.parquet', are read in batches, and the page is of their sums.
    """
    if options["out"].suffix.lower() not in ct.Report.endings:
        said = ", ".join(ct.Report.endings)
        raise click.UsageError(f"-o: a report ends in {said}: {options['out']}")
    data = read(options)
    after = None if recalibrated is None else read_file(recalibrated, options)
    asked = settings(options, "profile", "lens", "also", "tolerance", "alpha", "n_resamples")
    files = options["file"]
    called = files[0].name if files else "embedded example"
    called += f" and {len(files) - 1} more" if len(files) > 1 else ""
    found = ct.report(data, name=name or called, recalibrated=after, **asked)
    found.save(options["out"])
    return finish(found, found.verdict.failed, options | {"out": None})
