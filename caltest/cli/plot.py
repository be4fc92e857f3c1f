"""``caltest plot``: a picture as a file."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import click
from click.core import ParameterSource

import caltest as ct
from caltest import plots
from caltest._base import defaults
from caltest.cli import options as o
from caltest.cli.common import Outcome, finish, read, settings
from caltest.cli.recipes import Recipe
from caltest.plots.canvas import RECIPE_IN
from caltest.results import ending

DIAGRAMS = ("deviation", "classical")
CURVES = ("isotonic", "smooth", "band")
PAIRS = ("comparison", "difference")
BANDS = ("consistency", "clopper-pearson", "wilson", "bootstrap")
SITES = ("forest", "sites")
KINDS = (*DIAGRAMS, *CURVES, "simplex", "bins", "null", "audit", *SITES, *PAIRS)


#: The kinds of pictures that honour an option.
HONOURED_BY = {
    "by": (*DIAGRAMS, "audit", *SITES),
    "lens": (*DIAGRAMS, *CURVES, "simplex", "bins", "null", *SITES, *PAIRS),
    "bins": (*DIAGRAMS, "simplex", "null", "forest", *PAIRS),
    "band": (*DIAGRAMS, "comparison"),
    "level": (*DIAGRAMS, *CURVES, "simplex", "bins", "sites", *PAIRS),
    "simultaneous": (*DIAGRAMS, *CURVES[:2], *PAIRS),
    "log_odds": (*DIAGRAMS, *CURVES),
}


def _refuse_idle(kind: str) -> None:
    """Refuse an option that was given and would change nothing."""
    context = click.get_current_context()
    for name, kinds in HONOURED_BY.items():
        given = context.get_parameter_source(name) is ParameterSource.COMMANDLINE
        if given and kind not in kinds:
            raise click.UsageError(
                f"--{name.replace('_', '-')} is for --kind {', '.join(kinds)}, not for {kind}"
            )


@click.command(epilog="Exit codes: 0 done; 2 bad input; 130 interrupted.")
@o.FILE
@o.choice("--kind", KINDS, "What to draw.")
@o.option("-o", "--out", type=o.TARGET, required=True, help="The picture: .pdf, .svg or .png.")
@o.LENS
@o.option("--bins", type=Recipe("bins"), help="A number of bins, or a binning in Python.")
@o.choice("--band", BANDS, "Bars of the diagrams.")
@o.option("--level", type=o.SHARE, default=defaults.BAND_LEVEL, help="Level of bars and bands.")
@o.option("--simultaneous", is_flag=True, help="The level is for all bars together.")
@o.option("--log-odds", is_flag=True, help="An axis for rare events.")
@o.second_model("A second model of the same rows.")
@o.option("--no-recipe", is_flag=True, help="Leave out the line at the foot.")
@o.SIMULATION
@o.option("--json", "as_json", is_flag=True, help="Print the numbers as JSON.")
def plot(kind: str, against: Path | None, no_recipe: bool, **options: Any) -> Outcome:
    """Draw a picture, and print its numbers.

    deviation and classical are reliability diagrams with one panel a component of the lens;
    isotonic and smooth are curves without bins, band says where the true one lies; simplex is the
    triangle of three classes; bins shows what the number of bins does, null how unusual the error
    is, audit all lenses; forest shows the errors of subgroups, sites how calibration varies over
    them, and deviation and classical have a panel for each, all with --by; comparison shows two
    models, difference what lies between them.
    """
    _refuse_idle(kind)
    if kind in SITES and options["by"] is None:
        raise click.UsageError(f"--kind {kind} needs --by COLUMN")
    if (kind in PAIRS) != (against is not None):
        raise click.UsageError(f"{' and '.join(PAIRS)} need --against FILE, and only they")
    if options["out"].suffix.lower() not in RECIPE_IN:
        raise click.UsageError(f"-o: a picture ends in {', '.join(RECIPE_IN)}: {options['out']}")
    data = read(options)

    def given(*names: str) -> dict[str, Any]:
        return {name: options[name] for name in names if options[name] is not None}

    asked, cut, bars = given("lens"), given("bins"), given("level", "simultaneous")
    run, drawn = settings(options), dict[str, Any](recipe=not no_recipe)
    axis = {"axis": "log-odds" if options["log_odds"] else "probability"}
    result: Any
    if kind in DIAGRAMS:
        result = ct.reliability_curve(data, **given("band"), **asked, **cut, **bars, **run)
        drawn |= {"style": kind, **axis}
    elif kind in CURVES:
        result = ct.reliability_fit(data, fit=kind, **asked, **bars, **run)  # type: ignore[arg-type]
        drawn |= axis
    elif kind == "simplex":
        result = ct.reliability_simplex(data, **given("level"), **asked, **cut, **run)
    elif kind == "bins":
        result = ct.bin_sensitivity(data, **given("level"), **asked, **run)
    elif kind in ("null", "forest"):
        result = ct.calibration_test(data, None, ct.ECE(*cut.values()), **asked, **run)
    elif kind == "sites":
        result = ct.meta_analysis(data, **given("level"), **asked)
    elif kind == "audit":
        result = ct.audit(data, **run)
    else:
        other = read({**options, "file": against})
        stems = [path.stem if path else "example" for path in (options["file"], against)]
        result = ct.reliability_difference(
            data, other, names=(stems[0], stems[1]), **asked, **cut, **bars
        )
    if kind == "comparison":
        curve = {**given("band"), **asked, **cut, **bars, **run}
        both = [ct.reliability_curve(one, **curve) for one in (data, other)]
        result = replace(result, ended=ending(*(one.ended for one in both)))
        picture = plots.comparison(both, names=stems, **drawn)
    else:
        picture = (result.subgroups if kind == "forest" else result).plot(**drawn)
    picture.save(options["out"])
    return finish(result, False, options | {"out": None})
