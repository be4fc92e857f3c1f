"""Cells that follow the data

Each holds about as many predictions as any other, and is drawn as far as these reach; the smaller
it is, the denser they lie.
"""

import caltest as ct

digits = ct.examples.digits("overfit")
groups = ct.Partition([[0, 1, 2], [3, 4, 5], [6, 7, 8, 9]])
picture = ct.reliability_simplex(digits, lens=groups, bins=ct.VarianceTree(30), rng=0).plot()
