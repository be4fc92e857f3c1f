"""Rows as a monitor sees them: one that comes alone, and the sums of many."""

from __future__ import annotations

from math import nan

import numpy as np

from caltest._base.arrays import FloatArray, IntArray
from caltest.results.numbers import percent


def sums_after(sums: tuple[float, ...], probs: FloatArray, labels: IntArray) -> FloatArray:
    """Return the sums of 1, p and y after every row, the same however rows are split.

    p and y are those of the event, of more than two classes of the likeliest.
    """
    rows = np.arange(len(probs))
    top = probs.argmax(axis=1) if probs.shape[1] > 2 else np.zeros_like(labels)
    addends = np.column_stack([np.ones(len(rows)), probs[rows, top], labels == top])
    return np.vstack([sums, addends]).cumsum(axis=0)[1:]


def means_of(
    sums: tuple[float, ...], before: tuple[float, ...] = (0.0, 0.0, 0.0)
) -> tuple[float, float]:
    """Return Σ p and Σ y by the number of rows, of those that were not there before."""
    n, predicted, observed = np.subtract(sums, before).tolist()
    return (predicted / n, observed / n) if n else (nan, nan)


def in_words(n: int, sums: tuple[float, ...], at_alarm: tuple[float, ...] | None) -> str:
    """Say what was predicted and observed in all rows, and in those since the alarm."""
    texts = list[str]()
    for before in [(0.0, 0.0, 0.0), *([] if at_alarm is None else [at_alarm])]:
        if sums[0] > before[0]:
            mean, rate = means_of(sums, before)
            texts.append(f"predicted {percent(mean, rate)}, observed {percent(rate, mean)}")
    if not texts:
        return "no rows yet"
    texts[0] += f" (last {sums[0]:.0f} rows)" * (sums[0] < n)  # an older state had no sums
    return "; since the alarm ".join(texts)


def one_row(probs: object, labels: object) -> FloatArray | None:
    """Return p, 1 − p, label and weight of a row given as two numbers, or in lists; else None."""
    if isinstance(probs, (list, np.ndarray)) and isinstance(labels, (list, np.ndarray)):
        if len(probs) != 1 or len(labels) != 1:
            return None
        probs, labels = probs[0], labels[0]
    if not isinstance(probs, float) or not isinstance(labels, (int, np.integer, np.bool_)):
        return None
    if not (0.0 <= probs <= 1.0 and 0 <= labels <= 1):
        return None
    return np.array([[probs, 1.0 - probs, labels, 1.0]])
