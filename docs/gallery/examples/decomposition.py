"""Decomposition of the Brier score

From the score of the constant forecast to the score of the model: the gain from discrimination and
the cost of miscalibration.
"""

import caltest as ct

picture = ct.corp_decomposition(ct.examples.digits("overfit")).plot()
