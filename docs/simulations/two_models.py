"""Two models on the same data: the smaller error has the smaller p-values."""

import caltest as ct

R, N = 500, 500
A, B = ct.examples.GaussianMixture(0.22, 0.0), ct.examples.GaussianMixture(0.0, -3.0)


if __name__ == "__main__":
    for name, model in (("A", A), ("B", B)):
        tests = [
            ct.calibration_test(model.sample(N, rng=seed), lens=ct.OneVsRest(0))
            for seed in range(R)
        ]
        print(
            f"{name}: true error {model.expected_miscalibration():.4f}, "
            f"mean ECE {sum(t.estimate for t in tests) / R:.4f}, "
            f"noise floor {sum(t.null_mean for t in tests) / R:.4f}, "
            f"p <= 0.05 in {sum(t.pvalue <= 0.05 for t in tests) / R:.3f} of data sets"
        )
