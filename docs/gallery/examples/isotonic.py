"""Without bins: isotonic regression

The CORP curve chooses its bins itself; the band holds the curves of a calibrated model.
"""

import caltest as ct

digits = ct.examples.digits("overfit")
picture = ct.reliability_fit(digits, rng=0).plot()
