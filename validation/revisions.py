"""Revisions of forecasts: false alarms, power, and coverage of the effect.

``python -m validation.revisions`` writes ``docs/revisions.md``; ``--quick`` is a small version that
prints. Either fails when calibrated forecasters raise more false alarms than promised, by more than
chance allows.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import expit, logit, ndtr

import caltest as ct
from validation.pages import largest_rate, opening, table
from validation.study import Study, run

ALPHA, LEVEL = 0.05, 0.95


def gaussian(rng, questions, length, *, drift=0.0, groups=0, shared=0.0):
    """Return probabilities (Q, T) that a Brownian path ends above 0, and whether it does.

    Questions are in ``groups`` whose increments share a part ``shared`` of their variance.
    """
    start = rng.normal(0.0, 0.7, (questions, 1))
    steps = rng.standard_normal((questions, length))
    if groups:
        common = np.repeat(rng.standard_normal((groups, length)), questions // groups, axis=0)
        steps = np.sqrt(shared) * common + np.sqrt(1.0 - shared) * steps
    walk = np.cumsum(steps / np.sqrt(length) + drift / length, axis=1)
    before = np.hstack([np.zeros((questions, 1)), walk[:, :-1]])
    p = ndtr((start + before) / np.sqrt(1.0 - np.arange(length) / length))
    return p, (start[:, 0] + walk[:, -1] > 0.0).astype(float)


def hazard(rng, questions, length):
    """Return forecasts of an event at a uniform time or never: they creep down or jump to 1."""
    start = rng.uniform(0.1, 0.6, questions)
    yes = rng.random(questions) < start
    at = np.where(yes, rng.random(questions), 2.0)
    t = np.arange(length) / length
    alive = start[:, None] * (1.0 - t) / (1.0 - start[:, None] * t)
    return np.where(at[:, None] <= t, 1.0, alive), yes.astype(float)


def sticky(rng, questions, length):
    """Return Gaussian forecasts of which 80 % are copies of the one before."""
    p, y = gaussian(rng, questions, length)
    kept = rng.random(p.shape) < 0.2
    kept[:, 0] = True
    last = np.maximum.accumulate(np.where(kept, np.arange(length), 0), axis=1)
    return np.take_along_axis(p, last, axis=1), y


def lattice(rng, questions, length):
    """Return random walks on tenths, absorbed at 0 and 1."""
    p, path = rng.integers(2, 9, questions), []
    for _ in range(length):
        path.append(p)
        p = np.where((p == 0) | (p == 10), p, p + rng.integers(0, 2, questions) * 2 - 1)
    path = np.stack(path, axis=1) / 10.0
    return path, (rng.random(questions) < path[:, -1]).astype(float)


def rare(rng, questions, length):
    """Return Gaussian forecasts of events that happen in about 2 % of questions."""
    walk = np.cumsum(rng.standard_normal((questions, length)) / np.sqrt(length), axis=1)
    before = np.hstack([np.zeros((questions, 1)), walk[:, :-1]])
    p = ndtr((before - 2.1) / np.sqrt(1.0 - np.arange(length) / length))
    return p, (walk[:, -1] > 2.1).astype(float)


def pulled(p, pull):
    """Return forecasts each of which goes ``pull`` of the way to where it should be."""
    out = p.copy()
    for t in range(1, p.shape[1]):
        out[:, t] = np.clip(out[:, t - 1] + pull * (p[:, t] - out[:, t - 1]), 0.001, 0.999)
    return out


@dataclass(frozen=True)
class Design:
    """Forecasters of Q questions with T forecasts each; ``pull`` is 1 where calibrated."""

    name: str
    questions: int
    length: int
    calibrated: bool = True
    pull: float = 1.0
    slope: float = 1.0
    noise: float = 0.0
    drift: float = 0.0
    grid: float = 0.0
    groups: int = 0

    @property
    def key(self):
        return f"{self.name}, Q = {self.questions}, T = {self.length}"

    def __call__(self, rng):
        """Return a data set: forecasts, outcomes, and the group of each question."""
        size = self.questions, self.length
        if self.name in NULLS:
            p, y = NULLS[self.name](rng, *size)
        else:
            shared = 0.5 if self.groups else 0.0
            p, y = gaussian(rng, *size, drift=self.drift, groups=self.groups, shared=shared)
        p = pulled(p, self.pull) if self.pull != 1.0 else p
        if self.slope != 1.0 or self.noise:
            odds = np.clip(logit(np.clip(p, 1e-9, 1 - 1e-9)), -9, 9)
            p = expit(self.slope * odds + self.noise * rng.standard_normal(p.shape))
        p = np.round(p / self.grid) * self.grid if self.grid else p
        groups = np.arange(self.questions) // max(1, self.questions // max(self.groups, 1))
        return p, y, groups if self.groups else None


NULLS = {
    "hazard": hazard,
    "copies": sticky,
    "lattice": lattice,
    "rare": rare,
    "rare in percent": rare,
}
OF_NULL = [
    Design("Gaussian", 1, 30),
    Design("Gaussian", 20, 10),
    Design("Gaussian", 20, 100),
    Design("Gaussian", 200, 30),
    Design("hazard", 20, 30),
    Design("hazard", 200, 100),
    Design("copies", 20, 30),
    Design("copies", 200, 30),
    Design("lattice", 20, 30),
    Design("lattice", 200, 30),
    Design("percent", 20, 30, grid=0.01),
    Design("percent", 200, 30, grid=0.01),
    Design("percent", 500, 100, grid=0.01),
    Design("multiples of 0.025", 200, 100, grid=0.025),
    Design("multiples of 0.05", 100, 30, grid=0.05),
    Design("rare", 500, 60),
    Design("rare in percent", 500, 60, grid=0.01),
    Design("20 groups with shared news", 200, 10, groups=20),
    Design("20 groups with shared news", 200, 30, groups=20),
]
OTHERS = [
    Design("half of the way", 20, 10, calibrated=False, pull=0.5),
    Design("half of the way", 20, 30, calibrated=False, pull=0.5),
    Design("half of the way", 200, 10, calibrated=False, pull=0.5),
    Design("half of the way, percent", 20, 30, calibrated=False, pull=0.5, grid=0.01),
    Design("half of the way, percent", 100, 30, calibrated=False, pull=0.5, grid=0.01),
    Design("half of the way, multiples of 0.05", 200, 30, calibrated=False, pull=0.5, grid=0.05),
    Design("half of the way, 20 groups", 200, 30, calibrated=False, pull=0.5, groups=20),
    Design("three quarters", 20, 30, calibrated=False, pull=0.75),
    Design("one and a half times", 1, 30, calibrated=False, pull=1.5),
    Design("one and a half times", 20, 10, calibrated=False, pull=1.5),
    Design("noise of 0.3 logits", 20, 30, calibrated=False, noise=0.3),
    Design("optimistic", 200, 10, calibrated=False, drift=-0.5),
    Design("too cautious, slope 0.7", 200, 30, calibrated=False, slope=0.7),
    Design("too extreme, slope 1.4", 200, 30, calibrated=False, slope=1.4),
]
DESIGNS = {design.key: design for design in [*OF_NULL, *OTHERS]}


def tests(design):
    return dict.fromkeys(("forecasts", "with outcomes"), 1)


def measure(design, wanted, rng):
    """Return alarm, alarm of the excess movement, estimability, and coverage of the effect."""
    p, y, groups = design(rng)
    count, length = p.shape
    ids, times = np.repeat(np.arange(count), length), np.tile(np.arange(length), count)
    marks = None if groups is None else np.repeat(groups, length)
    least = 0.0 if design.name == "lattice" else "auto"  # tenths that were not rounded
    answers = {}
    for name in wanted:
        outcomes = np.repeat(y, length) if name == "with outcomes" else None
        test = ct.Revisions(ids, times, p.ravel(), outcomes, groups=marks, least=least).test(
            alpha=ALPHA, level=LEVEL
        )
        moved = test.movement_log_evidence >= -np.log(ALPHA)
        known = test.effect_low == test.effect_low
        covers = known and test.effect_low <= design.pull <= test.effect_high
        answers[name] = test.alarm, moved, known, covers
    return answers


def page(found):
    """Return the page, and the cells that broke their promise."""
    shown = [DESIGNS[name] for name in found.shown]
    null = [d for d in shown if d.calibrated]
    broken, sizes, rows = [], [], []
    for design in null:
        cells = []
        for name in tests(design):
            alarm, moved, known, covers = found.means(design.key, name)
            sets = found.trials(design.key, name)
            sizes.append(alarm)
            above = max(alarm, moved) > largest_rate(ALPHA, sets, 2 * len(null))
            broken += [f"{name}, {design.key}: {alarm:.3f}, {moved:.3f}"] * above
            cells += [f"{alarm:.3f}", f"{moved:.3f}"]
            if name == "forecasts":
                cover = f"{covers / known:.3f}" if known > 0.5 else "–"
        rows.append([design.name, design.questions, design.length, found.sets(design.key), *cells])
        rows[-1].append(cover)
    head = ["forecasts", "questions", "each", "data sets"]
    of_two = ["alarm", "movement", "alarm with outcomes", "movement with outcomes"]
    lines = ["## Calibrated forecasters", "", NULL_WORDS, ""]
    lines += table([*head, *of_two, "effect covered"], rows)
    rows = []
    for design in shown:
        if design.calibrated:
            continue
        cells = []
        for name in tests(design):
            alarm, moved, known, covers = found.means(design.key, name)
            cells += [f"{alarm:.3f}", f"{moved:.3f}"]
            if name == "forecasts":
                kept = design.pull != 1.0 and known > 0.5
                cover = f"{covers / known:.3f}" if kept else "–"
        rows.append([design.name, design.questions, design.length, found.sets(design.key), *cells])
        rows[-1].append(cover)
    lines += ["", "## Power", "", POWER_WORDS, "", *table([*head, *of_two, "effect covered"], rows)]
    words = {"worst": max(sizes), "mean": sum(sizes) / len(sizes)}
    return HEADER.format(**words, **opening(found)) + "\n".join([*lines, ""]), broken


NULL_WORDS = """"Alarm" is the share of data sets in which the e-value ever reached 20; at most 0.05
is promised. "Movement" is the same for the e-value of excess movement at the end. "Effect covered"
is how often the 95 % interval of the effect contains 1."""
POWER_WORDS = """Alarms at level 0.05, and how often the interval of the effect contains the true
one. Forecasts beyond 0.001 and 0.999 are cut off there, so the true effect of "one and a half
times" is a little smaller than 1.5."""
HEADER = """# False alarms of the test of revisions

`Revisions` raises a false alarm in {mean:.3f} of calibrated data sets on average over the designs
below and in {worst:.3f} in the worst one; 0.05 is promised, whenever one looks. Forecasts are those
of a Brownian path that ends above 0 (Gaussian), an event at a random time (hazard: forecasts creep
down and jump to 1), Gaussian forecasts of which 80 % are copies, a walk on tenths (lattice),
Gaussian forecasts rounded to percents or multiples of 0.025 and 0.05, and those of events that
happen in 2 % of questions (rare). What is done about rounding: {{doc}}`concepts/revisions`.

{made}

"""

STUDY = Study("revisions", DESIGNS, tests, measure, page, sets=1000, quick=10)
if __name__ == "__main__":
    run(STUDY)
