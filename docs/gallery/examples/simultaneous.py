"""All bars at once, bins of equal mass

With a calibrated model all dots lie inside *simultaneous* bars in 90 % of data sets, so that a
single filled dot means something. Here all are inside, and yet the test rejects: they lie on one
side, which no bar of a single bin can see. Equal-mass bins give all bars the same number of rows.
"""

import caltest as ct

digits = ct.examples.digits("best")
curve = ct.reliability_curve(digits, bins=ct.QuantileBins(10), simultaneous=True)
picture = curve.plot()
