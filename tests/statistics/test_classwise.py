"""Class-wise errors of redrawn labels: all classes at once against one class after the other."""

from functools import partial

import numpy as np
import pytest
import scipy.stats
from conftest import seen

import caltest as ct
from caltest.simulate import Batches, simulate_by
from caltest.statistics import ClasswiseECE
from caltest.statistics.base import problem_of

SEED = (0x0123456789ABCDEF, 0xFEDCBA9876543210)


def problem(n, n_classes, seed=3):
    generator = np.random.default_rng(seed)
    probs = generator.dirichlet(np.full(n_classes, 0.5), n)
    return seen(probs, generator.integers(n_classes, size=n))


def redraws(statistic, data):
    return Batches.of(ct.RedrawLabels(), data, statistic.prepare(problem_of(data)).batch)


def by_class(statistic, data):
    """The errors of all classes from each draw: K numbers a replicate."""
    fixed = statistic.prepare(problem_of(data))

    def errors(labels):
        return fixed.by_class(fixed._sums(labels))

    return Batches.of(ct.RedrawLabels(), data, errors)


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


@pytest.mark.parametrize("n_classes", [3, 60])
def test_impossible_labels_are_never_drawn(n_classes):
    data = seen(np.eye(n_classes)[np.arange(40) % n_classes])
    assert not redraws(ClasswiseECE(aggregate="max"), data).replicates(SEED, 0, 1000).any()
