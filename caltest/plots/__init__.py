"""Pictures: the only package that knows matplotlib, and it computes nothing.

Every picture takes ``ax=``, returns a :class:`Picture` of what it drew, leaves matplotlib's
settings alone, and writes its recipe at the foot unless ``recipe=False``.
"""

from caltest.plots.canvas import Picture
from caltest.plots.comparison import comparison, difference, differences
from caltest.plots.fits import fitted
from caltest.plots.laws import estimates, null, sensitivity
from caltest.plots.reliability import reliability
from caltest.plots.simplex import tetrahedron, triangle

__all__ = [
    "Picture",
    "comparison",
    "difference",
    "differences",
    "estimates",
    "fitted",
    "null",
    "reliability",
    "sensitivity",
    "tetrahedron",
    "triangle",
]
