"""How unusual is the error?

The exact law of the error of a calibrated model with these predictions, its mean (the noise floor),
and what was observed.
"""

import caltest as ct

digits = ct.examples.digits("best")
picture = ct.calibration_test(digits).plot()
