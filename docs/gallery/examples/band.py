"""Confidence band of the calibration curve

The band contains the whole calibration curve with the stated probability, at any sample size, if
the event rate increases with the prediction. Where it excludes the diagonal, the model is
miscalibrated.
"""

import caltest as ct

model = ct.examples.GaussianMixture(0.5, -3)
curve = ct.reliability_fit(model.sample(20_000, rng=1), fit="band")
picture = curve.plot(truth=lambda p: 1 - model.calibration_function(1 - p))
