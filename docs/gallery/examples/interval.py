"""How large is the error?

The estimate, its interval, and what a calibrated model would show: the noise floor.
"""

import caltest as ct

digits = ct.examples.digits("overfit")
picture = ct.confidence_interval(digits, n_resamples=199, rng=0).plot()
