"""The monotone sweep against its twin, by hand, and under redrawn labels."""

import itertools

import numpy as np
import pytest
from conftest import event, two
from twins import families as slow

from caltest.statistics.isotonic import Sweep
from caltest.statistics.prepared import problem_of


@pytest.mark.parametrize("style", ["plain", "decimals", "corners"])
@pytest.mark.parametrize("n", [1, 2, 7, 60, 200])
def test_number_of_bins_against_slow_twin(n, style):
    for seed in range(6):
        p, y = two(seed, n, style)
        value, b = slow.sweep(p, y)
        data = event(p, y)
        fixed = Sweep().prepare(problem_of(data))
        assert fixed.n_bins(data.labels) == b
        assert fixed(data.labels) == pytest.approx(value, abs=1e-12)


def test_the_published_loop_gives_the_same_bins():
    """The authors' loop, with ties broken by the order of the rows, on data without ties."""
    generator = np.random.default_rng(9)
    for _ in range(20):
        n = int(generator.integers(3, 90))
        p = generator.random(n)
        y = (generator.random(n) < p).astype(int)
        order, previous = np.argsort(p), np.zeros(n, dtype=int)
        for b in range(2, n):
            bins = np.minimum(b - 1, np.arange(n) * b // n)
            means = [y[order[bins == j]].mean() for j in range(b)]
            if any(a > c for a, c in itertools.pairwise(means)):
                break
            previous = bins
        else:
            continue  # it stops at n − 1 bins, one short of the algorithm
        gaps = [abs((y - p)[order[previous == j]].sum()) for j in range(previous.max() + 1)]
        assert Sweep()(p, y) == pytest.approx(sum(gaps) / n, abs=1e-12)


@pytest.mark.filterwarnings("ignore::caltest.errors.DoubtfulInputWarning")
def test_separable_labels_of_many_rows_take_no_time():
    p = np.sort(np.random.default_rng(1).random(300_000))
    assert Sweep()(p, (p > 0.5).astype(int)) == pytest.approx(0.25, abs=0.01)
