"""Base classes of recalibration methods: scores, the fitted map, and one convex optimiser.

A method is a :class:`Recalibration`; its ``fit`` returns a :class:`Recalibrated`. Methods with a
convex loss minimise a :class:`SoftmaxLoss`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, Unpack, overload

import numpy as np
from numpy.typing import NDArray

from caltest._base import BoolArray, FloatArray, IntArray
from caltest._base.arrays import AnyArray, as_ndarray, number
from caltest._base.written import refuse_form
from caltest.data import Facts, Predictions
from caltest.data.numbers import as_array, as_numbers, row_numbers
from caltest.errors import StatisticError
from caltest.read.arguments import raw_values, read_arguments
from caltest.results import Provenance

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

    A subclass defines ``_learn(scores, labels, weights)``, which returns the fitted map.
    """

    def fit(self, probs: object, labels: object = None, **facts: Unpack[Facts]) -> Recalibrated:
        """Fit the map on held-out predictions and their labels.

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
    """Base class of methods whose parameters are shrunk to the identity map.

    ``penalty`` is the weight of the ridge; without one the optimum need not exist.
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

        With ``from_logits`` the input are logits. StatisticError for another number of classes than
        fitted.
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

        They are matched by ``ids`` where both have them, otherwise by their scores (n, K).
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

    A test on the rows of the fit would call nearly any recalibrated model calibrated.
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
    """Return log-probabilities (or logits up to a constant in each row), shape (n, K)."""
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

    with weights of mean 1. ``forward`` is linear from parameters to scores of shape (n, K),
    ``adjoint`` its transpose, so that L is convex, and strictly so for λ > 0: the optimum exists
    for separable data as well, and its likelihood is at least the likelihood of θ₀.
    """

    forward: Callable[[FloatArray], FloatArray]
    adjoint: Callable[[FloatArray], FloatArray]
    labels: IntArray
    identity: FloatArray
    penalty: float
    weights: FloatArray | None = None
    _latest: list[tuple[FloatArray, FloatArray]] = field(default_factory=list, repr=False)

    def value(self, theta: FloatArray) -> tuple[float, FloatArray]:
        """Return (loss, gradient) at the parameters ``theta``; the gradient has shape (d,)."""
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
        """Return the Hessian of the loss at ``theta`` times ``direction``, shape (d,)."""
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
        """Return the parameters that minimise the loss, shape (d,).

        A trust-region Newton method starts from the identity map. StatisticError if it does not
        converge.
        """
        from scipy.optimize import minimize

        minimum = minimize(
            self.value, self.identity, method="trust-ncg", jac=True, hessp=self.curvature,
            options={"gtol": AIM, "maxiter": 1000},
        )  # fmt: skip
        norm = float(np.linalg.norm(self.value(minimum.x)[1]))
        if not norm <= GRADIENT:
            raise StatisticError(
                f"the fit has not converged after {minimum.nit} Newton steps (the norm of the "
                f"gradient is {norm:.2g}, not below {GRADIENT:g}): a larger penalty helps"
            )
        return minimum.x
