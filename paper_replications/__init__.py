"""Replications of six documents on calibration: every figure, table and numbered example."""
