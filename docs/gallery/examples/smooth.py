"""Smooth calibration curve

Smoothed at the scale of the error itself, with a simultaneous consistency band.
"""

import caltest as ct

digits = ct.examples.digits("overfit")
picture = ct.reliability_fit(digits, fit="smooth", simultaneous=True, rng=0).plot(style="deviation")
