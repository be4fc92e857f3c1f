"""Monte Carlo draws: the engine, the schemes, and labels drawn from the predictions.

:func:`simulate_by` gathers replicates that depend on seed and number only; :func:`simulate` runs
any function of a sampler. A scheme (:class:`RedrawLabels`, :class:`Bootstrap`, …) says what is
drawn.
"""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from functools import partial
from time import monotonic
from typing import Any, ClassVar, Protocol, TypedDict, TypeVar

import numpy as np
from numpy.typing import NDArray

from caltest._base import BoolArray, FloatArray, IntArray
from caltest._base.arrays import (
    MOST_REPLICATES,
    RNG,
    AnyArray,
    Ended,
    Values,
    is_whole,
    progress,
    whole,
)
from caltest._base.written import Written
from caltest.data import Predictions
from caltest.errors import StatisticError
from caltest.nulls.lanes import (
    GAMMA,
    UNIFORM_STEPS,
    FollowLanes,
    Seed,
    SharedLanes,
    counter_kernel,
    cumulative,
    in_words,
    kernel,
    mixed,
    shift_of,
    stream_keys,
)

#: Replicates that share a generator. Part of the results: changing it changes every number.
REPLICATES_A_STREAM = 32


#: Replicates that a compiled shortcut makes in one call; no number depends on it.
CHUNK = 256


#: Labels that are drawn together, of few classes and of many, whose tables are large; no number
#: depends on it.
LABELS_AT_ONCE, MANY_AT_ONCE = 2**18, 2**22


#: Replicates at least as large as the observed value after which sequential stopping stops.
EXCEEDING = 20


#: What a sampler draws, and what a block of replicates is made from.
Draw = TypeVar("Draw")


Chunk = TypeVar("Chunk")


#: Threads, or a function like ``map``; None for those that pay.
Workers = int | Callable[[Callable[[Any], Any], Iterable[Any]], Iterable[Any]] | None


#: Seconds after which what is compiled goes on in a thread for every core, if not told how many.
PATIENCE = 1.0


class Run(TypedDict):
    """Settings of a simulation: number of replicates, random generator or seed, and threads.

    Keyword arguments ``n_resamples`` (int), ``rng`` (a seed, a generator of NumPy, or None) and
    ``workers`` (a number of threads, a function like ``map``, or None to choose).
    """

    n_resamples: int
    rng: RNG
    workers: Workers


#: Says which replicates reach the observed value.
Reaching = Callable[[FloatArray], BoolArray]


class Shortcut(Protocol):
    """Protocol of resamplers: sources of replicates that depend on seed and number only.

    Replicates may then be computed in any order, by any number of threads.
    """

    def replicates(self, seed: Seed, first: int, count: int) -> FloatArray:
        """Return replicates ``first``, …, ``first + count − 1``, shape (count,) or (count, S).

        A replicate is the value of a statistic, or of S statistics, on redrawn data. ``seed`` is
        the pair of integers that keys the random stream.
        """


