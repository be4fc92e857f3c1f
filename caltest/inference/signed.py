"""Interval of the signed difference observed − predicted, by shifting predictions on the log-odds.

Let S = Σ w y be the weight of the events, p(t) = σ(logit p + t) and E(t) = Σ w p(t). A shift t is
rejected where S is surprisingly large or small under p(t); the shifts that are not rejected make
the interval of (E(t) − Σ w p) / Σ w. S is taken for g times a binomial count that has the mean and
the variance of S, so that both limits equal Clopper and Pearson's where predictions are equal, and
close to those of the Poisson-binomial law of independent rows elsewhere: rare events included.

Two factors widen the law. φ = max(1, V̂ / V(t̂)) compares the scatter of the residuals with the
variance at the shift t̂ that meets S, V(t) = Σ w² p(t) (1 − p(t)). The scatter is computed over
units u, which are rows or clusters: V̂ = Σ_u (S_u − W_u d)² with d the observed difference, times G
/ (G − 1) for G clusters. It allows for errors that no shift describes and for dependence within
clusters. With clusters or weights φ is multiplied by (t / z)², Student's quantile over the normal
one. An event then counts as g = φ Σ w² v / Σ w v, v = p(t̂) (1 − p(t̂)).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.special import betainc, gammainc, gammaincc, ndtri, stdtrit

from caltest._base import FloatArray
from caltest.data import Predictions
from caltest.inference.lattice import tilted

#: Probabilities are kept this far from 0 and 1, so that shifts reach every event rate.
EDGE = 1e-9


#: Shifts that are searched, in log-odds: they take ``EDGE`` beyond 1 − ``EDGE``.
SIGNED_REACH = 60.0


#: Share of a mean by which a variance falls short of it in a count that is binomial, not Poisson.
BINOMIAL = 1e-9


@dataclass(frozen=True)
class SignedBounds:
    """Mean observed − predicted with its interval, in [−1, 1], and the p-value of no difference."""

    estimate: float
    low: float
    high: float
    pvalue: float


def signed_bounds(rows: Predictions, times: FloatArray, alpha: float) -> SignedBounds:
    """Return bounds of the mean of observed − predicted.

    It is Σ w (q − p) / Σ w with q the true probabilities of the event, which is class 0. If most
    rows are events, non-events are counted instead, which is more accurate. Row i stands for
    ``times[i]`` rows. Each bound is wrong with probability at most ``alpha``. O(n) for each of
    about 40 evaluations.
    """
    p, y = rows.probs[:, 0], (rows.labels == 0).astype(np.float64)
    w = np.ones(p.size) if rows.weights is None else rows.weights
    if 2.0 * float((times * w) @ y) > float((times * w).sum()):
        rest = _signed(rows, times, (1.0 - p, 1.0 - y, w), alpha)
        return SignedBounds(-rest.estimate, -rest.high, -rest.low, rest.pvalue)
    return _signed(rows, times, (p, y, w), alpha)


def _signed(
    rows: Predictions,
    times: FloatArray,
    columns: tuple[FloatArray, FloatArray, FloatArray],
    alpha: float,
) -> SignedBounds:
    """Return the mean difference with its bounds; ``columns`` are (predictions, events, weights).

    Each has shape (n,), and each row stands for ``times`` rows.
    """
    from scipy.optimize import brentq

    p, y, w = columns
    weight, expected, events = (float((times * w) @ v) for v in (np.ones(p.size), p, y))
    estimate = (events - expected) / weight
    q = np.clip(p, EDGE, 1.0 - EDGE)

    def mean(t: float) -> float:
        return float((times * w) @ tilted(q, t))

    def root(rises: Callable[[float], float]) -> float:
        """Return the zero of an increasing function of the shift t.

        Without a zero it is the end of the range of t.
        """
        if rises(-SIGNED_REACH) >= 0.0:
            return -SIGNED_REACH
        if rises(SIGNED_REACH) <= 0.0:
            return SIGNED_REACH
        return float(brentq(rises, -SIGNED_REACH, SIGNED_REACH, xtol=1e-9))

    at = tilted(q, root(lambda t: mean(t) - events))
    squares = times * w**2
    phi = _overdispersion(rows, times, y - p - estimate, float(squares @ (at * (1.0 - at))), alpha)
    v = at * (1.0 - at)
    unit = phi * float(squares @ v) / float((times * w) @ v)

    def tails(t: float) -> tuple[float, float]:
        """Return P(count ≥ observed) and P(count ≤ observed) at a log-odds shift ``t``."""
        shifted = tilted(q, t)
        variance = phi * float(squares @ (shifted * (1.0 - shifted)))
        return _tails(events / unit, mean(t) / unit, variance / unit**2)

    low = mean(root(lambda t: tails(t)[0] - alpha)) if events > 0.0 else 0.0
    high = mean(root(lambda t: alpha - tails(t)[1]))
    pvalue = min(1.0, 2.0 * min(tails(0.0)))
    low, high = ((end - expected) / weight for end in (low, high))
    return SignedBounds(estimate, low, high, pvalue)


def _overdispersion(
    rows: Predictions, times: FloatArray, residuals: FloatArray, variance: float, alpha: float
) -> float:
    """Return φ ≥ 1, the variance of the event count divided by its variance for independent rows.

    ``residuals`` (n,) are y − p(t̂) and ``variance`` is Σ w² p (1 − p) at t̂. φ includes the square
    of the ratio of Student's to the normal quantile.
    """
    w = np.ones(residuals.size) if rows.weights is None else rows.weights
    units = [rows.clusters] if rows.n_clusters is not None else [None]
    units += [] if rows.crossed is None else [rows.crossed]
    scatter, freedom = 0.0, np.inf
    sums: FloatArray
    mass: FloatArray
    for unit in units:
        sums, mass, count = w * residuals, w, times
        if unit is not None:
            place = np.unique(unit, return_inverse=True)[1].ravel()
            sums = np.bincount(place, w * residuals).astype(np.float64)
            mass = np.bincount(place, w).astype(np.float64)
            count = np.ones(sums.size)  # clusters have no copies
        few = 1.0 if unit is None else sums.size / max(sums.size - 1.0, 1.0)
        scatter = max(scatter, few * float(count @ sums**2))
        if unit is not None or rows.weights is not None:
            effective = float(count @ mass) ** 2 / float(count @ mass**2)
            freedom = min(freedom, max(effective - 1.0, 1.0))
    phi = max(1.0, scatter / variance) if variance > EDGE else 1.0
    if np.isinf(freedom):
        return phi
    return phi * float(stdtrit(freedom, 1.0 - alpha) / ndtri(1.0 - alpha)) ** 2


def _tails(count: float, mean: float, variance: float) -> tuple[float, float]:
    """Return P(X ≥ count) and P(X ≤ count), X binomial with this mean and variance.

    X is Poisson if the variance is as large as the mean. ``count`` need not be whole.
    """
    if mean - variance <= BINOMIAL * mean:
        above = float(gammainc(count, mean)) if count > 0.0 else 1.0
        return above, float(gammaincc(count + 1.0, mean))
    trials = max(mean**2 / (mean - variance), count)
    share = min(mean / trials, 1.0)
    above = float(betainc(count, trials - count + 1.0, share)) if count > 0.0 else 1.0
    most = count >= trials
    return above, 1.0 if most else 1.0 - float(betainc(count + 1.0, trials - count, share))
