"""Smooth ECE: relplot's numbers, direct sums, bounds, size."""

import numpy as np
import pytest
import reference_curves as slow
from conftest import event, two
from numpy.testing import assert_allclose

import caltest as ct
from caltest.problem import Flips
from caltest.statistics import smooth
from caltest.statistics.base import problem_of
from caltest.statistics.smooth import SmoothECE, smooth_curve


@pytest.mark.parametrize(
    ("problem", "error", "width"),
    [  # relplot 1.0.3: smECE(p, y, return_width=True)
        (([0.2, 0.4, 0.6, 0.8], [0, 1, 0, 1]), 0.12992608743317116, 0.1318359375),
        (
            ([0.1, 0.3, 0.3, 0.7, 0.9, 0.95, 1.0, 0.0], [0, 1, 0, 1, 1, 0, 1, 0]),
            0.1519509046923463,
            0.1533203125,
        ),
    ],
)
def test_relplot(problem, error, width):
    curve = smooth_curve(*problem)
    assert curve.width == width
    assert curve.error == pytest.approx(error, abs=1e-14)
    assert SmoothECE()(*problem) == pytest.approx(error, abs=1e-14)


def test_relplot_on_random_data():
    generator = np.random.default_rng(5)
    p = generator.beta(0.5, 0.5, 4000)
    y = (generator.random(4000) < p).astype(int)
    assert SmoothECE()(p, y) == pytest.approx(0.016246551598726157, abs=1e-14)


@pytest.mark.slow
@pytest.mark.parametrize("style", ["plain", "decimals", "corners"])
@pytest.mark.parametrize("n", [2, 25, 200])
def test_against_direct_sums(n, style):
    p, y = two(n, n, style)
    error, width = slow.smooth_ece(p, y)
    curve = smooth_curve(p, y)
    assert (curve.width, curve.error) == (width, pytest.approx(error, abs=1e-12))


@pytest.mark.parametrize("width", [1.0, 0.25, 7 / 1024, 8 / 1024])
def test_one_width_against_direct_sums(width):
    # Among them a grid with an even number of points, which has no middle.
    p, y = two(4, 60)
    fixed = SmoothECE().prepare(problem_of(event(p, y)))
    transformed = smooth._transformed(p, (y - p)[None, :], smooth._grid_size(width))
    expected = slow.smooth_at(p, y, width)
    assert fixed.errors(width, transformed) == pytest.approx(expected, rel=1e-11)
    assert smooth._grid_size(7 / 1024) % 2 == 0


@pytest.mark.parametrize("style", ["plain", "decimals", "corners"])
def test_moved_residuals_against_direct_sums(style):
    p, y = two(6, 25, style)
    data = event(p, y)
    fixed, signs = (
        SmoothECE().prepare(problem_of(data)),
        np.random.default_rng(1).choice([-1.0, 1.0], 25),
    )
    values = fixed.values(Flips(np.stack([np.ones(25), signs])))
    expected = [SmoothECE()(p, y), slow.smooth_ece(p, y, signs)[0]]
    assert_allclose(values, expected, atol=1e-12)


def test_curve_of_an_induced_problem_keeps_its_event():
    top = ct.TopK(1)(ct.Predictions.of([[0.8, 0.2], [0.4, 0.6], [0.7, 0.3]], [0, 0, 1]))
    expected = smooth_curve([0.8, 0.6, 0.7], [1, 0, 0])
    assert_allclose(smooth_curve(top).observed, expected.observed, atol=1e-12)


@pytest.mark.parametrize(("p", "y"), [([1.0] * 5, [0] * 5), ([0.0], [1]), ([0.5] * 4, [1] * 4)])
def test_all_wrong(p, y):
    gap = abs(p[0] - y[0])
    assert SmoothECE()(p, y) == pytest.approx(gap, abs=0.01)


def test_all_right():
    curve = smooth_curve([0.0, 1.0, 1.0], [0, 1, 1])
    assert curve.error == 0.0
    assert curve.width == 2 / 1024  # the smallest that is tried


def test_limit_is_the_mean_error():
    # r(p) = p + 0.1 sin(2πp): for smooth errors and many rows smECE tends to E|r(p) − p| = 0.2 / π,
    # less what the kernel of that width takes off.
    generator = np.random.default_rng(1)
    p = generator.random(200_000)
    y = (generator.random(p.size) < p + 0.1 * np.sin(2 * np.pi * p)).astype(int)
    curve = smooth_curve(p, y)
    damping = np.exp(-0.5 * (2 * np.pi * curve.width) ** 2)
    assert curve.error == pytest.approx(0.2 / np.pi * damping, rel=0.06)
    inner = slice(40, 160)
    truth = curve.predicted + 0.1 * damping * np.sin(2 * np.pi * curve.predicted)
    assert_allclose(curve.observed[inner], truth[inner], atol=0.015)
    assert_allclose(curve.density, 1.0, atol=0.05)


def test_curve_is_what_the_error_measures():
    p, y = two(2, 400)
    curve = smooth_curve(p, y, points=800)
    gap = np.abs(curve.observed - curve.predicted) @ curve.density / curve.density.sum()
    assert gap == pytest.approx(curve.error, abs=1e-3)
