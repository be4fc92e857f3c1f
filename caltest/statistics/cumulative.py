"""Cumulative errors: Kolmogorov–Smirnov, Kuiper, and averaged two-bin errors.

They need no bins: residuals are summed along the sorted predictions. :class:`Walk` is the prepared
form of the first two, :class:`TwoBins` of the third. :class:`UtilityCalibration` sums along the
promised utilities instead.
"""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass, field
from functools import partial
from typing import ClassVar, cast

import numpy as np

from caltest._base import FloatArray, IntArray
from caltest._base.arrays import AnyArray
from caltest.data.utilities import UtilityLike, UtilityTable
from caltest.errors import StatisticError
from caltest.nulls.lanes import kernel, lane_kernel
from caltest.nulls.laws import BrownianNull, Extent
from caltest.statistics.prepared import (
    Prepared,
    Reader,
    ResidualStatistic,
    Statistic,
    SumStatistic,
    coarseness,
    rows_of,
)
from caltest.statistics.problem import Cells, Problem, ResidualSums


@dataclass(frozen=True, eq=False)
class WalkReader(Reader):
    """Reader that computes a :class:`Walk` from blocks of redrawn outcomes, step by step.

    A walk adds up residuals along the sorted predictions; only its extremes are kept, not its
    steps. A block (n, B) holds B sets of outcomes, rows in increasing order of the predictions;
    ``values`` returns the statistic, (B,).
    """

    at_once = 64

    def values(self, block: AnyArray, factor: float = 1.0) -> FloatArray:
        ends = np.zeros((2, block.shape[1]))
        walk_on(block, self.starts, self.weights, self.expected, *ends)
        lowest, highest = factor**0.5 * ends
        return cast("Walk", self.statistic).of_extremes(lowest, highest)


@lane_kernel
def walk_on(block, starts, weights, expected, lowest, highest):  # type: ignore[no-untyped-def]
    # O(n) per lane; all walks start from 0. Four cells of one row each share the loads and stores.
    lanes, weighted, n_cells = block.shape[1], weights.size > 0, starts.size - 1
    walk, mass = np.zeros(lanes), np.empty(lanes)
    b = 0
    while b < n_cells:
        first = starts[b]
        if not weighted and b + 4 <= n_cells and starts[b + 4] == first + 4:
            r0, r1, r2, r3 = block[first], block[first + 1], block[first + 2], block[first + 3]
            e0, e1, e2, e3 = expected[b], expected[b + 1], expected[b + 2], expected[b + 3]
            for q in range(lanes):
                w0 = walk[q] + (r0[q] - e0)
                w1 = w0 + (r1[q] - e1)
                w2 = w1 + (r2[q] - e2)
                w3 = w2 + (r3[q] - e3)
                walk[q] = w3
                low, other = w0 if w0 < w1 else w1, w2 if w2 < w3 else w3
                low = low if low < other else other
                lowest[q] = low if low < lowest[q] else lowest[q]
                high, other = w0 if w0 > w1 else w1, w2 if w2 > w3 else w3
                high = high if high > other else other
                highest[q] = high if high > highest[q] else highest[q]
            b += 4
            continue
        last, less = starts[b + 1], expected[b]
        for q in range(lanes):
            mass[q] = 0.0
        for i in range(first, last):
            row, w = block[i], weights[i] if weighted else 1.0
            for q in range(lanes):
                mass[q] += w * row[q]
        for q in range(lanes):
            place = walk[q] + (mass[q] - less)
            walk[q] = place
            lowest[q] = place if place < lowest[q] else lowest[q]
            highest[q] = place if place > highest[q] else highest[q]
        b += 1


@dataclass(frozen=True, eq=False)
class Walk(SumStatistic):
    """Cumulative error with fixed predictions: the extent of a walk of residual sums.

    The walk adds up residuals, observed − predicted, along the distinct predictions in increasing
    order, from 0; one event moves it by ``unit``. ``extent`` is "maximum" for the largest
    |position| (Kolmogorov–Smirnov) or "range" for the highest less the lowest one (Kuiper).
    """

    unit: float
    extent: Extent
    reader: ClassVar[type[Reader]] = WalkReader

    def of_sums(self, sums: ResidualSums) -> FloatArray:
        steps = sums.cells[:, :, 0]
        if len(steps) == 1:  # without compiled code, which takes half a second to load
            walk = np.cumsum(steps[0])
            lowest, highest = np.array([[walk.min(initial=0.0)], [walk.max(initial=0.0)]])
        else:
            walk, lowest, highest = np.zeros((3, len(steps)))
            _turning_points(np.ascontiguousarray(steps.T), walk, lowest, highest)
        return self.of_extremes(lowest, highest)

    def of_extremes(self, lowest: FloatArray, highest: FloatArray) -> FloatArray:
        """Return the values (B,) of the statistic from extreme positions of B walks, (B,) each.

        Positions are sums of residuals, ``lowest`` ≤ 0 ≤ ``highest``. The value is the larger
        distance from 0, or the range, in the unit of the statistic.
        """
        spread = np.maximum(highest, -lowest) if self.extent == "maximum" else highest - lowest
        return np.asarray(self.unit * spread)


