"""From tests to findings: the rows of an audit, its verdict, and what it says in words."""

from __future__ import annotations

from dataclasses import fields
from math import inf

import numpy as np

from caltest._base.facts import RIGHT
from caltest._base.multiplicity import holm
from caltest._base.written import several
from caltest.inference.analysis import problem_through
from caltest.lenses import OneVsRest, TopK
from caltest.predictions import Predictions
from caltest.reports.questions import Question, impossible_in
from caltest.reports.size import Bounds
from caltest.results import (
    AuditReport,
    AuditRow,
    AuditVerdict,
    CalibrationTestResult,
    Finding,
    Result,
    SegmentSearch,
    Subgroups,
    format_p,
    format_value,
)
from caltest.results.calibration import worst_of
from caltest.results.numbers import percent
from caltest.tally import AnyTally

Tests = list[CalibrationTestResult]
#: The tests of a question, their p-value together, and what was found in subgroups or segments.
Answer = tuple[Tests, float, Subgroups | SegmentSearch | None]
#: Directions of the top class in words.
CONFIDENCE = {
    "overconfident": "overconfident",
    "underconfident": "underconfident",
    "mixed": "overconfident in some ranges and underconfident in others",
}
#: An error of this size must not pass as noise where no tolerance is given.
NOTICED = 0.1


def row_of(
    data: Predictions | AnyTally,
    question: Question,
    answer: Answer,
    adjusted: float,
    alpha: float,
    noticed: float,
) -> AuditRow:
    """Judge one question."""
    tests, pvalue, parts = answer
    tests = [_of_search(parts)] if isinstance(parts, SegmentSearch) else tests
    worst = worst_test(question, tests)
    test = tests[worst]
    if isinstance(parts, SegmentSearch):
        critical = parts.passing
    else:
        assert test.null_distribution is not None
        critical = test.null_distribution.ppf(1.0 - alpha)
    # So few rows that a shift by that would as likely as not leave no trace.
    few = data.n < np.log(0.2) / np.log1p(-noticed)
    if any(t.impossible for t in tests):
        verdict = Finding.IMPOSSIBLE_OUTCOME
    elif adjusted <= alpha:
        verdict = Finding.MISCALIBRATED
    else:
        blunt = question.kind in ("error", "classes", "ordered", "groups") and critical > noticed
        verdict = Finding.TOO_LITTLE_DATA if few or blunt else Finding.NO_EVIDENCE
    shown = _worst(data, question, worst)
    detail = _detail(data, question, tests, worst, adjusted <= alpha, alpha)
    if isinstance(parts, SegmentSearch):
        shown, detail = parts.worst.name, _of_segments(parts)
    elif parts is not None:
        shown, detail = _of_subgroups(parts, alpha)
    return AuditRow(
        subject=question.subject,
        lens=question.lens,
        question=question.words,
        aspect=question.kind,
        test=test,
        pvalue=pvalue,
        adjusted=adjusted,
        critical=critical,
        verdict=verdict,
        worst=shown,
        detail=detail,
    )


def worst_test(question: Question, tests: Tests) -> int:
    """Return the number of the test that is shown for all: the one of the largest error.

    Statistics without bins are errors of different kinds: the furthest from chance is shown.
    """
    if question.kind == "shape":
        return max(range(len(tests)), key=lambda j: tests[j].excess / (tests[j].null_std or inf))
    return worst_of(tests)


def _worst(data: Predictions | AnyTally, question: Question, worst: int) -> str:
    if question.kind == "classes":
        return f"class {data.class_name(_class_of(question, worst))}"
    if question.kind == "ordered":
        assert isinstance(data, Predictions)
        return question.pairs[worst][1].components(data)[0]
    if len(question.pairs) == 1:
        return ""
    return type(question.pairs[worst][0]).__name__


def _class_of(question: Question, number: int) -> int:
    lens = question.pairs[number][1]
    assert isinstance(lens, OneVsRest)
    assert isinstance(lens.c, int)
    return lens.c


