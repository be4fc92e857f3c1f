"""The verbs."""

from caltest.inference.calibration import calibration_test
from caltest.inference.comparison import compare
from caltest.inference.intervals import confidence_interval

__all__ = ["calibration_test", "compare", "confidence_interval"]
