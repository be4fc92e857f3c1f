"""Slow twins of the intervals, written from the papers and never from the package's code."""

from __future__ import annotations

import math
from collections import defaultdict
from statistics import NormalDist

import numpy as np
from reference import debiased

QUANTILE = NormalDist().inv_cdf


def by_cell(residuals, cells):
    """Residual vectors of every cell, as lists of lists of floats."""
    found = defaultdict(list)
    for r, c in zip(residuals, cells, strict=True):
        found[c].append([float(x) for x in np.atleast_1d(r)])
    return list(found.values())


def dot(a, b):
    return math.fsum(x * y for x, y in zip(a, b, strict=True))


def mean_of(rows):
    return [math.fsum(column) / len(rows) for column in zip(*rows, strict=True)]


def sun_interval(probs, residuals, cells, level=0.95):
    """Sun, Chaudhari, Barnett, Dobriban (2024): (low, high, whether 0 belongs)."""
    n, k = residuals.shape
    t = debiased(residuals, cells)
    first = second = 0.0
    for rows in by_cell(residuals, cells):
        mean, m = mean_of(rows), len(rows)
        outer = [[math.fsum(r[a] * r[b] for r in rows) / m for b in range(k)] for a in range(k)]
        squared = dot(mean, mean)
        form = math.fsum(mean[a] * outer[a][b] * mean[b] for a in range(k) for b in range(k))
        first += m / n * (4.0 * form - 3.0 * squared**2)
        second += m / n * squared
    s = math.sqrt(max(first - second**2, 0.0) / n)
    variance = 0.0
    for rows in by_cell(probs, cells):
        if len(rows) > 1:
            covariances = [np.diag(p) - np.outer(p, p) for p in np.array(rows)]
            total = sum(
                float((a * b).sum())
                for i, a in enumerate(covariances)
                for j, b in enumerate(covariances)
                if i != j
            )
            variance += 2.0 * total / (len(rows) - 1) ** 2 / n**2
    z2, z1, plus = QUANTILE(0.5 + level / 2), QUANTILE(level), max(t, 0.0)
    if plus >= 2 * z2 * s:
        low = plus - z2 * s
    elif plus >= 2 * z1 * s:
        low = plus / 2
    else:
        low = max(plus - z1 * s, 0.0)
    zero = plus < z1 * math.sqrt(variance)
    return (0.0 if zero else low), plus + z2 * s, zero


def influence_error(residuals, cells):
    """sd of f_i = 2 D_b·r_i − |D_b|², over √n."""
    means = {}
    for c in set(cells):
        means[c] = mean_of([list(r) for r, d in zip(residuals, cells, strict=True) if d == c])
    f = [
        2 * dot(means[c], r) - dot(means[c], means[c])
        for r, c in zip(residuals, cells, strict=True)
    ]
    return float(np.std(f, ddof=1)) / math.sqrt(len(f))


def cluster_influence_error(residuals, cells, groups):
    """The same with clusters as units: √(G/(G−1) Σ_g (Σ_{i in g} (f_i − f̄))²) / n."""
    means = {}
    for c in set(cells):
        means[c] = mean_of([list(r) for r, d in zip(residuals, cells, strict=True) if d == c])
    f = np.array(
        [
            2 * dot(means[c], r) - dot(means[c], means[c])
            for r, c in zip(residuals, cells, strict=True)
        ]
    )
    f = f - f.mean()
    sums = [f[np.asarray(groups) == g].sum() for g in set(groups)]
    return math.sqrt(len(sums) / (len(sums) - 1) * math.fsum(s * s for s in sums)) / len(f)


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


def folded_mean(mu, sigma):
    """E|μ + σZ| by quadrature."""
    z = np.linspace(-12.0, 12.0, 200_001)
    density = np.exp(-0.5 * z * z) / math.sqrt(2 * math.pi)
    return float((np.abs(mu + sigma * z) * density).sum() * (z[1] - z[0]))


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
