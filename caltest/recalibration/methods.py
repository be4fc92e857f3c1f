"""Methods of recalibration: Platt, beta, isotonic, histogram; temperature, vector, matrix.

The first four are curves of one probability. For two classes the curve maps the probability of
label 1. For more classes there is a curve for every class against the rest, and rows are divided by
their sum (Zadrozny & Elkan 2002); a row whose curves are all 0 becomes uniform, as in scikit-learn.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

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


# ------------------------------------------------------------------------------
# Temperature, vector and matrix scaling: softmax of a linear map of the logits.
#
# Logits are known up to a constant in each row. The one that stands for all is centred: the
# log-probabilities minus their mean over the classes.


@dataclass(frozen=True)
class Temperature:
    """The map of :class:`TemperatureScaling`: softmax(log p / T).

    The largest entry of every row stays so, also where rounding would tie it.
    """

    temperature: float

    def __call__(self, scores: FloatArray) -> FloatArray:
        from scipy.special import softmax

        best = scores.argmax(axis=1)
        probs: FloatArray = softmax(scores / self.temperature, axis=1)
        tied = np.flatnonzero(probs.argmax(axis=1) != best)
        probs[tied, best[tied]] = np.nextafter(probs[tied].max(axis=1), 1.0)
        return probs


@dataclass(frozen=True, eq=False)
class Linear:
    """The map of vector and matrix scaling: softmax(W z + b), z the centred logits.

    ``weights`` has shape (K,) for a diagonal W, (K, K) for a full one; ``bias`` has shape (K,).
    """

    weights: FloatArray
    bias: FloatArray

    def __call__(self, scores: FloatArray) -> FloatArray:
        from scipy.special import softmax

        return softmax(self.logits(_centred(scores)), axis=1)

    def logits(self, z: FloatArray) -> FloatArray:
        """Return W z + b, shape (n, K), for centred logits z of that shape."""
        scaled = z @ self.weights.T if self.weights.ndim == 2 else z * self.weights
        return scaled + self.bias


def _centred(scores: FloatArray) -> FloatArray:
    return scores - scores.mean(axis=1, keepdims=True)


class _LinearScaling(Penalised):
    """Base class of vector and matrix scaling; ``full`` selects a full matrix W over a diagonal."""

    full: ClassVar[bool]

    def _learn(self, scores: FloatArray, labels: IntArray, weights: FloatArray | None) -> Linear:
        z, k = _centred(scores), scores.shape[1]
        identity = np.eye(k) if self.full else np.ones(k)

        def linear(theta: FloatArray) -> Linear:
            return Linear(theta[:-k].reshape(identity.shape), theta[-k:])

        def adjoint(residual: FloatArray) -> FloatArray:
            slopes = residual.T @ z if self.full else (residual * z).sum(axis=0)
            return np.append(slopes, residual.sum(axis=0))

        loss = SoftmaxLoss(
            lambda theta: linear(theta).logits(z), adjoint, labels,
            np.append(identity, np.zeros(k)), self.penalty, weights,
        )  # fmt: skip
        return linear(loss.minimised())


@dataclass(frozen=True)
class TemperatureScaling(Penalised):
    """Temperature scaling, one parameter for all classes (Guo et al. 2017, §4.2).

        q = softmax(z / T),  z the logits or log-probabilities

    T > 1 makes predictions less certain, T < 1 more; no predicted class changes. ``penalty`` is the
    weight λ of (λ/2)(1/T − 1)², which keeps T > 0 when every row of the fit is classified
    correctly; else its effect is of order λ. The loss is convex in 1/T; O(n K) for each of some ten
    steps.

    StatisticError on labels less likely than under uniform guessing, which no T > 0 repairs.

    Examples
    --------
    >>> import caltest as ct
    >>> scaled = TemperatureScaling().fit(ct.examples.digits("overfit", "validation"))
    >>> round(scaled.map.temperature, 2)
    1.69
    """

    def _learn(
        self, scores: FloatArray, labels: IntArray, weights: FloatArray | None
    ) -> Temperature:
        def adjoint(residual: FloatArray) -> FloatArray:
            return np.array([np.vdot(residual, scores)])

        forward = lambda theta: theta[0] * scores  # noqa: E731
        loss = SoftmaxLoss(forward, adjoint, labels, np.ones(1), self.penalty, weights)
        if loss.value(np.zeros(1))[1][0] >= 0.0:
            raise StatisticError(
                "the labels are less likely under these predictions than under uniform guessing, "
                "and no temperature repairs that: are labels and columns in the same order?"
            )
        return Temperature(1.0 / float(loss.minimised()[0]))


@dataclass(frozen=True)
class VectorScaling(_LinearScaling):
    """Vector scaling, a slope and an intercept for every class (Guo et al. 2017, §4.2).

        q = softmax(w ⊙ z + b),  z_k = log p_k − mean_j log p_j

    Slopes that differ see the constant of raw logits, which the centred z leaves out. ``penalty``
    is the weight λ of (λ/2)(‖w − 1‖² + ‖b‖²), which makes the optimum unique and finite. O(n K) for
    each of some dozens of steps.

    Examples
    --------
    >>> import caltest as ct
    >>> scaled = VectorScaling().fit(ct.examples.digits("overfit", "validation"))
    >>> round(scaled.nll_before, 3), round(scaled.nll_after, 3)
    (0.736, 0.555)
    """

    full: ClassVar[bool] = False


@dataclass(frozen=True)
class MatrixScaling(_LinearScaling):
    """Matrix scaling, a full linear map of the logits (Guo et al. 2017, §4.2).

        q = softmax(W z + b),  z_k = log p_k − mean_j log p_j

    With log p in place of z this would be Dirichlet calibration (Kull et al. 2019). K² + K
    parameters fit the noise of small sets: the result can be worse than none (Guo et al. 2017,
    Table 1) and needs a larger ``penalty`` λ, of (λ/2)(‖W − I‖² + ‖b‖²). O(n K²) for each of dozens
    to hundreds of steps.

    Examples
    --------
    >>> import caltest as ct
    >>> validation = ct.examples.digits("overfit", "validation")
    >>> [round(MatrixScaling(penalty).fit(validation).nll_after, 3) for penalty in (1e-6, 0.1)]
    [0.331, 0.445]
    """

    full: ClassVar[bool] = True
