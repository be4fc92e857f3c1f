"""Close enough, and how many rows: equivalence, tolerance, gates and plans."""

from __future__ import annotations

import json

import numpy as np
import pytest
from scipy.stats import binom

import caltest as ct
from caltest import AuditVerdict

U = ct.UniformBins
ESTIMATORS = [ct.ECE(10), ct.DebiasedL1(10), ct.DebiasedL2(10), ct.RMSCE(U(10)), ct.MCE(U(5))]


def drawn(n, gap=0.0, seed=0, sign=None):
    """Uniform predictions, and outcomes whose rate lies above by ``gap``, or by its sign."""
    rng = np.random.default_rng(seed)
    p = rng.random(n)
    shift = gap if sign is None else gap * sign(p)
    return p, (rng.random(n) < np.clip(p + shift, 0.0, 1.0)).astype(int)


@pytest.mark.parametrize("statistic", ESTIMATORS, ids=repr)
@pytest.mark.parametrize("gap", [0.0, 0.1])
def test_the_smallest_margin_is_the_upper_bound_and_the_p_value_its_inverse(statistic, gap):
    run = {"rng": 3, "n_resamples": 999}
    data = ct.Predictions.of(*drawn(700, gap, seed=4))
    test = ct.equivalence_test(data, None, statistic, margin=0.05, **run)
    bound = ct.confidence_interval(data, None, statistic, side="upper", **run).high
    assert test.smallest_margin == pytest.approx(bound, rel=3e-4)
    for factor in (0.99, 1.01):
        again = ct.equivalence_test(
            data, None, statistic, margin=factor * test.smallest_margin, **run
        )
        assert again.equivalent == (factor > 1.0)
        assert abs(again.pvalue - 0.05) < 0.02
        assert (again.pvalue <= 0.05 + 1e-3) == (factor > 1.0) or again.pvalue == 0.05


@pytest.mark.parametrize("statistic", [ct.ECE(1), ct.MCE(U(1)), ct.DebiasedL2(1)], ids=repr)
@pytest.mark.parametrize(("n", "p", "rate"), [(60, 0.3, 0.4), (60, 0.5, 0.3), (200, 0.1, 0.13)])
def test_size_at_the_margin_by_enumeration(statistic, n, p, rate):
    """All predictions are p, so the number of events is all there is; its law is binomial."""
    margin = (rate - p) ** 2 if isinstance(statistic, ct.DebiasedL2) else abs(rate - p)
    size = 0.0
    for events in range(n + 1):
        mass = binom.pmf(events, n, rate)
        if mass > 1e-6:
            labels = (np.arange(n) < events).astype(int)
            test = ct.equivalence_test(
                np.full(n, p), labels, statistic, margin=margin, n_resamples=999, rng=events
            )
            size += mass * test.equivalent
    assert size <= 0.055


def test_the_exact_p_value_of_the_largest_gap():
    p, labels = np.full(50, 0.3), (np.arange(50) < 14).astype(int)
    test = ct.equivalence_test(p, labels, ct.MCE(U(1)), margin=0.2)
    # Rates .1 and .5 are both to be refuted.
    expected = max(binom.cdf(14, 50, 0.5), binom.sf(13, 50, 0.1))
    assert test.pvalue == pytest.approx(expected, rel=1e-2)
    assert test.n_resamples == 0


def test_clusters_and_weights_widen_the_bound():
    p, y = drawn(1000, seed=2)
    clusters = np.repeat(np.arange(200), 5)
    y = np.repeat(y[::5], 5)
    p = np.repeat(p[::5], 5)
    alone = ct.equivalence_test(p, y, margin=0.05, rng=0, n_resamples=999)
    known = ct.equivalence_test(p, y, margin=0.05, rng=0, n_resamples=999, clusters=clusters)
    assert known.n_clusters == 200
    once = ct.equivalence_test(p[::5], y[::5], margin=0.05, rng=0, n_resamples=999)
    assert known.smallest_margin == pytest.approx(once.smallest_margin, rel=0.06)
    assert known.smallest_margin > alone.smallest_margin
    heavy = ct.equivalence_test(p, y, margin=0.05, weights=np.arange(1000) % 20 + 1.0, rng=0)
    assert heavy.effective_n < 800
    with pytest.raises(ct.StatisticError, match="no upper bound of MCE"):
        ct.equivalence_test(p, y, ct.MCE(U(5)), margin=0.05, clusters=clusters)
    with pytest.raises(ct.StatisticError, match="no upper bound of SKCE"):
        ct.equivalence_test(p, y, ct.SKCE(), margin=0.05)
    with pytest.raises(ct.StatisticError, match="margin must be a number > 0"):
        ct.equivalence_test(p, y, margin=0.0)


