"""Three groups of classes on the triangle

Colour is the density of the predictions. Arrows lead from the average prediction to what happened:
heavy red ones are beyond chance; cells with fewer than five rows have none.
"""

import caltest as ct

digits = ct.examples.digits("overfit")
groups = ct.Partition([[0, 1, 2], [3, 4, 5], [6, 7, 8, 9]])
picture = ct.reliability_simplex(digits, lens=groups, bins=5, rng=0).plot()
