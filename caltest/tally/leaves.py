"""The problem of a vector tally, its statistics, and draws of the labels in its leaves."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import Any, ClassVar, Self

import numpy as np

from caltest._base.written import name_of
from caltest.binning import VarianceTree
from caltest.distances import rowwise
from caltest.errors import StatisticError
from caltest.predictions import FloatArray, IntArray
from caltest.statistics.binned import ECE, MCE
from caltest.statistics.cells import Cells
from caltest.statistics.debiased import DebiasedL2
from caltest.statistics.kernel import SKCE
from caltest.statistics.kernel.kernels import DistanceKernel, fitted
from caltest.statistics.prepared import normal
from caltest.statistics.scores import NOTHING, BrierScore, LogScore, ScoreGap
from caltest.tally.counts import Tallied, Value
from caltest.tally.rows import HIGH, LOW, UNIT
from caltest.tally.statistics import Limit
from caltest.tally.vectors import TOTALS, VectorTally

#: Numbers in an array of drawn counts.
AT_ONCE = 2**21


@dataclass(frozen=True, eq=False)
class Leaves:
    """What a vector tally shows, with numbers in place of rows: C leaves of K classes.

    It stands where statistics have their predictions: ``probs`` (C, K) are the mean predictions,
    ``labels`` (C, K) the numbers of labels, ``squares`` (C, K) the sums of squared predictions.
    """

    tally: VectorTally = field(repr=False)
    count: FloatArray = field(repr=False)
    expected: FloatArray = field(repr=False)
    squares: FloatArray = field(repr=False)
    labels: IntArray = field(repr=False)

    n_clusters = clusters = weights = None

    @classmethod
    def of(cls, tally: VectorTally) -> Self:
        """Read the sums of a tally; O(C K)."""
        if tally.n == 0:
            raise StatisticError("the tally is empty: add rows first")
        count = tally.count.astype(np.float64)
        expected, squares = (tally.sums[..., j] / UNIT for j in range(2))
        expected *= (count / expected.sum(axis=1))[:, None]
        return cls(tally, count, expected, squares, tally.sums[..., 2])

    @property
    def n(self) -> int:
        """Number of rows."""
        return self.tally.n

    @property
    def n_classes(self) -> int:
        """Number of classes that the lens leaves."""
        return self.labels.shape[1]

    @cached_property
    def probs(self) -> FloatArray:
        """The mean predictions."""
        return self.expected / self.count[:, None]

    @property
    def impossible(self) -> IntArray:
        """As many zeros as outcomes had probability 0."""
        return np.broadcast_to(np.int64(0), (self.tally.refuted,))

    @property
    def said(self) -> str:
        """What the rows were summed over."""
        return f"{len(self.count)} leaves of a tree fitted to the first sample (VectorTally)"

    @property
    def surprising(self) -> float:
        """How many outcomes that are not the likeliest a calibrated model expects, about."""
        return float((self.count - self.expected.max(axis=1)).sum())

    def total(self, name: str) -> float:
        """Return a total over all rows."""
        high, low = self.tally.totals[TOTALS.index(name)]
        return float(high / HIGH + low / (HIGH * 2.0**LOW))

    @cached_property
    def types(self) -> tuple[FloatArray, IntArray, FloatArray]:
        """Rows that stand for those of a leaf: λ (C, K), how many are of each type, and the rest.

        A row of type k has the prediction λ_k e_k + (1 − λ_k) rest, all others the rest. Means are
        those of the rows, and so is Σ_k Σ_i p_ik (1 − p_ik), where such rows can have it.
        """
        typed = np.rint(self.expected)
        typed[typed.sum(axis=1) > self.count] = 0.0
        most = np.minimum(self.expected / np.maximum(typed, 1.0), 1.0)
        wanted = self.squares.sum(axis=1)
        low, high = np.zeros(len(typed)), np.ones(len(typed))
        for _ in range(40):
            middle = 0.5 * (low + high)
            above = self._spread(typed, np.minimum(middle[:, None], most)) > wanted
            low, high = np.where(above, low, middle), np.where(above, middle, high)
        low[self._spread(typed, np.zeros(typed.shape)) > wanted * (1 - 1e-6)] = 0.0
        share = np.minimum(low[:, None], most)
        return share, typed.astype(np.int64), self._rest(typed, share)

    def _rest(self, typed: FloatArray, share: FloatArray) -> FloatArray:
        left = np.maximum(self.expected - share * typed, 0.0)
        total = left.sum(axis=1, keepdims=True)
        return np.where(total > 1e-9, left / np.maximum(total, 1e-9), self.probs)

    def _spread(self, typed: FloatArray, share: FloatArray) -> FloatArray:
        """Return Σ |p|² over the rows that stand for those of each leaf."""
        rest, free = self._rest(typed, share), 1.0 - share
        norms = np.square(rest).sum(axis=1)
        own = typed * (share**2 + 2.0 * share * free * rest + free**2 * norms[:, None])
        return np.asarray(own.sum(axis=1) + (self.count - typed.sum(axis=1)) * norms)

    def variance(self, slopes: FloatArray) -> float:
        """Return the variance of Σ slopes · numbers of labels, as they are drawn."""
        share, typed, rest = self.types
        mean, square = (rest * slopes).sum(axis=1), (rest * slopes**2).sum(axis=1)
        own = share * slopes + (1.0 - share) * mean[:, None]
        squares = share * slopes**2 + (1.0 - share) * square[:, None]
        plain = (self.count - typed.sum(axis=1)) @ (square - mean**2)
        return float((typed * (squares - own**2)).sum() + plain)

    def drawn(self, value: Value) -> Labels:
        """Return draws of a value of the numbers of labels."""
        return Labels(self, value)

    def coarse(self, bins: Any) -> Cells:
        """Return cells that are made of leaves."""
        tree = self.tally.cells
        if isinstance(bins, VarianceTree):
            rows = np.zeros(tree.n_leaves, dtype=np.int64)
            rows[self.tally.key] = self.tally.count
            first = np.searchsorted(self.tally.key, tree.coarse(rows, bins.limits))
            starts = np.append(np.unique(first[first < len(self.count)]), len(self.count))
        elif bins == tree:
            starts = np.arange(len(self.count) + 1)
        else:
            raise StatisticError(
                f"{name_of(bins)} is not made of the leaves of a tally of whole vectors: take "
                "VarianceTree(rows), or the cells of the tally"
            )
        return LeafCells(np.arange(len(self.count)), starts, bins, leaves=self)


@dataclass(frozen=True, eq=False)
class LeafCells(Cells):
    """A partition of leaves; ``counts`` are rows."""

    leaves: Leaves = field(kw_only=True, repr=False)

    @property
    def counts(self) -> IntArray:
        """Number of rows in each cell, shape (L,)."""
        return np.asarray(self.sum(self.leaves.tally.count))


@dataclass(frozen=True, eq=False)
class Labels:
    """Draws of the numbers of labels in the leaves under a calibrated model.

    Those of rows that have the mean of the leaf and, over all classes, its variance.
    """

    leaves: Leaves
    value: Value

    def replicates(self, seed: tuple[int, int], first: int, count: int) -> FloatArray:
        """Return replicates ``first``, …, ``first + count − 1``."""
        share, typed, rest = self.leaves.types
        order = np.argsort(-rest, axis=1, kind="stable")  # draws end once all rows have a label
        sorted_rest = np.take_along_axis(rest, order, axis=1)
        back = np.argsort(order, axis=1, kind="stable")
        rows = self.leaves.tally.count
        mixed = np.nonzero((typed > 0) & (share > 0.0))
        kept, chance = typed[mixed], share[mixed]
        at_once = max(1, AT_ONCE // rest.size)
        values = []
        for start in range(first, first + count, at_once):
            draws = np.zeros((min(at_once, first + count - start), *rest.shape), dtype=np.int64)
            for own, j in zip(draws, range(start, first + count), strict=False):
                philox = np.random.Philox(key=np.array(seed, np.uint64), counter=[0, 0, j, 0])
                generator = np.random.Generator(philox)
                own[mixed] = generator.binomial(kept, chance)
                free = generator.multinomial(rows - own.sum(axis=1), sorted_rest)
                own += np.take_along_axis(free, back, axis=1)
            values.append(self.value(draws))
        return np.concatenate(values)


@dataclass(frozen=True, eq=False)
class OfLeaves(Tallied):
    """A statistic of a vector tally, as a function of the numbers of labels in its leaves."""

    _within: ClassVar[float] = 0.0


def of_leaves(statistic: Any, leaves: Leaves) -> OfLeaves:
    """Make a statistic of a vector tally; StatisticError where its sums do not say what it is."""
    if type(statistic) not in BUILDERS:
        known = ", ".join(kind.__name__ for kind in BUILDERS)
        raise StatisticError(
            f"{name_of(statistic)} needs the rows: pass their predictions. From a tally of whole "
            f"vectors, which keeps sums over leaves, come {known}"
        )
    return BUILDERS[type(statistic)](statistic, leaves)


def _binned(statistic: ECE | MCE, leaves: Leaves) -> OfLeaves:
    cells, distance = leaves.coarse(statistic.bins), statistic.distance
    if not isinstance(distance, str):
        raise StatisticError(f"{statistic!r} needs the rows: from a tally come named distances")
    expected, mass = cells.sum(leaves.expected), cells.counts
    largest = statistic.combine == "max"

    def value(labels: Any) -> FloatArray:
        sums = np.add.reduceat(labels, cells.starts[:-1], axis=1) - expected
        gaps = rowwise(distance)(sums / mass[:, None], np.zeros(1))
        return np.asarray(gaps.max(axis=1) if largest else gaps @ (mass / mass.sum()))

    data: Any = leaves
    return OfLeaves(data, value, float(value(leaves.labels[None])[0]), cells=cells)


def _squared_norms(leaves: Leaves) -> tuple[FloatArray, Callable[[Any], FloatArray]]:
    """Return Σ |r|² of every leaf, and about that for drawn numbers of labels.

    For class k those of a calibrated model had Σ p² / Σ p on average.
    """
    chosen, total = leaves.tally.chosen / UNIT, leaves.count + leaves.squares.sum(axis=1)
    had = leaves.squares / np.maximum(leaves.expected, 1e-300)
    return total - 2.0 * chosen, lambda labels: total - 2.0 * np.einsum("blk,lk->bl", labels, had)


def _debiased(statistic: DebiasedL2, leaves: Leaves) -> OfLeaves:
    if statistic.estimator == "kumar":
        raise StatisticError(f"{statistic!r} is for two classes")
    cells = leaves.coarse(statistic.bins)
    size, own = cells.counts, statistic.estimator == "tcal"
    weights = np.where(size > 1, 1.0 / (leaves.n * np.maximum(size - (not own), 1)), 0.0)
    squares, drawn = _squared_norms(leaves)

    def excess(labels: Any, norms: FloatArray) -> FloatArray:
        sums = np.add.reduceat(labels - leaves.expected, cells.starts[:-1], axis=1)
        return (np.square(sums).sum(axis=2) - cells.sum(norms, axis=1)) @ weights

    observed = float(excess(leaves.labels[None], squares[None])[0])
    data: Any = leaves
    return OfLeaves(
        data, lambda labels: excess(labels, drawn(labels)), observed, cells=cells, null_mean=0.0
    )


def _skce(statistic: SKCE, leaves: Leaves) -> OfLeaves:
    if statistic.estimator not in ("unbiased", "biased"):
        raise StatisticError(f"{statistic!r} needs the rows, in their order: pass predictions")
    chosen, n = fitted(statistic.kernel, leaves.probs), leaves.n
    biased = statistic.estimator == "biased"
    if statistic.features is not None and isinstance(chosen, DistanceKernel):
        rng = np.random.default_rng(0)
        waves = leaves.probs @ chosen.frequencies(statistic.features // 2, leaves.n_classes, rng)
        root = np.column_stack([np.cos(waves), np.sin(waves)]) * (2.0 / statistic.features) ** 0.5
        diagonal = np.ones(len(root))
    else:
        values = np.asarray(chosen(leaves.probs, leaves.probs), dtype=np.float64)
        lengths, vectors = np.linalg.eigh(values)
        kept = lengths > 1e-12 * lengths[-1]
        root, diagonal = vectors[:, kept] * np.sqrt(lengths[kept]), np.diag(values)
    squares, drawn = _squared_norms(leaves)

    def pairs(labels: Any, norms: FloatArray) -> FloatArray:
        moved = np.tensordot(labels - leaves.expected, root, axes=(1, 0))
        total = np.square(moved).sum(axis=(1, 2))
        return total / n**2 if biased else (total - norms @ diagonal) / (n * (n - 1.0))

    observed = float(pairs(leaves.labels[None], squares[None])[0])
    data: Any = leaves
    return OfLeaves(
        data, lambda labels: pairs(labels, drawn(labels)), observed, degree=2,
        null_mean=None if biased else 0.0, remark=", with the kernel of their mean predictions",
    )  # fmt: skip


def _linear(
    leaves: Leaves, name: str, centre: float, scale: float, two_sided: bool, enough: float
) -> OfLeaves:
    """Return a score gap in units of ``scale``; draws have its variance, and the shape of leaves'.

    Of a leaf they know the score of its mean prediction only.
    """
    p = leaves.probs
    slopes = -2.0 * p if name == "brier" else -np.log(np.clip(p, 1e-300, None))
    variance = leaves.variance(slopes)
    gap, deviation = _gap(leaves, name)
    of_draws = deviation / (scale * max(np.sqrt(max(variance, 0.0)), 1e-300))

    def value(labels: Any) -> FloatArray:
        gaps = np.tensordot(labels - leaves.expected, slopes, axes=([1, 2], [0, 1]))
        return np.asarray(centre + gaps * of_draws)

    data: Any = leaves
    limit = Limit(data, {"asymptotic": partial(normal, centre, deviation / scale)}, enough=enough)
    facts: Any = {"two_sided": two_sided, "null_mean": centre, "enough": enough}
    return OfLeaves(data, value, centre + gap / scale, limit, **facts)


def _gap(leaves: Leaves, name: str) -> tuple[float, float]:
    """Return Σ (score − promise) and its standard deviation."""
    if name == "brier":
        variance = 4.0 * leaves.total("brier_variance")
        return 2.0 * leaves.total("brier_gap"), float(np.sqrt(max(variance, 0.0)))
    gap = leaves.total("log_score") - leaves.total("entropy")
    lost = np.inf if leaves.tally.refuted else gap
    return lost, float(np.sqrt(max(leaves.total("log_variance"), 0.0)))


def _score_gap(statistic: ScoreGap, leaves: Leaves) -> OfLeaves:
    if statistic.score not in ("brier", "log"):
        raise StatisticError(f"{statistic!r} needs the rows: from a tally come 'brier' and 'log'")
    _, deviation = _gap(leaves, statistic.score)
    if deviation <= NOTHING * np.sqrt(leaves.n):
        raise StatisticError(
            f"{statistic!r} is not defined: every prediction is uniform over the classes it allows,"
            f" so no label that can occur changes the {statistic.score} score"
        )
    return _linear(leaves, statistic.score, 0.0, deviation, True, 4.0)


def _mean_score(statistic: BrierScore | LogScore, leaves: Leaves) -> OfLeaves:
    promised = leaves.n - leaves.total("squares")
    if statistic.name == "log":
        promised = leaves.total("entropy")
    return _linear(leaves, statistic.name, promised / leaves.n, float(leaves.n), False, 8.0)


BUILDERS: dict[type, Callable[[Any, Leaves], OfLeaves]] = {
    ECE: _binned, MCE: _binned, DebiasedL2: _debiased, ScoreGap: _score_gap,
    BrierScore: _mean_score, LogScore: _mean_score, SKCE: _skce,
}  # fmt: skip
