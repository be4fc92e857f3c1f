"""Compiled kernels, and outcomes of many replicates side by side: lanes for each row of data.

A block is an (n, B) array whose rows are filled in sequence. :class:`SharedLanes` draws labels of
two classes, independent or shared within clusters and near times; :class:`FollowLanes` draws
follow-up. Every replicate depends on the seed and its number only.
"""

from __future__ import annotations

import sys
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from functools import cache, cached_property, update_wrapper
from hashlib import blake2b
from itertools import pairwise
from types import FunctionType
from typing import Any, ClassVar, Generic, Self, TypeVar, cast
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from caltest._base import BoolArray, FloatArray, IntArray
from caltest._base.arrays import AnyArray, by_code
from caltest.data.followup import COMPETING, EVENT, Censoring

# ------------------------------------------------------------------------------
# Decorators for compiled kernels, the only place of compiler options; and a cache of results.
#
# :class:`kernel` compiles a function with numba when it is first called and caches it on disk where
# that is possible; with NUMBA_DISABLE_JIT=1 all kernels run as Python. :class:`Memo` caches results
# by content.


#: What is compiled: its arguments have no types before it is called.
Compilable = Callable[..., Any]


class kernel:  # noqa: N801 (used as a decorator)
    """Decorator that compiles a function with numba at its first call, never at import.

    Compiled code is kept on disk and releases the interpreter lock, so that kernels run side by
    side in threads. A kernel takes arrays and scalars, checks nothing, and calls nothing but
    :class:`inlined` helpers, which call nothing: what is on disk is renewed when these change.
    ``function`` is the Python function.
    """

    options: ClassVar[dict[str, object]] = {}

    def __init__(self, function: Compilable) -> None:
        self.py_func = function
        update_wrapper(self, function)

    @cached_property
    def compiled(self) -> Compilable:
        import numba

        source = cast(FunctionType, self.py_func)
        scope = source.__globals__
        called = [n for n in source.__code__.co_names if isinstance(scope.get(n), inlined)]
        if called:
            helpers = {n: numba.njit(inline="always")(scope[n].py_func) for n in called}
            source = FunctionType(source.__code__, {**scope, **helpers}, source.__name__)
            # Numba looks at the file of the kernel only: helpers of others are part of its name.
            codes = [scope[n].py_func.__code__ for n in called]
            text = repr([(code.co_code, code.co_consts) for code in codes])
            source.__qualname__ = f"{self.py_func.__qualname__}_{crc32(text.encode()):08x}"
            source.__module__ = self.py_func.__module__
        try:
            return numba.njit(cache=True, nogil=True, **self.options)(source)
        except (RuntimeError, OSError):  # no folder of the cache can be written
            _say_uncached()
            return numba.njit(nogil=True, **self.options)(source)

    def __call__(self, *args: object) -> Any:
        return self.compiled(*args)


@cache
def _say_uncached() -> None:
    """Print, once a process, that compiled code cannot be cached and how to change that."""
    print(
        "caltest: no folder for compiled code can be written, so that every run compiles for some "
        "seconds: set NUMBA_CACHE_DIR to one that can",
        file=sys.stderr,
    )


class dense_kernel(kernel):  # noqa: N801 (used as a decorator)
    """Decorator that compiles a function with numba, as :class:`kernel` does, for long sums.

    Additions of floating-point numbers may be reordered, for speed.
    """

    options: ClassVar[dict[str, object]] = {"error_model": "numpy", "fastmath": {"reassoc"}}


class lane_kernel(kernel):  # noqa: N801 (used as a decorator)
    """Decorator that compiles a function with numba, whose inner loops run over replicates.

    It is like :class:`kernel`, and the order of floating-point operations is kept.
    """

    options: ClassVar[dict[str, object]] = {"error_model": "numpy"}


