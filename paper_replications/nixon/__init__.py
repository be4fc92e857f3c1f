"""Nixon et al. (2019): Measuring calibration in deep learning."""
