"""Tallies of whole vectors: fixed cells, sums that do not depend on order, valid tests."""

import itertools
import json
from dataclasses import replace

import numpy as np
import pytest

import caltest as ct
from caltest.tally import Leaves, tallied
from caltest.tally.leaves import Labels

TREE = ct.VarianceTree(20)
STATISTICS = [
    ct.ECE(TREE),
    ct.ECE(TREE, distance="l2"),
    ct.MCE(TREE),
    ct.DebiasedL2(TREE),
    ct.DebiasedL2(TREE, estimator="tcal"),
    ct.SKCE(ct.LaplaceKernel(0.5)),
    ct.SKCE(ct.LaplaceKernel(0.5), estimator="biased", features=64),
    ct.SKCE(lambda a, b: 1.0 + a @ b.T),
    ct.ScoreGap(),
    ct.ScoreGap("log"),
    ct.BrierScore(),
    ct.LogScore(),
]


def problem(seed, n=400, k=4):
    rng = np.random.default_rng(seed)
    probs = rng.dirichlet(np.full(k, (0.1, 1.0, 5.0)[seed % 3]), n)
    if seed % 2:
        probs = (probs.round(2) + 1e-3) / (1.0 + k * 1e-3)
    probs /= probs.sum(axis=1, keepdims=True)
    return probs, drawn(probs, rng)


def drawn(probs, rng):
    edges = probs.cumsum(axis=1)
    edges[:, -1] = 1.0
    return (rng.random(len(probs))[:, None] > edges).sum(axis=1)


# --- cells -------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(6))
def test_coarse_cells_are_those_of_the_variance_tree(seed):
    """While the tree is fitted to all rows, for medians and cells of more than n / 64 rows."""
    probs, y = problem(seed if seed % 2 == 0 else seed + 1, 1000)
    for size in (20, 55, 200):
        leaves = ct.VectorTally.of(probs, y).problem()
        found = leaves.coarse(ct.VarianceTree(size)).counts
        rows = np.bincount(ct.VarianceTree(size)(probs))
        assert sorted(found) == sorted(rows)


def test_cells_do_not_depend_on_other_rows():
    probs, _ = problem(0, 700, 5)
    tree = ct.SimplexTree.fit(probs, leaves=100)
    assert tree.n_leaves == 100
    leaf = tree(probs)
    assert set(leaf) == set(range(100))
    part = np.random.default_rng(1).permutation(700)[:50]
    assert np.array_equal(tree(probs[part]), leaf[part])
    for i in range(50):  # a slow twin
        node = 0
        while tree.axis[node] >= 0:
            below = probs[i, tree.axis[node]] < tree.cut[node]
            node = node + 1 if below else tree.right[node]
        assert leaf[i] == (tree.axis[:node] < 0).sum()


def test_equal_predictions_stay_together():
    probs = np.repeat([[0.2, 0.3, 0.5], [0.6, 0.2, 0.2]], [60, 40], axis=0)
    assert ct.SimplexTree.fit(probs).n_leaves == 2
    assert ct.SimplexTree.fit(probs[:60]).n_leaves == 1


def test_trees_are_of_three_classes_or_more():
    with pytest.raises(ct.StatisticError, match="three or more"):
        ct.SimplexTree.fit(np.array([[0.4, 0.6]]))
    tree = ct.SimplexTree.fit(problem(0)[0])
    with pytest.raises(ct.StatisticError, match="of 4 classes"):
        tree(np.full((2, 3), 1 / 3))
    assert tree != ct.SimplexTree.fit(problem(2)[0])
    assert tree != 3


# --- the value ---------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(6))
def test_same_for_any_parts_and_order(seed):
    probs, y = problem(seed)
    whole = ct.VectorTally.of(probs, y)
    part = np.random.default_rng(seed).integers(0, 7, len(y))
    pieces = [
        ct.VectorTally.of(probs[part == j], y[part == j], cells=whole.cells)
        for j in (6, 0, 3, 1, 5, 2, 4)
    ]
    assert sum(pieces) == whole
    assert whole == ct.VectorTally.of(probs[::-1], y[::-1], cells=whole.cells)
    assert whole != ct.VectorTally.of(probs, (y + 1) % 4, cells=whole.cells)
    assert whole != 3


