"""Commands that go on after a refusal: the words that were given, edited by a reading.

A line ``run:`` is printed only where one reading is left that needs no condition and has nothing
to fill in. ``if CONDITION:`` is a command for data that meet the condition, and ``say:`` one with
places for words of the user.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import NamedTuple

import click

from caltest.errors import Reading

#: How alike a name must be to one that is there, of 1, to be put in its place.
NAME_LIKENESS = 0.75

#: Flags of earlier versions, behind which no value stands.
ENDED_FLAGS = ("--percent", "--one-model")


#: The command that takes every option of a reading, and those of one FILE in whose place it stands.
ALL_READINGS, OF_ONE_FILE = (
    "audit",
    (*("segments", "monitor", "test", "interval", "gate", "plot", "compare", "report"),),
)


class InPlace(NamedTuple):
    """Replacement of a mistyped word of the command line.

    ``word`` is the mistyped word and ``meant`` its replacement, "" to remove it. ``when`` is the
    condition in words under which it was meant, "" if it is clear; ``option`` is a word to put
    before it, such as "--like", "" for none.
    """

    word: str
    meant: str
    when: str = ""
    option: str = ""


class MisspeltError(ValueError):
    """Error for an unknown word of an option's value, with the word that was probably meant.

    ``word`` is an :class:`InPlace`, which has both.
    """

    def __init__(self, message: str, word: str, meant: str) -> None:
        super().__init__(message)
        self.word = InPlace(word, meant)


class Refusal(click.UsageError):
    """Error of the command line itself, with alternative readings that become suggestions.

    ``readings`` are options to set or to remove (:class:`Reading`), or a word to replace
    (:class:`InPlace`); () if there is nothing to suggest. The exit code is 2.
    """

    def __init__(self, message: str, *readings: Reading | InPlace) -> None:
        super().__init__(message)
        self.readings = readings


#: What to say to an option that a command lacks: advice, options in its place, and the command
#: that has them. In braces: the option's value, and what that lacks to 1.
INSTEAD: Mapping[str, tuple[str, dict[str, str], str]] = {
    **dict.fromkeys(
        ("--bins", "--n-bins", "--num-bins"),
        ("Bins belong to the statistic, and to caltest plot.", {"statistic": "ECE({0})"}, "test"),
    ),
    "--strategy": (
        "Name the binning: --statistic 'ECE(QuantileBins(10))'.",
        {"statistic": "ECE(QuantileBins(10))"},
        "test",
    ),
    "--random-state": ("It is called --seed.", {"seed": "{0}"}, ""),
    "--n-jobs": ("It is called --workers.", {"workers": "{0}"}, ""),
    "--lens": ("An audit asks its own questions.", {"lens": "{0}"}, "test"),
    "--statistic": ("An audit asks its own questions.", {"statistic": "{0}"}, "test"),
    "--alpha": ("The level of intervals is --level.", {"level": "{1:g}"}, ""),
    "--level": ("The level of a test is --alpha.", {"alpha": "{1:g}"}, ""),
    "--tolerance": ("An audit, a gate and a plan have a tolerance.", {"tolerance": "{0}"}, "audit"),
    "--by": ("Subgroups are for audit, test, interval and report.", {"by": "{0}"}, "audit"),
    **{
        f"--{name}": ("Follow-up is for audit, test, plot and report.", {name: "{0}"}, "audit")
        for name in ("event", "competing", "strata")
    },
    "--percent": ("Divide in the expression.", {"probs": "COLUMN / 100"}, ""),
    "--pos-label": ("Say which label is the event.", {"label": "COLUMN = '{0}'"}, ""),
    "--drop-label": ("Say which rows are kept.", {"where": "COLUMN <> '{0}'"}, ""),
    "--one-model": ("Rows of one model need no option; --where keeps some of them.", {}, ""),
}


def lines(error: Exception, words: Sequence[str], group: click.Group) -> list[str]:
    """Return the suggestions printed below a refusal, lines of text with a command each.

    They begin with ``run:``, ``if …:`` or ``say:``; ``error`` is the refusal, ``words`` are the
    words of the command line, and ``group`` is click's group of the commands. [] if there is
    nothing to suggest.
    """
    readings = readings_of(error, words, group)
    shown: list[str] = []
    for reading in readings:
        commands = (command(each, reading, group) for each in _each_file(words, reading, group))
        for line in filter(None, commands):
            if isinstance(reading, Reading) and not reading.complete:
                shown.append(f"if {reading.when}, say: {line}" if reading.when else f"say: {line}")
            elif len(readings) == 1 and not reading.when:
                shown.append(f"run: {line}")
            else:
                shown.append(f"if {reading.when or 'these options are meant'}: {line}")
    param = error.param if isinstance(error, click.MissingParameter) else None
    if shown and isinstance(param, click.Option) and param.help and "--state" in param.opts:
        shown.append(f"FILE: {param.help[0].lower()}{param.help[1:].rstrip('.')}")
    return list(dict.fromkeys(shown))


def _each_file(
    words: Sequence[str], reading: Reading | InPlace, group: click.Group
) -> list[Sequence[str]]:
    """Return the words of one command for each file of a comparison, or the words unchanged.

    Files are taken one by one if the command ``compare`` lacks an option that the reading sets.
    ``words`` are the words of the command line, ``reading`` has options to set or a word to
    replace, and ``group`` has the commands.
    """
    files = [word for word in words[1:] if Path(word).is_file()]
    here = words[:1] == ["compare"] and isinstance(reading, Reading) and not reading.verb
    if not here or len(files) < 2 or _has(reading, _options("compare", group)):
        return [words]
    return [[word for word in words if word not in files or word == file] for file in files]


def _has(reading: Reading | InPlace, options: Mapping[str, click.Option]) -> bool:
    """Return whether a command has all options that a reading sets.

    ``options`` are the command's options by their spelling, such as "--label". ``reading`` has
    options to set, or a word to replace, for which it is True.
    """
    if isinstance(reading, InPlace):
        return True
    values = reading.options.items()
    return {f"--{name.replace('_', '-')}" for name, v in values if name and v is not None} <= {
        *options
    }


def command(words: Sequence[str], reading: Reading | InPlace, group: click.Group) -> str:
    """Return the command line with the options of a reading set, replaced or removed.

    The text can be pasted into a shell; it is "" if nothing changes, or the command has no such
    option. ``words`` are the words of the command line that was refused. ``reading`` has options to
    set by their Python names, None to remove one, or a word to replace. For a reading of another
    command the options that both have are kept; the option "" stands for a file. ``group`` has the
    commands.
    """
    if isinstance(reading, InPlace):
        whole = re.compile(rf"(?<![\w.-]){re.escape(reading.word)}(?![\w.-])")
        new = [*filter(None, (whole.sub(lambda _: reading.meant, word) for word in words))]
        if reading.option:
            new.insert(new.index(reading.meant), reading.option)
        return _joined(new) * (new != [*words])
    verb = reading.verb or (words[0] if words else "")
    known, target = _options(words[0] if words else "", group), _options(verb, group)
    flags = {name: f"--{name.replace('_', '-')}" for name in reading.options if name}
    if not _has(reading, target) and verb in OF_ONE_FILE and not reading.verb:
        verb, target = ALL_READINGS, _options(ALL_READINGS, group)
    if not _has(reading, target):
        return ""
    many = {
        target[flag].name for flag in flags.values() if flag in target and target[flag].multiple
    }
    gone = {target[flag].name for flag in flags.values() if flag in target} | {*flags}
    gone -= many
    kept, rest = [verb], [*words[1:]]
    while rest:
        part = [rest.pop(0)]
        stem = part[0].partition("=")[0]
        if stem[:1] == "-" and stem != "-":
            option = known.get(stem)
            unknown = stem in ENDED_FLAGS or not rest or rest[0][:1] == "-"
            alone = option.is_flag if option else unknown
            part += [] if alone or "=" in part[0] or not rest else [rest.pop(0)]
            name = option.name if option else stem[2:].replace("-", "_")
            if name in gone or (stem not in target and (verb != words[0] or stem in INSTEAD)):
                continue
        kept += part
    for name, value in reading.options.items():
        text = ",".join(map(str, value)) if isinstance(value, (list, tuple)) else str(value)
        if name in many and isinstance(value, tuple):
            kept += [word for each in value for word in (flags[name], str(each))]
        elif not name:
            kept.append(text)
        elif value is True:
            kept.append(flags[name])
        elif value is not None and value is not False:
            kept += [f"{flags[name]}={text}"] if text[:1] == "-" else [flags[name], text]
    return _joined(kept) * (kept != [*words])


def _joined(words: Sequence[str]) -> str:
    """Return the words as a command line that can be pasted into a shell."""
    plain = [f'"{w}"' if "'" in w and not set(w) & set('"$`\\!') else shlex.quote(w) for w in words]
    return " ".join(["caltest", *plain])


def readings_of(
    error: Exception, words: Sequence[str], group: click.Group
) -> Sequence[Reading | InPlace]:
    """Return the alternative readings that an error offers, or the likely spelling of a word.

    A reading has options to set (:class:`Reading`), a spelling a word to replace
    (:class:`InPlace`). ``words`` are the words of the command line, ``group`` has the commands. ()
    if there is none.
    """
    if isinstance(error, click.BadParameter) and isinstance(error.__context__, MisspeltError):
        return [error.__context__.word]
    if isinstance(error, click.NoSuchOption):
        if reading := instead(error, words, group):
            return [reading]
        return [InPlace(error.option_name, name) for name in close_options(error)[:1]]
    if isinstance(error, click.MissingParameter) and error.param is not None:
        option = isinstance(error.param, click.Option)
        place = "EXPR" if error.param.metavar == "EXPR" else "FILE"
        files = [word for word in words[1:] if Path(word).is_file()]
        if option and place == "FILE" and words[:1] == ["plan"] and len(files) == 1:
            return [InPlace(files[0], files[0], option=error.param.opts[-1])]
        if option:
            return [Reading(_all_missing(error, words))]
        return [Reading({"": place})]
    if isinstance(error, FileNotFoundError):
        for path in (Path(word) for word in words[1:] if word[:1] != "-"):
            if not path.exists() and path.parent.is_dir():
                beside = [other.name for other in path.parent.iterdir()]
                close = get_close_matches(path.name, beside, 1, NAME_LIKENESS)
                return [
                    InPlace(str(path), str(path.with_name(name)), f"{name} is meant")
                    for name in close
                ]
    if isinstance(error, click.UsageError) and words and words[0] not in group.commands:
        return [InPlace(words[0], name) for name in get_close_matches(words[0], group.commands, 1)]
    found: Sequence[Reading | InPlace] = getattr(error, "readings", ())
    return found


def _all_missing(error: click.MissingParameter, words: Sequence[str]) -> dict[str, object]:
    """Return a placeholder for each required option that the command line lacks, by its name.

    ``error`` names the first of them, and ``words`` are the words of the command line.
    """
    given = {word.partition("=")[0] for word in words}
    command_of = error.ctx.command if error.ctx is not None else None
    options = [each for each in (command_of.params if command_of else ()) if each.required]
    lacking = [each for each in options if isinstance(each, click.Option)]
    lacking = [each for each in lacking if not given & {*each.opts}]
    return {
        each.opts[-1].strip("-"): "EXPR" if each.metavar == "EXPR" else "FILE" for each in lacking
    }


def close_options(error: click.NoSuchOption) -> list[str]:
    """Return the options of a command that resemble an unknown one, closest first, at most three.

    ``error`` has the unknown option and those of the command. Names are compared without their
    hyphens, which all options share.
    """
    names = {option.lstrip("-"): option for option in error.possibilities or ()}
    unknown = error.option_name.lstrip("-")
    return [names[name] for name in get_close_matches(unknown, names, 3, NAME_LIKENESS)]


def advice(error: click.NoSuchOption, group: click.Group) -> str:
    """Return advice on an option that a command lacks: its name there, or commands that have it.

    It is a sentence after a blank, "" if no command has it. ``error`` has the option, and ``group``
    the commands.
    """
    if error.option_name in INSTEAD:
        return f" {INSTEAD[error.option_name][0]}"
    have = [name for name in group.commands if error.option_name in _options(name, group)]
    return f" It is an option of {', '.join(have)}." if have else ""


def instead(error: click.NoSuchOption, words: Sequence[str], group: click.Group) -> Reading | None:
    """Return the reading that replaces an unknown option, if an equivalent is known, or None.

    A reading has options to set, and the command that has them if another one. ``error`` has the
    unknown option, ``words`` are the words of the command line, and ``group`` has the commands.
    """
    known = INSTEAD.get(error.option_name)
    if known is None or not known[1]:
        return None
    _, options, verb = known
    place = next(k for k, word in enumerate(words) if word.partition("=")[0] == error.option_name)
    value = words[place].partition("=")[2] or (words[place + 1] if place + 1 < len(words) else "")
    rest = 1.0 - float(value) if re.fullmatch(r"0?\.\d+", value) else 0.05
    has = all(f"--{name}" in _options(words[0], group) for name in options)
    filled: dict[str, object] = {n: text.format(value, rest) for n, text in options.items()}
    if words[0] == "decide":  # which no other command does for follow-up
        filled |= {"costs": None, "threshold": None, "curve": None}
    return Reading(filled, verb="" if has else verb)


def _options(name: str, group: click.Group) -> dict[str, click.Option]:
    """Return the options of the command ``name`` by their spelling, such as "--alpha".

    ``group`` has the commands; {} for a name that is none.
    """
    target = group.get_command(click.Context(group), name)
    options = [each for each in target.params if isinstance(each, click.Option)] if target else []
    return {word: each for each in options for word in (*each.opts, *each.secondary_opts)}
