"""Schemes that redraw labels or rows with dependence, within clusters or over time.

:class:`SharedRedraws` is the null for clusters and series; :class:`WildSigns`,
:class:`OneRowPerCluster` and :class:`PopulationWeights` are alternatives for special questions.
:class:`VoteDraws` draws the votes of items, which vary more than independent draws.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from functools import cache, cached_property, partial
from hashlib import blake2b
from threading import Lock
from typing import ClassVar
from weakref import WeakKeyDictionary

import numpy as np

from caltest._base import FloatArray, IntArray
from caltest._base.arrays import AnyArray, largest, number, one_of, quarters, whole
from caltest.data import Predictions
from caltest.data.facts import by_appearance
from caltest.data.labels import Votes, items_alike
from caltest.data.lenses import TopK
from caltest.errors import StatisticError
from caltest.nulls.agreement import (
    AGREEMENT_DRAWS,
    AGREEMENT_SEED,
    AGREEMENT_STEPS,
    COUPLINGS,
    DISAGREE,
    POSSIBLE,
    Agreeing,
    Agreement,
    Coupling,
    CrossedAgreement,
    Degree,
    Dependence,
    TwoColumns,
    association,
    batches,
    dependent,
    possible,
)
from caltest.nulls.draws import Drawer, LabelScheme, RedrawLabels, Scheme
from caltest.nulls.lanes import Lanes, Memo, Seed, SharedLanes, lane_kernel


@dataclass(frozen=True, repr=False)
class SharedRedraws(LabelScheme):
    """Keep the predictions, draw labels from them that depend on each other within clusters.

    Every row has the label distribution that was predicted for it. With probability √λ it takes
    part in the draw that its cluster shares, otherwise it draws alone. Rows may share two things:

    * their *label*: two classes compare one uniform with the prediction of each row, more classes
      take the largest of log p_k + γ_k with Gumbel variables γ of the cluster. Residuals then have
      E[r_i · r_j] = λ c_ij exactly, c_ij ≥ 0 the value at λ = 1.
    * their *correctness*, as in easy and difficult patients: one uniform is compared with the
      largest probability of each row, and decides whether that label is right; each row draws alone
      which other label it has if it is wrong.

    A test draws both ways, each with its own λ, and takes the larger p-value. Without clusters
    this is :class:`RedrawLabels`. Votes of items (``items=``) have equal predictions: the
    probabilities of an item are a draw of Dirichlet(s p), s = (1 − λ) / λ, from which its votes are
    drawn, so that shares of votes vary by any amount around the prediction; λ is then no multiple
    of 0.1, and draws cost no more for many votes. It assumes that a label follows its own
    prediction, given the other predictions of its cluster and its size. O(n K) a label vector.

    Parameters
    ----------
    dependence : float in [0, 1] or a pair of them, optional
        λ, or (λ₁, λ₂) for two columns of clusters. The default is the upper 95 % confidence limit
        estimated from the labels: the largest of 0.1, 0.2, …, 1 at which labels of a cluster agree
        no more than the observed ones in at least 5 % of 199 draws (0 if there is none). Rows of a
        quarter of the predictions, or in clusters of about one size, have a larger λ of their own
        where they agree too much for the common one (p ≤ 0.05), so that copies do not hide behind
        clusters whose labels exclude each other.
    coupling : {"label", "correctness"}, optional
        Quantity that rows share; by default both are tried.
    horizon : int, optional
        Steps ahead of the forecasts, equal to ``horizon`` of the data. Clusters are then blocks of
        h times that begin anywhere: E[r_i · r_j] = λ (1 − |t_i − t_j| / h)₊ c_ij, and λ is the
        limit estimated from rows less than h times apart.
    """

    dependence: Degree | None = None
    coupling: Coupling | tuple[Coupling, Coupling] | None = None
    horizon: int | None = None
    takes_clusters: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if self.dependence is not None and not isinstance(self.dependence, Dependence):
            pair = self.dependence if isinstance(self.dependence, tuple) else (self.dependence,)
            for degree in pair:
                number("dependence", degree, 0.0, 1.0, "[]")
            if len(pair) > 2 or (len(pair) == 2 and np.sqrt(pair).sum() > 1.0 + 1e-9):
                raise StatisticError("dependence of two columns needs √λ₁ + √λ₂ ≤ 1")
        for coupling in () if self.coupling is None else np.atleast_1d(self.coupling):
            one_of("coupling", str(coupling), COUPLINGS)
        if self.horizon is not None:
            whole("horizon", self.horizon, 2)
            if isinstance(self.coupling, tuple) or isinstance(self.dependence, tuple):
                raise StatisticError("forecasts h steps ahead have one coupling and dependence")

    @property
    def couplings(self) -> tuple[Coupling, Coupling]:
        """Quantity that rows share along both columns of clusters, "label" or "correctness" each.

        They are equal unless the scheme names two.
        """
        one = self.coupling or "label"
        return one if isinstance(one, tuple) else (one, one)

    def each(self, data: Predictions) -> tuple[SharedRedraws, ...]:
        """Return the schemes to try: one for each quantity that rows of a cluster may share.

        These are the label, and correctness (whether the most likely label is right). With two
        classes they are the same where one label is the likelier in all rows, and one scheme is
        returned. Two columns of clusters try every pair, but only equal pairs for more than two
        classes. StatisticError if the scheme has another horizon than the data.
        """
        if self.horizon not in (None, data.horizon):
            raise StatisticError(f"{self!r} is for data with horizon={self.horizon}")
        if self._votes(data) is not None:
            return (replace(self, coupling="label"),)
        two = data.n_classes == 2
        tried = COUPLINGS[:1] if two and np.ptp(data.probs.argmax(axis=1)) == 0 else COUPLINGS
        kinds: Iterable[Coupling | tuple[Coupling, Coupling]] = tried
        if data.crossed is not None:
            kinds = [(a, b) for a in tried for b in tried if two or a == b]
        if self.coupling is not None:
            kinds = [self.coupling if data.crossed is None else self.couplings]
        return tuple(replace(self, horizon=data.horizon, coupling=kind) for kind in kinds)

    def _votes(self, data: Predictions) -> Votes | None:
        """Return the items and their counts of votes if labels are drawn as votes of items.

        Their labels have Dirichlet-multinomial laws. None if the clusters of ``data`` are no items
        with several votes, or correctness is shared.
        """
        return votes_of(data) if self.coupling in (None, "label") else None

    def vote_draws(self, data: Predictions) -> VoteDraws | None:
        """Return a drawer of counts of votes by item and class; None without items with votes.

        Clusters of ``data`` are then items with several votes. It also draws labels of rows; see
        :class:`VoteDraws`.
        """
        votes = self._votes(data)
        return None if votes is None else Overdispersion(data, votes).drawer(self.dependence)

    def agreements(self, data: Predictions) -> list[tuple[SharedRedraws, Agreeing]]:
        """Return (scheme, measured dependence) for each scheme to try on ``data``, as a list.

        There is one for each quantity that rows may share, label and correctness. The measured
        dependence (:class:`~caltest.nulls.agreement.Agreeing`) can estimate the degree λ, and draw
        labels with it. StatisticError for couplings or a horizon that do not fit the data.
        """
        schemes = self.each(data)
        if (votes := self._votes(data)) is not None:
            return [(schemes[0], Overdispersion(data, votes))]
        if data.horizon is not None:
            return [(each, Overlap(data, each.couplings[0])) for each in schemes]
        if data.crossed is None:
            if isinstance(self.coupling, tuple):
                raise StatisticError(f"{self!r} is for two columns of clusters")
            return [(each, Agreement.of(data, each.couplings[0])) for each in schemes]
        of = {coupling: CrossedAgreement.of(data, coupling) for coupling in COUPLINGS}
        pairs = [(each, each.couplings) for each in schemes]
        return [(each, TwoColumns(data, (a, b), of[a], of[b])) for each, (a, b) in pairs]

    def drawer(self, data: Predictions) -> Drawer:
        """Return a generator of dependent label vectors.

        Preparation costs O(n K), and without ``dependence`` some 4000 label vectors to estimate it.
        Without ``coupling`` rows share their label. The generator is called as ``draw(seed, first,
        count)``, the seed being a pair of integers, and returns the outcomes of replicates
        ``first``, …, of shape (count, n).
        """
        (scheme,) = replace(self, coupling=self.coupling or "label").each(data)
        if data.n_clusters is None:
            return RedrawLabels().drawer(data)
        ((_, agreement),) = scheme.agreements(data)
        return agreement.drawer(self.dependence)


@dataclass(frozen=True, repr=False)
class WildSigns(Scheme):
    """Null distribution by random signs: the residuals of every cluster are multiplied by +1 or −1.

    It assumes that the residual sum of a cluster is as likely positive as negative. Few clusters
    and rare events violate this: tests at level 0.05 rejected 20 to 70 % of calibrated models with
    ten clusters of rare events. Rows without clusters change sign one by one. Cameron, Gelbach &
    Miller, Review of Economics and Statistics 90, 2008.
    """

    takes_clusters: ClassVar[bool] = True

    def drawer(self, data: Predictions) -> Drawer:
        """Return a generator of random signs, one sign for all rows of a cluster; O(n) a draw.

        It is called as ``draw(seed, first, count)``, the seed being a pair of integers, and returns
        the signs +1 and −1 of replicates ``first``, …, of shape (count, n).
        """
        rows = np.arange(data.n) if data.clusters is None else by_appearance(data.clusters)
        return partial(
            _signs, SharedLanes.independent(np.full((int(rows.max()) + 1, 2), 0.5)), rows
        )


def _signs(
    draw: SharedLanes, rows: IntArray, seed: Seed, first: int, count: int, out: object = None
) -> IntArray:
    """Return random signs +1 and −1, (count, n), of replicates ``first``, …, ``first + count − 1``.

    ``draw`` draws one binary outcome for each cluster, and ``rows`` (n,) are the cluster numbers of
    the rows; ``seed`` is the pair of integers that keys the random stream, and ``out`` is not used.
    """
    return 1 - 2 * draw(seed, first, count)[:, rows]


@dataclass(frozen=True, repr=False)
class OneRowPerCluster(Scheme):
    """Within-cluster resampling: repeatedly test one randomly chosen row of every cluster.

    Each of M = ``draws`` draws gives a valid p-value. They are combined as M / k times the k-th
    smallest, k = ⌈M / 4⌉ (Rüger, Metrika 25, 1978; Vovk & Wang, Biometrika 107, 2020), which is
    valid for any dependence within clusters. Every cluster has equal weight, whatever its size, so
    that sizes must not depend on outcomes: where rows end with the event, 27 of 30 calibrated
    panels were rejected at .05. Test the first row of each cluster there.

    In 600 data sets of 100 clusters of five, slope 0.5, it rejects .99 (independent rows), .96 (a
    shared label) and .63 (copies) at .05; twice the median .91, .85 and .70, twice the mean .23,
    .35 and .70, a single draw .80, .77 and .77. Sizes were at most .017.
    """

    draws: int = 100
    takes_clusters: ClassVar[bool] = True

    def __post_init__(self) -> None:
        whole("draws", self.draws)

    def rows(self, data: Predictions, rng: np.random.Generator) -> IntArray:
        """Return the indices of one random row of each of G clusters, shape (G,), increasing.

        All rows of a cluster are equally likely; ``rng`` draws them. Without clusters these are all
        rows.
        """
        order = rng.permutation(data.n)
        codes = order if data.clusters is None else data.clusters[order]
        return np.sort(order[np.unique(codes, return_index=True)[1]])


@dataclass(frozen=True, repr=False)
class PopulationWeights(Scheme):
    """Test whether the model is calibrated in the weighted population, not in every row.

    The hypothesis is E[w (y − p) | cell] = 0, as in a survey that gives more weight to groups with
    another calibration. The p-value is the larger one of :class:`RedrawLabels` and
    :class:`WildSigns`. It is refused where it is known to fail (sizes of up to 0.6 at 0.05): for an
    effective number of rows below three quarters of n, and with fewer than 100 surprising outcomes
    expected, (Σ w m)² / Σ w² m with m = 1 − max_k p_k.
    """

    def refuse(self, data: Predictions) -> None:
        """Raise StatisticError where a test of the weighted population is known to fail.

        It takes weights and no clusters, an effective number of rows of at least three quarters of
        n, and at least 100 surprising outcomes expected.
        """
        m, w = 1.0 - data.probs.max(axis=1), data.weights
        if w is None or data.n_clusters is not None:
            raise StatisticError(f"{self!r} is for weights, and for rows without clusters")
        share, surprises = data.effective_n / data.n, (w @ m) ** 2 / max(w**2 @ m, 1e-300)
        if share < 0.75 or surprises < 100.0:
            raise StatisticError(
                f"{self!r} holds no level here: the effective n is {share:.2f} of n (at least 0.75 "
                f"is needed) and {surprises:.3g} surprising outcomes are expected (at least 100). "
                "Without it every row is taken for calibrated"
            )


# ------------------------------------------------------------------------------
# Labels of forecasts several steps ahead: outcomes that overlap share their draws.


#: Upper confidence limits of λ by coupling and rows.
_DEGREES: Memo[float] = Memo()


@dataclass(frozen=True, eq=False)
class Overlap(Agreeing):
    """Agreement of residuals of forecasts that overlap in time, for a horizon of h times.

    N = Σ_{i≠j, |t_i−t_j|<h} w_i w_j x_i · x_j, with weights w, times t, and x the residual less its
    mean among the rows with about the same prediction (quarters by rank); binary data have one
    component. A second N sums the pairs within these quarters, because rows that agree there and
    exclude each other elsewhere have an overall N near 0. O(n K) for a label vector. ``data`` are
    the predictions of a series, and ``coupling`` is the quantity that rows may share: "label", or
    "correctness", whether the most likely label is right.
    """

    data: Predictions
    coupling: Coupling = "label"

    @cached_property
    def induced(self) -> Predictions:
        """Predictions whose residuals are compared.

        They are the data with the coupling "label", else the confidence and whether the most likely
        label is right.
        """
        return self.data if self.coupling == "label" else TopK(1)(self.data)

    @cached_property
    def windows(self) -> list[tuple[IntArray, IntArray, IntArray]]:
        """Windows of overlapping rows, a list of two tuples (order, first, end).

        The first tuple is over all rows, the second within quarters of the predictions. Row
        ``order[j]`` overlaps the rows ``order[first[j]:end[j]]``; all arrays have shape (n,).
        """
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
        """Return the agreement N over all overlapping pairs, and within quarters, shape (B, 2).

        N is the sum of products of centred residuals over pairs of rows that overlap in time.
        ``labels`` (B, n) are B label vectors of the predictions ``induced``; quarters are by
        prediction.
        """
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
        """Return the dependence λ in [0, 1] between overlapping rows, given or estimated.

        It is ``dependence`` if given, else its upper confidence limit. λ is the degree to which
        labels of overlapping rows are one draw, see :class:`SharedRedraws`. The limit within
        quarters of the predictions is used if labels agree there more than the overall limit
        allows. Results are cached.
        """
        if isinstance(dependence, (int, float)):
            return dependence
        w = np.ones(0) if self.data.weights is None else self.data.weights
        rows = *timed(self.data), w, self.data.probs, self.data.labels
        return _DEGREES.of(self._limit, self.coupling, *rows)

    def _limit(self) -> float:
        replicates = cache(self._replicates)
        observed = self(self.induced.labels[None, :])[0]
        most = observed + 1e-9 * np.abs(observed)
        overall = possible(most[0], lambda step: replicates(step)[:, 0])
        if (replicates(overall)[:, 1] <= most[1]).mean() > 1.0 - DISAGREE:
            overall = max(overall, possible(most[1], lambda step: replicates(step)[:, 1]))
        return overall / AGREEMENT_STEPS

    def _replicates(self, step: int) -> FloatArray:
        """Return the agreement N of 199 label vectors drawn with the dependence ``step`` / 10.

        The shape is (199, 2): N over all overlapping pairs, and over pairs within quarters of the
        predictions.
        """
        draw = dependent(self.induced, step / AGREEMENT_STEPS)
        if isinstance(draw, Lanes):
            read = OverlapReader.of(self.induced)
            return draw.laid(read.order).gathered(read, AGREEMENT_SEED, 0, AGREEMENT_DRAWS)
        return np.concatenate([self(labels) for labels in batches(draw, self.data.n)])

    def inflation(self, dependence: Degree | None, centred: bool = False) -> float:
        """Return 1.0, the factor by which draws with this dependence vary too little.

        ``dependence`` and ``centred`` are not used. Sizes hold without an inflation of the draws,
        which would take half the power.
        """
        return 1.0

    def drawer(self, dependence: Degree | None) -> Drawer:
        """Return a generator of labels with this dependence between overlapping rows.

        ``dependence`` is its degree λ in [0, 1], or None to estimate it. The generator is called as
        ``draw(seed, first, count)``, the seed being a pair of integers, and returns the outcomes of
        replicates ``first``, …, of shape (count, n).
        """
        return dependent(self.data, self.degree(dependence), self.coupling)


@dataclass(frozen=True, eq=False)
class OverlapReader:
    """Function of redrawn outcomes that computes the agreement N of rows that overlap in time.

    N is the sum of products of centred residuals over overlapping pairs, overall and within
    quarters of the predictions. ``order`` (n,) are the rows by time; two rows overlap if their
    times are less than ``horizon`` apart. ``total`` (4,) and ``mass`` (4,) are the sums of weighted
    predictions and of weights in the quarters.
    """

    order: IntArray
    #: Time, quarter, prediction and weight of every row.
    rows: tuple[AnyArray, ...]
    horizon: int
    total: FloatArray
    mass: FloatArray

    @classmethod
    def of(cls, data: Predictions) -> OverlapReader:
        """Return the function that computes the agreement of redrawn outcomes of a time series.

        ``data`` are predictions of two classes with times and a horizon. Rows are read in order of
        time. O(n log n).
        """
        times, horizon = timed(data)
        order = np.argsort(times, kind="stable")
        quarter = quarters(position(data))[order].astype(np.int64)
        p = np.ascontiguousarray(data.probs[order, 0])
        w = np.ones(data.n) if data.weights is None else data.weights[order]
        total, mass = (np.bincount(quarter, v, 4).astype(np.float64) for v in (w * p, w))
        rows = (times[order].astype(np.int64), quarter, p, w)
        return cls(order, rows, horizon, total, np.maximum(mass, 1e-300))

    def __call__(self, events: AnyArray) -> FloatArray:
        """Return the agreement N over all overlapping pairs and within quarters, shape (B, 2).

        N is the sum of products of centred residuals over pairs of rows that overlap in time.
        ``events`` (n, B) are the outcomes of B redraws, 1 for the event, rows in order of time;
        quarters are by prediction.
        """
        pairs = np.zeros((2, events.shape[1]))
        overlap(events, *self.rows, self.horizon, self.total, self.mass, pairs)
        return 2.0 * pairs.T


@lane_kernel
def overlap(events, time, quarter, p, w, horizon, total, mass, out):  # type: ignore[no-untyped-def]
    # O(n) per lane: near[k] are the sums of the rows of quarter k less than a horizon before.
    lanes, oldest = events.shape[1], 0
    mean, near = np.zeros((4, lanes)), np.zeros((4, lanes))
    for i in range(time.size):
        e, v, of_quarter = events[i], w[i], mean[quarter[i]]
        for q in range(lanes):
            of_quarter[q] += v * e[q]
    for k in range(4):
        for q in range(lanes):
            mean[k, q] = (mean[k, q] - total[k]) / mass[k]
    for i in range(time.size):
        while time[oldest] <= time[i] - horizon:
            e, v, less, k = events[oldest], w[oldest], p[oldest], quarter[oldest]
            for q in range(lanes):
                near[k, q] -= v * (e[q] - less - mean[k, q])
            oldest += 1
        e, v, less, k = events[i], w[i], p[i], quarter[i]
        for q in range(lanes):
            x = v * (e[q] - less - mean[k, q])
            own = near[k, q]
            out[0, q] += x * (near[0, q] + near[1, q] + near[2, q] + near[3, q])
            out[1, q] += x * own
            near[k, q] = own + x


def timed(data: Predictions) -> tuple[IntArray, int]:
    """Return (t, h) of a time series: ranks of the times, integers (n,), and the horizon.

    The rank of a row is the rank of its time among the distinct ones, from 0. The horizon is the
    number of times that forecasts look ahead.
    """
    assert data.times is not None
    assert data.horizon is not None
    return data.times, data.horizon


def position(data: Predictions) -> FloatArray:
    """Return the probability by which rows are cut into quarters, (n,).

    It is the predicted probability of the event, class 0; for more than two classes it is the
    largest probability of the row.
    """
    return data.probs[:, 0] if data.n_classes == 2 else data.probs.max(axis=1)


def centred(data: Predictions, labels: IntArray, k: int, w: FloatArray) -> FloatArray:
    """Return residuals of class k less their weighted mean in quarters of the prediction, (B, n).

    A residual is 1 or 0, whether the label is k, less its probability. ``labels`` (B, n) are B
    label vectors, ``k`` the class, and ``w`` (n,) weights.
    """
    quarter = quarters(position(data))
    share = np.zeros((data.n, 4))
    share[np.arange(data.n), quarter] = w
    share /= np.maximum(share.sum(axis=0), 1e-300)
    x = (labels == k) - data.probs[:, k]
    return np.asarray(x - (x @ share)[:, quarter])


# ------------------------------------------------------------------------------
# Votes of items that vary more than independent draws, and null draws with that variation.
#
# :class:`Overdispersion` measures it from the counts of the items; :class:`VoteDraws` draws counts
# from Dirichlet-multinomial laws whose means are the predictions.


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
    """Return the counts of votes of the items that are the clusters of these rows, remembered.

    The result has predictions and counts (I, K) of I items and K classes; None if clusters are no
    items. Rows of an item must have one prediction and one weight, also after a lens or the
    alignment of folds. O(n K) once.
    """
    if data not in _VOTES:
        _VOTES[data] = _counted(data)
    return _VOTES[data]


def _counted(data: Predictions) -> Votes | None:
    """Return the counts of votes of the items that are the clusters of these rows.

    The result has predictions and counts (I, K) of I items and K classes; None if clusters are no
    items, or rows of an item differ in prediction or weight.
    """
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
    """Drawer of the votes of I items, B times: counts (B, I, K), or a label for every row (B, n).

    The probabilities of item i are a draw of Dirichlet(s_i p_i) with s_i = (1 − λ_i) / λ_i, λ_i the
    dependence of its votes, and its votes are independent draws from them: any two agree as they do
    where the share λ_i of pairs is one draw. The share of votes for a class has the mean p_i and
    the variance p_i (1 − p_i) (1 + (m_i − 1) λ_i) / m_i. ``probs`` (I, K) are the p_i, ``size``
    (I,) the numbers m_i of votes, ``degree`` (I,) the λ_i, and ``of_row`` (n,) is the item of each
    row.
    """

    probs: FloatArray = field(repr=False)
    size: IntArray = field(repr=False)
    of_row: IntArray = field(repr=False)
    degree: FloatArray = field(repr=False)

    @classmethod
    def of(cls, votes: Votes, degree: float | FloatArray) -> VoteDraws:
        """Return a drawer of the votes of I items, whose agreement has a given degree.

        ``votes`` are the items with their predictions and numbers of votes; ``degree`` is the
        dependence λ of votes of an item, in [0, 1], one for all or one for every item (I,).
        """
        probs = votes.probs / votes.probs.sum(axis=1, keepdims=True)
        return cls(probs, votes.size, votes.of_row, np.broadcast_to(degree, votes.size.shape))

    @cached_property
    def _spread(self) -> IntArray:
        """Indices of the I' items whose probabilities are drawn anew, (I',).

        Votes of all other items are independent draws from the predictions (dependence 0).
        """
        return np.flatnonzero(self.degree > 1e-9)

    @cached_property
    def _equal(self) -> IntArray:
        """Places of the items whose votes are all drawn equal, integers.

        They are items with a dependence λ near 1; places are counted among the items whose
        probabilities are drawn anew (``_spread``).
        """
        return np.flatnonzero(self.degree[self._spread] > ALL_EQUAL)

    @cached_property
    def _shapes(self) -> FloatArray:
        """Shapes of the gamma variables from which Dirichlet draws are made, (K, I').

        They are for K classes and the I' items in ``_spread``, whose probabilities are drawn.
        """
        degree = np.minimum(self.degree[self._spread], ALL_EQUAL)
        shapes = self.probs[self._spread] * ((1.0 - degree) / degree)[:, None]
        return np.ascontiguousarray(shapes.T)

    def _drawn_probs(self, generator: np.random.Generator) -> FloatArray:
        """Return probabilities of I items drawn from their Dirichlet laws, (I, K).

        Item i has Dirichlet(s_i p_i) with s_i = (1 − λ_i) / λ_i and λ_i the dependence of its
        votes, so that the mean is p_i; items with λ = 0 keep p_i, and those with λ near 1 get a
        single class of probability 1. ``generator`` is the source of randomness.
        """
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
        """Digest, 16 bytes, of all that determines the counts, besides seed and draw number."""
        digest = blake2b(digest_size=16)
        for part in (self.probs, self.size, self.degree):
            digest.update(np.ascontiguousarray(part).tobytes())
        return digest.digest()

    def counts(self, seed: Seed, first: int, count: int) -> IntArray:
        """Return counts of votes by replicate, item and class, (count, I, K) for I items.

        Replicates are ``first``, …, ``first + count − 1``. ``seed`` is the pair of integers that
        keys the random stream. Entry (r, i, k) is the number of votes of item i for class k. The
        newest are remembered: an audit looks at the same draws with several statistics.
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
        """Return labels of n rows, (count, n), whose counts by item have the law of :meth:`counts`.

        ``seed`` is the pair of integers that keys the random stream; replicates are ``first``, …,
        ``first + count − 1``. They are written into ``out`` if it is given. O(count n K).
        """
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
    """Agreement of the votes of items beyond independent draws, ρ, and limits of the dependence λ.

    ρ = Σ_i (|X_i|² − Q_i) / Σ_i Q_i, where X_i is the sum of the residuals of item i, less the mean
    residual of items with about the same prediction (quarters by rank), and Q_i the sum of their
    squares: the numbers of :class:`~caltest.nulls.agreement.Agreement`, from counts. ``data`` are
    the rows and ``votes`` their items with counts. ``coupling`` is "label", what votes of an item
    share.
    """

    data: Predictions = field(repr=False)
    votes: Votes = field(repr=False)
    coupling: Coupling = "label"

    @property
    def cluster(self) -> IntArray:
        """The index of the item of every row, (n,)."""
        return self.votes.of_row

    @property
    def counts(self) -> IntArray:
        """Number of votes of each of the I items, (I,)."""
        return self.votes.size

    @cached_property
    def weight(self) -> FloatArray:
        """Weight of each vote of an item, (I,) for I items; 1 without weights."""
        weights = self.votes.weights
        return np.ones(self.votes.size.size) if weights is None else weights

    @cached_property
    def sums(self) -> tuple[FloatArray, FloatArray]:
        """Two terms of the variance of every item's residual sum, (I,) each for I items.

        The first is at λ = 0, the second per unit of the dependence λ of votes: w² m v and w² m (m
        − 1) v for m votes of weight w, with v the variance of a residual.
        """
        p, m = self.votes.probs, self.votes.size
        v = p[:, 0] * p[:, 1] if p.shape[1] == 2 else 1.0 - np.square(p).sum(axis=1)
        return self.weight**2 * m * v, self.weight**2 * m * (m - 1) * v

    @cached_property
    def parts(self) -> FloatArray:
        """Indicators (1.0 or 0.0) of nine sets of the I items, shape (9, I).

        The sets are all items, four quarters by prediction (for several classes the largest
        probability), and four quarters by number of votes.
        """
        p = self.votes.probs
        keys = p[:, 0] if p.shape[1] == 2 else largest(p), self.votes.size
        return np.vstack([np.ones(len(p)), *(quarters(key) == q for key in keys for q in range(4))])

    def correlation(self, counts: IntArray) -> FloatArray:
        """Return the agreement ρ of votes, overall and in eight parts, shape (9, B).

        ``counts`` (B, I, K) are B sets of votes of I items for K classes, observed or drawn. ρ is
        the sum of products of centred residuals over pairs of votes of an item, divided by the sum
        of squares. Parts are quarters of the items by prediction and by number of votes. Entries
        are infinite where no residual varies. O(B I K).
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
        """Return the upper 95 % limits of the dependence λ of votes, of all items and of quarters.

        Quarters of the items are by prediction and by number of votes. A quarter has a limit of its
        own where its items vary more than items drawn with the limit of all (p ≤ 0.05). The newest
        limits are remembered.
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
        """Return the largest dependence λ with which at least 5 % of draws have ρ ≤ ``observed``.

        ρ is the agreement of votes in the part, the index of a set of items in :attr:`parts`;
        ``observed`` is its observed value. The result is 0 where λ cannot be estimated.
        """
        variance, joint = (float(self.parts[part] @ each) for each in self.sums)
        if joint <= 1e-9 * variance or not np.isfinite(observed):
            return 0.0
        place = int(np.ceil(POSSIBLE * AGREEMENT_DRAWS)) - 1

        def overshoot(degree: float) -> float:
            return float(np.sort(self._drawn_correlations(degree)[part])[place]) - observed - 1e-9

        return _root(overshoot, max(float(observed), 0.0) * variance / joint, variance / joint)

    def _drawn_correlations(self, degree: float) -> FloatArray:
        """Return the agreement ρ of votes and its eight parts for 199 draws, (9, 199).

        ``degree`` is the dependence λ of votes in the draws, one for all items. Parts are quarters
        of the items by prediction and by number of votes.
        """
        draws = VoteDraws.of(self.votes, degree)
        at_once = max(1, COUNTS_AT_ONCE // draws.probs.size)
        blocks = [
            self.correlation(draws.counts(AGREEMENT_SEED, a, min(at_once, AGREEMENT_DRAWS - a)))
            for a in range(0, AGREEMENT_DRAWS, at_once)
        ]
        return np.concatenate(blocks, axis=1)

    def degree(self, dependence: Degree | None) -> Dependence:
        """Return limits of the dependence λ of votes: ``dependence`` if given, else estimated.

        The result has a limit of all items and of quarters of them; a number stands for all of
        these. StatisticError for a pair, which is for two columns of clusters.
        """
        if isinstance(dependence, tuple):
            raise StatisticError(f"dependence={dependence} is for two columns of clusters")
        return self.limits() if dependence is None else Dependence.of(dependence)

    def inflation(self, dependence: Degree | None, centred: bool = False) -> float:
        """Return 1.0, the factor by which draws with this dependence vary too little.

        ``dependence`` and ``centred`` are not used. Some dependence λ explains any agreement of
        votes whose predictions are equal.
        """
        return 1.0

    def drawer(self, dependence: Degree | None) -> VoteDraws:
        """Return a drawer of votes with this dependence: counts by item, or labels of rows.

        ``dependence`` is λ in [0, 1], limits of it, or None to estimate them. An item has the
        larger λ of its two quarters, by prediction and by number of votes.
        """
        limits = self.degree(dependence)
        by_part = np.array([*limits.by_prediction, *limits.by_size])
        return VoteDraws.of(self.votes, (self.parts[1:] * by_part[:, None]).max(axis=0))


def _root(overshoot: Callable[[float], float], guess: float, unit: float) -> float:
    """Return the number in [0, 1] at which an increasing function passes 0, up to 4 % too large.

    ``overshoot`` is the function. The result is 0 if it is positive at 0, and 1 if it never is.
    ``guess`` is about where the root lies, and ``unit`` a distance: an error of 2 % of it does not
    matter.
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
