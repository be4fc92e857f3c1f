"""Forest plot of subgroups

The error of every subgroup beside its noise floor, with adjusted p-values.
"""

import numpy as np

import caltest as ct

rng = np.random.default_rng(1)
p, ward = rng.random(1500), rng.choice(["north", "east", "south", "west"], 1500)
y = rng.random(1500) < np.where(ward == "east", p**1.5, p)
picture = ct.calibration_test(p, y, by=ward).subgroups.plot()
