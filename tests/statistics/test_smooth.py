"""Smooth ECE: the formula by quadrature, its curve, bounds."""

import numpy as np
import pytest
from conftest import event, two
from numpy.testing import assert_allclose
from twins import curves as slow

import caltest as ct
from caltest.statistics import Flips
from caltest.statistics.prepared import problem_of
from caltest.statistics.smooth import SmoothECE, smooth_curve


@pytest.mark.parametrize("style", ["plain", "decimals", "ties", "corners"])
@pytest.mark.parametrize("n", [2, 25, 100])
def test_against_quadrature(n, style):
    p, y = two(n, n, style)
    expected = slow.smooth_ece(p, (p - y) / n)
    curve = smooth_curve(p, y)
    assert curve.error == SmoothECE()(p, y) == pytest.approx(expected, abs=1e-7)
    assert curve.width == pytest.approx(curve.error, abs=1e-9)


def test_small_width_against_quadrature(rng):
    # On the second grid: few events among small probabilities, and rows of little weight.
    p, y = np.append(rng.uniform(0.0, 0.014, 40), [0.2, 0.5, 0.8]), np.repeat([0, 1], [41, 2])
    w = np.append(np.ones(40), np.full(3, 0.05))
    value = SmoothECE()(ct.Predictions.of(p, y, weights=w))
    assert value == pytest.approx(slow.smooth_ece(p, w * (p - y) / w.sum()), abs=1e-7)
    assert 10 / 2**12 < value < 10 / 2**10


def test_moved_residuals_and_many_at_once_against_quadrature():
    p, y = two(6, 25, "corners")
    fixed = SmoothECE().prepare(problem_of(event(p, y)))
    signs = np.random.default_rng(1).choice([-1.0, 1.0], (600, 25))
    values = fixed.values(Flips(signs))
    for i in (0, 599):
        assert values[i] == fixed.values(Flips(signs[i : i + 1]))[0]
        assert values[i] == pytest.approx(slow.smooth_ece(p, signs[i] * (p - y) / 25), abs=1e-7)


@pytest.mark.parametrize("style", ["plain", "corners"])
def test_curve_against_direct_sums(style):
    p, y = two(3, 40, style)
    curve = smooth_curve(p, y, points=50)
    masses = [slow.smoothed(curve.predicted, p, r, curve.width) for r in (y - p, np.ones(40))]
    expected = curve.predicted + masses[0] / (masses[1] + 1e-4)
    assert_allclose(curve.observed, expected, atol=1e-6)
