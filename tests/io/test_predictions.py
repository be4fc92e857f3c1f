"""What is accepted, and what is refused with which words."""

import numpy as np
import pytest

import caltest as ct
from caltest import InvalidPredictionsError, Predictions

THREE = [[0.2, 0.3, 0.5], [0.6, 0.3, 0.1], [0.1, 0.1, 0.8], [0.3, 0.3, 0.4]]


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_accepts_every_float(dtype):
    data = Predictions.of(np.array(THREE, dtype=dtype), [0, 1, 2, 0])
    assert data.probs.dtype == np.float64
    np.testing.assert_allclose(data.probs.sum(axis=1), 1.0, atol=1e-15)
    np.testing.assert_allclose(data.probs, THREE, atol=2e-3 if dtype == np.float16 else 1e-7)


@pytest.mark.parametrize(
    "probs", [[0.25, 0.5, 1.0], [[0.25], [0.5], [1.0]], [[0.75, 0.25], [0.5, 0.5], [0.0, 1.0]]]
)
def test_binary_forms_agree(probs):
    data = Predictions.of(probs, [0, 1, 1])
    np.testing.assert_array_equal(data.probs, [[0.75, 0.25], [0.5, 0.5], [0.0, 1.0]])


@pytest.mark.parametrize(
    ("labels", "classes"),
    [
        ([0, 2, 1, 1], None),
        (np.array([0, 2, 1, 1], dtype=np.uint8), None),
        ([0.0, 2.0, 1.0, 1.0], None),
        ([[0], [2], [1], [1]], None),
        ([[1, 0, 0], [0, 0, 1], [0, 1, 0], [0, 1, 0]], None),
        (["a", "c", "b", "b"], ["a", "b", "c"]),
        (np.array(["a", "c", "b", "b"], dtype=object), ("a", "b", "c")),
        ([0, 2, 1, 1], ["a", "b", "c"]),
        ([1, 3, 2, 2], [1, 2, 3]),
    ],
)
def test_label_forms_agree(labels, classes):
    data = Predictions.of(THREE, labels, classes)
    np.testing.assert_array_equal(data.labels, [0, 2, 1, 1])
    assert data.labels.dtype == np.int64


def test_booleans_are_binary_labels():
    np.testing.assert_array_equal(Predictions.of([0.1, 0.9], [False, True]).labels, [0, 1])


def test_labels_may_be_all_alike():
    assert Predictions.of([0.1, 0.9], [1, 1]).n == 2


def test_accepts_pandas_and_polars():
    pandas, polars = pytest.importorskip("pandas"), pytest.importorskip("polars")
    frame = pandas.DataFrame(THREE)
    assert Predictions.of(frame, pandas.Series([0, 1, 2, 0])).n_classes == 3
    frame = polars.DataFrame({"a": [0.1, 0.2], "b": [0.9, 0.8]})
    assert Predictions.of(frame, polars.Series([0, 1])).n == 2


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


def test_accepts_tensors_that_require_gradients():
    class Tensor:
        def detach(self):
            return np.array([0.1, 0.9])

        def __array__(self, *args, **kwargs):
            raise RuntimeError("Can't call numpy() on Tensor that requires grad.")

    assert Predictions.of(Tensor(), [0, 1]).n == 2


def test_decimals_survive_and_inexact_rows_are_renormalised():
    data = Predictions.of([[0.1, 0.2, 0.7], [0.1001, 0.2, 0.7]], [0, 1])
    np.testing.assert_array_equal(data.probs[0], [0.1, 0.2, 0.7])  # sums to 1 − 1.1e-16
    assert data.probs[1].sum() == pytest.approx(1.0, abs=1e-15)
    assert data.notes == ("1 row renormalised (sums were within 0.0001 of 1)",)


def test_input_is_not_changed():
    probs = np.array([[0.1001, 0.2, 0.7]])
    Predictions.of(probs, [0])
    assert probs[0, 0] == 0.1001


