"""Sites: meta-analysis

Observed/expected events at every hospital, their mean, and the prediction interval for a new one.
"""

import numpy as np

import caltest as ct

rng = np.random.default_rng(2)
hospital = np.repeat(list("ABCDEFGH"), 250)
shift = np.repeat(0.4 * rng.standard_normal(8), 250)
p = rng.random(2000)
odds = p / (1 - p) * np.exp(shift)
picture = ct.meta_analysis(p, rng.random(2000) < odds / (1 + odds), by=hospital).plot()
