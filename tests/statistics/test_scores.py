"""Scores and the score gap: published values, slow twins, enumeration, size on both sides."""

import numpy as np
import pytest
import reference as ref
import reference_curves as slow
from conftest import PROBLEMS, SEEDS, problem
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from reference_families import spiegelhalter

import caltest as ct
from caltest.inference.decompositions import brier_decomposition
from caltest.problem import Flips, RowProblem
from caltest.statistics.base import problem_of
from caltest.statistics.scores import BrierScore, LogScore, ScoreGap, SphericalScore

MEANS = {"brier": BrierScore(), "log": LogScore(), "spherical": SphericalScore()}
NAMES = list(MEANS)


def induced(probs, labels):
    """The problem as a statistic sees it."""
    return RowProblem.of(ct.Predictions.of(probs, labels)).predictions


def test_mean_scores_keep_their_promise_when_residuals_are_flipped():
    data = induced(*problem(1, 20, 3))
    fixed, gap = (s.prepare(problem_of(data)) for s in (BrierScore(), ScoreGap()))
    signs = np.random.default_rng(4).choice([-1.0, 1.0], (5, 20))
    expected = fixed.null_mean + gap.values(Flips(signs)) * gap.divisor / fixed.divisor
    assert_allclose(fixed.values(Flips(signs)), expected, rtol=1e-12)


@given(SEEDS, st.integers(1, 60))
def test_two_classes_and_brier_is_spiegelhalter(seed, n):
    generator = np.random.default_rng(seed)
    p, y = generator.beta(0.4, 0.4, n), generator.integers(0, 2, n)
    expected = spiegelhalter(p, y)
    assert ScoreGap()(p, y) == pytest.approx(expected, rel=1e-9, abs=1e-9)
    for lens in (ct.OneVsRest(0), ct.OneVsRest(1), ct.Canonical()):
        data = lens(ct.Predictions.of(p, y))
        assert ScoreGap()(data) == pytest.approx(expected, rel=1e-9, abs=1e-9)


def test_variance_formula_of_brier():
    probs, labels = problem(1, 50, 7)
    square, cube = (probs**2).sum(axis=1), (probs**3).sum(axis=1)
    gap = (square - 2 * probs[np.arange(50), labels] + 1) - (1 - square)
    z = gap.sum() / np.sqrt((4 * (cube - square**2)).sum())
    assert ScoreGap()(probs, labels) == pytest.approx(z, rel=1e-12)


def test_impossible_labels():
    probs, labels = np.array([[0.0, 1.0], [0.5, 0.5], [0.25, 0.75]]), np.array([0, 1, 0])
    assert LogScore()(probs, labels) == ScoreGap("log")(probs, labels) == np.inf
    assert np.isfinite(BrierScore()(probs, labels))
    possible = induced(probs, [1, 1, 0])
    assert np.isfinite(ScoreGap("log").prepare(problem_of(possible))(possible.labels))
    with pytest.raises(ct.StatisticError, match="inf on the observed data"):
        ct.calibration_test(probs, labels, ScoreGap("log"), lens=ct.OneVsRest(0))


@pytest.mark.filterwarnings("ignore::caltest.errors.DoubtfulInputWarning")
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("k", [2, 3, 10])
def test_gap_refuses_what_has_no_variance(name, k):
    for probs in (np.full((5, k), 1 / k), np.eye(k)):
        with pytest.raises(ct.StatisticError, match="not defined: every prediction is 0, ½ or 1"):
            ScoreGap(name).prepare(problem_of(induced(probs, np.arange(len(probs)) % k)))


@given(PROBLEMS, st.integers(1, 20))
def test_parts_add_up(data, bins):
    probs, labels = data
    cells = bins if probs.shape[1] == 2 else ct.VarianceTree(bins)
    d = brier_decomposition(probs, labels, lens=ct.Canonical(), bins=cells)
    total = d.reliability - d.resolution + d.uncertainty + d.within_variance - d.within_covariance
    assert d.mean_score == pytest.approx(total, abs=1e-13)
    assert d.mean_score == pytest.approx(BrierScore()(probs, labels), abs=1e-13)


@given(SEEDS, st.integers(1, 40), st.integers(1, 20))
def test_decomposition_against_slow_twin(seed, n, bins):
    probs, labels = problem(seed, n, 2, "decimals")
    p, y = probs[:, 0], (labels == 0).astype(int)
    d = brier_decomposition(probs, labels, lens=ct.Canonical(), bins=bins)
    expected = slow.murphy(p, y, ref.uniform_cells(probs, bins))
    found = [
        d.reliability, d.resolution, d.uncertainty, d.within_variance, d.within_covariance,
    ]  # fmt: skip
    assert_allclose(found, expected, atol=1e-13)


def test_cells_of_single_predictions_have_nothing_within():
    probs, labels = problem(3, 300, 3, "decimals")
    d = brier_decomposition(
        probs,
        labels,
        lens=ct.Canonical(),
        bins=lambda rows: np.unique(rows @ [1, 40, 1600], return_inverse=True)[1],
    )
    assert_allclose([d.within_variance, d.within_covariance], 0, atol=1e-15)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(("power", "sign"), [(0.6, 1), (1.6, -1)])
def test_sees_both_over_and_underconfidence(name, power, sign):
    # Labels follow p^power: below 1 the predictions are overconfident, above 1 underconfident.
    generator = np.random.default_rng(1)
    probs = generator.dirichlet(np.ones(4), 1000)
    truth = probs**power / (probs**power).sum(axis=1, keepdims=True)
    labels = (truth.cumsum(axis=1) < generator.random((1000, 1))).sum(axis=1)
    test = ct.calibration_test(
        probs, labels, ScoreGap(name), lens=ct.Canonical(), n_resamples=199, rng=1
    )
    assert np.sign(test.estimate) == sign
    assert test.pvalue == 0.005
