"""Several outcomes of an item: individual error, its law, its parts, and how votes are given."""

from itertools import product
from math import factorial

import numpy as np
import pytest

import caltest as ct
from caltest.data.labels import Votes
from caltest.inference.counts import mean_interval, split
from caltest.statistics.scores import null_moments, unbiased_errors


def reference():
    """The data of the fixed values: 40 items of three classes with 1 to 6 votes, seed 20261127."""
    rng = np.random.default_rng(20261127)
    probs = np.round(rng.dirichlet(np.ones(3), 40), 2)
    probs[:, 2] = 1 - probs[:, 0] - probs[:, 1]
    probs = np.clip(probs, 0, 1)
    probs /= probs.sum(axis=1, keepdims=True)
    q = probs**0.7
    gamma = rng.gamma(np.maximum(q / q.sum(axis=1, keepdims=True) * 8, 1e-3))
    size = rng.integers(1, 7, 40)
    return probs, rng.multinomial(size, gamma / gamma.sum(axis=1, keepdims=True))


def test_fixed_values_of_the_estimate_its_interval_and_the_gamma_law():
    # computed once by other code from the formulas of the docstring
    votes = ct.Predictions.of_votes(*reference())
    found = ct.individual_error(votes, n_resamples=99, rng=0)
    assert (found.items, found.single, found.low) == (36, 4, 0.0)
    assert found.estimate == pytest.approx(0.0190555556, abs=1e-10)
    assert found.high == pytest.approx(0.12676125, abs=1e-8)
    equal = ct.calibration_test(votes, None, ct.IndividualError("items"), null="asymptotic")
    assert equal.pvalue == pytest.approx(0.2786864298, abs=1e-9)
    drawn = ct.calibration_test(votes, None, ct.IndividualError("items"), rng=0)
    assert drawn.pvalue == pytest.approx(equal.pvalue, abs=0.02)


