"""Slow twins of ATB, loess curves, scaled scores and cross-fitted errors, from the papers."""

from itertools import pairwise

import numpy as np
import scipy.integrate

import caltest as ct
from twins import Row, event
from twins.curves import row_score


def atb(p, y):
    """Integrate the squared errors of both bins over the threshold, piece by piece."""

    def squares(q):
        below = sum(a - b for a, b in zip(p, y, strict=True) if a < q)
        above = sum(a - b for a, b in zip(p, y, strict=True) if a >= q)
        return (below**2 + above**2) / len(p) ** 2

    pieces = pairwise(np.unique([0.0, *p, 1.0]))
    return sum(scipy.integrate.fixed_quad(np.vectorize(squares), a, b)[0] for a, b in pieces)


def tricube(u):
    return (1 - u**3) ** 3


def epanechnikov(u):
    return 1 - u**2


def parabola(x0, p, y, span, weight=tricube, row_weights=None):
    """Value and slope at x0 of the local parabola through the ⌊span n⌋ nearest rows."""
    near = np.argsort(np.abs(p - x0), kind="stable")[: max(3, int(span * len(p) + 1e-5))]
    gap = p[near] - x0
    own = 1.0 if row_weights is None else row_weights[near]
    root = np.sqrt(own * weight(np.abs(gap) / np.abs(gap).max()))
    design = np.vander(gap, 3, increasing=True) * root[:, None]
    return np.linalg.lstsq(design, y[near] * root, rcond=None)[0][:2]


def cuts(values, most, low, high):
    """Medians of distinct values, cell by cell, until none has more rows than allowed."""
    if len(values) <= most:
        return []
    middle = (len(values) - 1) // 2
    at = values[middle]
    below, above = values[: middle + 1], values[middle + 1 :]
    return [*cuts(below, most, low, at), at, *cuts(above, most, at, high)]


def loess(p, y, span=0.75, row_weights=None):
    """The blended curve at every row: cubics with the values and slopes of the parabolas."""
    ordered = np.sort(p)
    margin = 0.005 * (ordered[-1] - ordered[0])
    low, high = ordered[0] - margin, ordered[-1] + margin
    at = [low, *cuts(ordered, int(0.2 * span * len(p)), low, high), high]
    value, slope = np.transpose([parabola(x0, p, y, span, row_weights=row_weights) for x0 in at])
    curve = []
    for x in p:
        j = next(k for k in range(len(at) - 1) if x <= at[k + 1])
        width = at[j + 1] - at[j]
        h = (x - at[j]) / width
        ends = (1 - h) ** 2 * (1 + 2 * h) * value[j] + h**2 * (3 - 2 * h) * value[j + 1]
        turns = h * (1 - h) ** 2 * slope[j] - h**2 * (1 - h) * slope[j + 1]
        curve.append(ends + width * turns)
    return np.array(curve)


def quantile(values, q, w):
    """Akinshin's weighted quantile: the mean of the weighted quantile function over a window."""
    n, ordered = sum(w) ** 2 / sum(a * a for a in w), sorted(zip(values, w, strict=True))
    start, end = q * (n - 1) / n, (q * (n - 1) + 1) / n
    total, reached = 0.0, 0.0
    for value, own in ordered:
        before, reached = reached, reached + own / sum(w)
        total += n * value * max(0.0, min(end, reached) - max(start, before))
    return total


def scaled_brier(probs, labels):
    shares = np.bincount(labels, minlength=probs.shape[1]) / len(labels)
    own = sum(row_score(row, y, "brier") for row, y in zip(probs, labels, strict=True))
    return 1 - own / sum(row_score(shares, y, "brier") for y in labels)


def proper_norm(order, f, g, label):
    """ℓ_f(g, y) = h(g) + ⟨h'(g), y − g⟩ with h(g) = −‖g − f‖ and a numerical gradient."""
    outcome, step = np.eye(len(f))[label], 1e-6

    def height(at):
        return -float(np.linalg.norm(at - f, order))

    units = step * np.eye(len(f))
    gradient = np.array([(height(g + u) - height(g - u)) / (2 * step) for u in units])
    return height(g) + float(gradient @ (outcome - g))


ROWS = [Row(ct.ATB(), two_classes=True, tally=1e-4, twin=event(atb))]
