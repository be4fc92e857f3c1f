"""Votes of items that vary more than independent draws, and null draws with that variation.

:class:`Overdispersion` measures it from the counts of the items; :class:`VoteDraws` draws counts
from Dirichlet-multinomial laws whose means are the predictions.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from hashlib import blake2b
from threading import Lock
from weakref import WeakKeyDictionary

import numpy as np

from caltest._base import FloatArray, IntArray
from caltest._base.arrays import largest, quarters
from caltest.data import Predictions
from caltest.data.labels import Votes, items_alike
from caltest.errors import StatisticError
from caltest.nulls.agreement import (
    AGREEMENT_DRAWS,
    AGREEMENT_SEED,
    DISAGREE,
    POSSIBLE,
    Agreeing,
    Coupling,
    Degree,
    Dependence,
    association,
)
from caltest.nulls.compiled import Memo
from caltest.nulls.lanes import Seed

#: λ from which on all votes of an item are drawn equal: the shapes of gamma variables underflow.
ALL_EQUAL = 0.95


#: Counts that are looked at together, and drawn counts that are remembered (32 MB).
COUNTS_AT_ONCE, COUNTS_KEPT = 2**20, 2**22


_DRAWN: dict[tuple[object, ...], IntArray] = {}


_DRAWING = Lock()


#: Rounds of the search for the upper limit of λ, and its relative precision.
ROUNDS, PRECISE = 12, 1.04


_LIMITS_OF_ITEMS: Memo[Dependence] = Memo()


_VOTES: WeakKeyDictionary[Predictions, Votes | None] = WeakKeyDictionary()


def votes_of(data: Predictions) -> Votes | None:
    """Return the counts of items that are the clusters of these rows; None if they are not.

    Rows of an item must have one prediction and one weight, also after a lens or the alignment of
    folds. O(n K) once.
    """
    if data not in _VOTES:
        _VOTES[data] = _counted(data)
    return _VOTES[data]


def _counted(data: Predictions) -> Votes | None:
    apart = data.crossed, data.horizon, data.followup
    if data.items is None or data.items_in_clusters or data.clusters is None:
        return None
    if any(fact is not None for fact in apart) or not items_alike(
        data.probs, data.weights, data.items
    ):
        return None
    return Votes.of(data)


@dataclass(frozen=True, eq=False)
class VoteDraws:
    """Drawer of the votes of items: counts (B, I, K), or a label for every row.

    The probabilities of item i are a draw of Dirichlet(s_i p_i) with s_i = (1 − λ_i) / λ_i, and its
    votes are independent draws from them: any two agree as they do where the share λ_i of pairs is
    one draw. The share of votes for a class has the mean p_i and the variance
    p_i (1 − p_i) (1 + (m_i − 1) λ_i) / m_i.
    """

    probs: FloatArray = field(repr=False)
    size: IntArray = field(repr=False)
    of_row: IntArray = field(repr=False)
    degree: FloatArray = field(repr=False)

    @classmethod
    def of(cls, votes: Votes, degree: float | FloatArray) -> VoteDraws:
        """Prepare draws with one λ, or with one for every item (I,)."""
        probs = votes.probs / votes.probs.sum(axis=1, keepdims=True)
        return cls(probs, votes.size, votes.of_row, np.broadcast_to(degree, votes.size.shape))

    @cached_property
    def _spread(self) -> IntArray:
        """The items whose probabilities are drawn, others have λ = 0."""
        return np.flatnonzero(self.degree > 1e-9)

    @cached_property
    def _equal(self) -> IntArray:
        """The items whose votes are all equal, as places among those whose probabilities vary."""
        return np.flatnonzero(self.degree[self._spread] > ALL_EQUAL)

    @cached_property
    def _shapes(self) -> FloatArray:
        """Shapes of the gamma or beta variables of the items that vary, (K, I')."""
        degree = np.minimum(self.degree[self._spread], ALL_EQUAL)
        shapes = self.probs[self._spread] * ((1.0 - degree) / degree)[:, None]
        return np.ascontiguousarray(shapes.T)

    def _drawn_probs(self, generator: np.random.Generator) -> FloatArray:
        """Return drawn probabilities of the items, (I, K)."""
        if not self._spread.size:
            return self.probs
        drawn = generator.standard_gamma(self._shapes)
        drawn /= drawn.sum(axis=0)
        if self._equal.size:
            equal = self.probs[self._spread[self._equal]]
            drawn[:, self._equal] = generator.multinomial(1, equal).T
        if self._spread.size == len(self.probs):
            return drawn.T
        probs = self.probs.copy()
        probs[self._spread] = drawn.T
        return probs

    @cached_property
    def _content(self) -> bytes:
        """Digest of what the counts depend on, besides seed and number."""
        digest = blake2b(digest_size=16)
        for part in (self.probs, self.size, self.degree):
            digest.update(np.ascontiguousarray(part).tobytes())
        return digest.digest()

    def counts(self, seed: Seed, first: int, count: int) -> IntArray:
        """Return the counts of replicates ``first``, …, ``first + count − 1``, (count, I, K).

        The newest are remembered: an audit looks at the same draws with several statistics.
        """
        key = self._content, *seed, first, count
        with _DRAWING:
            if (known := _DRAWN.get(key)) is not None:
                return known
        drawn = np.empty((count, *self.probs.shape), dtype=np.int64)
        two = self.probs.shape[1] == 2
        for j in range(count):
            generator = np.random.default_rng([*seed, first + j])
            probs = self._drawn_probs(generator)
            if two:
                drawn[j, :, 0] = generator.binomial(self.size, probs[:, 0])
            else:
                drawn[j] = generator.multinomial(self.size, probs)
        if two:
            np.subtract(self.size, drawn[:, :, 0], out=drawn[:, :, 1])
        drawn.flags.writeable = False
        with _DRAWING:
            while _DRAWN and sum(each.size for each in _DRAWN.values()) + drawn.size > COUNTS_KEPT:
                _DRAWN.pop(next(iter(_DRAWN)))
            if drawn.size <= COUNTS_KEPT:
                _DRAWN[key] = drawn
        return drawn

    def __call__(self, seed: Seed, first: int, count: int, out: IntArray | None = None) -> IntArray:
        """Return labels of rows, (count, n), with the law of :meth:`counts`; O(count n K)."""
        shape = count, self.of_row.size
        labels = np.empty(shape, dtype=np.int64) if out is None else out[:count]
        for j in range(count):
            generator = np.random.default_rng([*seed, first + j])
            upto = np.cumsum(self._drawn_probs(generator), axis=1)[:, :-1]
            places = generator.random(self.of_row.size)
            labels[j] = 0
            for edge in upto.T:
                labels[j] += places >= edge[self.of_row]
        return labels


@dataclass(frozen=True, eq=False)
class Overdispersion(Agreeing):
    """Agreement of the votes of items beyond independent draws, ρ, and the limits of λ from it.

    ρ = Σ_i (|X_i|² − Q_i) / Σ_i Q_i, where X_i is the sum of the residuals of item i, less the mean
    residual of items with about the same prediction (quarters by rank), and Q_i the sum of their
    squares: the numbers of :class:`~caltest.nulls.agreement.Agreement`, from counts.
    """

    data: Predictions = field(repr=False)
    votes: Votes = field(repr=False)
    coupling: Coupling = "label"

    @property
    def cluster(self) -> IntArray:
        """The item of every row, (n,)."""
        return self.votes.of_row

    @property
    def counts(self) -> IntArray:
        """Number of votes of every item, (I,)."""
        return self.votes.size

    @cached_property
    def weight(self) -> FloatArray:
        """Weight of each vote of an item, (I,)."""
        weights = self.votes.weights
        return np.ones(self.votes.size.size) if weights is None else weights

    @cached_property
    def sums(self) -> tuple[FloatArray, FloatArray]:
        """Σ w² v and Σ_{i≠j} w_i w_j c_ij of every item, (I,) each; c = v for equal predictions."""
        p, m = self.votes.probs, self.votes.size
        v = p[:, 0] * p[:, 1] if p.shape[1] == 2 else 1.0 - np.square(p).sum(axis=1)
        return self.weight**2 * m * v, self.weight**2 * m * (m - 1) * v

    @cached_property
    def parts(self) -> FloatArray:
        """Indicators (1.0 or 0.0) of nine sets of items, shape (9, I).

        The sets are all items, four quarters by prediction (for several classes the largest
        probability), and four quarters by number of votes.
        """
        p = self.votes.probs
        keys = p[:, 0] if p.shape[1] == 2 else largest(p), self.votes.size
        return np.vstack([np.ones(len(p)), *(quarters(key) == q for key in keys for q in range(4))])

    def correlation(self, counts: IntArray) -> FloatArray:
        """Return ρ, overall and in the parts, for counts (B, I, K): shape (9, B). O(B I K).

        Entries are infinite where no residual varies.
        """
        d = 1 if self.votes.probs.shape[1] == 2 else self.votes.probs.shape[1]
        p, m, w = self.votes.probs[:, :d], self.votes.size, self.weight
        residuals = w[:, None] * (counts[:, :, :d] - m[:, None] * p)
        mean = np.empty((len(counts), 4, d))
        for q, members in enumerate(self.parts[1:5] > 0.0):
            mean[:, q] = residuals[:, members].sum(axis=1) / max((w * m)[members].sum(), 1e-300)
        mean = mean[:, self.parts[1:5].argmax(axis=0)]
        # Σ w² |y − p − mean|² over the votes of an item, multiplied out
        squares = np.einsum("bik,ik->bi", counts[:, :, :d], 1.0 - 2.0 * p) + m * (p**2).sum(axis=1)
        squares = w**2 * squares - 2.0 * w * np.einsum("bik,bik->bi", mean, residuals)
        squares += w**2 * m * np.einsum("bik,bik->bi", mean, mean)
        residuals -= (w * m)[:, None] * mean
        agreement = np.einsum("bik,bik->bi", residuals, residuals) - squares
        # No matrix products, whose threads take longer than the sums
        members = [np.flatnonzero(part) for part in self.parts]
        pairs, own = (np.array([each[:, i].sum(axis=1) for i in members])
                      for each in (agreement, squares))  # fmt: skip
        varying = own > 1e-12 * float(w**2 @ m)
        return np.divide(pairs, own, out=np.full_like(pairs, np.inf), where=varying)

    def size_effect(self) -> float:
        """Return z of the association between an item's number of votes and its residuals.

        Residuals are observed − predicted of class 0, times the weights. If size is independent of
        the outcomes, z is about standard normal; a large |z| says that items with more votes
        differ.
        """
        w = 1.0 if self.data.weights is None else self.data.weights
        residuals = w * ((self.data.labels == 0) - self.data.probs[:, 0])
        return association(self.counts[self.cluster], residuals, self.cluster)

    def limits(self) -> Dependence:
        """Return the upper 95 % limits of λ, of all items and of quarters of them.

        A quarter has a limit of its own where its items vary more than those drawn with the limit
        of all (p ≤ 0.05). The newest limits are remembered.
        """
        votes = self.votes
        return _LIMITS_OF_ITEMS.of(self._limits_of_parts, votes.probs, votes.counts, self.weight)

    def _limits_of_parts(self) -> Dependence:
        observed = self.correlation(self.votes.counts[None])[:, 0]
        overall = self._limit_of_part(0, observed[0])
        drawn = self._drawn_correlations(overall)
        reached = (drawn >= observed[:, None] - 1e-9).sum(axis=1)
        too_much = (1 + reached) / (1 + AGREEMENT_DRAWS) <= DISAGREE
        of_parts = tuple(
            max(overall, self._limit_of_part(j, observed[j])) if too_much[j] else overall
            for j in range(1, 9)
        )
        return Dependence(overall, of_parts[:4], of_parts[4:])

    def _limit_of_part(self, part: int, observed: float) -> float:
        """Return the largest λ with which ρ of a part is at most ``observed`` in 5 % of draws."""
        variance, joint = (float(self.parts[part] @ each) for each in self.sums)
        if joint <= 1e-9 * variance or not np.isfinite(observed):
            return 0.0
        place = int(np.ceil(POSSIBLE * AGREEMENT_DRAWS)) - 1

        def overshoot(degree: float) -> float:
            return float(np.sort(self._drawn_correlations(degree)[part])[place]) - observed - 1e-9

        return _root(overshoot, max(float(observed), 0.0) * variance / joint, variance / joint)

    def _drawn_correlations(self, degree: float) -> FloatArray:
        """Return ρ and its parts for 199 draws with one λ, (9, 199)."""
        draws = VoteDraws.of(self.votes, degree)
        at_once = max(1, COUNTS_AT_ONCE // draws.probs.size)
        blocks = [
            self.correlation(draws.counts(AGREEMENT_SEED, a, min(at_once, AGREEMENT_DRAWS - a)))
            for a in range(0, AGREEMENT_DRAWS, at_once)
        ]
        return np.concatenate(blocks, axis=1)

    def degree(self, dependence: Degree | None) -> Dependence:
        """Return the limits of λ, either given or estimated from the votes."""
        if isinstance(dependence, tuple):
            raise StatisticError(f"dependence={dependence} is for two columns of clusters")
        return self.limits() if dependence is None else Dependence.of(dependence)

    def inflation(self, dependence: Degree | None, centred: bool = False) -> float:
        """Return 1: some λ explains any agreement of votes whose predictions are equal."""
        return 1.0

    def drawer(self, dependence: Degree | None) -> VoteDraws:
        """Return draws with this dependence; an item has the larger λ of its two quarters."""
        limits = self.degree(dependence)
        by_part = np.array([*limits.by_prediction, *limits.by_size])
        return VoteDraws.of(self.votes, (self.parts[1:] * by_part[:, None]).max(axis=0))


def _root(overshoot: Callable[[float], float], guess: float, unit: float) -> float:
    """Return the λ at which an increasing function passes 0, to 4 %, from above; 0 or 1 at most.

    ``guess`` is about where it is, and ``unit`` a λ that matters little.
    """
    low, high = 0.0, min(1.0, 1.2 * guess + 0.05 * unit)
    at_low = overshoot(low)
    if at_low > 0.0:
        return 0.0
    at_high = overshoot(high)
    while at_high <= 0.0 and high < 1.0:
        low, at_low, high = high, at_high, min(1.0, 1.5 * high)
        at_high = overshoot(high)
    if at_high <= 0.0:
        return 1.0
    for _ in range(ROUNDS):
        if high <= PRECISE * low or high - low <= 0.02 * unit:
            break
        # Where the function is nearly straight, one step ends; kept off the ends it cannot stall
        share = float(np.clip(at_low / (at_low - at_high), 0.1, 0.9))
        middle = low + (high - low) * (1.02 * share if share < 0.9 else share)
        at_middle = overshoot(middle)
        if at_middle > 0.0:
            high, at_high = middle, at_middle
        else:
            low, at_low = middle, at_middle
    return high
