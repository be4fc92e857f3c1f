"""Partitions of the simplex, fixed from the predictions alone.

A binning is called on the probabilities and returns the cell of every row, so any function
``(n, K) array -> n integers`` is one. A two-class problem is one-dimensional and is cut along its
first column.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import KW_ONLY, dataclass
from itertools import pairwise
from typing import Literal, cast

import numpy as np

from caltest._base import FloatArray, IntArray
from caltest._base.arrays import MOST_BINS, codes, is_whole, one_of, whole
from caltest._base.written import Written
from caltest.errors import StatisticError

Binning = Callable[[FloatArray], IntArray]


Closed = Literal["right", "left"]


#: A value this close to an edge lies on it, so that 0.1 + 0.2 falls where 0.3 does.
EDGE_TOLERANCE = 1e-12


def coordinate(probs: FloatArray) -> FloatArray | None:
    """Return the predictions (n,) of a one- or two-class array; None for more classes.

    ``probs`` is (n,) or (n, K). For two columns it is the first one.
    """
    if probs.ndim == 1:
        return probs
    return probs[:, 0] if probs.shape[1] == 2 else None


def one_coordinate(probs: FloatArray, binning: object) -> FloatArray:
    """Return the single coordinate (n,) of probabilities that a binning cuts.

    ``probs`` is (n,), returned unchanged, or (n, 2), of which the first column is returned.
    StatisticError for more than two classes; ``binning`` is named in the message.
    """
    x = coordinate(probs)
    if x is None:
        raise StatisticError(
            f"{binning!r} cuts one coordinate, but the induced problem has {probs.shape[1]} "
            "classes: use VarianceTree, UniformBins or a two-class lens"
        )
    return x


def _cell_numbers(x: FloatArray, edges: FloatArray, closed: Closed) -> IntArray:
    """Return the number of the bin of each x, (n,), between increasing ``edges`` (m,): 0 to m.

    ``closed`` is the side on which bins are closed: with "right" an edge belongs to the bin below
    it, with "left" to the bin above.
    """
    return np.searchsorted(edges, x, side="left" if closed == "right" else "right")


@dataclass(frozen=True, repr=False)
class UniformBins(Written):
    """Bins of equal width; for K > 2 the cells of a grid with m bins along every axis.

    Bin j of the m = ``n_bins`` bins is (j/m, (j+1)/m] when ``closed="right"`` (Guo et al. 2017),
    [j/m, (j+1)/m) when ``closed="left"`` (scikit-learn, netcal); the values 0 and 1 always belong
    to the end bins. Edges are compared as decimals: 0.6, and also 0.1 + 0.5, lies on the third edge
    of five bins.

    For K > 2 ``axes="all"`` cuts all K axes (CalibrationErrors.jl; the result does not depend on
    the order of the classes), ``"first"`` the first K − 1 (the code of Vaicenavicius et al.). O(n K
    log m) time; n K bytes of memory for m ≤ 256.

    Called on probabilities (n,) or (n, K) it returns the number of the cell of each row, (n,). For
    K = 2 the first column is cut; for K > 2 the occupied cells are numbered from 0.

    Examples
    --------
    >>> UniformBins(5)(np.array([0.0, 0.2, 0.6, 0.61, 1.0]))
    array([0, 0, 2, 3, 4])
    """

    n_bins: int = 15
    _: KW_ONLY
    closed: Closed = "right"
    axes: Literal["all", "first"] = "all"

    def __post_init__(self) -> None:
        whole("n_bins", self.n_bins, most=MOST_BINS)
        one_of("closed", self.closed, ("right", "left"))
        one_of("axes", self.axes, ("all", "first"))

    @property
    def edges(self) -> FloatArray:
        """Inner edges along an axis, shape (n_bins − 1,)."""
        return np.arange(1, self.n_bins) / self.n_bins

    def __call__(self, probs: FloatArray) -> IntArray:
        x = coordinate(probs)
        if x is not None:
            return self._along_axis(x)
        columns = probs if self.axes == "all" else probs[:, :-1]
        small = np.dtype(np.min_scalar_type(self.n_bins))
        cells = np.column_stack([self._along_axis(column).astype(small) for column in columns.T])
        # Rows as one value each, of which the distinct ones are numbered.
        keys = np.ascontiguousarray(cells).view(
            np.dtype((np.void, small.itemsize * len(columns.T)))
        )
        return codes(keys)

    def _along_axis(self, x: FloatArray) -> IntArray:
        tolerance = EDGE_TOLERANCE if self.closed == "right" else -EDGE_TOLERANCE
        return _cell_numbers(x, self.edges + tolerance, self.closed)


@dataclass(frozen=True, repr=False)
class EdgeBins(Written):
    """Bins with given inner edges along the one coordinate of a two-class problem.

    Rating grades, risk groups, or the exact edges of another program: m edges make m + 1 bins, and
    an edge belongs to the bin that is ``closed`` on its side, "right" or "left". They are compared
    as they are, to the last bit. O(n log m). StatisticError when the edges do not increase within
    [0, 1], or for more than two classes.

    Called on probabilities (n,), or (n, 2), of which the first column is cut, it returns the number
    of the bin of each row, (n,), from 0.

    Examples
    --------
    >>> EdgeBins([0.05, 0.2])(np.array([0.01, 0.05, 0.1, 0.7]))
    array([0, 0, 1, 2])
    """

    edges: tuple[float, ...]
    closed: Closed = "right"

    def __init__(self, edges: Iterable[float], *, closed: Closed = "right") -> None:
        try:
            numbers = np.asarray(list(edges), dtype=np.float64)
        except (TypeError, ValueError):
            raise StatisticError(f"EdgeBins needs numbers as edges, not {edges!r}") from None
        object.__setattr__(self, "edges", tuple(numbers.ravel().tolist()))
        object.__setattr__(self, "closed", closed)
        if numbers.size == 0 or not (np.diff([-np.inf, *self.edges]) > 0.0).all():
            raise StatisticError(f"EdgeBins needs increasing edges, not {self.edges!r}")
        if self.edges[0] < 0.0 or self.edges[-1] > 1.0:
            raise StatisticError(f"EdgeBins needs edges within [0, 1], not {self.edges!r}")
        one_of("closed", self.closed, ("right", "left"))

    def __call__(self, probs: FloatArray) -> IntArray:
        return _cell_numbers(one_coordinate(probs, self), np.array(self.edges), self.closed)


@dataclass(frozen=True, repr=False)
class QuantileBins(Written):
    """Bins of (nearly) equal mass along the one coordinate of a two-class problem.

    The sorted values are cut at ranks ⌈j n / m⌉ for m = ``n_bins`` (⌊j n / m⌋ for
    ``closed="left"``, the mirror image); equal values are never separated, so heavy ties give fewer
    bins than asked for. With ``closed="right"`` an edge is the last value of its bin, with
    ``"left"`` the first of the next. StatisticError for more than two classes: equal mass has no
    meaning along several axes, use :class:`VarianceTree` or a two-class lens. O(n log n).

    Called on probabilities (n,), or (n, 2), of which the first column is cut, it returns the number
    of the bin of each row, (n,), from 0.

    Examples
    --------
    >>> QuantileBins(2)(np.array([0.1, 0.2, 0.2, 0.9]))
    array([0, 0, 0, 1])
    """

    n_bins: int = 15
    _: KW_ONLY
    closed: Closed = "right"

    def __post_init__(self) -> None:
        whole("n_bins", self.n_bins, most=MOST_BINS)
        one_of("closed", self.closed, ("right", "left"))

    def __call__(self, probs: FloatArray) -> IntArray:
        x = one_coordinate(probs, self)
        ordered = np.sort(x)
        j = np.arange(1, self.n_bins)
        if self.closed == "right":
            edges = ordered[-(-j * x.size // self.n_bins) - 1]
            return _cell_numbers(x, np.unique(edges), "right")
        edges = ordered[j * x.size // self.n_bins]
        return _cell_numbers(x, np.unique(edges[edges > ordered[0]]), "left")


@dataclass(frozen=True, repr=False)
class VarianceTree(Written):
    """A partition that follows the data: split the axis of largest variance, again and again.

    ``split="median"`` is the scheme of Widmann et al. (2019) and CalibrationErrors.jl, ``"mean"``
    the one in the code of Vaicenavicius et al. (2019). Values below the threshold go left, all
    others right; of equal variances the lowest axis is split.

    ``stop="child"`` splits a cell only when both parts keep at least ``min_size`` rows (the default
    for the median), ``"node"`` every cell of at least so many, so that parts may be smaller (the
    default for the mean). O(n K log(n / min_size)) time; one copy of the probabilities.

    Called on probabilities (n, K) it returns the number of the cell of each row, (n,).

    Examples
    --------
    >>> VarianceTree(1)(np.array([[0.9, 0.1], [0.2, 0.8], [0.25, 0.75]]))
    array([2, 0, 1])
    """

    min_size: int = 100
    _: KW_ONLY
    split: Literal["median", "mean"] = "median"
    stop: Literal["child", "node"] | None = None

    def __post_init__(self) -> None:
        whole("min_size", self.min_size)
        one_of("split", self.split, ("median", "mean"))
        one_of("stop", self.stop, ("child", "node", None))

    @property
    def limits(self) -> tuple[int, int]:
        """(Rows of the smallest cell that this tree splits, rows of the smallest part it makes).

        They follow from ``min_size`` and ``stop``.
        """
        by_node = (self.stop or {"median": "child", "mean": "node"}[self.split]) == "node"
        return (max(2, self.min_size), 1) if by_node else (2 * self.min_size, self.min_size)

    def __call__(self, probs: FloatArray) -> IntArray:
        x = coordinate(probs)
        columns = probs if x is None else x[:, None]
        smallest_node, smallest_part = self.limits
        centre = np.median if self.split == "median" else np.mean
        cells = np.empty(len(columns), dtype=np.int64)
        n_cells = 0
        waiting = [np.arange(len(columns))]
        while waiting:
            rows = waiting.pop()
            below = np.zeros(rows.size, dtype=bool)
            if rows.size >= smallest_node:
                spread = columns[rows].var(axis=0) if columns.shape[1] > 1 else [0.0]
                values = columns[rows, np.argmax(spread)]
                below = values < centre(values)
            n_below = int(below.sum())
            if min(n_below, rows.size - n_below) >= smallest_part:
                waiting += [rows[~below], rows[below]]
            else:
                cells[rows] = n_cells
                n_cells += 1
        return cells


#: Binnings that give every row its cell whatever the other rows are.
FIXED = (UniformBins, EdgeBins)


def as_binning(bins: object, *, number: bool = True) -> Binning:
    """Return ``bins`` as a binning, a function from probabilities to bin numbers (n,).

    An integer m means ``UniformBins(m)``; functions are returned unchanged. StatisticError for
    anything else, and for an integer if ``number`` is False, because it does not say which kind of
    bins is meant.
    """
    if is_whole(bins):
        if not number:
            raise StatisticError(
                f"name the binning: QuantileBins({bins}) for equal mass or UniformBins({bins}) for "
                f"equal width, not {bins!r}"
            )
        return UniformBins(int(bins))
    if not callable(bins) or isinstance(bins, type):
        raise StatisticError(
            f"bins must be a number of bins, a binning such as UniformBins(15), or a function "
            f"of the probabilities, not {bins!r}"
        )
    return cast(Binning, bins)


@dataclass(frozen=True, repr=False)
class CutBins(Written):
    """Bins of about equal mass, cut as other programs cut them; presets use them.

    The m = ``n_bins`` bins are cut at interpolated quantiles (``at="quantile"``), at midpoints
    between the last value of a bin and the first of the next (``"halfway"``), or at the values of
    ranks round(j n / m) (``"rank"``). ``n_bins=None`` makes ⌈n^⅓⌉ bins. An edge belongs to the bin
    that is ``closed`` on its side, "right" or "left". Called on probabilities (n,), or (n, 2), of
    which the first column is cut, it returns the number of the bin of each row, (n,).
    StatisticError for more than two classes.
    """

    n_bins: int | None
    at: Literal["quantile", "halfway", "rank"] = "quantile"
    closed: Closed = "right"

    def __post_init__(self) -> None:
        whole("bins", 1 if self.n_bins is None else self.n_bins, most=MOST_BINS)

    def __call__(self, probs: FloatArray) -> IntArray:
        x = one_coordinate(probs, self)
        ordered, m = np.sort(x), self.n_bins or int(np.ceil(len(probs) ** (1 / 3)))
        if self.at == "quantile":
            inner = np.quantile(x, np.linspace(0.0, 1.0, m + 1))[1:-1]
        elif self.at == "halfway":
            parts = np.array_split(ordered, min(m, x.size))
            inner = np.unique([(a[-1] + b[0]) / 2.0 for a, b in pairwise(parts)])
        else:
            ranks = np.round(np.linspace(0, x.size, m, endpoint=False)).astype(np.int64)
            inner = ordered[np.minimum(ranks, x.size - 1)][1:]
        return _cell_numbers(x, inner, self.closed)
