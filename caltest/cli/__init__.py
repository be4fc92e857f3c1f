"""The command line.

:func:`main` runs a command, prints its result and exits with its code; commands are imported from
the other modules of this room when they are called. An unexpected error is one sentence and exit
code 70.
"""

from __future__ import annotations

import codecs
import os
import sys
import traceback
import warnings
from importlib import import_module
from io import StringIO, TextIOWrapper
from typing import Any

import click

from caltest._version import __version__
from caltest.cli.remedies import advice, close_options, lines
from caltest.errors import (
    DoubtfulInputError,
    InvalidPredictionsError,
    StatisticError,
    in_a_file,
    on_command_line,
    printable,
)

EXIT_CODES = """
Exit codes: 0 done; with --fail-on-miscalibration 1 miscalibrated, 3 cannot tell or in doubt;
2 bad input; 70 unexpected error; 130 interrupted.
"""
#: What only prints the trace of an unexpected error, wherever it stands.
DEBUG = "--debug"
#: Where each command is, and what the list of commands says of it.
COMMANDS = {
    "audit": (
        "verbs",
        "Audit the calibration of the model behind FILE: all usual questions at once.",
    ),
    "compare": ("verbs", "Compare the calibration of several models."),
    "decide": (
        "verbs",
        "Compare the utility that acting on the probabilities promises with the utility gained.",
    ),
    "gate": (
        "verbs",
        "Decide whether the model behind FILE may be released: passed, failed or cannot tell.",
    ),
    "grades": ("verbs", "Test the probability of every grade, from a table of counts."),
    "interval": ("verbs", "Compute a confidence interval for the calibration error."),
    "monitor": (
        "streams",
        "Monitor calibration sequentially with e-values; the state is kept in a file.",
    ),
    "plan": ("verbs", "Compute the sample size needed, and how many rows are missing."),
    "plot": ("plot", "Draw a picture, and print its numbers."),
    "report": ("verbs", "Write a report of one page for reviewers, regulators and meetings."),
    "revisions": (
        "verbs",
        "Test whether forecast revisions are unpredictable, before any outcome is known.",
    ),
    "segments": ("verbs", "Find the segments in which the model is miscalibrated."),
    "test": ("verbs", "Test one aspect of calibration."),
}


