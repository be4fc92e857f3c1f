"""Two models in one diagram: the difference of their reliability curves, with a band."""

from __future__ import annotations

from typing import Unpack

import numpy as np

from caltest._base.checks import fraction
from caltest._base.defaults import BAND_LEVEL
from caltest._base.written import name_of
from caltest.binning import Binning, UniformBins, as_binning
from caltest.errors import StatisticError
from caltest.lenses import LensLike
from caltest.predictions import Facts, FloatArray
from caltest.reliability.view import View
from caltest.results import ReliabilityDifference


def reliability_difference(
    probs_a: object,
    probs_b: object,
    labels: object = None,
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
    a confidence band for the difference of the mean true deviations of the rows put there.

    Parameters
    ----------
    probs_a, probs_b, labels, names, lens, **facts
        As in :func:`compare`, for the same observations and a lens that leaves two classes.
    bins : binning or int, default UniformBins(15)
        Made from the predictions of both models together.
    level, simultaneous : float, default 0.9, and bool, default False
        Probability that an interval covers its target, or all do (Šidák's inequality, which needs
        no independence).

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
    first, second = (view.rows for view in views)
    if first.n != second.n or not np.array_equal(first.labels, second.labels):
        raise StatisticError(
            "the two models must predict the same observations in the same order: their labels "
            "differ"
        )
    probs = np.concatenate([view.problem.probs for view in views])
    cell = np.unique(binning(probs), return_inverse=True)[1].reshape(2, -1)
    size, both = int(cell.max()) + 1, cell[0] == cell[1]
    happened = np.array([view.problem.labels == 0 for view in views], dtype=np.float64)
    of_models = zip(cell, probs[:, 0].reshape(2, -1), happened, strict=True)
    sums = [[np.bincount(c, w, size) for w in (None, p, y)] for c, p, y in of_models]
    count, p, y = np.moveaxis(np.array(sums, dtype=np.float64), 1, 0)
    # Σ (y − ȳ)(z − z̄) over the rows that both models put into a cell
    rows, first_y, second_y, products = (
        np.bincount(cell[0][both], w, size)
        for w in (None, *happened[:, both], happened[:, both].prod(axis=0))
    )
    covariance = products - first_y * second_y / np.maximum(rows, 1)
    common = np.flatnonzero((count > 0).all(axis=0))
    predicted = p.sum(axis=0)[common] / count.sum(axis=0)[common]
    common = common[np.argsort(predicted, kind="stable")]
    count, p, y = (values[:, common] for values in (count, p, y))
    difference, low, high = _band(count, p, y, covariance[common], level, simultaneous)
    return ReliabilityDifference(
        predicted=np.sort(predicted, kind="stable"), difference=difference, low=low, high=high,
        count_a=count[0].astype(np.int64), count_b=count[1].astype(np.int64), cell=common,
        names=names, name=views[0].event, subject=views[0].lens.subject, bins=name_of(binning),
        level=level, simultaneous=simultaneous,
        **views[0].facts | {"notes": tuple(dict.fromkeys([*first.notes, *second.notes]))},
    )  # fmt: skip


def _band(count: FloatArray, p: FloatArray, y: FloatArray, shared: FloatArray, level: float,
          simultaneous: bool) -> tuple[FloatArray, FloatArray, FloatArray]:  # fmt: skip
    """Return differences and their intervals from sums of both models, of shape (2, L)."""
    from scipy.special import ndtri

    predicted, more = np.subtract(*(p / count)), count + 2.0
    share = (y + 1.0) / more  # with one success and one failure more
    variance = (share * (1.0 - share) / more).sum(axis=0) - 2.0 * shared / more.prod(axis=0)
    if simultaneous:
        level = level ** (1.0 / len(predicted))
    half = float(ndtri(0.5 + 0.5 * level)) * np.sqrt(np.maximum(variance, 0.0))
    centre = np.subtract(*share) - predicted
    return np.subtract(*(y / count)) - predicted, centre - half, centre + half
