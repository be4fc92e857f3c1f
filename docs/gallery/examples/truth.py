"""True calibration curve of simulated data

A misspecified logistic model of two Gaussian classes, 10 000 predictions; the green line is the
true curve.
"""

import caltest as ct

model = ct.examples.GaussianMixture(1.0, 1.0)
curve = ct.reliability_curve(model.sample(10_000, rng=1), lens=ct.OneVsRest(0), bins=10)
picture = curve.plot(truth=model.calibration_function)
