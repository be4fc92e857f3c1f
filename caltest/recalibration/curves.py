"""Recalibration by curves of one probability: Platt, beta, isotonic, histogram.

For two classes the curve maps the probability of label 1. For more classes there is a curve for
every class against the rest, and rows are divided by their sum (Zadrozny & Elkan 2002); a row whose
curves are all 0 becomes uniform, as in scikit-learn.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from caltest._base import BoolArray, FloatArray, IntArray
from caltest.data.binning import EDGE_TOLERANCE, QuantileBins, UniformBins
from caltest.errors import StatisticError
from caltest.recalibration.fitting import (
    LOG_PROBABILITY_FLOOR,
    Penalised,
    Recalibration,
    SoftmaxLoss,
)

#: From log p and log(1 − p), both of shape (n,), to recalibrated probabilities of shape (n,).
Curve = Callable[[FloatArray, FloatArray], FloatArray]


@dataclass(frozen=True)
class Curves:
    """Fitted map of the methods in this module: one curve for two classes, else one for each class.

    Called on log-probabilities of shape (n, K), it returns probabilities of that shape.
    """

    curves: tuple[Curve, ...]

    def __call__(self, scores: FloatArray) -> FloatArray:
        if len(self.curves) == 1:
            p = self.curves[0](scores[:, 1], scores[:, 0])
            return np.column_stack([1.0 - p, p])
        parts = zip(self.curves, scores.T, _log_rest(scores).T, strict=True)
        probs = np.column_stack([curve(p, rest) for curve, p, rest in parts])
        probs[probs.sum(axis=1) == 0.0] = 1.0
        return probs / probs.sum(axis=1, keepdims=True)


def _log_rest(scores: FloatArray) -> FloatArray:
    """Return log(1 − p) for log-probabilities ``scores`` of shape (n, K), same shape.

    Near p = 1 it is computed from the other classes, so that no digits are lost.
    """
    probs = np.exp(scores)
    rest = 1.0 - probs
    every = np.arange(len(probs))
    best = probs.argmax(axis=1)
    probs[every, best] = 0.0
    rest[every, best] = probs.sum(axis=1)
    return np.log(np.clip(rest, LOG_PROBABILITY_FLOOR, 1.0))


@dataclass(frozen=True, eq=False)
class Event:
    """Training data of one curve: a class against the rest, arrays of shape (n,).

    ``log_p`` and ``log_rest`` are log p and log(1 − p), ``happened`` whether the class occurred.
    """

    log_p: FloatArray
    log_rest: FloatArray
    happened: BoolArray
    weights: FloatArray

    def logistic(self, features: FloatArray, identity: FloatArray, penalty: float) -> SoftmaxLoss:
        """Return the loss of a logistic regression of the event on features, shape (n, d).

        ``identity`` (d,) are the coefficients to which a ridge of weight ``penalty`` shrinks.
        """

        def forward(theta: FloatArray) -> FloatArray:
            return np.column_stack([np.zeros(len(features)), features @ theta])

        def adjoint(residual: FloatArray) -> FloatArray:
            return features.T @ residual[:, 1]

        labels = self.happened.astype(np.int64)
        return SoftmaxLoss(forward, adjoint, labels, identity, penalty, self.weights)


class _ByCurves(Recalibration):
    """Base class of methods that fit one curve for each class, independently.

    A subclass defines ``_curve(event)``, which returns a function of (log p, log(1 − p)).
    """

    def _learn(self, scores: FloatArray, labels: IntArray, weights: FloatArray | None) -> Curves:
        w = np.ones(len(scores)) if weights is None else weights
        if scores.shape[1] == 2:
            return Curves((self._curve(Event(scores[:, 1], scores[:, 0], labels == 1, w)),))
        columns = enumerate(zip(scores.T, _log_rest(scores).T, strict=True))
        events = (Event(p, rest, labels == k, w) for k, (p, rest) in columns)
        return Curves(tuple(map(self._curve, events)))

    @abstractmethod
    def _curve(self, event: Event) -> Curve: ...


@dataclass(frozen=True)
class BetaCurve:
    """Fitted curve logit q = a log p − b log(1 − p) + c; with a = b the curve of Platt scaling."""

    a: float
    b: float
    c: float

    def __call__(self, log_p: FloatArray, log_rest: FloatArray) -> FloatArray:
        from scipy.special import expit

        return expit(self.a * log_p - self.b * log_rest + self.c)


@dataclass(frozen=True)
class PlattScaling(_ByCurves, Penalised):
    """Platt scaling: logistic regression on the logit (Platt 1999; Guo et al. 2017, §4.1).

        logit q = a logit p + b

    Maximum likelihood, without the smoothed targets of Platt's paper; ``penalty`` is the weight λ
    of (λ/2)((a − 1)² + b²), which keeps the curve finite when p separates the classes. O(n K) for
    each of some ten steps.

    Examples
    --------
    >>> PlattScaling().fit([0.9] * 4 + [0.1] * 4, [1, 1, 1, 0, 0, 0, 0, 1])([0.9, 0.5]).round(4)
    array([0.75, 0.5 ])
    """

    def _curve(self, event: Event) -> BetaCurve:
        logit = event.log_p - event.log_rest
        features = np.column_stack([logit, np.ones(logit.size)])
        a, b = event.logistic(features, np.array([1.0, 0.0]), self.penalty).minimised()
        return BetaCurve(float(a), float(a), float(b))


@dataclass(frozen=True)
class BetaCalibration(_ByCurves, Penalised):
    """Beta calibration (Kull, Silva Filho & Flach 2017).

        logit q = a log p − b log(1 − p) + c,  a, b ≥ 0

    The odds are a ratio of two beta densities; a = b gives Platt scaling, a = b = 1 and c = 0 the
    identity. ``penalty`` is the weight λ of (λ/2)((a − 1)² + (b − 1)² + c²). O(n K) for each of
    some ten steps.

    Examples
    --------
    >>> BetaCalibration().fit([0.9, 0.9, 0.6, 0.4, 0.1, 0.1], [1, 0, 1, 0, 0, 1])([0.9]).round(2)
    array([0.55])
    """

    def _curve(self, event: Event) -> BetaCurve:
        features = np.column_stack([event.log_p, -event.log_rest, np.ones(event.log_p.size)])
        identity = np.array([1.0, 1.0, 0.0])
        whole = event.logistic(features, identity, self.penalty)
        # A convex loss with two bounds: the optimum frees the parameters for which no
        # gradient leads away from a bound.
        for free in ([0, 1, 2], [1, 2], [0, 2], [2]):
            theta = np.zeros(3)
            part = event.logistic(features[:, free], identity[free], self.penalty)
            theta[free] = part.minimised()
            bound = np.setdiff1d(range(3), free)
            if (theta[:2] >= 0.0).all() and (whole.value(theta)[1][bound] >= 0.0).all():
                break
        return BetaCurve(*theta.tolist())


@dataclass(frozen=True, eq=False)
class Polyline:
    """Fitted curve of isotonic regression: linear between knots and constant beyond them.

    ``knots`` are predictions in increasing order and ``values`` the recalibrated ones, shape (m,).
    """

    knots: FloatArray
    values: FloatArray

    def __call__(self, log_p: FloatArray, log_rest: FloatArray) -> FloatArray:
        return np.interp(np.exp(log_p), self.knots, self.values)


@dataclass(frozen=True)
class IsotonicRegression(_ByCurves):
    """Isotonic regression: the best increasing curve (Zadrozny & Elkan 2002).

    Pool-adjacent-violators, equal probabilities taken together; straight between the observed ones,
    as in scikit-learn. It may be exactly 0 or 1, and is 0 for classes that do not occur in the fit.
    O(n log n) for each class.

    Examples
    --------
    >>> IsotonicRegression().fit([0.1, 0.2, 0.3, 0.8], [0, 1, 0, 1])([0.1, 0.2, 0.55])
    array([0.  , 0.5 , 0.75])
    """

    def _curve(self, event: Event) -> Polyline:
        from scipy.optimize import isotonic_regression

        knots, member = np.unique(np.exp(event.log_p), return_inverse=True)
        mass = np.bincount(member.ravel(), event.weights)
        means = np.bincount(member.ravel(), event.weights * event.happened) / mass
        values = isotonic_regression(means, weights=mass).x
        bent = np.append(True, np.diff(values) != 0.0)
        corners = bent | np.append(bent[1:], True)  # both ends of every level stretch
        return Polyline(knots[corners], values[corners])


@dataclass(frozen=True, eq=False)
class Steps:
    """Fitted map of :class:`HistogramBinning`, constant in each bin.

    ``edges`` (m − 1,) separate the bins, ``values`` (m,) are the recalibrated probabilities.
    """

    edges: FloatArray
    values: FloatArray

    def __call__(self, log_p: FloatArray, log_rest: FloatArray) -> FloatArray:
        return self.values[np.searchsorted(self.edges, np.exp(log_p))]


@dataclass(frozen=True)
class HistogramBinning(_ByCurves):
    """Histogram binning: the frequency of the class in each bin (Zadrozny & Elkan 2001).

    ``bins`` lie along the probability of a class. With many classes, equal-mass bins lie mostly at
    small probabilities, and accuracy suffers. An empty bin of equal width keeps its centre. The
    result has ties, may be exactly 0 or 1, and can be less likely on the fitting set than the
    predictions. O(n log n) for each class.

    Examples
    --------
    >>> HistogramBinning(UniformBins(2)).fit([0.1, 0.2, 0.3, 0.8], [0, 1, 0, 1])([0.1]).round(3)
    array([0.333])
    """

    bins: UniformBins | QuantileBins = UniformBins(15)

    def __post_init__(self) -> None:
        if not isinstance(self.bins, (UniformBins, QuantileBins)):
            raise StatisticError(
                "bins must be UniformBins or QuantileBins, such as UniformBins(15), not "
                f"{self.bins!r}"
            )

    def _curve(self, event: Event) -> Steps:
        p = np.exp(event.log_p)
        if isinstance(self.bins, UniformBins):
            tolerance = EDGE_TOLERANCE if self.bins.closed == "right" else -EDGE_TOLERANCE
            edges = np.arange(1, self.bins.n_bins) / self.bins.n_bins + tolerance
        else:  # a cut lies halfway between two bins
            ordered = np.sort(p)
            last = np.flatnonzero(np.diff(self.bins(ordered)))
            edges = 0.5 * (ordered[last] + ordered[last + 1])
        cells = np.searchsorted(edges, p)
        count = np.bincount(cells, event.weights, minlength=edges.size + 1)
        events = np.bincount(cells, event.weights * event.happened, minlength=edges.size + 1)
        bounds = np.concatenate([[0.0], edges, [1.0]])
        centres = 0.5 * (bounds[1:] + bounds[:-1])
        return Steps(edges, np.where(count > 0, events / np.where(count > 0, count, 1), centres))
