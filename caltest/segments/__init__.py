"""Segments of features, and the search for those in which a model is miscalibrated."""

from caltest.segments.search import segment_search

__all__ = ["segment_search"]
