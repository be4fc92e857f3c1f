"""Simulation studies that prove, or bound, what the tests promise."""
