"""Four classes in a tetrahedron

A view from outside; arrows towards the viewer look short.
"""

import caltest as ct

digits = ct.examples.digits("overfit")
groups = ct.Partition([[0, 1], [2, 3], [4, 5, 6], [7, 8, 9]])
picture = ct.reliability_simplex(digits, lens=groups, bins=3, rng=0).plot()
