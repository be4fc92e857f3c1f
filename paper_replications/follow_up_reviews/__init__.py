"""van Geloven et al. (2022) and Giardiello et al. (2023): validation of risks with follow-up."""
