"""The whole command that would work, for whoever was refused."""

from __future__ import annotations

import os
import re
import shlex
import sys
import time
import warnings
from collections.abc import Sequence
from difflib import get_close_matches
from pathlib import Path

import click

from caltest._base.naming import in_a_file
from caltest.errors import InPlace, InvalidPredictionsError, StatisticError


class Refusal(click.UsageError):
    """A refusal by the command line itself, with what would go on."""

    def __init__(self, message: str, *remedies: tuple[str, ...]) -> None:
        super().__init__(message)
        self.remedies = remedies


class Legible(Exception):
    """What a command ends with that only tries to read, as its context says by this class."""


#: Seconds after which, and bytes of files from which on, no remedy is tried before it is shown.
PATIENCE, SMALL = 1.0, 2**24


#: Words of remedies in whose place a user has to put another.
PLACES = {"COLUMN", "FILE", "FILE_OF_LABELS", "OTHER_FILE", "T"}


#: What to say to options of other packages and of other commands, and what goes on; in braces the
#: command if it takes statistics, the option, its value and what that lacks to 1.
INSTEAD = {
    **dict.fromkeys(("--bins", "--n-bins", "--num-bins"), (
        "Bins are for caltest test --statistic 'ECE(10)' and caltest plot --bins.",
        "{command} --statistic 'ECE({value})'")),
    "--random-state": ("Use --seed.", "--seed {value}"),
    "--n-jobs": ("Use --workers.", "--workers {value}"),
    **dict.fromkeys(("--lens", "--statistic"), (
        "An audit asks its own questions; caltest test takes --lens and --statistic.",
        "test {option} {value}")),
    "--strategy": ("Write it as --statistic 'ECE(QuantileBins(10))'.",
                   "{command} --statistic 'ECE(QuantileBins(10))'"),
    **dict.fromkeys(("--event", "--strata"), (
        "Follow-up is for caltest audit, test, plot and report.", "audit {option} {value}")),
    "--alpha": ("The level of intervals is --level, such as 0.95.", "--level {rest:g}"),
    "--tolerance": ("An audit, a gate and a plan have a --tolerance.", "audit --tolerance {value}"),
    "--level": ("The level of a test is --alpha, such as 0.05.", "--alpha {rest:g}"),
}  # fmt: skip


#: How alike a name must be to one that is there, of 1, to be put in its place.
ALIKE = 0.75


#: Values of the options that commands need.
MISSING = {"plot": "plot.svg", "report": "report.html", "monitor": "state.json", "plan": "FILE"}


def path_of(error: Exception, words: list[str], group: click.Group) -> tuple[list[str], list[str]]:
    """Return what else is in the way after an error, and the commands that go on.

    As long as one remedy is named it is tried, and the errors that follow come with theirs; after
    an error without one there is no command.
    """
    further, tried = list[str](), list[list[str]]()
    commands, start = ways_on(error, words, group), time.monotonic()
    large = sum(os.path.getsize(word) for word in words if os.path.isfile(word)) > SMALL
    while len(commands) == 1 and not large and time.monotonic() - start < PATIENCE:
        words = shlex.split(commands[0])[1:]
        if words in tried:  # one refuses what the other asks for
            return further, []
        tried.append(words)
        if PLACES & {*words} or "-" in words:
            break
        following = obstacle(words, group)
        if following is None or isinstance(following, click.Abort):
            break
        file = str(error).partition(": ")[0] + ": "
        message = str(following)
        if isinstance(following, click.ClickException):
            message = following.format_message()
        error, commands = following, ways_on(following, words, group)
        end = "; no command is known that goes on from there" * (not commands)
        further.append(message.removeprefix(file) + end)
    return further, commands


def obstacle(words: list[str], group: click.Group) -> Exception | None:
    """Return the error that a command meets until all is read, if any."""
    try:
        with warnings.catch_warnings(action="ignore"), in_a_file(range(1, sys.maxsize), []):
            group.main(words, "caltest", standalone_mode=False, obj=Legible)
    except Legible:
        return None
    except Exception as error:  # whatever it is, it is shown
        return error
    return None


