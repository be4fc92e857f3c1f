"""What the pictures draw, in numbers."""

from caltest.reliability.curve import reliability_curve
from caltest.reliability.fits import reliability_fit
from caltest.reliability.simplex import SimplexGrid, reliability_simplex

__all__ = [
    "SimplexGrid",
    "reliability_curve",
    "reliability_fit",
    "reliability_simplex",
]
