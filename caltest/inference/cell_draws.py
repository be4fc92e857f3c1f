"""Draws of the noise of cells: counts of events and classes, and normals that cells share."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise

import numpy as np

from caltest._base.compiled import kernel
from caltest.inference.squared_error import Parts
from caltest.predictions import FloatArray, IntArray

Shape = tuple[int, ...]
#: Of a count: the first value, the probabilities from there on, and their rounding.
Law = tuple[int, FloatArray, float]
Rng = np.random.Generator
#: Rows of a cell from which its class counts are taken to be normal.
FEW = 10


@kernel
def count_quantiles(  # type: ignore[no-untyped-def]
    z, size, q, less, sd, skew, offset, grain, sums_out, variances_out
):
    """Fill in counts less what is predicted, and their variance, for every draw."""
    for b in range(z.shape[0]):
        for k in range(z.shape[1]):
            # Cornish & Fisher: n q + σ x + (1 − 2q) (x² − 1) / 6, third cumulant over variance
            n, deviation, sixth = size[b, k], sd[b, k], skew[b, k] / 6.0
            middle, unit = n * q[b, k] - sixth, grain[b, k]
            turn = -3.0 * deviation / skew[b, k]  # where the quantile would fall again
            lowest, highest = (turn, np.inf) if sixth > 0.0 else (-np.inf, turn)
            # scatter about the mean of the cell: n / (n − 1), and none of one row
            several, bias = n > 1.0, n / max(n - 1.0, 1.0)
            for r in range(z.shape[2]):
                x = min(max(z[b, k, r], lowest), highest)
                count = np.rint(middle + x * (deviation + sixth * x))
                count = min(max(count, 0.0), n)
                scatter = max(count * (1.0 - count / n) + less[b, k], 0.0)
                sums_out[b, k, r] = unit * (count + offset[b, k])
                variances_out[b, k, r] = unit**2 * (
                    scatter * bias if several else deviation * deviation
                )


def poisson_noise(mean: FloatArray, z: FloatArray) -> FloatArray:
    """Turn normals into Poisson counts less their mean, for any mean and nearly exactly."""
    from scipy.special import ndtri

    # The same for skewness 1 / √mean; P(0) = e^{−mean} is exact, and what is not 0 is at least 1
    counts = np.rint(np.maximum(mean - 1.0 / 6.0 + z * (np.sqrt(mean) + z / 6.0), 1.0))
    return np.where(z > ndtri(np.exp(-mean)), counts, 0.0) - mean


def event_counts(
    laws: Iterable[Law], means: FloatArray, variances: FloatArray, shape: Shape, rng: Rng
) -> FloatArray:
    """Draw the counts of the cells from their exact laws, standardised."""
    draws = rng.standard_normal(shape)  # kept for cells whose predictions are all 0 or 1
    for b, (lowest, pmf, _) in enumerate(laws):
        if variances[b, 0] > 0.0:
            counts = np.searchsorted(np.cumsum(pmf), rng.random(shape[0]), side="right")
            counts = lowest + np.minimum(counts, pmf.size - 1)
            draws[:, b, 0] = (counts - means[b, 0]) / np.sqrt(variances[b, 0])
    return draws


def class_counts(probs: FloatArray, starts: IntArray, shape: Shape, rng: Rng) -> FloatArray:
    """Draw class counts, standardised: normals, but multinomial counts in cells of few rows."""
    draws = correlated_normals(probs, starts, shape, rng)
    for b, (first, last) in enumerate(pairwise(starts)):
        if last - first < FEW:
            mean, n = probs[first:last].mean(axis=0), int(last - first)
            counts = rng.multinomial(n, mean / mean.sum(), shape[0])
            draws[:, b] = (counts - n * mean) / np.sqrt(np.maximum(n * mean * (1 - mean), 1e-300))
    return draws


def correlated_normals(probs: FloatArray, starts: IntArray, shape: Shape, rng: Rng) -> FloatArray:
    """Draw normals with the correlations of the class counts, Σ diag(p_i) − p_i p_iᵀ."""
    draws = rng.standard_normal(shape)
    if shape[2] > 1:
        for b, (first, last) in enumerate(pairwise(starts)):
            rows = probs[first:last]
            values, vectors = np.linalg.eigh(np.diag(rows.sum(axis=0)) - rows.T @ rows)
            # Classes sum to n: one eigenvalue is 0, and rounding may put it below
            root = vectors * np.sqrt(np.maximum(values, 0.0))
            scale = np.sqrt((root**2).sum(axis=1))
            draws[:, b] = draws[:, b] @ root.T / np.maximum(scale, 1e-150)
    return draws


def shared_by_clusters(parts: Parts, gaps: FloatArray, normal: FloatArray, rng: Rng) -> FloatArray:
    """Return normals of variance 1 that cells share as they share clusters: wild bootstrap.

    A draw multiplies the centred sums of a cluster by a normal number of its own; cells in which
    that moves nothing keep theirs.
    """
    import scipy.sparse

    multipliers = rng.standard_normal((len(normal), int(parts.unit.max()) + 1))
    for k in range(normal.shape[2]):
        centred = parts.sums[:, k] - parts.mass * gaps[parts.cell, k]
        # Relative to S²: residuals that cancel leave rounding, which must not be blown up
        squares = np.bincount(parts.cell, centred**2)
        shared = squares > 1e-12 * (1.0 + np.bincount(parts.cell, parts.sums[:, k]) ** 2)
        table = scipy.sparse.csr_matrix((centred, (parts.unit, parts.cell)))
        draws = (multipliers @ table) / np.sqrt(np.where(shared, squares, 1.0))
        normal[:, shared, k] = draws[:, shared]
    return normal
