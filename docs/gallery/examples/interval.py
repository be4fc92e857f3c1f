"""Confidence interval of the ECE

The estimate, its interval, and the noise floor.
"""

import caltest as ct

digits = ct.examples.digits("overfit")
picture = ct.confidence_interval(digits, n_resamples=199, rng=0).plot()
