"""Rows that were sampled by their outcome, as weights that are functions of it say."""

from __future__ import annotations

import warnings
from dataclasses import replace

import numpy as np

from caltest.errors import DoubtfulInputWarning
from caltest.predictions import Predictions
from caltest.results.numbers import percent

#: Rows of every label that show its weight.
ENOUGH = 10


def as_sampled(data: Predictions) -> Predictions:
    """Return predictions for the rows as they were sampled, where weights are functions of labels.

    If label k was sampled at a rate proportional to 1/w_k, predictions p that are calibrated in the
    population promise p'_k = (p_k / w_k) / Σ_j p_j / w_j of a sampled row: Elkan, The foundations
    of cost-sensitive learning (IJCAI 2001), theorem 2. A test of p' on rows without weights is
    valid; one of p on weighted rows is not, as their weights depend on outcomes. A class that was
    never seen has no known weight: the predictions are then returned as they are. O(n K).
    """
    w = data.weights
    if w is None or data.followup is not None or data.multilabel or data.induced:
        return data
    counts = np.bincount(data.labels, minlength=data.n_classes)
    first = np.array([w[np.argmax(data.labels == k)] for k in range(data.n_classes)])
    if counts.min() < ENOUGH or not np.array_equal(first[data.labels], w):
        return data
    odds = data.probs / first
    sampled = odds / odds.sum(axis=1, keepdims=True)
    names = [f"{w:g} of {data.class_name(k)}" for k, w in enumerate(first / first.min())]
    population = ""
    if data.n_classes == 2:
        predicted, observed = np.average(np.c_[data.probs[:, 1], data.labels == 1], 0, weights=w)
        population = f", where {percent(predicted, observed)} was predicted and "
        population += f"{percent(observed, predicted)} observed"
        population += f" (O:E {observed / predicted:.3g})" if predicted > 0.0 else ""
    note = (
        f"weights are functions of the label ({', '.join(names)}): rows were sampled by their "
        "outcome. As no test of weighted rows would be valid, they are tested as they were "
        "sampled, against what p says of a sampled row. Means, O:E and errors are then those of "
        f"the sample, intercept and slope also those of the population{population}"
    )
    warnings.warn(note, DoubtfulInputWarning, stacklevel=4)
    return replace(data, probs=sampled, weights=None, notes=(*data.notes, note))
