"""Exact consistency bars."""

import numpy as np
import pytest
import scipy.stats
from conftest import cells_of

import caltest as ct
from caltest.reliability.bars import consistency_bars


def bars(p, m, level):
    probs = np.column_stack([p, 1 - p])
    cells = cells_of(ct.UniformBins(m), probs)
    return cells, *consistency_bars(cells, level)


@pytest.mark.parametrize("level", [0.5, 0.9, 0.99])
def test_bars_of_equal_predictions_against_the_binomial_quantiles(level):
    p = np.repeat([0.05, 0.3, 0.8], [400, 50, 7])
    _, low, high = bars(p, 10, level)
    for b, (value, n) in enumerate([(0.05, 400), (0.3, 50), (0.8, 7)]):
        law = scipy.stats.binom(n, value)
        assert round(low[b] * n) == law.ppf((1 - level) / 2 + 1e-12)
        assert round(high[b] * n) == law.ppf(1 - (1 - level) / 2 - 1e-12)


def test_bars_hold_their_level_by_simulation(rng):
    p = rng.random(300)
    cells, low, high = bars(p, 6, 0.9)
    inside = np.zeros(6)
    for _ in range(2000):
        frequency = cells.sum(rng.random(300) < p) / cells.counts
        inside += (frequency >= low - 1e-12) & (frequency <= high + 1e-12)
    limits = scipy.stats.binom.isf(1 - 1e-5, 2000, 0.9)
    assert (inside >= limits).all()
    assert (inside <= 2000 * 0.97).all()


def test_bars_of_certain_predictions_have_no_width():
    p = np.array([0.0, 0.0, 1.0])
    _, low, high = bars(p, 2, 0.9)
    np.testing.assert_array_equal(low, [0.0, 1.0])
    np.testing.assert_array_equal(high, [0.0, 1.0])
