"""``caltest plot``: a picture as a file.

``--kind`` chooses among the pictures of :mod:`caltest.plots`; the file's suffix decides its format.
Options that belong to another kind are refused.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import click
from click.core import ParameterSource

import caltest as ct
from caltest import plots
from caltest._base import arrays as defaults
from caltest.cli import options as o
from caltest.cli.inputs import Outcome, check_out, finish, read
from caltest.cli.options import Recipe, Verb, option
from caltest.cli.remedies import Refusal
from caltest.errors import Reading
from caltest.plots.chart import RECIPE_IN
from caltest.results import ending

DIAGRAMS = ("deviation", "classical")

CURVES = ("isotonic", "smooth", "band")

PAIRS = ("comparison", "difference")

BANDS = ("consistency", "clopper-pearson", "wilson")

SITES = ("forest", "sites")

KINDS = (*DIAGRAMS, *CURVES, "simplex", "bins", "null", "audit", *SITES, *PAIRS)

#: The options that verbs take as they are.
VALUES = ("lens", "bins", "band", "level", "simultaneous")

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


@click.command(cls=Verb, epilog="Exit codes: 0 done; 2 bad input; 130 interrupted.")
@o.FILE_ARGUMENT
@o.second_model("A second model of the same rows.")
@o.MULTILABEL
@o.BY
@o.DESIGN
@o.FOLLOWUP
@o.IDS_OPTION
@o.choice("--kind", KINDS, "What to draw, as listed above.", metavar="KIND")
@o.LENS
@option("--bins", type=Recipe("bins"), help="A number of bins, or a binning in Python.")
@o.choice("--band", BANDS, "Bars of the diagrams.")
@option("--level", type=o.SHARE, default=defaults.BAND_LEVEL, help="Level of bars and bands.")
@option("--simultaneous", is_flag=True, help="The level is for all bars together.")
@option("--log-odds", is_flag=True, help="An axis for rare events.")
@o.SIMULATION
@option("-o", "--out", type=o.TARGET, required=True, group="Output",
        help="The picture: .pdf, .svg or .png.")  # fmt: skip
@o.flag("--no-recipe", group="Output", rare=True, help="Leave out the line at the foot.")
@o.JSON
def plot(kind: str, against: Path | None, no_recipe: bool, **options: Any) -> Outcome:
    """Draw a picture, and print its numbers.

    deviation and classical are reliability diagrams with one panel for each component of the lens;
    isotonic and smooth are curves without bins, band is a confidence band for the true curve.
    simplex is the triangle of three classes. bins shows the error against the number of bins, null
    the error within its null distribution, audit the p-values of all lenses. With --by, forest
    shows the errors of subgroups, sites the variation of calibration over them, and deviation and
    classical have a panel for each. comparison shows two models, difference their difference.

    \f

    Click calls this function: ``kind`` is one of these words, ``against`` the file of a second
    model or None, ``no_recipe`` leaves out the line at the foot of the picture, and ``options`` are
    the values of all other options by Python name, of which ``out`` is the file to write. It
    returns (result or text to print, exit code). Refusal, an error of the command line, for options
    that do not fit the kind.
    """  # noqa: D301
    for name, kinds in HONOURED_BY.items():
        source = click.get_current_context().get_parameter_source(name)
        if source is ParameterSource.COMMANDLINE and kind not in kinds:
            option = f"--{name.replace('_', '-')}"
            words = f"{option} is for --kind {', '.join(kinds)}, not for {kind}"
            raise Refusal(words, Reading({name: None}, f"the picture is to be {kind}"),
                          Reading({"kind": kinds[0]}, f"{option} is needed"))  # fmt: skip
    if kind in SITES and options["by"] is None:
        words = f"--kind {kind} shows subgroups: name their column with --by"
        raise Refusal(words, Reading({"by": "COLUMN"}))
    if (kind in PAIRS) != (against is not None):
        ways = {"against": "FILE"} if kind in PAIRS else {"kind": PAIRS[0]}
        words = f"--kind {' and '.join(PAIRS)} need --against FILE, and only they"
        raise Refusal(words, Reading(ways))
    if options["out"].suffix.lower() not in RECIPE_IN:
        words = f"-o: a picture ends in {', '.join(RECIPE_IN)}, not as {options['out']}"
        raise Refusal(words, Reading({"out": str(options["out"].with_suffix(".svg"))}))
    check_out(options | {"against": against})
    data = read(options, kind in PAIRS)
    names = [name for name, kinds in HONOURED_BY.items() if kind in kinds]
    arguments = {n: options[n] for n in names if options[n] is not None and n in VALUES}
    run = {name: options[name] for name in ("rng", "workers")}
    look: dict[str, Any] = {"recipe": not no_recipe}
    if "log_odds" in names:
        look["axis"] = "log-odds" if options["log_odds"] else "probability"
    look |= {"style": kind} if kind in DIAGRAMS else {}
    verbs: dict[str, Callable[..., Any]] = {
        **dict.fromkeys(DIAGRAMS, ct.reliability_curve),
        **{fit: partial(ct.reliability_fit, fit=fit) for fit in CURVES},  # type: ignore[arg-type]
        **{"simplex": ct.reliability_simplex, "bins": ct.bin_sensitivity, "audit": ct.audit},
    }
    result: Any
    if kind in verbs:
        result = verbs[kind](data, **arguments, **run)
    elif kind in ("null", "forest"):
        statistic = ct.ECE(arguments.pop("bins")) if "bins" in arguments else ct.ECE()
        result = ct.calibration_test(data, None, statistic, **arguments, **run)
    elif kind == "sites":
        result = ct.meta_analysis(data, **arguments)
    else:
        other = read({**options, "file": against}, True)
        stems = [path.stem if path else "example" for path in (options["file"], against)]
        band = {"band": arguments.pop("band")} if "band" in arguments else {}
        result = ct.reliability_difference(data, other, names=(stems[0], stems[1]), **arguments)
    if kind == "comparison":
        both = [ct.reliability_curve(one, **band, **arguments, **run) for one in (data, other)]
        result = replace(result, ended=ending(*(one.ended for one in both)))
        picture = plots.comparison(both, names=stems, **look)
    else:
        picture = (result.subgroups if kind == "forest" else result).plot(**look)
    picture.save(options["out"])
    return finish(result, False, options | {"out": None})
