"""Labels of forecasts several steps ahead: outcomes that overlap share their draws."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cache, cached_property

import numpy as np

from caltest._base.memo import Memo
from caltest.lenses import TopK
from caltest.predictions import FloatArray, IntArray, Predictions
from caltest.simulate.agreement import DISAGREE, STEPS, batches, possible, quarters
from caltest.simulate.dependent import ClusterDrawer, Coupling, Degree
from caltest.simulate.streams import Seed, keys

#: Upper confidence limits of λ by coupling and rows.
_DEGREES: Memo[float] = Memo()


@dataclass(frozen=True, eq=False)
class SeriesDrawer:
    """Draws label vectors in blocks of h times, which begin anywhere.

    A replicate has an offset o, uniform on 0 … h − 1, and the blocks ⌊(t + o) / h⌋, in which rows
    join a common draw with probability √λ: residuals have E[r_i · r_j] = λ (1 − |t_i − t_j| / h)₊
    c_ij exactly, c_ij the value of a common draw.
    """

    draw: ClusterDrawer
    times: IntArray = field(repr=False)
    horizon: int

    @classmethod
    def of(cls, data: Predictions, dependence: float, coupling: Coupling = "label") -> SeriesDrawer:
        """Prepare the rows of data that have times and a horizon."""
        times, h = timed(data)
        return cls(ClusterDrawer.of(data, dependence, coupling), times - times.min(), h)

    def __call__(self, seed: Seed, first: int, count: int, out: IntArray | None = None) -> IntArray:
        """Return the labels of replicates ``first``, …, ``first + count − 1``: (count, n)."""
        words = keys(seed, first, count)
        offsets = (words[2] % np.uint64(self.horizon)).astype(np.int64)
        labels = np.empty((count, self.times.size), dtype=np.int64) if out is None else out[:count]
        for offset in np.unique(offsets):
            some = offsets == offset
            blocks = ((self.times + offset) // self.horizon)[None]
            replicates = np.empty((int(some.sum()), self.times.size), dtype=np.int64)
            labels[some] = self.draw.fill(words[0][some], words[1][some], blocks, replicates)
        return labels


@dataclass(frozen=True, eq=False)
class Overlap:
    """How far residuals of overlapping rows agree: N = Σ_{i≠j, |t_i−t_j|<h} w_i w_j x_i · x_j.

    x is the residual less its mean among the rows with about the same prediction (quarters by
    rank), of two classes one component. Beside N stands that of pairs within these quarters: rows
    that agree there and exclude each other elsewhere have N near 0. O(n K) a label vector.
    """

    data: Predictions
    coupling: Coupling = "label"

    @cached_property
    def induced(self) -> Predictions:
        """The labels, or whether the likeliest is right: a question of two classes."""
        return self.data if self.coupling == "label" else TopK(1)(self.data)

    @cached_property
    def windows(self) -> list[tuple[IntArray, IntArray, IntArray]]:
        """Orders of all rows and of quarters, in which those near a row reach from first to end."""
        placed, h = timed(self.data)
        apart = (np.ptp(placed) + h) * quarters(position(self.induced))
        keys = placed, placed + apart
        orders = [np.argsort(key, kind="stable") for key in keys]
        sorted_keys = [key[order] for key, order in zip(keys, orders, strict=True)]
        return [
            (order, np.searchsorted(key, key - h, "right"), np.searchsorted(key, key + h))
            for key, order in zip(sorted_keys, orders, strict=True)
        ]

    def __call__(self, labels: IntArray) -> FloatArray:
        """Return N, of all and within quarters, for the labels that are ``induced``: (B, 2)."""
        data = self.induced
        w = np.ones(data.n) if data.weights is None else data.weights
        total = np.zeros((len(labels), 2))
        for k in range(1 if data.n_classes == 2 else data.n_classes):
            rows = w * centred(data, labels, k, w)
            for j, (order, first, end) in enumerate(self.windows):
                x = rows[:, order]
                running = np.pad(np.cumsum(x, axis=1), ((0, 0), (1, 0)))
                total[:, j] += (x * (running[:, end] - running[:, first] - x)).sum(axis=1)
        return total

    def degree(self, dependence: Degree | None) -> float:
        """Return λ, given or at its upper confidence limit: see :class:`SharedRedraws`.

        The limit within quarters counts where labels agree there more than the limit of all allows.
        The newest are remembered.
        """
        if isinstance(dependence, (int, float)):
            return dependence
        w = np.ones(0) if self.data.weights is None else self.data.weights
        rows = *timed(self.data), w, self.data.probs, self.data.labels
        return _DEGREES.of(self._limit, self.coupling, *rows)

    def _limit(self) -> float:
        @cache
        def replicates(step: int) -> FloatArray:
            draw = SeriesDrawer.of(self.induced, step / STEPS)
            return np.concatenate([self(labels) for labels in batches(draw, self.data.n)])

        observed = self(self.induced.labels[None, :])[0]
        most = observed + 1e-9 * np.abs(observed)
        overall = possible(most[0], lambda step: replicates(step)[:, 0])
        if (replicates(overall)[:, 1] <= most[1]).mean() > 1.0 - DISAGREE:
            overall = max(overall, possible(most[1], lambda step: replicates(step)[:, 1]))
        return overall / STEPS

    def inflation(self, dependence: Degree | None, centred: bool = False) -> float:
        """Return 1: sizes hold without an inflation, which would take half the power."""
        return 1.0

    def drawer(self, dependence: Degree | None) -> SeriesDrawer:
        """Return what draws labels with this dependence."""
        return SeriesDrawer.of(self.data, self.degree(dependence), self.coupling)


def timed(data: Predictions) -> tuple[IntArray, int]:
    """Return the places of the rows among the distinct times, and the horizon."""
    assert data.times is not None
    assert data.horizon is not None
    return data.times, data.horizon


def position(data: Predictions) -> FloatArray:
    """Return the prediction of the event, of more than two classes the largest."""
    return data.probs[:, 0] if data.n_classes == 2 else data.probs.max(axis=1)


def centred(data: Predictions, labels: IntArray, k: int, w: FloatArray) -> FloatArray:
    """Return residuals of class k, (B, n), less their weighted mean in quarters of prediction."""
    quarter = quarters(position(data))
    share = np.zeros((data.n, 4))
    share[np.arange(data.n), quarter] = w
    share /= np.maximum(share.sum(axis=0), 1e-300)
    x = (labels == k) - data.probs[:, k]
    return np.asarray(x - (x @ share)[:, quarter])
