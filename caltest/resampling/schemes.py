"""Ways to draw data sets like the observed one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar, Protocol

import numpy as np

from caltest._numba import kernel
from caltest.errors import StatisticError
from caltest.predictions import FloatArray, IntArray, Predictions

DataSet = tuple[FloatArray, IntArray]
#: Draws one data set: ``rng -> (probs, labels)``.
Sampler = Callable[[np.random.Generator], DataSet]


class Shortcut(Protocol):
    """A compiled way to the replicates of one statistic under one resampler."""

    def replicates(self, seed: tuple[int, int], first: int, count: int) -> FloatArray:
        """Return some replicates; each depends on the seed and its own number only."""


class Resampler(Protocol):
    """A way to draw data sets like the observed one."""

    #: Whether every data set has the observed predictions, so that only labels are new.
    fixes_predictions: ClassVar[bool]
    #: Whether labels are drawn from predictions, as the null distribution of a test needs.
    calibrated: ClassVar[bool]

    def sampler(self, data: Predictions) -> Sampler:
        """Prepare to draw; what is returned can be pickled and shared by threads."""

    def shortcut(self, fixed: Any, data: Predictions) -> Shortcut | None:
        """Return a faster way to the replicates of a statistic, where it offers one."""


@dataclass(frozen=True)
class RedrawLabels:
    """Keep the predictions, draw labels from them: what a calibrated model would have shown.

    Given the predictions, the observed labels of a calibrated model and the redrawn ones are
    exchangeable, so the p-value (1 + b) / (1 + B) is valid for every n, K, statistic and partition
    that looks at the predictions only.
    """

    fixes_predictions: ClassVar[bool] = True
    calibrated: ClassVar[bool] = True

    def sampler(self, data: Predictions) -> Sampler:
        """Prepare the cumulative probabilities of every row, O(n K)."""
        return partial(_redraw, data.probs, LabelSampler.of(data.probs))

    def shortcut(self, fixed: Any, data: Predictions) -> Shortcut | None:
        """Ask the statistic for ``redraws``."""
        return fixed.redraws(data.probs) if hasattr(fixed, "redraws") else None


@dataclass(frozen=True)
class ConsistencyResampling:
    """Bootstrap the predictions, then draw labels from them, as published.

    The scheme of Bröcker & Smith (2007) and Vaicenavicius et al. (2019, §4.2); partitions that
    depend on the predictions are made anew for every replicate. A bootstrap sample repeats some
    predictions and misses others, so fewer cells are occupied and the simulated error is too
    small: with few predictions per cell the test rejects calibrated models far too often. Use
    :class:`RedrawLabels` unless you replicate a published number.
    """

    fixes_predictions: ClassVar[bool] = False
    calibrated: ClassVar[bool] = True

    def sampler(self, data: Predictions) -> Sampler:
        """Prepare the cumulative probabilities of every row, O(n K)."""
        return partial(_resample_consistently, data.probs, LabelSampler.of(data.probs))

    def shortcut(self, fixed: Any, data: Predictions) -> Shortcut | None:
        """Ask the statistic for ``resamples``."""
        return fixed.resamples(data.probs) if hasattr(fixed, "resamples") else None


@dataclass(frozen=True, eq=False)
class Bootstrap:
    """Resample rows with their labels: how much the statistic would vary from sample to sample.

    Rows are drawn with replacement, n of them, never stratified by outcome: how many events a
    sample has is part of what varies. Partitions that depend on the predictions are made anew.
    This is no null distribution (the data sets are as miscalibrated as the observed one);
    :func:`calibration_test` refuses it.

    Parameters
    ----------
    groups : array_like of shape (n,), optional
        The cluster of every row, by number or name: patients with several rows, say. Clusters are
        then drawn whole, as many as there are, so that the number of rows varies.

    Raises
    ------
    StatisticError
        When there are fewer than two clusters, or not one for every row.

    Notes
    -----
    O(n) per data set, plus the statistic. Binned errors with fixed bins count rows instead of
    copying them, when rows are drawn one by one: some 0.4 ns per row.

    References
    ----------
    Efron, "Bootstrap methods: another look at the jackknife", Ann. Statist. 7 (1979); for clusters
    Davison & Hinkley, "Bootstrap Methods and their Application" (1997), §3.8.

    Examples
    --------
    >>> import caltest as ct
    >>> data = ct.TopK(1)(ct.examples.digits("overfit"))
    >>> law = ct.replicate(ct.ECE(), Bootstrap(), data, 999, rng=1)
    >>> bool(law.ppf(0.025) < law.mean() < law.ppf(0.975))
    True
    """

    groups: Any = None

    fixes_predictions: ClassVar[bool] = False
    calibrated: ClassVar[bool] = False

    def sampler(self, data: Predictions) -> Sampler:
        """Prepare to draw rows, or whole clusters of rows."""
        if self.groups is None:
            return partial(_resample_rows, data.probs, data.labels)
        groups = np.asarray(self.groups)
        if groups.shape != (data.n,):
            raise StatisticError(
                f"groups must name the cluster of each of the {data.n} rows; its shape is "
                f"{groups.shape}"
            )
        _, codes, sizes = np.unique(groups, return_inverse=True, return_counts=True)
        if sizes.size < 2:
            raise StatisticError("a bootstrap of clusters needs at least two of them")
        order = np.argsort(codes, kind="stable")
        return partial(_resample_clusters, data.probs[order], data.labels[order], sizes)

    def shortcut(self, fixed: Any, data: Predictions) -> Shortcut | None:
        """Ask the statistic for ``bootstraps``, when rows are drawn one by one."""
        if self.groups is not None or not hasattr(fixed, "bootstraps"):
            return None
        return fixed.bootstraps(data.probs, data.labels)

    def __repr__(self) -> str:
        if self.groups is None:
            return "Bootstrap()"
        return f"Bootstrap(groups=<{np.unique(self.groups).size} clusters>)"


def _resample_rows(probs: FloatArray, labels: IntArray, rng: np.random.Generator) -> DataSet:
    rows = rng.integers(labels.size, size=labels.size)
    return probs[rows], labels[rows]


def _resample_clusters(
    probs: FloatArray, labels: IntArray, sizes: IntArray, rng: np.random.Generator
) -> DataSet:
    drawn = rng.integers(sizes.size, size=sizes.size)
    ends = np.cumsum(sizes[drawn])
    shift = (np.cumsum(sizes) - sizes)[drawn] - (ends - sizes[drawn])
    rows = np.arange(ends[-1]) + np.repeat(shift, sizes[drawn])
    return probs[rows], labels[rows]


def _redraw(probs: FloatArray, draw: LabelSampler, rng: np.random.Generator) -> DataSet:
    return probs, draw(rng.random(len(probs)))


def _resample_consistently(
    probs: FloatArray, draw: LabelSampler, rng: np.random.Generator
) -> DataSet:
    rows = rng.integers(len(probs), size=len(probs))
    return probs[rows], draw(rng.random(len(probs)), rows)


@dataclass(frozen=True, eq=False)
class LabelSampler:
    """Turns uniforms into labels by inversion, exactly.

    Label k is drawn when u lies in [c_{k−1}, c_k), c the cumulative probabilities of the row, so
    a label of probability 0 never is.
    """

    cumulative: FloatArray

    @classmethod
    def of(cls, probs: FloatArray) -> LabelSampler:
        """Prepare the rows of ``probs``."""
        cumulative = np.cumsum(probs, axis=1)
        # Rounding may leave the last sum below 1: the last possible label takes what is left.
        last = probs.shape[1] - 1 - np.argmax(probs[:, ::-1] > 0.0, axis=1)
        cumulative[np.arange(probs.shape[1]) >= last[:, None]] = 1.0
        if probs.shape[1] == 2:
            cumulative = np.ascontiguousarray(cumulative[:, :1])
        return cls(cumulative)

    def __call__(self, uniforms: FloatArray, rows: IntArray | None = None) -> IntArray:
        """Return a label for every uniform; ``rows`` names its row, by default its own."""
        if self.cumulative.shape[1] == 1:
            first = self.cumulative[:, 0] if rows is None else self.cumulative[rows, 0]
            return (uniforms >= first).astype(np.int64)
        labels = np.empty(uniforms.size, dtype=np.int64)
        _invert(
            self.cumulative, np.arange(uniforms.size) if rows is None else rows, uniforms, labels
        )
        return labels


@kernel
def _invert(cumulative, rows, uniforms, labels_out):  # type: ignore[no-untyped-def]
    # Binary search: the first class whose cumulative probability exceeds u.
    last = cumulative.shape[1] - 1
    for i in range(uniforms.size):
        low, high = 0, last
        while low < high:
            middle = (low + high) // 2
            if cumulative[rows[i], middle] > uniforms[i]:
                high = middle
            else:
                low = middle + 1
        labels_out[i] = low
