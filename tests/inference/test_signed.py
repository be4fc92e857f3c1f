"""The interval of the signed difference observed − predicted."""

import numpy as np
import pytest
from scipy.optimize import brentq
from scipy.special import expit, logit
from scipy.stats import binomtest

import caltest as ct

SIGNED = ct.MeanDifference()


def ends(*data, **options):
    found = ct.confidence_interval(*data, SIGNED, **options)
    return found.low, found.high


def test_the_estimate_is_the_weighted_mean_of_the_residuals():
    p, y, w = [0.2, 0.5, 0.9], [0, 1, 0], [1.0, 2.0, 1.0]
    assert ct.confidence_interval(p, y, SIGNED, weights=w).estimate == pytest.approx(
        (-0.2 + 2 * 0.5 - 0.9) / 4
    )


@pytest.mark.parametrize("events", [0, 1, 7, 30])
def test_equal_predictions_give_the_limits_of_clopper_and_pearson(events):
    p, y = np.full(30, 0.2), np.arange(30) < events
    exact = binomtest(events, 30).proportion_ci(0.95, "exact")
    # The binomial law has a variance p (1 − p) n at every shift, so nothing is approximate.
    assert ends(p, y) == pytest.approx((exact.low - 0.2, exact.high - 0.2), abs=1e-6)


def by_enumeration(p, y, alpha):
    """Invert both tails of the Poisson-binomial law, whose probabilities are multiplied out."""

    def pmf(q):
        law = np.ones(1)
        for each in q:
            law = np.convolve(law, [1.0 - each, each])
        return law

    def end(tail):
        t = brentq(lambda t: tail(pmf(expit(logit(p) + t))) - alpha, -40.0, 40.0, xtol=1e-12)
        return float(np.mean(expit(logit(p) + t) - p))

    k = int(y.sum())
    return end(lambda law: law[k:].sum()), end(lambda law: law[: k + 1].sum())


@pytest.mark.parametrize("seed", range(6))
def test_independent_rows_come_close_to_the_exact_inversion(seed):
    rng = np.random.default_rng(seed)
    p = rng.uniform(0.01, 0.6, 25)
    y = (rng.random(25) < p).astype(int)
    y[:2] = 0, 1
    expected = by_enumeration(p, y, 0.025)
    scatter = np.sum((y - p - np.mean(y - p)) ** 2)
    shift = brentq(lambda t: np.sum(expit(logit(p) + t)) - y.sum(), -40.0, 40.0)
    q = expit(logit(p) + shift)
    found = ends(p, y)
    if scatter <= np.sum(q * (1.0 - q)):
        assert found == pytest.approx(expected, abs=4e-3)
    else:  # more scatter than a shift explains widens the interval
        assert found[0] < expected[0] + 4e-3
        assert found[1] > expected[1] - 4e-3


def test_the_other_label_has_the_mirrored_interval():
    rng = np.random.default_rng(3)
    p = rng.beta(1.0, 9.0, 200)
    y = (rng.random(200) < p).astype(int)
    low, high = ends(p, y)
    assert ends(1.0 - p, 1 - y) == pytest.approx((-high, -low), abs=1e-6)


def test_a_lower_bound_has_the_whole_error_probability():
    p, y = np.full(40, 0.3), np.arange(40) < 20
    both = ct.confidence_interval(p, y, SIGNED, level=0.9)
    one = ct.confidence_interval(p, y, SIGNED, level=0.95, side="lower")
    assert one.low == pytest.approx(both.low)
    assert one.high == 1.0


def test_upper_bounds_end_at_minus_one():
    p, y = np.full(40, 0.3), np.arange(40) < 20
    assert ct.confidence_interval(p, y, SIGNED, side="upper").low == -1.0


def test_clusters_of_equal_rows_count_once():
    rng = np.random.default_rng(5)
    p = rng.uniform(0.1, 0.9, 60)
    y = (rng.random(60) < p).astype(int)
    alone = ends(p, y)
    ten = [np.repeat(each, 10) for each in (p, y, np.arange(60))]
    together = ends(ten[0], ten[1], clusters=ten[2])
    # Ten copies of a row in a cluster weigh as one; Student's law makes them a little wider.
    assert np.diff(together) == pytest.approx(np.diff(alone), rel=0.06)
    assert np.diff(ends(ten[0], ten[1])) < 0.5 * np.diff(alone)


def test_a_tally_gives_the_interval_of_its_rows():
    data = ct.examples.digits("overfit")
    tally = ct.Tally.of(data, lens=ct.TopK(1))
    assert ends(tally, None) == pytest.approx(ends(data, None), abs=1e-6)


def test_zero_lies_inside_exactly_where_the_p_value_is_above_alpha():
    rng = np.random.default_rng(7)
    for shift in np.linspace(0.0, 1.2, 9):
        p = rng.uniform(0.05, 0.5, 80)
        y = rng.random(80) < expit(logit(p) + shift)
        found = ct.confidence_interval(p, y, SIGNED)
        assert found.contains_zero == (found.pvalue > 0.05)
        assert found.contains_zero == (found.low <= 0.0 <= found.high)


def test_errors_that_no_shift_describes_widen_the_interval():
    p = np.tile([0.001, 0.999], 200)  # right in the mean, with outcomes that are coin flips
    y = np.random.default_rng(1).integers(0, 2, 400)
    low, high = ends(p, y)
    assert high - low > 0.09  # 2 · 1.96 · √(¼ / 400) = 0.098; the shift alone gives 0.006


def test_outcomes_that_were_impossible_keep_their_difference_within_the_interval():
    p, y = np.array([0.0] * 10 + [0.5] * 10), np.array([1] * 6 + [0] * 14)
    found = ct.confidence_interval(p, y, SIGNED)
    assert found.low < found.estimate < found.high


def test_subgroups_have_simultaneous_intervals():
    rng = np.random.default_rng(2)
    p, by = rng.random(300), np.repeat(["a", "b", "c"], 100)
    y = rng.random(300) < p
    groups = ct.confidence_interval(p, y, SIGNED, by=by).subgroups
    alone = ct.confidence_interval(p[:100], y[:100], SIGNED, level=1.0 - 0.05 / 3)
    assert groups.tests[0].low == pytest.approx(alone.low)


def test_no_equivalence_test_takes_a_signed_difference():
    with pytest.raises(ct.StatisticError, match="no upper bound"):
        ct.equivalence_test([0.2, 0.4], [0, 1], SIGNED, tolerance=0.1)


def test_more_than_two_classes_need_a_lens_of_two():
    data = ct.examples.digits()
    with pytest.raises(ct.StatisticError):
        ct.confidence_interval(data, None, SIGNED, lens=ct.Canonical())
