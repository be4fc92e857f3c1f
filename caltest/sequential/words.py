"""What a monitor has seen, in words."""

from __future__ import annotations

from math import nan, sqrt

import numpy as np

from caltest._base.written import several
from caltest.results.numbers import percent

#: How rows of one time are bet on, and why.
ONE_BET = "one bet on each, as its rows may depend on each other"
#: What the best of such bets says: stakes on a mean may be larger than the error.
SIDE = "; its direction holds, not its size"


def means_of(
    sums: tuple[float, ...], before: tuple[float, ...] = (0.0, 0.0, 0.0)
) -> tuple[float, float]:
    """Return Σ p and Σ y by the number of rows, of those that were not there before."""
    n, predicted, observed = np.subtract(sums, before).tolist()
    return (predicted / n, observed / n) if n else (nan, nan)


def in_words(sums: tuple[float, ...], before: tuple[float, ...] = (0.0, 0.0, 0.0)) -> str:
    """Say what was predicted and observed in the rows that were not there before."""
    if sums[0] <= before[0]:
        return "no rows yet"
    mean, rate = means_of(sums, before)
    return f"predicted {percent(mean, rate)}, observed {percent(rate, mean)}"


def after_alarm(words: str, sums: tuple[float, ...], before: tuple[float, ...]) -> str:
    """Say what was predicted and observed since the alarm; the side from two standard errors on."""
    mean, rate = means_of(sums, before)
    noise = sqrt(mean * (1.0 - mean) / (sums[0] - before[0]))
    side = f": too {'high' if mean > rate else 'low'}" * (abs(mean - rate) > 2.0 * noise)
    when = words.removeprefix("at ").rpartition(", ")[2]
    return f"  since       the alarm, {when}: {in_words(sums, before)}{side}"


def of_impossible(count: int, rounded: bool) -> str:
    """Say what outcomes of probability 0 mean."""
    words = "which settles it, unless probabilities were rounded to 0: then give them unrounded, "
    words += "or begin anew with rounded=True (--rounded)"
    words = "not bet on, as it may be rounded" if rounded else words
    return f"  {several(count, 'outcome')} had probability 0, {words}."
