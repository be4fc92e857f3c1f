"""``caltest report``: one page for people who decide."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

import caltest as ct
from caltest._base import defaults
from caltest.cli.common import Outcome, finish, read, read_file, settings
from caltest.cli.options import (
    EXIT_CODES,
    FILES,
    LENS,
    SHARE,
    SIMULATION,
    TARGET,
    choice,
    option,
)
from caltest.cli.recipes import Recipe

PROFILES = ("ml", "clinical", "weather", "llm")


@click.command(epilog=EXIT_CODES)
@FILES
@option("-o", "--out", type=TARGET, required=True, help="The page: .html, .md, .tex or .json.")
@choice("--profile", PROFILES, "Which parts, in which order and words.")
@option("--name", metavar="TEXT", help="What the report is about; by default the file.")
@LENS
@option("--recalibrated", type=click.Path(path_type=Path), help="The same rows, recalibrated.")
@option("--also", type=Recipe("statistic"), multiple=True, help="One more test; may be repeated.")
@option("--tolerance", type=SHARE, help="The largest error that can be lived with.")
@option("--alpha", type=SHARE, default=0.05, help="Chance of a false alarm, over all questions.")
@option("--n-resamples", type=click.IntRange(1), default=defaults.N_TOGETHER, help="Replicates.")
@SIMULATION
@option("--json", "as_json", is_flag=True, help="Print the report as JSON.")
@option("--fail-on-miscalibration", "gate", is_flag=True, help="Exit with 1 on miscalibration.")
def report(recalibrated: Path | None, name: str | None, **options: Any) -> Outcome:
    """Write one page that a reviewer, a regulator or a release meeting can read.

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
