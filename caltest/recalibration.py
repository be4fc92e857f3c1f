"""Recalibration maps: fitted on held-out labels, applied to probabilities.

A method such as :class:`TemperatureScaling` is a value; its ``fit`` returns a map that is called on
new predictions, a :class:`Recalibrated`. Fit on one part of the data and test on another: a test on
the rows of the fit says nothing, and is refused when it is noticed.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Unpack, overload

import numpy as np
from numpy.typing import NDArray

from caltest._base import BoolArray, FloatArray, IntArray
from caltest._base.arrays import AnyArray, as_ndarray, number
from caltest._base.written import refuse_form
from caltest.data import Facts, Predictions
from caltest.data.binning import EDGE_TOLERANCE, QuantileBins, UniformBins
from caltest.data.numbers import as_array, as_numbers, row_numbers
from caltest.errors import StatisticError
from caltest.read.arguments import raw_values, read_arguments
from caltest.results import Provenance

__all__ = [
    "BetaCalibration",
    "HistogramBinning",
    "IsotonicRegression",
    "MatrixScaling",
    "PlattScaling",
    "Recalibrated",
    "Recalibration",
    "TemperatureScaling",
    "VectorScaling",
    "refuse_fitted_rows",
]

#: Probabilities below this count as this: next to 1, float64 resolves no further.
LOG_PROBABILITY_FLOOR = 2.0**-53


#: Norm of the gradient of the mean loss that the optimiser aims at, and the largest that counts as
#: an optimum: where the loss is steep its rounding hides the last steps.
AIM, GRADIENT = 1e-8, 1e-6


#: Decimals of log-probabilities that tell one row from another.
TIE_DECIMALS = 9


#: Shares: of rows of the fit above which predictions are refused; of rows that occur twice above
#: which rows cannot be told apart; the chance with which so many rows of a small part agree.
KNOWN, SHARE_ALIKE, CHANCE_OF_COPIES = 0.05, 0.01, 0.01


#: What a method has learned: log-probabilities to recalibrated probabilities, (n, K) both.
Map = Callable[[FloatArray], FloatArray]


class Recalibration(ABC):
    """Base class of recalibration methods, which provides ``fit``.

    A subclass defines ``_learn(scores, labels, weights)`` for log-probabilities (n, K), labels (n,)
    and weights (n,) or None. It returns the fitted map, a function of log-probabilities (n, K) that
    gives probabilities (n, K).
    """

    def fit(self, probs: object, labels: object = None, **facts: Unpack[Facts]) -> Recalibrated:
        """Fit the map on held-out predictions and labels; return it, to be called on new ones.

        Arguments are as in :meth:`Predictions.of`, for rows that the model was not trained on.
        Logits that differ by a constant in each row give the same map. ``ids`` identify the rows of
        the fit later; ``weights`` weigh the rows of the loss, and only their ratios count.
        StatisticError when there is no optimum to be reached, or the method does not fit the data.
        """
        facts.setdefault("rounded", False)  # every row is one to fit
        data = read_arguments(probs, labels, **facts).labelled(f"{type(self).__name__}.fit")
        logits, values = facts.get("from_logits", False), probs
        if logits:  # which may be columns of a table
            values = raw_values(probs, labels, **facts)
        scores = _scores(data, values, logits)
        w = data.weights
        rows = slice(None) if w is None else w > 0.0
        mean_one = None if w is None else w[rows] / w[rows].mean()
        learned = self._learn(scores[rows], data.labels[rows], mean_one)
        likely = np.maximum(_of_labels(learned(scores), data.labels), np.finfo(float).tiny)
        numbers, count = np.unique(_row_numbers(scores), return_counts=True)
        return Recalibrated(
            *(self, learned, data.n, data.n_classes),
            nll_before=-float(np.average(_of_labels(scores, data.labels), weights=w)),
            nll_after=-float(np.average(np.log(likely), weights=w)),
            rows=numbers[count == 1],
            alike=float(2 * (count == 2).sum() / data.n),
            ids=data.ids,
        )

    def __call__(self, *_: object, **__: object) -> Predictions:
        """Raise StatisticError: the map that ``fit`` returns is called, not the method."""
        raise StatisticError(f"{self!r} is not fitted: call what its fit(probs, labels) returns")

    @abstractmethod
    def _learn(self, scores: FloatArray, labels: IntArray, weights: FloatArray | None) -> Map: ...


@dataclass(frozen=True)
class Penalised(Recalibration):
    """Base class of recalibration methods whose parameters are shrunk to the identity map.

    ``penalty`` λ > 0 is the weight of the ridge (λ/2) ‖θ − θ₀‖², by default 1e-6; θ₀ are the
    parameters of the identity. Without one the optimum need not exist.
    """

    penalty: float = 1e-6

    def __post_init__(self) -> None:
        number("penalty", self.penalty, 0.0, np.inf)  # without one the optimum need not exist


@dataclass(frozen=True, eq=False)
class Recalibrated:
    """A fitted recalibration map: call it on new predictions.

    An array gives an array of the same shape, :class:`Predictions` give :class:`Predictions` with a
    :class:`Provenance`, which counts the rows of the fit among them. Tests refuse predictions with
    more than 5 % such rows; a note says so when there are fewer.

    Rows are recognised by their ``ids``, where both sides have them, else by log-probabilities that
    agree to nine decimals and occur once on each side. Rounded predictions, and predictions of
    trees and neighbours, agree by chance, about as often as rows occur twice in the fit. Matches
    therefore count only if more than half of all rows match, for probabilities that are all
    multiples of 0.0001, when more than 1 % of the fit occur twice, and when so few match that
    chance explains it with probability 1 %.

    Attributes
    ----------
    method, map : Recalibration, Map
        The method with its settings, and the learned map, with its parameters as attributes.
    n, n_classes : int
        Size of the fitting set, and number of classes.
    nll_before, nll_after : float
        Mean negative log-likelihood of the fitting set. Scaling methods, and all methods for two
        classes but :class:`HistogramBinning`, never make it worse.
    rows, alike, ids
        Of the fitting set: hashes of rows that occur once, share of rows that occur twice, and ids.
    """

    method: Recalibration
    map: Map
    n: int
    n_classes: int
    nll_before: float
    nll_after: float
    rows: NDArray[np.uint64] = field(repr=False)
    alike: float
    ids: AnyArray | None = field(default=None, repr=False)

    @overload
    def __call__(self, probs: Predictions) -> Predictions: ...

    @overload
    def __call__(self, probs: Any, *, from_logits: bool = False) -> Any: ...

    def __call__(self, probs: object, *, from_logits: bool = False) -> FloatArray | Predictions:
        """Return recalibrated probabilities in the form of ``probs``: (n,), (n, K) or Predictions.

        With ``from_logits`` the input are logits; the result are probabilities. Predictions keep
        their labels and get a note and a record of the fit. StatisticError for another number of
        classes than fitted.
        """
        unlabelled = None
        if not isinstance(probs, Predictions):
            refuse_form(probs, "probs")
            probs = unlabelled = as_ndarray(probs, "probs")
        labels = None if unlabelled is None else np.zeros(len(unlabelled), dtype=np.int64)
        data = Predictions.of(probs, labels, from_logits=from_logits, rounded=False, as_is=None)
        scores = _scores(data, probs, from_logits)
        if data.n_classes != self.n_classes:
            raise StatisticError(
                f"the map was fitted on {self.n_classes} classes, but these predictions have "
                f"{data.n_classes}"
            )
        repaired = self.map(scores)
        if unlabelled is not None:
            column = unlabelled.ndim == 1 or unlabelled.shape[1] == 1
            return repaired[:, 1].reshape(unlabelled.shape) if column else repaired
        step = Provenance(repr(self.method), self.n, self._overlap(data, scores))
        notes = [*data.notes, f"recalibrated by {step.method}, fitted on {self.n} rows"]
        if step.n_overlap:
            notes.append(f"{step.n_overlap} of these {data.n} rows are rows of the fit")
        provenance = (*data.provenance, step)
        return replace(data, probs=repaired, notes=tuple(notes), provenance=provenance)

    def _overlap(self, data: Predictions, scores: FloatArray) -> BoolArray:
        """Return which rows are recognised as rows of the fit, booleans of shape (n,).

        They are matched by ``ids`` where both the fit and ``data`` have them, otherwise by
        ``scores`` (n, K), their log-probabilities.
        """
        if self.ids is not None and data.ids is not None:
            return np.isin(data.ids.astype(str), self.ids.astype(str))
        keys = _row_numbers(scores)
        numbers, first, count = np.unique(keys, return_index=True, return_counts=True)
        matches = first[(count == 1) & np.isin(numbers, self.rows, assume_unique=True)]
        of_fit = np.zeros(data.n, dtype=bool)
        of_fit[matches] = True
        if matches.size > 0.5 * data.n:
            return of_fit
        from scipy.special import gammainc  # P(Poisson(b) ≥ a)

        of_fit &= np.any(np.abs(data.probs - data.probs.round(4)) >= 1e-9, axis=1)
        many, expected = of_fit.sum(), data.n * max(self.alike, 1.0 / self.n)
        few = many > KNOWN * data.n and gammainc(many, expected) > CHANCE_OF_COPIES
        return np.zeros_like(of_fit) if few or self.alike > SHARE_ALIKE else of_fit

    def __str__(self) -> str:
        return (
            f"{self.method!r} fitted on {self.n} rows of {self.n_classes} classes: {self.map!r}\n"
            f"  mean negative log-likelihood {self.nll_before:.4f} before, {self.nll_after:.4f} "
            "after (on the rows of the fit)"
        )


def refuse_fitted_rows(data: Predictions) -> None:
    """Raise StatisticError if more than 5 % of the rows were used to fit their recalibration.

    ``data`` are predictions with a record of how they were recalibrated. A test on the rows of the
    fit would call nearly any recalibrated model calibrated.
    """
    for step in data.provenance:
        if step.n_overlap > KNOWN * data.n:
            raise StatisticError(
                f"these predictions cannot be tested: {step.method} was fitted on "
                f"{min(step.n_overlap, data.n)} of these {data.n} rows. Fit the recalibration on "
                "one part of the data and test it on another"
            )


def _of_labels(values: FloatArray, labels: IntArray) -> FloatArray:
    return values[np.arange(labels.size), labels]


def _scores(data: Predictions, probs: object, from_logits: bool) -> FloatArray:
    """Return the log-probabilities of rows, shape (n, K).

    Without ``from_logits`` they are logarithms of the probabilities of ``data``, at least 2⁻⁵³.
    With it they are the log-softmax of the logits ``probs``, (n,) or (n, K), which keep more digits
    than the probabilities of ``data``.
    """
    if not from_logits:
        return np.log(np.maximum(data.probs, LOG_PROBABILITY_FLOOR))
    from scipy.special import log_softmax

    # Probabilities of 1e-17 have been rounded away in data.probs, but not in the logits.
    logits = as_numbers(as_array(probs, "probs"), "probs")
    if logits.ndim == 1:
        logits = np.column_stack([np.zeros(data.n), logits])
    return log_softmax(logits, axis=1)


def _row_numbers(scores: FloatArray) -> NDArray[np.uint64]:
    return row_numbers(np.rint(scores * 10.0**TIE_DECIMALS).astype(np.int64))


@dataclass(frozen=True, eq=False)
class SoftmaxLoss:
    """Mean loss of softmax(forward(θ)), plus a ridge that draws θ to the identity.

        L(θ) = −(1/n) Σ_i w_i log softmax(forward(θ))_{i, y_i} + (λ/2) ‖θ − θ₀‖²

    with weights w of mean 1. ``forward`` is linear from the d parameters θ to scores of shape (n,
    K), ``adjoint`` its transpose, so that L is convex, and strictly so for λ > 0: the optimum
    exists for separable data as well, and its likelihood is at least the likelihood of θ₀.
    ``labels`` y has shape (n,), ``identity`` (d,) is θ₀, and ``penalty`` is λ. ``weights`` (n,) are
    None if all are equal.
    """

    forward: Callable[[FloatArray], FloatArray]
    adjoint: Callable[[FloatArray], FloatArray]
    labels: IntArray
    identity: FloatArray
    penalty: float
    weights: FloatArray | None = None
    _latest: list[tuple[FloatArray, FloatArray]] = field(default_factory=list, repr=False)

    def mean_loss(self, theta: FloatArray) -> tuple[float, FloatArray]:
        """Return (loss, gradient) at the parameters ``theta`` (d,); the gradient has shape (d,).

        The loss is the mean negative log-likelihood in nats plus the ridge.
        """
        from scipy.special import log_softmax

        logs = log_softmax(self.forward(theta), axis=1)
        shift = theta - self.identity
        unlikely = -np.average(_of_labels(logs, self.labels), weights=self.weights)
        loss = unlikely + 0.5 * self.penalty * shift @ shift
        q = np.exp(logs)
        self._latest[:] = [(theta.copy(), q), *self._latest[:1]]
        residual = q.copy()
        residual[np.arange(self.labels.size), self.labels] -= 1.0
        return float(loss), self._mean(residual) + self.penalty * shift

    def curvature(self, theta: FloatArray, direction: FloatArray) -> FloatArray:
        """Return the Hessian of the loss at ``theta`` (d,) times ``direction`` (d,), shape (d,)."""
        q = next((q for at, q in self._latest if np.array_equal(at, theta)), None)
        if q is None:
            from scipy.special import softmax

            q = softmax(self.forward(theta), axis=1)
        change = self.forward(direction)
        change = change - np.einsum("ij,ij->i", q, change)[:, None]
        return self._mean(q * change) + self.penalty * direction

    def _mean(self, rows: FloatArray) -> FloatArray:
        weighted = rows if self.weights is None else rows * self.weights[:, None]
        return self.adjoint(weighted) / self.labels.size

    def minimised(self) -> FloatArray:
        """Return the parameters that minimise this loss, shape (d,).

        A trust-region Newton method starts from the parameters of the identity map. StatisticError
        if it does not converge.
        """
        from scipy.optimize import minimize

        minimum = minimize(
            self.mean_loss, self.identity, method="trust-ncg", jac=True, hessp=self.curvature,
            options={"gtol": AIM, "maxiter": 1000},
        )  # fmt: skip
        norm = float(np.linalg.norm(self.mean_loss(minimum.x)[1]))
        if not norm <= GRADIENT:
            raise StatisticError(
                f"the fit has not converged after {minimum.nit} Newton steps (the norm of the "
                f"gradient is {norm:.2g}, not below {GRADIENT:g}): a larger penalty helps"
            )
        return minimum.x


# ------------------------------------------------------------------------------
# Curves of one probability: Platt, beta, isotonic, histogram.
#
# For two classes the curve maps the probability of label 1. For more classes there is a curve for
# every class against the rest, and rows are divided by their sum (Zadrozny & Elkan 2002); a row
# whose curves are all 0 becomes uniform, as in scikit-learn.


#: From log p and log(1 − p), both of shape (n,), to recalibrated probabilities of shape (n,).
Curve = Callable[[FloatArray, FloatArray], FloatArray]


@dataclass(frozen=True)
class Curves:
    """Fitted map of recalibration by curves: one curve for two classes, else one for each class.

    Called on log-probabilities of shape (n, K), it returns probabilities of that shape. Each of
    ``curves`` is a function of log p and log(1 − p), (n,) each, with recalibrated probabilities
    (n,); with several, rows are divided by their sum.
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

    ``log_p`` and ``log_rest`` are log p and log(1 − p), ``happened`` whether the class occurred,
    and ``weights`` the weights of the rows, of mean 1.
    """

    log_p: FloatArray
    log_rest: FloatArray
    happened: BoolArray
    weights: FloatArray

    def logistic(self, features: FloatArray, identity: FloatArray, penalty: float) -> SoftmaxLoss:
        """Return the loss of a logistic regression of the event on ``features`` (n, d).

        ``identity`` (d,) are the coefficients to which a ridge of weight ``penalty`` shrinks. The
        :class:`SoftmaxLoss` has ``minimised()`` for the coefficients (d,).
        """

        def forward(theta: FloatArray) -> FloatArray:
            return np.column_stack([np.zeros(len(features)), features @ theta])

        def adjoint(residual: FloatArray) -> FloatArray:
            return features.T @ residual[:, 1]

        labels = self.happened.astype(np.int64)
        return SoftmaxLoss(forward, adjoint, labels, identity, penalty, self.weights)


class _ByCurves(Recalibration):
    """Base class of methods that fit one curve for each class, independently.

    A subclass defines ``_curve(event)``, which returns a function of (log p, log(1 − p)) that gives
    recalibrated probabilities, all (n,). ``event``, an :class:`Event`, holds these logarithms of
    the training rows, which rows had the class, and weights.
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
    """Fitted curve logit q = a log p − b log(1 − p) + c; with a = b the curve of Platt scaling.

    Called with log p and log(1 − p), (n,) each, it returns the recalibrated probabilities q, (n,).
    """

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
    of (λ/2)((a − 1)² + b²), by default 1e-6, which keeps the curve finite when p separates the
    classes. For more than two classes there is a curve for each class, and rows are divided by
    their sum. O(n K) for each of some ten steps.

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
    identity. ``penalty`` is the weight λ of (λ/2)((a − 1)² + (b − 1)² + c²), by default 1e-6. For
    more than two classes there is a curve for each class, and rows are divided by their sum. O(n K)
    for each of some ten steps.

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
            if (theta[:2] >= 0.0).all() and (whole.mean_loss(theta)[1][bound] >= 0.0).all():
                break
        return BetaCurve(*theta.tolist())


