"""``caltest interval``: how large the error may be."""

from __future__ import annotations

from typing import Any

import click

from caltest.cli.common import (
    EXIT_CODES,
    INPUT,
    LENS,
    N_RESAMPLES,
    RUN,
    SHARE,
    STATISTIC,
    Outcome,
    finish,
    option,
    read,
)
from caltest.inference.intervals import METHODS, SIDES, confidence_interval


@click.command(epilog=EXIT_CODES)
@INPUT
@LENS
@STATISTIC
@option("--level", type=SHARE, default=0.95, help="How often such intervals cover.")
@option("--method", type=click.Choice(METHODS), default="auto", help="auto covers; see the docs.")
@option("--side", type=click.Choice(SIDES), default="two-sided", help="Both bounds, or one.")
@N_RESAMPLES
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
    """Say how large the calibration error may be.

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
