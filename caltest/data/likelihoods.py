"""Likelihoods and orders by which guards compare readings of the same rows.

If predictions p are calibrated as they were read, the likelihood ratio of another reading that is a
function of p has expectation E[L'(y) / L(y)] ≤ 1, so that it exceeds 1000 in at most 1 of 1000 data
sets (Markov's inequality), for every n and every distribution of p.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from caltest._base.arrays import AnyArray, BoolArray, FloatArray, IntArray, codes
from caltest.data.questions import Rows

#: Logarithm of how many times likelier another reading must be before a guard asks.
LIKELIER = float(np.log(1000.0))
#: Probabilities are taken within [ROUNDED_OFF, 1 − ROUNDED_OFF] where a 0 or 1 may be rounded.
ROUNDED_OFF = 0.005


def rankdata(values: AnyArray) -> FloatArray:
    """Return ranks from 1 (n,), equal values sharing their mean, without importing SciPy."""
    _, place, counts = np.unique(values, return_inverse=True, return_counts=True)
    ranks: FloatArray = np.cumsum(counts) - 0.5 * (counts - 1.0)
    return ranks[place.ravel()]


def log_likelihood(p: FloatArray, y: AnyArray, weights: FloatArray | None = None) -> float:
    """Return the log-likelihood Σ w log P(y) of outcomes y given probabilities p, (n,) each.

    Probabilities of 0 and 1 are moved inside by ``ROUNDED_OFF``, as they may be rounded.
    """
    p = np.clip(p, ROUNDED_OFF, 1.0 - ROUNDED_OFF)
    terms = np.log(np.where(y == 1, p, 1.0 - p))
    return float(terms.sum() if weights is None else terms @ weights)


def constant_gain(p: FloatArray, y: AnyArray, weights: FloatArray | None = None) -> float:
    """Return log (L(ȳ) / (√n L(p))), the gain in log-likelihood of one constant prediction over p.

    ȳ is the mean outcome, and √n the penalty for estimating it. A large gain says that p is worse
    than no prediction.
    """
    scale = 1.0 if weights is None else mean_weight(weights)
    mean = np.full(len(p), float(np.average(y, weights=weights)))
    gain = log_likelihood(mean, y, weights) - log_likelihood(p, y, weights)
    return gain / scale - 0.5 * float(np.log(len(p)))


def mean_weight(weights: FloatArray) -> float:
    """Return Σ w² / Σ w, by which weighted sums of logarithms are divided (Kish)."""
    return float(weights @ weights / weights.sum())


def order_of_events(
    p: FloatArray, y: AnyArray, weights: FloatArray | None = None
) -> tuple[float, float]:
    """Return (area, z): the area under the ROC curve of p, and its distance from 0.5 in sd.

    The standard deviation is under no association, corrected for ties as in the test of Wilcoxon,
    Mann and Whitney; with weights it comes from the weighted scores.
    """
    w = np.ones(len(p)) if weights is None else weights
    p, y, w = p[w > 0], y[w > 0] == 1, w[w > 0]
    if y.all() or not y.any():
        return 0.5, 0.0
    _, place = np.unique(p, return_inverse=True)
    place = place.ravel()
    free, events = np.bincount(place, np.where(y, 0.0, w)), np.bincount(place, np.where(y, w, 0.0))
    area = float(events @ (np.cumsum(free) - free / 2.0) / (free.sum() * events.sum()))
    if weights is None:
        n, k = float(len(p)), float(y.sum())
        ties = np.bincount(place).astype(np.float64)
        spread = (n + 1.0) - np.sum(ties**3 - ties) / (n * (n - 1.0))
        variance = float(spread / (12.0 * k * (n - k)))
    else:
        total = np.bincount(place, w)
        level = ((np.cumsum(total) - total / 2.0) / w.sum())[place]
        part = np.where(y, w / events.sum(), -w / free.sum())
        variance = float(np.sum((part * (level - np.average(level, weights=w))) ** 2))
    return area, (area - 0.5) / float(np.sqrt(variance)) if variance > 0.0 else 0.0


def hazard_order(p: FloatArray, time: FloatArray, event: BoolArray) -> float:
    """Return z of Cox's score test of the ranks of p: positive if rows of high p have events early.

    Rows with equal times are at risk together. Cox, Journal of the Royal Statistical Society B 34,
    1972.
    """
    last_first = np.argsort(-time, kind="stable")
    t, e, x = time[last_first], event[last_first], rankdata(p)[last_first] / len(p)
    end = np.searchsorted(-t, -t, side="right") - 1
    at_risk = np.arange(1, len(t) + 1)
    mean, square = (np.cumsum(x) / at_risk)[end], (np.cumsum(x * x) / at_risk)[end]
    variance = float(np.sum((square - mean**2)[e]))
    return float(np.sum((x - mean)[e])) / float(np.sqrt(variance)) if variance > 1e-9 else 0.0


def design_effect(part: FloatArray, groups: Iterable[IntArray]) -> float:
    """Return the largest design effect of dependent rows.

    Σ_g (Σ_{i in g} x_i)² / Σ x_i², at least 1.

    ``part`` (n,) are the x; ``groups`` yields codes (n,) of possible clusters, −1 for rows in none.
    """
    apart, largest = float(part @ part), 1.0
    for rows in groups if apart > 0.0 else ():
        sums = np.bincount(rows + 1, part)
        largest = max(largest, float(sums @ sums) / apart)
    return largest


def groups_of(rows: Rows) -> Iterable[IntArray]:
    """Yield the codes (n,) of clusters or, without these, of columns whose values repeat."""
    if rows.clusters is not None:
        yield codes(rows.clusters)
        return
    for column in rows.unused:
        if column.coded is not None and 5 <= column.n_values < rows.n:
            yield column.coded[0]
