"""Replications of five documents on calibration: every figure, table and numbered example."""
