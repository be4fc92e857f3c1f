"""The verbs."""

from .calibration import calibration_test
from .comparison import compare
from .intervals import confidence_interval

__all__ = ["calibration_test", "compare", "confidence_interval"]
