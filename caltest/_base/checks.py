"""Refusals of parameters, in one wording."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import numpy as np

from caltest.errors import StatisticError


def one_of(name: str, value: Any, known: Collection[Any]) -> None:
    """Refuse what is not one of the known words."""
    if value not in known:
        words = [repr(word) for word in known]
        choice = " or ".join(words) if len(words) == 2 else f"one of {', '.join(words)}"
        raise StatisticError(f"{name} must be {choice}, not {value!r}")


def fraction(name: str, value: Any) -> None:
    """Refuse what does not lie strictly between 0 and 1."""
    if not (isinstance(value, (int, float, np.number)) and 0.0 < value < 1.0):
        raise StatisticError(f"{name} must lie between 0 and 1, not {value!r}")


def whole(name: str, value: Any, least: int = 1) -> None:
    """Refuse what is not a whole number from ``least`` on."""
    if not isinstance(value, (int, np.integer)) or value < least:
        raise StatisticError(f"{name} must be a whole number ≥ {least}, not {value!r}")
