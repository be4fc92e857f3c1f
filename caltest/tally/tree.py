"""A partition of the simplex that is fitted once, to predictions alone, and then stays."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from heapq import heapify, heappop, heappush
from typing import Any, Self

import numpy as np

from caltest._base.checks import whole
from caltest._base.compiled import kernel
from caltest.errors import InvalidPredictionsError, StatisticError
from caltest.predictions import FloatArray, IntArray

#: Rows to which a tree is fitted, and numbers in them, at most.
SAMPLE, NUMBERS = 2**15, 2**23
#: Leaves of a tree, leaves times classes, and cells that are cut at medians, at most.
LEAVES, HELD, COARSE = 1024, 2**18, 64


@dataclass(frozen=True, eq=False)
class SimplexTree:
    """Fixed cells of the simplex: the leaves of a tree of cuts, one coordinate each.

    A node sends rows with ``probs[axis] < cut`` to the node after it, all others to ``right``. The
    nodes of a branch follow each other, and so do its leaves: coarser partitions are runs of
    leaves. Called on probabilities it returns the leaf of every row, whatever the other rows are.

    Attributes
    ----------
    n_classes : int
        Number of coordinates.
    axis : ndarray of shape (m,), int64
        The coordinate that is cut; −1 for a leaf.
    cut : ndarray of shape (m,)
        Where; 0 for a leaf.
    right : ndarray of shape (m,), int64
        The second branch; 0 for a leaf.

    Notes
    -----
    O(n log m) for n rows.

    Examples
    --------
    >>> import numpy as np
    >>> probs = np.random.default_rng(1).dirichlet([1, 1, 1], 500)
    >>> tree = SimplexTree.fit(probs, leaves=4)
    >>> np.bincount(tree(probs))
    array([125, 125, 125, 125])
    """

    n_classes: int
    axis: IntArray = field(repr=False)
    cut: FloatArray = field(repr=False)
    right: IntArray = field(repr=False)

    @classmethod
    def fit(cls, probs: Any, leaves: int | None = None) -> Self:
        """Fit a tree to predictions.

        First as :class:`VarianceTree` does, by the median of the axis of largest variance, into
        some 64 cells; then, again and again, the leaf whose predictions scatter most at the mean of
        its widest axis. Labels in a leaf are drawn from its mean prediction: scatter costs power.

        Parameters
        ----------
        probs : ndarray of shape (n, K)
            Predictions as the lens shows them; of more than 2¹⁵ (2²³ / K) so many, evenly
            spaced, are used.
        leaves : int, optional
            The most there may be; by default 1024, 2¹⁸ / K where that is less, at least 64.

        Raises
        ------
        StatisticError
            For two classes, whose tally has a grid.
        """
        columns = np.asarray(probs, dtype=np.float64)
        if columns.ndim != 2 or columns.shape[1] < 3 or len(columns) == 0:
            raise StatisticError("a tree is fitted to predictions (n, K) of three or more classes")
        used = min(SAMPLE, NUMBERS // columns.shape[1])
        columns = columns[:: -(-len(columns) // used)]
        most = leaves or min(LEAVES, max(64, HELD // columns.shape[1]))
        whole("leaves", most)
        axes: list[int] = []
        cuts: list[float] = []
        rights: list[int] = []
        ahead = [(_grown(columns, most), -1)]
        while ahead:
            branch, parent = ahead.pop()
            if parent >= 0:
                rights[parent] = len(axes)
            axes.append(branch.axis if branch.parts else -1)
            cuts.append(branch.cut)
            rights.append(0)
            if branch.parts:
                ahead += [(branch.parts[1], len(axes) - 1), (branch.parts[0], -1)]
        return cls(columns.shape[1], np.array(axes), np.array(cuts), np.array(rights))

    def __call__(self, probs: FloatArray) -> IntArray:
        """Return the leaf of every row."""
        if probs.ndim != 2 or probs.shape[1] != self.n_classes:
            raise StatisticError(
                f"these cells are of {self.n_classes} classes, the predictions have the shape "
                f"{probs.shape}"
            )
        leaf = np.empty(len(probs), dtype=np.int64)
        _descend(probs, self.axis, self.cut, self.right, self._number, leaf)
        return leaf

    @property
    def n_leaves(self) -> int:
        """Number of leaves."""
        return int(self._number[-1]) + 1

    @cached_property
    def _number(self) -> IntArray:
        """The number of the first leaf of every branch."""
        leaf = self.axis < 0
        return np.cumsum(leaf) - leaf

    def coarse(self, counts: IntArray, limits: tuple[int, int]) -> IntArray:
        """Return the first leaf of every cell of a coarser partition.

        A branch stays divided where it holds ``limits[0]`` rows and each of its parts
        ``limits[1]``; ``counts`` are the rows of the leaves.
        """
        before, last = np.append(0, np.cumsum(counts)), self.n_leaves
        starts, waiting = [], [(0, last)]
        while waiting:
            node, end = waiting.pop()
            first = self._number[node]
            if self.axis[node] >= 0:
                middle = self._number[self.right[node]]
                parts = before[middle] - before[first], before[end] - before[middle]
                if sum(parts) >= limits[0] and min(parts) >= limits[1]:
                    waiting += [(self.right[node], end), (node + 1, middle)]
                    continue
            starts.append(first)
        return np.array(starts)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, SimplexTree):
            return NotImplemented
        held = ("axis", "cut", "right")
        same = (np.array_equal(getattr(self, name), getattr(other, name)) for name in held)
        return self.n_classes == other.n_classes and all(same)

    __hash__ = None  # type: ignore[assignment]

    def described(self) -> dict[str, Any]:
        """Return the tree as numbers that JSON keeps exactly."""
        held = {name: getattr(self, name).tolist() for name in ("axis", "cut", "right")}
        return {"n_classes": self.n_classes, **held}

    @classmethod
    def of_description(cls, content: Any) -> Self:
        """Rebuild from :meth:`described`; InvalidPredictionsError where that is no tree."""
        axis, right = (np.asarray(content[name], dtype=np.int64) for name in ("axis", "right"))
        cut, n_classes = np.asarray(content["cut"], dtype=np.float64), int(content["n_classes"])
        nodes, inner = np.arange(axis.size), axis >= 0
        sound = axis.ndim == 1 and axis.shape == cut.shape == right.shape and axis.size > 0
        if sound:
            ends = (right > nodes + 1) & (right < axis.size)
            sound = bool(np.where(inner, ends, right == 0).all() and axis.max() < n_classes)
        if not (sound and 2 * inner.sum() + 1 == axis.size):
            raise InvalidPredictionsError("these cells are damaged: they are no tree")
        return cls(n_classes, axis, cut, right)

    def __repr__(self) -> str:
        return f"SimplexTree({self.n_leaves} leaves, {self.n_classes} classes)"


@dataclass(eq=False)
class _Branch:
    """Rows, how they scatter, and where they are cut; the most scattered comes first."""

    rows: IntArray
    axis: int
    scatter: float
    cut: float = 0.0
    parts: tuple[_Branch, ...] = ()

    @classmethod
    def of(cls, columns: FloatArray, rows: IntArray | None = None) -> Self:
        rows = np.arange(len(columns)) if rows is None else rows
        variances = columns[rows].var(axis=0)
        return cls(rows, int(np.argmax(variances)), float(variances.sum()) * rows.size)

    def __lt__(self, other: _Branch) -> bool:
        return self.scatter > other.scatter

    def cut_at(self, columns: FloatArray, cut: float, smallest: int) -> bool:
        """Cut, unless a part would be too small."""
        below = columns[self.rows, self.axis] < cut
        if min(below.sum(), (~below).sum()) < smallest:
            return False
        self.cut = cut
        self.parts = tuple(_Branch.of(columns, self.rows[side]) for side in (below, ~below))
        return True


def _grown(columns: FloatArray, most: int) -> _Branch:
    """Return the root of a tree of at most so many leaves."""
    smallest, n_leaves = -(-len(columns) // min(most, COARSE)), 1
    root = _Branch.of(columns)
    waiting, scattered = [root], []
    while waiting:
        branch = waiting.pop()
        values = columns[branch.rows, branch.axis]
        if branch.cut_at(columns, float(np.median(values)), smallest):
            waiting += branch.parts
            n_leaves += 1
        else:
            scattered.append(branch)
    heapify(scattered)
    while n_leaves < most and scattered and scattered[0].scatter > 1e-12 * len(columns):
        branch = heappop(scattered)
        if branch.cut_at(columns, float(columns[branch.rows, branch.axis].mean()), 1):
            for part in branch.parts:
                heappush(scattered, part)
            n_leaves += 1
    return root


@kernel
def _descend(probs, axis, cut, right, number, leaf_out):  # type: ignore[no-untyped-def]
    for i in range(probs.shape[0]):
        node = 0
        while axis[node] >= 0:
            node = node + 1 if probs[i, axis[node]] < cut[node] else right[node]
        leaf_out[i] = number[node]
