"""Sizes and power of tests with clusters and subgroups, in designs that others fail in."""

import warnings

import numpy as np
import pytest
from scipy.special import expit

import caltest as ct

#: Data sets of a design, and draws of a test.
RUNS, DRAWS = 200, 199


def copies(rng, m):
    """1000 rows in clusters of m that share prediction and label."""
    p, g = rng.random(1000 // m), np.repeat(np.arange(1000 // m), m)
    return p[g], (rng.random(p.size) < p)[g], g


def comonotone(rng):
    """20 clusters of 5 confident rows, whose labels come from one draw."""
    g = np.repeat(np.arange(20), 5)
    p = rng.random(100) ** (1 / 8)
    return p, rng.random(20)[g] < p, g


def rare(rng):
    """Copies of rare events in 10 clusters of 5."""
    p, g = np.minimum(0.5, rng.exponential(0.02, 10)), np.repeat(np.arange(10), 5)
    return p[g], (rng.random(10) < p)[g], g


def views(rng):
    """50 clusters of 5 that share their label, while predictions differ."""
    y, g = rng.random(50) < 0.5, np.repeat(np.arange(50), 5)
    x = 1.5 * (y[g] - 0.5) + rng.standard_normal(250)
    return expit(1.5 * x), y[g], g


def giant(rng):
    """Copies in 10 clusters, one of which has 30 % of the rows."""
    p, g = rng.random(10), np.repeat(np.arange(10), [36, *(9 * [9])])
    return p[g], (rng.random(10) < p)[g], g


def three(rng):
    """Three classes, 50 clusters of 5, labels from one draw of Gumbel variables."""
    g = np.repeat(np.arange(50), 5)
    probs = rng.dirichlet(np.ones(3), 250)
    return probs, (np.log(probs) + rng.gumbel(size=(50, 3))[g]).argmax(axis=1), g


BINARY = [(ct.ECE(), None), (ct.CalibrationInTheLarge(), None), (ct.Kuiper(), None)]
BINARY += [(ct.DebiasedL2(), None), (ct.CoxScore(), None)]
VECTORS = [(ct.ECE(), ct.TopK(1)), (ct.ECE(ct.VarianceTree(20)), ct.Canonical())]
DESIGNS = [
    *((lambda rng, m=m: copies(rng, m), BINARY[:1], 0.065) for m in (2, 5, 10)),
    *((comonotone, BINARY, 0.07), (rare, BINARY, 0.065), (views, BINARY, 0.07)),
    *((giant, BINARY, 0.07), (three, VECTORS, 0.07)),
]


@pytest.mark.slow
@pytest.mark.parametrize(("design", "pairs", "bound"), DESIGNS)
def test_size_with_clusters(design, pairs, bound):
    rejected = np.zeros(len(pairs))
    for seed in range(RUNS):
        probs, labels, clusters = design(np.random.default_rng([seed, 17]))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            options = {"clusters": clusters, "n_resamples": DRAWS, "rng": seed}
            found = ct.joint_test(probs, labels.astype(int), pairs=pairs, **options)
        rejected += [test.pvalue <= 0.05 for test in found.tests]
    assert rejected.max() / RUNS <= bound + 3 * (0.05 * 0.95 / RUNS) ** 0.5, rejected / RUNS
