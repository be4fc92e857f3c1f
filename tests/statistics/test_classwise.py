"""Class-wise errors of redrawn labels: all classes at once against one class after the other."""

from __future__ import annotations

import pickle
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import numpy as np
import pytest
import scipy.stats
from conftest import seen

import caltest as ct
from caltest import presets
from caltest.simulate import Batches, LabelSampler, simulate_by, streams
from caltest.simulate.labels import CellRedraws
from caltest.statistics import SCE, TACE, ClasswiseECE
from caltest.statistics.cells import Cells

SEED = (0x0123456789ABCDEF, 0xFEDCBA9876543210)
STATISTICS = [
    ClasswiseECE(ct.UniformBins(4)),
    ClasswiseECE(ct.QuantileBins(6), aggregate="max"),
    ClasswiseECE(ct.VarianceTree(9), threshold=0.05),
    SCE(5),
    presets.nixon2019("sce", 5, variant="nixon").statistic,
    TACE(3, threshold=0.3),
]


def problem(n, n_classes, seed=3):
    generator = np.random.default_rng(seed)
    probs = generator.dirichlet(np.full(n_classes, 0.5), n)
    return seen(probs, generator.integers(n_classes, size=n))


def drawn_labels(probs, first, count):
    key, twist, *_ = streams.keys(SEED, first, count)
    with np.errstate(over="ignore"):
        z = key[:, None] + streams.GAMMA * np.arange(len(probs), dtype=np.uint64)
        z = (z ^ (z >> 30)) * streams.FIRST_FACTOR ^ twist[:, None]
        z = (z ^ (z >> 27)) * streams.SECOND_FACTOR
    draw = LabelSampler.of(probs)
    return [draw(u) for u in ((z ^ (z >> 31)) >> 11) * 2.0**-53]


def redraws(statistic, data):
    return Batches.of(ct.RedrawLabels(), data, statistic.given(data).batch)


def by_class(statistic, data):
    """The errors of all classes from each draw: K numbers a replicate."""
    fixed = statistic.given(data)

    def errors(labels):
        return np.array([fixed.by_class(vector) for vector in labels])

    return Batches.of(ct.RedrawLabels(), data, errors)


@pytest.mark.parametrize("statistic", STATISTICS, ids=repr)
@pytest.mark.parametrize("n_classes", [2, 3, 60])
def test_against_numpy_twin(statistic, n_classes):
    data = problem(50, n_classes)
    fixed, labels = statistic.given(data), drawn_labels(data.probs, 5, 11)
    ours = redraws(statistic, data).replicates(SEED, 5, 11)
    np.testing.assert_allclose(ours, [statistic(seen(data.probs, y)) for y in labels], rtol=1e-12)
    every = by_class(statistic, data).replicates(SEED, 5, 11)
    np.testing.assert_allclose(every, [fixed.by_class(y) for y in labels], rtol=1e-12, atol=1e-15)
    combined = every.max(axis=1) if "max" in repr(statistic) else every.mean(axis=1)
    np.testing.assert_allclose(ours, combined, rtol=1e-12)


@pytest.mark.parametrize("n_classes", [3, 60])
def test_law_of_each_class_is_exact(n_classes):
    """Mean, spread and tail of every class against its exact null."""
    data = problem(80, n_classes)
    values, _ = simulate_by(by_class(ClasswiseECE(), data), 6000, 1, 1)
    assert values.shape == (6000, n_classes)
    for c in range(min(n_classes, 8)):
        test = ct.calibration_test(data, lens=ct.OneVsRest(c), null="exact")
        error = test.null_std / np.sqrt(6000)
        assert abs(values[:, c].mean() - test.null_mean) < 4.5 * error
        share = (values[:, c] >= test.estimate - 1e-12).mean()
        spread = np.sqrt(test.pvalue * (1 - test.pvalue) / 6000)
        assert abs(share - test.pvalue) < 4.5 * spread + 0.01 * test.pvalue + 1e-4


@pytest.mark.parametrize("aggregate", ["mean", "max"])
def test_joint_law_of_classes(aggregate):
    """Label vectors are drawn whole: over classes, errors vary as on plain draws."""
    data = problem(120, 5)
    statistic = ClasswiseECE(aggregate=aggregate)
    plain = ct.replicate(data, partial(statistic), ct.RedrawLabels(), n_resamples=1500, rng=1)
    ours = ct.replicate(data, statistic, ct.RedrawLabels(), n_resamples=6000, rng=2)
    assert scipy.stats.ks_2samp(plain.values.round(9), ours.values.round(9)).pvalue > 1e-3


@pytest.mark.parametrize("n_classes", [4, 60])
def test_same_for_any_chunks_and_threads(n_classes):
    value = redraws(ClasswiseECE(ct.UniformBins(3)), problem(90, n_classes))
    run = pickle.loads(pickle.dumps(value)).replicates
    whole = run(SEED, 0, 600)
    assert np.array_equal(whole[333:352], run(SEED, 333, 19))
    with ThreadPoolExecutor(4) as pool:
        pieces = list(pool.map(lambda a: run(SEED, a, 60), range(0, 600, 60)))
    assert np.array_equal(whole, np.concatenate(pieces))


def test_same_labels_as_the_errors_of_whole_vectors():
    # One cell for all: Σ_c |share_c − mean_c| is the l1 distance of the whole vectors.
    data, one = problem(70, 6), ct.UniformBins(1)
    cells = Cells.of(one, data.probs)
    whole = CellRedraws.of(data.probs, cells.order, cells.starts, "l1", "sum")
    classes = by_class(ClasswiseECE(one), data).replicates(SEED, 0, 40)
    np.testing.assert_allclose(classes.sum(axis=1), whole.replicates(SEED, 0, 40), rtol=1e-12)


@pytest.mark.parametrize("n_classes", [3, 60])
def test_impossible_labels_are_never_drawn(n_classes):
    data = seen(np.eye(n_classes)[np.arange(40) % n_classes])
    assert not redraws(ClasswiseECE(aggregate="max"), data).replicates(SEED, 0, 1000).any()
