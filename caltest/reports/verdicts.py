"""The verdict of an audit on all its rows together, and its summary in words."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from math import exp, inf

import numpy as np

from caltest._base.facts import RIGHT
from caltest._base.written import Doubt, several
from caltest.errors import StatisticError
from caltest.inference import cox_recalibration
from caltest.inference.analysis import problem_through
from caltest.lenses import OneVsRest, TopK
from caltest.reports.findings import direction_of, means_of, of_other_label
from caltest.reports.questions import sums_of, whole_rows
from caltest.reports.size import Bounds
from caltest.results import (
    AuditReport,
    AuditRow,
    AuditVerdict,
    CoxRecalibration,
    Finding,
    format_value,
)
from caltest.results.numbers import percent
from caltest.tally import Source

#: Directions of the top class in words.
CONFIDENCE = {
    "overconfident": "overconfident",
    "underconfident": "underconfident",
    "mixed": "overconfident in some ranges and underconfident in others",
}
#: An error of this size must not pass as noise where no tolerance is given.
NOTICED = 0.1


def report_of(
    data: Source,
    rows: tuple[AuditRow, ...],
    alpha: float,
    tolerance: float | None,
    bounds: Bounds | None,
    elsewhere: dict[str, Bounds],
) -> AuditReport:
    """Judge all of them together."""
    one_event = data.followup is not None or data.multilabel  # nothing is asked of the top class
    if data.classes == RIGHT or one_event:
        subject, (confidence, accuracy) = "event", means_of(data, 1)
    else:
        subject, (confidence, accuracy) = "top", problem_through(data, TopK(1)).means()
    named = rows[0].subject == "event" and data.classes != RIGHT
    event = means_of(data, 1) if named else (np.nan, np.nan)
    top = next(r for r in rows if r.subject == subject and r.aspect in ("error", "groups"))
    impossible, line = data.impossible, None
    if impossible.size or any(row.verdict.rejects for row in rows):
        verdict = AuditVerdict.MISCALIBRATED
        direction, summary = _wrong(data, rows, top, alpha, (confidence, accuracy), event)
        of_all = [r for r in rows if r.subject == "event" and r.aspect in ("error", "shape")]
        line = _line(data, alpha) if any(row.verdict.rejects for row in of_all) else None
        summary[1:1] = [] if line is None else [_extreme(data, line)]
    else:
        direction, (verdict, passed) = "", _not_rejected(data, rows[0], tolerance)
        summary = [passed] if tolerance is None else []
    summary[:0] = filter(None, [of_other_label(data)])
    if bounds is not None:
        beside = "."
        if tolerance is not None:
            verdict, beside = _beside(tolerance, data.n, rows, bounds, elsewhere)
        summary.append(f"The error of new data ({rows[0].lens}) lies {bounds}{beside}")
    if verdict is not AuditVerdict.TOO_LITTLE_DATA:
        summary += [
            f"Too little data for {row.lens}: errors of up to {_passing(row)} pass as noise."
            for row in rows
            if row.verdict is Finding.TOO_LITTLE_DATA
        ]
    if impossible.size:
        summary.append(_refuted(data))
    doubts = [note for note in data.notes if isinstance(note, Doubt)]
    summary[:0] = [f"This is in doubt: {note}." for note in doubts]
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
        observed=event[1],
        predicted=event[0],
        slope=np.nan if line is None else line.slope,
        slope_low=np.nan if line is None else line.slope_interval[0],
        slope_high=np.nan if line is None else line.slope_interval[1],
        low=np.nan if bounds is None else bounds.low,
        high=np.nan if bounds is None else bounds.high,
        alpha=alpha,
        tolerance=tolerance,
        impossible=impossible.size,
        notes=tuple(_notes(data, rows)),
        unsearched=_unsearched(data),
        copies=data.copies,
        followup=top.test.followup,
    )


def _line(data: Source, alpha: float) -> CoxRecalibration | None:
    """Return Cox's line of the event of two classes where its slope is not 1."""
    p = problem_through(data, OneVsRest(1)).probs
    if data.multilabel or not p.min() > 0.0:  # log-odds of 0 and 1 would decide alone
        return None
    with suppress(StatisticError):
        rows = whole_rows(data)
        rows = rows if data.followup is not None else sums_of(rows, OneVsRest(1))
        line = cox_recalibration(rows, lens=OneVsRest(1), level=1.0 - alpha)
        low, high = line.slope_interval
        return None if low <= 1.0 <= high else line
    return None


