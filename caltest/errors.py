"""Errors and warnings of caltest, and the readings that they suggest.

All errors derive from ValueError, so that hosts may catch them. A :class:`Reading` is another way
to read the same input, from which the command line writes ``run:`` and ``if`` lines.
:func:`or_nan` makes of an error within another tool a NaN and a warning. Messages name rows and
columns by position for arrays, by file and line within :func:`in_a_file`; :func:`nth` has the name.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple, Self, TypeVar

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

#: Terminal escapes and all other control characters but the line feed; what turns text around.
_CONTROL = re.compile(
    r"\x1b\[[0-?]*[ -/]*[@-~]|[\x00-\x09\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]"
)


def printable(text: str) -> str:
    """Return text without control characters, which could steer a terminal.

    Escape sequences and marks that change the direction of text are removed; line feeds stay.
    """
    return _CONTROL.sub("", text)


#: Whether the user typed a command; else messages are for a caller in Python.
_COMMAND: ContextVar[bool] = ContextVar("_COMMAND", default=False)

#: An argument in Python, and in brackets the option that stands for it on the command line.
_BOTH_WAYS = re.compile(
    r"\b([A-Za-z_]+=(?:range\([^()]*\)|\[[^\[\]]*\]|'[^']*'|[^\s()]*)) "
    r"\((--(?:'[^']*'|\"[^\"]*\"|[^()'\"])*)\)"
)


@contextmanager
def on_command_line() -> Iterator[None]:
    """Context manager in which messages name options of the command line, not Python arguments.

    Within it, ``drop_missing=True (--drop-missing)`` in a message is shown as ``--drop-missing``;
    outside, as ``drop_missing=True``. It yields nothing.
    """
    token = _COMMAND.set(True)
    try:
        yield
    finally:
        _COMMAND.reset(token)


def spelt(text: str) -> str:
    """Return text in which arguments are spelt as the user writes them.

    Messages are written as ``drop_missing=True (--drop-missing)``, of which one part is kept.

    Examples
    --------
    >>> spelt("pass drop_missing=True (--drop-missing)")
    'pass drop_missing=True'
    >>> with on_command_line():
    ...     spelt("pass drop_missing=True (--drop-missing)")
    'pass --drop-missing'
    """
    return _BOTH_WAYS.sub(r"\2" if _COMMAND.get() else r"\1", text)


#: Words in the value of an option in whose place the user has to put another.
PLACEHOLDERS = ("COLUMN", "EXPR", "NUMBER", "CODE", "CLASS1", "FILE")


@dataclass(frozen=True)
class Reading:
    """One way to read the input: the options that say so, and when it is the right one.

    Attributes
    ----------
    options : mapping of str to object
        Options by their Python names (``"drop_missing"``), each with its value: text, a number,
        True for a flag, None to leave the option out.
    when : str
        Condition under which this is the right reading, a clause such as ``"p is the probability
        of survival"``; "" if there is no other reading.
    verb : str
        Command that reads it, if another one than the one that was given.
    """

    options: Mapping[str, object] = field(default_factory=dict)
    when: str = ""
    verb: str = ""

    @property
    def complete(self) -> bool:
        """True if no option has a placeholder, such as COLUMN or NUMBER, left to fill in.

        All of them are in ``PLACEHOLDERS``. Column names in double quotes are not placeholders.
        """
        values = (re.sub(r'"[^"]*"', "", str(value)) for value in self.options.values())
        return not any(re.search(rf"\b({'|'.join(PLACEHOLDERS)})\b", value) for value in values)


class _Plain(ValueError):
    """Base class of errors whose message is one line.

    Names come from files, and line feeds in them are replaced by spaces. ``readings`` are other
    ways to read the input, each a :class:`Reading`: options, and when they are right. The command
    line prints them as commands.
    """

    def __init__(self, message: str, readings: Sequence[Reading] = ()) -> None:
        super().__init__(printable(spelt(message).replace("\n", " ")))
        self.readings = tuple(readings)

    def of_file(self, name: str) -> Self:
        """Return a copy of this error whose message begins with ``name``: "scores.csv: …".

        ``name`` names a file. The class and the suggested readings stay.
        """
        return type(self)(f"{name}: {self}", self.readings)


class InvalidPredictionsError(_Plain):
    """Probabilities or labels that cannot be tested; the message names the place and a remedy."""


class DoubtfulInputError(InvalidPredictionsError):
    """Input that can be read, but whose data say that it is probably meant otherwise.

    ``readings`` are the other ways to read it that the data support, each a :class:`Reading`:
    options to set, and the condition under which they are right. ``as_is=True`` (``--as-is``) reads
    the input as it was asked for, with a note.
    """


class StatisticError(_Plain):
    """A statistic, null distribution, parameter or choice of probabilities that cannot be used.

    It is out of range, or does not fit the data. ``readings`` are other ways to ask (options to
    set) that the message suggests, () if there are none.
    """


class UnsupportedFactError(StatisticError):
    """A design of the data, such as weights, that a function does not support.

    ``fact`` names the design in words for a report, such as "weights"; "" if unnamed. ``readings``
    are other ways to read the input that would avoid it, possibly none.
    """

    def __init__(self, message: str, readings: Sequence[Reading] = (), fact: str = "") -> None:
        super().__init__(message, readings)
        self.fact = fact


class SparseBinsWarning(UserWarning):
    """A test by consistency resampling has so few predictions in a bin that it may be invalid.

    It then rejects calibrated models too often.
    """


class FewClustersWarning(UserWarning):
    """There are so few clusters, or rare labels in them, that a test says little or may fail."""


class DoubtfulInputWarning(UserWarning):
    """Values that can be tested, but are probably not what they were taken for."""


class DegenerateDataWarning(UserWarning):
    """The null distribution is a single value, so the test can say nothing."""


class LimitLawWarning(UserWarning):
    """An asymptotic null distribution was asked for in data in which it rejects calibrated models.

    The data are of a kind for which this is known to happen too often.
    """


class ShortFollowupWarning(UserWarning):
    """So few rows were followed long enough that a test may reject calibrated models too often."""


class UnmeasuredWarning(UserWarning):
    """A metric inside another tool could not be measured: it is NaN, and the message says why."""


# ------------------------------------------------------------------------------
# Metrics inside torchmetrics, scikit-learn, MLflow, Inspect and lm-eval, which must not end because
# a batch cannot be measured.


Answer = TypeVar("Answer")


def or_nan(
    ask: Callable[[], Answer],
    unmeasured: Answer,
    name: str,
    said: set[str] | None = None,
    stack: int = 3,
) -> Answer:
    """Return the answer of ``ask()``, or ``unmeasured`` with an ``UnmeasuredWarning`` if it fails.

    ``ask`` is a function without arguments; any ``Exception`` in it counts as failure. ``name`` is
    the name of the metric in the warning. If the set ``said`` is passed, it collects the reasons
    given so far, and reasons that differ only in numbers are warned of once. ``stack`` is the stack
    level of the warning. ``KeyboardInterrupt`` and ``SystemExit`` are passed on.
    """
    try:
        return ask()
    except Exception as error:  # whatever it is, the host goes on
        message = f"{name} is nan: {type(error).__name__}: {error}"
        reason = re.sub(r"\d+", "#", message)
        if said is None or reason not in said:
            warnings.warn(message, UnmeasuredWarning, stacklevel=stack)
        if said is not None:
            said.add(reason)
        return unmeasured


# ------------------------------------------------------------------------------
# Names of rows and columns in messages: "row 3", counted from 0 as arrays are indexed, or by file
# and line. Nothing here imports NumPy, which the start of the command line does not need.


class MessageNames(NamedTuple):
    """Names that error messages use for rows and columns of the input.

    ``rows`` (n,) are the rows' numbers in the file, ``columns`` the names of the probability
    columns, ``label`` the name of the label column ("" if it has none). ``parts`` are pairs (name,
    number of rows) of the files that were pooled; () for a single file.
    """

    rows: NDArray[np.int64] | range
    columns: list[str]
    parts: tuple[tuple[str, int], ...]
    label: str


#: What rows and columns of probabilities are called in messages, where not by their place.
NAMES_IN_MESSAGES: ContextVar[MessageNames | None] = ContextVar("NAMES_IN_MESSAGES", default=None)


@contextmanager
def in_a_file(
    rows: NDArray[np.int64] | range,
    columns: list[str],
    parts: tuple[tuple[str, int], ...] = (),
    label: str = "",
) -> Iterator[None]:
    """Context manager in which messages name rows and columns as the file, or files, do.

    ``rows`` (n,) are the rows' numbers in the file, ``columns`` the names of the probability
    columns, ``label`` the name of the label column. ``parts`` are pairs (name, number of rows) of
    concatenated files, whose rows ``rows`` number consecutively; a message then counts within one
    file. It yields nothing.
    """
    token = NAMES_IN_MESSAGES.set(MessageNames(rows, columns, parts, label))
    try:
        yield
    finally:
        NAMES_IN_MESSAGES.reset(token)


def in_column() -> str:
    """Return " in column NAME" for messages on labels read from a file; "" for arrays."""
    called = NAMES_IN_MESSAGES.get()
    return f" in column {called.label}" if called and called.label else ""


def nth(place: int) -> str:
    """Return the name of the row at index ``place`` for messages, such as "row 17 of scores.csv".

    Within :func:`in_a_file` it is the row's number in the file, with the name of the file if there
    are several. For arrays it is "row 17", counted from 0.
    """
    called = NAMES_IN_MESSAGES.get()
    if called is None:
        return f"row {place}"
    row = int(called.rows[place])
    for name, length in called.parts:
        if row <= length:
            return f"row {row} of {name}"
        row -= length
    return f"row {row}"
