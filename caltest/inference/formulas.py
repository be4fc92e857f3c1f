"""Intervals by formula: from bootstrap replicates, by influence function, after Sun et al."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from caltest.predictions import FloatArray, IntArray, Predictions
from caltest.statistics.cells import Cells

#: Parts left out in turn to measure the skewness that BCa corrects for.
MAX_JACKKNIFE = 200


def percentile(values: FloatArray, estimate: float, alpha: float) -> tuple[float, float]:
    """Return the ``alpha`` and ``1 - alpha`` quantiles of bootstrap replicates."""
    low, high = np.quantile(values, (alpha, 1.0 - alpha))
    return float(low), float(high)


def basic(values: FloatArray, estimate: float, alpha: float) -> tuple[float, float]:
    """Return the percentile interval reflected about the estimate."""
    low, high = percentile(values, estimate, alpha)
    return 2.0 * estimate - high, 2.0 * estimate - low


def bias_corrected(values: FloatArray, estimate: float, alpha: float) -> tuple[float, float]:
    """Return estimate − bias ± z · sd, with the bias and the sd of the replicates."""
    from scipy.special import ndtri

    centre, reach = 2.0 * estimate - values.mean(), -ndtri(alpha) * values.std(ddof=1)
    return float(centre - reach), float(centre + reach)


def bca(
    values: FloatArray,
    estimate: float,
    alpha: float,
    value: Callable[[Predictions], float],
    induced: Predictions,
) -> tuple[float, float]:
    """Return the bias-corrected and accelerated interval (Efron 1987).

    The acceleration comes from a jackknife that leaves out rows, or clusters, in at most 200 parts.
    """
    from scipy.special import ndtr, ndtri

    units = np.arange(induced.n) if induced.clusters is None else induced.clusters
    n_parts = min(MAX_JACKKNIFE, int(units.max()) + 1)
    left_out = np.array([value(induced.take(units % n_parts != j)) for j in range(n_parts)])
    deviation = left_out.mean() - left_out
    squares = float((deviation**2).sum())
    acceleration = float((deviation**3).sum()) / (6.0 * squares**1.5) if squares > 0.0 else 0.0
    below = (values < estimate).mean() + 0.5 * (values == estimate).mean()
    shift = ndtri(np.clip(below, 0.5 / values.size, 1.0 - 0.5 / values.size))
    moved = shift + ndtri(np.array([alpha, 1.0 - alpha]))
    low, high = np.quantile(values, ndtr(shift + moved / (1.0 - acceleration * moved)))
    return float(low), float(high)


def influence_error(induced: Predictions, gaps: FloatArray) -> float:
    """Return the standard error of the debiased squared error, by its influence function.

    f_i = w_i (2 D·r_i − |D|²), with D the gap of the row's cell, which is ``gaps[i]``; clusters add
    up.
    """
    w = np.ones(induced.n) if induced.weights is None else induced.weights
    own = 2.0 * (gaps * induced.residuals[:, : gaps.shape[1]]).sum(axis=1)
    influence = own - w * (gaps**2).sum(axis=1)
    influence -= w * (influence.sum() / w.sum())
    if induced.clusters is not None:
        influence = np.bincount(induced.clusters, influence)
    squares = float((influence**2).sum()) * influence.size / max(influence.size - 1, 1)
    return float(np.sqrt(squares) / w.sum())


class SunInterval(NamedTuple):
    """The interval of Sun et al. (2024), and whether their test lets 0 in."""

    estimate: float
    low: float
    high: float
    contains_zero: bool


def sun(probs: FloatArray, residuals: FloatArray, cells: Cells, level: float) -> SunInterval:
    """Return the interval of Sun et al. (arXiv 2408.08998) for Σ_b π_b |Δ_b|².

    With T the statistic over pairs of rows of the same cell, T₊ = max(T, 0), s = σ₁/√n and z the
    normal quantiles of (1 + level)/2 and, one-sided, level: the upper end is T₊ + z₂ s; the lower
    T₊ − z₂ s if T₊ ≥ 2 z₂ s, else T₊/2 if T₊ ≥ 2 z₁ s, else max(T₊ − z₁ s, 0). 0 belongs to the
    interval if T₊ < z₁ σ₀; for σ₀² we take the variance of T given the predictions of a calibrated
    model, (2/n²) Σ_b (|ΣC_i|² − Σ|C_i|²)/(n_b − 1)² with C_i = diag(p_i) − p_i p_iᵀ, where the
    published code integrates over the cells of a grid. ``probs`` and ``residuals`` (n, k) are the
    k largest predictions, and onehot − probs, without a column for "none of them".
    """
    from scipy.special import ndtri

    n, k = residuals.shape
    first, size = cells.starts[:-1], cells.counts.astype(np.float64)
    r, p = residuals[cells.order], probs[cells.order]
    mean = np.add.reduceat(r, first) / size[:, None]
    squares = np.add.reduceat((r**2).sum(axis=1), first)
    pairs = np.where(size > 1, 1.0 / np.maximum(size - 1.0, 1.0), 0.0)
    length = (mean**2).sum(axis=1)
    statistic = float(pairs @ (size**2 * length - squares)) / n
    cell = np.repeat(np.arange(size.size), cells.counts)
    along = np.add.reduceat((r * mean[cell]).sum(axis=1) ** 2, first)
    spread = (4.0 * along.sum() - 3.0 * size @ length**2) / n - (size @ length / n) ** 2
    error = float(np.sqrt(max(spread, 0.0) / n))
    covariance = -p[:, :, None] * p[:, None, :]
    covariance[:, np.arange(k), np.arange(k)] += p
    total = (np.add.reduceat(covariance, first) ** 2).sum(axis=(1, 2))
    own = np.add.reduceat((covariance**2).sum(axis=(1, 2)), first)
    null_error = float(np.sqrt(2.0 * pairs**2 @ np.maximum(total - own, 0.0))) / n
    two, one = ndtri(0.5 + 0.5 * level) * error, float(ndtri(level)) * error
    kept = max(statistic, 0.0)
    if kept >= 2.0 * two:
        low = kept - two
    elif kept >= 2.0 * one:
        low = 0.5 * kept
    else:
        low = max(kept - one, 0.0)
    with_zero = bool(kept < ndtri(level) * null_error)
    return SunInterval(statistic, 0.0 if with_zero else float(low), float(kept + two), with_zero)


def largest_gaps(
    residuals: FloatArray, group: IntArray, times: FloatArray, draws: int, rng: np.random.Generator
) -> FloatArray:
    """Return the largest mean residual of a cell, without sign, of samples with replacement.

    Rows come ``times``, group 2b + y is outcome y in cell b; its rows are drawn as two atoms of the
    same mean and variance.
    """
    size = group.max() // 2 * 2 + 2
    n, sums, squares = (np.bincount(group, times * residuals**k, size) for k in range(3))
    mean = sums / np.maximum(n, 1.0)
    spread = np.sqrt(np.maximum(squares / np.maximum(n, 1.0) - mean**2, 0.0))
    atoms = np.stack([mean - spread, mean + spread])
    drawn = rng.multinomial(round(n.sum()), np.tile(n / (2.0 * n.sum()), 2), draws)
    drawn = drawn.reshape(draws, 2, -1, 2)
    moved = (drawn * atoms.reshape(2, -1, 2)).sum(axis=(1, 3))
    return np.asarray((np.abs(moved) / np.maximum(drawn.sum(axis=(1, 3)), 1)).max(axis=1))
