"""Dependence of labels within clusters (one column or two), and draws with that dependence.

:class:`Agreement` measures it, ``Agreement.degree`` turns it into upper limits of λ, and
:func:`dependent` prepares draws with a given λ. Start with :class:`Agreement`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from functools import cache, cached_property
from typing import Literal, Protocol
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from caltest._base import FloatArray, IntArray
from caltest._base.arrays import AnyArray, by_code, largest, quarters
from caltest.data import Predictions
from caltest.data.facts import by_appearance
from caltest.errors import StatisticError
from caltest.nulls.draws import Drawer, LabelSampler
from caltest.nulls.lanes import (
    GAMMA,
    UNIFORM_STEP,
    Lanes,
    Memo,
    Seed,
    SharedLanes,
    counter_kernel,
    cumulative,
    inlined,
    kernel,
    lane_kernel,
    mixed,
    stream_keys,
)

#: Label vectors drawn for a degree of dependence, the degrees tried, and the seed of these draws.
AGREEMENT_DRAWS, AGREEMENT_STEPS, AGREEMENT_SEED = 199, 10, (0x5EED, 0xC1)


#: Share of draws that must agree no more than the observed labels for a degree to be possible.
POSSIBLE = 0.05


#: Share of draws up to which rows agree too much in a part of the data for the draws of all rows.
DISAGREE = 0.05


#: Rows of a cluster above which not all pairs are looked at for the variance of its sum, and the
#: number of others that each row then meets.
LARGE_CLUSTER, PARTNERS = 512, 64


#: Labels that are drawn together.
AGREEMENT_BATCH = 2**18


#: Agreements of the same predictions, by coupling.
_AGREEMENTS: WeakKeyDictionary[Predictions, dict[Coupling, Agreement]] = WeakKeyDictionary()


#: Limits of λ by coupling and rows.
_LIMITS: Memo[Dependence] = Memo()


def association(
    values: FloatArray | IntArray, residuals: FloatArray, group: IntArray | None
) -> float:
    """Return z of the association between n values and the residuals of the same rows.

    z = Σ_g u_g / √Σ u_g², u_g = Σ_{i∈g} (v_i − v̄) r_i, with ``values`` v and ``residuals`` r of
    shape (n,). ``group`` (n,) numbers the clusters g; None makes each row its own. Weights or sizes
    of clusters that depend on outcomes make |z| large; so does an error that differs by them.
    """
    product = (values - values.mean()) * residuals
    sums = product if group is None else np.bincount(group, product)
    return float(sums.sum() / max(np.sqrt((sums**2).sum()), 1e-300))


class Agreeing(Protocol):
    """Protocol of measured dependence of labels: its degree λ, and draws that have it."""

    def degree(self, dependence: Degree | None) -> Degree:
        """Return the dependence λ, in [0, 1]: ``dependence`` if given, else an upper limit.

        λ is 0 for independent labels and 1 for labels of a cluster that are one draw. The limit is
        estimated from the labels, with confidence 0.95. λ is a number, a pair for two columns of
        clusters, or a :class:`Dependence` with limits of parts of the rows.
        """

    def inflation(self, dependence: Degree | None, centred: bool = False) -> float:
        """Return κ ≥ 1, the factor by which draws with this dependence vary too little.

        It is the variance of observed residual sums in clusters over the largest that the
        dependence λ allows. With ``centred`` residuals are taken less their mean among rows with
        about the same prediction. ``dependence`` is λ in [0, 1], or None to estimate it from the
        labels.
        """

    def drawer(self, dependence: Degree | None) -> Drawer:
        """Return a generator of label vectors with this dependence.

        ``dependence`` is the degree λ in [0, 1], None to estimate it from the labels. The generator
        is called as ``draw(seed, first, count)``, the seed being a pair of integers, and returns
        the labels of replicates ``first``, …, of shape (count, n).
        """


@dataclass(frozen=True, eq=False)
class Agreement:
    """Agreement of residuals within clusters: the statistics N and ρ of any label vectors.

    ``data`` are the rows, and ``coupling`` is the quantity that rows share, "label" or
    "correctness". ``likeliest`` (n,) is the most likely label of each row, ``cluster`` (n,) its
    cluster, from 0, ``quarter`` and ``size`` (n,) its quarter (0 to 3) by prediction and by cluster
    size, ``probs`` (n, C) are the predictions of the C components, and ``weights`` (n,) the w.

    Notes
    -----
    N(x) = Σ_g (|Σ_{i∈g} w_i x_i|² − Q_g) with Q_g = Σ_{i∈g} w_i² |x_i|². Here x are the residuals r
    or, if ``centred``, r less its mean among the rows with about the same prediction (quarters by
    rank). The latter keeps miscalibration from being mistaken for dependence. Binary data have one
    component. The coupling "correctness" looks at whether the most likely label is right, with its
    probability. ρ = N / Σ_g Q_g does not fall where few residuals vary: identical labels carry no
    information about dependence, and N would call them independent. Both come with eight parts:
    pairs of rows within each quarter of the predictions, and within each quarter of the rows by
    cluster size. O(n + G K) for a label vector and G clusters.
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
        """Return the agreement of residuals for these data, from a cache if they were seen.

        ``data`` have clusters. ``coupling`` is the quantity that rows may share: their "label",
        or their "correctness", whether the most likely label is right. Quarters of the rows are
        taken by the predicted probability of the event, or by the largest probability for more than
        two classes. O(n log n) once.
        """
        known = _AGREEMENTS.setdefault(data, {})
        if coupling not in known:
            # With a copy of the data, as what is kept by an object must not keep the object.
            known[coupling] = cls._ranked(replace(data), coupling)
        return known[coupling]

    @classmethod
    def _ranked(cls, data: Predictions, coupling: Coupling) -> Agreement:
        most = largest(data.probs)
        # With two classes, rows of one quarter err in one direction, whatever they share.
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
        """Return N overall (column 0) and in eight parts, (B, 9), for B label vectors (B, n).

        ``labels`` are the label vectors. N is the sum of products of residuals over pairs of rows
        in one cluster. The parts are pairs within quarters of the predictions, and within clusters
        of a quarter of the sizes. With ``centred`` residuals are less their mean in quarters of the
        predictions.
        """
        return self._pair_sums(labels, centred)[0]

    def correlation(self, labels: IntArray, centred: bool = True) -> FloatArray:
        """Return ρ overall (column 0) and in eight parts, (B, 9), for B label vectors (B, n).

        ``labels`` are the label vectors. ρ is the sum of products of residuals over pairs of rows
        in one cluster, divided by the sum of their squares. The parts are pairs within quarters of
        the predictions, and within clusters of a quarter of the sizes. With ``centred`` residuals
        are less their mean in quarters of the predictions. Entries are infinite where no residual
        varies.
        """
        values, squares = self._pair_sums(labels, centred)
        varying = squares > 1e-12 * (self.weights**2).sum()
        return np.divide(values, squares, out=np.full_like(values, np.inf), where=varying)

    def _pair_sums(self, labels: IntArray, centred: bool) -> tuple[FloatArray, FloatArray]:
        """Return (pair sums, square sums) of residuals for B label vectors, two arrays (B, 9).

        ``labels`` (B, n) are the label vectors. The first are sums of products of residuals over
        pairs of rows in one cluster, the second sums of their squares. Column 0 is over all rows,
        the others are over eight parts: quarters of the predictions, and of the cluster sizes. With
        ``centred`` residuals are less their mean in quarters of the predictions.
        """
        if self.coupling == "correctness":
            labels = (labels != self.likeliest).astype(np.int64)
        values, squares = np.empty((2, len(labels), 9))
        rows = self.cluster, self.quarter, self.size, self.probs, self.weights
        _agreements(np.ascontiguousarray(labels), *rows, centred, values, squares)
        return values, squares

    @property
    def counts(self) -> IntArray:
        """Number of rows of each of the G clusters, shape (G,)."""
        return np.bincount(self.cluster)

    @cached_property
    def reader(self) -> AgreementReader:
        """Reader that computes ρ and its parts from redrawn binary outcomes."""
        return AgreementReader.of(self)

    def size_effect(self) -> float:
        """Return z of the association between cluster sizes and the residuals in the clusters.

        A large |z| says that the size depends on outcomes, or that the error differs by size.
        """
        hits = self.data.labels == (0 if self.coupling == "label" else self.likeliest)
        residuals = self.weights * (hits - self.probs[:, 0])
        return association(self.counts[self.cluster], residuals, self.cluster)

    def limits(self) -> Dependence:
        """Return the upper 95 % confidence limits of the dependence λ, of all rows and of parts.

        λ in [0, 1] is the degree to which redrawn labels of a cluster agree. A part (quarter of the
        predictions, or of cluster sizes) has a limit of its own if its observed labels agree more
        than labels drawn with the overall limit (p ≤ 0.05), centred or not. Clusters in which one
        label excludes another then do not hide others that are copies. See :class:`SharedRedraws`.
        The newest limits are cached, as an audit asks for them once for every statistic.
        """
        rows = self.cluster, self.size, self.weights, self.data.probs, self.data.labels
        return _LIMITS.of(self._limits, self.coupling, *rows)

    def _limits(self) -> Dependence:
        replicates = cache(self._replicates)
        observed = self.correlation(self.data.labels[None, :])[0]

        def limit(part: int) -> int:
            return possible(observed[part] + 1e-9, lambda step: replicates(step)[:, 0, part])

        overall = limit(0)
        too_much = np.zeros(9, dtype=bool)
        for i, centred in enumerate((True, False)):
            agreement = self.correlation(self.data.labels[None, :], centred)[0]
            reached = replicates(overall)[:, i] >= agreement - 1e-9
            too_much |= (1 + reached.sum(axis=0)) / (1 + AGREEMENT_DRAWS) <= DISAGREE
        steps = [max(overall, limit(j)) if too_much[j] else overall for j in range(1, 9)]
        of_parts = tuple(step / AGREEMENT_STEPS for step in steps)
        return Dependence(overall / AGREEMENT_STEPS, of_parts[:4], of_parts[4:])

    def _replicates(self, step: int) -> FloatArray:
        """Return the agreement ρ and its parts for 199 label vectors of given dependence.

        Labels are drawn with the dependence λ = ``step`` / 10. The shape is (199, 2, 9): replicate;
        residuals centred in quarters of the predictions, or not; ρ of all rows and of eight parts.
        """
        draw = dependent(self.data, step / AGREEMENT_STEPS, self.coupling)
        if isinstance(draw, Lanes):
            read = self.reader
            return draw.laid(read.order).gathered(read, AGREEMENT_SEED, 0, AGREEMENT_DRAWS)
        parts = [
            np.stack([self.correlation(labels, centred) for centred in (True, False)], axis=1)
            for labels in batches(draw, self.data.n)
        ]
        return np.concatenate(parts)

    def of_rows(self, dependence: Dependence) -> FloatArray:
        """Return the dependence λ of every row, (n,), from limits of parts of the rows.

        ``dependence`` has a limit for each quarter of the rows by prediction and by cluster size; a
        row gets the larger of its two.
        """
        by_prediction, by_size = np.array(dependence.by_prediction), np.array(dependence.by_size)
        return np.maximum(by_prediction[self.quarter], by_size[self.size])

    def degree(self, dependence: Degree | None) -> Dependence:
        """Return the upper limits of the dependence λ, given or estimated from the labels.

        λ in [0, 1] is the degree to which labels of a cluster agree. ``dependence`` is a number,
        limits that are returned as they are, or None to estimate them. The result has limits of all
        rows and of quarters of them. StatisticError for a pair, which is for two columns of
        clusters.
        """
        if isinstance(dependence, tuple):
            raise StatisticError(f"dependence={dependence} is for two columns of clusters")
        return self.limits() if dependence is None else Dependence.of(dependence)

    def drawer(self, dependence: Degree | None) -> Drawer:
        """Return a generator of label vectors that depend on each other within clusters.

        ``dependence`` is the degree λ in [0, 1], limits of it, or None to estimate its upper limit.
        The generator is called as ``draw(seed, first, count)``, the seed being a pair of
        integers, and returns the outcomes of replicates ``first``, …, of shape (count, n).
        """
        return dependent(self.data, self.of_rows(self.degree(dependence)), self.coupling)

    def observed(self, centred: bool = False) -> float:
        """Return N of the observed labels, the excess of squared residual sums over independence.

        N is the sum of products of residuals over pairs of rows in one cluster. With ``centred``
        residuals are less their mean in quarters of the predictions.
        """
        return float(self(self.data.labels[None, :], centred)[0, 0])

    def inflation(self, dependence: Degree | None, centred: bool = False) -> float:
        """Return κ ≥ 1, the variance of observed cluster sums over the largest that any λ allows.

        λ in [0, 1] is the dependence of labels within clusters. ``dependence`` is not used: the
        largest variance is the one for λ = 1. κ is 1 where no label can vary. Residuals of redraws
        are multiplied by √κ. With ``centred`` residuals are less their mean in quarters of the
        predictions.
        """
        variance, joint = self.sums
        allowed = float((variance + joint).sum())
        agreement = float(variance.sum()) + self.observed(centred)
        return max(1.0, agreement / allowed) if allowed > 1e-9 else 1.0

    @cached_property
    def sums(self) -> tuple[FloatArray, FloatArray]:
        """Two terms of the variance of every cluster's residual sum, (G,) each.

        The first is at λ = 0, the second per unit of λ, the dependence of labels in [0, 1]. For G
        clusters they are Σ w² v and Σ_{i≠j} w_i w_j c_ij over the rows of a cluster, with weights
        w, v_i the variance of a residual and c_ij the covariance of two at λ = 1.

        For two classes v_i = p_i (1 − p_i) and c_ij = min(p_i, p_j) − p_i p_j; for more v_i = 1 −
        |p_i|² and c_ij = Σ_k [Σ_l max(p_il / p_ik, p_jl / p_jk)]⁻¹ − p_i · p_j, which costs O(K log
        K) a pair. In clusters of more than 512 rows each row meets 64 others, spread over the ranks
        of p_0, whose mean stands for all (within some 0.2 %).
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
    """Yield 199 label vectors of a generator, in batches (b, n) that fit in memory.

    ``draw`` is the generator, called as ``draw(seed, first, count)`` with a pair of integers as
    seed, here a fixed one. ``n`` is the number of rows.
    """
    at_once = max(1, AGREEMENT_BATCH // n)
    return (
        draw(AGREEMENT_SEED, first, min(at_once, AGREEMENT_DRAWS - first))
        for first in range(0, AGREEMENT_DRAWS, at_once)
    )


def possible(most: float, replicates: Callable[[int], FloatArray]) -> int:
    """Return the largest dependence that the data do not refute, as the integer 10 λ in 0 … 10.

    ``replicates(s)`` draws the agreement of labels under the dependence λ = s / 10, an array (B,)
    for B label vectors; s is refuted if less than 5 % of the draws are at or below ``most``, the
    observed agreement.
    """
    highest = 0
    for step in range(1, AGREEMENT_STEPS + 1):
        if (replicates(step) <= most).mean() >= POSSIBLE:
            highest = step
        elif step > 2:
            break
    return highest


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
    mean, rows = np.zeros((4, n_classes)), np.zeros(4)
    # Loops in the place of slices of arrays, which take seconds to compile.
    for g in range(n_clusters):
        for q in range(4):
            rows[q] += mass[g, q]
    rows = np.maximum(rows, 1e-300)
    self_products = np.empty((4, 4))
    for r in range(labels.shape[0]):
        for g in range(n_clusters):
            for q in range(4):
                for k in range(n_classes):
                    residual[g, q, k] = -expected[g, q, k]
        hits[:] = 0.0
        hits_squared[:] = 0.0
        for s in range(4):
            for q in range(4):
                self_products[s, q] = alone[s, q]
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
        for t in range(9):
            out[r, t] = -squares_out[r, t]
        for g in range(n_clusters):
            for k in range(n_classes):
                whole = 0.0
                for q in range(4):
                    x = residual[g, q, k] - mass[g, q] * mean[q, k]
                    out[r, 1 + q] += x * x
                    whole += x
                out[r, 0] += whole * whole
                out[r, 5 + size_of[g]] += whole * whole


@dataclass(frozen=True, eq=False)
class AgreementReader:
    """Function of redrawn binary outcomes that computes their agreement ρ within clusters.

    Parts of the rows have a ρ of their own. Rows are read in the order of clusters. It adds up Σ_g
    x_a x_b and Σ_g x_a M_b for quarters a and b of the predictions, where x are the sums of
    residuals of cluster g and M its weights. These give the agreement with any mean of the
    quarters, so that residuals are read once, centred and not. Cluster g has the rows
    ``starts[g]:starts[g + 1]`` of ``order`` and the quarter ``size[g]`` of sizes; ``expected`` and
    ``mass`` (G, 4) are sums of weighted predictions and of weights, for each of G clusters and four
    quarters.
    """

    order: IntArray
    starts: IntArray
    #: Quarter, weight, w² (1 − 2 p), and 1 where label 1 is the hit, of every row.
    rows: tuple[AnyArray, ...]
    size: IntArray
    expected: FloatArray
    mass: FloatArray
    #: Σ w² p², Σ w² p and Σ w² by size and quarter, (3, 4, 4, 1), and Σ w p by quarter.
    fixed: FloatArray
    total: FloatArray

    @classmethod
    def of(cls, a: Agreement) -> AgreementReader:
        """Return the reader for ``a``, the agreement of rows with their clusters and quarters.

        O(n log n) for n rows.
        """
        order = by_code(a.cluster)
        ordered = a.cluster[order]
        starts = np.append(np.flatnonzero(np.diff(ordered, prepend=-1)), order.size)
        quarter, size, w, p = a.quarter[order], a.size[order], a.weights[order], a.probs[order, 0]
        turned = (a.coupling == "correctness") & (a.likeliest[order] == 1)
        rows = (quarter.astype(np.int64), w, w**2 * (1.0 - 2.0 * p), turned.astype(np.uint8))
        code, length = 4 * ordered + quarter, 4 * (starts.size - 1)
        expected, mass = (_summed(code, v, length) for v in (w * p, w))
        cell, squared = 4 * size + quarter, ((w * p) ** 2, w**2 * p, w**2)
        fixed = np.array([_summed(cell, v, 16)[..., None] for v in squared])
        total, size = expected.sum(axis=0)[:, None], size[starts[:-1]].astype(np.int64)
        return cls(order, starts, rows, size, expected, mass, fixed, total)

    def __call__(self, events: AnyArray) -> FloatArray:
        """Return the agreement ρ and its eight parts for B redraws, shape (B, 2, 9).

        ``events`` (n, B) are outcomes, 1 for the event (label 0), with rows in order of clusters. ρ
        is the sum of products of residuals over pairs in one cluster over the sum of squares. The
        second axis is: residuals centred in quarters of the prediction, or not. The third is: all
        rows, four quarters by prediction, four by cluster size.
        """
        lanes = events.shape[1]
        products, with_mass = np.zeros((2, 4, 4, 4, lanes))
        hits, squared_hits, slopes = np.zeros((3, 4, 4, lanes))
        sums = (products, with_mass, hits, squared_hits, slopes)
        agree(events, self.starts, *self.rows, self.size, self.expected, self.mass, *sums)
        parts = [self._correlation(m, *sums) for m in (self._mean(hits), np.zeros((4, lanes)))]
        return np.moveaxis(np.array(parts), 2, 0)

    def _mean(self, hits: FloatArray) -> FloatArray:
        """Return the mean residual of every quarter of the predictions in B redraws, shape (4, B).

        ``hits`` (4, 4, B) are weighted events by quarter of the cluster sizes and of the
        predictions.
        """
        rows = np.maximum(self.mass.sum(axis=0), 1e-300)[:, None]
        return np.asarray((hits.sum(axis=0) - self.total) / rows)

    def _correlation(
        self, m: FloatArray, products: FloatArray, with_mass: FloatArray, hits: FloatArray,
        squared_hits: FloatArray, slopes: FloatArray,
    ) -> FloatArray:  # fmt: skip
        """Return the agreement ρ and its eight parts, (9, B), for B redraws centred by ``m``.

        ``m`` (4, B) are mean residuals of the quarters of the predictions. With x_a the residual
        sum of quarter a in a cluster and M_b the weight of quarter b, ``products`` are Σ x_a x_b
        and ``with_mass`` Σ x_a M_b, by quarter of the cluster sizes, (4, 4, 4, B). The others (4,
        4, B), by size and prediction, make up Σ w² r²: ``hits`` are weighted events,
        ``squared_hits`` events by w², and ``slopes`` the change of w² r² by an event.
        """
        of_sizes = [self.mass[self.size == s] for s in range(4)]
        masses = np.array([x.T @ x for x in of_sizes])[..., None]
        alone, squared, squares = self.fixed
        own = alone + slopes + m * (2.0 * (squared - squared_hits) + squares * m)
        less = m * with_mass  # Σ_g x_a M_b m_b
        both = products - less - np.swapaxes(less, 1, 2) + m[:, None] * m * masses
        sizes = both.sum(axis=(1, 2))
        within = np.einsum("saal->al", both)
        own = np.concatenate([own.sum((0, 1))[None], own.sum(0), own.sum(1)])
        pairs = np.concatenate([sizes.sum(0)[None], within, sizes]) - own
        varying = own > 1e-12 * self.fixed[2].sum()
        return np.divide(pairs, own, out=np.full_like(pairs, np.inf), where=varying)


def _summed(code: IntArray, values: FloatArray, size: int) -> FloatArray:
    """Return sums of ``values`` (n,) by group and quarter, shape (size / 4, 4).

    ``code`` (n,) is 4 times the number of a value's group plus its quarter, below ``size``.
    """
    return np.bincount(code, values, size).astype(np.float64).reshape(-1, 4)


@lane_kernel
def agree(  # type: ignore[no-untyped-def]
    events, starts, quarter, w, slope, turned, size, expected, mass,
    products, with_mass, hits, squared_hits, slopes,
):  # fmt: skip
    # O(n + 16 G) per lane: rows come cluster by cluster.
    lanes = events.shape[1]
    x = np.empty((4, lanes))
    for g in range(starts.size - 1):
        s = size[g]
        for k in range(4):
            for q in range(lanes):
                x[k, q] = -expected[g, k]
        for i in range(starts[g], starts[g + 1]):
            k, v, d, e, flip = quarter[i], w[i], slope[i], events[i], turned[i]
            for q in range(lanes):
                hit = np.float64(e[q] ^ flip)
                x[k, q] += v * hit
                hits[s, k, q] += v * hit
                squared_hits[s, k, q] += v * v * hit
                slopes[s, k, q] += d * hit
        for a in range(4):
            for b in range(4):
                m = mass[g, b]
                for q in range(lanes):
                    products[s, a, b, q] += x[a, q] * x[b, q]
                if m > 0.0:
                    for q in range(lanes):
                        with_mass[s, a, b, q] += x[a, q] * m


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
    # In large clusters every row meets equally many others, at evenly spread distances on a circle.
    ratio = np.empty(p.shape[1])
    for g in range(starts.size - 1):
        first, size = starts[g], starts[g + 1] - starts[g]
        few = size <= LARGE_CLUSTER
        total = 0.0
        for i in range(size):
            for t in range(i if few else PARTNERS):
                j = t if few else (i + 1 + int((t + 0.5) * (size - 1) / PARTNERS)) % size
                shared = _shared_hits(p[first + i], p[first + j], ratio)
                total += w[first + i] * w[first + j] * shared
        out[g] = total * (2.0 if few else (size - 1) / PARTNERS)


# ------------------------------------------------------------------------------
# How far labels depend along two columns of clusters, such as readers and patients.


@dataclass(frozen=True, eq=False)
class CrossedAgreement:
    """Agreement of residuals of rows that share a cluster of the first column, the second, or both.

    ``columns`` are the agreements within the clusters of each column alone; ``both`` is the
    agreement of rows that share both clusters, None if there are no such rows.
    """

    columns: tuple[Agreement, Agreement]
    both: Agreement | None

    @classmethod
    def of(cls, data: Predictions, coupling: Coupling) -> CrossedAgreement:
        """Return the agreement of residuals within the two columns of clusters that ``data`` have.

        ``coupling`` is the quantity that rows may share: their "label", or their "correctness",
        whether the most likely label is right. Rows that share both clusters are counted once.
        """
        assert data.clusters is not None
        assert data.crossed is not None
        codes = data.clusters * (int(data.crossed.max()) + 1) + data.crossed

        def agreement(clusters: IntArray) -> Agreement:
            return Agreement.of(replace(data, clusters=clusters, crossed=None), coupling)

        shared = agreement(codes) if np.unique(codes).size < data.n else None
        return cls((agreement(data.clusters), agreement(data.crossed)), shared)

    @cached_property
    def limits(self) -> TwoWayAgreement:
        """Upper limits (λ₁, λ₂) of the dependences in [0, 1], one for each column of clusters.

        Each holds if the λ of the other column is 0.
        """
        first, second = (column.limits().overall for column in self.columns)
        return first, second

    @cached_property
    def joint(self) -> TwoWayAgreement:
        """Sums of covariances c_ij over pairs in one cluster, one for each column of clusters.

        c_ij is the covariance of two residuals whose labels are one draw (dependence 1).
        """
        first, second = (float(column.sums[1].sum()) for column in self.columns)
        return first, second

    def observed(self, centred: bool = False) -> float:
        """Return N = N_a + N_b − N_ab of the observed labels, for columns a and b of clusters.

        N is the sum of products of residuals over pairs of rows in one cluster, N_ab over pairs
        that share both. With ``centred`` residuals are less their mean in quarters of the
        predictions.
        """
        both = 0.0 if self.both is None else self.both.observed(centred)
        return sum(column.observed(centred) for column in self.columns) - both

    def inflation(self, limits: TwoWayAgreement, centred: bool = False) -> float:
        """Return κ ≥ 1, the factor by which draws with given dependences vary too little.

        ``limits`` are the dependences (λ₁, λ₂) of both columns of clusters. κ is the variance of
        observed residual sums over the largest that draws allow in the ratio of these limits. With
        ``centred`` residuals are less their mean in quarters of the predictions.
        """
        variance = float(self.columns[0].sums[0].sum())
        # The strongest draw in the ratio of both limits, with √λ₁ + √λ₂ = 1.
        roots = float(np.sqrt(limits).sum())
        shares = np.array(limits) / roots**2 if roots > 0.0 else np.full(2, 0.25)
        allowed = variance + float(shares @ self.joint)
        return max(1.0, (variance + self.observed(centred)) / allowed) if allowed > 1e-9 else 1.0


@dataclass(frozen=True, eq=False)
class TwoColumns:
    """Dependence of labels along two columns of clusters, each with its own coupling.

    λ₁ and λ₂ in [0, 1] are the dependences by column. Labels are drawn with E[r_i · r_j] = (λ₁ [a_i
    = a_j] + λ₂ [b_i = b_j]) c_ij for residuals r, clusters a and b of both columns, and c_ij the
    covariance of labels that are one draw, which needs √λ₁ + √λ₂ ≤ 1. Each λ is the upper limit for
    its column when the other λ is 0. ``couplings`` are the quantities that rows share by column,
    "label" or "correctness"; ``first`` and ``second`` measure the agreement of residuals for each
    of them.
    """

    data: Predictions
    couplings: tuple[Coupling, Coupling]
    first: CrossedAgreement
    second: CrossedAgreement

    def degree(self, dependence: Degree | None) -> TwoWayAgreement:
        """Return the dependences (λ₁, λ₂) of both columns of clusters, given or estimated.

        They are ``dependence`` if given, else upper limits.

        If √λ₁ + √λ₂ > 1, one estimated λ is lowered until the sum is 1: the choice that keeps the
        larger λ₁ V_a + λ₂ V_b, with V the sum of covariances over pairs of rows in one cluster of a
        column. StatisticError for a ``dependence`` that is no pair.
        """
        if isinstance(dependence, tuple):
            return dependence
        if dependence is not None:
            raise StatisticError("dependence of two columns of clusters is a pair (λ₁, λ₂)")
        limits = self.first.limits[0], self.second.limits[1]
        joint = self.first.joint[0], self.second.joint[1]
        one, other = np.sqrt(limits)
        if one + other <= 1.0 + 1e-9:
            return limits
        ways = (limits[0], float((1.0 - one) ** 2)), (float((1.0 - other) ** 2), limits[1])
        return max(ways, key=lambda way: way[0] * joint[0] + way[1] * joint[1])

    def inflation(self, dependence: Degree | None, centred: bool = False) -> float:
        """Return κ ≥ 1, the factor by which draws with given dependences vary too little.

        ``dependence`` is a pair of numbers in [0, 1], one for each column of clusters, or None to
        estimate it. With ``centred`` residuals are taken less their mean among rows with about the
        same prediction.
        """
        limits = self.degree(dependence)
        return max(each.inflation(limits, centred) for each in (self.first, self.second))

    def drawer(self, dependence: Degree | None) -> Drawer:
        """Return a generator of label vectors that depend on each other along both columns.

        ``dependence`` is a pair of numbers in [0, 1], one for each column of clusters, or None to
        estimate it. The generator is called as ``draw(seed, first, count)``, the seed being a pair
        of integers, and returns the outcomes of replicates ``first``, …, of shape (count, n).
        """
        return dependent(self.data, np.array(self.degree(dependence)), *self.couplings)


# ------------------------------------------------------------------------------
# Labels that depend on each other within clusters.


#: What rows of a cluster share: the draw of their label, or that of whether the likeliest is right.
Coupling = Literal["label", "correctness"]


#: λ of the first column of clusters and of the second.
TwoWayAgreement = tuple[float, float]


Words = NDArray[np.uint64]


COUPLINGS: tuple[Coupling, Coupling] = ("label", "correctness")


@dataclass(frozen=True)
class Dependence:
    """Upper limits of the dependence λ in [0, 1], overall and for parts of the rows.

    ``overall`` is the limit for all rows. ``by_prediction`` has the limits of four quarters of the
    rows by prediction, ``by_size`` of four by cluster size.
    """

    overall: float
    by_prediction: tuple[float, ...]
    by_size: tuple[float, ...]

    @classmethod
    def of(cls, degree: Degree, column: int = 0) -> Dependence:
        """Return the limits of the dependence λ in [0, 1] that ``degree`` stands for.

        There is a limit of all rows, and one of each of eight quarters. A number is the λ of all
        rows; a pair has one λ for each column of clusters, of which ``column`` (0 or 1) is taken.
        Limits are returned as they are.
        """
        if isinstance(degree, Dependence):
            return degree
        one = degree[column] if isinstance(degree, tuple) else degree
        return cls(one, (one,) * 4, (one,) * 4)

    @property
    def largest(self) -> float:
        """The largest limit of the dependence, over all rows and the eight quarters."""
        return max(self.overall, *self.by_prediction, *self.by_size)


#: λ of one column of clusters or of two, or limits of it.
Degree = float | TwoWayAgreement | Dependence


def dependent(data: Predictions, dependence: float | FloatArray, *couplings: Coupling) -> Drawer:
    """Return a generator of labels that depend on each other within clusters, or near in time.

    ``data`` have clusters, one column or two, or a time series with a horizon h. ``dependence`` is
    the degree λ in [0, 1]: one number, one for every row (n,), or a pair for two columns.
    ``couplings`` name what the shared draw of a column decides: the "label", or "correctness",
    whether the most likely label is right. For more than two classes both columns decide the same.
    The generator is called as ``draw(seed, first, count)``, the seed being a pair of
    integers, and returns the outcomes of replicates ``first``, …, of shape (count, n).

    A series has offsets o, uniform on 0 … h − 1, and the blocks ⌊(t + o) / h⌋, in which rows join a
    common draw with probability √λ. Then E[r_i · r_j] = λ (1 − |t_i − t_j| / h)₊ c_ij exactly, with
    residuals r, times t, and c_ij the value of a common draw. Clusters are a series with h = 1.
    """
    couplings, horizon, degrees = couplings or ("label",), data.horizon or 1, np.asarray(dependence)
    if data.horizon is None:
        cluster = by_appearance(data.clusters)[None]
    else:
        assert data.times is not None
        cluster = (data.times - data.times.min())[None]
    if data.crossed is not None:
        cluster = np.vstack([cluster, cluster.max() + 1 + by_appearance(data.crossed)])
        degrees = degrees[:, None]
    roots = np.sqrt(np.broadcast_to(degrees, cluster.shape))
    # Two columns are chosen by one uniform: below √λ₁ the first, up to √λ₁ + √λ₂ the second.
    sharing = np.minimum(np.cumsum(roots, axis=0), 1.0)
    if data.n_classes > 2:
        probs = np.ascontiguousarray(data.probs)
        upto = LabelSampler.of(probs).cumulative
        return ClusterDrawer(probs, upto, cluster, sharing, couplings[0], horizon)
    # Where label 0 is the less likely one a common draw of correctness is read backwards.
    by_correctness = np.array([coupling == "correctness" for coupling in couplings])
    turned = by_correctness[:, None] & (cumulative(data.probs)[:, 0] < 0.5)
    return SharedLanes.shared(data.probs, cluster, sharing, turned, horizon)


@dataclass(frozen=True, eq=False)
class ClusterDrawer:
    """Generator of dependent label vectors for K > 2 classes; each depends on seed and number only.

    ``cluster`` (C, n) numbers the clusters of C = 1 or 2 columns, or holds times. ``sharing`` (C,
    n) has the probability √λ_i, with λ_i the dependence, that row i joins the draw of its first
    cluster, and of either; see :func:`dependent`. ``probs`` (n, K) are the predictions, ``upto``
    their cumulative sums, ``coupling`` what rows share ("label" or "correctness"), and ``horizon``
    the length of a block of times, 1 for clusters.
    """

    probs: FloatArray = field(repr=False)
    upto: FloatArray = field(repr=False)
    cluster: IntArray = field(repr=False)
    sharing: FloatArray = field(repr=False)
    coupling: Coupling
    horizon: int = 1

    def __call__(self, seed: Seed, first: int, count: int, out: IntArray | None = None) -> IntArray:
        """Return the labels of replicates ``first``, …, ``first + count − 1``, shape (count, n).

        ``seed`` is the pair of integers that keys the random stream; labels are written into
        ``out`` (≥ count, n) if it is given. O(count n K).
        """
        shape, words = (count, len(self.probs)), stream_keys(seed, first, count)
        labels = np.empty(shape, dtype=np.int64) if out is None else out[:count]
        offsets = (words[2] % np.uint64(self.horizon)).astype(np.int64)
        for offset in np.unique(offsets):
            some = offsets == offset
            blocks = (self.cluster + offset) // self.horizon
            drawn = np.empty((int(some.sum()), shape[1]), dtype=np.int64)
            self._fill(words[0][some], words[1][some], blocks, drawn)
            labels[some] = drawn
        return labels

    def _fill(self, key: Words, twist: Words, cluster: IntArray, labels: IntArray) -> None:
        """Draw B label vectors, one from each random stream, into ``labels`` (B, n).

        ``key`` and ``twist`` (B,) are the words that key the streams, and ``cluster`` (C, n) the
        numbers of the clusters of C columns, or of the blocks of times.
        """
        n_common = int(cluster.max()) + 1
        if self.coupling == "label":
            common = np.empty((n_common, self.probs.shape[1]))
            rows, draw = (self.probs, self.upto), _shared_vectors
        else:
            common = np.empty((n_common, 1))
            rows, draw = (self.probs, self.probs.argmax(axis=1)), _shared_correctness
        draw(*rows, cluster, self.sharing, key, twist, common, labels)


@counter_kernel
def _shared_vectors(  # type: ignore[no-untyped-def]
    probs, upto, cluster, sharing, key, twist, common, labels_out
):
    # O(n K). The largest of log p_k + γ_k is the smallest of e_k / p_k, e exponential.
    n, n_classes = probs.shape
    largest, last = 1.0 - 2.0**-53, len(sharing) - 1
    alone = 1.0 / np.maximum(1.0 - sharing[last], 1e-300)
    for r in range(key.size):
        counter = key[r] + GAMMA * np.uint64(n)
        for g in range(len(common)):
            for k in range(n_classes):
                common[g, k] = -np.log(1.0 - mixed(counter, twist[r]) * UNIFORM_STEP)
                counter += GAMMA
        counter = key[r]
        for i in range(n):
            word = mixed(counter, twist[r]) * UNIFORM_STEP
            counter += GAMMA
            best, reach = 0, sharing[last, i]
            if word < reach:
                waiting = common[cluster[0 if word < sharing[0, i] else last, i]]
                while probs[i, best] <= 0.0:
                    best += 1
                for k in range(best + 1, n_classes):
                    if waiting[k] * probs[i, best] < waiting[best] * probs[i, k]:
                        best = k
            else:
                u = min((word - reach) * alone[i], largest)
                while u >= upto[i, best]:
                    best += 1
            labels_out[r, i] = best


@counter_kernel
def _shared_correctness(  # type: ignore[no-untyped-def]
    probs, likeliest, cluster, sharing, key, twist, common, labels_out
):
    # O(n K). The likeliest label is right if a draw is below its probability; what a wrong row
    # shows instead it draws alone, with the part of its word that has not been used.
    n, n_classes = probs.shape
    last = len(sharing) - 1
    for r in range(key.size):
        counter = key[r] + GAMMA * np.uint64(n)
        for g in range(len(common)):
            common[g, 0] = mixed(counter, twist[r]) * UNIFORM_STEP
            counter += GAMMA
        counter = key[r]
        for i in range(n):
            word = mixed(counter, twist[r]) * UNIFORM_STEP
            counter += GAMMA
            top, m = likeliest[i], probs[i, likeliest[i]]
            first, reach = sharing[0, i], sharing[last, i]
            if word < first:
                u, rest = common[cluster[0, i], 0], word / first
            elif word < reach:
                u, rest = common[cluster[last, i], 0], (word - first) / (reach - first)
            else:
                u = (word - reach) / max(1.0 - reach, 1e-300)
                rest = (u - m) / max(1.0 - m, 1e-300)
            label = top
            if u >= m and m < 1.0:
                left = rest * (1.0 - m)
                for k in range(n_classes):
                    if k != top and probs[i, k] > 0.0:
                        label = k
                        left -= probs[i, k]
                        if left < 0.0:
                            break
            labels_out[r, i] = label
