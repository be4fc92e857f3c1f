"""Two models in one diagram: the difference of their reliability curves, with a band."""

from __future__ import annotations

from typing import Any, Unpack

import numpy as np

from caltest._base.checks import fraction
from caltest._base.defaults import BAND_LEVEL
from caltest._base.written import name_of
from caltest.binning import Binning, UniformBins, as_binning
from caltest.errors import StatisticError
from caltest.lenses import LensLike
from caltest.predictions import Facts, FloatArray, IntArray, Predictions
from caltest.reliability.view import View
from caltest.results import ReliabilityDifference


def reliability_difference(
    probs_a: Any,
    probs_b: Any,
    labels: Any = None,
    *,
    names: tuple[str, str] = ("A", "B"),
    lens: LensLike | None = None,
    bins: Binning | int = UniformBins(15),
    level: float = BAND_LEVEL,
    simultaneous: bool = False,
    **facts: Unpack[Facts],
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
    names : tuple of str, default ("A", "B")
        What the models are called.
    lens : lens, optional
        A lens that leaves two classes; by default as in :func:`calibration_test`.
    bins : binning or int, default UniformBins(15)
        Made from the predictions of both models together.
    level : float, default 0.9
        Probability that an interval covers its target.
    simultaneous : bool, default False
        Whether ``level`` is for all intervals together (Šidák's inequality, which needs no
        independence).
    **facts
        As in :func:`calibration_test`.

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
    binning = as_binning(bins)
    views = [
        View.of("reliability_difference", probs, labels, facts, lens=lens, takes=())
        for probs in (probs_a, probs_b)
    ]
    for view in views:
        view.needs_two_classes("the difference of two curves")
    first, second = (view.data for view in views)
    if first.n != second.n or not np.array_equal(first.labels, second.labels):
        raise StatisticError(
            "the two models must predict the same observations in the same order: their labels "
            "differ"
        )
    one, other = (view.problem for view in views)
    n, pooled = one.n, np.concatenate([one.probs, other.probs])
    cell: IntArray = np.unique(binning(pooled), return_inverse=True)[1]
    size = int(cell.max()) + 1
    a, b = _sums(one, cell[:n], size), _sums(other, cell[n:], size)
    both = cell[:n] == cell[n:]
    y, z = ((part.labels[both] == 0).astype(np.float64) for part in (one, other))
    covariance = _shared_covariance(cell[:n][both], y, z, size)
    common = np.flatnonzero((a["count"] > 0) & (b["count"] > 0))
    difference, low, high = _band(a, b, covariance, common, level, simultaneous)
    predicted = (a["p"] + b["p"])[common] / (a["count"] + b["count"])[common]
    order = np.argsort(predicted, kind="stable")
    return ReliabilityDifference(
        predicted=predicted[order],
        difference=difference[order],
        low=low[order],
        high=high[order],
        count_a=a["count"][common][order].astype(np.int64),
        count_b=b["count"][common][order].astype(np.int64),
        cell=common[order],
        names=names,
        name=views[0].lens.components(first)[0],
        subject=views[0].lens.subject,
        bins=name_of(binning),
        level=level,
        simultaneous=simultaneous,
        **views[0].facts | {"notes": tuple(dict.fromkeys([*first.notes, *second.notes]))},
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
    common: IntArray,
    level: float,
    simultaneous: bool,
) -> tuple[FloatArray, FloatArray, FloatArray]:
    from scipy.special import ndtri

    n, m = a["count"][common], b["count"][common]
    predicted = a["p"][common] / n - b["p"][common] / m
    difference = a["y"][common] / n - b["y"][common] / m - predicted
    p, q = (a["y"][common] + 1.0) / (n + 2.0), (b["y"][common] + 1.0) / (m + 2.0)
    variance = p * (1.0 - p) / (n + 2.0) + q * (1.0 - q) / (m + 2.0)
    variance -= 2.0 * covariance[common] / ((n + 2.0) * (m + 2.0))
    if simultaneous:
        level = level ** (1.0 / common.size)
    half = float(ndtri(0.5 + 0.5 * level)) * np.sqrt(np.maximum(variance, 0.0))
    centre = p - q - predicted
    return difference, centre - half, centre + half
