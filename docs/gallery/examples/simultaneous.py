"""Simultaneous consistency bars, equal-mass bins

All dots of a calibrated model lie inside *simultaneous* bars in 90 % of data sets, so a single
filled dot is significant. Here all are inside, but the test rejects: the dots lie on one side,
which the bar of a single bin cannot show. Equal-mass bins give all bars the same number of
observations.
"""

import caltest as ct

digits = ct.examples.digits("best")
curve = ct.reliability_curve(digits, bins=ct.QuantileBins(10), simultaneous=True)
picture = curve.plot()
