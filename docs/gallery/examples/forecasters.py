"""Comparing two forecasters over time

Evidence that either forecaster is better, and the mean difference of their scores with a
confidence sequence.
"""

import caltest as ct

data = ct.examples.GaussianMixture(0, -2.6).sample(6000, rng=1)
p = data.probs[:, 1]
odds = (p / (1 - p)) ** (2 / 2.6)
picture = ct.ComparisonMonitor().update(p, odds / (1 + odds), data.labels).plot()
