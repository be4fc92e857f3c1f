"""``python -m paper_replications [ITEM …]``: run items and write a report."""

from __future__ import annotations

import sys
from importlib.util import find_spec
from pathlib import Path

import click

from paper_replications.items import MODULES, chosen, run
from paper_replications.model import Context
from paper_replications.report import write


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.argument("names", nargs=-1, metavar="[ITEM]...")
@click.option("--quick", is_flag=True, help="Fewer repetitions: under two minutes on two cores.")
@click.option(
    "--out",
    type=click.Path(file_okay=False, path_type=Path),
    default=Path("replications"),
    show_default=True,
    help="Where the report and its figures are written.",
)
@click.option(
    "--data",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="Folder of real predictions (multiclass/*.npz, images/mnist.npz, oracle/*.csv).",
)
@click.option("--seed", type=click.IntRange(min=0), default=0, show_default=True)
@click.option("--no-figures", is_flag=True, help="Numbers and checks only.")
def main(
    names: tuple[str, ...], quick: bool, out: Path, data: Path | None, seed: int, no_figures: bool
) -> None:
    """Replicate the figures, tables and examples of six documents on calibration.

    ITEM is the name of an item, or the beginning of one: V for all of Vaicenavicius et al., N for
    Nixon et al., C for calzone, B for the blog, T for the tutorial, O for the ovarian tumours, D
    for decision curves, X for external values. Without one, all are run but V-MNIST, which trains
    for minutes. The exit code is 1 when a check fails.
    """
    from tqdm import tqdm

    if not all(map(find_spec, ("jinja2", "markdown_it"))):
        raise click.UsageError(
            "the report needs jinja2 and markdown-it-py: pip install '.[replications]'"
        )
    wanted = chosen(names)
    if not wanted:
        raise click.UsageError(f"no such item; there are {', '.join(MODULES)}")
    context = Context(quick=quick, seed=seed, out=out, data=data, draw=not no_figures)
    outcomes = []
    with tqdm(wanted, unit=" items", leave=False, disable=None) as bar:
        for name in bar:
            bar.set_postfix_str(name)
            outcome = run(name, context)
            outcomes.append(outcome)
            checks = outcome.result.checks
            count = f"{sum(check.passed for check in checks):3} of {len(checks):3} checks"
            bar.write(
                f"{outcome.verdict}  {name:10} {count} {outcome.seconds:6.1f} s  {outcome.title}",
                file=sys.stdout,
            )
    for path in write(outcomes, context):
        click.echo(f"written: {path}")
    sys.exit(0 if all(outcome.verdict != "FAIL" for outcome in outcomes) else 1)


if __name__ == "__main__":
    main()
