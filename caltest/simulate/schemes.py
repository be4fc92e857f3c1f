"""Ways to draw data sets like the observed one."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import ClassVar, Protocol

import numpy as np

from caltest._base.arrays import AnyArray, Values
from caltest._base.written import Written
from caltest.errors import StatisticError
from caltest.predictions import FloatArray, IntArray, Predictions
from caltest.simulate.labels import LabelDrawer, LabelSampler
from caltest.simulate.streams import Seed

#: Draws one data set.
Sampler = Callable[[np.random.Generator], Predictions]


class Drawer(Protocol):
    """Draws outcomes, mostly labels, each of which depends on the seed and its number only."""

    def __call__(self, seed: Seed, first: int, count: int, out: IntArray | None = None) -> AnyArray:
        """Return those of replicates ``first``, …, ``first + count − 1``: (count, n)."""


class Scheme(ABC, Written):
    """A way to draw data sets like the observed one.

    A :class:`LabelScheme` keeps the predictions, a :class:`RowScheme` does not.
    """

    #: Whether labels are drawn from predictions, as the null distribution of a test needs.
    calibrated: ClassVar[bool] = True
    #: Whether rows of one cluster keep their dependence in what is drawn.
    takes_clusters: ClassVar[bool] = False
    essential: ClassVar[int] = 0


class LabelScheme(Scheme):
    """A scheme that keeps the predictions and draws label vectors for them."""

    def each(self, data: Predictions) -> tuple[LabelScheme, ...]:
        """Return the schemes to try, of which the one that draws the widest counts."""
        return (self,)

    @abstractmethod
    def drawer(self, data: Predictions) -> Drawer:
        """Prepare to draw label vectors, in batches; what is returned is shared by threads."""


class RowScheme(Scheme):
    """A scheme that draws whole data sets."""

    @abstractmethod
    def sampler(self, data: Predictions) -> Sampler:
        """Prepare to draw; what is returned can be pickled and shared by threads."""

    def label_chances(self, data: Predictions) -> FloatArray | None:
        """Return P(label) (n, K) of rows that are drawn one by one; None where they are not."""
        return None


@dataclass(frozen=True, repr=False)
class RedrawLabels(LabelScheme):
    """Keep the predictions, draw labels from them: what a calibrated model would have shown.

    The p-value (1 + b) / (1 + B) is valid for every n, K, statistic and partition that looks at the
    predictions only.
    """

    def drawer(self, data: Predictions) -> LabelDrawer:
        """Prepare the cumulative probabilities of every row, O(n K)."""
        return LabelDrawer.of(data.probs)


@dataclass(frozen=True, repr=False)
class ConsistencyResampling(RowScheme):
    """Bootstrap the predictions, then draw labels from them, as published.

    The scheme of Bröcker & Smith (2007) and Vaicenavicius et al. (2019, §4.2); partitions that
    depend on the predictions are made anew. A bootstrap sample occupies fewer cells, so with few
    predictions per cell the test rejects calibrated models far too often: use
    :class:`RedrawLabels` unless you replicate a published number.
    """

    def sampler(self, data: Predictions) -> Sampler:
        """Prepare the cumulative probabilities of every row, O(n K)."""
        return partial(_resample_consistently, data, LabelSampler.of(data.probs))

    def label_chances(self, data: Predictions) -> FloatArray:
        return data.probs


@dataclass(frozen=True, eq=False, repr=False)
class Bootstrap(RowScheme):
    """Resample rows with their labels: how much the statistic would vary from sample to sample.

    n rows are drawn with replacement, never stratified by outcome, or whole ``clusters`` (by
    default those of the data), as many as there are, so that the number of rows varies;
    StatisticError for fewer than two. Partitions that depend on the predictions are made anew.
    This is no null distribution; :func:`calibration_test` refuses it. O(n) per data set, plus the
    statistic. Efron, Annals of Statistics 7 (1979); Davison & Hinkley, "Bootstrap Methods and their
    Application" (1997), §3.8.

    Examples
    --------
    >>> import caltest as ct
    >>> data = ct.TopK(1)(ct.examples.digits("overfit"))
    >>> law = ct.replicate(data, ct.ECE(), Bootstrap(), n_resamples=999, rng=1)
    >>> bool(law.ppf(0.025) < law.mean() < law.ppf(0.975))
    True
    """

    clusters: Values | None = None
    calibrated: ClassVar[bool] = False
    takes_clusters: ClassVar[bool] = True

    def clustered(self, data: Predictions) -> Predictions:
        """Return the data with the clusters that are to be drawn whole."""
        return data if self.clusters is None else Predictions.of(data, clusters=self.clusters)

    def sampler(self, data: Predictions) -> Sampler:
        """Prepare to draw rows, or whole clusters of rows."""
        data = self.clustered(data)
        if data.crossed is not None:
            raise StatisticError("a bootstrap does not take two columns of clusters")
        if data.clusters is None:
            return partial(_resample_rows, data)
        _, codes, sizes = np.unique(data.clusters, return_inverse=True, return_counts=True)
        if sizes.size < 2:
            raise StatisticError("a bootstrap of clusters needs at least two of them")
        return partial(_resample_clusters, data.take(np.argsort(codes, kind="stable")), sizes)

    def label_chances(self, data: Predictions) -> FloatArray | None:
        if self.clustered(data).clusters is not None:
            return None
        return (data.labels[:, None] == np.arange(data.n_classes)).astype(np.float64)

    def __repr__(self) -> str:
        if self.clusters is None:
            return "Bootstrap()"
        return f"Bootstrap(clusters=<{np.unique(np.asarray(self.clusters)).size}>)"


def _resample_rows(data: Predictions, rng: np.random.Generator) -> Predictions:
    return data.take(rng.integers(data.n, size=data.n))


def _resample_clusters(data: Predictions, sizes: IntArray, rng: np.random.Generator) -> Predictions:
    clusters = rng.integers(sizes.size, size=sizes.size)
    ends = np.cumsum(sizes[clusters])
    # From where rows of a cluster lie in the sample to where they lie in the data.
    shift = (np.cumsum(sizes) - sizes)[clusters] - (ends - sizes[clusters])
    return data.take(np.arange(ends[-1]) + np.repeat(shift, sizes[clusters]))


def _resample_consistently(
    data: Predictions, draw: LabelSampler, rng: np.random.Generator
) -> Predictions:
    rows = rng.integers(data.n, size=data.n)
    return replace(data.take(rows), labels=draw(rng.random(data.n), rows))
