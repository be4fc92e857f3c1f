"""Several labels a row: a stack in which each label is asked by itself."""

import numpy as np
import pytest

import caltest as ct
from caltest.errors import InvalidPredictionsError, StatisticError
from caltest.inference.null import holm


def several(n=200, seed=0):
    """Four labels, dependent by a common uniform in half of the rows; the third is too rare."""
    rng = np.random.default_rng(seed)
    probs = rng.beta(1.0, 3.0, (n, 4))
    uniform = np.where(rng.random((n, 1)) < 0.5, rng.random((n, 1)), rng.random((n, 4)))
    labels = (uniform < probs).astype(float)
    labels[:, 2] = uniform[:, 2] < probs[:, 2] ** 2
    labels[:3, 1] = np.nan
    return probs, labels


PROBS, LABELS = several()


def test_each_label_is_tested_by_itself_and_exactly():
    data = ct.Predictions.of_labels(PROBS, LABELS, names=[*"abcd"])
    test = ct.calibration_test(data, rng=1)
    alone = []
    for j in range(4):
        known = ~np.isnan(LABELS[:, j])
        alone.append(ct.calibration_test(PROBS[known, j], LABELS[known, j].astype(int)))
    assert all(part.null == "exact" for part in test.subgroups.tests)
    pvalues = [part.pvalue for part in test.subgroups.tests]
    np.testing.assert_allclose(pvalues, [t.pvalue for t in alone], rtol=1e-9)
    np.testing.assert_allclose(test.pvalue, min(holm([t.pvalue for t in alone])), rtol=1e-9)
    assert test.estimate == alone[2].estimate
    assert data.notes[0] == "left out 3 pairs of a row and a label without outcome"
    assert "label c" in test.notes[-1]
    audit = ct.audit(data, rng=1)
    assert audit.rejects
    assert [row.worst for row in audit.rows] == ["c", "c"]


@pytest.mark.slow
def test_the_size_of_all_labels_holds_where_labels_depend():
    hits, rng = 0, np.random.default_rng(3)
    for _ in range(200):
        probs = rng.beta(1.0, 3.0, (60, 6))
        labels = (rng.random((60, 1)) < probs).astype(int)  # one uniform for all labels of a row
        data = ct.Predictions.of_labels(probs, labels)
        hits += ct.calibration_test(data, None, ct.ECE(5)).pvalue <= 0.05
    assert hits / 200 <= 0.05 + 3.0 * 0.0154


def test_files(tmp_path):
    path = tmp_path / "labels.csv"
    rows = [
        [*(f"{p:.17g}" for p in probs), *("" if y != y else str(int(y)) for y in labels)]
        for probs, labels in zip(PROBS, LABELS, strict=True)
    ]
    head = [*(f"p_{c}" for c in "abcd"), *(f"y_{c}" for c in "abcd")]
    path.write_text("\n".join(",".join(row) for row in [head, *rows]))
    data = ct.read_predictions(path, multilabel=True)
    expected = ct.Predictions.of_labels(PROBS, LABELS, [*"abcd"])
    np.testing.assert_array_equal(data.probs, expected.probs)
    np.testing.assert_array_equal(data.labels, expected.labels)
    assert (data.by == expected.by).all()


@pytest.mark.parametrize(
    ("ask", "words"),
    [
        (lambda: ct.Predictions.of_labels(PROBS[:, :1], LABELS[:, :1]), "L ≥ 2"),
        (lambda: ct.Predictions.of_labels(PROBS, LABELS[:5]), "of one shape"),
        (lambda: ct.Predictions.of_labels(PROBS, LABELS + 1), "outcomes are 0, 1 or missing"),
        (lambda: ct.Predictions.of_labels(3 * PROBS, LABELS), "which is no probability"),
        (lambda: ct.Predictions.of_labels(PROBS, LABELS, [*"aabc"]), "all different"),
        (lambda: ct.Predictions.of_labels(PROBS, LABELS, ["", *"abc"]), "none empty"),
        (lambda: ct.Predictions.of_labels(PROBS, LABELS * np.nan), "labels of 0 are all missing"),
        (lambda: ct.Predictions.of_labels(PROBS.astype(str) + "x", LABELS), "hold numbers"),
    ],
)
def test_what_are_no_labels_is_refused(ask, words):
    with pytest.raises(InvalidPredictionsError, match=words):
        ask()


def test_nothing_is_asked_of_all_pairs():
    data = ct.Predictions.of_labels(PROBS, LABELS)
    for ask in (
        lambda: ct.joint_test(data, pairs=[(ct.ECE(), None)]),
        lambda: ct.report(data),
        lambda: ct.audit(data, tolerance=0.1),
        lambda: ct.confidence_interval(data),
    ):
        with pytest.raises(StatisticError, match="several labels a row"):
            ask()
    with pytest.raises(InvalidPredictionsError, match="they take no other by="):
        ct.calibration_test(data, by=data.labels)
