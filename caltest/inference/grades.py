"""Tests of the probabilities of grades, such as PDs of rating grades, from counts alone.

:func:`grade_tests` is the entry: binomial and Jeffreys tests of every grade, and the
Poisson-binomial test of the portfolio, adjusted by Holm's method.
"""

from __future__ import annotations

from typing import Literal

import numpy as np

from caltest._base import FloatArray, IntArray
from caltest._base.arrays import fraction, one_of
from caltest.inference.null import holm
from caltest.nulls.laws import clopper_pearson
from caltest.read.grade_tables import count_table, read_grades
from caltest.results import GradeTest, GradeTests, GradeVerdict
from caltest.tallies.problems import Atoms

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
    with count_table(table, sheet) as counts:
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
    columns = ([*labels, "all"], *plain, intervals, verdicts)
    rows = [GradeTest(*row) for row in zip(*columns, strict=True)]
    # Where a one-sided p-value of Jeffreys is 1 by convention, the formula says something else
    certain = {"greater": 0.0, "less": 1.0}.get(alternative, np.nan)
    bare = ", ".join(
        f"{row.name}: {betainc(0.5, row.n + 0.5, abs(row.probability - certain)):.3g}"
        for row in rows
        if row.rate == certain
    )
    if bare:
        where = "no row has an event" if alternative == "greater" else "every row has an event"
        notes += (f"where {where}, Jeffreys' p-value is 1 by convention; the formula gives {bare}",)
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
    """Return P(X ≥ d) and P(X ≤ d), X binomial, or Jeffreys' versions with a ``prior`` of ½.

    ``n``, ``d`` and ``p`` (G,) are rows, events and probabilities of the grades. Both results have
    shape (G,).
    """
    from scipy.special import betainc, betaincc

    greater = betainc(np.maximum(d + prior, 0.5), n - d + 1.0 - prior, p)
    less = betaincc(d + 1.0 - prior, np.maximum(n - d + prior, 0.5), p)
    return np.where(d > 0, greater, 1.0), np.where(d < n, less, 1.0)


def _poisson_binomial(n: IntArray, p: FloatArray, d: int) -> tuple[float, float]:
    """Return P(S ≥ d) and P(S ≤ d) for the sum S of all events, plus the law's rounding bound."""
    none = np.zeros(n.size)
    first, pmf, lost = Atoms(p, 1.0 - p, n.astype(np.float64), none, none, none, none).law()
    place = np.clip([d - first, d - first + 1], 0, pmf.size)
    tails = (float(pmf[place[0] :].sum()), float(pmf[: place[1]].sum()))
    return min(1.0, tails[0] + lost), min(1.0, tails[1] + lost)
