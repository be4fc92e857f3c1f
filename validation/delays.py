"""Monitors whose outcomes become known late, and when is known depends on what.

``python -m validation.delays`` writes ``docs/delays.md``; ``--quick`` is a small version that
prints. Either fails when a monitor that takes rows in their order rings falsely more often than
promised, by more than chance allows.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import expit, logit

import caltest as ct
from validation.pages import largest_rate, opening, table
from validation.study import Study, run

ALPHA, ROWS = 0.05, 1000
#: How outcomes become known: after how many rows events and other outcomes are, on average.
DELAYS = {
    "events after 10 rows, others after 60": (10, 60),
    "others after 10 rows, events after 60": (60, 10),
    "all after 30 rows": (30, 30),
    "events after 300 rows, others after 10": (300, 10),
}
#: How rows are given to the monitor, and whether a level is promised.
WAYS = {
    "in order, the rest waits": True,
    "as outcomes arrive": False,
    "every 50 rows, those known": False,
}


@dataclass(frozen=True)
class Design:
    """1000 forecasts of a slope, and how late their outcomes are known."""

    delay: str
    slope: float = 1.0

    @property
    def key(self) -> str:
        return self.delay + f", slope {self.slope:g}" * (self.slope != 1.0)

    def __call__(self, rng):
        """Return forecasts, outcomes, and the row at which each outcome is known."""
        p = rng.beta(1.0, 3.0, ROWS)
        y = (rng.random(ROWS) < expit(self.slope * logit(p))).astype(int)
        late = np.where(y == 1, *DELAYS[self.delay])
        fixed = self.delay.startswith("events after 10")
        wait = np.where((y == 0) & fixed, late, np.ceil(late * rng.exponential(size=ROWS)))
        return p, y, np.arange(ROWS) + wait


CALIBRATED = [Design(delay) for delay in DELAYS]
WRONG = [Design(delay, 0.5) for delay in DELAYS]
DATA = {design.key: design for design in [*CALIBRATED, *WRONG]}


def tests(design):
    return {way: ROWS for way in WAYS if design.slope == 1.0 or WAYS[way]}


def measure(design, wanted, rng):
    """Return whether a monitor of this way ever rings."""
    p, y, known = design(rng)
    orders = {
        "in order, the rest waits": np.flatnonzero(np.maximum.accumulate(known) <= ROWS),
        "as outcomes arrive": np.argsort(known, kind="stable"),
        "every 50 rows, those known": np.lexsort((np.arange(ROWS), np.ceil(known / 50))),
    }
    answers = {}
    for way in wanted:
        rows = orders[way][known[orders[way]] <= ROWS]
        monitor = ct.Monitor(alpha=ALPHA)
        monitor = monitor.update(p[rows], y[rows]) if rows.size else monitor
        answers[way] = (monitor.alarm is not None, rows.size)
    return answers


def page(found):
    """Return the page, and the cells that broke their promise."""
    broken, rows = [], []
    for name in found.shown:
        cells = []
        for way, promised in WAYS.items():
            means = found.means(name, way)
            cells.append("" if means is None else f"{means[0]:.3f} ({means[1]:.0f})")
            if means is None or not promised or DATA[name].slope != 1.0:
                continue
            if means[0] > largest_rate(ALPHA, found.trials(name, way), len(CALIBRATED)):
                broken.append(f"{name}, {way}: {means[0]:.3f}")
        rows.append([name, found.sets(name), *cells])
    text = HEADER.format(rows=ROWS, **opening(found))
    return text + "\n".join([*table(["outcomes known", "data sets", *WAYS], rows), ""]), broken


HEADER = """# Monitors whose outcomes come late, measured

How often does `Monitor(alpha=0.05)` ring in {rows} rows of calibrated forecasts, and of forecasts
of slope 0.5? Delays are exponential; where others are known after 60 rows and events after 10, the
60 rows are a fixed period in which nothing has happened. Rows that are taken in the order of the
forecasts, up to the first one whose outcome is not known, keep the promise of 0.05 whatever the
delays depend on. Rows that are scored as their outcomes arrive do not: early arrivals are a biased
sample. The command `caltest monitor` takes rows in order. Why: {{doc}}`concepts/monitoring`.

{made}

"""
STUDY = Study("delays", DATA, tests, measure, page, sets=500, quick=20)
if __name__ == "__main__":
    run(STUDY)
