"""Example predictions: a real classifier, and simulated models whose truth is known.

:func:`digits` has predictions of a small neural network on handwritten digits;
:class:`GaussianMixture` and :class:`SixPoints` are the models of Vaicenavicius et al. (2019), whose
expected calibration error is computed without simulation.
"""

from __future__ import annotations

from dataclasses import dataclass
from importlib.resources import files
from itertools import pairwise
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from caltest._base import FloatArray
from caltest._base.arrays import RNG, whole
from caltest.data.distances import Distance, rowwise
from caltest.data.predictions import Predictions
from caltest.errors import StatisticError


def digits(
    stage: Literal["overfit", "best"] = "overfit",
    split: Literal["test", "validation"] = "test",
) -> Predictions:
    """Return the predictions of a small neural network on noisy handwritten digits.

    900 test (or 297 validation) images of scikit-learn's digits (UCI, CC BY 4.0) with added pixel
    noise, ten classes; trained once by ``scripts/train_digits.py``, on no row of either ``split``.
    ``stage="overfit"`` is after all 40 epochs, when the network is overconfident, ``"best"`` the
    epoch with the best validation likelihood.
    """
    with np.load(str(files("caltest") / "data" / "digits.npz"), allow_pickle=False) as stored:
        name = f"{split}_{stage}"
        if name not in stored:
            available = sorted(n for n in stored if not n.endswith("labels"))
            raise StatisticError(f"there is no {name!r} among the digits: {', '.join(available)}")
        return Predictions.of(stored[name], stored[f"{split}_labels"])


@dataclass(frozen=True)
class GaussianMixture:
    """Two Gaussian classes and a logistic model of them (Vaicenavicius et al. 2019, §5.1).

    X given Y = ±1 is N(Y, 1), both classes equally likely. The model predicts class "−1" (column 0,
    label 0) with g₁(x) = 1 / (1 + exp(−(β₀ + β₁ x))), for β₀ = ``beta0`` and β₁ = ``beta1``; the
    truth is 1 / (1 + exp(2x)). Only (0, −2), the perfect model, and (0, 0), the constant one, are
    calibrated.
    """

    beta0: float = 0.0
    beta1: float = -2.0

    def sample(self, n: int, rng: RNG = None) -> Predictions:
        """Draw n predictions of two classes with their labels from the model.

        ``rng`` is a seed or a generator of NumPy; None draws differently each time.
        """
        whole("n", n)
        generator = np.random.default_rng(rng)
        signs = 2 * generator.integers(0, 2, n) - 1
        x = generator.normal(signs, 1.0)
        p = _logistic(self.beta0 + self.beta1 * x)
        return Predictions(np.column_stack([p, 1.0 - p]), (signs > 0).astype(np.int64))

    def calibration_function(self, p: ArrayLike) -> FloatArray:
        """Return the true P(Y = −1) where the model predicts p for class "−1", same shape as p."""
        p = np.asarray(p, dtype=np.float64)
        if self.beta1 == 0.0:  # a constant model predicts its only value
            return np.full_like(p, 0.5)
        x = (np.log(p) - np.log1p(-p) - self.beta0) / self.beta1
        return _logistic(-2.0 * x)

    def expected_miscalibration(self, distance: str | Distance = "tv") -> float:
        """Return the true calibration error η = E d(r(g(X)), g(X)) (Eq. 5 of the paper).

        ``distance`` d, between the truth r and the prediction g, is a name such as "tv" or a
        function of two vectors; StatisticError for an unknown name. Computed by quadrature, with an
        absolute error below 1e-10.
        """
        from scipy.integrate import quad

        measure = rowwise(distance)

        def integrand(x: float) -> float:
            g = float(_logistic(self.beta0 + self.beta1 * x))
            r = 0.5 if self.beta1 == 0.0 else float(_logistic(-2.0 * x))
            density = 0.5 * (np.exp(-0.5 * (x - 1) ** 2) + np.exp(-0.5 * (x + 1) ** 2))
            gap = measure(np.array([[r, 1.0 - r]]), np.array([[g, 1.0 - g]]))[0]
            return float(gap * density / np.sqrt(2.0 * np.pi))

        # Model and truth cross where β₀ + β₁ x = −2 x; the integrand has a kink there.
        slope = self.beta1 + 2.0
        kink = [-self.beta0 / slope] if slope != 0.0 else []
        edges = sorted({-12.0, *kink, 12.0})
        parts = (quad(integrand, a, b, epsabs=1e-12, limit=200)[0] for a, b in pairwise(edges))
        return float(sum(parts))


def _logistic(z: ArrayLike) -> FloatArray:
    from scipy.special import expit

    return expit(np.asarray(z, dtype=np.float64))


@dataclass(frozen=True)
class SixPoints:
    """Six predictions that are calibrated by every usual lens, yet wrong (ibid., Table 1).

    The confidence and every single-class probability are exactly right, but each whole vector is
    off by total variation 0.1: only :class:`~caltest.Canonical` can see it.
    """

    @property
    def probs(self) -> FloatArray:
        """The six predictions, equally likely; shape (6, 3)."""
        return np.array([[1, 3, 6], [1, 6, 3], [3, 1, 6], [3, 6, 1], [6, 1, 3], [6, 3, 1]]) / 10.0

    @property
    def truth(self) -> FloatArray:
        """The distribution of the label given each prediction; shape (6, 3)."""
        return np.array([[2, 2, 6], [0, 7, 3], [2, 2, 6], [4, 5, 1], [7, 0, 3], [5, 4, 1]]) / 10.0

    def sample(self, n: int, rng: RNG = None) -> Predictions:
        """Draw n predictions of three classes with their labels, independently.

        ``rng`` is a seed or a generator of NumPy; None draws differently each time.
        """
        whole("n", n)
        generator = np.random.default_rng(rng)
        points = generator.integers(0, 6, n)
        cumulative = np.cumsum(self.truth, axis=1)[points]
        labels = (generator.random(n)[:, None] >= cumulative[:, :2]).sum(axis=1)
        return Predictions(self.probs[points], labels.astype(np.int64))

    def expected_miscalibration(self, distance: str | Distance = "tv") -> float:
        """Return the true calibration error η = E d(r(g(X)), g(X)) (Eq. 5 of the paper), exactly.

        ``distance`` d, between the truth r and the prediction g, is a name such as "tv" or a
        function of two vectors. StatisticError for an unknown name.
        """
        return round(float(rowwise(distance)(self.truth, self.probs).mean()), 15)
