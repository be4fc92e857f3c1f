"""All classes at once against one class after the other, and the generic path."""

from __future__ import annotations

import pickle
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import numpy as np
import pytest
import scipy.stats

import caltest as ct
from caltest.resampling import LabelSampler, simulate_by
from caltest.statistics.lanes import CellRedraws, classwise, redraws, streams
from caltest.statistics.multiclass import SCE, TACE, ClasswiseECE

SEED = (0x0123456789ABCDEF, 0xFEDCBA9876543210)
STATISTICS = [
    ClasswiseECE(ct.UniformBins(4)),
    ClasswiseECE(ct.QuantileBins(6), aggregate="max"),
    ClasswiseECE(ct.VarianceTree(9), threshold=0.05),
    SCE(5, variant="nixon"),
    TACE(3, threshold=0.3),
]


def problem(n, n_classes, seed=3):
    generator = np.random.default_rng(seed)
    probs = generator.dirichlet(np.full(n_classes, 0.5), n)
    return probs, generator.integers(n_classes, size=n)


def drawn_labels(probs, first, count):
    key, twist, *_ = streams.keys(SEED, first, count)
    with np.errstate(over="ignore"):
        z = key[:, None] + streams.GAMMA * np.arange(len(probs), dtype=np.uint64)
        z = (z ^ (z >> 30)) * streams.FIRST_FACTOR ^ twist[:, None]
        z = (z ^ (z >> 27)) * streams.SECOND_FACTOR
    draw = LabelSampler.of(probs)
    return [draw(u) for u in ((z ^ (z >> 31)) >> 11) * 2.0**-53]


@pytest.mark.parametrize("statistic", STATISTICS, ids=repr)
@pytest.mark.parametrize("n_classes", [2, 3, 60])
def test_against_numpy_twin(statistic, n_classes):
    probs, _ = problem(50, n_classes)
    fixed, labels = statistic.given(probs), drawn_labels(probs, 5, 11)
    ours = fixed.redraws(probs).replicates(SEED, 5, 11)
    np.testing.assert_allclose(ours, [statistic(probs, y) for y in labels], rtol=1e-12)
    every = fixed.redraws(probs, by_class=True).replicates(SEED, 5, 11)
    np.testing.assert_allclose(every, [fixed.by_class(y) for y in labels], rtol=1e-12, atol=1e-15)


@pytest.mark.parametrize("n_classes", [3, 60])
def test_law_of_each_class_is_exact(n_classes):
    """Mean, spread and tail of every class against its exact null."""
    probs, labels = problem(80, n_classes)
    every = ClasswiseECE().given(probs).redraws(probs, by_class=True)
    values, _ = simulate_by(every, 6000, 1, 1)
    assert values.shape == (6000, n_classes)
    data = ct.Predictions(probs, labels)
    for c in range(min(n_classes, 8)):
        test = ct.calibration_test(data, lens=ct.OneVsRest(c), null="exact")
        error = test.null_std / np.sqrt(6000)
        assert abs(values[:, c].mean() - test.null_mean) < 4.5 * error
        share = (values[:, c] >= test.estimate - 1e-12).mean()
        spread = np.sqrt(test.pvalue * (1 - test.pvalue) / 6000)
        assert abs(share - test.pvalue) < 4.5 * spread + 0.01 * test.pvalue + 1e-4


@pytest.mark.parametrize("aggregate", ["mean", "max"])
def test_joint_law_of_classes(aggregate):
    """Label vectors are drawn whole: over classes, errors vary as in the generic path."""
    data = ct.Predictions(*problem(120, 5))
    statistic = ClasswiseECE(aggregate=aggregate)
    generic = ct.replicate(partial(statistic), ct.RedrawLabels(), data, 1500, rng=1)
    ours = ct.replicate(statistic, ct.RedrawLabels(), data, 6000, rng=2)
    assert scipy.stats.ks_2samp(generic.values.round(9), ours.values.round(9)).pvalue > 1e-3


@pytest.mark.parametrize("n_classes", [4, 60])
def test_same_for_any_chunks_and_threads(n_classes):
    probs, _ = problem(90, n_classes)
    value = ClasswiseECE(ct.UniformBins(3)).given(probs).redraws(probs, by_class=True)
    run = pickle.loads(pickle.dumps(value)).replicates
    whole = run(SEED, 0, 600)
    assert np.array_equal(whole[333:352], run(SEED, 333, 19))
    with ThreadPoolExecutor(4) as pool:
        pieces = list(pool.map(lambda a: run(SEED, a, 60), range(0, 600, 60)))
    assert np.array_equal(whole, np.concatenate(pieces))


def test_same_labels_as_the_errors_of_whole_vectors():
    # One cell for all: Σ_c |share_c − mean_c| is the l1 distance of the whole vectors.
    probs, _ = problem(70, 6)
    one = ct.UniformBins(1)
    whole = CellRedraws.of(ct.ECE(one, "l1").given(probs), probs).replicates(SEED, 0, 40)
    classes = ClasswiseECE(one).given(probs).redraws(probs, True).replicates(SEED, 0, 40)
    np.testing.assert_allclose(classes.sum(axis=1), whole, rtol=1e-12)


@pytest.mark.parametrize("n_classes", [3, 60])
def test_impossible_labels_are_never_drawn(n_classes):
    probs = np.eye(n_classes)[np.arange(40) % n_classes]
    values = ClasswiseECE(aggregate="max").given(probs).redraws(probs).replicates(SEED, 0, 1000)
    assert not values.any()


@pytest.mark.parametrize("n_classes", [3, 45])
def test_interpreted_as_compiled(n_classes, monkeypatch):
    probs, _ = problem(8, n_classes)
    fixed = TACE(2, threshold=0.1).given(probs)
    compiled = fixed.redraws(probs).replicates(SEED, 0, 5)
    monkeypatch.setattr(classwise, "_class_errors", classwise._class_errors.py_func)
    monkeypatch.setattr(redraws, "_tables", redraws._tables.py_func)
    with np.errstate(over="ignore"):
        interpreted = fixed.redraws(probs).replicates(SEED, 0, 5)
    np.testing.assert_allclose(interpreted, compiled, rtol=1e-13)
