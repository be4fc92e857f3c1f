"""Scores and the score gap: published values, slow twins, enumeration, size on both sides."""

import numpy as np
import pytest
from conftest import SEEDS, problem
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from twins import basic as ref
from twins import curves as slow

import caltest as ct
from caltest.inference.diagrams import brier_decomposition
from caltest.statistics import Flips, RowProblem
from caltest.statistics.prepared import problem_of
from caltest.statistics.scores import BrierScore, LogScore, ScoreGap


def induced(probs, labels):
    """The problem as a statistic sees it."""
    return RowProblem.of(ct.Predictions.of(probs, labels)).data


def test_mean_scores_keep_their_promise_when_residuals_are_flipped():
    data = induced(*problem(1, 20, 3))
    fixed, gap = (s.prepare(problem_of(data)) for s in (BrierScore(), ScoreGap()))
    signs = np.random.default_rng(4).choice([-1.0, 1.0], (5, 20))
    expected = fixed.null_mean + gap.values(Flips(signs)) * gap.divisor / fixed.divisor
    assert_allclose(fixed.values(Flips(signs)), expected, rtol=1e-12)
    score = np.square(np.eye(3) - data.probs[:, None]).sum(axis=2)  # of every label
    away = (score - (data.probs * score).sum(axis=1, keepdims=True)) ** 2
    second, fourth = (data.probs * away).sum(), (data.probs * away**2).sum()
    assert fixed.tails == pytest.approx(fourth / second**2)


def test_impossible_labels():
    probs, labels = np.array([[0.0, 1.0], [0.5, 0.5], [0.25, 0.75]]), np.array([0, 1, 0])
    assert LogScore()(probs, labels) == ScoreGap("log")(probs, labels) == np.inf
    assert np.isfinite(BrierScore()(probs, labels))
    possible = induced(probs, [1, 1, 0])
    assert np.isfinite(ScoreGap("log").prepare(problem_of(possible))(possible.labels))
    assert np.isfinite(LogScore().prepare(problem_of(possible)).tails)
    with pytest.raises(ct.StatisticError, match="inf on the observed data"):
        ct.calibration_test(probs, labels, ScoreGap("log"), lens=ct.OneVsRest(0))


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