@dataclass(frozen=True, eq=False)
class Batches:
    """Resampler of any function of label vectors, evaluated batch by batch.

    ``drawer`` draws label vectors of ``n`` rows: it is called as ``draw(seed, first, count)``, the
    seed being a pair of integers, and returns the outcomes of replicates ``first``, …, of shape
    (count, n). ``batch`` maps b label vectors (b, n) to a value for each, (b,), or to S values, (b,
    S). A batch has at most ``labels_at_once`` labels, one label vector at least.
    """

    drawer: Drawer
    n: int
    batch: Callable[[AnyArray], FloatArray]
    labels_at_once: int = LABELS_AT_ONCE

    @classmethod
    def of(
        cls, scheme: LabelScheme, data: Predictions, batch: Callable[[AnyArray], FloatArray],
        draw: Drawer | None = None,
    ) -> Batches:  # fmt: skip
        """Return the resampler of a function of label vectors, for the rows of ``data``.

        ``scheme`` draws the label vectors, unless a generator ``draw`` is given. ``batch`` maps b
        label vectors (b, n) to a value for each, (b,), or to S values, (b, S); it is called on as
        many at once as fit in memory.
        """
        at_once = LABELS_AT_ONCE if data.n_classes <= LADDER_CLASSES else MANY_AT_ONCE
        return cls(draw or scheme.drawer(data), data.n, batch, at_once)

    def replicates(self, seed: Seed, first: int, count: int) -> FloatArray:
        """Return the values of this resampler's function on ``count`` drawn label vectors.

        Replicates are ``first``, …, ``first + count − 1``. The shape is (count,), or (count, S) for
        a function with S values. ``seed`` is the pair of integers that keys the random stream.
        """
        at_once = max(1, min(count, self.labels_at_once // self.n))
        room = np.empty((at_once, self.n), dtype=np.int64)
        parts = []
        for start in range(0, count, at_once):
            labels = self.drawer(seed, first + start, min(at_once, count - start), room).view()
            # As observed labels are: a kernel is then compiled for one kind of array, not two.
            labels.flags.writeable = False
            parts.append(np.asarray(self.batch(labels), dtype=np.float64))
        return np.concatenate(parts)


def simulate(
    evaluate: Callable[[Draw], float | FloatArray],
    sampler: Callable[[np.random.Generator], Draw],
    n_resamples: int,
    rng: RNG,
    workers: Workers,
    *,
    stop_when: Reaching | None = None,
) -> tuple[FloatArray, Ended]:
    """Evaluate a function on draws of a sampler, block by block, each with its own generator.

    ``sampler`` makes a draw from a NumPy generator and ``evaluate`` maps it to a number or S
    numbers, (S,). Returns the values of B draws, (B,) or (B, S), and how the run ended: "complete",
    "early" or "interrupted" by Ctrl-C. ``stop_when`` maps values to booleans, and ends the run
    early at the 20th True (Besag & Clifford 1991); None makes all draws. Numbers do not depend on
    ``workers``, a number of threads or a function like ``map`` (None for one), and a longer run
    begins as a shorter one. ``n_resamples`` is B, ``rng`` a seed or generator. StatisticError for
    values that are not finite.
    """
    check_run(n_resamples, rng, workers)
    root = _seed_sequence(rng)
    starts = range(0, n_resamples, REPLICATES_A_STREAM)
    tasks = ((root.spawn(1)[0], min(REPLICATES_A_STREAM, n_resamples - k)) for k in starts)
    # A function of somebody else's need not be safe in threads: one, unless told otherwise.
    workers = 1 if workers is None else workers
    return _gathered(partial(_block, evaluate, sampler), tasks, n_resamples, workers, stop_when)


def simulate_by(
    shortcut: Shortcut, n_resamples: int, rng: RNG, workers: Workers, *,
    stop_when: Reaching | None = None, at_once: int = CHUNK,
) -> tuple[FloatArray, Ended]:  # fmt: skip
    """Return B replicates of a resampler, (B,) or (B, S) for S values each, and how the run ended.

    ``shortcut`` is the resampler: it computes any range of replicates, each keyed by the seed and
    its own number. ``n_resamples`` is B, ``rng`` a seed or generator, and ``workers`` a number of
    threads, a function like ``map``, or None to choose. ``at_once`` replicates are computed in a
    task; ``stop_when`` maps values to booleans and ends the run at the 20th True (Besag & Clifford
    1991), None makes all. An end is "complete", "early" or "interrupted". StatisticError for values
    that are not finite.
    """
    check_run(n_resamples, rng, workers)
    (child,) = _seed_sequence(rng).spawn(1)
    if workers is None and isinstance(shortcut, Batches):
        workers = 1  # as for any function
    # These two words and its own number make the stream of a replicate.
    first, second = child.generate_state(2, np.uint64)
    block = partial(_chunk, shortcut, (int(first), int(second)))
    tasks = [(k, min(at_once, n_resamples - k)) for k in range(0, n_resamples, at_once)]
    return _gathered(block, tasks, n_resamples, workers, stop_when)


def check_run(n_resamples: object, rng: RNG, workers: object) -> None:
    """Validate n_resamples, rng and workers; StatisticError names the wrong one.

    It is called also where no simulation is needed in the end.
    """
    whole("n_resamples", n_resamples, most=MOST_REPLICATES)
    _seed_sequence(rng)
    if workers is None or callable(workers):
        return
    if not is_whole(workers) or workers < 1:
        raise StatisticError(f"workers must be a number ≥ 1 or a function like map, not {workers}")


def _seed_sequence(rng: RNG) -> np.random.SeedSequence:
    """Return the NumPy seed sequence of ``rng``, a seed or generator; StatisticError otherwise."""
    if isinstance(rng, (bool, np.random.RandomState)):
        kind = type(rng).__name__
        raise StatisticError(f"rng must be a seed or a numpy.random.Generator, not a {kind}")
    try:
        root: Any = np.random.default_rng(rng).bit_generator.seed_seq
    except (TypeError, ValueError) as error:
        raise StatisticError(f"rng must be a seed ≥ 0 or a Generator: {error}") from None
    return root


def _gathered(
    block: Callable[[Chunk], FloatArray], tasks: Iterable[Chunk], n_resamples: int,
    workers: Workers, stop_when: Reaching | None,
) -> tuple[FloatArray, Ended]:  # fmt: skip
    """Run the tasks of a simulation in order, with progress; return its values and how it ended.

    ``block`` computes the values of a task, and ``n_resamples`` is the number of values of all.
    ``stop_when`` maps values to booleans and ends the run at the 20th True, None never. ``workers``
    is a number of threads, a function like ``map``, or None to choose. Returns B values (B,), or S
    values each (B, S), and "complete", "early" or "interrupted": Ctrl-C keeps the replicates that
    are complete. StatisticError for values that are not finite.
    """
    done: list[FloatArray] = []
    ended: Ended = "complete"
    exceeding = 0
    with progress(n_resamples, "replicates") as advance:
        try:
            for values in _mapped(block, tasks, workers):
                if stop_when is not None:
                    hits = np.flatnonzero(stop_when(values))
                    if exceeding + hits.size >= EXCEEDING:
                        # Later values of the block are no part of the design: B ends at the 20th.
                        done.append(values[: hits[EXCEEDING - exceeding - 1] + 1])
                        ended = "early"
                        break
                    exceeding += hits.size
                done.append(values)
                advance(len(values))
        except KeyboardInterrupt:
            if not done:
                raise
            ended = "interrupted"
    values = np.concatenate(done)
    if not np.isfinite(values).all():
        bad = values[~np.isfinite(values)]
        raise StatisticError(
            f"the statistic returned {bad[0]} on {bad.size} of {len(values)} resampled data sets; "
            "it must be a finite number for every set of labels"
        )
    return values, ended


def _mapped(
    block: Callable[[Chunk], FloatArray], tasks: Iterable[Chunk], workers: Workers
) -> Iterator[FloatArray]:
    """Yield ``block(task)`` for all tasks in order, computed by ``workers``.

    These are a number of threads, or a function that is called like ``map``. With None a thread for
    each core is used once a second has passed.
    """
    if callable(workers):
        yield from workers(block, tasks)
    elif workers == 1:
        yield from map(block, tasks)
    elif workers is None:
        waiting, began = iter(tasks), monotonic()
        for task in waiting:
            yield block(task)
            if monotonic() - began > PATIENCE:
                break
        yield from _mapped(block, waiting, _cores())
    else:
        pool = ThreadPoolExecutor(int(workers))
        try:
            yield from pool.map(block, tasks)
        finally:
            pool.shutdown(wait=True, cancel_futures=True)


def _cores() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _chunk(shortcut: Shortcut, seed: Seed, task: tuple[int, int]) -> FloatArray:
    return shortcut.replicates(seed, *task)


def _block(
    evaluate: Callable[[Draw], float | FloatArray],
    sampler: Callable[[np.random.Generator], Draw],
    task: tuple[np.random.SeedSequence, int],
) -> FloatArray:
    """Return the values, (b,) or (b, S), of a function on b draws of a sampler.

    ``sampler`` makes a draw from a NumPy generator, and ``evaluate`` maps it to a number or S
    numbers, (S,). ``task`` is (seed sequence of the generator of this block, b).
    """
    seed, size = task
    rng = np.random.Generator(np.random.PCG64DXSM(seed))
    return np.array([evaluate(sampler(rng)) for _ in range(size)], dtype=np.float64)


# ------------------------------------------------------------------------------
# Ways to draw data sets like the observed one.


#: Draws one data set.
Sampler = Callable[[np.random.Generator], Predictions]


class Drawer(Protocol):
    """Protocol of generators of outcomes of n rows, each of which depends on seed and number only.

    A function that is called as ``draw(seed, first, count)``, the seed being a pair of
    integers, and returns the outcomes of replicates ``first``, …, of shape (count, n).
    """

    def __call__(self, seed: Seed, first: int, count: int, out: IntArray | None = None) -> AnyArray:
        """Return the outcomes of replicates ``first``, …, ``first + count − 1``, shape (count, n).

        ``seed`` is the pair of integers that keys the random stream. Outcomes, such as labels, are
        written into ``out`` (≥ count, n) if it is given.
        """


class Scheme(ABC, Written):
    """Base class of redraw schemes: ways to generate data sets like the observed one.

    A :class:`LabelScheme` keeps the predictions, a :class:`RowScheme` does not.
    """

    #: Whether labels are drawn from predictions, as the null distribution of a test needs.
    calibrated: ClassVar[bool] = True
    #: Whether rows of one cluster keep their dependence in what is drawn.
    takes_clusters: ClassVar[bool] = False
    essential: ClassVar[int] = 0


class LabelScheme(Scheme):
    """Base class of schemes that keep the predictions and redraw label vectors."""

    def each(self, data: Predictions) -> tuple[LabelScheme, ...]:
        """Return the schemes to try for these data, of which the test takes the largest p-value.

        By default it is this scheme alone.
        """
        return (self,)

    @abstractmethod
    def drawer(self, data: Predictions) -> Drawer:
        """Return a generator of label vectors for these data, which threads may share.

        It is called as ``draw(seed, first, count)``, the seed being a pair of integers, and returns
        the labels of replicates ``first``, …, of shape (count, n).
        """


class RowScheme(Scheme):
    """Base class of schemes that resample whole data sets, predictions included."""

    @abstractmethod
    def sampler(self, data: Predictions) -> Sampler:
        """Return a sampler of data sets, which can be pickled and shared by threads.

        It maps a NumPy generator to predictions with labels.
        """

    def label_chances(self, data: Predictions) -> FloatArray | None:
        """Return P(label) of each row, (n, K), if rows are resampled independently; None otherwise.

        It is the law of the label of a resampled row: for the bootstrap 1 for the observed label
        and 0 for all others. The base class returns None.
        """
        return None


@dataclass(frozen=True, repr=False)
class RedrawLabels(LabelScheme):
    """Monte Carlo null: keep the predictions, and draw labels from them.

    The p-value (1 + b) / (1 + B) is valid for every n, K and statistic, and for every partition
    that depends on the predictions only.
    """

    def drawer(self, data: Predictions) -> Drawer:
        """Return a generator of label vectors; preparation costs O(n K).

        It is called as ``draw(seed, first, count)``, the seed being a pair of integers, and returns
        the outcomes of replicates ``first``, …, of shape (count, n).
        """
        if data.n_classes == 2:
            return SharedLanes.independent(data.probs)
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
        """Return a sampler of data sets, which maps a NumPy generator to n predictions with labels.

        The cumulative probabilities of every row are prepared once, O(n K).
        """
        return partial(_resample_consistently, data, LabelSampler.of(data.probs))

    def label_chances(self, data: Predictions) -> FloatArray:
        return data.probs


@dataclass(frozen=True, eq=False, repr=False)
class Bootstrap(RowScheme):
    """Resample rows with their labels: the variation of the statistic from sample to sample.

    n rows are drawn with replacement, never stratified by outcome, or whole ``clusters`` (by
    default the data's own), as many as there are, so that the number of rows varies;
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
        """Return the data with the clusters that are resampled whole, if the scheme has its own.

        Without its own they are returned unchanged. InvalidPredictionsError for clusters that do
        not fit.
        """
        return data if self.clusters is None else Predictions.of(data, clusters=self.clusters)

    def sampler(self, data: Predictions) -> Sampler:
        """Return a sampler of rows, or of whole clusters, with replacement.

        It maps a NumPy generator to predictions with labels. StatisticError for fewer than two
        clusters, and for two columns of clusters.
        """
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


# ------------------------------------------------------------------------------
# Labels redrawn from the predictions, many replicates at once.


#: Up to this many classes every threshold of a row is compared, above they are looked up.
LADDER_CLASSES = 40


@dataclass(frozen=True, eq=False)
class LabelSampler:
    """Map from uniform random numbers to labels by exact inversion.

    Label k is drawn when u lies in [c_{k−1}, c_k), with c the cumulative probabilities of the row;
    a label of probability 0 is never drawn. ``cumulative`` (n, K) are the c of n rows, for two
    classes the first column alone.
    """

    cumulative: FloatArray

    @classmethod
    def of(cls, probs: FloatArray) -> LabelSampler:
        sums = cumulative(probs)
        return cls(np.ascontiguousarray(sums[:, :1]) if probs.shape[1] == 2 else sums)

    def __call__(self, uniforms: FloatArray, rows: IntArray | None = None) -> IntArray:
        """Return a label (0 to K − 1) for each of m uniform random numbers, (m,). O(m K).

        ``uniforms`` (m,) are in [0, 1), and ``rows`` (m,) the indices of the rows whose
        probabilities apply, by default 0 … m − 1.
        """
        labels = np.zeros(uniforms.size, dtype=np.int64)
        for upto in self.cumulative.T:  # the number of cumulative probabilities passed
            labels += uniforms >= (upto if rows is None else upto[rows])
        return labels


@dataclass(frozen=True, eq=False)
class LabelDrawer:
    """Generator of label vectors for K > 2 classes; a seed and a number fix each replicate.

    Label k of row i is drawn when the uniform U(seed, r, i) lies in [c_{k−1}, c_k), with r the
    number of the replicate and c the cumulative probabilities of the row. Uniforms have 53 bits,
    and a class of probability 0 is never drawn. O(n K) once; a label costs some 1 ns and 0.2 ns for
    each class, and 5 ns above 40 classes by indexed search (Chen & Asau 1974). ``thresholds`` are
    the c in units of 2⁻⁵³, (n, K) or, for 40 classes or fewer, (K', n) with K' ≥ K − 1; ``guide``
    (n, W) is the index of the search, empty (W = 0) for 40 classes or fewer.
    """

    thresholds: IntArray = field(repr=False)
    guide: NDArray[np.int32] = field(repr=False)

    @classmethod
    def of(cls, probs: FloatArray) -> LabelDrawer:
        """Return the generator of labels from the predictions ``probs``, shape (n, K), K > 2."""
        guided = probs.shape[1] > LADDER_CLASSES
        thresholds, guide = label_tables(probs, np.arange(len(probs)), guided)
        if not guided:  # by fours, the last of them perhaps with thresholds that no draw passes
            rows = -(-(probs.shape[1] - 1) // 4) * 4
            padded = np.full((rows, len(probs)), UNIFORM_STEPS)
            padded[: probs.shape[1] - 1] = thresholds[:, :-1].T
            thresholds = padded
        return cls(thresholds, guide)

    def __call__(self, seed: Seed, first: int, count: int, out: IntArray | None = None) -> IntArray:
        """Return the labels of ``count`` replicates, (count, n), written into ``out`` if given.

        ``seed`` is the pair of integers that keys the random stream, ``first`` the number of the
        first replicate. O(n) for a replicate.
        """
        labels = np.empty((count, len(self.guide)), dtype=np.int64) if out is None else out[:count]
        counters = stream_keys(seed, first, count)[:2]
        if self.guide.shape[1] > 0:
            _look_up(self.thresholds, self.guide, *counters, labels)
        else:
            _climb(self.thresholds, *counters, np.empty(512, dtype=np.int64), labels)
        return labels


@counter_kernel
def _climb(thresholds, key, twist, draw, labels_out):  # type: ignore[no-untyped-def]
    # O(n K) per replicate, in vector instructions: a label is the number of thresholds passed.
    # The thresholds of a stretch of rows, as long as ``draw``, stay in the nearest cache.
    n = labels_out.shape[1]
    for start in range(0, n, draw.size):
        size = min(draw.size, n - start)
        rows = slice(start, start + size)
        for r in range(key.size):
            counter, twisted = key[r] + GAMMA * np.uint64(start), twist[r]
            for i in range(size):
                draw[i] = mixed(counter, twisted)
                counter += GAMMA
            label = labels_out[r, rows]
            for i in range(size):
                label[i] = 0
            for k in range(0, thresholds.shape[0], 4):
                a, b = thresholds[k, rows], thresholds[k + 1, rows]
                c, d = thresholds[k + 2, rows], thresholds[k + 3, rows]
                for i in range(size):
                    z = draw[i]
                    passed = np.int64(z >= a[i]) + np.int64(z >= b[i])
                    label[i] += passed + np.int64(z >= c[i]) + np.int64(z >= d[i])


@counter_kernel
def _look_up(thresholds, guide, key, twist, labels_out):  # type: ignore[no-untyped-def]
    # O(n) per replicate; rows are outside, because a row's tables stay in the nearest cache.
    shift = shift_of(guide.shape[1])
    draw = np.empty(key.size, dtype=np.int64)
    for i in range(labels_out.shape[1]):
        for r in range(key.size):
            draw[r] = mixed(key[r] + GAMMA * np.uint64(i), twist[r])
        for r in range(key.size):
            k = np.int64(guide[i, draw[r] >> shift])
            # One step is mostly enough, and takes no branch that could be mispredicted.
            k += thresholds[i, k] <= draw[r]
            while thresholds[i, k] <= draw[r]:
                k += 1
            labels_out[r, i] = k


def label_tables(
    probs: FloatArray, order: IntArray, guided: bool = True
) -> tuple[IntArray, NDArray[np.int32]]:
    """Return (thresholds, guide), tables from which labels are drawn by 53 random bits.

    ``order`` (n,) lists the rows of ``probs`` (n, K). The thresholds (n, K) are cumulative
    probabilities in units of 2⁻⁵³: label k is drawn from the (k − 1)-th on and below the k-th. The
    guide (n, W) holds, for W equal parts of the range of a draw, the first label to compare with
    it; W = 0 unless ``guided``.
    """
    n, n_classes = probs.shape
    # Label k is drawn when thresholds[k - 1] <= draw < thresholds[k].
    thresholds = in_words(cumulative(probs[order]))
    guide = np.empty((n, guided << (n_classes - 1).bit_length()), dtype=np.int32)
    if guided:
        _guide(thresholds, guide)
    return thresholds, guide


@kernel
def _guide(thresholds, guide_out):  # type: ignore[no-untyped-def]
    # O(n K): guide[j] is the label of the smallest draw in the j-th of equal parts.
    width = guide_out.shape[1]
    for i in range(thresholds.shape[0]):
        k = 0
        for j in range(width):
            while thresholds[i, k] <= j * (UNIFORM_STEPS // width):
                k += 1
            guide_out[i, j] = k


# ------------------------------------------------------------------------------
# Follow-up redrawn with the outcomes that were predicted, and its weights.


@dataclass(frozen=True, repr=False)
class RedrawFollowup(Scheme):
    """Keep the predictions, draw outcomes from them and follow-up from the observed times.

    The null of :class:`Followup`. W is the inverse probability that an outcome is known, and Ĝ the
    Kaplan–Meier curve of censoring. A share Σ W 1{competing} / Σ W 1{not the event} of the rows
    without the event has a competing one. Times of events are drawn from the observed times of
    their kind in the stratum, with probabilities ∝ W, or from all strata where there are fewer than
    5, and times of censoring from Ĝ, whose mass beyond the horizon is free. Weights and residuals
    of a draw are computed anew: Ĝ is refitted. Without censored rows this is :class:`RedrawLabels`.

    Notes
    -----
    O(n log n) once; some 60 ns a row and draw. Weights that are kept, residuals that are multiplied
    by random signs, and merged strata were simulated, and reject calibrated models too often.
    """

    def drawer(self, data: Predictions) -> FollowLanes:
        """Return a generator of censored outcomes, with the laws of times in every stratum.

        It is called as ``draw(seed, first, count)``; an entry of (count, n) is the weight W of a
        row with the event, −W of one without, and 0 where the outcome is unknown, with W the
        inverse probability that it is known. StatisticError for data without follow-up.
        """
        if data.followup is None:
            raise StatisticError(f"{self!r} is for rows with follow-up: pass Followup(…) as labels")
        return FollowLanes.of(data.risks, data.censoring)
