"""Pictures: the only package that knows matplotlib, and it computes nothing.

Every picture takes ``ax=`` (where to draw; by default a new figure, one column or 3.25 inches wide)
and ``recipe=`` (whether to write at the foot how it was made; by default it is), returns a
:class:`Picture` of what it drew, and leaves matplotlib's settings alone.
"""

from caltest.plots.canvas import Picture
from caltest.plots.comparison import comparison, difference
from caltest.plots.curves import evidence, fitted, sensitivity
from caltest.plots.laws import null
from caltest.plots.reliability import reliability
from caltest.plots.results import draw
from caltest.plots.simplex import simplex
from caltest.plots.tables import differences, forest, pvalues, sites

__all__ = [
    "Picture",
    "comparison",
    "difference",
    "differences",
    "draw",
    "evidence",
    "fitted",
    "forest",
    "null",
    "pvalues",
    "reliability",
    "sensitivity",
    "simplex",
    "sites",
]
