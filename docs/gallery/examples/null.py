"""Null distribution and noise floor

The exact null distribution of the error, its mean (the noise floor), and the observed error.
"""

import caltest as ct

digits = ct.examples.digits("best")
picture = ct.calibration_test(digits).plot()