@dataclass(frozen=True, eq=False)
class Polyline:
    """Fitted curve of isotonic regression: linear between knots and constant beyond them.

    ``knots`` (m,) are predictions in increasing order and ``values`` (m,) the recalibrated ones.
    Called with log p and log(1 − p), (n,) each, it returns recalibrated probabilities (n,).
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
    """Fitted map of :class:`HistogramBinning`, constant in each of m bins.

    ``edges`` (m − 1,) separate the bins, ``values`` (m,) are the recalibrated probabilities. Called
    with log p and log(1 − p), (n,) each, it returns recalibrated probabilities (n,).
    """

    edges: FloatArray
    values: FloatArray

    def __call__(self, log_p: FloatArray, log_rest: FloatArray) -> FloatArray:
        return self.values[np.searchsorted(self.edges, np.exp(log_p))]


@dataclass(frozen=True)
class HistogramBinning(_ByCurves):
    """Histogram binning: the frequency of the class in each bin (Zadrozny & Elkan 2001).

    ``bins``, :class:`UniformBins` or :class:`QuantileBins`, lie along the probability of a class,
    by default 15 of equal width; StatisticError for others. With many classes, equal-mass bins lie
    mostly at small probabilities, and accuracy suffers. An empty bin of equal width keeps its
    centre. The result has ties, may be exactly 0 or 1, and can be less likely on the fitting set
    than the predictions. O(n log n) for each class.

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
    """The map of :class:`TemperatureScaling`: softmax(log p / T), T the ``temperature``.

    Called with log-probabilities or logits (n, K), it returns probabilities (n, K). The largest
    entry of every row stays so, also where rounding would tie it.
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

    Called with log-probabilities or logits (n, K), it centres each row and returns probabilities
    (n, K). ``weights`` has shape (K,) for a diagonal W, (K, K) for a full one; ``bias`` b has shape
    (K,).
    """

    weights: FloatArray
    bias: FloatArray

    def __call__(self, scores: FloatArray) -> FloatArray:
        from scipy.special import softmax

        return softmax(self.logits(_centred(scores)), axis=1)

    def logits(self, z: FloatArray) -> FloatArray:
        """Return W z + b, shape (n, K), for centred logits ``z`` of that shape.

        W is the matrix or diagonal of this map, b its bias.
        """
        scaled = z @ self.weights.T if self.weights.ndim == 2 else z * self.weights
        return scaled + self.bias


