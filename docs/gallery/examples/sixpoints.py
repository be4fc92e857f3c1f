"""Calibrated for every class, miscalibrated as a vector

Six predictions whose confidence and single probabilities are all calibrated; only the canonical
lens shows the error.
"""

import caltest as ct

sample = ct.examples.SixPoints().sample(3000, rng=1)
picture = ct.reliability_simplex(sample, bins=4, rng=0).plot()
