"""Exact numbers of the Gaussian mixture of Vaicenavicius et al. (2019, §5.1)."""

from __future__ import annotations

import itertools

import numpy as np
from scipy.special import expit, logit
from scipy.stats import norm

#: True expected miscalibration, total variation, of the model with β₀ = β₁ = 1.
ETA = 0.5637511405526426
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(200)


def gap(low: float, high: float) -> float:
    """∫ (r − g) over predictions g₁ in (low, high], for β₀ = β₁ = 1; x = logit g₁ − 1."""
    a, b = np.clip([logit(low) - 1.0, logit(high) - 1.0], -12.0, 12.0)
    x = 0.5 * (b - a) * _NODES + 0.5 * (a + b)
    density = 0.5 * (norm.pdf(x, -1.0) + norm.pdf(x, 1.0))
    return float(0.5 * (b - a) * _WEIGHTS @ ((expit(-2.0 * x) - expit(1.0 + x)) * density))


def limit(edges: np.ndarray) -> float:
    """Return what the binned estimate converges to when the sample grows (Theorem 1)."""
    with np.errstate(divide="ignore"):
        return sum(abs(gap(a, b)) for a, b in itertools.pairwise(edges))
