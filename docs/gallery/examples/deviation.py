"""Is the confidence right?

Crosses are outcome minus prediction, red bars hold 90 % of what a calibrated model would show, bin
by bin, and heavy crosses lie outside. The blue histogram says where the predictions are.
"""

import caltest as ct

digits = ct.examples.digits("overfit")
curve = ct.reliability_curve(digits, bins=10)
picture = curve.plot()
