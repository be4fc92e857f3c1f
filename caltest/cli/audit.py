"""``caltest audit``: every usual question at once."""

from __future__ import annotations

from typing import Any

import click

import caltest as ct
from caltest._base import defaults
from caltest.cli.common import (
    EXIT_CODES,
    INPUT,
    RUN,
    SHARE,
    Outcome,
    finish,
    option,
    read,
    settings,
)


@click.command(epilog=EXIT_CODES)
@INPUT
@option("--alpha", type=SHARE, default=0.05, help="Chance of a false alarm, over all rows.")
@option("--tolerance", type=SHARE, default=0.1, help="Errors of this size must not pass as noise.")
@option(
    "--adjust",
    type=click.Choice(["holm", "max-T"]),
    default="holm",
    help="How p-values are adjusted.",
)
@option(
    "--n-resamples",
    type=click.IntRange(1),
    default=defaults.N_TOGETHER,
    help="Replicates of simulated rows.",
)
@RUN
def audit(**options: Any) -> Outcome:
    """Ask everything at once: is the model behind FILE calibrated?

    Without FILE, an embedded example is used: a neural network on noisy handwritten digits.
    """
    asked = settings(options, "alpha", "tolerance", "adjust", "n_resamples")
    report = ct.audit(read(options), **asked)
    return finish(report, report.verdict == ct.AuditVerdict.MISCALIBRATED, options)