class counter_kernel(kernel):  # noqa: N801 (used as a decorator)
    """Decorator that compiles a function with numba, which draws random bits from counters.

    It is like :class:`kernel`; products of unsigned integers wrap at 2⁶⁴ by design.
    """

    options: ClassVar[dict[str, object]] = {"error_model": "numpy"}

    @cached_property
    def compiled(self) -> Compilable:
        """The compiled function, or the Python one if numba is disabled.

        The latter suppresses NumPy's overflow warnings.
        """
        import numba
        import numpy as np

        function: Compilable = super().compiled
        # Only these kernels are excused: a sum of bytes that wraps elsewhere is a mistake.
        return np.errstate(over="ignore")(function) if numba.config.DISABLE_JIT else function


class inlined:  # noqa: N801 (used as a decorator)
    """Decorator of a helper that is compiled into the kernels that call it.

    ``function`` is the Python function; called from Python it runs as it is.
    """

    def __init__(self, function: Compilable) -> None:
        self.py_func = function
        update_wrapper(self, function)

    def __call__(self, *args: object) -> Any:
        return self.py_func(*args)


# ------------------------------------------------------------------------------
# A cache of the results of long computations, keyed by the content of their inputs.


Answered = TypeVar("Answered")


#: Results that a memo keeps; they are small.
NEWEST = 64


class Memo(Generic[Answered]):
    """Cache of the newest 64 results, keyed by digests of the input, which it does not keep."""

    def __init__(self) -> None:
        self._results: dict[bytes, Answered] = {}

    def of(self, compute: Callable[[], Answered], *content: object) -> Answered:
        """Return ``compute()``, or its earlier result for equal ``content``.

        ``content`` are the arrays, numbers and texts on which the result depends. Results are kept
        by a digest of ``content``, the newest ones only.
        """
        digest = blake2b(digest_size=16)
        for part in content:
            values = np.ascontiguousarray(part)
            digest.update(f"{values.shape}{values.dtype}".encode())
            digest.update(values.tobytes())
        key = digest.digest()
        result = self._results.get(key)
        if result is None:
            result = self._results[key] = compute()
            if len(self._results) > NEWEST:
                self._results.pop(next(iter(self._results)), None)
        return result


#: Bytes of a block of lanes above which fewer replicates share it, and the fewest that do.
MOST_BYTES, FEWEST = 2**27, 8


