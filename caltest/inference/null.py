"""Choice of the null distribution, its computation, exact or simulated, and adjusted p-values.

:func:`choose_null` has the table of ``"auto"``; :func:`null_distribution` computes the law.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from heapq import heapify, heappop, heappush
from itertools import product
from math import prod
from typing import Literal

import numpy as np
from numpy.fft import irfft, rfft

from caltest import nulls as draws
from caltest._base import IntArray
from caltest._base.arrays import RNG, ComplexArray, FloatArray, below, progress, reaching
from caltest._base.written import name_of
from caltest.data import Predictions
from caltest.errors import LimitLawWarning, Reading, SparseBinsWarning, StatisticError
from caltest.inference._input import Analysis
from caltest.inference.dependence import agreeing_schemes
from caltest.nulls import (
    Batches,
    Reaching,
    RedrawLabels,
    Run,
    Scheme,
    Workers,
    simulate,
    simulate_by,
)
from caltest.nulls.laws import (
    NEGLIGIBLE,
    ExactNull,
    RootNull,
    SimulatedNull,
    clopper_pearson,
    fast_length,
)
from caltest.results import CalibrationTestResult, ClusterSummary, HorizonSummary, ending
from caltest.results.hypotheses import NullDistribution
from caltest.statistics import Prepared, RowProblem, StatisticLike
from caltest.statistics.prepared import CellStatistic, Statistic, prepare

#: Rows per occupied cell below which consistency resampling is not to be trusted.
MIN_ROWS_PER_CELL = 20


VALID = "null=RedrawLabels(), which is valid at every sample size"


Null = Literal["auto", "exact", "asymptotic", "betting"] | Scheme


def null_distribution(
    statistic: StatisticLike, prepared: Prepared, estimate: float, null: Null, run: Run,
    stop_early: bool = False,
) -> tuple[NullDistribution, Null]:  # fmt: skip
    """Return (law, null): the null distribution of a statistic, and the name or scheme of its kind.

    ``prepared`` is the ``statistic`` with fixed predictions and ``estimate`` its value. ``null`` is
    as in :func:`calibration_test`, and the returned one never "auto"; ``run`` holds n_resamples,
    rng and workers. ``stop_early`` ends a simulation once the test is clearly not significant. See
    :func:`choose_null` for the choice and its errors. LimitLawWarning or SparseBinsWarning where
    the null is known to reject calibrated models too often.
    """
    chosen = choose_null(statistic, prepared, null, run["n_resamples"])
    data = prepared.problem.data
    stop_when = None
    if stop_early:
        two_sided, centre = prepared.two_sided, prepared.centre
        stop_when = partial(reaching, estimate, two_sided=two_sided, centre=centre)
    if isinstance(chosen, Scheme) and prepared.problem.only_null is not None:
        return replicates_of(statistic, prepared, chosen, run, stop_when=stop_when), chosen
    if data.n_clusters is not None and not (chosen == "betting" and data.horizon is not None):
        return _of_clusters(statistic, prepared, estimate, null, run, stop_when), chosen
    if chosen == "exact":
        # Cells first: exact for any n. Enumeration is for statistics that are no function of cells.
        law = prepared.cell_law() if data.n_classes == 2 else None
        if law is not None and len(law.cells) <= (data.n if null == "exact" else MAX_CELLS):
            return cell_null(law, estimate), chosen
        return enumerated_null(prepared, data.probs), chosen
    if isinstance(chosen, str):
        if chosen == "asymptotic" and (doubt := prepared.limit_caveat()) is not None:
            warnings.warn(
                f"the limit law of {name_of(statistic)} does not hold in such data: {doubt}. "
                f"Use {VALID}",
                LimitLawWarning,
                stacklevel=4,
            )
        return prepared.laws[chosen](data.labels), chosen
    rows = prepared.rows_per_cell if isinstance(chosen, draws.ConsistencyResampling) else None
    if rows is not None and rows < MIN_ROWS_PER_CELL:
        warnings.warn(
            f"only {rows:.1f} rows per occupied cell: consistency resampling rejects "
            f"calibrated models too often below 20 (up to always at 1). Use {VALID}, or fewer bins",
            SparseBinsWarning,
            stacklevel=4,
        )
    return replicates_of(statistic, prepared, chosen, run, stop_when=stop_when), chosen


def choose_null(statistic: StatisticLike, prepared: Prepared, null: Null, n_resamples: int) -> Null:
    """Return the null distribution that a test uses, as a name or a redraw scheme.

    ``prepared`` is the ``statistic`` with fixed predictions, ``null`` the requested null
    distribution, and ``n_resamples`` the number of draws of a simulated one. ``"auto"`` becomes the
    null of the first line that applies:

    =================================================  ==============================
    :class:`EValue`, without clusters or with a        ``"betting"``
    horizon
    rows have follow-up                                ``RedrawFollowup()``
    rows have clusters or a horizon                    ``SharedRedraws()``
    a binned statistic of two classes, 128 cells at    ``"exact"``, from the cells
    most are occupied
    at most ``n_resamples`` label vectors are          ``"exact"``, by enumeration
    possible
    all else                                           ``RedrawLabels()``
    =================================================  ==============================

    A null that is named stays. StatisticError where the data or the statistic do not have it.
    """
    problem = prepared.problem
    data = problem.data
    independent = data.n_clusters is None
    if null == "auto" and prepared.usual_null and (independent or data.horizon is not None):
        null = prepared.usual_null
    if problem.only_null is not None:
        return _refuse_other(problem.only_null, problem.only_null if null == "auto" else null)
    if not independent and not (null == "betting" and data.horizon is not None):
        return draws.SharedRedraws() if null == "auto" else null
    words = ("auto", "exact", *prepared.laws)
    if not (null in words if isinstance(null, str) else isinstance(null, Scheme)):
        raise StatisticError(
            f"the null of {name_of(statistic)} is one of {', '.join(map(repr, words))}, "
            f"RedrawLabels() or ConsistencyResampling(), not {null!r}"
        )
    if isinstance(null, Scheme) and not null.calibrated:
        raise StatisticError(
            f"{null!r} cannot be a null: its data sets are as miscalibrated as the observed one. "
            "Use null=RedrawLabels(); resampled rows are for confidence_interval"
        )
    if isinstance(null, Scheme) or null in prepared.laws:
        return null
    # Asked for, an exact law may take long; by itself only where it is cheaper than draws
    most = (data.n, MAX_ENUMERATION) if null == "exact" else (MAX_CELLS, n_resamples)
    law = prepared.cell_law() if data.n_classes == 2 else None
    if null == "exact" and law is not None and len(law.cells) > MOST_EXACT_CELLS:
        raise StatisticError(
            f"there are {len(law.cells)} occupied cells, and an exact null is computed for at "
            f"most {MOST_EXACT_CELLS}: take fewer bins, or null=RedrawLabels(), which is valid "
            "always",
            [Reading({"null": "RedrawLabels()"})],
        )
    if law is not None and len(law.cells) <= most[0]:
        return "exact"
    if problem.exact and n_label_vectors(data.probs) <= most[1]:
        return "exact"
    if null == "exact":
        raise StatisticError(
            f"there is no exact null for {name_of(statistic)} with {data.n} rows of "
            f"{data.n_classes} classes: it needs a two-class lens and a binned statistic, "
            "or very few rows. Use null=RedrawLabels(), which is valid always",
            [Reading({"null": "RedrawLabels()"})],
        )
    return RedrawLabels()


def _of_clusters(
    statistic: StatisticLike, prepared: Prepared, estimate: float, null: Null, run: Run,
    stop_when: Reaching | None,
) -> SimulatedNull:  # fmt: skip
    schemes, summary = agreeing_schemes(null, prepared.data, stack=6)
    kappa = max(each.inflation for each in schemes)
    if isinstance(summary, ClusterSummary) and kappa > 1.0 and not prepared.inflatable:
        if isinstance(null, str):
            raise StatisticError(
                f"{name_of(statistic)} sees labels, to which the dependence that drawn clusters "
                f"leave out (κ = {kappa:.2f}) cannot be applied. Take a statistic of residuals, "
                "such as ECE, CoxScore or Kuiper"
                f"{', or null=OneRowPerCluster()' * (prepared.data.crossed is None)}"
            )
        # Asked for by name it runs all the same, and the result says that κ was left out.
        schemes = tuple(each._replace(inflation=1.0) for each in schemes)
        summary = replace(summary, inflation_applied=False)
    laws = [
        replicates_of(
            statistic, prepared, each.scheme, run,
            factor=each.inflation, stop_when=stop_when,
        )
        for each in schemes
    ]  # fmt: skip
    # The share of draws at least as extreme, as in the p-value below
    share = partial(reaching, estimate, two_sided=prepared.two_sided, centre=prepared.centre)
    # Which kind of dependence clusters have is not known: the less favourable one counts.
    largest = max(laws, key=lambda law: float(share(law.values).mean()))
    ended = ending(*(law.ended for law in laws))
    return replace(largest, ended=largest.ended if ended == "complete" else ended, clusters=summary)


def _refuse_other(only: Scheme, null: Null) -> Scheme:
    """Return ``only``, the single null distribution for these data; StatisticError for another.

    ``null`` is what the user asked for: "auto", or a name or scheme.
    """
    if null != only:
        raise StatisticError(f"such data have the null {only!r} and not {null!r}: leave it out")
    return only


def replicates_of(
    statistic: StatisticLike, prepared: Prepared, scheme: Scheme, run: Run, *, factor: float = 1.0,
    stop_when: Reaching | None = None,
) -> SimulatedNull:  # fmt: skip
    """Simulate the null distribution of a statistic with a redraw scheme.

    Return the values of the draws.

    ``prepared`` is the ``statistic`` with fixed predictions; the latter is named in errors, and
    prepared anew where rows are resampled. ``scheme`` draws the data sets, and ``run`` holds
    n_resamples, rng and workers. ``factor`` is κ, by which squared residuals are inflated for
    clusters. ``stop_when`` maps values to booleans, the draws that reach the estimate, by which a
    run ends early; None draws all. StatisticError if the scheme does not fit the data.
    """
    data = prepared.problem.data
    if (only := prepared.problem.only_null) is not None:
        _refuse_other(only, scheme)
    if data.n_clusters is not None and not scheme.takes_clusters:
        raise StatisticError(f"{scheme!r} does not take clusters yet")
    if isinstance(scheme, draws.RowScheme):
        if not prepared.problem.exact:
            raise StatisticError(f"{scheme!r} draws rows, which a tally does not have")
        fused = prepared.row_resamples(scheme)
        if fused is None:
            evaluate = lambda sample: prepare(statistic, sample).observed  # noqa: E731
            values = simulate(evaluate, scheme.sampler(data), **run, stop_when=stop_when)
        else:
            values = simulate_by(fused, **run, stop_when=stop_when)
        return SimulatedNull(*values)
    redraws, at_once = prepared.redraws(scheme, factor), prepared.replicates_at_once
    if isinstance(redraws, Batches) and stop_when is None:
        at_once = max(
            at_once, redraws.labels_at_once // data.n if at_once > draws.REPLICATES_A_STREAM else 0
        )
    return SimulatedNull(*simulate_by(redraws, **run, stop_when=stop_when, at_once=at_once))


def replicate(
    data: Predictions,
    statistic: StatisticLike,
    scheme: Scheme,
    *,
    n_resamples: int,
    rng: RNG = None,
    workers: Workers = None,
) -> SimulatedNull:
    """Evaluate a statistic on drawn data: the engine behind every verb.

    Parameters
    ----------
    data : Predictions
        The observed data, seen through the lens.
    scheme : RedrawLabels, ConsistencyResampling, Bootstrap or another Scheme
        Where the data sets come from.
    statistic, n_resamples, rng, workers
        As in :func:`calibration_test`; Ctrl-C may make replicates fewer. Numbers do not depend on
        ``workers``, and a longer run begins with the replicates of a shorter one.

    Raises
    ------
    StatisticError
        When a replicate is not a finite number, or the scheme is none.
    """
    if not isinstance(scheme, Scheme):
        raise StatisticError(
            f"{scheme!r} is no way to draw data: use RedrawLabels(), ConsistencyResampling(), "
            "Bootstrap(), or a subclass of LabelScheme or RowScheme"
        )
    if not isinstance(data, Predictions):
        raise StatisticError("data must be Predictions: pass Predictions.of(probs, labels)")
    prepared = prepare(statistic, RowProblem.of(data.in_ratios()))
    run = Run(n_resamples=n_resamples, rng=rng, workers=workers)
    return replicates_of(statistic, prepared, scheme, run)


def result_of(
    analysis: Analysis, prepared: Prepared, statistic: StatisticLike, null: str, estimate: float,
    law: NullDistribution,
) -> CalibrationTestResult:  # fmt: skip
    """Return the test result of an estimate and its null distribution, with the p-value.

    ``analysis`` holds the data behind the lens, ``prepared`` is the ``statistic`` with fixed
    predictions, ``null`` the name of the null distribution in the result, and ``law`` the
    distribution. For B replicates of which b reach the ``estimate`` p = (1 + b) / (1 + B), or p =
    20/B after an early stop; exact laws give the upper end of their bracket.
    """
    n_draws, error, ended = 0, 0.0, "complete"
    two_sided, centre = prepared.two_sided, prepared.centre
    if isinstance(law, SimulatedNull):
        n_draws, ended = len(law), law.ended
        exceeding = int(reaching(estimate, law.values, two_sided, centre).sum())
        # The observed data are one of B + 1 exchangeable draws, so that p is never 0.
        pvalue = (1 + exceeding) / (1 + n_draws)
        if ended == "early":
            # Besag & Clifford (1991): h / (draws until the h-th) is valid without the + 1.
            exceeding = draws.EXCEEDING
            pvalue = exceeding / n_draws
        error = float(np.sqrt(pvalue * (1.0 - pvalue) / n_draws))
        bracket = clopper_pearson(exceeding, n_draws)
    elif isinstance(law, ExactNull):
        bracket = law.bracket(estimate, two_sided, centre)
        # The upper end of the bracket errs on the safe side.
        pvalue = max(bracket[1], np.finfo(float).tiny)
    else:  # a limit law; only symmetric ones are used on both sides
        beyond = centre + abs(estimate - centre)
        sides = 2.0 * law.sf(beyond) if two_sided else law.sf(estimate)
        pvalue = max(min(1.0, sides), np.finfo(float).tiny)
        bracket = (float(pvalue), float(pvalue))
    dependence = law.clusters if isinstance(law, SimulatedNull) else None
    clusters = dependence if isinstance(dependence, ClusterSummary) else None
    series = {"series": dependence} if isinstance(dependence, HorizonSummary) else {}
    return analysis.result(
        CalibrationTestResult, statistic, prepared=prepared,
        notes=() if clusters is None else clusters.notes, null=null, two_sided=two_sided,
        centre=centre, estimate=estimate, pvalue=float(pvalue), pvalue_bracket=bracket,
        pvalue_error=error, null_mean=law.mean(), null_std=law.std(), n_resamples=n_draws,
        impossible=prepared.problem.data.impossible.size, ended=ended, clusters=clusters,
        of_items=isinstance(statistic, Statistic) and statistic.of_items,
        null_distribution=law, **series,
    )  # fmt: skip


# ------------------------------------------------------------------------------
# Exact null distributions, without Monte Carlo.
#
# Given the predictions, labels of a calibrated model are independent draws from them. After a lens
# with two classes, the number of label-0 rows in a cell is Poisson-binomial, cells are independent,
# and a statistic that adds up (or takes the largest of) one term per cell has a law that can be
# computed: the law of every cell, pushed through its term, convolved over the cells on a grid.


#: Cells up to which the exact null is computed without being asked for.
MAX_CELLS = 128


#: Cells up to which it is computed when it is asked for, in some seconds.
MOST_EXACT_CELLS = 100_000


#: Label vectors that may be enumerated, and combinations of cell counts that may be listed.
MAX_ENUMERATION, MAX_ATOMS = 2**20, 2**16


#: Points of the largest grid; of one over all that can happen, beyond which a finer one ends where
#: the estimate lies; and of the coarse grid that continues that.
MAX_GRID, WHOLE_GRID, FAR_GRID = 2**21, 2**16, 2**15


#: How many times finer the next grid is at most.
FINER = 5.0


#: Values of a cell up to which shifting and adding beats a transform.
FEW_VALUES = 64


#: Width of the bracket, as a share of the p-value, at which refining ends.
PRECISION = 0.01


#: Rounding allowed for in the convolution of one more cell (measured: at most 5e-16).
MERGING = 2e-15


def cell_null(law: CellStatistic, estimate: float) -> ExactNull:
    """Return the law of a sum or maximum over cells when labels are drawn from the predictions.

    ``law`` is the prepared statistic, a sum (or maximum) of one term for each cell, which is a
    function of its number of events. The grid is refined around the ``estimate`` until the bracket
    of its p-value is narrower than 1 % of it, or a finer grid no longer helps: off the grid, the
    lower end leaves out an atom there. O(n) for the laws of the cells, O(G log G) a cell for the
    convolution on G grid points. StatisticError for terms that are not finite.
    """
    masses, values = [], []
    error = 0.0
    for cell, (first, pmf, lost) in enumerate(law.cells.laws()):
        terms = law.term(cell, first + np.arange(pmf.size))
        if not np.isfinite(terms).all():
            raise StatisticError(
                f"the statistic is {terms[~np.isfinite(terms)][0]} for some labels of cell {cell}; "
                "it must be a finite number for every set of labels"
            )
        masses.append(pmf)
        values.append(terms)
        error += lost
    if law.combine == "max":
        combined = _largest_term(masses, values, error)
    else:
        at = estimate**2 if law.root else estimate
        combined = _sum_of_terms(masses, values, error, at, law.unit)
    return RootNull.of(combined) if law.root else combined


def _largest_term(masses: list[FloatArray], values: list[FloatArray], error: float) -> ExactNull:
    """Return the law of the maximum of independent terms, one for each cell.

    It is the product of their distribution functions. ``masses`` and ``values`` are lists with an
    array for each cell: the probabilities, and the values of its term. ``error`` is a bound on
    rounding.
    """
    points, steps = [], []
    for mass, value in zip(masses, values, strict=True):
        order = np.argsort(value, kind="stable")
        tail = np.cumsum(mass[order][::-1])[::-1]
        log_below = np.log1p(-np.minimum(tail, 1.0 - 1e-16))  # log P(term < value)
        log_below[0] = -1e3
        points.append(value[order])
        steps.append(log_below - np.append(log_below[1:], 0.0))
    point, step = np.concatenate(points), np.concatenate(steps)
    order = np.argsort(point, kind="stable")
    # log P(maximum < point), added up from the top, where a small tail keeps its digits.
    tail = -np.expm1(np.cumsum(step[order][::-1])[::-1])
    point, mass = point[order], tail - np.append(tail[1:], 0.0)
    expectation = float(mass @ point)
    deviation = float(np.sqrt(mass @ (point - expectation) ** 2))
    return ExactNull(point, tail, expectation, deviation, 0.0, error)


def _sum_of_terms(
    masses: list[FloatArray], values: list[FloatArray], error: float, estimate: float,
    unit: float | None,
) -> ExactNull:  # fmt: skip
    """Return the law of a sum of independent terms, one for each cell, by convolution on a grid.

    ``masses`` and ``values`` are lists with an array for each cell: the probabilities, and the
    values of its term. ``error`` bounds their rounding. The grid is finest near the ``estimate``.
    The terms of an l1 statistic are multiples of ``unit`` = 1/n up to the fraction of the expected
    count: a grid that divides the unit by powers of ten holds decimal predictions without rounding.
    ``unit`` is None for other statistics.
    """
    means = [float(m @ v) for m, v in zip(masses, values, strict=True)]
    variances = [float(m @ (v - c) ** 2) for m, v, c in zip(masses, values, means, strict=True)]
    expectation, deviation = sum(means), float(np.sqrt(sum(variances)))
    if sum(np.log2(m.size) for m in masses) <= np.log2(MAX_ATOMS):
        point, mass = np.zeros(1), np.ones(1)
        for m, v in zip(masses, values, strict=True):
            point, mass = np.add.outer(point, v).ravel(), np.multiply.outer(mass, m).ravel()
        order = np.argsort(point, kind="stable")
        return _listed(point[order], mass[order], expectation, deviation, error)
    if deviation == 0.0:
        return ExactNull(np.array([expectation]), np.ones(1), expectation, 0.0, 0.0, error)
    origin = sum(float(v.min()) for v in values)
    shifted = [v - v.min() for v in values]
    error += NEGLIGIBLE + len(masses) * (NEGLIGIBLE + MERGING)
    reach, room = _reach(masses, shifted, deviation, estimate - origin, error)
    offsets = None  # by which share of a unit values above and below the mean of a cell differ
    if unit is not None:
        offsets = np.array([np.abs(v / unit - np.rint(v / unit)).max() for v in shifted])
    law, far, before = None, None, np.inf
    for multiple in (1, 100, 100, 100, 100, 100):
        step, end = _step(offsets, unit, len(masses), room, multiple), reach
        if reach > step * WHOLE_GRID:
            end = min(reach, max(estimate, expectation + 4.0 * deviation) - origin)
            step = max(step, end / MAX_GRID)
        size = int(end / step) + 2 * len(values)  # room for the slack beyond an estimate
        tail, slack, moved = _on_grid(masses, shifted, step, size + 2, end < reach)
        support = np.asarray(origin + moved + step * np.arange(tail.size), dtype=np.float64)
        law = ExactNull(support, tail, expectation, deviation, slack, error)
        if end < reach:
            far = far or _on_grid(masses, shifted, reach / FAR_GRID, FAR_GRID + 2)
            law = _continued(law, *far[:2], origin + far[2], reach / FAR_GRID)
        low, high = law.bracket(estimate)
        width, allowed = high - low, max(PRECISION * high, 10.0 * error)
        # What a finer grid does not narrow is an atom at the estimate, not rounding.
        if width <= allowed or step == end / MAX_GRID or width > 0.9 * before:
            break
        before = width if multiple > 1 else np.inf
        room /= 1.1 * min(width / allowed, FINER)
    assert law is not None
    return law


def _step(
    offsets: FloatArray | None, unit: float | None, n_cells: int, slack: float, multiple: int
) -> float:
    """Return the widest grid step at which rounding moves a sum of terms by at most ``slack``.

    The sum has ``n_cells`` terms, one for each cell, of which ``offsets`` (n_cells,) is the largest
    distance of a value from a whole multiple of ``unit``, in units; both are None without a common
    unit. A unit is divided by 1, 5, 50 or 500 if that represents all values exactly, else by the
    smallest multiple of ``multiple`` that suffices. ``slack`` is a distance on the scale of the
    sum.
    """
    if offsets is None or unit is None:
        return 2.0 * slack / n_cells
    decimals = np.array([1, 5, 50, 500])
    for division in (decimals, *(multiple * np.arange(2**j, 2 ** (j + 1)) for j in range(11))):
        shares = np.outer(division, offsets)
        left = np.abs(shares - np.rint(shares)).sum(axis=1) * unit / (2.0 * division)
        enough = np.flatnonzero(left <= (1e-9 * unit if division is decimals else slack))
        if enough.size:
            return unit / division[enough[0]]
    return min(unit / division[-1], 4.0 * slack / n_cells)


def _listed(
    support: FloatArray, mass: FloatArray, expectation: float, deviation: float, error: float
) -> ExactNull:
    """Return the exact law with these values and probabilities, (m,) each.

    ``support`` are the values in increasing order, ``mass`` their probabilities; ``expectation``
    and ``deviation`` are mean and standard deviation, and ``error`` bounds the error of every tail.
    Each tail is summed from its own end, so that small probabilities keep their digits.
    """
    tail, lower = np.cumsum(mass[::-1])[::-1], np.cumsum(mass)
    return ExactNull(support, tail, expectation, deviation, error=error, lower=lower)


def _reach(
    masses: list[FloatArray], values: list[FloatArray], deviation: float, at: float, error: float
) -> tuple[float, float]:
    """Return (largest value, slack).

    They say how far a grid has to reach, and how much rounding it may bring.

    ``masses`` and ``values`` are lists with an array for each cell: probabilities and values ≥ 0 of
    its term. ``deviation`` is the standard deviation of the sum of terms and ``error`` a bound on
    rounding. The sum exceeds the largest value with negligible probability. Both follow from
    Chernoff's bound: its best exponent at ``at``, the estimate, is the rate at which tails fall
    there, so that shifts by the slack change the p-value by less than its bracket allows.
    """
    starts = np.cumsum([0, *(m.size for m in masses[:-1])])
    value = np.concatenate(values)
    with np.errstate(divide="ignore"):
        log_mass = np.log(np.concatenate(masses))
    thetas = np.array([1.0, 2.0, 4.0, 6.0, 8.0, 10.0, 12.0]) / deviation
    log_moments = []
    for theta in thetas:
        weighted = log_mass + theta * value
        top = np.maximum.reduceat(weighted, starts)
        part = np.exp(weighted - np.repeat(top, np.diff(np.append(starts, value.size))))
        log_moments.append(float((top + np.log(np.add.reduceat(part, starts))).sum()))
    best = float(np.min((np.array(log_moments) - np.log(NEGLIGIBLE)) / thetas))
    bounds = np.array(log_moments) - thetas * at
    likely = bounds.min() > 0.0
    rate = 1.2 / deviation if likely else float(thetas[bounds.argmin()]) + 0.5 / deviation
    rounding = np.log(10.0 * error / PRECISION) - bounds.min()
    share = PRECISION * float(np.exp(np.clip(rounding, 0.0, 9.0)))
    room = min(0.45 * share / rate, PRECISION * deviation)
    return min(best, sum(float(v.max()) for v in values)), room


def _continued(
    law: ExactNull, tail: FloatArray, slack: float, origin: float, step: float
) -> ExactNull:
    """Return a law that joins a fine grid up to some value with a coarse grid beyond it.

    ``law`` is the law on the fine grid. ``tail`` (m,) are P(T ≥ ``origin`` + ``step`` · j), j = 0,
    1, … on the coarse grid, which is used beyond the end of the fine one; ``slack`` is by how much
    rounding to the coarse grid may have moved a value.
    """
    support = origin + step * np.arange(tail.size)
    beyond = support > law.support[-1]
    return replace(
        law,
        support=np.append(law.support, support[beyond]),
        tail=np.append(law.tail, np.minimum(tail[beyond], law.tail[-1])),
        edge=float(law.support[-1]) - 2.0 * law.slack,
        slack_beyond=max(slack, law.slack),
    )


def _on_grid(
    masses: list[FloatArray], values: list[FloatArray], step: float, size: int, cut: bool = False
) -> tuple[FloatArray, float, float]:
    """Convolve independent terms on ``size`` multiples of ``step``; return (tail, slack, origin).

    ``masses`` and ``values`` are lists with an array for each term: probabilities and values ≥ 0.
    ``tail`` (m,) holds the probabilities that the sum reaches each grid point, ``slack`` is the
    distance by which rounding can move a sum, and ``origin`` the first grid point. If the grid is
    ``cut``, the probability beyond its end is included in every tail.
    """
    slack = moved = 0.0
    waiting: list[tuple[int, int, FloatArray]] = []
    for number, (mass, value) in enumerate(zip(masses, values, strict=True)):
        index = np.rint(value / step).astype(np.int64)
        inside = index < size
        left = (value - index * step)[inside]
        least, most = float(left.min()), float(left.max())
        slack += 0.5 * (most - least)
        moved += 0.5 * (most + least)
        law = np.bincount(index[inside], mass[inside]).astype(np.float64, copy=False)
        waiting.append((law.size, number, law))
    if len(waiting) <= 24 and not cut:
        length = fast_length(size)
        spectrum: ComplexArray = np.ones(1, complex)
        for *_, pmf in waiting:
            spectrum = spectrum * rfft(pmf, length)
        pmf = np.clip(irfft(spectrum, length), 0.0, None)
        return np.cumsum(pmf[::-1])[::-1], slack, moved
    # The two shortest first: the work is some transforms of full length, not one per cell.
    heapify(waiting)
    while len(waiting) > 1:
        _, number, pmf = heappop(waiting)
        merged = _convolved(pmf, heappop(waiting)[2])[:size]
        heappush(waiting, (merged.size, number, merged))
    pmf = waiting[0][2]
    beyond = max(0.0, 1.0 - float(pmf.sum())) if cut else 0.0
    return np.cumsum(pmf[::-1])[::-1] + beyond, slack, moved


def _convolved(a: FloatArray, b: FloatArray) -> FloatArray:
    """Return the law of the sum of two independent variables with values 0, 1, …, (m,).

    ``a`` and ``b`` are their probabilities of 0, 1, …, one-dimensional arrays, as is the result. A
    negligible end of the tail is cut off.
    """
    a, b = (a, b) if a.size <= b.size else (b, a)
    (places,) = np.nonzero(a)
    if places.size <= FEW_VALUES:
        pmf = np.zeros(a.size + b.size - 1)
        for place in places:
            pmf[place : place + b.size] += a[place] * b
    else:
        length = fast_length(a.size + b.size - 1)
        spectrum = rfft(a, length) * rfft(b, length)
        pmf = np.clip(irfft(spectrum, length)[: a.size + b.size - 1], 0.0, None)
    tail = np.cumsum(pmf[::-1])
    return pmf[: pmf.size - int(np.searchsorted(tail, NEGLIGIBLE))]


def n_label_vectors(probs: FloatArray) -> float:
    """Return the number of label vectors that have positive probability, a float.

    ``probs`` (n, K) are the predictions. It is infinite from 2¹⁰⁰⁰ on.
    """
    bits = float(np.log2((probs > 0.0).sum(axis=1)).sum())
    return 2.0**bits if bits < 1000.0 else np.inf


def enumerated_null(statistic: Callable[[IntArray], float], probs: FloatArray) -> ExactNull:
    """Return the law of any statistic of the labels, by enumerating all label vectors.

    ``statistic`` maps labels (n,) to a number, the predictions ``probs`` (n, K) being fixed.
    StatisticError if more than 2²⁰ label vectors have positive probability, or a value is not
    finite.
    """
    count = n_label_vectors(probs)
    if count > MAX_ENUMERATION:
        raise StatisticError(
            f"enumeration would take {count:.3g} label vectors, more than {MAX_ENUMERATION}"
        )
    possible = [np.flatnonzero(row) for row in probs]
    free = np.flatnonzero([p.size > 1 for p in possible])
    labels = np.array([p[0] for p in possible], dtype=np.int64)
    total = prod(p.size for p in possible)
    values, masses = np.empty(total), np.empty(total)
    with progress(total, "label vectors") as advance:
        for j, chosen in enumerate(product(*(possible[i] for i in free))):
            labels[free] = chosen
            masses[j] = probs[free, labels[free]].prod()
            values[j] = statistic(labels)
            advance(1)
    if not np.isfinite(values).all():
        raise StatisticError("the statistic must be a finite number for every set of labels")
    order = np.argsort(values, kind="stable")
    expectation = float(masses @ values)
    deviation = float(np.sqrt(masses @ (values - expectation) ** 2))
    return _listed(values[order], masses[order], expectation, deviation, 0.0)


# ------------------------------------------------------------------------------
# Several tests at once: p-values adjusted so that any false alarm stays rare.


def holm(pvalues: list[float]) -> list[float]:
    """Return p-values adjusted by Holm's method (1979), in the order of ``pvalues``.

    They are valid under any dependence between the tests.
    """
    order = np.argsort(pvalues, kind="stable")
    remaining = len(pvalues) - np.arange(len(pvalues))
    stepped = np.minimum(1.0, np.maximum.accumulate(np.asarray(pvalues)[order] * remaining))
    return stepped[np.argsort(order)].tolist()


def max_t(observed: FloatArray, replicates: FloatArray) -> list[float]:
    """Return the step-down max-T adjusted p-values of Westfall & Young (1993), a list of S numbers.

    ``observed`` (S,) are the statistics, large against their hypotheses, ``replicates`` (B, S) the
    same ones on B sets of redrawn labels, all standardised over draws and observed value together.
    From the largest down, a p-value is the share (1 + b) / (1 + B) of draws whose maximum over this
    and all smaller statistics reaches it, made monotone. The smallest is exact under any
    dependence, as observed and drawn rows are exchangeable; single ones control the family when the
    joint law of the true hypotheses does not depend on the false ones.
    """
    rows = np.vstack([observed, replicates])
    tolerance = observed - [below(t, column) for t, column in zip(observed, rows.T, strict=True)]
    rows = np.where(np.abs(rows - observed) <= tolerance, observed, rows)  # rounding is no order
    spread = rows.std(axis=0)
    standard = (rows - rows.mean(axis=0)) / np.where(spread > tolerance, spread, np.inf)
    order = np.argsort(-standard[0], kind="stable")
    # Successive maxima: column j holds the largest of the j-th and all smaller statistics.
    largest = np.maximum.accumulate(standard[:, order[::-1]], axis=1)[:, ::-1]
    stepped = np.maximum.accumulate((largest >= standard[0, order] - 1e-12).mean(axis=0))
    return stepped[np.argsort(order)].tolist()
