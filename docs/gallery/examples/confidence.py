"""Confidence bars around observed frequencies

Confidence bars contain the true frequency of each bin, given the outcomes, and are centred at the
dots (Clopper and Pearson); consistency bars are centred at the predictions.
"""

import caltest as ct

digits = ct.examples.digits("best")
curve = ct.reliability_curve(digits, bins=10, band="confidence")
picture = curve.plot(style="classical")