@dataclass(frozen=True, eq=False)
class Lanes(ABC):
    """Base class of generators of outcomes of n rows, for many replicates side by side.

    A block is an array (n, B): a row for each observation and a lane (column) for each of B
    replicates, so that kernels read the rows once, in sequence. Observations are drawn in the order
    that the design needs; row j of that order is at ``place[j]`` of the block. Replicate r of a
    seed is the same for every B.
    """

    place: IntArray = field(repr=False)
    #: Replicates that share a block, and the types of outcomes there and in vectors.
    width: ClassVar[int]
    kind: ClassVar[type]
    of_vectors: ClassVar[type]

    @property
    def n(self) -> int:
        return self.place.size

    @property
    def at_once(self) -> int:
        """Number of replicates in a block of outcomes.

        It is smaller for very many rows, so that memory is bounded.
        """
        room = MOST_BYTES // (self.n * np.dtype(self.kind).itemsize)
        return max(FEWEST, min(self.width, 1 << max(room, 1).bit_length() >> 1))

    @abstractmethod
    def draw(self, seed: Seed, first: int, out: AnyArray) -> IntArray:
        """Fill ``out`` (n, B) with outcomes of B replicates by column; return their numbers, (B,).

        ``seed`` is the pair of integers that keys the random stream. Replicates are those from
        ``first`` on; the result says which one, counted from ``first``, each column holds.
        """

    def laid(self, order: IntArray) -> Self:
        """Return this generator of outcomes with the rows of its blocks in another order.

        ``order`` (n,) lists the rows, of which ``order[j]`` comes to place j.
        """
        return replace(self, place=inverse(order)[self.place])

    def blocks(
        self, seed: Seed, first: int, count: int, at_once: int | None = None
    ) -> Iterator[tuple[IntArray, Any]]:
        """Yield (numbers of B replicates (B,), their outcomes (n, B)) until all are drawn.

        ``seed`` is the pair of integers that keys the random stream. ``count`` replicates are drawn
        from ``first`` on and numbered from 0; column q of the outcomes has replicate q of the
        numbers. A block has at most ``at_once`` columns (None for as many as memory allows), and is
        overwritten by the next. It has at least two, of which one may be beyond ``count``, because
        NumPy adds up a single column in another order than several.
        """
        at_once = min(self.at_once, at_once or self.at_once)
        block: AnyArray = np.empty((0, 0))
        for start in range(0, count, at_once):
            lanes = max(2, min(at_once, count - start))
            if block.shape[1] != lanes:
                block = np.empty((self.n, lanes), dtype=self.kind)
            yield start + self.draw(seed, first + start, block), block

    def gathered(
        self, read: Any, seed: Seed, first: int, count: int, at_once: int | None = None
    ) -> AnyArray:
        """Return ``read(block)`` for all replicates in order, shape (count, …).

        ``read`` maps outcomes (n, B) of B replicates to an array (B, …); ``at_once`` limits B.
        ``seed`` is the pair of integers that keys the random stream; replicates are ``first``, …,
        ``first + count − 1``.
        """
        values: AnyArray | None = None
        for lane, block in self.blocks(seed, first, count, at_once):
            found = read(block)
            if values is None:
                values = np.empty((count, *found.shape[1:]), dtype=found.dtype)
            known = lane < count
            values[lane[known]] = found[known]
        return np.empty(0) if values is None else values

    def __call__(self, seed: Seed, first: int, count: int, out: AnyArray | None = None) -> AnyArray:
        """Return the outcomes of ``count`` replicates as vectors, (count, n).

        ``seed`` is the pair of integers that keys the random stream, ``first`` the number of the
        first replicate. The vectors are written into ``out`` (≥ count, n) if it has their type.
        """
        vectors: AnyArray = np.empty((count, self.n), dtype=self.of_vectors)
        if out is not None and out.dtype == vectors.dtype:
            vectors = out[:count]
        for lane, block in self.blocks(seed, first, count):
            for column, r in enumerate(lane):
                if r < count:
                    vectors[r] = self._outcomes(block[:, column])
        return vectors

    @abstractmethod
    def _outcomes(self, lane: AnyArray) -> AnyArray:
        """Return the outcomes of one replicate, a column of a block, as they are in vectors, (n,).

        ``lane`` (n,) is the column.
        """


def inverse(order: IntArray) -> IntArray:
    """Return the inverse permutation, shape (n,): the place of every row in ``order``."""
    place = np.empty(order.size, dtype=np.int64)
    place[order] = np.arange(order.size)
    return place


# ------------------------------------------------------------------------------
# Labels: independent, or shared within clusters, two columns of clusters, or near times.


NO_ROWS: IntArray = np.empty(0, dtype=np.int64)


