"""The command line, one module a command."""

from __future__ import annotations

import os
import sys
import warnings
from typing import Any

import click

from caltest._version import __version__
from caltest.cli.audit import audit
from caltest.cli.common import EXIT_CODES
from caltest.cli.compare import compare
from caltest.cli.interval import interval
from caltest.cli.monitor import monitor
from caltest.cli.plot import plot
from caltest.cli.test import test
from caltest.results import AuditReport


@click.group(context_settings={"help_option_names": ["-h", "--help"]}, epilog=EXIT_CODES)
@click.version_option(__version__, prog_name="caltest")
def cli() -> None:
    """Is this classifier calibrated, or is its calibration error real?"""


for command in (audit, test, compare, interval, monitor, plot):
    cli.add_command(command)


def _print(result: Any) -> None:
    if sys.stdout.isatty() and isinstance(result, AuditReport):
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
