"""Spiegelhalter, calibration-in-the-large, Hosmer–Lemeshow, Cox and ICI."""

import numpy as np
import pytest
import scipy.stats
from conftest import event, two
from twins import families as slow

import caltest as ct
from caltest.inference.cox import cox_recalibration
from caltest.inference.null import enumerated_null
from caltest.statistics import CalibrationInTheLarge, CoxLR, CoxScore, HosmerLemeshow, Spiegelhalter
from caltest.statistics.prepared import problem_of
from caltest.statistics.smooth import E50, E90, ICI, Emax


@pytest.mark.parametrize("style", ["plain", "decimals", "corners"])
@pytest.mark.parametrize("span", [2 / 3, 0.3, 1.0])
def test_smooth_curve_against_slow_twin(style, span):
    p, y = two(3, 30, style)
    data = event(p, y)
    curve = ICI(span=span, delta=0.0).prepare(problem_of(data)).smoothed(data.labels)
    expected = [slow.lowess_at(x, p, y, span) for x in np.sort(p)]
    np.testing.assert_allclose(curve, expected, atol=1e-11)
    gaps = np.abs(np.array(expected) - np.sort(p))
    for statistic, value in [
        (ICI, gaps.mean()),
        (E50, np.median(gaps)),
        (E90, np.quantile(gaps, 0.9)),
        (Emax, gaps.max()),
    ]:
        assert statistic(span=span, delta=0.0)(p, y) == pytest.approx(value, abs=1e-11)


# statsmodels 0.15.0: mean and maximum of |x − lowess(y, x, frac, it=0, delta)|
@pytest.mark.parametrize(
    ("span", "delta", "mean", "largest"),
    [
        (2 / 3, None, 0.0729465132131703, 0.14156453661241875),
        (0.5, 0.001, 0.07391344967928767, 0.16309747727699953),
        (0.3, 0.0, 0.0976173459177963, 0.23465297351630254),
    ],
)
def test_smooth_curve_against_statsmodels(span, delta, mean, largest):
    generator = np.random.default_rng(1)
    p = generator.random(60).round(2)
    y = (generator.random(60) < p).astype(int)
    assert ICI(span=span, delta=delta)(p, y) == pytest.approx(mean, rel=1e-12)
    assert Emax(span=span, delta=delta)(p, y) == pytest.approx(largest, rel=1e-12)


def test_cox_estimates_solve_the_score_equations():
    p, y = two(7, 60)
    answer = cox_recalibration(p, y)
    equations = slow.score_equations(answer.intercept, answer.slope, p, y)
    offset = slow.score_equations(answer.in_the_large, 1.0, p, y)[0]
    assert (*equations, offset) == pytest.approx((0.0, 0.0, 0.0), abs=1e-6)
    best = slow.log_likelihood(answer.intercept, answer.slope, p, y)
    lr = 2 * (best - slow.log_likelihood(0.0, 1.0, p, y))
    values = answer.lr, CoxLR()(p, y), answer.lr_intercept + answer.lr_slope
    assert values == pytest.approx((lr, lr, lr), rel=1e-10)
    for value, df, pvalue in [
        (answer.lr, 2, answer.lr_pvalue),
        (answer.lr_intercept, 1, answer.lr_intercept_pvalue),
        (answer.lr_slope, 1, answer.lr_slope_pvalue),
    ]:
        assert pvalue == pytest.approx(scipy.stats.chi2.sf(value, df), rel=1e-10)


def test_profile_intervals_end_where_the_ratio_test_rejects():
    p, y = two(8, 50)
    answer = cox_recalibration(p, y, method="profile", level=0.9)
    best = slow.log_likelihood(answer.intercept, answer.slope, p, y)
    drop = scipy.stats.chi2.ppf(0.9, 1) / 2
    grid = np.linspace(-6, 6, 4001)
    for b in answer.slope_interval:
        profile = max(slow.log_likelihood(a, b, p, y) for a in grid)
        assert best - profile == pytest.approx(drop, abs=1e-3)
    for a in answer.in_the_large_interval:
        top = slow.log_likelihood(answer.in_the_large, 1.0, p, y)
        assert top - slow.log_likelihood(a, 1.0, p, y) == pytest.approx(drop, abs=1e-7)


