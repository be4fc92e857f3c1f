"""Regressions found by attacking the package with awkward data."""

import math
from fractions import Fraction

import numpy as np
import pytest
import scipy.stats
from conftest import seen

import caltest as ct
from caltest.errors import StatisticError
from caltest.nulls import RedrawLabels
from caltest.nulls.laws import poisson_binomial
from caltest.statistics.prepared import problem_of


def exact_total_pvalue(p, events):
    """P(|S − Σp| ≥ |s − Σp|) in rational arithmetic."""
    law = [Fraction(1)]
    for q in map(Fraction, p):
        law = [
            (law[k] * (1 - q) if k < len(law) else 0) + (law[k - 1] * q if k else 0)
            for k in range(len(law) + 1)
        ]
    mean = sum(map(Fraction, p))
    gap = abs(events - mean) * (1 - Fraction(1, 10**10))
    return float(sum(mass for k, mass in enumerate(law) if abs(k - mean) >= gap))


@pytest.mark.parametrize(("p", "events"), [(0.9, 10), (0.9, 0), (0.5, 0), (0.1, 40), (0.7, 22)])
def test_two_sided_exact_pvalues_keep_the_digits_of_both_tails(p, events):
    probs, labels = np.full(40, p), np.arange(40) < events
    result = ct.calibration_test(probs, labels, ct.CalibrationInTheLarge(), lens=ct.OneVsRest(1))
    expected = exact_total_pvalue(probs, events)
    assert result.pvalue == pytest.approx(expected, rel=1e-9, abs=0.0)
    low, high = result.pvalue_bracket
    assert low / (1 + 1e-9) <= expected <= high * (1 + 1e-9)


@pytest.mark.filterwarnings("ignore::caltest.DoubtfulInputWarning")
def test_very_confident_predictions_have_an_exact_null():
    # A term of 1/n whose standard deviation is far smaller: exp(-size / deviation) underflowed.
    rng = np.random.default_rng(0)
    for _ in range(12):
        probs = rng.dirichlet([0.05] * 3, 100)
        labels = probs.argmax(axis=1)
        for c in range(3):
            result = ct.calibration_test(probs, labels, lens=ct.OneVsRest(c), null="exact")
            assert 0.0 < result.pvalue <= 1.0


@pytest.mark.parametrize(("n", "events", "p"), [(7, 5, 0.5), (40, 12, 0.5), (40, 12, 0.3)])
def test_smooth_curve_of_equal_predictions_is_their_event_rate(n, events, p):
    # The rounding of the mean prediction passed for a spread, and its "slope" doubled the rate.
    labels = (np.arange(n) < events).astype(int)
    gap = abs(events / n - p)
    for statistic in (ct.ICI(), ct.E50(), ct.E90(), ct.Emax()):
        assert statistic(np.full(n, p), labels) == pytest.approx(gap, abs=1e-12)


@pytest.mark.parametrize("tiny", [1e-6, 1e-10, 1e-12, 1e-16])
def test_unlikely_huge_values_do_not_widen_the_ties_of_an_exact_null(tiny):
    # A group of ten rows of 1e-16 can add 1e17 to the statistic: rounding of that made p = 1.
    probs = np.repeat([tiny, 0.3, 0.6], 10)
    events = np.array([0, 8, 2])
    labels = np.concatenate([np.arange(10) < s for s in events])
    statistic = ct.HosmerLemeshow(ct.QuantileBins(3))
    result = ct.calibration_test(probs, labels, statistic, lens=ct.OneVsRest(1))
    expected = 10 * tiny  # one event there exceeds everything
    for s in np.ndindex(11, 11):
        each = zip(s, (0.3, 0.6), strict=True)
        mass = [math.comb(10, k) * p**k * (1 - p) ** (10 - k) for k, p in each]
        gaps = [(k - 10 * p) ** 2 / (10 * p * (1 - p)) for k, p in zip(s, (0.3, 0.6), strict=True)]
        expected += np.prod(mass) * (sum(gaps) + 10 * tiny >= result.estimate * (1 - 1e-9))
    assert result.pvalue == pytest.approx(expected, rel=1e-4)


def test_intervals_cover_where_all_outcomes_contradict_the_predictions():
    # All of 50 certain predictions wrong: no scatter, but the error need not be 1.
    p, labels = np.full(50, 1.0 - 1e-9), np.zeros(50, dtype=int)
    for statistic, most in ((ct.ECE(), 0.95), (ct.DebiasedL2(), 0.95**2)):
        interval = ct.confidence_interval(p, labels, statistic, lens=ct.OneVsRest(1), rng=1)
        assert 0.85 < interval.low < most  # Clopper-Pearson: 0.929