def _of_search(search: SegmentSearch) -> CalibrationTestResult:
    """Return the difference of the worst segment as a test, whose p-value is that of the search."""
    shared = {field.name: getattr(search, field.name) for field in fields(Result)}
    names = ("lens", "null", "pvalue", "pvalue_error", "impossible", "clusters")
    return CalibrationTestResult(
        statistic=f"segments of {search.min_rows} rows",
        estimate=abs(search.worst.difference),
        pvalue_bracket=(search.pvalue, search.pvalue),
        null_mean=0.0,
        null_std=search.worst.chance,
        two_sided=False,
        centre=0.0,
        **{name: getattr(search, name) for name in names},
        **shared,
    )


def _of_segments(search: SegmentSearch) -> str:
    """Return which segments are listed, or what could have been found."""
    searched = f"Segments: {len(search.segments)} of {search.n_segments} searched are listed"
    if not search.segments:
        return f"{searched}. {search.reach_in_words}".rstrip()
    named = "; ".join(
        f"{s.name} (predicts {percent(s.predicted, s.observed)} on average, observed "
        f"{percent(s.observed, s.predicted)})"
        for s in search.segments[:3]
    )
    return f"{searched}: {named}{'; …' * (len(search.segments) > 3)}. {search.gain_in_words}"


def _of_subgroups(parts: Subgroups, alpha: float) -> tuple[str, str]:
    named = zip(parts.names, parts.adjusted, strict=True)
    found = [name for name, p in named if p is not None and p <= alpha]
    listed = f" ({', '.join(found[:5])}{', …' * (len(found) > 5)})" if found else ""
    worst, test = parts.names[parts.worst], parts.tests[parts.worst]
    said = [
        f"Subgroups: {len(found)} of {len(parts.tested)} are miscalibrated on their own{listed}; "
        f"the worst is {worst}: error {test.shown_estimate}, chance alone {test.shown_floor}."
    ]
    if parts.alike_pvalue is not None:
        said.append(f"That all are calibrated alike has p {format_p(parts.alike_pvalue)}.")
    return worst, " ".join([*said, *(f"Note: {note}." for note in parts.notes)])


def _detail(
    data: Predictions | AnyTally,
    question: Question,
    tests: Tests,
    worst: int,
    rejected: bool,
    alpha: float,
) -> str:
    test = tests[worst]
    if question.kind == "classes":
        wrong = sum(p <= alpha for p in holm([t.pvalue for t in tests]))
        c = _class_of(question, worst)
        predicted, occurred = _means(data, c)
        return (
            f"Classes: {wrong} of {len(tests)} are miscalibrated on their own; the worst is "
            f"{data.class_name(c)}: error {test.shown_estimate}, chance alone {test.shown_floor} "
            f"({_direction(predicted, occurred)})."
        )
    if question.kind == "ordered":
        wrong = sum(p <= alpha for p in holm([t.pvalue for t in tests]))
        return (
            f"Cumulative probabilities: {wrong} of {len(tests)} are miscalibrated on their own; "
            f"the worst is that of {_worst(data, question, worst)}: error {test.shown_estimate}, "
            f"chance alone {test.shown_floor}."
        )
    if question.kind == "shape":
        parts = [
            f"{type(statistic).__name__} {t.shown_estimate} (chance {t.shown_floor}, "
            f"p {format_p(t.pvalue)})"
            for t, (statistic, _) in zip(tests, question.pairs, strict=True)
        ]
        shared = set(tests[0].notes).intersection(*(t.notes for t in tests))
        said = dict.fromkeys(n for t in tests for n in t.notes if n not in shared)
        return " ".join([f"Without bins: {'; '.join(parts)}.", *(f"Note: {n}." for n in said)])
    if question.kind == "score" and rejected:
        worse = test.excess > 0
        return (
            f"Over the whole vector the model is {'over' if worse else 'under'}confident: its "
            f"score is {abs(test.excess / test.null_std):.1f} standard deviations "
            f"{'worse' if worse else 'better'} than its probabilities promise."
        )
    if question.kind == "error" and test.excess < -2.0 * test.null_std:
        return (
            f"{question.lens}: the error {test.shown_estimate} is below chance "
            f"({test.shown_floor}): outcomes are more regular than predicted, which this row "
            "cannot test."
        )
    return ""


