"""Three groups of classes on the triangle

Colour is the share of the predictions in a cell. Arrows lead from the average prediction to what
happened: red ones are beyond chance, grey ones rest on fewer than five rows.
"""

import caltest as ct

digits = ct.examples.digits("overfit")
groups = ct.Partition([[0, 1, 2], [3, 4, 5], [6, 7, 8, 9]])
picture = ct.reliability_simplex(digits, lens=groups, bins=5, rng=0).plot()
