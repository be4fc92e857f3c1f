"""How often is an overconfident model found? Five statistics on the same data."""

import caltest as ct

R, B, N = 500, 199, 500
MODEL = ct.examples.GaussianMixture(0.0, -2.6)


def slope(probs, labels):
    """Return |Σ (y − p)(1 − 2p)|, the numerator of Spiegelhalter's statistic."""
    y = labels == 0
    p = probs[:, 0]
    return abs(((y - p) * (1.0 - 2.0 * p)).sum())


if __name__ == "__main__":
    print(f"true miscalibration {MODEL.expected_miscalibration():.4f}")
    for statistic in (ct.ECE(5), ct.ECE(15), ct.ECE(50), ct.MCE(15), slope):
        rejected = 0
        for seed in range(R):
            test = ct.calibration_test(
                MODEL.sample(N, rng=seed), None, statistic, lens=ct.OneVsRest(0),
                null=ct.RedrawLabels(), n_resamples=B, rng=seed,
            )  # fmt: skip
            rejected += test.pvalue <= 0.05
        print(f"{test.statistic}: {rejected / R:.3f}", flush=True)
