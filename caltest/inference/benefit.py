"""In the user's units: what acting on the probabilities promises and gains, and decision curves.

:func:`promise` compares the utility gained with the utility that the probabilities promise, with an
exact p-value where utilities lie on a grid; :func:`decision_curve` has net benefit at every
threshold with pointwise and simultaneous limits.
"""

from __future__ import annotations

from typing import Unpack

import numpy as np
from numpy.typing import ArrayLike

from caltest._base.arrays import N_RESAMPLES, RNG, BoolArray, FloatArray, IntArray, fraction
from caltest._base.written import name_of, several
from caltest.data import Facts, Predictions
from caltest.data.lenses import Canonical
from caltest.data.utilities import Costs, Threshold, Utility, UtilityLike, UtilityTable
from caltest.errors import InvalidPredictionsError, StatisticError
from caltest.inference._input import Analysis, seed_of
from caltest.nulls.laws import poisson_binomial
from caltest.results import DecisionCurve, PromiseResult

#: Steps of the largest utility that are tried as a common grid, and points of an exact law: direct
#: convolution of as many takes about a second.
GRID_STEPS, LATTICE_POINTS = 2000, 50_000

#: Pseudo-observations at each end of the range of the utility: of one model, and of a difference.
PSEUDO_ROWS, PSEUDO_ROWS_OF_A_DIFFERENCE = 1.0, 0.25

#: Normal draws for the critical value of simultaneous limits.
NORMAL_DRAWS = 4000

#: Utility sums that differ by less than this part of the largest are equal.
TIED_SUMS = 1e-9

#: Labels that are drawn at once where there is no exact law.
DRAWN_UTILITIES = 2**20


def promise(
    probs: object,
    labels: object = None,
    utility: UtilityLike | None = None,
    *,
    level: float = 0.95,
    n_resamples: int = N_RESAMPLES,
    rng: RNG = None,
    **facts: Unpack[Facts],
) -> PromiseResult:
    """Compare the utility that the probabilities promise with the utility that was gained.

    A user who acts on probabilities p_i gains u(p_i, y_i). If the model is calibrated, the expected
    sum is Σ_i v_i with v_i = Σ_k p_ik u(p_i, k). The p-value is two-sided, by the distance of
    Σ (u_i − v_i) from 0. It is exact, by convolution of the n laws, wherever the utilities of each
    row lie on a common grid: always for a threshold, and for costs with a few digits. Otherwise
    labels are redrawn.

    Parameters
    ----------
    probs, labels, **facts
        As in :func:`calibration_test`; the whole probability vector is looked at. Weights, clusters
        and other design information are refused.
    utility : Utility or callable
        :class:`Costs`, ``Costs.threshold(t)``, :class:`TopKAccuracy`, :class:`ReciprocalRank`, or
        a function from probabilities (n, K) to utilities (n, K).
    level : float, default 0.95
        Level of the interval of the realised utility. It is Student's, with one pseudo-observation
        at each end of the range of the utility: without them it covers as little as 13 % where
        events are rare and one acts rarely.
    n_resamples, rng
        Label redraws where there is no exact law, and their seed.

    Returns
    -------
    PromiseResult

    Raises
    ------
    InvalidPredictionsError
        As in :meth:`Predictions.of`.
    StatisticError
        For no utility or one that is no finite table of shape (n, K), and for design information.

    Notes
    -----
    O(n K) and, for the exact law, O(n G log n) with G steps of the grid in a row.

    Examples
    --------
    >>> import caltest as ct
    >>> result = promise([0.9, 0.2, 0.4, 0.7], [1, 0, 1, 0], ct.Costs([[0, 4], [1, 1]]))
    >>> result.promised, result.realised, round(result.pvalue, 3)
    (-0.95, -0.75, 1.0)
    """
    fraction("level", level)
    if utility is None:
        raise StatisticError(
            "promise needs a utility, such as Costs([[0, 4], [1, 1]]) or Costs.threshold(0.2)"
        )
    analysis = Analysis.of("promise", probs, labels, facts, lens=Canonical(), rng=rng)
    data = analysis.rows
    table = UtilityTable.of(utility, data.probs)
    realised = table.gains[np.arange(data.n), data.labels]
    distance = float(abs((realised - table.promised).sum()))
    deviation = float(np.sqrt(table.variance.sum()))
    pvalue = _exact_pvalue(data.probs, table, distance)
    exact = pvalue is not None
    if pvalue is None:
        pvalue = _redrawn_pvalue(data, table, distance, n_resamples, rng)
    difference = float((realised - table.promised).mean())
    known = utility.ends if isinstance(utility, Utility) else (np.inf, -np.inf)
    ends = min(known[0], table.gains.min()), max(known[1], table.gains.max())
    low, high = _student_limits(realised, *ends, PSEUDO_ROWS, level)
    actions, shares = _actions(utility, data.probs)
    impossible = int(np.count_nonzero(data.probs[np.arange(data.n), data.labels] == 0.0))
    notes = [
        f"{several(impossible, 'outcome')} had probability 0: a single one refutes calibration, "
        "whatever the total gained"
    ] * (impossible > 0)
    return analysis.result(
        PromiseResult,
        utility=name_of(utility),
        promised=float(table.promised.mean()),
        realised=float(realised.mean()),
        difference=difference,
        z=data.n * difference / deviation if deviation > 0.0 else 0.0,
        pvalue=pvalue,
        exact=exact,
        low=low,
        high=high,
        level=level,
        actions=actions,
        shares=shares,
        n_resamples=0 if exact else n_resamples,
        notes=notes,
    )


