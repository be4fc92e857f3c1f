"""Conditions on features: what they are called, and which rows meet them."""

from __future__ import annotations

from typing import Literal

import numpy as np

from caltest._base.arrays import BoolArray
from caltest._base.features import Feature
from caltest.errors import StatisticError

Kind = Literal["number", "date", "level", "other", "missing"]
#: Column, kind, low < x ≤ high, and the level, or of "other" those that are not meant.
Condition = tuple[str, Kind, float | str | None, float | str | None, str | tuple[str, ...] | None]


def words_of(condition: Condition) -> str:
    """Return a condition as people write it, such as "age > 71"."""
    name, kind, low, high, level = condition
    if kind in ("other", "missing"):
        return f"{name} {kind}"
    if kind == "level":
        return f"{name} = {level}"
    low, high = (_written(v) if isinstance(v, float) else v for v in (low, high))
    if low is None or high is None:
        return f"{name} <= {high}" if low is None else f"{name} > {low}"
    return f"{low} < {name} <= {high}"


def _written(edge: float) -> str:
    if 0.0 < abs(edge) < 1e-4:
        return np.format_float_scientific(edge, trim="-")
    return np.format_float_positional(edge, trim="-")


def holds(condition: Condition, feature: Feature) -> BoolArray:
    """Return the rows of a column that meet a condition."""
    _, kind, low, high, level = condition
    if kind == "missing":
        return feature.missing
    if (kind in ("level", "other")) != (feature.levels is not None):
        held = "numbers" if feature.levels is None else "text"
        raise StatisticError(
            f"features: {feature.name!r} holds {held}, the search saw other values"
        )
    if feature.levels is not None:
        names = np.array(("", *(feature.levels or ())))  # the first of what is missing
        texts = names[np.where(feature.missing, 0, feature.values + 1).astype(np.int64)]
        return np.isin(texts, np.asarray(level), invert=kind == "other") & ~feature.missing
    ends = [
        np.datetime64(v, "us").astype(np.int64) if isinstance(v, str) else v for v in (low, high)
    ]
    within = ~feature.missing
    if ends[0] is not None:
        within &= feature.values > ends[0]
    return within if ends[1] is None else within & (feature.values <= ends[1])