@dataclass(frozen=True, eq=False)
class TwoBins(SumStatistic):
    """Averaged two-bin error with fixed predictions: squared sums below and above every threshold.

    The value is the sum over groups of equal probabilities, in increasing order, of ``widths``
    times the squared residual sums up to the group and beyond it. ``widths`` (L,), one for each of
    L groups, are the lengths of the intervals of thresholds that cut after the group, over n². The
    last one includes thresholds below all predictions, for which one bin is empty as well.
    """

    widths: FloatArray = field(repr=False)

    def of_sums(self, sums: ResidualSums) -> FloatArray:
        # Drawn sums lie by cells in memory, and running sums along rows are three times as fast.
        walks = np.cumsum(np.ascontiguousarray(sums.cells[:, :, 0]), axis=1)
        rest = walks[:, -1:] - walks
        walks *= walks
        rest *= rest
        walks += rest
        walks *= self.widths
        return np.asarray(walks.sum(axis=1))


@kernel
def _turning_points(steps, walk, lowest, highest):  # type: ignore[no-untyped-def]
    # O(L) per walk; steps (L, B), so that walks are the lanes of vectors. All start from 0.
    for g in range(steps.shape[0]):
        for q in range(walk.size):
            place = walk[q] + steps[g, q]
            walk[q] = place
            lowest[q] = place if place < lowest[q] else lowest[q]
            highest[q] = place if place > highest[q] else highest[q]


@dataclass(frozen=True, repr=False)
class _CumulativeError(Statistic):
    """Base class of Kolmogorov–Smirnov and Kuiper: cumulative residuals by prediction.

    With ``scaled``, the value is divided by the standard deviation of the mean residual under
    calibration; StatisticError if that is 0. A subclass sets ``extent``, "maximum" for the largest
    |cumulative residual|, "range" for the highest less the lowest.
    """

    _: KW_ONLY
    scaled: bool = False
    extent: ClassVar[Extent]
    essential: ClassVar[int] = 0

    def prepare(self, problem: Problem) -> Walk:
        problem.event(self)
        cells = Cells.levels(problem)
        mass = float(cells.mass.sum())
        sigma = float(np.sqrt(problem.variance.sum())) / mass
        if self.scaled and sigma == 0.0:
            raise StatisticError(
                f"{self!r} divides by the standard deviation under calibration, which is 0 because "
                "every prediction is 0 or 1; leave scaled=False"
            )
        unit = 1.0 / (sigma * mass if self.scaled else mass)
        laws = {"asymptotic": partial(_brownian, self.extent, sigma * unit * mass)}
        return Walk(
            problem, unit, self.extent,
            cells=cells, min_surprises=2.0, laws=laws, remark=coarseness(self, problem),
        )  # fmt: skip


def _brownian(extent: Extent, sigma: float, labels: IntArray) -> BrownianNull:
    """Return the limit law of the extent of a walk of cumulative residuals, from Brownian motion.

    ``extent`` is "maximum" for the largest |position| or "range" for the highest less the lowest;
    ``sigma`` is the standard deviation of the last position. ``labels`` are not used, a limit law
    being a function of them by protocol. The law holds for many distinct predictions.
    """
    return BrownianNull(extent, sigma)


class KolmogorovSmirnov(_CumulativeError):
    """Largest cumulative difference between outcomes and predictions (ECCE-MAD), for two classes.

    The value is max_k |C_k|, with rows sorted by the probability p of the event (label 1), C_0 = 0
    and C_k = (1/n) Σ_{i≤k} (y_i − p_i) (Arrieta-Ibarra et al., JMLR 23, 2022), in [0, 1]. Rows with
    equal predictions enter together. Errors that change sign along p many times cancel.
    ``scaled=True`` divides by σ = √(Σ p (1 − p)) / n, the standard deviation of C_n under
    calibration, above 0 or StatisticError: the value is then of order 1 at every n.
    ``null="asymptotic"`` is the law of σ max|W| (:class:`BrownianNull`), slightly conservative with
    few rows or ties. O(n log n) once, O(n) for each further set of labels.

    Examples
    --------
    >>> round(KolmogorovSmirnov()([0.6, 0.8, 0.2, 0.4], [0, 1, 0, 0]), 12)
    0.3
    """

    extent: ClassVar[Extent] = "maximum"


