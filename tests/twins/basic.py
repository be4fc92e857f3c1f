"""Slow twins of everything the package computes, written from the papers and never from its code.

Plain Python and NumPy: loops, dictionaries, long doubles and exact fractions. Nothing here imports
caltest.
"""

import itertools
import math
from collections import defaultdict
from fractions import Fraction

import numpy as np

TUTORIAL_BINARY = np.array(
    [
        [0.78, 0.22], [0.36, 0.64], [0.08, 0.92], [0.58, 0.42], [0.49, 0.51],
        [0.85, 0.15], [0.30, 0.70], [0.63, 0.37], [0.17, 0.83],
    ]
)  # fmt: skip
TUTORIAL_BINARY_LABELS = np.array([0, 1, 0, 0, 0, 0, 1, 1, 1])


def hellinger(r, g):
    """A distance that has no name in the package."""
    return float(np.sqrt(0.5 * ((np.sqrt(np.abs(r)) - np.sqrt(np.abs(g))) ** 2).sum()))


DISTANCES = {
    "tv": lambda r, g: 0.5 * sum(abs(a - b) for a, b in zip(r, g, strict=True)),
    "l1": lambda r, g: sum(abs(a - b) for a, b in zip(r, g, strict=True)),
    "l2": lambda r, g: math.sqrt(sum((a - b) ** 2 for a, b in zip(r, g, strict=True))),
    "sqeuclidean": lambda r, g: sum((a - b) ** 2 for a, b in zip(r, g, strict=True)),
    "max": lambda r, g: max(abs(a - b) for a, b in zip(r, g, strict=True)),
}


def distance_function(distance):
    return DISTANCES[distance] if isinstance(distance, str) else distance


def uniform_bin(x, m, closed="right"):
    """The bin of one number by decimal arithmetic: within 1e-12 of k/m it is on that edge."""
    exact = Fraction(float(x))
    k = round(exact * m)
    if abs(exact - Fraction(k, m)) <= Fraction(1, 10**12):
        j = k - 1 if closed == "right" else k
    else:
        j = math.floor(exact * m)
    return min(max(j, 0), m - 1)


def uniform_cells(probs, m, closed="right", axes="all"):
    probs = np.asarray(probs, float)
    if probs.ndim == 1:
        return [uniform_bin(x, m, closed) for x in probs]
    if probs.shape[1] == 2:
        return [uniform_bin(x, m, closed) for x in probs[:, 0]]
    if axes == "first":
        probs = probs[:, :-1]
    return [tuple(uniform_bin(x, m, closed) for x in row) for row in probs]


