"""Segments with simultaneous intervals

Observed − predicted of the segments found by a search, with intervals that account for the search.
"""

import numpy as np

import caltest as ct

rng = np.random.default_rng(1)
age, site = rng.integers(20, 90, 3000), rng.choice(["A", "B", "C"], 3000)
p = rng.uniform(0.1, 0.6, 3000)
higher = 0.25 * ((age > 70) & (site == "B")) - 0.1 * (site == "C")
y = rng.random(3000) < np.clip(p + higher, 0, 1)
picture = ct.segment_search(p, y, {"age": age, "site": site}, rng=0).plot()