def test_fixed_values_of_both_parts_and_of_clusters():
    probs, counts = reference()
    of_row = np.repeat(np.arange(40), counts.sum(axis=1))
    # Items at the edge of a bin are ties up to rounding: the numbers are of exactly these doubles
    calibration, grouping = split(Votes(probs, counts, of_row, None, None), 4, 0.95)
    assert calibration[0] == pytest.approx(0.0034964861, abs=1e-10)
    assert calibration[2] == pytest.approx(0.0316236587, abs=1e-10)
    assert grouping[0] == pytest.approx(0.0155590694, abs=1e-10)
    assert grouping[2] == pytest.approx(0.1182962751, abs=1e-10)
    several = counts.sum(axis=1) >= 2
    errors = unbiased_errors(probs, counts)[several]
    ends = mean_interval(errors, np.ones(36), (np.arange(40) // 4)[several], 0.95)
    assert ends[1:] == pytest.approx((-0.1246073402, 0.1627184513), abs=1e-10)


@pytest.mark.parametrize("probs", [[0.2, 0.5, 0.3], [0.9, 0.1, 0.0], [0.25] * 4])
@pytest.mark.parametrize("m", [2, 3, 5])
def test_moments_of_the_null_are_those_of_all_counts(probs, m):
    p, moments = np.array([probs]), np.zeros(4)
    for each in product(range(m + 1), repeat=p.size):
        if sum(each) == m:
            counts = np.array([each])
            chance = factorial(m) / np.prod([factorial(c) for c in each]) * np.prod(p[0] ** counts)
            moments += chance * unbiased_errors(p, counts)[0] ** np.arange(4)
    variance, third = null_moments(p, np.array([m]), np.ones(1))
    assert moments == pytest.approx([1.0, 0.0, variance, third], abs=1e-14)


def test_the_error_of_an_item_is_that_of_its_pairs_of_votes():
    rng = np.random.default_rng(1)
    probs = rng.dirichlet(np.ones(3), 50)
    counts = rng.multinomial(rng.integers(2, 7, 50), probs)
    for p, c, value in zip(probs, counts, unbiased_errors(probs, counts), strict=True):
        away = np.repeat(np.eye(3), c, axis=0) - p
        pairs = [a @ b for i, a in enumerate(away) for b in away[:i]]
        assert value == pytest.approx(np.mean(pairs), abs=1e-14)


def test_the_jackknife_is_that_of_split_without_each_cluster():
    rng = np.random.default_rng(3)
    probs = rng.dirichlet(np.ones(3), 30)
    counts = rng.multinomial(rng.integers(2, 6, 30), probs)
    clusters = np.arange(30) // 3

    def parts(rows):
        votes = Votes(probs[rows], counts[rows], np.empty(0, dtype=int), None, clusters[rows])
        return np.array([part[0] for part in split(votes, 1, 0.95)])

    whole = parts(np.arange(30))
    without = np.array([parts(np.flatnonzero(clusters != g)) for g in range(10)])
    half = 2.262157162798205 * np.sqrt(0.9 * np.square(without - without.mean(axis=0)).sum(axis=0))
    votes = Votes(probs, counts, np.empty(0, dtype=int), None, clusters)
    for part, middle, width in zip(split(votes, 1, 0.95), whole, half, strict=True):
        assert part == pytest.approx((middle, middle - width, middle + width), rel=1e-9)


@pytest.mark.slow
def test_models_right_on_average_only_are_found_item_by_item():
    rng = np.random.default_rng(0)
    q = rng.beta(2, 2, 300)
    votes = ct.Predictions.of_votes(
        np.full(300, 0.5), rng.multinomial(5, np.column_stack([1 - q, q]))
    )
    assert ct.calibration_test(votes, rng=0).pvalue > 0.05
    found = ct.individual_error(votes, rng=0)
    truth = 2 * np.square(q - 0.5).mean()
    assert found.pvalue < 0.001
    assert found.low < truth < found.high
    assert found.calibration_high < found.grouping_low
    assert "grouping loss" in found.finding
    report = ct.audit(votes, n_resamples=199, rng=0)
    row = next(row for row in report.rows if row.aspect == "items")
    assert (row.lens, row.verdict) == ("Canonical() items", "wrong for single items")
    assert row.individual.estimate == found.estimate


@pytest.mark.parametrize(("n", "m", "p"), [(20, 2, 0.02), (100, 3, 0.005)])
def test_intervals_hold_no_error_where_rare_outcomes_did_not_occur(n, m, p):
    # The t interval of equal errors 2 p² left 0 out in .44 and .18 of 200 calibrated data sets
    votes = ct.Predictions.of_votes(np.full(n, p), np.tile([m, 0], (n, 1)))
    found = ct.individual_error(votes, n_resamples=99, rng=0)
    assert (found.low, found.calibration_low, found.grouping_low) == (0.0, 0.0, 0.0)
    often = 3 * p  # with which no event at all is not unusual
    assert found.high > 2 * (often - p) ** 2
    assert found.calibration_high >= found.high - 1e-12


@pytest.mark.slow
def test_rows_with_items_are_the_votes_and_others_take_items_as_clusters():
    probs, counts = reference()
    votes = ct.Predictions.of_votes(probs, counts)
    rows = ct.Predictions.of(votes.probs, votes.labels, items=[f"item {i}" for i in votes.items])
    ours, theirs = (
        ct.calibration_test(d, None, ct.IndividualError(), rng=0) for d in (rows, votes)
    )
    assert (ours.estimate, ours.pvalue) == (theirs.estimate, theirs.pvalue)
    assert ours.n_clusters is None
    assert ct.calibration_test(rows, n_resamples=99).n_clusters == 40
    some = rows.take(np.arange(20))
    np.testing.assert_array_equal(some.items, rows.items[:20])


def test_shares_with_numbers_of_votes_are_counts():
    shares, size = [[0.333, 0.667], [0.5, 0.5]], [3, 2]
    soft = ct.Predictions.of_votes([0.4, 0.6], shares, n_votes=size)
    hard = ct.Predictions.of_votes([0.4, 0.6], [[1, 2], [1, 1]])
    np.testing.assert_array_equal(soft.labels, hard.labels)
    none = ct.Predictions.of_votes([0.4, 0.6, 0.5], [[1, 2], [0, 0], [1, 1]])
    assert "left out 1 item without a vote" in none.notes


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: ct.Predictions.of_votes([0.5], [[1, 0.5]]), r"counts of row 0 .* n_votes="),
        (lambda: ct.Predictions.of_votes([0.5], [[0.5, 0.5]], n_votes=3), "from that many votes"),
        (lambda: ct.Predictions.of_votes([0.5], [[-1, 3]]), "no whole numbers ≥ 0"),
        (lambda: ct.Predictions.of_votes([0.5], [[0, 0]]), "holds no vote"),
        (lambda: ct.Predictions.of_votes([0.5], [3]), "a row for each of the 1 items"),
        (lambda: ct.Predictions.of_votes([0.5], [[1, 1]], raters=[1]), "a rater who judges"),
        (lambda: ct.Predictions.of([0.5, 0.4], [0, 1], items=[1, 1]), "row 0 and row 1 are out"),
        (
            lambda: ct.Predictions.of([0.5] * 4, [0, 1, 1, 0], items=[1, 1, 2, 2],
                                      clusters=[1, 2, 1, 2]),
            "leave items= out",
        ),
    ],
)  # fmt: skip
def test_what_are_no_votes_is_refused_with_what_to_do(call, words):
    with pytest.raises(ct.InvalidPredictionsError, match=words):
        call()


