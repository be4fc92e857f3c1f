"""Limit laws that statistics bring along as nulls, made for the labels they are asked about."""

from __future__ import annotations

from collections.abc import Callable

from caltest.nulls import AsymptoticNull, NullDistribution
from caltest.predictions import IntArray

Law = Callable[[IntArray], NullDistribution]


def normal(mean: float, deviation: float, labels: IntArray) -> AsymptoticNull:
    """Return the normal law, the same for all labels."""
    from scipy.stats import norm

    return AsymptoticNull(norm(mean, deviation))


def chi_squared(df: int, labels: IntArray) -> AsymptoticNull:
    """Return the χ² law with ``df`` degrees of freedom, the same for all labels."""
    from scipy.stats import chi2

    return AsymptoticNull(chi2(df))
