"""Rows that occur several times.

Sorted by their predictions, neighbours have about the same chance of different outcomes, whether
their probabilities are equal or only close. Equal ones that (nearly) never differ are copies, and
so are rows that all occur equally often, with many digits.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from caltest._base.arrays import FloatArray, IntArray, largest
from caltest._base.reading import as_array

#: Rows that are looked at first; of more, those whose confidence is drawn by lot.
ROWS = 20_000
#: Neighbours among which the chance of different outcomes counts as constant.
TOGETHER = 32
#: Logarithm of the chance below which agreement is no chance.
SURPRISE = float(np.log(1e-4))
#: So many different rows do not all occur equally often by chance; columns that tell rows apart.
EQUALLY_OFTEN, COLUMNS = 20, 16


def row_numbers(values: IntArray) -> NDArray[np.uint64]:
    """Return a 64-bit number for every row of whole numbers (n, K), equal where rows are."""
    odd = np.random.default_rng(0).integers(2**63, size=(values.shape[1],), dtype=np.uint64) * 2 + 1
    numbers = np.zeros(len(values), dtype=np.uint64)
    for k in range(values.shape[1]):
        mixed = values[:, k].view(np.uint64) * odd[k]
        numbers ^= mixed ^ (mixed >> np.uint64(29))
    return numbers


def n_copies(probs: FloatArray, labels: IntArray) -> int:
    """Return how many rows repeat another, probabilities and label; 0 where chance explains it."""
    n, rows = len(probs), np.arange(len(probs))
    if n > ROWS:  # copies are drawn together; what is certain never differs
        p = largest(probs)
        lots = (p.view(np.uint64) * np.uint64(0x9E3779B97F4A7C15)) >> np.uint64(32)
        rows = np.flatnonzero((lots % np.uint64(n // ROWS + 1) == 0) & (p < 1.0))
    if rows.size < 2 or not _copied(probs[rows], labels[rows]):
        return 0
    return n - np.unique(row_numbers(np.column_stack([_told_apart(probs), labels]))).size


def _told_apart(probs: FloatArray) -> IntArray:
    step = max(1, probs.shape[1] // COLUMNS)
    few = probs[:, ::step] if step > 1 else probs
    return np.column_stack([few, largest(probs)]).view(np.int64)


def _copied(probs: FloatArray, labels: IntArray) -> bool:
    two = probs.shape[1] == 2
    p = np.ascontiguousarray(probs[:, 1]) if two else largest(probs)
    if (np.diff(np.sort(p)) > 0.0).all():
        return False
    numbers = p.view(np.int64) if two else row_numbers(_told_apart(probs)).view(np.int64)
    order = np.lexsort((numbers, p))
    outcome = labels if two else labels == probs.argmax(axis=1)
    equal = np.diff(numbers[order]) == 0
    if not equal.any():
        return False
    differ = np.diff(outcome[order].astype(np.int64)) != 0
    unlike = float((equal & differ).sum())
    if unlike == 0.0 and _equally_often(probs, equal):
        return True
    first = np.arange(0, equal.size, TOGETHER)
    rate = np.add.reduceat(differ, first, dtype=float) / np.diff(np.append(first, equal.size))
    expected = float(rate @ np.add.reduceat(equal, first, dtype=float))
    if unlike > 0.5 * expected:
        return False
    # Chernoff's bound for a Poisson variable
    return unlike - expected - (unlike * np.log(unlike / expected) if unlike else 0.0) < SURPRISE


def _equally_often(probs: FloatArray, equal: NDArray[np.bool_]) -> bool:
    starts = np.flatnonzero(np.append(True, ~equal))
    often = np.diff(np.append(starts, equal.size + 1))
    short = np.abs(probs - probs.round(6)).max() < 1e-9
    return starts.size >= EQUALLY_OFTEN and np.gcd.reduce(often) > 1 and not short


#: Labels that are all predicted are doubted when so many misses were to be expected; values that
#: look like something else, when there are more than so many rows.
MISSES = 7.0


def doubts(
    probs: FloatArray, labels: IntArray, values: object, from_logits: bool, folds: bool = False
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
        logits = as_array(values, "probs").astype(np.float64)
        if logits.ndim == 1 and n > MISSES and logits.min() >= 0.0 and logits.max() <= 1.0:
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
