"""All classes at once against one class after the other, and the generic path."""

from __future__ import annotations

import pickle
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import scipy.stats

import caltest as ct
from caltest.resampling import LabelSampler, simulate_by
from caltest.statistics.classwise import ClasswiseCells
from caltest.statistics.lanes import CellRedraws, classwise, redraws, streams

SEED = (0x0123456789ABCDEF, 0xFEDCBA9876543210)
DISTANCES = ["tv", "l1", "l2", "sqeuclidean", "max"]


def problem(n, n_classes, seed=3):
    generator = np.random.default_rng(seed)
    probs = generator.dirichlet(np.full(n_classes, 0.5), n)
    return probs, generator.integers(n_classes, size=n)


def one_by_one(statistic, probs, labels):
    data = ct.Predictions(probs, labels)
    seen = [ct.OneVsRest(c)(data) for c in range(probs.shape[1])]
    return np.array([statistic(s.probs, s.labels) for s in seen])


def drawn_labels(probs, first, count):
    key, twist, *_ = streams.keys(SEED, first, count)
    with np.errstate(over="ignore"):
        z = key[:, None] + streams.GAMMA * np.arange(len(probs), dtype=np.uint64)
        z = (z ^ (z >> 30)) * streams.FIRST_FACTOR ^ twist[:, None]
        z = (z ^ (z >> 27)) * streams.SECOND_FACTOR
    draw = LabelSampler.of(probs)
    return [draw(u) for u in ((z ^ (z >> 31)) >> 11) * 2.0**-53]


@pytest.mark.parametrize("bins", [ct.UniformBins(4), ct.QuantileBins(6), ct.VarianceTree(9)])
@pytest.mark.parametrize("distance", DISTANCES)
@pytest.mark.parametrize(("kind", "combine"), [(ct.ECE, "sum"), (ct.MCE, "max")])
@pytest.mark.parametrize("n_classes", [2, 3, 60])
def test_values(bins, distance, kind, combine, n_classes):
    probs, labels = problem(50, n_classes)
    every = ClasswiseCells.of(probs, bins, distance, combine)
    expected = one_by_one(kind(bins, distance), probs, labels)
    np.testing.assert_allclose(every(labels), expected, rtol=1e-12, atol=1e-15)
    shown = every.redraws(probs).replicates(SEED, 5, 11)
    twin = [every(y) for y in drawn_labels(probs, 5, 11)]
    np.testing.assert_allclose(shown, twin, rtol=1e-12, atol=1e-15)


@pytest.mark.parametrize("n_classes", [3, 60])
def test_law_of_each_class_is_exact(n_classes):
    """Mean, spread and tail of every class against its exact null."""
    probs, labels = problem(80, n_classes)
    values, _ = simulate_by(ClasswiseCells.of(probs).redraws(probs), 6000, 1, 1)
    assert values.shape == (6000, n_classes)
    data = ct.Predictions(probs, labels)
    for c in range(min(n_classes, 8)):
        test = ct.calibration_test(data, lens=ct.OneVsRest(c), null="exact")
        error = test.null_std / np.sqrt(6000)
        assert abs(values[:, c].mean() - test.null_mean) < 4.5 * error
        share = (values[:, c] >= test.estimate - 1e-12).mean()
        spread = np.sqrt(test.pvalue * (1 - test.pvalue) / 6000)
        assert abs(share - test.pvalue) < 4.5 * spread + 0.01 * test.pvalue + 1e-4


def test_joint_law_of_classes():
    """Label vectors are drawn whole: the mean over classes varies as in the generic path."""
    probs, labels = problem(120, 5)
    every = ClasswiseCells.of(probs)
    generic = ct.replicate(
        lambda p, y: float(every(y).max()), ct.RedrawLabels(), ct.Predictions(probs, labels), 3000
    )
    ours = every.redraws(probs, "max").replicates(SEED, 0, 6000)
    assert scipy.stats.ks_2samp(generic.values.round(9), ours.round(9)).pvalue > 1e-4


@pytest.mark.parametrize("n_classes", [4, 60])
def test_summaries_chunks_and_threads(n_classes):
    probs, _ = problem(90, n_classes)
    every = ClasswiseCells.of(probs, ct.UniformBins(3))
    run = pickle.loads(pickle.dumps(every.redraws(probs))).replicates
    whole = run(SEED, 0, 600)
    assert np.array_equal(whole[333:352], run(SEED, 333, 19))
    with ThreadPoolExecutor(4) as pool:
        pieces = list(pool.map(lambda a: run(SEED, a, 60), range(0, 600, 60)))
    assert np.array_equal(whole, np.concatenate(pieces))
    for summary in ("mean", "max"):
        values = every.redraws(probs, summary).replicates(SEED, 0, 600)
        np.testing.assert_array_equal(values, getattr(whole, summary)(axis=1))


def test_same_labels_as_the_errors_of_whole_vectors():
    # One cell for all: Σ_c |share_c − mean_c| is the l1 distance of the whole vectors.
    probs, _ = problem(70, 6)
    one = ct.UniformBins(1)
    whole = CellRedraws.of(ct.ECE(one, "l1").given(probs), probs).replicates(SEED, 0, 40)
    classes = ClasswiseCells.of(probs, one).redraws(probs).replicates(SEED, 0, 40)
    np.testing.assert_allclose(classes.sum(axis=1), whole, rtol=1e-12)


@pytest.mark.parametrize("n_classes", [3, 60])
def test_impossible_labels_are_never_drawn(n_classes):
    probs = np.eye(n_classes)[np.arange(40) % n_classes]
    values = ClasswiseCells.of(probs, combine="max").redraws(probs).replicates(SEED, 0, 1000)
    assert not values.any()


@pytest.mark.parametrize("n_classes", [3, 45])
def test_interpreted_as_compiled(n_classes, monkeypatch):
    probs, _ = problem(8, n_classes)
    every = ClasswiseCells.of(probs, ct.UniformBins(2), "sqeuclidean")
    compiled = every.redraws(probs).replicates(SEED, 0, 5)
    monkeypatch.setattr(classwise, "_class_errors", classwise._class_errors.py_func)
    monkeypatch.setattr(redraws, "_tables", redraws._tables.py_func)
    with np.errstate(over="ignore"):
        interpreted = every.redraws(probs).replicates(SEED, 0, 5)
    np.testing.assert_allclose(interpreted, compiled, rtol=1e-13)


def test_cells_are_numbered():
    probs, labels = problem(20, 3)
    far = ClasswiseCells.of(probs, lambda p: (p[:, 0] > 0.5) * 10**9 - 7)
    near = ClasswiseCells.of(probs, lambda p: (p[:, 0] > 0.5).astype(int))
    assert np.array_equal(far.cells, near.cells)
    assert far.sums.shape == (3, 2)
    np.testing.assert_array_equal(far(labels), near(labels))


def test_refuses():
    probs, _ = problem(5, 3)
    with pytest.raises(ct.StatisticError, match="need one of"):
        ClasswiseCells.of(probs, distance=lambda r, g: 0.0)
    with pytest.raises(ct.StatisticError, match="65536 cells"):
        ClasswiseCells.of(np.full((70_000, 2), 0.5), lambda p: np.arange(len(p)))
