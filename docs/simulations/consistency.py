"""How often does a test at level 0.05 reject a calibrated model? Three nulls, a few partitions."""

import numpy as np

import caltest as ct

R, B, ALPHA = 1000, 199, 0.05


def calibrated(n, alpha, rng):
    """Draw n predictions from a Dirichlet distribution, and labels from the predictions."""
    probs = rng.dirichlet(alpha, size=n)
    labels = (rng.random(n)[:, None] >= np.cumsum(probs, axis=1)[:, :-1]).sum(axis=1)
    return ct.Predictions.of(probs, labels)


def share_rejected(n, alpha, lens, statistic, null):
    """Return the share of R calibrated data sets with p at most ALPHA, and the mean cell size."""
    rejected, cells = 0, 0
    for seed in range(R):
        data = lens(calibrated(n, alpha, np.random.default_rng([0, seed])))
        estimate = statistic(data)
        cells += np.unique(statistic.bins(data.probs)).size
        if null == "exact":
            p = ct.calibration_test(data, None, statistic, lens=ct.Canonical(), null=null).pvalue
        else:
            law = ct.replicate(
                data, statistic, null, n_resamples=B, rng=np.random.default_rng([1, seed])
            )
            p = (1 + round(B * law.sf(estimate))) / (1 + B)
        rejected += p <= ALPHA
    return rejected / R, n * R / cells


if __name__ == "__main__":
    rows = [(100, [1, 1], ct.OneVsRest(0), ct.ECE(m)) for m in (10, 50, 100)]
    rows += [(1000, [1, 1], ct.OneVsRest(0), ct.ECE(m)) for m in (15, 500)]
    rows += [(250, [0.1] * 10, ct.Canonical(), ct.ECE(bins))
             for bins in (ct.VarianceTree(20), ct.VarianceTree(5), ct.UniformBins(10))]  # fmt: skip
    for n, alpha, lens, statistic in rows:
        nulls = [ct.RedrawLabels(), ct.ConsistencyResampling()]
        if len(alpha) == 2 and statistic.bins.n_bins <= 100:  # with 500 the exact law takes seconds
            nulls.append("exact")
        for null in nulls:
            share, size = share_rejected(n, alpha, lens, statistic, null)
            setting = f"n={n} K={len(alpha)} {statistic.bins!r} rows/cell={size:.1f} {null}"
            print(f"{setting}: {share:.3f}", flush=True)
