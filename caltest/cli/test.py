"""``caltest test``: one aspect of calibration."""

from __future__ import annotations

from typing import Any

import click

import caltest as ct
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
from caltest.cli.recipes import Recipe


@click.command(epilog=EXIT_CODES)
@INPUT
@LENS
@STATISTIC
@option(
    "--null",
    type=Recipe("null", ("auto", "exact", "asymptotic", "distribution-free")),
    default="auto",
    help="auto, exact, asymptotic, distribution-free, RedrawLabels or ConsistencyResampling.",
)
@option(
    "--alpha",
    type=SHARE,
    default=0.05,
    help="Level of the test, for --fail-on-miscalibration.",
)
@N_RESAMPLES
@RUN
def test(
    lens: Any,
    statistic: Any,
    null: Any,
    alpha: float,
    n_resamples: int,
    seed: int,
    workers: int,
    **options: Any,
) -> Outcome:
    """Test one aspect of calibration.

    Lens, statistic and null are written as in Python, such as --lens 'OneVsRest(1)' and
    --statistic 'ECE(QuantileBins(10), distance="l2")'.
    """
    data = read(options)
    result = ct.calibration_test(
        data,
        None,
        statistic,
        lens=lens,
        null=null,
        n_resamples=n_resamples,
        rng=seed,
        workers=workers,
    )
    if result.ended == "interrupted":
        return finish(result, 130, options)
    found = result.pvalue <= alpha or result.impossible > 0
    return finish(result, int(found and options["fail_on_miscalibration"]), options)