def test_an_equivalence_test_prints_and_comes_back_from_json():
    test = ct.equivalence_test(*drawn(5000, seed=1), margin=0.05, rng=1)
    assert test.equivalent
    assert "smaller than the margin 0.05" in str(test)
    assert type(test).from_json(test.to_json()).as_dict() == test.as_dict()
    assert float(test) == test.pvalue


def up_and_down(p):
    return np.where(p < 0.5, 1.0, -1.0)


@pytest.mark.parametrize(
    ("n", "gap", "tolerance", "verdict", "rejects"),
    [
        (2000, 0.1, 0.05, AuditVerdict.MATTERS, True),
        (20_000, 0.02, 0.05, AuditVerdict.TOO_LITTLE_TO_MATTER, True),
        (3000, 0.0, 0.05, AuditVerdict.WITHIN_TOLERANCE, False),
        (300, 0.1, 0.05, AuditVerdict.CANNOT_TELL, True),
        (100, 0.0, 0.02, AuditVerdict.CANNOT_TELL, False),
    ],
)
def test_four_verdicts_from_one_pair_of_bounds(n, gap, tolerance, verdict, rejects):
    report = ct.audit(*drawn(n, gap, seed=1), tolerance=tolerance, n_resamples=199, rng=0)
    assert report.verdict is verdict
    assert report.rejects == rejects
    assert report.verdict.failed == (verdict is AuditVerdict.MATTERS)
    assert (report.low > tolerance) == (verdict is AuditVerdict.MATTERS)
    if verdict is not AuditVerdict.MATTERS:
        assert (report.high <= tolerance) == (verdict is not AuditVerdict.CANNOT_TELL)
    assert type(report).from_json(report.to_json()).verdict is verdict
    assert f"the tolerance {tolerance:g}" in report.summary[-1]


def test_without_a_tolerance_the_bounds_are_there_and_the_verdict_is_as_ever():
    data = ct.Predictions.of(*drawn(2000, 0.1, seed=1))
    report = ct.audit(data, n_resamples=199, rng=0)
    assert report.verdict is AuditVerdict.MISCALIBRATED
    interval = ct.confidence_interval(data, level=0.9, n_resamples=199, rng=0)
    assert (report.low, report.high) == (interval.low, interval.high)
    weighted = ct.Predictions.of(data, weights=1.0 + data.labels)
    assert ct.audit(weighted, n_resamples=199, rng=0).high is None
    with pytest.raises(ct.StatisticError, match="weights together with a tolerance"):
        ct.audit(weighted, tolerance=0.1)


def test_a_class_that_is_far_off_is_not_too_little_to_matter():
    rng = np.random.default_rng(3)
    n, k = 20_000, 5
    probs = np.column_stack([rng.uniform(0.55, 0.95, n), np.zeros((n, k - 1))])
    probs[:, 1:] = (1.0 - probs[:, :1]) * np.array([0.7, 0.1, 0.1, 0.1])
    true = probs.copy()
    true[:, [1, 2]] = true[:, [2, 1]]  # the top class is right, two others are exchanged
    labels = (rng.random(n)[:, None] > np.cumsum(true, axis=1)[:, :-1]).sum(axis=1)
    report = ct.audit(probs, labels, tolerance=0.03, n_resamples=199, rng=0)
    assert report.high <= 0.03
    assert report.verdict is AuditVerdict.CANNOT_TELL
    assert "OneVsRest(0…4)" in report.summary[-1]


@pytest.mark.slow
def test_two_million_rows_an_error_of_four_thousandths_and_a_tolerance_of_a_hundredth():
    p, y = drawn(2_000_000, 0.004, seed=1, sign=up_and_down)
    report = ct.audit(p, y, tolerance=0.01, n_resamples=99, rng=0)
    assert report.verdict is AuditVerdict.TOO_LITTLE_TO_MATTER
    assert report.verdict == "miscalibrated, too little to matter"
    assert 0.002 < report.low < 0.004 < report.high < 0.006
    assert "between 0.00" in report.summary[-1]
    assert json.loads(report.to_json())["high"] == report.high
