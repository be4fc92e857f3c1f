"""Slow twins of the intervals, written from the papers and never from the package's code."""

import math
from collections import defaultdict

import numpy as np


def by_cell(residuals, cells):
    """Residual vectors of every cell, as lists of lists of floats."""
    found = defaultdict(list)
    for r, c in zip(residuals, cells, strict=True):
        found[c].append([float(x) for x in np.atleast_1d(r)])
    return list(found.values())


def largest_gap_bounds(p, first, cells, level=0.95):
    """Clopper–Pearson per cell by bisection of binomial tails; Bonferroni from below only."""

    def tail(k, n, q):  # P(count ≥ k)
        return math.fsum(math.comb(n, j) * q**j * (1 - q) ** (n - j) for j in range(k, n + 1))

    def bisect(function, target):
        low, high = 0.0, 1.0
        for _ in range(60):
            middle = (low + high) / 2
            low, high = (middle, high) if function(middle) < target else (low, middle)
        return low

    alpha, groups = (1 - level) / 2, defaultdict(list)
    for x, y, c in zip(p, first, cells, strict=True):
        groups[c].append((x, y))
    lows, highs = [], []
    for rows in groups.values():
        n, k, mean = len(rows), sum(y for _, y in rows), math.fsum(x for x, _ in rows) / len(rows)

        def ends(a, n=n, k=k):
            low = 0.0 if k == 0 else bisect(lambda q: tail(k, n, q), a)
            return low, (1.0 if k == n else bisect(lambda q: tail(k + 1, n, q), 1 - a))

        low, high = ends(alpha / len(groups))
        lows.append(max(low - mean, mean - high, 0.0))
        low, high = ends(alpha)
        highs.append(max(high - mean, mean - low))
    return max(lows), max(highs)


def textbook_upper(p, first, cells, draws, alpha=0.025):
    """The scale-family upper bound of the root of θ₂ as first proposed: plug-in, floored noise."""
    sums, variances, sizes = [], [], []
    for rows in by_cell(np.column_stack([first - p, p * (1 - p)]), cells):
        r, m = np.array([a for a, _ in rows]), len(rows)
        scatter = m / (m - 1) * ((r - r.mean()) ** 2).sum() if m > 1 else 0.0
        sums.append(r.sum())
        variances.append(max(sum(v for _, v in rows), scatter))
        sizes.append(m)
    s, v, m = map(np.array, (sums, variances, sizes))
    noise = np.random.default_rng(0).standard_normal((draws, s.size)) * np.sqrt(v)
    t = (s**2 / m).sum()
    low, high = 0.0, 50.0
    for _ in range(40):
        k = (low + high) / 2
        above = (((k * s + noise) ** 2 / m).sum(axis=1) >= t).mean()
        low, high = (k, high) if above < 1 - alpha else (low, k)
    return math.sqrt(low**2 * t / len(p))
