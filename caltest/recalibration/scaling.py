"""Temperature, vector and matrix scaling: softmax of a linear map of the logits.

Logits are known up to a constant in each row. The one that stands for all is centred: the
log-probabilities minus their mean over the classes.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from caltest.errors import StatisticError
from caltest.predictions import FloatArray, IntArray
from caltest.recalibration.fitting import Penalised, SoftmaxLoss


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
        moved = np.flatnonzero(probs.argmax(axis=1) != best)
        probs[moved, best[moved]] = np.nextafter(probs[moved].max(axis=1), 1.0)
        return probs


def centred(scores: FloatArray) -> FloatArray:
    """Return the log-probabilities minus their mean over the classes."""
    return scores - scores.mean(axis=1, keepdims=True)


@dataclass(frozen=True, eq=False)
class Linear:
    """The map of vector and matrix scaling: softmax(W z + b), z the centred logits.

    ``weights`` has shape (K,) for a diagonal W, (K, K) for a full one; ``bias`` has shape (K,).
    """

    weights: FloatArray
    bias: FloatArray

    def __call__(self, scores: FloatArray) -> FloatArray:
        from scipy.special import softmax

        z = centred(scores)
        moved = z @ self.weights.T if self.weights.ndim == 2 else z * self.weights
        return softmax(moved + self.bias, axis=1)


@dataclass(frozen=True)
class TemperatureScaling(Penalised):
    """Temperature scaling, one parameter for all classes (Guo et al. 2017, §4.2).

        q = softmax(z / T),  z the logits or log-probabilities

    T > 1 makes predictions less certain, T < 1 more; no predicted class changes. The loss is convex
    in 1/T; O(n K) for each of some ten steps.

    Parameters
    ----------
    penalty : float, default 1e-6
        Weight λ of (λ/2)(1/T − 1)², which keeps T > 0 when every row of the fit is classified
        correctly. Where some are not, its effect is of order λ.

    Raises
    ------
    StatisticError
        On fitting labels less likely than under uniform guessing, which no T > 0 repairs.

    Examples
    --------
    >>> import caltest as ct
    >>> from caltest.recalibration import TemperatureScaling
    >>> scaled = TemperatureScaling().fit(ct.examples.digits("overfit", "validation"))
    >>> round(scaled.map.temperature, 2)
    1.69
    >>> ct.audit(scaled(ct.examples.digits("overfit", "test")), rng=0).rows[0].verdict
    'no evidence'
    """

    def _learn(
        self, scores: FloatArray, labels: IntArray, weights: FloatArray | None = None
    ) -> Temperature:
        def forward(theta: FloatArray) -> FloatArray:
            return theta[0] * scores

        def adjoint(residual: FloatArray) -> FloatArray:
            return np.array([np.vdot(residual, scores)])

        loss = SoftmaxLoss(forward, adjoint, labels, np.ones(1), self.penalty, weights)
        if loss.value(np.zeros(1))[1][0] >= 0.0:
            raise StatisticError(
                "the labels are less likely under these predictions than under uniform guessing, "
                "and no temperature repairs that: are labels and columns in the same order?"
            )
        return Temperature(1.0 / float(loss.minimised()[0]))


@dataclass(frozen=True)
class VectorScaling(Penalised):
    """Vector scaling, a slope and an intercept for every class (Guo et al. 2017, §4.2).

        q = softmax(w ⊙ z + b),  z_k = log p_k − mean_j log p_j

    Slopes that differ see the constant of raw logits, which the centred z leaves out. O(n K) for
    each of some dozens of steps.

    Parameters
    ----------
    penalty : float, default 1e-6
        Weight λ of (λ/2)(‖w − 1‖² + ‖b‖²), which makes the optimum unique and finite.

    Examples
    --------
    >>> import caltest as ct
    >>> from caltest.recalibration import VectorScaling
    >>> scaled = VectorScaling().fit(ct.examples.digits("overfit", "validation"))
    >>> round(scaled.nll_before, 3), round(scaled.nll_after, 3)
    (0.736, 0.555)
    """

    def _learn(
        self, scores: FloatArray, labels: IntArray, weights: FloatArray | None = None
    ) -> Linear:
        z, k = centred(scores), scores.shape[1]

        def forward(theta: FloatArray) -> FloatArray:
            return z * theta[:k] + theta[k:]

        def adjoint(residual: FloatArray) -> FloatArray:
            return np.concatenate([(residual * z).sum(axis=0), residual.sum(axis=0)])

        identity = np.concatenate([np.ones(k), np.zeros(k)])
        loss = SoftmaxLoss(forward, adjoint, labels, identity, self.penalty, weights)
        theta = loss.minimised()
        return Linear(theta[:k], theta[k:])


@dataclass(frozen=True)
class MatrixScaling(Penalised):
    """Matrix scaling, a full linear map of the logits (Guo et al. 2017, §4.2).

        q = softmax(W z + b),  z_k = log p_k − mean_j log p_j

    With log p in place of z this would be Dirichlet calibration (Kull et al. 2019). K² + K
    parameters fit the noise of small sets: the result can be worse than none (Guo et al. 2017,
    Table 1) and needs a larger ``penalty``. O(n K²) for each of dozens to hundreds of steps.

    Parameters
    ----------
    penalty : float, default 1e-6
        Weight λ of (λ/2)(‖W − I‖² + ‖b‖²), which makes the optimum unique and finite.

    Examples
    --------
    >>> import caltest as ct
    >>> from caltest.recalibration import MatrixScaling
    >>> validation, test = (ct.examples.digits("overfit", s) for s in ("validation", "test"))
    >>> for penalty in (1e-6, 0.1):
    ...     scaled = MatrixScaling(penalty).fit(validation)
    ...     repaired = ct.TopK(1)(scaled(test))
    ...     print(f"{scaled.nll_after:.3f}", f"{ct.ECE()(repaired.probs, repaired.labels):.3f}")
    0.331 0.108
    0.445 0.049
    """

    def _learn(
        self, scores: FloatArray, labels: IntArray, weights: FloatArray | None = None
    ) -> Linear:
        z, k = centred(scores), scores.shape[1]

        def forward(theta: FloatArray) -> FloatArray:
            return z @ theta[: k * k].reshape(k, k).T + theta[k * k :]

        def adjoint(residual: FloatArray) -> FloatArray:
            return np.concatenate([(residual.T @ z).ravel(), residual.sum(axis=0)])

        identity = np.concatenate([np.eye(k).ravel(), np.zeros(k)])
        loss = SoftmaxLoss(forward, adjoint, labels, identity, self.penalty, weights)
        theta = loss.minimised()
        return Linear(theta[: k * k].reshape(k, k), theta[k * k :])