@dataclass(frozen=True, eq=False)
class SharedLanes(Lanes):
    """Generator of binary labels of n rows, independent or shared within clusters.

    In blocks (n, B), a column for each of B replicates, 1 is the event (label 0). Every row has a
    random word. Row j joins the common draw of its cluster if its word is below ``reach``, and
    draws alone otherwise; with two columns of clusters it joins the first below ``first``. ``upto``
    is the probability of the event, and ``own`` the threshold below which a row that draws alone
    has it, all (n,) in units of 2⁻⁵³. Clusters are blocks of ``horizon`` times with a random start;
    with ``horizon`` 1 the times are the numbers of the clusters. ``turned`` rows read the common
    draw backwards. Without ``reach`` rows are independent. ``row`` (n,) are the rows in the order
    of drawing; ``time`` and ``second`` (n,) are the numbers of their first and second clusters.
    """

    row: IntArray = field(repr=False)
    upto: IntArray = field(repr=False)
    time: IntArray = field(default_factory=lambda: NO_ROWS, repr=False)
    horizon: int = 1
    second: IntArray = field(default_factory=lambda: NO_ROWS, repr=False)
    first: IntArray = field(default_factory=lambda: NO_ROWS, repr=False)
    reach: IntArray = field(default_factory=lambda: NO_ROWS, repr=False)
    own: IntArray = field(default_factory=lambda: NO_ROWS, repr=False)
    turned: BoolArray = field(default_factory=lambda: np.empty((1, 0), dtype=bool), repr=False)
    width: ClassVar[int] = 64
    kind: ClassVar[type] = np.uint8
    of_vectors: ClassVar[type] = np.int64

    @classmethod
    def independent(cls, probs: FloatArray) -> SharedLanes:
        """Return a generator of independent binary labels from the predictions ``probs`` (n, 2)."""
        rows = np.arange(len(probs))
        return cls(rows, rows, in_words(cumulative(probs)[:, 0]))

    @classmethod
    def shared(
        cls, probs: FloatArray, cluster: IntArray, sharing: FloatArray, turned: BoolArray,
        horizon: int = 1,
    ) -> SharedLanes:  # fmt: skip
        """Return a generator of binary labels of rows that share draws within clusters.

        Clusters are of one column or two. ``probs`` (n, 2) are the predictions. ``cluster``,
        ``sharing`` and ``turned`` have shape (C, n) for C columns: the cluster of each row, the
        probability that it joins the draw of its first cluster, and of either, and whether it reads
        the common draw backwards. With a ``horizon`` above 1 ``cluster`` holds times, and rows
        within so many share draws. O(n log n).
        """
        order = by_code(cluster[0])
        upto, reach = cumulative(probs)[order, 0], sharing[-1][order]
        second = cluster[1][order] if len(cluster) > 1 else NO_ROWS
        return cls(
            order, order, in_words(upto), np.ascontiguousarray(cluster[0][order]), horizon, second,
            first=in_words(sharing[0][order]),
            reach=in_words(reach),
            own=in_words(reach + (1.0 - reach) * upto),
            turned=np.ascontiguousarray(turned[:, order]),
        )  # fmt: skip

    def laid(self, order: IntArray) -> SharedLanes:
        if self.reach.size:
            return super().laid(order)
        # What depends on nothing is drawn in the order in which it is read.
        of = inverse(self.place)[order]
        return replace(self, row=self.row[of], upto=self.upto[of])

    def draw(self, seed: Seed, first: int, out: AnyArray) -> IntArray:
        words = stream_keys(seed, first, out.shape[1])
        offsets = (words[2] % np.uint64(self.horizon)).astype(np.int64)
        lane = np.argsort(offsets, kind="stable")
        begin = np.searchsorted(offsets[lane], np.arange(self.horizon + 1))
        draw_labels(
            self.place, self.row, self.upto, self.time, self.horizon, begin, self.second,
            self.first, self.reach, self.own, self.turned,
            np.ascontiguousarray(words[0][lane]), np.ascontiguousarray(words[1][lane]), out,
        )  # fmt: skip
        return lane

    def _outcomes(self, lane: AnyArray) -> AnyArray:
        return lane == 0


def cumulative(probs: FloatArray) -> FloatArray:
    """Return cumulative probabilities of n rows, (n, K), from ``probs`` (n, K).

    The last possible label of a row gets exactly 1, and with it the rounding error.
    """
    sums = np.cumsum(probs, axis=1)
    last = probs.shape[1] - 1 - (probs[:, ::-1] > 0.0).argmax(axis=1)
    sums[np.arange(probs.shape[1]) >= last[:, None]] = 1.0
    return sums


