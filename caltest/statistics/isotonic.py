"""Isotonic regression (CORP) and the ECE whose number of bins is swept until it is monotone.

:class:`CORP` is the miscalibration of Dimitriadis, Gneiting & Jordan (2021); :class:`Sweep` is the
equal-mass ECE of Roelofs et al. (2022); :func:`isotonic_fit` returns the curve itself.
:class:`VariationalError` and :class:`RefinementError` recalibrate on held-out folds.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import KW_ONLY, dataclass, field
from functools import cached_property
from typing import ClassVar, Literal

import numpy as np

from caltest._base import FloatArray, IntArray
from caltest._base.arrays import AnyArray, by_value, one_of, whole
from caltest.data.facts import by_appearance
from caltest.errors import StatisticError
from caltest.nulls.lanes import kernel, lane_kernel
from caltest.read.arguments import read_arguments
from caltest.recalibration import LOG_PROBABILITY_FLOOR, IsotonicRegression, Recalibration
from caltest.results.estimates import IsotonicFit
from caltest.statistics.prepared import LabelStatistic, Statistic, rows_of
from caltest.statistics.problem import Cells, Problem
from caltest.statistics.rows import RowProblem
from caltest.statistics.scores import SCORES_BY_NAME

Score = Literal["brier", "log"]


def isotonic_fit(probs: object, labels: object = None) -> IsotonicFit:
    """Regress the event of a two-class problem on its predicted probability, isotonically.

    Rows with equal predictions are pooled first (Ayer et al., Annals of Mathematical Statistics 26,
    1955). O(n log n). Arguments are as in :meth:`Predictions.of`; the event is label 1, or class 0
    of an induced problem. StatisticError for more than two classes. The result has the distinct
    ``predicted`` probabilities, increasing, the fitted ``observed`` frequencies and the ``count``
    of rows, (G,) each for G distinct predictions.

    Examples
    --------
    >>> isotonic_fit([0.1, 0.3, 0.3, 0.8], [1, 0, 0, 1]).observed.round(3)
    array([0.333, 0.333, 1.   ])
    """
    problem = RowProblem.of(read_arguments(probs, labels, rounded=False))
    problem.event(isotonic_fit)
    return CORP().prepare(problem).fit(problem.labels)


def best_score(hits: FloatArray | IntArray, size: FloatArray | IntArray, score: Score) -> float:
    """Return the mean score of predictions that equal the event rate of their group.

    ``hits`` and ``size`` (m,) are numbers of events and of rows in m groups, or sums of weights.
    ``score`` is "brier", the mean of (rate − y)², or "log", the mean negative log-likelihood in
    nats; lower is better.
    """
    share: FloatArray = hits / size
    if score == "brier":
        # Σ (s − y)² over a group of share s is hits · (1 − s).
        return float((hits * (1.0 - share)).sum() / size.sum())
    from scipy.special import xlogy

    likelihood = xlogy(hits, share) + xlogy(size - hits, 1.0 - share)
    return float(-likelihood.sum() / size.sum())


@dataclass(frozen=True, eq=False)
class Pools(LabelStatistic):
    """CORP miscalibration with fixed predictions, as a function of the labels.

    It is the mean score of the predictions less the score of their isotonic regression on the
    labels. Rows are sorted by prediction in ``order`` (n,); ``ends`` (G,) says where each of G
    groups of equal probabilities ends; ``hit`` and ``miss`` (n,) are the scores of the rows, in
    that order, if the event happens and if it does not. ``score`` is "brier" or "log".
    """

    order: IntArray = field(repr=False)
    ends: IntArray = field(repr=False)
    hit: FloatArray = field(repr=False)
    miss: FloatArray = field(repr=False)
    score: Score

    def fit(self, labels: IntArray) -> IsotonicFit:
        """Return the isotonic regression of ``labels`` (n,) on the fixed predictions; O(n).

        Label 0 is the event. The fit holds the G distinct predictions in increasing order, the
        recalibrated values and the numbers of rows (or their total weights), (G,) each.
        """
        from scipy.optimize import isotonic_regression

        first = np.append(0, self.ends[:-1])
        happened = (labels[self.order] == 0).astype(np.int64)
        w = None if self.data.weights is None else self.data.weights[self.order]
        count = np.diff(self.ends, prepend=0) if w is None else np.add.reduceat(w, first)
        hits = np.add.reduceat(happened if w is None else w * happened, first)
        blocks = isotonic_regression(hits / count, weights=count).blocks
        first = blocks[:-1]
        # Whole numbers are divided once, so that the means carry no rounding of their updates.
        means = np.add.reduceat(hits, first) / np.add.reduceat(count, first)
        predicted = self.data.probs[self.order[self.ends - 1], 0]
        return IsotonicFit(predicted, np.repeat(means, np.diff(blocks)), count)

    def mean_score(self, labels: IntArray) -> float:
        """Return the mean Brier or log score of the fixed predictions for ``labels`` (n,).

        Label 0 is the event. The mean is weighted if the rows are. The field ``score`` says which.
        """
        scores = np.where(labels[self.order] == 0, self.hit, self.miss)
        w = self.data.weights
        return float(np.average(scores, weights=None if w is None else w[self.order]))

    def of_labels(self, labels: IntArray) -> float:
        fit = self.fit(labels)
        recalibrated = best_score(fit.observed * fit.count, fit.count, self.score)
        return self.mean_score(labels) - recalibrated

    @property
    def counted(self) -> tuple[Pools, ...]:  # type: ignore[override]
        # The kernel compares whole numbers; weighted sums are pooled vector by vector.
        return (self,) if self.data.weights is None else ()

    @cached_property
    def sum_cells(self) -> Cells:
        """Partition of the rows by distinct predictions, in increasing order.

        Rows with equal predictions are a cell, and are pooled before the isotonic regression.
        """
        return Cells.levels(self.problem)

    def lane_reader(self, cells: Cells, order: IntArray, residuals: bool) -> PoolReader:
        return PoolReader(self)

    def batch(self, labels: IntArray) -> FloatArray:
        if self.data.weights is not None:
            return super().batch(labels)
        happened = np.take(labels, self.order, axis=1) == 0
        scores = np.where(happened, self.hit, self.miss).sum(axis=1)
        block = np.ascontiguousarray(happened.T).view(np.uint8)
        return np.asarray((scores - self.pooled(block, np.zeros(self.order.size))[0]) / len(block))

    def pooled(self, block: AnyArray, steps: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return (total scores of recalibrated predictions, Σ steps · y), (B,) each.

        ``block`` (n, B) holds B sets of events y, 0 or 1, rows in order of the predictions;
        ``steps`` (n,) is the change of a row's score by an event. Predictions are recalibrated by
        isotonic regression on these events.
        """
        n, lanes = block.shape
        words, (scores, pooled) = np.empty((lanes, -(-n // 64)), np.uint64), np.zeros((2, lanes))
        _pack(block, self.ends, steps, words, scores)
        _pool(words, n, SET_BITS, HOW_MANY, self.score == "log", pooled)
        return pooled, scores


@dataclass(frozen=True, repr=False)
class CORP(Statistic):
    """Miscalibration by isotonic regression (CORP), for two classes.

    MCB = S(p, y) − S(p̂, y): how much better the mean score would be if the predictions were
    recalibrated by isotonic regression on the same outcomes (Dimitriadis, Gneiting & Jordan, PNAS
    118(8), 2021). ``score`` is "brier", (p − y)², or "log", −log of the probability of the label,
    which is infinite for a label of probability 0; ``calibration_test`` refuses it then. Rows with
    equal predictions share a bin. It is positive even under calibration, in [0, 1] or [0, ∞].
    :func:`caltest.corp_decomposition` has the other parts of the score. O(n log n) once, O(n) for
    each further set of labels, for which the fit is made anew.

    Examples
    --------
    >>> round(CORP()([0.2, 0.6, 0.4, 0.9], [0, 0, 1, 1]), 12)
    0.0675
    """

    score: Score = "brier"
    of_known_rows: ClassVar[bool] = True

    def __post_init__(self) -> None:
        one_of("score", self.score, ("brier", "log"))

    def prepare(self, problem: Problem) -> Pools:
        data = rows_of(problem, self, weights=True)
        order, ends = by_value(problem.event(self))
        p, q = np.ascontiguousarray(data.probs[order].T)
        if self.score == "brier":
            return Pools(problem, order, ends, q * q, p * p, self.score)
        with np.errstate(divide="ignore"):
            return Pools(problem, order, ends, -np.log(p), -np.log(q), self.score)


#: Where the bits of every byte are set, the places first, and how many are.
_BITS = np.unpackbits(np.arange(256, dtype=np.uint8)[:, None], axis=1, bitorder="little")


SET_BITS = np.argsort(_BITS == 0, axis=1, kind="stable")


HOW_MANY = _BITS.sum(axis=1, dtype=np.int64)


@dataclass(frozen=True, eq=False)
class PoolReader:
    """Reader of CORP miscalibrations from blocks of events in order of the predictions.

    A CORP miscalibration is the mean score less the score after isotonic regression on the same
    events. ``pools`` is the statistic, :class:`Pools`. A block (n, B) holds B sets of events, 0 and
    1.
    """

    pools: Pools = field(repr=False)
    at_once: ClassVar[int] = 64

    @cached_property
    def _scores(self) -> tuple[FloatArray, float]:
        """(steps, total): change of each row's score by an event, (n,), and total without any.

        Rows are in order of the predictions. Scores of labels with probability 0 count as 0.
        """
        pools = self.pools
        p, q = pools.data.probs[pools.order].T
        # A label of probability 0 is never drawn, and may have an infinite score.
        hit, miss = np.where(p > 0.0, pools.hit, 0.0), np.where(q > 0.0, pools.miss, 0.0)
        return hit - miss, float(miss.sum())

    def values(self, block: AnyArray, factor: float = 1.0) -> FloatArray:
        """Return the CORP miscalibrations (B,) of a block (n, B) of events, 0 and 1.

        Rows are in order of the predictions. ``factor`` is not used, as isotonic regression needs
        labels and not scaled residuals.
        """
        steps, without = self._scores
        pooled, scores = self.pools.pooled(block, steps)
        return np.asarray((without + scores - pooled) / block.shape[0])


@lane_kernel
def _pack(block, ends, steps, words_out, scores_out):  # type: ignore[no-untyped-def]
    # O(n) per lane: events become bits, 64 rows a word, of tied rows the events first; and
    # the steps of rows with events are added up.
    n, lanes = block.shape
    word, events, first = np.zeros(lanes, np.uint64), np.zeros(lanes, np.int64), 0
    for last in ends:
        tied = last - first > 1
        for q in range(lanes):
            events[q] = 0
        for i in range(first, last):
            row, step = block[i], steps[i]
            for q in range(lanes):
                scores_out[q] += step * row[q]
            if tied:
                for q in range(lanes):
                    events[q] += row[q]
        for i in range(first, last):
            row, shift = block[i], np.uint64(i & 63)
            if tied:
                for q in range(lanes):
                    word[q] |= np.uint64(i - first < events[q]) << shift
            else:
                for q in range(lanes):
                    word[q] |= np.uint64(row[q]) << shift
            if i & 63 == 63 or i == n - 1:
                for q in range(lanes):
                    words_out[q, i >> 6], word[q] = word[q], np.uint64(0)
        first = last


@kernel
def _pool(words, n, set_bits, how_many, log, scores_out):  # type: ignore[no-untyped-def]
    # O(n) per lane: the total score of the pooled frequencies. Neighbours (1, 0) always share a
    # block, so blocks can only begin where 0 turns to 1. The places where bits change are looked up
    # byte by byte, without branches; the stack of blocks starts with runs 1…10…0, and a new one
    # swallows those before it that are not below it.
    place = np.empty(n + 16, np.int64)
    events, size = np.empty(n + 1, np.int64), np.empty(n + 1, np.int64)
    one, last_bit, of_byte = np.uint64(1), np.uint64(63), np.uint64(255)
    for r in range(words.shape[0]):
        changes, before = 0, one
        for g in range(words.shape[1]):
            word = words[r, g]
            turned = word ^ ((word << one) | before)
            before = word >> last_bit
            for j in range(8):
                byte = (turned >> np.uint64(8 * j)) & of_byte
                for m in range(8):
                    place[changes + m] = 64 * g + 8 * j + set_bits[byte, m]
                changes += how_many[byte]
        place[changes] = place[changes + 1] = n
        b, start = -1, 0
        for k in range(0, changes + 1, 2):
            s, w = place[k] - start, place[k + 1] - start
            start = place[k + 1]
            while b >= 0 and events[b] * w >= s * size[b]:
                s += events[b]
                w += size[b]
                b -= 1
            b += 1
            events[b], size[b] = s, w
        pooled = 0.0
        for block in range(b + 1):
            s, w = events[block], size[block]
            if 0 < s < w:
                share = s / w
                if log:
                    pooled -= s * np.log(share) + (w - s) * np.log1p(-share)
                else:
                    pooled += s * (1.0 - share)
        scores_out[r] = pooled


#: Part by which a weighted frequency may fall by rounding and still count as not falling.
ROUNDING_FALL = 1e-12


@dataclass(frozen=True, eq=False)
class SortedRows(LabelStatistic):
    """Monotone sweep (:class:`Sweep`) with fixed predictions, as a function of the labels.

    Rows are sorted by prediction in ``order`` (n,). The rows tied with the i-th in this order end
    before position ``group_end[i]``; ``mass[i]`` is the weight of the first i rows and
    ``predicted[i]`` the sum of their predictions, both (n + 1,). ``weights`` (n,) are in the order
    of the data; for equal weights they and ``mass`` are whole numbers. ``norm`` is "l1" or "l2".
    """

    order: IntArray = field(repr=False)
    group_end: IntArray = field(repr=False)
    weights: AnyArray = field(repr=False)
    mass: AnyArray = field(repr=False)
    predicted: FloatArray = field(repr=False)
    norm: Literal["l1", "l2"]

    def n_bins(self, labels: IntArray) -> int:
        """Return the number of bins that the monotone sweep chooses for ``labels`` (n,).

        Label 0 is the event. Bins have equal mass, ties kept together.
        """
        return int(self._swept(labels[None, :])[1, 0])

    def batch(self, labels: IntArray) -> FloatArray:
        return self._swept(labels)[0]

    def _swept(self, labels: IntArray) -> FloatArray:
        errors, n_bins = both = np.empty((2, len(labels)))
        fixed = (self.order, self.group_end, self.weights, self.mass, self.predicted)
        # Whole numbers are compared exactly, sums of weights with room for their rounding.
        least = 1 if self.data.weights is None else 1.0 - ROUNDING_FALL
        _sweep(labels, *fixed, least, self.norm == "l2", errors, n_bins)
        return both


@kernel
def _sweep(  # type: ignore[no-untyped-def]
    labels, order, group_end, weights, mass, predicted, least, squared, errors_out, n_bins_out
):
    # O(n) for the running sums, O(b) to look at b bins. Bytes fit into the nearest cache.
    n = group_end.size
    happened, events = np.empty(n, weights.dtype), np.zeros(n + 1, mass.dtype)
    for r in range(errors_out.size):
        for i in range(n):
            happened[i] = weights[i] if labels[r, i] == 0 else 0
        hits = mass[0]
        for i in range(n):
            hits += happened[order[i]]
            events[i + 1] = hits
        # A curve that is monotone over the distinct values is so over any bins made of them.
        before, size_before, start, monotone = mass[0], mass[0], 0, True
        while start < n and monotone:
            end = group_end[start]
            inside, size = events[end] - events[start], mass[end] - mass[start]
            monotone = inside * size_before >= before * size * least
            before, size_before, start = inside, size, end
        n_bins = n if monotone else 1
        rising = not monotone
        while rising:
            before, size_before, start = mass[0], mass[0], 0
            for j in range(1, n_bins + 2):
                end = group_end[(j * n + n_bins) // (n_bins + 1) - 1]
                if end > start:
                    inside, size = events[end] - events[start], mass[end] - mass[start]
                    if inside * size_before < before * size * least:
                        rising = False
                        break
                    before, size_before, start = inside, size, end
            n_bins += rising
        total, start = 0.0, 0
        for j in range(1, n_bins + 1):
            end = group_end[(j * n + n_bins - 1) // n_bins - 1]
            if end > start:
                gap = abs(events[end] - events[start] - (predicted[end] - predicted[start]))
                total += gap * gap / (mass[end] - mass[start]) if squared else gap
                start = end
        errors_out[r] = np.sqrt(total / mass[n]) if squared else total / mass[n]
        n_bins_out[r] = n_bins


@dataclass(frozen=True, repr=False)
class Sweep(Statistic):
    """ECE with the monotone sweep, ECE_sweep with equal mass, for two classes.

    For b = 2, 3, … the sorted predictions are cut at ranks ⌈j n / b⌉ into b bins, ties kept
    together, until the frequencies of the event no longer increase from bin to bin; with the last b
    that was good (at most n), the value is (Σ_b (n_b / n) |r̂_b − p̂_b|^q)^{1/q}, n_b of n rows in
    bin b, r̂_b the frequency of the event and p̂_b the mean prediction (Roelofs et al., "Mitigating
    bias in calibration error estimation", AISTATS 2022, Algorithm 1). ``norm`` is "l1" (q = 1) by
    default, or "l2" (q = 2), the default of the authors' code. Software that takes the *largest* b
    that leaves the curve monotone returns other values. Bins are chosen anew for every set of
    labels; with weights, frequencies, means and shares are weighted, and ranks are not. O(n log n)
    once; then O(n + b²) for a set of labels that leads to b bins.

    Examples
    --------
    >>> forecast, rained = np.array([0.1, 0.2, 0.3, 0.7, 0.8, 0.9]), np.array([0, 1, 0, 1, 0, 1])
    >>> round(Sweep()(forecast, rained), 6)
    0.233333
    """

    _: KW_ONLY
    norm: Literal["l1", "l2"] = "l1"
    essential: ClassVar[int] = 0

    def __post_init__(self) -> None:
        one_of("norm", self.norm, ("l1", "l2"))

    def prepare(self, problem: Problem) -> SortedRows:
        data, p = rows_of(problem, self, weights=True), problem.event(self)
        order, ends = by_value(p)
        group_end = np.repeat(ends, np.diff(ends, prepend=0))
        w: AnyArray = np.ones(p.size, np.uint8) if data.weights is None else data.weights
        mass = np.arange(p.size + 1) if data.weights is None else _from_0(w[order])
        return SortedRows(problem, order, group_end, w, mass, _from_0((w * p)[order]), self.norm)


def _from_0(values: FloatArray) -> FloatArray:
    """Return the sums of the first 0, 1, …, m of ``values`` (m,), shape (m + 1,)."""
    return np.append(0.0, np.cumsum(values))


# ------------------------------------------------------------------------------
# Cross-fitted calibration errors: the gain of recalibration, and the loss it leaves.
#
# :class:`VariationalError` is the gain of recalibration on held-out folds, a lower bound of the
# calibration error on average; :class:`RefinementError` is the loss that remains.


#: Recalibrated probabilities that differ by less have not moved.
UNMOVED = 1e-12


def _slope(norm: str, moves: FloatArray) -> FloatArray:
    """Return the gradient of a norm at every row of ``moves`` (n, K), same shape.

    ``norm`` is "l2", "max", "tv" or "l1", of which "tv" is half of "l1". Entries below 1e-12 count
    as 0, where the gradient is 0.
    """
    moves = np.where(np.abs(moves) < UNMOVED, 0.0, moves)
    if norm == "l2":
        size = np.sqrt((moves**2).sum(axis=1, keepdims=True))
        return np.asarray(moves / np.where(size == 0.0, 1.0, size))
    if norm == "max":
        largest = np.abs(moves).argmax(axis=1)[:, None]
        return np.asarray(np.sign(moves) * (np.arange(moves.shape[1]) == largest))
    return np.asarray(np.sign(moves) * (0.5 if norm == "tv" else 1.0))


@dataclass(frozen=True, eq=False)
class CrossFitted(LabelStatistic):
    """Mean over rows of a function of their cross-fitted recalibration, with fixed predictions.

    ``statistic`` has the loss, the number of folds and the recalibration method; ``fold`` (n,) is
    the fold of every row, from 0. Each row is recalibrated by a map fitted on the other folds.
    """

    statistic: _CrossFitted
    fold: IntArray = field(repr=False)

    def of_labels(self, labels: IntArray) -> float:
        # Scores are those that the methods of recalibration are fitted to: log-probabilities.
        p, recalibration = self.data.probs, self.statistic.recalibration
        scores, repaired = np.log(np.maximum(p, LOG_PROBABILITY_FLOOR)), p.copy()
        for k in range(self.statistic.folds):
            inside = self.fold == k
            try:
                w = None if self.data.weights is None else self.data.weights[~inside]
                learned = recalibration._learn(scores[~inside], labels[~inside], w)
                repaired[inside] = learned(scores[inside])
            except StatisticError:  # there is no map: the predictions stay as they are
                continue
        gains = self.statistic._of_rows(p, np.maximum(repaired, LOG_PROBABILITY_FLOOR), labels)
        return float(np.average(gains, weights=self.data.weights))


@dataclass(frozen=True, repr=False)
class _CrossFitted(Statistic):
    """Base class of the cross-fitted statistics: loss, recalibration method and folds.

    ``loss`` is one of the names in ``losses``, ``recalibration`` the method that is fitted, and
    ``folds`` the number of folds, at least 2; StatisticError for anything else.
    """

    loss: str = "brier"
    _: KW_ONLY
    recalibration: Recalibration = IsotonicRegression()
    folds: int = 5
    losses: ClassVar[tuple[str, ...]] = tuple(SCORES_BY_NAME)
    essential: ClassVar[int] = 0

    def __post_init__(self) -> None:
        one_of("loss", self.loss, self.losses)
        whole("folds", self.folds, 2)
        if not isinstance(self.recalibration, Recalibration):
            raise StatisticError(
                "recalibration must be a method of caltest.recalibration such as "
                f"PlattScaling(), not {self.recalibration!r}"
            )

    def prepare(self, problem: Problem) -> CrossFitted:
        data = rows_of(problem, self, weights=True)
        alone = data.n_clusters is None
        unit = np.arange(data.n) if alone else by_appearance(data.clusters)
        count = int(unit.max()) + 1
        if count < 2 * self.folds:
            what = "rows" if alone else "clusters"
            raise StatisticError(
                f"{self!r} needs two {what} in each fold, {2 * self.folds} in all; "
                f"there are {count}"
            )
        # By a fixed seed, as redrawn labels have to meet the folds of the observed ones.
        return CrossFitted(
            problem, self, np.random.default_rng(0).permutation(count)[unit] % self.folds
        )

    @abstractmethod
    def _of_rows(self, p: FloatArray, q: FloatArray, labels: IntArray) -> FloatArray: ...


@dataclass(frozen=True, repr=False)
class VariationalError(_CrossFitted):
    """Cross-fitted variational calibration error: the gain of recalibration on held-out rows.

    With q_i the prediction p_i recalibrated by a map that is fitted on the other folds and e_i the
    outcome as a vector, the value is the mean of ∇‖q_i − p_i‖ · (e_i − p_i) for a norm, and of
    ℓ(p_i, e_i) − ℓ(q_i, e_i) for a proper loss. On average it is at most the calibration error
    E‖E[e | p] − p‖, or the divergence that belongs to ℓ, and the nearer to it the better the map:
    unlike a binned error it does not overestimate. It can be negative. StatisticError for another
    loss or method, or fewer than two rows in a fold. Berta et al., arXiv:2501.19195 (2025) and
    arXiv:2602.24230 (2026).

    Parameters
    ----------
    loss : {"tv", "l1", "l2", "max", "brier", "log", "spherical", "rps"}, default "tv"
        A norm of whole vectors, as for :class:`ECE` (for two classes ``"tv"`` is |q − p| of the
        event), or a proper loss.
    recalibration : Recalibration, default IsotonicRegression()
        A method of :mod:`caltest.recalibration`, fitted for every fold and set of labels (some
        milliseconds for 1000 rows of two classes); where it finds no map, the predictions of the
        fold stay as they are. With ``"log"`` a 0 counts as 2⁻⁵³.
    folds : int, default 5
        Rows, or clusters of them, are dealt to the folds by a fixed seed: the value depends a
        little on their order.

    Examples
    --------
    >>> forecast, rained = np.repeat([0.2, 0.8], 50), np.tile([0, 0, 0, 1, 1], 20)
    >>> round(VariationalError()(forecast, rained), 6)
    0.3
    """

    loss: str = "tv"
    losses: ClassVar[tuple[str, ...]] = ("tv", "l1", "l2", "max", *SCORES_BY_NAME)

    def _of_rows(self, p: FloatArray, q: FloatArray, labels: IntArray) -> FloatArray:
        rows = np.arange(labels.size)
        if self.loss in SCORES_BY_NAME:
            return (SCORES_BY_NAME[self.loss](p) - SCORES_BY_NAME[self.loss](q))[rows, labels]
        slope = _slope(self.loss, q - p)
        return np.asarray(slope[rows, labels] - (slope * p).sum(axis=1))


@dataclass(frozen=True, repr=False)
class RefinementError(_CrossFitted):
    """Cross-fitted refinement error: the mean loss that recalibration leaves; smaller is better.

    (1/n) Σ_i ℓ(q_i, y_i), with q_i the prediction recalibrated by a map that is fitted on the other
    folds. It says how well predictions tell outcomes apart, whatever their calibration. Mean score
    = refinement error + variational error of the same loss. Parameters: ``loss``, one of "brier"
    (default), "log", "spherical" and "rps"; ``recalibration``, a method of
    :mod:`caltest.recalibration`, by default ``IsotonicRegression()``; ``folds``, a number of at
    least 2, by default 5. StatisticError for others, or with fewer than two rows in a fold.
    """

    def _of_rows(self, p: FloatArray, q: FloatArray, labels: IntArray) -> FloatArray:
        return SCORES_BY_NAME[self.loss](q)[np.arange(labels.size), labels]
