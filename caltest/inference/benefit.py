"""In the user's units: what acting on the probabilities promises and gains, and decision curves.

:func:`promise` compares the utility gained with the utility that the probabilities promise, with an
exact p-value where utilities lie on a grid; :func:`decision_curve` has net benefit at every
threshold with pointwise and simultaneous limits. With clusters, labels are redrawn with their
dependence, and limits rest on sums over clusters.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Self, Unpack

import numpy as np
from numpy.typing import ArrayLike

from caltest._base.arrays import (
    N_RESAMPLES,
    RNG,
    BoolArray,
    FloatArray,
    IntArray,
    fraction,
    reaching,
)
from caltest._base.written import name_of, several
from caltest.data import Facts, Predictions
from caltest.data.facts import by_appearance
from caltest.data.lenses import Canonical
from caltest.data.utilities import Costs, Threshold, Utility, UtilityLike, UtilityTable
from caltest.errors import InvalidPredictionsError, StatisticError
from caltest.inference._input import Analysis, seed_of
from caltest.inference.dependence import Coupled, agreeing_schemes
from caltest.nulls import RedrawLabels, Run, simulate_by
from caltest.nulls.laws import poisson_binomial
from caltest.results import ClusterSummary, DecisionCurve, HorizonSummary, PromiseResult, ending
from caltest.statistics.cumulative import PromisedSum, ThresholdSums

#: Steps of the largest utility that are tried as a common grid, and points of an exact law: direct
#: convolution of as many takes about a second.
GRID_STEPS, LATTICE_POINTS = 2000, 50_000

#: Pseudo-observations at each end of the range of the utility: of one model, and of a difference.
#: With clusters they are whole clusters of the effective size, as all rows of one may agree.
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
    labels are redrawn. With clusters labels are redrawn as in :func:`calibration_test`, with the
    dependence that is estimated from them.

    Parameters
    ----------
    probs, labels, **facts
        As in :func:`calibration_test`; the whole probability vector is looked at. Weights and one
        column of clusters are taken, other design information is refused. With weights all means
        are weighted; the p-value is exact where weighted utilities lie on a grid, as with whole
        numbers for weights.
    utility : Utility or callable
        :class:`Costs`, ``Costs.threshold(t)``, :class:`TopKAccuracy`, :class:`ReciprocalRank`, or
        a function from probabilities (n, K) to utilities (n, K).
    level : float, default 0.95
        Level of the interval of the realised utility. It is Student's, with one pseudo-observation
        at each end of the range of the utility: without them it covers as little as 13 % where
        events are rare and one acts rarely. With clusters it rests on their sums, and a
        pseudo-observation is a cluster.
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
        For no utility or one that is no finite table of shape (n, K), and for design information
        that is not taken.

    Notes
    -----
    O(n K) and, for the exact law, O(n G log n) with G steps of the grid in a row. O(B n K) for B
    redraws.

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
    weights = np.ones(data.n) if data.weights is None else data.weights
    weighted = UtilityTable(
        weights[:, None] * table.gains, weights * table.promised, weights**2 * table.variance
    )
    total = float((weights * (realised - table.promised)).sum())
    null = _null_of_total(analysis, table, weighted, total, n_resamples, rng)
    known = utility.ends if isinstance(utility, Utility) else (np.inf, -np.inf)
    ends = min(known[0], table.gains.min()), max(known[1], table.gains.max())
    low, high = _student_limits(realised, data, *ends, PSEUDO_ROWS, level)
    actions, shares = _actions(utility, data.probs)
    impossible = int(np.count_nonzero(data.probs[np.arange(data.n), data.labels] == 0.0))
    notes = [
        f"{several(impossible, 'outcome')} had probability 0: a single one refutes calibration, "
        "whatever the total gained"
    ] * (impossible > 0)
    return analysis.result(
        PromiseResult,
        utility=name_of(utility),
        promised=float(np.average(table.promised, weights=data.weights)),
        realised=float(np.average(realised, weights=data.weights)),
        difference=float(np.average(realised - table.promised, weights=data.weights)),
        z=total / null.deviation if null.deviation > 0.0 else 0.0,
        pvalue=null.pvalue,
        exact=null.n_resamples == 0,
        low=low,
        high=high,
        level=level,
        actions=actions,
        shares=shares,
        unit=str(getattr(utility, "in_words", "")),
        n_resamples=null.n_resamples,
        ended=null.ended,
        notes=(*notes, *null.notes),
        clusters=null.clusters,
    )


def decision_curve(
    probs: object,
    labels: object = None,
    thresholds: ArrayLike | None = None,
    *,
    against: object = None,
    against_name: str = "the other model",
    level: float = 0.95,
    n_resamples: int = N_RESAMPLES,
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
        As in :func:`calibration_test`, for two classes. Weights and one column of clusters are
        taken: net benefit is weighted, limits rest on sums over clusters, a pseudo-observation is
        then a cluster, and p-values come from redrawn labels. Other design information is refused.
    thresholds : array_like, optional
        Thresholds in (0, 1), ascending; by default 0.01, 0.02, …, 0.99.
    against : array_like, optional
        Probabilities of another model for the same observations.
    against_name : str
        What the other model is called.
    level : float, default 0.95
        Level of all limits.
    n_resamples : int, default 9999
        Label redraws for p-values of rows with weights or clusters; none without.
    rng : int or Generator, default 0
        Seed of the normal draws of the critical value, and of the labels.

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
    O(n T + T³), T the number of thresholds, and O(B n) for B redraws. Net benefit uses the
    probabilities as decisions do, and not only their order: a miscalibrated model can be worse than
    treating nobody.

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
    sums = UnitSums.of(gains, data)
    mean, error, critical, point = _band_of_means(sums, ends, PSEUDO_ROWS, level, rng)
    always = np.where(data.labels[:, None] == 1, 1.0, -odds)
    both = UnitSums.of(np.hstack([gains, gains - always]), data)
    useful = t[_shown_useful(both, odds, level, rng)]
    acts = p[:, None] >= t
    promised = _mean_over_rows(data, acts * (p[:, None] - (1.0 - p[:, None]) * odds))
    if data.weights is None and data.n_clusters is None:
        events = acts[data.labels == 1].sum(axis=0)
        pvalues = [
            _two_sided(p[acts[:, j]], int(events[j])) if acts[:, j].any() else 1.0
            for j in range(t.size)
        ]
        drawn = Redrawn()
    else:
        sums_above = ThresholdSums.of(analysis.problem, t)
        run = Run(n_resamples=n_resamples, rng=rng, workers=1)
        drawn = Redrawn.of(analysis, sums_above, run)
        pvalues = list(drawn.pvalues)
    prevalence = float(np.average(data.labels == 1, weights=data.weights))
    other = difference = low = high = np.empty(0)
    if against is not None:
        second = Analysis.of("decision_curve", against, data.labels, {}, lens=Canonical())
        if second.rows.n != data.n:
            raise InvalidPredictionsError(
                f"against= has {second.rows.n} observations, the model {data.n}: pass both models' "
                "probabilities for the same observations in the same order"
            )
        gains_of_other = _gains(second.rows, t)
        other = _mean_over_rows(data, gains_of_other)
        difference = _mean_over_rows(data, gains - gains_of_other)
        reach = np.maximum(1.0, odds)
        centre, spread, wide, _ = _band_of_means(
            UnitSums.of(gains - gains_of_other, data),
            np.stack([reach, -reach]),
            PSEUDO_ROWS_OF_A_DIFFERENCE,
            level,
            rng,
        )
        low, high = centre - wide * spread, centre + wide * spread
    return analysis.result(
        DecisionCurve,
        thresholds=t,
        net_benefit=_mean_over_rows(data, gains),
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
        n_resamples=drawn.n_resamples,
        ended=drawn.ended,
        notes=drawn.notes,
        clusters=drawn.clusters,
    )


@dataclass(frozen=True)
class NullOfTotal:
    """Null distribution of the total utility gained less the total that the probabilities promise.

    ``pvalue`` is two-sided, and ``deviation`` the standard deviation of the difference under
    calibration. ``n_resamples`` is the number of label redraws, 0 if the law is exact. ``ended`` is
    "complete" if all draws were made, else "interrupted". ``notes`` are sentences for the result;
    ``clusters`` describes clusters and their dependence, None without them.
    """

    pvalue: float
    deviation: float
    n_resamples: int = 0
    ended: str = "complete"
    notes: tuple[str, ...] = ()
    clusters: ClusterSummary | None = None


def _null_of_total(
    analysis: Analysis, table: UtilityTable, weighted: UtilityTable, total: float,
    n_resamples: int, rng: RNG,
) -> NullOfTotal:  # fmt: skip
    """Return the null distribution of Σ w (u − v), observed as ``total``, with its p-value.

    u is the utility gained by a row, v the utility that its probabilities promise, and w its
    weight. ``table`` has the utilities of every row under every label, (n, K), and the v (n,);
    ``weighted`` has the same times w. The law is exact where possible; otherwise labels are
    redrawn, with their dependence if rows have clusters. ``analysis`` holds the validated rows;
    ``n_resamples`` and ``rng`` are the number of redraws and their seed.
    """
    data = analysis.rows
    deviation = float(np.sqrt(weighted.variance.sum()))
    if data.n_clusters is not None:
        run = Run(n_resamples=n_resamples, rng=rng, workers=1)
        drawn = Redrawn.of(analysis, PromisedSum.of(analysis.problem, table), run)
        return NullOfTotal(
            float(drawn.pvalues[0]), float(drawn.deviations[0]),
            drawn.n_resamples, drawn.ended, drawn.notes, drawn.clusters,
        )  # fmt: skip
    exact = _exact_pvalue(data.probs, weighted, abs(total))
    if exact is not None:
        return NullOfTotal(exact, deviation)
    pvalue = _redrawn_pvalue(data, weighted, abs(total), n_resamples, rng)
    return NullOfTotal(pvalue, deviation, n_resamples)


@dataclass(frozen=True)
class Redrawn:
    """Null distribution of T sums on labels redrawn by the design.

    It is kept as p-values and standard deviations.

    ``pvalues`` (T,) are two-sided, ``deviations`` (T,) the standard deviations of the redrawn sums.
    With clusters the kind of dependence with the largest value counts, for each sum on its own.
    ``n_resamples`` is the number of draws, and ``ended`` is "complete" if all of them were made,
    else "interrupted". ``notes`` are sentences for the result; ``clusters`` describes clusters and
    their dependence, None without them.
    """

    pvalues: FloatArray = field(default_factory=lambda: np.empty(0))
    deviations: FloatArray = field(default_factory=lambda: np.empty(0))
    n_resamples: int = 0
    ended: str = "complete"
    notes: tuple[str, ...] = ()
    clusters: ClusterSummary | None = None

    @classmethod
    def of(cls, analysis: Analysis, sums: PromisedSum | ThresholdSums, run: Run) -> Self:
        """Return p-values (T,) and null standard deviations of T observed sums, by redrawn labels.

        ``sums`` is the prepared statistic that computes T sums from a set of labels. A p-value is
        (1 + number of redraws whose |sum| reaches the observed one) / (1 + B), for B redraws.
        ``run`` has the number of draws, seed and threads; ``analysis`` holds the validated rows,
        with their clusters. O(B n K).
        """
        observed = sums.values(sums.problem.observed).reshape(-1)
        schemes: tuple[Coupled, ...] = (Coupled(RedrawLabels()),)
        summary: ClusterSummary | HorizonSummary | None = None
        if analysis.rows.n_clusters is not None:
            schemes, summary = agreeing_schemes("auto", analysis.induced, stack=5)
        pvalues, deviations, counts, ends = [], [], [], []
        for scheme, factor in schemes:
            drawn, ended = simulate_by(sums.redraws(scheme, factor), **run)
            drawn = drawn.reshape(len(drawn), observed.size)
            reached = [
                reaching(float(o), column, two_sided=True).sum()
                for o, column in zip(observed, drawn.T.copy(), strict=True)
            ]
            pvalues.append((1.0 + np.array(reached)) / (1.0 + len(drawn)))
            deviations.append(drawn.std(axis=0))
            counts.append(len(drawn))
            ends.append(ended)
        clusters = summary if isinstance(summary, ClusterSummary) else None
        notes = () if clusters is None else clusters.notes
        worst = np.max(pvalues, axis=0), np.max(deviations, axis=0)
        return cls(*worst, min(counts), ending(*ends), notes, clusters)


def _exact_pvalue(probs: FloatArray, table: UtilityTable, distance: float) -> float | None:
    """Return the exact two-sided p-value of the utility gained, or None without an exact law.

    It is P(|Σ (u − v)| ≥ ``distance``) for labels drawn from ``probs`` (n, K), with u the utility
    gained and v the one promised; ``table`` holds u for every label, (n, K), and v (n,). It is 1 if
    no label changes the utility. None if utilities are not multiples of a common step, or the law
    would have more than 50 000 points.
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
    """Return the largest step of which all entries are multiples, or 0.0 if none is found.

    ``above`` (n, K) is the utility gained with each label, less the smallest of its row, so entries
    are ≥ 0. None if all entries are 0: then no label changes the utility.
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
    """Return the probabilities of the values 0, 1, … of Σ_i steps[i, y_i], labels y_i ~ probs[i].

    ``probs`` and ``steps`` have shape (n, K); ``steps`` are utilities as whole numbers ≥ 0 of a
    common unit. The result has shape (m + 1,), m = Σ_i max_k steps[i, k]. Laws are convolved in
    pairs, without a Fourier transform, so that tails keep their digits.
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
    """Return the p-value (1 + b) / (1 + B) of the total utility, from redrawn labels.

    ``table`` holds the utility u of every row under every label, (n, K), and its promise v (n,).
    ``distance`` is the observed |Σ (u − v)|; b counts redraws that reach it, ties up to rounding
    included, among B = ``n_resamples`` drawn from the predictions of ``data`` by ``rng``. O(B n K).
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


@dataclass(frozen=True)
class UnitSums:
    """Sums over independent units (clusters, or rows without them) of T values of each row.

    ``sums`` (G, T) are Σ w x over the rows of each of G units, with x the values of a row and w its
    weight (1 without weights); ``mass`` (G,) are m = Σ w. A unit of average importance has the mass
    ``unit_mass`` = Σ m² / Σ m; ``n_units`` = (Σ m)² / Σ m² is the effective number of units.
    """

    sums: FloatArray = field(repr=False)
    mass: FloatArray = field(repr=False)

    @classmethod
    def of(cls, values: FloatArray, data: Predictions) -> Self:
        """Sum T ``values`` of each row, (n, T), over the clusters of ``data``; O(n T).

        The result has sums (G, T) and total weights (G,) of G clusters; rows are multiplied by
        their weights. Without clusters each row is a unit of its own.
        """
        mass = np.ones(data.n) if data.weights is None else data.weights
        sums = values if data.weights is None else mass[:, None] * values
        if data.n_clusters is None:
            return cls(sums, mass)
        unit = by_appearance(data.clusters)
        order = np.argsort(unit, kind="stable")
        starts = np.flatnonzero(np.diff(unit[order], prepend=-1))
        return cls(np.add.reduceat(sums[order], starts), np.add.reduceat(mass[order], starts))

    @property
    def unit_mass(self) -> float:
        """Mass of a unit of average importance, Σ m² / Σ m with m the masses of these units.

        It is 1 for rows without weights and clusters.
        """
        return float(np.square(self.mass).sum() / self.mass.sum())

    @property
    def n_units(self) -> float:
        """Effective number of these units, (Σ m)² / Σ m² with m their masses.

        It is n for n rows without weights and clusters.
        """
        return float(self.mass.sum() / self.unit_mass)


def _student_limits(
    gains: FloatArray, data: Predictions, least: float, most: float, pseudo: float, level: float
) -> tuple[float, float]:
    """Return Student's limits (low, high) of a mean gain, with pseudo-observations at both ends.

    ``gains`` (n,) are gains of the rows of ``data`` between ``least`` and ``most``. ``pseudo`` is
    the number of pseudo-observations at each end, ``level`` the confidence level.
    """
    ends = np.array([[least], [most]])
    mean, error, _, point = _moments(UnitSums.of(gains[:, None], data), ends, pseudo, level)
    return float(mean[0] - point * error[0]), float(mean[0] + point * error[0])


def _moments(
    gains: UnitSums, ends: FloatArray, pseudo: float, level: float
) -> tuple[FloatArray, FloatArray, FloatArray, float]:
    """Return (means (T,), standard errors (T,), covariance (T, T), quantile of Student's law).

    ``gains`` has the sums S_g (T,) and weights m_g of independent units g (rows or clusters), for T
    thresholds. ``ends`` (2, T) are two pseudo-units of average size that count ``pseudo`` times
    each. A mean is a ratio of sums over units: errors follow from its linearisation, Σ_g (S_g −
    m_g mean). The quantile belongs to the confidence ``level``, two-sided.
    """
    from scipy.stats import t as student

    n, size = gains.n_units + 2.0 * pseudo, gains.unit_mass
    mean = (gains.sums.sum(axis=0) / size + pseudo * ends.sum(axis=0)) / n
    away, far = (gains.sums - gains.mass[:, None] * mean) / size, ends - mean
    covariance = (away.T @ away + pseudo * far.T @ far) / (n - 1.0)
    error = np.sqrt(np.diag(covariance) / n)
    return mean, error, covariance, float(student.ppf(0.5 + 0.5 * level, n - 1.0))


def _band_of_means(
    gains: UnitSums, ends: FloatArray, pseudo: float, level: float, rng: RNG
) -> tuple[FloatArray, FloatArray, float, float]:
    """Return (means, standard errors, simultaneous critical value, pointwise critical value).

    Both arrays have shape (T,). ``gains`` has the sums of independent units (rows or clusters) at T
    thresholds, ``ends`` (2, T) the largest and the smallest gain of a row, and ``pseudo`` is the
    number of pseudo-units at each of these ends. Limits at ``level`` are mean ± critical value ·
    standard error. The simultaneous value holds at all thresholds together; it comes from draws of
    the normal limit by ``rng``.
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
    freedom = gains.n_units + 2.0 * pseudo - 1.0
    return mean, error, float(student.ppf(norm.cdf(largest), freedom)), point


def _shown_useful(both: UnitSums, odds: FloatArray, level: float, rng: RNG) -> BoolArray:
    """Mark thresholds at which acting on the model is better than never and than always, (T,).

    ``both`` has sums over independent units (rows or clusters) of 2 T values: the gains over never
    acting at T thresholds t, then the gains over acting always. ``odds`` (T,) are t / (1 − t), the
    cost of a false positive. The lower limits of both curves hold together at ``level``, at all
    thresholds; ``rng`` draws their critical value.
    """
    reach = np.maximum(1.0, odds)
    ends = np.stack([np.append(np.ones_like(odds), reach), np.append(-odds, -reach)])
    mean, error, critical, _ = _band_of_means(both, ends, PSEUDO_ROWS, level, rng)
    return np.asarray((mean - critical * error > 0.0).reshape(2, -1).all(axis=0))


def _mean_over_rows(data: Predictions, values: FloatArray) -> FloatArray:
    """Return the means over rows, (T,), of ``values`` (n, T), T for each row.

    They are weighted if ``data`` have weights.
    """
    return np.asarray(np.average(values, axis=0, weights=data.weights))


def _gains(data: Predictions, thresholds: FloatArray) -> FloatArray:
    """Return the net benefit of each observation at each of T ``thresholds``, shape (n, T).

    It is 1 for a true positive, −t / (1 − t) for a false positive at threshold t, and 0 without
    action. ``data`` are the predictions and outcomes, label 1 being the event; StatisticError for
    more than two classes.
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
    """Return the two-sided p-value P(|N − E N| ≥ |events − E N|), N the number of events.

    N is a sum of independent events with probabilities ``p`` (n,). ``events`` is the number
    observed.
    """
    first, law, lost = poisson_binomial(p)
    counts = first + np.arange(law.size)
    mean = float(p.sum())
    reached = np.abs(counts - mean) >= abs(events - mean) - TIED_SUMS * max(1.0, mean)
    return min(1.0, float(law[reached].sum()) + lost)


def _actions(utility: UtilityLike, probs: FloatArray) -> tuple[tuple[str, ...], tuple[float, ...]]:
    """Return (names, shares) of the actions of a utility, two tuples of the same length.

    A share is the fraction of observations in which the action is the best one for the
    probabilities ``probs`` (n, K). Both are () for a utility without actions, which is any but
    costs and thresholds.
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
