"""All scales in one statistic: twins, exact standardisation, power where others have none."""

import numpy as np
import pytest
from conftest import problem, seen

import caltest as ct
from caltest import StatisticError
from caltest.exact import enumerated_null
from caltest.statistics import DebiasedL2, MultiScale
from caltest.statistics.base import problem_of


def standardised(fixed, labels):
    return fixed.standardised(fixed.problem.sums(labels[None], fixed.cells, "cells"))


def test_scales_are_debiased_errors_and_cells_are_nested():
    probs, labels = problem(3, 500, 2, "decimals")
    fixed = MultiScale().prepare(problem_of(seen(probs)))
    values = standardised(fixed, labels)[0] * fixed.deviations
    for m, value in zip(fixed.m, values, strict=True):
        assert value == pytest.approx(DebiasedL2(int(m))(seen(probs, labels)), abs=1e-14)
    probs, labels = problem(4, 300, 4)
    fixed = MultiScale([2, 8, 64]).prepare(problem_of(seen(probs)))
    values = standardised(fixed, labels)[0] * fixed.deviations
    for m, value in zip(fixed.m, values, strict=True):
        tree = ct.VarianceTree(-(-300 // int(m)))
        assert value == pytest.approx(DebiasedL2(tree)(probs, labels), abs=1e-14)


@pytest.mark.parametrize(("k", "n"), [(2, 10), (3, 6)])
def test_standardised_exactly(k, n):
    probs, _ = problem(7, n, k)
    fixed = MultiScale([1, 2, 4]).prepare(problem_of(seen(probs)))
    for s in range(fixed.m.size):
        law = enumerated_null(lambda y, s=s: standardised(fixed, y)[0, s], probs)
        assert law.mean() == pytest.approx(0.0, abs=1e-12)
        assert law.std() == pytest.approx(1.0, rel=1e-12)


def waves(generator, n):
    """F.10: 20 waves of height 0.3 that no coarse bin can see."""
    p = generator.uniform(0.001, 0.999, n)
    truth = np.clip(p + 0.3 * np.sin(40 * np.pi * p) * 4 * p * (1 - p), 0, 1)
    return p, (generator.random(n) < truth).astype(int)


def rejections(statistic, datasets):
    count = 0
    for p, y in datasets:
        result = ct.calibration_test(
            p, y, statistic, lens=ct.OneVsRest(1), null=ct.RedrawLabels(), n_resamples=199, rng=1
        )
        count += result.pvalue <= 0.05
    return count


def test_waves_are_caught_that_fifteen_bins_do_not_see():
    generator = np.random.default_rng(1)
    datasets = [waves(generator, 500) for _ in range(40)]
    assert rejections(MultiScale(), datasets) >= 24  # 0.80 of 300 in a larger study
    assert rejections(ct.ECE(15), datasets) <= 14


def test_data_that_cannot_vary_are_refused():
    for probs in ([[0.3, 0.7]], [[0.0, 1.0], [1.0, 0.0]], [[1.0, 0.0, 0.0]] * 4):
        with pytest.raises(StatisticError, match="no scale has a cell of two rows"):
            MultiScale().prepare(problem_of(seen(probs)))


def test_cells_in_which_one_row_can_vary_are_no_scale():
    probs = np.array([[0.3, 0.3, 0.4], [1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.2, 0.8, 0.0]])
    assert MultiScale([1, 2]).prepare(problem_of(seen(probs))).m.tolist() == [1]
    with pytest.raises(StatisticError, match="no scale"):
        MultiScale([1]).prepare(problem_of(seen(probs[:3])))
