"""Ordered classes: cumulative probabilities, and the ranked probability score."""

import numpy as np
import pytest

import caltest as ct
from caltest.statistics.scores import SCORES_BY_NAME

P = np.array([
    [0.6, 0.3, 0.1, 0.0], [0.1, 0.4, 0.4, 0.1], [0.25, 0.25, 0.25, 0.25], [0.0, 0.2, 0.3, 0.5],
    [0.7, 0.2, 0.05, 0.05], [0.05, 0.15, 0.3, 0.5], [0.3, 0.4, 0.2, 0.1], [0.1, 0.2, 0.3, 0.4],
])  # fmt: skip
Y = np.array([0, 2, 3, 1, 1, 3, 0, 2])


def ranked(p, y):
    """Σ_{k < K−1} (F_k − 1{y ≤ k})², term by term (Epstein 1969)."""
    return sum((p[: k + 1].sum() - (y <= k)) ** 2 for k in range(p.size - 1))


def test_ranked_probability_score():
    """Reference values; the score is .48125 where .45625 was promised."""
    table = SCORES_BY_NAME["rps"](P)
    np.testing.assert_allclose(table, [[ranked(p, y) for y in range(4)] for p in P], atol=1e-12)
    np.testing.assert_allclose(table[np.arange(8), Y].mean(), 0.48125)
    np.testing.assert_allclose((P * table).sum(axis=1).mean(), 0.45625)
    test = ct.calibration_test(P, Y, ct.ScoreGap("rps"), lens=ct.Canonical(), null="asymptotic")
    assert [test.estimate, test.pvalue] == pytest.approx([0.2054282604, 0.8372375425], abs=1e-9)


@pytest.mark.parametrize("k", [0, 1, 2])
def test_cumulative_is_a_partition(k):
    classes = list(range(4))
    cut = ct.Partition([classes[: k + 1], classes[k + 1 :]])
    data, lens = ct.Predictions.of(P, Y, classes=[*"abcd"]), ct.Cumulative(k)
    coded = ct.Predictions.of(data, np.array([*"abcd"])[Y])
    np.testing.assert_array_equal(lens(coded).probs, cut(coded).probs)
    np.testing.assert_array_equal(lens.relabelling(coded)(Y), cut(coded).labels)
    assert lens.components(coded) == (f"class ≤ {'abcd'[k]}",)
    a, b = (ct.calibration_test(coded, lens=x) for x in (lens, cut))
    assert (a.null, a.pvalue, a.lens) == ("exact", b.pvalue, f"Cumulative({k})")


def test_an_audit_of_ordered_classes_asks_about_cumulative_probabilities():
    rng = np.random.default_rng(0)
    probs = rng.dirichlet(np.full(5, 0.8), 600)
    labels = (rng.random((600, 1)) > probs.cumsum(axis=1)[:, :-1]).sum(axis=1)
    shifted = np.minimum(labels + (rng.random(600) < 0.3), 4)
    run = {"rng": 1, "n_resamples": 999}
    plain, ordered = (ct.audit(probs, shifted, ordered=o, **run) for o in (False, True))
    lenses = [row.lens for row in ordered.rows]
    assert set(lenses) - {row.lens for row in plain.rows} == {"Cumulative(0…3)"}
    row = ordered.rows[lenses.index("Cumulative(0…3)")]
    assert row.worst.startswith("class ≤ ")
    assert row.verdict.rejects
    pairs = [(ct.ECE(), ct.Cumulative(k)) for k in range(4)]
    assert row.pvalue == ct.joint_test(probs, shifted, pairs=pairs, **run).pvalue
    assert "ScoreGap('rps')" in [row.test.statistic for row in ordered.rows if row.test]
    assert "Cumulative probabilities: " in str(ordered)
    assert not ct.audit(probs, labels, ordered=True, **run).rejects
