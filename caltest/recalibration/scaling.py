"""Temperature, vector and matrix scaling: softmax of a linear map of the logits.

Logits are known up to a constant in each row. The one that stands for all is centred: the
log-probabilities minus their mean over the classes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from caltest._base import FloatArray, IntArray
from caltest.errors import StatisticError
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
