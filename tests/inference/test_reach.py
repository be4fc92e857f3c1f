"""The limits of a difference of two squared errors, against their slow twin and by hand."""

from types import SimpleNamespace

import numpy as np
import pytest
from conftest import cells_of
from twins import reach as twin

from caltest.data import Predictions
from caltest.inference.comparison import (
    COMPARED_SCORES,
    ComparedModel,
    Difference,
    Settings,
    _score_differences,
    verdict_of_pair,
)
from caltest.inference.dependence import SquaredError
from caltest.results import ComparisonVerdict


def both(probs, labels, cells):
    """One model for the package and for the twin."""
    data = Predictions.of(probs, labels, as_is=True)
    assert data.probs == pytest.approx(probs, abs=1e-15)
    partition = cells_of(lambda p: cells, data.probs)
    return ComparedModel(SquaredError.of(partition, data), data), twin.Model(
        data.probs, labels, cells
    )


def problem(seed, n, k, n_cells, lone, rare=False):
    rng = np.random.default_rng([seed, n, k])
    probs = rng.dirichlet(np.full(k, 0.8), n)
    if rare:  # cells that show less than they promise
        probs = np.column_stack([np.full(n, 0.9), np.full((n, k - 1), 0.1 / (k - 1))])
    probs = np.round(probs, 3)
    probs[:, -1] = 1.0 - probs[:, :-1].sum(axis=1)
    probs = np.abs(probs)
    probs /= probs.sum(axis=1, keepdims=True)
    cells = rng.integers(0, n_cells, n)
    cells[:lone] = np.arange(100, 100 + lone)
    labels = np.zeros(n, dtype=int) if rare else rng.integers(0, k, n)
    return probs, labels, cells


CASES = [
    # K, cells of A and B, lone rows of A and B, rare A and B, same labels
    (2, 3, 2, 0, 0, False, False, True),
    (2, 4, 3, 2, 1, False, True, True),
    (2, 2, 5, 0, 4, True, False, True),
    (2, 3, 3, 1, 2, False, False, False),
    (3, 2, 3, 0, 0, False, False, True),
    (3, 4, 2, 2, 0, True, False, True),
    (3, 3, 2, 0, 3, False, True, False),
    (4, 5, 4, 1, 1, True, False, False),
]


@pytest.mark.parametrize("paired", [True, False])
@pytest.mark.parametrize("case", CASES)
def test_reach_against_its_twin(case, paired):
    k, cells_a, cells_b, lone_a, lone_b, rare_a, rare_b, same = case
    n = 13
    a = problem(1, n, k, cells_a, lone_a, rare_a)
    b = problem(2, n if paired else n + 4, k, cells_b, lone_b, rare_b)
    if paired and same:
        b = (b[0], a[1], b[2])
    (side_a, slow_a), (side_b, slow_b) = both(*a), both(*b)
    found = Difference(side_a, side_b, paired)
    assert found.value == pytest.approx(slow_a.estimate - slow_b.estimate, abs=1e-14)
    assert (side_a.error.alone, side_b.error.alone) == (len(slow_a.lone), len(slow_b.lone))
    for z in (0.0, 0.4, 1.96, 5.0):
        for side, slow in ((side_a, slow_a), (side_b, slow_b)):
            for lone in (True, False):
                expected = twin.reach(slow_a, slow_b, paired, z, slow, lone)
                assert found.reach(z, side, lone) == pytest.approx(expected, rel=1e-9, abs=1e-15)
    for level in (0.5, 0.95):
        expected = twin.limits(slow_a, slow_b, paired, level)
        assert found.limits(level) == pytest.approx(expected, rel=1e-9)
    for lone in (True, False):
        expected = twin.pvalue(slow_a, slow_b, paired, lone)
        assert found.pvalue(lone) == pytest.approx(expected, rel=1e-7)


@pytest.mark.parametrize("k", [2, 3])
def test_changes_of_labels_against_computing_them_afresh(k):
    # Exact for the first component of two classes; |r_i|² does not enter, so that T is linear.
    probs, labels, cells = problem(3, 9, k, 3, 1)
    side, slow = both(probs, labels, cells)
    assert side.error.changes == pytest.approx(slow.changes, abs=1e-15)
    assert side.error.changes == pytest.approx(twin.other_labels(probs, labels, cells), abs=1e-14)


def pair_of(n_lone, n=40):
    """A much worse model A, and a B with rows alone in their cell, all of them wrong."""
    labels = np.arange(n) % 2
    a = np.column_stack([np.where(labels == 0, 0.05, 0.95), np.where(labels == 0, 0.95, 0.05)])
    b = np.full((n, 2), 0.5)
    cells_b = np.zeros(n, dtype=int)
    cells_b[:n_lone] = np.arange(1, n_lone + 1)
    return both(a, labels, np.zeros(n, dtype=int)), both(b, labels, cells_b)


