"""How far the observed labels of clusters depend on each other: a measure, and limits of λ."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cache, cached_property

import numpy as np

from caltest._base.arrays import largest
from caltest._base.compiled import inlined, kernel
from caltest._base.facts import by_appearance
from caltest._base.memo import Memo
from caltest.errors import StatisticError
from caltest.predictions import FloatArray, IntArray, Predictions
from caltest.simulate.dependent import ClusterDrawer, Coupling, Degree, Dependence
from caltest.simulate.schemes import Drawer

#: Label vectors drawn for a degree of dependence, the degrees tried, and the seed of these draws.
DRAWS, STEPS, SEED = 199, 10, (0x5EED, 0xC1)
#: Share of draws that must agree no more than the observed labels for a degree to be possible.
POSSIBLE = 0.05
#: Share of draws up to which rows agree too much in a part of the data for the draws of all rows.
DISAGREE = 0.05
#: Rows of a cluster above which not all pairs are looked at for the variance of its sum, and the
#: number of others that each row then meets.
LARGE, PARTNERS = 512, 64
#: Labels that are drawn together.
AT_ONCE = 2**18
#: Limits of λ by coupling and rows.
_LIMITS: Memo[Dependence] = Memo()


def association(
    values: FloatArray | IntArray, residuals: FloatArray, group: IntArray | None
) -> float:
    """Return z of the association between values of the rows, (n,), and their residuals.

    z = Σ_g u_g / √Σ u_g², u_g = Σ_{i∈g} (v_i − v̄) r_i, g the clusters, if there are any, or rows.
    Weights or sizes of clusters that depend on outcomes make it large; so does an error that
    differs by them.
    """
    product = (values - values.mean()) * residuals
    sums = product if group is None else np.bincount(group, product)
    return float(sums.sum() / max(np.sqrt((sums**2).sum()), 1e-300))


@dataclass(frozen=True, eq=False)
class Agreement:
    """How far residuals of the same cluster agree, for any labels: N and ρ of the notes below.

    Notes
    -----
    N(x) = Σ_g (|Σ_{i∈g} w_i x_i|² − Q_g), Q_g = Σ_{i∈g} w_i² |x_i|², for residuals r or,
    ``centred``, for r less its mean among the rows with about the same prediction (quarters by
    rank), which keeps miscalibration from passing for dependence. Of two classes one component
    counts. The coupling "correctness" looks at whether the likeliest label is right, with its
    probability. ρ = N / Σ_g Q_g does not fall where few residuals vary: labels that are all alike
    say nothing of dependence, and N would call them independent. Next to both stand their parts:
    pairs of rows of one quarter of the predictions, or of clusters of about one size (quarters of
    the rows by it). O(n + G K) a label vector.
    """

    data: Predictions
    coupling: Coupling
    likeliest: IntArray = field(repr=False)
    cluster: IntArray = field(repr=False)
    quarter: IntArray = field(repr=False)
    size: IntArray = field(repr=False)
    probs: FloatArray = field(repr=False)
    weights: FloatArray = field(repr=False)

    @classmethod
    def of(cls, data: Predictions, coupling: Coupling = "label") -> Agreement:
        """Rank the rows by the prediction of the event, or by the largest; O(n log n)."""
        most = largest(data.probs)
        # Of two classes rows of one quarter miss in one direction, whatever they share.
        position = data.probs[:, 0] if data.n_classes == 2 else most
        if coupling == "correctness":
            columns = most[:, None]
        else:
            columns = data.probs[:, :1] if data.n_classes == 2 else data.probs
        cluster = by_appearance(data.clusters)
        weights = np.ones(data.n) if data.weights is None else data.weights
        parts = quarters(position), quarters(np.bincount(cluster)[cluster])
        likeliest = data.probs.argmax(axis=1)
        columns = np.ascontiguousarray(columns)
        return cls(data, coupling, likeliest, cluster, *parts, columns, weights)

    def __call__(self, labels: IntArray, centred: bool = True) -> FloatArray:
        """Return N and its parts for label vectors of shape (B, n): (B, 9)."""
        return self._sums(labels, centred)[0]

    def correlation(self, labels: IntArray, centred: bool = True) -> FloatArray:
        """Return ρ and its parts, (B, 9); infinite where residuals do not vary at all."""
        values, squares = self._sums(labels, centred)
        varying = squares > 1e-12 * (self.weights**2).sum()
        return np.divide(values, squares, out=np.full_like(values, np.inf), where=varying)

    def _sums(self, labels: IntArray, centred: bool) -> tuple[FloatArray, FloatArray]:
        """Return N and Σ_g Q_g, and their parts."""
        if self.coupling == "correctness":
            labels = (labels != self.likeliest).astype(np.int64)
        values, squares = np.empty((2, len(labels), 9))
        rows = self.cluster, self.quarter, self.size, self.probs, self.weights
        _agreements(np.ascontiguousarray(labels), *rows, centred, values, squares)
        return values, squares

    @property
    def counts(self) -> IntArray:
        """The number of rows of every cluster."""
        return np.bincount(self.cluster)

    def size_effect(self) -> float:
        """Return z of the association between the size of a cluster and the residuals in it."""
        hits = self.data.labels == (0 if self.coupling == "label" else self.likeliest)
        residuals = self.weights * (hits - self.probs[:, 0])
        return association(self.counts[self.cluster], residuals, self.cluster)

    def limits(self) -> Dependence:
        """Return the upper confidence limits of λ, of all pairs of rows and of parts of them.

        A part has a limit of its own where its observed labels agree more than labels drawn with
        the limit of all (p ≤ 0.05), as residuals or centred: clusters in which one label excludes
        another then do not hide others that are copies. See :class:`SharedRedraws`. The newest
        limits are remembered: an audit asks for them once for every statistic.
        """
        rows = self.cluster, self.size, self.weights, self.data.probs, self.data.labels
        return _LIMITS.of(self._limits, self.coupling, *rows)

    def _limits(self) -> Dependence:
        observed = self.correlation(self.data.labels[None, :])[0]
        correlations = cache(lambda step: self._replicates(step / STEPS))

        def limit(part: int) -> int:
            return possible(observed[part] + 1e-9, lambda step: correlations(step)[:, part])

        overall = limit(0)
        too_much = np.zeros(9, dtype=bool)
        for centred in (True, False):
            agreement = self.correlation(self.data.labels[None, :], centred)[0]
            reached = self._replicates(overall / STEPS, centred) >= agreement - 1e-9
            too_much |= (1 + reached.sum(axis=0)) / (1 + DRAWS) <= DISAGREE
        steps = [max(overall, limit(j)) if too_much[j] else overall for j in range(1, 9)]
        of_parts = tuple(step / STEPS for step in steps)
        return Dependence(overall / STEPS, of_parts[:4], of_parts[4:])

    def _replicates(self, dependence: float, centred: bool = True) -> FloatArray:
        """Return ρ and its parts for labels that are drawn with dependence."""
        draw = ClusterDrawer.of(self.data, dependence, self.coupling)
        parts = [self.correlation(labels, centred) for labels in batches(draw, self.data.n)]
        return np.concatenate(parts)

    def of_rows(self, dependence: Dependence) -> FloatArray:
        """Return λ of every row, the larger of those of its two parts."""
        by_prediction, by_size = np.array(dependence.by_prediction), np.array(dependence.by_size)
        return np.maximum(by_prediction[self.quarter], by_size[self.size])

    def degree(self, dependence: Degree | None) -> Dependence:
        """Return λ, given or at its limits."""
        if isinstance(dependence, tuple):
            raise StatisticError(f"dependence={dependence} is for two columns of clusters")
        return self.limits() if dependence is None else Dependence.of(dependence)

    def drawer(self, dependence: Degree | None) -> ClusterDrawer:
        """Return what draws labels with this dependence."""
        return ClusterDrawer.of(self.data, self.of_rows(self.degree(dependence)), self.coupling)

    def observed(self, centred: bool = False) -> float:
        """Return N of the observed labels."""
        return float(self(self.data.labels[None, :], centred)[0, 0])

    def inflation(self, dependence: Degree | None, centred: bool = False) -> float:
        """Return κ, by how much labels agree more than any λ allows; 1 where nothing can vary."""
        variance, joint = self.sums
        allowed = float((variance + joint).sum())
        agreement = float(variance.sum()) + self.observed(centred)
        return max(1.0, agreement / allowed) if allowed > 1e-9 else 1.0

    @cached_property
    def sums(self) -> tuple[FloatArray, FloatArray]:
        """Σ w² v and Σ_{i≠j} w_i w_j c_ij of every cluster: the variance of its sum.

        v_i = p_i (1 − p_i) and c_ij = min(p_i, p_j) − p_i p_j of two classes, v_i = 1 − |p_i|² and
        c_ij = Σ_k [Σ_l max(p_il / p_ik, p_jl / p_jk)]⁻¹ − p_i · p_j of more, which costs
        O(K log K) a pair: of more than 512 rows of a cluster each meets 64 others, spread over
        the ranks of p_0, and their mean stands for all (within some 0.2 %).
        """
        order = np.lexsort((self.probs[:, 0], self.cluster))
        starts = np.flatnonzero(np.diff(self.cluster[order], prepend=-1))
        w, p = self.weights[order], self.probs[order]
        if p.shape[1] > 1:
            joint = np.empty(starts.size)
            _joint_hits(np.ascontiguousarray(p), w, np.append(starts, len(p)), joint)
            return np.add.reduceat(w**2 * (1.0 - (p**2).sum(axis=1)), starts), joint
        p = p[:, 0]
        running = np.cumsum(w)
        ends = np.append(starts[1:], len(p)) - 1
        later = np.repeat(running[ends], np.diff(np.append(starts, len(p)))) - running
        squared = np.add.reduceat(w * p, starts) ** 2 - np.add.reduceat((w * p) ** 2, starts)
        variance = np.add.reduceat(w**2 * p * (1.0 - p), starts)
        return variance, 2.0 * np.add.reduceat(w * p * later, starts) - squared


def batches(draw: Drawer, n: int) -> Iterator[IntArray]:
    """Yield the labels that are drawn for a degree of dependence, as many as fit in memory."""
    at_once = max(1, AT_ONCE // n)
    return (draw(SEED, first, min(at_once, DRAWS - first)) for first in range(0, DRAWS, at_once))


def possible(most: float, replicates: Callable[[int], FloatArray]) -> int:
    """Return the largest s for which draws with λ = s / 10 are ≤ ``most`` in 5 %, or else 0."""
    highest = 0
    for step in range(1, STEPS + 1):
        if (replicates(step) <= most).mean() >= POSSIBLE:
            highest = step
        elif step > 2:
            break
    return highest


def quarters(values: FloatArray | IntArray) -> IntArray:
    """Return the quarter of the rows, by rank, in which each lies; equal values in one."""
    # The rank of a value is the number of smaller ones; partitions are ten times as fast as sorts.
    last = (np.arange(1, 4) * values.size + 3) // 4 - 1
    return np.searchsorted(np.partition(values, last)[last], values)


@kernel
def _agreements(  # type: ignore[no-untyped-def]
    labels, cluster, quarter, size, p, w, centred, out, squares_out
):
    # x = hit − p − m, m the mean of its quarter: |x|² is multiplied out, so that a row costs O(1).
    # A cluster is of one class of sizes, its rows may be of all quarters of the predictions.
    n_clusters, n_classes = cluster.max() + 1, p.shape[1]
    mass, size_of = np.zeros((n_clusters, 4)), np.zeros(n_clusters, dtype=np.int64)
    expected = np.zeros((n_clusters, 4, n_classes))
    alone, squares = np.zeros((4, 4)), np.zeros((4, 4))  # by size and quarter
    squared, total = np.zeros((4, 4, n_classes)), np.zeros((4, n_classes))
    for i in range(w.size):
        g, q, s = cluster[i], quarter[i], size[i]
        mass[g, q] += w[i]
        size_of[g] = s
        squares[s, q] += w[i] ** 2
        for k in range(n_classes):
            expected[g, q, k] += w[i] * p[i, k]
            total[q, k] += w[i] * p[i, k]
            squared[s, q, k] += w[i] ** 2 * p[i, k]
            alone[s, q] += w[i] ** 2 * p[i, k] ** 2
    residual = np.empty((n_clusters, 4, n_classes))
    hits, hits_squared = np.empty((4, n_classes)), np.empty((4, 4, n_classes))
    mean, rows = np.zeros((4, n_classes)), np.maximum(mass.sum(axis=0), 1e-300)
    self_products = np.empty((4, 4))
    for r in range(labels.shape[0]):
        residual[:] = -expected
        hits[:] = 0.0
        hits_squared[:] = 0.0
        self_products[:] = alone
        for i in range(w.size):
            k = labels[r, i]
            if k < n_classes:
                residual[cluster[i], quarter[i], k] += w[i]
                hits[quarter[i], k] += w[i]
                hits_squared[size[i], quarter[i], k] += w[i] ** 2
                self_products[size[i], quarter[i]] += w[i] ** 2 * (1.0 - 2.0 * p[i, k])
        if centred:
            for q in range(4):
                for k in range(n_classes):
                    m = (hits[q, k] - total[q, k]) / rows[q]
                    mean[q, k] = m
                    for s in range(4):
                        product = squared[s, q, k] - hits_squared[s, q, k]
                        self_products[s, q] += m * (2.0 * product + squares[s, q] * m)
        squares_out[r, 0] = self_products.sum()
        for t in range(4):
            squares_out[r, 1 + t] = self_products[:, t].sum()
            squares_out[r, 5 + t] = self_products[t].sum()
        out[r] = -squares_out[r]
        for g in range(n_clusters):
            for k in range(n_classes):
                whole = 0.0
                for q in range(4):
                    x = residual[g, q, k] - mass[g, q] * mean[q, k]
                    out[r, 1 + q] += x * x
                    whole += x
                out[r, 0] += whole * whole
                out[r, 5 + size_of[g]] += whole * whole


@inlined
def _shared_hits(a, b, ratio):  # type: ignore[no-untyped-def]
    # P(both draw k) under a common draw is 1 / Σ_l max(p_il / p_ik, p_jl / p_jk): sorted by the
    # ratio of the two predictions, the maximum is the first in one part and the second in the rest.
    for k in range(a.size):
        ratio[k] = a[k] / b[k] if b[k] > 0.0 else np.inf if a[k] > 0.0 else 0.0
    above, below, shared = 1.0, 0.0, 0.0  # sums of a beyond, and of b before
    for k in np.argsort(ratio):
        if a[k] > 0.0 and b[k] > 0.0:
            shared += 1.0 / (above / a[k] + below / b[k])
        above -= a[k]
        below += b[k]
    for k in range(a.size):
        shared -= a[k] * b[k]
    return shared


@kernel
def _joint_hits(p, w, starts, out):  # type: ignore[no-untyped-def]
    # Of large clusters every row meets as many others, at evenly spread distances on a circle.
    ratio = np.empty(p.shape[1])
    for g in range(starts.size - 1):
        first, size = starts[g], starts[g + 1] - starts[g]
        few = size <= LARGE
        total = 0.0
        for i in range(size):
            for t in range(i if few else PARTNERS):
                j = t if few else (i + 1 + int((t + 0.5) * (size - 1) / PARTNERS)) % size
                shared = _shared_hits(p[first + i], p[first + j], ratio)
                total += w[first + i] * w[first + j] * shared
        out[g] = total * (2.0 if few else (size - 1) / PARTNERS)
