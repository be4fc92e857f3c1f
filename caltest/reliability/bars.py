"""Bars for observed frequencies, cell by cell: two kinds that answer two questions.

*Consistency* bars hold what a calibrated model would show on these predictions; *confidence* bars
hold what the true frequency may be, given what was observed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Unpack

import numpy as np

from caltest._base.poisson_binomial import clopper_pearson
from caltest.errors import StatisticError
from caltest.predictions import FloatArray, IntArray, Predictions
from caltest.problem import Cells, Outcomes, Problem
from caltest.results import ending
from caltest.simulate import (
    Batches,
    Ended,
    LabelScheme,
    RowScheme,
    Run,
    Scheme,
    simulate,
    simulate_by,
)

Bars = tuple[FloatArray, FloatArray]


def consistency_bars(cells: Cells, level: float, *, simultaneous: bool = False) -> Bars:
    """Return, for every cell, the frequencies of label 0 that a calibrated model would show.

    Quantiles of their exact law, for ``probs`` of shape (n, 2): ``level`` is the smallest
    probability that the observed frequency lies between the bars, ends included, and at most
    (1 − level) / 2 is left on either side. With ``simultaneous`` it is the probability that *all*
    frequencies lie between their bars: cells are independent given the predictions, so it is the
    product of their probabilities, and the bars cut the same largest tail probability from every
    cell that keeps the product. O(n) for the laws, O(L log n) for the bars.
    """
    laws = [(first, np.cumsum(pmf)) for first, pmf, _ in cells.laws()]
    side = _shared_side(laws, level) if simultaneous else 0.5 * (1.0 - level)
    low, high = np.array([_quantiles(cdf, side) for _, cdf in laws]).T
    first = np.array([first for first, _ in laws])
    return (first + low) / cells.mass, (first + high) / cells.mass


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


def cell_pvalues(cells: Cells, hits: IntArray) -> FloatArray:
    """Return, for every cell, the exact two-sided p-value of its number of label-0 rows.

    p = min(1, 2 min(P(S ≤ s), P(S ≥ s))), S Poisson-binomial, and never 0; for the other arguments
    see :func:`consistency_bars`.
    """
    values = []
    for s, (first, pmf, lost) in zip(hits, cells.laws(), strict=True):
        j = int(s) - first
        below = pmf[: max(j + 1, 0)].sum()
        above = pmf[max(j, 0) :].sum()
        values.append(min(1.0, 2.0 * (min(below, above) + lost)))
    return np.maximum(values, np.finfo(float).tiny)


def confidence_bars(
    successes: IntArray, counts: IntArray, level: float, method: str = "clopper-pearson", *,
    simultaneous: bool = False,
) -> Bars:  # fmt: skip
    """Return, for every cell, an interval for the mean of the true probabilities in it.

    ``successes`` of ``counts`` rows had the outcome. The intervals of Clopper & Pearson (1934)
    never fall short of the level, also when probabilities differ within a cell (Hoeffding 1956);
    those of Wilson (1927), ``method="wilson"``, are shorter and hold it on average. With
    ``simultaneous`` each has level^(1/L), because cells are independent (Šidák 1967).
    """
    from scipy.special import ndtri

    if simultaneous:
        level = level ** (1.0 / len(counts))
    if method == "clopper-pearson":
        return clopper_pearson(successes, counts, level)
    s, n = successes.astype(np.float64), counts.astype(np.float64)
    z2 = float(ndtri(0.5 * (1.0 - level))) ** 2
    centre = (s + 0.5 * z2) / (n + z2)
    half = np.sqrt(z2 * (s * (n - s) / n + 0.25 * z2)) / (n + z2)
    return np.where(s > 0, centre - half, 0.0), np.where(s < n, centre + half, 1.0)


def simulated_bars(
    data: Predictions | Problem, cells: Sequence[Cells], scheme: Scheme, level: float, *,
    simultaneous: bool, **run: Unpack[Run],
) -> tuple[Bars, int, Ended]:  # fmt: skip
    """Return which deviations drawn data show in every cell, how many were drawn, and the ending.

    A deviation is outcome minus prediction, ``cells`` are the partitions of the rows for the first
    J induced classes, and the bars follow each other class by class. A scheme that draws rows, as
    the bars of Vaicenavicius et al. (2019, Fig. 4) do, lets the size of a cell vary, and replicates
    in which it is empty do not count for it; a row stays in its cell. O(B n J).
    """
    if (problem := cells[0].problem).only_null is not None:
        gaps, ended = simulate_by(problem.redraws(scheme, _CellGaps(cells[0])), **run)
    elif isinstance(data, Predictions) and isinstance(scheme, LabelScheme):
        gaps_of = partial(_gaps, data.probs, cells)
        return label_bars(data, gaps_of, scheme, level, simultaneous=simultaneous, **run)
    else:
        assert isinstance(data, Predictions)
        assert isinstance(scheme, RowScheme)
        named = replace(data, ids=np.arange(data.n))  # rows are known by their names when drawn
        values, ended = simulate(partial(_sums, cells), scheme.sampler(named), **run)
        sums, sizes = np.split(values, 2, axis=1)
        with np.errstate(invalid="ignore"):
            gaps = sums / sizes
    return quantile_bars(gaps, level, simultaneous=simultaneous), len(gaps), ended


@dataclass(frozen=True, eq=False)
class _CellGaps:
    """Deviations of a partition, as redraws evaluate a statistic."""

    cells: Cells
    counted_as_drawn = False

    def values(self, outcomes: Outcomes, factor: float = 1.0) -> FloatArray:
        return np.asarray(factor**0.5 * self.cells.problem.gaps(self.cells, outcomes))


def label_bars(
    data: Predictions, values: Callable[[IntArray], FloatArray], scheme: LabelScheme, level: float,
    *, simultaneous: bool, **run: Unpack[Run],
) -> tuple[Bars, int, Ended]:  # fmt: skip
    """Return bars that hold what all laws of a scheme draw, how many were drawn, and the ending.

    ``values`` takes label vectors of shape (B, n) to (B, L).
    """
    parts = [
        simulate_by(Batches(each.drawer(data), data.n, values), **run) for each in scheme.each(data)
    ]
    bars = [quantile_bars(draws, level, simultaneous=simultaneous) for draws, _ in parts]
    low, high = zip(*bars, strict=True)
    widest = np.minimum.reduce(low), np.maximum.reduce(high)
    return widest, len(parts[0][0]), ending(*(ended for _, ended in parts))


def drawn_pvalues(
    data: Predictions, cells: Cells, scheme: LabelScheme, inflation: float, **run: Unpack[Run]
) -> tuple[FloatArray, FloatArray, int, Ended]:
    """Return p-values of all cells, those adjusted for all (max-T), how many draws, and the ending.

    T_b = max_k |Δ_bk| / s_bk with Δ the outcome minus prediction and s its root mean square over
    the observed and the drawn labels, which are exchangeable if the model is calibrated; the drawn
    Δ are multiplied by √``inflation`` first. p = (1 + #{T* ≥ T}) / (1 + B); adjusted, T* is that
    of the most deviating cell. O(B n K).
    """
    each = [cells] * data.n_classes
    batches = Batches(scheme.drawer(data), data.n, partial(_gaps, data.probs, each))
    replicates, ended = simulate_by(batches, **run)
    gaps = np.vstack([_gaps(data.probs, each, data.labels[None]), np.sqrt(inflation) * replicates])
    spread = np.sqrt((gaps**2).mean(axis=0))
    sizes = np.abs(gaps) / np.where(spread > 1e-12, spread, np.inf)
    sizes = sizes.reshape(len(gaps), data.n_classes, -1).max(axis=1)
    observed = sizes[0] - 1e-10  # rounding must not split ties
    adjusted = (sizes.max(axis=1)[:, None] >= observed).mean(axis=0)
    return (sizes >= observed).mean(axis=0), adjusted, len(replicates), ended


def _gaps(probs: FloatArray, cells: Sequence[Cells], labels: IntArray) -> FloatArray:
    """Return the deviations of all cells, for label vectors of shape (B, n)."""
    gaps = [c.mean(labels == j) - c.mean(probs[:, j]) for j, c in enumerate(cells)]
    return np.concatenate(gaps, axis=1)


def _sums(cells: Sequence[Cells], resample: Predictions) -> FloatArray:
    """Return the sums of outcome minus prediction of all cells, and their sizes."""
    sums, sizes = [], []
    for j, of_class in enumerate(cells):
        cell, size = of_class.of_unit[resample.ids], len(of_class)
        sums.append(np.bincount(cell, (resample.labels == j) - resample.probs[:, j], size))
        sizes.append(np.bincount(cell, minlength=size))
    return np.concatenate([*sums, *sizes])


def quantile_bars(draws: FloatArray, level: float, *, simultaneous: bool = False) -> Bars:
    """Return bars that hold a further draw with the probability ``level``.

    Pointwise, the ⌊(B + 1)(1 − level) / 2⌋-th smallest and largest of B replicates: a further draw
    is as likely to have any rank. Simultaneous: mean ± c · sd, where c is the same order statistic
    of the largest standardised distance over all columns (max-T). ``draws``, of shape (B, L), are
    NaN where a cell was empty. StatisticError for fewer replicates than the level needs.
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
