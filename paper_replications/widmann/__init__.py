"""Widmann, Lindsten & Zachariah (2019): Calibration tests in multi-class classification."""
