"""ATB, O:E, ECI and loess, scaled Brier and cross-fitted errors: twins, laws, published values."""

import csv

import numpy as np
import pytest
import scipy.stats
from conftest import drawn, event, two
from twins import errors as slow

import caltest as ct
from caltest.statistics.isotonic import VariationalError
from caltest.statistics.prepared import problem_of


def test_two_bins_are_truthful():
    """The expected value is smallest at the true probabilities, by enumeration."""
    truth = np.array([0.15, 0.4, 0.4, 0.7, 0.85])
    chance = event(truth).probs
    labels = np.array(list(np.ndindex(*[2] * 5)))
    weight = chance[np.arange(5), labels].prod(axis=1)

    def expected(p):
        return float(weight @ ct.ATB().prepare(problem_of(event(p))).batch(labels))

    best = expected(truth)
    generator = np.random.default_rng(0)
    for size in (0.01, 0.1, 0.3):
        for _ in range(20):
            assert expected(np.clip(truth + size * generator.standard_normal(5), 0, 1)) > best


def test_observed_over_expected_is_tested_around_1():
    p, y = two(1, 60)
    pair = (ct.OERatio(), ct.CalibrationInTheLarge())
    result, plain = (ct.calibration_test(p, y, statistic) for statistic in pair)
    assert result.estimate == pytest.approx(y.sum() / p.sum())
    assert (result.null, result.two_sided, result.centre) == ("exact", True, 1.0)
    assert result.null_mean == pytest.approx(1.0, abs=1e-12)
    assert result.null_std == pytest.approx(np.sqrt((p * (1 - p)).sum()) / p.sum())
    assert result.pvalue == pytest.approx(plain.pvalue, rel=1e-9)
    law = scipy.stats.poisson_binom(p)
    gap = abs(y.sum() - p.sum())
    count = np.arange(61)
    assert result.pvalue == pytest.approx(law.pmf(count)[np.abs(count - p.sum()) >= gap].sum())


def test_both_sides_of_1_count_in_every_null():
    p, y = two(1, 60)
    exact = ct.calibration_test(p, y, ct.OERatio()).pvalue
    drawn_ = ct.calibration_test(p, y, ct.OERatio(), null=ct.RedrawLabels(), rng=1)
    assert drawn_.pvalue == pytest.approx(exact, abs=4 * drawn_.pvalue_error)
    limit = ct.calibration_test(p, y, ct.OERatio(), null="asymptotic")
    z = ct.CalibrationInTheLarge()(p, y)
    assert limit.pvalue == pytest.approx(2 * scipy.stats.norm.sf(abs(z)))
    pairs = [(ct.OERatio(), None), (ct.CalibrationInTheLarge(), None)]
    joint = ct.joint_test(p, y, pairs=pairs, n_resamples=999, rng=1)
    assert joint.adjusted[0] == joint.adjusted[1]
    low = ct.calibration_test(np.full(40, 0.5), np.zeros(40, int), ct.OERatio())
    assert low.estimate == 0.0
    assert low.pvalue == pytest.approx(2 * 0.5**40, rel=1e-6)


@pytest.mark.parametrize(("n", "span"), [(60, 0.75), (200, 0.75), (200, 0.3), (150, 1.0)])
def test_loess_against_slow_twin(n, span):
    p, y = two(n, n)
    curve = slow.loess(p, y, span)
    assert ct.ICI(curve="loess", span=span)(p, y) == pytest.approx(np.abs(curve - p).mean())
    square, constant = ((curve - p) ** 2).mean(), ((y.mean() - p) ** 2).mean()
    assert ct.ECI(curve="loess", span=span)(p, y) == pytest.approx(square / constant)
    assert ct.ECI(curve="loess", span=span, relative=False)(p, y) == pytest.approx(square)


# scikit-misc 0.5.3, the code of Cleveland and Grosse: loess(p, y, span, degree=2). 60 rows of two
# decimals; then 991 of 1000 random data sets, the rest of which it refused, agreed within 2e-15.
@pytest.mark.parametrize(
    ("span", "ici", "eci"),
    [
        (0.75, 0.06959853029025777, 0.08639742719738384),
        (0.5, 0.10031302815462359, 0.17983489423367116),
        (1.0, 0.07243138916242146, 0.08256272665924581),
    ],
)
def test_loess_against_the_code_of_its_authors(span, ici, eci):
    generator = np.random.default_rng(1)
    p = generator.random(60).round(2)
    y = (generator.random(60) < p).astype(int)
    assert ct.ICI(curve="loess", span=span)(p, y) == pytest.approx(ici, rel=1e-12)
    assert ct.ECI(curve="loess", span=span)(p, y) == pytest.approx(eci, rel=1e-12)