def _extreme(data: Source, line: CoxRecalibration) -> str:
    """Say whether predictions are too extreme, and where they go over from too low to too high."""
    p = problem_through(data, OneVsRest(1)).probs[:, 0]
    turn = 1.0 / (1.0 + exp(min(-line.intercept / (1.0 - line.slope), 700.0)))
    sides = ("high", "low") if line.slope < 1.0 else ("low", "high")
    words = "too extreme" if line.slope < 1.0 else "not extreme enough"
    words = "in the wrong order" if line.slope < 0.0 else words
    where = ", beside their level"
    if np.quantile(p, 0.05) < turn < np.quantile(p, 0.95):  # rows of both sides show it
        where = f": above {percent(turn, 0.0)} they are too {sides[0]}, below too {sides[1]}"
    ends = (line.slope, *line.slope_interval)
    slope, low, high = (format_value(each, line.slope_se) for each in ends)
    return (
        f"Predictions are {words}{where} (calibration slope {slope}, {100 * line.level:.4g} % "
        f"interval {low} to {high}; 1 if calibrated)."
    )


def _refuted(data: Source) -> str:
    """Say what outcomes of probability 0 mean."""
    impossible = data.impossible
    first, row = "", int(impossible[0])
    if data.has_rows and data.rows is not None:
        row = row if data.rows.places is None else int(data.rows.places[row])
        first = f" (the first in row {row + 1}, counted from 1)"
    wrong = ", where 0 or 1 was predicted" if data.n_classes == 2 else ""
    others = rounded = ""
    if wrong and data.rows is not None:
        p = data.rows.probs[:, 1]
        unsure = replace(data.rows, by=None, features=None).take((p > 0.0) & (p < 1.0))
        rounded = " or leave these rows out with rounded=True (--rounded)"
        if unsure.n:
            others = f" Elsewhere the model {direction_of(*means_of(unsure, 1), inf)}."
    return (
        f"{several(impossible.size, 'outcome')} occurred that had probability exactly 0{wrong}"
        f"{first}: that alone refutes calibration, unless the probabilities were rounded to 0: "
        f"then give them unrounded{rounded}.{others}"
    )


def _wrong(
    data: Source,
    rows: tuple[AuditRow, ...],
    top: AuditRow,
    alpha: float,
    means: tuple[float, float],
    event_means: tuple[float, float],
) -> tuple[str, list[str]]:
    """Return in which direction the model is wrong, and the sentences about it."""
    (confidence, accuracy), (mean, rate), direction = means, event_means, ""
    called = f"Class {data.class_name(1)}"
    sentences, gap = list[str](), confidence - accuracy
    significant = [row for row in rows if row.verdict.rejects and row.adjusted <= alpha]
    of_one = [row for row in significant if row.subject in ("event", "top")]
    errors = [row for row in of_one if row.aspect == "error"]
    shown = [row for row in of_one if row.aspect in ("error", "shape")]
    event = next((row for row in errors if row.subject == "event"), None)
    if shown and (mean != mean or top.subject == "top"):
        if abs(gap) >= 0.5 * top.test.estimate:
            direction = "overconfident" if gap > 0 else "underconfident"
        elif top in errors:
            direction = "mixed"
    if shown and mean == mean:
        if abs(mean - rate) >= 0.5 * (errors or rows)[0].test.estimate:
            # One direction only: of a rare event the top class says the contrary.
            direction = "too high" if mean > rate else "too low"
            sentences.append(f"{called}: {direction_of(mean, rate)}.")
        elif event is not None:
            both = f"predicts {percent(mean, rate)} on average, observed {percent(rate, mean)}"
            sentences.append(f"{called}: too high in some ranges and too low in others ({both}).")
    if direction in CONFIDENCE:
        sentences.append(
            f"The model is {CONFIDENCE[direction]}: it claims {percent(confidence, accuracy)} on "
            f"average and is right in {percent(accuracy, confidence)} of cases."
        )
    if significant and not errors and rows[0].aspect == "error":
        judged = rows[0].verdict is not Finding.TOO_LITTLE_DATA
        passed = "passes as noise" if judged else "cannot be judged"
        sentences.append(
            f"The binned error ({rows[0].lens}) {passed}, but miscalibration shows in: "
            f"{', '.join(row.lens for row in significant)}."
        )
    main = event or (top if top in errors else None)
    if main is not None:
        sentences.append(
            f"The error ({main.lens}) is {main.test.shown_estimate}; chance alone would show "
            f"{main.test.shown_floor} on these predictions."
        )
    score = next((row for row in rows if row.verdict.rejects and row.aspect == "score"), None)
    if not direction and score is not None:
        direction = "overconfident" if score.test.excess > 0 else "underconfident"
    return direction, sentences


