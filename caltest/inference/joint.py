"""Several hypotheses at once: statistics and lenses together, and every class.

:func:`joint_test` tests several statistics and lenses. Where all pairs see the labels as drawn they
share the draws and are adjusted by step-down max-T, otherwise by Holm's method.
:func:`worst_class` says which classes are miscalibrated, with max-T p-values.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Unpack

import numpy as np
from scipy.special import gammaincc, softmax

from caltest._base import FloatArray, IntArray
from caltest._base.arrays import N_RESAMPLES, RNG, fraction, reaching
from caltest._base.written import Fields
from caltest.data import Facts, Predictions
from caltest.data.lenses import Canonical, LensLike, as_lens
from caltest.errors import StatisticError
from caltest.inference._input import (
    Analysis,
    admitted,
    evaluated,
    lens_for,
    rows_where_needed,
    seed_of,
    take_rows,
    take_rows_or_tally,
    take_tally,
)
from caltest.inference.calibration import (
    calibration_result,
    calibration_test,
    memorised,
    refuse_bets,
    with_subgroups,
)
from caltest.inference.null import Null, holm, max_t, result_of
from caltest.nulls import (
    CHUNK,
    REPLICATES_A_STREAM,
    Batches,
    RedrawLabels,
    Run,
    SharedRedraws,
    Workers,
    check_run,
    simulate_by,
)
from caltest.nulls.laws import SimulatedNull
from caltest.results import (
    CalibrationTestResult,
    ClassComponent,
    JointTestResult,
    WorstClassResult,
    ending,
)
from caltest.results.base import go_on
from caltest.statistics import MulticlassCox, Outcomes, Problem, RowProblem, WorstClass
from caltest.statistics.prepared import Prepared, StatisticLike
from caltest.statistics.regression import (
    COMPONENT_DIRECTIONS,
    PROBABILITY_CLIP,
    CoxPart,
    LargestComponent,
    observed_scores,
    score_covariance,
    whitening,
)
from caltest.tallies import AnyTally, RowsOrTally, problem_of_tally

#: Functions from the outcomes that are drawn to those that each pair sees.
Maps = list[Callable[[Outcomes], Outcomes]]


#: What a joint result says of its data; lens and statistic are those of its tests.
SHARED_BY_TESTS = (
    *("n_classes", "seed", "notes", "copies", "effective_n", "n_clusters", "folds"),
    *("series", "followup"),
)


def joint_test(
    probs: object,
    labels: object = None,
    *,
    pairs: Sequence[tuple[StatisticLike, LensLike | None]],
    n_resamples: int = N_RESAMPLES,
    rng: RNG = None,
    workers: Workers = None,
    **facts: Unpack[Facts],
) -> JointTestResult:
    """Test several aspects of calibration on the same redrawn labels.

    Each pair of a statistic and a lens gets its own p-value, and one adjusted for their number by
    the step-down max-T of Westfall & Young (1993), more powerful than Holm's where they are
    dependent.

    Parameters
    ----------
    probs, labels, rng, workers, **facts
        As in :func:`calibration_test`.
    pairs : sequence of (statistic, lens)
        The pairs to test; None is the default lens.
    n_resamples : int, default 9999
        Label vectors drawn. No p-value is below 1 / (1 + ``n_resamples``).

    Raises
    ------
    StatisticError
        When there is no pair, a statistic is not a finite number, or a user's lens picks rows.

    Notes
    -----
    O(B n) for each pair. Labels are drawn from the whole vectors, or from the induced problem if
    all pairs share one lens; with equal seeds they equal the labels of :func:`calibration_test`.
    Pairs are tested by themselves and adjusted by Holm's method with clusters, whose dependence
    differs from lens to lens, and for several lenses of :class:`Tallies`. With ``by`` all pairs are
    tested in every subgroup as well, adjusted by Holm's method.

    References
    ----------
    Westfall & Young, "Resampling-based multiple testing", Wiley 1993.

    Examples
    --------
    >>> import caltest as ct
    >>> six = ct.examples.SixPoints().sample(600, rng=1)
    >>> pairs = [(ct.ECE(), ct.TopK(1)), (ct.ECE(ct.UniformBins(10)), ct.Canonical())]
    >>> [p < 0.05 for p in ct.joint_test(six, pairs=pairs, n_resamples=999, rng=1).adjusted]
    [False, True]
    """
    try:
        statistics, lenses = [s for s, _ in pairs], [lens for _, lens in pairs]
    except (TypeError, ValueError):
        raise StatisticError(
            f"pairs must be a list such as [(ECE(15), TopK(1)), (Kuiper(), None)], not {pairs!r}"
        ) from None
    if not statistics:
        raise StatisticError("the list of (statistic, lens) pairs is empty")
    run = Run(n_resamples=n_resamples, rng=rng, workers=workers)
    probs = rows_where_needed(probs, [*zip(statistics, lenses, strict=True)])
    if isinstance(probs, AnyTally):
        tally = take_tally("joint_test", probs, labels, facts, whole=True)
        return _of_tally(tally, statistics, lenses, run)
    data = take_rows("joint_test", probs, labels, facts)
    if data.by is None:
        return _tested_jointly(data, statistics, lenses, run)

    def test_rows(part: Predictions) -> JointTestResult:
        return _tested_jointly(admitted("joint_test", part), statistics, lenses, run)

    return with_subgroups(test_rows, data)


def _tested_jointly(
    data: Predictions, statistics: list[StatisticLike], lenses: list[LensLike | None], run: Run
) -> JointTestResult:
    """Test all pairs of statistics and lenses on shared redraws where possible, else one by one.

    ``data`` are validated rows; ``statistics`` and ``lenses`` have one entry for each pair, None
    for the default lens; ``run`` holds n_resamples, rng and workers. Redraws are shared by lenses
    that keep the labels as drawn, or by pairs with one common lens. Shared tests are adjusted by
    step-down max-T, others by Holm's method.
    """
    rng = run["rng"]
    for statistic in statistics:
        refuse_bets(data, statistic)
    if data.n_clusters is not None:  # dependence differs from lens to lens: no draws are shared
        return _holm(data, statistics, lenses, run, SharedRedraws())
    # Lenses that leave labels as drawn share them; what follows asks which draws serve all pairs
    lenses = [lens_for(s, lens, data) for s, lens in zip(statistics, lenses, strict=True)]
    first, *rest = [as_lens(lens, data) for lens in lenses]
    if data.followup is not None:  # which knows of one event only
        looks = [Analysis.through(lens, data, rng) for lens in (first, *rest)]
        return _on_shared_draws(looks[0].problem, looks, None, statistics, run)
    if data.folds is not None and any(
        memorised(Analysis.through(lens, data)) for lens in {first, *rest}
    ):
        return _holm(data, statistics, lenses, run)
    if all(lens == first for lens in rest):  # draw what the one lens shows, of very many rows sums
        looks = [Analysis.through(first, data, rng, statistics)] * len(statistics)
        return _on_shared_draws(looks[0].problem, looks, None, statistics, run)
    if data.folds is not None:  # so do aligned levels
        return _holm(data, statistics, lenses, run)
    looks = [Analysis.through(lens, data, rng) for lens in (first, *rest)]
    maps: Maps = [look.lens.relabelling(data) for look in looks]
    return _on_shared_draws(RowProblem(data), looks, maps, statistics, run)


def _of_tally(
    tally: AnyTally, statistics: list[StatisticLike], lenses: list[LensLike | None], run: Run
) -> JointTestResult:
    """Test pairs on shared draws of event counts where all use one tally, else one by one.

    ``tally`` has sums over fine bins in place of rows, for one lens or several. ``statistics`` and
    ``lenses`` have one entry for each pair, None for the default lens. ``run`` holds n_resamples,
    rng and workers. Shared tests are adjusted by step-down max-T, others by Holm's method.
    """
    source, *others = [tally.source(lens) for lens in lenses]
    if any(other.lens != source.lens for other in others):
        return _holm(tally, statistics, lenses, run)
    looks = [Analysis.through(lens, source, run["rng"]) for lens in lenses]
    problem = problem_of_tally(source)
    maps: Maps = [problem.outcomes_through(look.problem) for look in looks]
    return _on_shared_draws(problem, looks, maps, statistics, run)


@dataclass(frozen=True, eq=False)
class _Jointly:
    """S statistics with fixed predictions, evaluated on the same B outcomes, values (B, S).

    ``parts`` are the S statistics. ``maps`` are S functions that turn outcomes of the data into
    outcomes seen through the lens of each; None if all see them alike.
    """

    parts: list[Prepared]
    maps: Maps | None

    @property
    def counted(self) -> tuple[Prepared, ...]:
        """These statistics if all can be computed while labels are drawn, from counts by cell.

        It is () otherwise: drawn label vectors are then stored in batches.
        """
        each = [part.counted for part in self.parts]
        return () if self.maps is not None or not all(each) else sum(each, ())

    def values(self, outcomes: Outcomes, factor: float = 1.0) -> FloatArray:
        if self.maps is None:
            return np.column_stack([part.values(outcomes) for part in self.parts])
        both = zip(self.parts, self.maps, strict=True)
        return np.column_stack([part.values(look(outcomes)) for part, look in both])


def _holm(
    data: RowsOrTally, statistics: list[StatisticLike], lenses: list[LensLike | None], run: Run,
    null: Null = "auto",
) -> JointTestResult:  # fmt: skip
    """Test pairs separately, without shared draws, and adjust by Holm's method.

    ``data`` are validated rows, or a tally with sums over fine bins. ``statistics`` and ``lenses``
    have one entry for each pair, None for the default lens, and ``null`` is the null distribution
    of every single test. ``run`` holds n_resamples, rng and workers.
    """
    tests = list[CalibrationTestResult]()
    for statistic, lens in zip(statistics, lenses, strict=True):
        taken = take_rows_or_tally("calibration_test", data, None, {}, lens, [statistic])
        tests.append(calibration_result(taken, statistic, lens, null, run))
    adjusted = tuple(holm([test.pvalue for test in tests]))
    return JointTestResult(
        *(tuple(tests), adjusted, min(adjusted), "Holm"), n=data.n, n_classes=data.n_classes,
        event_name=data.event_name, seed=seed_of(run["rng"]), notes=data.notes, copies=data.copies,
        n_resamples=run["n_resamples"], ended=ending(*(test.ended for test in tests)),
    )  # fmt: skip


def _on_shared_draws(
    source: Problem, looks: list[Analysis], maps: Maps | None, statistics: list[StatisticLike],
    run: Run,
) -> JointTestResult:  # fmt: skip
    """Test S pairs (statistic, lens) on the same draws of outcomes, adjusted by step-down max-T.

    ``source`` holds the predictions from which outcomes are drawn. ``looks`` has, for each pair,
    the data behind its lens, and ``statistics`` the statistic; ``maps`` are S functions from drawn
    outcomes to outcomes behind each lens (None if all use them as drawn). ``run`` holds
    n_resamples, rng and workers. StatisticError if a statistic is not a finite number.
    """
    # All pairs see the same draws, so that the joint law keeps how their statistics depend.
    observed = [
        evaluated(s, a.problem, a.data.n_classes) for a, s in zip(looks, statistics, strict=True)
    ]
    prepared = [each for each, _ in observed]
    scheme = source.only_null or RedrawLabels()
    draws = source.redraws(scheme, _Jointly(prepared, maps))
    at_once = REPLICATES_A_STREAM if isinstance(draws, Batches) else CHUNK
    values, ended = simulate_by(draws, **run, at_once=at_once)
    columns = zip(looks, statistics, observed, values.T.copy(), strict=True)
    tests = tuple(
        result_of(a, each, s, repr(scheme), value, SimulatedNull(column, ended))
        for a, s, (each, value), column in columns
    )
    both, centre = np.array([(each.two_sided, each.centre) for each in prepared]).T
    estimates = np.array([value for _, value in observed])
    # Two-sided statistics count by their distance from the centre, as in their own p-values.
    evidence = [np.where(both, np.abs(v - centre), v) for v in (estimates, values)]
    adjusted = tuple(max_t(evidence[0], evidence[1]))
    numbers: Fields = {name: looks[0].facts[name] for name in SHARED_BY_TESTS}
    numbers |= {"n": source.n, "n_resamples": len(values), "ended": ended}
    return JointTestResult(tests, adjusted, min(adjusted), **numbers)


# ------------------------------------------------------------------------------
# Which classes are miscalibrated, in which direction, and which recalibration is enough.
#
# :func:`worst_class` is the entry: standardised levels and slopes of all classes with max-T
# p-values, then score tests of nested recalibration models.


def worst_class(
    probs: object,
    labels: object = None,
    *,
    alpha: float = 0.05,
    n_resamples: int = N_RESAMPLES,
    rng: RNG = None,
    workers: Workers = 1,
    **facts: Unpack[Facts],
) -> WorstClassResult:
    """Name the classes whose probabilities are wrong, and in which direction.

    Every class has two scores in standard deviations under calibration: the score of its level,
    which shows whether it is as frequent as predicted, and the score of its slope given the level,
    which shows whether its probabilities are too extreme or too timid. p-values are adjusted for
    all 2K scores by the null distribution of the largest (single-step max-T).

    Parameters
    ----------
    probs, labels
        As in :func:`calibration_test`, of at least three classes; rows, and no :class:`Tally`.
    alpha : float, default 0.05
        Chance of naming any class that is right, whatever the other classes are.
    n_resamples : int, default 9999
        Label vectors drawn. No p-value is below 1 / (1 + ``n_resamples``).
    rng, workers, **facts
        As in :func:`calibration_test`; of facts weights, clusters and ``horizon`` are taken.

    Returns
    -------
    WorstClassResult

    Raises
    ------
    StatisticError
        For fewer than three classes, and where every prediction is 0 or 1.

    Notes
    -----
    Control is strong: labels restricted to classes whose probabilities are right have the
    distribution of redrawn labels, and so does the largest score over these classes (subset
    pivotality, Westfall & Young 1993).

    Where any class is named, the result says which recalibration would be enough: one temperature,
    a shift for every class, both, or a slope and a shift for every class. Each smaller model is
    fitted by maximum likelihood, and its lack of fit is tested by Rao's score test of the slopes
    and shifts that the model lacks (χ²), at ``alpha``. This is done for rows without weights,
    clusters and horizon, and where every class has Σ p (1 − p) ≥ 5. O(B n + n K²).

    Examples
    --------
    >>> import caltest as ct
    >>> result = ct.worst_class(ct.examples.digits("overfit"), n_resamples=1999, rng=0)
    >>> result.components[0].direction, result.repair
    ('too extreme', 'vector')
    """
    check_run(**(run := Run(n_resamples=n_resamples, rng=rng, workers=workers)))
    fraction("alpha", alpha)
    analysis = Analysis.of("worst_class", probs, labels, facts, lens=Canonical(), rng=rng)
    data = analysis.rows
    if data.n_classes < 3:
        raise StatisticError(
            "worst_class is for three classes or more: for two ask cox_recalibration, which has "
            "calibration-in-the-large and the slope with their intervals"
        )
    return class_errors(data, alpha, run)


def class_errors(data: Predictions, alpha: float, run: Run) -> WorstClassResult:
    """Return the result of :func:`worst_class` for validated rows of at least three classes.

    ``alpha`` is the chance of naming any class that is right; ``run`` holds n_resamples, rng and
    workers.
    """
    statistic = WorstClass()
    alone = data.n_clusters is None and data.horizon is None
    # Draws, also where a few label vectors could be listed: each score is compared with them
    null: Null = RedrawLabels() if alone else "auto"
    test = calibration_test(data, None, statistic, lens=Canonical(), null=null, **run)
    go_on(test.ended)
    analysis = Analysis.through(Canonical(), data, run["rng"])
    prepared, _ = evaluated(statistic, analysis.problem)
    assert isinstance(prepared, LargestComponent)
    scores, law = prepared.standard_scores, test.null_distribution
    assert isinstance(law, SimulatedNull)
    adjusted = [(1 + int(reaching(abs(s), law.values).sum())) / (1 + len(law)) for s in scores]
    k, w = data.n_classes, np.ones(data.n) if data.weights is None else data.weights
    predicted, observed = (w @ data.probs / w.sum(), np.bincount(data.labels, w, k) / w.sum())
    components = [
        ClassComponent(
            name=data.class_name(j % k),
            parameter="slope" if j >= k else "level",
            direction=COMPONENT_DIRECTIONS[j >= k, bool(scores[j] > 0.0)],
            z=float(scores[j]),
            adjusted=adjusted[j],
            predicted=float(predicted[j % k]),
            observed=float(observed[j % k]),
        )
        for j in np.argsort(-np.abs(scores), kind="stable")
        if scores[j] != 0.0
    ]
    named = min(adjusted) <= alpha
    plain = alone and data.weights is None and data.folds is None
    asked = named and plain and MulticlassCox("vector").prepare(analysis.problem).law_caveat is None
    repair, left = enough(data.probs, data.labels, alpha) if asked else ("", {})
    return analysis.result(
        WorstClassResult,
        components=tuple(components),
        test=replace(test, null_distribution=None),
        alpha=alpha,
        critical=law.ppf(1.0 - alpha),
        repair=repair,
        repair_pvalues=tuple(left.items()),
        n_resamples=test.n_resamples,
        ended=test.ended,
    )


# ------------------------------------------------------------------------------
# Which recalibration is enough: smaller models are fitted, and their lack of fit is tested.


#: Models with fewer parameters than one slope and one shift a class: (shifts, one slope).
SMALLER = {"temperature": (False, True), "level": (True, False),
           "level and temperature": (True, True)}  # fmt: skip


def enough(
    probs: FloatArray, labels: IntArray, alpha: float
) -> tuple[str, dict[str, float]]:  # fmt: skip
    """Return (name, p-values): the smallest recalibration of K classes that leaves no lack of fit.

    ``probs`` (n, K) and ``labels`` (n,) are predictions and outcomes, and ``alpha`` is the level of
    the tests. The name is "temperature", "level", "level and temperature" or "vector", the largest
    model, which is not tested. The dict has the p-value of the lack of fit of each model that was
    tried, by name.
    """
    z, left = np.log(np.maximum(probs, PROBABILITY_CLIP)), dict[str, float]()
    for name, (shifts, slope) in SMALLER.items():
        left[name] = _left(z, labels, shifts, slope)
        if left[name] > alpha:
            return name, left
    return "vector", left


def _left(z: FloatArray, labels: IntArray, shifts: bool, slope: bool) -> float:
    """Return the p-value of the lack of fit of P(y = j) ∝ exp(a_j + b z_j) with a or b fitted.

    ``z`` (n, K) are log-probabilities and ``labels`` (n,) outcomes; ``shifts`` and ``slope`` say
    whether the a_j and b are free, else they are 0 and 1. Rao's score tests of all parameters that
    the model lacks, and of the nearest few (the shifts after a temperature, the one slope after
    shifts), are combined by Bonferroni.
    """
    q = fitted_probabilities(z, labels, shifts, slope)
    lacking: list[CoxPart] = ["vector"] if shifts and slope else ["temperature", "vector"]
    free = (z.shape[1] - 1) * shifts + slope
    pvalues = []
    for part in lacking:
        u, v = _component_scores(q, z, labels, part)
        root, rank = whitening(v)
        chi = float(np.square(root @ u).sum())
        pvalues.append(float(gammaincc((rank - free) / 2.0, chi / 2.0)) if rank > free else 1.0)
    return min(1.0, len(pvalues) * min(pvalues))


def fitted_probabilities(z: FloatArray, labels: IntArray, shifts: bool, slope: bool) -> FloatArray:
    """Return fitted probabilities, (n, K), of the model P(y = j) ∝ exp(a_j + b z_j).

    ``z`` (n, K) are log-probabilities, ``labels`` (n,) outcomes; ``shifts`` and ``slope`` say
    whether the a_j and b are free, else they are 0 and 1. Maximum likelihood by Newton's method
    with halved steps.
    """
    k = z.shape[1]
    theta = np.append(np.zeros(k), 1.0)
    free = np.append(np.full(k, shifts), slope)

    def model(at: FloatArray) -> tuple[FloatArray, float]:
        logits = at[k] * z + at[:k]
        q = softmax(logits, axis=1)
        seen = np.take_along_axis(q, labels[:, None], axis=1)
        return q, float(np.log(np.maximum(seen, 1e-300)).sum())

    q, value = model(theta)
    for _ in range(100):
        u, v = _component_scores(q, z, labels, "temperature")
        step = np.zeros(k + 1)
        step[free] = np.linalg.lstsq(v[np.ix_(free, free)], u[free], rcond=1e-10)[0]
        for _ in range(30):
            trial, higher = model(theta + step)
            if higher >= value - 1e-12 * abs(value):
                break
            step = step / 2.0
        gain, theta, q, value = higher - value, theta + step, trial, higher
        if gain < 1e-10:
            break
    return q


def _component_scores(
    q: FloatArray, z: FloatArray, labels: IntArray, part: CoxPart
) -> tuple[FloatArray, FloatArray]:
    """Return scores (T,) of shifts and slopes at fitted probabilities, and their covariance (T, T).

    ``q`` and ``z`` have shape (n, K): fitted probabilities and log-probabilities; ``labels`` (n,)
    are outcomes. The K shifts come first. ``part`` says which slopes follow: "temperature" for one
    common slope (T = K + 1), "vector" for one by class (T = 2K).
    """
    ones = np.ones(len(q))
    levels, slopes = observed_scores(q, z, labels, ones)
    tail = slopes.sum(keepdims=True) if part == "temperature" else slopes
    return np.append(levels, tail), score_covariance(q, z, ones, part)
