"""Schemes that redraw labels or rows with dependence, within clusters or over time.

:class:`SharedRedraws` is the null for clusters and series; :class:`WildSigns`,
:class:`OneRowPerCluster` and :class:`PopulationWeights` are alternatives for special questions.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cache, cached_property, partial
from typing import ClassVar

import numpy as np

from caltest._base import FloatArray, IntArray
from caltest._base.arrays import AnyArray, number, one_of, quarters, whole
from caltest.data import Predictions
from caltest.data.facts import by_appearance
from caltest.data.labels import Votes
from caltest.data.lenses import TopK
from caltest.errors import StatisticError
from caltest.nulls.agreement import (
    AGREEMENT_DRAWS,
    AGREEMENT_SEED,
    AGREEMENT_STEPS,
    COUPLINGS,
    DISAGREE,
    Agreeing,
    Agreement,
    Coupling,
    CrossedAgreement,
    Degree,
    Dependence,
    TwoColumns,
    batches,
    dependent,
    possible,
)
from caltest.nulls.compiled import Memo, lane_kernel
from caltest.nulls.draws import Drawer, LabelScheme, RedrawLabels, Scheme
from caltest.nulls.items import Overdispersion, VoteDraws, votes_of
from caltest.nulls.lanes import Lanes, Seed, SharedLanes


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
        """Couplings along the first and the second column of clusters."""
        one = self.coupling or "label"
        return one if isinstance(one, tuple) else (one, one)

    def each(self, data: Predictions) -> tuple[SharedRedraws, ...]:
        """Return the schemes to try: one for each coupling, unless both draw the same labels.

        With two classes they are the same where one label is the likelier in all rows. Two columns
        of clusters try every pair of couplings, but only equal pairs for more than two classes.
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
        """Return the votes of items, whose labels are drawn from Dirichlet-multinomial laws."""
        return votes_of(data) if self.coupling in (None, "label") else None

    def vote_draws(self, data: Predictions) -> VoteDraws | None:
        """Return a drawer of counts where clusters are items with several votes, else None."""
        votes = self._votes(data)
        return None if votes is None else Overdispersion(data, votes).drawer(self.dependence)

    def agreements(self, data: Predictions) -> list[tuple[SharedRedraws, Agreeing]]:
        """Return (scheme, measured dependence) for each scheme to try, one for each coupling."""
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

        Preparation costs O(n K), and without ``dependence`` some 4000 label vectors to estimate λ.
        Without ``coupling`` rows share their label.
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
        """Return a generator of random signs, one sign for all rows of a cluster; O(n) a draw."""
        rows = np.arange(data.n) if data.clusters is None else by_appearance(data.clusters)
        return partial(
            _signs, SharedLanes.independent(np.full((int(rows.max()) + 1, 2), 0.5)), rows
        )


def _signs(
    draw: SharedLanes, rows: IntArray, seed: Seed, first: int, count: int, out: object = None
) -> IntArray:
    return 1 - 2 * draw(seed, first, count)[:, rows]


