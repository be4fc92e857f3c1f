"""What a monitor has seen, in words."""

from __future__ import annotations

from math import nan, sqrt
from typing import TYPE_CHECKING

import numpy as np

from caltest._base.written import several
from caltest.results import format_p
from caltest.results.numbers import percent
from caltest.sequential.watch import format_evalue

if TYPE_CHECKING:
    from caltest.sequential.monitor import Monitor

#: How rows of one time are bet on, and why.
ONE_BET = "one bet on each, as its rows may depend on each other"
#: What the best of such bets says: stakes on a mean may be larger than the error.
SIDE = "; its direction holds, not its size"

#: What an alarm without ``change=True`` does not say.
ASK_SINCE_WHEN = (
    "  Note: the alarm is about the whole record; since when, change=True (--change) asks."
)


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


def report(monitor: Monitor) -> list[str]:
    """Return the lines of a report of a monitor, but those that end it."""
    question = "has it become miscalibrated?" if monitor.change else "is it miscalibrated?"
    value, rings = format_evalue(monitor.log_evidence), format_evalue(monitor.alarm_at)
    p, of_last = monitor.pvalue, f" (last {monitor.sums[0]:.0f} rows)"  # an older state had no sums
    lines = [
        f"Monitor of calibration: {question}",
        f"  rows        {monitor.n}"
        + f" at {monitor.steps} times, {ONE_BET}" * monitor.shared_times,
        f"  e-value     {value}  (what a bet of 1 against it has become)",
        f"  alarm       {monitor.alarm_words}  (at an e-value of {rings})",
    ]
    lines += [] if p is None else [f"  p-value     {format_p(p)}  (valid at any time)"]
    lines.append(
        f"  means       {in_words(monitor.sums)}" + of_last * (monitor.sums[0] < monitor.n)
    )
    if monitor.onset is not None:
        began = monitor.row_words(monitor.onset, monitor.onset_time)
        lines.append(f"  began       likely {began}  (estimate; the alarm is later)")
    if monitor.alarm_sums is not None and monitor.sums[0] > monitor.alarm_sums[0]:
        lines.append(after_alarm(monitor.alarm_words, monitor.sums, monitor.alarm_sums))
    side = SIDE * monitor.shared_times
    lines.append(f"  best bet    {monitor.leader}  (what has earned most{side})")
    if abs(monitor.log_evidence) < 600 and not monitor.shared_times:
        lines.append(f"  gain        {monitor.gain:.2g} nats a row  (by recalibration, log score)")
    if monitor.impossible:
        lines.append(of_impossible(monitor.impossible, monitor.rounded))
    lines += [ASK_SINCE_WHEN] * (monitor.alarm is not None and not monitor.change)
    return lines
