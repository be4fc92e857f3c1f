"""Decision curve with simultaneous limits

Net benefit of an overconfident model, of acting always and of acting never. The band contains the
whole curve in 95 % of data sets.
"""

import caltest as ct

data = ct.examples.GaussianMixture(-1.0, -1.5).sample(2000, rng=1)
picture = ct.decision_curve(data.probs[:, 1], data.labels).plot()