def _passing(row: AuditRow) -> str:
    """Return the largest error that passes as noise."""
    return format_value(row.critical, row.test.null_std)


def _notes(data: Source, rows: tuple[AuditRow, ...]) -> list[str]:
    lenses = [row.lens if row.aspect in ("classes", "ordered") else row.test.lens for row in rows]
    lenses_of: dict[str, dict[str, None]] = {}
    for lens, row in zip(lenses, rows, strict=True):
        for note in row.test.notes:
            if note not in row.detail and note not in data.notes:
                lenses_of.setdefault(note, {})[lens] = None
    everywhere = len(set(lenses))
    notes = [note for note in data.notes if not isinstance(note, Doubt)]
    for note, at in lenses_of.items():
        notes.append(note if len(at) == everywhere else f"{', '.join(at)}: {note}")
    if rows[0].test.clusters is not None:
        notes.append(f"{rows[0].lens}: rows come in clusters: {rows[0].test.clusters}")
    if data.weights is not None:
        alike = f"{data.effective_n:.1f} of equal weight (effective n)"
        notes.append(f"rows are weighted, and as informative as {alike}")
    return notes


def _unsearched(data: Source) -> tuple[str, ...]:
    """Return columns of the table that a search of segments would take."""
    rows = data.rows
    if not data.has_rows or rows is None or rows.features is not None or rows.horizon is not None:
        return ()
    return () if rows.followup is not None or rows.multilabel else rows.unused


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
        if worst.low > tolerance:
            verdict, beyond = AuditVerdict.MATTERS, "is larger than"
        else:
            verdict, beyond = AuditVerdict.CANNOT_TELL, "may be larger than"
        return verdict, f". That of {name} {beyond} {limit}: it lies {worst}."
    if within:
        verdicts = (AuditVerdict.WITHIN_TOLERANCE, AuditVerdict.TOO_LITTLE_TO_MATTER)
        real = ": real, but too little to matter" * rejected
        return verdicts[rejected], f", so it is within {limit}{real}."
    needed = bounds.rows_to_tell(n, tolerance)
    tells = f"; about {needed} rows like these would tell, unless it is close to that"
    tells *= needed is not None
    undecided = f", so whether it is larger than {limit} cannot be told{tells}."
    return AuditVerdict.CANNOT_TELL, undecided + " It is real, whatever its size." * rejected


def noticeable_error(data: Source) -> float:
    """Return the error that data have to show: 0.1, of a rarer event its mean prediction."""
    if data.n_classes > 2 or data.multilabel:
        return NOTICED
    mean = means_of(data, 1)[0]
    return min(NOTICED, mean or NOTICED, 1.0 - mean or NOTICED)


def _not_rejected(data: Source, row: AuditRow, tolerance: float | None) -> tuple[AuditVerdict, str]:
    """Judge the headline, where nothing was found."""
    noticed = tolerance or noticeable_error(data)
    if row.verdict is not Finding.TOO_LITTLE_DATA:
        return AuditVerdict.CALIBRATED, (
            "Every error that was asked about is one that a calibrated model would show. An error "
            f"of up to {_passing(row)} ({row.lens}) passes as noise at this sample size."
        )
    needed = int(np.ceil(data.n * max(1.0, row.critical / noticed) ** 2 / 100.0)) * 100
    return AuditVerdict.TOO_LITTLE_DATA, (
        f"With {several(data.n, 'prediction')} an error of the size to be noticed ({noticed:.2g}) "
        "can pass as noise: these data can neither confirm nor refute calibration. At least "
        f"{needed} rows like these are needed to tell."
    )
