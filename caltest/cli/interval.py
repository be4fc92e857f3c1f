"""``caltest interval``: how large the error may be."""

from __future__ import annotations

from typing import Any

import click

from caltest._base import defaults
from caltest.cli.common import (
    ASKED,
    EXIT_CODES,
    INPUT,
    N_RESAMPLES,
    RUN,
    SHARE,
    Outcome,
    finish,
    option,
    read,
    settings,
)
from caltest.inference.intervals import METHODS, SIDES, confidence_interval


@click.command(epilog=EXIT_CODES)
@INPUT
@ASKED
@option("--level", type=SHARE, default=defaults.LEVEL, help="How often such intervals cover.")
@option("--method", type=click.Choice(METHODS), default="auto", help="auto covers; see the docs.")
@option("--side", type=click.Choice(SIDES), default="two-sided", help="Both bounds, or one.")
@N_RESAMPLES
@RUN
def interval(**options: Any) -> Outcome:
    """Say how large the calibration error may be.

    Lens and statistic are written as in Python, such as --lens 'OneVsRest(1)' and --statistic
    'ECE(QuantileBins(10))'. With --fail-on-miscalibration, miscalibrated means that the interval
    does not contain 0.
    """
    asked = settings(options, "statistic", "lens", "level", "method", "side", "n_resamples")
    result = confidence_interval(read(options), **asked)
    return finish(result, not result.contains_zero, options)
