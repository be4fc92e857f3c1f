"""Vaicenavicius et al. (2019): Evaluating model calibration in classification."""