def test_sums_are_those_of_a_loop():
    probs, y = problem(0)
    probs[3], y[3] = [0.0, 0.5, 0.5, 0.0], 0  # an impossible label
    tally = ct.VectorTally.of(probs, y)
    leaf, leaves = tally.cells(probs), tally.problem()
    assert leaves.impossible.size == 1
    for j, name in enumerate(tally.key):
        own = probs[leaf == name]
        assert leaves.count[j] == len(own)
        assert leaves.expected[j] == pytest.approx(own.sum(axis=0), abs=1e-8)
        assert leaves.squares[j] == pytest.approx((own**2).sum(axis=0), abs=1e-8)
        assert leaves.labels[j].tolist() == np.bincount(y[leaf == name], minlength=4).tolist()
    kept = np.arange(400) != 3
    chosen = probs[kept, y[kept]]
    assert leaves.total("log_score") == pytest.approx(-np.log(chosen).sum(), abs=1e-12)


def test_stored_and_read_again():
    tally = ct.VectorTally.of(*problem(1), classes=["a", "b", "c", "d"], lens=ct.TopK(2))
    assert ct.VectorTally.from_json(tally.to_json()) == tally
    content = json.loads(tally.to_json())
    for text in ("", "[]", "{}", "3"):
        with pytest.raises(ct.InvalidPredictionsError, match="not a vector tally"):
            ct.VectorTally.from_json(text)
    for wrong in ({"n": 3}, {"caltest vector tally": 9}, {"key": content["key"][::-1]}):
        with pytest.raises(ct.InvalidPredictionsError, match="damaged"):
            ct.VectorTally.from_json(json.dumps(content | wrong))
    cells = content["cells"]
    for wrong in ({"right": cells["right"][::-1]}, {"axis": [0, -1]}, {"axis": [7, -1, -1]}):
        with pytest.raises(ct.InvalidPredictionsError, match="no tree"):
            ct.VectorTally.from_json(json.dumps(content | {"cells": cells | wrong}))


def test_different_questions_do_not_add_up():
    probs, y = problem(0)
    tally = ct.VectorTally.of(probs, y)
    others = {
        "lenses": ct.VectorTally.of(probs, y, lens=ct.TopK(2)),
        "classes": ct.VectorTally.of(probs, y, classes=list("abcd")),
        "cells": ct.VectorTally.of(probs[:300], y[:300]),
    }
    for name, other in others.items():
        with pytest.raises(ct.StatisticError, match=f"different {name}"):
            tally + other
    with pytest.raises(TypeError):
        tally + 1


