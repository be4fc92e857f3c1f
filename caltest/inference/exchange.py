"""Swapping the rows of two models."""

from __future__ import annotations

import numpy as np

from caltest._base.arrays import RNG
from caltest._base.facts import by_appearance
from caltest.errors import StatisticError
from caltest.predictions import FloatArray, IntArray, Predictions
from caltest.simulate import Workers, simulate
from caltest.statistics.base import StatisticLike, prepare

#: Which of the rows of both models, stacked, each model gets.
Rows = tuple[IntArray, IntArray]


def swapped_differences(
    statistic: StatisticLike, a: Predictions, b: Predictions, paired: bool, n_resamples: int,
    rng: RNG, workers: Workers,
) -> tuple[FloatArray, str]:  # fmt: skip
    """Return replicates of T_a − T_b, and how the run ended.

    In every row the two models change places with probability ½; without pairs, all rows are dealt
    out anew. Labels move along: a lens may give each model its own. Of paired rows in clusters,
    whole clusters are swapped; StatisticError for clusters without pairs.
    """
    if a.crossed is not None:
        raise StatisticError("method='swap' does not take two columns of clusters: use method='z'")
    if a.horizon is not None:
        raise StatisticError("method='swap' does not take horizon: use method='z'")
    # Rows of a cluster may depend on each other: exchanged are then whole clusters
    clusters = None if a.n_clusters is None and b.n_clusters is None else a.clusters
    if clusters is not None and not paired:
        raise StatisticError(
            "method='swap' of rows without pairs does not take clusters: use method='z'"
        )
    n, unit = a.n, np.arange(a.n) if clusters is None else by_appearance(clusters)
    probs, labels = np.vstack([a.probs, b.probs]), np.concatenate([a.labels, b.labels])
    weights = None
    if a.weights is not None and b.weights is not None:
        weights = np.concatenate([a.weights, b.weights])
    # Rows of both models are stacked once; a swap is a choice of row numbers
    both = Predictions(probs, labels, weights=weights, induced=True)

    def deal(rng: np.random.Generator) -> Rows:
        # Under the hypothesis every row is as likely to come from either model
        if not paired:
            rows = rng.permutation(n + b.n)
            return rows[:n], rows[n:]
        swapped, rows = rng.integers(2, size=int(unit.max()) + 1)[unit], np.arange(n)
        return rows + n * swapped, rows + n * (1 - swapped)

    def difference(rows: Rows) -> float:
        first, second = (prepare(statistic, both.take(part)).observed for part in rows)
        return first - second

    return simulate(difference, deal, n_resamples, rng, workers)
