"""Slow twins of the recalibration methods, written from the papers and with other algorithms."""

import numpy as np


def softmax(z):
    e = np.exp(z - z.max(axis=1, keepdims=True))
    return e / e.sum(axis=1, keepdims=True)


def nll(probs, labels):
    return -np.mean([np.log(row[label]) for row, label in zip(probs, labels, strict=True)])


def temperature(logits, labels, low=1e-3, high=1e3):
    """Golden-section search of the likelihood over log T (Guo et al. 2017, Eq. 9)."""
    a, b = np.log(low), np.log(high)
    ratio = (np.sqrt(5.0) - 1.0) / 2.0

    def loss(s):
        return nll(softmax(logits / np.exp(s)), labels)

    while b - a > 1e-9:
        c, d = b - ratio * (b - a), a + ratio * (b - a)
        if loss(c) < loss(d):
            b = d
        else:
            a = c
    return np.exp(0.5 * (a + b))


def logistic_curve(a, b, c, p):
    """Beta calibration's curve as a ratio of powers (Kull et al. 2017, Eq. 4)."""
    ratio = np.exp(c) * p**a / (1.0 - p) ** b
    return ratio / (1.0 + ratio)


def one_vs_rest(curves, probs):
    """Every class by its own curve; rows divided by their sum, rows of zeros uniform."""
    rows = []
    for row in probs:
        values = np.array([curve(p) for curve, p in zip(curves, row, strict=True)])
        rows.append(values / values.sum() if values.sum() > 0 else np.full(len(row), 1 / len(row)))
    return np.array(rows)
