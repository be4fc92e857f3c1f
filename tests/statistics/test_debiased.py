"""Debiased errors: against pairs of rows, published values, and enumeration."""

import itertools

import numpy as np
import pytest
from conftest import seen

import caltest as ct
from caltest.statistics import DebiasedL1, DebiasedL2
from caltest.statistics.prepared import problem_of
from validation import agreement


def test_is_unbiased_by_enumeration():
    probs = np.array([[0.7, 0.2, 0.1], [0.6, 0.3, 0.1], [0.1, 0.1, 0.8], [0.2, 0.1, 0.7]])
    truth = np.array([[0.5, 0.4, 0.1], [0.5, 0.4, 0.1], [0.3, 0.1, 0.6], [0.4, 0.1, 0.5]])
    fixed = DebiasedL2(2).prepare(problem_of(seen(probs)))
    mean = 0.0
    for labels in itertools.product(range(3), repeat=4):
        mean += np.prod(truth[np.arange(4), labels]) * fixed(np.array(labels))
    gap = truth - probs  # rows 0, 1 share a cell, and rows 2, 3
    assert mean == pytest.approx(0.5 * gap[0] @ gap[1] + 0.5 * gap[2] @ gap[3], abs=1e-14)


def test_kumars_estimate_leaves_out_single_rows():
    p, labels = np.array([0.2, 0.6, 0.6, 0.6]), np.array([1, 1, 1, 0])
    # (2/3 − 0.6)² − (2/3)(1/3)/2 of three rows; the first row is alone.
    expected = 3 / 4 * ((2 / 3 - 0.6) ** 2 - 1 / 9)
    assert DebiasedL2(2, estimator="kumar")(p, labels) == pytest.approx(expected)


def test_debiased_l1_against_simulated_normals(rng):
    induced = ct.TopK(1)(ct.Predictions.of(*agreement.data("W")))
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


def test_edge_bins():
    p = np.array([0.0, 0.05, 0.1, 0.2, 0.7, 1.0])
    np.testing.assert_array_equal(ct.EdgeBins([0.05, 0.2])(p), [0, 0, 1, 1, 2, 2])
    np.testing.assert_array_equal(ct.EdgeBins([0.05, 0.2], closed="left")(p), [0, 1, 1, 2, 2, 2])
