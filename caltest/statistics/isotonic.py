"""Isotonic regression of outcomes on predictions, and the CORP decomposition of scores."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

from caltest._numba import kernel
from caltest.checks import one_of
from caltest.errors import StatisticError
from caltest.predictions import BoolArray, FloatArray, IntArray
from caltest.statistics.lanes.events import EventRedraws, in_order
from caltest.statistics.problem import OfLabels, as_problem, by_value, event

Score = Literal["brier", "log"]


def pav(values: Any, weights: Any = None) -> FloatArray:
    """Return the non-decreasing sequence closest to ``values`` in weighted squares.

    The pool-adjacent-violators algorithm: neighbours in the wrong order are replaced by their mean
    until none are left. O(n).

    Parameters
    ----------
    values : array_like of shape (n,)
        A sequence of finite numbers.
    weights : array_like of shape (n,), optional
        Positive weights, by default equal ones.

    Returns
    -------
    ndarray of shape (n,)
        Σ w (values − result)² is as small as a non-decreasing result allows. For values that are
        frequencies of events it maximises the likelihood as well.

    Raises
    ------
    StatisticError
        When the shapes differ, a value is not finite or a weight not positive.

    References
    ----------
    Ayer, Brunk, Ewing, Reid & Silverman, "An empirical distribution function for sampling with
    incomplete information", Annals of Mathematical Statistics 26, 1955.

    Examples
    --------
    >>> pav([1.0, 3.0, 2.0, 4.0])
    array([1. , 2.5, 2.5, 4. ])
    """
    y = np.asarray(values, dtype=np.float64)
    w = np.ones_like(y) if weights is None else np.asarray(weights, dtype=np.float64)
    if y.ndim != 1 or w.shape != y.shape:
        raise StatisticError(
            f"values and weights must be 1-D and equally long, not of shapes {y.shape} and "
            f"{w.shape}"
        )
    wrong = np.flatnonzero(~(np.isfinite(y) & np.isfinite(w) & (w > 0.0)))
    if wrong.size:
        i = int(wrong[0])
        raise StatisticError(
            f"values must be finite and weights positive: entry {i} has value {y[i]} and weight "
            f"{w[i]}"
        )
    fitted = np.empty_like(y)
    _pav(y * w, w, fitted)
    return fitted


@dataclass(frozen=True, eq=False)
class IsotonicFit:
    """The PAV-recalibrated probabilities of a two-class problem: the CORP reliability curve.

    Attributes
    ----------
    predicted : ndarray of shape (G,)
        The distinct predicted probabilities of the event, increasing.
    observed : ndarray of shape (G,)
        Their recalibrated values, not decreasing; equal values form the CORP bins.
    count : ndarray of shape (G,)
        Number of rows with each prediction.
    """

    predicted: FloatArray = field(repr=False)
    observed: FloatArray = field(repr=False)
    count: IntArray = field(repr=False)

    def __call__(self, p: Any) -> FloatArray:
        """Recalibrate: linear between the distinct predictions, constant outside their range."""
        return np.interp(np.asarray(p, dtype=np.float64), self.predicted, self.observed)


@dataclass(frozen=True)
class CORPDecomposition:
    """A mean score taken apart: ``mean_score = miscalibration − discrimination + uncertainty``.

    Attributes
    ----------
    mean_score : float
        S(p, y), the mean score of the predictions; smaller is better.
    miscalibration : float
        S(p, y) − S(p̂, y) ≥ 0, with p̂ the isotonic fit: what recalibration would gain.
    discrimination : float
        S(ȳ, y) − S(p̂, y) ≥ 0, with ȳ the share of events: what the ranking is worth.
    uncertainty : float
        S(ȳ, y), the score of the best constant prediction.
    score : {"brier", "log"}
        The score.
    fit : IsotonicFit
        The isotonic fit p̂, to be drawn as a reliability curve.
    """

    mean_score: float
    miscalibration: float
    discrimination: float
    uncertainty: float
    score: Score
    fit: IsotonicFit = field(repr=False, compare=False)


def isotonic_fit(probs: Any, labels: Any) -> IsotonicFit:
    """Regress the event of a two-class problem on its predicted probability, isotonically.

    Rows with equal predictions are pooled first. O(n log n).

    Parameters
    ----------
    probs : array_like of shape (n, 2) or (n,)
        Class 0 is the event; a 1-D array is the probability of label 1.
    labels : array_like of shape (n,)
        Observed labels.

    Raises
    ------
    StatisticError
        For more than two classes.

    Examples
    --------
    >>> fit = isotonic_fit([0.1, 0.3, 0.3, 0.8], [1, 0, 0, 1])
    >>> fit.predicted, fit.observed.round(3), fit.count
    (array([0.1, 0.3, 0.8]), array([0.333, 0.333, 1.   ]), array([1, 2, 1]))
    """
    rows, codes = as_problem(probs, labels)
    p = event(rows, "isotonic_fit")
    order, ends = by_value(p)
    events = np.add.reduceat((codes[order] == 0).astype(np.float64), _starts(ends))
    count = np.diff(ends, prepend=0)
    fitted = np.empty(ends.size)
    _pav(events, count.astype(np.float64), fitted)
    return IsotonicFit(p[order[ends - 1]], fitted, count)


def corp_decomposition(probs: Any, labels: Any, score: Score = "brier") -> CORPDecomposition:
    """Take a mean score apart into miscalibration, discrimination and uncertainty.

    Every part is a difference of scores under the isotonic fit p̂ (Dimitriadis, Gneiting & Jordan
    2021): no bins, no tuning. O(n log n).

    Parameters
    ----------
    probs, labels : array_like
        A two-class problem, as for :func:`isotonic_fit`.
    score : {"brier", "log"}, default "brier"
        (p − y)², or −log of the probability of what happened. The log score of a label of
        probability 0 is infinite, and then so are ``mean_score`` and ``miscalibration``; the other
        parts are always finite, because 0 log 0 = 0.

    Raises
    ------
    StatisticError
        For more than two classes or another score.

    Examples
    --------
    >>> parts = corp_decomposition([0.2, 0.6, 0.4, 0.9], [0, 0, 1, 1])
    >>> parts.mean_score, parts.miscalibration, parts.discrimination, parts.uncertainty
    (0.1925, 0.0675, 0.125, 0.25)
    """
    rows, codes = as_problem(probs, labels)
    fixed = CORP(score).given(rows)
    fit = isotonic_fit(rows, codes)
    share = float((codes == 0).mean())
    hits = fit.observed * fit.count
    mean_score = fixed.mean_score(codes)
    recalibrated = float(_entropy(hits, fit.count, score).sum() / codes.size)
    uncertainty = float(_entropy(np.array([share]), np.ones(1), score)[0])
    return CORPDecomposition(
        mean_score, mean_score - recalibrated, uncertainty - recalibrated, uncertainty, score, fit
    )


def _entropy(hits: FloatArray, size: IntArray | FloatArray, score: Score) -> FloatArray:
    """Return the summed scores of ``size`` rows that are all predicted their share of hits."""
    share: FloatArray = hits / size
    if score == "brier":
        spread: FloatArray = hits * (1.0 - share)
        return spread
    from scipy.special import xlogy

    likelihood = xlogy(hits, share) + xlogy(size - hits, 1.0 - share)
    return -np.asarray(likelihood, dtype=np.float64)


@dataclass(frozen=True, eq=False)
class Pools:
    """A CORP miscalibration whose predictions are fixed: what is left is a function of the labels.

    Attributes
    ----------
    order : ndarray of shape (n,)
        The rows by increasing probability of the event.
    tied : ndarray of shape (T, 2)
        First and last + 1, in that order, of each group of several rows with equal probabilities.
    hit, miss : ndarray of shape (n,)
        The score of each row, in that order, when the event happens and when it does not.
    score : {"brier", "log"}
        The score.
    """

    order: IntArray = field(repr=False)
    tied: IntArray = field(repr=False)
    hit: FloatArray = field(repr=False)
    miss: FloatArray = field(repr=False)
    score: Score

    def mean_score(self, labels: IntArray) -> float:
        """Return S(p, y)."""
        return float(np.where(labels[self.order] == 0, self.hit, self.miss).mean())

    def __call__(self, labels: IntArray) -> float:
        return float(self.values(in_order(labels, self.order))[0])

    def values(self, events: BoolArray) -> FloatArray:
        """Return the miscalibration for events of shape (B, n) in the order of the rows.

        Events of tied rows are put in another order on the way.
        """
        results = np.empty(len(events))
        _miscalibrations(events, self.tied, self.hit, self.miss, self.score == "log", results)
        return results

    def redraws(self, probs: FloatArray) -> EventRedraws:
        """Return the compiled null under redrawn labels."""
        return EventRedraws.of(self.order, probs, self.values)


@dataclass(frozen=True, repr=False)
class CORP(OfLabels):
    """Miscalibration by isotonic regression (CORP), for two classes.

    MCB = S(p, y) − S(p̂, y): how much better the mean score would be if the predictions were
    recalibrated by isotonic regression on the same outcomes (Dimitriadis, Gneiting & Jordan 2021).
    Bins are chosen by the data, optimally; rows with equal predictions share one. Finds bumps and
    waves as well as shifts, and is positive by chance alone: read it beside its noise floor. The
    other parts of the score are given by :func:`corp_decomposition`.

    Parameters
    ----------
    score : {"brier", "log"}, default "brier"
        (p − y)², or −log of the probability of what happened. The log score is infinite for a label
        of probability 0, and the verbs refuse it then.

    Raises
    ------
    StatisticError
        For more than two classes or another score.

    Notes
    -----
    O(n log n) once, O(n) for each further set of labels. The range is [0, 1] for ``"brier"`` and
    [0, ∞] for ``"log"``. The fit depends on the labels, and is made anew for every redrawn set.

    References
    ----------
    Dimitriadis, Gneiting & Jordan, "Stable reliability diagrams for probabilistic classifiers",
    PNAS 118(8), 2021.

    Examples
    --------
    >>> round(CORP()([0.2, 0.6, 0.4, 0.9], [0, 0, 1, 1]), 12)
    0.0675
    """

    score: Score = "brier"

    def __post_init__(self) -> None:
        one_of("score", self.score, ("brier", "log"))

    def given(self, probs: FloatArray) -> Pools:
        """Fix the predictions: sort them once, and leave a function of the labels."""
        order, ends = by_value(event(probs, repr(self)))
        pools = np.column_stack([_starts(ends), ends])
        tied = pools[np.diff(pools)[:, 0] > 1]
        p, q = np.ascontiguousarray(probs[order].T)
        if self.score == "brier":
            return Pools(order, tied, q * q, p * p, self.score)
        with np.errstate(divide="ignore"):
            return Pools(order, tied, -np.log(p), -np.log(q), self.score)


def _starts(ends: IntArray) -> IntArray:
    return np.append(0, ends[:-1])


@kernel
def _pav(sums, weights, fitted_out):  # type: ignore[no-untyped-def]
    # A stack of blocks; a new one swallows those before it that are not below it.
    top = np.empty(sums.size, dtype=np.int64)
    total = np.empty(sums.size)
    weight = np.empty(sums.size)
    b = -1
    for g in range(sums.size):
        s, w = sums[g], weights[g]
        while b >= 0 and total[b] * w >= s * weight[b]:
            s += total[b]
            w += weight[b]
            b -= 1
        b += 1
        top[b], total[b], weight[b] = g, s, w
    g = 0
    for block in range(b + 1):
        while g <= top[block]:
            fitted_out[g] = total[block] / weight[block]
            g += 1


@kernel
def _miscalibrations(events, tied, hit, miss, log, results_out):  # type: ignore[no-untyped-def]
    # Neighbours (1, 0) always share a block, so blocks can only begin where 0 turns to 1: these
    # places are collected without branches, and the stack of _pav starts with runs 1…10…0.
    n = events.shape[1]
    rise = np.empty(n + 2, dtype=np.int64)
    fall = np.empty(n + 2, dtype=np.int64)
    seen = np.empty(n, dtype=np.int64)
    size = np.empty(n, dtype=np.int64)
    for r in range(events.shape[0]):
        row = events[r]
        for g in range(tied.shape[0]):  # with its events first, a tied group is one run as well
            first, last, s = tied[g, 0], tied[g, 1], 0
            for i in range(first, last):
                s += row[i]
            for i in range(first, last):
                row[i] = i - first < s
        s0 = s1 = s2 = s3 = 0.0  # four sums, because one would wait for itself
        for i in range(0, n - 3, 4):
            s0 += hit[i] if row[i] else miss[i]
            s1 += hit[i + 1] if row[i + 1] else miss[i + 1]
            s2 += hit[i + 2] if row[i + 2] else miss[i + 2]
            s3 += hit[i + 3] if row[i + 3] else miss[i + 3]
        for i in range(n - n % 4, n):
            s0 += hit[i] if row[i] else miss[i]
        score = s0 + s1 + s2 + s3
        rise[0] = 0
        rises, falls, before = 1, 0, 1
        for i in range(n):
            now = int(row[i])
            rise[rises], fall[falls] = i, i
            rises += now > before
            falls += now < before
            before = now
        rise[rises] = n
        if falls < rises:
            fall[falls] = n
        b = -1
        for k in range(rises):
            s, w = fall[k] - rise[k], rise[k + 1] - rise[k]
            while b >= 0 and seen[b] * w >= s * size[b]:
                s += seen[b]
                w += size[b]
                b -= 1
            b += 1
            seen[b], size[b] = s, w
        for block in range(b + 1):
            s, w = seen[block], size[block]
            if 0 < s < w:
                share = s / w
                if log:
                    score += s * np.log(share) + (w - s) * np.log1p(-share)
                else:
                    score -= s * (1.0 - share)
        results_out[r] = score / n
