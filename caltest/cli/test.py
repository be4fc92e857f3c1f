"""``caltest test``: one aspect of calibration."""

from __future__ import annotations

from typing import Any

import click

import caltest as ct
from caltest.cli.common import EXIT_CODES, INPUT, RUN, Outcome, finish, option, read
from caltest.cli.recipes import Recipe


@click.command(epilog=EXIT_CODES)
@INPUT
@option("--lens", type=Recipe("lens"), default="TopK(1)", help="What is asked about.")
@option("--statistic", type=Recipe("statistic"), default="ECE(UniformBins(15))", help="How far.")
@option(
    "--null",
    type=Recipe("null", ("auto", "exact", "asymptotic", "distribution-free")),
    default="auto",
    help="auto, exact, RedrawLabels, ConsistencyResampling or asymptotic, distribution-free.",
)
@option("--alpha", type=click.FloatRange(0, 1), default=0.05, help="Level of the gate.")
@option("--n-resamples", type=click.IntRange(1), default=9999, help="If the null is simulated.")
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
    """Test one aspect of the calibration of the model behind FILE.

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
