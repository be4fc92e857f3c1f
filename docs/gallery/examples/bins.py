"""Sensitivity of the ECE to the number of bins

The estimate hardly changes; the noise floor does, and with it the p-value (dashed: 0.05).
"""

import caltest as ct

digits = ct.examples.digits("best")
picture = ct.bin_sensitivity(digits).plot()
