"""The mixture by its definition: every expert's product from every start, added up."""

import numpy as np
from scipy.special import expit

EPS = (0.01, 0.02, 0.05, 0.1, 0.2, 0.4)


def signed(least, most):
    return [s * 2.0**k for k in range(least, most + 1) for s in (-1, 1)]


def lines():
    """Slope, shift and share of the flat experts."""
    rows = [(1.0, a, 0.2 / 20) for a in signed(-8, 1)]
    for c, w in ((0, 0.5), (2, 0.125), (-2, 0.125), (4, 0.125), (-4, 0.125)):
        rows += [(np.exp(e), -(np.exp(e) - 1) * c, 0.3 * w / 16) for e in signed(-7, 0)]
    return rows + [(np.exp(e), a, 0.15 / 96) for e in signed(-3, 0) for a in signed(-4, 1)]


def kept(t):
    return 1 / (1 + np.log(1 + t / 100))


def late(ratios, shares, rows):
    """Return the late pool after the rows: shares that start after every 32nd."""
    total = kept(32 * (rows // 32))
    for start in range(32, rows + 1, 32):
        moved = kept(start - 32) - kept(start)
        total += moved * (shares * ratios[start:rows].prod(axis=0)).sum()
    return total


def changed(ratios, shares, rows):
    return sum((shares * ratios[s:rows].prod(axis=0)).sum() for s in range(32, rows + 1, 32))


def tree(d, leaf, node=1, depth=5):
    """Return the wealth of a node: ratios d (n, 11) of the shifts, leaves in heap order."""
    level = node.bit_length() - 1
    own = d[leaf >> (depth - level) == node].prod(axis=0) @ np.r_[0.5, np.full(10, 0.05)]
    if level == depth:
        return own
    below = tree(d, leaf, 2 * node) * tree(d, leaf, 2 * node + 1)
    return 0.5 * own + 0.5 * below


def two_classes(p, y, rest=None, mode="monitor", weights=1.0):
    """Return the wealth after all rows of two classes; p is the probability of y = 1."""
    p, y = np.asarray(p, float), np.asarray(y)
    rest = 1 - p if rest is None else rest
    right = np.where(y == 1, p, rest)
    z = np.log(np.maximum(p, 1e-12)) - np.log(np.maximum(rest, 1e-12))
    sign = np.where(y == 1, 1.0, -1.0)
    table = np.array(lines())
    flat = [expit(sign * (b * z + a)) / right for b, a, _ in table]
    flat += [1 - e + e / 2 / right for e in EPS]
    flat, shares = np.array(flat).T, np.r_[table[:, 2], np.full(6, 0.1 / 6)]
    stake = np.broadcast_to(weights, len(p))[:, None]
    flat = 1 + stake * (flat - 1)
    shifts = [0.0, *signed(-3, 1)]
    d = np.array([expit(sign * (z + a)) / right for a in shifts]).T
    d = 1 + stake * (d - 1)
    leaf = np.minimum((32 * expit(z / 2)).astype(int), 31) + 32
    static = (shares * flat.prod(axis=0)).sum() + 0.25 * tree(d, leaf)
    if mode == "static":
        return static
    cells, cell_shares = [], []
    for level in range(1, 5):
        for node in range(2**level, 2 ** (level + 1)):
            inside = leaf >> (5 - level) == node
            cells += [np.where(inside, d[:, k], 1.0) for k in range(1, 11)]
            cell_shares += [0.25 / 4 / 2**level / 10] * 10
    ratios, every = np.column_stack([flat, *cells]), np.r_[shares, cell_shares]
    if mode == "change":
        return changed(ratios, every, len(p))
    return 0.5 * static + 0.5 * late(ratios, every, len(p))


def many_classes(probs, y):
    """Return the wealth after all rows of K > 2 classes."""
    probs, y = np.asarray(probs, float), np.asarray(y)
    n, K = probs.shape
    i, right = np.arange(n), probs[np.arange(n), y]
    flat, shares = [], []
    for e in signed(-7, 0):
        q = probs ** np.exp(e)
        flat.append((q / q.sum(axis=1, keepdims=True))[i, y] / right)
        shares.append(0.25 / 16)
    for e in EPS:
        flat.append(1 - e + e / (probs > 0).sum(axis=1) / right)
        shares.append(0.15 / 6)
    for k in range(K):
        for a in signed(-6, 1):
            q = probs * np.exp(a * (np.arange(K) == k))
            flat.append((q / q.sum(axis=1, keepdims=True))[i, y] / right)
            shares.append(0.15 / K / 16)
        for e in EPS:
            q = (1 - e) * probs + e * (np.arange(K) == k)
            flat.append(np.where(probs[:, k] > 0, q[i, y] / right, 1.0))
            shares.append(0.1 / K / 6)

    def leaves(node):
        return [node - K] if node >= K else leaves(2 * node) + leaves(2 * node + 1)

    nested = 1.0
    for node in range(1, K):
        left, both = leaves(2 * node), leaves(node)
        here = np.isin(y, both)
        share = probs[here][:, left].sum(axis=1) / probs[here][:, both].sum(axis=1)
        hit = np.isin(y[here], left)
        total = 0.5
        for a in signed(-6, 1):
            moved = expit(np.log(share) - np.log1p(-share) + a)
            total += 0.5 / 16 * np.where(hit, moved / share, (1 - moved) / (1 - share)).prod()
        nested *= total
    flat, shares = np.array(flat).T, np.array(shares)
    top = probs.argmax(axis=1)
    rest = probs.sum(axis=1) - probs[i, top]
    static = (shares * flat.prod(axis=0)).sum() + 0.15 * nested
    first = two_classes(probs[i, top], (y == top).astype(int), rest)
    return 0.5 * static + 0.4 * late(flat, shares / 0.65, n) + 0.2 * first
