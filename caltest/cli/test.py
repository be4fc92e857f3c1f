"""``caltest test``: one aspect of calibration."""

from __future__ import annotations

from typing import Any

import click

import caltest as ct
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
from caltest.cli.recipes import Recipe


@click.command(epilog=EXIT_CODES)
@INPUT
@ASKED
@option(
    "--null",
    type=Recipe("null", ("auto", "exact", "asymptotic", "distribution-free", "betting")),
    default="auto",
    help="auto, exact, asymptotic, distribution-free, betting, or a scheme: WildSigns().",
)
@option(
    "--alpha",
    type=SHARE,
    default=0.05,
    help="Level of the test, for --fail-on-miscalibration.",
)
@N_RESAMPLES
@RUN
def test(alpha: float, **options: Any) -> Outcome:
    """Test one aspect of calibration.

    Lens, statistic and null are written as in Python, such as --lens 'OneVsRest(1)' and
    --statistic 'ECE(QuantileBins(10), distance="l2")'. With --by, --fail-on-miscalibration asks
    about all rows and about every subgroup, each at half of alpha.
    """
    asked = settings(options, "statistic", "lens", "null", "n_resamples")
    result = ct.calibration_test(read(options), **asked)
    pvalue = result.pvalue
    if result.subgroups is not None:
        pvalue = 2.0 * min(pvalue, result.subgroups.pvalue)
    return finish(result, pvalue <= alpha or result.impossible > 0, options)
