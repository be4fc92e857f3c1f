"""``caltest interval``: how large the error may be."""

from __future__ import annotations

from typing import Any

import click

from caltest.cli.common import EXIT_CODES, INPUT, RUN, Outcome, finish, option, read
from caltest.cli.recipes import Recipe
from caltest.inference.intervals import METHODS, SIDES, confidence_interval


@click.command(epilog=EXIT_CODES)
@INPUT
@option("--lens", type=Recipe("lens"), default="TopK(1)", help="What is asked about.")
@option("--statistic", type=Recipe("statistic"), default="ECE(UniformBins(15))", help="How far.")
@option("--level", type=float, default=0.95, help="How often such intervals cover.")
@option("--method", type=click.Choice(METHODS), default="auto", help="auto covers; see the docs.")
@option("--side", type=click.Choice(SIDES), default="two-sided", help="Which bounds.")
@option("--n-resamples", type=click.IntRange(1), default=9999, help="Draws.")
@RUN
def interval(
    lens: Any,
    statistic: Any,
    level: float,
    method: Any,
    side: Any,
    n_resamples: int,
    seed: int,
    workers: int,
    **options: Any,
) -> Outcome:
    """Say how large the calibration error of the model behind FILE may be.

    Lens and statistic are written as in Python, such as --lens 'OneVsRest(1)' and --statistic
    'ECE(QuantileBins(10))'. With --fail-on-miscalibration, miscalibrated means that the interval
    does not contain 0.
    """
    result = confidence_interval(
        read(options),
        None,
        statistic,
        lens=lens,
        level=level,
        method=method,
        side=side,
        n_resamples=n_resamples,
        rng=seed,
        workers=workers,
    )
    failed = not result.contains_zero and options["fail_on_miscalibration"]
    return finish(result, int(failed), options)
