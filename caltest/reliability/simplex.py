"""Reliability on the simplex: whole vectors of three or four classes."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Unpack, cast

import numpy as np

from caltest._base.arrays import RNG
from caltest._base.checks import MOST_BINS, fraction, is_whole, whole
from caltest._base.defaults import BAND_LEVEL, N_TOGETHER
from caltest._base.multiplicity import holm
from caltest._base.written import Written, name_of
from caltest.binning import EDGE_TOLERANCE, Binning, as_binning
from caltest.errors import StatisticError
from caltest.inference.dependence import Coupled, clustered
from caltest.lenses import Canonical, LensLike, OneVsRest
from caltest.predictions import Facts, FloatArray, IntArray, Predictions
from caltest.problem import MAX_MASS, Cells, RowProblem
from caltest.reliability.bars import cell_pvalues, drawn_pvalues
from caltest.reliability.view import View
from caltest.results import CalibrationTestResult, ReliabilitySimplex, ending
from caltest.simulate import LabelScheme, RedrawLabels, Run, Workers
from caltest.statistics import ECE


@dataclass(frozen=True, repr=False)
class SimplexGrid(Written):
    """The simplex cut into m slices along every axis: m² equal triangles for three classes.

    The cell of a row is (⌊m p_0⌋, …, ⌊m p_{K−1}⌋), in O(K n log n); for four classes these are
    m (m² + 1) / 2 tetrahedra and octahedra, which differ in volume. Points in which all m p_k are
    whole are corners of several cells and go to one that lies towards lower values of their largest
    probability; ``UniformBins(m, closed="left")`` is the same partition but for them.

    Parameters
    ----------
    n_bins : int, default 5
        Number of slices along an axis, m.

    Examples
    --------
    >>> SimplexGrid(2)(np.array([[0.6, 0.3, 0.1], [0.4, 0.4, 0.2], [1.0, 0.0, 0.0]]))
    array([1, 0, 1])
    """

    n_bins: int = 5

    def __post_init__(self) -> None:
        whole("n_bins", self.n_bins, most=MOST_BINS)

    def __call__(self, probs: FloatArray) -> IntArray:
        first, *others = self.slices(probs).T
        cell = first
        for slices in others:  # numbered anew for every axis, so that no number overflows
            cell = np.unique(cell * self.n_bins + slices, return_inverse=True)[1]
        return cell

    def slices(self, probs: FloatArray) -> IntArray:
        """Return the slice of every row along every axis, shape (n, K)."""
        slices = np.floor(self.n_bins * (probs + EDGE_TOLERANCE)).astype(np.int64)
        corner = np.flatnonzero(slices.sum(axis=1) == self.n_bins)
        slices[corner, slices[corner].argmax(axis=1)] -= 1
        return slices


def reliability_simplex(
    probs: object,
    labels: object = None,
    *,
    lens: LensLike = Canonical(),
    bins: Binning | int = SimplexGrid(5),
    level: float = BAND_LEVEL,
    n_resamples: int = N_TOGETHER,
    rng: RNG = None,
    workers: Workers = 1,
    **facts: Unpack[Facts],
) -> ReliabilitySimplex:
    """Compare predicted vectors with outcomes cell by cell.

    Parameters
    ----------
    probs, labels, n_resamples, rng, workers, **facts
        As in :func:`calibration_test`; ``by`` is refused.
    lens : lens, default Canonical()
        Anything that leaves three classes, for a picture, or four, such as ``TopK(2)`` or
        ``Partition([[0, 1], [2, 3], [4, 5]])``.
    bins : binning or int, default SimplexGrid(5)
        The cells; a number m means ``SimplexGrid(m)``. ``VarianceTree`` follows the data.
    level : float, default 0.9
        Cells count as significant so that with a calibrated model none does with at least this
        probability.

    Raises
    ------
    StatisticError
        When the lens leaves fewer than three classes or more than four.

    Notes
    -----
    A cell's p-value is exact: the smallest two-sided Poisson-binomial p-value of its classes, times
    their number (Bonferroni); over the cells it is adjusted by Holm's method. O(n K). With clusters
    or weights that are no multiples of one number, labels are drawn as the test of the ECE draws
    them, inflated by its κ: the p-value is that of the largest standardised deviation of a class,
    adjusted by the joint law of all cells (max-T; Westfall & Young 1993). O(B n K).

    References
    ----------
    Vaicenavicius et al. 2019, §4.4 and Fig. 1.

    Examples
    --------
    >>> import caltest as ct
    >>> six = ct.examples.SixPoints().sample(6000, rng=1)
    >>> simplex = reliability_simplex(six, rng=1)
    >>> simplex.count
    array([1031,  975, 1013,  965, 1017,  999])
    >>> simplex.significant.all()
    np.True_
    """
    fraction("level", level)
    view = View.of("reliability_simplex", probs, labels, facts, lens=lens, rng=rng)
    induced, n_classes = view.induced, view.induced.n_classes
    if n_classes not in (3, 4):
        raise StatisticError(
            f"reliability on the simplex is for three classes, or four without a picture, but "
            f"{name_of(view.lens)} leaves {n_classes}: group them, for instance with "
            "lens=Partition([[0, 1], [2], [3]])"
        )
    bins = SimplexGrid(int(bins)) if is_whole(bins) else as_binning(bins)
    cells = Cells.of(bins, RowProblem(induced))
    first, onehot = cells.starts[:-1], induced.labels[:, None] == np.arange(n_classes)
    ordered = induced.probs[cells.order]
    bin_low, bin_high = np.minimum.reduceat(ordered, first), np.maximum.reduceat(ordered, first)
    if isinstance(bins, SimplexGrid):
        bin_low = bins.slices(ordered[first]) / bins.n_bins
        bin_high = bin_low + 1.0 / bins.n_bins
    run = Run(n_resamples=n_resamples, rng=rng, workers=workers)
    test = view.test(ECE(bins), induced, run)
    pvalue, adjusted, n_draws, ended = _pvalues(induced, cells, test, run)
    return ReliabilitySimplex(
        bin_low=bin_low, bin_high=bin_high, count=cells.counts,
        predicted=np.stack([cells.mean(column) for column in induced.probs.T], axis=1),
        observed=np.stack([cells.mean(column) for column in onehot.T], axis=1), pvalue=pvalue,
        adjusted=adjusted, names=view.components, bins=name_of(bins), level=level, test=test,
        n_resamples=n_draws, ended=ending(test.ended, ended), **view.facts,
    )  # fmt: skip


def _pvalues(
    induced: Predictions, cells: Cells, test: CalibrationTestResult, run: Run
) -> tuple[FloatArray, FloatArray, int, str]:
    """Return p-values of the cells, adjusted ones, and how many draws they took, ended how."""
    weights, clusters, k = induced.weights, test.clusters, induced.n_classes
    whole = weights is None or bool((weights == np.rint(weights)).all())
    if clusters is None and whole and cells.mass.max() <= (np.inf if weights is None else MAX_MASS):
        hits = [np.rint(cells.mean(induced.labels == j) * cells.mass).astype(int) for j in range(k)]
        pvalues = [
            cell_pvalues(replace(cells, problem=RowProblem(OneVsRest(j)(induced))), hits[j])
            for j in range(k)
        ]
        pvalue = np.minimum(1.0, k * np.min(pvalues, axis=0))
        return pvalue, np.array(holm(list(pvalue))), 0, "complete"
    none: tuple[Coupled, ...] = (Coupled(RedrawLabels()),)
    schemes = none if clusters is None else clustered("auto", induced, stack=6)[0]
    parts = [
        drawn_pvalues(induced, cells, cast(LabelScheme, law), kappa, **run)
        for law, kappa in schemes
    ]
    pvalue, adjusted = np.max([part[:2] for part in parts], axis=0)
    return pvalue, adjusted, parts[0][2], ending(*(ended for *_, ended in parts))
