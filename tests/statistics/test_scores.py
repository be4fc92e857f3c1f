"""Scores and the score gap: published values, slow twins, enumeration, size on both sides."""

from __future__ import annotations

import numpy as np
import pytest
import reference as ref
import reference_curves as slow
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from reference_families import spiegelhalter

import caltest as ct
from caltest.inference.decompositions import brier_decomposition
from caltest.problem import Flips, RowProblem
from caltest.statistics.base import problem_of
from caltest.statistics.scores import BrierScore, LogScore, ScoreGap, SphericalScore

SETTINGS = settings(max_examples=40, deadline=None)
MEANS = {"brier": BrierScore(), "log": LogScore(), "spherical": SphericalScore()}
NAMES = list(MEANS)


def make(seed, n, k, style="plain"):
    generator = np.random.default_rng(seed)
    probs = generator.dirichlet(np.full(k, 0.5), n)
    if style == "decimals":
        probs = generator.multinomial(20, probs) / 20
    elif style == "corners":
        probs[: n // 2] = np.eye(k)[generator.integers(0, k, n // 2)]
    return probs, generator.integers(0, k, n)


def induced(probs, labels):
    """The problem as a statistic sees it."""
    return RowProblem.of(ct.Predictions.of(probs, labels)).predictions


PROBLEMS = st.builds(
    make,
    st.integers(0, 2**32 - 1),
    st.integers(1, 40),
    st.sampled_from([2, 3, 10, 100]),
    st.sampled_from(["plain", "decimals", "corners"]),
)

# --- values ---------------------------------------------------------------------------------------


@SETTINGS
@given(PROBLEMS)
def test_scores_against_slow_twin(problem):
    probs, labels = problem
    for name, score in MEANS.items():
        rows = [slow.row_score(row, y, name) for row, y in zip(probs, labels, strict=True)]
        assert_allclose(score.per_row(probs, labels), rows, atol=1e-13)
        data = induced(probs, labels)
        fixed = score.prepare(problem_of(data))
        for value in (score(probs, labels), fixed(data.labels), *fixed.batch(data.labels[None, :])):
            assert value == pytest.approx(np.mean(rows), abs=1e-13)


@SETTINGS
@given(PROBLEMS)
def test_gap_against_slow_twin(problem):
    probs, labels = problem
    for name in NAMES:
        if probs.max(axis=1).min() == 1.0:
            continue
        expected = slow.score_gap(probs, labels, name)
        data = induced(probs, labels)
        fixed = ScoreGap(name).prepare(problem_of(data))
        for value in (ScoreGap(name)(probs, labels), *fixed.batch(data.labels[None, :])):
            assert value == pytest.approx(expected, rel=1e-10, abs=1e-10)


@SETTINGS
@given(PROBLEMS, st.integers(0, 2**32 - 1))
def test_moved_residuals_against_slow_twin(problem, seed):
    probs, labels = problem
    labels = np.where(probs[np.arange(labels.size), labels] > 0, labels, probs.argmax(axis=1))
    data = induced(probs, labels)
    signs = np.random.default_rng(seed).choice([-1.0, 1.0], labels.size)
    multipliers = np.stack([np.ones(labels.size), signs])
    for name in NAMES:
        if probs.max(axis=1).min() == 1.0:
            continue
        fixed = ScoreGap(name).prepare(problem_of(data))
        expected = [slow.score_gap(probs, labels, name, s) for s in multipliers]
        values = fixed.values(Flips(multipliers))
        assert_allclose(values, expected, rtol=1e-10, atol=1e-10)


def test_mean_scores_keep_their_promise_when_residuals_are_flipped():
    data = induced(*make(1, 20, 3))
    fixed, gap = (s.prepare(problem_of(data)) for s in (BrierScore(), ScoreGap()))
    signs = np.random.default_rng(4).choice([-1.0, 1.0], (5, 20))
    expected = fixed.null_mean + gap.values(Flips(signs)) * gap.divisor / fixed.divisor
    assert_allclose(fixed.values(Flips(signs)), expected, rtol=1e-12)


def test_published_by_uu_sml():
    # Its scores are negatively oriented without the 1: ours are 1 more, but for the log score.
    generator = np.random.RandomState(1234)
    probs = generator.dirichlet(np.ones(5), 20)
    labels = generator.randint(0, 5, 20)
    found = [MEANS[name](probs, labels) for name in NAMES]
    expected = [1 - 0.005322001032383283, 2.3424792408429744, 1 - 0.3019243424723797]
    assert_allclose(found, expected, rtol=1e-12)


def test_calzone_data(data_dir):
    path = data_dir / "binary" / "calzone_simulated_welldata.csv"
    table = np.genfromtxt(path, delimiter=",", names=True)
    p, y = table["proba_1"], table["label"].astype(int)
    assert BrierScore()(p, y) == pytest.approx(0.1251856656, abs=1e-10)
    assert LogScore()(p, y) == pytest.approx(0.3856328095, abs=1e-10)
    assert ScoreGap()(p, y) == pytest.approx(0.3763269161877356, abs=1e-11)
    test = ct.calibration_test(p, y, ScoreGap(), lens=ct.OneVsRest(1), null="asymptotic")
    assert test.pvalue == pytest.approx(0.7066738713391099, abs=1e-12)


def test_published_by_mapie():
    # one-sided p 0.174832 there
    generator = np.random.RandomState(1)
    p = generator.uniform(size=100)
    y = (generator.uniform(size=100) <= p).astype(int)
    assert ScoreGap()(p, y) == pytest.approx(0.9352421307896744, abs=1e-12)


@SETTINGS
@given(st.integers(0, 2**32 - 1), st.integers(1, 60))
def test_two_classes_and_brier_is_spiegelhalter(seed, n):
    generator = np.random.default_rng(seed)
    p, y = generator.beta(0.4, 0.4, n), generator.integers(0, 2, n)
    expected = spiegelhalter(p, y)
    assert ScoreGap()(p, y) == pytest.approx(expected, rel=1e-9, abs=1e-9)
    for lens in (ct.OneVsRest(0), ct.OneVsRest(1), ct.Canonical()):
        data = lens(ct.Predictions.of(p, y))
        assert ScoreGap()(data) == pytest.approx(expected, rel=1e-9, abs=1e-9)


def test_variance_formula_of_brier():
    probs, labels = make(1, 50, 7)
    square, cube = (probs**2).sum(axis=1), (probs**3).sum(axis=1)
    gap = (square - 2 * probs[np.arange(50), labels] + 1) - (1 - square)
    z = gap.sum() / np.sqrt((4 * (cube - square**2)).sum())
    assert ScoreGap()(probs, labels) == pytest.approx(z, rel=1e-12)


@SETTINGS
@given(PROBLEMS, st.integers(0, 2**32 - 1))
def test_rows_and_classes_may_be_permuted(problem, seed):
    probs, labels = problem
    generator = np.random.default_rng(seed)
    order, names = generator.permutation(labels.size), generator.permutation(probs.shape[1])
    renamed = np.empty_like(probs)
    renamed[:, names] = probs
    for score in (*MEANS.values(), ScoreGap()):
        if isinstance(score, ScoreGap) and probs.max(axis=1).min() == 1.0:
            continue
        value = score(probs, labels)
        assert score(probs[order], labels[order]) == pytest.approx(value, rel=1e-10, abs=1e-10)
        assert score(renamed, names[labels]) == pytest.approx(value, rel=1e-10, abs=1e-10)


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


def test_printed_and_refused():
    assert [repr(s) for s in MEANS.values()] == ["BrierScore()", "LogScore()", "SphericalScore()"]
    assert repr(ScoreGap()) == "ScoreGap('brier')"
    with pytest.raises(ct.StatisticError, match="'brier', 'log', 'spherical', not 'crps'"):
        ScoreGap("crps")


# --- decompositions -------------------------------------------------------------------------------


@SETTINGS
@given(PROBLEMS, st.integers(1, 20))
def test_parts_add_up(problem, bins):
    probs, labels = problem
    cells = bins if probs.shape[1] == 2 else ct.VarianceTree(bins)
    d = brier_decomposition(probs, labels, lens=ct.Canonical(), bins=cells)
    total = d.reliability - d.resolution + d.uncertainty + d.within_variance - d.within_covariance
    assert d.mean_score == pytest.approx(total, abs=1e-13)
    assert d.mean_score == pytest.approx(BrierScore()(probs, labels), abs=1e-13)


@SETTINGS
@given(st.integers(0, 2**32 - 1), st.integers(1, 40), st.integers(1, 20))
def test_decomposition_against_slow_twin(seed, n, bins):
    probs, labels = make(seed, n, 2, "decimals")
    p, y = probs[:, 0], (labels == 0).astype(int)
    d = brier_decomposition(probs, labels, lens=ct.Canonical(), bins=bins)
    expected = slow.murphy(p, y, ref.uniform_cells(probs, bins))
    found = [
        d.reliability, d.resolution, d.uncertainty, d.within_variance, d.within_covariance,
    ]  # fmt: skip
    assert_allclose(found, expected, atol=1e-13)


def test_cells_of_single_predictions_have_nothing_within():
    probs, labels = make(3, 300, 3, "decimals")
    d = brier_decomposition(
        probs,
        labels,
        lens=ct.Canonical(),
        bins=lambda rows: np.unique(rows @ [1, 40, 1600], return_inverse=True)[1],
    )
    assert_allclose([d.within_variance, d.within_covariance], 0, atol=1e-15)


# --- the null -------------------------------------------------------------------------------------

TINY = [(ref.TUTORIAL_BINARY, ref.TUTORIAL_BINARY_LABELS), make(2, 6, 3)]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("problem", TINY, ids=["two classes", "three classes"])
def test_moments_and_tails_by_enumeration(name, problem):
    probs, labels = problem
    values, weights = ref.enumerated_law(lambda y: slow.score_gap(probs, y, name), probs)
    mean = weights @ values
    assert_allclose([mean, weights @ values**2], [0.0, 1.0], atol=1e-12)
    test = ct.calibration_test(probs, labels, ScoreGap(name), lens=ct.Canonical())
    tail = weights[np.abs(values) >= abs(test.estimate) - 1e-9].sum()
    assert test.null == "exact"
    assert test.pvalue == pytest.approx(tail, abs=1e-10)
    fixed = MEANS[name].prepare(problem_of(ct.Canonical()(ct.Predictions.of(probs, labels))))
    values, weights = ref.enumerated_law(fixed, probs)
    expected = (weights @ values, np.sqrt(weights @ (values - weights @ values) ** 2))
    assert_allclose([fixed.null_mean, fixed.laws["asymptotic"](labels).std()], expected, atol=1e-12)
    law = fixed.laws["asymptotic"](labels)
    assert_allclose([law.mean(), law.std()], expected, atol=1e-12)


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
