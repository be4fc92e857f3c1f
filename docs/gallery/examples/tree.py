"""Simplex with adaptive cells

Cells hold about equal numbers of predictions and are drawn as far as these reach; small cells mean
dense predictions.
"""

import caltest as ct

digits = ct.examples.digits("overfit")
groups = ct.Partition([[0, 1, 2], [3, 4, 5], [6, 7, 8, 9]])
picture = ct.reliability_simplex(digits, lens=groups, bins=ct.VarianceTree(30), rng=0).plot()
