"""What may be true of a model: functions from predicted to true probabilities, (n, K) both."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from caltest._base.arrays import FloatArray
from caltest._base.checks import fraction, number

#: Probabilities below this count as this in logarithms.
FLOOR = 2.0**-53


def _changed(probs: FloatArray, slope: float, shift: float | FloatArray = 0.0) -> FloatArray:
    from scipy.special import softmax

    return np.asarray(softmax(slope * np.log(np.maximum(probs, FLOOR)) + shift, axis=1))


@dataclass(frozen=True)
class Slope:
    """The true log-odds are ``slope`` times those predicted; below 1 a model is overconfident.

    At most 10. Of several classes, true probabilities are proportional to p^slope: temperature T is
    Slope(1/T).
    """

    slope: float

    def __post_init__(self) -> None:
        number("slope", self.slope, 0.0, 10.0)

    def __call__(self, probs: FloatArray) -> FloatArray:
        return _changed(probs, self.slope)


@dataclass(frozen=True)
class Shift:
    """The true log-odds of class ``c`` lie above those predicted by ``shift``."""

    shift: float
    c: int = 1

    def __call__(self, probs: FloatArray) -> FloatArray:
        return _changed(probs, 1.0, self.shift * (np.arange(probs.shape[1]) == self.c))


@dataclass(frozen=True)
class Bump:
    """Class ``c`` is more frequent by ``height`` where ``low`` < its prediction < ``high``."""

    height: float
    low: float
    high: float
    c: int = 1

    def __call__(self, probs: FloatArray) -> FloatArray:
        p = probs[:, self.c]
        q = np.clip(p + self.height * ((p > self.low) & (p < self.high)), 0.0, 1.0)
        others = np.where(np.arange(probs.shape[1]) == self.c, 0.0, probs)
        total = others.sum(axis=1, keepdims=True)
        rest = np.where(total > 0.0, others / np.maximum(total, FLOOR), 1.0 / (probs.shape[1] - 1))
        rest[:, self.c] = 0.0
        result = (1.0 - q)[:, None] * rest
        result[:, self.c] = q
        return result


@dataclass(frozen=True)
class LogisticNormal:
    """Risks of an event whose log-odds are normal: a model of which two numbers are known.

    ``rate`` is how often the event happens, ``concordance`` the c-statistic, or area under the ROC
    curve, ½ to 1. Mean and variance are those of Pavlou et al., "Estimation of required sample size
    for external validation of risk models for binary outcomes", Statistical Methods in Medical
    Research 30, 2021.
    """

    rate: float
    concordance: float

    def __post_init__(self) -> None:
        fraction("rate", self.rate)
        number("concordance", self.concordance, 0.5, 1.0)

    def of_normals(self, z: FloatArray) -> FloatArray:
        """Return the risks that belong to standard normal numbers."""
        from scipy.special import expit, ndtri

        apart = 2.0 * ndtri(self.concordance) ** 2
        mean = (self.rate - 0.5) * apart + np.log(self.rate / (1.0 - self.rate))
        variance = apart * (1.0 + apart * self.rate * (1.0 - self.rate))
        return np.asarray(expit(mean + np.sqrt(variance) * z))

    def __call__(self, rng: np.random.Generator, n: int) -> FloatArray:
        return self.of_normals(rng.standard_normal(n))