def test_statistics_of_items_refuse_what_has_none():
    with pytest.raises(ct.StatisticError, match=r"Predictions\.of_votes"):
        ct.IndividualError()([0.5, 0.4], [0, 1])
    with pytest.raises(ct.StatisticError, match="every item has one"):
        ct.calibration_test([0.5, 0.4], [0, 1], ct.IndividualError(), items=[0, 1])
    sure = ct.Predictions.of_votes([[1.0, 0.0], [0.0, 1.0]], [[2, 0], [0, 2]])
    with pytest.raises(ct.StatisticError, match="every prediction is 0 or 1"):
        ct.IndividualError()(sure)
    with pytest.raises(ct.StatisticError, match="two items, or clusters"):
        ct.individual_error(ct.Predictions.of_votes([0.5, 0.4], [[1, 1], [0, 1]]), n_resamples=9)


def test_replicates_do_not_depend_on_workers_and_many_items_use_the_closed_form():
    votes = ct.Predictions.of_votes(*reference())
    laws = [
        ct.calibration_test(votes, None, ct.IndividualError(), n_resamples=60, rng=1, workers=w)
        for w in (1, 2)
    ]
    np.testing.assert_array_equal(*(np.asarray(test.null_distribution) for test in laws))
    many = ct.Predictions.of_votes(np.full(5000, 0.3), np.tile([[1, 1]], (5000, 1)))
    assert ct.calibration_test(many, None, ct.IndividualError()).null == "asymptotic"


def test_sentences_of_votes_name_their_hypothesis_and_their_dependence():
    rng = np.random.default_rng(0)
    probs = rng.dirichlet([1, 1, 1], 100)
    votes = ct.Predictions.of_votes(probs, np.rint(10 * probs).astype(int))  # no votes vary
    items = ct.calibration_test(votes, None, ct.IndividualError(), n_resamples=99, rng=0)
    average = ct.calibration_test(votes, None, ct.ECE(), n_resamples=99, rng=0)
    assert items.of_items
    assert "A model whose probabilities are right for every item would show" in str(items)
    assert "A calibrated model would show" in str(average)
    assert average.clusters.dependence == 0.0
    assert "two votes of an item share their label: 0 (95 % limits)" in str(average)


def scattered(slope, items, votes, k, spread, seed):
    """Votes from Dirichlet(spread · q) of each item, with q the predictions to the power slope."""
    rng = np.random.default_rng(seed)
    probs = rng.dirichlet(np.ones(k), items)
    mean = probs**slope
    gamma = rng.gamma(np.maximum(spread * mean / mean.sum(axis=1, keepdims=True), 1e-3))
    counts = rng.multinomial(votes, gamma / gamma.sum(axis=1, keepdims=True))
    return ct.Predictions.of_votes(probs, counts)


@pytest.mark.slow
def test_plan_of_votes_counts_items():
    votes = scattered(1.0, 100, 5, 2, 5.0, seed=0)
    plan = ct.plan(votes, None, ct.IndividualError(), n_datasets=100, rng=1)
    # 500 votes were given, which rejected at p = 0.005; the scatter makes the power
    assert 300 < plan.n < 900
    assert any(f"{-(-plan.n // 5)} items of 5 votes" in note for note in plan.notes)


def test_plan_of_items_in_clusters_is_refused():
    probs = np.full((12, 2), 0.5)
    votes = ct.Predictions.of_votes(probs, np.full((12, 2), 3), clusters=np.arange(12) // 3)
    with pytest.raises(ct.StatisticError, match="items that lie in clusters"):
        ct.plan(votes)


@pytest.mark.slow
def test_audit_of_shares_finds_a_slope_that_canonical_ece_alone_may_miss():
    found = ct.audit(scattered(0.6, 200, 100, 3, 60.0, seed=1000), n_resamples=199, rng=0)
    assert found.verdict == ct.AuditVerdict.MISCALIBRATED
