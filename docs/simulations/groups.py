"""How often subgroups look unlike that are alike, and what intervals over sites cover."""

import numpy as np
from scipy.special import expit

import caltest as ct

R = 300


def unlike(n, groups, slope, shift):
    """Return the share of data sets whose subgroups are called unlike, at 0.05."""
    found = 0
    for seed in range(R):
        rng = np.random.default_rng([n, groups, seed])
        p = rng.beta(0.5, 0.5, n)
        part = (groups * (0.6 * p + 0.4 * rng.random(n))).astype(int)  # their predictions differ
        logit = slope * np.log(p / (1 - p)) + 0.5 * (slope < 1) + shift * (part == 0)
        options = {"by": part, "n_resamples": 199, "rng": seed}
        test = ct.calibration_test(p, rng.random(n) < expit(logit), **options)
        found += (test.subgroups.alike_pvalue or 1.0) <= 0.05  # None: no predictions in common
    return found / R


def covered(k, low, high, spread, slopes):
    """Return how often intervals and prediction intervals of intercept and slope hold."""
    held = np.zeros(4)
    for seed in range(R):
        rng = np.random.default_rng([k, low, seed])
        sizes = np.exp(rng.uniform(np.log(low), np.log(high), k)).astype(int)
        site = np.repeat(np.arange(k), sizes)
        a, b = spread * rng.standard_normal(k + 1), 1 + slopes * rng.standard_normal(k + 1)
        z = rng.normal(-1, 1.2, site.size)
        found = ct.meta_analysis(
            expit(z), rng.random(site.size) < expit(a[site] + b[site] * z), by=site
        )
        for j, (effect, mean, new) in enumerate(
            [(found.intercept, 0.0, a[k]), (found.slope, 1.0, b[k])]
        ):
            held[2 * j] += effect.interval[0] <= mean <= effect.interval[1]
            held[2 * j + 1] += effect.prediction[0] <= new <= effect.prediction[1]
    return held / R


def covered_curves(k, low, high):
    """Return how often intervals of the mean curve, and of a new site's, hold at five risks."""
    risks = np.array([0.07, 0.14, 0.27, 0.48, 0.73])
    at = np.log(risks / (1 - risks))
    held = np.zeros((2, at.size))
    for seed in range(R):
        rng = np.random.default_rng([k, low, high, seed])
        sizes = np.exp(rng.uniform(np.log(low), np.log(high), k)).astype(int)
        site = np.repeat(np.arange(k), sizes)
        a, b = 0.3 * rng.standard_normal(k + 1), 1 + 0.15 * rng.standard_normal(k + 1)
        z = rng.normal(-1, 1.2, site.size)
        y = rng.random(site.size) < expit(a[site] + b[site] * z)
        curve = ct.meta_analysis(expit(z), y, by=site, curve=True).curve
        for j, (ends, truth) in enumerate(
            [(curve.interval, expit(at)), (curve.prediction, expit(a[k] + b[k] * at))]
        ):
            low_end, high_end = (np.interp(risks, curve.at, end) for end in ends.T)
            held[j] += (low_end <= truth) & (truth <= high_end)
    return held.ravel() / R


if __name__ == "__main__":
    for n, groups in ((200, 2), (200, 5), (1000, 2), (1000, 5)):
        shares = [unlike(n, groups, slope, shift) for slope in (1.0, 0.5) for shift in (0.0, 0.7)]
        print(n, groups, *(f"{share:.3f}" for share in shares), flush=True)
    designs = ((5, 100, 1000, 0.0, 0.0), (5, 100, 1000, 0.3, 0.0), (10, 100, 1000, 0.3, 0.0))
    for design in (*designs, (10, 300, 1000, 0.3, 0.15), (20, 100, 300, 0.3, 0.15)):
        print(*design, *(f"{share:.3f}" for share in covered(*design)), flush=True)
    for design in ((5, 300, 1000), (10, 300, 1000), (20, 300, 1000), (10, 100, 1000)):
        print(*design, *(f"{share:.3f}" for share in covered_curves(*design)), flush=True)