def report_of(
    data: Predictions | AnyTally,
    rows: tuple[AuditRow, ...],
    alpha: float,
    tolerance: float | None,
    bounds: Bounds | None,
    elsewhere: dict[str, Bounds],
) -> AuditReport:
    """Judge all of them together."""
    if data.classes == RIGHT or _one_event(data):
        subject, (confidence, accuracy) = "event", _means(data, 1)
    else:
        subject, (confidence, accuracy) = "top", problem_through(data, TopK(1)).means()
    top = next(r for r in rows if r.subject == subject and r.aspect in ("error", "groups"))
    impossible = impossible_in(data)
    if impossible.size or any(row.verdict.rejects for row in rows):
        verdict = AuditVerdict.MISCALIBRATED
        direction, summary = _wrong(data, rows, top, alpha, (confidence, accuracy))
    else:
        direction, (verdict, found) = "", _not_rejected(data, rows[0], tolerance or NOTICED)
        summary = [found] if tolerance is None else []
    said = "."
    if bounds is not None:
        if tolerance is not None:
            verdict, said = _beside(tolerance, data.n, rows, bounds, elsewhere)
        summary.append(f"The error of new data ({rows[0].lens}) lies {bounds}{said}")
    if verdict is not AuditVerdict.TOO_LITTLE_DATA:
        summary += [
            f"Too little data for {row.lens}: errors of up to {_passing(row)} pass as noise."
            for row in rows
            if row.verdict is Finding.TOO_LITTLE_DATA
        ]
    if impossible.size:
        rows_known = isinstance(data, Predictions)
        where = f" (the first in row {impossible[0] + 1})" if rows_known else ""
        summary.append(
            f"{several(impossible.size, 'outcome')} occurred that had probability exactly 0{where}"
            ": that alone refutes calibration, unless the probabilities were rounded to 0."
        )
    return AuditReport(
        verdict=verdict,
        summary=tuple(summary),
        direction=direction,
        rows=rows,
        n=data.n,
        n_classes=data.n_classes,
        accuracy=accuracy,
        folds=top.test.folds,
        series=top.test.series,
        confidence=confidence,
        low=np.nan if bounds is None else bounds.low,
        high=np.nan if bounds is None else bounds.high,
        alpha=alpha,
        tolerance=tolerance,
        impossible=impossible.size,
        notes=tuple(_notes(data, rows, top)),
        copies=data.copies,
        followup=top.test.followup,
    )


def _one_event(data: Predictions | AnyTally) -> bool:
    """Say whether all is asked of one event, and nothing of the top class."""
    return isinstance(data, Predictions) and (data.followup is not None or data.multilabel)


def _wrong(
    data: Predictions | AnyTally,
    rows: tuple[AuditRow, ...],
    top: AuditRow,
    alpha: float,
    means: tuple[float, float],
) -> tuple[str, list[str]]:
    """Return in which direction the model is wrong, and the sentences about it."""
    (confidence, accuracy), direction, sentences = means, "", list[str]()
    one_event = _one_event(data)
    if top.adjusted <= alpha and not one_event:
        gap = confidence - accuracy
        one_way = abs(gap) >= 0.5 * top.test.estimate
        direction = ("overconfident" if gap > 0 else "underconfident") if one_way else "mixed"
    significant = [row for row in rows if row.verdict.rejects and row.adjusted <= alpha]
    errors = [r for r in significant if r.subject in ("event", "top") and r.aspect == "error"]
    event = next((row for row in errors if row.subject == "event"), None)
    if errors and data.n_classes == 2 and (top.subject == "top" or one_event):
        mean, rate = _means(data, 1)
        if abs(mean - rate) >= 0.5 * errors[0].test.estimate:
            # One direction only: of a rare event the top class says the contrary.
            direction = "too high" if mean > rate else "too low"
            sentences.append(f"Class {data.class_name(1)}: {_direction(mean, rate)}.")
        elif event is not None:
            sentences.append(
                f"Class {data.class_name(1)}: too high in some ranges and too low in others "
                f"(predicts {percent(mean, rate)} on average, observed {percent(rate, mean)})."
            )
    if direction in CONFIDENCE:
        sentences.append(
            f"The model is {CONFIDENCE[direction]}: it claims {percent(confidence, accuracy)} on "
            f"average and is right in {percent(accuracy, confidence)} of cases."
        )
    elif significant and not errors and not one_event:
        passed = "passes as noise" if top.verdict is Finding.NO_EVIDENCE else "cannot be judged"
        sentences.append(
            f"The binned error of the confidence ({top.lens}) {passed}, but miscalibration shows "
            "in: " + ", ".join(row.lens for row in significant) + "."
        )
    main = event or (top if direction else None)
    if main is not None:
        sentences.append(
            f"The error ({main.lens}) is {main.test.shown_estimate}; chance alone would show "
            f"{main.test.shown_floor} on these predictions."
        )
    score = next((row for row in rows if row.verdict.rejects and row.aspect == "score"), None)
    if not direction and score is not None:
        direction = "overconfident" if score.test.excess > 0 else "underconfident"
    return direction, sentences


