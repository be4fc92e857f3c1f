"""Reliability diagrams of every class

One panel per class, one-vs-rest; with more than twelve classes, the twelve with the smallest
p-values.
"""

import caltest as ct

digits = ct.examples.digits("overfit")
picture = ct.reliability_curve(digits, lens=ct.Canonical(), bins=8).plot()
