"""Bars for observed frequencies, cell by cell: two kinds that answer two questions.

*Consistency* bars hold what a calibrated model would show on these predictions; *confidence* bars
hold what the true frequency may be, given what was observed.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from caltest.errors import StatisticError
from caltest.exact import CellStatistic, cell_laws
from caltest.predictions import FloatArray, IntArray, Predictions
from caltest.resampling import LabelSampler, Workers, simulate

Bars = tuple[FloatArray, FloatArray]


def consistency_bars(
    statistic: CellStatistic, p: FloatArray, level: float, *, simultaneous: bool = False
) -> Bars:
    """Return, for every cell, the frequencies of label 0 that a calibrated model would show.

    Parameters
    ----------
    statistic, p
        As in :func:`caltest.exact.cell_null`; only the cells of the statistic are used.
    level : float
        Smallest probability that the observed frequency lies between the bars, ends included; at
        most (1 − level) / 2 is left on either side.
    simultaneous : bool, default False
        Whether ``level`` is the probability that *all* frequencies lie between their bars. Cells
        are independent given the predictions, so it is the product of their probabilities; the
        bars cut the same largest tail probability from every cell that keeps the product.

    Returns
    -------
    low, high : ndarray of shape (L,)
        Quantiles of the exact law of the frequency; the level is exceeded because counts are whole.

    Notes
    -----
    O(n) for the laws, O(L log n) for the bars.

    Examples
    --------
    >>> from caltest import ECE
    >>> low, high = consistency_bars(ECE(1).given(np.full((30, 2), 0.5)), np.full(30, 0.5), 0.9)
    >>> (low * 30).round(9), (high * 30).round(9)
    (array([11.]), array([19.]))
    """
    sizes = np.diff(statistic.starts)
    laws = [(first, np.cumsum(pmf)) for first, pmf, _ in cell_laws(statistic, p)]
    side = _shared_side(laws, level) if simultaneous else 0.5 * (1.0 - level)
    low, high = np.array([_quantiles(cdf, side) for _, cdf in laws]).T
    first = np.array([first for first, _ in laws])
    return (first + low) / sizes, (first + high) / sizes


def _quantiles(cdf: FloatArray, side: float) -> tuple[int, int]:
    low = int(np.searchsorted(cdf, side, side="right"))
    high = int(np.searchsorted(cdf, 1.0 - side - 1e-12, side="left"))
    return low, min(high, cdf.size - 1)


def _shared_side(laws: list[tuple[int, FloatArray]], level: float) -> float:
    """Return the largest tail probability that may be cut from every cell."""

    def covered(side: float) -> float:
        product = 1.0
        for _, cdf in laws:
            low, high = _quantiles(cdf, side)
            product *= cdf[high] - (cdf[low - 1] if low else 0.0)
        return product

    # Bonferroni's share always suffices; between it and the pointwise share, bisect.
    enough, too_much = 0.5 * (1.0 - level) / len(laws), 0.5 * (1.0 - level)
    if covered(too_much) >= level:
        return too_much
    while too_much > enough * (1.0 + 1e-6):
        middle = np.sqrt(enough * too_much)
        enough, too_much = (middle, too_much) if covered(middle) >= level else (enough, middle)
    return enough


def cell_pvalues(statistic: CellStatistic, p: FloatArray, hits: IntArray) -> FloatArray:
    """Return, for every cell, the exact two-sided p-value of its number of label-0 rows.

    p = min(1, 2 min(P(S ≤ s), P(S ≥ s))), S Poisson-binomial, and never 0; for the other arguments
    see :func:`consistency_bars`.

    Examples
    --------
    >>> from caltest import ECE
    >>> p = np.full(30, 0.8)
    >>> cells = ECE(1).given(np.column_stack([p, 1 - p]))
    >>> cell_pvalues(cells, p, np.array([18])).round(6)  # P(S ≤ 18) is 0.009493
    array([0.018986])
    """
    values = []
    for s, (first, pmf, lost) in zip(hits, cell_laws(statistic, p), strict=True):
        j = int(s) - first
        below = pmf[: max(j + 1, 0)].sum()
        above = pmf[max(j, 0) :].sum()
        values.append(min(1.0, 2.0 * (min(below, above) + lost)))
    return np.maximum(values, np.finfo(float).tiny)


def confidence_bars(
    successes: IntArray,
    counts: IntArray,
    level: float,
    method: str = "clopper-pearson",
    *,
    simultaneous: bool = False,
) -> Bars:
    """Return, for every cell, an interval for the mean of the true probabilities in it.

    Parameters
    ----------
    successes, counts : ndarray of shape (L,)
        Outcomes that occurred, and rows, in each cell.
    level : float
        Probability that an interval covers its target.
    method : {"clopper-pearson", "wilson"}, default "clopper-pearson"
        Clopper & Pearson (1934) never falls short of the level, also when probabilities differ
        within a cell (Hoeffding 1956); Wilson (1927) is shorter and holds it on average.
    simultaneous : bool, default False
        Whether ``level`` is for all intervals together: each then has level^(1/L), because cells
        are independent (Šidák 1967).

    Returns
    -------
    low, high : ndarray of shape (L,)

    Examples
    --------
    >>> low, high = confidence_bars(np.array([0, 5]), np.array([10, 10]), 0.95)
    >>> low.round(4), high.round(4)
    (array([0.    , 0.1871]), array([0.3085, 0.8129]))
    """
    from scipy.special import betaincinv, ndtri

    if simultaneous:
        level = level ** (1.0 / len(counts))
    s, n = successes.astype(np.float64), counts.astype(np.float64)
    side = 0.5 * (1.0 - level)
    if method == "clopper-pearson":
        low = betaincinv(np.maximum(s, 1e-300), n - s + 1.0, side)
        high = betaincinv(s + 1.0, np.maximum(n - s, 1e-300), 1.0 - side)
        return np.where(s > 0, low, 0.0), np.where(s < n, high, 1.0)
    z2 = float(ndtri(side)) ** 2
    centre = (s + 0.5 * z2) / (n + z2)
    half = np.sqrt(z2 * (s * (n - s) / n + 0.25 * z2)) / (n + z2)
    return np.where(s > 0, centre - half, 0.0), np.where(s < n, centre + half, 1.0)


def bootstrap_bars(
    successes: IntArray,
    counts: IntArray,
    level: float,
    *,
    simultaneous: bool = False,
    n_resamples: int = 1999,
    rng: Any = None,
) -> Bars:
    """Return percentile bootstrap intervals of the frequencies: rows resampled, cells kept.

    Resampling rows makes the numbers of successes and failures of all cells multinomial, which is
    drawn directly: O(B L). A cell whose outcomes are all alike gets an interval of no width, which
    the exact intervals of :func:`confidence_bars` do not. Parameters as there.
    """
    generator = np.random.default_rng(rng)
    table = np.concatenate([successes, counts - successes])
    draws = generator.multinomial(table.sum(), table / table.sum(), size=n_resamples)
    hits, misses = np.split(draws.astype(np.float64), 2, axis=1)
    with np.errstate(invalid="ignore"):
        frequencies = hits / (hits + misses)
    return quantile_bars(frequencies, level, simultaneous=simultaneous)


def resampled_bars(
    data: Predictions,
    cells: IntArray,
    level: float,
    *,
    keep_predictions: bool,
    simultaneous: bool = False,
    n_resamples: int = 1999,
    rng: Any = None,
    workers: Workers = 1,
) -> Bars:
    """Return which deviations (outcome minus prediction) redrawn labels show in every cell.

    Parameters
    ----------
    data : Predictions
        The induced problem.
    cells : ndarray of shape (n, J)
        The cells of the rows for the first J induced classes, numbered through: no class shares
        a number with another, and no number is left out.
    level, simultaneous
        As in :func:`consistency_bars`; simultaneous bars are the max-T ones of
        :func:`quantile_bars`.
    keep_predictions : bool
        True draws labels from the observed predictions. False resamples the rows first, as the
        bars of Vaicenavicius et al. (2019, Fig. 4) do: a cell's size then varies, and replicates
        in which it is empty do not count for it.
    n_resamples, rng, workers
        As in :func:`caltest.replicate`.

    Returns
    -------
    low, high : ndarray of shape (L,)

    Notes
    -----
    O(B n J).
    """
    draw = partial(_rows_and_labels, data.n, LabelSampler.of(data.probs), keep_predictions)
    values, _ = simulate(partial(_sums, data.probs, cells), draw, n_resamples, rng, workers)
    gaps, counts = np.split(values, 2, axis=1)
    with np.errstate(invalid="ignore"):
        return quantile_bars(gaps / counts, level, simultaneous=simultaneous)


def _rows_and_labels(
    n: int, draw: LabelSampler, keep_predictions: bool, rng: np.random.Generator
) -> tuple[Any, IntArray]:
    if keep_predictions:
        return slice(None), draw(rng.random(n))
    rows = rng.integers(n, size=n)
    return rows, draw(rng.random(n), rows)


def _sums(probs: FloatArray, cells: IntArray, drawn: tuple[Any, IntArray]) -> FloatArray:
    """Return the sums of outcome minus prediction of all cells, and their sizes."""
    rows, labels = drawn
    n_cells = int(cells.max()) + 1
    sums, sizes = np.zeros(n_cells), np.zeros(n_cells)
    for j, cell in enumerate(cells.T):
        cell = cell[rows]
        sums += np.bincount(cell, (labels == j) - probs[rows, j], minlength=n_cells)
        sizes += np.bincount(cell, minlength=n_cells)
    return np.concatenate([sums, sizes])


def quantile_bars(draws: FloatArray, level: float, *, simultaneous: bool = False) -> Bars:
    """Return bars that hold a further draw with the probability ``level``.

    Pointwise, the ⌊(B + 1)(1 − level) / 2⌋-th smallest and largest of B replicates: a further draw
    is as likely to have any rank. Simultaneous: mean ± c · sd, where c is the same order statistic
    of the largest standardised distance over all columns (max-T).

    Parameters
    ----------
    draws : ndarray of shape (B, L)
        Replicates; NaN where a cell was empty.
    level : float
        Probability for each column, or with ``simultaneous`` for all of them.

    Raises
    ------
    StatisticError
        With fewer replicates than the level needs.
    """
    valid = (~np.isnan(draws)).sum(axis=0)
    side = (1.0 - level) * (1.0 if simultaneous else 0.5)
    # Rounding must not take a rank away: 0.05 (1999 + 1) is 100.
    if side * (int(valid.min()) + 1) < 1.0 - 1e-9:
        raise StatisticError(
            f"level {level:g} needs at least {int(np.ceil(1.0 / side - 1e-9)) - 1} replicates in "
            f"every cell, but there are {int(valid.min())}: raise n_resamples or take fewer bins"
        )
    if simultaneous:
        centre, spread = np.nanmean(draws, axis=0), np.nanstd(draws, axis=0)
        moves = spread > 1e-12
        distances = np.abs(draws - centre) / np.where(moves, spread, np.inf)
        largest = np.sort(np.nanmax(distances, axis=1))
        c = largest[len(largest) - int(side * (len(largest) + 1) + 1e-9)]
        return centre - c * spread, centre + c * spread
    ordered = np.sort(draws, axis=0)  # NaN last
    rank = (side * (valid + 1) + 1e-9).astype(np.int64)
    column = np.arange(draws.shape[1])
    return ordered[rank - 1, column], ordered[valid - rank, column]