def test_refuses_what_sums_cannot_hold():
    probs, y = problem(0)
    with pytest.raises(ct.StatisticError, match="keeps no weights"):
        ct.VectorTally.of(probs, y, weights=np.arange(1.0, 401.0))
    with pytest.raises(ct.StatisticError, match="keeps no clusters"):
        ct.VectorTally.of(probs, y, clusters=np.arange(400) // 2)
    with pytest.raises(ct.StatisticError, match="take a Tally"):
        ct.VectorTally.of(probs, y, lens=ct.TopK(1))
    with pytest.raises(ct.StatisticError, match="take a VectorTally"):
        ct.Tally.of(probs, y, lens=ct.Canonical())
    tally = ct.VectorTally.of(probs, y)
    for statistic in (ct.Kuiper(), lambda p, y: 0.5, ct.SKCE(estimator="linear")):
        with pytest.raises(ct.StatisticError, match="needs the rows"):
            ct.calibration_test(tally, None, statistic)
    with pytest.raises(ct.StatisticError, match="not made of the leaves"):
        ct.calibration_test(tally)
    with pytest.raises(ct.StatisticError, match="cannot be looked at through"):
        ct.calibration_test(tally, lens=ct.TopK(1))
    with pytest.raises(ct.StatisticError, match="no exact null"):
        ct.calibration_test(tally, None, ct.ECE(TREE), null="exact")
    with pytest.raises(ct.StatisticError, match="draws rows"):
        ct.calibration_test(tally, None, ct.ECE(TREE), null=ct.ConsistencyResampling())
    with pytest.raises(ct.StatisticError, match="needs the rows for whole vectors"):
        ct.confidence_interval(tally)


# --- answers -----------------------------------------------------------------------------------


@pytest.mark.parametrize("statistic", STATISTICS, ids=repr)
def test_answers_are_those_of_rows_where_leaves_are_rows(statistic):
    probs, y = problem(2)
    tally = ct.VectorTally.of(probs, y)
    assert (tally.count == 1).all()
    options = {"n_resamples": 1999, "rng": 1}
    rows = ct.calibration_test(probs, y, statistic, lens=ct.Canonical(), **options)
    found = ct.calibration_test(tally, None, statistic, **options)
    assert found.estimate == pytest.approx(rows.estimate, rel=1e-7)
    assert found.pvalue_bracket[0] <= rows.pvalue_bracket[1]
    assert rows.pvalue_bracket[0] <= found.pvalue_bracket[1]
    assert found.null_mean == pytest.approx(rows.null_mean, abs=0.15 * rows.null_std)
    assert found.null_std == pytest.approx(rows.null_std, rel=0.1)
    assert "VectorTally" in " ".join(found.notes)


def test_estimates_are_those_of_rows_in_coarse_cells():
    probs, y = problem(2, 3000)
    tally = ct.VectorTally.of(probs, y)
    assert tally.count.max() > 1
    for statistic in (ct.ECE(ct.VarianceTree(60)), ct.DebiasedL2(ct.VarianceTree(60))):
        found = ct.calibration_test(tally, None, statistic, n_resamples=9).estimate
        assert found == pytest.approx(statistic(probs, y), abs=1e-9)
    by_leaf = ct.calibration_test(tally, None, ct.ECE(tally.cells), n_resamples=9).estimate
    assert by_leaf == pytest.approx(ct.ECE(tally.cells)(probs, y), abs=1e-9)
    for statistic in (ct.ScoreGap(), ct.ScoreGap("log"), ct.LogScore(), ct.BrierScore()):
        rows, found = (
            ct.calibration_test(*data, statistic, lens=ct.Canonical(), null="asymptotic")
            for data in ((probs, y), (tally, None))
        )
        assert found.estimate == pytest.approx(rows.estimate, abs=1e-9)
        assert found.pvalue == pytest.approx(rows.pvalue, rel=1e-6)


@pytest.mark.slow
def test_law_of_three_rows_by_enumeration():
    """All 27 label vectors of three rows, each in a leaf of its own."""
    probs = np.array([[0.7, 0.2, 0.1], [0.1, 0.1, 0.8], [0.3, 0.4, 0.3]])
    tally = ct.VectorTally.of(probs, [0, 1, 2])
    leaves = tally.problem()
    for statistic in (ct.ECE(ct.VarianceTree(1)), ct.ECE(ct.VarianceTree(3)), ct.SKCE()):
        prepared = tallied(statistic, leaves)
        law = {}
        for labels in itertools.product(range(3), repeat=3):
            counts = np.eye(3, dtype=int)[list(labels)][np.argsort(tally.cells(probs))]
            value = round(float(prepared.batch(counts[None])[0]), 9)
            chance = np.prod(probs[range(3), labels])
            law[value] = law.get(value, 0.0) + chance
            direct = ct.VectorTally.of(probs, list(labels), cells=tally.cells)
            assert tallied(statistic, direct.problem()).observed == pytest.approx(value, abs=1e-8)
        values = Labels(leaves, prepared.batch).replicates((1, 2), 0, 20_000).round(9)
        shares = {v: float((np.abs(values - v) < 1e-8).mean()) for v in law}
        assert sum(shares.values()) == pytest.approx(1.0)
        assert all(abs(shares[v] - law[v]) < 0.015 for v in law)


def test_rows_of_types_have_the_moments_of_rows():
    probs, y = problem(0, 5000, 6)
    leaves = ct.VectorTally.of(probs, y, cells=ct.SimplexTree.fit(probs, leaves=40)).problem()
    share, typed, rest = leaves.types
    free = leaves.count - (share * typed).sum(axis=1)
    assert (share * typed + free[:, None] * rest).ravel() == pytest.approx(leaves.expected.ravel())
    assert (typed.sum(axis=1) <= leaves.count).all()
    wanted = (probs * (1.0 - probs)).sum()
    own = leaves.count.sum() - leaves._spread(typed, share).sum()
    plain = (leaves.expected * (1.0 - leaves.probs)).sum()
    assert wanted * (1.0 - 1e-5) < own < 1.04 * wanted < 1.2 * wanted < plain
    counts = Labels(leaves, lambda labels: labels.astype(float)).replicates((5, 5), 0, 2000)
    assert (counts.sum(axis=2) == leaves.count).all()
    moved = counts - leaves.expected
    assert np.abs(moved.mean(axis=0)).max() < 5 * np.sqrt(leaves.count.max() / 4 / 2000)
    assert np.square(moved).sum(axis=(1, 2)).mean() == pytest.approx(own, rel=0.02)
    slopes = np.random.default_rng(1).normal(size=leaves.probs.shape)
    assert (moved * slopes).sum(axis=(1, 2)).var() == pytest.approx(
        leaves.variance(slopes), rel=0.15
    )


def test_numbers_do_not_depend_on_workers():
    tally = ct.VectorTally.of(*problem(0, 300))
    one, four = (
        ct.calibration_test(tally, None, ct.ECE(TREE), n_resamples=300, rng=3, workers=w)
        for w in (1, 4)
    )
    assert np.array_equal(one.null_distribution.values, four.null_distribution.values)
    fewer = ct.calibration_test(tally, None, ct.ECE(TREE), n_resamples=100, rng=3)
    assert np.array_equal(fewer.null_distribution.values, one.null_distribution.values[:100])


def test_joint_test_draws_once_for_one_lens():
    probs, y = problem(0)
    tally = ct.VectorTally.of(probs, y)
    pairs = [(ct.ECE(TREE), None), (ct.ScoreGap("log"), ct.Canonical())]
    found = ct.joint_test(tally, pairs=pairs, n_resamples=999, rng=1)
    rows = ct.joint_test(
        probs, y, pairs=[(s, ct.Canonical()) for s, _ in pairs], n_resamples=999, rng=1
    )
    assert found.adjust == rows.adjust == "max-T"
    assert np.abs(np.subtract(found.adjusted, rows.adjusted)).max() < 0.08


# --- size --------------------------------------------------------------------------------------


def rates(probs, tree, statistics, draws=250, seed=1):
    """How often tests from leaves reject label vectors that are drawn row by row, at 5 %."""
    rng = np.random.default_rng(seed)
    data = ct.Predictions.of(probs, drawn(probs, rng))
    leaves = ct.VectorTally.of(data, cells=tree).problem()
    nulls = [
        Labels(leaves, tallied(s, leaves).batch).replicates((seed, 7), 0, 999) for s in statistics
    ]
    found = np.zeros(len(nulls))
    for _ in range(draws):
        labels = replace(data, labels=drawn(probs, rng))
        own = ct.VectorTally.of(labels, cells=tree).problem()
        values = [tallied(s, own).observed for s in statistics]
        reaching = [(null >= v - 1e-9).sum() for null, v in zip(nulls, values, strict=True)]
        found += (1 + np.array(reaching)) / 1000 <= 0.05
    return found / draws


@pytest.mark.slow
@pytest.mark.parametrize(
    ("concentration", "k", "leaves"), [(1.0, 3, 1024), (0.1, 10, 1024), (0.1, 10, 128)]
)
def test_tests_keep_their_size(concentration, k, leaves):
    probs = np.random.default_rng(k).dirichlet(np.full(k, concentration), 2500)
    tree = ct.SimplexTree.fit(probs, leaves=leaves)
    statistics = [ct.ECE(ct.VarianceTree(50)), ct.DebiasedL2(ct.VarianceTree(50)), ct.LogScore()]
    assert max(rates(probs, tree, statistics)) < 0.05 + 3.3 * np.sqrt(0.05 * 0.95 / 250)


def test_leaves_of_no_rows_are_refused():
    tally = ct.VectorTally.of(*problem(0))
    nothing = ct.VectorTally(
        tally.lens, tally.cells, 4, None, tally.key[:0], tally.count[:0], tally.chosen[:0],
        tally.sums[:0], 0 * tally.totals, 0,
    )  # fmt: skip
    with pytest.raises(ct.StatisticError, match="empty"):
        Leaves.of(nothing)


def test_audit_of_tallies_says_what_rows_say():
    data = ct.examples.digits("overfit")
    rows, found = (ct.audit(x, n_resamples=499, rng=1) for x in (data, ct.Tallies.of(data)))
    assert (found.verdict, found.direction) == (rows.verdict, rows.direction)
    assert [row.lens for row in found.rows] == [row.lens for row in rows.rows]
    for own, other in zip(found.rows, rows.rows, strict=True):
        assert own.test.estimate == pytest.approx(other.test.estimate, rel=0.01)
