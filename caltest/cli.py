"""The command line: ``caltest audit`` and ``caltest test``."""

from __future__ import annotations

import ast
import os
import sys
import warnings
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import click

import caltest as ct
from caltest._version import __version__
from caltest.results import Result

#: What may be written in --lens, --statistic and --null, as in Python.
VOCABULARY: dict[str, Any] = {
    "lens": {f.__name__: f for f in (ct.TopK, ct.Partition, ct.OneVsRest, ct.Canonical)},
    "statistic": {
        f.__name__: f for f in (ct.ECE, ct.MCE, ct.UniformBins, ct.QuantileBins, ct.VarianceTree)
    },
    "null": {f.__name__: f for f in (ct.RedrawLabels, ct.ConsistencyResampling)},
}
#: What such an option may be in the end.
HEADS = {
    "lens": tuple(VOCABULARY["lens"].values()),
    "statistic": (ct.ECE, ct.MCE),
    "null": tuple(VOCABULARY["null"].values()),
}
EXIT_CODES = """
Exit codes: 0 done, also with too little data to tell; 1 miscalibrated, with
--fail-on-miscalibration; 2 bad input; 130 interrupted.
"""


def parse(text: str, vocabulary: dict[str, Callable[..., Any]]) -> Any:
    """Build a value from text such as ``ECE(UniformBins(15), distance="tv")``.

    Only the names of the vocabulary, numbers, strings and lists are understood; nothing is
    evaluated.

    Raises
    ------
    ValueError
        With what was not understood and what is known.
    """

    def build(node: ast.expr) -> Any:
        if isinstance(node, ast.Name) and node.id in vocabulary:
            return vocabulary[node.id]()
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            if node.func.id not in vocabulary:
                raise ValueError(f"there is no {node.func.id}; known: {', '.join(vocabulary)}")
            if any(k.arg is None for k in node.keywords):
                raise ValueError(f"{ast.unparse(node)!r} is not understood")
            keywords = {str(k.arg): build(k.value) for k in node.keywords}
            return vocabulary[node.func.id](*[build(a) for a in node.args], **keywords)
        if isinstance(node, (ast.List, ast.Tuple)):
            return [build(element) for element in node.elts]
        if isinstance(node, ast.Constant) and isinstance(node.value, (int, float, str)):
            return node.value
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
            return -build(node.operand)
        if isinstance(node, ast.Name):
            raise ValueError(f"there is no {node.id}; known: {', '.join(vocabulary)}")
        raise ValueError(f"{ast.unparse(node)!r} is not understood")

    try:
        tree = ast.parse(text.strip(), mode="eval")
    except SyntaxError:
        raise ValueError("it is not written as in Python, such as TopK(1)") from None
    return build(tree.body)


class Recipe(click.ParamType):  # type: ignore[type-arg]
    """An option whose value is written as in Python."""

    name = "recipe"

    def __init__(self, kind: str, words: tuple[str, ...] = ()) -> None:
        self.kind, self.words = kind, words

    def convert(self, value: Any, param: Any, ctx: Any) -> Any:
        """Turn the text into a lens, statistic or null."""
        if not isinstance(value, str) or value in self.words:
            return value
        try:
            built = parse(value, VOCABULARY[self.kind])
        except (TypeError, ValueError) as error:
            self.fail(f"{value!r}: {error}", param, ctx)
        if type(built) not in HEADS[self.kind]:
            names = ", ".join(head.__name__ for head in HEADS[self.kind])
            self.fail(f"{value!r} is not a {self.kind}; choose one of {names}", param, ctx)
        return built


def _options(*options: Callable[..., Any]) -> Callable[..., Any]:
    def decorate(command: Callable[..., Any]) -> Callable[..., Any]:
        for option in reversed(options):
            command = option(command)
        return command

    return decorate


#: What a command returns: what to print, and the exit code.
Outcome = tuple[Result | str, int]
option = partial(click.option, show_default=True)
INPUT = _options(
    click.argument("file", required=False, type=click.Path(path_type=Path)),
    option("--probs", metavar="COLUMNS", help="Probability columns: a pattern or names."),
    option("--label", metavar="COLUMN", help="Label column (for .npy: the file of labels)."),
    option("--classes", metavar="A,B,…", help="Label values in the order of the columns."),
    option("--from-logits", is_flag=True, help="The columns hold logits."),
)
RUN = _options(
    option("--seed", type=click.IntRange(0), default=0, help="Seed of the simulated rows."),
    option("--workers", type=click.IntRange(1), default=1, help="Threads."),
    option("--json", "as_json", is_flag=True, help="Print JSON instead of the report."),
    option(
        "--out",
        type=click.Path(path_type=Path, dir_okay=False),
        help="Also write the report to a file (JSON if it ends in .json).",
    ),
    option("--fail-on-miscalibration", is_flag=True, help="Exit with 1 on miscalibration."),
)


