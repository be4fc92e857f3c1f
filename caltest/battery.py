"""The audit: every usual lens in one call."""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import Any, Literal

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

Pair = tuple[Statistic, Lens]


def audit(
    probs: Any,
    labels: Any = None,
    *,
    alpha: float = 0.05,
    tolerance: float = 0.1,
    adjust: Literal["holm", "max-T"] = "holm",
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
    adjust : {"holm", "max-T"}, default "holm"
        How p-values are adjusted for the number of questions. Holm's method takes every row's own
        p-value, exact where there is one, and the worst class times their number. ``"max-T"``
        draws whole label vectors, evaluates all statistics on each, and adjusts by the joint law
        of all of them, every class included (Westfall & Young 1993): sharper when there are many
        classes, but no p-value is then below 1 / (1 + ``n_resamples``).
    n_resamples : int, default 1999
        Replicates for the rows that have no exact null; for all rows with ``"max-T"``.
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
    if adjust not in ("holm", "max-T"):
        raise StatisticError(f"adjust must be 'holm' or 'max-T', not {adjust!r}")
    asked = _questions(data)
    if len(asked) > alpha * (1 + n_resamples):
        raise StatisticError(
            f"n_resamples={n_resamples} cannot reject anything at alpha={alpha:g}: take at least "
            f"{int(np.ceil(len(asked) / alpha))}"
        )
    options = {"n_resamples": n_resamples, "rng": rng, "workers": workers}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DegenerateDataWarning)
        if adjust == "holm":
            answers = [_one_by_one(data, pairs, options) for _, _, pairs in asked]
        else:
            answers, joint = _together(data, [pairs for _, _, pairs in asked], options)
    # The row of all classes is tested by its smallest p-value, Bonferroni-adjusted.
    pvalues = [min(1.0, len(tests) * min(t.pvalue for t in tests)) for tests in answers]
    adjusted = holm(pvalues) if adjust == "holm" else joint
    rows = tuple(
        _audit_row(data, lens, question, tests, p, q, alpha, tolerance)
        for (lens, question, _), tests, p, q in zip(asked, answers, pvalues, adjusted, strict=True)
    )
    return _audit_report(data, rows, alpha, tolerance)


def _questions(data: Predictions) -> list[tuple[Lens | None, str, list[Pair]]]:
    """Return what is asked: lens (None for all classes), words, (statistic, lens) pairs."""
    binary, vector = ECE(UniformBins(15)), ECE(VarianceTree(max(20, data.n // 50)))

    def one(lens: Lens, words: str, statistic: Statistic) -> tuple[Lens, str, list[Pair]]:
        return lens, words, [(statistic, lens)]

    top = one(TopK(1), "is the confidence of the top class right?", binary)
    if data.n_classes == 2:
        words = f"is the probability of class {data.class_name(1)} right?"
        return [one(OneVsRest(1), words, binary), top]
    classes: list[Pair] = [(binary, OneVsRest(c)) for c in range(data.n_classes)]
    every = (None, "are all classes right? (worst of them)", classes)
    whole = one(Canonical(), "is the whole probability vector right?", vector)
    if data.n_classes == 3:
        return [top, every, whole]
    k = min(3, data.n_classes - 2)
    return [top, one(TopK(k), f"are the {k} largest probabilities right?", vector), every, whole]


def _one_by_one(
    data: Predictions, pairs: list[Pair], options: dict[str, Any]
) -> list[CalibrationTestResult]:
    """Test each pair by itself; only the worst keeps its null distribution, which can be large."""
    tests: list[CalibrationTestResult] = []
    worst = 0
    with progress(len(pairs), "classes") as advance:
        for j, (statistic, lens) in enumerate(pairs):
            test = calibration_test(data, None, statistic, lens=lens, **options)
            if test.ended == "interrupted":
                raise KeyboardInterrupt
            tests.append(test)
            loser = worst if _rank(test) < _rank(tests[worst]) else j
            if j > 0:
                tests[loser] = replace(tests[loser], null_distribution=None)
                worst = j if loser == worst else worst
            advance(1)
    return tests


def _together(
    data: Predictions, groups: list[list[Pair]], options: dict[str, Any]
) -> tuple[list[list[CalibrationTestResult]], list[float]]:
    """Test all pairs on the same draws; return the tests and the adjusted p-value by group."""
    joint = calibration_test(data, None, [pair for pairs in groups for pair in pairs], **options)
    if joint.ended == "interrupted":
        raise KeyboardInterrupt
    ends = np.cumsum([len(pairs) for pairs in groups])
    cuts = [slice(end - len(pairs), end) for end, pairs in zip(ends, groups, strict=True)]
    return [list(joint.tests[c]) for c in cuts], [min(joint.adjusted[c]) for c in cuts]


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
