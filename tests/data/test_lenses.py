"""Lenses, as in Example 2 of Vaicenavicius et al. (2019)."""

import numpy as np
import pytest

import caltest as ct
from caltest.data import Predictions
from caltest.data.lenses import Canonical, OneVsRest, Partition, TopK, as_lens
from caltest.errors import StatisticError


@pytest.fixture
def four():
    return Predictions.of([[0.1, 0.4, 0.2, 0.3], [0.25, 0.25, 0.25, 0.25]], [3, 1])


def test_top_k_breaks_ties_by_class_index():
    data = Predictions.of([[0.4, 0.2, 0.4]] * 3, [0, 1, 2])
    np.testing.assert_array_equal(TopK(1)(data).labels, [0, 1, 1])
    np.testing.assert_array_equal(TopK(2)(data).labels, [0, 2, 1])


def test_the_rest_of_a_sure_prediction_keeps_its_digits():
    tiny = 1e-30
    data = Predictions(np.array([[1.0, tiny], [tiny, 1.0]]), np.array([0, 0]))
    for lens in (OneVsRest(0), TopK(1)):
        induced = lens(data)
        assert (induced.probs[0, 1], induced.impossible.size) == (tiny, 0)


def test_a_function_that_picks_rows_keeps_their_facts(four):
    data = Predictions.of(four, weights=[1, 3])
    assert as_lens(lambda data: data.take(np.array([1])), data)(data).weights.tolist() == [3.0]
    with pytest.raises(StatisticError, match="picks rows and loses their weights"):
        as_lens(lambda data: Predictions.of(data.probs[:1], data.labels[:1]), data)(data)
    with pytest.raises(StatisticError, match="by looking at the labels"):
        as_lens(lambda data: data.take(data.labels == 1), four)


def test_the_usual_lens(four):
    assert as_lens(None, four) == TopK(1)
    assert as_lens(None, Predictions.of([0.2], [1])) == OneVsRest(1)
    assert as_lens(None, TopK(1)(four)) == Canonical()
    assert as_lens(TopK(2), four) == TopK(2)


def test_any_function_is_a_lens(four):
    def odd(data):
        return Predictions.of(data.probs[:, 1] + data.probs[:, 3], data.labels % 2)

    result = ct.calibration_test(four, lens=odd)
    assert result.lens == "odd"
    assert result.estimate == ct.calibration_test(four, lens=Partition([[0, 2], [1, 3]])).estimate


def test_classes_can_be_named():
    data = Predictions.of([[0.2, 0.3, 0.5]], ["owl"], ["cat", "dog", "owl"])
    named, numbered = OneVsRest("dog")(data), OneVsRest(1)(data)
    np.testing.assert_array_equal(named.probs, numbered.probs)
    induced = Partition([["cat", "owl"], ["dog"]])(data)
    np.testing.assert_allclose(induced.probs, [[0.7, 0.3]])
    np.testing.assert_array_equal(induced.labels, [0])
