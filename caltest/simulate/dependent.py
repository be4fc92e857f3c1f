"""Labels that depend on each other within clusters."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from caltest._base.compiled import counter_kernel
from caltest._base.facts import by_appearance
from caltest.predictions import FloatArray, IntArray, Predictions
from caltest.simulate.labels import LabelSampler
from caltest.simulate.streams import GAMMA, UNIT, Seed, keys, mixed

#: What rows of a cluster share: the draw of their label, or that of whether the likeliest is right.
Coupling = Literal["label", "correctness"]
Words = NDArray[np.uint64]
COUPLINGS: tuple[Coupling, Coupling] = ("label", "correctness")


class Dependence(NamedTuple):
    """Limits of λ: of all rows, and of those of each quarter of the predictions and of sizes."""

    overall: float
    by_prediction: tuple[float, ...]
    by_size: tuple[float, ...]

    @classmethod
    def of(cls, degree: float | Dependence) -> Dependence:
        """Return one degree for all rows, or what is such a limit already."""
        return (
            degree if isinstance(degree, Dependence) else cls(degree, (degree,) * 4, (degree,) * 4)
        )

    @property
    def largest(self) -> float:
        """The limit of the part that depends most."""
        return max(self.overall, *self.by_prediction, *self.by_size)


@dataclass(frozen=True, eq=False)
class ClusterDrawer:
    """Draws label vectors with dependence: replicate r of a seed is always the same.

    ``joining`` holds the chance √λ_i that row i takes part in the draw of its cluster, and
    ``coupling`` says what that draw decides: the label, or whether the likeliest label is right.
    """

    probs: FloatArray = field(repr=False)
    upto: FloatArray = field(repr=False)
    cluster: IntArray = field(repr=False)
    joining: FloatArray = field(repr=False)
    coupling: Coupling

    @classmethod
    def of(
        cls, data: Predictions, dependence: float | FloatArray, coupling: Coupling = "label"
    ) -> ClusterDrawer:
        """Prepare the rows of data that have clusters."""
        upto = LabelSampler.of(data.probs).cumulative
        joining = np.sqrt(np.broadcast_to(dependence, data.n))
        probs, cluster = np.ascontiguousarray(data.probs), by_appearance(data.clusters)
        return cls(probs, upto, cluster, joining, coupling)

    def __call__(self, seed: Seed, first: int, count: int, out: IntArray | None = None) -> IntArray:
        """Return the labels of replicates ``first``, …, ``first + count − 1``: (count, n)."""
        shape = count, len(self.probs)
        labels = np.empty(shape, dtype=np.int64) if out is None else out[:count]
        key, twist = keys(seed, first, count)[:2]
        return self.fill(key, twist, self.cluster, labels)

    def fill(self, key: Words, twist: Words, cluster: IntArray, labels: IntArray) -> IntArray:
        """Draw a label vector from each stream, with these clusters."""
        streams, n_classes = (key, twist), self.probs.shape[1]
        by_label, two = self.coupling == "label", n_classes == 2
        common = np.empty((cluster.max() + 1, n_classes if by_label and not two else 1))
        if two:
            # Where label 0 is the less likely one a common draw of correctness is read backwards.
            turned = (self.upto[:, 0] < 0.5) & (not by_label)
            within = cluster, self.joining, turned
            _shared_pairs(self.upto, *within, *streams, common, labels)
        elif by_label:
            _shared_vectors(self.probs, self.upto, cluster, self.joining, *streams, common, labels)
        else:
            likeliest = self.probs.argmax(axis=1)
            rows = self.probs, likeliest, cluster, self.joining
            _shared_correctness(*rows, *streams, common, labels)
        return labels


@counter_kernel
def _shared_pairs(  # type: ignore[no-untyped-def]
    upto, cluster, joining, turned, key, twist, common, labels_out
):
    # O(n) per label vector. One word a row says whether it joins, and is its own draw if not.
    n = labels_out.shape[1]
    largest = 1.0 - 2.0**-53
    alone = 1.0 / np.maximum(1.0 - joining, 1e-300)
    for r in range(key.size):
        counter = key[r] + GAMMA * np.uint64(n)
        for g in range(len(common)):
            common[g, 0] = mixed(counter, twist[r]) * UNIT
            counter += GAMMA
        counter = key[r]
        for i in range(n):
            word = mixed(counter, twist[r]) * UNIT
            shared = common[cluster[i], 0]
            if turned[i]:
                shared = largest - shared
            u = shared if word < joining[i] else min((word - joining[i]) * alone[i], largest)
            labels_out[r, i] = u >= upto[i, 0]
            counter += GAMMA


@counter_kernel
def _shared_vectors(  # type: ignore[no-untyped-def]
    probs, upto, cluster, joining, key, twist, common, labels_out
):
    # O(n K). The largest of log p_k + γ_k is the smallest of e_k / p_k, e exponential.
    n, n_classes = probs.shape
    largest = 1.0 - 2.0**-53
    alone = 1.0 / np.maximum(1.0 - joining, 1e-300)
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
            best = 0
            if word < joining[i]:
                waiting = common[cluster[i]]
                while probs[i, best] <= 0.0:
                    best += 1
                for k in range(best + 1, n_classes):
                    if waiting[k] * probs[i, best] < waiting[best] * probs[i, k]:
                        best = k
            else:
                u = min((word - joining[i]) * alone[i], largest)
                while u >= upto[i, best]:
                    best += 1
            labels_out[r, i] = best


@counter_kernel
def _shared_correctness(  # type: ignore[no-untyped-def]
    probs, likeliest, cluster, joining, key, twist, common, labels_out
):
    # O(n K). The likeliest label is right if a draw is below its probability; what a wrong row
    # shows instead it draws alone, with the part of its word that has not been used.
    n, n_classes = probs.shape
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
            if word < joining[i]:
                u, rest = common[cluster[i], 0], word / joining[i]
            else:
                u = (word - joining[i]) / max(1.0 - joining[i], 1e-300)
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