def decision_curve(
    probs: object,
    labels: object = None,
    thresholds: ArrayLike | None = None,
    *,
    against: object = None,
    against_name: str = "the other model",
    level: float = 0.95,
    rng: RNG = 0,
    **facts: Unpack[Facts],
) -> DecisionCurve:
    """Compute the net benefit of acting on a model at each threshold, with confidence limits.

    At threshold t one acts where the probability of the event is at least t. The net benefit is
    (TP − FP t/(1 − t)) / n, in true positives per observation (Vickers & Elkin, Medical Decision
    Making 26, 2006). Limits are Student's, with one pseudo-observation that is a treated event and
    one that is a treated non-event; a difference of two models has a quarter observation at each
    end of its range. Simultaneous limits take the quantile of the largest deviation over all
    thresholds, from normal draws with the covariance of the curve.

    Parameters
    ----------
    probs, labels, **facts
        As in :func:`calibration_test`, for two classes. Design information is refused.
    thresholds : array_like, optional
        Thresholds in (0, 1), ascending; by default 0.01, 0.02, …, 0.99.
    against : array_like, optional
        Probabilities of another model for the same observations.
    against_name : str
        What the other model is called.
    level : float, default 0.95
        Level of all limits.
    rng : int or Generator, default 0
        Seed of the normal draws of the critical value.

    Returns
    -------
    DecisionCurve

    Raises
    ------
    InvalidPredictionsError
        As in :meth:`Predictions.of`, and for another model with other observations.
    StatisticError
        For more than two classes, thresholds outside (0, 1) or not ascending.

    Notes
    -----
    O(n T + T³), T the number of thresholds. Net benefit uses the probabilities as decisions do, and
    not only their order: a miscalibrated model can be worse than treating nobody.

    Examples
    --------
    >>> curve = decision_curve([0.9, 0.2, 0.4, 0.7], [1, 0, 1, 0], [0.25, 0.5])
    >>> curve.net_benefit.round(4).tolist()
    [0.4167, 0.0]
    """
    fraction("level", level)
    t = _as_thresholds(thresholds)
    analysis = Analysis.of("decision_curve", probs, labels, facts, lens=Canonical())
    data = analysis.rows
    gains, p = _gains(data, t), data.probs[:, 1]
    odds = t / (1.0 - t)
    ends = np.stack([np.ones_like(odds), -odds])
    mean, error, critical, point = _band_of_means(gains, ends, PSEUDO_ROWS, level, rng)
    always = np.where(data.labels[:, None] == 1, 1.0, -odds)
    useful = t[_shown_useful(gains, gains - always, odds, level, rng)]
    acts = p[:, None] >= t
    promised = (acts * (p[:, None] - (1.0 - p[:, None]) * odds)).mean(axis=0)
    events = acts[data.labels == 1].sum(axis=0)
    pvalues = [
        _two_sided(p[acts[:, j]], int(events[j])) if acts[:, j].any() else 1.0
        for j in range(t.size)
    ]
    prevalence = float((data.labels == 1).mean())
    other = difference = low = high = np.empty(0)
    if against is not None:
        second = Analysis.of("decision_curve", against, data.labels, {}, lens=Canonical())
        if second.rows.n != data.n:
            raise InvalidPredictionsError(
                f"against= has {second.rows.n} observations, the model {data.n}: pass both models' "
                "probabilities for the same observations in the same order"
            )
        gains_of_other = _gains(second.rows, t)
        other = gains_of_other.mean(axis=0)
        difference = (gains - gains_of_other).mean(axis=0)
        reach = np.maximum(1.0, odds)
        centre, spread, wide, _ = _band_of_means(
            gains - gains_of_other,
            np.stack([reach, -reach]),
            PSEUDO_ROWS_OF_A_DIFFERENCE,
            level,
            rng,
        )
        low, high = centre - wide * spread, centre + wide * spread
    return analysis.result(
        DecisionCurve,
        thresholds=t,
        net_benefit=gains.mean(axis=0),
        low=mean - point * error,
        high=mean + point * error,
        low_all=mean - critical * error,
        high_all=mean + critical * error,
        promised=promised,
        treat_all=prevalence - (1.0 - prevalence) * odds,
        pvalues=np.array(pvalues),
        critical=critical,
        useful=useful,
        level=level,
        against=against_name if against is not None else "",
        other=other,
        difference=difference,
        difference_low=low,
        difference_high=high,
        seed=seed_of(rng),
    )