def test_rows_alone_count_for_the_better_model_only():
    (a, _), (b, _) = pair_of(5)
    found = Difference(a, b, True)
    assert b.lone == pytest.approx(np.full(5, 0.25 / 40))
    assert a.lone.size == 0
    assert b.lone_limit(0.0) > 5 * 0.25 / 40 > a.lone_limit(3.0) == 0.0
    # Fay & Feuer for equal weights w is w times the Clopper-Pearson-like limit of a Poisson count.
    from scipy.special import gammaincinv, ndtr

    assert b.lone_limit(1.5) == pytest.approx(0.25 / 40 * gammaincinv(6.0, ndtr(1.5)))
    assert found.reach(0.0, b) == pytest.approx(5 * 0.25 / 40 + abs(b.lone_limit(0.0) - 5 / 160))


def test_smallest_pvalue_is_no_zero():
    labels = np.zeros(30_000, dtype=int)
    right = np.tile([0.999, 0.001], (30_000, 1))
    wrong = np.tile([0.2, 0.8], (30_000, 1))
    zeros = np.zeros(30_000, dtype=int)
    sides = [
        ComparedModel(SquaredError.of(cells_of(lambda _: zeros, data.probs), data), data)
        for data in (Predictions.of(p, labels) for p in (wrong, right))
    ]
    assert np.finfo(float).tiny <= Difference(*sides, paired=True).pvalue() < 1e-100


SETTINGS = Settings(None, None, "z", True, 0.95, 0.02, {})


@pytest.mark.parametrize(
    ("difference", "pvalue", "low", "high", "expected"),
    [
        (0.1, 0.05, 0.01, 0.2, ComparisonVerdict.SECOND_BETTER),
        (-0.1, 0.05, -0.2, -0.01, ComparisonVerdict.FIRST_BETTER),
        (0.1, 0.051, -0.01, 0.2, ComparisonVerdict.CANNOT_TELL),
        (0.0003, 0.01, 0.0001, 0.0004, ComparisonVerdict.TIED),
        (0.0003, 0.01, 0.0001, 0.00041, ComparisonVerdict.SECOND_BETTER),
        (-0.0003, 0.01, -0.0004, 0.0, ComparisonVerdict.TIED),
        (-0.0003, 0.01, -0.00041, 0.0, ComparisonVerdict.FIRST_BETTER),
        (0.1, 0.05, None, None, ComparisonVerdict.NOT_EXCHANGEABLE),
        (0.1, 0.06, None, None, ComparisonVerdict.CANNOT_TELL),
    ],
)
def test_verdicts_at_their_borders(difference, pvalue, low, high, expected):
    assert 1.0 - SETTINGS.level >= 0.05  # so that 0.05 differs
    assert verdict_of_pair(SETTINGS, difference, pvalue, low, high) is expected


@pytest.mark.parametrize("paired", [True, False])
@pytest.mark.parametrize("n", [2, 7])
def test_score_differences_against_scipy(paired, n):
    import scipy.stats

    rng = np.random.default_rng(n)
    a, b = (scored(rng.random(m), rng.integers(0, 2, m)) for m in (n, n if paired else n + 3))
    for found in _score_differences(a, b, paired, 0.9):
        rows = [COMPARED_SCORES[found.score].per_row(m.rows) for m in (a, b)]
        if paired:
            expected = scipy.stats.ttest_rel(*rows)
        else:
            expected = scipy.stats.ttest_ind(*rows, equal_var=False)
        numbers = expected.pvalue, *expected.confidence_interval(0.9)
        assert (found.pvalue, found.low, found.high) == pytest.approx(numbers, rel=1e-9)
        assert found.difference == pytest.approx(rows[0].mean() - rows[1].mean())


def scored(p, labels):
    data = Predictions.of(np.asarray(p), np.asarray(labels))
    return SimpleNamespace(analysis=SimpleNamespace(data=data), rows=data, times=None)


def test_score_differences_without_spread():
    right = np.ones(5, dtype=int)
    a, b = (scored(np.full(5, p), right) for p in (0.3, 0.5))
    same, _ = _score_differences(a, a, True, 0.95)
    assert (same.pvalue, same.low, same.high) == (1.0, 0.0, 0.0)
    apart, _ = _score_differences(a, b, True, 0.95)
    assert apart.pvalue == np.finfo(float).tiny
    assert apart.low == apart.high == pytest.approx(0.49 - 0.25)
    single = _score_differences(scored([0.2], [1]), scored([0.1], [1]), True, 0.95)
    assert [(s.pvalue, s.difference) for s in single] == [(None, None)] * 2
    a, b = scored([0.0, 0.5], [1, 0]), scored([0.5, 0.5], [1, 0])
    assert [s.pvalue is None for s in _score_differences(a, b, True, 0.95)] == [False, True]
