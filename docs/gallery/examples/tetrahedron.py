"""Four groups in the tetrahedron

The same for four classes; in a window it can be turned.
"""

import caltest as ct

digits = ct.examples.digits("overfit")
groups = ct.Partition([[0, 1], [2, 3], [4, 5, 6], [7, 8, 9]])
picture = ct.reliability_simplex(digits, lens=groups, bins=4, rng=0).plot()
