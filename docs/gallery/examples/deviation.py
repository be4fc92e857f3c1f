"""Is the confidence right?

Dots are outcome minus prediction, as large as their bin has rows. Red bars hold 90 % of what a
calibrated model would show, bin by bin; filled dots lie outside. The axis shows the bins of 99 % of
the rows: a bar that goes further ends in an arrow, and so does a dot, with its value. The blue
histogram says where the predictions are.
"""

import caltest as ct

digits = ct.examples.digits("overfit")
curve = ct.reliability_curve(digits, bins=10)
picture = curve.plot()
