"""Reliability on the simplex."""

import numpy as np
import pytest
import scipy.stats
from hypothesis import given
from hypothesis import strategies as st

import caltest as ct
from caltest.inference.diagrams import SimplexGrid, reliability_simplex


@pytest.mark.parametrize(("m", "n_classes", "cells"), [
    (5, 3, 25), (10, 3, 100), (2, 4, 5), (3, 4, 15), (5, 4, 65),
])  # fmt: skip
def test_number_of_cells(rng, m, n_classes, cells):
    probs = rng.dirichlet(np.ones(n_classes), 60_000)
    assert len(np.unique(SimplexGrid(m)(probs))) == cells


@given(m=st.integers(1, 12), whole=st.lists(st.integers(0, 12), min_size=3, max_size=4))
def test_points_on_edges_belong_to_a_cell_that_touches_them(m, whole):
    total = sum(whole)
    if total == 0:
        return
    probs = np.array([whole], dtype=float) / total
    slices = SimplexGrid(m).slices(probs)
    assert (slices >= 0).all()
    assert m - len(whole) + 1 <= slices.sum() <= m - 1
    assert (slices / m <= probs + 1e-9).all()
    assert ((slices + 1) / m >= probs - 1e-9).all()


def test_table_against_a_loop(rng):
    probs, labels = rng.dirichlet(np.ones(3), 500), rng.integers(0, 3, 500)
    simplex = reliability_simplex(probs, labels, bins=4, n_resamples=99, rng=1)
    assert simplex.count.sum() == 500
    for row in range(simplex.count.size):
        inside = ((probs >= simplex.bin_low[row]) & (probs <= simplex.bin_high[row])).all(axis=1)
        assert inside.sum() == simplex.count[row]
        np.testing.assert_allclose(probs[inside].mean(axis=0), simplex.predicted[row])
        frequencies = np.bincount(labels[inside], minlength=3) / inside.sum()
        np.testing.assert_allclose(frequencies, simplex.observed[row])
    np.testing.assert_allclose(simplex.deviation.sum(axis=1), 0.0, atol=1e-12)
    ece = 0.5 * np.abs(simplex.deviation).sum(axis=1) @ simplex.count / 500
    assert simplex.test.estimate == pytest.approx(ece)


def test_cell_p_values_are_valid_and_not_wasteful(rng):
    """Against all outcomes of a small cell, enumerated through the multinomial law."""
    q = np.array([0.5, 0.3, 0.2])
    outcomes = [(a, b, 6 - a - b) for a in range(7) for b in range(7 - a)]
    level = []
    for outcome in outcomes:
        labels = np.repeat([0, 1, 2], outcome)
        simplex = reliability_simplex(np.tile(q, (6, 1)), labels, bins=1, n_resamples=1)
        level.append(simplex.pvalue[0])
    mass = scipy.stats.multinomial(6, q).pmf(outcomes)
    for alpha in (0.05, 0.1, 0.3):
        assert mass[np.array(level) <= alpha].sum() <= alpha
    assert mass[np.array(level) <= 0.3].sum() > 0.05


def test_weights_without_a_common_unit_against_enumeration():
    """Four rows in two cells: all 81 label vectors, weighted, give the p-values that draws near."""
    probs = np.array([[0.6, 0.3, 0.1], [0.55, 0.15, 0.3], [0.1, 0.7, 0.2], [0.3, 0.6, 0.1]])
    labels, weights = np.array([1, 2, 1, 0]), np.array([1.0, np.sqrt(2.0), np.pi, 0.5])
    run = {"bins": ct.UniformBins(2), "n_resamples": 20_000, "rng": 1}
    cell = np.array([1, 1, 0, 0])
    every = np.array(list(np.ndindex(3, 3, 3, 3)))
    mass = np.prod(probs[np.arange(4), every], axis=1)
    residuals = weights[:, None] * (np.eye(3)[every] - probs)
    sums = np.stack([residuals[:, cell == c].sum(axis=1) for c in (0, 1)], axis=1)  # (81, 2, 3)
    sizes = (np.abs(sums) / np.sqrt(np.einsum("v,vck->ck", mass, sums**2))).max(axis=2)
    own = sizes[(every == labels).all(axis=1)][0]
    simplex = reliability_simplex(probs, labels, weights=weights, **run)
    assert simplex.n_resamples == 20_000
    frequency = np.bincount(labels[:2], weights[:2], 3) / weights[:2].sum()
    rows = np.argsort(simplex.predicted[:, 0])
    np.testing.assert_allclose(simplex.observed[rows[1]], frequency)
    exact = [mass[sizes[:, c] >= own[c] - 1e-9].sum() for c in (0, 1)]
    adjusted = [mass[sizes.max(axis=1) >= own[c] - 1e-9].sum() for c in (0, 1)]
    np.testing.assert_allclose(simplex.pvalue[rows], exact, atol=0.015)
    np.testing.assert_allclose(simplex.adjusted[rows], adjusted, atol=0.015)


def test_whole_weights_are_exact_whatever_their_scale_and_equal_ones_are_none(rng):
    probs, labels = rng.dirichlet(np.ones(3), 60), rng.integers(0, 3, 60)
    weights = rng.integers(0, 4, 60)
    run = {"bins": 2, "n_resamples": 9, "rng": 1}
    one, two = (reliability_simplex(probs, labels, weights=c * weights, **run) for c in (1, 0.1))
    plain = reliability_simplex(probs, labels, **run)
    assert one.n_resamples == 0
    assert one.effective_n == pytest.approx(weights.sum() ** 2 / (weights**2).sum())
    np.testing.assert_array_equal(one.pvalue, two.pvalue)
    assert not np.allclose(one.pvalue, plain.pvalue)
    alike = reliability_simplex(probs, labels, weights=np.full(60, 2.5), **run)
    np.testing.assert_allclose(alike.pvalue, plain.pvalue)
    alone = reliability_simplex(probs, labels, clusters=np.arange(60), **run)
    np.testing.assert_array_equal(alone.pvalue, plain.pvalue)
