"""What the commands share besides options: reading the input, handing over the answer."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

import caltest as ct
from caltest.results import Result

#: What a command returns: what to print, and the exit code.
Outcome = tuple[Result | str, int]
#: The options of ``COLUMNS`` and ``FACTS`` that ``read_predictions`` takes as they are.
_READ = (
    *("predicted_label", "pos_label", "from_logits", "clusters", "by"),
    *("per_character", "drop_missing", "format"),
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
    return read_file(options["file"], options)


def check_out(options: dict[str, Any]) -> None:
    """Refuse a folder that does not exist before any work is done."""
    if options["out"] is not None and not options["out"].parent.is_dir():
        raise FileNotFoundError(f"--out: there is no folder {options['out'].parent}")


def read_file(
    path: Path, options: dict[str, Any], reader: Callable[..., Any] = ct.read_predictions
) -> Any:
    """Read a file as the options say."""
    asked = {name: options[name] for name in (*_READ, "ids") if options.get(name)}
    if options["classes"] is not None:
        names = [name.strip() for name in options["classes"].split(",")]
        numbers = all(name.isdecimal() for name in names)
        asked["classes"] = list(map(int, names)) if numbers else names
    return reader(path, options["probs"], options["label"], **asked)


def finish(result: Result, found: bool, options: dict[str, Any]) -> Outcome:
    """Write the report that was asked for and choose the exit code; ``main`` prints and exits."""
    if options["out"] is not None:
        written = {".json": result.to_json, ".md": result.to_markdown}
        text = written.get(options["out"].suffix, result.__str__)()
        options["out"].write_text(text.rstrip("\n") + "\n", encoding="utf-8")
    code = 130 if result.ended == "interrupted" else int(found and options["gate"])
    return (result.to_json() if options["as_json"] else result), code
