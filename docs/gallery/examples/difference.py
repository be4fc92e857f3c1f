"""Difference of two models

Observed − predicted of the first model minus the second, with simultaneous 90 % confidence bars.
"""

import caltest as ct

last, best = ct.examples.digits("overfit"), ct.examples.digits("best")
names = ("last epoch", "best epoch")
curve = ct.reliability_difference(last, best, names=names, bins=8, simultaneous=True)
picture = curve.plot()
