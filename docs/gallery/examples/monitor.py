"""Monitoring with an e-value

An overconfident model under a monitor; the inset shows the correction of the leading expert.
"""

import caltest as ct

data = ct.examples.GaussianMixture(0, -2.6).sample(6000, rng=1)
picture = ct.Monitor(alpha=0.01).update(data).plot()
