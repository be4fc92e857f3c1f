"""What is accepted, and what is refused with which words."""

import numpy as np
import pytest

import caltest as ct
from caltest import Predictions

THREE = [[0.2, 0.3, 0.5], [0.6, 0.3, 0.1], [0.1, 0.1, 0.8], [0.3, 0.3, 0.4]]


def test_accepts_what_only_speaks_dlpack():
    class Tensor:
        def __init__(self, values):
            self.values = np.array(values)

        def __array__(self, *args, **kwargs):
            raise TypeError("not an array")

        def __dlpack__(self, **kwargs):
            return self.values.__dlpack__(**kwargs)

        def __dlpack_device__(self):
            return self.values.__dlpack_device__()

    assert Predictions.of(Tensor([0.1, 0.9]), [0, 1]).n == 2


def test_decimals_survive_and_inexact_rows_are_renormalised():
    data = Predictions.of([[0.1, 0.2, 0.7], [0.1001, 0.2, 0.7]], [0, 1])
    np.testing.assert_array_equal(data.probs[0], [0.1, 0.2, 0.7])  # sums to 1 − 1.1e-16
    assert data.probs[1].sum() == pytest.approx(1.0, abs=1e-15)
    assert data.notes == ("1 row renormalised (sums were within 0.0001 of 1)",)


def test_facts_of_the_rows():
    data = Predictions.of(
        THREE, [0, 1, 2, 0], weights=[1, 2, 4, 0.5], clusters=[30, 10, 10, 20], by=list("aabb"),
        ids=["w", "x", "y", "z"],
    )  # fmt: skip
    assert data.clusters.tolist() == [2, 0, 0, 1]
    assert data.n_clusters == 3
    assert repr(data) == "Predictions(n=4, K=3, weighted, 3 clusters)"
    np.testing.assert_allclose(data.residuals[1], [-1.2, 1.4, -0.2], atol=1e-15)
    assert data.effective_n == pytest.approx(7.5**2 / (1 + 4 + 16 + 0.25))
    assert data.in_ratios().weights.tolist() == [2, 4, 8, 1]
    some = data.take(np.array([3, 1]))
    assert some.labels.tolist() == [0, 1]
    assert some.weights.tolist() == [0.5, 2.0]
    assert some.clusters.tolist() == [1, 0]
    assert some.by.tolist() == ["b", "a"]
    assert some.ids.tolist() == ["z", "x"]
    assert data.take(data.labels == 0).ids.tolist() == ["w", "z"]


def test_impossible_outcomes_are_counted():
    data = Predictions.of([[1.0, 0.0, 0.0], [0.5, 0.5, 0.0], [0.0, 0.0, 1.0]], [0, 2, 1])
    np.testing.assert_array_equal(data.impossible, [1, 2])


def test_a_predictions_is_passed_through():
    data = Predictions.of([0.3], [1])
    assert Predictions.of(data) is data
    assert Predictions.of(data, weights=[2]).weights.tolist() == [2.0]
    assert Predictions.of(data, weights=[2]).in_ratios().weights is None
    assert Predictions.of(data, [0]).labels.tolist() == [0]
    assert ct.calibration_test(data).n == 1
