"""Where the true curve lies

The band holds the whole true curve with its probability, at any number of rows, if more predicted
means more frequent. Where it leaves the diagonal there is an error, and at least so large.
"""

import caltest as ct

model = ct.examples.GaussianMixture(0.5, -3)
curve = ct.reliability_fit(model.sample(20_000, rng=1), fit="band")
picture = curve.plot(truth=lambda p: 1 - model.calibration_function(1 - p))
