"""Isotonic fits and CORP: published values, the max-min formula, scikit-learn's habits, size."""

from __future__ import annotations

import csv

import numpy as np
import pytest
import reference as ref
import reference_curves as slow
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from test_cumulative import PROBLEMS, make

import caltest as ct
from caltest.inference.decompositions import corp_decomposition
from caltest.statistics.base import problem_of
from caltest.statistics.isotonic import CORP, isotonic_fit

SETTINGS = settings(max_examples=40, deadline=None)
SCORES = ["brier", "log"]


def induced(p, y):
    return ct.OneVsRest(1)(ct.Predictions.of(p, y))


# --- the fit --------------------------------------------------------------------------------------


@SETTINGS
@given(PROBLEMS)
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


def test_fit_of_an_induced_problem_keeps_its_event():
    top = ct.TopK(1)(ct.Predictions.of([[0.9, 0.1], [0.3, 0.7], [0.6, 0.4]], [0, 1, 1]))
    assert isotonic_fit(top).predicted.tolist() == [0.6, 0.7, 0.9]
    assert isotonic_fit(top).observed.tolist() == [0.0, 1.0, 1.0]


# --- the decomposition ----------------------------------------------------------------------------


@SETTINGS
@given(PROBLEMS)
def test_decomposition_against_slow_twin(problem):
    p, y = problem
    data = induced(p, y)
    for score in SCORES:
        expected = slow.corp(p, y, score)
        parts = corp_decomposition(p, y, score=score)
        found = (parts.miscalibration, parts.discrimination, parts.uncertainty)
        assert_allclose(found, expected, atol=1e-13)
        fixed = CORP(score).prepare(problem_of(data))
        for value in (fixed(data.labels), fixed.batch(data.labels[None, :])[0]):
            assert value == pytest.approx(expected[0], abs=1e-13)
        if np.isfinite(parts.mean_score):
            total = parts.miscalibration - parts.discrimination + parts.uncertainty
            assert parts.mean_score == pytest.approx(total, abs=1e-13)
        assert min(found) >= -1e-13


def test_impossible_label():
    parts = corp_decomposition([0.0, 0.5, 1.0], [1, 0, 1], score="log")
    assert parts.mean_score == parts.miscalibration == np.inf
    assert_allclose(
        [parts.discrimination, parts.uncertainty],
        [slow.corp([0.1, 0.5, 1.0], [1, 0, 1], "log")[i] for i in (1, 2)],
    )
    with pytest.raises(ct.StatisticError, match="inf on the observed data"):
        ct.calibration_test([0.0, 0.5, 1.0], [1, 0, 1], CORP("log"), lens=ct.OneVsRest(1))
    assert CORP("brier")([0.0, 0.5, 1.0], [1, 0, 1]) == pytest.approx(1.25 / 3 - 0.5 / 3)


def test_niamey(data_dir):
    # The example of reliabilitydiag: Table of Dimitriadis, Gneiting & Jordan (2021)
    with (data_dir / "binary" / "precip_niamey_2016.csv").open() as file:
        rows = list(csv.DictReader(file))
    y = [int(row["obs"]) for row in rows]
    published = {
        "Logistic": (0.205746, 0.017076, 0.055541, 0.244211),
        "EMOS": (0.232025, 0.018283, 0.030469, 0.244211),
        "ENS": (0.266168, 0.066072, 0.044115, 0.244211),
        "EPC": (0.234282, 0.022350, 0.032279, 0.244211),
    }
    for name, expected in published.items():
        d = corp_decomposition([float(row[name]) for row in rows], y)
        found = (d.mean_score, d.miscalibration, d.discrimination, d.uncertainty)
        assert_allclose(found, expected, atol=5e-7)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("welldata", (0.12518566555, 0.00150095612, 0.12630085057, 0.24998556)),
        ("misdata", (0.13471290316, 0.01102819373, 0.12630085057, 0.24998556)),
    ],
)
def test_calzone_data(data_dir, name, expected):
    path = data_dir / "binary" / f"calzone_simulated_{name}.csv"
    table = np.genfromtxt(path, delimiter=",", names=True)
    d = corp_decomposition(table["proba_1"], table["label"].astype(int))
    found = (d.mean_score, d.miscalibration, d.discrimination, d.uncertainty)
    assert_allclose(found, expected, atol=6e-12)


@SETTINGS
@given(PROBLEMS, st.integers(0, 2**32 - 1))
def test_symmetries(problem, seed):
    p, y = problem
    p = np.round(p * 256) / 256  # 1 − p is exact
    order = np.random.default_rng(seed).permutation(p.size)
    value = CORP()(p, y)
    assert CORP()(p[order], y[order]) == pytest.approx(value, abs=1e-14)
    assert CORP()(1 - p, 1 - y) == pytest.approx(value, abs=1e-13)
    assert CORP()(np.repeat(p, 3), np.repeat(y, 3)) == pytest.approx(value, abs=1e-13)


def test_recalibrated_predictions_have_no_miscalibration():
    p, y = make(1, 400)
    for score in SCORES:
        assert CORP(score)(isotonic_fit(p, y)(p), y) == pytest.approx(0, abs=1e-13)


def test_printed_and_refused():
    assert repr(CORP("log")) == "CORP('log')"
    with pytest.raises(ct.StatisticError, match="'brier' or 'log', not 'spherical'"):
        CORP("spherical")
    with pytest.raises(ct.StatisticError, match="for two classes, but there are 3"):
        CORP()(np.full((2, 3), 1 / 3), np.array([0, 1]))
    with pytest.raises(ct.StatisticError, match="for two classes"):
        corp_decomposition(np.full((2, 3), 1 / 3), [0, 1], lens=ct.Canonical())
    with pytest.raises(ct.StatisticError, match="isotonic_fit is for two classes"):
        isotonic_fit(np.full((2, 3), 1 / 3), [0, 1])


# --- the null -------------------------------------------------------------------------------------


@pytest.mark.parametrize("score", SCORES)
def test_tutorial_by_enumeration(score):
    p = ref.TUTORIAL_BINARY[:, 1]
    test = ct.calibration_test(
        ref.TUTORIAL_BINARY, ref.TUTORIAL_BINARY_LABELS, CORP(score), lens=ct.OneVsRest(1)
    )
    values, weights = ref.enumerated_law(lambda y: slow.corp(p, y, score)[0], ref.TUTORIAL_BINARY)
    expected = ref.summary(values, weights, test.estimate)
    assert test.null == "exact"
    assert_allclose([test.pvalue, test.null_mean, test.null_std], expected, atol=1e-12)
