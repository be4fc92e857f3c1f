"""All scales in one statistic: twins, exact standardisation, power where others have none."""

import numpy as np
import pytest
from conftest import problem, seen

from caltest.errors import StatisticError
from caltest.inference.null import enumerated_null
from caltest.statistics import MultiScale
from caltest.statistics.prepared import problem_of


def standardised(fixed, labels):
    return fixed.standardised(fixed.problem.sums(labels[None], fixed.cells, "cells"))


@pytest.mark.parametrize(("k", "n"), [(2, 10), (3, 6)])
def test_standardised_exactly(k, n):
    probs, _ = problem(7, n, k)
    fixed = MultiScale([1, 2, 4]).prepare(problem_of(seen(probs)))
    for s in range(fixed.m.size):
        law = enumerated_null(lambda y, s=s: standardised(fixed, y)[0, s], probs)
        assert (law.mean(), law.std()) == pytest.approx((0.0, 1.0), rel=1e-12, abs=1e-12)


def test_a_million_rows_have_no_scale_finer_than_the_bins_that_there_may_be():
    halves = problem_of(seen(np.full((2**20, 2), 0.5)))
    assert MultiScale().prepare(halves).m.max() == 2**19


def test_data_that_cannot_vary_are_refused():
    for probs in ([[0.3, 0.7]], [[0.0, 1.0], [1.0, 0.0]], [[1.0, 0.0, 0.0]] * 4):
        with pytest.raises(StatisticError, match="no scale has a cell of two rows"):
            MultiScale().prepare(problem_of(seen(probs)))


def test_cells_in_which_one_row_can_vary_are_no_scale():
    probs = np.array([[0.3, 0.3, 0.4], [1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.2, 0.8, 0.0]])
    assert MultiScale([1, 2]).prepare(problem_of(seen(probs))).m.tolist() == [1]
    with pytest.raises(StatisticError, match="no scale"):
        MultiScale([1]).prepare(problem_of(seen(probs[:3])))
