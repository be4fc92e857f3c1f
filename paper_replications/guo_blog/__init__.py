"""A blog post on Guo et al. (2017): On calibration of modern neural networks."""
