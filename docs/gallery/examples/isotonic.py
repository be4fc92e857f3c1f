"""Isotonic calibration curve (CORP)

The isotonic curve chooses its bins itself; the band is the consistency band.
"""

import caltest as ct

digits = ct.examples.digits("overfit")
picture = ct.reliability_fit(digits, rng=0).plot()