def test_standard_errors_are_the_curvature():
    p, y = two(9, 80)
    answer = cox_recalibration(p, y)
    a, b, h = answer.intercept, answer.slope, 1e-4

    def f(i, j):
        return slow.log_likelihood(a + i * h, b + j * h, p, y)

    cross = (f(1, 1) - f(1, -1) - f(-1, 1) + f(-1, -1)) / 4
    own = [f(1, 0) - 2 * f(0, 0) + f(-1, 0), f(0, 1) - 2 * f(0, 0) + f(0, -1)]
    covariance = np.linalg.inv(-np.array([[own[0], cross], [cross, own[1]]]) / h**2)
    se = np.sqrt(np.diag(covariance))
    np.testing.assert_allclose([answer.intercept_se, answer.slope_se], se, rtol=1e-3)
    assert answer.covariance == pytest.approx(covariance[0, 1], rel=1e-3)
    at = np.array([0.1, 0.5, 0.8])
    design = np.column_stack([np.ones(3), np.log(at / (1 - at))])
    half = 1.959963985 * np.sqrt(((design @ covariance) * design).sum(axis=1))
    for frequency, side in zip(answer.curve(at), (0.0, -1.0, 1.0), strict=True):
        expected = design @ [a, b] + side * half
        np.testing.assert_allclose(np.log(frequency / (1 - frequency)), expected, rtol=1e-3)
    # the normal quantile at .975
    assert answer.slope_interval[1] == pytest.approx(b + 1.959963985 * answer.slope_se)


@pytest.mark.parametrize("clustered", [False, True])
def test_degrees_of_freedom_are_the_effective_number_of_units_less_one(clustered):
    rng = np.random.default_rng(5)
    p, w = rng.uniform(0.1, 0.9, 60), rng.exponential(1.0, 60)
    unit = np.repeat(np.arange(12), 5) if clustered else np.arange(60)
    facts = {"clusters": unit} if clustered else {}
    answer = cox_recalibration(p, (rng.random(60) < p).astype(int), weights=w, **facts)
    mass = np.bincount(unit, w)
    reach = scipy.stats.t.ppf(0.975, mass.sum() ** 2 / (mass**2).sum() - 1.0)
    assert answer.slope_interval[1] == pytest.approx(answer.slope + reach * answer.slope_se)


def test_first_two_moments_under_calibration():
    data, four = event(two(5, 11)[0]), ct.QuantileBins(4)
    for statistic, mean, deviation in [
        (Spiegelhalter(), 0.0, 1.0),
        (CalibrationInTheLarge(), 0.0, 1.0),
        (HosmerLemeshow(four, variance="exact"), 4.0, None),
        (HosmerLemeshow(four), HosmerLemeshow(four).prepare(problem_of(data)).null_mean, None),
        (CoxScore(), 2.0, None),
    ]:
        fixed = statistic.prepare(problem_of(data))
        law = enumerated_null(fixed, data.probs)
        assert (law.mean(), fixed.null_mean) == pytest.approx((mean, mean), abs=1e-9)
        assert deviation is None or law.std() == pytest.approx(deviation, rel=1e-9)


def test_separated_labels_have_a_finite_ratio_and_no_estimates():
    assert CoxLR()([0.25, 0.75] * 4, [0, 1, 0, 1, 0, 1, 1, 0]) == pytest.approx(0.0, abs=1e-9)
    p, y = np.array([0.2, 0.4, 0.6, 0.8]), np.array([0, 0, 1, 1])
    assert CoxLR()(p, y) == pytest.approx(-2 * slow.log_likelihood(0.0, 1.0, p, y), abs=1e-9)
    assert CoxLR()(p, 1 - y) == pytest.approx(-2 * slow.log_likelihood(0, 1, p, 1 - y), abs=1e-9)
    for labels in (y, 1 - y, [0, 1, 1, 1], [0, 0, 0, 1]):
        with pytest.raises(ct.StatisticError, match="separated by the prediction: the slope is in"):
            cox_recalibration(p, labels)
    with pytest.raises(ct.StatisticError, match="separated"):  # quasi-complete: a tie in between
        cox_recalibration([0.2, 0.5, 0.5, 0.8], y)
