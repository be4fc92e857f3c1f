"""Labels that depend on each other within clusters, and how far the observed ones do."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from caltest._base.arrays import largest
from caltest._base.compiled import counter_kernel, inlined, kernel
from caltest._base.facts import by_appearance as by_appearance
from caltest.predictions import FloatArray, IntArray, Predictions
from caltest.simulate.sampler import LabelSampler
from caltest.simulate.streams import FIRST_FACTOR, GAMMA, SECOND_FACTOR, Seed, keys

#: Label vectors drawn for a degree of dependence, the degrees tried, and the seed of these draws.
DRAWS, STEPS, SEED = 199, 10, (0x5EED, 0xC1)
#: Share of draws that must agree no more than the observed labels for a degree to be possible.
POSSIBLE = 0.05
#: Rows of a cluster above which not all pairs are looked at for the variance of its sum, and the
#: number of others that each row then meets.
LARGE, PARTNERS = 512, 64
#: Labels that are drawn together.
AT_ONCE = 2**18


@dataclass(frozen=True, eq=False)
class ClusterDrawer:
    """Draws label vectors with dependence: replicate r of a seed is always the same."""

    probs: FloatArray = field(repr=False)
    upto: FloatArray = field(repr=False)
    cluster: IntArray = field(repr=False)
    joining: float

    @classmethod
    def of(cls, data: Predictions, dependence: float) -> ClusterDrawer:
        """Prepare the rows of data that have clusters."""
        upto = LabelSampler.of(data.probs).cumulative
        cluster = by_appearance(data.clusters)
        return cls(np.ascontiguousarray(data.probs), upto, cluster, float(np.sqrt(dependence)))

    def __call__(self, seed: Seed, first: int, count: int, out: IntArray | None = None) -> IntArray:
        """Return the labels of replicates ``first``, …, ``first + count − 1``: (count, n)."""
        n = len(self.probs)
        labels = np.empty((count, n), dtype=np.int64) if out is None else out[:count]
        streams = keys(seed, first, count)[:2]
        common = np.empty((self.cluster.max() + 1, self.probs.shape[1] - (self.upto.shape[1] == 1)))
        draw = _shared_pairs if self.upto.shape[1] == 1 else _shared_vectors
        draw(self.probs, self.upto, self.cluster, self.joining, *streams, common, labels)
        return labels


@inlined
def _uniform(z, twist):  # type: ignore[no-untyped-def]
    # 53 random bits, the same for the same counter as in the kernels of independent labels
    z = (z ^ (z >> np.uint64(30))) * FIRST_FACTOR ^ twist
    z = (z ^ (z >> np.uint64(27))) * SECOND_FACTOR
    return np.float64((z ^ (z >> np.uint64(31))) >> np.uint64(11)) * 2.0**-53


@counter_kernel
def _shared_pairs(  # type: ignore[no-untyped-def]
    probs, upto, cluster, joining, key, twist, common, labels_out
):
    # O(n) per label vector. One word a row says whether it joins, and is its own draw if not.
    n = labels_out.shape[1]
    largest, alone = 1.0 - 2.0**-53, 1.0 / max(1.0 - joining, 1e-300)
    for r in range(key.size):
        counter = key[r] + GAMMA * np.uint64(n)
        for g in range(len(common)):
            common[g, 0] = _uniform(counter, twist[r])
            counter += GAMMA
        counter = key[r]
        for i in range(n):
            own = _uniform(counter, twist[r])
            shared = common[cluster[i], 0]
            u = shared if own < joining else min((own - joining) * alone, largest)
            labels_out[r, i] = u >= upto[i, 0]
            counter += GAMMA


@counter_kernel
def _shared_vectors(  # type: ignore[no-untyped-def]
    probs, upto, cluster, joining, key, twist, common, labels_out
):
    # O(n K). The largest of log p_k + γ_k is the smallest of e_k / p_k, e exponential.
    n, n_classes = probs.shape
    largest, alone = 1.0 - 2.0**-53, 1.0 / max(1.0 - joining, 1e-300)
    for r in range(key.size):
        counter = key[r] + GAMMA * np.uint64(n)
        for g in range(len(common)):
            for k in range(n_classes):
                common[g, k] = -np.log(1.0 - _uniform(counter, twist[r]))
                counter += GAMMA
        counter = key[r]
        for i in range(n):
            own = _uniform(counter, twist[r])
            counter += GAMMA
            best = 0
            if own < joining:
                waiting = common[cluster[i]]
                while probs[i, best] <= 0.0:
                    best += 1
                for k in range(best + 1, n_classes):
                    if waiting[k] * probs[i, best] < waiting[best] * probs[i, k]:
                        best = k
            else:
                u = min((own - joining) * alone, largest)
                while u >= upto[i, best]:
                    best += 1
            labels_out[r, i] = best


@dataclass(frozen=True, eq=False)
class Agreement:
    """How far residuals of the same cluster agree, for any labels: N of the notes below.

    Notes
    -----
    N(x) = Σ_g (|Σ_{i∈g} w_i x_i|² − Σ_{i∈g} w_i² |x_i|²), for residuals r or, ``centred``, for r
    less its mean among the rows with about the same prediction (quarters by rank), which keeps
    miscalibration from passing for dependence. Of two classes one component counts.
    O(n + G K) a label vector.
    """

    data: Predictions
    cluster: IntArray = field(repr=False)
    quarter: IntArray = field(repr=False)
    probs: FloatArray = field(repr=False)
    weights: FloatArray = field(repr=False)

    @classmethod
    def of(cls, data: Predictions) -> Agreement:
        """Rank the rows by the prediction of the event, or by the largest; O(n log n)."""
        two = data.n_classes == 2
        position = data.probs[:, 0] if two else largest(data.probs)
        _, inverse, counts = np.unique(position, return_inverse=True, return_counts=True)
        first = np.cumsum(counts) - counts
        weights = np.ones(data.n) if data.weights is None else data.weights
        columns = np.ascontiguousarray(data.probs[:, :1] if two else data.probs)
        quarter = 4 * first[inverse.ravel()] // data.n
        return cls(data, by_appearance(data.clusters), quarter, columns, weights)

    def __call__(self, labels: IntArray, centred: bool = True) -> FloatArray:
        """Return N for label vectors of shape (B, n)."""
        w, p = self.weights, self.probs
        crossed = 4 * self.cluster + self.quarter
        mass = np.bincount(crossed, w, 4 * (int(self.cluster.max()) + 1)).reshape(-1, 4)
        expected = _summed(w[:, None] * p, self.cluster, len(mass))
        sums = [_summed(w[:, None] ** e * p, self.quarter, 4) for e in (1, 2)]
        squares = np.bincount(self.quarter, w**2, 4)
        own = float((w[:, None] ** 2 * p**2).sum())
        values = np.empty(len(labels))
        rows = (self.cluster, self.quarter, p, w)
        _agreements(labels, *rows, mass, expected, *sums, squares, own, centred, values)
        return values

    def limit(self) -> float:
        """Return the upper confidence limit of λ; see :class:`SharedRedraws`."""
        observed = self(self.data.labels[None, :])[0]
        at_once = max(1, AT_ONCE // self.data.n)
        found = 0.0
        for step in range(1, STEPS + 1):
            draw = ClusterDrawer.of(self.data, step / STEPS)
            blocks = [(a, min(at_once, DRAWS - a)) for a in range(0, DRAWS, at_once)]
            drawn = np.concatenate([self(draw(SEED, a, size)) for a, size in blocks])
            if (drawn <= observed + 1e-9 * abs(observed)).mean() >= POSSIBLE:
                found = step / STEPS
            elif step > 2:
                break
        return found

    def sums(self) -> tuple[FloatArray, FloatArray]:
        """Return Σ w² v and Σ_{i≠j} w_i w_j c_ij of every cluster: the variance of its sum.

        v_i = p_i (1 − p_i) and c_ij = min(p_i, p_j) − p_i p_j of two classes, v_i = 1 − |p_i|² and
        c_ij = Σ_k [Σ_l max(p_il / p_ik, p_jl / p_jk)]⁻¹ − p_i · p_j of more, which costs
        O(K log K) a pair: of more than 512 rows of a cluster each meets 64 others, spread over
        the ranks of p_0, and their mean stands for all (within some 0.2 %).
        """
        order = np.lexsort((self.data.probs[:, 0], self.cluster))
        starts = np.flatnonzero(np.diff(self.cluster[order], prepend=-1))
        w, p = self.weights[order], self.data.probs[order]
        if p.shape[1] > 2:
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


def _summed(values: FloatArray, group: IntArray, n_groups: int) -> FloatArray:
    """Return the column sums of every group, shape (G, K)."""
    return np.stack([np.bincount(group, column, n_groups) for column in values.T], axis=1)


@kernel
def _agreements(  # type: ignore[no-untyped-def]
    labels, cluster, quarter, p, w, mass, expected, sums, squared, squares, own, centred, out
):
    # |x|² is multiplied out, so that a row costs O(1): x = hit − p − m, m the mean of its quarter.
    n_clusters, n_classes = expected.shape
    seen = np.empty((n_clusters, n_classes))
    hits, hits_squared = np.empty((4, n_classes)), np.empty((4, n_classes))
    mean = np.zeros((4, n_classes))
    for r in range(labels.shape[0]):
        seen[:] = -expected
        hits[:] = 0.0
        hits_squared[:] = 0.0
        total = own
        for i in range(w.size):
            k = labels[r, i]
            if k < n_classes:
                seen[cluster[i], k] += w[i]
                hits[quarter[i], k] += w[i]
                hits_squared[quarter[i], k] += w[i] ** 2
                total += w[i] ** 2 * (1.0 - 2.0 * p[i, k])
        for q in range(4 if centred else 0):
            rows = max(mass[:, q].sum(), 1e-300)
            for k in range(n_classes):
                m = (hits[q, k] - sums[q, k]) / rows
                mean[q, k] = m
                total += m * (2.0 * (squared[q, k] - hits_squared[q, k]) + squares[q] * m)
        value = -total
        for g in range(n_clusters):
            for k in range(n_classes):
                s = seen[g, k]
                for q in range(4):
                    s -= mass[g, q] * mean[q, k]
                value += s * s
        out[r] = value


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
