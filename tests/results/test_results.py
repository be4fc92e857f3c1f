"""Reports as their readers see them, and the way to JSON and back."""

import dataclasses

import numpy as np
import pytest
import scipy.stats

import caltest as ct
from caltest.inference.null import holm
from caltest.results import AuditVerdict, ComparisonVerdict, format_p, format_value
from caltest.results.rendering import p_is


@pytest.fixture(scope="module")
def exact():
    return ct.calibration_test([0.8] * 30, [1] * 18 + [0] * 12, lens=ct.OneVsRest(1))


@pytest.fixture(scope="module")
def simulated():
    data = ct.examples.SixPoints().sample(200, 3)
    return ct.calibration_test(data, lens=ct.Canonical(), n_resamples=99, rng=7)


@pytest.fixture(scope="module")
def report():
    return ct.audit(ct.examples.digits("overfit"), n_resamples=199, rng=1)


MODELS = {
    name: ct.examples.GaussianMixture(0.0, slope).sample(2000, rng=1)
    for name, slope in (("steep", -4.0), ("right", -2.0))
}


@pytest.fixture(scope="module")
def pair():
    return ct.compare(*MODELS.values(), names=tuple(MODELS), n_resamples=99, rng=7)


@pytest.fixture(scope="module")
def table():
    return ct.compare_models(MODELS, n_resamples=99, rng=7)


def test_verdicts_are_codes_that_print_as_words(report, pair, table):
    for result in (report, type(report).from_json(report.to_json())):
        assert result.verdict is AuditVerdict.MISCALIBRATED
        assert f"{result.verdict}" == "miscalibrated" == result.as_dict()["verdict"]
    for result in (pair, type(pair).from_json(pair.to_json())):
        assert result.verdict is ComparisonVerdict.SECOND_BETTER
        assert result.verdict == "second is better calibrated"
        assert result.finding == "right is better calibrated"
    again = type(table).from_json(table.to_json())
    assert again.verdicts == table.verdicts == (ComparisonVerdict.FIRST_BETTER,)
    assert table.indistinguishable == (("right",), ("steep",))
    with pytest.raises(ValueError, match="perhaps"):
        dataclasses.replace(pair, verdict="perhaps")


def test_null_distributions_speak_one_language(exact, simulated):
    for result in (exact, simulated):
        null = result.null_distribution
        assert (null.mean(), null.std()) == (result.null_mean, result.null_std)
        assert 0.0 < null.sf(null.ppf(0.5)) <= 1.0
        assert null.rvs(10, rng=1).shape == (10,)
    replicates = np.asarray(simulated.null_distribution)
    assert replicates.shape == (99,)
    assert simulated.pvalue == (1 + (replicates >= simulated.estimate - 1e-12).sum()) / 100


def test_an_audit_says_which_certain_predictions_were_wrong():
    p = np.r_[np.full(150, 0.5), np.ones(50)]
    y = np.r_[np.tile([0, 1], 75), np.ones(43), np.zeros(7)].astype(int)
    said = ct.audit(p, y, rounded=False).summary[-1]
    assert "100 % was predicted in 7 rows without the event (the first in row 194" in said
    assert "unless the probabilities were rounded to 1:" in said
    p[0] = 0.0
    y[0] = 1
    said = ct.audit(p, y, rounded=False).summary[-1]
    assert "in 7 rows without the event and 0 % was predicted in 1 row with the event" in said
    assert "rounded to 0 or 1:" in said


def test_findings_are_not_broken_within_a_word_at_any_width():
    p = np.r_[np.full(150, 0.5), np.ones(50)]
    y = np.r_[np.tile([0, 1], 75), np.ones(43), np.zeros(7)].astype(int)
    report = ct.audit(p, y, rounded=False)
    for width in range(50, 130):
        lines = report._blocks(width)[0].split("\n")[2:6]
        assert [line.endswith("miscalibrated*") for line in lines[1:]] == [True] * 3, width


def test_audit_counts_impossible_outcomes():
    p = np.full(200, 0.0)
    p[:150] = 0.5
    report = ct.audit(p, np.r_[np.tile([0, 1], 75), np.zeros(49), 1], rounded=False)
    assert (report.impossible, report.verdict) == (1, "miscalibrated")
    said = "0 % was predicted in 1 row with the event (the first in row 200, counted from 1)"
    assert said in report.summary[-1]
    assert "unless the probabilities were rounded to 0:" in report.summary[-1]
    assert "Elsewhere the model predicts 50.0" in report.summary[-1]
    assert [row.verdict for row in report.rows] == ["miscalibrated (impossible outcome)"] * 3


def test_holm_against_its_definition(rng):
    for _ in range(50):
        p = list(rng.random(7) ** 3)
        order = np.argsort(p)
        adjusted = holm(p)
        for rank, j in enumerate(order):
            expected = max(min(1.0, (7 - i) * p[order[i]]) for i in range(rank + 1))
            assert adjusted[j] == pytest.approx(expected)


