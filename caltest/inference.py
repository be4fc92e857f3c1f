"""The verbs: test one aspect of calibration, or audit all of them."""

from __future__ import annotations

import warnings
from typing import Any, Literal

import numpy as np

from caltest._progress import progress
from caltest._version import __version__
from caltest.binning import UniformBins, VarianceTree
from caltest.errors import DegenerateDataWarning, SparseBinsWarning, StatisticError
from caltest.exact import MAX_ENUMERATION, cell_null, enumerated_null, n_label_vectors
from caltest.lenses import Canonical, Lens, OneVsRest, TopK, apply
from caltest.nulls import ExactNull, NullDistribution, SimulatedNull
from caltest.predictions import Predictions
from caltest.resampling import ConsistencyResampling, RedrawLabels, Resampler, Workers, replicate
from caltest.results import AuditReport, AuditRow, CalibrationTestResult
from caltest.statistics import ECE, Statistic, given

#: Rows per occupied cell below which consistency resampling is not to be trusted.
MIN_ROWS_PER_CELL = 20

Null = Literal["auto", "exact"] | Resampler


def calibration_test(
    probs: Any,
    labels: Any = None,
    statistic: Statistic = ECE(),
    *,
    lens: Lens = TopK(1),
    null: Null = "auto",
    n_resamples: int = 9999,
    rng: Any = None,
    workers: Workers = 1,
) -> CalibrationTestResult:
    """Test whether predictions are calibrated, through a lens and by a statistic.

    The hypothesis is that given the predictions seen through the lens, labels are drawn from them.
    The p-value is the probability that a model for which this is true shows at least the observed
    statistic on the same predictions.

    Parameters
    ----------
    probs : array_like of shape (n,) or (n, K), or Predictions
        Predicted probabilities; see :meth:`Predictions.of`.
    labels : array_like of shape (n,)
        Observed classes; left out when ``probs`` is a :class:`Predictions`.
    statistic : callable, default ECE(UniformBins(15), distance="tv")
        A statistic of caltest or any function ``(probs, labels) -> float`` of the induced problem;
        large values speak against calibration.
    lens : callable, default TopK(1)
        Which aspect is asked about: a lens of caltest or any function from predictions to
        predictions.
    null : {"auto", "exact"}, RedrawLabels or ConsistencyResampling, default "auto"
        ``"exact"`` computes the null distribution without simulation: for a two-class induced
        problem and a binned statistic, or for problems of at most 2²⁰ label vectors.
        ``RedrawLabels()`` simulates labels and is valid always. ``"auto"`` takes the exact one
        where it is cheaper.
    n_resamples : int, default 9999
        Replicates of a simulated null.
    rng : None, int, Generator or SeedSequence
        As :func:`numpy.random.default_rng`.
    workers : int or callable, default 1
        Threads, or a function like :func:`map`.

    Returns
    -------
    CalibrationTestResult

    Raises
    ------
    InvalidPredictionsError
        When probs and labels are not a forecast and its outcomes.
    StatisticError
        When the statistic is not a finite number, or lens, bins and null do not fit the data.

    Warns
    -----
    SparseBinsWarning
        With ``ConsistencyResampling()`` and fewer than 20 rows per occupied cell.
    DegenerateDataWarning
        When a calibrated model could show one value of the statistic only.

    Notes
    -----
    Validity: observations are independent, and labels were not used to make the predictions.
    Given the predictions, observed and redrawn labels are then exchangeable, so that
    P(p ≤ α) ≤ α at every n, K and partition.

    References
    ----------
    Vaicenavicius et al., "Evaluating model calibration in classification", AISTATS 2019, §4.3.

    Examples
    --------
    >>> import caltest as ct
    >>> rained, forecast = [1] * 18 + [0] * 12, [0.8] * 30
    >>> result = ct.calibration_test(forecast, rained, lens=ct.OneVsRest(1))
    >>> round(result.estimate, 6), round(result.pvalue, 9)
    (0.2, 0.010731062)
    """
    data = Predictions.of(probs, labels)
    induced = apply(lens, data)
    estimate = _value(statistic, induced)
    law = _null_distribution(statistic, induced, estimate, null, n_resamples, rng, workers)
    if isinstance(law, ExactNull):
        bracket, error, drawn, name = law.bracket(estimate), 0.0, 0, "exact"
        pvalue = max(bracket[1], np.finfo(float).tiny)
    else:
        assert isinstance(law, SimulatedNull)
        drawn = len(law)
        exceeding = round(law.sf(estimate) * drawn)
        pvalue = (1 + exceeding) / (1 + drawn)
        error = float(np.sqrt(pvalue * (1.0 - pvalue) / drawn))
        bracket = _clopper_pearson(exceeding, drawn)
        name = repr(RedrawLabels() if null == "auto" else null)
    if law.std() == 0.0:
        warnings.warn(
            "the null distribution is a single value: with these predictions a calibrated model "
            "can show nothing else, so the test says nothing",
            DegenerateDataWarning,
            stacklevel=2,
        )
    return CalibrationTestResult(
        statistic=_name(statistic),
        lens=_name(lens),
        null=name,
        estimate=estimate,
        pvalue=float(pvalue),
        pvalue_bracket=bracket,
        pvalue_error=error,
        null_mean=law.mean(),
        null_std=law.std(),
        n=induced.n,
        n_classes=data.n_classes,
        n_resamples=drawn,
        seed=int(rng) if isinstance(rng, (int, np.integer)) else None,
        impossible=induced.impossible.size,
        interrupted=isinstance(law, SimulatedNull) and law.interrupted,
        notes=data.notes,
        version=__version__,
        null_distribution=law,
    )


