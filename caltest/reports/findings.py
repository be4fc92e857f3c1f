"""From tests to findings: the rows of an audit, each judged by itself."""

from __future__ import annotations

from dataclasses import fields, replace
from math import inf

import numpy as np

from caltest._base.facts import RIGHT
from caltest._base.multiplicity import holm
from caltest.inference.analysis import problem_through
from caltest.lenses import Lens, OneVsRest, TopK
from caltest.predictions import Predictions
from caltest.reports.questions import Question
from caltest.results import (
    AuditRow,
    CalibrationTestResult,
    Finding,
    Result,
    SegmentSearch,
    Subgroups,
    format_p,
)
from caltest.results.numbers import in_sd, percent
from caltest.results.subgroups import WORST_PRINTED, worst_of
from caltest.tally import Source

Tests = list[CalibrationTestResult]
#: The tests of a question, their p-value together, and what was found in subgroups or segments.
Answer = tuple[Tests, float, Subgroups | SegmentSearch | None]
#: Standard errors from which on lower predictions of events than of others are no chance.
WRONG_ORDER = 5.0


def row_of(
    data: Source, question: Question, answer: Answer, adjusted: float, alpha: float, noticed: float
) -> AuditRow:
    """Judge one question."""
    tests, pvalue, parts = answer
    if isinstance(parts, SegmentSearch):
        tests, critical = [_of_search(parts)], parts.passing
    worst = worst_test(question, tests)
    test = tests[worst]
    if not isinstance(parts, SegmentSearch):
        assert test.null_distribution is not None
        critical = test.null_distribution.ppf(1.0 - alpha)
    passing = critical if question.kind in ("error", "classes", "ordered", "groups") else 0.0
    impossible, groups = any(t.impossible for t in tests), None
    verdict = _finding(data.n, impossible, adjusted <= alpha, passing, noticed)
    if isinstance(parts, SegmentSearch):
        worst_part, detail = parts.worst.name, _of_segments(parts)
    elif parts is not None:
        worst_part = parts.names[parts.worst]
        groups = _judged(data, question.pairs[0][1], parts, alpha, noticed)
        detail = _of_subgroups(groups)
    else:
        worst_part = _worst(data, question, worst)
        detail = _detail(data, question, tests, worst, worst_part, adjusted <= alpha, alpha)
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
        worst=worst_part,
        detail=detail,
        search=parts if isinstance(parts, SegmentSearch) else None,
        groups=groups,
    )


def _finding(n: int, impossible: bool, rejected: bool, passing: float, noticed: float) -> Finding:
    """Judge a test by the errors that pass as noise, and those that are to be noticed."""
    if impossible:
        return Finding.IMPOSSIBLE_OUTCOME
    if rejected:
        return Finding.MISCALIBRATED
    # So few rows that a shift by that would as likely as not leave no trace.
    few = n < np.log(0.2) / np.log1p(-noticed)
    return Finding.TOO_LITTLE_DATA if few or passing > noticed else Finding.NO_EVIDENCE


def worst_test(question: Question, tests: Tests) -> int:
    """Return the number of the test that is shown for all: the one of the largest error.

    Statistics without bins are errors of different kinds: the furthest from chance is shown.
    """
    if question.kind == "shape":
        return max(range(len(tests)), key=lambda j: tests[j].excess / (tests[j].null_std or inf))
    return worst_of(tests)


def _worst(data: Source, question: Question, worst: int) -> str:
    statistic, lens = question.pairs[worst]
    if isinstance(lens, OneVsRest) and question.kind == "classes":
        return f"class {data.class_name(data.class_index(lens.c))}"
    if question.kind == "ordered":
        assert data.rows is not None  # a tally knows no order
        return lens.components(data.rows)[0]
    return "" if len(question.pairs) == 1 else type(statistic).__name__