def _direction(predicted: float, observed: float) -> str:
    """Return mean prediction and frequency, and on which side the prediction lies."""
    side = "high" if predicted > observed else "low"
    means = f"{percent(predicted, observed)} on average, observed {percent(observed, predicted)}"
    return f"predicts {means}: too {side}"


def _passing(row: AuditRow) -> str:
    """Return the largest error that passes as noise."""
    return format_value(row.critical, row.test.null_std)


def _notes(data: Predictions | AnyTally, rows: tuple[AuditRow, ...], top: AuditRow) -> list[str]:
    lenses = [row.lens if row.aspect in ("classes", "ordered") else row.test.lens for row in rows]
    lenses_of: dict[str, dict[str, None]] = {}
    for lens, row in zip(lenses, rows, strict=True):
        for note in row.test.notes:
            if note not in row.detail and note not in data.notes:
                lenses_of.setdefault(note, {})[lens] = None
    everywhere, notes = len(set(lenses)), list(data.notes)
    for note, at in lenses_of.items():
        notes.append(note if len(at) == everywhere else f"{', '.join(at)}: {note}")
    if top.test.clusters is not None:
        notes.append(f"rows come in clusters: {top.test.clusters}")
    if data.weights is not None:
        notes.append(f"rows are weighted: effective n = {data.effective_n:.1f}")
    return notes


def _beside(
    tolerance: float,
    n: int,
    rows: tuple[AuditRow, ...],
    bounds: Bounds,
    elsewhere: dict[str, Bounds],
) -> tuple[AuditVerdict, str]:
    """Judge the error of the first row beside the tolerance, unless another row shows more."""
    rejected = any(row.verdict.rejects for row in rows)
    within, limit = bounds.within(tolerance), f"the tolerance {tolerance:g}"
    if within is False:
        return AuditVerdict.MATTERS, f", so it is larger than {limit}."
    if elsewhere:
        name, worst = max(elsewhere.items(), key=lambda item: item[1].low)
        matters = worst.low > tolerance
        verdict = AuditVerdict.MATTERS if matters else AuditVerdict.CANNOT_TELL
        beyond = "is larger than" if matters else "may be larger than"
        return verdict, f". That of {name} {beyond} {limit}: it lies {worst}."
    if within and rejected:
        said = f", so it is within {limit}: real, but too little to matter."
        return AuditVerdict.TOO_LITTLE_TO_MATTER, said
    if within:
        return AuditVerdict.WITHIN_TOLERANCE, f", so it is within {limit}."
    needed = bounds.rows_to_tell(n, tolerance)
    tells = "" if needed is None else f"; about {needed} predictions would tell"
    said = f", so whether it is larger than {limit} cannot be told{tells}."
    return AuditVerdict.CANNOT_TELL, said + " It is real, whatever its size." * rejected


def _not_rejected(
    data: Predictions | AnyTally, row: AuditRow, noticed: float
) -> tuple[AuditVerdict, str]:
    """Judge the headline, where nothing was found."""
    if row.verdict is not Finding.TOO_LITTLE_DATA:
        return AuditVerdict.CALIBRATED, (
            "Every error that could be tested is one that a calibrated model would show. An error "
            f"of up to {_passing(row)} ({row.lens}) passes as noise at this sample size."
        )
    needed = int(np.ceil(data.n * max(1.0, row.critical / noticed) ** 2 / 100.0)) * 100
    return AuditVerdict.TOO_LITTLE_DATA, (
        f"With {several(data.n, 'prediction')} an error of the size to be noticed ({noticed:g}) "
        "can pass as noise: these data can neither confirm nor refute calibration. At least "
        f"{needed} predictions are needed."
    )


def _means(data: Predictions | AnyTally, c: int) -> tuple[float, float]:
    """Return the mean prediction of a class, and how often it occurred."""
    return problem_through(data, OneVsRest(c)).means()
