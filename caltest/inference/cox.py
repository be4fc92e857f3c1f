"""Cox recalibration: calibration intercept and slope, in one data set and over sites.

:func:`cox_recalibration` has likelihood-ratio tests; :func:`followed_fits` estimates the same line
for risks with follow-up, by weighted score equations; :func:`meta_analysis` pools sites.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Literal, Unpack

import numpy as np
import scipy
from scipy.special import expit

from caltest._base import FloatArray, IntArray
from caltest._base.arrays import fraction, one_of
from caltest._base.written import Fields
from caltest.data import Facts, Predictions
from caltest.data.facts import by_appearance
from caltest.data.followup import Censoring
from caltest.data.lenses import LensLike
from caltest.errors import StatisticError
from caltest.inference._input import Analysis
from caltest.inference.dependence import added, columns_of, freedom_of, joined, refuse_few_blocks
from caltest.results import CentreCurve, CoxRecalibration, MetaAnalysis, PooledEffect
from caltest.statistics import Problem, RowProblem
from caltest.statistics.regression import (
    PROBABILITY_CLIP,
    fit_logistic,
    log_likelihood,
    log_odds,
    logit_table,
)
from caltest.tallies import RowsOrTally

#: What is estimated, as fields of the result.
ESTIMATES = ("intercept", "slope", "in_the_large")


#: Log-odds, outcomes, and how much each row counts.
Likelihood = tuple[FloatArray, FloatArray, FloatArray | None]


def cox_recalibration(
    probs: object,
    labels: object = None,
    *,
    lens: LensLike | None = None,
    level: float = 0.95,
    method: Literal["wald", "profile"] = "wald",
    link: Link = "logit",
    **facts: Unpack[Facts],
) -> CoxRecalibration:
    """Estimate Cox's intercept and slope, with intervals and likelihood-ratio tests.

    The model is logit P(y = 1) = a + b logit p. A slope below 1 means that predictions are too
    extreme; a positive calibration-in-the-large (the log-odds shift with slope 1) means that events
    are more frequent than predicted.

    Parameters
    ----------
    probs, labels, **facts
        As in :meth:`Predictions.of`. With ``weights`` the weighted likelihood is maximised; with
        these or ``clusters`` variances come from estimates without each row or cluster in turn, by
        one Newton step (jackknife), and tests are Wald's by Student's and Hotelling's laws. With
        ``folds`` variances are doubled, and tests are Wald's. Or a :class:`Tally` without weights.
        With :class:`Followup` score equations are weighted, O:E is estimated as well, and variances
        follow from influence functions.
    lens : lens or callable, optional
        A lens with two classes; by default as in :func:`calibration_test`.
    level : float, default 0.95
        Level of the intervals.
    method : {"wald", "profile"}, default "wald"
        Estimate ± quantile × standard error, or the values that the likelihood-ratio test does not
        reject, which is better for few events.
    link : {"logit", "cloglog"}, default "logit"
        Link of both sides of the model; log(−log(1 − p)), by which risks of survival models are
        recalibrated, for :class:`Followup` only.

    Raises
    ------
    StatisticError
        For more than two classes, and without finite estimates: outcomes or predictions all equal,
        or events separated by the prediction. ``CoxScore`` and ``CoxLR`` still test such data. With
        follow-up where (Σ W)² / (n Σ W²) is below 0.3.

    Notes
    -----
    O(n) per Newton step. p-values are asymptotic, see ``CoxLR``; probabilities ≥ 1e-12. Degrees of
    freedom of the jackknife are the effective number of units, (Σ W_u)² / Σ W_u², less 1.

    References
    ----------
    Cox (1958), "Two further applications of a model for binary regression", Biometrika 45. Miller,
    Hui & Tierney (1991), "Validation techniques for logistic regression models", Statistics in
    Medicine 10.

    Examples
    --------
    >>> answer = cox_recalibration([0.9, 0.8, 0.7, 0.4, 0.3, 0.2], [1, 1, 0, 1, 0, 0])
    >>> round(answer.slope, 4), round(answer.in_the_large, 4)
    (1.1866, -0.28)
    """
    fraction("level", level)
    one_of("method", method, ("wald", "profile"))
    one_of("link", link, ("logit", "cloglog"))
    analysis, (z, y, w) = _read(probs, labels, lens, facts)
    if (followup := analysis.followup) is not None:
        if method == "profile":
            raise StatisticError("method='profile' takes no follow-up: use method='wald'")
        fits, (ratio, se) = followed_fits(analysis.induced, followup.share, link)
        numbers = _wald(fits, level, np.inf) | {"oe": ratio, "oe_se": se, "link": link}
        # A ratio is positive: its interval is symmetric on the scale of logarithms
        reach = np.exp(float(scipy.special.ndtri(0.5 + level / 2.0)) * se)
        numbers["oe_interval"] = (float(ratio / reach), float(ratio * reach))
        numbers |= {"events": followup.events, "level": level, "method": method}
        return analysis.result(CoxRecalibration, **numbers)
    if link != "logit":
        raise StatisticError(f"link={link!r} is for risks with follow-up: use link='logit'")
    source = analysis.data if analysis.from_sums else analysis.induced
    freedom = _freedom(source)
    folded = analysis.data.folds is not None
    if (designed := folded or bool(np.isfinite(freedom))) and method == "profile":
        raise StatisticError(
            "method='profile' takes no clusters, weights or folds: use method='wald'"
        )
    one, none = np.ones((y.size, 1)), np.zeros(y.size)
    both, only = np.column_stack([one, z]), z[:, None]
    calibrated = log_likelihood(z, y, w)
    offset_best, (offset,) = fit_logistic(one, z, y, w)
    best, line = fit_logistic(both, none, y, w)
    # Each pair of rows enters twice: as i among the rows that j's model was fitted on, and as j.
    twice = 2.0 if folded else 1.0
    offset_se = float(np.sqrt(twice * covariance_of(one, z + offset, y, w, source)[0, 0]))
    covariance = twice * covariance_of(both, both @ line, y, w, source)
    if designed and np.linalg.matrix_rank(covariance) < 2:
        raise StatisticError(
            "the errors of intercept and slope cannot be told from these clusters: too few of them "
            "differ"
        )
    numbers = _wald((line, covariance, (offset, offset_se)), level, freedom)
    if method == "profile":
        # Wilks: 2 (log L̂ − log L) follows χ²(1), the square of a normal
        below = 0.5 * float(scipy.special.ndtri(0.5 + level / 2.0)) ** 2
        profiles: list[tuple[float, Callable[[float], float]]] = [
            (best, lambda a: fit_logistic(only, none + a, y, w)[0]),
            (best, lambda b: fit_logistic(one, b * z, y, w)[0]),
            (offset_best, lambda a: log_likelihood(z + a, y, w)),
        ]
        for name, (top, profile) in zip(ESTIMATES, profiles, strict=True):
            estimate, se = numbers[name], numbers[f"{name}_se"]
            numbers[f"{name}_interval"] = _not_rejected(estimate, se, profile, top - below)
    if not designed:
        ratios = [best - calibrated, offset_best - calibrated, best - offset_best]
        numbers |= _tests([2.0 * ratio for ratio in ratios], np.inf)
    return analysis.result(
        CoxRecalibration,
        **numbers,
        events=round(float((y if source.weights is not None or w is None else y * w).sum())),
        level=level,
        method=method,
    )


def _wald(fits: Fits, level: float, freedom: float) -> Fields:
    """Return estimates, standard errors, intervals and Wald tests of Cox's line, as fields by name.

    ``fits`` is ((intercept, slope) as an array, their covariance (2, 2), (calibration-in-the-large,
    its standard error)). ``freedom`` are degrees of freedom, infinite for a normal law. The dict
    has ``intercept``, ``slope`` and ``in_the_large``, each also with the endings ``_se`` and
    ``_interval`` (at ``level``), ``covariance``, and three tests as :func:`_tests` names them.
    """
    both, covariance, (offset, offset_se) = fits
    reach = float(scipy.special.stdtrit(freedom, 0.5 + level / 2.0))
    errors = *np.sqrt(np.diag(covariance)), offset_se
    numbers: Fields = {"covariance": float(covariance[0, 1])}
    for name, value, se in zip(ESTIMATES, (*both, offset), errors, strict=True):
        numbers |= {name: float(value), f"{name}_se": float(se)}
        numbers[f"{name}_interval"] = (float(value - reach * se), float(value + reach * se))
    # Wald: d′ Σ⁻¹ d of the distance from intercept 0 and slope 1
    departure = both - [0.0, 1.0]
    wald = float(departure @ np.linalg.solve(covariance, departure))
    return numbers | _tests(
        [wald, (offset / offset_se) ** 2, (departure[1] / errors[1]) ** 2], freedom
    )


def _tests(values: Sequence[float], freedom: float) -> dict[str, float]:
    """Return statistics and p-values of three tests of Cox's line, as fields by name.

    ``values`` are the statistics of intercept and slope together, of calibration-in-the-large, and
    of the slope: the fields ``lr``, ``lr_intercept`` and ``lr_slope``, each also with the ending
    ``_pvalue``. ``freedom`` are degrees of freedom, infinite for χ² laws.
    """
    numbers = {}
    for name, df, value in zip(("lr", "lr_intercept", "lr_slope"), (2, 1, 1), values, strict=True):
        numbers[name] = max(0.0, float(value))
        numbers[f"{name}_pvalue"] = _tail(numbers[name], df, freedom)
    return numbers


def _read(
    probs: object, labels: object, lens: LensLike | None, facts: Facts
) -> tuple[Analysis, Likelihood]:
    """Return (analysis, (logits, events, weights)).

    They are the validated data behind the lens, and the arrays of the likelihood, of shape (n,):
    log-odds of the predictions, outcomes (1 for the event), and weights or None. A tally, which has
    sums over fine bins in place of rows, gives fractional outcomes with the same likelihood.
    Parameters as in :func:`cox_recalibration`, ``facts`` by name. StatisticError for weighted
    tallies and data without finite estimates.
    """
    analysis = Analysis.of("cox_recalibration", probs, labels, facts, lens=lens)
    if not analysis.from_sums:
        refuse_few_blocks("cox_recalibration", analysis.rows)
        return analysis, (*_logits_and_events(analysis.induced), analysis.induced.weights)
    if analysis.data.weights is not None:
        raise StatisticError("cox_recalibration takes weighted rows, but no tally of them")
    return analysis, _of_sums(analysis.problem)


def _logits_and_events(rows: Predictions) -> tuple[FloatArray, FloatArray]:
    """Return (log-odds of the event, events) of rows, floats (n,) each; events are 1 for class 0.

    ``rows`` are the predictions and outcomes behind a lens of two classes. StatisticError for more,
    and where the estimates are infinite: all outcomes or predictions equal, or separated outcomes.
    """
    RowProblem(rows).event(cox_recalibration)
    z, y = log_odds(rows), (rows.labels == 0).astype(np.float64)
    available = slice(None) if rows.followup is None else rows.censoring.is_known
    without, events = (z[available][y[available] == outcome] for outcome in (0.0, 1.0))
    tests = "CoxScore() and CoxLR() test such data all the same"
    if not (without.size and events.size):
        alike = int(events.size > 0)
        raise StatisticError(f"all outcomes are {alike}: the intercept is infinite. {tests}")
    if np.ptp(z[available]) <= 1e-12:
        raise StatisticError(f"all predictions are equal: there is no slope to estimate. {tests}")
    if without.max() <= events.min() or events.max() <= without.min():
        raise StatisticError(
            f"events and non-events are separated by the prediction: the slope is infinite. {tests}"
        )
    return z, y


def _of_sums(micro: Problem) -> Likelihood:
    """Return (log-odds, outcomes, multiplicities), (m,) each, with the likelihood of a tally.

    ``micro`` holds the sums of a tally over fine bins. Outcomes enter the likelihood by Σ y and Σ y
    z only, z the log-odds. In each bin both sums are matched by fractional outcomes that are linear
    in z. StatisticError where the estimates are infinite.
    """
    _logits_and_events(micro.expand()[0])
    probs, times = micro.quadrature
    z = logit_table(probs)[:, 0]
    design = np.column_stack([np.ones(z.size), z])
    sums = micro.residuals(micro.observed)[0].sum(), micro.linear("logit", logit_table).observed
    # Any outcomes with these two sums have the same likelihood: take those linear in z
    gap = design @ np.linalg.solve((design * times[:, None]).T @ design, sums)
    return z, probs[:, 0] + gap, times


def _tail(value: float, df: int, freedom: float) -> float:
    """Return the p-value of a test statistic ``value``, by a χ² law or by Hotelling's T².

    ``df`` are the degrees of freedom of the statistic. T² is used where ``freedom``, the degrees of
    freedom of the variance, is finite: with clusters or weights.
    """
    if np.isinf(freedom):
        return float(scipy.special.chdtrc(df, value))
    # Hotelling: T² (ν − p + 1) / (ν p) follows F(p, ν − p + 1)
    rest = max(freedom - df + 1.0, 1.0)
    return float(scipy.special.fdtrc(df, rest, value * rest / (freedom * df)))


def covariance_of(
    design: FloatArray,
    logits: FloatArray,
    events: FloatArray,
    w: FloatArray | None,
    source: RowsOrTally,
) -> FloatArray:
    """Return the covariance of d coefficients of a logistic regression, (d, d).

    It is the inverse information for independent rows, else a jackknife over clusters by one Newton
    step. ``design`` is (n, d); fitted ``logits``, ``events`` and weights ``w`` (or None) are (n,);
    ``source`` are the rows, or a tally, which know the clusters. O(n d²).
    """
    w = np.ones(source.n) if w is None else w
    # p (1 − p) as a product of two tails keeps its digits next to 1
    v = w * scipy.special.expit(logits) * scipy.special.expit(-logits)
    information = np.asarray((design * v[:, None]).T @ design, dtype=np.float64)
    if source.weights is None and source.n_clusters is None:
        return np.asarray(np.linalg.inv(information))
    d = design.shape[1]
    scores = design * (w * (events - scipy.special.expit(logits)))[:, None]
    products = (design[:, :, None] * design[:, None, :] * v[:, None, None]).reshape(-1, d * d)

    def without_each(unit: IntArray) -> FloatArray:
        rest = information - added(products, unit).reshape(-1, d, d)
        # One Newton step from the fit of all rows; without a unit the rest may have no slope
        changes = (np.linalg.pinv(rest, hermitian=True) @ added(scores, unit)[:, :, None])[:, :, 0]
        return np.asarray(changes.T @ changes * (1.0 - 1.0 / len(changes)))

    if source.crossed is not None:
        return joined(*map(without_each, columns_of(source)))
    return without_each(units_of(source))


def units_of(source: RowsOrTally) -> IntArray:
    """Return the number of the independent unit of every row of ``source``, integers (n,).

    A unit is the cluster of a row, or the row itself without clusters.
    """
    return np.arange(source.n) if source.clusters is None else by_appearance(source.clusters)


def _freedom(source: RowsOrTally) -> float:
    """Return degrees of freedom of a variance: the effective number of independent units less 1.

    Units are clusters, or rows without them, of ``source``, rows or a tally. It is infinite for
    independent rows of equal weight, and at least 1.
    """
    if source.weights is None and source.n_clusters is None:
        return np.inf
    if source.crossed is not None:
        return freedom_of(source)
    mass = np.bincount(units_of(source), source.weights).astype(np.float64)
    return float(max(mass.sum() ** 2 / (mass**2).sum() - 1.0, 1.0))


def _not_rejected(
    estimate: float, se: float, profile: Callable[[float], float], bound: float
) -> tuple[float, float]:
    """Return the interval (low, high) of values that a likelihood-ratio test does not reject.

    ``profile`` maps a parameter to its profile log-likelihood, maximal at ``estimate``; the limits
    are where it falls to ``bound``. ``se`` is the first step of the search, which is accurate to
    1e-10.
    """
    from scipy.optimize import brentq

    def distance(side: float) -> float:
        reach = se
        # The profile falls on either side: double the standard error until it is below, then refine
        while profile(estimate + side * reach) > bound:
            reach *= 2.0
        return brentq(lambda d: profile(estimate + side * d) - bound, 0.0, reach, xtol=1e-10)

    return estimate - distance(-1.0), estimate + distance(1.0)


# ------------------------------------------------------------------------------
# Cox's recalibration and O:E of risks with follow-up: estimates, and influence functions.


#: Effective share of the rows, (Σ W)² / (n Σ W²), below which intervals fail: 95 % covered in 72 %
#: to 93 % of data sets at a share of 0.2 to 0.25.
LEAST_SHARE = 0.3


Link = Literal["logit", "cloglog"]


#: Intercept and slope, their covariance, and the intercept given slope 1 with its error.
Fits = tuple[FloatArray, FloatArray, tuple[float, float]]


def _inverse_link(eta: FloatArray, link: Link) -> tuple[FloatArray, FloatArray]:
    """Return (μ, dμ/dη): probabilities and their derivatives by the linear predictor.

    ``eta`` is η, and both results have its shape. ``link`` is "logit", or "cloglog", which models
    hazards: μ = 1 − exp(−exp η).
    """
    if link == "logit":
        mu = scipy.special.expit(eta)
        return mu, mu * scipy.special.expit(-eta)
    # e^{710} overflows, and the risk is 1 long before
    hazard = np.exp(np.minimum(eta, 700.0))
    return -np.expm1(-hazard), hazard * np.exp(-hazard)


def _fit(
    design: FloatArray, z: FloatArray, link: Link, events: FloatArray, censoring: Censoring
) -> tuple[FloatArray, FloatArray]:
    """Fit link P(Y = 1) = z + X β to censored rows; return (β, covariance), (d,) and (d, d).

    ``design`` X is (n, d), ``z`` (n,) the offset and ``events`` (n,) the outcomes Y, 0 where
    unknown. The score equation is weighted by the inverse probability W of a known outcome: Σ W (Y
    − μ) μ′ / (μ (1 − μ)) X = 0. The covariance A⁻¹ Σ IF IF′ A⁻¹, with A the information matrix and
    IF the influence of a row on the score, includes the estimation of the weights. O(n) per Newton
    step. ``censoring`` has the weights W of the rows and their influence; ``link`` is "logit" or
    "cloglog".
    """
    beta, w = np.zeros(design.shape[1]), censoring.weights
    for _ in range(100):
        mu, slope = _inverse_link(z + design @ beta, link)
        ratio = slope / np.maximum(mu * (1.0 - mu), 1e-300)
        scores = (w * ratio * (events - mu))[:, None] * design
        information = (design * (w * slope * ratio)[:, None]).T @ design
        step = np.linalg.solve(information, scores.sum(axis=0))
        # Full steps overshoot where fitted probabilities are nearly 0 or 1
        beta = beta + np.clip(step, -2.0, 2.0)
        if np.abs(step).max() < 1e-12:
            break
    inverse = np.linalg.inv(information)
    # Weights are estimated: influence functions have what that adds to each score
    parts = np.column_stack([censoring.influence(column) for column in scores.T])
    return beta, inverse @ (parts.T @ parts) @ inverse


def followed_fits(rows: Predictions, share: float, link: Link) -> tuple[Fits, tuple[float, float]]:
    """Return (fits, (O:E, standard error of its logarithm)) of Cox's line for risks with follow-up.

    ``fits`` is ((intercept, slope) as an array, their covariance (2, 2), (calibration-in-the-large,
    its standard error)). ``rows`` have censored outcomes. Each known outcome Y counts with W, the
    inverse probability that it is known, so that O:E is Σ W Y / Σ p. The error of log O:E allows
    for the scatter of W Y about its mean in every stratum; predictions p are taken as fixed.
    ``link`` is "logit" or "cloglog". ``share`` is the effective share of rows with known outcomes;
    StatisticError if it is below 0.3.
    """
    if share < LEAST_SHARE:
        raise StatisticError(
            f"the effective share of the rows is {share:.2f}, below {LEAST_SHARE:g}, where "
            "intervals cover too seldom: take an earlier horizon"
        )
    censoring, events = rows.censoring, (rows.labels == 0).astype(np.float64)
    p = np.clip(rows.probs[:, 0], PROBABILITY_CLIP, 1.0 - PROBABILITY_CLIP)
    z = np.log(p) - np.log1p(-p) if link == "logit" else np.log(-np.log1p(-p))
    one = np.ones((z.size, 1))
    coefficients, covariance = _fit(np.column_stack([one, z]), z, link, events, censoring)
    (shift,), variance = _fit(one, z, link, events, censoring)
    w, groups = censoring.weights, censoring.groups
    rates = np.bincount(groups, w * events) / np.bincount(groups, w)
    observed, parts = float(w @ events), censoring.influence(w * (events - rates[groups]))
    ratio = observed / float(rows.probs[:, 0].sum()), float(np.sqrt(parts @ parts)) / observed
    offset = float(shift), float(np.sqrt(variance[0, 0]))
    return (coefficients + np.array([0.0, 1.0]), covariance, offset), ratio


# ------------------------------------------------------------------------------
# Random-effects meta-analysis of calibration over sites.
#
# :func:`meta_analysis` estimates mean, spread and a prediction interval of O:E,
# calibration-in-the-large and slope over sites by restricted likelihood, and pools calibration
# curves.


#: Of how many predictions a curve consists.
POINTS = 50


#: Larger coefficients of a spline mean that outcomes are separated: log-odds without a limit.
SEPARATED = 50.0


def meta_analysis(
    probs: object,
    labels: object = None,
    *,
    lens: LensLike | None = None,
    level: float = 0.95,
    curve: bool = False,
    **facts: Unpack[Facts],
) -> MetaAnalysis:
    """Estimate how calibration varies over sites, such as hospitals, and predict it for a new site.

    At every site: the ratio of observed to expected events, calibration-in-the-large, and the
    calibration slope, as in :func:`cox_recalibration`. The true values of sites are taken for
    normal, θ_s ~ N(μ, τ²), and their estimates for normal with known errors, t_s ~ N(θ_s, v_s).

    Parameters
    ----------
    probs, labels, lens, **facts
        As in :func:`calibration_test`, for a lens with two classes; ``by`` names the site of each
        row. Clusters are within sites.
    level : float, default 0.95
        Level of the confidence and prediction intervals.
    curve : bool, default False
        Whether to pool calibration curves as well: a restricted cubic spline at every site, pooled
        at each of 50 predictions by the same method, where at least three sites have predictions.

    Raises
    ------
    StatisticError
        Without ``by``, where a row is at two sites, and with fewer than two sites that have finite
        estimates, five that have a curve; for more than two classes.

    Notes
    -----
    τ² maximises the restricted likelihood. With w_s = 1 / (v_s + τ²), μ is estimated by
    m = Σ w_s t_s / Σ w_s, with the squared error q / Σ w_s, q = Σ w_s (t_s − m)² / (k − 1), which
    makes t with k − 1 degrees of freedom the law to refer to (Hartung & Knapp 2001); q counts as
    at least 1 (Knapp & Hartung 2003). The prediction interval is m ± t √(τ² + its squared error).
    The standard error of log O:E is computed given the predictions, recalibrated in the large. O(n)
    per Newton step. Sites with few events are biased: fewer than about ten say little about a
    slope.

    References
    ----------
    Barreñada et al., "Calibration curves of clustered data" (2025), 2MA-C. Debray et al.,
    "TRIPOD-Cluster", BMJ 380 (2023). Hartung & Knapp, Statistics in Medicine 20
    (2001). Knapp & Hartung, Statistics in Medicine 22 (2003). Viechtbauer, Journal of Educational
    and Behavioral Statistics 30 (2005).

    Examples
    --------
    >>> rng = np.random.default_rng(1)
    >>> site, p = rng.integers(0, 6, 1200), rng.random(1200)
    >>> y = rng.random(1200) < np.clip(p + 0.05 * (site - 2.5), 0, 1)
    >>> answer = meta_analysis(p, y, by=site)
    >>> round(answer.intercept.mean, 2), round(answer.intercept.tau, 2)
    (0.09, 0.53)
    """
    fraction("level", level)
    analysis = Analysis.of("meta_analysis", probs, labels, facts, lens=lens)
    data, through, groups = analysis.rows, analysis.lens, analysis.rows.subgroups()
    if not groups:
        raise StatisticError("meta_analysis needs by=, the site of each row")
    if sum(map(len, groups.values())) > np.unique(np.concatenate(list(groups.values()))).size:
        raise StatisticError("by puts a row at two sites: give one column, the site of each row")
    if data.clusters is not None:
        parts = [np.unique(data.clusters[rows]).size for rows in groups.values()]
        if sum(parts) > np.unique(data.clusters).size:
            raise StatisticError("a cluster has rows at two sites, which are then not independent")
    notes, fits, induced = [], {}, {}
    for name, rows in groups.items():
        part = replace(data.take(rows), by=None, notes=())
        try:
            fit = cox_recalibration(part, lens=through)
        except StatisticError as error:
            notes.append(f"site {name} is left out: {error}")
            continue
        level_of = fit.in_the_large, fit.in_the_large_se
        induced[name] = through(part)
        ratio = log_ratio(induced[name], *level_of)
        fits[name] = (fit.n, fit.events, ratio, level_of, (fit.slope, fit.slope_se))
    if len(fits) < 2:
        raise StatisticError(": ".join(["fewer than two sites have finite estimates", *notes[-1:]]))
    counts, events, *measures = zip(*fits.values(), strict=True)
    log_oe, intercept, slope = (
        pooled_sites(np.array(values).T, level, calibrated)
        for values, calibrated in zip(measures, (0.0, 0.0, 1.0), strict=True)
    )
    mean_curve = _mean_curve(induced, level, notes) if curve else None
    return analysis.result(
        MetaAnalysis, curve=mean_curve, sites=tuple(fits), counts=counts, events=events,
        log_oe=log_oe, intercept=intercept, slope=slope, level=level, n=sum(counts), notes=notes,
    )  # fmt: skip


def log_ratio(rows: Predictions, intercept: float, error: float) -> tuple[float, float]:
    """Return (log O:E, its standard error) of a site, O:E being observed / expected events.

    ``rows`` are the predictions and outcomes of the site. The error is derived from ``error``, the
    standard error of calibration-in-the-large, whose estimate is ``intercept``.
    """
    w = np.ones(rows.n) if rows.weights is None else rows.weights
    fitted = expit(log_odds(rows) + intercept)
    observed, slope = float(w @ (rows.labels == 0)), float(w @ (fitted * (1.0 - fitted)))
    return float(np.log(observed / (w @ rows.probs[:, 0]))), error * slope / observed


def _mean_curve(sites: Mapping[str, Predictions], level: float, notes: list[str]) -> CentreCurve:
    """Return the mean calibration curve over sites, where at least three sites have predictions.

    ``sites`` has the rows of each site by name, behind the lens; ``level`` is the level of
    confidence and prediction intervals. Notes on sites without a curve are appended to the list
    ``notes``. StatisticError for fewer than five curves.
    """
    z, curves, without = centre_curves(sites)
    notes += without
    if len(curves) < 5:
        raise StatisticError(
            f"curve=True needs 5 sites that have a curve, and there are {len(curves)}: "
            + ("; ".join(notes) or "pool their measures without curve=True")
        )
    if len(curves) < 20:
        notes.append(
            "prediction intervals of curves are short with fewer than 20 sites: where 95 % was "
            "wanted they held a new site in 86 to 94 % of simulated data"
        )
    values = np.array([*curves.values()])  # (sites, 2, points)
    counts = np.isfinite(values[:, 0]).sum(axis=0)
    enough = counts >= 3
    z, values, counts = z[enough], values[:, :, enough], counts[enough]
    effects = [pooled_sites(v[np.isfinite(v[:, 0])].T, level) for v in np.moveaxis(values, 2, 0)]
    return CentreCurve(
        at=expit(z),
        mean=expit([effect.mean for effect in effects]),
        interval=expit([effect.interval for effect in effects]),
        prediction=expit([effect.prediction for effect in effects]),
        tau=np.array([effect.tau for effect in effects]),
        counts=counts,
        sites=tuple(curves),
        curves=expit(values[:, 0]),
    )


def centre_curves(
    sites: Mapping[str, Predictions],
) -> tuple[FloatArray, dict[str, FloatArray], list[str]]:
    """Return (log-odds (50,), curves by site, notes): the calibration curve of every site.

    ``sites`` has the predictions and outcomes of each site by name. A curve (2, 50) holds fitted
    log-odds and their standard errors, NaN where its site has no predictions. It is a logistic
    regression on a :func:`restricted_spline` of z = logit p with knots at the .1, .5 and .9
    quantiles of the site's predictions. The common log-odds are equally spaced between the .05 and
    .95 quantiles of all predictions. Notes (sentences) name sites without a curve.
    """
    logits = {name: log_odds(induced) for name, induced in sites.items()}
    low, high = np.quantile(np.concatenate([*logits.values()]), (0.05, 0.95))
    at = np.linspace(low, high, POINTS)
    fits = {name: centre_curve(induced, logits[name], at) for name, induced in sites.items()}
    notes = [
        f"site {name} has no curve: a spline separates its outcomes, or it has few predictions"
        for name, fit in fits.items()
        if fit is None
    ]
    return at, {name: fit for name, fit in fits.items() if fit is not None}, notes


def restricted_spline(z: FloatArray, knots: FloatArray) -> FloatArray:
    """Return the columns 1, z and a cubic spline term that is linear beyond three knots, (n, 3).

    ``z`` (n,) are values and ``knots`` the increasing (k₁, k₂, k₃). The term is [(z − k₁)³₊ − (z −
    k₂)³₊ (k₃ − k₁)/(k₃ − k₂) + (z − k₃)³₊ (k₂ − k₁)/(k₃ − k₂)] / (k₃ − k₁)² (Harrell, Regression
    Modeling Strategies, section 2.4).
    """
    first, second, third = knots
    cubes = [np.maximum(z - knot, 0.0) ** 3 for knot in knots]
    bent = cubes[0] - cubes[1] * (third - first) / (third - second)
    bent += cubes[2] * (second - first) / (third - second)
    return np.column_stack([np.ones_like(z), z, bent / (third - first) ** 2])


def centre_curve(induced: Predictions, z: FloatArray, at: FloatArray) -> FloatArray | None:
    """Return fitted log-odds of a site's curve and their standard errors at m points, (2, m).

    ``induced`` are the site's predictions and outcomes, ``z`` (n,) the log-odds of the predictions.
    Both are NaN at points of ``at`` (m,), log-odds, beyond them. None without a finite fit, or with
    too few different predictions.
    """
    knots = np.quantile(z, (0.1, 0.5, 0.9))
    if np.diff(knots).min() <= 1e-9:
        return None
    design, basis = restricted_spline(z, knots), restricted_spline(at, knots)
    events = (induced.labels == 0).astype(np.float64)
    beta = fit_logistic(design, np.zeros(induced.n), events, induced.weights)[1]
    if np.abs(beta).max() > SEPARATED:
        return None
    covariance = covariance_of(design, design @ beta, events, induced.weights, induced)
    errors = np.sqrt(np.einsum("gi,ij,gj->g", basis, covariance, basis))
    # A line beyond the last knots says nothing of predictions that a site does not have
    outside = (at < z.min()) | (at > z.max())
    return np.where(outside, np.nan, [basis @ beta, errors])


def pooled_sites(estimates: FloatArray, level: float, calibrated: float = 0.0) -> PooledEffect:
    """Return the random-effects estimate of mean and spread of true effects over k sites.

    ``estimates`` (2, k) are estimates and standard errors, ``calibrated`` the value under
    calibration, against which the p-value tests. The result has the mean with its interval at
    ``level``, a prediction interval for another site, and the spread τ, by restricted likelihood.
    The interval is by Knapp & Hartung (2003).
    """
    from scipy.special import chdtrc, stdtr, stdtrit

    values, errors = estimates
    k, exact = values.size, 1.0 / errors**2
    tau2 = _reml(values, errors**2)
    w = 1.0 / (errors**2 + tau2)
    mean = float(w @ values / w.sum())
    # Below 1 sites agree by luck, which must not shorten the interval (Knapp & Hartung 2003)
    stretch = max(1.0, float(w @ (values - mean) ** 2) / (k - 1))
    se = float(np.sqrt(stretch / w.sum()))
    t, wide = float(stdtrit(k - 1, 0.5 + level / 2.0)), float(np.sqrt(tau2 + se**2))
    q = float(exact @ (values - exact @ values / exact.sum()) ** 2)
    # Higgins & Thompson (2002): the share of τ² in the variance of a typical site
    typical = (k - 1) * exact.sum() / (exact.sum() ** 2 - (exact**2).sum())
    return PooledEffect(
        values=tuple(values.tolist()),
        errors=tuple(errors.tolist()),
        mean=mean,
        mean_se=se,
        interval=(mean - t * se, mean + t * se),
        prediction=(mean - t * wide, mean + t * wide),
        tau=float(np.sqrt(tau2)),
        i_squared=float(tau2 / (tau2 + typical)),
        pvalue=float(2.0 * stdtr(k - 1, -abs(mean - calibrated) / se)),
        q=q,
        q_pvalue=float(chdtrc(k - 1, q)),
    )


def _reml(values: FloatArray, variances: FloatArray) -> float:
    """Return the between-site variance τ² ≥ 0 that maximises the restricted likelihood.

    ``values`` and ``variances`` (k,) are the estimates of k sites with their squared errors.
    """
    from scipy.optimize import brentq

    def likelihood(tau2: float, slope: bool = False) -> float:
        w = 1.0 / (variances + tau2)
        squares = (values - w @ values / w.sum()) ** 2
        if slope:
            return float(w**2 @ squares - w.sum() + (w @ w) / w.sum())
        return float(np.log(w).sum() - np.log(w.sum()) - w @ squares)

    # The likelihood falls from there on: τ² is hardly larger than the spread of the estimates
    most = 10.0 * float(np.ptp(values) ** 2 + variances.max())
    grid = np.append(0.0, np.geomspace(1e-9 * most, most, 200))
    # The restricted likelihood may have two maxima: a grid finds the larger one
    best = int(np.argmax([likelihood(tau2) for tau2 in grid]))
    low, high = grid[max(best - 1, 0)], grid[min(best + 1, 200)]
    if likelihood(low, slope=True) <= 0.0:
        return float(low)
    return float(brentq(likelihood, low, high, args=(True,), xtol=1e-14 * most, rtol=1e-14))