def test_case_study(data_dir):
    """As printed: O:E, Brier and scaled Brier. ICI and ECI there use another kernel."""
    with (data_dir / "clinical" / "adnex_case_study.txt").open() as file:
        rows = list(csv.DictReader(file, delimiter=" "))
    p, y = (np.array([float(r[name]) for r in rows]) for name in ("pmalwo", "Outcome1"))
    assert ct.OERatio()(p, y) == pytest.approx(1.2280751, abs=5e-8)
    assert ct.BrierScore()(p, y) == pytest.approx(0.1325655, abs=5e-8)
    assert ct.ScaledBrierScore()(p, y) == pytest.approx(0.469289, abs=5e-7)
    # The printed 0.094348 and 0.104186 are of a parabola at every row, by Epanechnikov's weights.
    curve = np.array([slow.parabola(x, p, y, 0.75, slow.epanechnikov)[0] for x in p])
    square = ((curve - p) ** 2).mean() / ((y.mean() - p) ** 2).mean()
    assert (np.abs(curve - p).mean(), square) == pytest.approx((0.094348, 0.104186), abs=5e-7)
    # R's loess, which the paper's R code calls, computed by the Fortran code that R has.
    assert ct.ICI(curve="loess")(p, y) == pytest.approx(0.09415385331166941, rel=1e-10)
    assert ct.ECI(curve="loess")(p, y) == pytest.approx(0.10511676675553228, rel=1e-10)
    assert ct.ECE(ct.QuantileBins(10))(p, y) == pytest.approx(0.0910722, abs=5e-8)


@pytest.mark.parametrize("k", [2, 3, 7])
def test_scaled_brier_against_slow_twin(k):
    data = drawn(50, k, k)
    assert ct.ScaledBrierScore()(data) == pytest.approx(slow.scaled_brier(data.probs, data.labels))
    fixed = ct.ScaledBrierScore().prepare(problem_of(data))
    law = ct.replicate(data, ct.ScaledBrierScore(), ct.RedrawLabels(), n_resamples=2000, rng=1)
    assert fixed.centre == pytest.approx(law.mean(), abs=0.02)


def test_scaled_brier_of_constant_outcomes_is_a_number():
    fixed = ct.ScaledBrierScore().prepare(problem_of(event(np.full(10, 0.1))))
    one, none = np.append(0, np.ones(9, int)), np.ones(10, int)
    assert fixed.batch(np.array([one, none])) == pytest.approx([0, 1 - 0.01 / 0.09], abs=1e-12)


@pytest.mark.parametrize(("norm", "order"), [("l1", 1), ("l2", 2), ("max", np.inf)])
def test_norms_are_differences_of_proper_losses(norm, order):
    generator = np.random.default_rng(0)
    f, g = generator.dirichlet(np.ones(4), (2, 30))
    y = generator.integers(0, 4, 30)
    gains = VariationalError(norm)._of_rows(f, g, y)
    losses = [slow.proper_norm(order, *row) for row in zip(f, g, y, strict=True)]
    np.testing.assert_allclose(gains, -np.array(losses), atol=1e-6)
    assert (VariationalError("l1")._of_rows(f, f, y) == 0).all()


@pytest.mark.parametrize("k", [2, 3])
@pytest.mark.parametrize(
    ("loss", "score"),
    [("brier", ct.BrierScore()), ("log", ct.LogScore()), ("spherical", ct.SphericalScore())],
)
def test_a_score_is_refinement_and_calibration(k, loss, score):
    data, method = drawn(90, k, 4), ct.recalibration.TemperatureScaling()
    options = {"recalibration": method, "folds": 3}
    parts = ct.RefinementError(loss, **options)(data) + ct.VariationalError(loss, **options)(data)
    assert parts == pytest.approx(score(data))


def test_cross_fits_are_fits_to_the_other_folds():
    p, y = two(8, 60)
    method, fold = ct.recalibration.PlattScaling(), np.random.default_rng(0).permutation(60) % 4
    repaired = np.empty(60)
    for k in range(4):
        repaired[fold == k] = method.fit(p[fold != k], y[fold != k])(p[fold == k])
    options = {"recalibration": method, "folds": 4}
    assert ct.RefinementError(**options)(p, y) == pytest.approx(((repaired - y) ** 2).mean())
    signs = np.sign(repaired - p)
    assert ct.VariationalError(**options)(p, y) == pytest.approx((signs * (y - p)).mean())


def test_a_fold_without_a_map_keeps_its_predictions():
    data = drawn(30, 3, 1)
    upside_down = ct.Predictions(data.probs, data.probs.argmin(axis=1), induced=True)
    method = ct.recalibration.TemperatureScaling()
    assert ct.VariationalError("l1", recalibration=method)(upside_down) == 0.0
