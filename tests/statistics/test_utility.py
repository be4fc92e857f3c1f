"""Utility calibration: equal to Kuiper for the top label, to a slow twin for any utility."""

import numpy as np
import pytest

import caltest as ct
from caltest.errors import StatisticError

COSTS = ct.Costs([[0, 4, 9], [3, 0, 2], [1, 1, 1]])


def three_classes(seed=1, n=60):
    rng = np.random.default_rng(seed)
    probs = rng.dirichlet([1.0, 2.0, 1.0], n).round(2)
    probs[:, 2] = 1.0 - probs[:, 0] - probs[:, 1]
    return probs, (rng.random((n, 1)) > probs.cumsum(axis=1)[:, :2]).sum(axis=1)


def largest_interval(gain, promise, weight):
    """Return the largest |Σ w (u − v)| / Σ w over all intervals of promises, by trying them all."""
    levels = np.unique(promise.round(12))
    inside = [
        (promise.round(12) >= a) & (promise.round(12) <= b)
        for a in levels
        for b in levels
        if a <= b
    ]
    away = weight * (gain - promise)
    return max(abs(away[rows].sum()) for rows in inside) / weight.sum()


def test_accuracy_of_the_predicted_class_is_kuiper_of_the_top_label():
    data = ct.examples.digits("overfit")
    value = ct.UtilityCalibration(ct.TopKAccuracy(1))(data.probs, data.labels)
    assert value == pytest.approx(ct.Kuiper()(*of_top(data)), abs=1e-14)
    # The same value was computed by the reference program of the specification.
    assert value == pytest.approx(0.07109451940253432, abs=1e-14)


def of_top(data):
    return data.probs.max(axis=1), (data.probs.argmax(axis=1) == data.labels).astype(int)


@pytest.mark.parametrize("utility", [COSTS, ct.TopKAccuracy(2), ct.ReciprocalRank()])
def test_value_is_the_largest_over_all_intervals(utility):
    probs, labels = three_classes()
    table = utility(probs)
    gain, promise = table[np.arange(60), labels], (probs * table).sum(axis=1)
    value = ct.UtilityCalibration(utility)(probs, labels)
    assert value == pytest.approx(largest_interval(gain, promise, np.ones(60)), abs=1e-12)


def test_weights_count_observations():
    probs, labels = three_classes()
    weights = np.arange(60) % 4 + 1
    table = COSTS(probs)
    gain, promise = table[np.arange(60), labels], (probs * table).sum(axis=1)
    value = ct.UtilityCalibration(COSTS)(probs, labels, weights=weights)
    assert value == pytest.approx(largest_interval(gain, promise, weights), abs=1e-12)


def test_two_classes_are_in_the_order_of_labels():
    rng = np.random.default_rng(2)
    p = rng.random(50)
    y = (rng.random(50) < p).astype(int)
    statistic = ct.UtilityCalibration(ct.Costs.threshold(0.3))
    table = ct.Costs.threshold(0.3)(np.column_stack([1 - p, p]))
    gain = table[np.arange(50), y]
    promise = (np.column_stack([1 - p, p]) * table).sum(axis=1)
    expected = largest_interval(gain, promise, np.ones(50))
    assert statistic(p, y) == pytest.approx(expected, abs=1e-12)
    assert ct.calibration_test(p, y, statistic, n_resamples=99, rng=1).estimate == pytest.approx(
        expected, abs=1e-12
    )


def test_clusters_are_tested_by_shared_labels():
    probs, labels = three_classes(3, 120)
    test = ct.calibration_test(
        probs, labels, ct.UtilityCalibration(COSTS), lens=ct.Canonical(),
        clusters=np.arange(120) // 4, n_resamples=199, rng=1,
    )  # fmt: skip
    assert 0.0 < test.pvalue <= 1.0
    assert test.n_clusters == 30


@pytest.mark.parametrize(
    ("utility", "message"),
    [
        (lambda p: p[:, :1], "one column a class"),
        (lambda p: np.where(p > 2, p, np.nan), "row 0, class 0 is nan"),
        (ct.Costs([[0, 1], [1, 0]]), "given for 2 classes, but there are 3"),
        (ct.Costs.threshold(0.5), "a threshold is for two classes, not 3"),
    ],
)
def test_tables_that_do_not_fit_are_refused(utility, message):
    with pytest.raises(StatisticError, match=message):
        ct.UtilityCalibration(utility)(*three_classes())


@pytest.mark.parametrize(
    ("matrix", "actions", "message"),
    [
        ([1, 2], (), r"shape \(2,\)"),
        ([[1, "a"]], (), "must be numbers"),
        ([[1, np.inf]], (), "action 0, class 1 is inf"),
        ([[1, 2]], ("a", "b"), "2 names of 1 actions"),
    ],
)
def test_costs_that_are_no_matrix_are_refused(matrix, actions, message):
    with pytest.raises(StatisticError, match=message):
        ct.Costs(matrix, actions)
