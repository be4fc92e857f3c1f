"""Isotonic fits and CORP: published values, the max-min formula, scikit-learn's habits, size."""

import numpy as np
import pytest
from conftest import EVENTS
from hypothesis import given
from numpy.testing import assert_allclose
from twins import curves as slow

import caltest as ct
from caltest.inference.diagrams import corp_decomposition
from caltest.statistics.isotonic import CORP, isotonic_fit

SCORES = ["brier", "log"]


@given(EVENTS)
def test_fit_against_max_min_formula(problem):
    p, y = problem
    fit = isotonic_fit(p, y)
    expected = slow.isotonic(p, y)
    assert fit.predicted.tolist() == list(expected)
    assert_allclose(fit.observed, list(expected.values()), rtol=0, atol=1e-15)
    assert fit.count.tolist() == [int((p == e).sum()) for e in expected]
    assert_allclose(fit(p), [expected[v] for v in p], atol=1e-15)


def test_fit_between_and_outside_the_predictions():
    fit = isotonic_fit([0.2, 0.4, 0.8], [0, 0, 1])
    assert_allclose(fit([0.0, 0.2, 0.6, 0.8, 1.0]), [0.0, 0.0, 0.5, 1.0, 1.0], atol=1e-15)


@given(EVENTS)
def test_decomposition_against_slow_twin(problem):
    p, y = problem
    for score in SCORES:
        expected = slow.corp(p, y, score)
        parts = corp_decomposition(p, y, score=score)
        found = (parts.miscalibration, parts.discrimination, parts.uncertainty)
        assert_allclose(found, expected, atol=1e-13)
        if np.isfinite(parts.mean_score):
            total = parts.miscalibration - parts.discrimination + parts.uncertainty
            assert parts.mean_score == pytest.approx(total, abs=1e-13)
        assert min(found) >= -1e-13


def test_impossible_label():
    parts = corp_decomposition([0.0, 0.5, 1.0], [1, 0, 1], score="log")
    assert parts.mean_score == parts.miscalibration == np.inf
    expected = slow.corp([0.1, 0.5, 1.0], [1, 0, 1], "log")[1:]
    assert_allclose([parts.discrimination, parts.uncertainty], expected)
    with pytest.raises(ct.StatisticError, match="inf on the observed data"):
        ct.calibration_test([0.0, 0.5, 1.0], [1, 0, 1], CORP("log"), lens=ct.OneVsRest(1))
    assert CORP("brier")([0.0, 0.5, 1.0], [1, 0, 1]) == pytest.approx(1.25 / 3 - 0.5 / 3)
