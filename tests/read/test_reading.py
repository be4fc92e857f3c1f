"""What is accepted and refused at the very borders, and the advice that a refusal gives."""

import numpy as np
import pytest

import caltest as ct
from caltest import errors as naming
from caltest.data import Predictions
from caltest.data import numbers as reading
from caltest.errors import InvalidPredictionsError


def refusal(probs, labels, **facts):
    with pytest.raises(InvalidPredictionsError) as caught:
        Predictions.of(probs, labels, **facts)
    return str(caught.value)


def of_sum(total, k=3):
    """Two rows that are fine, and one that sums to ``total``, in digits that are no decimals."""
    row = np.full(k, total / k)
    row[:2] += 1.23456789e-5, -1.23456789e-5
    return np.vstack([np.full((2, k), 1.0 / k), row])


@pytest.mark.parametrize("total", [0.99901, 0.9995, 1.0005, 1.00099])
def test_sums_within_a_thousandth_are_divided_by(total):
    data = Predictions.of(of_sum(total), [0, 1, 2])
    assert data.probs[2] == pytest.approx(of_sum(total)[2] / total)
    assert data.probs.sum(axis=1) == pytest.approx(1.0, abs=1e-15)
    assert any(note.startswith("1 row renormalised") for note in data.notes)
    assert f"by up to {abs(total - 1):.1g}" in data.notes[0]


@pytest.mark.parametrize("total", [0.9989, 1.0011, 1.05])
def test_sums_further_off_are_refused(total):
    said = refusal(of_sum(total), [0, 1, 2])
    assert f"row 2 sums to {total:.6g} (1 of 3 rows are further than 0.001 from 1)" in said


@pytest.mark.parametrize(("total", "exact"), [(1.0 + 5e-13, True), (1.0 + 3e-12, False)])
def test_sums_of_rounding_need_no_words(total, exact):
    rows = of_sum(total)
    data = Predictions.of(rows, [0, 1, 2])
    assert (data.notes, np.array_equal(data.probs, rows)) == ((), exact)


@pytest.mark.parametrize(
    ("digits", "k", "off", "accepted"),
    [
        (1, 3, 0.1, False),  # 3 · 0.05 = 0.15 would be, but more than 0.05 is no rounding
        (2, 3, 0.01, True),
        (2, 3, 0.02, False),
        (2, 4, 0.02, True),
        (2, 4, 0.03, False),
        (3, 3, 0.001, True),
        (3, 3, 0.002, False),
        (3, 5, 0.002, True),
        (2, 10, 0.05, True),
        (2, 14, 0.05, True),
        (2, 14, 0.06, False),
    ],
)
def test_sums_of_decimals_may_be_off_by_their_rounding(digits, k, off, accepted):
    row = np.full(k, np.floor(10**digits / k)) / 10**digits
    row[0] += round(1.0 - row.sum(), digits)
    row[-1] = round(row[-1] + (off if row[-1] + off < 1 else -off), digits)
    row[0] = round(row[0], digits)
    rows = np.vstack([row, row])
    if accepted:
        data = Predictions.of(rows, [0, 1])
        assert data.probs.sum(axis=1) == pytest.approx(1.0)
        finer = f"values have {digits} decimals" in data.notes[0]
        assert finer == (off > reading.SUM_TOLERANCE * (1.0 + 1e-9))
    else:
        limit = max(min(k * 0.5 * 10.0**-digits, 0.05), 1e-3)
        said = refusal(rows, [0, 1])
        assert f"further than {limit:g} from 1; values have {digits} decimals" in said


def test_sums_of_bfloat16_may_be_off_by_a_256th():
    step = 2.0**-8
    for total, accepted in ((1.0 + step, True), (1.0 + 2 * step, False)):
        rows = np.tile([0.5, total - 0.5 - 0.125, 0.125], (2, 1))
        assert not (rows.astype(np.float32).view(np.uint32) & 0xFFFF).any()
        if accepted:
            assert "values have the resolution of bfloat16" in Predictions.of(rows, [0, 1]).notes[0]
        else:
            assert "further than 0.00390625 from 1; values" in refusal(rows, [0, 1])


