"""Predictions and labels that the studies share: functions of a stream and a number of rows."""

from __future__ import annotations

import numpy as np


def two_classes(p):
    """Return rows of probabilities from those of class 1."""
    return np.column_stack([1.0 - p, p])


def labels_from(probs, rng):
    """Draw a label for every row; one of probability 0 is never drawn."""
    cumulative = np.cumsum(probs, axis=1)[:, :-1]
    labels = (rng.random(len(probs))[:, None] >= cumulative).sum(axis=1)
    return np.where(probs[np.arange(len(labels)), labels] > 0, labels, probs.argmax(axis=1))


def binary(sample, rng, n):
    return two_classes(sample(rng, n))


def uniform(rng, n):
    return rng.random(n)


def confident(rng, n):
    p = rng.beta(20.0, 0.5, n)
    return np.where(rng.random(n) < 0.5, p, 1.0 - p)


def rare(rng, n):
    return rng.beta(0.5, 40.0, n)


def gamma(shape, scale, rng, n):
    """Risks of a rare event, its rate about shape times scale."""
    return np.clip(rng.gamma(shape, scale, n), 1e-6, 0.9)


def constant(p, rng, n):
    return np.full(n, p)


def values(choices, rng, n):
    """Few distinct predictions, equally likely."""
    return rng.choice(np.array(choices), n)


def two_values(pair, share, rng, n):
    """Two distinct predictions, the first in a share of the rows."""
    return np.where(rng.random(n) < share, *pair)


def tied(rng, n):
    return rng.integers(1, 10, n) / 10.0


def certain(rng, n):
    return np.clip(rng.uniform(-0.3, 1.3, n), 0.0, 1.0)


def single(digits, rng, n):
    """Decimals as 32-bit numbers."""
    return np.round(rng.random(n), digits).astype(np.float32)


def dirichlet(concentration, n_classes, rng, n):
    return rng.dirichlet(np.full(n_classes, concentration), n)


def rounded(n_classes, rng, n):
    counts = rng.multinomial(10, rng.dirichlet(np.ones(n_classes), n))
    return counts / 10.0
