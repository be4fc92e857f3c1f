"""Sentences of reports that say what was tested, counted and scored, and no more."""

import numpy as np
import pytest

import caltest as ct
from caltest.reports.measures import DataSummary, Measures

RUN = {"n_resamples": 199, "rng": 1}


def found(page, kind):
    return next(r for section in page.sections for r in section.results if isinstance(r, kind))


def test_a_report_with_a_tolerance_whose_tests_reject_does_not_speak_of_weak_evidence():
    rng = np.random.default_rng(4)
    p = rng.uniform(0.1, 0.9, 4000)
    y = (rng.random(4000) < np.clip(p + 0.05, 0, 1)).astype(int)
    page = ct.report(p, y, tolerance=0.2, **RUN)
    assert page.audit.rejects
    assert not page.audit.verdict.failed
    assert found(page, Measures).excluding  # intervals leave out what a calibrated model has
    assert not any("weak evidence" in sentence for sentence in page.summary)


def test_counts_of_events_stand_beside_estimated_risks_where_rows_were_censored():
    rng = np.random.default_rng(1)
    p = rng.uniform(0.05, 0.6, 600)
    event, censored = -5 * np.log1p(-rng.random(600)) / -np.log1p(-p), rng.exponential(8, 600)
    time, status = np.minimum(event, censored), (event <= censored).astype(int)
    followup = ct.Followup(time, status, horizon=5)
    page = ct.report(p, followup, profile="clinical", **RUN)
    data = found(page, DataSummary)
    table = data._tables()[0]
    cells = dict(zip(table[""], table["value"], strict=True))
    assert cells["events observed"] == str((status[time <= 5] == 1).sum())
    assert cells["estimated risk"].endswith("%")
    assert "events" not in cells
    assert f"{data.events} outcome events observed" in page.paragraph
    assert "estimated risk" in page.paragraph


def test_the_brier_score_of_many_classes_is_named_after_the_confidence():
    rng = np.random.default_rng(0)
    p = rng.dirichlet(np.ones(6), 500)
    y = (p.cumsum(axis=1) > rng.random((500, 1))).argmax(axis=1)
    page = ct.report(p, y, profile="clinical", **RUN)
    measures = found(page, Measures)
    j = measures.measure.index("Brier score")
    top = p.max(axis=1)
    right = p.argmax(axis=1) == y
    assert measures.value[j] == pytest.approx(((top - right) ** 2).mean())
    assert "not of the whole vector" in measures.meaning[j]
    assert "the Brier score of the confidence" in page.paragraph


def test_scores_of_a_comparison_are_named_after_all_classes():
    rng = np.random.default_rng(0)
    p, q = rng.dirichlet(np.ones(4), (2, 300))
    y = (p.cumsum(axis=1) > rng.random((300, 1))).argmax(axis=1)
    assert "Mean scores of all classes" in str(ct.compare(p, q, y))
    assert "Mean scores (proper" in str(ct.compare(p[:, 0], q[:, 0], y == 0))
