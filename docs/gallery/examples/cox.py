"""Calibration slope and intercept: Cox recalibration

The fitted logistic recalibration line with 95 % bands.
"""

import caltest as ct

picture = ct.cox_recalibration(ct.examples.digits("overfit")).plot()
