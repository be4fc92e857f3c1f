"""Van Calster et al. (2025): a review of performance measures for prediction models."""
