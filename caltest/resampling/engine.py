"""The engine: a statistic evaluated on resampled data, again and again."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any, Literal

import numpy as np

from caltest._progress import progress
from caltest.checks import whole
from caltest.errors import StatisticError
from caltest.nulls import SimulatedNull
from caltest.predictions import BoolArray, FloatArray, IntArray, Predictions
from caltest.resampling.schemes import DataSet, Resampler, Sampler, Shortcut
from caltest.statistics import Statistic, given

#: Replicates that share a random stream. Part of the results: changing it changes every number.
BLOCK = 32
#: Replicates that a shortcut makes in one call; no number depends on it.
CHUNK = 256
#: Replicates at least as large as the observed value after which sequential stopping stops.
EXCEEDING = 20

Ended = Literal["complete", "early", "interrupted"]
Workers = int | Callable[[Callable[[Any], Any], Iterable[Any]], Iterable[Any]]


#: Says which replicates reach the observed value.
Reaching = Callable[[FloatArray], BoolArray]


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
    resampler : RedrawLabels, ConsistencyResampling or Bootstrap
        Where the data sets come from. A statistic that knows a faster way to the same law uses it.
    data : Predictions
        The observed data, seen through the lens.
    n_resamples : int
        Number of replicates, at least 1.
    rng : None, int, Generator, SeedSequence or BitGenerator
        As :func:`numpy.random.default_rng`. Blocks of replicates have a stream of their own, so
        the numbers do not depend on ``workers``, and the first replicates of a longer run are
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
    fixed = given(statistic, data.probs)
    return replicates_of(statistic, fixed, resampler, data, n_resamples, rng, workers)


def replicates_of(
    statistic: Statistic,
    fixed: Any,
    resampler: Resampler,
    data: Predictions,
    n_resamples: int,
    rng: Any,
    workers: Workers,
    *,
    stop_when: Reaching | None = None,
) -> SimulatedNull:
    """Do the same for a statistic that is ``given`` the predictions already, the fastest way."""
    shortcut = resampler.shortcut(fixed, data)
    if shortcut is not None:
        drawn = simulate_by(shortcut, n_resamples, rng, workers, stop_when=stop_when)
    else:
        evaluate = on_labels(fixed) if resampler.fixes_predictions else on_data(statistic)
        sampler = resampler.sampler(data)
        drawn = simulate(evaluate, sampler, n_resamples, rng, workers, stop_when=stop_when)
    return SimulatedNull(*drawn)


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
    whole("n_resamples", n_resamples)
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