@pytest.mark.parametrize(
    ("p", "shown"),
    [
        *((0.0, "< 0.001"), (2.34e-5, "< 0.001"), (0.001, "0.001"), (0.00134, "0.0013")),
        *((0.006, "0.006"), (0.01, "0.010"), (0.4071, "0.407"), (1.0, "1.000")),
    ],
)
def test_a_p_value_has_two_digits_below_a_hundredth_and_is_never_zero(p, shown):
    assert format_p(p) == shown


@pytest.mark.parametrize(("p", "shown"), [(0.0005, "≤ 0.0005"), (0.005, "≤ 0.005")])
def test_a_simulated_p_at_its_floor_is_a_bound(p, shown):
    assert format_p(p, floor=True) == shown


@pytest.mark.parametrize(
    ("p", "alpha", "shown"),
    [(0.05001, 0.05, "0.05001"), (2.34e-5, 0.05, "< 0.001"), (0.00034, 0.001, "0.00034")],
)
def test_a_p_value_is_told_from_alpha(p, alpha, shown):
    assert format_p(p, alpha) == shown


@pytest.mark.parametrize(
    ("p", "words"), [(0.02, "p = 0.020"), ("≤ 0.005", "p ≤ 0.005"), (1e-9, "p < 0.001")]
)
def test_a_p_value_in_a_sentence_has_a_sign(p, words):
    assert p_is(p) == words


@pytest.mark.parametrize(
    ("value", "spread", "shown"),
    [
        *((0.0392, 0.0105, "0.039"), (64.9, 2.0, "64.9"), (1234.5, 45.0, "1234")),
        *((0.0001, 0.00004, "0.000100"), (-0.0001, 0.1, "0.00"), (0.5, 0.0996, "0.50")),
        *((3e-9, 1.2e-9, "3e-09"), (0.0, np.nan, "0"), (-9.21e-4, np.nan, "-0.00092")),
        *((8.89e-5, np.nan, "0.000089"), (0.1, np.nan, "0.1000"), (2e6, np.nan, "2.00e+06")),
    ],
)
def test_two_digits_of_the_sd_decide_how_a_number_is_written(value, spread, shown):
    assert format_value(value, spread) == shown


def test_audit_says_so_when_it_cannot_know():
    """One sure and right prediction, or five, prove nothing."""
    for p, labels in (([1.0], [1]), ([0.999], [1]), ([0.95], [1]), ([0.999] * 5, [1] * 5)):
        assert ct.audit(p, labels).verdict == "too little data"
    assert ct.audit([[1.0, 0.0, 0.0]], [0]).verdict == "too little data"
    rare = [0.004, 0.006] * 75, [1, *[0] * 149]
    for p, y in (rare, (1.0 - np.array(rare[0]), 1 - np.array(rare[1]))):
        report = ct.audit(p, y, rng=0)
        assert report.verdict == "too little data"
        assert "error of 0.005 would not be detectable" in report.summary[0]


def test_pvalues_of_limit_laws():
    """Both sides of a symmetric law, one of another, and never 0."""
    rng = np.random.default_rng(1)
    p = rng.uniform(0.1, 0.9, 200)
    for labels in ((rng.random(200) < p).astype(int), (p < 0.5).astype(int)):
        run = {"lens": ct.OneVsRest(1), "null": "asymptotic", "as_is": True}  # the second is absurd
        both = ct.calibration_test(p, labels, ct.Spiegelhalter(), **run)
        z = ((labels - p) * (1 - 2 * p)).sum() / np.sqrt(((1 - 2 * p) ** 2 * p * (1 - p)).sum())
        assert both.pvalue == pytest.approx(2.0 * scipy.stats.norm.sf(abs(z)))
        one = ct.calibration_test(p, labels, ct.CoxScore(), **run)
        expected = scipy.stats.chi2(2).sf(one.estimate)
        assert one.pvalue == pytest.approx(max(expected, np.finfo(float).tiny))
        assert one.pvalue_bracket == (one.pvalue, one.pvalue)


@pytest.mark.slow
def test_the_worst_class_is_the_one_of_the_largest_error_however_small_the_p(rng):
    """Of 40 000 rows both p-values are noise of the arithmetic; class 1 is off by twice as much."""
    probs = rng.dirichlet([20.0, 20.0, 20.0], 40_000)
    truth = probs + np.array([-0.02, 0.08, -0.06])
    labels = (rng.random((40_000, 1)) > truth.cumsum(axis=1)).sum(axis=1).clip(max=2)
    report = ct.audit(probs, labels, n_resamples=199, rng=0)
    (row,) = (row for row in report.rows if row.aspect == "classes")
    assert (row.worst, row.detail.count("too low")) == ("class 1", 1)
