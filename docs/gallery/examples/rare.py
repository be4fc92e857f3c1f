"""Rare events on a log-odds axis

20 000 predictions of an event with a rate of 1 %, underestimated by a third. Bins without an event
would be triangles at the edge.
"""

import numpy as np

import caltest as ct

rng = np.random.default_rng(0)
p = 1 / (1 + np.exp(-rng.normal(-5.0, 1.5, 20_000)))
happened = rng.random(p.size) < np.minimum(1.5 * p, 1.0)
curve = ct.reliability_curve(p, happened, lens=ct.OneVsRest(1), bins=ct.QuantileBins(12))
picture = curve.plot(axis="log-odds")
