"""The smooth ECE of relplot: its numbers, and direct sums."""

import numpy as np
import pytest
from conftest import event, two
from numpy.testing import assert_allclose
from twins import curves as slow

import caltest as ct
from caltest.statistics import Flips
from caltest.statistics import smooth as relplot
from caltest.statistics.prepared import problem_of

PRESET = ct.presets.relplot(task="binary")


def test_numbers():
    """What relplot 1.0.3 has for smECE(p, y)."""
    p = [0.1, 0.3, 0.3, 0.7, 0.9, 0.95, 1.0, 0.0]
    assert PRESET([0.2, 0.4, 0.6, 0.8], [0, 1, 0, 1]) == pytest.approx(0.12992608743317116)
    assert PRESET(p, [0, 1, 0, 1, 1, 0, 1, 0]) == pytest.approx(0.1519509046923463, abs=1e-14)
    generator = np.random.default_rng(5)
    p = generator.beta(0.5, 0.5, 4000)
    y = (generator.random(4000) < p).astype(int)
    assert PRESET(p, y) == pytest.approx(0.016246551598726157, abs=1e-14)


@pytest.mark.slow
@pytest.mark.parametrize("style", ["plain", "decimals", "corners"])
@pytest.mark.parametrize("n", [2, 25, 200])
def test_against_direct_sums(n, style):
    p, y = two(n, n, style)
    assert PRESET(p, y) == pytest.approx(slow.relplot_smooth_ece(p, y)[0], abs=1e-12)


@pytest.mark.parametrize("width", [1.0, 0.25, 7 / 1024, 8 / 1024])
def test_one_width_against_direct_sums(width):
    # Among them a grid with an even number of points, which has no middle.
    p, y = two(4, 60)
    fixed = PRESET.statistic.prepare(problem_of(event(p, y)))
    transformed = relplot._transformed(p, (y - p)[None, :], relplot._grid_size(width))
    expected = slow.relplot_at(p, y, width)
    assert fixed.errors(width, transformed) == pytest.approx(expected, rel=1e-11)
    assert relplot._grid_size(7 / 1024) % 2 == 0


@pytest.mark.parametrize("style", ["plain", "decimals", "corners"])
def test_moved_residuals_against_direct_sums(style):
    p, y = two(6, 25, style)
    fixed = PRESET.statistic.prepare(problem_of(event(p, y)))
    signs = np.random.default_rng(1).choice([-1.0, 1.0], 25)
    values = fixed.values(Flips(np.stack([np.ones(25), signs])))
    assert_allclose(values, [PRESET(p, y), slow.relplot_smooth_ece(p, y, signs)[0]], atol=1e-12)
