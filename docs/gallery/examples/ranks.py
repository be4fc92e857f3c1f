"""Reliability of the largest probabilities

``TopK(2)`` leaves three classes: the largest prediction, the second, and all others.
"""

import caltest as ct

digits = ct.examples.digits("overfit")
picture = ct.reliability_curve(digits, lens=ct.TopK(2), bins=8).plot()
