"""Spiegelhalter, calibration-in-the-large, Hosmer–Lemeshow, Cox and ICI."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import reference as ref
import reference_families as slow
import scipy.stats
from reference_curves import score_gap

import caltest as ct
from caltest import StatisticError
from caltest.exact import cell_null, enumerated_null
from caltest.inference.cox import cox_recalibration
from caltest.problem import Flips
from caltest.simulate import RedrawLabels
from caltest.statistics.base import problem_of
from caltest.statistics.cox import CoxLR, CoxScore
from caltest.statistics.ici import E50, E90, ICI, Emax
from caltest.statistics.regression import CalibrationInTheLarge, HosmerLemeshow, Spiegelhalter

STATISTICS = [
    Spiegelhalter(),
    CalibrationInTheLarge(),
    HosmerLemeshow(ct.QuantileBins(4)),
    HosmerLemeshow(ct.UniformBins(5), variance="exact"),
    CoxScore(),
    CoxLR(),
    ICI(),
    E50(span=0.5, delta=0.0),
    E90(delta=0.0),
    Emax(delta=0.0),
]


def problem(seed, n, style="plain"):
    generator = np.random.default_rng(seed)
    p = generator.beta(0.7, 0.7, n)
    if style == "ties":
        p = np.round(p, 1)
    elif style == "corners":
        p[: n // 3] = generator.integers(0, 2, n // 3)
    return p, generator.integers(0, 2, n)


def induced(p, y=None):
    y = np.zeros(len(p), dtype=np.int64) if y is None else y
    return ct.OneVsRest(1)(ct.Predictions.of(p, y))


# --- slow twins ----------------------------------------------------------------------------------


@pytest.mark.parametrize("style", ["plain", "ties", "corners"])
@pytest.mark.parametrize("seed", range(5))
def test_against_slow_twins(seed, style):
    p, y = problem(seed, 40, style)
    equal = slow.hosmer_lemeshow
    groups, cells = ref.quantile_cells(p, 4), ref.uniform_cells(p, 5)
    for ours, theirs in [
        (Spiegelhalter(), slow.spiegelhalter(p, y)),
        (CalibrationInTheLarge(), slow.in_the_large(p, y)),
        (HosmerLemeshow(ct.QuantileBins(4)), equal(p, y, groups)),
        (HosmerLemeshow(ct.QuantileBins(4), variance="exact"), equal(p, y, groups, "exact")),
        (HosmerLemeshow(ct.UniformBins(5)), equal(p, y, cells)),
        (CoxScore(), slow.cox_score(p, y)),
    ]:
        assert ours(p, y) == pytest.approx(theirs, rel=1e-10), repr(ours)


@pytest.mark.parametrize("style", ["plain", "ties", "corners"])
def test_moved_residuals_against_slow_twins(style):
    p, y = problem(2, 40, style)
    data, signs = induced(p, y), np.random.default_rng(1).choice([-1.0, 1.0], 40)
    groups = ref.quantile_cells(p, 4)
    for statistic, degree, theirs in [
        (CalibrationInTheLarge(), 1, slow.in_the_large(p, y, signs)),
        (
            HosmerLemeshow(ct.QuantileBins(4), variance="exact"),
            2,
            slow.hosmer_lemeshow(p, y, groups, "exact", signs),
        ),
        (CoxScore(), 2, slow.cox_score(p, y, signs)),
    ]:
        fixed = statistic.prepare(problem_of(data))
        values = fixed.values(Flips(np.stack([np.ones(40), signs])))
        np.testing.assert_allclose(values, [statistic(p, y), theirs], rtol=1e-10)
        twice = (values - fixed.centre) * 2.0 ** (degree / 2) + fixed.centre
        np.testing.assert_allclose(fixed.values(Flips(np.stack([np.ones(40), signs])), 2.0), twice)


@pytest.mark.parametrize("k", [2, 3, 10, 100])
def test_spiegelhalter_of_many_classes_against_moments(k):
    generator = np.random.default_rng(k)
    probs, labels = generator.dirichlet(np.full(k, 0.5), 30), generator.integers(0, k, 30)
    assert Spiegelhalter()(probs, labels) == pytest.approx(
        score_gap(probs, labels, "brier"), rel=1e-10
    )


@pytest.mark.parametrize("style", ["plain", "ties", "corners"])
@pytest.mark.parametrize("span", [2 / 3, 0.3, 1.0])
def test_smooth_curve_against_slow_twin(style, span):
    p, y = problem(3, 30, style)
    data = induced(p, y)
    curve = ICI(span=span, delta=0.0).prepare(problem_of(data)).curve(data.labels)
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
    p, y = problem(7, 60)
    answer = cox_recalibration(p, y)
    np.testing.assert_allclose(
        slow.score_equations(answer.intercept, answer.slope, p, y), 0.0, atol=1e-6
    )
    assert slow.score_equations(answer.offset_intercept, 1.0, p, y)[0] == pytest.approx(0, abs=1e-6)
    best = slow.log_likelihood(answer.intercept, answer.slope, p, y)
    lr = 2 * (best - slow.log_likelihood(0.0, 1.0, p, y))
    assert answer.lr == pytest.approx(lr, rel=1e-10)
    assert CoxLR()(p, y) == pytest.approx(lr, rel=1e-10)
    assert answer.lr == pytest.approx(answer.lr_intercept + answer.lr_slope, rel=1e-10)
    for value, df, pvalue in [
        (answer.lr, 2, answer.lr_pvalue),
        (answer.lr_intercept, 1, answer.lr_intercept_pvalue),
        (answer.lr_slope, 1, answer.lr_slope_pvalue),
    ]:
        assert pvalue == pytest.approx(scipy.stats.chi2.sf(value, df), rel=1e-10)


def test_profile_intervals_end_where_the_ratio_test_rejects():
    p, y = problem(8, 50)
    answer = cox_recalibration(p, y, method="profile", level=0.9)
    best = slow.log_likelihood(answer.intercept, answer.slope, p, y)
    drop = scipy.stats.chi2.ppf(0.9, 1) / 2
    grid = np.linspace(-6, 6, 4001)
    for b in answer.slope_interval:
        profile = max(slow.log_likelihood(a, b, p, y) for a in grid)
        assert best - profile == pytest.approx(drop, abs=1e-3)
    for a in answer.offset_intercept_interval:
        top = slow.log_likelihood(answer.offset_intercept, 1.0, p, y)
        assert top - slow.log_likelihood(a, 1.0, p, y) == pytest.approx(drop, abs=1e-7)


def test_standard_errors_are_the_curvature():
    p, y = problem(9, 80)
    answer = cox_recalibration(p, y)
    a, b, h = answer.intercept, answer.slope, 1e-4

    def f(i, j):
        return slow.log_likelihood(a + i * h, b + j * h, p, y)

    hessian = -np.array(
        [
            [f(1, 0) - 2 * f(0, 0) + f(-1, 0), (f(1, 1) - f(1, -1) - f(-1, 1) + f(-1, -1)) / 4],
            [(f(1, 1) - f(1, -1) - f(-1, 1) + f(-1, -1)) / 4, f(0, 1) - 2 * f(0, 0) + f(0, -1)],
        ]
    )
    covariance = np.linalg.inv(hessian / h**2)
    se = np.sqrt(np.diag(covariance))
    np.testing.assert_allclose([answer.intercept_se, answer.slope_se], se, rtol=1e-3)
    assert answer.covariance == pytest.approx(covariance[0, 1], rel=1e-3)
    at = np.array([0.1, 0.5, 0.8])
    design = np.column_stack([np.ones(3), np.log(at / (1 - at))])
    half = 1.959963985 * np.sqrt(((design @ covariance) * design).sum(axis=1))
    for frequency, side in zip(answer.curve(at), (0.0, -1.0, 1.0), strict=True):
        expected = design @ [a, b] + side * half
        np.testing.assert_allclose(np.log(frequency / (1 - frequency)), expected, rtol=1e-3)
    assert answer.slope_interval[1] == pytest.approx(b + 1.959963985 * answer.slope_se)


# --- published values ----------------------------------------------------------------------------


def test_spiegelhalter_of_a_published_example():
    generator = np.random.RandomState(1)
    generator.choice([0, 1], size=100)
    scores = generator.uniform(size=100)
    generator = np.random.RandomState(1)
    scores = generator.uniform(size=100)
    labels = (generator.uniform(size=100) <= scores).astype(int)
    # MAPIE prints the one-sided 0.174832; the statistic and the two-sided value:
    z = Spiegelhalter()(scores, labels)
    assert z == pytest.approx(0.9352421307896744, rel=1e-12)
    result = ct.calibration_test(
        scores, labels, Spiegelhalter(), lens=ct.OneVsRest(1), null="asymptotic"
    )
    assert result.pvalue == pytest.approx(2 * 0.174832, abs=2e-6)


def calzone(data_dir, name):
    columns = np.loadtxt(
        data_dir / "binary" / f"calzone_simulated_{name}.csv", delimiter=",", skiprows=1
    )
    return columns[:, 1], columns[:, 2].astype(int)


def without_the_smallest(p, y):
    kept = np.argsort(p)[1:]
    return p[kept], y[kept]


@pytest.mark.parametrize(
    ("name", "z", "hl", "hl_count", "slope", "slope_low", "slope_high", "intercept", "ici"),
    [
        ("welldata", 0.3763269161877356, 8.884991559088098, 3.694947603203135,
         0.994249960703559, 0.93729, 1.05121, -0.04497652310964179, 0.00558856942568957),
        ("misdata", 29.62552957462551, 1027.9402186034245, 1857.5843112885273,
         0.4972021148608723, 0.46873, 0.52567, -0.04497703181369989, 0.07356445428053172),
    ],
)  # fmt: skip
def test_values_of_calzone(
    data_dir, name, z, hl, hl_count, slope, slope_low, slope_high, intercept, ici
):
    p, y = calzone(data_dir, name)
    assert Spiegelhalter()(p, y) == pytest.approx(z, rel=1e-12)
    assert HosmerLemeshow(ct.UniformBins(10))(p, y) == pytest.approx(hl, rel=1e-12)
    # Its groups of equal count are (lo, hi] between quantiles: the smallest value is lost.
    edges = np.quantile(p, np.linspace(0, 1, 11))[1:-1]

    def groups(probs):
        return np.searchsorted(edges, probs[:, 0], side="left")

    lost = without_the_smallest(p, y)
    assert HosmerLemeshow(groups)(*lost) == pytest.approx(hl_count, rel=1e-10)
    answer = cox_recalibration(np.clip(p, 1e-7, 1 - 1e-7), y)  # where it cuts probabilities off
    assert answer.slope == pytest.approx(slope, rel=1e-10)
    assert answer.intercept == pytest.approx(intercept, rel=1e-10)
    np.testing.assert_allclose(answer.slope_interval, (slope_low, slope_high), atol=6e-6)
    np.testing.assert_allclose(answer.intercept_interval, (-0.12349, 0.03353), atol=6e-6)
    assert ICI(span=0.5, delta=0.001)(p, y) == pytest.approx(ici, rel=1e-10)


@pytest.mark.filterwarnings("ignore::caltest.LimitLawWarning")  # df=8 is compared with
def test_values_computed_by_two_methods(data_dir):
    p, y = calzone(data_dir, "welldata")
    assert HosmerLemeshow(ct.UniformBins(10), variance="exact")(p, y) == pytest.approx(
        8.9220982053, abs=1e-9
    )
    for statistic, value, pvalue in [
        (CoxScore(), 1.3108622009, 0.5192181792),
        (CoxLR(), 1.3056862347, 0.5205636473),
        (HosmerLemeshow(ct.UniformBins(10)), 8.884991559088098, 0.5430520576),
        (HosmerLemeshow(ct.UniformBins(10), df=8), 8.884991559088098, 0.35209071874348785),
        (HosmerLemeshow(ct.UniformBins(10), variance="exact"), 8.9220982053, 0.5395124029),
        (Spiegelhalter(), 0.3763269161877356, 0.7066738713391099),
    ]:
        result = ct.calibration_test(p, y, statistic, lens=ct.OneVsRest(1), null="asymptotic")
        assert result.estimate == pytest.approx(value, rel=1e-9), repr(statistic)
        assert result.pvalue == pytest.approx(pvalue, rel=1e-8), repr(statistic)


# --- null laws -----------------------------------------------------------------------------------


def test_exact_laws_against_enumeration():
    p, y = problem(4, 10)
    data, three = induced(p, y), ct.QuantileBins(3)
    for statistic in [
        CalibrationInTheLarge(),
        HosmerLemeshow(three),
        HosmerLemeshow(three, variance="exact"),
    ]:
        fixed = statistic.prepare(problem_of(data))
        result = ct.calibration_test(data, None, statistic, lens=ct.Canonical())
        assert result.null == "exact"
        low, high = enumerated_null(fixed, data.probs).bracket(result.estimate, fixed.two_sided)
        assert low - 1e-9 <= result.pvalue <= high * 1.01 + 1e-9
        assert result.pvalue_bracket[0] <= high + 1e-9


def test_first_two_moments_under_calibration():
    data, four = induced(problem(5, 11)[0]), ct.QuantileBins(4)
    for statistic, mean, deviation in [
        (Spiegelhalter(), 0.0, 1.0),
        (CalibrationInTheLarge(), 0.0, 1.0),
        (HosmerLemeshow(four, variance="exact"), 4.0, None),
        (HosmerLemeshow(four), HosmerLemeshow(four).prepare(problem_of(data)).null_mean, None),
        (CoxScore(), 2.0, None),
    ]:
        fixed = statistic.prepare(problem_of(data))
        law = enumerated_null(fixed, data.probs)
        assert law.mean() == pytest.approx(mean, abs=1e-9)
        assert fixed.null_mean == pytest.approx(mean, abs=1e-9)
        assert deviation is None or law.std() == pytest.approx(deviation, rel=1e-9)


def sizes(statistic, p, draws, seed=0):
    """How often the limit law rejects calibrated labels at 5 %, for these predictions."""
    data = induced(p)
    fixed = statistic.prepare(problem_of(data))
    values = fixed.batch(RedrawLabels().drawer(data)((seed, 1), 0, draws))
    law = fixed.laws["asymptotic"](data.labels)
    if fixed.two_sided:
        return float((2 * scipy.stats.norm.sf(np.abs(values)) <= 0.05).mean())
    return float((law.law.sf(values) <= 0.05).mean())


@pytest.mark.parametrize(
    ("statistic", "draws"),
    [
        (Spiegelhalter(), 4000),
        (CalibrationInTheLarge(), 4000),
        (HosmerLemeshow(), 4000),
        (HosmerLemeshow(variance="exact"), 4000),
        (CoxScore(), 4000),
        (CoxLR(), 800),
    ],
    ids=repr,
)
def test_size_of_the_limit_law(statistic, draws):
    p = np.random.default_rng(1).uniform(0.02, 0.98, 500)
    low, high = scipy.stats.binom.ppf([1e-4, 1 - 1e-4], draws, 0.05) / draws
    assert low - 0.01 < sizes(statistic, p, draws) < high + 0.01


@pytest.mark.slow
def test_the_limit_of_hosmer_lemeshow_is_liberal_for_rare_events_and_the_exact_law_is_not():
    p = np.random.default_rng(2).beta(0.3, 12.0, 200).clip(1e-4)
    assert sizes(HosmerLemeshow(), p, 4000) > 0.07
    data = induced(p)
    fixed = HosmerLemeshow().prepare(problem_of(data))
    values = fixed.batch(RedrawLabels().drawer(data)((3, 1), 0, 1000))
    law = cell_null(fixed.cell_law(), float(np.quantile(values, 0.95)))
    rejected = sum(law.bracket(t)[1] <= 0.05 for t in values)
    assert rejected <= scipy.stats.binom.ppf(1 - 1e-5, 1000, 0.05)


def test_g_minus_2_degrees_of_freedom_reject_too_often():
    p = np.random.default_rng(1).uniform(0.02, 0.98, 500)
    assert scipy.stats.chi2.sf(scipy.stats.chi2.ppf(0.95, 8), 10) == pytest.approx(0.1146, abs=5e-5)
    assert 0.09 < sizes(HosmerLemeshow(df=8), p, 4000) < 0.14


# --- symmetries, ties, ends ----------------------------------------------------------------------


@pytest.mark.parametrize("statistic", STATISTICS, ids=repr)
def test_event_and_non_event_are_alike(statistic):
    if type(statistic) is ICI:  # anchors are chosen from the left
        statistic = ICI(delta=0.0)
    p, y = problem(12, 48)
    sign = -1.0 if isinstance(statistic, CalibrationInTheLarge) else 1.0
    assert statistic(1 - p, 1 - y) == pytest.approx(sign * statistic(p, y), abs=1e-9)


@pytest.mark.parametrize("statistic", STATISTICS, ids=repr)
@pytest.mark.parametrize("p", [[0.3], [0.3, 0.3], [0.0, 0.3, 1.0], [1e-15, 0.2, 1 - 1e-15]])
def test_few_and_extreme_predictions_give_numbers(statistic, p):
    for y in itertools.product([0, 1], repeat=len(p)):
        assert np.isfinite(statistic(np.array(p), np.array(y)))


@pytest.mark.parametrize("statistic", STATISTICS[1:], ids=repr)
def test_more_classes_are_refused(statistic):
    with pytest.raises(StatisticError, match="for two classes"):
        statistic(np.full((3, 3), 1 / 3), np.array([0, 1, 2]))


@pytest.mark.parametrize("p", [[0.0, 1.0], [0.5, 0.5], [0.0, 0.5]])
def test_spiegelhalter_of_halves_is_refused(p):
    with pytest.raises(StatisticError, match="every prediction is 0, ½ or 1"):
        Spiegelhalter()(np.array(p), np.array([0, 1]))
    with pytest.raises(StatisticError, match="not defined"):
        Spiegelhalter()(np.full((4, 3), 1 / 3), np.zeros(4, int))


@pytest.mark.parametrize(
    "statistic", [CalibrationInTheLarge(), HosmerLemeshow(), CoxScore(), CoxLR()], ids=repr
)
def test_certain_predictions_are_refused(statistic):
    with pytest.raises(StatisticError, match="every prediction is 0 or 1"):
        statistic(np.array([0.0, 1.0]), np.array([0, 1]))


def test_equal_predictions_leave_one_degree_of_freedom():
    p, y = np.full(20, 0.3), np.repeat([0, 1], 10)
    assert CoxScore()(p, y) == pytest.approx(CalibrationInTheLarge()(p, y) ** 2)
    for statistic in (CoxScore(), CoxLR()):
        law = statistic.prepare(problem_of(induced(p, y))).laws["asymptotic"](y)
        assert law.mean() == pytest.approx(1.0)


def test_separated_labels_have_a_finite_ratio_and_no_estimates():
    p, y = np.array([0.2, 0.4, 0.6, 0.8]), np.array([0, 0, 1, 1])
    assert CoxLR()(p, y) == pytest.approx(-2 * slow.log_likelihood(0.0, 1.0, p, y), abs=1e-9)
    assert CoxLR()(p, 1 - y) == pytest.approx(
        -2 * slow.log_likelihood(0.0, 1.0, p, 1 - y), abs=1e-9
    )
    for labels in (y, 1 - y, [0, 1, 1, 1], [0, 0, 0, 1]):
        with pytest.raises(StatisticError, match="separated by the prediction: the slope is inf"):
            cox_recalibration(p, labels)
    with pytest.raises(StatisticError, match="separated"):  # quasi-complete: a tie in between
        cox_recalibration([0.2, 0.5, 0.5, 0.8], y)
    with pytest.raises(StatisticError, match="all outcomes are 1: the intercept is infinite"):
        cox_recalibration(p, [1, 1, 1, 1])
    with pytest.raises(StatisticError, match="all predictions are equal"):
        cox_recalibration([0.3, 0.3], [0, 1])


def test_cox_recalibration_needs_an_event():
    probs = np.array([[0.6, 0.3, 0.1], [0.2, 0.5, 0.3], [0.5, 0.4, 0.1], [0.4, 0.35, 0.25]])
    with pytest.raises(StatisticError, match="cox_recalibration is for two classes, but there are"):
        cox_recalibration(probs, [0, 1, 1, 0], lens=ct.Canonical())
    answer = cox_recalibration(probs, [0, 1, 1, 0])
    assert (answer.lens, answer.events, answer.n_classes) == ("TopK(1)", 3, 3)
    with pytest.raises(StatisticError, match=r"level must lie in \(0, 1\)"):
        cox_recalibration([0.3, 0.4], [0, 1], level=95)
    with pytest.raises(StatisticError, match="'wald' or 'profile'"):
        cox_recalibration([0.3, 0.4], [0, 1], method="exact")


def test_known_truths_are_recovered():
    generator = np.random.default_rng(5)
    p = generator.uniform(0.02, 0.98, 20_000)
    z = np.log(p / (1 - p))
    y = (generator.random(p.size) < 1 / (1 + np.exp(-(0.3 + 0.7 * z)))).astype(int)
    answer = cox_recalibration(p, y)
    assert answer.intercept == pytest.approx(0.3, abs=4 * answer.intercept_se)
    assert answer.slope == pytest.approx(0.7, abs=4 * answer.slope_se)
    truth = np.abs(1 / (1 + np.exp(-(0.3 + 0.7 * z))) - p).mean()
    assert ICI()(p, y) == pytest.approx(truth, abs=0.01)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: HosmerLemeshow("ten"), "number of bins"),
        (lambda: HosmerLemeshow(10), r"name the binning: QuantileBins\(10\) for equal mass"),
        (lambda: HosmerLemeshow(variance="big"), "'binomial' or 'exact'"),
        (lambda: HosmerLemeshow(df=0), "df must be a whole number"),
        (lambda: ICI(span=0.0), "span must lie"),
        (lambda: ICI(delta=-1.0), r"delta must lie in \[0, 1\]"),
    ],
)
def test_wrong_settings_are_refused(make, message):
    with pytest.raises(StatisticError, match=message):
        make()
