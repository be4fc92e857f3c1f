"""Votes of items that vary more than independent draws: laws of draws, limits of λ, sizes."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import betabinom, chisquare

import caltest as ct
from caltest.nulls.agreement import Agreement
from caltest.nulls.clusters import Overdispersion, VoteDraws, votes_of
from caltest.statistics import RowProblem
from caltest.statistics.rows import VoteCounts, VoteRedraws


def shares(rng, n, m, spread, k=3):
    """Votes whose shares are right on average: Dirichlet(spread p) around predictions."""
    probs = rng.dirichlet([6, 5, 2][:k], n)
    q = np.array([rng.dirichlet(spread * p) for p in probs])
    return ct.Predictions.of_votes(probs, rng.multinomial(m, q))


def test_counts_have_the_beta_binomial_law():
    votes = votes_of(ct.Predictions.of_votes([0.3, 0.3, 0.3], [[4, 2], [3, 3], [6, 0]]))
    drawn = VoteDraws.of(votes, 0.25).counts((1, 2), 0, 4000)
    assert (drawn.sum(axis=2) == 6).all()
    seen = np.bincount(drawn[:, :, 1].ravel(), minlength=7)
    law = betabinom.pmf(np.arange(7), 6, 3 * 0.3, 3 * 0.7)  # s = (1 − λ) / λ = 3
    assert chisquare(seen, law * seen.sum()).pvalue > 1e-3


@pytest.mark.parametrize("degree", [0.0, 0.02, 0.3, 0.97])
def test_counts_of_three_classes_have_the_mean_and_covariance_of_their_law(degree):
    p, m, b = np.array([0.5, 0.3, 0.2]), 20, 8000
    votes = votes_of(ct.Predictions.of_votes(np.tile(p, (2, 1)), np.tile([10, 6, 4], (2, 1))))
    drawn = VoteDraws.of(votes, degree).counts((3, 4), 0, b).reshape(-1, 3)
    degree = 1.0 if degree > 0.95 else degree
    covariance = m * (1 + (m - 1) * degree) * (np.diag(p) - np.outer(p, p))
    assert drawn.mean(axis=0) == pytest.approx(m * p, abs=5 * covariance.max() ** 0.5 / b**0.5)
    assert np.cov(drawn.T) == pytest.approx(covariance, abs=0.06 * covariance.max())


def test_labels_of_rows_have_the_covariance_within_items_of_the_counts():
    votes = votes_of(ct.Predictions.of_votes([0.4, 0.4], [[3, 2], [2, 3]]))
    labels = VoteDraws.of(votes, 0.4)((1, 2), 0, 8000)
    assert labels.mean() == pytest.approx(0.4, abs=0.02)
    correlation = np.corrcoef(labels.T)
    assert correlation[:5, :5][np.triu_indices(5, 1)] == pytest.approx(np.full(10, 0.4), abs=0.05)
    assert correlation[:5, 5:] == pytest.approx(np.zeros((5, 5)), abs=0.05)


@pytest.mark.parametrize("k", [2, 3])
def test_agreement_of_counts_is_that_of_their_rows(k):
    data = shares(np.random.default_rng(5), 40, 7, 4.0, k)
    ours = Overdispersion(data, votes_of(data))
    found = ours.correlation(ours.votes.counts[None])[0, 0]
    # Quarters of rows and of items are the same where items have equally many votes
    assert found == pytest.approx(Agreement.of(data).correlation(data.labels[None])[0, 0], rel=1e-9)


def test_sums_of_counts_are_those_of_labels():
    rng = np.random.default_rng(3)
    probs = rng.dirichlet([1, 1, 1], 30)
    data = ct.Predictions.of_votes(
        probs, rng.multinomial(6, probs), weights=rng.integers(1, 4, 30).astype(float)
    )
    problem = RowProblem(data)
    votes = votes_of(data)
    first = np.array([np.flatnonzero(votes.of_row == i)[0] for i in range(30)])
    outcomes = VoteCounts(votes.counts[None], first)
    for statistic in (ct.ECE(ct.VarianceTree(20)), ct.ScoreGap("log"), ct.MulticlassCox()):
        prepared = statistic.prepare(problem)
        expected = prepared.values(problem.observed)
        assert prepared.values(outcomes) == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("statistic", [ct.ECE(), ct.MultiScale(), ct.CoxScore(), ct.Kuiper()])
def test_replicates_do_not_depend_on_blocks(statistic):
    data = ct.OneVsRest(1)(shares(np.random.default_rng(1), 30, 9, 10.0))
    redraws = RowProblem(data).redraws(ct.SharedRedraws(), statistic.prepare(RowProblem(data)))
    assert isinstance(redraws, VoteRedraws)
    parts = [redraws.replicates((5, 6), first, 1)[0] for first in range(4)]
    assert redraws.replicates((5, 6), 0, 4).tolist() == parts


@pytest.mark.parametrize("m", [5, 100, 1000])
def test_the_limit_of_dependence_is_just_above_the_truth(m):
    data = shares(np.random.default_rng(7), 200, m, 60.0)
    limit = Overdispersion(data, votes_of(data)).limits().overall
    most = {5: 6.0, 100: 1.5, 1000: 1.35}[m]  # what the votes leave open
    assert 1 / 61 < limit < most / 61


def test_independent_votes_leave_little_dependence_and_copies_all():
    rng = np.random.default_rng(2)
    probs = rng.beta(2, 2, 100)
    independent = ct.Predictions.of_votes(
        probs, rng.multinomial(50, np.column_stack([1 - probs, probs]))
    )
    assert Overdispersion(independent, votes_of(independent)).limits().overall < 0.02
    label = rng.random(100) < probs
    copies = ct.Predictions.of_votes(probs, np.column_stack([~label, label]) * 50)
    assert Overdispersion(copies, votes_of(copies)).limits().overall == 1.0


def test_other_clusters_and_other_predictions_keep_their_own_draws():
    data = shares(np.random.default_rng(4), 20, 5, 5.0)
    assert votes_of(replace(data, items=None)) is None
    assert votes_of(replace(data, items_in_clusters=True)) is None
    probs = data.probs.copy()
    probs[0] = [0.2, 0.3, 0.5]
    assert votes_of(replace(data, probs=probs)) is None


@pytest.mark.slow
def test_shares_that_vary_around_calibrated_predictions_are_not_called_miscalibrated():
    # Districts of 100 voters: of eight such files shared labels rejected all
    data = shares(np.random.default_rng(4001), 200, 100, 60.0)
    report = ct.audit(data, n_resamples=199, rng=1)
    assert report.verdict == "calibrated"
    assert not report.rejects
    item = next(row for row in report.rows if row.aspect == "items")
    assert item.verdict == "wrong for single items"
    varies = (1 - np.square(data.probs).sum(axis=1)).mean() / 61  # Var q of Dirichlet(60 p)
    assert item.individual.estimate == pytest.approx(varies, rel=0.2)
    assert any("differ from their predictions by more than" in words for words in report.summary)


@pytest.mark.slow
@pytest.mark.parametrize(("m", "spread"), [(5, 5.0), (100, 60.0)])
def test_size_on_average_where_shares_vary(m, spread):
    rejected = 0
    for seed in range(200):
        data = shares(np.random.default_rng([seed, m]), 100, m, spread)
        lens, run = ct.Canonical(), {"n_resamples": 99, "rng": seed}
        score = ct.ECE(ct.VarianceTree(20), distance="tv")
        rejected += ct.calibration_test(data, None, score, lens=lens, **run).pvalue <= 0.05
    assert rejected <= 19  # 99.5 % point of Binomial(200, .05)
