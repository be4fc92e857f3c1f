"""Right for every class, wrong in every prediction

Six predictions whose confidence and single probabilities are all calibrated; only whole vectors
show the error.
"""

import caltest as ct

sample = ct.examples.SixPoints().sample(3000, rng=1)
picture = ct.reliability_simplex(sample, bins=4, rng=0).plot()
