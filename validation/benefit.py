"""Utilities: size of the tests, and coverage of intervals and decision curves.

``python -m validation.benefit`` writes ``docs/benefit.md``; ``--quick`` is a small version that
prints. Either fails when calibrated models are rejected, or intervals miss, more often than
promised, by more than chance allows.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, partial

import numpy as np
from scipy.special import expit

import caltest as ct
from validation.pages import largest_rate, opening, table
from validation.study import Study, run

ALPHA, LEVEL = 0.05, 0.95
#: Log-odds at which the prevalence is the share named.
CENTRES = {0.02: -4.9, 0.1: -3.0, 0.3: -1.2}
CURVE = np.arange(1, 51) / 100.0


def dirichlet(rng, n, alpha, digits=None):
    p = rng.dirichlet(alpha, n)
    if digits is not None:
        p = np.round(p, digits)
        p[:, -1] = 1.0 - p[:, :-1].sum(axis=1)
    return p


def beta(rng, n, a, b, digits=None):
    p = rng.beta(a, b, n)
    p = p if digits is None else np.round(p, digits)
    return np.column_stack([1.0 - p, p])


@dataclass(frozen=True)
class Calibrated:
    """A calibrated model and a utility."""

    name: str
    n: int
    draw: Callable[..., np.ndarray]
    utility: Callable[[np.ndarray], np.ndarray]
    clusters: int = 0

    @property
    def key(self):
        return f"{self.name}, n = {self.n}"

    def measure(self, wanted, rng):
        """Return whether calibration is rejected, by the promise and by utility calibration."""
        p = self.draw(rng, self.n)
        y = (rng.random((self.n, 1)) > p.cumsum(axis=1)[:, :-1]).sum(axis=1)
        answers = {}
        if "promise" in wanted:
            found = ct.promise(p, y, self.utility, n_resamples=199, rng=1)
            answers["promise"] = (found.pvalue <= ALPHA,)
        if "utility calibration" in wanted:
            statistic = ct.UtilityCalibration(self.utility)
            found = ct.calibration_test(
                p, y, statistic, lens=ct.Canonical(), n_resamples=199, rng=1
            )
            answers["utility calibration"] = (found.pvalue <= ALPHA,)
        return answers


@dataclass(frozen=True)
class Population:
    """Two models of events of a prevalence; the truth is known from two million rows."""

    prevalence: float
    threshold: float
    n: int

    @property
    def name(self):
        return f"prevalence {self.prevalence:g}, threshold {self.threshold:g}"

    @property
    def key(self):
        return f"{self.name}, n = {self.n}"

    def rows(self, rng, n):
        centre = CENTRES[self.prevalence]
        z = rng.normal(centre, 1.5, n)
        y = (rng.random(n) < expit(z)).astype(int)
        first = expit(z + rng.normal(0.0, 0.3, n))
        second = expit(centre + 0.8 * (z - centre) + rng.normal(0.0, 0.9, n))
        return first, second, y

    @cached_property
    def truth(self):
        """Return the net benefit of the first model, of the difference, and of its curve."""
        first, second, y = self.rows(np.random.default_rng(int(1000 * self.prevalence)), 2_000_000)
        gain = lambda p, t: ((p >= t) * np.where(y == 1, 1.0, -t / (1.0 - t))).mean()  # noqa: E731
        one, other = gain(first, self.threshold), gain(second, self.threshold)
        return one, one - other, np.array([gain(first, t) for t in CURVE])

    def measure(self, wanted, rng):
        """Return whether the interval, that of the difference, and the whole curve cover."""
        first, second, y = self.rows(rng, self.n)
        one, difference, curve = self.truth
        found = ct.decision_curve(first, y, [self.threshold], against=second, level=LEVEL)
        answers = {}
        if "net benefit" in wanted:
            answers["net benefit"] = (bool(found.low[0] <= one <= found.high[0]),)
        if "difference" in wanted:
            low, high = found.difference_low[0], found.difference_high[0]
            answers["difference"] = (bool(low <= difference <= high),)
        if "whole curve" in wanted:
            whole = ct.decision_curve(first, y, CURVE, level=LEVEL)
            inside = (whole.low_all <= curve + 1e-15) & (curve <= whole.high_all + 1e-15)
            answers["whole curve"] = (bool(inside.all()),)
        return answers


THREE = ct.Costs([[0, 4, 9], [3, 0, 2], [1, 1, 1]])
ABSTAIN = ct.Costs([[0, 1], [1, 0], [0.15, 0.15]])
SIZES = [
    Calibrated("costs of three classes", 100, partial(dirichlet, alpha=[1, 1, 1]), THREE),
    Calibrated("costs of three classes", 500, partial(dirichlet, alpha=[0.3, 0.3, 0.3]), THREE),
    Calibrated("costs, tenths", 200, partial(dirichlet, alpha=[2, 2, 2], digits=1), THREE),
    Calibrated("abstention at 0.15", 200, partial(beta, a=1, b=4), ABSTAIN),
    Calibrated("threshold 0.2, rare", 200, partial(beta, a=0.3, b=6), ct.Costs.threshold(0.2)),
    Calibrated("threshold 0.2, rare", 2000, partial(beta, a=0.3, b=6), ct.Costs.threshold(0.2)),
    Calibrated("threshold 0.07, tenths", 100, partial(beta, a=0.5, b=3, digits=1),
               ct.Costs.threshold(0.07)),
    Calibrated("best of 10 classes", 200, partial(dirichlet, alpha=[0.3] * 10), ct.TopKAccuracy(1)),
    Calibrated("best 3 of 10", 200, partial(dirichlet, alpha=[0.3] * 10), ct.TopKAccuracy(3)),
    Calibrated("reciprocal rank of 10", 200, partial(dirichlet, alpha=[1] * 10),
               ct.ReciprocalRank()),
]  # fmt: skip
COVERS = [
    Population(prevalence, threshold, n)
    for prevalence in CENTRES
    for threshold in (0.05, 0.1, 0.2, 0.5)
    for n in (200, 1000)
]
DESIGNS = {design.key: design for design in [*SIZES, *COVERS]}


def tests(design):
    if isinstance(design, Calibrated):
        return dict.fromkeys(("promise", "utility calibration"), 1)
    names = ("net benefit", "difference", *["whole curve"] * (design.threshold == 0.05))
    return dict.fromkeys(names, 1)


def measure(design, wanted, rng):
    return design.measure(wanted, rng)


def page(found):
    """Return the page, and the cells that broke their promise."""
    shown = [DESIGNS[name] for name in found.shown]
    calibrated = [d for d in shown if isinstance(d, Calibrated)]
    populations = [d for d in shown if isinstance(d, Population)]
    claims = 2 * len(calibrated) + 3 * len(populations)
    broken, sizes, covers, rows = [], [], [], []
    for design in calibrated:
        cells = []
        for name in tests(design):
            rate, sets = found.means(design.key, name)[0], found.trials(design.key, name)
            sizes.append(rate)
            broken += [f"{name}, {design.key}: {rate:.3f}"] * (
                rate > largest_rate(ALPHA, sets, claims)
            )
            cells.append(f"{rate:.3f}")
        rows.append([design.name, design.n, found.sets(design.key), *cells])
    lines = ["## Calibrated models", "", "Rejected at level 0.05.", ""]
    lines += table(["utility", "n", "data sets", "`promise`", "`UtilityCalibration`"], rows)
    rows = []
    for design in populations:
        cells = []
        for name in ("net benefit", "difference", "whole curve"):
            if name not in tests(design):
                cells.append("–")
                continue
            rate, sets = found.means(design.key, name)[0], found.trials(design.key, name)
            covers.append(rate)
            broken += [f"{name}, {design.key}: {rate:.3f}"] * (
                1.0 - rate > largest_rate(1.0 - LEVEL, sets, claims)
            )
            cells.append(f"{rate:.3f}")
        rows.append([design.name, design.n, found.sets(design.key), *cells])
    lines += ["", "## Coverage of 95 % intervals", "", COVER_WORDS, ""]
    head = ["population", "n", "data sets", "net benefit", "difference of two models"]
    lines += table([*head, "whole curve of 50 thresholds"], rows)
    words = {"worst": max(sizes), "least": min(covers)}
    return HEADER.format(**words, **opening(found)) + "\n".join([*lines, ""]), broken


COVER_WORDS = """The true net benefit comes from two million observations. The whole curve is the
same for all thresholds of a prevalence, and measured once."""
HEADER = """# Size and coverage of tests and intervals in the user's units

Tests of promised against realised utility reject at most {worst:.3f} of calibrated models at the
5 % level, and 95 % intervals of net benefit cover in at least {least:.3f} of data sets, in the
designs below.

{made}

"""

STUDY = Study("benefit", DESIGNS, tests, measure, page, sets=1000, quick=10)
if __name__ == "__main__":
    run(STUDY)
