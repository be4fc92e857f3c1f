"""Every class

One panel a class, against the rest; with more than twelve, the twelve with the smallest p-values.
"""

import caltest as ct

digits = ct.examples.digits("overfit")
picture = ct.reliability_curve(digits, lens=ct.Canonical(), bins=8).plot()