def _name(value: Any) -> str:
    return getattr(value, "__name__", None) or repr(value)


def _value(statistic: Statistic, induced: Predictions) -> float:
    try:
        value = float(statistic(induced.probs, induced.labels))
    except TypeError as error:
        raise StatisticError(
            f"the statistic {_name(statistic)} failed on probs of shape {induced.probs.shape} and "
            f"labels of shape {induced.labels.shape}: {error}"
        ) from error
    if not np.isfinite(value):
        raise StatisticError(
            f"the statistic {_name(statistic)} is {value} on the observed data; it must be a "
            "finite number"
        )
    return value


def _null_distribution(
    statistic: Statistic,
    induced: Predictions,
    estimate: float,
    null: Null,
    n_resamples: int,
    rng: Any,
    workers: Workers,
) -> NullDistribution:
    if isinstance(null, str) and null not in ("auto", "exact"):
        raise StatisticError(
            f"null must be 'auto', 'exact', RedrawLabels() or ConsistencyResampling(), not {null!r}"
        )
    if isinstance(null, str):
        fixed: Any = given(statistic, induced.probs)
        if induced.n_classes == 2 and hasattr(fixed, "term"):
            return cell_null(fixed, induced.probs[:, 0], estimate)
        limit = MAX_ENUMERATION if null == "exact" else n_resamples
        if n_label_vectors(induced.probs) <= limit:
            return enumerated_null(fixed, induced.probs)
        if null == "exact":
            raise StatisticError(
                f"there is no exact null for {_name(statistic)} with {induced.n} rows of "
                f"{induced.n_classes} classes: it needs a two-class lens and a binned statistic, "
                "or very few rows. Use null=RedrawLabels(), which is valid always"
            )
        null = RedrawLabels()
    if isinstance(null, ConsistencyResampling):
        _warn_if_sparse(given(statistic, induced.probs))
    return replicate(statistic, null, induced, n_resamples, rng=rng, workers=workers)


def _warn_if_sparse(fixed: Any) -> None:
    counts = getattr(fixed, "counts", None)
    if counts is not None and counts.mean() < MIN_ROWS_PER_CELL:
        warnings.warn(
            f"only {counts.mean():.1f} rows per occupied cell: consistency resampling rejects "
            "calibrated models too often below 20 (up to always at 1). Use null=RedrawLabels(), "
            "which is valid at every sample size, or fewer bins",
            SparseBinsWarning,
            stacklevel=4,
        )


def _clopper_pearson(successes: int, trials: int, level: float = 0.99) -> tuple[float, float]:
    from scipy.special import betaincinv

    tail = (1.0 - level) / 2.0
    low = betaincinv(successes, trials - successes + 1, tail) if successes else 0.0
    high = betaincinv(successes + 1, trials - successes, 1.0 - tail) if successes < trials else 1.0
    return float(low), float(high)


def holm(pvalues: list[float]) -> list[float]:
    """Return Holm's adjusted p-values, valid under any dependence.

    Rejecting those at most α keeps the chance of any false rejection at α (Holm 1979).

    Examples
    --------
    >>> holm([0.01, 0.04, 0.03])
    [0.03, 0.06, 0.06]
    """
    order = np.argsort(pvalues, kind="stable")
    remaining = len(pvalues) - np.arange(len(pvalues))
    stepped = np.minimum(1.0, np.maximum.accumulate(np.asarray(pvalues)[order] * remaining))
    adjusted = np.empty(len(pvalues))
    adjusted[order] = stepped
    return [float(p) for p in adjusted]


