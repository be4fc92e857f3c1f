"""Slow twins of the statistics of regression, class-wise, sweep and multi-scale type.

Written from the papers: plain loops, exact fractions where they decide something. Nothing here
imports caltest. ``p`` is the probability of the event and ``y`` is 1 where it happened.
"""

import itertools
import math
from fractions import Fraction

import numpy as np


def signed(p, y, signs):
    """y − p, its signs changed."""
    rows = zip(p, y, [1] * len(p) if signs is None else signs, strict=True)
    return [s * (b - a) for a, b, s in rows]


def in_the_large(p, y, signs=None):
    return sum(signed(p, y, signs)) / math.sqrt(sum(a * (1 - a) for a in p))


def hosmer_lemeshow(p, y, groups, variance="binomial", signs=None):
    total, residuals = 0.0, signed(p, y, signs)
    for g in set(groups):
        rows = [i for i, other in enumerate(groups) if other == g]
        n, expected = len(rows), sum(p[i] for i in rows)
        v = sum(p[i] * (1 - p[i]) for i in rows)
        if variance == "binomial":
            v = expected * (1 - expected / n)
        if v > 1e-20:
            total += sum(residuals[i] for i in rows) ** 2 / v
    return total


def logits(p):
    """Log-odds, with both probabilities kept above 1e-12."""
    return [math.log(max(a, 1e-12)) - math.log(max(1 - a, 1e-12)) for a in p]


def cox_score(p, y, signs=None):
    z, r = np.array(logits(p)), np.array(signed(p, y, signs))
    p = np.asarray(p, float)
    v = p * (1 - p)
    u = np.array([r.sum(), (r * z).sum()])
    information = np.array([[v.sum(), (v * z).sum()], [(v * z).sum(), (v * z * z).sum()]])
    return float(u @ np.linalg.solve(information, u))


def log_likelihood(a, b, p, y):
    """Of logit P(y = 1) = a + b logit p."""
    total = 0.0
    for z, outcome in zip(logits(p), y, strict=True):
        eta = a + b * z
        total += outcome * eta - (max(eta, 0.0) + math.log1p(math.exp(-abs(eta))))
    return total


def score_equations(a, b, p, y):
    z = np.array(logits(p))
    residual = np.asarray(y, float) - 1 / (1 + np.exp(-(a + b * z)))
    return residual.sum(), (residual * z).sum()


def lowess_at(x0, p, y, span, row_weights=None):
    """Cleveland's local line: tricube weights up to the ⌊span n⌋-th nearest neighbour."""
    n = len(p)
    k = min(n, max(2, math.floor(span * n + 1e-7)))
    h = sorted(abs(x - x0) for x in p)[k - 1]
    w = [(1 - min(1.0, abs(x - x0) / h) ** 3) ** 3 if h > 0 else float(x == x0) for x in p]
    w = w if row_weights is None else [a * b for a, b in zip(w, row_weights, strict=True)]
    total = sum(w)
    mean = sum(a * x for a, x in zip(w, p, strict=True)) / total
    level = sum(a * o for a, o in zip(w, y, strict=True)) / total
    square = sum(a * (x - mean) ** 2 for a, x in zip(w, p, strict=True)) / total
    if math.sqrt(square) <= 0.001 * (max(p) - min(p)):
        return level
    cross = sum(a * (x - mean) * o for a, x, o in zip(w, p, y, strict=True)) / total
    return level + cross / square * (x0 - mean)


def nixon_edges(p, m):
    """The upper edges of the authors' adaptive bins."""
    ranks = [min(round(j * len(p) / m), len(p) - 1) for j in range(m)]
    ordered = sorted(p)
    return [ordered[r] for r in ranks][1:]


def digit(x, edges):
    return sum(x >= e for e in edges)


def gaps_by_count(p, y, cells):
    """Σ n_b / n |acc − conf|."""
    total = 0.0
    for b in set(cells):
        rows = [i for i, c in enumerate(cells) if c == b]
        total += abs(sum(y[i] - p[i] for i in rows))
    return total / len(p)


def range_error(p, y, m):
    """Mean of |acc − conf| over ranges of ⌊n/m⌋; ranges with the same last value are pooled."""
    n = len(p)
    if n == 0:
        return 0.0
    ordered = sorted(p)
    r = min(m, n)
    size = max(1, n // m)
    ends = [ordered[min((j + 1) * size, n) - 1] for j in range(r - 1)] + [ordered[-1]]
    total = 0.0
    for end in ends:  # once for every range, also where several are one
        below = max((e for e in ends if e < end), default=-1.0)
        rows = [i for i in range(n) if below < p[i] <= end]
        total += abs(sum(y[i] - p[i] for i in rows)) / len(rows)
    return total / r


def by_class(probs, labels, threshold, error):
    """Apply an error of (p, y) to every class and return the K values."""
    values = []
    for k in range(len(probs[0])):
        kept = [i for i in range(len(probs)) if threshold == 0 or probs[i][k] > threshold]
        p = [float(probs[i][k]) for i in kept]
        y = [int(labels[i] == k) for i in kept]
        values.append(error(p, y) if kept else 0.0)
    return values


def sweep(p, y, norm=1):
    """ECE_sweep, equal mass: bins end at ranks ⌈jn/b⌉, or after the ties there."""
    order = sorted(range(len(p)), key=lambda i: p[i])
    n = len(p)

    def bins(b):
        ends = []
        for j in range(1, b + 1):
            end = -(-j * n // b)
            while end < n and p[order[end]] == p[order[end - 1]]:
                end += 1
            ends.append(end)
        cut = sorted({0, *ends})
        return [order[s:e] for s, e in itertools.pairwise(cut)]

    def rises(parts):
        means = [Fraction(int(sum(y[i] for i in part)), len(part)) for part in parts]
        return all(a <= b for a, b in itertools.pairwise(means))

    b = 1
    while b < n and rises(bins(b + 1)):
        b += 1
    gaps = ((len(part), abs(sum(y[i] - p[i] for i in part))) for part in bins(b))
    return (sum(size * (gap / size) ** norm for size, gap in gaps) / n) ** (1 / norm), b


def debiased_variance(covariances, cells):
    """Its variance under calibration, from the covariances of the labels, pair by pair."""
    n, total = len(cells), 0.0
    for b in set(cells):
        rows = [i for i, c in enumerate(cells) if c == b]
        if len(rows) > 1:
            apart = [(i, j) for i in rows for j in rows if i != j]
            pairs = sum(float(np.trace(covariances[i] @ covariances[j])) for i, j in apart)
            total += 2 * pairs / (len(rows) - 1) ** 2
    return total / n**2
