"""What the pictures draw, in numbers."""

from caltest.reliability.curve import reliability_curve
from caltest.reliability.difference import reliability_difference
from caltest.reliability.fits import reliability_fit
from caltest.reliability.sensitivity import bin_sensitivity
from caltest.reliability.simplex import SimplexGrid, reliability_simplex

__all__ = [
    "SimplexGrid",
    "bin_sensitivity",
    "reliability_curve",
    "reliability_difference",
    "reliability_fit",
    "reliability_simplex",
]
