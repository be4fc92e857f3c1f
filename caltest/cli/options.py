"""The options that commands share, in groups: input, design, test, output.

Commands list these groups, so that an option has one name, type, default and help text
everywhere; :func:`options_of` combines groups.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import click

from caltest._base import arrays as defaults
from caltest.cli.help import column, option
from caltest.cli.recipes import Recipe
from caltest.cli.remedies import Refusal
from caltest.errors import Reading
from caltest.read import FORMATS

#: Endings of a report of one verb.
REPORT_ENDINGS = (".txt", ".json", ".md", ".tex")


def options_of(*options: Callable[..., Any]) -> Callable[..., Any]:
    """Return one decorator for several options, which commands share."""

    def decorate(command: Callable[..., Any]) -> Callable[..., Any]:
        for each in reversed(options):
            command = each(command)
        return command

    return decorate


def choice(name: str, words: Sequence[str], help: str, **more: Any) -> Callable[..., Any]:
    """Return an option whose value is one of some words; the first is the default."""
    return option(name, type=click.Choice(words), default=words[0], help=help, **more)


def _ending(context: click.Context, parameter: click.Parameter, out: Path | None) -> Path | None:
    if out is not None and out.suffix.lower() not in REPORT_ENDINGS:
        words = f"--out: a report ends in {', '.join(REPORT_ENDINGS)}, not as {out}"
        raise Refusal(words, Reading({"out": str(out.with_suffix(".txt"))}))
    return out


def _horizon(
    context: click.Context, parameter: click.Parameter, text: str | None
) -> float | str | None:
    """Return a horizon as a number, or as text: an expression, or a number with its unit."""
    try:
        return text if text is None else int(text) if text.strip().isdecimal() else float(text)
    except ValueError:
        return text


#: A file that is written.
TARGET = click.Path(path_type=Path, dir_okay=False)


# ------------------------------------------------------------------------------
# Input: which file, which columns, which rows.


def flag(name: str, *more: str, help: str, **extra: Any) -> Callable[..., Any]:
    """Return an option without a value, in the group of input options."""
    return option(name, *more, is_flag=True, help=help, **{"group": "Input"} | extra)


SHEET = option("--sheet", metavar="NAME", group="Input", rare=True, help="Excel sheet to read.")

#: Where predictions and labels are: every command that reads rows.
ROW_OPTIONS = options_of(
    column("--probs", help="Probabilities: column, pattern, or expression."),
    column("--label", help="Outcome: a column of 0/1, or an expression."),
    column("--where", help="Rows to keep, such as \"split = 'test'\"."),
    column("--predicted-label", help="Predicted class, beside a confidence."),
    option("--classes", metavar="A,B,...", group="Input",
           help="Labels in the order of the columns."),
    flag("--drop-missing", help="Leave out rows that lack a value."),
    flag("--as-is", help="Read doubtful input as it was asked for."),
    flag("--from-logits", rare=True, help="The columns hold logits."),
    flag("--renormalise", rare=True, help="Divide rows by their sum, and say how many."),
    flag("--per-character", rare=True, help="lm-eval: log-likelihoods per character."),
    option("--format", type=click.Choice(FORMATS), group="Input", rare=True,
           help="Format of the file, whatever its name."),
    SHEET,
)  # fmt: skip

MULTILABEL = flag("--multilabel", rare=True, help="Rows have several labels: columns p_A, y_A, ...")

ROUNDED = option("--rounded/--not-rounded", default=None, group="Input", rare=True,
                 help="Leave out rows of 0 and 1, which may be rounded.")  # fmt: skip

#: Files of one model that are read as one, each in batches.
FILES = options_of(
    click.argument("file", nargs=-1, type=click.Path(path_type=Path)),
    ROW_OPTIONS,
    option("--resume", type=TARGET, metavar="STATE", group="Input", rare=True,
           help="File that keeps the counts of files read so far."),
    flag("--verify", rare=True, help="Compare the content of all files that --resume has counted."),
    ROUNDED,
)  # fmt: skip

FILE_ARGUMENT = options_of(
    click.argument("file", required=False, type=click.Path(path_type=Path)), ROW_OPTIONS, ROUNDED
)


# ------------------------------------------------------------------------------
# Design: how rows depend on each other, count, and came to their outcomes.


WEIGHTS = column("--weights", group="Design", help="How much each row counts, ≥ 0.")

CLUSTERS = column("--clusters", group="Design", help="Rows of one value may be dependent; or A,B.")

ITEMS = options_of(
    column("--items", group="Design", help="Item of which a row is one vote or answer."),
    column("--votes", group="Design", metavar="A,B,...", rare=True,
           help="Rows are items: votes for each class, not a label."),
)  # fmt: skip

FOLDS_OPTION = column(
    "--folds", group="Design", rare=True, help="Which model of a cross-validation predicted a row."
)

BY = column("--by", group="Design", help="Subgroups; A,B are crossed.")

IDS_OPTION = column(
    "--ids", "--id", "ids", group="Design", help="Names of rows: match files by them."
)

MODELS = column(
    "--models", metavar="COLUMN", help="Column that says whose prediction a row of one file is."
)

ORDERED_FLAG = flag(
    "--ordered", group="Design", rare=True, help="Classes have an order, such as grades."
)

TIMES = options_of(
    column("--time", group="Design", help="Times of the rows, or how long they were followed."),
    option("--horizon", callback=_horizon, metavar="N", group="Design",
           help="Steps ahead of forecasts, or by when the event occurs."),
)  # fmt: skip

#: What every command honours that looks at rows by one analysis.
DESIGN = options_of(CLUSTERS, ITEMS, WEIGHTS, TIMES, FOLDS_OPTION)

#: Risks by a horizon of rows that were followed for a time.
FOLLOWUP = options_of(
    column("--event", group="Design", help="Where the event was seen: needs --time, --horizon."),
    column("--competing", group="Design", help="Where a competing event was seen."),
    column("--strata", group="Design", rare=True,
           help="What censoring depends on, if not the prediction."),
    option("--recorded", type=click.Choice(["exact", "floor", "ceil"]),
           show_default="exact", group="Design", rare=True,
           help="How follow-up was recorded: in completed units, or in units begun."),
    option("--unit", type=float, metavar="N", group="Design", rare=True,
           help="Unit of --time with --recorded.", show_default="1"),
)  # fmt: skip

FEATURES = column("--features", metavar="A,B,...", group="Design",
                  help="Columns whose segments are searched.")  # fmt: skip


# ------------------------------------------------------------------------------
# Test and output.


class Share(click.FloatRange):
    """Click type of numbers strictly between 0 and 1, also given in percent."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        number = str(value).removesuffix("%").strip()
        if number != str(value) and re.fullmatch(r"\d+(\.\d+)?", number):
            value = float(number) / 100.0
        return super().convert(value, param, ctx)


