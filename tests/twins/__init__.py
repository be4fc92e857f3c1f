"""Slow twins: each quantity written once more from its paper, and not from the code."""