@click.group(context_settings={"help_option_names": ["-h", "--help"]}, epilog=EXIT_CODES)
@click.version_option(__version__, prog_name="caltest")
def cli() -> None:
    """Is this classifier calibrated, or is its calibration error real?"""


@cli.command(epilog=EXIT_CODES)
@INPUT
@option("--alpha", type=float, default=0.05, help="Chance of a false alarm, over all rows.")
@option("--tolerance", type=float, default=0.1, help="An error you could not live with.")
@option("--adjust", type=click.Choice(["holm", "max-T"]), default="holm", help="Of p-values.")
@option("--n-resamples", type=click.IntRange(1), default=1999, help="For rows that simulate.")
@RUN
def audit(
    alpha: float,
    tolerance: float,
    adjust: Any,
    n_resamples: int,
    seed: int,
    workers: int,
    **options: Any,
) -> Outcome:
    """Ask everything at once: is the model behind FILE calibrated?

    Without FILE, an embedded example is used: a neural network on noisy handwritten digits.
    """
    data = _read(options)
    report = ct.audit(
        data,
        alpha=alpha,
        tolerance=tolerance,
        adjust=adjust,
        n_resamples=n_resamples,
        rng=seed,
        workers=workers,
    )
    failed = report.verdict == "miscalibrated" and options["fail_on_miscalibration"]
    return _finish(report, int(failed), options)


@cli.command(epilog=EXIT_CODES)
@INPUT
@option("--lens", type=Recipe("lens"), default="TopK(1)", help="What is asked about.")
@option("--statistic", type=Recipe("statistic"), default="ECE(UniformBins(15))", help="How far.")
@option(
    "--null",
    type=Recipe("null", ("auto", "exact")),
    default="auto",
    help="auto, exact, RedrawLabels or ConsistencyResampling.",
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
    data = _read(options)
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
        return _finish(result, 130, options)
    found = result.pvalue <= alpha or result.impossible > 0
    return _finish(result, int(found and options["fail_on_miscalibration"]), options)


def _read(options: dict[str, Any]) -> ct.Predictions:
    if options["out"] is not None and not options["out"].parent.is_dir():
        raise FileNotFoundError(f"--out: there is no folder {options['out'].parent}")
    if options["file"] is None:
        click.echo(
            "No file given: this is the embedded example, a small neural network on noisy "
            "handwritten digits.\n",
            err=True,
        )
        return ct.examples.digits("overfit")
    classes = options["classes"]
    return ct.read_predictions(
        options["file"],
        options["probs"],
        options["label"],
        classes=None if classes is None else _class_values(classes),
        from_logits=options["from_logits"],
    )


def _class_values(text: str) -> list[Any]:
    names = [name.strip() for name in text.split(",")]
    return [int(name) for name in names] if all(n.isdecimal() for n in names) else names


def _finish(result: Result, code: int, options: dict[str, Any]) -> Outcome:
    """Write the file that was asked for; printing is left to ``main``."""
    if options["out"] is not None:
        text = result.to_json() if options["out"].suffix == ".json" else str(result)
        options["out"].write_text(text + "\n", encoding="utf-8")
    return (result.to_json() if options["as_json"] else result), code


def _print(result: Any) -> None:
    if sys.stdout.isatty() and hasattr(result, "__rich_console__"):
        from rich.console import Console

        Console(highlight=False).print(result)
    else:
        print(result, flush=True)


def main(arguments: list[str] | None = None) -> None:
    """Run the command line and exit with its code."""
    try:
        with warnings.catch_warnings():
            warnings.showwarning = _show_warning
            outcome = cli.main(arguments, prog_name="caltest", standalone_mode=False)
        if not isinstance(outcome, tuple):  # --help and --version have printed already
            sys.exit(outcome)
        _print(outcome[0])
        sys.exit(outcome[1])
    except click.ClickException as error:
        error.show()
        sys.exit(error.exit_code)
    except (click.Abort, KeyboardInterrupt):
        click.echo("Interrupted.", err=True)
        sys.exit(130)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(outcome[1])
    except (ValueError, TypeError, OSError, ImportError) as error:
        click.echo(f"caltest: {error}", err=True)
        sys.exit(2)


def _show_warning(message: Warning | str, *where: Any, **more: Any) -> None:
    click.echo(f"Warning: {message}", err=True)