SHARE = Share(0, 1, min_open=True, max_open=True)

LENS = option("--lens", type=Recipe("lens"), help="Which probabilities are assessed.",
              show_default="OneVsRest(1) for two classes, else TopK(1)")  # fmt: skip


def statistic(
    words: tuple[str, ...] = (), default: str = "ECE(UniformBins(15))"
) -> Callable[..., Any]:
    """Return the option --statistic; ``words`` are values that are no Python expressions."""
    listed = f", or {', '.join(words)}" * bool(words)
    kind = Recipe("statistic", words)
    return option("--statistic", type=kind, default=default, help=f"As in Python{listed}.")


COSTS = options_of(
    option("--costs", type=click.Path(path_type=Path, dir_okay=False), metavar="CSV",
           help="File of costs: a row an action, a column a class."),
    option("--threshold", type=SHARE, metavar="T", help="Act where the probability is ≥ T."),
)  # fmt: skip

ASKED = options_of(LENS, statistic())

LEVEL_OPTION = option(
    "--level", type=SHARE, default=defaults.INTERVAL_LEVEL, help="Level of the intervals."
)

TOLERANCE_OPTION = option("--tolerance", type=SHARE, help="Largest acceptable error.")

COUNT = click.IntRange(1)

RESAMPLES_OPTION, TOGETHER_OPTION = (
    option("--n-resamples", type=COUNT, default=count, rare=True, help="Monte Carlo draws.")
    for count in (defaults.N_RESAMPLES, defaults.N_TOGETHER)
)

SEED_OPTION = option(
    "--seed", "rng", type=click.IntRange(0), default=0, rare=True, help="Seed of the simulation."
)

SIMULATION = options_of(
    SEED_OPTION,
    option(
        "--workers", type=COUNT, rare=True, help="Threads; by default one a core above a second."
    ),
)

JSON = flag("--json", "as_json", group="Output", help="Print JSON instead of the report.")

QUIET = flag("--quiet", group="Output", rare=True, help="Print the verdict and its numbers only.")

VERBOSE_OPTION = flag(
    "--verbose", group="Output", rare=True, help="Print all notes and all recipes."
)

OUT = options_of(
    JSON,
    QUIET,
    VERBOSE_OPTION,
    option("--out", type=TARGET, callback=_ending, group="Output",
           help=f"Also write it: {', '.join(REPORT_ENDINGS)}."),
)  # fmt: skip

OUTPUT = options_of(SIMULATION, OUT)

FAIL = flag(
    "--fail-on-miscalibration", "gate", group="Output", help="Exit with 1 on miscalibration."
)

RUN = options_of(OUTPUT, FAIL)


def alpha(help: str) -> Callable[..., Any]:
    """Return the option --alpha with this help text."""
    return option("--alpha", type=SHARE, default=0.05, help=help)


def second_model(help: str) -> Callable[..., Any]:
    """Return the option --against, the file of another model, with this help text."""
    return option("--against", type=click.Path(path_type=Path), group="Input", help=help)