def test_an_estimate_of_exactly_zero_has_an_upper_bound():
    """20 events of 40 at one half: errors up to 0.15 are plausible, by the binomial law."""
    forecast, labels = np.full(40, 0.5), np.repeat([0, 1], 20)
    interval = ct.confidence_interval(forecast, labels, lens=ct.OneVsRest(1), rng=0)
    exact = scipy.stats.binomtest(20, 40).proportion_ci(0.95)
    assert interval.estimate == 0.0
    assert 0.8 * (exact.high - 0.5) < interval.high < 1.3 * (exact.high - 0.5)


def test_a_probability_above_one_by_rounding_is_certain():
    first, pmf, _ = poisson_binomial(np.array([1.0 + 2.3e-16, 0.5]))
    assert (first, list(pmf)) == (1, [0.5, 0.5])
    probs = np.array([[1.0000000000000002, 0.0]] * 100 + [[0.97, 0.03]] * 100)
    labels = np.r_[np.zeros(100), np.ones(15), np.zeros(85)]
    clean = ct.calibration_test(np.minimum(probs, 1.0), labels)
    assert ct.calibration_test(probs, labels).pvalue == clean.pvalue < 1e-6


@pytest.mark.parametrize("n_classes", [3, 50])
@pytest.mark.parametrize("distance", ["l2", "sqeuclidean", "max", "tv"])
def test_compiled_and_plain_values_agree_to_the_last_ties(n_classes, distance):
    """Gaps near zero: corrections that cancel would differ by the root of the rounding."""
    rng = np.random.default_rng(1)
    probs = np.full((20_000, n_classes), 1.5e-6 / (n_classes - 1))
    probs[:, 0] = 1.0 - 1.5e-6
    fixed = ct.ECE(1, distance=distance).prepare(problem_of(seen(probs)))
    for _ in range(20):
        labels = (rng.random(20_000) < 1e-4).astype(np.int64)
        assert fixed.batch(labels[None])[0] == pytest.approx(fixed(labels), rel=1e-11, abs=1e-15)
    observed = fixed(np.zeros(20_000, int))
    for values in (
        fixed.redraws(ct.RedrawLabels()).replicates((1, 2), 0, 400),
        fixed.batch(ct.RedrawLabels().drawer(seen(probs))((1, 2), 0, 400)),
    ):
        assert abs(np.abs(values - observed).min()) < 1e-15


def test_probabilities_that_vanish_beside_one():
    for lens in (ct.OneVsRest(1), ct.OneVsRest(0), ct.TopK(1), ct.Canonical()):
        data = ct.Predictions(np.array([[1.0, 1e-17]] * 3), np.array([1, 0, 0]))
        result = ct.calibration_test(data, None, ct.ECE(1), lens=lens)
        assert result.pvalue == pytest.approx(3e-17, rel=1e-6)


@pytest.mark.parametrize("bins", [5, 10])
def test_infinite_distances_are_refused(bins):
    def divergence(r, g):
        with np.errstate(divide="ignore", invalid="ignore"):
            return float(np.where(g > 0, g * np.log(g / r), 0.0).sum())

    p, statistic = np.linspace(0.05, 0.9, 60), ct.ECE(bins, distance=divergence)
    with pytest.raises(StatisticError, match="finite number"):
        ct.calibration_test(p, np.tile([0, 1], 30), statistic, lens=ct.OneVsRest(1))


def test_an_atom_at_the_estimate_does_not_refine_for_ever():
    """Few expected errors: the upper end is right, and found on a modest grid."""
    generator = np.random.default_rng(0)
    p = generator.beta(20, 0.5, 200)
    p = np.where(generator.random(200) < 0.5, p, 1 - p)
    labels = (generator.random(200) < p).astype(int)
    exact = ct.calibration_test(p, labels, lens=ct.OneVsRest(1))
    run = {"null": RedrawLabels(), "n_resamples": 19_999, "rng": 1}
    simulated = ct.calibration_test(p, labels, lens=ct.OneVsRest(1), **run)
    assert exact.null_distribution.support.size < 200_000
    assert simulated.pvalue_bracket[0] <= exact.pvalue <= simulated.pvalue_bracket[1] + 1e-3
