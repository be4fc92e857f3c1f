"""The options that commands share."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import click

from caltest._base import defaults
from caltest.cli import EXIT_CODES as EXIT_CODES
from caltest.cli.recipes import Recipe
from caltest.cli.remedies import Refusal
from caltest.io import FORMATS

option = partial(click.option, show_default=True)
#: Endings of a report of one verb.
WRITTEN = (".txt", ".json", ".md", ".tex")


def options_of(*options: Callable[..., Any]) -> Callable[..., Any]:
    """Bundle options that several commands have."""

    def decorate(command: Callable[..., Any]) -> Callable[..., Any]:
        for option in reversed(options):
            command = option(command)
        return command

    return decorate


def choice(name: str, words: Sequence[str], help: str) -> Callable[..., Any]:
    """Return an option that is one of some words, by default the first."""
    return option(name, type=click.Choice(words), default=words[0], help=help)


def _ending(context: click.Context, parameter: click.Parameter, out: Path | None) -> Path | None:
    if out is not None and out.suffix.lower() not in WRITTEN:
        words = f"--out: a report ends in {', '.join(WRITTEN)}, not as {out}"
        raise Refusal(words, ("--out", str(out.with_suffix(".txt"))))
    return out


def _joined(context: click.Context, parameter: click.Parameter, names: Sequence[str]) -> str | None:
    return ",".join(names) or None


def _horizon(text: str) -> float | str:
    if re.fullmatch(r"\s*\d.*[A-Za-z]\s*", text):
        return text.strip()  # with a unit
    try:
        return int(text) if text.strip().isdecimal() else float(text)
    except ValueError:
        raise click.BadParameter(f"{text!r} is not a number") from None


#: A file that is written.
TARGET = click.Path(path_type=Path, dir_okay=False)
SHEET = option("--sheet", metavar="NAME", help="Of an Excel file, the sheet to read.")
#: Where predictions and labels are, and the facts of the rows: every command that reads rows.
ROWS = options_of(
    option("--probs", metavar="COLUMNS", help="Probability columns: a pattern or names."),
    option("--label", metavar="COLUMN", help="Label column, outcome columns '*_outcome', or file."),
    option("--predicted-label", metavar="COLUMN", help="Predicted classes, beside confidences."),
    option("--classes", metavar="A,B,...", help="Label values in the order of the columns; of "
           "--event censored,event,competing, with | between words alike."),
    option("--pos-label", metavar="VALUE", help="The label whose probability one column is."),
    option("--from-logits", is_flag=True, help="The columns hold logits."),
    option("--per-character", is_flag=True, help="Of lm-eval: log-likelihoods for each character."),
    option("--renormalise", is_flag=True, help="Divide rows by their sum, and say how many."),
    option("--percent", is_flag=True, help="Probabilities are written in percent."),
    option("--drop-missing", is_flag=True, help="Leave out rows that lack a value, however many."),
    option("--one-model", is_flag=True, help="Rows are of one model, whatever names say."),
    option("--multilabel", is_flag=True, help="Rows have several labels: columns p_A, y_A, ..."),
    option("--ordered", is_flag=True, help="The classes are in their order, such as grades."),
    option("--drop-label", "drop_labels", metavar="WORD", multiple=True,
           help="Leave out rows with this label, such as pending."),
    option("--format", type=click.Choice(FORMATS), help="What the file is, whatever its name."),
    SHEET,
    option("--weights", metavar="COLUMN", help="How much each row counts, ≥ 0."),
    option("--clusters", metavar="COLUMN", multiple=True, callback=_joined,
           help="Rows alike here may depend; or two, A,B."),
    option("--folds", metavar="COLUMN", help="Which model predicted a row, of cross-validation."),
    option("--horizon", type=_horizon, metavar="N", help="How many steps forecasts are ahead; with "
           "--event, by when it occurs, in the unit of --time or with one: 5years."),
    option("--time", metavar="COLUMN", help="The times of the rows, which give their order."),
    option("--by", metavar="COLUMN",
           help="Subgroups, too: audit, test, compare, interval, plot, report."),
    option("--ids", "--id", "ids", metavar="COLUMN", help="Names of rows: match files by them."),
)  # fmt: skip
ROUNDED = option("--rounded/--not-rounded", default=None,
                 help="Leave out rows of 0 and 1, which may be rounded.")  # fmt: skip
FILE = options_of(
    click.argument("file", required=False, type=click.Path(path_type=Path)), ROWS, ROUNDED
)
#: Files of one model that are read as one, each in batches.
FILES = options_of(
    click.argument("file", nargs=-1, type=click.Path(path_type=Path)),
    option("--resume", type=TARGET, metavar="STATE", help="Keep what was counted of many files."),
    ROWS,
    ROUNDED,
)
#: Risks by a horizon of rows that were followed for a time.
FOLLOWUP = options_of(
    option("--event", metavar="COLUMN", help="With --time, how a row was followed for so long: 0 "
           "censored, 1 the event, 2, 3, ... competing; predicted is the event by --horizon."),
    option("--strata", metavar="COLUMN", help="What censoring depends on, if not the prediction."),
)  # fmt: skip
FEATURES = option("--features", metavar="A,B,...", help="Search segments of these columns.")


class Share(click.FloatRange):
    """Numbers strictly between 0 and 1, also in percent."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        number = str(value).removesuffix("%").strip()
        if number != str(value) and re.fullmatch(r"\d+(\.\d+)?", number):
            value = float(number) / 100.0
        return super().convert(value, param, ctx)


