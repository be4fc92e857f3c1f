"""Values that can be tested, but are probably not what they were taken for."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from caltest._base.arrays import FloatArray, IntArray, largest
from caltest._base.reading import as_array

#: Labels that are all predicted are doubted when so many misses were to be expected; values that
#: look like something else, when there are more than so many rows.
MISSES = 7.0


def doubts(
    probs: FloatArray, labels: IntArray, given: Any, from_logits: bool, folds: bool = False
) -> Iterator[str]:
    """Say what the values may be in truth."""
    top, n = largest(probs), len(probs)
    if not folds and _fitted(probs, labels):
        yield (
            "predictions add up to exactly the number of events: were they fitted to these labels, "
            "or cross-validated? Test rows that were not used, or pass folds="
        )
    missed = float((1.0 - top).sum())
    if from_logits:
        values = as_array(given, "probs").astype(np.float64)
        whole = n > MISSES if values.ndim == 1 else np.allclose(values.sum(axis=1), 1.0, 1e-3)
        if whole and values.min() >= 0.0 and values.max() <= 1.0:
            yield "from_logits was asked for, but the values look like probabilities already"
    elif top.min() == 1.0 and n > MISSES:
        yield "all probabilities are 0 or 1: these may be class labels, not probabilities"
    elif missed >= MISSES and all(
        np.array_equal(probs[:some].argmax(axis=1), labels[:some]) for some in (1000, None)
    ):
        if labels.min() == labels.max():
            return  # no event among rare ones
        yield (
            f"every label is the class of the largest probability, where {missed:.0f} misses of "
            f"{n} were to be expected: these may be predicted classes, not what was observed"
        )


def _fitted(probs: FloatArray, labels: IntArray) -> bool:
    """Say whether residuals of every class add up to 0, where chance would not have them do so."""
    sums = probs.sum(axis=0) - np.bincount(labels, minlength=probs.shape[1])
    if np.abs(sums).max() >= 1e-6 or (1.0 - np.square(probs).sum(axis=1)).sum() < 2.0 * MISSES:
        return False
    thousandths = 1000.0 * probs
    return bool(np.abs(thousandths - np.rint(thousandths)).max() > 1e-9)