@pytest.mark.parametrize(
    ("probs", "accepted"),
    [
        ([0.3, 1.0 + 9e-7], True),
        ([0.3, 1.0 + 1.1e-6], False),
        ([[0.4, 0.6], [1.0 + 9e-4, 0.0]], True),
        ([[0.4, 0.6], [1.0 + 1e-15, 0.0]], True),
        ([[0.4, 0.6], [1.0 + 1.1e-3, 0.0]], False),
        ([0.3, -1e-300], False),
        ([[0.4, 0.6], [1.0, -1e-9]], False),
        ([0.0, 1.0], True),
    ],
)
def test_values_a_little_above_one(probs, accepted):
    if accepted:
        data = Predictions.of(probs, [0, 1])
        assert data.probs.max() <= 1.0
        assert data.probs.sum(axis=1) == pytest.approx(1.0)
        one = np.ndim(probs) == 1 and max(probs) > 1.0
        assert any("1 value above 1 by rounding, taken as 1" in note for note in data.notes) == one
    else:
        assert "outside [0, 1] (1 such value in all)" in refusal(probs, [0, 1])


@pytest.mark.parametrize(
    ("advice", "low", "highs"),
    [
        ("These may be log-probabilities: apply exp. If they are logits", -3.0, [-0.2, 0.0]),
        ("If they are percents, pass probs / 100; if they are", 0.0, [2.001, 100.0]),
        ("Repair these values; if all are logits, ", 0.0, [2.0, 100.1]),
        ("Repair these values; if all are logits, ", -0.1, [0.4, 1.0]),
        ("These look like logits: ", -0.1, [1.1, 30.0]),
    ],
)
def test_advice_on_values_outside(advice, low, highs):
    for values in ([low, high] for high in highs):
        assert f"in all). {advice}" in refusal(values, [0, 1])
        assert "apply the logistic function, or pass from_logits=True" in refusal(values, [0, 1])
        assert "apply the softmax, or pass" in refusal([values], [0])


def test_logits_against_their_definition():
    z = np.array([-2.0, 0.0, 3.0])
    data = Predictions.of(z, [0, 1, 1], from_logits=True)
    assert data.probs == pytest.approx(1.0 / (1.0 + np.exp(np.column_stack([z, -z]))))
    rows = np.array([[0.0, 1.0, 2.0], [5.0, 5.0, 5.0]])
    expected = np.exp(rows) / np.exp(rows).sum(axis=1, keepdims=True)
    assert Predictions.of(rows, [0, 1], from_logits=True).probs == pytest.approx(expected)


@pytest.mark.parametrize(
    ("probs", "labels", "swapped"),
    [
        ([0, 1], [0.5, 0.25], True),
        ([0.0, 1.0], [0.5, 1.0], True),
        ([0.0, 0.5], [0.5, 1.0], False),
        ([True, False], [0.5, 1.0], True),
        ([0, 1], [0.5, 1.5], False),
        ([0, 1], [0.5, -0.5], False),
        ([0, 1], [0.0, 1.0], False),
        ([0, 1], [0.5, np.nan], True),
        (["no", "yes"], [0.5, 0.2], True),
        ([[0, 1], [1, 0]], [0.5, 0.2], False),
        ([[0, 1], [1, 0]], [[0.5, 0.5], [0.0, 1.0]], False),
    ],
)
def test_what_looks_swapped(probs, labels, swapped):
    arrays = np.array(probs), np.array(labels)
    if swapped:
        with pytest.raises(InvalidPredictionsError, match="look swapped"):
            reading.refuse_swapped(*arrays)
    else:
        reading.refuse_swapped(*arrays)


@pytest.mark.parametrize("labels", [[1, 2, 3], [1, 3, 3], [0, 2, 3], [1, 2, 4], [0, 1, -1]])
def test_advice_on_labels(labels):
    said = refusal(np.full((3, 3), 1 / 3), labels)
    advice = ". They seem to run from 1: pass classes=range(1, 4)"
    from_1 = min(labels) == 1 and max(labels) == 3
    assert said.endswith(f"labels run from 0 to 2{advice * from_1}")
    wrong = next(i for i, y in enumerate(labels) if not 0 <= y < 3)
    below = refusal(np.full((3, 3), 1 / 3), [0, 1, 2], classes=[1, 2, 3])
    assert below.endswith(". They seem to run from 0: pass classes=range(0, 3)")
    assert said.startswith(f"labels: row {wrong} is {labels[wrong]},")