def in_words(values: FloatArray) -> IntArray:
    """Return integer thresholds ⌈2⁵³ c⌉ for probabilities c = ``values``, same shape.

    For a random u of 53 bits u < c is equivalent to 2⁵³ u < ⌈2⁵³ c⌉.
    """
    return np.ceil(values * UNIFORM_STEPS).astype(np.int64)


@counter_kernel
def draw_labels(  # type: ignore[no-untyped-def]
    place, row, upto, time, horizon, begin, second, first, reach, own, turned, key, twist, out
):
    # O(n) per lane, in vector instructions. Rows are ordered by time, lanes by the offset o at
    # which their blocks begin: lanes begin[o] : begin[o + 1] have offset o.
    lanes, n, largest = key.size, row.size, np.int64(UNIFORM_STEPS - 1)
    if reach.size == 0:
        for j in range(n):
            step, threshold, event = GAMMA * np.uint64(row[j]), upto[j], out[place[j]]
            for q in range(lanes):
                event[q] = mixed(key[q] + step, twist[q]) < threshold
        return
    common = np.empty(lanes, np.int64)
    last, two = time[0] - horizon, second.size > 0
    for j in range(n):
        now = time[j]
        if now > last:
            # Blocks that began since the row before, and hold this one
            for s in range(max(last + 1, now - horizon + 1), now + 1):
                offset = (horizon - s % horizon) % horizon
                step = GAMMA * np.uint64(n + (now + offset) // horizon)
                for q in range(begin[offset], begin[offset + 1]):
                    common[q] = mixed(key[q] + step, twist[q])
            last = now
        step, threshold, event = GAMMA * np.uint64(row[j]), upto[j], out[place[j]]
        joins, alone = reach[j], own[j]
        # A draw u is read backwards, 2⁵³ − 1 − u, by turning all its bits.
        turn = largest if turned[0, j] else np.int64(0)
        if two:
            begins, away = first[j], largest if turned[1, j] else np.int64(0)
            other = GAMMA * np.uint64(n + second[j])
            for q in range(lanes):
                word = mixed(key[q] + step, twist[q])
                draw = mixed(key[q] + other, twist[q]) ^ away
                draw = common[q] ^ turn if word < begins else draw
                event[q] = ((word < alone) & (word >= joins)) | (
                    (draw < threshold) & (word < joins)
                )
        else:
            for q in range(lanes):
                word = mixed(key[q] + step, twist[q])
                event[q] = ((word < alone) & (word >= joins)) | (
                    ((common[q] ^ turn) < threshold) & (word < joins)
                )


# ------------------------------------------------------------------------------
# Follow-up redrawn with the outcomes that were predicted, and its weights.


#: Events of a kind in a stratum from which on their times are drawn there, and not from all.
EVENTS_A_STRATUM = 5


#: Slots that a guide table tells apart at most, as a power of 2, and rows whose words share a pass.
GUIDE_BITS, PASS = 14, 512


@dataclass(frozen=True, eq=False)
class FollowLanes(Lanes):
    """Generator of censored outcomes under the null, many replicates side by side.

    In blocks (n, B), a column for each of B replicates, an entry is W times ``hit`` for a row with
    the event and −W times ``miss`` for one without, with W the inverse probability of a known
    outcome; 0 stands for unknown ones. By default hit and miss are 1, so that entries are signed
    weights; after :meth:`with_residuals` they are W (Y − p). ``times`` holds, for the slots of all
    strata (:class:`~caltest.data.followup.Censoring`), the distribution functions of the slot of an
    event, of a competing event and of censoring, in 53 bits; ``guide`` speeds up the search in
    them. Rows are ordered by stratum. Stratum s has the rows ``row_starts[s]:row_starts[s + 1]``
    and the slots ``slot_starts[s]:slot_starts[s + 1]``; ``upto`` (n,) is the risk of each row in 53
    bits, and ``competing`` the probability of a competing event without the event, for each
    stratum.
    """

    row: IntArray = field(repr=False)
    upto: IntArray = field(repr=False)
    hit: FloatArray = field(repr=False)
    miss: FloatArray = field(repr=False)
    row_starts: IntArray = field(repr=False)
    slot_starts: IntArray = field(repr=False)
    competing: IntArray = field(repr=False)
    times: IntArray = field(repr=False)
    guide: IntArray = field(repr=False)
    width: ClassVar[int] = 8
    kind: ClassVar[type] = np.float64
    of_vectors: ClassVar[type] = np.float64

    @classmethod
    def of(cls, p: FloatArray, censoring: Censoring) -> FollowLanes:
        """Return the generator of censored outcomes for predicted risks ``p`` (n,); O(n log n).

        ``censoring`` has the Kaplan–Meier curve of the censoring time in every stratum, with the
        inverse probability that the outcome of a row is known, and the observed times.
        """
        status, w, groups = censoring.followup.status, censoring.weights, censoring.groups
        rows, slots = np.argsort(groups, kind="stable"), censoring.starts
        row_starts = np.append(0, np.cumsum(np.bincount(groups)))
        laws = np.ones((3, slots[-1]))
        for s, (a, b) in enumerate(pairwise(slots)):
            stratum = rows[row_starts[s] : row_starts[s + 1]]
            for k, kind in enumerate((EVENT, COMPETING)):
                enough = (status[stratum] == kind).sum() >= EVENTS_A_STRATUM
                laws[k, a:b] = _law(censoring, kind, stratum if enough else rows, a, b)
        laws[2] = censoring.by_stratum(lambda left: 1.0 - np.append(left[1:], 0.0), censoring.left)
        competing = np.bincount(groups, w * (status == COMPETING))
        rest = np.bincount(groups, w * (status != EVENT))
        share, times = in_words(competing / np.maximum(rest, 1e-300)), in_words(laws)
        ones = np.ones(p.size)
        fixed = (row_starts, slots, share, times, _guides(times, slots))
        return cls(rows, rows, in_words(p[rows]), ones, ones, *fixed)

    def with_residuals(self, probs: FloatArray) -> FollowLanes:
        """Return the generator of W (Y − p), residuals of censored outcomes Y, in place of ±W.

        W is the inverse probability of a known outcome, 0 where it is unknown. ``probs`` are
        probabilities (n, 2) whose first column is p.
        """
        hit, miss = (np.ascontiguousarray(probs[self.row, k]) for k in (1, 0))
        return replace(self, hit=hit, miss=miss)

    def draw(self, seed: Seed, first: int, out: AnyArray) -> IntArray:
        count = out.shape[1]
        key, twist = stream_keys(seed, first, count)[:2]
        slots = int(np.diff(self.slot_starts).max()) + 1
        ends = np.empty((count, int(np.diff(self.row_starts).max())), dtype=np.int32)
        ended, censored = np.empty((2, count, slots), dtype=np.int32)
        draw_followup(
            self.place, self.row, self.upto, self.hit, self.miss, self.row_starts,
            self.slot_starts, self.competing, self.times, self.guide, key, twist, ends, ended,
            censored, np.empty((count, slots)), out,
        )  # fmt: skip
        return np.arange(count)

    def _outcomes(self, lane: AnyArray) -> AnyArray:
        return lane


def _law(censoring: Censoring, kind: int, rows: IntArray, a: int, b: int) -> FloatArray:
    """Return P(event time ≤ cut[j]) for the slots j = ``a``, …, ``b`` − 1, shape (b − a,).

    ``censoring`` has the observed times, and the censoring times ``cut`` that divide time into
    slots. ``kind`` is EVENT or COMPETING, ``rows`` the row indices that may show it, weighted by
    the inverse probability that their outcome is known. All ones if no row shows it.
    """
    of_kind = rows[censoring.followup.status[rows] == kind]
    if not of_kind.size:
        return np.ones(b - a)
    elapsed = censoring.followup.elapsed
    order = of_kind[np.argsort(elapsed[of_kind])]
    mass = np.append(0.0, np.cumsum(censoring.weights[order]))
    until = np.searchsorted(elapsed[order], censoring.cut[a:b], side="right")
    return mass[until] / mass[-1]


def _guides(times: IntArray, slots: IntArray) -> AnyArray:
    """Return a search table: the first slot to look at for each of equal parts of a random word.

    ``times`` (3, total slots) are distribution functions of the slots of events, competing events
    and censoring, as integers below 2⁵³; the slots of stratum s are ``slots[s]:slots[s + 1]``. The
    shape is (3, strata, parts).
    """
    size = int(np.diff(slots).max())
    parts = 1 << max(4, min(GUIDE_BITS, (4 * size - 1).bit_length()))
    edges = np.arange(parts, dtype=np.int64) * (UNIFORM_STEPS // parts)
    places = [
        [np.searchsorted(law[a : b - 1], edges, side="right") for a, b in pairwise(slots)]
        for law in times
    ]
    return np.array(places, dtype=np.uint16 if size < 2**16 else np.int64)


@inlined
def _place_in_law(law, guide, word, shift, size):  # type: ignore[no-untyped-def]
    # The first place whose distribution function is above a word, or size.
    at = np.int64(guide[word >> shift])
    while at < size and law[at] <= word:
        at += 1
    return at


@counter_kernel
def draw_followup(  # type: ignore[no-untyped-def]
    place, row, upto, hit, miss, row_starts, slot_starts, competing, times, guide, key, twist,
    ends, ended, censored, weight, out,
):  # fmt: skip
    # O(n) per lane. Row i uses the words of the counters i (for its redrawn label), n + i, 2 n + i
    # and 3 n + i. ends holds 2 × the place of a known row, + 1 with the event, and
    # −1 of an unknown one; weight is 1 / Ĝ at every place.
    lanes, step, shift = key.size, GAMMA * np.uint64(row.size), shift_of(guide.shape[2])
    event, kind_word = np.empty(PASS, np.bool_), np.empty(PASS, np.int64)
    when, leaves = np.empty(PASS, np.int64), np.empty(PASS, np.int64)
    left, at_risk = np.empty(lanes), np.empty(lanes)
    for s in range(row_starts.size - 1):
        begin, n_rows, slot = row_starts[s], row_starts[s + 1] - row_starts[s], slot_starts[s]
        size, share = slot_starts[s + 1] - 1 - slot, competing[s]
        first, second = times[0, slot : slot + size + 1], times[1, slot : slot + size + 1]
        lost_law = times[2, slot : slot + size + 1]
        to_first, to_second, to_lost = guide[0, s], guide[1, s], guide[2, s]
        beyond = lost_law[size - 1] if size > 0 else np.int64(0)  # from here on none is censored
        for q in range(lanes):
            for k in range(size + 1):
                ended[q, k], censored[q, k] = 0, 0
            key_q, twist_q, ends_q = key[q], twist[q], ends[q]
            ended_q, censored_q = ended[q], censored[q]
            for start in range(0, n_rows, PASS):
                m = min(PASS, n_rows - start)
                for j in range(m):
                    at = key_q + GAMMA * np.uint64(row[begin + start + j])
                    event[j] = mixed(at, twist_q) < upto[begin + start + j]
                    when[j] = mixed(at + step + step, twist_q)
                    leaves[j] = mixed(at + step + step + step, twist_q)
                if share > 0:
                    for j in range(m):
                        at = key_q + GAMMA * np.uint64(row[begin + start + j])
                        kind_word[j] = mixed(at + step, twist_q)
                for j in range(m):
                    happens = size
                    if event[j]:
                        happens = _place_in_law(first, to_first, when[j], shift, size)
                    elif share > 0 and kind_word[j] < share:
                        happens = _place_in_law(second, to_second, when[j], shift, size)
                    lost = size
                    if leaves[j] < beyond:
                        lost = _place_in_law(lost_law, to_lost, leaves[j], shift, size)
                    if lost < happens:
                        ends_q[start + j] = -1
                        censored_q[lost] += 1
                    else:
                        ends_q[start + j] = 2 * happens + event[j]
                        ended_q[happens] += 1
        for q in range(lanes):
            left[q], at_risk[q] = 1.0, n_rows
        for k in range(size + 1):
            for q in range(lanes):
                lost_here = float(censored[q, k])
                # Beyond a place that censoring leaves nobody to reach no row is known.
                weight[q, k] = 1.0 / left[q] if left[q] > 0.0 else 0.0
                at_risk[q] -= ended[q, k]
                left[q] *= 1.0 - lost_here / max(at_risk[q], 1.0)
                at_risk[q] -= lost_here
        for j in range(n_rows):
            target, of_event, of_none = out[place[begin + j]], hit[begin + j], miss[begin + j]
            for q in range(lanes):
                end = ends[q, j]
                w = weight[q, max(end, 0) >> 1]
                target[q] = w * (0.0 if end < 0 else (of_event if end & 1 else -of_none))


# ------------------------------------------------------------------------------
# Random words that depend on a seed and a number only, so that runs can be cut anywhere.
#
# A replicate's key is two words of Philox (Salmon et al. 2011). Its words are counted by SplitMix64
# (Steele et al. 2014) with the second word mixed in half-way, so that streams whose counters meet
# still differ: two of B streams of n words share a part with a chance of less than B² n / 2¹²⁷.


GAMMA = np.uint64(0x9E3779B97F4A7C15)


FIRST_FACTOR = np.uint64(0xBF58476D1CE4E5B9)


SECOND_FACTOR = np.uint64(0x94D049BB133111EB)


#: Uniforms are multiples of 2⁻⁵³, as NumPy's: u < c means 2⁵³ u < ⌈2⁵³ c⌉ in whole numbers.
UNIFORM_STEPS = 1 << 53


#: One of 2⁵³ equal parts of [0, 1).
UNIFORM_STEP = 2.0**-53


#: Two numbers below 2⁶⁴.
Seed = tuple[int, int]


@inlined
def mixed(z, twist):  # type: ignore[no-untyped-def]
    """Return 53 random bits, an int64 ≥ 0, for a counter ``z``; ``twist`` is the key of the stream.

    z is an unsigned word of 64 bits made of stream and row; a stream is the random numbers of one
    replicate. All kernels give the same bits for the same replicate and row.
    """
    z = (z ^ (z >> np.uint64(30))) * FIRST_FACTOR ^ twist
    z = (z ^ (z >> np.uint64(27))) * SECOND_FACTOR
    return np.int64((z ^ (z >> np.uint64(31))) >> np.uint64(11))


@inlined
def shift_of(width):  # type: ignore[no-untyped-def]
    """Return the right shift, in bits, that maps a 53-bit draw to one of ``width`` equal parts.

    ``width`` is a power of 2.
    """
    part, shift = UNIFORM_STEPS // width, 0
    while part >> shift > 1:
        shift += 1
    return shift


def stream_keys(seed: Seed, first: int, count: int) -> NDArray[np.uint64]:
    """Return the four key words of streams ``first``, …, ``first + count − 1``: (4, count), uint64.

    ``seed`` is a pair of integers below 2⁶⁴; a stream is the random numbers of one replicate.
    """
    philox = np.random.Philox(key=np.array(seed, dtype=np.uint64), counter=first)
    return np.ascontiguousarray(philox.random_raw(4 * count).reshape(count, 4).T)
