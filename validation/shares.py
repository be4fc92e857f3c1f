"""Sizes of tests on average where shares of votes vary around the predictions.

``python -m validation.shares`` writes ``docs/shares.md``; ``--quick`` is a small version that
prints. Either fails when a model that is right on average is rejected too often.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass

import numpy as np

import caltest as ct
from validation.pages import largest_rate, opening, table
from validation.study import Study, run

ALPHA, B = 0.05, 99
TESTS = {
    "TopK(1)": (ct.ECE(), ct.TopK(1)),
    "TopK(1) without bins": (ct.MultiScale(), ct.TopK(1)),
    "OneVsRest(1)": (ct.ECE(), ct.OneVsRest(1)),
    "Canonical()": (ct.ECE(ct.VarianceTree(20), distance="tv"), ct.Canonical()),
}


@dataclass(frozen=True)
class Design:
    """Items with Dirichlet(1) predictions, and votes from Dirichlet(spread · p) for each."""

    k: int
    votes: int
    spread: float
    items: int = 100
    slope: float = 1.0

    @property
    def key(self) -> str:
        words = f"K = {self.k}, {self.items} items of {self.votes}, spread {self.spread:g}"
        return words + f", slope {self.slope:g}" * (self.slope != 1.0)


RIGHT = [
    Design(k, m, s) for k in (2, 3) for m in (5, 20, 100, 1000) for s in (5.0, 60.0, 600.0)
]  # fmt: skip
RIGHT += [Design(k, 100, 60.0, items) for k in (2, 3) for items in (20, 400)]
WRONG = [Design(k, m, 60.0, slope=0.6) for k in (2, 3) for m in (5, 100)]
DESIGNS = {design.key: design for design in [*RIGHT, *WRONG]}


def tests(design):
    return dict.fromkeys(tuple(TESTS)[: design.k + 1], 1)


def measure(design, wanted, rng):
    probs = rng.dirichlet(np.ones(design.k), design.items)
    mean = probs**design.slope
    mean /= mean.sum(axis=1, keepdims=True)
    gamma = rng.gamma(np.maximum(design.spread * mean, 1e-3))
    counts = rng.multinomial(design.votes, gamma / gamma.sum(axis=1, keepdims=True))
    run, found = {"n_resamples": B, "rng": int(rng.integers(2**63))}, {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        votes = ct.Predictions.of_votes(probs, counts)
        for name in wanted:
            statistic, lens = TESTS[name]
            test = ct.calibration_test(votes, None, statistic, lens=lens, **run)
            found[name] = (test.pvalue <= ALPHA,)
    return found


def page(found):
    """Return the page, and the cells that broke their promise."""
    rows, broken, claims = [], [], sum(len(tests(design)) for design in RIGHT)
    for design in (d for d in DESIGNS.values() if d.key in set(found.shown)):
        cells = []
        for name in TESTS:
            if name not in tests(design):
                cells.append("–")
                continue
            rate = found.means(design.key, name)[0]
            most = largest_rate(ALPHA, found.trials(design.key, name), claims)
            broken += [f"{name}, {design.key}: {rate:.3f}"] * (rate > most and design.slope == 1.0)
            cells.append(f"{rate:.3f}")
        model = "right on average" if design.slope == 1.0 else f"slope {design.slope:g}"
        named = [design.k, design.items, design.votes, f"{design.spread:g}", model]
        rows.append([*named, found.sets(design.key), *cells])
    head = ["K", "items", "votes", "spread s", "model", "data sets", *TESTS]
    return HEADER.format(b=B, **opening(found)) + "\n".join([*table(head, rows), ""]), broken


HEADER = """# Shares of votes: size and power of tests on average

Districts and their vote shares, or texts and their annotators: shares vary around the predictions
by more than the number of votes explains. In these data sets the votes of an item are
Dirichlet-multinomial, with the spread s (λ = 1 / (s + 1) is the chance that two votes of an item
are one): no item is right, but E[share | prediction] is the prediction. Tests on average estimate λ
and allow for it ({{class}}`~caltest.SharedRedraws`). The last rows, with predictions that are too
extreme, show what is left of the power. {b} sets of redrawn votes a p-value, level 0.05. What the
tests ask: {{doc}}`concepts/votes`.

{made}

"""

STUDY = Study("shares", DESIGNS, tests, measure, page, sets=300, quick=5)
if __name__ == "__main__":
    run(STUDY)
