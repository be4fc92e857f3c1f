"""Slow twins of the bin-free statistics, written from the papers. Nothing here imports caltest."""

import math
from fractions import Fraction

import numpy as np
import scipy.optimize
import scipy.stats


def cumulative(p, y, signs=None):
    """(largest |C|, range of C) in exact fractions: C after each distinct prediction, and 0."""
    p, n = [Fraction(float(v)) for v in p], len(p)
    rows = list(zip(p, y, [1] * n if signs is None else signs, strict=True))
    edges = [Fraction(-1), *set(p)]
    walk = [sum(Fraction(s) * (int(b) - a) for a, b, s in rows if a <= edge) for edge in edges]
    return float(max(map(abs, walk)) / n), float((max(walk) - min(walk)) / n)


def walk_sigma(p):
    return math.sqrt(math.fsum(float(v) * (1 - float(v)) for v in p)) / len(p)


def isotonic(p, y):
    """{prediction: fitted} by the max-min formula over blocks of distinct predictions."""
    edges = sorted({float(v) for v in p})
    hits = [sum(int(b) for a, b in zip(p, y, strict=True) if a == e) for e in edges]
    size = [sum(1 for a in p if a == e) for e in edges]

    def mean(a, b):
        return Fraction(sum(hits[a : b + 1]), sum(size[a : b + 1]))

    last = len(edges) - 1
    return {
        edge: float(max(min(mean(a, b) for b in range(g, last + 1)) for a in range(g + 1)))
        for g, edge in enumerate(edges)
    }


def two_class_score(p, y, score):
    """Mean of (p − y)² or of −log of the probability of what happened."""
    if score == "brier":
        return math.fsum((a - b) ** 2 for a, b in zip(p, y, strict=True)) / len(p)
    chances = [a if b else 1 - a for a, b in zip(p, y, strict=True)]
    return math.inf if min(chances) == 0 else -math.fsum(map(math.log, chances)) / len(p)


def corp(p, y, score):
    """(miscalibration, discrimination, uncertainty)."""
    fit = isotonic(p, y)
    raw = two_class_score(p, y, score)
    best = two_class_score([fit[float(v)] for v in p], y, score)
    base = two_class_score([sum(map(int, y)) / len(p)] * len(p), y, score)
    return raw - best, base - best, base


def relplot_at(p, y, width, signs=None):
    """The error for one width, by direct sums over the data and their mirror images."""
    size = max(2000, round(20 / width)) // 2 + 1
    step = 1 / (size - 1)
    residual, count = np.zeros(size), np.zeros(size)
    for a, b, s in zip(p, y, [1] * len(p) if signs is None else signs, strict=True):
        cell = min(int(a * (size - 1)), size - 2)
        share = a * (size - 1) - cell
        for j, w in ((cell, 1 - share), (cell + 1, share)):
            residual[j] += w * s * (a - b)
            count[j] += w
    x = np.linspace(0, 1, size)
    nodes = x + (step / 2 if size % 2 == 0 else 0)  # an even grid has no middle
    images = np.concatenate([-x[:0:-1], x, 2 - x[-2::-1]])
    distance = nodes[:, None] - images[None, :]
    kernel = np.exp(-(distance**2) / (2 * width**2)) / (math.sqrt(2 * math.pi) * width)
    kernel[np.abs(distance) > 0.5 + step / 4] = 0.0
    t = np.linspace(0, 1, max(round(10 / width), 200))
    mirrored = (np.concatenate([v[:0:-1], v, v[-2::-1]]) for v in (residual, count))
    smooth = [np.interp(t, x, kernel @ v) for v in mirrored]
    return np.abs(smooth[0]).sum() / (smooth[1] + 1e-4).sum()


def relplot_smooth_ece(p, y, signs=None):
    """(error, width): ten halvings, towards the smallest width that the error does not exceed."""
    wide, narrow = 1.0, 0.0
    for _ in range(10):
        middle = (wide + narrow) / 2
        if middle < 0.001 or middle < relplot_at(p, y, middle, signs):
            narrow = middle
        else:
            wide = middle
    return relplot_at(p, y, wide, signs), wide


def smoothed(t, p, residuals, width):
    """Σ_i K(t, p_i) r_i, the images of p under reflection at 0 and 1 one by one."""
    far = 1 + math.ceil(4 * width)
    images = [2 * m + sign * p for m in range(-far, far + 1) for sign in (1, -1)]
    kernel = sum(np.exp(-(((t[:, None] - image) / width) ** 2) / 2) for image in images)
    return kernel @ residuals / (math.sqrt(2 * math.pi) * width)


