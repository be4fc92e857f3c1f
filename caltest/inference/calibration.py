"""The verb that tests one aspect of calibration, also in every subgroup.

:func:`calibration_test` is the entry. It chooses the null distribution in
:mod:`caltest.inference.null`, and tests subgroups with Holm's p-values and for equal calibration
(:func:`alike`). Folds whose models memorise groups are tested by :func:`tested_within_folds`.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeVar, Unpack

import numpy as np
from numpy.typing import NDArray

from caltest._base import BoolArray, FloatArray, IntArray
from caltest._base.arrays import N_RESAMPLES, RNG, one_of, progress
from caltest._base.written import explained, name_of
from caltest.data import Facts, Predictions
from caltest.data.binning import Binning
from caltest.data.lenses import Aligned, LensLike
from caltest.errors import DegenerateDataWarning, Reading, StatisticError
from caltest.inference._input import Analysis, admitted, evaluated, lens_for, take_rows_or_tally
from caltest.inference.null import Null, holm, max_t, null_distribution, replicates_of, result_of
from caltest.nulls import (
    REPLICATES_A_STREAM,
    Batches,
    OneRowPerCluster,
    PopulationWeights,
    RedrawLabels,
    Run,
    SharedRedraws,
    WildSigns,
    Workers,
    check_run,
    simulate_by,
)
from caltest.nulls.lanes import (
    GAMMA,
    UNIFORM_STEP,
    Seed,
    counter_kernel,
    kernel,
    mixed,
    stream_keys,
)
from caltest.results import CalibrationTestResult, ComparisonResult, JointTestResult, Subgroups
from caltest.results.base import Result, go_on
from caltest.statistics import ECE, CoxLR, CoxScore, EValue, Statistic
from caltest.statistics.prepared import (
    LabelStatistic,
    Prepared,
    StatisticLike,
    SumStatistic,
    prepare,
)
from caltest.statistics.problem import Problem
from caltest.statistics.rows import RowProblem
from caltest.tallies import RowsOrTally


@explained
def calibration_test(
    probs: object,
    labels: object = None,
    statistic: StatisticLike = ECE(),
    *,
    lens: LensLike | None = None,
    null: Null = "auto",
    n_resamples: int = N_RESAMPLES,
    early_stop: bool = False,
    rng: RNG = None,
    workers: Workers = None,
    **facts: Unpack[Facts],
) -> CalibrationTestResult:
    """Test whether predictions are calibrated, through a lens and by a statistic.

    The hypothesis is that given the predictions seen through the lens, labels are drawn from them.
    The p-value is the probability that a model for which this is true shows at least the observed
    statistic on the same predictions.

    Parameters
    ----------
    probs, labels
        As in :meth:`Predictions.of`; labels are left out for :class:`Predictions`, for a
        :class:`Tally`, which answers for statistics that are made of its sums, and for
        :class:`Tallies`, which ask a sample of the rows for all others.
    statistic : callable, default ECE(UniformBins(15), distance="tv")
        A statistic of caltest or any function ``(probs, labels) -> float`` of the induced problem;
        large values speak against calibration. Several at once: :func:`joint_test`.
    lens : callable, optional
        Which probabilities are assessed: a lens of caltest or any function from predictions to
        predictions. By default the event for two classes, ``OneVsRest(1)``, and the top class for
        more, ``TopK(1)``.
    null : {"auto", "exact", "asymptotic", …}, RedrawLabels or another Scheme, default "auto"
        ``"exact"``: without simulation, for binned statistics of two classes, or at most 2²⁰ label
        vectors. ``RedrawLabels()`` simulates labels and is valid always. ``"auto"`` is exact up to
        128 occupied cells or ``n_resamples`` label vectors, and else redraws labels.
        ``"asymptotic"``: the classical limit law of statistics that have one, as valid as the limit
        is near. ``"betting"``, which ``"auto"`` is for :class:`EValue`: p is 1 over the e-value.
    n_resamples : int, default 9999
        Replicates of a simulated null; the most there can be with ``early_stop``.
    early_stop : bool, default False
        End a simulation once 20 replicates reach the estimate, with the valid p = 20 / (number
        drawn) (Besag & Clifford 1991): calibrated models then cost some dozens of replicates.
    rng : None, int, Generator or SeedSequence
        As :func:`numpy.random.default_rng`.
    workers : int or callable, optional
        Threads, or a function like :func:`map`. By default a simulation that takes more than a
        second goes on with a thread for every core; statistics that are functions of label
        vectors, which need not be safe in threads, have one. No number depends on it.
    **facts
        The keywords of :meth:`Predictions.of`. With ``clusters`` labels are redrawn with the
        dependence of :class:`SharedRedraws`. With ``by`` every subgroup is tested as well, and
        whether all are calibrated alike: walks of residuals less the means of strata of 20
        neighbours, within which residuals are permuted (Tygert 2021).

    Raises
    ------
    StatisticError
        When the statistic is not a finite number, or lens, bins and null do not fit the data.

    Warns
    -----
    SparseBinsWarning
        With ``ConsistencyResampling()`` and fewer than 20 rows per occupied cell.
    LimitLawWarning
        With ``"asymptotic"`` where it rejects calibrated models more than 1.5 times too often.
    DegenerateDataWarning
        When a calibrated model could show one value of the statistic only.

    Notes
    -----
    Where observations are independent and labels were not used to make the predictions, observed
    and redrawn labels are exchangeable: P(p ≤ α) ≤ α at every n, K and partition. O(B n). Above
    130 000 rows of a two-class question sums over micro-cells (:class:`Tally`) are looked at where
    these have the estimate of the rows to rounding, and a note says so.

    References
    ----------
    Vaicenavicius et al., "Evaluating model calibration in classification", AISTATS 2019, §4.3.
    Tygert, "A graphical method of cumulative differences between two subpopulations", Journal of
    Big Data 8, 2021.

    Examples
    --------
    >>> import caltest as ct
    >>> rained, forecast = [1] * 18 + [0] * 12, [0.8] * 30
    >>> result = ct.calibration_test(forecast, rained)
    >>> round(result.estimate, 6), round(result.pvalue, 9)
    (0.2, 0.010731062)
    """
    if isinstance(statistic, Sequence) and not isinstance(statistic, str):
        raise StatisticError(
            "calibration_test takes one statistic; several, as (statistic, lens) pairs, are tested "
            "together by joint_test"
        )
    one_of("early_stop", early_stop, (True, False))
    check_run(**(run := Run(n_resamples=n_resamples, rng=rng, workers=workers)))
    if null == "betting" and not isinstance(statistic, EValue):
        raise StatisticError(
            f"null='betting' is the law of EValue(): give statistic=EValue() with it, or another "
            f"null for {name_of(statistic)}"
        )
    data = take_rows_or_tally("calibration_test", probs, labels, facts, lens, [statistic])
    if isinstance(data, Predictions) and data.by is not None:
        return _with_subgroups(data, statistic, lens, null, run, early_stop)
    return calibration_result(data, statistic, lens, null, run, early_stop)


def calibration_result(
    data: RowsOrTally, statistic: StatisticLike, lens: LensLike | None, null: Null, run: Run,
    early_stop: bool = False,
) -> CalibrationTestResult:  # fmt: skip
    """Test validated rows without subgroups, or a tally; parameters as in :func:`calibration_test`.

    ``data`` are rows, or a tally with sums over fine bins in their place. ``run`` holds
    n_resamples, rng and workers. For cross-validated rows whose models memorise groups the test is
    made within folds. StatisticError where statistic, lens or null do not fit the data.
    """
    if lens is None and isinstance(statistic, Statistic) and statistic.of_whole_vector:
        lens = lens_for(statistic, lens, data)
    if isinstance(data, Predictions) and isinstance(statistic, Statistic) and statistic.of_items:
        # Under the hypothesis outcomes of an item are independent draws, whatever its clusters
        data = replace(data, clusters=None)
    summed = null in ("auto", "exact") or null == RedrawLabels()
    analysis = Analysis.through(lens, data, run["rng"], [statistic] if summed else [])
    if not (isinstance(data, Predictions) and isinstance(analysis.problem, RowProblem)):
        return _by_null(analysis, statistic, null, run, early_stop)
    if data.folds is not None:
        refuse_bets(data, statistic)
        if memorised(analysis):
            return tested_within_folds(analysis, statistic, null, run)
    apart = (data.horizon, data.crossed, data.followup)  # other nulls then say why not
    if isinstance(null, OneRowPerCluster) and all(fact is None for fact in apart):
        return _by_one_row_per_cluster(analysis, statistic, null, run)
    if isinstance(null, PopulationWeights):
        null.refuse(analysis.induced)
        # Labels are redrawn as if predictions were right, signs keep the observed scatter: the
        # larger p-value counts, as neither alone holds for every way in which weights arise.
        redrawn = _by_null(analysis, statistic, RedrawLabels(), run)
        signed = _by_null(analysis, statistic, WildSigns(), run)
        note = f"p is {redrawn.shown_p} for redrawn labels, {signed.shown_p} for random signs"
        larger = max((redrawn, signed), key=lambda test: test.pvalue)
        return replace(larger, null=repr(null), notes=(*larger.notes, note))
    return _by_null(analysis, statistic, null, run, early_stop)


def refuse_bets(data: Predictions, statistic: StatisticLike) -> None:
    """Raise StatisticError if an e-value is asked for and ``data`` are cross-validated rows.

    The models of other folds know the labels of these rows, so that a product of bets is no
    e-value. ``statistic`` is the one that was asked for; nothing is raised for others.
    """
    if data.folds is not None and isinstance(statistic, EValue):
        raise StatisticError(
            "EValue() and null='betting' take no folds: a product over rows whose models know each "
            "other's labels is no e-value. Take another statistic, such as CoxScore()"
        )


def _by_null(
    analysis: Analysis, statistic: StatisticLike, null: Null, run: Run, early_stop: bool = False
) -> CalibrationTestResult:
    """Return the test by one statistic under one null distribution, without subgroups.

    ``analysis`` holds the data behind the lens, ``null`` is the name or scheme of the null
    distribution, and ``run`` holds n_resamples, rng and workers. ``early_stop`` ends the simulation
    once the test is clearly not significant. DegenerateDataWarning if the null distribution is a
    single value, so that nothing can be found.
    """
    prepared, estimate = evaluated(statistic, analysis.problem, analysis.data.n_classes)
    law, null = null_distribution(statistic, prepared, estimate, null, run, early_stop)
    if isinstance(null, SharedRedraws) and not analysis.from_sums:
        null = replace(null, horizon=analysis.induced.horizon)
    name = null if isinstance(null, str) else repr(null)
    result = result_of(analysis, prepared, statistic, name, estimate, law)
    if result.degenerate:
        warnings.warn(
            "the null distribution is a single value: with these predictions a calibrated model "
            "can show nothing else, so the test says nothing",
            DegenerateDataWarning,
            stacklevel=4,
        )
    return result


def _by_one_row_per_cluster(
    analysis: Analysis, statistic: StatisticLike, null: OneRowPerCluster, run: Run
) -> CalibrationTestResult:
    """Test one random row of every cluster by ``statistic``, repeatedly, and combine the p-values.

    The combined p-value is M / k times the k-th smallest of the p-values of M draws, k = ⌈M / 4⌉,
    at most 1; estimate and noise floor are means over draws. ``analysis`` holds the data behind the
    lens, ``null`` has the number M of draws, and ``run`` holds the options of the test of each:
    n_resamples, rng and workers.
    """
    data, generator = analysis.rows, np.random.default_rng(analysis.rng)
    plain, tests = replace(data, clusters=None), list[CalibrationTestResult]()
    each: Run = {**run, "rng": generator}
    with progress(null.draws, "draws") as advance:
        for _ in range(null.draws):
            part = plain.take(null.rows(data, generator))
            part = admitted("calibration_test", part)
            tests.append(calibration_result(part, statistic, analysis.lens, "auto", each))
            go_on(tests[-1].ended)
            advance(1)
    # P(the k-th smallest of M p-values ≤ α k / M) ≤ α whatever their dependence (Rüger)
    quarter = -(-len(tests) // 4)
    quartile = sorted(test.pvalue for test in tests)[quarter - 1]
    pvalue = min(1.0, len(tests) / quarter * quartile)
    # One draw alone would depend on chance; the p-value above is valid for any dependence
    numbers = [(test.estimate, test.null_mean, test.null_std) for test in tests]
    estimate, null_mean, null_std = np.mean(numbers, axis=0).tolist()
    note = (
        f"numbers are means over {null.draws} draws of one row from each of {tests[0].n} clusters; "
        "p is four times the lower quartile of theirs"
    )
    return replace(
        tests[0],
        null=repr(null),
        estimate=estimate,
        null_mean=null_mean,
        null_std=null_std,
        pvalue=pvalue,
        pvalue_bracket=(pvalue, pvalue),
        pvalue_error=0.0,
        impossible=analysis.induced.impossible.size,
        n_resamples=null.draws,
        **analysis.facts | {"notes": (*data.notes, note)},
        null_distribution=None,
    )


# ------------------------------------------------------------------------------
# The same test in every subgroup, one p-value for all of them, and whether they are alike.


def _with_subgroups(
    data: Predictions, statistic: StatisticLike, lens: LensLike | None, null: Null, run: Run,
    early_stop: bool,
) -> CalibrationTestResult:  # fmt: skip
    """Return the test of all rows, of every subgroup, and of equal calibration of subgroups.

    ``data`` are rows with subgroups; other parameters as in :func:`calibration_test`, with
    n_resamples, rng and workers in ``run``. p-values of subgroups are adjusted by Holm's method.
    For rows with several labels, each label is a subgroup, and the worst label gives the result.
    """
    if isinstance(statistic, Statistic) and statistic.of_items:
        data = replace(data, clusters=None)
    analysis = Analysis.through(lens_for(statistic, lens, data), data, run["rng"])
    refuse_bets(data, statistic)

    def test_rows(part: Predictions) -> CalibrationTestResult:
        rows = admitted("calibration_test", part)
        return calibration_result(rows, statistic, analysis.lens, null, run, early_stop)

    if data.multilabel:  # nothing is asked of all pairs: labels of a row depend anyhow
        return of_worst(each_subgroup(data, test_rows), analysis)
    whole = test_rows(replace(data, by=None))
    go_on(whole.ended)
    parts = each_subgroup(data, test_rows)
    if memorised(analysis):
        note = "whether subgroups are calibrated alike is not tested: models memorise groups"
        return replace(whole, subgroups=replace(parts, notes=(*parts.notes, note)))
    parts = on_shared_labels(parts, data, analysis.induced, statistic, run)
    return replace(whole, subgroups=alike(parts, analysis.induced, run))


#: The results that have subgroups beside all rows.
Whole = TypeVar("Whole", JointTestResult, ComparisonResult)


#: Rows of predictions that a subgroup shares with others, from which on they are compared.
COMPARABLE = 100


#: So many subgroups that are not compared are named.
SUBGROUPS_NAMED = 12


def with_subgroups(ask: Callable[..., Whole], data: Predictions, *beside: Predictions) -> Whole:
    """Return the result for all rows, with the results for every subgroup in field ``subgroups``.

    ``ask(data, *beside)`` computes a result. It is called for all rows, then for each subgroup's
    rows of ``data``, whose subgroups count. ``beside`` holds predictions of further models for the
    same rows, in the same order. KeyboardInterrupt if the first run was interrupted.
    """
    whole = ask(*(replace(d, by=None) for d in (data, *beside)))
    go_on(whole.ended)
    return replace(whole, subgroups=each_subgroup(data, ask, *beside))


def each_subgroup(
    data: Predictions, test: Callable[..., Result], *beside: Predictions
) -> Subgroups:
    """Return the results of ``test`` in every subgroup, with p-values adjusted by Holm's method.

    ``test(data, *beside)`` computes a result. It is called on each subgroup's rows of ``data`` and
    of ``beside``, predictions of further models for the same rows. A subgroup that raises
    StatisticError has no result (None), and a note with the reason. StatisticError if no subgroup
    can be tested.
    """
    groups = data.subgroups()
    # Notes describe all rows: said once, and not again for every subgroup
    plain = [replace(d, by=None, notes=(), copies=0) for d in (data, *beside)]
    tests, notes = list[Result | None](), list[str]()
    with progress(len(groups), "subgroups") as advance:
        for name, rows in groups.items():
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                try:
                    tests.append(result := test(*(d.take(rows) for d in plain)))
                    go_on(result.ended)
                except StatisticError as error:
                    tests.append(None)
                    notes.append(f"subgroup {name} cannot be tested: {error}")
            for doubt in caught:
                if doubt.category is not DegenerateDataWarning:
                    warnings.warn(f"subgroup {name}: {doubt.message}", doubt.category, stacklevel=3)
            advance(1)
    if len(notes) == len(groups):
        raise StatisticError(f"no subgroup can be tested: {notes[0]}")
    counts = tuple(map(len, groups.values()))
    n = np.unique(np.concatenate(list(groups.values()))).size
    head = tuple(groups), counts, tuple(tests), (), 1.0
    parts = Subgroups(*head, "Holm", n=n, notes=tuple(notes))
    return _adjusted(parts, holm([test.pvalue for test in parts.tested]), "Holm")


def of_worst(parts: Subgroups, analysis: Analysis) -> CalibrationTestResult:
    """Return the test of the worst label, with the p-value of all labels together.

    It is the result for rows with several labels. ``parts`` has the test of every label and
    adjusted p-values, of which the smallest is taken; ``analysis`` holds the data behind the lens.
    """
    worst, p = parts.tests[parts.worst], min(1.0, parts.pvalue)
    assert isinstance(worst, CalibrationTestResult)
    note = f"numbers describe the label {parts.names[parts.worst]}, p all labels together"
    return replace(
        worst,
        pvalue=p,
        pvalue_bracket=(p, p),
        pvalue_error=0.0,
        impossible=sum(test.impossible for test in parts.tested),
        subgroups=parts,
        **analysis.facts | {"notes": (*analysis.data.notes, note)},
    )


def _adjusted(parts: Subgroups, values: list[float], adjust: str) -> Subgroups:
    """Return the subgroups' results with other adjusted p-values.

    ``parts`` has the names, tests and p-values of the subgroups. ``values`` are the adjusted
    p-values of the subgroups that were tested, in their order; ``adjust`` names the method, such as
    "Holm".
    """
    steps = iter(values)
    adjusted = tuple(None if test is None else next(steps) for test in parts.tests)
    return replace(parts, adjusted=adjusted, pvalue=min(values), adjust=adjust)


def on_shared_labels(
    parts: Subgroups, data: Predictions, induced: Predictions, statistic: StatisticLike, run: Run
) -> Subgroups:
    """Adjust p-values of subgroups by their joint law if rows are in several subgroups.

    ``parts`` has the subgroups' tests with Holm's p-values, and is returned with p-values by max-T:
    all subgroups are tested on the same redrawn labels. It is returned unchanged where no row is in
    two subgroups, with clusters or follow-up, and for a lens that drops rows. ``statistic`` is the
    one that was tested, ``data`` are the rows with their subgroups, ``induced`` the predictions
    behind the lens; ``run`` holds n_resamples, rng and workers.
    """
    groups = data.subgroups()
    apart = data.n_clusters is not None or data.followup is not None
    if sum(parts.counts) == parts.n or apart or induced.n != data.n:
        return parts
    tested = [
        (test, rows)
        for test, rows in zip(parts.tests, groups.values(), strict=True)
        if test is not None
    ]
    prepared = [(prepare(statistic, induced.take(rows)), rows) for _, rows in tested]

    def in_groups(labels: IntArray) -> FloatArray:
        return np.column_stack([each.batch(labels[:, rows]) for each, rows in prepared])

    # The same label vectors for all subgroups: max-T then knows how far they overlap
    batches = Batches.of(RedrawLabels(), induced, in_groups)
    values, ended = simulate_by(batches, **run, at_once=REPLICATES_A_STREAM)
    go_on(ended)
    both, centre = np.array([(test.two_sided, test.centre) for test, _ in tested]).T
    observed = np.array([test.estimate for test, _ in tested])
    sides = [np.where(both, np.abs(v - centre), v) for v in (observed, values)]
    return _adjusted(parts, max_t(sides[0], sides[1]), "max-T")


def alike(parts: Subgroups, induced: Predictions, run: Run) -> Subgroups:
    """Test whether every subgroup is calibrated as the other rows are, calibrated or not.

    Return ``parts``, the subgroups' results, with the adjusted p-values in the field ``alike``,
    None for a subgroup that is not compared. The residuals of a subgroup, less the mean of all rows
    of about the same prediction, are added up by increasing prediction. The range of this walk
    (Tygert 2021) is compared with ranges of residuals permuted among these rows, and adjusted by
    max-T. Exact where strata hold equal predictions only. Only rows whose stratum holds
    interleaving predictions of the subgroup and of others count; below 100 of them the subgroup is
    not compared. ``induced`` are the predictions behind the lens, with the subgroups, and ``run``
    has the number of permutations, seed and threads. With clusters, weights, follow-up or more than
    two classes nothing is tested, and a note says so.
    """
    groups = induced.subgroups()
    members = np.zeros((induced.n, len(parts.names)), dtype=bool)
    for name, rows in groups.items():
        members[rows, parts.names.index(name)] = True
    why = {
        "there is one subgroup, and no other row": bool(members.all()),
        "no test allows for clusters": induced.n_clusters is not None,
        "no test allows for weights": induced.weights is not None,
        "no test allows for follow-up": induced.followup is not None,
        "the lens leaves more than two classes": induced.n_classes > 2,
    }
    for reason, holds in why.items():
        if holds:
            note = f"whether subgroups are calibrated alike is not tested: {reason}"
            return replace(parts, notes=(*parts.notes, note))
    p, residuals = induced.probs[:, 0], induced.residuals[:, 0]
    # Groups that meet at a jump of the curve differ by their predictions, not by their calibration
    support = Permutations.of(p, residuals, members).support
    enough = support >= COMPARABLE
    if apart := [name for name, rows in zip(parts.names, enough, strict=True) if not rows]:
        more = f" and {len(apart) - SUBGROUPS_NAMED} others" * (len(apart) > SUBGROUPS_NAMED)
        most = support[~enough].max()
        note = (
            f"whether {'subgroups' if apart[1:] else 'subgroup'} "
            f"{', '.join(apart[:SUBGROUPS_NAMED])}{more} "
            f"{'are' if apart[1:] else 'is'} calibrated as others are is not tested: only "
            f"{f'up to {most}' if apart[1:] and most else most} rows have predictions that both "
            f"have (fewer than {COMPARABLE})"
        )
        parts = replace(parts, notes=(*parts.notes, note))
    if not enough.any():
        return parts
    # Again without the groups left out, whose walks would widen max-T for nothing
    walks = Permutations.of(p, residuals, members[:, enough])
    values, ended = simulate_by(walks, **run)
    go_on(ended)
    adjusted = iter(max_t(walks.observed(), values))
    return replace(parts, alike=tuple(next(adjusted) if tested else None for tested in enough))


# ------------------------------------------------------------------------------
# Residuals permuted among rows of about equal predictions: what equal subgroups would show.


#: Rows of neighbouring predictions that are taken for equal.
STRATUM = 20


#: Rows within which a jump of the outcome is looked for, those on each side of it at least, and the
#: two-sample z above which strata are cut there.
WINDOW, ROWS_BESIDE, JUMP = 60, 3, 2.5


@dataclass(frozen=True, eq=False)
class Permutations:
    """Ranges of the walks of subgroups when residuals are permuted within strata.

    Rows are sorted by prediction and cut into strata of 20, equal predictions in one, and where the
    outcome jumps (see :func:`adaptive_strata`). Walk j adds up, stratum by stratum, the excess of
    its members' residuals over the mean of the stratum; its range is the statistic. A stratum
    counts where members and others interleave, that is, where the ranges of their predictions meet:
    elsewhere they are not comparable. There are n rows and J subgroups. ``support`` (J,) is the
    number of rows in strata that count. ``excess`` (n,) are residuals less the mean of the stratum,
    stratum by stratum, and ``starts`` (S + 1,) says where each of the S strata begins. Entry j of
    ``row`` and ``group`` says that this row belongs to this subgroup, for members in strata that
    count.
    """

    excess: FloatArray = field(repr=False)
    starts: IntArray = field(repr=False)
    row: IntArray = field(repr=False)
    group: IntArray = field(repr=False)
    support: IntArray

    @property
    def n_groups(self) -> int:
        """Number J of subgroups in this test."""
        return self.support.size

    @classmethod
    def of(cls, p: FloatArray, residuals: FloatArray, members: BoolArray) -> Permutations:
        """Prepare the permutation test for n rows and J subgroups.

        ``p`` (n,) are predictions of the event, ``residuals`` (n,) outcome less prediction, and
        ``members`` (n, J) booleans that mark the subgroups of every row.
        """
        stratum = adaptive_strata(p, np.round(residuals + p, 9))
        order = np.argsort(stratum, kind="stable")
        starts = np.flatnonzero(np.diff(stratum[order], prepend=-1, append=p.size))
        sizes = np.diff(starts)
        means = np.add.reduceat(residuals[order], starts[:-1]) / sizes
        excess, inside = residuals[order] - np.repeat(means, sizes), members[order]
        between = [_interleave(p[order], side, starts) for side in inside.T]
        comparable = np.repeat(np.reshape(between, (-1, sizes.size)), sizes, axis=1).T
        row, group = np.nonzero(inside & comparable)
        return cls(excess, starts, row, group, comparable.sum(axis=0))

    def observed(self) -> FloatArray:
        """Return the observed ranges of the residual walks of the J subgroups, shape (J,).

        A range is the largest less the smallest cumulative sum of a subgroup's residuals, centred
        in strata of like predictions.
        """
        return self._ranges(np.zeros((2, 1), dtype=np.uint64), shuffled=False)[0]

    def replicates(self, seed: Seed, first: int, count: int) -> FloatArray:
        """Return the ranges of the J residual walks under random permutations, shape (count, J).

        Residuals are permuted among rows of like predictions; permutations are numbered from
        ``first`` on. ``seed`` is a pair of integers that keys the random stream, so that a number
        always has the same permutation.
        """
        return self._ranges(stream_keys(seed, first, count)[:2], shuffled=True)

    def _ranges(self, streams: NDArray[np.uint64], shuffled: bool) -> FloatArray:
        ranges = np.empty((streams.shape[1], self.n_groups))
        _walk(self.excess, self.starts, self.row, self.group, *streams, shuffled, ranges)
        return ranges


def adaptive_strata(p: FloatArray, y: FloatArray) -> IntArray:
    """Return the stratum of rows of like predictions to which every row belongs, integers (n,).

    ``p`` and ``y`` (n,) are predictions and outcomes. Given both, rows of all subgroups are
    exchangeable under the hypothesis, so that strata may depend on both. Windows of 60 rows by
    rank, overlapping by half, are cut in two where the two-sample z of the outcome is largest, if
    it is above 2.5, with at least 3 rows on each side, and so on within both parts. Between cuts
    strata hold 20 rows, by the rank of the first of equal predictions, which share a stratum. O(n
    log n).
    """
    n, order = p.size, np.argsort(p, kind="stable")
    ordered = p[order]
    first = np.append(True, np.diff(ordered) > 0.0)
    cuts = np.zeros(n + 1, dtype=np.bool_)
    cuts[0] = True
    _cut(y[order], np.append(first[1:], True), cuts)
    firsts, bounds = np.flatnonzero(first), np.flatnonzero(cuts[:n])
    part = np.searchsorted(bounds, firsts, side="right") - 1
    place = (firsts - bounds[part]) // STRATUM
    new = np.append(True, (np.diff(part) > 0) | (np.diff(place) > 0))
    stratum = np.empty(n, dtype=np.int64)
    stratum[order] = np.repeat(np.cumsum(new) - 1, np.diff(np.append(firsts, n)))
    return stratum


@kernel
def _cut(y, ends, cuts):  # type: ignore[no-untyped-def]
    # Marks in cuts (n + 1,) where y (n,) jumps; ends (n,) are the last rows of equal predictions.
    stack = np.empty((WINDOW, 2), dtype=np.int64)
    for begin in range(0, max(1, y.size - WINDOW // 2), WINDOW // 2):
        stack[0, 0], stack[0, 1] = begin, min(y.size, begin + WINDOW)
        depth = 1
        while depth > 0:
            depth -= 1
            a, b = stack[depth, 0], stack[depth, 1]
            n, total = b - a, 0.0
            for i in range(a, b):
                total += y[i]
            if n < 2 * ROWS_BESIDE or total <= 0.0 or total >= n:
                continue
            v = total / n * (1.0 - total / n) * n / (n - 1.0)
            largest, at, s = 0.0, -1, 0.0
            for i in range(a, b - 1):
                s += y[i]
                k = i - a + 1
                if k < ROWS_BESIDE or n - k < ROWS_BESIDE or not ends[i]:
                    continue
                gap = abs(s / k - (total - s) / (n - k))
                z = gap / np.sqrt(v * (1.0 / k + 1.0 / (n - k)))
                if z > largest:
                    largest, at = z, i + 1
            if largest > JUMP:
                cuts[at] = True
                stack[depth, 0], stack[depth, 1] = a, at
                stack[depth + 1, 0], stack[depth + 1, 1] = at, b
                depth += 2


def _interleave(p: FloatArray, members: BoolArray, starts: IntArray) -> BoolArray:
    """Return, for each of S strata, whether members and others interleave, booleans (S,).

    They do if the ranges of their predictions overlap. ``p`` (n,) are predictions in the order of
    the strata, ``members`` (n,) booleans that mark the rows of the subgroup; stratum s has the rows
    ``starts[s]:starts[s + 1]``.
    """
    low, high = (
        [extreme.reduceat(np.where(side, p, empty), starts[:-1]) for side in (members, ~members)]
        for extreme, empty in ((np.minimum, np.inf), (np.maximum, -np.inf))
    )
    return np.asarray((low[0] <= high[1]) & (low[1] <= high[0]))


@counter_kernel
def _walk(excess, starts, row, group, key, twist, shuffled, out):  # type: ignore[no-untyped-def]
    # O(n + memberships) for each permutation: Fisher and Yates in every stratum.
    n_groups = out.shape[1]
    moved = np.empty_like(excess)
    walk, low, high = np.empty(n_groups), np.empty(n_groups), np.empty(n_groups)
    for r in range(key.size):
        counter = key[r]
        for i in range(excess.size):  # assigning the array takes seconds to compile
            moved[i] = excess[i]
        walk[:], low[:], high[:] = 0.0, 0.0, 0.0
        t = 0
        for s in range(starts.size - 1):
            begin, end = starts[s], starts[s + 1]
            if shuffled:
                for i in range(end - 1, begin, -1):
                    j = begin + int(mixed(counter, twist[r]) * UNIFORM_STEP * (i - begin + 1))
                    moved[i], moved[j] = moved[j], moved[i]
                    counter += GAMMA
            while t < row.size and row[t] < end:
                walk[group[t]] += moved[row[t]]
                t += 1
            for g in range(n_groups):
                low[g], high[g] = min(low[g], walk[g]), max(high[g], walk[g])
        for g in range(n_groups):
            out[r, g] = high[g] - low[g]


# ------------------------------------------------------------------------------
# Tests within folds, for cross-validated predictions whose models memorise groups of rows.
#
# Where each model has learnt the rate of every site, a site is predicted lower exactly where it has
# more events, in one fold after the other. One level a fold cannot undo that, and cells that hold
# rows of several folds sort these by their own labels. Cells of rows of one fold do not.


#: Statistics that follow a χ² law: those of folds are added up, and not averaged.
SUMMED_OVER_FOLDS = (CoxScore, CoxLR)


def memorised(analysis: Analysis) -> bool:
    """Return whether the fold models have memorised groups of rows, such as the rates of sites.

    If so, the statistic has to be computed fold by fold. ``analysis`` holds the data and the lens,
    in which the finding is kept. False for data without cross-validation folds.
    """
    lens = analysis.lens
    return isinstance(lens, Aligned) and lens.summary.memorised


def tested_within_folds(
    analysis: Analysis, statistic: StatisticLike, null: Null, run: Run
) -> CalibrationTestResult:
    """Test a statistic that is averaged over folds, with its excess over the noise floor shrunk.

    ``analysis`` holds cross-validated rows behind the lens, ``run`` n_resamples, rng and workers. T
    is the mean over folds of ``statistic``, or the sum of a χ² statistic. It is replaced by m + (T
    − m) / √(K / (K − 1)), with m the mean of the null draws and K the number of folds: models of
    other folds know these labels, so that residuals scatter more than redrawn ones (measured in
    ``docs/folds.md``). StatisticError for a ``null`` other than "auto" or ``RedrawLabels()``.
    """
    lens = analysis.lens
    assert isinstance(lens, Aligned)
    if null not in ("auto", RedrawLabels()):
        raise StatisticError(
            f"null={null!r} does not hold for folds whose models memorise groups of rows: leave "
            "null out",
            [Reading({"null": None})],
        )
    apart = lens.apart(analysis.rows)
    folds = apart.folds
    assert folds is not None
    rows = replace(apart, folds=None, whole=None, induced=True)
    problem = FoldProblem(rows, folds)
    prepared, value = evaluated(WithinFolds(statistic), problem)
    law = replicates_of(statistic, prepared, RedrawLabels(), run)
    summary = replace(lens.summary, within=True)
    mean, root = float(law.mean()), (1.0 / summary.share) ** 0.5
    look = replace(analysis, lens=replace(lens, summary=summary), problem=problem)
    shrunk = mean + (value - mean) / root
    return result_of(look, prepared, statistic, repr(RedrawLabels()), shrunk, law)


@dataclass(frozen=True, eq=False)
class FoldProblem(RowProblem):
    """Cross-validated rows behind a lens: every fold has its own cells, with common bin edges.

    ``data`` are the predictions and outcomes, ``folds`` (n,) is the number of the fold of every
    row.
    """

    folds: IntArray = field(repr=False)

    def numbers(self, bins: Binning) -> IntArray:
        numbers = np.unique(super().numbers(bins), return_inverse=True)[1].ravel()
        return np.asarray(self.folds * (int(numbers.max()) + 1) + numbers)


@dataclass(frozen=True, eq=False)
class FoldPart(RowProblem):
    """Rows of one fold behind a lens, binned by the bin edges of all rows.

    ``data`` are the predictions and outcomes of the fold, ``whole`` the problem of all rows, and
    ``rows`` (m,) the places of the fold's m rows in it.
    """

    whole: RowProblem = field(repr=False)
    rows: IntArray = field(repr=False)

    def numbers(self, bins: Binning) -> IntArray:
        return np.asarray(self.whole.numbers(bins))[self.rows]


@dataclass(frozen=True, repr=False)
class WithinFolds(Statistic):
    """Statistic computed in each fold and averaged over folds by their weight.

    ``statistic`` is the one that is computed in each fold. χ² statistics are added up instead.
    """

    statistic: StatisticLike

    def prepare(self, problem: Problem) -> Prepared:
        assert isinstance(problem, FoldProblem)
        if isinstance(self.statistic, Statistic):
            plain = self.statistic.prepare(problem)
            binned = plain.cells is not None and plain.cells.bins is not None
            if isinstance(plain, SumStatistic) and binned and plain.scores is None:
                return plain  # sums over cells, which hold rows of one fold
        return self._by_fold(problem)

    def _by_fold(self, problem: FoldProblem) -> PreparedFolds:
        """Return this statistic with fixed predictions: a weighted sum of the statistics of folds.

        ``problem`` has the rows behind the lens and the fold of each. A fold is weighted by the
        weight of its rows, or by 1 for χ² statistics. Folds for which the statistic cannot be
        computed are left out; their StatisticError is raised if none remains.
        """
        data = problem.data
        mass = np.ones(data.n) if data.weights is None else data.weights
        parts, places, shares, refused = list[Prepared](), [], [], None
        for k in np.unique(problem.folds):
            rows = np.flatnonzero(problem.folds == k)
            part = FoldPart(data.take(rows), RowProblem(data), rows)
            try:
                parts.append(prepare(self.statistic, part))
            except StatisticError as error:
                refused = error
                continue
            places.append(rows)
            shares.append(mass[rows].sum() / mass.sum())
        if refused is not None and not parts:
            raise refused
        weights = (
            np.ones(len(parts))
            if isinstance(self.statistic, SUMMED_OVER_FOLDS)
            else np.array(shares)
        )
        centre = float(weights @ [part.centre for part in parts])
        return PreparedFolds(
            problem, tuple(parts), tuple(places), weights,
            two_sided=parts[0].two_sided, centre=centre,
        )  # fmt: skip

    def __repr__(self) -> str:
        return name_of(self.statistic)


@dataclass(frozen=True, eq=False)
class PreparedFolds(LabelStatistic):
    """Weighted sum Σ_k c_k T_k over folds with fixed predictions; T_k sees the labels of fold k.

    ``parts`` are the F statistics T_k with fixed predictions, ``rows`` F index arrays with the
    places of each fold's rows, and ``weights`` (F,) the c_k.
    """

    parts: tuple[Prepared, ...]
    rows: tuple[IntArray, ...]
    weights: FloatArray

    def batch(self, labels: IntArray) -> FloatArray:
        total = np.zeros(len(labels))
        for part, rows, weight in zip(self.parts, self.rows, self.weights, strict=True):
            total += weight * part.batch(np.ascontiguousarray(labels[:, rows]))
        return total
