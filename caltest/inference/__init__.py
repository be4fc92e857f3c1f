"""The verbs."""

from caltest.inference.calibration import calibration_test

__all__ = ["calibration_test"]
