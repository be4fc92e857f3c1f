"""``caltest audit``: every usual question at once."""

from __future__ import annotations

from typing import Any

import click

import caltest as ct
from caltest.cli.common import EXIT_CODES, INPUT, RUN, SHARE, Outcome, finish, option, read


@click.command(epilog=EXIT_CODES)
@INPUT
@option("--alpha", type=SHARE, default=0.05, help="Chance of a false alarm, over all rows.")
@option("--tolerance", type=SHARE, default=0.1, help="An error you could not live with.")
@option(
    "--adjust",
    type=click.Choice(["holm", "max-T"]),
    default="holm",
    help="How p-values are adjusted.",
)
@option("--n-resamples", type=click.IntRange(1), default=1999, help="Replicates of simulated rows.")
@RUN
def audit(
    alpha: float,
    tolerance: float,
    adjust: Any,
    n_resamples: int,
    seed: int,
    workers: int,
    **options: Any,
) -> Outcome:
    """Ask everything at once: is the model behind FILE calibrated?

    Without FILE, an embedded example is used: a neural network on noisy handwritten digits.
    """
    data = read(options)
    report = ct.audit(
        data,
        alpha=alpha,
        tolerance=tolerance,
        adjust=adjust,
        n_resamples=n_resamples,
        rng=seed,
        workers=workers,
    )
    failed = report.verdict == "miscalibrated" and options["fail_on_miscalibration"]
    return finish(report, int(failed), options)
