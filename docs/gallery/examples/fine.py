"""Simplex with a hundred cells

20 000 predictions of three classes that are too extreme.
"""

import numpy as np

import caltest as ct

rng = np.random.default_rng(3)
truth = rng.dirichlet([0.8, 0.8, 0.8], 20_000)
labels = (rng.random(20_000)[:, None] > truth.cumsum(axis=1)[:, :2]).sum(axis=1)
probs = truth**1.5 / (truth**1.5).sum(axis=1, keepdims=True)
picture = ct.reliability_simplex(probs, labels, bins=10, rng=0).plot()
