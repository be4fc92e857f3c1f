"""The audit: every usual lens in one call."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from caltest._progress import progress
from caltest._version import __version__
from caltest.binning import UniformBins, VarianceTree
from caltest.errors import DegenerateDataWarning, StatisticError
from caltest.inference import calibration_test
from caltest.lenses import Canonical, Lens, OneVsRest, TopK
from caltest.multiplicity import holm
from caltest.predictions import Predictions
from caltest.resampling import Workers
from caltest.results import AuditReport, AuditRow, CalibrationTestResult
from caltest.statistics import ECE, Statistic


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
        An error you could not live with. A row that finds nothing says "too little data" when a
        measured error of that size would pass as noise: when the 1 − ``alpha`` point of its null
        distribution lies above it, or there are so few predictions that a shift by it would leave
        no trace in more than 20 % of data sets (fewer than 16 for 0.1).
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
            result = calibration_test(
                data, None, statistic, lens=lens, n_resamples=n_resamples, rng=rng, workers=workers
            )
        if result.ended == "interrupted":
            raise KeyboardInterrupt
        return result

    n_rows = 2 if data.n_classes == 2 else 3 if data.n_classes == 3 else 4
    if n_rows > alpha * (1 + n_resamples):
        raise StatisticError(
            f"n_resamples={n_resamples} cannot reject anything at alpha={alpha:g}: take at least "
            f"{int(np.ceil(n_rows / alpha))}"
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
        text = "are all classes right? (worst of them)"
        questions.append((None, text, _every_class(data, lambda c: run(OneVsRest(c), binary))))
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


def _every_class(
    data: Predictions, run: Callable[[int], CalibrationTestResult]
) -> list[CalibrationTestResult]:
    """Test class by class; only the worst keeps its null distribution, which can be large."""
    tests: list[CalibrationTestResult] = []
    worst = 0
    with progress(data.n_classes, "classes") as advance:
        for c in range(data.n_classes):
            tests.append(run(c))
            if c > 0:
                loser = c if _rank(tests[worst]) <= _rank(tests[c]) else worst
                tests[loser] = replace(tests[loser], null_distribution=None)
                worst += c - loser if loser == worst else 0
            advance(1)
    return tests


def _rank(test: CalibrationTestResult) -> tuple[float, float]:
    return test.pvalue, -test.excess


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
    worst = min(range(len(tests)), key=lambda j: _rank(tests[j]))
    test = tests[worst]
    assert test.null_distribution is not None
    critical = test.null_distribution.ppf(1.0 - alpha)
    # So few rows that a shift by the tolerance would as likely as not leave no trace.
    few = data.n < np.log(0.2) / np.log1p(-tolerance)
    if any(t.impossible for t in tests):
        verdict = "miscalibrated (impossible outcome)"
    elif adjusted <= alpha:
        verdict = "miscalibrated"
    else:
        verdict = "too little data" if few or critical > tolerance else "no evidence"
    detail = ""
    floor = f"{test.null_mean:.3f} ± {test.null_std:.3f}"
    if lens is None:
        found = sum(p <= alpha for p in holm([t.pvalue for t in tests]))
        predicted = data.probs[:, worst].mean()
        occurred = (data.labels == worst).mean()
        detail = (
            f"Classes: {found} of {len(tests)} are miscalibrated on their own; the worst is "
            f"{data.class_name(worst)}: error {test.estimate:.3f}, chance alone {floor} (predicted "
            f"{predicted:.1%} on average, observed {occurred:.1%})."
        )
    elif test.excess < -2.0 * test.null_std:
        detail = (
            f"{lens!r}: the error {test.estimate:.3f} is below chance ({floor}): outcomes are more "
            "regular than predicted, a sign of underconfidence that this row cannot test."
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
    rejected = [row for row in rows if row.verdict.startswith("miscalibrated")]
    direction, summary = "", []
    if rejected or impossible.size:
        verdict = "miscalibrated"
        if top.adjusted <= alpha:
            gap = confidence - accuracy
            if abs(gap) < 0.5 * top.test.estimate:
                direction = "mixed"
            else:
                direction = "overconfident" if gap > 0 else "underconfident"
        summary += _what_is_wrong(data, rejected, top, direction, confidence, accuracy, alpha)
    elif rows[0].verdict == "too little data":
        verdict = "too little data"
        needed = int(np.ceil(data.n * max(1.0, rows[0].critical / tolerance) ** 2 / 100.0)) * 100
        summary.append(
            f"With {data.n} predictions an error of the size to be noticed ({tolerance:g}) can "
            "pass as noise: these data can neither confirm nor refute calibration. At least "
            f"{needed} predictions are needed."
        )
    else:
        verdict = "calibrated"
        summary.append(
            "Every error that could be tested is one that a calibrated model would show. "
            f"An error of up to {rows[0].critical:.3f} ({rows[0].lens}) passes as noise at this "
            "sample size."
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
            f"row {impossible[0]}, counted from 0): that alone refutes calibration, unless the "
            "probabilities were rounded to 0."
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
    alpha: float,
) -> list[str]:
    claim = f"it claims {confidence:.1%} on average and is right in {accuracy:.1%} of cases"
    sentences = []
    significant = [row for row in rejected if row.adjusted <= alpha]
    event = next((row for row in significant if row.lens == "OneVsRest(1)"), None)
    if event is not None:
        mean, rate = float(data.probs[:, 1].mean()), float((data.labels == 1).mean())
        shifted = abs(mean - rate) >= 0.5 * event.test.estimate
        judged = "wrong in both directions"
        if shifted:
            judged = "overestimated" if mean > rate else "underestimated"
        sentences.append(
            f"The probability of class {data.class_name(1)} is {judged}: predicted {mean:.1%} on "
            f"average, observed {rate:.1%}."
        )
    if direction in ("overconfident", "underconfident"):
        sentences.append(f"The model is {direction}: {claim}.")
    elif direction == "mixed":
        sentences.append(
            f"The model is overconfident in some ranges and underconfident in others: {claim}."
        )
    elif significant and event is None:
        passed = "passes" if top.verdict == "no evidence" else "cannot be judged"
        sentences.append(
            f"The confidence of the top class {passed}, but other probabilities are wrong: "
            + ", ".join(row.lens for row in significant)
            + "."
        )
    main = event or (top if direction else None)
    if main is not None:
        test = main.test
        sentences.append(
            f"The error ({main.lens}) is {test.estimate:.3f}; chance alone would show "
            f"{test.null_mean:.3f} ± {test.null_std:.3f} on these predictions."
        )
    return sentences
