"""What can go wrong, by name."""

import re
from collections.abc import Sequence
from typing import NamedTuple, Self

#: Terminal escapes and all other control characters but the line feed; what turns text around.
_CONTROL = re.compile(
    r"\x1b\[[0-?]*[ -/]*[@-~]|[\x00-\x09\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]"
)


def printable(text: str) -> str:
    """Return text that cannot steer a terminal, whatever names are in it."""
    return _CONTROL.sub("", text)


class InPlace(NamedTuple):
    """A word of a command line, and the one that was meant, "" for none."""

    word: str
    meant: str


class _Plain(ValueError):
    """An error of one line: names come from files, and line feeds in them are spaces.

    ``remedies`` are words of a command line, each of which decides: options that come in the place
    of those of the same name, such as ``("--probs", "risk")``, or with ``!`` are left out, perhaps
    after another command, ``("test", "--lens", "TopK(1)")``; or one word :class:`InPlace` of
    another.
    """

    def __init__(self, message: str, remedies: Sequence[tuple[str, ...]] = ()) -> None:
        super().__init__(printable(message.replace("\n", " ")))
        self.remedies = tuple(remedies)

    def of_file(self, name: str) -> Self:
        """Return the same with the name of a file before the message."""
        return type(self)(f"{name}: {self}", self.remedies)


class InvalidPredictionsError(_Plain):
    """Probabilities or labels that cannot be tested; the message says where and what to do."""


class StatisticError(_Plain):
    """A statistic, lens or null that does not fit the data it was asked about."""


class UnsupportedFactError(StatisticError):
    """A fact of the rows, such as weights, that is not allowed for by what was asked."""

    def __init__(
        self, message: str, remedies: Sequence[tuple[str, ...]] = (), fact: str = ""
    ) -> None:
        super().__init__(message, remedies)
        self.fact = fact


class SparseBinsWarning(UserWarning):
    """Consistency resampling was asked for with too few predictions in a bin to be valid."""


class FewClustersWarning(UserWarning):
    """There are so few clusters, or rare labels in them, that a test says little or may fail."""


class DoubtfulInputWarning(UserWarning):
    """Values that can be tested, but are probably not what they were taken for."""


class DegenerateDataWarning(UserWarning):
    """The null distribution is a single value, so the test can say nothing."""


class LimitLawWarning(UserWarning):
    """A limit law was asked for in data in which it is known to reject calibrated models."""


class ShortFollowupWarning(UserWarning):
    """So few rows were followed long enough that a test may reject calibrated models too often."""
