"""Which classes are miscalibrated, in which direction, and which recalibration is enough.

:func:`worst_class` is the entry: standardised levels and slopes of all classes with max-T p-values,
then score tests of nested recalibration models.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Unpack

import numpy as np
from scipy.special import gammaincc, softmax

from caltest._base import FloatArray, IntArray
from caltest._base.arrays import N_RESAMPLES, RNG, fraction, reaching
from caltest.data import Facts, Predictions
from caltest.data.lenses import Canonical
from caltest.errors import StatisticError
from caltest.inference._input import Analysis, evaluated
from caltest.inference.calibration import calibration_test
from caltest.inference.null import Null
from caltest.nulls import RedrawLabels, Run, Workers, check_run
from caltest.nulls.laws import SimulatedNull
from caltest.results import ClassComponent, WorstClassResult
from caltest.results.base import go_on
from caltest.statistics import MulticlassCox, WorstClass
from caltest.statistics.multiclass_cox import (
    COMPONENT_DIRECTIONS,
    CoxPart,
    LargestComponent,
    observed_scores,
    score_covariance,
    whitening,
)
from caltest.statistics.regression import PROBABILITY_CLIP


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
    """Return the result of :func:`worst_class` for validated rows of at least three classes."""
    statistic = WorstClass()
    alone = data.n_clusters is None and data.horizon is None
    # Draws, also where a few label vectors could be listed: each score is compared with them
    null: Null = RedrawLabels() if alone else "auto"
    test = calibration_test(data, None, statistic, lens=Canonical(), null=null, **run)
    go_on(test.ended)
    analysis = Analysis.through(Canonical(), data, run["rng"])
    prepared, _ = evaluated(statistic, analysis.problem)
    assert isinstance(prepared, LargestComponent)
    scores, law = prepared.components, test.null_distribution
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
    """Return (name, p-values): the smallest model of recalibration that leaves no lack of fit.

    The p-values test the lack of fit of each model that was tried, by name. ``alpha`` is the level;
    "vector" is the largest model.
    """
    z, left = np.log(np.maximum(probs, PROBABILITY_CLIP)), dict[str, float]()
    for name, (shifts, slope) in SMALLER.items():
        left[name] = _left(z, labels, shifts, slope)
        if left[name] > alpha:
            return name, left
    return "vector", left


def _left(z: FloatArray, labels: IntArray, shifts: bool, slope: bool) -> float:
    """Return the p-value of the lack of fit of P(y = j) ∝ exp(a_j + b z_j), with a or b fitted.

    ``shifts`` and ``slope`` say which of a and b are free. Rao's score tests are made of all
    parameters that the model lacks, and of the nearest few (the shifts after a temperature, the one
    slope after shifts), and combined by Bonferroni.
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
    """Return the fitted probabilities, (n, K), by Newton's method with halved steps.

    ``z`` (n, K) are log-probabilities, ``labels`` (n,); ``shifts`` and ``slope`` say which
    parameters of P(y = j) ∝ exp(a_j + b z_j) are free.
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
    """Return the scores (T,) of a part at fitted probabilities, and their covariance (T, T).

    ``q`` and ``z`` have shape (n, K): fitted probabilities and log-probabilities.
    """
    ones = np.ones(len(q))
    levels, slopes = observed_scores(q, z, labels, ones)
    tail = slopes.sum(keepdims=True) if part == "temperature" else slopes
    return np.append(levels, tail), score_covariance(q, z, ones, part)