SHARE = Share(0, 1, min_open=True, max_open=True)
LENS = option("--lens", type=Recipe("lens"), help="Which aspect of calibration is asked about.",
              show_default="OneVsRest(1) for two classes, else TopK(1)")  # fmt: skip


def statistic(
    words: tuple[str, ...] = (), default: str = "ECE(UniformBins(15))"
) -> Callable[..., Any]:
    """Return the option for what is computed; words stand for what has no statistic."""
    help = "What is computed, as in Python, such as SKCE() or Kuiper()"
    listed = f"; or {', '.join(words)}" * bool(words)
    kind = Recipe("statistic", words)
    return option("--statistic", type=kind, default=default, help=f"{help}{listed}.")


ASKED = options_of(LENS, statistic())
LEVEL = option("--level", type=SHARE, default=defaults.LEVEL, help="Level of the intervals.")
TOLERANCE = option("--tolerance", type=SHARE, help="The largest error that can be lived with.")
COUNT = click.IntRange(1)
N_RESAMPLES, N_TOGETHER = (
    option("--n-resamples", type=COUNT, default=count, help="Replicates of what is simulated.")
    for count in (defaults.N_RESAMPLES, defaults.N_TOGETHER)
)
SEED = option("--seed", "rng", type=click.IntRange(0), default=0, help="Seed of what is simulated.")
SIMULATION = options_of(SEED, option("--workers", type=COUNT, default=1, help="Threads."))
OUT = options_of(
    option("--json", "as_json", is_flag=True, help="Print JSON instead of the report."),
    option("--out", type=TARGET, callback=_ending, help=f"Also write it: {', '.join(WRITTEN)}."),
)
OUTPUT = options_of(SIMULATION, OUT)
FAIL = option(
    "--fail-on-miscalibration", "gate", is_flag=True, help="Exit with 1 on miscalibration."
)
RUN = options_of(OUTPUT, FAIL)


def alpha(help: str) -> Callable[..., Any]:
    """Return the option for the chance of a wrong decision."""
    return option("--alpha", type=SHARE, default=0.05, help=help)


def second_model(help: str) -> Callable[..., Any]:
    """Return the option for the file of another model."""
    return option("--against", type=click.Path(path_type=Path), help=help)