def test_logits_on_request():
    z = np.array([[1.0, 2.0, -3.0], [0.0, 0.0, 0.0]])
    data = Predictions.of(z, [0, 1], from_logits=True)
    np.testing.assert_allclose(data.probs, np.exp(z) / np.exp(z).sum(axis=1, keepdims=True))
    one = Predictions.of([0.0, 50.0], [0, 1], from_logits=True)
    np.testing.assert_allclose(one.probs[:, 1], [0.5, 1.0])


@pytest.mark.parametrize(
    ("probs", "labels", "message"),
    [
        ([[0.5, 0.5], [np.nan, 0.5]], [0, 1], r"row 1, column 0 is nan"),
        ([0.5, 1.5, 0.2] * 10, [0, 1, 1] * 10, r"row 1 is 1.5.*logits"),
        ([10.0, 55.0, 80.0], [0, 1, 0], "divide by 100"),
        ([[1.0, -2.0]] * 3, [0, 1, 0], "softmax"),
        ([0.1, 1.0000100, 0.2], [0, 1, 0], "row 1 is 1.00001"),
        ([[0.5, 0.5], [0.5, 0.4]], [0, 1], r"row 1 sums to 0.9"),
        (THREE, [0, 1, 2, 3], r"row 3 is 3, but with 3 classes"),
        (["a", "b"], [0.2, 0.9], r"swapped"),
        ([["0.5", "half"]], [0], r"row 0, column 1 is 'half'"),
        (THREE, ["a", "b", "c", "a"], r"pass classes="),
    ],
)
def test_refuses(probs, labels, message):
    with pytest.raises(InvalidPredictionsError, match=message):
        Predictions.of(probs, labels)


@pytest.mark.parametrize(
    ("classes", "labels", "message"),
    [
        (["a", "b"], ["a", "b", "a", "b"], "2 names but probs describes 3"),
        (["a", "b", "b"], [0, 1, 2, 0], "twice"),
        (["a", "b", "c"], ["a", "b", "x", "c"], "row 2 is 'x'"),
        ([1, 2, 3], [1, 2, 4, 3], "row 2 is 4"),
        (["a"], [0, 0, 0, 0], "single class"),
    ],
)
def test_refuses_classes(classes, labels, message):
    with pytest.raises(InvalidPredictionsError, match=message):
        Predictions.of(THREE, labels, classes)


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


def test_facts_that_say_nothing_are_none():
    data = Predictions.of(THREE, [0, 1, 2, 0], weights=[1, 1, 1, 1], clusters=[4, 3, 2, 1])
    assert data.weights is None
    assert data.n_clusters is None


def test_the_event_by_name():
    data = Predictions.of([0.1, 0.9], ["no", "yes"], pos_label="yes")
    assert data.labels.tolist() == [0, 1]
    assert data.classes == ("no", "yes")
    np.testing.assert_array_equal(Predictions.of([0.1, 0.9], [-1, 1], pos_label=-1).labels, [1, 0])


@pytest.mark.parametrize(
    ("facts", "message"),
    [
        ({"weights": [1, 2]}, r"one value for each of the 3 rows; its shape is \(2,\)"),
        ({"weights": [1, -2, 1]}, "row 1 is -2; weights are ≥ 0"),
        ({"by": ["a", None, "b"]}, "by: row 1 has no value"),
        ({"ids": [[1, 2]] * 3}, "one value for each of the 3 rows"),
        ({"pos_label": "maybe"}, "pos_label is 'maybe', but the labels are 'no', 'yes'"),
    ],
)
def test_refuses_facts(facts, message):
    labels = ["no", "yes", "no"] if "pos_label" in facts else [0, 1, 0]
    with pytest.raises(InvalidPredictionsError, match=message):
        Predictions.of([0.1, 0.9, 0.2], labels, **facts)


def test_refuses_the_event_of_many():
    with pytest.raises(InvalidPredictionsError, match="leaves 2 other labels"):
        Predictions.of([0.1, 0.9, 0.2], ["a", "b", "c"], pos_label="a")


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
