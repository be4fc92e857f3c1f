"""Bounds of binned errors and of observed − predicted where follow-up ends before some outcomes.

Let D_b = E[(Y − p) 1{bin b}] and θ = Σ_b |D_b|. With the censoring weights W of
:class:`caltest.Followup`, D̂_b = Σ_{i in b} W_i (Y_i − p_i) / n is asymptotically normal around D_b;
its covariance V comes from the influence of every row, fitted weights included.

From above, θ = s·D for the unknown signs s of D, and s·D̂ + z √(s'Vs) misses s·D with probability α
for this s; the largest value over all signs therefore misses θ at most as often. From below,
Σ|D̂_b| exceeds θ by no more than Σ|N_b|, N normal with covariance V (triangle inequality), and the
absolute mean |Σ D_b| is no larger than θ: both have half of α, and the larger bound is taken.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import ndtr, ndtri

from caltest._base.arrays import RNG, FloatArray, IntArray
from caltest.statistics.rows import FollowupProblem

#: Bins whose signs are listed; others keep the observed sign.
MOST_LISTED = 12


@dataclass(frozen=True)
class FollowedBounds:
    """Bounds of the error of predicted risks with follow-up, or of observed − predicted.

    ``low`` and ``high`` are the bounds, ``corrected`` is the debiased estimate, ``floor`` the mean
    of the estimate under calibration, and ``pvalue`` tests calibration.
    """

    low: float
    high: float
    corrected: float
    floor: float
    pvalue: float


def followed_bounds(
    problem: FollowupProblem, number: IntArray, alpha: float, draws: int, rng: RNG
) -> FollowedBounds:
    """Bound Σ_b |D_b|; every bound is wrong with a probability of about ``alpha`` at most.

    ``number`` (n,) is the bin of every row, from 0 on. O(n L) for L bins, and 2^L up to 12 bins.
    """
    gaps, covariance = _bin_gaps(problem, number)
    observed = float(np.abs(gaps).sum())
    noise = np.abs(_normal(covariance, draws, rng)).sum(axis=1)
    signs = _sign_vectors(gaps, covariance)
    spread = np.sqrt(np.einsum("sb,bc,sc->s", signs, covariance, signs))
    high = float((signs @ gaps + ndtri(1.0 - alpha) * spread).max())
    mean, error = abs(float(gaps.sum())), float(np.sqrt(covariance.sum()))
    least = observed - float(np.quantile(noise, 1.0 - alpha / 2.0))
    by_mean = mean - float(ndtri(1.0 - alpha / 4.0)) * error  # either sign, half of alpha
    above = float((1 + (noise >= observed - 1e-12).sum()) / (1 + noise.size))
    of_mean = 2.0 * float(ndtr(-mean / error)) if error > 0.0 else 1.0
    return FollowedBounds(
        low=max(least, by_mean, 0.0),
        high=max(high, observed),
        corrected=_corrected(gaps, covariance),
        floor=float(noise.mean()),
        pvalue=min(1.0, 2.0 * above, 2.0 * of_mean),
    )


def followed_difference(problem: FollowupProblem, alpha: float) -> FollowedBounds:
    """Bound observed − predicted of all rows by its normal law."""
    gaps, covariance = _bin_gaps(problem, np.zeros(problem.n, dtype=np.int64))
    gap, error = float(gaps[0]), float(np.sqrt(covariance[0, 0]))
    half = float(ndtri(1.0 - alpha)) * error
    pvalue = 2.0 * float(ndtr(-abs(gap) / error)) if error > 0.0 else 1.0
    return FollowedBounds(gap - half, gap + half, gap, 0.0, pvalue)


def _bin_gaps(problem: FollowupProblem, number: IntArray) -> tuple[FloatArray, FloatArray]:
    """Return D̂ (L,) and its covariance (L, L)."""
    n, size = problem.n, int(number.max()) + 1
    residuals = problem.events - problem.censoring.weights * problem.probs[:, 0]
    gaps = np.bincount(number, residuals, size) / n
    influence = np.empty((size, n))
    for b in range(size):
        influence[b] = problem.censoring.influence(np.where(number == b, residuals, 0.0))
    influence -= influence.mean(axis=1, keepdims=True)
    return gaps, influence @ influence.T / (n * max(n - 1.0, 1.0))


def _normal(covariance: FloatArray, draws: int, rng: RNG) -> FloatArray:
    """Return draws (B, L) of a centred normal vector."""
    values, vectors = np.linalg.eigh(covariance)
    root = vectors * np.sqrt(np.maximum(values, 0.0))
    normal = np.random.default_rng(rng).standard_normal((draws, len(covariance)))
    return np.asarray(normal @ root.T)


def _sign_vectors(gaps: FloatArray, covariance: FloatArray) -> FloatArray:
    """Return vectors of signs (S, L).

    All sign vectors are listed, or only the sign vectors of the ``MOST_LISTED`` bins nearest to 0;
    the other bins then keep their observed sign.
    """
    size = gaps.size
    ratio = np.abs(gaps) / np.maximum(np.sqrt(np.diag(covariance)), 1e-300)
    doubtful = np.argsort(ratio)[: min(size, MOST_LISTED)]
    listed = np.tile(np.where(gaps < 0.0, -1.0, 1.0), (2**doubtful.size, 1))
    codes = np.arange(2**doubtful.size)
    for k, b in enumerate(doubtful):
        listed[(codes >> k) & 1 == 1, b] *= -1.0
    return listed


def _corrected(gaps: FloatArray, covariance: FloatArray) -> float:
    """Return Σ|D̂_b| less the mean that noise adds, by the mean of a folded normal."""
    from scipy.special import erf

    gap, sigma = np.abs(gaps), np.sqrt(np.diag(covariance))
    ratio = np.minimum(gap / np.maximum(sigma, 1e-300), 40.0)
    folded = sigma * np.sqrt(2 / np.pi) * np.exp(-0.5 * ratio**2) + gap * erf(ratio / np.sqrt(2))
    return float((2.0 * gap - folded).sum())