def _centred(scores: FloatArray) -> FloatArray:
    return scores - scores.mean(axis=1, keepdims=True)


class _LinearScaling(Penalised):
    """Base class of vector and matrix scaling, softmax(W z + b) of the centred logits z.

    ``full`` selects a full matrix W (K, K) over a diagonal (K,).
    """

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
    weight λ of (λ/2)(1/T − 1)², by default 1e-6, which keeps T > 0 when every row of the fit is
    classified correctly; else its effect is of order λ. The loss is convex in 1/T; O(n K) for each
    of some ten steps.

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
        if loss.mean_loss(np.zeros(1))[1][0] >= 0.0:
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
    is the weight λ of (λ/2)(‖w − 1‖² + ‖b‖²), by default 1e-6, which makes the optimum unique and
    finite. O(n K) for each of some dozens of steps.

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
    Table 1) and needs a larger ``penalty`` λ than 1e-6, of (λ/2)(‖W − I‖² + ‖b‖²). O(n K²) for each
    of dozens to hundreds of steps.

    Examples
    --------
    >>> import caltest as ct
    >>> validation = ct.examples.digits("overfit", "validation")
    >>> [round(MatrixScaling(penalty).fit(validation).nll_after, 3) for penalty in (1e-6, 0.1)]
    [0.331, 0.445]
    """

    full: ClassVar[bool] = True