def test_one_hot_rows():
    probs = np.full((3, 3), 1 / 3)
    assert Predictions.of(probs, np.eye(3)[[2, 0, 1]]).labels.tolist() == [2, 0, 1]
    for row in ([1, 1, 0], [0, 0, 0], [0.5, 0.5, 0], [2, 0, -1], [0, -1, 2]):
        said = refusal(probs, [[1, 0, 0], row, [0, 1, 1]])
        assert said.startswith(f"labels: row 1 is {[float(x) for x in row]}, which is not one-hot")


def test_rows_and_columns_of_a_file_are_named():
    rows = np.array([12, 15])
    with naming.in_a_file(rows, ["p_cat", "p_dog"]):
        assert "probs: row 15, column p_dog is nan" in refusal([[0.5, 0.5], [0.5, np.nan]], [0, 1])
        assert "labels: row 15 is 7" in refusal([[0.5, 0.5], [0.4, 0.6]], [0, 7])
    with naming.in_a_file(rows, ["p"]):
        assert "probs: row 12, column 1 is nan" in refusal([[0.5, np.nan], [0.5, 0.5]], [0, 1])
    assert "probs: row 1, column 1 is nan" in refusal([[0.5, 0.5], [0.5, np.nan]], [0, 1])


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
    assert data.notes == ("1 row renormalised: sums differed from 1 by up to 0.0001",)


def test_facts_of_the_rows():
    data = Predictions.of(
        THREE, [0, 1, 2, 0], weights=[1, 2, 4, 0.5], clusters=[30, 10, 10, 20], by=list("aabb"),
        ids=["w", "x", "y", "z"],
    )  # fmt: skip
    assert (data.clusters.tolist(), data.n_clusters) == ([2, 0, 0, 1], 3)
    assert repr(data) == "Predictions(n=4, K=3, weighted, 3 clusters)"
    np.testing.assert_allclose(data.residuals[1], [-1.2, 1.4, -0.2], atol=1e-15)
    assert data.effective_n == pytest.approx(7.5**2 / (1 + 4 + 16 + 0.25))
    assert data.in_ratios().weights.tolist() == [2, 4, 8, 1]
    some = data.take(np.array([3, 1]))
    taken = [getattr(some, k).tolist() for k in ("labels", "weights", "clusters", "by", "ids")]
    assert taken == [[0, 1], [0.5, 2.0], [1, 0], ["b", "a"], ["z", "x"]]
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


PLAIN = np.random.default_rng(3).dirichlet([1.0, 2.0, 3.0], 80)


@pytest.mark.parametrize(
    "probs", [PLAIN, PLAIN[:, 0], PLAIN[:, 0].round(2), np.asfortranarray(PLAIN)]
)
@pytest.mark.parametrize("kind", [np.int64, np.int8, np.uint16])
def test_plain_arrays_are_read_as_lists_of_the_same_numbers(probs, kind):
    labels = (np.arange(80) % 2).astype(kind)
    short, long = Predictions.of(probs, labels), Predictions.of(probs.tolist(), labels.tolist())
    np.testing.assert_array_equal(short.probs, long.probs)
    np.testing.assert_array_equal(short.labels, long.labels)
    assert (short.labels.dtype, short.notes) == (np.int64, long.notes)
    assert short.probs.flags.c_contiguous


WRONG = [
    (np.array([0.5, np.nan]), np.array([0, 1])),
    (np.array([0.5, 1.2]), np.array([0, 1])),
    (np.array([0.5, 0.2]), np.array([0, 2])),
    (np.array([0.5, 0.2]), np.array([0, -1])),
    (np.array([0.5, 0.2]), np.array([0, 1, 1])),
    (np.array([[0.5, 0.2], [0.5, 0.5]]), np.array([0, 1])),
    (np.empty(0), np.empty(0, dtype=np.int64)),
]


@pytest.mark.parametrize(("probs", "labels"), WRONG)
def test_plain_arrays_are_refused_as_lists_are(probs, labels):
    assert refusal(probs, labels) == refusal(probs.tolist(), labels.tolist())
