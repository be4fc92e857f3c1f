"""What the pages share: limits of chance, tables, and how the numbers came about."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import numpy as np
from scipy.special import bdtrc

import caltest

if TYPE_CHECKING:
    from validation.study import Found

#: Chance that a method that keeps its promise fails a study, over all cells of it.
FALSE_ALARM = 1e-3


def largest_rate(level: float, trials: int, claims: float) -> float:
    """Return the rate that a test of this level exceeds by chance in few of so many claims."""
    beyond = bdtrc(np.arange(trials + 1), trials, level)  # P(X > k)
    return float(np.argmax(beyond <= FALSE_ALARM / claims)) / trials


def usual_largest(level: float, trials: int, cells: int) -> float:
    """Return the median of the largest rate of so many cells that all have this rate."""
    return largest_rate(level, trials, FALSE_ALARM / (1.0 - 0.5 ** (1.0 / cells)))


def table(head: Sequence[str], rows: Iterable[Sequence[object]], left: int = 1) -> list[str]:
    """Return the lines of a table in Markdown, whose first columns are flush left."""
    rule = ["---"] * left + ["--:"] * (len(head) - left)
    lines = ["| " + " | ".join(head) + " |", "|" + "|".join(rule) + "|"]
    return lines + ["| " + " | ".join(map(str, row)) + " |" for row in rows]


def opening(found: Found) -> dict[str, object]:
    """Return the words about a run that the pages share."""
    sets = [found.sets(name) for name in found.shown]
    error = (0.05 * 0.95 / min(sets)) ** 0.5
    made = (
        f"Measured with caltest {caltest.__version__} on {spread(sets)} data sets of each kind, so "
        f"that the standard error of a rate of 0.05 or 0.95 is at most {error:.3f}; seed "
        f"{found.seed}, {found.minutes:.0f} minutes of one core."
    )
    command = f"`python -m {found.module}` writes this page, and goes on where it ended."
    return {"made": textwrap.fill(made, 100, break_on_hyphens=False) + "\n" + command}


def spread(counts: list[int]) -> str:
    """Return the smallest and the largest of some counts, or the one that they are."""
    low, high = min(counts, default=0), max(counts, default=0)
    return f"{low}" if low == high else f"{low} to {high}"


def letter(index: int) -> str:
    """Return A, …, Z, AA, AB, … in the order of columns."""
    return (letter(index // 26 - 1) if index >= 26 else "") + chr(ord("A") + index % 26)
