"""Debiased errors: against pairs of rows, published values, and enumeration."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import reference as ref
import scipy.stats
from conftest import seen

import caltest as ct
from caltest import StatisticError
from caltest.problem import Flips
from caltest.statistics import DebiasedL1, DebiasedL2
from caltest.statistics.base import problem_of


@pytest.fixture(scope="module")
def calzone():
    state = np.random.RandomState(123)  # the published stream
    p = scipy.stats.beta.rvs(0.5, 0.5, size=5000, random_state=state)
    return ct.Predictions.of(p, state.binomial(1, p))


@pytest.mark.parametrize(("m", "lens", "estimator", "expected"), [
    (10, ct.OneVsRest(1), "pairs", 5.431794e-05),
    (10, ct.OneVsRest(1), "tcal", 5.413033e-05),
    (15, ct.OneVsRest(1), "pairs", -1.854988e-04),
    (15, ct.OneVsRest(1), "tcal", -1.847517e-04),
    (10, ct.TopK(1), "pairs", 1.016686e-04),
    (10, ct.TopK(1), "tcal", 1.015006e-04),
    (10, ct.OneVsRest(1), "kumar", 5.412142e-05),
    (15, ct.OneVsRest(1), "kumar", -1.861306e-04),
    (10, ct.TopK(1), "kumar", 1.015922e-04),
])  # fmt: skip
def test_published_values(calzone, m, lens, estimator, expected):
    value = DebiasedL2(m, estimator=estimator)(lens(calzone))
    assert value == pytest.approx(expected, abs=6e-11)


def test_first_rows_of_calzone(calzone):
    value = DebiasedL2(10)(calzone.take(np.arange(300)))
    assert value == pytest.approx(-0.002103737507764719, rel=1e-12)


def test_tiny_values_of_tcal():
    z, y = np.array([0.1, 0.2, 0.35, 0.6, 0.8, 0.95]), np.array([0, 1, 0, 1, 1, 1])
    assert DebiasedL2(2, estimator="tcal")(z, y) == pytest.approx(-0.0238889, abs=1e-7)


@pytest.mark.parametrize("n_classes", [2, 3, 10])
@pytest.mark.parametrize("bins", [ct.UniformBins(3), ct.VarianceTree(10)], ids=repr)
def test_equals_the_average_over_pairs(rng, n_classes, bins):
    probs = rng.dirichlet(np.full(n_classes, 0.5), size=80)
    labels = rng.integers(n_classes, size=80)
    expected = ref.debiased(ref.residuals(probs, labels), bins(probs))
    assert DebiasedL2(bins)(seen(probs, labels)) == pytest.approx(expected, rel=1e-10, abs=1e-14)


def test_is_unbiased_by_enumeration():
    probs = np.array([[0.7, 0.2, 0.1], [0.6, 0.3, 0.1], [0.1, 0.1, 0.8], [0.2, 0.1, 0.7]])
    truth = np.array([[0.5, 0.4, 0.1], [0.5, 0.4, 0.1], [0.3, 0.1, 0.6], [0.4, 0.1, 0.5]])
    fixed = DebiasedL2(2).prepare(problem_of(seen(probs)))
    mean = 0.0
    for labels in itertools.product(range(3), repeat=4):
        weight = np.prod(truth[np.arange(4), labels])
        mean += weight * fixed(np.array(labels))
    gap = truth - probs  # rows 0, 1 share a cell, and rows 2, 3
    assert mean == pytest.approx(0.5 * gap[0] @ gap[1] + 0.5 * gap[2] @ gap[3], abs=1e-14)


def test_cells_of_one_row_count_nothing():
    assert DebiasedL2(10)(np.array([0.05, 0.55]), np.array([1, 0])) == 0.0


def test_kumars_estimate_leaves_out_single_rows():
    p, labels = np.array([0.2, 0.6, 0.6, 0.6]), np.array([1, 1, 1, 0])
    # (2/3 − 0.6)² − (2/3)(1/3)/2 of three rows; the first row is alone.
    expected = 3 / 4 * ((2 / 3 - 0.6) ** 2 - 1 / 9)
    assert DebiasedL2(2, estimator="kumar")(p, labels) == pytest.approx(expected)


def test_debiased_l1_against_simulated_normals(calzone, rng):
    induced = ct.TopK(1)(calzone)
    p, y = induced.probs[:, 0], induced.labels == 0
    cell = ct.UniformBins(10)(induced.probs)
    plain, noisy = 0.0, np.zeros(20_000)
    for b in np.unique(cell):
        share, rate = (cell == b).mean(), y[cell == b].mean()
        sigma = np.sqrt(rate * (1 - rate) / (cell == b).sum())
        gap = rate - p[cell == b].mean()
        plain += share * abs(gap)
        noisy += share * np.abs(gap + sigma * rng.standard_normal(noisy.size))
    expected = 2 * plain - noisy.mean()
    error = noisy.std() / np.sqrt(noisy.size)
    assert DebiasedL1(10)(induced) == pytest.approx(expected, abs=4 * error)


def test_debiased_l1_without_noise_is_the_plain_error():
    p, y = np.full(10, 0.75), np.ones(10, dtype=int)
    assert DebiasedL1(5)(p, y) == pytest.approx(0.25)


def test_refuses():
    with pytest.raises(StatisticError, match="estimator must be"):
        DebiasedL2(10, estimator="sun")
    with pytest.raises(StatisticError, match="bins must be a number"):
        DebiasedL2("ten")
    with pytest.raises(StatisticError, match="two-class lens"):
        DebiasedL1(3)(np.full((2, 3), 1 / 3), np.array([0, 1]))


def test_edge_bins():
    p = np.array([0.0, 0.05, 0.1, 0.2, 0.7, 1.0])
    np.testing.assert_array_equal(ct.EdgeBins([0.05, 0.2])(p), [0, 0, 1, 1, 2, 2])
    np.testing.assert_array_equal(ct.EdgeBins([0.05, 0.2], closed="left")(p), [0, 1, 1, 2, 2, 2])
    assert repr(ct.EdgeBins([0.5], closed="left")) == "EdgeBins([0.5], closed='left')"
    with pytest.raises(StatisticError, match="increasing"):
        ct.EdgeBins([0.2, 0.2])
    with pytest.raises(StatisticError, match="one coordinate"):
        ct.EdgeBins([0.2])(np.full((2, 3), 1 / 3))


@pytest.mark.parametrize("n_classes", [2, 4])
def test_moved_residuals_against_pairs_of_rows(rng, n_classes):
    probs = rng.dirichlet(np.ones(n_classes), size=50)
    data = seen(probs, rng.integers(n_classes, size=50))
    signs = rng.choice([-1.0, 1.0], size=(3, 50))
    moved = DebiasedL2(3).prepare(problem_of(data)).values(Flips(signs))
    rows = ref.residuals(probs, data.labels)
    cells = ct.UniformBins(3)(probs)
    expected = [ref.debiased(s[:, None] * rows, cells) for s in signs]
    np.testing.assert_allclose(moved, expected, rtol=1e-10, atol=1e-14)
