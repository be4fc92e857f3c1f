"""Tests of counts: probabilities of grades, such as PDs, and of items with several votes.

:func:`grade_tests` has binomial and Jeffreys tests of every grade, and the Poisson-binomial test of
the portfolio, adjusted by Holm's method. :func:`individual_error` is for items with votes.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Literal, Unpack

import numpy as np

from caltest._base import FloatArray, IntArray
from caltest._base.arrays import N_TOGETHER, RNG, fraction, one_of, whole
from caltest._base.written import Fields, first_of, several
from caltest.data import Facts
from caltest.data.labels import Votes
from caltest.data.lenses import Canonical
from caltest.errors import StatisticError
from caltest.inference._input import Analysis
from caltest.inference.calibration import calibration_test
from caltest.inference.null import holm
from caltest.nulls import Run, Workers, check_run
from caltest.nulls.laws import clopper_pearson
from caltest.read.grade_tables import count_table, read_grades
from caltest.results import GradeTest, GradeTests, GradeVerdict, IndividualErrorResult
from caltest.results.base import go_on
from caltest.statistics import IndividualError
from caltest.statistics.scores import null_moments, unbiased_errors
from caltest.tallies.problems import Atoms

#: Grades whose p-value by the bare formula is noted.
NOTED = 10

#: p-values that the frequency is greater, and less, than predicted.
Tails = tuple[FloatArray, FloatArray]


def grade_tests(
    table: object,
    *,
    n: str | None = None,
    events: str | None = None,
    probability: str | None = None,
    names: str | None = None,
    where: str | None = None,
    sheet: str | None = None,
    decimal: Literal[".", ","] | None = None,
    as_is: bool = False,
    alternative: Literal["greater", "less", "two-sided"] = "greater",
    method: Literal["exact", "jeffreys"] = "exact",
    alpha: float = 0.05,
) -> GradeTests:
    """Test the probability of every grade, such as the PD of a rating grade, from counts.

    With D events among N rows of predicted probability p, exact: P(Bin(N, p) ≥ D) for the
    alternative ``"greater"``, that the risk is underestimated, and P(Bin(N, p) ≤ D) for ``"less"``.
    Jeffreys: P(Beta(D + ½, N − D + ½) ≤ p) and its complement. ``"two-sided"`` is twice the
    smaller, at most 1. All grades together: the exact law of the sum of all events, which is
    Poisson-binomial, and Jeffreys at the mean probability.

    Parameters
    ----------
    table : data frame, mapping of columns, duckdb relation or path
        A row for each grade.
    n, events, probability, names : str, optional
        Columns, or expressions in SQL over the columns such as ``"PD / 100"``: rows, events among
        them, the probability of the event, and names of grades. By default columns that are called
        n, count, rows, total, obligors, borrowers, accounts, customers or loans; events, defaults,
        defaulted or bads; pd, probability, p, prob, predicted_probability or risk; grade, rating,
        bin, bucket, band or name. Cells with percent signs are divided by 100. A row without a
        probability that is the sum of the others is left out. ``notes`` describe the reading.
    where : str, optional
        Keep the rows where this expression is true, such as ``"year = 2025"``.
    sheet : str, optional
        Sheet of an Excel file with several sheets of numbers.
    decimal : {".", ","}, optional
        Decimal mark of a text file; the other one marks thousands.
    as_is : bool, default False
        Take a row with a probability that is the sum of all others for a grade.
    alternative : {"greater", "less", "two-sided"}
        How the true probability would differ from the predicted one.
    method : {"exact", "jeffreys"}
        Which p-values are adjusted and judged, and which intervals shown: Clopper & Pearson's or
        Jeffreys' equal-tailed ones. Only exact tests keep ``alpha`` whatever the grades:
        by enumeration, Jeffreys' tests have a false finding in up to 6.3 % of small portfolios.
    alpha : float, default 0.05
        Chance of any wrong finding: p-values of the grades and of the portfolio are adjusted
        together, by Holm's method. Intervals, two-sided, are of level 1 − ``alpha``.

    Raises
    ------
    InvalidPredictionsError
        For a column that is not there or could be several, and a row whose numbers are not counts
        or no probability.
    DoubtfulInputError
        For a row with a probability that is the sum of all others, and for probabilities that are
        percents by their name and none of which is above 1.

    Notes
    -----
    Events are taken to be independent; no correlation of defaults is assumed, and there may be one.
    Jeffreys' p-value is 1 for ``"greater"`` without events, and for ``"less"`` where all rows had
    one: the bare formula, which is noted, would reject a PD of 0.1 % because one obligor did not
    default (p = 0.04). Grades without rows are not tested. The intervals of the portfolio are
    binomial. O(G), and O(σ G) for the portfolio, σ² the variance of its number of events.

    References
    ----------
    European Central Bank, Instructions for reporting the validation results of internal models
    (2019), 2.5.3.1. Clopper & Pearson, Biometrika 26 (1934). Brown, Cai & DasGupta, Statistical
    Science 16 (2001). Holm, Scandinavian Journal of Statistics 6 (1979).

    Examples
    --------
    >>> grades = {"grade": ["A", "B"], "n": [406, 480], "events": [55, 41], "pd": [0.1034, 0.0995]}
    >>> result = grade_tests(grades, method="jeffreys")
    >>> round(result.grades[0].jeffreys_pvalue, 3), str(result.grades[0].verdict)
    (0.02, 'no evidence')
    """
    from scipy.special import betainc, betaincinv

    one_of("alternative", alternative, ("greater", "less", "two-sided"))
    one_of("method", method, ("exact", "jeffreys"))
    fraction("alpha", alpha)
    with count_table(table, sheet, decimal) as counts:
        columns_of = {"n": n, "events": events, "probability": probability, "names": names}
        size, event_counts, p, labels, notes = read_grades(counts, columns_of, where, as_is)
    N, D = np.append(size, size.sum()), np.append(event_counts, event_counts.sum())
    mean = np.append(p, p @ (size / size.sum()))
    exact, posterior = (_tails(N, D, mean, prior) for prior in (0.0, 0.5))
    # Grades of one probability add up to a binomial; others need the law of the sum
    if np.unique(p[size > 0]).size > 1:
        for tail, value in zip(exact, _poisson_binomial(size, p, int(D[-1])), strict=True):
            tail[-1] = value
    pvalues = {
        "exact": _sided(exact, alternative),
        "jeffreys": _sided(posterior, alternative),
    }
    if method == "exact":
        low, high = clopper_pearson(D, N, 1.0 - alpha)
    else:  # equal tails of Beta(D + ½, N − D + ½), closed where all rows are alike
        ends = 0.5 * alpha, 1.0 - 0.5 * alpha
        low, high = (betaincinv(D + 0.5, N - D + 0.5, end) for end in ends)
        low, high = np.where(D > 0, low, 0.0), np.where(D < N, high, 1.0)
    adjusted = np.ones(N.size)
    tested = N > 0
    tested[-1] = tested[:-1].sum() > 1
    adjusted[tested] = holm(pvalues[method][tested].tolist())
    # One grade is the portfolio: it is not counted twice
    adjusted[-1] = adjusted[-1] if tested[-1] else adjusted[:-1].min()
    rate = D / np.where(N > 0, N, np.nan)
    # Two-sided tests say by the sign of the gap on which side a grade is wrong
    over = rate > mean if alternative == "two-sided" else np.full(N.size, alternative == "greater")
    words = np.where(over, GradeVerdict.UNDERESTIMATED, GradeVerdict.OVERESTIMATED)
    numbers = (N, D, rate, mean, pvalues["exact"], pvalues["jeffreys"], adjusted)
    verdicts = np.where(adjusted <= alpha, words, GradeVerdict.NO_EVIDENCE).tolist()
    intervals = zip(low.tolist(), high.tolist(), strict=True)
    plain = (column.tolist() for column in numbers)
    # A one-sided test does not look at predictions beyond the other end of the interval
    beyond = {"greater": mean > high, "less": mean < low}
    unseen = (tested & beyond.get(alternative, np.zeros(N.size, bool))).tolist()
    unseen[-1] = unseen[-1] if tested[-1] else any(unseen)
    columns = ([*labels, "all"], *plain, intervals, verdicts, unseen)
    rows = [GradeTest(*row) for row in zip(*columns, strict=True)]
    # Where a one-sided p-value of Jeffreys is 1 by convention, the formula says something else
    certain = {"greater": 0.0, "less": 1.0}.get(alternative, np.nan)
    bare = [
        f"{row.name}: {betainc(0.5, row.n + 0.5, abs(row.probability - certain)):.3g}"
        for row in rows
        if row.rate == certain
    ]
    if bare:
        where = "no row has an event" if alternative == "greater" else "every row has an event"
        count = f" ({several(len(bare), 'grade')})" * (len(bare) > NOTED)
        notes += (
            f"where {where}{count}, Jeffreys' p-value is 1 by convention; the formula gives "
            f"{first_of(bare, NOTED)}",
        )
    *grades, portfolio = rows
    answer = (tuple(grades), portfolio, alternative, method, alpha)
    return GradeTests(*answer, n=int(N[-1]), n_classes=2, notes=notes)


def _sided(tails: Tails, alternative: str) -> FloatArray:
    # A two-sided test may be wrong on either side: each tail has half of alpha
    greater, less = tails
    if alternative == "two-sided":
        return np.minimum(1.0, 2.0 * np.minimum(greater, less))
    return greater if alternative == "greater" else less


def _tails(n: IntArray, d: IntArray, p: FloatArray, prior: float) -> Tails:
    """Return (P(X ≥ d), P(X ≤ d)) of G grades, X binomial, or Jeffreys' versions of both.

    ``n``, ``d`` and ``p`` (G,) are rows, events and probabilities of the grades; ``prior`` is 0, or
    ½ for Jeffreys. Both results have shape (G,).
    """
    from scipy.special import betainc, betaincc

    greater = betainc(np.maximum(d + prior, 0.5), n - d + 1.0 - prior, p)
    less = betaincc(d + 1.0 - prior, np.maximum(n - d + prior, 0.5), p)
    return np.where(d > 0, greater, 1.0), np.where(d < n, less, 1.0)


def _poisson_binomial(n: IntArray, p: FloatArray, d: int) -> tuple[float, float]:
    """Return (P(S ≥ d), P(S ≤ d)), S the number of events in all G grades together.

    Grade g has ``n[g]`` rows with probability ``p[g]``, shapes (G,), and ``d`` events were
    observed. Both include a bound on the rounding of the law.
    """
    none = np.zeros(n.size)
    first, pmf, lost = Atoms(p, 1.0 - p, n.astype(np.float64), none, none, none, none).law()
    place = np.clip([d - first, d - first + 1], 0, pmf.size)
    tails = (float(pmf[place[0] :].sum()), float(pmf[: place[1]].sum()))
    return min(1.0, tails[0] + lost), min(1.0, tails[1] + lost)


# ------------------------------------------------------------------------------
# Individual error: are probabilities right item by item, where items have several votes?
#
# The error has a calibration part, which recalibration can remove, and the grouping loss, which it
# cannot; both have intervals.


#: Estimate, low and high, not cut off.
Interval = tuple[float, float, float]


def individual_error(
    probs: object,
    labels: object = None,
    *,
    level: float = 0.95,
    n_bins: int | None = None,
    null: Literal["auto", "asymptotic"] = "auto",
    n_resamples: int = N_TOGETHER,
    rng: RNG = None,
    workers: Workers = 1,
    **facts: Unpack[Facts],
) -> IndividualErrorResult:
    """Estimate and test the error of probabilities item by item.

    Items have several outcomes: votes of annotators, or the answers of repeated runs. With q_i the
    true probabilities of item i, the error is the mean of |q_i − p_i|². It is the sum of a
    *calibration part*, which remains on average over items with similar predictions, and the
    *grouping loss*, which averages out: equal predictions for items that differ.

    Parameters
    ----------
    probs, labels
        :meth:`Predictions.of_votes`; or a row for each vote, with ``items=``.
    level : float, default 0.95
        Level of the three intervals.
    n_bins : int, optional
        Bins of equal numbers of items, of every class's own probability, for the calibration part;
        by default 1 for every 20 items, at least 1 and at most 10.
    null : {"auto", "asymptotic"}, default "auto"
        Redrawn votes, or from 5000 items on and with "asymptotic" the shifted gamma law.
    n_resamples : int, default 1999
        Redrawn sets of votes.
    rng, workers, **facts
        As in :func:`calibration_test`; only ``items``, ``weights`` of items and ``clusters`` of
        whole items are taken.

    Returns
    -------
    IndividualErrorResult

    Raises
    ------
    StatisticError
        Without items, and where fewer than two items, or clusters of items, have two votes.

    Notes
    -----
    Test (:class:`IndividualError`) and estimate use different weights: m − 1 gives power, equal
    weights give the mean over items. The interval is Student's for the mean of the unbiased errors
    of items; clusters of items are summed first. For each class the calibration part is the mean
    over its bins of products of residuals of different items (clusters), which has no bias; for
    both parts the standard error comes from the delete-one jackknife, and ends are cut off at 0.
    Lower ends are 0 unless the test rejects at half of 1 − ``level``. Where rare outcomes did not
    occur and errors of items scatter less than half as much as votes drawn from the predictions,
    the upper ends use the scatter of these. Intervals are conservative where the truth is 0.
    O(B I K + n K).

    The test assumes that votes of an item are independent draws. If raters judge several items,
    models that are right are rejected too often.

    Examples
    --------
    >>> import numpy as np
    >>> import caltest as ct
    >>> rng = np.random.default_rng(0)
    >>> q = rng.beta(2, 2, 300)  # true probabilities that differ
    >>> counts = rng.multinomial(5, np.column_stack([1 - q, q]))
    >>> votes = ct.Predictions.of_votes(np.full(300, 0.5), counts)  # all get one half
    >>> found = ct.individual_error(votes, rng=0)
    >>> found.pvalue < 0.001, found.calibration < 0.01 < found.grouping
    (True, True)
    """
    check_run(**(run := Run(n_resamples=n_resamples, rng=rng, workers=workers)))
    fraction("level", level)
    analysis = Analysis.of("individual_error", probs, labels, facts, lens=Canonical(), rng=rng)
    data, statistic = analysis.rows, IndividualError()
    test = calibration_test(data, None, statistic, lens=Canonical(), null=null, **run)
    go_on(test.ended)
    votes = Votes.of(data)
    size = votes.size
    if n_bins is None:
        n_bins = int(np.clip(len(size) // 20, 1, 10))
    whole("n_bins", n_bins)
    several = size >= 2
    unit = np.arange(len(size)) if votes.clusters is None else votes.clusters
    if np.unique(unit[several]).size < 2:
        raise StatisticError(
            "individual_error needs two items, or clusters of items, with two votes or more"
        )
    weight = np.ones(len(size)) if votes.weights is None else votes.weights
    errors = unbiased_errors(votes.probs, votes.counts)
    grouped = unit[several] if votes.clusters is not None else None
    whole_error = mean_interval(errors[several], weight[several], grouped, level)
    intervals = {"": whole_error}
    intervals["calibration_"], intervals["grouping_"] = split(votes, n_bins, level)
    calibration, grouping = intervals["calibration_"], intervals["grouping_"]
    # Where predictions are compatible with all votes, no error is certain
    certain = test.pvalue <= 0.5 * (1.0 - level)
    widest = whole_error[2] if certain else _reach_of_the_null(votes, whole_error, level)
    ends: Fields = {}
    for name, (_, low, high) in intervals.items():
        ends[f"{name}low"] = max(0.0, low) if certain else 0.0
        ends[f"{name}high"] = max(0.0, high, widest if widest > whole_error[2] else high)
    return analysis.result(
        IndividualErrorResult,
        estimate=whole_error[0],
        calibration=calibration[0],
        grouping=grouping[0],
        **ends,
        level=level,
        test=replace(test, null_distribution=None),
        items=int(several.sum()),
        single=int((size == 1).sum()),
        n_bins=n_bins,
        n_resamples=test.n_resamples,
        ended=test.ended,
    )


def _reach_of_the_null(votes: Votes, interval: Interval, level: float) -> float:
    """Return the upper limit of the error of items, raised if votes agree too well to show scatter.

    Where rare outcomes did not occur, all items have nearly the same unbiased error, and the
    scatter over items understates the uncertainty. If it is less than half of the scatter of votes
    drawn from the predictions, the latter is used. ``votes`` has predictions and counts of votes,
    both (I, K) for I items and K classes; ``interval`` is (estimate, low, high) at ``level``.
    """
    from scipy.special import stdtrit

    several = votes.size >= 2
    weight = np.where(several, 1.0 if votes.weights is None else votes.weights, 0.0)
    variance, _ = null_moments(votes.probs, votes.size, weight / weight.sum())
    reach = float(stdtrit(several.sum() - 1, 0.5 + level / 2.0)) * variance**0.5
    estimate, _, high = interval
    return max(high, estimate + reach) if high - estimate < 0.5 * reach else high


def mean_interval(
    errors: FloatArray, weight: FloatArray, clusters: IntArray | None, level: float
) -> Interval:
    """Return (estimate, low, high): the weighted mean of the errors of I items with a t interval.

    ``errors`` and ``weight`` have shape (I,), ``level`` is the level of the interval. Items of a
    cluster (``clusters`` (I,), their numbers; None for none) are summed first.
    """
    from scipy.special import stdtrit

    mean = float(weight @ errors / weight.sum())
    away = weight * (errors - mean) / weight.sum()
    if clusters is not None:
        away = np.bincount(np.unique(clusters, return_inverse=True)[1].ravel(), away)
    g = away.size
    half = float(stdtrit(g - 1, 0.5 + level / 2.0)) * float(np.sqrt(g / (g - 1) * (away @ away)))
    return mean, mean - half, mean + half


def split(votes: Votes, n_bins: int, level: float) -> tuple[Interval, Interval]:
    """Return the calibration part and the grouping loss of an error, each (estimate, low, high).

    The calibration part is the squared error that remains on average over items with similar
    predictions, the grouping loss the rest. Intervals are the jackknife's, at ``level``. ``votes``
    has predictions and counts of votes, both (I, K) for I items and K classes; items are cut by
    their predictions into ``n_bins`` bins for each class. For every class and bin, Σ_{g ≠ h} r_g
    r_h / Σ_{g ≠ h} c_g c_h is an unbiased square of the mean residual, with r_g and c_g the sums of
    residuals and weights of cluster (item) g.
    """
    size, n = votes.size, len(votes.size)
    unit = np.arange(n) if votes.clusters is None else votes.clusters
    unit = np.unique(unit, return_inverse=True)[1].ravel()
    weight = np.ones(n) if votes.weights is None else votes.weights
    count, several = int(unit.max()) + 1, size >= 2
    held = np.where(several, weight, 0.0)
    errors = np.bincount(unit, held * unbiased_errors(votes.probs, votes.counts), count)
    masses, whole_mass = np.bincount(unit, held, count), np.bincount(unit, weight, count)
    with np.errstate(invalid="ignore", divide="ignore"):
        without = (errors.sum() - errors) / (masses.sum() - masses)
    individual, total = errors.sum() / masses.sum(), whole_mass.sum()
    residuals = votes.counts / np.maximum(size, 1)[:, None] - votes.probs
    part, change = 0.0, np.zeros(count)
    for p, r in zip(votes.probs.T, residuals.T, strict=True):
        edges = np.unique(np.quantile(p, np.linspace(0.0, 1.0, n_bins + 1)[1:-1]))
        number = np.searchsorted(edges, p, side="right")
        for b in np.unique(number):
            here = np.flatnonzero(number == b)
            members, place = np.unique(unit[here], return_inverse=True)
            if members.size < 2:
                continue
            place = place.ravel()
            added = [
                np.bincount(place, x).astype(np.float64)
                for x in (weight[here] * r[here], weight[here])
            ]
            value, less = _leave_one_out(*added)
            part += value
            change[members] += less - value
    calibration, calibration_without = part / total, (part + change) / (total - whole_mass)
    intervals = []
    for estimate, each in (
        (calibration, calibration_without),
        (individual - calibration, without - calibration_without),
    ):
        intervals.append(_jackknife_interval(estimate, each, level))
    return intervals[0], intervals[1]


def _leave_one_out(sums: FloatArray, mass: FloatArray) -> tuple[float, FloatArray]:
    """Return (value, values (G,)): a debiased square of a mean residual, and without each cluster.

    The square is N Σ_{g≠h} r_g r_h / Σ_{g≠h} c_g c_h, where ``sums`` are the sums of residuals r_g
    and ``mass`` the weights c_g of G clusters, and N is Σ c_g. Value g of the array leaves cluster
    g out.
    """
    s, q, n, c = sums.sum(), np.square(sums).sum(), mass.sum(), np.square(mass).sum()
    value = float(n * (s**2 - q) / (n**2 - c))
    n_, pairs = n - mass, (n - mass) ** 2 - (c - mass**2)
    gained = n_ * ((s - sums) ** 2 - (q - sums**2))
    return value, np.divide(gained, pairs, out=np.zeros_like(pairs), where=pairs > 1e-12)


def _jackknife_interval(estimate: float, without: FloatArray, level: float) -> Interval:
    """Return (estimate, low, high): a t interval by the jackknife over G clusters.

    ``without`` (G,) are the estimates without each cluster, ``level`` is the level of the interval.
    """
    from scipy.special import stdtrit

    g = without.size
    away = without - without.mean()
    half = float(stdtrit(g - 1, 0.5 + level / 2.0) * np.sqrt((g - 1) / g * (away @ away)))
    return float(estimate), float(estimate) - half, float(estimate) + half
