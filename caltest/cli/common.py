"""What the commands share: their options, reading the input, handing over the answer."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import click

import caltest as ct
from caltest._base import defaults
from caltest.cli.recipes import Recipe
from caltest.io import FORMATS
from caltest.results import Result

EXIT_CODES = """
Exit codes: 0 done, also with too little data to tell; 1 miscalibrated, with
--fail-on-miscalibration; 2 bad input; 130 interrupted.
"""


def options_of(*options: Callable[..., Any]) -> Callable[..., Any]:
    """Bundle options that several commands have."""

    def decorate(command: Callable[..., Any]) -> Callable[..., Any]:
        for option in reversed(options):
            command = option(command)
        return command

    return decorate


#: What a command returns: what to print, and the exit code.
Outcome = tuple[Result | str, int]
option = partial(click.option, show_default=True)
COLUMNS = options_of(
    option("--probs", metavar="COLUMNS", help="Probability columns: a pattern or names."),
    option("--label", metavar="COLUMN", help="Label column, outcome columns '*_outcome', or file."),
    option(
        "--predicted-label", metavar="COLUMN", help="Predicted classes, beside their confidence."
    ),
    option("--classes", metavar="A,B,...", help="Label values in the order of the columns."),
    option("--pos-label", metavar="VALUE", help="The label whose probability one column is."),
    option("--from-logits", is_flag=True, help="The columns hold logits."),
    option("--per-character", is_flag=True, help="Of lm-eval: log-likelihoods for each character."),
    option("--drop-missing", is_flag=True, help="Leave out rows with empty cells, and say so."),
    option("--format", type=click.Choice(FORMATS), help="What the file is, whatever its name."),
)
FACTS = options_of(
    option("--clusters", metavar="COLUMN", help="Rows alike here may depend on each other."),
    option("--by", metavar="COLUMN", help="Look at every subgroup of rows, too."),
)
#: The options of ``COLUMNS`` and ``FACTS`` that ``read_predictions`` takes as they are.
_READ = (
    *("predicted_label", "pos_label", "from_logits", "clusters", "by"),
    *("per_character", "drop_missing", "format"),
)
INPUT = options_of(
    click.argument("file", required=False, type=click.Path(path_type=Path)), COLUMNS, FACTS
)
#: Numbers strictly between 0 and 1.
SHARE = click.FloatRange(0, 1, min_open=True, max_open=True)
LENS = option(
    "--lens",
    type=Recipe("lens"),
    show_default="OneVsRest(1) for two classes, else TopK(1)",
    help="Which aspect of calibration is asked about.",
)
ASKED = options_of(
    LENS,
    option(
        "--statistic",
        type=Recipe("statistic"),
        default="ECE(UniformBins(15))",
        help="What is computed, as in Python, such as SKCE() or Kuiper().",
    ),
)
N_RESAMPLES = option(
    "--n-resamples",
    type=click.IntRange(1),
    default=defaults.N_RESAMPLES,
    help="Replicates of what is simulated.",
)
SIMULATION = options_of(
    option("--seed", "rng", type=click.IntRange(0), default=0, help="Seed of what is simulated."),
    option("--workers", type=click.IntRange(1), default=1, help="Threads."),
)
OUTPUT = options_of(
    SIMULATION,
    option("--json", "as_json", is_flag=True, help="Print JSON instead of the report."),
    option(
        "--out",
        type=click.Path(path_type=Path, dir_okay=False),
        help="Also write the report to a file (JSON if it ends in .json).",
    ),
)
RUN = options_of(
    OUTPUT,
    option("--fail-on-miscalibration", "gate", is_flag=True, help="Exit with 1 on miscalibration."),
)


def settings(options: dict[str, Any], *names: str) -> dict[str, Any]:
    """Return the options that a verb takes under the same names."""
    return {name: options[name] for name in (*names, "rng", "workers")}


def read(options: dict[str, Any]) -> ct.Predictions:
    """Read FILE as the options say, or the embedded example without one."""
    check_out(options)
    if options["file"] is None:
        click.echo(
            "No file given: this is the embedded example, a small neural network on noisy "
            "handwritten digits.\n",
            err=True,
        )
        return ct.examples.digits("overfit")
    data: ct.Predictions = read_file(options["file"], options)
    return data


def check_out(options: dict[str, Any]) -> None:
    """Refuse a folder that does not exist before any work is done."""
    if options["out"] is not None and not options["out"].parent.is_dir():
        raise FileNotFoundError(f"--out: there is no folder {options['out'].parent}")


def read_file(
    path: Path, options: dict[str, Any], reader: Callable[..., Any] = ct.read_predictions
) -> Any:
    """Read a file as the options say."""
    classes = options["classes"]
    asked = {name: options[name] for name in (*_READ, "ids") if options.get(name)}
    if classes is not None:
        asked["classes"] = class_values(classes)
    return reader(path, options["probs"], options["label"], **asked)


def class_values(text: str) -> list[Any]:
    """Return the label values of ``--classes``."""
    names = [name.strip() for name in text.split(",")]
    return [int(name) for name in names] if all(n.isdecimal() for n in names) else names


def finish(result: Result, found: bool, options: dict[str, Any]) -> Outcome:
    """Write the report that was asked for and choose the exit code; ``main`` prints and exits."""
    if options["out"] is not None:
        text = result.to_json() if options["out"].suffix == ".json" else str(result)
        options["out"].write_text(text + "\n", encoding="utf-8")
    code = 130 if result.ended == "interrupted" else int(found and options["gate"])
    return (result.to_json() if options["as_json"] else result), code
