"""Refusals of parameters, in one wording."""

from __future__ import annotations

from collections.abc import Collection
from typing import TypeGuard

import numpy as np

from caltest.errors import StatisticError


def one_of(name: str, value: object, choices: Collection[object]) -> None:
    """Refuse what is not one of these words."""
    if value not in choices:
        words = [repr(word) for word in choices]
        choice = " or ".join(words) if len(words) == 2 else f"one of {', '.join(words)}"
        raise StatisticError(f"{name} must be {choice}, not {value!r}")


def number(name: str, value: object, low: float, high: float, ends: str = "()") -> None:
    """Refuse what is no number of an interval; square brackets include its ends."""
    inside = False
    if isinstance(value, (float, np.floating)) or is_whole(value):
        at_end = (value, ends[0]) == (low, "[") or (value, ends[1]) == (high, "]")
        inside = at_end or bool(low < value < high)
    if not inside:
        place = f"lie in {ends[0]}{low:g}, {high:g}{ends[1]}"
        place = place if high < np.inf else f"be a number > {low:g}"
        raise StatisticError(f"{name} must {place}, not {value!r}")


def fraction(name: str, value: object) -> None:
    """Refuse what does not lie strictly between 0 and 1."""
    number(name, value, 0.0, 1.0)


#: More replicates, or bins, than this are a slip.
MOST_REPLICATES, MOST_BINS = 10**7, 10**6


def is_whole(value: object) -> TypeGuard[int]:
    """Say whether a value is a whole number, which a boolean is not."""
    return isinstance(value, (int, np.integer)) and not isinstance(value, bool)


def whole(name: str, value: object, least: int = 1, most: int | None = None) -> None:
    """Refuse what is not a whole number from ``least`` on, and up to ``most``."""
    if not is_whole(value) or value < least:
        raise StatisticError(f"{name} must be a whole number ≥ {least}, not {value!r}")
    if most is not None and value > most:
        raise StatisticError(f"{name} must be at most {most}, not {value}")