class Kuiper(_CumulativeError):
    """Range of the cumulative differences (ECCE-R), for two classes.

    max_k C_k − min_k C_k over k = 0, …, n, in [0, 1], with rows sorted by the probability p of the
    event, C_0 = 0 and C_k = (1/n) Σ_{i≤k} (y_i − p_i): the largest difference |Σ (y − p)| / n over
    all intervals of predictions, which is the empirical cutoff calibration error of Rossellini et
    al. (2025, arXiv:2502.19851). Rows with equal predictions enter together. ``scaled=True``
    divides by the standard deviation of C_n under calibration, and raises StatisticError if that is
    0. ``null="asymptotic"`` is the law of the range of a Brownian motion (:class:`BrownianNull`).
    O(n log n) once, O(n) for each further set of labels.
    """

    extent: ClassVar[Extent] = "range"


@dataclass(frozen=True, repr=False)
class ATB(Statistic):
    """Averaged two-bin calibration error, for two classes: a truthful measure.

    ATB = ∫₀¹ n⁻² [(Σ_{p_i < q} (p_i − y_i))² + (Σ_{p_i ≥ q} (p_i − y_i))²] dq: the rows are cut in
    two at every threshold q, and the squared errors of both bins averaged over q, by an exact sum.
    No predictions have a smaller expected ATB than the true probabilities (Hartline, Hu & Wu, COLT
    2026, arXiv:2508.13100). The mean under calibration is Σ p_i (1 − p_i) / n². Weights multiply
    p − y, and their total is n. In [0, 1]. O(n log n) once, O(n) for further labels.

    Examples
    --------
    >>> ATB()([0.25, 0.75], [0, 1]), ATB()([0.5, 0.5], [1, 1])
    (0.015625, 0.25)
    """

    def prepare(self, problem: Problem) -> TwoBins:
        problem.event(self)
        cells = Cells.levels(problem)
        squared = float(cells.mass.sum()) ** 2
        thresholds = cells.mean(problem.probs[:, 0])
        # The last cut serves all thresholds above the predictions and, mirrored, those below them.
        widths = np.diff(thresholds, append=1.0 + thresholds[0]) / squared
        floor = float(problem.variance.sum()) / squared
        remark = coarseness(self, problem)
        return TwoBins(problem, widths, cells=cells, null_mean=floor, remark=remark)


# ------------------------------------------------------------------------------
# Utility calibration: does acting on the probabilities gain the utility they promise?
#
# :class:`UtilityCalibration` is the statistic of Hegazy, Jordan & Dieuleveut (2025);
# :class:`PromiseWalk` is its prepared form, a walk along promised utilities. :class:`PromisedSum`
# and :class:`ThresholdSums` are the totals of :func:`caltest.promise` and of a decision curve.


#: Relative difference of promised utilities that counts as equal.
EQUAL_PROMISES = 1e-12


@dataclass(frozen=True, eq=False)
class PromiseWalk(ResidualStatistic):
    """Range of the cumulative differences of utilities, with fixed predictions.

    ``gains`` (n, K) are utilities gained less utilities promised, under each of K labels. Rows are
    taken in ``order`` (n,), by increasing promise, and ``ends`` (L,) is the position of the last
    row of each of L groups of equal promises. The range is divided by ``total``, the total weight
    of the rows.
    """

    gains: FloatArray = field(repr=False)
    order: IntArray = field(repr=False)
    ends: IntArray = field(repr=False)
    total: float

    def values(self, outcomes: object, factor: float = 1.0) -> FloatArray:
        if not isinstance(outcomes, np.ndarray):  # signs, and outcomes of follow-up
            return super().values(outcomes, factor)
        steps = self.gains[np.arange(len(self.gains)), outcomes]
        weight = self.problem.weight
        return factor**0.5 * self._range(steps if weight is None else weight * steps)

    def of_residuals(self, residuals: FloatArray, squares: FloatArray) -> FloatArray:
        d = residuals.shape[2]
        gains = self.gains[:, :d]
        if d < self.gains.shape[1]:  # the residual of the other of two classes is its negative
            gains = gains - self.gains[:, d:]
        return self._range(np.einsum("bud,ud->bu", residuals, gains))

    def _range(self, steps: FloatArray) -> FloatArray:
        walk = np.cumsum(steps[:, self.order], axis=1)[:, self.ends]
        highest, lowest = walk.max(axis=1, initial=0.0), walk.min(axis=1, initial=0.0)
        return np.asarray((highest - lowest) / self.total)


