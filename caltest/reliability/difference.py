"""Two models in one diagram: the difference of their reliability curves, with a band."""

from __future__ import annotations

from typing import Any

import numpy as np

from caltest._version import __version__
from caltest.binning import Binning, UniformBins
from caltest.checks import fraction
from caltest.errors import StatisticError
from caltest.lenses import Lens, TopK, apply
from caltest.predictions import FloatArray, IntArray, Predictions
from caltest.reliability.parts import names_of, refuse_more_classes
from caltest.results import ReliabilityDifference
from caltest.statistics import ECE
from caltest.written import name_of


def reliability_difference(
    probs_a: Any,
    probs_b: Any,
    labels: Any = None,
    *,
    lens: Lens = TopK(1),
    bins: Binning | int = UniformBins(10),
    level: float = 0.9,
    simultaneous: bool = False,
) -> ReliabilityDifference:
    """Compare the deviations of two models on the same observations, bin by bin.

    In each bin that both models use: (outcome − prediction) of model a minus that of model b, with
    a confidence band for what it estimates, the difference of the mean true deviations of the rows
    that the models put there.

    Parameters
    ----------
    probs_a, probs_b : array_like of shape (n,) or (n, K), or Predictions
        The predictions of the two models for the same observations.
    labels : array_like of shape (n,)
        Observed classes; left out when both are :class:`Predictions`.
    lens : callable, default TopK(1)
        A lens that leaves two classes.
    bins : binning or int, default UniformBins(10)
        Made from the predictions of both models together.
    level : float, default 0.9
        Probability that an interval covers its target.
    simultaneous : bool, default False
        Whether ``level`` is for all intervals together (Šidák's inequality, which needs no
        independence).

    Returns
    -------
    ReliabilityDifference

    Raises
    ------
    StatisticError
        For a lens that leaves more than two classes, or models of different observations.

    Notes
    -----
    Wald intervals with one success and one failure added to each model's bin, which holds the
    level also with few rows (Agresti & Caffo 2000), and with the covariance of the rows that both
    models put into the bin (as Bonett & Price 2012 for fully paired data). O(n).

    Examples
    --------
    >>> import caltest as ct
    >>> overfit, best = ct.examples.digits("overfit"), ct.examples.digits("best")
    >>> curve = reliability_difference(overfit, best, bins=5)
    >>> curve.difference.round(3)
    array([-0.147, -0.103, -0.209, -0.1  ])
    """
    fraction("level", level)
    models = [Predictions.of(probs, labels) for probs in (probs_a, probs_b)]
    if models[0].n != models[1].n or not np.array_equal(models[0].labels, models[1].labels):
        raise StatisticError(
            "the two models must predict the same observations in the same order: their labels "
            "differ"
        )
    seen = [apply(lens, model) for model in models]
    refuse_more_classes("the difference of two curves", lens, seen[0])
    n, statistic = models[0].n, ECE(bins)
    pooled = np.concatenate([part.probs for part in seen])
    cell: IntArray = np.unique(statistic.bins(pooled), return_inverse=True)[1]  # type: ignore[operator]
    size = int(cell.max()) + 1
    a, b = _sums(seen[0], cell[:n], size), _sums(seen[1], cell[n:], size)
    both = cell[:n] == cell[n:]
    y, z = ((part.labels[both] == 0).astype(np.float64) for part in seen)
    covariance = _shared_covariance(cell[:n][both], y, z, size)
    kept = np.flatnonzero((a["count"] > 0) & (b["count"] > 0))
    difference, low, high = _band(a, b, covariance, kept, level, simultaneous)
    predicted = (a["p"] + b["p"])[kept] / (a["count"] + b["count"])[kept]
    order = np.argsort(predicted, kind="stable")
    return ReliabilityDifference(
        predicted=predicted[order],
        difference=difference[order],
        low=low[order],
        high=high[order],
        count_a=a["count"][kept][order].astype(np.int64),
        count_b=b["count"][kept][order].astype(np.int64),
        cell=kept[order],
        name=names_of(lens, models[0], seen[0])[0],
        lens=name_of(lens),
        bins=name_of(statistic.bins),
        level=level,
        simultaneous=simultaneous,
        n=n,
        n_classes=models[0].n_classes,
        version=__version__,
    )


def _sums(part: Predictions, cell: IntArray, size: int) -> dict[str, FloatArray]:
    return {
        "count": np.bincount(cell, minlength=size).astype(np.float64),
        "p": np.bincount(cell, part.probs[:, 0], size).astype(np.float64),
        "y": np.bincount(cell, part.labels == 0, size).astype(np.float64),
    }


def _shared_covariance(cell: IntArray, y: FloatArray, z: FloatArray, size: int) -> FloatArray:
    """Return Σ (y − ȳ)(z − z̄) over the rows that both models put into a cell."""
    m = np.maximum(np.bincount(cell, minlength=size), 1)
    products = np.bincount(cell, y * z, size)
    covariance: FloatArray = products - np.bincount(cell, y, size) * np.bincount(cell, z, size) / m
    return covariance


def _band(
    a: dict[str, FloatArray],
    b: dict[str, FloatArray],
    covariance: FloatArray,
    kept: IntArray,
    level: float,
    simultaneous: bool,
) -> tuple[FloatArray, FloatArray, FloatArray]:
    from scipy.special import ndtri

    n, m = a["count"][kept], b["count"][kept]
    predicted = a["p"][kept] / n - b["p"][kept] / m
    difference = a["y"][kept] / n - b["y"][kept] / m - predicted
    p, q = (a["y"][kept] + 1.0) / (n + 2.0), (b["y"][kept] + 1.0) / (m + 2.0)
    variance = p * (1.0 - p) / (n + 2.0) + q * (1.0 - q) / (m + 2.0)
    variance -= 2.0 * covariance[kept] / ((n + 2.0) * (m + 2.0))
    if simultaneous:
        level = level ** (1.0 / kept.size)
    half = float(ndtri(0.5 + 0.5 * level)) * np.sqrt(np.maximum(variance, 0.0))
    centre = p - q - predicted
    return difference, centre - half, centre + half