def smooth_at(p, residuals, width):
    """∫ |Σ_i K(t, p_i) r_i| dt: the zeros by bisection, Gauss & Legendre between them."""
    cuts = np.linspace(0, 1, max(60, int(5 / width)))
    value = smoothed(cuts, p, residuals, width)
    low, high = (side[value[1:] * value[:-1] < 0] for side in (cuts[:-1], cuts[1:]))
    sign = np.sign(smoothed(low, p, residuals, width))
    for _ in range(40):
        middle = (low + high) / 2
        same = np.sign(smoothed(middle, p, residuals, width)) == sign
        low, high = np.where(same, middle, low), np.where(same, high, middle)
    cuts = np.sort(np.append(cuts, low))
    nodes, weights = np.polynomial.legendre.leggauss(8)
    half = np.diff(cuts)[:, None] / 2
    t = cuts[:-1, None] + half * (1 + nodes)
    value = np.abs(smoothed(t.ravel(), p, residuals, width)).reshape(t.shape)
    return (value * half @ weights).sum()


def smooth_ece(p, residuals):
    """The width that is its own error; residuals Σ w r / Σ w."""

    def excess(width):
        return smooth_at(p, residuals, width) - width

    return scipy.optimize.brentq(excess, 2e-3, 1.0, xtol=1e-9)


def row_score(row, y, score):
    row = [float(v) for v in row]
    norm = math.sqrt(math.fsum(v * v for v in row))
    if score == "brier":
        total = math.fsum((v - (k == y)) ** 2 for k, v in enumerate(row))
        return total / 2 if len(row) == 2 else total
    if score == "log":
        return -math.log(row[y]) if row[y] > 0 else math.inf
    return 1 - row[y] / norm


def score_gap(probs, labels, score, signs=None):
    """(Observed − expected) / standard deviation, moments by listing the labels of every row."""
    gap = variance = 0.0
    for row, y, s in zip(probs, labels, [1] * len(probs) if signs is None else signs, strict=True):
        possible = [(float(v), row_score(row, k, score)) for k, v in enumerate(row) if v > 0]
        mean = math.fsum(v * each for v, each in possible)
        variance += math.fsum(v * (each - mean) ** 2 for v, each in possible)
        gap += s * (row_score(row, y, score) - mean)
    return gap / math.sqrt(variance)


def murphy(p, y, cells):
    """Five parts of the two-class Brier score, Stephenson et al. (2008), Eqs. 4 to 8."""
    n, base = len(p), sum(y) / len(y)
    parts = [0.0, 0.0, base * (1 - base), 0.0, 0.0]
    for cell in set(cells):
        rows = [i for i in range(n) if cells[i] == cell]
        forecast = sum(p[i] for i in rows) / len(rows)
        happened = sum(y[i] for i in rows) / len(rows)
        parts[0] += len(rows) * (forecast - happened) ** 2 / n
        parts[1] += len(rows) * (happened - base) ** 2 / n
        parts[3] += sum((p[i] - forecast) ** 2 for i in rows) / n
        parts[4] += sum(2 * (p[i] - forecast) * (y[i] - happened) for i in rows) / n
    return parts


def clopper_pearson_band(p, happened, level, grid):
    """(x, low, high) at all distinct predictions, from all intervals of rounded ones."""
    x = np.unique(p)
    low, high = np.zeros(x.size), np.ones(x.size)
    for upward in (True, False):
        side = "left" if upward else "right"
        rounded = grid[np.searchsorted(grid, p, side=side) - (0 if upward else 1)]
        values = np.unique(rounded)
        alpha = (1.0 - level) / (values.size * (values.size + 1))
        for first in values:
            for last in values[values >= first]:
                inside = (rounded >= first) & (rounded <= last)
                n, hits = inside.sum(), happened[inside].sum()
                if upward and hits:
                    bound = scipy.stats.beta.ppf(alpha, hits, n - hits + 1)
                    low[x >= last] = np.maximum(low[x >= last], bound)
                if not upward and hits < n:
                    bound = scipy.stats.beta.isf(alpha, hits + 1, n - hits)
                    high[x <= first] = np.minimum(high[x <= first], bound)
    return x, low, high
