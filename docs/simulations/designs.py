"""Fifty clusters of five rows: comparisons, intervals, Cox's slope, with clusters and without."""

import numpy as np
from scipy.special import ndtr

import caltest as ct

R = 200
G = np.repeat(np.arange(50), 5)


def normals(rng, share):
    """Return standard normals of which clusters share that part of the variance."""
    own, shared = rng.normal(size=G.size), rng.normal(size=50)[G]
    return np.sqrt(share) * shared + np.sqrt(1.0 - share) * own


def errors(seed, facts):
    """Return whether equal models differ, whether 0 is excluded, and whether slope 1 is."""
    rng = np.random.default_rng(seed)
    u, v = normals(rng, 0.5), normals(rng, 0.7)
    y, few = (ndtr(v) < ndtr(u)).astype(int), {"n_resamples": 199, "rng": seed} | facts
    pair = ct.compare(ndtr(u + 0.2), ndtr(u - 0.2), y, **few)
    interval = ct.confidence_interval(ndtr(u), y, **few)
    low, high = ct.cox_recalibration(ndtr(u), y, **facts).slope_interval
    return pair.pvalue <= 0.05, interval.low > 0.0, not low <= 1.0 <= high


if __name__ == "__main__":
    for name, facts in (("ignored", {}), ("known", {"clusters": G})):
        found = np.mean([errors(seed, facts) for seed in range(R)], axis=0)
        shown = zip(("compare", "interval", "Cox's slope"), found, strict=True)
        print(f"clusters {name}: " + ", ".join(f"{what} {share:.3f}" for what, share in shown))
