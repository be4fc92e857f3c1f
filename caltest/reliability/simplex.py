"""Reliability on the triangle and the tetrahedron: whole vectors of three or four classes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from caltest._version import __version__
from caltest.binning import EDGE_TOLERANCE, Binning
from caltest.checks import fraction
from caltest.errors import StatisticError
from caltest.lenses import Canonical, Lens, OneVsRest, apply
from caltest.multiplicity import holm
from caltest.predictions import FloatArray, IntArray, Predictions
from caltest.reliability.bars import cell_pvalues
from caltest.reliability.parts import names_of, own_test
from caltest.resampling import Workers
from caltest.results import ReliabilitySimplex
from caltest.statistics import ECE
from caltest.written import Written, name_of


@dataclass(frozen=True, repr=False)
class SimplexGrid(Written):
    """The simplex cut into m slices along every axis: m² equal triangles for three classes.

    The cell of a row is (⌊m p_0⌋, …, ⌊m p_{K−1}⌋). For three classes these are m² congruent
    triangles, for four m (m² + 1) / 2 tetrahedra and octahedra, which differ in volume. Points in
    which all m p_k are whole are corners of several cells and go to one that lies towards lower
    values of their largest probability; ``UniformBins(m, closed="left")`` is the same partition
    but for them.

    Parameters
    ----------
    m : int, default 5
        Number of slices along an axis.

    Notes
    -----
    O(K n log n).

    Examples
    --------
    >>> SimplexGrid(2)(np.array([[0.6, 0.3, 0.1], [0.4, 0.4, 0.2], [1.0, 0.0, 0.0]]))
    array([1, 0, 1])
    """

    m: int = 5

    def __post_init__(self) -> None:
        if not isinstance(self.m, (int, np.integer)) or self.m < 1:
            raise StatisticError(f"SimplexGrid needs a whole number ≥ 1, not {self.m!r}")

    def __call__(self, probs: FloatArray) -> IntArray:
        first, *others = self.slices(probs).T
        cell = first
        for slices in others:  # numbered anew for every axis, so that no number overflows
            cell = np.unique(cell * self.m + slices, return_inverse=True)[1]
        return cell

    def slices(self, probs: FloatArray) -> IntArray:
        """Return the slice of every row along every axis, shape (n, K)."""
        slices = np.floor(self.m * (probs + EDGE_TOLERANCE)).astype(np.int64)
        corner = np.flatnonzero(slices.sum(axis=1) == self.m)
        slices[corner, slices[corner].argmax(axis=1)] -= 1
        return slices


def reliability_simplex(
    probs: Any,
    labels: Any = None,
    *,
    lens: Lens = Canonical(),
    bins: Binning | int = SimplexGrid(5),
    level: float = 0.9,
    n_resamples: int = 1999,
    rng: Any = None,
    workers: Workers = 1,
) -> ReliabilitySimplex:
    """Compare predicted vectors with outcomes cell by cell: reliability in two or three dimensions.

    Parameters
    ----------
    probs, labels
        As in :func:`calibration_test`.
    lens : callable, default Canonical()
        Anything that leaves three or four classes, such as ``Partition([[0, 1], [2, 3], [4, 5]])``
        or ``TopK(2)``.
    bins : binning or int, default SimplexGrid(5)
        The cells; a number m means ``SimplexGrid(m)``. ``VarianceTree`` follows the data.
    level : float, default 0.9
        Cells count as significant so that with a calibrated model none does with at least this
        probability.
    n_resamples, rng, workers
        For the test of the ECE over the cells.

    Returns
    -------
    ReliabilitySimplex

    Raises
    ------
    StatisticError
        When the lens leaves fewer than three classes or more than four.

    Notes
    -----
    A cell's p-value is exact: the smallest two-sided Poisson-binomial p-value of its classes, times
    their number (Bonferroni); over the cells it is adjusted by Holm's method. O(n K).

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
    data = Predictions.of(probs, labels)
    induced = apply(lens, data)
    if induced.n_classes not in (3, 4):
        raise StatisticError(
            f"a triangle needs three classes and a tetrahedron four, but {name_of(lens)} leaves "
            f"{induced.n_classes}: group them, for instance with lens=Partition([[0, 1], [2], [3]])"
        )
    if isinstance(bins, (int, np.integer)):
        bins = SimplexGrid(int(bins))
    statistic = ECE(bins)
    cells: Any = statistic.given(induced.probs)
    first, counts = cells.starts[:-1], cells.counts[:, None]
    ordered = induced.probs[cells.order]
    lower, upper = np.minimum.reduceat(ordered, first), np.maximum.reduceat(ordered, first)
    if isinstance(bins, SimplexGrid):
        lower = bins.slices(ordered[first]) / bins.m
        upper = lower + 1.0 / bins.m
    hits = np.add.reduceat(induced.labels[cells.order, None] == np.arange(induced.n_classes), first)
    pvalues = [
        cell_pvalues(cells, OneVsRest(k)(induced).probs, hits[:, k])
        for k in range(induced.n_classes)
    ]
    pvalue = np.minimum(1.0, induced.n_classes * np.min(pvalues, axis=0))
    return ReliabilitySimplex(
        lower=lower,
        upper=upper,
        count=cells.counts,
        predicted=cells.sums / counts,
        observed=hits / counts,
        pvalue=pvalue,
        adjusted=np.array(holm(list(pvalue))),
        names=names_of(lens, data, induced),
        lens=name_of(lens),
        bins=name_of(bins),
        level=level,
        n=induced.n,
        n_classes=data.n_classes,
        test=own_test(
            induced, statistic, lens, data, n_resamples=n_resamples, rng=rng, workers=workers
        ),
        notes=data.notes,
        version=__version__,
    )