def _exact_pvalue(probs: FloatArray, table: UtilityTable, distance: float) -> float | None:
    """Return the exact two-sided p-value of the utility gained, or None.

    It is P(|Σ (u − v)| ≥ ``distance``) for labels drawn from ``probs`` (n, K), with u the utility
    gained and v the one promised. None if utilities are not multiples of a common step.
    """
    lowest = table.gains.min(axis=1, keepdims=True)
    above = table.gains - lowest
    step = _grid_of(above)
    if step is None:
        return 1.0  # no label changes the utility
    if step == 0.0:
        return None
    steps = np.rint(above / step).astype(np.int64)
    first, lost = 0, 0.0
    if steps.max() == 1:  # two utilities a row, as for a threshold
        first, law, lost = poisson_binomial((probs * steps).sum(axis=1))
    elif steps.max(axis=1).sum() <= LATTICE_POINTS:
        law = _lattice_law(probs, steps)
    else:
        return None
    offset = float(lowest.sum() - table.promised.sum())
    sums = (first + np.arange(law.size)) * step + offset
    tied = TIED_SUMS * max(1.0, float(np.abs(table.gains).max()))
    pvalue = float(law[np.abs(sums) >= distance - tied].sum()) + lost
    return min(1.0, max(pvalue, np.finfo(float).tiny))  # outcomes of probability 0 are possible


def _grid_of(above: FloatArray) -> float | None:
    """Return the common step of all differences in ``above``: 0.0 if there is none.

    None if all differences are 0, so that no label changes the utility.
    """
    values = np.unique(np.round(above, 12))
    values = values[values > 0.0]
    if not values.size:
        return None
    if values.size > GRID_STEPS:
        return 0.0
    for parts in range(1, GRID_STEPS + 1):
        multiples = values * (parts / values[0])
        if np.abs(multiples - np.rint(multiples)).max() < 1e-7:
            return float(values[0] / parts)
    return 0.0