@dataclass(frozen=True, repr=False)
class OneRowPerCluster(Scheme):
    """Within-cluster resampling: repeatedly test one randomly chosen row of every cluster.

    Each of M = ``draws`` draws gives a valid p-value. They are combined as M / k times the k-th
    smallest, k = ⌈M / 4⌉ (Rüger, Metrika 25, 1978; Vovk & Wang, Biometrika 107, 2020), which is
    valid for any dependence within clusters. Every cluster has equal weight, whatever its size. In
    600 data sets of 100 clusters of five, slope 0.5, it rejects .99 (independent rows), .96 (a
    shared label) and .63 (copies) at .05; twice the median .91, .85 and .70, twice the mean .23,
    .35 and .70, a single draw .80, .77 and .77. Sizes were at most .017.
    """

    draws: int = 100
    takes_clusters: ClassVar[bool] = True

    def __post_init__(self) -> None:
        whole("draws", self.draws)

    def rows(self, data: Predictions, rng: np.random.Generator) -> IntArray:
        """Return the indices of one random row of every cluster, shape (G,), increasing."""
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
        """Raise StatisticError without weights, or where the test does not hold its level."""
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
    """Agreement of residuals of forecasts that overlap in time, for a horizon h.

    N = Σ_{i≠j, |t_i−t_j|<h} w_i w_j x_i · x_j, where x is the residual less its mean among the rows
    with about the same prediction (quarters by rank); binary data have one component. A second N
    sums the pairs within these quarters, because rows that agree there and exclude each other
    elsewhere have an overall N near 0. O(n K) for a label vector.
    """

    data: Predictions
    coupling: Coupling = "label"

    @cached_property
    def induced(self) -> Predictions:
        """Data whose residuals are compared.

        The labels, or whether the most likely label is right.
        """
        return self.data if self.coupling == "label" else TopK(1)(self.data)

    @cached_property
    def windows(self) -> list[tuple[IntArray, IntArray, IntArray]]:
        """Windows of overlapping rows, over all rows and within quarters: (order, first, end) each.

        Row ``order[j]`` overlaps the rows ``order[first[j]:end[j]]``; all arrays have shape (n,).
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
        """Return N over all pairs and within quarters.

        The shape is (B, 2), for labels of ``induced`` (B, n).
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
        """Return λ: ``dependence`` if given, else its upper confidence limit.

        See :class:`SharedRedraws`.

        The limit within quarters is used if labels agree there more than the overall limit allows.
        Results are cached.
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
        """Return N over all pairs and within quarters for draws with λ = step / 10.

        The shape is (B, 2).
        """
        draw = dependent(self.induced, step / AGREEMENT_STEPS)
        if isinstance(draw, Lanes):
            read = OverlapReader.of(self.induced)
            return draw.laid(read.order).gathered(read, AGREEMENT_SEED, 0, AGREEMENT_DRAWS)
        return np.concatenate([self(labels) for labels in batches(draw, self.data.n)])

    def inflation(self, dependence: Degree | None, centred: bool = False) -> float:
        """Return 1: sizes hold without an inflation, which would take half the power."""
        return 1.0

    def drawer(self, dependence: Degree | None) -> Drawer:
        """Return a generator of labels with this dependence between overlapping rows."""
        return dependent(self.data, self.degree(dependence), self.coupling)


@dataclass(frozen=True, eq=False)
class OverlapReader:
    """Reader that computes N, overall and within quarters, from redrawn outcomes in time order."""

    order: IntArray
    #: Time, quarter, prediction and weight of every row.
    rows: tuple[AnyArray, ...]
    horizon: int
    total: FloatArray
    mass: FloatArray

    @classmethod
    def of(cls, data: Predictions) -> OverlapReader:
        """Put the rows in order of time; O(n log n)."""
        times, horizon = timed(data)
        order = np.argsort(times, kind="stable")
        quarter = quarters(position(data))[order].astype(np.int64)
        p = np.ascontiguousarray(data.probs[order, 0])
        w = np.ones(data.n) if data.weights is None else data.weights[order]
        total, mass = (np.bincount(quarter, v, 4).astype(np.float64) for v in (w * p, w))
        rows = (times[order].astype(np.int64), quarter, p, w)
        return cls(order, rows, horizon, total, np.maximum(mass, 1e-300))

    def __call__(self, events: AnyArray) -> FloatArray:
        """Return N over all overlapping pairs and within quarters of p, shape (B, 2).

        ``events`` (n, B) are the outcomes of B redraws, rows in order of time.
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
    """Return (t, h): the rank of each row's time among the distinct times (n,), the horizon."""
    assert data.times is not None
    assert data.horizon is not None
    return data.times, data.horizon


def position(data: Predictions) -> FloatArray:
    """Return the predicted probability of the event, (n,); the largest probability for K > 2."""
    return data.probs[:, 0] if data.n_classes == 2 else data.probs.max(axis=1)


def centred(data: Predictions, labels: IntArray, k: int, w: FloatArray) -> FloatArray:
    """Return residuals of class k less their weighted mean in quarters of the prediction, (B, n).

    ``labels`` (B, n) are label vectors and ``w`` (n,) weights.
    """
    quarter = quarters(position(data))
    share = np.zeros((data.n, 4))
    share[np.arange(data.n), quarter] = w
    share /= np.maximum(share.sum(axis=0), 1e-300)
    x = (labels == k) - data.probs[:, k]
    return np.asarray(x - (x @ share)[:, quarter])