def quantile_cells(x, m, closed="right"):
    """Cut the sorted values at ranks ⌈jn/m⌉, ties stay together; "left" is the mirror image."""
    x = [float(v) for v in x]
    if closed == "left":
        return [-c for c in quantile_cells([-v for v in x], m)]
    ordered, n = sorted(x), len(x)
    edges = sorted({ordered[-(-j * n // m) - 1] for j in range(1, m)})
    return [sum(1 for e in edges if v > e) for v in x]


def tree_cells(probs, min_size, split="median", stop=None):
    """The recursion of the published code: cut the widest axis, strictly below goes left."""
    probs = np.asarray(probs, float)
    columns = probs[:, None] if probs.ndim == 1 else probs
    columns = columns[:, :1] if columns.shape[1] == 2 else columns
    stop = stop or {"median": "child", "mean": "node"}[split]
    cells = [None] * len(columns)
    leaves = itertools.count()

    def grow(rows):
        if stop == "child" or len(rows) >= min_size:
            block = columns[rows]
            values = block[:, int(np.argmax(np.var(block, axis=0)))]
            threshold = np.median(values) if split == "median" else np.mean(values)
            left = [i for i, v in zip(rows, values, strict=True) if v < threshold]
            right = [i for i, v in zip(rows, values, strict=True) if v >= threshold]
            smallest = min_size if stop == "child" else 1
            if min(len(left), len(right)) >= max(smallest, 1):
                grow(left)
                grow(right)
                return
        leaf = next(leaves)
        for i in rows:
            cells[i] = leaf

    grow(list(range(len(columns))))
    return cells


def as_groups(cells):
    """A partition without the names of its cells."""
    groups = defaultdict(list)
    for i, c in enumerate(cells):
        groups[c if isinstance(c, tuple) else int(c)].append(i)
    return sorted(groups.values())


def top_k(probs, labels, k):
    out, induced = [], []
    for row, y in zip(probs, labels, strict=True):
        order = sorted(range(len(row)), key=lambda c: (-row[c], c))
        out.append([row[c] for c in order[:k]] + [sum(row[c] for c in order[k:])])
        induced.append(order.index(y) if y in order[:k] else k)
    return np.array(out), np.array(induced)


def partition(probs, labels, groups):
    out = [[sum(row[c] for c in g) for g in groups] for row in probs]
    return np.array(out), np.array([[y in g for g in groups].index(True) for y in labels])


def gaps(probs, labels, cells, distance="tv"):
    """(share of rows, distance) of every occupied cell, Eq. 6 of Vaicenavicius et al."""
    probs, labels, measure = np.asarray(probs, float), list(labels), distance_function(distance)
    result = []
    for rows in as_groups(cells):
        mean = [math.fsum(probs[i, c] for i in rows) / len(rows) for c in range(probs.shape[1])]
        seen = [sum(labels[i] == c for i in rows) / len(rows) for c in range(probs.shape[1])]
        result.append((len(rows) / len(probs), float(measure(np.array(seen), np.array(mean)))))
    return result


def ece(probs, labels, cells, distance="tv"):
    return math.fsum(share * gap for share, gap in gaps(probs, labels, cells, distance))


def mce(probs, labels, cells, distance="tv"):
    return max(gap for _, gap in gaps(probs, labels, cells, distance))


def draw_label(row, u):
    """Inverse distribution function: the first possible class whose cumulative sum exceeds u."""
    total, last = 0.0, None
    for c, p in enumerate(row):
        if p > 0.0:
            total, last = total + p, c
            if u < total:
                return c
    return last


def poisson_binomial_law(p, dtype=np.longdouble):
    """Probabilities of 0 … n successes by the recursion over trials, in long double."""
    law = np.zeros(len(p) + 1, dtype)
    law[0] = 1
    for i, q in enumerate(np.asarray(p, dtype)):
        law[1 : i + 2] = law[1 : i + 2] * (1 - q) + law[: i + 1] * q
        law[0] *= 1 - q
    return law


def poisson_binomial_window(p):
    """(first, probabilities above 1e-24) by convolving blocks of 64 trials, in long double."""
    laws = [(0, poisson_binomial_law(p[i : i + 64])) for i in range(0, len(p), 64)]
    while len(laws) > 1:
        merged = laws[len(laws) // 2 * 2 :]
        for (a, one), (b, two) in zip(laws[:-1:2], laws[1::2], strict=True):
            law = np.convolve(one, two)
            kept = np.flatnonzero(law > 1e-24)
            merged.append((a + b + int(kept[0]), law[kept[0] : kept[-1] + 1]))
        laws = merged
    return laws[0]


def enumerated_law(statistic, probs):
    """(values, probabilities) over all label vectors of positive probability."""
    choices = [[c for c, p in enumerate(row) if p > 0] for row in probs]
    values, weights = [], []
    for labels in itertools.product(*choices):
        values.append(statistic(np.array(labels)))
        weights.append(math.prod(row[c] for row, c in zip(probs, labels, strict=True)))
    return np.array(values), np.array(weights)


def summary(values, weights, t):
    """P(T ≥ t) with ties, the mean and the standard deviation of a discrete law."""
    tail = math.fsum(weights[values >= t - 1e-9 * max(1.0, abs(t))])
    mean = math.fsum(values * weights)
    return tail, mean, math.sqrt(max(0.0, math.fsum(weights * (values - mean) ** 2)))


def count_law(probs):
    """Law of the class counts of independent rows (Poisson-multinomial), as a dictionary."""
    law = {(0,) * len(probs[0]): 1.0}
    for row in probs:
        longer = defaultdict(float)
        for counts, weight in law.items():
            for c, p in enumerate(row):
                if p > 0:
                    longer[(*counts[:c], counts[c] + 1, *counts[c + 1 :])] += weight * p
        law = longer
    return law


def vector_law(probs, cells, distance="tv"):
    """Exact law of the ECE of whole vectors: cell count laws, convolved over cells."""
    probs, measure = np.asarray(probs, float), distance_function(distance)
    law = {0: (0.0, 1.0)}  # keyed by the value in units of 1e-11
    for rows in as_groups(cells):
        mean, n = probs[rows].mean(axis=0), len(rows)
        terms = defaultdict(float)
        for counts, weight in count_law(probs[rows]).items():
            gap = measure(np.array(counts) / n, mean)
            terms[round(n / len(probs) * gap * 1e11)] += weight
        longer = defaultdict(float)
        for old, (_, a) in law.items():
            for new, b in terms.items():
                longer[old + new] += a * b
        law = {key: (key / 1e11, weight) for key, weight in longer.items()}
    return np.array([v for v, _ in law.values()]), np.array([w for _, w in law.values()])


def decimal_l1_law(p, cells, digits):
    """Exact law of Σ_b |O_b − E_b| · 10^digits for predictions of that many decimals.

    All values are whole numbers, so that ties are ties; returned as (integers, probabilities).
    """
    scale = 10**digits
    whole = [round(v * scale) for v in p]
    law = {0: np.longdouble(1)}
    for rows in as_groups(cells):
        counts = poisson_binomial_law([np.longdouble(whole[i]) / scale for i in rows])
        expected = sum(whole[i] for i in rows)
        terms = defaultdict(np.longdouble)
        for count, weight in enumerate(counts):
            terms[abs(count * scale - expected)] += weight
        longer = defaultdict(np.longdouble)
        for old, a in law.items():
            for new, b in terms.items():
                longer[old + new] += a * b
        law = longer
    return np.array(list(law.keys())), np.array(list(law.values()))


def debiased(residuals, cells):
    """(1/n) Σ_b (1/(n_b − 1)) Σ_{i≠j in b} r_i·r_j, pair by pair; residuals of shape (n, d)."""
    total = 0.0
    for b in set(cells):
        rows = [residuals[i] for i, c in enumerate(cells) if c == b]
        pairs = [r @ s for i, r in enumerate(rows) for j, s in enumerate(rows) if i != j]
        total += math.fsum(pairs) / max(1, len(rows) - 1)
    return total / len(cells)


def residuals(probs, labels):
    """Onehot(y) − p; of two classes the first component, which says it all."""
    r = np.eye(probs.shape[1])[labels] - probs
    return r[:, :1] if probs.shape[1] == 2 else r
