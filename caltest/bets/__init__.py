"""Bets against calibration: a mixture of fixed alternatives, and what it has earned."""
