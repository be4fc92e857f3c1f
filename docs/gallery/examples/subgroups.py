"""Reliability diagrams of subgroups

One panel per subgroup, on the same scales.
"""

import numpy as np

import caltest as ct

rng = np.random.default_rng(1)
p, ward = rng.random(1500), rng.choice(["north", "east", "south", "west"], 1500)
y = rng.random(1500) < np.where(ward == "east", p**1.5, p)
picture = ct.reliability_curve(p, y, by=ward, bins=8).plot()
