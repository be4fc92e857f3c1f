"""Labels that depend on each other within clusters."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from caltest._base.arrays import AnyArray
from caltest._base.compiled import counter_kernel
from caltest._base.facts import by_appearance
from caltest.predictions import FloatArray, IntArray, Predictions
from caltest.simulate.labels import LabelSampler
from caltest.simulate.streams import GAMMA, UNIT, Seed, keys, mixed

#: What rows of a cluster share: the draw of their label, or that of whether the likeliest is right.
Coupling = Literal["label", "correctness"]
#: λ of the first column of clusters and of the second.
Pair = tuple[float, float]
Words = NDArray[np.uint64]
COUPLINGS: tuple[Coupling, Coupling] = ("label", "correctness")


@dataclass(frozen=True)
class Dependence:
    """Limits of λ: of all rows, and of those of each quarter of the predictions and of sizes."""

    overall: float
    by_prediction: tuple[float, ...]
    by_size: tuple[float, ...]

    @classmethod
    def of(cls, degree: Degree, column: int = 0) -> Dependence:
        """Return one λ for all rows, of two columns that of one, or what are limits already."""
        if isinstance(degree, Dependence):
            return degree
        one = degree[column] if isinstance(degree, tuple) else degree
        return cls(one, (one,) * 4, (one,) * 4)

    @property
    def largest(self) -> float:
        """The limit of the part that depends most."""
        return max(self.overall, *self.by_prediction, *self.by_size)


#: λ of one column of clusters or of two, or limits of it.
Degree = float | Pair | Dependence


@dataclass(frozen=True, eq=False)
class ClusterDrawer:
    """Draws label vectors with dependence: replicate r of a seed is always the same.

    ``cluster`` (C, n) numbers the clusters of one column or two, and ``sharing`` (C, n) holds the
    chance √λ_i that row i takes part in the draw of its first cluster, and of either. ``couplings``
    say what the draws of a column decide: the label, or whether the likeliest label is right. Of
    more than two classes those of two columns decide the same.
    """

    probs: FloatArray = field(repr=False)
    upto: FloatArray = field(repr=False)
    cluster: IntArray = field(repr=False)
    sharing: FloatArray = field(repr=False)
    couplings: tuple[Coupling, ...]

    @classmethod
    def of(
        cls, data: Predictions, dependence: float | FloatArray, *couplings: Coupling
    ) -> ClusterDrawer:
        """Prepare rows with clusters; of two columns ``dependence`` is a row of two λ."""
        upto = LabelSampler.of(data.probs).cumulative
        cluster = by_appearance(data.clusters)[None]
        shape, degrees = (1, data.n), np.asarray(dependence)
        if data.crossed is not None:
            cluster = np.vstack([cluster, cluster.max() + 1 + by_appearance(data.crossed)])
            shape, degrees = (2, data.n), degrees[:, None]
        roots = np.sqrt(np.broadcast_to(degrees, shape))
        # Two columns are chosen by one uniform: below √λ₁ the first, up to √λ₁ + √λ₂ the second.
        sharing = np.minimum(np.cumsum(roots, axis=0), 1.0)
        probs = np.ascontiguousarray(data.probs)
        return cls(probs, upto, cluster, sharing, couplings or ("label",))

    def __call__(self, seed: Seed, first: int, count: int, out: IntArray | None = None) -> IntArray:
        """Return the labels of replicates ``first``, …, ``first + count − 1``: (count, n)."""
        shape = count, len(self.probs)
        labels = np.empty(shape, dtype=np.int64) if out is None else out[:count]
        key, twist = keys(seed, first, count)[:2]
        return self.fill(key, twist, self.cluster, labels)

    def fill(self, key: Words, twist: Words, cluster: IntArray, labels: IntArray) -> IntArray:
        """Draw a label vector from each stream, with these clusters."""
        streams, n_classes = (key, twist), self.probs.shape[1]
        by_label, two = self.couplings[0] == "label", n_classes == 2
        common = np.empty((cluster.max() + 1, n_classes if by_label and not two else 1))
        rows: tuple[AnyArray, ...] = self.probs, self.upto
        if two:
            # Where label 0 is the less likely one a common draw of correctness is read backwards.
            away = np.array([coupling == "correctness" for coupling in self.couplings])
            turned = np.ascontiguousarray(away[:, None] & (self.upto[:, 0] < 0.5))
            rows, draw = (self.upto, turned), _shared_pairs
        elif by_label:
            draw = _shared_vectors
        else:
            rows, draw = (self.probs, self.probs.argmax(axis=1)), _shared_correctness
        draw(*rows, cluster, self.sharing, *streams, common, labels)
        return labels


@counter_kernel
def _shared_pairs(  # type: ignore[no-untyped-def]
    upto, turned, cluster, sharing, key, twist, common, labels_out
):
    # O(n) per label vector. One word a row says whether it joins, and is its own draw if not.
    n, last = labels_out.shape[1], len(sharing) - 1
    largest = 1.0 - 2.0**-53
    alone = 1.0 / np.maximum(1.0 - sharing[last], 1e-300)
    for r in range(key.size):
        counter = key[r] + GAMMA * np.uint64(n)
        for g in range(len(common)):
            common[g, 0] = mixed(counter, twist[r]) * UNIT
            counter += GAMMA
        counter = key[r]
        for i in range(n):
            word = mixed(counter, twist[r]) * UNIT
            c, reach = 0 if word < sharing[0, i] else last, sharing[last, i]
            shared = common[cluster[c, i], 0]
            if turned[c, i]:
                shared = largest - shared
            u = shared if word < reach else min((word - reach) * alone[i], largest)
            labels_out[r, i] = u >= upto[i, 0]
            counter += GAMMA


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
                common[g, k] = -np.log(1.0 - mixed(counter, twist[r]) * UNIT)
                counter += GAMMA
        counter = key[r]
        for i in range(n):
            word = mixed(counter, twist[r]) * UNIT
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
            common[g, 0] = mixed(counter, twist[r]) * UNIT
            counter += GAMMA
        counter = key[r]
        for i in range(n):
            word = mixed(counter, twist[r]) * UNIT
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
