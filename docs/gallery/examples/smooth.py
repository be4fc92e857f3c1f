"""Without bins: smooth

Smoothed at the scale of the error itself; the band is for all predictions together.
"""

import caltest as ct

digits = ct.examples.digits("overfit")
picture = ct.reliability_fit(digits, fit="smooth", simultaneous=True, rng=0).plot(style="deviation")