def _lattice_law(probs: FloatArray, steps: IntArray) -> FloatArray:
    """Return the law of Σ_i steps[i, y_i] with y_i ~ probs[i], shape (total + 1,).

    Laws are convolved in pairs, without a Fourier transform, so that tails keep their digits.
    """
    laws = []
    for p, s in zip(probs, steps, strict=True):
        law = np.zeros(int(s.max()) + 1)
        np.add.at(law, s, p)
        laws.append(law)
    while len(laws) > 1:
        pairs = [np.convolve(a, b) for a, b in zip(laws[::2], laws[1::2], strict=False)]
        laws = pairs + ([laws[-1]] if len(laws) % 2 else [])
    return laws[0]


def _redrawn_pvalue(
    data: Predictions, table: UtilityTable, distance: float, n_resamples: int, rng: RNG
) -> float:
    """Return (1 + b) / (1 + B) from sums of utilities of redrawn labels.

    ``distance`` is the observed |Σ (u − v)|; b counts redraws that reach it, ties up to rounding
    included. O(B n K).
    """
    generator = np.random.default_rng(rng)
    upper = data.probs.cumsum(axis=1)
    upper[:, -1] = 1.0
    centred = table.gains - table.promised[:, None]
    tied = TIED_SUMS * max(1.0, float(np.abs(table.gains).max()))
    reached, left = 0, n_resamples
    while left:
        count = min(left, max(1, DRAWN_UTILITIES // data.probs.size))
        uniform = generator.random((count, data.n, 1))
        labels = (uniform > upper[:, :-1]).sum(axis=2)
        sums = centred[np.arange(data.n), labels].sum(axis=1)
        reached += int((np.abs(sums) >= distance - tied).sum())
        left -= count
    return (1.0 + reached) / (1.0 + n_resamples)


def _student_limits(
    gains: FloatArray, least: float, most: float, pseudo: float, level: float
) -> tuple[float, float]:
    """Return Student's limits (low, high) of a mean, with pseudo-observations at both ends.

    ``gains`` (n,) are gains of the rows between ``least`` and ``most``; ``pseudo`` is the weight of
    a pseudo-observation at each.
    """
    ends = np.array([[least], [most]])
    mean, error, _, point = _moments(gains[:, None], ends, pseudo, level)
    return float(mean[0] - point * error[0]), float(mean[0] + point * error[0])


def _moments(
    gains: FloatArray, ends: FloatArray, pseudo: float, level: float
) -> tuple[FloatArray, FloatArray, FloatArray, float]:
    """Return (means (T,), standard errors (T,), covariance (T, T), quantile of Student's law).

    ``gains`` is (n, T), and ``ends`` (2, T) are two pseudo-observations that count ``pseudo`` times
    each.
    """
    from scipy.stats import t as student

    n = len(gains) + 2.0 * pseudo
    mean = (gains.sum(axis=0) + pseudo * ends.sum(axis=0)) / n
    away, far = gains - mean, ends - mean
    covariance = (away.T @ away + pseudo * far.T @ far) / (n - 1.0)
    error = np.sqrt(np.diag(covariance) / n)
    return mean, error, covariance, float(student.ppf(0.5 + 0.5 * level, n - 1.0))


def _band_of_means(
    gains: FloatArray, ends: FloatArray, pseudo: float, level: float, rng: RNG
) -> tuple[FloatArray, FloatArray, float, float]:
    """Return means (T,), standard errors (T,), and simultaneous and pointwise critical values.

    ``gains`` (n, T) at T thresholds, ``ends`` (2, T) their range, ``pseudo`` the weight of a
    pseudo-observation at each end. The simultaneous value comes from draws of the normal limit.
    """
    from scipy.stats import norm
    from scipy.stats import t as student

    mean, error, covariance, point = _moments(gains, ends, pseudo, level)
    deviation = np.sqrt(np.diag(covariance))
    scale = np.where(deviation > 0.0, deviation, 1.0)
    values, vectors = np.linalg.eigh(covariance / np.outer(scale, scale))
    normal = np.random.default_rng(rng).standard_normal((NORMAL_DRAWS, deviation.size))
    curves = (normal * np.sqrt(np.maximum(values, 0.0))) @ vectors.T
    largest = float(np.quantile(np.abs(curves).max(axis=1), level))
    freedom = len(gains) + 2.0 * pseudo - 1.0
    return mean, error, float(student.ppf(norm.cdf(largest), freedom)), point


def _shown_useful(
    gains: FloatArray, over_always: FloatArray, odds: FloatArray, level: float, rng: RNG
) -> BoolArray:
    """Mark thresholds at which acting on the model is better than never and than always, (T,).

    The lower limits of both curves hold together, at all thresholds.
    """
    reach = np.maximum(1.0, odds)
    ends = np.stack([np.append(np.ones_like(odds), reach), np.append(-odds, -reach)])
    both = np.hstack([gains, over_always])
    mean, error, critical, _ = _band_of_means(both, ends, PSEUDO_ROWS, level, rng)
    return np.asarray((mean - critical * error > 0.0).reshape(2, -1).all(axis=0))


def _gains(data: Predictions, thresholds: FloatArray) -> FloatArray:
    """Return the net benefit of each observation at each threshold, shape (n, T).

    It is 1 for a true positive, −t / (1 − t) for a false positive at threshold t, and 0 without
    action.
    """
    if data.n_classes != 2:
        raise StatisticError(
            f"a decision curve is for two classes, not {data.n_classes}: pass the probability of "
            "the event"
        )
    acts = data.probs[:, 1, None] >= thresholds
    gain = np.where(data.labels[:, None] == 1, 1.0, -thresholds / (1.0 - thresholds))
    return np.asarray(acts * gain)


def _as_thresholds(thresholds: ArrayLike | None) -> FloatArray:
    if thresholds is None:
        return np.arange(1, 100) / 100.0
    t = np.atleast_1d(np.asarray(thresholds, dtype=np.float64))
    if t.ndim != 1 or not t.size or not ((t > 0.0) & (t < 1.0)).all():
        raise StatisticError("thresholds must be probabilities in (0, 1), ascending")
    if (np.diff(t) <= 0.0).any():
        raise StatisticError("thresholds must ascend: sort them, and name each once")
    return t


def _two_sided(p: FloatArray, events: int) -> float:
    """Return P(|N − E N| ≥ |events − E N|), N the number of events.

    N is a sum of independent events with probabilities ``p`` (n,).
    """
    first, law, lost = poisson_binomial(p)
    counts = first + np.arange(law.size)
    mean = float(p.sum())
    reached = np.abs(counts - mean) >= abs(events - mean) - TIED_SUMS * max(1.0, mean)
    return min(1.0, float(law[reached].sum()) + lost)


def _actions(utility: UtilityLike, probs: FloatArray) -> tuple[tuple[str, ...], tuple[float, ...]]:
    """Return (names, shares) of the actions of a utility, two tuples of the same length.

    A share is the fraction of observations in which the action is taken. Both are () for a utility
    without actions.
    """
    if isinstance(utility, Threshold):
        taken = utility.action(probs)
        names: tuple[str, ...] = ("do not act", "act")
    elif isinstance(utility, Costs):
        taken, count = utility.action(probs), len(np.asarray(utility.matrix))
        names = utility.actions or tuple(f"action {a}" for a in range(count))
    else:
        return (), ()
    shares = np.bincount(taken, minlength=len(names)) / len(probs)
    return names, tuple(float(s) for s in shares)
