"""How often tests of whole vectors from tallies reject calibrated models.

``python -m validation.vectors`` prints the table of ``docs/concepts/tallies.md``; some four minutes
of one core. It fails where calibrated models are rejected more often than chance allows. Labels are
drawn row by row; the null of each set of predictions is drawn from its leaves once.
"""

from __future__ import annotations

import warnings
from dataclasses import replace

import numpy as np
from scipy.stats import binom

import caltest as ct
from caltest.tally import tallied

#: Sets of predictions of a kind, label vectors of each, and draws behind a p-value.
SETS, LABELS, B = 5, 60, 499


def dirichlet(concentration):
    """Return predictions from a Dirichlet law."""
    return lambda n, k, rng: rng.dirichlet(np.full(k, concentration), n)


def network(n, k, rng):
    """Return predictions of which most are nearly sure of a class."""
    z = 1.5 * rng.normal(size=(n, k))
    z[np.arange(n), rng.integers(k, size=n)] += 1.5 * rng.gamma(2.0, 4.0, n)
    z = np.exp(z - z.max(axis=1, keepdims=True))
    return z / z.sum(axis=1, keepdims=True)


def rare(n, k, rng):
    """Return predictions of one common class, others with a label or so in a cell."""
    others = rng.dirichlet(np.ones(k - 1), n) * rng.beta(0.3, 30.0, (n, 1))
    return np.column_stack([1.0 - others.sum(axis=1), others])


KINDS = (
    ("Dirichlet(1)", dirichlet(1.0), 3, 300, None),
    ("Dirichlet(1)", dirichlet(1.0), 10, 3000, None),
    ("Dirichlet(1)", dirichlet(1.0), 10, 3000, 64),
    ("Dirichlet(0.1)", dirichlet(0.1), 3, 3000, None),
    ("Dirichlet(0.1)", dirichlet(0.1), 10, 3000, None),
    ("Dirichlet(0.1)", dirichlet(0.1), 50, 3000, None),
    ("network", network, 3, 300, None),
    ("network", network, 10, 3000, None),
    ("network", network, 50, 3000, None),
    ("rare classes", rare, 3, 3000, None),
    ("rare classes", rare, 10, 3000, None),
    ("network", network, 10, 100_000, None),
)


def statistics(n):
    """Return what is tested."""
    cells = ct.VarianceTree(max(20, n // 50))
    return (
        ct.ECE(cells), ct.DebiasedL2(cells), ct.SKCE(features=128), ct.ScoreGap("log"),
        ct.ScoreGap(),
    )  # fmt: skip


def drawn(probs, rng):
    """Draw a label for every row."""
    edges = probs.cumsum(axis=1)
    edges[:, -1] = 1.0
    return (rng.random(len(probs))[:, None] > edges).sum(axis=1)


def rejections(make, k, n, leaves, seed):
    """Return how often each statistic rejects, among the label vectors of one set."""
    rng = np.random.default_rng([seed, k, n])
    probs = make(n, k, rng)
    data = ct.Predictions.of(probs / probs.sum(axis=1, keepdims=True), drawn(probs, rng))
    tree, wanted = ct.SimplexTree.fit(data.probs, leaves), statistics(n)
    first = ct.VectorTally.of(data, cells=tree).problem()
    prepared = [tallied(s, first) for s in wanted]

    def together(labels):
        return np.column_stack([x.batch(labels) for x in prepared])

    null = first.drawn(together).replicates((seed, 1), 0, B)
    found = np.zeros(len(wanted))
    signed = np.array([x.two_sided for x in prepared])
    for _ in range(LABELS):
        labels = replace(data, labels=drawn(data.probs, rng))
        leaf = ct.VectorTally.of(labels, cells=tree).problem()
        values = np.array([tallied(s, leaf).observed for s in wanted])
        evidence = [np.where(signed, np.abs(v), v) for v in (null, values)]
        reaching = (evidence[0] >= evidence[1] - 1e-9 * np.abs(evidence[1])).sum(axis=0)
        found += (1 + reaching) / (1 + B) <= 0.05
    return found


def size():
    """Print how often tests reject at 5 %."""
    trials = SETS * LABELS
    limit = int(binom.isf(1e-3 / (5 * len(KINDS)), trials, 0.05))
    names = ("`ECE`", "`DebiasedL2`", "`SKCE`", "`ScoreGap('log')`", "`ScoreGap()`")
    print(f"| of {trials} data sets | K | n | leaves | {' | '.join(names)} |")
    print("|---|--:|--:|--:|" + "--:|" * len(names))
    for name, make, k, n, leaves in KINDS:
        found = sum(rejections(make, k, n, leaves, seed) for seed in range(SETS))
        assert (found <= limit).all(), (name, k, n, found)
        rates = " | ".join(f"{count / trials:.3f}" for count in found)
        print(f"| {name} | {k} | {n} | {leaves or min(n, 1024)} | {rates} |", flush=True)


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    size()
