"""Notebook display of predictions: size, outcome, histogram, design.

:func:`display` is ``Predictions._repr_html_``; the card itself is laid out by
:mod:`caltest.results.rendering`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from caltest._base.written import first_of, several
from caltest.results.rendering import Card, Content, element, percent
from caltest.results.sketches import histogram_bars

if TYPE_CHECKING:
    from caltest.data.predictions import Predictions

#: Bars of the histogram of predictions, and classes and subgroups that are named.
HISTOGRAM_BARS, FIRST_NAMES = 20, 12


def display(data: Predictions) -> str:
    """Return the notebook card of predictions as HTML.

    Counts, means, a histogram, and the design.
    """
    binary = data.n_classes == 2
    likelihood = data.risks if binary else data.probs.max(axis=1)
    numbers = [("observations", str(data.n), _extent(data))]
    if data.followup is None:
        right = data.labels == (0 if data.induced else 1) if binary else _is_right(data)
        share = float(np.average(right, weights=data.weights))
        mean = float(np.average(likelihood, weights=data.weights))
        names = ("events", "predicted") if binary else ("right", "mean confidence")
        numbers.append((names[0], percent(share, mean), f"{names[1]} {percent(mean, share)}"))
    counts, _ = np.histogram(likelihood, HISTOGRAM_BARS, (0.0, 1.0))
    axis = "Predicted probability" if binary else "Confidence"
    card = Card(
        "Predictions",
        headline=f"{several(data.n, 'observation')}, {data.n_classes} classes",
        numbers=tuple(numbers),
        remarks=tuple(f"Note: {note}." for note in data.notes[:1]),
        drawing=histogram_bars(counts.tolist(), (0.0, 1.0), axis),
    )
    known = _known(data)
    table = {"": list(known), "value": list(known.values())}
    notes = [f"Note: {note}." for note in data.notes[1:]]
    return element(card, Content("", [table], notes, repr(data)))


def _is_right(data: Predictions) -> np.ndarray:
    """Return whether the most likely class of each row occurred, booleans of shape (n,)."""
    return np.asarray(data.probs.argmax(axis=1) == data.labels)


def _extent(data: Predictions) -> str:
    """Return the number of clusters, subgroups or times of the rows in words."""
    words = [] if data.n_clusters is None else [f"{data.n_clusters} clusters"]
    words += [] if data.weights is None else [f"effective n {data.effective_n:.1f}"]
    return ", ".join(words)


def _known(data: Predictions) -> dict[str, str]:
    """Return the design of the rows (weights, clusters, subgroups, …) in words, by name."""
    names = data.classes or tuple(map(str, range(data.n_classes)))
    features = () if data.features is None else tuple(c.name for c in data.features.columns)
    folds = 0 if data.folds is None else np.unique(data.folds).size
    facts = {
        "classes": first_of(names, FIRST_NAMES),
        "weights": "" if data.weights is None else f"effective n {data.effective_n:.1f}",
        "clusters": "" if data.n_clusters is None else str(data.n_clusters),
        "subgroups": first_of(tuple(data.subgroups()), FIRST_NAMES) if data.by is not None else "",
        "features": first_of(features, FIRST_NAMES) if features else "",
        "folds": str(folds) if folds else "",
        "horizon": "" if data.horizon is None else str(data.horizon),
        "ids": "" if data.ids is None else "one a row",
        "follow-up": "" if data.followup is None else f"to {data.followup.horizon:g}",
    }
    return {name: words for name, words in facts.items() if words}
