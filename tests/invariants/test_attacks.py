"""Regressions found by attacking the package with awkward data."""

import math
from fractions import Fraction

import numpy as np
import pytest
import scipy.stats

import caltest as ct


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
    statistic = ct.CalibrationInTheLarge()
    result = ct.calibration_test(probs, labels, statistic, lens=ct.OneVsRest(1))
    expected = exact_total_pvalue(probs, events)
    assert result.pvalue == pytest.approx(expected, rel=1e-9, abs=0.0)
    low, high = result.pvalue_bracket
    assert low <= expected * (1 + 1e-9)
    assert expected <= high * (1 + 1e-9)


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
        mass = [
            math.comb(10, k) * p**k * (1 - p) ** (10 - k)
            for k, p in zip(s, (0.3, 0.6), strict=True)
        ]
        gaps = [(k - 10 * p) ** 2 / (10 * p * (1 - p)) for k, p in zip(s, (0.3, 0.6), strict=True)]
        expected += np.prod(mass) * (sum(gaps) + 10 * tiny >= result.estimate * (1 - 1e-9))
    assert result.pvalue == pytest.approx(expected, rel=1e-4)


def test_intervals_cover_where_all_outcomes_contradict_the_predictions():
    # All of 50 certain predictions wrong: no scatter, but the error need not be 1.
    labels = np.zeros(50, dtype=int)
    for statistic, most in ((ct.ECE(), 0.95), (ct.DebiasedL2(), 0.95**2)):
        interval = ct.confidence_interval(
            np.full(50, 1.0 - 1e-9), labels, statistic, lens=ct.OneVsRest(1), rng=1
        )
        assert 0.85 < interval.low < most  # Clopper-Pearson: 0.929


def test_an_estimate_of_exactly_zero_has_an_upper_bound():
    """20 events of 40 at one half: errors up to 0.15 are plausible, by the binomial law."""
    forecast, labels = np.full(40, 0.5), np.repeat([0, 1], 20)
    interval = ct.confidence_interval(forecast, labels, lens=ct.OneVsRest(1), rng=0)
    exact = scipy.stats.binomtest(20, 40).proportion_ci(0.95)
    assert interval.estimate == 0.0
    assert 0.8 * (exact.high - 0.5) < interval.high < 1.3 * (exact.high - 0.5)
