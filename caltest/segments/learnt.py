"""One more column, that a learner makes of all others on half of the rows."""

from __future__ import annotations

from dataclasses import replace
from typing import Protocol, runtime_checkable

import numpy as np

from caltest._base.arrays import RNG, FloatArray
from caltest._base.features import Feature
from caltest.errors import StatisticError
from caltest.predictions import Predictions

#: Predictions nearer to 0 and 1 than this have the log-odds of this.
NEAREST = 1e-9


@runtime_checkable
class Learner(Protocol):
    """What learns residuals, such as a regressor of scikit-learn."""

    def fit(self, X: FloatArray, y: FloatArray) -> object:
        """Learn residuals (n,) from columns (n, d)."""

    def predict(self, X: FloatArray) -> FloatArray:
        """Return predicted residuals (n,)."""


def taught(
    learner: Learner, data: Predictions, columns: list[Feature], rng: RNG
) -> tuple[Predictions, list[Feature], str]:
    """Return half of the rows, their columns with what a learner predicts, and a note.

    The other half, of whole clusters, by ``rng``, teaches it residuals y − p. Levels are numbers,
    missing cells the median of their column in that half.

    Raises
    ------
    StatisticError
        When the learner has no ``fit`` and ``predict``, or predicts no finite number a row.
    """
    if isinstance(learner, type) or not isinstance(learner, Learner):
        raise StatisticError(f"learner must have fit(X, r) and predict(X), not {learner!r}")
    name = type(learner).__name__
    cluster = np.arange(data.n) if data.clusters is None else data.clusters
    names = np.unique(cluster)
    teaching = np.isin(cluster, np.random.default_rng(rng).permutation(names)[: names.size // 2])
    p = np.clip(data.probs[:, 0], NEAREST, 1.0 - NEAREST)
    table = np.column_stack([*(c.values for c in columns), np.log(p / (1.0 - p))])
    table = table[:, ~np.isnan(table[teaching]).all(axis=0)]
    table = np.where(np.isnan(table), np.nanmedian(table[teaching], axis=0), table)
    residuals = (data.labels == 0) - data.probs[:, 0]
    try:
        learner.fit(table[teaching], residuals[teaching])
        predicted = np.asarray(learner.predict(table[~teaching]), dtype=np.float64)
    except Exception as error:
        raise StatisticError(f"learner: {name} failed: {error}") from error
    if predicted.shape != (int((~teaching).sum()),) or not np.isfinite(predicted).all():
        raise StatisticError(
            f"learner: {name} must predict one finite number for each of "
            f"{(~teaching).sum()} rows, not an array of shape {predicted.shape}"
        )
    note = (
        f"{name} was taught by {teaching.sum()} of {data.n} rows, the others are "
        "searched: p depends on this split"
    )
    halves = [replace(c, values=c.values[~teaching]) for c in columns]
    return data.take(~teaching), [*halves, Feature("learner", predicted)], note