@dataclass(frozen=True, repr=False)
class UtilityCalibration(Statistic):
    """Utility calibration error: distance of the utility gained from the utility promised.

    A user with utility u gains u(p, k) in a row with probabilities p if class k occurs. The model
    promises v = Σ_k p_k u(p, k). The statistic is the largest difference over all intervals I of
    promised utilities,

    max_I |(1/n) Σ_i (u(p_i, y_i) − v_i) 1{v_i ∈ I}|,

    in units of the utility (Hegazy, Jordan & Dieuleveut 2025, arXiv:2510.25458). There are no bins;
    rows with equal promises enter together. With ``TopKAccuracy(1)`` it is :class:`Kuiper` of the
    top label. The null distribution is simulated by redrawn labels, valid for every utility and
    every number of classes. The usual lens is ``Canonical()``. Rows only: a tally does not keep
    utilities. O(n K + n log n) once, O(n) for each further set of labels.

    Parameters
    ----------
    utility : Utility or callable
        :class:`Costs`, ``Costs.threshold(t)``, :class:`TopKAccuracy`, :class:`ReciprocalRank`, or
        a function from probabilities (n, K) to utilities (n, K).

    Raises
    ------
    StatisticError
        For a utility that is no finite table of shape (n, K), and for tallies.

    Examples
    --------
    >>> from caltest import Costs
    >>> treat = UtilityCalibration(Costs([[0, 4], [1, 1]]))  # a missed event costs 4
    >>> round(treat([[0.9, 0.1], [0.5, 0.5], [0.8, 0.2]], [1, 0, 0]), 6)
    1.2
    """

    utility: UtilityLike
    of_whole_vector: ClassVar[bool] = True

    def prepare(self, problem: Problem) -> PromiseWalk:
        rows = rows_of(problem, self, weights=True, labels=False)
        flipped = rows.induced and problem.n_classes == 2  # of two induced classes 0 is the event
        probs = problem.probs[:, ::-1] if flipped else problem.probs
        table = UtilityTable.of(self.utility, probs)
        centred = table.gains - table.promised[:, None]
        centred = centred[:, ::-1] if flipped else centred
        order = np.argsort(table.promised, kind="stable")
        promised = table.promised[order]
        scale = max(1.0, float(np.abs(promised).max()))
        ends = np.flatnonzero(np.append(np.diff(promised) > EQUAL_PROMISES * scale, True))
        total = float(len(probs) if problem.weight is None else problem.weight.sum())
        return PromiseWalk(problem, np.ascontiguousarray(centred), order, ends, total)


# ------------------------------------------------------------------------------
# Totals, with the predictions fixed, for rows that are redrawn with their design.


@dataclass(frozen=True, eq=False)
class PromisedSum(SumStatistic):
    """Total Σ w (u − v) of the utility gained less the utility promised; two-sided around 0.

    w is the weight of a row, u its utility under the label that occurred, and v the expectation of
    u for a label drawn from the prediction.
    """

    @classmethod
    def of(cls, problem: Problem, table: UtilityTable) -> PromisedSum:
        """Return Σ w (u − v) as a function of the labels, for a problem with rows.

        ``table`` holds the utilities ``gains`` (n, K) of every row under every label, without
        weights; the weights w are taken from ``problem``. u is the utility under the label that
        occurs, v its expectation under the prediction.
        """
        return cls(problem, two_sided=True, scores=table.gains[None])

    def of_sums(self, sums: ResidualSums) -> FloatArray:
        return np.ascontiguousarray(sums.linear[:, 0])


@dataclass(frozen=True, eq=False)
class ThresholdSums(SumStatistic):
    """Residual sums Σ w (y − p) of the rows with p ≥ t at each of T thresholds t, two-sided.

    Values are (B, T) for B sets of labels. y is label 1, p its probability and w the weight of a
    row. At threshold t the total utility gained less the utility promised is this sum times 1 / (1
    − t). ``cells`` are the L occupied intervals between thresholds, and ``column`` (T,) is the
    index of the first of them whose rows have p ≥ t, L where there is none.
    """

    cells: Cells = field(kw_only=True, repr=False)
    column: IntArray = field(kw_only=True, repr=False)

    @classmethod
    def of(cls, problem: Problem, thresholds: FloatArray) -> ThresholdSums:
        """Return Σ w (y − p) of rows with p ≥ t at T thresholds t, a function of the labels.

        ``thresholds`` (T,) are probabilities of label 1, ascending; ``problem`` has two classes,
        and columns of labels 0 and 1 in this order. O(n log T).
        """
        number = np.searchsorted(thresholds, problem.probs[:, 1], side="right")
        cells = Cells.by_number(number, problem)
        column = np.searchsorted(np.unique(number), np.arange(1, thresholds.size + 1))
        return cls(problem, two_sided=True, cells=cells, column=column)

    def of_sums(self, sums: ResidualSums) -> FloatArray:
        # The residual is that of class 0, of which label 1 has the negative
        above = -np.cumsum(sums.cells[:, ::-1, 0], axis=1)[:, ::-1]
        return np.append(above, np.zeros((len(above), 1)), axis=1)[:, self.column]

    @property
    def counted(self) -> tuple[Prepared, ...]:  # type: ignore[override]
        return ()  # T values for a set of labels, which only the general resampler keeps
