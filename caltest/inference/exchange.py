"""Swapping the rows of two models."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from caltest._base.facts import by_appearance
from caltest.errors import StatisticError
from caltest.predictions import FloatArray, IntArray, Predictions
from caltest.simulate import Workers, simulate
from caltest.statistics.base import StatisticLike, prepare

#: Which of the rows of both models, stacked, each model gets.
Rows = tuple[IntArray, IntArray]


def swapped_differences(
    statistic: StatisticLike,
    a: Predictions,
    b: Predictions,
    paired: bool,
    n_resamples: int,
    rng: Any,
    workers: Workers,
) -> tuple[FloatArray, str]:
    """Return replicates of T_a − T_b, and how the run ended.

    In every row the two models change places with probability ½; without pairs, all rows are dealt
    out anew. Labels move along: a lens may give each model its own. Of paired rows in clusters,
    whole clusters are swapped.

    Raises
    ------
    StatisticError
        When rows come in clusters and are not paired.
    """
    if a.crossed is not None:
        raise StatisticError("method='swap' does not take two columns of clusters: use method='z'")
    if a.horizon is not None:
        raise StatisticError("method='swap' does not take horizon: use method='z'")
    clusters = None if a.n_clusters is None and b.n_clusters is None else a.clusters
    if clusters is not None and not paired:
        raise StatisticError(
            "method='swap' of rows without pairs does not take clusters: use method='z'"
        )
    draw = partial(_swapped, a.n, b.n, paired)
    if clusters is not None:
        draw = partial(_swapped_clusters, by_appearance(clusters))
    probs, labels = np.vstack([a.probs, b.probs]), np.concatenate([a.labels, b.labels])
    weights = None
    if a.weights is not None and b.weights is not None:
        weights = np.concatenate([a.weights, b.weights])
    # Rows of both models are stacked once; a swap is a choice of row numbers
    both = Predictions(probs, labels, weights=weights, induced=True)
    evaluate: Any = partial(_difference, statistic, both)
    return simulate(evaluate, draw, n_resamples, rng, workers)


def _difference(statistic: StatisticLike, both: Predictions, rows: Rows) -> float:
    a, b = (both.take(part) for part in rows)
    return prepare(statistic, a).observed - prepare(statistic, b).observed


def _swapped(n_a: int, n_b: int, paired: bool, rng: np.random.Generator) -> Rows:
    if not paired:
        rows = rng.permutation(n_a + n_b)
        return rows[:n_a], rows[n_a:]
    swapped, rows = rng.integers(2, size=n_a), np.arange(n_a)
    return rows + n_a * swapped, rows + n_a * (1 - swapped)


def _swapped_clusters(cluster: IntArray, rng: np.random.Generator) -> Rows:
    swapped = rng.integers(2, size=int(cluster.max()) + 1)[cluster]
    rows = np.arange(cluster.size)
    return rows + cluster.size * swapped, rows + cluster.size * (1 - swapped)
