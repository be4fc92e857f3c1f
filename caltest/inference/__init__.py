"""The verbs."""

from caltest.inference.calibration import calibration_test
from caltest.inference.comparison import compare

__all__ = ["calibration_test", "compare"]
