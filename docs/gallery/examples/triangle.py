"""Simplex: three groups of classes

Colour is the density of the predictions. Arrows lead from the mean prediction to the observed
frequencies: heavy red ones are significant; cells with fewer than five observations have none.
"""

import caltest as ct

digits = ct.examples.digits("overfit")
groups = ct.Partition([[0, 1, 2], [3, 4, 5], [6, 7, 8, 9]])
picture = ct.reliability_simplex(digits, lens=groups, bins=5, rng=0).plot()
