"""Several tests at once: Holm, max-T, and tests on the same draws."""

import numpy as np
import pytest

import caltest as ct
from caltest.data.binning import UniformBins
from caltest.data.lenses import Canonical, OneVsRest, TopK
from caltest.errors import StatisticError
from caltest.inference.null import max_t

PAIRS = [
    (ct.ECE(), TopK(1)),
    (ct.ECE(UniformBins(5)), OneVsRest(2)),
    (ct.MCE(ct.QuantileBins(4)), OneVsRest(0)),
    (ct.ECE(ct.VarianceTree(30)), Canonical()),
]


def slow_max_t(observed, replicates):
    rows = np.vstack([observed, replicates])
    z = (rows - rows.mean(axis=0)) / rows.std(axis=0)
    order = np.argsort(-z[0])
    adjusted, previous = np.empty(len(order)), 0.0
    for j, s in enumerate(order):
        rest = order[j:]
        p = np.mean([max(row[rest]) >= z[0, s] - 1e-10 for row in z])
        previous = adjusted[s] = max(previous, p)
    return adjusted


def test_max_t_against_its_definition(rng):
    for _ in range(20):
        replicates = rng.normal(size=(99, 5)).cumsum(axis=1)
        observed = rng.normal(size=5) * 2.0
        expected = slow_max_t(observed, replicates)
        np.testing.assert_allclose(max_t(observed, replicates), expected, atol=1e-12)


def test_max_t_is_exact_for_the_global_hypothesis(rng):
    """With B = 19, P(smallest adjusted p ≤ 0.1) is 0.1; limits are five standard errors."""
    rejected = 0
    for _ in range(4000):
        rows = rng.normal(size=(20, 3)).cumsum(axis=1)
        rejected += min(max_t(rows[0], rows[1:])) <= 0.1
    assert abs(rejected / 4000 - 0.1) < 5 * np.sqrt(0.09 / 4000)


@pytest.fixture(scope="module")
def joint():
    data = ct.examples.SixPoints().sample(300, 11)
    return data, ct.joint_test(data, pairs=PAIRS, n_resamples=499, rng=3)


def test_marginal_tests_agree_with_single_ones(joint):
    data, result = joint
    for (statistic, lens), test, adjusted in zip(PAIRS, result.tests, result.adjusted, strict=True):
        single = ct.calibration_test(data, None, statistic, lens=lens, n_resamples=1999, rng=4)
        assert test.estimate == single.estimate
        assert test.pvalue <= adjusted
        tolerance = 5 * np.hypot(test.pvalue_error, single.pvalue_error) + 0.005
        assert abs(test.pvalue - single.pvalue) < tolerance
        assert abs(test.null_mean - single.null_mean) < 5 * single.null_std / np.sqrt(400)


def test_rounding_of_constant_statistics_decides_nothing(rng):
    """Almost certain predictions: the observed value and the draws agree but for rounding."""
    trees = (ct.ECE(ct.VarianceTree(20)), Canonical())
    pairs = [(ct.ECE(), Canonical()), (ct.ECE(10), TopK(1)), trees]
    for _ in range(5):
        rest = 1e-9 * rng.random(100)
        probs = np.column_stack([1.0 - rest, 0.5 * rest, 0.5 * rest])
        result = ct.joint_test(probs, np.zeros(100, int), pairs=pairs, n_resamples=99, rng=rng)
        assert result.pvalue == 1.0


def test_lenses_that_pick_rows_or_look_at_labels_are_refused():
    data = ct.examples.SixPoints().sample(60, 1)

    def unsure(data):
        rows = data.probs[:, 0] < 0.5
        return ct.Predictions(data.probs[rows], data.labels[rows])

    def lucky(data):
        rows = data.labels == data.probs.argmax(axis=1)
        return ct.Predictions(data.probs[rows], data.labels[rows])

    ct.calibration_test(data, None, lens=unsure, n_resamples=99)
    with pytest.raises(StatisticError, match="picks or moves rows"):
        ct.joint_test(data, pairs=[(ct.ECE(), unsure), (ct.ECE(), ct.TopK(1))])
    with pytest.raises(StatisticError, match="by looking at the labels"):
        ct.calibration_test(data, lens=lucky)


def test_audit_with_max_t(rng):
    data = ct.examples.SixPoints().sample(1500, 4)
    holm_report = ct.audit(data, n_resamples=499, rng=1)
    joint = ct.audit(data, adjust="max-T", n_resamples=499, rng=1)
    for row, other in zip(joint.rows, holm_report.rows, strict=True):
        assert (row.lens, row.verdict) == (other.lens, other.verdict)
        assert row.test.null == "RedrawLabels()"
        if row.aspect != "shape":  # of several, the loudest is shown
            assert row.test.estimate == other.test.estimate
        assert row.adjusted >= row.test.pvalue


def test_of_very_many_classes_the_likeliest_are_tested(monkeypatch):
    from caltest.reports import findings as questions

    monkeypatch.setattr(questions, "MOST_CLASSES", 3)
    rng = np.random.default_rng(0)
    probs = rng.dirichlet([1, 9, 1, 9, 1, 9], 600)
    labels = np.where(rng.random(600) < 0.3, 3, (rng.random((600, 1)) > probs.cumsum(1)).sum(1))
    report = ct.audit(probs, labels, rng=0)
    (row,) = (row for row in report.rows if row.aspect == "classes")
    assert (row.question, row.worst) == ("are the 3 likeliest classes right?", "class 3")
    alone = [ct.calibration_test(probs, labels, lens=ct.OneVsRest(c)) for c in (1, 3, 5)]
    assert row.test.estimate == alone[1].estimate
    assert row.pvalue == min(1.0, 3 * min(test.pvalue for test in alone))
    assert f"{100 * (labels == 3).mean():.1f} %" in row.detail
