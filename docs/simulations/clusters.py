"""What dependence does: rows that come in clusters of m share prediction and label."""

import numpy as np

import caltest as ct

R, N = 1000, 1000


def share_rejected(m):
    """Return the share of R calibrated data sets, in clusters of m rows, with p at most 0.05."""
    rejected = 0
    for seed in range(R):
        rng = np.random.default_rng([m, seed])
        p = rng.random(N // m)
        y = (rng.random(N // m) < p).astype(int)
        result = ct.calibration_test(np.repeat(p, m), np.repeat(y, m))
        rejected += result.pvalue <= 0.05
    return rejected / R


if __name__ == "__main__":
    for m in (1, 2, 5, 10):
        print(f"clusters of {m}: {share_rejected(m):.3f}", flush=True)
