"""Individual error: are probabilities right item by item, where items have several votes?

:func:`individual_error` is the entry. The error has a calibration part, which recalibration can
remove, and the grouping loss, which it cannot; both have intervals.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Literal, Unpack

import numpy as np

from caltest._base import FloatArray, IntArray
from caltest._base.arrays import N_TOGETHER, RNG, fraction, whole
from caltest._base.written import Fields
from caltest.data import Facts
from caltest.data.labels import Votes
from caltest.data.lenses import Canonical
from caltest.errors import StatisticError
from caltest.inference._input import Analysis
from caltest.inference.calibration import calibration_test
from caltest.nulls import Run, Workers, check_run
from caltest.results import IndividualErrorResult
from caltest.results.base import go_on
from caltest.statistics import IndividualError
from caltest.statistics.scores import null_moments, unbiased_errors

#: Estimate, low and high, not cut off.
Interval = tuple[float, float, float]


def individual_error(
    probs: object,
    labels: object = None,
    *,
    level: float = 0.95,
    n_bins: int | None = None,
    null: Literal["auto", "asymptotic"] = "auto",
    n_resamples: int = N_TOGETHER,
    rng: RNG = None,
    workers: Workers = 1,
    **facts: Unpack[Facts],
) -> IndividualErrorResult:
    """Estimate and test the error of probabilities item by item.

    Items have several outcomes: votes of annotators, or the answers of repeated runs. With q_i the
    true probabilities of item i, the error is the mean of |q_i − p_i|². It is the sum of a
    *calibration part*, which remains on average over items with similar predictions, and the
    *grouping loss*, which averages out: equal predictions for items that differ.

    Parameters
    ----------
    probs, labels
        :meth:`Predictions.of_votes`; or a row for each vote, with ``items=``.
    level : float, default 0.95
        Level of the three intervals.
    n_bins : int, optional
        Bins of equal numbers of items, of every class's own probability, for the calibration part;
        by default 1 for every 20 items, at least 1 and at most 10.
    null : {"auto", "asymptotic"}, default "auto"
        Redrawn votes, or from 5000 items on and with "asymptotic" the shifted gamma law.
    n_resamples : int, default 1999
        Redrawn sets of votes.
    rng, workers, **facts
        As in :func:`calibration_test`; only ``items``, ``weights`` of items and ``clusters`` of
        whole items are taken.

    Returns
    -------
    IndividualErrorResult

    Raises
    ------
    StatisticError
        Without items, and where fewer than two items, or clusters of items, have two votes.

    Notes
    -----
    Test (:class:`IndividualError`) and estimate use different weights: m − 1 gives power, equal
    weights give the mean over items. The interval is Student's for the mean of the unbiased errors
    of items; clusters of items are summed first. For each class the calibration part is the mean
    over its bins of products of residuals of different items (clusters), which has no bias; for
    both parts the standard error comes from the delete-one jackknife, and ends are cut off at 0.
    Lower ends are 0 unless the test rejects at half of 1 − ``level``. Where rare outcomes did not
    occur and errors of items scatter less than half as much as votes drawn from the predictions,
    the upper ends use the scatter of these. Intervals are conservative where the truth is 0.
    O(B I K + n K).

    The test assumes that votes of an item are independent draws. If raters judge several items,
    models that are right are rejected too often.

    Examples
    --------
    >>> import numpy as np
    >>> import caltest as ct
    >>> rng = np.random.default_rng(0)
    >>> q = rng.beta(2, 2, 300)  # true probabilities that differ
    >>> counts = rng.multinomial(5, np.column_stack([1 - q, q]))
    >>> votes = ct.Predictions.of_votes(np.full(300, 0.5), counts)  # all get one half
    >>> found = ct.individual_error(votes, rng=0)
    >>> found.pvalue < 0.001, found.calibration < 0.01 < found.grouping
    (True, True)
    """
    check_run(**(run := Run(n_resamples=n_resamples, rng=rng, workers=workers)))
    fraction("level", level)
    analysis = Analysis.of("individual_error", probs, labels, facts, lens=Canonical(), rng=rng)
    data, statistic = analysis.rows, IndividualError()
    test = calibration_test(data, None, statistic, lens=Canonical(), null=null, **run)
    go_on(test.ended)
    votes = Votes.of(data)
    size = votes.size
    if n_bins is None:
        n_bins = int(np.clip(len(size) // 20, 1, 10))
    whole("n_bins", n_bins)
    several = size >= 2
    unit = np.arange(len(size)) if votes.clusters is None else votes.clusters
    if np.unique(unit[several]).size < 2:
        raise StatisticError(
            "individual_error needs two items, or clusters of items, with two votes or more"
        )
    weight = np.ones(len(size)) if votes.weights is None else votes.weights
    errors = unbiased_errors(votes.probs, votes.counts)
    grouped = unit[several] if votes.clusters is not None else None
    whole_error = mean_interval(errors[several], weight[several], grouped, level)
    intervals = {"": whole_error}
    intervals["calibration_"], intervals["grouping_"] = split(votes, n_bins, level)
    calibration, grouping = intervals["calibration_"], intervals["grouping_"]
    # Where predictions are compatible with all votes, no error is certain
    certain = test.pvalue <= 0.5 * (1.0 - level)
    widest = whole_error[2] if certain else _reach_of_the_null(votes, whole_error, level)
    ends: Fields = {}
    for name, (_, low, high) in intervals.items():
        ends[f"{name}low"] = max(0.0, low) if certain else 0.0
        ends[f"{name}high"] = max(0.0, high, widest if widest > whole_error[2] else high)
    return analysis.result(
        IndividualErrorResult,
        estimate=whole_error[0],
        calibration=calibration[0],
        grouping=grouping[0],
        **ends,
        level=level,
        test=replace(test, null_distribution=None),
        items=int(several.sum()),
        single=int((size == 1).sum()),
        n_bins=n_bins,
        n_resamples=test.n_resamples,
        ended=test.ended,
    )


def _reach_of_the_null(votes: Votes, interval: Interval, level: float) -> float:
    """Return the upper limit of the error, raised if votes agree too well to show their scatter.

    Where rare outcomes did not occur, all items have nearly the same unbiased error, and the
    scatter over items understates the uncertainty. If it is less than half of the scatter of votes
    drawn from the predictions, the latter is used. ``interval`` holds the estimate and its limits.
    """
    from scipy.special import stdtrit

    several = votes.size >= 2
    weight = np.where(several, 1.0 if votes.weights is None else votes.weights, 0.0)
    variance, _ = null_moments(votes.probs, votes.size, weight / weight.sum())
    reach = float(stdtrit(several.sum() - 1, 0.5 + level / 2.0)) * variance**0.5
    estimate, _, high = interval
    return max(high, estimate + reach) if high - estimate < 0.5 * reach else high


def mean_interval(
    errors: FloatArray, weight: FloatArray, clusters: IntArray | None, level: float
) -> Interval:
    """Return (estimate, low, high): the weighted mean of item errors with a t interval.

    ``errors`` and ``weight`` have shape (I,). Items of a cluster are summed first.
    """
    from scipy.special import stdtrit

    mean = float(weight @ errors / weight.sum())
    away = weight * (errors - mean) / weight.sum()
    if clusters is not None:
        away = np.bincount(np.unique(clusters, return_inverse=True)[1].ravel(), away)
    g = away.size
    half = float(stdtrit(g - 1, 0.5 + level / 2.0)) * float(np.sqrt(g / (g - 1) * (away @ away)))
    return mean, mean - half, mean + half


def split(votes: Votes, n_bins: int, level: float) -> tuple[Interval, Interval]:
    """Return the calibration part and the grouping loss with jackknife intervals.

    For every class and bin, Σ_{g ≠ h} r_g r_h / Σ_{g ≠ h} c_g c_h is an unbiased square of the mean
    residual, with r_g and c_g the sums of residuals and weights of cluster (item) g.
    """
    size, n = votes.size, len(votes.size)
    unit = np.arange(n) if votes.clusters is None else votes.clusters
    unit = np.unique(unit, return_inverse=True)[1].ravel()
    weight = np.ones(n) if votes.weights is None else votes.weights
    count, several = int(unit.max()) + 1, size >= 2
    held = np.where(several, weight, 0.0)
    errors = np.bincount(unit, held * unbiased_errors(votes.probs, votes.counts), count)
    masses, whole_mass = np.bincount(unit, held, count), np.bincount(unit, weight, count)
    with np.errstate(invalid="ignore", divide="ignore"):
        without = (errors.sum() - errors) / (masses.sum() - masses)
    individual, total = errors.sum() / masses.sum(), whole_mass.sum()
    residuals = votes.counts / np.maximum(size, 1)[:, None] - votes.probs
    part, change = 0.0, np.zeros(count)
    for p, r in zip(votes.probs.T, residuals.T, strict=True):
        edges = np.unique(np.quantile(p, np.linspace(0.0, 1.0, n_bins + 1)[1:-1]))
        number = np.searchsorted(edges, p, side="right")
        for b in np.unique(number):
            here = np.flatnonzero(number == b)
            members, place = np.unique(unit[here], return_inverse=True)
            if members.size < 2:
                continue
            place = place.ravel()
            added = [
                np.bincount(place, x).astype(np.float64)
                for x in (weight[here] * r[here], weight[here])
            ]
            value, less = _leave_one_out(*added)
            part += value
            change[members] += less - value
    calibration, calibration_without = part / total, (part + change) / (total - whole_mass)
    intervals = []
    for estimate, each in (
        (calibration, calibration_without),
        (individual - calibration, without - calibration_without),
    ):
        intervals.append(_jackknife_interval(estimate, each, level))
    return intervals[0], intervals[1]


def _leave_one_out(sums: FloatArray, mass: FloatArray) -> tuple[float, FloatArray]:
    """Return a debiased square and its jackknife values (G,).

    The square is N Σ_{g≠h} r_g r_h / Σ_{g≠h} c_g c_h, where ``sums`` are the r_g and ``mass`` the
    c_g of G clusters, and N is Σ c_g. Value g of the array leaves cluster g out.
    """
    s, q, n, c = sums.sum(), np.square(sums).sum(), mass.sum(), np.square(mass).sum()
    value = float(n * (s**2 - q) / (n**2 - c))
    n_, pairs = n - mass, (n - mass) ** 2 - (c - mass**2)
    gained = n_ * ((s - sums) ** 2 - (q - sums**2))
    return value, np.divide(gained, pairs, out=np.zeros_like(pairs), where=pairs > 1e-12)


def _jackknife_interval(estimate: float, without: FloatArray, level: float) -> Interval:
    """Return (estimate, low, high), a t interval from the values without each cluster, (G,)."""
    from scipy.special import stdtrit

    g = without.size
    away = without - without.mean()
    half = float(stdtrit(g - 1, 0.5 + level / 2.0) * np.sqrt((g - 1) / g * (away @ away)))
    return float(estimate), float(estimate) - half, float(estimate) + half
