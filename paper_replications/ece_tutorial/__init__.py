"""A tutorial on the expected calibration error."""
