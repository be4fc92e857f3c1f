"""Resampling: what chance would do, and the engine that asks it again and again."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar, Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from caltest._numba import kernel
from caltest._progress import progress
from caltest.errors import StatisticError
from caltest.nulls import SimulatedNull
from caltest.predictions import FloatArray, IntArray, Predictions
from caltest.statistics import Statistic, given

#: Replicates that share a random stream. Part of the results: changing it changes every number.
BLOCK = 32
#: Replicates that a shortcut makes in one call; no number depends on it.
CHUNK = 128
#: Replicates at least as large as the observed value after which sequential stopping stops.
EXCEEDING = 20

Ended = Literal["complete", "early", "interrupted"]
Workers = int | Callable[[Callable[[Any], Any], Iterable[Any]], Iterable[Any]]


DataSet = tuple[FloatArray, IntArray]
#: Draws one data set: ``rng -> (probs, labels)``.
Sampler = Callable[[np.random.Generator], DataSet]
#: Says which replicates reach the observed value.
Reaching = Callable[[FloatArray], NDArray[np.bool_]]


class Resampler(Protocol):
    """A way to draw data sets like the observed one."""

    #: Whether every data set has the observed predictions, so that only labels are new.
    fixes_predictions: ClassVar[bool]

    def sampler(self, data: Predictions) -> Sampler:
        """Prepare to draw; what is returned can be pickled and shared by threads."""

    def shortcut(self, fixed: Any, probs: FloatArray) -> Shortcut | None:
        """Return a faster way to the replicates of a statistic, where it offers one."""


class Shortcut(Protocol):
    """A compiled way to the replicates of one statistic under one resampler."""

    def replicates(self, seed: tuple[int, int], first: int, count: int) -> FloatArray:
        """Return some replicates; each depends on the seed and its own number only."""


@dataclass(frozen=True)
class RedrawLabels:
    """Keep the predictions, draw labels from them: what a calibrated model would have shown.

    Given the predictions, the observed labels of a calibrated model and the redrawn ones are
    exchangeable, so the p-value (1 + b) / (1 + B) is valid for every n, K, statistic and partition
    that looks at the predictions only.
    """

    fixes_predictions: ClassVar[bool] = True

    def sampler(self, data: Predictions) -> Sampler:
        """Prepare the cumulative probabilities of every row, O(n K)."""
        return partial(_redraw, data.probs, LabelSampler.of(data.probs))

    def shortcut(self, fixed: Any, probs: FloatArray) -> Shortcut | None:
        """Ask the statistic for ``redraws``."""
        return fixed.redraws(probs) if hasattr(fixed, "redraws") else None


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

    def sampler(self, data: Predictions) -> Sampler:
        """Prepare the cumulative probabilities of every row, O(n K)."""
        return partial(_resample_consistently, data.probs, LabelSampler.of(data.probs))

    def shortcut(self, fixed: Any, probs: FloatArray) -> Shortcut | None:
        """Ask the statistic for ``resamples``."""
        return fixed.resamples(probs) if hasattr(fixed, "resamples") else None


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


def replicate(
    statistic: Statistic,
    resampler: Resampler,
    data: Predictions,
    n_resamples: int,
    *,
    rng: Any = None,
    workers: Workers = 1,
) -> SimulatedNull:
    """Evaluate a statistic on resampled data: the engine behind every verb.

    Parameters
    ----------
    statistic
        A function ``(probs, labels) -> float``.
    resampler : RedrawLabels or ConsistencyResampling
        Where the data sets come from.
    data : Predictions
        The observed data, seen through the lens.
    n_resamples : int
        Number of replicates, at least 1.
    rng : None, int, Generator, SeedSequence or BitGenerator
        As :func:`numpy.random.default_rng`. Blocks of 32 replicates have a stream of their own,
        so the numbers do not depend on ``workers``, and the first replicates of a longer run are
        those of a shorter one.
    workers : int or callable, default 1
        Number of threads, or a function like :func:`map` (such as the ``map`` of a process pool).

    Returns
    -------
    SimulatedNull
        The replicates; its ``ended`` says whether Ctrl-C made them fewer.

    Raises
    ------
    StatisticError
        When a replicate is not a finite number.
    """
    fixed = resampler.fixes_predictions
    evaluate = on_labels(given(statistic, data.probs)) if fixed else on_data(statistic)
    return SimulatedNull(*simulate(evaluate, resampler.sampler(data), n_resamples, rng, workers))


def on_labels(fixed: Callable[[IntArray], Any]) -> Callable[[DataSet], Any]:
    """Make a function of the labels a function of data sets."""
    return partial(_second, fixed)


def on_data(statistic: Statistic) -> Callable[[DataSet], Any]:
    """Make a statistic a function of data sets."""
    return partial(_both, statistic)


def _second(fixed: Callable[[IntArray], Any], draw: DataSet) -> Any:
    return fixed(draw[1])


def _both(statistic: Statistic, draw: DataSet) -> float:
    return statistic(*draw)


def simulate(
    evaluate: Callable[[DataSet], Any],
    sampler: Sampler,
    n_resamples: int,
    rng: Any,
    workers: Workers,
    *,
    stop_when: Reaching | None = None,
) -> tuple[FloatArray, Ended]:
    """Evaluate a function of data sets again and again: block by block, each with its stream.

    Returns the values, of shape ``(B,)`` or ``(B, S)`` as the function returns numbers or vectors,
    and how the run ended: with ``stop_when``, early at the 20th value for which it holds (Besag &
    Clifford 1991). The other parameters are those of :func:`replicate`.
    """
    sizes = _sizes(n_resamples, BLOCK)
    root = _seed_sequence(rng)
    block = partial(_block, evaluate, sampler)
    tasks = ((root.spawn(1)[0], size) for size in sizes)
    return _gathered(block, tasks, n_resamples, workers, stop_when)


def simulate_by(
    shortcut: Shortcut,
    n_resamples: int,
    rng: Any,
    workers: Workers,
    *,
    stop_when: Reaching | None = None,
) -> tuple[FloatArray, Ended]:
    """Do the same by a shortcut, whose replicates are keyed by the seed and their own number."""
    sizes = _sizes(n_resamples, CHUNK)
    (child,) = _seed_sequence(rng).spawn(1)
    first, second = child.generate_state(2, np.uint64)
    block = partial(_chunk, shortcut, (int(first), int(second)))
    tasks = ((CHUNK * j, size) for j, size in enumerate(sizes))
    return _gathered(block, tasks, n_resamples, workers, stop_when)


def _seed_sequence(rng: Any) -> Any:
    if isinstance(rng, np.random.RandomState):
        raise StatisticError("rng must be a seed or a numpy.random.Generator, not a RandomState")
    try:
        root: Any = np.random.default_rng(rng).bit_generator.seed_seq
    except (TypeError, ValueError) as error:
        raise StatisticError(f"rng must be a seed ≥ 0 or a Generator: {error}") from None
    return root


def _sizes(n_resamples: int, at_once: int) -> list[int]:
    if not isinstance(n_resamples, (int, np.integer)) or n_resamples < 1:
        raise StatisticError(f"n_resamples must be a whole number ≥ 1, not {n_resamples!r}")
    return [min(at_once, n_resamples - start) for start in range(0, n_resamples, at_once)]


def _gathered(
    block: Callable[[Any], FloatArray],
    tasks: Iterable[Any],
    n_resamples: int,
    workers: Workers,
    stop_when: Reaching | None,
) -> tuple[FloatArray, Ended]:
    """Run the tasks in order, with progress, until the end, an early stop or Ctrl-C."""
    done: list[FloatArray] = []
    ended: Ended = "complete"
    exceeding = 0
    with progress(n_resamples, "replicates") as advance:
        try:
            for values in _mapped(block, tasks, workers):
                if stop_when is not None:
                    hits = np.flatnonzero(stop_when(values))
                    if exceeding + hits.size >= EXCEEDING:
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
    block: Callable[[Any], FloatArray], tasks: Iterable[Any], workers: Workers
) -> Iterator[FloatArray]:
    if callable(workers):
        yield from workers(block, tasks)
    elif workers == 1:
        yield from map(block, tasks)
    elif isinstance(workers, (int, np.integer)) and workers > 1:
        pool = ThreadPoolExecutor(int(workers))
        try:
            yield from pool.map(block, tasks)
        finally:
            pool.shutdown(wait=True, cancel_futures=True)
    else:
        raise StatisticError(f"workers must be a number ≥ 1 or a function like map, not {workers}")


def _chunk(shortcut: Shortcut, seed: tuple[int, int], task: tuple[int, int]) -> FloatArray:
    return shortcut.replicates(seed, *task)


def _block(evaluate: Any, sampler: Sampler, task: tuple[Any, int]) -> FloatArray:
    seed, size = task
    rng = np.random.Generator(np.random.PCG64DXSM(seed))
    return np.array([evaluate(sampler(rng)) for _ in range(size)], dtype=np.float64)
