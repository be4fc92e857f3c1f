"""The engine: a function evaluated on drawn data, again and again, with progress and an end."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol, TypedDict, TypeVar

import numpy as np

from caltest._base.arrays import RNG, AnyArray
from caltest._base.checks import MOST_REPLICATES, is_whole, whole
from caltest._base.progress import Ended, progress
from caltest.errors import StatisticError
from caltest.predictions import BoolArray, FloatArray, Predictions
from caltest.simulate.labels import LADDER_CLASSES
from caltest.simulate.schemes import Drawer, LabelScheme
from caltest.simulate.streams import Seed

#: Replicates that share a generator. Part of the results: changing it changes every number.
BLOCK = 32
#: Replicates that a compiled shortcut makes in one call; no number depends on it.
CHUNK = 256
#: Labels that are drawn together, of few classes and of many, whose tables are large; no number
#: depends on it.
AT_ONCE, MANY_AT_ONCE = 2**18, 2**22
#: Replicates at least as large as the observed value after which sequential stopping stops.
EXCEEDING = 20

#: What a sampler draws, and what a block of replicates is made from.
Draw = TypeVar("Draw")
Task = TypeVar("Task")
#: Threads, or a function like ``map``.
Workers = int | Callable[[Callable[[Any], Any], Iterable[Any]], Iterable[Any]]


class Run(TypedDict):
    """What a simulation takes, by the names that verbs have for it."""

    n_resamples: int
    rng: RNG
    workers: Workers


#: Says which replicates reach the observed value.
Reaching = Callable[[FloatArray], BoolArray]


class Shortcut(Protocol):
    """A way to replicates of which each depends on the seed and its own number only."""

    def replicates(self, seed: Seed, first: int, count: int) -> FloatArray:
        """Return replicates ``first``, …, ``first + count − 1``: (count,) or (count, S)."""


@dataclass(frozen=True, eq=False)
class Batches:
    """A function of label vectors on the draws of a scheme: what any statistic can do."""

    drawer: Drawer
    n: int
    batch: Callable[[AnyArray], FloatArray]
    labels_at_once: int = AT_ONCE

    @classmethod
    def of(
        cls, scheme: LabelScheme, data: Predictions, batch: Callable[[AnyArray], FloatArray]
    ) -> Batches:
        """Prepare the draws of a scheme."""
        at_once = AT_ONCE if data.n_classes <= LADDER_CLASSES else MANY_AT_ONCE
        return cls(scheme.drawer(data), data.n, batch, at_once)

    def replicates(self, seed: Seed, first: int, count: int) -> FloatArray:
        """Return replicates ``first``, …, ``first + count − 1``."""
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
    """Evaluate a function of what a sampler draws: block by block, each with its generator.

    Returns the values (B,), or (B, S) of vectors, and how the run ended: with ``stop_when``, early
    at the 20th value for which it holds (Besag & Clifford 1991). Numbers do not depend on
    ``workers``, and a longer run begins as a shorter one.
    """
    check_run(n_resamples, rng, workers)
    root = _seed_sequence(rng)
    tasks = ((root.spawn(1)[0], size) for _, size in _parts(n_resamples, BLOCK))
    return _gathered(partial(_block, evaluate, sampler), tasks, n_resamples, workers, stop_when)


def simulate_by(
    shortcut: Shortcut, n_resamples: int, rng: RNG, workers: Workers, *,
    stop_when: Reaching | None = None, at_once: int = CHUNK,
) -> tuple[FloatArray, Ended]:  # fmt: skip
    """Gather replicates that are keyed by the seed and their own number; otherwise the same."""
    check_run(n_resamples, rng, workers)
    (child,) = _seed_sequence(rng).spawn(1)
    # These two words and its own number make the stream of a replicate.
    first, second = child.generate_state(2, np.uint64)
    block, tasks = (
        partial(_chunk, shortcut, (int(first), int(second))),
        _parts(n_resamples, at_once),
    )
    return _gathered(block, tasks, n_resamples, workers, stop_when)


def check_run(n_resamples: object, rng: RNG, workers: object) -> None:
    """Refuse what a simulation cannot run with, also where none is needed in the end."""
    whole("n_resamples", n_resamples, most=MOST_REPLICATES)
    _seed_sequence(rng)
    if not callable(workers) and (not is_whole(workers) or workers < 1):
        raise StatisticError(f"workers must be a number ≥ 1 or a function like map, not {workers}")


def _seed_sequence(rng: RNG) -> np.random.SeedSequence:
    if isinstance(rng, (bool, np.random.RandomState)):
        kind = type(rng).__name__
        raise StatisticError(f"rng must be a seed or a numpy.random.Generator, not a {kind}")
    try:
        root: Any = np.random.default_rng(rng).bit_generator.seed_seq
    except (TypeError, ValueError) as error:
        raise StatisticError(f"rng must be a seed ≥ 0 or a Generator: {error}") from None
    return root


def _parts(n_resamples: int, at_once: int) -> list[tuple[int, int]]:
    """Return where parts of so many replicates start, and their sizes."""
    starts = range(0, n_resamples, at_once)
    return [(start, min(at_once, n_resamples - start)) for start in starts]


def _gathered(
    block: Callable[[Task], FloatArray], tasks: Iterable[Task], n_resamples: int, workers: Workers,
    stop_when: Reaching | None,
) -> tuple[FloatArray, Ended]:  # fmt: skip
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
    block: Callable[[Task], FloatArray], tasks: Iterable[Task], workers: Workers
) -> Iterator[FloatArray]:
    if callable(workers):
        yield from workers(block, tasks)
    elif workers == 1:
        yield from map(block, tasks)
    else:
        pool = ThreadPoolExecutor(int(workers))
        try:
            yield from pool.map(block, tasks)
        finally:
            pool.shutdown(wait=True, cancel_futures=True)


def _chunk(shortcut: Shortcut, seed: Seed, task: tuple[int, int]) -> FloatArray:
    return shortcut.replicates(seed, *task)


def _block(
    evaluate: Callable[[Draw], float | FloatArray],
    sampler: Callable[[np.random.Generator], Draw],
    task: tuple[np.random.SeedSequence, int],
) -> FloatArray:
    seed, size = task
    rng = np.random.Generator(np.random.PCG64DXSM(seed))
    return np.array([evaluate(sampler(rng)) for _ in range(size)], dtype=np.float64)