def audit(
    probs: Any,
    labels: Any = None,
    *,
    alpha: float = 0.05,
    tolerance: float = 0.1,
    n_resamples: int = 1999,
    rng: Any = None,
    workers: Workers = 1,
) -> AuditReport:
    """Ask everything at once: is this classifier calibrated, through every usual lens?

    Rows: the top prediction (``TopK(1)``); the largest few (``TopK(k)``, for more than three
    classes); every class against the rest, summarised by the worst; the whole vector
    (``Canonical()``). For two classes: the probability of label 1 and the top prediction. Errors
    are total-variation ECEs, over 15 equal-width bins for two-class lenses and over a
    :class:`VarianceTree` with cells of at least max(20, n/50) rows for vectors.

    Parameters
    ----------
    probs, labels
        As in :func:`calibration_test`; ``labels`` is left out for a :class:`Predictions`.
    alpha : float, default 0.05
        Chance of calling a calibrated model miscalibrated, over all rows together (Holm).
    tolerance : float, default 0.1
        An error you could not live with. Where calibrated predictions of this size show as much in
        more than 5 % of data sets, a row that finds nothing says "too little data".
    n_resamples : int, default 1999
        Replicates for the rows that have no exact null.
    rng, workers
        As in :func:`calibration_test`.

    Returns
    -------
    AuditReport
        ``print`` it; ``.verdict``, ``.rows``, ``.as_dict()`` for programs.

    Examples
    --------
    >>> import caltest as ct
    >>> report = ct.audit(ct.examples.digits("overfit"), rng=0)
    >>> report.verdict, report.direction
    ('miscalibrated', 'overconfident')
    """
    data = Predictions.of(probs, labels)
    for name, value in (("alpha", alpha), ("tolerance", tolerance)):
        if not 0.0 < value < 1.0:
            raise StatisticError(f"{name} must lie between 0 and 1, not {value!r}")

    def run(lens: Lens, statistic: Statistic) -> CalibrationTestResult:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DegenerateDataWarning)
            return calibration_test(
                data, None, statistic, lens=lens, n_resamples=n_resamples, rng=rng, workers=workers
            )

    binary, vector = ECE(UniformBins(15)), ECE(VarianceTree(max(20, data.n // 50)))
    questions: list[tuple[Lens | None, str, list[CalibrationTestResult]]] = []
    if data.n_classes == 2:
        text = f"is the probability of class {data.class_name(1)} right?"
        questions.append((OneVsRest(1), text, [run(OneVsRest(1), binary)]))
    text = "is the confidence of the top class right?"
    questions.append((TopK(1), text, [run(TopK(1), binary)]))
    if data.n_classes > 2:
        if data.n_classes > 3:
            lens = TopK(min(3, data.n_classes - 2))
            text = f"are the {lens.k} largest probabilities right?"
            questions.append((lens, text, [run(lens, vector)]))
        with progress(data.n_classes, "classes") as advance:
            tests = []
            for c in range(data.n_classes):
                tests.append(run(OneVsRest(c), binary))
                advance(1)
        questions.append((None, "is the probability of every class right?", tests))
        whole = "is the whole probability vector right?"
        questions.append((Canonical(), whole, [run(Canonical(), vector)]))
    # The row of all classes is tested by its smallest p-value, Bonferroni-adjusted.
    pvalues = [min(1.0, len(tests) * min(t.pvalue for t in tests)) for _, _, tests in questions]
    rows = tuple(
        _audit_row(data, lens, question, tests, p, adjusted, alpha, tolerance)
        for (lens, question, tests), p, adjusted in zip(
            questions, pvalues, holm(pvalues), strict=True
        )
    )
    return _audit_report(data, rows, alpha, tolerance)


def _audit_row(
    data: Predictions,
    lens: Lens | None,
    question: str,
    tests: list[CalibrationTestResult],
    pvalue: float,
    adjusted: float,
    alpha: float,
    tolerance: float,
) -> AuditRow:
    worst = min(range(len(tests)), key=lambda j: (tests[j].pvalue, -tests[j].excess))
    test = tests[worst]
    assert test.null_distribution is not None
    critical = test.null_distribution.ppf(0.95)
    if adjusted <= alpha or test.impossible:
        verdict = "miscalibrated"
    else:
        verdict = "too little data" if critical > tolerance else "no evidence"
    detail = ""
    if lens is None:
        found = sum(p <= alpha for p in holm([t.pvalue for t in tests]))
        predicted = data.probs[:, worst].mean()
        occurred = (data.labels == worst).mean()
        detail = (
            f"Classes: {found} of {len(tests)} are miscalibrated on their own; the worst is "
            f"{data.class_name(worst)}, predicted {predicted:.1%} on average and observed "
            f"{occurred:.1%}."
        )
    name = repr(lens) if lens is not None else f"OneVsRest(0…{len(tests) - 1})"
    return AuditRow(name, question, test, pvalue, adjusted, critical, verdict, detail)


def _audit_report(
    data: Predictions, rows: tuple[AuditRow, ...], alpha: float, tolerance: float
) -> AuditReport:
    confidence = float(data.probs.max(axis=1).mean())
    accuracy = float((data.probs.argmax(axis=1) == data.labels).mean())
    (top,) = (row for row in rows if row.lens == "TopK(1)")
    impossible = data.impossible
    rejected = [row for row in rows if row.verdict == "miscalibrated"]
    direction, summary = "", []
    if rejected or impossible.size:
        verdict = "miscalibrated"
        if top.adjusted <= alpha:
            gap = confidence - accuracy
            if abs(gap) < 0.5 * top.test.estimate:
                direction = "mixed"
            else:
                direction = "overconfident" if gap > 0 else "underconfident"
        summary += _what_is_wrong(data, rejected, top, direction, confidence, accuracy)
    elif top.verdict == "too little data":
        verdict = "too little data"
        needed = int(np.ceil(data.n * (top.critical / tolerance) ** 2 / 100.0)) * 100
        summary.append(
            f"With {data.n} predictions an error of up to {top.critical:.3f} passes as noise, "
            f"more than the tolerated {tolerance:g}: these data can neither confirm nor refute "
            f"calibration. About {needed} predictions would do."
        )
    else:
        verdict = "calibrated"
        summary.append(
            "As far as these data can tell: every error is one that a calibrated model would show. "
            f"A top-class error of up to {top.critical:.3f} passes as noise at this sample size."
        )
    if verdict != "too little data":
        summary += [
            f"Too little data for {row.lens}: errors of up to {row.critical:.3f} pass as noise."
            for row in rows
            if row.verdict == "too little data"
        ]
    if impossible.size:
        summary.append(
            f"{impossible.size} outcomes occurred that had probability exactly 0 (the first in "
            f"row {impossible[0]}): that alone refutes calibration."
        )
    return AuditReport(
        verdict=verdict,
        summary=tuple(summary),
        direction=direction,
        rows=rows,
        n=data.n,
        n_classes=data.n_classes,
        accuracy=accuracy,
        confidence=confidence,
        alpha=alpha,
        tolerance=tolerance,
        impossible=impossible.size,
        notes=data.notes,
        version=__version__,
    )


def _what_is_wrong(
    data: Predictions,
    rejected: list[AuditRow],
    top: AuditRow,
    direction: str,
    confidence: float,
    accuracy: float,
) -> list[str]:
    sentences = []
    claim = f"it claims {confidence:.1%} on average and is right in {accuracy:.1%} of cases"
    if direction in ("overconfident", "underconfident"):
        sentences.append(f"The model is {direction}: {claim}.")
    elif direction == "mixed":
        sentences.append(
            f"The model is overconfident in some ranges and underconfident in others: {claim}."
        )
    elif top not in rejected and rejected:
        sentences.append(
            "The confidence of the top class passes, but other probabilities are wrong: "
            + ", ".join(row.lens for row in rejected)
            + "."
        )
    if data.n_classes == 2 and rejected and rejected[0].lens == "OneVsRest(1)":
        mean, rate = float(data.probs[:, 1].mean()), float((data.labels == 1).mean())
        sentences.append(
            f"Class {data.class_name(1)} is predicted {mean:.1%} on average and occurs in "
            f"{rate:.1%} of cases."
        )
    if direction:
        test = top.test
        sentences.append(
            f"The top-class error is {test.estimate:.3f}; chance alone would show "
            f"{test.null_mean:.3f} ± {test.null_std:.3f} on these predictions."
        )
    return sentences
