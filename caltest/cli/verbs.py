"""``caltest audit``, ``test`` and ``interval``: what is asked about one model."""

from __future__ import annotations

from typing import Any

import click

import caltest as ct
from caltest.cli import options as o
from caltest.cli.common import Outcome, finish, read, settings
from caltest.cli.recipes import Recipe
from caltest.inference.intervals import METHODS, SIDES


@click.command(epilog=o.EXIT_CODES)
@o.FILES
@o.alpha("Chance of a false alarm, over all rows.")
@o.TOLERANCE
@o.choice("--adjust", ("holm", "max-T"), "How p-values are adjusted.")
@o.N_TOGETHER
@o.RUN
def audit(**options: Any) -> Outcome:
    """Ask everything at once: is the model behind FILE calibrated?

    Without FILE, an embedded example is used: a neural network on noisy handwritten digits. With
    --tolerance the verdict says whether the error matters, and --fail-on-miscalibration asks that.
    Several files, or a pattern such as 'part-*.parquet', are read in batches and answered from
    their sums.
    """
    asked = settings(options, "alpha", "tolerance", "adjust", "n_resamples")
    report = ct.audit(read(options | {"whole": True}), **asked)
    return finish(report, report.verdict.failed, options)


@click.command(epilog=o.EXIT_CODES)
@o.FILES
@o.ASKED
@o.option(
    "--null",
    type=Recipe("null", ("auto", "exact", "asymptotic", "distribution-free", "betting")),
    default="auto",
    help="auto, exact, asymptotic, distribution-free, betting, or a scheme: WildSigns().",
)
@o.alpha("Level of the test, for the exit code.")
@o.N_RESAMPLES
@o.RUN
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


@click.command(epilog=o.EXIT_CODES)
@o.FILES
@o.ASKED
@o.LEVEL
@o.choice("--method", METHODS, "auto covers; see the docs.")
@o.choice("--side", SIDES, "Both bounds, or one.")
@o.N_RESAMPLES
@o.RUN
def interval(**options: Any) -> Outcome:
    """Say how large the calibration error may be.

    Lens and statistic are written as in Python, such as --lens 'OneVsRest(1)' and --statistic
    'ECE(QuantileBins(10))'. With --fail-on-miscalibration, miscalibrated means that the interval
    does not contain 0.
    """
    asked = settings(options, "statistic", "lens", "level", "method", "side", "n_resamples")
    result = ct.confidence_interval(read(options), **asked)
    return finish(result, not result.contains_zero, options)
