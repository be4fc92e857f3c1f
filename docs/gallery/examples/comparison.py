"""Reliability diagrams of two models

The same network at two epochs; filled marks lie outside their consistency bars.
"""

import caltest as ct
from caltest import plots

models = {"last epoch": "overfit", "best epoch": "best"}
curves = [ct.reliability_curve(ct.examples.digits(s), bins=10) for s in models.values()]
picture = plots.comparison(curves, names=list(models))