def _of_search(search: SegmentSearch) -> CalibrationTestResult:
    """Return the difference of the worst segment as a test, whose p-value is that of the search."""
    shared = {field.name: vars(search)[field.name] for field in fields(Result)}
    names = ("lens", "null", "pvalue", "pvalue_error", "impossible", "clusters")
    return CalibrationTestResult(
        statistic=f"segments of {search.min_rows} rows",
        estimate=abs(search.worst.difference),
        pvalue_bracket=(search.pvalue, search.pvalue),
        null_mean=0.0,
        null_std=search.worst.chance,
        two_sided=False,
        centre=0.0,
        **{name: vars(search)[name] for name in names},
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


def _judged(data: Source, lens: Lens, parts: Subgroups, alpha: float, noticed: float) -> Subgroups:
    """Return subgroups with their means, and each judged as a row of an audit is."""
    assert data.rows is not None  # a tally has no subgroups
    whole, findings = replace(data.rows, by=None, features=None), list[Finding | None]()
    means = [problem_through(whole.take(r), lens).means() for r in data.rows.subgroups().values()]
    for test, p in zip(parts.tests, parts.adjusted, strict=True):
        law = None if test is None else test.null_distribution
        passing = inf if law is None else law.ppf(1.0 - alpha)
        findings.append(
            None if test is None or p is None
            else _finding(test.n, test.impossible > 0, p <= alpha, passing, noticed)
        )  # fmt: skip
    predicted, observed = zip(*means, strict=True)
    light = tuple(test and replace(test, null_distribution=None) for test in parts.tests)
    return replace(
        parts, tests=light, predicted=predicted, observed=observed, findings=tuple(findings)
    )


def _of_subgroups(parts: Subgroups) -> str:
    """Say which subgroups are wrong, by how much, and that it is no chance."""
    wrong = {}
    for j, (name, test, p) in enumerate(zip(parts.names, parts.tests, parts.adjusted, strict=True)):
        means, finding = (parts.predicted[j], parts.observed[j]), parts.findings[j]
        if finding is not None and finding.rejects and p is not None:
            called = " ".join([name, *_sides(*means, test.estimate)])
            wrong[name] = (
                f"{called}: error {test.shown_estimate}, chance alone {test.shown_floor}, "
                f"p {format_p(p)}{', an impossible outcome' * (test.impossible > 0)}, "
                f"{direction_of(*means, inf)}"
            )
    listed = "; ".join([*wrong.values()][:WORST_PRINTED])
    more = f"; and {len(wrong) - WORST_PRINTED} others" * (len(wrong) > WORST_PRINTED)
    listed = f" ({listed}{more})" if wrong else ""
    j, p = parts.worst, parts.adjusted[parts.worst]
    assert p is not None  # the worst of those that were tested
    worst, test, means = parts.names[j], parts.tests[j], (parts.predicted[j], parts.observed[j])
    error = (
        f": error {test.shown_estimate}, chance alone {test.shown_floor}, "
        f"p {format_p(p)} ({direction_of(*means, inf)})"
    )
    sentences = [
        f"Subgroups: {len(wrong)} of {len(parts.tested)} are miscalibrated on their own{listed}; "
        f"the worst is {worst}{error * (worst not in wrong)}."
    ]
    if parts.alike_pvalue is not None:
        sentences.append(f"That all are calibrated alike has p {format_p(parts.alike_pvalue)}.")
    return " ".join([*sentences, *(f"{note[0].upper()}{note[1:]}." for note in parts.remarks)])


def _detail(
    data: Source,
    question: Question,
    tests: Tests,
    worst: int,
    worst_part: str,
    rejected: bool,
    alpha: float,
) -> str:
    test = tests[worst]
    lens = question.pairs[worst][1]
    if question.kind in ("classes", "ordered"):
        wrong = sum(p <= alpha for p in holm([t.pvalue for t in tests]))
        what, which, side = "Cumulative probabilities", f"that of {worst_part}", ""
        if isinstance(lens, OneVsRest):
            what, which = "Classes", worst_part
            side = f" ({direction_of(*means_of(data, lens.c), test.estimate)})"
        return (
            f"{what}: {wrong} of {len(tests)} are miscalibrated on their own; the worst is "
            f"{which}: error {test.shown_estimate}, chance alone {test.shown_floor}{side}."
        )
    if question.kind == "shape":
        parts = [
            f"{type(statistic).__name__} {t.shown_estimate} (chance {t.shown_floor}, "
            f"p {format_p(t.pvalue)})"
            for t, (statistic, _) in zip(tests, question.pairs, strict=True)
        ]
        shared = set(tests[0].notes).intersection(*(t.notes for t in tests))
        notes = dict.fromkeys(n for t in tests for n in t.notes if n not in shared)
        return " ".join([f"Without bins: {'; '.join(parts)}.", *(f"Note: {n}." for n in notes)])
    if question.kind == "score" and rejected:
        sure, than = ("over", "worse") if test.excess > 0 else ("under", "better")
        return (
            f"Over the whole vector the model is {sure}confident: its score is "
            f"{in_sd(abs(test.excess), test.null_std).replace('+', '')} {than} than its "
            "probabilities promise."
        )
    if isinstance(data, Predictions) and data.n_classes == 2 and isinstance(lens, TopK):
        p, called = data.probs[:, 1], f"P({data.class_name(1)})"
        if p.max() <= 0.5 or p.min() >= 0.5:
            side = "exceeds" if p.max() <= 0.5 else "is below"
            return f"{lens!r} asks the same as {OneVsRest(1)!r} here: no {called} {side} 0.5."
    if question.kind == "error" and test.excess < -2.0 * test.null_std:
        return (
            f"{question.lens}: the error {test.shown_estimate} is below chance "
            f"({test.shown_floor}): outcomes are more regular than predicted, which this row "
            "cannot test."
        )
    return ""


def of_other_label(data: Source) -> str:
    """Ask whether predictions are of the other label, where events have much lower ones, or ""."""
    if not isinstance(data, Predictions) or data.n_classes > 2 or data.classes == RIGHT:
        return ""
    p, event = data.risks, data.labels == 1
    if data.followup is not None or data.multilabel or min(event.sum(), (~event).sum()) < 2:
        return ""
    low, high = p[event], p[~event]
    spread = np.hypot(*(each.std() / np.sqrt(each.size) for each in (low, high)))
    if low.mean() - high.mean() >= -WRONG_ORDER * spread:
        return ""
    other = data.class_name(0)
    return (
        f"Where class {data.class_name(1)} was observed, its predictions are lower "
        f"({percent(low.mean(), high.mean())} on average) than elsewhere "
        f"({percent(high.mean(), low.mean())}): are they the probability of {other}? Then say "
        f"pos_label={other!r} (--pos-label {other}), or give 1 − p."
    )


def direction_of(predicted: float, observed: float, error: float = 0.0) -> str:
    """Return mean prediction and frequency, and the side if that is at least half of the error."""
    means = f"{percent(predicted, observed)} on average, observed {percent(observed, predicted)}"
    return ": ".join([f"predicts {means}", *_sides(predicted, observed, error)])


def _sides(predicted: float, observed: float, error: float) -> list[str]:
    """Return on which side predictions are, if their means show at least half of an error."""
    side = "too high" if predicted > observed else "too low"
    return [side] * (abs(predicted - observed) >= 0.5 * error)


def means_of(data: Source, c: int | str) -> tuple[float, float]:
    """Return the mean prediction of a class, and how often it occurred."""
    return problem_through(data, OneVsRest(c)).means()
