"""Comparison of the calibration of two models, and of several.

:func:`compare` is the entry for two models, :func:`compare_models` for several with groups that
cannot be told apart. :class:`Difference` has the variance of the difference of debiased squared
errors, with allowances for errors that the rows cannot show.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import combinations
from typing import Literal, NamedTuple, Unpack

import numpy as np

from caltest._base import FloatArray, IntArray
from caltest._base.arrays import (
    INTERVAL_LEVEL,
    N_RESAMPLES,
    RNG,
    fraction,
    number,
    one_of,
    reaching,
)
from caltest._base.written import Fields, name_of
from caltest.data import Facts, Predictions
from caltest.data.doubts import refuse_same_outcomes
from caltest.data.facts import by_appearance
from caltest.data.lenses import Lens, LensLike
from caltest.errors import DegenerateDataWarning, InvalidPredictionsError, StatisticError
from caltest.inference._input import (
    Analysis,
    evaluated,
    refuse_unknown_facts,
    take_model,
    take_models,
    take_rows_or_tally,
    take_tally,
)
from caltest.inference.calibration import calibration_result, with_subgroups
from caltest.inference.dependence import (
    CrossedError,
    SquaredError,
    added,
    base_variance,
    by_student,
    columns_of,
    freedom_of,
    summed,
    variance_of_difference,
)
from caltest.inference.interval import interval_of
from caltest.inference.null import holm
from caltest.nulls import Run, Workers, simulate
from caltest.results import (
    CalibrationTestResult,
    ComparisonResult,
    ComparisonTable,
    ComparisonVerdict,
    ending,
)
from caltest.results.hypotheses import ScoreDifference
from caltest.statistics import BrierScore, Cells, DebiasedL2, LogScore, RowProblem
from caltest.statistics.binned import BinnedError
from caltest.statistics.prepared import StatisticLike, prepare
from caltest.tallies import AnyTally, RowsOrTally

#: What to say of other rows.
UNPAIRED = "for other observations pass paired=False (--unpaired)"


def compare(
    probs_a: object,
    probs_b: object = None,
    labels: object = None,
    statistic: StatisticLike = DebiasedL2(),
    *,
    lens: LensLike | None = None,
    paired: bool = True,
    labels_b: object = None,
    method: ComparisonMethod = "auto",
    own_labels: bool = False,
    level: float = INTERVAL_LEVEL,
    margin: float | None = None,
    names: tuple[str, str] = ("A", "B"),
    n_resamples: int = N_RESAMPLES,
    rng: RNG = None,
    workers: Workers = None,
    **facts: Unpack[Facts],
) -> ComparisonResult:
    r"""Compare the calibration of two models: their debiased squared errors (:class:`DebiasedL2`).

    Parameters
    ----------
    probs_a, probs_b : array_like of shape (n,) or (n, K), or Predictions
        Predictions of both models for the same observations, in the same order. Or two
        :class:`Tallies` of the same rows, whose samples are compared; or, with ``paired=False``,
        two :class:`Tally` of one lens and grid, of other observations.
    labels : array_like of shape (n,)
        Observed classes; left out when a model is a :class:`Predictions`, which knows them.
    statistic : callable, default DebiasedL2(UniformBins(15))
        The error to compare. For the other binned errors no valid test of equal error is known:
        ``DebiasedL2`` on the same bins is tested, the statistic itself in each own test.
    lens, n_resamples, rng, workers, **facts
        As in :func:`calibration_test`; the design belongs to the rows, for all models, and ``ids``
        must agree. With clusters, T leaves out pairs of rows within a cluster, and clusters are the
        sampling units. With ``by`` models are compared in every subgroup as well, with Holm's
        p-values.
    paired : bool, default True
        Whether the rows of both models are the same observations.
    labels_b : array_like of shape (m,), optional
        Labels of the second model, if it predicts other observations: an unpaired comparison.
    method : {"auto", "z", "swap"}, default "auto"
        ``"z"`` (the default): the level at which a limit of the difference just meets 0, by the
        corrected jackknife variance and allowances for errors that the rows cannot show.
        ``"swap"``: exact for the much stronger hypothesis that the models could change places in
        every row; it also rejects equally calibrated models.
    own_labels : bool, default False
        Whether each model, a :class:`Predictions`, has outcomes of its own for the same
        observations, such as whether its answer to a question is right.
    level : float, default 0.95
        Level of the intervals, with differences called at 1 − ``level``.
    margin : float, optional
        A difference of root mean squared errors that does not matter: models are tied when the
        interval lies within ± ``margin``\ ², because \|√s − √t\| ≤ √\|s − t\|. By default 0.02, but
        at most a fifth of the frequency of the rarer outcome, so that errors as large as a rare
        event's frequency are no tie.
    names : tuple of str, default ("A", "B")
        Names of the models.

    Raises
    ------
    InvalidPredictionsError
        When rows of the models do not match.
    DoubtfulInputError
        When models that are not paired have the same outcomes in the same order, without
        ``as_is=True``.
    StatisticError
        When no valid test is known for the statistic (any other than a binned error, except with
        ``method="swap"``), or no two rows share a cell.

    Notes
    -----
    T = (1/n) Σ_{i≠j} w_ij r_i · r_j over pairs of rows in one cell is a difference of two
    U-statistics, whose linear part vanishes when both models are calibrated. The jackknife counts
    the quadratic part twice there; taking it off once, and never going below it, is right for both.
    Allowances: :mod:`caltest.inference.comparison`. With clusters or weights Student's law replaces
    the normal one, with the effective number of units, (Σ W_u)² / Σ W_u², less 1. O(n K) plus the
    own tests.

    References
    ----------
    Efron & Stein, "The jackknife estimate of variance", Annals of Statistics 1981. Fay & Feuer,
    "Confidence intervals for directly standardized rates", Statistics in Medicine 1997. Kumar,
    Liang & Ma, "Verified uncertainty calibration", NeurIPS 2019.

    Examples
    --------
    >>> from caltest.data.examples import GaussianMixture
    >>> right = GaussianMixture(0.0, -2.0).sample(2000, rng=1)
    >>> steep = GaussianMixture(0.0, -4.0).sample(2000, rng=1)  # the same observations
    >>> result = compare(right, steep, names=("right", "steep"), n_resamples=99, rng=1)
    >>> result.finding, result.pvalue < 1e-4
    ('right is better calibrated', True)
    """
    _refuse_settings("compare", level, margin, method, facts)
    if isinstance(probs_a, Mapping):
        raise StatisticError("several models are compared by compare_models(models, labels)")
    if probs_b is None and probs_a is not None:
        raise InvalidPredictionsError("probs_b is missing: pass the predictions of both models")
    one_of("paired", paired, (True, False))
    if isinstance(names, str) or np.shape(names) != (2,):
        raise StatisticError(f"names must be two names, not {names!r}")
    data: Mapping[str, RowsOrTally]
    if tallies := [each for each in (probs_a, probs_b) if isinstance(each, AnyTally)]:
        labels = labels_b if labels is None else labels
        data = _of_tallies(tallies, names, labels, paired, method, facts, lens)
    elif paired and labels_b is None:
        both_models = dict(zip(names, (probs_a, probs_b), strict=True))
        data = take_models("compare", both_models, labels, facts, UNPAIRED, own_labels)
    else:
        paired = False
        if labels_b is None and not isinstance(probs_b, Predictions):
            raise InvalidPredictionsError(
                "an unpaired comparison needs labels_b, the labels of the second model"
            )
        both = zip(names, (probs_a, probs_b), (labels, labels_b), strict=True)
        first, second = (take_model("compare", name, p, y, facts) for name, p, y in both)
        refuse_same_outcomes(first.labels, second.labels, facts.get("as_is", False))
        data = dict(zip(names, (first, second), strict=True))
    method = "z" if method == "auto" else method
    run = Run(n_resamples=n_resamples, rng=rng, workers=workers)
    if any(d.by is not None for d in data.values()):
        if not paired:
            raise StatisticError("by is of two models on the same rows: compare them two by two")

        def compare_rows(*parts: Predictions) -> ComparisonResult:
            both = dict(zip(names, parts, strict=True))
            again = take_models("compare", both, None, {}, UNPAIRED, own_labels)
            settings, models = _tested(again, statistic, lens, method, True, level, margin, run)
            return compared(settings, *models)

        return with_subgroups(
            compare_rows, *(d for d in data.values() if isinstance(d, Predictions))
        )
    settings, models = _tested(data, statistic, lens, method, paired, level, margin, run)
    return compared(settings, *models)


def compare_models(
    models: Mapping[str, object],
    labels: object = None,
    statistic: StatisticLike = DebiasedL2(),
    *,
    lens: LensLike | None = None,
    method: ComparisonMethod = "auto",
    own_labels: bool = False,
    level: float = INTERVAL_LEVEL,
    margin: float | None = None,
    n_resamples: int = N_RESAMPLES,
    rng: RNG = None,
    workers: Workers = None,
    **facts: Unpack[Facts],
) -> ComparisonTable:
    """Compare the calibration of all pairs of several models on the same rows, by Holm's method.

    Parameters
    ----------
    models : mapping of str to array_like of shape (n,) or (n, K), or Predictions
        What the models predict for the same observations, by name.
    labels, statistic, lens, method, own_labels, level, margin, n_resamples, rng, workers, **facts
        As in :func:`compare`; ``by`` is refused.

    Raises
    ------
    InvalidPredictionsError, StatisticError
        As :func:`compare`, and for fewer than two models.

    Examples
    --------
    >>> from caltest.data.examples import GaussianMixture
    >>> models = {str(s): GaussianMixture(0.0, s).sample(2000, rng=1) for s in (-2, -4, -8)}
    >>> table = compare_models(models, n_resamples=99, rng=1)
    >>> table.names, table.pair("-2", "-8").finding
    (('-2', '-4', '-8'), '-2 is better calibrated')
    """
    _refuse_settings("compare_models", level, margin, method, facts)
    if not isinstance(models, Mapping):
        raise TypeError(
            f"compare_models takes a mapping, name to predictions, not a {type(models).__name__}: "
            'write {"new": …, "old": …}'
        )
    data = (
        take_models("compare_models", dict(models), labels, facts, "", own_labels) if models else {}
    )
    run = Run(n_resamples=n_resamples, rng=rng, workers=workers)
    method = "z" if method == "auto" else method
    settings, members = _tested(data, statistic, lens, method, True, level, margin, run)
    # From the best calibrated on, so that letters run down the table
    ranked = sorted(members, key=lambda m: m.estimate)
    pairs = [compared(settings, a, b) for a, b in combinations(ranked, 2)]
    scores = _adjusted_scores([pair.scores for pair in pairs])
    pairs = [replace(pair, scores=of) for pair, of in zip(pairs, scores, strict=True)]
    adjusted = holm([pair.pvalue for pair in pairs])
    judged = list(zip(pairs, adjusted, strict=True))
    # Letters join models that no adjusted p-value separates.
    together = {frozenset(pair.names) for pair, p in judged if p > 1.0 - level}
    names, first = tuple(m.name for m in ranked), pairs[0]
    return ComparisonTable(
        names=names,
        pairs=tuple(pairs),
        adjusted=tuple(adjusted),
        verdicts=tuple(
            verdict_of_pair(settings, r.difference, p, r.low, r.high) for r, p in judged
        ),
        indistinguishable=tuple(_letter_groups(names, together)),
        level=level,
        **{name: vars(first)[name] for name in SHARED_BY_PAIRS},
        ended=ending(*(pair.ended for pair in pairs)),
        notes=tuple(dict.fromkeys(note for r in pairs for note in r.notes)),
        copies=max(pair.copies for pair in pairs),
    )


#: What a table says as each of its pairs does.
SHARED_BY_PAIRS = [
    "n",
    "n_classes",
    "effective_n",
    "n_clusters",
    "folds",
    "series",
    "n_resamples",
    "seed",
]


def _refuse_settings(
    verb: str, level: float, margin: float | None, method: str, facts: Facts
) -> None:
    if facts:
        refuse_unknown_facts(verb, facts)
    fraction("level", level)
    if margin is not None:
        number("margin", margin, 0.0, 1.0, "[]")
    one_of("method", method, ("auto", *HYPOTHESES))


def _tested(
    data: Mapping[str, RowsOrTally], statistic: StatisticLike, lens: LensLike | None,
    method: ComparisonMethod, paired: bool, level: float, margin: float | None, run: Run,
) -> tuple[Settings, list[Model]]:  # fmt: skip
    """Return (settings, models): the options of a comparison, and every model with its own test.

    ``data`` has the rows, or the tally (sums over fine bins), of every model by name; other
    parameters as in :func:`compare`, with n_resamples, rng and workers in ``run``. All models are
    seen through one lens, by default the usual one of the first. A model has its name, data, error
    and calibration test. StatisticError for fewer than two names.
    """
    if len(data) < 2:
        raise StatisticError("a comparison needs two models with different names")
    # One lens for all: where none is named, the usual one of the first model
    first = Analysis.through(lens, next(iter(data.values())))
    settings = Settings(statistic, first.lens, method, paired, level, USUAL_MARGIN, run)
    models = [Model.of(name, model, settings) for name, model in data.items()]
    tie = usual_margin(models[0].rows, models[0].times) if margin is None else margin
    return replace(settings, margin=tie), models


#: A difference of root mean squared errors that does not matter, unless the user says otherwise,
#: and its largest share of the frequency of the rarer outcome.
USUAL_MARGIN, MARGIN_SHARE = 0.02, 0.2


def usual_margin(rows: Predictions, times: FloatArray | None = None) -> float:
    """Return the default margin within which two models are tied.

    The margin is a difference of root mean squared errors: 0.02, but for two classes at most a
    fifth of the frequency of the rarer outcome, to one digit. ``rows`` are the predictions and
    outcomes behind the lens. Each of them stands for ``times`` (n,) observations, None for one.
    """
    if rows.n_classes > 2:
        return USUAL_MARGIN
    w = np.ones(rows.n) if rows.weights is None else rows.weights
    if times is not None and times.size == rows.n:
        w = w * times
    rate = float(np.average(rows.labels == 1, weights=w))
    return min(USUAL_MARGIN, float(f"{MARGIN_SHARE * min(rate, 1.0 - rate):.1g}"))


def _of_tallies(
    models: list[AnyTally], names: tuple[str, str], labels: object, paired: bool,
    method: ComparisonMethod, facts: Facts, lens: LensLike | None,
) -> Mapping[str, RowsOrTally]:  # fmt: skip
    """Return two tallies seen through the lens, or the rows that their samples share, by name.

    ``models`` are tallies, which have sums over fine bins in place of rows and may keep a sample of
    them; with ``paired`` these rows are returned. Other parameters as in :func:`compare`.
    StatisticError if one model is no tally, for other lenses or grids, and for ``method="swap"``.
    """
    if len(models) < 2:
        raise StatisticError("a tally is compared with a tally: tally the rows of both models")
    first, second = (
        take_tally("compare", model, labels, facts, lens, whole=paired) for model in models
    )
    if paired:
        return take_models("compare", dict(zip(names, first.paired(second), strict=True)), None, {})
    if method == "swap":
        raise StatisticError("method='swap' needs the rows: tallies are compared by 'z'")
    first.refuse_other(second, "cannot be compared")
    return dict(zip(names, (first, second), strict=True))


def _letter_groups(names: tuple[str, ...], together: set[frozenset[str]]) -> list[tuple[str, ...]]:
    """Return the maximal sets of models in which every pair is in ``together``, tuples of names.

    ``names`` are all models in the order of the table, and ``together`` holds the pairs that do not
    differ significantly, as sets of two names. Names in a set and the sets are in the order of
    ``names``. Insert and absorb, Piepho (2004).
    """
    sets = [frozenset(names)]
    for a, b in combinations(names, 2):
        if frozenset((a, b)) in together:
            continue
        split = [part for s in sets for part in ((s - {a}, s - {b}) if {a, b} <= s else (s,))]
        # A set within another says nothing more: absorb it.
        sets = [
            s for j, s in enumerate(split) if not any(s < t for t in split) and s not in split[:j]
        ]
    ordered = [tuple(name for name in names if name in s) for s in sets]
    return sorted(ordered, key=lambda group: [names.index(name) for name in group])


# ------------------------------------------------------------------------------
# Two models side by side: settings, the numbers of each, and the result.


ComparisonMethod = Literal["auto", "z", "swap"]


#: What each method tests, in words.
HYPOTHESES = {
    "z": "both models have the same true squared calibration error",
    "swap": "exchangeable models: they predict alike and err alike, much more than equal error",
}


COMPARED_SCORES = {"Brier": BrierScore(), "log": LogScore()}


#: Share of rows alone in their cell above which that is said.
MANY_ALONE = 0.1


@dataclass(frozen=True)
class Settings:
    """Options of a comparison that all pairs of models share.

    ``run`` holds n_resamples, rng and workers, and ``margin`` the difference of root mean squared
    errors within which models are tied. The other fields are arguments of :func:`compare`.
    """

    statistic: StatisticLike
    lens: Lens
    method: str
    paired: bool
    level: float
    margin: float
    run: Run = field(repr=False)


@dataclass(frozen=True, eq=False)
class Model:
    """One model of a comparison, with everything that is computed once for all its pairs.

    ``analysis`` holds its data behind the lens. ``rows`` are its predictions through the lens, or
    the representative rows of a tally, each of which stands for ``times`` observations (None if for
    one). ``tested`` is the statistic, ``estimate`` its value, ``interval`` the confidence interval
    of the value (None if none is known), ``error`` the debiased squared error with its jackknife
    values, ``crossed`` the same for two columns of clusters, and ``test`` the model's own
    calibration test.
    """

    name: str
    analysis: Analysis
    rows: Predictions
    tested: StatisticLike
    estimate: float
    error: SquaredError | None
    test: CalibrationTestResult
    interval: tuple[float, float] | None
    times: FloatArray | None
    crossed: CrossedError | None = None

    @classmethod
    def of(cls, name: str, data: RowsOrTally, settings: Settings) -> Model:
        """Return the model called ``name``, seen through the lens, with its own calibration test.

        ``data`` are its rows, or its tally of sums over fine bins; ``settings`` has lens,
        statistic, method and options of the comparison. StatisticError for a statistic without a
        valid test of equal error, and where no two rows share a cell.
        """
        statistic, lens = settings.statistic, settings.lens
        analysis = Analysis.through(lens, data, settings.run["rng"])
        problem = analysis.problem
        prepared, estimate = evaluated(statistic, problem)
        with warnings.catch_warnings():  # the report shows a floor without spread
            warnings.simplefilter("ignore", DegenerateDataWarning)
            asked = data
            if not isinstance(data, Predictions):  # sampled rows where sums leave it open
                asked = take_rows_or_tally("calibration_test", data, None, {}, lens, [statistic])
            test = calibration_result(asked, statistic, lens, "auto", settings.run)
        error, tested, rows, times = None, statistic, problem.data, None
        crossed: CrossedError | None = None
        if settings.method == "z":
            cells = prepared.cells
            binned = prepared.estimand is not None or isinstance(prepared, BinnedError)
            if cells is None or cells.bins is None or not binned:
                raise StatisticError(
                    f"no valid test of equal {name_of(statistic)} is known: compare "
                    "DebiasedL2(bins), or test with method='swap' whether the models are "
                    "exchangeable"
                )
            tested = DebiasedL2(cells.bins)
            estimate = evaluated(tested, problem)[1]
            # Micro-cells become rows that stand for several: the variance needs units, not sums.
            if not problem.exact:
                rows, times, place = problem.expand()
                cells = Cells.by_number(cells.of_unit[place], RowProblem(rows))
            if rows.crossed is not None:
                if not settings.paired:
                    raise StatisticError("two columns of clusters are compared on the same rows")
                crossed = CrossedError.of(cells, rows)
                estimate = crossed.estimate
            # The estimate is the value of the statistic itself, which a tally knows more exactly.
            error = replace(SquaredError.of(cells, rows, times), estimate=estimate)
            if error.alone == error.copies.sum():
                raise StatisticError(
                    f"no two rows of {name} share a cell of {name_of(tested.bins)}, so "
                    "that noise and error cannot be told apart: take fewer bins"
                )
        interval = None
        try:  # of the model's own error, where one is known that covers
            bounds = interval_of(settings.level, data, statistic, lens, settings.run)
            if bounds.low is not None and bounds.high is not None:
                interval = bounds.low, bounds.high
        except StatisticError:
            pass
        answers = (tested, estimate, error, test, interval, times, crossed)
        return cls(name, analysis, rows, *answers)


def compared(settings: Settings, a: Model, b: Model) -> ComparisonResult:
    """Test the difference of two models; return estimate, p-value, interval and verdict.

    ``a`` and ``b`` are models with their errors and own tests, and the difference is the estimate
    of ``a`` less the estimate of ``b``. ``settings`` has method, level and margin of the
    comparison. StatisticError if the lens keeps other rows of one model than of the other.
    """
    n_a, n_b = a.analysis.problem.n, b.analysis.problem.n
    if settings.paired and n_a != n_b:
        raise StatisticError(
            f"the lens {name_of(settings.lens)} keeps {n_a} rows of {a.name} and {n_b} of "
            f"{b.name}: a paired comparison needs a lens that treats every row by itself"
        )
    copies = max(a.analysis.data.copies, b.analysis.data.copies)
    facts = a.analysis.facts | {"copies": copies, "pvalue_error": 0.0, "n_resamples": 0}
    facts |= {"notes": (), "ended": "complete"}
    facts |= (_by_variance if settings.method == "z" else _by_swaps)(settings, a, b)
    notes = [f"{m.name}: {note}" for m in (a, b) for note in m.test.notes]
    facts["notes"] = (*notes, *facts["notes"])
    facts["ended"] = ending(a.test.ended, b.test.ended, facts["ended"])
    difference = a.estimate - b.estimate
    return ComparisonResult(
        statistic=name_of(settings.statistic),
        tested=name_of(a.tested),
        method=settings.method,
        hypothesis=HYPOTHESES[settings.method],
        names=(a.name, b.name),
        estimate_a=a.estimate,
        estimate_b=b.estimate,
        difference=difference,
        level=settings.level,
        margin=settings.margin,
        verdict=verdict_of_pair(settings, difference, facts["pvalue"], facts["low"], facts["high"]),
        test_a=a.test,
        test_b=b.test,
        interval_a=a.interval,
        interval_b=b.interval,
        scores=_score_differences(a, b, settings.paired, settings.level),
        paired=settings.paired,
        **facts,
    )


def _by_variance(settings: Settings, a: Model, b: Model) -> Fields:
    """Return p-value and interval of the difference of two models, as fields of the result by name.

    ``a`` and ``b`` are models with their debiased squared errors; the estimated variance of the
    difference counts. The fields are ``pvalue``, ``low`` and ``high``, of the estimate of ``a``
    less the estimate of ``b``, and ``notes`` unless rows have two columns of clusters; ``settings``
    has the level of the interval.
    """
    assert a.error is not None
    assert b.error is not None
    if a.crossed is not None and b.crossed is not None:
        variance = variance_of_difference(a.crossed, b.crossed, a.rows)
        moments = a.estimate - b.estimate, variance, freedom_of(a.rows)
        low, high, pvalue = by_student(*moments, settings.level)
        return {"pvalue": pvalue, "low": low, "high": high}
    sides = ComparedModel(a.error, a.rows), ComparedModel(b.error, b.rows)
    difference = Difference(*sides, settings.paired)
    pvalue, (low, high) = difference.pvalue(), difference.limits(settings.level)
    alone = "alone in their cell" if sides[0].error.parts.rows else "without other clusters there"
    notes = [
        f"{m.error.alone} of {int(m.error.copies.sum())} rows of {m.name} are {alone} and count "
        "nothing: take fewer bins"
        for m in (a, b)
        if m.error is not None and m.error.alone > MANY_ALONE * m.error.copies.sum()
    ]
    better, side = (a, sides[0]) if difference.value < 0.0 else (b, sides[1])
    # Without rows alone in their cells it would differ: then these decide, and bins are too small
    if difference.pvalue(lone=False) <= 1.0 - settings.level < pvalue:
        notes.append(
            f"{side.lone.size} {'rows' if side.error.parts.rows else 'clusters'} of {better.name} "
            "are alone in their cell and could carry the difference: take fewer bins"
        )
    return {"pvalue": pvalue, "low": low, "high": high, "notes": notes}


def _by_swaps(settings: Settings, a: Model, b: Model) -> Fields:
    """Return the p-value of the swap test of two models, as fields of the result by name.

    It is the share of random exchanges of the predictions of ``a`` and ``b`` that reach the
    observed difference of their estimates. The fields are ``pvalue``, ``pvalue_error``, ``low`` and
    ``high`` (None), ``n_resamples`` and ``ended`` ("complete" or "interrupted"). ``settings`` has
    the number of draws and seed.
    """
    of_both = a.tested, a.analysis.induced, b.analysis.induced, settings.paired
    values, ended = swapped_differences(*of_both, **settings.run)
    difference, n_draws = a.estimate - b.estimate, values.size
    pvalue = (1 + int(reaching(difference, values, two_sided=True).sum())) / (1 + n_draws)
    error = float(np.sqrt(pvalue * (1.0 - pvalue) / n_draws))
    evidence = {"pvalue": pvalue, "low": None, "high": None, "pvalue_error": error}
    return evidence | {"n_resamples": n_draws, "ended": ended}


def verdict_of_pair(
    settings: Settings, difference: float, pvalue: float, low: float | None, high: float | None
) -> ComparisonVerdict:
    """Return the verdict on two models; an interval within the margin is a tie at any p-value.

    ``difference`` is the error of the first less the error of the second. It has the p-value
    ``pvalue`` and the interval (``low``, ``high``), which are None for the swap test. ``settings``
    has the margin of ties and the level.
    """
    differs = pvalue <= 1.0 - settings.level
    if low is None or high is None:
        return ComparisonVerdict.NOT_EXCHANGEABLE if differs else ComparisonVerdict.CANNOT_TELL
    # |√s − √t| ≤ √|s − t|: a difference of squares within margin² bounds the one of the roots.
    if max(-low, high) <= settings.margin**2:
        return ComparisonVerdict.TIED
    if not differs:
        return ComparisonVerdict.CANNOT_TELL
    first = difference < 0.0
    return ComparisonVerdict.FIRST_BETTER if first else ComparisonVerdict.SECOND_BETTER


def _score_differences(
    a: Model, b: Model, paired: bool, level: float
) -> tuple[ScoreDifference, ...]:
    """Compare the mean Brier and log scores of two models; return one difference for each score.

    ``a`` and ``b`` are models with their rows, or with representative rows of a tally, whose
    variances omit the variation within cells. ``paired`` says that both predict the same rows.
    Differences are mean score of ``a`` less mean score of ``b``, with intervals at ``level`` and
    adjusted p-values. () for tallies of more than two classes.
    """
    tallies = a.times is not None
    if tallies and a.analysis.data.n_classes > 2:
        return ()
    differences: list[ScoreDifference] = []
    for name, score in COMPARED_SCORES.items():
        sides = []
        for model in (a, b):
            data = model.analysis.data
            rows = data if isinstance(data, Predictions) else model.rows
            mean = prepare(score, model.analysis.problem).observed if tallies else None
            sides.append(_Scored.of(score.of_rows(rows), rows, model.times, mean))
        differences.append(_score_difference(name, sides[0], sides[1], paired, level))
    return _adjusted_scores([tuple(differences)])[0]


def _adjusted_scores(
    families: Sequence[tuple[ScoreDifference, ...]],
) -> list[tuple[ScoreDifference, ...]]:
    """Return score differences with their p-values adjusted over all of them by Holm's method.

    ``families`` has, for each pair of models, a tuple with the difference of each score; the result
    has the same form, with the field ``adjusted`` set. Differences without a p-value stay as they
    are.
    """
    known = [score.pvalue for family in families for score in family if score.pvalue is not None]
    adjusted = iter(holm(known) if known else [])
    return [
        tuple(s if s.pvalue is None else replace(s, adjusted=next(adjusted)) for s in family)
        for family in families
    ]


class _Scored(NamedTuple):
    """Scores of the rows of one model with their weights, for the variance of a mean score.

    ``values`` and ``weights`` have shape (n,). ``unit`` (n,) numbers the row's independent unit,
    itself or its cluster; ``times`` (U,) is the number of such units that each of the U units
    stands for. ``mean`` is the weighted mean score, None where a score is infinite. ``units`` holds
    three arrays like ``unit`` for two columns of clusters: first, second, and both together; () for
    others.
    """

    values: FloatArray
    weights: FloatArray
    unit: IntArray
    times: FloatArray
    mean: float | None
    units: tuple[IntArray, ...] = ()

    @classmethod
    def of(
        cls, values: FloatArray, rows: Predictions, times: FloatArray | None, mean: float | None
    ) -> _Scored:
        """Return the scores ``values`` (n,) of rows with the weights and clusters of the rows.

        ``rows`` has weights and clusters; row i stands for ``times[i]`` observations, None for one.
        ``mean`` is the mean score where a tally knows it more exactly, else None, and then computed
        here.
        """
        once = np.ones(values.size)
        w = once if rows.weights is None else rows.weights
        unit = np.arange(values.size) if rows.clusters is None else by_appearance(rows.clusters)
        units = () if rows.crossed is None else columns_of(rows)
        if mean is None and np.isfinite(values).all():
            mean = float(w @ values / w.sum())
        times = once[: unit.max() + 1] if times is None else times
        return cls(values, w, unit, times, mean, units)

    def variance(self, values: FloatArray) -> tuple[float, float]:
        """Return (variance, degrees of freedom) of the weighted mean of row ``values`` (n,).

        The variance is over the independent units of these rows, which are clusters, or rows
        without them; the weights of this object count.
        """
        if self.units:
            each = [
                self._replace(unit=u, times=np.ones(u.max() + 1), units=()).variance(values)
                for u in self.units
            ]
            (first, one), (second, other), (both, _) = each
            return max(first + second - both, first, second), min(one, other)
        mass = np.bincount(self.unit, self.weights)
        units, whole = float(self.times.sum()), float(self.times @ mass)
        mean = float(self.times @ np.bincount(self.unit, self.weights * values)) / whole
        residuals = np.bincount(self.unit, self.weights * (values - mean))
        variance = float(self.times @ residuals**2) / whole**2 * units / max(units - 1.0, 1.0)
        return variance, max(whole**2 / float(self.times @ mass**2) - 1.0, 1.0)


def _score_difference(
    name: str, a: _Scored, b: _Scored, paired: bool, level: float
) -> ScoreDifference:
    """Compare two mean scores by Student's t of paired units, else by Welch's.

    Paired units are as in Diebold & Mariano (1995). ``a`` and ``b`` hold the scores of both models
    by row, with weights and clusters; ``paired`` says that rows correspond. The difference is mean
    score of ``a`` less mean score of ``b``, with its interval at ``level`` and two-sided p-value.
    ``name`` is the score's name. Fields are None where a score is infinite or a side has fewer than
    two units.
    """
    first, second = (s.mean if s.mean is not None and s.mean < np.inf else None for s in (a, b))
    if first is None or second is None or min(a.times.sum(), b.times.sum()) < 2:
        return ScoreDifference(name, first, second, None, None, None, None)
    parts = [a.variance(a.values - b.values)] if paired else [s.variance(s.values) for s in (a, b)]
    variances, freedoms = np.array(parts).T
    difference, error = first - second, float(np.sqrt(variances.sum()))
    # A model compared with itself has no spread but rounding, and no t statistic.
    if error <= 1e-14 * (abs(first) + abs(second)):  # the same scores up to rounding
        pvalue = 1.0 if abs(difference) <= 1e-12 else float(np.finfo(float).tiny)
        return ScoreDifference(name, first, second, difference, difference, difference, pvalue)
    # Welch & Satterthwaite; of paired rows there is one variance, and this is its own freedom.
    freedom = variances.sum() ** 2 / (variances**2 / freedoms).sum()
    low, high, pvalue = by_student(difference, float(variances.sum()), freedom, level)
    return ScoreDifference(name, first, second, difference, low, high, pvalue)


# ------------------------------------------------------------------------------
# Swapping the rows of two models.


#: Which of the rows of both models, stacked, each model gets.
RowPair = tuple[IntArray, IntArray]


def swapped_differences(
    statistic: StatisticLike, a: Predictions, b: Predictions, paired: bool, n_resamples: int,
    rng: RNG, workers: Workers,
) -> tuple[FloatArray, str]:  # fmt: skip
    """Return (differences, ending): replicates of T_a − T_b under random exchange of two models.

    T is the ``statistic``; ``a`` and ``b`` are the predictions and outcomes of the models behind
    the lens. In every row the two change places with probability ½. Without ``paired`` rows, all
    rows are distributed anew among the models. Labels move along, as a lens may give each model its
    own. For paired rows in clusters whole clusters are exchanged. Differences have shape (B,), B =
    ``n_resamples``; ``rng`` is a seed or generator and ``workers`` a number of threads. The ending
    is "complete" or "interrupted". StatisticError for clusters without pairs, two columns of
    clusters, and a horizon.
    """
    if a.crossed is not None:
        raise StatisticError("method='swap' does not take two columns of clusters: use method='z'")
    if a.horizon is not None:
        raise StatisticError("method='swap' does not take horizon: use method='z'")
    # Rows of a cluster may depend on each other: exchanged are then whole clusters
    clusters = None if a.n_clusters is None and b.n_clusters is None else a.clusters
    if clusters is not None and not paired:
        raise StatisticError(
            "method='swap' of rows without pairs does not take clusters: use method='z'"
        )
    n, unit = a.n, np.arange(a.n) if clusters is None else by_appearance(clusters)
    probs, labels = np.vstack([a.probs, b.probs]), np.concatenate([a.labels, b.labels])
    weights = None
    if a.weights is not None and b.weights is not None:
        weights = np.concatenate([a.weights, b.weights])
    # Rows of both models are stacked once; a swap is a choice of row numbers
    both = Predictions(probs, labels, weights=weights, induced=True)

    def deal(rng: np.random.Generator) -> RowPair:
        # Under the hypothesis every row is as likely to come from either model
        if not paired:
            rows = rng.permutation(n + b.n)
            return rows[:n], rows[n:]
        swapped, rows = rng.integers(2, size=int(unit.max()) + 1)[unit], np.arange(n)
        return rows + n * swapped, rows + n * (1 - swapped)

    def swapped_difference(rows: RowPair) -> float:
        first, second = (prepare(statistic, both.take(part)).observed for part in rows)
        return first - second

    return simulate(swapped_difference, deal, n_resamples, rng, workers)


# ------------------------------------------------------------------------------
# How far the limits of a difference of two debiased squared errors lie from it.
#
# D = T_A − T_B has a variance that its own scatter shows, and more that it may hide. All parts are
# sums over rows or cells, so that nothing is resampled; z is the normal quantile of the limit.
#
# * *Base*, what the rows show: V_J − Q̂, the jackknife less the quadratic part that it counts
# twice,
#   but at least that part, from residuals as they are (Q) and centred in their cells (Q̂).
# * *Labels not shown.* A cell whose residuals scatter less than its predictions promise,
#   φ_b = max(0, 1 − Σ\|r_i − r̄_b\|² / Σ v_i) > 0 with v_i = 1 − \|p_i\|², has rare labels that did
#   not occur. Row i adds the share 4 / (4 + m_b) φ_b of the variance that D would have if its label
#   were drawn from p_i, by the model that makes more of it.
# * *Labels anywhere.* z²/2 labels more than were seen, wherever they would fall (Agresti & Coull
#   1998): z²/2 times the mean squared change of a label, where that is more.
# * *The least favourable cell.* The error of the model that looks better may all lie in one cell,
# in
#   which |S_b| is small by luck: T is then near the bottom of its law, where it also varies least.
# A
#   unit of cell b adds Σ_u |S_ub|² / (W_b W) to T whatever its sign, on average; the variance gains
#   2 z² times the square of that in the cell where it is largest.
# * *Rows alone in their cell* count nothing in T. Those of the model that looks better may carry an
#   error of Σ \|r_i\|² / n; U(z) is its upper limit, of a weighted count (Fay & Feuer 1997).
#
# Where rows come in clusters, those are the units of all this but for "labels anywhere", and
# labels not shown go together in a cluster. z is then a quantile of Student's law, also for
# weighted rows.


#: Rows of a cell that count as much as what was promised of it.
PROMISED_ROWS = 4.0


#: Times z² at which the least favourable cell enters; validation/pairs has the designs it is for.
MORE = 2.0


#: Where the search for a p-value ends: 2Φ(−z) is the smallest number there.
LARGEST_Z = 38.0


@dataclass(frozen=True, eq=False)
class ComparedModel:
    """One model of a compared pair: its debiased squared error and its predictions.

    ``error`` holds the error T with its jackknife values, by cells and units (rows or clusters);
    ``data`` are the predictions and outcomes through the lens.
    """

    error: SquaredError
    data: Predictions

    def _of_rows(self, values: FloatArray) -> FloatArray:
        """Return the weighted sums of row ``values`` (n,) in each of L cells, (L,)."""
        w = self.data.weights
        weighted = self.error.copies * (values if w is None else w * values)
        return summed(weighted, self.error.cell, self.error.mass.size)

    @cached_property
    def not_shown(self) -> FloatArray:
        """Share of its label variance that is added for each row, as its cell cannot show it, (n,).

        It is large in cells of few rows whose residuals scatter less than the predictions promise.
        """
        data, error, parts = self.data, self.error, self.error.parts
        squares = (data.probs**2).sum(axis=1)
        observed = data.probs[np.arange(data.n), data.labels]
        promised = self._of_rows(1.0 - squares)
        sums = added(parts.times[:, None] * parts.sums, parts.cell, error.mass.size)
        # For two classes the second component is not stored, and is like the first.
        components = 2.0 if data.n_classes == 2 else 1.0
        scatter = self._of_rows(1.0 + squares - 2.0 * observed)
        scatter -= components * (sums**2).sum(axis=1) / error.mass
        ratio = np.divide(scatter, promised, out=np.ones_like(scatter), where=promised > 0.0)
        units = error.mass**2 / error.in_cells(parts.mass**2)  # effective number in each cell
        return (PROMISED_ROWS / (PROMISED_ROWS + units) * np.maximum(0.0, 1.0 - ratio))[error.cell]

    @cached_property
    def worst_cell(self) -> float:
        """Square of the largest mean contribution of one unit to the model's error.

        A unit is a row or a cluster; the mean is over the units of a cell, the largest over cells.
        """
        squares = self.error.in_cells((self.error.parts.sums**2).sum(axis=1)) / self.error.mass
        return float(squares.max() / self.error.mass.sum()) ** 2

    @cached_property
    def lone(self) -> FloatArray:
        """Possible contribution to the model's error of each of m units alone in their cell, (m,).

        A debiased squared error uses pairs of units, so that a lone one does not enter it; a unit
        is a row or a cluster.
        """
        parts = self.error.parts
        alone = self.error.weights[parts.cell] == 0.0
        squares = (parts.sums[alone] ** 2).sum(axis=1)
        return squares / (parts.mass[alone] * self.error.mass.sum())

    def lone_limit(self, z: float) -> float:
        """Return the upper limit of the error that units alone in a cell may add.

        It is 0 without any; ``z`` is the normal quantile of the confidence level. A unit is a row
        or a cluster.
        """
        from scipy.special import gammaincinv, ndtr

        if not self.lone.size or self.lone.max() == 0.0:
            return 0.0
        largest = self.lone.max()
        # Fay & Feuer: the weighted count as a gamma law, with one more event of the largest weight
        mean, variance = self.lone.sum() + largest, (self.lone**2).sum() + largest**2
        return float(variance / mean * gammaincinv(mean**2 / variance, ndtr(z)))

    def label_variances(self, changes: FloatArray) -> FloatArray:
        """Return the variance of the change of an error when one row's label is redrawn, (n,).

        ``changes`` (n, K) holds the change of the error if row i has label k; labels are drawn from
        the predictions of this model.
        """
        mean = (self.data.probs * changes).sum(axis=1)
        return np.asarray((self.data.probs * changes**2).sum(axis=1) - mean**2)


@dataclass(frozen=True, eq=False)
class Difference:
    """Difference D of the debiased squared errors of two models, with interval and p-value.

    D is the error of ``a`` less the error of ``b``, two models with error and predictions;
    ``paired`` says whether their rows are the same observations. The variance of D allows for
    errors that these rows cannot show.
    """

    a: ComparedModel
    b: ComparedModel
    paired: bool

    @property
    def value(self) -> float:
        """Observed difference: the debiased squared error of model a less that error of model b."""
        return self.a.error.estimate - self.b.error.estimate

    @cached_property
    def base(self) -> float:
        """Variance of the difference of both errors, estimated from the rows by the jackknife."""
        return base_variance(self.a.error, self.b.error, self.paired)

    @cached_property
    def not_shown(self) -> float:
        """Further variance of the difference of both errors, from labels hidden in small cells.

        A cell of few rows does not show how much their labels scatter.
        """
        a, b = self.a, self.b
        va, vb = a.label_variances(a.error.changes), b.label_variances(b.error.changes)
        if not self.paired:
            both = zip((a, b), (va, vb), strict=True)
            return sum(side.error.together(side.not_shown * v) for side, v in both)
        # A label that both models have moves both: changes are subtracted before they are squared
        together = a.error.changes - b.error.changes
        ab = b.label_variances(a.error.changes)
        ba = a.label_variances(b.error.changes)
        same = a.data.labels == b.data.labels  # a lens may give each model labels of its own
        by_a = np.where(same, a.label_variances(together), va + ba)
        by_b = np.where(same, b.label_variances(together), vb + ab)
        return a.error.together(np.maximum(a.not_shown * by_a, b.not_shown * by_b))

    @cached_property
    def anywhere(self) -> float:
        """Mean squared change of the difference of both errors if one unit had other labels.

        A unit is a row or a cluster; the errors are the models' debiased squared errors.
        """
        a, b = self.a.error, self.b.error
        if not self.paired:
            return sum(_of_one_unit(error, error.changes**2) for error in (a, b))
        same = (self.a.data.labels == self.b.data.labels)[:, None]
        apart = a.changes**2 + b.changes**2
        return _of_one_unit(a, np.where(same, (a.changes - b.changes) ** 2, apart))

    @property
    def freedom(self) -> float:
        """Degrees of freedom of the variance of the difference of both errors.

        Each model has its own number, of which the smaller is returned.
        """
        return min(self.a.error.freedom, self.b.error.freedom)

    def reach(self, z: float, side: ComparedModel, lone: bool = True) -> float:
        """Return the distance from the observed difference to a confidence limit, for one side.

        It is the limit at which the model ``side``, one of the two, looks better. ``z`` is the
        normal quantile of the level; ``lone`` adds the possible contribution of units (rows or
        clusters) that are alone in their cell. The distance is 0 for a model compared with itself.
        """
        # Rounding of the cells must not make a model differ from itself
        if self.paired and np.array_equal(self.a.data.probs, self.b.data.probs):
            return 0.0  # one model, compared with itself
        variance = self.base + max(self.not_shown, 0.5 * z * z * self.anywhere)
        variance += MORE * z * z * side.worst_cell
        if not lone:
            return float(z * np.sqrt(variance))
        carried = float(side.lone.sum())
        return carried + float(np.hypot(z * np.sqrt(variance), side.lone_limit(z) - carried))

    def limits(self, level: float) -> tuple[float, float]:
        """Return the confidence interval (low, high) of T_a − T_b, the difference of both errors.

        ``level`` is its two-sided confidence level.
        """
        from scipy.special import stdtrit

        z = float(stdtrit(self.freedom, 0.5 + level / 2.0))
        return self.value - self.reach(z, self.b), self.value + self.reach(z, self.a)

    def pvalue(self, lone: bool = True) -> float:
        """Return the two-sided p-value 2Φ(−z), with z at which the confidence limit just meets 0.

        Φ is the normal law, or Student's where units are clusters or weights differ. ``lone``
        includes the possible contribution of rows alone in their cell. It is 1 for a model compared
        with itself, and never 0.
        """
        from scipy.optimize import brentq
        from scipy.special import stdtr

        # The limit on the side of 0 belongs to the model that looks better
        better, distance = self.a if self.value < 0.0 else self.b, abs(self.value)
        if distance <= 1e-14 or self.reach(0.0, better, lone) >= distance:
            return 1.0  # no more than the rounding of a model compared with itself
        smallest = float(np.finfo(float).tiny)
        if self.reach(LARGEST_Z, better, lone) <= distance:
            return smallest
        z = brentq(lambda z: self.reach(z, better, lone) - distance, 0.0, LARGEST_Z, xtol=1e-12)
        return max(2.0 * float(stdtr(self.freedom, -z)), smallest)


def _of_one_unit(error: SquaredError, squares: FloatArray) -> float:
    """Return the mean squared change of an error over units, if one unit had other labels.

    ``squares`` (n, K) are the squared changes of the error if row i has label k; a unit is a row or
    a cluster. ``error`` is the debiased squared error, which knows the units.
    """
    whole = float(error.copies @ squares.sum(axis=1))
    return whole / ((squares.shape[1] - 1) * float(error.times.sum()))
