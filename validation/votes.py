"""Sizes, coverage and power where items have several outcomes.

``python -m validation.votes`` writes ``docs/votes.md``; ``--quick`` is a small version that prints.
Either fails when a model that is right item by item is rejected too often, or an interval covers
less often than 92 %, by more than chance allows.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass

import numpy as np
from scipy.special import bdtr, ndtr

import caltest as ct
from caltest.data.labels import Votes
from caltest.inference.counts import mean_interval, split
from caltest.statistics.scores import unbiased_errors
from validation.pages import FALSE_ALARM, largest_rate, opening, table
from validation.study import Study, run

ALPHA, LEVEL, LEAST = 0.05, 0.95, 0.92
#: Redrawn sets of votes behind a p-value, and items of the population behind the truth.
B, POPULATION = 99, 200_000


@dataclass(frozen=True)
class Design:
    """Items, their votes, and how their probabilities differ from the predictions."""

    what: str  # "size", "cover", "power" or "majority"
    n: int
    k: int
    votes: tuple[int, int]
    concentration: float = 1.0  # of Dirichlet predictions
    spread: float | None = None  # q ~ Dirichlet(spread · p), p itself where None
    slope: float = 1.0
    rho: float = 0.0  # correlation of the votes of a rater, who judges all items

    @property
    def key(self) -> str:
        low, high = self.votes
        words = [self.what, f"n = {self.n}", f"K = {self.k}",
                 f"m = {low}" if low == high else f"m = {low}–{high}"]  # fmt: skip
        words += [f"Dirichlet({self.concentration:g})"] * (self.concentration != 1.0)
        words += [] if self.spread is None else [f"spread {self.spread:g}"]
        words += [f"slope {self.slope:g}"] * (self.slope != 1.0)
        words += [f"the same raters, correlation {self.rho:g}"] * (self.rho > 0.0)
        return ", ".join(words)


SIZES = [
    Design("size", 20, 2, (2, 2)), Design("size", 50, 2, (2, 5)), Design("size", 100, 3, (2, 2)),
    Design("size", 100, 3, (1, 8), 0.3), Design("size", 300, 10, (2, 10), 0.2),
    Design("size", 30, 10, (5, 5)), Design("size", 50, 2, (2, 2), 0.1),
    Design("size", 200, 2, (2, 30)), Design("size", 100, 5, (3, 3)),
    Design("size", 60, 20, (2, 6), 0.5),
    Design("size", 100, 2, (5, 5), rho=0.2), Design("size", 100, 2, (5, 5), rho=0.5),
]  # fmt: skip
COVERS = [
    Design("cover", 200, 2, (2, 2)), Design("cover", 100, 3, (5, 5)),
    Design("cover", 200, 2, (5, 5), spread=60.0), Design("cover", 150, 3, (3, 3), spread=5.0),
    Design("cover", 100, 10, (10, 10), spread=20.0),
    Design("cover", 200, 3, (1, 8), spread=10.0, slope=0.6),
    Design("cover", 300, 10, (2, 2), spread=10.0, slope=0.7),
    Design("cover", 200, 4, (5, 5), slope=0.6),
]  # fmt: skip
POWERS = [
    Design("power", 600 // m, k, (m, m), spread=s)
    for m in (2, 3, 5, 10, 20) for k in (2, 3, 10) for s in (10.0, 30.0)
]  # fmt: skip
MAJORITY = [
    Design("majority", n, k, (m, m), spread=s)
    for n, k, m in ((100, 3, 2), (150, 3, 5), (60, 2, 10)) for s in (None, 5.0)
]  # fmt: skip
DESIGNS = {design.key: design for design in [*SIZES, *COVERS, *POWERS, *MAJORITY]}
PARTS = ("item by item", "calibration part", "grouping loss")
WAYS = ("majority labels", "votes as rows", "votes as clusters", "IndividualError")


def tests(design):
    names = {"size": ("redraw", "gamma"), "cover": PARTS, "power": ("gamma", "gamma, equal"),
             "majority": WAYS}[design.what]  # fmt: skip
    return dict.fromkeys(names, 1)


def items_of(design, n, rng):
    """Return predictions (in tenths for sizes) and true probabilities of items."""
    probs = rng.dirichlet(np.full(design.k, design.concentration), n)
    if design.what == "size":
        probs = np.round(probs, 1)
        probs[probs.sum(axis=1) == 0.0] = 1.0 / design.k
    probs /= probs.sum(axis=1, keepdims=True)
    q = probs**design.slope if design.slope != 1.0 else probs
    q = q / q.sum(axis=1, keepdims=True)
    if design.spread is not None:
        gamma = rng.gamma(np.maximum(q * design.spread, 1e-3))
        q = gamma / gamma.sum(axis=1, keepdims=True)
    return probs, q


def counts_of(design, q, rng):
    size = rng.integers(design.votes[0], design.votes[1] + 1, len(q))
    if design.rho == 0.0:
        return rng.multinomial(size, q)
    m = design.votes[0]
    strict = np.sqrt(design.rho) * rng.standard_normal(m)
    own = np.sqrt(1.0 - design.rho) * rng.standard_normal((len(q), m))
    events = (ndtr(strict + own) < q[:, 1:]).sum(axis=1)
    return np.column_stack([m - events, events])


def truth_of(design):
    """Return the three errors of the population, with the bins of the sample's size."""
    probs, q = items_of(design, POPULATION, np.random.default_rng(0))
    part, n_bins = 0.0, int(np.clip(design.n // 20, 1, 10))
    for p, away in zip(probs.T, (q - probs).T, strict=True):
        edges = np.unique(np.quantile(p, np.linspace(0.0, 1.0, n_bins + 1)[1:-1]))
        number = np.searchsorted(edges, p, side="right")
        part += np.square(np.bincount(number, away)) @ (1.0 / np.bincount(number)) / POPULATION
    whole = float(np.square(q - probs).sum(axis=1).mean())
    return whole, float(part), whole - float(part)


_TRUTHS: dict[str, tuple[float, float, float]] = {}


def measure(design, wanted, rng):
    probs, q = items_of(design, design.n, rng)
    counts, seed = counts_of(design, q, rng), int(rng.integers(2**63))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        votes = ct.Predictions.of_votes(probs, counts)
        if design.what == "cover":
            return covers(design, Votes.of(votes), wanted)
        return {name: (rejects(name, votes, counts, probs, seed),) for name in wanted}


def rejects(name, votes, counts, probs, seed):
    run = {"n_resamples": B, "rng": seed}
    if name in ("gamma", "gamma, equal"):
        weights = "items" if "equal" in name else "votes"
        statistic = ct.IndividualError(weights)
        return ct.calibration_test(votes, None, statistic, null="asymptotic").pvalue <= ALPHA
    if name in ("redraw", "IndividualError"):
        return ct.calibration_test(votes, None, ct.IndividualError(), **run).pvalue <= ALPHA
    score, lens = ct.SKCE(), ct.Canonical()
    if name == "majority labels":
        tied = counts + np.random.default_rng(seed).random(counts.shape)
        most, run["as_is"] = tied.argmax(axis=1), True  # which is asked about: as good as predicted
        return ct.calibration_test(probs, most, score, lens=lens, **run).pvalue <= ALPHA
    if name == "votes as rows":
        rows = votes.probs, votes.labels
        return ct.calibration_test(*rows, score, lens=lens, **run).pvalue <= ALPHA
    score = ct.ECE(ct.VarianceTree(20))  # SKCE takes no dependence within clusters
    return ct.calibration_test(votes, None, score, lens=lens, **run).pvalue <= ALPHA


def covers(design, votes, wanted):
    if design.key not in _TRUTHS:
        _TRUTHS[design.key] = truth_of(design)
    several = votes.size >= 2
    errors = unbiased_errors(votes.probs, votes.counts)[several]
    n_bins = int(np.clip(design.n // 20, 1, 10))
    found = (mean_interval(errors, np.ones(errors.size), None, LEVEL), *split(votes, n_bins, LEVEL))
    answers = {}
    for name, truth, (middle, low, high) in zip(PARTS, _TRUTHS[design.key], found, strict=True):
        covered = max(0.0, low) <= truth <= max(0.0, high) + 1e-15
        if name in wanted:
            answers[name] = (covered, middle, truth)
    return answers


def page(found):
    """Return the page, and the cells that broke their promise."""
    shown, broken, claims = set(found.shown), [], 2 * len(SIZES) + 3 * len(COVERS)
    rows = []
    for design in (d for d in SIZES if d.key in shown):
        cells = []
        for name in ("redraw", "gamma"):
            rate = found.means(design.key, name)[0]
            most = largest_rate(ALPHA, found.trials(design.key, name), claims)
            broken += [f"{name}, {design.key}: {rate:.3f}"] * (rate > most and design.rho == 0.0)
            cells.append(f"{rate:.3f}")
        rows.append([design.key.removeprefix("size, "), found.sets(design.key), *cells])
    lines = ["## Sizes at 5 %", "", SIZE, ""]
    lines += table(["items and votes", "data sets", "redrawn votes", "gamma"], rows)
    rows = []
    for design in (d for d in COVERS if d.key in shown):
        cells = []
        for name in PARTS:
            rate, middle, truth = found.means(design.key, name)
            sets = found.trials(design.key, name)
            if bdtr(round(rate * sets), sets, LEAST) < FALSE_ALARM / claims:
                broken.append(f"{name}, {design.key}: {rate:.3f}")
            cells += [f"{truth:.4f}", f"{middle:.4f}", f"{rate:.3f}"]
        rows.append([design.key.removeprefix("cover, "), found.sets(design.key), *cells])
    head = ["items and votes", "data sets"]
    for name in PARTS:
        head += [name, "mean estimate", "covered"]
    lines += ["", "## Coverage of 95 % intervals", "", COVER, "", *table(head, rows)]
    rows = [
        [d.k, d.votes[0], d.n, f"{d.spread:g}", f"{found.means(d.key, 'gamma')[0]:.2f}"]
        for d in sorted(POWERS, key=lambda d: (d.k, d.spread, d.votes)) if d.key in shown
    ]  # fmt: skip
    lines += ["", "## Power of 600 votes", "", POWER, ""]
    lines += table(["K", "votes an item", "items", "spread s", "rejected"], rows)
    rows = [
        [d.key.removeprefix("majority, ").partition(", spread")[0],
         "right item by item" if d.spread is None else "right on average only",
         *("–" if (rate := found.means(d.key, name)) is None else f"{rate[0]:.3f}"
           for name in WAYS)]
        for d in MAJORITY if d.key in shown
    ]  # fmt: skip
    lines += ["", "## Other ways to use votes", "", OTHER, ""]
    lines += [*table(["items and votes", "model", *WAYS], rows, left=2), ""]
    return HEADER.format(b=B, **opening(found)) + "\n".join(lines), broken


SIZE = """Shares of data sets that are rejected although every item is right. Predictions are
rounded to tenths, with exact 0 and 1. In the last two rows the same five raters judge all items:
votes of a rater are correlated, which the test does not allow for."""
COVER = """True error, mean of its estimates, and share of intervals that hold it. Items have q ~
Dirichlet(s p) with the spread s (smaller is further from right), and p is too extreme where a slope
is given. Where the truth is 0 the lower end is cut off at 0, and the interval covers more often."""
POWER = """Share of data sets in which individual error is found, with 600 votes dealt to fewer or
more items: many votes on few items find it."""
OTHER = """Majority labels and votes as rows are tested by `SKCE`, votes as clusters by `ECE`.
Majority labels reject models that are right item by item; averages do not see models that are right
on average only."""
HEADER = """# Individual-level calibration: size, coverage and power

How `IndividualError` and `individual_error` do where items have several outcomes. What they are:
{{doc}}`concepts/votes`. Redrawn votes: {b} sets a p-value.

{made}

"""

STUDY = Study("votes", DESIGNS, tests, measure, page, sets=1000, quick=10, slow=WAYS[:3])
if __name__ == "__main__":
    run(STUDY)