class Commands(click.Group):
    """Group of commands that are imported when they are run, not when they are listed."""

    def get_command(self, context: click.Context, name: str) -> click.Command | None:
        """Return a command by its name, importing it; None if there is none of this name."""
        if name not in COMMANDS:
            return None
        command: click.Command = vars(import_module(f"caltest.cli.{COMMANDS[name][0]}"))[name]
        return command

    def format_commands(self, context: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the list of the group's commands with their summaries to a help page.

        ``formatter`` of click takes the lines, ``context`` is the group's.
        """
        with formatter.section("Commands"):
            formatter.write_dl([(name, summary) for name, (_, summary) in COMMANDS.items()])


COMMAND_NAMES: Any = dict.fromkeys(COMMANDS)  # of which click suggests one


@click.group(
    cls=Commands,
    commands=COMMAND_NAMES,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="Exit codes: 0 done; 1 miscalibrated or failed; 2 bad input; 3 cannot tell; "
    "70 unexpected error; 130 interrupted.",
)
@click.version_option(__version__, prog_name="caltest")
@click.option(
    DEBUG, is_flag=True, expose_value=False, help="Show the trace of an unexpected error."
)
def cli() -> None:
    """Is this classifier calibrated, or is its calibration error real?

    \f

    The group of all commands, which click calls before a command; it does nothing itself.
    """  # noqa: D301


def _print(result: Any) -> None:
    from caltest.cli.layout import print_result

    print_result(result)


#: What to do about an error that nobody foresaw.
UNEXPECTED = f"please report it with the output of the same command and {DEBUG}"
#: What a terminal gets for letters that it does not have.
ASCII = str.maketrans(
    {"±": "+/-", "−": "-", "–": "-", "·": "|", "…": "...", "≥": ">=", "≤": "<=", "×": "x"}
    | {"½": "1/2", "→": "->", "²": "^2", "Σ": "sum", "√": "sqrt", "’": "'"}
    | {"◆": "*", "✓": "+"}
)


def _in_ascii(error: UnicodeError) -> tuple[str, int]:
    """Return (text, position) for a character that an encoding lacks; a codec's error handler.

    ``error`` is the UnicodeEncodeError. The text is the character's spelling in ASCII; encoding
    goes on at the position, an index into the string.
    """
    assert isinstance(error, UnicodeEncodeError)
    missing = error.object[error.start : error.end].translate(ASCII)
    return missing.encode("ascii", "backslashreplace").decode(), error.end


def main(arguments: list[str] | None = None) -> None:
    """Run the command line and exit with its code (SystemExit).

    ``arguments`` are the words after the name of the program, by default ``sys.argv[1:]``. The code
    is 70 after an unexpected error, of which one sentence is printed, and 130 after Ctrl-C.
    """
    codecs.register_error("caltest", _in_ascii)
    _open_closed_streams()
    words = [*(sys.argv[1:] if arguments is None else arguments)]
    debug = DEBUG in words
    words = [word for word in words if word != DEBUG]
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="caltest")
    try:
        _answer(words)
    except KeyboardInterrupt:  # also while an error is being explained
        print("Interrupted.", file=sys.stderr)
        sys.exit(130)
    except Exception as error:
        if debug:
            traceback.print_exc()
        reason = f"{type(error).__name__}: {error}".partition("\n")[0]
        print(printable(f"caltest: unexpected error ({reason}); {UNEXPECTED}"), file=sys.stderr)
        sys.exit(70)


def _answer(words: list[str]) -> None:
    """Run the command given by ``words``, print its result, and exit with its code (SystemExit).

    ``words`` are the words after the name of the program. Foreseen errors are printed to standard
    error with suggestions, and end with the code 2, Ctrl-C with 130; other exceptions pass.
    """
    try:
        with warnings.catch_warnings(), on_command_line(), in_a_file(range(1, sys.maxsize), []):
            warnings.showwarning = _show_warning
            outcome = cli.main(words, prog_name="caltest", standalone_mode=False, obj=words)
        if not isinstance(outcome, tuple):  # --help and --version have printed already
            sys.exit(outcome)
        with on_command_line():  # sentences made while printing name options
            _print(outcome[0])
        sys.exit(outcome[1])
    except click.ClickException as error:
        shown: click.ClickException = error
        if isinstance(error, click.NoSuchOption):
            close = close_options(error)
            shown = click.NoSuchOption(error.option_name, error.message, close, error.ctx)
            if more := advice(error, cli):
                shown = click.UsageError(f"{error.message}{more}", error.ctx)
        said = StringIO()
        shown.show(said)
        _complain(said.getvalue().rstrip("\n"))
        _show_ways_on(error, words)
        sys.exit(error.exit_code)
    except (click.Abort, KeyboardInterrupt) as error:
        cause = error.__context__ if isinstance(error, click.Abort) else error
        print(f"Interrupted. {cause or ''}".rstrip(), file=sys.stderr)
        sys.exit(130)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(outcome[1])
    except (InvalidPredictionsError, StatisticError, OSError, ImportError) as error:
        _complain(f"caltest: {error}")
        _show_ways_on(error, words)
        sys.exit(2)


def _complain(words: str) -> None:
    """Print a message to standard error, wrapped to the terminal's width if it is known."""
    from caltest.cli.layout import laid_out, line_width

    width = line_width()
    print(printable(words) if width is None else laid_out(words, width), file=sys.stderr)


def _open_closed_streams() -> None:
    """Open the null device in place of standard streams that the parent process has closed.

    Otherwise a file opened later would get a stream's number, and output would be written into it.
    """
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        try:
            os.fstat(number)
        except OSError:
            null = os.open(os.devnull, os.O_RDWR)
            if null != number:
                os.dup2(null, number)
                os.close(null)
        if getattr(sys, name) is None:
            setattr(sys, name, os.fdopen(number, "w" if number else "r", closefd=False))


def _show_ways_on(error: Exception, words: list[str]) -> None:
    """Print the suggestions below an error to standard error, each a command.

    ``error`` is the refusal, whose readings (options to set) become commands, and ``words`` are the
    words of the command line that was refused.
    """
    for line in lines(error, words, cli):
        print(printable(line), file=sys.stderr)
    if isinstance(error, DoubtfulInputError):
        print("To read it as it was asked for, add --as-is.", file=sys.stderr)


def _show_warning(message: Warning | str, *where: Any, **more: Any) -> None:
    _complain(f"Warning: {message}")
