"""Dependent rows in tests and variances: clusters, two columns of clusters, and time.

:func:`agreeing_schemes` chooses the schemes and estimates the dependence λ for a test;
:class:`CrossedError` has variances along two columns of clusters; series become blocks of 4h times.
:class:`SquaredError` is the debiased squared error of a model, with its variance by the jackknife.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np

from caltest._base import BoolArray, FloatArray
from caltest._base.arrays import IntArray
from caltest._base.written import Fields
from caltest.data import Predictions
from caltest.data.facts import FEWEST_DEPENDENT, by_appearance
from caltest.errors import FewClustersWarning, Reading, StatisticError
from caltest.nulls import Scheme, SharedRedraws, WildSigns
from caltest.nulls.agreement import Agreement, Coupling, Degree, Dependence
from caltest.nulls.clusters import Overdispersion, timed
from caltest.results import ClusterSummary, HorizonSummary
from caltest.statistics import Cells
from caltest.tallies import RowsOrTally

#: Effective clusters below which power is low; clusters with a rare label below which labels that
#: rows share are too few (failures were seen at 4 and fewer).
EFFECTIVE_CLUSTERS = 10.0


#: Clusters from which on random signs hold their level, if labels are not rare.
SIGN_FLIP_CLUSTERS = 50


class Coupled(NamedTuple):
    """Redraw scheme of labels of dependent rows, with the factor κ that it lacks in variance.

    ``inflation`` is κ; residuals of the draws are multiplied by √κ.
    """

    scheme: Scheme
    inflation: float = 1.0


def agreeing_schemes(
    null: object, data: Predictions, stack: int
) -> tuple[tuple[Coupled, ...], ClusterSummary | HorizonSummary | None]:
    """Return (schemes, summary).

    They are the ways in which a test redraws labels of dependent rows, and a summary of clusters.

    A scheme is a pair of a redraw scheme with one kind of dependence (shared labels, or shared
    correctness) and the factor κ that its draws lack in variance. The largest p-value over the
    schemes counts. The summary describes clusters or horizon; it is None for independent rows and
    named schemes without estimated dependence. ``null`` is the requested null distribution or
    "auto", ``data`` are the rows, and ``stack`` is the stack level of warnings. StatisticError for
    a null that ignores the dependence, and for too few clusters to estimate it.
    """
    scheme = _admitted(null, data, stack + 1)
    if not isinstance(scheme, SharedRedraws):
        return (Coupled(scheme),), None
    schemes: dict[object, Coupled] = {}
    shared: dict[Coupling, Degree] = {}
    agreements = scheme.agreements(data)
    for each, agreement in agreements:
        degree = agreement.degree(each.dependence)
        kappa = agreement.inflation(degree)
        law = each.coupling if degree != (0.0, 0.0) else kappa  # without λ all draw alike
        schemes[law] = Coupled(replace(each, dependence=degree), kappa)
        first, second = each.couplings
        shared |= {first: degree} if first == second else {}
    facts: Fields = {"estimated": scheme.dependence is None}
    if (series := summary_of(data)) is not None:
        facts |= {"dependence": shared.get("label"), "correctness": shared.get("correctness")}
        return tuple(schemes.values()), replace(series, **facts)
    facts["inflation"] = max(each.inflation for each in schemes.values())
    summary: ClusterSummary | None = None
    # The first column is summed up last, with the second beside it
    for j in (0,) if data.crossed is None else (1, 0):
        limits = {coupling: Dependence.of(degree, j) for coupling, degree in shared.items()}
        columns = [each for _, each in agreements if isinstance(each, (Agreement, Overdispersion))]
        if data.crossed is not None:
            facts |= {"name": data.cluster_names[j], "beside": summary}
            clusters = (data.clusters, data.crossed)[j]
            columns = [Agreement.of(replace(data, clusters=clusters, crossed=None))]
        summary = _summary(columns, limits, facts)
    assert summary is not None
    warn_of_few([summary], stack + 1)
    return tuple(schemes.values()), summary


def _admitted(null: object, data: Predictions, stack: int) -> Scheme:
    """Return the scheme that redraws the labels.

    StatisticError if it ignores clusters or the horizon.

    ``null`` is the requested scheme or "auto", which keeps the estimated dependence. StatisticError
    as well for too few clusters to estimate it. ``stack`` is the stack level of warnings.
    """
    scheme = SharedRedraws() if isinstance(null, str) and null == "auto" else null
    if data.horizon is not None and not isinstance(scheme, SharedRedraws):
        raise StatisticError(
            f"null={null!r} takes rows for independent, but forecasts {data.horizon} steps ahead "
            "overlap: use null='auto', or EValue() with null='betting'"
        )
    if not isinstance(scheme, Scheme) or not scheme.takes_clusters:
        raise StatisticError(
            f"null={null!r} takes rows for independent, but they come in clusters: use "
            f"null='auto'{', or OneRowPerCluster()' * (data.crossed is None)}",
            [Reading({"null": "auto"})],
        )
    if data.crossed is not None and not isinstance(scheme, SharedRedraws):
        raise StatisticError(f"{scheme!r} does not take two columns of clusters: use null='auto'")
    assert data.clusters is not None
    sizes = np.unique(data.clusters, return_counts=True)[1]
    if isinstance(scheme, WildSigns) and sizes.size < SIGN_FLIP_CLUSTERS:
        _say(
            f"{sizes.size} clusters are few for random signs: below "
            f"{SIGN_FLIP_CLUSTERS} use null='auto'",
            stack,
        )
    shared = isinstance(scheme, SharedRedraws) and data.horizon is None
    if shared and sizes.size < FEWEST_DEPENDENT:
        raise StatisticError(
            f"too few clusters ({sizes.size}) to tell how much their rows depend on each other: "
            "test with null=OneRowPerCluster()",
            [Reading({"null": "OneRowPerCluster()"}, verb="test")],
        )
    return scheme


def _summary(
    agreements: Sequence[Agreement | Overdispersion],
    limits: Mapping[Coupling, Dependence],
    facts: Fields,
) -> ClusterSummary:
    """Return the summary of one column of clusters.

    It has their sizes, their dependence, and their effective number.

    ``agreements`` measure the dependence of the rows, one for each coupling (shared label or shared
    correctness). ``limits`` has, by coupling, the upper confidence limits of the dependence λ, of
    all rows and of parts of them. ``facts`` are further fields of the summary by name.
    """
    data, sizes, cluster = agreements[0].data, agreements[0].counts, agreements[0].cluster
    overall = {coupling: limit.overall for coupling, limit in limits.items()}
    effective = []
    for agreement in agreements:
        # For two columns labels stand for both couplings, with the larger λ
        single = len(agreements) == 1
        degree = max(overall.values(), default=0.0) if single else overall[agreement.coupling]
        variance, joint = agreement.sums
        spread = variance + degree * joint
        effective.append(float(spread.sum() ** 2 / max((spread**2).sum(), 1e-300)))
    # The rarer label is any but the commonest class: of how many clusters is it to be expected?
    commonest = data.probs[:, data.probs.mean(axis=0).argmax()]
    return ClusterSummary(
        count=sizes.size,
        smallest=int(sizes.min()),
        largest=int(sizes.max()),
        effective=min(effective),
        shared=float((1.0 - np.bincount(cluster, commonest) / sizes).sum()),
        dependence=overall.get("label"),
        correctness=overall.get("correctness"),
        in_parts=max((limit.largest for limit in limits.values()), default=0.0),
        size_effect=max((each.size_effect() for each in agreements), key=abs),
        of_items=isinstance(agreements[0], Overdispersion),
        **facts,
    )


def warn_of_few(summaries: Sequence[ClusterSummary], level: int) -> None:
    """Warn (FewClustersWarning) if a test has few effective clusters, or too few rare labels.

    Few are less than 10. ``summaries`` describe the clusters of one or several tests, of which the
    one with the fewest counts. ``level`` is the stack level, as in ``warnings.warn``.
    """
    summaries = [each for summary in summaries for each in summary.along]
    fewest = min(summaries, key=lambda summary: summary.effective)
    shared = min(summary.shared for summary in summaries)
    if fewest.effective < EFFECTIVE_CLUSTERS:
        _say(
            f"{fewest.count} clusters are as informative as {fewest.effective:.1f} of equal "
            "weight: the test keeps its level, but has little power",
            level,
        )
    if shared < EFFECTIVE_CLUSTERS:
        remedy = "test with null=OneRowPerCluster() (caltest test --null 'OneRowPerCluster()')"
        if summaries[0].name:
            remedy = "test rows of which no two share a cluster of either column"
        _say(
            f"if all rows of a cluster had the same label, only {shared:.1f} clusters would be "
            "expected to have the rarer one, which is not enough for a test. The test is valid "
            f"where each row follows its own prediction; otherwise {remedy}",
            level,
        )


def _say(words: str, level: int) -> None:
    warnings.warn(words, FewClustersWarning, stacklevel=level)


# ------------------------------------------------------------------------------
# Forecasts several steps ahead: the order of time, blocks for what redraws nothing, and doubts.


#: Forecasts that do not overlap, below which their dependence cannot be told; blocks hold four.
TIMES_A_WINDOW, WINDOWS_A_BLOCK = 10, 4


def in_time_order(data: Predictions) -> Predictions:
    """Return rows of a time series in time order, with blocks of 4h times as clusters.

    Blocks are of 4h consecutive times, h being the number of steps by which forecasts look ahead
    (``horizon``). StatisticError for fewer than 10h times.
    """
    placed, h = timed(data)
    times = np.unique(placed).size
    if times < TIMES_A_WINDOW * h:
        raise StatisticError(
            f"{times} times hold {times // h} forecasts of {h} steps that do "
            f"not overlap: at least {TIMES_A_WINDOW} are needed"
        )
    if (np.diff(placed) < 0).any():
        data = data.take(np.argsort(placed, kind="stable"))
    return replace(data, clusters=blocks(np.sort(placed), WINDOWS_A_BLOCK * h))


def blocks(times: IntArray, length: int) -> IntArray:
    """Return the number of the block to which each time belongs, ⌊t / length⌋, same shape.

    ``times`` (n,) are times t, whole numbers from 0, and ``length`` is the number of times in a
    block. A last block of less than half the length joins the one before.
    """
    block = times // length
    last = int(block.max())
    if 2 * (times.max() + 1 - length * last) < length and last > 0:
        block = np.minimum(block, last - 1)
    return block


def refuse_few_blocks(verb: str, data: Predictions) -> None:
    """Raise StatisticError for a series of fewer than five blocks of 4h times, h the horizon.

    ``verb`` is named in the message. Blocks are taken for independent units where a variance is
    estimated from them.
    """
    if data.horizon is None:
        return
    placed, h = timed(data)
    times = np.unique(placed).size
    if times < 2 * TIMES_A_WINDOW * h:
        raise StatisticError(
            f"{verb}: {times} times hold {times // (WINDOWS_A_BLOCK * h)} blocks of "
            f"{WINDOWS_A_BLOCK * h} times, whose errors are taken for independent: at least 5 are "
            "needed"
        )


def summary_of(data: Predictions) -> HorizonSummary | None:
    """Return horizon, number of times and of rows of a time series, as results show them.

    None for rows without a horizon.
    """
    if data.horizon is None:
        return None
    placed, h = timed(data)
    return HorizonSummary(h, np.unique(placed).size, rows=data.n)


# ------------------------------------------------------------------------------
# Variances where rows depend on each other along two columns of clusters.
#
# For a sum over rows V = max(V_a + V_b − V_ab, V_a, V_b), with V_a and V_b the jackknife variances
# over the clusters of each column and V_ab that over rows which share both (Cameron, Gelbach &
# Miller, Journal of Business & Economic Statistics 29, 2011; MacKinnon, Nielsen & Webb,
# arXiv:2406.08880), judged by Student's law with min_c (Σ n_g)² / Σ n_g² − 1 degrees of freedom.


def columns_of(data: RowsOrTally) -> tuple[IntArray, IntArray, IntArray]:
    """Return three numberings of the rows, (n,) each, of data with two columns of clusters.

    They are the clusters of the first column, of the second, and of both together.
    """
    first, second = by_appearance(data.clusters), by_appearance(data.crossed)
    codes = first * (int(second.max()) + 1) + second
    return first, second, by_appearance(codes)


def freedom_of(data: RowsOrTally) -> float:
    """Return degrees of freedom of a variance for rows with two columns of clusters.

    It is the effective number of clusters of the column that has fewer, less 1, and at least 1.
    """
    masses = [np.bincount(unit, data.weights) for unit in columns_of(data)[:2]]
    return float(max(min(m.sum() ** 2 / (m**2).sum() for m in masses) - 1.0, 1.0))


def joined(first: FloatArray, second: FloatArray, both: FloatArray) -> FloatArray:
    """Return V_a + V_b − V_ab, the (co)variance for two columns of clusters.

    It has the shape of ``first``. ``first`` V_a and ``second`` V_b are the variances with one
    column of clusters alone, ``both`` V_ab with clusters that share both; all are numbers or
    matrices of one shape. Diagonals of the result are at least those of V_a and V_b, as the
    estimate can fall below them by chance. It is V_a + V_b where it would not be positive definite.
    """
    combined = np.atleast_2d(first + second - both)
    least = np.maximum(np.diag(np.atleast_2d(first)), np.diag(np.atleast_2d(second)))
    # V_a + V_b − V_ab may be below its parts by chance; the larger of both is never too small
    raised = combined + np.diag(np.maximum(least - np.diag(combined), 0.0))
    if np.linalg.eigvalsh(raised).min() <= 0.0:  # two columns of next to nothing in common
        raised = np.atleast_2d(first + second)
    return raised.reshape(np.shape(first))


@dataclass(frozen=True, eq=False)
class CrossedError:
    """Debiased squared error for two columns of clusters, with its jackknife values.

    T = (1/W) Σ_b w_b Σ r_i · r_j over pairs of rows in one cell b that share neither cluster, with
    residuals r, total weight W, and w_b the weight of cell b over its pairs. ``estimate`` is T,
    ``omitting`` holds two arrays: T without each cluster of the first and of the second column,
    with the same cells. ``linear`` (n,) is the first-order term w (2 r̄_b · r − |r̄_b|²) of every
    row, r̄_b the mean residual of its cell and w its weight.
    """

    estimate: float
    omitting: tuple[FloatArray, FloatArray]
    linear: FloatArray

    @classmethod
    def of(cls, cells: Cells, induced: Predictions) -> CrossedError:
        """Compute the debiased squared error and its jackknife values for two columns of clusters.

        ``cells`` partition the rows of ``induced``, the predictions and outcomes behind the lens,
        which has both columns. O(n d log n) for d classes.
        """
        r = induced.residuals[:, :1] if induced.n_classes == 2 else induced.residuals
        w = np.ones(induced.n) if induced.weights is None else induced.weights
        cell, size, (a, b, both) = cells.of_unit, len(cells), columns_of(induced)
        _, first, place = np.unique(both * size + cell, return_index=True, return_inverse=True)
        place, at = place.ravel(), cell[first]
        x = np.column_stack([added(r, place), np.bincount(place, w)])
        columns = [np.unique(c[first] * size + at, return_inverse=True)[1].ravel() for c in (a, b)]
        parts = [added(x, column) for column in columns]
        whole = added(x, at, size)

        def products(values: FloatArray, others: FloatArray) -> FloatArray:
            """Return the products of residual sums and of masses of m pairs of parts, (m, 2).

            ``values`` and ``others`` (m, d + 1) hold the d residual sums of m parts each, and last
            their mass. The first column is summed over the classes.
            """
            both = values * others
            return np.column_stack([both[:, :-1].sum(axis=1), both[:, -1]])

        # Inclusion and exclusion: all pairs, less pairs in either cluster, plus pairs in both
        pairs = products(whole, whole) + added(products(x, x), at, size)
        starts = [np.unique(column, return_index=True)[1] for column in columns]
        for part, start in zip(parts, starts, strict=True):
            pairs -= added(products(part, part), at[start], size)
        mass = whole[:, -1]
        terms = mass * over(pairs[:, 0], pairs[:, 1], pairs[:, 1] > 1e-9)
        omitting = []
        for j, unit in enumerate((a, b)):
            part, start, other = parts[j], starts[j], parts[1 - j][columns[1 - j]]
            where = at[start]
            # The pairs that a cluster has with others of its cell, which share no cluster
            lost = products(whole[where] - part, part) - added(products(other - x, x), columns[j])
            rest = pairs[where] - 2.0 * lost
            left = mass[where] - part[:, -1]
            gained = left * over(rest[:, 0], rest[:, 1], rest[:, 1] > 1e-9) - terms[where]
            changed = np.bincount(unit[first][start], gained)
            remaining = mass.sum() - np.bincount(unit, w)
            omitting.append((terms.sum() + changed) / np.maximum(remaining, 1e-300))
        mean = whole[:, :-1] / np.maximum(mass, 1e-300)[:, None]
        linear = 2.0 * (mean[cell] * r).sum(axis=1) - w * (mean**2).sum(axis=1)[cell]
        return cls(float(terms.sum() / mass.sum()), (omitting[0], omitting[1]), linear)


def variance_of_difference(a: CrossedError, b: CrossedError, data: Predictions) -> float:
    """Return the variance of T_a − T_b, two debiased errors of rows with two columns of clusters.

    It is V_a + V_b − V_ab, with the jackknife variances along each column; the last, of rows that
    share both clusters, enters at first order. ``a`` and ``b`` have the errors T of two models with
    their jackknife values, ``data`` are the rows, with the clusters.
    """
    both = zip(a.omitting, b.omitting, strict=True)
    first, second = (_jackknife_variance(x - y) for x, y in both)
    w = np.ones(data.n) if data.weights is None else data.weights
    linear = a.linear - b.linear
    linear = linear - w * linear.sum() / w.sum()
    together = (np.bincount(columns_of(data)[2], linear) ** 2).sum() / w.sum() ** 2
    return float(max(first + second - together, first, second))


def by_student(
    value: float, variance: float, freedom: float, level: float
) -> tuple[float, float, float]:
    """Return (low, high, p): Student's interval of an estimate and its two-sided p-value.

    ``value`` is the estimate with its ``variance``, ``freedom`` are degrees of freedom, and
    ``level`` is the level of the interval. The hypothesis is 0. p is 1 for values within 1e-14 of
    0, and at least the smallest positive float.
    """
    from scipy.special import stdtr, stdtrit

    error = max(float(np.sqrt(variance)), 1e-300)
    reach = float(stdtrit(freedom, 0.5 + level / 2.0)) * error
    pvalue = max(2.0 * float(stdtr(freedom, -abs(value) / error)), float(np.finfo(float).tiny))
    return value - reach, value + reach, 1.0 if abs(value) <= 1e-14 else pvalue


def _jackknife_variance(values: FloatArray) -> float:
    return float((values.size - 1) / values.size * ((values - values.mean()) ** 2).sum())


# ------------------------------------------------------------------------------
# Debiased squared error of a model, and the variance of the difference of two.
#
# :class:`SquaredError` holds the debiased error with its jackknife values, from the :class:`Parts`
# of units (rows or clusters) in cells; :func:`base_variance` has the variance of a difference.


@dataclass(frozen=True, eq=False)
class Parts:
    """Residual sums by unit and cell; a unit is a row, or a cluster of rows.

    A part is the rows of one unit in one cell; there are P parts. ``unit`` and ``cell`` (P,) number
    both; ``mass`` (P,) is W_ub = Σ w_i, and ``sums`` (P, d) are S_ub = Σ w_i r_i with weights w and
    residuals r_i = onehot(y_i) − p_i, one component for two classes. Parts of a unit are adjacent.
    ``of_row`` (n,) is the part of every row, and ``rows`` is true if each row is a unit. ``times``
    (P,) is the number of such parts: 1, except for rows that stand for several rows of a tally.
    """

    unit: IntArray
    cell: IntArray
    mass: FloatArray
    sums: FloatArray
    of_row: IntArray
    times: FloatArray
    rows: bool

    @classmethod
    def of(cls, induced: Predictions, cell: IntArray, times: FloatArray | None = None) -> Parts:
        """Sum the residuals of rows by unit (row or cluster) and cell.

        O(n d), O(n log n) with clusters.

        ``induced`` has the predictions and outcomes behind the lens, with weights and clusters, and
        d is its number of classes, or 1 for two. ``cell`` (n,) is the number of the cell of every
        row; row i stands for ``times[i]`` rows, None for 1.
        """
        r = induced.residuals[:, :1] if induced.n_classes == 2 else induced.residuals
        w = np.ones(induced.n) if induced.weights is None else induced.weights
        every = np.arange(induced.n)
        if induced.n_clusters is None:
            times = np.ones(induced.n) if times is None else times
            return cls(every, cell, w, r, every, times, rows=True)
        unit = by_appearance(induced.clusters)
        n_cells = int(cell.max()) + 1
        codes, place = np.unique(unit * n_cells + cell, return_inverse=True)
        sums, mass = added(r, place.ravel(), codes.size), summed(w, place.ravel(), codes.size)
        once = np.ones(codes.size)
        return cls(*np.divmod(codes, n_cells), mass, sums, place.ravel(), once, rows=False)

    def crossed(self, other: Parts) -> tuple[IntArray, IntArray]:
        """Return all pairs (i, j) of parts that share a unit, as two index arrays (m,).

        A part is the rows of one unit (row or cluster) in one cell. Part i belongs to this object,
        part j to the ``other``, which divides the same rows into other cells.
        """
        if self.rows:
            return self.of_row, self.of_row
        # Parts of a unit lie together: the parts of the other partition are a range for each
        counts = np.bincount(other.unit)
        repeat = counts[self.unit]
        left = np.repeat(np.arange(self.unit.size), repeat)
        first = (np.cumsum(counts) - counts)[self.unit] - (np.cumsum(repeat) - repeat)
        return left, np.arange(left.size) + first[left]


#: Share of a cell's weight that the others have beside a unit that dominates it.
DOMINATED = 1e-4


def added(values: FloatArray, group: IntArray, n_groups: int = 0) -> FloatArray:
    """Return the column sums of every group, shape (n_groups, d).

    ``values`` (n, d) are rows, ``group`` (n,) the group of each, from 0 to n_groups − 1.
    """
    return np.stack([np.bincount(group, column, n_groups) for column in values.T], axis=1)


def summed(values: FloatArray, group: IntArray, n_groups: int) -> FloatArray:
    """Return the sum of ``values`` (n,) in every group, shape (n_groups,).

    ``group`` (n,) is the group of each value, from 0 to n_groups − 1.
    """
    return np.asarray(np.bincount(group, values, n_groups), dtype=np.float64)


@dataclass(frozen=True, eq=False)
class SquaredError:
    """Debiased squared error T of a model over the cells of a partition, with its jackknife values.

    T = (1/W) Σ_b w_b (|S_b|² − Σ_u |S_ub|²) uses products of residual sums of two different units u
    in one cell b; a unit is a row or a cluster. S_ub and W_ub are residual sum and weight of unit u
    in cell b, S_b and W_b their sums over units, W the sum over cells. w_b is W_b / (W_b² − Σ_u
    W_ub²), that is 1 / (n_b − 1) for n_b unweighted rows, and 0 for cells of one unit. For rows, T
    is the value of ``DebiasedL2``; for clusters it leaves out the pairs within a cluster.

    ``estimate`` is T, and ``parts`` holds the S_ub of the P parts, a part being one unit in one
    cell. ``cell`` (n,) is the cell of every row, ``weights`` (L,) are the w_b of L cells, ``mass``
    (L,) the W_b, and ``centred`` (P, d) the S_ub − W_ub S_b / W_b. ``omitting`` (U,) is T without
    each of U units, with the same cells; ``changes`` (n, K) the change of T if row i has label k.
    ``copies`` (n,) and ``times`` (U,) say how many rows and units each row and unit stands for.
    """

    estimate: float
    cell: IntArray
    parts: Parts
    weights: FloatArray
    mass: FloatArray
    centred: FloatArray
    omitting: FloatArray
    changes: FloatArray
    copies: FloatArray
    times: FloatArray

    @classmethod
    def of(
        cls, cells: Cells, induced: Predictions, times: FloatArray | None = None
    ) -> SquaredError:
        """Compute the debiased squared error of rows in ``cells``, a partition of them.

        O(n d), d classes.

        ``induced`` has the predictions and outcomes behind the lens; row i stands for ``times[i]``
        rows, or for itself if ``times`` is None.
        """
        n, cell, size = induced.n, cells.of_unit, len(cells)
        parts = Parts.of(induced, cell, times)
        part_cell, mass, x, m = parts.cell, parts.mass, parts.sums, parts.times
        sums, units = added(m[:, None] * x, part_cell, size), np.bincount(part_cell, m, size)
        # |S|² − Σ |x|² are the products of two different units: their noise has mean 0
        squares = (x * x).sum(axis=1)
        totals = (sums * sums).sum(axis=1) - summed(m * squares, part_cell, size)
        total, squared = (summed(m * mass**e, part_cell, size) for e in (1, 2))
        apart = total**2 - squared
        heavy = (total[part_cell] - mass < DOMINATED * total[part_cell]) & (m == 1.0)
        if heavy.any():  # of which differences of sums would leave rounding only
            few = _without(heavy, parts, size)
            at = part_cell[heavy]
            totals[at] = few.totals[at] + 2.0 * (few.sums[at] * x[heavy]).sum(axis=1)
            apart[at] = few.apart[at] + 2.0 * few.total[at] * mass[heavy]
        weights = over(total, apart, (units > 1) & (apart > 0.0))
        # Without a unit: |S − x|² − (Q − |x|²) = |S|² − Q − 2 S·x + 2 |x|².
        left = totals[part_cell] - 2.0 * (sums[part_cell] * x).sum(axis=1) + 2.0 * squares
        rest = total[part_cell] - mass
        rest_apart = rest**2 - squared[part_cell] + mass**2
        if heavy.any():
            left[heavy], rest[heavy], rest_apart[heavy] = (
                few.totals[at], few.total[at], few.apart[at]
            )  # fmt: skip
        others = over(rest, rest_apart, (units[part_cell] > 2) & (rest_apart > 0.0))
        gone = np.bincount(parts.unit, others * left - (weights * totals)[part_cell])
        whole, everything = float(weights @ totals), float(m @ mass)
        remaining = everything - np.bincount(parts.unit, mass)
        omitting = (whole + gone) / np.where(remaining > 0.0, remaining, 1.0)
        # ∂T / ∂r_i = 2 w_b (S_b − x_i) / W: a product with itself is not in T
        change = 2.0 * weights[cell, None] * (sums[cell] - x[parts.of_row]) / everything
        change = change if induced.weights is None else change * induced.weights[:, None]
        if induced.n_classes == 2:  # the second component is not counted
            change = np.column_stack([change, np.zeros(n)])
        changes = change - change[np.arange(n), induced.labels, None]
        centred = x - sums[part_cell] * (mass / total[part_cell])[:, None]
        copies, alike = m[parts.of_row], m if parts.rows else np.ones(omitting.size)
        return cls(
            whole / everything, cell, parts, weights, total, centred, omitting, changes, copies,
            alike,
        )  # fmt: skip

    def in_cells(self, values: FloatArray) -> FloatArray:
        """Return the sums over each of the L cells, (L,), of values of the P parts.

        ``values`` (P,) has one for each part; a part is one unit (row or cluster) in one cell.
        Parts that stand for several count as often.
        """
        return summed(self.parts.times * values, self.parts.cell, self.weights.size)

    def together(self, variances: FloatArray) -> float:
        """Return the variance of a sum over rows if rows of one unit are perfectly correlated.

        ``variances`` (n,) are the variances of single rows; a unit is a row or a cluster.
        """
        if self.parts.rows:
            return float(self.copies @ variances)
        unit = self.parts.unit[self.parts.of_row]
        return float((np.bincount(unit, np.sqrt(variances)) ** 2).sum())

    @property
    def alone(self) -> int:
        """Number of rows in cells of a single unit (row or cluster), which the error leaves out."""
        return int(self.copies[self.weights[self.cell] == 0.0].sum())

    @cached_property
    def freedom(self) -> float:
        """Degrees of freedom of this error's variance.

        They are the effective number of units (rows or clusters) less 1, and infinite for rows of
        equal weight.
        """
        mass = np.bincount(self.parts.unit, self.parts.mass)
        if self.parts.rows and mass.min() == mass.max():
            return np.inf
        whole, squared = float(self.times @ mass), float(self.times @ mass**2)
        return max(whole**2 / squared - 1.0, 1.0)


class Few(NamedTuple):
    """Sums over L cells that leave some parts out; a part is one unit (row or cluster) in one cell.

    ``total`` (L,) is the weight W, ``sums`` (L, d) the residual sums S, ``totals`` (L,) |S|² − Σ
    |S_u|² and ``apart`` (L,) W² − Σ W_u², with S_u and W_u the sums of the units u that stay.
    """

    total: FloatArray
    sums: FloatArray
    totals: FloatArray
    apart: FloatArray


def _without(heavy: BoolArray, parts: Parts, size: int) -> Few:
    """Return the sums of the cells without the parts marked ``heavy`` (P,), which dominate them.

    A part is the rows of one unit in one cell: ``parts`` has, for each of P parts, the weight W_u
    and the residual sum S_u (d,), d being 1 for two classes, else their number. For each of the L =
    ``size`` cells the result has the weight W (L,), the residual sums S (L, d), |S|² − Σ |S_u|² and
    W² − Σ W_u² (L,), over the parts that stay.
    """
    m = np.where(heavy, 0.0, parts.times)
    sums = added(m[:, None] * parts.sums, parts.cell, size)
    squares = summed(m * (parts.sums**2).sum(axis=1), parts.cell, size)
    total, squared = (summed(m * parts.mass**e, parts.cell, size) for e in (1, 2))
    return Few(total, sums, (sums * sums).sum(axis=1) - squares, total**2 - squared)


def over(a: FloatArray, b: FloatArray, where: BoolArray) -> FloatArray:
    """Return a / b elementwise, 0 where ``where`` is false; all three have one shape."""
    return np.divide(a, b, out=np.zeros(a.shape), where=where)


def base_variance(a: SquaredError, b: SquaredError, paired: bool) -> float:
    """Return the variance of T_a − T_b that the units show, whether models are calibrated or not.

    ``a`` and ``b`` hold the debiased squared errors T of two models with their jackknife values;
    units are rows or clusters, the same for both if ``paired``. With T_a − T_b = Σ_{u≠v} h_uv / W
    over pairs of units and W the total weight, the variance has a linear part V₁, which is 0 when
    both models are calibrated, and a quadratic part 2 Σ_{u≠v} h_uv² / W². The jackknife V_J counts
    the second twice, and its expectation is never too small (Efron & Stein 1981). With ĥ_uv from
    residuals centred in their cells, the variance used is

        V = max(V_J − Q̂, Q, Q̂) + 1e-14 Q₀,  Q = 2 Σ h_uv² / W², Q̂ = 2 Σ ĥ_uv² / W²,

    with Q₀ = Q without the products of the two models: a floor for their rounding. Paired units
    enter through the products of the two kernels; without pairs they are 0.
    O(n) for two classes; for K classes O(n K) and, in every cell of m rows, O(m K min(m, K)).
    Clusters meet in several pairs of cells, each of which costs as much.
    """
    sides = [(a.omitting - b.omitting, a)] if paired else [(e.omitting, e) for e in (a, b)]
    jackknife = 0.0
    for values, error in sides:
        times, n = error.times, float(error.times.sum())
        jackknife += (n - 1.0) / n * float(times @ (values - times @ values / n) ** 2)
    # Residuals as they are count true errors as noise; centred ones lack a little of it
    centred, _ = _quadratic(a, b, a.centred, b.centred, paired)
    raw, apart = _quadratic(a, b, a.parts.sums, b.parts.sums, paired)
    return max(jackknife - centred, raw, centred, 0.0) + 1e-14 * apart


def _quadratic(
    a: SquaredError, b: SquaredError, x: FloatArray, z: FloatArray, paired: bool
) -> tuple[float, float]:
    """Return (value, value for unpaired rows) of 2 Σ_{u≠v} h_uv² / W², a part of a variance.

    ``a`` and ``b`` hold the debiased squared errors T of two models; h_uv is the product of the
    residual sums of two units u and v (rows or clusters) in T_a − T_b, and W the total weight.
    ``x`` and ``z`` (P, d) are residual sums of a and b, for each of P pairs of unit and cell and d
    classes. Without ``paired`` rows there are no products between models.
    """
    scale_a, scale_b = float(a.mass.sum()), float(b.mass.sum())
    apart = 2.0 * (_products(a, a, x, x) / scale_a**2 + _products(b, b, z, z) / scale_b**2)
    both = _products(a, b, x, z) if paired else 0.0
    return apart - 4.0 * both / (scale_a * scale_b), apart


def _products(a: SquaredError, b: SquaredError, x: FloatArray, z: FloatArray) -> float:
    """Return Σ_{u≠v} g_uv h_uv over pairs of units u and v (rows or clusters), for two models.

    ``a`` and ``b`` hold the debiased squared errors of both. g_uv is Σ_b w_b x_ub · x_vb over the
    cells b of a with their weights w_b, and h_uv likewise of z for b, with ``x`` and ``z`` (P, d)
    residual sums of P pairs of unit and cell, for d classes. The sum is computed as Σ w_b w_c
    (|X_bᵀ Z_c|² − …) over the pairs of a cell b of model a and a cell c of model b, where X_b and
    Z_c hold the sums of the units with parts in both, less the products of a unit with itself.
    """
    left, right = a.parts.crossed(b.parts)
    n_cells = b.weights.size
    if a is b and a.parts.rows:
        group, weights = a.cell, a.weights**2
    else:
        codes = a.parts.cell[left] * n_cells + b.parts.cell[right]
        pairs, group = np.unique(codes, return_inverse=True)
        group = group.ravel()
        weights = a.weights[pairs // n_cells] * b.weights[pairs % n_cells]
    # Products of a unit with itself are all in the sums over pairs, and are taken off here
    diagonal = a.times
    for error, values in ((a, x), (b, z)):
        squares = error.weights[error.parts.cell] * np.square(values).sum(axis=1)
        diagonal = diagonal * np.bincount(error.parts.unit, squares)
    if x.shape[1] == 1:
        both = a.parts.times[left] * (x[left] * z[right])[:, 0]
        products = np.bincount(group, both, weights.size)
        return float(weights @ products**2 - diagonal.sum())
    order = np.argsort(group, kind="stable")
    starts = np.searchsorted(group[order], np.arange(weights.size + 1))
    total = -float(diagonal.sum())
    for g in np.flatnonzero(weights > 0.0):
        rows = order[starts[g] : starts[g + 1]]
        xs, zs = x[left[rows]], z[right[rows]]
        # ‖XᵀZ‖² = Σ (XXᵀ)(ZZᵀ): the smaller of both tables is made
        few = rows.size < x.shape[1]
        whole = ((xs @ xs.T) * (zs @ zs.T)).sum() if few else np.square(xs.T @ zs).sum()
        total += weights[g] * float(whole)
    return total