def ways_on(error: Exception, words: Sequence[str], group: click.Group) -> list[str]:
    """Return the commands that would go on after an error, as far as it says what would."""
    remedies: Sequence[tuple[str, ...]] = ()
    if isinstance(error, click.BadParameter) and isinstance(error.__context__, StatisticError):
        error = error.__context__
    if isinstance(error, (Refusal, InvalidPredictionsError, StatisticError)):
        remedies = error.remedies
    elif isinstance(error, click.NoSuchOption):
        close = get_close_matches(error.option_name, error.possibilities or (), 1, ALIKE)
        remedies = [InPlace(error.option_name, name) for name in close]
        if error.option_name in INSTEAD:
            remedies, words = _instead(error.option_name, words, group)
    elif isinstance(error, click.MissingParameter) and error.param and words[0] in MISSING:
        option = isinstance(error.param, click.Option)
        remedies = [(error.param.opts[-1], MISSING[words[0]]) if option else ("FILE",)]
    elif isinstance(error, FileNotFoundError):
        for path in (Path(word) for word in words[1:] if word[0] != "-"):
            if not path.exists() and path.parent.is_dir():
                beside = [other.name for other in path.parent.iterdir()]
                close = get_close_matches(path.name, beside, 1, ALIKE)
                remedies = [InPlace(str(path), str(path.with_name(name))) for name in close]
    elif words and words[0] not in group.commands:
        close = get_close_matches(words[0], group.commands, 1)
        remedies = [InPlace(words[0], command) for command in close]
    commands = [corrected(words, remedy, group) for remedy in remedies]
    return [command for command in commands if command]


def _instead(
    option: str, words: Sequence[str], group: click.Group
) -> tuple[list[tuple[str, ...]], list[str]]:
    """Return what goes on in place of an option that a command does not have, and the rest."""
    parts = _parts(words[1:], {})
    value = next(part[-1] for name, part in parts if name == option).rpartition("=")[2]
    rest = 1.0 - float(value) if re.fullmatch(r"0?\.\d+", value) else 0.05
    values = {"option": option, "value": shlex.quote(value), "rest": rest}
    values["command"] = words[0] if "--statistic" in _options(words[0], group) else "test"
    remedy = INSTEAD[option][1].format(**values)
    others = [word for name, part in parts if name != option for word in part]
    return [tuple(shlex.split(remedy))], [words[0], *others]


def corrected(words: Sequence[str], remedy: tuple[str, ...], group: click.Group) -> str:
    """Return a command with a remedy, "" where that changes nothing."""
    if isinstance(remedy, InPlace):
        whole = re.compile(rf"(?<![\w.-]){re.escape(remedy.word)}(?![\w.-])")
        new = [*filter(None, (whole.sub(lambda _: remedy.meant, word) for word in words))]
    else:
        new = _with(words, remedy, group)
    return shlex.join(["caltest", *new]) * (new != list(words))


def _with(words: Sequence[str], remedy: Sequence[str], group: click.Group) -> list[str]:
    """Return the words of a command with those of a remedy; another command keeps what it takes."""
    command = remedy[0] if remedy[0] in group.commands else words[0]
    options = _options(words[0], group)
    changes = _parts(remedy[command is remedy[0] :], _options(command, group) or options)
    if any(name.startswith("-") for name, _ in changes):  # an option that the command lacks
        return list(words)
    parts = _parts(words[1:], options)
    if command != words[0]:
        names = {"", *(option.name for option in _options(command, group).values())}
        parts = [(name, part) for name, part in parts if name in names]
    added = {o.name for o in options.values() if o.multiple and not o.callback}
    changed = {name for name, _ in changes} - {"", *added}
    parts = [(name, part) for name, part in parts if name not in changed]
    return [command, *(word for _, part in parts + changes for word in part if word[0] != "!")]


def _options(command: str, group: click.Group) -> dict[str, click.Option]:
    """Return the options of a command by how they are written."""
    target = group.get_command(click.Context(group), command)
    options = [each for each in target.params if isinstance(each, click.Option)] if target else []
    return {word: each for each in options for word in (*each.opts, *each.secondary_opts)}


def _parts(words: Sequence[str], options: dict[str, click.Option]) -> list[tuple[str, list[str]]]:
    """Return files, and options with their values, and what they are called, "" of files."""
    parts, rest = [], list(words)
    while rest:
        word = rest.pop(0)
        stem = word.removeprefix("!").partition("=")[0]
        if stem[:1] != "-" or stem == "-":
            parts.append(("", [word]))
            continue
        option = options.get(stem)
        flag = option.is_flag if option else not rest or rest[0].startswith("-")
        alone = flag or "=" in word or word.startswith("!") or not rest
        name = str(option.name) if option else stem
        parts.append((name, [word] if alone else [word, rest.pop(0)]))
    return parts
