"""Slow twins of the kernel errors, from the papers: double loops and plain sums."""

import itertools
import math

import numpy as np

import caltest as ct
from twins import Row, event

KERNELS = {
    "laplace": lambda p, q, nu: math.exp(-math.sqrt(sum((p - q) ** 2)) / nu),
    "gauss": lambda p, q, nu: math.exp(-sum((p - q) ** 2) / (2 * nu**2)),
    "tv": lambda p, q, nu: math.exp(-0.5 * sum(abs(p - q)) / nu),
}


def h(probs, labels, i, j, k):
    """(e_y − p)ᵀ k(p, p') (e_y' − p'), Widmann et al. 2019."""
    left, right = -probs[i], -probs[j]
    left[labels[i]] += 1
    right[labels[j]] += 1
    return k(probs[i], probs[j]) * float(left @ right)


def skce(probs, labels, k, estimator="unbiased", m=None):
    probs, n = np.array(probs, float), len(probs)
    if estimator == "biased":
        return sum(h(probs, labels, i, j, k) for i in range(n) for j in range(n)) / n**2
    m = {"unbiased": n, "linear": 2}.get(estimator, m)
    blocks = [
        np.mean([h(probs, labels, i, j, k) for i, j in itertools.combinations(range(a, a + m), 2)])
        for a in range(0, n - m + 1, m)
    ]
    return float(np.mean(blocks))


def arcones_gine(probs, labels, k, draws, rng):
    """The test of CalibrationTests.jl: its statistic and its bootstrap replicates."""
    n = len(probs)
    H = np.array([[h(probs, labels, i, j, k) for j in range(n)] for i in range(n)])
    unbiased = (H.sum() - np.trace(H)) / (n * (n - 1))
    observed = n / (n - 1) * unbiased - H.mean()
    replicates = []
    for _ in range(draws):
        C = np.bincount(rng.integers(n, size=n), minlength=n)
        replicates.append((C @ H @ C - C @ np.diag(H)) / (n * (n - 1)) - 2 * C @ H.sum(1) / n**2)
    return observed, np.array(replicates)


def median_distance(probs, distance, diagonal):
    n = len(probs)
    measure = {
        "tv": lambda p, q: 0.5 * sum(abs(p - q)),
        "l2": lambda p, q: math.sqrt(sum((p - q) ** 2)),
    }[distance]
    table = [[measure(p, q) for q in probs] for p in probs]
    pairs = [table[i][j] for i in range(n) for j in range(i)]
    every = [value for line in table for value in line] if diagonal else pairs
    return (np.median(every) if every else 0) or (np.mean(pairs) if pairs else 0) or 1.0


def mmce(p, hits, nu=0.4):
    """Kumar et al. 2018."""
    pairs = itertools.product(range(len(p)), repeat=2)
    k = lambda i, j: math.exp(-abs(p[i] - p[j]) / nu)  # noqa: E731
    total = sum((hits[i] - p[i]) * (hits[j] - p[j]) * k(i, j) for i, j in pairs) / len(p) ** 2
    return math.sqrt(max(0.0, total))


ROWS = [Row(ct.MMCE(), two_classes=True, tally=1e-4, twin=event(mmce))]
