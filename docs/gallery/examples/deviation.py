"""Reliability diagram: observed − predicted

Dots are observed − predicted, with an area proportional to the number of observations. Red bars
are 90 % consistency intervals, bin by bin; filled dots lie outside. The axis shows the bins of 99
% of the observations: a longer bar or a dot beyond the axis ends in an arrow. The blue histogram
shows the distribution of the predictions.
"""

import caltest as ct

digits = ct.examples.digits("overfit")
curve = ct.reliability_curve(digits, bins=10)
picture = curve.plot()
