"""Resampling the rows of two models: swaps, shuffles and the bootstrap."""

from __future__ import annotations

from functools import partial
from typing import Any, Literal

import numpy as np

from caltest.predictions import FloatArray, IntArray, Predictions
from caltest.resampling import Workers, simulate
from caltest.statistics import Statistic

#: Which of the rows of both models, stacked, each model gets.
Rows = tuple[IntArray, IntArray]


def differences(
    kind: Literal["swap", "bootstrap"],
    statistic: Statistic,
    a: Predictions,
    b: Predictions,
    paired: bool,
    n_resamples: int,
    rng: Any,
    workers: Workers,
) -> tuple[FloatArray, str]:
    """Return replicates of T_a − T_b, and how the run ended.

    ``"swap"``: in every row the two models' prediction and label change places with probability
    ½; without pairs, all rows are dealt out anew. ``"bootstrap"``: rows are drawn with
    replacement, the same ones for both models when they are paired. Whole rows move, probabilities
    with their labels, because a lens may give each model labels of its own.
    """
    draw: Any = {
        ("swap", True): _swapped,
        ("swap", False): _shuffled,
        ("bootstrap", True): _drawn_together,
        ("bootstrap", False): _drawn_apart,
    }[kind, paired]
    probs, labels = np.vstack([a.probs, b.probs]), np.concatenate([a.labels, b.labels])
    evaluate: Any = partial(_difference, statistic, probs, labels)
    return simulate(evaluate, partial(draw, a.n, b.n), n_resamples, rng, workers)


def _difference(statistic: Statistic, probs: FloatArray, labels: IntArray, rows: Rows) -> float:
    for_a, for_b = rows
    return statistic(probs[for_a], labels[for_a]) - statistic(probs[for_b], labels[for_b])


def _swapped(n: int, _: int, rng: np.random.Generator) -> Rows:
    swapped, rows = rng.integers(2, size=n), np.arange(n)
    return rows + n * swapped, rows + n * (1 - swapped)


def _shuffled(n_a: int, n_b: int, rng: np.random.Generator) -> Rows:
    rows = rng.permutation(n_a + n_b)
    return rows[:n_a], rows[n_a:]


def _drawn_together(n: int, _: int, rng: np.random.Generator) -> Rows:
    rows = rng.integers(n, size=n)
    return rows, rows + n


def _drawn_apart(n_a: int, n_b: int, rng: np.random.Generator) -> Rows:
    return rng.integers(n_a, size=n_a), n_a + rng.integers(n_b, size=n_b)
