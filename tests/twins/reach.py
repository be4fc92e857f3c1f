"""A slow twin of the limits of a difference of two squared errors, row by row from their formulas.

Debiased errors, their jackknife and their kernels come from :mod:`reference_comparison`.
"""

import math
from functools import cache, cached_property

import numpy as np
from scipy.special import gammaincinv, ndtr, ndtri

from twins.comparison import debiased_squared_error, kernel, omitting


def in_cell(cells, i):
    return [j for j in range(len(cells)) if cells[j] == cells[i]]


def length(r, k):
    """|r|² as T counts it: of two classes the first component only."""
    return r[0] ** 2 if k == 2 else float(r @ r)


def other_labels(probs, labels, cells):
    """By how much T changes when row i has label k, each time computed afresh: (n, K)."""
    n, k = probs.shape
    found = np.zeros((n, k))
    here = debiased_squared_error(probs, labels, cells)
    for i in range(n):
        for c in range(k):
            moved = labels.copy()
            moved[i] = c
            found[i, c] = debiased_squared_error(probs, moved, cells) - here
    return found


def linear_labels(probs, labels, cells):
    """The same in closed form, (2/n) Σ_j r_j · (e_k − e_y) / (m − 1) over others of the cell."""
    n, k = probs.shape
    found = np.zeros((n, k))
    for i in range(n):
        others = [j for j in in_cell(cells, i) if j != i]
        if others:
            rest = sum((np.eye(k)[labels[j]] - probs[j] for j in others), np.zeros(k))
            if k == 2:
                rest[1] = 0.0
            found[i] = 2.0 * (rest - rest[labels[i]]) / len(others) / n
    return found


def variance_of(p, values):
    mean = sum(q * v for q, v in zip(p, values, strict=True))
    return sum(q * (v - mean) ** 2 for q, v in zip(p, values, strict=True))


class Model:
    def __init__(self, probs, labels, cells):
        self.probs, self.labels, self.cells = probs, labels, cells
        n, k = probs.shape
        residuals = np.eye(k)[labels] - probs
        full = residuals if k > 2 else residuals * math.sqrt(2.0) * np.array([1.0, 0.0])
        self.gone = omitting(probs, labels, cells)
        self.changes = linear_labels(probs, labels, cells)
        self.missing, self.lone, worst = np.zeros(n), [], []
        for i in range(n):
            rows = in_cell(cells, i)
            centre = full[rows].mean(axis=0)
            scatter = sum(float(x @ x) for x in full[rows] - centre)
            promised = sum(1.0 - float(probs[j] @ probs[j]) for j in rows)
            missing = max(0.0, 1.0 - scatter / promised) if promised > 0.0 else 0.0
            self.missing[i] = 4.0 / (4.0 + len(rows)) * missing
            worst.append(sum(length(residuals[j], k) for j in rows) / len(rows) / n)
            if len(rows) == 1:
                self.lone.append(length(residuals[i], k) / n)
        self.worst = max(worst) ** 2

    @cached_property
    def estimate(self):
        return debiased_squared_error(self.probs, self.labels, self.cells)


def quadratic(a, b, paired, centred=False):
    ha, hb = (kernel(m.probs, m.labels, m.cells, centred) for m in (a, b))
    if paired:
        return 2.0 * ((ha - hb) ** 2).sum() / len(a.labels) ** 2
    return 2.0 * (ha**2).sum() / len(a.labels) ** 2 + 2.0 * (hb**2).sum() / len(b.labels) ** 2


def variance(a, b, paired, z, better):
    """Base + max(H, z² ū / 2) + 2 z² X²."""
    base, hidden, anywhere = parts(a, b, paired)
    return base + max(hidden, z * z * anywhere / 2.0) + 2.0 * z * z * better.worst


@cache
def parts(a, b, paired):
    """Base, H and ū."""
    gone = [a.gone - b.gone] if paired else [a.gone, b.gone]
    jackknife = sum((g.size - 1) / g.size * ((g - g.mean()) ** 2).sum() for g in gone)
    centred, raw = (quadratic(a, b, paired, less) for less in (True, False))
    base = max(jackknife - centred, raw, centred)
    base += 1e-14 * quadratic(a, b, False)
    hidden = anywhere = 0.0
    k = a.probs.shape[1]
    if paired:
        n = len(a.labels)
        for i in range(n):
            ca, cb = a.changes[i], b.changes[i]
            if a.labels[i] == b.labels[i]:
                by = [variance_of(m.probs[i], ca - cb) for m in (a, b)]
                anywhere += float((ca - cb) @ (ca - cb)) / n / (k - 1)
            else:
                by = [variance_of(m.probs[i], ca) + variance_of(m.probs[i], cb) for m in (a, b)]
                anywhere += float(ca @ ca + cb @ cb) / n / (k - 1)
            hidden += max(a.missing[i] * by[0], b.missing[i] * by[1])
    else:
        for m in (a, b):
            for i in range(len(m.labels)):
                hidden += m.missing[i] * variance_of(m.probs[i], m.changes[i])
                anywhere += float(m.changes[i] @ m.changes[i]) / len(m.labels) / (k - 1)
    return base, hidden, anywhere


def reach(a, b, paired, z, better, lone=True):
    normal = z * math.sqrt(variance(a, b, paired, z, better))
    if not lone:
        return normal
    total, squares = math.fsum(better.lone), math.fsum(c * c for c in better.lone)
    upper = 0.0
    if total > 0.0:
        w = max(better.lone)
        mean, spread = total + w, squares + w * w
        upper = spread / mean * float(gammaincinv(mean * mean / spread, ndtr(z)))
    return total + math.sqrt(normal**2 + (upper - total) ** 2)


def limits(a, b, paired, level):
    z, d = float(ndtri(0.5 + level / 2.0)), a.estimate - b.estimate
    low = d - reach(a, b, paired, z, b)
    return low, d + reach(a, b, paired, z, a)


def pvalue(a, b, paired, lone=True):
    d = a.estimate - b.estimate
    better, low, high = (a if d < 0.0 else b), 0.0, 38.0
    if reach(a, b, paired, 0.0, better, lone) >= abs(d):
        return 1.0
    for _ in range(100):
        z = 0.5 * (low + high)
        short = reach(a, b, paired, z, better, lone) < abs(d)
        low, high = (z, high) if short else (low, z)
    return 2.0 * float(ndtr(-low))
