"""Commands in the user's units and before outcomes: ``decide`` and ``revisions``.

Both read columns as the other commands do; see :func:`caltest.promise`,
:func:`caltest.decision_curve` and :class:`caltest.Revisions` for the tests behind them.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import click
import numpy as np

import caltest as ct
from caltest.cli import EXIT_CODES
from caltest.cli import options as o
from caltest.cli.help import Verb, column, option
from caltest.cli.inputs import Outcome, check_out, finish, read, utility_of
from caltest.cli.remedies import Refusal

command = partial(click.command, cls=Verb)


@command(epilog=EXIT_CODES)
@o.FILE_ARGUMENT
@o.COSTS
@o.flag("--curve", help="Net benefit at all thresholds from 0.01 to 0.99.", group="Test")
@o.WEIGHTS
@o.CLUSTERS
@o.LEVEL_OPTION
@o.alpha("Level of the test, for the exit code.")
@o.SEED_OPTION
@o.OUT
@option("--plot", "picture", type=o.TARGET, group="Output", help="Draw it: .pdf, .svg or .png.")
@o.FAIL
def decide(alpha: float, **options: Any) -> Outcome:
    """Compare the utility that acting on the probabilities promises with the utility gained.

    Give the costs of actions in a file with --costs, or a decision threshold with --threshold;
    --curve draws the net benefit. With --fail-on-miscalibration the command fails if the promise is
    not kept.
    """
    asked = [name for name in ("costs", "threshold", "curve") if options[name]]
    if len(asked) != 1:
        raise Refusal("name one of --costs FILE, --threshold T and --curve")
    check_out(options)
    data = read(options)
    if not isinstance(data, ct.Predictions):
        raise Refusal("decide needs rows in memory, and these files are read in batches")
    utility = utility_of(options, data)
    if utility is None:
        curve = ct.decision_curve(data, level=options["level"], rng=options["rng"])
        return _drawn(curve, False, options)
    result = ct.promise(data, None, utility, level=options["level"], rng=options["rng"])
    return _drawn(result, result.pvalue <= alpha, options)


def _drawn(
    result: ct.PromiseResult | ct.DecisionCurve, failed: bool, options: dict[str, Any]
) -> Outcome:
    """Save the requested picture; return the text to print and the exit code."""
    if options["picture"] is not None:
        result.plot().save(options["picture"])
    return finish(result, failed, options)


@command(epilog=EXIT_CODES)
@click.argument("file", type=click.Path(path_type=Path))
@column("--ids", "--id", "ids", required=True, help="Question that a row forecasts.")
@column("--time", required=True, help="When it was forecast: numbers or dates.")
@column("--probs", help="Probability of the event.")
@column("--label", help="Outcome 0 or 1 of the question, empty while it is open.")
@column("--groups", group="Design", help="Questions with the same value may be dependent.")
@o.flag("--dependent", group="Design", help="All questions may be dependent.")
@column("--where", help='Rows to keep, such as "year = 2026".')
@option("--least", type=click.FloatRange(0, 1), help="Smallest move that counts.",
        show_default="three steps of the grid of percents")  # fmt: skip
@option("--step", type=click.FloatRange(0, 1, max_open=True), default=0.0, rare=True,
        help="Grid of rounded forecasts: a strict bound.")  # fmt: skip
@o.alpha("Probability of ever raising a false alarm.")
@o.LEVEL_OPTION
@o.SHEET
@o.OUT
@option("--plot", "picture", type=o.TARGET, group="Output", help="Draw the evidence over time.")
@o.FAIL
def revisions(file: Path, **options: Any) -> Outcome:
    """Test whether forecast revisions are unpredictable, before any outcome is known.

    FILE has one row for each forecast: its question (--ids), its time and its probability. The next
    revision of a calibrated forecaster cannot be predicted. With --fail-on-miscalibration an alarm
    fails.
    """
    from caltest.read.forecast_rows import read_forecasts

    check_out(options | {"file": file})
    names = ("ids", "time", "probs", "label", "groups", "where", "sheet")
    rows = read_forecasts(file, **{name: options[name] for name in names})
    click.echo(f"{rows.note}\n", err=True)
    known = None if rows.outcomes is None else np.asarray(rows.outcomes)
    data = ct.Revisions(
        rows.ids,
        rows.times,
        rows.probs,
        known,
        groups=rows.groups,
        dependent=options["dependent"],
        least="auto" if options["least"] is None else options["least"],
        step=options["step"],
    )
    result = data.test(alpha=options["alpha"], level=options["level"])
    if options["picture"] is not None:
        result.plot().save(options["picture"])
    return finish(result, result.alarm, options)
