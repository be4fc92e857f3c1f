"""What dependence does: rows that come in clusters of m share prediction and label."""

import numpy as np

import caltest as ct

R, N, KNOWN = 1000, 1000, 300


def share_rejected(m, runs, known):
    """Return the share of calibrated data sets, in clusters of m rows, with p at most 0.05."""
    rejected = 0
    for seed in range(runs):
        rng = np.random.default_rng([m, seed])
        p = rng.random(N // m)
        y = (rng.random(N // m) < p).astype(int)
        facts = {"clusters": np.repeat(np.arange(N // m), m)} if known else {}
        options = {"n_resamples": 199, "rng": seed} | facts
        result = ct.calibration_test(np.repeat(p, m), np.repeat(y, m), **options)
        rejected += result.pvalue <= 0.05
    return rejected / runs


if __name__ == "__main__":
    for m in (1, 2, 5, 10):
        ignored, known = share_rejected(m, R, False), share_rejected(m, KNOWN, True)
        print(f"clusters of {m}: ignored {ignored:.3f}, known {known:.3f}", flush=True)
