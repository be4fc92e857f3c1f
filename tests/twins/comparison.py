"""Slow twins of the comparison of two models, written from the definitions."""

from itertools import combinations, product

import numpy as np

from twins.basic import residuals


def kernel(probs, labels, cells, centred=False):
    """w_ij r_i · r_j for all pairs of rows, of residuals less the mean of their cell if centred."""
    n, r = len(probs), residuals(probs, labels)
    for c in set(cells) if centred else ():
        r[cells == c] -= r[cells == c].mean(axis=0)
    h = np.zeros((n, n))
    for i, j in product(range(n), repeat=2):
        if i != j and cells[i] == cells[j]:
            h[i, j] = r[i] @ r[j] / ((cells == cells[i]).sum() - 1)
    return h


def debiased_squared_error(probs, labels, cells):
    return kernel(probs, labels, cells).sum() / len(labels)


def omitting(probs, labels, cells):
    """The same without each row in turn."""
    data = probs, labels, cells
    others = ([np.delete(x, i, axis=0) for x in data] for i in range(len(labels)))
    return np.array([debiased_squared_error(*rows) for rows in others])


def swap_pvalue(statistic, a, b):
    """The swap test of paired rows over all 2ⁿ swaps; a and b are (probs, labels)."""
    n = len(a[1])
    observed = abs(statistic(*a) - statistic(*b))
    reached = 0
    for mask in product([False, True], repeat=n):
        m = np.array(mask)
        first = np.where(m[:, None], b[0], a[0]), np.where(m, b[1], a[1])
        second = np.where(m[:, None], a[0], b[0]), np.where(m, a[1], b[1])
        reached += abs(statistic(*first) - statistic(*second)) >= observed - 1e-12
    return reached / 2**n


def shuffle_pvalue(statistic, a, b):
    """The same for independent rows, over all ways to deal them out."""
    probs, labels = np.vstack([a[0], b[0]]), np.concatenate([a[1], b[1]])
    n, observed = len(labels), abs(statistic(*a) - statistic(*b))
    values = []
    for rows in combinations(range(n), len(a[1])):
        sides = list(rows), [i for i in range(n) if i not in rows]
        first, second = (statistic(probs[side], labels[side]) for side in sides)
        values.append(abs(first - second))
    return float(np.mean(np.array(values) >= observed - 1e-12))


def largest_groups(names, apart):
    """All sets without a pair that is apart and without a larger such set."""
    fitting = [
        frozenset(s)
        for size in range(1, len(names) + 1)
        for s in combinations(names, size)
        if not any(frozenset(pair) in apart for pair in combinations(s, 2))
    ]
    return {s for s in fitting if not any(s < t for t in fitting)}
