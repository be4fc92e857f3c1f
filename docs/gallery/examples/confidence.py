"""Confidence bars are something else

They hold the true frequency of each bin, given the outcomes; they stand around the dots, not
around the line. Here by Clopper and Pearson.
"""

import caltest as ct

digits = ct.examples.digits("best")
curve = ct.reliability_curve(digits, bins=10, band="confidence")
picture = curve.plot(style="classical")
